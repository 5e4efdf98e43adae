"""What must hold of every fleet, whatever happened to it."""

from collections import deque

import msgspec
import numpy as np

from coopbandits.fleet.core import actions as do, state
from coopbandits.fleet.core.entries import Decided, read
from coopbandits.fleet.core.feeds import MOST_EPOCHS
from coopbandits.fleet.core.node import NodeCore
from coopbandits.fleet.core.opening import opened
from coopbandits.fleet.face import Decide
from coopbandits.fleet.keys import HashKeys
from coopbandits.kernels import Linear
from coopbandits.listen import Myself
from fleet.simulation.ledger import Violation


def check_end(world):
    """After all faults are over and time has passed."""
    down = [host.name for host in world.nodes if not host.running]
    if down:
        raise Violation(f"{down} do not run in the end")
    forked = check_forks(world)
    for host in world.nodes:
        check_feeds(world, host, forked)
        check_own_feed(world, host, forked)
        check_beliefs(world, host)
        if not is_settled(host):
            raise Violation(f"{host.name} is busy for ever")
    replays(world, world.rng.choice(world.nodes))
    check_sizes(world)


# Equal feeds.


def check_forks(world):
    """Return origins with two records of one sequence; somebody has said so of each."""
    seen, forked = {}, set()
    for host in world.hosts:
        for (origin, epoch), records in host.ledger.records.items():
            for sequence, record in records.items():
                key = origin, epoch, sequence
                if seen.setdefault(key, record.hash) != record.hash:
                    forked.add(origin)
    if forked - {world.plan.victim} or (forked and not {"copy", "old log"} & {*world.plan.faults}):
        raise Violation(f"{sorted(forked)} wrote two records of one sequence")
    if forked - world.found:
        raise Violation(f"{sorted(forked)} forked, and nobody has said so")
    check_quarantine(world)
    return forked | world.found


def check_quarantine(world):
    """Nobody goes on with an origin of which neighbours hold other records of the same sequence."""
    held = {}
    for host in world.nodes:
        for (origin, epoch), records in host.ledger.records.items():
            for sequence, record in records.items():
                held.setdefault((origin, epoch, sequence), set()).add(record.hash)
    for origin in {key[0] for key, hashes in held.items() if len(hashes) > 1}:
        for host in world.nodes:
            one = host.core.feeds.origins.get(origin)
            if one is not None and not one.quarantined:
                raise Violation(f"{host.name} does not know that {origin} forked")


def check_feeds(world, host, forked):
    """Nodes within γ of an origin hold its feed as it does; nodes beyond hold nothing of it."""
    network = host.settings.network
    alone = isinstance(world.plan.policy.listen, Myself)
    hops = _hops(network, network.index(host.name), alone=alone)
    held = host.core.feeds.origins
    for origin in world.nodes:
        name = origin.name
        if hops.get(name, 99) > world.plan.policy.ttl:
            if name in held or any(key[0] == name for key in host.store._feeds):
                raise Violation(f"{host.name} holds records of {name}, who is beyond γ")
            continue
        if name in forked:
            continue
        mine, theirs = held[name], origin.core.feeds.origins[name]
        if mine.heads != theirs.heads:
            raise Violation(
                f"{host.name} holds {_short(mine.heads)} of {name}, who has {_short(theirs.heads)}"
            )
        for epoch, feed in mine.epochs.items():
            if not feed.held.sequence == feed.synced.sequence == feed.applied:
                raise Violation(f"{host.name} has not applied all of {name}")
            other = theirs.epochs.get(epoch)
            if not mine.heard or other is None or feed.sums is None or other.sums is None:
                if mine.heard and feed.applied:
                    raise Violation(f"{host.name} has no sums of {name}")
                continue
            if feed.sums.digest != other.sums.digest or feed.sums.count != feed.applied:
                raise Violation(f"{host.name} has other sums of {name} than itself")


def _short(heads):
    return [(epoch, sequence, digest.hex()[:6]) for epoch, sequence, digest in heads]


def _hops(network, start, *, alone):
    """Return how far each site is, by name: breadth first."""
    found, waiting = {start: 0}, deque([start])
    while waiting and not alone:
        v = waiting.popleft()
        for u in network.neighbours(v).tolist():
            if u not in found:
                found[u] = found[v] + 1
                waiting.append(u)
    return {network.names[v]: distance for v, distance in found.items()}


# Nothing acknowledged is lost, nothing is counted twice.


def check_own_feed(world, host, forked):
    """A node's own feed has one record of each event that was rewarded, as its users told it."""
    users, ledger, rules = world.users[host.name], host.ledger, host.settings.rewards
    events = {**world.replaced.get(host.name, {}), **ledger.recorded}
    named = {story.id: story for story in users.stories if story.id is not None}
    counted = {}
    if "copy" in world.plan.faults and not _all_own(ledger, events):
        return  # it has taken over what its copy wrote
    for (origin, epoch), records in ledger.records.items():
        if origin != host.name:
            continue
        for sequence, record in records.items():
            event, at = events.get((epoch, sequence), (None, None))
            if event is None and host.name in forked:
                continue
            if event is None:
                raise Violation(f"{host.name}: record {epoch} {sequence} is of no event")
            latest = max(at or 0.0, counted.get(event, 0.0))
            if event in counted and not _expired(host, event, latest):
                raise Violation(f"{host.name}: {event} is recorded twice")
            counted[event] = latest
            story = named.get(event)
            if story is not None and story.reply is not None:
                # A lost record that came back counts what had been told when an older log took the
                # place of the node's. What the node took since, before it knew of the record, does
                # not count: the event had been counted (docs/fleet.md, "Not promised").
                lost = (epoch, sequence) not in ledger.recorded
                _check_record(host, story, record, story.before if lost else story.outcomes(rules))
            elif story is None and not users.unnamed and host.name not in forked:
                raise Violation(f"{host.name}: nobody asked for {event}, which is recorded")
    if host.name in forked:
        return
    for story in users.stories:
        if story.reply is None or story.lost:
            continue
        learns = story.reply.group == "learner" or story.reply.mode == "apprentice"
        if not learns and story.id in counted:
            raise Violation(f"{host.name}: {story.id} of the {story.reply.group} is recorded")
        if story.rewarded and learns and story.id not in counted:
            raise Violation(f"{host.name}: {story.id} was rewarded, and is not recorded")
        if story.rewarded and not learns:
            value = ledger.ended.get(story.id, "nothing")
            if value not in story.outcomes(rules):
                raise Violation(f"{host.name}: {story.id} counts {value}")
        plain = all(one.state == "not" for one in story.told) and not story.request.deferred
        if plain and learns and (rules.default is not None) != (story.id in counted):
            raise Violation(f"{host.name}: {story.id} took the default {rules.default} wrongly")
        for one in story.told:
            times = ledger.rewarded.get(story.id, []).count((one.key, one.value))
            if one.key is not None and times > 1:
                raise Violation(f"{host.name}: {story.id} took {one.key} {times} times")
            if one.state == "counted" and not times:
                raise Violation(f"{host.name}: a reward of {story.id} was lost")


def _all_own(ledger, events):
    """Tell whether all records of a node's feed are of events that it has decided itself."""
    own = [(key, records) for key, records in ledger.records.items() if key[0] == ledger.name]
    return all((epoch, n) in events for (_, epoch), records in own for n in records)


def _expired(host, event, at):
    """Whether an event closed as it expired, before neighbours had said that they hold it.

    Only so may it be counted twice, after an older log has replaced the node's.
    """
    decided, rules = host.ledger.decided.get(event), host.settings.rewards
    if decided is None or not host.ledger.replaced:
        return False
    since = len([one for one in host.ledger.decided.values() if one.number > decided.number])
    return since >= rules.most - 4 or at >= decided.at + rules.ttl


def _check_record(host, story, record, allowed):
    context = next(a.context for a in story.request.actions if a.id == story.reply.action)
    if record.reward not in allowed:
        raise Violation(f"{host.name}: {story.id} is recorded as {record.reward}, not {allowed}")
    if list(record.context) != context:
        raise Violation(f"{host.name}: {story.id} is recorded with another context")


def check_beliefs(world, host):
    """What is learnt is all that is held, and is ridge regression where that is the policy."""
    core, policy = host.core, world.plan.policy
    if core.settings.mode == "off":
        return
    sums = core.feeds.sums([*core.feeds.origins])
    total = sum(feed.count for feeds in sums.values() for feed in feeds)
    if core.agent.known != total:
        raise Violation(f"{host.name} knows {core.agent.known} of {total} observations")
    beliefs = core.agent._beliefs
    if core.learning.busy or (policy.forget is None and beliefs is not None and beliefs.stale):
        raise Violation(f"{host.name} holds what it never learns")
    if policy.name != "EagerKernelUCB" or core.agent._plan.estimator or policy.forget or not total:
        return
    if not isinstance(policy.kernel, Linear):
        return
    records = [
        record
        for (origin, _), known in host.ledger.records.items()
        if origin in core.feeds.origins
        for record in known.values()
    ]
    if len(records) != total:
        return
    X = np.array([record.context for record in records])
    y = np.array([record.reward for record in records])
    weights = np.linalg.solve(X.T @ X + policy.ridge * np.eye(X.shape[1]), X.T @ y)
    probe = np.array([[0.3, -0.7], [1.0, 0.5]])
    mean = core.agent.predict(probe, learn=False).mean
    if not np.allclose(mean, probe @ weights, atol=1e-9):
        raise Violation(f"{host.name} believes {mean}, its records say {probe @ weights}")


# A replay is the same node.


def is_settled(host):
    """Tell whether nothing is under way at a node, so that it can be compared."""
    core, position = host.core, host.store.position
    synced = core.journal.position == position == core.applied == core.journal.synced
    return synced and not core.learning.busy and core.own.writing and host._refusing is None


def replays(world, host):
    """Make the node anew of its log; False if it is too busy to be compared."""
    core, store = host.core, host.store
    if not is_settled(host):
        return False
    live = state.stored(core)
    kept = store.first == 1 and all(
        len(entry.records) == _expected(entry) for _, entry in store.entries()
    )
    states = not kept or (bool(store.snapshots()) and world.rng.random() < 0.5)
    again = opened(host.settings, HashKeys(host.name), store, states=states)
    again.now = max(again.now, core.now)
    again.events.due(again.now)  # which events are ready follows from the time, not from the log
    again.events.expire(again.now)
    again.events.forget(again.now)
    one, other = _plain(live), _plain(state.stored(again))
    if one != other:
        different = [key for key in one if one[key] != other[key]]
        how = "from a snapshot" if states else "of the whole log"
        raise Violation(f"{host.name}: a replay {how} differs in {different}")
    _check_next(world, host, again, live)
    world.count(f"replayed {'a snapshot' if states else 'a log'}")
    return True


def _check_next(world, host, again, live):
    """The next decision is the same, too."""
    request = Decide(world.users[host.name]._new().request)
    made = []
    same = NodeCore(host.settings, HashKeys(host.name), state.network_of(live))
    state.restore(same, live)
    for core in (again, same):
        found = core.handle(do.Asked(1, request), host.core.now)
        entries = [e for a in found if isinstance(a, do.Append) for e in a.entries]
        made.append([read(e, 0) for e in entries if e.kind == 2])
    if made[0] != made[1] or not isinstance(made[0][0], Decided):
        raise Violation(f"{host.name}: a replay decides otherwise")


def _expected(entry):
    found = read(entry, 0)
    kind = type(found).__name__
    return 1 if kind == "Recorded" else found.last - found.first + 1 if kind == "Received" else 0


def _plain(data):
    """Read a stored state, without what it knows of cuts: a log does not say what was cut of it."""
    read = msgspec.msgpack.decode(data)
    for *_, epochs in read["feeds"]:
        for feed in epochs:
            feed[4] = 0
    return read


# Memory.


def check_sizes(world):
    """Nothing in a core grows with the length of the run."""
    for host in world.hosts:
        if not host.running:
            continue
        core, most = host.core, host.settings.rewards.most
        origins = len(core.feeds.origins)
        slack = 130  # decisions of one request, and what waits for a sync
        bounds = {
            "known": (len(core.events.known), most + slack + 200 * (not core.own.writing)),
            "gone": (len(core.events.gone), most),
            "due": (len(core.events._due), 2 * len(core.events.known) + slack),
            "ready": (len(core.events.ready), most + slack),
            "open": (len(core.agent._open), 2 * most + 1000),
            "asked": (len(core.exchange._asked), origins * (MOST_EPOCHS + 3)),
            "inbox": (len(core.agent._inbox.observations), most + slack),
            "refused": (len(core.exchange.refused), 7),
        }
        for name, (size, bound) in bounds.items():
            if size > bound:
                raise Violation(f"{host.name}: {name} has {size} elements, at most {bound}")
        for neighbour in core.exchange.neighbours.values():
            if len(neighbour.news) > origins + 1 or len(neighbour.offered) > origins * MOST_EPOCHS:
                raise Violation(f"{host.name}: what is known of a neighbour grows")
