// What is everything drawn with? Elements, numbers, scales. Text is only ever set as text.

const byId = (id) => document.getElementById(id);

/** Make an HTML element. Properties that begin with "on" are listeners; null leaves one out. */
function make(tag, properties = {}, ...children) {
  return dressed(document.createElement(tag), properties, children);
}

/** Make an SVG element. */
function draw(tag, properties = {}, ...children) {
  return dressed(document.createElementNS("http://www.w3.org/2000/svg", tag), properties, children);
}

function dressed(element, properties, children) {
  for (const [name, value] of Object.entries(properties)) {
    if (value === null || value === undefined) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name === "tint") element.style.setProperty("--c", `var(--p${value})`);
    else if (name === "group") element.style.setProperty("--c", `var(--g${value})`);
    else element.setAttribute(name, value);
  }
  element.append(...children.filter((child) => child !== null));
  return element;
}

/** A piece of a policy's line. */
function swatch(policy) {
  const line = draw("line", { x1: 0, x2: 24, y1: 5, y2: 5, "stroke-dasharray": dashOf(policy) });
  return draw("svg", { class: "swatch", viewBox: "0 0 24 10", "aria-hidden": "true", tint: policy }, line);
}

const dashOf = (policy) => RUN.policies[policy].dash || null;
const nameOf = (policy) => RUN.policies[policy].name;

const known = (value) => typeof value === "number" && Number.isFinite(value);

const grouped = (value, digits) =>
  value.toLocaleString("en-GB", { minimumFractionDigits: digits, maximumFractionDigits: digits }).replace("-", "−");

/** As many decimals as a mean is given in the run's own tables. */
function decimal(value) {
  return known(value) ? grouped(value, Math.abs(value) >= 100 ? 1 : 2) : "–";
}

/** About three digits, whatever the size; for counts, bytes and times. */
function amount(value) {
  if (!known(value)) return "–";
  const size = Math.abs(value);
  if (size >= 1e6) return `${grouped(value / 1e6, size >= 1e7 ? 1 : 2)} M`;
  if (size >= 100 || Number.isInteger(value)) return grouped(value, 0);
  if (size >= 1e-3) return grouped(value, Math.min(5, Math.max(0, 2 - Math.floor(Math.log10(size)))));
  return value.toExponential(1).replace("-", "−");
}

/** A mean with half of its interval, where there is one. */
function withHalf(value, half) {
  if (!known(value)) return "–";
  const digits = Math.abs(value) >= 100 ? 1 : 2;
  return known(half) ? `${grouped(value, digits)} ± ${grouped(half, digits)}` : grouped(value, digits);
}

const counted = (count, one, many) => `${grouped(count, 0)} ${count === 1 ? one : many}`;

/** A linear scale, with ticks at round numbers. */
function linear(low, high, from, to, wanted) {
  const raw = (high - low) / wanted || 1;
  const power = 10 ** Math.floor(Math.log10(raw));
  const step = power * ([1, 2, 2.5, 5, 10].find((factor) => factor * power >= raw * 0.8) || 10);
  const ticks = [];
  for (let place = Math.ceil(low / step - 1e-9); place * step <= high + step * 1e-9; place += 1) {
    ticks.push(place * step);
  }
  const digits = Math.max(0, Math.min(6, -Math.floor(Math.log10(step) + 1e-9) + (step / power === 2.5 ? 1 : 0)));
  const scale = (value) => from + ((value - low) / (high - low || 1)) * (to - from);
  return Object.assign(scale, { ticks, text: (tick) => grouped(Math.abs(tick) < step / 1e6 ? 0 : tick, digits) });
}

/** A logarithmic scale; as many ticks as there is room for, at least powers of ten. */
function logarithmic(low, high, from, to, wanted) {
  const start = Math.log10(low), span = Math.log10(high) - start || 1;
  let ticks = [];
  for (const factors of [[1, 2, 3, 4, 5, 6, 7, 8, 9], [1, 2, 5], [1, 3], [1]]) {
    ticks = [];
    for (let power = Math.floor(start) - 1; power <= Math.ceil(start + span); power += 1) {
      for (const factor of factors) {
        const tick = factor * 10 ** power;
        if (tick >= low * 0.9999 && tick <= high * 1.0001) ticks.push(tick);
      }
    }
    if (ticks.length <= wanted) break;
  }
  const every = Math.ceil(ticks.length / (wanted + 1));
  const scale = (value) => from + ((Math.log10(value) - start) / span) * (to - from);
  return Object.assign(scale, { ticks: ticks.filter((_, place) => place % every === 0), text: (tick) => (tick < 1 && tick >= 1e-4 ? String(Number(tick.toPrecision(1))) : amount(tick)) });
}

const LETTER = 6.8; // pixels that a digit of an axis takes

const labelWidth = (text) => LETTER * text.length;

/** How much room the labels of a vertical axis take beside it. */
const gutter = (y) => 14 + Math.max(20, ...y.ticks.map((tick) => labelWidth(y.text(tick))));

/** Of ticks along a line every one, or every second, or third …, so that no labels touch. */
function apartTicks(scale, sizeOf, gap) {
  for (let every = 1; every < scale.ticks.length; every += 1) {
    const kept = scale.ticks.filter((_, place) => place % every === 0);
    const clear = kept.every((tick, i) => i === 0 ||
      Math.abs(scale(tick) - scale(kept[i - 1])) >= (sizeOf(tick) + sizeOf(kept[i - 1])) / 2 + gap);
    if (clear) return kept;
  }
  return scale.ticks.slice(0, 1);
}

/** A path through points; a gap where one is null. */
function pathOf(points) {
  let text = "", pen = false;
  for (const point of points) {
    if (point) text += `${pen ? "L" : "M"}${point[0].toFixed(1)} ${point[1].toFixed(1)}`;
    pen = Boolean(point);
  }
  return text;
}

const emptyNote = (text) => make("p", { class: "empty" }, text);
