// Rankings by group: which one is shown, and how it is chosen. With many groups one types its name.
import { cut, element, text } from "./format.js";

const MOST_LISTED = 200; // groups in a list; with more of them there is a field instead
const MOST_OFFERED = 50; // groups that the field offers
const AGAIN_MS = 1000; // between two questions about a group of which the page has no rows

export class Groups {
  constructor(place, { get, chosen, loaded }) {
    Object.assign(this, { place, get, chosen, loaded });
    this.list = element("select", { id: "group", onchange: () => this.choose(this.list.value) });
    this.names = element("datalist", { id: "group-names" });
    this.field = element("input", { id: "group-field", autocomplete: "off", spellcheck: false, oninput: () => this.offer(), onchange: () => this.choose(this.field.value) });
    this.field.setAttribute("list", "group-names");
    this.count = element("span", { class: "sub" });
    this.label = element("span");
    place.append(this.label, this.list, this.field, this.names, this.count);
    this.clear(null);
  }

  clear(query) {
    Object.assign(this, { query, value: null, known: [], firsts: new Map(), columns: [], rows: [], fetched: null, at: -Infinity, version: 0, hasAsked: false, isPart: false });
    clearTimeout(this.later);
    this.place.hidden = true;
    this.names.replaceChildren();
    this.said = "";
  }

  get isChosen() {
    return this.columns.length > 0;
  }

  // A parameter of requests: the API knows groups by their first column.
  get asked() {
    return this.isChosen && this.value !== null ? `&group=${encodeURIComponent(this.firsts.get(this.value) ?? this.value)}` : "";
  }

  // The rows of an answer that are to be shown.
  show(answer, columns) {
    if (answer.rows.length) this.columns = columns.filter((name) => name in answer.rows[0]);
    this.place.hidden = !this.isChosen;
    this.label.textContent = columns.join(" · ");
    if (!this.isChosen) return (this.rows = answer.rows);
    this.isPart = (answer.rows_in_all ?? 0) > answer.rows.length; // what has not come is asked for
    if (!this.isPart || !this.hasAsked) this.know(answer.rows);
    if (this.isPart && !this.hasAsked) this.askAll();
    this.value ??= this.known[0] ?? null; // it stays, also if the group has no rows for a while
    if (this.value !== null && !this.firsts.has(this.value)) this.known.push(this.value);
    this.refresh();
    const here = this.rowsOf(answer.rows);
    if (here.length || !this.isPart) return (this.rows = here);
    if (answer.version !== this.version) this.fetch(answer.version);
    return (this.rows = this.fetched === null ? [] : this.rowsOf(this.fetched));
  }

  rowsOf(rows) {
    return this.isChosen ? rows.filter((row) => name(row, this.columns) === this.value) : rows;
  }

  // -- inside ----------------------------------------------------------------------------------------------------------

  choose(value) {
    if (!this.known.includes(value)) return;
    this.value = value;
    this.fetched = null;
    Object.assign(this, { at: -Infinity, version: 0 });
    this.chosen();
  }

  know(rows) {
    this.firsts = new Map(rows.map((row) => [name(row, this.columns), asked(row[this.columns[0]])]));
    this.known = [...this.firsts.keys()].sort((a, b) => a.localeCompare(b, undefined, { numeric: true }));
  }

  refresh() {
    const isLong = this.known.length > MOST_LISTED, said = this.known.join("\u0000");
    this.list.hidden = isLong;
    this.field.hidden = !isLong;
    this.place.htmlFor = isLong ? "group-field" : "group";
    this.count.textContent = isLong ? ` of ${this.known.length.toLocaleString("en")}` : "";
    if (!isLong && said !== this.said) this.list.replaceChildren(...this.known.map((value) => element("option", { value }, cut(value, 60))));
    this.said = said;
    if (!isLong) this.list.value = this.value;
    else if (document.activeElement !== this.field) this.field.value = this.value;
  }

  offer() {
    const wanted = this.field.value.toLowerCase();
    this.names.replaceChildren(...this.known.filter((value) => value.toLowerCase().includes(wanted)).slice(0, MOST_OFFERED).map((value) => element("option", { value })));
  }

  // All groups, of the first of each ranking.
  async askAll() {
    this.hasAsked = true;
    const { query } = this;
    const { rows } = await this.get(`/queries/${encodeURIComponent(query)}/top?k=1`).catch(() => ({ rows: [] }));
    if (query !== this.query || !rows.length) return;
    this.know(rows);
    this.loaded();
  }

  async fetch(version) {
    const now = performance.now(), early = this.at + AGAIN_MS - now;
    clearTimeout(this.later);
    if (early > 0) return (this.later = setTimeout(this.loaded, early));
    Object.assign(this, { at: now, version });
    const { query, value } = this;
    const { rows } = await this.get(`/queries/${encodeURIComponent(query)}/top?${this.asked.slice(1)}`).catch(() => ({ rows: [] }));
    if (query !== this.query || value !== this.value) return;
    this.fetched = rows;
    this.loaded();
  }
}

function name(row, columns) {
  return columns.map((column) => (typeof row[column] === "string" ? row[column] : text(row[column]))).join(" · ");
}

// A value as the API has it in `group=`.
function asked(value) {
  return value === null ? "None" : value === true ? "True" : value === false ? "False" : String(value);
}
