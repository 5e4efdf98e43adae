# %% [markdown]
# # My table
#
# A table of decisions that were taken: which shop, what was offered, what was taken, with which probability, what came of it.
# From it follow the kernel and the noise that suit the rewards, what a cooperating policy would have earned, and agents
# that start with what the table knows.

# %% [markdown]
# ## The table
#
# Three shops offer each customer one of three discounts. A row is a decision; `propensity` is the probability with which
# the discount was drawn (here all alike). The table is made up here; yours comes from a file, by `pandas.read_csv`.

# %%
from typing import Any

import numpy as np
import pandas as pd

rng = np.random.default_rng(0)
rows = 900
table = pd.DataFrame(
    {
        "shop": rng.choice(["north", "centre", "south"], rows),
        "age": rng.uniform(18, 80, rows).round(),
        "basket": rng.gamma(3, 15, rows).round(2),
        "discount": rng.choice([0.0, 5.0, 10.0], rows),
        "propensity": 1 / 3,
    }
)
wish = np.where(table.shop == "south", -0.03, 0.05) * table.discount  # the south dislikes discounts
table["sold"] = (rng.uniform(size=rows) < 0.3 + wish + 0.002 * (table.basket - 45)).astype(float)
print(table.head(4).to_string(index=False))

# %% [markdown]
# ## As a log
#
# A context describes an offered action: here the discount, and the customer it is offered to. Columns in raw units are
# scaled once, with the same numbers for all shops.

# %%
import coopbandits as cb
from coopbandits.lab import Log
from coopbandits.records import Logged

network = cb.Network.from_edges([("north", "centre"), ("centre", "south")])
discounts = [0.0, 5.0, 10.0]
columns = ["age", "basket", "discount"]
scaling = cb.Scaling.fit(table[columns])

decisions = []
for shop, part in table.groupby("shop"):
    for number, row in enumerate(part.itertuples(), start=1):
        offered = [[row.age, row.basket, d] for d in discounts]
        decisions.append(
            Logged(
                round=number,
                agent=network.index(shop),
                contexts=scaling.scaled(offered),
                action=discounts.index(row.discount),
                reward=row.sold,
                propensity=row.propensity,
            )
        )
log = Log.of(decisions, names=network.names)
print(log)

# %% [markdown]
# ## Which kernel, which noise?
#
# By marginal likelihood, best first. Differences below 2 or 3 in `evidence` are none.

# %%
from coopbandits.lab import compare_kernels

for fit in compare_kernels(log, ["linear", "rbf"]):
    print(f"{fit.name}: evidence {fit.evidence:.1f}, noise {fit.noise:.2f}, eta {fit.eta:.2f}")

# %% [markdown]
# RBF fits better here, since it can hold what a linear kernel cannot: that shops sell more or less in general. A policy
# holds that in `intercept=`, and the linear kernel then does, with fewer numbers to learn.
#
# ## What would it have earned?
#
# Rejection replay plays a learning policy against the log, and takes the decisions in which both agree. Intervals tell
# whether the log can tell policies apart.

# %%
from coopbandits.lab import replay_policy

options: dict[str, Any] = {"ridge": 0.2, "eta": 0.4, "intercept": 1.0}
alone = cb.LinUCB(**options)
together = cb.EagerKernelUCB(cb.kernels.Linear(), **options)
for policy in (alone, together):
    replay = replay_policy(log, policy, network=network)
    print(
        f"{policy.name}: {replay.mean:.3f}, between {replay.interval[0]:.3f} and "
        f"{replay.interval[1]:.3f}; logged {replay.logged:.3f}"
    )

# %% [markdown]
# ## Agents that start from it
#
# Every shop's agent hears its own past and its neighbours', in blocks, and decides from then on.

# %%
policy = cb.EagerKernelUCB(cb.kernels.Linear(), features=cb.features.Exact(), **options)
agents = {shop: policy.agent(shop, network) for shop in network.names}
for shop, agent in agents.items():
    for origin in {shop, *(network.names[v] for v in network.neighbours(shop))}:
        part = table[table.shop == origin]
        agent.hear(origin, scaling.scaled(part[columns]), part.sold)
    customer = [[30.0, 60.0, d] for d in discounts]
    rated = agent.predict(scaling.scaled(customer)).mean.round(2)
    print(shop, dict(zip(discounts, rated.tolist(), strict=True)))

# %% [markdown]
# The south rates discounts lower than the others do, although it has heard the centre's customers too: its own rewards
# say so. [Your own logs](../logs.md) has the format, estimators and what is refused.
