r"""An own constant of each agent's rewards: y = c_u + f_u(x) + ε, c_u ~ N(0, τ²), integrated out.

As a kernel it is K + τ²·1{same agent}: no feature, since K_z would share that. From sufficient
statistics of (φ, 1), that is S, b, q, n with s = Σφ and t = Σy, and ω = τ²/(λ + nτ²), it follows in
closed form. Everyone's sums speak about f alone once they are centred,

    S − ω·ssᵀ        b − ω·t·s        q − ω·t²        with log det(I + K/λ) + Σ_u log(1 + n_uτ²/λ)

and the asking agent's own constant is put back: asked at φ − ω_v s_v, the mean is ω_v t_v more and
the variance λω_v more. A constant added to all rewards of an agent changes what it believes of
differences by O(τ⁻²).

K(x̃, x̃) is at most 1 + τ² then, where K_x and K_z are at most 1; and in the norm of F, which widths
take, there is the constant: ‖F‖² = ‖f‖² + c²/τ² (docs/widths.md).
"""

from dataclasses import dataclass

import numpy as np

from coopbandits.arrays import Array, IntArray, as_positive
from coopbandits.errors import ParameterError
from coopbandits.gp.statistics import Statistics

# Above this τ²/λ a constant takes the digits of all else.
LARGEST_INTERCEPT = 1e6


def as_intercept(value: object, ridge: float) -> float | None:
    """Check a policy's `intercept=`: τ, or None."""
    if value is None:
        return None
    tau = as_positive(value, "intercept")
    if tau**2 > LARGEST_INTERCEPT * ridge:
        raise ParameterError(
            f"intercept={tau:g} is too large beside the ridge {ridge:g}: τ²/λ must be at most "
            f"{LARGEST_INTERCEPT:g}; rewards of that size are for scale=, which divides them"
        )
    return tau


@dataclass(frozen=True, eq=False)
class OwnConstant:
    """What B agents know of their own constants: ω (B,), s (B, m), t (B,), and λ."""

    omega: Array
    s: Array
    t: Array
    ridge: float

    @property
    def mean(self) -> Array:
        """ωt, which is put back to means: (B,)."""
        return self.omega * self.t

    @property
    def variance(self) -> Array:
        """λω, which is put back to variances: (B,)."""
        return self.ridge * self.omega

    @property
    def shift(self) -> Array:
        """ωs, which is taken from features: (B, m)."""
        return self.omega[:, None] * self.s

    def take(self, agents: IntArray) -> "OwnConstant":
        """Take some agents."""
        return OwnConstant(self.omega[agents], self.s[agents], self.t[agents], self.ridge)

    def joint(self, mean: Array, covariance: Array) -> tuple[Array, Array]:
        """Return mean and covariance of (θ, c) from those of θ: (B, m), (B, m, m).

        c = ω(t − sᵀθ) + N(0, λω).
        """
        B, m = mean.shape
        shift = self.shift
        towards = -(covariance @ shift[..., None])[..., 0]
        both, spread = np.empty((B, m + 1)), np.empty((B, m + 1, m + 1))
        both[:, :m], both[:, m] = mean, self.mean - np.einsum("bm,bm->b", shift, mean)
        spread[:, :m, :m] = covariance
        spread[:, :m, m] = spread[:, m, :m] = towards
        spread[:, m, m] = self.variance - np.einsum("bm,bm->b", shift, towards)
        return both, spread


@dataclass(frozen=True)
class Intercept:
    """The prior variance τ² of agents' own constants, beside the ridge λ."""

    variance: float
    ridge: float

    @staticmethod
    def features(phi: Array) -> Array:
        """Return (φ, 1), whose sums hold s and t: (…, m) -> (…, m + 1)."""
        return np.concatenate([phi, np.ones((*phi.shape[:-1], 1))], axis=-1)

    def centred(self, sums: Array, m: int) -> Array:
        """Integrate constants out of sums of (φ, 1), rows as in `Statistics.rows`.

        (…, 2 + (m + 1) + (m + 1)²) -> (…, 2 + m + m² + 1); the last number of each row is
        log(1 + nτ²/λ), which the log-determinant gains.
        """
        whole = Statistics.of(sums, m + 1)
        n, s, t = whole.S[..., m, m], whole.S[..., :m, m], whole.b[..., m]
        omega = self.variance / (self.ridge + n * self.variance)
        rows = np.empty((*sums.shape[:-1], Statistics.width(m) + 1))
        rows[..., 0], rows[..., 1] = whole.n, whole.q - omega * t**2
        rows[..., 2 : 2 + m] = whole.b[..., :m] - (omega * t)[..., None] * s
        S = whole.S[..., :m, :m] - omega[..., None, None] * (s[..., :, None] * s[..., None, :])
        rows[..., 2 + m : -1] = S.reshape(*sums.shape[:-1], m * m)
        rows[..., -1] = np.log1p(n * self.variance / self.ridge)
        return rows

    def own(self, sums: Array, m: int) -> OwnConstant:
        """Return what B agents know of their constants, from their own sums of (φ, 1): (B, ·)."""
        whole = Statistics.of(sums, m + 1)
        n = whole.S[..., m, m]
        omega = self.variance / (self.ridge + n * self.variance)
        return OwnConstant(omega, whole.S[..., :m, m], whole.b[..., m], self.ridge)


def summarised(phi: Array, y: Array, intercept: Intercept | None) -> Array:
    """Lay out what each observation adds to sums: (k, m), (k,) -> (k, ·)."""
    return Statistics.rows(phi if intercept is None else intercept.features(phi), y)


def as_statistics(sums: Array, m: int, intercept: Intercept | None) -> Statistics:
    """Read sums of what `summarised` laid out, with constants integrated out: (…, ·)."""
    if intercept is None:
        return Statistics.of(sums, m)
    return Statistics.of(intercept.centred(sums, m), m, centred=True)
