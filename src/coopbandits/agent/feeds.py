"""An agent whose driver keeps logs of its own: append-only feeds, one of each origin.

Such a driver sees to it that each observation comes once and in the order of its feed, so nothing
is remembered here of single rounds; and it replays its log, so that whatever is learnt must follow
from the feeds alone (`origin_sums.py`) and from results of learning tasks as they were adopted.

| function | what it is for |
|---|---|
| `decide_again` | take a decision as a log says that it was taken |
| `observation` | what a decision's reward tells the others, before it is learnt |
| `extended` | the sums of a feed, with more of its observations |
| `take_sums` | let sums of feeds be what the agent knows of their origins |
| `stored_sums`, `restored_sums` | sums of a feed as bytes, and from these |
| `skip_to` | go on behind rounds that were used and forgotten |
| `stored_result`, `restored_result` | what a learning task found, as bytes, and from these |
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from coopbandits.agent import snapshot
from coopbandits.agent.agent import Agent
from coopbandits.agent.decision import Decision
from coopbandits.agent.learning import LearningResult, LearningTask, believed
from coopbandits.agent.origin_sums import CHUNK, OriginSums, merged
from coopbandits.agent.source_sums import Block, SourceSums, Summariser
from coopbandits.agent.statistics_beliefs import StatisticsBeliefs
from coopbandits.agent.units import as_attached, as_rounds
from coopbandits.arrays import Array, as_contexts, as_count
from coopbandits.errors import LocalProtocolError, StateError
from coopbandits.protocol.messages import LAST_ROUND, Observation

__all__ = [
    "OriginSums",
    "attached_size",
    "decide_again",
    "extended",
    "observation",
    "restored_result",
    "restored_sums",
    "settle_dimension",
    "skip_to",
    "stored_result",
    "stored_sums",
    "take_sums",
]


def observation(agent: Agent, decision: int, y: float) -> Observation:
    """Return what `agent.reward(decision, y)` would learn and tell; nothing changes.

    Its context and reward are as the agent computes with them (`Policy.scale`, `Policy.scaling`).
    """
    if decision not in agent._open:
        raise LocalProtocolError(f"decision {decision} is not open; open are {agent.awaiting}")
    context, attached = agent._open[decision]
    return Observation(agent.agent, decision, context, agent._units.reward(y), attached)


def decide_again(agent: Agent, contexts: Array, index: int) -> Decision:
    """Take a decision that was taken before, of which a log says what was chosen.

    The same build chooses the same again. Where another rounds differently, and chooses otherwise,
    the log is right; random numbers are used up as they were.

    Args:
        agent: Who decides.
        contexts: (K, d).
        index: What was chosen.
    """
    return decide_or_take(agent, contexts, index)[1]


def decide_or_take(agent: Agent, contexts: Array, instead: int | None) -> tuple[Decision, Decision]:
    """Let the agent decide, and take another action in the place of its choice, if one is given.

    Random numbers are used up as by `decide`.

    Args:
        agent: Who decides.
        contexts: (K, d).
        instead: Which action is taken; None for the one that the agent chooses.

    Returns:
        What the agent chose, and the decision that was taken, which may be the same.
    """
    before = agent._attachments
    chosen = agent.decide(contexts, learn=False)
    if instead is None or chosen.index == instead:
        return chosen, chosen
    del agent._open[chosen.id]
    agent._attachments, agent._round = before, chosen.id - 1
    return chosen, agent.took(contexts, instead)


def settle_dimension(agent: Agent, dim: int) -> None:
    """Let contexts have d numbers, if that is not settled yet."""
    agent._check_sums("keeping sums of feeds")
    agent._settle_dimension(dim)


def attached_size(agent: Agent) -> int:
    """Return how many numbers go with each context; d must be settled."""
    return agent._inbox.attached


def extended(
    agent: Agent,
    known: OriginSums | None,
    origin: int,
    contexts: Array,
    rewards: Array,
    rounds: Sequence[int],
    attached: Array,
) -> OriginSums:
    """Return the sums of a feed with its next observations; the agent stays as it is.

    Args:
        agent: In whose units.
        known: The sums so far; None for an empty feed.
        origin: Whose feed.
        contexts: (k, d), as the origin's agent computes with them (`observation`).
        rewards: (k,), likewise.
        rounds: (k,) the origin's own.
        attached: (k, ·).
    """
    X = as_contexts(contexts, "contexts")
    agent._check_own(X, origin)
    k = len(X)
    dated = as_rounds(np.array(rounds), k, np.zeros(k, dtype=np.int64))
    with_them = as_attached(attached, k, agent._inbox.attached)
    before = known or OriginSums.empty(_summariser(agent))
    # Sums are the same to the bit if their terms are laid out alike.
    X, y, A = (np.ascontiguousarray(one, dtype=np.float64) for one in (X, rewards, with_them))
    return before.extended(Block(origin, X, y, A, dated))


def take_sums(agent: Agent, feeds: Mapping[int, Sequence[OriginSums]]) -> None:
    """Let the sums of feeds be all that the agent knows of their origins.

    Own observations that wait to be learnt are in the agent's own feed; they are dropped here, and
    stay folded into what is believed until the next result is adopted.

    Args:
        agent: Whose feeds.
        feeds: By origin, its feeds in order; of origins that are not heard nothing is taken.
    """
    with agent._transaction():
        beliefs = agent._believing()
        assert isinstance(beliefs, StatisticsBeliefs)
        if agent.agent in feeds:
            agent._inbox.clear()
        heard = {origin: merged(known) for origin, known in feeds.items() if origin in agent._heard}
        if heard:
            beliefs.take_sums(heard, agent._round)


def stored_sums(known: OriginSums) -> bytes:
    """Put the sums of a feed into bytes, without what they are sums of."""
    base = known.base
    return snapshot.pack(
        {},
        {
            "sums": base.sums[0],
            "summaries": base.summaries[0],
            "counted": np.array([base.learnt[0], base.newest[0]]),
            **snapshot.laid_out_list("held", [one for _, one in base.held]),
            **snapshot.laid_out_list("tail", known.tail),
        },
    )


def restored_sums(agent: Agent, origin: int, data: bytes) -> OriginSums:
    """Read what `stored_sums` returned; sums that no observations can have are a `StateError`.

    Args:
        agent: Of the same policy as the one that stored them.
        origin: Whose feed it is.
        data: The bytes.
    """
    _, _, arrays = snapshot.unpack(data)
    empty = SourceSums.empty(_summariser(agent), 1)
    try:
        sums, summaries, counted = arrays["sums"], arrays["summaries"], arrays["counted"]
        snapshot.check_sums(agent, origin, sums, summaries, counted, empty)
        held = snapshot.read_list(agent, "held", arrays)
        tail = snapshot.read_list(agent, "tail", arrays)
        if len(tail) >= CHUNK or any(one.origin != origin for one in (*held, *tail)):
            raise ValueError(snapshot.NO_FIT)
    except snapshot.SENSELESS as error:
        raise StateError(f"stored sums make no sense: {error!r}") from error
    base = replace(
        empty,
        sums=sums[None],
        summaries=summaries[None],
        learnt=counted[:1],
        newest=counted[1:],
        held=tuple((0, one) for one in held),
    )
    return OriginSums(base, tuple(tail))


def skip_to(agent: Agent, round_: int) -> None:
    """Let the next decision come after a round, if it would not anyway."""
    agent._round = max(agent._round, as_count(round_, "round", least=0, most=LAST_ROUND))


def stored_result(task: LearningTask, result: LearningResult) -> bytes:
    """Put what a task found into bytes: hypotheses of K_z, with the labels of chains.

    What is believed under them follows from the task's sums. Empty where K_z is as it was.
    """
    before, after = task.hypotheses, result.hypotheses
    if task.estimator is None or np.array_equal(before.fitted_at, after.fitted_at):
        return b""
    return snapshot.pack({"fitted_at": int(after.fitted_at[0])}, after.stored())


def restored_result(agent: Agent, task: LearningTask, data: bytes) -> LearningResult:
    """Make the result of a task again from what `stored_result` returned; nothing is sampled."""
    hypotheses = task.hypotheses
    if data:
        _, header, arrays = snapshot.unpack(data)
        try:
            fitted_at = as_count(header["fitted_at"], "fitted_at", least=0, most=LAST_ROUND)
            at = snapshot.places_of(hypotheses, arrays)
            hypotheses = snapshot.hypotheses_of(agent, hypotheses, arrays, at, fitted_at)
        except snapshot.SENSELESS as error:
            raise StateError(f"a stored result makes no sense: {error!r}") from error
    posterior = believed(hypotheses, task.sums, task.m, task.ridge, task.constants)
    return LearningResult(
        task.agent, task.number, task.owner, task.known, task.now, hypotheses, posterior
    )


def _summariser(agent: Agent) -> Summariser:
    beliefs = agent._believing()
    assert isinstance(beliefs, StatisticsBeliefs)
    return beliefs.sources.summariser
