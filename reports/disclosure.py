"""What standards ask makers of a unit to disclose, read off the unit's expression."""

from __future__ import annotations

from typing import Any

from mmaprobe.documents.datasheet import ImeDisclosure
from mmaprobe.reports.words import operands_text, parameters_text
from mmaprobe.smtmodel.base.errors import ParameterError
from mmaprobe.smtmodel.base.wording import counted, table_lines
from mmaprobe.smtmodel.evaluate.model import Model
from mmaprobe.smtmodel.nodes import Each, ExactSum, FusedSum, Node, Product, Repeat, Round, Running
from mmaprobe.smtmodel.nodes.node import walk
from mmaprobe.smtmodel.nodes.round import Rounding
from mmaprobe.smtmodel.units.unit import Unit

RVBNA = "bulk normalisation (RVBNA)"
ALIGNED = "products aligned at the largest exponent among them, each {rounding} there, and added"


def ime_disclosure(model: Model, basis: str) -> ImeDisclosure:
    """The entry for RISC-V's integrated matrix extension (IME) of a unit that adds sums of consecutive groups of
    products to c, one after another. `basis`: the source of the model. Raises ParameterError for any other unit."""
    unit = model.unit
    sew, width = unit.d.width, unit.a.width
    if unit.c != unit.d or unit.b.width != width or sew % width:
        raise _no_entry(
            f"elements of {width} and {unit.b.width} bits, an addend of {unit.c.width} and a result of {sew}"
        )
    widening = sew // width
    step, added = _step(unit)
    blocks = unit.blocks
    if [place for block in blocks for place in block] != list(range(unit.length)):
        raise _no_entry("its groups are not consecutive products in order")
    size = len(blocks[0])
    if size % widening:
        raise _no_entry(f"it adds {counted(size, 'product')} at a time, and a sub-dot-product has {widening}")
    total, rounded = _group(step, added)
    return ImeDisclosure(
        disclosure="riscv-ime",
        model=model.reference,
        formats=operands_text(unit),
        sew=sew,
        widening=widening,
        sub_dot_products=unit.length // widening,
        products=unit.length,
        group=size // widening,
        psm=0 if total is None else 1,
        rounded=rounded is not None,
        rounding=unit.rounding.mode,
        **({} if total is None else _algorithm(total, unit.rounding)),
        expression=parameters_text(model),
        basis=basis,
    )


def disclosure_text(disclosure: ImeDisclosure) -> str:
    """The entry in lines, as the command prints it."""
    sizes = f"SEW={disclosure.sew}, W={disclosure.widening}, lambda={disclosure.sub_dot_products}"
    group = f"a group is {counted(disclosure.group, 'sub-dot-product')} of {counted(disclosure.widening, 'product')}"
    lines = {
        "(SEW, W, lambda)": f"({disclosure.sew}, {disclosure.widening}, {disclosure.sub_dot_products})",
        "(G, psm, rnd)": f"({disclosure.group}, {disclosure.psm}, {int(disclosure.rounded)})",
        "G": f"{group}, summed and then added to C",
        "psm": "the sum of a group is exact" if disclosure.psm == 0 else disclosure.algorithm,
        **{f"  {name}": str(value) for name, value in (disclosure.parameters or {}).items()},
        "rnd": f"the sum of a group is {'' if disclosure.rounded else 'not '}rounded to C's format before it is added",
        "rounding of C": disclosure.rounding,
        "expression": disclosure.expression,
        "basis": disclosure.basis,
    }
    head = f"{disclosure.model}: disclosure for RISC-V's integrated matrix extension, {disclosure.formats} at {sizes}"
    return "\n".join([head, *(f"  {line}" for line in table_lines([*lines.items()]))])


def _no_entry(why: str) -> ParameterError:
    return ParameterError("--disclosure", f"riscv-ime has no entry for this unit: {why}")


def _step(unit: Unit) -> tuple[Node, Node]:
    """The node that adds a group, and the running sum to which it adds the group: a repeated step, or a single one."""
    last = unit.result
    if isinstance(last, Repeat):
        if not last.start.is_addend:
            raise _no_entry("its first group is not added to C")
        return last.body, Running(last.level)
    return last, next((node for node in walk(last) if node.is_addend), last)


def _group(step: Node, added: Node) -> tuple[FusedSum | None, Round | None]:
    """The aligned sum of a group, None where the sum is exact; and the group's rounding before it is added to the
    running sum."""
    if not isinstance(step, Round) or not isinstance(step.term, ExactSum) or added not in step.term.items:
        raise _no_entry("C is not added exactly to a finished sum of a group, and rounded")
    rest = tuple(item for item in step.term.items if item != added)
    rounded = rest[0] if len(rest) == 1 and isinstance(rest[0], Round) else None
    total: Node = rest[0] if len(rest) == 1 else ExactSum(rest)
    total = total if rounded is None else rounded.term
    for term in total.items if isinstance(total, ExactSum | FusedSum) else (total,):
        if not isinstance(term.body if isinstance(term, Each) else term, Product):
            raise _no_entry("the sum of a group is not one of its products")
    if rounded is not None and rounded.rounding.format != step.rounding.format:
        raise _no_entry("the sum of a group is rounded to another format than that of C")
    return (total if isinstance(total, FusedSum) else None), rounded


def _algorithm(total: FusedSum, last: Rounding) -> dict[str, Any]:
    """The entries that a maker publishes for psm = 1: the algorithm and its parameters. `last`: the rounding of C."""
    if len(every := set(total.bits_of_terms)) > 1:
        raise _no_entry("products of a group keep different numbers of bits")
    [bits] = every
    parameters: dict[str, int | str] = {"fraction bits below the largest exponent": bits}
    for name, value in (("carry bits", total.carry_bits), ("exponent of a zero term", total.zeros),
                        ("least exponent", total.least)):  # fmt: skip
        if value is not None:
            parameters[name] = value
    if total.rounding == last.mode == "to_odd":
        return {"algorithm": RVBNA, "parameters": {"guard bits g": bits - last.format.fraction, **parameters}}
    how = "truncated" if total.rounding == "toward_zero" else f"rounded ({total.rounding})"
    if total.sticky:
        how = "truncated, what is cut off ORed into the sum's last bit,"
    return {"algorithm": ALIGNED.format(rounding=how), "parameters": parameters}
