"""`coop node`: run one node; check, replay, verify, back up or restore its log."""

import argparse
import os
import sys
from pathlib import Path

from coopbandits.errors import CoopBanditsError, ParameterError
from coopbandits.fleet.configuration import Configuration, read_configuration
from coopbandits.fleet.core.actions import DAMAGED
from coopbandits.fleet.core.opening import opened, replayed
from coopbandits.fleet.core.state import same
from coopbandits.fleet.process import exit_code, open_store, run
from coopbandits.fleet.store.backup import Report, backup, restore, verify
from coopbandits.plain_text import visible_lines


def main(options: argparse.Namespace) -> int:
    """Do what is asked of a node; the exit codes are those of `fleet/process.py`."""
    try:
        if options.folder is not None and options.action not in ("backup", "restore"):
            raise ParameterError(
                f"`coop node {options.action}` takes no folder, got {options.folder!r}; backup and "
                "restore do"
            )
        configuration = read_configuration(Path(options.config), os.environ, options.set)
        return _ACTIONS[options.action](configuration, options)
    except CoopBanditsError as error:
        if options.debug:
            raise
        sys.stderr.write(f"coop node: {error}\n")
        return exit_code(error)


def _run(configuration: Configuration, options: argparse.Namespace) -> int:
    settings = configuration.settings
    if not options.check:
        return run(configuration)
    _say(
        f"{options.config} is in order: node {settings.name} of fleet {settings.fleet}, one of "
        f"{len(settings.network)} sites, {settings.policy.name} with γ = {settings.policy.ttl}, "
        f'mode "{settings.mode}"'
    )
    return 0


def _replay(configuration: Configuration, options: argparse.Namespace) -> int:
    """Do again what the log says, from its oldest end, and compare with the newest kept state."""
    store = open_store(configuration)
    try:
        again, first = replayed(configuration.settings, configuration.keys, store)
        live = opened(configuration.settings, configuration.keys, store)
    finally:
        store.close()
    equal = same(again, live)
    _say(
        f"entries {first} to {again.journal.position} were done again: {again.counts.decisions} "
        f"decisions, {again.agent.known} observations; the state is "
        + ("the same to the bit" if equal else "ANOTHER than the one that was kept")
    )
    return 0 if equal else DAMAGED


def _verify(configuration: Configuration, options: argparse.Namespace) -> int:
    report = verify(configuration.folder)
    _show(configuration.folder, report)
    return DAMAGED if report.damage else 0


def _backup(configuration: Configuration, options: argparse.Namespace) -> int:
    folder = _folder(options, "the new folder of the backup")
    _show(folder, backup(configuration.folder, folder))
    return 0


def _restore(configuration: Configuration, options: argparse.Namespace) -> int:
    folder = _folder(options, "the folder of a backup")
    report = restore(
        folder,
        configuration.folder,
        identity=configuration.identity,
        overwrite=options.overwrite,
    )
    _show(configuration.folder, report)
    _say("the node begins a new epoch at its next start, and takes back from its neighbours what "
         "the backup lacks")  # fmt: skip
    return 0


def _folder(options: argparse.Namespace, what: str) -> Path:
    if options.folder is None:
        raise ParameterError(f"`coop node {options.action}` needs {what}, behind the action")
    return Path(options.folder)


def _show(folder: Path, report: Report) -> None:
    _say(f"{folder}: {'damaged' if report.damage else 'whole'}")
    if report.identity is not None:
        _say(
            f"  log of {report.identity}, entries {report.first} to {report.position}, "
            f"{report.records} records, snapshots behind {_listed(report.snapshots)}, "
            f"{report.disk_bytes:,} bytes"
        )
    for line in report.damage:
        _say(f"  {line}")


def _listed(positions: tuple[int, ...]) -> str:
    return ", ".join(map(str, positions)) or "none"


def _say(text: str) -> None:
    sys.stdout.write(visible_lines(text) + "\n")


_ACTIONS = {
    "run": _run,
    "replay": _replay,
    "verify": _verify,
    "backup": _backup,
    "restore": _restore,
}
