"""How do other tools read a log? Open Bandit Pipeline's dictionary, Vowpal Wabbit's text.

Open Bandit Pipeline (`obp`) knows n_actions actions that are the same in every round, and one
vector of context a round. Here an action is its place among what is offered, and the vector of a
round is all that was offered, one action after the other.

Vowpal Wabbit's `--cb_adf` format has an example of several lines for each decision, one line for
each offered action, the taken one's with its label `action:cost:probability`; a cost is a reward's
negative, and which action it was is told by the line alone.
"""

from pathlib import Path
from typing import Any

import numpy as np

from coopbandits.errors import InputError, ParameterError
from coopbandits.lab.logs.log import Log, as_log
from coopbandits.lab.logs.support import known_propensities


def to_obp(log: Log, *, agent: int | str | None = None, uniform: bool = False) -> dict[str, Any]:
    """Return a log as the bandit feedback that `obp.ope` takes.

    N decisions with K actions of d numbers each: `n_rounds` N, `n_actions` K, `context` (N, K·d),
    `action_context` (K, K), the identity, `action` (N,), `position` (N,), zeros, `reward` (N,),
    `pscore` (N,), and `pi_b` (N, K, 1) where the propensities of all actions are known. Refused:
    logs without propensities, and decision sets of different sizes.

    Args:
        log: With propensities, or uniform.
        agent: Whose decisions, by number or name; of all agents, if not given.
        uniform: Vouches that logging took every offered action with the same probability.
    """
    log = _of_agent(as_log(log), agent)
    p, sizes = known_propensities(log, uniform=uniform), np.unique(log.sizes)
    if len(sizes) > 1:
        raise InputError(
            f"decisions have from {sizes[0]} to {sizes[-1]} actions; obp knows one number of "
            "actions for all rounds. Export those of one number, or take write_vw, which has no "
            "such limit"
        )
    N, K = len(log), int(sizes[0])
    feedback: dict[str, Any] = {
        "n_rounds": N,
        "n_actions": K,
        "context": np.array([one.contexts.ravel() for one in log.decisions]),
        "action_context": np.eye(K),
        "action": np.array([one.action for one in log.decisions], dtype=np.int64),
        "position": np.zeros(N, dtype=np.int64),
        "reward": log.rewards,
        "pscore": p,
    }
    known = [one.propensities for one in log.decisions if one.propensities is not None]
    if uniform or known:
        feedback["pi_b"] = (np.full((N, K), 1.0 / K) if uniform else np.array(known))[:, :, None]
    return feedback


def to_vw(log: Log, *, uniform: bool = False) -> str:
    """Return a log as Vowpal Wabbit's text for `--cb_adf`: an example for each decision.

    The shared line holds the agent as a feature, such as `v=3` for agent 3; an action's line its
    context, x0 … in the namespace x. Numbers are written to the bit; Vowpal Wabbit reads them in
    single precision.

    Args:
        log: With propensities, or uniform.
        uniform: Vouches that logging took every offered action with the same probability.
    """
    examples = []
    for one, p in zip(as_log(log).decisions, known_propensities(log, uniform=uniform), strict=True):
        label = f"0:{0.0 - one.reward!r}:{float(p)!r} "
        lines = [f"shared |agent v={one.agent}"]
        for k, x in enumerate(one.contexts.tolist()):
            features = " ".join(f"x{j}:{value!r}" for j, value in enumerate(x))
            lines.append(f"{label if k == one.action else ''}|x {features}")
        examples.append("\n".join(lines) + "\n\n")
    return "".join(examples)


def write_vw(log: Log, path: str | Path, *, uniform: bool = False) -> None:
    """Write `to_vw(log)` to a file, for `vw --cb_adf -d file`."""
    Path(path).write_bytes(to_vw(log, uniform=uniform).encode())


def _of_agent(log: Log, agent: int | str | None) -> Log:
    """Return the decisions of one agent."""
    if agent is None:
        return log
    called = {v: (v, None if log.names is None else log.names[v]) for v in range(log.agents)}
    found = [one for one in log.decisions if agent in called[int(one.agent)]]
    if not found:
        raise ParameterError(
            f"agent={agent!r} has no decision in this log; expected one of "
            f"{', '.join(log.called(v) for v in np.unique(log.owners).tolist()[:8])} …"
        )
    return Log(tuple(found), log.agents, log.names)
