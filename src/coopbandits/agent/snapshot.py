"""How is an agent stored? A versioned, documented container of JSON and arrays; no pickle.

Layout, little-endian: magic "CBa", version (1 byte), length of the JSON header (4 bytes), header,
arrays one after the other, CRC-32 of all before (4 bytes). The header's "arrays" lists each array
as [name, dtype, shape], in order; its other keys are the agent's.

An agent with a factor is stored as its observations and in which batches they were learnt, not as
its factor: learning them again in the same batches gives the factor back to the bit. Lists of
observations are three arrays each: `*_whose` (origin, round, d, k), `*_rewards` and `*_numbers`
(contexts with what is attached, one after the other).

Versions 1 and 2 are still read. In both the network's fingerprint is another one, and the header
does not say what policy and network were (`identity.py`); statistics are of the agents that the
network has the agent hear. In version 1 what is attached stands behind each context, and
observations have no rounds (`snapshot_v1.py`).
"""

import json
import struct
import zlib
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from coopbandits.agent.attachments import Attachments
from coopbandits.agent.beliefs import Arrays
from coopbandits.agent.factor_beliefs import FactorBeliefs
from coopbandits.agent.identity import check_identity, check_move, identity
from coopbandits.agent.outbox import Outbox
from coopbandits.agent.snapshot_v1 import upgraded
from coopbandits.agent.statistics_beliefs import StatisticsBeliefs
from coopbandits.arrays import (
    LARGEST,
    Array,
    as_bytes,
    as_count,
    as_floats,
    frozen,
    is_whole,
)
from coopbandits.errors import RemoteProtocolError, StateError
from coopbandits.network import Network
from coopbandits.policy import Policy
from coopbandits.protocol.digests import LARGEST_SUM, Digest, checked, packed, sound
from coopbandits.protocol.messages import LAST_ROUND, Observation
from coopbandits.similarity.hypotheses import Hypotheses

if TYPE_CHECKING:
    from coopbandits.agent.agent import Agent

_MAGIC = b"CBa"
_VERSION = 3
_PREFIX = struct.Struct("<3sBI")
_DTYPES = ("<f8", "<i8")
_NO_FIT = "its arrays do not fit each other"
# What contents that make no sense may raise, wherever they are used.
_SENSELESS = (
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
    except _SENSELESS as error:
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
    }
    known = beliefs.observations if isinstance(beliefs, FactorBeliefs) else []
    hops = [[o, r, h] for o, rounds in agent._relay.hops.items() for r, h in rounds.items()]
    arrays = {
        **_laid_out("known", known),
        **_laid_out("waiting", inbox.observations),
        **_laid_out("arm", [] if agent._arm is None else [agent._arm]),
        **_laid_out("held", [] if outbox is None else outbox.held),
        **_laid_out("open", [Observation(agent.agent, i, x, 0.0, k) for i, (x, k) in opened]),
        "hops": np.array(hops, dtype=np.int64).reshape(-1, 3),
        "settled": np.array(list(agent._relay.settled.items()), dtype=np.int64).reshape(-1, 2),
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
                arrays |= _laid_out(name, listed)
        with np.errstate(all="ignore"):
            _refill(agent, header, arrays)
    except _SENSELESS as error:
        raise _senseless(error) from error
    return agent


def _senseless(error: BaseException) -> StateError:
    return StateError(f"the stored agent's contents make no sense: {error!r}")


def _refill(agent: "Agent", header: dict[str, Any], arrays: Arrays) -> None:
    inbox, outbox, relay = agent._inbox, agent._outbox, agent._relay
    agent._round = as_count(header["round"], "round", least=0, most=LAST_ROUND)
    agent._rng.bit_generator.state = header["rng"]
    agent._arm_came = as_count(header["arm_came"], "arm_came", least=0, most=LAST_ROUND)
    if header["dim"] is not None:
        inbox.settle(as_count(header["dim"], "dim"))
    for one in _read(agent, "waiting", arrays):
        inbox.add(one)
    agent._arm = next(iter(_read(agent, "arm", arrays)), None)
    agent._open = {
        as_count(one.round, "a decision's id", most=agent._round): (one.context, one.attached)
        for one in _read(agent, "open", arrays)
    }
    for origin, round_, hops in arrays["hops"].tolist():
        as_count(origin, "origin", least=0, most=len(agent.network) - 1)
        as_count(hops, "hops", most=agent.policy.ttl)
        relay.hops.setdefault(origin, {})[as_count(round_, "round", most=LAST_ROUND)] = hops
    relay.settled = {
        as_count(o, "origin", least=0, most=len(agent.network) - 1): as_count(
            r, "round", most=LAST_ROUND
        )
        for o, r in arrays["settled"].tolist()
    }
    agent._attachments = Attachments(agent._plan, sample=_sample(agent, arrays["sample"]))
    if outbox is not None:
        outbox.before = as_count(header["before"], "before", least=0, most=LAST_ROUND)
        outbox.held = _read(agent, "held", arrays)
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
    known = _read(agent, "known", arrays)
    blocks = tuple(as_count(size, "a batch") for size in arrays["blocks"].tolist())
    estimates = agent._plan.estimates
    if sum(blocks) != len(known) or (estimates and blocks[:1] != (fitted_at,) and fitted_at):
        raise ValueError(_NO_FIT)
    beliefs.replay(known, blocks, fitted_at if estimates else 0)


def _resume(agent: "Agent", beliefs: StatisticsBeliefs, arrays: Arrays, fitted_at: int) -> None:
    """Put statistics together again, and check that they can be."""
    empty, sums, summaries = beliefs.hypotheses, arrays["sums"], arrays["summaries"]
    U, delta, weight = arrays["U"], arrays["delta"], arrays["weight"]
    known = arrays.get("sources", empty.agents[0])
    at = np.searchsorted(empty.agents[0], known)
    if (
        known.ndim != 1
        or not np.array_equal(np.sort(known), known)
        or not np.array_equal(empty.agents[0][np.minimum(at, empty.agents.shape[1] - 1)], known)
        or len(set(known.tolist())) < len(known)
    ):
        raise ValueError("it has learnt from agents whom it does not listen to")
    if (
        sums.shape != (len(known), beliefs.sums.shape[1])
        or summaries.shape != (len(known), beliefs.summaries.shape[1])
        or weight.ndim != 1
        or U.ndim != 3
        or U.shape[:2] != delta.shape
        or delta.shape != (len(weight), len(known))
        or not (weight > 0).all()
        or abs(weight.sum() - 1) > 1e-9
        or (delta < 0).any()
        or max(np.abs(U).max(initial=0.0), delta.max(initial=0.0)) > LARGEST
        or np.abs(summaries).max(initial=0.0) > LARGEST_SUM
    ):
        raise ValueError(_NO_FIT)
    for origin, row in zip(known.tolist(), sums, strict=True):
        if row.any():
            digest = checked(Digest(int(row[0]), int(origin), packed(row), np.empty(0), 1))
            m = beliefs.features
            scale = float(agent._plan.prior.K_z.own(np.array([origin]))[0])
            sound(digest, m=m, p=0, ridge=agent.policy.ridge, scale=scale, largest=np.inf)
    # who joined since has told nothing, and is on its own
    beliefs.sums[at], beliefs.summaries[at] = sums, summaries
    H, N = len(weight), empty.agents.shape[1]
    all_U, all_delta = np.zeros((H, N, U.shape[2])), np.ones((H, N))
    all_U[:, at], all_delta[:, at] = U, delta
    beliefs.hypotheses = _hypotheses(agent, empty, all_U, all_delta, weight, fitted_at)


def _hypotheses(
    agent: "Agent", empty: Hypotheses, U: Array, delta: Array, weight: Array, fitted_at: int
) -> Hypotheses:
    if agent._plan.estimator is None:
        if len(weight) != 1:
            raise ValueError(_NO_FIT)
        return empty
    return empty.adopted(U, delta, weight, fitted_at, agent._plan.estimator.composition)


def _laid_out(name: str, listed: Sequence[Observation]) -> Arrays:
    """Lay out a list of observations as arrays."""
    whose = [[one.origin, one.round, len(one.context), len(one.attached)] for one in listed]
    return {
        f"{name}_whose": np.array(whose, dtype=np.int64).reshape(-1, 4),
        f"{name}_rewards": np.array([one.reward for one in listed], dtype=np.float64),
        f"{name}_numbers": np.concatenate([np.empty(0), *(one.augmented for one in listed)]),
    }


def _read(agent: "Agent", name: str, arrays: Arrays) -> list[Observation]:
    """Read what `_laid_out` returned; with d known, as contexts of d numbers have it."""
    whose, rewards = arrays[f"{name}_whose"], arrays[f"{name}_rewards"]
    numbers = as_floats(arrays[f"{name}_numbers"], "contexts")
    if (whose[:, 2:] < 0).any():
        raise ValueError(_NO_FIT)
    ends = np.cumsum(whose[:, 2:].reshape(-1))
    if ends[-1:].sum() != len(numbers) or len(whose) != len(rewards):
        raise ValueError(_NO_FIT)
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
                raise ValueError(_NO_FIT)
            one = fitted
        if name in ("known", "waiting") and origin not in agent._heard:
            raise ValueError(f"it has learnt from agent {origin}, whom it does not listen to")
        listed.append(one)
    return listed


def _sample(agent: "Agent", sample: Array) -> Array:
    dim, plan = agent._inbox.dim, agent._plan
    expected = plan.attached(dim) + 2 if plan.frozen and dim is not None else 0
    if sample.shape not in ((0,), (expected,)) or np.abs(sample).max(initial=0.0) > LARGEST:
        raise ValueError(_NO_FIT)
    return sample


def _untold(agent: "Agent", outbox: Outbox) -> Arrays:
    """Return what an agent has not told yet, and the digests that it has heard and not learnt."""
    digests = list(agent._inbox.digests.values())
    return {
        "variance_ratio_ids": np.array(list(outbox.variance_ratio), dtype=np.int64),
        "variance_ratio": np.array(list(outbox.variance_ratio.values())),
        "untold": np.array(outbox.waiting),
        "told_sums": outbox.sums,
        "told_summaries": outbox.summaries,
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


def _take_back(agent: "Agent", outbox: Outbox, arrays: Arrays) -> None:
    """Read what `_untold` returned."""
    inbox = agent._inbox
    ids, ratios = arrays["variance_ratio_ids"], arrays["variance_ratio"]
    outbox.variance_ratio = {int(i): float(s) for i, s in zip(ids, ratios, strict=True)}
    outbox.waiting = arrays["untold"].tolist()
    outbox.sums, outbox.summaries = arrays["told_sums"], arrays["told_summaries"]
    told = np.concatenate([outbox.sums, outbox.summaries])
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
        raise ValueError(_NO_FIT)
    if outbox.sums.size:  # they must fit those of the next observation
        beliefs = agent._new_beliefs()
        assert isinstance(beliefs, StatisticsBeliefs)
        expected = beliefs.sums.shape[1:], beliefs.summaries.shape[1:]
        if (outbox.sums.shape, outbox.summaries.shape) != expected or not is_whole(
            int(outbox.sums[0])
        ):
            raise ValueError(_NO_FIT)
    parts = np.split(arrays["digest_numbers"], ends)
    for (origin, round_, ttl, _, _), sums, summaries in zip(
        arrays["digests"].tolist(), parts[:-1:2], parts[1::2], strict=True
    ):
        as_count(origin, "origin", least=0, most=len(agent.network) - 1)
        digest = checked(Digest(round_, origin, sums, summaries, ttl))
        if origin not in agent._heard or not agent.policy.say.sums:
            raise ValueError(_NO_FIT)
        inbox.check_digest(digest)  # it was mended when it came, and stays as it is to the bit
        inbox.digests[origin] = digest
