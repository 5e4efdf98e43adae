"""Slow, literal twins of the paper's formulas and algorithms. They import nothing of ours."""
