"""Writes the assets that stand beside it, in the versions of the release that runs it.

    PYTHONPATH=src:tests python tests/assets/fleet/write.py tests/assets/fleet

Run it for a new version of the log or of the messages, and only then: files of old versions stay.
`log-vN` is the folder of site b on the path a - b - c, with entries of every kind, `state-vN.bin`
the state stored last in it, `facts-vN.json` what the node knew in the end, where N is the version
of states. `frames-v1.bin` holds a message of each kind, `feed-v1.bin` the records of a feed,
`checkpoint-v1.bin` a checkpoint.
"""

import json
import sqlite3
import sys
import tempfile
from pathlib import Path

import msgspec
import numpy as np

import coopbandits as cb
from coopbandits.agent import feeds
from coopbandits.fleet.checkpoint import Checkpoint, FeedBase
from coopbandits.fleet.core.actions import Arrived
from coopbandits.fleet.core.settings import RewardRules
from coopbandits.fleet.core.state import VERSION
from coopbandits.fleet.core.wire import Base, Have, Proof, Take, Want, WantBase, encoded
from coopbandits.fleet.face import Activate, Reward
from coopbandits.fleet.keys import HashKeys
from coopbandits.fleet.record import Feed
from coopbandits.fleet.store import SqliteStore
from coopbandits.protocol.messages import Observation
from fleet.driven import Driven, linear, path, settings_of

D, EPOCH = 3, 5


def settings():
    """What site b was told."""
    policy = linear(similarity=cb.similarity.Evidence(chains=2))
    rules = RewardRules(rule="last", wait=4.0, ttl=1000.0)
    return settings_of("b", path("abc"), policy=policy, rewards=rules, control=0.2, pace=3.0)


def observations(count):
    """Return observations with numbers that are easy to tell."""
    return [
        Observation(0, t, np.array([t / 4, -1.0, 1 / 3]), 0.1 * t, np.array([0.5, t / 8, -0.25]))
        for t in range(1, count + 1)
    ]


def records(fingerprint, origin, epoch, made):
    """Return the records of a feed."""
    feed, keys = Feed(fingerprint, origin, epoch), HashKeys(origin)
    head, found = feed.beginning, []
    for one in made:
        found.append(feed.record(head, one, keys))
        head = feed.head(found[-1])
    return found


def checkpoint(fingerprint, origin, epoch):
    """Return a checkpoint of a feed of a hundred records."""
    agent = settings().policy.agent(origin, path("abc"), expire=100)
    feeds.settle_dimension(agent, D)
    made = observations(100)
    sums = feeds.extended(
        agent, None, agent.agent, np.array([one.context for one in made]),
        np.array([one.reward for one in made]), [one.round for one in made],
        np.array([one.attached for one in made]),
    )  # fmt: skip
    base = FeedBase(epoch, 100, bytes(range(32)), D, feeds.stored_sums(sums))
    return Checkpoint.signed(fingerprint, origin, (base,), HashKeys(origin))


def messages(fingerprint):
    """Return a message of each kind."""
    made = records(fingerprint, "a", EPOCH, observations(2))
    head = Feed(fingerprint, "a", EPOCH).head(made[-1])
    return [
        Have({"a": [(EPOCH, 2, head.hash)]}, {"a": (EPOCH, 2)}, [(7, 1, bytes(32))], answer=True),
        Want("a", EPOCH, 0, 2),
        Take("a", EPOCH, 1, made),
        WantBase("a"),
        Base("a", checkpoint(fingerprint, "a", 7).data),
        Proof("a", EPOCH, *made),
    ]


def lived(store):
    """Let site b live through everything that a log can tell."""
    node = Driven(settings(), store, keys=HashKeys("b"))
    fingerprint = node.settings.policy.fingerprint
    node.write()

    def come(source, message):
        node.handle(Arrived(source, encoded(message)))

    for number in range(6):
        event = node.decide(deferred=number == 2).event_id
        if number == 2:
            node.ask(Activate(event))
        if number != 4:
            node.ask(Reward(event, number / 2, f"k{number}"))
        node.tick(1.0)
    come("a", Take("a", EPOCH, 1, records(fingerprint, "a", EPOCH, observations(4))))
    come("a", Base("a", checkpoint(fingerprint, "a", 7).data))
    one, other = (records(fingerprint, "c", EPOCH, observations(2)[k:]) for k in (0, 1))
    come("c", Take("c", EPOCH, 1, one[:1]))
    node.tick(5.0)
    node.do(node.core.snapshot())
    come("a", Proof("c", EPOCH, one[0], other[0]))
    node.decide(event_id="open")
    node.ask(Reward(node.decide(event_id="answered").event_id, 0.5))
    node.tick(5.0)
    node.decide(event_id="last")
    return node


def facts(core):
    """Return what a node knows, but for numbers that a build may round otherwise."""
    return {
        "fingerprint": core.settings.policy.fingerprint,
        "epoch": core.epoch,
        "position": core.journal.position,
        "adoptions": core.learning.adoptions,
        "decisions": core.counts.decisions,
        "known": core.agent.known,
        "awaiting": list(core.agent.awaiting),
        "heads": [
            [origin.name, epoch, feed.held.sequence, feed.held.hash.hex()]
            for origin, epoch, feed in core.feeds.all()
        ],
        "quarantined": [o.name for o in core.feeds.origins.values() if o.quarantined],
        "bases": {o.name: list(o.place) for o in core.feeds.origins.values() if o.base},
        "events": [
            [one.id, one.action, one.group, one.closed, one.reward, one.recorded, one.values]
            for one in core.events.known.values()
        ],
    }


def write(folder):
    """Write all assets."""
    with tempfile.TemporaryDirectory() as name:
        made = Path(name) / "log"
        made.mkdir()
        empty = sqlite3.connect(made / "log.sqlite")
        for setting in ("page_size = 512", "auto_vacuum = INCREMENTAL"):  # small pages, small file
            empty.execute(f"PRAGMA {setting}").fetchall()
        empty.execute("VACUUM")
        empty.close()
        store = SqliteStore(made, identity="b")
        node = lived(store)
        [(_, state)] = store.snapshots()
        store.close()
        kept = folder / f"log-v{VERSION}"
        kept.mkdir(exist_ok=True)
        for file in ("log.sqlite", "mark"):
            (kept / file).write_bytes((made / file).read_bytes())
    fingerprint = node.settings.policy.fingerprint
    (folder / f"state-v{VERSION}.bin").write_bytes(state)
    (folder / f"facts-v{VERSION}.json").write_text(json.dumps(facts(node.core), indent=1) + "\n")
    frames = msgspec.msgpack.encode([encoded(one) for one in messages(fingerprint)])
    (folder / "frames-v1.bin").write_bytes(frames)
    made = records(fingerprint, "a", EPOCH, observations(3))
    (folder / "feed-v1.bin").write_bytes(msgspec.msgpack.encode(made))
    (folder / "checkpoint-v1.bin").write_bytes(checkpoint(fingerprint, "a", 7).data)


if __name__ == "__main__":
    write(Path(sys.argv[1]))
