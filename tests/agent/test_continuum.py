from dataclasses import replace

import numpy as np
import pytest

import coopbandits as cb
from coopbandits import features
from coopbandits.errors import (
    CoopBanditsError,
    LocalProtocolError,
    NonFiniteError,
    ParameterError,
    ShapeError,
)
from coopbandits.policy import plan
from reference import formulas
from worlds import eager

ALONE = cb.Network.path(1)
BOX = cb.Box([0.0, 0.0], [1.0, 1.0])
TRIANGLE = cb.Polytope([[1.0, 1.0]], [1.0], [0.0, 0.0])
KERNELS = [
    cb.kernels.RBF(0.25),
    cb.kernels.Matern(nu=0.5, lengthscale=0.4),
    cb.kernels.Matern(nu=1.5, lengthscale=0.3),
    cb.kernels.Matern(nu=1.0, lengthscale=0.3),
    cb.kernels.Linear(),
    cb.kernels.RBF(0.4) * cb.kernels.Linear() + 0.5 * cb.kernels.Matern(nu=2.5),
]


def grid_of(own, count):
    axes = [np.linspace(low, high, count) for low, high in zip(own.low, own.high, strict=True)]
    return np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1)


def history(rng, own, count=12):
    X = own.sample(rng, count)
    return X, np.sin(7 * X).sum(axis=1) + 0.1 * rng.normal(size=count)


def literal_bounds(kernel, X, y, asked, ridge, eta):
    """The upper bounds of Algorithm 1 by the paper's formulas."""
    mean, variance = formulas.posterior(
        kernel(X, X), kernel(X, asked), kernel.diagonal(asked), y, ridge
    )
    return mean + eta / np.sqrt(ridge) * np.sqrt(np.maximum(variance, 0.0))


def informed(policy, X, y, seed=0):
    agent = policy.agent(0, ALONE, seed=seed)
    for x, reward in zip(X, y, strict=True):
        agent.observe(x, reward)
    return agent


@pytest.mark.parametrize("eta", [0.05, 1.0])
@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
@pytest.mark.parametrize(
    ("own", "count"),
    [(cb.Box([-0.5], [1.5]), 2001), (BOX, 81), (TRIANGLE, 81)],
    ids=["1-d", "2-d", "triangle"],
)
def test_decisions_equal_brute_force_on_a_fine_grid(rng, own, count, kernel, eta):
    X, y = history(rng, own)
    policy = cb.KernelUCB(kernel=kernel, ridge=0.1, eta=eta)
    decision = informed(policy, X, y).decide(own)
    grid = grid_of(own, count)
    inside = own.contains(grid.reshape(-1, own.dim))
    bounds = literal_bounds(kernel, X, y, grid.reshape(-1, own.dim), 0.1, eta)
    best = bounds[inside].max()
    # no point of the grid is better, and the grid comes as near as its neighbours differ
    [chosen] = literal_bounds(kernel, X, y, decision.context[None], 0.1, eta)
    cells = bounds.reshape(grid.shape[:-1])
    apart = sum(np.abs(np.diff(cells, axis=j)).max() for j in range(own.dim))
    assert best - 1e-9 <= chosen <= best + apart
    assert decision.index is None
    assert own.contains(decision.context[None])[0]
    assert decision.mean + decision.width * decision.std == pytest.approx(chosen, abs=1e-9)


@pytest.mark.parametrize(
    "basis",
    [features.Fourier(40), features.Nystrom(grid_of(BOX, 6).reshape(-1, 2))],
    ids=lambda basis: type(basis).__name__,
)
def test_with_features_decisions_equal_brute_force_too(rng, basis):
    X, y = history(rng, BOX)
    policy = replace(cb.KernelUCB(kernel=cb.kernels.RBF(0.3), ridge=0.1), features=basis)
    agent = informed(policy, X, y)
    decision = agent.decide(BOX)
    grid = grid_of(BOX, 101).reshape(-1, 2)
    # the paper's formulas for the kernel φᵀφ, and what φ leaves out added to the variance
    phi, asked = (basis.features(policy.kernel, points) for points in (X, grid))
    mean, variance = formulas.posterior(phi @ phi.T, phi @ asked.T, np.ones(len(grid)), y, 0.1)
    bounds = (mean + np.sqrt(variance / 0.1)).reshape(101, 101)
    apart = sum(np.abs(np.diff(bounds, axis=j)).max() for j in range(2))
    chosen = decision.mean + decision.width * decision.std
    assert bounds.max() - 1e-9 <= chosen <= bounds.max() + apart
    assert agent._inbox.observations == []  # in sums, not kept


def test_an_agent_that_knows_nothing_takes_any_point_of_the_set():
    points = np.array([eager().agent(0, ALONE, seed=s).decide(TRIANGLE).context for s in range(60)])
    assert TRIANGLE.contains(points).all()
    assert len(np.unique(points, axis=0)) == 60
    assert np.abs(points.mean(axis=0) - 1 / 3).max() < 0.1


def test_agents_at_random_take_points_anywhere_and_believe_nothing():
    agent = cb.Uniform().agent(0, ALONE)
    for _ in range(3):
        decision = agent.decide(BOX)
        agent.reward(decision.id, 1.0)
    assert (decision.mean, decision.index) == (None, None)
    assert BOX.contains(decision.context[None])[0]


def test_a_preview_is_the_decision_and_uses_up_nothing(rng):
    X, y = history(rng, BOX)
    agent = informed(eager(), X, y)
    shown, again = agent.preview(BOX), agent.preview(BOX)
    np.testing.assert_allclose(shown, again, atol=1e-6)
    np.testing.assert_allclose(agent.decide(BOX).context, again, atol=1e-6)
    assert agent.awaiting == (1,)


@pytest.mark.parametrize(
    "policy",
    [
        eager(kernel=cb.kernels.RBF(0.3)),
        eager(kernel=cb.kernels.RBF(0.3), features=features.Fourier(16)),
        eager(kernel=cb.kernels.RBF(0.3), similarity=cb.similarity.MeanEmbedding()),
    ],
    ids=["exact", "features", "learnt"],
)
def test_a_stored_agent_takes_the_same_decisions_to_the_bit(network, rng, policy):
    agent = policy.agent(2, network, seed=3)
    for t in range(1, 6):
        decision = agent.decide(BOX)
        agent.reward(decision.id, float(np.sin(5 * decision.context).sum()))
        attached = np.zeros(plan(policy, network).attached(2))
        agent.receive(cb.Message(t, 1, rng.random(2), 0.3, 2, attached))
    twin = cb.Agent.from_bytes(agent.to_bytes(), policy=policy, network=network)
    for own in (BOX, TRIANGLE, BOX):
        one, two = agent.decide(own), twin.decide(own)
        assert one.context.tobytes() == two.context.tobytes()
        assert (one.mean, one.std, one.width) == (two.mean, two.std, two.width)
        for each in (agent, twin):
            each.reward(one.id, 0.7)
    assert agent.to_bytes() == twin.to_bytes()


def test_finite_sets_and_continua_may_alternate(rng):
    agent = eager().agent(0, ALONE)
    for own in (BOX, rng.random((5, 2)), TRIANGLE, cb.Box([0.2, 0.4], [0.2, 0.9])):
        decision = agent.decide(own)
        agent.reward(decision.id, 0.5)
    assert decision.context[0] == 0.2  # given, not chosen
    assert agent.known == 4


def test_a_follower_takes_its_centres_arm_or_the_point_nearest_to_it(rng):
    network = cb.Network.complete(4)
    [centre] = network.centres(1).indices
    policy = cb.DistKernelUCB(kernel=cb.kernels.RBF(), ttl=1)
    follower = policy.agent((centre + 1) % 4, network)
    for round_, arm, own, expected in [
        (1, [0.3, 0.6], BOX, [0.3, 0.6]),
        (2, [1.3, 0.6], BOX, [1.0, 0.6]),
        (3, [0.9, 0.7], TRIANGLE, [0.6, 0.4]),
    ]:
        news = cb.Message(round=round_, origin=int(centre), context=arm, reward=0.0, ttl=1)
        follower.receive(news)
        decision = follower.decide(own)
        np.testing.assert_allclose(decision.context, expected, atol=1e-9)
        assert (decision.index, decision.mean) == (None, None)
    strict = cb.DistKernelUCB(kernel=cb.kernels.RBF(), ttl=1, follow="same")
    follower = strict.agent((centre + 1) % 4, network)
    follower.receive(cb.Message(round=1, origin=int(centre), context=[1.3, 0.6], reward=0.0, ttl=1))
    with pytest.raises(LocalProtocolError, match="not among the offered"):
        follower.decide(BOX)


@pytest.mark.parametrize(
    "similarity",
    [
        cb.similarity.Evidence(),
        cb.similarity.MeanEmbedding(sample="offered"),
        cb.similarity.MeanEmbedding(refresh="frozen"),
        cb.similarity.MeanEmbedding(refresh="frozen", sample="offered"),
    ],
    ids=str,
)
def test_similarities_can_be_learnt_on_a_continuum(similarity):
    policy = cb.EagerKernelUCB(kernel=cb.kernels.Linear(), similarity=similarity)
    network = cb.Network.path(2)
    agents = [policy.agent(v, network, seed=v) for v in range(2)]
    for _ in range(4):
        news = []
        for agent in agents:
            decision = agent.decide(BOX)
            news.append(agent.reward(decision.id, float(decision.context[0])))
        for agent, [message] in zip(agents, reversed(news), strict=True):
            agent.receive(message)
    assert agents[0].known == 8
    if getattr(similarity, "sample", "") == "offered":
        # both were offered the same set, whatever they chose
        assert agents[0].similarity[1] == pytest.approx(1.0)


@pytest.mark.parametrize("make", [cb.EagerKernelUCB, cb.EagerKernelTS])
def test_an_agent_that_knows_only_what_others_saw_chooses_from_a_continuum(rng, make):
    # under some hypotheses all others are strangers, and nothing is known
    policy = make(kernel=cb.kernels.Linear(), similarity=cb.similarity.Evidence())
    sender, agent = (policy.agent(v, cb.Network.path(2)) for v in range(2))
    for _ in range(8):
        decision = sender.decide(BOX)
        for message in sender.reward(decision.id, float(decision.context.sum())):
            agent.receive(message)
    decision = agent.decide(BOX)
    assert BOX.contains(decision.context[None])[0]
    assert np.isfinite([decision.mean, decision.std]).all()


class Careful:
    """An act that does not tell its slopes."""

    judges = True

    def score(self, mean, std, width):
        return mean - width * std

    def leaders(self, network, ttl):
        return np.full(len(network), -1)

    def follow(self, arm, offered):
        return 0


class Cautious(Careful):
    def slopes(self, mean, std, width):
        return np.ones_like(mean), -width


def test_an_act_of_ones_own_chooses_from_a_continuum_by_its_slopes(rng):
    X, y = history(rng, BOX)
    kernel = cb.kernels.RBF(0.3)
    policy = replace(cb.KernelUCB(kernel=kernel, ridge=0.1), act=Cautious())
    chosen = informed(policy, X, y).decide(BOX)
    grid = grid_of(BOX, 101).reshape(-1, 2)
    bounds = literal_bounds(kernel, X, y, grid, 0.1, -1.0)
    assert chosen.mean - chosen.width * chosen.std >= bounds.max() - 1e-9
    agent = informed(replace(policy, act=Careful()), X, y)
    before = agent.to_bytes()
    with pytest.raises(ParameterError, match=r"cannot choose from a continuum; expected one with"):
        agent.decide(BOX)
    assert agent.to_bytes() == before


@pytest.mark.parametrize(
    ("bad", "error", "match"),
    [
        (lambda: cb.Box([0.0] * 3, [1.0] * 3), ShapeError, "contexts of 2 numbers, but got"),
        (lambda: cb.Box([0.0, 0.0], [1.0, 1e40]), NonFiniteError, "too large beside the ridge"),
        (lambda: (0, 1), ShapeError, "a decision set"),
        (lambda: "box", ShapeError, "a decision set"),
    ],
    ids=["dimension", "size", "tuple", "word"],
)
def test_what_cannot_be_chosen_from_is_refused_and_nothing_changes(rng, bad, error, match):
    agent = informed(cb.LinUCB(), *history(rng, BOX))
    agent.decide(BOX)
    before = agent.to_bytes()
    for ask in (agent.decide, agent.preview):
        with pytest.raises(error, match=match) as caught:
            ask(bad())
        assert isinstance(caught.value, CoopBanditsError)
        assert agent.to_bytes() == before
