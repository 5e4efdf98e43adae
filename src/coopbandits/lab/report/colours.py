"""Which colours can be read in the light and in the dark?"""

from collections.abc import Iterable, Mapping
from typing import Any

from coopbandits.palette import GROUPS

LIGHT, DARK = "#ffffff", "#1a1d23"
"""The grounds that charts stand on; report.css has the same."""
_CONTRAST = 3.0  # WCAG 2.1 asks for it of what is drawn
_STRONGEST, _COLOURED = 11.0, 5.0  # white would glare in the dark; a pale colour is none
_DASHES = ("", "7 4", "2 4", "10 3 2 3", "4 2 1 2")


def contrast(one: str, other: str) -> float:
    """Return how far apart two colours are in luminance (WCAG 2.1): 1 for the same, up to 21."""
    darker, lighter = sorted((_luminance(one), _luminance(other)))
    return (lighter + 0.05) / (darker + 0.05)


def legible(colour: str, ground: str, least: float = _CONTRAST) -> str:
    """Return the colour, or the nearest one towards black or white that stands out enough."""
    end = "#000000" if _luminance(ground) > 0.2 else "#ffffff"
    for percent in range(0, 101, 2):
        mixed = _mixed(colour, end, percent / 100)
        if contrast(mixed, ground) >= least:
            return mixed
    return end


def policy_looks(style: Mapping[str, Mapping[str, Any]]) -> list[dict[str, str]]:
    """Return colours and dashes of policies; where colours come again, dashes tell them apart."""
    looks: list[dict[str, str]] = []
    taken = set()
    for name, look in style.items():
        first = 0 if look["linestyle"] == "-" else 1
        dashes = [*_DASHES[first:], *_DASHES[:first]]
        dash = next((d for d in dashes if (look["color"], d) not in taken), dashes[0])
        taken.add((look["color"], dash))
        light = legible(look["color"], LIGHT)
        # what stands out in the light, as black does, shall do so in the dark
        most = _STRONGEST if len(set(_channels(light))) == 1 else _COLOURED
        dark = legible(look["color"], DARK, min(contrast(light, LIGHT), most))
        looks.append({"name": name, "light": light, "dark": dark, "dash": dash})
    return looks


def colour_rules(looks: Iterable[Mapping[str, str]]) -> str:
    """Write the colours of policies and of groups as CSS; paper is always light."""
    made = list(looks)
    rules = {
        mode: "".join(f"--p{place}:{look[mode]};" for place, look in enumerate(made))
        + "".join(f"--g{place}:{legible(one, ground)};" for place, one in enumerate(GROUPS))
        for mode, ground in (("light", LIGHT), ("dark", DARK))
    }
    return (
        f":root{{{rules['light']}}}\n"
        f"@media screen and (prefers-color-scheme: dark){{:root{{{rules['dark']}}}}}\n"
    )


def _channels(colour: str) -> list[int]:
    return [int(colour[place : place + 2], 16) for place in (1, 3, 5)]


def _mixed(colour: str, end: str, share: float) -> str:
    pairs = zip(_channels(colour), _channels(end), strict=True)
    return "#" + "".join(f"{round(a + (b - a) * share):02x}" for a, b in pairs)


def _luminance(colour: str) -> float:
    linear = []
    for value in _channels(colour):
        c = value / 255
        linear.append(c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4)
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
