"""A model as a combinational module in Verilog, printed by the carrier from the one definition of its arithmetic."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from mmaprobe.smtmodel import VERSION
from mmaprobe.smtmodel.arithmetic.formats import Format
from mmaprobe.smtmodel.base.escapes import text_bytes
from mmaprobe.smtmodel.base.wording import counted
from mmaprobe.smtmodel.carriers.algebra import Bits
from mmaprobe.smtmodel.carriers.verilog import VerilogCarrier, range_of
from mmaprobe.smtmodel.evaluate.model import Model, evaluate
from mmaprobe.smtmodel.evaluate.operands import Layout, layout_of
from mmaprobe.smtmodel.nodes.trace import Trace
from mmaprobe.smtmodel.units.unitfile import unit_text


def exported(model: Model) -> tuple[bytes, str, str]:
    """The text of a model's module; nothing to be said beside it; and what it is."""
    text = module(model)
    return text_bytes(text), "", f"module {identifier(model.reference)}, {counted(text.count(' wire '), 'wire')}"


def module(model: Model, name: str = "") -> str:
    """The text of a module with a port for each operand and `d`. Elements of an operand are one word, the first one
    in its lowest bits. Wires that are signals of the model have their names, with _ for what Verilog does not take."""
    printed = Printed(model, name)
    carrier, node = printed.carrier, printed.evaluation.d.node
    ports = [f"  input  {range_of(width)}{port}" for port, width in printed.ports.items()]
    body = [*carrier.lines_of_functions(), *carrier.statements_of(carrier.wires_of([node]), printed.names)]
    return "\n".join([
        *(f"// {line}".rstrip() for line in about(model)), f"module {printed.name} (",
        *(f"{port}," for port in ports), f"  output {range_of(model.d.width)}d", ");",
        *(f"  {line}" for line in body), f"  assign d = {printed.names.get(node, node)};", "endmodule", "",
    ])  # fmt: skip


class Printed:
    """A model evaluated on wires: the name of its module, its ports with their bits, and the names of wires that are
    elements or signals."""

    def __init__(self, model: Model, name: str = "") -> None:
        self.name = name or identifier(model.reference)
        self.layout, self.carrier = layout_of(model), VerilogCarrier()
        self.ports = {name: fmt.width * count for name, fmt, count in ports_of(model)}
        elements = list(_elements(model, self.carrier))
        self.operands = operands = self.layout.split(elements)
        self.evaluation = evaluate(model, operands.a, operands.b, operands.c, *operands.rest)
        self.names = _names(model, self.layout, self.evaluation.trace, elements)

    @property
    def named(self) -> dict[str, int]:
        """The wires of the module that have names, with their bits."""
        wires = self.carrier.wires_of([self.evaluation.d.node])
        return {wire: width for wire, width, _ in wires if wire in self.names}


def ports_of(model: Model) -> list[tuple[str, Format, int]]:
    """The inputs of a model's module: each operand, the format of its elements, and how many there are."""
    counts = filter(None, model.counts)
    return [(name, fmt, count) for (name, fmt), count in zip(model.formats.items(), counts, strict=True)]


def identifier(text: str) -> str:
    """A name that Verilog takes: letters, digits and _ in the place of others."""
    name = re.sub(r"\W+", "_", text).strip("_")
    return name if name[:1].isalpha() else f"unit_{name}"


def _elements(model: Model, carrier: VerilogCarrier) -> Iterator[Bits]:
    """The elements of all operands, in the order of a row."""
    for operand, fmt, count in ports_of(model):
        if count == 1:
            yield Bits(carrier, fmt.width, operand)
            continue
        for low in range(0, fmt.width * count, fmt.width):
            yield Bits(carrier, fmt.width, carrier.wire(fmt.width, f"{operand}[{low + fmt.width - 1}:{low}]"))


def _names(model: Model, layout: Layout, trace: Trace, elements: Sequence[Bits]) -> dict[str, str]:
    """The names of wires that are elements or signals of the model."""
    found = {bits.node: name for bits, name in zip(elements, layout.names, strict=True) if name not in model.formats}
    taken = {*model.formats, "d", *found.values()}
    for signal in trace:
        wire, name = signal.value.node, identifier(str(signal.name))
        if signal.value.value is None and wire not in found and wire not in taken and name not in taken:
            found[wire] = name
            taken.add(name)
    return found


def about(model: Model) -> list[str]:
    """What the text of a model is of, in lines for comments."""
    return [f"{model.reference}, written by mmaprobe {VERSION}:", *unit_text(model.unit).splitlines()]
