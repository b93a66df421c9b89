"""Formulas of bounds as LaTeX, for papers."""

from __future__ import annotations

import re

#: in order: what stands in formulas, and what LaTeX has for it
_RULES = (
    (r"(after n instructions:|of each)", r"\\text{ \1 }"),
    (r"(?<![\w^])sum (\|[^|]*\|) \(k=(\d+)\.\.(\d+)\)", r"\\sum_{k=\2}^{\3} \1"),
    (r"(?<![\w^])sum (\|[^|]*\|) \(k=([\d,]+)\)", r"\\sum_{k \\in \\{\2\\}} \1"),
    (r"(?<![\w^])sum (?=\|)", r"\\sum_k "),
    (r"(\|[^|]*\|) \(k=(\d+)\.\.(\d+)\)", r"\\max_{k=\2..\3} \1"),
    (r"max\((.*)\)", r"\\max(\1)"),
    (r"\|([^|]*)\|", r"\\lvert \1\\rvert"),
    (r"_(\d+|[a-z]+)°", r"_{\1}^{\\circ}"),
    (r"°", r"^{\\circ}"),
    (r"_(\d\d+)", r"_{\1}"),
    (r"\bexact\b", r"\\mathrm{exact}"),
    (r"\^(-?\d+|\([^()]*\))", lambda found: f"^{{{found[1].strip('()')}}}"),
    (r"<=", r"\\le"),
    (r"\s?\*\s?", r" \\cdot "),
    (r"scale_([ab])", r"\\mathrm{scale}_{\1}"),
)  # fmt: skip


def latex_of(formula: str) -> str:
    """A formula of a bound, as `prove` prints it, without what surrounds it: for display mathematics."""
    for pattern, new in _RULES:
        formula = re.sub(pattern, new, formula)
    return re.sub(r"  +", " ", formula)
