"""A row of answers, and its plan for one network."""

from coopbandits.policy.plan import Plan, plan
from coopbandits.policy.policy import Options, Policy, known_options, refuse_kernel

__all__ = ["Options", "Plan", "Policy", "known_options", "plan", "refuse_kernel"]
