"""What may K_z be, to each agent of a simulation, by now?"""

import numpy as np

from coopbandits.arrays import Array, IntArray
from coopbandits.engines.record import Record
from coopbandits.gp.compositions import JointKernel, composition
from coopbandits.policy import Plan, Policy
from coopbandits.similarity import Learnt, Loadings
from coopbandits.similarity.loadings import linked, of_rank
from coopbandits.similarity.similarity import estimated, is_due


class Estimates:
    """K_z = UUᵀ + diag(δ) in each agent's own view; given, or learnt and refreshed.

    A learnt K_z may be one of several: H hypotheses in all, those of each agent together.

    Attributes:
        agents: (V, N) from whom each agent learns, in order; rows are padded.
        lags: (V, N) after how many rounds; inf pads a row.
        me: (V,) the column of the agent itself.
        U: (H, N, r).
        delta: (H, N).
        whose: (H,) in whose view.
        weight: (H,) how likely each is to its agent.
        linked: (H, N) who is no stranger.
        refreshes: How many estimates there have been.
    """

    def __init__(self, policy: Policy, plan: Plan) -> None:
        self._policy, self._plan = policy, plan
        self._composition = composition(policy.compose)
        V = len(plan.lags)
        heard = np.isfinite(plan.lags)
        N = int(heard.sum(axis=1).max())
        self.agents = np.argsort(~heard, axis=1, kind="stable")[:, :N]
        self.lags = np.take_along_axis(plan.lags, self.agents, axis=1)
        self.me = (self.agents == np.arange(V)[:, None]).argmax(axis=1)
        self._counts = np.zeros(V, dtype=np.int64)
        self.refreshes = 0
        self.U, self.delta = np.zeros((V, N, 0)), np.ones((V, N))
        self.whose, self.weight = np.arange(V), np.ones(V)
        self.linked = self.agents == np.arange(V)[:, None]

    @classmethod
    def of(cls, policy: Policy, plan: Plan, *, most: int | None = None) -> "Estimates":
        """Start with the K_z that is given, of `most` parts, or with none that is learnt."""
        estimates = cls(policy, plan)
        if plan.learner is None:
            assert isinstance(plan.kernel, JointKernel)
            estimates.give(plan.kernel.K_z, most=most)
        return estimates

    @property
    def shape(self) -> tuple[int, int]:
        """How many agents a view has, and how many parts they share, at most."""
        N, r = self.U.shape[1:]
        return N, N if self._plan.learner is not None else r

    @property
    def numbers(self) -> int:
        """How many numbers the views take at most."""
        V, (N, r) = len(self.me), self.shape
        learner = self._plan.learner
        several = getattr(learner, "hypotheses", 1)
        parts = min(N, getattr(learner, "parts", N))
        return V * N * max(r + 4, several * (parts + 4) * (several > 1))

    def give(self, K_z: Array, *, most: int | None = None) -> None:
        """Take a given K_z, of low rank where it is: (V, V). Padding loads on nothing.

        Of a view with more than `most` parts, so many are kept (`of_rank`).
        """
        parts, left = [], np.zeros(self.delta.shape)
        for view, (agents, lags) in enumerate(zip(self.agents, self.lags, strict=True)):
            known = np.isfinite(lags)
            mine = K_z[np.ix_(agents[known], agents[known])]
            values, vectors = np.linalg.eigh(mine)
            kept = values > 1e-11 * max(values[-1], 1e-300)
            own = vectors[:, kept] * np.sqrt(values[kept])
            if most is not None and own.shape[1] > most:
                me = np.flatnonzero(agents[known] == view)
                own = of_rank(mine[None], me, most)[0]
                left[view, known] = np.maximum(np.diagonal(mine) - (own**2).sum(axis=1), 0.0)
            U = np.zeros((len(agents), own.shape[1]))
            U[known] = own
            parts.append(U)
        r = max(part.shape[1] for part in parts)
        self.U = np.stack([np.pad(part, ((0, 0), (0, r - part.shape[1]))) for part in parts])
        self.delta = left
        self.linked = np.isfinite(self.lags)

    def refresh(self, t: int, record: Record) -> IntArray:
        """Estimate K_z again for the agents for whom it is due, and return them."""
        similarity, learner = self._policy.similarity, self._plan.learner
        if learner is None:
            return np.empty(0, dtype=np.int64)
        assert isinstance(similarity, Learnt)
        known = record.known(t, self.lags)
        sources = np.isfinite(self.lags).sum(axis=1)
        due = np.flatnonzero(is_due(similarity, known, self._counts, sources))
        if due.size:
            views = record.views(t, self.agents[due], self.lags[due], self.me[due])
            loadings = estimated(learner, views)
            self._put(due, loadings)
            self._counts[due] = known[due]
            self.refreshes += len(due)
        return due

    def similarity(self) -> Array:
        """Return each agent's own row of its K_z, 0 for those it does not learn from: (V, V)."""
        if self._plan.learner is None:
            assert isinstance(self._plan.kernel, JointKernel)
            return np.where(np.isfinite(self._plan.lags), self._plan.kernel.K_z, 0.0)
        V, H = len(self.me), np.arange(len(self.whose))
        me = self.me[self.whose]
        row = np.einsum("hr,hnr->hn", self.U[H, me], self.U)
        row[H, me] += self.delta[H, me]
        expected = np.zeros(self.agents.shape)
        np.add.at(expected, self.whose, self.weight[:, None] * row)
        whole = np.zeros((V, V))
        at = np.nonzero(np.isfinite(self.lags))
        whole[at[0], self.agents[at]] = expected[at]
        return whole

    def _put(self, due: IntArray, loadings: Loadings) -> None:
        """Let some agents take K_z to be what was estimated, and the others what it was."""
        kept = ~np.isin(self.whose, due)
        whose = np.concatenate([self.whose[kept], due[loadings.view]])
        order = np.argsort(whose, kind="stable")
        r = max(self.U.shape[2], loadings.U.shape[2])
        U = np.zeros((len(whose), self.agents.shape[1], r))
        old = int(kept.sum())
        U[:old, :, : self.U.shape[2]] = self.U[kept]
        U[old:, :, : loadings.U.shape[2]] = loadings.U
        used = (U != 0).any(axis=(0, 1))
        linked_now = linked(loadings, self.me[due[loadings.view]], self._composition)
        linked_now &= np.isfinite(self.lags[due[loadings.view]])
        self.U = U[order, :, : max(1, int(np.flatnonzero(used).max(initial=0)) + 1)]
        self.delta = np.concatenate([self.delta[kept], loadings.delta])[order]
        self.linked = np.concatenate([self.linked[kept], linked_now])[order]
        self.weight = np.concatenate([self.weight[kept], loadings.weight])[order]
        self.whose = whose[order]
