"""Algorithms that are no row of four answers, each from its own paper; docs/baselines.md."""

from coopbandits.baselines.club import CLUB
from coopbandits.baselines.consensus_ucb import ConsensusUCB
from coopbandits.baselines.dis_kernel_ucb import DisKernelUCB
from coopbandits.baselines.discounted_lin_ucb import DiscountedLinUCB
from coopbandits.baselines.dyn_ucb import DynUCB
from coopbandits.baselines.ebm_ts import EbmTS
from coopbandits.baselines.ebm_ucb import EbmUCB
from coopbandits.baselines.h_lin_ucb import HLinUCB
from coopbandits.baselines.sclub import SCLUB
from coopbandits.baselines.sliding_window_lin_ucb import SlidingWindowLinUCB
from coopbandits.baselines.sup_kernel_ucb import SupKernelUCB

__all__ = [
    "CLUB",
    "SCLUB",
    "ConsensusUCB",
    "DisKernelUCB",
    "DiscountedLinUCB",
    "DynUCB",
    "EbmTS",
    "EbmUCB",
    "HLinUCB",
    "SlidingWindowLinUCB",
    "SupKernelUCB",
]
