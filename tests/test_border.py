"""What people hand over works, or is refused in our words: tables, tensors, lists, numbers."""

import numpy as np
import pandas as pd
import polars as pl
import pytest

import coopbandits as cb
from coopbandits.arrays import as_contexts, as_floats, as_number, as_reward
from coopbandits.errors import InputError, NetworkError, NonFiniteError, ParameterError, ShapeError

X = np.array([[0.0, 0.2], [0.3, 0.5], [0.7, 0.8]])
NETWORK = cb.Network.path(3)


class Tensor:
    """What numpy sees of a tensor of torch: `__array__`, which raises where torch's does."""

    def __init__(self, values, requires_grad=False, device="cpu"):
        self.values = np.asarray(values)
        self.requires_grad, self.device = requires_grad, device

    def __array__(self, dtype=None, copy=None):
        if self.device != "cpu":
            raise TypeError(
                "can't convert cuda:0 device type tensor to numpy. Use Tensor.cpu() to copy the "
                "tensor to host memory first."
            )
        if self.requires_grad:
            raise RuntimeError(
                "Can't call numpy() on Tensor that requires grad. Use tensor.detach().numpy() "
                "instead."
            )
        return self.values.astype(dtype or self.values.dtype)

    @property
    def ndim(self):
        return self.values.ndim

    @property
    def shape(self):
        return self.values.shape

    def __len__(self):
        return len(self.values)

    def __getitem__(self, index):
        return Tensor(self.values[index], self.requires_grad, self.device)

    def __float__(self):
        return float(self.values)

    def __repr__(self):
        return f"tensor({self.values.tolist()})"


FORMS = {
    "an array": np.asarray,
    "a list": lambda values: np.asarray(values).tolist(),
    "a tuple of arrays": tuple,
    "objects": lambda values: np.asarray(values).astype(object),
    "a tensor": Tensor,
    "a list of tensors": lambda values: [Tensor(row) for row in values],
    "pandas": lambda values: (pd.DataFrame if np.ndim(values) == 2 else pd.Series)(values),
    "pandas, named": lambda values: (
        pd.DataFrame(values, columns=[*"abcdef"[: np.shape(values)[1]]])
        if np.ndim(values) == 2
        else pd.Series(values, name="y")
    ),
    "pandas, two alike": lambda values: (
        pd.DataFrame(values, columns=["same"] * np.shape(values)[1])
        if np.ndim(values) == 2
        else pd.Series(values)
    ),
    "polars": lambda values: (pl.DataFrame if np.ndim(values) == 2 else pl.Series)(
        np.asarray(values)
    ),
}


@pytest.mark.parametrize("form", FORMS)
class TestEveryForm:
    def test_is_a_decision_set(self, form):
        agents = [cb.KernelUCB(cb.kernels.RBF()).agent(0, NETWORK) for _ in range(2)]
        for _ in range(3):
            mine, plain = agents[0].decide(FORMS[form](X)), agents[1].decide(X)
            assert mine.index == plain.index
            np.testing.assert_array_equal(mine.context, plain.context)
            for agent, decision in zip(agents, (mine, plain), strict=True):
                agent.reward(decision.id, 1.0)

    def test_is_a_recorded_round(self, form):
        made = FORMS[form]
        problem = cb.problems.table(NETWORK, [[made(X)] * 3] * 2, [[made(X[:, 0])] * 3] * 2)
        plain = cb.problems.table(NETWORK, [[X] * 3] * 2, [[X[:, 0]] * 3] * 2)
        np.testing.assert_array_equal(problem.round(1, 0).contexts, plain.round(1, 0).contexts)
        np.testing.assert_array_equal(problem.round(2, 0).rewards, plain.round(2, 0).rewards)

    def test_is_a_matrix_a_basis_or_a_vector(self, form):
        made, K = FORMS[form], np.eye(3) + 0.5
        assert cb.similarity.Known(matrix=made(K)) == cb.similarity.Known(matrix=K)
        assert cb.similarity.LowRank(made(X)) == cb.similarity.LowRank(X)
        assert cb.features.Nystrom(made(X)) == cb.features.Nystrom(X)
        assert cb.arms.Table(made(K)) == cb.arms.Table(K)
        assert cb.kernels.RBF(made(np.array([1.0, 2.0]))) == cb.kernels.RBF((1.0, 2.0))
        agent = cb.LinUCB().agent(0, NETWORK)
        agent.observe(made(X[0]), 1.0)


@pytest.mark.parametrize(
    "labels",
    [
        ["a", "b", "a"],
        np.array(["a", "b", "a"]),
        pd.Series(["a", "b", "a"]),
        pd.Series(["a", "b", "a"], dtype=object),
        pl.Series(["a", "b", "a"]),
        pd.Series([0, 1, 0]),
        Tensor([0, 1, 0]),
    ],
    ids=lambda labels: type(labels).__module__,
)
def test_labels_come_in_many_forms(labels):
    assert cb.similarity.Clusters(labels) == cb.similarity.Clusters([0, 1, 0])


FRAMES = {"pandas": pd.DataFrame, "polars": lambda columns: pl.DataFrame(columns, strict=False)}


@pytest.mark.parametrize("frame", FRAMES.values(), ids=FRAMES)
def test_a_column_that_holds_no_numbers_is_named(frame):
    with pytest.raises(ShapeError, match=r"a decision set must hold.*column 'city' has 'x'; leave"):
        cb.LinUCB().agent(0, NETWORK).decide(frame({"a": [1.0, 2.0], "city": ["x", "y"]}))
    many = frame({name: ["x", "y"] for name in "abcde"})
    with pytest.raises(ShapeError, match=r"'a' has 'x', .*'c' has 'x' and 2 more columns"):
        as_floats(many, "contexts")


@pytest.mark.parametrize("frame", FRAMES.values(), ids=FRAMES)
def test_a_missing_number_is_named_by_its_column(frame):
    with pytest.raises(NonFiniteError, match=r"got nan at column 'b', row 1; leave such"):
        as_floats(frame({"a": [1.0, 2.0], "b": [1.0, None]}), "contexts")


@pytest.mark.parametrize("frame", FRAMES.values(), ids=FRAMES)
def test_columns_of_flags_and_whole_numbers_count(frame):
    given = frame({"a": [1.5, 2.0], "click": [True, False], "n": [3, 4]})
    assert as_floats(given, "contexts").tolist() == [[1.5, 1.0, 3.0], [2.0, 0.0, 4.0]]
    assert as_floats(frame({"a": [True, False]}), "contexts").tolist() == [[1.0], [0.0]]


@pytest.mark.parametrize(
    ("columns", "complaint"),
    [
        ({"a": pd.array([1, None], dtype="Int64"), "b": [1.0, 2.0]}, "column 'a' has <NA>"),
        ({"a": pd.to_datetime(["2020", "2021"]), "b": [1.0, 2.0]}, "column 'a' has Timestamp"),
        ({"a": pd.to_datetime(["2020", "2021"])}, "column 'a' has"),
        ({"a": pd.Categorical(["x", "y"])}, "column 'a' has 'x'"),
        ({"a": [[1.0, 2.0], [1.0]]}, r"column 'a' has \[1.0, 2.0\]"),
        ({"a": [1.0, "x"], "b": [True, 2.0]}, "column 'a' has 'x', column 'b' has True"),
    ],
    ids=["NA", "dates", "only dates", "categories", "lists", "mixtures"],
)
def test_columns_of_pandas_that_hold_no_numbers_are_named(columns, complaint):
    with pytest.raises(ShapeError, match=complaint):
        as_floats(pd.DataFrame(columns), "contexts")


@pytest.mark.parametrize(
    ("tensor", "complaint"),
    [
        (Tensor(X, requires_grad=True), r"requires grad.*tensor\.detach\(\)\.cpu\(\)\.numpy\(\)"),
        (Tensor(X, device="cuda"), r"cuda:0.*tensor\.detach\(\)\.cpu\(\)\.numpy\(\)"),
    ],
    ids=["requires grad", "on a device"],
)
def test_a_tensor_that_numpy_cannot_read_says_what_to_do(tensor, complaint):
    agent = cb.LinUCB().agent(0, NETWORK)
    for form in (tensor, [tensor[0], tensor[1]], (tensor[0], [1.0, 2.0])):
        with pytest.raises(ShapeError, match=complaint):
            agent.decide(form)
    for call in (
        lambda: cb.similarity.Known(matrix=tensor),
        lambda: cb.features.Nystrom(tensor),
        lambda: cb.kernels.RBF(tensor[0]),
        lambda: cb.problems.table(NETWORK, [[tensor] * 3], [[X[:, 0]] * 3]),
        lambda: cb.Network.from_edges(tensor),
    ):
        with pytest.raises(ShapeError, match=complaint):
            call()
    decision = agent.decide(X)
    with pytest.raises(ParameterError, match=r"a reward must be a number.*\.item\(\)"):
        agent.reward(decision.id, tensor[0, 0])


def test_numbers_come_out_of_what_has_no_dimension():
    for value in (2, 2.0, np.float32(2), np.array(2.0), Tensor(2.0), np.int8(2)):
        assert as_number(value, "eta") == 2.0
    for value in (True, np.True_, Tensor(True), np.array(True)):
        assert as_reward(value) == 1.0
    for value in (pd.Series([1.0]), pl.Series([1.0]), np.ones(1), Tensor([1.0])):
        with pytest.raises(ParameterError, match=r"must be a number.*by \.item\(\)"):
            as_number(value, "eta")
    for value in (None, "1", pd.NA, np.ones(2), [1.0]):
        with pytest.raises(InputError, match=r"must be a number, got [^;]*$"):
            as_number(value, "eta")


@pytest.mark.parametrize(
    "value",
    [{"a": [1, 2]}, iter(X), pl.DataFrame(X).lazy(), [["1", "2"]], [[1.0], [1.0, 2.0]], None],
    ids=lambda value: type(value).__name__,
)
def test_what_is_no_array_of_numbers_is_refused(value):
    with pytest.raises(InputError, match=r"contexts (must be an array of numbers|has shape)"):
        as_contexts(value, "contexts")


@pytest.mark.parametrize("given", [None, 3, "abc", {"a": X}, pd.DataFrame(X), cb.Box([0], [1])])
def test_many_decision_sets_come_as_a_list_of_them(given):
    agent = cb.LinUCB().agent(0, NETWORK)
    with pytest.raises(InputError, match=r"takes a list of decision sets.*decide takes one"):
        agent.decide_many(given)
    for sets in ([X, X.tolist()], (pd.DataFrame(X), X[:1]), np.stack([X, X]), iter([X, X])):
        assert len(agent.decide_many(sets)) == 2


@pytest.mark.parametrize("ask", ["decide", "predict", "rank"])
def test_learn_is_true_or_false(ask):
    agent = cb.LinUCB().agent(0, NETWORK)
    with pytest.raises(ParameterError, match=r"^learn must be True or False, got 'no'$"):
        getattr(agent, ask)(X, learn="no")


def test_a_constant_that_no_scaling_can_be_fitted_to_is_named_by_its_column():
    for frame in FRAMES.values():
        with pytest.raises(ParameterError, match=r"^columns 'price' of all 2 contexts are const"):
            cb.Scaling.fit(frame({"age": [20.0, 30.0], "price": [5.0, 5.0]}))
    with pytest.raises(ParameterError, match=r"^columns 0, 2 of all 2 contexts are constant"):
        cb.Scaling.fit([[1.0, 2.0, 3.0], [1.0, 4.0, 3.0]])


@pytest.mark.parametrize("name", ["contexts", "rewards"])
def test_recorded_data_are_no_table_of_rows_and_columns(name):
    given = {"contexts": np.zeros((2, 3, 1, 2)), "rewards": np.zeros((2, 3, 1))}
    cb.problems.table(NETWORK, **given)
    for frame in FRAMES.values():
        table = frame({"a": [1.0, 2.0], "b": [3.0, 4.0]})
        with pytest.raises(ShapeError, match=rf"^{name} is a table .* expected an array \(T, V, K"):
            cb.problems.table(NETWORK, **{**given, name: table})


def test_edges_come_as_arrays_and_tables_have_their_own_way():
    pairs = [(0, 1), (1, 2)]
    assert cb.Network.from_edges(Tensor(pairs)) == NETWORK
    assert cb.Network.from_edges(np.array(pairs)) == NETWORK
    for frame in FRAMES.values():
        table = frame({"from": [0, 1], "to": [1, 2]})
        with pytest.raises(NetworkError, match=r"columns \['from', 'to'\]; Network\.from_frame"):
            cb.Network.from_edges(table)
        assert cb.Network.from_frame(table, "from", "to") == NETWORK
