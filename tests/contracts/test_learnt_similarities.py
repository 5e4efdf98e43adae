"""What every learnt similarity must do: a new one is tested by being written."""

import dataclasses
import inspect

import numpy as np
import pytest

import coopbandits as cb
from coopbandits import similarity
from learnt_views import learner_of, linear_samples, tasks, view

MADE = {
    "Evidence": similarity.Evidence(groups=4),
    "Evidence, rewards only": similarity.Evidence(groups=4, contexts=False),
    "Evidence of groups": similarity.Evidence(groups=4, partitions=0),
    "MeanEmbedding": similarity.MeanEmbedding(0.5),
    "MeanEmbedding, offered": similarity.MeanEmbedding("median", sample="offered"),
    "MeanEmbedding, unbiased": similarity.MeanEmbedding(0.5, unbiased=True),
    "MeanEmbedding, rank": similarity.MeanEmbedding(0.5, rank=2),
    "Learned": similarity.Learned(rank=2),
    "LearntLaplacian": similarity.Laplacian.by_evidence([0.1, 1.0, 10.0]),
}


def test_every_learnt_similarity_of_the_package_is_under_contract():
    written = {
        kind
        for _, kind in inspect.getmembers(similarity, inspect.isclass)
        if dataclasses.is_dataclass(kind) and hasattr(kind, "learner")
    }
    assert written == {type(value) for value in MADE.values()}


def degenerate(rng):
    """Data that leave something undefined to the careless."""
    zeros = np.zeros((3, 4))
    X = rng.normal(size=(3, 4))
    return {
        "one sample each": [(rng.normal(size=(1, 4)), rng.normal(size=1)) for _ in range(5)],
        "constant contexts": [(np.ones((n, 4)), rng.normal(size=n)) for n in (1, 2, 3, 4, 5)],
        "contexts of zeros": [(zeros, rng.normal(size=3)) for _ in range(5)],
        "rewards all equal": [(rng.normal(size=(3, 4)), np.full(3, 2.5)) for _ in range(5)],
        "rewards all zero": [(rng.normal(size=(3, 4)), np.zeros(3)) for _ in range(5)],
        "everything zero": [(zeros, np.zeros(3)) for _ in range(5)],
        "everyone the same": [(X, X[:, 0])] * 5,
        "nobody else heard": [(X, X[:, 0]), None, None, None, None],
        "the asking one silent": [None, *linear_samples(rng, tasks(rng, 4, dim=4), n=3)],
        "only one other heard": [None, (X, X[:, 0]), None, None, None],
        "large and small numbers": [
            (10.0**s * rng.normal(size=(3, 4)), 10.0**-s * rng.normal(size=3)) for s in range(5)
        ],
        "huge rewards": [(rng.normal(size=(3, 4)), 1e40 * rng.normal(size=3)) for _ in range(5)],
        "no noise at all": [(x, x[:, 0]) for x in rng.normal(size=(5, 9, 4))],
    }


CASES = list(degenerate(np.random.default_rng(0)))


@pytest.mark.parametrize("name", MADE)
class TestEveryLearntSimilarity:
    @pytest.mark.parametrize("case", CASES)
    def test_is_a_correlation_matrix_whatever_was_heard(self, rng, name, case):
        samples = degenerate(rng)[case]
        learner = learner_of(MADE[name], 5)
        loadings = learner.estimate(view(learner, samples))
        assert (loadings.delta >= 0).all()
        assert loadings.weight.min() > 0
        assert loadings.weight.sum() == pytest.approx(1.0)
        for K_z in loadings.matrix:  # whichever it is
            assert np.isfinite(K_z).all()
            np.testing.assert_allclose(np.diag(K_z), 1.0, atol=1e-9)
            assert np.linalg.eigvalsh(K_z)[0] > -1e-9
            for u, sample in enumerate(samples):
                if sample is None and u != 0:
                    np.testing.assert_array_equal(K_z[u], np.eye(5)[u])

    def test_counts_each_observation_once(self, rng, name):
        learner = learner_of(MADE[name], 5)
        X, y = rng.normal(size=(6, 4)), rng.normal(size=6)
        attached = np.vstack(
            [learner.sampled(np.zeros(1, dtype=np.int64), x[None], np.array([0])) for x in X]
        )
        assert attached.shape == (6, learner.attached(4))
        rows = learner.summaries(X, attached, y)
        np.testing.assert_array_equal(rows[:, 0], 1.0)
        one_by_one = sum(learner.summaries(X[[i]], attached[[i]], y[[i]])[0] for i in range(6))
        np.testing.assert_allclose(rows.sum(axis=0), one_by_one, rtol=1e-12)

    def test_does_not_depend_on_when_the_news_came(self, rng, name):
        learner = learner_of(MADE[name], 5)
        samples = linear_samples(rng, tasks(rng, 2, dim=4)[[0, 0, 1, 1, 0]], n=6)
        shuffled = []
        for X, y in samples:
            order = rng.permutation(6)
            shuffled.append((X[order], y[order]))
        one, two = (learner.estimate(view(learner, s)).matrix for s in (samples, shuffled))
        np.testing.assert_allclose(one, two, atol=1e-9)

    def test_padding_changes_nothing(self, rng, name):
        learner = learner_of(MADE[name], 7)
        samples = linear_samples(rng, tasks(rng, 2, dim=4)[[0, 0, 1, 1, 0]], n=6)
        plain = view(learner, samples)
        padded = view(learner, [*samples, None, None])
        one, two = (learner.estimate(v).expected[0] for v in (plain, padded))
        np.testing.assert_allclose(one, two[:5, :5], atol=1e-9)

    def test_restores_in_the_middle_of_a_run_to_the_bit(self, rng, name):
        network = cb.Network.path(3)
        policy = cb.EagerKernelUCB(
            kernel=cb.kernels.Linear(), similarity=MADE[name], ttl=2, eta=0.5
        )
        agents = [policy.agent(v, network, seed=4) for v in range(3)]
        for t in range(7):
            news = []
            for v, agent in enumerate(agents):
                decision = agent.decide(rng.normal(size=(4, 3)))
                news += [(v, m) for m in agent.reward(decision.id, rng.normal())]
            for v, message in news:
                for to in (0, 1, 2):
                    if to != v:
                        agents[to].receive(message)
            restored = cb.Agent.from_bytes(agents[1].to_bytes(), policy=policy, network=network)
            offered = rng.normal(size=(4, 3))
            twin = cb.Agent.from_bytes(agents[1].to_bytes(), policy=policy, network=network)
            if t % 2:  # decide with the original, and go on with the restored one
                one, two = agents[1].decide(offered), restored.decide(offered)
                assert (one.index, one.mean, one.std) == (two.index, two.mean, two.std)
                np.testing.assert_array_equal(agents[1].similarity, restored.similarity)
                assert agents[1].to_bytes() == restored.to_bytes()
                agents[1] = twin


def test_a_learnt_similarity_needs_agents_that_decide_at_once():
    policy = cb.Centralised(kernel=cb.kernels.Linear(), similarity=similarity.Evidence())
    problem = cb.problems.clustered_linear(cb.Network.path(3))
    with pytest.raises(cb.errors.ParameterError, match="take turns within a round"):
        cb.play(problem, policy, rounds=2)
    lagging = cb.Centralised(kernel=cb.kernels.Linear(), similarity=similarity.Evidence(), lag=1)
    cb.play(problem, lagging, rounds=2)
