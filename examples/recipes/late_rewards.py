# %% [markdown]
# # Late rewards
#
# An offer is bought after hours, or never. An agent decides at once, and takes the reward whenever it comes.

# %%
import numpy as np

import coopbandits as cb

network = cb.Network.from_edges([("north", "centre"), ("centre", "south")])
policy = cb.EagerKernelUCB(
    cb.kernels.Linear(), similarity=cb.similarity.Same(), features=cb.features.Exact(), eta=0.3
)
agents = {name: policy.agent(name, network, seed=7) for name in network.names}

# %% [markdown]
# ## Decide now, reward later
#
# `decide` opens a decision with an id; `reward` closes it, in whatever order, and returns the messages for the neighbours.
# One decision in five never gets a reward here, and messages are carried by a list.

# %%
rng = np.random.default_rng(0)
taste = np.array([1.0, -0.5, 0.3])
waiting: list[tuple[str, cb.Decision]] = []
for _ in range(60):
    for name, agent in agents.items():
        waiting.append((name, agent.decide(rng.normal(size=(4, 3)))))
    rng.shuffle(waiting)
    while len(waiting) > 30:  # the others wait on
        name, decision = waiting.pop()
        if rng.uniform() < 0.2:
            continue  # never
        reward = float(decision.context @ taste + rng.normal(scale=0.3))
        for message in agents[name].reward(decision, reward):
            for neighbour in agents[name].recipients:
                agents[network.names[neighbour]].receive(message)
for name, agent in agents.items():
    agent.decide(np.eye(3))
    print(f"{name}: {agent.known} observations, {len(agent.awaiting)} decisions are open")

# %% [markdown]
# ## What never comes
#
# A decision expires once so many more were taken, 10,000 unless `expire=` says otherwise. Where no reward means 0, such as no
# click within an hour, say so yourself: `agent.reward(decision, 0.0)`.

# %%
agent = policy.agent("north", network, expire=3)
first = agent.decide(np.eye(3))
for _ in range(4):
    agent.decide(np.eye(3))
try:
    agent.reward(first, 1.0)
except cb.errors.LocalProtocolError as error:
    print(error)

# %% [markdown]
# ## Across a restart
#
# Store an agent after every `decide` and `reward`, before acting on the answer. It goes on to the bit, open decisions and
# random numbers included.

# %%
agent = agents["centre"]
decision = agent.decide(np.eye(3))
stored = agent.to_bytes()
again = cb.Agent.from_bytes(stored, policy=policy, network=network)
agent.reward(decision.id, 0.5)
again.reward(decision.id, 0.5)
print(len(stored), "bytes; the same from then on:", agent.to_bytes() == again.to_bytes())

# %% [markdown]
# More: [agents that run for real](../deploy.md). A [service](a-service.md) keeps decisions, rewards and messages durable by
# itself.
