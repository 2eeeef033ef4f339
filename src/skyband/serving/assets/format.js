// Values as people read them.

export const hidden = new Set(["rank", "score", "window_start", "window_end", "at", "change"]);

export function number(value, digits = 3) {
  if (value === null || value === undefined) return "–";
  if (typeof value === "string") return value;
  const size = Math.abs(value);
  if (size !== 0 && (size >= 1e15 || size < 1e-4)) return value.toExponential(2);
  if (size < 1) return value.toLocaleString("en", { maximumSignificantDigits: digits });
  return value.toLocaleString("en", { maximumFractionDigits: size >= 1000 ? 0 : size >= 10 ? 2 : digits });
}

export function short(value) {
  if (value === null || value === undefined || typeof value === "string") return value ?? "–";
  return value.toLocaleString("en", { notation: "compact", maximumSignificantDigits: 3 });
}

const TIME = /^\d{4}-\d\d-\d\dT(\d\d:\d\d:\d\d)/;

export function text(value) {
  if (value === null || value === undefined) return "∅";
  if (typeof value === "number") return number(value);
  if (typeof value === "string") return TIME.exec(value)?.[1] ?? value;
  return typeof value === "object" ? JSON.stringify(value) : String(value);
}

export function clock(seconds) {
  return new Date(seconds * 1000).toISOString().slice(11, 19);
}

export function span(seconds) {
  if (seconds < 120) return `${Math.round(seconds)} s`;
  return seconds < 7200 ? `${Math.round(seconds / 60)} min` : `${(seconds / 3600).toFixed(1)} h`;
}

// What a row is called: its texts, or else its first value.
export function title(row) {
  const names = Object.keys(row).filter((name) => !hidden.has(name));
  const pair = names.filter((name) => name.startsWith("a_") && `b_${name.slice(2)}` in row);
  if (pair.length) { // of a pair the first text of both rows, or else their first values
    const told = pair.find((name) => typeof row[name] === "string" && !TIME.test(row[name])) ?? pair[0], both = [told, `b_${told.slice(2)}`];
    return { title: both.map((name) => text(row[name])).join(" · "), rest: names.filter((name) => !both.includes(name)) };
  }
  const texts = names.filter((name) => typeof row[name] === "string" && !TIME.test(row[name]));
  const chosen = texts.length ? texts.slice(0, 2) : names.slice(0, 1);
  return { title: chosen.map((name) => text(row[name])).join(" · ") || "row", rest: names.filter((name) => !chosen.includes(name)) };
}

export function details(row, names) {
  return names.slice(0, 4).map((name) => `${name} ${text(row[name])}`).join("  ·  ");
}

// What stays the same of a row while its rank changes.
export function identity(row, columns) {
  const names = columns?.length ? columns.filter((name) => name in row) : Object.keys(row).filter((name) => !["rank", "window_start", "window_end", "at"].includes(name));
  return JSON.stringify(names.map((name) => row[name]));
}

export function element(tag, properties = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (name === "class") made.className = value;
    else if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else if (name.startsWith("aria-") || name === "role" || name.startsWith("data-")) made.setAttribute(name, value);
    else made[name] = value;
  }
  made.append(...children.filter((child) => child !== null && child !== undefined));
  return made;
}

// A canvas as sharp as the screen, and the colours of the page.
export function prepare(canvas) {
  const scale = window.devicePixelRatio || 1;
  const width = canvas.clientWidth, height = canvas.clientHeight;
  if (canvas.width !== Math.round(width * scale) || canvas.height !== Math.round(height * scale)) {
    canvas.width = Math.round(width * scale);
    canvas.height = Math.round(height * scale);
  }
  const context = canvas.getContext("2d");
  context.setTransform(scale, 0, 0, scale, 0, 0);
  context.clearRect(0, 0, width, height);
  context.font = "11.5px system-ui, sans-serif";
  return { context, width, height };
}

// To tell things apart that have a line or a track of their own.
export const hues = ["#4fd6c8", "#f5b454", "#c792ea", "#6ddb8b", "#ff8a80", "#7aa7ff", "#e6d36a", "#f28fd0", "#8fd3ff", "#b6c26e", "#d9a27e", "#9fa8da"];

let palette = null, coloured = null;
export function useColoursOf(node) { coloured = node; palette = null; }
export function colours() {
  if (palette) return palette;
  const style = getComputedStyle(coloured ?? document.documentElement);
  palette = {};
  for (const name of ["bg", "card", "line", "ink", "soft", "faint", "held", "top", "up", "down", "kth", "sel"]) palette[name] = style.getPropertyValue(`--${name}`).trim();
  return palette;
}
export function forgetColours() { palette = null; }
