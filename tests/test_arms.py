import numpy as np
import pytest

import coopbandits as cb
from arm_worlds import ARMS, DIM, ROUNDS, correlated, pair_by_pair, with_arms
from coopbandits import features
from coopbandits.arms import ActiveDimensions, Table
from coopbandits.errors import InputError, ParameterError, RemoteProtocolError, ShapeError
from coopbandits.kernels import RBF, Linear, Matern
from coopbandits.policy import plan
from lockstep_engines import all_engines
from reference import algorithms, formulas
from worlds import neighbours_of, ragged, world_of

NETWORK = cb.Network.path(5)
K_ARM, K_Z = correlated(ARMS, seed=1), correlated(len(NETWORK), seed=2)


def policy_of(kernel, make=cb.EagerKernelUCB, similarity=None, **changes):
    known = cb.similarity.Known(matrix=K_Z) if similarity is None else similarity
    return make(
        **{"kernel": kernel, "similarity": known, "ttl": 2, "ridge": 0.7, "eta": 0.9, **changes}
    )


@pytest.mark.parametrize("name", ["coop", "eager"])
@pytest.mark.parametrize(
    ("K_x", "k_x"), [(Linear(), formulas.linear), (RBF(), formulas.rbf)], ids=["linear", "rbf"]
)
def test_arms_take_the_decisions_of_the_literal_product_of_three_kernels(name, K_x, k_x):
    labels = NETWORK.clique_cover(2).labels
    problem = with_arms(NETWORK)
    expected, _ = algorithms.cooperate(
        world_of(problem, 0),
        neighbours_of(NETWORK),
        (lambda v, w: labels[v] == labels[w]) if name == "coop" else (lambda v, w: True),
        pair_by_pair(
            lambda v, x, w, z: K_ARM[int(x[0]), int(z[0])] * K_Z[v, w] * k_x(x[1:], z[1:])
        ),
        ttl=2,
        ridge=0.7,
        width=algorithms.fixed(0.9),
        rounds=ROUNDS,
        seed=0,
    )
    make = {"coop": cb.CoopKernelUCB, "eager": cb.EagerKernelUCB}[name]
    policy = policy_of(cb.arms.kernel(arm=Table(K_ARM), context=K_x), make)
    run = all_engines(problem, policy, 0, rounds=ROUNDS)
    np.testing.assert_array_equal(run.actions, expected)


def test_an_arms_context_can_be_any_columns(rng):
    X, Y = rng.normal(size=(6, 5)), rng.normal(size=(4, 5))
    K = cb.arms.kernel(arm=Matern(nu=1.5), context=Linear((1.0, 2.0, 3.0)), columns=[3, 1])(X, Y)
    for i, x in enumerate(X):
        for j, y in enumerate(Y):
            K_arm = formulas.matern(x[[1, 3]], y[[1, 3]], 1.5)
            K_x = formulas.linear(x[[0, 2, 4]], y[[0, 2, 4]], np.array([1.0, 2.0, 3.0]))
            assert K[i, j] == pytest.approx(K_arm * K_x)


def disjoint_linucb(problem, first, eta, ridge):
    """Li et al. 2010, Algorithm 1: for each arm its own A = λI + XᵀX and b, one agent."""
    A = [ridge * np.eye(DIM) for _ in range(ARMS)]
    b = [np.zeros(DIM) for _ in range(ARMS)]
    actions = []
    for t in range(1, ROUNDS + 1):
        offer = problem.round(t, 0)
        bounds = []
        for arm, x in zip(offer.contexts[:, 0].astype(int), offer.contexts[:, 1:], strict=True):
            inverse = np.linalg.inv(A[arm])
            bounds.append(x @ inverse @ b[arm] + eta * np.sqrt(x @ inverse @ x))
        action = first if t == 1 else algorithms.lowest_best(bounds)
        arm, x = int(offer.contexts[action, 0]), offer.contexts[action, 1:]
        A[arm] += np.outer(x, x)
        b[arm] += offer.rewards[action] * x
        actions.append(action)
    return actions


@pytest.mark.parametrize("seed", range(4))
def test_separate_arms_are_as_many_linucbs_in_tandem(seed):
    problem = with_arms(cb.Network.path(1), seed)
    kernel = cb.arms.kernel(arm=Table.separate(ARMS), context=Linear())
    run = all_engines(problem, cb.KernelUCB(kernel=kernel, ridge=0.7, eta=0.9), 0, rounds=ROUNDS)
    expected = disjoint_linucb(problem, run.actions[0, 0], eta=0.9, ridge=0.7)
    np.testing.assert_array_equal(run.actions[:, 0], expected)


def test_what_one_of_separate_arms_brings_tells_nothing_about_another(rng):
    kernel = cb.arms.kernel(arm=Table.separate(2), context=RBF())
    agent = cb.KernelUCB(kernel=kernel).agent(0, cb.Network.path(1))
    agent.observe([0.0, 0.3], 5.0)
    told = agent.decide([[1.0, 0.3]])
    assert (told.mean, told.std) == (0.0, 1.0)
    agent.observe([1.0, 0.3], 5.0)
    assert agent.decide([[1.0, 0.3]]).mean == pytest.approx(2.5)


@pytest.mark.parametrize("K_x", [Linear(), RBF()], ids=repr)
def test_arms_that_are_all_alike_are_one_shared_model(K_x):
    problem = with_arms(NETWORK)
    rounds = [problem.round(t, 0) for t in range(1, ROUNDS + 1)]
    shared = cb.problems.table(
        NETWORK,
        [[o.contexts[o.agents == v, 1:] for v in range(len(NETWORK))] for o in rounds],
        [[o.rewards[o.agents == v] for v in range(len(NETWORK))] for o in rounds],
    )
    alike = cb.arms.kernel(arm=Table(np.ones((ARMS, ARMS))), context=K_x)
    run = all_engines(problem, policy_of(alike), 0, rounds=ROUNDS)
    expected = cb.play(shared, policy_of(K_x), rounds=ROUNDS)
    np.testing.assert_array_equal(run.actions, expected.actions)


def test_arms_written_as_unit_vectors_are_the_arms_of_a_table():
    problem = with_arms(NETWORK)
    rounds = [problem.round(t, 0) for t in range(1, ROUNDS + 1)]
    unit = np.eye(ARMS)
    written = cb.problems.table(
        NETWORK,
        [
            [
                np.hstack([unit[x[:, 0].astype(int)], x[:, 1:]])
                for x in (o.contexts[o.agents == v] for v in range(len(NETWORK)))
            ]
            for o in rounds
        ],
        [[o.rewards[o.agents == v] for v in range(len(NETWORK))] for o in rounds],
    )
    by_table = policy_of(cb.arms.kernel(arm=Table.separate(ARMS), context=RBF()))
    by_vector = policy_of(cb.arms.kernel(arm=Linear(), context=RBF(), columns=range(ARMS)))
    one, two = (
        cb.play(*game, rounds=ROUNDS) for game in [(problem, by_table), (written, by_vector)]
    )
    np.testing.assert_array_equal(one.actions, two.actions)


RANK_TWO = np.outer([1, 2, 0.5], [1, 2, 0.5]) + np.outer([0, 1, 1], [0, 1, 1])


@pytest.mark.parametrize(
    ("kernel", "size"),
    [
        (ActiveDimensions(Table(K_ARM), 0), ARMS),
        (ActiveDimensions(Table(RANK_TWO), 0), 2),
        (ActiveDimensions(Linear((1.0, 2.0)), [1, 3]), 2),
        (cb.arms.kernel(arm=Table.separate(ARMS), context=Linear()), 3 * ARMS),
        (0.5 * cb.arms.kernel(arm=Table(RANK_TWO), context=Linear(2.0)), 6),
        (
            cb.arms.kernel(arm=Table(K_ARM), context=Linear()) + ActiveDimensions(Linear(), 2),
            3 * ARMS + 1,
        ),
        (Linear() * Linear(), 16),
    ],
    ids=repr,
)
def test_exact_features_are_the_kernel(rng, kernel, size):
    X, Y = (np.column_stack([rng.integers(ARMS, size=n), rng.normal(size=(n, 3))]) for n in (7, 5))
    phi, psi = (features.Exact().features(kernel, Z) for Z in (X, Y))
    np.testing.assert_allclose(phi @ psi.T, kernel(X, Y), atol=1e-12)
    assert features.is_finite(kernel)
    assert phi.shape[1] == features.Exact().size(kernel, 4) == size


def test_separate_linear_arms_have_the_context_at_the_arms_place(rng):
    kernel = cb.arms.kernel(arm=Table.separate(ARMS), context=Linear())
    x = rng.normal(size=DIM)
    phi = features.Exact().features(kernel, np.array([[1.0, *x]]))
    np.testing.assert_array_equal(phi[0], np.kron([0, 1, 0], x))


def test_arms_of_other_kernels_have_no_finite_features_but_nystroms():
    kernel = cb.arms.kernel(arm=Table.separate(ARMS), context=RBF())
    assert not features.is_finite(kernel)
    X = np.vstack([with_arms(NETWORK).round(t, 0).contexts for t in (1, 2)])
    phi = features.Nystrom(X).features(kernel, X)
    np.testing.assert_allclose(phi @ phi.T, kernel(X, X), atol=1e-7)


@pytest.mark.parametrize("similarity", [cb.similarity.Evidence(), cb.similarity.Same()], ids=repr)
def test_agents_that_keep_sums_take_the_same_decisions(similarity):
    problem = with_arms(NETWORK)
    kernel = cb.arms.kernel(arm=Table(K_ARM), context=Linear())
    policy = policy_of(kernel, similarity=similarity)
    summed = policy_of(kernel, similarity=similarity, features=features.Exact())
    expected = cb.play(problem, policy, rounds=ROUNDS, engine="exact")
    for engine in ("sparse", "messages"):
        run = cb.play(problem, summed, rounds=ROUNDS, engine=engine, laziness=0.0)
        np.testing.assert_array_equal(run.actions, expected.actions)


@pytest.mark.parametrize("context", [Linear(), RBF()], ids=repr)
def test_an_agent_restored_from_bytes_takes_the_same_decisions(rng, context):
    policy = policy_of(cb.arms.kernel(arm=Table(K_ARM), context=context))
    agent = policy.agent(0, NETWORK, seed=3)
    for _ in range(6):
        offered = np.column_stack([np.arange(ARMS), rng.normal(size=(ARMS, DIM))])
        agent.reward(agent.decide(offered).id, float(rng.normal()))
        again = cb.Agent.from_bytes(agent.to_bytes(), policy=policy, network=NETWORK)
        asked = np.column_stack([np.arange(ARMS), rng.normal(size=(ARMS, DIM))])
        assert again.preview(asked) == agent.preview(asked)
        assert again.to_bytes() == agent.to_bytes()


def test_equal_tables_are_equal_answers_and_others_are_not():
    same, other = Table(K_ARM.copy()), Table(K_ARM + 0.1 * np.eye(ARMS))
    assert same == Table(K_ARM)
    assert hash(same) == hash(Table(K_ARM))
    assert same != other
    prints = [
        policy_of(cb.arms.kernel(arm=table, context=RBF(), columns=columns)).fingerprint
        for table, columns in [(Table(K_ARM), 0), (same, [0]), (other, 0), (same, 1)]
    ]
    assert prints[0] == prints[1]
    assert len(set(prints)) == 3


def test_a_table_is_a_copy_that_cannot_be_written_to():
    given = np.eye(2)
    table = Table(given)
    given[0, 0] = 7.0
    assert table.matrix[0, 0] == 1.0
    with pytest.raises(ValueError, match="read-only"):
        table.matrix[0, 0] = 2.0


SEPARATE = cb.arms.kernel(arm=Table.separate(ARMS), context=RBF())


def test_a_peer_that_names_an_arm_that_there_is_not_is_refused_and_changes_nothing(rng):
    policy = policy_of(SEPARATE, similarity=cb.similarity.Same())
    agent = policy.agent(0, NETWORK)
    agent.observe([0.0, 1.0, 2.0], 1.0)
    held = agent.to_bytes()
    for arm in (3.0, -1.0, 0.5, 1e40):
        news = cb.Message(round=1, origin=1, context=[arm, 1.0, 2.0], reward=1.0, ttl=2)
        with pytest.raises(RemoteProtocolError, match="an arm that there is not"):
            agent.receive(news)
    assert agent.to_bytes() == held
    agent.receive(cb.Message(round=1, origin=1, context=[2.0, 1.0, 2.0], reward=1.0, ttl=2))
    assert agent.known == 2


def test_an_arm_that_there_is_not_is_dropped_if_it_came_before_the_agents_first_context():
    agent = policy_of(SEPARATE, similarity=cb.similarity.Same()).agent(0, NETWORK)
    for origin, arm in [(1, 2.0), (2, 7.0)]:
        agent.receive(
            cb.Message(round=1, origin=origin, context=[arm, 1.0, 2.0], reward=1.0, ttl=2)
        )
    assert agent.known == 2
    agent.decide([[0.0, 1.0, 2.0]])
    assert agent.known == 1


@pytest.mark.parametrize(
    ("arm", "complaint"),
    [
        (3.0, "there is no arm 3; the arms are the whole numbers 0 … 2"),
        (-1.0, "there is no arm -1"),
        (0.5, r"there is no arm 0\.5"),
    ],
)
def test_ones_own_arm_must_be_there(arm, complaint):
    agent = cb.KernelUCB(kernel=SEPARATE).agent(0, cb.Network.path(1))
    with pytest.raises(ParameterError, match=complaint):
        agent.decide([[0.0, 1.0], [arm, 1.0]])
    with pytest.raises(ParameterError, match=complaint):
        agent.observe([arm, 1.0], 0.0)
    wrong = cb.problems.table(cb.Network.path(1), [[[[arm, 1.0]]]], [[[1.0]]])
    with pytest.raises(ParameterError, match=complaint):
        cb.play(wrong, cb.KernelUCB(kernel=SEPARATE), rounds=1)
    assert agent.known == 0


@pytest.mark.parametrize(
    ("make", "complaint"),
    [
        (lambda: Table([[1.0, 2.0], [2.0, 1.0]]), "not positive semidefinite.*eigenvalue is -1"),
        (lambda: Table([[1.0, 0.5], [0.2, 1.0]]), "the table of arms is not symmetric"),
        (lambda: Table(np.ones((2, 3))), r"shape \(2, 3\); expected \(n, n\)"),
        (lambda: Table(np.empty((0, 0))), r"shape \(0, 0\)"),
        (lambda: Table([[np.nan]]), "the table of arms must be finite"),
        (lambda: Table.separate(0), "arms must be a whole number >= 1"),
        (lambda: ActiveDimensions("rbf", 0), "is no kernel"),
        (lambda: ActiveDimensions(RBF(), [1, 1]), "none of them twice"),
        (lambda: ActiveDimensions(RBF(), []), "at least one column"),
        (lambda: ActiveDimensions(RBF(), -1), "a column must be a whole number >= 0"),
        (lambda: ActiveDimensions(RBF(), 0.5), "a column must be a whole number >= 0"),
        (lambda: ActiveDimensions(RBF(), 0, others=1), "others must be True or False"),
    ],
)
def test_settings_that_make_no_kernel_are_refused(make, complaint):
    with pytest.raises(InputError, match=complaint):
        make()


@pytest.mark.parametrize(
    ("kernel", "complaint"),
    [
        (
            ActiveDimensions(RBF(), 2),
            "looks at column 2, but contexts have 2 numbers, columns 0 … 1",
        ),
        (ActiveDimensions(RBF(), [0, 1], others=True), r"none beside columns \[0, 1\]"),
        (Table(np.eye(2)), r"contexts of one number, the arm, but they have 2; take arms\.kernel"),
    ],
    ids=repr,
)
def test_contexts_that_do_not_fit_are_refused(kernel, complaint):
    for asked in (lambda X: kernel(X, X), kernel.diagonal):
        with pytest.raises(ShapeError, match=complaint):
            asked(np.zeros((3, 2)))
    with pytest.raises(ShapeError, match=complaint):
        cb.KernelUCB(kernel=kernel).agent(0, cb.Network.path(1)).decide([[0.0, 1.0]])


def test_a_kernel_on_some_columns_does_not_see_the_others():
    problem, dim = ragged(NETWORK, rounds=ROUNDS), 3
    cut = [problem.round(t, 0) for t in range(1, ROUNDS + 1)]
    short = cb.problems.table(
        NETWORK,
        [[o.contexts[o.agents == v][:, [0, 2]] for v in range(len(NETWORK))] for o in cut],
        [[o.rewards[o.agents == v] for v in range(len(NETWORK))] for o in cut],
    )
    assert cut[0].contexts.shape[1] == dim
    expected = cb.play(short, policy_of(RBF()), rounds=ROUNDS).actions
    for kernel in (ActiveDimensions(RBF(), [0, 2]), ActiveDimensions(RBF(), 1, others=True)):
        found = cb.play(problem, policy_of(kernel), rounds=ROUNDS).actions
        np.testing.assert_array_equal(found, expected)


def test_kernels_of_arms_have_the_slopes_of_differences_in_all_but_the_arm(rng):
    """So a box with an arm that is fixed can be searched: what varies is x."""
    table = Table(K_ARM)
    product = cb.arms.kernel(arm=table, context=Linear(0.7))
    X, Y = (np.column_stack([rng.integers(ARMS, size=n), rng.normal(size=(n, 2))]) for n in (4, 5))
    pairs = np.kron(K_Z, K_ARM)
    similarity = cb.similarity.ArmNetwork(pairs, arms=ARMS)
    joint = plan(policy_of(RBF(1.3), similarity=similarity), NETWORK).kernel
    u, w = rng.integers(len(NETWORK), size=4), rng.integers(len(NETWORK), size=5)
    cases = [
        (product.gradient(X, Y), lambda Z: product(Z, Y)),  # type: ignore[attr-defined]
        (product.diagonal_gradient(X), product.diagonal),  # type: ignore[attr-defined]
        (features.Exact().jacobian(product, X), lambda Z: features.Exact().features(product, Z)),
        (joint.gradient(u, X, w, Y), lambda Z: joint(u, Z, w, Y)),
        (joint.diagonal_gradient(u, X), lambda Z: joint.diagonal(u, Z)),
    ]
    for by_x, function in cases:
        assert (by_x[..., 0] == 0).all()
        for j in (1, 2):
            move = 1e-6 * np.eye(3)[j]
            change = (function(X + move) - function(X - move)) / 2e-6
            np.testing.assert_allclose(by_x[..., j], change, atol=1e-8)


def test_a_point_of_a_box_is_chosen_for_a_fixed_arm():
    policy = policy_of(cb.arms.kernel(arm=Table(K_ARM), context=RBF(0.8)))
    box = cb.Box([1.0, -1.0, -1.0], [1.0, 1.0, 1.0])
    agent = policy.agent(0, NETWORK)
    for x in ([0.0, 0.3, 0.1], [1.0, -0.5, 0.2], [2.0, 0.9, -0.9]):
        agent.observe(x, x[1])
    decision = agent.decide(box)
    side = np.linspace(-1, 1, 41)
    grid = np.column_stack([np.ones(41**2), *(part.ravel() for part in np.meshgrid(side, side))])
    best = agent.preview(grid)
    assert decision.context[0] == 1.0
    assert np.abs(decision.context - grid[best]).max() < 0.06


def test_columns_of_different_lengths_are_none():
    with pytest.raises(ParameterError, match="a column must be a whole number"):
        ActiveDimensions(RBF(), [[0], [0, 1]])


def test_a_table_that_does_not_fit_into_memory_is_refused_before_it_is_made():
    with pytest.raises(ParameterError, match=r"a table of arms would take 8e\+03 GB.*fewer arms"):
        cb.arms.Table.separate(10**6)


@pytest.mark.parametrize("columns", [np.ndarray, np, None, range(10**12), "0", {0}], ids=repr)
def test_columns_are_whole_numbers(columns):
    with pytest.raises(ParameterError, match="a column must be a whole number >= 0, got"):
        ActiveDimensions(RBF(), columns)
