// The console: everything it does goes through the HTTP API of this server.
import { Bump, Figures } from "./charts.js";
import { ChangeLog, Grid, Leaderboard } from "./board.js";
import { Editor } from "./editor.js";
import { cut, element, exact, forgetColours, hue, number, text } from "./format.js";
import { Groups } from "./groups.js";
import { Lanes } from "./lanes.js";
import { Picture } from "./picture.js";
import { showPlan } from "./plan.js";
import { Why } from "./why.js";

const RATE = 10; // answers a second that this page draws at most
const SLOW_MS = 40, SLOW_RATE = 2; // with answers that take so long to draw, so many a second
const MOST_COLUMNS = 12; // of a table that is named above the editor
const MOST_BOARD = 60; // rows; the grid shows more
const $ = (id) => document.getElementById(id);
const state = { queries: [], name: null, about: null, skipped: 0, source: null, latest: null, isPaused: false, hasNews: false, rate: RATE, took: 0 };

async function get(path) {
  return reply(await reached(fetch(path, { headers: { accept: "application/json" } })));
}

async function send(path, body, method = "POST") {
  return reply(await reached(fetch(path, { method, headers: body === undefined ? {} : { "content-type": "application/json" }, body: body === undefined ? undefined : JSON.stringify(body) })));
}

function reached(fetched) {
  return fetched.catch(() => { throw Object.assign(new Error("The server does not answer. Has it been stopped?"), { isAway: true }); });
}

async function reply(response) {
  const said = response.status === 204 ? {} : await response.text().then(exact).catch(() => ({ error: `The server said ${response.status}.` }));
  if (!response.ok) throw Object.assign(new Error(said.why ?? said.error), said);
  return said;
}

const why = new Why($("why"), { get });
const board = new Leaderboard($("board"), null);
const grid = new Grid($("grid"));
const log = new ChangeLog($("log"));
const dots = new Picture($("picture"), (id) => why.ask(id));
const lanes = new Lanes($("lanes"), (id) => why.ask(id));
const bump = new Bump($("bump"));
const figures = new Figures($("figures"));
const groups = new Groups($("group-choice"), { get, chosen: () => { board.clear(); bump.clear(); draw(); seed(); }, loaded: () => { if (state.latest && !state.isPaused) draw(); } });
const editor = new Editor($("text"), $("paint"), $("complete"), { check, run });

window.skyband = { state, bump, dots, lanes }; // to look at from the browser's console, and in tests

// What draws the query that is looked at.
function picture() {
  return state.about?.picture?.form === "lanes" ? lanes : dots;
}

// -- queries -----------------------------------------------------------------------------------------------------------

async function refresh() {
  let queries;
  try {
    ({ queries } = await get("/queries"));
  } catch (error) {
    return status("bad", error.isAway ? "no connection, trying again" : error.message);
  }
  state.queries = queries;
  tabs();
  if (!queries.some((query) => query.name === state.name)) choose(queries[queries.length - 1]?.name ?? null);
  const about = queries.find((query) => query.name === state.name);
  if (!about) return;
  tell(about);
  if (about.state !== "running") return;
  if (state.source?.readyState === EventSource.CLOSED) follow(about.name); // it was refused, or the query has started anew
  if (state.source?.readyState === EventSource.OPEN) live();
}

// Buttons stay what they are, so that one can click on them while they are refreshed.
function tabs() {
  const names = state.queries.map((query) => query.name), place = $("tabs");
  const known = new Map([...place.children].map((tab) => [tab.dataset.name, tab]));
  for (const [name, tab] of known) if (!names.includes(name)) tab.remove();
  for (const query of state.queries) {
    const tab = known.get(query.name) ?? newTab(query.name), isOn = query.name === state.name;
    if (!known.has(query.name)) place.append(tab);
    tab.className = `tab ${isOn ? "on" : ""}`;
    tab.firstChild.setAttribute("aria-pressed", String(isOn));
    tab.firstChild.title = cut(query.title, 200);
  }
}

function newTab(name) {
  const tab = element("span", { "data-name": name }, element("button", { type: "button", onclick: () => choose(name) }, name));
  if (state.canStop) tab.append(element("button", { type: "button", class: "stop", "aria-label": `Stop ${name}`, title: "Stop", onclick: () => stop(name) }, "✕"));
  return tab;
}

function choose(name) {
  if (state.name === name && state.source) return;
  state.name = why.query = name;
  state.source?.close();
  state.source = null;
  why.close();
  for (const each of [board, log, dots, lanes, bump, figures]) each.clear();
  grid.show([]);
  pause(false);
  groups.clear(name);
  $("board-note").textContent = "";
  Object.assign(state, { skipped: 0, latest: null, rate: RATE, took: 0, about: state.queries.find((query) => query.name === name) });
  const there = Boolean(state.about);
  $("empty").hidden = there;
  for (const id of ["leaders", "bump-card", "figures"]) $(id).hidden = !there;
  frame(state.about?.picture);
  $("main").classList.toggle("no-picture", !state.about?.picture);
  $("skipped").hidden = true;
  tabs();
  if (!there) return empty();
  tell(state.about);
  why.suggest(state.about.columns);
  board.ask = state.about.picture ? (row) => why.askRow(row) : null; // a pipeline's rows are on Spark's workers
  if (state.canStop && state.about.statement && !$("text").value) editor.set(state.about.statement);
  follow(name);
  look();
}

// Without a query: statements are run here, or a pipeline's queries begin as soon as Spark has started.
function empty() {
  $("empty-title").textContent = state.canStop ? "Nothing is running" : "The pipeline is starting";
  $("empty-sub").textContent = state.canStop ? "Write a statement below and run it." : "Spark takes some seconds. The queries appear here by themselves.";
  status("", state.canStop ? "nothing runs" : "starting");
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
  state.source?.close();
  const source = (state.source = new EventSource(`/queries/${encodeURIComponent(name)}/changes?rate=${state.rate}`));
  source.addEventListener("answer", (event) => {
    const began = performance.now(), answer = exact(event.data);
    const isFirst = state.latest === null;
    skip(answer.missed + (state.isPaused ? 1 : 0));
    state.latest = answer;
    live();
    state.hasNews = state.isPaused;
    if (state.isPaused) return;
    draw();
    if (isFirst) seed();
    else slowDown(performance.now() - began);
  });
  source.addEventListener("end", () => source.close());
  source.onerror = () => status("bad", "no connection, trying again");
}

// Answers that take long to draw come less often, so that the page has time for the one who looks at it.
function slowDown(took) {
  state.took = 0.8 * state.took + 0.2 * took;
  if (state.took < SLOW_MS || state.rate === SLOW_RATE) return;
  state.rate = SLOW_RATE;
  follow(state.name);
}

function live() {
  if (state.about?.state !== "running") return;
  if (state.isPaused) status("", "paused");
  else status("live", "live");
}

function skip(answers) {
  state.skipped += answers;
  $("skipped").hidden = !state.skipped;
  $("skipped").textContent = `${number(state.skipped)} skipped`;
}

// While the page is paused one can read, click and copy; answers that come meanwhile count as skipped but for the last one.
function pause(isPaused) {
  if (state.isPaused === isPaused) return;
  state.isPaused = isPaused;
  $("pause").setAttribute("aria-pressed", String(isPaused));
  $("pause").textContent = isPaused ? "Resume" : "Pause";
  live();
  if (isPaused || !state.latest) return;
  if (state.hasNews) skip(-1);
  draw();
  look();
}

// The bump chart begins with the answers that the server has kept.
async function seed() {
  const { name } = state, asked = groups.asked;
  const { answers } = await get(`/queries/${encodeURIComponent(name)}/history?k=12${asked}`).catch(() => ({ answers: [] }));
  if (name !== state.name || asked !== groups.asked || !answers.length || state.isPaused) return;
  bump.clear();
  for (const answer of answers) bump.add(groups.rowsOf(answer.rows), state.about.identity, groups.columns, performance.now() - 1000 * answer.age);
  if (state.latest.version > answers[answers.length - 1].version) draw();
}

function draw() {
  const { latest, about } = state;
  const rows = groups.show(latest, about.groups);
  const changed = board.show(rows.slice(0, MOST_BOARD), about.identity, groups.columns);
  log.add(changed);
  grid.show(rows);
  bump.add(rows, about.identity, groups.columns);
  const when = latest.at ?? about.figures.watermark ?? latest.watermark ?? null;
  const parts = [`${latest.at !== null ? "Window until" : "As of"} ${when === null ? "now" : text(when, null, true)}${latest.batch === null ? "" : `, batch ${number(latest.batch)}`}.`];
  if (!rows.length) parts.push("The answer has no rows.");
  if (rows.length > MOST_BOARD && !$("board").hidden) parts.push(`The board shows ${MOST_BOARD} of ${number(rows.length)} rows.`);
  if (latest.rows_in_all > latest.rows.length && !groups.isChosen) parts.push(`The page has the first ${number(latest.rows.length)} of ${number(latest.rows_in_all)} rows.`);
  $("board-note").textContent = parts.join(" ");
}

function tell(about) {
  state.about = about;
  $("leaders-title").textContent = cut(about.title, 300);
  $("leaders-sub").textContent = [cut(about.conditions, 300), about.window, about.figures.algorithm && `by ${about.figures.algorithm}`].filter(Boolean).join(", ");
  figures.show(about.figures);
  if (about.picture?.form !== "pairs") meter("rows", about.figures.rows_held, about.figures.rows_in_window, about.figures.rows_expected);
  if (about.state !== "running") status(about.state === "failed" ? "bad" : "", about.state);
  $("failure").hidden = !about.problem_text;
  $("failure").textContent = about.problem_text ?? "";
  if (!state.latest && about.state === "running") $("board-note").textContent = about.figures.rows_in === 0 ? "No answer yet: no row has come that the query takes." : "No answer yet.";
  if (!state.latest && about.state === "ended") $("board-note").textContent = "The query has ended without an answer.";
}

function meter(what, held, all, expected) {
  $("meter").hidden = !state.about.picture || !all;
  if (!all) return;
  $("meter-what").textContent = what;
  $("meter-held").textContent = number(held);
  $("meter-window").textContent = number(all);
  $("meter-of").textContent = held > all ? "held," : "held of"; // some are swept out after they have left
  $("meter-fill").style.width = `${Math.min(100, (100 * held) / all)}%`;
  $("meter-plan").textContent = expected ? `· the plan expected about ${number(Math.round(expected))}` : "";
}

async function look() {
  const name = state.name;
  if (!state.about?.picture || document.hidden || state.isPaused) return;
  try {
    const data = await get(`/queries/${encodeURIComponent(name)}/picture`);
    if (name !== state.name || state.isPaused) return;
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
    dot.style.background = hue(place);
    return element("li", {}, dot, cut(group.title, 60));
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

async function tried(action, isWanted = () => true) {
  try {
    return await action();
  } catch (error) {
    if (isWanted()) {
      verdict("bad", error.message);
      editor.point(error.place ?? null);
    }
    return null;
  }
}

function statement() {
  const sql = $("text").value;
  if (sql.length > editor.most) throw new Error(`A statement has at most ${number(editor.most)} characters here; this one has ${number(sql.length)}.`);
  return sql;
}

async function check(sql) {
  const asked = (check.last = {}), isWanted = () => asked === check.last; // nobody wants to know about a text that has changed
  if (!sql.trim()) return verdict("", "");
  const found = await tried(() => send("/statements/check", { sql: statement() }), isWanted);
  if (found && isWanted()) verdict("good", `${cut(found.title, 300)}: ${cut(found.summary, 600)}`);
}

async function run() {
  if ($("run").disabled) return; // once is meant
  if (/^\s*explain\b/i.test($("text").value)) return explain();
  $("run").disabled = true;
  editor.settle();
  check.last = {};
  verdict("", "starting …");
  const made = await tried(() => send("/queries", { sql: statement() }));
  $("run").disabled = false;
  if (!made) return;
  verdict("good", `${made.name} is running`);
  await refresh();
  choose(made.name);
  $("main").scrollIntoView({ behavior: "smooth" });
}

async function explain() {
  editor.settle();
  check.last = {};
  const plan = await tried(() => send("/statements/explain", { sql: statement() }));
  if (!plan) return;
  verdict("good", cut(plan.title, 300));
  showPlan($("plan"), plan);
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
    if (state.latest && !state.isPaused) draw();
    else if (state.latest) grid.show(groups.rows);
  });
}
$("pause").addEventListener("click", () => pause(!state.isPaused));
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
  requestAnimationFrame(animate); // first: a picture that cannot be drawn holds up no other one
  if (document.hidden || state.isPaused) return;
  if (!$("picture-card").hidden) picture().draw();
  if (!$("bump-card").hidden) bump.draw();
}

function described(table) {
  const names = table.columns.map((column) => column.name), more = names.length - MOST_COLUMNS;
  return `${table.name} (${names.slice(0, MOST_COLUMNS).join(", ")}${more > 0 ? ` and ${number(more)} more` : ""})`;
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
  $("tables").textContent = tables.map(described).join(" · ");
  await refresh();
  setInterval(refresh, 1000);
  setInterval(() => board.settle(), 1000);
  setInterval(look, 400);
  requestAnimationFrame(animate);
}

begin().catch((error) => status("bad", error.message));
