"""Which of two language models for a prompt? 57 subjects of MMLU, as RouteLLM recorded them.

Agents are subjects (departments); each round brings a prompt of the subject, the actions are a
small and a large model, and the reward is 1 for a right answer, less a price for the large model.
Both answers were recorded, so every reward is known. Prompts have features by latent semantic
analysis; an action's context is the prompt's features and 1 in the block of its model. Agents hear
the subjects whose mean prompts are nearest.

RouteLLM (Ong et al., 2024) is Apache-2.0, MMLU (Hendrycks et al., 2021) MIT.
"""

from functools import lru_cache
from pathlib import Path

import numpy as np

from coopbandits.arrays import Array, IntArray, Seed, as_count, as_number, as_seed
from coopbandits.errors import InputError, ParameterError
from coopbandits.lab.datasets import columns, text_features
from coopbandits.network import Network
from coopbandits.problems import table
from coopbandits.problems.table import Recorded

_FILE = "mmlu_two_models.csv"
_COLUMNS = ["subject", "prompt", "mixtral_8x7b_correct", "gpt_4_1106_correct"]


def routellm(
    path: str | Path,
    *,
    dim: int = 10,
    rounds: int = 100,
    price: float = 0.1,
    neighbours: int = 5,
    seed: Seed = 0,
) -> Recorded:
    """Make a problem of prompts to route; needs `pip install 'coopbandits[datasets]'`.

    A context has 2(dim + 1) numbers: (φ, 1)/√2 in the block of its model, 0 in the other's. A
    subject's prompts come in random order, each once, and again from the start where there are
    fewer than rounds.

    Args:
        path: The folder with mmlu_two_models.csv, which may be compressed (`.gz`).
        dim: How many features a prompt has.
        rounds: How many prompts of each subject.
        price: What the large model costs, in right answers.
        neighbours: Each subject is joined to so many with the nearest mean prompts.
        seed: Of the order of prompts.
    """
    dim, rounds = as_count(dim, "dim"), as_count(rounds, "rounds", most=100_000)
    price = as_number(price, "price")
    subjects, owner, features, right = read(str(path), dim)
    V = len(subjects)
    neighbours = as_count(neighbours, "neighbours", most=V - 1)
    mean = np.stack([features[owner == v].mean(axis=0) for v in range(V)])
    distance = ((mean[:, None] - mean) ** 2).sum(axis=2)
    np.fill_diagonal(distance, np.inf)
    nearest = np.argsort(distance, axis=1, kind="stable")[:, :neighbours]
    edges = {(min(v, u), max(v, u)) for v in range(V) for u in nearest[v].tolist()}
    network = Network.from_edges(sorted(edges), agents=V, names=subjects)
    rng = np.random.default_rng([as_seed(seed), 29])
    rows = np.stack(
        [np.resize(rng.permutation(np.flatnonzero(owner == v)), rounds) for v in range(V)], axis=1
    )
    return table(network, contexts(features[rows]), right[rows] - np.array([0.0, price]))


def contexts(features: Array) -> Array:
    """Return the contexts of both models for prompts: (…, dim) -> (…, 2, 2(dim + 1))."""
    phi = np.concatenate([features, np.ones((*features.shape[:-1], 1))], axis=-1) / np.sqrt(2.0)
    none = np.zeros_like(phi)
    small, large = np.concatenate([phi, none], axis=-1), np.concatenate([none, phi], axis=-1)
    return np.stack([small, large], axis=-2)


@lru_cache(maxsize=4)
def read(path: str, dim: int) -> tuple[tuple[str, ...], IntArray, Array, Array]:
    """Read all n prompts: subjects by name, whose each is (n,), features (n, dim), right (n, 2)."""
    subject, prompt, *answers = columns.read(columns.find(path, _FILE), _COLUMNS, delimiter=",")
    right = np.array(answers).T
    odd = right[(right != "0") & (right != "1")]
    if len(odd):
        raise InputError(f"{_FILE}: {str(odd[0])!r} is not whether an answer was right, 0 or 1")
    names, owner = np.unique(np.array(subject), return_inverse=True)
    if len(names) < 2:
        raise ParameterError(f"{_FILE} has one subject only; expected at least two agents")
    features = text_features.of_texts(prompt, dim)
    return tuple(names.tolist()), owner, features, right.astype(float)
