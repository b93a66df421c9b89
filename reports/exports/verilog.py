"""A model as a Verilog module, combinational or pipelined in stages; a carrier prints it from the model's
evaluation."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import TypeVar

from mmaprobe.reports.exports.export import Export
from mmaprobe.smtmodel import VERSION
from mmaprobe.smtmodel.arithmetic.formats import Format
from mmaprobe.smtmodel.base.escapes import text_bytes
from mmaprobe.smtmodel.base.wording import counted
from mmaprobe.smtmodel.carriers.algebra import Bits, constant
from mmaprobe.smtmodel.carriers.verilog import VerilogCarrier, range_of
from mmaprobe.smtmodel.evaluate.model import Evaluation, Model, evaluate
from mmaprobe.smtmodel.evaluate.operands import Layout, Operands, layout_of
from mmaprobe.smtmodel.nodes.trace import Trace
from mmaprobe.smtmodel.units.unitfile import unit_text

#: warnings of Verilator's -Wall: some words have bits that no later word reads, as the arithmetic shows that they are 0
#: (every version knows UNUSED), a file may have any name, and `met` of a bound module is read by nobody
LINTS = ("UNUSED", "DECLFILENAME", "PINCONNECTEMPTY")
LINT_OFF, LINT_ON = ([f"/* verilator lint_{way} {name} */" for name in LINTS] for way in ("off", "on"))
WORD = re.compile(r"\b[a-z]\w*\b")
Word = TypeVar("Word")


def exported(model: Model, stages: int = 0) -> Export:
    """The text of a model's module."""
    text, registers = module(model, stages=stages), f", {stages} clock cycles" if stages else ""
    about = f"module {identifier(model.reference)}, {counted(text.count(' wire '), 'wire')}{registers}"
    return Export(text_bytes(text), about=about)


def module(model: Model, name: str = "", stages: int = 0) -> str:
    """The text of a module with a port for `d` and for each operand that the model reads. The elements of an operand
    are one word, the first element in its lowest bits. Wires that are signals of the model have the signals' names,
    with _ for characters that Verilog does not allow. `stages`: the number of registers on each path from an input to
    `d`."""
    printed = Printed(model, name)
    carrier, node = printed.carrier, printed.evaluation.d.node
    ports = ["  input  clk"] * bool(stages)
    ports += [f"  input  {range_of(width)}{port}" for port, width in printed.ports.items()]
    wires = carrier.wires_of([node])
    lines = staged(carrier, wires, node, printed, stages) if stages else carrier.statements_of(wires, printed.names)
    body = [*carrier.lines_of_functions(), *lines]
    return "\n".join([
        *head_of(model), f"module {printed.name} (",
        *(f"{port}," for port in ports), f"  output {range_of(model.d.width)}d", ");",
        *(f"  {line}" for line in body), f"  assign d = {printed.names.get(node, node)};", "endmodule", *LINT_ON, "",
    ])  # fmt: skip


def staged(
    carrier: VerilogCarrier, wires: Sequence[tuple[str, int, str]], result: str, printed: Printed, stages: int
) -> list[str]:
    """The statements divided into stages of about the same depth, with a register for each word that a later stage
    reads."""
    ends = dict.fromkeys(printed.ports, 0.0)
    for name, width, expression in wires:
        ends[name] = max((ends[word] for word in WORD.findall(expression) if word in ends), default=0.0)
        ends[name] += _depth(expression, width)
    whole = max(ends.get(result, 0.0), 1.0)
    stage = {name: min(int(end * (stages + 1) / whole), stages) for name, end in ends.items()} | {result: stages}
    widths = printed.ports | {name: width for name, width, _ in wires}
    called = {name: name if name in printed.ports else printed.names.get(name, name) for name in widths}
    mark, last = "_stage", dict(stage)
    while any(mark in name for name in called.values()):
        mark += "_"
    for name, _, expression in wires:
        for word in WORD.findall(expression):
            if word in last:
                last[word] = max(last[word], stage[name])

    def at(word: str, place: int) -> str:
        """The name of a word in some stage."""
        return called[word] + (f"{mark}{place}" if place > stage[word] else "")

    def read(expression: str, place: int) -> str:
        return WORD.sub(lambda word: at(word[0], place) if word[0] in widths else word[0], expression)

    lines = list[str]()
    for place in range(stages + 1):
        if place:
            kept = [name for name in widths if stage[name] < place <= last[name]]
            lines += [f"// stage {place}", *(f"reg {range_of(widths[name])}{at(name, place)};" for name in kept)]
            moved = (f"  {at(name, place)} <= {at(name, place - 1)};" for name in kept)
            lines += ["always @(posedge clk) begin", *moved, "end"]
        for name, width, expression in wires:
            if stage[name] == place:
                lines.append(f"wire {range_of(width)}{called[name]} = {read(expression, place)};")
    return lines


def _depth(expression: str, width: int) -> float:
    """The approximate number of gates on the longest path of an operation."""
    bits = max(width, 2).bit_length()
    if " * " in expression:
        return 4.0 * bits
    if any(f" {sign} " in expression for sign in ("+", "-", "<", "<=", "==")) or expression.startswith("-"):
        return 2.0 * bits
    if any(sign in expression for sign in (" << ", " >> ", " >>> ", "|")):
        return float(bits)
    if "leading_zeros" in expression:
        return 2.0 * width
    return 1.0 if set(expression) & set("?&^~") else 0.0


class Printed:
    """A model evaluated on wires: the module's name, the ports with their bits, and the names of wires that are
    elements or signals."""

    def __init__(self, model: Model, name: str = "") -> None:
        self.name = name or identifier(model.reference)
        self.layout, self.carrier = layout_of(model), VerilogCarrier()
        self.ports = {name: fmt.width * count for name, fmt, count in ports_of(model)}
        self.operands, self.evaluation = evaluated(model, _elements(model, self.carrier))
        self.names = _names(model, self.layout, self.evaluation.trace, self.operands.every)

    @property
    def named(self) -> dict[str, int]:
        """The wires of the module that have names, with their bits."""
        wires = self.carrier.wires_of([self.evaluation.d.node])
        return {wire: width for wire, width, _ in wires if wire in self.names}


def ports_of(model: Model) -> list[tuple[str, Format, int]]:
    """The inputs of a model's module: for each operand that the model reads, the name, the format and the number of its
    elements."""
    counts = filter(None, model.counts)
    return [(name, fmt, count) for (name, fmt), count in zip(model.formats.items(), counts, strict=True)
            if name != "c" or model.addend]  # fmt: skip


def evaluated(model: Model, elements: Iterable[Bits]) -> tuple[Operands[Bits], Evaluation]:
    """The operands from the elements of all ports, with +0 for an addend without a port; and the evaluation of the
    model on these operands."""
    given, layout = list(elements), layout_of(model)
    for place in layout.unread:
        given.insert(place, constant(given[0].carrier, 0, model.c.width))
    operands = layout.split(given)
    return operands, evaluate(model, operands.a, operands.b, operands.c, *operands.rest)


def signal_names(signals: Iterable[tuple[str, Word]], taken: Iterable[str]) -> dict[Word, str]:
    """The names of words that are signals of a model: each word has the name of its first signal whose name is not in
    `taken`."""
    names, used = dict[Word, str](), set(taken)
    for signal, word in signals:
        name = identifier(signal)
        if word not in names and name not in used:
            names[word] = name
            used.add(name)
    return names


def identifier(text: str) -> str:
    """A valid Verilog name: every character but letters, digits and _ becomes _."""
    name = re.sub(r"\W+", "_", text).strip("_")
    return name if name[:1].isalpha() else f"unit_{name}"


def _elements(model: Model, carrier: VerilogCarrier) -> Iterator[Bits]:
    """The elements of all ports, in the order of a row."""
    for operand, fmt, count in ports_of(model):
        if count == 1:
            yield Bits(carrier, fmt.width, operand)
            continue
        for low in range(0, fmt.width * count, fmt.width):
            yield Bits(carrier, fmt.width, carrier.wire(fmt.width, f"{operand}[{low + fmt.width - 1}:{low}]"))


def _names(model: Model, layout: Layout, trace: Trace, elements: Sequence[Bits]) -> dict[str, str]:
    """The names of wires that are elements or signals of the model."""
    names = {bits.node: name for bits, name in zip(elements, layout.names, strict=True) if name not in model.formats}
    taken = {*model.formats, "d", *names.values()}
    wires = ((str(signal.name), signal.value.node) for signal in trace if signal.value.value is None)
    return names | signal_names(((name, wire) for name, wire in wires if wire not in {*names, *taken}), taken)


def head_of(model: Model) -> list[str]:
    """The lines above a model's module."""
    return [*(f"// {line}".rstrip() for line in about(model)), *LINT_OFF]


def about(model: Model) -> list[str]:
    """The subject of a model's text, in lines for comments."""
    return [f"{model.reference}, written by mmaprobe {VERSION}:", *unit_text(model.unit).splitlines()]
