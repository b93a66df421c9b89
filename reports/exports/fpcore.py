"""A model, or a plan for every K, as an FPCore 2.0 expression: exact sums of reals, each rounded where the unit rounds.

In the core of a plan, A and B are tensors of K elements, and stages are loops (`for`) over runs of elements.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import count

from mmaprobe.reports.exports.export import Export
from mmaprobe.smtmodel.arithmetic.display import exact_value
from mmaprobe.smtmodel.arithmetic.formats import Format
from mmaprobe.smtmodel.base.errors import ParameterError
from mmaprobe.smtmodel.base.escapes import one_line, text_bytes
from mmaprobe.smtmodel.base.wording import counted
from mmaprobe.smtmodel.evaluate.model import Model
from mmaprobe.smtmodel.nodes import (
    Constant,
    Element,
    ExactSum,
    Literal,
    Node,
    Product,
    Round,
    Scale,
)
from mmaprobe.smtmodel.nodes.fold import Fold
from mmaprobe.smtmodel.nodes.node import walk
from mmaprobe.smtmodel.nodes.round import Rounding
from mmaprobe.smtmodel.plans.joins import Add, Only, Promote, Through
from mmaprobe.smtmodel.plans.partitions import Equal, Runs
from mmaprobe.smtmodel.plans.plan import Plan, Products
from mmaprobe.smtmodel.plans.stages import Chain, Parted, Stage
from mmaprobe.smtmodel.units.fpcore_text import MODES, PRECISIONS

NOTE = "the sign of a zero and the pattern of a NaN are not said: FPCore's reals have neither"


def exported(given: Model | Plan) -> Export:
    """The FPCore of a model or a plan, with a note on what FPCore cannot state, and a description."""
    text = plan_core(given) if isinstance(given, Plan) else core(given)
    return Export(text_bytes(text), NOTE, f"FPCore, {counted(text.count('(cast (!'), 'rounding')}; {NOTE}")


def core(model: Model) -> str:
    """The FPCore of a model. Raises ParameterError for arithmetic without words in FPCore: aligned sums, rounding to
    odd, flushed subnormals, formats that are not IEEE 754's."""
    if model.scale is not None or model.unit.more:
        raise _no_words("operands beside a, b and c")
    writer = _Writer()
    result = writer.of(model.unit.result)
    arguments = [
        _argument(f"{side}{k}", fmt) for side, fmt in (("a", model.a), ("b", model.b)) for k in range(model.length)
    ]
    arguments += [_argument("c", model.c)] if model.addend else []
    lines = [f"(FPCore ({' '.join(arguments)})", f"  :name {_string(model.reference)}", "  :precision real"]
    if not writer.bound:
        return "\n".join([*lines, f"  {result})", ""])
    bound = [f"({name} {text})" for name, text in writer.bound]
    return "\n".join([*lines, "  (let* (" + "\n         ".join(bound) + ")", f"    {result}))", ""])


class _Writer(Fold[str]):
    """Writes nodes as expressions. `bound`: the names of intermediate results with their expressions, in order.
    `elements`: the function for the expressions of elements of a, b and c, if they have no names."""

    def __init__(self, elements: Callable[[str, int | None], str] | None = None) -> None:
        super().__init__()
        self.elements = elements
        self.bound: list[tuple[str, str]] = []

    def carried(self, value: str) -> str:
        self.bound.append((f"s{len(self.bound)}", value))
        return self.bound[-1][0]

    def formed(self, node: Node) -> str:
        match node:
            case Element():
                if node.subnormals != "keep":
                    raise _no_words("subnormal inputs that are read as zero")
                place = None if node.index is None else node.index.at(self.places)
                if self.elements is not None:
                    return self.elements(node.operand, place)
                return node.operand if place is None else f"{node.operand}{place}"
            case Constant():
                return "0"
            case Literal():
                return _number(exact_value(node.pattern, node.format))
            case Product(limit=None):
                return f"(* {self.of(node.left)} {self.of(node.right)})"
            case Scale():
                return f"(* {self.of(node.term)} (* {self.of(node.left)} {self.of(node.right)}))"
            case ExactSum():
                return _sum(self.of_terms(node.items))
            case Round():
                return _rounded(node.rounding, self.of(node.term))
        raise _no_words(f"a node {node.kind}")


def plan_core(plan: Plan) -> str:
    """The FPCore of a plan for every K. Raises ParameterError as `core` does, and for stages and joins that are no
    loops over runs of K."""
    if plan.scale is not None:
        raise _no_words("operands beside a, b and c")
    body = _Loops(plan).result(plan.result)
    addend = f" {_argument('c', plan.c)}" if plan.addend else ""
    return f"(FPCore ((A K) (B K){addend})\n  :name {_string(plan.reference)}\n  :precision real\n  {body})\n"


@dataclass
class _Loops:
    """Writes the stages of a plan, each from a start (an expression) over the products from `low` to before `high`."""

    plan: Plan
    names: Iterator[int] = field(default_factory=count)

    def result(self, node: Node) -> str:
        if isinstance(node, Products):
            return self.stage(node.stage, "0", "K", self.result(node.start))
        if isinstance(node, ExactSum) and any(isinstance(item, Products) for item in walk(node)):
            return _sum([self.result(item) for item in node.items])
        if isinstance(node, Round):
            return _rounded(node.rounding, self.result(node.term))
        if isinstance(node, Product) and node.limit is None:
            return f"(* {self.result(node.left)} {self.result(node.right)})"
        return _Writer().of(node)

    def stage(self, stage: Stage, low: str, high: str, start: str) -> str:
        if isinstance(stage, Chain):
            return self.chain(stage, low, high, start)
        if not isinstance(stage, Parted) or stage.head is not None:
            raise _no_words("a stage that is no unit, and no runs of K")
        partition, join = stage.partition, stage.join
        if isinstance(join, Only):
            return _rounded(join.rounding, self.stage(stage.body, low, high, start))
        if isinstance(partition, Runs) and not (partition.even or partition.share):
            size, so_far = str(partition.every), self.name("s")
            if isinstance(join, Through):
                return self.loop(stage, size, (low, high), (so_far, start),
                                 lambda _, own, end: self.stage(stage.body, own, end, so_far))  # fmt: skip
            if isinstance(join, Promote):
                rounding = join.rounding
                return self.loop(stage, size, (low, high), (so_far, start), lambda _, own, end: _rounded(
                    rounding, f"(+ {so_far} {self.stage(stage.body, own, end, '0')})"))  # fmt: skip
        full = isinstance(partition, Equal) and partition.tiles == "full"
        if full and isinstance(join, Add) and join.in_order and stage.body.d == stage.d:
            assert isinstance(partition, Equal)
            grain, so_far, rounding = partition.grain or stage.body.period, self.name("s"), join.rounding
            size = f"(* {grain} (ceil (/ {_less(high, low)} {grain * partition.ways})))"

            def added(number: str, own: str, end: str) -> str:
                sums = (self.stage(stage.body, own, end, so_far), self.stage(stage.body, own, end, "0"))
                return f"(if (== {number} 0) {sums[0]} {_rounded(rounding, f'(+ {so_far} {sums[1]})')})"

            return self.loop(stage, size, (low, high), (so_far, start), added)
        raise _no_words(f"the stage {stage.word} of a plan for every K, only of one for some K (PLAN@length=K)")

    def name(self, letter: str) -> str:
        return f"{letter}{next(self.names)}"

    def loop(
        self, stage: Stage, size: str, span: tuple[str, str], so_far: tuple[str, str],
        body: Callable[[str, str, str], str],
    ) -> str:  # fmt: skip
        """A loop over runs of a size, the last perhaps shorter; `body`: the function for the expression of a run from
        the run's number, its first product and the product after its last."""
        (low, high), number, own, end, each = span, self.name("i"), self.name("l"), self.name("h"), self.name("n")
        whole = "floor" if stage.tail is not None else "ceil"
        run = body(number, own, end)
        first = _more(low, f"(* {number} {each})")
        step = f"(let* ([{own} {first}] [{end} (fmin {high} (+ {own} {each}))]) {run})"
        times = f"({whole} (/ {_less(high, low)} {each}))"
        text = f"(for ([{number} {times}]) ([{so_far[0]} {so_far[1]} {step}]) {so_far[0]})"
        text = f"(let ([{each} {size}]) {text})"
        return text if stage.tail is None else self.tail(stage.tail, each, (low, high), text, size)

    def tail(self, tail: Stage, each: str, span: tuple[str, str], text: str, size: str) -> str:
        """The expression of a tail over the products left over after the whole runs."""
        (low, high), so_far, own = span, self.name("s"), self.name("l")
        whole = _more(low, f"(* {size} (floor (/ {_less(high, low)} {size})))")
        rest = self.stage(tail, own, high, so_far)
        return f"(let* ([{so_far} {text}] [{own} {whole}]) (if (< {own} {high}) {rest} {so_far}))"

    def chain(self, chain: Chain, low: str, high: str, start: str) -> str:
        """Tiles of a unit, the last one filled up with zeros."""
        model, so_far = chain.model, self.name("s")
        if model.scale is not None or model.unit.more:
            raise _no_words("operands beside a, b and c")
        words = dict(zip("ab", self.plan.read(chain.words), strict=True))

        def tile(number: str, own: str, end: str) -> str:
            def element(operand: str, place: int | None) -> str:
                if operand == "c":
                    return so_far
                word, given = words[operand], getattr(self.plan, operand)
                at = _more(own, str(place))
                text = f"(ref {operand.upper()} {at})"
                text = f"(! :precision {_precision(given)} (cast {text}))"
                if word is not None:
                    if not (isinstance(word.term, Element) and word.term.subnormals == "keep"):
                        raise _no_words("words of an element that are not the element rounded")
                    text = _rounded(word.rounding, text)
                return f"(if (< {at} {end}) {text} 0)"

            writer = _Writer(element)
            result = writer.of(model.unit.result)
            bound = " ".join(f"({name} {text})" for name, text in writer.bound)
            return f"(let* ({bound}) {result})" if bound else result

        return self.loop(chain, str(model.length), (low, high), (so_far, start), tile)


def _more(low: str, by: str) -> str:
    return by if low == "0" else low if by == "0" else f"(+ {low} {by})"


def _less(high: str, low: str) -> str:
    return high if low == "0" else f"(- {high} {low})"


def _no_words(what: str) -> ParameterError:
    return ParameterError("--format", f"fpcore has no words for {what}")


def _sum(terms: list[str]) -> str:
    *rest, last = terms
    for term in reversed(rest):
        last = f"(+ {term} {last})"
    return last


def _number(value: Fraction | str) -> str:
    if isinstance(value, str):
        raise _no_words(f"the number {value}")
    places = value.denominator.bit_length() - 1
    return str(value.numerator) if places == 0 else f"(digits {value.numerator} -{places} 2)"


def _precision(fmt: Format) -> str:
    """The FPCore precision of a format. Raises ParameterError for a format other than IEEE 754's of its width."""
    if fmt.specials != "ieee" or fmt.bias != (1 << fmt.exponent - 1) - 1 or not fmt.subnormals:
        raise _no_words(f"the format {fmt.name}")
    return PRECISIONS.get(fmt.name, f"(float {fmt.exponent} {1 + fmt.exponent + fmt.fraction})")


def _string(text: str) -> str:
    escaped = re.sub(r'["\\]', r"\\\g<0>", one_line(text))
    return f'"{escaped}"'


def _argument(name: str, fmt: Format) -> str:
    return f"(! :precision {_precision(fmt)} {name})"


def _rounded(how: Rounding, text: str) -> str:
    if how.mode not in MODES:
        raise _no_words(f"rounding {how.mode}")
    nearest = how.mode.startswith("nearest")
    if how.subnormals != "keep" or not (how.overflow == "ieee" or (nearest and how.overflow == "infinity")):
        raise _no_words("subnormal results that become zero, or results beyond the range that are not IEEE 754's")
    return f"(! :precision {_precision(how.format)} :round {MODES[how.mode]} (cast (! :precision real {text})))"
