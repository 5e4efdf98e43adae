"""Independent arms (appendix): every arm has its own function, as far as K_arm lets it."""

from dataclasses import dataclass

import numpy as np

from coopbandits.arms import Table, kernel as arm_kernel
from coopbandits.arrays import Array, IntArray, Seed, as_count, as_flag, as_not_negative, as_seed
from coopbandits.errors import ParameterError
from coopbandits.gp.compositions import Hadamard
from coopbandits.kernels import RBF, Kernel, as_kernel
from coopbandits.network import Network, as_network
from coopbandits.problems.noise import Noise, as_noise
from coopbandits.problems.problem import Simulated, check_sizes, on_sphere, structure_rng
from coopbandits.problems.rkhs import Function
from coopbandits.similarity import ArmNetwork, Given, Known, joint_kernel


def arms(
    network: Network,
    *,
    arms: int = 4,
    arm: Kernel | None = None,
    kernel: Kernel | None = None,
    similarity: Given | None = None,
    own_contexts: bool = False,
    dim: int = 10,
    noise: float | Noise = 0.1,
    norm: float = 1.0,
    support: int = 100,
    seed: Seed = 0,
) -> Simulated:
    r"""f_{v,a}(x) = F(a, v, x), F drawn in the RKHS of K_arm·K_z·K_x with norm B.

    Every agent is offered all A arms in each round, as contexts (a, x), a = 0 … A−1. The problem's
    `kernel` is K_arm·K_x (K_x where the similarity is an `ArmNetwork`), its `similarity` K_z.

    Args:
        network: The agents.
        arms: A.
        arm: K_arm, of the arm's number; arms are separate if it is not given.
        kernel: K_x; RBF(1.0) if not given.
        similarity: K_z, or K_arm,network as an `ArmNetwork` in place of `arm`; if not given, as in
            `problems.kernel`.
        own_contexts: Whether each arm comes with an x of its own; else an agent has one x a round,
            and arms differ by their functions alone.
        dim: How many numbers x has; it is uniform on the unit sphere.
        noise: A number for Gaussian noise, or a law.
        norm: B.
        support: How many augmented contexts F is made of.
        seed: Of F and the z_v. (Contexts and noise come from the seed of `play`.)

    Example:
        >>> offer = cb.problems.arms(cb.Network.path(2), arms=3, dim=4).round(1, seed=0)
        >>> offer.contexts[:, 0].tolist()
        [0.0, 1.0, 2.0, 0.0, 1.0, 2.0]
    """
    V, A, d = len(as_network(network)), as_count(arms, "arms"), as_count(dim, "dim")
    rng, count = structure_rng(as_seed(seed)), as_count(support, "support")
    check_sizes(agents=V, actions=A, dim=1 + d, support=count)
    as_flag(own_contexts, "own_contexts")
    K = RBF() if kernel is None else as_kernel(kernel)
    if similarity is None:
        similarity = Known(contexts=on_sphere(rng, V, d), kernel=RBF())
    if not isinstance(similarity, ArmNetwork):
        K = arm_kernel(arm=Table.separate(A) if arm is None else arm, context=K)
    elif arm is not None or (similarity.arms, similarity.column) != (A, 0):
        raise ParameterError(
            f"ArmNetwork is for {similarity.arms} arms in column {similarity.column}, and has "
            f"K_arm in it; expected arms={A}, column 0 and no arm="
        )
    joint = joint_kernel(K, similarity, network, Hadamard())
    # a K_arm of fewer arms must not wait for its first contexts to be found out
    joint.diagonal(np.zeros(A, dtype=np.int64), np.column_stack([np.arange(A), np.ones((A, d))]))
    function = Function.draw(
        joint,
        rng.integers(V, size=count),
        np.column_stack([rng.integers(A, size=count), on_sphere(rng, count, d)]),
        as_not_negative(norm, "norm"),
        rng,
    )
    return Simulated(
        name="arms",
        network=network,
        draw=AllArms(V, A, d, own_contexts),
        expected=function,
        noise=as_noise(noise),
        similarity=similarity,
        kernel=K,
        norm=function.norm,
    )


@dataclass(frozen=True)
class AllArms:
    """Offer every agent all arms in every round, with contexts on the unit sphere."""

    agents: int
    arms: int
    dim: int
    own_contexts: bool

    def __call__(self, t: int, rng: np.random.Generator) -> tuple[IntArray, Array]:
        """Draw the decision sets of a round: (N,), (N, 1 + d)."""
        agents = np.repeat(np.arange(self.agents), self.arms)
        if self.own_contexts:
            x = on_sphere(rng, len(agents), self.dim)
        else:
            x = on_sphere(rng, self.agents, self.dim)[agents]
        return agents, np.column_stack([np.tile(np.arange(self.arms), self.agents), x])
