"""One posterior over all agents' weights gives what each agent's own would."""

from dataclasses import replace

import numpy as np
import pytest

import coopbandits as cb
from coopbandits.engines.by_lags import Record
from coopbandits.engines.computations import Case, computation_of
from coopbandits.engines.joint import SharedRegression, hears_all
from coopbandits.gp.posterior import Posterior
from coopbandits.policy import plan
from lockstep_engines import all_engines
from worlds import NETWORKS, network_contexts, ragged

LINEAR = cb.kernels.Linear()


def centralised(similarity, **settings):
    return cb.Centralised(kernel=LINEAR, similarity=similarity, lag=1, **settings)


@pytest.mark.parametrize("name", ["grid", "two parts"])
@pytest.mark.parametrize("ridge", [1e-4, 0.8])
def test_mean_deviation_and_determinant_are_those_of_the_factor(name, ridge):
    network = NETWORKS[name]
    V = len(network)
    problem = ragged(network, 5, rounds=15)
    policy = cb.GoBLin(ridge=ridge, lag=1)
    worked_out = plan(policy, network)
    case = Case(policy, worked_out, 3, 15)
    joint = computation_of("statistics", case).make(case)
    assert isinstance(joint, SharedRegression)
    record, everyone = Record(worked_out, 15, 3), np.arange(V)
    own = [Posterior(worked_out.kernel, ridge) for _ in range(V)]
    rng = np.random.default_rng(0)
    for t in range(1, 16):
        offer = problem.round(t, 0)
        if t > 1:
            joint.learn(t, record)
            belief = joint.predict(offer, offer.contexts, np.ones(V, dtype=bool))
            for v in range(V):
                rows = offer.agents == v
                expected = own[v].predict(offer.agents[rows], offer.contexts[rows])
                np.testing.assert_array_equal(belief.count[rows], expected.count)
                np.testing.assert_allclose(belief.mean[rows], expected.mean, atol=1e-9)
                np.testing.assert_allclose(belief.std[rows], expected.std, atol=1e-7)
                np.testing.assert_allclose(belief.logdet[rows], expected.logdet, rtol=1e-9)
        rows = offer.starts + rng.integers(offer.sizes)
        record.add(t, everyone, offer, rows, offer.contexts)
        for v in range(V):
            heard = worked_out.lags.sources[v]
            own[v].extend(heard, offer.contexts[rows[heard]], offer.rewards[rows[heard]])


@pytest.mark.parametrize("name", ["grid", "two parts", "directed"])
def test_any_given_similarity_takes_the_same_decisions(name):
    network = NETWORKS[name]
    known = cb.similarity.Known(contexts=network_contexts(len(network)), kernel=cb.kernels.RBF())
    width = cb.width.SelfNormalised(norm=0.5, noise=0.7)
    for similarity in (known, cb.similarity.Laplacian(0.2)):
        sure = centralised(similarity, ridge=0.6, width=width)
        for policy in (sure, replace(sure, act=cb.act.Sample())):
            assert hears_all(policy, plan(policy, network))
            all_engines(ragged(network, 3), policy, seed=1, rounds=7)


def test_it_is_not_for_agents_who_know_different_things():
    network = NETWORKS["grid"]
    known = cb.similarity.Laplacian(0.2)
    for policy in (
        cb.GoBLin(lag=0),
        centralised(cb.similarity.Evidence()),
        cb.EagerKernelUCB(kernel=LINEAR, similarity=known, ttl=9),
    ):
        assert not hears_all(policy, plan(policy, network))


def test_a_long_run_of_many_agents_takes_it_by_itself():
    network = cb.Network.erdos_renyi(30, 0.2, seed=0)
    problem = cb.problems.clustered_linear(network, dim=4, seed=0)
    run = cb.play(problem, cb.GoBLin(alpha=0.3, lag=1), rounds=40)
    assert run.engine == "statistics"
    exact = cb.play(problem, cb.GoBLin(alpha=0.3, lag=1), rounds=40, engine="exact")
    np.testing.assert_array_equal(run.actions, exact.actions)
