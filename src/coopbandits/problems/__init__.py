"""What do agents face? The paper's setups, and a user's own."""

from coopbandits.problems.arms import arms
from coopbandits.problems.clustered_linear import clustered_linear
from coopbandits.problems.fully_cooperative import fully_cooperative
from coopbandits.problems.functions import functions
from coopbandits.problems.kernel import kernel
from coopbandits.problems.noise import Bernoulli, Gaussian, Noise, Uniform
from coopbandits.problems.problem import Problem, Round, Simulated
from coopbandits.problems.table import Recorded, table

__all__ = [
    "Bernoulli",
    "Gaussian",
    "Noise",
    "Problem",
    "Recorded",
    "Round",
    "Simulated",
    "Uniform",
    "arms",
    "clustered_linear",
    "fully_cooperative",
    "functions",
    "kernel",
    "table",
]
