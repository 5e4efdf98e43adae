"""The named algorithms: each file is one row of the table in docs/architecture.md."""

from coopbandits.policies.centralised import Centralised
from coopbandits.policies.coop_kernel_ts import CoopKernelTS
from coopbandits.policies.coop_kernel_ucb import CoopKernelUCB
from coopbandits.policies.dist_kernel_ucb import DistKernelUCB
from coopbandits.policies.eager_kernel_ts import EagerKernelTS
from coopbandits.policies.eager_kernel_ucb import EagerKernelUCB
from coopbandits.policies.goblin import GoBLin
from coopbandits.policies.gp_ucb import GPUCB
from coopbandits.policies.igp_ucb import IGPUCB
from coopbandits.policies.kernel_ts import KernelTS
from coopbandits.policies.kernel_ucb import KernelUCB
from coopbandits.policies.laplacian_kernel_ts import LaplacianKernelTS
from coopbandits.policies.laplacian_kernel_ucb import LaplacianKernelUCB
from coopbandits.policies.lin_ts import LinTS
from coopbandits.policies.lin_ucb import LinUCB
from coopbandits.policies.naive_cooperation import NaiveCooperation
from coopbandits.policies.oful import OFUL
from coopbandits.policies.uniform import Uniform

__all__ = [
    "GPUCB",
    "IGPUCB",
    "OFUL",
    "Centralised",
    "CoopKernelTS",
    "CoopKernelUCB",
    "DistKernelUCB",
    "EagerKernelTS",
    "EagerKernelUCB",
    "GoBLin",
    "KernelTS",
    "KernelUCB",
    "LaplacianKernelTS",
    "LaplacianKernelUCB",
    "LinTS",
    "LinUCB",
    "NaiveCooperation",
    "Uniform",
]
