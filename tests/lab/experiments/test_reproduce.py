import numpy as np
import pytest

from coopbandits.cli import main
from coopbandits.errors import ExperimentError, NetworkError, ParameterError
from coopbandits.lab.commands.demo import DEMO
from coopbandits.lab.experiments.reproduce import (
    DEFAULT_NETWORKS,
    missing_networks,
    paper_experiment,
)
from coopbandits.lab.experiments.runner import check, run_experiment
from coopbandits.lab.experiments.store import read_store
from coopbandits.lab.networks import VARIABLE


def test_the_papers_profile_has_the_papers_numbers():
    paper = paper_experiment(profile="paper")
    assert (paper.rounds, paper.trials) == (500, 100)
    assert tuple(paper.networks) == DEFAULT_NETWORKS
    assert all(table["agents"] == 200 for table in paper.networks.values())
    assert paper.networks["Erdős-Rényi"]["p"] == 0.7
    for problem in paper.problems.values():
        assert (problem["dim"], problem["actions"]) == (10, 8)
    for name, table in paper.policies.items():
        assert table["ridge"] == 1.0, name
    assert paper.policies["Coop-KernelUCB, MeanEmbedding (paper)"]["similarity"]["bandwidth"] == 1.0
    assert [name for name, table in paper.policies.items() if table.get("dashed")] == [
        "Eager-KernelUCB, K_z known"
    ]


@pytest.mark.parametrize(
    "policies", [paper_experiment().policies, DEMO["policies"]], ids=["the paper's figure", "demo"]
)
def test_coop_and_eager_are_named_with_the_kernel_between_agents_that_they_play_with(policies):
    named = 0
    for name, table in policies.items():
        if table["kind"] not in ("CoopKernelUCB", "EagerKernelUCB"):
            continue
        similarity = table.get("similarity", {"kind": "Evidence"})  # the default
        if similarity == "truth":
            assert name.endswith(", K_z known")
        else:
            options = {key: value for key, value in similarity.items() if key != "kind"}
            said = ", ".join(f"{key}={value}" for key, value in options.items())
            wanted = {
                "MeanEmbedding": "MeanEmbedding (paper)",
                "Evidence": f"Evidence({said})" if said else "Evidence",
            }
            assert name.endswith(f", {wanted[similarity['kind']]}")
        named += 1
    assert named >= 3


def test_each_setup_has_its_own_baselines():
    for setup, names in {"1": {"LinUCB", "OFUL"}, "2": {"KernelUCB", "IGP-UCB"}}.items():
        paper = paper_experiment(setups=[setup])
        assert names <= {cell.policy for cell in paper.cells}
        assert len(paper.problems) == 1


def test_as_caida_stands_in_only_if_asked_for_under_its_own_name():
    assert "as-caida" not in paper_experiment().networks
    assert "as-caida" in paper_experiment(networks=["er", "caida"]).networks


def test_without_as_skitter_it_says_what_to_do(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv(VARIABLE, str(tmp_path))
    monkeypatch.setattr("coopbandits.lab.networks._HOME", "http://127.0.0.1:1/")
    with pytest.raises((NetworkError, ExperimentError), match=r"as-skitter\.txt\.gz"):
        check(paper_experiment(networks=["skitter"], agents=10))


def test_a_part_of_it_runs(tmp_path):
    part = paper_experiment(
        networks=["er"], agents=6, rounds=3, trials=1,
        algorithms=["LinUCB", "KernelUCB", "Dist-KernelUCB", "Eager-KernelUCB, K_z known"],
    )  # fmt: skip
    store = run_experiment(part, tmp_path / "run", workers=1)
    assert len(store.done()) == len(part.cells) == 6


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"networks": ["facebok"]}, "did you mean 'facebook'"),
        ({"networks": [3]}, r"networks=\[3\]; expected a list of names"),
        ({"networks": np.array(["er"])}, "networks=array.*; expected a list of names"),
        ({"setups": ["3"]}, "there is no setup '3'"),
        ({"algorithms": "LinUCB"}, "algorithms='LinUCB'; expected a list of names"),
        ({"algorithms": ["Coop-KernelUBC, MeanEmbedding"]}, "did you mean 'Coop-KernelUCB, Mean"),
        ({"agents": 0, "networks": ["er"]}, "agents must be"),
    ],
)
def test_what_is_not_there_is_named(options, said):
    with pytest.raises(ExperimentError, match=said):
        check(paper_experiment(**options))


@pytest.mark.parametrize("profile", ["papr", None, np.array(["quick", "paper"])], ids=repr)
def test_a_profile_is_known_by_its_name(profile):
    with pytest.raises(ParameterError, match=r"profile=.* is not known; expected 'quick' or"):
        paper_experiment(profile=profile)


@pytest.fixture
def offline(tmp_path, monkeypatch):
    """No file of a network, and nowhere to fetch one from; return the folder looked in first."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv(VARIABLE, raising=False)
    monkeypatch.setattr("coopbandits.lab.networks._HOME", "http://127.0.0.1:1/")
    return tmp_path / "data"


def reproduced(folder, *options):
    small = ["--agents", "6", "--rounds", "3", "--trials", "1", "--workers", "1"]
    rows = ["--setups", "1", "--algorithms", "LinUCB", "--out", str(folder.parent / "run")]
    return main(["reproduce", *small, *rows, "--data", str(folder), *options])


def test_without_files_it_runs_the_rest_and_says_how_to_get_them(offline, capsys):
    assert reproduced(offline) == 0
    store = read_store(offline.parent / "run")
    assert list(store.experiment.networks) == ["Erdős-Rényi"]
    assert len(store.done()) == 1
    shown = capsys.readouterr()
    assert "Left out: ego-Facebook, musae-Twitch, as-Skitter" in shown.err
    for file in ("facebook_combined.txt.gz", "twitch.zip", "as-skitter.txt.gz"):
        assert f"http://127.0.0.1:1/{file}" in shown.err
    assert f"Put these files into {offline}" in shown.err
    assert "--networks er,facebook,twitch,caida" in shown.err
    assert "without ego-Facebook, musae-Twitch, as-Skitter" in shown.out


def test_a_network_that_was_asked_for_is_not_left_out(offline, capsys):
    assert reproduced(offline, "--networks", "er,facebook") == 2
    said = capsys.readouterr().err
    assert "ego-Facebook: the files are not here" in said
    assert "facebook_combined.txt.gz" in said
    assert "as-caida" not in said
    assert not (offline.parent / "run").exists()


def test_what_is_there_is_not_missing(offline):
    offline.mkdir()
    (offline / "ego-facebook.txt.gz").touch()
    names = ["Erdős-Rényi", "ego-Facebook", "musae-Twitch"]
    assert missing_networks(names, data=str(offline)) == ["musae-Twitch"]
