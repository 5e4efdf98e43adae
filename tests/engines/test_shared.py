"""Exact posteriors, shared: right, and without work that can be spared."""

import numpy as np
import pytest

import coopbandits as cb
from coopbandits.gp.posterior import Factor
from coopbandits.kernels import RBF


@pytest.mark.parametrize("ttl", [1, 2, 3])
def test_each_offered_context_is_whitened_once_and_choices_are_learnt_from_their_columns(
    ttl, monkeypatch
):
    network = cb.Network.path(12)
    problem = cb.problems.kernel(network, dim=3, actions=5, seed=1)
    policy = cb.CoopKernelUCB(kernel=RBF(), similarity=problem.similarity, ttl=ttl)
    whiten, solved, asked = Factor.whiten, [], []

    def counted(self, B, done=None):
        rows = self.size - (0 if done is None else len(done))
        assert len(B) == rows
        (asked if done is None else solved).append(rows * B.shape[1])
        return whiten(self, B, done)

    monkeypatch.setattr(Factor, "whiten", counted)
    run = cb.play(problem, policy, rounds=30, engine="exact")
    groups = network.clique_cover(ttl).cliques
    # all rows, for the candidates alone; choices gain only the rows that are new since
    expected = sum(
        5 * len(group) * int(np.maximum(t - common, 0).sum())
        for group in groups
        for common in [np.maximum(network.distances[np.ix_(group, group)], 1).max(axis=0)]
        for t in range(1, 31)
    )
    assert sum(asked) == expected
    if ttl == 1:
        assert not solved
    else:
        assert 0 < sum(solved) < 0.3 * sum(asked)
    other = cb.play(problem, policy, rounds=30, engine="messages")
    np.testing.assert_array_equal(run.actions, other.actions)
