"""Several decision sets at once: as decisions in a row, all or none."""

import numpy as np
import pytest

import coopbandits as cb
from coopbandits.errors import CoopBanditsError
from worlds import eager

NETWORK, D = cb.Network.path(3), 2
POLICIES = {
    "exact": eager(),
    "sums": eager(features=cb.features.Fourier(8)),
    "draws": cb.EagerKernelTS(cb.kernels.RBF(), similarity=cb.similarity.Same()),
    "evidence": eager(kernel=cb.kernels.Linear(), similarity=cb.similarity.Evidence()),
    "explores": eager().exploring(0.5),
    "uniform": cb.Uniform(),
}


@pytest.mark.parametrize("name", POLICIES)
@pytest.mark.parametrize("learn", [True, False])
def test_many_decisions_are_those_of_a_row_to_the_bit(name, learn, rng):
    policy = POLICIES[name]
    agent, other = policy.agent(1, NETWORK), policy.agent(1, NETWORK)
    for _ in range(4):
        sets = [rng.normal(size=(k, D)) for k in (3, 1, 4)]
        together = agent.decide_many(sets, learn=learn)
        alone = [other.decide(offered, learn=learn) for offered in sets]
        assert [d.id for d in together] == [d.id for d in alone]
        assert [d.index for d in together] == [d.index for d in alone]
        assert [(d.mean, d.std) for d in together] == [(d.mean, d.std) for d in alone]
        for decision, y in zip(together, rng.normal(size=3), strict=True):
            agent.reward(decision, y)
            other.reward(decision.id, y)
        assert agent.to_bytes() == other.to_bytes()


def test_decision_sets_come_in_many_forms(rng):
    agent = POLICIES["exact"].agent(1, NETWORK)
    sets, box = rng.normal(size=(2, 3, D)), cb.Box(np.zeros(D), np.ones(D), effort=0.1)
    assert len(agent.decide_many(sets)) == 2
    assert len(agent.decide_many(iter(sets))) == 2
    assert [d.index is None for d in agent.decide_many([box, sets[0]])] == [True, False]
    assert agent.decide_many([]) == []


@pytest.mark.parametrize("name", POLICIES)
@pytest.mark.parametrize(
    ("sets", "complaint"),
    [
        (3, "takes a list of decision sets, got 3"),
        (None, "takes a list of decision sets"),
        (np.array(2.0), "takes a list of decision sets"),
        (cb.Box([0.0, 0.0], [1.0, 1.0]), "decide takes one"),
        (np.eye(2), r"shape \(2,\)"),
        ("ab", "decide takes one"),
        ([np.eye(2), np.eye(3)], "contexts of 2 and of 3 numbers"),
        ([np.eye(2), [[1.0, np.nan]]], "must be finite"),
        ([np.eye(2), cb.Box([0.0] * 3, [1.0] * 3)], "contexts of 2 and of 3 numbers"),
    ],
    ids=str,
)
def test_bad_decision_sets_get_one_clear_error_and_open_nothing(name, sets, complaint):
    agent = POLICIES[name].agent(1, NETWORK)
    before = agent.to_bytes()
    with pytest.raises(CoopBanditsError, match=complaint):
        agent.decide_many(sets)
    assert agent.to_bytes() == before
    assert agent.awaiting == ()
