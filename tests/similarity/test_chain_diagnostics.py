import numpy as np
import pytest

import coopbandits as cb
from coopbandits.errors import NetworkError, ParameterError, StateError
from coopbandits.similarity.chain_diagnostics import r_hat

LINEAR = cb.kernels.Linear()


def agent_of(rng, features=None):
    """An agent of six that knows thirty observations of each: two tasks, one noisy agent."""
    policy = cb.EagerKernelUCB(LINEAR, eta=0.3, features=features)
    agent = policy.agent(0, cb.Network.complete(6))
    theta = np.array([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]])[[0, 0, 0, 1, 1, 1]]
    for v in range(6):
        X = rng.normal(size=(30, 3)) / np.sqrt(3)
        noise = 2.0 if v == 2 else 0.1
        for x, y in zip(X, X @ theta[v] + noise * rng.normal(size=30), strict=True):
            agent.observe(x, y, origin=v)
    agent.decide(np.eye(3))
    return agent


@pytest.mark.parametrize("features", [None, cb.features.Exact()], ids=["exact", "sums"])
def test_groups_noise_levels_and_agreement_can_be_asked(rng, features):
    agent = agent_of(rng, features)
    stored = agent.to_bytes()
    found = agent.diagnostics(sweeps=100)
    assert agent.to_bytes() == stored  # asking changes nothing
    assert found.agents.tolist() == [0, 1, 2, 3, 4, 5]
    assert found.groups.shape == (4, 6)
    np.testing.assert_allclose(np.diagonal(found.together), 1.0)
    assert found.together[0, 1] > 0.8
    assert found.together[3, 4] > 0.8
    assert found.together[0, 3] < 0.2
    assert found.noise[2] > 5 * found.noise[[0, 1, 3, 4, 5]].max()
    assert found.population + found.group + found.own == pytest.approx(1.0)
    assert 0.0 <= found.moved <= 1.0
    assert found.r_hat < 1.2


def test_r_hat_is_that_of_split_chains(rng):
    traces = rng.normal(size=(3, 40))
    halves = traces.reshape(6, 20)
    within = np.mean([h.var(ddof=1) for h in halves])
    between = 20 * np.var([h.mean() for h in halves], ddof=1)
    expected = np.sqrt((19 / 20 * within + between / 20) / within)
    assert r_hat(traces) == pytest.approx(expected)
    apart = traces + 10.0 * np.arange(3)[:, None]
    assert r_hat(apart) > 3
    assert r_hat(np.ones((2, 8))) == 1.0
    assert r_hat(np.array([[1.0] * 8, [2.0] * 8])) == np.inf


def test_agents_without_chains_say_so(rng):
    alone = cb.LinUCB().agent(0, cb.Network.path(2))
    with pytest.raises(StateError, match=r"no Gibbs chains to ask; expected .*Evidence"):
        alone.diagnostics()
    agent = cb.EagerKernelUCB(LINEAR).agent(0, cb.Network.path(2))
    with pytest.raises(StateError, match="has learnt nothing yet"):
        agent.diagnostics()
    agent.observe([1.0, 0.0], 1.0)
    agent.decide(np.eye(2))
    with pytest.raises(StateError, match="nobody else has been heard from"):
        agent.diagnostics()
    with pytest.raises(ParameterError, match="sweeps must be"):
        agent_of(rng).diagnostics(sweeps=1)


@pytest.mark.parametrize("engine", ["statistics", "exact", "sparse"])
def test_a_run_finds_what_its_agents_find(engine):
    """In every engine an agent's chains are asked from where its last decision left them."""
    problem = cb.problems.clustered_linear(cb.Network.path(6), dim=3, clusters=[0, 1] * 3, seed=0)
    policy = cb.EagerKernelUCB(cb.kernels.Linear(), ttl=2)
    found = [
        cb.play(problem, policy, rounds=9, seed=1, engine=one).diagnostics(2, sweeps=20)
        for one in (engine, "messages")
    ]
    assert found[0].agents.tolist() == found[1].agents.tolist() == [0, 1, 2, 3, 4]
    np.testing.assert_array_equal(found[0].groups, found[1].groups)
    for what in ("together", "noise", "population", "group", "own", "moved", "r_hat"):
        np.testing.assert_allclose(getattr(found[0], what), getattr(found[1], what), atol=1e-9)


@pytest.mark.parametrize("engine", ["statistics", "messages"])
def test_runs_without_chains_say_so(engine):
    problem = cb.problems.clustered_linear(cb.Network.path(3), seed=0)
    policy = cb.EagerKernelUCB(cb.kernels.Linear(), similarity=problem.similarity)
    for played, how in ((policy, engine), (cb.CLUB(), "auto")):
        run = cb.play(problem, played, rounds=2, engine=how)
        with pytest.raises(StateError, match="no Gibbs chains to ask; expected one with"):
            run.diagnostics(0)
    run = cb.play(problem, cb.EagerKernelUCB(cb.kernels.Linear()), rounds=2, engine=engine)
    with pytest.raises(ParameterError, match="sweeps"):
        run.diagnostics(0, sweeps=1)
    with pytest.raises(NetworkError, match="agent 7 is not in this network"):
        run.diagnostics(7)
