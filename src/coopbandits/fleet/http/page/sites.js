// All sites as a table: hops, link, records held, lag. It says in words what the picture shows.

import { byId, clock, counted, grouped, known, make, span, write } from "./marks.js";

const MOST_ROWS = 500, FIRST_ROWS = 12;
const LABELS = ["Hops", "Link", "K_z", "Records", "Last", "Lacks of ours"];

export class SiteTable {
  constructor() {
    this.body = byId("site-rows");
    this.rows = new Map();
    this.all = false;
    byId("more-sites").addEventListener("click", () => {
      this.all = !this.all;
      this.show(...this.shown);
    });
  }

  /** Take a PeersReply, the node's status, its time now, and whether K_z is known yet. */
  show(peers, status, now, trusting) {
    this.shown = [peers, status, now, trusting];
    const refused = new Set(status.quarantined);
    const others = peers.peers.filter((peer) => peer.name !== peers.node);
    others.sort((a, b) => hopsOf(a) - hopsOf(b) || (a.name < b.name ? -1 : 1));
    const shown = others.slice(0, MOST_ROWS);
    const left = others.length - shown.length;
    const all = counted(others.length, "other site", "other sites");
    write(byId("sites-words"), left ? `The ${grouped(MOST_ROWS)} nearest of ${all}.` : "");
    const many = shown.length + 1 > FIRST_ROWS + 3;
    byId("more-sites").hidden = !many;
    byId("more-sites").setAttribute("aria-expanded", String(this.all));
    write(byId("more-sites"), this.all ? "Show the nearest sites only" : `Show all ${grouped(shown.length + 1)} sites`);
    const drawn = many && !this.all ? shown.slice(0, FIRST_ROWS - 1) : shown;
    const order = drawn.map((peer) => this.row(peer, peers.ttl, refused.has(peer.name), now, trusting));
    const present = new Set([peers.node, ...drawn.map((peer) => peer.name)]);
    for (const name of this.rows.keys()) if (!present.has(name)) this.rows.delete(name);
    const own = peers.peers.find((peer) => peer.name === peers.node);
    order.unshift(this.ownRow(peers.node, status, own, now));
    const { children } = this.body;
    if (order.length !== children.length || order.some((row, i) => children[i] !== row)) {
      this.body.replaceChildren(...order);
    }
  }

  row(peer, ttl, refused, now, trusting) {
    const far = peer.distance === null ? "no path" : grouped(peer.distance);
    const link = !peer.neighbour ? "–" : peer.linked ? "up" : peer.linked === false ? "down" : "not known";
    const value = known(peer.worth) ? grouped(peer.worth, 2) : "–";
    const worth = !peer.heard ? "not heard" : trusting ? value : "not yet";
    const lag = !peer.heard ? "–" : peer.last_at === null ? "none yet" : `${span(now - peer.last_at)} ago`;
    const behind = known(peer.behind) ? grouped(peer.behind) : peer.neighbour ? "not known" : "–";
    const state = refused ? "quarantined" : "";
    const held = peer.heard ? grouped(peer.records) : "–";
    const row = this.filled(peer.name, [state, far, link, worth, held, lag, behind]);
    row.classList.toggle("unheard", !peer.heard);
    row.classList.toggle("refused", refused);
    row.children[2].classList.toggle("bad", peer.linked === false);
    row.children[6].classList.toggle("bad", peer.linked === false && peer.behind > 0);
    row.children[5].title = peer.last_at === null ? "" : `The last record came at ${clock(peer.last_at)}.`;
    const within = `The node learns from sites at most γ = ${counted(ttl, "hop", "hops")} away.`;
    row.children[1].title = peer.heard ? "" : within;
    return row;
  }

  ownRow(name, status, peer, now) {
    const lag = peer && known(peer.last_at) ? `${span(now - peer.last_at)} ago` : "–";
    const row = this.filled(name, ["this node", "0", "–", "1.00", grouped(status.own_records), lag, "–"]);
    row.classList.add("own");
    return row;
  }

  filled(name, [state, ...cells]) {
    let row = this.rows.get(name);
    if (!row) {
      const head = make("th", { scope: "row" }, make("span", {}, name), make("em"));
      row = make("tr", {}, head, ...LABELS.map((label) => make("td", { "data-label": label })));
      this.rows.set(name, row);
    }
    write(row.children[0].children[1], state);
    cells.forEach((text, place) => {
      write(row.children[place + 1], text);
      row.children[place + 1].classList.toggle("nothing", text === "–");
    });
    return row;
  }
}

const hopsOf = (peer) => (peer.distance === null ? Infinity : peer.distance);
