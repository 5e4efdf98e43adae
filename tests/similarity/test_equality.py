"""Similarities, and bases of features, are equal if what is in them is."""

import pickle

import numpy as np
import pytest

import coopbandits as cb
from coopbandits import similarity
from coopbandits.lab.experiments.kinds import World, make_policy
from coopbandits.policy.fingerprint import canonical

MADE = {
    "alone": lambda change: similarity.Alone() if change else similarity.Same(),
    "known": lambda change: similarity.Known(matrix=np.eye(3) + change),
    "low rank": lambda change: similarity.LowRank([[1.0], [0.5]], own=0.1 + change),
    "clusters": lambda change: similarity.Clusters([0, 1, change]),
    "clusters by name": lambda change: similarity.Clusters({"a": 0, "b": change}),
    "laplacian": lambda change: similarity.Laplacian(1.0 + change),
    "learnt laplacian": lambda change: similarity.Laplacian.by_evidence([1.0, 2.0 + change]),
    "population": lambda change: similarity.Population(0.5 + 0.1 * change),
    "learnt population": lambda change: similarity.Population.by_evidence([0.5, 0.1 * change]),
    "evidence": lambda change: similarity.Evidence(
        features=cb.features.Nystrom([[0.0], [1.0 + change]])
    ),
    "coregionalised": lambda change: similarity.Coregionalised(rank=1 + change),
    "mean embedding": lambda change: similarity.MeanEmbedding(bandwidth=1.0 + change),
    "arms": lambda change: similarity.ArmNetwork(np.eye(4) + change, arms=2),
    "features": lambda change: cb.features.Leading(cb.features.Nystrom([[0.0], [1.0 + change]])),
}


@pytest.mark.parametrize("name", MADE)
def test_equal_contents_are_equal_and_have_one_hash(name):
    one, same, other = MADE[name](0), MADE[name](0), MADE[name](1)
    assert one == same
    assert hash(one) == hash(same)
    assert one != other
    assert one != name
    assert len({one, same, other}) == 2
    assert pickle.loads(pickle.dumps(one)) == one


def test_another_form_of_the_same_matrix_is_another_similarity():
    labels = similarity.Clusters([0, 0, 1])
    assert labels != similarity.Clusters([0, 1, 1])
    assert labels != similarity.Known(matrix=labels.matrix(cb.Network.path(3)))
    assert similarity.Clusters(["x", "x", "y"]) == labels


def test_the_former_name_of_the_coregionalisation_model_is_still_read():
    assert similarity.Learned is similarity.Coregionalised
    policy = cb.EagerKernelUCB(cb.kernels.Linear(), similarity=similarity.Coregionalised(rank=2))
    assert policy.spec()["similarity"]["kind"] == "Coregionalised"
    former = policy.to_toml().replace("Coregionalised", "Learned")
    assert "Learned" in former
    again = cb.Policy.from_spec(former)
    assert again.similarity == policy.similarity
    # agents that were stored under the former name have this fingerprint
    assert "Learned{" in canonical(policy.similarity)
    assert again.fingerprint == policy.fingerprint
    table = {"kind": "EagerKernelUCB", "kernel": "Linear"}
    for kind in ("Learned", "Coregionalised"):
        given = {**table, "similarity": {"kind": kind, "rank": 2}}
        assert make_policy(given, ("policies", "mine"), World()).similarity == policy.similarity
