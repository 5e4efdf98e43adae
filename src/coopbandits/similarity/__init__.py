"""How much is their news worth to me? The network kernel K_z between agents.

Given: `Alone`, `Same`, `Known`, `LowRank`, `Clusters`, `Laplacian`, `Population`, `ArmNetwork`.
Learnt from what arrives: `Evidence`, `MeanEmbedding`, `Coregionalised`, `Laplacian.by_evidence()`,
`Population.by_evidence()`.
"""

from coopbandits.similarity.arm_network import ArmNetwork, joint_kernel
from coopbandits.similarity.chain_diagnostics import ChainDiagnostics
from coopbandits.similarity.coregionalised import Coregionalised
from coopbandits.similarity.evidence import Evidence
from coopbandits.similarity.known import Alone, Clusters, Known, LowRank, Same
from coopbandits.similarity.laplacian import Laplacian, LearntLaplacian
from coopbandits.similarity.loadings import Loadings
from coopbandits.similarity.mean_embedding import MeanEmbedding
from coopbandits.similarity.population import LearntPopulation, Population
from coopbandits.similarity.similarity import (
    Given,
    Learner,
    Learnt,
    Similarity,
    Views,
    as_similarity,
    network_kernel,
    similarity_matrix,
)

# The former name of `Coregionalised`, for one release.
Learned = Coregionalised

__all__ = [
    "Alone",
    "ArmNetwork",
    "ChainDiagnostics",
    "Clusters",
    "Coregionalised",
    "Evidence",
    "Given",
    "Known",
    "Laplacian",
    "Learned",
    "Learner",
    "Learnt",
    "LearntLaplacian",
    "LearntPopulation",
    "Loadings",
    "LowRank",
    "MeanEmbedding",
    "Population",
    "Same",
    "Similarity",
    "Views",
    "as_similarity",
    "joint_kernel",
    "network_kernel",
    "similarity_matrix",
]
