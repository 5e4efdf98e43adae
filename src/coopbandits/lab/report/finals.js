// Where did everybody end? A table that sorts by any column.

const COLUMNS = [
  { key: "policy", name: "policy", of: (one) => nameOf(one.policy) },
  { key: "regret", name: "regret", of: (one) => one.final[0] },
  { key: "difference", name: "minus baseline", of: (one) => one.finalDifference[0], paired: true },
  { key: "ratio", name: "ratio", of: (one) => one.ratio, paired: true },
  { key: "slope", name: "slope", of: (one) => one.slope },
  { key: "messages", name: "messages a round", of: (one) => one.messages },
  { key: "bytes", name: "bytes a round", of: (one) => one.bytes },
  { key: "milliseconds", name: "ms a decision", of: (one) => one.milliseconds },
];

/** sorting: { key, down } or null for the experiment's order. */
function drawFinals(host, panel, hidden, sorting, onSort) {
  const rows = sorted(panel.series, sorting);
  const most = Math.max(...panel.series.map((one) => one.final[0] || 0));
  const least = Math.min(...panel.series.map((one) => one.final[0]).filter(known));
  const head = COLUMNS.map((column) => make("th", {
    scope: "col",
    "aria-sort": sorting && sorting.key === column.key ? (sorting.down ? "descending" : "ascending") : null,
  }, make("button", { type: "button", "data-key": column.key, onclick: () => onSort(column.key) },
    column.key === "difference" ? `minus ${nameOf(panel.baseline)}` : column.key === "ratio" ? `ratio to ${nameOf(panel.baseline)}` : column.name)));
  const body = rows.map((one) => make("tr", { class: hidden.has(one.policy) ? "off" : null, "data-policy": one.policy, tint: one.policy },
    make("th", { scope: "row" }, make("span", {}, swatch(one.policy), make("span", {}, nameOf(one.policy), make("i", {}, how(one))))),
    ...COLUMNS.slice(1).map((column) => cell(column, one))));
  host.replaceChildren(make("table", {}, make("thead", {}, make("tr", {}, ...head)), make("tbody", {}, ...body)));
  showWhatIsBeyond(host);

  function cell(column, one) {
    if (column.paired && one.policy === panel.baseline) return make("td", {}, make("span", { class: "pm" }, "baseline"));
    if (column.key === "regret") return regret(one);
    if (column.key === "difference") return make("td", {}, ...parted(one.finalDifference));
    if (column.key === "ratio" || column.key === "slope") return make("td", {}, known(column.of(one)) ? grouped(column.of(one), 2) : "–");
    return make("td", {}, amount(column.of(one)));
  }

  function regret(one) {
    const bar = make("span", { class: "bar", "aria-hidden": "true" });
    bar.style.width = `${most > 0 ? Math.max(0, (100 * one.final[0]) / most) : 0}%`;
    return make("td", { class: one.final[0] === least && rows.length > 1 ? "best" : null }, ...parted(one.final), bar);
  }
}

/** What computed the decisions of a row, and how often it was played. */
function how(one) {
  return [one.engine, counted(one.trials, "trial", "trials")].filter(Boolean).join(", ");
}

/** Say that a table goes on to the right, for as long as it does. */
function showWhatIsBeyond(host) {
  const look = () => host.parentElement.classList.toggle("beyond", host.scrollLeft + host.clientWidth < host.scrollWidth - 1);
  if (!host.watched) {
    host.watched = new ResizeObserver(look);
    host.watched.observe(host);
    host.addEventListener("scroll", look, { passive: true });
  }
  look();
}

function parted([value, half]) {
  const [mean, interval] = withHalf(value, half).split(" ± ");
  return interval ? [mean, make("span", { class: "pm" }, ` ± ${interval}`)] : [mean];
}

/** What is not known comes last, whichever way it is sorted. */
function sorted(series, sorting) {
  if (!sorting) return series;
  const { of } = COLUMNS.find((column) => column.key === sorting.key);
  const sign = sorting.down ? -1 : 1;
  return [...series].sort((one, other) => {
    const a = of(one), b = of(other);
    if (typeof a === "string") return sign * a.localeCompare(b, "en");
    if (!known(a) || !known(b)) return known(b) - known(a);
    return sign * (a - b);
  });
}
