"""Progress of a run: a bar where somebody watches, with what would be faster if it takes long.

The one file of core that looks at a screen and a clock; `tqdm`, which draws the bar, is an extra.
"""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import monotonic
from typing import Any

from coopbandits.errors import MissingExtraError

# Operations a second, roughly, of one core; and a run of more seconds than this takes long.
_SPEED = 2e9
LONG = 60.0
# Seconds after which a run says how long it will take, if that is long and was not known before.
_LOOK = 10.0


def seconds_of(work: float) -> float:
    """Return about how many seconds so many operations take."""
    return work / _SPEED


@contextmanager
def shown(
    wanted: bool | None, rounds: int, work: float, advice: str
) -> Iterator[Callable[[float], None] | None]:
    """Show a bar; yields what is told each round's regret per agent, or None.

    Args:
        wanted: Whether it is; None: if the run will take long, and somebody watches. That is
            judged by its operations before it starts, and by the time that rounds took later.
        rounds: T.
        work: How many operations the run takes, roughly; 0 if that is not known.
        advice: What would be faster; empty if nothing is known.
    """
    if wanted is False or (wanted is None and not _is_watched()):
        yield None
        return
    progress = _Progress(rounds, advice)
    if wanted or seconds_of(work) >= LONG:
        progress.show(seconds_of(work), must=wanted is True)
    try:
        yield progress.on_regret
    finally:
        progress.close()


class _Progress:
    """A bar that is there from the start, or once a run turns out to take long."""

    def __init__(self, rounds: int, advice: str) -> None:
        self._rounds, self._done, self._total = rounds, 0, 0.0
        self._advice = advice or "; fewer rounds, fewer agents or a smaller ttl would be faster"
        self._began, self._is_shown = monotonic(), False
        self._bar: Any = None

    def show(self, seconds: float, *, must: bool = False) -> None:
        """Show the bar, and say how long it will take where that is long."""
        self._is_shown = True
        warning = f"{self._rounds} rounds will take about {said(seconds)}{self._advice}"
        try:
            from tqdm.auto import tqdm  # noqa: PLC0415 (an extra)
        except ModuleNotFoundError as error:
            if not must:
                sys.stderr.write(f"{warning}; pip install 'coopbandits[progress]' shows a bar\n")
                return
            raise MissingExtraError(
                "tqdm is not installed, and progress=True needs it; try: "
                "pip install 'coopbandits[progress]'"
            ) from error
        if seconds >= LONG:
            tqdm.write(warning, file=sys.stderr)
        self._bar = tqdm(total=self._rounds, unit="round", initial=self._done)

    def on_regret(self, regret: float) -> None:
        """Count a round."""
        self._done += 1
        self._total += regret
        if self._bar is not None:
            self._bar.set_postfix_str(f"regret per agent {self._total:.4g}", refresh=False)
            self._bar.update()
        elif not self._is_shown:
            passed = monotonic() - self._began
            whole = passed * self._rounds / self._done
            if passed >= _LOOK and whole >= LONG:
                self.show(whole)

    def close(self) -> None:
        """Leave the bar as it is."""
        if self._bar is not None:
            self._bar.close()


def _is_watched() -> bool:
    """Tell whether there is a terminal, or a notebook."""
    return sys.stderr.isatty() or "ipykernel" in sys.modules


def said(seconds: float) -> str:
    """Say how long something takes, in the unit that suits it."""
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
