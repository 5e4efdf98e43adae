"""Algorithms 1 (Coop), 2 (Eager) and 3 (Dist) of the paper, line by line, and Thompson sampling.

One agent at a time, explicit inverses, real message lists. Line numbers are those of the paper's
pseudocode. Corrected as docs/paper-map.md says: the inverse of K + λ at t = 1, the delay of d − 1
rounds, ties to the lowest index; following goes to the nearest offered action. Partitions, kernels
and widths are inputs.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

# K between rows of augmented contexts: (agents, contexts), (agents, contexts) -> matrix
Kernel = Callable[[list[int], np.ndarray, list[int], np.ndarray], np.ndarray]
# the factor of σ, from the Gram matrix of what the agent knows, λ and the agent
Width = Callable[[np.ndarray, float, int], float]
# (round, agent) -> contexts (K, d) and rewards (K,)
World = Callable[[int, int], tuple[np.ndarray, np.ndarray]]


def fixed(eta: float) -> Width:
    return lambda K, ridge, v: eta / np.sqrt(ridge)


@dataclass
class Mail:
    """⟨t, v, x̃, y⟩ with the hops it has left."""

    t: int
    v: int
    x: np.ndarray
    y: float
    hops: int


@dataclass
class Post:
    """The LOCAL protocol as lists: every message moves one edge a round."""

    neighbours: list[list[int]]
    ttl: int
    in_flight: list[tuple[int, Mail]] = field(default_factory=list)
    seen: list[set[tuple[int, int]]] = field(default_factory=list)
    sent: list[int] = field(default_factory=list)

    def __post_init__(self):
        self.seen = [set() for _ in self.neighbours]

    def send(self, sender: int, mail: Mail) -> None:
        for to in self.neighbours[sender]:
            self.in_flight.append((to, mail))

    def deliver(self) -> list[list[Mail]]:
        """Move everything one edge; return what is new to each agent; forward it next round."""
        moving, self.in_flight = self.in_flight, []
        self.sent.append(len(moving))
        new: list[list[Mail]] = [[] for _ in self.neighbours]
        for to, mail in moving:
            if (mail.v, mail.t) in self.seen[to] or mail.v == to:
                continue
            self.seen[to].add((mail.v, mail.t))
            new[to].append(mail)
            if mail.hops > 1:
                self.send(to, Mail(mail.t, mail.v, mail.x, mail.y, mail.hops - 1))
        return new


class Model:
    """One agent's (K + λI)⁻¹, grown as in lines 24-32."""

    def __init__(self, v: int, kernel: Kernel, ridge: float):
        self.v, self.kernel, self.ridge = v, kernel, ridge
        self.agents: list[int] = []
        self.X: list[np.ndarray] = []
        self.y: list[float] = []
        self.K = np.empty((0, 0))
        self.K_inv = np.empty((0, 0))

    def add(self, v: int, x: np.ndarray, y: float) -> None:
        k_self = float(self.kernel([v], x[None], [v], x[None])[0, 0])
        if not self.y:
            self.K = np.array([[k_self]])
            self.K_inv = np.array([[1 / (k_self + self.ridge)]])  # l. 11, corrected
        else:
            kappa = self.kernel(self.agents, np.array(self.X), [v], x[None])
            self.K = np.block([[self.K, kappa], [kappa.T, np.array([[k_self]])]])
            K22 = 1 / (k_self + self.ridge - (kappa.T @ self.K_inv @ kappa)[0, 0])  # l. 27
            K11 = self.K_inv + K22 * self.K_inv @ kappa @ kappa.T @ self.K_inv  # l. 28
            K12 = -K22 * self.K_inv @ kappa  # l. 29
            K21 = -K22 * kappa.T @ self.K_inv  # l. 30
            self.K_inv = np.block([[K11, K12], [K21, np.array([[K22]])]])  # l. 31
        self.agents.append(v)
        self.X.append(x)
        self.y.append(y)

    def best(self, D: np.ndarray, width: Width) -> int:
        """Line 7: the argmax of the upper bound, ties to the lowest index."""
        X, y = np.array(self.X), np.array(self.y)
        w = width(self.K, self.ridge, self.v)
        bounds = []
        for x in D:
            kappa = self.kernel(self.agents, X, [self.v], x[None])[:, 0]
            f_hat = kappa @ self.K_inv @ y  # l. 34
            k_self = self.kernel([self.v], x[None], [self.v], x[None])[0, 0]
            s = np.sqrt(max(k_self - kappa @ self.K_inv @ kappa, 0.0))  # l. 35
            bounds.append(f_hat + w * s)
        return lowest_best(bounds)

    def best_of_draws(
        self, D: np.ndarray, width: Width, rng: np.random.Generator, samples: int = 1
    ) -> list[int]:
        """In place of line 7: the argmax of each joint draw from N(f̂, w²Σ)."""
        X, y, mine = np.array(self.X), np.array(self.y), [self.v] * len(D)
        kappa = self.kernel(self.agents, X, mine, D)
        f_hat = kappa.T @ self.K_inv @ y
        covariance = self.kernel(mine, D, mine, D) - kappa.T @ self.K_inv @ kappa
        w, root = width(self.K, self.ridge, self.v), symmetric_root(covariance)
        draws = [rng.standard_normal(len(D)) for _ in range(samples)]
        return [lowest_best(list(f_hat + w * root @ z)) for z in draws]


def symmetric_root(A: np.ndarray) -> np.ndarray:
    values, vectors = np.linalg.eigh(A)
    return (vectors * np.sqrt(np.maximum(values, 0.0))) @ vectors.T


def lowest_best(values: list[float]) -> int:
    best = max(values)
    return next(i for i, b in enumerate(values) if b >= best - 1e-9 * max(1.0, abs(best)))


def cooperate(
    world: World,
    neighbours: list[list[int]],
    accepts: Callable[[int, int], bool],
    kernel: Kernel,
    *,
    ttl: int,
    ridge: float,
    width: Width,
    rounds: int,
    seed: int,
    draws: bool = False,
) -> tuple[np.ndarray, list[int]]:
    """Return actions and messages sent in each round.

    Algorithm 1 with `accepts` = same clique (l. 20), Algorithm 2 with `accepts` = always. With
    `draws` they act on a draw from the posterior.
    """
    actions, sent, _ = cooperate_and_explore(
        world,
        neighbours,
        accepts,
        kernel,
        ttl=ttl,
        ridge=ridge,
        width=width,
        rounds=rounds,
        seed=seed,
        samples=1 if draws else 0,
    )
    return actions, sent


def cooperate_and_explore(
    world: World,
    neighbours: list[list[int]],
    accepts: Callable[[int, int], bool],
    kernel: Kernel,
    *,
    ttl: int,
    ridge: float,
    width: Width,
    rounds: int,
    seed: int,
    samples: int = 0,
    share: float | None = None,
) -> tuple[np.ndarray, list[int], np.ndarray]:
    """Return actions, messages sent in each round, and how likely each action was.

    `samples` draws from the posterior, of which one is acted on; 0 for upper bounds. After that
    choice any action is taken with probability `share`. One draw does not tell: NaN.
    """
    V = len(neighbours)
    rngs = [np.random.default_rng(np.random.SeedSequence([seed, v])) for v in range(V)]
    models = [Model(v, kernel, ridge) for v in range(V)]
    post = Post(neighbours, ttl)
    actions = np.empty((rounds, V), dtype=int)
    likely = np.empty((rounds, V))
    for t in range(1, rounds + 1):
        buffers: list[list[tuple[int, np.ndarray, float]]] = [[] for _ in range(V)]
        for v in range(V):
            D, rewards = world(t, v)
            if t == 1:  # l. 4-8
                a = int(rngs[v].integers(len(D)))
                p = {b: 1 / len(D) for b in range(len(D))}
            elif samples:
                best = models[v].best_of_draws(D, width, rngs[v], samples)
                a = best[rngs[v].integers(samples)] if samples > 1 else best[0]
                p = {b: best.count(b) / samples if samples > 1 else np.nan for b in range(len(D))}
            else:
                a = models[v].best(D, width)
                p = {b: float(b == a) for b in range(len(D))}
            if share is not None and rngs[v].random() < share:
                a = int(rngs[v].integers(len(D)))
            actions[t - 1, v] = a
            likely[t - 1, v] = p[a] if share is None else (1 - share) * p[a] + share / len(D)
            buffers[v].append((v, D[a], rewards[a]))  # l. 15
            post.send(v, Mail(t, v, D[a], rewards[a], ttl))  # l. 17-18
        for v, mails in enumerate(post.deliver()):  # l. 19-23
            for mail in mails:
                if accepts(v, mail.v):
                    buffers[v].append((mail.v, mail.x, mail.y))
        for v in range(V):
            for origin, x, y in buffers[v]:  # l. 24-32
                models[v].add(origin, x, y)
    return actions, post.sent, likely


def distribute(
    world: World,
    neighbours: list[list[int]],
    centre_of: list[int],
    kernel: Kernel,
    *,
    ttl: int,
    ridge: float,
    width: Width,
    rounds: int,
    seed: int,
) -> tuple[np.ndarray, list[int]]:
    """Return actions and messages sent in each round.

    Algorithm 3: centres learn from their γ-neighbourhood, the others pull their last arm.
    """
    V = len(neighbours)
    rngs = [np.random.default_rng(np.random.SeedSequence([seed, v])) for v in range(V)]
    models = [Model(v, kernel, ridge) for v in range(V)]
    last_arm: list[tuple[int, np.ndarray] | None] = [None] * V
    post = Post(neighbours, ttl)
    actions = np.empty((rounds, V), dtype=int)
    for t in range(1, rounds + 1):
        buffers: list[list[tuple[int, np.ndarray, float]]] = [[] for _ in range(V)]
        for v in range(V):
            D, rewards = world(t, v)
            arm = last_arm[v]
            if arm is not None:  # l. 10
                gaps = [float(np.linalg.norm(x - arm[1])) for x in D]
                a = next(i for i, gap in enumerate(gaps) if gap <= min(gaps) * (1 + 1e-9))
            elif t == 1:
                a = int(rngs[v].integers(len(D)))
            else:  # l. 5 for a centre, l. 8 (KernelUCB) for another
                a = models[v].best(D, width)
            actions[t - 1, v] = a
            buffers[v].append((v, D[a], rewards[a]))
            post.send(v, Mail(t, v, D[a], rewards[a], ttl))  # l. 13-14
        for v, mails in enumerate(post.deliver()):
            for mail in mails:
                if centre_of[v] == v:  # l. 15-18
                    buffers[v].append((mail.v, mail.x, mail.y))
                elif mail.v == centre_of[v] and (
                    last_arm[v] is None or mail.t > last_arm[v][0]
                ):  # l. 21
                    last_arm[v] = (mail.t, mail.x)
        for v in range(V):
            for origin, x, y in buffers[v]:
                models[v].add(origin, x, y)
    return actions, post.sent


def round_robin(
    world: World, agents: int, kernel: Kernel, *, ridge: float, width: Width, rounds: int, seed: int
) -> np.ndarray:
    """One agent that pulls V·T arms in turn (§2)."""
    rng = np.random.default_rng(np.random.SeedSequence([seed, 0]))
    model = Model(0, kernel, ridge)
    actions = np.empty((rounds, agents), dtype=int)
    for t in range(1, rounds + 1):
        for v in range(agents):
            D, rewards = world(t, v)
            model.v = v
            first = t == 1 and v == 0
            actions[t - 1, v] = rng.integers(len(D)) if first else model.best(D, width)
            model.add(v, D[actions[t - 1, v]], rewards[actions[t - 1, v]])
    return actions


def learn_and_cooperate(
    world: World,
    neighbours: list[list[int]],
    accepts: Callable[[int, int], bool],
    k_x: Callable[[np.ndarray, np.ndarray], float],
    estimate: Callable[[dict[int, list[np.ndarray]]], dict[tuple[int, int], float]],
    is_due: Callable[[int, int], bool],
    *,
    ttl: int,
    ridge: float,
    eta: float,
    rounds: int,
    seed: int,
    draws: bool = False,
) -> np.ndarray:
    """Coop or Eager with a K_z estimated from the contexts that have arrived: (T, V) actions.

    The Gram matrix is made anew in every round, and inverted.
    """
    V = len(neighbours)
    post = Post(neighbours, ttl)
    rngs = [np.random.default_rng(np.random.SeedSequence([seed, v])) for v in range(V)]
    known: list[list[tuple[int, np.ndarray, float]]] = [[] for _ in range(V)]
    K_z: list[dict[tuple[int, int], float]] = [{} for _ in range(V)]
    estimated = [0] * V
    actions = np.zeros((rounds, V), dtype=int)
    for t in range(1, rounds + 1):
        pulls = []
        for v in range(V):
            D, rewards = world(t, v)
            if is_due(len(known[v]), estimated[v]):
                contexts: dict[int, list[np.ndarray]] = {}
                for u, x, _ in known[v]:
                    contexts.setdefault(u, []).append(x)
                K_z[v], estimated[v] = estimate(contexts), len(known[v])
            # who was not heard from at the last estimate is like nobody but itself
            alike = {(v, v): 1.0, **K_z[v]}
            data = [(u, x, y) for u, x, y in known[v] if (v, u) in alike]
            if data:
                K = np.array([[alike[a, b] * k_x(x, z) for b, z, _ in data] for a, x, _ in data])
                inverse = np.linalg.inv(K + ridge * np.eye(len(data)))
                y = np.array([y for _, _, y in data])
                kappa = np.array([[alike[v, b] * k_x(x, z) for x in D] for b, z, _ in data])
                prior = np.array([[k_x(x, z) for z in D] for x in D])
                covariance = prior - kappa.T @ inverse @ kappa
                if draws:
                    spread = symmetric_root(covariance) @ rngs[v].standard_normal(len(D))
                else:
                    spread = np.sqrt(np.maximum(np.diagonal(covariance), 0.0))
                f_hat = kappa.T @ inverse @ y
                actions[t - 1, v] = lowest_best(list(f_hat + eta / np.sqrt(ridge) * spread))
            else:
                actions[t - 1, v] = rngs[v].integers(len(D))
            a = actions[t - 1, v]
            pulls.append((D[a], float(rewards[a])))
        for v, (x, y) in enumerate(pulls):
            known[v].append((v, x, y))
            post.send(v, Mail(t, v, x, y, ttl))
        for v, new in enumerate(post.deliver()):
            known[v] += [(mail.v, mail.x, mail.y) for mail in new if accepts(v, mail.v)]
    return actions
