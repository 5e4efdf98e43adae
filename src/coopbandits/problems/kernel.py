"""The paper's setup 2 (§5): F drawn in the RKHS of K = K_z ⊙ K_x, with a known norm."""

from coopbandits.arrays import Seed, as_count, as_not_negative, as_seed
from coopbandits.gp.compositions import Composition, composition
from coopbandits.kernels import RBF, Kernel, as_kernel
from coopbandits.network import Network, as_network
from coopbandits.problems.noise import Noise, as_noise
from coopbandits.problems.problem import (
    FreshContexts,
    Simulated,
    check_sizes,
    on_sphere,
    structure_rng,
)
from coopbandits.problems.rkhs import Function
from coopbandits.similarity import Given, Known, joint_kernel


def kernel(
    network: Network,
    *,
    kernel: Kernel | None = None,
    similarity: Given | None = None,
    dim: int = 10,
    actions: int = 8,
    noise: float | Noise = 0.1,
    norm: float = 1.0,
    support: int = 100,
    compose: str | Composition = "hadamard",
    seed: Seed = 0,
) -> Simulated:
    r"""f_v(x) = F(x, z_v), F = Σ a_i K(·, x̃_i), scaled to norm B = √(aᵀKa).

    Args:
        network: The agents.
        kernel: K_x; RBF(1.0) if not given.
        similarity: K_z; if not given, an RBF(1.0) kernel on network contexts z_v drawn uniformly
            on the unit sphere of d dimensions.
        dim: d.
        actions: How many contexts, uniform on the unit sphere, are offered to each agent a round.
        noise: A number for Gaussian noise, or a law.
        norm: B.
        support: How many augmented contexts x̃_i F is made of.
        compose: How K_z and K_x make K.
        seed: Of F and the z_v. (Contexts and noise come from the seed of `play`.)

    Example:
        >>> problem = cb.problems.kernel(cb.Network.path(3), kernel=cb.kernels.RBF(0.5), norm=2.0)
        >>> problem.kernel, problem.norm
        (RBF(lengthscale=0.5), 2.0)
    """
    as_network(network)
    rng, d = structure_rng(as_seed(seed)), as_count(dim, "dim")
    offered, count = as_count(actions, "actions"), as_count(support, "support")
    check_sizes(agents=len(network), actions=offered, dim=d, support=count)
    K_x = RBF() if kernel is None else kernel
    if similarity is None:
        similarity = Known(contexts=on_sphere(rng, len(network), d), kernel=RBF())
    joint = joint_kernel(as_kernel(K_x), similarity, network, composition(compose))
    function = Function.draw(
        joint,
        rng.integers(len(network), size=count),
        on_sphere(rng, count, d),
        as_not_negative(norm, "norm"),
        rng,
    )
    return Simulated(
        name="kernel",
        network=network,
        draw=FreshContexts(len(network), offered, d),
        expected=function,
        noise=as_noise(noise),
        similarity=similarity,
        kernel=K_x,
        norm=function.norm,
    )
