// Who hears whom? The network, with its cliques or its centres.

const MARGIN = 24, SIDE = 1000;

function drawNetwork(host, network, grouping) {
  const count = network.ids.length;
  const at = (agent) => [MARGIN + network.at[2 * agent], MARGIN + network.at[2 * agent + 1] * 0.72];
  const size = Math.max(4, Math.min(14, 130 / Math.sqrt(count)));
  const labels = grouping === "cliques" ? network.cliques : network.centres;
  const sizes = new Map();
  labels.forEach((label) => sizes.set(label, (sizes.get(label) || 0) + 1));
  const colours = new Map(labels.map((label, agent) => [label, network.colours[grouping][agent]]));
  const faint = [], ties = new Map();
  const tie = (label, u, v) => ties.set(label, `${ties.get(label) || ""}${pathOf([at(u), at(v)])}`);
  for (let place = 0; place < network.shown.length; place += 2) {
    const u = network.shown[place], v = network.shown[place + 1];
    if (grouping === "cliques" && labels[u] === labels[v]) tie(labels[u], u, v);
    else faint.push(pathOf([at(u), at(v)]));
  }
  if (grouping === "centres") labels.forEach((centre, agent) => centre >= 0 && centre !== agent && tie(centre, centre, agent));
  const svg = draw("svg", {
    viewBox: `0 0 ${SIDE + 2 * MARGIN} ${0.72 * SIDE + 2 * MARGIN}`, role: "img", "aria-label": networkText(network, grouping),
  }, draw("path", { class: "faint", d: faint.join("") }));
  for (const [label, d] of ties) svg.append(draw("path", { class: "tie", d, group: colours.get(label) }));
  for (let agent = 0; agent < count; agent += 1) {
    const [cx, cy] = at(agent), centre = grouping === "centres" && labels[agent] === agent;
    const alone = sizes.get(labels[agent]) === 1 || labels[agent] < 0;
    const kind = [alone ? "alone" : "", centre ? "centre" : ""].join(" ").trim();
    svg.append(draw("circle", { cx, cy, r: centre && !alone ? size * 1.5 : size, class: kind || null, group: colours.get(labels[agent]) },
      draw("title", {}, agentText(network, grouping, agent, sizes.get(labels[agent])))));
  }
  host.replaceChildren(svg);
}

function agentText(network, grouping, agent, size) {
  const name = `agent ${network.ids[agent]}`;
  if (grouping === "cliques") return size === 1 ? `${name}, in no clique with others` : `${name}, in a clique of ${size}`;
  const centre = network.centres[agent];
  if (centre < 0) return name;
  return centre === agent ? `${name}, centre of ${size}` : `${name}, follows agent ${network.ids[centre]}`;
}

/** What the drawing shows, in words. */
function networkText(network, grouping) {
  const parts = [`${counted(network.agents, "agent", "agents")}, ${counted(network.edges, "edge", "edges")}, ` +
    (network.diameter === null ? "not connected" : `diameter ${network.diameter}`) + `; news travels γ = ${counted(network.ttl, "hop", "hops")}.`];
  if (grouping === "cliques") {
    const best = network.bound === network.cliqueCount ? "which is the fewest possible" : `and at least ${grouped(network.bound, 0)} are needed`;
    parts.push(`${counted(network.cliqueCount, "clique covers", "cliques cover")} all agents, ${best}` +
      (network.alone ? `; ${counted(network.alone, "agent is", "agents are")} alone in theirs, drawn grey.` : "."));
  } else parts.push(`${counted(network.centreCount, "centre decides", "centres decide")} for all; lines lead to whom each speaks for.`);
  const drawn = network.shown.length / 2;
  if (network.ids.length < network.agents) parts.push(`Drawn are the ${grouped(network.ids.length, 0)} agents with the most neighbours.`);
  if (drawn < network.edges) parts.push(`Of the edges ${grouped(drawn, 0)} are drawn, those within cliques first.`);
  if (network.fresh) parts.push("Every trial draws its own network; this is the first one's.");
  return parts.join(" ");
}
