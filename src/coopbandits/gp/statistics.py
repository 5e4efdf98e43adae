r"""Sufficient statistics of an agent's observations, and what follows from them.

With features φ (m of them) the reward function of an agent is f(x) = φ(x)ᵀθ, and its n
observations count only through

    S = Σ φφᵀ (m, m)      b = Σ φy (m,)      q = Σ y²      n

All that is done here is exact for θ ~ N(0, s²I) and noise N(0, σ²), with κ = σ²/s². An agent's
own part of θ, of variance c·σ², is integrated out by

    S̃ = S(I + cS)⁻¹      b̃ = (I + cS)⁻¹b      q̃ = q − c·bᵀb̃      log det(I + cS)

after which S̃, b̃, q̃ speak about the shared part alone. Leading axes are agents, or views and
agents. Where observations fade (`forget.py`), each sum is Σ w·…, with their weights; n counts them.
"""

from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import pairwise

import numpy as np

from coopbandits.arrays import Array, IntArray

# Views of many agents are worked on in batches of about this many numbers.
BATCH = 1_000_000
# Products are added in batches of about this many numbers, which stay in a core's cache.
_CACHE = 30_000
# Up to this many features a matrix is small.
_SMALL = 16

# So large that a bordered row's own diagonal changes nothing.
CORNER = 1e200
# So many rows, or as many as there are weights, are asked about at a time.
_ASKED = 256

# s (…, m), Q (…, m, m), Qᵀb (…, m)
Spectrum = tuple[Array, Array, Array]


@dataclass(frozen=True, eq=False)
class Statistics:
    """The sums of some agents: n (…), q (…), b (…, m), S (…, m, m).

    `logdet` (…) is the log-determinant of what was integrated out of them before
    (`gp/intercept.py`), 0 if nothing was.
    """

    n: Array
    q: Array
    b: Array
    S: Array
    known_spectrum: Spectrum | None = None
    known_compact: Array | None = None
    logdet: Array | float = 0.0

    @staticmethod
    def rows(phi: Array, y: Array) -> Array:
        """Lay out what each observation adds: (k, m), (k,) -> (k, 2 + m + m²)."""
        k, m = phi.shape
        outer = (phi[:, :, None] * phi[:, None, :]).reshape(k, m * m)
        return np.hstack([np.ones((k, 1)), y[:, None] ** 2, phi * y[:, None], outer])

    @staticmethod
    def add(sums: Array, phi: Array, y: Array) -> None:
        """Add an observation to each of k sums, in place: (k, 2 + m + m²), (k, m), (k,)."""
        k, m = phi.shape
        sums[:, 0] += 1.0
        sums[:, 1] += y**2
        sums[:, 2 : 2 + m] += phi * y[:, None]
        S = sums[:, 2 + m :].reshape(k, m, m)
        size = max(1, _CACHE // m**2)
        for start in range(0, k, size):
            some = phi[start : start + size]
            S[start : start + size] += some[:, :, None] * some[:, None, :]

    @staticmethod
    def summed(phi: Array, y: Array) -> Array:
        """Return what k observations of each of V agents add up to: (…, k, m), (…, k) -> (…, p)."""
        towards = np.swapaxes(phi, -1, -2)
        b, S = (towards @ y[..., None])[..., 0], towards @ phi
        n = np.full(y.shape[:-1], float(y.shape[-1]))
        q = (y**2).sum(axis=-1)
        flat = S.reshape(*S.shape[:-2], -1)
        return np.concatenate([n[..., None], q[..., None], b, flat], axis=-1)

    @staticmethod
    def width(m: int) -> int:
        """How many numbers a row has, for m features."""
        return 2 + m + m * m

    @classmethod
    def of(
        cls, sums: Array, m: int, spectrum: Spectrum | None = None, *, centred: bool = False
    ) -> "Statistics":
        """Read sums of rows, with their spectrum if it is known: (…, 2 + m + m²).

        Of rows that are centred (`gp/intercept.py`) the next number is their log-determinant.
        """
        size = cls.width(m)
        S = sums[..., 2 + m : size].reshape(*sums.shape[:-1], m, m)
        logdet = sums[..., size] if centred else 0.0
        return cls(sums[..., 0], sums[..., 1], sums[..., 2 : 2 + m], S, spectrum, None, logdet)

    @cached_property
    def spectrum(self) -> Spectrum:
        """S = Q diag(s) Qᵀ and Qᵀb: s (…, m), Q (…, m, m), Qᵀb (…, m)."""
        if self.known_spectrum is not None:
            return self.known_spectrum
        s, Q = np.linalg.eigh(self.S)
        return np.maximum(s, 0.0), Q, (self.b[..., None, :] @ Q)[..., 0, :]

    @cached_property
    def compact(self) -> Array:
        """The different numbers of each S, then b and q, which can be summed: (…, h + m + 1)."""
        if self.known_compact is not None:
            return self.known_compact
        i, j, _ = half(self.b.shape[-1])
        return np.concatenate([self.S[..., i, j], self.b, self.q[..., None]], axis=-1)

    @property
    def packed(self) -> Array:
        """The different numbers of each S: (…, h) with h = m(m + 1)/2."""
        m = self.b.shape[-1]
        return self.compact[..., : m * (m + 1) // 2]

    def take(self, index: IntArray | slice) -> "Statistics":
        """Take some of the leading axis, or lay it out as an index has it, with what is known."""
        spectrum = self.__dict__.get("spectrum", self.known_spectrum)
        if spectrum is not None:
            spectrum = spectrum[0][index], spectrum[1][index], spectrum[2][index]
        return Statistics(
            self.n[index],
            self.q[index],
            self.b[index],
            self.S[index],
            spectrum,
            self.compact[index],
            self.logdet if isinstance(self.logdet, float) else self.logdet[index],
        )

    def shared(self, c: Array) -> tuple["Statistics", Array]:
        """Integrate out each agent's own part, of variance c·σ² (…).

        With log det(I + cS) (…), and what was integrated out before.
        """
        s, Q, projected = self.spectrum
        grown = 1.0 + c[..., None] * s
        S = (Q * (s / grown)[..., None, :]) @ np.swapaxes(Q, -1, -2)
        b = (Q @ (projected / grown)[..., None])[..., 0]
        q = self.q - c * (projected**2 / grown).sum(axis=-1)
        return Statistics(self.n, q, b, S), np.log(grown).sum(axis=-1) + self.logdet

    def log_evidence(self, noise: Array, ratio: Array) -> Array:
        """Return log p(y) of each agent by itself, for σ² and κ that broadcast: (…)."""
        s, _, projected = self.spectrum
        kappa = ratio[..., None]
        explained = (projected**2 / (s + kappa)).sum(axis=-1)
        fit = -0.5 * (self.q - explained) / noise - 0.5 * np.log1p(s / kappa).sum(axis=-1)
        return fit - 0.5 * self.n * np.log(2 * np.pi * noise) - 0.5 * self.logdet


@lru_cache(maxsize=64)
def half(m: int) -> tuple[IntArray, IntArray, IntArray]:
    """Number the cells of a symmetric matrix's upper half: rows, columns, and each cell's number.

    A[i, j] holds the m(m + 1)/2 different numbers of A; A[i, j][cell] is A again.
    """
    i, j = np.triu_indices(m)
    cell = np.zeros((m, m), dtype=np.int64)
    cell[i, j] = cell[j, i] = np.arange(len(i))
    return i, j, cell


def halves(P: Array, h: Array, bound: Array) -> tuple[Array, Array]:
    """Return ½hᵀP⁻¹h and ½ log det P, given a bound above hᵀP⁻¹h: (…, m, m), (…, m), (…).

    One Cholesky factor of P bordered by h gives both.
    """
    m = h.shape[-1]
    bordered = np.empty((*h.shape[:-1], m + 1, m + 1))
    bordered[..., :m, :m] = P
    bordered[..., m, :m] = h
    bordered[..., :m, m] = h
    bordered[..., m, m] = bound
    factor = np.diagonal(np.linalg.cholesky(bordered), axis1=-2, axis2=-1)
    return 0.5 * (bound - factor[..., -1] ** 2), np.log(factor[..., :-1]).sum(axis=-1)


def column_halves(columns: Array, m: int) -> tuple[Array, Array]:
    """Return the same from columns of P's different numbers, h and the bound: (h + m + 1, k).

    A small P is eliminated row by row, for all k at once: that is quicker than a factor for each,
    and needs no bound. The columns are scratch then.
    """
    P, h, bound = columns[: -m - 1], columns[-m - 1 : -1], columns[-1]
    if m > _SMALL:
        return halves(np.moveaxis(P[half(m)[2]], 2, 0), h.T, bound)
    _, pivots = _eliminated(P, h)
    return 0.5 * (h**2 / pivots).sum(axis=0), 0.5 * np.log(pivots).sum(axis=0)


def column_draws(columns: Array, chance: Array) -> Array:
    """Return P⁻¹h + P^(−½)z from columns of a small P's different numbers and h: (m, k).

    With z standard normal, (m, k), that is a draw of N(P⁻¹h, P⁻¹). The columns are scratch then.
    """
    m = len(chance)
    P, h = columns[:-m], columns[-m:]
    rows, pivots = _eliminated(P, h)
    drawn = h + np.sqrt(pivots) * chance
    for j in range(m - 1, -1, -1):
        drawn[j] -= (rows[j][1:] * drawn[j + 1 :]).sum(axis=0)
        drawn[j] /= pivots[j]
    return drawn


def _eliminated(P: Array, h: Array) -> tuple[list[Array], Array]:
    """Eliminate k small P = LDLᵀ row by row, in place: (m(m + 1)/2, k), (m, k).

    Returns the rows of DLᵀ, each from its diagonal on, and D (m, k). h becomes L⁻¹h.
    """
    starts = np.cumsum([0, *range(len(h), 0, -1)])
    rows = [P[start:stop] for start, stop in pairwise(starts)]
    for j, row in enumerate(rows):
        scaled = row[1:] / row[0]
        h[j + 1 :] -= scaled * h[j]
        for i, factor in enumerate(scaled, start=1):
            rows[j + i] -= factor * row[i:]
    pivots = np.stack([row[0] for row in rows])
    if not (pivots > 0).all():
        raise np.linalg.LinAlgError("a matrix is not positive definite")
    return rows, pivots


def log_product(values: Array, axis: int = -1) -> Array:
    """Return Σ log over an axis, with a logarithm for eight numbers together."""
    steps = np.arange(0, values.shape[axis], 8)
    return np.asarray(np.log(np.multiply.reduceat(values, steps, axis=axis)).sum(axis=axis))


def coupled(U: Array, shared: Statistics) -> tuple[Array, Array]:
    """Pool agents whose weights are Σ_k U_uk g_k: what they say about all g_k at once.

    Args:
        U: (B, N, r).
        shared: Statistics (B, N, …) from which the agents' own parts are integrated out.

    Returns:
        Σ_u U_uU_uᵀ ⊗ S̃_u (B, rm, rm) and Σ_u U_u ⊗ b̃_u (B, rm).
    """
    return unpacked(np.swapaxes(pairs(U), 1, 2) @ shared.packed, np.swapaxes(U, 1, 2) @ shared.b)


def pairs(U: Array) -> Array:
    """Return the different numbers of each U_uU_uᵀ: (…, r) -> (…, r(r + 1)/2)."""
    one, other, _ = half(U.shape[-1])
    return np.asarray(U[..., one] * U[..., other])


def unpacked(blocks: Array, c: Array) -> tuple[Array, Array]:
    """Lay out sums over agents of what pairs of parts share, and of each part.

    (B, r(r + 1)/2, m(m + 1)/2), (B, r, m) -> (B, rm, rm), (B, rm).
    """
    B, r, m = c.shape
    pair, cell = half(r)[2], half(m)[2]
    places = pair[:, None, :, None] * blocks.shape[2] + cell[None, :, None, :]
    return blocks.reshape(B, -1)[:, places.reshape(-1)].reshape(B, r * m, r * m), c.reshape(B, -1)


def joint_log_evidence(
    statistics: Statistics, U: Array, delta: Array, noise: Array, ratio: Array
) -> Array:
    """Return log p(all rewards) under K_z = UUᵀ + diag(δ) between the agents' weights: (B,).

    Args:
        statistics: (B, N, …).
        U: (B, N, r).
        delta: (B, N).
        noise: (B,) σ².
        ratio: (B,) κ, for K_z = 1.
    """
    shared, logdet = statistics.shared(delta / ratio[:, None])
    A, c = coupled(U, shared)
    A[:, np.arange(A.shape[1]), np.arange(A.shape[1])] += ratio[:, None]
    q = shared.q.sum(axis=1)
    fit, half_logdet = halves(A, c, q * (1 + 1e-9) + noise)
    n = statistics.n.sum(axis=1)
    return (
        fit / noise
        - half_logdet
        + 0.5 * c.shape[1] * np.log(ratio)
        - 0.5 * (logdet.sum(axis=1) + q / noise + n * np.log(2 * np.pi * noise))
    )


def solved(
    A: Array, c: Array, asked: Array, logdet: Array, ridge: float
) -> tuple[Array, Array, Array]:
    """Return asked·A⁻¹c (B, K), Z = asked·L⁻ᵀ (B, K, D) and log det(A/λ) + `logdet` (B,)."""
    # a factor with K more rows takes K² numbers: many rows are asked about in turn
    step = max(_ASKED, c.shape[1])
    parts = [
        _solved(A, c, asked[:, start : start + step], logdet, ridge)
        for start in range(0, max(asked.shape[1], 1), step)
    ]
    if len(parts) == 1:
        return parts[0]
    means, Z, whole = zip(*parts, strict=True)
    return np.concatenate(means, axis=1), np.concatenate(Z, axis=1), whole[0]


def _solved(
    A: Array, c: Array, asked: Array, logdet: Array, ridge: float
) -> tuple[Array, Array, Array]:
    (B, D), K = c.shape, asked.shape[1]
    bordered = np.zeros((B, D + K + 1, D + K + 1))
    bordered[:, :D, :D] = A
    bordered[:, D : D + K, :D] = asked
    bordered[:, D + K, :D] = c
    corner = np.arange(D, D + K + 1)
    bordered[:, corner, corner] = CORNER
    L = np.linalg.cholesky(bordered)
    whole = 2 * np.log(np.diagonal(L, axis1=1, axis2=2)[:, :D]).sum(axis=1) - D * np.log(ridge)
    Z, target = L[:, D : D + K, :D], L[:, D + K, :D]
    return (Z @ target[..., None])[..., 0], Z, np.maximum(whole + logdet, 0.0)
