// What does regret cost? Final regret beside messages, bytes and time.

const COSTS = [
  ["messages", "Messages a round"],
  ["bytes", "Bytes a round"],
  ["milliseconds", "Milliseconds a decision"],
];

function drawCosts(host, series) {
  const cards = COSTS.map(([key, title]) => {
    const there = series.filter((one) => known(one[key]) && known(one.final[0]));
    const plot = make("div", {});
    const card = make("div", { class: "cost" }, make("h3", {}, title), plot);
    card.fill = () => plot.replaceChildren(there.length ? scatter(plot.clientWidth, there, key, title) : emptyNote("Not recorded."));
    return card;
  });
  host.replaceChildren(...cards);
  cards.forEach((card) => card.fill());
}

/** Costs go over decades, so they are logarithmic; those that are nothing stand on their own at the left. */
function scatter(wide, series, key, title) {
  const width = Math.max(220, wide), height = Math.round(Math.min(300, width * 0.78));
  const frame = { left: 46, right: width - 12, top: 26, bottom: height - 26 };
  const means = series.map(({ final: [value] }) => value), most = Math.max(1e-9, ...means);
  const ends = Math.max(...series.map(({ final: [value, half] }) => value + (half || 0)));
  const y = linear(Math.min(0, ...means), Math.min(ends, 1.5 * most) * 1.05, frame.bottom, frame.top, 4);
  frame.left = gutter(y);
  const costs = series.map((one) => one[key]).filter((value) => value > 0);
  const none = costs.length < series.length;
  const start = frame.left + (none ? 44 : 0);
  const low = costs.length ? Math.min(...costs) / 1.5 : 1, high = costs.length ? Math.max(...costs) * 1.5 : 10;
  const x = logarithmic(low, high, start + (none ? 14 : 0), frame.right, Math.max(2, Math.floor((frame.right - start) / 58)));
  // a label must not reach into the place of those that cost nothing
  x.ticks = costs.length ? x.ticks.filter((tick) => !none || x(tick) - labelWidth(x.text(tick)) / 2 >= start) : [];
  const clip = (place) => Math.max(frame.top, Math.min(frame.bottom, place));
  const svg = draw("svg", {
    viewBox: `0 0 ${width} ${height}`, height, role: "img",
    "aria-label": `Final regret beside ${title.toLowerCase()}. ` +
      series.map((one) => `${nameOf(one.policy)}: ${amount(one[key])}, regret ${withHalf(...one.final)}`).join("; "),
  }, axes({ x, y }, frame, "", "Regret per agent"));
  if (none) {
    svg.append(
      draw("text", { x: frame.left + 22, y: frame.bottom + 18, "text-anchor": "middle", class: "tick" }, "none"),
      draw("line", { class: "cross", x1: start, x2: start, y1: frame.top, y2: frame.bottom }),
    );
  }
  const places = apart(series.map((one) => (one[key] > 0 ? x(one[key]) : frame.left + 22)));
  for (const [place, one] of series.entries()) {
    const [value, half] = one.final;
    const at = places[place];
    const group = draw("g", { "data-series": one.policy, tint: one.policy },
      draw("title", {}, `${nameOf(one.policy)}: ${amount(one[key])}, regret ${withHalf(value, half)}`));
    if (known(half)) group.append(draw("line", { class: "whisker", x1: at, x2: at, y1: clip(y(value - half)), y2: clip(y(value + half)) }));
    group.append(draw("circle", { class: dashOf(one.policy) ? "point hollow" : "point", cx: at, cy: y(value), r: 5.5 }));
    svg.append(group);
  }
  return svg;
}

/** Move points that cost the same a little to the sides, so that none hides another. */
function apart(places) {
  return places.map((place, i) => {
    const near = places.map((other, j) => j).filter((j) => Math.abs(places[j] - place) < 3);
    return place + (near.indexOf(i) - (near.length - 1) / 2) * Math.min(11, 44 / near.length);
  });
}
