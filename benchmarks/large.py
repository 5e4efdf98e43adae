"""How large may a network be? The rows of speed.py on networks of up to 10⁶ agents.

    python benchmarks/speed.py run growing partitions whole_networks million learnt_facebook

Each case runs in a process of its own, one thread, so that its peak memory is its own; seconds are
CPU. Real networks are looked for in the folder that --data or COOPBANDITS_DATA names, and in the
cache, else fetched from SNAP. Where COOP_BEFORE names another source tree
(`git worktree add out/before d7d6f3e~`, then COOP_BEFORE=out/before/src), `growing` times the same
case there too, in turn.
"""

import json
import os
import resource
import subprocess
import sys
from pathlib import Path
from time import process_time
from typing import Any

os.environ.update({f"{name}_NUM_THREADS": "1" for name in ("OPENBLAS", "OMP", "MKL")})

import numpy as np

import coopbandits as cb

HERE = Path(__file__).resolve()
LINEAR = cb.kernels.Linear()
SIZES = (20_000, 50_000, 100_000, 200_000)

Facts = dict[str, Any]


def known_clusters(network: cb.Network, *, rounds: int, ttl: int = 1) -> Facts:
    """Eager, linear, d = 10, 8 actions, four clusters known, drawn at random: plan and play."""
    labels = np.random.default_rng(0).integers(4, size=len(network))
    problem = cb.problems.clustered_linear(network, dim=10, actions=8, noise=0.3, clusters=labels)
    policy = cb.EagerKernelUCB(kernel=LINEAR, similarity=problem.similarity, ttl=ttl, eta=0.3)
    marks = [process_time()]
    run = cb.play(
        problem,
        policy,
        rounds=rounds,
        memory_limit=16e9,
        on_round=lambda t: marks.append(process_time()),
    )
    return {
        "agents": len(network),
        "seconds": process_time() - marks[0],
        "seconds a round, the last half": (marks[-1] - marks[rounds // 2]) / (rounds - rounds // 2),
        "engine": run.engine,
        "regret": float(run.regret_per_agent[-1]),
    }


def power_law(agents: int, rounds: int) -> Facts:
    """A Barabási-Albert network of mean degree 10."""
    start = process_time()
    network = cb.Network.barabasi_albert(agents, 5, seed=0)
    drawn = process_time() - start
    return {**known_clusters(network, rounds=rounds), "drawing the network, seconds": drawn}


def real(name: str, ttl: int) -> Facts:
    """A whole real network, T = 100."""
    from coopbandits.lab import load_network  # noqa: PLC0415 (the tree before has it too)

    return known_clusters(load_network(name), rounds=100, ttl=ttl)


def learnt(rounds: int) -> Facts:
    """Whole ego-facebook, eight clusters, K_z by Evidence as it is by default."""
    from coopbandits.lab import load_network  # noqa: PLC0415

    network = load_network("ego-facebook")
    labels = np.random.default_rng(0).integers(8, size=len(network))
    problem = cb.problems.clustered_linear(network, dim=10, actions=8, noise=0.3, clusters=labels)
    regret = {}
    for similarity in (cb.similarity.Alone(), cb.similarity.Evidence()):
        policy = cb.EagerKernelUCB(kernel=LINEAR, similarity=similarity, eta=0.3)
        start = process_time()
        run = cb.play(problem, policy, rounds=rounds, memory_limit=16e9)
        regret[type(similarity).__name__] = float(run.regret_per_agent[-1])
    return {"seconds": process_time() - start, "engine": run.engine, "regret": regret}


def sparse_network(kind: str) -> cb.Network:
    """10⁵ agents of mean degree 10: by preferential attachment, or joined at random."""
    if kind == "power law":
        return cb.Network.barabasi_albert(100_000, 5, seed=0)
    ends = np.sort(np.random.default_rng(0).integers(100_000, size=(500_000, 2)), axis=1)
    return cb.Network.from_edges(np.unique(ends[ends[:, 0] < ends[:, 1]], axis=0), agents=100_000)


def partitions(kind: str) -> Facts:
    """Clique cover and centres, γ = 1."""
    network = sparse_network(kind)
    start = process_time()
    cover = network.clique_cover(1)
    covered = process_time() - start
    centres = network.centres(1)
    return {
        "clique cover, seconds": covered,
        "cliques": len(cover.cliques),
        "at least": cover.lower_bound,
        "centres, seconds": process_time() - start - covered,
        "weight of the centres": centres.weight,
        "at most": centres.upper_bound,
    }


CASES = {
    "power_law": power_law,
    "real": real,
    "learnt": learnt,
    "partitions": partitions,
}


def case(name: str, *arguments: Any, tree: Path | None = None) -> Facts:
    """Measure a case in a process of its own, of this source tree or of another."""
    environment = dict(os.environ)
    if tree is not None:
        environment["PYTHONPATH"] = str(tree.resolve())
    shown = subprocess.run(
        [sys.executable, str(HERE), name, json.dumps(arguments)],
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    found: Facts = json.loads(shown)
    print(f"  {name} {arguments}: {shown.strip()}", flush=True)
    return found


def growing() -> Facts:
    """BA(V, 5), clusters known, planning + 10 rounds: against V, and beside the tree before."""
    points = [(V, case("power_law", V, 10)["seconds"]) for V in SIZES]
    x, y = np.log(np.array(points)).T
    row: Facts = {"points": points, "slope": float(np.polyfit(x, y, 1)[0])}
    now = case("power_law", 8_000, 10)
    row |= {"V = 8,000: seconds": now["seconds"], "V = 8,000: peak GB": now["peak GB"]}
    if "COOP_BEFORE" in os.environ:
        then = case("power_law", 8_000, 10, tree=Path(os.environ["COOP_BEFORE"]))
        row |= {
            "V = 8,000, before: seconds": then["seconds"],
            "V = 8,000, before: peak GB": then["peak GB"],
            "times faster": then["seconds"] / now["seconds"],
        }
    return row


def whole_networks() -> Facts:
    """Whole as-caida and musae-Twitch DE, Eager, linear, d = 10, clusters known, T = 100."""
    cases = {"as-caida": ("as-caida", 1), "Twitch DE": ("musae-twitch-de", 1),
             "Twitch DE, two hops": ("musae-twitch-de", 2)}  # fmt: skip
    return {name: case("real", *arguments) for name, arguments in cases.items()}


def learnt_facebook() -> Facts:
    """All 4,039 agents of ego-facebook, Eager, γ = 1, linear, K_z by Evidence, T = 50."""
    return case("learnt", 50)


def million() -> Facts:
    """10⁶ agents, power law of mean degree 10, Eager, γ = 1, linear, clusters known, T = 20."""
    found = case("power_law", 10**6, 20)
    # a round reads and writes these numbers of 8 bytes an agent, at least once: contexts, sums of
    # the last two rounds, the table of them and what is heard of it, factors and beliefs
    V, m, K, degree = 10**6, 10, 8, 10
    h = 1 + m + m * (m + 1) // 2
    moved = 8.0 * V * (3 * K * m + 2 * (2 + m + m * m) + h * (2 + degree / 4) + (m + K + 1) ** 2)
    flops = V * (2 * h * (1 + degree / 4) + (m + K + 1) ** 3 / 3 + 2 * K * m + 6 * K)
    return {**found, "flops a round, roughly": flops, "bytes a round, roughly": moved,
            "copying, GB/s": copied()}  # fmt: skip


def copied() -> float:
    """Return the machine's rate of copying, in 1e9 bytes a second, read and written."""
    A = np.ones(20_000_000)
    B = np.empty_like(A)
    start = process_time()
    for _ in range(5):
        B[:] = A
    return 5 * 2 * A.nbytes / (process_time() - start) / 1e9


def large_partitions() -> Facts:
    """Clique cover and centres, V = 10⁵ of mean degree 10, γ = 1."""
    return {kind: case("partitions", kind) for kind in ("power law", "at random")}


ROWS = {
    "growing": growing,
    "partitions": large_partitions,
    "whole_networks": whole_networks,
    "million": million,
    "learnt_facebook": learnt_facebook,
}


def main() -> None:
    """Measure one case in this process, and print it."""
    found = CASES[sys.argv[1]](*json.loads(sys.argv[2]))  # type: ignore[operator]
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    print(json.dumps({**found, "peak GB": peak}))


if __name__ == "__main__":
    main()
