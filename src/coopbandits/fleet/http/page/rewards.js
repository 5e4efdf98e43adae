// Rewards: the running mean of the learner beside the control group's, and their difference.

import { Latest, Series } from "./history.js";
import {
  amount, byId, clock, counted, decimal, draw, grouped, known, linear, pathOf, signed, write,
} from "./marks.js";

const MOST_SAMPLES = 360, WINDOW = 100;

export class RewardPicture {
  constructor() {
    this.series = new Series(MOST_SAMPLES);
    this.latest = { learner: new Latest(WINDOW), control: new Latest(WINDOW) };
    this.host = byId("reward-charts");
    new ResizeObserver(() => this.redraw()).observe(this.host);
  }

  /** Take the rewards of a StatusReply. */
  show(status) {
    const last = this.series.samples.at(-1);
    if (last && last.at > status.now) this.series.clear(); // the node's clock was set back
    this.series.push({ at: status.now, ...status.rewards });
    this.rewards = status.rewards;
    this.redraw();
  }

  /** Take a note of a closed event. */
  rewarded(note) {
    if (known(note.value)) this.latest[note.group]?.push(note.value);
  }

  redraw() {
    if (!this.rewards) return;
    const { learner, control, difference, half_width: half } = this.rewards;
    this.row("learner", learner);
    this.row("control", control);
    write(byId("difference-mean"), known(difference) ? signed(difference, half) : "–");
    write(byId("difference-half"), known(half) ? `± ${decimal(half, half)}` : "–");
    write(byId("reward-words"), rewardWords(this.rewards));
    const charts = [];
    if (learner.count || control.count) charts.push(this.means());
    if (known(difference)) charts.push(this.differences());
    this.host.replaceChildren(...charts);
  }

  row(group, arm) {
    write(byId(`${group}-count`), grouped(arm.count));
    write(byId(`${group}-mean`), decimal(arm.mean, arm.half_width));
    const half = arm.half_width;
    write(byId(`${group}-half`), known(half) ? `± ${decimal(half, half)}` : "–");
    const { values } = this.latest[group];
    write(byId(`${group}-latest`), values.length ? decimal(this.latest[group].mean()) : "–");
    const seen = counted(values.length, "reward", "rewards");
    byId(`${group}-latest`).title = `Mean of the last ${seen} that this page has seen, at most ${WINDOW}`;
  }

  means() {
    const groups = [["learner", "learner"], ["control", "control group"]];
    const lines = groups.map(([key, label]) => ({
      kind: key, label, points: this.series.samples.map((s) => [s.at, s[key].mean, s[key].half_width]),
    })).filter(({ points }) => points.some((point) => known(point[1])));
    return chart(this.host.clientWidth, 190, lines, "mean reward", false, this.times());
  }

  differences() {
    const points = this.series.samples.map((s) => [s.at, s.difference, s.half_width]);
    const line = { kind: "difference", label: "learner − control", points };
    const title = "difference, learner − control group";
    return chart(this.host.clientWidth, 130, [line], title, true, this.times());
  }

  /** From when to when there are rewards; both charts show the same time. */
  times() {
    const times = this.series.samples.filter((s) => s.learner.count || s.control.count).map((s) => s.at);
    return [times[0], Math.max(times.at(-1), times[0] + 10)];
  }
}

function rewardWords({ learner, control, difference, half_width: half }) {
  if (!learner.count && !control.count) return "No event was rewarded yet.";
  if (!control.count) {
    return "There are no rewards of a control group: what learning is worth cannot be told. " +
      "The setting “control” of the node makes one.";
  }
  if (!known(difference) || !known(half)) return "There are too few rewards to compare the two groups.";
  if (difference - half > 0) return "The learner earns more than the fixed policy of the control group.";
  if (difference + half < 0) return "The learner earns less than the fixed policy of the control group.";
  return "The two groups cannot be told apart yet: the interval of their difference holds 0.";
}

/** lines: [{ kind, label, points: [[at, value, half], …] }] */
function chart(hostWidth, height, lines, title, zero, [first, last]) {
  const width = Math.max(240, hostWidth);
  const frame = { left: 50, right: width - 10, top: 22, bottom: height - 24 };
  const all = lines.flatMap(({ points }) => points);
  const x = linear(first, last, frame.left, frame.right, 4), y = valueScale(all, frame, zero, height);
  const svg = draw("svg", { class: "chart", viewBox: `0 0 ${width} ${height}`, height, role: "img" });
  svg.append(draw("text", { x: 0, y: 12 }, title));
  for (const tick of y.ticks) {
    const kind = zero && Math.abs(tick) < 1e-12 ? "zero" : "grid";
    svg.append(
      draw("line", { class: kind, x1: frame.left, x2: frame.right, y1: y(tick), y2: y(tick) }),
      draw("text", { x: frame.left - 8, y: y(tick) + 4, "text-anchor": "end" }, y.text(tick)),
    );
  }
  svg.append(
    draw("line", { class: "axis", x1: frame.left, x2: frame.right, y1: frame.bottom, y2: frame.bottom }),
    draw("text", { x: frame.left, y: height - 7 }, clock(first)),
    draw("text", { x: frame.right, y: height - 7, "text-anchor": "end" }, clock(last)),
  );
  const clip = (value) => Math.max(frame.top, Math.min(frame.bottom, y(value)));
  for (const { kind, points } of lines) {
    const there = points.filter(([, value, half]) => known(value) && known(half));
    const edge = (sign) => there.map(([at, value, half]) => [x(at), clip(value + sign * half)]);
    const outline = [...edge(1), ...edge(-1).reverse()];
    if (there.length > 1) svg.append(draw("path", { class: `band ${kind}`, d: `${pathOf(outline)}Z` }));
  }
  for (const { kind, points } of lines) {
    const line = points.map(([at, value]) => (known(value) ? [x(at), clip(value)] : null));
    svg.append(draw("path", { class: `line ${kind}`, d: pathOf(line) }));
    const end = line.filter(Boolean).at(-1);
    if (end) svg.append(draw("circle", { class: `end ${kind}`, cx: end[0], cy: end[1], r: 3.5 }));
  }
  const told = lines.map(({ label, points }) => {
    const seen = points.map((point) => point[1]).filter(known);
    return `${label} from ${amount(seen[0])} to ${amount(seen.at(-1))}`;
  });
  svg.setAttribute("aria-label", `Chart of ${title}, ${clock(first)} to ${clock(last)}: ${told.join("; ")}.`);
  return svg;
}

/** The lines fill the frame; bands may run out of it, so that the lines are still told apart. */
function valueScale(points, frame, zero, height) {
  const seen = points.filter(([, value]) => known(value));
  const values = seen.map(([, value]) => value);
  const ends = seen.flatMap(([, value, half]) => (known(half) ? [value - half, value + half] : [value]));
  if (zero) values.push(0);
  const least = Math.min(...values), most = Math.max(...values);
  const now = seen.filter(([, , half]) => known(half)).at(-1)?.[2] || 0;
  const reach = Math.max(most - least, 2 * now, Math.abs(most) * 1e-3, 1e-6);
  const low = Math.max(Math.min(...ends, least), least - reach);
  const high = Math.min(Math.max(...ends, most), most + reach);
  const room = (high - low) * 0.06 || Math.abs(high) * 0.05 || 1;
  return linear(low - room, high + room, frame.bottom, frame.top, height > 150 ? 4 : 3);
}

/** A small line without axes. points: [[at, value], …] between two values. */
export function sparkline(points, low, high, width, height, label) {
  const viewBox = `0 0 ${width} ${height}`;
  const svg = draw("svg", { class: "spark", viewBox, width, height, role: "img", "aria-label": label });
  svg.append(draw("title", {}, label));
  const first = points[0]?.[0] ?? 0, last = Math.max(points.at(-1)?.[0] ?? 1, first + 1);
  const x = linear(first, last, 1, width - 3, 1), y = linear(low, high, height - 2, 2, 1);
  const inside = (value) => y(Math.max(low, Math.min(high, value)));
  const line = points.map(([at, value]) => (known(value) ? [x(at), inside(value)] : null));
  svg.append(draw("path", { class: "line", d: pathOf(line) }));
  const end = line.filter(Boolean).at(-1);
  if (end) svg.append(draw("circle", { class: "end", cx: end[0], cy: end[1], r: 2 }));
  return svg;
}

