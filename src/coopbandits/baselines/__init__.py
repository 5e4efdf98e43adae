"""Baselines that are no row of four answers: each file is one algorithm of another paper."""

from coopbandits.baselines.dis_kernel_ucb import DisKernelUCB
from coopbandits.baselines.h_lin_ucb import HLinUCB
from coopbandits.baselines.sup_kernel_ucb import SupKernelUCB

__all__ = [
    "DisKernelUCB",
    "HLinUCB",
    "SupKernelUCB",
]
