"""The paper's closed formulas, literally: kernels, posterior, determinant, widths."""

import math

import numpy as np
from scipy.special import gamma, kv


def linear(x, y, lengthscale=1.0):
    return np.sum((x / lengthscale) * (y / lengthscale), axis=-1)


def rbf(x, y, lengthscale=1.0):
    return np.exp(-0.5 * np.sum(((x - y) / lengthscale) ** 2, axis=-1))


def matern(x, y, nu, lengthscale=1.0):
    r = np.sqrt(np.sum(((x - y) / lengthscale) ** 2, axis=-1))
    z = np.sqrt(2 * nu) * np.where(r > 0, r, 1.0)
    return np.where(r > 0, 2 ** (1 - nu) / gamma(nu) * z**nu * kv(nu, z), 1.0)


def gram(k, X, Y):
    """Evaluate k for every pair of rows; k takes arrays whose last axis is the context."""
    return np.array(k(np.asarray(X)[:, None, :], np.asarray(Y)[None, :, :]), dtype=float)


def posterior(K, kappa, k_self, y, ridge):
    """Mean κᵀ(K + λI)⁻¹y and variance k − κᵀ(K + λI)⁻¹κ for each column of κ (n, m)."""
    inverse = np.linalg.inv(K + ridge * np.eye(len(K)))
    mean = kappa.T @ inverse @ y
    variance = k_self - np.einsum("nm,np,pm->m", kappa, inverse, kappa)
    return mean, variance


def logdet(K, ridge):
    return math.log(np.linalg.det(np.eye(len(K)) + K / ridge))


def self_normalised(K, ridge, *, norm, noise, delta, agents):
    return norm + noise / math.sqrt(ridge) * math.sqrt(
        logdet(K, ridge) + 2 * math.log(agents / delta)
    )


def mixture(K, ridge, *, norm, noise, delta, agents):
    spread = logdet(K, ridge) + 2 * math.log(agents / delta)
    return math.sqrt(norm**2 + noise**2 / ridge * spread)


def information_gain(K, ridge, *, norm, noise, delta):
    gain = 0.5 * logdet(K, ridge)
    return norm + noise * math.sqrt(2 * (gain + 1 + math.log(1 / delta)))


def srinivas(K, ridge, *, norm, delta):
    gain, t = 0.5 * logdet(K, ridge), len(K) + 1
    return math.sqrt(2 * norm**2 + 300 * gain * math.log(t / delta) ** 3)


def mmd(k, X, Y, unbiased=False):
    """MMD between two samples, by the double sums of the definition."""

    def within(A):
        if unbiased and len(A) > 1:
            return sum(k(a, b) for i, a in enumerate(A) for j, b in enumerate(A) if i != j) / (
                len(A) * (len(A) - 1)
            )
        return sum(k(a, b) for a in A for b in A) / len(A) ** 2

    cross = sum(k(a, b) for a in X for b in Y) / (len(X) * len(Y))
    return float(np.sqrt(max(within(X) - 2 * cross + within(Y), 0.0)))


def log_density(y, covariance):
    """The log density of a centred Gaussian, by determinant and inverse."""
    n = len(y)
    quadratic = y @ np.linalg.inv(covariance) @ y
    return -0.5 * (n * np.log(2 * np.pi) + np.log(np.linalg.det(covariance)) + quadratic)


def stacked_log_density(samples, K_z, noise, ratio):
    """The density of all agents' rewards at once: covariance s²·K_z(u, w)·φᵀφ' + σ²I.

    samples: a list of (Φ_u, y_u), one for each agent.
    """
    Phi = np.vstack([phi for phi, _ in samples])
    y = np.concatenate([y for _, y in samples])
    who = np.repeat(np.arange(len(samples)), [len(y) for _, y in samples])
    covariance = noise / ratio * K_z[np.ix_(who, who)] * (Phi @ Phi.T) + noise * np.eye(len(y))
    return log_density(y, covariance)


def weights(U, delta, samples, v, X, ridge):
    """Mean, covariance of agent v's function at X and log det(I + K/λ), by inverting.

    K_z = UUᵀ + diag(δ); samples are (features, rewards) of each agent.
    """
    K_z = U @ U.T + np.diag(delta)
    u = np.concatenate([np.full(len(y), agent) for agent, (_, y) in enumerate(samples)])
    Phi, y = np.vstack([phi for phi, _ in samples]), np.concatenate([y for _, y in samples])
    K = K_z[np.ix_(u, u)] * (Phi @ Phi.T)
    across = K_z[u, v][:, None] * (Phi @ X.T)
    inverse = np.linalg.inv(K + ridge * np.eye(len(y)))
    covariance = K_z[v, v] * (X @ X.T) - across.T @ inverse @ across
    logdet = np.linalg.slogdet(np.eye(len(y)) + K / ridge)[1]
    return across.T @ inverse @ y, covariance, logdet
