"""How is an agent stored? A versioned, documented container of JSON and arrays; no pickle.

Layout, little-endian: magic "CBa", version (1 byte), length of the JSON header (4 bytes), header,
arrays one after the other, CRC-32 of all before (4 bytes). The header's "arrays" lists each array
as [name, dtype, shape], in order; its other keys are the agent's.

An agent is stored as its observations and in which batches they were learnt, not as its factor:
learning them again in the same batches gives the factor back to the bit.
"""

import json
import struct
import zlib
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from coopbandits.agent.model import Attachments, Model
from coopbandits.agent.summed_model import SummedModel
from coopbandits.arrays import as_bytes, as_count, frozen
from coopbandits.errors import RemoteProtocolError, StateError
from coopbandits.network import Network
from coopbandits.policy import Policy
from coopbandits.protocol.digests import Digest, checked
from coopbandits.say import Everything
from coopbandits.similarity import Loadings

if TYPE_CHECKING:
    from coopbandits.agent import Agent

Arrays = dict[str, npt.NDArray[Any]]

_MAGIC = b"CBa"
_VERSION = 1
_PREFIX = struct.Struct("<3sBI")
_DTYPES = ("<f8", "<i8")


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


def unpack(data: bytes) -> tuple[dict[str, Any], Arrays]:
    """Take apart what `pack` made; anything else is a `StateError`."""
    data = as_bytes(data)
    if len(data) < _PREFIX.size + 4 or data[:3] != _MAGIC:
        raise StateError(f"{len(data)} bytes that start with {data[:8]!r} are no stored agent")
    _, version, length = _PREFIX.unpack_from(data)
    if version != _VERSION:
        raise StateError(
            f"the agent was stored in version {version}; this release reads version {_VERSION}"
        )
    if zlib.crc32(data[:-4]) != struct.unpack("<I", data[-4:])[0]:
        raise StateError("the stored agent is damaged: its checksum does not match")
    try:
        header = json.loads(data[_PREFIX.size : _PREFIX.size + length])
        arrays, offset = {}, _PREFIX.size + length
        for name, dtype, shape in header.pop("arrays"):
            if dtype not in _DTYPES:
                raise ValueError(f"the array {name!r} has an unknown type {dtype!r}")
            count = int(np.prod(shape, dtype=np.int64))
            array = np.frombuffer(data[:-4], dtype=dtype, count=count, offset=offset)
            arrays[name] = array.reshape(shape).astype(dtype[1:])
            offset += array.nbytes
            if not np.isfinite(array).all():
                raise ValueError(f"the array {name!r} holds NaN or infinity")
        if offset != len(data) - 4:
            raise ValueError("there is more than the header lists")
    except (AttributeError, LookupError, RecursionError, TypeError, ValueError) as error:
        raise StateError(f"the stored agent's contents make no sense: {error!r}") from error
    return header, arrays


def stored(agent: "Agent") -> bytes:
    """Put an agent into bytes, without its policy and network."""
    model = agent._model
    width = 0 if agent._dim is None else agent._attachments.width(agent._dim)
    opened = sorted(agent._open)
    sizes = [len(context) for _, context, _ in agent._observations]
    header = {
        "agent": agent.agent,
        "policy": agent.policy.fingerprint,
        "network": agent.network.fingerprint,
        "round": agent._round,
        "dim": agent._dim,
        "arm_round": None if agent._arm is None else agent._arm[0],
        "rng": agent._rng.bit_generator.state,
    }
    arrays = {
        "blocks": np.array(model.blocks if isinstance(model, Model) else [], dtype=np.int64),
        "origins": np.array([o for o, _, _ in agent._observations], dtype=np.int64),
        "rewards": np.array([y for _, _, y in agent._observations]),
        "sizes": np.array(sizes, dtype=np.int64),
        "contexts": np.concatenate([np.empty(0), *(x for _, x, _ in agent._observations)]),
        "open": np.array(opened, dtype=np.int64),
        "open_contexts": np.array([agent._open[i] for i in opened]).reshape(len(opened), width),
        "hops": np.array(
            [[o, r, h] for (o, r), h in agent._relay.hops.items()], dtype=np.int64
        ).reshape(-1, 3),
        "arm": np.empty(0) if agent._arm is None else agent._arm[1],
    }
    if agent._relay.settled:
        arrays["settled"] = np.array(list(agent._relay.settled.items()), dtype=np.int64)
    if isinstance(model, SummedModel):
        arrays["sums"], arrays["summaries"] = model.sums, model.summaries
        arrays["U"], arrays["delta"] = model.loadings.U, model.loadings.delta
        if len(model.loadings.weight) > 1:
            arrays["weight"] = model.loadings.weight
    if agent._plan.learner is not None:
        header["estimated"] = model.estimated if model else 0
        arrays["sample"] = agent._attachments.sample
    if agent._patience is not None:
        header["arm_came"] = agent._arm_came
    if not isinstance(agent.policy.say, Everything):
        header["before"] = agent._speaker.before
        arrays |= _untold(agent)
    return pack(header, arrays)


def restored(data: bytes, policy: Policy, network: Network) -> "Agent":
    """Make the agent that was stored; other bytes, or another's, are a `StateError`."""
    header, arrays = unpack(data)
    for what, expected in [("policy", policy.fingerprint), ("network", network.fingerprint)]:
        if header.get(what) != expected:
            raise StateError(
                f"the agent was stored under another {what}; restore it with the one that it "
                "was made with"
            )
    try:
        agent = policy.agent(header["agent"], network)
        _refill(agent, header, arrays)
    except (
        AttributeError,
        LookupError,
        OverflowError,
        RemoteProtocolError,
        TypeError,
        ValueError,
    ) as error:
        raise StateError(f"the stored agent's contents make no sense: {error!r}") from error
    return agent


def _refill(agent: "Agent", header: dict[str, Any], arrays: Arrays) -> None:
    agent._round, agent._dim = as_count(header["round"], "round", least=0), header["dim"]
    agent._rng.bit_generator.state = header["rng"]
    ends, origins = np.cumsum(arrays["sizes"]), arrays["origins"]
    if (
        ends[-1:].sum() != len(arrays["contexts"])
        or arrays["blocks"].sum() > len(origins)
        or not np.isin(origins, np.arange(len(agent.network))).all()
        or (arrays["hops"] < [0, 1, 1]).any()
    ):
        raise ValueError("its arrays do not fit each other")
    contexts = np.split(arrays["contexts"], ends)[:-1]
    agent._observations = [
        (int(o), frozen(x), float(y))
        for o, x, y in zip(origins, contexts, arrays["rewards"], strict=True)
    ]
    agent._open = {
        int(i): frozen(x) for i, x in zip(arrays["open"], arrays["open_contexts"], strict=True)
    }
    agent._relay.hops = {(int(o), int(r)): int(h) for o, r, h in arrays["hops"]}
    settled = arrays.get("settled", np.empty((0, 2), dtype=np.int64))
    agent._relay.settled = {int(o): as_count(int(r), "round") for o, r in settled}
    if header["arm_round"] is not None:
        agent._arm = (as_count(header["arm_round"], "round"), frozen(arrays["arm"]))
    if agent._patience is not None:
        agent._arm_came = as_count(header["arm_came"], "arm_came", least=0)
    if not isinstance(agent.policy.say, Everything):
        agent._speaker.before = as_count(header["before"], "before", least=0)
        _take_back(agent, arrays)
    _relearn(agent, header, arrays)


def _untold(agent: "Agent") -> Arrays:
    """Return what an agent has not told yet, and the digests that it has heard and not learnt."""
    speaker, digests = agent._speaker, list(agent._inbox.digests.values())
    ids, contexts, rewards = zip(*speaker.held, strict=True) if speaker.held else ((), (), ())
    return {
        "surprise_ids": np.array(list(speaker.surprise), dtype=np.int64),
        "surprise": np.array(list(speaker.surprise.values())),
        "waiting": np.array(speaker.waiting),
        "held_ids": np.array(ids, dtype=np.int64),
        "held_contexts": np.array(contexts).reshape(len(ids), -1 if ids else 0),
        "held_rewards": np.array(rewards),
        "told_sums": speaker.sums,
        "told_summaries": speaker.summaries,
        "newest": np.array(
            [[*key, round_] for key, round_ in agent._inbox.relay.newest.items()], dtype=np.int64
        ).reshape(-1, 3),
        "digests": np.array(
            [[d.origin, d.round, d.ttl, len(d.sums), len(d.summaries)] for d in digests],
            dtype=np.int64,
        ).reshape(-1, 5),
        "digest_numbers": np.concatenate(
            [np.empty(0), *(part for d in digests for part in (d.sums, d.summaries))]
        ),
    }


def _take_back(agent: "Agent", arrays: Arrays) -> None:
    """Read what `_untold` returned."""
    speaker = agent._speaker
    speaker.surprise = {
        int(i): float(s) for i, s in zip(arrays["surprise_ids"], arrays["surprise"], strict=True)
    }
    speaker.waiting = arrays["waiting"].tolist()
    speaker.held = [
        (int(i), frozen(x), float(y))
        for i, x, y in zip(
            arrays["held_ids"], arrays["held_contexts"], arrays["held_rewards"], strict=True
        )
    ]
    speaker.sums, speaker.summaries = arrays["told_sums"], arrays["told_summaries"]
    agent._inbox.relay.newest = {(int(o), int(h)): int(r) for o, h, r in arrays["newest"]}
    ends = np.cumsum(arrays["digests"][:, 3:].reshape(-1))
    if set(speaker.surprise) != set(agent._open) or ends[-1:].sum() != len(
        arrays["digest_numbers"]
    ):
        raise ValueError("its arrays do not fit each other")
    parts = np.split(arrays["digest_numbers"], ends)
    for (origin, round_, ttl, _, _), sums, summaries in zip(
        arrays["digests"].tolist(), parts[:-1:2], parts[1::2], strict=True
    ):
        agent._inbox.digests[origin] = checked(Digest(round_, origin, sums, summaries, ttl))


def _relearn(agent: "Agent", header: dict[str, Any], arrays: Arrays) -> None:
    """Learn again what a stored agent had learnt."""
    blocks = arrays["blocks"].tolist()
    estimated = 0
    if agent._plan.learner is not None:
        estimated = as_count(header["estimated"], "estimated", least=0)
        agent._attachments = Attachments(agent._plan, sample=arrays["sample"])
    if blocks and estimated not in (0, blocks[0]):
        raise ValueError("its arrays do not fit each other")
    if blocks:
        model = agent._new_model(agent._dim)
        assert isinstance(model, Model)
        model.replay(agent._observations, blocks, estimated)
        agent._model = model
    if "sums" in arrays:
        agent._model = _summed(agent, arrays, estimated)


def _summed(agent: "Agent", arrays: Arrays, count: int) -> SummedModel:
    """Put a stored model of sums together again."""
    empty = agent._new_model(agent._dim)
    if not isinstance(empty, SummedModel):
        raise ValueError("its policy keeps no sums")
    weight = arrays.get("weight", np.ones(1))  # of each K_z that it may be; without, there is one
    view = np.zeros(len(weight), dtype=np.int64)
    loadings = Loadings(arrays["U"], arrays["delta"], view, weight)
    expected = (len(weight), *empty.loadings.delta.shape[1:])
    fits = (arrays["sums"].shape, arrays["summaries"].shape) == (
        empty.sums.shape,
        empty.summaries.shape,
    ) and loadings.U.shape[:2] == loadings.delta.shape == expected
    if not fits or weight.ndim != 1 or not (weight > 0).all() or abs(weight.sum() - 1) > 1e-9:
        raise ValueError("its arrays do not fit each other")
    return replace(
        empty,
        sums=arrays["sums"],
        summaries=arrays["summaries"],
        loadings=loadings,
        estimated=count,
    )
