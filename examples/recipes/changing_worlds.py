# %% [markdown]
# # Changing worlds
#
# What was right last month is wrong today: a competitor opens, a cable is moved, a season ends. A policy with `forget=`
# lets old observations lose their weight, those of neighbours too.

# %% [markdown]
# ## A world that jumps
#
# Twelve agents with four linear tasks. After 100 of 200 rounds all tasks are drawn anew, and nobody is told.

# %%
from functools import partial

import coopbandits as cb

network = cb.Network.erdos_renyi(12, 0.4, seed=0)
tasks = [v % 4 for v in range(12)]


def jump(seed: int) -> cb.problems.Problem:
    return cb.problems.changing(
        network, kind="jump", at=101, clusters=tasks, dim=5, noise=0.3, seed=seed
    )


# %% [markdown]
# ## Three rules
#
# `Exponential(half_life=h)` halves an observation's weight every h rounds of its origin and needs sums of fixed size: a
# linear kernel, or `features=`. `Window(rounds=W)` keeps the last W rounds and works with every kernel. None, the default,
# never forgets.

# %%
eager = partial(
    cb.EagerKernelUCB, cb.kernels.Linear(), similarity=cb.similarity.Clusters(tasks), eta=0.3
)
policies = [
    eager().named("never forget"),
    eager(forget=cb.forget.Exponential(half_life=20)).named("half life 20"),
    eager(forget=cb.forget.Window(rounds=50)).named("the last 50 rounds"),
]
comparison = cb.compare(jump, policies, rounds=200, seeds=3)
print(comparison)

# %% [markdown]
# ## What it costs where nothing changes
#
# A short memory is bought with regret in a world that stands still: an agent that forgets learns the same things again
# and again.

# %%


def still(seed: int) -> cb.problems.Problem:
    return cb.problems.clustered_linear(network, clusters=tasks, dim=5, noise=0.3, seed=seed)


print(cb.compare(still, policies, rounds=200, seeds=3))

# %% [markdown]
# Choose the half life from how often your world changes: replay a log of your own with several
# ([logs](../logs.md)). [Worlds that change](../forgetting.md) has measurements for jumps, drifts and groups that
# re-form, with intervals.
