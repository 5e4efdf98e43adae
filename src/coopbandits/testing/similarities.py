"""What must every similarity K_z be?"""

from typing import Any

import numpy as np

from coopbandits.arrays import Array, as_positive, as_seed, short
from coopbandits.gp.network_kernel import NetworkKernel
from coopbandits.kernels import Kernel, Linear, as_kernel
from coopbandits.network import Network, as_network
from coopbandits.similarity import Given, Learnt
from coopbandits.similarity.similarity import REFRESH
from coopbandits.testing.assertions import (
    numbers,
    require,
    require_positive_semidefinite,
    require_same,
)
from coopbandits.testing.learners import check_learner


def check_similarity(
    similarity: Any,
    *,
    network: Network | None = None,
    kernel: Kernel | None = None,
    any_order: bool = True,
    rtol: float = 1e-9,
    seed: int = 0,
) -> None:
    """Check that a value is a similarity, given or learnt.

    Given: `matrix(network)` must be finite float64 of shape (V, V), symmetric, positive
    semidefinite, above 0 on its diagonal and the same when asked again; `blocks(network)`, where it
    has them, must say the same. Learnt: its schedule must be one, and its learner pass
    `check_learner`.

    Args:
        similarity: K_z.
        network: The agents; a grid of 3 × 3 if not given. A learnt one must have at least 7.
        kernel: K_x, for which a learner is made; linear if not given.
        any_order: As in `check_learner`.
        rtol: How far rounding may go, relative to the largest number.
        seed: Of what is drawn.

    Raises:
        AssertionError: It is none; the message says where.

    Example:
        >>> check_similarity(cb.similarity.Laplacian(rho=1.0), network=cb.Network.path(4))
    """
    what, tolerance = short(similarity), as_positive(rtol, "rtol")
    is_learnt = isinstance(similarity, Learnt)
    require(
        (is_learnt or isinstance(similarity, Given)) and not isinstance(similarity, type),
        f"{what} is no similarity; expected a value with matrix(network), or with learner(kernel, "
        "network), refresh, growth and early",
    )
    faced = Network.grid(3, 3) if network is None else as_network(network)
    if is_learnt:
        _check_schedule(similarity, what)
        learner = similarity.learner(as_kernel(Linear() if kernel is None else kernel), faced)
        check_learner(learner, agents=len(faced), any_order=any_order, rtol=rtol, seed=seed)
        return
    K_z = _check_matrix(similarity, faced, what, tolerance)
    if hasattr(similarity, "blocks"):
        rng = np.random.default_rng(as_seed(seed))
        _check_blocks(similarity.blocks(faced), K_z, what, tolerance, rng)


def _check_matrix(similarity: Any, network: Network, what: str, rtol: float) -> Array:
    V = len(network)
    K_z = numbers(similarity.matrix(network), (V, V), f"the matrix of {what}")
    size = rtol * float(np.abs(K_z).max())
    require_same(K_z, K_z.T, f"the matrix of {what} is not symmetric", atol=size)
    require_positive_semidefinite((K_z + K_z.T) / 2, f"the matrix of {what}", rtol=rtol)
    require(
        (np.diagonal(K_z) > 0).all(),
        f"the matrix of {what} must be above 0 on its diagonal, got {np.diagonal(K_z).min():.6g}",
    )
    again = np.asarray(similarity.matrix(network))
    require(np.array_equal(K_z, again), f"{what} gives another matrix when it is asked again")
    return K_z


def _check_blocks(
    kernel: Any, K_z: Array, what: str, rtol: float, rng: np.random.Generator
) -> None:
    V = len(K_z)
    require(
        isinstance(kernel, NetworkKernel) and len(kernel) == V,
        f"the blocks of {what} are {short(kernel)}; expected a NetworkKernel of {V} agents",
    )
    rows, columns = rng.integers(V, size=2 * V), rng.integers(V, size=V)
    other = rng.permutation(rows)
    size = rtol * float(np.abs(K_z).max())
    for name, found, expected in (
        ("block", kernel.block(rows, columns), K_z[np.ix_(rows, columns)]),
        ("between", kernel.between(rows, other), K_z[rows, other]),
        ("own", kernel.own(rows), np.diagonal(K_z)[rows]),
    ):
        told = f"{name} of {what}"
        values = numbers(found, expected.shape, told)
        require_same(values, expected, f"{told} is not that of its matrix", rtol=rtol, atol=size)
    if kernel.parts is not None:
        alike = np.asarray(kernel.parts)[:, None] == np.asarray(kernel.parts)
        require(
            np.array_equal(alike, K_z != 0),
            f"parts of {what} must agree exactly where its matrix is not 0",
        )


def _check_schedule(similarity: Any, what: str) -> None:
    require(
        similarity.refresh in REFRESH,
        f"refresh of {what} is {short(similarity.refresh)}; expected one of {', '.join(REFRESH)}",
    )
    require(
        similarity.growth > 1, f"growth of {what} must be above 1, got {short(similarity.growth)}"
    )
    early = similarity.early
    require(
        isinstance(early, tuple) and len(early) == 2 and min(early) >= 0,
        f"early of {what} must be two numbers >= 0, got {short(early)}",
    )
