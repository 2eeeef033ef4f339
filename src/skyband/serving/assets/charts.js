// Ranks over time, and the small live charts.
import { colours, element, fitted, hue, identity, number, prepare, short, text, textsOf, title } from "./format.js";

const MOST = 160; // answers in the bump chart

export class Bump {
  constructor(canvas) {
    this.canvas = canvas;
    this.clear();
  }

  clear() {
    this.answers = [];
    this.colour = new Map();
    this.named = new Map();
    this.next = 0;
  }

  add(rows, columns, groups = [], wall = performance.now()) {
    const ranks = new Map(), shown = rows.slice(0, 12), words = textsOf(shown, groups);
    shown.forEach((row, place) => {
      const key = identity(row, columns);
      ranks.set(key, row.rank ?? place + 1);
      this.named.set(key, title(row, words).title);
      if (!this.colour.has(key)) this.colour.set(key, this.next++);
    });
    const last = this.answers[this.answers.length - 1];
    if (last && same(last.ranks, ranks)) { last.until = wall; return; }
    if (last) last.until = wall;
    this.answers.push({ ranks, wall, until: wall });
    if (this.answers.length > MOST) this.answers.shift();
    const alive = new Set(this.answers.flatMap((answer) => [...answer.ranks.keys()]));
    for (const key of [...this.named.keys()]) if (!alive.has(key)) { this.named.delete(key); this.colour.delete(key); }
  }

  draw() {
    const { context, width, height } = prepare(this.canvas);
    const paint = colours();
    if (this.answers.length < 1) return;
    const last = this.answers[this.answers.length - 1];
    const widest = Math.max(...[...last.ranks.keys()].map((key) => context.measureText(this.named.get(key).slice(0, 60)).width), 0);
    const left = 26, right = Math.min(widest + 18, width * 0.34), top = 10, bottom = 10;
    const most = Math.max(...this.answers.map((answer) => Math.max(...answer.ranks.values(), 1)));
    const first = this.answers[0].wall, now = performance.now(), length = Math.max(now - first, 4000);
    const x = (wall) => left + ((wall - (now - length)) / length) * (width - left - right);
    const y = (rank) => top + ((rank - 1) / Math.max(1, most - 1)) * (height - top - bottom);
    context.textBaseline = "middle";
    context.textAlign = "right";
    context.fillStyle = paint.soft;
    for (let rank = 1; rank <= most; rank++) context.fillText(rank, left - 10, y(rank));
    const keys = new Set(this.answers.flatMap((answer) => [...answer.ranks.keys()]));
    for (const key of keys) {
      const listed = last.ranks.has(key);
      context.strokeStyle = hue(this.colour.get(key));
      context.globalAlpha = listed ? 0.95 : 0.28;
      context.lineWidth = listed ? 2.4 : 1.5;
      context.beginPath();
      let before = null;
      this.answers.forEach((answer, number) => {
        const rank = answer.ranks.get(key);
        if (rank === undefined) { before = null; return; }
        const from = x(answer.wall), to = x(this.answers[number + 1]?.wall ?? now);
        const bend = Math.min(14, (to - from) / 2);
        if (before === null) context.moveTo(from, y(rank));
        else context.bezierCurveTo(from + bend / 2, before, from + bend / 2, y(rank), from + bend, y(rank));
        context.lineTo(to, y(rank));
        before = y(rank);
      });
      context.stroke();
      context.globalAlpha = 1;
    }
    context.textAlign = "left";
    for (const [key, rank] of last.ranks) {
      const at = x(now);
      context.fillStyle = hue(this.colour.get(key));
      context.beginPath();
      context.arc(at, y(rank), 4, 0, 7);
      context.fill();
      context.fillStyle = paint.ink;
      context.fillText(fitted(context, this.named.get(key), right - 14), at + 9, y(rank));
    }
    context.textBaseline = "alphabetic";
  }
}

function same(a, b) {
  if (a.size !== b.size) return false;
  for (const [key, rank] of a) if (b.get(key) !== rank) return false;
  return true;
}

const FIGURES = [
  ["rows_per_second", "rows per second", true],
  ["rows_in", "rows in", false],
  ["rows_held", "rows held", true],
  ["rows_late", "late, dropped", true],
  ["rows_set_aside", "set aside", false],
  ["bytes_held", "bytes of state", true],
  ["watermark", "watermark", false],
  ["batch", "batch", false],
];

export class Figures {
  constructor(place) {
    this.place = place;
    this.clear();
  }

  clear() {
    this.place.replaceChildren();
    this.made = new Map();
  }

  show(figures) {
    for (const [key, name, drawn] of FIGURES) {
      const value = figures[key];
      if (value === null || value === undefined) {
        if (this.made.has(key)) this.made.get(key).box.children[1].textContent = "–";
        continue;
      }
      if (!this.made.has(key)) {
        const box = element("div", { class: "figure" }, element("div", { class: "name" }, name), element("div", { class: "value" }), drawn ? element("canvas", { "aria-hidden": "true" }) : null);
        this.place.append(box);
        this.made.set(key, { box, past: [] });
      }
      const { box, past } = this.made.get(key);
      const isTime = typeof value === "string";
      box.children[1].textContent = isTime ? text(value, null, true) : value >= 1e7 ? short(value) : number(value);
      box.title = isTime ? value : "";
      box.children[1].className = isTime ? "value small" : "value";
      past.push(value);
      if (past.length > 90) past.shift();
      if (drawn) this.line(box.children[2], past);
    }
  }

  line(canvas, values) {
    const past = values.length > 1 ? values : [values[0], values[0]];
    const { context, width, height } = prepare(canvas);
    const paint = colours(), high = Math.max(...past, 1e-9), low = Math.min(...past, 0);
    const x = (place) => (place / Math.max(1, past.length - 1)) * width, y = (value) => height - 2 - ((value - low) / (high - low || 1)) * (height - 4);
    context.beginPath();
    past.forEach((value, place) => (place ? context.lineTo(x(place), y(value)) : context.moveTo(x(0), y(value))));
    context.strokeStyle = paint.held;
    context.lineWidth = 1.6;
    context.stroke();
    context.lineTo(width, height);
    context.lineTo(0, height);
    context.globalAlpha = 0.14;
    context.fillStyle = paint.held;
    context.fill();
    context.globalAlpha = 1;
  }
}
