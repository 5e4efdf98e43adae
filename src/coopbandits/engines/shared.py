"""Exact posteriors, shared where agents share their past.

Agents that learn from the same agents form a group. The factor of a group holds what all its
members know; the newest rounds, which reach its members at different times, are conditioned on
through their Schur complement.

Whitening n observations' worth of rows is nearly all the work. A member's choice was whitened when
it was offered, so it is learnt from the columns that are there, and only the rows that the factor
has gained since are added to them.
"""

import numpy as np

from coopbandits.act import draws
from coopbandits.arrays import Array, BoolArray, IntArray
from coopbandits.engines.record import Record
from coopbandits.gp.compositions import JointKernel
from coopbandits.gp.posterior import Belief, Newest, Posterior
from coopbandits.policy import Plan, Policy
from coopbandits.problems.problem import Round
from coopbandits.similarity.mean_embedding import FrozenKernel


class SharedPosteriors:
    """One posterior for each group of agents that learn from the same agents."""

    def __init__(self, policy: Policy, plan: Plan) -> None:
        self._plan, self._joint = plan, draws(policy.act)
        self.refreshes = 0  # frozen embeddings change with every message
        self._frozen: Array = np.eye(len(plan.lags))
        self._groups = _groups(policy, plan)

    def bytes_after(self, rounds: int) -> float:
        """How much memory factors and candidates take at most, after so many rounds."""
        return sum(group.bytes_after(rounds) for group in self._groups)

    def work(self, rounds: int) -> float:
        """How many operations so many rounds take, roughly."""
        return sum(group.work(rounds) for group in self._groups)

    def believe(self, t: int, offer: Round, X: Array, judging: BoolArray, record: Record) -> Belief:
        """Return beliefs at all rows of a round's offer whose agents judge: X (M, ·), (V,)."""
        belief = Belief.nothing(len(offer.agents), int(offer.sizes.max()) if self._joint else 0)
        if self._plan.frozen:
            self._frozen = self._between_latest(t, record)
            self.refreshes += 1
        self._groups = [group for group in self._groups if group.last_round >= t]
        for group in self._groups:
            if not self._plan.in_turn:
                group.learn_due(t, record)
            rows = np.flatnonzero((judging & group.is_member)[offer.agents])
            if rows.size:
                group.believe(t, rows, offer.agents[rows], X[rows], record).put(belief, rows)
        return belief

    def learn_now(self, turn: IntArray, t: int, record: Record) -> None:
        """Learn the pulls of a turn at once, where agents take turns within a round."""
        for group in self._groups:
            group.learn_now(turn, record.observed[t - 1], record.rewards[t - 1])

    def similarity(self) -> Array:
        """Return K_z where agents learn from each other, 0 elsewhere: (V, V).

        Where embeddings are frozen, that between the latest message of each and one's own.
        """
        if not isinstance(self._plan.kernel, JointKernel):
            return self._frozen
        return np.where(np.isfinite(self._plan.lags), self._plan.kernel.K_z, 0.0)

    def _between_latest(self, t: int, record: Record) -> Array:
        kernel, lags = self._plan.kernel, self._plan.lags
        assert isinstance(kernel, FrozenKernel)
        K_z = np.eye(len(lags))
        for v, row in enumerate(lags):
            heard = np.flatnonzero(row < t)
            if t > 1 and heard.size:
                latest = record.observed[t - 1 - row[heard].astype(np.int64), heard]
                K_z[v, heard] = kernel.alike(record.observed[None, t - 2, v], latest)[0]
        return K_z


class _Group:
    """Agents that learn from the same sources, and the posterior of what all of them know."""

    def __init__(self, policy: Policy, plan: Plan, members: IntArray, sources: IntArray) -> None:
        self.members, self.sources = members, sources
        self.is_member = np.isin(np.arange(len(plan.lags)), members)
        self.lags = plan.lags[:, sources].copy()
        # a source's news is common once the member it reaches last has it
        self.common_lag = plan.lags[np.ix_(members, sources)].max(axis=0).astype(np.int64)
        self.posterior = Posterior(plan.kernel, policy.ridge)
        self._joint = draws(policy.act)
        # a member needs no posterior once it follows its leader
        self.last_round = float(plan.leader_lags[members].max())
        self._frozen = plan.frozen  # then what is learnt is not quite what was offered
        # the last offer's rows that were whitened, and the columns of choices not yet learnt
        self._asked: tuple[IntArray, Array] = np.empty(0, dtype=np.int64), np.empty((0, 0))
        self._columns: dict[int, Array] = {}

    def bytes_after(self, rounds: int) -> float:
        """How much memory the factor takes at most, and eight whitened candidates a member."""
        n = len(self.sources) * min(rounds, self.last_round)
        return 4.0 * n**2 + 3 * 8.0 * n * 8 * len(self.members)

    def work(self, rounds: int) -> float:
        """How many operations so many rounds take, roughly.

        Each round whitens what is new, and eight candidates an agent; 1e6 each round are Python's.
        """
        T, N = float(min(rounds, self.last_round)), len(self.sources)
        return T * 1e6 + (N + 8 * len(self.members)) * N**2 * T**3 / 3

    def learn_now(self, turn: IntArray, contexts: Array, rewards: Array) -> None:
        """Learn the pulls of this turn: (V, d), (V,)."""
        heard = np.intersect1d(turn, self.sources)
        self.posterior.extend(heard, contexts[heard], rewards[heard])

    def learn_due(self, t: int, record: Record) -> None:
        """Learn what has become common by the decisions of round t."""
        self._keep_choices(t - 1, record)
        round_ = t - self.common_lag
        due = np.flatnonzero(round_ >= 1)
        if due.size:
            self.posterior.absorb(self._look_ahead(round_[due], due, record))
        for done in [done for done in self._columns if done < t - self.common_lag.max()]:
            del self._columns[done]

    def believe(self, t: int, rows: IntArray, agents: IntArray, X: Array, record: Record) -> Belief:
        """Return what agents believe of m contexts, some rows of the offer, newest rounds too."""
        asked = self.posterior.project(agents, X)
        self._asked = rows, asked.Z
        pairs = [
            (round_, column)
            for column, lag in enumerate(self.common_lag)
            for round_ in range(max(1, t - int(lag) + 1), t)
        ]
        if pairs:
            round_, column = np.array(pairs).T
            known = round_ + self.lags[:, column] <= t
            heard = known[self.members].any(axis=0)
            if heard.any():
                newest = self._look_ahead(round_[heard], column[heard], record)
                return newest.believe(asked, known[:, heard], joint=self._joint)
        return self.posterior.believe(asked, joint=self._joint)

    def _keep_choices(self, t: int, record: Record) -> None:
        """Keep the columns of what was chosen in round t, of the offers that were whitened."""
        rows, Z = self._asked
        chosen = record.rows[self.sources]
        at = np.minimum(np.searchsorted(rows, chosen), max(len(rows) - 1, 0))
        if len(rows) and not self._frozen and (rows[at] == chosen).all():
            self._columns[t] = Z[:, at]
        self._asked = np.empty(0, dtype=np.int64), np.empty((0, 0))

    def _look_ahead(self, round_: IntArray, column: IntArray, record: Record) -> Newest:
        """Look ahead to the observations of some rounds (k,) and sources, by their columns (k,)."""
        agents = self.sources[column]
        at = round_ - 1, agents
        X, y = record.observed[at], record.rewards[at]
        done: Array | None = None
        if all(int(r) in self._columns for r in np.unique(round_)):
            done = self._done(round_, column, record)
        return self.posterior.look_ahead(agents, X, y, done)

    def _done(self, round_: IntArray, column: IntArray, record: Record) -> Array:
        """Return the kept columns of some observations, brought up to date: (n, k)."""
        done = np.empty((len(self.posterior), len(round_)))
        for r in np.unique(round_):
            mine, Z = round_ == r, self._columns[int(r)]
            if len(Z) < len(self.posterior):
                at = np.full(len(self.sources), r - 1), self.sources
                Z = self.posterior.project(self.sources, record.observed[at], Z).Z
                self._columns[int(r)] = Z
            done[:, mine] = Z[:, column[mine]]
        return done


def _groups(policy: Policy, plan: Plan) -> list[_Group]:
    """Put agents that learn from the same agents together."""
    members: dict[bytes, list[int]] = {}
    for v, row in enumerate(np.isfinite(plan.lags)):
        members.setdefault(row.tobytes(), []).append(v)
    return [
        _Group(policy, plan, np.array(group), np.flatnonzero(np.isfinite(plan.lags[group[0]])))
        for group in members.values()
    ]
