"""The variance lemmas on real runs and where they are tight; the printed one where it fails."""

import numpy as np
import pytest

import coopbandits as cb
from reference import formulas, runs
from worlds import NETWORKS

PLAYED = ["path", "two parts", "directed"]
ROUNDS = 7


def printed_lemma(logdet, *, agents, ttl, ridge):
    """Lemma 3 as printed, for a kernel bounded by 1 (the proof's B)."""
    return ttl * agents + max(1, 1 / ridge) * logdet


def one_agents_variances(ridge, rounds=400, dim=10):
    """σ² of one agent's contexts on the unit sphere, one by one."""
    X = np.random.default_rng(0).normal(size=(rounds, dim))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    A, found = ridge * np.eye(dim), []
    for x in X:
        found.append(ridge * x @ np.linalg.solve(A, x))
        A += np.outer(x, x)
    return np.array(found), np.log(np.linalg.det(A / ridge))


@pytest.mark.parametrize(("ridge", "total", "printed"), [(1.0, 41.8, 38.0), (10.0, 164.0, 17.0)])
def test_the_printed_lemma_fails_for_one_agent_and_the_corrected_one_holds(ridge, total, printed):
    variances, logdet = one_agents_variances(ridge)
    assert variances.sum() == pytest.approx(total, abs=0.05)  # the numbers of reading 13
    bound = printed_lemma(logdet, agents=1, ttl=1, ridge=ridge)
    assert bound == pytest.approx(printed, abs=0.05)
    assert variances.sum() > bound
    # σ² ≤ log(1 + σ²), the step that fails, does so for every σ² > 0
    assert (variances > np.log1p(variances)).all()
    assert variances.sum() <= cb.theory.variance_bound(logdet, ridge=ridge)


@pytest.mark.parametrize("ridge", [0.1, 1.0, 10.0])
@pytest.mark.parametrize("agents", [1, 2, 7, 50])
def test_agents_who_pull_the_same_new_direction_at_once_meet_the_bound(agents, ridge):
    # so no bound a·γn + b·L with constants can hold: n/ln(1 + n/λ) grows without limit
    rounds = 12
    K = np.kron(np.eye(rounds), np.ones((agents, agents)))
    logdet = formulas.logdet(K, ridge)
    total = agents * rounds  # every pull has σ² = 1: nobody knows of its round
    assert cb.theory.variance_bound(logdet, agents=agents, ridge=ridge) == pytest.approx(total)


@pytest.mark.parametrize("ridge", [0.1, 1.0, 10.0])
@pytest.mark.parametrize("delay", [2, 3, 6])
def test_delayed_agents_who_repeat_a_direction_come_near_the_bound(delay, ridge):
    agents, blocks = 5, 8
    K = np.kron(np.eye(blocks), np.ones((agents * delay, agents * delay)))
    logdet, total = formulas.logdet(K, ridge), agents * delay * blocks
    bound = cb.theory.variance_bound(logdet, agents=agents, delay=delay, ridge=ridge)
    assert total <= bound <= 2 * total


def coop(problem, ttl, ridge, eta=0.5):
    return cb.CoopKernelUCB(
        kernel=problem.kernel, similarity=problem.similarity, ttl=ttl, ridge=ridge, eta=eta
    )


@pytest.mark.parametrize("eta", [0.5, 1e6], ids=["as usual", "seeking what is uncertain"])
@pytest.mark.parametrize("ttl", [1, 2, 3])
@pytest.mark.parametrize("ridge", [0.1, 1.0, 10.0])
@pytest.mark.parametrize("name", PLAYED)
def test_the_per_clique_lemma_holds_on_runs(name, ridge, ttl, eta):
    network, seed = NETWORKS[name], 10 * ttl + len(name)
    problem = cb.problems.kernel(network, dim=3, actions=4, seed=seed)
    policy = coop(problem, ttl, ridge, eta)
    run = cb.play(problem, policy, ROUNDS, seed=seed)
    variances = runs.variances(problem, policy, run, seed)
    for clique in network.clique_cover(ttl).cliques:
        K = runs.group_gram(problem, policy, run, seed, clique)
        bound = cb.theory.variance_bound(
            formulas.logdet(K, ridge), agents=len(clique), delay=ttl, ridge=ridge
        )
        assert variances[:, clique].sum() <= bound * (1 + 1e-9)


@pytest.mark.parametrize("ttl", [1, 2, 3])
@pytest.mark.parametrize("ridge", [0.1, 1.0, 10.0])
@pytest.mark.parametrize("name", ["path", "grid"])
def test_the_per_neighbourhood_lemmas_hold_on_runs(name, ridge, ttl):
    network, seed = NETWORKS[name], 20 * ttl + len(name)
    problem = cb.problems.fully_cooperative(network, dim=3, actions=6, seed=seed)
    policy = cb.DistKernelUCB(kernel=problem.kernel, ttl=ttl, ridge=ridge, eta=0.5)
    run = cb.play(problem, policy, ROUNDS, seed=seed)
    centres = network.centres(ttl)
    for centre in centres.indices:
        # Lemma 6: the centre's σ at all pulls of its neighbourhood
        heard = network.neighbourhood(centre, ttl)
        variances = runs.variances(problem, policy, run, seed, judge=centre, agents=heard)
        K = runs.group_gram(problem, policy, run, seed, heard)
        bound = cb.theory.variance_bound(
            formulas.logdet(K, ridge), agents=len(heard), delay=ttl, ridge=ridge
        )
        assert variances[:, heard].sum() <= bound * (1 + 1e-9)
        # the form that Theorem 2 needs: its σ at its own arms, once for each who pulls them
        own = runs.group_gram(problem, policy, run, seed, [centre])
        n = int((centres.of == centre).sum())
        bound = cb.theory.variance_bound(
            formulas.logdet(n * own, ridge), agents=n, delay=2 * ttl, ridge=ridge
        )
        assert n * variances[:, centre].sum() <= bound * (1 + 1e-9)


@pytest.mark.parametrize("ridge", [0.1, 1.0, 10.0])
def test_quiet_and_surprising_rounds_are_as_few_and_as_small_as_stated(ridge):
    # the two halves of the lemma by themselves, for many ratios
    network, ttl, seed = cb.Network.path(6), 2, 4
    problem = cb.problems.kernel(network, dim=2, actions=3, seed=seed)
    policy = coop(problem, ttl, ridge)
    run = cb.play(problem, policy, 16, seed=seed)
    variances = runs.variances(problem, policy, run, seed)
    for clique in network.clique_cover(ttl).cliques:
        K = runs.group_gram(problem, policy, run, seed, clique)
        n = len(clique)
        grown = np.array(
            [0.0, *(formulas.logdet(K[: n * t, : n * t], ridge) for t in range(1, 17))]
        )
        within = grown[1:] - grown[np.maximum(np.arange(1, 17) - ttl, 0)]
        for ratio in (1.2, 2.0, 5.0):
            surprising = within > np.log(ratio)
            assert surprising.sum() <= ttl * np.floor(grown[-1] / np.log(ratio))
            quiet = variances[:, clique][~surprising].sum()
            assert quiet <= ratio * grown[-1] / np.log(1 + 1 / ridge) * (1 + 1e-9)


@pytest.mark.parametrize("largest", [0.3, 1.0, 4.0])
def test_a_kernel_of_another_size_scales_the_bound_with_its_ridge(largest):
    # κK with ridge κλ is the same posterior, its variances κ times as large
    whole = cb.theory.variance_bound(9.0, agents=4, delay=2, ridge=0.7 * largest, largest=largest)
    assert whole == pytest.approx(
        largest * cb.theory.variance_bound(9.0, agents=4, delay=2, ridge=0.7)
    )


def test_the_bound_is_at_most_that_of_a_fixed_ratio_and_what_can_be_at_all():
    for L, n, D, ridge in [(5.0, 3, 1, 1.0), (80.0, 10, 4, 10.0), (300.0, 50, 2, 0.1)]:
        by_two = 2 * L / np.log(1 + 1 / ridge) + D * n * L / np.log(2)
        bound = cb.theory.variance_bound(L, agents=n, delay=D, ridge=ridge)
        assert bound <= by_two
        assert cb.theory.variance_bound(L, agents=n, delay=D, ridge=ridge, rounds=2) <= 2 * n


def test_a_delay_of_any_length_is_bounded_at_once():
    # more delay is never better, and over very long delays the bound stays below nTκ
    bounds = [cb.theory.variance_bound(3.0, delay=D) for D in (10**4, 10**4 + 1, 10**6, 2**31)]
    assert bounds == sorted(bounds)
    assert cb.theory.variance_bound(3.0, delay=2**31, rounds=50) == 50.0
