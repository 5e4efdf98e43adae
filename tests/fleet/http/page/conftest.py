"""Chromium, and nodes' interfaces with made-up data for it to look at."""

import importlib.util
import shutil
import sys
from pathlib import Path

import pytest

FLAGS = [
    "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync",
]  # fmt: skip
NAMES = ("chromium", "chromium-browser", "google-chrome")


@pytest.fixture(scope="session")
def feeder():
    """Return the module of the fake node; it lies beside this file."""
    name = "page_feeder"
    if name not in sys.modules:
        spec = importlib.util.spec_from_file_location(name, Path(__file__).with_name("feeder.py"))
        module = importlib.util.module_from_spec(spec)
        sys.modules[name] = module
        spec.loader.exec_module(module)
    return sys.modules[name]


@pytest.fixture(scope="module")
def browser():
    sync = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    found = next(filter(None, map(shutil.which, NAMES)), None)
    if found is None:
        pytest.skip(f"none of {', '.join(NAMES)} is installed")
    with sync.sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=found, args=FLAGS)
        started.new_context().new_page()
        yield started
        started.close()


@pytest.fixture
def node(feeder):
    """Return a maker of started fake nodes; they end with the test."""
    made = []

    def make(world):
        one = feeder.Feeder(world)
        made.append(one)
        one.start()
        return one

    yield make
    for one in made:
        one.stop()
