"""Posteriors side by side are the posteriors that each agent has by itself."""

import numpy as np
import pytest

import coopbandits as cb
from coopbandits.baselines.side_by_side import SideBySide
from coopbandits.gp.compositions import Hadamard, JointKernel
from coopbandits.gp.network_kernel import DenseKernel
from coopbandits.gp.posterior import Posterior


@pytest.mark.parametrize("kernel", [cb.kernels.RBF(), cb.kernels.Linear()], ids=str)
def test_any_agents_learn_at_any_time_as_each_would_by_itself(rng, kernel):
    V, d, K = 4, 3, 5
    many = SideBySide(kernel, 0.4, agents=V, dim=d)
    joint = JointKernel(kernel, DenseKernel(np.eye(1)), Hadamard())
    each = [Posterior(joint, 0.4) for _ in range(V)]
    zeros = np.zeros(K, dtype=np.int64)
    for step in range(45):  # some agents pass the end of a panel, others do not
        agents = np.flatnonzero(rng.random(V) < [1.0, 0.7, 0.3, 0.0])
        X, y = rng.normal(size=(len(agents), K, d)), rng.normal(size=len(agents))
        Z = many.project(agents, X)
        mean, std = many.believe(agents, X, Z)
        for place, v in enumerate(agents):
            belief = each[v].predict(zeros, X[place])
            np.testing.assert_allclose(mean[place], belief.mean, atol=1e-10)
            np.testing.assert_allclose(std[place], belief.std, atol=1e-10)
            each[v].extend(zeros[:1], X[place, 2:3], y[place : place + 1])
        many.learn(agents, X[:, 2], Z[:, :, 2], y)
        assert many.count.tolist() == [len(one) for one in each], step
    assert many.count[0] == 45
    assert many.count[3] == 0
