"""Signals of two evaluations that agree in simulation: equal as numbers, or up to a static scale or offset.

A signal is an integer; as a number, the signal is this integer times a power of two, which the signal's place in the
datapath fixes (Signal.scale, Signal.offset). Two signals may be one number while their integers differ by a fixed
number of places, as for an unnormalised and a normalised significand where nothing has to be normalised.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pysmt.fnode import FNode
from pysmt.formula import FormulaManager

from mmaprobe.smtmodel.carriers.algebra import Bit, Bits
from mmaprobe.smtmodel.carriers.limbs import limbs_of
from mmaprobe.smtmodel.nodes.trace import Kind, Signal

Lanes = NDArray[np.bool_]
Limbs = tuple[NDArray[np.uint64] | NDArray[np.int64], ...]


@dataclass(frozen=True)
class Twin:
    """A `signal` matched with another signal. The other's integer is that of `signal` shifted left by `places` (right
    if negative, where the bits shifted out are zero), or raised by `offset`."""

    signal: Signal
    places: int = 0
    offset: int = 0

    def goal(self, manager: FormulaManager, other: FNode, signed: bool) -> tuple[FNode, FNode]:
        """Two terms of one type that are to be proved equal: this signal at the other's scale, and the other."""
        own = self.signal.value.node
        if own.get_type().is_bool_type():
            return own, other
        width = max(own.bv_width() + max(self.places, 0), other.bv_width() + max(-self.places, 0))
        width += self.offset != 0
        raised = own if self.places <= 0 else manager.BVConcat(own, manager.BV(0, self.places))
        moved = other if self.places >= 0 else manager.BVConcat(other, manager.BV(0, -self.places))
        left, right = _widened(manager, raised, width, signed), _widened(manager, moved, width, signed)
        if self.offset:
            left = manager.BVAdd(left, manager.BV(self.offset % (1 << width), width))
        return left, right

    def replacement(self, manager: FormulaManager, other: FNode, signed: bool) -> FNode:
        """A term over this signal that may replace the other once the goal is proved; it has the other's width."""
        own = self.signal.value.node
        if own.get_type().is_bool_type():
            return own
        width = other.bv_width()
        if self.places > 0:
            own = manager.BVConcat(own, manager.BV(0, self.places))
        elif self.places < 0:
            own = manager.BVExtract(own, -self.places, own.bv_width() - 1)
        kept = manager.BVExtract(own, 0, width - 1) if own.bv_width() > width else own
        kept = _widened(manager, kept, width, signed)
        return manager.BVAdd(kept, manager.BV(self.offset % (1 << width), width)) if self.offset else kept

    def __str__(self) -> str:
        if self.places:
            return f"{self.signal.name} {'<<' if self.places > 0 else '>>'} {abs(self.places)}"
        return f"{self.signal.name} {self.offset:+}" if self.offset else str(self.signal.name)


def _widened(manager: FormulaManager, term: FNode, width: int, signed: bool) -> FNode:
    more = width - term.bv_width()
    return (manager.BVSExt if signed else manager.BVZExt)(term, more) if more else term


class Matcher:
    """Finds signals of one evaluation by their values on the samples that are admitted (`admitted`: a flag for each).

    `signals`: each signal of the evaluation as a term, and as simulated on all samples.
    """

    def __init__(self, signals: Iterable[tuple[Signal, Signal]], admitted: Lanes) -> None:
        self.admitted = admitted
        self.known: dict[bytes, Twin] = {}
        self.scaled: dict[bytes, tuple[Signal, int]] = {}
        for term, simulated in signals:
            lanes = _lanes(simulated, admitted)
            if lanes is None:
                continue
            self.known.setdefault(_key(simulated, lanes), Twin(term))
            if (other := _scaled_key(simulated, lanes)) is not None:
                self.scaled.setdefault(other[0], (term, other[1]))

    def twin(self, simulated: Signal) -> Twin | None:
        """The first signal with the same values as `simulated`; else a signal that differs by a static scale or offset;
        None if there is no such signal."""
        lanes = _lanes(simulated, self.admitted)
        if lanes is None:
            return None
        same = self.known.get(_key(simulated, lanes))
        if same is not None:
            return same
        other = _scaled_key(simulated, lanes)
        if other is None or other[0] not in self.scaled:
            return None
        signal, own = self.scaled[other[0]]
        return Twin(signal, offset=own - other[1]) if simulated.scale is None else Twin(signal, places=other[1] - own)


def _lanes(signal: Signal, admitted: Lanes) -> Limbs | None:
    """The simulated values of a signal on the admitted samples, limb by limb; None for a constant. Signals of different
    widths up to that of a limb have equal values here if their numbers are equal."""
    value: Bits | Bit = signal.value
    limbs: list[Any] = [value.node]
    if isinstance(value, Bits):
        limbs = [np.asarray(limb.node, dtype=np.uint64) for limb in limbs_of(value)]
    if all(np.ndim(limb) == 0 for limb in limbs):
        return None
    if isinstance(value, Bits) and len(limbs) == 1 and signal.is_signed:  # extend the sign over the lane
        fill = np.uint64(64 - value.width)
        limbs = [(limbs[0] << fill).astype(np.int64) >> fill.astype(np.int64)]
    return tuple(np.broadcast_to(limb, admitted.shape)[admitted] for limb in limbs)


def _key(signal: Signal, lanes: Limbs) -> bytes:
    kind = "truth" if isinstance(signal.value, Bit) else f"{signal.is_signed}"
    if isinstance(signal.value, Bits) and len(lanes) > 1:
        kind += f" {signal.value.width}"
    return kind.encode() + b"".join(np.ascontiguousarray(limb).tobytes() for limb in lanes)


def _scaled_key(signal: Signal, lanes: Limbs) -> tuple[bytes, int] | None:
    """A key that signals share if they differ by a static scale (the integers without their common trailing zeros) or
    offset (the exponents as numbers), and the signal's own number of places or offset."""
    if isinstance(signal.value, Bit) or len(lanes) > 1:
        return None
    values = lanes[0].astype(np.int64)
    if signal.scale is not None:
        used = int(np.bitwise_or.reduce(values)) if len(values) else 0
        if not used:
            return None
        places = (used & -used).bit_length() - 1
        return f"scaled {signal.is_signed}".encode() + (values >> places).tobytes(), places
    if signal.kind is Kind.EXPONENT:
        return b"offset" + (values + signal.offset).tobytes(), signal.offset
    return None
