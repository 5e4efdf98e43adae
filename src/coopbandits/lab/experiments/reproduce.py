"""The paper's figure (§5) as an experiment: two setups, four networks, its algorithms and ours.

Coop- and Eager-KernelUCB are named with the K_z that they play with: the paper's estimate K̂_z,
`Evidence`, or the true one.

What the paper leaves open is settled here and said in docs/reproduction.md: the noise R, the norm
of F, the width η (chosen for agents alone, on other seeds), and how networks are sampled.
"""

from collections.abc import Sequence
from typing import Any

from coopbandits.arrays import as_choice, instead, short
from coopbandits.errors import ExperimentError, NetworkError
from coopbandits.lab.experiments.experiment import Experiment, experiment_of
from coopbandits.lab.experiments.kinds import HALF_DIAMETER, TRUTH
from coopbandits.lab.networks import SOURCES, VARIABLE, data_folders, fetch_file

NETWORKS: dict[str, dict[str, Any]] = {
    "Erdős-Rényi": {"kind": "erdos_renyi", "p": 0.7},
    "ego-Facebook": {"kind": "file", "name": "ego-facebook"},
    "musae-Twitch": {"kind": "file", "name": "musae-twitch-de"},
    "as-Skitter": {"kind": "file", "name": "as-skitter"},
    "as-caida": {"kind": "file", "name": "as-caida"},
}
# as-caida stands in for as-Skitter only if it is asked for, under its own name.
DEFAULT_NETWORKS = ("Erdős-Rényi", "ego-Facebook", "musae-Twitch", "as-Skitter")
SHORT = {"er": "Erdős-Rényi", "facebook": "ego-Facebook", "twitch": "musae-Twitch",
         "skitter": "as-Skitter", "caida": "as-caida"}  # fmt: skip
SETUPS = {"1": "setup 1, linear", "2": "setup 2, RBF"}
PROFILES = {
    "quick": {"agents": 40, "rounds": 80, "trials": 3},
    "paper": {"agents": 200, "rounds": 500, "trials": 100},
}

_NOISE, _NORM, _ETA = 0.3, 7.0, 0.3


def paper_experiment(
    *,
    profile: str = "quick",
    networks: Sequence[str] | None = None,
    setups: Sequence[str] | None = None,
    algorithms: Sequence[str] | None = None,
    agents: int | None = None,
    rounds: int | None = None,
    trials: int | None = None,
    seed: int = 0,
    data: str | None = None,
) -> Experiment:
    """Return the paper's figure, or a part of it.

    Args:
        profile: "quick" or "paper".
        networks: Of `NETWORKS`, or their short names er, facebook, twitch, skitter, caida.
        setups: "1" and "2".
        algorithms: Of `algorithms_of`, by name.
        agents: V, instead of the profile's; so `rounds`, `trials`.
        seed: Of the networks; trial i has seed + i.
        data: Where files of networks are looked for first.
    """
    profile = as_choice(profile, "profile", PROFILES)
    given = {"agents": agents, "rounds": rounds, "trials": trials}
    size = {**PROFILES[profile], **{k: v for k, v in given.items() if v is not None}}
    wanted = _listed("networks", networks) or DEFAULT_NETWORKS
    names = [SHORT.get(name.lower(), name) for name in wanted]
    _check("network", names, [*NETWORKS], [*SHORT])
    chosen = _listed("setups", setups) or list(SETUPS)
    _check("setup", chosen, [*SETUPS])
    tables = {
        "networks": {name: {**NETWORKS[name], "agents": size["agents"]} for name in names},
        "problems": {SETUPS[setup]: _problem(setup) for setup in chosen},
        "policies": _policies(chosen),
    }
    if compared := _listed("algorithms", algorithms):
        _check("algorithm", compared, [*tables["policies"]])
        tables["policies"] = {name: tables["policies"][name] for name in compared}
    return experiment_of(
        {
            "name": "Dubey & Pentland (2020), the figure",
            "seed": seed,
            "trials": size["trials"],
            "rounds": size["rounds"],
            "data": data or "",
            **tables,
        }
    )


def missing_networks(networks: Sequence[str], *, data: str | None = None) -> list[str]:
    """Fetch the files of networks that are not here; return the networks without one.

    Args:
        networks: Of `NETWORKS`.
        data: Where files are looked for first, and put.
    """
    missing = []
    for name in networks:
        if NETWORKS[name]["kind"] == "file":
            try:
                fetch_file(NETWORKS[name]["name"], data)
            except NetworkError:
                missing.append(name)
    return missing


def how_to_get(missing: Sequence[str], *, data: str | None = None) -> list[str]:
    """Return lines that say where the files of networks are, and where to put them."""
    sources = {name: SOURCES[NETWORKS[name]["name"]] for name in missing}
    wide = max(map(len, missing))
    lines = [f"  {name:{wide}}  {source.address}" for name, source in sources.items()]
    lines.append(
        f"Put these files into {data_folders(data)[0]}, or name the folder that has them with "
        f"--data or {VARIABLE}, and run it again into another folder (--out)."
    )
    if "as-Skitter" in missing:
        lines.append(
            "as-caida stands in for as-Skitter only if you ask: --networks er,facebook,twitch,caida"
        )
    return lines


def _problem(setup: str) -> dict[str, Any]:
    if setup == "1":
        return {
            "kind": "clustered_linear", "ttl": HALF_DIAMETER, "dim": 10, "actions": 8,
            "noise": _NOISE,
        }  # fmt: skip
    return {
        "kind": "kernel", "kernel": {"kind": "RBF", "lengthscale": 1.0}, "dim": 10, "actions": 8,
        "noise": _NOISE, "norm": _NORM, "engine": "sparse",
    }  # fmt: skip


def _policies(setups: Sequence[str]) -> dict[str, dict[str, Any]]:
    """Return the algorithms of some setups."""
    fixed = {"eta": _ETA, "ridge": 1.0}
    common = {**fixed, "kernel": TRUTH, "ttl": HALF_DIAMETER}
    first, second = [SETUPS["1"]], [SETUPS["2"]]
    bound = {"norm": TRUTH, "noise": TRUTH}
    # Six parts of K̂_z do as well as all (docs/reproduction.md), at a fraction of the time.
    embedding = {
        "similarity": {"kind": "MeanEmbedding", "bandwidth": 1.0, "rank": 6}, "engine": "sparse",
    }  # fmt: skip
    rows: dict[str, dict[str, Any]] = {
        "LinUCB": {"kind": "LinUCB", **fixed, "problems": first},
        "OFUL": {
            "kind": "OFUL", "width": {"kind": "SelfNormalised", "norm": 1.0, "noise": TRUTH},
            "ridge": 1.0, "problems": first,
        },
        "KernelUCB": {"kind": "KernelUCB", **fixed, "kernel": TRUTH, "problems": second},
        "IGP-UCB": {
            "kind": "IGPUCB", "kernel": TRUTH, "width": {"kind": "InformationGain", **bound},
            "ridge": 1.0, "problems": second,
        },
        "Naive cooperation (LinUCB)": {"kind": "NaiveCooperation", **common, "problems": first},
        "Naive cooperation (IGP-UCB)": {
            "kind": "NaiveCooperation", "kernel": TRUTH, "ttl": HALF_DIAMETER,
            "width": {"kind": "InformationGain", **bound}, "ridge": 1.0, "problems": second,
        },
        "Dist-KernelUCB": {"kind": "DistKernelUCB", **common},
        "Coop-KernelUCB, MeanEmbedding (paper)": {"kind": "CoopKernelUCB", **common, **embedding},
        "Eager-KernelUCB, MeanEmbedding (paper)": {
            "kind": "EagerKernelUCB", **common, **embedding,
        },
        "Eager-KernelUCB, Evidence": {
            "kind": "EagerKernelUCB", **common, "similarity": {"kind": "Evidence"},
        },
        "Eager-KernelUCB, K_z known": {
            "kind": "EagerKernelUCB", **common, "similarity": TRUTH, "dashed": True,
        },
    }  # fmt: skip
    names = {SETUPS[setup] for setup in setups}
    kept: dict[str, dict[str, Any]] = {}
    for name, row in rows.items():
        if "problems" in row and not names & set(row["problems"]):
            continue
        kept[name] = row
    return kept


def _listed(what: str, given: Any) -> list[str]:
    """Check a list of names; None for none."""
    names = [] if given is None else given
    if not isinstance(names, list | tuple) or not all(isinstance(name, str) for name in names):
        raise ExperimentError(f"{what}={short(given)}; expected a list of names, or None for all")
    return list(names)


def _check(what: str, given: Sequence[str], known: list[str], brief: Sequence[str] = ()) -> None:
    for name in given:
        if name not in known:
            raise ExperimentError(f"there is no {what} {name!r}{instead(name, [*known, *brief])}")
