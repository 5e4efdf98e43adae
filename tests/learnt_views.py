"""Views made by hand: what the tests of learnt similarities share."""

from dataclasses import dataclass

import numpy as np

import coopbandits as cb
from coopbandits.similarity import Loadings
from coopbandits.testing import view_of


def learner_of(similarity, agents, kernel=None):
    return similarity.learner(kernel or cb.kernels.Linear(), cb.Network.complete(agents))


def view(learner, samples, me=0, offered=None):
    """One view of samples (X_u, y_u), one for each agent; None for one not heard from."""
    return view_of(learner, samples, me=me, offered=offered)


def K_z_of(similarity, samples, me=0, kernel=None, **more):
    learner = learner_of(similarity, len(samples), kernel)
    return learner.estimate(view(learner, samples, me, **more)).expected[0]


def linear_samples(rng, thetas, n=30, noise=0.3):
    """n observations of each task θ_u, contexts on the unit sphere."""
    samples = []
    for theta in thetas:
        X = rng.normal(size=(n, len(theta)))
        X /= np.linalg.norm(X, axis=1, keepdims=True)
        samples.append((X, X @ theta + noise * rng.normal(size=n)))
    return samples


def tasks(rng, count, dim=5):
    theta = rng.normal(size=(count, dim))
    return theta / np.linalg.norm(theta, axis=1, keepdims=True)


@dataclass(frozen=True)
class Unlearnt:
    """What a "learnt" K_z needs beside `estimate`, if it looks at nothing but who was heard."""

    refresh: str = "growing"
    growth: float = 1.25
    early: tuple[int, int] = (12, 0)

    def learner(self, kernel, network):
        return self

    def attached(self, dim):
        return 0

    def sampled(self, agents, contexts, rows):
        return np.empty((len(rows), 0))

    def summaries(self, X, attached, y):
        return np.ones((len(X), 1))


class Torn(Unlearnt):
    """A "learnt" K_z that agents cannot settle on: all alike, neighbours by number, or all apart.

    Odd agents are sure: all are alike.
    """

    def estimate(self, views):
        parts = []
        for agents, heard, me in zip(views.agents, views.heard, views.me, strict=True):
            alike = np.sqrt(0.8) * heard
            near = np.sqrt(0.9) * heard * (np.abs(agents - agents[me]) <= 1)
            U = np.array([alike, near, 0.0 * alike])[: 1 if agents[me] % 2 else 3]
            weight = np.array([0.5, 0.3, 0.2]) if len(U) == 3 else np.ones(1)
            parts.append(Loadings(U[..., None], 1.0 - U**2, np.zeros(len(U), dtype=int), weight))
        rows = np.arange(len(parts))[:, None]
        return Loadings.gathered(views.heard.shape, zip(rows, parts, strict=True))
