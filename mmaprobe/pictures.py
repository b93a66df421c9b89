"""One evaluation bit by bit, as text and as a picture."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from mmaprobe.arrays import check_rounded, numbers_of, patterns_of
from mmaprobe.named import model_of
from mmaprobe.products import Units, number_of
from mmaprobe.smtmodel.base.errors import ParameterError
from mmaprobe.smtmodel.evaluate.model import Model
from mmaprobe.smtmodel.evaluate.operands import Operands, check_addend
from mmaprobe.smtmodel.operand import FURTHER

if TYPE_CHECKING:
    from mmaprobe.documents.explain import Explain
    from mmaprobe.queries.compare.neighbours import Divergence
    from mmaprobe.smtmodel.explain.explanation import Explanation


@dataclass(frozen=True)
class Explained:
    """The evaluation of one input by one unit or by two. `str()` draws it as text, a notebook shows `svg`.
    `explanations`: the signals of each unit, stage by stage; `divergence`: the first signal that differs, with both
    values."""

    explanations: tuple[Explanation, ...]
    divergence: Divergence | None = None

    @property
    def d(self) -> Any:
        """The result of the (first) unit: one number, in the type of its format."""
        return _number(self.explanations[0])

    @property
    def other(self) -> Any:
        """The result of the second unit; None if only one unit was explained."""
        return _number(self.explanations[1]) if len(self.explanations) > 1 else None

    @property
    def difference(self) -> str | None:
        """Where two units first diverge, in words; None if they agree, or if only one unit was explained."""
        from mmaprobe.reports.words import difference_text

        return None if self.divergence is None else difference_text(self.divergence)

    @property
    def document(self) -> Explain:
        """What `mmaprobe explain --json` prints, as a value whose attributes are its keys."""
        from mmaprobe.reports.evaluations import document_of

        return document_of(self.explanations, self.divergence)

    @property
    def svg(self) -> str:
        """The picture as an SVG document."""
        from mmaprobe.reports.drawings.evaluation_drawing import evaluation_drawing
        from mmaprobe.reports.drawings.svg import svg_of

        return svg_of(evaluation_drawing(self.explanations, self.divergence))

    def _repr_svg_(self) -> str:
        return self.svg

    def __str__(self) -> str:
        from mmaprobe.reports.evaluation_text import drawn
        from mmaprobe.reports.words import difference_text

        lines = [line for canvas in drawn(self.explanations, self.divergence) for line in canvas.lines]
        if len(self.explanations) == 2:
            lines.append(f"first divergence: {difference_text(self.divergence)}")
        return "\n".join(lines)

    def __repr__(self) -> str:
        names = " and ".join(explanation.model.reference for explanation in self.explanations)
        return f"<one evaluation of {names}: print() or .svg shows it>"


def explain(
    unit: Units,
    a: Any,
    b: Any,
    c: Any = None,
    *,
    against: Units | None = None,
    convert: str | None = None,
    **more: Any,
) -> Explained:
    """One evaluation of a unit, stage by stage: what is aligned, what is truncated, how the sum is rounded.

    Shapes: `a` and `b` have at most as many elements as the unit has products (missing ones are zero), `c` is one
    number (default: +0; a unit that does not read c takes none). `more`: the unit's further operands by name, as in a
    `Case`: `scale_a` and `scale_b` have one element for each block of products.

    Units: `unit`, and with `against` a second one for the same input; the place where the two diverge is named and
    marked. Numbers are exact in the unit's formats, or `convert` names a rounding, as for `matmul`.

    Raises MmaprobeError: a wrong type, too many elements, inexact numbers, units of different input formats.

    Source: the signals are those that the model computes with (docs/report.md says how to read the picture).
    """
    from mmaprobe.queries.compare.neighbours import parted
    from mmaprobe.smtmodel.explain.explaining import check_same_inputs
    from mmaprobe.smtmodel.explain.explaining import explain as explained

    models = [model_of("unit", unit), *([] if against is None else [model_of("against", against)])]
    first = models[0]
    for other in models[1:]:
        check_same_inputs(first, other)
    for model in models:
        check_addend(model, c is not None)
    operands = operands_of(first, min(model.length for model in models), (a, b, c), more, convert)
    explanations = tuple(explained(model, operands) for model in models)
    return Explained(explanations, parted(explanations))


def operands_of(
    model: Model, length: int, given: tuple[Any, Any, Any], further: Mapping[str, Any], convert: str | None
) -> Operands[int]:
    """The patterns of one input of at most `length` products. `given`: a, b and c; `further`: the other operands, by
    name. Raises MmaprobeError."""
    a, b, c = given
    x, y = patterns_of("a", a, model.a, 1, convert), patterns_of("b", b, model.b, 1, convert)
    if x.shape != y.shape or len(x) > length:
        raise ParameterError("a and b", f"up to {length} elements of each are wanted, not {len(x)} and {len(y)}")
    z = 0 if c is None else int(patterns_of("c", number_of(c), model.c, 0, convert))
    check_rounded((a, b, number_of(c)), convert)
    if unknown := sorted(map(str, further.keys() - {row.name for row in FURTHER})):
        raise ParameterError(unknown[0], f"{model.reference} takes none")
    rest: list[tuple[int, ...]] = []
    for row, count in zip(FURTHER, model.counts[3:], strict=True):
        side, fmt = further.get(row.name), model.formats.get(row.name)
        if (side is None) != (fmt is None):
            raise ParameterError(row.name, f"{model.reference} {'takes none' if fmt is None else 'needs them'}")
        numbers, axes = (number_of(side), 0) if row.per == "sum" else (side, 1)
        elements = () if fmt is None else np.ravel(patterns_of(row.name, numbers, fmt, axes, None))
        rest.append(tuple(map(int, elements)))
        if len(rest[-1]) != count:
            raise ParameterError(row.name, f"{count} elements are wanted, not {len(rest[-1])}")
    return Operands(tuple(map(int, x)), tuple(map(int, y)), z, tuple(rest))


def _number(explanation: Explanation) -> Any:
    return numbers_of([explanation.result], explanation.model.d)[0]
