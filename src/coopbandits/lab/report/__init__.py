"""A run as one offline page.

page.py       how is a run one file that opens anywhere? the template, filled, within its limit
content.py    what does the page show? everything as one value for JSON
headline.py   what is the finding in a sentence?
matrices.py   how are K_z, learnt and true, kept small?
layout.py     where does each agent of a network stand?
colours.py    which colours can be read in the light and in the dark?

template.html, report.css and the scripts are what a browser gets; the scripts draw by hand and load
nothing.
"""

from coopbandits.lab.report.page import write_report

__all__ = ["write_report"]
