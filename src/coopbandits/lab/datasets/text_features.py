"""Latent semantic analysis: TF-IDF of words or tags, then a truncated SVD, rows of length 1.

Needs scikit-learn, the extra `datasets`.
"""

from collections.abc import Sequence
from importlib.util import find_spec
from typing import Any

import numpy as np

from coopbandits.arrays import Array
from coopbandits.errors import InputError, MissingExtraError, ParameterError


def of_counts(counts: Any, dim: int) -> Array:
    """Return features of documents by how often each has which term, sparse (n, p): (n, dim).

    A document without any term has features 0.
    """
    _check_extra()
    from sklearn.decomposition import TruncatedSVD  # noqa: PLC0415
    from sklearn.feature_extraction.text import TfidfTransformer  # noqa: PLC0415

    if not dim <= min(counts.shape) - 1:
        raise ParameterError(
            f"dim={dim}, but {counts.shape[0]:,} documents with {counts.shape[1]:,} terms have at "
            f"most {min(counts.shape) - 1} features"
        )
    weighed = TfidfTransformer(sublinear_tf=True).fit_transform(counts)
    found = TruncatedSVD(dim, random_state=0).fit_transform(weighed)
    length = np.linalg.norm(found, axis=1, keepdims=True)
    return np.asarray(np.divide(found, length, out=np.zeros_like(found), where=length > 1e-9))


def of_texts(texts: Sequence[str], dim: int) -> Array:
    """Return features of texts, by the words that at least five of them have: (n, dim)."""
    _check_extra()
    from sklearn.feature_extraction.text import CountVectorizer  # noqa: PLC0415

    try:
        counts = CountVectorizer(min_df=5, stop_words="english").fit_transform(texts)
    except ValueError as error:
        raise InputError(
            f"{len(texts):,} texts have no word that five of them share; expected texts of one "
            "language, and more of them"
        ) from error
    return of_counts(counts, dim)


def _check_extra() -> None:
    if find_spec("sklearn") is None:
        raise MissingExtraError(
            "features of tags and texts need scikit-learn, which is not installed; try: "
            "pip install 'coopbandits[datasets]'"
        )
