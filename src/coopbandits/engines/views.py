r"""Each agent's own view, from sufficient statistics, for any K_z = UUᵀ + diag(δ).

Agents that are no strangers to the asking one are few once groups are settled: each view is cut
down to them and to the parts they share, and views of like size are worked on together
(`similarity/hypotheses.py`, `gp/weights.py`).
"""

from dataclasses import dataclass

import numpy as np

from coopbandits.act import draws
from coopbandits.arrays import Array, BoolArray, IntArray
from coopbandits.engines.by_lags import Record, last_rounds, rolling
from coopbandits.errors import ParameterError
from coopbandits.gp.intercept import OwnConstant
from coopbandits.gp.mixture import Mixture
from coopbandits.gp.posterior import Belief
from coopbandits.gp.statistics import log_product, unpacked
from coopbandits.gp.weights import OwnPart, Weights
from coopbandits.policy import Plan, Policy
from coopbandits.problems.problem import Round
from coopbandits.similarity import Views
from coopbandits.similarity.hypotheses import Batch, Hypotheses, batches

# So many cells views of about one width may have together, padding included.
_CELLS = 100_000
# Beliefs are worked on in batches of about this many numbers.
BATCH = 300_000
# A view of more than this share of all agents is as wide as all of them.
_WIDE = 0.3
# With more features than this, one matrix for each agent takes longer than one for each view.
_NARROW = 24


@dataclass(eq=False)
class LikeViews:
    """The views of agents that hear about as many others.

    Attributes:
        who: (B,) whose.
        hypotheses: What K_z may be, in these views.
        lags: (B, N) after how many rounds each hears whom; inf pads a row.
    """

    who: IntArray
    hypotheses: Hypotheses
    lags: Array

    def lags_of(self, batch: Batch) -> Array:
        """Return the lags of some hypotheses' agents, inf where padded: (b, n)."""
        lags = np.take_along_axis(self.lags[batch.whose], batch.columns, axis=1)
        return np.where(batch.real, lags, np.inf)


class AllViews:
    """What K_z may be in the views of all agents, and after how many rounds each hears whom.

    Attributes:
        parts: Views of about one width together, so that few cells only pad.
        refreshes: How many estimates there have been.
    """

    def __init__(self, plan: Plan, *, most: int | None = None) -> None:
        """Start with the K_z that is given, of `most` parts, or with none that is estimated."""
        self._plan = plan
        self.parts = [
            LikeViews(
                who, Hypotheses.of(plan.lags, who, plan.K_z, most=most), plan.lags.views(who)[1]
            )
            for who in alike_in_width(plan.lags.sources.counts)
        ]
        self.refreshes = 0

    def refresh(self, t: int, record: Record) -> IntArray:
        """Estimate K_z again for the agents for whom it is due, and return them."""
        estimator = self._plan.estimator
        changed = [np.empty(0, dtype=np.int64)]
        if estimator is None:
            return changed[0]
        for part in self.parts:
            old, lags = part.hypotheses, part.lags
            part.hypotheses, due = old.refreshed(
                estimator,
                np.maximum(t - lags, 0.0).sum(axis=1).astype(np.int64),
                lambda some, old=old, lags=lags: record.views(  # type: ignore[misc]
                    t, old.agents[some], lags[some], old.me[some]
                ),
            )
            changed.append(part.who[due])
        due = np.concatenate(changed)
        self.refreshes += len(due)
        return due

    def of(self, agent: int, t: int, record: Record) -> Views:
        """Return what one agent had heard by the decisions of round t, and its chains' labels."""
        for part in self.parts:
            some = np.flatnonzero(part.who == agent)
            if some.size:
                hypotheses, lags = part.hypotheses, part.lags[some]
                views = record.views(t, hypotheses.agents[some], lags, hypotheses.me[some])
                return hypotheses.given(views, hypotheses.fitted_at[some], some)
        raise ParameterError(f"there is no agent {agent}")

    def similarity(self) -> Array:
        """Return what agents take others' news to be worth, for each pair that listens: (n,)."""
        if self._plan.estimator is None:
            return self._plan.similarity
        pairs = self._plan.lags.sources
        worth = np.empty(len(pairs.agents))
        for part in self.parts:
            heard = part.hypotheses.heard
            at = pairs.starts[part.who][:, None] + np.arange(heard.shape[1])
            worth[at[heard]] = part.hypotheses.expected[heard]
        return worth


def alike_in_width(widths: IntArray) -> list[IntArray]:
    """Put agents together of whose views, side by side, few cells only pad; all, if they fit."""
    order = np.argsort(-widths, kind="stable")
    parts, start = [], 0
    while start < len(order):
        count = max(1, _CELLS // max(1, int(widths[order[start]])))
        parts.append(np.sort(order[start : start + count]))
        start += count
    return parts


def with_own_constants(belief: Belief, own: OwnConstant | None, offer: Round) -> Belief:
    """Put agents' own constants back to beliefs at all rows of an offer."""
    if own is None:
        return belief
    agents = offer.agents
    return belief.with_constant(own.mean[agents], own.variance[agents], agents)


class OwnStatistics:
    """Every agent's posterior from the statistics of those it has heard from."""

    def __init__(self, policy: Policy, plan: Plan, m: int) -> None:
        self._policy = policy
        self._sums = rolling(policy, plan, m)
        self._views = AllViews(plan)
        self._V, self._batches = len(plan.lags), list[tuple[Batch, Array]]()  # with their lags
        self._round = 0

    @property
    def refreshes(self) -> int:
        """A number that grows whenever some agent's K_z is estimated again."""
        return self._views.refreshes

    @property
    def views(self) -> AllViews:
        """What K_z may be in all views."""
        return self._views

    def learn(self, t: int, record: Record) -> None:
        """Learn what has arrived by the decisions of round t."""
        changed = self._views.refresh(t, record)
        self._sums.add(t - 1, record.features, record.rewards[t - 2])
        self._round = t
        if changed.size or not self._batches:
            self._batches = self._cut_down()

    def predict(self, offer: Round, asked: Array, judging: BoolArray) -> Belief:
        """Return beliefs at all rows of a round's offer whose agents judge: (M, m), (V,)."""
        joint, ridge = draws(self._policy.act), self._policy.ridge
        own = self._sums.constants
        if own is not None:
            asked = asked - own.shift[offer.agents]
        mixture = Mixture(len(offer.agents), int(offer.sizes.max()) if joint else 0)
        for batch, lags in self._batches:
            if not judging[batch.viewers].any():
                continue
            rows, real = offer.padded(batch.viewers)
            weights, count = self._pooled(batch, lags)
            mean, Z, logdet = weights.ask(asked[rows])
            view, column = np.nonzero(real)
            covariance = None
            if joint:
                covariance = ridge * (Z @ np.swapaxes(Z, 1, 2))[view, column] * real[view]
            belief = Belief(
                mean[view, column],
                ridge * np.einsum("bkd,bkd->bk", Z, Z)[view, column],
                logdet[view],
                count[view],
                covariance,
            )
            weight = batch.weight[view]
            mixture.add(belief, rows[view, column], view=view, column=column, weight=weight)
        return with_own_constants(mixture.belief(), own, offer)

    def similarity(self) -> Array:
        """Return what agents take others' news to be worth, for each pair that listens: (n,)."""
        return self._views.similarity()

    def _pooled(self, batch: Batch, lags: Array) -> tuple[Weights, IntArray]:
        """Pool all that has arrived, and count it."""
        if batch.wide:
            return self._pooled_wide(batch, lags)
        after = last_rounds(self._round, lags)
        statistics = self._sums.statistics(after, batch.agents, spectrum=bool(batch.delta.any()))
        ridge = self._policy.ridge
        weights = Weights.pooled(batch.U, batch.delta, batch.me, statistics, ridge, batch.scale)
        return weights, statistics.n.sum(axis=1).astype(np.int64)

    def _pooled_wide(self, batch: Batch, every: Array) -> tuple[Weights, IntArray]:
        """Pool what has arrived where nearly everyone counts: columns are all V agents in order.

        What an agent has sent is then the same for all who have it, and
        S̃ = Σ_k s_k/(1 + cs_k) q_kq_kᵀ is a product of one small matrix for each agent with the
        views' numbers.
        """
        ridge, m, B, t = self._policy.ridge, self._sums.m, len(batch.whose), self._round
        pairs = batch.pairs
        rows = np.arange(B)
        share = batch.delta / ridge
        share[rows, batch.me] = 0.0
        lags = np.unique(every[np.isfinite(every)]).astype(np.int64)
        blocks = np.zeros((B, pairs.shape[1], m * (m + 1) // 2))
        c, logdet, count = np.zeros((B, batch.U.shape[2], m)), np.zeros(B), np.zeros(B)
        for lag in lags:
            if t - lag < 1:
                continue
            here = every == lag
            sums = self._sums.read(self._sums.rows(t - lag))
            weight, loading = pairs, batch.U * batch.scale[..., None]
            if len(lags) > 1:
                weight, loading = weight * here[:, None, :], loading * here[..., None]
            count += here @ sums.n
            logdet += here @ np.broadcast_to(sums.logdet, sums.n.shape)
            if not share.any():
                blocks += weight @ sums.packed
                c += np.swapaxes(loading, 1, 2) @ sums.b
                continue
            s, Q, projected, outer = self._sums.spread(t - lag)
            grown = 1.0 + share[..., None] * s
            S = np.swapaxes(np.swapaxes(s / grown, 0, 1) @ outer, 0, 1)
            b = np.swapaxes(np.swapaxes(projected / grown, 0, 1) @ np.swapaxes(Q, 1, 2), 0, 1)
            blocks += weight @ S
            c += np.swapaxes(loading, 1, 2) @ b
            logdet += (log_product(grown) * here).sum(axis=1)
        mine = self._sums.read(self._sums.rows(t - 1)[batch.viewers])
        own = OwnPart(batch.U[rows, batch.me], batch.delta[rows, batch.me], mine.S, mine.b)
        return Weights.of(*unpacked(blocks, c), own, logdet, ridge), count.astype(np.int64)

    def _cut_down(self) -> list[tuple[Batch, Array]]:
        V, m = self._V, self._sums.m
        widest = _WIDE * V if m <= _NARROW else np.inf

        def fits(views: int, fewest: int, most: int, r: int) -> bool:
            numbers = views * (most * (m + 1) ** 2 + ((r + 1) * m + 9) ** 2)
            return bool((widest < fewest) == (widest < most) and numbers <= BATCH)

        cut = []
        for part in self._views.parts:
            for batch in batches(part.hypotheses, fits):
                is_wide = widest < batch.agents.shape[1]
                whole = batch.widened(V) if is_wide else batch
                cut.append((whole, part.lags_of(whole)))
        return cut
