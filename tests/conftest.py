import numpy as np
import pytest
from hypothesis import settings

# the same examples in every run, and no clock in the verdict
settings.register_profile("house", derandomize=True, deadline=None)
settings.load_profile("house")


@pytest.fixture
def rng():
    return np.random.default_rng(20200713)
