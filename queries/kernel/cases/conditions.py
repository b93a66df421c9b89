"""The conditions of an evaluation: the cases that each node of a unit may meet, each with a truth value over any
carrier.

The cases depend on the nodes and on their typed signals in the trace, not on the name of a unit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from operator import or_
from typing import Any

from mmaprobe.queries.kernel.cases.lone_bits import LoneBit, deciding_bit, lone_bits_of_aligned, lone_bits_of_two
from mmaprobe.queries.kernel.questions.problem import Problem, evaluate_on
from mmaprobe.smtmodel.arithmetic.alignment import is_within, magnitude_of, total_of, with_tail
from mmaprobe.smtmodel.arithmetic.decode import Exponent, Term, Unpacked, is_normal, multiply, unpack
from mmaprobe.smtmodel.arithmetic.formats import Format, integer
from mmaprobe.smtmodel.arithmetic.rounding import NEAREST, Tail, draw, increments, is_raised, is_stochastic, tail_of
from mmaprobe.smtmodel.carriers.algebra import (
    Bit,
    Bits,
    all_of,
    any_of,
    choose,
    constant,
    max_of,
    select,
    shift_right_jam,
    truth,
)
from mmaprobe.smtmodel.evaluate.model import Evaluation, Model
from mmaprobe.smtmodel.evaluate.operands import Layout, Operands
from mmaprobe.smtmodel.exceptions import exceptions_in
from mmaprobe.smtmodel.nodes import Cut, Element, ExactSum, Flags, FusedSum, GridSum, Node, Product, Round, Scale
from mmaprobe.smtmodel.nodes.node import Flaw, Flaws, Value, of_kind
from mmaprobe.smtmodel.nodes.round import Rounding
from mmaprobe.smtmodel.nodes.trace import Name, Part, Stage, Trace, Visit

ONE_BIT = "one bit"  # the first words of an aspect whose conditions need one vector each
#: words of exception flags: those of one rounding, and those that need several roundings
ONE_ROUNDING, SEVERAL = (0, 1, 3, 5, 16), (7, 17, 19, 21, 23)
GUARDS = 4  # places below the last one that is kept in which an adder may still have a term's bits
NEAR = 3  # each place of a sum's leading one is a case, down to this many places below the largest term's exponent


@dataclass(frozen=True)
class Condition:
    """A case of a step of the datapath. `aspect`: the property of the step that differs between cases. Cases of one
    aspect are not combined with each other; a case with `alone` is combined with no other case. `flaw`: an error of the
    datapath that the result must show: an input reaches the condition if it meets the case and the flaw changes the
    result."""

    step: str
    aspect: str
    case: str
    alone: bool = False
    flaw: Flaw | None = None

    def __str__(self) -> str:
        return f"{self.step}: {self.aspect}: {self.asked}"

    @property
    def asked(self) -> str:
        """The case in words; with a flaw, also that the result depends on the flag that the flaw inverts."""
        return self.case + (f', and the flag "{self.flaw[1]}" decides the result' if self.flaw else "")

    @property
    def is_one_bit(self) -> bool:
        """Whether the condition is about one bit alone: one vector is enough."""
        return self.aspect.startswith(ONE_BIT)


Met = dict[Condition, Bit]


@dataclass
class _Cases:
    """The cases of one step, each with whether it is met (`flags`)."""

    step: str
    lone: dict[object, list[LoneBit]] = field(default_factory=dict)  # by sum
    visits: dict[int, Visit] = field(default_factory=dict)  # by the id of a value
    flags: Met = field(default_factory=dict)

    def add(self, aspect: str, case: str, flag: Bit, alone: bool = False) -> None:
        self.flags[Condition(self.step, aspect, case, alone)] = flag

    def shown(self, aspect: str, case: str, flag: Bit, value: Unpacked, flaw: str) -> None:
        """Add a case with `alone`. If the value has a site, also add the same case with a flaw: the flag `flaw` of the
        value is wrong."""
        self.add(aspect, case, flag, alone=True)
        if (visit := self.visits.get(id(value))) is not None:
            assert isinstance(visit.node, Node)
            self.flags[Condition(self.step, aspect, case, True, ((visit.node, visit.site[1]), flaw))] = flag

    def sign(self, value: Unpacked) -> Bit:
        """The sign of a value as a number, also of an infinity and of a sum of zeros."""
        whole = self._whole(value)
        return value.sign if whole is None else whole.number_sign

    def is_sum(self, value: Unpacked) -> bool:
        """Whether a value is a sum, whose exponent may count where its terms cancel."""
        whole = self._whole(value)
        return whole is not None and whole.is_sum

    def is_nan(self, value: Unpacked) -> Bit:
        """Whether a value is a NaN, also as a sum of infinities of both signs."""
        whole = self._whole(value)
        return value.is_nan if whole is None else value.is_nan | all_of(whole.infinities)

    def _whole(self, value: Unpacked) -> Value | None:
        """The whole value of the visited node whose term is `value`; None for a term of no visited node."""
        visit = self.visits.get(id(value))
        if visit is None:
            return None
        assert isinstance(visit.whole, Value)
        return visit.whole


def conditions_of(model: Model, layout: Layout, operands: Operands[Bits], evaluation: Evaluation) -> Met:
    """The cases of the inputs and steps of an evaluation, each with whether it is met; flaws are not evaluated. Cases
    that the formats exclude are left out."""
    flags = dict[Condition, Bit]()
    for place, (name, fmt, pattern) in enumerate(zip(layout.names, layout.formats, operands.every, strict=True)):
        flags |= {} if place in layout.unread else _input(name, fmt, pattern)
    flags |= _lone_inputs(layout, operands)
    trace = evaluation.trace
    values: dict[Node, Unpacked] = {}
    lone: dict[object, list[LoneBit]] = {}
    visits = dict[int, Visit]()
    for visit in trace.visits:
        assert isinstance(visit.node, Node)
        visits[id(visit.value)] = visit
        cases = _Cases(visit.prefix.rstrip(".") or "d", lone, visits)
        for kind, function in KINDS.items():
            if isinstance(visit.node, kind):
                function(cases, visit, trace, values, model)
        values[visit.node] = visit.value
        flags |= cases.flags
    return flags


def possible(flags: Met) -> Met:
    """The cases of free inputs without those that the formats exclude, such as an infinite product of integers."""
    return {condition: flag for condition, flag in flags.items() if flag.value is not False}


def flaws_of(conditions: Iterable[Condition]) -> tuple[Flaw, ...]:
    """The flaws of some conditions, each once."""
    return tuple(dict.fromkeys(condition.flaw for condition in conditions if condition.flaw is not None))


def hangs(model: Model, operands: Operands[Bits], own: Bits, flaws: Flaws) -> Bit:
    """Whether flaws change the result of a model. `own`: the result without flaws."""
    return Problem(model, model).differ(own, evaluate_on(model, operands, traced=False, flaws=flaws).d)


def _input(name: str, fmt: Format, pattern: Bits) -> Met:
    """The cases of an input."""
    cases, carrier = _Cases(name), pattern.carrier
    if fmt.is_integer:
        for word, number in (("zero", 0), ("one", 1), ("largest", fmt.largest)):
            cases.add("value", word, pattern.equals(number), alone=True)
        if fmt.signed:
            cases.add("value", "least", pattern.equals(fmt.sign_bit), alone=True)
            cases.add("value", "-one", (~pattern).equals(0), alone=True)
        return cases.flags
    value = unpack(pattern, fmt)
    fields = pattern.truncate(fmt.field_width)

    def is_field(field: int) -> Bit:
        return fields.equals(field << fmt.padding)

    sign = value.sign
    signs = [("", truth(carrier, True))] if not fmt.signed else [("+", ~sign), ("-", sign)]
    finite = ~(value.is_nan | value.is_infinite)
    for word, given in signs:
        if fmt.subnormals and (word != "-" or fmt.has_negative_zero):
            cases.add("value", f"{word}zero", value.is_zero & given & finite, alone=True)
        if fmt.subnormals and fmt.fraction:
            cases.add("value", f"{word}smallest subnormal", is_field(1) & given, alone=True)
            low = fields.extract(fmt.field_width - 1, fmt.padding + fmt.fraction).equals(0)
            cases.add("value", f"{word}subnormal", low & ~value.is_zero & given & finite, alone=True)
            cases.add("value", f"{word}smallest normal", is_field(1 << fmt.fraction) & given, alone=True)
        cases.add("value", f"{word}largest", is_field(fmt.largest_field) & given, alone=True)
        cases.add("value", f"{word}normal", value.term.significand.msb() & given & finite, alone=True)
        if fmt.has_infinity:
            cases.add("value", f"{word}infinity", value.is_infinite & given, alone=True)
    if fmt.has_nan:
        cases.add("value", "NaN", value.is_nan, alone=True)
    return cases.flags


def _lone_inputs(layout: Layout, operands: Operands[Bits]) -> Met:
    """The cases of an input in which one bit alone of a field is set, or clear. The input is a factor of the only
    nonzero term, or of the larger of two terms, and the other factor is a normal number; or the input is c."""
    flags = dict[Condition, Bit]()
    n, every = layout.length, [*zip(layout.names, layout.formats, operands.every, strict=True)][: 2 * layout.length + 1]
    read = [place for place in range(len(every)) if place not in layout.unread]
    if any(every[place][1].is_integer for place in read):
        return flags
    zero = {place: every[place][2].truncate(every[place][1].field_width).equals(0) for place in read}
    for place in read:
        name, fmt, pattern = every[place]
        cases, partner = _Cases(name), (place + n) % (2 * n) if place < 2 * n else -1
        term, own = _term_of(every, place, partner)
        live = all_of(
            [one.term.significand.msb() & _is_number(one) for one in own[1:]] or [truth(pattern.carrier, True)]
        )
        shown = all_of([live, *(zero[other] for other in read if other not in (place, partner))])
        above = truth(pattern.carrier, False)
        if layout.length and 2 * n in read:  # a smaller second term
            second = (2 * n, -1) if place < 2 * n else (0, n)
            less, others = _term_of(every, *second)
            rest = [zero[other] for other in read if other not in (place, partner, *second)]
            far = _distance_to(term.normalised().exponent, less.normalised().exponent)
            above = all_of([live, *map(_is_number, others), less.significand.any(), _beyond(far, 0), *rest])
        exponent = pattern.extract(fmt.field_width - 1, fmt.padding + fmt.fraction) if fmt.exponent else None
        fraction = pattern.extract(fmt.padding + fmt.fraction - 1, fmt.padding) if fmt.fraction else None
        if fraction is not None and exponent is not None:
            for bit in range(fmt.fraction):
                alone = fraction.equals(1 << bit) & shown
                if fmt.subnormals:
                    cases.add(ONE_BIT, f"subnormal, bit {bit} alone", exponent.equals(0) & alone, alone=True)
                    beside = exponent.equals(0) & fraction.equals(1 << bit) & above
                    cases.add(ONE_BIT, f"subnormal, bit {bit} alone, above another term", beside, alone=True)
                if fmt.has_nan and fmt.has_infinity:
                    top = exponent.equals((1 << exponent.width) - 1)
                    cases.add(ONE_BIT, f"NaN, bit {bit} alone", top & alone, alone=True)
        if exponent is not None and exponent.width > 1:
            for bit in range(exponent.width):
                one = exponent.equals(1 << bit)
                cases.add(ONE_BIT, f"bit {bit} of the exponent alone", one & shown, alone=True)
                if fraction is not None:
                    case = f"bit {bit} of the exponent alone, no fraction, above another term"
                    cases.add(ONE_BIT, case, one & fraction.equals(0) & above, alone=True)
                most = exponent.equals((1 << exponent.width) - 1 - (1 << bit))
                cases.add(ONE_BIT, f"the exponent's bits but {bit}", most & shown, alone=True)
        flags |= cases.flags
    return flags


def _term_of(every: Sequence[tuple[str, Format, Bits]], place: int, partner: int) -> tuple[Term, Sequence[Unpacked]]:
    """The product of two inputs, or one input (`partner` is -1); and these inputs."""
    inputs = [unpack(every[one][2], every[one][1]) for one in (place, partner) if one >= 0]
    return multiply(*(one.term for one in inputs)) if len(inputs) > 1 else inputs[0].term, inputs


def _is_number(value: Unpacked) -> Bit:
    return ~(value.is_infinite | value.is_nan)


Values = dict[Node, Unpacked]


def _product(cases: _Cases, visit: Visit, trace: Trace, values: Values, model: Model) -> None:
    node, value = visit.node, visit.value
    assert isinstance(node, Product)
    term, aspect = value.term, f"product {visit.place}".rstrip()
    finite = ~(value.is_infinite | value.is_nan)
    top, one = term.is_two_or_more, term.significand.bit(term.fraction)
    for word, sign in (("+", ~term.sign), ("-", term.sign)):
        cases.add(aspect, f"{word}zero", value.is_zero & sign & finite, alone=True)
        cases.add(aspect, f"{word}infinite", value.is_infinite & sign & ~value.is_nan, alone=True)
        if term.integer > 1:
            cases.add(aspect, f"{word}significand of 2 or more", top & sign & finite, alone=True)
            cases.add(aspect, f"{word}significand from 1 to 2", ~top & one & sign & finite, alone=True)
            below = ~top & ~one & term.significand.any()
            cases.add(aspect, f"{word}significand below 1", below & sign & finite, alone=True)
    factors = [values[operand] for operand in node.operands if operand in values]
    if len(factors) == 2:
        sides = zip(("first", "second"), node.operands, factors, reversed(factors), strict=True)
        for operand, source, factor, other in sides:
            infinite, numbers = other.is_infinite & ~other.is_nan, ~(factor.is_nan | factor.is_infinite)
            some, bits = numbers & ~factor.is_zero, factor.term.significand
            normal = is_normal(factor, _is_integer(source, model))
            power = (bits & (bits - constant(bits.carrier, 1, bits.width))).equals(0)
            for word, flag in (("subnormal", some & ~normal),
                               ("a power of two", some & normal & power),
                               ("another number", some & normal & ~power),
                               ("infinite", factor.is_infinite & ~factor.is_nan), ("NaN", factor.is_nan)):  # fmt: skip
                reads = "NaN" if word == "NaN" else "infinite"
                cases.shown(aspect, f"infinity, and the {operand} factor {word}", flag & infinite, value, reads)
            nan, zero = factor.is_nan & ~other.is_nan & ~other.is_infinite, factor.is_zero & numbers
            cases.shown(aspect, f"only the {operand} factor NaN", nan & ~other.is_zero, value, "NaN")
            cases.shown(aspect, f"the {operand} factor NaN, the other zero", nan & other.is_zero, value, "NaN")
            cases.shown(aspect, f"the {operand} factor zero, the other infinity", zero & infinite, value, "NaN")
            number = ~(other.is_zero | other.is_infinite | other.is_nan)
            cases.shown(aspect, f"the {operand} factor alone zero", zero & number, value, "zero")
        cases.shown(aspect, "both factors NaN", all_of([x.is_nan for x in factors]), value, "NaN")
        if node.limit is not None:
            numbers = ~any_of([x.is_nan | x.is_infinite for x in factors])
            exponent = term.normalised().exponent
            top = multiply(factors[0].term, factors[1].term).is_two_or_more if node.normalised else top
            for offset, word in ((-1, "one below"), (0, "at"), (1, "one above")):
                at = _equals(exponent, node.limit + offset) & numbers & term.significand.any()
                cases.add(aspect, f"the exponent {word} the limit, 2 or more before", at & top, alone=True)
                cases.add(aspect, f"the exponent {word} the limit, below 2 before", at & ~top, alone=True)


def _is_integer(node: Node, model: Model) -> bool:
    """Whether a factor of a product is an operand, or a rounded result, of an integer format."""
    if isinstance(node, Element):
        return model.formats[node.operand].is_integer
    return isinstance(node, Round) and node.rounding.format.is_integer


def _equals(exponent: Exponent, value: int) -> Bit:
    if not exponent.low <= value <= exponent.high:
        return truth(exponent.bits.carrier, False)
    return exponent.bits.equals(value - exponent.low)


def _scale(cases: _Cases, visit: Visit, trace: Trace, values: Values, model: Model) -> None:
    node = visit.node
    assert isinstance(node, Scale)
    if node.term not in values:
        return
    term, aspect = values[node.term], "scale"
    scales = [values[side] for side in (node.left, node.right)]
    zero, number = any_of([side.is_zero for side in scales]), ~cases.is_nan(term)
    infinite, nothing = term.is_infinite & number, ~term.term.significand.any() & ~term.is_infinite & number
    cases.add(aspect, "a factor is NaN", any_of([side.is_nan for side in scales]))
    cases.add(aspect, "a factor is zero, and the term is not", zero & ~nothing)
    cases.add(aspect, "infinity times a factor of zero", zero & infinite)
    cases.add(aspect, "of zero, and no factor is zero", nothing & ~zero)
    cases.add(aspect, "of an infinity, and no factor is zero", infinite & ~zero)


def _terms_of(trace: Trace, step: str) -> tuple[Sequence[tuple[str, Unpacked]], list[Unpacked], Bit, list[Bit]]:
    """The terms of a sum, with their names and without; whether all are numbers; and whether each is zero."""
    _, named = trace.entered[step]
    items = [item for _, item in named]
    finite = ~any_of([item.is_nan | item.is_infinite for item in items])
    return named, items, finite, [~item.term.significand.any() for item in items]


def _aligned(cases: _Cases, visit: Visit, trace: Trace, values: Values, model: Model) -> None:
    node, step = visit.node, visit.prefix
    assert isinstance(node, (FusedSum, GridSum))
    named, items, finite, zeros = _terms_of(trace, step)
    carrier = items[0].sign.carrier
    bits_of, signs = node.kept_of_terms, list(map(cases.sign, items))

    signal = trace[Name(step, Stage.MAXIMUM)]
    maximum = Exponent(signal.bits, signal.offset, signal.offset + (1 << signal.bits.width) - 1)
    distances = [_distance_to(maximum, item.term.exponent) for item in items]  # floors move no bit of a term
    at_top = [_is(d, more) & ~zero for d, more, zero in zip(distances, node.raises_of_terms, zeros, strict=True)]
    loses, parts, counting = list[Bit](), list[Term](), list[tuple[str, Bit]]()
    top, reach = Exponent(maximum.bits, maximum.low, maximum.high), node.reach_of_terms
    negative = trace[Name(step, Stage.SUM, part=Part.NEGATIVE)].flag
    magnitude = trace[Name(step, Stage.SUM, part=Part.MAGNITUDE)].bits
    far = _positions(node, bits_of)
    for place, ((name, item), bits) in enumerate(zip(named, bits_of, strict=True)):
        aspect, term, zero = f"term {name or place}", item.term, zeros[place]
        live = ~zero & finite
        others = any_of([flag for k, flag in enumerate(at_top) if k != place] or [truth(carrier, False)])
        for word, sign in (("+", ~signs[place]), ("-", signs[place])):
            cases.add(aspect, f"{word}zero", zero & sign & finite, alone=True)
        cases.add(aspect, "the largest alone", at_top[place] & ~others & finite, alone=True)
        cases.add(aspect, "the largest with another", at_top[place] & others & finite, alone=True)
        outdone = at_top[place] & ~others & finite & magnitude.any() & (item.sign ^ negative)
        cases.add(aspect, "the largest alone, and the sum has the other sign", outdone, alone=True)
        cut, within = with_tail(term, top, bits), _within(term, top, reach[place])
        kept, half, rest = cut.extract(cut.width - 1, 2), cut.bit(1), cut.bit(0)
        raised = increments(node.rounding, term.sign, kept.bit(0), half, rest)
        inexact, some = (half | rest | ~within) & live, (kept.any() | raised) & within
        less = within | ~kept.any()
        loses.append(inexact)
        if cases.is_sum(item):
            counts = zero & ~item.is_zero & finite & _is(distances[place], node.raises_of_terms[place]) & ~others
            counting.append((aspect, counts))
        nothing = constant(carrier, 0, term.significand.width)
        parts.append(replace(term, significand=select(within, term.significand, nothing)))
        own, more = distances[place], node.raises_of_terms[place]
        for at in sorted({1 + more, bits - term.fraction + 1, bits, bits + 1, bits + 2, *far}):
            if at > more:
                cases.add(aspect, f"{at - more} below the largest", _is(own, at) & live, alone=True)
        cases.add(aspect, "far below the largest", _beyond(own, bits + 2) & live, alone=True)
        for word, sign in (("+", ~term.sign), ("-", term.sign)):
            cases.add(aspect, f"{word}loses bits", inexact & sign & some, alone=True)
            cases.add(aspect, f"{word}vanishes", inexact & sign & ~some, alone=True)
            if node.rounding != "toward_zero":
                for case, flag in _tails(kept.bit(0), half, rest):
                    cases.add(aspect, f"{word}{case}", flag & sign & live & within, alone=True)
        cases.add(aspect, "loses the half alone", half & ~rest & live & less, alone=True)
        cases.add(aspect, "loses less than the half", ~half & rest & live & less, alone=True)
    mode = None if node.rounding == "toward_zero" else node.rounding
    if node.sticky or mode is not None:
        names = [name or str(place) for place, (name, _) in enumerate(named)]
        cases.lone[node] = list(lone_bits_of_aligned(names, parts, distances, bits_of, mode, top))
    lost = any_of(loses)
    for aspect, counts in counting:
        cases.add(
            aspect, "zero that counts, its exponent the largest, and another loses bits", counts & lost, alone=True
        )
    cases.add("lost", "nothing", ~lost & finite & ~all_of(zeros))
    cases.add("lost", "bits of a term", lost & finite)
    cases.add("lost", "bits of two terms or more", _several(loses) & finite)
    _floors(cases, node, items, zeros, maximum, lost & finite, finite)
    if isinstance(node, FusedSum):
        _zeros_above(cases, trace, step, named, bits_of, maximum, finite)
    aspect = "largest"
    cases.add(aspect, "one term", any_of(at_top) & ~_several(at_top) & finite)
    cases.add(aspect, "several terms", _several(at_top) & finite)
    _total(cases, trace, step, named, zeros, finite, magnitude, max(bits_of) + node.sticky)
    if node.frame_term is not None:
        frame = signs[node.frame_term]
        opposed = any_of([sign ^ frame for sign in signs])
        for word, flag in (("no term opposes", ~opposed), ("a term opposes", opposed)):
            cases.add("frame", f"+, {word}", flag & ~frame & finite)
            cases.add("frame", f"-, {word}", flag & frame & finite)
    if node.carry_bits is not None:
        added = [trace[Name(step, Stage.TERM, name, Part.SIGN)].flag for name, _ in named]
        aligned = [trace[Name(step, Stage.ALIGNED, name)].bits for name, _ in named]
        whole, kept = total_of(added, aligned, None), trace[Name(step, Stage.SUM)].bits
        width = max(whole.width, kept.width)
        wraps = ~whole.sext(width).eq(kept.sext(width)) & finite
        cases.add("carry bits", "the sum wraps", wraps)
        largest = magnitude_of(whole)[1]
        fits = kept.width - 1
        if fits < largest.width:
            beyond = largest.extract(largest.width - 1, fits)
            cases.add("carry bits", "the sum is one power of two too large", wraps & beyond.equals(1))
        cases.add("carry bits", "the sum just fits", ~wraps & kept.bit(kept.width - 2) & ~kept.msb() & finite)
        cases.add("carry bits", "a negative sum just fits", ~wraps & ~kept.bit(kept.width - 2) & kept.msb() & finite)


def _zeros_above(
    cases: _Cases, trace: Trace, step: str, named: Sequence[tuple[str, Unpacked]], bits_of: Sequence[int],
    maximum: Exponent, finite: Bit,
) -> None:  # fmt: skip
    """The cases of zero terms with an exponent above the largest exponent, where other terms would lose bits if zeros
    counted."""
    kept = [trace[Name(step, Stage.ALIGNED, name)].bits for name, _ in named]
    own = [one.extract(one.width - 1, max(bits_of) - bits) for one, bits in zip(kept, bits_of, strict=True)]
    width = max(one.width for one in own)
    every = reduce(or_, [one.zext(width) for one in own]).pad(1)
    for place, (name, item) in enumerate(named):
        above = _distance_to(item.term.exponent, maximum)
        cuts = item.is_zero & _beyond(above, 0) & shift_right_jam(every, above).bit(0) & finite
        zero = "zero that does not count" if cases.is_sum(item) else "zero"
        cases.shown(f"term {name or place}", f"{zero}, with an exponent that would cut another", cuts, item, "zero")


def _within(term: Term, maximum: Exponent, reach: int | None) -> Bit:
    """Whether a term is within the reach of an alignment."""
    return truth(term.sign.carrier, True) if reach is None else is_within(term, maximum, reach)


def _positions(node: FusedSum | GridSum, bits: Sequence[int]) -> set[int]:
    """The distances from the largest exponent at which the sum's treatment of a term changes."""
    distances = {far + more for far in node.reach_of_terms if far is not None for more in (0, 1)}
    return distances | {max(bits)} if len(set(bits)) > 1 else distances


def _distance_to(maximum: Exponent, own: Exponent) -> Bits:
    """maximum - own in two's complement, in as many bits as any difference needs. It is negative for a term that does
    not count for the maximum."""
    width = max(maximum.high - own.low, own.high - maximum.low).bit_length() + 2
    low = min(maximum.low, own.low)
    return maximum.rebased(low, width) - own.rebased(low, width)


def _is(distance: Bits, value: int) -> Bit:
    if value >= 1 << (distance.width - 1):
        return truth(distance.carrier, False)
    return distance.equals(value)


def _beyond(distance: Bits, value: int) -> Bit:
    """Whether a distance is larger than a number."""
    if value >= 1 << (distance.width - 1):
        return truth(distance.carrier, False)
    return constant(distance.carrier, value, distance.width).slt(distance)


def _several(flags: Sequence[Bit]) -> Bit:
    """Whether two or more flags are set."""
    one = two = truth(flags[0].carrier, False)
    for flag in flags:
        one, two = one | flag, two | (one & flag)
    return two


def _tails(lowest: Bit, half: Bit, sticky: Bit) -> list[tuple[str, Bit]]:
    tails = []
    for word, low in (("even", ~lowest), ("odd", lowest)):
        tails += [
            (f"exact, {word}", ~half & ~sticky & low),
            (f"below half, {word}", ~half & sticky & low),
            (f"half, {word}", half & ~sticky & low),
            (f"above half, {word}", half & sticky & low),
        ]
    return tails


def _floors(
    cases: _Cases, node: FusedSum | GridSum, items: Sequence[Unpacked], zeros: Sequence[Bit], maximum: Exponent,
    lost: Bit, finite: Bit,
) -> None:  # fmt: skip
    """The cases of a sum's floors: the distance of the largest exponent above those of all terms, and that of the
    largest term's exponent from each floor."""
    low = min([item.term.exponent.low for item in items])
    high = max([item.term.exponent.high for item in items]) + max(node.raises_of_terms)
    width, carrier = max(1, (high - low).bit_length()), zeros[0].carrier
    none = constant(carrier, 0, width)

    def largest(raises: Sequence[int]) -> Exponent:
        own = [item.term.exponent.offset(more) for item, more in zip(items, raises, strict=True)]
        return Exponent(
            max_of([select(z, none, e.rebased(low, width)) for z, e in zip(zeros, own, strict=True)]), low, high
        )

    top = largest([0] * len(items))
    some, aspect = ~all_of(zeros) & finite, "largest exponent"
    above = _distance_to(maximum, largest(node.raises_of_terms))
    with_zero = any_of(zeros)
    cases.add(aspect, "one above every term's", _is(above, 1) & some)
    cases.add(aspect, "more above every term's", _beyond(above, 1) & some)
    cases.add(aspect, "above every term's, and bits are lost", _beyond(above, 0) & some & lost)
    for bound in sorted(set(node.bounds)):
        for offset in (-2, -1, 0, 1, 2):
            at = _equals(top, bound + offset) & some
            word = f"of the terms {bound + offset}, a floor {bound}"
            for case, flag in ((word, at), (f"{word}, a term zero", at & with_zero)):
                cases.add(aspect, case, flag, alone=True)
                cases.add(aspect, f"{case}, and bits are lost", flag & lost, alone=True)


def _total(
    cases: _Cases,
    trace: Trace,
    step: str,
    named: Sequence[tuple[str, Unpacked]],
    zeros: Sequence[Bit],
    finite: Bit,
    magnitude: Bits,
    unit: int | None,
) -> None:
    """The cases of a sum: its sign, its special values and the place of its leading one. `unit`: the place in
    `magnitude` of the largest term's exponent, None if it is not fixed."""
    items = [item for _, item in named]
    negative = trace[Name(step, Stage.SUM, part=Part.NEGATIVE)].flag
    some, nothing = magnitude.any(), all_of(zeros)
    cases.add("sum", "positive", some & ~negative & finite)
    cases.add("sum", "negative", some & negative & finite)
    cases.add("sum", "zero, of terms that are not all zero", ~some & ~nothing & finite)
    signs, nans = list(map(cases.sign, items)), list(map(cases.is_nan, items))
    cases.add("sum", "of zeros, all +", nothing & ~any_of(signs) & finite)
    cases.add("sum", "of zeros, all -", nothing & all_of(signs) & finite)
    if len(items) > 1:
        cases.add("sum", "of zeros of both signs", nothing & any_of(signs) & ~all_of(signs) & finite)
    if len(items) > 1:
        mixed = any_of(signs) & ~all_of(signs) & negative & finite
        for place in range(magnitude.width):
            case = f"negative, bit {place} alone, terms of both signs"
            cases.add(f"{ONE_BIT} of the sum", case, magnitude.equals(1 << place) & mixed, alone=True)
    if unit is not None:
        _leading(cases, magnitude, unit, finite)
    infinite = [item.is_infinite & ~own for item, own in zip(items, nans, strict=True)]
    plus = any_of([flag & ~sign for flag, sign in zip(infinite, signs, strict=True)])
    minus = any_of([flag & sign for flag, sign in zip(infinite, signs, strict=True)])
    nan = any_of(nans)
    cases.add("special", "infinities of both signs", plus & minus & ~nan, alone=True)
    if len(items) > 1:
        for word, flag in (("+", _several([x & ~sign for x, sign in zip(infinite, signs, strict=True)])),
                           ("-", _several([x & sign for x, sign in zip(infinite, signs, strict=True)]))):  # fmt: skip
            cases.add("special", f"several {word}infinities", flag & ~nan, alone=True)
        cases.add("special", "several NaN", _several(nans), alone=True)
        cases.add("special", "NaN and an infinity", nan & (plus | minus), alone=True)
        cases.add("special", "NaN and infinities of both signs", nan & plus & minus, alone=True)
        for (name, item), own, number_sign in zip(named, nans, signs, strict=True):
            cases.shown("special", f"{name} alone NaN", own & ~_several(nans) & ~(plus | minus), item, "NaN")
            for word, sign, opposite in (("+", ~number_sign, minus), ("-", number_sign, plus)):
                alone = item.is_infinite & ~_several(infinite) & sign & ~nan
                cases.shown("special", f"{name} alone {word}infinity", alone, item, "infinite")
                against = item.is_infinite & sign & opposite & ~nan
                cases.shown("special", f"{name} alone {word}infinity, against others", against, item, "infinite")
                for case, zero in (("of zeros", nothing), ("zero, of terms that are not all zero", ~some & ~nothing)):
                    cases.shown("sum", f"{case}, and {name} is {word}", zero & finite & sign, item, "negative")
    cases.add("special", "+infinity", plus & ~minus & ~nan, alone=True)
    cases.add("special", "-infinity", minus & ~plus & ~nan, alone=True)
    cases.add("special", "NaN", nan, alone=True)


def _leading(cases: _Cases, magnitude: Bits, unit: int, finite: Bit) -> None:
    """The cases of the leading one: its place relative to `unit`, the place of the largest term's exponent."""
    top = magnitude.width - 1
    for place in range(max(0, unit - NEAR), top + 1):
        leads = magnitude.bit(place)
        if place < top:
            leads = leads & ~magnitude.extract(top, place + 1).any()
        word = f"{place - unit:+d}" if place != unit else "at"
        cases.add("leading one", f"{word} the largest term's" if place == unit else f"{word} places", leads & finite)
    if unit - NEAR > 0:
        above = magnitude.extract(top, unit - NEAR).any()
        cases.add("leading one", "far below", magnitude.any() & ~above & finite)
        cases.add("leading one", "the last bit", magnitude.equals(1) & finite)


def _exact(cases: _Cases, visit: Visit, trace: Trace, values: Values, model: Model) -> None:
    step = visit.prefix
    if step not in trace.entered:
        return
    named, items, finite, zeros = _terms_of(trace, step)
    for (name, item), zero in zip(named, zeros, strict=True):
        own = cases.sign(item)
        for word, sign in (("+", ~own), ("-", own)):
            cases.add(f"term {name}", f"{word}zero", zero & sign & finite, alone=True)
    if len(items) == 2:
        _two(cases, named, zeros, finite, model.d.precision)
        kept = [one.rounding.format.precision for one in of_kind(model.unit.result, Round) if one.term == visit.node]
        how = model.unit.rounding
        if kept and max(kept) > how.format.precision and how.mode in NEAREST and not how.format.is_integer:
            _rounded_twice(cases, named, ~any_of(zeros) & finite, max(kept), how)
    magnitude = trace[Name(step, Stage.SUM, part=Part.MAGNITUDE)].bits
    if len(items) == 2 and Name(step, Stage.PLACED, named[0][0]) not in trace.signals:
        names, terms = [name for name, _ in named], [item.term for item in items]
        cases.lone[visit.node] = list(lone_bits_of_two(names, terms, magnitude.width - 3))
        for name, term in zip(names, terms, strict=True):
            first, live = term.significand.leading_zeros(), term.significand.any() & finite
            for place in range(term.significand.width):
                flag = _is_place(first, place) & live
                cases.add(f"{ONE_BIT} first of term {name}", f"{place} places below the top", flag, alone=True)
    if Name(step, Stage.PLACED, named[0][0]) in trace.signals:
        for name, _ in named:
            placed = trace[Name(step, Stage.PLACED, name)].bits
            cases.add(f"term {name}", "reaches the lowest place", placed.bit(0) & finite, alone=True)
        _total(cases, trace, step, named, zeros, finite, magnitude, None)
    else:
        _total(cases, trace, step, named, zeros, finite, magnitude, magnitude.width - 2)


def _two(
    cases: _Cases, named: Sequence[tuple[str, Unpacked]], zeros: Sequence[Bit], finite: Bit, precision: int
) -> None:
    """The cases of two terms: the distance of their exponents."""
    items = [item for _, item in named]
    exponents = [item.term.normalised().exponent for item in items]
    live = ~any_of(zeros) & finite
    same = ~(items[0].sign ^ items[1].sign)
    for first in (0, 1):
        apart = _distance_to(exponents[first], exponents[1 - first])
        last = named[1 - first][0]
        term = items[first].term
        loose = ~term.significand.top(max(1, term.integer)).any()  # for example a subnormal factor
        for word, signs in (("sum", same & live), ("difference", ~same & live)):
            for at in (0, 1, 2, 3, precision - 1, precision, precision + 1, precision + 2):
                cases.add(f"term {last}", f"{at} below, a {word}", _is(apart, at) & signs, alone=True)
                case = f"{at} below, the other unnormalised, a {word}"
                cases.add(f"term {last}", case, _is(apart, at) & loose & signs, alone=True)
            far = _beyond(apart, precision + 2) & signs
            cases.add("apart", f"{last} far below, a {word}", far)
            cases.add("apart", f"{last} below, the other unnormalised, a {word}", _beyond(apart, 0) & loose & signs)
        above = _distance_to(items[first].term.exponent, exponents[1 - first])
        zero = zeros[first] & ~zeros[1 - first] & finite
        cases.add("apart", f"{last} below the exponent of a zero", _beyond(above, 0) & zero)
        cases.add("apart", f"{last} far below the exponent of a zero", _beyond(above, precision + 2) & zero)


def _rounded_twice(cases: _Cases, named: Sequence[tuple[str, Unpacked]], live: Bit, kept: int, how: Rounding) -> None:
    """The cases of two terms whose sum is rounded to `kept` bits on the way to a result: one is half way between two
    results and would be rounded up, and the other lies below all that is kept, guard bits too."""
    (one, first), (other, second) = named
    for name, high, low in ((other, first, second), (one, second, first)):
        apart = _distance_to(high.term.normalised().exponent, low.term.normalised().exponent)
        tail = tail_of(high.term.significand, high.term.exponent.offset(-high.term.fraction), how.format)
        raised = is_raised(how.mode, high.sign, tail, None) & tail.half & ~tail.sticky
        flag = _beyond(apart, kept + GUARDS) & raised & live
        for word, signs in (("sum", ~(high.sign ^ low.sign)), ("difference", high.sign ^ low.sign)):
            case = f"{name} beyond what is kept, the other half way and rounded up, a {word}"
            cases.add("apart", case, flag & signs, alone=True)


def _cut(cases: _Cases, visit: Visit, trace: Trace, values: Values, model: Model) -> None:
    node = visit.node
    assert isinstance(node, Cut)
    if node.term not in values:
        return
    value = values[node.term]
    target = node.target(value.term)
    tail = tail_of(value.term.significand, value.term.exponent.offset(-value.term.fraction), target.format)
    finite = ~(value.is_nan | value.is_infinite)
    some = value.term.significand.any() & finite
    raised = increments(node.mode, value.sign, tail.lowest, tail.half, tail.sticky)
    for case, flag in _tails(tail.lowest, tail.half, tail.sticky):
        cases.add("cut", case, flag & some)
    cases.add("cut sign", "+", some & ~value.sign)
    cases.add("cut sign", "-", some & value.sign)
    cases.add("cut range", "a carry into the exponent", _full(tail, target.format) & raised & some)
    cases.add("cut range", "zero", ~some & finite)


def _full(tail: Tail, fmt: Format) -> Bit:
    """Whether every kept fraction bit is set."""
    if not fmt.fraction:
        return truth(tail.half.carrier, True)
    return (~tail.packed.truncate(fmt.fraction)).equals(0)


def _round(cases: _Cases, visit: Visit, trace: Trace, values: Values, model: Model) -> None:
    node, step = visit.node, visit.prefix
    assert isinstance(node, Round)
    if node.term not in values:
        return
    value, how = values[node.term], node.rounding
    fmt, term = how.format, value.term
    sign = trace[Name(step, Stage.SIGN)].flag
    nan = trace[Name(step, Stage.SPECIAL, part=Part.NAN)].flag
    infinite = trace[Name(step, Stage.SPECIAL, part=Part.INFINITE)].flag
    result = trace[Name(step, Stage.RESULT)].bits
    finite = ~(nan | infinite)
    some = term.significand.any() & finite
    random = None if node.random is None else node.bits(values[node.random].term)
    # beyond the largest integer an integer format has units of 2, and integers have none
    wide = integer(fmt.name, fmt.width + 1, fmt.signed) if fmt.is_integer else fmt
    tail = tail_of(term.significand, term.exponent.offset(-term.fraction), wide, 0 if random is None else random.width)
    raised = is_raised(how.mode, sign, tail, random)
    if is_stochastic(how.mode) and random is not None:
        drawn = draw(how.mode, tail.rest, random)
        drawn = drawn.extract(drawn.width - 1, drawn.width - 1 - random.width)  # in units of R
        enough = 1 << random.width
        cases.add("random bits", "just enough to raise", drawn.equals(enough) & some)
        cases.add("random bits", "just too few to raise", drawn.equals(enough - 1) & some)
    own = choose(infinite, cases.sign(value), sign)
    cases.add("sign", "+", ~own & ~nan)
    cases.add("sign", "-", own & ~nan)
    packed = tail.packed

    def holds(field: int) -> Bit:
        if not 0 <= field < 1 << packed.width:
            return truth(packed.carrier, False)
        return packed.equals(field) & some

    def less(field: int) -> Bit:
        if field >= 1 << packed.width:
            return some
        return packed.ult(constant(packed.carrier, field, packed.width)) & some

    for case, flag in _tails(tail.lowest, tail.half, tail.sticky):
        cases.add("rounding", case, flag & (less(2 << wide.fraction) if fmt.is_integer else some))
    range_ = "range"
    normal = 1 << fmt.fraction
    inexact = tail.half | tail.sticky
    cases.add(range_, "an exact zero", ~term.significand.any() & finite)
    if fmt.subnormals:
        cases.add(range_, "nothing is kept, and it is not raised", holds(0) & ~raised)
        cases.add(range_, "nothing is kept, and it is raised", holds(0) & raised)
    if fmt.is_integer:
        cases.add(range_, "one", holds(1))
        cases.add(range_, "more than one, and less than the largest", less(fmt.largest_field) & ~less(2))
    else:
        if fmt.subnormals and fmt.fraction:
            cases.add(range_, "the smallest subnormal", holds(1))
            cases.add(range_, "subnormal", less(normal) & ~holds(0))
            cases.add(range_, "the largest subnormal, not raised", holds(normal - 1) & ~raised)
            cases.add(range_, "the largest subnormal, raised", holds(normal - 1) & raised)
        cases.add(range_, "the smallest normal, exact", holds(normal) & ~inexact)
        cases.add(range_, "the smallest normal, inexact", holds(normal) & inexact)
        cases.add(range_, "the smallest binade", less(2 * normal) & ~less(normal))
        cases.add(range_, "the second binade", less(3 * normal) & ~less(2 * normal))
        cases.add(range_, "normal", less(fmt.largest_field) & ~less(2 * normal))
        cases.add(range_, "a carry into the exponent", _full(tail, fmt) & raised & less(fmt.largest_field))
    ends = [("largest", fmt.largest_field, ~sign if fmt.complement else some)]
    ends += [("least", fmt.largest_field + 1, sign)] if fmt.complement else []
    for word, end, of_sign in ends:
        cases.add(range_, f"the {word}, exact", holds(end) & ~inexact & of_sign)
        cases.add(range_, f"the {word}, inexact and not raised", holds(end) & inexact & ~raised & of_sign)
        cases.add(range_, f"the {word}, raised", holds(end) & raised & of_sign)
        cases.add(range_, f"one beyond the {word}", holds(end + 1) & of_sign)
        cases.add(range_, f"two beyond the {word}", holds(end + 2) & of_sign)
        cases.add(range_, f"far beyond the {word}", some & ~less(end + 3) & of_sign)
    if not how.stochastic:
        _deciding_bits(cases, node, value, sign & finite, result, finite)
    if not fmt.is_integer:
        _firsts(cases, term, result, fmt, finite)
    if fmt.signed:
        zero = result.truncate(fmt.field_width).equals(0)
        top = result.bit(fmt.field_width)
        cases.add("zero result", "+0", zero & ~top)
        if fmt.has_negative_zero:
            cases.add("zero result", "-0", zero & top)
    cases.add("special", "+infinity", infinite & ~nan & ~own, alone=True)
    cases.add("special", "-infinity", infinite & ~nan & own, alone=True)
    cases.add("special", "NaN", nan, alone=True)


def _deciding_bits(cases: _Cases, node: Round, value: Unpacked, sign: Bit, result: Bits, finite: Bit) -> None:
    """The cases in which one lost bit decides the rounding: the distance of this bit below the sum's leading one; and,
    for each term, its place in the term's significand and its distance below the largest exponent."""
    source: Node = node.term
    while isinstance(source, Scale):
        source = source.term
    if not isinstance(source, (FusedSum, GridSum, ExactSum)) or node.rounding.format.is_integer:
        return
    term, how, fmt = value.term, node.rounding, node.rounding.format
    small = result.truncate(fmt.field_width).extract(fmt.field_width - 1, fmt.padding + fmt.fraction).equals(0)
    bit = deciding_bit(node, sign, term)
    if how.mode != "toward_zero":
        for place in range(how.format.precision + (how.mode in NEAREST), term.significand.width):
            for word, flag, span in (("", bit.less, bit.span), ("one more at ", bit.more, bit.span_more)):
                case = f"{word}the last set or sticky bit {place} places below the first one decides"
                cases.add(f"{ONE_BIT} lost", case, flag & _is_place(span, place) & finite, alone=True)
    if fmt.subnormals:  # below the last place of the smallest numbers
        for place in range(1, term.significand.width):
            at = _equals(bit.weight, fmt.unit - 1 - place) & small & finite
            for word, flag in (("", bit.less), ("one more at ", bit.more)):
                case = f"{word}the last set or sticky bit {place} places below half of the smallest number decides"
                cases.add(f"{ONE_BIT} lost", case, at & flag, alone=True)
    for one in cases.lone.get(source, ()):
        less, more = (bit.unit_less, bit.unit_more) if one.unit else (bit.less, bit.more)
        decides = one.flag & finite & choose(one.sign ^ sign, more, less)
        for word, own in (("+", ~one.sign), ("-", one.sign)):
            aspect, flag = f"{ONE_BIT} lost of {word} term {one.name}", decides & own
            for place in range(one.width):
                case = f"{place} places below its first one, decides"
                cases.add(aspect, case, flag & _is_place(one.place, place), alone=True)
            for depth in range(how.format.precision + 1, one.kept + one.width + 1):
                case = f"{depth} places below the largest exponent, decides"
                cases.add(aspect, case, flag & _is_place(one.depth, depth), alone=True)


def _firsts(cases: _Cases, term: Term, result: Bits, fmt: Format, finite: Bit) -> None:
    """The cases of the leading one of a rounded sum: each place of the sum, also with a normal result, and places below
    the smallest exponent; and the cases of each bit of a subnormal result."""
    zeros, some = term.significand.leading_zeros(), term.significand.any() & finite
    top = term.significand.width - 1
    aspect = f"{ONE_BIT} first"
    exponent = term.normalised().exponent
    rounded = unpack(result, fmt)
    normal, number = rounded.term.significand.msb(), ~(rounded.is_nan | rounded.is_infinite)
    for place in range(top + 1):
        here = _is_place(zeros, place) & some
        cases.add(aspect, f"{place} places below the top", here, alone=True)
        cases.add(aspect, f"{place} places below the top, a normal result", here & normal & number, alone=True)
    if not fmt.subnormals:
        return
    for below in sorted({*range(1, fmt.precision + 3), *(1 << k for k in range(12))}):
        if exponent.low <= fmt.emin - below <= exponent.high:
            case = f"{below} places below the smallest exponent"
            cases.add(aspect, case, _equals(exponent, fmt.emin - below) & some, alone=True)
    for bit in range(fmt.fraction):
        own, subnormal = result.bit(fmt.padding + bit), ~normal & ~rounded.is_zero & number & some
        for word, flag in (("set", own), ("clear", ~own)):
            cases.add(f"{ONE_BIT} of a result", f"{bit}, {word}, subnormal", flag & subnormal, alone=True)


def _is_place(place: Bits, value: int) -> Bit:
    return place.equals(value) if value < 1 << place.width else truth(place.carrier, False)


def _exceptions(cases: _Cases, visit: Visit, trace: Trace, values: Values, model: Model) -> None:
    """The cases of exceptions: no exception is signalled, one is, or several are together."""
    assert isinstance(visit.node, Flags)
    word = trace[Name(visit.prefix, Stage.RESULT)].bits
    for own in (*ONE_ROUNDING, *(SEVERAL if len(visit.node.roundings) > 1 else ())):
        cases.add("exceptions", ", ".join(exceptions_in(own)) or "none", word.equals(own))


Function = Callable[[_Cases, Visit, Trace, Values, Model], None]
#: the function that adds the cases of each class of nodes
KINDS: dict[type[Any], Function] = {
    Product: _product, Scale: _scale, FusedSum: _aligned, GridSum: _aligned, ExactSum: _exact, Cut: _cut, Round: _round,
    Flags: _exceptions,
}  # fmt: skip
