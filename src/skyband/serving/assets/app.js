// The console: everything it does goes through the HTTP API of this server.
import { Bump, Figures } from "./charts.js";
import { ChangeLog, Grid, Leaderboard } from "./board.js";
import { Editor } from "./editor.js";
import { element, forgetColours, hues, number } from "./format.js";
import { Lanes } from "./lanes.js";
import { Picture } from "./picture.js";
import { showPlan } from "./plan.js";
import { Why } from "./why.js";

const RATE = 10; // answers a second that this page draws at most
const $ = (id) => document.getElementById(id);
const state = { queries: [], name: null, about: null, skipped: 0, source: null, latest: null, group: "" };

async function get(path) {
  return reply(await fetch(path, { headers: { accept: "application/json" } }));
}

async function send(path, body, method = "POST") {
  return reply(await fetch(path, { method, headers: body === undefined ? {} : { "content-type": "application/json" }, body: body === undefined ? undefined : JSON.stringify(body) }));
}

async function reply(response) {
  const said = response.status === 204 ? {} : await response.json().catch(() => ({ error: `The server said ${response.status}.` }));
  if (!response.ok) throw Object.assign(new Error(said.why ?? said.error), said);
  return said;
}

const why = new Why($("why"), { get });
const board = new Leaderboard($("board"), (row) => askWhy(row));
const grid = new Grid($("grid"));
const log = new ChangeLog($("log"));
const dots = new Picture($("picture"), (id) => why.ask(id));
const lanes = new Lanes($("lanes"), (id) => why.ask(id));
const bump = new Bump($("bump"));
const figures = new Figures($("figures"));
const editor = new Editor($("text"), $("paint"), $("complete"), { check, run });

window.skyband = { state, bump, dots, lanes }; // to look at from the browser's console, and in tests

function askWhy(row) {
  if (state.about?.picture) why.askRow(row);
}

// What draws the query that is looked at.
function picture() {
  return state.about?.picture?.form === "lanes" ? lanes : dots;
}

// -- queries -----------------------------------------------------------------------------------------------------------

async function refresh() {
  try {
    const { queries } = await get("/queries");
    state.queries = queries;
    tabs();
    if (!queries.some((query) => query.name === state.name)) choose(queries[queries.length - 1]?.name ?? null);
    const about = queries.find((query) => query.name === state.name);
    if (about) tell(about);
    if (about?.state === "running" && state.source?.readyState !== 2) status("live", "live");
  } catch {
    status("bad", "no connection");
  }
}

function tabs() {
  const made = state.queries.map((query) => {
    const tab = element("span", { class: `tab ${query.name === state.name ? "on" : ""}` },
      element("button", { type: "button", role: "tab", "aria-selected": String(query.name === state.name), title: query.title, onclick: () => choose(query.name) }, query.name));
    if (state.canStop) tab.append(element("button", { type: "button", class: "stop", "aria-label": `Stop ${query.name}`, title: "Stop", onclick: () => stop(query.name) }, "✕"));
    return tab;
  });
  const focused = document.activeElement?.closest?.("#tabs") ? [...$("tabs").querySelectorAll("button")].indexOf(document.activeElement) : -1;
  $("tabs").replaceChildren(...made);
  if (focused >= 0) $("tabs").querySelectorAll("button")[focused]?.focus();
}

function choose(name) {
  if (state.name === name && state.source) return;
  state.name = why.query = name;
  state.source?.close();
  state.source = null;
  for (const each of [board, log, dots, lanes, bump, figures]) each.clear();
  grid.show([]);
  Object.assign(state, { skipped: 0, latest: null, group: "", about: state.queries.find((query) => query.name === name) });
  const there = Boolean(state.about);
  $("empty").hidden = there;
  for (const id of ["leaders", "bump-card", "figures"]) $(id).hidden = !there;
  frame(state.about?.picture);
  $("main").classList.toggle("no-picture", !state.about?.picture);
  $("skipped").hidden = true;
  tabs();
  if (!there) return status("", "nothing runs");
  tell(state.about);
  if (state.about.statement && !$("text").value) editor.set(state.about.statement);
  follow(name);
  look();
}

// What is around the picture: its title, how to read it, and what its colours mean.
function frame(drawn) {
  $("picture-card").hidden = !drawn;
  if (!drawn) return;
  $("picture-title").textContent = drawn.title;
  $("picture-sub").textContent = drawn.caption;
  $("picture").hidden = drawn.form === "lanes";
  $("lanes").hidden = drawn.form !== "lanes";
  $("groups").hidden = true;
  [...document.querySelectorAll(".legend li")].forEach((each, place) => {
    each.textContent = drawn.legend[place] ?? "";
    each.hidden = place >= drawn.legend.length;
  });
}

function follow(name) {
  const source = (state.source = new EventSource(`/queries/${encodeURIComponent(name)}/changes?rate=${RATE}`));
  source.addEventListener("answer", (event) => {
    const answer = JSON.parse(event.data);
    state.skipped += answer.missed;
    $("skipped").hidden = !state.skipped;
    $("skipped").textContent = `${number(state.skipped)} skipped`;
    const isFirst = state.latest === null;
    state.latest = answer;
    status("live", "live");
    draw();
    if (isFirst) seed();
  });
  source.addEventListener("end", () => { source.close(); status("", "ended"); });
  source.onerror = () => status("bad", "reconnecting");
}

// The bump chart begins with the answers that the server has kept.
async function seed() {
  const { name, group } = state;
  const chosen = $("group-choice").hidden ? "" : `&group=${encodeURIComponent(group)}`;
  const { answers } = await get(`/queries/${encodeURIComponent(name)}/history?k=12${chosen}`).catch(() => ({ answers: [] }));
  if (name !== state.name || group !== state.group || !answers.length) return;
  bump.clear();
  for (const answer of answers) bump.add(answer.rows, state.about.identity, performance.now() - 1000 * answer.age);
  if (state.latest.version > answers[answers.length - 1].version) draw();
}

function draw() {
  const { latest, about } = state;
  const rows = chosen(latest.rows);
  const changed = board.show(rows.slice(0, 60), about.identity);
  log.add(changed);
  grid.show(rows);
  bump.add(rows, about.identity);
  const when = latest.at ?? about.figures.watermark ?? latest.watermark ?? null;
  const more = latest.rows_in_all > latest.rows.length ? ` The first ${number(latest.rows.length)} of ${number(latest.rows_in_all)} rows.` : "";
  $("board-note").textContent = `${latest.at !== null ? "Window until" : "As of"} ${when === null ? "now" : typeof when === "string" ? when.slice(0, 19).replace("T", " ") : number(when)}${latest.batch === null ? "" : `, batch ${number(latest.batch)}`}.${more}`;
}

// With groups, one ranking at a time.
function chosen(rows) {
  const column = state.about.groups.find((name) => rows.length && name in rows[0]);
  $("group-choice").hidden = !column;
  if (!column) return rows;
  const values = [...new Set(rows.map((row) => String(row[column])))].sort();
  if (!values.includes(state.group)) state.group = values[0] ?? "";
  const select = $("group");
  if (select.dataset.values !== values.join("\u0000")) {
    select.dataset.values = values.join("\u0000");
    select.replaceChildren(...values.map((value) => element("option", { value }, value)));
  }
  select.value = state.group;
  return rows.filter((row) => String(row[column]) === state.group);
}

function tell(about) {
  state.about = about;
  $("leaders-title").textContent = about.title;
  $("leaders-sub").textContent = [about.conditions, about.window, about.figures.algorithm && `by ${about.figures.algorithm}`].filter(Boolean).join(", ");
  figures.show(about.figures);
  if (about.picture?.form !== "pairs") meter("rows", about.figures.rows_held, about.figures.rows_in_window, about.figures.rows_expected);
  if (about.state !== "running") status(about.state === "failed" ? "bad" : "", about.state);
  if (about.problem_text) $("board-note").textContent = about.problem_text;
}

function meter(what, held, all, expected) {
  $("meter").hidden = !state.about.picture || !all;
  if (!all) return;
  $("meter-what").textContent = what;
  $("meter-held").textContent = number(held);
  $("meter-window").textContent = number(all);
  $("meter-fill").style.width = `${Math.min(100, (100 * held) / all)}%`;
  $("meter-plan").textContent = expected ? `· the plan expected about ${number(Math.round(expected))}` : "";
}

async function look() {
  const name = state.name;
  if (!state.about?.picture || document.hidden) return;
  try {
    const data = await get(`/queries/${encodeURIComponent(name)}/picture`);
    if (name !== state.name) return;
    picture().take(data);
    const rows = data.rows_in_window;
    if (data.pairs_held !== undefined && rows) meter("pairs", data.pairs_held, (rows * (rows - 1)) / 2);
    if (data.groups) tellGroups(data.groups);
  } catch { /* the next look may succeed; the status says when there is no connection */ }
}

function tellGroups(groups) {
  const said = groups.map((group) => group.title).join("\u0000");
  $("groups").hidden = !groups.length;
  if ($("groups").dataset.said === said) return;
  $("groups").dataset.said = said;
  $("groups").replaceChildren(...groups.map((group, place) => {
    const dot = element("i");
    dot.style.background = hues[place % hues.length];
    return element("li", {}, dot, group.title);
  }));
}

function status(kind, said) {
  $("status").className = `status ${kind}`;
  $("status").textContent = said;
}

// -- statements --------------------------------------------------------------------------------------------------------

function verdict(kind, said) {
  $("verdict").className = `verdict ${kind}`;
  $("verdict").textContent = said;
}

async function tried(action) {
  try {
    return await action();
  } catch (error) {
    verdict("bad", error.message);
    editor.point(error.place ?? null);
    return null;
  }
}

async function check(sql) {
  if (!sql.trim()) return verdict("", "");
  const asked = (check.last = {});
  const found = await tried(() => send("/statements/check", { sql }));
  if (found && asked === check.last) verdict("good", `${found.title}: ${found.summary}`);
}

async function run() {
  const made = await tried(() => send("/queries", { sql: $("text").value }));
  if (!made) return;
  verdict("good", `${made.name} is running`);
  await refresh();
  choose(made.name);
  $("main").scrollIntoView({ behavior: "smooth" });
}

async function explain() {
  const plan = await tried(() => send("/statements/explain", { sql: $("text").value }));
  if (plan) showPlan($("plan"), plan);
}

async function stop(name) {
  await tried(() => send(`/queries/${encodeURIComponent(name)}`, undefined, "DELETE"));
  await refresh();
}

// -- the page ----------------------------------------------------------------------------------------------------------

for (const button of document.querySelectorAll("[data-view]")) {
  button.addEventListener("click", () => {
    for (const each of document.querySelectorAll("[data-view]")) {
      each.setAttribute("aria-pressed", String(each === button));
      $(each.dataset.view).hidden = each !== button;
    }
    if (state.latest) grid.show(chosen(state.latest.rows));
  });
}
$("group").addEventListener("change", (event) => { state.group = event.target.value; board.clear(); bump.clear(); draw(); seed(); });
$("run").addEventListener("click", run);
$("explain").addEventListener("click", explain);
$("theme").addEventListener("click", () => {
  const light = matchMedia("(prefers-color-scheme: light)").matches;
  const now = document.documentElement.dataset.theme ?? (light ? "light" : "dark");
  theme(now === "dark" ? "light" : "dark");
});

function theme(name) {
  document.documentElement.dataset.theme = name;
  localStorage.setItem("skyband-theme", name);
  forgetColours();
}

function animate() {
  if (!document.hidden) {
    if (!$("picture-card").hidden) picture().draw();
    if (!$("bump-card").hidden) bump.draw();
  }
  requestAnimationFrame(animate);
}

async function begin() {
  const kept = localStorage.getItem("skyband-theme");
  if (kept) theme(kept);
  matchMedia("(prefers-color-scheme: light)").addEventListener("change", forgetColours);
  if (location.search) history.replaceState(null, "", "/"); // a token does not stay in the address
  const catalog = await get("/catalog"), { title, tables, statements } = catalog;
  $("where").textContent = title;
  document.title = `Skyband · ${title}`;
  state.canStop = statements;
  $("sql").hidden = !statements;
  editor.know(catalog);
  $("tables").textContent = tables.map((table) => `${table.name} (${table.columns.map((column) => column.name).join(", ")})`).join(" · ");
  await refresh();
  setInterval(refresh, 1000);
  setInterval(() => board.settle(), 1000);
  setInterval(look, 400);
  requestAnimationFrame(animate);
}

begin().catch((error) => status("bad", error.message));
