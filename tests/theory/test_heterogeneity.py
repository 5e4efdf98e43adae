import numpy as np
import pytest

import coopbandits as cb
from coopbandits.errors import ParameterError, SimilarityError
from coopbandits.gp.compositions import composition
from coopbandits.theory.information import information_gain


def of_rank(rng, size, rank):
    """A K_z of a given rank with ones on its diagonal."""
    U = rng.normal(size=(size, rank))
    U /= np.linalg.norm(U, axis=1, keepdims=True)
    return U @ U.T


@pytest.mark.parametrize(
    ("similarity", "rank"),
    [
        (cb.similarity.Same(), 1),
        (cb.similarity.Alone(), 6),
        (cb.similarity.Clusters([0, 1, 0, 2, 1, 0]), 3),
        (cb.similarity.Laplacian(1.0), 6),
    ],
    ids=["same", "alone", "clusters", "laplacian"],
)
def test_known_similarities_have_their_rank(network, similarity, rank):
    assert cb.theory.heterogeneity(similarity.matrix(network)) == rank


@pytest.mark.parametrize("rank", [1, 4, 20])
def test_rounding_does_not_count(rng, rank):
    assert cb.theory.heterogeneity(of_rank(rng, 60, rank)) == rank
    assert cb.theory.heterogeneity(1e-9 * of_rank(rng, 60, rank)) == rank


def test_the_tolerance_is_in_parts_of_the_largest_eigenvalue():
    K_z = np.diag([2.0, 0.2, 2e-3, 0.0])
    assert [cb.theory.heterogeneity(K_z, tolerance=t) for t in (0.5, 0.05, 1e-4)] == [1, 2, 3]
    assert cb.theory.heterogeneity(np.zeros((3, 3))) == 0


def test_within_cliques_the_rank_is_at_most_the_square_of_the_largest(rng):
    network = cb.Network.path(9)
    cover = network.clique_cover(2)
    K_z = of_rank(rng, 9, 2)
    ranks = cb.theory.clique_heterogeneity(K_z, cover)
    assert ranks == (2, 2, 2)
    assert cb.theory.clique_heterogeneity_bound(cover) == 9
    alone = cb.Network.from_edges([], agents=5).clique_cover(1)
    assert cb.theory.clique_heterogeneity(np.eye(5), alone) == (1,) * 5
    # but not the rank among all: the paper's remark is about what one clique sees
    assert cb.theory.clique_heterogeneity_bound(alone) == 1 < cb.theory.heterogeneity(np.eye(5))
    with pytest.raises(SimilarityError, match="K_z is for 3 agents, but the cover has 5"):
        cb.theory.clique_heterogeneity(np.eye(3), alone)


@pytest.mark.parametrize("seed", range(5))
def test_the_rank_decompositions_hold_and_are_met(seed):
    rng = np.random.default_rng(seed)
    z, x = (int(r) for r in rng.integers(1, 4, size=2))
    K_z, K_x = of_rank(rng, 15, z), of_rank(rng, 15, x)
    rank, bound = cb.theory.heterogeneity, cb.theory.rank_bound
    assert rank(K_z * K_x) == bound("hadamard", z, x)  # generic factors meet all three
    assert rank(K_z + K_x) == bound("sum", z, x)
    assert rank(np.kron(K_z[:5, :5], K_x[:5, :5])) == bound("kronecker", z, x)
    assert rank(K_z * K_z) == z * (z + 1) / 2 <= bound("hadamard", z, z)


@pytest.mark.parametrize("ridge", [0.1, 1.0, 10.0])
@pytest.mark.parametrize("compose", ["hadamard", "kronecker", "sum"])
@pytest.mark.parametrize("seed", range(4))
def test_lemma_4_bounds_the_determinant_of_observations(seed, compose, ridge):
    rng = np.random.default_rng([seed, 5])
    V, n, rank, scale = 6, 40, int(rng.integers(1, 5)), float(rng.choice([0.5, 1.0, 3.0]))
    K_z = scale * of_rank(rng, V, rank)
    who, X = rng.integers(V, size=n), rng.normal(size=(n, 2))
    K_x = cb.kernels.RBF()(X, X)
    K = composition(compose).combine(K_z[np.ix_(who, who)], K_x)
    bound = cb.theory.composed_logdet_bound(
        compose,
        rank=rank,
        action_logdet=2 * information_gain(K_x, ridge=ridge),
        count=n,
        ridge=ridge,
        largest=scale,
    )
    assert 2 * information_gain(K, ridge=ridge) <= bound


def test_lemma_4_is_met_where_clusters_pull_the_same(rng):
    # r clusters, each with the same contexts: r times the gain of one
    X, r, ridge = rng.normal(size=(8, 2)), 3, 0.4
    K_x = cb.kernels.RBF()(X, X)
    K = np.kron(np.eye(r), K_x)
    one = 2 * information_gain(K_x, ridge=ridge)
    bound = cb.theory.composed_logdet_bound(
        "hadamard", rank=r, action_logdet=one, count=24, ridge=ridge
    )
    assert bound == pytest.approx(2 * information_gain(K, ridge=ridge))


def test_lemma_4_is_nearly_met_by_a_large_similarity_under_a_large_ridge(rng):
    # ln(1 + 3a) is three times ln(1 + a) in the limit: κ_z counts in full
    X, ridge = rng.normal(size=(8, 2)), 1e4
    K_x = cb.kernels.RBF()(X, X)
    found = 2 * information_gain(np.kron(3 * np.eye(2), K_x), ridge=ridge)
    bound = cb.theory.composed_logdet_bound(
        "hadamard",
        rank=2,
        action_logdet=2 * information_gain(K_x, ridge=ridge),
        count=16,
        ridge=ridge,
        largest=3.0,
    )
    assert found <= bound <= found * (1 + 1e-3)


def test_independent_arms_raise_the_determinant_by_no_more_than_their_factor(rng):
    arms, n = 5, 30
    for rank in (1, 2, 5):
        K_arm = of_rank(rng, arms, rank)
        arm, X = rng.integers(arms, size=n), rng.normal(size=(n, 2))
        K_x = cb.kernels.RBF()(X, X)
        raised = information_gain(K_arm[np.ix_(arm, arm)] * K_x) / information_gain(K_x)
        factor = cb.theory.independent_arms_factor(K_arm)
        assert factor == pytest.approx(np.sqrt(arms * rank))
        assert raised <= rank <= factor


def test_another_composition_is_refused():
    class Mine:
        def combine(self, K_z, K_x):
            return K_z

        def related(self, K_z):
            return K_z != 0

    with pytest.raises(ParameterError, match="nothing is known of the composition"):
        cb.theory.rank_bound(Mine(), 1, 1)


@pytest.mark.parametrize("cover", [None, [[0, 1]], cb.Network.path(2), np.eye(2)], ids=repr)
def test_a_cover_is_what_a_network_returns(cover):
    for call in (
        lambda: cb.theory.clique_heterogeneity(np.eye(2), cover),
        lambda: cb.theory.clique_heterogeneity_bound(cover),
    ):
        with pytest.raises(ParameterError, match=r"no clique cover; expected what network\.clique"):
            call()
