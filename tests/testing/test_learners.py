"""Learners that are none are found, each by what it breaks."""

import numpy as np
import pytest

import coopbandits as cb
from coopbandits.errors import InputError
from coopbandits.similarity import Loadings, Views
from coopbandits.testing import check_learner, view_of
from learnt_views import Unlearnt

MISSING = "is no learner; expected a value with attached"


class Own(Unlearnt):
    """All whom one has heard are alike to 0.8, sound but for what a test breaks."""

    def estimate(self, views):
        U = np.sqrt(0.8) * views.heard[..., None].astype(float)
        return Loadings(U, 1.0 - U[..., 0] ** 2)


class ByMeans(Own):
    """Alike as far as mean rewards are: looks at numbers, not only at who was heard."""

    def summaries(self, X, attached, y):
        return np.column_stack([np.ones(len(X)), y])

    def estimate(self, views):
        n, total = views.summaries[..., 0], views.summaries[..., 1]
        means = np.where(views.heard, total / np.maximum(n, 1), 0.0)
        K_z = np.exp(-np.abs(means[:, :, None] - means[:, None, :]))
        both = views.heard[:, :, None] & views.heard[:, None, :]
        return Loadings.of(np.where(both | np.eye(K_z.shape[1], dtype=bool), K_z, 0.0))


class Miscounting(Own):
    def summaries(self, X, attached, y):
        return np.full((len(X), 1), 2.0)


class Centring(ByMeans):
    def summaries(self, X, attached, y):
        return super().summaries(X, attached, y - y.mean())


class Listing(Own):
    def summaries(self, X, attached, y):
        return np.ones(len(X))


class Promising(Own):
    def attached(self, dim):
        return 2


class Shrinking(Own):
    def attached(self, dim):
        return -1


class Overwriting(ByMeans):
    def summaries(self, X, attached, y):
        y *= 2.0
        return super().summaries(X, attached, y)


class TooAlike(Own):
    def estimate(self, views):
        found = super().estimate(views)
        return Loadings(found.U, found.delta + 0.5)


class NegativeOwn(Own):
    def estimate(self, views):
        found = super().estimate(views)
        return Loadings(1.5 * found.U, 1.0 - (1.5 * found.U[..., 0]) ** 2)


class Undefined(Own):
    def estimate(self, views):
        found = super().estimate(views)
        return Loadings(found.U * np.nan, found.delta)


class Gossip(Own):
    """Takes those whom it has not heard of to be alike too."""

    def estimate(self, views):
        U = np.full((*views.heard.shape, 1), np.sqrt(0.8))
        return Loadings(U, 1.0 - U[..., 0] ** 2)


class Unsure(Own):
    """Two hypotheses, with probabilities that add up to 0.9."""

    def estimate(self, views):
        found = super().estimate(views)
        B = len(views.heard)
        twice = np.repeat(np.arange(B), 2)
        return Loadings(found.U[twice], found.delta[twice], twice, np.tile([0.5, 0.4], B))


class Sure(Unsure):
    def estimate(self, views):
        found = super().estimate(views)
        weight = np.tile([0.5, 0.5], len(views.heard))
        return Loadings(found.U, found.delta, found.view, weight)


class Silent(Own):
    """Has a hypothesis of the first view alone."""

    def estimate(self, views):
        found = super().estimate(views)
        return Loadings(found.U[:1], found.delta[:1], np.array([0]), np.ones(1))


class Bare(Own):
    def estimate(self, views):
        return np.eye(views.heard.shape[1])[None]


class Drawing(Own):
    rng = np.random.default_rng(0)

    def estimate(self, views):
        U = self.rng.random() * views.heard[..., None]
        return Loadings(U, 1.0 - U[..., 0] ** 2)


class Crowded(Own):
    """Divides by the number of columns, padding included."""

    def estimate(self, views):
        U = views.heard[..., None] / np.sqrt(views.heard.shape[1])
        return Loadings(U, 1.0 - U[..., 0] ** 2)


class Comparing(Own):
    """Divides by the number of views that it is asked for at once."""

    def estimate(self, views):
        U = views.heard[..., None] / np.sqrt(1.0 + len(views.heard))
        return Loadings(U, 1.0 - U[..., 0] ** 2)


class Positional(Own):
    """Trusts those in the first columns more."""

    def estimate(self, views):
        U = views.heard[..., None] / np.sqrt(2.0 + np.arange(views.heard.shape[1]))[:, None]
        return Loadings(U, 1.0 - U[..., 0] ** 2)


class Counting(Own):
    """Sums contexts by their place in the order of a state of its own."""

    def __init__(self):
        object.__setattr__(self, "calls", [0])

    def summaries(self, X, attached, y):
        self.calls[0] += 1  # type: ignore[attr-defined]
        return np.column_stack([np.ones(len(X)), np.full(len(X), float(self.calls[0]))])  # type: ignore[attr-defined]


class Hairsplitting(ByMeans):
    """Turns on the last digits of a sum, which depend on the order of its terms."""

    def estimate(self, views):
        total = views.summaries[..., 1:]
        U = 0.9 * np.sin(1e17 * total) * views.heard[..., None]
        return Loadings(U, 1.0 - U[..., 0] ** 2)


class Recent(ByMeans):
    """Weighs an observation by its place among those that it is given."""

    def summaries(self, X, attached, y):
        return super().summaries(X, attached, y * np.arange(1, len(y) + 1))


@pytest.mark.parametrize("learner", [Own(), ByMeans(), Sure()], ids=lambda v: type(v).__name__)
def test_a_sound_learner_passes(learner):
    check_learner(learner)
    check_learner(learner, seed=4)


@pytest.mark.parametrize(
    ("learner", "message"),
    [
        (Miscounting(), r"must begin with 1, which counts the observation"),
        (Centring(), r"summaries of .* must not depend on the other observations"),
        (Recent(), r"summaries of .* must not depend on the other observations"),
        (Listing(), r"must have shape \(n, p\), got \(6,\)"),
        (Promising(), r"sampled of .* must have shape \(1, 2\), got \(1, 0\)"),
        (Shrinking(), r"attached of .* must be a whole number >= 0, got -1"),
        (Overwriting(), r"summaries of .* changes an array that it is given"),
        (Counting(), r"summaries of .* answers differently"),
        (TooAlike(), r"K_z of the asking agent with itself must be 1 by .*: 1.5 and 1"),
        (NegativeOwn(), r"δ must be >= 0 by .*, where each has one observation"),
        (Undefined(), r"U of an estimate by .* must be finite"),
        (Gossip(), r"who was not heard of is on its own by .*, where nobody else was heard"),
        (Unsure(), r"probabilities must be above 0 and add up to 1, got .*0.5, 0.4"),
        (Silent(), r"view of an estimate by .* must name each of 2 views"),
        (Bare(), r"must return similarity.Loadings, got array"),
        (Drawing(), r"estimates another K_z when it is asked again"),
        (Hairsplitting(), r"K_z must not depend on the order of observations by"),
        (Crowded(), r"padding must not change K_z by"),
        (Comparing(), r"must not depend on those beside it by"),
        (Positional(), r"must not depend on the order of agents by .*any_order=False"),
        (cb.similarity.Same(), MISSING),
        (Own, MISSING),
    ],
    ids=lambda value: type(value).__name__ if not isinstance(value, str) else "",
)
def test_a_broken_learner_is_found(learner, message):
    with pytest.raises(AssertionError, match=message):
        check_learner(learner)


def test_a_sampler_may_depend_on_the_order_of_agents():
    check_learner(Positional(), any_order=False)


def test_a_view_is_the_sum_of_what_was_heard(rng):
    learner = ByMeans()
    samples = [(rng.normal(size=(3, 2)), np.array([1.0, 2.0, 3.0])), None]
    view = view_of(learner, samples, me=1)
    assert isinstance(view, Views)
    np.testing.assert_array_equal(view.summaries, [[[3.0, 6.0], [0.0, 0.0]]])
    np.testing.assert_array_equal(view.heard, [[True, False]])
    assert view.me == [1]


def test_bad_settings_of_a_check_are_no_failed_check():
    with pytest.raises(InputError, match="agents must be a whole number >= 7"):
        check_learner(Own(), agents=3)
    with pytest.raises(InputError, match="any_order must be True or False"):
        check_learner(Own(), any_order=1)
