"""How much is their news worth to me? The network kernel K_z between agents.

Given: `Alone`, `Same`, `Known`, `LowRank`, `Clusters`, `Laplacian`, `ArmNetwork`. Learnt from what
arrives: `Evidence`, `MeanEmbedding`, `Learned`, `Laplacian.by_evidence()`.
"""

from coopbandits.similarity.arm_network import ArmNetwork, joint_kernel
from coopbandits.similarity.evidence import Evidence
from coopbandits.similarity.known import Alone, Clusters, Known, LowRank, Same
from coopbandits.similarity.laplacian import Laplacian, LearntLaplacian
from coopbandits.similarity.learned import Learned
from coopbandits.similarity.loadings import Loadings
from coopbandits.similarity.mean_embedding import MeanEmbedding
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

__all__ = [
    "Alone",
    "ArmNetwork",
    "Clusters",
    "Evidence",
    "Given",
    "Known",
    "Laplacian",
    "Learned",
    "Learner",
    "Learnt",
    "LearntLaplacian",
    "Loadings",
    "LowRank",
    "MeanEmbedding",
    "Same",
    "Similarity",
    "Views",
    "as_similarity",
    "joint_kernel",
    "network_kernel",
    "similarity_matrix",
]
