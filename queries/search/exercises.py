"""The features that an input exercises in a model: flags over the trace, defined once for every carrier."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import reduce
from operator import or_

from mmaprobe.smtmodel.arithmetic.decode import Exponent, Unpacked, unpack
from mmaprobe.smtmodel.arithmetic.formats import integer
from mmaprobe.smtmodel.arithmetic.rounding import Tail, is_raised, tail_of
from mmaprobe.smtmodel.carriers.algebra import Bit, Bits, any_of, constant, select, truth
from mmaprobe.smtmodel.evaluate.model import Evaluation, Model
from mmaprobe.smtmodel.nodes import Cut, Round
from mmaprobe.smtmodel.nodes.trace import Name, Part, Signal, Stage, Trace

#: feature -> its meaning, in the order in which features are printed
EXERCISES = {
    "truncated": "alignment truncates set bits of a term",
    "carry": "a sum reaches beyond the bits of a single term",
    "cancellation": "a sum loses its leading bit",
    "negative": "a sum is negative",
    "tie": "a rounded number is half way between two results",
    "rounded up": "a rounding makes a magnitude larger",
    "rounded down": "a rounding makes a magnitude smaller",
    "subnormal": "a rounded result is subnormal",
    "overflow": "a rounded number is beyond the largest one",
    "zero": "the result is zero",
    "special": "a NaN or an infinity decides",
}


def exercises(model: Model, evaluation: Evaluation) -> dict[str, Bit]:
    """A flag for each feature: whether the evaluation exercises it, in any of its steps. The evaluation needs a trace;
    a feature of a stage that the model does not have is never exercised."""
    trace, carrier = evaluation.trace, evaluation.d.carrier
    reached: dict[str, list[Bit]] = {name: [] for name in EXERCISES}
    aligned: list[Bits] = []  # the terms of the sum under way
    maximum: Signal | None = None
    for signal in trace:
        name = signal.name
        if name.stage is Stage.ALIGNED:
            reached["truncated"].append(_cut(trace[name._replace(stage=Stage.TERM)], signal))
            aligned.append(signal.bits)
        elif name.stage is Stage.PLACED:
            aligned.append(signal.bits)
        elif name.stage is Stage.MAXIMUM:
            maximum = signal
        elif name.part is Part.MAGNITUDE:
            if maximum is None:
                carry, cancellation = _moved(signal.bits, aligned, [item for _, item in trace.entered[name.step][1]])
                reached["carry"].append(carry)
                reached["cancellation"].append(cancellation)
            else:
                places = _places(maximum, signal)
                reached["carry"].append(_reaches(signal.bits, places + 1))
                if aligned:
                    reached["cancellation"].append(_cancels(signal.bits, aligned, places))
            aligned, maximum = [], None
        elif name.part is Part.NEGATIVE:
            reached["negative"].append(signal.flag)
        elif name.stage is Stage.SPECIAL:
            reached["special"].append(signal.flag)
    for feature, flag in _roundings(trace):
        reached[feature].append(flag)
    reached["zero"].append(unpack(evaluation.d, model.d).is_zero)
    return {name: any_of(flags) if flags else truth(carrier, False) for name, flags in reached.items()}


def _roundings(trace: Trace) -> Iterator[tuple[str, Bit]]:
    """The features of every rounding of an evaluation."""
    values = dict[object, Unpacked]()
    for visit in trace.visits:
        node = visit.node
        if isinstance(node, Cut | Round) and (value := values.get(node.term)) is not None:
            yield from _cut_off(node, value) if isinstance(node, Cut) else _rounded(node, visit.prefix, trace, values)
        values[node] = visit.value


def _cut_off(node: Cut, value: Unpacked) -> Iterator[tuple[str, Bit]]:
    """The features of a rounding to a number of bits."""
    term = value.term
    tail = tail_of(term.significand, term.exponent.offset(-term.fraction), node.target(term).format)
    some = term.significand.any() & ~(value.is_nan | value.is_infinite)
    yield from _directions(tail, is_raised(node.mode, term.sign, tail, None), some)


def _rounded(node: Round, step: str, trace: Trace, values: dict[object, Unpacked]) -> Iterator[tuple[str, Bit]]:
    """The features of a rounding to a format."""
    term, how = values[node.term].term, node.rounding
    fmt, sign = how.format, trace[Name(step, Stage.SIGN)].flag
    special = any_of([trace[Name(step, Stage.SPECIAL, part=part)].flag for part in (Part.NAN, Part.INFINITE)])
    some = term.significand.any() & ~special
    random = None if node.random is None else node.bits(values[node.random].term)
    wide = integer(fmt.name, fmt.width + 1, fmt.signed) if fmt.is_integer else fmt  # of which all integers are exact
    tail = tail_of(term.significand, term.exponent.offset(-term.fraction), wide, 0 if random is None else random.width)
    raised = is_raised(how.mode, sign, tail, random)
    yield from _directions(tail, raised, some)
    packed = tail.packed.zext(tail.packed.width + 1) + raised.bits(tail.packed.width + 1)
    if not fmt.largest_field >> tail.packed.width:
        yield "overflow", constant(packed.carrier, fmt.largest_field, packed.width).ult(packed) & some & ~(
            packed.equals(fmt.largest_field + 1) & sign & truth(sign.carrier, fmt.complement))  # fmt: skip
    if fmt.subnormals and fmt.fraction and not fmt.is_integer:
        fields = trace[Name(step, Stage.RESULT)].bits.extract(fmt.field_width - 1, fmt.padding)
        yield "subnormal", ~fields.extract(fields.width - 1, fmt.fraction).any() & fields.any() & ~special


def _directions(tail: Tail, raised: Bit, some: Bit) -> Iterator[tuple[str, Bit]]:
    """Whether a finite number other than zero (`some`) is a tie, and in which direction it is rounded."""
    inexact = (tail.half | tail.sticky) & some
    yield "tie", tail.half & ~tail.sticky & some
    yield "rounded up", inexact & raised
    yield "rounded down", inexact & ~raised


def _moved(magnitude: Bits, placed: Sequence[Bits], terms: Sequence[Unpacked]) -> tuple[Bit, Bit]:
    """Whether the leading one of an exact sum is above those of all terms, and whether it is below one of them. Without
    `placed`, terms in fixed point, the sum is one of two terms, the larger of which has its leading one one place
    below the top."""
    if placed:
        width = max(bits.width for bits in (magnitude, *placed))
        every = reduce(or_, [bits.zext(width) for bits in placed])
        return _is_above(magnitude.zext(width), every), _is_above(every, magnitude.zext(width))
    some = any_of([item.term.significand.any() for item in terms])
    return magnitude.msb(), some & ~_reaches(magnitude, magnitude.width - 2)


def _is_above(one: Bits, other: Bits) -> Bit:
    """Whether the leading one of `one` is above that of `other`."""
    return other.ult(one) & other.ult(one ^ other)


def _places(maximum: Signal, total: Signal) -> int:
    """How many bits of a finished sum lie below the unit of its maximum exponent."""
    assert total.scale is not None
    return maximum.offset - total.scale.low


def _cut(source: Signal, aligned: Signal) -> Bit:
    """Whether alignment removed set bits of the significand, because they lie below the lowest place of the aligned
    magnitude."""
    significand = source.bits
    assert source.scale is not None
    assert aligned.scale is not None
    distance = _difference(aligned.scale, source.scale)
    kept = significand.lshr(distance).shl(distance)
    return ~kept.eq(significand)


def _difference(above: Exponent, below: Exponent) -> Bits:
    """above - below if positive, else 0."""
    low = min(above.low, below.low)
    width = max(1, (max(above.high, below.high) - low).bit_length())
    x, y = above.rebased(low, width), below.rebased(low, width)
    return select(x.ult(y), constant(x.carrier, 0, width), x - y)


def _reaches(magnitude: Bits, position: int) -> Bit:
    """Whether a bit at or above `position` is set."""
    if position >= magnitude.width:
        return constant(magnitude.carrier, 0, 1).any()
    return magnitude.extract(magnitude.width - 1, position).any()


def _cancels(magnitude: Bits, aligned: list[Bits], position: int) -> Bit:
    """Whether a term has a bit at or above the unit of the maximum exponent, and the sum has none."""
    reached = any_of([_reaches(value, position) for value in aligned])
    return reached & ~_reaches(magnitude, position)
