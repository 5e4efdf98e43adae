import math

import numpy as np
import pytest
from scipy.sparse import csr_array

from coopbandits.errors import InputError, MissingExtraError, ParameterError
from coopbandits.lab.datasets import text_features


def literal(counts, dim):
    """TF-IDF and SVD as they are written: (1 + ln tf)·(1 + ln((1 + n)/(1 + df)))."""
    n, p = counts.shape
    weighed = np.zeros((n, p))
    for j in range(p):
        df = sum(counts[i, j] > 0 for i in range(n))
        for i in range(n):
            if counts[i, j]:
                idf = 1 + math.log((1 + n) / (1 + df))
                weighed[i, j] = (1 + math.log(counts[i, j])) * idf
    for i in range(n):
        weighed[i] /= math.sqrt((weighed[i] ** 2).sum()) or 1.0
    U, s, _ = np.linalg.svd(weighed, full_matrices=False)
    found = U[:, :dim] * s[:dim]
    return np.array([row / (np.linalg.norm(row) or 1.0) for row in found])


def test_features_are_those_of_the_literal_formula_but_for_a_rotation(rng):
    counts = rng.poisson(0.8, size=(30, 9))
    counts[counts.sum(axis=1) == 0, 0] = 1
    found = text_features.of_counts(csr_array(counts.astype(float)), 4)
    expected = literal(counts, 4)
    # so few terms are within the sketch of the randomised SVD, which is then exact
    np.testing.assert_allclose(found @ found.T, expected @ expected.T, atol=1e-9)


def test_features_have_length_1_and_are_0_without_any_term(rng):
    counts = rng.poisson(2.0, size=(20, 8)).astype(float)
    counts[[3, 11]] = 0.0
    found = text_features.of_counts(csr_array(counts), 3)
    lengths = np.ones(20)
    lengths[[3, 11]] = 0.0
    assert (found.shape, found.dtype) == ((20, 3), np.float64)
    np.testing.assert_allclose(np.linalg.norm(found, axis=1), lengths, atol=1e-12)


def test_the_same_texts_have_the_same_bytes_and_words_of_few_texts_do_not_count():
    texts = [f"{a} {b} tree" for a in ("red", "green", "blue") for b in ("cat", "dog")] * 5
    found = text_features.of_texts(texts, 3)
    assert found.tobytes() == text_features.of_texts(texts, 3).tobytes()
    rare = [f"{text} word{i}" for i, text in enumerate(texts)]  # each in one text only
    assert found.tobytes() == text_features.of_texts(rare, 3).tobytes()
    np.testing.assert_array_equal(found[:6], found[6:12])


def test_more_features_than_documents_or_terms_are_refused():
    with pytest.raises(ParameterError, match=r"dim=5, but 9 documents with 5 terms .* most 4 feat"):
        text_features.of_counts(csr_array(np.eye(9, 5)), 5)


def test_without_scikit_learn_the_extra_is_named(monkeypatch):
    monkeypatch.setattr(text_features, "find_spec", lambda name: None)
    with pytest.raises(MissingExtraError, match=r"need scikit-learn.*coopbandits\[datasets\]"):
        text_features.of_counts(csr_array(np.eye(4)), 2)
    with pytest.raises(MissingExtraError, match=r"need scikit-learn.*coopbandits\[datasets\]"):
        text_features.of_texts(["one", "two"], 1)


def test_texts_that_share_no_words_are_refused():
    with pytest.raises(InputError, match="2 texts have no word that five of them share"):
        text_features.of_texts(["alpha beta", "gamma delta"], 1)
