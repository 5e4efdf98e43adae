// The network as this node sees it: who is joined to whom, who is heard, which links are up.

import { adjacency, fitted, pathBetween, placed } from "./layout.js";
import { counted, draw, grouped, known, shortened } from "./marks.js";
import { Travel } from "./travel.js";

/** More sites than this are not drawn; the nearest ones are. */
export const MOST_DRAWN = 300;
const LETTER = 6.6, LINE = 14;

export class NetworkPicture {
  constructor(host) {
    this.host = host;
    this.svg = draw("svg", { role: "img" });
    this.still = draw("g", {});
    const layer = draw("g", { class: "moving" });
    this.svg.append(this.still, layer);
    host.append(this.svg);
    this.places = new Map();
    this.neighbours = new Map();
    this.travel = new Travel(layer, (name) => this.points?.get(name));
    this.drawn = "";
    new ResizeObserver(() => this.redraw()).observe(host);
  }

  /** Take what is known now: a PeersReply, and who is quarantined. */
  show(reply, quarantined) {
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
    const width = Math.round(this.host.clientWidth), height = Math.round(this.host.clientHeight);
    if (!this.reply || width < 50 || height < 50) return;
    const looks = this.sites.map((s) => [s.name, s.heard, s.linked, Math.round((s.worth || 0) * 50)]);
    const state = JSON.stringify([width, height, this.shape, looks, [...this.quarantined]]);
    this.svg.setAttribute("aria-label", this.words());
    if (state === this.drawn) return;
    this.drawn = state;
    this.svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
    const size = Math.max(4.5, Math.min(13, 56 / Math.sqrt(this.sites.length)));
    this.points = fitted(this.places, width, height, Math.min(48, width / 9));
    this.still.replaceChildren(...this.lines(), ...this.circles(size), ...this.labels(size, width, height));
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
        draw("title", {}, siteText(site, own, this.reply.ttl, this.quarantined.has(site.name))));
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
    const labels = [];
    for (const site of this.sites) {
      const [x, y] = this.points.get(site.name), own = site.name === this.reply.node;
      const text = shortened(site.name, own ? 24 : 16);
      const wide = [...text].length * LETTER * (own ? 1.15 : 1);
      const gap = size * (own ? 1.25 : 1) + 5;
      const spots = [
        [x - wide / 2, y + gap], [x - wide / 2, y - gap - LINE],
        [x + gap, y - LINE / 2], [x - gap - wide, y - LINE / 2],
      ].filter(([left, top]) => left >= 2 && top >= 0 && left + wide <= width - 2 && top + LINE <= height);
      const free = spots.find(([left, top]) =>
        taken.every((box) => left > box[2] || left + wide < box[0] || top > box[3] || top + LINE < box[1]));
      const spot = free || (own ? spots[0] || [2, Math.max(0, y - gap - LINE)] : null);
      if (!spot) continue;
      taken.push([spot[0], spot[1], spot[0] + wide, spot[1] + LINE]);
      labels.push(draw("text", {
        class: own ? "name own" : site.heard ? "name" : "name unheard",
        x: spot[0] + wide / 2, y: spot[1] + LINE - 3, "text-anchor": "middle",
      }, text));
    }
    return labels;
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
    return [
      `${counted(sites.length + left, "site", "sites")} and ${counted(reply.edges.length, "link", "links")};`,
      `this node learns from ${counted(heard, "other site", "other sites")}, at most γ = ` +
        `${counted(reply.ttl, "hop", "hops")} away.`,
      left ? `Drawn are the ${grouped(sites.length)} sites that are nearest to it.` : "",
      down.length ? `The link to ${down.slice(0, 5).join(", ")} is down.` : "",
    ].filter(Boolean).join(" ");
  }
}

function siteText(site, own, ttl, quarantined) {
  if (own) return `${site.name}: this node`;
  const hops = site.distance === null ? "no way leads there" : counted(site.distance, "hop", "hops");
  const heard = site.heard
    ? `K_z = ${known(site.worth) ? grouped(site.worth, 2) : "not known"}, ` +
      counted(site.records, "record", "records")
    : `not heard: it is further than γ = ${ttl}`;
  return `${site.name}: ${hops}; ${heard}${quarantined ? "; quarantined" : ""}`;
}

const hopsOf = (peer) => (peer.distance === null ? Infinity : peer.distance);
const byName = (a, b) => (a.name < b.name ? -1 : a.name > b.name ? 1 : 0);
const short = (value) => value.toFixed(1);
