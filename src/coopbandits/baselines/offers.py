"""What may agents learn of an offer, and which of its rows do they take?"""

import numpy as np

from coopbandits.act import first_best
from coopbandits.arrays import Array, BoolArray, IntArray
from coopbandits.gp.admission import admits, refusal
from coopbandits.gp.compositions import Hadamard, JointKernel
from coopbandits.kernels import Kernel
from coopbandits.problems.problem import Round


def check_contexts(kernel: Kernel, ridge: float, offer: Round) -> None:
    """Refuse an offer whose contexts leave a posterior no digits."""
    nobody = np.zeros(len(offer.agents), dtype=np.int64)
    if not admits(JointKernel(kernel, np.eye(1), Hadamard()), ridge, nobody, offer.contexts):
        raise refusal(offer.contexts, ridge)


def best_rows(offer: Round, scores: Array) -> IntArray:
    """Return the row that each agent rates best, the lowest of those that tie: (M,) -> (V,)."""
    padded = np.full((len(offer.sizes), int(offer.sizes.max())), -np.inf)
    padded[offer.agents, np.arange(len(scores)) - offer.starts[offer.agents]] = scores
    return offer.starts + first_best(padded)


def take(
    offer: Round, scores: Array, knows: BoolArray, rngs: list[np.random.Generator]
) -> IntArray:
    """Return each agent's best row; a random one for an agent that knows nothing: (V,)."""
    rows = best_rows(offer, scores)
    for v in np.flatnonzero(~knows):
        rows[v] = offer.starts[v] + rngs[v].integers(offer.sizes[v])
    return rows
