"""The statement of a claim about algorithms: a predicate over results of parts, for all or some inputs in windows."""

from __future__ import annotations

import ast
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal

from mmaprobe.smtmodel.algorithms.predicate import parse_predicate
from mmaprobe.smtmodel.algorithms.scene import Shape
from mmaprobe.smtmodel.evaluate.operands import Layout
from mmaprobe.smtmodel.operand import counts_of

Quantifier = Literal["all", "exists"]


@dataclass(frozen=True)
class Assertion:
    """A claim about sums of `terms` products: the predicate `text` holds for all inputs (or for some input) in the
    windows of a shape that meet every predicate of `where`. `zero_addend`: c is +0. With `most`, the claim is about
    every multiple of `terms` products up to `most`."""

    quantifier: Quantifier
    terms: int
    shape: Shape
    zero_addend: bool
    where: tuple[str, ...]
    text: str
    most: int | None = None

    def at(self, terms: int) -> Assertion:
        """The claim about sums of exactly `terms` products."""
        return replace(self, terms=terms, most=None)

    @cached_property
    def predicate(self) -> ast.expr:
        """The predicate as a tree. Raises ParameterError for other text."""
        return parse_predicate(self.text, self.shape.names)

    @cached_property
    def conditions(self) -> tuple[ast.expr, ...]:
        """The predicates of `where` as trees. Raises ParameterError for other text."""
        return tuple(parse_predicate(text, self.shape.names) for text in self.where)

    @cached_property
    def layout(self) -> Layout:
        """The layout of an input's patterns: all a, all b, c."""
        factors, count = self.shape.factors, self.terms
        names = (*(f"{side}{k}" for side in "ab" for k in range(count)), "c")
        return Layout(counts_of("abc", count, 0), (factors,) * (2 * count) + (self.shape.addend,), names)

    def reshaped(self, **changes: Any) -> Assertion:
        """The claim with its shape changed."""
        return replace(self, shape=replace(self.shape, **changes))

    def __str__(self) -> str:
        conditions = "".join(f", {text}" for text in self.where)
        count = f"{self.terms}" if self.most is None else f"{self.terms} n, to {self.most},"
        return f"for {self.quantifier} inputs of {count} products{conditions}: {self.text}"
