"""The core of a node: `handle(input, now) -> actions`, pure; a replay of its log does the same.

| input | what follows |
|---|---|
| `Asked` | a decision, a reward: an entry, and an answer once it is synced |
| `Synced` | data up to there are applied, answers given, neighbours told |
| `SyncFailed` | the node is rebuilt from its log (disk full), or stops |
| `Arrived`, `Linked` | feeds are offered, asked for and taken (`exchange.py`) |
| `Fitted` | beliefs of a learning task, to be adopted once they are synced |
| `Tick` | time passes: events close, offers are repeated, learning goes on |
"""

from collections.abc import Iterable
from contextlib import suppress

from coopbandits.agent import Agent, feeds
from coopbandits.errors import LocalProtocolError
from coopbandits.fleet.checkpoint import Checkpoint
from coopbandits.fleet.core import requests
from coopbandits.fleet.core.actions import (
    DISK,
    Action,
    Answer,
    Arrived,
    Asked,
    Cut,
    Fitted,
    Input,
    Linked,
    Rebuild,
    Snapshot,
    Stop,
    Synced,
    SyncFailed,
)
from coopbandits.fleet.core.deciding import chosen_again
from coopbandits.fleet.core.entries import (
    Activated,
    Adopted,
    Based,
    Decided,
    Ended,
    Fitting,
    LogEntry,
    Quarantined,
    Received,
    Recorded,
    Rewarded,
    Started,
)
from coopbandits.fleet.core.events import Events
from coopbandits.fleet.core.exchange import Exchange
from coopbandits.fleet.core.feeds import Feeds
from coopbandits.fleet.core.journal import Data, Journal
from coopbandits.fleet.core.learning import Learning
from coopbandits.fleet.core.own_feed import OwnFeed
from coopbandits.fleet.core.settings import Settings
from coopbandits.fleet.core.sites import grown, layout
from coopbandits.fleet.core.statistics import Counts
from coopbandits.fleet.face import RefusedError
from coopbandits.fleet.ports import DamageError, Keys, StoredRecord
from coopbandits.fleet.record import Block
from coopbandits.network import Network

# The agent forgets a decision without a reward after twice as many as events are known.
_SPARE = 1_000


class NodeCore:
    """One node, without any I/O.

    Attributes:
        settings: What it is told once.
        agent: Who decides and learns.
        events: Its decisions.
        feeds: The observations that it holds, its own and others'.
        exchange: Its part in replicating them.
        journal: What it leaves behind.
        counts: What it counts of its events.
        own: Its own feed.
        keys: To sign its records, and verify others'.
        now: The time; it goes on from what the log says even if the clock was set back.
        applied: Up to which position data have been applied.
        learning: Its learning tasks.
    """

    def __init__(self, settings: Settings, keys: Keys, network: Network | None = None) -> None:
        """Know nothing yet.

        Args:
            settings: What it is told.
            keys: To sign its own records, and verify others'.
            network: In which its log begins, if it is another than that of the settings.
        """
        self.settings, self.keys = settings, keys
        policy, where = settings.policy, network or settings.network
        expire = 2 * settings.rewards.most + _SPARE
        self.agent: Agent = policy.agent(settings.name, where, seed=settings.seed, expire=expire)
        self._layouts = [layout(where)]
        self.journal = Journal()
        self._set_up()
        self.counts = Counts()
        self.own = OwnFeed(self)
        self.now = 0.0
        self._ahead = 0.0
        self.applied = 0
        self.learning = Learning(settings, self.agent, self.journal)
        self._snapshot_at = self._restorable = 0
        self._covered: dict[tuple[str, int], int] = {}
        self._stopped = False

    def _set_up(self) -> None:
        settings, network, policy = self.settings, self.agent.network, self.settings.policy
        distances = policy.listen.carrier(network).distances_from([self.agent.agent])[0]
        within = [network.names[v] for v in range(len(network)) if distances[v] <= policy.ttl]
        self.events = Events(settings.rewards)
        self.feeds = Feeds(self.agent, within, settings.checkpoint_every, self.keys)
        self.exchange = Exchange(settings, self.agent, self.feeds, self.journal, self.keys)

    def _move(self, network: Network) -> None:
        """Go on in a network that grew out of the one so far."""
        held, events = self.feeds.stored(), self.events
        self.agent = self.agent.moved_to(network)
        self.learning.move(self.agent)
        self._set_up()
        self.events = events
        self.feeds.restore(held)
        for _, _, feed in self.feeds.all():
            feed.synced = feed.held
        self._take_sums(self.feeds.origins)

    @property
    def version(self) -> str:
        """What tells its beliefs from others."""
        return f"{self.settings.policy.fingerprint[:8]}-{self.epoch:x}-{self.learning.adoptions}"

    @property
    def worth(self) -> dict[str, float]:
        """Its row of K_z by name, of all whom it hears."""
        names, agent = self.agent.network.names, self.agent
        pairs = zip(agent.sources.tolist(), agent.worth.tolist(), strict=True)
        return {names[v]: float(w) for v, w in pairs}

    @property
    def epoch(self) -> int:
        """In which epoch of its own feed it writes."""
        return self.own.epoch

    # The life of a core: replay what there is, start, handle what comes.

    def replay(self, entries: Iterable[tuple[int, LogEntry, tuple[StoredRecord, ...]]]) -> None:
        """Do again what a log says; from its beginning, or behind a state that was restored."""
        done, applied = self.journal.position, self.applied
        for position, entry, records in entries:
            if position <= applied:
                continue
            self.journal.position = max(position, done)
            payload = self._read_again(entry, records)
            if isinstance(entry, Recorded | Received | Adopted | Based | Quarantined):
                self.journal.unapplied.append(Data(position, entry, payload))
            if position > done:
                self._again(entry, position, payload)
        self._apply(self.journal.position)
        self.journal.sync(self.journal.position)
        self.journal.taken()
        for _, _, feed in self.feeds.all():
            feed.synced = feed.held
        self.learning.replayed()

    def start(self, now: float, *, restored: bool = False, version: str = "") -> list[Action]:
        """Begin, once the log has been replayed.

        Args:
            now: The time.
            restored: Whether the log is a backup: what it wrote after that is lost, so its own feed
                goes on in a new epoch.
            version: Of coopbandits.
        """
        self._go_on(now)
        last = max([self.epoch, *self.feeds.origins[self.settings.name].epochs])
        self.begin(last + 1 if restored or not last else self.epoch, version)
        self.learning.due = self.now + self.settings.pace
        if self.exchange.neighbours:
            self.own.wait()
        self._advance()
        return self.journal.taken()

    def begin(self, epoch: int, version: str, *, anew: bool = True) -> None:
        """Write down that the node starts, and in which epoch its own records stand."""
        if epoch != self.epoch:
            epoch = max(epoch, int(1000 * self.now))  # no epoch that was lost is used again
        sites, edges = layout(self.settings.network)
        policy = self.settings.policy.fingerprint
        entry = Started(self.now, version, policy, sites, edges, epoch, anew)
        self._started(entry, self.journal.append(entry))

    def handle(self, event: Input, now: float) -> list[Action]:
        """Take what happens, and return what is to be done."""
        if self._stopped:
            return []
        self._go_on(now)
        self._pass()
        if isinstance(event, Asked):
            requests.take(self, event.ticket, event.request)
        elif isinstance(event, Synced):
            self._synced(event.position)
        elif isinstance(event, Arrived):
            before = len(self.journal.unapplied)
            self.exchange.arrived(
                event.neighbour, event.data, self.now, self.own.writing, self.epoch
            )
            for data in [*self.journal.unapplied][before:]:
                if self._lost_before(data.entry):
                    self.own.recovered(data.payload)
        elif isinstance(event, Linked):
            self.exchange.linked(event.neighbour, event.up, self.now)
        elif isinstance(event, Fitted):
            self.learning.finished(event.number, event.result, self.now)
        elif isinstance(event, SyncFailed):
            return self._failed(event)
        self._advance()
        actions = self.journal.taken()
        self._stopped = any(isinstance(action, Stop) for action in actions)
        return actions

    def snapshot(self) -> list[Action]:
        """Keep the state, so that the next start need not replay the log."""
        self._snapshot()
        return self.journal.taken()

    # What becomes durable is applied, in the log's order.

    def _synced(self, position: int) -> None:
        self._apply(position)
        self.journal.sync(position)

    def _apply(self, position: int) -> None:
        """Apply data up to a position."""
        waiting, changed = self.journal.unapplied, dict[str, None]()
        while waiting and waiting[0].position <= position:
            data = waiting.popleft()
            if isinstance(data.entry, Adopted) or self._lost_before(data.entry):
                self._take_sums(changed)  # it rests on them, or they on the rounds before it
                changed = {}
            self._apply_one(data, changed)
        self._take_sums(changed)
        self.applied = max(self.applied, position)

    def _lost_before(self, entry: LogEntry) -> bool:
        return isinstance(entry, Received) and entry.origin == self.settings.name

    def _take_sums(self, changed: Iterable[str]) -> None:
        sums = self.feeds.sums([*changed])
        if sums:
            feeds.take_sums(self.agent, sums)
            self.learning.news = True

    def _apply_one(self, data: Data, changed: dict[str, None]) -> None:
        entry, me = data.entry, self.settings.name
        if isinstance(entry, Recorded):
            block: Block = data.payload
            with suppress(LocalProtocolError):  # forgotten since: it is learnt from the feed
                self.agent.reward(entry.round, entry.value)
            self.feeds.sync(me, entry.epoch, block.head, entry.at)
            if self.feeds.apply(me, entry.epoch, block):
                changed[me] = None
            self.exchange.news(me)
            self.journal.note("recorded", sequence=entry.sequence, round=entry.round)
        elif isinstance(entry, Received):
            block = data.payload
            self.feeds.sync(entry.origin, entry.epoch, block.head, entry.at)
            if self.feeds.apply(entry.origin, entry.epoch, block):
                changed[entry.origin] = None
            if entry.origin == me:
                feeds.skip_to(self.agent, max(block.rounds))
            self.exchange.news(entry.origin)
            self.journal.note(
                "received", via=entry.via, origin=entry.origin, first=entry.first, last=entry.last
            )
        elif isinstance(entry, Adopted):
            if self.learning.adopt(entry, data.payload):
                self.journal.note(
                    "adopted", version=self.version, observations=self.agent.known,
                    worth=self.worth,
                )  # fmt: skip
        elif isinstance(entry, Based):
            checkpoint: Checkpoint = data.payload
            if self.feeds.base_applied(checkpoint, entry.at):
                changed[checkpoint.origin] = None
            self.exchange.news(checkpoint.origin)
            self.journal.note("checkpoint", origin=checkpoint.origin, sequence=checkpoint.place[1])
        elif isinstance(entry, Quarantined):
            origin = self.feeds.origins[entry.origin]
            origin.proof = entry.epoch, entry.one, entry.other
            self.exchange.show_proof(entry.origin)
            self.journal.note("quarantined", origin=entry.origin)

    # Time passes.

    def _go_on(self, now: float) -> None:
        """Let time pass as the clock does, from where it was if that was set back."""
        self._ahead = max(self._ahead, self.now - now)
        self.now = now + self._ahead

    def _advance(self) -> None:
        """Do what follows from what has just happened."""
        self.own.ask_heads()
        self._pass()
        self.own.checkpoint()
        if self.journal.position - self._snapshot_at >= self.settings.snapshot_every:
            self._snapshot()
        self.learning.take(self.now, self.applied)
        self.exchange.tick(self.now)

    def _pass(self) -> None:
        """Close and forget the events whose time has come."""
        self.events.due(self.now)
        self.events.expire(self.now)
        self.own.close()
        self.events.forget(self.now)

    def closed(self, name: str, value: float | None, *, recorded: bool) -> None:
        """Close an event, and count its reward."""
        event = self.events.closed(name, value, recorded=recorded)
        if value is not None:
            self.counts.closed(event.group, value)
            self.journal.note("rewarded", event_id=name, group=event.group, value=value)

    def _snapshot(self) -> None:
        """Keep the state, where no task is under way; and drop entries that nothing needs."""
        from coopbandits.fleet.core.state import stored  # noqa: PLC0415 (it knows this class)

        if self.learning.busy or self.journal.position == self._snapshot_at:
            return  # a second one of one position would take the place of the one before it
        covered, self._covered = self._covered, self.feeds.covered()
        cuts = self.feeds.cut(covered)
        self._snapshot_at = self.journal.position
        former, self._restorable = self._restorable, self.applied
        self.journal.do(Snapshot(self.journal.position, stored(self)))
        oldest = next(iter(self.events.known.values()), None)
        before = min(
            former + 1,
            self.journal.position - self.settings.keep_entries,
            former + 1 if oldest is None else oldest.position,
        )
        if before > 1 or cuts:
            self.journal.do(Cut(max(before, 0), cuts))

    def _failed(self, event: SyncFailed) -> list[Action]:
        """Entries were not written: give up what was done with them."""
        self._stopped = True
        if event.full:
            refused = RefusedError(
                "disk-full",
                f"the disk is full: {event.reason}; nothing of the request was kept",
                retry_after=5.0,
            )
        else:
            refused = RefusedError(
                "stopping",
                f"the node stops, as its log cannot be made durable: {event.reason}; the request "
                "may have been kept or not, so send it again with the same id or Idempotency-Key",
                retry_after=5.0,
            )
        actions: list[Action] = [Answer(t, refused) for t in self.journal.forgotten()]
        if event.full:
            return [*actions, Rebuild(event.reason)]
        return [*actions, Stop(DISK, f"the log cannot be made durable: {event.reason}")]

    # A replay does the same again.

    def _started(self, entry: Started, position: int) -> None:
        if (entry.sites, entry.edges) != layout(self.agent.network):
            self._apply(position - 1)
            self._move(grown(self.agent.network, entry.sites, entry.edges))
            self._layouts.append((entry.sites, entry.edges))
        if entry.anew:
            self.own.started_at = position
        if entry.epoch != self.epoch:
            self.own.epoch_began = self.own.started_at
            self.feeds.open(self.settings.name, entry.epoch)
        self.own.epoch = entry.epoch

    def _again(  # noqa: PLR0912 (one branch a kind of entry)
        self, entry: LogEntry, position: int, payload: object
    ) -> None:
        """Repeat what happened when an entry was appended."""
        me = self.settings.name
        self.now = max(self.now, entry.at)
        self.events.forget(self.now)
        if isinstance(entry, Started):
            self._started(entry, position)
        elif isinstance(entry, Decided):
            self._apply(entry.seen)
            if entry.round:
                chosen_again(self.agent, entry)
            self.counts.decided(entry)
            self.events.decided(entry, position)
        elif isinstance(entry, Rewarded):
            if entry.event in self.events.known:
                self.events.rewarded(entry)
        elif isinstance(entry, Activated):
            self.events.activated(entry)
        elif isinstance(entry, Recorded):
            block = payload
            assert isinstance(block, Block)
            self.feeds.append(me, entry.epoch, block.head, block.last)
            self.closed(entry.event, entry.value, recorded=True)
        elif isinstance(entry, Ended):
            for name, value, _ in entry.events:
                self.closed(name, value, recorded=False)
        elif isinstance(entry, Received):
            block = payload
            assert isinstance(block, Block)
            self.feeds.append(entry.origin, entry.epoch, block.head, block.last)
            if self._lost_before(entry):
                self.own.recovered(block)
        elif isinstance(entry, Fitting):
            self._apply(entry.seen)
            self.learning.take_again(entry)
        elif isinstance(entry, Based):
            assert isinstance(payload, Checkpoint)
            self.feeds.base_appended(payload)
        elif isinstance(entry, Quarantined):
            self.feeds.origins[entry.origin].quarantined = True

    def _read_again(self, entry: LogEntry, records: tuple[StoredRecord, ...]) -> object:
        """Return what an entry was made of."""
        if isinstance(entry, Recorded | Received):
            origin = entry.origin if isinstance(entry, Received) else self.settings.name
            feed = self.feeds.feed(origin, entry.epoch)
            count = entry.last - entry.first + 1 if isinstance(entry, Received) else 1
            if len(records) < count:
                raise DamageError(
                    f"records of {origin} that the log needs were cut, and no stored state from "
                    "which it goes on can be read; restore a backup (coop node restore)"
                )
            return feed.trusted([record.data for record in records])
        if isinstance(entry, Adopted):
            return entry.data
        if isinstance(entry, Based):
            return Checkpoint.trusted(entry.data)
        return None
