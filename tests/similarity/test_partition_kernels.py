import numpy as np
import pytest

from coopbandits.similarity.partition_kernels import partition_kernels
from reference import formulas

WEIGHTS = np.array([(0.0, 0.9, 0.1), (0.5, 0.4, 0.1)])


def kernels(labels, odds, points, me=0):
    labels = np.atleast_2d(labels)
    facts = np.zeros((len(labels), 7))
    facts[:, 0] = points
    for chain, one in enumerate(labels):
        facts[chain, 3] = len(set(np.delete(one, me).tolist()))
    with np.errstate(divide="ignore"):
        return partition_kernels(labels, me, np.log(odds), facts, WEIGHTS)


def test_the_asking_agents_row_is_population_and_group():
    U, delta, weight = kernels([0, 0, 1, 1, 1], [[0.3, 0.6, 0.1, 0, 0, 0]], [1])
    K_z = U @ np.swapaxes(U, 1, 2)
    np.testing.assert_allclose(weight, [0.3, 0.6, 0.1])
    np.testing.assert_allclose(K_z[0, 0, 1:], [0.9, 0.5, 0.5, 0.5])
    np.testing.assert_allclose(K_z[1, 0, 1:], [0.5, 0.9, 0.9, 0.9])
    np.testing.assert_allclose(K_z[2, 0, 1:], 0.5)
    np.testing.assert_allclose(K_z[:, 0, 0] + delta[:, 0], 1.0)
    np.testing.assert_allclose(delta[0], [0.1, 0.1, 1.3, 1.3, 1.3])  # three as one: 3·0.4 + 0.1


def test_without_a_population_other_groups_are_strangers():
    U, _, weight = kernels([0, 0, 1], [[0.5, 0.25, 0.25, 0]], [0])
    np.testing.assert_allclose(weight, [0.5, 0.25, 0.25])
    assert not U[0, 2].any()
    assert not U[1, 1].any()
    assert not U[2, 1:].any()


def test_samples_that_agree_are_put_together():
    labels = [[0, 0, 1, 1], [0, 0, 1, 1], [0, 1, 1, 1]]
    odds = [[1, 1e-9, 1e-9, 0, 0], [1, 1e-9, 1e-9, 0, 0], [1, 1e-9, 0, 0, 0]]
    _, _, weight = kernels(labels, odds, [0, 0, 0])
    np.testing.assert_allclose(weight, [2 / 3, 1 / 3])


@pytest.mark.parametrize("members", [1, 2, 5])
def test_a_group_counts_as_one_draw_of_the_population(rng, members):
    """Equal agents say of the asking one exactly what they say as a group with a shared part."""
    a, b, c = WEIGHTS[1]
    N, m = 2 + members, 3
    X, y = rng.normal(size=(4, m)), rng.normal(size=(N, 4))
    samples = [(X, y[u]) for u in range(N)]
    groups = np.array([0, 0] + [1] * members)
    odds = np.zeros((1, N + 1))
    odds[0, 0] = 1.0
    U, delta, _ = kernels(groups, odds, [1])
    found = formulas.weights(U[0], delta[0], samples, 0, np.eye(m), 0.8)
    nested = np.column_stack([np.full(N, np.sqrt(a)), np.sqrt(b) * np.equal.outer(groups, [0, 1])])
    expected = formulas.weights(nested, np.full(N, c), samples, 0, np.eye(m), 0.8)
    np.testing.assert_allclose(found[0], expected[0], atol=1e-10)
    np.testing.assert_allclose(found[1], expected[1], atol=1e-10)
