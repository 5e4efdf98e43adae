"""Simulated users know what may count for an event, whatever became of their rewards."""

from random import Random
from types import SimpleNamespace

import pytest

from coopbandits.fleet.api import Action, DecideRequest
from coopbandits.fleet.core.settings import RewardRules
from coopbandits.fleet.face import RefusedError, Reward
from fleet.simulation.users import Story, Users


class Node:
    """One event that takes rewards by the rules, and loses answers and rewards as it is told."""

    def __init__(self, rules, rng):
        self.name, self.core = "a node", None
        self.settings = SimpleNamespace(rewards=rules, mode="online")
        self.rng, self.log = rng, []

    def ask(self, request, heard):
        assert isinstance(request, Reward)
        fate = self.rng.choice(["answered"] * 4 + ["lost", "lost before", "down", "disk-full"])
        if fate in ("down", "lost before"):
            heard(fate.split()[0], None)
        elif fate == "disk-full":
            heard("refused", RefusedError("disk-full", "it is full"))
        elif request.key is not None and request.key in [key for key, _ in self.log]:
            heard(fate, None)
        elif self.log and self.settings.rewards.rule == "first":
            heard("refused", RefusedError("event-closed", "it is closed"))
        else:
            self.log.append((request.key, request.value))
            heard(fate, None)

    @property
    def counts(self):
        values = [value for _, value in self.log]
        if not values:
            return self.settings.rewards.default
        first, last = values[0], values[-1]
        return {"first": first, "last": last, "sum": sum(values)}[self.settings.rewards.rule]


def told(users, story, node):
    """Tell some rewards; what counts is expected after each."""
    for _ in range(7):
        if not story.over:
            users._reward(story)
        assert node.counts in story.outcomes(node.settings.rewards), (story.told, node.log)


@pytest.mark.parametrize("rule", ["first", "last", "sum"])
def test_what_counts_is_among_what_users_expect(rule):
    for seed in range(300):
        rng, rules = Random(seed), RewardRules(rule=rule, wait=9.0, default=-7.0)
        node = Node(rules, rng)
        plan = SimpleNamespace(seed=seed)
        users = Users(SimpleNamespace(plan=plan, count=lambda _: None), node)
        story = Story("one", DecideRequest([Action("a", [1.0])]), reply="answered")
        users.stories.append(story)

        told(users, story, node)
        lost = node.counts
        node.log = node.log[: rng.randint(0, len(node.log))]
        users.went_back(SimpleNamespace(decided={"one": 1}, rewarded={"one": node.log}))
        assert lost in story.before
        assert node.counts in story.outcomes(rules)
        told(users, story, node)
