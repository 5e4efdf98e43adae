"""A plan: a policy's answers, worked out once for one network."""

from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING

import numpy as np

from coopbandits.arrays import (
    Array,
    IntArray,
    frozen,
    short,
)
from coopbandits.errors import ParameterError
from coopbandits.features import Basis, Leading, Remembered, is_finite
from coopbandits.gp.compositions import JointKernel, composition
from coopbandits.gp.network_kernel import ClusterKernel, NetworkKernel
from coopbandits.network import Lags, Network, as_network
from coopbandits.network.lags import as_lags
from coopbandits.say import Everything
from coopbandits.similarity import (
    Coregionalised,
    Evidence,
    Learnt,
    joint_kernel,
)
from coopbandits.similarity.coregionalised import RewardLearner
from coopbandits.similarity.evidence import EvidenceLearner
from coopbandits.similarity.hypotheses import Estimator
from coopbandits.similarity.laplacian import LearntLaplacian
from coopbandits.similarity.mean_embedding import EmbeddingLearner, FrozenKernel
from coopbandits.similarity.population import LearntPopulation
from coopbandits.similarity.similarity import Learner

if TYPE_CHECKING:
    pass

from coopbandits.policy.policy import Policy


@dataclass(frozen=True, eq=False)
class Plan:
    """A policy's answers, worked out for one network of V agents.

    Attributes:
        prior: The prior kernel: K_z as given, or each agent by itself.
        kernel: K, over augmented contexts; where K_z is learnt, its state before anything is heard.
        basis: What features are, where a policy has them; asked once a decision.
        estimator: What estimates K_z; None where K_z is given.
        frozen: Whether K_z between two observations is settled by what travels with them.
        listens: The rounds after which v knows what v' saw, for all whom v listens to.
        lags: The same for those from whom v learns: not if K_z makes them strangers.
        union_bound: (V,) for how many agents v's width must hold at once: V; 1 if v learns from
            nobody else, or if all agents are one.
        leaders: (V,) whom v follows, −1 for nobody.
        leader_lags: (V,) the rounds after which v knows its leader's arm.
        carrier: The edges that messages use.
        in_turn: Whether agents take turns within a round, some hearing of others in the same one.
    """

    prior: JointKernel
    kernel: JointKernel | FrozenKernel
    basis: Basis | None
    estimator: Estimator | None
    frozen: bool
    listens: Lags
    lags: Lags
    union_bound: IntArray
    leaders: IntArray
    leader_lags: Array
    carrier: Network
    in_turn: bool

    @property
    def K_z(self) -> NetworkKernel | None:
        """Between agents, where it is given; None where it is estimated."""
        if self.estimator is not None:
            return None
        assert isinstance(self.kernel, JointKernel)
        return self.kernel.K_z

    @cached_property
    def similarity(self) -> Array:
        """(n,) K_z as it is given, of each pair of `listens`; 0 between strangers."""
        assert self.K_z is not None
        pairs = self.listens.sources
        rows, agents = pairs.rows, pairs.agents
        if self.lags is self.listens:
            return frozen(self.K_z.between(rows, agents))
        worth = np.zeros(len(agents))
        learnt = self.lags.sources.places(rows, agents) >= 0
        worth[learnt] = self.K_z.between(rows[learnt], agents[learnt])
        return frozen(worth)

    @property
    def estimates(self) -> bool:
        """Whether agents estimate K_z again and again: not if each message settles its own."""
        return self.estimator is not None and not self.frozen

    def attached(self, dim: int) -> int:
        """How many numbers go with a context of d numbers in a message."""
        return 0 if self.estimator is None else self.estimator.learner.attached(dim)


def plan(policy: Policy, network: Network) -> Plan:
    """Work a policy's answers out for a network."""
    return _worked_out(_This(policy), as_network(network))


@dataclass(frozen=True, eq=False)
class _This:
    """One policy and no other that is equal: parts of a user's own may keep what they saw."""

    policy: Policy

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _This) and other.policy is self.policy

    def __hash__(self) -> int:
        return id(self.policy)


@lru_cache(maxsize=8)
def _worked_out(this: _This, network: Network) -> Plan:
    policy = this.policy
    whole, V = network.whole, len(network)  # all that ever was: who left told something
    joint = composition(policy.compose)
    heard = as_lags(policy.listen.lags(whole, policy.ttl), V)
    in_turn = bool((heard.rounds == 0).any())
    for option in ("features", "forget"):
        if in_turn and getattr(policy, option) is not None:
            raise ParameterError(
                f"agents that take turns within a round (lag=0) take no {option}=; take lag=1, or "
                f"leave {option}= out"
            )
    constants = 0.0 if policy.intercept is None else policy.intercept**2
    prior = JointKernel(policy.kernel, ClusterKernel(frozen(np.arange(V))), joint, constants)
    kernel: JointKernel | FrozenKernel = prior
    estimator, is_frozen = None, False
    basis = None if policy.basis is None else Remembered(policy.basis)
    if isinstance(policy.similarity, Learnt):
        if in_turn:
            raise ParameterError(
                "agents that take turns within a round (lag=0) need a K_z that is given; take "
                "lag=1, or a given similarity"
            )
        learner, learnt = _learner(policy, basis, whole), heard
        estimator = Estimator(policy.similarity, learner, joint)
        is_frozen = policy.similarity.refresh == "frozen"
        if is_frozen:
            if not isinstance(learner, EmbeddingLearner):
                raise ParameterError(
                    "refresh='frozen' is for MeanEmbedding only, not for "
                    f"{short(policy.similarity)}"
                )
            kernel = FrozenKernel(policy.kernel, learner, joint, constants)
    else:
        given = joint_kernel(policy.kernel, policy.similarity, whole, joint)
        prior = kernel = replace(given, intercept=constants)
        learnt = _without_strangers(heard, prior)
    alone = learnt.sources.counts == 1
    carrier = policy.listen.carrier(network)
    leaders = policy.act.leaders(whole, policy.ttl)
    _check_say(policy, follows=bool((leaders >= 0).any()), is_frozen=is_frozen)
    return Plan(
        prior=prior,
        kernel=kernel,
        basis=basis,
        estimator=estimator,
        frozen=is_frozen,
        listens=heard,
        lags=learnt,
        union_bound=frozen(np.where(alone | policy.listen.pooled, 1, V)),
        leaders=frozen(leaders),
        leader_lags=frozen(_leader_lags(policy, network, leaders, heard)),
        carrier=carrier,
        in_turn=in_turn,
    )


def _leader_lags(policy: Policy, network: Network, leaders: IntArray, heard: Lags) -> Array:
    """Return after how many rounds each agent hears of its leader, inf for who has none: (V,).

    As messages travel, or at once if it is told at once.
    """
    arrival = np.full(len(leaders), np.inf)
    led = np.flatnonzero(leaders >= 0)
    if led.size:
        travel = policy.listen.carrier(network.whole).lags(policy.ttl)
        pairs = led, leaders[led]
        arrival[led] = np.minimum(travel.between(*pairs), heard.between(*pairs))
    return arrival


def _check_say(policy: Policy, *, follows: bool, is_frozen: bool) -> None:
    if follows and not isinstance(policy.say, Everything):
        raise ParameterError(
            f"say={short(policy.say)} leaves out arms of a centre that its followers wait for; "
            "agents that follow need say=Everything()"
        )
    if is_frozen and policy.forget is not None:
        raise ParameterError(
            "refresh='frozen' keeps what each observation said of K_z for ever; take another "
            "refresh with forget="
        )
    if is_frozen and policy.say.sums:
        raise ParameterError(
            "refresh='frozen' needs each observation with its own embedding, which sums do not "
            "keep; take another refresh, or say=Everything()"
        )


def _learner(policy: Policy, basis: Basis | None, network: Network) -> Learner:
    """Make what estimates K_z; from rewards, with agents' own constants integrated out."""
    learner = _coarse(policy, basis).learner(policy.kernel, network)
    if policy.constants is not None and isinstance(learner, EvidenceLearner | RewardLearner):
        return learner.with_intercept(policy.constants)
    return learner


def _coarse(policy: Policy, basis: Basis | None) -> Learnt:
    """Let a similarity that is learnt from rewards see only the leading of a policy's features.

    Who is alike shows in few of them, and its cost rises with their cube.
    """
    similarity = policy.similarity
    assert isinstance(similarity, Learnt)
    if (
        isinstance(similarity, Evidence | Coregionalised | LearntLaplacian | LearntPopulation)
        and similarity.features is None
        and basis is not None
        and not is_finite(policy.kernel)
    ):
        return replace(similarity, features=Leading(basis))
    return similarity


def _without_strangers(heard: Lags, kernel: JointKernel) -> Lags:
    """Drop from each row the agents whom no chain of related agents links to the row's own.

    Where it is arms of agents that are related, a chain may begin and end at any arm.
    """
    sources, parts = heard.sources, kernel.parts
    if parts is not None:
        kept = parts[sources.rows] == parts[sources.agents]
        return heard if kept.all() else heard.kept(kept)
    kept = np.zeros(len(sources.agents), dtype=np.bool_)
    for members, agents in heard.groups:
        labels = kernel.linked(agents)
        for agent in members.tolist():
            own = labels[np.searchsorted(agents, agent)]
            start = sources.starts[agent]
            kept[start : start + len(agents)] = np.isin(labels, own).any(axis=1)
    return heard if kept.all() else heard.kept(kept)
