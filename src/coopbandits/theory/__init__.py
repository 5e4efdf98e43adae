"""What can be proven of a run, and computed? Gains, ranks, network numbers, bounds on regret."""

from coopbandits.theory.effective_dimension import effective_dimension, valko_dimension
from coopbandits.theory.embeddings import spectral_embedding
from coopbandits.theory.heterogeneity import (
    clique_heterogeneity,
    clique_heterogeneity_bound,
    composed_logdet_bound,
    heterogeneity,
    independent_arms_factor,
    rank_bound,
)
from coopbandits.theory.information import GreedyGain, greedy_gain, information_gain
from coopbandits.theory.network_numbers import Between, clique_cover_number, independence_number
from coopbandits.theory.observed import RunGains, run_gains
from coopbandits.theory.rates import gain_bound, gain_rate
from coopbandits.theory.regret import (
    RegretBound,
    corollary_1,
    individual_regret,
    theorem_1,
    theorem_2,
)
from coopbandits.theory.run_bound import RunBound, run_bound
from coopbandits.theory.variance import variance_bound

__all__ = [
    "Between",
    "GreedyGain",
    "RegretBound",
    "RunBound",
    "RunGains",
    "clique_cover_number",
    "clique_heterogeneity",
    "clique_heterogeneity_bound",
    "composed_logdet_bound",
    "corollary_1",
    "effective_dimension",
    "gain_bound",
    "gain_rate",
    "greedy_gain",
    "heterogeneity",
    "independence_number",
    "independent_arms_factor",
    "individual_regret",
    "information_gain",
    "rank_bound",
    "run_bound",
    "run_gains",
    "spectral_embedding",
    "theorem_1",
    "theorem_2",
    "valko_dimension",
    "variance_bound",
]
