"""Advice from logs of known truth: what is named is nearly the best, or nothing is named."""

from types import SimpleNamespace

import numpy as np
import pytest

import coopbandits as cb
from coopbandits.errors import InputError, NetworkError, ParameterError
from coopbandits.lab import Log, Logged, advise, fit_kernel, logged, start_agents
from coopbandits.lab.logs import advice as room, advice_words as words
from coopbandits.lab.logs.candidates import Candidate, candidates, suited

V = 4
COMPLETE = cb.Network.complete(V)
WORLDS = ([0] * V, [*range(V)], [0, 0, 1, 1])


def world(i, rounds=(40, 80), noises=(0.2, 0.4, 0.8)):
    """Agents that are all alike, all different, or of two kinds; more or less noise and data."""
    rng = np.random.default_rng(i)
    problem = cb.problems.clustered_linear(
        COMPLETE, clusters=WORLDS[i % 3], dim=5, actions=3, noise=float(rng.choice(noises)), seed=i
    )
    return problem, logged(problem, int(rng.choice(rounds)), seed=i)


def quickly(log, **options):
    return advise(log, network=COMPLETE, ttls=(1,), kernels=["linear"], replays=False, **options)


def worth(problem, agents, rounds=60):
    """The true value of agents as they are: the mean expected reward of what they take."""
    offers, total = [problem.round(t, seed=10**6) for t in range(1, rounds + 1)], 0.0
    for v, agent in enumerate(agents):
        rows = [np.flatnonzero(offer.agents == v) for offer in offers]
        contexts = [offer.contexts[mine] for offer, mine in zip(offers, rows, strict=True)]
        upper = agent.predict(np.concatenate(contexts)).upper.reshape(rounds, -1)
        expected = np.array([o.expected[mine] for o, mine in zip(offers, rows, strict=True)])
        total += expected[np.arange(rounds), upper.argmax(axis=1)].sum()
    return total / rounds / len(agents)


def judged_by_truth(i):
    """Whether a log named one, what that loses of the best, and how many errors the gap has.

    The gap is between the best candidate and the best of those that are more than 5% worse.
    """
    problem, log = world(i)
    found = quickly(log)
    true = [
        worth(problem, start_agents(log, one.candidate.policy, network=COMPLETE))
        for one in found.judged
    ]
    best = int(np.argmax(true))
    recommended = [one.candidate for one in found.judged].index(found.recommended)
    loss = 1 - true[recommended] / true[best]
    worse = [k for k, value in enumerate(true) if value < 0.95 * true[best]]
    if not worse:
        return found.named is not None, loss, 0.0
    second = max(worse, key=true.__getitem__)
    gains = found.judged[best].gains - found.judged[second].gains
    _, (low, high) = room.mean_of(gains, log.rounds)
    return found.named is not None, loss, (true[best] - true[second]) / ((high - low) / 2 / 1.96)


def checked(rows, least):
    """Where the gap is beyond three standard errors one is named, and it is nearly the best."""
    clear = [(named, loss) for named, loss, errors in rows if errors > 3]
    assert len(clear) >= least
    losses = np.array([loss for named, loss in clear if named])
    assert len(losses) >= 0.7 * len(clear)
    assert np.mean(losses <= 0.05) >= 0.95


@pytest.mark.slow
def test_on_a_hundred_logs_of_known_truth_what_is_named_is_within_5_percent_of_the_best():
    rows = [judged_by_truth(i) for i in range(100)]
    checked(rows, 20)
    named = np.array([loss for named, loss, _ in rows if named])
    assert 30 < len(named) < 100  # some logs cannot tell
    assert np.mean(named <= 0.05) >= 0.95


def test_on_a_few_logs_of_known_truth_what_is_named_is_within_5_percent_of_the_best():
    checked([judged_by_truth(i) for i in (1, 7)], 1)


@pytest.fixture(scope="module")
def found():
    return quickly(world(1)[1])


def test_everything_that_is_said_of_a_candidate_comes_from_its_gains(found):
    best = max(found.judged, key=lambda one: one.value)
    assert (best.gap, best.gap_interval) == (0.0, (0.0, 0.0))
    for one in found.judged:
        assert one.value == pytest.approx(one.gains.mean())
        assert one.gap == pytest.approx(best.value - one.value)
        assert one.interval[0] < one.value < one.interval[1]
        assert not one.gains.flags.writeable
    names = [one.candidate.name for one in found.judged]
    assert names == ["alone", "estimated, γ = 1", "all alike, γ = 1"]
    more, (low, high) = found.over(found.recommended)
    assert more == pytest.approx(found.of(found.recommended).value - found.logged)
    assert low < more < high


def test_different_tasks_are_told_from_equal_ones(found):
    alike = next(one for one in found.judged if one.candidate.name == "all alike, γ = 1")
    assert alike.gap_interval[0] > 0
    assert found.verdict in ("better", "as good")
    assert found.named is found.recommended
    words = " ".join(found.words)
    assert f"Verdict: take “{found.recommended.name}”" in words
    assert repr(found).splitlines() == ["Advice:", *found.words]
    assert "Worse are “all alike, γ = 1” (by " in words or found.verdict == "better"


def test_no_agent_is_judged_by_rounds_that_it_learnt_from(found):
    log = found.log
    labels = log.rounds - 1
    first = labels % 3 == 0
    other = Log(
        tuple(
            Logged(d.round, d.agent, d.contexts, d.action, -9.0 if hit else d.reward, d.propensity)
            for d, hit in zip(log.decisions, first, strict=True)
        ),
        V,
    )
    one = found.judged[2].candidate
    before, _ = room._decided_by(log, one, COMPLETE, labels, seed=0)
    after, _ = room._decided_by(other, one, COMPLETE, labels, seed=0)
    same = [np.array_equal(a, b) for a, b in zip(before, after, strict=True)]
    assert np.array(same)[first].all()
    assert not np.array(same)[~first].all()


def test_started_agents_have_learnt_as_if_they_had_observed_it_all():
    _, log = world(2)
    policy = cb.NaiveCooperation(
        cb.kernels.Linear(), ttl=2, intercept=2.0, features=cb.features.Exact()
    )
    network = cb.Network.path(V)
    started = start_agents(log, policy, network=network)
    for v, agent in enumerate(started):
        other = policy.agent(v, network)
        for one in log.decisions:
            if abs(one.agent - v) <= 2:
                context = one.contexts[one.action]
                other.observe(context, one.reward, origin=one.agent)
        contexts = log.decisions[0].contexts
        assert agent.known == other.known
        assert agent.predict(contexts).mean == pytest.approx(other.predict(contexts).mean)
    alone = start_agents(log, policy)
    assert [agent.known for agent in alone] == np.bincount(log.owners).tolist()
    with pytest.raises(NetworkError, match="the log has 4 agents and the network 3"):
        start_agents(log, policy, network=cb.Network.path(3))


def test_the_advised_agents_have_learnt_the_whole_log(found):
    agents = found.agents()
    assert len(agents) == V
    assert {agent.policy for agent in agents} == {found.policy}
    assert all(agent.known >= len(found.log) / V for agent in agents)


def test_without_a_network_nobody_hears_anybody():
    _, log = world(1)
    found = advise(log, kernels=["linear"], replays=False)
    assert [one.candidate.name for one in found.judged] == ["alone"]
    assert "No network is given, so nobody could hear anybody" in " ".join(found.words)


def test_replays_stand_beside_and_hops_beyond_the_diameter_are_left_out():
    _, log = world(1, rounds=(60,))
    found = advise(log, network=COMPLETE, ttls=(2, 1), kernels=["linear"])
    assert [one.candidate.policy.ttl for one in found.judged] == [1, 1, 1]
    for one in found.judged:
        assert one.replay.policy == one.candidate.name
        assert one.replay.logged == found.logged
    path = candidates(log, cb.Network.path(V), (1, 3), found.suited)
    assert [one.policy.ttl for one in path] == [1, 1, 3, 1, 3]


def test_the_likeliest_kernel_and_scaling_are_taken():
    problem = cb.problems.kernel(cb.Network.path(2), dim=2, actions=3, noise=0.1, norm=3.0, seed=2)
    log = logged(problem, 60, seed=2)
    best = suited(log, ["linear", "rbf"])
    assert best.fit.name == "rbf"
    assert best.scaling is None  # numbers of size 1 stay as they are, if that is as likely
    assert best.fit.evidence > max(fit.evidence for _, fit in best.tried) - 3
    assert best.fit.evidence == max(fit.evidence for scaled, fit in best.tried if not scaled)
    grown = log.scaled(cb.Scaling(shift=[0.0, -7.0], spread=[1.0, 1e-3]))  # one number in thousands
    found = suited(grown, ["rbf"])
    assert found.scaling is not None
    raw = fit_kernel(grown, "rbf", most=100)
    assert found.fit.evidence > raw.evidence


def made(name, risk, gains, effective=100.0, believed=1.0, top=None):
    """A candidate with these gains, as judged beside the best's."""
    gains = np.asarray(gains, dtype=np.float64)
    labels = np.arange(len(gains))
    value, interval = room.mean_of(gains, labels)
    gap, gap_interval = room.mean_of((gains if top is None else top) - gains, labels)
    candidate = Candidate(name, cb.LinUCB(), risk)
    return room.Judged(
        candidate, value, interval, gap, gap_interval, believed, effective, None, (), gains
    )


def verdict(*judged, decisions=400):
    kind, named, recommended, rivals, more = room.decided(judged, decisions)
    return kind, named and named.name, recommended.name, [one.name for one in rivals], more


def test_the_verdict_names_one_or_says_how_many_decisions_would(rng):
    top = 1.0 + rng.normal(size=400)
    best = made("best", 2, top)
    worse = made("worse", 0, top - 0.5 + 0.1 * rng.normal(size=400), top=top)
    same = made("same", 1, top - 0.001 * rng.random(400), top=top)
    assert verdict(worse, best) == ("better", "best", "best", [], None)
    noisy = top - 0.04 - rng.normal(size=400)
    close = made("close", 1, noisy, top=top)
    near = made("near", 1, noisy, top=top, believed=0.01)
    assert close.gap_interval[0] < 0
    assert close.gap_interval[1] > 0.05 * best.value
    assert verdict(worse, near, best)[:3] == ("as good", "near", "near")
    kind, named, recommended, rivals, more = verdict(worse, close, best)
    assert (kind, named, recommended, rivals) == ("unclear", None, "close", ["best"])
    error = (close.gap_interval[1] - close.gap) / 1.96
    # after so many more the smaller of both questions is answered with a power of 80%
    after = error / np.sqrt(1 + more / 400)
    margin = 0.05 * abs(best.value)
    answered = max(close.gap, margin - close.gap) / after
    assert answered == pytest.approx(1.96 + 0.84, rel=0.02)
    assert verdict(same, best)[0] == "better"  # tiny, and sure
    nothing = made("nothing", 0, [1.0, 2.0])
    silent = room.Judged(
        nothing.candidate, np.nan, (np.nan,) * 2, np.nan, (np.nan,) * 2, np.nan, 0.0, None, (),
        np.empty(0),
    )  # fmt: skip
    assert verdict(silent) == ("nothing", None, "nothing", [], None)
    assert verdict(silent, worse, best)[1] == "best"


def test_of_each_agent_the_latest_decisions_are_used():
    _, log = world(0)
    part = room.latest(log, 7)
    for v in range(V):
        assert np.array_equal(part.rewards[part.owners == v], log.rewards[log.owners == v][-7:])
    assert room.latest(log, 1000) is log


def test_logs_that_cannot_be_asked_are_refused():
    _, log = world(0)
    bare = Log.of([Logged(d.round, d.agent, d.contexts, d.action, d.reward) for d in log.decisions])
    with pytest.raises(InputError, match="does not say with which probability"):
        quickly(bare)
    one, other = (
        advise(some, kernels=["linear"], replays=False, uniform=some is bare)
        for some in (bare, log)
    )
    assert one.judged[0].value == pytest.approx(other.judged[0].value)
    with pytest.raises(ParameterError, match="ttls is empty"):
        advise(log, ttls=())
    with pytest.raises(ParameterError, match="kernels='cubic' is not known"):
        advise(log, kernels=["cubic"])
    with pytest.raises(InputError, match="clusters by round"):
        quickly(log.before(10))


def test_what_logging_never_takes_is_not_judged(rng):
    decisions = []
    for t in range(1, 61):
        p = [0.5, 0.5, 0.0] if t % 2 else [0.0, 0.5, 0.5]
        for v in range(2):
            taken = int(rng.choice(3, p=p))
            reward = float(taken != 1) + 0.1 * rng.normal()
            decisions.append(Logged(t, v, np.eye(3), taken, reward, propensities=p))
    found = advise(Log.of(decisions), kernels=["linear"])
    assert found.verdict == "nothing"
    assert "where the log gives it probability 0 (agent " in found.judged[0].refusals[0]


def test_a_log_in_which_nothing_is_taken_that_agents_would_take_tells_nothing(rng):
    decisions = []
    for t in range(1, 61):  # the second action is better, and was hardly ever taken
        for v in range(2):
            taken = int(t % 15 == 0)
            p = [0.97, 0.03]
            decisions.append(
                Logged(t, v, np.eye(2), taken, taken + 0.1 * rng.normal(), propensities=p)
            )
    found = advise(Log.of(decisions), kernels=["linear"])
    assert (found.verdict, found.named) == ("nothing", None)
    words = " ".join(found.words)
    assert "tells nothing of any candidate" in words
    assert "worth" in found.judged[0].refusals[0]


def test_candidates_that_would_take_the_same_are_told_apart_from_open_ones(rng):
    top = 1.0 + rng.normal(size=60)
    open_, best = made("open", 0, top - rng.normal(size=60), top=top), made("best", 2, top)
    twin = made("twin", 1, top, top=top)
    judged = [open_, twin, best]
    advice = SimpleNamespace(
        verdict="unclear", recommended=open_.candidate, more=260, judged=judged, log=range(60),
        rivals=(twin.candidate, best.candidate),
        of=lambda candidate: next(one for one in judged if one.candidate is candidate),
    )  # fmt: skip
    said = " ".join(words._verdict(advice))
    assert "apart: “open” and “twin”. On this log “best” would have taken what one of these" in said
    assert "some 260 more decisions" in said
    advice.recommended, advice.rivals = twin.candidate, (best.candidate,)
    said = " ".join(words._verdict(advice))
    assert "cannot tell “twin” and “best” apart: all would have taken the same" in said
    assert "more decisions" not in said
