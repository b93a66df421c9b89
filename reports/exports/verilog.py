"""A model as a combinational module in Verilog, printed by the carrier from the one definition of its arithmetic."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from mmaprobe.smtmodel import VERSION
from mmaprobe.smtmodel.arithmetic.formats import Format
from mmaprobe.smtmodel.base.escapes import text_bytes
from mmaprobe.smtmodel.base.wording import counted
from mmaprobe.smtmodel.carriers.algebra import Bits
from mmaprobe.smtmodel.carriers.verilog import VerilogCarrier
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
    layout, carrier = layout_of(model), VerilogCarrier()
    elements = list(_elements(model, carrier))
    operands = layout.split(elements)
    result = evaluate(model, operands.a, operands.b, operands.c, *operands.rest)
    names = _names(model, layout, result.trace, elements)
    lines = carrier.statements_of(result.d.node, names)
    name = name or identifier(model.reference)
    ports = [f"  input  [{fmt.width * count - 1}:0] {operand}" for operand, fmt, count in ports_of(model)]
    last = names.get(result.d.node, result.d.node)
    body = [*(text for function in carrier.functions.values() for text in function.splitlines()), *lines]
    return "\n".join([
        *(f"// {line}".rstrip() for line in about(model)), f"module {name} (",
        *(f"{port}," for port in ports), f"  output [{model.d.width - 1}:0] d", ");",
        *(f"  {line}" for line in body), f"  assign d = {last};", "endmodule", "",
    ])  # fmt: skip


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
