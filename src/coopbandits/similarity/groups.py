r"""Who thinks alike? Groups of agents found in their statistics, and each agent's place in them.

The model, for the agents that one agent has heard from:

    θ_u = √ρ·(what its group shares) + √(1 − ρ)·(its own), or all its own;

groups share a weight vector of N(0, s²I), there is any number of them, and nobody says who is in
which. `statistics.Statistics.shared` integrates the own part out for a given ρ, so what is left is
a mixture of linear regressions. It is fitted by variational Bayes:

    q(group's weights) = N(μ_g, σ²P_g⁻¹),   P_g = κI + Σ_u r_ug S_u,   μ_g = P_g⁻¹ Σ_u r_ug b_u
    r_ug ∝ π_g exp(−(q_u − 2μ_gᵀb_u + tr S_u(μ_gμ_gᵀ + σ²P_g⁻¹)) / 2σ²)

1. `Groups.anneal` starts from more groups than needed, at a low weight of the evidence that rises
   to 1: the groups split where the data ask for it.
2. `Groups.merge` unites pairs of groups for as long as one group explains them better than two
   (exact evidence, and a Chinese restaurant process as prior over partitions).
3. Where it pays, `Groups.split` cuts groups that hide two, and `Groups.refine` lets agents find
   their places by the exact predictive density p(y_u | r_g without u), which a fit as above, with
   the agent's own data in the group, flatters.
4. `Groups.judge` asks for each agent whether its group, *without its own data*, predicts its data
   better than it does by itself. How common it is to be on one's own is learnt from all agents
   heard from: where everyone differs nobody is believed, however well two of them match by chance.

Where agents attach a sample of the contexts offered to them, groups may also have a context law
each (`laws.py`). Then a group is likelier for agents whose contexts look like it; whether that
helps is judged by how well the rewards are predicted, given the contexts.

Leading axes: B views; N agents; G groups; m features.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from coopbandits.arrays import Array, BoolArray, IntArray
from coopbandits.gp.statistics import Statistics, column_halves, half
from coopbandits.similarity.laws import Contexts

# Every ρ that is tried.
CORRELATIONS = (1.0, 0.95, 0.85, 0.6)
# Numbers of evidence closer than this are equal: rounding must not choose.
CLOSE = 1e-6
# What an empty group, and the two answers to "on its own?", are worth in agents beforehand.
_EMPTY = 0.1
_DOUBT = 1.0
_WARMING, _HOT, _POLISH = 10, 5, 2
_COLDEST = 0.1
_WHOLLY = 1e-10
# How often everyone finds its place again, and which odds of it are as good as none.
_REFINE, _SURE = 4, 0.02
# Groups of less than this many agents are empty.
_NOBODY = 0.5


@dataclass(frozen=True, eq=False)
class Groups:
    """A grouping of the agents in each view, under one ρ.

    Attributes:
        shared: Statistics of the agents about what their groups share: (B, N, …).
        base: (B, N) what the own parts add to each agent's log evidence.
        noise: (B,) σ².
        ratio: (B,) κ of what groups share.
        others: (B, N) the agents to group: those heard from, without the one that asks.
        contexts: What is known of their context laws, if anything.
        r: (B, N, G) how far each agent is in each group.
        share: (B, G) how common each group is; 0 for one that was merged away.
    """

    shared: Statistics
    base: Array
    noise: Array
    ratio: Array
    others: BoolArray
    contexts: Contexts | None
    r: Array
    share: Array

    def take(self, index: IntArray | slice) -> "Groups":
        """Take some views, in order."""
        if not isinstance(index, slice) and len(index) == len(self.noise):
            return self  # all of them
        return Groups(
            shared=self.shared.take(index),
            base=self.base[index],
            noise=self.noise[index],
            ratio=self.ratio[index],
            others=self.others[index],
            contexts=None if self.contexts is None else self.contexts.take(index),
            r=self.r[index],
            share=self.share[index],
        )

    def under(self, rho: float) -> "Groups":
        """Take the same groups of agents that have a part of their own: from ρ = 1 to another."""
        if rho == 1:
            return self
        shared, logdet = self.shared.shared(
            np.broadcast_to(((1 - rho) / self.ratio)[:, None], self.base.shape)
        )
        return replace(self, shared=shared, base=self.base - 0.5 * logdet, ratio=self.ratio / rho)

    def anneal(self) -> "Groups":
        """Let the groups split as the evidence's weight rises from a tenth to 1."""
        warming = np.geomspace(_COLDEST, 1.0, _WARMING)
        return self._swept([*warming, *[1.0] * _HOT])

    def polish(self) -> "Groups":
        """Let everyone find its place again."""
        return self._swept([1.0] * _POLISH)

    def merge(self) -> "Groups":
        """Unite pairs of groups, the best first, while one explains the data better than two."""
        B, _, G = self.r.shape
        weight = np.swapaxes(self.r, 1, 2)
        sums = self._sums(weight)
        alone = self._evidence(sums, np.arange(B))
        gain = np.full((B, G, G), -np.inf)
        first, second = np.triu_indices(G, 1)
        both = self._evidence([part[:, first] + part[:, second] for part in sums], np.arange(B))
        gain[:, first, second] = both - alone[:, first] - alone[:, second]
        r, alive = self.r.copy(), np.ones((B, G), dtype=np.bool_)
        for _ in range(G - 1):
            best = gain.reshape(B, -1).argmax(axis=1)
            into, gone = best // G, best % G
            views = np.flatnonzero(gain[np.arange(B), into, gone] > CLOSE)
            if not views.size:
                break
            into, gone = into[views], gone[views]
            for part in (*sums, np.swapaxes(r, 1, 2)):
                part[views, into] += part[views, gone]
                part[views, gone] = 0.0
            alive[views, gone] = False
            gain[views, gone, :] = gain[views, :, gone] = -np.inf
            alone[views, into] = self._evidence([part[views, into] for part in sums], views)
            united = [part[views] + part[views, into][:, None] for part in sums]
            worth = self._evidence(united, views) - alone[views, into][:, None] - alone[views]
            other = np.arange(G)[None, :]
            worth[~alive[views] | (other == into[:, None])] = -np.inf
            at = np.minimum(into[:, None], other), np.maximum(into[:, None], other)
            gain[views[:, None], *at] = worth
        return replace(self, r=r, share=_shares(r, alive))

    @property
    def sizes(self) -> Array:
        """How many agents each group has: (B, G)."""
        return np.asarray(self.r.sum(axis=1))

    def split(self) -> "Groups":
        """Cut groups in two across the direction in which their agents differ most.

        Where two explain the data better than one, the best first, as long as there is room.
        """
        B, N, G = self.r.shape
        m = self.shared.b.shape[-1]
        i, _, cell = half(m)
        views, every = np.arange(B), np.arange(B)[:, None]
        weight = np.swapaxes(self.r, 1, 2)
        pooled = weight @ self.shared.compact
        P = pooled[..., cell] + self.ratio[:, None, None, None] * np.eye(m)
        mean = np.linalg.solve(P, pooled[..., len(i) : len(i) + m, None])
        best = self.r.argmax(axis=2)
        # what each agent's data say against the mean of its group
        against = self.shared.b - (self.shared.S @ mean[every, best])[..., 0]
        against *= self.others[..., None]
        inside = np.swapaxes(np.arange(G) == best[..., None], 1, 2)
        spread = (against[..., :, None] * against[..., None, :]).reshape(B, N, m * m)
        across = np.linalg.eigh((inside @ spread).reshape(B, G, m, m))[1][..., -1]
        side = (against * across[every, best]).sum(axis=2) > 0
        cut = weight * (inside & side[:, None, :])
        whole, part = self._sums(weight), self._sums(cut)
        rest = [all_ - some for all_, some in zip(whole, part, strict=True)]
        gain = self._evidence(part, views) + self._evidence(rest, views)
        gain -= self._evidence(whole, views)
        gain[np.minimum(part[1], rest[1]) < _NOBODY] = -np.inf
        taken = self.sizes >= _NOBODY
        order, room = (np.argsort(key, axis=1, kind="stable") for key in (-gain, taken))
        r, alive = self.r.copy(), self.share > 0
        for source, target in zip(order.T, room.T, strict=True):
            some = np.flatnonzero((gain[views, source] > CLOSE) & ~taken[views, target])
            if not some.size:
                break
            r[some, :, source[some]] -= cut[some, source[some]]
            r[some, :, target[some]] += cut[some, source[some]]
            alive[some, target[some]] = True
        return replace(self, r=r, share=_shares(r, alive))

    def refine(self) -> "Groups":
        """Let everyone find its place by how well each group, without it, predicts its data.

        Half of the agents at a time: two that would change places do not chase each other.
        """
        B, N, G = self.r.shape
        rows, alive, r = self.shared.compact, self.share > 0, self.r
        for turn in range(2 * _REFINE):
            r = np.where(r < np.minimum(_SURE, r.max(axis=2, keepdims=True)), 0.0, r)
            r /= np.maximum(r.sum(axis=2, keepdims=True), _SURE)
            pooled = np.swapaxes(r, 1, 2) @ rows
            view, agent = np.nonzero(self.others & (np.arange(N) % 2 == turn % 2))
            which, group = np.nonzero(alive[view])
            v, u = view[which], agent[which]
            part = r[v, u, group]
            # who is wholly in a group makes it whole, and who is not in it does not change it
            joined = self._log_normaliser(pooled, np.arange(B))[v, group]
            left = joined.copy()
            some = np.flatnonzero(part < 1)
            more = (1.0 - part[some])[:, None] * rows[v[some], u[some]]
            joined[some] = self._log_normaliser(pooled[v[some], group[some]] + more, v[some])
            some = np.flatnonzero(part > 0)
            rest = pooled[v[some], group[some]] - part[some][:, None] * rows[v[some], u[some]]
            left[some] = self._log_normaliser(rest, v[some])
            size = np.maximum(r.sum(axis=1)[v, group] - part, 0.0) + _EMPTY
            logits = np.full((len(view), G), -np.inf)
            logits[which, group] = joined - left + np.log(size)
            if self.contexts is not None:
                logits += self.contexts.loglik(r)[view, agent]
            r[view, agent] = _softmax(logits)
        return replace(self, r=r, share=_shares(r, alive))

    def evidence(self) -> Array:
        """Return the log evidence of the rewards, with everyone in these groups: (B,)."""
        pooled = np.swapaxes(self.r, 1, 2) @ self.shared.compact
        groups = self._log_normaliser(pooled, np.arange(len(pooled))).sum(axis=1)
        own = self.base - 0.5 * self.shared.q / self.noise[:, None]
        return np.asarray(groups + (own * self.others).sum(axis=1))

    def judge(self, alone: Array, me: IntArray) -> tuple[Array, Array, Array]:
        """Weigh every agent's group against being on its own, without its own data in it.

        Args:
            alone: (B, N) each agent's log evidence by itself.
            me: (B,) the column of the agent that asks.

        Returns:
            The places (B, N, G), the asking agent's own among them; how well the grouping predicts
            (B,); and how common it is to be on one's own (B,).
        """
        B, _, G = self.r.shape
        rows = np.arange(B)
        prior = self._prior()
        best = self.r.argmax(axis=2)
        in_group = self._left_out(best) + np.take_along_axis(prior, best[..., None], 2)[..., 0]
        loner = np.full(B, 0.5)
        count = self.others.sum(axis=1)
        favour = np.exp(np.clip(in_group - alone, -700.0, 700.0))
        for _ in range(20):
            doubt = 1.0 / (1.0 + favour * ((1.0 - loner) / loner)[:, None])
            loner = ((doubt * self.others).sum(axis=1) + _DOUBT) / (count + 2 * _DOUBT)
        log_loner, log_joiner = np.log(loner)[:, None], np.log1p(-loner)[:, None]
        predicted = np.logaddexp(alone + log_loner, in_group + log_joiner)
        doubt = _odds(alone + log_loner, in_group + log_joiner)
        # who has no company in its group is on its own there, and can still be joined
        size = np.take_along_axis(self.r.sum(axis=1), best, axis=1)
        company = np.clip(size - self.r.max(axis=2), 0.0, 1.0)
        places = self.r * (1.0 - doubt * company * self.others)[..., None]
        judged = replace(self, r=places)
        mine = judged._joining(me) + prior[rows, me] + log_joiner
        options = np.hstack([mine, alone[rows, me][:, None] + log_loner])
        places[rows, me] = _softmax(options)[:, :G]
        return places, (predicted * self.others).sum(axis=1), loner

    def _swept(self, weights: list[float]) -> "Groups":
        """Update places and groups in turn, with the evidence weighed as given."""
        m = self.shared.b.shape[-1]
        i, j, cell = half(m)
        h = len(i)
        twice = np.where(i == j, 1.0, 2.0)  # each cell off the diagonal stands for two
        heard = self.shared.compact[..., :-1]  # (B, N, h + m)
        heard_t = np.swapaxes(heard, 1, 2)
        noise, others = self.noise[:, None, None], self.others[:, None, :]
        ratio = self.ratio[:, None, None, None] * np.eye(m)
        members, share = np.ascontiguousarray(np.swapaxes(self.r, 1, 2)), self.share  # (B, G, N)
        alive = share > 0
        for weight in weights:
            pooled = members @ heard
            P = pooled[..., cell] + ratio
            inverse = np.linalg.inv(P)
            mean = (inverse @ pooled[..., h:, None])[..., 0]
            second = mean[..., i] * mean[..., j] + noise * inverse[..., i, j]
            # −misfit/2σ², but for what is the same in every group
            fit = np.concatenate([second * (-0.5 * twice), mean], axis=2)
            fit = (fit / noise) @ heard_t
            if self.contexts is not None:
                fit += np.swapaxes(self.contexts.loglik(np.swapaxes(members, 1, 2)), 1, 2)
            fit *= weight
            fit += _log(share)[..., None]
            fit -= fit.max(axis=1, keepdims=True)
            np.exp(fit, out=fit)
            fit *= others / fit.sum(axis=1, keepdims=True)
            members = fit
            share = _shares(np.swapaxes(members, 1, 2), alive)
        return replace(self, r=np.swapaxes(members, 1, 2), share=share)

    def _sums(self, weight: Array) -> tuple[Array, ...]:
        """Pool agents by weights (B, G, N): statistics, how many; context samples and their sum."""
        B, N, _ = self.shared.b.shape
        law = self.contexts or Contexts(np.zeros((B, N, 0)), np.zeros((B, N)))
        n = (weight @ law.n[..., None])[..., 0]
        total = weight @ (law.n[..., None] * law.mean)
        return weight @ self.shared.compact, weight.sum(axis=2), n, total

    def _evidence(self, sums: Sequence[Array], views: IntArray) -> Array:
        """Return the log evidence of groups with given sums, and of their size."""
        pooled, size, n, total = sums
        from scipy.special import gammaln  # noqa: PLC0415 (heavy; `import coopbandits` is not)

        value = self._log_normaliser(pooled, views) + gammaln(np.maximum(size, 1.0))
        if self.contexts is not None:
            value += self.contexts.evidence(n, total)
        return value

    def _log_normaliser(self, pooled: Array, views: IntArray) -> Array:
        """Return `log_normaliser` under the σ² and κ of views: (…, h + m + 1) -> (…)."""
        trailing = (...,) + (None,) * (pooled.ndim - 2)
        noise, ratio = self.noise[views][trailing], self.ratio[views][trailing]
        noise, ratio = (np.broadcast_to(part, pooled.shape[:-1]).ravel() for part in (noise, ratio))
        columns = pooled.reshape(-1, pooled.shape[-1]).T.copy(order="C")
        value = log_normaliser(columns, self.shared.b.shape[-1], noise, ratio)
        return value.reshape(pooled.shape[:-1])

    def _left_out(self, group: IntArray) -> Array:
        """Return log p(y_u | u's group without u) for a group of each agent: (B, N)."""
        B, N, _ = self.r.shape
        pooled = np.swapaxes(self.r, 1, 2) @ self.shared.compact
        view, agent = np.nonzero(self.others)
        own = group[view, agent]
        r = self.r[view, agent, own]
        mine = self.shared.compact[view, agent]
        rest = pooled[view, own] - r[:, None] * mine
        rest[:, -1] = np.maximum(rest[:, -1], 0.0)
        # who is wholly in its group makes it whole again
        whole = self._log_normaliser(pooled, np.arange(B))[view, own]
        partly = np.flatnonzero(r < 1.0 - _WHOLLY)
        if partly.size:
            whole[partly] = self._log_normaliser(rest[partly] + mine[partly], view[partly])
        gained = whole - self._log_normaliser(rest, view)
        value = np.zeros((B, N))
        value[view, agent] = gained - 0.5 * mine[:, -1] / self.noise[view] + self.base[view, agent]
        return value

    def _joining(self, me: IntArray) -> Array:
        """Return log p(y of the asking agent | each group), which it is not in: (B, G)."""
        B = len(me)
        rows = np.arange(B)
        pooled = np.swapaxes(self.r, 1, 2) @ self.shared.compact
        mine = self.shared.compact[rows, me]
        joined = pooled + mine[:, None]
        gained = self._log_normaliser(joined, rows) - self._log_normaliser(pooled, rows)
        return gained + (self.base[rows, me] - 0.5 * mine[:, -1] / self.noise)[:, None]

    def _prior(self) -> Array:
        """Return how likely each group is for each agent before its rewards are seen: (B, N, G)."""
        log_share = np.repeat(_log(self.share)[:, None, :], self.r.shape[1], axis=1)
        if self.contexts is None:
            return log_share
        return _log(_softmax(log_share + self.contexts.loglik(self.r)))


def log_normaliser(sums: Array, m: int, noise: Array, ratio: Array) -> Array:
    """Return log ∫ exp(−(wᵀSw − 2wᵀb)/2σ²) N(w; 0, σ²/κ) dw, for sums (h + m + 1, k): (k,).

    The sums are scratch then.
    """
    sums[np.diagonal(half(m)[2])] += ratio
    sums[-1] += 1e-9 * sums[-1] + noise  # a bound above bᵀP⁻¹b
    fit, half_logdet = column_halves(sums, m)
    return np.asarray(fit / noise - half_logdet + 0.5 * m * np.log(ratio))


def _shares(r: Array, alive: BoolArray) -> Array:
    size = r.sum(axis=1) + _EMPTY * alive
    return np.asarray(size / size.sum(axis=1, keepdims=True))


def _log(value: Array) -> Array:
    """The logarithm, −inf at 0."""
    with np.errstate(divide="ignore"):
        return np.log(value)


def _softmax(logits: Array) -> Array:
    weight = np.exp(logits - logits.max(axis=-1, keepdims=True))
    return np.asarray(weight / weight.sum(axis=-1, keepdims=True))


def _odds(one: Array, other: Array) -> Array:
    """Return exp(one) / (exp(one) + exp(other))."""
    return np.asarray(1.0 / (1.0 + np.exp(np.clip(other - one, -700.0, 700.0))))
