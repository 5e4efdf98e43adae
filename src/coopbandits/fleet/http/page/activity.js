// What happens, as sentences: the latest notes of the node, the rare ones kept apart.

import { Latest } from "./history.js";
import { amount, byId, clock, counted, grouped, known, make, shortened, write } from "./marks.js";

const MOST_NOTES = 50;
const ROUTINE = new Set(["decided", "rewarded", "recorded", "sent", "received", "adopted", "checkpoint"]);
const ALARMS = new Set(["refused", "quarantined"]);
const GROUPS = {
  learner: "by the learner",
  control: "by the control group’s fixed policy",
  baseline: "by the fixed policy",
};

export class Activity {
  constructor() {
    this.all = new Latest(MOST_NOTES);
    this.rare = new Latest(MOST_NOTES);
    this.host = byId("notes");
    this.count = 0;
    this.changed = true;
    for (const input of document.querySelectorAll("input[name=notes]")) {
      input.addEventListener("change", () => {
        this.changed = true;
        this.redraw(true);
      });
    }
  }

  push(note) {
    this.count += 1;
    const numbered = { ...note, place: this.count };
    this.all.push(numbered);
    if (!ROUTINE.has(note.kind)) this.rare.push(numbered);
    this.changed = true;
  }

  /** Draw the newest notes first; what is pointed at stays, so that it can be read. */
  redraw(atOnce = false) {
    const held = !atOnce && this.host.matches(":hover");
    write(byId("notes-held"), held ? "Held while the pointer is here." : "");
    if (!this.changed || held) return;
    this.changed = false;
    const rare = byId("notes-rare").checked, shown = rare ? this.rare.values : this.all.values;
    const rows = [...shown].reverse().map((note) => make("li", { class: isAlarm(note) ? "alarm" : null },
      make("time", { datetime: new Date(note.at * 1000).toISOString() }, clock(note.at)),
      make("span", {}, sentence(note))));
    this.host.replaceChildren(...rows);
    byId("no-notes").hidden = rows.length > 0;
    const nothing = rare ? "Nothing but routine" : "Nothing happened";
    write(byId("no-notes"), `${nothing} since this page was opened.`);
  }
}

const isAlarm = (note) =>
  ALARMS.has(note.kind) || (note.kind === "linked" && !note.up) ||
  (note.kind === "disk" && !isFine(note.state));

/** Whether a state of the disk is none to worry about. */
export const isFine = (state) => state === "ok" || state === "";

const name = (text) => shortened(String(text), 60);
const groupOf = (note) => GROUPS[note.group] || name(note.group);

/** A note in words. Its values come from outside; they are only ever shown as text. */
export function sentence(note) {
  const range = note.first === note.last ? `record ${note.first}` : `records ${note.first}–${note.last}`;
  switch (note.kind) {
    case "decided":
      return `Chose “${name(note.action)}” for event ${name(note.event_id)}, ${groupOf(note)}` +
        (known(note.propensity) ? `; propensity ${grouped(note.propensity, 2)}.` : ".");
    case "rewarded":
      return `Event ${name(note.event_id)}, decided ${groupOf(note)}, closed with reward ${amount(note.value)}.`;
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
