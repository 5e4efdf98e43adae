# %% [markdown]
# # My own algorithm
#
# An algorithm is four answers: whom do I listen to, how much is their news worth to me, how sure am I, how do I act? Give
# other answers and you have another algorithm, which every engine, experiment and agent takes.

# %% [markdown]
# ## A new answer
#
# How sure am I: optimism that fades as an agent learns, w = c/√(1 + n). Any value with the method `factor` is a width.

# %%
import numpy as np

import coopbandits as cb


class Fading:
    """w = c/√(1 + n): guarantees nothing."""

    def __init__(self, c: float) -> None:
        self.c = c

    def factor(self, *, logdet, count, ridge, agents):  # type: ignore[no-untyped-def]
        return self.c / np.sqrt(1.0 + count)


# %% [markdown]
# What an agent takes for granted of a width is more than its method: `check_width` tries it.

# %%
from coopbandits.testing import check_width

check_width(Fading(2.0))

# %% [markdown]
# ## A new row
#
# The paper's rows are combinations of answers; this is another one. `engine="messages"` plays it by agents that exchange
# messages, the default by shared posteriors: the decisions are the same.

# %%
mine = cb.Policy(
    name="fading optimism",
    kernel=cb.kernels.RBF(),
    listen=cb.listen.Neighbourhood(),
    similarity=cb.similarity.Laplacian(rho=1.0),
    width=Fading(2.0),
    act=cb.act.UpperBound(),
    ttl=2,
)
problem = cb.problems.kernel(cb.Network.grid(3, 3), dim=2, actions=6, noise=0.2, seed=0)
run = cb.play(problem, mine, rounds=15, seed=0)
by_messages = cb.play(problem, mine, rounds=15, seed=0, engine="messages")
print("the same decisions:", np.array_equal(run.actions, by_messages.actions))

# %% [markdown]
# ## Is it any good?
#
# Beside others, with the same seeds, differences paired.

# %%
others = [
    cb.KernelUCB(cb.kernels.RBF(), eta=0.3),
    cb.EagerKernelUCB(cb.kernels.RBF(), similarity=problem.similarity, ttl=2, eta=0.3),
]
print(cb.compare(problem, [*others, mine], rounds=60, seeds=4))

# %% [markdown]
# ## In an experiment
#
# In a file, `kind = "module:name"` names a function that returns the policy ([experiments](../experiments.md)). What four
# answers cannot say, such as clusters that move, is an `Algorithm` of its own: `coopbandits.engines` has the protocol, and
# `src/coopbandits/baselines` eleven of them. [Testing](../testing.md) has the checks for kernels, similarities and acts.
