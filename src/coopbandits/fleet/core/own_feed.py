"""A node's own feed: in which epoch it writes, from when on, and which events get a record.

A node on an older log than its neighbours have seen (a backup, a copy of files) must not write in
its former epoch: it asks them how its feed ends, takes back what it lost, and goes on in a new one.
"""

from typing import TYPE_CHECKING

import numpy as np

from coopbandits.agent import feeds
from coopbandits.arrays import Array
from coopbandits.errors import LocalProtocolError
from coopbandits.fleet.core.entries import Based, Ended, Recorded
from coopbandits.fleet.core.events import Event
from coopbandits.fleet.face import RefusedError
from coopbandits.fleet.ports import StoredRecord
from coopbandits.fleet.record import Block

if TYPE_CHECKING:
    from coopbandits.fleet.core.node import NodeCore

# A node waits so many times longer for own records that neighbours hold and it has lost, and for
# neighbours to say so if it was restored: without them it would record events twice.
_PATIENCE = 10.0


class OwnFeed:
    """The feed that a node writes.

    Attributes:
        epoch: In which it writes.
        epoch_began: At which position; what is lost was written before that.
        started_at: At which position the node was last started.
        writes_from: When it begins to write at the latest; None once it does.
        heads_known: Whether neighbours have said how the feed ends, and nothing of it is lacking.
    """

    def __init__(self, core: "NodeCore") -> None:
        self._core = core
        self.epoch = self.epoch_began = self.started_at = 0
        self.writes_from: float | None = None
        self.heads_known = True

    @property
    def writing(self) -> bool:
        """Whether it is written to by now."""
        return self.writes_from is None

    def wait(self) -> None:
        """Write nothing before neighbours have said how the feed ends, or did not in time."""
        core = self._core
        self.writes_from = core.now + core.settings.heads_wait
        self.heads_known = False

    def ask_heads(self) -> None:
        """Begin to write once neighbours have answered, or time is up.

        If they hold more of the feed than the node itself, its log was replaced by an older one: it
        goes on in a new epoch, once it has taken back what it lost.
        """
        if self.heads_known:
            return
        core, exchange = self._core, self._core.exchange
        answered = all(one.answered for one in exchange.neighbours.values())
        self.heads_known = answered and not exchange.lacks_own
        if self.writes_from is None:
            return
        lost = exchange.lost(self.epoch)
        if lost:
            core.journal.note("epoch", lost=lost)
            core.begin(lost + 1, "", anew=False)
        patience = _PATIENCE if exchange.lacks_own else 0.0
        late = core.now >= self.writes_from + patience * core.settings.heads_wait
        if late or (answered and not patience):
            self.writes_from = None

    def close(self) -> None:
        """Close the events that are ready: with a record, or without."""
        core, events, unsure = self._core, self._core.events, self._unsure
        ended: list[tuple[str, float | None, int]] = []
        for name in [*events.ready]:
            event = events.known[name]
            value = events.outcome(event)
            recorded = False
            if value is not None and event.round:
                if not self.writing or event.position in unsure:
                    continue
                recorded = self._record(event, value)
            if not recorded:
                ended.append((name, value, event.position))
            core.closed(name, value, recorded=recorded)
        if ended:
            core.journal.append(Ended(core.now, ended))

    def check_reward(self, event: Event) -> None:
        """Refuse a reward for now if the event may stand in records that were lost.

        There it is closed, and takes no more. Neighbours are waited for no longer than the node
        waits before it writes; after that a reward is taken, and what a neighbour turns out to hold
        of the event counts in its place.
        """
        if not self.writing and event.round and event.position in self._unsure:
            raise RefusedError(
                "recovering",
                f"event {event.id} was decided before the log was lost, and may have been counted: "
                "neighbours are asked for that; send the reward again",
                retry_after=1.0,
            )

    @property
    def _unsure(self) -> range:
        """Positions of events that may stand in records that were lost, and have time to wait."""
        if self.heads_known:
            return range(0)
        return range(self._core.events.over(self._core.now) + 1, self.epoch_began)

    def _record(self, event: Event, value: float) -> bool:
        """Append the observation of an event; False if the agent forgot it."""
        core, me, epoch = self._core, self._core.settings.name, self.epoch
        try:
            one = feeds.observation(core.agent, event.round, value)
        except LocalProtocolError:
            return False
        held = core.feeds.held(me, epoch)
        data = core.feeds.feed(me, epoch).record(held, one, core.keys)
        block = core.feeds.feed(me, epoch).trusted([data])
        core.feeds.append(me, epoch, block.head, data)
        sequence = block.head.sequence
        entry = Recorded(core.now, event.id, event.position, event.round, value, epoch, sequence)
        core.journal.append_data(entry, (StoredRecord(me, epoch, sequence, data),), block)
        return True

    def recovered(self, block: Block) -> None:
        """Close the events of own records that were lost and have come back."""
        core = self._core
        places = {round_: place for place, round_ in enumerate(block.rounds)}
        for event in [*core.events.known.values()]:
            place = places.get(event.round)
            before = event.position < self.epoch_began and not event.closed
            if before and place is not None and self._has_context(event, block.contexts[place]):
                value = block.rewards[place].item() * core.settings.policy.scale
                core.closed(event.id, value, recorded=True)

    def _has_context(self, event: Event, context: Array) -> bool:
        """Tell whether an event has the context of a record of its round.

        It need not: on an older log a node gives rounds of lost decisions to new ones until it has
        heard of the loss, and if it starts again before that, these too are older than its epoch.
        A new one that has the context of the lost one, too, is taken for it. Of a decision that the
        agent forgot, the round has to do.
        """
        try:
            one = feeds.observation(self._core.agent, event.round, 0.0)
        except LocalProtocolError:
            return True
        return np.array_equal(one.context, context)

    def checkpoint(self) -> None:
        """Sign a checkpoint of the feed, if one is due."""
        core, me = self._core, self._core.settings.name
        checkpoint = core.feeds.checkpoint(me, self.epoch)
        if checkpoint is not None and checkpoint.place > core.exchange.newest_base(me):
            core.exchange.own_base(checkpoint.place)
            core.journal.append_data(Based(core.now, checkpoint.data), (), checkpoint)
