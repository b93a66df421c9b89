"""The numerical data sheet of a unit: what a vendor would publish, from the model, its evidence and proofs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from hypotheses.family import families
from reports.arithmetic import LINES, arithmetic
from reports.bounds import bound_text
from smtmodel.batch import evaluate_row
from smtmodel.display import exact_value
from smtmodel.dot import Model
from smtmodel.instruction import Instruction
from smtmodel.instructions import INSTRUCTIONS
from smtmodel.operands import Operands
from smtmodel.parameters import format_parameter
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
    """Instructions of one unit with one expression, which differ in shape or in the formats of their factors."""
    found: dict[tuple[Any, ...], list[Instruction]] = {}
    for row in rows:
        unit = parse_reference(row.reference).unit
        key = (row.arch, row.unit, unit.result, unit.length, unit.scale, unit.scale_block, row.source, row.emulated)
        found.setdefault(key, []).append(row)
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
    if model.member is None:
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
    if family is not None:  # what the family does not vary was not asked
        taken = {line for line, names in LINES.items() if not {*family.values, "block"}.intersection(names)}
        lines = [replace(line, basis=ASSUMED) if line.basis == MODEL and line.name in taken else line for line in lines]
    return Sheet(f"Device {device['name']}", [model.reference], basis, lines)


def _lines(
    model: Model, factors: str, ask: Ask, undecided: Mapping[str, str] | None = None, why: str = ""
) -> list[Line]:
    """`undecided`: the values of parameters that evidence leaves open, and `why`."""
    unit = model.unit
    lines = [Line("Formats", f"{factors} + {model.c.name} -> {model.d.name}", MODEL)]
    if unit.scale is not None:
        lines.append(Line("Scale factors", f"{unit.scale.name}, one pair for {unit.scale_block} products", MODEL))
    lines += [Line(name, text, MODEL) for name, text in arithmetic(unit)]
    for parameter, values in (undecided or {}).items():
        decided = [line for line, names in LINES.items() if parameter in names] or [parameter]
        left = [Line(line.name, values, why) if line.name in decided else line for line in lines]
        lines = left if left != lines else [*lines, Line(decided[0], values, why)]
    lines += [Line("Expression", "; ".join(f"{name}: {text}" for name, text in step_texts(unit).items()), MODEL)]
    lines += [Line(name, text, "evaluated") for name, text in special_values(model)]
    lines += [_property(wanted, name, ask(wanted, model)) for wanted, name in ASKED.items()]
    lines.append(Line("Error against the exact sum", bound_text(unit), "derived from the expression"))
    return lines


def special_values(model: Model) -> list[tuple[str, str]]:
    """What the model gives for NaN, infinities, and zeros."""
    a, b, c = model.a, model.b, model.c
    cases = {"NaN": (0, 0, c.nan)} if c.has_nan else {}
    if a.has_negative_zero and c.has_negative_zero:
        cases["-0 * 1 + (-0)"] = (a.sign_bit, b.one, c.sign_bit)
    if a.has_infinity:
        cases["infinity * 0"] = (a.infinity, 0, 0)
    if a.has_infinity and c.has_infinity:
        cases["infinity - infinity"] = (a.infinity | a.sign_bit, b.one, c.infinity)
    scales = (model.scale.one,) * model.scales if model.scale else ()
    found = []
    for name, (x, y, z) in cases.items():
        d = evaluate_row(model, Operands((x,), (y,), z, scales, scales))
        value = exact_value(d, model.d)
        known = value != "nan" or model.nan is not None
        found.append((name, f"{value} ({to_hex(d, model.d) if known else 'pattern not known'})"))
    return found


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
