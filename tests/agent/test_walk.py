"""The walk of one observation in docs/architecture.md is the one that the code takes."""

import re
import sys
from pathlib import Path

import coopbandits as cb

ROOT = Path(__file__).resolve().parents[2]


def traced(function):
    """Run a function, and return the modules of the core in the order of their first call."""
    seen = []

    def note(frame, event, argument):
        name = frame.f_globals.get("__name__", "")
        if event == "call" and name.startswith("coopbandits.") and name not in seen:
            seen.append(name)

    sys.setprofile(note)
    try:
        function()
    finally:
        sys.setprofile(None)
    return seen


def test_the_walk_of_one_observation_is_the_one_in_the_docs(rng):
    text = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    table = text.partition("## One observation, one path")[2].partition("\n\nWhat an agent")[0]
    listed = re.findall(r"^\|[^|]*\| `([\w/]+)\.py` \|", table, flags=re.M)
    assert len(listed) > 8
    network = cb.Network.path(3)
    policy = cb.EagerKernelUCB(
        kernel=cb.kernels.RBF(), similarity=cb.similarity.Clusters([0, 0, 1]), eta=0.3
    )
    sender, receiver = (policy.agent(v, network) for v in (0, 1))
    for agent in (sender, receiver):
        agent.reward(agent.decide(rng.normal(size=(3, 2))).id, 1.0)
    decision, offered = sender.decide(rng.normal(size=(3, 2))), rng.normal(size=(3, 2))
    before = receiver.known

    def walk():
        (message,) = sender.reward(decision.id, 0.5)
        receiver.receive(cb.Message.from_bytes(message.to_bytes()))
        receiver.decide(offered)

    modules = [name.removeprefix("coopbandits.").replace(".", "/") for name in traced(walk)]
    assert modules == listed
    assert receiver.known == before + 1
