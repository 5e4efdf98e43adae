"""A row of answers, and its plan for one network."""

from coopbandits.policy.plan import Plan, plan
from coopbandits.policy.policy import Options, Policy, refuse_kernel

__all__ = ["Options", "Plan", "Policy", "plan", "refuse_kernel"]
