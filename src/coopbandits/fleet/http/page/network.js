// The network as this node sees it: who is joined to whom, who is heard, which links are up.

import { adjacency, fitted, pathBetween, placed } from "./layout.js";
import { counted, draw, grouped, known, listed, shortened } from "./marks.js";
import { Travel } from "./travel.js";

/** More sites than this are not drawn; the nearest ones are. */
export const MOST_DRAWN = 300;
const LETTER = 6.6, LINE = 14, LEAST_HEIGHT = 150, MARGIN = 44;

export class NetworkPicture {
  constructor(host) {
    this.host = host;
    this.svg = draw("svg", { role: "img" });
    this.still = draw("g", {});
    const layer = draw("g", { class: "moving" });
    this.names = draw("g", {}); // above what moves, so that names stay readable
    this.svg.append(this.still, layer, this.names);
    host.append(this.svg);
    this.places = new Map();
    this.neighbours = new Map();
    this.travel = new Travel(layer, (name) => this.points?.get(name));
    this.drawn = "";
    new ResizeObserver(() => this.redraw()).observe(host);
  }

  /** Take what is known now: a PeersReply, who is quarantined, and whether K_z is known yet. */
  show(reply, quarantined, trusting) {
    this.trusting = trusting;
    const own = { name: reply.node, distance: 0, heard: true, worth: 1, neighbour: false };
    const others = reply.peers.filter((peer) => peer.name !== reply.node);
    const nearest = others.sort((a, b) => hopsOf(a) - hopsOf(b) || byName(a, b));
    this.sites = [own, ...nearest.slice(0, MOST_DRAWN - 1)];
    this.left = others.length + 1 - this.sites.length;
    const names = this.sites.map((site) => site.name), wanted = new Set(names);
    const edges = reply.edges.filter(([u, v]) => wanted.has(u) && wanted.has(v));
    const shape = JSON.stringify([names, edges]);
    if (shape !== this.shape) {
      this.shape = shape;
      this.places = placed(names, edges);
      this.neighbours = adjacency(names, edges);
    }
    this.reply = reply;
    this.edges = edges;
    this.quarantined = new Set(quarantined);
    this.redraw();
  }

  redraw() {
    const width = Math.round(this.host.clientWidth);
    if (!this.reply || width < 50) return;
    const looks = this.sites.map((s) => [s.name, s.heard, s.linked, Math.round((s.worth || 0) * 50)]);
    const state = JSON.stringify([width, this.shape, this.trusting, looks, [...this.quarantined]]);
    this.svg.setAttribute("aria-label", this.words());
    if (state === this.drawn) return;
    this.drawn = state;
    const most = parseFloat(getComputedStyle(this.host).maxHeight) || 400;
    const { points, height: needed } = fitted(this.places, width, most, Math.min(MARGIN, width / 9));
    const height = Math.max(LEAST_HEIGHT, needed), down = (height - needed) / 2;
    this.points = new Map([...points].map(([name, [x, y]]) => [name, [x, y + down]]));
    this.svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
    this.host.style.height = `${height}px`;
    const size = Math.max(4.5, Math.min(13, 56 / Math.sqrt(this.sites.length)));
    this.still.replaceChildren(...this.lines(), ...this.circles(size));
    this.names.replaceChildren(...this.labels(size, width, height));
  }

  lines() {
    const own = this.reply.node, others = [];
    const lines = [];
    const states = new Map(this.sites.map((site) => [site.name, site.linked]));
    for (const [u, v] of this.edges) {
      const [a, b] = [this.points.get(u), this.points.get(v)];
      if (u !== own && v !== own) {
        others.push(`M${a.map(short)}L${b.map(short)}`);
        continue;
      }
      const other = u === own ? v : u, up = states.get(other);
      const kind = up === false ? "link down" : up ? "link up" : "link";
      const text = up === false ? "is down" : up ? "is up" : "has an unknown state";
      lines.push(draw("line", { class: kind, x1: a[0], y1: a[1], x2: b[0], y2: b[1] },
        draw("title", {}, `The link to ${other} ${text}.`)));
    }
    return [draw("path", { class: "edges", d: others.join("") }), ...lines];
  }

  circles(size) {
    return this.sites.flatMap((site) => {
      const [cx, cy] = this.points.get(site.name), own = site.name === this.reply.node;
      const kind = ["site", own ? "own" : "", site.heard ? "heard" : "unheard",
        this.quarantined.has(site.name) ? "quarantined" : ""].filter(Boolean).join(" ");
      const circle = draw("circle", { class: kind, cx, cy, r: own ? size * 1.25 : size },
        draw("title", {}, siteText(site, own, this.reply.ttl, this.trusting) +
          (this.quarantined.has(site.name) ? "; quarantined" : "")));
      circle.style.setProperty("--worth", `${Math.round(100 * Math.max(0, Math.min(1, site.worth || 0)))}%`);
      if (!this.quarantined.has(site.name)) return [circle];
      const r = size * 0.6;
      const cross = `M${cx - r} ${cy - r}L${cx + r} ${cy + r}M${cx + r} ${cy - r}L${cx - r} ${cy + r}`;
      return [circle, draw("path", { class: "cross", d: cross })];
    });
  }

  /** Names, the nearest first; one that would cover another thing is left to the tooltip. */
  labels(size, width, height) {
    const taken = [...this.points.values()].map(([x, y]) => [x - size, y - size, x + size, y + size]);
    const edges = this.edges.map(([u, v]) => [this.points.get(u), this.points.get(v)]);
    const labels = [];
    for (const site of this.sites) {
      const [x, y] = this.points.get(site.name), own = site.name === this.reply.node;
      const text = shortened(site.name, own ? 24 : 16);
      const wide = [...text].length * LETTER * (own ? 1.2 : 1);
      const spot = this.spot(x, y, size * (own ? 1.25 : 1) + 5, wide, { taken, edges, width, height });
      if (!spot && !own) continue;
      const [left, top] = spot || [Math.max(2, Math.min(width - wide - 2, x - wide / 2)), y + size + 5];
      taken.push([left, top, left + wide, top + LINE]);
      labels.push(draw("text", {
        class: own ? "name own" : site.heard ? "name" : "name unheard",
        x: left + wide / 2, y: top + LINE - 3, "text-anchor": "middle",
      }, text));
    }
    return labels;
  }

  /** Where a name covers no other thing and the fewest edges; undefined for nowhere. */
  spot(x, y, gap, wide, { taken, edges, width, height }) {
    const [left, top, right, bottom] = [x - gap - wide, y - gap - LINE, x + gap, y + gap];
    const [middle, beside] = [x - wide / 2, y - LINE / 2];
    const shifts = [0, 0.3, -0.3, 0.6, -0.6];
    const spots = [
      ...shifts.flatMap((part) => [[middle + part * wide, bottom], [middle + part * wide, top]]),
      ...shifts.flatMap((part) => [[right, beside + part * LINE], [left, beside + part * LINE]]),
    ].map(([at, down]) => [at, down, at + wide, down + LINE])
      .filter((box) => box[0] >= 2 && box[1] >= 0 && box[2] <= width - 2 && box[3] <= height)
      .filter((box) => taken.every((other) =>
        box[0] > other[2] || box[2] < other[0] || box[1] > other[3] || box[3] < other[1]));
    const covered = spots.map((spot) => edges.reduce((sum, [a, b]) => sum + within(a, b, spot), 0));
    return spots[covered.indexOf(Math.min(...covered))];
  }

  /** Show a note that is about records: made here, handed over, or come from elsewhere. */
  travels(note) {
    const own = this.reply?.node;
    if (!own) return;
    const kind = note.origin === undefined || note.origin === own ? "mine" : "others";
    if (note.kind === "recorded") this.travel.ring(own, "mine");
    else if (note.kind === "sent") this.travel.go([own, note.to], kind);
    else if (note.kind === "received") {
      const way = pathBetween(this.neighbours, note.origin, note.via, own);
      this.travel.go([...(way || [note.via]), own], kind);
    }
  }

  /** What the picture shows, in words. */
  words() {
    const { reply, sites, left } = this;
    const heard = sites.filter((site) => site.heard).length - 1;
    const down = sites.filter((site) => site.linked === false).map((site) => site.name);
    const links = down.length === 1 ? "link" : "links", are = down.length === 1 ? "is" : "are";
    return [
      `${counted(sites.length + left, "site", "sites")} and ${counted(reply.edges.length, "link", "links")};`,
      heard
        ? `this node learns from ${counted(heard, "other site", "other sites")}, at most γ = ` +
          `${counted(reply.ttl, "hop", "hops")} away.`
        : "this node learns from no other site.",
      left ? `Drawn are the ${grouped(sites.length)} sites that are nearest to it.` : "",
      down.length ? `The ${links} to ${listed(down, 5)} ${are} down.` : "",
    ].filter(Boolean).join(" ");
  }
}

function siteText(site, own, ttl, trusting) {
  if (own) return `${site.name}: this node`;
  if (site.distance === null) return `${site.name}: not heard, no path leads there`;
  const hops = counted(site.distance, "hop", "hops");
  if (!site.heard) return `${site.name}: ${hops}; not heard, as it is further than γ = ${ttl}`;
  const worth = trusting && known(site.worth) ? `K_z = ${grouped(site.worth, 2)}` : "K_z not estimated yet";
  return `${site.name}: ${hops}; ${worth}, ${counted(site.records, "record", "records")}`;
}

/** How long the line from a to b is within a box (Liang and Barsky 1984). */
function within([ax, ay], [bx, by], [left, top, right, bottom]) {
  let from = 0, to = 1;
  for (const [step, low, high] of [[bx - ax, left - ax, right - ax], [by - ay, top - ay, bottom - ay]]) {
    if (Math.abs(step) < 1e-9) {
      if (low > 0 || high < 0) return 0;
      continue;
    }
    const [first, last] = [low / step, high / step].sort((one, other) => one - other);
    from = Math.max(from, first);
    to = Math.min(to, last);
  }
  return Math.max(0, to - from) * Math.hypot(bx - ax, by - ay);
}

const hopsOf = (peer) => (peer.distance === null ? Infinity : peer.distance);
const byName = (a, b) => (a.name < b.name ? -1 : a.name > b.name ? 1 : 0);
const short = (value) => value.toFixed(1);
