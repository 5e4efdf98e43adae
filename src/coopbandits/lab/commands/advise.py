"""`coop advise`: which policy, kernel, scaling and γ suit a log, and can it tell?"""

import argparse
import textwrap
from pathlib import Path
from typing import Any

import numpy as np

from coopbandits.errors import InputError
from coopbandits.lab.commands.source import name_of, read_network, read_source, show_columns
from coopbandits.lab.logs.advice import Advice, Judged, advise, mean_of
from coopbandits.lab.logs.agent_folder import write_agents
from coopbandits.lab.logs.fit import KERNELS
from coopbandits.lab.terminal import patience, show_json, show_table, show_words

_MOST_SHOWN, _WIDTH = 20, 100


def main(options: argparse.Namespace) -> int:
    """Judge candidates by a log, say which to take, and start agents of it.

    Args:
        options: `log`, a path, and for a table its columns (`source.py`); `network`, a file of one
            edge a line, "complete", or None for agents that hear nobody; `ttl`, the γ to try;
            `kernels`, to try, or none for all; `uniform`, whether all actions were as likely;
            `most`, of an agent's decisions; `seed`; `out`, a folder for policy and agents, or None;
            `json`, whether to print JSON.
    """
    out = None if options.out is None else Path(options.out)
    if out is not None and out.exists() and not out.is_dir():
        raise InputError(f"{out} is a file; expected a folder, which need not be there yet")
    log, _ = read_source(options)
    network = None if options.network is None else read_network(options.network, log)
    with patience(f"judging candidates by {len(log):,} decisions …"):
        advice = advise(
            log,
            network=network,
            ttls=options.ttl,
            kernels=options.kernels or KERNELS,
            uniform=bool(options.uniform),
            most=options.most,
            seed=options.seed,
        )
    if out is not None:
        write_agents(advice.agents(seed=options.seed), out, columns=log.columns)
    if options.json:
        show_json(facts_of(advice))
        return 0
    show_columns(log, advice.suited.scaling)
    _show(advice)
    words = advice.words
    if len(advice.log) < len(log):
        words.append(f"Of each agent its latest {options.most:,} decisions were used (--most).")
    words += [f"Not known: {said}" for one in advice.judged for said in one.refusals]
    show_words([line for said in words for line in textwrap.wrap(said, _WIDTH)])
    if out is not None:
        show_words(["", *_written(advice, out)])
    return 0


def _show(advice: Advice) -> None:
    show_table(
        f"reward a decision, ± half a 95% interval; the log's own is {advice.logged:.4g}",
        [
            "policy",
            "trained on this log",
            "less than the best",
            "effective decisions",
            "while learning",
            "replayed rounds",
        ],
        [_row(advice, one) for one in advice.judged],
    )
    chosen = advice.of(advice.recommended)
    if not len(chosen.gains):
        return
    rows = [
        [
            row["agent"],
            str(row["decisions"]),
            f"{row['logged']:.3g}",
            _with_interval(row["trained"], row["interval"]),
        ]
        for row in _by_agent(advice, chosen)
    ]
    more = f"; {len(rows) - _MOST_SHOWN} more with --json" if len(rows) > _MOST_SHOWN else ""
    show_table(
        f"reward a decision of each agent{more}",
        ["agent", "decisions", "logged", f"trained, “{chosen.candidate.name}”"],
        rows[:_MOST_SHOWN],
    )


def _row(advice: Advice, one: Judged) -> list[str]:
    trained = gap = worth = learning = rounds = "–"
    if len(one.gains):
        trained = _with_interval(one.value, one.interval)
        gap = "the best" if one.gap == 0 else _with_interval(one.gap, one.gap_interval)
        worth = f"{one.effective:.0f}"
    if one.replay is not None:
        learning = _with_interval(one.replay.mean, one.replay.interval)
        rounds = str(len(one.replay.rewards))
    mark = " ←" if one.candidate is advice.recommended else ""
    return [one.candidate.name + mark, trained, gap, worth, learning, rounds]


def _with_interval(value: float, interval: tuple[float, float]) -> str:
    return f"{value:.3g} ± {(interval[1] - interval[0]) / 2:.2g}"


def _by_agent(advice: Advice, one: Judged) -> list[dict[str, Any]]:
    owners, rewards = advice.log.owners, advice.log.rewards
    found = []
    for v in np.unique(owners).tolist():
        mine = owners == v
        trained, interval = mean_of(one.gains[mine], advice.log.rounds[mine])
        found.append(
            {
                "agent": name_of(advice.log, v),
                "decisions": int(mine.sum()),
                "logged": float(rewards[mine].mean()),
                "trained": trained,
                "interval": interval,
            }
        )
    return found


def facts_of(advice: Advice) -> dict[str, Any]:
    """Return what was found as plain values."""
    chosen = advice.of(advice.recommended)
    return {
        "verdict": advice.verdict,
        "named": None if advice.named is None else advice.named.name,
        "recommended": advice.recommended.name,
        "rivals": [one.name for one in advice.rivals],
        "more": advice.more,
        "words": advice.words,
        "kernel": advice.suited.fit.name,
        "scaled": advice.suited.scaling is not None,
        "ttl": advice.policy.ttl,
        "logged": advice.logged,
        "candidates": [
            {
                "policy": one.candidate.name,
                "value": one.value,
                "interval": one.interval,
                "gap": one.gap,
                "gap_interval": one.gap_interval,
                "effective": one.effective,
                "learning": None if one.replay is None else one.replay.mean,
                "learning_interval": None if one.replay is None else one.replay.interval,
                "rounds": None if one.replay is None else len(one.replay.rewards),
                "refusals": one.refusals,
            }
            for one in advice.judged
        ],
        "agents": _by_agent(advice, chosen) if len(chosen.gains) else [],
        "fingerprint": advice.policy.fingerprint,
    }


def _written(advice: Advice, out: Path) -> list[str]:
    """Say what is in the folder, and how it is used."""
    V, log = len(advice.network), advice.log
    name = name_of(log, 0)
    shown = repr(name) if log.names is not None else name
    if log.columns is None:
        offered = f"[[0.0] * {log.dim}] * 2"
    else:
        first = {one.name: one for one in log.columns.features}
        offered = f"stored.columns.contexts({{{', '.join(f'{n!r}: […]' for n in first)}}})"
    return [
        f"{out}: policy.toml, and {V} agents that have learnt this log. They go on so:",
        "",
        "    from coopbandits.lab import read_agents",
        f"    stored = read_agents({str(out)!r})",
        f"    decision = stored[{shown}].decide({offered})",
        f"    messages = stored[{shown}].reward(decision, 1.0)  # for its neighbours",
        "",
        f"`coop up --topology {out / 'topology.toml'}` starts nodes of this policy, which begin "
        "without what was learnt.",
    ]
