"""Real data are no part of the repository: where may they lie?

In the folder that COOPBANDITS_DATA names, or in `shared` beside the clone. Tests whose data are in
neither are skipped, and say so.
"""

import os
from pathlib import Path

import pytest

from coopbandits.lab.networks import VARIABLE

BESIDE = Path(__file__).resolve().parents[2] / "shared"
NAMED = [Path(os.environ[VARIABLE]).expanduser()] if os.environ.get(VARIABLE) else []


def data_set(name):
    """Return the folder of a data set, whether it is there or not."""
    places = [*(folder / name for folder in NAMED), BESIDE / "data" / name]
    return next((place for place in places if place.is_dir()), places[-1])


def networks():
    """Return the folder with the files of networks, whether it is there or not."""
    places = [*NAMED, BESIDE / "networks"]
    return next((p for p in places if (p / "ego-facebook.txt.gz").is_file()), places[-1])


def needs(folder):
    """Skip a test unless a folder is there."""
    reason = f"no real data in {folder}; {VARIABLE} may name where {folder.name} is"
    return pytest.mark.skipif(not folder.is_dir(), reason=reason)
