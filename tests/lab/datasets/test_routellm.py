"""Synthetic prompts in the file's format, and the published counts of the real ones."""

import csv
import gzip
import math
from collections import Counter

import numpy as np
import pytest

import real_data
from coopbandits.errors import InputError, MissingExtraError, ParameterError
from coopbandits.lab import routellm
from coopbandits.lab.datasets import routellm as module, text_features

REAL = real_data.data_set("routellm-mmlu")
there = real_data.needs(REAL)

FILE = "mmlu_two_models.csv"
HEADER = ["subject", "prompt", "mixtral_8x7b_correct", "gpt_4_1106_correct"]
SUBJECTS = ["algebra", "botany", "chemistry", "drama", "ethics"]
EACH = 30


def written(folder, rows, header=HEADER):
    with (folder / FILE).open("w", newline="") as file:
        csv.writer(file).writerows([header, *rows])


def rows_of(folder):
    with (folder / FILE).open(newline="") as file:
        return list(csv.reader(file))[1:]


@pytest.fixture
def folder(tmp_path):
    """Five subjects of 30 prompts each; neighbours in the list have words in common."""
    rng = np.random.default_rng(3)
    rows = []
    for v, subject in enumerate(SUBJECTS):
        for _ in range(EACH):
            words = rng.integers(6 * v, 6 * v + 12, size=9)
            prompt = f'Which "one", {", ".join(f"term{w}" for w in words)}?'
            rows.append([subject, prompt, *rng.integers(2, size=2)])
    written(tmp_path, [rows[i] for i in rng.permutation(len(rows))])
    return tmp_path


SMALL = {"dim": 5, "rounds": EACH, "neighbours": 1}


def content(problem):
    parts = [part for one in problem.rounds for part in (one.contexts, one.rewards)]
    return b"".join(part.tobytes() for part in parts)


def test_a_problem_has_two_models_for_a_prompt_of_each_subject(folder):
    problem = routellm(folder, **SMALL)
    assert (problem.network.names, problem.horizon) == (tuple(SUBJECTS), EACH)
    for offer in problem.rounds:
        assert offer.contexts.shape == (5 * 2, 2 * (5 + 1))
        assert offer.sizes.tolist() == [2] * 5
        np.testing.assert_allclose(np.linalg.norm(offer.contexts, axis=1), 1.0, atol=1e-12)


@pytest.mark.parametrize("price", [0.0, 0.15])
def test_rewards_are_right_answers_less_the_price_of_the_large_model(folder, price):
    problem = routellm(folder, **SMALL, price=price)
    expected = {subject: Counter() for subject in SUBJECTS}
    for subject, _, small, large in rows_of(folder):
        expected[subject][float(small), float(large) - price] += 1
    rewards = np.array([offer.rewards.reshape(5, 2) for offer in problem.rounds])
    for v, subject in enumerate(SUBJECTS):  # in as many rounds each prompt comes once
        assert Counter(map(tuple, rewards[:, v].tolist())) == expected[subject]


def test_a_reward_belongs_to_the_prompt_of_its_context(folder):
    problem = routellm(folder, **SMALL, price=0.5)
    names, owner, features, _ = module.read(str(folder), 5)
    by_features = {}
    for (subject, _, *right), v, phi in zip(rows_of(folder), owner, features, strict=True):
        assert names[v] == subject
        by_features.setdefault((subject, phi.tobytes()), set()).add(tuple(map(float, right)))
    assert sum(len(found) == 1 for found in by_features.values()) > 100, "they tell prompts apart"
    keys = {(s, (np.frombuffer(x) / np.sqrt(2)).tobytes()): r for (s, x), r in by_features.items()}
    for offer in problem.rounds:
        rewards, contexts = offer.rewards.reshape(5, 2), offer.contexts.reshape(5, 2, 12)
        for v, subject in enumerate(SUBJECTS):
            found = keys[subject, contexts[v, 0, :5].tobytes()]
            assert (rewards[v, 0], rewards[v, 1] + 0.5) in found


def test_a_context_is_the_prompts_features_and_1_in_the_block_of_its_model(rng):
    phi = rng.normal(size=(3, 2, 4))
    phi /= np.linalg.norm(phi, axis=-1, keepdims=True)
    found = module.contexts(phi)
    assert found.shape == (3, 2, 2, 10)
    for t in range(3):
        for v in range(2):
            block = [*phi[t, v] / math.sqrt(2), 1 / math.sqrt(2)]
            np.testing.assert_allclose(found[t, v], [block + [0] * 5, [0] * 5 + block], rtol=1e-15)


def test_features_of_prompts_have_length_1(folder):
    _, _, features, right = module.read(str(folder), 5)
    assert (features.shape, right.shape) == ((5 * EACH, 5), (5 * EACH, 2))
    np.testing.assert_allclose(np.linalg.norm(features, axis=1), 1.0, atol=1e-12)


@pytest.mark.parametrize("neighbours", [1, 2, 4])
def test_each_subject_is_joined_to_those_with_the_nearest_mean_prompts(folder, neighbours):
    network = routellm(folder, **SMALL | {"neighbours": neighbours}).network
    names, owner, features, _ = module.read(str(folder), 5)
    means = []
    for v in range(len(names)):
        prompts = [features[i] for i in range(len(features)) if owner[i] == v]
        means.append([sum(x[j] for x in prompts) / len(prompts) for j in range(5)])
    expected = set()
    for v in range(5):
        others = sorted((math.dist(means[v], means[u]), u) for u in range(5) if u != v)
        expected |= {(min(v, u), max(v, u)) for _, u in others[:neighbours]}
    assert set(network.edges) == expected


def test_prompts_come_again_from_the_start_where_there_are_too_few(folder):
    rounds = routellm(folder, **SMALL | {"rounds": EACH + 7}).rounds
    for t in range(7):
        np.testing.assert_array_equal(rounds[t].contexts, rounds[EACH + t].contexts)
        np.testing.assert_array_equal(rounds[t].rewards, rounds[EACH + t].rewards)


def test_the_same_seed_gives_the_same_bytes_and_another_seed_others(folder):
    first = routellm(folder, **SMALL, seed=1)
    assert content(first) == content(routellm(str(folder), **SMALL, seed=1))
    other = routellm(folder, **SMALL, seed=2)
    assert content(first) != content(other)
    assert first.network.edges == other.network.edges, "the seed is of the order of prompts alone"


def test_a_compressed_file_gives_the_same_problem(folder, tmp_path_factory):
    packed = tmp_path_factory.mktemp("packed")
    (packed / f"{FILE}.gz").write_bytes(gzip.compress((folder / FILE).read_bytes()))
    assert content(routellm(packed, **SMALL)) == content(routellm(folder, **SMALL))


def test_a_missing_or_damaged_file_is_one_clear_error(folder, tmp_path_factory):
    with pytest.raises(InputError, match=rf"no {FILE} or {FILE}\.gz in .*; expected the data set"):
        routellm(tmp_path_factory.mktemp("empty"), **SMALL)
    damaged = tmp_path_factory.mktemp("damaged")
    (damaged / f"{FILE}.gz").write_bytes(gzip.compress((folder / FILE).read_bytes())[:200])
    with pytest.raises(InputError, match=rf"{FILE}\.gz is damaged, or no table .*fetch it anew"):
        routellm(damaged, **SMALL)


@pytest.mark.parametrize(
    ("rows", "header", "message"),
    [
        (
            [["a", "b", 0, 1]],
            ["subject", "prompt", "small", "large"],
            "no column 'mixtral_8x7b_cor",
        ),
        ([], HEADER, "has no rows"),
        ([["a", "b", 0, 1]], HEADER, "has one subject only; expected at least two agents"),
        ([["a", "b", 0, "yes"]], HEADER, "'yes' is not whether an answer was right, 0 or 1"),
    ],
    ids=["other columns", "no rows", "one subject", "no answer"],
)
def test_a_table_that_does_not_fit_is_one_clear_error(tmp_path, rows, header, message):
    written(tmp_path, rows, header)
    with pytest.raises(InputError, match=message):
        routellm(tmp_path, **SMALL)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"dim": 100}, "dim=100, but 150 documents with 3. terms have at most"),
        ({"dim": 0}, "dim"),
        ({"rounds": 0}, "rounds"),
        ({"neighbours": 5}, "neighbours"),
        ({"price": "much"}, "price must be a number, got 'much'"),
        ({"seed": -1}, "seed"),
    ],
    ids=str,
)
def test_settings_out_of_range_are_refused(folder, options, message):
    with pytest.raises(ParameterError, match=message):
        routellm(folder, **SMALL | options)


def test_without_scikit_learn_the_extra_is_named(folder, monkeypatch):
    monkeypatch.setattr(text_features, "find_spec", lambda name: None)
    with pytest.raises(MissingExtraError, match=r"coopbandits\[datasets\]"):
        routellm(folder, **SMALL)


@there
def test_the_real_file_has_the_published_counts():
    names, owner, features, right = module.read(str(REAL), 10)
    assert (len(names), len(owner), right.shape) == (57, 14_042, (14_042, 2))
    assert (np.bincount(owner).min(), np.bincount(owner).max()) == (100, 1_534)
    lengths = np.linalg.norm(features, axis=1)
    np.testing.assert_allclose(lengths[lengths > 0], 1.0, atol=1e-12)
    problem = routellm(REAL, rounds=20)
    assert (len(problem.network), problem.horizon) == (57, 20)
    gap = [right[owner == v, 1].mean() - right[owner == v, 0].mean() for v in range(57)]
    np.testing.assert_allclose([min(gap), max(gap)], [-0.29, 0.38], atol=0.005)
