// What is shown now? One state; every change draws again what depends on it.

const RUN = JSON.parse(byId("data").textContent);
const state = { panel: 0, hidden: new Set(), scale: "linear", grouping: "cliques", at: null, worthAt: null, sorting: null };

const panelNow = () => RUN.panels[state.panel];
const shownSeries = () => panelNow().series.filter((one) => !state.hidden.has(one.policy));
const networkName = (panel) => RUN.networks[panel.network].name;

function start() {
  drawFacts();
  drawParameters();
  byId("main").hidden = false;
  byId("panel").hidden = !RUN.panels.length;
  if (!RUN.panels.length) return;
  drawPicker();
  for (const radio of document.querySelectorAll("input[type=radio]")) {
    radio.addEventListener("change", () => {
      state[radio.name] = radio.value;
      if (radio.name === "scale") drawRegret();
      else drawGraph();
    });
  }
  for (const details of document.querySelectorAll("details.data")) details.addEventListener("toggle", drawNumbers);
  drawRamp(byId("ramp"));
  show(0);
  let width = 0;
  new ResizeObserver(() => {
    if (byId("main").clientWidth === width) return;
    width = byId("main").clientWidth;
    drawCharts();
  }).observe(byId("main"));
}

/** Show a problem on a network. */
function show(place) {
  state.panel = place;
  state.at = panelNow().rounds.length - 1;
  state.worthAt = null;
  byId("finding").textContent = panelNow().finding;
  byId("finding").hidden = RUN.panels.length < 2; // else the headline says it
  for (const tab of byId("picker").children) {
    const chosen = Number(tab.dataset.place) === place;
    tab.setAttribute("aria-selected", chosen);
    tab.tabIndex = chosen ? 0 : -1;
    if (chosen) byId("panel").setAttribute("aria-labelledby", tab.id);
  }
  drawLegend();
  drawAll();
}

function drawAll() {
  drawCharts();
  drawTable();
  drawSimilarityMaps();
  drawGraph();
}

function drawCharts() {
  drawRegret();
  drawDifference();
  drawCosts(byId("costs"), shownSeries());
  drawWorth();
  drawNumbers();
}

function drawPicker() {
  const picker = byId("picker");
  picker.hidden = RUN.panels.length < 2;
  RUN.panels.forEach((panel, place) => picker.append(make("button", {
    type: "button", role: "tab", id: `tab-${place}`, "aria-controls": "panel", "data-place": place, onclick: () => show(place),
  },
  make("span", { class: "where" }, networkName(panel)), make("span", { class: "what" }, panel.problem),
  spark(panel), make("span", { class: "brief" }, panel.brief))));
  picker.addEventListener("keydown", (event) => {
    const count = RUN.panels.length;
    const to = { ArrowRight: state.panel + 1, ArrowDown: state.panel + 1, ArrowLeft: state.panel - 1, ArrowUp: state.panel - 1, Home: 0, End: count - 1 }[event.key];
    if (to === undefined) return;
    event.preventDefault();
    show((to + count) % count);
    byId(`tab-${state.panel}`).focus();
  });
}

/** The curves of a panel in little. */
function spark(panel) {
  const high = Math.max(1e-9, ...panel.series.flatMap((one) => one.regret).filter(known)), last = panel.rounds.at(-1);
  return draw("svg", { viewBox: "0 0 74 36", width: 74, height: 36, "aria-hidden": "true" }, ...panel.series.map((one) => draw("path", {
    class: "line", tint: one.policy, "stroke-dasharray": dashOf(one.policy), "data-spark": one.policy,
    d: pathOf(panel.rounds.map((t, i) => (known(one.regret[i]) ? [1 + (72 * t) / last, 34 - (32 * Math.max(0, one.regret[i])) / high] : null))),
  })));
}

function drawLegend() {
  const buttons = panelNow().series.map(({ policy }) => make("button", {
    type: "button", "aria-pressed": !state.hidden.has(policy), "data-toggle": policy, onclick: () => toggle(policy),
  }, swatch(policy), nameOf(policy)));
  const all = make("button", { type: "button", class: "all", onclick: () => { state.hidden.clear(); pressed(); byId("legend").firstChild.focus(); } }, "show all");
  byId("legend").replaceChildren(...buttons, all);
  pressed(false);
}

function toggle(policy) {
  if (!state.hidden.delete(policy)) state.hidden.add(policy);
  pressed();
}

/** Say on the buttons what is shown; the buttons stay, and so does the focus. */
function pressed(redraw = true) {
  for (const button of byId("legend").querySelectorAll("[data-toggle]")) {
    button.setAttribute("aria-pressed", !state.hidden.has(Number(button.dataset.toggle)));
  }
  byId("legend").lastChild.hidden = !panelNow().series.some(({ policy }) => state.hidden.has(policy));
  for (const line of document.querySelectorAll("[data-spark]")) line.style.display = state.hidden.has(Number(line.dataset.spark)) ? "none" : "";
  if (!redraw) return;
  drawCharts();
  drawTable();
  drawSimilarityMaps();
}

const regretLines = () => shownSeries().map((one) => ({ policy: one.policy, y: one.regret, half: one.half, dash: dashOf(one.policy) }));
const differenceLines = () => shownSeries()
  .filter((one) => one.policy !== panelNow().baseline && one.difference.some(known))
  .map((one) => ({ policy: one.policy, y: one.difference, half: one.differenceHalf, dash: dashOf(one.policy) }));

const charts = {};

/** Draw a chart, or say why there is none; keep the focus on it. */
function chartInto(name, given, none) {
  const host = byId(`${name}-chart`), focused = host.contains(document.activeElement);
  delete charts[name];
  byId(`${name}-read`).hidden = !given.lines.length;
  if (!given.lines.length) {
    host.replaceChildren(emptyNote(none));
    return;
  }
  charts[name] = lineChart(host, given);
  if (focused) charts[name].focus();
}

function drawRegret() {
  const log = state.scale === "log";
  chartInto("regret", { rounds: panelNow().rounds, lines: regretLines(), logarithmic: log, reference: log, label: "Regret per agent", onRead: read },
    "No policy is chosen in the legend.");
  byId("slope-note").hidden = !log;
  read(state.at);
}

function drawDifference() {
  const panel = panelNow(), base = nameOf(panel.baseline), lines = differenceLines();
  const anything = panel.series.some((one) => one.policy !== panel.baseline && one.difference.some(known));
  byId("difference-note").textContent = anything
    ? `Regret minus that of ${base} in the same trial, so that what trials have in common drops out. Below 0 is better than ${base}.`
    : `There is nothing to compare with ${base} yet.`;
  chartInto("difference", { rounds: panel.rounds, lines, zero: true, label: `Regret minus that of ${base}`, onRead: read },
    anything ? `No policy but ${base} is chosen in the legend.` : "");
  byId("difference-chart").parentElement.parentElement.querySelector("details").hidden = !lines.length;
  read(state.at);
}

/** Read all curves at one round. */
function read(at) {
  state.at = at;
  const round = panelNow().rounds[at], log = state.scale === "log";
  const slopes = new Map(panelNow().series.map((one) => [one.policy, one.slope]));
  const rows = (lines, more) => lines.map(({ policy, y, half }) => ({
    policy, value: withHalf(y[at], half[at]), under: more ? more(policy) : null, sort: known(y[at]) ? y[at] : Infinity,
  }));
  const slopeText = (policy) => `slope ${known(slopes.get(policy)) ? grouped(slopes.get(policy), 2) : "–"}`;
  for (const [name, lines, more] of [["regret", regretLines(), log ? slopeText : null], ["difference", differenceLines(), null]]) {
    if (!charts[name]) continue;
    const found = rows(lines, more);
    readOut(byId(`${name}-read`), round, name === "regret" ? "regret" : `minus ${nameOf(panelNow().baseline)}`, found);
    charts[name].read(at, `round ${round}: ${found.map((row) => `${nameOf(row.policy)} ${row.value}`).join("; ")}`);
  }
}

function drawNumbers() {
  for (const [name, lines] of [["regret", regretLines()], ["difference", differenceLines()]]) {
    const host = byId(`${name}-data`);
    if (host.parentElement.open) numbersTable(host, panelNow().rounds, lines);
    else host.replaceChildren();
  }
}

function drawTable() {
  const host = byId("finals"), focused = host.contains(document.activeElement) && document.activeElement.dataset.key;
  drawFinals(host, panelNow(), state.hidden, state.sorting, (key) => {
    const down = state.sorting && state.sorting.key === key && !state.sorting.down;
    state.sorting = { key, down: Boolean(down) };
    drawTable();
  });
  if (focused) host.querySelector(`[data-key="${focused}"]`).focus();
}

async function drawSimilarityMaps() {
  const panel = panelNow(), maps = panel.similarity, learns = panel.series.some((one) => one.worth.length);
  for (const id of ["maps", "pointed", "ramp"]) byId(id).hidden = !maps;
  byId("pointed").textContent = "";
  byId("similarity-note").textContent = maps
    ? `Rows judge, columns are judged; agents who are truly alike stand together. After the last round of the first trial.${maps.rows < maps.agents ? ` Neighbouring agents are averaged to ${maps.rows} rows.` : ""}`
    : learns ? "The maps are left out: the first trial is not done, or the page would be too large."
      : "No policy here learns K_z, or the problem does not know its truth.";
  if (!maps) return;
  await drawMaps(byId("maps"), maps, state.hidden, (text) => { byId("pointed").textContent = text; });
}

function drawWorth() {
  const there = shownSeries().filter((one) => one.worth.length), all = panelNow().series.filter((one) => one.worth.length);
  for (const id of ["worth", "worth-h", "worth-note"]) byId(id).hidden = !all.length;
  if (!all.length) return;
  const rounds = all[0].worth.map((row) => row[0]);
  if (state.worthAt === null) state.worthAt = rounds.length - 1;
  chartInto("worth", { rounds, lines: worthLines(there), top: 1.02, label: "Mean K_z", onRead: readWorth }, "No policy that learns is chosen in the legend.");
  readWorth(state.worthAt);
}

function readWorth(at) {
  state.worthAt = at;
  if (!charts.worth) return;
  const there = shownSeries().filter((one) => one.worth.length), round = there[0].worth[at][0];
  const rows = there.map((one) => {
    const [, alike, strangers, error, correlation] = one.worth[at];
    return {
      policy: one.policy, value: `${decimal(alike)} / ${decimal(strangers)}`, sort: known(error) ? error : Infinity,
      under: `error ${decimal(error)}, corr. ${decimal(correlation)}`,
    };
  });
  readOut(byId("worth-read"), round, "alike / strangers", rows);
  charts.worth.read(at, `round ${round}: ${rows.map((row) => `${nameOf(row.policy)} ${row.value}, ${row.under}`).join("; ")}`);
}

function drawGraph() {
  const network = RUN.networks[panelNow().network], drawn = Boolean(network.ids);
  byId("network-h").textContent = `Network: ${network.name}`;
  byId("grouping").hidden = !drawn;
  byId("network-note").textContent = drawn ? networkText(network, state.grouping)
    : network.leftOut ? "The drawing is left out: the page would be too large." : "The network is drawn when the run is finished.";
  if (drawn) drawNetwork(byId("graph"), network, state.grouping);
  else byId("graph").replaceChildren();
}

function drawFacts() {
  const agents = [...new Set(RUN.panels.map((panel) => panel.agents))].sort((a, b) => a - b);
  const fact = (value, name) => make("li", {}, make("b", {}, value), ` ${name}`);
  byId("facts").replaceChildren(
    ...(agents.length ? [fact(agents.map((n) => grouped(n, 0)).join(", "), agents.length === 1 && agents[0] === 1 ? "agent" : "agents")] : []),
    fact(grouped(RUN.rounds, 0), RUN.rounds === 1 ? "round" : "rounds"), fact(grouped(RUN.trials, 0), RUN.trials === 1 ? "trial each" : "trials each"),
    fact(grouped(RUN.policies.length, 0), RUN.policies.length === 1 ? "policy" : "policies"), make("li", {}, "seed ", make("b", {}, String(RUN.seed))));
  if (RUN.done < RUN.expected) {
    byId("notice").hidden = false;
    byId("notice").textContent = `This run is not finished: ${grouped(RUN.done, 0)} of ${grouped(RUN.expected, 0)} trials are done, and the page shows those.`;
  }
}

function drawParameters() {
  const given = RUN.parameters, rows = [["seed", `${RUN.seed}; trial i plays with seed + i, from i = 0`]];
  rows.push(["versions", Object.entries(given.versions).map(([name, version]) => `${name} ${version}`).join(", ") + (given.machine ? `, on ${given.machine}` : "")]);
  for (const [name, hash] of Object.entries(given.graphs)) rows.push([`hash of ${name}`, hash]);
  for (const [name, hash] of Object.entries(given.modules)) rows.push([`hash of ${name}`, hash]);
  byId("parameters").append(...rows.flatMap(([name, value]) => [make("dt", {}, name), make("dd", {}, name.startsWith("hash") ? make("code", {}, value) : value)]));
  byId("toml").textContent = given.toml;
}

start();
