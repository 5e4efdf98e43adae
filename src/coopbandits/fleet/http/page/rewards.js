// Rewards: the running means of learner, control group and baseline, and what learning is worth.

import { Latest, Series } from "./history.js";
import {
  amount, byId, clock, counted, decimal, draw, grouped, known, linear, pathOf, signed, write,
} from "./marks.js";

const MOST_SAMPLES = 360, WINDOW = 100;

const GROUPS = [["learner", "learner"], ["control", "control group"], ["baseline", "baseline"]];
const NONE = { count: 0, mean: null, half_width: null };

/** The rewards of events that another policy than the learner decided, in the modes that have one. */
export const baselineOf = (status) => status.rewards.baseline ?? NONE;

export class RewardPicture {
  constructor() {
    this.series = new Series(MOST_SAMPLES);
    this.latest = Object.fromEntries(GROUPS.map(([key]) => [key, new Latest(WINDOW)]));
    this.host = byId("reward-charts");
    new ResizeObserver(() => this.redraw()).observe(this.host);
  }

  /** Take the rewards of a StatusReply. */
  show(status) {
    const last = this.series.samples.at(-1);
    if (last && last.at > status.now) this.series.clear(); // the node's clock was set back
    this.status = status;
    this.rewards = { ...status.rewards, baseline: baselineOf(status) };
    this.series.push({ at: status.now, ...this.rewards });
    this.redraw();
  }

  /** Take a note of a closed event. */
  rewarded(note) {
    if (known(note.value)) this.latest[note.group]?.push(note.value);
  }

  redraw() {
    if (!this.rewards) return;
    const { difference, half_width: half } = this.rewards, compared = known(difference) && known(half);
    const { mode, control_share: share } = this.status, learns = mode === "online";
    this.row("learner", learns);
    this.row("control", learns && share > 0);
    this.row("baseline", !learns);
    byId("difference-row").hidden = !compared;
    write(byId("difference-mean"), compared ? signed(difference, half) : "");
    write(byId("difference-half"), compared ? ` ± ${decimal(half, half)}` : "");
    write(byId("reward-words"), rewardWords(this.rewards, this.status));
    const charts = [];
    if (GROUPS.some(([key]) => this.rewards[key].count)) charts.push(this.means());
    if (compared) charts.push(this.differences());
    this.host.replaceChildren(...charts);
    byId("chart-words").hidden = !charts.length;
  }

  /** A group's row; one without rewards is there only if it is expected to get some. */
  row(group, expected) {
    const { count, mean, half_width: half } = this.rewards[group];
    byId(`${group}-row`).hidden = !count && !expected;
    write(byId(`${group}-count`), grouped(count));
    write(byId(`${group}-mean`), decimal(mean, half));
    write(byId(`${group}-half`), known(half) ? ` ± ${decimal(half, half)}` : "");
    const { values } = this.latest[group];
    write(byId(`${group}-latest`), values.length ? decimal(this.latest[group].mean(), half) : "–");
    const seen = counted(values.length, "reward", "rewards");
    byId(`${group}-latest`).title = `Mean of the last ${seen} that this page has seen, at most ${WINDOW}`;
  }

  means() {
    const lines = GROUPS.map(([key, label]) => ({
      kind: key, label, points: this.series.samples.map((s) => [s.at, s[key].mean, s[key].half_width]),
    })).filter(({ points }) => points.some((point) => known(point[1])));
    return chart(this.host.clientWidth, 190, lines, "mean reward", false, this.times());
  }

  differences() {
    const points = this.series.samples.map((s) => [s.at, known(s.half_width) ? s.difference : null, s.half_width]);
    const line = { kind: "difference", label: "learner − control", points };
    const title = "difference, learner − control group";
    return chart(this.host.clientWidth, 130, [line], title, true, this.times());
  }

  /** From when to when there are rewards; both charts show the same time. */
  times() {
    const there = this.series.samples.filter((s) => GROUPS.some(([key]) => s[key].count));
    return [there[0].at, Math.max(there.at(-1).at, there[0].at + 10)];
  }
}

function rewardWords({ learner, control, baseline, difference, half_width: half }, { mode, control_share: share }) {
  if (mode !== "online") {
    const who = mode === "off" ? "A fixed" : "An outside";
    return `${who} policy decides (mode ${mode}). Its rewards are the baseline’s, not the learner’s.`;
  }
  if (!learner.count && !control.count && !baseline.count) return "No event was rewarded yet.";
  if (!control.count && share > 0) {
    return `The control group, ${percent(share)} of the events, has no reward yet to compare with.`;
  }
  if (!control.count) {
    return "There is no control group: what learning is worth cannot be told. " +
      "The setting “control” of the node makes one.";
  }
  if (!known(difference) || !known(half)) return "There are too few rewards to compare the two groups.";
  if (difference - half > 0) return "The learner earns more than the fixed policy of the control group.";
  if (difference + half < 0) return "The learner earns less than the fixed policy of the control group.";
  return "The two groups cannot be told apart yet: the interval of their difference holds 0.";
}

const percent = (share) => `${Number((100 * share).toPrecision(2))}%`;

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
  const last = points.at(-1)?.[0] ?? 1, first = Math.min(points[0]?.[0] ?? 0, last - 1);
  const x = linear(first, last, 1, width - 3, 1), y = linear(low, high, height - 2, 2, 1);
  const inside = (value) => y(Math.max(low, Math.min(high, value)));
  const line = points.map(([at, value]) => (known(value) ? [x(at), inside(value)] : null));
  svg.append(draw("path", { class: "line", d: pathOf(line) }));
  const end = line.filter(Boolean).at(-1);
  if (end) svg.append(draw("circle", { class: "end", cx: end[0], cy: end[1], r: 2 }));
  return svg;
}

