"""Do our off-policy estimates equal Open Bandit Pipeline's? On its own data, to the digit.

    make .venv-peers/.ready                   # obp lives with the peers
    .venv/bin/python benchmarks/open_bandit.py

Both sides read the 10,000 impressions that come with obp (or those in --data) by themselves: we by
`lab.open_bandit`, obp by its OpenBanditDataset. Targets are fixed rules. obp answers in the peers'
environment; a difference above 1e-12 of the value ends the run with an error. What
`evaluate_policy` refuses, as its weights are worth too little, is shown beside obp's number.

`ReplayMethod` is the mean reward of the matches of a rule that leaves nothing to chance. On a log
of equal propensities that is self-normalised IPS of the rule, so it is compared with "snips" there.
"""

import argparse
import gzip
import json
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

HERE = Path(__file__).resolve().parent
PEERS = HERE.parent / ".venv-peers" / "bin" / "python"
CAMPAIGNS = {"all": 80, "men": 34, "women": 46}
POSITIONS, SEED, TOLERANCE = 3, 0, 1e-12
ESTIMATORS = {
    "ips": "InverseProbabilityWeighting",
    "snips": "SelfNormalizedInverseProbabilityWeighting",
    "replay": "ReplayMethod",
}

Array = NDArray[np.float64]
Answers = dict[str, dict[str, float]]


def by_position(items: int) -> dict[str, Array]:
    """Rules that know the position alone, by name: (POSITIONS, items) probabilities."""
    rng = np.random.default_rng(SEED)
    return {
        "all items alike": np.full((POSITIONS, items), 1 / items),
        "drawn at random": rng.dirichlet(np.ones(items), size=POSITIONS),
        "one item": np.eye(items)[rng.choice(items, POSITIONS, replace=False)],
    }


def by_affinity(affinity: Array) -> Array:
    """Return a rule that knows the affinities a: probabilities ∝ 1 + a, (…, items)."""
    return (1 + affinity) / (1 + affinity).sum(axis=-1, keepdims=True)


def ours(folder: Path, items: int) -> Answers:
    """Answer by `coopbandits.lab`."""
    from coopbandits.errors import InputError  # noqa: PLC0415 (not in the peers' environment)
    from coopbandits.lab import evaluate_policy, open_bandit  # noqa: PLC0415

    log = open_bandit(folder)

    def affine(contexts: Array, _: int) -> Array:
        part = contexts[:, 1] * np.sqrt(6.0)  # a/(1 + a)
        return by_affinity(part / (1 - part))

    def fixed(table: Array) -> Callable[[Array, int], Array]:
        return lambda _, agent: table[agent]

    targets = {name: fixed(table) for name, table in by_position(items).items()}
    answers: Answers = {}
    for name, target in {**targets, "by affinity": affine}.items():
        answers[name] = {}
        for estimator in ("ips", "snips"):
            try:
                answers[name][estimator] = evaluate_policy(log, target, estimator=estimator).mean
            except InputError as error:
                print(f"  {name}, {estimator}: refused, {str(error).split(';')[0]}")
    p = log.propensities
    if "snips" in answers["one item"] and p is not None and np.ptp(p) < 1e-9:
        answers["one item"]["replay"] = answers["one item"]["snips"]
    return answers


def of_obp(folder: Path, items: int) -> Answers:
    """Answer by obp; runs in the peers' environment."""
    from obp import ope  # noqa: PLC0415 (there only)
    from obp.dataset import OpenBanditDataset  # noqa: PLC0415

    class Plain(OpenBanditDataset):
        def pre_process(self) -> None:  # its own does not run with pandas 2 and above
            self.context = np.zeros((len(self.data), 1))
            self.action_context = np.zeros((items, 1))

    dataset = Plain(folder.parent.name, folder.name, folder.parents[1])
    feedback: dict[str, Any] = dataset.obtain_batch_bandit_feedback()
    N = feedback["n_rounds"]
    names = [f"user-item_affinity_{item}" for item in range(items)]
    likely = by_affinity(dataset.data[names].to_numpy(dtype=np.float64))
    actions = {
        name: np.broadcast_to(table.T, (N, items, POSITIONS)).copy()
        for name, table in by_position(items).items()
    }
    actions["by affinity"] = np.repeat(likely[:, :, None], POSITIONS, axis=2)
    given = {key: feedback[key] for key in ("reward", "action", "pscore", "position")}
    return {
        name: {
            short: float(getattr(ope, long)().estimate_policy_value(**given, action_dist=chosen))
            for short, long in ESTIMATORS.items()
            if short != "replay" or name == "one item"  # it is for rules without chance
        }
        for name, chosen in actions.items()
    }


def plain(data: Path, target: Path) -> Path:
    """Copy the data set's files without compression, as obp reads them."""
    for file in data.rglob("*.csv*"):
        unpacked = target / file.relative_to(data).with_name(file.name.removesuffix(".gz"))
        unpacked.parent.mkdir(parents=True, exist_ok=True)
        raw = file.read_bytes()
        unpacked.write_bytes(gzip.decompress(raw) if file.suffix == ".gz" else raw)
    return target


def answers_of_obp(data: Path) -> dict[str, Answers]:
    """Ask obp in its environment."""
    asked = subprocess.run(
        [PEERS, __file__, "--obp", "--data", data], check=True, capture_output=True, text=True
    )
    return dict(json.loads(asked.stdout))


def folders(data: Path) -> dict[str, tuple[Path, int]]:
    """Return the campaigns by name, with their folders and numbers of items."""
    return {
        f"{policy}/{campaign}": (data / policy / campaign, items)
        for policy in ("random", "bts")
        for campaign, items in CAMPAIGNS.items()
    }


def compare(data: Path) -> None:
    """Print all values, and end with an error where two differ."""
    expected, compared, zeros, worst = answers_of_obp(data), 0, 0, 0.0
    print(f"{'log':14}{'target':18}{'estimator':10}{'coopbandits':>24}{'obp':>24}{'relative':>10}")
    for name, (folder, items) in folders(data).items():
        found = ours(folder, items)
        for target, values in expected[name].items():
            for estimator, theirs in values.items():
                mine = found[target].get(estimator)
                start = f"{name:14}{target:18}{estimator:10}"
                if mine is None:
                    print(f"{start}{'-':>24}{theirs:24.16g}")
                    continue
                off = abs(mine - theirs) / max(abs(theirs), 1e-300) if mine != theirs else 0.0
                compared, zeros, worst = compared + 1, zeros + (theirs == 0), max(worst, off)
                print(f"{start}{mine:24.16g}{theirs:24.16g}{off:10.1e}")
    print(f"{compared} values compared, {zeros} of them 0; largest relative difference {worst:.1e}")
    if not compared or worst > TOLERANCE:
        sys.exit(f"the estimates differ: {worst:.1e} of a value, expected at most {TOLERANCE:g}")


def main() -> None:
    """Compare; or, in the peers' environment, print obp's answers as JSON."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--data", type=Path, help="the data set's folder; obp's own, if not given")
    parser.add_argument("--obp", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.obp:
        found = {name: of_obp(*place) for name, place in folders(options.data).items()}
        print(json.dumps(found))
        return
    if not PEERS.exists():
        sys.exit("obp is not installed: run `make .venv-peers/.ready`, which does it")
    data = options.data
    if data is None:
        (data,) = (PEERS.parents[1] / "lib").glob("python*/site-packages/obp/dataset/obd")
    with tempfile.TemporaryDirectory() as folder:
        compare(plain(data, Path(folder)))


if __name__ == "__main__":
    main()
