"""What is a PettingZoo environment of a problem? `parallel_env` makes one.

One step is one round: all agents choose, each gets the noisy reward of its action, and the next
decision sets are offered. Actions do not change what is offered next, so the right discount is 0.
"""

from typing import Any, ClassVar

import gymnasium
import numpy as np
from gymnasium.spaces import Discrete, Space
from pettingzoo import ParallelEnv

from coopbandits.arrays import (
    Array,
    IntArray,
    as_choice,
    as_count,
    as_flag,
    as_seed,
    frozen,
    is_whole,
    short,
)
from coopbandits.errors import LocalProtocolError, ParameterError
from coopbandits.lab.pettingzoo_env.news import News
from coopbandits.lab.pettingzoo_env.observations import Observations, called, largest_set
from coopbandits.network import Network
from coopbandits.problems.problem import Problem, Round

Infos = dict[str, dict[str, Any]]
Step = tuple[dict[str, Any], dict[str, float], dict[str, bool], dict[str, bool], Infos]


class ProblemEnv(ParallelEnv):  # type: ignore[misc]  # PettingZoo has no types
    """A problem as a `ParallelEnv`: agents in the order of its network, by name or "agent_0" … .

    Observations are the offered contexts, padded with zeros to (K, d), with an action mask of 1
    for each that is offered. `infos` tell of the round that was just played: its number `round`,
    the `regret` and the `expected` reward of the agent's action, for the record and not to learn
    from, and `messages`, what the agent has just heard: dictionaries of `round`, `origin` (the
    number of an agent), `context`, `reward` and `ttl`; `coopbandits.Message(**message)` is one.

    After the last round nothing new is offered, and observations repeat its decision sets.

    Attributes:
        problem: What the agents face.
        rounds: T.
        ttl: γ, None where nothing is heard.
        round: How many rounds of the episode have been played.
        episode_seed: `coopbandits.play(problem, policy, rounds, seed=env.episode_seed)` faces the
            episode's contexts and noise. None before the first `reset`.
        state_space: Of `state()`.
    """

    metadata: ClassVar[dict[str, Any]] = {
        "name": "coopbandits_v0",
        "render_modes": ["ansi"],
        "is_parallelizable": True,
    }

    def __init__(
        self,
        problem: Problem,
        *,
        rounds: int,
        ttl: int | None = None,
        most_actions: int | None = None,
        action_mask: bool = True,
        render_mode: str | None = None,
    ) -> None:
        """See `parallel_env`."""
        if not isinstance(problem, Problem):
            raise ParameterError(
                f"{short(problem)} is no problem of finite decision sets; coopbandits.problems "
                "makes some"
            )
        self.problem, self.rounds = problem, as_count(rounds, "rounds")
        if problem.horizon is not None and problem.horizon < self.rounds:
            raise ParameterError(
                f"rounds={self.rounds}, but the problem has only {problem.horizon}"
            )
        as_flag(action_mask, "action_mask")
        if render_mode is not None:
            modes = self.metadata["render_modes"]
            render_mode = as_choice(render_mode, "render_mode", modes, otherwise="None")
        self.render_mode = render_mode
        self.ttl = None if ttl is None else as_count(ttl, "ttl")
        self._news = None if self.ttl is None else News(problem.network, self.ttl)
        first = problem.round(1, 0)
        self._sight = Observations(
            agents=called(problem.network),
            most=largest_set(problem, self.rounds)
            if most_actions is None
            else as_count(most_actions, "most_actions"),
            dim=first.contexts.shape[1],
            masked=action_mask,
        )
        self._sight.check(1, first)
        self.possible_agents = called(problem.network)
        self.agents: list[str] = []
        self.observation_spaces = {name: self._sight.space() for name in self.possible_agents}
        self.action_spaces = {name: Discrete(self._sight.most) for name in self.possible_agents}
        self.state_space = self._sight.state_space()
        self.round = 0
        self.episode_seed: int | None = None
        # what later episodes' seeds come from: the last seed given, and how many it gave since
        self._root, self._since = np.random.SeedSequence(), 0
        self._offer: Round | None = None
        self._shown = ""

    def __repr__(self) -> str:
        return f"ProblemEnv({self.problem!r}, {self.rounds} rounds, ttl {self.ttl})"

    @property
    def network(self) -> Network:
        """The agents, and who hears whom: agent v of it is `possible_agents[v]`."""
        return self.problem.network

    def observation_space(self, agent: str) -> Space[Any]:
        """Return the agent's space of observations."""
        return self.observation_spaces[agent]

    def action_space(self, agent: str) -> Space[Any]:
        """Return the agent's space of actions, {0 … K−1}."""
        return self.action_spaces[agent]

    def reset(
        self, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[dict[str, Any], Infos]:
        """Start an episode.

        Args:
            seed: Of its contexts and noise. The same seed gives the same episode, and the same
                ones after it; if not given, this is the one after the last.
            options: Plays no part.
        """
        if seed is None:
            root, since = self._root, self._since + 1
            # rounds draw from keys (t, 0) and (t, 1) of a seed, t ≥ 1
            chain = np.random.SeedSequence(root.entropy, spawn_key=(0, since))
            own = int(chain.generate_state(1, np.uint64)[0])
        else:
            own = as_seed(seed)
            root, since = np.random.SeedSequence(own), 0
        offer = self._sight.check(1, self.problem.round(1, own))
        self._root, self._since = root, since
        self.episode_seed, self.round, self._offer = own, 0, offer
        self.agents = list(self.possible_agents)
        self._shown = f"round 0 of {self.rounds}"
        if self._news is not None:
            self._news.clear()
        return self._seen(offer), {name: {"round": 0, "messages": []} for name in self.agents}

    def step(self, actions: dict[str, Any]) -> Step:
        """Play a round: observations, rewards, terminations (never), truncations, infos."""
        if not self.agents or self._offer is None or self.episode_seed is None:
            raise LocalProtocolError("no episode is going on, or it is over; call reset() first")
        offer, t, names = self._offer, self.round + 1, self.possible_agents
        chosen = self._chosen(actions, offer, t)
        over = t == self.rounds
        following = offer
        if not over:
            following = self._sight.check(t + 1, self.problem.round(t + 1, self.episode_seed))
        rows = offer.starts + chosen
        rewards, expected = offer.rewards[rows], offer.expected[rows]
        regret = np.maximum.reduceat(offer.expected, offer.starts) - expected
        heard: list[list[dict[str, Any]]] = [[] for _ in names]
        if self._news is not None:
            heard = self._news.tell(frozen(offer.contexts[rows]), rewards)
        self.round, self._offer = t, following
        if over:
            self.agents = []
        if self.render_mode is not None:
            lines = map(_line, names, chosen, offer.sizes, rewards, regret)
            self._shown = "\n".join([f"round {t} of {self.rounds}", *lines])
        infos = {
            name: {
                "round": t,
                "regret": float(regret[v]),
                "expected": float(expected[v]),
                "messages": heard[v],
            }
            for v, name in enumerate(names)
        }
        return (
            self._seen(following),
            dict(zip(names, rewards.tolist(), strict=True)),
            dict.fromkeys(names, False),
            dict.fromkeys(names, over),
            infos,
        )

    def state(self) -> Array:
        """Return all agents' observations as one vector: contexts (V, K, d), then masks (V, K)."""
        if self._offer is None:
            raise LocalProtocolError("there is no state before the first episode; call reset()")
        return self._sight.state(self._offer)

    def render(self) -> str | None:
        """Return the last round as text, a line for each agent."""
        if self.render_mode is None:
            gymnasium.logger.warn("render() shows nothing without render_mode='ansi'")
            return None
        return self._shown

    def close(self) -> None:
        """Do nothing: nothing is open."""

    def _seen(self, offer: Round) -> dict[str, Any]:
        return dict(zip(self.possible_agents, self._sight.of(offer), strict=True))

    def _chosen(self, actions: Any, offer: Round, t: int) -> IntArray:
        """Check the actions of all agents: (V,)."""
        if not isinstance(actions, dict) or actions.keys() != set(self.agents):
            raise ParameterError(
                f"step needs a dictionary with an action for each of {self.agents[0]} … "
                f"{self.agents[-1]} and for nobody else; got {short(actions)}"
            )
        chosen = np.empty(len(self.agents), dtype=np.int64)
        for v, name in enumerate(self.agents):
            action, size = actions[name], int(offer.sizes[v])
            if isinstance(action, np.ndarray) and action.ndim == 0:
                action = action[()]
            if not is_whole(action) or not 0 <= action < size:
                raise ParameterError(
                    f"{name} chose action {short(actions[name])} in round {t}, but is offered "
                    f"0 … {size - 1}; choose a whole number where its action mask is 1"
                )
            chosen[v] = action
        return chosen


def _line(name: str, action: int, size: int, reward: float, regret: float) -> str:
    return f"{name}: action {action} of {size}, reward {reward:.4f}, regret {regret:.4f}"
