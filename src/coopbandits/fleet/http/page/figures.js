// The figures of a node: decisions a second, beliefs, links, refusals, disk, and what it is.

import { Series } from "./history.js";
import {
  amount, byId, bytes, clock, counted, decimal, grouped, known, listed, make, signed, span, write,
} from "./marks.js";
import { baselineOf, sparkline } from "./rewards.js";

const WINDOW_S = 10, MOST_SAMPLES = 90, MOST_REASONS = 3;
const MODES = {
  online: "The node decides and learns.",
  apprentice: "An outside policy decides; the node learns and reports how often it would have agreed.",
  off: "A fixed policy decides.",
};

export class Figures {
  constructor() {
    this.recent = [];
    this.rates = new Series(MOST_SAMPLES);
  }

  /** Take a StatusReply and a PeersReply. */
  show(status, peers) {
    this.status = status;
    write(byId("node"), status.node);
    write(byId("fleet"), status.fleet);
    write(byId("mode"), status.mode);
    byId("mode").title = MODES[status.mode] || "";
    byId("mode").dataset.mode = status.mode;
    this.decisions(status);
    this.mean(status);
    this.links(peers);
    const refusals = Object.entries(status.refused).sort((a, b) => b[1] - a[1]);
    const reasons = refusals.slice(0, MOST_REASONS).map(([reason, count]) => `${reason}: ${grouped(count)}`);
    const more = refusals.length - MOST_REASONS;
    if (more > 0) reasons.push(`and ${counted(more, "other reason", "other reasons")}`);
    const refused = refusals.reduce((sum, [, count]) => sum + count, 0);
    tile("refused", grouped(refused), reasons.join(", ") || "none");
    const waiting = status.position - status.synced;
    tile("disk-bytes", bytes(status.disk_bytes), `${counted(status.position, "entry", "entries")}, ` +
      (waiting > 0 ? `${grouped(waiting)} not durable yet` : "all durable"));
    this.about(status);
  }

  /** The mean reward of whoever decides in the node's mode. */
  mean(status) {
    const learns = status.mode === "online";
    const arm = learns ? status.rewards.learner : baselineOf(status);
    write(byId("mean-name"), learns ? "Mean reward, learner" : "Mean reward, baseline");
    byId("mean-name").title = `Mean reward of the events that ${learns
      ? "the learner decided" : "another policy than the learner decided"}, with half of its 95% interval`;
    const under = learns ? comparison(status)
      : status.mode === "off" ? "a fixed policy decides, not the learner"
      : "an outside policy decides, not the learner";
    tile("mean", withHalf(decimal(arm?.mean, arm?.half_width), arm?.half_width), under);
  }

  decisions(status) {
    const last = this.recent.at(-1);
    // after a restart or a jump of the clock, rates begin anew
    const broken = last && (status.started_at !== last.started || status.now < last.at);
    if (broken || status.decisions < last?.count) this.recent = [];
    if (status.now < last?.at) this.rates.clear();
    this.recent.push({ at: status.now, count: status.decisions, started: status.started_at });
    while (this.recent.length > 2 && status.now - this.recent[1].at >= WINDOW_S) this.recent.shift();
    const first = this.recent[0], time = status.now - first.at;
    const rate = time > 0 ? (status.decisions - first.count) / time : null;
    if (known(rate)) this.rates.push({ at: status.now, rate });
    const agreed = known(status.agreement) ? ` · agrees in ${grouped(100 * status.agreement, 1)}%` : "";
    tile("rate", known(rate) ? (rate === 0 ? "0" : grouped(rate, rate < 100 ? 1 : 0)) : "–",
      `${grouped(status.decisions)} in all · ${grouped(status.open_events)} open${agreed}`);
    const points = this.rates.samples.map((sample) => [sample.at, sample.rate]);
    const most = Math.max(...points.map((point) => point[1]), 1);
    if (points.length > 1) {
      const label = `Decisions a second since ${clock(points[0][0])}, at most ${amount(most)}`;
      byId("rate-line").replaceChildren(sparkline(points, 0, most, 84, 26, label));
    }
  }

  links(peers) {
    const near = peers.peers.filter((peer) => peer.neighbour), up = near.filter((peer) => peer.linked);
    const behind = near.filter((peer) => peer.behind > 0).sort((a, b) => b.behind - a.behind)[0];
    const down = near.filter((peer) => peer.linked === false).map((peer) => peer.name);
    let words = near.length ? "no neighbour is known to lag" : "the node has no neighbours";
    if (behind) words = `${behind.name} lacks ${counted(behind.behind, "record", "records")} of this node`;
    if (down.length) words = `${listed(down, 3)} ${down.length === 1 ? "is" : "are"} not reached`;
    tile("links", near.length ? `${grouped(up.length)} of ${grouped(near.length)} up` : "none", words);
    byId("tile-links").classList.toggle("bad", down.length > 0);
  }

  /** Bring times up to date. */
  tick(now) {
    const { status } = this;
    const when = known(status.adopted_at) ? `beliefs ${span(now - status.adopted_at)} old` : "no beliefs adopted yet";
    tile("learnt", grouped(status.observations), `${when}${status.learning ? " · learning now" : ""}`);
    write(byId("about-uptime"), `${span(now - status.started_at)}, since ${clock(status.started_at)}`);
  }

  about(status) {
    const rows = {
      policy: status.policy,
      beliefs: `${status.model_version}, ${counted(status.adoptions, "adoption", "adoptions")}`,
      records: `${grouped(status.own_records)} own of ${counted(status.observations, "observation", "observations")}`,
      // an epoch's number is the time at which it began, in milliseconds
      epoch: `${status.epoch}, begun ${clock(status.epoch / 1000)}`,
      log: `${grouped(status.position)}, durable up to ${grouped(status.synced)}`,
      version: `coopbandits ${status.version}`,
    };
    for (const [key, text] of Object.entries(rows)) write(byId(`about-${key}`), text);
    const list = byId("about-refused");
    const refusals = Object.entries(status.refused).sort((a, b) => b[1] - a[1]).slice(0, 20);
    const words = refusals.map(([reason, count]) => `${reason}: ${grouped(count)}`);
    if (list.dataset.words !== words.join("\n")) {
      list.dataset.words = words.join("\n");
      list.replaceChildren(...(words.length ? words : ["none"]).map((text) => make("div", {}, text)));
    }
  }
}

/** The learner beside the control group, in a few words. */
function comparison({ rewards, control_share: share }) {
  const { control, difference, half_width: half } = rewards;
  if (known(difference) && known(half)) return `${withHalf(signed(difference, half), half)} against the control group`;
  if (control.count) return "too few rewards to compare";
  return share > 0 ? "no reward of the control group yet" : "no control group to compare with";
}

const withHalf = (text, half) => (known(half) ? `${text} ± ${decimal(half, half)}` : text);

function tile(key, value, under) {
  write(byId(`${key}-value`), value);
  write(byId(`${key}-under`), under);
}
