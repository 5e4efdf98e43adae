"""One agent on its own: it decides at once, and learns as rewards and messages come. No I/O."""

from coopbandits.agent.agent import Agent, Decision
from coopbandits.agent.prediction import Prediction

__all__ = ["Agent", "Decision", "Prediction"]
