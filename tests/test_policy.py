import os
import subprocess
import sys
from functools import partial
from inspect import signature

import networkx as nx
import numpy as np
import pytest

import coopbandits as cb
from coopbandits import policies
from coopbandits.act import AtRandom, UpperBound, first_best
from coopbandits.errors import InputError, ParameterError, SimilarityError, StateError
from coopbandits.listen import Everyone, Myself, Neighbourhood
from coopbandits.policy import plan
from coopbandits.policy.fingerprint import canonical

RBF = cb.kernels.RBF()


def row(**changes):
    facts = {
        "name": "mine",
        "kernel": RBF,
        "listen": Neighbourhood(),
        "similarity": cb.similarity.Same(),
        "width": cb.width.Fixed(1.0),
        "act": UpperBound(),
    }
    return cb.Policy(**{**facts, **changes})


def test_a_researcher_makes_an_algorithm_by_giving_new_answers():
    class HalfDeviation:
        judges = True

        def score(self, mean, std, width):
            return mean + 0.5 * width * std

        def leaders(self, network, ttl):
            return np.full(len(network), -1)

        def follow(self, arm, offered):
            raise AssertionError

    problem = cb.problems.clustered_linear(cb.Network.grid(2, 3), dim=3)
    mine = cb.play(problem, row(act=HalfDeviation()), rounds=10)
    half = cb.play(problem, row(width=cb.width.Fixed(0.5)), rounds=10)
    np.testing.assert_array_equal(mine.actions, half.actions)


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({"ridge": 0.0}, "ridge must be above 0, got 0.0"),
        ({"ridge": -1.0}, "ridge must be above 0"),
        ({"ridge": np.nan}, "ridge must be finite"),
        ({"ridge": "small"}, "ridge must be a number"),
        ({"ttl": 0}, "ttl must be a whole number >= 1, got 0"),
        ({"ttl": -2}, "ttl must be a whole number >= 1"),
        ({"ttl": 1.5}, "ttl must be a whole number >= 1"),
        ({"compose": "xor"}, "compose='xor' is not known"),
        ({"kernel": "rbf"}, r"kernel='rbf' is no kernel.*coopbandits.kernels"),
        ({"kernel": cb.kernels.RBF}, "is no kernel"),
        ({"similarity": np.eye(3)}, r"is no similarity.*coopbandits.similarity"),
        ({"similarity": cb.similarity.Same}, "is no similarity"),
        ({"width": 1.0}, r"is no width.*coopbandits.width"),
        ({"listen": "all"}, r"is no listen.*coopbandits.listen"),
        ({"act": None}, r"is no act.*coopbandits.act"),
    ],
    ids=str,
)
def test_answers_that_are_none_are_refused(changes, complaint):
    with pytest.raises(
        ParameterError if "nan" not in str(changes) else InputError, match=complaint
    ):
        row(**changes)


def test_a_similarity_for_other_agents_is_refused_before_anything_is_played():
    policy = row(similarity=cb.similarity.Clusters([0, 1]))
    problem = cb.problems.clustered_linear(cb.Network.path(3))
    with pytest.raises(SimilarityError, match=r"2 cluster labels.*3 agents"):
        cb.play(problem, policy, rounds=5)
    with pytest.raises(SimilarityError, match=r"2 cluster labels.*3 agents"):
        policy.agent(0, cb.Network.path(3))


def test_a_policy_can_be_given_another_name():
    policy = cb.LinUCB(eta=0.3)
    assert policy.named("LinUCB, η = 0.3").name == "LinUCB, η = 0.3"
    assert policy.named("other").fingerprint == policy.fingerprint


def test_a_graph_that_is_no_network_of_ours_is_refused():
    for graph in ([(0, 1)], nx.path_graph(3), None):
        with pytest.raises(ParameterError, match=r"expected a coopbandits\.Network"):
            row().agent(0, graph)


class Own:
    """A researcher's own kernel, as a plain class."""

    def __init__(self, scale):
        self.scale = scale

    def __call__(self, X, Y):
        return self.scale * X @ Y.T

    def diagonal(self, X):
        return self.scale * (X**2).sum(axis=1)


def test_functions_that_cannot_be_told_apart_have_no_fingerprint():
    for gain in (lambda n: 1.0, lambda n: 1000.0):
        policy = row(width=cb.width.InformationGain(gain=gain))
        with pytest.raises(StateError, match=r"<lambda>.*cannot be stored"):
            _ = policy.fingerprint


def test_fingerprints_are_the_same_in_every_process():
    code = (
        "import coopbandits as cb; from functools import partial; "
        "print(cb.IGPUCB(kernel=cb.kernels.RBF((1, 2)) + cb.kernels.Linear(), "
        "width=cb.width.InformationGain(gain=partial(max, 1))).fingerprint)"
    )
    shown = {
        subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(shown) == 1


@pytest.mark.parametrize(
    ("matrix", "complaint"),
    [
        (np.full((3, 3), np.nan), "finite"),
        (np.ones((2, 2)), r"shape \(2, 2\); expected \(3, 3\)"),
        ([[1.0, 0.5, 0.0], [0.4, 1.0, 0.0], [0.0, 0.0, 1.0]], "not symmetric"),
    ],
    ids=["nan", "shape", "asymmetric"],
)
def test_an_own_similarity_that_is_no_kernel_matrix_is_refused(matrix, complaint):
    class Mine:
        def matrix(self, network):
            return matrix

    with pytest.raises(InputError, match=complaint):
        row(similarity=Mine()).agent(0, cb.Network.path(3))


def test_fingerprints_tell_policies_apart_by_every_answer():
    same = [row(), row()]
    assert same[0].fingerprint == same[1].fingerprint
    different = [
        row(kernel=cb.kernels.RBF(2.0)),
        row(kernel=cb.kernels.RBF((1.0, 2.0))),
        row(listen=Myself()),
        row(listen=Everyone()),
        row(listen=Everyone(lag=1)),
        row(similarity=cb.similarity.Alone()),
        row(similarity=cb.similarity.Known(matrix=np.eye(3))),
        row(similarity=cb.similarity.Known(matrix=2 * np.eye(3))),
        row(similarity=cb.similarity.Clusters([0, 1, 1])),
        row(similarity=cb.similarity.Clusters([0, 0, 1])),
        row(width=cb.width.Fixed(2.0)),
        row(width=cb.width.InformationGain()),
        row(width=cb.width.InformationGain(gain=abs)),
        row(width=cb.width.InformationGain(gain=len)),
        row(kernel=Own(1.0)),
        row(kernel=Own(2.0)),
        row(width=cb.width.InformationGain(gain=partial(max, 1))),
        row(width=cb.width.InformationGain(gain=partial(max, 2))),
        row(act=AtRandom()),
        row(ttl=2),
        row(ridge=1.0 + 1e-15),
        row(compose="sum"),
    ]
    prints = [policy.fingerprint for policy in [row(), *different]]
    assert len(set(prints)) == len(prints)
    assert row(compose="kronecker").fingerprint == row().fingerprint  # another name of hadamard


@pytest.mark.parametrize(
    ("scores", "best"),
    [
        ([1.0, 2.0, 3.0], 2),
        ([3.0, 3.0, 1.0], 0),
        ([3.0 - 0.9e-9, 3.0, 1.0], 0),
        ([3.0 - 4e-9, 3.0, 1.0], 1),
        ([0.5 - 0.9e-9, 0.5], 0),
        ([0.5 - 1.1e-9, 0.5], 1),
        ([-3e6, -3e6 + 1e-3], 0),
        ([-3e6, -3e6 + 1e-2], 1),
        ([-np.inf, -5.0], 1),
    ],
    ids=str,
)
def test_ties_within_the_tolerance_go_to_the_lowest_index(scores, best):
    assert first_best(np.array([scores])).tolist() == [best]


def test_everyone_takes_a_lag_of_zero_or_one():
    with pytest.raises(ParameterError, match="lag must be 0 or 1, got 2"):
        cb.Centralised(kernel=RBF, lag=2)


def test_kernels_that_were_renamed_keep_the_fingerprints_under_which_agents_are_stored():
    one, other = cb.kernels.RBF(), cb.kernels.Linear()
    active = cb.arms.ActiveDimensions(one, 0)
    parts = f"{{left={canonical(one)},right={canonical(other)}}}"
    assert canonical(one * other) == f"Multiplied{parts}"
    assert canonical(one + other) == f"Added{parts}"
    assert canonical(active).startswith("On{columns=[int:0],kernel=RBF{")


def test_a_field_that_came_later_says_nothing_unless_it_is_given():
    # so that agents stored before there was such a field are still read
    assert canonical(cb.act.FollowCentre()) == "FollowCentre{follow_rule=str:'nearest'}"
    assert "patience=int:3" in canonical(cb.act.FollowCentre(patience=3))


def test_policies_with_equal_answers_are_equal_whatever_their_names():
    assert cb.LinUCB() == cb.LinUCB()
    assert cb.LinUCB() == cb.LinUCB().named("other")
    assert cb.LinUCB() == cb.KernelUCB(kernel=cb.kernels.Linear())
    assert cb.LinUCB() != cb.LinUCB(eta=0.5)
    assert cb.LinUCB() != "LinUCB"
    assert len({cb.LinUCB(), cb.LinUCB(), cb.LinUCB(eta=0.5), cb.LinTS()}) == 3
    regret = {cb.EagerKernelUCB(kernel=RBF): 1.0}
    assert regret[cb.EagerKernelUCB(kernel=cb.kernels.RBF())] == 1.0
    known = [row(similarity=cb.similarity.Known(matrix=np.eye(3))) for _ in range(2)]
    assert known[0] == known[1]
    assert hash(known[0]) == hash(known[1])


class Hidden:
    """A kernel of which nothing tells what is in it."""

    __slots__ = ("scale",)

    def __call__(self, X, Y):
        return X @ Y.T

    def diagonal(self, X):
        return (X**2).sum(axis=1)


class Circular(Own):
    def __init__(self):
        super().__init__(1.0)
        self.me = self


@pytest.mark.parametrize(
    "answer",
    [
        lambda: {"width": cb.width.InformationGain(gain=lambda n: 1.0)},
        lambda: {"kernel": Hidden()},
        lambda: {"kernel": Circular()},
    ],
    ids=["a lambda", "slots", "a circle"],
)
def test_a_policy_without_a_fingerprint_is_equal_to_itself_only(answer):
    one, other = row(**answer()), row(**answer())
    assert one == one  # noqa: PLR0124
    assert one != other
    assert len({one, other, one}) == 2


def test_equal_policies_do_not_share_what_a_part_of_ones_own_keeps():
    class Remembering(Own):
        def __call__(self, X, Y):
            self.asked = True
            return super().__call__(X, Y)

    network = cb.Network.path(3)
    one, other = row(kernel=Remembering(1.0)), row(kernel=Remembering(1.0))
    assert one == other
    for policy in (one, other):
        plan(policy, network)
        assert plan(policy, network).kernel.kernel is policy.kernel


def test_the_fingerprint_is_worked_out_once(monkeypatch):
    policy = row(similarity=cb.similarity.Known(matrix=np.eye(3)))
    before = policy.fingerprint
    monkeypatch.setattr("coopbandits.policy.policy.canonical", None)
    assert policy.fingerprint == before
    assert hash(policy) == hash(policy)


ROWS = [getattr(policies, name) for name in policies.__all__]


@pytest.mark.parametrize("maker", ROWS, ids=lambda maker: maker.__name__)
def test_a_misspelt_option_of_a_named_policy_is_refused_with_what_was_meant(maker):
    named = {"kernel": cb.kernels.RBF()} if "kernel" in signature(maker).parameters else {}
    maker(**named, intercept=10)
    for wrong, complaint in {
        "intercpt": r" takes no 'intercpt'; did you mean 'intercept'\?",
        "forgets": r" takes no 'forgets'; did you mean 'forget'\?",
        "act": r" takes no 'act'; expected one of .*intercept, scale, scaling, forget",
    }.items():
        with pytest.raises(ParameterError, match=f"^{maker.__name__}{complaint}"):
            maker(**named, **{wrong: 10})


def test_agents_that_take_turns_do_not_forget_and_say_what_to_do():
    network, forget = cb.Network.path(2), cb.forget.Window(rounds=3)
    with pytest.raises(ParameterError, match=r"take no forget=; take lag=1, or leave forget= out"):
        plan(cb.Centralised(RBF, forget=forget), network)
    plan(cb.Centralised(RBF, lag=1, forget=forget), network)
