# %% [markdown]
# # My network
#
# Who can send to whom: from edges, a table, NetworkX or a file. Agents have names, come and go, and each may be deployed
# with what it knows.

# %%
import networkx as nx

import coopbandits as cb

edges = {"from": ["north", "north", "centre", "south"], "to": ["centre", "west", "south", "island"]}
network = cb.Network.from_frame(edges, "from", "to")  # pandas, polars, Arrow, or a dict of lists
same = cb.Network.from_networkx(nx.Graph(list(zip(edges["from"], edges["to"], strict=True))))
print(network, network.names, network == same)

# %% [markdown]
# ## Which γ?
#
# Messages travel γ hops (`ttl`). A larger γ hears more agents, later, for more bytes. `inspect_network` says what each
# costs, before anything is deployed; `coop inspect FILE` prints the same.

# %%
from coopbandits.lab import inspect_network

inspection = inspect_network(network)
for row in inspection.rows:
    print(
        f"γ = {row.ttl}: an agent hears {row.eager.heard:.1f} others, {row.eager.delay:.1f} rounds late, "
        f"for {row.eager.messages} messages a round"
    )

# %% [markdown]
# ## Playing on it
#
# Whatever takes an agent takes its name.

# %%
tasks = {"north": "cold", "centre": "warm", "west": "cold", "south": "warm", "island": "warm"}
tasks["harbour"] = "warm"  # it will join
policy = cb.EagerKernelUCB(
    cb.kernels.Linear(), similarity=cb.similarity.Clusters(tasks), ttl=2, eta=0.3
)
problem = cb.problems.clustered_linear(
    network, clusters=[tasks[name] == "warm" for name in network.names], dim=4, noise=0.3
)
run = cb.play(problem, policy, rounds=60, seed=0)
for name in network.names:
    print(f"{name}: regret {run.regret_of(name).sum():.1f}")

# %% [markdown]
# ## Links that fail
#
# The island's link is down for ten rounds, and one message in ten is lost. Agents decide on; what was late is learnt late.

# %%
links = cb.Links(loss=0.1, down={("south", "island"): (10, 20)})
failing = cb.play(problem, policy, rounds=60, seed=0, links=links)
print(f"{run.regret.sum():.1f} without and {failing.regret.sum():.1f} with failures")
print(f"{failing.lost.sum()} messages were lost")

# %% [markdown]
# ## One joins, one leaves
#
# A network never changes; others grow out of it, and agents move over with all that they have learnt.

# %%
agent = policy.agent("south", network)
agent.reward(agent.decide([[1.0, 0.0, 0.0, 0.0], [0.0, 1.0, 0.0, 0.0]]).id, 1.0)
larger = network.with_agents("harbour", [("harbour", "south")])
moved = agent.moved_to(larger)
print([larger.names[v] for v in moved.recipients], moved.known)

# %% [markdown]
# More: [networks](../networks.md), [networks that change](../changing-networks.md), [which γ](../planner.md).
