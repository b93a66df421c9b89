"""The error of a claim that reads a result that is no number, for an input with such a result."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from mmaprobe.hypotheses.claim import Claim
from mmaprobe.queries.kernel.questions.scene import lanes_of
from mmaprobe.queries.search.witness import Row
from mmaprobe.smtmodel.algorithms.exact import Fixed
from mmaprobe.smtmodel.algorithms.scene import Scene
from mmaprobe.smtmodel.arithmetic.display import exact_value, value_text
from mmaprobe.smtmodel.base.errors import InputError
from mmaprobe.smtmodel.evaluate.batch import to_integers
from mmaprobe.smtmodel.plans.dot import RESULT


def no_number(claim: Claim, row: Row) -> InputError:
    """The error of a condition, or of the claim, that reads a result that is no number on this input."""
    with np.errstate(over="ignore"):
        scene = lanes_of(claim.assertion, np.array([row], dtype=np.uint64))
        key, part = _reader(claim, scene)
        pattern, fmt = int(to_integers(scene.steps(part)[RESULT], 1)[0]), claim.shape.parts[part].result
        why = _why(exact_value(pattern, fmt), scene.exact(), part)
    shown = ", ".join(f"{name} = {x:#x}" for name, x in zip(claim.layout.names, row, strict=True) if x)
    return claim.file.error(key, f"{part} gives {value_text(pattern, fmt)} for {shown or 'zeros'}: {why}")


def _reader(claim: Claim, scene: Scene) -> tuple[tuple[str | int, ...], str]:
    """The key of the first predicate that reads a result that is no number, and the part that gives this result."""
    asked = [(("inputs", "where", place), tree) for place, tree in enumerate(claim.assertion.conditions)]
    for key, tree in (*asked, (("claim",), claim.assertion.predicate)):
        for part, number in scene.truth(tree).reads.items():
            if not to_integers(number, 1)[0]:
                return key, part
    raise ValueError("every value that is read is a number")


def _why(value: Fraction | str, grid: Fixed, part: str) -> str:
    if isinstance(value, str):
        return f"no number; narrow the exponents, or let inputs.where begin with finite({part})"
    if abs(value) < Fraction(2) ** (grid.unit + grid.bits.width - 1):
        return f"it lies below the grid of exact sums, the multiples of 2^{grid.unit}"
    return (
        f"it lies beyond the exact sums that the exponents allow, which are below 2^{grid.unit + grid.bits.width - 1}"
    )
