import csv
import io
import json
import os
import re
import shlex
import signal
import subprocess
import sys
import time
from importlib import import_module
from pathlib import Path
from xml.etree import ElementTree

import pyarrow.parquet
import pytest
from rich.console import Console

from coopbandits import cli
from coopbandits.lab.experiments.shown import bars
from coopbandits.lab.experiments.toml_text import to_toml
from fleet.processes import children, is_alive
from lab_small import small


def coop(*arguments, **options):
    return subprocess.run(
        [sys.executable, "-m", "coopbandits.cli", *map(str, arguments)],
        capture_output=True,
        text=True,
        check=False,
        **options,
    )


def test_help_loads_nothing_heavy():
    code = (
        "import sys\n"
        "from coopbandits.cli import main\n"
        "try:\n    main(['--help'])\nexcept SystemExit:\n    pass\n"
        "heavy = {'numpy', 'scipy', 'matplotlib', 'rich', 'pyarrow', 'networkx', 'distributed'}\n"
        "print(sorted(heavy & set(sys.modules)))\n"
    )
    shown = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout
    assert shown.splitlines()[-1] == "[]"
    assert "reproduce" in shown


def test_every_command_has_a_body():
    commands = next(
        action.choices for action in cli.parser()._actions if hasattr(action, "choices")
        and action.choices
    )  # fmt: skip
    for name, command in commands.items():  # type: ignore[attr-defined]
        assert callable(import_module(command.get_default("body")).main), name


@pytest.fixture
def file(tmp_path):
    made = tmp_path / "experiment.toml"
    made.write_text(to_toml(small(trials=1)))
    return made


def test_run_prints_a_table_and_is_quiet_about_progress(file, tmp_path):
    done = coop("run", file, "rounds=4", "--out", tmp_path / "run", "--workers", "1")
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    for part in ("linear, path", "alone", "eager", "regret per agent", "coop report"):
        assert part in done.stdout
    assert "rounds = 4" in (tmp_path / "run" / "experiment.toml").read_text()


BAD = {
    "an unknown key": (("policies.eager.etta=1",), "knows no 'etta'; did you mean 'eta'"),
    "no override": (("trials",), "is no override"),
    "Dist on changing sets": (
        ('policies.eager={kind="DistKernelUCB", kernel="Linear", follow="same"}', "rounds=8"),
        "eager cannot play linear on path",
    ),
    "no workers": (("--workers", "0"), "workers must be"),
    "no scheduler": (("--dask", "nonsense"), "no Dask scheduler answers at nonsense"),
    "a network that is not there": (
        ('networks.path={kind="file", name="nowhere.txt"}',),
        "neither a file nor a known network",
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input_is_answered_in_a_few_lines_with_code_2(file, tmp_path, name):
    arguments, said = BAD[name]
    done = coop("run", file, "--out", tmp_path / "run", *arguments)
    assert done.returncode == 2
    assert said in done.stderr
    assert "Traceback" not in done.stderr
    assert len(done.stderr.strip().splitlines()) <= 6
    assert not list(tmp_path.glob("run/*.parquet"))


def test_debug_shows_where(file):
    done = coop("run", file, "trials", "--debug")
    assert done.returncode != 0
    assert "Traceback" in done.stderr


def test_an_unexpected_fault_of_own_code_is_named(tmp_path):
    (tmp_path / "own_faulty.py").write_text("def mine(problem):\n    return 1 / 0\n")
    tables = small(policies={"mine": {"kind": "own_faulty:mine"}})
    (tmp_path / "experiment.toml").write_text(to_toml(tables))
    done = coop("run", tmp_path / "experiment.toml", "--out", tmp_path / "run")
    assert done.returncode == 2
    assert "policies.mine: own_faulty:mine fails: ZeroDivisionError" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.slow
def test_names_that_look_like_markup_or_formulas_are_names(tmp_path):
    odd = ["a [/b] c", "eager [ttl=2]", r"cost $\frac{a$ x", "\u9023"]
    tables = small(trials=1, rounds=2, policies={name: {"kind": "LinUCB"} for name in odd})
    (tmp_path / "experiment.toml").write_text(to_toml(tables), encoding="utf-8")
    done = coop("run", tmp_path / "experiment.toml", "--out", tmp_path / "run", "--workers", "1")
    assert (done.returncode, done.stderr) == (0, "")
    for name in odd:
        assert name in done.stdout


def test_a_long_message_is_cut(tmp_path):
    (tmp_path / "own_loud.py").write_text(
        "def mine(problem):\n    raise ValueError('no\\n' * 30)\n"
    )
    tables = small(policies={"mine": {"kind": "own_loud:mine"}})
    (tmp_path / "experiment.toml").write_text(to_toml(tables))
    done = coop("run", tmp_path / "experiment.toml", "--out", tmp_path / "run")
    assert done.returncode == 2
    assert len(done.stderr.splitlines()) == 6


def test_a_folder_that_cannot_be_written_is_said(file, tmp_path):
    (tmp_path / "flat").write_text("a file, not a folder")
    done = coop("run", file, "--out", tmp_path / "flat" / "run")
    assert done.returncode == 2
    assert "cannot be written" in done.stderr


STOPS = {
    "Ctrl-C": (os.killpg, signal.SIGINT),
    "SIGTERM": (os.kill, signal.SIGTERM),
    "SIGTERM to its workers too": (os.killpg, signal.SIGTERM),
}


@pytest.mark.parametrize("name", STOPS)
def test_what_stops_a_run_ends_its_workers_with_130_and_keeps_what_was_done(file, tmp_path, name):
    send, number = STOPS[name]
    process = subprocess.Popen(
        [sys.executable, "-m", "coopbandits.cli", "run", str(file), "trials=400",
         "--workers", "1", "--out", str(tmp_path / "run")],
        stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True, start_new_session=True,
        # started in the background, these tests ignore the signal, and so would what they start
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # noqa: PLW1509
    )  # fmt: skip
    deadline = time.monotonic() + 60
    while not list(tmp_path.glob("run/trials/*.npz")) and time.monotonic() < deadline:
        time.sleep(0.02)
    started = children(process.pid)
    assert started
    send(process.pid, number)
    _, said = process.communicate(timeout=60)
    assert process.returncode == 130, said
    assert said.strip() == "coop run: interrupted; what was done is kept"
    assert list(tmp_path.glob("run/trials/*.npz"))
    assert not list(tmp_path.glob("run/**/*.part"))
    while any(map(is_alive, started)) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert not any(map(is_alive, started))


def test_a_command_leaves_signals_as_they_were(capsys):
    before = signal.getsignal(signal.SIGTERM)
    assert cli.main(["run", "nowhere.toml"]) == 2
    assert signal.getsignal(signal.SIGTERM) is before


@pytest.mark.slow
def test_names_are_shown_and_written_as_text_that_nothing_obeys(tmp_path, capsys):
    names = ["=1+1", "+1", "-1", "@SUM(A1)", "\t=1+1", "red \x1b[31m \x9b7m", "back \u202etxt"]
    tables = small(
        name="\x1b]0;title\x07", trials=1, rounds=2,
        policies={name: {"kind": "LinUCB"} for name in names},
    )  # fmt: skip
    (tmp_path / "experiment.toml").write_text(to_toml(tables), encoding="utf-8")
    done = coop("run", tmp_path / "experiment.toml", "--out", tmp_path / "run", "--workers", "1")
    assert (done.returncode, done.stderr) == (0, "")
    assert not set(done.stdout) & set("\x1b\x9b\x07\t\u202e")
    for shown in ("=1+1", "@SUM(A1)", r"red \x1b[31m \x9b7m", r"back \u202etxt"):
        assert shown in done.stdout
    for file in (tmp_path / "run").rglob("*.csv"):
        rows = list(csv.DictReader(file.read_text(encoding="utf-8").splitlines()))
        held = {row["policy"] for row in rows}
        assert held == {
            "'=1+1", "'+1", "'-1", "'@SUM(A1)", r"\t=1+1", r"red \x1b[31m \x9b7m",
            r"back \u202etxt",
        }  # fmt: skip
    kept = pyarrow.parquet.read_table(tmp_path / "run" / "finals.parquet")
    assert kept["policy"].to_pylist() == names
    ElementTree.parse(tmp_path / "run" / "figures" / "regret.svg")
    tables["policies"] = {"\x1b[31m": {"kind": "LinUCB", "etta": 1.0}}
    (tmp_path / "experiment.toml").write_text(to_toml(tables), encoding="utf-8")
    assert cli.main(["run", str(tmp_path / "experiment.toml")]) == 2
    assert r"policies.\x1b[31m.etta: LinUCB knows no 'etta'" in capsys.readouterr().err


def test_more_rounds_than_can_be_kept_are_refused_before_the_start(file, tmp_path, capsys):
    assert cli.main(["run", str(file), f"rounds={10**9}", "--out", str(tmp_path / "run")]) == 2
    said = capsys.readouterr().err
    assert "the record of 1000000000 rounds of 4 agents needs about" in said
    assert "play fewer rounds" in said
    assert not (tmp_path / "run").exists()


@pytest.mark.slow
def test_a_run_that_takes_long_says_so_and_what_helps(file, tmp_path, capsys, monkeypatch):
    arguments = ["run", str(file), "rounds=3", "--workers", "1", "--out"]
    assert cli.main([*arguments, str(tmp_path / "quick")]) == 0
    assert "this will take" not in capsys.readouterr().out
    monkeypatch.setattr("coopbandits.progress._SPEED", 1e4)
    assert cli.main([*arguments, str(tmp_path / "long")]) == 0
    said = capsys.readouterr().out
    assert re.search(r"this will take about \S+ \w+ on one core, most of it (alone|eager) on", said)
    assert "would be faster" in said


def commands():
    """The commands of `coop`, by name."""
    found = [action.choices for action in cli.parser()._actions if isinstance(action.choices, dict)]
    return found[0]


def test_coop_alone_prints_its_help():
    alone, asked = coop(), coop("--help")
    assert (alone.returncode, alone.stderr) == (0, "")
    assert alone.stdout == asked.stdout
    for name in commands():
        assert f"    {name} " in alone.stdout


@pytest.mark.parametrize("name", commands())
def test_a_commands_help_has_examples_that_can_be_typed(name):
    shown = commands()[name].format_help().partition("examples:\n")[2].splitlines()
    assert shown
    for line in shown:
        program, *arguments = shlex.split(line)
        assert program == "coop"
        options = cli._read(cli.parser(), arguments)  # and raises where it cannot be
        assert options.command == name


def test_options_without_a_command_are_refused():
    done = coop("--seed")
    assert done.returncode == 2
    assert "unrecognized arguments: --seed" in done.stderr


ONE = ("--workers", "1")
PLAIN = {
    "ascii": ("+/- 95% interval", " eta gamma Erdos ? "),
    "latin-1": ("± 95% interval", " eta gamma Erdos ? "),
}


@pytest.mark.slow
@pytest.mark.parametrize("encoding", PLAIN)
def test_a_terminal_of_few_letters_gets_what_it_can_write(tmp_path, encoding):
    tables = small(trials=2, rounds=3, policies={"η γ Erdős 連": {"kind": "LinUCB"}})
    (tmp_path / "experiment.toml").write_text(to_toml(tables), encoding="utf-8")
    environment = {**os.environ, "PYTHONIOENCODING": encoding, "PYTHONUTF8": "0"}
    done = subprocess.run(
        [sys.executable, "-m", "coopbandits.cli", "run", tmp_path / "experiment.toml",
         "--out", tmp_path / "run", "--workers", "1"],
        capture_output=True, check=False, env=environment,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, b"")
    for part in PLAIN[encoding]:
        assert part in done.stdout.decode(encoding)


@pytest.mark.parametrize("command", [(), ("inspect", "--help"), ("nonsense",)], ids=str)
def test_help_and_errors_are_written_in_plain_letters(command):
    environment = {**os.environ, "PYTHONIOENCODING": "ascii:strict", "LC_ALL": "C"}
    done = coop(*command, env=environment)
    assert "Traceback" not in done.stderr
    assert (done.stdout + done.stderr).isascii()


@pytest.mark.slow
def test_json_holds_the_same_whatever_letters_the_terminal_has(tmp_path):
    (tmp_path / "γ.txt").write_text("0 1\n1 2\n")
    shown = {
        encoding: subprocess.run(
            [sys.executable, "-m", "coopbandits.cli", "inspect", tmp_path / "γ.txt", "--json"],
            capture_output=True, check=True, env={**os.environ, "PYTHONIOENCODING": encoding},
        ).stdout
        for encoding in ("utf-8", "ascii")
    }  # fmt: skip
    assert shown["ascii"].isascii()
    assert not shown["utf-8"].isascii()
    held = [json.loads(text.decode(encoding)) for encoding, text in shown.items()]
    assert held[0] == held[1]


def test_in_forty_columns_rows_are_laid_out_as_lines(file, tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", "40")
    assert cli.main(["run", str(file), "trials=2", "--out", str(tmp_path / "run"), *ONE]) == 0
    table = capsys.readouterr().out.partition("\nkept in")[0].splitlines()
    assert max(map(len, table)) <= 40
    assert table[2] == "alone"
    assert table[3].startswith("  regret per agent: ")


@pytest.mark.parametrize("width", [40, 80, 140])
def test_a_bar_keeps_its_count_however_narrow_the_terminal(monkeypatch, width):
    written = io.StringIO()
    screen = Console(file=written, force_terminal=True, width=width)
    monkeypatch.setattr("coopbandits.lab.experiments.shown.console", lambda **_: screen)
    with bars("a long name of an experiment") as on_trial:
        on_trial(7, 30, None, None)
    last = [line for line in written.getvalue().split("\r") if line.strip()][-1]
    shown = re.sub(r"\x1b\[[\d;?]*[a-zA-Z]", "", last).rstrip("\n")
    assert "7/30 trials" in " ".join(shown.split())
    assert " left" in shown
    assert len(shown.rstrip()) <= width


PACKAGES = {
    "none of the extras": ["matplotlib", "pandas", "pyarrow", "rich", "tqdm", "starlette", "httpx"],
    "not rich": ["rich"],
    "not a package of the core": ["threadpoolctl"],
}


def without(packages, *arguments):
    """Run `coop` where some packages are not installed."""
    code = (
        "import sys\n"
        "class Missing:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        f"        if name.split('.')[0] in {packages!r}:\n"
        "            raise ModuleNotFoundError(f'No module named {name!r}', name=name)\n"
        "sys.meta_path.insert(0, Missing())\n"
        "from coopbandits.cli import main\n"
        f"sys.exit(main({list(map(str, arguments))!r}))\n"
    )
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)


@pytest.mark.slow
@pytest.mark.parametrize("name", PACKAGES)
def test_doctor_says_what_is_missing_without_it(name):
    packages = PACKAGES[name]
    done = without(packages, "doctor")
    assert (done.returncode, done.stderr) == (2, "")
    for package in packages:
        assert re.search(rf"(absent|MISSING) +{package}, for ", done.stdout), package
    assert "to mend, see above" in done.stdout
    if "rich" in packages:
        assert "pip install 'coopbandits[lab]' brings what is missing for: " in done.stdout


def test_doctor_takes_an_extra_that_nobody_needs_for_no_fault():
    done = without(["tqdm"], "doctor")
    assert done.returncode == 0
    assert "absent   tqdm" in done.stdout
    assert "pip install 'coopbandits[progress]'" in done.stdout
    assert done.stdout.endswith("all is well\n")


@pytest.mark.slow
@pytest.mark.parametrize("package", ["rich", "matplotlib", "pyarrow"])
def test_a_run_that_lacks_a_package_is_refused_before_it_plays(file, tmp_path, package):
    done = without([package], "run", file, "--out", tmp_path / "run", "--workers", "1")
    assert done.returncode == 2
    assert f"'{package}'" in done.stderr
    assert "pip install 'coopbandits[lab]'" in done.stderr
    assert not list(tmp_path.glob("run/trials/*"))


@pytest.mark.slow
def test_a_run_needs_no_pandas(file, tmp_path):
    done = without(["pandas"], "run", file, "--out", tmp_path / "run", "--workers", "1")
    assert (done.returncode, done.stderr) == (0, "")


def test_doctor_finds_all_well():
    done = coop("doctor")
    assert done.returncode == 0, done.stdout
    assert "all is well" in done.stdout
    assert "two engines take the same decisions" in done.stdout


def test_report_writes_figures_if_asked_to(file, tmp_path, capsys):
    run = str(tmp_path / "run")
    cli.main(["run", str(file), "--out", run, *ONE])
    capsys.readouterr()
    assert cli.main(["report", run, "--figures"]) == 0
    said = [Path(line.split(" (")[0]) for line in capsys.readouterr().out.splitlines()]
    assert [path.name for path in said] == [
        "report.html", "regret.pdf", "regret.svg", "regret.png", "finals.tex",
    ]  # fmt: skip
    assert all(path.is_file() for path in said)


def test_schema_is_printed_or_written(tmp_path):
    done = coop("schema", "--out", tmp_path / "schema.json")
    assert done.returncode == 0
    assert json.loads((tmp_path / "schema.json").read_text()) == json.loads(coop("schema").stdout)


PIPES = [
    ("schema", "head -c 10"),
    ("schema", "true"),
    ("--help", "true"),
    ("", "head -n 1"),
    ("run --help", "true"),
    pytest.param("run {file}", "true", marks=pytest.mark.slow),
]


@pytest.mark.parametrize(("command", "reader"), PIPES)
def test_a_closed_pipe_is_no_error(file, tmp_path, command, reader):
    given = command.format(file=f"{file} --out {tmp_path}/run --workers 1")
    done = subprocess.run(
        f"{sys.executable} -m coopbandits.cli {given} | {reader}",
        shell=True, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.stderr == ""


def test_words_of_errors_may_be_cut_off_too():
    done = subprocess.run(
        f"{sys.executable} -m coopbandits.cli report nowhere 2>&1 | true",
        shell=True, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.stderr == ""
