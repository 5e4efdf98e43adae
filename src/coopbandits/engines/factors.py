"""Exact posteriors: shared where agents share their past, or each agent's own.

Agents that learn from the same agents form a group. The factor of a group holds what all its
members know; the newest rounds, which reach its members at different times, are conditioned on
through their Schur complement. Where K_z is estimated each agent has its own, and so its own
factor under each hypothesis.

Whitening n observations' worth of rows is nearly all the work. A member's choice was whitened when
it was offered, so it is learnt from the columns that are there, and only the rows that the factor
has gained since are added to them.
"""

import numpy as np

from coopbandits.act import draws
from coopbandits.agent.factor_beliefs import posteriors_under
from coopbandits.arrays import Array, BoolArray, IntArray
from coopbandits.engines.by_lags import Record, last_rounds
from coopbandits.engines.views import AllViews, LikeViews
from coopbandits.forget import Window
from coopbandits.gp.mixture import PosteriorMixture
from coopbandits.gp.posterior import Belief, Newest, Posterior
from coopbandits.policy import Plan, Policy
from coopbandits.problems.problem import Round
from coopbandits.similarity.mean_embedding import FrozenKernel


class SharedPosteriors:
    """One posterior for each group of agents that learn from the same agents."""

    def __init__(self, policy: Policy, plan: Plan) -> None:
        self._plan, self._joint = plan, draws(policy.act)
        self.refreshes = 0  # frozen embeddings change with every message
        own = plan.listens.sources.rows == plan.listens.sources.agents
        self._frozen: Array = own.astype(np.float64)
        self._groups = [_Group(policy, plan, *group) for group in plan.lags.groups]
        self._turns = 0
        self._now: tuple[int, Record] = 0, Record(plan, 0, 1)

    def learn(self, t: int, record: Record) -> None:
        """Learn what has arrived by the decisions of round t."""
        if self._plan.frozen:
            self._frozen = self._between_latest(t, record)
            self.refreshes += 1
        self._groups = [group for group in self._groups if group.last_round >= t]
        for group in self._groups:
            if not self._plan.in_turn:
                group.learn_due(t, record)
                continue
            for past, turn in record.turns[self._turns :]:
                group.learn_now(turn, record.observed[past - 1], record.rewards[past - 1])
        self._turns = len(record.turns)
        self._now = t, record

    def predict(self, offer: Round, asked: Array, judging: BoolArray) -> Belief:
        """Return beliefs at all rows of a round's offer whose agents judge: (M, ·), (V,)."""
        belief = Belief.nothing(len(offer.agents), int(offer.sizes.max()) if self._joint else 0)
        for group in self._groups:
            rows = offer.rows_of(group.members[judging[group.members]])
            if rows.size:
                group.predict(*self._now, rows, offer.agents[rows], asked[rows]).put(belief, rows)
        return belief

    def similarity(self) -> Array:
        """Return K_z of each pair that listens, 0 between strangers: (n,).

        Where embeddings are frozen, that between the latest message of each and one's own.
        """
        return self._frozen if self._plan.frozen else self._plan.similarity

    def _between_latest(self, t: int, record: Record) -> Array:
        kernel, rows = self._plan.kernel, []
        assert isinstance(kernel, FrozenKernel)
        for v, (sources, lags) in enumerate(self._plan.lags):
            worth = (sources == v).astype(np.float64)
            heard = lags < t
            if t > 1 and heard.any():
                latest = record.observed[t - 1 - lags[heard], sources[heard]]
                worth[heard] = kernel.alike(record.observed[None, t - 2, v], latest)[0]
            rows.append(worth)
        return np.concatenate(rows)


class _Group:
    """Agents that learn from the same sources, and the posterior of what all of them know."""

    def __init__(self, policy: Policy, plan: Plan, members: IntArray, sources: IntArray) -> None:
        self.members, self.sources = members, sources
        self.lags = np.stack([plan.lags.row(v)[1] for v in members.tolist()])
        # a source's news is common once the member it reaches last has it
        self.common_lag = self.lags.max(axis=0)
        self.posterior = Posterior(plan.kernel, policy.ridge)
        self._joint = draws(policy.act)
        # a member needs no posterior once it follows its leader
        self.last_round = float(plan.leader_lags[members].max())
        self._frozen = plan.frozen  # then what is learnt is not quite what was offered
        # the last offer's rows that were whitened, and the columns of choices not yet learnt
        self._asked: tuple[IntArray, Array] = np.empty(0, dtype=np.int64), np.empty((0, 0))
        self._columns: dict[int, Array] = {}

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

    def predict(self, t: int, record: Record, rows: IntArray, agents: IntArray, X: Array) -> Belief:
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
            heard = known.any(axis=0)
            if heard.any():
                newest = self._look_ahead(round_[heard], column[heard], record)
                return newest.believe(asked, self.members, known[:, heard], joint=self._joint)
        return self.posterior.believe(asked, joint=self._joint)

    def _keep_choices(self, t: int, record: Record) -> None:
        """Keep the columns of what was chosen in round t, of the offers that were whitened."""
        if not len(self.posterior) and not self._frozen:  # there is nothing to whiten by
            self._columns[t] = np.empty((0, len(self.sources)))
            return
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


class OwnPosteriors:
    """Posteriors of each agent's own, factored anew as its K_z changes or observations fade."""

    def __init__(self, policy: Policy, plan: Plan) -> None:
        self._window = policy.forget.rounds if isinstance(policy.forget, Window) else None
        self._policy, self._plan = policy, plan
        self._views = AllViews(plan)
        V = len(plan.lags)
        self._posteriors = [PosteriorMixture.under(plan.kernel, policy.ridge) for _ in range(V)]

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
        due = set(self._views.refresh(t, record).tolist())
        for views in self._views.parts:
            for view, v in enumerate(views.who.tolist()):
                self._learn(t, record, views, view, fresh=v in due)

    def _learn(self, t: int, record: Record, views: LikeViews, view: int, *, fresh: bool) -> None:
        """Let one agent learn what is new; all that it has heard, if K_z is new."""
        v, after = int(views.who[view]), last_rounds(t, views.lags[view])
        heard = np.flatnonzero(after > 0)
        agents = views.hypotheses.agents[view, heard]
        if fresh or self._window is not None:
            self._posteriors[v] = self._new(views, view)
            first = np.maximum(after[heard] - (self._window or t), 0)
            origins = np.repeat(agents, after[heard] - first)
            spans = [np.arange(a, b) for a, b in zip(first, after[heard], strict=True)]
            rounds = np.concatenate([np.empty(0, dtype=np.int64), *spans])
        else:
            origins, rounds = agents, after[heard] - 1
        if len(origins):
            at = rounds, origins
            self._posteriors[v].extend(origins, record.observed[at], record.rewards[at])

    def _new(self, views: LikeViews, view: int) -> PosteriorMixture:
        """Start anew, under the K_z that is given or what it may be by now."""
        if self._plan.estimator is None:
            return PosteriorMixture.under(self._plan.kernel, self._policy.ridge)
        return posteriors_under(self._policy, views.hypotheses, view, len(self._plan.lags))

    def predict(self, offer: Round, asked: Array, judging: BoolArray) -> Belief:
        """Return beliefs at all rows of a round's offer whose agents judge: (M, ·), (V,)."""
        joint = draws(self._policy.act)
        belief = Belief.nothing(len(offer.agents), int(offer.sizes.max()) if joint else 0)
        for v in np.flatnonzero(judging):
            rows = np.arange(offer.starts[v], offer.starts[v] + offer.sizes[v])
            own = self._posteriors[v].predict(offer.agents[rows], asked[rows], joint=joint)
            own.put(belief, rows)
        return belief

    def similarity(self) -> Array:
        """Return what agents take others' news to be worth, for each pair that listens: (n,)."""
        return self._views.similarity()
