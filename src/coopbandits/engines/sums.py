"""The sums of every agent's observations, after each of the last rounds."""

import numpy as np

from coopbandits.arrays import Array, BoolArray, IntArray
from coopbandits.engines.record import Record
from coopbandits.features import Basis
from coopbandits.gp.statistics import Spectrum, Statistics, half
from coopbandits.kernels import Kernel
from coopbandits.policy import Plan


class Sums:
    """Sums of features, kept for as many rounds as any news is old.

    Attributes:
        m: How many features there are.
        newest: (V, m) the features of what agents chose in the last round.
    """

    def __init__(self, plan: Plan, kernel: Kernel, basis: Basis, dim: int) -> None:
        self._kernel, self.basis = kernel, basis
        self.m = basis.size(kernel, dim)
        finite = plan.lags[np.isfinite(plan.lags)]
        self.depth = int(finite.max()) + 1
        shape = (self.depth, len(plan.lags))
        self._rows = np.zeros((*shape, Statistics.width(self.m)))
        self.newest: Array = np.zeros((len(plan.lags), self.m))
        # by round: the agents' spectra, and whose have been asked for
        self._spectra: dict[int, tuple[Spectrum, BoolArray]] = {}
        self._outer: dict[int, tuple[Array, Array, Array, Array]] = {}

    @property
    def bytes(self) -> float:
        """How much memory they take, without spectra."""
        return 8.0 * self.depth * len(self.newest) * (Statistics.width(self.m) + self.m)

    @property
    def spectra_bytes(self) -> float:
        """How much memory all agents' spectra take."""
        return 8.0 * self.depth * len(self.newest) * (self.m**2 + 2 * self.m)

    def features(self, X: Array) -> Array:
        """Return φ at n contexts: (n, d) -> (n, m)."""
        return self.basis.features(self._kernel, X)

    def add(self, t: int, record: Record) -> None:
        """Count the observations of round t."""
        phi = self.features(record.observed[t - 1])
        self._rows[t % self.depth] = self._rows[(t - 1) % self.depth]
        Statistics.add(self._rows[t % self.depth], phi, record.rewards[t - 1])
        self.newest = phi
        self._spectra.pop(t - self.depth, None)

    def rows(self, t: int) -> Array:
        """Return the sums after round t: (V, p); 0 before the first."""
        return self._rows[t % self.depth] if t > 0 else np.zeros_like(self._rows[0])

    def statistics(self, t: IntArray, agents: IntArray, *, spectrum: bool) -> Statistics:
        """Return the statistics of agents after rounds t: (B, N) -> (B, N, …); 0 for t ≤ 0."""
        known = (t > 0)[..., None]
        rows = self._rows[t % self.depth, agents]
        if not known.all():
            rows *= known
        if not spectrum:
            return Statistics.of(rows, self.m)
        # after t rounds S has at most t eigenvalues above 0, the last ones
        k = min(self.m, max(1, int(t.max())))
        s, Q, projected = (
            np.empty((*t.shape, k)),
            np.empty((*t.shape, self.m, k)),
            np.empty((*t.shape, k)),
        )
        for round_ in np.unique(t):
            here = t == round_
            kept = self.spectrum(int(round_), agents[here])
            for part, whole in zip(kept, (s, Q, projected), strict=True):
                whole[here] = part[..., -k:][agents[here]]
        return Statistics.of(rows, self.m, (s, Q, projected))

    def spread(self, t: int) -> tuple[Array, Array, Array, Array]:
        """Return all agents' spectra after round t, and half of each q_kq_kᵀ: (V, m, ·)."""
        if t not in self._outer:
            s, Q, projected = self.spectrum(t, np.arange(len(self.newest)))
            i, j, _ = half(self.m)
            outer = np.swapaxes(Q[:, i, :] * Q[:, j, :], 1, 2)
            self._outer = {t: (s, Q, projected, outer)}
        return self._outer[t]

    def spectrum(self, t: int, agents: IntArray) -> Spectrum:
        """Return all agents' spectra after round t, of which those of some are right."""
        V, m = self.newest.shape
        if t not in self._spectra:
            nothing = np.zeros((V, m)), np.zeros((V, m, m)), np.zeros((V, m))
            self._spectra[t] = nothing, np.zeros(V, dtype=np.bool_)
        kept, done = self._spectra[t]
        new = np.unique(agents[~done[agents]])
        if new.size:
            found = Statistics.of(self.rows(max(t, 0))[new], m).spectrum
            for part, whole in zip(found, kept, strict=True):
                whole[new] = part
            done[new] = True
        return kept
