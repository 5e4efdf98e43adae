"""What is kept is reused as long as nothing that it depends on has changed, and no longer."""

import json
import shutil

import numpy as np
import pytest

from coopbandits.errors import ExperimentError
from coopbandits.lab.experiments.experiment import Task, experiment_of
from coopbandits.lab.experiments.runner import run_experiment
from coopbandits.lab.experiments.store import Store, read_store
from coopbandits.lab.experiments.summary import summaries
from lab_small import contents, small

MODULE = '''"""A module of one's own."""
import coopbandits as cb

SHARE = 0.3

def mine(problem):
    """Play alone."""
    return cb.KernelUCB(kernel=problem.kernel, eta=SHARE)
'''


def begun(folder, tables, beside=""):
    """Begin or go on with an experiment without playing; return what is done and what changed."""
    with Store.begun(folder, experiment_of(tables, folder=str(beside))) as store:
        return store.done(), store.changed


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    folder = tmp_path_factory.mktemp("finished") / "run"
    run_experiment(experiment_of(small()), folder, workers=1)
    return folder


@pytest.fixture
def run(finished, tmp_path):
    shutil.copytree(finished, tmp_path / "run")
    return tmp_path / "run"


def policies_of(tasks):
    return {task.cell.policy for task in tasks}


def changed_tables(**policies):
    tables = small()
    for name, changes in policies.items():
        tables["policies"][name].update(changes)
    return tables


@pytest.mark.slow
def test_another_eta_is_played_again_and_nothing_else(run, tmp_path):
    kept = {file.name: file.stat().st_mtime_ns for file in (run / "trials").glob("*eager*")}
    told = []
    tables = changed_tables(alone={"eta": 0.7})
    store = run_experiment(experiment_of(tables), run, workers=1, on_word=told.append)
    assert told == ["alone on linear, path has changed since: 2 trials played again"]
    assert policies_of(store.changed) == {"alone"}
    for name, at in kept.items():
        assert (run / "trials" / name).stat().st_mtime_ns == at
    assert store.done() == set(store.experiment.tasks)
    run_experiment(experiment_of(tables), tmp_path / "afresh", workers=1)
    assert contents(run) == contents(tmp_path / "afresh")


UNCHANGED = {
    "how it is drawn": changed_tables(alone={"dashed": True}),
    "where it is played, all named": changed_tables(alone={"problems": ["linear"]}),
    "the engine that it has": changed_tables(alone={"engine": "auto"}),
    "the name of the report": small(name="another", baseline="eager"),
    "a policy more": small(policies={**small()["policies"], "random": {"kind": "Uniform"}}),
}


@pytest.mark.parametrize("name", UNCHANGED)
def test_what_results_do_not_depend_on_may_change(run, name):
    done, changed = begun(run, UNCHANGED[name])
    assert (len(done), changed) == (4, ())


CHANGED = {
    "an argument": (changed_tables(eager={"ttl": 1}), {"eager"}),
    "the engine": (changed_tables(eager={"engine": "exact"}), {"eager"}),
    "a part": (changed_tables(eager={"similarity": "Same"}), {"eager"}),
}


@pytest.mark.parametrize("name", CHANGED)
def test_what_results_depend_on_is_noticed(run, name):
    tables, expected = CHANGED[name]
    done, changed = begun(run, tables)
    assert policies_of(changed) == expected
    assert policies_of(done) == {"alone", "eager"} - expected


def test_a_folder_of_which_nothing_can_be_reused_is_left_alone(run):
    before = contents(run)
    for tables, place in (
        (changed_tables(alone={"eta": 1.0}, eager={"eta": 1.0}), r"policies\.alone differs"),
        (small(networks={"path": {"kind": "path", "agents": 5}}), r"networks\.path differs"),
        (small(policies={"other": {"kind": "Uniform"}}), r"policies\.alone differs"),
        (small(seed=4), "seed differs"),
    ):
        with pytest.raises(ExperimentError, match=f"holds another experiment: {place}"):
            begun(run, tables)
        assert contents(run) == before


def test_a_policy_that_was_left_out_and_comes_back_is_reused_only_as_it_was(run):
    one = small(policies={"eager": small()["policies"]["eager"]})
    assert len(begun(run, one)[0]) == 2
    assert len(begun(run, small())[0]) == 4
    begun(run, one)
    done, changed = begun(run, changed_tables(alone={"eta": 0.7}))
    assert (len(done), policies_of(changed)) == (2, {"alone"})


def test_comments_and_docstrings_of_own_modules_change_nothing_and_statements_do(tmp_path):
    code, helper = tmp_path / "own_resumed.py", tmp_path / "own_helper.py"
    code.write_text(MODULE + "from own_helper import SIZE\n")
    helper.write_text("SIZE = 1\n")
    tables = small(
        trials=1, policies={"mine": {"kind": "own_resumed:mine"}, "alone": {"kind": "LinUCB"}}
    )
    run_experiment(experiment_of(tables, folder=str(tmp_path)), tmp_path / "run", workers=1)
    manifest = json.loads((tmp_path / "run" / "manifest.json").read_text())
    assert set(manifest["own modules"]) == {"own_resumed:mine"}
    harmless = MODULE.replace("Play alone.", "Play all\n    alone.").replace("\n\n", "\n\n# so\n\n")
    code.write_text(harmless + "\n\nfrom own_helper import (SIZE)  # as before\n")
    helper.write_text('"""One number."""\n\nSIZE  =  1\n')
    assert begun(tmp_path / "run", tables, tmp_path)[1] == ()
    helper.write_text("SIZE = 2\n")
    assert policies_of(begun(tmp_path / "run", tables, tmp_path)[1]) == {"mine"}


def test_a_record_of_another_trial_is_refused_and_named(run):
    experiment = experiment_of(small())
    store = Store(run, experiment)
    first, second = (store._file(Task(experiment.cells[0], trial)) for trial in (0, 1))
    other = store._file(Task(experiment.cells[1], 1))
    whole = second.read_bytes()
    for taken, said in ((first, r"trial 0 \(seed 3\) of 'alone'"), (other, "of 'eager'")):
        second.write_bytes(taken.read_bytes())
        for attempt in (lambda: summaries(read_store(run)), lambda: begun(run, small())):
            with pytest.raises(ExperimentError, match=rf"{second.name} belongs to another trial.*"):
                attempt()
            with pytest.raises(ExperimentError, match=f"it holds {said}|it holds .*{said}"):
                attempt()
        assert second.read_bytes() == taken.read_bytes()
    second.write_bytes(whole)
    assert len(begun(run, small())[0]) == 4


def test_a_record_of_another_experiment_is_refused_and_named(run, tmp_path):
    run_experiment(experiment_of(changed_tables(alone={"eta": 0.7})), tmp_path / "b", workers=1)
    name = next(file.name for file in (run / "trials").glob("*alone*0001.npz"))
    shutil.copy(tmp_path / "b" / "trials" / name, run / "trials" / name)
    for attempt in (lambda: summaries(read_store(run)), lambda: begun(run, small())):
        with pytest.raises(ExperimentError, match=rf"{name} belongs to another experiment: trial"):
            attempt()


def altered(file, **changes):
    with np.load(file) as held:
        facts = {name: held[name] for name in held.files}
    for name, change in changes.items():
        facts[name] = change(facts[name].copy())
    np.savez_compressed(file, **facts)


def holed(values):
    values[-1] = np.nan
    return values


BAD = {
    "NaN": ({"regret": holed}, "holds nan among regret"),
    "infinity": ({"agents": lambda values: values + np.inf}, "holds inf among agents"),
    "too few": ({"messages": lambda values: values[1:]}, "holds messages of shape"),
    "text": ({"bytes": lambda values: values.astype(str)}, "holds no numbers as bytes"),
    "other rounds": ({"rounds": lambda values: values + 1}, "its curves are of other rounds"),
    "a stranger's name": ({"identity": lambda _: np.array("{}")}, "is damaged"),
}


@pytest.mark.parametrize("name", BAD)
def test_a_record_that_cannot_be_is_refused_and_named_before_anything_runs(run, name):
    changes, said = BAD[name]
    file = next((run / "trials").glob("*eager*0001.npz"))
    altered(file, **changes)
    for attempt in (lambda: summaries(read_store(run)), lambda: begun(run, small(trials=3))):
        with pytest.raises(ExperimentError, match=f"{file.name} .*{said}.*remove it and run again"):
            attempt()
    file.unlink()
    assert len(begun(run, small())[0]) == 3


def test_a_time_that_is_none_is_refused_and_named(run):
    file = next((run / "timings").iterdir())
    file.write_text('{"seconds": NaN}')
    with pytest.raises(ExperimentError, match=f"{file.name} holds nan seconds"):
        summaries(read_store(run))


def test_nan_is_not_kept(run):
    store = read_store(run)
    task = next(iter(store.done()))
    record = store.record(task)
    record.regret[-1] = np.nan
    before = contents(run)
    with pytest.raises(ExperimentError, match=r"holds nan among regret, so it cannot be kept"):
        store.add(task, record)
    assert contents(run) == before


def test_a_run_of_the_former_format_is_read_and_not_gone_on_with(run):
    manifest = json.loads((run / "manifest.json").read_text())
    del manifest["cells"]
    (run / "manifest.json").write_text(json.dumps({**manifest, "format": 1}))
    for file in (run / "trials").iterdir():
        with np.load(file) as held:
            facts = {name: held[name] for name in held.files if name != "identity"}
        np.savez_compressed(file, **facts)
    assert [found.trials for found in summaries(read_store(run))] == [2, 2]
    with pytest.raises(ExperimentError, match="begun with other format: 1, now 2"):
        begun(run, small())
    (run / "manifest.json").write_text(json.dumps({**manifest, "format": 2}))
    with pytest.raises(ExperimentError, match="does not say whose it is"):
        summaries(read_store(run))
