"""Any sequence of calls on one agent, beside a model of what must hold.

The model keeps observations, with weights as their ages have it, and believes what the literal
formula of `reference/weighted.py` says. A twin gets the same calls and is never stored.
"""

import multiprocessing
import pickle
from collections import defaultdict
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field, replace

import numpy as np
import pytest
from hypothesis import settings, strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

import coopbandits as cb
from coopbandits.agent.learning import LearningTask
from coopbandits.errors import CoopBanditsError, LocalProtocolError, RemoteProtocolError
from reference import weighted

NETWORK, ME, D, EXPIRE = cb.Network.path(4), 1, 2, 4
HALF_LIFE, WINDOW = 1.7, 3
SCALING = cb.Scaling([2.0, -1.0], [4.0, 0.5])
OPTIONS = {
    "plain": {},
    "intercept": {"intercept": 2.0},
    "half life": {"forget": cb.forget.Exponential(HALF_LIFE)},
    "window": {"forget": cb.forget.Window(WINDOW)},
    "units": {"scale": 5.0, "scaling": SCALING, "intercept": 0.5},
    "sums": {"say": cb.say.Sums()},
}
KINDS = {
    "linear": {
        "kernel": cb.kernels.Linear(),
        "features": cb.features.Exact(),
        "similarity": cb.similarity.Same(),
    },
    "fourier": {
        "kernel": cb.kernels.RBF(),
        "features": cb.features.Fourier(6),
        "similarity": cb.similarity.Same(),
    },
    "evidence": {
        "kernel": cb.kernels.Linear(),
        "features": cb.features.Exact(),
        "similarity": cb.similarity.Evidence(chains=2),
    },
}
EXACT = {"kernel": cb.kernels.RBF(), "similarity": cb.similarity.Same()}
SEEDS, FLAGS = st.integers(0, 2**16), st.booleans()


def policy_of(kind, option):
    answers = {**KINDS, "exact": EXACT}[kind]
    return cb.EagerKernelUCB(ttl=2, ridge=0.8, eta=0.7, **answers, **OPTIONS[option])


@dataclass(frozen=True, eq=False)
class Seen:
    """An observation in raw units, with the contexts that were offered beside it."""

    round: int
    x: np.ndarray
    y: float
    offered: np.ndarray


@dataclass
class Model:
    """What an agent must know and believe."""

    policy: cb.Policy
    now: int = 0
    held: dict = field(default_factory=lambda: defaultdict(list))
    newest: dict = field(default_factory=lambda: defaultdict(int))
    came: dict = field(default_factory=dict)
    pending: list = field(default_factory=list)
    digests: dict = field(default_factory=dict)
    gone: set = field(default_factory=set)
    believed: list = field(default_factory=list)
    task: list | None = None  # what the last task was given
    since: list = field(default_factory=list)  # what the agent has seen itself since then

    @property
    def known(self):
        learnt = sum(len(seen) for o, seen in self.held.items() if o not in self.digests)
        waiting = sum(len(seen) for seen in self.digests.values())
        return learnt + waiting + len(self.pending)

    def keep(self, origin, seen):
        self.pending.append((origin, seen))
        self.fold(origin, seen)

    def fold(self, origin, seen):
        """What an agent sees itself counts at once, where sums are kept."""
        if origin == ME and self.policy.features is not None:
            self.believed = [*self.believed, (ME, seen, 1.0)]
            self.since = [*self.since, (ME, seen, 1.0)]

    def absorb(self):
        for origin, seen in self.pending:
            self.add(origin, [seen])
        self.held.update(self.digests)
        self.pending, self.digests = [], {}
        self.drop()

    def drop(self):
        """What has left a window does not come back."""
        self.gone |= {one for _, one, weight in self.learnt if weight == 0}

    def add(self, origin, block):
        last = max(seen.round for seen in block)
        if last > self.newest[origin] or not self.held[origin]:
            self.came[origin] = self.now
        self.newest[origin] = max(last, self.newest[origin])
        self.held[origin] += block

    def learn(self):
        self.absorb()
        self.believed, self.task = self.learnt, None

    def take(self):
        """Take a task."""
        self.absorb()
        self.task, self.since = self.learnt, []

    def adopt(self):
        self.believed, self.task = [*self.task, *self.since], None

    @property
    def learnt(self):
        return [(o, one, self.weight(o, one)) for o, seen in self.held.items() for one in seen]

    def weight(self, origin, seen):
        age = self.now - seen.round
        if origin != ME:
            age = self.newest[origin] - seen.round + self.now - self.came.get(origin, self.now)
        if isinstance(self.policy.forget, cb.forget.Exponential):
            return 0.5 ** (age / HALF_LIFE)
        kept = self.policy.forget is None or age < WINDOW
        return float(kept and seen not in self.gone)

    def believe(self, queries):
        """Return mean and variance at m queries, in raw units, where K_z is 1 for all."""
        policy = self.policy

        def K_x(u, X, w, Y):
            if policy.features is None:
                return policy.kernel(X, Y)
            phi, other = (policy.features.features(policy.kernel, Z) for Z in (X, Y))
            return phi @ other.T

        whose = np.array([o for o, _, _ in self.believed], dtype=int)
        X = np.array([one.x for _, one, _ in self.believed]).reshape(-1, D)
        y = np.array([one.y for _, one, _ in self.believed]) / policy.scale
        weights = np.array([w for *_, w in self.believed])
        mean, variance, _ = weighted.believe(
            K_x,
            whose,
            scaled(policy, X),
            y,
            weights,
            ME,
            scaled(policy, queries),
            ridge=policy.ridge,
            tau=policy.intercept or 0.0,
        )
        return policy.scale * mean, policy.scale**2 * variance

    def fresh(self):
        """Return an agent that hears at once all that was learnt."""
        agent = self.policy.agent(ME, NETWORK)
        estimates = isinstance(self.policy.similarity, cb.similarity.Evidence)
        for origin, seen in self.held.items():
            if not seen:
                continue
            attached = np.array([scaled(self.policy, one.offered).mean(axis=0) for one in seen])
            agent.hear(
                origin,
                np.array([one.x for one in seen]),
                [one.y for one in seen],
                rounds=[one.round for one in seen],
                attached=attached if estimates else None,
            )
        return agent


def scaled(policy, X):
    return X if policy.scaling is None else (X - SCALING.shift) / SCALING.spread


def facts(result):
    """What a call returned, so that it can be compared to the bit."""
    if isinstance(result, cb.Decision):
        scores = result.scores
        return (
            result.id,
            result.index,
            result.context.tobytes(),
            (result.mean, result.std, result.width, result.propensity),
            None if scores is None else facts(scores),
        )
    if isinstance(result, list):
        return [facts(one) for one in result]
    if hasattr(result, "upper"):
        return [part.tobytes() for part in (result.mean, result.std, result.upper)]
    if hasattr(result, "to_bytes") and not isinstance(result, int):
        return result.to_bytes()
    return np.asarray(result).tobytes() if result is not None else None


class Sequences(RuleBasedStateMachine):
    """Calls on an agent and its twin."""

    def __init__(self, policy):
        super().__init__()
        self.policy, self.model = policy, Model(policy)
        self.estimates = isinstance(policy.similarity, cb.similarity.Evidence)
        self.fades = policy.forget is not None
        self.agent, self.twin = (policy.agent(ME, NETWORK, expire=EXPIRE) for _ in range(2))
        self.peers = {v: policy.agent(v, NETWORK) for v in (0, 2, 3)}
        self.open, self.closed = {}, set()
        self.told = defaultdict(list)  # what each peer has seen
        self.sent, self.seen = [], set()
        self.results = None  # of the last task of the agent, and of its twin's
        self.old = []

    def both(self, call):
        result, same = call(self.agent), call(self.twin)
        assert facts(result) == facts(same)
        return result

    def refused(self, call, error=CoopBanditsError, match=""):
        for one in (self.agent, self.twin):
            before = one.to_bytes()
            with pytest.raises(error, match=match):
                call(one)
            assert one.to_bytes() == before

    def offered(self, seed, sets=None):
        rng = np.random.default_rng(seed)
        shape = (3, D) if sets is None else (sets, 3, D)
        X = rng.normal(size=shape)
        return X if self.policy.scaling is None else SCALING.raw(X)

    def opened(self, decision, offered):
        self.model.now += 1
        assert decision.id == self.model.now
        if decision.index is not None:
            np.testing.assert_array_equal(decision.context, offered[decision.index])
        self.open[decision.id] = decision.context, offered
        gone = [i for i in self.open if i <= self.model.now - EXPIRE]
        self.closed |= set(gone)
        for i in gone:
            del self.open[i]

    def agree(self, prediction, queries):
        if self.estimates:
            return
        mean, variance = self.model.believe(queries)
        np.testing.assert_allclose(prediction.mean, mean, atol=1e-9)
        np.testing.assert_allclose(prediction.std**2, np.maximum(variance, 0), atol=1e-9)

    @initialize(seed=SEEDS, history=FLAGS)
    def start(self, seed, history):
        """The first context says how long contexts are."""
        X = self.offered(seed)
        if history:
            self.both(lambda agent: agent.observe(X[0], 0.5))
            self.model.keep(ME, Seen(0, X[0], 0.5, X[:1]))
        else:
            self.both(lambda agent: agent.predict(X))

    @rule(seed=SEEDS, learn=FLAGS, sets=st.integers(0, 3))
    def decide(self, seed, learn, sets):
        if sets > 1:
            self.decide_many(seed, learn, sets)
            return
        X = self.offered(seed)
        if learn:
            self.model.learn()
        first = self.both(lambda agent: agent.rank(X, 1, learn=learn))
        decision = self.both(lambda agent: agent.decide(X, learn=learn))
        self.agree(decision.scores, X)
        if decision.propensity == 1.0:
            assert decision.index == first[0]
        if not self.estimates:  # who knows nothing decides at random
            knows = any(weight > 0 for *_, weight in self.model.believed)
            assert decision.propensity == (1.0 if knows else 1 / 3)
        self.opened(decision, X)

    def decide_many(self, seed, learn, sets):
        offered = self.offered(seed, sets)
        if learn:
            self.model.learn()
        spare = cb.Agent.from_bytes(self.agent.to_bytes(), policy=self.policy, network=NETWORK)
        decisions = self.both(lambda agent: agent.decide_many(offered, learn=learn))
        assert len(decisions) == sets
        for decision, X in zip(decisions, offered, strict=True):
            alone = spare.decide(X, learn=learn)
            if not self.fades:  # what is decided together is decided in one round
                assert facts(alone) == facts(decision)
            self.opened(decision, X)

    @rule(seed=SEEDS, index=st.integers(0, 2))
    def took(self, seed, index):
        X = self.offered(seed)
        decision = self.both(lambda agent: agent.took(X, index))
        assert (decision.index, decision.mean, decision.propensity) == (index, None, None)
        self.opened(decision, X)

    @precondition(lambda self: self.open)
    @rule(which=SEEDS, y=st.floats(-2, 2), by_id=FLAGS)
    def reward(self, which, y, by_id):
        decision = sorted(self.open)[which % len(self.open)]
        x, offered = self.open.pop(decision)
        self.closed.add(decision)
        number = np.int64(decision) if by_id else decision
        told = self.both(lambda agent: agent.reward(number, y))
        assert len(told) == 1
        self.model.keep(ME, Seen(decision, x, y, offered))

    @rule(seed=SEEDS, origin=st.sampled_from([0, 2, 3]), y=st.floats(-2, 2), arrives=FLAGS)
    def peer_acts(self, seed, origin, y, arrives):
        X, peer = self.offered(seed), self.peers[origin]
        decision = peer.took(X, seed % 3)
        if seed % 5 == 0:  # it never gets a reward
            return
        [message] = peer.reward(decision, y)
        self.told[origin] = [*self.told[origin], Seen(decision.id, X[seed % 3], y, X)]
        self.sent.append((replace(message, ttl=1 if origin == 3 else 2), self.told[origin]))
        if arrives:
            self.deliver(*self.sent[-1])

    @precondition(lambda self: self.sent)
    @rule(which=SEEDS)
    def receive(self, which):
        """In any order, and more than once."""
        self.deliver(*self.sent[which % len(self.sent)])

    def deliver(self, message, told):
        origin = message.origin
        self.both(lambda agent: agent.receive(message))
        if isinstance(message, cb.Digest):
            if message.round > max((r for o, r in self.seen if o == origin), default=0):
                self.model.digests[origin] = [*told]
        elif (origin, message.round) not in self.seen:
            self.model.keep(origin, told[-1])
        self.seen.add((origin, message.round))

    @rule(seed=SEEDS, origin=st.sampled_from([0, 1, 2, 3]), k=st.integers(1, 4), dated=FLAGS)
    def hear(self, seed, origin, k, dated):
        rng = np.random.default_rng([seed, 1])
        if self.policy.say.sums and origin != ME:  # a digest would take its place
            return
        X, y = self.offered(seed, k)[:, 0], rng.normal(size=k)
        waiting = [one.round for o, one in self.model.pending if o == origin]
        after = max([self.model.newest[origin], *waiting]) + 1
        rounds = 0 * np.arange(k) if origin == ME else after + np.arange(k)
        if dated:
            rounds = rng.integers(0, self.model.now + 1 if origin == ME else 8, size=k)
        given = rounds if dated else None
        self.both(lambda agent: agent.hear(origin, X, y, rounds=given))
        block = [Seen(int(t), x, r, x[None]) for t, x, r in zip(rounds, X, y, strict=True)]
        if self.policy.features is None:  # it waits
            for one in block:
                self.model.keep(origin, one)
            return
        self.model.add(origin, block)
        self.model.drop()
        for one in block:
            self.model.fold(origin, one)

    @rule(seed=SEEDS, origin=st.sampled_from([None, 0, 2]))
    def observe(self, seed, origin):
        x, y = self.offered(seed)[0], float(np.random.default_rng([seed, 2]).normal())
        if self.policy.say.sums and origin is not None:
            return
        self.both(lambda agent: agent.observe(x, y, origin=origin))
        self.model.keep(ME if origin is None else origin, Seen(0, x, y, x[None]))

    @rule(seed=SEEDS, learn=FLAGS)
    def predict(self, seed, learn):
        X = self.offered(seed)
        if seed % 4 == 0:
            self.model.learn()
            self.both(lambda agent: agent.preview(X))
        if learn:
            self.model.learn()
        used = self.agent.awaiting
        self.agree(self.both(lambda agent: agent.predict(X, learn=learn)), X)
        assert self.agent.awaiting == used

    @precondition(lambda self: self.policy.features is not None)
    @rule(seed=SEEDS, elsewhere=FLAGS, own=FLAGS, more=FLAGS, adopted=FLAGS)
    def learn_apart(self, seed, elsewhere, own, more, adopted):
        """Let a result be adopted at once, after an own reward and more news, or later."""
        self.learning_task(elsewhere)
        if own:
            self.took(seed, seed % 3)
            self.reward(seed, 0.5, by_id=False)
        if more:
            self.hear(seed, seed % 4, 2, dated=False)
        if adopted and self.results is not None:
            self.adopt(seed)

    def learning_task(self, elsewhere):
        tasks = [one.learning_task() for one in (self.agent, self.twin)]
        assert (tasks[0] is None) == (tasks[1] is None)
        self.model.absorb()
        if tasks[0] is None:
            return
        self.model.take()
        if self.results is not None:
            self.old.append(self.results)
        if elsewhere:  # as a process would have it
            tasks = pickle.loads(pickle.dumps(tasks))
        self.results = [task.run() for task in tasks]
        if elsewhere:
            self.results = pickle.loads(pickle.dumps(self.results))
        assert len({result.posterior.mean.tobytes() for result in self.results}) == 1

    @precondition(lambda self: self.results is not None)
    @rule(seed=SEEDS)
    def adopt(self, seed):
        results, self.results = self.results, None
        self.old.append(results)
        if self.model.task is None:  # something newer was learnt
            self.refused_results(results, "older task")
            return
        late = self.model.since or self.model.known > len(self.model.task)
        went_on = self.agent.estimated > 0  # Gibbs chains, from labels that others do not have
        for one, result in zip((self.agent, self.twin), results, strict=True):
            one.adopt(result)
        self.model.adopt()
        X = self.offered(seed)
        found = self.both(lambda agent: agent.predict(X, learn=False))
        self.agree(found, X)
        if not late and not self.fades and not went_on:  # nothing came in between
            expected = self.model.fresh().predict(X)
            np.testing.assert_allclose(found.mean, expected.mean, atol=1e-9)
            np.testing.assert_allclose(found.std, expected.std, atol=1e-9)

    def refused_results(self, results, match):
        for one, result in zip((self.agent, self.twin), results, strict=True):
            before = one.to_bytes()
            with pytest.raises(LocalProtocolError, match=match):
                one.adopt(result)
            assert one.to_bytes() == before

    def refuse_anothers(self):
        other = self.policy.agent(ME, NETWORK)
        other.hear(0, self.offered(0), np.ones(3))
        result = other.learning_task().run()
        self.refused(lambda agent: agent.adopt(result), LocalProtocolError, "another agent")

    @rule()
    def restore(self):
        data = self.agent.to_bytes()
        again = cb.Agent.from_bytes(data, policy=self.policy, network=NETWORK)
        assert again.to_bytes() == data
        self.agent = again
        # what was to be learnt is learnt by the next task, of both
        self.results, self.old, self.model.task = None, [], None

    @rule(seed=SEEDS)
    def bad_calls(self, seed):
        X = self.offered(seed)
        for call, error, match in [
            (lambda agent: agent.decide([[np.nan, 0.0]]), CoopBanditsError, "must be finite"),
            (lambda agent: agent.decide(np.ones((2, 3))), CoopBanditsError, "numbers"),
            (lambda agent: agent.decide_many([X, np.ones(2)]), CoopBanditsError, "shape"),
            (lambda agent: agent.took(X, 3), LocalProtocolError, "took index 3"),
            (lambda agent: agent.reward(99, 1.0), LocalProtocolError, "no decision 99"),
            (lambda agent: agent.hear(0, X, [1.0]), CoopBanditsError, "rewards of shape"),
            (lambda agent: agent.hear(4, X, np.ones(3)), CoopBanditsError, "agent 4"),
            (lambda agent: agent.rank(X, 4), CoopBanditsError, "k must be"),
            (lambda agent: agent.adopt("no result"), CoopBanditsError, "adopt takes"),
        ]:
            self.refused(call, error, match)
        for decision in sorted(self.closed)[-2:]:
            self.refused(lambda agent, i=decision: agent.reward(i, 1.0), match="has its reward")
        for results in self.old[-2:]:
            self.refused_results(results, "older task")
        if self.policy.features is not None:
            self.refuse_anothers()
        for message, _ in self.sent[:1]:
            forged = replace(message, origin=ME, round=99)
            self.refused(lambda agent, m=forged: agent.receive(m), RemoteProtocolError, "never")

    @invariant()
    def counts(self):
        assert self.agent.known == self.model.known
        assert self.agent.awaiting == tuple(sorted(self.open))
        assert self.agent.to_bytes() == self.twin.to_bytes()


@pytest.mark.parametrize(
    ("kind", "option"),
    [
        *((kind, option) for kind in KINDS for option in OPTIONS),
        *(("exact", option) for option in ("plain", "intercept", "window", "units")),
    ],
)
def test_any_sequence_of_calls_keeps_to_the_model(kind, option):
    policy = policy_of(kind, option)
    run_state_machine_as_test(
        lambda: Sequences(policy),
        settings=settings(max_examples=8, stateful_step_count=20),
    )


@pytest.mark.parametrize("option", OPTIONS)
@pytest.mark.parametrize("kind", KINDS)
def test_decide_is_a_task_its_run_an_adoption_and_a_decision_to_the_bit(kind, option, rng):
    policy = policy_of(kind, option)
    agent, other = policy.agent(ME, NETWORK, seed=3), policy.agent(ME, NETWORK, seed=3)
    peer = policy.agent(2, NETWORK)
    for t in range(8):
        X, y = rng.normal(size=(2, 4, D)), rng.normal(size=2)
        told = peer.reward(peer.took(X[0], t % 4), y[0]) if t else []
        for one in (agent, other):
            for message in told:
                one.receive(message)
        decision = agent.decide(X[1])
        task = other.learning_task()
        if task is not None:
            other.adopt(task.run())
        assert facts(decision) == facts(other.decide(X[1], learn=False))
        assert agent.to_bytes() == other.to_bytes()
        if t != 3:
            assert facts(agent.reward(decision, y[1])) == facts(other.reward(decision.id, y[1]))
    assert agent.known == 7 + 7


class OwnRewards:
    """Recursive least squares, number by number: what own rewards do to a Gaussian belief."""

    def __init__(self, queries, mean, covariance):
        self.queries, self.mean, self.covariance = queries, [*mean], [[*row] for row in covariance]

    def see(self, at, y, ridge):
        C = self.covariance
        error, variance = y - self.mean[at], ridge + C[at][at]
        gain = [C[i][at] / variance for i in range(len(C))]
        self.mean = [m + g * error for m, g in zip(self.mean, gain, strict=True)]
        self.covariance = [
            [C[i][j] - gain[i] * C[at][j] for j in range(len(C))] for i in range(len(C))
        ]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("option", ["plain", "intercept", "half life", "window", "sums"])
def test_own_rewards_count_at_once_by_a_rank_one_update(kind, option, rng):
    policy = policy_of(kind, option)
    agent, queries = policy.agent(ME, NETWORK), rng.normal(size=(4, D))
    peer = policy.agent(2, NETWORK)
    agent.hear(0, rng.normal(size=(5, D)), rng.normal(size=5), rounds=np.arange(1, 6))
    for x in rng.normal(size=(3, D)):
        agent.reward(agent.took(x[None], 0), rng.normal())
    agent.adopt(agent.learning_task().run())
    believed = agent._beliefs.predict(queries, np.empty(0)), agent._beliefs.posterior
    phi = policy.features.features(policy.kernel, queries)
    if policy.intercept is not None:
        phi = np.hstack([phi, np.ones((4, 1))])
    literal = OwnRewards(queries, believed[0].mean, phi @ believed[1].covariance @ phi.T)
    for at in (2, 0, 2, 3):
        for message in peer.reward(peer.took(queries, at), 1.0):  # what others say waits
            agent.receive(message)
        y = rng.normal()
        agent.reward(agent.took(queries, at), y)
        literal.see(at, y, policy.ridge)
        found = agent.predict(queries, learn=False)
        np.testing.assert_allclose(found.mean, literal.mean, atol=1e-9)
        variances = np.diag(np.array(literal.covariance))
        np.testing.assert_allclose(found.std**2, variances, atol=1e-9)


def test_a_result_may_come_from_another_process(rng):
    policy = policy_of("evidence", "intercept")
    agent, other = policy.agent(ME, NETWORK), policy.agent(ME, NETWORK)
    X, y = rng.normal(size=(20, D)), rng.normal(size=20)
    for one in (agent, other):
        for origin in (0, 1, 2):
            one.hear(origin, X, y)
    spawn = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, mp_context=spawn) as pool:
        agent.adopt(pool.submit(LearningTask.run, agent.learning_task()).result())
    other.adopt(other.learning_task().run())
    assert agent.to_bytes() == other.to_bytes()
