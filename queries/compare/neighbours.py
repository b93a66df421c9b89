"""The first divergence of two evaluations of one input; and a model's neighbours that give an observed result."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, fields, replace
from fractions import Fraction
from typing import Any

import numpy as np

from mmaprobe.smtmodel.arithmetic.display import exact_value
from mmaprobe.smtmodel.arithmetic.formats import FORMATS, Format
from mmaprobe.smtmodel.base.errors import ParameterError
from mmaprobe.smtmodel.evaluate.batch import Shared
from mmaprobe.smtmodel.evaluate.facts import Item, SignalFact, SignalFacts, evaluate_one, facts_of, item_of
from mmaprobe.smtmodel.evaluate.model import Model
from mmaprobe.smtmodel.evaluate.operands import Operands, layout_of, padded
from mmaprobe.smtmodel.explain.explaining import RUNNING
from mmaprobe.smtmodel.explain.explanation import Explanation
from mmaprobe.smtmodel.families.parameters import format_parameter
from mmaprobe.smtmodel.nodes import Element, ExactSum, Node, Product, Repeat, Round
from mmaprobe.smtmodel.nodes.node import Variant, walk
from mmaprobe.smtmodel.nodes.regrouping import regrouped
from mmaprobe.smtmodel.nodes.round import Rounding
from mmaprobe.smtmodel.nodes.trace import Kind, Name, Part, Stage, Trace
from mmaprobe.smtmodel.tables.reference import one_change_away
from mmaprobe.smtmodel.units.unit import Unit

#: by the stage of a signal, the stage of the datapath in words
STAGES = {
    Stage.PRODUCT: "products",
    Stage.STEP: "products",
    Stage.ADDEND: "decoding",
    Stage.TERM: "terms",
    Stage.MAXIMUM: "exponents",
    Stage.ALIGNED: "alignment",
    Stage.PLACED: "alignment",
    Stage.SUM: "sum",
    Stage.SIGN: "sum",
    Stage.CUT: "cut of the sum",
    Stage.SPECIAL: "special values",
    Stage.ROUNDED: "rounding",
    Stage.RESULT: "result",
}
#: signals of a term that repeat the signal of its number
PARTS = (Part.SIGN, Part.EXPONENT, Part.IS_ZERO, Part.IS_NAN, Part.IS_INFINITE)
SUMMED = (Stage.TERM, Stage.MAXIMUM, Stage.ALIGNED, Stage.PLACED, Stage.SUM)  # signals of a sum
WIDE = FORMATS["f16"]  # the format in which some units multiply narrower factors
WITH = " with "  # between a model's reference and a change that no reference expresses
READ = ("operand", "index")  # the fields of an element that say which input it is
#: kinds of nodes, the kinds with the most frequent wrong parameters first; other kinds come last
FIRST = ("fused", "grid", "cut", "product", "gate", "round", "exact", "element", "scale", "repeat", "each", "acc",
         "zero", "number", "segment", "cancelling", "relu")  # fmt: skip


@dataclass(frozen=True)
class Divergence:
    """The first signal in which two evaluations differ. A side is None if only the other side has the signal."""

    stage: str
    left: SignalFact | None
    right: SignalFact | None

    @property
    def of_one_side(self) -> bool:
        """Whether one evaluation has no such signal."""
        return self.left is None or self.right is None

    @property
    def signal(self) -> Name:
        fact = self.left or self.right
        assert fact is not None
        return fact.name


@dataclass(frozen=True)
class Neighbour:
    """A model with one parameter changed that gives the observed result, and its first divergence from the model."""

    parameter: str
    value: str
    model: Model
    divergence: Divergence | None

    @property
    def change(self) -> str:
        return f"{self.parameter}={self.value}"


def divergence(left: Model, right: Model, operands: Operands[int]) -> Divergence | None:
    """The first divergence of two models on one input; None if no relevant signal differs."""
    return first_difference(
        facts_of(evaluate_one(left, operands)), left, facts_of(evaluate_one(right, operands)), right
    )


def parted(explanations: Sequence[Explanation]) -> Divergence | None:
    """The first divergence of two evaluations of one input; None without a divergence, and for a single evaluation."""
    if len(explanations) < 2:
        return None
    left, right = explanations
    return first_difference(left.facts, left.model, right.facts, right.model)


def first_difference(left: SignalFacts, one: Model, right: SignalFacts, other: Model) -> Divergence | None:
    """The first signal that differs in value, in the order of the stages.

    Zero terms do not count, nor do their exponents; if a special value decides the result, no finite number before it
    counts. Of the signals that only one side has, these count: nonzero terms (a product is compared with the other
    side's next product of this sort), and roundings that change a number. An alignment on one side and an exact sum on
    the other are no difference until the sums differ. Sums of the same terms are one step, whatever their names.
    """
    same_nan = one.nan is not None and other.nan is not None
    sides = [_compared_signals(facts, one.d == other.d, same_nan) for facts in (left, right)]
    called = _same_sums(left.trace, right.trace)
    sides[1] = {_name_on_left(name, called): compared for name, compared in sides[1].items()}
    rounds = [facts.trace.rounds for facts in (left, right)]
    losing = [_losing_roundings(facts.trace) for facts in (left, right)]
    exact = _exact_sums(left.trace) & {called.get((step, ""), (step, ""))[0] for step in _exact_sums(right.trace)}
    if bool(rounds[0]) != bool(rounds[1]):  # the first round is compared with the other side's only round
        first = (rounds[0] or rounds[1])[0]
        sides = [{name._replace(step=name.step.removeprefix(first)): compared for name, compared in side.items()}
                 for side in sides]  # fmt: skip
    taken: set[Name] = set()  # terms that both sides have, under different names
    for name in _merged_names(list(sides[0]), list(sides[1])):
        if name.stage is Stage.SUM and name.step in exact:  # each side keeps as many bits as it needs
            continue
        here, there = (side.get(name) for side in sides)
        if here is None or there is None:
            alone, which = here or there, here is None
            if name in taken or not alone or not _tells_alone(alone[0], rounds[which], losing[which]):
                continue
            twins = _products_alone(sides[not which], sides[which], taken) if _is_product(name) else iter(())
            if (twin := next(twins, None)) is not None:
                taken |= {name, twin}
                theirs = sides[not which][twin]
                if theirs[1] == alone[1]:
                    continue
                here, there = (theirs, alone) if which else (alone, theirs)
        elif here[1] == there[1]:
            continue
        return Divergence(_stage(name, left.trace, right.trace), here and here[0], there and there[0])
    results = [next(reversed(side.values())) for side in sides]
    same = results[0][1] == results[1][1]
    return None if same else Divergence("result", results[0][0], results[1][0])


ComparedSignal = tuple[SignalFact, Any]


def _same_sums(left: Trace, right: Trace) -> dict[tuple[str, str], tuple[str, str]]:
    """For sums with different names on the two sides: by step and term on the right, the step and term on the left,
    from the first sum there with the same products and as many other terms."""
    free = {step: [name for name, _ in terms] for step, (_, terms) in left.entered.items() if step not in right.entered}
    pairs: dict[tuple[str, str], tuple[str, str]] = {}
    for step, (_, terms) in right.entered.items():
        names = [name for name, _ in terms]
        twin = next((one for one, own in free.items() if _products(own) == _products(names)), None)
        if step not in left.entered and twin is not None:
            pairs |= {(step, name): (twin, own) for name, own in zip(names, free.pop(twin), strict=True)}
            pairs[step, ""] = twin, ""
    return pairs


def _products(names: Sequence[str]) -> list[str]:
    """The places of the terms that are products, and an empty text for each other term."""
    return [name if name.isdigit() else "" for name in names]


def _name_on_left(name: Name, called: Mapping[tuple[str, str], tuple[str, str]]) -> Name:
    """The left side's name of a signal of a sum."""
    step, of = called.get((name.step, name.of), (name.step, name.of)) if name.stage in SUMMED else (name.step, name.of)
    return name._replace(step=step, of=of)


def _products_alone(
    side: Mapping[Name, ComparedSignal], other: Mapping[Name, ComparedSignal], taken: Set[Name]
) -> Iterator[Name]:
    """The products that are terms on one side alone, and not in `taken`."""
    for name, (fact, _) in side.items():
        if _is_product(name) and name not in other and name not in taken and fact.kind is Kind.NUMBER:
            yield name


def _is_product(name: Name) -> bool:
    """Whether a signal is a product as a term of a sum."""
    return name.stage is Stage.TERM and (name.of.isdigit() or name.of.startswith(Product.kind))


def _exact_sums(trace: Trace) -> set[str]:
    """The steps that are exact sums."""
    return {visit.prefix for visit in trace.visits if isinstance(visit.node, ExactSum)}


def _losing_roundings(trace: Trace) -> set[str]:
    """The steps that round a number and change it."""
    values, losing = dict[object, Item](), set[str]()
    for visit in trace.visits:
        item = values[visit.node] = item_of("", visit.value)
        if isinstance(visit.node, Round) and not item.special:
            before = values[visit.node.term]
            if before.value != item.value:
                losing.add(visit.prefix)
    return losing


def _tells_alone(fact: SignalFact, rounds: Sequence[str], losing: Set[str]) -> bool:
    """Whether a signal of one side alone is a difference: a nonzero term of a sum (but no running sum of a later
    round), or the result of a rounding that changes its number."""
    name = fact.name
    if name.stage is Stage.ROUNDED:
        return name.step in losing
    running = name.of in RUNNING and name.step in rounds[1:]
    return name.stage is Stage.TERM and fact.kind is Kind.NUMBER and fact.value != 0 and not running


def _stage(name: Name, *traces: Trace) -> str:
    """The datapath's stage of a signal, in words; a rounded product belongs to the products."""
    rounds_product = any(
        visit.prefix == name.step and isinstance(visit.node, Round) and isinstance(visit.node.term, Product)
        for trace in traces
        for visit in trace.visits
    )
    return STAGES[Stage.PRODUCT if rounds_product else name.stage]


def _compared_signals(facts: SignalFacts, alike: bool, nan_counts: bool) -> dict[Name, ComparedSignal]:
    """The signals that count, each with a key to compare: numbers by value, patterns too if formats differ."""
    decided = {fact.name.step for fact in facts if fact.name.stage is Stage.SPECIAL and fact.value}
    zero = {fact.name for fact in facts if fact.kind is Kind.NUMBER and not fact.value}
    live = {
        fact.name.step
        for fact in facts
        if (fact.name.stage, fact.name.part) == (Stage.TERM, Part.WHOLE) and fact.name not in zero
    }
    compared: dict[Name, ComparedSignal] = {}
    for fact in facts:
        name = fact.name
        special = name.stage in (Stage.SPECIAL, Stage.RESULT)
        if not special and any(name.step.startswith(step) for step in decided):
            continue
        of_zero = name.part in PARTS and {name.whole, name.its(Part.SIGNIFICAND)} & zero
        if (of_zero and (name.of or name.stage is Stage.ADDEND)) or (name.stage is Stage.TERM and name in zero):
            continue
        if name == Name(name.step, Stage.SUM) or (name.stage is Stage.MAXIMUM and name.step not in live):
            continue  # sign and magnitude are compared
        compared[name] = (fact, fact.real if fact.format is None else _pattern(fact, fact.format, alike, nan_counts))
    return compared


def _pattern(fact: SignalFact, fmt: Format, alike: bool, nan_counts: bool) -> Any:
    """The number of a pattern, or the pattern of a NaN that counts; signs of zeros count if results are `alike`."""
    value = exact_value(fact.value, fmt)
    if value == "nan":
        return f"nan {fact.value:x}" if nan_counts and alike else value
    return value if alike or value != "-0" else Fraction(0)


def _merged_names(left: list[Name], right: list[Name]) -> list[Name]:
    """All names in the order of the left side; a name of the right side alone follows its predecessor on the right."""
    known, after = set(left), dict[Name | None, list[Name]]()
    previous: Name | None = None
    for name in right:
        if name in known:
            previous = name
        else:
            after.setdefault(previous, []).append(name)
    return [*after.get(None, []), *(item for name in left for item in (name, *after.get(name, [])))]


# -- neighbours


def neighbours(model: Model) -> Iterator[tuple[str, str, Model]]:
    """(parameter, value, model) for every plausible change of one parameter of a unit's nodes, or of its steps. A
    change that a reference can express has the reference's spelling."""
    made = [(change, result) for change, result in _changed_units(model.unit) if result.result != model.unit.result]
    numbers = {n for change, _ in made if type(change.new) is int for n in (change.new, change.new - 1)}
    spelled = one_change_away(model, frozenset(numbers))
    seen = set()
    for change, unit in made:
        if unit.result in seen:
            continue
        seen.add(unit.result)
        name, value = change.parameter, _text(change.new)
        yield spelled.get(unit.result) or (name, value, Model(f"{model.reference}{WITH}{name}={value}", unit))


def is_spelled(neighbour: Model) -> bool:
    """Whether a reference expresses the change of a neighbour, which is then the neighbour's."""
    return WITH not in neighbour.reference


def _changed_units(unit: Unit) -> Iterator[tuple[Variant, Unit]]:
    """Units with one parameter changed: in every node that has the old value; then, if these nodes differ in other
    parameters, in each group of nodes with equal parameters alone. Then units with other steps."""
    groups: dict[object, list[Node]] = {}
    formats = {"a": unit.a, "b": unit.b}
    for node in walk(unit.result):
        if _is_exact(node, formats) or _is_integer(node, unit.formats):
            continue
        groups.setdefault(_parameters(node), []).append(node)
    rank = {kind: number for number, kind in enumerate(FIRST)}
    firsts = sorted((nodes[0] for nodes in groups.values()), key=lambda node: rank.get(node.kind, len(FIRST)))
    for change in dict.fromkeys(variant for node in firsts for variant in node.variants()):
        affected = [nodes for nodes in groups.values() if _varied_node(nodes[0], change) != nodes[0]]
        scopes = [(change.parameter, [node for nodes in affected for node in nodes])]
        if len(affected) > 1:
            scopes += [(f"{unit.labels[nodes[0]] or 'd'} {change.parameter}", nodes) for nodes in affected]
        for name, nodes in scopes:
            if changed := _with_nodes_changed(unit, change, frozenset(nodes)):
                yield replace(change, parameter=name), changed
    for change, result in regrouped(unit.result):
        # c is added to the sums of products
        sums: dict[Node, str] = {node: "products" for node in walk(result) if isinstance(node, Repeat)}
        yield change, replace(unit, result=result, titles={**unit.titles, **sums})
    if converted := in_wider_format(unit):
        yield converted


def _is_exact(node: Node, formats: Mapping[str, Format]) -> bool:
    """Whether a node converts a factor to a format that holds it, so that its rounding has no effect."""
    if not isinstance(node, Round) or node.converts is None or node.converts.operand not in formats:
        return False
    return node.rounding.format.holds(formats[node.converts.operand])


def _is_integer(node: Node, formats: Mapping[str, Format]) -> bool:
    """Whether a node is an integer, of which there is one reading: no integer is subnormal or -0."""
    return isinstance(node, Element) and formats[node.operand].is_integer


def in_wider_format(unit: Unit) -> tuple[Variant, Unit] | None:
    """The unit with factors of 8 bits or fewer converted to f16 before the product, if this changes exponents (a unit
    for f16, such as FP8 through `mma` on Hopper); or the unit without these conversions."""
    sides = (("a", unit.a), ("b", unit.b))
    narrow = {side for side, given in sides if given.width <= 8 and not given.is_within(WIDE)}
    converted: dict[Node, Node] = {}
    for node in walk(unit.result):
        if isinstance(node, Round) and node.converts is not None and node.converts.operand in narrow:
            converted[node] = node.converts

    def rewrite(old: Node, new: Node) -> Node:
        if converted:
            return converted.get(old, new)
        return Round(new, Rounding(WIDE)) if isinstance(old, Element) and old.operand in narrow else new

    changed = _rebuilt(unit, rewrite) if narrow else None
    names = (WIDE.name, "own") if converted else ("own", WIDE.name)
    return None if changed is None else (Variant("input_format", *names), changed)


def _parameters(node: Node) -> object:
    """A key, equal for nodes that differ only in their inputs."""
    own = [getattr(node, item.name) for item in fields(node) if item.name not in READ]  # type: ignore[arg-type]
    return node.kind, *(x for x in own if not isinstance(x, (Node, range)) and not _reads(x))


def _reads(value: object) -> bool:
    return isinstance(value, tuple) and bool(value) and isinstance(value[0], Node)


def _text(value: object) -> str:
    return f"[{', '.join(map(_text, value))}]" if isinstance(value, tuple) else format_parameter(value)


def _varied_node(node: Node, change: Variant) -> Node | None:
    try:
        return node.varied(change)
    except ParameterError:
        return None


def _with_nodes_changed(unit: Unit, change: Variant, nodes: frozenset[Node]) -> Unit | None:
    """The unit with some nodes changed; None where the change is impossible."""
    return _rebuilt(unit, lambda old, new: new.varied(change) if old in nodes else new)


def _rebuilt(unit: Unit, rewrite: Callable[[Node, Node], Node]) -> Unit | None:
    """The unit with its expression rewritten, operands first; None if this is impossible."""
    try:
        return unit.rewritten(rewrite)
    except ParameterError:
        return None


def reproducing_neighbours(
    model: Model, operands: Operands[int], agrees: Callable[[Model, int], bool]
) -> list[Neighbour]:
    """The neighbours whose result agrees with the observed one, each with its first divergence from the model."""
    facts = facts_of(evaluate_one(model, operands))
    layout, reproducing = layout_of(model), []
    alike = Shared(np.array([padded(operands, layout).every], dtype=np.uint64), layout)
    for name, value, near in neighbours(model):
        if agrees(near, int(alike.of(near)[0])):
            difference = first_difference(facts, model, facts_of(evaluate_one(near, operands)), near)
            reproducing.append(Neighbour(name, value, near, difference))
    return reproducing
