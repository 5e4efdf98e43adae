"""ebmUCB and ebmTS as we read them, line by line: explicit inverses, agent by agent."""

import math

import numpy as np
import scipy.linalg

from reference import formulas
from reference.social import first_best, generators


def posterior(mu, Sigma, X, y, noise):
    """Mean and covariance of θ ~ N(μ, Σ) given y = Xθ + N(0, σ²I)."""
    P = np.linalg.inv(np.linalg.inv(Sigma) + X.T @ X / noise**2)
    return P @ (np.linalg.inv(Sigma) @ mu + X.T @ y / noise**2), P


def step(mu, Sigma, data, *, noise, variance, weight):
    """One step of expectation-maximisation: the new μ and Σ."""
    found = [posterior(mu, Sigma, X, y, noise) for X, y in data]
    mu = sum(m for m, _ in found) / len(found)
    total = weight * variance * np.eye(len(mu))
    for m, P in found:
        total = total + P + np.outer(m - mu, m - mu)
    return mu, total / (weight + len(found))


def log_evidence(mu, Sigma, data, *, noise, variance, weight):
    """The log density of all rewards, and of Σ under its prior, up to a constant."""
    value = -weight / 2 * (np.linalg.slogdet(Sigma)[1] + variance * np.trace(np.linalg.inv(Sigma)))
    for X, y in data:
        covariance = X @ Sigma @ X.T + noise**2 * np.eye(len(y))
        value += formulas.log_density(y - X @ mu, covariance)
    return value


def ebm(world, agents, *, alpha, noise, variance, weight, steps, draws, rounds, seed, lag):
    """Returns the actions (T, V), and μ and Σ after the last round."""
    d = world(1, 0)[0].shape[1]
    rngs = generators(seed, agents)
    data = [(np.empty((0, d)), np.empty(0)) for _ in range(agents)]
    mu, Sigma = np.zeros(d), variance * np.eye(d)
    actions = np.zeros((rounds, agents), dtype=int)
    for r in range(rounds):
        for turn in [[v] for v in range(agents)] if lag == 0 else [list(range(agents))]:
            known = sum(len(y) for _, y in data)
            for v in turn:
                contexts, rewards = world(r + 1, v)
                X, y = data[v]
                m, P = posterior(mu, Sigma, X, y, noise)
                if known == 0:
                    k = int(rngs[v].integers(len(contexts)))
                elif draws:
                    root = np.real(scipy.linalg.sqrtm(Sigma))
                    C = np.linalg.cholesky(np.eye(d) + root @ X.T @ X @ root / noise**2)
                    theta = m + alpha * root @ np.linalg.inv(C).T @ rngs[v].standard_normal(d)
                    k = first_best([x @ theta for x in contexts])
                else:
                    k = first_best([x @ m + alpha * math.sqrt(x @ P @ x) for x in contexts])
                actions[r, v] = k
                data[v] = np.vstack([X, contexts[k]]), np.append(y, rewards[k])
            for _ in range(steps):
                mu, Sigma = step(mu, Sigma, data, noise=noise, variance=variance, weight=weight)
    return actions, mu, Sigma
