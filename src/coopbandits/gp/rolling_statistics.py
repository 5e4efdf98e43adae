"""Sufficient statistics of all agents of a simulation, after each of the last rounds."""

import numpy as np

from coopbandits.arrays import Array, BoolArray, IntArray
from coopbandits.forget import Forget, Window
from coopbandits.gp.intercept import Intercept, OwnConstant
from coopbandits.gp.statistics import Spectrum, Statistics, half


class RollingStatistics:
    """The sufficient statistics of V agents, after each of the last rounds.

    Constants are integrated out of them, and old observations have faded, where a policy says so.
    News is old by the time it arrives: whoever hears of an agent d rounds later knows its
    statistics of d rounds ago. Spectra are worked out once for all who ask.

    Attributes:
        m: How many features there are.
        depth: For how many rounds they are kept.
    """

    def __init__(
        self,
        agents: int,
        m: int,
        depth: int,
        *,
        intercept: Intercept | None = None,
        forget: Forget | None = None,
    ) -> None:
        """Make room for the sums of V agents.

        Args:
            agents: V.
            m: How many features there are.
            depth: For how many rounds sums are kept.
            intercept: Of the agents' own constants, which are integrated out.
            forget: By which rule observations fade.
        """
        self.m, self.depth, self._V = m, depth, agents
        self._intercept, self._forget = intercept, forget
        more = int(intercept is not None)
        self._rows = np.zeros((self.depth, self._V, Statistics.width(m) + more))
        # as they are, before constants are integrated out
        self._raw = np.zeros((agents, Statistics.width(m + more))) if more or forget else None
        self._window: tuple[Array, Array] | None = None
        if isinstance(forget, Window):
            W = forget.rounds
            self._window = np.zeros((agents, W, m + more)), np.zeros((agents, W))
        # by round: the agents' spectra, and whose have been asked for
        self._spectra: dict[int, tuple[Spectrum, BoolArray]] = {}
        self._outer: dict[int, tuple[Array, Array, Array, Array]] = {}

    def add(self, t: int, phi: Array, y: Array) -> None:
        """Count the observations of round t: (V, m), (V,)."""
        self._spectra.pop(t - self.depth, None)
        if self._raw is None:
            self._rows[t % self.depth] = self._rows[(t - 1) % self.depth]
            Statistics.add(self._rows[t % self.depth], phi, y)
            return
        if self._intercept is not None:
            phi = self._intercept.features(phi)
        if self._window is not None:
            features, rewards = self._window
            W = rewards.shape[1]
            features[:, t % W], rewards[:, t % W] = phi, y
            self._raw = Statistics.summed(features, rewards)
            self._raw[:, 0] = min(t, W)
        else:
            if self._forget is not None:  # how many there were does not fade
                self._raw[:, 1:] *= self._forget.weight(1)
            Statistics.add(self._raw, phi, y)
        rows = self._raw
        if self._intercept is not None:
            rows = self._intercept.centred(rows, self.m)
        self._rows[t % self.depth] = rows

    @property
    def constants(self) -> OwnConstant | None:
        """What each agent knows of its own constant; None where policies have no intercept."""
        if self._intercept is None:
            return None
        assert self._raw is not None
        return self._intercept.own(self._raw, self.m)

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
            return self.read(rows)
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
        return self.read(rows, (s, Q, projected))

    def read(self, rows: Array, spectrum: Spectrum | None = None) -> Statistics:
        """Read rows of sums, with their spectrum if it is known: (…, p)."""
        return Statistics.of(rows, self.m, spectrum, centred=self._intercept is not None)

    def spread(self, t: int) -> tuple[Array, Array, Array, Array]:
        """Return all agents' spectra after round t, and half of each q_kq_kᵀ: (V, m, ·)."""
        if t not in self._outer:
            s, Q, projected = self.spectrum(t, np.arange(self._V))
            i, j, _ = half(self.m)
            outer = np.swapaxes(Q[:, i, :] * Q[:, j, :], 1, 2)
            self._outer = {t: (s, Q, projected, outer)}
        return self._outer[t]

    def spectrum(self, t: int, agents: IntArray) -> Spectrum:
        """Return all agents' spectra after round t, of which those of some are right."""
        V, m = self._V, self.m
        if t not in self._spectra:
            nothing = np.zeros((V, m)), np.zeros((V, m, m)), np.zeros((V, m))
            self._spectra[t] = nothing, np.zeros(V, dtype=np.bool_)
        kept, done = self._spectra[t]
        new = np.unique(agents[~done[agents]])
        if new.size:
            found = self.read(self.rows(max(t, 0))[new]).spectrum
            for part, whole in zip(found, kept, strict=True):
                whole[new] = part
            done[new] = True
        return kept
