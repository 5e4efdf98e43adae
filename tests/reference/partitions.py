"""All partitions of a few agents, and how likely each is under a Chinese restaurant process."""

from itertools import product
from math import lgamma

import numpy as np


def partitions(n):
    """All partitions of n agents, as labels numbered by first agents."""
    found = []
    for labels in product(range(n), repeat=n):
        first = list(dict.fromkeys(labels))
        if first == sorted(first) and first == list(range(len(first))):
            found.append(labels)
    return found


def log_crp(labels, alpha):
    """Log p(labels | α) = K log α + log Γ(α)/Γ(α + N) + Σ log Γ(n_k)."""
    sizes = np.bincount(labels)
    return (
        len(sizes) * np.log(alpha)
        + lgamma(alpha)
        - lgamma(alpha + len(labels))
        + sum(lgamma(k) for k in sizes)
    )
