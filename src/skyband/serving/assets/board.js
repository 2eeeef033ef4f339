// The leaderboard: rows glide to their new places; arrows say how far they moved. Below it stand the rows that left.
import { details, element, identity, number, short, text, title } from "./format.js";

const RECENT_MS = 8000; // how long a move, an entry or a departure is told
const MOST_OUT = 4;

export class Leaderboard {
  constructor(list, ask) {
    this.list = list;
    this.out = element("p", { class: "board-out", "aria-label": "Rows that left" });
    list.after(this.out);
    this.departed = []; // the latest first
    this.ask = ask; // called with the row that is clicked
    this.items = new Map();
    this.ranks = new Map();
    this.moves = new Map(); // by identity: the last move, and when
    this.best = 1;
  }

  clear() {
    this.list.replaceChildren();
    this.items.clear();
    this.ranks.clear();
    this.moves.clear();
    this.departed = [];
    this.out.replaceChildren();
  }

  show(rows, columns) {
    const before = new Map([...this.items].map(([key, item]) => [key, item.offsetTop]));
    const first = this.ranks.size === 0;
    const seen = new Map();
    const scores = rows.map((row) => measure(row));
    const most = Math.max(...scores.filter(Number.isFinite).map(Math.abs), 1e-300);
    const now = performance.now();
    const entered = [], left = [];
    rows.forEach((row, place) => {
      let key = identity(row, columns);
      while (seen.has(key)) key += "'";
      const rank = row.rank ?? place + 1;
      const was = this.ranks.get(key);
      if (!first && was === undefined) { this.moves.set(key, { by: "new", at: now }); entered.push({ row, rank }); }
      else if (was !== undefined && was !== rank) this.moves.set(key, { by: was - rank, at: now });
      seen.set(key, rank);
      const item = this.items.get(key) ?? this.make(key);
      this.fill(item, row, rank, this.moves.get(key), now, Math.abs(scores[place]) / most);
      if (!first && was === undefined) flash(item);
      if (this.list.children[place] !== item) this.list.insertBefore(item, this.list.children[place] ?? null);
      this.items.set(key, item);
    });
    for (const [key, item] of [...this.items]) {
      if (seen.has(key)) continue;
      left.push({ key, row: item.row, rank: this.ranks.get(key) });
      item.remove();
      this.items.delete(key);
      this.moves.delete(key);
    }
    this.ranks = seen;
    this.tellDepartures(left, now);
    this.glide(before);
    return { entered, left };
  }

  make() {
    const item = element("li", {},
      element("button", { type: "button", onclick: () => this.ask(item.row) },
        element("span", { class: "rank" }), element("span", { class: "move" }),
        element("span", { class: "who" }, element("b"), element("span")), element("span", { class: "score" })),
      element("i", { class: "bar" }));
    return item;
  }

  fill(item, row, rank, move, now, share) {
    item.row = row;
    const [button, bar] = item.children;
    const [place, moved, who, score] = button.children;
    place.textContent = rank;
    mark(moved, move, now);
    const named = title(row);
    who.children[0].textContent = named.title;
    who.children[1].textContent = details(row, named.rest);
    score.textContent = "score" in row ? number(row.score) : "";
    bar.style.width = `${Math.max(1, 100 * (Number.isFinite(share) ? share : 0))}%`;
    button.setAttribute("aria-label", `Rank ${rank}: ${named.title}${"score" in row ? `, score ${number(row.score)}` : ""}. Why?`);
  }

  // Moves and departures are told for a while, also if no further answer comes.
  settle() {
    const now = performance.now();
    for (const [key, item] of this.items) mark(item.children[0].children[1], this.moves.get(key), now);
    this.tellDepartures([], now);
  }

  tellDepartures(left, now) {
    this.departed = [...left.map((each) => ({ ...each, at: now })), ...this.departed].filter((each) => now - each.at < RECENT_MS && !this.ranks.has(each.key)).slice(0, MOST_OUT);
    this.out.replaceChildren(...this.departed.map(({ row, rank }) => element("span", {}, element("b", {}, `▼ ${rank}`), ` ${title(row).title}${"score" in row ? ` ${number(row.score)}` : ""}`)));
  }

  glide(before) {
    if (matchMedia("(prefers-reduced-motion: reduce)").matches) return;
    for (const [key, item] of this.items) {
      const from = before.get(key);
      if (from === undefined || from === item.offsetTop) continue;
      item.animate([{ transform: `translateY(${from - item.offsetTop}px)` }, { transform: "none" }], { duration: 300, easing: "cubic-bezier(.2,.7,.2,1)" });
    }
  }
}

function mark(moved, move, now) {
  const recent = move && now - move.at < RECENT_MS ? move.by : null;
  moved.textContent = recent === null ? "·" : recent === "new" ? "new" : recent > 0 ? `▲ ${recent}` : `▼ ${-recent}`;
  moved.className = `move ${recent === null ? "" : recent === "new" ? "new" : recent > 0 ? "up" : "down"}`;
}

function flash(item) {
  if (matchMedia("(prefers-reduced-motion: reduce)").matches) return;
  item.animate([{ backgroundColor: "color-mix(in srgb, var(--held) 34%, var(--card))" }, { backgroundColor: "var(--card)" }], { duration: 1400, easing: "ease-out" });
}

function measure(row) {
  if (typeof row.score === "number") return row.score;
  const numbers = Object.entries(row).filter(([name, value]) => typeof value === "number" && !["rank", "window_end", "window_start"].includes(name));
  return numbers.length ? numbers[numbers.length - 1][1] : NaN;
}

// The same answer as a table that can be sorted by any column.
export class Grid {
  constructor(place) {
    this.place = place;
    this.by = null;
    this.up = true;
    this.rows = [];
  }

  show(rows) {
    this.rows = rows;
    if (this.place.hidden) return;
    const names = rows.length ? Object.keys(rows[0]) : [];
    const sorted = this.by && names.includes(this.by) ? [...rows].sort((a, b) => compare(a[this.by], b[this.by]) * (this.up ? 1 : -1)) : rows;
    const focused = document.activeElement?.dataset?.column;
    const head = element("tr", {}, ...names.map((name) => element("th", { class: numeric(rows, name), "aria-sort": this.by === name ? (this.up ? "ascending" : "descending") : "none" },
      element("button", { type: "button", "data-column": name, onclick: () => this.sort(name) }, `${name}${this.by === name ? (this.up ? " ↑" : " ↓") : ""}`))));
    const body = sorted.slice(0, 500).map((row) => element("tr", {}, ...names.map((name) => element("td", { class: numeric(rows, name) }, text(row[name])))));
    this.place.replaceChildren(element("table", {}, element("thead", {}, head), element("tbody", {}, ...body)));
    if (focused) [...this.place.querySelectorAll("button")].find((button) => button.dataset.column === focused)?.focus();
  }

  sort(name) {
    this.up = this.by === name ? !this.up : true;
    this.by = name;
    this.show(this.rows);
  }
}

function numeric(rows, name) {
  return typeof rows[0]?.[name] === "number" ? "n" : "";
}

function compare(a, b) {
  if (typeof a === "number" && typeof b === "number") return a - b;
  return String(a ?? "").localeCompare(String(b ?? ""));
}

export class ChangeLog {
  constructor(list) {
    this.list = list;
  }

  clear() {
    this.list.replaceChildren();
  }

  add({ entered, left }) {
    const now = new Date().toTimeString().slice(0, 8);
    const line = (kind, sign, { row, rank }) => element("li", {}, element("time", {}, now), element("span", { class: kind }, `${sign} ${rank ?? ""}`),
      element("span", {}, title(row).title), element("span", { class: "sub" }, "score" in row ? short(row.score) : ""));
    this.list.prepend(...entered.map((each) => line("in", "▲ enters", each)), ...left.map((each) => line("out", "▼ leaves", each)));
    while (this.list.children.length > 200) this.list.lastChild.remove();
  }
}
