import os

# as the Makefile does it: more BLAS threads than cores wait for each other, test after test
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("MKL_NUM_THREADS", "1")

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
