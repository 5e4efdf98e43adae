import numpy as np
import pytest

import coopbandits as cb
from coopbandits.errors import ParameterError, ShapeError, SimilarityError
from coopbandits.lab import similarity_figure, similarity_table


@pytest.fixture(scope="module")
def world():
    network = cb.Network.path(6)
    problem = cb.problems.clustered_linear(network, clusters=[0, 0, 0, 1, 1, 1], dim=3)
    policy = cb.EagerKernelUCB(
        kernel=cb.kernels.Linear(), similarity=cb.similarity.MeanEmbedding(0.5), ttl=2
    )
    return problem, cb.play(problem, policy, rounds=12, seed=1)


def test_the_table_is_the_means_over_pairs_that_listen(world):
    problem, run = world
    truth = problem.similarity.matrix(problem.network)
    for row in similarity_table(run, problem, rounds=[2, 12]):
        alike, strangers, errors = [], [], []
        for v in range(6):
            for u in range(6):
                if u != v and abs(u - v) <= 2:
                    K_z = run.similarity(row.round)[v, u]
                    (alike if truth[v, u] == 1 else strangers).append(K_z)
                    errors.append(abs(K_z - truth[v, u]))
        assert row.alike == pytest.approx(np.mean(alike))
        assert row.strangers == pytest.approx(np.mean(strangers))
        assert row.error == pytest.approx(np.mean(errors))
        assert -1 <= row.correlation <= 1


def test_a_truth_learnt_perfectly_has_no_error_and_full_correlation(world):
    problem, _ = world
    policy = cb.EagerKernelUCB(kernel=cb.kernels.Linear(), similarity=problem.similarity, ttl=2)
    run = cb.play(problem, policy, rounds=4)
    (row,) = similarity_table(run, problem, rounds=[4])
    assert (row.alike, row.strangers, row.error) == (1.0, 0.0, 0.0)
    assert row.correlation == pytest.approx(1.0)


def test_what_cannot_be_compared_is_nan(world):
    _, run = world
    (row,) = similarity_table(run, np.ones((6, 6)), rounds=[5])
    assert np.isnan([row.strangers, row.correlation]).all()
    assert np.isfinite([row.alike, row.error]).all()
    alone = cb.play(cb.problems.clustered_linear(cb.Network.path(2)), cb.LinUCB(), rounds=3)
    (row,) = similarity_table(alone, np.eye(2), rounds=[2])
    assert np.isnan([row.alike, row.strangers, row.error, row.correlation]).all()


def test_the_figure_has_a_panel_for_the_truth_and_each_round(world, tmp_path):
    problem, run = world
    file = tmp_path / "figure.png"
    figure = similarity_figure(run, problem, rounds=[3, 12], title="a path", file=file)
    titles = [axis.get_title() for axis in figure.axes]
    assert titles[:3] == ["truth", "round 3", "round 12"]
    assert file.read_bytes()[:4] == b"\x89PNG"
    again = tmp_path / "again.png"
    similarity_figure(run, problem, rounds=[3, 12], title="a path", file=again)
    assert again.read_bytes() == file.read_bytes()
    assert len(similarity_figure(run, problem).axes) >= 5


def test_bad_input_is_refused(world):
    problem, run = world
    with pytest.raises(ShapeError, match="for 5 agents, but the run has 6"):
        similarity_table(run, np.eye(5))
    with pytest.raises(SimilarityError, match="not symmetric"):
        similarity_table(run, np.triu(np.ones((6, 6))))
    with pytest.raises(ParameterError, match="t must be"):
        similarity_table(run, problem, rounds=[13])
    with pytest.raises(ParameterError, match="1 to 4 rounds"):
        similarity_figure(run, problem, rounds=[1, 2, 3, 4, 5])
    functions = cb.problems.functions(
        problem.network, [lambda X: X[:, 0]] * 6, lambda t, v, rng: rng.normal(size=(2, 3))
    )
    with pytest.raises(ParameterError, match="does not know its true K_z"):
        similarity_table(run, functions)
