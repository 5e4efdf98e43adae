"""What a node is told: what keeps its promises is let in, the rest refused with the reason."""

import math

import pytest

import coopbandits as cb
from coopbandits import policies
from coopbandits.errors import InputError, NetworkError, ParameterError
from coopbandits.features import Exact
from coopbandits.fleet.core.settings import RewardRules, Settings, checked

NETWORK = cb.Network.path(4)
RBF, FEW = cb.kernels.RBF(), cb.features.Fourier(8)
SAME = cb.similarity.Same()
BEYOND = "hears agents beyond γ hops"
COOPERATIVE = {"similarity": SAME, "ttl": 2}
# By name: with which kernel it is made and what else, and why it is refused, if it is.
NAMED = {
    "LinUCB": ({}, None),
    "OFUL": ({}, None),
    "LinTS": ({}, None),
    "KernelUCB": ({"kernel": RBF}, None),
    "GPUCB": ({"kernel": RBF}, None),
    "IGPUCB": ({"kernel": RBF}, None),
    "KernelTS": ({"kernel": RBF}, None),
    "NaiveCooperation": ({"kernel": RBF, "ttl": 2}, None),
    "CoopKernelUCB": ({"kernel": RBF, **COOPERATIVE}, None),
    "EagerKernelUCB": ({"kernel": RBF, **COOPERATIVE}, None),
    "CoopKernelTS": ({"kernel": RBF, **COOPERATIVE}, None),
    "EagerKernelTS": ({"kernel": RBF, **COOPERATIVE}, None),
    "DistKernelUCB": ({"kernel": RBF, "ttl": 2}, "follow a leader"),
    "Centralised": ({"kernel": RBF}, BEYOND),
    "GoBLin": ({}, BEYOND),
    "LaplacianKernelTS": ({"kernel": RBF}, BEYOND),
    "LaplacianKernelUCB": ({"kernel": RBF}, BEYOND),
    "Uniform": ({}, "act at random and learn nothing"),
}
KERNEL = [name for name, (options, why) in NAMED.items() if options and why is None]


def named(name, **more):
    return getattr(policies, name)(**NAMED[name][0], **more)


def test_every_named_policy_is_judged_here():
    assert set(NAMED) == set(policies.__all__)


@pytest.mark.parametrize("name", NAMED)
def test_a_named_policy_is_let_in_as_it_is_or_refused_with_the_reason(name):
    why = NAMED[name][1]
    policy = named(name, features=FEW) if name in KERNEL else named(name)
    for one in (policy, policy.exploring(0.1) if name != "Uniform" else policy):
        if why is None:
            assert checked(one, NETWORK).features is not None
            assert name not in KERNEL or checked(one, NETWORK) is one
        else:
            with pytest.raises(ParameterError, match=f"cannot run the policy .*{why}"):
                checked(one, NETWORK)


@pytest.mark.parametrize("name", KERNEL)
def test_a_kernel_of_infinite_features_needs_features(name):
    with pytest.raises(ParameterError, match=r"RBF\(.* keeps every observation.*give .*features="):
        checked(named(name), NETWORK)


@pytest.mark.parametrize(
    "policy",
    [
        cb.EagerKernelUCB(cb.kernels.Linear(), similarity=SAME, ttl=2),
        cb.EagerKernelUCB(2.0 * cb.kernels.Linear(), similarity=SAME, ttl=2),
        cb.LinUCB(),
    ],
    ids=str,
)
def test_a_linear_kernel_gets_its_exact_features(policy):
    found = checked(policy, NETWORK)
    assert isinstance(found.features, Exact)
    assert checked(found, NETWORK) is found


@pytest.mark.parametrize(
    "say", [cb.say.WhenUncertain(0.3), cb.say.WhenItPays(0.4), cb.say.Sums()], ids=str
)
def test_feeds_have_no_gaps_so_everything_must_be_said(say):
    policy = cb.EagerKernelUCB(
        cb.kernels.Linear(), similarity=SAME, ttl=2, features=Exact(), say=say
    )
    with pytest.raises(ParameterError, match=r"leaves out observations.* leave say= out"):
        checked(policy, NETWORK)


def test_edges_must_go_both_ways():
    directed = cb.Network.from_edges([(0, 1), (1, 2)], directed=True)
    with pytest.raises(ParameterError, match="needs a network whose edges go both ways"):
        checked(cb.LinUCB(), directed)


def settings_with(**changes):
    network = cb.Network.from_edges([("a", "b")])
    return Settings(**{
        "fleet": "f", "name": "a", "network": network, "policy": cb.LinUCB(), **changes
    })  # fmt: skip


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        ({"name": "c"}, NetworkError, "c"),
        ({"mode": "on"}, ParameterError, "mode must be online, apprentice or off, got 'on'"),
        ({"control": -0.1}, ParameterError, "control is a share of events.* got -0.1"),
        ({"control": 1.0}, ParameterError, "control is a share of events"),
        ({"control": math.nan}, ParameterError, "control is a share of events"),
        ({"checkpoint_every": 150}, ParameterError, "must be a multiple of 100, got 150"),
        ({"checkpoint_every": 0}, ParameterError, "must be a multiple of 100, got 0"),
        ({"policy": cb.Uniform()}, ParameterError, "act at random"),
    ],
)
def test_what_makes_no_sense_is_refused(changes, error, message):
    with pytest.raises(error, match=message):
        settings_with(**changes)


def test_settings_hold_the_policy_that_the_node_runs():
    assert isinstance(settings_with().policy.features, Exact)


@pytest.mark.parametrize(
    ("rules", "message"),
    [
        ({"rule": "mean"}, "rewards.rule must be first, last or sum, got 'mean'"),
        ({"rule": "last"}, 'rewards.rule = "last" needs rewards.wait'),
        ({"rule": "sum"}, 'rewards.rule = "sum" needs rewards.wait'),
        ({"default": 0.0}, "rewards.default needs rewards.wait"),
        ({"wait": 0.0}, "rewards.wait must be above 0"),
        ({"wait": -1.0}, "rewards.wait must be above 0"),
        ({"wait": 11.0, "ttl": 10.0}, "at most the events' ttl of 10 s, got 11"),
        ({"wait": math.nan}, "rewards.wait must be above 0"),
        ({"ttl": 0.0}, "events.ttl must be above 0"),
        ({"ttl": math.nan}, "events.ttl must be above 0"),
        ({"most": 9}, "events.most at least 10, got 86400 and 9"),
    ],
)
def test_rules_for_rewards_that_make_no_sense_are_refused(rules, message):
    with pytest.raises(ParameterError, match=message):
        RewardRules(**rules)


@pytest.mark.parametrize("default", [math.nan, math.inf, 1e200, "0"])
def test_a_default_reward_that_agents_cannot_take_is_refused(default):
    with pytest.raises(InputError, match=r"rewards\.default"):
        RewardRules(wait=1.0, default=default)


@pytest.mark.parametrize(
    "rules",
    [{}, {"wait": 1.0}, {"wait": 86400.0}, {"rule": "sum", "wait": 1.0, "default": 0.0}],
    ids=str,
)
def test_rules_for_rewards_that_make_sense_are_taken(rules):
    RewardRules(**rules)
