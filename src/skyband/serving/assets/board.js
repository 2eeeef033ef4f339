// The leaderboard: rows glide to their new places; arrows say how far they moved. Below it stand the rows that left.
import { cut, details, element, identity, number, sharedDay, short, text, textsOf, title } from "./format.js";

const RECENT_MS = 8000; // how long a move, an entry or a departure is told
const MOST_OUT = 4;

export class Leaderboard {
  constructor(list, ask) {
    this.list = list;
    this.out = element("p", { class: "board-out", "aria-label": "Rows that left" });
    list.after(this.out);
    this.departed = []; // the latest first
    this.ask = ask; // called with the row that is clicked; null: nobody can say why
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

  show(rows, columns, groups = []) {
    const before = new Map([...this.items].map(([key, item]) => [key, item.offsetTop]));
    const first = this.ranks.size === 0;
    const seen = new Map(), focused = this.list.contains(document.activeElement) ? document.activeElement : null;
    this.day = sharedDay(rows);
    this.words = textsOf(rows, groups);
    const scores = rows.map((row) => measure(row));
    const most = Math.max(...scores.filter(Number.isFinite).map(Math.abs), 1e-300);
    const now = performance.now();
    const entered = [], left = [];
    rows.forEach((row, place) => {
      let key = identity(row, columns);
      while (seen.has(key)) key += "'";
      const rank = row.rank ?? place + 1;
      const was = this.ranks.get(key);
      const said = title(row, this.words).title;
      if (!first && was === undefined) { this.moves.set(key, { by: "new", at: now }); entered.push({ row, rank, said }); }
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
      left.push({ key, row: item.row, rank: this.ranks.get(key), said: item.said });
      item.remove();
      this.items.delete(key);
      this.moves.delete(key);
    }
    this.ranks = seen;
    if (focused?.isConnected && document.activeElement !== focused) focused.focus({ preventScroll: true }); // a row that moves loses it
    this.tellDepartures(left, now);
    this.glide(before);
    return { entered, left };
  }

  make() {
    const item = element("li", {},
      element("button", { type: "button", onclick: () => this.ask?.(item.row) },
        element("span", { class: "rank" }), element("span", { class: "move" }),
        element("span", { class: "who" }, element("b"), element("span")), element("span", { class: "score" })),
      element("i", { class: "bar" }));
    return item;
  }

  fill(item, row, rank, move, now, share) {
    const named = title(row, this.words);
    item.row = row;
    item.said = named.title;
    const [button, bar] = item.children;
    const [place, moved, who, score] = button.children;
    place.textContent = rank;
    mark(moved, move, now);
    who.children[0].textContent = named.title;
    who.children[1].textContent = details(row, named.rest, this.day);
    score.textContent = "score" in row ? number(row.score) : "";
    bar.style.width = `${Math.max(1, 100 * (Number.isFinite(share) ? share : 0))}%`;
    button.disabled = this.ask === null;
    button.setAttribute("aria-label", `Rank ${rank}: ${named.title}${"score" in row ? `, score ${number(row.score)}` : ""}.${this.ask === null ? "" : " Why?"}`);
  }

  // Moves and departures are told for a while, also if no further answer comes.
  settle() {
    const now = performance.now();
    for (const [key, item] of this.items) mark(item.children[0].children[1], this.moves.get(key), now);
    this.tellDepartures([], now);
  }

  tellDepartures(left, now) {
    this.departed = [...left.map((each) => ({ ...each, at: now })), ...this.departed].filter((each) => now - each.at < RECENT_MS && !this.ranks.has(each.key)).slice(0, MOST_OUT);
    this.out.replaceChildren(...this.departed.map(({ row, rank, said }) => element("span", {}, element("b", {}, `▼ ${rank}`), ` ${said}${"score" in row ? ` ${number(row.score)}` : ""}`)));
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
  if (row.score === "+INF" || row.score === "-INF") return 1e308;
  if (row.score !== undefined) return row.score === null ? NaN : Number(row.score);
  const numbers = Object.entries(row).filter(([name, value]) => typeof value === "number" && !["rank", "window_end", "window_start"].includes(name));
  return numbers.length ? numbers[numbers.length - 1][1] : NaN;
}

const WINDOW = ["window_start", "window_end"]; // all rows have the same: they stand last
const MOST_LINES = 500, MOST_CELLS = 12_000; // of a grid: more of them nobody reads, and a browser takes long for them

// The same answer as a table that can be sorted by any column.
export class Grid {
  constructor(place) {
    this.place = place;
    this.by = null;
    this.up = true;
    this.rows = [];
    this.names = [];
    this.body = null;
  }

  // Cells stay what they are and get a new text: one can mark and copy them, and click on a head, while answers come.
  show(rows) {
    this.rows = rows;
    if (this.place.hidden) return;
    const names = rows.length ? Object.keys(rows[0]).sort((a, b) => WINDOW.includes(a) - WINDOW.includes(b)) : [];
    const sorted = this.by && names.includes(this.by) ? [...rows].sort((a, b) => compare(a[this.by], b[this.by], this.up)) : rows;
    const shown = sorted.slice(0, Math.max(20, Math.min(MOST_LINES, Math.floor(MOST_CELLS / Math.max(1, names.length)))));
    if (this.names.join("\u0000") !== names.join("\u0000") || !this.body) this.build(names);
    names.forEach((name, place) => {
      const head = this.head[place], sort = this.by === name ? (this.up ? "ascending" : "descending") : "none";
      head.setAttribute("aria-sort", sort);
      head.className = numeric(rows, name);
      head.firstChild.textContent = `${cut(name, 60)}${sort === "none" ? "" : this.up ? " ↑" : " ↓"}`;
    });
    while (this.lines.length > shown.length) this.lines.pop().line.remove();
    while (this.lines.length < shown.length) this.addLine(names);
    shown.forEach((row, number) => {
      const { cells, said } = this.lines[number];
      names.forEach((name, place) => {
        const kind = numeric(rows, name), now = text(row[name]);
        if (said[place] === now) return;
        said[place] = now;
        cells[place].textContent = cut(now, 160);
        cells[place].title = now.length > 40 ? now : "";
        if (cells[place].className !== kind) cells[place].className = kind;
      });
    });
    this.note.textContent = shown.length < rows.length ? `The grid shows ${number(shown.length)} of ${number(rows.length)} rows.` : "";
  }

  build(names) {
    this.names = names;
    this.lines = [];
    this.head = names.map((name) => element("th", {}, element("button", { type: "button", "data-column": name, title: name, onclick: () => this.sort(name) })));
    this.body = element("tbody");
    this.note = element("p", { class: "note" });
    this.place.replaceChildren(element("table", {}, element("thead", {}, element("tr", {}, ...this.head)), this.body), this.note);
  }

  addLine(names) {
    const cells = names.map(() => element("td")), line = element("tr", {}, ...cells);
    this.body.append(line);
    this.lines.push({ line, cells, said: [] });
  }

  sort(name) {
    this.up = this.by === name ? !this.up : true;
    this.by = name;
    this.show(this.rows);
  }
}

// A column of numbers stands to the right, also where a value is null or NaN.
function numeric(rows, name) {
  return rows.slice(0, 50).some((row) => typeof row[name] === "number" || typeof row[name] === "bigint") ? "n" : "";
}

// Nulls and NaN stand at the end, whatever the direction.
function compare(a, b, up) {
  const [first, second] = [ordered(a), ordered(b)], none = Number(first === null) - Number(second === null);
  if (none || first === null) return none;
  const isText = typeof first === "string" || typeof second === "string";
  const order = isText ? String(first).localeCompare(String(second), undefined, { numeric: true }) : Number(first > second) - Number(first < second);
  return up ? order : -order;
}

function ordered(value) {
  if (value === null || value === undefined || value === "NaN" || Number.isNaN(value)) return null;
  if (value === "+INF" || value === "-INF") return value === "+INF" ? Infinity : -Infinity;
  return typeof value === "object" ? JSON.stringify(value) : value;
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
    const line = (kind, sign, { row, rank, said }) => element("li", {}, element("time", {}, now), element("span", { class: kind }, `${sign} ${rank ?? ""}`),
      element("span", {}, said), element("span", { class: "sub" }, "score" in row ? short(row.score) : ""));
    this.list.prepend(...entered.map((each) => line("in", "▲ enters", each)), ...left.map((each) => line("out", "▼ leaves", each)));
    while (this.list.children.length > 200) this.list.lastChild.remove();
  }
}
