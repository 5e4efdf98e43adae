"""What may agents learn of an offer, and which of its rows do they take?"""

import numpy as np

from coopbandits.act import best_rows, first_best
from coopbandits.arrays import Array, BoolArray, IntArray
from coopbandits.gp.compositions import Hadamard, JointKernel, refusal
from coopbandits.gp.network_kernel import ONE_AGENT
from coopbandits.kernels import Kernel
from coopbandits.problems.problem import Round


def check_contexts(kernel: Kernel, ridge: float, offer: Round) -> None:
    """Refuse an offer whose contexts leave a posterior no digits."""
    nobody = np.zeros(len(offer.agents), dtype=np.int64)
    if not JointKernel(kernel, ONE_AGENT, Hadamard()).admits(ridge, nobody, offer.contexts):
        raise refusal(offer.contexts, ridge)


def take(
    offer: Round,
    scores: Array,
    knows: BoolArray,
    rngs: list[np.random.Generator],
    agents: IntArray | slice = slice(None),
) -> IntArray:
    """Return the row that each of A agents takes: its best, or a random one: (A,).

    Args:
        offer: The decision sets of all agents.
        scores: Of the rows of these A agents, agent after agent.
        knows: (A,) whether each knows anything; if not, its choice is random.
        rngs: The random numbers of each.
        agents: (A,) who they are; all, if not given.
    """
    starts, sizes = offer.starts[agents], offer.sizes[agents]
    rows = best_rows(scores, starts, sizes)
    for place in np.flatnonzero(~knows):
        rows[place] = starts[place] + rngs[place].integers(sizes[place])
    return rows


def pick(scores: Array, knows: BoolArray, rngs: list[np.random.Generator]) -> IntArray:
    """Return each agent's best action, a random one if it knows nothing: (A, K) -> (A,).

    −inf marks an action that is not offered.
    """
    picked = first_best(scores)
    for place in np.flatnonzero(~knows):
        free = np.flatnonzero(scores[place] > -np.inf)
        picked[place] = free[rngs[place].integers(len(free))]
    return picked
