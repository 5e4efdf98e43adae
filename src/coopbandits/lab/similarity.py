"""How near is a learnt K_z to the truth, over time? A table and a figure, of any run."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from coopbandits.arrays import Array, IntArray, as_count
from coopbandits.errors import ParameterError, ShapeError
from coopbandits.gp.network_kernel import DenseKernel, NetworkKernel, dense
from coopbandits.palette import COLOURS, UNHEARD
from coopbandits.problems.changing import Changing
from coopbandits.problems.continuum import Continuum
from coopbandits.problems.problem import Simulated
from coopbandits.run import MOST_SHOWN, Run
from coopbandits.similarity import as_similarity, network_kernel

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class SimilarityRow:
    """What agents took others to be worth in one round, over all pairs that listen.

    Attributes:
        round: t.
        alike: Mean K_z over pairs whose true one is at least a half; NaN if there are none.
        strangers: Mean K_z over the other pairs; NaN if there are none.
        error: Mean |K_z − truth|.
        correlation: Of K_z with the truth over pairs; NaN where one of them is constant.
    """

    round: int
    alike: float
    strangers: float
    error: float
    correlation: float


def similarity_table(
    run: Run,
    truth: Simulated | Changing | Continuum | Array,
    *,
    rounds: Sequence[int] | None = None,
) -> list[SimilarityRow]:
    """Compare a run's K_z with the true one.

    Args:
        run: Any run.
        truth: The problem that was played, where it knows its true K_z, or that matrix (V, V).
        rounds: Which rounds; those in which some agent's K_z changed, if not given.
    """
    others = run.sources.rows != run.sources.agents
    v, u = run.sources.rows[others], run.sources.agents[others]
    true = _kernel(truth, len(run.sources)).between(v, u)
    T = len(run.regret)
    since = np.array([t for t, _ in run.worth])
    chosen = since.tolist() if rounds is None else [as_count(t, "t", most=T) for t in rounds]
    held = [int(np.searchsorted(since, t, side="right")) - 1 for t in chosen]
    return [_row(t, run.worth[at][1][others], true) for t, at in zip(chosen, held, strict=True)]


def similarity_figure(
    run: Run,
    truth: Simulated | Changing | Continuum | Array,
    *,
    rounds: Sequence[int] | None = None,
    title: str = "",
    file: str | Path | None = None,
) -> "Figure":
    """Draw K_z at some rounds beside the truth, and how it comes near it over time.

    Agents are ordered so that those who are truly alike stand together. Needs matplotlib.

    Args:
        run: As in `similarity_table`.
        truth: As in `similarity_table`.
        rounds: Up to four rounds to draw; spread over the run, if not given.
        title: Above the figure.
        file: Where to save it, if anywhere.
    """
    from matplotlib.figure import Figure  # noqa: PLC0415 (core and CLI start without it)

    T, V = run.regret.shape
    if V > MOST_SHOWN:
        raise ParameterError(
            f"a picture of {V:,} × {V:,} cells shows nothing; expected at most {MOST_SHOWN:,} "
            "agents; similarity_table compares any number"
        )
    K_true = dense(_kernel(truth, V))
    given = sorted({max(1, round(T * share)) for share in (0.05, 0.15, 0.5, 1.0)})
    shown = given if rounds is None else [as_count(t, "a round", most=T) for t in rounds]
    if not 1 <= len(shown) <= 4:
        raise ParameterError(f"rounds must name 1 to 4 rounds, got {len(shown)}")
    order = like_together(K_true)
    listens = np.asarray(run.listens)[np.ix_(order, order)]
    figure = Figure(figsize=(2.5 * (len(shown) + 1) + 0.6, 6.0), dpi=150, layout="constrained")
    grid = figure.add_gridspec(2, len(shown) + 1, height_ratios=[1.0, 1.0])
    panels = [("truth", K_true), *((f"round {t}", run.similarity(t)) for t in shown)]
    image: Any = None
    axes = []
    for column, (name, K_z) in enumerate(panels):
        axis = figure.add_subplot(grid[0, column])
        drawn = np.where(listens, K_z[np.ix_(order, order)], np.nan)
        image = axis.imshow(drawn, vmin=0.0, vmax=1.0, cmap="viridis", interpolation="nearest")
        axis.patch.set(facecolor=UNHEARD, edgecolor="white", hatch="////")
        axis.set(title=name, xticks=[], yticks=[])
        axes.append(axis)
    axes[0].set_ylabel("agent that judges")
    axes[0].set_xlabel("agent judged; hatched: not heard")
    figure.colorbar(image, ax=axes, label="K_z", shrink=0.9)
    _draw_course(figure.add_subplot(grid[1, :]), similarity_table(run, truth), T)
    if title:
        figure.suptitle(title)
    if file is not None:
        figure.savefig(file, metadata={"Software": None})
    return figure


def like_together(K_true: Array) -> IntArray:
    """Order agents so that those alike stand together: from each agent to the likest one left."""
    left = np.ones(len(K_true), dtype=np.bool_)
    order = [0]
    left[0] = False
    while left.any():
        following = int(np.argmax(np.where(left, K_true[order[-1]], -np.inf)))
        order.append(following)
        left[following] = False
    return np.array(order, dtype=np.int64)


def _draw_course(axis: Any, table: list[SimilarityRow], T: int) -> None:
    """Draw how K_z develops: means over pairs that are alike and over strangers."""
    t = [*(row.round for row in table), T]
    for name, colour, label in [
        ("alike", COLOURS[0], "pairs truly alike"),
        ("strangers", COLOURS[1], "pairs truly strangers"),
    ]:
        values = [getattr(row, name) for row in table]
        if np.isfinite(values).any():
            axis.step(t, [*values, values[-1]], where="post", color=colour, lw=2, label=label)
    axis.set(xlabel="round", ylabel="mean K_z", xlim=(1, T), ylim=(-0.02, 1.02))
    axis.spines[["top", "right"]].set_visible(False)
    axis.grid(alpha=0.25)
    axis.legend(frameon=False, loc="center right")


def _kernel(truth: Simulated | Changing | Continuum | Array, V: int) -> NetworkKernel:
    kernel: NetworkKernel
    if isinstance(truth, Simulated | Changing | Continuum):
        if truth.similarity is None:
            raise ParameterError(f"{truth!r} does not know its true K_z; give it as a matrix")
        kernel = network_kernel(truth.similarity, truth.network)
    else:
        kernel = DenseKernel(as_similarity(truth))
    if len(kernel) != V:
        raise ShapeError(f"the true K_z is for {len(kernel)} agents, but the run has {V}")
    return kernel


def _row(t: int, mine: Array, true: Array) -> SimilarityRow:
    """Compare pairs: (n,), (n,)."""
    alike = true >= 0.5
    varies = len(mine) > 1 and np.ptp(mine) > 0 and np.ptp(true) > 0
    return SimilarityRow(
        round=t,
        alike=float(mine[alike].mean()) if alike.any() else float("nan"),
        strangers=float(mine[~alike].mean()) if (~alike).any() else float("nan"),
        error=float(np.abs(mine - true).mean()) if len(mine) else float("nan"),
        correlation=float(np.corrcoef(mine, true)[0, 1]) if varies else float("nan"),
    )
