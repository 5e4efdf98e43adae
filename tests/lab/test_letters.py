"""What cannot be written as it is stands in letters that everybody has."""

import pytest

from coopbandits.lab.letters import _WRITTEN, written

TEXTS = {
    "γ = 3 ± 0.5": {"ascii": "gamma = 3 +/- 0.5", "latin-1": "gamma = 3 ± 0.5"},
    "Erdős-Rényi": {"ascii": "Erdos-Renyi", "latin-1": "Erdos-Rényi"},
    "5 × 10² ≥ √T … 連": {"ascii": "5 x 102 >= sqrtT ... ?", "latin-1": "5 × 10² >= sqrtT ... ?"},
}


@pytest.mark.parametrize("text", TEXTS)
def test_a_text_keeps_what_can_be_written_and_spells_the_rest(text):
    for encoding, plain in TEXTS[text].items():
        assert written(text, encoding) == plain
    assert written(text, "utf-8") == text


def test_whatever_stands_for_a_letter_is_ascii_and_no_letter_is_lost():
    for letter, plain in _WRITTEN.items():
        assert not letter.isascii()
        assert plain
        assert plain.isascii()
