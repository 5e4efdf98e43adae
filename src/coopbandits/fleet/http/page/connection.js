// The connection to the node: it is asked every few seconds, and its notes are listened to.

const EVERY_MS = 2000, HIDDEN_MS = 15000, SOONEST_MS = 700, PATIENCE_MS = 6000, REOPEN_MS = 3000;
const KINDS = ["decided", "rewarded", "recorded", "sent", "received", "adopted", "linked", "refused",
  "quarantined", "checkpoint", "disk"];
const PATHS = ["v1/status", "v1/peers", "v1/similarity"];

/**
 * Ask and listen until the page is left. One timer drives it all, so that none pile up.
 *
 * on: { answered([status, peers, similarity]), failed(why), noted(note), ticked() }
 */
export class Connection {
  constructor(on) {
    this.on = on;
    this.asking = false;
    this.dueAt = 0;
    this.askedAt = -Infinity;
    this.source = null;
    this.openAt = 0;
    this.answers = false;
    this.failing = false;
  }

  start() {
    setInterval(() => this.tick(), 500);
    document.addEventListener("visibilitychange", () => {
      // A node serves few listeners: a page that nobody sees leaves its place to others.
      if (document.hidden) this.deafen();
      else this.dueAt = 0;
      this.tick();
    });
    this.tick();
  }

  tick() {
    const now = performance.now();
    if (!this.asking && now >= this.dueAt) this.ask();
    this.listen(now);
    this.on.ticked();
  }

  /** Ask again soon, as something has changed. */
  hasten() {
    this.dueAt = Math.min(this.dueAt, this.askedAt + SOONEST_MS);
  }

  async ask() {
    this.asking = true;
    this.askedAt = performance.now();
    this.dueAt = this.askedAt + (document.hidden ? HIDDEN_MS : EVERY_MS);
    try {
      // A node that did not answer is asked one thing, until it does.
      if (this.failing) await read(PATHS[0]);
      const answers = await Promise.all(PATHS.map(read));
      this.failing = false;
      // An event source may hang on a connection that has died; a new one is certain.
      if (!this.answers) this.deafen();
      this.answers = true;
      this.on.answered(answers);
      this.listen(performance.now());
    } catch (error) {
      this.answers = false;
      this.failing = true;
      this.on.failed(error instanceof Refusal ? error.message : "");
    } finally {
      this.asking = false;
    }
  }

  listen(now) {
    if (document.hidden || !this.answers || this.source || now < this.openAt) return;
    this.source = new EventSource("v1/notes");
    this.source.addEventListener("open", () => this.on.ticked());
    const take = (event) => {
      let note = null;
      try {
        note = JSON.parse(event.data);
      } catch {
        return;
      }
      if (note && typeof note.kind === "string" && Number.isFinite(note.at)) this.on.noted(note);
    };
    for (const kind of ["message", ...KINDS]) this.source.addEventListener(kind, take);
    this.source.addEventListener("error", () => {
      // The browser would try again by itself, but gives up where the node answers with an error.
      this.deafen();
      this.openAt = performance.now() + REOPEN_MS;
    });
  }

  deafen() {
    this.source?.close();
    this.source = null;
  }

  /** Whether notes are being listened to. */
  get listening() {
    return this.source?.readyState === EventSource.OPEN;
  }
}

/** The node answered, but with a refusal. */
class Refusal extends Error {}

async function read(path) {
  const answer = await fetch(path, { cache: "no-store", signal: AbortSignal.timeout(PATIENCE_MS) });
  if (answer.ok) return answer.json();
  const problem = await answer.json().catch(() => ({}));
  throw new Refusal(`It answers ${answer.status}: ${problem.detail || problem.title || answer.statusText}`);
}
