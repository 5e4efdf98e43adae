import numpy as np
import pytest
from scipy import stats

import coopbandits as cb
from coopbandits.errors import InputError, ParameterError
from coopbandits.kernels import RBF, Linear, Matern, Scaled
from coopbandits.lab import Log, Logged, compare_kernels, fit_kernel
from coopbandits.lab.logs.fit_words import not_identified


def drawn(kernel, noise, *, seed, agents=4, count=60, dim=2, centre=0.0):
    """A log of rewards drawn from the model itself: each agent has a function of its own."""
    rng = np.random.default_rng(seed)
    decisions = []
    for v in range(agents):
        X = rng.normal(size=(count, dim))
        K = kernel(X, X) + noise**2 * np.eye(count)
        y = centre + np.linalg.cholesky(K) @ rng.normal(size=count)
        decisions += [Logged(t + 1, v, X[t : t + 1], 0, float(y[t])) for t in range(count)]
    return Log.of(decisions)


def evidence(log, kernel, ridge, centre):
    """The log evidence, agent by agent, literally."""
    total = 0.0
    for v in range(log.agents):
        mine = log.owners == v
        X, y = log.taken[mine], log.rewards[mine]
        K = kernel(X, X) + ridge * np.eye(len(y))
        total += stats.multivariate_normal(np.full(len(y), centre), K).logpdf(y)
    return total


@pytest.mark.parametrize(
    ("name", "truth", "settings"),
    [
        ("rbf", Scaled(RBF(1.3), 4.0), {}),
        ("rbf", Scaled(RBF((0.8, 2.5)), 4.0), {"ard": True}),
        ("matern", Scaled(Matern(1.5, 1.3), 4.0), {"nu": 1.5}),
        ("linear", Linear(0.5), {}),
        ("linear", Linear((0.3, 2.0)), {"ard": True}),
    ],
    ids=str,
)
def test_parameters_of_drawn_data_are_found(name, truth, settings):
    log = drawn(truth, 0.5, seed=0, agents=8 if name == "linear" else 4, centre=7.0)
    fit = fit_kernel(log, name, **settings)
    inner = getattr(truth, "kernel", truth)
    # within 3.5 standard errors: one in 2,000
    gaps = np.log(np.atleast_1d(fit.lengthscale) / np.atleast_1d(inner.lengthscale))
    assert (np.abs(gaps) < 3.5 * np.atleast_1d(fit.errors["lengthscale"])).all()
    assert abs(np.log(fit.noise / 0.5)) < 3.5 * fit.errors["noise"]
    assert fit.errors["noise"] < 0.1
    if name != "linear":
        assert abs(np.log(fit.scale / 2.0)) < 3.5 * fit.errors["scale"]
    assert fit.ridge == pytest.approx(fit.noise**2)
    assert fit.eta == pytest.approx(2 * fit.noise)
    assert fit.warnings == ()


@pytest.mark.slow
def test_standard_errors_are_the_spread_over_logs():
    fits = [fit_kernel(drawn(RBF(1.0), 0.4, seed=s, agents=2, count=40)) for s in range(60)]
    for name, values in [
        ("lengthscale", [fit.lengthscale for fit in fits]),
        ("noise", [fit.noise for fit in fits]),
    ]:
        spread = np.std(np.log(values), ddof=1)
        # the standard deviation of 60 is known to 9%: three of these
        assert np.mean([fit.errors[name] for fit in fits]) == pytest.approx(spread, rel=0.28)


def test_the_fit_is_on_the_rewards_own_scale_and_its_evidence_is_literal():
    log = drawn(Scaled(RBF(1.0), 9.0), 0.6, seed=3, agents=3, count=30, centre=-4.0)
    fit = fit_kernel(log)
    assert fit.evidence == pytest.approx(evidence(log, fit.kernel, fit.ridge, fit.centre))
    assert fit.evidence_per_observation == pytest.approx(fit.evidence / 90)
    for change in (0.9, 1.1):  # nothing near is likelier
        assert fit.evidence > evidence(log, fit.kernel, change * fit.ridge, fit.centre)
        other = Scaled(fit.kernel.kernel, change * fit.kernel.scale)  # type: ignore[attr-defined]
        assert fit.evidence > evidence(log, other, fit.ridge, fit.centre)
        other = Scaled(RBF(change * fit.lengthscale), fit.kernel.scale)  # type: ignore[attr-defined]
        assert fit.evidence > evidence(log, other, fit.ridge, fit.centre)
    times = Log.of(
        [Logged(d.round, d.agent, d.contexts, d.action, 10 * d.reward) for d in log.decisions]
    )
    scaled = fit_kernel(times)
    assert scaled.noise == pytest.approx(10 * fit.noise, rel=1e-3)
    assert scaled.scale == pytest.approx(10 * fit.scale, rel=1e-3)
    assert scaled.lengthscale == pytest.approx(fit.lengthscale, rel=1e-3)


def test_held_out_rewards_are_likelier_than_with_defaults():
    truth = Scaled(RBF(0.6), 0.25)
    log = drawn(truth, 0.1, seed=5, agents=3, count=80)
    early = log.before(41)
    fit = fit_kernel(early)

    def predictive(kernel, ridge, centre):
        return evidence(log, kernel, ridge, centre) - evidence(early, kernel, ridge, centre)

    found = predictive(fit.kernel, fit.ridge, fit.centre)
    assert found > predictive(RBF(), 1.0, 0.0) + 50
    assert found > predictive(truth, 0.01, 0.0) - 5


def test_a_policy_takes_the_fit_and_its_mean_is_the_fits(rng):
    log = drawn(Scaled(RBF(1.0), 4.0), 0.3, seed=2, agents=1, count=25, centre=5.0)
    fit = fit_kernel(log)
    policy = cb.KernelUCB(kernel=fit.kernel, ridge=fit.ridge, eta=fit.eta)
    agent = policy.agent(0, cb.Network.path(1))
    for x, y in zip(log.taken, log.rewards, strict=True):
        agent.observe(x, y - fit.centre)
    offered = rng.normal(size=(6, 2))
    decision = agent.decide(offered)
    mean = fit.predict(log.taken, log.rewards, offered)[decision.index]
    assert decision.mean + fit.centre == pytest.approx(mean)
    assert decision.width == pytest.approx(2.0)
    assert fit.predict(np.empty((0, 2)), np.empty(0), offered).tolist() == [fit.centre] * 6


def test_the_kernel_that_made_the_rewards_is_the_likeliest():
    log = drawn(Scaled(RBF(0.7), 1.0), 0.1, seed=1, agents=2, count=50)
    fits = compare_kernels(log)
    assert {fit.name for fit in fits} == {"linear", "rbf", "matern"}
    assert fits[0].name == "rbf"
    assert [fit.evidence for fit in fits] == sorted((fit.evidence for fit in fits), reverse=True)
    straight = drawn(Linear(0.5), 0.3, seed=1, agents=6, count=30)
    assert compare_kernels(straight, ["rbf", "linear"])[0].name == "linear"


def test_a_part_of_many_is_taken_at_even_distances():
    log = drawn(RBF(1.0), 0.3, seed=4, agents=5, count=40)
    fit = fit_kernel(log, most=20, agents=3)
    assert (fit.agents, fit.observations) == (3, 60)
    chosen = np.linspace(0, 39, 20).round().astype(int) + 1
    part = Log.of(
        [d for d in log.decisions if d.agent in (0, 2, 4) and d.round in chosen], agents=5
    )
    same = fit_kernel(part)
    assert (same.evidence, same.noise) == (fit.evidence, fit.noise)


def test_a_given_centre_is_kept():
    log = drawn(RBF(1.0), 0.3, seed=4, agents=2, count=30, centre=3.0)
    assert fit_kernel(log, centre=0.0).centre == 0.0
    assert fit_kernel(log, centre=0.0).evidence < fit_kernel(log).evidence


def warned(decisions, says, **settings):
    fit = fit_kernel(Log.of(decisions), **settings)
    assert any(says in warning for warning in fit.warnings), fit.warnings


def test_what_a_log_cannot_tell_is_said(rng):
    X = rng.normal(size=(60, 2))
    still = np.column_stack([X[:, 0], np.ones(60)])

    def decisions(X, y):
        return [Logged(t + 1, 0, X[t : t + 1], 0, float(y[t])) for t in range(60)]

    warned(decisions(still, np.sin(2 * still[:, 0])), "dimension 1 never varies", ard=True)
    warned(
        decisions(X, np.sin(2 * X[:, 0]) + 0.1 * rng.normal(size=60)),
        "rewards do not show that they depend on dimension 1",
        ard=True,
    )
    warned(decisions(X, np.sin(X[:, 0])), "show no noise at all")
    warned(decisions(X, X[:, 0]), "no noise beside a linear function", kernel="linear")
    warned(decisions(X, rng.normal(size=60)), "hardly likelier under this kernel than as noise")


def test_wide_errors_and_flat_evidence_are_put_into_words():
    errors = {"lengthscale": (0.2, 1.5), "noise": 2.0, "scale": float("nan")}
    first, second = not_identified(errors, loose=False)
    assert "lengthscale of dimension 1 is hardly identified" in first
    assert "a factor of 7.39 either way" in second
    assert "flat along some direction" in not_identified(errors, loose=True)[0]


def test_what_tells_nothing_is_refused(rng):
    def log(X, y, agents=1):
        return Log.of(
            [Logged(t + 1, t % agents, X[t : t + 1], 0, float(y[t])) for t in range(len(y))]
        )

    X, y = rng.normal(size=(20, 2)), rng.normal(size=20)
    with pytest.raises(InputError, match=r"all 20 rewards are 0\.5"):
        fit_kernel(log(X, np.full(20, 0.5)))
    with pytest.raises(InputError, match="taken contexts are all equal"):
        fit_kernel(log(np.ones((20, 2)), y))
    with pytest.raises(InputError, match=r"has 9 rewards .* at least 10"):
        fit_kernel(log(X[:9], y[:9]))
    with pytest.raises(InputError, match="has 0 rewards of agents with at least two decisions"):
        fit_kernel(log(X, y, agents=20))
    for settings, says in [
        ({"kernel": "cubic"}, "kernel='cubic' is not known"),
        ({"kernel": np.array(["rbf", "linear"])}, "kernel=array.* is not known"),
        ({"nu": np.array([0.5, 1.5])}, "nu must be a number"),
        ({"nu": 2.0}, "nu must be 0.5, 1.5 or 2.5"),
        ({"ard": 1}, "ard must be True or False"),
        ({"most": 1}, "most must be a whole number >= 2"),
    ]:
        with pytest.raises(ParameterError, match=says):
            fit_kernel(log(X, y), **settings)
    with pytest.raises(ParameterError, match="kernels must name some of"):
        compare_kernels(log(X, y), "rbf")
    with pytest.raises(ParameterError, match="expected a log"):
        fit_kernel(X)
