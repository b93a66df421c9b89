"""The array carrier with recordings: the NumPy calls of a function are recorded once, since on few lanes the algebra
takes ten times as long as its calls of NumPy. A function makes the same calls for all inputs of one shape (widths,
ranges of exponents, constants)."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from functools import lru_cache, partial
from itertools import count
from typing import Any

from mmaprobe.smtmodel.arithmetic.decode import Exponent, Term, Unpacked
from mmaprobe.smtmodel.carriers.algebra import Bit, Bits
from mmaprobe.smtmodel.carriers.arrays import ArrayCarrier
from mmaprobe.smtmodel.carriers.carrier import Carrier, Made
from mmaprobe.smtmodel.carriers.recording import RECORDING, Program, Recorder

Maker = Callable[[Carrier, Sequence[Any]], Any]
KEPT = 400_000  # the most calls in all recorded programs; a call takes some hundred bytes
SHAPES = 2048  # the most shapes whose makers are cached
PART = 256  # the most items of a tuple that one expression makes


class _OtherKindError(Exception):
    """An input of a class without a shape, such as a class of a changed copy of the datapath."""


class RecordedArrays(ArrayCarrier):
    """The array carrier, which records the calls of a function once for each key and shape of the inputs."""

    def __init__(self) -> None:
        super().__init__()
        self.programs: dict[Hashable, tuple[Program, Maker]] = {}
        self._calls = 0  # in all programs

    def formed(self, key: Hashable, function: Callable[..., Made], *inputs: Any) -> Made:
        lanes: list[Any] = []
        try:
            shape = _shape(inputs, lanes)
        except _OtherKindError:
            return function(*inputs)
        if not lanes:  # all inputs are constants, which the algebra folds
            return function(*inputs)
        recording = self.programs.get((key, shape))
        if recording is None:
            if self._calls > KEPT:
                self.programs.clear()
                self._calls = 0
            recording = self.programs[key, shape] = _recorded(function, shape, lanes)
            self._calls += len(recording[0].calls)
        program, make = recording
        made: Made = make(self, program.run(lanes))
        return made


ARRAYS = RecordedArrays()  # one for all users, so that each function is recorded once


def _recorded(function: Callable[..., Any], shape: Hashable, lanes: list[Any]) -> tuple[Program, Maker]:
    """The program of a function's calls, and the maker of the function's results from the program's arrays."""
    recorder = Recorder([lane.dtype for lane in lanes])
    results: list[Any] = []
    shape_of_results = _shape(function(*_maker(shape)(RECORDING, recorder.lanes)), results)
    return Program(recorder, [recorder.slot(lane) for lane in results]), _maker(shape_of_results)


def _shape(value: Any, lanes: list[Any]) -> Any:
    """The shape of a value: all of it but the lanes, which are appended to `lanes`."""
    kind = type(value)
    if kind is Bits:
        if value.value is not None:
            return Bits, value.width, value.value
        node = value.node
        if type(node) is tuple:
            return tuple, Bits, value.width, *[_shape(limb, lanes) for limb in node]
        lanes.append(node)
        return value.width
    if kind is Bit:
        if value.value is not None:
            return "true" if value.value else "false"
        lanes.append(value.node)
        return Bit
    if kind is Term:
        at = value.exponent
        inner = _shape(value.sign, lanes), _shape(value.significand, lanes), _shape(at.bits, lanes)
        return Term, *inner, at.low, at.high, at.spare, at.floats, value.fraction
    if kind is Unpacked:
        flags = value.is_zero, value.is_infinite, value.is_nan
        return Unpacked, _shape(value.term, lanes), *[_shape(flag, lanes) for flag in flags]
    if kind is tuple:
        return tuple, None, *[_shape(item, lanes) for item in value]
    if value is not None:
        raise _OtherKindError
    return None


@lru_cache(maxsize=SHAPES)
def _maker(shape: Hashable) -> Maker:
    """A function from a carrier and lanes to the value of a shape. It is a compiled expression, since a walk over the
    shape would take most of the time of an evaluation. A long tuple has an expression for each part, since many parts
    are equal, and no interrupt ends a compilation. Many truth values are made by a walk, since their expression has a
    hundred times their size."""
    if isinstance(shape, tuple) and shape[:2] == (tuple, None) and len(shape) > 2 + PART:
        if all(part in (Bit, "true", "false") for part in shape[2:]):
            return partial(_truths, shape[2:])
        return partial(_joined, [_counted((tuple, None, *shape[at : at + PART])) for at in range(2, len(shape), PART)])
    return _counted(shape)[0]


def _joined(parts: Sequence[tuple[Maker, int]], carrier: Carrier, lanes: Sequence[Any]) -> tuple[Any, ...]:
    made, start = list[Any](), 0
    for make, taken in parts:
        made += make(carrier, lanes[start : start + taken])
        start += taken
    return tuple(made)


@lru_cache(maxsize=SHAPES)
def _counted(shape: Hashable) -> tuple[Maker, int]:
    """The maker of a shape, and the number of lanes that it reads."""
    text = _text(shape, places := count())
    made: Maker = eval(f"lambda carrier, lanes: {text}", dict(_NAMES))
    return made, next(places)


def _truths(shape: Sequence[Any], carrier: Carrier, lanes: Sequence[Any]) -> tuple[Bit, ...]:
    """The truth values of a shape."""
    given = iter(lanes)
    return tuple([Bit(carrier, next(given)) if one is Bit else Bit(carrier, None, one == "true") for one in shape])


def _text(shape: Any, places: Iterator[int]) -> str:
    """The expression of a value of a shape, whose lanes have the next indices of `places`."""
    if shape is None:
        return "None"
    if shape is Bit:
        return f"Bit(carrier, lanes[{next(places)}])"
    if isinstance(shape, int):
        return f"Bits(carrier, {shape}, lanes[{next(places)}])"
    if isinstance(shape, str):
        return f"Bit(carrier, None, {shape == 'true'})"
    kind, *rest = shape
    if kind is Bits:
        return f"Bits(carrier, {rest[0]}, None, {rest[1]})"
    if kind is Term:
        sign, significand, bits = (_text(part, places) for part in rest[:3])
        low, high, spare, floats, fraction = rest[3:]
        return f"Term({sign}, {significand}, Exponent({bits}, {low}, {high}, {spare}, {floats}), {fraction})"
    if kind is Unpacked:
        return f"Unpacked({', '.join(_text(part, places) for part in rest)})"
    parts = "".join(f"{_text(part, places)}, " for part in rest[2 if rest[0] is Bits else 1 :])
    return f"Bits(carrier, {rest[1]}, ({parts}))" if rest[0] is Bits else f"({parts})"


_NAMES = {kind.__name__: kind for kind in (Bit, Bits, Exponent, Term, Unpacked)}
