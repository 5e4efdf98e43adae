"""What does one trial leave? Curves, totals, and what agents took each other to be worth."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from time import perf_counter
from typing import Any

import numpy as np

from coopbandits.arrays import Array, IntArray
from coopbandits.engines import Algorithm
from coopbandits.errors import CoopBanditsError, ExperimentError, ParameterError
from coopbandits.lab.experiments.experiment import Experiment, Task
from coopbandits.lab.experiments.kinds import Mistake
from coopbandits.lab.similarity import similarity_table
from coopbandits.policy import Policy
from coopbandits.problems.changing import Changing
from coopbandits.problems.continuum import Continuum
from coopbandits.problems.problem import Problem, Simulated
from coopbandits.run import MOST_SHOWN, Run, foreseen, play
from coopbandits.similarity import Learnt


@dataclass(frozen=True, eq=False)
class Record:
    """What one trial leaves; all but `seconds` is the same for the same seed.

    Attributes:
        rounds: (P,) the rounds that are kept.
        regret: (P,) cumulative, averaged over agents.
        messages: (P,) cumulative, over all agents; so `bytes`.
        agents: (V,) final regret of each agent.
        worth: (Q, 5) of a learnt K_z: round, mean over pairs truly alike, over others, mean error,
            correlation (`similarity_table`).
        learnt: (V, V) the last K_z, of the first trial of policies that learn it; so `truth`.
        engine: What computed the decisions.
        graph: The network's fingerprint.
        seconds: How long it took.
    """

    rounds: IntArray
    regret: Array
    messages: IntArray
    bytes: IntArray
    agents: Array
    worth: Array
    learnt: Array
    truth: Array
    engine: str
    graph: str
    seconds: float


def run_task(experiment: Experiment, task: Task) -> Record:
    """Play one trial."""
    experiment.find_own_modules()
    with _faults_of(task):
        return _played(experiment, task)


def foreseen_task(experiment: Experiment, task: Task) -> tuple[float, str]:
    """Return about how many seconds a trial takes and what would be faster; nothing is played."""
    cell, trial = task.cell, task.trial
    with _faults_of(task):
        problem = experiment.problem(cell.problem, experiment.network(cell.network, trial), trial)
        policy = experiment.policy(cell.policy, problem)
        seed, engine = experiment.seed + trial, experiment.engine(cell)
        return foreseen(problem, policy, experiment.rounds, seed=seed, engine=engine)


@contextmanager
def _faults_of(task: Task) -> Iterator[None]:
    """Say which trial something went wrong in."""
    try:
        yield
    except Mistake:
        raise
    except CoopBanditsError as error:
        raise ExperimentError(f"{_named(task)}: {error}") from error
    except (Exception, SystemExit) as error:  # of one's own code; it may not be one to be sent
        raise ExperimentError(f"{_named(task)}: {type(error).__name__}: {error}") from error


def _named(task: Task) -> str:
    cell = task.cell
    return f"{cell.policy} cannot play {cell.problem} on {cell.network} (trial {task.trial})"


def _played(experiment: Experiment, task: Task) -> Record:
    cell, trial = task.cell, task.trial
    network = experiment.network(cell.network, trial)
    problem = experiment.problem(cell.problem, network, trial)
    policy = experiment.policy(cell.policy, problem)
    engine = experiment.engine(cell)
    start = perf_counter()
    run = play(
        problem,
        policy,
        experiment.rounds,
        seed=experiment.seed + trial,
        engine=engine,
        progress=False,  # the experiment has a bar of its own
    )
    seconds = perf_counter() - start
    kept = experiment.recorded
    worth, learnt, truth = _worth(run, problem, policy, trial)
    return Record(
        rounds=kept,
        regret=run.regret_per_agent[kept - 1],
        messages=np.cumsum(run.messages)[kept - 1],
        bytes=np.cumsum(run.bytes)[kept - 1],
        agents=run.regret.sum(axis=0),
        worth=worth,
        learnt=learnt,
        truth=truth,
        engine=run.engine,
        graph=network.fingerprint,
        seconds=seconds,
    )


def _worth(
    run: Run, problem: Problem | Continuum, policy: Policy | Algorithm, trial: int
) -> tuple[Array, Array, Array]:
    """Compare a learnt K_z with the truth, at up to 30 rounds; the matrices of the first trial."""
    none = np.empty((0, 5)), np.empty((0, 0)), np.empty((0, 0))
    learns = isinstance(policy, Policy) and isinstance(policy.similarity, Learnt)
    if not learns or not isinstance(problem, Simulated | Changing | Continuum):
        return none
    if problem.similarity is None:
        return none
    T = len(run.regret)
    rounds = np.unique(np.round(np.geomspace(1, T, min(T, 30))).astype(np.int64))
    try:
        table = similarity_table(run, problem, rounds=[int(t) for t in rounds])
    except ParameterError:
        return none
    rows = [[row.round, row.alike, row.strangers, row.error, row.correlation] for row in table]
    if trial or len(run.sources) > MOST_SHOWN:
        return np.array(rows), none[1], none[2]
    heard: Any = np.where(np.asarray(run.listens), run.similarity(T), np.nan)
    return np.array(rows), heard, np.array(problem.similarity.matrix(problem.network))
