// Elements, numbers and scales that the page is drawn with. Text is only ever set as text.

export const byId = (id) => document.getElementById(id);

/** Make an HTML element; null properties and children are left out. */
export function make(tag, properties = {}, ...children) {
  return dressed(document.createElement(tag), properties, children);
}

/** Make an SVG element. */
export function draw(tag, properties = {}, ...children) {
  return dressed(document.createElementNS("http://www.w3.org/2000/svg", tag), properties, children);
}

function dressed(element, properties, children) {
  for (const [name, value] of Object.entries(properties)) {
    if (value !== null && value !== undefined) element.setAttribute(name, value);
  }
  element.append(...children.filter((child) => child !== null && child !== undefined));
  return element;
}

/** Write a text into an element, if it is another one than before. */
export function write(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

export const known = (value) => typeof value === "number" && Number.isFinite(value);

export const grouped = (value, digits = 0) =>
  value.toLocaleString("en-GB", { minimumFractionDigits: digits, maximumFractionDigits: digits })
    .replace("-", "−");

/** About three digits, whatever the size. */
export function amount(value) {
  if (!known(value)) return "–";
  const size = Math.abs(value);
  if (size >= 1e12) return value.toExponential(2).replace("-", "−");
  if (size >= 1e9) return `${grouped(value / 1e9, 2)} G`;
  if (size >= 1e6) return `${grouped(value / 1e6, 2)} M`;
  if (size >= 100 || Number.isInteger(value)) return grouped(value);
  if (size >= 1e-3) return grouped(value, Math.min(5, Math.max(0, 2 - Math.floor(Math.log10(size)))));
  return value.toExponential(1).replace("-", "−");
}

/** As many decimals as its uncertainty leaves; three where there is none. */
export function decimal(value, half = null) {
  if (!known(value)) return "–";
  if (Math.abs(value) >= 1e5) return amount(value);
  const digits = known(half) && half > 0 ? 1 - Math.floor(Math.log10(half)) : 3;
  return grouped(value, Math.min(4, Math.max(0, digits)));
}

export function signed(value, half = null) {
  const text = decimal(value, half);
  return value > 0 && /[1-9]/.test(text) ? `+${text}` : text;
}

export const counted = (count, one, many) => `${grouped(count)} ${count === 1 ? one : many}`;

/** Names as a list of a sentence: "a, b and 3 more". */
export function listed(names, most) {
  const left = names.length - most;
  if (left > 1) return `${names.slice(0, most).join(", ")} and ${grouped(left)} more`;
  return names.length < 2 ? names.join("") : `${names.slice(0, -1).join(", ")} and ${names.at(-1)}`;
}

/** Bytes with their unit. */
export function bytes(value) {
  for (const [unit, size] of [["TB", 1e12], ["GB", 1e9], ["MB", 1e6], ["kB", 1e3]]) {
    if (value >= size) return `${grouped(value / size, value >= 100 * size ? 0 : 1)} ${unit}`;
  }
  return `${grouped(value)} B`;
}

/** A time span in its two largest units. */
export function span(seconds) {
  const s = Math.max(0, Math.round(seconds));
  if (s < 60) return `${s} s`;
  if (s < 3600) return `${Math.floor(s / 60)} min ${s % 60} s`;
  if (s < 86400) return `${Math.floor(s / 3600)} h ${Math.floor((s % 3600) / 60)} min`;
  return `${Math.floor(s / 86400)} d ${Math.floor((s % 86400) / 3600)} h`;
}

/** The time of day, where the reader is; with the date, if it is another day. */
export function clock(seconds) {
  const date = new Date(seconds * 1000);
  const time = date.toLocaleTimeString("en-GB");
  return date.toDateString() === new Date().toDateString()
    ? time
    : `${date.toLocaleDateString("en-GB", { day: "numeric", month: "short" })} ${time}`;
}

/** A name, cut in its middle if it is too long for where it stands. */
export function shortened(name, most) {
  const letters = [...name];
  if (letters.length <= most) return name;
  const end = Math.floor((most - 1) / 3);
  return `${letters.slice(0, most - 1 - end).join("")}…${letters.slice(letters.length - end).join("")}`;
}

/** A linear scale, with ticks at round numbers. */
export function linear(low, high, from, to, wanted) {
  const raw = (high - low) / wanted || 1;
  const power = 10 ** Math.floor(Math.log10(raw));
  const step = power * ([1, 2, 2.5, 5, 10].find((factor) => factor * power >= raw * 0.8) || 10);
  const ticks = [];
  for (let place = Math.ceil(low / step - 1e-9); place * step <= high + step * 1e-9; place += 1) {
    ticks.push(place * step);
  }
  const least = -Math.floor(Math.log10(step) + 1e-9) + (step / power === 2.5 ? 1 : 0);
  const digits = Math.max(0, Math.min(6, least));
  const scale = (value) => from + ((value - low) / (high - low || 1)) * (to - from);
  const text = (tick) => (Math.abs(tick) >= 1e5 ? amount(tick) : grouped(tick || 0, digits));
  return Object.assign(scale, { ticks, text });
}

/** A path through points; a gap where one is null. */
export function pathOf(points) {
  let text = "", pen = false;
  for (const point of points) {
    if (point) text += `${pen ? "L" : "M"}${point[0].toFixed(1)} ${point[1].toFixed(1)}`;
    pen = Boolean(point);
  }
  return text;
}
