"""A netlist of Yosys as a function over the algebra: simulated on arrays, written as terms for proofs.

Words stay words: a cell reads slices of the words of other cells. A design with registers has to be a pipeline: its
results depend only on inputs that all come the same number of cycles earlier. Cells: Yosys manual, chapter "Internal
cell library".
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property, reduce
from typing import Any

from mmaprobe.smtmodel.base.errors import ParameterError
from mmaprobe.smtmodel.carriers.algebra import Bit, Bits, all_of, any_of, constant, select, truth
from mmaprobe.smtmodel.carriers.carrier import Carrier
from mmaprobe.smtmodel.designs.choices import Conditions, Gate, Wire

Inputs = Callable[[str], Sequence[Bits]]  # the words that lie side by side at an input port, the lowest one first

_ARITHMETIC: dict[str, Callable[[Bits, Bits], Bits]] = {
    "$add": operator.add, "$sub": operator.sub, "$mul": operator.mul,
    "$and": operator.and_, "$or": operator.or_, "$xor": operator.xor, "$xnor": lambda x, y: ~(x ^ y),
}  # fmt: skip
_UNARY: dict[str, Callable[[Bits], Bits]] = {"$not": operator.invert, "$neg": operator.neg, "$pos": lambda x: x}
_REDUCTIONS: dict[str, Callable[[Bits], Bit]] = {
    "$reduce_and": lambda x: ~(~x).any(), "$reduce_or": Bits.any, "$reduce_bool": Bits.any,
    "$reduce_xor": lambda x: reduce(operator.xor, map(x.bit, range(x.width))),
    "$reduce_xnor": lambda x: ~reduce(operator.xor, map(x.bit, range(x.width))),
    "$logic_not": lambda x: ~x.any(),
}  # fmt: skip
#: the comparison of unsigned numbers, and that of signed numbers
_COMPARISONS: dict[str, tuple[Callable[[Bits, Bits], Bit], Callable[[Bits, Bits], Bit]]] = {
    "$eq": (Bits.eq, Bits.eq), "$eqx": (Bits.eq, Bits.eq),
    "$ne": (lambda x, y: ~x.eq(y),) * 2, "$nex": (lambda x, y: ~x.eq(y),) * 2,
    "$lt": (Bits.ult, Bits.slt), "$le": (Bits.ule, Bits.sle),
    "$gt": (lambda x, y: y.ult(x), lambda x, y: y.slt(x)), "$ge": (lambda x, y: y.ule(x), lambda x, y: y.sle(x)),
}  # fmt: skip
_LOGIC = {"$logic_and": all_of, "$logic_or": any_of}
REGISTER, CHOICE = "$dff", "$pmux"
DEEPEST = 64  # the most registers that a value passes


@dataclass(frozen=True, eq=False)
class Cell:
    """One cell: its type, which operands are signed, the bits of its inputs by port, and of its output `Y` or `Q`."""

    name: str
    kind: str
    signed: Mapping[str, bool]
    inputs: Mapping[str, tuple[Wire, ...]]
    output: tuple[Wire, ...]


@dataclass(frozen=True)
class Netlist:
    """A flat module: its input ports and its output ports, each with its bits, and its cells. A register holds the word
    that it was given one cycle before; all registers have one clock, an input that no cell reads as data. Raises
    ParameterError for cells that have no meaning here."""

    name: str
    inputs: Mapping[str, tuple[int, ...]]
    outputs: Mapping[str, tuple[Wire, ...]]
    cells: tuple[Cell, ...]

    @classmethod
    def read(cls, document: Mapping[str, Any], name: str) -> Netlist:
        """The module of that name, from the JSON that Yosys writes of a flat design."""
        module = document["modules"][name]
        ports = module["ports"].items()
        inputs, outputs = ({port: tuple(row["bits"]) for port, row in ports if row["direction"] == way}
                           for way in ("input", "output"))  # fmt: skip
        return cls(name, inputs, outputs, tuple(_cell(given, row) for given, row in module["cells"].items()))

    @cached_property
    def clocks(self) -> frozenset[str]:
        """The ports that clock registers."""
        clocks = {cell.inputs["CLK"] for cell in self.cells if cell.kind == REGISTER}
        ports = frozenset(name for name, bits in self.inputs.items() if bits in clocks)
        if len(clocks) > 1 or len(ports) != len(clocks):
            raise ParameterError(self.name, "registers with several clocks, or a clock that is no input port")
        read = {bit for cell in self.cells for port, bits in cell.inputs.items() if port != "CLK" for bit in bits}
        if any(read & set(self.inputs[name]) for name in ports):
            raise ParameterError(self.name, "the clock is read as data too")
        return ports

    @cached_property
    def sources(self) -> Mapping[int, tuple[str | Cell, int]]:
        """The driver of each bit, an input port or a cell, and the place of the bit in the driver's word. Raises
        ParameterError for a bit with two drivers."""
        drivers: dict[int, tuple[str | Cell, int]] = {}
        for name, bits in self.inputs.items():
            drivers |= {bit: (name, place) for place, bit in enumerate(bits)}
        for cell in self.cells:
            own = {bit: (cell, place) for place, bit in enumerate(cell.output) if isinstance(bit, int)}
            if own.keys() & drivers.keys():
                raise ParameterError(self.name, f"a wire has two drivers, of which one is the cell {cell.name}")
            drivers |= own
        return drivers

    @cached_property
    def choices(self) -> Mapping[Cell, Conditions]:
        """The conditions of each parallel choice."""

        def gate_of(bit: Wire) -> Gate | None:
            cell = self.sources[bit][0] if isinstance(bit, int) and bit in self.sources else None
            return (cell.kind, cell.inputs) if isinstance(cell, Cell) and len(cell.output) == 1 else None

        return {cell: Conditions(cell.inputs["S"], gate_of) for cell in self.cells if cell.kind == CHOICE}

    @cached_property
    def latency(self) -> int:
        """The number of cycles after which the outputs depend on the inputs. Raises ParameterError where they depend on
        the inputs of several cycles, or on registers that depend on themselves: then the design is no pipeline."""
        delays: dict[str, set[int]] = {}
        waiting = [(bit, 0) for bits in self.outputs.values() for bit in bits]
        seen = set(waiting)
        while waiting:
            bit, delay = waiting.pop()
            source = self.sources.get(bit) if isinstance(bit, int) else None
            if source is None:
                continue
            if isinstance(source[0], str):
                delays.setdefault(source[0], set()).add(delay)
                continue
            before = delay + (source[0].kind == REGISTER)
            if before > DEEPEST:
                raise ParameterError(
                    self.name, f"the register {source[0].name} depends on itself: the design is no pipeline"
                )
            read = [bit for port, side in source[0].inputs.items() if port != "CLK" for bit in side]
            more = {(other, before) for other in read} - seen
            seen |= more
            waiting += more
        every = sorted(set().union(*delays.values()))
        if len(every) > 1:
            listed = "; ".join(f"{name}: {', '.join(map(str, sorted(own)))}" for name, own in sorted(delays.items()))
            raise ParameterError(self.name, f"its results depend on inputs of several earlier cycles ({listed})")
        return every[0] if every else 0

    def evaluate(self, inputs: Inputs, carrier: Carrier) -> dict[str, Bits]:
        """The words at the output ports once the inputs have come through. Bits that the design leaves undefined have
        any value on a carrier that has `undefined` words; on another carrier they are zeros, or the bits of the first
        of several cases."""
        run = _Run(self, inputs, carrier)
        return {name: run.word(bits) for name, bits in self.outputs.items()}

    def words(self, wires: Mapping[str, Sequence[Wire]], inputs: Inputs, carrier: Carrier) -> dict[str, Bits]:
        """The words of some wires, as `evaluate` gives the words of ports; without wires that have no word."""
        run, words = _Run(self, inputs, carrier), dict[str, Bits]()
        for name, bits in wires.items():
            with suppress(ParameterError, KeyError):  # KeyError: a clock
                words[name] = run.word(bits)
        return words


def _cell(name: str, row: Mapping[str, Any]) -> Cell:
    kind, connections = row["type"], {port: tuple(bits) for port, bits in row["connections"].items()}
    signed = {port: bool(int(str(row["parameters"].get(f"{port}_SIGNED", "0")), 2)) for port in ("A", "B")}
    outputs = [port for port, way in row["port_directions"].items() if way == "output"]
    if len(outputs) != 1:
        raise ParameterError(name, f"a cell {kind} has no meaning here")
    if kind == REGISTER and not int(str(row["parameters"].get("CLK_POLARITY", "1")), 2):
        raise ParameterError(name, "a register that takes the falling edge of its clock")
    output = connections.pop(outputs[0])
    return Cell(name, kind, signed, connections, output)


class _Run:
    """One evaluation. All paths of a pipeline have the same number of registers, so that registers count as wires."""

    def __init__(self, netlist: Netlist, inputs: Inputs, carrier: Carrier) -> None:
        assert netlist.latency >= 0
        self.netlist, self.inputs, self.carrier = netlist, inputs, carrier
        self.words: dict[Cell, Bits] = {}

    def word(self, bits: Sequence[Wire]) -> Bits:
        """The word of some bits, the lowest one first."""
        self._evaluate(bits)
        return self._assembled(bits)

    def _evaluate(self, bits: Sequence[Wire]) -> None:
        """Compute the word of every cell on which the bits depend; without recursion, since designs are deep."""
        waiting, active = self._cells(bits), set[Cell]()
        while waiting:
            cell = waiting[-1]
            if cell in self.words:
                waiting.pop()
                continue
            read = [bit for port, side in cell.inputs.items() if port != "CLK" for bit in side]
            if missing := [other for other in self._cells(read) if other not in self.words]:
                if cell in active:
                    raise ParameterError(self.netlist.name, f"the cell {cell.name} depends on itself")
                active.add(cell)
                waiting += missing
                continue
            operands = {port: self._assembled(side) for port, side in cell.inputs.items() if port != "CLK"}
            self.words[cell] = self._result(cell, operands)
            waiting.pop()

    def _result(self, cell: Cell, operands: Mapping[str, Bits]) -> Bits:
        """The word of a cell."""
        if cell.kind == REGISTER:
            return operands["D"]
        if cell.kind == CHOICE:
            return self._choice(cell, operands)
        return self._part(cell, operands) if cell.kind == "$shiftx" else _applied(cell, operands)

    def _choice(self, cell: Cell, operands: Mapping[str, Bits]) -> Bits:
        """The word of the first case whose condition holds (Yosys places the first case last); undefined where several
        conditions hold, or where none holds and there is no default word."""
        cases, every, conditions = operands["S"], operands["B"], self.netlist.choices[cell]
        width = len(cell.output)
        words = [every.extract((place + 1) * width - 1, place * width) for place in range(cases.width)]
        value = words[0] if conditions.covering else select(cases.bit(0), words[0], operands["A"])
        before, several = cases.bit(0), truth(self.carrier, False)
        for place in range(1, cases.width):
            holds = cases.bit(place)
            value = select(holds, words[place], value)
            if not conditions.disjoint:
                before, several = before | holds, several | (before & holds)
        return select(several, self._undefined(value), value)

    def _part(self, cell: Cell, operands: Mapping[str, Bits]) -> Bits:
        """Bits of a word from a place on; undefined where some bits lie outside the word."""
        word, place, width, signed = operands["A"], operands["B"], len(cell.output), cell.signed["B"]
        value, most = _either_way(word, place, width, False, signed), word.width - width
        if not signed and (1 << place.width) - 1 <= most:
            return value
        if most < 0:
            return self._undefined(value)
        wide = max(place.width, word.width.bit_length()) + 1
        inside = _extended(place, wide, signed).ule(constant(self.carrier, most, wide))
        return select(inside, value, self._undefined(value))

    def _undefined(self, value: Bits) -> Bits:
        """A word of any value; the given word where the carrier has no such words."""
        node = self.carrier.undefined(value.width)
        return value if node is None else Bits(self.carrier, value.width, node)

    def _cells(self, bits: Sequence[Wire]) -> list[Cell]:
        """The cells that give some bits."""
        sources = self.netlist.sources
        cells = dict.fromkeys(sources[bit][0] for bit in bits if isinstance(bit, int) and bit in sources)
        return [cell for cell in cells if isinstance(cell, Cell)]

    def _assembled(self, bits: Sequence[Wire]) -> Bits:
        """A word made of wires, by slices of existing words that are as long as possible."""
        parts: list[Bits] = []  # the lowest one first
        place = 0
        while place < len(bits):
            source, low = self._source(bits[place])
            count = 1
            while place + count < len(bits) and self._source(bits[place + count]) == (source, low + count * (low >= 0)):
                count += 1
            parts.append(self._slice(source, low, count))
            place += count
        return reduce(lambda lower, upper: upper.concat(lower), parts)

    def _source(self, bit: Wire) -> tuple[str | Cell, int]:
        """The driver of a bit, and the place of the bit in the driver's word; the place of a constant is -1."""
        if isinstance(bit, str):
            return bit, -1
        return self.netlist.sources.get(bit, ("x", -1))

    def _slice(self, source: str | Cell, low: int, count: int) -> Bits:
        if isinstance(source, Cell):
            return self.words[source].extract(low + count - 1, low)
        if low >= 0:
            return _part(self.inputs(source), low, count)
        if source in ("0", "1"):
            return constant(self.carrier, -int(source), count)
        return self._undefined(constant(self.carrier, 0, count))


def _part(words: Sequence[Bits], low: int, count: int) -> Bits:
    """Some bits of words that lie side by side, the lowest one first."""
    parts = []
    for word in words:
        first, end = max(low, 0), min(low + count, word.width)
        if first < end:
            parts.append(word.extract(end - 1, first))
        low -= word.width
    return reduce(lambda lower, upper: upper.concat(lower), parts)


def _applied(cell: Cell, operands: Mapping[str, Bits]) -> Bits:
    """The word of a cell."""
    kind, width = cell.kind, len(cell.output)
    left = operands.get("A")
    assert left is not None
    right = operands.get("B")
    both = cell.signed["A"] and cell.signed["B"]
    if kind in _ARITHMETIC:
        assert right is not None
        return _ARITHMETIC[kind](_extended(left, width, both), _extended(right, width, both))
    if kind in _UNARY:
        return _UNARY[kind](_extended(left, width, cell.signed["A"]))
    if kind in _REDUCTIONS:
        return _REDUCTIONS[kind](left).bits(width)
    if kind == "$mux":
        assert right is not None
        return select(operands["S"].bit(0), right, left)
    if kind == "$bmux":  # one of the words that lie side by side
        place = operands["S"].zext(operands["S"].width + width.bit_length())
        return left.lshr(place * constant(left.carrier, width, place.width) if width > 1 else place).truncate(width)
    if kind == "$demux":  # the word in one of several places, and zeros in the others
        place = operands["S"].zext(width.bit_length())
        return left.zext(width).shl(place * constant(left.carrier, left.width, place.width))
    if right is None:
        raise ParameterError(cell.name, f"a cell {kind} has no meaning here")
    if kind == "$bwmux":  # each bit of one of two words
        return (left & ~operands["S"]) | (right & operands["S"])
    if kind in _COMPARISONS:
        wide = max(left.width, right.width)
        compared = _COMPARISONS[kind][both](_extended(left, wide, both), _extended(right, wide, both))
        return compared.bits(width)
    if kind in _LOGIC:
        return _LOGIC[kind]([left.any(), right.any()]).bits(width)
    if kind in ("$shl", "$sshl", "$shr", "$sshr"):
        return _shifted(kind, left, right, width, cell.signed["A"])
    if kind == "$shift":
        return _either_way(left, right, width, cell.signed["A"], cell.signed["B"])
    raise ParameterError(cell.name, f"a cell {kind} has no meaning here")


def _extended(value: Bits, width: int, signed: bool) -> Bits:
    """A word with `width` bits: cut, or filled up with zeros or its sign."""
    if width <= value.width:
        return value.truncate(width)
    return value.sext(width) if signed else value.zext(width)


def _shifted(kind: str, value: Bits, amount: Bits, width: int, signed: bool) -> Bits:
    wide = _extended(value, max(width, value.width), signed)
    if kind in ("$shl", "$sshl"):
        return wide.shl(amount).truncate(width)
    return (wide.ashr(amount) if kind == "$sshr" and signed else wide.lshr(amount)).truncate(width)


def _either_way(value: Bits, amount: Bits, width: int, signed: bool, both: bool) -> Bits:
    """A word shifted right, or left by a negative amount; zeros are shifted in."""
    wide = _extended(value, max(width, value.width), signed)
    right = wide.lshr(amount)
    if not both:
        return right.truncate(width)
    return select(amount.msb(), wide.shl(-amount), right).truncate(width)
