"""The picture of one evaluation, made from its trace by a walk over the nodes in evaluation order.

The trace has every signal of the arithmetic. Only the bits of a sum that a format keeps, and the inputs that cause a
special value, are derived here; tests compare these with the signals.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from fractions import Fraction

from mmaprobe.smtmodel.arithmetic.decode import Unpacked
from mmaprobe.smtmodel.arithmetic.display import exact_value, powers
from mmaprobe.smtmodel.arithmetic.formats import Format
from mmaprobe.smtmodel.base.errors import ParameterError
from mmaprobe.smtmodel.evaluate.facts import Item, SignalFact, evaluate_one, facts_of, integer, item_of, item_of_pattern
from mmaprobe.smtmodel.evaluate.model import Model
from mmaprobe.smtmodel.evaluate.operands import Operands, layout_of, padded
from mmaprobe.smtmodel.explain.explanation import (
    BitLine,
    Cause,
    Explanation,
    Group,
    Input,
    Outcome,
    Picture,
    Rounded,
    Rule,
    Special,
    StepView,
)
from mmaprobe.smtmodel.nodes import (
    Cancelling,
    Constant,
    Cut,
    Element,
    ExactSum,
    FusedSum,
    Gate,
    GridSum,
    Node,
    Product,
    Quotient,
    Relu,
    Round,
    Scale,
    Segment,
    Sum,
)
from mmaprobe.smtmodel.nodes.element import flushed_in
from mmaprobe.smtmodel.nodes.trace import Name, Part, Stage, Visit
from mmaprobe.smtmodel.operand import OPERANDS

RUNNING = ("addend", "acc")  # the names of the result of earlier steps in signals


def bits_line(name: str, negative: bool, magnitude: int, unit: int, keep_zeros: bool = False) -> BitLine:
    """The row of (-1)^negative * magnitude * 2^unit from the leading one to the last one, or, with `keep_zeros`, to
    the unit."""
    if not magnitude:
        return BitLine(name, negative, "", unit - 1)
    if not keep_zeros:
        zeros = (magnitude & -magnitude).bit_length() - 1
        magnitude, unit = magnitude >> zeros, unit + zeros
    bits = f"{magnitude:b}"
    return BitLine(name, negative, bits, unit + len(bits) - 1)


def fraction_line(name: str, value: Fraction) -> BitLine:
    """The row of an exact dyadic number."""
    return bits_line(name, value < 0, abs(value.numerator), 1 - value.denominator.bit_length())


def term_line(item: Item, signals: tuple[Name, ...], kept: SignalFact | None = None, unit: int = 0) -> BitLine:
    """The row of a term of a sum. `kept`: the term's aligned magnitude, of which the bits from the place `unit` up are
    kept."""
    if item.special:
        mark = "nan" if item.is_nan else "infinite"
        return BitLine(item.name, item.negative, "", 0, signals=signals, marks=frozenset([mark]))
    if kept is None:
        row = bits_line(item.name, item.negative, item.significand, item.unit)
        return replace(row, exponent=item.exponent, signals=signals)
    assert kept.scale is not None
    magnitude = kept.value >> (unit - kept.scale)
    row = bits_line(item.name, item.negative, magnitude, unit, keep_zeros=True)
    below = max(0, unit - item.unit)
    whole = item.significand >> below << max(0, item.unit - unit)
    tail, marks = item.significand & ((1 << below) - 1), frozenset[str]()
    if whole and not magnitude:
        marks, tail = frozenset(["dropped"]), item.significand
    elif magnitude != whole:
        marks = frozenset(["raised"])
    lost = bits_line("", False, tail, item.unit)
    return replace(row, cut=lost.bits, cut_first=lost.first, exponent=item.exponent, signals=signals, marks=marks)


def round_line(total: BitLine, fmt: Format, mode: str, pattern: int, signals: tuple[Name, ...]) -> Rounded:
    """The rounding of a sum: the bits of the sum that a format keeps, and the outcome, inferred from the result's
    pattern."""
    magnitude, unit = int(total.bits or "0", 2), total.last
    lowest = max(total.first, fmt.emin) - fmt.fraction if magnitude else unit
    below = max(0, lowest - unit)
    rest = magnitude & ((1 << below) - 1)
    half = bool(below) and bool(rest >> (below - 1))
    sticky = bool(below) and bool(rest & ((1 << (below - 1)) - 1))
    row = bits_line("kept", total.negative, magnitude >> below, unit + below, keep_zeros=True)
    outcome = _outcome(abs(row.value), Fraction(2) ** lowest, bool(rest), exact_value(pattern, fmt))
    return Rounded(fmt, mode, row, lowest, half, sticky, pattern, outcome, signals)


def _outcome(kept: Fraction, step: Fraction, inexact: bool, result: Fraction | str) -> Outcome:
    """What rounding made of the kept bits: the exact result, a truncated one, one raised by one unit, or a limit of the
    format (overflow, or zero if flushed)."""
    if isinstance(result, str) and result != "-0":
        return "overflow"
    size = Fraction(0) if isinstance(result, str) else abs(result)
    if size == kept:
        return "cut" if inexact else "exact"
    if size == kept + step:
        return "raised"
    return "overflow" if size else "flushed"


def check_same_inputs(first: Model, other: Model) -> None:
    """Raises ParameterError for two models with operands of different formats, which have no input in common."""
    for row in OPERANDS:
        if other.formats.get(row.name) != first.formats.get(row.name):
            raise ParameterError("against", f"{other.reference} has another format of {row.key} than {first.reference}")


def explain(model: Model, operands: Operands[int]) -> Explanation:
    """The explanation of the evaluation of one input."""
    return _Explainer(model, operands).explanation()


@dataclass
class _Open:
    """The current step. `within`: the prefix of its signals; `incoming`: the terms from earlier steps, by name; `last`:
    the visit of the step's last rounding."""

    within: str
    pictures: list[Picture] = field(default_factory=list)
    products: list[Item] = field(default_factory=list)
    groups: list[Group] = field(default_factory=list)
    incoming: dict[str, Item] = field(default_factory=dict)
    last: Visit | None = None

    @property
    def name(self) -> str:
        return self.within.rstrip(".")


class _Explainer:
    """The walk over one evaluation: the current step, and tables of what later nodes need of earlier ones. Values are
    identified by their id: the trace has one object for a value, wherever the value is a term."""

    def __init__(self, model: Model, operands: Operands[int]) -> None:
        self.model, self.operands = model, operands
        self.evaluation = evaluate_one(model, operands)
        self.facts, self.entered = facts_of(self.evaluation), self.evaluation.trace.entered
        self.named = set(model.unit.names.values()) | set(model.unit.signals)
        self.last: dict[Node, Visit] = {}
        self.sums: dict[Node, Picture] = {}  # the last picture of each sum
        self.causes: dict[int, list[Cause]] = {}  # by the id of a value that is not finite
        self.names: dict[int, str] = {}  # by the id of a value
        self.born: dict[int, int] = {}  # by the id of a value, the number of the step that formed it
        self.products: dict[str, BitLine] = {}
        self.factors: dict[str, tuple[str, str]] = {}  # by product, its factors in words
        self.steps: list[StepView] = []
        self.step = _Open("")

    def explanation(self) -> Explanation:
        for visit in self.evaluation.trace.visits:
            if visit.within != self.step.within:
                self._close()
                self.step = _Open(visit.within)
            self._take(visit)
        self._close()
        products = sorted(
            self.products.values(), key=lambda row: int(row.name) if row.name.isdigit() else len(row.name)
        )
        result, inputs = integer(self.evaluation.d), self._inputs()
        return Explanation(
            self.model, self.operands, inputs, tuple(products), tuple(self.steps), result, self.facts, self.factors
        )

    def _inputs(self) -> dict[str, Input]:
        layout, row = layout_of(self.model), padded(self.operands, self.model).every
        flushing = flushed_in(self.model.unit.result)
        inputs = {}
        for (operand, _), name, pattern, fmt in zip(layout.places, layout.names, row, layout.formats, strict=True):
            item = item_of_pattern(name, pattern, fmt)
            subnormal = item.exponent == fmt.emin and not item.significand >> fmt.fraction
            inputs[name] = Input(
                name, pattern, fmt, subnormal and not (item.is_zero or item.special) and operand in flushing
            )
        return inputs

    # -- nodes

    def _take(self, visit: Visit) -> None:
        node, key = visit.node, id(visit.value)
        assert isinstance(node, Node)
        self.born.setdefault(key, len(self.steps))
        if key not in self.causes and (causes := self._causes(visit, node)):
            self.causes[key] = causes
        self.last[node] = visit
        match node:
            case Element() | Constant() if not self.names.get(key):
                self.names[key] = visit.place or node.sentence()
            case Product():
                self._product(visit, node)
            case Gate():
                self._gated(visit)
            case Cancelling() if node.term in self.sums:
                self.sums[node] = self.sums[node.term]
            case Segment():
                self.names[key] = f"{visit.place} bits {node.first} to {node.end - 1}"
            case Relu():
                self.names[key] = f"max({self._rectified(visit, node)}, 0)"
            case Scale():
                self._scale(visit, node)
            case Sum() if visit.prefix in self.entered:
                self._show(node, self._sum(visit, node))
            case Cut():
                self._show(node, self._cut(visit, node))
            case Round():
                self._show(node, self._rounded(visit, node))
                self.names.setdefault(key, self._called(visit, node))
                self.step.last = visit

    def _called(self, visit: Visit, node: Round) -> str:
        """The name of a rounded number with a picture of its own: the step's name, or the operand's name with the
        format."""
        if node in self.named:
            return visit.prefix.rstrip(".").rpartition(".")[2]
        before = self.names.get(id(self.last[node.term].value)) if isinstance(node.term, Round) else None
        what = (before or "").partition(" in ")[0] or visit.place or "sum"
        return f"{what} in {node.rounding.format.name}"

    def _rectified(self, visit: Visit, node: Relu) -> str:
        """The operand of a rectifier as a short text: x for a nonzero number that passes, else the number or special
        value."""
        item, result = item_of("", self.last[node.term].value), item_of("", visit.value)
        if item.special:
            return "nan" if item.is_nan or result.is_nan else "inf" if result.is_infinite else "-inf"
        return "x" if result.significand else powers(term_line(item, ()).value)

    def _show(self, node: Node, picture: Picture) -> None:
        """Add a picture to the step; the picture of a rounded or cut sum replaces the picture of the sum."""
        if isinstance(node, (Cut, Round)):
            unfinished = self._unfinished(node)
            self.step.pictures = [part for part in self.step.pictures if part is not unfinished]
            if picture.special is not None:  # the sum's bits are meaningless where special values decide
                self.step.pictures = [part for part in self.step.pictures if part.rounded or part.special]
        self.step.pictures.append(picture)
        self.sums[node] = picture

    def _product(self, visit: Visit, node: Product) -> None:
        name = visit.place or visit.prefix.rstrip(".")
        item = item_of(name, visit.value)
        if not visit.place:
            self.factors[name] = (self._factor(node.left), self._factor(node.right))
        self.step.products.append(item)
        signal = Name("", Stage.PRODUCT, name) if visit.place else Name(visit.prefix, Stage.STEP)
        self.products.setdefault(name, term_line(item, (signal,)))

    def _factor(self, node: Node) -> str:
        """A factor in words: its name and its value."""
        visit = self.last[node]
        item, name = item_of("", visit.value), self.names.get(id(visit.value), visit.place)
        if isinstance(node, Segment):
            name = f"{visit.place}[{node.first}:{node.end}]"
        sign = "-" if item.negative else ""
        value = "nan" if item.is_nan else f"{sign}inf" if item.is_infinite else powers(term_line(item, ()).value)
        return f"{name} {value}".lstrip()

    def _gated(self, visit: Visit) -> None:
        """Replace a product by its gated value, a zero where a factor is zero, even with an infinity or a NaN."""
        name = visit.place or visit.prefix.rstrip(".")
        item = item_of(name, visit.value)
        self.step.products = [item if one.name == name else one for one in self.step.products]
        if name in self.products:
            self.products[name] = term_line(item, self.products[name].signals)

    def _scale(self, visit: Visit, node: Scale) -> None:
        """Add a group of scaled products: a product or an exact sum of products, whose picture is removed."""
        term, names = self.last[node.term], [self.last[node.term].place]
        scales = (self._scale_factor(node.left), self._scale_factor(node.right))
        if isinstance(node.term, ExactSum):
            own = self.sums.get(node.term)
            self.step.pictures = [part for part in self.step.pictures if part is not own]
            names = [name for name, _ in self.entered[term.prefix][1]] if term.prefix in self.entered else names
        members = tuple(int(name) for name in names if name.isdigit())
        total = term_line(item_of("", term.value), ()).value
        self.step.groups.append(Group(visit.place, members, total, scales))

    def _scale_factor(self, node: Node) -> str:
        """A scale factor: an input's name, or another one's value."""
        return self.last[node].place or self._factor(node)

    # -- sums

    def _term(self, name: str, value: Unpacked) -> Item:
        """A term with its name in this step. A value from an earlier step keeps its name there, and is noted as
        incoming."""
        key = id(value)
        shown = self.names.get(key, name) if name in RUNNING else name
        item = item_of(shown, value)
        if self.born.get(key, 0) < len(self.steps) or (key in self.names and name in (*RUNNING, "c")):
            self.step.incoming.setdefault(shown, item)
        return item

    def _sum(self, visit: Visit, node: Sum) -> Picture:
        prefix = visit.prefix
        top = self.facts.get(Name(prefix, Stage.MAXIMUM))
        maximum = None if top is None else top.value + (top.scale or 0)
        keeps, own = node.kept_of_terms, node.frame_term
        frame = None if own is None else item_of("", self.entered[prefix][1][own][1]).negative
        rows, zeros, largest = [], [], []
        for position, (name, value) in enumerate(self.entered[prefix][1]):
            item = self._term(name, value)
            signals = (Name(prefix, Stage.TERM, name), Name(prefix, Stage.ALIGNED, name))
            kept = None if maximum is None else self.facts[signals[1]]
            if item.is_zero and not item.special and not (kept and kept.value):
                zeros.append(item.name)
                continue
            row = term_line(item, signals, kept, 0 if maximum is None else maximum - keeps[position])
            more = node.raises_of_terms[position] if keeps else 0
            top_one = item.exponent + more == maximum and not item.special
            marks = row.marks | {"maximum"} if top_one else row.marks
            if top_one and any(node.raises_of_terms):
                largest.append((item.name, item.exponent, keeps[position] - more))
            if item.negative != frame and frame is not None:
                marks = marks - {"raised"} | {"flipped"}
            rows.append(replace(row, marks=marks))
        whole = Name(prefix, Stage.SUM)
        negative, number = self.facts[whole.its(Part.NEGATIVE)], self.facts[whole.its(Part.MAGNITUDE)]
        assert number.scale is not None
        total = bits_line("sum", bool(negative.value), number.value, number.scale, keep_zeros=maximum is not None)
        total = replace(total, signals=(negative.name, number.name, whole))
        rounds = isinstance(node, (FusedSum, GridSum)) and node.rounding != "toward_zero"
        picture = Picture(prefix, tuple(rows), tuple(zeros), total, name=visit.place, rounds=rounds)
        exact = sum((row.value for row in rows), Fraction(0))
        jammed = maximum is None or node.sticky  # the lowest bit is sticky
        if jammed and exact != total.value:
            picture = replace(picture, total=replace(total, marks=frozenset(["sticky"])))
        if maximum is None or not rows:
            return picture
        raised = any("maximum" in row.marks for row in rows)
        picture = replace(picture, maximum=maximum, floor=None if raised else maximum, unit=maximum - max(keeps),
                          fewest=min(keeps), largest=tuple(largest) if any(node.raises_of_terms) else None)  # fmt: skip
        return picture if jammed or not isinstance(node, FusedSum) else self._wrapping(picture, exact, node)

    def _wrapping(self, picture: Picture, exact: Fraction, node: FusedSum) -> Picture:
        """The picture with the two's complement of a negative sum, in the unit's width if carry bits limit it, and, if
        the sum wrapped, the sum before it wrapped."""
        unit, wraps = picture.unit, exact != picture.total.value
        assert unit is not None
        if exact >= 0 and not wraps:
            return picture
        number = int(exact / Fraction(2) ** unit)
        width = max(abs(number).bit_length(), *(row.first - unit + 1 for row in picture.rows)) + 1
        if node.carry_bits is not None:
            width = max(node.bits_of_terms) + 2 + node.carry_bits
        signals = picture.total.signals
        complement = BitLine(
            "complement", False, f"{number % (1 << width):0{width}b}", unit + width - 1, signals=signals
        )
        unwrapped = bits_line("unwrapped", exact < 0, abs(number), unit, keep_zeros=True) if wraps else None
        return replace(picture, complement=complement, unwrapped=unwrapped)

    # -- how a sum is rounded

    def _unfinished(self, node: Cut | Round) -> Picture | None:
        """The picture of the sum that a node cuts or rounds; None if there is none, or it is cut or rounded already."""
        picture = self.sums.get(node.term)
        if picture is None or picture.rounded or picture.special or (picture.cut and isinstance(node, Cut)):
            return None
        return picture

    def _picture(self, node: Cut | Round) -> Picture:
        """The picture of a node's operand, a sum or a single number."""
        if (unfinished := self._unfinished(node)) is not None:
            return unfinished
        visit = self.last[node.term]
        name = self.names.get(id(visit.value)) or visit.place or visit.prefix.rstrip(".")
        item = self._term(name, visit.value)
        rows = () if item.is_zero and not item.special else (term_line(item, ()),)
        total = replace(term_line(replace(item, is_infinite=False, is_nan=False), ()), name="sum", exponent=None)
        if isinstance(node.term, Quotient) and rows and not item.special:
            left, right = (item_of("", self.last[part].value).value for part in node.term.operands)
            total = total if total.value * right == left else replace(total, marks=frozenset(["sticky"]))
        return Picture("", rows, () if rows else (name,), total, name=name, single=True)

    def _cut(self, visit: Visit, node: Cut) -> Picture:
        picture, number = self._picture(node), self.facts[Name(visit.prefix, Stage.CUT)]
        assert number.scale is not None
        row = bits_line("cut", picture.total.negative, number.value, number.scale, keep_zeros=True)
        if row.value == picture.total.value:
            return picture
        return replace(picture, cut=replace(row, signals=(number.name,)))

    def _rounded(self, visit: Visit, node: Round) -> Picture:
        """The picture of a rounding's operand with the result, or with the rule for special values that decided it."""
        prefix, how, picture = visit.prefix, node.rounding, self._picture(node)
        flags = [Name(prefix, Stage.SPECIAL, part=part) for part in (Part.NAN, Part.INFINITE)]
        result = Name(prefix, Stage.RESULT)
        is_nan, is_infinite = (bool(self.facts[flag].value) for flag in flags)
        sign, pattern = self.facts[Name(prefix, Stage.SIGN)], self.facts[result].value
        total = replace(picture.total, negative=bool(sign.value), signals=(sign.name, *picture.total.signals[1:]))
        picture = replace(picture, prefix=picture.prefix or prefix, total=total)
        if is_nan or is_infinite:
            causes = [replace(cause, term=cause.term or picture.name) for cause in self._causes_below(node)]
            return replace(picture, special=_special_rule(is_nan, causes, pattern, (*flags, result)))
        before = picture.cut or total
        return replace(
            picture, rounded=round_line(before, how.format, how.mode, pattern, (Name(prefix, Stage.ROUNDED), result))
        )

    # -- special values

    def _causes(self, visit: Visit, node: Node) -> list[Cause]:
        """The causes of a value that is not finite. For a rounded result no inputs are named, since its own step names
        them."""
        item = item_of("", visit.value)
        if not item.special:
            return []
        match node:
            case Element():
                return [Cause("", "nan" if item.is_nan else "infinite", (visit.place,))]
            case Product():
                return [self._cause_of_product(node)]
            case Scale():
                return [*self._causes_below(node), *self._causes_of_scales(node, item)]
            case Sum() if visit.prefix in self.entered:
                return list(self._causes_of_terms(visit.prefix))
        if node.passes_specials or isinstance(node, ExactSum):
            return self._causes_below(node)
        return [Cause("", "nan" if item.is_nan else "infinite")]

    def _causes_below(self, node: Node) -> list[Cause]:
        """The causes of the value of a node's first operand."""
        return self.causes.get(id(self.last[node.operands[0]].value), [])

    def _cause_of_product(self, node: Product) -> Cause:
        pair = [item_of(self.last[part].place, self.last[part].value) for part in node.operands]
        if any(item.is_nan for item in pair):
            return Cause("", "nan", _input_names(item for item in pair if item.is_nan))
        if any(item.is_infinite for item in pair) and any(item.is_zero for item in pair):
            return Cause("", "inf*0", _input_names(pair))
        infinite = [item for item in pair if item.is_infinite]
        return Cause("", "infinite" if infinite else "too_large", _input_names(infinite))

    def _causes_of_scales(self, node: Scale, item: Item) -> Iterator[Cause]:
        scales = [item_of(self.last[part].place, self.last[part].value) for part in (node.left, node.right)]
        nans, infinite = [x for x in scales if x.is_nan], [x for x in scales if x.is_infinite]
        zeros = [x for x in scales if x.is_zero]
        if nans:
            yield Cause("", "nan", _input_names(nans))
        if item.is_nan and (infinite or (zeros and self._causes_below(node))):
            yield Cause("", "inf*0", _input_names([*infinite, *zeros]))
        elif infinite:
            yield Cause("", "infinite", _input_names(infinite))

    def _causes_of_terms(self, prefix: str) -> Iterator[Cause]:
        for name, value in self.entered[prefix][1]:
            shown = self.names.get(id(value), name) if name in RUNNING else name
            for cause in self.causes.get(id(value), ()):
                yield replace(cause, term=cause.term or shown)

    # -- steps

    def _close(self) -> None:
        """Finish the current step: add it to the steps if it has pictures."""
        step = self.step
        if not step.pictures:
            return
        pictures = tuple(replace(part, name=part.name or part.prefix.removeprefix(step.within).rstrip("."))
                         for part in step.pictures)  # fmt: skip
        indices = tuple(sorted({int(item.name) for item in step.products if item.name.isdigit()}))
        result, fmt = None, self.model.d
        if step.last is not None:
            assert isinstance(step.last.node, Round)
            result, fmt = self.facts[Name(step.last.prefix, Stage.RESULT)].value, step.last.node.rounding.format
            self.names[id(step.last.value)] = step.name.rpartition(".")[2]
        passes = self._passes(step, result, fmt)
        incoming, groups = tuple(step.incoming), tuple(step.groups)
        self.steps.append(StepView(step.name, step.within, indices, incoming, pictures, result, fmt, groups, passes))

    @staticmethod
    def _passes(step: _Open, result: int | None, fmt: Format) -> bool:
        """Whether every product is zero, and the step's result is the incoming result, with its sign."""
        if result is None or not step.products or any(not item.is_zero or item.special for item in step.products):
            return False
        special = [item for item in step.incoming.values() if item.special]
        if special:
            return all(part.special is not None and len(part.rows) == 1 for part in step.pictures)
        negative = bool(result & fmt.sign_bit) if fmt.signed else False
        alone = all(part.plain and part.special is None and len(part.rows) <= 1 for part in step.pictures)
        return alone and all(item.negative == negative for item in step.incoming.values())


def _input_names(items: Iterable[Item]) -> tuple[str, ...]:
    """The names of those factors that are inputs."""
    return tuple(item.name for item in items if item.name[:1].isalpha())


def _special_rule(is_nan: bool, causes: list[Cause], pattern: int, signals: tuple[Name, ...]) -> Special:
    """The rule that decided a result that is not finite."""
    rules: tuple[Rule, ...] = ("nan", "inf*0")
    for kind in rules:
        deciding = tuple(cause for cause in causes if cause.kind == kind)
        if is_nan and deciding:
            return Special(kind, deciding, pattern, signals)
    return Special("opposite" if is_nan else "infinity", tuple(causes), pattern, signals)
