"""A real node's core behind the interface, without threads: what it appends is synced at once."""

from itertools import count

import coopbandits as cb
from coopbandits.fleet.api import DecideManyReply
from coopbandits.fleet.core import views
from coopbandits.fleet.core.actions import Answer, Append, Asked, Fit, Fitted, Recall, Synced
from coopbandits.fleet.core.deciding import reply_of
from coopbandits.fleet.core.entries import read
from coopbandits.fleet.core.opening import opened
from coopbandits.fleet.core.settings import RewardRules, Settings
from coopbandits.fleet.face import RefusedError
from coopbandits.fleet.keys import HashKeys
from coopbandits.fleet.store import MemoryStore

NETWORK = cb.Network.from_edges([("north", "south")], names=["north", "south"])
POLICY = cb.EagerKernelUCB(
    cb.kernels.Linear(), similarity=cb.similarity.Same(), ttl=1, eta=0.3, intercept=1.0
)


class CoreFace:
    """A `Face` over a core; time goes on by a second with each request."""

    def __init__(self, **settings):
        settings = {"rewards": RewardRules(rule="sum", wait=60.0, ttl=600.0), **settings}
        self.settings = Settings(
            fleet="tests", name="north", network=NETWORK, policy=POLICY, heads_wait=0.1, **settings
        )
        self.store, self.tickets, self.times = MemoryStore(), count(1), count(1_000)
        self.core = opened(self.settings, HashKeys("north"), self.store)
        self.carry_out(self.core.start(self.now()))

    def now(self):
        return float(next(self.times))

    def carry_out(self, actions):
        """Carry actions out, and what follows from them; return the answer, if there is one."""
        found, waiting = None, list(actions)
        while waiting:
            action = waiting.pop(0)
            if isinstance(action, Append):
                event = Synced(self.store.append(action.entries))
                waiting += self.core.handle(event, self.core.now)
            elif isinstance(action, Fit):
                event = Fitted(action.number, action.task.run())
                waiting += self.core.handle(event, self.core.now)
            elif isinstance(action, Answer):
                found = action.reply
            elif isinstance(action, Recall):
                entries = [read(self.store.entry(place), place) for place in action.positions]
                replies = [reply_of(entry) for entry in entries]
                found = DecideManyReply(replies) if action.many else replies[0]
        return found

    async def ask(self, request):
        answer = self.carry_out(self.core.handle(Asked(next(self.tickets), request), self.now()))
        if isinstance(answer, RefusedError):
            raise answer
        return answer

    def event(self, event_id):
        return self.core.events.reply(self.core.events.find(event_id))

    def status(self):
        return views.status(
            self.core, ready=True, version="0", started_at=1_000.0, disk=self.store.disk_bytes,
            now=self.core.now,
        )  # fmt: skip

    def peers(self):
        return views.peers(self.core)

    def similarity(self):
        return views.similarity(self.core)

    def log(self, after, most):
        return views.log(self.core, self.store, after, most)

    async def notes(self):
        for number in range(2):
            yield {"kind": "tick", "at": float(number)}
