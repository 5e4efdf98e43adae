"""Is it as fast as another tree? Rows of speed.py, smaller, in two source trees by turns.

    git worktree add out/before 21b32ca
    python benchmarks/side_by_side.py out/before/src            # all rows, about ten minutes
    python benchmarks/side_by_side.py out/before/src coop alone # some of them

Seconds are of one process's CPU, the least of three; trees take turns, since machines are noisy.
A row is a whole simulation after a first round that is not counted, or decisions of one agent.
"""

import os
import subprocess
import sys
from pathlib import Path
from time import process_time

os.environ.update({f"{name}_NUM_THREADS": "1" for name in ("OPENBLAS", "OMP", "MKL")})

import numpy as np

import coopbandits as cb

HERE = Path(__file__).resolve()
TIMES = 3
LINEAR, RBF = cb.kernels.Linear(), cb.kernels.RBF()
QUICK = {"partitions": 0, "growth": 1.5}


def evidence(**settings: float) -> cb.similarity.Evidence:
    """Evidence without groupings that travel, which earlier trees had."""
    silent = {"hearsay": 0} if hasattr(cb.similarity.Evidence(), "hearsay") else {}
    return cb.similarity.Evidence(**silent, **settings)  # type: ignore[arg-type]


def played(agents: int, p: float, policy: cb.Policy, rounds: int, engine: str = "auto") -> float:
    """Return the seconds of a run on an Erdős-Rényi network."""
    network = cb.Network.erdos_renyi(agents, p, seed=0)
    make = cb.problems.clustered_linear if policy.kernel is LINEAR else cb.problems.kernel
    problem = make(network, noise=0.3, seed=0)
    cb.play(problem, policy, rounds=1, engine=engine)
    start = process_time()
    cb.play(problem, policy, rounds=rounds, engine=engine)
    return process_time() - start


def eager(kernel: cb.kernels.Kernel, similarity: object, ttl: int = 1) -> cb.Policy:
    """Eager-KernelUCB."""
    return cb.EagerKernelUCB(kernel=kernel, similarity=similarity, eta=0.3, ttl=ttl)  # type: ignore[arg-type]


def known(agents: int) -> cb.similarity.Known:
    """A K_z of full support."""
    contexts = np.random.default_rng(0).normal(size=(agents, 2))
    return cb.similarity.Known(contexts=contexts, kernel=RBF)


def clusters(agents: int) -> cb.similarity.Clusters:
    """Four clusters."""
    return cb.similarity.Clusters(np.arange(agents) % 4)


def one_agent() -> float:
    """One agent with a factor of 2,500 observations: observe one, score 8."""
    rng, agent = np.random.default_rng(0), cb.KernelUCB(kernel=RBF).agent(0, cb.Network.path(1))
    for x in rng.normal(size=(2500, 5)):
        agent.observe(x, float(x[0]))
    agent.decide(rng.normal(size=(8, 5)))
    start = process_time()
    for _ in range(30):
        agent.observe(rng.normal(size=5), 1.0)
        agent.decide(rng.normal(size=(8, 5)))
    return process_time() - start


def lasting() -> float:
    """One agent with 96 features: 1,500 decisions."""
    rng = np.random.default_rng(0)
    policy = cb.KernelUCB(kernel=RBF, features=cb.features.Fourier(96))
    agent, start = policy.agent(0, cb.Network.path(1)), process_time()
    for _ in range(1500):
        agent.reward(agent.decide(rng.normal(size=(8, 5))).id, 1.0)
    return process_time() - start


def continuum() -> float:
    """Three agents on a box, 25 rounds."""
    box = cb.Box([0, 0], [1, 1])
    problem = cb.problems.continuum(cb.Network.path(3), box, seed=1)
    start = process_time()
    cb.play(problem, eager(cb.kernels.RBF(0.4), cb.similarity.Same()), rounds=25)
    return process_time() - start


SAME, LAPLACIAN = cb.similarity.Same(), cb.similarity.Laplacian(rho=1.0)
ROWS = {
    "coop": lambda: played(200, 0.7, cb.CoopKernelUCB(kernel=RBF, similarity=known(200)), 60),
    "coop, 3 hops": lambda: played(
        60, 0.1, cb.CoopKernelUCB(kernel=RBF, similarity=known(60), ttl=3), 60
    ),
    "evidence, quick": lambda: played(200, 0.7, eager(LINEAR, evidence(**QUICK)), 120),
    "evidence": lambda: played(60, 0.5, eager(LINEAR, evidence()), 40),
    "evidence, exact": lambda: played(24, 0.3, eager(RBF, evidence(**QUICK)), 40, "exact"),
    "embedding": lambda: played(200, 0.7, eager(LINEAR, cb.similarity.MeanEmbedding(rank=6)), 120),
    "sparse, evidence": lambda: played(200, 0.7, eager(RBF, evidence(**QUICK)), 60, "sparse"),
    "sparse, known": lambda: played(200, 0.7, eager(RBF, known(200)), 60, "sparse"),
    "sparse, clusters": lambda: played(200, 0.7, eager(RBF, clusters(200)), 100, "sparse"),
    "statistics, clusters": lambda: played(1000, 0.01, eager(LINEAR, clusters(1000)), 60),
    "statistics, views": lambda: played(60, 0.3, eager(LINEAR, LAPLACIAN), 80, "statistics"),
    "statistics, all": lambda: played(40, 0.3, cb.GoBLin(lag=1), 100, "statistics"),
    "alone": lambda: played(200, 0.7, cb.LinUCB(), 500),
    "alone, sparse": lambda: played(200, 0.7, cb.KernelUCB(kernel=RBF), 300, "sparse"),
    "alone, exact": lambda: played(40, 0.3, cb.KernelUCB(kernel=RBF), 200, "exact"),
    "messages": lambda: played(24, 0.3, eager(RBF, known(24)), 40, "messages"),
    "one agent": one_agent,
    "lasting": lasting,
    "continuum": continuum,
}


def main() -> None:
    """Time a row in this process, or all rows in turn."""
    if len(sys.argv) == 3 and sys.argv[1] == "one":
        print(ROWS[sys.argv[2]]())
        return
    trees = {"before": Path(sys.argv[1]).resolve(), "now": HERE.parents[1] / "src"}
    print(f"{'row':22}{'before':>9}{'now':>9}{'ratio':>8}")
    for row in sys.argv[2:] or ROWS:
        least = dict.fromkeys(trees, np.inf)
        for _ in range(TIMES):
            for name, tree in trees.items():
                shown = subprocess.run(
                    [sys.executable, str(HERE), "one", row],
                    env={**os.environ, "PYTHONPATH": str(tree)},
                    capture_output=True,
                    text=True,
                    check=True,
                ).stdout
                least[name] = min(least[name], float(shown))
        ratio = least["now"] / least["before"]
        print(f"{row:22}{least['before']:9.2f}{least['now']:9.2f}{ratio:8.2f}", flush=True)


if __name__ == "__main__":
    main()
