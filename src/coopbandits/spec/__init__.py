"""A policy as plain values: what `Policy.spec()` returns and `Policy.from_spec()` takes, no I/O."""

from coopbandits.spec.reading import Misplaced, policy_of
from coopbandits.spec.toml_text import to_toml
from coopbandits.spec.writing import VERSION, spec_of

__all__ = ["VERSION", "Misplaced", "policy_of", "spec_of", "to_toml"]
