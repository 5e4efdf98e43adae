"""What others say of who is with whom: how it is packed, whose word is taken, and what follows."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

import coopbandits as cb
from coopbandits.agent.model import views_of
from coopbandits.errors import ParameterError
from coopbandits.kernels import Linear
from coopbandits.similarity import Evidence, Loadings, crowds, evidence, found, partitions
from coopbandits.similarity.groups import CORRELATIONS
from coopbandits.similarity.hearsay import Heard, Hearsay, Said, of_use, spoken
from coopbandits.similarity.similarity import Views, added, estimated
from learnt_views import learner_of, linear_samples, tasks, view

NOISE, SIGNAL = 0.3, 0.5  # σ, and the deviation of the weights
OWN = -1  # who is on its own, in groupings of these tests


@pytest.fixture
def taking(monkeypatch):
    """Count who takes another's word."""
    counts = []

    def taken(self, *rest, real=Hearsay.taken):
        takes, theirs = real(self, *rest)
        counts.append(int(takes.sum()))
        return takes, theirs

    monkeypatch.setattr(Hearsay, "taken", taken)
    return counts


def words(agents, *, groups=12, draws=2):
    return Hearsay(agents=agents, groups=groups, draws=draws, correlations=len(CORRELATIONS))


@pytest.mark.parametrize("groups", [1, 2, 12, 40])
@pytest.mark.parametrize("agents", [1, 7, 200])
def test_what_is_packed_is_read_again(rng, agents, groups):
    hearsay = words(agents, groups=groups, draws=3)
    said = Said(rng.integers(groups + 2, size=(5, 3, agents)), rng.integers(4, size=5), groups)
    known = rng.integers(1000, size=5).astype(float)
    numbers = hearsay.packed(said, np.tile(np.arange(agents), (5, 1)), known)
    assert numbers.shape == (5, hearsay.size)
    assert (numbers < 2**53).all()
    assert (numbers == np.floor(numbers)).all()
    # no number has room for one digit more, so it could not be said with fewer
    per_number = int(np.log(2.0**53) / np.log(max(groups + 2, 4)))
    assert hearsay.size == int(np.ceil((3 * agents + 1) / per_number)) + 1
    read = hearsay.unpacked(numbers)
    np.testing.assert_array_equal(read.said.digits, said.digits)
    np.testing.assert_array_equal(read.said.rho, said.rho)
    np.testing.assert_array_equal(read.known, known)


def test_agents_are_named_by_the_view_and_padding_says_nothing():
    hearsay = words(6, draws=1)
    said = Said(np.array([[[3, 1, 0, 0]]]), np.array([2]), 12)
    read = hearsay.unpacked(hearsay.packed(said, np.array([[4, 2, 0, 4]]), np.ones(1))).said
    assert read.digits.tolist() == [[[0, 0, 1, 0, 3, 0]]]
    assert read.rho.tolist() == [2]


def test_any_finite_numbers_can_be_read(rng):
    hearsay = words(30)
    odd = [-1.0, 14.5, 2.0**53, 1e300, -1e300, 1e-300, 2.0**53 - 1]
    numbers = rng.choice(odd, size=(50, hearsay.size))
    read = hearsay.unpacked(numbers).said
    assert ((read.digits >= 0) & (read.digits <= 13)).all()
    assert ((read.rho >= 0) & (read.rho < 4)).all()
    for nonsense in odd[:-1]:
        assert not hearsay.unpacked(np.full((1, hearsay.size), nonsense)).said.digits.any()
    one_group = words(1, groups=1, draws=1)  # there are four ρ, so four digits
    assert one_group.unpacked(np.array([[3.0, 0.0]])).said.digits.tolist() == [[[2]]]


def takers(known, views, members, theirs, own):
    """Whose word each takes, or None, by the rule as it is written.

    P sets; views, (B, N); observations (P,), (B,).
    """
    taken = []
    for b, me in enumerate(views.me):
        mine = {int(views.agents[b, n]) for n in np.flatnonzero(members[b])}
        best, most = None, 0
        for n, row in enumerate(views.index[b]):
            fits = n != me and views.heard[b, n] and members[b, n]
            fits = fits and len(known[row]) >= 1.5 * len(mine) and theirs[row] >= own[b]
            fits = fits and len(known[row] & mine) >= 0.9 * len(mine)
            if fits and len(known[row]) > most:
                best, most = n, len(known[row])
        taken.append(best)
    return taken


def test_whose_word_is_taken(rng):
    V, B, N = 40, 60, 12
    hearsay, some = words(V), []
    for _ in range(20):
        size = rng.integers(1, N, size=V)
        digits = np.array(
            [rng.integers(1, 14, size=(2, V)) * (rng.permutation(V) < 3 * n) for n in size]
        )
        said = Said(digits, rng.integers(4, size=V), 12)
        agents = np.array([rng.permutation(V)[:N] for _ in range(B)])
        heard = rng.random((B, N)) < rng.random((B, 1))
        views = Views(agents, heard, rng.integers(N, size=B), np.empty((V, 0)), agents)
        members = heard & (rng.random((B, N)) < 0.9)
        known = [set(map(int, np.flatnonzero(of.any(axis=0)))) for of in digits]
        seen, own = rng.integers(20, size=V), rng.integers(10, size=B)
        takes, theirs = hearsay.taken(Heard(said, seen), views, members, own)
        expected = takers(known, views, members, seen, own)
        some += [one for one in expected if one is not None]
        for b, n in enumerate(expected):
            assert takes[b] == (n is not None)
            if n is not None:
                from_whom = agents[b, n]
                np.testing.assert_array_equal(
                    theirs.digits[b], digits[from_whom][:, agents[b]] * members[b]
                )
                assert theirs.rho[b] == said.rho[from_whom]
    assert len(some) > 50  # so the rule was asked


@pytest.mark.parametrize(("others", "takes"), [(5, False), (6, True)])
def test_half_as_many_again_is_enough(others, takes):
    """Four are known, and the teller names so many."""
    digits = (np.arange(8) < others) * np.ones((1, 1, 8), dtype=np.int64)
    heard = Heard(Said(np.repeat(digits, 4, axis=0), np.zeros(4, dtype=np.int64), 12), np.ones(4))
    every = np.arange(4)[None]
    views = Views(every, every >= 0, np.array([1]), np.empty((4, 0)), every)
    took, _ = words(8, draws=1).taken(heard, views, every >= 0, np.ones(1))
    assert took.tolist() == [takes]


def test_draws_are_said_as_they_are(rng):
    B, K, N, G = 30, 6, 9, 3
    slots = rng.integers(-2, 5, size=(B, K, N))
    rho = rng.integers(2, size=(B, K))
    said = spoken(slots, rho, 4, G)
    np.testing.assert_array_equal(said.rho, rho[:, 0])
    for b in range(B):
        fitting = slots[b][rho[b] == rho[b, 0]]
        for digits, slot in zip(said.digits[b], np.resize(fitting, (4, N)), strict=True):
            names = [k for k in range(5) if (slot == k).sum() > 1]
            names = sorted(names, key=lambda k: -(slot == k).sum())[:G]
            expected = [0 if k == -1 else names.index(k) + 1 if k in names else G + 1 for k in slot]
            assert digits.tolist() == expected


def told_by(learner, samples, digits, rho, teller):
    """A view in which one agent says D groupings of all agents (D, V)."""
    hearsay = learner._hearsay
    named = np.where(digits == OWN, hearsay.groups + 1, digits)[None]
    everyone = np.arange(learner.agents)[None]
    (says,) = hearsay.packed(Said(named, np.array([rho]), hearsay.groups), everyone, [1000])
    told = np.zeros((len(samples), len(says)))
    told[teller] = says
    return view(learner, samples, me=0, told=told)


def log_density(samples, alike):
    """log p(all rewards) from their covariance."""
    X, y = (np.concatenate(part) for part in zip(*samples, strict=True))
    who = np.repeat(np.arange(len(samples)), [len(sample[1]) for sample in samples])
    cov = SIGNAL**2 * alike[who[:, None], who] * (X @ X.T) + NOISE**2 * np.eye(len(y))
    return stats.multivariate_normal(cov=cov).logpdf(y)


@pytest.mark.parametrize("rho", [0, 2])
def test_the_own_data_say_in_whose_company_one_is(monkeypatch, rng, rho):
    """Under each grouping that was told: prior times density of all rewards, for each place.

    There are twelve groups, of which some are empty, and being on one's own.
    """
    levels = (np.array([NOISE**2]), np.array([NOISE**2 / SIGNAL**2]))
    monkeypatch.setattr(evidence, "levels", lambda *_: levels)
    monkeypatch.setattr(found, "_RAREST", 0.0)
    theta = SIGNAL * tasks(rng, 3, dim=3) * np.sqrt(3)
    samples = linear_samples(rng, theta[[0, 0, 0, 1, 1, 2]], n=2, noise=NOISE)
    learner = learner_of(Evidence(contexts=False, groups=3, hearsay=2), 10)
    told = np.array([[1, 1, 1, 2, 2, OWN, 3, 3, 3, 1], [OWN, 2, 2, 2, 0, 1, 1, 1, 1, 1]])
    heard = [*samples, None, None, None, None]
    loadings = learner.estimate(told_by(learner, heard, told, rho, teller=2))
    expected: dict[frozenset[int], float] = {}
    for grouping in told[:, :6]:
        place = np.where((grouping == 0) | (grouping == OWN), 13, grouping)
        fits, companies = [], []
        for mine in range(1, 14):
            label = np.array([mine, *place[1:]])
            together = np.equal.outer(label, label) & (label < 13)
            alike = np.where(np.eye(6) > 0, 1.0, CORRELATIONS[rho] * together)
            worth = (place[1:] == mine).sum() + (0.3 if mine == 13 else 0.5)
            fits.append(log_density(samples, alike) + np.log(worth))
            company = np.flatnonzero(label == mine) if mine < 13 else [0]
            companies.append(frozenset(map(int, company)))
        odds = np.exp(np.array(fits) - max(fits))
        for company, value in zip(companies, odds / odds.sum(), strict=True):
            expected[company] = expected.get(company, 0.0) + value / 2
    inside = [frozenset(map(int, np.flatnonzero(U[:, 0]))) or frozenset([0]) for U in loadings.U]
    assert len(set(inside)) == len(inside)
    for company, weight in zip(inside, loadings.weight, strict=True):
        assert weight == pytest.approx(expected.pop(company), abs=2e-4)
    assert sum(expected.values()) < 2e-4  # too rare to be kept
    for K_z, company in zip(loadings.matrix, inside, strict=True):
        in_it = np.isin(np.arange(10), list(company))
        alike = CORRELATIONS[rho] * np.outer(in_it, in_it)
        np.testing.assert_allclose(K_z, np.where(np.eye(10) > 0, 1.0, alike), atol=1e-12)


def test_who_takes_anothers_word_hands_it_on_of_those_it_knows(rng):
    samples = [*linear_samples(rng, tasks(rng, 4), n=3), *[None] * 6]
    learner = learner_of(Evidence(groups=3, hearsay=1), 10)
    told = np.array([[OWN, 1, 1, 2, 2, 2, 3, 3, 3, 1]])
    says = learner.estimate(told_by(learner, samples, told, 1, teller=3)).said
    read = learner._hearsay.unpacked(says)
    assert read.said.digits.tolist() == [[[13, 1, 1, 2, 0, 0, 0, 0, 0, 0]]]
    assert read.said.rho.tolist() == [1]
    assert read.known.tolist() == [12.0]  # what it knows itself


@pytest.mark.parametrize("known", [6, 24])
def test_what_is_said_is_what_was_drawn(rng, known):
    """Two tasks that are easy to tell apart and two loners, among a few agents and among many."""
    label = np.append(np.arange(known - 2) % 2, [2, 3])
    samples = linear_samples(rng, tasks(rng, 4)[label], n=40, noise=0.05)
    samples.insert(2, None)  # who was not heard is not known
    learner = learner_of(Evidence(), known + 1)
    (said,) = learner._hearsay.unpacked(learner.estimate(view(learner, samples)).said).said.digits
    assert said.shape == (4, known + 1)
    for grouping in said:
        assert grouping[2] == 0
        there = np.delete(grouping, 2)
        assert len(set(zip(label, there, strict=True))) == 4
        assert (there[:-2] <= 12).all()
        assert (there[-2:] == 13).all()


@pytest.mark.parametrize("drawn", [partitions.Few, crowds.Many])
def test_the_newest_draws_are_said_with_their_rho(monkeypatch, rng, drawn):
    """What is drawn last comes first, among a few agents and among many."""
    kept = []

    def companies(self, real=drawn.companies):
        kept.append(real(self))
        return kept[-1]

    monkeypatch.setattr(drawn, "companies", companies)
    swept = []
    of, name = (partitions._Walk, "sweep") if drawn is partitions.Few else (crowds.Many, "_swept")

    real = getattr(of, name)

    def sweep(self, *rest):
        answer = real(self, *rest)
        slot = self.slot if drawn is partitions.Few else answer[0]
        rho = self.rho if drawn is partitions.Few else np.zeros(4)
        swept.append((slot.copy(), rho.copy()))
        return answer

    monkeypatch.setattr(of, name, sweep)
    V = 7 if drawn is partitions.Few else 20
    samples = linear_samples(rng, tasks(rng, V), n=1)  # so nothing is sure
    learner = learner_of(Evidence(), V)
    loadings = learner.estimate(view(learner, samples))
    ((companies,), (last, rho)) = kept, swept[-1]
    np.testing.assert_array_equal(companies.rho[0, :4], rho)
    loner = last == 12 if drawn is crowds.Many else np.zeros_like(last, dtype=bool)
    np.testing.assert_array_equal(companies.drawn[0, :4], np.where(loner, -2, last))
    read = learner._hearsay.unpacked(loadings.said).said
    expected = spoken(companies.drawn, companies.rho, 4, 12)
    np.testing.assert_array_equal(read.digits, expected.digits)
    if drawn is partitions.Few:
        assert read.rho.tolist() == [rho[0]]


def test_a_crowd_says_the_rho_of_its_best_groups(monkeypatch, rng):
    def best(groups, *rest, best=evidence.best):
        places, _, score = best(groups, *rest)
        return places, np.full(len(score), 0.85), score

    monkeypatch.setattr(evidence, "best", best)
    learner = learner_of(Evidence(), 20)
    samples = linear_samples(rng, tasks(rng, 2)[np.arange(20) % 2], n=5)
    read = learner._hearsay.unpacked(learner.estimate(view(learner, samples)).said)
    assert read.said.rho.tolist() == [CORRELATIONS.index(0.85)]


def test_several_take_the_word_of_several(rng):
    """Two views, told different things under different ρ, together and each by itself."""
    learner = learner_of(Evidence(hearsay=1), 12)
    samples = [*linear_samples(rng, tasks(rng, 2)[[0, 0, 1, 1]], n=8), *[None] * 8]
    told = [
        told_by(learner, samples, np.array([[1, 1, 2, 2] + 8 * [1]]), 2, teller=1),
        told_by(learner, samples, np.array([[1, 2, 2, 1] + 8 * [1]]), 0, teller=2),
    ]
    together = views_of(
        np.arange(12)[None].repeat(2, axis=0),
        np.array([0, 0]),
        np.concatenate([one.summaries for one in told]),
        told[0].newest,
    )
    both = learner.estimate(together)
    for row, one in enumerate(told):
        alone = learner.estimate(one)
        np.testing.assert_allclose(both.expected[row], alone.expected[0], atol=1e-12)
        np.testing.assert_array_equal(both.said[row], alone.said[0])
    assert not np.allclose(both.expected[0], both.expected[1], atol=0.1)


def test_where_numbers_fail_an_agent_is_on_its_own_and_says_nothing(rng):
    class Failing:
        def said(self, dim):
            return 2

        def estimate(self, views):
            if len(views.me) > 1 or views.agents[0, 0] == 5:
                raise np.linalg.LinAlgError
            return Loadings(
                np.zeros((1, 3, 1)), np.ones((1, 3)), np.zeros(1, int), np.ones(1), np.ones((1, 2))
            )

    views = Views(
        np.array([[0, 1, 2], [5, 1, 2]]), np.ones((2, 3), bool), np.array([0, 0]),
        np.ones((1, 1)), np.zeros((2, 3), int),
    )  # fmt: skip
    loadings = estimated(Failing(), views)
    assert loadings.said.tolist() == [[1.0, 1.0], [0.0, 0.0]]


def test_odds_that_are_no_numbers_leave_an_agent_on_its_own(monkeypatch, rng):
    def normaliser(*rest, real=crowds.log_normaliser):
        return np.nan * real(*rest)

    monkeypatch.setattr(crowds, "log_normaliser", normaliser)
    learner = learner_of(Evidence(), 20)
    samples = linear_samples(rng, tasks(rng, 2)[np.arange(20) % 2], n=5)
    loadings = estimated(learner, view(learner, samples))
    assert loadings.weight.tolist() == [1.0]
    np.testing.assert_array_equal(loadings.matrix[0], np.eye(20))


def test_a_word_from_fewer_observations_is_not_taken(taking, rng):
    """As that of one who was away for long, or has forgotten."""
    samples = [*linear_samples(rng, tasks(rng, 1)[[0, 0, 0]], n=20), *[None] * 7]
    learner = learner_of(Evidence(), 10)
    told = told_by(learner, samples, np.full((4, 10), OWN), 0, teller=2)
    for known, takes in [(59.0, 0), (60.0, 1)]:
        told.table[2, -1] = known
        row = learner.estimate(told).expected[0, 0]
        assert taking.pop() == takes
        assert (row[1:3].min() > 0.8) == (not takes)


def test_a_liar_leaves_an_agent_on_its_own(rng):
    """Everyone is different, and the one who knows most says that all are alike."""
    samples = linear_samples(rng, tasks(rng, 6), n=20)
    heard = [*samples, *[None] * 9]
    learner = learner_of(Evidence(), 15)
    alike = np.ones((4, 15), dtype=np.int64)
    row = learner.estimate(told_by(learner, heard, alike, 0, teller=5)).expected[0, 0]
    assert row[0] == pytest.approx(1.0)
    assert row[1:].max() < 0.01
    same = linear_samples(rng, tasks(rng, 1)[np.zeros(6, dtype=int)], n=20)
    row = learner.estimate(told_by(learner, [*same, *[None] * 9], alike, 0, teller=5)).expected[
        0, 0
    ]
    assert row[:6].min() > 0.9  # the same words, where they are true


def test_laws_of_contexts_come_first(rng):
    """Two tasks with a law of contexts each, and one who says that nobody is alike."""
    centres = 3.0 * tasks(rng, 2)
    samples, offered = [], []
    for u in range(6):
        D = rng.normal(size=(30, 4, 5)) + centres[u % 2]
        offered.append(D)
        samples.append((D[:, 0], D[:, 0] @ centres[u % 2] + 0.1 * rng.normal(size=30)))
    learner = learner_of(Evidence(hearsay=1), 15)
    nobody = Said(np.full((1, 1, 15), 13), np.zeros(1, dtype=np.int64), 12)
    told = np.tile(learner._hearsay.packed(nobody, np.arange(15)[None], [1000]), (15, 1))
    views = view(learner, [*samples, *[None] * 9], offered=[*offered, *[None] * 9], told=told)
    loadings = learner.estimate(views)
    assert loadings.expected[0, 0, [2, 4]].min() > 0.9
    (says,) = learner._hearsay.unpacked(loadings.said).said.digits
    assert (says[0, 6:] == 0).all()
    assert len(set(zip(np.arange(6) % 2, says[0, :6], strict=True))) == 2


def hub():
    """One who hears nine others, each of whom hears its neighbours on a ring too."""
    ring = range(1, 10)
    return cb.Network.from_edges([(0, v) for v in ring] + [(v, v % 9 + 1) for v in ring])


@pytest.mark.parametrize(
    "more",
    [
        {},
        {"features": cb.features.Exact()},
        {"features": cb.features.Exact(), "say": cb.say.Sums()},
    ],
    ids=["observations", "features", "sums"],
)
@pytest.mark.parametrize(("network", "ttl"), [(hub(), 1), (cb.Network.path(8), 2)])
def test_messages_and_lags_agree(taking, more, network, ttl):
    V = len(network)
    problem = cb.problems.clustered_linear(network, clusters=[v % 2 for v in range(V)], dim=4)
    policy = cb.EagerKernelUCB(kernel=Linear(), ttl=ttl, eta=0.3, **more)
    real = cb.play(problem, policy, rounds=9, engine="messages", seed=2)
    assert sum(taking) > 5
    silent = replace(policy, similarity=Evidence(hearsay=0))
    quiet = cb.play(problem, silent, rounds=2, engine="messages", seed=2)
    assert real.bytes[1] > quiet.bytes[1]
    run = cb.play(problem, replace(policy, say=cb.say.Everything()), rounds=9, seed=2)
    np.testing.assert_array_equal(real.actions, run.actions)
    if "say" not in more:  # sums have another size
        np.testing.assert_array_equal(real.bytes, run.bytes)
    for t in (1, 5, 9):
        np.testing.assert_allclose(real.similarity(t), run.similarity(t), atol=1e-8)


@pytest.mark.parametrize("features", [None, cb.features.Exact()], ids=["observations", "features"])
def test_an_agent_that_takes_anothers_word_is_restored_to_the_bit(rng, taking, features):
    network = hub()
    policy = cb.EagerKernelUCB(kernel=Linear(), eta=0.3, features=features)
    agents = [policy.agent(v, network, seed=4) for v in range(10)]
    for _ in range(6):
        news = []
        for v, agent in enumerate(agents):
            decision = agent.decide(rng.normal(size=(4, 3)))
            news += [(v, message) for message in agent.reward(decision.id, rng.normal())]
        for v, message in news:
            for to in agents[v].recipients:
                agents[to].receive(message)
        for v in (0, 3):
            twin = cb.Agent.from_bytes(agents[v].to_bytes(), policy=policy, network=network)
            assert twin.to_bytes() == agents[v].to_bytes()
            offered = rng.normal(size=(4, 3))
            agents[v].preview(offered)  # all that has come is learnt
            before = agents[v].to_bytes()
            one, two = twin.decide(offered), agents[v].decide(offered)
            assert (one.index, one.mean, one.std) == (two.index, two.mean, two.std)
            (said,), (same,) = twin.reward(one.id, 0.5), agents[v].reward(two.id, 0.5)
            np.testing.assert_array_equal(said.context, same.context)
            assert said.context[6:].any()  # a grouping is among it
            # before anything new has come it says the same again
            once_more = cb.Agent.from_bytes(before, policy=policy, network=network)
            again = once_more.decide(offered)
            (said,) = once_more.reward(again.id, 0.5)
            np.testing.assert_array_equal(said.context, same.context)
    assert sum(taking) > 20


def test_a_point_of_a_continuum_is_told_with_groupings(rng):
    network = hub()
    policy = cb.EagerKernelUCB(kernel=Linear(), eta=0.3)
    agents = [policy.agent(v, network) for v in range(10)]
    for _ in range(2):
        news = []
        for v, agent in enumerate(agents):
            decision = agent.decide(cb.Box([-1.0, -1.0], [1.0, 1.0]))
            news += [(v, message) for message in agent.reward(decision.id, rng.normal())]
        for v, message in news:
            for to in agents[v].recipients:
                agents[to].receive(message)
    assert all(message.context[4:].any() for _, message in news)


def test_nothing_is_said_where_it_is_of_no_use():
    lags = lags
    assert of_use(lags(hub(), 1))
    assert not of_use(lags(hub(), 2))  # all hear all
    ring = cb.Network.from_edges([(v, (v + 1) % 20) for v in range(20)])
    assert not of_use(lags(ring, 3))  # all hear as many
    # at the two ends of a path fewer are heard; nothing is said for the sake of 2 in 30
    assert of_use(lags(cb.Network.path(15), 3))
    assert not of_use(lags(cb.Network.path(30), 3))
    # the one who hears all is heard by nobody
    edges = [(v, 0) for v in range(1, 10)] + [(1, 2), (2, 1)]
    assert not of_use(lags(cb.Network.from_edges(edges, directed=True), 1))
    said = {
        "Coop": (cb.CoopKernelUCB(kernel=Linear()), 0),  # within cliques all hear all
        "two hops": (cb.EagerKernelUCB(kernel=Linear(), ttl=2), 0),
        "not asked": (cb.EagerKernelUCB(kernel=Linear(), similarity=Evidence(hearsay=0)), 0),
        "quick": (cb.EagerKernelUCB(kernel=Linear(), similarity=Evidence(partitions=0)), 0),
        "64 features": (cb.EagerKernelUCB(kernel=cb.kernels.RBF()), 0),
        # ten agents, four groupings and ρ, thirteen digits a number; and how much is known
        "said": (cb.EagerKernelUCB(kernel=Linear()), 4 + 1),
    }
    for name, (policy, numbers) in said.items():
        agent = policy.agent(1, hub())
        decision = agent.decide(np.eye(3))
        (message,) = agent.reward(decision.id, 1.0)
        mean_features = 64 if name == "64 features" else 3
        assert len(message.context) == 3 + mean_features + numbers, name


def test_in_a_large_network_nothing_is_said():
    for V, more in [(1000, 308 + 1), (1001, 0)]:
        assert learner_of(Evidence(), V).attached(3) == 3 + more


def test_of_what_was_said_the_newest_counts():
    sums, row = np.array([1.0, 2.0, 3.0]), np.array([1.0, 5.0, 7.0])
    np.testing.assert_array_equal(added(sums, row, 0), [2.0, 7.0, 10.0])
    np.testing.assert_array_equal(added(sums, row, 2), [2.0, 5.0, 7.0])
    np.testing.assert_array_equal(sums, [1.0, 2.0, 3.0])


@pytest.mark.parametrize("wrong", [-1, 1.5, "4", None])
def test_how_much_is_said_is_a_count(wrong):
    with pytest.raises(ParameterError, match="hearsay must be"):
        Evidence(hearsay=wrong)
