"""Maps, layouts and colours keep what they stand for."""

from base64 import b64decode
from zlib import decompress

import numpy as np
import pytest

import coopbandits as cb
from coopbandits.lab.experiments.runner import network_facts
from coopbandits.lab.report import layout
from coopbandits.lab.report.colours import (
    DARK,
    LIGHT,
    colour_rules,
    contrast,
    legible,
    policy_looks,
)
from coopbandits.lab.report.layout import drawing, positions
from coopbandits.lab.report.matrices import NOT_HEARD, averaged, packed
from coopbandits.lab.similarity import like_together
from coopbandits.palette import COLOURS


def unpacked(text, rows):
    levels = np.frombuffer(decompress(b64decode(text)), dtype=np.uint8).reshape(rows, rows)
    return np.where(levels == NOT_HEARD, np.nan, (levels - 100.0) / 100)


def test_a_map_holds_two_decimals_and_who_is_not_heard(rng):
    matrix = rng.uniform(-1, 1, (9, 9))
    matrix[rng.random((9, 9)) < 0.3] = np.nan
    matrix[0, :2] = 1.0, -1.0
    order = rng.permutation(9)
    held = unpacked(packed(matrix, order, 20), 9)
    np.testing.assert_allclose(held, matrix[np.ix_(order, order)], atol=0.005 + 1e-12)


def test_averaging_is_the_mean_over_blocks_of_what_is_heard(rng):
    matrix = rng.random((7, 7))
    matrix[rng.random((7, 7)) < 0.4] = np.nan
    matrix[:3, :3] = np.nan
    small = averaged(matrix, 3)
    block = [place * 3 // 7 for place in range(7)]
    for i in range(3):
        for j in range(3):
            heard = [
                matrix[u, v]
                for u in range(7)
                for v in range(7)
                if (block[u], block[v]) == (i, j) and np.isfinite(matrix[u, v])
            ]
            assert small[i, j] == pytest.approx(np.mean(heard) if heard else np.nan, nan_ok=True)
    assert np.isnan(small[0, 0])


def test_like_agents_stand_together():
    groups = np.array([0, 1, 2, 0, 1, 2, 0, 1])
    order = like_together(np.equal.outer(groups, groups).astype(float))
    assert sorted(order) == list(range(8))
    assert groups[order].tolist() == [0, 0, 0, 1, 1, 1, 2, 2]


@pytest.fixture
def barbell():
    """Two cliques of five, and one edge between them."""
    edges = [(u + s, v + s) for s in (0, 5) for u in range(5) for v in range(u)]
    return network_facts(cb.Network.from_edges([*edges, (0, 5)]), 1)


def test_cliques_stand_apart_and_the_same_every_time(barbell):
    made = drawing("barbell", barbell, 100)
    assert made == drawing("barbell", barbell, 100)
    at = np.array(made["at"]).reshape(10, 2)
    assert at.min() == 0
    assert at.max() == layout.SIDE
    gaps = np.linalg.norm(at[:, None] - at[None], axis=2)
    groups = np.array(made["cliques"])
    same = np.equal.outer(groups, groups)
    assert gaps[same].max() < gaps[~same].mean()


def test_edges_within_cliques_are_drawn_first_and_none_is_made_up(barbell):
    everything = {tuple(sorted(edge)) for edge in barbell["edges"]}
    for most in (0, 4, 20, 21, 50):
        made = drawing("barbell", barbell, most)
        shown = [tuple(sorted(made["shown"][i : i + 2])) for i in range(0, len(made["shown"]), 2)]
        assert len(shown) == len(set(shown)) == min(most, 21)
        assert set(shown) <= everything
        assert ((0, 5) in shown) == (most >= 21)
        assert made["edges"] == 21


def test_a_large_network_is_drawn_in_part_by_its_best_connected(monkeypatch):
    monkeypatch.setattr(layout, "MOST_AGENTS", 4)
    star = network_facts(cb.Network.from_edges([(6, v) for v in range(6)] + [(0, 1), (0, 2)]), 1)
    made = drawing("star", star, 100)
    assert made["ids"] == [0, 1, 2, 6]
    assert made["agents"] == 7
    assert made["edges"] == 8
    hub = made["ids"].index(6)
    ends = {frozenset(made["shown"][i : i + 2]) for i in range(0, len(made["shown"]), 2)}
    assert ends == {frozenset(e) for e in [(0, hub), (1, hub), (2, hub), (0, 1), (0, 2)]}
    assert all(centre == -1 or centre < 4 for centre in made["centres"])


def test_one_agent_alone_has_a_place():
    assert len(positions(1, (), (0,))) == 2


def test_contrast_is_that_of_the_guidelines():
    assert contrast("#000000", "#ffffff") == pytest.approx(21.0)
    assert contrast("#123456", "#123456") == 1.0
    assert contrast("#767676", "#ffffff") == pytest.approx(4.54, abs=0.005)  # WCAG's known example


@pytest.mark.parametrize("ground", [LIGHT, DARK])
def test_every_colour_stands_out_in_the_light_and_in_the_dark(ground):
    for colour in [*COLOURS, "#555555", LIGHT, DARK]:
        assert contrast(legible(colour, ground), ground) >= 3.0
    assert legible("#0072b2", LIGHT) == "#0072b2"  # what stands out is left alone


def test_policies_that_share_a_colour_differ_in_their_dashes():
    style = {
        f"policy {place}": {"color": COLOURS[place % len(COLOURS)], "linestyle": "-"}
        for place in range(3 * len(COLOURS))
    }
    style["reference"] = {"color": COLOURS[0], "linestyle": "--"}
    looks = policy_looks(style)
    assert len({(look["light"], look["dash"]) for look in looks}) == len(style)
    assert [look["dash"] for look in looks[: len(COLOURS)]] == [""] * len(COLOURS)
    assert colour_rules(looks).count("--p30:") == 2
