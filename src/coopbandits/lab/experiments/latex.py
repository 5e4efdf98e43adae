r"""What of a run goes into a document of LaTeX? Its figure as PDF, and its finals as tables.

\usepackage{graphicx, booktabs}
\includegraphics[width=\textwidth]{figures/regret.pdf}
\input{figures/finals.tex}
"""

from io import BytesIO
from pathlib import Path

from coopbandits.comparison import Mean
from coopbandits.lab.experiments.figures import regret_figure, write_figures
from coopbandits.lab.experiments.store import Store, read_store
from coopbandits.lab.experiments.summary import Summary, summaries
from coopbandits.lab.experiments.whole_files import write_whole

_SPECIAL = {
    "\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}",
    **{letter: f"\\{letter}" for letter in "&%$#_{}"},
    **{letter: f"${name}$" for letter, name in {
        "α": r"\alpha", "β": r"\beta", "γ": r"\gamma", "ε": r"\varepsilon", "η": r"\eta",
        "λ": r"\lambda", "ρ": r"\rho", "σ": r"\sigma", "τ": r"\tau", "±": r"\pm", "×": r"\times",
        "√": r"\surd", "≥": r"\ge", "≤": r"\le", "−": "-", "∞": r"\infty", "→": r"\to",
    }.items()},
    "–": "--", "…": r"\dots{}",
}  # fmt: skip


def write_latex(run: str | Path) -> list[Path]:
    """Write a run's figure as PDF, SVG and PNG and its finals as LaTeX; return where they are.

    The same run gives the same bytes.

    Args:
        run: The folder that `run_experiment` made; the run need not be finished.
    """
    store = read_store(run)
    found = summaries(store)
    if not found:
        return []
    write_figures(store)
    folder = store.folder / "figures"
    write_whole(folder / "regret.pdf", _pdf(store, found))
    write_whole(folder / "finals.tex", finals_table(store, found).encode())
    return [folder / name for name in ("regret.pdf", "regret.svg", "regret.png", "finals.tex")]


def _pdf(store: Store, found: list[Summary]) -> bytes:
    import matplotlib  # noqa: PLC0415 (heavy)

    packed = BytesIO()
    with matplotlib.rc_context({"pdf.fonttype": 42}):  # as publishers ask for it
        regret_figure(store, found).savefig(packed, format="pdf", metadata={"CreationDate": None})
    return packed.getvalue()


def finals_table(store: Store, found: list[Summary]) -> str:
    """Lay out final regrets: a table for each problem, a policy a row, a network a column.

    The least of each column is bold; a policy drawn dashed is a reference, and no candidate.
    """
    experiment = store.experiment
    finals = {(s.cell.problem, s.cell.network, s.cell.policy): s.final for s in found}
    trials = sorted({s.trials for s in found})
    text = (
        f"% {' '.join(experiment.name.split())}: regret per agent after {experiment.rounds} "
        f"rounds, mean ± half of its 95% interval, {' to '.join(map(str, trials))} trial(s)\n"
        "% needs \\usepackage{booktabs}\n"
    )
    for problem in dict.fromkeys(s.cell.problem for s in found):
        networks = [n for n in experiment.networks if any(k[:2] == (problem, n) for k in finals)]
        policies = [p for p in experiment.policies if any(k[::2] == (problem, p) for k in finals)]
        best = {
            network: min(
                (
                    finals[problem, network, policy].value
                    for policy in policies
                    if (problem, network, policy) in finals
                    and not experiment.policies[policy].get("dashed")
                ),
                default=None,
            )
            for network in networks
        }
        lines = [
            f"% {' '.join(problem.split())}",
            rf"\begin{{tabular}}{{l{'r' * len(networks)}}}",
            r"\toprule",
            _row(["", *map(escaped, networks)]),
            r"\midrule",
        ]
        for policy in policies:
            cells = [finals.get((problem, network, policy)) for network in networks]
            shown = [_cell(one, best[n]) for one, n in zip(cells, networks, strict=True)]
            lines.append(_row([escaped(policy), *shown]))
        text += "\n".join([*lines, r"\bottomrule", r"\end{tabular}", ""])
    return text


def escaped(name: str) -> str:
    """Write a name so that LaTeX sets it as it is; K_z is set as a formula."""
    parts = " ".join(name.split()).split("K_z")
    return "$K_z$".join("".join(_SPECIAL.get(c, c) for c in part) for part in parts)


def _row(cells: list[str]) -> str:
    return " & ".join(cells) + r" \\"


def _cell(final: Mean | None, best: float | None) -> str:
    if final is None:
        return "--"
    mean, _, half = str(final).partition(" ± ")
    shown = rf"\mathbf{{{mean}}}" if final.value == best else mean
    return f"${shown} \\pm {half}$" if half else f"${shown}$"
