"""K_arm,network: how alike are agent v at arm a and agent v' at arm a'? (appendix)"""

from dataclasses import dataclass

import numpy as np

from coopbandits.arms import as_kernel_matrix
from coopbandits.arrays import Array, ByContent, as_count, as_floats, frozen, short
from coopbandits.errors import ShapeError, SimilarityError
from coopbandits.gp.compositions import ArmJointKernel, Composition, JointKernel
from coopbandits.kernels import Kernel
from coopbandits.network import Network
from coopbandits.similarity.similarity import Given, network_kernel


@dataclass(frozen=True, eq=False, init=False)
class ArmNetwork(ByContent):
    r"""Agents' similarity that may differ from arm to arm, where K_arm·K_z cannot say it.

    $$\tilde K((a, v, x), (a', v', x')) = K_{arm,network}((v, a), (v', a'))\,K_x(x, x')$$

    Contexts are (a, x), a one of 0 … A−1; the policy's kernel is K_x and sees x alone. For engines
    `exact` and `messages`.

    Args:
        matrix: (V, A, V, A), or (V·A, V·A) with `arms`: the pair (v, a) has row vA + a, so that
            K_arm·K_z is np.kron(K_z, K_arm).
        arms: A; needed where the matrix does not say it.
        column: Where in a context the arm is.

    Example:
        >>> K_z, K_arm = np.ones((3, 3)), np.eye(2)
        >>> alike = cb.similarity.ArmNetwork(np.kron(K_z, K_arm), arms=2)
        >>> alike.matrix(cb.Network.path(3)).shape
        (3, 3)
    """

    pairs: Array
    arms: int
    column: int

    def __init__(self, matrix: object, *, arms: int | None = None, column: int = 0) -> None:
        given = as_floats(matrix, "K_arm,network")
        if given.ndim == 4 and given.shape[:2] == given.shape[2:] and given.size:
            arms = given.shape[1] if arms is None else arms
            given = given.reshape(given.shape[0] * given.shape[1], -1)
        elif given.ndim != 2 or arms is None:
            raise ShapeError(
                f"K_arm,network has shape {given.shape}, arms={short(arms)}; expected "
                "(V, A, V, A), or (V·A, V·A) with arms=A"
            )
        pairs, count = as_kernel_matrix(given, "K_arm,network"), as_count(arms, "arms")
        if len(pairs) % count:
            raise ShapeError(
                f"K_arm,network has {len(pairs)} rows, no multiple of arms={count}; expected one "
                "for each arm of each agent"
            )
        object.__setattr__(self, "pairs", frozen(pairs))
        object.__setattr__(self, "arms", count)
        object.__setattr__(self, "column", as_count(column, "column", least=0))

    def matrix(self, network: Network) -> Array:
        """Return what is left between agents: the mean over arms that are the same, (V, V)."""
        if len(self.pairs) != len(network) * self.arms:
            raise SimilarityError(
                f"K_arm,network has {len(self.pairs)} rows, for {len(self.pairs) // self.arms} "
                f"agents of {self.arms} arms, but the network has {len(network)} agents"
            )
        V = len(network)
        by_arm = np.einsum("vawa->avw", self.pairs.reshape(V, self.arms, V, self.arms))
        return frozen(by_arm.mean(axis=0))


def joint_kernel(
    kernel: Kernel, similarity: Given, network: Network, composition: Composition
) -> JointKernel:
    """Make K of K_x and of a similarity that is given, perhaps a user's own.

    Args:
        kernel: K_x.
        similarity: K_z, or K_arm,network.
        network: The agents.
        composition: How they make one.

    Example:
        >>> from coopbandits.gp.compositions import Hadamard
        >>> alone, network = cb.similarity.Alone(), cb.Network.path(2)
        >>> K = cb.similarity.joint_kernel(cb.kernels.RBF(), alone, network, Hadamard())
        >>> agents, X = np.array([0, 1]), np.zeros((2, 3))
        >>> K(agents, X, agents, X).tolist()
        [[1.0, 0.0], [0.0, 1.0]]
    """
    K_z = network_kernel(similarity, network)
    if isinstance(similarity, ArmNetwork):
        return ArmJointKernel(
            kernel, K_z, composition, pairs=similarity.pairs, column=similarity.column
        )
    return JointKernel(kernel, K_z, composition)
