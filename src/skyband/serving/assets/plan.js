// A plan as a graph: what is read, the window, what runs, what comes out; and what else was considered, with its cost.
import { element, number, short } from "./format.js";

const SVG = "http://www.w3.org/2000/svg";

export function showPlan(place, plan) {
  place.hidden = false;
  place.replaceChildren(element("h2", {}, plan.title), element("div", { class: "plan-scroll" }, graph(plan.nodes)), considered(plan));
}

function graph(nodes) {
  const width = 960, wide = 210, gap = (width - nodes.length * wide) / (nodes.length - 1);
  const lines = nodes.map((node) => wrap(node.said, 29, 7)), high = 48 + 16 * Math.max(4, ...lines.map((each) => each.length));
  const svg = make("svg", { viewBox: `0 0 ${width} ${high + 16}`, role: "img", "aria-label": nodes.map((node) => `${node.head}: ${node.said}`).join(" → ") });
  const style = getComputedStyle(document.documentElement), colour = (name) => style.getPropertyValue(`--${name}`).trim();
  nodes.forEach((node, place) => {
    const x = place * (wide + gap);
    if (place) {
      svg.append(make("path", { d: `M${x - gap + 4} ${high / 2 + 8} H${x - 8}`, stroke: colour("faint"), "stroke-width": 1.6, fill: "none" }),
        make("path", { d: `M${x - 11} ${high / 2 + 3} l6 5 l-6 5`, stroke: colour("faint"), "stroke-width": 1.6, fill: "none" }));
    }
    svg.append(make("rect", { x: x + 1, y: 8, width: wide - 2, height: high, rx: 10, fill: colour(node.strong ? "sel" : "card"), stroke: colour(node.strong ? "held" : "line"), "stroke-width": node.strong ? 1.8 : 1 }));
    svg.append(label(node.head, x + 14, 32, { fill: colour(node.strong ? "held" : "ink"), "font-weight": 650, "font-size": 14 }));
    lines[place].forEach((line, number) => svg.append(label(line, x + 14, 52 + number * 16, { fill: colour("soft"), "font-size": 12 })));
  });
  return svg;
}

function considered(plan) {
  const usable = plan.considered.filter((each) => !each.refused && typeof each.ns === "number").sort((a, b) => a.ns - b.ns);
  const others = plan.considered.filter((each) => each.refused);
  if (!usable.length && !others.length) return element("p", { class: "sub" }, "Nothing else was considered.");
  const most = Math.log(Math.max(...usable.map((each) => each.ns), 2)), least = Math.log(Math.min(...usable.map((each) => each.ns), 1)) - 0.7;
  const lines = [...usable.slice(0, 8), ...others.slice(0, 6)].flatMap((each) => {
    const fill = element("i", { class: each.chosen ? "chosen" : "" });
    fill.style.width = each.refused ? "0%" : `${(100 * (Math.log(each.ns) - least)) / (most - least)}%`;
    const says = each.refused ? `cannot: ${each.refused}` : `${cost(each.ns)} a row${typeof each.rows === "number" ? `, holds about ${short(Math.round(each.rows))} rows` : ""}`;
    return [element("span", { class: `name ${each.chosen ? "chosen" : ""}` }, each.algorithm), element("span", { class: "cost", "aria-hidden": "true" }, fill), element("span", { class: "says" }, says)];
  });
  return element("div", { class: "considered" }, ...lines);
}

function cost(ns) {
  return ns < 1000 ? `${number(ns, 1)} ns` : `${number(ns / 1000, 1)} µs`;
}

function wrap(said, wide, most) {
  const lines = [];
  for (const word of String(said ?? "").split(/\s+/)) {
    if (lines.length && (lines[lines.length - 1] + " " + word).length <= wide) lines[lines.length - 1] += ` ${word}`;
    else lines.push(word);
  }
  if (lines.length > most) { lines.length = most; lines[most - 1] = `${lines[most - 1].slice(0, wide - 2)} …`; }
  return lines;
}

function make(tag, properties) {
  const made = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(properties)) made.setAttribute(name, value);
  return made;
}

function label(said, x, y, properties) {
  const made = make("text", { x, y, "font-family": "system-ui, sans-serif", ...properties });
  made.textContent = said;
  return made;
}
