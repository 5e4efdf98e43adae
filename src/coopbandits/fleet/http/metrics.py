"""Metrics as Prometheus reads them: of the requests, and of the node as its status says.

Every application has a registry of its own, so that several nodes may live in one process.
"""

from collections.abc import Iterable, Iterator

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    ProcessCollector,
    generate_latest,
)
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, InfoMetricFamily
from prometheus_client.exposition import CONTENT_TYPE_LATEST
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from coopbandits.fleet.api import StatusReply
from coopbandits.fleet.face import Face

MEDIA_TYPE = CONTENT_TYPE_LATEST
PREFIX = "coopbandits"
SECONDS = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0)

_COUNTERS = {
    "decisions": "Decisions taken, over all starts",
    "adoptions": "How often new beliefs were adopted",
}
_GAUGES = {
    "ready": "Whether the node takes requests",
    "learning": "Whether a learning task is running",
    "epoch": "Epoch of the node's feed",
    "started_at": "When the node started, in seconds since 1970",
    "open_events": "Events that wait for a reward",
    "observations": "Observations that the node has learnt from, its own and others'",
    "own_records": "Records in the node's own feed",
    "position": "Entries that the log has had",
    "synced": "Entries that are durable",
    "disk_bytes": "Bytes that log and index take",
}


class Metrics:
    """The registry of one application, and what it counts of requests."""

    def __init__(self, face: Face) -> None:
        self.registry = CollectorRegistry()
        self.requests = Counter(
            f"{PREFIX}_http_requests",
            "Requests that were answered",
            ("route", "status"),
            registry=self.registry,
        )
        self.seconds = Histogram(
            f"{PREFIX}_http_request_seconds",
            "From a request's head to the end of its answer",
            ("route",),
            buckets=SECONDS,
            registry=self.registry,
        )
        self.subscribers = Gauge(
            f"{PREFIX}_http_subscribers",
            "Connections that the notes are streamed to",
            registry=self.registry,
        )
        self.registry.register(_NodeMetrics(face))
        ProcessCollector(registry=self.registry)

    def text(self) -> bytes:
        """Return all metrics in the text format."""
        return generate_latest(self.registry)


class RouteMetrics:
    """What is counted of one route: labels are looked up once, not with every request."""

    __slots__ = ("_by_status", "_name", "_observe", "_requests")

    def __init__(self, metrics: Metrics, name: str) -> None:
        self._requests, self._name = metrics.requests, name
        self._observe = metrics.seconds.labels(name).observe
        self._by_status: dict[int, Counter] = {}

    def count(self, status: int, seconds: float) -> None:
        """Count an answer."""
        counter = self._by_status.get(status)
        if counter is None:
            counter = self._by_status[status] = self._requests.labels(self._name, str(status))
        counter.inc()
        self._observe(seconds)


class _NodeMetrics(Collector):
    """Makes metrics of the node's status when they are asked for."""

    def __init__(self, face: Face) -> None:
        self._face = face

    def describe(self) -> Iterable[Metric]:
        # Without this the registry would ask for the status before the node has started.
        return []

    def collect(self) -> Iterator[Metric]:
        status = self._face.status()
        yield InfoMetricFamily(
            f"{PREFIX}_node",
            "Which node this is",
            {
                "fleet": status.fleet,
                "node": status.node,
                "mode": status.mode,
                "policy": status.policy,
                "model_version": status.model_version,
                "version": status.version,
            },
        )
        for name, help_text in _COUNTERS.items():
            yield CounterMetricFamily(f"{PREFIX}_{name}", help_text, getattr(status, name))
        for name, help_text in _GAUGES.items():
            yield GaugeMetricFamily(f"{PREFIX}_{name}", help_text, float(getattr(status, name)))
        quarantined = GaugeMetricFamily(
            f"{PREFIX}_quarantined", "Origins of which two records contradict each other"
        )
        quarantined.add_metric([], len(status.quarantined))
        yield quarantined
        refused = CounterMetricFamily(
            f"{PREFIX}_refused_messages", "Messages that were refused", labels=["reason"]
        )
        for reason, count in status.refused.items():
            refused.add_metric([reason], count)
        yield refused
        yield from _rewards(status)


def _rewards(status: StatusReply) -> Iterator[Metric]:
    counts = CounterMetricFamily(
        f"{PREFIX}_rewards", "Rewards that have been counted", labels=["group"]
    )
    means = GaugeMetricFamily(f"{PREFIX}_reward_mean", "Mean reward", labels=["group"])
    rewards = status.rewards
    arms = {"learner": rewards.learner, "control": rewards.control, "baseline": rewards.baseline}
    for group, arm in arms.items():
        counts.add_metric([group], arm.count)
        if arm.mean is not None:
            means.add_metric([group], arm.mean)
    yield counts
    yield means
    if status.agreement is not None:
        yield GaugeMetricFamily(
            f"{PREFIX}_agreement",
            "Share of decisions in which the node would have taken what was taken",
            status.agreement,
        )
