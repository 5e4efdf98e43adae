"""Anti-entropy between neighbours: what is offered, asked for, taken and refused.

A node offers a neighbour the origins within γ − 1 hops of itself and takes those within γ, so no
relay can raise its reach. Nothing is remembered of single messages: heads of feeds say what is
lacking. What may be shown is what is synced.
"""

from dataclasses import dataclass, field

from coopbandits.agent import Agent
from coopbandits.errors import RemoteProtocolError
from coopbandits.fleet.core.actions import FORK, Send, Serve, Stop
from coopbandits.fleet.core.entries import Based, Quarantined, Received
from coopbandits.fleet.core.feeds import MOST_EPOCHS, Feeds
from coopbandits.fleet.core.journal import Journal
from coopbandits.fleet.core.settings import Settings
from coopbandits.fleet.core.wire import (
    VERSION,
    Base,
    Have,
    Heads,
    Proof,
    Spoken,
    Take,
    Want,
    WantBase,
    decoded,
    encoded,
)
from coopbandits.fleet.ports import Keys, StoredRecord
from coopbandits.fleet.record import Head, UnchainedError


@dataclass(slots=True)
class Neighbour:
    """What a node knows of a neighbour.

    Attributes:
        linked: Whether the link is up.
        reads: The highest version of messages that it reads.
        offered_at: When all heads were last offered to it.
        news: Origins of which there is more since.
        answered: Whether it has said, since this start, how the node's own feed ends.
        holds: The node's own feeds, as far as it is known to hold them.
        offered: How far it holds feeds of which this node lacks something, by origin and epoch.
    """

    linked: bool = False
    reads: int = 1
    offered_at: float = -1e300
    news: dict[str, None] = field(default_factory=dict)
    answered: bool = False
    holds: Heads = field(default_factory=list)
    offered: dict[tuple[str, int], int] = field(default_factory=dict)

    def offers(self, origin: str, epoch: int, sequence: int) -> None:
        """Remember how far it holds a feed; of so many as an origin may begin."""
        if (origin, epoch) in self.offered or sum(
            o == origin for o, _ in self.offered
        ) < MOST_EPOCHS:
            self.offered[origin, epoch] = sequence


@dataclass(slots=True)
class Asked:
    """What was asked of a neighbour, and until when it may take."""

    neighbour: str
    until: float


class Exchange:
    """One node's part in the replication of feeds."""

    def __init__(
        self, settings: Settings, agent: Agent, feeds: Feeds, journal: Journal, keys: Keys
    ) -> None:
        self._settings, self._feeds, self._journal, self._keys = settings, feeds, journal, keys
        network, policy, me = agent.network, settings.policy, agent.agent
        carrier = policy.listen.carrier(network)
        distances = carrier.distances_from([me])[0]
        names, self._ttl = network.names, policy.ttl
        self.distances = {names[v]: float(d) for v, d in enumerate(distances)}
        self.neighbours = {names[v]: Neighbour() for v in carrier.neighbours(me).tolist()}
        self._asked: dict[tuple[str, int], Asked] = {}
        self._bases: dict[str, tuple[int, int]] = {}
        self.refused: dict[str, int] = {}

    def offers(self, origin: str, to: str) -> bool:
        """Tell whether a node shows an origin's feeds to a neighbour."""
        return self.distances.get(origin, 1e9) <= self._ttl - 1 or origin == to

    def takes(self, origin: str) -> bool:
        """Tell whether a node takes an origin's feeds."""
        one = self._feeds.origins.get(origin)
        return one is not None and not one.quarantined

    def linked(self, name: str, up: bool, now: float) -> None:
        """Note that a link went up or down."""
        neighbour = self.neighbours.get(name)
        if neighbour is None or neighbour.linked == up:
            return
        neighbour.linked = up
        neighbour.reads = 1  # it may come back as another release
        self._journal.note("linked", neighbour=name, up=up)
        for key in [key for key, asked in self._asked.items() if asked.neighbour == name]:
            del self._asked[key]
        if up:
            self._offer(name, now, answer=True)

    def news(self, origin: str) -> None:
        """Offer an origin's feeds to all, as there is more of them."""
        for name, neighbour in self.neighbours.items():
            if self.offers(origin, name) and origin != name:
                neighbour.news[origin] = None
            elif origin == name:  # tell it how far its own feed is held
                neighbour.news[""] = None

    def tick(self, now: float) -> None:
        """Offer what is new, and from time to time everything: messages may have been lost."""
        for name, neighbour in self.neighbours.items():
            if not neighbour.linked:
                continue
            if now - neighbour.offered_at >= self._settings.have_every:
                self._offer(name, now, answer=not neighbour.answered)
            elif neighbour.news:
                news, neighbour.news = neighbour.news, {}
                self._have(name, [origin for origin in news if origin], answer=False)

    def _offer(self, name: str, now: float, *, answer: bool) -> None:
        neighbour = self.neighbours[name]
        neighbour.offered_at, neighbour.news = now, {}
        self._have(name, [o for o in self._feeds.origins if o != name], answer=answer)
        for origin, one in self._feeds.origins.items():
            if one.proof is not None:
                self.send(name, Proof(origin, *one.proof))

    def _have(self, name: str, origins: list[str], *, answer: bool) -> None:
        known = self._feeds.origins
        shown = [o for o in origins if self.offers(o, name) and not known[o].quarantined]
        yours = known[name].heads if name in known else []
        message = Have(
            heads={o: known[o].heads for o in shown if known[o].heads},
            bases={o: known[o].place for o in shown if known[o].base is not None},
            yours=yours,
            answer=answer,
        )
        self.send(name, message)

    def send(self, name: str, message: Spoken) -> None:
        """Send a message, in a version that the neighbour reads."""
        reads = min(self.neighbours[name].reads, VERSION)
        self._journal.do(Send(name, encoded(message, reads)))

    def arrived(self, name: str, data: bytes, now: float, writing: bool, epoch: int) -> None:
        """Take what a neighbour sent; what the protocol does not allow is refused and counted.

        Args:
            name: The neighbour.
            data: What came.
            now: When.
            writing: Whether the node writes to its own feed by now.
            epoch: Of its own feed.
        """
        if name not in self.neighbours:
            return
        kind = "frame"
        try:
            message = decoded(data)
            kind = type(message).__name__.lower()
            if isinstance(message, Have):
                self._heads(name, message, now, writing, epoch)
            elif isinstance(message, Want):
                self._wanted(name, message)
            elif isinstance(message, Take):
                self._taken(name, message, now, epoch)
            elif isinstance(message, WantBase):
                one = self._feeds.origins.get(message.origin)
                if one is not None and one.base is not None and self.offers(message.origin, name):
                    self.send(name, Base(message.origin, one.base.data))
            elif isinstance(message, Base):
                self._based(message, now)
            else:
                self._proof(message, now, epoch)
        except RemoteProtocolError as error:
            self.refused[kind] = self.refused.get(kind, 0) + 1
            self._journal.note("refused", neighbour=name, reason=str(error))

    def _heads(self, name: str, have: Have, now: float, writing: bool, epoch: int) -> None:
        """Ask for what a neighbour holds and this node lacks."""
        neighbour = self.neighbours[name]
        if not neighbour.linked:
            self.linked(name, True, now)
        neighbour.reads = max(1, min(have.reads, VERSION))
        self._own_heads(name, have.yours, now, writing, epoch)
        neighbour.holds, neighbour.answered = have.yours, True
        if have.answer:
            self._offer(name, now, answer=False)
        for origin, place in have.bases.items():
            if not self.takes(origin) or place <= self.newest_base(origin):
                continue
            ends = [(e, last) for e, last, _ in have.heads.get(origin, ()) if e < place[0]]
            if self._feeds.holds_part(origin, [*ends, place]):
                continue  # records come first: only they show whether they follow from the others
            if self._ask(name, (origin, -1), now):
                self.send(name, WantBase(origin))
        for origin, heads in have.heads.items():
            if origin == self._settings.name or not self.takes(origin):
                continue
            base = have.bases.get(origin, (0, 0))
            ahead = base > self.newest_base(origin)
            for number, sequence, digest in heads:
                held = self._feeds.held(origin, number)
                neighbour.offers(origin, number, sequence)
                if sequence > held.sequence:
                    starts_from_base = held.sequence == 0 and ahead and number <= base[0]
                    if not starts_from_base and self._ask(name, (origin, number), now):
                        self.send(name, Want(origin, number, held.sequence, sequence))
                elif sequence == held.sequence > 0 and digest != held.hash:
                    self._suspect(name, origin, number, held, now)

    def _own_heads(self, name: str, yours: Heads, now: float, writing: bool, epoch: int) -> None:
        """Compare how a neighbour has the node's own feeds with how the node has them."""
        me = self._settings.name
        for number, sequence, digest in yours:
            held = self._feeds.held(me, number)
            forked = sequence == held.sequence and digest != held.hash and sequence > 0
            if forked and number == epoch:
                self._fork(f"{name} holds another record {sequence} of epoch {number}")
            elif writing and (number > epoch or (number == epoch and sequence > held.sequence)):
                self._fork(
                    f"{name} holds {sequence} records of epoch {number}, and this node is in epoch "
                    f"{epoch} and holds {held.sequence} of them"
                )
            elif (
                sequence > held.sequence and number != epoch and self._ask(name, (me, number), now)
            ):  # an epoch that is over may have forked: others find it, the node goes on
                self.neighbours[name].offers(me, number, sequence)
                self.send(name, Want(me, number, held.sequence, sequence))

    def lost(self, epoch: int) -> int:
        """Return the newest epoch of which neighbours hold what the node does not; 0 for none.

        That is its present one, if they hold more of it, or a later one.
        """
        held = self._feeds.held(self._settings.name, epoch).sequence
        return max(
            (
                number
                for neighbour in self.neighbours.values()
                for number, sequence, _ in neighbour.holds
                if (number == epoch and sequence > held) or number > epoch
            ),
            default=0,
        )

    @property
    def lacks_own(self) -> bool:
        """Whether a neighbour holds more of an own feed than is durable here, and it can be taken.

        It cannot if that feed forked.
        """
        me = self._settings.name
        epochs = self._feeds.origins[me].epochs
        return self.takes(me) and any(
            number not in epochs or sequence > epochs[number].synced.sequence
            for neighbour in self.neighbours.values()
            for number, sequence, _ in neighbour.holds
        )

    def _fork(self, what: str) -> None:
        me = self._settings.name
        self._journal.do(
            Stop(
                FORK,
                f"{what}: there are two copies of {me}, or its log was replaced by an older one "
                "without `coop node restore`. Stop the other copy, or restore a backup by that "
                "command: the node then begins a new epoch. A site that neighbours have set aside "
                "takes part again under a new name",
            )
        )

    def _ask(self, name: str, key: tuple[str, int], now: float) -> bool:
        """Tell whether to ask a neighbour for a feed, as nobody else is asked already."""
        asked = self._asked.get(key)
        if asked is not None and asked.until > now:
            return False
        self._asked[key] = Asked(name, now + self._settings.want_timeout)
        return True

    def _suspect(self, name: str, origin: str, epoch: int, held: Head, now: float) -> None:
        """Ask for a neighbour's record in the place of one's own last: are they the same?"""
        if self._ask(name, (origin, -2), now):
            self.send(name, Want(origin, epoch, held.sequence - 1, held.sequence))

    def _wanted(self, name: str, want: Want) -> None:
        one = self._feeds.origins.get(want.origin)
        if one is None or not self.offers(want.origin, name):
            raise RemoteProtocolError(f"{name} asked for {want.origin}, who is not offered to it")
        feed = one.epochs.get(want.epoch)
        if feed is None or want.after >= feed.synced.sequence:
            return
        if want.after < feed.cut:
            if one.base is not None:
                self.send(name, Base(want.origin, one.base.data))
            return
        reads = min(self.neighbours[name].reads, VERSION)
        last = min(want.last, feed.synced.sequence)
        if last > want.after:
            size, first = self._settings.block_bytes, want.after + 1
            self._journal.do(Serve(name, reads, want.origin, want.epoch, first, last, size))

    def _taken(self, name: str, take: Take, now: float, epoch: int) -> None:
        """Append a block that follows what is held."""
        me, origin = self._settings.name, take.origin
        if not self.takes(origin):
            return
        if origin == me and take.epoch == epoch:
            raise RemoteProtocolError(
                f"{name} sent records of {me}'s own feed, which it writes itself"
            )
        held = self._feeds.held(origin, take.epoch)
        if take.first == held.sequence and take.records and held.sequence:
            self._compare(take, now, epoch)
            return
        if take.first != held.sequence + 1:
            return  # it came twice, or late
        self._asked.pop((origin, take.epoch), None)
        try:
            block = self._feeds.read(origin, take.epoch, take.records)
        except UnchainedError as error:
            if error.sequence == held.sequence + 1 and held.sequence:
                self._suspect(name, origin, take.epoch, held, now)
            raise
        head = block.head
        self._feeds.append(origin, take.epoch, head, block.last)
        entry = Received(now, origin, take.epoch, block.first, head.sequence, head.hash, name)
        stored = tuple(
            StoredRecord(origin, take.epoch, block.first + i, data)
            for i, data in enumerate(take.records)
        )
        self._journal.append_data(entry, stored, block)
        offered = self.neighbours[name].offered.get((origin, take.epoch), 0)
        if offered > head.sequence and self._ask(name, (origin, take.epoch), now):
            self.send(name, Want(origin, take.epoch, head.sequence, offered))

    def _based(self, base: Base, now: float) -> None:
        """Append a checkpoint that is newer than what is held."""
        if not self.takes(base.origin):
            return
        self._asked.pop((base.origin, -1), None)
        checkpoint = self._feeds.read_checkpoint(base.data)
        if checkpoint.origin == base.origin and checkpoint.place > self.newest_base(base.origin):
            self._bases[base.origin] = checkpoint.place
            self._feeds.base_appended(checkpoint)
            self._journal.append_data(Based(now, checkpoint.data), (), checkpoint)

    def newest_base(self, origin: str) -> tuple[int, int]:
        """Return the place of an origin's newest checkpoint among what was appended."""
        return max(self._bases.get(origin, (0, 0)), self._feeds.origins[origin].place)

    def own_base(self, place: tuple[int, int]) -> None:
        """Note that the node signed a checkpoint of its own feed."""
        self._bases[self._settings.name] = place

    def _compare(self, take: Take, now: float, epoch: int) -> None:
        """Look at two records of one sequence: if both are the origin's and differ, it forked."""
        origin, other = take.origin, take.records[0]
        last = self._feeds.origins[origin].epochs[take.epoch].last
        self._asked.pop((origin, -2), None)
        if last and self._feeds.feed(origin, take.epoch).contradict(last, other, self._keys):
            self._proof(Proof(origin, take.epoch, last, other), now, epoch)

    def _proof(self, proof: Proof, now: float, epoch: int) -> None:
        """Set an origin aside that is proven to have forked."""
        origin = proof.origin
        one = self._feeds.origins.get(origin)
        if one is None or one.quarantined:
            return
        feed = self._feeds.feed(origin, proof.epoch)
        if not feed.contradict(proof.one, proof.other, self._keys):
            raise RemoteProtocolError(f"a proof against {origin} proves nothing")
        if origin == self._settings.name and proof.epoch == epoch:
            self._fork(
                "two records of one sequence are signed by this node, and its neighbours take "
                "nothing from it any more"
            )
            return
        entry = Quarantined(now, origin, proof.epoch, proof.one, proof.other)
        self._journal.append_data(entry, (), None)
        one.quarantined = True

    def show_proof(self, origin: str) -> None:
        """Send all neighbours the proof that an origin forked; offers repeat it."""
        proof = self._feeds.origins[origin].proof
        for name, neighbour in self.neighbours.items():
            if neighbour.linked and proof is not None:
                self.send(name, Proof(origin, *proof))
