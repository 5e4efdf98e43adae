"""What goes wrong, and when: drawn from the seed."""

from coopbandits.fleet.ports import StoreError
from coopbandits.fleet.store.memory import MemoryStore
from fleet.simulation import invariants
from fleet.simulation.host import Host
from fleet.simulation.users import Users


def schedule(world):
    """Draw when each fault happens."""
    plan, rng = world.plan, world.rng
    for kind, times in sorted(plan.faults.items()):
        for _ in range(times):
            world.after(rng.uniform(4.0, plan.seconds), _FAULTS[kind], world)
    if plan.newcomer:
        world.after(rng.uniform(0.2, 0.7) * plan.seconds, grow, world)
    if plan.burst is not None:
        name, count = plan.burst
        world.after(5.0, world.users[name].burst, count)
    for _ in range(2):
        world.after(rng.uniform(4.0, plan.seconds), audit, world)
    world.after(0.9 * plan.seconds, invariants.check_sizes, world)


def end(world):
    """End all faults; nodes that are down start, copies go."""
    for host in [*world.hosts]:
        host.store.full_at(None)
        host.store._failures.clear()
        host.learner_fails = 0
        if host.copy and host.running:
            host.crash()
        if host.copy:
            world.hosts.remove(host)
    world.wires.heal()
    for host in world.nodes:
        if not (host.ended and host.ended[0] == 5):
            world.revive(host)


def crash(world):
    """Let a node end at once, and start again."""
    host = _any(world)
    if host is not None:
        host.crash()
        world.after(world.rng.uniform(0.2, 4.0), world.revive, host)


def stop(world):
    """Let a node end as told, and start again."""
    host = _any(world)
    if host is not None:
        host.stop()
        world.after(world.rng.uniform(0.2, 4.0), world.revive, host)


def set_clock(world):
    """Let a node start again with another time on its clock."""
    host = _any(world)
    if host is not None:
        host.crash()
        host.skew += world.rng.choice([-600.0, -8.0, 8.0, 600.0])
        world.count("clock")
        world.after(world.rng.uniform(0.2, 4.0), world.revive, host)


def lose_snapshot(world):
    """Let a node start without its newest snapshot, as if that were damaged."""
    host = _any(world)
    if host is not None:
        host.crash()
        snapshots = host.store.snapshots()
        if snapshots and (len(snapshots) > 1 or host.store.first == 1):
            del host.store._snapshots[snapshots[0][0]]
            world.count("lost snapshot")
        world.after(world.rng.uniform(0.2, 4.0), world.revive, host)


def part(world):
    """Let a link be down."""
    a, b = world.rng.choice(world.plan.edges)
    world.wires.cut(a, b, world.rng.uniform(2.0, 15.0))


def deafen(world):
    """Let messages be lost in one direction."""
    a, b = world.rng.choice(world.plan.edges)
    if world.rng.random() < 0.5:
        a, b = b, a
    world.wires.deafen(a, b, world.rng.uniform(2.0, 15.0))


def fill(world):
    """Let a node's disk be full for some time."""
    host = _any(world)
    if host is not None:
        host.store.full_at(host.store.disk_bytes + world.rng.randrange(3000))
        world.count("full disk")
        world.after(world.rng.uniform(2.0, 8.0), lambda: host.store.full_at(None))


def fail_sync(world):
    """Let a sync fail."""
    host = _any(world)
    if host is not None:
        host.store.fail_next_sync(StoreError("the disk is broken, as was planned"))
        world.count("fsync error")


def stall(world):
    """Let syncs and learning take long."""
    host = _any(world)
    if host is not None:
        host.stall(world.rng.uniform(0.5, 4.0))
        host.learner_fails += 1
        world.count("stall")


def restore(world):
    """Replace a node's log by a backup, and say so."""
    _back_up(world, restored=True)


def forget(world):
    """Replace a node's log by an older one, and do not say so."""
    _back_up(world, restored=False)


def _back_up(world, *, restored):
    host = world.node(world.plan.victim)
    store, ledger = copied(host.store), host.ledger.copied()

    def replace():
        if host.running:
            host.crash()
        before = world.replaced.setdefault(host.name, {})
        before.update(host.ledger.recorded)
        host.store, host.ledger, host.held = store, ledger.copied(), True
        host.ledger.replaced = True
        world.users[host.name].went_back(host.ledger)
        world.count("restored" if restored else "old log")
        # Longer than any message takes.
        world.after(4.0, begin)

    def begin():
        host.held = False
        world.revive(host, restored=restored)

    world.after(world.rng.uniform(1.0, 15.0), replace)


def copy(world):
    """Let a second copy of a node run, with users of its own."""
    host = world.node(world.plan.victim)
    if not host.running:
        return
    ledger = host.ledger.copied()
    ledger.position = host.store.position
    twin = Host(world, host.settings, store=copied(host.store), ledger=ledger, seed="copy")
    twin.copy = True
    world.hosts.append(twin)
    twin.start()
    users = Users(world, twin)
    users.seed_apart()
    world.after(1.0, users.work)
    world.users["a copy"] = users
    world.count("copy")


def resolve_fork(world, host):
    """Let an operator end the copy, if there is one, and begin a new epoch."""
    for other in [*world.hosts]:
        if other.copy and other.name == host.name:
            if other.running:
                other.crash()
            world.hosts.remove(other)
    world.revive(host, restored=True)


def grow(world):
    """Let a site join: its neighbours are told when they start again, one after another."""
    world.grown = True
    world.count("newcomer")
    for host in world.hosts:
        host.settings = world.plan.told(host.name, grown=True)
        world.after(world.rng.uniform(0.0, 5.0), _begin_again, world, host)
    world.settle(world.plan.sites[-1])


def _begin_again(world, host):
    if host.running:
        host.stop()
        world.after(0.5, world.revive, host)


def audit(world):
    """Make a node anew of its log, and compare; a little later if it is busy."""
    host = _any(world)
    if host is None or not invariants.replays(world, host):
        if not world.wires.calm:
            world.after(0.3, audit, world)


def copied(store):
    """Return a store with the same durable content."""
    other = MemoryStore()
    other._entries, other._first = [*store._entries], store._first
    other._feeds = {key: dict(feed) for key, feed in store._feeds.items()}
    other._any_cut, other._snapshots = store._any_cut, dict(store._snapshots)
    other._bytes = store._bytes
    return other


def _any(world):
    running = [host for host in world.nodes if host.running]
    return world.rng.choice(running) if running else None


_FAULTS = {
    "crash": crash,
    "partition": part,
    "one-way": deafen,
    "full disk": fill,
    "fsync error": fail_sync,
    "stall": stall,
    "clock": set_clock,
    "lost snapshot": lose_snapshot,
    "stop": stop,
    "restore": restore,
    "old log": forget,
    "copy": copy,
}
