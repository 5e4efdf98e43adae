"""Bounds on real runs: they hold as often as they promise, and for the right reasons."""

import math
from dataclasses import replace

import numpy as np
import pytest

import coopbandits as cb
from coopbandits.errors import ParameterError
from coopbandits.theory.regret import theorem_1
from coopbandits.theory.variance import RATIOS
from reference import formulas, runs
from worlds import NETWORKS

DELTA, RUNS, ROUNDS = 0.1, 40, 50


def width_for(problem, delta=DELTA):
    return cb.width.SelfNormalised(norm=problem.norm, noise=problem.noise.scale, delta=delta)


def setup(name, seed, *, ttl=2, ridge=1.0, network=None, problem=None, width=None):
    network = cb.Network.path(5) if network is None else network
    if problem is None:
        drawn = cb.problems.fully_cooperative if name == "dist" else cb.problems.kernel
        problem = drawn(network, dim=2, actions=5, noise=0.3, support=20, seed=seed)
    shared = {
        "kernel": problem.kernel,
        "ridge": ridge,
        "width": width_for(problem) if width is None else width,
    }
    known = {"similarity": problem.similarity}
    make = {
        "coop": lambda: cb.CoopKernelUCB(**shared, **known, ttl=ttl),
        "eager": lambda: cb.EagerKernelUCB(**shared, **known, ttl=ttl),
        "dist": lambda: cb.DistKernelUCB(**shared, ttl=ttl),
        "alone": lambda: cb.KernelUCB(**shared),
        "centralised": lambda: cb.Centralised(**shared, **known),
    }
    return problem, make[name]()


def long_run(name, seed, *, told=1.0, rounds=ROUNDS):
    """A run so long, of a kernel so simple, that its bound says something.

    told: what the width is told of norm and noise, in parts of the truth.
    """
    problem = cb.problems.fully_cooperative(
        cb.Network.grid(2, 2),
        kernel=cb.kernels.Linear(),
        dim=2,
        actions=6,
        noise=0.1,
        support=5,
        seed=seed,
    )
    width = cb.width.SelfNormalised(norm=told * problem.norm, noise=told * 0.1, delta=DELTA)
    ridge = (0.1, 1.0, 10.0)[seed // 3 % 3]
    _, policy = setup(name, seed, ttl=1 + seed % 2, ridge=ridge, problem=problem, width=width)
    run = cb.play(problem, policy, rounds, seed=seed)
    return problem, policy, run, cb.theory.run_bound(problem, policy, run, seed=seed)


@pytest.mark.parametrize(
    ("names", "count"),
    [(("coop",), RUNS), (("eager", "dist", "centralised"), 12)],
    ids=["coop", "others"],
)
def test_the_bound_holds_in_as_many_runs_as_it_promises(names, count):
    held, parts = 0, []
    for seed in range(count):
        problem, _, _, found = long_run(names[seed % len(names)], seed)
        assert found.delta <= DELTA + 1e-12
        parts.append(
            found.bound[-1] / (2 * problem.norm * 4 * ROUNDS)
        )  # of what can be lost at all
        held += bool((found.measured <= found.bound).all())
    assert held >= (1 - DELTA) * count
    assert np.mean(parts) < 0.8  # so that it says something


def test_the_bound_fails_where_the_width_is_told_too_little():
    told = [long_run("coop", seed, told=0.01)[-1] for seed in range(6)]
    assert sum((found.measured <= found.bound).all() for found in told) < 3


def literal_group(L, w, *, rounds, agents, delay, ridge, norm):
    """The bound of one group after its first round, form by form (κ = 1)."""
    pulls = agents * (rounds - 1)
    blocks = [
        math.ceil((m + delay - 1) / m) * m * agents * L / math.log(1 + m * agents / ridge)
        for m in range(1, delay + 1)
    ]
    bounds = [2 * norm * pulls, 2 * w * math.sqrt(pulls * min(blocks))]
    for ratio in RATIOS:
        quiet = 2 * w * math.sqrt(pulls * ratio * L / math.log(1 + 1 / ridge))
        leaps = min(rounds - 1, delay * math.floor(L / math.log(ratio)))
        bounds.append(quiet + 2 * norm * agents * leaps)
    return min(bounds)


@pytest.mark.parametrize("name", ["coop", "eager", "dist"])
@pytest.mark.parametrize("seed", [0, 1, 3, 4])
def test_the_bound_of_a_run_is_the_literal_sum_over_its_groups(name, seed):
    problem, policy, run, found = long_run(name, seed)
    network, ttl, ridge, norm = problem.network, policy.ttl, policy.ridge, problem.norm
    lags = policy.listen.lags(network, ttl).dense()
    centres = network.centres(ttl)
    stars = [[int(c), *(v for v in range(4) if centres.of[v] == c != v)] for c in centres.indices]
    total = 0.0
    for group in stars if name == "dist" else network.clique_cover(ttl).cliques:
        n, judges = len(group), group[:1] if name == "dist" else group
        K = runs.group_gram(problem, policy, run, seed, judges)
        L = formulas.logdet(n * K if name == "dist" else K, ridge)
        w = max(
            formulas.self_normalised(
                runs.group_gram(problem, policy, run, seed, np.flatnonzero(np.isfinite(lags[v]))),
                ridge,
                norm=norm,
                noise=0.1,
                delta=DELTA,
                agents=4,
            )
            for v in judges
        )
        far = max(network.distances[u, v] for u in judges for v in group)
        delay = max(1, int(2 * far if name == "dist" else far))
        total += literal_group(L, w, rounds=ROUNDS, agents=n, delay=delay, ridge=ridge, norm=norm)
        waits = [network.distances[group[0], v] if name == "dist" else 0 for v in group]
        total += 2 * norm * sum(1 + wait for wait in waits)
    assert found.bound[-1] == pytest.approx(total)


@pytest.mark.parametrize("name", ["coop", "eager", "dist"])
@pytest.mark.parametrize("ridge", [0.1, 1.0, 10.0])
def test_regret_is_at_most_two_widths_of_what_was_uncertain_and_that_at_most_the_bound(name, ridge):
    # the chain of the proof, link by link, with every σ computed literally
    seed, ttl = 3, 2
    problem, policy = setup(name, seed, ttl=ttl, ridge=ridge)
    run = cb.play(problem, policy, 12, seed=seed)
    found = cb.theory.run_bound(problem, policy, run, seed=seed)
    sigma = np.sqrt(np.maximum(runs.variances(problem, policy, run, seed), 0))
    judges = np.unique(problem.network.centres(ttl).indices) if name == "dist" else range(5)
    lags = policy.listen.lags(problem.network, ttl).dense()
    for v in judges:
        K = runs.group_gram(problem, policy, run, seed, np.flatnonzero(np.isfinite(lags[v])))
        w = formulas.self_normalised(K, ridge, norm=problem.norm, noise=0.3, delta=DELTA, agents=5)
        assert (run.regret[1:, v] <= 2 * w * sigma[1:, v]).all()
    assert (found.measured <= found.bound).all()
    assert (np.diff(found.bound) >= -1e-9).all()


def test_the_logdets_and_groups_are_the_literal_ones():
    problem, policy = setup("coop", 1, ridge=0.5, network=NETWORKS["grid"])
    run = cb.play(problem, policy, 6, seed=1)
    found = cb.theory.run_bound(problem, policy, run, seed=1)
    assert found.groups == problem.network.clique_cover(2).cliques
    gains = cb.theory.run_gains(problem, policy, run, seed=1)
    assert gains.groups == found.groups
    for column, group in enumerate(found.groups):
        for t in (1, 4, 6):
            K = runs.group_gram(problem, policy, run, 1, group)[: len(group) * t, : len(group) * t]
            assert found.logdets[t - 1, column] == pytest.approx(formulas.logdet(K, 0.5))
            assert gains.gains[t - 1, column] == pytest.approx(formulas.logdet(K, 0.5) / 2)


def test_gains_of_agents_neighbourhoods_and_all_are_nested():
    problem, policy = setup("eager", 2)
    run = cb.play(problem, policy, 6, seed=2)

    def gains(of):
        return cb.theory.run_gains(problem, policy, run, seed=2, of=of).gains[-1]

    assert (gains("agents") <= gains("neighbourhoods")).all()
    assert gains("neighbourhoods").max() <= gains("all")[0] <= gains("agents").sum() + 1e-9
    with pytest.raises(ParameterError, match="of='everyone' is not known"):
        gains("everyone")


def test_the_bound_of_a_run_is_no_more_than_theorem_1_for_its_largest_clique():
    for name, most in [("coop", None), ("eager", "neighbourhoods")]:
        problem, policy = setup(name, 5, network=NETWORKS["erdos-renyi"])
        run = cb.play(problem, policy, 10, seed=5)
        found = cb.theory.run_bound(problem, policy, run, seed=5)
        L = found.logdets[-1].max()
        if most:
            L = 2 * cb.theory.run_gains(problem, policy, run, seed=5, of=most).gains[-1].max()
        whole = theorem_1(
            logdet=L,
            cliques=len(found.groups),
            agents=10,
            rounds=10,
            ttl=2,
            norm=problem.norm,
            noise=0.3,
            delta=DELTA,
        )
        assert found.bound[-1] <= whole.total * (1 + 1e-9)


def test_agents_of_different_clusters_are_different_groups():
    network = cb.Network.complete(4)
    labels = [0, 1, 0, 1]
    problem = cb.problems.kernel(network, dim=2, actions=3, seed=0)
    policy = cb.CoopKernelUCB(
        kernel=problem.kernel,
        similarity=cb.similarity.Clusters(labels),
        width=cb.width.SelfNormalised(),
    )
    run = cb.play(problem, policy, 4)
    assert cb.theory.run_bound(problem, policy, run).groups == ((0, 2), (1, 3))


def test_an_agent_alone_in_its_clique_fails_by_itself():
    # it plays with δ, the others with δ/V each
    problem, policy = setup("coop", 0, network=cb.Network.path(4))
    found = cb.theory.run_bound(problem, policy, cb.play(problem, policy, 3, seed=0), seed=0)
    assert found.groups == ((0, 1, 2), (3,))
    assert found.delta == pytest.approx(3 * DELTA / 4 + DELTA)


def test_lone_agents_have_bounds_of_their_own_and_together_fail_more_often():
    problem, policy = setup("alone", 0)
    run = cb.play(problem, policy, 15, seed=0)
    found = cb.theory.run_bound(problem, policy, run, seed=0)
    assert found.delta == pytest.approx(5 * DELTA)
    assert (np.cumsum(run.regret, axis=0) <= found.agent_bound).all()
    np.testing.assert_allclose(found.agent_bound.sum(axis=1), found.bound)


def test_a_follower_is_promised_its_centres_regret_and_that_of_its_first_rounds():
    problem, policy = setup("dist", 4, network=NETWORKS["grid"])
    run = cb.play(problem, policy, 15, seed=4)
    found = cb.theory.run_bound(problem, policy, run, seed=4)
    centres = problem.network.centres(2)
    assert {group[0] for group in found.groups} == set(centres.indices.tolist())
    assert (np.cumsum(run.regret, axis=0) <= found.agent_bound).all()
    for v in range(9):
        c = centres.of[v]
        waits = problem.network.distances[c, v]
        more = found.agent_bound[-1, v] - found.agent_bound[-1, c]
        assert more == pytest.approx(2 * problem.norm * waits)


def test_a_kernel_of_four_times_the_size_with_half_the_norm_has_the_same_bound():
    # F is the same function, λ four times as large gives the same posterior means
    problem, policy = setup("coop", 7)
    run = cb.play(problem, policy, 10, seed=7)
    found = cb.theory.run_bound(problem, policy, run, seed=7)
    width = cb.width.SelfNormalised(norm=problem.norm / 2, noise=0.3, delta=DELTA)
    larger = cb.CoopKernelUCB(
        kernel=4.0 * problem.kernel,
        similarity=problem.similarity,
        ttl=2,
        ridge=4.0,
        width=width,
    )
    again = cb.play(problem, larger, 10, seed=7)
    np.testing.assert_array_equal(run.actions, again.actions)
    np.testing.assert_allclose(
        cb.theory.run_bound(problem, larger, again, seed=7).bound, found.bound
    )


def test_what_no_theorem_covers_is_refused():
    problem, policy = setup("coop", 0)
    run = cb.play(problem, policy, 4, seed=0)
    bound = cb.theory.run_bound
    with pytest.raises(ParameterError, match="give the problem and the seed that were played"):
        bound(problem, policy, run, seed=1)
    with pytest.raises(ParameterError, match="promises nothing"):
        bound(problem, cb.CoopKernelUCB(kernel=problem.kernel, eta=1.0), run)
    learnt = cb.CoopKernelUCB(kernel=problem.kernel, width=width_for(problem))
    with pytest.raises(ParameterError, match="learns K_z"):
        bound(problem, learnt, run)
    dist = cb.DistKernelUCB(kernel=problem.kernel, width=width_for(problem))
    with pytest.raises(ParameterError, match="one fixed decision set"):
        bound(problem, dist, cb.play(problem, dist, 4, seed=0))
    other = cb.problems.kernel(cb.Network.path(4), dim=2, actions=4, seed=0)
    with pytest.raises(ParameterError, match="the run is of 5 agents, the problem of 4"):
        bound(
            other,
            cb.EagerKernelUCB(
                kernel=other.kernel, similarity=other.similarity, width=width_for(other)
            ),
            run,
        )
    for changed in (
        replace(policy, forget=cb.forget.Window(3)),
        replace(policy, scale=2.0),
        replace(policy, scaling=cb.Scaling(0.0, 2.0)),
    ):
        with pytest.raises(ParameterError, match="evidence that does not fade, in the units"):
            bound(problem, changed, cb.play(problem, changed, 4, seed=0))
    sparse = cb.play(problem, policy, 4, seed=0, engine="sparse")
    with pytest.raises(ParameterError, match="the bounds are for the kernel itself"):
        bound(problem, policy, sparse)


class Raised:
    """A problem with a constant added to all rewards."""

    def __init__(self, problem, constant):
        self.problem, self.constant = problem, constant
        self.network, self.horizon = problem.network, problem.horizon

    def round(self, t, seed):
        offer = self.problem.round(t, seed)
        more = self.constant
        return replace(offer, expected=offer.expected + more, rewards=offer.rewards + more)


def test_with_an_intercept_the_bound_holds_for_rewards_around_a_constant():
    constant, tau, held = 3.0, 2.0, 0
    for seed in range(20):
        problem, policy = setup("coop", seed)
        norm = np.sqrt(problem.norm**2 + len(problem.network) * (constant / tau) ** 2)
        width = cb.width.SelfNormalised(norm=norm, noise=problem.noise.scale, delta=DELTA)
        policy = replace(policy, intercept=tau, width=width)
        raised = Raised(problem, constant)
        run = cb.play(raised, policy, 15, seed=seed)
        found = cb.theory.run_bound(raised, policy, run, seed=seed)
        held += bool((found.measured <= found.bound).all())
    assert held >= 18


def test_a_mixtures_width_gives_a_lower_bound_of_the_same_run_that_holds():
    # the same decisions under both widths, as only one action is offered
    network = cb.Network.path(3)
    problem = cb.problems.fully_cooperative(
        network, kernel=cb.kernels.Linear(), dim=2, actions=1, noise=0.1, support=5
    )
    bounds = []
    for kind in (cb.width.SelfNormalised, cb.width.Mixture):
        width = kind(norm=problem.norm, noise=0.1, delta=DELTA)
        _, policy = setup("coop", 0, problem=problem, width=width)
        run = cb.play(problem, policy, ROUNDS)
        bounds.append(cb.theory.run_bound(problem, policy, run))
    assert bounds[1].delta == bounds[0].delta
    assert (bounds[1].bound <= bounds[0].bound).all()
    assert bounds[1].bound[-1] < bounds[0].bound[-1]
    held = 0
    for seed in range(10):
        problem, policy = setup("coop", seed)
        policy = replace(policy, width=cb.width.Mixture(problem.norm, 0.3, DELTA))
        run = cb.play(problem, policy, 20, seed=seed)
        found = cb.theory.run_bound(problem, policy, run, seed=seed)
        held += bool((found.measured <= found.bound).all())
    assert held >= 9
