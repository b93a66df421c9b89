"""Plans as the text of a plan file, which planfile.py reads back as an equal plan."""

from __future__ import annotations

import yaml

from mmaprobe.smtmodel.base.errors import ParameterError
from mmaprobe.smtmodel.evaluate.model import Model
from mmaprobe.smtmodel.nodes import Constant, Element, ExactSum, Literal, Node, Product, Relu, Round
from mmaprobe.smtmodel.nodes.node import walk
from mmaprobe.smtmodel.nodes.round import Rounding
from mmaprobe.smtmodel.plans.plan import Plan, Products
from mmaprobe.smtmodel.plans.stages import (
    Around,
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
from mmaprobe.smtmodel.units.turns import TURN
from mmaprobe.smtmodel.units.unitfile import rounding_text


def plan_text(plan: Plan) -> str:
    """The file of a plan whose result is made of sums of products, c, numbers, products, rectifiers and roundings.
    Raises ParameterError for other plans."""
    return _Writer(plan).text()


def stage_text(plan: Plan) -> str:
    """The step `d` of a plan alone, on one line, with whole references of units but for those of IEEE's operations, of
    which several products have their order. Raises as `plan_text` does."""
    writer = _Writer(plan)
    if any(how != Rounding(how.format, how.mode) for how in writer.roundings):
        raise ParameterError("plan", "a rounding with rules of its own has no text here")
    whole = {
        model: model.reference.rpartition("/")[2] if model.reference.startswith(TURN) else model.reference
        for model in writer.units
        if model.reference.startswith(TURN) or not model.reference.startswith("ieee/")
    }
    writer.units |= whole
    return writer.node(plan.result)


class _Writer:
    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.units: dict[Model, str] = {}
        for model in plan.models:
            named = model.reference.count("/") == 2 or model.reference.startswith(TURN)
            name = model.reference.split("/")[1] if named else "unit"
            taken = name in self.units.values()
            self.units[model] = f"{name}{len(self.units) + 1}" if taken else name
        conversions = {"a": plan.convert_a, "b": plan.convert_b}
        self.conversions = {side: how for side, how in conversions.items() if how is not None}
        hows = [node.rounding for node in walk(plan.result) if isinstance(node, Round)] + [*self.conversions.values()]
        for products in plan.sums:
            hows += _roundings(products.stage)
        self.roundings: dict[Rounding, str] = {}
        for how in hows:
            self.roundings.setdefault(how, f"r{len(self.roundings) + 1}" if self.roundings else "r")

    def text(self) -> str:
        plan = self.plan
        convert = {side: self.roundings[how] for side, how in self.conversions.items()}
        roundings = {name: rounding_text(how) for how, name in self.roundings.items()}
        data = {
            "plan": plan.reference,
            **{key: getattr(plan, key) for key in ("about", "source", "evidence") if getattr(plan, key)},
            "formats": {side: getattr(plan, side).name for side in "abcd"},
            "units": {name: model.reference for model, name in self.units.items()},
            **({"roundings": roundings} if roundings else {}),
            **({"convert": convert} if convert else {}),
            "steps": {"d": self.node(plan.result)},
        }
        return yaml.safe_dump(data, sort_keys=False, width=118, allow_unicode=True)

    def node(self, node: Node) -> str:
        if isinstance(node, Constant):
            return "-0" if node.negative else "+0"
        if isinstance(node, Element):
            return node.operand
        if isinstance(node, Products):
            return f"sum({self.stage(node.stage)}, {self.node(node.start)})"
        if isinstance(node, Round):
            return f"{self.roundings[node.rounding]}({self.node(node.term)})"
        if isinstance(node, Relu):
            options = _option("nan", node.nan, "keep") + _option("zero", node.zero, "positive")
            return f"relu({self.node(node.term)}{options})"
        if isinstance(node, Literal):
            return f"number({node.pattern:#x}, {node.format.name})"
        if isinstance(node, Product) and not node.normalised and node.limit is None:
            return f"product({self.node(node.left)}, {self.node(node.right)})"
        if isinstance(node, ExactSum):
            return f"exact({', '.join(map(self.node, node.items))})"
        raise ParameterError("plan", f"a {node.kind} has no text here")

    def stage(self, stage: Stage) -> str:
        if isinstance(stage, Chain):
            name = self.units[stage.model]
            return name if stage.tail is None else f"chain({name}, tail={self.stage(stage.tail)})"
        over = getattr(stage, "tail", None)
        tail = "" if over is None else f", tail={self.stage(over)}"
        match stage:
            case Turns():
                return f"turns({stage.every}, {self.stage(stage.body)}{tail})"
            case Swizzled():
                return f"swizzle({stage.ways}, {self.stage(stage.body)}{_option('grain', stage.grain, 1)})"
            case Whole():
                head = "" if stage.head is None else f", head={self.stage(stage.head)}"
                return f"whole({stage.number}, {self.stage(stage.body)}{head}{tail})"
            case First():
                return f"first({stage.number}, {self.stage(stage.head)}, {self.stage(stage.body)})"
        assert isinstance(stage, Around)
        body, how = self.stage(stage.body), self.roundings[stage.rounding]
        match stage:
            case Rounded():
                return f"{how}({body})"
            case Promoted():
                alike = _option("even", stage.even, 0) + _option("share", stage.share, 0)
                return f"promote({stage.every}, {body}, {how}{alike}{tail})"
            case Split():
                order = _option("order", stage.order, "sequential")
                return f"split({stage.ways}, {body}, {how}{order}{_option('grain', stage.grain, 0)})"
            case Uneven():
                order = _option("order", stage.order, "sequential")
                return f"split([{', '.join(map(str, stage.at))}], {body}, {how}{order})"
            case Interleaved():
                order = _option("order", stage.order, "sequential")
                return f"interleave({stage.ways}, {body}, {how}{order}{_option('grain', stage.grain, 1)}{tail})"
            case Lanes():
                steps = (f"fold({x.ways}, {x.stride})" if isinstance(x, Fold) else str(x) for x in stage.steps)
                options = _option("head", stage.head, 0) + _option("unroll", stage.unroll, 0)
                options += _option("order", stage.order, "sequential") + _option("grain", stage.grain, 1)
                return f"lanes({', '.join((body, how, *steps))}{options}{tail})"
            case Halves():
                options = _option("grain", stage.grain, 1) + _option("first", stage.first, "larger")
                return f"halve({stage.most}, {body}, {how}{options})"
            case Windows():
                return f"windows({stage.every}, {body}, {how})"
        raise ParameterError("plan", f"a stage {type(stage).__name__} has no text here")


def _option(name: str, value: object, usual: object) -> str:
    return "" if value == usual else f", {name}={value}"


def _roundings(stage: Stage) -> list[Rounding]:
    own = [stage.rounding] if isinstance(stage, Around) else []
    return [*own, *(how for part in stage.parts for how in _roundings(part))]
