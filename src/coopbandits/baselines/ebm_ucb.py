"""ebmUCB (Jiang & Zhu 2025): upper bounds with a prior estimated from all agents' rewards.

Jiang & Zhu, "Empirical Bayesian Multi-Bandit Learning", arXiv:2510.26284.

What could be read of the paper: its abstract, which has a hierarchical Bayesian model across bandit
instances, a prior covariance that is estimated by empirical Bayes, and the two algorithms that take
the estimated prior into their decisions. Model, estimator and widths here are our reading
(`empirical_bayes.py`); the paper may have others, such as a moment estimator, weights of each arm,
or constants from its regret bounds.
"""

from dataclasses import dataclass

from coopbandits.baselines.empirical_bayes import HierarchicalAgents, settle
from coopbandits.baselines.settings import Named
from coopbandits.engines import Simulation


@dataclass(frozen=True, kw_only=True)
class EbmUCB(Named):
    r"""ebmUCB: argmax xᵀm_v + α·√(xᵀP_vx), where the prior N(μ, Σ) of weights is estimated.

    P_v = (Σ⁻¹ + S_v/σ²)⁻¹ and m_v = μ + P_v(b_v − S_vμ)/σ², with S_v = Σxxᵀ and b_v = Σxy of what v
    saw itself. μ and Σ maximise the marginal likelihood of all agents' rewards, by
    expectation-maximisation: what others saw changes what v believes through these two alone.

    Args:
        alpha: α, how optimistic decisions are.
        noise: σ of the rewards.
        variance: τ², the variance of each weight at the start: Σ = τ²I, μ = 0.
        weight: n₀, as how many agents τ²I counts in the estimate of Σ.
        steps: Of expectation-maximisation after each step; they go on from the last estimate.
        lag: 0 lets agents take turns within a round, each knowing all pulls before its own; 1 lets
            all decide at once, knowing all earlier rounds.
        name: What tables and figures call it.

    Deviation from the paper: its text was not at hand (see the module's first lines). A round
    serves all V agents, in turn or at once, and μ and Σ move on after each of these steps. The
    uncertainty of μ and Σ is not in P_v. Before any reward is known choices are random.
    `run.similarity` has μᵀμ/(μᵀμ + tr Σ) between any two agents, noted whenever the number of
    decisions has doubled.

    Example:
        >>> problem = cb.problems.clustered_linear(cb.Network.complete(4), noise=0.3)
        >>> cb.play(problem, cb.EbmUCB(noise=0.3, lag=1), rounds=5).regret.shape
        (5, 4)
    """

    alpha: float = 1.0
    noise: float = 1.0
    variance: float = 1.0
    weight: float = 1.0
    steps: int = 1
    lag: int = 0
    name: str = "ebmUCB"

    def __post_init__(self) -> None:
        settle(self)

    def player(self, simulation: Simulation) -> HierarchicalAgents:
        """Make what takes the decisions of a simulation's agents."""
        return HierarchicalAgents(self, simulation, draws=False)
