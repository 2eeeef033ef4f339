// Lanes: what several streams, subscriptions or inputs have, over one time axis. Each lane has a window of its own.
import { clock, colours, cut, fitted, hue, number, prepare, short, span } from "./format.js";

const PAD = { right: 12, top: 8, bottom: 24 }, GAP = 6, TALL = 92, LOW = 34, GLIDE_MS = 450, MOST_GLIDE = 0.05; // of the window

export class Lanes {
  constructor(canvas, ask) {
    this.canvas = canvas;
    this.ask = ask; // called with the id of the dot that is clicked
    this.clear();
    canvas.addEventListener("pointermove", (event) => { this.pointed = this.nearest(event); });
    canvas.addEventListener("pointerleave", () => { this.pointed = null; });
    canvas.addEventListener("click", (event) => { const dot = this.nearest(event); if (dot) this.ask(dot.id); });
    canvas.addEventListener("keydown", (event) => this.key(event));
  }

  clear() {
    this.data = null;
    this.dots = [];
    this.pointed = null;
    this.rate = 0;
  }

  take(data) {
    const wall = performance.now();
    if (this.data && wall > this.at + 100) {
      const rate = (data.now - this.data.now) / (wall - this.at);
      this.rate = this.rate ? 0.7 * this.rate + 0.3 * rate : rate;
    }
    this.data = data;
    this.at = wall;
    const { id, x, y, lane, state, group } = data.dots;
    this.dots = id.map((each, i) => ({ id: each, x: x[i], y: y[i], lane: lane[i], state: state[i], group: group[i] }));
    this.pointed = this.dots.find((dot) => dot.id === this.pointed?.id) ?? null;
    const high = data.lanes.reduce((sum, each) => sum + (each.tall ? TALL : LOW) + GAP, PAD.top + PAD.bottom);
    this.canvas.style.height = `${Math.min(560, Math.max(150, high))}px`;
  }

  // Places in the canvas: lanes from the top, time to the right.
  layout() {
    const { width, height } = this.box, { lanes, size } = this.data;
    const left = width < 520 ? 74 : 118;
    const glided = this.rate * Math.min(GLIDE_MS, performance.now() - this.at), most = MOST_GLIDE * (size ?? Infinity);
    const now = this.data.now + Math.min(glided, most);
    const oldest = Math.min(now, ...this.dots.filter((dot) => !lanes[dot.lane].is_table).map((dot) => dot.x));
    const longest = size ?? now - oldest, from = now - longest * 1.06, to = now + longest * 0.015;
    const share = (height - PAD.top - PAD.bottom - GAP * lanes.length) / lanes.reduce((sum, each) => sum + (each.tall ? TALL : LOW), 0);
    let top = PAD.top;
    const boxes = lanes.map((each) => {
      const box = { ...each, top, high: (each.tall ? TALL : LOW) * share };
      top += box.high + GAP;
      return box;
    });
    const x = (value) => left + ((value - from) / (to - from || 1)) * (width - left - PAD.right);
    return {
      left, now, from, boxes, x,
      place: (dot) => {
        const box = boxes[dot.lane], part = (dot.y - box.low) / (box.most - box.low || 1);
        const at = box.is_table ? left + dot.x * (width - left - PAD.right) : x(this.data.kind === "arrivals" && box.now !== undefined ? dot.x - box.now + now : dot.x);
        return [at, box.top + 6 + (1 - Math.min(1, Math.max(0, part))) * (box.high - 12)];
      },
    };
  }

  draw() {
    const { context, width, height } = prepare(this.canvas);
    this.box = { width, height };
    const paint = colours();
    if (!this.data) {
      context.fillStyle = paint.soft;
      context.textAlign = "center";
      context.fillText("Waiting for rows…", width / 2, height / 2);
      return;
    }
    const layout = (this.last = this.layout());
    for (const box of layout.boxes) this.lane(context, box, layout, paint);
    this.axis(context, layout, paint);
    if (this.data.linked) this.links(context, layout);
    for (const lit of [0, 1, 2]) for (const dot of this.dots) if (dot.state === lit) this.dot(context, dot, layout, paint);
    if (this.pointed) this.label(context, this.pointed, layout, paint);
  }

  lane(context, box, { left, now, x }, paint) {
    const { width } = this.box, end = box.is_table ? width - PAD.right : Math.min(x(now), width - PAD.right);
    const start = box.size === null || box.is_table ? left : Math.max(left, x(now - box.size));
    context.fillStyle = paint.sel;
    context.globalAlpha = 0.22;
    context.fillRect(left, box.top, width - left - PAD.right, box.high);
    context.globalAlpha = 0.6;
    context.fillRect(start, box.top, end - start, box.high);
    context.globalAlpha = 1;
    context.fillStyle = paint.ink;
    context.textAlign = "left";
    context.textBaseline = "middle";
    const lines = box.high > 46 && box.note ? [box.name, ...wrapped(context, box.note, left - 10)] : [box.name];
    lines.slice(0, 4).forEach((line, number) => {
      context.fillStyle = number ? paint.soft : paint.ink;
      context.fillText(fitted(context, line, left - 10), 0, box.top + box.high / 2 + (number - (Math.min(lines.length, 4) - 1) / 2) * 14);
    });
    context.textBaseline = "alphabetic";
  }

  axis(context, layout, paint) {
    const { left, now, x, boxes } = layout, { width, height } = this.box, { kind, size, on } = this.data;
    const say = kind === "time" ? (value) => clock(value, size ?? now - layout.from) : (value) => number(Math.round(value));
    context.fillStyle = paint.soft;
    context.textAlign = "right";
    context.fillText(say(now), width - PAD.right - 2, height - 7);
    context.textAlign = "left";
    if (size !== null) context.fillText(say(now - size), Math.max(left, x(now - size)) + 2, height - 7);
    const apart = new Set(boxes.filter((box) => !box.is_table).map((box) => box.size)).size > 1;
    const what = size === null ? "all rows" : kind === "time" ? `${apart ? "up to " : ""}the last ${span(size)}` : kind === "arrivals" ? `the last ${short(size)} rows` : `the last ${short(size)}, on ${on}`;
    context.textAlign = "center";
    if (width - left > 340) context.fillText(`${what} →`, (left + width) / 2, height - 7);
  }

  links(context, layout) {
    const groups = new Map();
    for (const dot of this.dots) if (dot.group >= 0 && dot.state === 2) groups.set(dot.group, [...(groups.get(dot.group) ?? []), dot]);
    for (const [group, dots] of groups) this.link(context, dots, layout, hue(group), this.pointed?.group === group ? 1 : 0.45);
  }

  link(context, dots, layout, colour, alpha) {
    const newest = new Map();
    for (const dot of dots) if ((newest.get(dot.lane)?.x ?? -Infinity) <= dot.x) newest.set(dot.lane, dot);
    const ends = [...newest.values()].sort((a, b) => a.lane - b.lane).map((dot) => layout.place(dot)).filter(([x]) => x >= layout.left);
    if (ends.length < 2) return;
    context.beginPath();
    context.strokeStyle = colour;
    context.globalAlpha = alpha;
    context.lineWidth = 1.4;
    ends.forEach(([x, y], place) => {
      if (!place) return context.moveTo(x, y);
      const [px, py] = ends[place - 1];
      context.bezierCurveTo(px, (py + y) / 2, x, (py + y) / 2, x, y);
    });
    context.stroke();
    context.globalAlpha = 1;
  }

  dot(context, dot, layout, paint) {
    const [x, y] = layout.place(dot);
    if (x < layout.left - 3) return;
    const grouped = this.data.groups.length > 0 && dot.group >= 0;
    context.beginPath();
    context.fillStyle = dot.state === 2 ? (grouped ? hue(dot.group) : paint.top) : dot.state === 1 ? paint.held : paint.faint;
    context.globalAlpha = dot.state === 2 ? 1 : dot.state === 1 ? 0.75 : 0.4;
    context.arc(x, y, dot.state === 2 ? 3.8 : dot.state === 1 ? 2.2 : 1.6, 0, 7);
    context.fill();
    context.globalAlpha = 1;
  }

  label(context, dot, layout, paint) {
    const same = dot.group >= 0 ? this.dots.filter((each) => each.group === dot.group) : [dot];
    context.strokeStyle = paint.ink;
    context.lineWidth = 1.3;
    for (const each of same.slice(0, 400)) {
      const [x, y] = layout.place(each);
      context.beginPath();
      context.arc(x, y, each === dot ? 7 : 5, 0, 7);
      context.stroke();
    }
    if (!this.data.linked && same.length < 60) this.link(context, same, layout, paint.ink, 0.5);
    const title = this.data.groups[dot.group]?.title, [x, y] = layout.place(dot);
    const words = [this.data.lanes[dot.lane].name, title, ["ruled out", "held", "shown"][dot.state], "why?"].filter(Boolean);
    const said = words.map((word) => cut(word, 60)).join(" · "), wide = context.measureText(said).width + 16;
    const at = Math.min(Math.max(x - wide / 2, 4), this.box.width - wide - 4), above = y > 44 ? y - 34 : y + 14;
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
    for (const dot of this.dots) {
      const [x, y] = this.last.place(dot), away = (x - px) ** 2 + (y - py) ** 2 - 30 * dot.state;
      if (away < close) [best, close] = [dot, away];
    }
    return best;
  }

  key(event) {
    const lit = this.dots.filter((dot) => dot.state === 2).sort((a, b) => a.lane - b.lane || a.x - b.x);
    if (!lit.length) return;
    const place = lit.findIndex((dot) => dot.id === this.pointed?.id);
    if (["ArrowRight", "ArrowLeft"].includes(event.key)) {
      const next = place < 0 ? lit.length - 1 : place + (event.key === "ArrowRight" ? 1 : -1);
      this.pointed = lit[(next + lit.length) % lit.length];
      event.preventDefault();
    } else if (["ArrowUp", "ArrowDown"].includes(event.key)) {
      const from = this.pointed?.lane ?? -1, step = event.key === "ArrowDown" ? 1 : -1;
      const lanes = [...new Set(lit.map((dot) => dot.lane))], at = lanes.indexOf(from);
      this.pointed = lit.filter((dot) => dot.lane === lanes[(at + step + lanes.length) % lanes.length]).at(-1);
      event.preventDefault();
    } else if (event.key === "Enter" && this.pointed) this.ask(this.pointed.id);
  }
}

function wrapped(context, said, most) {
  const lines = [];
  for (const word of said.split(" ")) {
    const longer = lines.length ? `${lines.at(-1)} ${word}` : word;
    if (lines.length && context.measureText(longer).width <= most) lines[lines.length - 1] = longer;
    else lines.push(word);
  }
  return lines;
}
