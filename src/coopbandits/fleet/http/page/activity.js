// What happens, as sentences: the latest notes of the node, the rare ones kept apart.

import { Latest } from "./history.js";
import { amount, byId, clock, counted, grouped, known, make, shortened, write } from "./marks.js";

const MOST_NOTES = 50, MOST_LETTERS = 60, MOST_ID = 12;
const ALARMS = new Set(["refused", "quarantined"]);
/** What goes on all the time, in the order in which it happens to an event. */
const ROUTINE = new Map([
  ["decided", ["decision", "decisions"]],
  ["rewarded", ["reward", "rewards"]],
  ["recorded", ["own record made durable", "own records made durable"]],
  ["sent", ["batch of records handed on", "batches of records handed on"]],
  ["received", ["batch of records received", "batches of records received"]],
  ["adopted", ["adoption of new beliefs", "adoptions of new beliefs"]],
  ["checkpoint", ["checkpoint", "checkpoints"]],
]);

export class Activity {
  constructor() {
    this.all = new Latest(MOST_NOTES);
    this.rare = new Latest(MOST_NOTES);
    this.routine = new Map(); // kind -> { count, note }, the latest note
    this.host = byId("notes");
    this.mode = "online";
    this.changed = true;
    for (const input of document.querySelectorAll("input[name=notes]")) {
      input.addEventListener("change", () => {
        this.changed = true;
        this.redraw(true);
      });
    }
  }

  push(note) {
    this.all.push(note);
    if (ROUTINE.has(note.kind)) {
      this.routine.set(note.kind, { count: (this.routine.get(note.kind)?.count ?? 0) + 1, note });
    } else {
      this.rare.push(note);
    }
    this.changed = true;
  }

  /** Draw the newest notes first; what is pointed at stays, so that it can be read. */
  redraw(atOnce = false) {
    const held = !atOnce && this.host.matches(":hover");
    write(byId("notes-held"), held ? "Held while the pointer is here." : "");
    if (!this.changed || held) return;
    this.changed = false;
    const all = byId("notes-all").checked, shown = all ? this.all.values : this.rare.values;
    this.host.replaceChildren(...[...shown].reverse().map((note) => this.line(note)));
    byId("no-notes").hidden = shown.length > 0;
    write(byId("no-notes"), `${all ? "Nothing happened" : "Nothing out of the ordinary"} since this page was opened.`);
    byId("routine").hidden = all || !this.routine.size;
    if (!all) this.redrawRoutine();
  }

  line(note) {
    return make("li", { class: isAlarm(note) ? "alarm" : null, title: idOf(note) },
      make("time", { datetime: new Date(note.at * 1000).toISOString() }, clock(note.at)),
      make("span", {}, sentence(note, this.mode)));
  }

  /** How often each routine thing happened, and its latest time in words. */
  redrawRoutine() {
    const there = [...ROUTINE].filter(([kind]) => this.routine.has(kind));
    byId("routine-list").replaceChildren(...there.map(([kind, [one, many]]) => {
      const { count, note } = this.routine.get(kind);
      return make("li", { title: idOf(note) },
        make("strong", {}, counted(count, one, many)), make("span", {}, sentence(note, this.mode)));
    }));
  }
}

/** The whole id of a note's event, where a sentence has but its beginning and end. */
const idOf = (note) => (note.event_id === undefined ? null : `Event ${note.event_id}`);

const isAlarm = (note) =>
  ALARMS.has(note.kind) || (note.kind === "linked" && !note.up) ||
  (note.kind === "disk" && !isFine(note.state));

/** Whether a state of the disk is none to worry about. */
export const isFine = (state) => state === "ok" || state === "";

const name = (text) => shortened(String(text), MOST_LETTERS);
const event = (note) => shortened(String(note.event_id), MOST_ID);

function decider(note, mode) {
  switch (note.group) {
    case "learner": return "by the learner";
    case "control": return "by the control group’s fixed policy";
    case "baseline": return mode === "apprentice" ? "by the outside policy" : "by the fixed policy";
    default: return name(note.group);
  }
}

/** A note in words. Its values come from outside; they are only ever shown as text. */
export function sentence(note, mode) {
  const range = note.first === note.last ? `record ${note.first}` : `records ${note.first}–${note.last}`;
  switch (note.kind) {
    case "decided":
      return `Chose “${name(note.action)}” for event ${event(note)}, ${decider(note, mode)}` +
        (known(note.propensity) ? `; propensity ${grouped(note.propensity, 2)}.` : ".");
    case "rewarded":
      return `Event ${event(note)}, decided ${decider(note, mode)}, closed with reward ${amount(note.value)}.`;
    case "recorded":
      return `An own observation is durable: record ${note.sequence} of this node, round ${note.round}.`;
    case "sent":
      return `Handed ${range} of ${name(note.origin)} to ${name(note.to)}.`;
    case "received":
      return note.origin === note.via
        ? `Received ${range} of ${name(note.origin)}.`
        : `Received ${range} of ${name(note.origin)} by way of ${name(note.via)}.`;
    case "adopted":
      return `Decides with new beliefs, version ${name(note.version)}, from ` +
        `${counted(note.observations, "observation", "observations")}.`;
    case "linked":
      return `The link to ${name(note.neighbour)} is ${note.up ? "up" : "down"}.`;
    case "refused":
      return `Refused a message${note.neighbour ? ` of ${name(note.neighbour)}` : ""}: ${name(note.reason)}.`;
    case "quarantined":
      return `Quarantined ${name(note.origin)}: two of its records contradict each other.`;
    case "checkpoint":
      return `${name(note.origin)} signed a checkpoint at record ${note.sequence}.`;
    case "disk":
      return `The disk is ${isFine(note.state) ? "fine again" : name(note.state)}.`;
    case "page":
      return note.text;
    default:
      return `Something this page does not know: ${name(note.kind)}.`;
  }
}
