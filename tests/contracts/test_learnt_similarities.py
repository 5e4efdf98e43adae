"""What every learnt similarity must do: a new one is tested by being written."""

import dataclasses
import inspect

import numpy as np
import pytest

import coopbandits as cb
from coopbandits import similarity
from coopbandits.testing import check_learner, check_similarity

MADE = {
    "Evidence": similarity.Evidence(),
    "Evidence, rewards only": similarity.Evidence(contexts=False),
    "Evidence of two chains": similarity.Evidence(chains=2),
    "MeanEmbedding": similarity.MeanEmbedding(0.5),
    "MeanEmbedding, offered": similarity.MeanEmbedding("median", sample="offered"),
    "MeanEmbedding, unbiased": similarity.MeanEmbedding(0.5, unbiased=True),
    "MeanEmbedding, rank": similarity.MeanEmbedding(0.5, rank=2),
    "Coregionalised": similarity.Coregionalised(rank=2),
    "LearntLaplacian": similarity.Laplacian.by_evidence([0.1, 1.0, 10.0]),
    "LearntPopulation": similarity.Population.by_evidence([0.0, 0.5, 0.9, 1.0]),
}


def test_every_learnt_similarity_of_the_package_is_under_contract():
    written = {
        kind
        for _, kind in inspect.getmembers(similarity, inspect.isclass)
        if dataclasses.is_dataclass(kind) and hasattr(kind, "learner")
    }
    assert written == {type(value) for value in MADE.values()}


# whose hypotheses are sampled, in the order of the agents
SAMPLED = {"Evidence", "Evidence, rewards only", "Evidence of two chains"}


@pytest.mark.parametrize("name", MADE)
class TestEveryLearntSimilarity:
    @pytest.mark.parametrize("seed", [0, 1])
    def test_is_a_similarity(self, name, seed):
        check_similarity(MADE[name], any_order=name not in SAMPLED, seed=seed)

    def test_learns_k_z(self, name):
        network = cb.Network.complete(7)
        for kernel in (cb.kernels.Linear(), cb.kernels.RBF()):
            learner = MADE[name].learner(kernel, network)  # type: ignore[attr-defined]
            check_learner(learner, agents=7, any_order=name not in SAMPLED)

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
