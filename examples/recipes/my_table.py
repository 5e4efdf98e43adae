# %% [markdown]
# # My table
#
# A table of decisions that were taken: which shop, which customer, what was offered, with which probability, what came of
# it. From it follow the kernel and the noise that suit the rewards, which policy to take, and agents that start with what
# the table knows.

# %% [markdown]
# ## The table
#
# Three shops offer each customer one of three discounts. A row is a decision; `propensity` is the probability with which
# the discount was drawn (here all alike). The table is made up here; yours comes from a file, by `pandas.read_csv` or
# `coopbandits.lab.read_table`.

# %%
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
# A context describes an offered action: the discount, and the customer it is offered to. `action=` says what was taken,
# `features=` what describes it; every discount of the table could have been taken. Texts become numbers of 0 or 1, and a
# missing value is refused with its column and what to do.

# %%
import coopbandits as cb

log = cb.Log.from_frame(
    table,
    agent="shop",
    action="discount",
    features=["age", "basket", "discount"],
    reward="sold",
    propensity="propensity",
    code_action=False,  # the number tells discounts apart
)
network = cb.Network.from_edges([("north", "centre"), ("centre", "south")])
print(log)

# %% [markdown]
# ## What suits it?
#
# `advise` compares policies, kernels and γ on it, by off-policy estimates and replays side by side, and says in words whether
# the log can tell them apart. On the command line: `coop advise shops.csv --agent shop …`.

# %%
from coopbandits.lab import advise

advice = advise(log, network=network, ttls=(1,), kernels=("linear",), replays=False)
for one in advice.judged:
    low, high = one.gap_interval
    print(f"{one.candidate.name}: {one.value:.3f}, less than the best: {low:.3f} … {high:.3f}")
print(advice.verdict, advice.recommended.name, advice.more)

# %% [markdown]
# ## Agents that start from it
#
# Every shop's agent hears its own past and its neighbours', in the table's own units, and decides from then on.

# %%
from coopbandits.lab import start_agents

policy = cb.EagerKernelUCB(
    cb.kernels.Linear(),
    scaling=cb.Scaling.fit(table[["age", "basket", "discount"]]),
    features=cb.features.Exact(),
    ridge=0.2,
    eta=0.4,
    intercept=1.0,
)
discounts = [0.0, 5.0, 10.0]
for shop, agent in zip(network.names, start_agents(log, policy, network=network), strict=True):
    rated = agent.predict([[30.0, 60.0, d] for d in discounts]).mean.round(2)
    print(shop, dict(zip(discounts, rated.tolist(), strict=True)))

# %% [markdown]
# The south rates discounts lower than the others do, although it has heard the centre's customers too: its own rewards
# say so. [Your own logs](../logs.md) has the format, estimators and what is refused.
