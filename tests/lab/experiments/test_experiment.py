import tomllib

import jsonschema
import numpy as np
import pytest

import coopbandits as cb
from coopbandits.errors import ExperimentError
from coopbandits.lab.experiments.experiment import Cell, experiment_of, read_experiment
from coopbandits.lab.experiments.runner import check
from coopbandits.lab.experiments.schema import experiment_schema
from coopbandits.lab.experiments.toml_text import to_toml
from coopbandits.lab.experiments.trial import run_task
from lab_small import small


@pytest.fixture
def written(tmp_path):
    def write(tables):
        file = tmp_path / "experiment.toml"
        file.write_text(tables if isinstance(tables, str) else to_toml(tables), encoding="utf-8")
        return file

    return write


def test_a_file_gives_the_experiment_that_it_says(written):
    experiment = read_experiment(written(small()))
    assert (experiment.trials, experiment.rounds, experiment.seed) == (2, 6, 3)
    assert experiment.cells == [Cell("linear", "path", "alone"), Cell("linear", "path", "eager")]
    assert [task.trial for task in experiment.tasks] == [0, 0, 1, 1]


def test_writing_and_reading_gives_the_same_experiment(written):
    first = read_experiment(written(small()))
    again = read_experiment(written(first.to_toml()))
    assert again == first


def test_a_trial_is_play_with_the_values_of_the_tables():
    experiment = experiment_of(small())
    network = cb.Network.path(4)
    problem = cb.problems.clustered_linear(network, dim=3, actions=3, noise=0.3, seed=4)
    policy = cb.EagerKernelUCB(kernel=cb.kernels.Linear(), similarity=problem.similarity, ttl=2)
    run = cb.play(problem, policy, 6, seed=4)
    record = run_task(experiment, experiment.tasks[3])
    assert record.rounds.tolist() == [1, 2, 3, 4, 5, 6]
    assert (record.regret == run.regret_per_agent).all()
    assert (record.messages == np.cumsum(run.messages)).all()
    assert (record.agents == run.regret.sum(axis=0)).all()
    assert record.graph == network.fingerprint


def test_a_policy_may_say_less():
    tables = small()
    for name, say in [("sums", "Sums"), ("pays", {"kind": "WhenItPays", "gain": 1.0})]:
        tables["policies"][name] = {**tables["policies"]["eager"], "say": say}
    experiment = experiment_of(tables)
    check(experiment)
    whole, sums, pays = (run_task(experiment, task) for task in experiment.tasks[1:4])
    assert whole.engine != sums.engine == pays.engine == "messages"
    assert (sums.regret == whole.regret).all()
    assert 0 < pays.bytes[-1] < whole.bytes[-1] < sums.bytes[-1]


def test_words_are_answered_by_what_the_agents_face():
    tables = small()
    tables["policies"] = {
        "igp": {
            "kind": "IGPUCB", "kernel": "truth",
            "width": {"kind": "InformationGain", "norm": "truth", "noise": "truth"},
        },
        "coop": {"kind": "CoopKernelUCB", "kernel": "truth", "ttl": "half diameter"},
    }  # fmt: skip
    tables["networks"]["path"]["agents"] = 9
    experiment = experiment_of(tables)
    problem = experiment.problem("linear", experiment.network("path", 0), 0)
    igp, coop = (experiment.policy(name, problem) for name in ("igp", "coop"))
    assert igp.width.noise == 0.3
    assert igp.width.norm == problem.norm
    assert igp.kernel == cb.kernels.Linear()
    assert coop.ttl == 4
    assert isinstance(coop.similarity, cb.similarity.Evidence)


def test_networks_are_one_for_all_trials_unless_fresh():
    tables = small(networks={"er": {"kind": "erdos_renyi", "agents": 12, "p": 0.5}})
    fixed = experiment_of(tables)
    assert fixed.network("er", 0).fingerprint == fixed.network("er", 1).fingerprint
    assert fixed.network("er", 0).fingerprint == cb.Network.erdos_renyi(12, 0.5, seed=3).fingerprint
    tables["networks"]["er"]["fresh"] = True
    fresh = experiment_of(tables)
    assert fresh.network("er", 1).fingerprint == cb.Network.erdos_renyi(12, 0.5, seed=4).fingerprint


def test_recorded_rounds_start_with_the_first_and_end_with_the_last():
    experiment = experiment_of(small(rounds=5000, points=40))
    kept = experiment.recorded
    assert (kept[0], kept[-1]) == (1, 5000)
    assert 40 <= len(kept) <= 50
    assert (np.diff(kept) > 0).all()


def test_policies_and_problems_may_be_kept_to_some():
    tables = small()
    tables["networks"]["star"] = {"kind": "star", "agents": 4}
    tables["problems"]["other"] = {"kind": "kernel", "networks": ["star"]}
    tables["policies"]["alone"]["problems"] = ["linear"]
    assert experiment_of(tables).cells == [
        Cell("linear", "path", "alone"),
        Cell("linear", "path", "eager"),
        Cell("linear", "star", "alone"),
        Cell("linear", "star", "eager"),
        Cell("other", "star", "eager"),
    ]


def test_overrides_win_over_the_file_and_are_toml_or_text(written):
    file = written(small())
    experiment = read_experiment(
        file,
        overrides=["trials=7", "policies.eager.eta=0.5", "policies.eager.similarity=Evidence"],
        seed=11,
    )
    assert (experiment.trials, experiment.seed) == (7, 11)
    assert experiment.policies["eager"]["eta"] == 0.5
    assert experiment.policies["eager"]["similarity"] == "Evidence"
    for wrong, said in {
        "trials": "is no override",
        "=3": "is no override",
        "polices.eager.eta=1": "did you mean 'policies'",
        "policies.eagr.eta=1": "did you mean 'eager'",
    }.items():
        with pytest.raises(ExperimentError, match=said):
            read_experiment(file, overrides=[wrong])


MISTAKES = {
    "a top-level key": (
        "trails = 3\n",
        "line 1: trails: unknown key 'trails'; did you mean 'trials'",
    ),
    "no whole number": ("trials = 2.5\n", "line 1: trials: trials must be"),
    "a negative seed": ("seed = -1\n", "line 1: seed: seed must be"),
    "no text": ("name = 3\n", "line 1: name: name = 3 is no text"),
    "a seed beyond the tables": (
        "seed = 9223372036854775807\n",
        "line 1: seed: seed = .* too large",
    ),
    "a baseline": ('baseline = "alon"\n', "did you mean 'alone'"),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_at_the_top_is_named_with_its_line(written, name):
    tables = {key: value for key, value in small().items() if isinstance(value, dict)}
    line, said = MISTAKES[name]
    with pytest.raises(ExperimentError, match=said):
        read_experiment(written(line + to_toml(tables)))


DEEP = {
    "an unknown argument": (("policies", "eager", "etta"), 1.0, "did you mean 'eta'"),
    "an unknown kind": (("policies", "eager", "kind"), "EagerKernelUBC", "'EagerKernelUCB'"),
    "a kernel": (("policies", "eager", "kernel"), "RBV", "there is no kernel 'RBV'"),
    "a part's argument": (
        ("policies", "eager", "kernel"), {"kind": "RBF", "lengthscale": -1.0}, "lengthscale",
    ),
    "a ridge": (("policies", "eager", "ridge"), -2.0, "ridge must be"),
    "an engine": (("policies", "eager", "engine"), "exakt", "engine = 'exakt' is not known"),
    "a network's agents": (("networks", "path", "agents"), 0, "agents must be"),
    "problems": (("policies", "eager", "problems"), ["linea"], "did you mean 'linear'"),
    "no list": (("policies", "eager", "problems"), "linear", "expected a list of names"),
    "own code": (("problems", "linear", "kind"), "nowhere:made", "put nowhere.py beside"),
    "own name": (("problems", "linear", "kind"), "math:made", "has no function or class 'made'"),
    "not a policy": (("policies", "alone", "kind"), "fractions:Fraction", "knows no .eta."),
    "dim": (("problems", "linear", "dim"), "ten", "dim must be"),
}  # fmt: skip


@pytest.mark.parametrize("name", DEEP)
def test_a_mistake_in_a_table_is_named_with_its_line(written, name):
    path, value, said = DEEP[name]
    tables = small()
    tables[path[0]][path[1]][path[2]] = value
    file = written(tables)
    line = next(
        number
        for number, row in enumerate(file.read_text().splitlines(), start=1)
        if row.startswith(f"{path[2]} = ") and str(value)[:4].strip("[{'") in row.replace('"', "'")
    )
    from coopbandits.lab.commands import run  # noqa: PLC0415

    with pytest.raises(ExperimentError, match=said) as caught:
        run.checked(file, [])
    if name != "not a policy":  # what is made has no line of its own but its table's
        assert f"line {line}: " in str(caught.value)
    assert len(str(caught.value).splitlines()) <= 6


def test_own_code_that_fails_is_named_with_its_fault(tmp_path):
    for name, code, said in [
        ("own_a", "1 / 0", "own_a:made.*fails: ZeroDivisionError"),
        ("own_b", "import sys; sys.exit(0)", "own_b:made.*fails: SystemExit"),
        (
            "own_c",
            "def made(problem):\n    raise OSError('gone')",
            "own_c:made fails: OSError: gone",
        ),
    ]:
        (tmp_path / f"{name}.py").write_text(code)
        tables = small(policies={"mine": {"kind": f"{name}:made"}})
        with pytest.raises(ExperimentError, match=said):
            check(experiment_of(tables, folder=str(tmp_path)))


def test_a_file_of_edges_may_lie_beside_the_experiment(tmp_path):
    (tmp_path / "edges.txt").write_text("0 1\n1 2\n")
    tables = small(networks={"mine": {"kind": "file", "name": "edges.txt"}})
    experiment = experiment_of(tables, folder=str(tmp_path))
    assert experiment.network("mine", 0).edges == ((0, 1), (1, 2))


def test_a_missing_room_kind_or_argument_is_named(written):
    for without, said in {
        "networks": r"there is no table \[networks.NAME\]",
        "policies": r"there is no table \[policies.NAME\]",
    }.items():
        tables = small()
        del tables[without]
        with pytest.raises(ExperimentError, match=said):
            read_experiment(written(tables))
    tables = small()
    del tables["policies"]["eager"]["kind"]
    with pytest.raises(ExperimentError, match="the policy has no kind; expected one of"):
        check(experiment_of(tables))
    tables = small()
    del tables["policies"]["eager"]["kernel"]
    with pytest.raises(ExperimentError, match="EagerKernelUCB needs kernel"):
        check(experiment_of(tables))


def test_a_date_is_no_argument(written):
    text = to_toml(small()).replace("dim = 3", "dim = 2020-01-01")
    with pytest.raises(ExperimentError, match=r"line \d+: problems.linear.dim: .* is a date"):
        read_experiment(written(text))


def test_no_toml_and_no_file_are_told_apart(tmp_path, written):
    with pytest.raises(ExperimentError, match=r"at line 1, column"):
        read_experiment(written("trials : 3\n"))
    with pytest.raises(ExperimentError, match="cannot be read"):
        read_experiment(tmp_path / "nowhere.toml")


def test_ones_own_problem_and_policy_lie_beside_the_file(written, tmp_path):
    (tmp_path / "own_lab_code.py").write_text(
        "import coopbandits as cb\n"
        "def shops(network, *, seed, bonus=0.0):\n"
        "    return cb.problems.kernel(network, dim=2, actions=3, noise=bonus, seed=seed)\n"
        "def careful(problem, eta=1.0):\n"
        "    return cb.KernelUCB(kernel=problem.kernel, eta=eta)\n"
    )
    tables = small(
        problems={"shops": {"kind": "own_lab_code:shops", "bonus": 0.2}},
        policies={"careful": {"kind": "own_lab_code:careful", "eta": 0.1}},
    )
    experiment = read_experiment(written(tables))
    record = run_task(experiment, experiment.tasks[0])
    assert record.regret[-1] >= 0
    tables["problems"]["shops"]["bonsu"] = 1
    with pytest.raises(ExperimentError, match="did you mean 'bonus'"):
        check(experiment_of(tables, folder=str(tmp_path)))


def test_a_policy_that_cannot_play_a_problem_says_so():
    tables = small(rounds=8)
    tables["policies"]["dist"] = {"kind": "DistKernelUCB", "kernel": "Linear", "follow": "same"}
    experiment = experiment_of(tables)
    task = next(task for task in experiment.tasks if task.cell.policy == "dist")
    with pytest.raises(ExperimentError, match=r"dist cannot play linear on path .*nearest"):
        run_task(experiment, task)


def test_arms_can_be_written_into_a_file(written):
    table = {"kind": "Table", "matrix": [[1.0, 0.5], [0.5, 1.0]]}
    pairs = np.kron(np.full((4, 4), 0.5) + 0.5 * np.eye(4), table["matrix"])
    tables = small(
        problems={"arms": {"kind": "arms", "arms": 2, "arm": table, "kernel": "Linear", "dim": 2}},
        policies={
            "product": {
                "kind": "EagerKernelUCB", "similarity": "Same",
                "kernel": {"kind": "arms", "arm": table, "context": "Linear"},
            },
            "truth": {"kind": "EagerKernelUCB", "kernel": "truth", "similarity": "Same"},
            "joint": {
                "kind": "EagerKernelUCB", "kernel": "Linear",
                "similarity": {"kind": "ArmNetwork", "matrix": pairs.tolist(), "arms": 2},
            },
        },
    )  # fmt: skip
    experiment = read_experiment(written(tables))
    check(experiment)
    jsonschema.validate(tables, experiment_schema())
    one, two, _ = (run_task(experiment, task) for task in experiment.tasks[:3])
    assert (one.regret == two.regret).all()
    tables["policies"]["product"]["kernel"]["arm"] = "Tabel"
    with pytest.raises(ExperimentError, match="there is no kernel 'Tabel'; did you mean 'Table'"):
        check(read_experiment(written(tables)))


def test_named_agents_can_be_written_into_a_file(written):
    tables = small(
        networks={
            "towns": {
                "kind": "edges",
                "edges": [["Oslo", "Bern"], ["Bern", "Kyiv"]],
                "names": ["Oslo", "Bern", "Kyiv", "Rome"],
            }
        }
    )
    cold = {"Oslo": "cold", "Bern": "cold", "Kyiv": "cold", "Rome": "warm"}
    tables["problems"]["linear"]["clusters"] = cold
    tables["policies"]["eager"]["similarity"] = {"kind": "Clusters", "labels": cold}
    experiment = read_experiment(written(tables))
    check(experiment)
    network = experiment.network("towns", 0)
    assert network.names == ("Oslo", "Bern", "Kyiv", "Rome")
    assert read_experiment(written(experiment.to_toml())) == experiment
    jsonschema.validate(tables, experiment_schema())
    record = run_task(experiment, experiment.tasks[1])
    assert record.graph == network.fingerprint
    tables["networks"]["towns"]["edges"] = [["Oslo", "Bonn"]]
    with pytest.raises(ExperimentError, match="agent 'Bonn' is not in this network"):
        check(read_experiment(written(tables)))


def test_a_policy_may_be_a_file_beside_the_experiment_and_is_kept_with_it(written, tmp_path):
    policy = cb.EagerKernelUCB(kernel=cb.kernels.RBF(0.5) + cb.kernels.Linear(), ttl=2)
    (tmp_path / "policy.toml").write_text(policy.to_toml(), encoding="utf-8")
    tables = small()
    tables["policies"]["mine"] = {"file": "policy.toml", "dashed": True}
    experiment = read_experiment(written(tables))
    again = experiment_of(tomllib.loads(experiment.to_toml()))  # no file is needed any more
    problem = experiment.problem("linear", experiment.network("path", 0), 0)
    for one in (experiment, again):
        made = one.policy("mine", problem)
        assert (made.name, made.fingerprint) == ("mine", policy.fingerprint)
        assert one.policies["mine"]["dashed"]


def test_a_policys_table_may_be_a_spec():
    policy = cb.CoopKernelTS(kernel=cb.kernels.Matern(1.5), similarity=cb.similarity.Same())
    tables = small()
    tables["policies"]["mine"] = policy.spec()
    experiment = experiment_of(tables)
    problem = experiment.problem("linear", experiment.network("path", 0), 0)
    assert experiment.policy("mine", problem).fingerprint == policy.fingerprint


@pytest.mark.parametrize(
    ("table", "text", "complaint"),
    [
        ({"file": "policy.toml", "eta": 1.0}, "", r"mine\.eta: .*takes no 'eta' beside it"),
        ({"file": 3}, "", r"mine\.file: file = 3; expected the path"),
        ({"file": "none.toml"}, "", r"mine\.file: .*none\.toml: .*No such file"),
        ({"file": "policy.toml"}, "spec = ", r"mine\.file: .*policy\.toml: .*a policy file"),
        (
            {"file": "policy.toml"},
            "spec = 1\nkind = 'KernelUCB'\nkernel = { kind = 'RBF', lengthscale = 0 }",
            r"mine\.file: .*policy\.toml: kernel\.lengthscale: lengthscale must be above 0",
        ),
        (
            {"spec": 1, "kind": "KernelUCB", "kernel": {"kind": "RBF", "lengthscale": 0}},
            "",
            r"policies\.mine\.kernel\.lengthscale: lengthscale must be above 0",
        ),
    ],
    ids=["another key", "no path", "no file", "no TOML", "a mistake in it", "a mistake in a spec"],
)
def test_a_mistake_in_a_policy_file_is_named(written, tmp_path, table, text, complaint):
    from coopbandits.lab.commands import run  # noqa: PLC0415

    (tmp_path / "policy.toml").write_text(text, encoding="utf-8")
    tables = small()
    tables["policies"]["mine"] = table
    file = written(tables)
    with pytest.raises(ExperimentError, match=complaint):
        run.checked(file, [])
