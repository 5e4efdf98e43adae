"""Runs to make pages of: a real one, and ones made by hand that are quick and odd."""

import json

import numpy as np
import pytest

from coopbandits.lab.experiments.experiment import experiment_of
from coopbandits.lab.experiments.runner import network_facts
from coopbandits.lab.experiments.store import Store
from coopbandits.lab.experiments.trial import Record, run_task
from coopbandits.lab.experiments.whole_files import write_whole

ALONE = {"kind": "LinUCB", "eta": 0.3}
EAGER = {"kind": "EagerKernelUCB", "eta": 0.3, "kernel": "truth", "ttl": 1}
REAL = {
    "name": "A small run",
    "trials": 3,
    "rounds": 12,
    "networks": {
        "dense": {"kind": "erdos_renyi", "p": 0.6, "agents": 8},
        "sparse": {"kind": "erdos_renyi", "p": 0.3, "agents": 8},
    },
    "problems": {
        "groups": {"kind": "clustered_linear", "ttl": 1, "dim": 3, "actions": 4},
        "drawn": {"kind": "kernel", "kernel": "Linear", "dim": 3, "actions": 4},
    },
    "policies": {
        "alone": ALONE,
        "embedding": {**EAGER, "similarity": {"kind": "MeanEmbedding", "bandwidth": 1.0}},
        "evidence": {**EAGER, "similarity": "Evidence", "problems": ["groups"]},
        "known": {**EAGER, "similarity": "truth", "dashed": True},
    },
}


@pytest.fixture(scope="session")
def real_run(tmp_path_factory):
    """Two problems on two networks, played; the page has everything."""
    folder = tmp_path_factory.mktemp("runs") / "real"
    experiment = experiment_of(REAL)
    with Store.begun(folder, experiment) as store:
        pass
    for task in experiment.tasks:
        store.add(task, run_task(experiment, task))
    keep_networks(store)
    return folder


def keep_networks(store):
    """As the runner does, without its figures and tables."""
    for name in store.experiment.networks:
        facts = network_facts(store.experiment.network(name, 0), 1)
        write_whole(store.network_file(name), json.dumps(facts).encode())


@pytest.fixture
def made_run(tmp_path):
    """Return a maker of runs whose records are drawn, not played."""

    def make(
        *, policies=("alone", "other"), problems=("problem",), networks=("net",), trials=2,
        baseline="", only=None, learners=(), drawn=True, rounds=10, agents=6, points=100,
        timed=True, **tables,
    ):  # fmt: skip
        experiment = experiment_of(
            {
                "name": tables.pop("name", "made by hand"),
                "trials": trials,
                "rounds": rounds,
                "points": points,
                "baseline": baseline,
                "networks": {n: {"kind": "erdos_renyi", "p": 0.5, "agents": agents}
                             for n in networks},
                "problems": {p: {"kind": "linear"} for p in problems},
                "policies": {p: {**ALONE, **tables.get(p, {})} for p in policies},
            }
        )  # fmt: skip
        with Store.begun(tmp_path / "run", experiment) as store:
            pass
        rng = np.random.default_rng(1)
        for task in experiment.tasks:
            if only is None or only(task):
                learns = task.cell.policy in learners
                record = drawn_record(experiment, rng, agents, learns=learns, trial=task.trial)
                store.add(task, record)
                if not timed:
                    store._timing(task).unlink()
        if drawn:
            keep_networks(store)
        return store

    return make


def drawn_record(experiment, rng, agents, *, learns=False, trial=0):
    rounds = experiment.recorded
    worth, learnt, truth = np.empty((0, 5)), np.empty((0, 0)), np.empty((0, 0))
    if learns:
        worth = np.column_stack([rounds, rng.random((len(rounds), 4))])
        worth[0, 4] = np.nan  # as where K_z is constant
        if trial == 0:
            truth = np.equal.outer(np.arange(agents) % 2, np.arange(agents) % 2).astype(float)
            learnt = np.where(rng.random((agents, agents)) < 0.3, np.nan, truth * 0.8)
    return Record(
        rounds=rounds,
        regret=np.cumsum(rng.random(len(rounds))),
        messages=np.cumsum(rng.integers(0, 9, len(rounds))),
        bytes=np.cumsum(rng.integers(0, 900, len(rounds))),
        agents=rng.random(agents),
        worth=worth,
        learnt=learnt,
        truth=truth,
        engine="exact",
        graph="0" * 64,
        seconds=0.5,
    )


@pytest.fixture
def gap():
    """Return a filter of tasks that leaves out one trial of one policy."""

    def leave_out(policy, trial):
        return lambda task: not (task.cell.policy == policy and task.trial == trial)

    return leave_out
