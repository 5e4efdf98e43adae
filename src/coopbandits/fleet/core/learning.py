"""A node's learning tasks: when one is taken, which is under way, and what of it is adopted.

The pace is decided here and not by the driver, so that a simulation sees it. A replay takes the
tasks that the log says were taken and adopts what was adopted: it never samples.
"""

from typing import Any

from coopbandits.agent import Agent, feeds
from coopbandits.agent.learning import LearningResult, LearningTask
from coopbandits.errors import LocalProtocolError
from coopbandits.fleet.core.actions import Fit
from coopbandits.fleet.core.entries import Adopted, Fitting
from coopbandits.fleet.core.journal import Journal
from coopbandits.fleet.core.settings import Settings
from coopbandits.fleet.ports import DamageError


class Learning:
    """What a node's core knows of its learning tasks.

    Attributes:
        agent: Who learns.
        news: Whether there may be anything that was not learnt.
        due: When the next task may be taken.
        adoptions: How often new beliefs were adopted.
        adopted_at: When that was last.
    """

    def __init__(self, settings: Settings, agent: Agent, journal: Journal) -> None:
        self._settings, self._journal = settings, journal
        self.agent = agent
        self.news = True
        self.due = 0.0
        self.adoptions = 0
        self.adopted_at: float | None = None
        self._tasks = 0  # so many were taken
        self._under_way: tuple[int, LearningTask] | None = None

    @property
    def busy(self) -> bool:
        """Whether a task is under way."""
        return self._under_way is not None

    def move(self, agent: Agent) -> None:
        """Go on with an agent in a network that grew; a task of the one before is nobody's."""
        self.agent, self._under_way = agent, None

    def take(self, now: float, applied: int) -> None:
        """Take a task, if one is due and there is anything new."""
        if self.busy or not self.news or now < self.due or self._settings.mode == "off":
            return
        task = self.agent.learning_task()
        self.news = False
        if task is None:
            return
        self._tasks += 1
        self.due = now + self._settings.pace
        self._journal.append(Fitting(applied, now, self._tasks))
        self._under_way = self._tasks, task
        self._journal.do(Fit(self._tasks, task))

    def take_again(self, entry: Fitting) -> None:
        """Take the task that a log says was taken."""
        task = self.agent.learning_task()
        if task is None:
            raise DamageError(f"the log takes task {entry.number}, but nothing is new")
        self._tasks, self._under_way, self.news = entry.number, (entry.number, task), False

    def finished(self, number: int, result: LearningResult | Exception, now: float) -> None:
        """Write down what a task found, to be adopted once that is durable."""
        if self._under_way is None or self._under_way[0] != number:
            return
        task = self._under_way[1]
        if isinstance(result, Exception):
            self._under_way, self.news = None, True
            self.due = now + 10 * self._settings.pace
            self._journal.note("learner", error=str(result))
        elif result.owner == task.owner:  # else it is of a core that was given up
            data = feeds.stored_result(task, result)
            self._journal.append_data(Adopted(now, number, data), (), result)

    def adopt(self, entry: Adopted, result: LearningResult | bytes) -> bool:
        """Adopt what a task found; False if the agent does not take it any more."""
        assert self._under_way is not None
        number, task = self._under_way
        self._under_way = None
        if number != entry.number:
            raise DamageError(f"the log adopts task {entry.number}, but {number} was taken")
        if isinstance(result, bytes):
            result = feeds.restored_result(self.agent, task, result)
        try:
            self.agent.adopt(result)
        except LocalProtocolError:  # too many own rewards came meanwhile: the next task knows them
            self.news = True
            return False
        self.adoptions += 1
        self.adopted_at = entry.at
        return True

    def give_up(self) -> None:
        """Forget the task that is under way; the node is about to end.

        Not one whose result is on its way to the log: it is adopted, be it at the next start.
        """
        if not any(isinstance(data.entry, Adopted) for data in self._journal.unapplied):
            self._under_way = None

    def replayed(self) -> None:
        """Take again, later, a task that was under way where the log ends."""
        self._under_way, self.news = None, True

    def stored(self) -> list[Any]:
        """Return plain values that `restore` takes; no task may be under way."""
        return [self.adoptions, self.adopted_at, self._tasks]

    def restore(self, stored: list[Any]) -> None:
        """Be what was stored."""
        self.adoptions, self.adopted_at, self._tasks = stored
