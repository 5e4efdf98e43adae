"""What does it cost never to forget? Agents alone, on tasks that jump, drift or are dealt out anew.

Sixteen agents with four linear tasks, which change half way through or all the time. Prints regret
per agent of LinUCB, which keeps everything, beside the same with `forget=`, which any policy takes,
and two algorithms of other papers, all with the same seeds.
"""

import argparse
from functools import partial

import coopbandits as cb
from coopbandits.engines import Algorithm

AGENTS, TASKS, DIM, NOISE, ETA = 16, 4, 5, 0.3, 0.3
CHANGES = {
    "nothing changes": "nothing",
    "a jump half way": "jump",
    "a drift of 0.02 radians a round": "drift",
    "tasks dealt out anew half way": "regroup",
}


def made(change: str, rounds: int, seed: int) -> cb.problems.Problem:
    """Make what agents face, with tasks of this seed."""
    network = cb.Network.from_edges([], agents=AGENTS)
    clusters = [v % TASKS for v in range(AGENTS)]
    if change == "nothing":
        return cb.problems.clustered_linear(
            network, clusters=clusters, dim=DIM, noise=NOISE, seed=seed
        )
    return cb.problems.changing(
        network,
        kind=change,
        at=2 if change == "drift" else rounds // 2 + 1,
        rate=0.02 if change == "drift" else None,
        clusters=clusters,
        dim=DIM,
        noise=NOISE,
        seed=seed,
    )


def main() -> None:
    """Run the example."""
    parser = argparse.ArgumentParser(description="What does it cost never to forget?")
    parser.add_argument("--rounds", type=int, default=400, help="default 400")
    parser.add_argument("--seeds", type=int, default=10, help="default 10")
    options = parser.parse_args()
    if options.rounds < 4:
        parser.error("--rounds must be at least 4")
    policies: list[cb.Policy | Algorithm] = [
        cb.LinUCB(eta=ETA),
        cb.LinUCB(eta=ETA, forget=cb.forget.Window(rounds=50)).named("the last 50 rounds"),
        cb.LinUCB(eta=ETA, forget=cb.forget.Exponential(half_life=23)).named("half life 23"),
        cb.SlidingWindowLinUCB(window=50, eta=ETA),
        cb.DiscountedLinUCB(discount=0.97, eta=ETA),
    ]
    for name, change in CHANGES.items():
        problem = partial(made, change, options.rounds)
        comparison = cb.compare(problem, policies, rounds=options.rounds, seeds=options.seeds)
        print(f"{name}\n{comparison}\n")


if __name__ == "__main__":
    main()
