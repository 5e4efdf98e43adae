import copy
import pickle
import subprocess
import sys

import numpy as np
import pytest
from pettingzoo.test import api_test, parallel_api_test, parallel_seed_test, seed_test
from pettingzoo.utils.conversions import parallel_to_aec

import coopbandits as cb
from coopbandits.errors import (
    LocalProtocolError,
    MissingExtraError,
    ParameterError,
)
from environments import (
    EVERY,
    NETWORK,
    T,
    V,
    episode,
    make,
    recorded,
    spelt,
)


def test_every_problem_is_tried():
    makers = {name for name in cb.problems.__all__ if name[0].islower()}
    makers -= {"continuum", "continuum_functions"}  # environments are for finite decision sets
    assert makers == {name.partition(",")[0] for name in EVERY}


@pytest.mark.parametrize("name", EVERY)
class TestEveryProblem:
    @pytest.mark.parametrize("ttl", [None, 2])
    def test_passes_pettingzoos_parallel_tests(self, name, ttl):
        parallel_api_test(make(name, ttl=ttl), num_cycles=T + 2)
        if "ragged" not in name:  # the seed test samples without looking at the mask
            parallel_seed_test(lambda: make(name, ttl=ttl))

    # its warnings: that observations are dictionaries, and that contexts have negative numbers
    @pytest.mark.filterwarnings("ignore::UserWarning")
    def test_passes_pettingzoos_tests_as_a_turn_based_environment(self, name):
        api_test(parallel_to_aec(make(name, ttl=2)), num_cycles=T + 2)
        seed_test(lambda: parallel_to_aec(make(name, ttl=2)), num_cycles=T + 2)

    def test_gives_the_rewards_and_regret_of_a_run_with_the_same_actions_and_seed(self, name):
        env = make(name)
        run = cb.play(env.problem, cb.LinUCB(eta=0.3), rounds=T, seed=5)
        env.reset(seed=5)
        for t in range(T):
            actions = dict(zip(env.agents, run.actions[t], strict=True))
            _, rewards, _, _, infos = env.step(actions)
            offer = env.problem.round(t + 1, 5)
            for v, agent in enumerate(env.possible_agents):
                assert rewards[agent] == run.rewards[t, v]
                assert infos[agent]["regret"] == run.regret[t, v]
                assert (
                    infos[agent]["expected"] == offer.expected[offer.agents == v][run.actions[t, v]]
                )
                assert infos[agent]["round"] == t + 1

    def test_is_truncated_after_the_last_round_and_never_terminated(self, name, rng):
        env = make(name)
        _, returned = episode(env, 0, rng)
        assert len(returned) == T + 1
        for t, (_, _, terminations, truncations, _) in enumerate(returned[1:], start=1):
            assert terminations == dict.fromkeys(env.possible_agents, False)
            assert truncations == dict.fromkeys(env.possible_agents, t == T)
        assert env.agents == []
        with pytest.raises(LocalProtocolError, match=r"or it is over; call reset\(\)"):
            env.step(dict.fromkeys(env.possible_agents, 0))


def test_a_seed_gives_its_episode_and_those_after_it():
    one, two = make("clustered_linear"), make("clustered_linear")
    one.reset()  # what was before a seed plays no part
    one.reset(seed=9)
    two.reset(seed=9)
    assert one.episode_seed == two.episode_seed == 9
    seeds = set()
    for _ in range(3):
        mine, _ = one.reset()
        others, _ = two.reset()
        np.testing.assert_array_equal(
            mine["agent_1"]["observation"], others["agent_1"]["observation"]
        )
        assert one.episode_seed == two.episode_seed
        seeds.add(one.episode_seed)
    assert len(seeds) == 3
    two.reset(seed=10)
    two.reset()
    assert two.episode_seed not in seeds
    fresh = [make("clustered_linear") for _ in range(2)]
    for env in fresh:
        env.reset()
    assert fresh[0].episode_seed != fresh[1].episode_seed


def test_an_episode_without_a_seed_can_be_played_again_by_its_seed(rng):
    env = make("kernel")
    actions, returned = episode(env, None, rng)
    offers = [env.problem.round(t, env.episode_seed) for t in range(1, T + 1)]
    for offer, chosen, (_, rewards, *_) in zip(offers, actions, returned[1:], strict=True):
        assert list(rewards.values()) == offer.rewards[offer.starts + chosen].tolist()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"agent_2": 5}, "agent_2 chose action 5 in round 1, but is offered 0 … 4; choose"),
        ({"agent_2": -1}, "agent_2 chose action -1 in round 1"),
        ({"agent_2": 1.0}, r"agent_2 chose action 1\.0 in round 1"),
        ({"agent_2": None}, "agent_2 chose action None in round 1"),
        ({"agent_2": True}, "agent_2 chose action True in round 1"),
        ({"agent_7": 0}, "an action for each of agent_0 … agent_6 and for nobody else"),
    ],
)
def test_what_is_not_offered_cannot_be_chosen_and_nothing_has_changed(change, message):
    env = make("kernel")
    with pytest.raises(LocalProtocolError, match="no episode is going on"):
        env.step({})
    env.reset(seed=0)
    before = env.state()
    with pytest.raises(ParameterError, match=message):
        env.step({**dict.fromkeys(env.agents, 0), **change})
    assert env.round == 0
    np.testing.assert_array_equal(env.state(), before)
    for wrong in ({}, {"agent_0": 0}, [0] * V, None):
        with pytest.raises(ParameterError, match="step needs a dictionary"):
            env.step(wrong)


def test_a_masked_action_cannot_be_chosen():
    env = make("table, ragged")
    observations, _ = env.reset()
    masks = {name: observations[name]["action_mask"] for name in env.agents}
    [short, *_] = [name for name in env.agents if not masks[name].all()]
    masked = int(np.argmin(masks[short]))
    with pytest.raises(ParameterError, match=f"{short} chose action {masked} in round 1, .* mask"):
        env.step({**dict.fromkeys(env.agents, 0), short: masked})


def test_actions_may_be_numbers_of_numpy():
    env = make("kernel")
    rewards = []
    for action in (2, np.int64(2), np.int8(2), np.array(2)):
        env.reset(seed=0)
        rewards.append(env.step(dict.fromkeys(env.agents, action))[1])
    assert all(other == rewards[0] for other in rewards)


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        ({"problem": "kernel"}, ParameterError, "'kernel' is no problem"),
        ({"rounds": 0}, ParameterError, "rounds must be a whole number >= 1"),
        ({"problem": recorded(), "rounds": T + 1}, ParameterError, "rounds=9, but .* only 8"),
        ({"ttl": 0}, ParameterError, "ttl must be a whole number >= 1"),
        ({"most_actions": 0}, ParameterError, "most_actions must be a whole number >= 1"),
        ({"most_actions": 4}, ParameterError, "offered 5 actions in round 1, .* room for 4"),
        ({"action_mask": 1}, ParameterError, "action_mask must be True or False, got 1"),
        ({"render_mode": "human"}, ParameterError, "render_mode='human' is not known"),
        ({"render_mode": np.array(["ansi"] * 2)}, ParameterError, "expected 'ansi' or None"),
    ],
)
def test_settings_that_make_no_sense_are_refused(changes, error, message):
    with pytest.raises(error, match=message):
        make("kernel", **changes)


def test_a_seed_that_is_none_is_refused_and_nothing_has_changed():
    env = make("kernel")
    env.reset(seed=3)
    with pytest.raises(ParameterError, match="seed must be a whole number >= 0"):
        env.reset(seed=-1)
    assert env.episode_seed == 3
    assert env.agents == env.possible_agents


@pytest.mark.parametrize("clone", [copy.deepcopy, lambda env: pickle.loads(pickle.dumps(env))])
def test_a_copy_goes_on_as_the_original_does(clone):
    env = make("clustered_linear", ttl=2)
    env.reset(seed=4)
    env.step(dict.fromkeys(env.agents, 1))
    other = clone(env)
    for action in (2, 0):
        mine, others = (each.step(dict.fromkeys(each.agents, action)) for each in (env, other))
        assert mine[1] == others[1]
        assert spelt(mine[4]) == spelt(others[4])
    env.reset()
    other.reset()
    assert env.episode_seed == other.episode_seed


def test_it_shows_a_round_as_text():
    env = make("clustered_linear", render_mode="ansi")
    env.reset(seed=0)
    assert env.render() == f"round 0 of {T}"
    _, rewards, _, _, infos = env.step(dict.fromkeys(env.agents, 3))
    first, *lines = env.render().splitlines()
    assert first == f"round 1 of {T}"
    assert lines == [
        f"{name}: action 3 of 8, reward {rewards[name]:.4f}, regret {infos[name]['regret']:.4f}"
        for name in env.agents
    ]
    silent = make("clustered_linear")
    silent.reset()
    with pytest.warns(UserWarning, match="without render_mode='ansi'"):
        assert silent.render() is None


def test_it_names_itself_its_agents_and_its_network():
    env = make("clustered_linear", ttl=2)
    assert str(env) == "coopbandits_v0"
    assert repr(env) == f"ProblemEnv({env.problem!r}, {T} rounds, ttl 2)"
    assert env.possible_agents == [f"agent_{v}" for v in range(V)]
    assert env.network is NETWORK
    assert (env.agents, env.max_num_agents, env.render_mode) == ([], V, None)
    assert env.close() is None


def test_without_pettingzoo_one_clear_error_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "pettingzoo", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'coopbandits\[pettingzoo\]'"):
        make("kernel")
    assert issubclass(MissingExtraError, ImportError)


def test_naming_it_loads_neither_pettingzoo_nor_gymnasium():
    code = (
        "import sys; from coopbandits.lab import *; parallel_env; "
        "print([m for m in ('pettingzoo', 'gymnasium') if m in sys.modules])"
    )
    shown = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout
    assert shown.strip() == "[]"


def test_agents_are_called_by_their_names_where_they_have_some():
    network = cb.Network.from_edges([("north", "south")])
    problem = cb.problems.clustered_linear(network, dim=2, actions=3, clusters=[0, 1])
    env = cb.lab.parallel_env(problem, rounds=2)
    seen, _ = env.reset(seed=1)
    assert list(seen) == env.possible_agents == ["north", "south"]
    env.step({"north": 0, "south": 2})
    with pytest.raises(ParameterError, match="for each of north … south and for nobody else"):
        env.step({"north": 0})
