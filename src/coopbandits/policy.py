"""An algorithm is four answers: whom do I listen to, what is it worth, how sure am I, how do I act?

A fifth, what do I tell, is "everything" unless a policy says otherwise. `Policy` is the row;
`policies/` names the rows of the paper. `plan` works a policy's answers out
for one network, once, for the simulator and for single agents alike.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, is_dataclass, replace
from functools import cached_property, lru_cache
from hashlib import sha256
from types import BuiltinFunctionType, FunctionType
from typing import TYPE_CHECKING, Any, TypedDict

import numpy as np

from coopbandits.act import Act, Explore
from coopbandits.arms import ActiveDimensions
from coopbandits.arrays import (
    CAME_LATER,
    Array,
    IntArray,
    Seed,
    as_count,
    as_positive,
    as_seed,
    frozen,
    short,
)
from coopbandits.errors import ParameterError, StateError
from coopbandits.features import Basis, Exact, Leading, Remembered, as_basis, is_finite
from coopbandits.forget import Exponential, Forget, as_forget
from coopbandits.gp.compositions import Composition, Hadamard, JointKernel, composition
from coopbandits.gp.intercept import Intercept, as_intercept
from coopbandits.gp.network_kernel import ClusterKernel, NetworkKernel
from coopbandits.kernels import Kernel, Product, Sum
from coopbandits.listen import Listen
from coopbandits.network import Lags, Network, as_network
from coopbandits.network.lags import as_lags
from coopbandits.say import Everything, Say
from coopbandits.scaling import Scaling, as_scaling
from coopbandits.similarity import (
    ArmNetwork,
    Evidence,
    Given,
    Learned,
    Learnt,
    Similarity,
    joint_kernel,
)
from coopbandits.similarity.evidence import EvidenceLearner
from coopbandits.similarity.hypotheses import Estimator
from coopbandits.similarity.laplacian import LearntLaplacian
from coopbandits.similarity.learned import RewardLearner
from coopbandits.similarity.mean_embedding import EmbeddingLearner, FrozenKernel
from coopbandits.similarity.similarity import Learner
from coopbandits.width import Width

if TYPE_CHECKING:
    from coopbandits.agent import Agent


_ANSWERS = {
    "kernel": Kernel,
    "listen": Listen,
    "similarity": Given | Learnt,
    "width": Width,
    "act": Act,
    "say": Say,
}


_SUCH_AS = {
    "kernel": "coopbandits.kernels.RBF(), called, not a class or a name",
    "listen": "coopbandits.listen.Neighbourhood()",
    "similarity": "coopbandits.similarity.Evidence(), Known(matrix=…) of a matrix or Clusters(…) "
    "of labels",
    "width": "coopbandits.width.SelfNormalised()",
    "act": "coopbandits.act.UpperBound()",
    "say": "coopbandits.say.Everything()",
}


# What fingerprints call these classes: the names under which agents with them were first stored.
_STORED_AS = {ActiveDimensions: "On", Product: "Multiplied", Sum: "Added"}


class Options(TypedDict, total=False):
    """What every named policy takes beside its own answers, as `Policy` has it."""

    intercept: float | None
    scale: float
    scaling: Scaling | None
    forget: Forget | None


@dataclass(frozen=True, eq=False, kw_only=True)
class Policy:
    """One row of the table of algorithms.

    Policies are equal, and have one hash, if their fingerprints are: if all answers are equal,
    whatever their names. A policy with an answer that has no fingerprint, such as a lambda, is
    equal to itself only.

    Args:
        name: What tables and figures call it.
        kernel: K_x, between action contexts.
        listen: Whom do I listen to?
        similarity: How much is their news worth to me? (K_z)
        width: How sure am I?
        act: How do I act?
        ttl: γ, the hops after which a message is dropped.
        ridge: λ.
        compose: How K_z and K_x make K: "hadamard", "kronecker" (the same) or "sum".
        features: Finite features that stand for K_x (`coopbandits.features`), so that an agent's
            memory and time per decision stay the same however much it has seen; None for K_x
            itself, exactly.
        say: What do I tell? Everything, unless given (`coopbandits.say`).
        intercept: τ, the prior deviation of a constant that each agent's rewards have for
            themselves (`gp/intercept.py`); None for rewards around 0, as the paper's are.
        scale: What rewards are divided by. What agents believe and return is in units of the
            rewards as they are; what they send is y/scale.
        scaling: How contexts in raw units become numbers of size 1 (`coopbandits.Scaling`).
        forget: By which rule old observations fade (`coopbandits.forget`); None for never.

    Example:
        >>> policy = cb.Policy(
        ...     name="neighbours alike",
        ...     kernel=cb.kernels.RBF(),
        ...     listen=cb.listen.Neighbourhood(),
        ...     similarity=cb.similarity.Laplacian(rho=1.0),
        ...     width=cb.width.Fixed(0.3),
        ...     act=cb.act.UpperBound(),
        ...     ttl=2,
        ... )
        >>> cb.Policy.from_spec(policy.to_toml()) == policy
        True
    """

    name: str
    kernel: Kernel
    listen: Listen
    similarity: Similarity
    width: Width
    act: Act
    ttl: int = 1
    ridge: float = 1.0
    compose: str | Composition = "hadamard"
    features: Basis | None = None
    say: Say = field(default_factory=Everything)
    intercept: float | None = None
    scale: float = 1.0
    scaling: Scaling | None = None
    forget: Forget | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.name, str):
            raise ParameterError(f"name must be a text, got {short(self.name)}")
        for answer, protocol in _ANSWERS.items():
            given = getattr(self, answer)
            if not isinstance(given, protocol) or isinstance(given, type):
                raise ParameterError(
                    f"{answer}={short(given)} is no {answer}; expected a value such as "
                    f"{_SUCH_AS[answer]}"
                )
        object.__setattr__(self, "ttl", as_count(self.ttl, "ttl"))
        object.__setattr__(self, "ridge", as_positive(self.ridge, "ridge"))
        object.__setattr__(self, "compose", composition(self.compose))
        object.__setattr__(self, "scale", as_positive(self.scale, "scale"))
        object.__setattr__(self, "intercept", as_intercept(self.intercept, self.ridge))
        as_scaling(self.scaling)
        as_forget(self.forget)
        as_basis(self.features)
        if self.say.sums and self.features is None:
            if not is_finite(self.kernel):
                raise ParameterError(
                    f"say={short(self.say)} tells sums of features, which {short(self.kernel)} has "
                    "not; give features=, such as coopbandits.features.Fourier(64)"
                )
            object.__setattr__(self, "features", Exact())
        sums = "forget=Exponential(…)" if isinstance(self.forget, Exponential) else "features="
        needs_sums = self.features is not None or isinstance(self.forget, Exponential)
        if needs_sums and not isinstance(self.compose, Hadamard):
            raise ParameterError(
                f"{sums} needs compose='hadamard'; other compositions take the kernel itself"
            )
        if needs_sums and isinstance(self.similarity, ArmNetwork):
            raise ParameterError(
                f"{sums} needs a K_z between agents; ArmNetwork, between arms of agents, takes "
                "the kernel itself"
            )

    @property
    def basis(self) -> Basis | None:
        """Of which features agents keep sums; None where they keep observations."""
        if self.features is None and isinstance(self.forget, Exponential):
            return Exact() if is_finite(self.kernel) else None
        return self.features

    @property
    def constants(self) -> Intercept | None:
        """Of agents' own constants, where rewards have any."""
        return None if self.intercept is None else Intercept(self.intercept**2, self.ridge)

    def agent(
        self, agent: int | str, network: Network, *, seed: Seed = 0, expire: int | None = None
    ) -> "Agent":
        """Make one agent of a network, to be used outside a simulation.

        Args:
            agent: By number or name.
            network: The agents.
            seed: Of its own choices.
            expire: After how many more decisions one without a reward expires; 10,000 unless given.

        Example:
            >>> network = cb.Network.from_edges([("north", "south")])
            >>> cb.LinUCB().agent("south", network, seed=1).agent
            1
        """
        from coopbandits.agent import Agent  # noqa: PLC0415 (an agent knows its policy)

        more = {} if expire is None else {"expire": expire}
        return Agent(self, network, agent, seed=as_seed(seed), **more)

    def named(self, name: str) -> "Policy":
        """Return the same policy under another name, for tables and figures.

        Args:
            name: The other name.

        Example:
            >>> policy = cb.LinUCB(eta=0.3).named("on its own")
            >>> policy.name, policy == cb.LinUCB(eta=0.3)
            ('on its own', True)
        """
        return replace(self, name=name)

    def exploring(self, share: float = 0.05) -> "Policy":
        """Return the policy whose agents take any offered action with probability `share`.

        Every action has a known propensity then, and a log of it tells the value of other policies
        (`coopbandits.act.Explore`).

        Args:
            share: In [0, 1).

        Example:
            >>> cb.LinUCB().exploring(0.1).act
            Explore(act=UpperBound(), share=0.1)
        """
        return replace(self, act=Explore(self.act, share))

    def spec(self) -> dict[str, Any]:
        """Return the policy as plain values: nested dicts and lists of texts and numbers.

        `Policy.from_spec` makes a policy with the same fingerprint of them (docs/policy-files.md).

        Example:
            >>> cb.KernelUCB(cb.kernels.RBF(lengthscale=0.5)).spec()["kernel"]
            {'kind': 'RBF', 'lengthscale': 0.5}
        """
        from coopbandits.spec import spec_of  # noqa: PLC0415 (a spec knows all answers)

        return spec_of(self)

    def to_toml(self) -> str:
        """Return `spec()` as the text of a policy file, to be written wherever one likes.

        Example:
            >>> policy = cb.LinUCB(eta=0.3, intercept=10)
            >>> "intercept = 10.0" in policy.to_toml()
            True
            >>> cb.Policy.from_spec(policy.to_toml()) == policy
            True
        """
        from coopbandits.spec import to_toml  # noqa: PLC0415

        return to_toml(self.spec())

    @staticmethod
    def from_spec(spec: Mapping[str, Any] | str) -> "Policy":
        """Make the policy that a spec describes; no file is opened.

        Args:
            spec: What `spec()` returns, or TOML text such as `to_toml()` returns. A table's `kind`
                may also be a named policy, whose arguments the other keys are, and one word may
                stand for a table: kernel = "RBF".

        Example:
            >>> spec = {"spec": 1, "kind": "KernelUCB", "kernel": "RBF", "eta": 0.3}
            >>> cb.Policy.from_spec(spec) == cb.KernelUCB(cb.kernels.RBF(), eta=0.3)
            True
        """
        from coopbandits.spec import policy_of  # noqa: PLC0415

        return policy_of(spec)

    def __eq__(self, other: object) -> bool:
        if self is other or not isinstance(other, Policy):
            return self is other
        return self._identity is not None and self._identity == other._identity

    def __hash__(self) -> int:
        return object.__hash__(self) if self._identity is None else hash(self._identity)

    @cached_property
    def _identity(self) -> str | None:
        """What equal policies share; None where functions cannot be told apart."""
        try:
            return self.fingerprint
        except (StateError, RecursionError):
            return None

    @cached_property
    def fingerprint(self) -> str:
        """A hash of all answers, in any process; the name is no answer."""
        return sha256(f"[{','.join(self.answers.values())}]".encode()).hexdigest()

    @property
    def answers(self) -> dict[str, str]:
        """Each answer, spelled out so that equal ones, and only these, give equal text."""
        named = {one.name: getattr(self, one.name) for one in fields(self)}
        del named["name"]
        if self.features is None:  # as before there were any
            del named["features"]
        if isinstance(self.say, Everything):
            del named["say"]
        if self.scale == 1.0:
            del named["scale"]
        for option in ("intercept", "scaling", "forget"):
            if named[option] is None:
                del named[option]
        spelled = {name: _canonical(value) for name, value in named.items()}
        # values alone were hashed at first: what came later says what it is
        later = ("intercept", "scale", "scaling", "forget")
        return {k: f"{k}={text}" if k in later else text for k, text in spelled.items()}


def refuse_kernel(
    policy: str, given: tuple[object, ...], options: Mapping[str, object], *, instead: str
) -> None:
    """Refuse a kernel, or anything by position, where a policy has a kernel of its own.

    Args:
        policy: Its name.
        given: What was given by position.
        options: What was given by name.
        instead: Which policy takes a kernel.
    """
    kernels = [value for value in (*given, options.get("kernel")) if isinstance(value, Kernel)]
    if kernels or "kernel" in options:
        value = kernels[0] if kernels else options["kernel"]
        raise ParameterError(
            f"{policy} takes no kernel, but got {short(value)}; coopbandits.{instead} takes one"
        )
    if given:
        raise ParameterError(
            f"{policy} takes its settings by name, but got {short(given[0])}; expected such as "
            f"{policy}(ridge=1.0)"
        )


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
            raise ParameterError(f"agents that take turns within a round (lag=0) take no {option}=")
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
        isinstance(similarity, Evidence | Learned | LearntLaplacian)
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


def _canonical(value: Any) -> str:
    """Spell a value out so that equal answers, and only these, give equal text in any process."""
    kind = _STORED_AS.get(type(value), type(value).__qualname__)
    if isinstance(value, np.ndarray):
        digest = sha256(np.ascontiguousarray(value).tobytes()).hexdigest()
        return f"array({value.dtype.str},{value.shape},{digest})"
    if isinstance(value, float):
        return value.hex()
    if isinstance(value, tuple | list):
        return f"[{','.join(map(_canonical, value))}]"
    if isinstance(value, dict):
        return f"{{{','.join(f'{key}={_canonical(value[key])}' for key in sorted(value))}}}"
    if isinstance(value, FunctionType | BuiltinFunctionType):
        if "<" in value.__qualname__:  # <lambda>, <locals>: two of them may bear one name
            raise StateError(
                f"{value.__qualname__} cannot be told from other functions of that name, so an "
                "agent with it cannot be stored; use a named function of a module"
            )
        return f"{value.__module__}.{value.__qualname__}"
    if is_dataclass(value):
        facts = {
            one.name: getattr(value, one.name)
            for one in fields(value)
            if one.metadata != CAME_LATER or getattr(value, one.name) != one.default
        }
    elif repr(value) == object.__repr__(value):
        if not hasattr(value, "__dict__"):
            raise StateError(
                f"{short(value)} cannot be told from other values of its class, so an agent with "
                "it cannot be stored; give its class a __repr__ that says what is in it"
            )
        facts = vars(value)
    else:
        return f"{kind}:{value!r}"
    return f"{kind}{_canonical(facts)}"
