"""Plan files: the text of a plan in YAML. Steps are expressions as in unit files (smtmodel/units/unitfile.py), and

    sum(STAGE, start)                           all products, added by a stage; from +0 where no start is given

where a STAGE says how:

    mma                                         a name of `units`: tiles in order, each result the next one's addend
    chain(mma, tail=STAGE)                      the same; what fills no tile goes through a stage, not beside zeros
    promote(128, STAGE, r, even=1)              each 128 products summed from +0, added to the accumulator, rounded;
                                                with even, the last two sums are equally long, with share, all of
                                                them; or with tail=STAGE
    split(4, STAGE, r, order=pairwise, grain=64)    four runs of K, of multiples of 64, summed apart, then added
    split([96, 256], STAGE, r, order=pairwise)  runs of K that end after 96 products, after 256, and at the end
    interleave(4, STAGE, r, order=sequential, grain=2, tail=STAGE)    four accumulators that take 2 products in turn
    lanes(STAGE, r, 8, fold(2, 4), 4, fold(4, 1), head=4, tail=STAGE)    8 lanes take a product each in turn, what is
                                                left goes to 4 lanes, pairs of the first ones that are 4 apart; these
                                                are added; with head, a short turn of multiples of 4 comes first;
                                                with unroll=16, the 8 lanes take multiples of 16 products
    halve(8, STAGE, r, grain=8, first=smaller)  pairwise summation down to 8 products
    turns(8, STAGE, tail=STAGE)                 each 8 products go through a stage, from the sum so far
    swizzle(2, STAGE, grain=4)                  the stage over the first 4 of every 8 products, then once more over
                                                the others, from the sum so far
    whole(8, STAGE, tail=STAGE)                 multiples of 8 go through a stage, what is left over through another one
    whole(4, STAGE, head=STAGE)                 the same, but what is left over comes first (4 where nothing is)
    first(4, STAGE, STAGE)                      the first 4 products through one stage, the others through another one
    r(STAGE)                                    a stage's result rounded, by a rounding of `roundings`
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, ClassVar

from pydantic import Field

from mmaprobe.smtmodel.base.errors import MmaprobeError, ParameterError, UnknownNameError
from mmaprobe.smtmodel.base.yamlfile import YamlFile, read_yaml, validate
from mmaprobe.smtmodel.evaluate.model import Model
from mmaprobe.smtmodel.nodes import Constant, Node
from mmaprobe.smtmodel.nodes.round import Rounding
from mmaprobe.smtmodel.plans.plan import Plan, Products
from mmaprobe.smtmodel.plans.stages import (
    HALVES,
    ORDERS,
    Chain,
    First,
    Fold,
    Halves,
    Interleaved,
    Lanes,
    Promoted,
    Rounded,
    Split,
    Stage,
    Swizzled,
    Turns,
    Uneven,
    Whole,
    Windows,
)
from mmaprobe.smtmodel.units.unitfile import WRITTEN, ExpressionReader, MistakeError, Scope
from mmaprobe.smtmodel.units.unitkeys import ExpressionFile

#: how each stage is written that is a call
STAGES = {
    "chain": "chain(UNIT, tail=STAGE)",
    "promote": "promote(NUMBER, STAGE, ROUNDING)",
    "split": "split(NUMBER, STAGE, ROUNDING)",
    "interleave": "interleave(NUMBER, STAGE, ROUNDING)",
    "lanes": "lanes(STAGE, ROUNDING, LANES, ...)",
    "halve": "halve(NUMBER, STAGE, ROUNDING)",
    "windows": "windows(NUMBER, STAGE, ROUNDING)",
    "turns": "turns(NUMBER, STAGE)",
    "swizzle": "swizzle(NUMBER, STAGE)",
    "whole": "whole(NUMBER, STAGE)",
    "first": "first(NUMBER, STAGE, STAGE)",
}
CALLS = ("sum", "exact", "round", "cut", "product", "number", "relu")
OTHERS = {"fold": "fold(WAYS, PLACES)", "sum": "sum(STAGE, START)"}


class _File(ExpressionFile):
    plan: str
    units: dict[str, str]
    convert: dict[str, str] = Field(default_factory=dict)


def parse_plan(text: str, name: str, model_of: Callable[[str], Model], *, whole: bool = False) -> Plan:
    """The plan of a text; `name` is that of its file, `model_of` gives the units. `whole`: every step has to
    be used. Raises InputError with file, line, key and column."""
    return _Reader(read_yaml(text, name), model_of).plan(whole)


class _Reader(ExpressionReader):
    calls: ClassVar[tuple[str, ...]] = CALLS
    written: ClassVar[Mapping[str, str]] = WRITTEN | STAGES | OTHERS

    def __init__(self, file: YamlFile, model_of: Callable[[str], Model]) -> None:
        self.data = validate(file, _File)
        self.models: dict[str, Model] = {}
        super().__init__(file, self.data)
        for name in self.data.units:
            self.models[self._new_name(name, "units")] = self._model(name, model_of)

    def _taken(self) -> tuple[str, ...]:
        return (*super()._taken(), *STAGES, "fold", *self.models)

    def plan(self, whole: bool) -> Plan:
        data, formats = self.data, self.formats
        if "scale" in formats:
            raise self.file.error(("formats", "scale"), "the scale factors of a plan are those of its units")
        self.read_roundings()
        convert = {side: self._conversion(side, name) for side, name in data.convert.items()}
        result = self.result()
        try:
            plan = Plan(
                formats["a"], formats["b"], formats["c"], result, convert.get("a"), convert.get("b"),
                reference=data.plan, place=self.file.place(("steps", "d")),
                about=data.about, source=data.source, evidence=data.evidence, names=self.steps,
            )  # fmt: skip
        except ParameterError as error:
            key = ("formats", error.parameter) if error.parameter in ("a", "b") else ("steps", "d")
            raise self.file.error(key, str(error)) from None
        self.check_result(plan.d)
        if whole:
            self.check_used()
        return plan

    def _model(self, name: str, model_of: Callable[[str], Model]) -> Model:
        try:
            return model_of(self.data.units[name])
        except MmaprobeError as error:
            raise self.file.error(("units", name), str(error)) from None

    def _conversion(self, side: str, name: str) -> Rounding:
        if side not in ("a", "b"):
            raise self.file.error(("convert", side), "the inputs that are converted are a and b")
        if name not in self.roundings:
            raise self.file.error(("convert", side), str(UnknownNameError("rounding", name, self.roundings)))
        return self.roundings[name]

    def _element(self, tree: ast.Subscript, operand: str, scope: Scope) -> Node:
        raise MistakeError(tree, "a plan reads elements by its units only: sum(UNIT, START)")

    def _call_sum(self, tree: ast.Call, options: dict[str, ast.expr], scope: Scope) -> Node:
        stage, *start = self._arguments(tree, 1, 2)
        self._only(tree, options, ())
        return Products(self._stage(stage), self._node(start[0], scope) if start else Constant())

    # -- stages

    def _stage(self, tree: ast.expr) -> Stage:
        try:
            return self._formed(tree)
        except MmaprobeError as error:
            raise MistakeError(tree, str(error)) from None

    def _formed(self, tree: ast.expr) -> Stage:
        if isinstance(tree, ast.Name):
            return Chain(self._unit(tree))
        if isinstance(tree, ast.Call) and isinstance(tree.func, ast.Name):
            name, options = tree.func.id, self._given(tree)
            if name in self.roundings:
                (body,) = self._arguments(tree, 1)
                self._only(tree, options, ())
                return Rounded(self._stage(body), self.roundings[name])
            if name in self.models:
                raise MistakeError(tree, f"a unit has no arguments: {name}, or chain({name}, tail=STAGE)")
            if name not in STAGES:
                raise MistakeError(tree, str(UnknownNameError("stage", name, [*STAGES, *self.roundings, *self.models])))
            build: Callable[[ast.Call, dict[str, ast.expr]], Stage] = getattr(self, f"_stage_{name}")
            return build(tree, options)
        raise MistakeError(tree, f"{ast.unparse(tree)!r} is not a stage: a unit, or {', '.join(STAGES)}")

    def _unit(self, tree: ast.expr) -> Model:
        if isinstance(tree, ast.Name) and tree.id in self.models:
            return self.models[tree.id]
        raise MistakeError(tree, str(UnknownNameError("unit", ast.unparse(tree), self.models)))

    def _stage_chain(self, tree: ast.Call, options: dict[str, ast.expr]) -> Stage:
        (unit,) = self._arguments(tree, 1)
        return Chain(self._unit(unit), **self._options(tree, options, ("tail",)))

    def _stage_promote(self, tree: ast.Call, options: dict[str, ast.expr]) -> Stage:
        return self._several(Promoted, tree)(**self._options(tree, options, ("even", "share", "tail")))

    def _stage_split(self, tree: ast.Call, options: dict[str, ast.expr]) -> Stage:
        if tree.args and isinstance(tree.args[0], ast.List):
            _, body, how = self._arguments(tree, 3)
            at = tuple(map(self._number, tree.args[0].elts))
            return Uneven(at, self._stage(body), self._how(how), **self._options(tree, options, ("order",)))
        return self._several(Split, tree)(**self._options(tree, options, ("order", "grain")))

    def _stage_interleave(self, tree: ast.Call, options: dict[str, ast.expr]) -> Stage:
        return self._several(Interleaved, tree)(**self._options(tree, options, ("order", "grain", "tail")))

    def _stage_lanes(self, tree: ast.Call, options: dict[str, ast.expr]) -> Stage:
        body, how, *steps = self._arguments(tree, 3, max(3, len(tree.args)))
        return Lanes(
            self._stage(body),
            self._how(how),
            tuple(map(self._step, steps)),
            **self._options(tree, options, ("head", "tail", "unroll", "order", "grain")),
        )

    def _step(self, tree: ast.expr) -> int | Fold:
        if isinstance(tree, ast.Call) and isinstance(tree.func, ast.Name) and tree.func.id == "fold":
            ways, stride = self._arguments(tree, 2)
            self._only(tree, self._given(tree), ())
            return Fold(self._number(ways), self._number(stride))
        return self._number(tree)

    def _stage_halve(self, tree: ast.Call, options: dict[str, ast.expr]) -> Stage:
        return self._several(Halves, tree)(**self._options(tree, options, ("grain", "first")))

    def _stage_windows(self, tree: ast.Call, options: dict[str, ast.expr]) -> Stage:
        self._only(tree, options, ())
        return self._several(Windows, tree)()

    def _stage_turns(self, tree: ast.Call, options: dict[str, ast.expr]) -> Stage:
        number, body = self._arguments(tree, 2)
        return Turns(self._number(number), self._stage(body), **self._options(tree, options, ("tail",)))

    def _stage_swizzle(self, tree: ast.Call, options: dict[str, ast.expr]) -> Stage:
        number, body = self._arguments(tree, 2)
        return Swizzled(self._number(number), self._stage(body), **self._options(tree, options, ("grain",)))

    def _stage_whole(self, tree: ast.Call, options: dict[str, ast.expr]) -> Stage:
        number, body = self._arguments(tree, 2)
        read = {"head": self._stage, "tail": self._stage}
        return Whole(self._number(number), self._stage(body), **self._options(tree, options, ("head", "tail"), read))

    def _stage_first(self, tree: ast.Call, options: dict[str, ast.expr]) -> Stage:
        number, head, body = self._arguments(tree, 3)
        self._only(tree, options, ())
        return First(self._number(number), self._stage(head), self._stage(body))

    def _several(self, kind: Callable[..., Stage], tree: ast.Call) -> Callable[..., Stage]:
        """A stage of a number, another stage and a rounding."""
        number, body, how = self._arguments(tree, 3)
        return partial(kind, self._number(number), self._stage(body), self._how(how))

    def _how(self, tree: ast.expr) -> Rounding:
        """A rounding by its name."""
        return self.roundings[self._word(tree, tuple(self.roundings))]

    def _options(
        self, tree: ast.Call, options: dict[str, ast.expr], known: tuple[str, ...],
        others: Mapping[str, Callable[[ast.expr], Any]] | None = None,
    ) -> dict[str, Any]:  # fmt: skip
        """Those given; `others`: how some are read here."""
        self._only(tree, options, known)
        read: dict[str, Callable[[ast.expr], Any]] = {
            "order": lambda value: self._word(value, ORDERS), "first": lambda value: self._word(value, HALVES),
            "grain": self._number, "even": self._number,
            "share": self._number, "head": self._number, "unroll": self._number, "tail": self._stage, **(others or {}),
        }  # fmt: skip
        return {name: read[name](value) for name, value in options.items()}
