"""SupKernelUCB (Valko et al. 2013), line by line: one agent, explicit inverses, lists of rounds.

Where the paper leaves open which unsure action is taken, the widest; ties to the lowest index; an
agent that knows nothing takes any that it may.
"""

import math

import numpy as np

from reference import formulas
from reference.algorithms import lowest_best


def base_kernel_ucb(k, learnt, D, ridge, w):
    """BaseKernelUCB: the upper bounds and widths of all actions, from one index set."""
    if not learnt:
        widths = [w * math.sqrt(k(x, x)) for x in D]
        return widths, widths
    X, y = np.array([x for x, _ in learnt]), np.array([y for _, y in learnt])
    inverse = np.linalg.inv(formulas.gram(k, X, X) + ridge * np.eye(len(y)))
    bounds, widths = [], []
    for x in D:
        kappa = formulas.gram(k, X, [x])[:, 0]
        widths.append(w * math.sqrt(max(k(x, x) - kappa @ inverse @ kappa, 0.0)))
        bounds.append(kappa @ inverse @ y + widths[-1])
    return bounds, widths


def sup_kernel_ucb(world, v, k, *, ridge, width, rounds, seed):
    """Return the actions of agent v, its index sets, and the actions left at each level."""
    rng = np.random.default_rng(np.random.SeedSequence([seed, v]))
    S = max(1, math.ceil(math.log(rounds)))
    index_sets = {s: [] for s in range(1, S + 1)}
    data, actions, paths = {}, [], []
    for t in range(1, rounds + 1):
        D, rewards = world(t, v)
        w = width(len(D))
        knows_nothing = not data
        left, s, path = list(range(len(D))), 1, []
        while True:
            path.append(left)
            learnt = [data[tau] for tau in index_sets[s]]
            bounds, widths = base_kernel_ucb(k, learnt, [D[a] for a in left], ridge, w)
            if all(width <= 1 / math.sqrt(rounds) + 1e-9 for width in widths):
                pick = rng.integers(len(left)) if knows_nothing else lowest_best(bounds)
                a = left[pick]
                break
            if all(width <= 2**-s + 1e-9 for width in widths):
                best = max(bounds)
                tie = 1e-9 * max(1.0, abs(best))
                left = [
                    a
                    for a, bound in zip(left, bounds, strict=True)
                    if bound >= best - 2 ** (1 - s) - tie
                ]
                s += 1
                continue
            unsure = [i for i, width in enumerate(widths) if width > 2**-s + 1e-9]
            widest = [widths[i] for i in unsure]
            pick = rng.integers(len(unsure)) if knows_nothing else lowest_best(widest)
            a = left[unsure[pick]]
            index_sets[s].append(t)
            data[t] = D[a], rewards[a]
            break
        actions.append(a)
        paths.append(path)
    return actions, index_sets, paths
