"""Progress of a run: a bar where somebody watches, with what would be faster if it takes long.

The one file of core that looks at a screen; `tqdm`, which draws the bar, is an extra.
"""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from coopbandits.errors import MissingExtraError

# Operations a second, roughly, of one core; and a run of more seconds than this takes long.
_SPEED = 2e9
_LONG = 60.0


@contextmanager
def shown(
    wanted: bool | None, rounds: int, work: float, advice: str
) -> Iterator[Callable[[float], None] | None]:
    """Show a bar; yields what is told each round's regret per agent, or None.

    Args:
        wanted: Whether it is; None: if the run will take long, and somebody watches.
        rounds: T.
        work: How many operations the run takes, roughly.
        advice: What would be faster; empty if nothing is known.
    """
    seconds = work / _SPEED
    if wanted is False or (wanted is None and (seconds < _LONG or not _is_watched())):
        yield None
        return
    warning = f"{rounds} rounds will take about {_said(seconds)}{advice}"
    try:
        from tqdm.auto import tqdm  # noqa: PLC0415 (an extra)
    except ModuleNotFoundError as error:
        if wanted is None:
            sys.stderr.write(f"{warning}; pip install 'coopbandits[progress]' shows a bar\n")
            yield None
            return
        raise MissingExtraError(
            "tqdm is not installed, and progress=True needs it; try: "
            "pip install 'coopbandits[progress]'"
        ) from error
    if seconds >= _LONG:
        tqdm.write(warning, file=sys.stderr)
    with tqdm(total=rounds, unit="round") as bar:
        total = 0.0

        def on_regret(regret: float) -> None:
            nonlocal total
            total += regret
            bar.set_postfix_str(f"regret per agent {total:.4g}", refresh=False)
            bar.update()

        yield on_regret


def _is_watched() -> bool:
    """Tell whether there is a terminal, or a notebook."""
    return sys.stderr.isatty() or "ipykernel" in sys.modules


def _said(seconds: float) -> str:
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
