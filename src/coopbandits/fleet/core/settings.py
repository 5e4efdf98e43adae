"""What a node is told once: who it is, how it decides, when rewards count, how often it learns.

A node promises what `checked` lets in; the rest is refused at the start, with the reason.
"""

from dataclasses import dataclass, replace
from typing import Literal

from coopbandits.act import FollowCentre, Sample, UpperBound, within
from coopbandits.arrays import as_reward, short
from coopbandits.errors import ParameterError
from coopbandits.features import Exact, is_finite
from coopbandits.fleet.api import Mode
from coopbandits.listen import Clique, Myself, Neighbourhood
from coopbandits.network import Network
from coopbandits.policy import Policy
from coopbandits.say import Everything

Rule = Literal["first", "last", "sum"]


@dataclass(frozen=True, kw_only=True)
class RewardRules:
    """Which rewards count, and when.

    Attributes:
        rule: Of several rewards of an event: the first, the last or their sum.
        wait: Seconds after a decision at which its rewards are counted; None: the first closes it.
        default: What counts if none has come by then; None: nothing is learnt.
        ttl: Seconds for which an event is known; after that it is 410 Gone.
        most: How many events are known at the most; the oldest expire early.
    """

    rule: Rule = "first"
    wait: float | None = None
    default: float | None = None
    ttl: float = 24 * 3600.0
    most: int = 100_000

    def __post_init__(self) -> None:
        if self.rule not in ("first", "last", "sum"):
            raise ParameterError(f"rewards.rule must be first, last or sum, got {short(self.rule)}")
        if self.rule != "first" and self.wait is None:
            raise ParameterError(
                f'rewards.rule = "{self.rule}" needs rewards.wait, the seconds after which the '
                "rewards of a decision are counted"
            )
        if self.default is not None and self.wait is None:
            raise ParameterError(
                "rewards.default needs rewards.wait, the seconds after which it counts"
            )
        if self.default is not None:
            as_reward(self.default, "rewards.default")
        if self.wait is not None and not 0 < self.wait <= self.ttl:
            raise ParameterError(
                f"rewards.wait must be above 0 and at most the events' ttl of {self.ttl:g} s, got "
                f"{short(self.wait)}"
            )
        if not self.ttl > 0 or self.most < 10:
            raise ParameterError(
                f"events.ttl must be above 0 and events.most at least 10, got {self.ttl:g} and "
                f"{self.most}"
            )


@dataclass(frozen=True, kw_only=True)
class Settings:
    """All that a core is told.

    Attributes:
        fleet: The fleet's name.
        name: The node's, one of the network's.
        network: The sites and their edges.
        policy: How its agent decides.
        seed: Of the agent's own random numbers.
        mode: online, apprentice or off.
        control: The share of events that the fixed policy serves and nobody learns from.
        explore: The share of the learner's decisions in which any action is taken, each alike, so
            that a log tells what other policies are worth.
        rewards: Which count, and when.
        pace: Seconds between two learning tasks.
        heads_wait: Seconds for which a starting node waits for neighbours to say how its own feed
            ends, before it writes to it.
        have_every: Seconds between two offers to each neighbour.
        want_timeout: Seconds after which what was asked for may be asked for again.
        block_bytes: A block of records has at most so many.
        checkpoint_every: A feed gets a checkpoint at each so many records.
        snapshot_every: The state is kept at each so many entries.
        keep_entries: So many entries stay in the log, whatever else could be cut.
    """

    fleet: str
    name: str
    network: Network
    policy: Policy
    seed: int = 0
    mode: Mode = "online"
    control: float = 0.0
    explore: float = 0.0
    rewards: RewardRules = RewardRules()
    pace: float = 0.2
    heads_wait: float = 2.0
    have_every: float = 1.0
    want_timeout: float = 2.0
    block_bytes: int = 256_000
    checkpoint_every: int = 10_000
    snapshot_every: int = 5_000
    keep_entries: int = 1_000_000

    def __post_init__(self) -> None:
        object.__setattr__(self, "policy", checked(self.policy, self.network))
        self.network.index(self.name)
        if self.mode not in ("online", "apprentice", "off"):
            raise ParameterError(f"mode must be online, apprentice or off, got {short(self.mode)}")
        for name, share in (("control", self.control), ("explore", self.explore)):
            if not 0 <= share < 1:
                raise ParameterError(
                    f"{name} is a share of events, from 0 to below 1, got {short(share)}"
                )
        act = self.policy.act
        single = isinstance(act, UpperBound) or (isinstance(act, Sample) and act.samples == 1)
        if self.explore and not single:
            raise ParameterError(
                f"explore={short(self.explore)} beside act={short(act)}, which explores "
                "or chooses in its own way; leave one of the two out"
            )
        if self.checkpoint_every % 100 or self.checkpoint_every < 100:
            raise ParameterError(
                f"checkpoint_every must be a multiple of 100, got {self.checkpoint_every}"
            )


def checked(policy: Policy, network: Network) -> Policy:
    """Return the policy with which a node keeps its promises, or say why there is none."""
    said = f"a node cannot run the policy {policy.name}: "
    if network.directed:
        raise ParameterError(
            "a node needs a network whose edges go both ways: its feeds are asked for as well as "
            "offered; give an undirected one"
        )
    if not isinstance(policy.say, Everything):
        raise ParameterError(
            f"{said}say={short(policy.say)} leaves out observations, and feeds have no gaps; leave "
            "say= out"
        )
    if isinstance(within(policy.act), FollowCentre):
        raise ParameterError(
            f"{said}its agents follow a leader, which a node that decides without any peer cannot; "
            "take CoopKernelUCB or EagerKernelUCB"
        )
    if not policy.act.judges:
        raise ParameterError(
            f"{said}its agents act at random and learn nothing; take another, with explore= for "
            "chance"
        )
    if not isinstance(policy.listen, Myself | Neighbourhood | Clique):
        raise ParameterError(
            f"{said}listen={short(policy.listen)} hears agents beyond γ hops; take one that "
            "listens to its neighbourhood or its clique"
        )
    if policy.features is None:
        if not is_finite(policy.kernel):
            raise ParameterError(
                f"{said}{short(policy.kernel)} keeps every observation, and a node runs for ever; "
                "give the policy features=, such as Fourier(64), or a linear kernel"
            )
        policy = replace(policy, features=Exact())
    return policy
