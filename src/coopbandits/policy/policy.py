"""An algorithm is four answers: whom do I listen to, what is it worth, how sure am I, how do I act?

A fifth, what do I tell, is "everything" unless a policy says otherwise. `Policy` is the row;
`policies/` names the rows of the paper.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from hashlib import sha256
from inspect import signature
from typing import TYPE_CHECKING, Any, TypedDict

from coopbandits.act import Act, Explore
from coopbandits.arrays import (
    Seed,
    as_count,
    as_positive,
    as_seed,
    instead,
    short,
)
from coopbandits.errors import ParameterError, StateError
from coopbandits.features import Basis, Exact, as_basis, is_finite
from coopbandits.forget import Exponential, Forget, as_forget
from coopbandits.gp.compositions import Composition, Hadamard, composition
from coopbandits.gp.intercept import Intercept, as_intercept
from coopbandits.kernels import Kernel
from coopbandits.listen import Listen
from coopbandits.network import Network
from coopbandits.say import Everything, Say
from coopbandits.scaling import Scaling, as_scaling
from coopbandits.similarity import (
    ArmNetwork,
    Given,
    Learnt,
    Similarity,
)
from coopbandits.width import Width

if TYPE_CHECKING:
    from coopbandits.agent import Agent

from coopbandits.policy.fingerprint import canonical

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
        spelled = {name: canonical(value) for name, value in named.items()}
        # values alone were hashed at first: what came later says what it is
        later = ("intercept", "scale", "scaling", "forget")
        return {k: f"{k}={text}" if k in later else text for k, text in spelled.items()}


def known_options(maker: Callable[..., Policy], options: Options) -> Options:
    """Return what a named policy was given beside its own answers; refuse what it does not take.

    Args:
        maker: The named policy, with `**options: Unpack[Options]`.
        options: What was given by name.
    """
    own = signature(maker).parameters.values()
    known = [one.name for one in own if one.kind in (one.POSITIONAL_OR_KEYWORD, one.KEYWORD_ONLY)]
    known += Options.__annotations__
    for key in options:
        if key not in known:
            raise ParameterError(f"{maker.__name__} takes no {key!r}{instead(key, known)}")
    return options


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
