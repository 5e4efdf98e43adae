"""One agent on its own: decides at once, learns as rewards and messages come. No I/O.

The rules:

1. `decide` answers from what is known at that moment and opens a decision; its id is the agent's
   round. An agent that knows nothing yet chooses at random (in a simulation: the first round).
   `preview` answers the same and opens nothing.
2. `reward` closes a decision, whenever and in whatever order, or never; it returns what to send to
   `recipients`. `receive` takes a peer's message and returns what to hand on to `recipients` in
   the next round. `observe` takes history from before the start; it is told to nobody.
3. A call that raises has changed nothing. A peer can only cause a `RemoteProtocolError`.
4. The first context that the agent's own user gives fixes d. Messages that came before and have
   another d are dropped then.
5. A decision set is (K, d) contexts, or a continuum: a `Box` or a `Polytope` (docs/continuum.md).
"""

from dataclasses import dataclass, replace
from typing import Any, overload

import numpy as np
import numpy.typing as npt

from coopbandits import snapshot
from coopbandits.act import first_best
from coopbandits.arrays import (
    Array,
    IntArray,
    as_agent,
    as_contexts,
    as_count,
    as_reward,
    as_seed,
    as_vector,
    frozen,
    is_whole,
    short,
)
from coopbandits.compositions import JointKernel
from coopbandits.continuum import best_point
from coopbandits.decision_sets import Box, DecisionSet, Polytope
from coopbandits.errors import (
    InputError,
    LocalProtocolError,
    ParameterError,
    RemoteProtocolError,
    ShapeError,
    StateError,
)
from coopbandits.messages import Message, Relay
from coopbandits.model import Ahead, Attachments, Model, Observation
from coopbandits.network import Network, as_network
from coopbandits.policy import Policy, plan
from coopbandits.posterior import Belief, admits, refusal
from coopbandits.similarity import Loadings
from coopbandits.similarity.mean_embedding import FrozenKernel
from coopbandits.summed_model import SummedModel
from coopbandits.surface import ExactSurface, SummedSurface, Surface

# With features, observations wait for the next decision, but no more of them than this.
_MOST_PENDING = 1024


@dataclass(frozen=True, eq=False)
class Decision:
    """A choice, and what the agent believed of it.

    `mean`, `std` and `width` are those of the chosen action; None where the policy asks no
    posterior (an agent that follows its centre, or acts at random by design). `index` is −1 where
    `context` is a point of a continuum.
    """

    id: int
    index: int
    context: Array
    mean: float | None
    std: float | None
    width: float | None


class Agent:
    """One agent of a network under a policy; `policy.agent(v, network)` makes it."""

    def __init__(self, policy: Policy, network: Network, agent: int, *, seed: int = 0) -> None:
        _check_kinds(policy, network)
        self.policy, self.network = policy, network
        self._plan = plan(policy, network)
        self.agent = as_agent(agent, len(network))
        self._rng = agent_rng(as_seed(seed), self.agent)
        self._relay = Relay(self.agent, agents=len(network), ttl=policy.ttl)
        self._round = 0
        self._dim: int | None = None
        self._open: dict[int, Array] = {}
        self._observations: list[Observation] = []
        self._model: Model | SummedModel | None = None  # once d is known
        self._attachments = Attachments(self._plan)
        self._leader = int(self._plan.leaders[self.agent])
        self._arm: tuple[int, Array] | None = None  # the leader's last arm, with its round

    def __repr__(self) -> str:
        return f"Agent({self.agent} of {self.network!r}, {self.policy.name}, knows {self.known})"

    @property
    def known(self) -> int:
        """How many observations the agent has learnt from, its own and others'."""
        learnt = self._model.known if isinstance(self._model, SummedModel) else 0
        return learnt + len(self._observations)

    @property
    def recipients(self) -> IntArray:
        """To whom the agent's messages go, its own and those it hands on."""
        return self._plan.carrier.neighbours(self.agent)

    @property
    def awaiting(self) -> tuple[int, ...]:
        """The ids of the decisions that have no reward yet, in order."""
        return tuple(sorted(self._open))

    @property
    def estimated(self) -> int:
        """From how many observations K_z was last estimated; 0 where it is given."""
        if self._model is None:
            return 0
        return self._model.known if self._plan.frozen else self._model.estimated

    @property
    def similarity(self) -> Array:
        """What the agent takes each agent's news to be worth, 0 if it does not learn from it: (V,).

        As of its last decision; where embeddings are frozen, between the latest message of each
        agent and its own.
        """
        heard = np.isfinite(self._plan.lags[self.agent])
        kernel, model = self._plan.kernel, self._model
        if isinstance(kernel, JointKernel) and self._plan.learner is None:
            return np.where(heard, kernel.K_z[self.agent], 0.0)
        row = np.zeros(len(heard))
        row[self.agent] = 1.0
        if isinstance(kernel, FrozenKernel):
            latest = {o: x for o, x, _ in self._observations[: model.known if model else 0]}
            if self.agent in latest:
                others = np.array(list(latest.values()))
                row[list(latest)] = kernel.alike(latest[self.agent][None, :], others)[0]
        elif model is not None and model.loadings is not None:
            sources = model.sources
            row[sources] = model.loadings.matrix[0, np.searchsorted(sources, self.agent)]
        return row

    def decide(self, contexts: object) -> Decision:
        """Choose one of K offered actions, (K, d), or a point of a `Box` or `Polytope`."""
        offered = self._offered(contexts)
        held, drawn = (self._observations, self._arm, self._model), self._rng.bit_generator.state
        self._with_choice(offered, _first(offered))  # what it cannot take raises before all else
        try:
            choice = self._choose(offered)
            attachments = self._with_choice(offered, choice)
        except Exception:
            self._observations, self._arm, self._model = held
            self._rng.bit_generator.state = drawn
            raise
        self._attachments = attachments
        self._dim = len(choice.context)
        self._round += 1
        context = frozen(choice.context.copy())
        self._open[self._round] = frozen(np.append(context, attachments.newest))
        return Decision(self._round, choice.index, context, *choice.facts)

    @overload
    def preview(self, contexts: DecisionSet) -> Array: ...

    @overload
    def preview(self, contexts: npt.ArrayLike) -> int: ...

    def preview(self, contexts: object) -> int | Array:
        """Tell what `decide` would choose now: of (K, d) an index, of a continuum a point (d,).

        No decision is opened and no random number used up; what has arrived is learnt, as `decide`
        would.
        """
        offered = self._offered(contexts)
        held, drawn = (self._observations, self._arm, self._model), self._rng.bit_generator.state
        self._with_choice(offered, _first(offered))
        try:
            choice = self._choose(offered)
        except Exception:
            self._observations, self._arm, self._model = held
            raise
        finally:
            self._rng.bit_generator.state = drawn
        self._dim = len(choice.context)
        return choice.index if isinstance(offered, np.ndarray) else choice.context

    def reward(self, decision: int, y: float) -> list[Message]:
        """Learn what a decision brought, and return the message to send to `recipients`."""
        value = as_reward(y)
        if not is_whole(decision):
            raise LocalProtocolError(
                f"a decision's id is a whole number, as decision.id is; got {short(decision)}"
            )
        if decision not in self._open:
            raise LocalProtocolError(
                f"decision {decision} has its reward already"
                if 1 <= decision <= self._round
                else f"there is no decision {decision}; agent {self.agent} has taken {self._round}"
            )
        context = self._open.pop(decision)
        self._learn(self.agent, context, value)
        message = self._relay.send(int(decision), context, value)
        return [message] if len(self.recipients) else []

    def receive(self, message: Message) -> list[Message]:
        """Take a peer's message, and return what to hand on to `recipients` in the next round."""
        if not isinstance(message, Message):
            raise InputError(
                f"receive takes a Message, got {short(message)}; decode bytes with "
                "Message.from_bytes"
            )
        message = self._relay.check(message)
        if self._dim is not None and len(message.context) != self._attachments.width(self._dim):
            raise RemoteProtocolError(
                f"a message of agent {message.origin} has a context of {len(message.context)} "
                f"numbers; agent {self.agent} uses {self._attachments.width(self._dim)}"
            )
        if self._dim is not None and not self._admits(
            message.context[None, : self._dim], message.origin
        ):
            raise RemoteProtocolError(
                f"a message of agent {message.origin} has a context so large that the kernel "
                "leaves no digits there"
            )
        is_news, onward = self._relay.accept(message)
        if is_news and message.origin != self.agent:
            if np.isfinite(self._plan.lags[self.agent, message.origin]):
                self._learn(message.origin, message.context, message.reward)
            if message.origin == self._leader and (
                self._arm is None or message.round > self._arm[0]
            ):
                self._arm = (message.round, message.context)
        return onward

    def observe(self, context: object, y: float) -> None:
        """Learn one observation from history: (d,) and its reward. Nobody is told.

        An agent that acts at random, or follows its centre already, has no use for it.
        """
        vector, value = as_vector(context, "a context"), as_reward(y)
        self._check_own(vector[None, :])
        self._attachments = self._attachments.with_choice(vector[None, :], 0)
        self._drop_misfits(len(vector))
        self._dim = len(vector)
        self._learn(self.agent, frozen(np.append(vector, self._attachments.newest)), value)

    def to_bytes(self) -> bytes:
        """Store the agent, without its policy and network; versioned, no pickle."""
        width = 0 if self._dim is None else self._attachments.width(self._dim)
        opened = sorted(self._open)
        sizes = [len(context) for _, context, _ in self._observations]
        header = {
            "agent": self.agent,
            "policy": self.policy.fingerprint,
            "network": self.network.fingerprint,
            "round": self._round,
            "dim": self._dim,
            "arm_round": None if self._arm is None else self._arm[0],
            "rng": self._rng.bit_generator.state,
        }
        arrays = {
            "blocks": np.array(
                self._model.blocks if isinstance(self._model, Model) else [], dtype=np.int64
            ),
            "origins": np.array([o for o, _, _ in self._observations], dtype=np.int64),
            "rewards": np.array([y for _, _, y in self._observations]),
            "sizes": np.array(sizes, dtype=np.int64),
            "contexts": np.concatenate([np.empty(0), *(x for _, x, _ in self._observations)]),
            "open": np.array(opened, dtype=np.int64),
            "open_contexts": np.array([self._open[i] for i in opened]).reshape(len(opened), width),
            "hops": np.array(
                [[o, r, h] for (o, r), h in self._relay.hops.items()], dtype=np.int64
            ).reshape(-1, 3),
            "arm": np.empty(0) if self._arm is None else self._arm[1],
        }
        if self._relay.settled:
            arrays["settled"] = np.array(list(self._relay.settled.items()), dtype=np.int64)
        if isinstance(self._model, SummedModel):
            arrays["sums"], arrays["summaries"] = self._model.sums, self._model.summaries
            arrays["U"], arrays["delta"] = self._model.loadings.U, self._model.loadings.delta
        if self._plan.learner is not None:
            header["estimated"] = self._model.estimated if self._model else 0
            arrays["sample"] = self._attachments.sample
        return snapshot.pack(header, arrays)

    @classmethod
    def from_bytes(cls, data: bytes, *, policy: Policy, network: Network) -> "Agent":
        """Restore an agent that takes the same decisions, to the bit.

        From then on it must be the only one: bytes older than the agent's last decision or reward
        make it use ids again that neighbours and late rewards know already (docs/deploy.md).
        """
        _check_kinds(policy, network)
        header, arrays = snapshot.unpack(data)
        for what, expected in [("policy", policy.fingerprint), ("network", network.fingerprint)]:
            if header.get(what) != expected:
                raise StateError(
                    f"the agent was stored under another {what}; restore it with the one that it "
                    "was made with"
                )
        try:
            return cls(policy, network, header["agent"])._refilled(header, arrays)
        except (AttributeError, LookupError, OverflowError, TypeError, ValueError) as error:
            raise StateError(f"the stored agent's contents make no sense: {error!r}") from error

    def _refilled(self, header: dict[str, Any], arrays: dict[str, npt.NDArray[Any]]) -> "Agent":
        self._round, self._dim = as_count(header["round"], "round", least=0), header["dim"]
        self._rng.bit_generator.state = header["rng"]
        ends, origins = np.cumsum(arrays["sizes"]), arrays["origins"]
        if (
            ends[-1:].sum() != len(arrays["contexts"])
            or arrays["blocks"].sum() > len(origins)
            or not np.isin(origins, np.arange(len(self.network))).all()
            or (arrays["hops"] < [0, 1, 1]).any()
        ):
            raise ValueError("its arrays do not fit each other")
        contexts = np.split(arrays["contexts"], ends)[:-1]
        self._observations = [
            (int(o), frozen(x), float(y))
            for o, x, y in zip(origins, contexts, arrays["rewards"], strict=True)
        ]
        self._open = {
            int(i): frozen(x) for i, x in zip(arrays["open"], arrays["open_contexts"], strict=True)
        }
        self._relay.hops = {(int(o), int(r)): int(h) for o, r, h in arrays["hops"]}
        settled = arrays.get("settled", np.empty((0, 2), dtype=np.int64))
        self._relay.settled = {int(o): as_count(int(r), "round") for o, r in settled}
        if header["arm_round"] is not None:
            self._arm = (as_count(header["arm_round"], "round"), frozen(arrays["arm"]))
        blocks = arrays["blocks"].tolist()
        estimated = 0
        if self._plan.learner is not None:
            estimated = as_count(header["estimated"], "estimated", least=0)
            self._attachments = Attachments(self._plan, sample=arrays["sample"])
        if blocks and estimated not in (0, blocks[0]):
            raise ValueError("its arrays do not fit each other")
        if blocks:
            model = self._new_model(self._dim)
            assert isinstance(model, Model)
            model.replay(self._observations, blocks, estimated)
            self._model = model
        if "sums" in arrays:
            self._model = self._summed(arrays, estimated)
        return self

    def _summed(self, arrays: dict[str, npt.NDArray[Any]], count: int) -> SummedModel:
        """Put a stored model of sums together again."""
        empty = self._new_model(self._dim)
        if not isinstance(empty, SummedModel):
            raise ValueError("its policy keeps no sums")
        loadings = Loadings(arrays["U"], arrays["delta"])
        fits = (arrays["sums"].shape, arrays["summaries"].shape) == (
            empty.sums.shape,
            empty.summaries.shape,
        ) and loadings.U.shape[:2] == loadings.delta.shape == empty.loadings.delta.shape
        if not fits:
            raise ValueError("its arrays do not fit each other")
        return replace(
            empty,
            sums=arrays["sums"],
            summaries=arrays["summaries"],
            loadings=loadings,
            estimated=count,
        )

    def _offered(self, contexts: object) -> Array | DecisionSet:
        """Check a decision set: (K, d), or a continuum."""
        if isinstance(contexts, Box | Polytope):
            # no built-in kernel is larger anywhere than at the point furthest from 0
            furthest = np.maximum(np.abs(contexts.low), np.abs(contexts.high))
            self._check_own(np.array([furthest, contexts.low, contexts.high]))
            return contexts
        offered = as_contexts(contexts)
        self._check_own(offered)
        return offered

    def _with_choice(self, offered: Array | DecisionSet, choice: "_Choice") -> Attachments:
        if isinstance(offered, np.ndarray):
            return self._attachments.with_choice(offered, choice.index)
        return self._attachments.with_point(choice.context, offered.spread)

    def _check_own(self, contexts: Array) -> None:
        if self._dim not in (None, contexts.shape[1]):
            raise ShapeError(
                f"agent {self.agent} uses contexts of {self._dim} numbers, but got contexts of "
                f"{contexts.shape[1]} numbers"
            )
        if not self._admits(contexts, self.agent):
            raise refusal(contexts, self.policy.ridge)

    def _admits(self, contexts: Array, origin: int) -> bool:
        agents = np.full(len(contexts), origin)
        return admits(self._plan.border, self.policy.ridge, agents, contexts)

    def _learn(self, origin: int, context: Array, y: float) -> None:
        # an agent that follows, or acts at random, has no use for data
        if self.policy.act.judges and self._arm is None:
            self._observations.append((origin, context, y))
        if self.policy.features is not None and len(self._observations) >= _MOST_PENDING:
            self._add_up()

    def _add_up(self) -> None:
        """Put what is pending into sums, where a policy has features."""
        if self._dim is not None:
            model = self._model or self._new_model(self._dim)
            assert isinstance(model, SummedModel)
            self._model, self._observations = model.learnt(self._observations), []

    def _drop_misfits(self, dim: int) -> None:
        if self._dim is None:
            width = self._attachments.width(dim)
            self._observations = [
                (origin, context, y)
                for origin, context, y in self._observations
                if len(context) == width and self._admits(context[None, :dim], origin)
            ]
            if self._arm is not None and (
                len(self._arm[1]) != width
                or not self._admits(self._arm[1][None, :dim], self._leader)
            ):
                self._arm = None

    def _choose(self, offered: Array | DecisionSet) -> "_Choice":
        """Choose by chance, by the leader's arm or by the posterior."""
        finite = isinstance(offered, np.ndarray)
        dim = offered.shape[1] if isinstance(offered, np.ndarray) else offered.dim
        self._drop_misfits(dim)
        if not self.policy.act.judges:
            return self._at_random(offered)
        if self._arm is not None:
            arm = self._arm[1][:dim]
            rows = offered if isinstance(offered, np.ndarray) else offered.nearest(arm)[None, :]
            index = self.policy.act.follow(arm, rows)
            return _Choice(index if finite else -1, rows[index])
        return self._judge(offered, dim)

    def _at_random(self, offered: Array | DecisionSet) -> "_Choice":
        if isinstance(offered, np.ndarray):
            index = int(self._rng.integers(len(offered)))
            return _Choice(index, offered[index])
        return _Choice(-1, offered.sample(self._rng, 1)[0])

    def _judge(self, offered: Array | DecisionSet, dim: int) -> "_Choice":
        """Choose by the posterior."""
        model = self._model or self._new_model(dim)
        thought: Ahead | SummedModel
        if isinstance(model, SummedModel):
            thought = model.learnt(self._observations)
        else:
            thought = model.ahead(self._observations)
        finite = isinstance(offered, np.ndarray)
        rows = offered if isinstance(offered, np.ndarray) else self._sought(offered, thought)
        law = offered if isinstance(offered, np.ndarray) else offered.spread
        belief, width = self._believe(thought, rows, law)
        scores = self.policy.act.score(belief.mean, belief.std, width)
        if isinstance(thought, Ahead):
            self._model = thought.commit()
        else:  # what is in the sums need not be kept
            self._model, self._observations = thought, []
        if belief.count[0] == 0:  # Alg. 1, l. 4-5
            index = int(self._rng.integers(len(rows)))
        else:
            index = int(first_best(scores[None, :])[0])
        facts = float(belief.mean[index]), float(belief.std[index]), float(width[index])
        return _Choice(index if finite else -1, rows[index], facts)

    def _sought(self, offered: DecisionSet, thought: Ahead | SummedModel) -> Array:
        """Look for the best point of a continuum; any, if nothing is known: (1, d)."""
        any_point = offered.sample(self._rng, 1)
        belief, width = self._believe(thought, any_point, offered.spread)
        if belief.count[0] == 0:
            return any_point
        surface: Surface
        if isinstance(thought, SummedModel):
            surface = SummedSurface(thought)
        else:
            surface = ExactSurface(thought, self._attachments, offered.spread)
        act, w = self.policy.act, float(width[0])
        return best_point(offered, surface, act, w, self._rng, self._observations)[None, :]

    def _believe(
        self, thought: Ahead | SummedModel, X: Array, offered: Array
    ) -> tuple[Belief, Array]:
        """Return belief and width at m contexts, given all that is offered."""
        if isinstance(thought, SummedModel):
            belief = thought.predict(X)
        else:
            belief = thought.predict(self._attachments.asked(X, offered))
        width = self.policy.width.factor(
            logdet=belief.logdet,
            count=belief.count,
            ridge=self.policy.ridge,
            agents=np.full(len(X), self._plan.union[self.agent]),
        )
        return belief, width

    def _new_model(self, dim: int | None) -> Model | SummedModel:
        make = Model if self.policy.features is None else SummedModel.empty
        return make(self.policy, self._plan, self.agent, as_count(dim, "dim"))


@dataclass(frozen=True, eq=False)
class _Choice:
    """What was chosen: a row of what was offered, or −1; its context; mean, std and width."""

    index: int
    context: Array
    facts: tuple[float | None, float | None, float | None] = (None, None, None)


def _first(offered: Array | DecisionSet) -> _Choice:
    return _Choice(0, offered[0] if isinstance(offered, np.ndarray) else offered.low)


def _check_kinds(policy: object, network: object) -> None:
    if not isinstance(policy, Policy):
        raise ParameterError(f"expected a policy such as coopbandits.LinUCB(), got {short(policy)}")
    as_network(network)


def agent_rng(seed: int, agent: int) -> np.random.Generator:
    """The random numbers of one agent, in a simulation and outside of one."""
    return np.random.default_rng(np.random.SeedSequence([seed, agent]))
