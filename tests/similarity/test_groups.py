"""The pieces of `Evidence`, each against the density of all rewards at once."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.special import gammaln

from coopbandits.gp.statistics import Statistics
from coopbandits.similarity.groups import Groups
from coopbandits.similarity.levels import levels
from learnt_views import linear_samples, tasks
from reference import formulas

NOISE, RATIO = 0.2, 1.3


def statistics_of(samples):
    sums = np.array([Statistics.rows(phi, y).sum(axis=0) for phi, y in samples])
    return Statistics.of(sums[None], samples[0][0].shape[1])


def groups_of(samples, labels, rho, others):
    """Agents in groups as labelled, with correlation ρ within."""
    statistics = statistics_of(samples)
    N = len(samples)
    shared, logdet = statistics.shared(np.full((1, N), (1 - rho) / RATIO))
    r = np.zeros((1, N, max(labels) + 1))
    r[0, np.arange(N), labels] = others
    return Groups(
        shared=shared,
        base=-0.5 * (statistics.n * np.log(2 * np.pi * NOISE) + logdet),
        noise=np.array([NOISE]),
        ratio=np.array([RATIO / rho]),
        others=np.array([others], dtype=bool),
        contexts=None,
        r=r,
        share=np.full((1, max(labels) + 1), 1 / (max(labels) + 1)),
    )


def density(samples, rho):
    """log p of the rewards of one group, by brute force."""
    N = len(samples)
    if N == 0:
        return 0.0
    K_z = rho * np.ones((N, N)) + (1 - rho) * np.eye(N)
    return formulas.stacked_log_density(samples, K_z, NOISE, RATIO)


@pytest.mark.parametrize("rho", [1.0, 0.95, 0.85, 0.6, 0.2])
def test_a_group_without_me_predicts_me_as_the_joint_density_says(rng, rho):
    samples = linear_samples(rng, tasks(rng, 5, dim=3), n=4)
    samples[1] = (samples[1][0][:1], samples[1][1][:1])  # one observation only
    labels = np.array([0, 0, 0, 1, 1])
    groups = groups_of(samples, labels, rho, [True] * 5)
    value = groups._left_out(labels[None])[0]
    for u, label in enumerate(labels):
        group = [s for s, other in zip(samples, labels, strict=True) if other == label]
        rest = [s for w, s in enumerate(samples) if labels[w] == label and w != u]
        assert value[u] == pytest.approx(density(group, rho) - density(rest, rho), rel=1e-8)


@pytest.mark.parametrize("rho", [1.0, 0.85, 0.6])
def test_what_each_group_says_of_the_one_that_asks_is_the_joint_density_too(rng, rho):
    samples = linear_samples(rng, tasks(rng, 5, dim=3), n=4)
    labels = np.array([0, 0, 0, 1, 1])
    groups = groups_of(samples, labels, rho, [False, True, True, True, True])
    value = groups._joining(np.array([0]))[0]
    for label in (0, 1):
        rest = [samples[u] for u in range(1, 5) if labels[u] == label]
        assert value[label] == pytest.approx(
            density([samples[0], *rest], rho) - density(rest, rho), rel=1e-8
        )


def test_merging_unites_what_one_task_explains_and_nothing_else(rng):
    theta = tasks(rng, 2)
    samples = linear_samples(rng, theta[[0, 0, 0, 0, 1, 1, 1, 1]], n=30)
    labels = np.array([0, 0, 1, 1, 2, 2, 3, 3])
    groups = groups_of(samples, labels, 1.0, [True] * 8)
    r = groups.merge().r[0]
    together = r @ r.T
    np.testing.assert_allclose(together, np.kron(np.eye(2), np.ones((4, 4))))


def test_merging_finds_the_best_pair_by_brute_force(rng):
    """One step of merging raises density and prior most; twins of both by hand."""
    from scipy.special import gammaln  # noqa: PLC0415

    samples = linear_samples(rng, tasks(rng, 2)[[0, 1, 0]], n=25)
    groups = groups_of(samples, np.array([0, 1, 2]), 1.0, [True] * 3)

    def worth(partition):
        return sum(
            density([samples[u] for u in part], 1.0) + gammaln(len(part)) for part in partition
        )

    gains = {
        pair: worth([pair, rest]) - worth([[0], [1], [2]])
        for pair, rest in [((0, 1), [2]), ((0, 2), [1]), ((1, 2), [0])]
    }
    best = max(gains, key=gains.get)
    assert best == (0, 2)
    assert gains[best] > 0
    r = groups.merge().r[0]
    assert r[0] @ r[2] == 1.0
    assert r[0] @ r[1] == (1.0 if worth([[0, 1, 2]]) > worth([[0, 2], [1]]) else 0.0)


def partition_evidence(samples, labels):
    """log p of all rewards and of the partition, but for α: by brute force."""
    groups = [[s for s, own in zip(samples, labels, strict=True) if own == g] for g in set(labels)]
    return sum(density(group, 1.0) + gammaln(len(group)) for group in groups)


def test_splitting_finds_two_tasks_in_a_group_and_leaves_one_task_alone(rng):
    theta = tasks(rng, 3)
    truth = np.array([0, 0, 0, 1, 1, 1, 2, 2, 2])
    samples = linear_samples(rng, theta[truth], n=30)
    mixed = np.array([0, 0, 0, 0, 0, 0, 1, 1, 1])
    groups = groups_of(samples, mixed, 1.0, [True] * 9)
    room = replace(
        groups,
        r=np.concatenate([groups.r, np.zeros((1, 9, 2))], axis=2),
        share=np.array([[0.6, 0.4, 0.0, 0.0]]),
    )
    labels = room.split().r[0].argmax(axis=1)
    np.testing.assert_array_equal(np.equal.outer(labels, labels), np.equal.outer(truth, truth))
    assert partition_evidence(samples, labels) > partition_evidence(samples, mixed)
    # groups that have nobody are room too, and where there is none everything stays as it is
    kept = replace(room, share=np.full((1, 4), 0.25)).split().r[0].argmax(axis=1)
    np.testing.assert_array_equal(kept, labels)
    np.testing.assert_array_equal(groups.split().r, groups.r)


def test_who_does_not_count_is_not_split(rng):
    samples = linear_samples(rng, tasks(rng, 2)[[0, 0, 1, 1]], n=30)
    groups = groups_of(samples, np.zeros(4, dtype=int), 1.0, [True, True, False, False])
    room = replace(groups, r=np.pad(groups.r, ((0, 0), (0, 0), (0, 1))), share=np.array([[1.0, 0]]))
    np.testing.assert_array_equal(room.split().r, room.r)


def test_places_are_refined_by_what_each_group_says_without_the_agent(monkeypatch, rng):
    """Agents at even places first, then the others: each against the joint density."""
    monkeypatch.setattr("coopbandits.similarity.groups._REFINE", 1)
    samples = linear_samples(rng, tasks(rng, 2, dim=3)[[0, 1, 0, 1, 0, 1]], n=2)
    labels = np.array([0, 0, 0, 1, 1, 1])
    groups = groups_of(samples, labels, 1.0, [True] * 6)
    found = groups.refine().r[0]
    places = np.eye(2)[labels]
    for turn in (0, 1):
        now = np.where(places < 0.02, 0.0, places)
        now /= now.sum(axis=1, keepdims=True)
        for u in range(turn, 6, 2):
            odds = [predicted(samples, now[:, g], u) for g in (0, 1)]
            size = now.sum(axis=0) - now[u] + 0.1
            odds = np.exp(np.array(odds) - max(odds)) * size
            places[u] = odds / odds.sum()
    np.testing.assert_allclose(found, places, atol=1e-9)


def predicted(samples, weight, u):
    """log p(y_u | a group whose agents count in part, without u), up to what all groups share."""
    S = [X.T @ X for X, _ in samples]
    b = [X.T @ y for X, y in samples]

    def value(parts):
        P = RATIO * np.eye(3) + sum(w * one for w, one in zip(parts, S, strict=True))
        h = sum(w * one for w, one in zip(parts, b, strict=True))
        return 0.5 * (h @ np.linalg.inv(P) @ h / NOISE - np.linalg.slogdet(P)[1])

    without, with_it = weight.copy(), weight.copy()
    without[u], with_it[u] = 0.0, 1.0
    return value(with_it) - value(without)


def test_annealing_splits_what_starts_mixed(rng):
    theta = tasks(rng, 2)
    samples = linear_samples(rng, theta[[0, 1] * 6], n=60)
    mixed = groups_of(samples, np.zeros(12, dtype=int), 1.0, [True] * 12)
    start = np.random.default_rng(0).dirichlet(np.ones(4), size=12)[None]
    mixed = replace(mixed, r=start, share=np.full((1, 4), 0.25))
    r = mixed.anneal().merge().r[0]
    together = r @ r.T
    expected = np.equal.outer(np.arange(12) % 2, np.arange(12) % 2)
    np.testing.assert_allclose(together, expected, atol=0.02)


@pytest.mark.parametrize("noise", [0.05, 0.3, 2.0])
def test_the_noise_level_is_learnt_from_agents_of_any_tasks(rng, noise):
    samples = linear_samples(rng, tasks(rng, 30), n=40, noise=noise)
    statistics = statistics_of(samples).take(0)
    variance, _ = levels(statistics, np.arange(30)[None], np.ones((1, 30), dtype=bool))
    assert np.sqrt(variance[0]) == pytest.approx(noise, rel=0.1)  # the grid of κ is coarse


def test_a_noise_level_that_is_given_is_kept_and_the_signal_is_learnt(rng):
    samples = linear_samples(rng, 2.0 * tasks(rng, 40), n=40, noise=0.5)
    heard = np.ones((1, 40), dtype=bool)
    variance, ratio = levels(statistics_of(samples).take(0), np.arange(40)[None], heard, noise=0.5)
    assert variance[0] == pytest.approx(0.25)
    # |θ|² = 4 over 5 dimensions: s² = 0.8
    assert variance[0] / ratio[0] == pytest.approx(0.8, rel=0.3)
