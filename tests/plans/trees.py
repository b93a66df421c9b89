"""The summation tree of a stage, by its steps."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from mmaprobe.queries.order import tree
from mmaprobe.smtmodel.base.errors import ParameterError
from mmaprobe.smtmodel.evaluate.model import Model
from mmaprobe.smtmodel.nodes.round import Rounding
from mmaprobe.smtmodel.plans import Stage
from mmaprobe.smtmodel.plans.engine import Engine
from mmaprobe.smtmodel.plans.span import Span
from mmaprobe.smtmodel.plans.words import Words


class Trees(Engine[tree.Node | int | None]):
    """The tree of a stage, by its steps."""

    def zero(self, fmt: object) -> None:
        return None

    def tile(self, model: Model, words: Words, span: Span, start: tree.Node | int | None) -> tree.Node | int:
        (place,) = span.places
        return place if start is None else tree.Node("binary", (start, place))

    def rounded(self, values: Sequence[tree.Node | int | None], rounding: Rounding) -> tree.Node | int | None:
        some = [value for value in values if value is not None]
        return some[0] if len(some) == 1 else tree.Node("binary", tuple(some))

    def lost(self, values: Sequence[Any], total: Any, rounding: Rounding) -> None:
        return None


def tree_by_steps(stage: Stage, length: int) -> tree.Node | int | None:
    """None for a number of products that the stage does not take."""
    with suppress(ParameterError):
        return stage.run(Trees(), Span.of(length), None)
    return None
