import numpy as np
import pytest

from coopbandits.gp.covariances import drawn, own_products, own_rows


def singular(rng, K, rank):
    A = rng.normal(size=(K, rank))
    return A @ A.T


def root_of(S, prior=None):
    """The matrix that `drawn` applies, column by column."""
    K = len(S)
    prior = np.diagonal(S) if prior is None else prior
    whose = np.zeros(K, dtype=int)
    return np.column_stack([drawn(S, prior, whose, unit) for unit in np.eye(K)])


def test_rows_are_found_for_each_agent_in_order():
    assert [rows.tolist() for rows in own_rows(np.array([3, 1, 3, 3, 1]))] == [[1, 4], [0, 2, 3]]


def test_products_are_those_with_an_agents_own_rows(rng):
    agents, Z = np.array([3, 1, 3, 3, 1]), rng.normal(size=(5, 4))
    products = own_products(Z, agents)
    assert products.shape == (5, 3)
    for i, agent in enumerate(agents):
        expected = [Z[i] @ Z[j] for j in range(5) if agents[j] == agent]
        np.testing.assert_allclose(products[i, : len(expected)], expected)
        assert (products[i, len(expected) :] == 0).all()


@pytest.mark.parametrize("rank", [1, 3, 6])
def test_a_draw_is_made_by_the_symmetric_root(rng, rank):
    S = singular(rng, 6, rank)
    root = root_of(S)
    np.testing.assert_allclose(root, root.T, atol=1e-12)
    assert np.linalg.eigvalsh(root).min() > -1e-12
    # no direction loses more variance than 1e-10 of the largest prior variance
    lost = np.linalg.eigvalsh(S - root @ root.T)
    assert lost.min() > -1e-13
    assert lost.max() < 1.01e-10 * np.diagonal(S).max()


@pytest.mark.parametrize("rank", [1, 3])
def test_rounding_of_a_singular_covariance_does_not_show_in_a_draw(rng, rank):
    S = singular(rng, 6, rank)
    noise = 1e-15 * rng.normal(size=(6, 6))
    other = S + noise + noise.T
    z = rng.normal(size=6)
    whose, prior = np.zeros(6, dtype=int), np.diagonal(S)
    np.testing.assert_allclose(drawn(S, prior, whose, z), drawn(other, prior, whose, z), atol=1e-9)


def test_every_agent_has_a_draw_of_its_own_whatever_the_sizes_of_the_others_sets(rng):
    agents = np.array([0, 0, 0, 1, 2, 2, 2])
    Z, z = rng.normal(size=(7, 3)), rng.normal(size=7)
    covariance, prior = own_products(Z, agents), (Z**2).sum(axis=1)
    together = drawn(covariance, prior, agents, z)
    for agent, rows in enumerate(own_rows(agents)):
        alone = drawn(Z[rows] @ Z[rows].T, prior[rows], np.full(len(rows), agent), z[rows])
        np.testing.assert_allclose(together[rows], alone, atol=1e-12)


def test_what_is_certain_is_drawn_as_it_is():
    # all that rounding left is below 0, and a context without variance has none to lose
    S = np.array([[-1e-17, 0.0], [0.0, 0.0]])
    whose = np.zeros(2, dtype=int)
    for prior in (np.ones(2), np.zeros(2)):
        np.testing.assert_array_equal(drawn(S, prior, whose, np.array([3.0, -2.0])), 0.0)
