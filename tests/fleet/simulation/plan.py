"""What a world is made of, drawn from its seed: sites, policy, settings, and how often what fails.

Different seeds give worlds that differ in kind: most have a few nodes and a minute of faults, some
one node that is asked for so much that its log is cut.
"""

from dataclasses import dataclass
from random import Random

import coopbandits as cb
from coopbandits.fleet.core.settings import RewardRules, Settings

LINEAR = cb.kernels.Linear()
DIM = 2


@dataclass(frozen=True, kw_only=True)
class Plan:
    """A world.

    Attributes:
        seed: From which all is drawn.
        sites: Their names, in order; a newcomer is the last.
        edges: Between sites.
        newcomer: Whether the last site joins later.
        policy: Of all nodes.
        settings: What the nodes are told besides, by name.
        seconds: How long there are faults.
        asking: Mean seconds between two requests at a node.
        burst: How many decisions of which node are asked for at once, so that its log grows long.
        drop: The share of messages that are lost; `double`, `corrupt` likewise.
        delay: Mean seconds that a message takes, and the longest.
        sync: Mean seconds that a sync takes.
        learning: Mean seconds that a learning task takes.
        faults: How often what happens.
        victim: The site whose log is replaced by an older one, or that has a second copy.
    """

    seed: int
    sites: tuple[str, ...]
    edges: tuple[tuple[str, str], ...]
    newcomer: bool
    policy: cb.Policy
    settings: dict[str, dict]
    seconds: float
    asking: float
    burst: tuple[str, int] | None
    drop: float
    double: float
    corrupt: float
    delay: tuple[float, float]
    sync: float
    learning: float
    faults: dict[str, int]
    victim: str

    def network(self, *, grown: bool) -> cb.Network:
        """Return the sites that there are, before or after the newcomer's joining."""
        there = self.sites if grown or not self.newcomer else self.sites[:-1]
        edges = [(a, b) for a, b in self.edges if a in there and b in there]
        return cb.Network.from_edges(edges, names=there)

    def told(self, name: str, *, grown: bool) -> Settings:
        """Return what a node is told."""
        network = self.network(grown=grown)
        return Settings(
            fleet="simulated", name=name, network=network, policy=self.policy,
            **self.settings[name],
        )  # fmt: skip


def drawn(seed: int) -> Plan:
    """Draw a world."""
    rng = Random(f"world {seed}")
    sites = tuple(f"site {v}" for v in range(rng.choice([2, 3, 3, 4, 4, 5, 6])))
    newcomer = len(sites) > 2 and rng.random() < 0.2
    long = rng.random() < 0.1
    rules = _rules(rng)
    common = {
        "rewards": rules,
        "heads_wait": rng.choice([0.5, 1.0, 3.0]),
        "have_every": rng.choice([2.0, 5.0]),
        "want_timeout": rng.choice([1.0, 2.0]),
        "pace": rng.choice([1.0, 3.0]),
        "block_bytes": rng.choice([500, 2_000, 256_000]),
        "checkpoint_every": 100,
        "snapshot_every": rng.choice([30, 100, 5_000]) if not long else rng.choice([60, 150]),
        "keep_entries": rng.choice([1, 50, 1_000_000]) if not long else rng.choice([1, 50]),
    }
    control = rng.choice([0.0, 0.0, 0.3])
    settings = {
        name: {
            **common,
            "seed": v,
            "mode": rng.choice(["online"] * 8 + ["apprentice", "off"]),
            "control": control,
        }
        for v, name in enumerate(sites)
    }
    if long:
        settings[sites[0]]["mode"] = "online"
    # A site has a fault of each kind so often, in the mean of all worlds.
    faults = {
        kind: rng.choice(counts)
        for kind, counts in {
            "crash": [0, 1, 2, 4],
            "partition": [0, 1, 3],
            "one-way": [0, 0, 1],
            "full disk": [0, 0, 1, 2],
            "fsync error": [0, 0, 1],
            "stall": [0, 0, 1],
            "clock": [0, 0, 1],
            "lost snapshot": [0, 0, 1],
            "stop": [0, 0, 1],
        }.items()
    }
    # The worst faults exclude each other: each is told by what has to follow.
    worst = rng.choice(["none"] * 5 + ["restore", "old log", "copy"])
    if worst != "none":
        faults[worst] = 1
    return Plan(
        seed=seed,
        sites=sites,
        edges=_edges(rng, sites),
        newcomer=newcomer,
        policy=_policy(rng, long=long),
        settings=settings,
        seconds=rng.choice([30.0, 60.0]),
        asking=rng.choice([2.0, 4.0]) * len(sites) / 3,
        burst=(sites[0], rng.choice([240, 350])) if long else None,
        drop=rng.choice([0.0, 0.05, 0.3]),
        double=rng.choice([0.0, 0.1]),
        corrupt=rng.choice([0.0, 0.0, 0.05]),
        delay=rng.choice([(0.02, 0.1), (0.2, 2.0)]),
        sync=rng.choice([0.005, 0.05, 0.3]),
        learning=rng.choice([0.05, 0.5, 4.0]),
        faults=faults,
        victim=rng.choice(sites[:-1]),
    )


def _edges(rng: Random, sites: tuple[str, ...]) -> tuple[tuple[str, str], ...]:
    """Join each site to one before it, and some others."""
    edges = {(sites[rng.randrange(v)], sites[v]) for v in range(1, len(sites))}
    for _ in range(rng.choice([0, 0, 1, 3])):
        a, b = sorted(rng.sample(sites, 2))
        edges.add((a, b))
    return tuple(sorted(edges))


def _rules(rng: Random) -> RewardRules:
    rule = rng.choice(["first", "first", "last", "sum"])
    wait = rng.choice([3.0, 8.0]) if rule != "first" or rng.random() < 0.5 else None
    default = rng.choice([None, 0.0, -0.5]) if wait is not None else None
    ttl, most = rng.choice([(10.0, 1000), (1000.0, 1000), (1000.0, 10), (1000.0, 30)])
    return RewardRules(rule=rule, wait=wait, default=default, ttl=ttl, most=most)


def _policy(rng: Random, *, long: bool) -> cb.Policy:
    ttl, same = rng.choice([1, 2, 2, 3]), cb.similarity.Same()
    exact = cb.features.Exact()
    kinds = {
        "pooled": lambda: cb.EagerKernelUCB(LINEAR, similarity=same, ttl=ttl),
        "features": lambda: cb.EagerKernelUCB(
            cb.kernels.RBF(), similarity=same, ttl=ttl, features=cb.features.Fourier(4)
        ),
        "clique": lambda: cb.CoopKernelUCB(LINEAR, similarity=same, ttl=ttl),
        "embedding": lambda: cb.CoopKernelUCB(
            LINEAR, similarity=cb.similarity.MeanEmbedding(0.7), ttl=ttl, intercept=2.0
        ),
        "samples": lambda: cb.EagerKernelTS(LINEAR, similarity=same, ttl=ttl),
        "fading": lambda: cb.EagerKernelUCB(
            LINEAR, similarity=same, ttl=ttl, forget=cb.forget.Exponential(20.0)
        ).exploring(0.2),
        "alone": lambda: cb.LinUCB(features=exact),
        "evidence": lambda: cb.EagerKernelUCB(
            LINEAR, similarity=cb.similarity.Evidence(chains=rng.choice([1, 2])), ttl=ttl
        ),
    }
    usual = ["pooled"] * 5 + ["features", "features", "clique", "embedding", "samples", "fading"]
    return kinds[rng.choice(usual if long else [*usual, "alone", "evidence"])]()
