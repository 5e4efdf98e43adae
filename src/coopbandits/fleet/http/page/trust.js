// Whom the node trusts: its row of K_z as bars, each with how it went since the page was opened.

import { Series } from "./history.js";
import { byId, clock, counted, grouped, known, make, span, write } from "./marks.js";
import { sparkline } from "./rewards.js";

const MOST_SAMPLES = 60, APART_S = 2, MOST_NAMED = 12;

export class TrustPicture {
  constructor() {
    this.host = byId("trust-bars");
    this.history = new Map();
    this.drawn = "";
  }

  /** Take a SimilarityReply, a PeersReply, who is quarantined, and the node's time. */
  show(similarity, peers, quarantined, now) {
    const worth = new Map(Object.entries(similarity.worth));
    const heard = new Set(peers.peers.filter((peer) => peer.heard).map((peer) => peer.name));
    const others = peers.peers.filter((peer) => peer.name !== similarity.node);
    const trusted = others.filter((peer) => heard.has(peer.name) && known(worth.get(peer.name)))
      .map((peer) => ({ name: peer.name, value: worth.get(peer.name) }));
    trusted.sort((a, b) => b.value - a.value || (a.name < b.name ? -1 : 1));
    const unheard = others.filter((peer) => !heard.has(peer.name) || !known(worth.get(peer.name)));
    this.remember(trusted, now);
    write(byId("trust-words"), this.words(similarity, trusted, unheard, peers.ttl));
    const state = JSON.stringify([trusted, unheard.map((peer) => peer.name), quarantined, peers.ttl]);
    if (state === this.drawn && now - this.at < 10) return;
    this.drawn = state;
    this.at = now;
    const refused = new Set(quarantined);
    const rows = trusted.map(({ name, value }) => this.row(name, value, refused.has(name), now));
    this.host.replaceChildren(...rows);
    byId("unheard").hidden = !unheard.length;
    const names = unheard.slice(0, MOST_NAMED).map((peer) => peer.name).join(", ");
    const more = unheard.length > MOST_NAMED ? ` and ${grouped(unheard.length - MOST_NAMED)} more` : "";
    const ttl = counted(peers.ttl, "hop", "hops");
    const far = `further than γ = ${ttl} away, so without a value, which is not 0`;
    write(byId("unheard"), `Not heard (${far}): ${names}${more}.`);
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

  row(name, value, refused, now) {
    const { samples } = this.history.get(name), first = samples[0], moved = value - first.value;
    const change = Math.abs(moved) < 0.005 ? "±0.00" : (moved > 0 ? "+" : "") + grouped(moved, 2);
    const since = `${span(now - first.at)} ago, at ${clock(first.at)}, it was ${grouped(first.value, 2)}`;
    const course = samples.map((sample) => [sample.at, sample.value]);
    const fill = make("span", { class: "fill" });
    fill.style.width = `${Math.max(0, Math.min(1, value)) * 100}%`;
    const mark = refused ? make("em", {}, "quarantined") : null;
    return make("tr", { class: refused ? "refused" : null },
      make("th", { scope: "row", title: name }, make("span", { class: "cut" }, name), mark),
      make("td", { class: "bar" }, make("span", { class: "track" }, fill)),
      make("td", { class: "number" }, grouped(value, 2)),
      make("td", { class: "trend" }, sparkline(course, 0, 1, 64, 20, `K_z of ${name}: ${since}`)),
      make("td", { class: "change soft", title: since }, change));
  }

  words(similarity, trusted, unheard, ttl) {
    const source = similarity.estimated
      ? `Estimated from ${counted(similarity.observations, "observation", "observations")}.`
      : "Given in the policy, not estimated.";
    if (!trusted.length && !unheard.length) return `${source} There are no other sites.`;
    if (!trusted.length) return `${source} No other site is heard within γ = ${counted(ttl, "hop", "hops")}.`;
    return `${source} 1: its observations count like the own ones; 0: they are heard and not used.`;
  }
}
