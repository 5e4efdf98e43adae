"""Ridge regression of V agents at once, asked at what each is offered."""

import numpy as np

from coopbandits.arrays import Array
from coopbandits.problems.problem import Round


def regressed(S: Array, b: Array, ridge: float, offer: Round) -> tuple[Array, Array]:
    """Return xᵀA⁻¹b and A⁻¹x for each row x of an offer, A = λI + S of its agent: (M,), (M, d).

    Args:
        S: (V, d, d) the Σxxᵀ of each agent, weighed or not.
        b: (V, d) its Σxy.
        ridge: λ.
        offer: M rows.
    """
    V, d = b.shape
    column = np.arange(len(offer.agents)) - offer.starts[offer.agents]
    padded = np.zeros((V, d, 1 + int(offer.sizes.max())))
    padded[:, :, 0] = b
    padded[offer.agents, :, 1 + column] = offer.contexts
    solved: Array = np.asarray(np.linalg.solve(S + ridge * np.eye(d), padded), dtype=np.float64)
    mean = np.einsum("md,md->m", offer.contexts, solved[offer.agents, :, 0])
    return mean, solved[offer.agents, :, 1 + column]
