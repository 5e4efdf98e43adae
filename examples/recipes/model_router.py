# %% [markdown]
# # LLM router
#
# Four gateways send each prompt to a small language model or to a large one, and see whether that answer was right. The large
# one is right more often, and costs. Which prompts are worth it?
#
# Prompts are simulated here, so that the truth is known; [the same on RouteLLM's answers](../llm-router.md) is an example
# with real ones, and an honest result.

# %%
from typing import Any

import numpy as np

import coopbandits as cb

GATEWAYS, FEATURES, PRICE = 4, 5, 0.15
network = cb.Network.complete(GATEWAYS)

# %% [markdown]
# ## What is offered
#
# A context describes sending *this prompt* to *that model*: the prompt's features twice, once for each model, with 0 where
# the other model stands, so that each model has weights of its own. (`cb.arms` says the same by a kernel.)


# %%
def offered(round_: int, gateway: int, rng: np.random.Generator) -> np.ndarray:
    prompt = np.append(rng.normal(size=FEATURES - 1) / 2, 1.0)
    blank = np.zeros(FEATURES)
    return np.array([[*prompt, *blank], [*blank, *prompt]])


# %% [markdown]
# ## How good models are
#
# Two kinds of traffic: for gateways 0 and 1 the third feature makes prompts hard for the small model, for 2 and 3 the fourth.
# The reward is the probability of a right answer, less the price of the large model.


# %%
def quality(hard: int):  # type: ignore[no-untyped-def]
    small = np.array([0.0, 0.1, 0.0, 0.0, 0.65])
    small[hard] = -0.35
    large = np.array([0.0, 0.1, 0.0, 0.0, 0.8 - PRICE])
    return lambda contexts: contexts @ np.concatenate([small, large])


functions = [quality(2), quality(2), quality(3), quality(3)]
problem = cb.problems.functions(network, functions, offered, noise=0.4)

# %% [markdown]
# ## Alone, one model for all, cooperating
#
# `intercept=1` gives each gateway a constant of its own: how easy its traffic is. The cooperating router is not told which
# gateways are alike.

# %%
options: dict[str, Any] = {"eta": 0.4, "ridge": 0.16, "intercept": 1.0}
linear = cb.kernels.Linear()
routers = [
    cb.LinUCB(**options).named("alone"),
    cb.NaiveCooperation(linear, **options).named("one model for all"),
    cb.EagerKernelUCB(linear, **options).named("cooperating"),
]
comparison = cb.compare(problem, routers, rounds=100, seeds=3)
print(comparison)

# %% [markdown]
# ## As a gateway runs it
#
# An agent rates both models, and its scores say why. `exploring` keeps the log fit for judging other routers later.

# %%
agent = cb.EagerKernelUCB(linear, **options).exploring(0.05).agent(0, network, seed=0)
decision = agent.decide(offered(0, 0, np.random.default_rng(1)))
model = "large" if decision.index == 1 else "small"
print(f"{model}, taken with probability {decision.propensity:.3f}")
messages = agent.reward(decision, 1.0 - PRICE * (model == "large"))
