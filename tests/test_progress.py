"""A bar where somebody watches, and one BLAS thread while a run goes on."""

import io
import re
import sys

import pytest
from threadpoolctl import threadpool_info, threadpool_limits

import coopbandits as cb
from coopbandits import engines, features, progress
from coopbandits.baselines import CLUB
from coopbandits.engines import engine_for
from coopbandits.errors import MissingExtraError
from coopbandits.run import foreseen

PROBLEM = cb.problems.clustered_linear(cb.Network.path(3), seed=0)


class Screen(io.StringIO):
    def isatty(self):
        return True


def blas_threads():
    return {one["num_threads"] for one in threadpool_info() if one["user_api"] == "blas"}


def test_a_run_uses_one_blas_thread_and_leaves_them_as_they_were():
    seen = []
    with threadpool_limits(2, "blas"):
        cb.play(PROBLEM, cb.LinUCB(), rounds=2, on_round=lambda t: seen.append(blas_threads()))
        assert seen == [{1}, {1}]
        assert blas_threads() == {2}
        with pytest.raises(ZeroDivisionError, match="division"):
            cb.play(PROBLEM, cb.LinUCB(), rounds=2, on_round=lambda t: 1 // 0)
        assert blas_threads() == {2}


def test_an_engine_is_made_with_one_blas_thread_too(monkeypatch):
    seen = []

    def reference(*given):
        seen.append(blas_threads())
        return features.reference(*given)

    monkeypatch.setattr(engines, "reference", reference)
    with threadpool_limits(2, "blas"):
        cb.play(PROBLEM, cb.KernelUCB(cb.kernels.RBF()), rounds=1, engine="sparse")
        assert blas_threads() == {2}
    assert seen == [{1}]


def test_an_agent_leaves_threads_alone():
    seen = []
    with threadpool_limits(2, "blas"):
        policy = cb.EagerKernelUCB(cb.kernels.RBF())
        agent, other = (policy.agent(v, cb.Network.path(2)) for v in range(2))
        for one in (other, agent, agent):
            decision = one.decide([[1.0, 0.0], [0.0, 1.0]])
            seen.append(blas_threads())
            for message in one.reward(decision.id, 1.0):
                agent.receive(message) if one is other else None
            seen.append(blas_threads())
    assert seen == [{2}] * 6


def test_a_bar_counts_rounds_and_shows_regret(capsys):
    run = cb.play(PROBLEM, cb.LinUCB(), rounds=5, progress=True)
    said = capsys.readouterr().err
    assert "5/5" in said
    assert f"regret per agent {run.regret_per_agent[-1]:.4g}" in said


def test_nothing_is_shown_where_nobody_watches_or_it_is_short(capsys, monkeypatch):
    cb.play(PROBLEM, cb.LinUCB(), rounds=2)
    assert capsys.readouterr().err == ""
    screen = Screen()
    monkeypatch.setattr(sys, "stderr", screen)
    cb.play(PROBLEM, cb.LinUCB(), rounds=2)
    assert screen.getvalue() == ""


def test_a_notebook_is_somebody_who_watches(monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "ipykernel", sys)
    monkeypatch.setattr(progress, "_SPEED", 1e2)
    cb.play(PROBLEM, cb.NaiveCooperation(cb.kernels.RBF()), rounds=3, engine="exact")
    said = capsys.readouterr().err
    assert "3 rounds will take about" in said
    assert "3/3" in said


@pytest.mark.parametrize("wanted", [None, False])
def test_a_long_run_says_so_unless_it_is_told_not_to(monkeypatch, wanted):
    screen = Screen()
    monkeypatch.setattr(sys, "stderr", screen)
    monkeypatch.setattr(progress, "_SPEED", 1e2)
    policy = cb.NaiveCooperation(cb.kernels.RBF())
    cb.play(PROBLEM, policy, rounds=3, engine="exact", progress=wanted)
    said = screen.getvalue()
    if wanted is False:
        assert said == ""
    else:
        assert re.search(r"3 rounds will take about \S+ h; engine='sparse' needs about \S+%", said)
        assert "3/3" in said


def test_without_tqdm_a_bar_that_is_asked_for_is_refused(monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "tqdm.auto", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'coopbandits\[progress\]'"):
        cb.play(PROBLEM, cb.LinUCB(), rounds=2, progress=True)
    monkeypatch.setattr(progress, "_SPEED", 1e-3)
    screen = Screen()
    monkeypatch.setattr(sys, "stderr", screen)
    cb.play(PROBLEM, cb.NaiveCooperation(cb.kernels.RBF()), rounds=2, engine="exact")
    assert re.fullmatch(
        r"2 rounds will take about .*\[progress\]' shows a bar\n", screen.getvalue()
    )


def test_more_rounds_than_can_be_kept_are_refused_before_the_start():
    with pytest.raises(cb.errors.ParameterError, match="play fewer rounds"):
        cb.play(PROBLEM, cb.LinUCB(), rounds=10**9)


def test_a_learnt_similarity_takes_the_sparse_engine_where_factors_would_take_long():
    network = cb.Network.complete(40)
    problem, kernel = cb.problems.kernel(network, seed=0), cb.kernels.RBF()
    told = {}

    def engine(policy, rounds):
        first = problem.round(1, 0)
        return engine_for(
            "auto", policy, network, contexts=first.contexts, rounds=rounds, seed=0,
            memory_limit=8e9,
        ).name  # fmt: skip

    for name, similarity in (("learnt", cb.similarity.Evidence()), ("same", cb.similarity.Same())):
        policy = cb.EagerKernelUCB(kernel, similarity=similarity)
        told[name] = [engine(policy, rounds).split(",")[0] for rounds in (3, 60)]
    assert told == {"learnt": ["exact", "sparse"], "same": ["exact", "exact"]}


def test_a_default_policy_on_24_agents_takes_the_sparse_engine():
    network = cb.Network.erdos_renyi(24, 0.3, seed=0)
    problem = cb.problems.kernel(network, seed=0)
    policy = cb.EagerKernelUCB(cb.kernels.RBF())
    costs = {name: foreseen(problem, policy, 60, engine=name)[0] for name in ("exact", "sparse")}
    assert foreseen(problem, policy, 60)[0] == costs["sparse"] < costs["exact"] / 2


def test_a_run_that_turns_out_to_take_long_says_so_and_what_helps(monkeypatch):
    screen, now = Screen(), [0.0]
    monkeypatch.setattr(sys, "stderr", screen)
    monkeypatch.setattr(progress, "monotonic", lambda: now[0])

    def passes(t):
        now[0] += 6.0

    # a baseline does not know its operations
    cb.play(PROBLEM, CLUB(), rounds=12, on_round=passes)
    said = screen.getvalue()
    assert said.startswith("12 rounds will take about 1 min; fewer rounds, fewer agents")
    assert "12/12" in said
    screen.truncate(0)
    cb.play(PROBLEM, CLUB(), rounds=9, on_round=passes)
    assert screen.getvalue() == ""


def test_what_a_run_takes_is_foreseen_and_refused_without_playing():
    problem, policy = cb.problems.kernel(cb.Network.complete(5)), cb.NaiveCooperation()
    seconds = [foreseen(problem, policy, rounds)[0] for rounds in (10, 20)]
    assert 0 < seconds[0] < seconds[1]
    assert foreseen(problem, CLUB(), 10) == (0.0, "")
    with pytest.raises(cb.errors.ParameterError, match="play fewer rounds"):
        foreseen(problem, policy, 10**9)
