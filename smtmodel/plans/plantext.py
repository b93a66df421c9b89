"""The text of a plan file for a plan; planfile.py reads it back as an equal plan."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import fields
from itertools import count

import yaml

from mmaprobe.smtmodel.base.errors import ParameterError
from mmaprobe.smtmodel.evaluate.model import Model
from mmaprobe.smtmodel.nodes import Constant, Element, Literal, Node, Product, Round
from mmaprobe.smtmodel.nodes.element import F32, MINUS
from mmaprobe.smtmodel.nodes.given import Given
from mmaprobe.smtmodel.nodes.node import of_kind, walk
from mmaprobe.smtmodel.nodes.round import Rounding
from mmaprobe.smtmodel.plans.partitions import All, At, Fold, Lanes, Runs
from mmaprobe.smtmodel.plans.plan import Plan, Products
from mmaprobe.smtmodel.plans.stages import Chain, Parted, Partition, Stage, Then
from mmaprobe.smtmodel.plans.words import PLAIN, LargestOf, Scaled, SharedOf
from mmaprobe.smtmodel.units.turns import TURN
from mmaprobe.smtmodel.units.unitfile import formats_text, untaken
from mmaprobe.smtmodel.units.written import NODES, rounding_text

DEEPEST = 60  # nested nodes in one expression: Python reads 200 parentheses
#: the calls in the expressions of a plan, stages apart
CALLS = (
    "sum", "exact", "round", "cut", "product", "number", "relu", "shared", "residue", "recombined", "scale", "largest",
    "quotient", "block_scaled",
)  # fmt: skip


def plan_text(plan: Plan) -> str:
    """The file of a plan whose result consists of sums of products, c, numbers, products, rectifiers and roundings.
    Raises ParameterError for other plans."""
    return _Writer(plan).text()


def step_text(plan: Plan) -> tuple[str, dict[str, str]]:
    """The step `d` of a plan on one line, and the roundings named in it. A unit has its whole reference as its name,
    but an IEEE operation has a short name, and a turn of an unrolled loop (units/turns.py) its order of additions.
    Raises as `plan_text` does."""
    writer = _Writer(plan)
    whole = {
        model: model.reference.rpartition("/")[2] if model.reference.startswith(TURN) else model.reference
        for model in writer.units
        if model.reference.startswith(TURN) or not model.reference.startswith("ieee/")
    }
    writer.units |= whole
    return writer.node(plan.result), {name: rounding_text(how) for how, name in writer.roundings.items()}


def named_texts(plan: Plan) -> tuple[list[tuple[str, str]], str]:
    """The names of a plan's file, each with its text (units, roundings, words of elements), and the file's step `d`.
    Raises as `plan_text` does."""
    writer = _Writer(plan)
    roundings = [(name, rounding_text(how)) for how, name in writer.roundings.items()]
    named = [*((name, model.reference) for model, name in writer.units.items()), *roundings]
    return [*named, *writer.words_text().items()], writer.steps()["d"]


def words_text(plan: Plan) -> dict[str, str]:
    """The words that the units of a plan read, each an expression; a rounding is the name of its format, with its mode
    where it is not to nearest even."""
    writer = _Writer(plan)
    for how in writer.roundings:
        writer.roundings[how] = how.format.name + ("" if how.mode == "nearest_even" else f"_{how.mode}")
    return writer.words_text()


class _Writer:
    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.parts: dict[Node, str] = {}  # parts of the result that are steps of their own
        self.units: dict[Model, str] = {}
        own = {how: name for name, how in plan.roundings.items()}
        for model in plan.models:
            named = model.reference.count("/") == 2 or model.reference.startswith(TURN)
            name = model.reference.split("/")[1] if named else "unit"
            known = name in (*self.units.values(), *own.values())
            self.units[model] = f"{name}{len(self.units) + 1}" if known else name
        self.words = [self._words(side) for side in range(2)]
        conversions = {"a": plan.convert_a, "b": plan.convert_b}
        self.conversions = {side: how for side, how in conversions.items() if how is not None}
        roots = [*(word for words in self.words for word in words), plan.result]
        hows = [node.rounding for root in roots for node in of_kind(root, Round)]
        hows += self.conversions.values()
        for products in plan.sums:
            hows += products.stage.roundings
        taken = {*own.values(), *self.units.values(), *(name for words in self.words for name in words.values())}
        self.roundings: dict[Rounding, str] = {}
        for how in dict.fromkeys(hows):
            name = f"r{len(self.roundings) + 1}" if self.roundings else "r"
            self.roundings[how] = own.get(how) or untaken(name, taken)

    def text(self) -> str:
        plan = self.plan
        convert = {side: self.roundings[how] for side, how in self.conversions.items()}
        roundings = {name: rounding_text(how) for how, name in self.roundings.items()}
        data = {
            "plan": plan.reference,
            **{key: getattr(plan, key) for key in ("about", "source", "evidence") if getattr(plan, key)},
            "formats": formats_text(plan.a, plan.b, plan.c, plan.d, plan.addend),
            "units": {name: model.reference for model, name in self.units.items()},
            **({"roundings": roundings} if roundings else {}),
            **({"convert": convert} if convert else {}),
            **({"words": self.words_text()} if any(self.words) else {}),
            "steps": self.steps(),
        }
        return yaml.safe_dump(data, sort_keys=False, width=118, allow_unicode=True)

    def steps(self) -> dict[str, str]:
        """The step `d`, and before it parts of it as steps of their own, where one expression would be too deep."""
        depths: dict[Node, int] = {}
        for node in walk(self.plan.result):  # operands first
            depths[node] = 1 + max((0 if one in self.parts else depths[one] for one in node.operands), default=0)
            if depths[node] > DEEPEST and node != self.plan.result:
                self.parts[node] = f"part{len(self.parts) + 1}"
        steps = {name: self._step(node) for node, name in self.parts.items()}
        return steps | {"d": self._step(self.plan.result)}

    def _words(self, side: int) -> dict[Node, str]:
        """The words of a side that units read, and the words that several other words contain, with their names."""
        read = list(dict.fromkeys(word for chain in self.plan.chains if (word := chain.words[side]) is not None))
        every = dict.fromkeys(node for word in read for node in walk(word))
        uses = Counter(operand for node in every for operand in node.operands)
        names: dict[Node, str] = {node: name for name, node in self.plan.words.get("ab"[side], {}).items()}
        numbers = (f"{'ab'[side]}{number}" for number in count())
        for node in every:
            if isinstance(node, Round) and node not in names and (node in read or uses[node] > 1):
                names[node] = next(name for name in numbers if name not in names.values())
        return {node: names[node] for node in every if node in names}

    def words_text(self) -> dict[str, str]:
        return {name: self._word(node, names, "ab"[side], True)
                for side, names in enumerate(self.words) for node, name in names.items()}  # fmt: skip

    def _word(self, node: Node, names: Mapping[Node, str], side: str, whole: bool = False) -> str:
        """The text of a word or of a part of a word: its name, or its definition if `whole`."""
        if node in names and not whole:
            return names[node]
        return side if isinstance(node, Given) else self._written(node, lambda part: self._word(part, names, side))

    def node(self, node: Node) -> str:
        return self.parts[node] if node in self.parts else self._step(node)

    def _step(self, node: Node) -> str:
        if isinstance(node, Constant):
            return "-0" if node.negative else "+0"
        if isinstance(node, Element):
            return node.operand
        if isinstance(node, Products):
            return f"sum({self.stage(node.stage)}, {self.node(node.start)})"
        return self._written(node, self.node)

    def _written(self, node: Node, of: Callable[[Node], str]) -> str:
        """The text of a node, from the texts of its operands."""
        if isinstance(node, SharedOf):
            return f"{'1 / ' if node.inverse else ''}shared({node.operand}{', up=true' if node.up else ''})"
        if isinstance(node, LargestOf):
            return f"largest({node.operand}{f', block={node.block}' if node.block else ''})"
        if isinstance(node, Scaled):
            assert node.factor is not None
            return f"block_scaled({of(node.element)}, {of(node.factor)})"
        if isinstance(node, Round):
            return f"{self.roundings[node.rounding]}({of(node.term)})"
        if isinstance(node, Literal):
            exponent = node.pattern >> F32.fraction
            power = node.format == F32 and 0 < exponent <= 2 * F32.bias and node.pattern == exponent << F32.fraction
            return f"2**{exponent - F32.bias}" if power else f"number({node.pattern:#x}, {node.format.name})"
        if isinstance(node, Product) and node.left == MINUS and not node.normalised and node.limit is None:
            return f"-{of(node.right)}"
        if node.kind in CALLS:
            return NODES[node.kind].text(node, map(of, node.operands))
        raise ParameterError("plan", f"a {node.kind} has no text here")

    def stage(self, stage: Stage) -> str:
        if isinstance(stage, Chain):
            name = self.units[stage.model]
            if stage.words != PLAIN:
                own = zip(stage.words, self.words, "ab", strict=True)
                name = f"{name}({', '.join(names[word] if word else side for word, names, side in own)})"
            return name if stage.tail is None else f"chain({name}, tail={self.stage(stage.tail)})"
        if isinstance(stage, Then):
            return f"then({', '.join(map(self.stage, stage.bodies))})"
        assert isinstance(stage, Parted)
        partition, join = stage.partition, stage.join
        how = [] if stage.rounding is None else [self.roundings[stage.rounding]]
        body = self.stage(stage.body)
        if isinstance(partition, All):
            return f"{how[0]}({body})"
        numbers, options = _cut(partition)
        others = {"head": stage.head, "tail": stage.tail}
        further = [f", {name}={self.stage(part)}" for name, part in others.items() if part is not None]
        first = []
        if stage.word != partition.word and not isinstance(partition, Runs | At):  # named by its join
            numbers, options = [f"{partition.word}({', '.join(numbers)}{options})"], ""
        elif partition.takes == "first" and stage.head is not None:
            first, further = [self.stage(stage.head)], further[1:]
        given = [*numbers, *first, body, *how]
        if isinstance(partition, Lanes):
            given = [body, *how, *numbers]
        join_options = "".join(
            _option(field.name, getattr(join, field.name), field.default)
            for field in fields(join)
            if field.name != "rounding"
        )
        return f"{stage.word}({', '.join(given)}{join_options}{options}{''.join(further)})"


def _cut(partition: Partition) -> tuple[list[str], str]:
    """The numbers of a partition, and its options."""
    required, *others = fields(partition)
    numbers = getattr(partition, required.name)
    steps = [f"fold({x.ways}, {x.stride})" if isinstance(x, Fold) else str(x)
             for x in (numbers if isinstance(numbers, tuple) else (numbers,))]  # fmt: skip
    options = "".join(_option(field.name, getattr(partition, field.name), field.default) for field in others)
    return [f"[{', '.join(steps)}]"] if isinstance(partition, At) else steps, options


def _option(name: str, value: object, usual: object) -> str:
    return "" if value == usual else f", {name}={value}"
