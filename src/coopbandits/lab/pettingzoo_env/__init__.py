"""How do other learners play a problem? As a PettingZoo environment.

This file needs no extra, so that `coopbandits.lab` can name what it holds; `problem_env.py` has the
environment itself, `observations.py` what agents see, `news.py` what they hear.
"""

from importlib.util import find_spec
from typing import TYPE_CHECKING

from coopbandits.errors import MissingExtraError
from coopbandits.problems.problem import Problem

if TYPE_CHECKING:
    from coopbandits.lab.pettingzoo_env.problem_env import ProblemEnv


def parallel_env(
    problem: Problem,
    *,
    rounds: int,
    ttl: int | None = None,
    most_actions: int | None = None,
    action_mask: bool = True,
    render_mode: str | None = None,
) -> "ProblemEnv":
    """Make a PettingZoo `ParallelEnv` of a problem; needs `pip install 'coopbandits[pettingzoo]'`.

    `reset(seed=s)` starts the episode that `coopbandits.play` plays with `seed=s`: an action brings
    the same reward in both, to the bit.

    Args:
        problem: What the agents face.
        rounds: T; then the episode is truncated.
        ttl: γ: `infos` then hold what has just arrived from agents at most γ edges away, as in
            `messages.lags`. None: nothing is heard.
        most_actions: K, the room for actions in observations. If not given, it is the size of the
            largest decision set of all T rounds where the problem has a horizon, else of round 1;
            a later round that offers more is then an error.
        action_mask: Whether observations are dictionaries of "observation", (K, d), and
            "action_mask", (K,). If False, they are (K, d) alone, and a decision set of another
            size than K is an error.
        render_mode: "ansi" for text; None for nothing.
    """
    if find_spec("pettingzoo") is None:
        raise MissingExtraError(
            "PettingZoo is not installed, and parallel_env needs it; try: "
            "pip install 'coopbandits[pettingzoo]'"
        )
    from coopbandits.lab.pettingzoo_env.problem_env import ProblemEnv  # noqa: PLC0415 (needs the extra)

    return ProblemEnv(
        problem,
        rounds=rounds,
        ttl=ttl,
        most_actions=most_actions,
        action_mask=action_mask,
        render_mode=render_mode,
    )
