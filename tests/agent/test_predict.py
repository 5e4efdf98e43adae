"""What an agent believes of actions, said by a decision or asked for; and how it ranks them."""

import dataclasses

import numpy as np
import pytest

import coopbandits as cb
from coopbandits.act import AtRandom, Explore, Sample, UpperBound
from coopbandits.errors import CoopBanditsError, LocalProtocolError
from reference import formulas

ALONE, NETWORK, D = cb.Network.path(1), cb.Network.path(3), 2
RBF, LINEAR = cb.kernels.RBF(), cb.kernels.Linear()
SAME, EXACT = cb.similarity.Same(), cb.features.Exact()
FROZEN = cb.similarity.MeanEmbedding(refresh="frozen", sample="offered")
POLICIES = {
    "exact": cb.EagerKernelUCB(RBF, similarity=SAME),
    "sums": cb.EagerKernelUCB(LINEAR, similarity=SAME, features=EXACT, intercept=2.0),
    "units": cb.EagerKernelUCB(
        RBF,
        similarity=SAME,
        features=cb.features.Fourier(8),
        scale=3.0,
        scaling=cb.Scaling(1.0, 2.0),
    ),
    "evidence": cb.EagerKernelUCB(LINEAR, similarity=cb.similarity.Evidence()),
    "frozen": cb.EagerKernelUCB(LINEAR, similarity=FROZEN),
    "half life": cb.EagerKernelUCB(LINEAR, similarity=SAME, forget=cb.forget.Exponential(3.0)),
    "window": cb.EagerKernelUCB(RBF, similarity=SAME, forget=cb.forget.Window(3)),
    "draws": cb.EagerKernelTS(RBF, similarity=SAME),
    "many draws": cb.EagerKernelTS(LINEAR, similarity=SAME, features=EXACT, samples=5),
    "explores": cb.EagerKernelUCB(RBF, similarity=SAME).exploring(0.4),
}


def grown(name, rng, rounds=5):
    """An agent after a few rounds, one decision of which waits for its reward."""
    policy = POLICIES[name]
    agent, peer = policy.agent(1, NETWORK), policy.agent(0, NETWORK)
    for t in range(rounds):
        decision = agent.decide(rng.normal(size=(3, D)))
        if t != 2:
            agent.reward(decision, rng.normal())
        for message in peer.reward(peer.took(rng.normal(size=(3, D)), 0), rng.normal()):
            agent.receive(message)
    return agent


@pytest.mark.parametrize("act", [UpperBound(), Sample(), Sample(4), Explore(share=0.5)], ids=repr)
def test_scores_are_the_papers_posterior_at_every_action(rng, act):
    policy = dataclasses.replace(cb.KernelUCB(kernel=RBF, eta=0.8, ridge=0.3), act=act)
    agent, X, y = policy.agent(0, ALONE), rng.normal(size=(6, 2)), rng.normal(size=6)
    for x, reward in zip(X, y, strict=True):
        agent.observe(x, reward)
    offered = rng.normal(size=(5, 2))
    mean, variance = formulas.posterior(RBF(X, X), RBF(X, offered), np.ones(5), y, 0.3)
    for _ in range(6):  # explored or not
        decision = agent.decide(offered)
        scores, at = decision.scores, decision.index
        np.testing.assert_allclose(scores.mean, mean, atol=1e-10)
        np.testing.assert_allclose(scores.std, np.sqrt(variance), atol=1e-10)
        np.testing.assert_allclose(scores.upper, mean + 0.8 / np.sqrt(0.3) * scores.std)
        assert (decision.mean, decision.std) == (scores.mean[at], scores.std[at])
        assert not any(a.flags.writeable for a in (scores.mean, scores.std, scores.upper))
    if act == UpperBound():
        assert decision.index == np.argmax(scores.upper)


def test_an_agent_that_knows_nothing_tells_its_prior(rng):
    scores = (
        cb.KernelUCB(kernel=RBF, eta=2.0).agent(0, ALONE).decide(rng.normal(size=(3, 2))).scores
    )
    np.testing.assert_array_equal(scores.mean, 0.0)
    np.testing.assert_array_equal(scores.std, 1.0)
    np.testing.assert_array_equal(scores.upper, 2.0)


def test_where_no_posterior_is_asked_there_are_no_scores(rng):
    policy = dataclasses.replace(cb.LinUCB(), act=AtRandom())
    assert policy.agent(0, ALONE).decide(rng.normal(size=(3, 2))).scores is None
    assert cb.LinUCB().agent(0, ALONE).decide(cb.Box([0.0], [1.0])).scores is None


def test_a_decision_takes_its_reward_as_its_id_does(rng):
    one, two = (cb.LinUCB().agent(0, ALONE, seed=3) for _ in range(2))
    offered = rng.normal(size=(3, 2))
    one.reward(one.decide(offered), 0.7)
    two.reward(two.decide(offered).id, 0.7)
    assert one.to_bytes() == two.to_bytes()
    again = one.decide(offered)
    one.reward(again, 1.0)
    with pytest.raises(LocalProtocolError, match="decision 2 has its reward already"):
        one.reward(again, 1.0)


@pytest.mark.parametrize("learn", [True, False])
@pytest.mark.parametrize("name", POLICIES)
def test_a_prediction_is_what_a_decision_says_and_opens_nothing(name, learn, rng):
    agent, offered = grown(name, rng), rng.normal(size=(4, D))
    awaiting, known = agent.awaiting, agent.known
    found = agent.predict(offered, learn=learn)
    learnt = agent.to_bytes()
    again = agent.predict(offered, learn=learn)
    order = agent.rank(offered, learn=learn)
    # all is learnt and folded in by now: nothing is opened, and no random number used up
    assert agent.to_bytes() == learnt
    assert (agent.awaiting, agent.known) == (awaiting, known)
    decision = agent.decide(offered, learn=learn)
    for part in ("mean", "std", "upper"):
        np.testing.assert_array_equal(getattr(found, part), getattr(decision.scores, part))
        np.testing.assert_array_equal(getattr(again, part), getattr(found, part))
        assert not getattr(found, part).flags.writeable
    assert sorted(order.tolist()) == [0, 1, 2, 3]
    if name not in ("many draws", "explores"):  # what it leaves to chance
        assert decision.index == order[0]


@pytest.mark.parametrize("name", ["exact", "sums", "units", "window", "explores"])
def test_the_order_is_that_of_upper_bounds(name, rng):
    agent, offered = grown(name, rng), rng.normal(size=(9, D))
    upper = agent.predict(offered).upper
    np.testing.assert_array_equal(agent.rank(offered), np.argsort(-upper, kind="stable"))
    for k in (1, 4, 9):
        np.testing.assert_array_equal(agent.rank(offered, k), agent.rank(offered)[:k])


def test_of_ties_the_lowest_comes_first(rng):
    agent = grown("exact", rng)
    x, other = rng.normal(size=(2, D))
    offered = np.array([x, other, x, other, x])
    order = agent.rank(offered).tolist()
    assert order in ([0, 2, 4, 1, 3], [1, 3, 0, 2, 4])
    assert agent.rank(offered, 1)[0] == agent.preview(offered)


@pytest.mark.parametrize("name", ["exact", "sums", "frozen"])
def test_without_learning_beliefs_are_as_they_were_but_for_own_rewards(name, rng):
    agent, queries = grown(name, rng), rng.normal(size=(3, D))
    before = agent.predict(queries)
    size = 0 if name != "frozen" else D
    agent.receive(cb.Message(90, 0, np.ones(D), 5.0, 1, np.ones(size)))
    waits = agent.predict(queries, learn=False)
    np.testing.assert_array_equal(waits.mean, before.mean)
    agent.reward(agent.awaiting[0], 9.0)
    own = agent.predict(queries, learn=False)
    assert (own.mean != before.mean).any() == (name == "sums")
    assert (agent.predict(queries).mean != before.mean).any()


@pytest.mark.parametrize("name", POLICIES)
@pytest.mark.parametrize(
    ("contexts", "complaint"),
    [
        (np.ones(2), r"shape \(2,\)"),
        (np.ones((2, 3)), "contexts of 2 numbers"),
        ([[1.0, np.inf]], "must be finite"),
        ("ab", "array of numbers"),
        (np.empty((0, 2)), "shape"),
        (cb.Box([0.0, 0.0], [1.0, 1.0]), "array of numbers"),
    ],
    ids=["vector", "longer", "infinite", "text", "none", "box"],
)
def test_bad_contexts_get_one_clear_error_and_change_nothing(name, contexts, complaint, rng):
    agent = grown(name, rng)
    before = agent.to_bytes()
    for call in (agent.predict, agent.rank):
        with pytest.raises(CoopBanditsError, match=complaint):
            call(contexts)
        assert agent.to_bytes() == before


@pytest.mark.parametrize("learn", ["no", None, 1, np.ones(2)], ids=str)
def test_whether_to_learn_is_true_or_false(learn, rng):
    agent, offered = grown("sums", rng), rng.normal(size=(3, D))
    before = agent.to_bytes()
    for call in (
        agent.decide,
        agent.predict,
        agent.rank,
        lambda X, **kw: agent.decide_many([X], **kw),
    ):
        with pytest.raises(CoopBanditsError, match="learn must be True or False"):
            call(offered, learn=learn)
    assert agent.to_bytes() == before


@pytest.mark.parametrize("k", [0, -1, 4, 1.5, "2", True, np.nan])
def test_a_number_of_ranks_that_there_are_not_is_refused(k, rng):
    agent = grown("exact", rng)
    with pytest.raises(CoopBanditsError, match="k must be"):
        agent.rank(rng.normal(size=(3, D)), k)


def test_who_acts_at_random_has_nothing_to_predict(rng):
    agent = cb.Uniform().agent(0, ALONE)
    for call in (agent.predict, agent.rank):
        with pytest.raises(LocalProtocolError, match="acts at random"):
            call(rng.normal(size=(3, D)))


def test_who_draws_can_be_asked_about_very_many_actions(rng):
    """Only a joint draw needs their covariances."""
    agent, many = grown("many draws", rng), rng.normal(size=(20_000, D))
    assert agent.predict(many).mean.shape == (20_000,)
    with pytest.raises(CoopBanditsError, match="one joint draw at 20,000 actions"):
        agent.rank(many)
