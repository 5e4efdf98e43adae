// Whom the node trusts: its row of K_z as bars, each with how it went since the page was opened.

import { Series } from "./history.js";
import { byId, clock, counted, grouped, known, listed, make, span, write } from "./marks.js";
import { sparkline } from "./rewards.js";

const MOST_SAMPLES = 60, APART_S = 2, REDRAWN_S = 4, MOST_NAMED = 12;
const FEW = 6; // so few sites leave room for larger lines
const LEAST_OBSERVATIONS = 10;

/**
 * Whether K_z was estimated from something; a node adopts its first beliefs from next to nothing.
 *
 * From fewer observations than one a site, zeros everywhere say nothing of any site.
 */
export function isEstimated({ estimated, observations, node, worth }) {
  const others = Object.entries(worth).filter(([name]) => name !== node);
  if (!estimated || !others.length) return true;
  const least = Math.max(LEAST_OBSERVATIONS, others.length + 1);
  return observations >= least || others.some(([, value]) => value > 0);
}

export class TrustPicture {
  constructor() {
    this.host = byId("trust-bars");
    this.history = new Map();
    this.drawn = "";
  }

  /** Take a SimilarityReply, a PeersReply, who is quarantined, and the node's time. */
  show(similarity, peers, quarantined, now) {
    const worth = new Map(Object.entries(similarity.worth));
    const others = peers.peers.filter((peer) => peer.name !== similarity.node);
    const heard = others.filter((peer) => peer.heard && known(worth.get(peer.name)));
    const unheard = others.filter((peer) => !heard.includes(peer));
    const ready = isEstimated(similarity);
    const trusted = ready ? heard.map(({ name }) => ({ name, value: worth.get(name) })) : [];
    trusted.sort((a, b) => b.value - a.value || (a.name < b.name ? -1 : 1));
    this.remember(trusted, now);
    write(byId("trust-words"), words(similarity, heard, ready));
    byId("trust-table").hidden = !trusted.length;
    byId("not-yet").hidden = ready || !heard.length;
    const state = JSON.stringify([trusted, unheard, quarantined, peers.ttl]);
    if (state === this.drawn && now - this.at < REDRAWN_S) return;
    this.drawn = state;
    this.at = now;
    const refused = new Set(quarantined), few = trusted.length <= FEW;
    byId("trust").classList.toggle("few", few);
    const rows = trusted.map(({ name, value }) => this.row(name, value, refused.has(name), now, few));
    this.host.replaceChildren(...rows);
    byId("unheard").hidden = !unheard.length;
    write(byId("unheard"), unheardWords(unheard, peers.ttl));
  }

  remember(trusted, now) {
    const present = new Set(trusted.map(({ name }) => name));
    for (const name of this.history.keys()) if (!present.has(name)) this.history.delete(name);
    for (const { name, value } of trusted) {
      if (!this.history.has(name)) this.history.set(name, new Series(MOST_SAMPLES));
      const series = this.history.get(name), last = series.samples.at(-1);
      if (last && now < last.at) series.clear();
      if (!last || now < last.at || now - last.at >= APART_S) series.push({ at: now, value });
    }
  }

  row(name, value, refused, now, few) {
    const { samples } = this.history.get(name), first = samples[0], moved = value - first.value;
    const change = Math.abs(moved) < 0.005 ? "±0.00" : (moved > 0 ? "+" : "") + grouped(moved, 2);
    const since = `${span(now - first.at)} ago, at ${clock(first.at)}, it was ${grouped(first.value, 2)}`;
    const course = [...samples.map((sample) => [sample.at, sample.value]), [now, value]];
    const [wide, high] = few ? [104, 38] : [64, 20];
    const fill = make("span", { class: "fill" });
    fill.style.width = `${Math.max(0, Math.min(1, value)) * 100}%`;
    const mark = refused ? make("em", {}, "quarantined") : null;
    return make("tr", { class: refused ? "refused" : null },
      make("th", { scope: "row", title: name }, make("span", { class: "cut" }, name), mark),
      make("td", { class: "bar" }, make("span", { class: "track" }, fill)),
      make("td", { class: "number" }, grouped(value, 2)),
      make("td", { class: "trend" }, sparkline(course, 0, 1, wide, high, `K_z of ${name}: ${since}`)),
      make("td", { class: "change soft", title: since }, change));
  }
}

function words(similarity, heard, ready) {
  if (!heard.length) return "No other site is heard.";
  if (!ready) return "";
  const source = similarity.estimated
    ? `Estimated from ${counted(similarity.observations, "observation", "observations")}.`
    : "Given in the policy, not estimated.";
  return `${source} 1: its observations count like the own ones; 0: they are heard and not used.`;
}

function unheardWords(unheard, ttl) {
  const far = unheard.filter((peer) => peer.distance !== null).map((peer) => peer.name);
  const apart = unheard.filter((peer) => peer.distance === null).map((peer) => peer.name);
  const parts = [
    far.length ? `${listed(far, MOST_NAMED)}, further than γ = ${counted(ttl, "hop", "hops")} away` : "",
    apart.length ? `${listed(apart, MOST_NAMED)}, where no path leads` : "",
  ].filter(Boolean);
  return `Not heard: ${parts.join("; ")}. They have no value, which is not 0.`;
}
