"""Networks that change: what is lost, late or missed, and that agents keep working."""

import dataclasses

import numpy as np
import pytest

import coopbandits as cb
from coopbandits.engines.exchange import Exchange
from coopbandits.errors import InputError, NetworkError, ParameterError
from coopbandits.protocol import Observation
from coopbandits.protocol.links import Between, Constant, Geometric, Links, PerLink
from reference import formulas
from worlds import DIM, NETWORKS, assert_same_fields, eager, news, ragged, world_of

LINEAR, RBF = cb.kernels.Linear(), cb.kernels.RBF()
SMALL = cb.Network.from_edges([(0, 1), (0, 2), (0, 3), (3, 4)])
FROZEN = cb.similarity.MeanEmbedding(0.5, refresh="frozen")
POLICIES = {
    "alone": cb.LinUCB(),
    "eager": eager(ttl=3),
    "coop": cb.CoopKernelUCB(kernel=RBF, similarity=cb.similarity.Laplacian(1.0), ttl=2),
    "dist": cb.DistKernelUCB(kernel=RBF, ttl=2),
    "patient dist": cb.DistKernelUCB(kernel=RBF, ttl=2, patience=1),
    "centralised": cb.Centralised(kernel=RBF),
    "sums": eager(kernel=LINEAR, say=cb.say.Sums(every=2)),
    "pays": eager(say=cb.say.WhenItPays(0.5)),
    "evidence": eager(kernel=LINEAR, similarity=cb.similarity.Evidence(), ttl=1),
    "summed evidence": eager(kernel=LINEAR, similarity=cb.similarity.Evidence(), ttl=1,
                             say=cb.say.Sums()),
    "coregionalised": eager(kernel=LINEAR, similarity=cb.similarity.Coregionalised(), ttl=1),
    "embedding": eager(similarity=cb.similarity.MeanEmbedding(0.5)),
    "frozen": eager(similarity=FROZEN),
}  # fmt: skip
NASTY = {
    "loss": 0.3,
    "delay": Geometric(1.0),
    "down": {(0, 1): [(2, 3), (6, None)]},
    "away": {1: (3, 5), 2: [(1, 2), (6, 6)], 3: (5, None)},
}


def same(one, two, *, but=("engine", "worth")):
    assert_same_fields(one, two, but=but)


@pytest.mark.parametrize("name", POLICIES)
def test_faultless_links_change_nothing(name):
    problem = ragged(SMALL, rounds=5)
    plain = cb.play(problem, POLICIES[name], 5, seed=2, engine="messages")
    run = cb.play(problem, POLICIES[name], 5, seed=2, links=Links())
    assert run.engine == "messages"
    same(run, plain)
    np.testing.assert_array_equal(run.delivered, run.messages)
    assert not (run.lost + run.late + run.missed).any()


@pytest.mark.parametrize("name", POLICIES)
@pytest.mark.parametrize("forgets", [False, True])
def test_every_policy_keeps_working_and_the_same_seed_gives_the_same_run(name, forgets):
    problem = ragged(SMALL, rounds=7)
    links = Links(**NASTY, forgets=forgets)
    one, two = (cb.play(problem, POLICIES[name], 7, seed=4, links=links) for _ in range(2))
    same(one, two)
    gone = np.zeros((7, 5), dtype=bool)
    gone[2:5, 1] = gone[:2, 2] = gone[5, 2] = gone[4:, 3] = True
    np.testing.assert_array_equal(one.away, gone)
    assert not one.regret[gone].any()
    assert not one.rewards[gone].any()
    assert (one.regret >= 0).all()
    flying = one.messages.sum() - one.delivered.sum() - one.lost.sum() - one.missed.sum()
    assert flying >= 0
    if name != "alone":
        assert min(one.lost.sum(), one.late.sum(), one.missed.sum()) > 0


def test_two_policies_with_one_seed_face_the_same_links():
    problem = ragged(NETWORKS["grid"], rounds=8)
    links = Links(loss=0.4, delay=Between(0, 2))
    runs = [
        cb.play(problem, policy, 8, seed=1, links=links)
        for policy in (eager(ttl=1), eager(ttl=1, kernel=LINEAR, eta=0.1))
    ]
    same(*runs, but=("engine", "worth", "regret", "actions", "rewards"))
    assert (runs[0].actions != runs[1].actions).any()
    other = cb.play(problem, eager(ttl=1), 8, seed=2, links=links)
    assert (other.lost != runs[0].lost).any()


@pytest.mark.parametrize("ttl", [1, 3])
def test_agents_whose_messages_are_all_lost_are_alone(ttl):
    problem = ragged(NETWORKS["grid"], rounds=8)
    alone = cb.play(problem, cb.KernelUCB(kernel=RBF), 8)
    run = cb.play(problem, eager(ttl=ttl), 8, links=Links(loss=1.0))
    np.testing.assert_array_equal(run.actions, alone.actions)
    np.testing.assert_array_equal(run.lost, run.messages)
    assert run.messages.sum() == 8 * problem.network.adjacency.sum()
    cut = Links(down=dict.fromkeys(problem.network.edges, (1, None)))
    same(cb.play(problem, eager(ttl=ttl), 8, links=cut), run)


@dataclasses.dataclass(frozen=True, eq=False)
class ByTable:
    """Listen with a lag for each pair of agents, given."""

    table: np.ndarray
    pooled = False

    def lags(self, network, ttl):
        return self.table

    def carrier(self, network):
        return network


@pytest.mark.parametrize("ttl", [1, 2])
@pytest.mark.parametrize("k", [1, 3])
def test_a_constant_delay_is_a_lag_of_so_many_rounds_more_for_each_edge(ttl, k):
    network = NETWORKS["directed"]
    problem = ragged(network, rounds=12)
    towards = network.distances.T
    table = np.where(towards <= ttl, towards * (k + 1), np.inf)
    np.fill_diagonal(table, 1.0)
    policy = eager(ttl=ttl)
    expected = cb.play(
        problem, dataclasses.replace(policy, listen=ByTable(table)), 12, engine="exact"
    )
    run = cb.play(problem, policy, 12, links=Links(delay=k))
    np.testing.assert_array_equal(run.actions, expected.actions)
    assert run.messages[-k:].sum() == run.messages.sum() - run.delivered.sum()
    np.testing.assert_array_equal(run.late, run.delivered)


@pytest.mark.parametrize("k", [1, 2])
def test_agents_that_take_turns_hear_late_news_in_its_turn(k):
    # who comes later in a round than its teller hears in that round's turn, k rounds on
    network = cb.Network.path(4)
    problem = ragged(network, rounds=9)
    turn = np.arange(4)
    table = np.where(turn[None, :] < turn[:, None], float(k), k + 1.0)
    np.fill_diagonal(table, 1.0)
    policy = cb.Centralised(kernel=RBF)
    expected = cb.play(
        problem, dataclasses.replace(policy, listen=ByTable(table)), 9, engine="exact"
    )
    run = cb.play(problem, policy, 9, links=Links(delay=k))
    np.testing.assert_array_equal(run.actions, expected.actions)


def test_a_table_of_delays_is_a_table_of_lags(rng):
    network = NETWORKS["erdos-renyi"]
    problem = ragged(network, rounds=12)
    late = rng.integers(0, 4, size=(10, 10))
    table = np.where(network.adjacency.T, late.T + 1.0, np.inf)
    np.fill_diagonal(table, 1.0)
    expected = cb.play(
        problem, dataclasses.replace(eager(ttl=1), listen=ByTable(table)), 12, engine="exact"
    )
    run = cb.play(problem, eager(ttl=1), 12, links=Links(delay=PerLink(late)))
    np.testing.assert_array_equal(run.actions, expected.actions)


def literal(problem, links, rounds, seed, eta=1.0):
    """Play Eager-KernelUCB with γ = 1, K_z = 1 and RBF, message by message."""
    network, world = problem.network, world_of(problem, seed)
    V = len(network)
    rngs = [np.random.default_rng(np.random.SeedSequence([seed, v])) for v in range(V)]
    knows = [[] for _ in range(V)]
    flying = []  # (round of arrival, to, round sent, observation)
    actions, counts = np.full((rounds, V), -1), np.zeros((4, rounds), dtype=int)
    for t in range(1, rounds + 1):
        present = [
            not any(a <= t and (b is None or t <= b) for a, b in links.away.get(v, ()))
            for v in range(V)
        ]
        lost, late = links.fates(t, 0, agents=V, seed=seed)
        for v in np.flatnonzero(present):
            X, y = world(t, v)
            if knows[v]:
                Z, r = (np.array(part) for part in zip(*knows[v], strict=True))
                mean, variance = formulas.posterior(
                    formulas.gram(formulas.rbf, Z, Z),
                    formulas.gram(formulas.rbf, Z, X),
                    np.ones(len(X)),
                    r,
                    1.0,
                )
                bounds = mean + eta * np.sqrt(np.maximum(variance, 0.0))
                index = int(np.argmax(bounds >= bounds.max() - 1e-9 * max(1, abs(bounds.max()))))
            else:
                index = int(rngs[v].integers(len(X)))
            actions[t - 1, v] = index
            for to in network.neighbours(v):
                pair = (min(v, to), max(v, to))
                broken = any(a <= t and (b is None or t <= b) for a, b in links.down.get(pair, ()))
                if lost[v, to] or broken:
                    counts[0, t - 1] += 1
                else:
                    flying.append((t + late[v, to], to, t, (X[index], y[index])))
            flying.append((t, v, t, (X[index], y[index])))
        for when, to, sent, observation in flying:
            if when == t and not present[to]:
                counts[1, t - 1] += 1
            elif when == t:
                knows[to].append(observation)
                counts[2, t - 1] += sent < t
                counts[3, t - 1] += 1
        counts[3, t - 1] -= sum(present)  # what one tells oneself is no message
        flying = [one for one in flying if one[0] > t]
    return actions, counts, len(flying)


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_agents_know_exactly_what_came_through(seed):
    problem = ragged(NETWORKS["grid"], rounds=12, seed=seed)
    links = Links(
        loss=0.25,
        delay=Geometric(1.0),
        down={(0, 1): (2, 6), (4, 5): [(1, 3), (8, None)]},
        away={0: (3, 5), 4: [(1, 2), (7, 8)], 8: (6, None)},
    )
    run = cb.play(problem, eager(ttl=1), 12, seed=seed, links=links)
    actions, (lost, missed, late, delivered), flying = literal(problem, links, 12, seed)
    np.testing.assert_array_equal(run.actions, actions)
    np.testing.assert_array_equal(run.lost, lost)
    np.testing.assert_array_equal(run.missed, missed)
    np.testing.assert_array_equal(run.late, late)
    np.testing.assert_array_equal(run.delivered, delivered)
    assert run.messages.sum() == (lost + missed + delivered).sum() + flying
    assert flying > 0


def test_an_agent_that_forgets_starts_again_at_random_and_uses_no_id_twice():
    network = cb.Network.path(3)
    problem = ragged(network, rounds=10, sizes=(5, 6))
    for policy in (eager(), eager(kernel=LINEAR, say=cb.say.Sums())):
        links = Links(away={1: (4, 5)}, forgets=True, loss=0.0, down={(0, 1): (6, 6)})
        run = cb.play(problem, policy, 10, seed=3, links=links)
        draws = np.random.default_rng(np.random.SeedSequence([3, 1])).integers(5, size=2)
        assert run.actions[[0, 5], 1].tolist() == draws.tolist()
    agent = eager().agent(1, network)
    for _ in range(3):
        sent = agent.reward(agent.decide(np.eye(DIM)).id, 1.0)
    again = agent.restarted()
    assert (again.known, again.decide(np.eye(DIM)).id) == (0, 4)
    returned = dataclasses.replace(sent[0], ttl=1)
    assert again.receive(returned) == []
    assert again.known == 0
    assert again.reward(4, 0.5)[0].round == 4


def test_an_agent_that_comes_back_knows_what_it_knew():
    problem = ragged(cb.Network.path(1), rounds=10)
    whole = cb.play(problem, eager(), 10)
    run = cb.play(problem, eager(), 10, links=Links(away={0: (4, 5)}))
    assert run.actions[:3].tolist() == whole.actions[:3].tolist()
    X, y = zip(*(world_of(problem, 0)(t, 0) for t in range(1, 11)), strict=True)
    known = [t for t in range(10) if t not in (3, 4)]
    agent = eager().agent(0, problem.network)
    for t in known:
        index = agent.decide(X[t]).index
        assert run.actions[t, 0] == index
        agent.reward(agent.awaiting[0], y[t][index])


def test_what_an_agent_was_about_to_hand_on_waits_for_it():
    # 0 - 1 - 2: news of 0 reaches 1 in round 1, which is away in round 2 and hands it on in 3
    problem = ragged(cb.Network.path(3), rounds=6)
    policy = eager()
    # round 1: four edges; round 2: 0 and 2 send their own and hand on what 1 told; round 3: the
    # same four edges, and the two messages that 1 had in hand, twice each
    for forgets, expected in ((False, [4, 4, 8]), (True, [4, 4, 4])):
        engine = Exchange(
            policy, problem.network, seed=0, links=Links(away={1: (2, 2)}, forgets=forgets)
        )
        for t in (1, 2, 3):
            engine.play(t, problem.round(t, 0))
        assert [engine.traffic(t)[0] for t in (1, 2, 3)] == expected


@pytest.mark.parametrize("name", ["eager", "evidence", "sums", "pays", "patient dist", "frozen"])
def test_agents_stored_and_restored_midway_go_on_as_they_were(name):
    network, policy = SMALL, POLICIES[name]
    problem = ragged(network, rounds=7)
    links = Links(**NASTY)
    plain, stored = (Exchange(policy, network, seed=1, links=links) for _ in range(2))
    for t in range(1, 8):
        offer = problem.round(t, 1)
        np.testing.assert_array_equal(plain.play(t, offer), stored.play(t, offer))
        data = [agent.to_bytes() for agent in stored._agents]
        stored._agents = [cb.Agent.from_bytes(d, policy=policy, network=network) for d in data]
    assert data == [agent.to_bytes() for agent in plain._agents]


@pytest.mark.parametrize("name", ["eager", "evidence", "sums", "coop", "dist", "embedding"])
def test_copies_and_another_order_do_no_harm(name, rng):
    network, policy = cb.Network.path(4), POLICIES[name]
    speakers = [policy.agent(v, network) for v in (0, 2, 3)]
    mail = []
    for speaker in speakers:
        for _ in range(5):
            decision = speaker.decide(rng.normal(size=(3, DIM)))
            mail += speaker.reward(decision.id, float(rng.normal()))
    offered = rng.normal(size=(4, DIM))
    plain, twin = policy.agent(1, network), policy.agent(1, network)
    for agent, order in ((plain, mail), (twin, [*rng.permutation(mail), *mail])):
        for message in order:
            agent.receive(message)
    assert plain.known == twin.known > 0 or name == "dist"
    mine, theirs = plain.decide(offered), twin.decide(offered)
    assert mine.index == theirs.index
    if mine.mean is not None:
        assert (mine.mean, mine.std) == (
            pytest.approx(theirs.mean, rel=1e-9), pytest.approx(theirs.std, rel=1e-9)
        )  # fmt: skip


def centre_of(network):
    return int(network.centres(1).indices[0])


def test_a_follower_goes_on_with_the_last_arm_of_a_centre_that_left(rng):
    network = cb.Network.complete(4)
    arms = np.eye(DIM)
    rewards = rng.normal(size=(10, 4, DIM))
    problem = cb.problems.table(network, np.tile(arms, (10, 4, 1, 1)), rewards)
    links = Links(away={centre_of(network): (5, None)})
    run = cb.play(problem, cb.DistKernelUCB(kernel=RBF), 10, links=links)
    followers = [v for v in range(4) if v != centre_of(network)]
    last = run.actions[3, centre_of(network)]
    assert (run.actions[4:, followers] == last).all()


def test_a_follower_whose_patience_ends_decides_for_itself_until_it_hears_again(rng):
    network = cb.Network.complete(3)
    centre = centre_of(network)
    me = next(v for v in range(3) if v != centre)
    policy = cb.DistKernelUCB(kernel=RBF, patience=2)
    follower = policy.agent(me, network)
    own = cb.KernelUCB(kernel=RBF).agent(me, network)

    def step(arm=None, round=0):
        if arm is not None:
            follower.receive(news(rng, origin=centre, ttl=1, context=arm, round=round))
        offered, y = rng.normal(size=(4, DIM)), float(rng.normal())
        decision = follower.decide(offered)
        theirs = own.decide(offered)
        follower.reward(decision.id, y)
        own.reward(theirs.id, y)
        # it saw what the follower saw
        own._inbox.observations[-1] = Observation(me, decision.id, decision.context, y)
        return decision, theirs

    step()
    led = [step(np.ones(DIM), 1)[0], step()[0], step()[0]]
    assert [d.mean for d in led] == [None] * 3
    for _ in range(3):
        decision, theirs = step()
        assert decision.mean == pytest.approx(theirs.mean, rel=1e-12)
        assert decision.index == theirs.index
    assert step(np.zeros(DIM), 9)[0].mean is None
    assert cb.DistKernelUCB(kernel=RBF).fingerprint != policy.fingerprint


def test_patience_changes_nothing_in_a_faultless_network():
    problem = ragged(NETWORKS["grid"], rounds=10)
    for engine in ("exact", "messages"):
        impatient, patient = (
            cb.play(problem, cb.DistKernelUCB(kernel=RBF, ttl=2, patience=p), 10, engine=engine)
            for p in (None, 1)
        )
        same(impatient, patient)


def test_delays_have_their_laws():
    grid = ((np.arange(100_000) + 0.5) / 100_000).reshape(1, -1)
    late = Geometric(2.0).rounds(grid)
    for k in range(5):
        assert (late == k).mean() == pytest.approx((2 / 3) ** k / 3, abs=2e-5)
    assert late.mean() == pytest.approx(2.0, abs=1e-2)
    assert not Geometric(0.0).rounds(grid).any()
    assert not Geometric(1e-300).rounds(grid).any()
    # the median of a very long wait is ln 2 times its mean
    assert Geometric(1e8).rounds(np.array([0.5])) == pytest.approx(1e8 * np.log(2), rel=1e-6)
    assert Geometric(1e50).rounds(np.array([0.5])) == 2**31
    between = Between(1, 4).rounds(grid)
    assert [(between == k).mean() for k in range(6)] == [0, 0.25, 0.25, 0.25, 0.25, 0]
    assert (Constant(3).rounds(grid) == 3).all()


def test_so_many_messages_are_lost_as_was_said():
    problem = ragged(NETWORKS["grid"], rounds=12)
    run = cb.play(problem, eager(ttl=3), 12, links=Links(loss=0.2))
    n = run.messages.sum()
    assert abs(run.lost.sum() / n - 0.2) < 4 * np.sqrt(0.16 / n)


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        ({"loss": -0.1}, "loss must be a probability from 0 to 1"),
        ({"loss": 1.5}, "loss must be a probability"),
        ({"loss": "some"}, "loss must be a number"),
        ({"loss": np.nan}, "loss must be finite"),
        ({"delay": -1}, "delay must be a whole number >= 0"),
        ({"delay": 1.5}, "no delay; expected"),
        ({"delay": Geometric}, "no delay; expected"),
        ({"down": [(0, 1)]}, r"no schedule.*\{\(0, 1\): \(5, 8\)\}"),
        ({"away": 3}, r"no schedule.*\{3: \(5, 8\)\}"),
        ({"away": {3: (0, 4)}}, "no span of rounds"),
        ({"away": {3: (5, 4)}}, "1 <= first <= last"),
        ({"away": {3: 5}}, "no span of rounds"),
        ({"away": {3: [(1, 2), 5]}}, "no span of rounds"),
        ({"forgets": "all"}, "forgets must be True or False"),
    ],
    ids=str,
)
def test_bad_links_get_one_clear_error(arguments, complaint):
    with pytest.raises(InputError, match=complaint):
        Links(**arguments)


@pytest.mark.parametrize(
    ("make", "complaint"),
    [
        (lambda: Between(3, 1), "high must be a whole number >= 3"),
        (lambda: Between(-1, 1), "low must be a whole number >= 0"),
        (lambda: Geometric(-1.0), "mean must be >= 0"),
        (lambda: PerLink([[0, 1]]), "table of delays"),
        (lambda: PerLink([[0, 1], [0]]), "table of delays"),
        (lambda: PerLink([[0, -1], [0, 0]]), "table of delays"),
        (lambda: PerLink([[0, 0.5], [0, 0]]), "table of delays"),
    ],
)
def test_bad_delays_get_one_clear_error(make, complaint):
    with pytest.raises(ParameterError, match=complaint):
        make()


@pytest.mark.parametrize(
    ("links", "error", "complaint"),
    [
        (
            Links(away={6: (1, 2)}),
            NetworkError,
            r"away names 6: agent 6 is not.* its agents are 0 … 5",
        ),
        (Links(away={"x": (1, 2)}), NetworkError, "away names 'x': agent 'x' is not"),
        (Links(down={(0, 2): (1, 2)}), NetworkError, r"\(0, 2\), which is no link"),
        (Links(down={(0, 9): (1, 2)}), NetworkError, r"\(0, 9\), which is no link"),
        (Links(down={0: (1, 2)}), NetworkError, "0, which is no link"),
        (Links(delay=PerLink(np.zeros((2, 2), int))), ParameterError, "for 2 agents.*has 6"),
        (0.1, ParameterError, r"expected a value coopbandits\.Links"),
    ],
    ids=range(7),
)
def test_links_that_do_not_fit_the_network_are_refused(network, links, error, complaint):
    with pytest.raises(error, match=complaint):
        cb.play(ragged(network), eager(), 3, links=links)


def test_other_engines_and_other_algorithms_refuse_links(network):
    problem = ragged(network)
    for engine in ("exact", "statistics", "sparse"):
        with pytest.raises(ParameterError, match=f"engine='{engine}'.*links= is played by"):
            cb.play(problem, eager(), 3, engine=engine, links=Links(loss=0.1))

    class Own:
        name = "own"

        def named(self, name):
            return self

        def player(self, simulation):
            raise AssertionError

    with pytest.raises(ParameterError, match="own exchanges no messages that could fail"):
        cb.play(problem, Own(), 3, links=Links())


def test_no_bound_is_claimed_where_news_fails(network):
    problem = cb.problems.kernel(network, dim=2, actions=3)
    policy = eager(similarity=problem.similarity, width=cb.width.SelfNormalised())
    for links in (Links(loss=0.5), Links(away={0: (2, 2)})):
        run = cb.play(problem, policy, 4, links=links)
        with pytest.raises(ParameterError, match=r"tell everything over links|was away"):
            cb.theory.run_bound(problem, policy, run)
    run = cb.play(problem, policy, 4, links=Links(away={0: (2, None)}, down={}))
    with pytest.raises(ParameterError, match="an agent was away"):
        cb.theory.run_gains(problem, policy, run)


class Made:
    """A user's own delay."""

    def __init__(self, made):
        self.made = made

    def rounds(self, uniform):
        return self.made


@pytest.mark.parametrize(
    "made",
    [3, None, np.full((3, 3), -1), np.full((3, 3), 0.5), np.ones((2, 2), dtype=int)],
    ids=["number", "nothing", "negative", "half", "few"],
)
def test_an_own_delay_that_makes_no_rounds_is_told(made):
    network = cb.Network.path(3)
    problem = cb.problems.clustered_linear(network, dim=2, actions=2)
    policy = cb.NaiveCooperation()
    with pytest.raises(ParameterError, match=r"delay=.* made .*expected a \(3, 3\) array of whole"):
        cb.play(problem, policy, 2, links=Links(delay=Made(made)))
    right = Made(np.ones((3, 3), dtype=int))
    assert cb.play(problem, policy, 2, links=Links(delay=right)).late.sum() > 0
