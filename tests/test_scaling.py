"""Contexts in raw units: the scaled problem, its decisions mapped back."""

import numpy as np
import pytest

import coopbandits as cb
from coopbandits.errors import CoopBanditsError, ParameterError, ShapeError
from coopbandits.policy import plan

NETWORK, D = cb.Network.path(3), 2
SCALING = cb.Scaling([200.0, -3.0], [50.0, 0.01])
KERNELS = {"linear": cb.kernels.Linear(), "rbf": cb.kernels.RBF()}


def policies(kernel="rbf", **options):
    """The same policy in raw units and in scaled ones."""
    make = {"similarity": cb.similarity.Same(), **options}
    return (
        cb.EagerKernelUCB(KERNELS[kernel], scaling=SCALING, **make),
        cb.EagerKernelUCB(KERNELS[kernel], **make),
    )


def test_a_fit_has_mean_0_and_deviation_1(rng):
    X = rng.normal(size=(50, 3)) * [1e3, 1.0, 1e-4] + [5.0, -7.0, 0.0]
    scaled = cb.Scaling.fit(X).scaled(X)
    np.testing.assert_allclose(scaled.mean(axis=0), 0, atol=1e-12)
    np.testing.assert_allclose(scaled.std(axis=0), 1, atol=1e-12)
    np.testing.assert_allclose(cb.Scaling.fit(X).raw(scaled), X, rtol=1e-12)


def test_decision_sets_are_fitted_as_all_their_contexts(rng):
    sets = [rng.normal(size=(k, 2)) for k in (3, 1, 5)]
    assert cb.Scaling.fit(sets) == cb.Scaling.fit(np.vstack(sets))


def test_one_number_is_for_all():
    scaling = cb.Scaling(1.0, 2.0)
    np.testing.assert_array_equal(scaling.scaled([[3.0, 5.0]]), [[1.0, 2.0]])
    assert scaling != cb.Scaling([1.0, 1.0], 2.0)
    assert hash(scaling) == hash(cb.Scaling(1, 2))


@pytest.mark.parametrize("option", [{}, {"features": cb.features.Fourier(8)}, {"intercept": 2.0}])
def test_finite_sets_are_decided_as_the_scaled_ones(option, rng):
    raw, scaled = (policy.agent(1, NETWORK) for policy in policies(**option))
    peers = [policy.agent(0, NETWORK) for policy in policies(**option)]
    for _ in range(6):
        X = rng.normal(size=(4, D))
        mine, other = raw.decide(SCALING.raw(X)), scaled.decide(X)
        np.testing.assert_array_equal(mine.context, SCALING.raw(X)[mine.index])
        assert (mine.index, mine.width) == (other.index, other.width)
        np.testing.assert_allclose([mine.mean, mine.std], [other.mean, other.std], atol=1e-9)
        y, theirs = rng.normal(size=2)
        for agent, peer, offered in ((raw, peers[0], SCALING.raw(X)), (scaled, peers[1], X)):
            agent.reward(agent.awaiting[0], y)
            [message] = peer.reward(peer.took(offered, 2), theirs)
            np.testing.assert_allclose(message.context, X[2], atol=1e-9)  # what travels is x'
            agent.receive(message)
            agent.observe(offered[3], 0.5)
            agent.hear(0, offered, np.ones(4))
    queries = rng.normal(size=(5, D))
    mine, other = raw.predict(SCALING.raw(queries)), scaled.predict(queries)
    np.testing.assert_allclose(mine.upper, other.upper, atol=1e-9)


@pytest.mark.parametrize("kind", ["box", "polytope"])
@pytest.mark.parametrize("kernel", KERNELS)
def test_a_continuum_is_decided_as_the_scaled_one(kernel, kind, rng):
    raw, scaled = (policy.agent(1, NETWORK) for policy in policies(kernel))
    low, high = -np.ones(D), np.array([1.0, 2.0])
    there = cb.Box(SCALING.raw(low), SCALING.raw(high), effort=0.1)
    here = cb.Box(low, high, effort=0.1)
    if kind == "polytope":  # a·x ≤ b in scaled units
        a, b = np.array([[1.0, 0.5]]), np.array([0.7])
        here = cb.Polytope(a, b, low, high, effort=0.1)
        A = a / SCALING.spread
        there = cb.Polytope(
            A, b + A @ SCALING.shift, SCALING.raw(low), SCALING.raw(high), effort=0.1
        )
    for _ in range(5):
        preview = raw.preview(there)
        mine, other = raw.decide(there), scaled.decide(here)
        np.testing.assert_array_equal(preview, mine.context)
        assert there.contains(mine.context[None])[0]
        np.testing.assert_allclose(mine.context, SCALING.raw(other.context), rtol=1e-6)
        np.testing.assert_allclose([mine.mean, mine.std], [other.mean, other.std], atol=1e-6)
        y = float(np.sin(other.context).sum())
        raw.reward(mine, y)
        scaled.reward(other, y)
    again = raw.took(there, mine.context)
    np.testing.assert_allclose(again.context, mine.context, rtol=1e-12)
    with pytest.raises(CoopBanditsError, match="which is not in"):
        raw.took(there, SCALING.raw(high + 1))


def test_a_context_that_is_refused_for_its_size_says_that_there_is_a_scaling():
    with pytest.raises(CoopBanditsError, match=r"scaling=coopbandits\.Scaling"):
        cb.LinUCB().agent(0, NETWORK).decide(1e7 * np.eye(2))


def test_a_scaling_is_part_of_what_a_policy_is():
    raw, scaled = policies()
    assert raw != scaled
    assert raw == policies()[0]
    agent = raw.agent(1, NETWORK)
    with pytest.raises(CoopBanditsError, match="another policy: scaling"):
        cb.Agent.from_bytes(agent.to_bytes(), policy=scaled, network=NETWORK)
    assert plan(raw, NETWORK) is not plan(scaled, NETWORK)


@pytest.mark.parametrize("bad", [1e-300, 1e-60])
def test_numbers_that_a_scaling_makes_too_large_are_refused(bad):
    agent = cb.KernelUCB(KERNELS["rbf"], scaling=cb.Scaling(0.0, bad)).agent(0, NETWORK)
    before = agent.to_bytes()
    for contexts in (1e20 * np.eye(2), cb.Box([0.0, 0.0], [1e20, 1e20])):
        with pytest.raises(CoopBanditsError, match="contexts divided by their spread"):
            agent.decide(contexts)
    with pytest.raises(CoopBanditsError, match="contexts divided by their spread"):
        agent.hear(0, 1e20 * np.eye(2), np.ones(2))
    assert agent.to_bytes() == before


def test_rewards_that_a_scale_makes_too_large_are_refused():
    agent = cb.LinUCB(scale=1e-300).agent(0, NETWORK)
    decision = agent.decide(np.eye(2))
    before = agent.to_bytes()
    for call in (
        lambda: agent.reward(decision, 1e20),
        lambda: agent.observe([1.0, 0.0], 1e20),
        lambda: agent.hear(0, np.eye(2), [1e20, 0.0]),
    ):
        with pytest.raises(CoopBanditsError, match="divided by scale="):
            call()
    assert agent.to_bytes() == before


@pytest.mark.parametrize(
    ("make", "error", "complaint"),
    [
        (lambda: cb.Scaling([1.0, 2.0], [1.0, 2.0, 3.0]), ShapeError, "shift and spread have"),
        (lambda: cb.Scaling(0.0, 0.0), ParameterError, "above 0 everywhere"),
        (lambda: cb.Scaling(0.0, [1.0, -1.0]), ParameterError, "above 0 everywhere"),
        (lambda: cb.Scaling(np.nan, 1.0), CoopBanditsError, "must be finite"),
        (lambda: cb.Scaling("x", 1.0), ShapeError, "array of numbers"),
        (lambda: cb.Scaling(np.eye(2), 1.0), ShapeError, r"expected \(d,\)"),
        (lambda: cb.Scaling([], 1.0), ShapeError, r"expected \(d,\)"),
        (lambda: cb.Scaling.fit([[1.0, 2.0], [1.0, 3.0]]), ParameterError, "columns 0 of all 2"),
        (lambda: cb.Scaling.fit([[1.0, 2.0]]), ParameterError, "constant"),
        (lambda: cb.Scaling.fit([1.0, 2.0]), ShapeError, r"shape \(2,\)"),
        (lambda: cb.Scaling.fit([]), ShapeError, "shape"),
        (lambda: cb.Scaling.fit("abc"), ShapeError, "array of numbers"),
        (lambda: cb.Scaling.fit([np.eye(2), np.eye(3)]), ShapeError, "differ in their numbers d"),
        (lambda: cb.Scaling.fit([[1.0, np.inf]]), CoopBanditsError, "must be finite"),
        (lambda: cb.LinUCB(scaling=2.0), ParameterError, "is no scaling"),
        (lambda: cb.LinUCB(scaling=(0.0, 1.0)), ParameterError, "is no scaling"),
        (lambda: SCALING.scaled(np.ones((1, 3))), ShapeError, "for contexts of 2 numbers"),
        (
            lambda: policies()[0].agent(0, NETWORK).decide(np.eye(3)),
            ShapeError,
            "for contexts of 2 numbers",
        ),
        (
            lambda: policies()[0].agent(0, NETWORK).decide(cb.Box([0.0], [1.0])),
            ShapeError,
            "for contexts of 2 numbers",
        ),
    ],
    ids=range(19),
)
def test_what_is_no_scaling_is_refused(make, error, complaint):
    with pytest.raises(error, match=complaint):
        make()
