"""Algorithms that are no row of four answers, each from its own paper; docs/baselines.md."""

from coopbandits.baselines.club import CLUB
from coopbandits.baselines.consensus_ucb import ConsensusUCB

__all__ = ["CLUB", "ConsensusUCB"]
