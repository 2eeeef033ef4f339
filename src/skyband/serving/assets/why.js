// Why is this row here, and why is that one not?
import { asJson, details, element, hidden, number, span, text, title } from "./format.js";

const MOST_VALUE = 200, MOST_COLUMNS = 40; // of a row that is asked about

export class Why {
  constructor(panel, { get }) {
    this.panel = panel;
    this.get = get;
    this.query = null;
    panel.querySelector("#why-close").addEventListener("click", () => this.close());
    panel.querySelector("#search").addEventListener("submit", (event) => { event.preventDefault(); this.search(panel.querySelector("#where-text").value); });
    document.addEventListener("keydown", (event) => { if (event.key === "Escape" && !panel.hidden) this.close(); });
  }

  open() {
    if (!this.panel.hidden) return;
    this.back = document.activeElement;
    this.panel.hidden = false;
    this.panel.focus({ preventScroll: true }); // the keyboard goes on in here
  }

  // An example of a condition, over the columns there are.
  suggest(columns) {
    const shown = columns.filter((column) => !hidden.has(column.name)), named = shown.find((column) => /string/.test(column.type)), first = named ?? shown[0];
    if (first) this.panel.querySelector("#where-text").placeholder = named ? `${first.name} = '…'` : `${first.name} > 10`;
  }

  close() {
    if (this.panel.hidden) return;
    this.panel.hidden = true;
    this.panel.querySelector("#found").replaceChildren();
    this.back?.focus?.();
  }

  // A row of the leaderboard: found by what it shows.
  async askRow(row) {
    this.open();
    this.panel.querySelector("#found").replaceChildren();
    // What is long is left out, and of many columns the last ones: an address has its limits, and the others tell the row.
    const shown = Object.entries(row).filter(([, value]) => (typeof value !== "object" || value === null) && String(value).length <= MOST_VALUE).slice(0, MOST_COLUMNS);
    await this.tell(`/queries/${this.query}/why?row=${encodeURIComponent(asJson(Object.fromEntries(shown)))}`);
  }

  async search(where) {
    const found = this.panel.querySelector("#found");
    if (!where.trim()) return;
    try {
      const { rows } = await this.get(`/queries/${this.query}/rows?where=${encodeURIComponent(where)}`);
      found.replaceChildren();
      if (!rows.length) return this.say("No row that is remembered meets this condition.");
      if (rows.length === 1) return await this.ask(rows[0].id);
      this.panel.querySelector("#reason").replaceChildren();
      found.replaceChildren(element("h3", {}, "The newest that fit"), list(rows, (row) => this.ask(row.id)));
    } catch (error) {
      found.replaceChildren();
      this.say(error.message);
    }
  }

  async ask(id) {
    this.open();
    await this.tell(`/queries/${this.query}/rows/${encodeURIComponent(id)}`);
  }

  async tell(path) {
    try {
      this.show(await this.get(path));
    } catch (error) {
      this.say(error.message);
    }
  }

  say(what) {
    this.replace(element("p", { class: "said" }, what));
  }

  show(reason) {
    const rows = reason.facts ?? ofRow(reason);
    if (reason.facts && reason.leaves) rows.push(["leaves", leaves(reason.leaves)]);
    const kind = reason.kind ?? (reason.is_shown ? "shown" : !reason.has_left && reason.dominators < reason.k ? "held" : "");
    const facts = [["what", title(reason.row).title], ...rows, ...Object.entries(reason.row)];
    const said = ([name, value, leaving]) => [element("dt", {}, name), element("dd", {}, text(value), leaving ? element("i", {}, ` · leaves ${leaves(leaving)}`) : null)];
    const parts = [element("p", { class: `said ${kind}` }, reason.verdict), element("dl", { class: "facts" }, ...facts.flatMap(said))];
    if (reason.better.length) {
      const shown = reason.kind === "shown" || reason.is_shown;
      parts.push(element("h3", {}, reason.better_head ?? (shown ? "Better ones" : "What keeps it out")),
        list(reason.better, (row) => row.id && this.ask(row.id), (row) => (row.outlives === undefined || row.outlives === null ? "" : row.outlives ? "outlives it" : "leaves before it")));
    }
    this.replace(...parts);
  }

  // What was clicked to get here may go with what was there.
  replace(...parts) {
    const place = this.panel.querySelector("#reason"), hadFocus = place.contains(document.activeElement);
    place.replaceChildren(...parts);
    if (hadFocus) this.panel.focus();
    this.panel.scrollTop = 0;
  }
}

// The terms with their values, and what they come to.
function score({ computed, score: value }) {
  const said = typeof value === "number" && Number.isFinite(value) ? value.toLocaleString("en", { maximumSignificantDigits: 12 }) : number(value);
  return /^-?[\d.]+$/.test(computed) ? said : `${computed} = ${said}`;
}

function ofRow(reason) {
  return [["score", score(reason)], ["rank now", reason.rank ? number(reason.rank) : "none"],
    ["dominated by", `${number(reason.dominators)} ${reason.dominators === 1 ? "row" : "rows"} (${reason.k} would rule it out)`], ["leaves", leaves(reason.leaves)], ["arrival", number(reason.position)]];
}

function list(rows, click, note = () => "") {
  return element("div", { class: "rows" }, ...rows.map((row) => {
    const named = title(row.row);
    return element("button", { type: "button", onclick: () => click(row) }, element("span", {}, named.title, " ", element("i", {}, [details(row.row, named.rest.slice(0, 1)), note(row)].filter(Boolean).join(" · "))), element("b", {}, row.score === null ? "" : number(row.score)));
  }));
}

function leaves(given) {
  if (!given) return "never";
  if (given.in <= 0) return "it has left";
  return given.unit === "s" ? `in ${span(given.in)} of the stream's time` : given.unit === "rows" ? `after ${number(Math.ceil(given.in))} more rows` : `when the window has moved on by ${number(given.in)}`;
}
