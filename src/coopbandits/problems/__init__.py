"""What do agents face? The paper's setups, on finite sets and on continua, and a user's own."""

from coopbandits.problems.arms import arms
from coopbandits.problems.changing import Changing, changing
from coopbandits.problems.clustered_linear import clustered_linear
from coopbandits.problems.continuum import (
    Continuum,
    ContinuumRound,
    continuum,
    continuum_functions,
)
from coopbandits.problems.fully_cooperative import fully_cooperative
from coopbandits.problems.functions import functions
from coopbandits.problems.kernel import kernel
from coopbandits.problems.noise import Bernoulli, Gaussian, Noise, Uniform
from coopbandits.problems.optimum import Optimum
from coopbandits.problems.problem import Problem, Round, Simulated
from coopbandits.problems.table import Recorded, table

__all__ = [
    "Bernoulli",
    "Changing",
    "Continuum",
    "ContinuumRound",
    "Gaussian",
    "Noise",
    "Optimum",
    "Problem",
    "Recorded",
    "Round",
    "Simulated",
    "Uniform",
    "arms",
    "changing",
    "clustered_linear",
    "continuum",
    "continuum_functions",
    "fully_cooperative",
    "functions",
    "kernel",
    "table",
]
