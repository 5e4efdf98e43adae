"""The keystone: lag matrix, sums, messages in memory and the literal algorithms decide alike."""

import numpy as np
import pytest

import coopbandits as cb
from coopbandits.act import AtRandom, FollowCentre, UpperBound
from coopbandits.listen import Centre, Clique, Everyone, Myself, Neighbourhood
from lockstep_engines import GIVEN, KERNELS, all_engines, literal, similarity_of
from reference import algorithms, formulas
from worlds import NETWORKS, neighbours_of, ragged, world_of

ROUNDS = 12

# all of them in `make test-all`
TTLS = [1, pytest.param(2, marks=pytest.mark.slow), 3]
SOME_KERNELS = ["linear", "rbf", pytest.param("matern", marks=pytest.mark.slow)]


@pytest.mark.parametrize("kernel", SOME_KERNELS)
@pytest.mark.parametrize("ttl", TTLS)
@pytest.mark.parametrize("name", NETWORKS)
@pytest.mark.parametrize("algorithm", ["coop", "eager"])
@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.slow)])
def test_coop_and_eager_take_the_literal_algorithms_decisions(algorithm, name, ttl, kernel, seed):
    network, (K_x, k_x) = NETWORKS[name], KERNELS[kernel]
    similarity, K_z = similarity_of(network, seed)
    problem = ragged(network, seed, rounds=ROUNDS)
    make = {"coop": cb.CoopKernelUCB, "eager": cb.EagerKernelUCB}[algorithm]
    policy = make(kernel=K_x, similarity=similarity, ttl=ttl, ridge=0.7, eta=0.9)
    labels = network.clique_cover(ttl).labels
    expected, sent = algorithms.cooperate(
        world_of(problem, seed),
        neighbours_of(network),
        (lambda v, w: labels[v] == labels[w]) if algorithm == "coop" else (lambda v, w: True),
        literal(k_x, K_z),
        ttl=ttl,
        ridge=0.7,
        width=algorithms.fixed(0.9),
        rounds=ROUNDS,
        seed=seed,
    )
    run = all_engines(problem, policy, seed)
    np.testing.assert_array_equal(run.actions, expected)
    assert run.messages.tolist() == sent


@pytest.mark.parametrize("kernel", SOME_KERNELS)
@pytest.mark.parametrize("ttl", TTLS)
@pytest.mark.parametrize("name", NETWORKS)
@pytest.mark.parametrize("fixed_set", [True, False], ids=["fixed set", "changing sets"])
def test_dist_takes_the_literal_algorithms_decisions(name, ttl, kernel, fixed_set):
    network, (K_x, k_x) = NETWORKS[name], KERNELS[kernel]
    seed = 3
    if fixed_set:
        problem = cb.problems.fully_cooperative(network, kernel=K_x, dim=3, actions=5, noise=0.5)
    else:
        problem = ragged(network, seed, rounds=ROUNDS)
    policy = cb.DistKernelUCB(kernel=K_x, ttl=ttl, ridge=0.7, eta=0.9)
    expected, sent = algorithms.distribute(
        world_of(problem, seed),
        neighbours_of(network),
        network.centres(ttl).of.tolist(),
        literal(k_x, np.ones((len(network), len(network)))),
        ttl=ttl,
        ridge=0.7,
        width=algorithms.fixed(0.9),
        rounds=ROUNDS,
        seed=seed,
    )
    run = all_engines(problem, policy, seed)
    np.testing.assert_array_equal(run.actions, expected)
    assert run.messages.tolist() == sent


WIDTHS = {
    "self-normalised": (
        cb.width.SelfNormalised(norm=1.5, noise=0.4, delta=0.1),
        lambda K, ridge, V: formulas.self_normalised(
            K, ridge, norm=1.5, noise=0.4, delta=0.1, agents=V
        ),
    ),
    "information gain": (
        cb.width.InformationGain(norm=1.5, noise=0.4, delta=0.1),
        lambda K, ridge, V: formulas.information_gain(K, ridge, norm=1.5, noise=0.4, delta=0.1),
    ),
    "srinivas": (
        cb.width.Srinivas(norm=0.3, delta=0.5),
        lambda K, ridge, V: formulas.srinivas(K, ridge, norm=0.3, delta=0.5),
    ),
}


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("ttl", TTLS)
@pytest.mark.parametrize("algorithm", ["coop", "eager"])
@pytest.mark.parametrize("name", ["grid", "two parts"])
def test_every_width_takes_the_literal_algorithms_decisions(name, algorithm, ttl, width):
    network, (ours, twin) = NETWORKS[name], WIDTHS[width]
    similarity, K_z = similarity_of(network, 4)
    problem = ragged(network, 4, rounds=ROUNDS)
    make = {"coop": cb.CoopKernelUCB, "eager": cb.EagerKernelUCB}[algorithm]
    policy = make(kernel=cb.kernels.RBF(), similarity=similarity, ttl=ttl, ridge=1.3, width=ours)
    labels = network.clique_cover(ttl).labels
    accepts = (lambda v, w: labels[v] == labels[w]) if algorithm == "coop" else lambda v, w: True
    # the bound is for V agents at once, for 1 where an agent listens to nobody (reading 14)
    company = {
        v: len(network.clique_cover(ttl).cliques[labels[v]])
        if algorithm == "coop"
        else len(network.neighbourhood(v, ttl))
        for v in range(len(network))
    }
    if name == "two parts":
        assert 1 in company.values()
    expected, sent = algorithms.cooperate(
        world_of(problem, 4),
        neighbours_of(network),
        accepts,
        literal(formulas.rbf, K_z),
        ttl=ttl,
        ridge=1.3,
        width=lambda K, ridge, v: twin(K, ridge, len(network) if company[v] > 1 else 1),
        rounds=ROUNDS,
        seed=4,
    )
    run = all_engines(problem, policy, 4)
    np.testing.assert_array_equal(run.actions, expected)
    assert run.messages.tolist() == sent


def test_the_bound_is_for_all_agents_at_once_or_for_one_that_listens_to_nobody():
    width = cb.width.SelfNormalised(norm=1.5, noise=0.4, delta=0.1)
    network = NETWORKS["two parts"]  # agent 5 has no neighbours
    similarity, _ = similarity_of(network, 4)
    for policy, V in [
        (cb.EagerKernelUCB(kernel=cb.kernels.RBF(), similarity=similarity, width=width), 6),
        (cb.OFUL(width=width), 1),
        (cb.EagerKernelUCB(
            kernel=cb.kernels.RBF(), similarity=cb.similarity.Alone(), width=width), 1),
        (cb.Centralised(kernel=cb.kernels.RBF(), similarity=similarity, width=width), 1),
    ]:  # fmt: skip
        for v, expected in [(0, V), (5, 1)]:
            decision = policy.agent(v, network).decide(np.eye(3))
            literal_width = formulas.self_normalised(
                np.empty((0, 0)), 1.0, norm=1.5, noise=0.4, delta=0.1, agents=expected
            )
            assert decision.width == pytest.approx(literal_width, rel=1e-12)


@pytest.mark.parametrize("ridge", [1e-6, 1e-3, 1e3, 1e6])
@pytest.mark.parametrize("kernel", KERNELS)
def test_all_engines_agree_for_small_and_large_ridges(kernel, ridge):
    network = NETWORKS["grid"]
    problem = cb.problems.kernel(network, dim=3, actions=5, noise=0.2)
    for make in (cb.CoopKernelUCB, cb.EagerKernelUCB):
        policy = make(
            kernel=KERNELS[kernel][0], similarity=problem.similarity, ttl=2, ridge=ridge, eta=0.5
        )
        all_engines(problem, policy, seed=1, rounds=20)


LISTENS = [Myself(), Clique(), Neighbourhood(), Centre(), Everyone(lag=0), Everyone(lag=1)]


@pytest.mark.parametrize("act", [UpperBound(), FollowCentre(), AtRandom()], ids=repr)
@pytest.mark.parametrize("listen", LISTENS, ids=repr)
@pytest.mark.parametrize(
    "similarity", [cb.similarity.Laplacian(1.0), cb.similarity.Alone()], ids=repr
)
@pytest.mark.parametrize(
    "name",
    [
        "spiked star",
        "two parts",
        *(pytest.param(name, marks=pytest.mark.slow) for name in ("path", "directed")),
    ],
)
def test_all_engines_agree_on_any_four_answers(name, similarity, listen, act):
    network = NETWORKS[name]
    problem = ragged(network, 5)
    for ttl in (1, 3):
        policy = cb.Policy(
            name="any",
            kernel=cb.kernels.RBF(),
            listen=listen,
            similarity=similarity,
            width=cb.width.SelfNormalised(noise=0.3),
            act=act,
            ttl=ttl,
        )
        all_engines(problem, policy, seed=2, rounds=8)


@pytest.mark.parametrize("compose", ["hadamard", "sum"])
def test_every_composition_takes_the_literal_algorithms_decisions(compose):
    network = NETWORKS["grid"]
    similarity, K_z = similarity_of(network, 6)
    problem = ragged(network, 6, rounds=ROUNDS)
    policy = cb.EagerKernelUCB(
        kernel=cb.kernels.RBF(), similarity=similarity, ttl=2, eta=0.8, compose=compose
    )
    combine = np.multiply if compose != "sum" else (lambda A, B: (A + B) / 2)
    expected, sent = algorithms.cooperate(
        world_of(problem, 6),
        neighbours_of(network),
        lambda v, w: True,
        literal(formulas.rbf, K_z, combine),
        ttl=2,
        ridge=1.0,
        width=algorithms.fixed(0.8),
        rounds=ROUNDS,
        seed=6,
    )
    run = all_engines(problem, policy, 6)
    np.testing.assert_array_equal(run.actions, expected)
    assert run.messages.tolist() == sent


@pytest.mark.parametrize("kernel", KERNELS)
def test_centralised_takes_the_round_robin_agents_decisions(kernel):
    network, (K_x, k_x) = NETWORKS["grid"], KERNELS[kernel]
    similarity, K_z = similarity_of(network, 2)
    problem = ragged(network, 2, rounds=8)
    policy = cb.Centralised(kernel=K_x, similarity=similarity, ridge=0.7, eta=0.9)
    expected = algorithms.round_robin(
        world_of(problem, 2),
        len(network),
        literal(k_x, K_z),
        ridge=0.7,
        width=algorithms.fixed(0.9),
        rounds=8,
        seed=2,
    )
    run = all_engines(problem, policy, 2, rounds=8)
    np.testing.assert_array_equal(run.actions, expected)


@pytest.mark.parametrize("similarity", GIVEN, ids=repr)
@pytest.mark.parametrize("ttl", TTLS)
def test_all_engines_agree_under_every_similarity_and_the_self_normalised_width(similarity, ttl):
    network = NETWORKS["erdos-renyi"]
    problem = cb.problems.kernel(network, dim=3, actions=4, noise=0.2)
    width = cb.width.SelfNormalised(noise=0.2)
    for make in (cb.CoopKernelUCB, cb.EagerKernelUCB):
        policy = make(kernel=cb.kernels.RBF(), similarity=similarity, ttl=ttl, width=width)
        all_engines(problem, policy, seed=1, rounds=15)


@pytest.mark.parametrize("lag", [0, 1])
def test_all_engines_agree_on_a_centralised_agent_that_knows_clusters(lag):
    network = NETWORKS["erdos-renyi"]
    problem = cb.problems.clustered_linear(network, dim=3, actions=4)
    policy = cb.Centralised(kernel=cb.kernels.Linear(), similarity=problem.similarity, lag=lag)
    run = all_engines(problem, policy, seed=1)
    assert (run.messages == 10 * 9).all()


@pytest.mark.parametrize(
    "policy",
    [
        cb.LinUCB(),
        cb.OFUL(),
        cb.KernelUCB(kernel=cb.kernels.RBF()),
        cb.GPUCB(kernel=cb.kernels.RBF()),
        cb.IGPUCB(kernel=cb.kernels.RBF()),
        cb.NaiveCooperation(ttl=2),
        cb.NaiveCooperation(
            kernel=cb.kernels.RBF(), width=cb.width.InformationGain(noise=0.1), ttl=2
        ),
        cb.Uniform(),
    ],
    ids=lambda policy: policy.name,
)
def test_all_engines_agree_on_every_baseline(policy):
    problem = ragged(NETWORKS["erdos-renyi"], 8)
    all_engines(problem, policy, seed=8)
