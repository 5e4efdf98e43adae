"""The command `coop`: what can be asked for; what is done is in the layers' `commands/`.

Nothing heavy is imported before a command is known, so that `coop --help` answers at once.
"""

import argparse
import os
import signal
import sys
import threading
from collections.abc import Callable, Sequence
from importlib import import_module

from coopbandits.lab.letters import make_printable

Command = Callable[[str, str], argparse.ArgumentParser]
NODE_ACTIONS = {
    "replay": "do again what its log says, and compare",
    "verify": "read all of its log, and say what it holds",
    "backup": "copy its log into a new folder, while it runs or not",
    "restore": "put a backup in the place of its log",
}
EXAMPLES = {
    "demo": ["coop demo", "coop demo --out out/mine --seed 7 --trials 3"],
    "run": [
        "coop run experiment.toml",
        "coop run experiment.toml trials=3 policies.eager.eta=0.5",
        "coop run experiment.toml --out out/run --workers 4",
    ],
    "reproduce": [
        "coop reproduce --networks er --setups 1",
        "coop reproduce --profile paper --data networks/",
    ],
    "report": ["coop report out/run", "coop report out/run --figures"],
    "inspect": [
        "coop inspect edges.txt",
        "coop inspect ego-facebook --agents 200 --out plan.png",
        "coop inspect edges.csv --ttl 1 2 3 --json",
    ],
    "schema": ["coop schema --out experiment.schema.json"],
    "fit": [
        "coop fit log.jsonl",
        "coop fit log.jsonl --kernels linear,rbf --ard",
        "coop fit shops.csv --agent shop --action product --features price,hour --reward sold",
    ],
    "replay": [
        "coop replay log.jsonl --network edges.txt",
        "coop replay log.jsonl --policies LinUCB,EagerKernelUCB --json",
    ],
    "advise": [
        "coop advise log.jsonl --network edges.txt",
        "coop advise log.jsonl --network edges.txt --out out/advice",
    ],
    "doctor": ["coop doctor"],
    "up": ["coop up --agents 5 --demo", "coop up --topology site.toml --out out/fleet"],
    "node": [
        "coop node --config node.toml",
        "coop node --config node.toml --check",
        "coop node backup copies/monday --config node.toml",
    ],
}
_FAILED, _INTERRUPTED = 2, 130
# A message has at most so many lines.
_LINES = 6


def parser() -> argparse.ArgumentParser:
    """Return the parser of `coop`."""
    coop = argparse.ArgumentParser(
        prog="coop",
        formatter_class=_Commands,
        description="Cooperative kernel bandits: simulate, compare, plan, run.",
        epilog="Start with `coop demo`. `coop COMMAND --help` has examples of each.",
    )
    coop.add_argument("--version", action="version", version=_version())
    commands = coop.add_subparsers(dest="command", metavar="COMMAND")

    def of(layer: str) -> Command:
        def command(name: str, text: str) -> argparse.ArgumentParser:
            made = commands.add_parser(
                name,
                help=text,
                description=text,
                epilog="\n  ".join(["examples:", *EXAMPLES[name]]),
                formatter_class=_AsWritten,
            )
            made.add_argument("--debug", action="store_true", help="show stack traces of errors")
            made.set_defaults(body=f"coopbandits.{layer}.commands.{name}", extra=layer)
            return made

        return command

    _experiments(of("lab"))
    _pages(of("lab"))
    _logs(of("lab"))
    of("lab")("doctor", "is everything installed, and does it work?")
    _nodes(of("fleet"))
    return coop


class _Commands(argparse.HelpFormatter):
    """Lists commands beside what they do."""

    def __init__(self, prog: str) -> None:
        super().__init__(prog)
        self._action_max_length = 13  # argparse forgets that their names stand further in


class _AsWritten(argparse.HelpFormatter):
    """Leaves the lines of examples as they are."""

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        return text if "\n" in text else super()._fill_text(text, width, indent)


def _experiments(command: Command) -> None:
    """Add what runs trials."""
    demo = command("demo", "a small experiment with its report, in a minute")
    run = command("run", "run an experiment: policies × problems × networks × trials")
    reproduce = command("reproduce", "the paper's figure, or a part of it")
    for made, out in ((demo, "out/demo"), (run, "out/run"), (reproduce, "out/reproduce")):
        made.add_argument("--out", metavar="DIR", default=out, help=f"folder (default: {out})")
        made.add_argument("--workers", type=int, metavar="N", help="processes (default: cores)")
        made.add_argument("--dask", metavar="tcp://HOST:PORT", help="run on a Dask cluster")
    for made in (run, reproduce):
        made.add_argument("--data", metavar="DIR", help="folder with files of networks")
    for made in (demo, reproduce):
        made.add_argument("--seed", type=int, default=0, help="trial i has seed + i (default: 0)")
        instead = "its own" if made is demo else "the profile's"
        made.add_argument("--rounds", type=int, metavar="T", help=f"instead of {instead}")
        made.add_argument("--trials", type=int, metavar="N", help=f"instead of {instead}")
    run.add_argument("experiment", help="a TOML file (docs/experiments.md)")
    run.add_argument("overrides", nargs="*", metavar="KEY=VALUE", help="such as trials=3")
    reproduce.add_argument(
        "--profile", choices=["quick", "paper"], default="quick",
        help="quick: 40 agents, 80 rounds, 3 trials; paper: 200, 500, 100 (default: quick)",
    )  # fmt: skip
    reproduce.add_argument(
        "--networks", type=_list, metavar="A,B",
        help="er, facebook, twitch, skitter; caida only if asked for (default: the first four)",
    )  # fmt: skip
    reproduce.add_argument("--setups", type=_list, metavar="1,2", help="1 linear, 2 RBF")
    reproduce.add_argument(
        "--algorithms", action="append", metavar="NAME", help="one of them; may be given again"
    )
    reproduce.add_argument("--agents", type=int, metavar="V", help="instead of the profile's")


def _pages(command: Command) -> None:
    """Add what shows runs, networks and formats."""
    report = command("report", "one offline page of a run: curves, tables, networks")
    report.add_argument("run", help="a folder that run, reproduce or demo made")
    report.add_argument("--out", metavar="FILE", help="the page (default: RUN/report.html)")
    report.add_argument(
        "--figures", action="store_true", help="figures as PDF, and tables as LaTeX, for a paper"
    )
    inspect = command("inspect", "which γ suits a network? cliques, traffic, bounds")
    inspect.add_argument("network", help="a file of edges, or a name such as ego-facebook")
    inspect.add_argument(
        "--ttl", type=int, nargs="+", metavar="γ", help="(default: up to the diameter)"
    )
    inspect.add_argument("--dim", type=int, default=10, help="numbers in a context (default: 10)")
    inspect.add_argument("--agents", type=int, metavar="V", help="take a connected sample")
    inspect.add_argument("--seed", type=int, default=0, help="of the sample")
    inspect.add_argument("--data", metavar="DIR", help="folder with files of networks")
    inspect.add_argument("--out", metavar="FILE", help="draw it: .png or .svg")
    inspect.add_argument("--json", action="store_true", help="print JSON")
    schema = command("schema", "a JSON Schema of experiments, for editors")
    schema.add_argument("--out", metavar="FILE", help="(default: print it)")


def _logs(command: Command) -> None:
    """Add what reads logs."""
    fit = command("fit", "kernel, ridge and noise from a log, by marginal likelihood")
    replay = command("replay", "what would policies have earned on a log?")
    advise = command("advise", "which policy, kernel and γ suit a log, and can it tell?")
    for made in (fit, replay, advise):
        made.add_argument("log", help="decisions, or a table: .csv, .parquet (docs/logs.md)")
        made.add_argument("--json", action="store_true", help="print JSON")
        _columns(made)
    fit.add_argument(
        "--kernels", type=_list, default=["linear", "rbf", "matern"], metavar="A,B",
        help="(default: linear,rbf,matern)",
    )  # fmt: skip
    fit.add_argument("--ard", action="store_true", help="a lengthscale for each number")
    fit.add_argument("--out", metavar="FILE", help="write a policy with what was found (.toml)")
    fit.add_argument(
        "--policy", default="EagerKernelUCB", metavar="NAME", help="of it (default: EagerKernelUCB)"
    )
    fit.add_argument("--ttl", type=int, default=1, metavar="γ", help="of it (default: 1)")
    replay.add_argument(
        "--network", metavar="FILE", help="edges, or: complete (default: nobody hears anybody)"
    )
    replay.add_argument(
        "--policies", type=_list, default=["LinUCB", "EagerKernelUCB"], metavar="A,B",
        help="(default: LinUCB,EagerKernelUCB)",
    )  # fmt: skip
    replay.add_argument("--kernel", default="rbf", help="linear, rbf or matern (default: rbf)")
    replay.add_argument("--ttl", type=int, default=1, metavar="γ", help="hops (default: 1)")
    replay.add_argument("--seed", type=int, default=0, help="of the policies (default: 0)")
    replay.add_argument(
        "--uniform", action="store_true", help="the log's actions were taken uniformly at random"
    )

    advise.add_argument(
        "--network", metavar="FILE", help="edges, or: complete (default: nobody hears anybody)"
    )
    advise.add_argument(
        "--ttl", type=int, nargs="+", default=[1, 2], metavar="γ", help="to try (default: 1 2)"
    )
    advise.add_argument("--kernels", type=_list, metavar="A,B", help="to try (default: all)")
    advise.add_argument(
        "--most", type=int, default=1000, metavar="N", help="decisions of an agent (default: 1000)"
    )
    advise.add_argument("--seed", type=int, default=0, help="of the agents (default: 0)")
    advise.add_argument(
        "--uniform", action="store_true", help="the log's actions were taken uniformly at random"
    )
    advise.add_argument("--out", metavar="DIR", help="folder for policy.toml and started agents")


def _columns(made: argparse.ArgumentParser) -> None:
    """Add what says which columns of a table are what."""
    columns = made.add_argument_group(
        "columns of a table", "a row is a decision, or with --chosen an offered action"
    )
    for flag, text in (
        ("agent", "whose decision it was, such as a shop"),
        ("action", "what was taken"),
        ("reward", "what it brought"),
        ("propensity", "with which probability it was taken"),
        ("time", "orders decisions (default: the order of rows)"),
        ("chosen", "which offered action was taken: 1 or true"),
        ("decision", "which rows are one decision (default: agent and time)"),
    ):
        columns.add_argument(f"--{flag}", metavar="COLUMN", help=text)
    for flag, text in (
        ("features", "what a context holds"),
        ("action-features", "of these, what belongs to the action (default: found by itself)"),
        ("categorical", "of these, numbers that are labels"),
    ):
        columns.add_argument(f"--{flag}", type=_list, metavar="A,B", help=text)
    columns.add_argument(
        "--missing", choices=["refuse", "drop", "indicate"], help="values (default: refuse)"
    )
    columns.add_argument(
        "--no-action-labels", dest="code_action", action="store_const", const=False,
        help="tell actions apart by their features alone",
    )  # fmt: skip
    columns.add_argument(
        "--catalogue", choices=["all", "agent"],
        help="what could be taken: all actions, or what an agent ever took (default: all)",
    )  # fmt: skip


def _nodes(command: Command) -> None:
    """Add what runs nodes."""
    up = command("up", "a fleet of nodes on this machine, one process each")
    up.add_argument("--agents", type=int, metavar="N", help="so many sites (default: 5)")
    up.add_argument("--topology", metavar="FILE", help="sites, edges, γ, policy (docs/fleet.md)")
    up.add_argument("--out", metavar="DIR", default="out/fleet", help="(default: out/fleet)")
    up.add_argument("--port", type=int, default=7800, help="from here on (default: 7800)")
    up.add_argument("--demo", action="store_true", help="send traffic of a simulated problem")
    node = command("node", "one node: decide, learn, lose nothing")
    node.add_argument(
        "action", nargs="?", default="run", choices=["run", *NODE_ACTIONS], metavar="ACTION",
        help="; ".join(f"{name}: {text}" for name, text in NODE_ACTIONS.items()),
    )  # fmt: skip
    node.add_argument("folder", nargs="?", metavar="BACKUP", help="of backup and restore")
    node.add_argument("--config", metavar="FILE", required=True, help="node.toml (docs/fleet.md)")
    node.add_argument(
        "--set", action="append", default=[], metavar="KEY=VALUE", help="such as http.port=8081"
    )
    node.add_argument("--check", action="store_true", help="check the configuration, and end")
    node.add_argument("--overwrite", action="store_true", help="restore over what is there")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run `coop`: 0 if it worked, 2 for what the user can mend, 130 for Ctrl-C and SIGTERM.

    A node that ends by itself has the exit codes of docs/fleet.md. Whoever reads the output may go
    before it ends (`coop … | head`).
    """
    make_printable(sys.stdout, sys.stderr)
    try:
        try:
            return _answered(arguments)
        finally:  # argparse ends by SystemExit
            sys.stdout.flush()
    except BrokenPipeError:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        for stream in (sys.stdout, sys.stderr):
            os.dup2(nowhere, stream.fileno())
        return 0


def _answered(arguments: Sequence[str] | None) -> int:
    coop = parser()
    options = _read(coop, arguments)
    if options.command is None:
        coop.print_help()
        return 0
    # One BLAS thread: the same bytes whatever the number of cores; must be set before NumPy loads.
    for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ.setdefault(name, "1")
    before = signal.getsignal(signal.SIGTERM)
    # as Ctrl-C; nodes answer it themselves, and whoever has it ignored is obeyed
    mine = options.extra == "lab" and before is signal.SIG_DFL and _is_main_thread()
    if mine:
        signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        return _carried_out(options)
    finally:
        if mine:
            signal.signal(signal.SIGTERM, before)


def _carried_out(options: argparse.Namespace) -> int:
    try:
        return int(import_module(options.body).main(options))
    except KeyboardInterrupt:
        return _stopped(options, "interrupted; what was done is kept", _INTERRUPTED)
    except SystemExit as error:  # of one's own code
        return _stopped(options, f"ended by sys.exit({error.code})", _FAILED)
    except BrokenPipeError:
        raise
    except (Exception, MemoryError) as error:
        return _stopped(options, _message(error, options.extra), _FAILED)


def _is_main_thread() -> bool:
    return threading.current_thread() is threading.main_thread()


def _read(coop: argparse.ArgumentParser, arguments: Sequence[str] | None) -> argparse.Namespace:
    """Read the arguments; what argparse expects before options may stand behind them, too."""
    options, rest = coop.parse_known_args(arguments)
    words = [word for word in rest if not word.startswith("-")]
    if not rest:
        return options
    if rest == words and options.command == "run":
        options.overrides += rest
    elif rest == words[:1] and options.command == "node" and options.folder is None:
        options.folder = rest[0]
    else:
        coop.error(f"unrecognized arguments: {' '.join(rest)}")
    return options


def _stopped(options: argparse.Namespace, message: str, code: int) -> int:
    if options.debug and code == _FAILED:
        raise  # noqa: PLE0704 (called from within an except)
    from coopbandits.plain_text import visible  # noqa: PLC0415 (light)

    lines = f"coop {options.command}: {message}".splitlines()
    sys.stderr.write("\n".join(map(visible, lines[:_LINES])) + "\n")
    return code


def _message(error: BaseException, extra: str) -> str:
    from coopbandits.errors import CoopBanditsError  # noqa: PLC0415

    if isinstance(error, CoopBanditsError):
        return str(error)
    if isinstance(error, ModuleNotFoundError):
        return f"{error}; pip install 'coopbandits[{extra}]' brings what it needs"
    if isinstance(error, MemoryError):
        return "memory ran out; take fewer agents or rounds, or fewer --workers"
    if isinstance(error, OSError):
        where = f"{error.filename}: " if error.filename else ""
        return f"{where}{error.strerror or error}"
    return f"{type(error).__name__}: {error} (--debug shows where)"


def _list(text: str) -> list[str]:
    return [item.strip() for item in text.split(",") if item.strip()]


def _version() -> str:
    from coopbandits import __version__  # noqa: PLC0415 (light: names load when used)

    return f"coopbandits {__version__}"


if __name__ == "__main__":
    sys.exit(main())
