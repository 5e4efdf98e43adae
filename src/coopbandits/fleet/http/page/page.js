// The page of a node: what it answers and tells goes to the parts of the page that show it.

import { Activity, isFine } from "./activity.js";
import { Connection } from "./connection.js";
import { Figures } from "./figures.js";
import { byId, clock, span, write } from "./marks.js";
import { NetworkPicture } from "./network.js";
import { markOverflow } from "./overflow.js";
import { RewardPicture } from "./rewards.js";
import { SiteTable } from "./sites.js";
import { TrustPicture, isEstimated } from "./trust.js";

const TELLING = new Set(["rewarded", "adopted", "linked", "refused", "quarantined", "recorded", "disk"]);

const network = new NetworkPicture(byId("network-picture"));
const rewards = new RewardPicture();
const trust = new TrustPicture();
const sites = new SiteTable();
const activity = new Activity();
const figures = new Figures();
const seen = { status: null, peers: null, trusting: false, answeredAt: null, failing: false, why: "", disk: "" };

/** The node's time now; its clock may differ from the reader's. */
const nodeTime = () => seen.status.now + (performance.now() - seen.answeredAt) / 1000;

const connection = new Connection({
  answered([status, peers, similarity]) {
    const before = seen.status;
    if (before && before.started_at !== status.started_at) tell(status.now, "The node was started again.");
    else if (seen.failing && before) tell(status.now, "The node answers again.");
    const trusting = isEstimated(similarity);
    Object.assign(seen, { status, peers, trusting, answeredAt: performance.now(), failing: false, why: "" });
    byId("main").hidden = false;
    figures.show(status, peers);
    network.show(peers, status.quarantined, trusting);
    write(byId("network-words"), network.words());
    rewards.show(status);
    trust.show(similarity, peers, status.quarantined, status.now);
    activity.mode = status.mode;
    times();
    banners();
    connectionWords();
  },
  failed(why) {
    if (!seen.failing && seen.status) tell(nodeTime(), "The node stopped answering.");
    Object.assign(seen, { failing: true, why });
    banners();
    connectionWords();
  },
  noted(note) {
    activity.push(note);
    network.travels(note);
    if (note.kind === "rewarded") rewards.rewarded(note);
    if (note.kind === "disk") seen.disk = String(note.state ?? "");
    if (TELLING.has(note.kind)) connection.hasten();
  },
  ticked() {
    activity.redraw();
    connectionWords();
    if (seen.status) times();
  },
});

/** Bring what depends on the time up to date. */
function times() {
  const now = nodeTime();
  figures.tick(now);
  sites.show(seen.peers, seen.status, now, seen.trusting);
}

function tell(at, text) {
  activity.push({ kind: "page", at, text });
}

function connectionWords() {
  const state = seen.failing ? "lost" : !seen.status ? "waiting" : connection.listening ? "live" : "polled";
  byId("connection").dataset.state = state;
  write(byId("connection-words"), {
    lost: "no answer",
    waiting: "asking the node …",
    live: "live",
    polled: "asked every 2 s; notes are not coming",
  }[state]);
  document.body.classList.toggle("stale", seen.failing);
  if (seen.status) {
    const mark = seen.failing ? "✕ " : seen.status.quarantined.length ? "⚠ " : "";
    const title = `${mark}${seen.status.node} · ${seen.status.fleet}`;
    if (document.title !== title) document.title = title;
  }
  if (seen.failing) lostWords();
}

function lostWords() {
  const again = "This page goes on asking every 2 s.";
  if (!seen.status) {
    write(byId("lost"), `The node does not answer.${seen.why ? ` ${seen.why}` : ""} ${again}`);
    return;
  }
  const since = Date.now() / 1000 - (performance.now() - seen.answeredAt) / 1000;
  const long = span((performance.now() - seen.answeredAt) / 1000);
  const why = seen.why ? ` ${seen.why}` : "";
  write(byId("lost"), `The node does not answer since ${clock(since)}, for ${long}.${why} ` +
    `What is shown is from then. ${again}`);
}

function banners() {
  byId("lost").hidden = !seen.failing;
  if (seen.failing) lostWords();
  const { status, disk } = seen;
  if (!status) return;
  banner("quarantine", status.quarantined.length > 0,
    `Quarantined: ${status.quarantined.join(", ")}. Two signed records with the same place in one feed ` +
    "contradict each other, so that nothing more is taken from there. Two copies of that node may run, " +
    "or an old backup was restored without a new epoch.");
  banner("unready", !status.ready,
    "The node is not ready: it takes no decisions now, because it starts or stops.");
  banner("disk", !isFine(disk),
    `The disk of the node is ${disk}. It accepts no decisions and no rewards until that is mended.`);
}

function banner(id, shown, words) {
  const element = byId(id);
  element.hidden = !shown;
  if (shown) write(element, words);
}

markOverflow();
connection.start();
