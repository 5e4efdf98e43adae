"""One agent on its own: it decides at once, and learns as rewards and messages come. No I/O."""

from coopbandits.agent.agent import Agent
from coopbandits.agent.decision import Decision, Prediction

__all__ = ["Agent", "Decision", "Prediction"]
