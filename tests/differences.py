"""Gradients against central differences: what several tests share."""

import numpy as np


def slopes_are_those_of_differences(surface, X, atol=1e-6):
    at = surface.slopes(X)
    mean, std = surface.believe(X)
    np.testing.assert_allclose(at.mean, mean, rtol=1e-12, atol=1e-13)
    np.testing.assert_allclose(at.std, std, rtol=1e-9, atol=1e-12)
    for j in range(X.shape[1]):
        step = 1e-5 * np.eye(X.shape[1])[j]
        above, below = surface.believe(X + step), surface.believe(X - step)
        by_x = [(a - b) / 2e-5 for a, b in zip(above, below, strict=True)]
        np.testing.assert_allclose(at.mean_by_x[:, j], by_x[0], atol=atol)
        np.testing.assert_allclose(at.std_by_x[:, j], by_x[1], atol=atol)
