// Why is this row here, and why is that one not?
import { details, element, number, span, text, title } from "./format.js";

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
    if (this.panel.hidden) this.back = document.activeElement;
    this.panel.hidden = false;
  }

  close() {
    this.panel.hidden = true;
    this.back?.focus?.();
  }

  // A row of the leaderboard: found by what it shows.
  async askRow(row, columns) {
    this.open();
    const terms = Object.entries(row).filter(([name, value]) => columns.includes(name) && value !== null).map(([name, value]) => `${quoted(name)} = ${literal(value)}`);
    if (!terms.length) return this.say("This row shows no column that it could be found by.");
    this.panel.querySelector("#where-text").value = terms.join(" AND ");
    await this.search(terms.join(" AND "), true);
  }

  async search(where, direct = false) {
    const found = this.panel.querySelector("#found");
    if (!where.trim()) return;
    try {
      const { rows } = await this.get(`/queries/${this.query}/rows?where=${encodeURIComponent(where)}`);
      found.replaceChildren();
      if (!rows.length) return this.say("No row that is remembered meets this condition.");
      if (rows.length === 1 || direct) return await this.askArrival(rows[0].position);
      this.panel.querySelector("#reason").replaceChildren();
      found.replaceChildren(element("h3", {}, "The newest that fit"), list(rows, (row) => this.askArrival(row.position)));
    } catch (error) {
      found.replaceChildren();
      this.say(error.message);
    }
  }

  async askArrival(position) {
    this.open();
    try {
      this.show(await this.get(`/queries/${this.query}/rows/${position}`));
    } catch (error) {
      this.say(error.message);
    }
  }

  say(what) {
    this.panel.querySelector("#reason").replaceChildren(element("p", { class: "said" }, what));
  }

  show(reason) {
    const kind = reason.is_shown ? "shown" : !reason.has_left && reason.dominators < reason.k ? "held" : "";
    const facts = [["row", title(reason.row).title], ["score", `${reason.computed} = ${number(reason.score)}`], ["rank now", reason.rank ? number(reason.rank) : "none"],
      ["dominated by", `${number(reason.dominators)} ${reason.dominators === 1 ? "row" : "rows"} (${reason.k} rule it out)`], ["leaves", leaves(reason.leaves)], ["arrival", number(reason.position)],
      ...Object.entries(reason.row).map(([name, value]) => [name, text(value)])];
    const parts = [element("p", { class: `said ${kind}` }, reason.verdict), element("dl", { class: "facts" }, ...facts.flatMap(([name, value]) => [element("dt", {}, name), element("dd", {}, value)]))];
    if (reason.better.length) {
      parts.push(element("h3", {}, reason.is_shown ? "Better rows" : `The rows that keep it out`),
        list(reason.better, (row) => this.askArrival(row.position), (row) => (row.outlives ? "outlives it" : "leaves before it")));
    }
    this.panel.querySelector("#reason").replaceChildren(...parts);
  }
}

function list(rows, click, note = () => "") {
  return element("div", { class: "rows" }, ...rows.map((row) => {
    const named = title(row.row);
    return element("button", { type: "button", onclick: () => click(row) }, element("span", {}, named.title, " ", element("i", {}, [details(row.row, named.rest.slice(0, 1)), note(row)].filter(Boolean).join(" · "))), element("b", {}, number(row.score)));
  }));
}

function leaves(given) {
  if (!given) return "never";
  if (given.in <= 0) return "it has left";
  return given.unit === "s" ? `in ${span(given.in)} of the stream's time` : given.unit === "rows" ? `after ${number(Math.ceil(given.in))} more rows` : `when the window has moved on by ${number(given.in)}`;
}

function quoted(name) {
  return /^[A-Za-z_][A-Za-z0-9_]*$/.test(name) ? name : `"${name.replaceAll('"', '""')}"`;
}

function literal(value) {
  if (typeof value !== "string") return String(value);
  return /^\d{4}-\d\d-\d\dT/.test(value) ? `TIMESTAMP '${value.replace("T", " ").replace(/(\+00:00|Z)$/, "")}'` : `'${value.replaceAll("'", "''")}'`;
}
