"""What would a deployed policy have logged? Simulated logs, where the truth is known."""

import numpy as np

from coopbandits.act import Explore
from coopbandits.arrays import as_count, as_number, as_seed, short
from coopbandits.errors import ParameterError
from coopbandits.lab.logs.log import Log, Logged
from coopbandits.policy import Policy
from coopbandits.problems.problem import Problem


def logged(
    problem: Problem,
    rounds: int,
    *,
    policy: Policy | None = None,
    explore: float = 1.0,
    seed: int = 0,
) -> Log:
    """Let agents act on a problem, and log what they see, with all propensities.

    Each agent takes the policy's choice with probability 1 − ε, else any action: an action's
    propensity is (1 − ε)·[it is the choice] + ε/K. Agents learn from their own decisions and send
    nothing. Without a policy every action is as likely: 1/K.

    Args:
        problem: What the agents face.
        rounds: T; the log holds T·V decisions.
        policy: What the agents follow where they do not explore.
        explore: ε, above 0 so that everything can be evaluated; 1 is uniform logging.
        seed: Of contexts and noise, as in `play`, and of the agents' choices.
    """
    if not isinstance(problem, Problem):
        raise ParameterError(
            f"{short(problem)} is no problem of finite decision sets; coopbandits.problems makes "
            "some"
        )
    T, seed = as_count(rounds, "rounds"), as_seed(seed)
    epsilon = as_number(explore, "explore")
    if not 0 < epsilon <= 1:
        raise ParameterError(f"explore must be above 0 and at most 1, got {epsilon}")
    if policy is None and epsilon != 1:
        raise ParameterError(f"explore={epsilon} needs a policy= to follow otherwise")
    if policy is not None and isinstance(policy.act, Explore):
        raise ParameterError(
            f"the policy explores by itself, act={short(policy.act)}; give it without, or log what "
            "it does: Log.of_run(play(problem, policy, rounds), problem)"
        )
    V = len(problem.network)
    # round 0 of a problem's streams does not exist, so this one is free
    rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(0, 2)))
    agents = [policy.agent(v, problem.network, seed=seed) for v in range(V)] if policy else []
    decisions = []
    for t in range(1, T + 1):
        offer = problem.round(t, seed)
        for v in range(V):
            rows = np.flatnonzero(offer.agents == v)
            contexts = offer.contexts[rows]
            p = np.full(len(rows), epsilon / len(rows))
            if agents:
                p[agents[v].preview(contexts)] += 1 - epsilon
            action = int(rng.choice(len(rows), p=p))
            reward = float(offer.rewards[rows[action]])
            if agents:
                agents[v].observe(contexts[action], reward)
            decisions.append(Logged(t, v, contexts, action, reward, propensities=p))
    names = problem.network.names if problem.network.is_named else None
    return Log.of(decisions, agents=V, names=names)
