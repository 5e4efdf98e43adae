"""`coop report`: one page of a run."""

import argparse

from coopbandits.lab.report import write_report
from coopbandits.lab.terminal import console
from coopbandits.plain_text import visible


def main(options: argparse.Namespace) -> int:
    """Write the page, and say where it is."""
    file = write_report(options.run, options.out)
    told = visible(f"{file} ({file.stat().st_size / 1000:,.0f} kB)")
    console().print(told, soft_wrap=True, markup=False)
    return 0
