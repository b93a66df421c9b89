"""A Python function that multiplies matrices, as a device: one call answers many questions."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mmaprobe.runner.called import Called, CalledError
from mmaprobe.runner.calling import AWAITED, can_take, is_async, numbers_of
from mmaprobe.runner.foreign import ForeignError, contained
from mmaprobe.runner.protocol import DEFAULT_TIMEOUT, Device, DeviceError, ReadAhead, unread
from mmaprobe.smtmodel.arithmetic.display import number_text
from mmaprobe.smtmodel.base.errors import IncompleteError, InputError
from mmaprobe.smtmodel.base.files import missing_file
from mmaprobe.smtmodel.evaluate.model import Model
from mmaprobe.smtmodel.evaluate.numbers import from_numbers, to_numbers, type_of
from mmaprobe.smtmodel.evaluate.operands import Operands
from mmaprobe.smtmodel.evaluate.tiles import kind_of
from mmaprobe.smtmodel.inputs.vectors import Vector
from mmaprobe.smtmodel.operand import NAMED

SIDE = 64  # rows and columns of the product; each question of a call has its own row and column
#: for each input that is compared at all places of a product: its factors are 2^-n to 2^n in size, and whether the two
#: largest products cancel. Sums near 1, sums that are rounded at every addition, and what is left of cancelled ones
PLACES_TRIED = ((0, True), (4, True), (8, True), (16, True), (2, False), (4, False), (8, False), (0, False))
PLACES_SEED = 1  # of these inputs
REMEMBERED = 1 << 16  # results that are compared with those of the same inputs at other places, at most
Shape = tuple[int, int]


class PlacesError(IncompleteError):
    """An input has other results at other places of a product, which the inputs compared at first did not show."""


def _tried(model: Model, size: int, cancels: bool, rng: np.random.Generator) -> tuple[NDArray[Any], NDArray[Any]]:
    """Patterns of the factors of an input: random numbers of 2^-size to 2^size, or less where a format has not so many.
    `cancels`: the two largest products are each other's opposite."""
    narrowest = min(model.a.emax, model.b.emax, -model.a.emin, -model.b.emin)
    reach = min((model.d.emax - model.length.bit_length()) // 2, narrowest) - 1
    size, count = max(min(size, reach), 0), model.length
    signed = (rng.uniform(1, 2, count) * rng.choice((-1, 1), count) for _ in range(2))
    a, b = (np.ldexp(numbers, rng.integers(-size, size + 1, count)) for numbers in signed)
    if cancels and model.length > 1:
        one, other = rng.choice(model.length, 2, replace=False)
        a[[one, other]], b[[one, other]] = 2.0**size, (2.0**size, -(2.0**size))
    x, y = (from_numbers(side, fmt, "nearest_even") for side, fmt in ((a, model.a), (b, model.b)))
    return x, y


def name_of(function: str | Callable[..., Any]) -> str:
    return function if isinstance(function, str) else str(getattr(function, "__name__", type(function).__name__))


class CallableDevice(Device):
    """Asks `function(a, b, c)`, or `function(a, b)` without an addend: a is SIDE x K, b K x SIDE, c and the result are
    SIDE x SIDE, or of another `shape` (rows, columns). Each question has a row of a and a column of b of its own; the
    columns change from call to call: answers come from all places of the product. If the same input has different
    results at different places (libraries have other kernels at the edges), only places with the results of `place`
    (row, column) are used, and the description names this place. A few inputs are compared at all places at first;
    inside `strict()`, PlacesError is raised for an input that is asked twice and shows only then that places differ.

    Arrays have the type of NumPy or of ml_dtypes for their format. The result may hold patterns as unsigned integers.
    """

    shape: Shape
    scaled = False

    def __init__(
        self, function: Callable[..., Any], name: str = "", shape: Shape = (SIDE, SIDE),
        place: tuple[int, int] = (0, 0),
    ) -> None:  # fmt: skip
        name = name or name_of(function)
        self.function, self.name, self.shape, self.place = function, name, shape, place
        self.description: dict[str, Any] = {"name": name}
        if is_async(function):
            raise InputError(f"{name} is an async function: {AWAITED}")
        self._addend = can_take(function, 3)
        if not self._addend and not can_take(function, 2):
            wanted = "a function of (a, b, c), or of (a, b) without an addend, is wanted"
            raise InputError(f"{name}: {wanted}; where Python does not know its arguments: lambda a, b: f(a, b)")
        self._calls = 0
        self._asked = 0
        self._alike: dict[Model, NDArray[np.bool_]] = {}  # the places with the results of `place`
        self._first: dict[int, int] | None = None  # inside `strict()`: the first result of an input, by its hash

    @property
    def addend(self) -> bool:
        return self._addend

    @contextmanager
    def strict(self) -> Iterator[None]:
        """A block in which an input with other results at other places is an error."""
        self._first = {}
        try:
            yield
        finally:
            self._first = None

    def answers(self, vectors: Iterable[Vector]) -> Iterator[tuple[Vector, int | None]]:
        source = ReadAhead(vectors)
        waiting = source.next()
        while waiting is not None:
            batch, waiting = [waiting], source.next()
            self.check_time(batch[0], self._asked + 1)
            if (model := batch[0].model) not in self._alike:
                self._alike[model] = self._places_alike(batch[0])
            alike = self._pairs(model)
            most = min(self.shape) if alike is None else len(alike)
            while waiting is not None and len(batch) < most and waiting.model == model:
                batch.append(waiting)
                waiting = source.next()
            yield from zip(batch, self._call(batch, alike), strict=True)
            self._asked += len(batch)
        source.finish()

    def _places_alike(self, vector: Vector) -> NDArray[np.bool_]:
        """The places with the same results as `place` for a few inputs. `vector`: the waiting question."""
        model = vector.model
        for name in list(model.formats)[3:]:
            raise self._failure(f"it takes no {NAMED[name].called}", vector)
        rows, width = self.shape
        rng, alike = np.random.default_rng(PLACES_SEED), np.ones(self.shape, dtype=bool)
        for size, cancels in PLACES_TRIED:
            a, b, c = self._everywhere(model, *_tried(model, size, cancels, rng))
            results = self._product(model, a, b, c, vector)
            alike &= results == results[self.place]
        if rows == width > 1:  # if the product is not square, a transposed result is refused by its shape
            a[1:] = 0
            first = self._product(model, a, b, c, vector)
            if (first[:, 0] == results[:, 0]).all() and (first[0, 1:] != results[0, 1:]).all():
                raise self._failure("it gives the product transposed: d[j, i] where d[i, j] is asked for", vector)
        self._describe(alike)
        return alike

    def _everywhere(
        self, model: Model, a: NDArray[Any], b: NDArray[Any], c: int = 0
    ) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
        """Patterns of A, B and C with one input at all places of the product."""
        rows, columns = self.shape
        return np.tile(a, (rows, 1)), np.tile(b[:, None], (1, columns)), np.full(self.shape, c, kind_of(model.c))

    def _describe(self, alike: NDArray[np.bool_]) -> None:
        if not alike.all():
            row, column = self.place
            alike_ones = f"row {row}, column {column} and those that answer alike"
            self.description["places"] = f"{alike_ones}; other places give other results"

    def _pairs(self, model: Model) -> NDArray[Any] | None:
        """Rows and columns, each once, of the places with the same results; None if these are all places."""
        alike = self._alike[model]
        if alike.all():
            return None
        pairs: list[tuple[int, int]] = []
        free = np.ones(self.shape[1], dtype=bool)
        for row in range(len(alike)):
            fitting = np.flatnonzero(alike[row] & free)
            if len(fitting):
                pairs.append((row, int(fitting[0])))
                free[fitting[0]] = False
        return np.array(pairs)

    def _compare_places(self, vector: Vector) -> None:
        """Leave out the places where an input has other results than at `place`. Raises PlacesError if there are any
        that were not left out before."""
        model, parts = vector.model, vector.operands
        x, y = np.zeros(model.length, kind_of(model.a)), np.zeros(model.length, kind_of(model.b))
        x[: len(parts.a)], y[: len(parts.b)] = parts.a, parts.b
        a, b, c = self._everywhere(model, x, y, parts.c)
        results, again = (self._product(model, a, b, c, vector) for _ in range(2))
        if (results != again).any():
            return  # not places, but calls differ: its callers say that the device contradicts itself
        others = self._alike[model] & (results != results[self.place])
        if others.any():
            self._alike[model] &= ~others
            self._describe(self._alike[model])
            self._first = {}
            seen = [(self.place, results[self.place]), (tuple(map(int, np.argwhere(others)[0])), results[others][0])]
            texts = [f"{number_text(int(d), model.d)} at row {row}, column {column}" for (row, column), d in seen]
            raise PlacesError(f"{self.name}: one input gives {' and '.join(texts)} of a product: places differ")

    def _call(self, batch: list[Vector], alike: NDArray[Any] | None) -> list[int]:
        model, count = batch[0].model, len(batch)
        height, width = self.shape
        if alike is None:
            rows, columns = np.arange(count), (np.arange(count) + self._calls) % width
        else:
            rows, columns = alike[:count].T
        self._calls += 1
        a = np.zeros((height, model.length), dtype=kind_of(model.a))
        b = np.zeros((model.length, width), dtype=kind_of(model.b))
        c = np.zeros((height, width), dtype=kind_of(model.c))
        for vector, row, column in zip(batch, rows, columns, strict=True):
            parts = vector.operands
            a[row, : len(parts.a)], b[: len(parts.b), column], c[row, column] = parts.a, parts.b, parts.c
        results = self._product(model, a, b, c, batch[0])
        answers = [int(pattern) for pattern in results[rows, columns]]
        if self._first is not None:
            self._hold(batch, answers)
        return answers

    def _hold(self, batch: Sequence[Vector], answers: Sequence[int]) -> None:
        """Compare results with the first ones of the same inputs. Raises PlacesError where places are why they
        differ."""
        assert self._first is not None
        if len(self._first) > REMEMBERED:
            self._first.clear()
        for vector, d in zip(batch, answers, strict=True):
            if self._first.setdefault(hash((vector.model, vector.operands)), d) != d:
                self._compare_places(vector)

    def product(self, model: Model, a: NDArray[Any], b: NDArray[Any], c: NDArray[Any]) -> NDArray[Any]:
        """The patterns of the product of matrices of patterns, of any shapes. `model` gives the formats. Raises
        DeviceError."""
        return self._product(model, a, b, c, Vector(model, Operands((), (), 0)))

    def _product(self, model: Model, a: NDArray[Any], b: NDArray[Any], c: NDArray[Any], vector: Vector) -> NDArray[Any]:
        if not self.addend and c.any():
            raise unread(vector, self.name)
        arrays = [to_numbers(a, model.a), to_numbers(b, model.b), *([to_numbers(c, model.c)] if self.addend else [])]
        try:
            result = self._called(*arrays)
        except CalledError as error:
            raise self._failure(str(error), vector, error.last_words) from None
        except ForeignError as error:
            shapes = " and ".join(str(array.shape) for array in arrays)
            raise self._failure(f"{error} (it was called with arrays of shapes {shapes})", vector) from None
        if result.dtype == object:
            kind = type(result.flat[0]).__name__ if result.size else "object"
            raise self._failure(f"it gives a {kind}, not an array of numbers", vector)
        if result.shape != c.shape:
            raise self._failure(f"the product has the shape {result.shape}, not {c.shape}", vector)
        expected = type_of(model.d)
        if result.dtype != expected and (result.dtype.kind != "u" or result.dtype != kind_of(model.d)):
            raise self._failure(
                f"the product has elements of {result.dtype}, not of {expected} ({model.d.name})", vector
            )
        return np.ascontiguousarray(result).view(kind_of(model.d))

    def _called(self, *arrays: NDArray[Any]) -> NDArray[Any]:
        """The result of the function. Raises CalledError or ForeignError."""
        if isinstance(self.function, Called):
            return self.function(*arrays)
        with contained():
            return numbers_of(self.function(*arrays))

    def _failure(self, message: str, vector: Vector, last_words: str = "") -> DeviceError:
        return DeviceError(self.name, message, vector, self._asked + 1, last_words)

    def close(self) -> None:
        if isinstance(self.function, Called):
            self.function.close()

    def abort(self) -> None:
        if isinstance(self.function, Called):
            self.function.abort()


def open_callable(text: str, timeout: float = DEFAULT_TIMEOUT, until: float | None = None) -> CallableDevice:
    """The device `FILE.py:FUNCTION`. The function runs in a process of its own; `timeout`: seconds for one call;
    `until`: the end of the time for all calls, in seconds of time.monotonic. Raises InputError, UnknownNameError or
    DeviceUnavailableError."""
    file, colon, name = text.rpartition(":")
    if not colon or not file or not name:
        raise InputError(f"device 'python:{text}': it is written python:FILE.py:FUNCTION")
    path = Path(file)
    if not os.path.isfile(file):
        if not os.path.exists(file):
            raise missing_file(file)
        raise InputError("is a folder: a Python file is needed" if os.path.isdir(file) else "is no regular file", file)
    function = Called(path, name, f"python:{text}", timeout, until)
    try:
        return CallableDevice(function, f"python:{text}")
    except BaseException:
        function.abort()
        raise
