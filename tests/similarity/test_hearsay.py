"""What others say of who is with whom: how it is packed, whose word is taken, and what follows."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

import coopbandits as cb
from coopbandits.errors import ParameterError
from coopbandits.kernels import Linear
from coopbandits.similarity import Evidence, evidence, found
from coopbandits.similarity.groups import CORRELATIONS
from coopbandits.similarity.hearsay import Hearsay, Said, of_use, spoken
from coopbandits.similarity.similarity import Views, added
from learnt_views import learner_of, linear_samples, tasks, view

NOISE, SIGNAL = 0.3, 0.5  # σ, and the deviation of the weights


def words(agents, *, groups=12, draws=2):
    return Hearsay(agents=agents, groups=groups, draws=draws, correlations=len(CORRELATIONS))


@pytest.mark.parametrize("groups", [1, 2, 12, 40])
@pytest.mark.parametrize("agents", [1, 7, 200])
def test_what_is_packed_is_read_again(rng, agents, groups):
    hearsay = words(agents, groups=groups, draws=3)
    said = Said(rng.integers(groups + 2, size=(5, 3, agents)), rng.integers(4, size=5))
    numbers = hearsay.packed(said, np.tile(np.arange(agents), (5, 1)))
    assert numbers.shape == (5, hearsay.size)
    assert (numbers < 2**53).all()
    assert (numbers == np.floor(numbers)).all()
    # no number has room for one digit more, so it could not be said with fewer
    per_number = int(np.log(2.0**53) / np.log(max(groups + 2, 4)))
    assert hearsay.size == int(np.ceil((3 * agents + 1) / per_number))
    read = hearsay.unpacked(numbers)
    np.testing.assert_array_equal(read.digits, said.digits)
    np.testing.assert_array_equal(read.rho, said.rho)


def test_agents_are_named_by_the_view_and_padding_says_nothing():
    hearsay = words(6, draws=1)
    said = Said(np.array([[[3, 1, 0, 0]]]), np.array([2]))
    read = hearsay.unpacked(hearsay.packed(said, np.array([[4, 2, 0, 4]])))
    assert read.digits.tolist() == [[[0, 0, 1, 0, 3, 0]]]
    assert read.rho.tolist() == [2]


def test_any_finite_numbers_can_be_read(rng):
    hearsay = words(30)
    odd = [-1.0, 0.5, 2.0**53, 1e300, -1e300, 1e-300, 2.0**53 - 1]
    numbers = rng.choice(odd, size=(50, hearsay.size))
    read = hearsay.unpacked(numbers)
    assert ((read.digits >= 0) & (read.digits <= 13)).all()
    assert ((read.rho >= 0) & (read.rho < 4)).all()
    for nonsense in odd[:-1]:
        assert not hearsay.unpacked(np.full((1, hearsay.size), nonsense)).digits.any()


def takers(known, views, members):
    """Whose word each takes, or None, by the rule as it is written: P sets, views, (B, N)."""
    taken = []
    for b, me in enumerate(views.me):
        mine = {int(views.agents[b, n]) for n in np.flatnonzero(members[b])}
        best, most = None, 0
        for n, row in enumerate(views.index[b]):
            fits = n != me and views.heard[b, n] and members[b, n]
            fits = fits and len(known[row]) >= 1.5 * len(mine)
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
        said = Said(digits, rng.integers(4, size=V))
        agents = np.array([rng.permutation(V)[:N] for _ in range(B)])
        heard = rng.random((B, N)) < rng.random((B, 1))
        views = Views(agents, heard, rng.integers(N, size=B), np.empty((V, 0)), agents)
        members = heard & (rng.random((B, N)) < 0.9)
        takes, theirs = hearsay.taken(said, views, members)
        known = [set(map(int, np.flatnonzero(of.any(axis=0)))) for of in digits]
        expected = takers(known, views, members)
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


def test_draws_are_said_as_they_are(rng):
    B, K, N, G = 30, 6, 9, 3
    slots = rng.integers(-2, 5, size=(B, K, N))
    rho = rng.integers(2, size=(B, K))
    said = spoken(slots, rho, 4, G)
    np.testing.assert_array_equal(said.rho, rho[:, 0])
    for b in range(B):
        fitting = slots[b][rho[b] == rho[b, 0]]
        for digits, slot in zip(said.digits[b], np.resize(fitting, (4, N)), strict=True):
            names = [k for k in range(5) if (slot == k).sum() > 1][:G]
            expected = [0 if k == -1 else names.index(k) + 1 if k in names else G + 1 for k in slot]
            assert digits.tolist() == expected


def told_by(learner, samples, digits, rho, teller):
    """A view in which one agent says D groupings of all agents (D, V)."""
    everyone = np.arange(learner.agents)[None]
    says = learner._hearsay.packed(Said(digits[None], np.array([rho])), everyone)[0]
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
    """Under each grouping that was told: prior times density of all rewards, for each place."""
    levels = (np.array([NOISE**2]), np.array([NOISE**2 / SIGNAL**2]))
    monkeypatch.setattr(evidence, "levels", lambda *_: levels)
    monkeypatch.setattr(found, "_RAREST", 0.0)
    theta = SIGNAL * tasks(rng, 3, dim=3) * np.sqrt(3)
    samples = linear_samples(rng, theta[[0, 0, 0, 1, 1, 2]], n=2, noise=NOISE)
    learner = learner_of(Evidence(contexts=False, groups=3, hearsay=2), 10)
    told = np.array([[1, 1, 1, 2, 2, 4, 3, 3, 3, 1], [4, 2, 2, 2, 0, 1, 1, 1, 1, 1]])
    heard = [*samples, None, None, None, None]
    loadings = learner.estimate(told_by(learner, heard, told, rho, teller=2))
    expected: dict[frozenset[int], float] = {}
    for grouping in told[:, :6]:
        place = np.where(grouping == 0, 4, grouping)
        count = np.array([(place[1:] == g).sum() for g in range(1, 5)])
        fits, companies = [], []
        for mine in (1, 2, 3, 4):
            label = np.array([mine, *place[1:]])
            together = np.equal.outer(label, label) & (label < 4)
            alike = np.where(np.eye(6) > 0, 1.0, CORRELATIONS[rho] * together)
            fits.append(
                log_density(samples, alike) + np.log(count[mine - 1] + [0.5, 0.3][mine > 3])
            )
            company = np.flatnonzero(label == mine) if mine < 4 else [0]
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
    told = np.array([[4, 1, 1, 2, 2, 2, 3, 3, 3, 1]])
    says = learner.estimate(told_by(learner, samples, told, 1, teller=3)).said
    read = learner._hearsay.unpacked(says)
    assert read.digits.tolist() == [[[4, 1, 1, 2, 0, 0, 0, 0, 0, 0]]]
    assert read.rho.tolist() == [1]


@pytest.mark.parametrize("known", [5, 20])
def test_what_is_said_is_what_was_drawn(rng, known):
    """Two tasks that are easy to tell apart, among a few agents and among many."""
    label = np.arange(known) % 2
    samples = [*linear_samples(rng, tasks(rng, 2)[label], n=25, noise=0.1), None]
    learner = learner_of(Evidence(), known + 1)
    (said,) = learner._hearsay.unpacked(learner.estimate(view(learner, samples)).said).digits
    assert said.shape == (4, known + 1)
    for grouping in said:
        assert grouping[-1] == 0  # who was not heard is not known
        assert len(set(zip(label, grouping[:-1], strict=True))) == 2
        assert (grouping[:-1] <= 12).all()


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
    nobody = learner._hearsay.packed(
        Said(np.full((1, 1, 15), 13), np.zeros(1, dtype=np.int64)), np.arange(15)[None]
    )
    told = np.tile(nobody, (15, 1))
    views = view(learner, [*samples, *[None] * 9], offered=[*offered, *[None] * 9], told=told)
    row = learner.estimate(views).expected[0, 0]
    assert row[[2, 4]].min() > 0.9


def hub():
    """One who hears nine others, each of whom hears its neighbours on a ring too."""
    ring = range(1, 10)
    return cb.Network.from_edges([(0, v) for v in ring] + [(v, v % 9 + 1) for v in ring])


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
    if "say" in more:  # only agents tell sums
        return
    run = cb.play(problem, policy, rounds=9, seed=2)
    np.testing.assert_array_equal(real.actions, run.actions)
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
            one, two = twin.decide(offered), agents[v].decide(offered)
            assert (one.index, one.mean, one.std) == (two.index, two.mean, two.std)
            (said,), (same,) = twin.reward(one.id, 0.5), agents[v].reward(two.id, 0.5)
            np.testing.assert_array_equal(said.context, same.context)
            assert said.context[6:].any()  # a grouping is among it
    assert sum(taking) > 20


def test_nothing_is_said_where_it_is_of_no_use():
    lags = cb.messages.lags
    assert of_use(lags(hub(), 1))
    assert not of_use(lags(hub(), 2))  # all hear all
    ring = cb.Network.from_edges([(v, (v + 1) % 20) for v in range(20)])
    assert not of_use(lags(ring, 3))  # all hear as many
    # at the two ends of a path fewer are heard; nothing is said for the sake of 2 in 30
    assert of_use(lags(cb.Network.path(15), 3))
    assert not of_use(lags(cb.Network.path(30), 3))
    said = {
        "Coop": (cb.CoopKernelUCB(kernel=Linear()), 0),  # within cliques all hear all
        "two hops": (cb.EagerKernelUCB(kernel=Linear(), ttl=2), 0),
        "not asked": (cb.EagerKernelUCB(kernel=Linear(), similarity=Evidence(hearsay=0)), 0),
        "quick": (cb.EagerKernelUCB(kernel=Linear(), similarity=Evidence(partitions=0)), 0),
        "64 features": (cb.EagerKernelUCB(kernel=cb.kernels.RBF()), 0),
        # ten agents, four groupings and ρ, thirteen digits a number
        "said": (cb.EagerKernelUCB(kernel=Linear()), 4),
    }
    for name, (policy, numbers) in said.items():
        agent = policy.agent(1, hub())
        decision = agent.decide(np.eye(3))
        (message,) = agent.reward(decision.id, 1.0)
        mean_features = 64 if name == "64 features" else 3
        assert len(message.context) == 3 + mean_features + numbers, name


def test_in_a_large_network_nothing_is_said():
    for V, more in [(1000, 308), (1001, 0)]:
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
