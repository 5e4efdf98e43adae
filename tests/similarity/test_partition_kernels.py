import numpy as np
import pytest

from coopbandits.similarity.partition_kernels import partition_kernels
from reference import formulas

WEIGHTS = np.array([(0.0, 0.9, 0.1), (0.5, 0.4, 0.1)])


def kernels(labels, odds, points, me=0, information=1.0):
    labels = np.atleast_2d(labels)
    facts = np.zeros((len(labels), 6))
    information = np.broadcast_to(information, labels.shape)
    facts[:, 0] = points
    for chain, one in enumerate(labels):
        facts[chain, 3] = len(set(np.delete(one, me).tolist()))
    with np.errstate(divide="ignore"):
        return partition_kernels(labels, me, np.log(odds), facts, information, WEIGHTS)


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


def flat_and_nested(groups, samples, information):
    """What the asking agent's weights are: other groups flattened, and with a part of their own."""
    (a, b, c), N, m = WEIGHTS[1], len(groups), samples[0][0].shape[1]
    odds = np.zeros((1, N + 1))
    odds[0, 0] = 1.0
    U, delta, _ = kernels(groups, odds, [1], information=information)
    nested = np.column_stack([np.full(N, np.sqrt(a)), np.sqrt(b) * np.equal.outer(groups, [0, 1])])
    return [
        formulas.weights(loadings, own, samples, 0, np.eye(m), 0.8)
        for loadings, own in ((U[0], delta[0]), (nested, np.full(N, c)))
    ]


@pytest.mark.parametrize("members", [1, 2, 5])
def test_a_group_counts_as_one_draw_of_the_population(rng, members):
    """Equal agents say of the asking one exactly what they say as a group with a shared part."""
    X, y = rng.normal(size=(4, 3)), rng.normal(size=(2 + members, 4))
    found, expected = flat_and_nested(
        np.array([0, 0] + [1] * members), [(X, row) for row in y], information=1.0
    )
    np.testing.assert_allclose(found[0], expected[0], atol=1e-10)
    np.testing.assert_allclose(found[1], expected[1], atol=1e-10)


def test_newcomers_take_little_from_what_a_group_says(rng):
    """One rich member and four poor ones: never too sure, and nearly as sure as the exact form."""
    counts, c = [8, 8, 100, 2, 2, 2, 2], WEIGHTS[1][2]
    samples = [(rng.normal(size=(n, 3)), rng.normal(size=n)) for n in counts]
    left = []
    for X, _ in samples:  # S̃ in units of the noise
        S = X.T @ X / 0.8
        left.append(np.trace(S @ np.linalg.inv(np.eye(3) + c * S)))
    groups = np.array([0, 0, 1, 1, 1, 1, 1])
    (_, flat, *_), (_, exact, *_) = flat_and_nested(groups, samples, np.array(left))
    assert np.linalg.eigvalsh(flat - exact).min() > -1e-12
    assert np.trace(flat) < 1.01 * np.trace(exact)


def test_hypotheses_are_left_out_beside_a_samples_weight(rng):
    """However many chains there are, what is left out is a small share of the posterior."""
    labels = np.array([rng.permutation(30) % 10 for _ in range(300)])
    odds = np.where(np.arange(31) <= 10, 1.0, 0.0)[None].repeat(300, axis=0)
    U, _, weight = kernels(labels, odds, np.zeros(300))
    assert len(weight) <= 100
    assert weight.sum() == pytest.approx(1.0)
    # being alone is one of eleven in each sample, not all that is left
    alone = ~U[:, 1:].any(axis=(1, 2))
    assert weight[alone].sum() == pytest.approx(1 / 11, abs=0.02)
