"""Formulas of bounds and data sheets as LaTeX, for papers."""

from __future__ import annotations

import re
from collections.abc import Sequence

from mmaprobe.reports.datasheet import Sheet, SheetLine
from mmaprobe.reports.drawings.tikz import TEX

#: character -> its LaTeX in running text
PROSE = TEX | {"-": "-", " ": " ", "/": r"/\allowbreak{}", "<": "$<$", ">": "$>$", "|": r"$\vert$", "°": r"$^{\circ}$"}
COLUMNS = (
    r"@{}>{\raggedright}p{.24\linewidth}>{\raggedright}p{.4\linewidth}>{\raggedright\arraybackslash}p{.28\linewidth}@{}"
)
#: in order: patterns of formulas, and their LaTeX
_RULES = (
    (r"(after n instructions:|of each, added up)", r"\\text{ \1 }"),
    (r"(?<![\w^])sum (\|[^|]*\|) \(k=(\d+)\.\.(\d+)\)", r"\\sum_{k=\2}^{\3} \1"),
    (r"(?<![\w^])sum (\|[^|]*\|) \(k=([\d,]+)\)", r"\\sum_{k \\in \\{\2\\}} \1"),
    (r"(?<![\w^])sum (?=\|)", r"\\sum_k "),
    (r"max\((\|[^|]*\| \(k=\d+\.\.\d+\))\)", r"\1"),
    (r"(\|[^|]*\|) \(k=(\d+)\.\.(\d+)\)", r"\\max_{k=\2..\3} \1"),
    (r"(?<![\w\\])max\(", r"\\max("),
    (r"(?<![\w\\])max (?=\|)", r"\\max "),
    (r"\|([^|]*)\|", r"\\lvert \1\\rvert"),
    (r"scale_([ab])_(\w+)", r"\\mathrm{scale}_{\1,\2}"),
    (r"scale_([ab])", r"\\mathrm{scale}_{\1}"),
    (r"_(\d+|[a-z]+)°", r"_{\1}^{\\circ}"),
    (r"°", r"^{\\circ}"),
    (r"_(\d\d+)", r"_{\1}"),
    (r"\bexact\b", r"\\mathrm{exact}"),
    (r"\^(-?\d+)", r"^{\1}"),
    (r"\^\(((?:[^()]|\([^()]*\))*)\)", r"^{\1}"),
    (r"<=", r"\\le"),
    (r"\s?\*\s?", r" \\cdot "),
)  # fmt: skip


def latex_of(formula: str) -> str:
    """A formula of a bound, as `prove` prints it, for display mathematics, without the delimiters."""
    for pattern, new in _RULES:
        formula = re.sub(pattern, new, formula)
    return re.sub(r"  +", " ", formula)


def latex_of_bounds(bounds: Sequence[tuple[str, str]], conditions: str) -> str:
    """Formulas of bounds, each after its subject, and the conditions of all of them: text that stands by itself. `G` is
    defined, after `where`, in the formula that contains it."""
    lines = ["% needs \\usepackage{amsmath}"]
    for about, formula in bounds:
        formula, growth = _defined(formula)
        about = re.sub(r"(K = [^,]*|\bK\b|\bn$)", r"$\1$", about, count=2)
        lines += [f"For {_conditions(about)}:"] if about else []
        lines.append(rf"\[ {formula} \]")
        lines += [rf"where \({growth}\)."] if growth else []
    return "\n".join([*lines, *([f"This holds where {_conditions(conditions)}."] if conditions else [])])


def _defined(formula: str) -> tuple[str, str]:
    """The LaTeX of a formula, and of the definition of `G` that follows it after `where`, else nothing."""
    shown, _, growth = formula.partition(" where ")
    return latex_of(shown), latex_of(growth)


def _conditions(text: str) -> str:
    """Running text in which formulas stand between dollars already, or are powers of two."""
    text = re.sub(r"\b2\^(-?[0-9]+)", r"$2^{\1}$", text)
    plain = [part if number % 2 else _prose(part) for number, part in enumerate(text.split("$"))]
    return "$".join(plain)


def latex_of_sheets(sheets: Sequence[Sheet]) -> str:
    """Data sheets as LaTeX: one table for each, which may go on to further pages."""
    return "\n".join([r"% needs \usepackage{amsmath,array,longtable}", *(_table(sheet) for sheet in sheets)])


def _table(sheet: Sheet) -> str:
    notes = sheet.notes
    rows = [(_prose(line.name), _value(line), f"[{notes[line.basis]}]" if line.basis in notes else _prose(line.basis))
            for line in sheet.lines]  # fmt: skip
    about = [", ".join(sheet.instructions), sheet.basis, *(f"[{number}] {text}" for text, number in notes.items())]
    return "\n".join([
        rf"\paragraph{{{_prose(sheet.title)}}}",
        rf"\begin{{longtable}}{{{COLUMNS}}}",
        r"property & value & basis \\ \hline \endhead",
        *(rf"{' & '.join(row)} \\" for row in rows),
        r"\end{longtable}",
        *(rf"\noindent {_prose(text)}\par" for text in about), "",
    ])  # fmt: skip


def _value(line: SheetLine) -> str:
    if not line.value.startswith("|"):
        return _prose(line.value)
    formula, growth = _defined(line.value)
    return f"${formula}$ where ${growth}$" if growth else f"${formula}$"


def _prose(text: str) -> str:
    return r"$\to$".join("".join(PROSE.get(letter, letter) for letter in part) for part in text.split("->"))
