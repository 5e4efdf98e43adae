"""The fully cooperative setting (§4): one reward function, one fixed decision set."""

from dataclasses import dataclass

import numpy as np

from coopbandits.arrays import (
    Array,
    IntArray,
    Seed,
    as_contexts,
    as_count,
    as_not_negative,
    as_seed,
)
from coopbandits.gp.compositions import Hadamard
from coopbandits.kernels import RBF, Kernel, as_kernel
from coopbandits.network import Network, as_network
from coopbandits.problems.noise import Noise, as_noise
from coopbandits.problems.problem import Simulated, check_sizes, on_sphere, structure_rng
from coopbandits.problems.rkhs import Function
from coopbandits.similarity import Same, joint_kernel


def fully_cooperative(
    network: Network,
    *,
    kernel: Kernel | None = None,
    dim: int = 10,
    actions: int = 8,
    contexts: object = None,
    noise: float | Noise = 0.1,
    norm: float = 1.0,
    support: int = 100,
    seed: Seed = 0,
) -> Simulated:
    r"""f_v = f for all agents, drawn in the RKHS of K_x with norm B; D_{v,t} = D in all rounds.

    Args:
        network: The agents.
        kernel: K_x; RBF(1.0) if not given.
        dim: d.
        actions: How many actions D has, drawn uniformly on the unit sphere.
        contexts: D itself, (K, d), instead of `dim` and `actions`.
        noise: A number for Gaussian noise, or a law.
        norm: B.
        support: How many contexts f is made of.
        seed: Of f and D.

    Example:
        >>> offer = cb.problems.fully_cooperative(cb.Network.path(2), actions=3).round(1, seed=0)
        >>> bool((offer.expected[:3] == offer.expected[3:]).all())  # one function for both
        True
    """
    as_network(network)
    rng, count = structure_rng(as_seed(seed)), as_count(support, "support")
    given = None if contexts is None else as_contexts(contexts, "the fixed decision set")
    K, d = (as_count(actions, "actions"), as_count(dim, "dim")) if given is None else given.shape
    check_sizes(agents=len(network), actions=K, dim=d, support=count)
    offered = on_sphere(rng, K, d) if given is None else given
    K_x = RBF() if kernel is None else kernel
    joint = joint_kernel(as_kernel(K_x), Same(), network, Hadamard())
    function = Function.draw(
        joint,
        np.zeros(count, dtype=np.int64),
        on_sphere(rng, count, offered.shape[1]),
        as_not_negative(norm, "norm"),
        rng,
    )
    return Simulated(
        name="fully cooperative",
        network=network,
        draw=OneSet(len(network), offered),
        expected=function,
        noise=as_noise(noise),
        similarity=Same(),
        kernel=K_x,
        norm=function.norm,
    )


@dataclass(frozen=True, eq=False)
class OneSet:
    """Offer all agents the same actions in every round."""

    agents: int
    offered: Array

    def __call__(self, t: int, rng: np.random.Generator) -> tuple[IntArray, Array]:
        """Return the decision sets of a round: (N,), (N, d)."""
        agents = np.repeat(np.arange(self.agents), len(self.offered))
        return agents, np.tile(self.offered, (self.agents, 1))
