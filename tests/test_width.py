from dataclasses import dataclass, replace

import numpy as np
import pytest

import coopbandits as cb
from coopbandits.errors import InputError, ParameterError
from coopbandits.gp.compositions import Hadamard, JointKernel
from coopbandits.gp.network_kernel import DenseKernel
from coopbandits.gp.posterior import Posterior
from reference import formulas


def belief_of(kernel, X, y, Q, ridge):
    posterior = Posterior(JointKernel(kernel, DenseKernel(np.ones((1, 1))), Hadamard()), ridge)
    posterior.extend(np.zeros(len(X), dtype=int), X, y)
    return posterior.predict(np.zeros(len(Q), dtype=int), Q)


def factor(width, belief, ridge, agents=1):
    return width.factor(
        logdet=belief.logdet,
        count=belief.count,
        ridge=ridge,
        agents=np.full(len(belief.mean), agents),
    )


@pytest.mark.parametrize("ridge", [0.2, 1.0, 3.0])
@pytest.mark.parametrize("n", [0, 1, 25])
def test_every_width_equals_its_literal_formula(rng, n, ridge):
    X, Q = rng.normal(size=(n, 2)), rng.normal(size=(4, 2))
    belief = belief_of(cb.kernels.RBF(), X, rng.normal(size=n), Q, ridge)
    K = formulas.gram(formulas.rbf, X, X)
    for width, expected in [
        (cb.width.Fixed(0.7), 0.7 / np.sqrt(ridge)),
        (
            cb.width.SelfNormalised(norm=2.0, noise=0.3, delta=0.1),
            formulas.self_normalised(K, ridge, norm=2.0, noise=0.3, delta=0.1, agents=7),
        ),
        (
            cb.width.Mixture(norm=2.0, noise=0.3, delta=0.1),
            formulas.mixture(K, ridge, norm=2.0, noise=0.3, delta=0.1, agents=7),
        ),
        (
            cb.width.InformationGain(norm=2.0, noise=0.3, delta=0.1),
            formulas.information_gain(K, ridge, norm=2.0, noise=0.3, delta=0.1),
        ),
        (cb.width.Srinivas(norm=2.0, delta=0.1), formulas.srinivas(K, ridge, norm=2.0, delta=0.1)),
        (cb.width.Logarithmic(0.7), 0.7 * np.sqrt(np.log(n + 2) / ridge)),
    ]:
        np.testing.assert_allclose(factor(width, belief, ridge, agents=7), expected, rtol=1e-10)


def test_a_given_bound_on_the_information_gain_replaces_the_realised_one(rng):
    belief = belief_of(
        cb.kernels.RBF(), rng.normal(size=(8, 2)), np.zeros(8), rng.normal(size=(3, 2)), 1.0
    )
    gain = {8: 5.0}.__getitem__
    np.testing.assert_allclose(
        factor(cb.width.InformationGain(norm=1, noise=2, delta=0.1, gain=gain), belief, 1.0),
        1 + 2 * np.sqrt(2 * (5.0 + 1 + np.log(10))),
    )
    np.testing.assert_allclose(
        factor(cb.width.Srinivas(norm=1, delta=0.1, gain=gain), belief, 1.0),
        np.sqrt(2 + 300 * 5.0 * np.log(9 / 0.1) ** 3),
    )


def test_linucbs_alpha_is_eta_for_every_ridge(rng):
    # (η/√λ)·σ = α·√(xᵀA⁻¹x), A = λI + XᵀX
    X, Q = rng.normal(size=(12, 3)), rng.normal(size=(5, 3))
    for ridge in (0.1, 1.0, 9.0):
        belief = belief_of(cb.kernels.Linear(), X, np.zeros(12), Q, ridge)
        A_inv = np.linalg.inv(ridge * np.eye(3) + X.T @ X)
        bonus = 0.7 * np.sqrt(np.einsum("md,de,me->m", Q, A_inv, Q))
        ours = factor(cb.width.Fixed(0.7), belief, ridge) * belief.std
        np.testing.assert_allclose(ours, bonus, rtol=1e-10)


def test_ofuls_radius_is_the_self_normalised_width_for_every_ridge(rng):
    # OFUL: (R·√(log det(A)/λ^d + 2 ln(1/δ)) + √λ·S)·√(xᵀA⁻¹x)
    X, Q = rng.normal(size=(12, 3)), rng.normal(size=(5, 3))
    S, R, delta = 1.5, 0.4, 0.05
    for ridge in (0.1, 1.0, 9.0):
        belief = belief_of(cb.kernels.Linear(), X, np.zeros(12), Q, ridge)
        A = ridge * np.eye(3) + X.T @ X
        radius = R * np.sqrt(
            np.log(np.linalg.det(A) / ridge**3) + 2 * np.log(1 / delta)
        ) + S * np.sqrt(ridge)
        expected = radius * np.sqrt(np.einsum("md,de,me->m", Q, np.linalg.inv(A), Q))
        width = cb.width.SelfNormalised(norm=S, noise=R, delta=delta)
        np.testing.assert_allclose(factor(width, belief, ridge) * belief.std, expected, rtol=1e-10)


def covered_runs(width, *, ridge, noise, runs, similarity=None, ttl=1):
    """In how many runs does every agent's interval hold the true function, at every context and
    in every round?

    Agents play with the width itself, so their choices depend on the noise.
    """
    network = cb.Network.path(4)
    covered = 0
    for seed in range(runs):
        problem = cb.problems.kernel(
            network,
            kernel=cb.kernels.RBF(0.7),
            dim=2,
            actions=6,
            noise=noise,
            norm=1.0,
            support=20,
            seed=seed,
        )
        policy = cb.EagerKernelUCB(
            kernel=problem.kernel,
            similarity=problem.similarity if similarity is None else similarity,
            ttl=ttl,
            ridge=ridge,
            width=width,
        )
        covered += holds(problem, policy, rounds=8, seed=seed)
    return covered


def holds(problem, policy, *, rounds, seed):
    agents = [policy.agent(v, problem.network, seed=seed) for v in range(len(problem.network))]
    held = []
    for t in range(1, rounds + 1):
        offer = problem.round(t, seed)
        flying, held = held, []
        for v, agent in enumerate(agents):
            rows = np.flatnonzero(offer.agents == v)
            decision = agent.decide(offer.contexts[rows])
            # the belief that the decision was taken on, at every offered context
            belief = agent._beliefs.predict(offer.contexts[rows], np.empty(0))
            gap = np.abs(offer.expected[rows] - belief.mean)
            if (gap > decision.width * belief.std + 1e-9).any():
                return False
            for m in agent.reward(decision.id, float(offer.rewards[rows[decision.index]])):
                flying += [(int(to), m) for to in agent.recipients]
        for to, m in flying:
            held += [
                (int(next_), onward)
                for onward in agents[to].receive(m)
                for next_ in agents[to].recipients
            ]
    return True


@pytest.mark.parametrize("runs", [40, pytest.param(200, marks=pytest.mark.slow)])
@pytest.mark.parametrize(
    ("width", "ridge", "noise"),
    [
        pytest.param(
            *(cb.width.SelfNormalised(norm=1.0, noise=0.3, delta=0.1), 1.0, 0.3),
            marks=pytest.mark.slow,
        ),
        (cb.width.SelfNormalised(norm=1.0, noise=0.3, delta=0.1), 0.05, 0.3),
        (
            cb.width.SelfNormalised(norm=1.0, noise=0.3, delta=0.1),
            0.09,
            cb.problems.Uniform(0.3),
        ),
        (cb.width.Mixture(norm=1.0, noise=0.3, delta=0.1), 0.05, cb.problems.Uniform(0.3)),
        (cb.width.InformationGain(norm=1.0, noise=0.3, delta=0.1), 1.0 + 2 / 32, 0.3),
        (cb.width.Srinivas(norm=1.0, delta=0.1), 0.09, cb.problems.Uniform(0.3)),
    ],
    ids=[
        *("λ = 1", "λ = 0.05", "uniform noise"),
        *("mixture, uniform noise", "information gain", "srinivas"),
    ],
)
def test_every_width_covers_the_true_function(width, ridge, noise, runs):
    held = covered_runs(width, ridge=ridge, noise=noise, runs=runs, ttl=2)
    assert held >= 0.9 * runs  # δ = 0.1


@pytest.mark.parametrize("kind", [cb.width.SelfNormalised, cb.width.Mixture])
def test_the_coverage_test_can_fail(kind):
    # a tenth of the norm and of the noise is a width that promises too much
    too_narrow = kind(norm=0.1, noise=0.03, delta=0.1)
    assert covered_runs(too_narrow, ridge=0.09, noise=0.3, runs=40) < 0.75 * 40


@dataclass(frozen=True, eq=False)
class WithConstants:
    """A problem with a constant of its own in each agent's rewards: (V,)."""

    problem: cb.problems.Simulated
    constants: np.ndarray

    @property
    def network(self):
        return self.problem.network

    def round(self, t, seed):
        offer = self.problem.round(t, seed)
        more = self.constants[offer.agents]
        return replace(offer, expected=offer.expected + more, rewards=offer.rewards + more)


def covered_with_constants(norm_of, *, tau, ridge, runs):
    """Count the runs in which bounds cover f_v + c_v, c_v = ±10; the norm is that of f and c."""
    network, covered = cb.Network.path(4), 0
    constants = np.array([10.0, -10.0, 10.0, 10.0])
    norm = norm_of(1.0, constants, tau)
    for seed in range(runs):
        problem = cb.problems.kernel(
            network, kernel=cb.kernels.RBF(0.7), dim=2, actions=6, noise=0.3, support=20, seed=seed
        )
        policy = cb.EagerKernelUCB(
            problem.kernel,
            similarity=problem.similarity,
            ttl=2,
            ridge=ridge,
            width=cb.width.SelfNormalised(norm, 0.3, 0.1),
            intercept=tau,
        )
        covered += holds(WithConstants(problem, constants), policy, rounds=8, seed=seed)
    return covered


def norm_with_constants(norm, constants, tau):
    return np.sqrt(norm**2 + (constants**2).sum() / tau**2)


@pytest.mark.parametrize("runs", [40, pytest.param(200, marks=pytest.mark.slow)])
@pytest.mark.parametrize(("tau", "ridge"), [(10.0, 0.09), (1.0, 0.09), (10.0, 1.0)])
def test_with_an_intercept_the_norm_gains_the_constants_and_bounds_cover_them(tau, ridge, runs):
    held = covered_with_constants(norm_with_constants, tau=tau, ridge=ridge, runs=runs)
    assert held >= 0.9 * runs  # δ = 0.1


def test_a_norm_that_leaves_constants_out_covers_nothing_where_they_are_large():
    held = covered_with_constants(lambda norm, *_: norm, tau=1.0, ridge=0.09, runs=20)
    assert held == 0


@pytest.mark.parametrize("ridge", [0.05, 1.0, 4.0])
def test_the_mixtures_width_is_the_lesser_and_by_no_more_than_the_root_of_two(ridge):
    logdet, count = np.linspace(0, 200, 50), np.arange(50)
    for norm, noise in [(0.0, 1.0), (1.0, 0.0), (1.0, 0.3), (5.0, 0.1)]:
        both = (kind(norm, noise, 0.1) for kind in (cb.width.SelfNormalised, cb.width.Mixture))
        wide, narrow = (
            w.factor(logdet=logdet, count=count, ridge=ridge, agents=np.full(50, 7)) for w in both
        )
        assert (narrow <= wide * (1 + 1e-12)).all()
        assert (wide <= narrow * np.sqrt(2) * (1 + 1e-12)).all()
        # with one part alone there is nothing to gain
        np.testing.assert_allclose(narrow[:1] < wide[:1], norm * noise > 0)


def test_the_mixtures_supermartingale_is_what_its_proof_says(rng):
    # E_g exp(Σ(g−F)ε/R² − (g−F)²/2R²) over g ~ N(0, (R²/λ)K) is
    # det(I + K/λ)^(−1/2)·exp((|y − F|² − λyᵀ(K + λI)⁻¹y)/2R²)
    R, ridge, n = 0.4, 0.6, 4
    X = rng.normal(size=(n, 2))
    K = formulas.gram(formulas.rbf, X, X)
    F, noise = rng.normal(size=n), 0.4 * rng.normal(size=n)
    y = F + noise
    g = rng.multivariate_normal(np.zeros(n), R**2 / ridge * K, size=100_000)
    drawn = np.exp(((g - F) @ noise - 0.5 * ((g - F) ** 2).sum(axis=1)) / R**2)
    fit = ridge * y @ np.linalg.solve(K + ridge * np.eye(n), y)
    closed = np.exp((noise @ noise - fit) / (2 * R**2) - 0.5 * formulas.logdet(K, ridge))
    assert abs(drawn.mean() - closed) < 4 * drawn.std() / np.sqrt(len(drawn))


def test_the_mixtures_ellipsoid_is_what_its_proof_says(rng):
    # |y − Φf|² + λ|f|² = |f − f̂|²_A + λyᵀ(K + λI)⁻¹y, A = λI + ΦᵀΦ, for every f
    Phi, y, f, ridge = rng.normal(size=(6, 3)), rng.normal(size=6), rng.normal(size=3), 0.6
    A = ridge * np.eye(3) + Phi.T @ Phi
    gap = f - np.linalg.solve(A, Phi.T @ y)
    fit = ridge * y @ np.linalg.solve(Phi @ Phi.T + ridge * np.eye(6), y)
    left = ((y - Phi @ f) ** 2).sum() + ridge * f @ f
    assert left == pytest.approx(gap @ A @ gap + fit)


@pytest.mark.parametrize(
    ("make", "complaint"),
    [
        (lambda: cb.width.Fixed(-1.0), "eta must be >= 0, got -1"),
        (lambda: cb.width.Fixed(np.nan), "eta must be finite"),
        (lambda: cb.width.SelfNormalised(norm=-1), "norm must be >= 0"),
        (lambda: cb.width.SelfNormalised(noise=np.inf), "noise must be finite"),
        (lambda: cb.width.SelfNormalised(delta=0), "delta must be above 0"),
        (lambda: cb.width.SelfNormalised(delta=1.0), "delta must be a probability below 1"),
        (lambda: cb.width.Mixture(norm=-1), "norm must be >= 0"),
        (lambda: cb.width.Mixture(delta=1.0), "delta must be a probability below 1"),
        (lambda: cb.width.InformationGain(delta=2.0), "delta must be a probability below 1"),
        (lambda: cb.width.InformationGain(gain=3.0), "gain must be a function"),
        (lambda: cb.width.Srinivas(norm="big"), "norm must be a number"),
    ],
)
def test_settings_outside_their_range_are_refused(make, complaint):
    with pytest.raises(InputError, match=complaint):
        make()


def test_a_gain_that_is_negative_is_refused(rng):
    belief = belief_of(
        cb.kernels.RBF(), rng.normal(size=(2, 2)), np.zeros(2), rng.normal(size=(3, 2)), 1.0
    )
    with pytest.raises(ParameterError, match=r"gain\(2\) must be >= 0"):
        factor(cb.width.Srinivas(gain=lambda n: -1.0), belief, 1.0)


def test_eta_and_width_together_are_refused():
    with pytest.raises(ParameterError, match="give one of them"):
        cb.LinUCB(eta=1.0, width=cb.width.Fixed(2.0))


def test_an_eta_beside_a_width_is_refused_whatever_it_is():
    with pytest.raises(ParameterError, match="eta=a value of type int is short for width=Fixed"):
        cb.width.chosen_width(10**5000, cb.width.Fixed())
