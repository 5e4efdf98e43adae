"""How is an agent stored? A versioned, documented container of JSON and arrays; no pickle.

Layout, little-endian: magic "CBa", version (1 byte), length of the JSON header (4 bytes), header,
arrays one after the other, CRC-32 of all before (4 bytes). The header's "arrays" lists each array
as [name, dtype, shape], in order; its other keys are the agent's.

An agent with a factor is stored as its observations and in which batches they were learnt, not as
its factor: learning them again in the same batches gives the factor back to the bit. Lists of
observations are three arrays each: `*_whose` (origin, round, d, k), `*_rewards` and `*_numbers`
(contexts with what is attached, one after the other).

An agent with statistics is stored as its sums (with three whole numbers for each source: how many
observations, the newest round, when it came), its posterior's mean and covariance, and the own
observations that are not folded into it yet. Rounds that were seen are runs (origin, first, last).

Where K_z is estimated, what it may be is stored with what the estimator keeps of each agent, the
labels of its chains (`state`): a chain goes on from these.

Versions 1 to 4 are still read. Up to version 4 an agent with a factor has no hypotheses of K_z,
which follow from its observations, and rewards are not scaled. Up to version 3 there is no
posterior, which follows from the sums; rounds that were seen are single (`hops`, `settled`). In
versions 1 and 2 the network's fingerprint is another one, and the header does not say what policy
and network were (`identity.py`); statistics are of the agents that the network has the agent hear.
In version 1 what is attached stands behind each context, and observations have no rounds
(`snapshot_v1.py`).
"""

import json
import struct
import zlib
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from coopbandits.agent.attachments import Attachments
from coopbandits.agent.beliefs import Arrays
from coopbandits.agent.factor_beliefs import FactorBeliefs
from coopbandits.agent.identity import check_identity, check_move, identity
from coopbandits.agent.outbox import Outbox
from coopbandits.agent.snapshot_v1 import upgraded
from coopbandits.agent.source_sums import SourceSums
from coopbandits.agent.statistics_beliefs import StatisticsBeliefs
from coopbandits.arrays import (
    LARGEST,
    Array,
    IntArray,
    as_bytes,
    as_count,
    as_floats,
    frozen,
)
from coopbandits.errors import RemoteProtocolError, StateError
from coopbandits.forget import Window
from coopbandits.gp.linear_posterior import LinearPosterior
from coopbandits.network import Network
from coopbandits.policy import Policy
from coopbandits.protocol.digests import LARGEST_SUM, MOST_COUNTED, Digest, checked, packed, sound
from coopbandits.protocol.messages import LAST_ROUND, Observation
from coopbandits.protocol.seen_rounds import SeenRounds
from coopbandits.similarity.hypotheses import Hypotheses
from coopbandits.similarity.loadings import Loadings

if TYPE_CHECKING:
    from coopbandits.agent.agent import Agent

_MAGIC = b"CBa"
_VERSION = 5
_PREFIX = struct.Struct("<3sBI")
_DTYPES = ("<f8", "<i8")
NO_FIT = "its arrays do not fit each other"
# More observations nobody has made.
_MOST_KNOWN = 2**62
# A decision expires once so many more were taken, unless an agent is told otherwise.
EXPIRE = 10_000
# What contents that make no sense may raise, wherever they are used.
SENSELESS = (
    ArithmeticError,
    AssertionError,
    AttributeError,
    LookupError,
    MemoryError,
    RecursionError,
    RemoteProtocolError,
    TypeError,
    ValueError,
)


def pack(header: dict[str, Any], arrays: Arrays) -> bytes:
    """Put a header and named arrays of float64 or int64 into bytes."""
    plain = {
        name: array.astype("<f8" if array.dtype.kind == "f" else "<i8")
        for name, array in arrays.items()
    }
    listed = [[name, array.dtype.str, array.shape] for name, array in plain.items()]
    text = json.dumps({**header, "arrays": listed}, sort_keys=True).encode()
    body = b"".join(
        [_PREFIX.pack(_MAGIC, _VERSION, len(text)), text, *(a.tobytes() for a in plain.values())]
    )
    return body + struct.pack("<I", zlib.crc32(body))


def unpack(data: bytes) -> tuple[int, dict[str, Any], Arrays]:
    """Take apart what `pack` made, with its version; anything else is a `StateError`."""
    data = as_bytes(data)
    if len(data) < _PREFIX.size + 4 or data[:3] != _MAGIC:
        raise StateError(f"{len(data)} bytes that start with {data[:8]!r} are no stored agent")
    _, version, length = _PREFIX.unpack_from(data)
    if not 1 <= version <= _VERSION:
        raise StateError(
            f"the agent was stored in version {version}; this release reads versions 1 to "
            f"{_VERSION}"
        )
    if zlib.crc32(data[:-4]) != struct.unpack("<I", data[-4:])[0]:
        raise StateError("the stored agent is damaged: its checksum does not match")
    try:
        header = json.loads(data[_PREFIX.size : _PREFIX.size + length])
        arrays, offset = {}, _PREFIX.size + length
        for name, dtype, shape in header.pop("arrays"):
            if dtype not in _DTYPES:
                raise ValueError(f"the array {name!r} has an unknown type {dtype!r}")
            count = 1
            for size in shape:
                count *= as_count(size, f"the size of {name!r}", least=0, most=len(data))
            if 8 * count > len(data):
                raise ValueError(f"the array {name!r} is larger than all that was stored")
            array = np.frombuffer(data[:-4], dtype=dtype, count=count, offset=offset)
            arrays[name] = array.reshape(shape).astype(dtype[1:])
            offset += array.nbytes
            if not np.isfinite(array).all():
                raise ValueError(f"the array {name!r} holds NaN or infinity")
        if offset != len(data) - 4:
            raise ValueError("there is more than the header lists")
    except SENSELESS as error:
        raise _senseless(error) from error
    return version, header, arrays


def stored(agent: "Agent") -> bytes:
    """Put an agent into bytes, without its policy and network."""
    header, arrays = _contents(agent)
    return pack({**identity(agent), **header}, arrays)


def moved(agent: "Agent", network: Network) -> "Agent":
    """Make the agent that it is in a network that grew out of its own."""
    check_move(agent, network)
    there = agent.policy.agent(agent.agent, network)
    _refill(there, *_contents(agent))
    return there


def _contents(agent: "Agent") -> tuple[dict[str, Any], Arrays]:
    """Return all that an agent is, but for its policy and network: header and arrays."""
    beliefs, inbox, outbox = agent._beliefs, agent._inbox, agent._outbox
    opened = sorted(agent._open.items(), key=lambda item: item[0])
    header = {
        "round": agent._round,
        "dim": inbox.dim,
        "rng": agent._rng.bit_generator.state,
        "arm_came": agent._arm_came,
        "fitted_at": agent.estimated,
        "before": 0 if outbox is None else outbox.before,
        "expire": agent.expire,
    }
    known, unfolded = [], []
    if isinstance(beliefs, FactorBeliefs):
        known = beliefs.observations
    elif isinstance(beliefs, StatisticsBeliefs):
        known = [one for _, one in beliefs.sources.held]
        unfolded = [*beliefs.unfolded]
    arrays = {
        **laid_out_list("known", known),
        **laid_out_list("unfolded", unfolded),
        **laid_out_list("waiting", inbox.observations),
        **laid_out_list("arm", [] if agent._arm is None else [agent._arm]),
        **laid_out_list("held", [] if outbox is None else outbox.held),
        **laid_out_list("open", [Observation(agent.agent, i, x, 0.0, k) for i, (x, k) in opened]),
        **_seen(agent),
        "sample": agent._attachments.sample,
        **({} if beliefs is None else beliefs.stored()),
    }
    if outbox is not None:
        arrays |= _untold(agent, outbox)
    return header, arrays


def restored(data: bytes, policy: Policy, network: Network) -> "Agent":
    """Make the agent that was stored; other bytes, or another's, are a `StateError`."""
    version, header, arrays = unpack(data)
    check_identity(header, version, policy, network)
    try:
        agent = policy.agent(header["agent"], network)
        if version == 1:
            header, arrays, lists = upgraded(agent, header, arrays)
            for name, listed in lists.items():
                arrays |= laid_out_list(name, listed)
        with np.errstate(all="ignore"):
            _refill(agent, header, arrays)
    except SENSELESS as error:
        raise _senseless(error) from error
    return agent


def _senseless(error: BaseException) -> StateError:
    return StateError(f"the stored agent's contents make no sense: {error!r}")


def _refill(agent: "Agent", header: dict[str, Any], arrays: Arrays) -> None:
    inbox, outbox = agent._inbox, agent._outbox
    agent._round = as_count(header["round"], "round", least=0, most=LAST_ROUND)
    agent._rng.bit_generator.state = header["rng"]
    agent._arm_came = as_count(header["arm_came"], "arm_came", least=0, most=LAST_ROUND)
    if header["dim"] is not None:
        inbox.settle(as_count(header["dim"], "dim"))
    for one in read_list(agent, "waiting", arrays):
        inbox.add(one)
    agent._arm = next(iter(read_list(agent, "arm", arrays)), None)
    agent._open = {
        as_count(one.round, "a decision's id", most=agent._round): (one.context, one.attached)
        for one in read_list(agent, "open", arrays)
    }
    agent.expire = as_count(header.get("expire", EXPIRE), "expire")
    _see_again(agent, arrays)
    agent._attachments = Attachments(agent._plan, sample=_sample(agent, arrays["sample"]))
    if outbox is not None:
        outbox.before = as_count(header["before"], "before", least=0, most=LAST_ROUND)
        outbox.held = read_list(agent, "held", arrays)
        _take_back(agent, outbox, arrays)
    fitted_at = as_count(header["fitted_at"], "fitted_at", least=0, most=LAST_ROUND)
    if "blocks" in arrays or "sums" in arrays:
        beliefs = agent._new_beliefs()
        if isinstance(beliefs, FactorBeliefs):
            _replay(agent, beliefs, arrays, fitted_at)
        else:
            assert isinstance(beliefs, StatisticsBeliefs)
            _resume(agent, beliefs, arrays, fitted_at)
        agent._beliefs = beliefs


def _replay(agent: "Agent", beliefs: FactorBeliefs, arrays: Arrays, fitted_at: int) -> None:
    """Let beliefs learn what they had learnt, in the same batches."""
    known = read_list(agent, "known", arrays)
    if isinstance(agent.policy.forget, Window):
        _resume_window(agent, beliefs, arrays, known, fitted_at)
        return
    blocks = tuple(as_count(size, "a batch") for size in arrays["blocks"].tolist())
    estimates = agent._plan.estimates
    if sum(blocks) != len(known) or (estimates and blocks[:1] != (fitted_at,) and fitted_at):
        raise ValueError(NO_FIT)
    hypotheses = None
    if estimates and "U" in arrays:
        at = places_of(beliefs.hypotheses, arrays)
        hypotheses = hypotheses_of(agent, beliefs.hypotheses, arrays, at, fitted_at)
    beliefs.replay(known, blocks, fitted_at if estimates else 0, hypotheses)


def _resume(agent: "Agent", beliefs: StatisticsBeliefs, arrays: Arrays, fitted_at: int) -> None:
    """Put statistics together again, and check that they can be."""
    empty, sums, summaries = beliefs.hypotheses, arrays["sums"], arrays["summaries"]
    sources = beliefs.sources
    counted = sums[:, 0].astype(np.int64) if sums.ndim == 2 else np.zeros(0, dtype=np.int64)
    learnt = arrays.get("learnt", np.stack([counted, 0 * counted, 0 * counted]))
    at = places_of(empty, arrays)
    known = empty.agents[0, at]
    if (
        sums.shape != (len(known), sources.sums.shape[1])
        or summaries.shape != (len(known), sources.summaries.shape[1])
        or learnt.shape != (3, len(known))
        or (learnt < 0).any()
        or (learnt[0] > MOST_COUNTED).any()
        or np.abs(summaries).max(initial=0.0) > LARGEST_SUM
    ):
        raise ValueError(NO_FIT)
    for origin, row in zip(known.tolist(), sums, strict=True):
        _check_row(agent, beliefs, origin, row)
    # who joined since has told nothing, and is on its own
    sources.sums[at], sources.summaries[at] = sums, summaries
    N = empty.agents.shape[1]
    counts, newest, came = np.zeros((3, N), dtype=np.int64)
    counts[at], newest[at], came[at] = learnt
    held = [(int(beliefs.place(one.origin)), one) for one in read_list(agent, "known", arrays)]
    beliefs.sources = replace(sources, learnt=counts, newest=newest, came=came, held=tuple(held))
    beliefs.hypotheses = hypotheses_of(agent, empty, arrays, at, fitted_at)
    _believe_again(agent, beliefs, arrays)


def _check_row(agent: "Agent", beliefs: StatisticsBeliefs, origin: int, row: Array) -> None:
    """Refuse statistics of an origin that no observations can have."""
    if row.any():
        digest = checked(Digest(int(row[0]), int(origin), packed(row), np.empty(0), 1))
        m = beliefs.features if agent.policy.constants is None else beliefs.features + 1
        scale = float(agent._plan.prior.K_z.own(np.array([origin]))[0])
        sound(digest, m=m, p=0, ridge=agent.policy.ridge, scale=scale, largest=np.inf)


def check_sums(
    agent: "Agent", origin: int, sums: Array, summaries: Array, counted: IntArray, empty: SourceSums
) -> None:
    """Refuse sums of a single source that no observations can have: (·,), (p,), (2,)."""
    beliefs = agent._believing()
    assert isinstance(beliefs, StatisticsBeliefs)
    if (
        sums.shape != empty.sums.shape[1:]
        or summaries.shape != empty.summaries.shape[1:]
        or counted.shape != (2,)
        or (counted < 0).any()
        or counted[0] > MOST_COUNTED
        or np.abs(summaries).max(initial=0.0) > LARGEST_SUM
    ):
        raise ValueError(NO_FIT)
    _check_row(agent, beliefs, origin, sums)


def _believe_again(agent: "Agent", beliefs: StatisticsBeliefs, arrays: Arrays) -> None:
    """Take the posterior that was stored, or the one that follows from the sums."""
    if "posterior_mean" not in arrays:
        beliefs.posterior = beliefs.refreshed()
        return
    mean, covariance = arrays["posterior_mean"], arrays["posterior_covariance"]
    facts, (M,) = arrays["posterior_facts"], beliefs.posterior.mean.shape
    if mean.shape != (M,) or covariance.shape != (M, M) or facts.shape != (4,):
        raise ValueError(NO_FIT)
    logdet, count, stale, as_of = facts.tolist()
    unfolded = read_list(agent, "unfolded", arrays)
    largest = max(np.abs(covariance).max(), 1.0)
    if (
        not 0 <= logdet <= LARGEST
        or max(np.abs(mean).max(), largest) > LARGEST_SUM
        or np.abs(covariance - covariance.T).max() > 1e-6 * largest
        or np.linalg.eigvalsh(covariance)[0] < -1e-6 * largest
        or any(one.origin != agent.agent for one in unfolded)
        or stale not in (0, 1)
        or not as_of.is_integer()
        or not count.is_integer()
    ):
        raise ValueError(NO_FIT)
    count = as_count(int(count), "how many observations", least=0, most=LAST_ROUND)
    beliefs.posterior = LinearPosterior(mean, covariance, logdet, count)
    beliefs.as_of = as_count(int(as_of), "as_of", least=0, most=agent._round)
    beliefs.stale, beliefs.unfolded = bool(stale), tuple(unfolded)


def _resume_window(
    agent: "Agent",
    beliefs: FactorBeliefs,
    arrays: Arrays,
    known: list[Observation],
    fitted_at: int,
) -> None:
    """Let exact beliefs go on with the observations of their window."""
    empty = beliefs.hypotheses
    clock = {
        as_count(o, "origin", least=0, most=len(agent.network) - 1): (
            as_count(newest, "round", least=0, most=LAST_ROUND),
            as_count(came, "round", least=0, most=LAST_ROUND),
        )
        for o, newest, came in arrays["clock"].tolist()
    }
    learnt = as_count(int(arrays["known"][0]), "how many", least=len(known), most=_MOST_KNOWN)
    if {one.origin for one in known} - set(clock):
        raise ValueError(NO_FIT)
    hypotheses = empty
    if agent._plan.estimates:
        hypotheses = hypotheses_of(agent, empty, arrays, places_of(empty, arrays), fitted_at)
    beliefs.resume(known, learnt, clock, hypotheses)


def places_of(empty: Hypotheses, arrays: Arrays) -> IntArray:
    """Return where the agents that were heard stand among those heard now."""
    heard = empty.agents[0]
    known = arrays.get("sources", heard)
    at = np.searchsorted(heard, known)
    if (
        known.ndim != 1
        or not np.array_equal(np.sort(known), known)
        or not np.array_equal(heard[np.minimum(at, len(heard) - 1)], known)
        or len(set(known.tolist())) < len(known)
    ):
        raise ValueError("it has learnt from agents whom it does not listen to")
    return at


def hypotheses_of(
    agent: "Agent", empty: Hypotheses, arrays: Arrays, at: IntArray, fitted_at: int
) -> Hypotheses:
    """Read what K_z was taken to be; who joined since is on its own."""
    known, delta, weight = arrays["U"], arrays["delta"], arrays["weight"]
    scale = arrays.get("scale", np.ones(delta.shape))
    labels = arrays.get("state", np.empty((len(at), 0), dtype=np.int64))
    if (
        weight.ndim != 1
        or scale.shape != delta.shape
        or not (scale >= 1 / LARGEST).all()
        or scale.max(initial=0.0) > LARGEST
        or labels.ndim != 2
        or len(labels) != len(at)
        or labels.dtype.kind != "i"
        or ((labels < -1) | (labels >= len(at))).any()
        or known.ndim != 3
        or known.shape[:2] != delta.shape
        or delta.shape != (len(weight), len(at))
        or not (weight > 0).all()
        or abs(weight.sum() - 1) > 1e-9
        or (delta < 0).any()
        or max(np.abs(known).max(initial=0.0), delta.max(initial=0.0)) > LARGEST
    ):
        raise ValueError(NO_FIT)
    H, N = len(weight), empty.agents.shape[1]
    U, all_delta = np.zeros((H, N, known.shape[2])), np.ones((H, N))
    U[:, at], all_delta[:, at] = known, delta
    all_scale, state = np.ones((H, N)), np.full((1, N, labels.shape[1]), -1)
    all_scale[:, at], state[0, at] = scale, labels
    if agent._plan.estimator is None:
        if len(weight) != 1:
            raise ValueError(NO_FIT)
        return empty
    view = np.zeros(H, dtype=np.int64)
    loadings = Loadings(U, all_delta, view, weight, all_scale, state)
    return empty.adopted(loadings, fitted_at, agent._plan.estimator.composition)


def _seen(agent: "Agent") -> Arrays:
    """Return which rounds of whom have been seen."""
    relayed = agent._relay.rounds.items()
    runs = [
        [origin, first, last]
        for origin, seen in relayed
        for first, last in zip(seen.firsts, seen.lasts, strict=True)
    ]
    hops = [[origin, r, h] for origin, seen in relayed for r, h in seen.hops.items()]
    settled = [[origin, seen.settled] for origin, seen in relayed if seen.settled]
    return {
        "runs": np.array(runs, dtype=np.int64).reshape(-1, 3),
        "hops": np.array(hops, dtype=np.int64).reshape(-1, 3),
        "settled": np.array(settled, dtype=np.int64).reshape(-1, 2),
    }


def _see_again(agent: "Agent", arrays: Arrays) -> None:
    """Read what `_seen` returned."""
    relay, last = agent._relay, len(agent.network) - 1
    for origin, round_ in arrays["settled"].tolist():
        as_count(origin, "origin", least=0, most=last)
        relay.settle(origin, as_count(round_, "round", most=LAST_ROUND))
    for origin, first, end in arrays.get("runs", np.empty((0, 3), dtype=np.int64)).tolist():
        as_count(origin, "origin", least=0, most=last)
        seen = relay.rounds.setdefault(origin, SeenRounds())
        after = max(seen.lasts[-1:], default=seen.settled)
        seen.firsts.append(as_count(first, "a run of rounds", least=after + 1, most=LAST_ROUND))
        seen.lasts.append(as_count(end, "a run of rounds", least=first, most=LAST_ROUND))
    for origin, round_, hops in arrays["hops"].tolist():
        as_count(origin, "origin", least=0, most=last)
        as_count(hops, "hops", most=agent.policy.ttl)
        relay.note(origin, as_count(round_, "round", most=LAST_ROUND), hops)


def laid_out_list(name: str, listed: Sequence[Observation]) -> Arrays:
    """Lay out a list of observations as arrays."""
    whose = [[one.origin, one.round, len(one.context), len(one.attached)] for one in listed]
    return {
        f"{name}_whose": np.array(whose, dtype=np.int64).reshape(-1, 4),
        f"{name}_rewards": np.array([one.reward for one in listed], dtype=np.float64),
        f"{name}_numbers": np.concatenate([np.empty(0), *(one.augmented for one in listed)]),
    }


def read_list(agent: "Agent", name: str, arrays: Arrays) -> list[Observation]:
    """Read what `laid_out_list` returned; with d known, as contexts of d numbers have it."""
    if f"{name}_whose" not in arrays:  # not in this version, or not of this agent
        return []
    whose, rewards = arrays[f"{name}_whose"], arrays[f"{name}_rewards"]
    numbers = as_floats(arrays[f"{name}_numbers"], "contexts")
    if (whose[:, 2:] < 0).any():
        raise ValueError(NO_FIT)
    ends = np.cumsum(whose[:, 2:].reshape(-1))
    if ends[-1:].sum() != len(numbers) or len(whose) != len(rewards):
        raise ValueError(NO_FIT)
    parts = np.split(numbers, ends)
    listed = []
    for (origin, round_, _, _), reward, x, k in zip(
        whose.tolist(), as_floats(rewards, "rewards"), parts[:-1:2], parts[1::2], strict=True
    ):
        as_count(origin, "origin", least=0, most=len(agent.network) - 1)
        as_count(round_, "round", least=0, most=LAST_ROUND)
        one = Observation(origin, round_, frozen(x), float(reward), frozen(k))
        if agent._inbox.dim is not None:
            fitted = agent._inbox.fitted(one)
            if fitted is None or not agent._inbox.admits(fitted.context, origin):
                raise ValueError(NO_FIT)
            one = fitted
        if name in ("known", "waiting") and origin not in agent._heard:
            raise ValueError(f"it has learnt from agent {origin}, whom it does not listen to")
        listed.append(one)
    return listed


def _sample(agent: "Agent", sample: Array) -> Array:
    dim, plan = agent._inbox.dim, agent._plan
    expected = plan.attached(dim) + 2 if plan.frozen and dim is not None else 0
    if sample.shape not in ((0,), (expected,)) or np.abs(sample).max(initial=0.0) > LARGEST:
        raise ValueError(NO_FIT)
    return sample


def _untold(agent: "Agent", outbox: Outbox) -> Arrays:
    """Return what an agent has not told yet, and the digests that it has heard and not learnt."""
    digests = list(agent._inbox.digests.values())
    return {
        "variance_ratio_ids": np.array(list(outbox.variance_ratio), dtype=np.int64),
        "variance_ratio": np.array(list(outbox.variance_ratio.values())),
        "untold": np.array(outbox.waiting),
        **_told(outbox.told),
        "newest": np.array(
            [[*key, round_] for key, round_ in agent._digest_relay.newest.items()], dtype=np.int64
        ).reshape(-1, 3),
        "digests": np.array(
            [[d.origin, d.round, d.ttl, len(d.sums), len(d.summaries)] for d in digests],
            dtype=np.int64,
        ).reshape(-1, 5),
        "digest_numbers": np.concatenate(
            [np.empty(0), *(part for d in digests for part in (d.sums, d.summaries))]
        ),
    }


def _told(told: SourceSums | None) -> Arrays:
    """Return what own observations have added up to, where sums are told."""
    if told is None:
        return {"told_sums": np.empty(0), "told_summaries": np.empty(0)}
    return {
        "told_sums": told.sums[0],
        "told_summaries": told.summaries[0],
        "told_facts": np.array([told.learnt[0], told.newest[0], told.came[0]]),
        **laid_out_list("told", [one for _, one in told.held]),
    }


def _tell_again(agent: "Agent", arrays: Arrays) -> SourceSums:
    """Read what `_told` returned."""
    beliefs = agent._new_beliefs()
    assert isinstance(beliefs, StatisticsBeliefs)
    empty = SourceSums.empty(beliefs.sources.summariser, 1)
    sums, summaries = arrays["told_sums"][None], arrays["told_summaries"][None]
    # up to version 3 it is not said which was the newest
    facts = arrays.get("told_facts", np.array([int(sums[0, 0]), 0, 0]))
    fit = sums.shape == empty.sums.shape and summaries.shape == empty.summaries.shape
    if not fit or facts.shape != (3,) or (facts < 0).any() or facts[0] > MOST_COUNTED:
        raise ValueError(NO_FIT)
    learnt, newest, came = facts[:, None]
    held = read_list(agent, "told", arrays) if "told_whose" in arrays else []
    return SourceSums(
        empty.summariser, sums, summaries, learnt, newest, came, tuple((0, one) for one in held)
    )


def _take_back(agent: "Agent", outbox: Outbox, arrays: Arrays) -> None:
    """Read what `_untold` returned."""
    inbox = agent._inbox
    ids, ratios = arrays["variance_ratio_ids"], arrays["variance_ratio"]
    outbox.variance_ratio = {int(i): float(s) for i, s in zip(ids, ratios, strict=True)}
    outbox.waiting = arrays["untold"].tolist()
    told = np.concatenate([arrays["told_sums"], arrays["told_summaries"]])
    agent._digest_relay.newest = {
        (int(o), int(h)): as_count(r, "round", most=LAST_ROUND)
        for o, h, r in arrays["newest"].tolist()
    }
    ends = np.cumsum(arrays["digests"][:, 3:].reshape(-1))
    if (
        set(outbox.variance_ratio) != set(agent._open)
        or ends[-1:].sum() != len(arrays["digest_numbers"])
        or not all(0 <= s <= LARGEST for s in [*outbox.variance_ratio.values(), *outbox.waiting])
        or np.abs(told).max(initial=0.0) > LARGEST_SUM
    ):
        raise ValueError(NO_FIT)
    if arrays["told_sums"].size:
        outbox.told = _tell_again(agent, arrays)
    parts = np.split(arrays["digest_numbers"], ends)
    for (origin, round_, ttl, _, _), sums, summaries in zip(
        arrays["digests"].tolist(), parts[:-1:2], parts[1::2], strict=True
    ):
        as_count(origin, "origin", least=0, most=len(agent.network) - 1)
        digest = checked(Digest(round_, origin, sums, summaries, ttl))
        if origin not in agent._heard or not agent.policy.say.sums:
            raise ValueError(NO_FIT)
        inbox.check_digest(digest)  # it was mended when it came, and stays as it is to the bit
        inbox.digests[origin] = digest
