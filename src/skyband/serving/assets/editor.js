// The editor: a text area over a painted copy of its text, with completion, and mistakes at their place.
import { element } from "./format.js";

const TOKEN = /(--[^\n]*)|('(?:[^']|'')*'?)|(\b\d+(?:\.\d+)?(?:[eE][+-]?\d+)?\b)|([A-Za-z_][A-Za-z0-9_]*)|(\s+)|([^\sA-Za-z0-9_'])/g;

export class Editor {
  constructor(area, paint, list, { check, run }) {
    Object.assign(this, { area, list, paintBox: paint, check, run, tables: [], words: [], functions: [], mark: null, offered: [], chosen: 0, most: 8000 });
    area.addEventListener("input", () => { this.mark = null; this.paint(); this.offer(); clearTimeout(this.waiting); this.waiting = setTimeout(() => this.check(area.value), 250); });
    area.addEventListener("keydown", (event) => this.key(event));
    area.addEventListener("blur", () => setTimeout(() => this.close(), 150));
    area.addEventListener("scroll", () => { paint.scrollTop = area.scrollTop; });
  }

  // What there is to write about; a person may have begun before it was known.
  know({ tables, words = [], functions = [], most = 8000 }) {
    Object.assign(this, { tables, words, functions, most });
    this.paint();
    if (document.activeElement === this.area) this.offer();
  }

  set(text) {
    this.area.value = text;
    this.mark = null;
    this.paint();
    this.check(text);
  }

  // What was typed last need not be checked any more.
  settle() {
    clearTimeout(this.waiting);
    this.close();
  }

  // A mistake: `place` counts characters from the start.
  point(place) {
    this.mark = place;
    this.paint();
  }

  paint() {
    const text = this.area.value, parts = [];
    if (text.length > this.most) return this.paintBox.replaceChildren(`${text}\n`); // too long to run, and to colour
    const tables = new Set(this.tables.map((table) => table.name.toLowerCase())), columns = new Set(this.tables.flatMap((table) => table.columns.map((column) => column.name.toLowerCase())));
    let marked = false;
    for (const found of text.matchAll(TOKEN)) {
      const [all, note, string, number, word] = found;
      const upper = word?.toUpperCase();
      let kind = note ? "t-note" : string ? "t-str" : number ? "t-num" : word ? (this.words.includes(upper) ? "t-word" : this.functions.includes(upper) ? "t-fn" : tables.has(word.toLowerCase()) ? "t-table" : columns.has(word.toLowerCase()) ? "t-col" : "") : "";
      if (this.mark !== null && !marked && found.index + all.length > this.mark && all.trim()) { kind += " t-bad"; marked = true; }
      parts.push(element("span", { class: kind }, all));
    }
    if (this.mark !== null && !marked) parts.push(element("span", { class: "t-bad" }, " "));
    parts.push("\n");
    this.paintBox.replaceChildren(...parts);
    this.paintBox.scrollTop = this.area.scrollTop;
  }

  offer() {
    const start = this.area.value.slice(0, this.area.selectionStart);
    const word = /[A-Za-z_][A-Za-z0-9_]*$/.exec(start)?.[0] ?? "";
    if (word.length < 2) return this.close();
    const lower = word.toLowerCase();
    const known = [
      ...this.tables.flatMap((table) => [[table.name, "table"], ...table.columns.map((column) => [column.name, column.type])]),
      ...this.words.map((name) => [name, ""]), ...this.functions.map((name) => [`${name}(`, "function"]), // words are fewer
    ];
    const unique = [...new Map(known.map((each) => [each[0], each])).values()];
    this.offered = unique.filter(([name]) => name.toLowerCase().startsWith(lower) && name.toLowerCase() !== lower).slice(0, 8);
    this.word = word;
    this.chosen = 0;
    if (!this.offered.length) return this.close();
    this.list.hidden = false;
    const lines = start.split("\n");
    this.list.style.left = `${Math.min(14 + (lines[lines.length - 1].length - word.length) * 8.4, this.area.clientWidth - 190)}px`;
    this.list.style.top = `${14 + lines.length * 21.7 - this.area.scrollTop}px`;
    this.show();
  }

  show() {
    this.list.replaceChildren(...this.offered.map(([name, kind], place) => element("li", { role: "option", "aria-selected": place === this.chosen ? "true" : "false", onmousedown: (event) => { event.preventDefault(); this.chosen = place; this.accept(); } }, name, element("span", {}, kind))));
  }

  close() {
    this.list.hidden = true;
    this.offered = [];
  }

  accept() {
    const [name] = this.offered[this.chosen];
    const end = this.area.selectionStart;
    this.area.setRangeText(name, end - this.word.length, end, "end");
    this.close();
    this.area.dispatchEvent(new Event("input"));
    this.close();
  }

  key(event) {
    if ((event.ctrlKey || event.metaKey) && event.key === "Enter") { event.preventDefault(); this.close(); this.run(); return; }
    if (!this.offered.length) return;
    if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      event.preventDefault();
      this.chosen = (this.chosen + (event.key === "ArrowDown" ? 1 : -1) + this.offered.length) % this.offered.length;
      this.show();
    } else if (event.key === "Tab" || event.key === "Enter") { event.preventDefault(); this.accept(); }
    else if (event.key === "Escape") { event.preventDefault(); this.close(); }
  }
}
