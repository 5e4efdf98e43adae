"""What must every learner of K_z do?"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from coopbandits.arrays import Array, as_count, as_flag, as_positive, as_seed, short
from coopbandits.similarity import Learner, Loadings, Views
from coopbandits.testing.assertions import (
    numbers,
    require,
    require_positive_semidefinite,
    require_same,
    untouched,
)

# What was heard of one agent, contexts (n, d) and rewards (n,); None where nothing was.
Sample = tuple[Array, Array] | None

_HEARD, _DIM = 5, 4


def check_learner(
    learner: Any,
    *,
    agents: int = 7,
    any_order: bool = True,
    rtol: float = 1e-9,
    seed: int = 0,
) -> None:
    """Check that a value learns K_z: summaries that add up, and correlation matrices.

    `sampled` and `summaries` must have as many numbers as `attached` says, a summary's first number
    must be 1, and that of an observation must not depend on the others. `estimate` must return
    K_z = UUᵀ + diag(δ), finite, δ ≥ 0, 1 of the asking agent with itself, whatever was heard, also
    of nobody, of constant contexts or of huge rewards; who was not heard of is on its own.
    Probabilities must be above 0 and add up to 1 in each view. Neither the order in which
    observations came nor columns that are padding nor the views that are estimated beside it may
    change anything.

    Args:
        learner: What a learnt similarity makes, for a network of so many agents.
        agents: V, at least 7.
        any_order: Whether K_z must not depend on the order of agents in a view either, as it may
            where it is sampled.
        rtol: How far rounding may go.
        seed: Of what is drawn.

    Raises:
        AssertionError: It is none; the message says where.

    Example:
        >>> model = cb.similarity.Coregionalised()
        >>> check_learner(model.learner(cb.kernels.Linear(), cb.Network.complete(7)))
    """
    what, tolerance = short(learner), as_positive(rtol, "rtol")
    as_count(agents, "agents", least=_HEARD + 2)
    require(
        isinstance(learner, Learner) and not isinstance(learner, type),
        f"{what} is no learner; expected a value with attached, sampled, summaries and estimate",
    )
    rng = np.random.default_rng(as_seed(seed))
    _check_summaries(learner, rng, what, tolerance)
    for case, samples in unusual_samples(rng).items():
        estimate = _estimate(learner, view_of(learner, samples), what)
        _check_estimate(estimate, samples, f"{what}, where {case}", tolerance)
    samples = _two_tasks(rng)
    _check_order_of_news(learner, samples, rng, what, tolerance)
    _check_surroundings(learner, samples, what, tolerance)
    if as_flag(any_order, "any_order"):
        _check_order_of_agents(learner, samples, what, tolerance)


def view_of(
    learner: Any,
    samples: Sequence[Sample],
    *,
    me: int = 0,
    offered: Sequence[Sequence[Array]] | None = None,
) -> Views:
    """Make the view of one agent who has heard samples (X_u, y_u), one for each agent.

    Args:
        learner: Summarises them.
        samples: Of agents 0, 1, …: contexts (n, d) and rewards (n,); None for one not heard from.
        me: Whose view it is.
        offered: For each agent the n decision sets (K, d), the chosen context first; the chosen
            contexts alone, if not given.

    Example:
        >>> rng = np.random.default_rng(0)
        >>> X, model = rng.standard_normal((3, 20, 2)), cb.similarity.Coregionalised()
        >>> learner = model.learner(cb.kernels.Linear(), cb.Network.complete(3))
        >>> rewards = X[0, :, 0], X[1, :, 0], X[2, :, 1]  # the first two have one task
        >>> K_z = learner.estimate(view_of(learner, list(zip(X, rewards)))).expected[0]
        >>> bool(K_z[0, 1] > K_z[0, 2])
        True
    """
    rows: list[Array | None] = []
    for u, sample in enumerate(samples):
        if sample is None or len(sample[1]) == 0:
            rows.append(None)
            continue
        X, y = sample
        sets = [x[None] for x in X] if offered is None else offered[u]
        attached = np.vstack(
            [learner.sampled(np.zeros(len(D), dtype=np.int64), D, np.array([0])) for D in sets]
        )
        rows.append(np.asarray(learner.summaries(X, attached, y)).sum(axis=0))
    size = next(len(row) for row in rows if row is not None)
    sums = np.array([np.zeros(size) if row is None else row for row in rows])
    return Views.apart(np.arange(len(samples))[None], np.array([me]), sums[None])


def unusual_samples(rng: np.random.Generator) -> dict[str, list[Sample]]:
    """Return what five agents may have seen that leaves something undefined to the careless."""

    def normal(*shape: int) -> Array:
        return rng.standard_normal(shape)

    zeros, X, d = np.zeros((3, _DIM)), normal(3, _DIM), _DIM
    same = (X, X[:, 0])
    return {
        "each has one observation": [(normal(1, d), normal(1)) for _ in range(5)],
        "contexts are constant": [(np.ones((n, d)), normal(n)) for n in (1, 2, 3, 4, 5)],
        "contexts are 0": [(zeros, normal(3)) for _ in range(5)],
        "rewards are equal": [(normal(3, d), np.full(3, 2.5)) for _ in range(5)],
        "rewards are 0": [(normal(3, d), np.zeros(3)) for _ in range(5)],
        "everything is 0": [(zeros, np.zeros(3)) for _ in range(5)],
        "all saw the same": [same] * 5,
        "nobody else was heard": [same, None, None, None, None],
        "the asking agent was silent": [None, *_two_tasks(rng, n=3)[:4]],
        "one other was heard": [None, same, None, None, None],
        "numbers are large and small": [
            (10.0**s * normal(3, d), 10.0**-s * normal(3)) for s in range(5)
        ],
        "rewards are huge": [(normal(3, d), 1e40 * normal(3)) for _ in range(5)],
        "there is no noise": [(x, x[:, 0]) for x in normal(5, 9, d)],
    }


def _two_tasks(rng: np.random.Generator, n: int = 6) -> list[Sample]:
    """Draw observations of five agents, who have one of two linear tasks."""
    theta = rng.standard_normal((2, _DIM))
    X = rng.standard_normal((_HEARD, n, _DIM))
    noise = 0.3 * rng.standard_normal((_HEARD, n))
    return [(X[u], X[u] @ theta[k] + noise[u]) for u, k in enumerate((0, 0, 1, 1, 0))]


def _check_summaries(learner: Any, rng: np.random.Generator, what: str, rtol: float) -> None:
    X, y = rng.standard_normal((6, _DIM)), rng.standard_normal(6)
    k = learner.attached(_DIM)
    require(
        isinstance(k, int | np.integer) and k >= 0,
        f"attached of {what} must be a whole number >= 0, got {short(k)}",
    )
    one = np.zeros(1, dtype=np.int64)
    attached = np.vstack(
        [
            numbers(
                untouched(learner.sampled, one, x[None], one, what=f"sampled of {what}"),
                (1, k),
                f"sampled of {what}",
            )
            for x in X
        ]
    )
    told = f"summaries of {what}"
    rows = untouched(learner.summaries, X, attached, y, what=told)
    require(np.ndim(rows) == 2, f"{told} must have shape (n, p), got {np.shape(rows)}")
    rows = numbers(rows, (6, np.shape(rows)[1]), told)
    require(
        rows.shape[1] >= 1 and (rows[:, 0] == 1.0).all(),
        f"{told} must begin with 1, which counts the observation; got {short(rows[:, :1].ravel())}",
    )
    alone = [learner.summaries(X[[i]], attached[[i]], y[[i]]) for i in range(6)]
    require_same(
        rows,
        np.concatenate(alone),
        f"{told} must not depend on the other observations",
        rtol=rtol,
        atol=rtol,
    )


def _estimate(learner: Any, views: Views, what: str) -> Loadings:
    """Estimate K_z twice, under the error state in which agents do."""
    with np.errstate(all="ignore"):
        one, two = learner.estimate(views), learner.estimate(views)
    require(
        isinstance(one, Loadings),
        f"estimate of {what} must return similarity.Loadings, got {short(one)}",
    )
    B, N = views.heard.shape
    H = len(one.U)
    numbers(one.U, (H, N, np.shape(one.U)[-1]), f"U of an estimate by {what}")
    numbers(one.delta, (H, N), f"δ of an estimate by {what}")
    numbers(one.weight, (H,), f"the weight of an estimate by {what}")
    scale = numbers(one.scale, (H, N), f"the scale of an estimate by {what}")
    require((scale > 0).all(), f"the scale of an estimate by {what} must be above 0")
    require(
        np.array_equal(np.unique(one.view), np.arange(B)) and (np.diff(one.view) >= 0).all(),
        f"view of an estimate by {what} must name each of {B} views, in order; got "
        f"{short(one.view)}",
    )
    same = all(
        np.array_equal(getattr(one, name), getattr(two, name))
        for name in ("U", "delta", "view", "weight", "scale", "state")
    )
    require(same, f"{what} estimates another K_z when it is asked again; expected one answer")
    return one


def _check_estimate(estimate: Loadings, samples: Sequence[Sample], what: str, rtol: float) -> None:
    """Check an estimate of one view: correlation matrices, with probabilities."""
    require((estimate.delta >= 0).all(), f"δ must be >= 0 by {what}")
    require(
        (estimate.weight > 0).all() and abs(estimate.weight.sum() - 1.0) <= 1e-9,
        f"probabilities must be above 0 and add up to 1, got {short(estimate.weight)} by {what}",
    )
    own = np.eye(len(samples))
    for K_z in estimate.unscaled().matrix:
        require_same(
            K_z[0, 0],
            np.array(1.0),
            f"K_z of the asking agent with itself must be 1 by {what}",
            atol=max(rtol, 1e-9),
        )
        require(
            (np.diagonal(K_z) >= 1.0 - max(rtol, 1e-9)).all(),
            f"K_z must be at least 1 on its diagonal by {what}, got {short(np.diagonal(K_z))}",
        )
        require_positive_semidefinite(K_z, f"K_z by {what},", rtol=max(rtol, 1e-9))
        for u, sample in enumerate(samples):
            if sample is None and u != 0:
                require_same(K_z[u], own[u], f"who was not heard of is on its own by {what}")


def _check_order_of_news(
    learner: Any, samples: list[Sample], rng: np.random.Generator, what: str, rtol: float
) -> None:
    shuffled: list[Sample] = []
    for sample in samples:
        order = rng.permutation(6)
        shuffled.append(None if sample is None else (sample[0][order], sample[1][order]))
    one, two = (_estimate(learner, view_of(learner, s), what).expected for s in (samples, shuffled))
    require_same(
        two,
        one,
        f"K_z must not depend on the order of observations by {what}",
        atol=max(rtol, 1e-9),
    )


def _check_surroundings(learner: Any, samples: list[Sample], what: str, rtol: float) -> None:
    """Pad a view, and estimate it beside another."""
    atol = max(rtol, 1e-9)
    plain, other = (view_of(learner, samples, me=me) for me in (0, 3))
    alone = _estimate(learner, plain, what).expected[0]
    padded = _estimate(learner, view_of(learner, [*samples, None, None]), what).expected[0]
    require_same(
        padded[:_HEARD, :_HEARD], alone, f"padding must not change K_z by {what}", atol=atol
    )
    both = Views.apart(
        np.vstack([plain.agents, other.agents]),
        np.concatenate([plain.me, other.me]),
        np.concatenate([plain.summaries, other.summaries]),
    )
    together = _estimate(learner, both, what).expected
    for found, view in zip(together, (plain, other), strict=True):
        require_same(
            found,
            _estimate(learner, view, what).expected[0],
            f"K_z of a view must not depend on those beside it by {what}",
            atol=atol,
        )


def _check_order_of_agents(learner: Any, samples: list[Sample], what: str, rtol: float) -> None:
    plain = view_of(learner, samples)
    order = np.array([2, 0, 4, 1, 3])
    moved = Views.apart(
        plain.agents[:, order], np.argsort(order)[plain.me], plain.summaries[:, order]
    )
    expected = _estimate(learner, plain, what).expected[0][np.ix_(order, order)]
    require_same(
        _estimate(learner, moved, what).expected[0],
        expected,
        f"K_z must not depend on the order of agents by {what}; a sampler may say any_order=False",
        atol=max(rtol, 1e-9),
    )
