"""Constants of their own, units and forgetting: every engine, real agents and the literal twin."""

from dataclasses import replace

import numpy as np
import pytest

import coopbandits as cb
from coopbandits.forget import Exponential, Window
from lockstep_engines import KERNELS, all_engines, literal, similarity_of
from reference import weighted
from worlds import NETWORKS, ragged

OPTIONS = {
    "intercept": {"intercept": 2.0},
    "window": {"forget": Window(3)},
    "half life": {"forget": Exponential(2.5)},
    "both": {"intercept": 2.0, "forget": Exponential(2.5)},
    "window and intercept": {"intercept": 5.0, "forget": Window(4)},
}


def world(problem, seed, shift=0.0):
    def at(t, v):
        offer = problem.round(t, seed)
        rows = slice(offer.starts[v], offer.starts[v] + offer.sizes[v])
        return offer.contexts[rows], offer.rewards[rows] + shift

    return at


def weight_of(options):
    rule = options.get("forget")
    if isinstance(rule, Window):
        return lambda age: (age < rule.rounds).astype(float)
    return (lambda age: 0.5 ** (age / rule.half_life)) if rule else np.ones_like


def played(problem, policy, rounds, seed):
    """Every way to play a policy: by lags, by messages, and by sums of features where there are."""
    linear = isinstance(policy.kernel, cb.kernels.Linear)
    ways = ["messages"] if linear or policy.features is not None else []
    if not isinstance(policy.forget, Exponential):
        ways += ["exact", "messages"] if policy.features is None else []
    ways += ["statistics"] * (linear and policy.features is None)
    for way in ways:
        yield way, cb.play(problem, policy, rounds=rounds, seed=seed, engine=way)
    sums = replace(policy, features=policy.features or cb.features.Exact())
    if linear or policy.features is not None:
        for way, one in (("sparse", sums), ("messages", sums), ("messages", told(sums))):
            yield (
                f"{way}, sums",
                cb.play(problem, one, rounds=rounds, seed=seed, engine=way, laziness=0),
            )


def told(policy):
    return replace(policy, say=cb.say.Sums())


@pytest.mark.parametrize("ttl", [1, 2])
@pytest.mark.parametrize("network", ["grid", "directed"])
@pytest.mark.parametrize(
    ("kernel", "name"),
    [
        *(("linear", name) for name in OPTIONS),
        # an exact posterior does not fade by a factor
        *(("rbf", name) for name in ("intercept", "window", "window and intercept")),
    ],
)
def test_every_option_takes_the_literal_twins_decisions(name, kernel, network, ttl):
    options, seed, rounds = OPTIONS[name], 3, 8
    net = NETWORKS[network]
    problem, (similarity, K_z) = ragged(net, seed), similarity_of(net, seed)
    K_x, k_x = KERNELS[kernel]
    policy = cb.EagerKernelUCB(
        kernel=K_x, similarity=similarity, ttl=ttl, ridge=0.7, eta=0.9, **options
    )
    expected = weighted.play(
        world(problem, seed),
        net.lags(ttl).dense(),
        literal(k_x, K_z),
        rounds=rounds,
        seed=seed,
        ridge=0.7,
        eta=0.9,
        tau=options.get("intercept", 0.0),  # type: ignore[attr-defined]
        weight=weight_of(options),
    )
    ways = list(played(problem, policy, rounds, seed))
    assert len(ways) > 1
    for way, run in ways:
        np.testing.assert_array_equal(run.actions, expected, err_msg=way)


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=[] if "both" in name or " and " in name else pytest.mark.slow)
        for name in OPTIONS
    ],
)
@pytest.mark.parametrize(
    "similarity",
    [
        cb.similarity.Evidence(chains=2),
        cb.similarity.Evidence(),
        cb.similarity.Coregionalised(rank=2, steps=3),
        cb.similarity.Laplacian.by_evidence([0.1, 1.0]),
        cb.similarity.Population.by_evidence([0.0, 0.7, 1.0]),
        cb.similarity.MeanEmbedding(0.7),
    ],
    ids=["groups", "evidence", "coregionalised", "laplacian", "population", "embedding"],
)
def test_every_option_is_the_same_in_all_engines_where_k_z_is_learnt(similarity, name):
    problem = ragged(NETWORKS["path"], 5)
    policy = cb.EagerKernelUCB(
        kernel=cb.kernels.Linear(), similarity=similarity, ttl=2, eta=0.7, **OPTIONS[name]
    )
    ways = dict(played(problem, policy, 5, 2))
    for way, run in ways.items():
        np.testing.assert_array_equal(run.actions, ways["statistics"].actions, err_msg=way)
        for (_, K_z), (_, other) in zip(run.estimates, ways["statistics"].estimates, strict=True):
            np.testing.assert_allclose(K_z, other, atol=1e-8)


@pytest.mark.parametrize("make", [cb.LinTS, cb.EagerKernelTS, cb.DistKernelUCB, cb.Centralised])
def test_an_intercept_is_the_same_in_all_engines_for_other_rows(make):
    named = {} if make is cb.LinTS else {"kernel": cb.kernels.Linear()}
    problem = ragged(NETWORKS["grid"], 4)
    all_engines(problem, make(eta=0.6, intercept=3.0, **named), seed=1, rounds=8)


def test_fourier_features_and_an_intercept_are_the_same_by_lags_and_by_messages():
    problem = ragged(NETWORKS["grid"], 4)
    for forget in (None, Window(4), Exponential(3.0)):
        policy = cb.EagerKernelUCB(
            kernel=cb.kernels.RBF(),
            similarity=cb.similarity.Clusters([0, 0, 1, 0, 1, 1, 0, 1, 0]),
            features=cb.features.Fourier(16),
            intercept=2.0,
            forget=forget,
        )
        ways = dict(played(problem, policy, 8, 1))
        assert len(ways) == 3
        first = next(iter(ways.values()))
        for way, run in ways.items():
            np.testing.assert_array_equal(run.actions, first.actions, err_msg=way)


@pytest.mark.parametrize("engine", ["exact", "statistics", "sparse", "messages"])
def test_scale_and_scaling_give_back_what_units_took(engine):
    """Rewards and contexts in other units, divided again: the same decisions, beliefs in units."""
    network, rng = NETWORKS["path"], np.random.default_rng(0)
    X, f = rng.normal(size=(9, len(network), 4, 3)), rng.normal(size=(9, len(network), 4))
    shift, spread = np.array([20.0, -3.0, 0.5]), np.array([5.0, 100.0, 0.01])
    plain = cb.problems.table(network, X, f)
    raw = cb.problems.table(network, shift + spread * X, 250.0 * f)
    policy = cb.EagerKernelUCB(kernel=cb.kernels.Linear(), eta=0.5, intercept=1.0)
    units = replace(policy, scale=250.0, scaling=cb.Scaling(shift, spread))
    one = cb.play(plain, policy, rounds=9, engine=engine, laziness=0)
    other = cb.play(raw, units, rounds=9, engine=engine, laziness=0)
    np.testing.assert_array_equal(one.actions, other.actions)
    np.testing.assert_allclose(other.rewards, 250.0 * one.rewards)
