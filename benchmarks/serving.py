"""What does an agent cost a service? The rows `decide`, `hear` and `memory` of agents.py.

Times are `time.thread_time`: CPU time of the thread that decides or hears, whatever else runs.
"""

import gc
import sys
import types
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from itertools import product
from time import perf_counter, process_time, sleep, thread_time
from typing import Any

import numpy as np

import coopbandits as cb

DIM, ACTIONS, TASKS, NOISE = 10, 8, 4, 0.3
LINEAR, RBF = cb.kernels.Linear(), cb.kernels.RBF()
HEARD, DECISIONS, TURNS, INLINE, PACE = (20, 60, 200), 4_000, 20, 200, 0.004
TIMES = 2  # all of it is measured so many times: what else runs on the machine changes it
EAGER = cb.similarity.Evidence(refresh="every round")  # K_z is due whenever a task is made
BLOCK, BLOCKS, REPEATS = 256, 20, 7
MESSAGES = (10**5, 10**6)

Facts = dict[str, Any]
Keep = Callable[[], None]


def policies() -> dict[str, cb.Policy]:
    """Return the policies that are measured: linear, exactly, and an RBF kernel by 64 features."""
    return {
        "linear": cb.EagerKernelUCB(LINEAR, eta=0.3, features=cb.features.Exact()),
        "Fourier(64)": cb.EagerKernelUCB(RBF, eta=0.3, features=cb.features.Fourier(64)),
    }


class World:
    """Agents of four linear tasks, whose observations are drawn as they are asked for."""

    def __init__(self, agents: int, seed: int = 0) -> None:
        self.rng = np.random.default_rng(seed)
        theta = self.sphere(TASKS)
        self.theta = theta[np.arange(agents) % TASKS]

    def sphere(self, count: int) -> Any:
        """Draw contexts."""
        X = self.rng.standard_normal((count, DIM))
        return X / np.linalg.norm(X, axis=1, keepdims=True)

    def rewards(self, origin: int, X: Any) -> Any:
        """Draw rewards."""
        return X @ self.theta[origin] + NOISE * self.rng.standard_normal(len(X))

    def tell(self, agent: cb.Agent, origin: int, count: int) -> None:
        """Let an agent hear of some observations."""
        X = self.sphere(count)
        agent.hear(origin, X, self.rewards(origin, X))


class Service:
    """An agent that is asked for decisions, while news of others comes in.

    Before each decision one observation of another agent has come; after it comes its reward, and
    the service waits a little, so that a thread that learns gets on.
    """

    def __init__(self, policy: cb.Policy, heard: int) -> None:
        """Let an agent know a little of everyone.

        Args:
            policy: With features.
            heard: From how many agents, itself among them.
        """
        self.world, self.heard = World(heard), heard
        self.agent = policy.agent(0, cb.Network.complete(heard))
        for origin in range(heard):
            self.world.tell(self.agent, origin, 12)
        self.agent.decide(self.world.sphere(ACTIONS))
        self.learning: Any = None
        self.count, self.adopting, self.tasks, self.working = 0, [0.0], 0, 0.0

    def decide(self, *, learn: bool) -> tuple[float, float]:
        """Return CPU and wall clock seconds of a decision."""
        self.count += 1
        self.world.tell(self.agent, 1 + self.count % (self.heard - 1), 1)
        offered = self.world.sphere(ACTIONS)
        since, start = perf_counter(), thread_time()
        decision = self.agent.decide(offered, learn=learn)
        cpu, wall = thread_time() - start, perf_counter() - since
        self.agent.reward(decision, float(self.world.rewards(0, decision.context[None])[0]))
        return cpu, wall

    def learn(self, pool: ThreadPoolExecutor) -> None:
        """Adopt what the thread has found, and give it the next task."""
        if self.learning is not None and not self.learning.done():
            return
        start = thread_time()
        if self.learning is not None:
            result, seconds = self.learning.result()
            self.agent.adopt(result)
            self.tasks, self.working = self.tasks + 1, self.working + seconds
        task = self.agent.learning_task()
        self.adopting.append(thread_time() - start)
        self.learning = None if task is None else pool.submit(timed, task)

    def rest(self) -> None:
        """Wait until the thread is done."""
        if self.learning is not None:
            self.learning.result()


def side_by_side(policy: cb.Policy, heard: int) -> dict[str, Facts]:
    """Time decisions with nobody learning and beside a thread that learns, in turns."""
    service, lasted = Service(policy, heard), 0.0
    found: dict[str, Any] = {"idle": [], "busy": []}
    with ThreadPoolExecutor(1) as pool:
        for turn in range(2 * TURNS):
            busy, begun = turn % 2 == 1, perf_counter()
            for _ in range(DECISIONS // TURNS):
                if busy:
                    service.learn(pool)
                found["busy" if busy else "idle"].append(service.decide(learn=False))
                sleep(PACE)
            lasted += busy * (perf_counter() - begun)
            service.rest()
    thread = {
        "tasks": service.tasks,
        "share of time learning": min(service.working / lasted, 1.0),
        "adopt and next task, p99": float(np.percentile(service.adopting, 99)),
    }
    return {"idle": facts_of(found["idle"]), "busy": facts_of(found["busy"]) | thread}


def facts_of(times: list[tuple[float, float]]) -> Facts:
    """Return percentiles of CPU and wall clock seconds."""
    cpu, wall = np.array(times).T
    return {
        "decisions": len(cpu),
        **{f"p{q}": float(np.percentile(cpu, q)) for q in (50, 99)},
        "wall p99": float(np.percentile(wall, 99)),
        "largest": float(cpu.max()),
    }


def timed(task: Any) -> tuple[Any, float]:
    """Run a task, and tell how long it took."""
    start = perf_counter()
    return task.run(), perf_counter() - start


def decide(known: Facts, keep: Keep, workers: int) -> None:
    """CPU seconds of a decision among 8 actions, K_z by Evidence, everyone heard.

    The thread estimates K_z in every task. `decide()` learns first, K_z when it is due.
    """
    for name, policy in policies().items():
        for heard, time in product(HEARD, range(1, TIMES + 1)):
            key = f"{name}|{heard}|{time}"
            if key not in known:
                service = Service(policy, heard)
                inline = facts_of([service.decide(learn=True) for _ in range(INLINE)])
                known[key] = side_by_side(replace(policy, similarity=EAGER), heard)
                known[key]["inline"] = inline
                print(key, known[key], flush=True)
                keep()


def decide_table(known: Facts) -> None:
    """Print times of decisions in milliseconds."""
    print("| | agents heard | p50 idle | p99 idle | p50 busy | p99 busy | busy/idle, p99 | "
          "p99/p50, busy | p99 of `decide()` |\n" + "|---" * 9 + "|")  # fmt: skip
    for name in policies():
        for heard, time in product(HEARD, range(1, TIMES + 1)):
            row = known[f"{name}|{heard}|{time}"]
            idle, busy, inline = (row[m] for m in ("idle", "busy", "inline"))
            cells = [f"{1e3 * row[p]:.2f}" for row in (idle, busy) for p in ("p50", "p99")]
            cells += [f"{busy['p99'] / idle['p99']:.2f}", f"{busy['p99'] / busy['p50']:.1f}"]
            print(f"| {name} | {heard} | {' | '.join(cells)} | {1e3 * inline['p99']:.1f} |")


def heard_in_blocks(policy: cb.Policy, heard: int) -> tuple[float, float]:
    """Return CPU seconds an observation: in blocks, and as messages one by one."""
    world, network = World(heard), cb.Network.complete(heard)
    agents = [policy.agent(0, network) for _ in range(2)]
    for agent in agents:
        agent.decide(np.eye(ACTIONS, DIM))
    size = agents[0]._inbox.attached
    blocks, messages = [], []
    for b in range(BLOCKS):
        origin, X = 1 + b % (heard - 1), world.sphere(BLOCK)
        y, attached = world.rewards(origin, X), world.rng.standard_normal((BLOCK, size))
        rounds = 1 + BLOCK * (b // (heard - 1)) + np.arange(BLOCK)
        blocks.append((origin, X, y, rounds, attached))
        messages += [
            cb.Message(int(t), origin, x, float(r), 1, a).to_bytes()
            for t, x, r, a in zip(rounds, X, y, attached, strict=True)
        ]
    start = thread_time()
    for origin, X, y, rounds, attached in blocks:
        agents[0].hear(origin, X, y, rounds=rounds, attached=attached)
    agents[0].learning_task()
    in_blocks = thread_time() - start
    start = thread_time()
    for data in messages:
        agents[1].receive(cb.Message.from_bytes(data))
    agents[1].learning_task()
    one_by_one = thread_time() - start
    assert agents[0].known == agents[1].known == BLOCK * BLOCKS
    return in_blocks / (BLOCK * BLOCKS), one_by_one / (BLOCK * BLOCKS)


def hear(known: Facts, keep: Keep, workers: int) -> None:
    """CPU seconds an observation, up to what learning starts from: blocks of 256, or messages."""
    given = cb.similarity.Laplacian(1.0)
    for name, evidence in policies().items():
        both = {"given": replace(evidence, similarity=given), "Evidence": evidence}
        for (K_z, policy), heard in product(both.items(), HEARD[::2]):
            key = f"{name}|{K_z}|{heard}"
            if key not in known:
                each = np.array([heard_in_blocks(policy, heard) for _ in range(REPEATS)])
                known[key] = {
                    "blocks": float(np.median(each[:, 0])),
                    "one by one": float(np.median(each[:, 1])),
                    "ratio": float(np.median(each[:, 0] / each[:, 1])),
                    "ratios": [round(float(r), 4) for r in each[:, 0] / each[:, 1]],
                }
                print(key, known[key], flush=True)
                keep()


def hear_table(known: Facts) -> None:
    """Print times of observations in microseconds."""
    print("| | K_z | agents heard | `hear`, blocks of 256 | `from_bytes` + `receive` | ratio |")
    print("|---" * 6 + "|")
    for key, facts in known.items():
        name, K_z, heard = key.split("|")
        cells = f"{1e6 * facts['blocks']:.1f} | {1e6 * facts['one by one']:.1f}"
        print(f"| {name} | {K_z} | {heard} | {cells} | {facts['ratio']:.3f} |")


def deep_size(root: Any, apart: tuple[Any, ...]) -> int:
    """Return how many bytes a value takes with all that it refers to, but for some values."""
    seen, total, todo = {id(one) for one in apart}, 0, [root]
    while todo:
        one = todo.pop()
        if id(one) in seen or isinstance(one, type | types.ModuleType | types.FunctionType):
            continue
        seen.add(id(one))
        total += sys.getsizeof(one)
        if isinstance(one, np.ndarray):
            todo.append(one.base)
        else:
            todo += gc.get_referents(one)
    return total


def lived(policy: cb.Policy, messages: tuple[int, ...]) -> dict[int, Facts]:
    """Let an agent take messages of three neighbours and three agents behind them.

    γ = 2. A tenth of its own decisions never gets a reward, and neither does a tenth of the
    others': their rounds have gaps.
    """
    world, rng = World(7), np.random.default_rng(1)
    network = cb.Network.from_edges([(0, 1), (0, 2), (0, 3), (1, 4), (2, 5), (3, 6)])
    agent = policy.agent(0, network)
    count, t, found, start = 0, 0, {}, process_time()
    while count < messages[-1]:
        t += 1
        X = world.sphere(6 + ACTIONS)
        decision = agent.decide(X[6:])
        if rng.random() >= 0.1:
            agent.reward(decision, float(world.rewards(0, decision.context[None])[0]))
        for origin in (np.flatnonzero(rng.random(6) >= 0.1) + 1).tolist():
            x = X[origin - 1]
            y = float(world.theta[origin] @ x + NOISE * rng.standard_normal())
            ttl = 2 if origin <= 3 else 1
            agent.receive(cb.Message(t, origin, x, y, ttl, np.zeros(agent._inbox.attached)))
            count += 1
            if count in messages:
                apart = (policy, network, agent._plan)
                found[count] = {
                    "snapshot": len(agent.to_bytes()),
                    "deep size": deep_size(agent, apart),
                    "open decisions": len(agent.awaiting),
                    "rounds": t,
                    "CPU seconds": process_time() - start,
                }
    return found


def memory(known: Facts, keep: Keep, workers: int) -> None:
    """Bytes of an agent with features, γ = 2, one decision in ten never rewarded."""
    policy = replace(policies()["linear"], ttl=2)
    if not known:
        known |= {str(count): facts for count, facts in lived(policy, MESSAGES).items()}
    keep()


def memory_table(known: Facts) -> None:
    """Print bytes, and their growth."""
    print("| messages | `len(agent.to_bytes())` | in memory | decisions that wait |")
    print("|---" * 4 + "|")
    for count, facts in known.items():
        cells = [f"{facts[key]:,}" for key in ("snapshot", "deep size", "open decisions")]
        print(f"| {int(count):,} | {' | '.join(cells)} |")
    first, last = known.values()
    grown = [f"{last[key] / first[key]:.3f}" for key in ("snapshot", "deep size")]
    print(f"| ratio | {' | '.join(grown)} | |")
