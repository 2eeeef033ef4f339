// Values as people read them.

export const hidden = new Set(["rank", "score", "window_start", "window_end", "at", "change"]);

const INFINITE = { "+INF": "∞", "-INF": "−∞" };

// Formats are made once: to make one takes longer than to write a hundred numbers.
const formats = new Map();
function written(value, options) {
  const key = JSON.stringify(options);
  if (!formats.has(key)) formats.set(key, new Intl.NumberFormat("en", options));
  return formats.get(key).format(value);
}

export function number(value, digits = 3) {
  if (value === null || value === undefined) return "–";
  if (typeof value === "string") return INFINITE[value] ?? value;
  if (typeof value === "bigint") return written(value, {});
  const size = Math.abs(value);
  if (size !== 0 && ((size >= 1e15 && !Number.isSafeInteger(value)) || size < 1e-4)) return value.toExponential(2);
  if (size !== 0 && size < 1) return written(value, { maximumSignificantDigits: digits });
  return written(value, { maximumFractionDigits: size >= 1000 ? 0 : size >= 10 ? 2 : digits });
}

export function short(value) {
  if (value === null || value === undefined || typeof value === "string") return value ?? "–";
  return written(value, { notation: "compact", maximumSignificantDigits: 3 });
}

// JSON whose whole numbers keep all their digits: identifiers often have more than a double holds.
export function exact(json) {
  if (!/\d{16}/.test(json)) return JSON.parse(json);
  return JSON.parse(json, (_, value, context) => (typeof value === "number" && /^-?\d{16,}$/.test(context?.source ?? "") ? BigInt(context.source) : value));
}

export function asJson(value) {
  return JSON.stringify(value, (_, each) => (typeof each === "bigint" ? (JSON.rawJSON?.(String(each)) ?? Number(each)) : each));
}

const TIME = /^([+-]?\d{4,6}-\d\d-\d\d)T(\d\d:\d\d:\d\d(?:\.\d+)?)/;
const NO_WORD = /^(?:NaN|[+-]INF|[+-]?\d+(?:\.\d+)?(?:[Ee][+-]?\d+)?|\d{4}-\d\d-\d\d)$/; // how JSON writes other values as text
const MOST = 400; // characters of a text that anybody reads

export function cut(said, most = MOST) {
  return said.length > most ? `${said.slice(0, most - 1)}…` : said;
}

// A time has its date, unless it is that of `day`; where there is little room, it has whole seconds.
export function text(value, day = null, isShort = false) {
  if (value === null || value === undefined) return "∅";
  if (typeof value === "number" || typeof value === "bigint") return number(value);
  if (typeof value !== "string") return cut(typeof value === "object" ? asJson(value) : String(value));
  const found = TIME.exec(value);
  if (!found) return INFINITE[value] ?? cut(value);
  const [, date, whole] = found, time = isShort ? whole.slice(0, 8) : whole, isMidnight = /^00:00:00(?:\.0+)?$/.test(whole);
  return date === day ? time : isMidnight ? date : `${date} ${time}`;
}

// The date that all times of these rows share; none, if they lie on several days, or all are dates without a time.
export function sharedDay(rows) {
  const names = rows.length ? Object.keys(rows[0]).filter((name) => TIME.test(rows[0][name])) : [];
  const found = rows.flatMap((row) => names.map((name) => TIME.exec(row[name]))).filter(Boolean);
  const days = new Set(found.map(([, date]) => date));
  return days.size === 1 && found.some(([, , time]) => !time.startsWith("00:00:00")) ? [...days][0] : null;
}

// A moment on an axis that shows so many seconds.
export function clock(seconds, size = 0) {
  const date = new Date(seconds * 1000);
  if (Number.isNaN(date.getTime())) return number(seconds); // farther away than a date can say
  const [day, time] = date.toISOString().split("T");
  return size >= 2 * 86_400 ? day : size > 0 && size < 10 ? time.slice(0, 12) : time.slice(0, 8);
}

export function span(seconds) {
  if (seconds < 2) return `${number(seconds)} s`;
  if (seconds < 120) return `${Math.round(seconds)} s`;
  if (seconds < 7200) return `${Math.round(seconds / 60)} min`;
  return seconds < 172_800 ? `${number(Math.round(seconds / 360) / 10)} h` : `${number(Math.round(seconds / 8640) / 10)} days`;
}

const isWord = (value) => typeof value === "string" && value !== "" && !TIME.test(value) && !NO_WORD.test(value);

// The columns of rows that have words: at most two of them name a row. Those in which all rows are the same, as the columns
// of a group are, do not: then the first other column does.
export function textsOf(rows, same = []) {
  const names = rows.length ? Object.keys(rows[0]).filter((name) => !hidden.has(name)) : [];
  const found = names.filter((name) => rows.some((row) => isWord(row[name])));
  const others = found.filter((name) => !same.includes(name));
  return others.length || !same.length ? others : names.filter((name) => !same.includes(name)).slice(0, 1);
}

// What a row is called: its texts, or else its first value. `words` are the columns that have texts in some row.
export function title(row, words = textsOf([row])) {
  const names = Object.keys(row).filter((name) => !hidden.has(name));
  const pair = names.filter((name) => name.startsWith("a_") && `b_${name.slice(2)}` in row);
  if (pair.length) { // of a pair the first text of both rows, or else their first values
    const told = pair.find((name) => words.includes(name)) ?? pair[0], both = [told, `b_${told.slice(2)}`];
    return { title: both.map((name) => cut(text(row[name]), 60)).join(" · "), rest: names.filter((name) => !both.includes(name)) };
  }
  const texts = words.filter((name) => row[name] !== null && row[name] !== undefined && row[name] !== "");
  const chosen = texts.length ? texts.slice(0, 2) : names.slice(0, 1);
  return { title: chosen.map((name) => cut(text(row[name]), 80)).join(" · ") || "row", rest: names.filter((name) => !chosen.includes(name)) };
}

export function details(row, names, day = null) {
  return names.slice(0, 4).map((name) => `${name} ${cut(text(row[name], day, true), 40)}`).join("  ·  ");
}

// What stays the same of a row while its rank changes.
export function identity(row, columns) {
  const names = columns?.length ? columns.filter((name) => name in row) : Object.keys(row).filter((name) => !["rank", "window_start", "window_end", "at"].includes(name));
  return asJson(names.map((name) => row[name]));
}

// A text that fits into so much of a canvas.
export function fitted(context, said, most) {
  if (context.measureText(cut(said, 200)).width <= most && said.length <= 200) return said;
  let fits = 1, not = Math.min(said.length, 200);
  while (fits + 1 < not) {
    const middle = (fits + not) >> 1;
    if (context.measureText(`${said.slice(0, middle)}…`).width <= most) fits = middle;
    else not = middle;
  }
  return `${said.slice(0, fits)}…`;
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

// To tell things apart that have a line or a track of their own: on dark, and on light.
const DEEP = ["#0b7f76", "#b86a00", "#7c3fb5", "#1a7f37", "#c6352b", "#2f5fd0", "#8a7400", "#b3297f", "#0f6fa8", "#5b6b12", "#94512a", "#4a4fa3"];
const BRIGHT = ["#4fd6c8", "#f5b454", "#c792ea", "#6ddb8b", "#ff8a80", "#7aa7ff", "#e6d36a", "#f28fd0", "#8fd3ff", "#b6c26e", "#d9a27e", "#9fa8da"];

export function hue(place) {
  const list = isLight() ? DEEP : BRIGHT;
  return list[place % list.length];
}

function isLight() {
  const found = /^#([0-9a-f]{2})([0-9a-f]{2})([0-9a-f]{2})$/i.exec(colours().card);
  return found !== null && found.slice(1).reduce((sum, each) => sum + parseInt(each, 16), 0) > 384;
}

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
