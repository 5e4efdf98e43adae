import numpy as np
import pytest
from hypothesis import settings

import coopbandits as cb
from worlds import eager

# the same examples in every run, and no clock in the verdict
settings.register_profile("house", derandomize=True, deadline=None, max_examples=50)
settings.register_profile("thorough", derandomize=True, deadline=None, max_examples=200)
settings.load_profile("house")


@pytest.fixture
def rng():
    return np.random.default_rng(20200713)


@pytest.fixture
def network():
    return cb.Network.path(6)


@pytest.fixture
def agent(network):
    return eager().agent(2, network, seed=1)
