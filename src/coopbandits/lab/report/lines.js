// How do values go with time? A chart of lines with bands, read at one round.
//
// A chart is a slider for the reader: arrow keys or the pointer move the round that is read.

const KEYS = { ArrowLeft: -1, ArrowDown: -1, ArrowRight: 1, ArrowUp: 1, PageDown: -10, PageUp: 10 };

/**
 * Draw lines into a host.
 *
 * given: { rounds, lines: [{ policy, y, half, dash, kind }], logarithmic, zero, top, label, at, onRead, reference }
 */
function lineChart(host, given) {
  const width = Math.max(240, host.clientWidth), height = Math.round(Math.min(400, Math.max(230, width * 0.56)));
  const frame = { left: 50, right: width - 14, top: 26, bottom: height - 40 };
  frame.left = gutter(scalesOf(given, frame).y);
  const scales = scalesOf(given, frame);
  const svg = draw("svg", { viewBox: `0 0 ${width} ${height}`, height, "aria-hidden": "true" });
  svg.append(axes(scales, frame, "round", given.label, given.zero));
  if (given.reference) svg.append(squareRoot(given, scales, frame));
  const visible = (value) => known(value) && (!given.logarithmic || value > 0);
  const clip = (value) => Math.max(frame.top, Math.min(frame.bottom, value));
  for (const { policy, y, half } of given.lines) {
    if (half && half.some(known)) svg.append(draw("path", { class: "band", d: bandOf(y, half), "data-series": policy, tint: policy }));
  }
  for (const { policy, y, dash, kind } of given.lines) {
    const points = given.rounds.map((t, i) => (visible(y[i]) ? [scales.x(t), scales.y(y[i])] : null));
    svg.append(draw("path", {
      class: "line", d: pathOf(points), "stroke-dasharray": dash, "data-series": policy, "data-kind": kind, tint: policy,
    }));
  }
  const cross = draw("g", {});
  svg.append(cross);
  const slider = make("div", {
    role: "slider", tabindex: 0, "aria-label": `${given.label}: the round that is read`,
    "aria-valuemin": given.rounds[0], "aria-valuemax": given.rounds.at(-1),
    onkeydown: (event) => {
      const step = event.key === "Home" ? -given.rounds.length : event.key === "End" ? given.rounds.length : KEYS[event.key];
      if (!step) return;
      event.preventDefault();
      given.onRead(Math.max(0, Math.min(given.rounds.length - 1, slider.at + step)));
    },
    onpointermove: (event) => given.onRead(nearest(event.clientX)),
    onpointerdown: (event) => given.onRead(nearest(event.clientX)),
  }, svg);
  slider.read = (at, text) => {
    slider.at = at;
    slider.setAttribute("aria-valuenow", given.rounds[at]);
    slider.setAttribute("aria-valuetext", text);
    const x = scales.x(given.rounds[at]);
    cross.replaceChildren(draw("line", { class: "cross", x1: x, x2: x, y1: frame.top, y2: frame.bottom }));
    for (const { policy, y } of given.lines) {
      if (visible(y[at])) cross.append(draw("circle", { class: "dot", cx: x, cy: clip(scales.y(y[at])), r: 4, "data-series": policy, tint: policy }));
    }
  };
  host.replaceChildren(slider);
  return slider;

  function nearest(clientX) {
    const box = svg.getBoundingClientRect(), x = ((clientX - box.left) / box.width) * width;
    let best = 0;
    given.rounds.forEach((t, i) => {
      if (Math.abs(scales.x(t) - x) < Math.abs(scales.x(given.rounds[best]) - x)) best = i;
    });
    return best;
  }

  function bandOf(y, half) {
    const there = given.rounds.map((_, i) => i).filter((i) => visible(y[i]) && known(half[i]));
    const edge = (i, sign) => {
      const value = y[i] + sign * half[i];
      return [scales.x(given.rounds[i]), given.logarithmic && value <= 0 ? frame.bottom : clip(scales.y(value))];
    };
    return pathOf([...there.map((i) => edge(i, 1)), ...there.reverse().map((i) => edge(i, -1))]) + "Z";
  }
}

function scalesOf(given, frame) {
  const many = Math.max(3, Math.floor((frame.right - frame.left) / 90));
  const last = given.rounds.at(-1), first = given.rounds[0];
  if (given.logarithmic) {
    const values = given.lines.flatMap(({ y }) => y).filter((value) => known(value) && value > 0);
    const low = values.length ? Math.min(...values) : 0.1, high = values.length ? Math.max(...values) : 1;
    return {
      x: logarithmic(first, Math.max(last, first * 1.01), frame.left, frame.right, many),
      y: logarithmic(low * 0.9, high * 1.15, frame.bottom, frame.top, 6),
    };
  }
  // Bands of few trials are wide; they may run out of the frame, so that means are still told apart.
  const means = given.lines.flatMap(({ y }) => y).filter(known);
  const ends = given.lines.flatMap(({ y, half }) => y.flatMap((value, i) => {
    const reach = half && known(half[i]) ? half[i] : 0;
    return known(value) ? [value - reach, value + reach] : [];
  }));
  const least = Math.min(0, ...means), most = Math.max(0, ...means), span = most - least || 1;
  let low = given.zero ? Math.max(Math.min(0, ...ends), least - 0.5 * span) : least;
  let high = given.top || Math.min(Math.max(0, ...ends), most + 0.5 * span);
  const room = (high - low) * 0.04 || 1;
  if (low < 0) low -= room;
  if (!given.top) high += room;
  return {
    x: linear(Math.min(first, last === first ? 0 : first), last, frame.left, frame.right, many),
    y: linear(low, high, frame.bottom, frame.top, 5),
  };
}

function axes({ x, y }, frame, under, beside, zero) {
  const group = draw("g", {});
  for (const tick of apartTicks(y, () => 12, 4)) {
    const place = y(tick);
    group.append(
      draw("line", { class: zero && tick === 0 ? "zero" : "grid", x1: frame.left, x2: frame.right, y1: place, y2: place }),
      draw("text", { x: frame.left - 8, y: place + 4, "text-anchor": "end", class: "tick" }, y.text(tick)),
    );
  }
  for (const tick of apartTicks(x, (each) => labelWidth(x.text(each)), 8)) {
    group.append(
      draw("line", { class: "axis", x1: x(tick), x2: x(tick), y1: frame.bottom, y2: frame.bottom + 4 }),
      draw("text", { x: x(tick), y: frame.bottom + 18, "text-anchor": "middle", class: "tick" }, x.text(tick)),
    );
  }
  group.append(
    draw("line", { class: "axis", x1: frame.left, x2: frame.right, y1: frame.bottom, y2: frame.bottom }),
    draw("text", { x: frame.right, y: frame.bottom + 34, "text-anchor": "end" }, under),
    draw("text", { x: 0, y: 12 }, beside),
  );
  return group;
}

/** What √t would look like, through the end of the lowest line. */
function squareRoot(given, { x, y }, frame) {
  const first = given.rounds[0], last = given.rounds.at(-1);
  const ends = given.lines.map((line) => line.y.at(-1)).filter((value) => known(value) && value > 0);
  const group = draw("g", {});
  if (!ends.length || last <= first) return group;
  const end = Math.min(...ends), value = (t) => end * Math.sqrt(t / last);
  const points = Array.from({ length: 33 }, (_, i) => first * (last / first) ** (i / 32))
    .map((t) => [x(t), y(value(t))]).filter((point) => point[1] <= frame.bottom);
  group.append(draw("path", { class: "reference", d: pathOf(points) }));
  const [left, low] = points[0];
  group.append(draw("text", { x: left + 4, y: low - 5 }, "√t"));
  return group;
}

/** List what the lines are at the round that is read. rows: [{ policy, value, under, sort }] */
function readOut(host, round, unit, rows) {
  const items = [...rows].sort((a, b) => a.sort - b.sort).map(({ policy, value, under }) =>
    make("li", { "data-series": policy }, swatch(policy), make("span", {}, nameOf(policy)),
      make("span", { class: "value" }, value, under ? make("i", {}, under) : null)));
  host.replaceChildren(
    make("div", { class: "at" }, make("span", {}, `round ${grouped(round, 0)}`), make("span", {}, unit)),
    make("ol", {}, ...items),
  );
}

/** All numbers of a chart, for those who do not see it or want to copy them. */
function numbersTable(host, rounds, lines) {
  const head = make("tr", {}, make("th", { scope: "col" }, "round"), ...lines.map(({ policy }) => make("th", { scope: "col" }, nameOf(policy))));
  const rows = rounds.map((t, i) => make("tr", {}, make("th", { scope: "row" }, grouped(t, 0)),
    ...lines.map(({ y, half }) => make("td", {}, withHalf(y[i], half && half[i])))));
  host.replaceChildren(make("table", {}, make("thead", {}, head), make("tbody", {}, ...rows)));
}
