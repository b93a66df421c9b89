"""The features that an input exercises in a model: flags over the trace, defined once for every carrier."""

from __future__ import annotations

from mmaprobe.smtmodel.arithmetic.decode import Exponent
from mmaprobe.smtmodel.carriers.algebra import Bit, Bits, any_of, constant, select
from mmaprobe.smtmodel.evaluate.model import Evaluation, Model
from mmaprobe.smtmodel.nodes.trace import Part, Signal, Stage

#: feature -> its meaning, in the order in which features are printed
EXERCISES = {
    "truncated": "alignment truncates set bits of a term",
    "carry": "the sum reaches beyond the bits of a single term",
    "cancellation": "the sum loses its leading bit",
    "negative": "the sum is negative",
    "subnormal": "the result is subnormal",
    "special": "a NaN or an infinity decides",
}


def exercises(model: Model, evaluation: Evaluation) -> dict[str, Bit]:
    """A flag for each feature: whether the evaluation exercises it. The evaluation needs a trace; a feature of a stage
    that the model does not have is never exercised."""
    trace, carrier = evaluation.trace, evaluation.d.carrier
    reached: dict[str, list[Bit]] = {name: [] for name in EXERCISES}
    aligned: list[Bits] = []  # the terms of the sum under way
    maximum: Signal | None = None
    for signal in trace:
        name = signal.name
        if name.stage is Stage.ALIGNED:
            reached["truncated"].append(_cut(trace[name._replace(stage=Stage.TERM)], signal))
            aligned.append(signal.bits)
        elif name.stage is Stage.MAXIMUM:
            maximum = signal
        elif name.part is Part.MAGNITUDE and maximum is not None:
            places = _places(maximum, signal)
            maximum = None
            reached["carry"].append(_reaches(signal.bits, places + 1))
            if aligned:
                reached["cancellation"].append(_cancels(signal.bits, aligned, places))
            aligned = []
        elif name.part is Part.NEGATIVE:
            reached["negative"].append(signal.flag)
        elif name.stage is Stage.SPECIAL:
            reached["special"].append(signal.flag)
    fields = evaluation.d.extract(model.d.field_width - 1, model.d.padding)
    exponent = fields.extract(fields.width - 1, model.d.fraction)
    reached["subnormal"].append(~exponent.any() & fields.any())
    return {name: any_of(flags) if flags else constant(carrier, 0, 1).any() for name, flags in reached.items()}


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
