"""`coop report`: one page of a run, and its figures and tables for a document."""

import argparse

from coopbandits.lab.report import write_report
from coopbandits.lab.terminal import show_words


def main(options: argparse.Namespace) -> int:
    """Write the page, and the figures if asked for, and say where they are."""
    files = [write_report(options.run, options.out)]
    if options.figures:
        from coopbandits.lab.experiments.latex import write_latex  # noqa: PLC0415 (matplotlib)

        files += write_latex(options.run)
    show_words([f"{file} ({max(1, round(file.stat().st_size / 1000)):,} kB)" for file in files])
    return 0
