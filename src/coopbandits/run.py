"""Let a policy play a problem, and keep the record."""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from threadpoolctl import threadpool_limits

from coopbandits.arrays import (
    Array,
    BoolArray,
    IntArray,
    Seed,
    as_choice,
    as_count,
    as_not_negative,
    as_positive,
    as_seed,
    frozen,
    is_real,
    short,
)
from coopbandits.engines import (
    ENGINES,
    LAZINESS,
    Algorithm,
    Engine,
    KnowsPropensities,
    Simulation,
    continuum_engine,
    engine_for,
)
from coopbandits.engines.engine import AskChains, KnowsChains
from coopbandits.engines.exchange import Exchange
from coopbandits.errors import ParameterError, ShapeError, StateError
from coopbandits.frames import frame
from coopbandits.network import Network, SparseRows, as_network
from coopbandits.plots import draw_curve, finish, regret_axes
from coopbandits.policy import Policy
from coopbandits.problems.continuum import Continuum
from coopbandits.problems.problem import Problem, Round
from coopbandits.progress import seconds_of, shown
from coopbandits.protocol.links import Links
from coopbandits.similarity.chain_diagnostics import ChainDiagnostics

if TYPE_CHECKING:
    from scipy.sparse import csr_array

    from coopbandits.frames import DataFrame
    from coopbandits.plots import Axes

# What `Run.actions` says where there is no index: the agent was away, or chose a point.
AWAY, POINT = -1, -2
# Of more agents, matrices of who hears whom are sparse.
MOST_SHOWN = 2_000


@dataclass(frozen=True, eq=False)
class Run:
    """What happened: T rounds of V agents. All arrays are read-only.

    Attributes:
        regret: (T, V) expected reward lost in each round, against the best offered action.
        actions: (T, V) index of the chosen action in its decision set; `AWAY` where an agent was
            away, which costs it no regret and brings it no reward; `POINT` on a continuum, where
            `contexts` says what was chosen.
        rewards: (T, V).
        propensities: (T, V) with which probability each action was taken (`Decision.propensity`);
            NaN where that is not known, or an agent was away.
        messages: (T,) messages that were sent over an edge in each round, copies included.
        bytes: (T,) their size.
        delivered: (T,) messages that arrived in each round: all that were sent, unless `links=`
            were given; so the next three, which are 0 then.
        late: (T,) those of them that were sent in an earlier round.
        lost: (T,) messages that were lost on an edge.
        missed: (T,) messages that came to an agent that was away.
        engine: What computed the decisions; of `sparse` also which computation it was.
        network: The agents.
        sources: Whom each agent hears of, as sparse rows.
        worth: The rounds in which some agent's K_z changed, with what agents took others' news to
            be worth from then on, for each pair of `sources`, (n,); `similarity(t)` reads it.
        contexts: (T, V, d) the chosen points, on a continuum, NaN where an agent was away; None on
            finite sets, where `actions` says it.
        chains: What `diagnostics` asks; None if the policy has no Gibbs chains.

    Example:
        >>> problem = cb.problems.clustered_linear(cb.Network.path(4))
        >>> run = cb.play(problem, cb.LinUCB(), rounds=3)
        >>> run.regret.shape, run.messages.tolist()  # who works alone sends nothing
        ((3, 4), [0, 0, 0])
        >>> bool((run.regret >= 0).all())
        True
    """

    regret: Array
    actions: IntArray
    rewards: Array
    propensities: Array
    messages: IntArray
    bytes: IntArray
    delivered: IntArray
    late: IntArray
    lost: IntArray
    missed: IntArray
    engine: str
    network: Network
    sources: SparseRows
    worth: tuple[tuple[int, Array], ...] = ()
    contexts: Array | None = None
    chains: AskChains | None = field(default=None, compare=False)

    def __repr__(self) -> str:
        T, V = self.regret.shape
        return (
            f"Run({T} rounds of {V} agents, regret per agent {self.regret_per_agent[-1]:.4g}, "
            f"{self.messages.sum()} messages, engine {self.engine})"
        )

    @property
    def regret_per_agent(self) -> Array:
        """(T,) cumulative regret, averaged over all agents: R̂(t) of the paper."""
        return np.cumsum(self.regret.mean(axis=1))

    @property
    def away(self) -> BoolArray:
        """(T, V) where an agent was away."""
        return self.actions == AWAY

    def regret_of(self, agent: int | str) -> Array:
        """Return the regret of one agent, by number or name, in each round: (T,)."""
        return self.regret[:, self.network.index(agent)]

    def to_frame(self, per: str = "decision") -> "DataFrame":
        """Return the record as a pandas dataframe, a decision or a round a row.

        Per decision: round, agent (its name, where it has one), action, reward, regret and
        propensity; on a continuum the numbers of the chosen point, x0, x1, …, in place of the
        action. An agent that was away has no action (NA). Per round: regret_per_agent, cumulative,
        and reward, messages, bytes, delivered, late, lost and missed of that round.

        Args:
            per: "decision" or "round".

        Example:
            >>> problem = cb.problems.clustered_linear(cb.Network.path(4))
            >>> run = cb.play(problem, cb.LinUCB(), rounds=3)
            >>> frame = run.to_frame()
            >>> frame.columns.tolist()
            ['round', 'agent', 'action', 'reward', 'regret', 'propensity']
            >>> bool(np.isclose(frame.regret.sum() / 4, run.regret_per_agent[-1]))
            True
            >>> run.to_frame(per="round").shape
            (3, 9)
        """
        T, V = self.regret.shape
        if as_choice(per, "per", ("decision", "round")) == "round":
            facts = ("messages", "bytes", "delivered", "late", "lost", "missed")
            return frame(
                {
                    "round": np.arange(1, T + 1),
                    "regret_per_agent": self.regret_per_agent,
                    "reward": self.rewards.sum(axis=1),
                    **{name: getattr(self, name) for name in facts},
                }
            )
        names = self.network.names if self.network.is_named else range(V)
        columns: dict[str, Any] = {
            "round": np.repeat(np.arange(1, T + 1), V),
            "agent": [*names] * T,
        }
        absent = {}
        if self.contexts is None:
            columns["action"] = self.actions.ravel()
            absent["action"] = self.away.ravel()
        else:
            points = self.contexts.reshape(T * V, -1)
            columns |= {f"x{i}": points[:, i] for i in range(points.shape[1])}
        columns |= {
            "reward": self.rewards.ravel(),
            "regret": self.regret.ravel(),
            "propensity": self.propensities.ravel(),
        }
        return frame(columns, absent)

    def plot(self, ax: "Axes | None" = None, *, label: str = "") -> "Axes":
        """Draw cumulative regret: the mean of all agents, and the middle half of them as a band.

        Returns matplotlib axes, for another run beside it and for a file:
        `other.plot(run.plot(label="one"), label="other").figure.savefig("regret.png")`.

        Args:
            ax: Axes to draw on; new ones of a new figure, if not given.
            label: What the legend calls the run.

        Example:
            >>> problem = cb.problems.clustered_linear(cb.Network.path(4))
            >>> axes = cb.play(problem, cb.LinUCB(), rounds=3).plot(label="alone")
            >>> axes.get_ylabel()
            'cumulative regret per agent'
        """
        axes = regret_axes(ax)
        low, high = np.quantile(np.cumsum(self.regret, axis=0), [0.25, 0.75], axis=1)
        draw_curve(axes, self.regret_per_agent, low, high, label)
        finish(axes, note="band: the middle half of the agents")
        return axes

    def diagnostics(self, agent: int | str, sweeps: int = 200) -> ChainDiagnostics:
        """Ask what an agent's Gibbs chains find in all that it had heard by its last decision.

        Args:
            agent: By number or name.
            sweeps: How many the chains go on for, at least 4.

        Example:
            >>> problem = cb.problems.clustered_linear(cb.Network.path(4), seed=0)
            >>> run = cb.play(problem, cb.EagerKernelUCB(cb.kernels.Linear()), rounds=3)
            >>> run.diagnostics(1).agents.tolist()
            [0, 1, 2]
        """
        if self.chains is None:
            raise StateError(
                "the policy of this run has no Gibbs chains to ask; expected one with "
                "similarity=Evidence()"
            )
        return self.chains(self.network.index(agent), sweeps)

    @cached_property
    def listens(self) -> "BoolArray | csr_array":
        """(V, V) whether v hears of what u does, [v, u]; sparse above 2,000 agents."""
        return self._laid_out(np.ones(len(self.sources.agents), dtype=np.bool_))

    @property
    def estimates(self) -> "tuple[tuple[int, Array | csr_array], ...]":
        """The rounds in which some agent's K_z changed, with `similarity` from then on."""
        return tuple((since, self._laid_out(worth)) for since, worth in self.worth)

    def similarity(self, t: int) -> Any:
        """Return what agents took each other's news to be worth in round t: (V, V), read-only.

        [v, u] is v's own K_z(v, u), 0 where v does not learn from u. A learnt one is 1 for v itself
        and 0 for all others before v has heard anything; a frozen one is that between the latest
        message of each and v's own. Up to 2,000 agents it is an array; above, a sparse matrix
        (`scipy.sparse.csr_array`), of which `similarity(t)[[v]].toarray()` is one row.
        """
        round_ = as_count(t, "t", most=len(self.regret))
        found = [worth for since, worth in self.worth if since <= round_]
        return self._laid_out(found[-1])

    def _laid_out(self, values: Any) -> Any:
        """Lay out a value of each pair of `sources`."""
        V = len(self.sources)
        if V <= MOST_SHOWN:
            whole = np.zeros((V, V), dtype=values.dtype)
            whole[self.sources.rows, self.sources.agents] = values
            return frozen(whole)
        from scipy.sparse import csr_array  # noqa: PLC0415 (heavy)

        return csr_array((values, self.sources.agents, self.sources.starts), shape=(V, V))


def play(
    problem: Problem | Continuum,
    policy: Policy | Algorithm,
    rounds: int,
    *,
    seed: Seed = 0,
    engine: str = "auto",
    memory_limit: float = 8e9,
    links: Links | None = None,
    laziness: float = LAZINESS,
    on_round: Callable[[int], None] | None = None,
    progress: bool | None = None,
) -> Run:
    """Run a policy on a problem.

    One BLAS thread is used while it runs: matrices here are small, and more threads only wait for
    each other.

    Args:
        problem: What the agents face.
        policy: How they decide; a policy, or an algorithm that is no row of four answers.
        rounds: T.
        seed: Of contexts, noise and the agents' own choices. Two policies with one seed face the
            same contexts and noise. The same seed gives the same run, to the bit. A Generator draws
            a seed; None takes a fresh one, for a run that need not be repeated.
        engine: "exact", "statistics" (linear kernels), "sparse" or "messages"; "auto" takes the one
            of "exact" and "statistics" that needs fewer operations and fits into memory, and
            "sparse" where neither fits, where K_z is estimated and they would take long, or where
            the policy has features. "messages" plays
            continua (give the policy features there, if memory is to stay the same), policies that
            `say` less than everything, and `links`.
        memory_limit: Bytes that posteriors may take, and the record of T rounds; a run that needs
            more is refused before it starts.
        links: Which messages get lost or come late, which edges fail and which agents are away
            (`coopbandits.Links`); None for a faultless network.
        laziness: Where "sparse" keeps statistics of each agent's own view, others' news counts once
            there is this share more of it; 0 for at once, and without other approximations, as
            it always is for policies with `forget=`.
        on_round: Called after each round t = 1 … T, for a progress display of your own.
        progress: Whether to show a bar (`pip install 'coopbandits[progress]'`); None for one if the
            run will take more than a minute, by its operations or by what its first rounds took,
            and there is a terminal or a notebook; that also says what would be faster.

    Example:
        >>> network = cb.Network.erdos_renyi(10, 0.4, seed=0)
        >>> problem = cb.problems.clustered_linear(network, seed=0)
        >>> run = cb.play(problem, cb.LinUCB(), rounds=20, seed=0)
        >>> run.regret.shape
        (20, 10)
        >>> again = cb.play(problem, cb.LinUCB(), rounds=20, seed=0)
        >>> bool((run.rewards == again.rewards).all())
        True
    """
    _check(problem, policy, engine, links, on_round)
    T, seed = as_count(rounds, "rounds"), as_seed(seed)
    if problem.horizon is not None and problem.horizon < T:
        raise ParameterError(f"rounds={T}, but the problem has only {problem.horizon}")
    limit, laziness = _as_limit(memory_limit), as_not_negative(laziness, "laziness")
    with threadpool_limits(1, "blas"):
        player: Engine
        outcomes: Iterator[_Outcome]
        if isinstance(problem, Continuum):
            player, outcomes = _on_continuum(problem, policy, T, seed, engine, limit, links)
        else:
            player, outcomes = _on_finite_sets(
                problem, policy, T, seed, engine, limit, links, laziness
            )
        return _played(problem, player, outcomes, T, on_round, progress)


def _played(
    problem: Problem | Continuum,
    player: Engine,
    outcomes: "Iterator[_Outcome]",
    T: int,
    on_round: Callable[[int], None] | None,
    progress: bool | None,
) -> Run:
    """Play all rounds, and keep the record."""
    listens = player.listens
    sources = listens if isinstance(listens, SparseRows) else SparseRows.of_matrix(listens)
    shape = (T, len(problem.network))
    regret, rewards, propensities = np.empty(shape), np.empty(shape), np.full(shape, np.nan)
    actions = np.empty(shape, dtype=np.int64)
    contexts: list[Array] = []
    traffic = np.zeros((T, 6), dtype=np.int64)
    worth: list[tuple[int, Array]] = []
    refreshes = 0
    work, advice = getattr(player, "work", 0.0), getattr(player, "advice", "")
    with shown(progress, T, work, advice) as on_regret:
        for t, outcome in enumerate(outcomes, start=1):
            there = outcome.there
            regret[t - 1] = np.where(there, outcome.best - outcome.expected, 0.0)
            rewards[t - 1] = np.where(there, outcome.rewards, 0.0)
            actions[t - 1] = np.where(there, outcome.actions, AWAY)
            if isinstance(player, KnowsPropensities):
                propensities[t - 1] = player.propensities
            contexts += [] if outcome.contexts is None else [outcome.contexts]
            sent, size = player.traffic(t)
            traffic[t - 1, :3] = sent, size, sent
            if isinstance(player, Exchange):
                fate = player.fate(t)
                traffic[t - 1, 2:] = fate.delivered, fate.late, fate.lost, fate.missed
            if t == 1 or player.refreshes > refreshes:
                refreshes = player.refreshes
                worth.append((t, frozen(_by_pair(player.similarity(), sources))))
            if on_round is not None:
                on_round(t)
            if on_regret is not None:
                on_regret(float(regret[t - 1].mean()))
    messages, sizes, delivered, late, lost, missed = traffic.T.copy()
    return Run(
        regret=frozen(regret),
        actions=frozen(actions),
        rewards=frozen(rewards),
        propensities=frozen(propensities),
        messages=frozen(messages),
        bytes=frozen(sizes),
        delivered=frozen(delivered),
        late=frozen(late),
        lost=frozen(lost),
        missed=frozen(missed),
        engine=player.name,
        network=problem.network,
        sources=sources,
        worth=tuple(worth),
        contexts=frozen(np.array(contexts)) if contexts else None,
        chains=player.chains() if isinstance(player, KnowsChains) else None,
    )


def foreseen(
    problem: Problem | Continuum,
    policy: Policy | Algorithm,
    rounds: int,
    *,
    seed: int = 0,
    engine: str = "auto",
    memory_limit: float = 8e9,
) -> tuple[float, str]:
    """Return about how many seconds a run takes, 0 if that is not known, and what would be faster.

    What `play` refuses before it starts is refused, and nothing is played.
    """
    _check(problem, policy, engine, None, None)
    player: Engine
    if isinstance(problem, Continuum):
        player, _ = _on_continuum(problem, policy, rounds, seed, engine, memory_limit, None)
    else:
        player, _ = _on_finite_sets(
            problem, policy, rounds, seed, engine, memory_limit, None, LAZINESS
        )
    return seconds_of(getattr(player, "work", 0.0)), getattr(player, "advice", "")


def _by_pair(worth: Array, sources: SparseRows) -> Array:
    """Take the pairs of `sources` from a (V, V) array, where an algorithm returns one: (n,)."""
    return worth[sources.rows, sources.agents] if worth.ndim == 2 else worth


def _check(
    problem: object, policy: object, engine: object, links: object, on_round: object
) -> None:
    """Check what a run is made of."""
    if isinstance(problem, type) or not isinstance(problem, Problem | Continuum):
        raise ParameterError(f"{short(problem)} is no problem; coopbandits.problems makes some")
    left = as_network(problem.network).left
    if left or problem.network.whole is not problem.network:
        gone = f"agent {problem.network.called(left[0])} has" if left else "some edges have"
        raise ParameterError(
            f"{gone} left this network; play on network.whole, all that ever was, with links= that "
            "say who is away and which edges are down from when on"
        )
    if problem.horizon is not None:
        as_count(problem.horizon, "the problem's horizon")
    if isinstance(policy, type) or not isinstance(policy, Policy | Algorithm):
        raise ParameterError(f"{short(policy)} is no policy; coopbandits.LinUCB() makes one")
    as_choice(engine, "engine", ("auto", *ENGINES))
    if on_round is not None and not callable(on_round):
        raise ParameterError(f"on_round must be a function of the round, got {short(on_round)}")
    if not isinstance(links, Links | None):
        raise ParameterError(
            f"links={short(links)}; expected a value coopbandits.Links(…), or None"
        )
    if links is not None:
        links.check(problem.network)


@dataclass(frozen=True, eq=False)
class _Outcome:
    """What a round brought: each agent's best, expected and noisy reward, its action, all (V,).

    Whether it was there, (V,); and on a continuum its context, (V, d).
    """

    best: Array
    expected: Array
    rewards: Array
    actions: IntArray
    there: BoolArray
    contexts: Array | None = None


def _on_finite_sets(
    problem: Problem,
    policy: Policy | Algorithm,
    rounds: int,
    seed: int,
    engine: str,
    memory_limit: float,
    links: Links | None,
    laziness: float,
) -> tuple[Engine, Iterator[_Outcome]]:
    """Make what takes the decisions, and what it does round by round."""
    first = _offered(problem, 1, seed)
    agents, dim = len(problem.network), first.contexts.shape[1]
    _check_record(rounds, agents, dim, memory_limit)
    player = _player(
        problem.network, policy, first, rounds, seed, engine, memory_limit, links, laziness
    )

    def outcomes() -> Iterator[_Outcome]:
        for t in range(1, rounds + 1):
            offer = first if t == 1 else _offered(problem, t, seed)
            if (len(offer.sizes), offer.contexts.shape[1]) != (agents, dim):
                raise ShapeError(
                    f"round {t} has contexts of {offer.contexts.shape[1]} numbers for "
                    f"{len(offer.sizes)} agents; expected {dim} numbers for {agents} agents"
                )
            rows = player.play(t, offer)
            best = np.maximum.reduceat(offer.expected, offer.starts)
            yield _Outcome(
                best, offer.expected[rows], offer.rewards[rows], rows - offer.starts, rows >= 0
            )

    return player, outcomes()


def _offered(problem: Problem, t: int, seed: int) -> Round:
    """Ask a problem, perhaps a user's own, for a round."""
    offer: object = problem.round(t, seed)
    if not isinstance(offer, Round):
        raise ParameterError(
            f"round {t} of the problem is {short(offer)}; expected a coopbandits.problems.Round"
        )
    return offer


def _on_continuum(
    problem: Continuum,
    policy: Policy | Algorithm,
    rounds: int,
    seed: int,
    engine: str,
    memory_limit: float,
    links: Links | None,
) -> tuple[Engine, Iterator[_Outcome]]:
    """Make the same for a problem on continua."""
    dim = problem.dim or (1 if callable(problem.sets) else problem.sets[0].dim)
    _check_record(rounds, len(problem.network), dim, memory_limit)
    player = continuum_engine(engine, policy, problem.network, seed=seed, links=links)

    def outcomes() -> Iterator[_Outcome]:
        for t in range(1, rounds + 1):
            offer = problem.offer(t, seed)
            contexts, expected, rewards = player.play_continuum(t, offer)
            points, there = np.full(len(offer.sets), POINT), ~np.isnan(expected)
            yield _Outcome(offer.best, expected, rewards, points, there, contexts)

    return player, outcomes()


def _player(
    network: Network,
    policy: Policy | Algorithm,
    first: Round,
    rounds: int,
    seed: int,
    engine: str,
    memory_limit: float,
    links: Links | None,
    laziness: float,
) -> Engine:
    """Make what takes the decisions."""
    if not isinstance(policy, Policy):
        if engine != "auto":
            raise ParameterError(
                f"engine={engine!r}, but {policy.name} computes its decisions itself; take "
                "engine='auto'"
            )
        if links is not None:
            raise ParameterError(
                f"links={short(links)}, but {policy.name} exchanges no messages that could fail; "
                "links= is for policies of four answers"
            )
        return policy.player(
            Simulation(
                network=network,
                contexts=first.contexts,
                rounds=rounds,
                seed=seed,
                memory_limit=memory_limit,
            )
        )
    return engine_for(
        engine,
        policy,
        network,
        contexts=first.contexts,
        rounds=rounds,
        seed=seed,
        memory_limit=memory_limit,
        links=links,
        laziness=laziness,
    )


def _check_record(rounds: int, agents: int, dim: int, memory_limit: float) -> None:
    """Refuse a run whose record takes too many bytes: its arrays (T, V), and contexts."""
    needed = 8.0 * rounds * (agents * (5 + dim) + 6)
    if needed > memory_limit:
        raise ParameterError(
            f"the record of {rounds} rounds of {agents} agents needs about {needed / 1e9:,.1f} GB, "
            f"above memory_limit={memory_limit:.3g} bytes; raise the limit, play fewer rounds, or "
            "on a smaller network"
        )


def _as_limit(memory_limit: object) -> float:
    endless = is_real(memory_limit) and memory_limit == math.inf
    return math.inf if endless else as_positive(memory_limit, "memory_limit")
