r"""How fast does the largest information gain grow with the number of observations?

`gain_bound` is a bound with its constants. Split the kernel into a part of finite rank D and a rest
with K_rest(x, x) ≤ δ. As det(I + A + B) ≤ det(I + A)·det(I + B), and a part of rank D and trace at
most nκ has the largest determinant where its eigenvalues are equal,

$$\Upsilon_n \le \tfrac12 D \ln\bigl(1 + \tfrac{n\kappa}{\lambda D}\bigr)
  + \tfrac12 \tfrac{n\delta}{\lambda}$$

(Vakili et al. 2021, Theorem 3). The linear kernel has D = d and δ = 0. `gain_rate` is what follows
for the usual kernels when D is chosen best: an order of growth, its constant dropped.
"""

import numpy as np

from coopbandits.arrays import as_choice, as_count, as_not_negative, as_positive, short
from coopbandits.errors import ParameterError
from coopbandits.kernels import RBF, Kernel, Linear, Matern


def gain_bound(
    count: int, *, rank: int, tail: float = 0.0, ridge: float = 1.0, largest: float = 1.0
) -> float:
    """Bound the information gain of any n observations of a kernel of finite rank plus a rest.

    What `gain=` of `width.InformationGain` and `width.Srinivas` asks for, as a function of n.

    Args:
        count: n.
        rank: D; for the linear kernel, d.
        tail: δ, the most that the rest has at one context; 0 where the kernel has rank D.
        ridge: λ.
        largest: κ, the most that K(x̃, x̃) may be.

    Example:
        >>> X = np.eye(3)[[0, 1, 2, 0, 1, 2]]
        >>> bound = cb.theory.gain_bound(6, rank=3)
        >>> bool(cb.theory.information_gain(X @ X.T) <= bound + 1e-12)
        True
    """
    n, lam = as_count(count, "count", least=0), as_positive(ridge, "ridge")
    D, kappa = min(as_count(rank, "rank"), n), as_not_negative(largest, "largest")
    rest = as_not_negative(tail, "tail")
    if n == 0:
        return 0.0
    return float(0.5 * D * np.log1p(n * kappa / (lam * D)) + 0.5 * n * rest / lam)


def gain_rate(kernel: Kernel, count: int, *, dim: int, source: str = "vakili") -> float:
    r"""Return the order in which the largest gain Υ_n grows, as a number without its constant.

    | kernel | "vakili" (Vakili et al. 2021) | "srinivas" (Definition 1 of the paper) |
    |---|---|---|
    | Linear | d ln n | the same |
    | RBF | (ln n)^(d+1) | the same |
    | Matérn ν | n^(d/(2ν+d))·(ln n)^(2ν/(2ν+d)) | n^(d(d+1)/(2ν+d(d+1)))·ln n |

    Only ratios at different n mean anything. Contexts lie in a compact set of R^d.

    Args:
        kernel: K_x: `Linear`, `RBF` or `Matern`.
        count: n.
        dim: d.
        source: "vakili" or "srinivas".

    Example:
        >>> linear = cb.kernels.Linear()
        >>> bool(np.isclose(cb.theory.gain_rate(linear, 100, dim=3), 3 * np.log(100)))
        True
    """
    n, d = as_count(count, "count"), as_count(dim, "dim")
    source = as_choice(source, "source", ("vakili", "srinivas"))
    log_n = float(np.log(n))
    if isinstance(kernel, Linear):
        return d * log_n
    if isinstance(kernel, RBF):
        with np.errstate(over="ignore"):
            return _finite(float(np.float64(log_n) ** (d + 1)), d)
    if isinstance(kernel, Matern):
        nu = float(kernel.nu)
        if source == "vakili":
            return float(n ** (d / (2 * nu + d)) * log_n ** (2 * nu / (2 * nu + d)))
        return float(n ** (d * (d + 1) / (2 * nu + d * (d + 1))) * log_n)
    raise ParameterError(
        f"no rate is known for {short(kernel)}; expected Linear, RBF or Matern (gain_bound takes "
        "any kernel whose eigenvalues are known)"
    )


def _finite(rate: float, dim: int) -> float:
    if not np.isfinite(rate):
        raise ParameterError(f"the rate in dim={dim} is too large for a number; take a smaller dim")
    return rate
