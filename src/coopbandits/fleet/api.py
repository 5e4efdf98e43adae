"""What a node's HTTP interface takes and gives: plain values, no NumPy.

Server and client share these; the OpenAPI document is made of them.
"""

from typing import Annotated, Literal

from msgspec import Meta, Struct

Identifier = Annotated[str, Meta(min_length=1, max_length=200, pattern=r"^[\x21-\x7e]+$")]
ActionName = Annotated[str, Meta(min_length=1, max_length=200)]
# The bounds of what agents take: larger numbers leave no digits.
Number = Annotated[float, Meta(ge=-1e15, le=1e15)]
Context = Annotated[list[Number], Meta(min_length=1, max_length=10_000)]
Mode = Literal["online", "apprentice", "off"]
Group = Literal["learner", "control", "baseline"]
EventState = Literal["deferred", "open", "closed"]


class Action(Struct, frozen=True, forbid_unknown_fields=True):
    """One action that may be taken, with its context.

    Attributes:
        id: What the caller calls it; unique among the actions of a decision.
        context: (d,) numbers that describe it; d is the same in all decisions of a fleet.
    """

    id: ActionName
    context: Context


class DecideRequest(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """Ask for a decision.

    Attributes:
        actions: What may be chosen from. The first is what a fixed policy would take.
        event_id: By which the reward will name this decision; made by the node, if not given. The
            same id with the same body gets the same answer.
        exclude: Ids of actions that must not be taken this time.
        taken: Which action an outside policy takes; only of a node in mode "apprentice".
        deferred: Whether the event waits for its activation before a default reward may come.
    """

    actions: Annotated[list[Action], Meta(min_length=1, max_length=1000)]
    event_id: Identifier | None = None
    exclude: list[ActionName] = []
    taken: ActionName | None = None
    deferred: bool = False


class Score(Struct, frozen=True):
    """What is believed of one action's reward: mean, σ and upper confidence bound."""

    id: str
    mean: float
    std: float
    upper: float


class DecideReply(Struct, frozen=True):
    """A decision.

    Attributes:
        event_id: To be named with the reward.
        action: The id of the action to take.
        ranking: The ids of all actions that were not excluded, the best first.
        scores: What is believed of them, in the order of the request; none where no belief was
            asked.
        propensity: With which probability the action was taken; null where that is not known.
        model_version: Which beliefs decided.
        mode: The node's.
        group: Who decided: the learner, or the fixed policy for the control group (or in mode "off"
            or "apprentice": "baseline").
    """

    event_id: str
    action: str
    ranking: list[str]
    scores: list[Score]
    propensity: float | None
    model_version: str
    mode: Mode
    group: Group


class DecideManyRequest(Struct, frozen=True, forbid_unknown_fields=True):
    """Ask for several decisions at once; all are taken, or none."""

    decisions: Annotated[list[DecideRequest], Meta(min_length=1, max_length=100)]


class DecideManyReply(Struct, frozen=True):
    """Several decisions, in the order in which they were asked for."""

    decisions: list[DecideReply]


class RewardRequest(Struct, frozen=True, forbid_unknown_fields=True):
    """Say what a decision brought."""

    value: Number


class EventReply(Struct, frozen=True):
    """An event: one decision and what became of it.

    Attributes:
        event_id: Its id.
        state: deferred (waits for its activation), open (takes rewards) or closed.
        action: The id of the action that was taken.
        propensity: With which probability.
        group: Who decided.
        decided_at: When, in seconds since 1970.
        closes_at: When its rewards are counted, or it expires; null once it is closed.
        values: How many rewards have come.
        reward: What counts, by the node's rule; null while it is open.
        recorded: Whether it stands in the node's feed, from which all within γ hops learn.
    """

    event_id: str
    state: EventState
    action: str
    propensity: float | None
    group: Group
    decided_at: float
    closes_at: float | None
    values: int
    reward: float | None
    recorded: bool


class Arm(Struct, frozen=True):
    """Rewards of one group of events: how many, their mean, and half of its 95% interval."""

    count: int
    mean: float | None
    half_width: float | None


class Rewards(Struct, frozen=True):
    """Rewards by who decided.

    Attributes:
        learner: Of events that the learner decided.
        control: Of the control group's.
        difference: Of the two means.
        half_width: Half of the difference's 95% interval.
        baseline: Of events that an outside or a fixed policy decided, in mode "apprentice" or
            "off".
    """

    learner: Arm
    control: Arm
    difference: float | None
    half_width: float | None
    baseline: Arm = Arm(0, None, None)


class StatusReply(Struct, frozen=True):
    """How a node is.

    Attributes:
        fleet: The fleet's name.
        node: The node's.
        mode: online, apprentice or off.
        ready: Whether it answers.
        policy: What the policy is called.
        model_version: Which beliefs decide now.
        version: Of coopbandits.
        epoch: Of its feed.
        now: The node's clock, in seconds since 1970.
        started_at: When it started.
        decisions: How many it has taken, over all its starts.
        open_events: How many wait for a reward.
        observations: How many it has learnt from, its own and others'.
        own_records: How many stand in its own feed.
        adoptions: How often new beliefs were adopted.
        learning: Whether a task is running.
        adopted_at: When beliefs were last adopted; null for never.
        rewards: Of learner, control group and baseline.
        agreement: In mode "apprentice": the share of decisions in which the node would have done
            the same.
        position: How many entries its log has had.
        synced: Up to which they are durable.
        disk_bytes: What log and index take.
        refused: How many messages were refused, by reason.
        quarantined: Origins of which two records contradict each other.
        control_share: The share of events that goes to the control group, in mode "online".
    """

    fleet: str
    node: str
    mode: Mode
    ready: bool
    policy: str
    model_version: str
    version: str
    epoch: int
    now: float
    started_at: float
    decisions: int
    open_events: int
    observations: int
    own_records: int
    adoptions: int
    learning: bool
    adopted_at: float | None
    rewards: Rewards
    agreement: float | None
    position: int
    synced: int
    disk_bytes: int
    refused: dict[str, int]
    quarantined: list[str]
    control_share: float = 0.0


class Peer(Struct, frozen=True):
    """A site of the network, as the node sees it.

    Attributes:
        name: Its name.
        distance: Hops from here; null if there is no way.
        neighbour: Whether an edge joins it to the node.
        linked: Whether that link is up; null where there is none.
        heard: Whether the node learns from it.
        records: How many of its records the node holds.
        behind: How many records of its own feed the neighbour is known to lack; null if not known.
        last_at: When its last record came; null for never.
        worth: What its observations are worth to the node, 0 … 1: its entry of K_z.
    """

    name: str
    distance: int | None
    neighbour: bool
    linked: bool | None
    heard: bool
    records: int
    behind: int | None
    last_at: float | None
    worth: float


class PeersReply(Struct, frozen=True):
    """All sites, and the edges between them."""

    node: str
    ttl: int
    peers: list[Peer]
    edges: list[tuple[str, str]]


class SimilarityReply(Struct, frozen=True):
    """Whom the node trusts: its row of K_z by name, and from how many observations."""

    node: str
    estimated: bool
    observations: int
    worth: dict[str, float]


class Problem(Struct, frozen=True, omit_defaults=True):
    """What went wrong, as RFC 9457 has it (application/problem+json).

    Attributes:
        type: A URI reference that names the kind, such as "/problems/event-closed".
        title: The kind in words.
        status: The HTTP status.
        detail: What was given, what is expected and what to do.
        retry_after: Seconds after which another try makes sense.
    """

    type: str
    title: str
    status: int
    detail: str
    retry_after: float | None = None
