"""The sampler against exact enumeration, and by Geweke's joint-distribution test."""

import numpy as np
import pytest

from coopbandits.gp.statistics import Statistics
from coopbandits.similarity import gibbs
from coopbandits.similarity.evidence import _OWN, _OWN_OF, _PRIOR, WEIGHTS
from reference.partitions import log_crp, partitions

M, S2 = 2, 0.7
LOWER = np.tril_indices(M)


def statistics(rng, theta, n=3, noise=0.5):
    """S and b in precision units of agents with these tasks: (N, m, m), (N, m)."""
    X = rng.normal(size=(len(theta), n, M))
    y = np.einsum("unm,um->un", X, theta) + noise * rng.normal(size=(len(theta), n))
    return np.einsum("uni,unj->uij", X, X) / noise**2, np.einsum("uni,un->ui", X, y) / noise**2


def dense_log_evidence(S, b, v):
    whole = np.eye(len(b)) + v * S
    return 0.5 * v * b @ np.linalg.solve(whole, b) - 0.5 * np.linalg.slogdet(whole)[1]


def joint_log_density(labels, S, b, weights):
    """log p(y | labels, a, b, c) by one dense Gaussian over all agents' weights."""
    a, group, own = weights
    N = len(labels)
    same = np.equal.outer(labels, labels)
    K = S2 * (a + group * same + own * np.eye(N))
    prior = np.kron(K, np.eye(M))
    precision = np.zeros((N * M, N * M))
    for u in range(N):
        precision[u * M : (u + 1) * M, u * M : (u + 1) * M] = S[u]
    h = b.reshape(-1)
    whole = np.eye(N * M) + prior @ precision
    return 0.5 * h @ np.linalg.solve(whole, prior @ h) - 0.5 * np.linalg.slogdet(whole)[1]


def exact_posterior(S, b, alphas):
    """p(labels, point of the grid | y), α summed over: (partitions, points)."""
    table = np.array(
        [
            [
                joint_log_density(labels, S, b, w)
                + prior
                + np.logaddexp.reduce([log_crp(labels, alpha) for alpha in alphas])
                for w, prior in zip(WEIGHTS, _PRIOR, strict=True)
            ]
            for labels in partitions(len(S))
        ]
    )
    table = np.exp(table - table.max())
    return table / table.sum()


def swept(rng, S, b, labels, *, me=0, visit=1.0, sweeps=1, laws=None):
    """Let chains take sweeps; labels change in place. Returns samples, odds and facts."""
    C, N = labels.shape
    s, Q = np.linalg.eigh(S)
    p = np.einsum("uij,ui->uj", Q, b)
    packed, left = np.empty((len(_OWN), N, len(LOWER[0]))), np.empty((len(_OWN), N, M))
    own, one = np.empty((len(_OWN), N)), np.ones(N)
    for k, c in enumerate(_OWN):
        given = s, Q, p, np.arange(N), one, c * S2
        gibbs.without_own_parts(*given, packed[k], left[k], own[k])
    n = C * sweeps
    samples, odds, facts = np.empty((n, N), dtype=np.int64), np.zeros((n, N + 1)), np.empty((n, 6))
    precision, total, between = laws or (np.zeros(N), np.zeros((N, M)), 0.0)
    gibbs.sample(
        (packed, left, own, precision, total), (WEIGHTS, _OWN_OF, _PRIOR), S2,
        gibbs.concentrations(N), between, labels, me, visit, rng.random((n, 3 + 2 * N)),
        rng.standard_normal((n, M)), samples, odds, facts,
    )  # fmt: skip
    return samples, odds, facts


def canonical(labels):
    order = {g: k for k, g in enumerate(dict.fromkeys(labels.tolist()))}
    return tuple(order[g] for g in labels.tolist())


def test_the_packed_evidence_is_that_of_the_dense_form(rng):
    for m in (1, 2, 5, 13):
        A = rng.normal(size=(m + 2, m))
        S, b, v = A.T @ A, rng.normal(size=m), rng.uniform(0.1, 3.0)
        L, z = np.empty(m * (m + 1) // 2), np.empty(m)
        found = gibbs.log_evidence(S[np.tril_indices(m)], b, v, L, z)
        assert found == pytest.approx(dense_log_evidence(S, b, v), rel=1e-12)


def in_fours(rows):
    """Lay out a row for each group as the sampler does: (K, ·) -> (blocks, ·, 4)."""
    padded = np.zeros((-(-len(rows) // 4) * 4, rows.shape[1]))
    padded[: len(rows)] = rows
    return np.ascontiguousarray(np.swapaxes(padded.reshape(-1, 4, rows.shape[1]), 1, 2))


def scratch(m):
    return np.empty((m, m, 4)), np.empty((m, 4)), np.empty((m, m, 4))


def test_the_evidence_of_four_groups_at_once_is_that_of_each(rng):
    for m, K in ((1, 1), (3, 5), (10, 23)):
        A = rng.normal(size=(K + 1, m + 2, m)) * rng.choice([1e-3, 1, 1e6], size=(K + 1, 1, 1))
        S, b, v = np.swapaxes(A, 1, 2) @ A, rng.normal(size=(K + 1, m)), rng.uniform(0.1, 3.0)
        packed, h = S[:, *np.tril_indices(m)], m * (m + 1) // 2
        w, found = np.zeros(K + 4), np.empty(K + 4)
        w[:K] = rng.integers(2, size=K)  # with the last agent, or without
        gibbs.log_evidences(
            in_fours(packed[:K]), in_fours(b[:K]), w, packed[K], b[K], v, K, scratch(m), found
        )
        L, z = np.empty(h), np.empty(m)
        for k in range(K):
            both = packed[k] + w[k] * packed[K], b[k] + w[k] * b[K]
            assert found[k] == pytest.approx(gibbs.log_evidence(*both, v, L, z), rel=1e-9)
        w[:K] = -1.0  # the last agent is taken out again
        gibbs.log_evidences(
            in_fours(packed[:K] + packed[K]), in_fours(b[:K] + b[K]), w, packed[K], b[K], v, K,
            scratch(m), found,
        )  # fmt: skip
        for k in np.flatnonzero(np.trace(S[:K], axis1=1, axis2=2) > 1e-3 * np.trace(S[K])):
            assert found[k] == pytest.approx(gibbs.log_evidence(packed[k], b[k], v, L, z), rel=1e-6)


def test_what_groups_say_of_the_population_is_that_of_the_dense_form(rng):
    for m, K in ((1, 2), (3, 4), (6, 9)):
        A = rng.normal(size=(K, m + 2, m))
        S, b, v, share = np.swapaxes(A, 1, 2) @ A, rng.normal(size=(K, m)), 0.7, 0.4
        P, h = np.empty(m * (m + 1) // 2), np.empty(m)
        nobody = np.zeros(len(P)), np.zeros(m)
        total = gibbs._population(
            in_fours(S[:, *np.tril_indices(m)]), in_fours(b), v, share, K, scratch(m), nobody, P, h
        )
        grown = np.linalg.inv(np.eye(m) + v * S)
        lower = np.tril_indices(m)
        np.testing.assert_allclose(P, share * (S @ grown).sum(axis=0)[lower], atol=1e-10)
        np.testing.assert_allclose(
            h, np.sqrt(share) * (grown @ b[:, :, None]).sum(axis=0)[:, 0], atol=1e-10
        )
        expected = sum(dense_log_evidence(S[k], b[k], v) for k in range(K))
        assert total == pytest.approx(expected, rel=1e-10)


def test_own_parts_are_integrated_out_as_in_statistics(rng):
    S, b = statistics(rng, rng.normal(size=(4, M)))
    s, Q = np.linalg.eigh(S)
    p, v = np.einsum("uij,ui->uj", Q, b), 0.6
    packed, left, own = np.empty((4, 3)), np.empty((4, M)), np.empty(4)
    w = np.array([1.0, 0.2, 30.0, 4.0])  # precision of each agent's rewards
    gibbs.without_own_parts(s, Q, p, np.arange(4), w, v, packed, left, own)
    S, b = w[:, None, None] * S, w[:, None] * b
    shared, logdet = Statistics(np.ones(4), np.zeros(4), b, S).shared(np.full(4, v))
    np.testing.assert_allclose(packed, shared.S[:, *LOWER], atol=1e-12)
    np.testing.assert_allclose(left, shared.b, atol=1e-12)
    np.testing.assert_allclose(own, -0.5 * (shared.q + logdet), atol=1e-12)


def test_dense_and_nested_evidence_agree(rng):
    """Integrating own, group and population parts out one after the other is exact."""
    S, b = statistics(rng, rng.normal(size=(4, M)))
    labels, (a, g, c) = np.array([0, 1, 0, 1]), (0.3, 0.4, 0.3)
    total, P, h = 0.0, np.zeros((M, M)), np.zeros(M)
    for k in range(2):
        pooled_S, pooled_b = np.zeros((M, M)), np.zeros(M)
        for u in np.flatnonzero(labels == k):
            grown = np.linalg.inv(np.eye(M) + c * S2 * S[u])
            total += dense_log_evidence(S[u], b[u], c * S2)
            pooled_S, pooled_b = pooled_S + S[u] @ grown, pooled_b + grown @ b[u]
        grown = np.linalg.inv(np.eye(M) + g * S2 * pooled_S)
        total += dense_log_evidence(pooled_S, pooled_b, g * S2)
        P, h = P + pooled_S @ grown, h + grown @ pooled_b
    total += dense_log_evidence(P, h, a * S2)
    assert total == pytest.approx(joint_log_density(labels, S, b, (a, g, c)))


@pytest.mark.parametrize("visit", [1.0, 0.4])
@pytest.mark.parametrize("N", [3, 6])
def test_chains_visit_partitions_and_weights_as_often_as_bayes_says(rng, N, visit):
    """Every partition of N agents with every hyper-parameter, enumerated."""
    theta = rng.normal(size=(2, M))[np.arange(N) % 2]
    S, b = statistics(rng, theta, n=2, noise=0.8)
    exact = exact_posterior(S, b, gibbs.concentrations(N))
    labels = np.full((4, N), -1)
    swept(rng, S, b, labels, sweeps=200)  # burn-in
    samples, _, facts = swept(rng, S, b, labels, visit=visit, sweeps=15_000)
    place = {one: k for k, one in enumerate(partitions(N))}
    # the grid's point is drawn before the labels of its sweep, from the same stationary law
    counts = np.zeros_like(exact)
    for one, fact in zip(samples, facts, strict=True):
        counts[place[canonical(one)], int(fact[0])] += 1
    counts /= counts.sum()
    assert 0.5 * np.abs(counts.sum(axis=1) - exact.sum(axis=1)).sum() < 0.03
    assert 0.5 * np.abs(counts.sum(axis=0) - exact.sum(axis=0)).sum() < 0.03
    assert exact.sum(axis=1).max() < 0.9  # the data leave it open


def test_contexts_and_concentrations_are_drawn_as_bayes_says(rng):
    """Partition, grid of shares, α and whether contexts follow groups, all enumerated at once."""
    N, between = 4, 0.8
    S, b = statistics(rng, rng.normal(size=(2, M))[np.arange(N) % 2], n=2, noise=1.0)
    precision = np.array([2.0, 3.0, 1.0, 4.0])
    means = np.sqrt(between) * rng.normal(size=(N, M))
    means[2] = means[0] + 0.3

    def of_contexts(labels, follow):
        """Log density of mean contexts, their centres N(0, τ²I) shared by groups or by nobody."""
        shared = np.equal.outer(labels, labels) if follow else np.eye(N)
        K = np.diag(1 / precision) + between * shared
        fit = np.einsum("um,um->", means, np.linalg.solve(K, means))
        return -0.5 * (fit + M * np.linalg.slogdet(K)[1])

    alphas, ways = gibbs.concentrations(N), partitions(N)
    exact = np.zeros((len(ways), len(WEIGHTS), len(alphas), 2))
    for i, labels in enumerate(map(np.array, ways)):
        of_rewards = [joint_log_density(labels, S, b, w) for w in WEIGHTS] + _PRIOR
        exact[i] += of_rewards[:, None, None]
        exact[i] += np.array([log_crp(labels, alpha) for alpha in alphas])[:, None]
        exact[i] += [of_contexts(labels, follow) for follow in (False, True)]
    exact = np.exp(exact - exact.max())
    exact /= exact.sum()
    labels, laws = np.full((4, N), -1), (precision, precision[:, None] * means, between)
    swept(rng, S, b, labels, sweeps=200, laws=laws)  # burn-in
    samples, _, facts = swept(rng, S, b, labels, visit=0.5, sweeps=12_000, me=2, laws=laws)
    place, counts = {one: k for k, one in enumerate(ways)}, np.zeros_like(exact)
    for one, fact in zip(samples, facts.astype(int), strict=True):
        counts[place[canonical(one)], fact[0], fact[1], fact[2]] += 1
    counts /= counts.sum()
    for others in ((1, 2, 3), (0, 2, 3), (0, 1, 3), (0, 1, 2), (1, 2)):
        off = np.abs(counts.sum(axis=others) - exact.sum(axis=others)).sum()
        assert 0.5 * off < 0.03
    assert 0.05 < exact[..., 1].sum() < 0.95  # the data leave it open


def test_the_odds_of_the_asking_agent_are_those_of_bayes(rng):
    """Averaged over samples, with the agent in none of the groups: p(u is with me | y)."""
    N = 4
    S, b = statistics(rng, rng.normal(size=(2, M))[np.arange(N) % 2], n=3)
    exact = exact_posterior(S, b, gibbs.concentrations(N)).sum(axis=1)
    expected = sum(
        p * (np.array(one) == one[2]) for p, one in zip(exact, partitions(N), strict=True)
    )
    labels = np.full((4, N), -1)
    samples, odds, facts = swept(rng, S, b, labels, me=2, sweeps=8_000)
    found = np.zeros(N)
    for one, log_odds, fact in zip(samples, odds, facts, strict=True):
        K = int(fact[3])
        chance = np.exp(log_odds[: K + 1] - log_odds[: K + 1].max())
        chance /= chance.sum()
        others = one.copy()
        others[2] = K
        found += chance[others]
    found /= len(samples)
    found[2] = 1.0
    np.testing.assert_allclose(found, expected, atol=0.03)


def test_geweke_joint_draws_of_data_and_labels_keep_the_prior(rng):
    """Data drawn given labels, labels drawn given data: how many groups there are stays prior."""
    N, alphas, rounds = 4, gibbs.concentrations(4), 12_000
    X = rng.normal(size=(N, 2, M))
    labels, sizes = np.array([[0, 0, 1, 2]]), np.zeros(N)
    for _ in range(rounds):
        weight = WEIGHTS[rng.choice(len(WEIGHTS), p=np.exp(_PRIOR))]
        same = np.equal.outer(labels[0], labels[0])
        K = S2 * (weight[0] + weight[1] * same + weight[2] * np.eye(N))
        theta = np.linalg.cholesky(K) @ rng.normal(size=(N, M))
        y = np.einsum("unm,um->un", X, theta) + rng.normal(size=(N, 2))
        S, b = np.einsum("uni,unj->uij", X, X), np.einsum("uni,un->ui", X, y)
        swept(rng, S, b, labels)
        sizes[len(set(labels[0].tolist())) - 1] += 1
    prior = np.zeros(N)
    for one in partitions(N):
        p = np.exp([log_crp(np.array(one), alpha) for alpha in alphas]).mean()
        prior[max(one)] += p
    np.testing.assert_allclose(sizes / rounds, prior / prior.sum(), atol=0.03)


def test_labels_of_agents_that_left_and_of_new_ones_are_mended(rng):
    S, b = statistics(rng, rng.normal(size=(5, M)))
    labels = np.array([[7, -1, 3, 7, -1]])
    samples, _, facts = swept(rng, S, b, labels)
    assert samples.min() == 0
    assert set(samples[0]) == set(range(samples.max() + 1))
    assert facts[0, 4] >= 5


def test_contexts_that_differ_by_group_pull_agents_together(rng):
    """Rewards say nothing here; two laws of contexts say all."""
    N = 8
    S, b = np.zeros((N, M, M)), np.zeros((N, M))
    means = np.where(np.arange(N)[:, None] < 4, 3.0, -3.0) * np.ones(M)
    precision = np.full(N, 50.0)
    laws = precision, precision[:, None] * means, 9.0
    labels = np.full((2, N), -1)
    samples, _, facts = swept(rng, S, b, labels, sweeps=100, laws=laws)
    apart = [set(one[:4]) & set(one[4:]) for one in samples[facts[:, 2] == 1]]
    assert len(apart) > 50
    assert not any(apart)


def test_the_own_parts_of_agents_without_a_group_do_not_count_yet(rng):
    """Newcomers say nothing about (a, b, c) before they have a group: it is drawn as without them.

    All have one task, so that own parts are hardly there; counted without their group, newcomers'
    rewards would look like own parts.
    """
    S, b = statistics(rng, np.tile(rng.normal(size=(1, M)) * 3, (5, 1)), n=50)
    shares = []
    for known in (4, 5):
        labels = np.zeros((400, known), dtype=np.int64)
        labels[:, 4:] = -1
        _, _, facts = swept(rng, S[:known], b[:known], labels)
        shares.append(np.mean(np.asarray(_OWN_OF)[facts[:, 0].astype(int)] == 1))
    assert shares[1] == pytest.approx(shares[0], abs=0.1)
