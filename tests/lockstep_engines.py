"""Every engine plays the same run: what the lockstep tests share."""

import numpy as np

import coopbandits as cb
from coopbandits.engines import applies
from coopbandits.policy import plan


def all_engines(problem, policy, seed, rounds=12):
    """Play on every engine that can; all must do the same."""
    exact = cb.play(problem, policy, rounds=rounds, seed=seed, engine="exact")
    others = ["messages"]
    if policy.act.judges and applies("statistics", policy, plan(policy, problem.network)):
        others.append("statistics")
    for engine in others:
        other = cb.play(problem, policy, rounds=rounds, seed=seed, engine=engine)
        assert (exact.engine, other.engine) == ("exact", engine)
        np.testing.assert_array_equal(exact.actions, other.actions)
        np.testing.assert_array_equal(exact.messages, other.messages)
        np.testing.assert_array_equal(exact.bytes, other.bytes)
        assert [t for t, _ in exact.estimates] == [t for t, _ in other.estimates]
        for (_, K_z), (_, other_K_z) in zip(exact.estimates, other.estimates, strict=True):
            np.testing.assert_allclose(K_z, other_K_z, atol=1e-9)
    return exact
