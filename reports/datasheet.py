"""The numerical data sheet of a unit: what a vendor would publish, from the model, its evidence and proofs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from hypotheses.family import families
from reports.bounds import bound_text
from smtmodel.accumulator import Accumulator, format_parameter
from smtmodel.batch import evaluate_row
from smtmodel.display import exact_value
from smtmodel.dot import Model, UnitModel
from smtmodel.formats import Format
from smtmodel.instructions import INSTRUCTIONS, Instruction
from smtmodel.operands import Operands
from smtmodel.progress import Pieces
from smtmodel.reference import parse_reference
from smtmodel.unitfile import step_texts
from smtmodel.vectors import to_hex

#: property of `prove` -> what the sheet calls it
ASKED = {
    "order-independent": "Independent of the order of products in a step",
    "sign-symmetric": "Symmetric in sign: -d for -a and -c",
    "monotonic-addend": "Monotonic in the addend",
}
#: asks for a property of a model: the document of `prove`, or None where nothing is known
Ask = Callable[[str, Model], Mapping[str, Any] | None]


ASSUMED = "not asked: the family takes it for granted"
MODEL = "model"  # a line rests on the model that the sheet names


@dataclass(frozen=True)
class Line:
    name: str
    value: str
    basis: str = ""


@dataclass
class Sheet:
    """One page. `instructions`: those that compute alike; `basis`: where the model comes from."""

    title: str
    instructions: list[str]
    basis: str
    lines: list[Line] = field(default_factory=list)
    id: str = ""


def groups(rows: Iterable[Instruction]) -> list[list[Instruction]]:
    """Instructions of one unit with one accumulator, which differ in shape or in the formats of their factors."""
    found: dict[tuple[Any, ...], list[Instruction]] = {}
    for row in rows:
        found.setdefault((row.arch, row.unit, row.accumulator, row.source, row.emulated), []).append(row)
    return list(found.values())


def sheets_of(arch: str | None, ask: Ask, pieces: Pieces) -> list[Sheet]:
    """The sheets of an architecture, or of all."""
    chosen = groups(row for row in INSTRUCTIONS.values() if arch is None or row.arch == arch)
    return [_sheet_of_group(group, ask) for group in pieces.of(chosen)]


def _sheet_of_group(group: list[Instruction], ask: Ask) -> Sheet:
    first = group[0]
    model = parse_reference(first.reference)
    sheet = Sheet(f"{first.arch} {first.unit}: {first.name}", [row.reference for row in group], _basis(group))
    if len(group) > 1:
        sheet.title += f" and {len(group) - 1} more"
    pairs = dict.fromkeys(f"{row.a} * {row.b}" for row in group)
    emulated = [Line("Runs on", "another unit: the instruction is emulated", MODEL)] if first.emulated else []
    sheet.lines = [*emulated, *_lines(model, ", ".join(pairs), ask)]
    return sheet


def _basis(group: Sequence[Instruction]) -> str:
    """Where the model comes from, and which instructions are recorded: the mark of one is none of its neighbours'."""
    marks: dict[str, list[str]] = {}
    for row in group:
        marks.setdefault(row.evidence, []).append(row.name)
    every = len(marks) == 1
    return "; ".join([group[0].source, *(mark if every else f"{mark} ({', '.join(n)})" for mark, n in marks.items())])


def sheet_of_model(model: Model, ask: Ask) -> Sheet:
    """The sheet of one model reference."""
    row = INSTRUCTIONS.get(model.reference.partition("@")[0])
    changed = "parameters as given; " if "@" in model.reference else ""
    if isinstance(model, UnitModel):
        basis = "; ".join(text for text in (model.unit.evidence, model.unit.source) if text) or "as the file has it"
    else:
        basis = f"{changed}{_basis([row])}" if row else f"{changed}IEEE 754-2019"
    return Sheet(model.reference, [model.reference], basis, _lines(model, f"{model.a.name} * {model.b.name}", ask))


def sheet_of_identified(document: Mapping[str, Any], ask: Ask) -> Sheet:
    """The sheet of a device, from the document of `identify`. Raises ValueError where nothing was identified."""
    if document["verdict"] != "identified":
        raise ValueError(f"nothing was identified: {document['verdict']}")
    model = parse_reference(document["classes"][0][0]["model"])
    device = document["device"]
    basis = (
        f"identified in {document['family']} by {document['questions']} questions and "
        f"{document['summation_order']['questions']} for the order; {document['validated']} further vectors agree"
    )
    undecided = {name: " or ".join(map(format_parameter, values)) for name, values in document["undecided"].items()}
    why = "; ".join(document["why_undecided"]) or "no vector tells them apart"
    lines = _lines(model, f"{model.a.name} * {model.b.name}", ask, undecided, f"not told apart: {why}")
    family = families().get(document["family"])
    named = {name: parameter for parameter, name, _ in _arithmetic(model.accumulator)}
    if family is not None:  # what the family does not vary was not asked
        asked = {*family.values, "block"}
        lines = [
            replace(line, basis=ASSUMED) if line.basis == MODEL and named.get(line.name, "block") not in asked else line
            for line in lines
        ]
    return Sheet(f"Device {device['name']}", [model.reference], basis, lines)


def _lines(
    model: Model, factors: str, ask: Ask, undecided: Mapping[str, str] | None = None, why: str = ""
) -> list[Line]:
    """`undecided`: the values of parameters that evidence leaves open, and `why`."""
    if isinstance(model, UnitModel):
        return _unit_lines(model, factors)
    acc, scale, still_open = model.accumulator, model.scale, dict(undecided or {})
    lines = [Line("Formats", f"{factors} + {model.c.name} -> {model.d.name}", MODEL)]
    if scale is not None:
        lines.append(Line("Scale factors", f"{scale.name}, one pair for {acc.scale_block} products", MODEL))
    for parameter, name, text in _arithmetic(acc):
        values = still_open.pop(parameter, None)
        lines.append(Line(name, text, MODEL) if values is None else Line(name, values, why))
    lines += [Line(name, values, why) for name, values in still_open.items()]
    lines += [Line(name, text, "evaluated") for name, text in special_values(model)]
    lines += [_property(wanted, name, ask(wanted, model)) for wanted, name in ASKED.items()]
    lines.append(Line("Error against the exact sum", bound_text(model.unit), "derived from the parameters"))
    return lines


def _unit_lines(model: UnitModel, factors: str) -> list[Line]:
    """The lines of an expression: its steps as they are written, and what it gives for special values."""
    lines = [Line("Formats", f"{factors} + {model.c.name} -> {model.d.name}", MODEL)]
    lines.append(Line("Products", str(model.length), MODEL))
    lines += [Line(name, text, MODEL) for name, text in step_texts(model.unit).items()]
    lines += [Line(name, text, "evaluated") for name, text in special_values(model)]
    return lines


def _arithmetic(acc: Accumulator) -> list[tuple[str, str, str]]:
    """The sum: parameter, what the sheet calls it, and its value in words."""
    facts = [
        ("operation", "Operation", _operation(acc)),
        ("block", "Products", f"{acc.length}; {_steps(acc)}"),
        ("grouping", "Grouping", _grouping(acc)),
    ]
    if not acc.exact_sum:
        facts += [
            ("fraction_bits", "Fraction bits", f"{acc.fraction_bits} below the largest exponent"),
            ("align_rounding", "Bits shifted out", f"cut {_words(acc.align_rounding)}"),
            ("carry_bits", "Carry bits",
             "as many as needed" if acc.carry_bits == "exact" else f"{acc.carry_bits}, then it wraps"),
            ("exponent_floor", "Exponent floor", _floor(acc)),
            ("product", "Products before alignment", _words(acc.product)),
            ("addend", "Addend", _addend(acc)),
        ]  # fmt: skip
    beyond = {"infinity": "infinity, however it is rounded", "saturate": "the largest finite number",
              "ieee": "as IEEE 754 has it for the rounding"}  # fmt: skip
    facts += [
        ("output_rounding", "Rounding of the result", f"{_words(acc.output_rounding)}, to {acc.output}"),
        ("overflow", "Results beyond the range", beyond[acc.overflow]),
        ("flush_inputs", "Subnormal inputs", "read as zero" if acc.flush_inputs else "kept"),
        ("input_zeros", "Zero inputs", "keep their signs" if acc.input_zeros == "signed" else "read as +0"),
        ("flush_outputs", "Subnormal results", "become zero" if acc.flush_outputs else "kept"),
    ]
    return [fact for fact in facts if fact[2]]


def _operation(acc: Accumulator) -> str:
    return {
        "fused_dot": "products and addend aligned to the largest exponent and added at once",
        "exact_dot": "exact sum, rounded once",
        "fma_chain": "a chain of IEEE fused multiply-adds",
        "add_mul": f"products rounded, added in pairs of {acc.group}, then to the running sum",
    }[acc.operation]


def _steps(acc: Accumulator) -> str:
    steps, products = len(acc.blocks), len(acc.blocks[0])
    if steps == 1:
        return "all products in one step"
    return f"{steps} steps of {products}, each result the next addend, products in order {_order(acc)}"


def _floor(acc: Accumulator) -> str:
    if acc.exponent_floor is None:
        return "none: zero terms do not count"
    what = "zero terms count with this exponent" if acc.floor_applies_to == "zero_terms" else "the least maximum"
    return f"{acc.exponent_floor}: {what}"


def _addend(acc: Accumulator) -> str:
    late = f"after the products, whose sum keeps {acc.late_fraction_bits} bits ({_words(acc.late_rounding)})"
    if acc.late_sum_bits is not None:
        late += f"; the joined sum is cut to {acc.late_sum_bits} bits below its leading one"
    return {"fused": "aligned with the products", "after": "added once, at the end, by an IEEE addition",
            "late": late}[acc.addend]  # fmt: skip


def _order(acc: Accumulator) -> str:
    return acc.block_order.replace("_", " ") if isinstance(acc.block_order, str) else format_parameter(acc.block_order)


def _words(name: str) -> str:
    return name.replace("_", " ")


def _grouping(acc: Accumulator) -> str:
    return {"none": "", "pairwise": "", "even_odd": "even and odd products apart, then joined",
            "scale_blocks": f"{acc.group} products summed exactly, then scaled"}[acc.grouping]  # fmt: skip


def special_values(model: Model) -> list[tuple[str, str]]:
    """What the model gives for NaN, infinities, and zeros."""
    a, b, c = model.a, model.b, model.c
    cases = {"NaN": (0, 0, c.nan), "-0 * 1 + (-0)": (a.sign_bit, _one(b), c.sign_bit)}
    if a.specials == "ieee":
        cases["infinity * 0"] = (a.infinity, 0, 0)
        cases["infinity - infinity"] = (a.infinity | a.sign_bit, _one(b), c.infinity)
    scales = (_one(model.scale),) * model.scales if model.scale else ()
    found = []
    for name, (x, y, z) in cases.items():
        d = evaluate_row(model, Operands((x,), (y,), z, scales, scales))
        value = exact_value(d, model.d)
        known = value != "nan" or model.nan is not None
        found.append((name, f"{value} ({to_hex(d, model.d) if known else 'pattern not known'})"))
    return found


def _one(fmt: Format) -> int:
    return fmt.bias << fmt.fraction << fmt.padding


def _property(wanted: str, name: str, document: Mapping[str, Any] | None) -> Line:
    if document is None:
        return Line(name, "not asked", "no answer in the store: --limit asks")
    verdict = {"equal": "yes", "different": "no", "unknown": "open"}[document["verdict"]]
    if verdict == "yes":
        by = ", ".join(document["engines"]) or "construction alone"
        return Line(name, verdict, f"proved by {by}; confirmed by {', '.join(document['confirmed_by']) or 'nobody'}")
    if verdict == "no":
        return Line(name, verdict, f"a counterexample, replayed: mmaprobe prove --property {wanted}")
    return Line(name, verdict, f"no answer in {document['seconds']} s")


def page(sheets: list[Sheet], program: str, title: str) -> str:
    """The sheets as one page of HTML."""
    from reports.report import environment

    numbered = [replace(sheet, id=f"sheet-{number}") for number, sheet in enumerate(sheets, 1)]
    return environment(program).get_template("datasheet.html").render(title=title, sheets=numbered)
