"""A stored agent that was changed by hand, its checksum made anew, is refused or lives on.

Never another error, when it is restored or later.
"""

import copy

import numpy as np
import pytest

import coopbandits as cb
from coopbandits.agent import snapshot
from coopbandits.errors import CoopBanditsError, StateError

NETWORK = cb.Network.path(4)
LINEAR, RBF = cb.kernels.Linear(), cb.kernels.RBF()
OFFERED = cb.similarity.MeanEmbedding(0.5, sample="offered", kernel=LINEAR)
FROZEN = cb.similarity.MeanEmbedding(refresh="frozen")
EVIDENCE, SAME = cb.similarity.Evidence(), cb.similarity.Same()
POLICIES = {
    "factor": cb.EagerKernelUCB(kernel=RBF, similarity=SAME, ttl=2),
    "estimated": cb.EagerKernelUCB(kernel=LINEAR, similarity=EVIDENCE, ttl=2),
    "frozen": cb.EagerKernelUCB(kernel=LINEAR, similarity=FROZEN, ttl=2),
    "features": cb.EagerKernelUCB(
        kernel=RBF, similarity=EVIDENCE, features=cb.features.Fourier(8), ttl=2
    ),
    "sums": cb.EagerKernelTS(kernel=LINEAR, similarity=OFFERED, ttl=2, say=cb.say.Sums(every=2)),
    "held back": cb.EagerKernelUCB(
        kernel=RBF, similarity=SAME, ttl=2, say=cb.say.WhenItPays(gain=0.5)
    ),
    "follower": cb.DistKernelUCB(kernel=RBF, ttl=1, patience=2),
    "faded": cb.EagerKernelUCB(
        kernel=LINEAR,
        similarity=EVIDENCE,
        ttl=2,
        intercept=2.0,
        forget=cb.forget.Exponential(2.0),
        scale=3.0,
        scaling=cb.Scaling(0.5, 2.0),
    ),
    "window": cb.EagerKernelUCB(
        kernel=LINEAR, similarity=EVIDENCE, ttl=2, forget=cb.forget.Window(3)
    ),
    "window of sums": cb.EagerKernelTS(
        kernel=LINEAR,
        similarity=OFFERED,
        ttl=2,
        intercept=1.0,
        forget=cb.forget.Window(3),
        say=cb.say.Sums(every=2),
    ),
}
WILD = [None, -1, 0, 2**31, 2**63, 2**70, 1e308, "x", [], {}, True, 1.5]
NUMBERS = [-1, 0, 1e300, -1e300, 1e50, 1e60, 2**40, 1e-300, -1e-9]
FORGED = 60


def grown(policy):
    """An agent of four after five rounds, one decision without its reward."""
    agents = [policy.agent(v, NETWORK, seed=v) for v in range(4)]
    rng = np.random.default_rng(0)
    for t in range(5):
        news = []
        for agent in agents:
            decision = agent.decide(rng.normal(size=(3, 2)), learn=t < 4)
            if (t, agent.agent) != (3, 1):
                told = agent.reward(decision.id, float(rng.normal()))
                news += [(int(to), m) for m in told for to in agent.recipients]
        for to, message in news:
            agents[to].receive(message)
    return agents[1]


def put(name, value, at=...):
    """Return what puts a value into an array of a stored agent, everywhere or at some place."""

    def change(header, arrays):
        arrays[name][at] = value

    return change


@pytest.mark.parametrize("name", ["faded", "features", "window of sums"])
@pytest.mark.parametrize(
    "change",
    [
        put("posterior_mean", 1e200),
        put("posterior_mean", 1e200, 0),
        put("posterior_covariance", 1e200, (0, 0)),
        put("posterior_covariance", 1e9, (0, -1)),
        put("posterior_covariance", -1.0, (0, 0)),
        put("posterior_facts", -1.0, 0),
        put("posterior_facts", 1e300, 0),
        put("posterior_facts", 0.5, 1),
        put("posterior_facts", -1.0, 1),
        put("posterior_facts", 1e300, 1),
        put("posterior_facts", 7.0, 2),
        put("posterior_facts", 100.0, 3),
        put("posterior_facts", 2.5, 3),
        put("learnt", 2**62),
        put("learnt", -1),
        put("unfolded_whose", 0, (0, 0)),
        put("unfolded_whose", 5, (0, 2)),
        put("runs", 0, (0, 1)),
        put("runs", 99, (0, 0)),
        lambda header, arrays: header.update(expire=0),
        lambda header, arrays: arrays.pop("posterior_facts"),
        lambda header, arrays: arrays.update(learnt=arrays["learnt"][:2]),
        lambda header, arrays: arrays.update(runs=arrays["runs"][:, :2]),
    ],
    ids=range(23),
)
def test_what_no_agent_can_have_stored_is_refused(name, change):
    policy = POLICIES[name]
    _, header, arrays = snapshot.unpack(grown(policy).to_bytes())
    if name == "window of sums" and not arrays["runs"].size:
        arrays["runs"] = np.array([[0, 1, 2]])
    change(header, arrays)
    with pytest.raises(StateError, match="make no sense"):
        cb.Agent.from_bytes(snapshot.pack(header, arrays), policy=policy, network=NETWORK)


@pytest.mark.parametrize(
    "change",
    [
        put("clock", 99, (0, 0)),
        put("clock", -1, (0, 1)),
        put("known", 0),
        put("known", 2**63 - 1),
        put("weight", 0.5),
        lambda header, arrays: arrays.update(clock=arrays["clock"][1:]),
        lambda header, arrays: arrays.pop("clock"),
    ],
    ids=range(7),
)
def test_a_window_that_no_agent_can_have_stored_is_refused(change):
    policy = POLICIES["window"]
    _, header, arrays = snapshot.unpack(grown(policy).to_bytes())
    change(header, arrays)
    with pytest.raises(StateError, match="make no sense"):
        cb.Agent.from_bytes(snapshot.pack(header, arrays), policy=policy, network=NETWORK)


def any_of(rng, choices):
    return choices[int(rng.integers(len(choices)))]


def forge(rng, header, arrays):
    """Change one thing."""
    if rng.random() < 0.3:
        key = any_of(rng, sorted(set(header) - {"policy", "network"}))
        if key == "rng" and rng.random() < 0.7:
            header["rng"]["state"]["state"] = any_of(rng, WILD)
        else:
            header[key] = any_of(rng, WILD)
        return
    name = any_of(rng, sorted(arrays))
    array = arrays[name]
    match int(rng.integers(7)):
        case 0:
            del arrays[name]
        case 1 if array.size:
            flat = arrays[name] = array.astype(float)
            flat.reshape(-1)[int(rng.integers(array.size))] = any_of(rng, NUMBERS)
            if array.dtype.kind == "i":
                arrays[name] = np.clip(flat, -(2**62), 2**62).astype(np.int64)
        case 2:
            arrays[name] = array[:-1]
        case 3:
            arrays[name] = np.concatenate([array, array])
        case 4:
            arrays[name] = array.reshape(-1)
        case 5:
            arrays[name] = (array * any_of(rng, [-1, 0, 1000])).astype(array.dtype)
        case _:
            arrays[name] = array.astype(np.int64 if array.dtype.kind == "f" else float)


@pytest.mark.parametrize("name", POLICIES)
def test_whatever_is_changed_by_hand_is_refused_or_harmless(name):
    policy = POLICIES[name]
    _, header, arrays = snapshot.unpack(grown(policy).to_bytes())
    refused = lived = 0
    for seed in range(FORGED):
        rng = np.random.default_rng([seed, 5])
        changed, kept = copy.deepcopy(header), {k: v.copy() for k, v in arrays.items()}
        forge(rng, changed, kept)
        data = snapshot.pack(changed, kept)
        try:
            agent = cb.Agent.from_bytes(data, policy=policy, network=NETWORK)
        except StateError:
            refused += 1
            continue
        try:  # what was let in does no harm
            for _ in range(2):
                decision = agent.decide(rng.normal(size=(3, 2)))
                facts = [f for f in (decision.mean, decision.std) if f is not None]
                assert np.isfinite(facts).all()
                agent.reward(decision.id, 0.5)
                if not policy.say.sums:
                    agent.hear(0, rng.normal(size=(2, 2)), np.ones(2))
                agent.predict(rng.normal(size=(2, 2)), learn=False)
            lived += 1
        except CoopBanditsError:  # such as another dimension than it was forged to have
            pass
        assert np.isfinite(agent.similarity).all()
    assert refused > FORGED / 4
    assert lived > FORGED / 8
