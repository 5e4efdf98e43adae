"""What does the page show? Everything of a run as one value for JSON; what is no number is null."""

import json
import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from coopbandits.arrays import Array, IntArray
from coopbandits.comparison import Mean
from coopbandits.errors import ExperimentError
from coopbandits.lab.experiments.figures import style_of
from coopbandits.lab.experiments.store import Store
from coopbandits.lab.experiments.summary import Summary, baseline_of
from coopbandits.lab.report.colours import policy_looks
from coopbandits.lab.report.headline import Finding, finding, headline
from coopbandits.lab.report.layout import drawing
from coopbandits.lab.report.matrices import similarity_maps


@dataclass(frozen=True)
class Detail:
    """How much of a run goes into the page.

    Attributes:
        points: Rounds of a curve.
        rows: Of a map of K_z; 0 for no maps.
        edges: Of a drawn network; 0 for no drawings.
    """

    points: int
    rows: int
    edges: int


def content(store: Store, found: list[Summary], detail: Detail) -> dict[str, Any]:
    """Gather what the page shows."""
    experiment = store.experiment
    pairs = dict.fromkeys((s.cell.problem, s.cell.network) for s in found)
    panels, findings = [], []
    for problem, network in pairs:
        here = [s for s in found if (s.cell.problem, s.cell.network) == (problem, network)]
        findings.append(finding(store, here))
        panels.append(_panel(store, here, findings[-1], detail))
    return {
        "name": experiment.name,
        "headline": headline(findings, [s.paired or s.trials for s in found]),
        "rounds": experiment.rounds,
        "trials": experiment.trials,
        "seed": experiment.seed,
        "done": sum(s.trials for s in found),
        "expected": len(experiment.tasks),
        "policies": policy_looks(style_of(store)),
        "panels": panels,
        "networks": _networks(store, detail),
        "parameters": _parameters(store),
    }


def number(value: float, digits: int = 6) -> float | int | None:
    """Round to significant digits for JSON; None where there is no number."""
    if not math.isfinite(value):
        return None
    short = float(f"{value:.{digits}g}")
    return int(short) if short.is_integer() and abs(short) < 1e15 else short


def thinned(rounds: IntArray, most: int) -> IntArray:
    """Choose points of a curve, evenly in time and on a logarithmic scale; the ends are kept."""
    count = len(rounds)
    if count <= most:
        return np.arange(count)
    even = np.linspace(0, count - 1, most - most // 4)
    targets = np.geomspace(rounds[0], rounds[-1], max(2, most // 4))
    early = np.searchsorted(rounds, targets).clip(0, count - 1)
    return np.unique(np.concatenate([np.round(even).astype(np.int64), early, [0, count - 1]]))


def _panel(store: Store, here: list[Summary], found: Finding, detail: Detail) -> dict[str, Any]:
    names = list(store.experiment.policies)
    networks = list(store.experiment.networks)
    cell = here[0].cell
    kept = thinned(here[0].rounds, detail.points)
    placed = [(names.index(s.cell.policy), s) for s in here]
    return {
        "problem": cell.problem,
        "network": networks.index(cell.network),
        "baseline": names.index(baseline_of(store, cell).policy),
        "finding": found.sentence,
        "brief": found.brief,
        "agents": len(here[0].records[0].agents),
        "rounds": [int(t) for t in here[0].rounds[kept]],
        "series": [_series(place, summary, kept) for place, summary in placed],
        "similarity": similarity_maps(placed, detail.rows, _facts(store, cell.network)),
    }


def _series(place: int, summary: Summary, kept: IntArray) -> dict[str, Any]:
    engines = dict.fromkeys(record.engine for record in summary.records)
    return {
        "policy": place,
        "trials": summary.trials,
        "paired": summary.paired,
        "regret": _curve(summary.regret[kept]),
        "half": _curve(summary.half[kept]),
        "difference": _curve(summary.difference[kept]),
        "differenceHalf": _curve(summary.difference_half[kept]),
        "final": _mean(summary.final),
        "finalDifference": _mean(summary.final_difference),
        "ratio": number(summary.ratio),
        "slope": number(summary.slope),
        "messages": number(summary.messages),
        "bytes": number(summary.bytes),
        "milliseconds": number(summary.milliseconds),
        "engine": ", ".join(engines),
        "worth": [_curve(row) for row in summary.worth],
    }


def _mean(mean: Mean) -> list[float | int | None]:
    return [number(mean.value), number(mean.half)]


def _curve(values: Array) -> list[float | int | None]:
    # five digits are finer than a screen
    return [number(float(value), 5) for value in values]


def _networks(store: Store, detail: Detail) -> list[dict[str, Any]]:
    """Return the drawings; a run that was stopped has none yet."""
    made = []
    for name, table in store.experiment.networks.items():
        facts = _facts(store, name)
        if facts and detail.edges:
            try:
                drawn = drawing(name, facts, detail.edges)
            except (ValueError, KeyError, TypeError) as error:
                raise _damaged(store, name, error) from error
            made.append({**drawn, "fresh": bool(table.get("fresh"))})
        else:
            made.append({"name": name, "leftOut": not detail.edges})
    return made


def _facts(store: Store, network: str) -> dict[str, Any]:
    """Read what a run keeps of a network; nothing yet of a run that was stopped."""
    file = store.network_file(network)
    if not file.is_file():
        return {}
    try:
        facts: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
        return dict(facts)
    except (ValueError, TypeError) as error:
        raise _damaged(store, network, error) from error


def _damaged(store: Store, network: str, error: Exception) -> ExperimentError:
    return ExperimentError(
        f"{store.network_file(network)} is damaged ({error}); remove it and give the run's command "
        "again"
    )


def _parameters(store: Store) -> dict[str, Any]:
    manifest = store.manifest
    return {
        "toml": store.experiment.to_toml(),
        "versions": {str(k): str(v) for k, v in manifest.get("versions", {}).items()},
        "machine": str(manifest.get("machine", "")),
        "graphs": {str(k): str(v) for k, v in manifest.get("networks", {}).items()},
        "modules": {str(k): str(v) for k, v in manifest.get("own modules", {}).items()},
    }
