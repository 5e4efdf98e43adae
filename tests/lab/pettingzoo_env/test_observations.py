import numpy as np
import pytest
from pettingzoo.test import parallel_api_test, parallel_seed_test, state_test
from pettingzoo.utils.conversions import parallel_to_aec

import coopbandits as cb
from coopbandits.errors import LocalProtocolError, ParameterError, ShapeError
from coopbandits.lab import parallel_env
from environments import EVERY, NETWORK, T, V, at_random, episode, make, own_functions
from worlds import ragged


@pytest.mark.parametrize("name", EVERY)
class TestEveryProblem:
    def test_shows_each_agent_its_contexts_and_which_of_them_are_offered(self, name, rng):
        env = make(name)
        _, returned = episode(env, 2, rng)
        for t, (observations, *_) in enumerate(returned):
            offer = env.problem.round(min(t + 1, T), 2)  # the last one is repeated
            assert list(observations) == env.possible_agents
            for v, agent in enumerate(env.possible_agents):
                seen, mask = (observations[agent][key] for key in ("observation", "action_mask"))
                offered = offer.contexts[offer.agents == v]
                np.testing.assert_array_equal(seen[mask == 1], offered)
                assert mask.tolist() == [1] * len(offered) + [0] * (len(mask) - len(offered))
                assert not seen[mask == 0].any()
                assert observations[agent] in env.observation_space(agent)
        assert env.action_space("agent_0").n == max(
            env.problem.round(t, 2).sizes.max() for t in range(1, T + 1)
        )

    def test_has_a_state_of_all_observations(self, name, rng):
        env = make(name)
        with pytest.raises(LocalProtocolError, match="no state before the first episode"):
            env.state()
        observations, _ = env.reset(seed=1)
        for _ in range(2):
            contexts, masks = (
                [observations[agent][key] for agent in env.possible_agents]
                for key in ("observation", "action_mask")
            )
            expected = np.concatenate([np.ravel(contexts), np.ravel(masks)])
            np.testing.assert_array_equal(env.state(), expected)
            assert env.state() in env.state_space
            observations, *_ = env.step(at_random(env, observations, rng))


def test_sets_larger_than_the_room_are_refused_and_nothing_has_changed():
    growing = own_functions(lambda t, v, rng: rng.normal(size=(2 + (t > 2) * v, 3)))
    env = parallel_env(growing, rounds=T, ttl=1)
    env.reset(seed=0)
    env.step(dict.fromkeys(env.agents, 0))
    before = env.state()
    for _ in range(2):
        with pytest.raises(
            ParameterError,
            match=r"agent_6 is offered 8 actions in round 3, .* room for 2; give most",
        ):
            env.step(dict.fromkeys(env.agents, 0))
        assert (env.round, len(env.agents)) == (1, V)
        np.testing.assert_array_equal(env.state(), before)
    roomy = parallel_env(growing, rounds=T, most_actions=8)
    roomy.reset(seed=0)
    for _ in range(T):
        observations, *_ = roomy.step(dict.fromkeys(roomy.agents, 1))
    assert [o["action_mask"].sum() for o in observations.values()] == list(range(2, 2 + V))


def test_recorded_rounds_that_are_not_played_need_no_room():
    problem = ragged(NETWORK, rounds=12, sizes=(1, 9))
    env = parallel_env(problem, rounds=1)
    assert env.action_space("agent_0").n == problem.round(1, 0).sizes.max()  # type: ignore[attr-defined]
    assert parallel_env(problem, rounds=12).action_space("agent_0").n == 8  # type: ignore[attr-defined]


@pytest.mark.filterwarnings("ignore::UserWarning")  # contexts have no bounds, PettingZoo warns
def test_without_a_mask_observations_are_contexts_alone():
    def bare():
        return make("kernel", action_mask=False)

    parallel_api_test(bare(), num_cycles=T)
    parallel_seed_test(bare)
    state_test(parallel_to_aec(bare()), bare())
    env = bare()
    observations, _ = env.reset(seed=1)
    offer = env.problem.round(1, 1)
    for v, agent in enumerate(env.agents):
        np.testing.assert_array_equal(observations[agent], offer.contexts[offer.agents == v])
        assert observations[agent] in env.observation_space(agent)
    np.testing.assert_array_equal(env.state(), offer.contexts.ravel())
    for name in ("functions, ragged", "table, ragged"):
        with pytest.raises(ParameterError, match=r"must have \d+; give action_mask=True"):
            make(name, action_mask=False)


def test_a_problem_that_changes_its_dimension_is_refused():
    class Changing:
        network, horizon = NETWORK, None

        def round(self, t, seed):
            n = V if t < 3 else V - 1
            return cb.problems.Round(np.arange(n), np.ones((n, t)), np.ones(n), np.ones(n))

    env = parallel_env(Changing(), rounds=T)
    env.reset()
    with pytest.raises(
        ShapeError, match="round 2 has contexts of 2 numbers for 7 agents; expected 1"
    ):
        env.step(dict.fromkeys(env.agents, 0))


def test_what_is_handed_out_can_be_written_to_without_harm():
    env = make("table", ttl=1)
    recorded_contexts = env.problem.round(1, 0).contexts.copy()
    observations, _ = env.reset()
    state = env.state()
    observations["agent_0"]["observation"][:] = 7.0
    observations["agent_0"]["action_mask"][:] = 0
    np.testing.assert_array_equal(env.state(), state)
    np.testing.assert_array_equal(env.problem.round(1, 0).contexts, recorded_contexts)
    *_, infos = env.step(dict.fromkeys(env.agents, 0))
    with pytest.raises(ValueError, match="read-only"):
        infos["agent_0"]["messages"][0]["context"][0] = 7.0  # all who hear it hold the same
