// The skyband as a picture: rows as dots in time and score, held ones lit, the window sliding over them. A pair is a line
// from its older row, with which it leaves, to its younger one.
import { clock, colours, number, prepare, short, span } from "./format.js";

const LEFT = 54, RIGHT = 14, TOP = 12, BOTTOM = 24, FADE_MS = 800, SLIDE_MS = 450;

export class Picture {
  constructor(canvas, ask) {
    this.canvas = canvas;
    this.ask = ask; // called with the arrival of the row that is clicked
    this.dots = new Map();
    this.data = null;
    this.pointed = null;
    canvas.addEventListener("pointermove", (event) => { this.pointed = this.nearest(event); });
    canvas.addEventListener("pointerleave", () => { this.pointed = null; });
    canvas.addEventListener("click", (event) => { const dot = this.nearest(event); if (dot) this.ask(dot.id); });
    canvas.addEventListener("keydown", (event) => this.key(event));
  }

  clear() {
    this.dots.clear();
    this.data = null;
    this.scale = null;
    this.pointed = null;
    this.rate = 0;
  }

  take(data) {
    const wall = performance.now();
    if (this.data && wall > this.at + 100) { // of two looks at almost the same moment nothing can be told
      const rate = (data.now - this.data.now) / (wall - this.at);
      this.rate = this.rate ? 0.7 * this.rate + 0.3 * rate : rate;
    }
    this.shownNow = Math.max(this.shown() ?? data.now, data.now - 2 * (data.now - (this.data?.now ?? data.now)));
    this.data = data;
    this.at = wall;
    const kth = data.kth.length ? data.kth[data.kth.length - 1][1] : null;
    const beats = (y) => kth !== null && (data.ascending ? y <= kth : y >= kth);
    const { id, x, y, held, to, shown } = data.dots;
    const present = new Set(id);
    for (let i = 0; i < id.length; i++) {
      const known = this.dots.get(id[i]);
      const top = shown ? shown[i] === 1 : held[i] && beats(y[i]) && x[i] > data.now - (data.size ?? Infinity);
      if (!known) this.dots.set(id[i], { id: id[i], x: x[i], y: y[i], to: to?.[i], held: held[i], since: held[i] ? -1e9 : wall - FADE_MS, born: wall, top });
      else {
        if (known.held && !held[i]) known.since = wall;
        known.held = held[i];
        known.top = top;
      }
    }
    for (const [key, dot] of this.dots) {
      if (present.has(key)) continue;
      if (dot.held) dot.since = wall; // it was held a moment ago: let it fade
      dot.held = 0;
      if (dot.since < wall - FADE_MS) this.dots.delete(key);
    }
  }

  // Between two pictures the window slides on at the pace it had, but not as if rows came that have not.
  shown() {
    if (!this.data) return null;
    const slid = this.rate * Math.min(SLIDE_MS, performance.now() - this.at);
    return this.data.now + Math.min(slid, 0.05 * (this.data.size ?? Infinity)) || this.data.now;
  }

  axes(now) {
    const { size, ascending } = this.data;
    const ys = [...this.dots.values()].map((dot) => dot.y);
    let low = Math.min(...ys), high = Math.max(...ys);
    if (!Number.isFinite(low)) [low, high] = [0, 1];
    // Of pairs, those that are held say where it gets tight: of all pairs they are a few of the best.
    const pairs = [...this.dots.values()].filter((dot) => dot.to !== undefined && dot.held).map((dot) => dot.y);
    const sorted = (pairs.length ? pairs : ys).sort((a, b) => a - b);
    const log = low > 0 && high / (sorted[Math.floor(sorted.length / 2)] || 1) > 20;
    if (log) low = Math.max(low, sorted[Math.floor(sorted.length * 0.02)] || low);
    if (low === high) { low -= 1; high += 1; }
    const f = log ? (y) => Math.log10(Math.max(y, low)) : (y) => y;
    const pad = (f(high) - f(low)) * 0.06;
    const target = [f(low) - pad, f(high) + pad];
    // The scale moves to where it should be little by little, so that dots do not jump.
    if (!this.scale || this.scale.log !== log) this.scale = { log, low: target[0], high: target[1] };
    this.scale.low += (target[0] - this.scale.low) * 0.08;
    this.scale.high += (target[1] - this.scale.high) * 0.08;
    const oldest = Math.min(...[...this.dots.values()].map((dot) => dot.x), now);
    const from = size === null ? oldest : now - size * 1.08, to = now + (now - from) * 0.015;
    const { width, height } = this.box;
    return {
      from, to, log, ascending,
      x: (value) => LEFT + ((value - from) / (to - from || 1)) * (width - LEFT - RIGHT),
      y: (value) => {
        const part = (f(value) - this.scale.low) / (this.scale.high - this.scale.low || 1);
        return TOP + (ascending ? part : 1 - part) * (height - TOP - BOTTOM);
      },
    };
  }

  draw() {
    const { context, width, height } = prepare(this.canvas);
    this.box = { width, height };
    const paint = colours();
    if (!this.data || !this.dots.size) {
      context.fillStyle = paint.soft;
      context.textAlign = "center";
      context.fillText("Waiting for rows…", width / 2, height / 2);
      return;
    }
    const now = this.shown(), axes = (this.last = this.axes(now)), wall = performance.now();
    this.frame(context, axes, now, paint);
    for (const dot of this.dots.values()) if (!dot.held) this.dot(context, dot, axes, now, wall, paint);
    for (const dot of this.dots.values()) if (dot.held) this.dot(context, dot, axes, now, wall, paint);
    this.stairs(context, axes, now, paint);
    if (this.pointed && this.dots.has(this.pointed.id)) this.label(context, this.pointed, axes, paint);
  }

  frame(context, axes, now, paint) {
    const { width, height } = this.box, { size } = this.data;
    const start = size === null ? LEFT : Math.max(LEFT, axes.x(now - size)), end = axes.x(now);
    context.fillStyle = paint.sel;
    context.globalAlpha = 0.55;
    context.fillRect(start, TOP, end - start, height - TOP - BOTTOM);
    context.globalAlpha = 1;
    context.strokeStyle = paint.faint;
    context.lineWidth = 1;
    context.setLineDash([3, 4]);
    for (const x of size === null ? [end] : [start, end]) {
      context.beginPath();
      context.moveTo(x, TOP);
      context.lineTo(x, height - BOTTOM);
      context.stroke();
    }
    context.setLineDash([]);
    context.fillStyle = paint.soft;
    context.textAlign = "right";
    context.textBaseline = "middle";
    for (const value of ticks(this.scale, axes.log)) context.fillText(short(value || 0), LEFT - 8, axes.y(value));
    context.textBaseline = "alphabetic";
    const say = this.data.kind === "time" ? (value) => clock(value, size ?? now - axes.from) : (value) => number(Math.round(value));
    context.textAlign = "left";
    if (size !== null) context.fillText(say(now - size), start + 2, height - 8);
    context.textAlign = "right";
    context.fillText(say(now), end - 2, height - 8);
    context.textAlign = "center";
    const what = this.data.kind === "time" ? `the last ${span(size ?? now - axes.from)}` : size === null ? "all rows" : this.data.kind === "arrivals" ? `the last ${number(size)} rows` : `the last ${number(size)}, on ${this.data.on}`;
    if (end - start > 220) context.fillText(`${what} →`, (start + end) / 2, height - 8);
  }

  dot(context, dot, axes, now, wall, paint) {
    const x = axes.x(dot.x), y = axes.y(dot.y);
    if (x < LEFT - 4) return;
    const left = this.data.size !== null && dot.x <= now - this.data.size;
    const lit = dot.held && !left;
    const fade = lit ? 1 : Math.max(0, 1 - (wall - dot.since) / FADE_MS);
    if (dot.to !== undefined) this.span(context, dot, axes, lit, paint);
    context.beginPath();
    context.fillStyle = lit || fade > 0.02 ? (dot.top && lit ? paint.top : paint.held) : paint.faint;
    context.globalAlpha = lit ? 1 : left ? 0.14 + 0.4 * fade : 0.42 + 0.5 * fade;
    const grown = Math.min(1, (wall - dot.born) / 250);
    context.arc(x, y, (lit ? (dot.top ? 4.6 : 3.1) : 1.7 + 1.3 * fade) * grown, 0, 7);
    context.fill();
    context.globalAlpha = 1;
  }

  // To the younger row of a pair.
  span(context, dot, axes, lit, paint) {
    context.beginPath();
    context.strokeStyle = lit ? (dot.top ? paint.top : paint.held) : paint.faint;
    context.globalAlpha = lit ? (dot.top ? 0.85 : 0.4) : 0.12;
    context.lineWidth = dot.top && lit ? 1.8 : 1;
    context.moveTo(Math.max(LEFT, axes.x(dot.x)), axes.y(dot.y));
    context.lineTo(axes.x(dot.to), axes.y(dot.y));
    context.stroke();
    context.globalAlpha = 1;
  }

  stairs(context, axes, now, paint) {
    const before = this.data.kth.findLastIndex(([at]) => at < axes.from);
    const steps = this.data.kth.slice(Math.max(0, before));
    if (!steps.length) return;
    context.beginPath();
    context.strokeStyle = paint.kth;
    context.lineWidth = 2;
    let previous = null;
    for (const [at, score] of steps) {
      const x = Math.max(LEFT, axes.x(Math.min(at, now))), y = axes.y(score);
      if (previous === null) context.moveTo(x, y);
      else { context.lineTo(x, previous); context.lineTo(x, y); }
      previous = y;
    }
    context.lineTo(axes.x(now), previous);
    context.stroke();
  }

  label(context, dot, axes, paint) {
    const x = axes.x(dot.x), y = axes.y(dot.y);
    context.strokeStyle = paint.ink;
    context.lineWidth = 1.5;
    context.beginPath();
    context.arc(x, y, 7, 0, 7);
    context.stroke();
    const said = `${number(dot.y)} · ${dot.held ? (dot.top ? "shown" : "held") : "ruled out"} · why?`;
    const wide = context.measureText(said).width + 16, at = Math.min(Math.max(x - wide / 2, 4), this.box.width - wide - 4), above = y > 44 ? y - 34 : y + 14;
    context.fillStyle = paint.card;
    context.strokeStyle = paint.line;
    context.beginPath();
    context.roundRect(at, above, wide, 22, 6);
    context.fill();
    context.stroke();
    context.fillStyle = paint.ink;
    context.textAlign = "left";
    context.fillText(said, at + 8, above + 15);
  }

  nearest(event) {
    if (!this.last) return null;
    const box = this.canvas.getBoundingClientRect(), px = event.clientX - box.left, py = event.clientY - box.top;
    let best = null, close = 18 * 18;
    for (const dot of this.dots.values()) {
      const away = (this.last.x(dot.x) - px) ** 2 + (this.last.y(dot.y) - py) ** 2 - (dot.held ? 60 : 0);
      if (away < close) [best, close] = [dot, away];
    }
    return best;
  }

  key(event) {
    const held = [...this.dots.values()].filter((dot) => dot.held).sort((a, b) => a.x - b.x || a.id - b.id);
    if (!held.length) return;
    const place = held.findIndex((dot) => dot.id === this.pointed?.id);
    if (event.key === "ArrowRight" || event.key === "ArrowLeft") {
      const next = place < 0 ? held.length - 1 : place + (event.key === "ArrowRight" ? 1 : -1);
      this.pointed = held[(next + held.length) % held.length];
      event.preventDefault();
    } else if (event.key === "Enter" && this.pointed) this.ask(this.pointed.id);
  }
}

function ticks(scale, log) {
  if (log) {
    const found = [];
    for (let power = Math.ceil(scale.low); power <= scale.high; power++) found.push(10 ** power);
    return found.length > 1 ? found : [10 ** scale.low, 10 ** ((scale.low + scale.high) / 2), 10 ** scale.high];
  }
  const step = 10 ** Math.floor(Math.log10((scale.high - scale.low) / 3));
  const wide = [1, 2, 5, 10].map((each) => each * step).find((each) => (scale.high - scale.low) / each <= 6) ?? step;
  const found = [];
  for (let value = Math.ceil(scale.low / wide) * wide; value <= scale.high; value += wide) found.push(value);
  return found;
}
