r"""What does the theory promise of this run? Its regret, and the bound on it, round by round.

The theorems of `regret.py` with what is known once a run is over: the log-determinant of each group
of agents after each round, the distances within it, and the widths that were played.

| policy | groups | bound |
|---|---|---|
| Coop-KernelUCB | cliques, as far as K_z links their agents | Theorem 1 |
| Eager-KernelUCB, naive cooperation | the same cliques; w for all that an agent hears | Theorem 1 |
| Dist-KernelUCB on one fixed decision set | a centre and its followers | Theorem 2 |
| one agent alone (OFUL and others) | each agent | the usual one |
| `Centralised` | all agents | the usual one |
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from coopbandits.act import FollowCentre, UpperBound
from coopbandits.arrays import Array, IntArray, frozen, short
from coopbandits.errors import ParameterError
from coopbandits.gp.network_kernel import dense
from coopbandits.listen import Centre, Clique, Everyone, Myself, Neighbourhood
from coopbandits.network import Network
from coopbandits.policy import Plan, Policy, plan
from coopbandits.problems.continuum import Continuum
from coopbandits.problems.problem import Problem
from coopbandits.run import Run
from coopbandits.say import Everything
from coopbandits.theory.observed import Observed, check_run, observed
from coopbandits.theory.regret import group_regret
from coopbandits.width import Mixture, SelfNormalised


@dataclass(frozen=True, eq=False)
class RunBound:
    """A run's regret and its bound, after each round.

    Attributes:
        measured: (T,) the sum of all agents' regrets so far.
        bound: (T,) what it may be, with probability at least 1 − `delta`.
        agent_bound: (T, V) what each agent's own regret may be, under Dist-KernelUCB and for agents
            alone; inf where only the group's is bounded.
        delta: The probability that the bound is wrong. An agent that learns from nobody else plays
            with δ for itself, so where there are many of them this can exceed the width's δ.
        groups: The agents of each group.
        logdets: (T, G) log det(I + K/λ) of each group.

    Example:
        >>> problem, policy = cb.problems.clustered_linear(cb.Network.path(3)), cb.OFUL()
        >>> found = cb.theory.run_bound(problem, policy, cb.play(problem, policy, rounds=5))
        >>> found.measured.shape, found.agent_bound.shape
        ((5,), (5, 3))
    """

    measured: Array
    bound: Array
    agent_bound: Array
    delta: float
    groups: tuple[tuple[int, ...], ...]
    logdets: Array


def run_bound(problem: Problem | Continuum, policy: Policy, run: Run, *, seed: int = 0) -> RunBound:
    """Bound the regret of a run, after each of its rounds, by the theorem for its policy.

    The promise is that of the policy's width, `SelfNormalised` or `Mixture`: F has norm at most B
    in the RKHS of the policy's kernel K, and the noise is independent and R-sub-Gaussian. With an
    intercept τ that is ‖F‖² = ‖f‖² + Σ_v c_v²/τ².

    Args:
        problem: What the run played.
        policy: What played it, with such a width and a K_z that is given.
        run: What `play` returned.
        seed: What `play` was given.

    Example:
        >>> problem, policy = cb.problems.clustered_linear(cb.Network.path(3)), cb.OFUL()
        >>> found = cb.theory.run_bound(problem, policy, cb.play(problem, policy, rounds=5))
        >>> bool((found.measured <= found.bound).all())
        True
    """
    check_run(problem, policy, run)
    width = _width_of(policy, run)
    found = observed(problem, policy, run, seed=seed)
    worked_out = plan(policy, problem.network)
    led = isinstance(policy.listen, Centre)
    if led and not (found.one_set and (dense(found.kernel.K_z) == 1).all()):
        raise ParameterError(
            "Theorem 2 is for one fixed decision set and one reward function (K_z = 1); a follower "
            "that takes the nearest action, or has another function than its centre, has no bound"
        )
    T, V = run.regret.shape
    # actions differ by f alone, whose norm is at most that of F with its constant
    cost = 2 * width.norm * float(np.sqrt(found.largest - found.kernel.intercept))
    groups = _groups(policy, problem.network, worked_out)
    agent_bound, bound = np.full((T, V), np.inf), np.zeros(T)
    logdets: list[Array] = []
    judges: list[int] = []
    for group in groups:
        members = np.array(group)
        judging = group[:1] if led else group
        logdets.append(found.logdets(judging, copies=len(group) if led else 1))
        learning, surprising = group_regret(
            logdets[-1],
            width=_widest(width, found, worked_out, judging),
            rounds=np.arange(T, dtype=np.float64),
            agents=len(group),
            groups=1,
            delay=_echo(worked_out, members) if led else _delay(worked_out, members),
            ridge=policy.ridge,
            largest=found.largest,
            cost=cost,
        )
        # each agent's rounds before it hears its centre, and its first action
        alone = np.where(worked_out.leaders[members] >= 0, worked_out.leader_lags[members], 0.0)
        first = cost * np.minimum(alone + 1, np.arange(1, T + 1)[:, None])
        bound += learning + surprising + first.sum(axis=1)
        if led or len(group) == 1:
            agent_bound[:, members] = ((learning + surprising) / len(group))[:, None] + first
        judges += judging
    wrong = width.delta / worked_out.union_bound[judges]
    return RunBound(
        measured=frozen(np.cumsum(run.regret.sum(axis=1))),
        bound=frozen(bound),
        agent_bound=frozen(agent_bound),
        delta=width.delta if policy.listen.pooled else min(1.0, float(wrong.sum())),
        groups=groups,
        logdets=frozen(np.column_stack(logdets)),
    )


def _width_of(policy: Policy, run: Run) -> SelfNormalised | Mixture:
    if not isinstance(policy.width, SelfNormalised | Mixture):
        raise ParameterError(
            f"{short(policy.width)} promises nothing for all rounds and agents at once; the "
            "bounds are for width=SelfNormalised(norm, noise, delta) or Mixture(…)"
        )
    expected = FollowCentre if isinstance(policy.listen, Centre) else UpperBound
    if not isinstance(policy.act, expected):
        raise ParameterError(
            f"no theorem is known for agents that listen by {short(policy.listen)} and act by "
            f"{short(policy.act)}; expected {expected.__name__}"
        )
    if policy.features is not None or run.engine.startswith("sparse"):
        raise ParameterError(
            "the bounds are for the kernel itself; features that stand for it have no bound here"
        )
    if not isinstance(policy.say, Everything) or (run.lost + run.missed + run.late).any():
        raise ParameterError(
            "the bounds are for agents that tell everything over links that deliver it in time"
        )
    return policy.width


def _groups(policy: Policy, network: Network, worked_out: Plan) -> tuple[tuple[int, ...], ...]:
    """Share out the agents: a centre first, then its followers; else in order."""
    if isinstance(policy.listen, Centre):
        heads = np.flatnonzero(worked_out.leaders < 0)
        return tuple((int(c), *np.flatnonzero(worked_out.leaders == c).tolist()) for c in heads)
    if isinstance(policy.listen, Myself):
        return tuple((v,) for v in range(len(network)))
    if isinstance(policy.listen, Everyone):
        return (tuple(range(len(network))),)
    if isinstance(policy.listen, Clique | Neighbourhood):
        linked = plan(replace(policy, listen=Clique()), network).lags.sources
        # an agent's group is named by its lowest member
        labels = linked.agents[linked.starts[:-1]]
        return tuple(tuple(np.flatnonzero(labels == c).tolist()) for c in np.unique(labels))
    raise ParameterError(
        f"no theorem is known for {short(policy.listen)}; expected Clique, Neighbourhood, Centre, "
        "Myself or Everyone"
    )


def _delay(worked_out: Plan, members: IntArray) -> int:
    """After how many rounds do all members know of all their pulls? 0 if they take turns."""
    if worked_out.in_turn:
        return 0
    pairs = np.repeat(members, len(members)), np.tile(members, len(members))
    return int(worked_out.lags.between(*pairs).max())


def _echo(worked_out: Plan, members: IntArray) -> int:
    """After how many rounds does a centre know what all its followers' copies of an arm brought?"""
    centre, followers = members[0], members[1:]
    there = worked_out.leader_lags[followers]
    back = worked_out.lags.between(np.full(len(followers), centre), followers)
    return int((there + back).max(initial=1.0))


def _widest(
    width: SelfNormalised | Mixture, found: Observed, worked_out: Plan, agents: Sequence[int]
) -> Array:
    """Return the largest w of some agents, if they knew all that was seen up to a round: (T,)."""
    widest = np.zeros(len(found.contexts))
    sources: dict[bytes, Array] = {}
    for v in agents:
        heard = worked_out.lags.sources[v]
        if heard.tobytes() not in sources:
            sources[heard.tobytes()] = found.logdets(heard)
        logdet = sources[heard.tobytes()]
        w = width.factor(
            logdet=logdet,
            count=np.zeros(len(logdet), dtype=np.int64),
            ridge=found.ridge,
            agents=np.full(len(logdet), worked_out.union_bound[v]),
        )
        widest = np.maximum(widest, w)
    return widest
