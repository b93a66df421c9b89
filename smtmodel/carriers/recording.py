"""Recordings of the array carrier: its calls of NumPy are recorded once, without arrays, and made again for any arrays.

A `Lane` stands for an array. NumPy passes operations on lanes to the lanes (`__array_ufunc__`, `__array_function__`),
so that the array carrier itself runs over lanes.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from contextlib import suppress
from operator import methodcaller
from typing import Any, NamedTuple

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin

from mmaprobe.smtmodel.base.interrupts import check_clock
from mmaprobe.smtmodel.carriers.arrays import ArrayWords
from mmaprobe.smtmodel.carriers.limbs import WideCarrier
from mmaprobe.smtmodel.carriers.machine import Machine, is_built, machine

Slot = int
Kind = Callable[[Sequence[np.dtype[Any]]], np.dtype[Any]]
WORTH = 4  # from this run of a program on, the machine makes the calls; most programs are run about twice
BUILT = 1 << 30  # lanes of NumPy's calls which the machine would have made, from which on its build takes less time
CALL = 1 << 10  # lanes that take as long as a call


class Call(NamedTuple):
    """A call of NumPy. `name`: the function's name and the operands' types, which identify the call."""

    function: Callable[..., Any]
    name: tuple[str, str]
    operands: tuple[Slot, ...]


#: (function, types of the operands) -> the type of the result
_RESULTS: dict[tuple[str, str], np.dtype[Any]] = {}


class Recorder:
    """The calls recorded so far. Slots number the inputs, then the constants and results in the order of their first
    use; `kinds`: the types of the slots. After the deadline of `working_until` a call raises OutOfTimeError."""

    def __init__(self, inputs: Sequence[np.dtype[Any]]) -> None:
        self.calls: dict[Slot, Call] = {}
        self.constants: dict[Slot, Any] = {}
        self.kinds = list(inputs)
        self._slots: dict[Hashable, Slot] = {}
        self.lanes = [Lane(self, slot, dtype) for slot, dtype in enumerate(inputs)]

    def call(self, function: Callable[..., Any], name: str, kind: Kind, operands: Sequence[Any]) -> Lane:
        """The lane of a function's result; calls with the same operands are recorded once. `kind` returns the type of
        the result for the types of the operands."""
        slots = tuple([value.slot if type(value) is Lane else self.slot(value) for value in operands])
        key = name, slots
        at = self._slots.get(key)
        if at is None:
            check_clock()
            kinds = [self.kinds[slot] for slot in slots]
            full = name, "".join([kind_of_operand.char for kind_of_operand in kinds])
            dtype = _RESULTS.get(full)
            if dtype is None:
                dtype = _RESULTS[full] = kind(kinds)
            at = self._slots[key] = self._next(dtype)
            self.calls[at] = Call(function, full, slots)
        return Lane(self, at, self.kinds[at])

    def slot(self, value: Any) -> Slot:
        """The slot of a lane or a constant."""
        if isinstance(value, Lane):
            return value.slot
        key = type(value), int(value)
        if key not in self._slots:
            self._slots[key] = self._next(value.dtype)
            self.constants[self._slots[key]] = value
        return self._slots[key]

    def _next(self, dtype: np.dtype[Any]) -> Slot:
        self.kinds.append(dtype)
        return len(self.kinds) - 1


class Lane(NDArrayOperatorsMixin):
    """A placeholder for an array of unsigned words or of truth values."""

    ndim = 1

    __slots__ = ("dtype", "recorder", "slot")

    def __init__(self, recorder: Recorder, slot: Slot, dtype: np.dtype[Any]) -> None:
        self.recorder, self.slot, self.dtype = recorder, slot, dtype

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *operands: Any, **rest: Any) -> Lane:
        assert method == "__call__"
        assert not rest or rest.keys() == {"out"}  # `out` does not change the result
        if int in map(type, operands):
            operands = tuple(self.dtype.type(value) if type(value) is int else value for value in operands)
        return self.recorder.call(
            ufunc, ufunc.__name__, lambda kinds: ufunc.resolve_dtypes((*kinds, None))[-1], operands
        )

    def __array_function__(self, function: Any, types: Any, operands: Any, rest: Any) -> Lane:
        assert function is np.where
        assert not rest
        return self.recorder.call(np.where, "where", lambda kinds: np.result_type(*kinds[1:]), operands)

    def astype(self, kind: Any) -> Lane:
        return self._as("astype", np.dtype(kind))

    def view(self, kind: Any) -> Lane:
        return self._as("view", np.dtype(kind))

    def _as(self, method: str, kind: np.dtype[Any]) -> Lane:
        return self.recorder.call(methodcaller(method, kind), f"{method} {kind.char}", lambda kinds: kind, (self,))


class _RecordedWords(ArrayWords):
    """The array carrier's words over lanes: without values there is nothing to know of all lanes, and no stacking."""

    def uniform(self, value: Any) -> bool | None:
        return None

    def stacked(self, values: Sequence[Any]) -> Any:
        return None


RECORDING = WideCarrier(_RecordedWords())


class Program:
    """The recorded calls on which the `wanted` slots depend, in order, with few places for arrays: a place is used
    again after the last call that reads its array."""

    _lanes = 0  # of all programs' calls that NumPy made while the machine was not built

    def __init__(self, recorder: Recorder, wanted: Sequence[Slot]) -> None:
        needed = set(wanted)
        for slot, call in reversed(recorder.calls.items()):
            if slot in needed:
                needed.update(call.operands)
        calls = [(slot, call) for slot, call in recorder.calls.items() if slot in needed]
        last: dict[Slot, int] = {}
        for number, (_, call) in enumerate(calls):
            for read in call.operands:
                last[read] = number
        known = [slot for slot in recorder.constants if slot in needed]
        outputs, inputs = set(wanted), len(recorder.lanes)
        places = {slot: slot for slot in range(inputs)} | {slot: inputs + at for at, slot in enumerate(known)}
        first = count = inputs + len(known)  # the first place of a result
        free: list[int] = []
        self.calls: list[tuple[Callable[..., Any], int, int, int, int]] = []
        for number, (slot, call) in enumerate(calls):
            if not free:
                free, count = [count], count + 1
            at = places[slot] = free.pop()  # not the place of an operand, which may have another item size
            read_places = [places[read] for read in call.operands]
            free += {places[x] for x in call.operands if last[x] == number and x not in outputs and places[x] >= first}
            self.calls.append((call.function, *_three(read_places), at))
        self.constants = [recorder.constants[slot] for slot in known]
        self.wanted = [places[slot] for slot in wanted]
        self._spare = [None] * (count - first)
        self._names = [call.name for _, call in calls]
        self._kinds = recorder.kinds[:inputs], [recorder.kinds[slot] for slot in wanted], count

        self._machine: Machine | None = None
        self._asked = False  # whether `_machine` is decided
        self._runs = 0

    def run(self, inputs: Sequence[Any]) -> list[Any]:
        """The arrays of the wanted slots for the arrays of the inputs."""
        self._runs += 1
        if self._runs >= WORTH and not self._asked:
            if is_built() or Program._lanes > BUILT:
                self._machine, self._asked = self._as_machine(), True
            else:
                Program._lanes += len(self.calls) * (CALL + inputs[0].size)
        if self._machine is not None:
            with suppress(ValueError, TypeError):  # arrays of different shapes, which only NumPy takes
                return self._by_machine(self._machine, inputs)
        return self.by_numpy(inputs)

    def _as_machine(self) -> Machine | None:
        inputs, outputs, count = self._kinds
        calls = [
            (name, tuple(place for place in places if place >= 0), at)
            for name, (_, *places, at) in zip(self._names, self.calls, strict=True)
        ]
        return machine(inputs, self.constants, calls, list(zip(outputs, self.wanted, strict=True)), count)

    @staticmethod
    def _by_machine(machine: Machine, inputs: Sequence[Any]) -> list[Any]:
        """`run` by the machine, which takes arrays of one dimension."""
        shape = inputs[0].shape
        if len(shape) < 2:
            return machine.run(inputs)
        if any(lane.shape != shape for lane in inputs):
            raise ValueError("arrays of other shapes")
        return [lane.reshape(shape) for lane in machine.run([lane.reshape(-1) for lane in inputs])]

    def by_numpy(self, inputs: Sequence[Any]) -> list[Any]:
        """`run` by NumPy, call by call."""
        arrays = [*inputs, *self.constants, *self._spare]
        for function, first, second, third, at in self.calls:
            if third >= 0:
                arrays[at] = function(arrays[first], arrays[second], arrays[third])
            elif second >= 0:
                arrays[at] = function(arrays[first], arrays[second])
            else:
                arrays[at] = function(arrays[first])
        return [arrays[at] for at in self.wanted]


def _three(places: Sequence[int]) -> tuple[int, int, int]:
    """The places of at most three operands, filled up with -1."""
    first, second, third = (*places, -1, -1)[:3]
    return first, second, third
