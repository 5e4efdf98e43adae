"""What travels? Observations, messages and digests, and the links that carry them. No I/O."""

from coopbandits.protocol.digests import Digest
from coopbandits.protocol.links import Links
from coopbandits.protocol.messages import Message, Observation

__all__ = ["Digest", "Links", "Message", "Observation"]
