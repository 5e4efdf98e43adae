r"""What does each of many agents know by itself? Exact posteriors of equal shape, side by side.

As `gp/posterior.py`, K + λI = LLᵀ for each agent, L in panels of rows; but a panel holds the rows
of all agents, so that one call of numpy serves them all. A row that an agent has no observation for
is that of the identity, and its whitened contexts are 0 there.
"""

import numpy as np

from coopbandits.arrays import Array, IntArray
from coopbandits.gp.posterior import deviation
from coopbandits.kernels import Kernel

# Rows of a panel: few, as its diagonal blocks are solved by elimination.
_PANEL = 16


class SideBySide:
    """The posterior of each of V agents, who hear of nobody else.

    Attributes:
        count: (V,) how many observations each agent has.
    """

    def __init__(self, kernel: Kernel, ridge: float, *, agents: int, dim: int) -> None:
        self.kernel, self.ridge = kernel, ridge
        self.count: IntArray = np.zeros(agents, dtype=np.int64)
        self._contexts = np.zeros((agents, 0, dim))
        self._whitened_rewards = np.zeros((agents, 0))
        self._panels: list[Array] = []

    def project(self, agents: IntArray, X: Array) -> Array:
        """Whiten K contexts of each of some agents by what it knows: (A,), (A, K, d) -> (A, n, K).

        n is as large as the largest of them needs.
        """
        needed = -(-int(self.count[agents].max(initial=0)) // _PANEL)
        Z = np.zeros((len(agents), needed * _PANEL, X.shape[1]))
        for place, v in enumerate(agents):
            n = self.count[v]
            if n:
                Z[place, :n] = self.kernel(self._contexts[v, :n], X[place])
        everyone = len(agents) == len(self.count)
        for index, whole in enumerate(self._panels[:needed]):
            panel = whole if everyone else whole[agents]
            start = index * _PANEL
            block = Z[:, start : start + _PANEL]
            if start:
                block -= panel[:, :, :start] @ Z[:, :start]
            block[...] = np.linalg.solve(panel[:, :, start:], block)
        return Z

    def believe(self, agents: IntArray, X: Array, Z: Array) -> tuple[Array, Array]:
        """Return mean and σ at contexts that are whitened: (A, K, d), (A, n, K) -> (A, K) twice."""
        A, K, d = X.shape
        mean = (self._whitened_rewards[agents, None, : Z.shape[1]] @ Z)[:, 0]
        prior = self.kernel.diagonal(X.reshape(A * K, d)).reshape(A, K)
        return mean, deviation(prior - np.einsum("ank,ank->ak", Z, Z))

    def learn(self, agents: IntArray, X: Array, z: Array, y: Array) -> None:
        """Learn one observation of each of some agents: (A,), (A, d), whitened (A, n), (A,)."""
        at, n = self.count[agents], z.shape[1]
        self._make_room(int(at.max(initial=-1)) + 1)
        prior = self.kernel.diagonal(X)
        corner = np.sqrt(prior - np.einsum("an,an->a", z, z) + self.ridge)
        fitted = np.einsum("an,an->a", z, self._whitened_rewards[agents, :n])
        for index in np.unique(at // _PANEL):
            mine = np.flatnonzero(at // _PANEL == index)
            panel, row = self._panels[index], at[mine] % _PANEL
            filled = min(n, panel.shape[2])
            panel[agents[mine], row, :filled] = z[mine, :filled]
            panel[agents[mine], row, at[mine]] = corner[mine]
        self._contexts[agents, at] = X
        self._whitened_rewards[agents, at] = (y - fitted) / corner
        self.count[agents] += 1

    def _make_room(self, rows: int) -> None:
        while len(self._panels) * _PANEL < rows:
            start, V = len(self._panels) * _PANEL, len(self.count)
            panel = np.zeros((V, _PANEL, start + _PANEL))
            panel[:, :, start:] = np.eye(_PANEL)
            self._panels.append(panel)
            more = np.zeros((V, _PANEL, self._contexts.shape[2]))
            self._contexts = np.concatenate([self._contexts, more], axis=1)
            self._whitened_rewards = np.pad(self._whitened_rewards, ((0, 0), (0, _PANEL)))
