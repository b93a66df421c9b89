"""The numerical data sheet of a unit: what a vendor would publish, from the model, its evidence and proofs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Literal, Protocol

from mmaprobe.documents.identify import Build, Identify
from mmaprobe.documents.parts import Verdict
from mmaprobe.documents.prove import proved_text
from mmaprobe.documents.reading import read
from mmaprobe.hypotheses.family import families
from mmaprobe.queries.kernel.questions.statements import exchanged_text
from mmaprobe.queries.kernel.theorem import OpenLemmaError, RuleError
from mmaprobe.queries.properties.bound import bound_of
from mmaprobe.queries.properties.bound_report import conditions_of, formula_of, shown_bound
from mmaprobe.queries.search.distinguish import Options
from mmaprobe.queries.tactics.settling import Settled
from mmaprobe.reports import basis
from mmaprobe.reports.arithmetic import LINES, alternatives_text, arithmetic, with_value
from mmaprobe.reports.words import parameters_text
from mmaprobe.smtmodel.arithmetic.display import exact_value
from mmaprobe.smtmodel.base.progress import Pieces
from mmaprobe.smtmodel.evaluate.batch import evaluate_row
from mmaprobe.smtmodel.evaluate.model import Model
from mmaprobe.smtmodel.evaluate.operands import Operands
from mmaprobe.smtmodel.families.parameters import format_parameter
from mmaprobe.smtmodel.inputs.vectors import to_hex
from mmaprobe.smtmodel.tables.instruction import Instruction
from mmaprobe.smtmodel.tables.instructions import INSTRUCTIONS
from mmaprobe.smtmodel.tables.reference import is_unit_file, parse_reference
from mmaprobe.smtmodel.tables.sparse import sparse_rows
from mmaprobe.smtmodel.units.unit_files import units_of
from mmaprobe.smtmodel.units.unitfile import parse_unit

LONG = 30  # characters of a basis that stands below a sheet if several lines have it
Patterns = tuple[int, ...]
Rests = Callable[[Collection[str]], str]  # the basis of a line that depends on some parameters


@dataclass(frozen=True)
class KnownProperty:
    """What is known of a property: that it holds (equal), does not (different), was left open (unknown) after `seconds`
    of the `limit`, or cannot be asked, for the reason `why` (none)."""

    verdict: Verdict | Literal["none"]
    engines: Sequence[str] = ()
    confirmed_by: Sequence[str] = ()
    limit: float = 0.0
    seconds: float = 0.0
    why: str = ""


class PropertyAnswers(Protocol):
    """What a sheet asks: properties, and lemmas about the datapath, on which error bounds rest."""

    settle: Settled

    def __call__(self, wanted: str, model: Model) -> KnownProperty | None:
        """The known verdict about a property; None if there is none."""


class Unasked:
    """Nothing is asked, and nothing is known but what evaluation shows."""

    def __init__(self) -> None:
        self.settle = Settled(Options(timeout=0.0))

    def __call__(self, wanted: str, model: Model) -> None:
        return None


@dataclass(frozen=True)
class SheetLine:
    name: str
    value: str
    basis: str = ""


@dataclass
class Sheet:
    """One data sheet. `instructions`: references of instructions with equal arithmetic; `basis`: the source of the
    model."""

    title: str
    instructions: list[str]
    basis: str
    lines: list[SheetLine] = field(default_factory=list)
    id: str = ""

    @property
    def notes(self) -> dict[str, int]:
        """Long bases of several lines, and their numbers: below the sheet each stands once."""
        counts = Counter(line.basis for line in self.lines)
        repeated = [text for text, count in counts.items() if count > 1 and len(text) > LONG]
        return {text: number for number, text in enumerate(repeated, 1)}


def groups(rows: Iterable[Instruction]) -> list[list[Instruction]]:
    """The instructions grouped by unit and expression; those of a group differ in shape or in the formats of their
    factors."""
    by_arithmetic: dict[tuple[Any, ...], list[Instruction]] = {}
    for row in rows:
        unit = parse_reference(row.reference).unit
        key = (
            row.arch,
            row.unit,
            *unit.operands[2:],
            unit.result,
            row.source,
            row.emulated,
        )
        by_arithmetic.setdefault(key, []).append(row)
    return list(by_arithmetic.values())


def sheets_of(arch: str | None, ask: PropertyAnswers, pieces: Pieces) -> list[Sheet]:
    """The sheets of an architecture, its shipped unit files included; None: of all instructions of the table."""
    chosen = groups(row for row in INSTRUCTIONS.values() if arch is None or row.arch == arch)
    files = () if arch is None else units_of(arch)
    sheets = [_sheet_of_group(group, ask) for group in pieces.of(chosen)]
    return sheets + [sheet_of_model(parse_reference(name), ask) for name in files]


def _sheet_of_group(group: list[Instruction], ask: PropertyAnswers) -> Sheet:
    first = group[0]
    model = parse_reference(first.reference)
    sheet = Sheet(f"{first.arch} {first.unit}: {first.name}", [row.reference for row in group], _basis(group))
    if len(group) > 1:
        sheet.title += f" and {len(group) - 1} more"
    pairs = dict.fromkeys(f"{row.a} * {row.b}" for row in group)
    rests = partial(basis.of_group, group)
    on = "another unit: the instruction is emulated"
    emulated = [SheetLine("Runs on", on, rests(LINES["Operation"]))] if first.emulated else []
    sheet.lines = [*emulated, *_lines(model, ", ".join(pairs), ask, rests)]
    return sheet


def _basis(group: Sequence[Instruction]) -> str:
    """The source of the model, and which of the instructions are recorded: a recording of one is no evidence for the
    others."""
    marks: dict[str, list[str]] = {}
    for row in group:
        marks.setdefault(row.evidence, []).append(row.name)
    every = len(marks) == 1
    return "; ".join(
        [str(group[0].source), *(mark if every else f"{mark} ({', '.join(n)})" for mark, n in marks.items())]
    )


def sheet_of_model(model: Model, ask: PropertyAnswers) -> Sheet:
    """The sheet of one model reference."""
    row = _row(model)
    rests: Rests
    if model.member is None:
        rests = basis.constant_basis(basis.of_file(model))
    elif row is None:
        rests = basis.constant_basis("published: IEEE 754-2019")
    else:
        rests = partial(basis.of_changed, row, model)
    pair = f"{model.a.name} * {model.b.name}"
    own = model.unit.reference if is_unit_file(model.reference) else ""
    title = f"{own} ({model.reference})" if own and own != model.reference else model.reference
    return Sheet(title, [model.reference], basis_of_model(model), _lines(model, pair, ask, rests))


def _row(model: Model) -> Instruction | None:
    base = model.instruction
    return INSTRUCTIONS.get(base) or sparse_rows().get(base)


def basis_of_model(model: Model) -> str:
    """Where a model is from: its evidence and its source."""
    if model.member is None:
        about = model.unit.about if is_unit_file(model.reference) else ""
        return "; ".join(filter(None, (about, model.unit.evidence, model.unit.source))) or "its file names no evidence"
    if (row := _row(model)) is None:
        return "IEEE 754-2019"
    return ("parameters as given; " if "@" in model.reference else "") + _basis([row])


def identification(document: Mapping[str, Any]) -> Identify | Build:
    """The document that `identify` prints, with a family or without. Raises ValueError for any other document."""
    if not {"device", "verdict"} <= document.keys():
        raise ValueError("a document of identify is needed (--json)")
    result: Identify | Build = read(Identify if "family" in document else Build, document)
    return result


def model_of_identified(document: Identify | Build) -> Model:
    """The model that a device was found to be. Raises ValueError if no model was found."""
    if document.verdict not in ("identified", "built"):
        raise ValueError(f"nothing was identified: {document.verdict}")
    if isinstance(document, Identify):
        return parse_reference(document.classes[0][0].model)
    unit = parse_unit(document.unit or "", "unit")
    return Model(unit.reference, unit)


def basis_of_identified(document: Identify | Build) -> str:
    """How a device was identified."""
    text = f"identified in {document.family}" if isinstance(document, Identify) else "built without a family"
    return f"{text}, from answers to {basis.question_count_text(document)}"


def sheet_of_identified(document: Identify | Build, ask: PropertyAnswers) -> Sheet:
    """The sheet of a device, from the document of `identify`. Raises ValueError if no model was found."""
    rests: Rests
    model, rests = model_of_identified(document), basis.constant_basis("the device's answers")
    if isinstance(document, Identify):
        family = families().get(document.family)
        varied = {*family.varied, "block"} if family is not None else set()  # other parameters were not asked about
        left = {name: list(map(format_parameter, values)) for name, values in document.undecided.items()}
        why = f"not distinguished: {'; '.join(document.why_undecided) or 'no vector distinguishes them'}"
        rests = partial(basis.of_device, document, varied)
    else:
        left, why = {}, ""
    lines = _lines(model, f"{model.a.name} * {model.b.name}", ask, rests, left, why)
    return Sheet(f"Device {document.device['name']}", [model.reference], basis_of_identified(document), lines)


def _lines(
    model: Model,
    factors: str,
    ask: PropertyAnswers,
    rests: Rests,
    undecided: Mapping[str, Sequence[str]] | None = None,
    why: str = "",
) -> list[SheetLine]:
    """The lines of a sheet. `undecided`: the values of parameters that the evidence does not decide; `why`: the basis
    of these lines."""
    unit = model.unit
    added = [*([model.c.name] if model.addend else []), *(f"{key} {fmt.name}" for key, fmt in unit.more)]
    lines = [SheetLine("Formats", f"{' + '.join([factors, *added])} -> {model.d.name}", basis.NAMED)]
    if unit.scale is not None:
        text = f"{unit.scale.name}, one pair for {unit.scale_block} products"
        lines.append(SheetLine("Scale factors", text, basis.NAMED))
    lines += [SheetLine(name, text, rests(LINES[name])) for name, text in arithmetic(unit)]
    open_lines: dict[str, list[str]] = {}
    for parameter, values in (undecided or {}).items():
        every = [with_value(model, parameter, value) for value in values]
        alternatives = {name: [one[name] for one in every if name in one] for name, _ in arithmetic(unit)}
        texts = {name: alternatives_text(texts_of) for name, texts_of in alternatives.items() if len(set(texts_of)) > 1}
        for name, text in (texts or {parameter: " or ".join(values)}).items():
            open_lines.setdefault(name, []).append(text)
    lines = [SheetLine(line.name, "; ".join(open_lines.pop(line.name)), why) if line.name in open_lines else line
             for line in lines]  # fmt: skip
    lines += [SheetLine(name, "; ".join(texts), why) for name, texts in open_lines.items()]
    lines += [SheetLine("Expression", parameters_text(model), basis.ABOVE)]
    lines += [SheetLine(name, text, basis.EVALUATED) for name, text in special_values(model)]
    lines += [_property(wanted, name, ask(wanted, model)) for wanted, name in properties_of(model).items()]
    return [*lines, _bound(model, ask.settle)]


def properties_of(model: Model) -> dict[str, str]:
    """The properties that are asked of a model, each with its line's name."""
    exchanged, others = exchanged_text(model)
    apart = f", not of {others}" if others else ""
    return {
        "order-independent": f"Independent of the order of {exchanged.removesuffix(',')}{apart}",
        "sign-symmetric": f"Symmetric in sign (negating every a {'and c ' if model.addend else ''}negates d)",
        "monotonic-addend": "Monotonic in the addend",
    }


BOUND, UNPROVED = "Error against the exact sum", ("not asked", "open")
UNASKED, ASKS = "the store has no answer yet", "--limit SECONDS above 0 asks the solvers"


def _bound(model: Model, settle: Settled) -> SheetLine:
    try:
        formula = formula_of(shown_bound(bound_of(model.unit, settle)))
    except OpenLemmaError as error:
        if not settle.asks:
            return SheetLine(BOUND, "not asked", f"{UNASKED} to a lemma about its datapath: {ASKS}")
        return SheetLine(BOUND, "open", f"{error}: a larger --limit may prove it")
    except RuleError as error:
        return SheetLine(BOUND, "no bound is proved", str(error))
    where = ", ".join(conditions_of(model.unit, formula))
    return SheetLine(BOUND, formula, f"proved by rules about its nodes, where {where}")


def special_values(model: Model) -> list[tuple[str, str]]:
    """What the model gives for NaN, infinities, and zeros; they stand in products alone if it reads no c. Lines are
    called by the inputs, since a plan may add something else: with a negative alpha, infinities of one sign."""
    scales = (model.scale.one,) * model.scales if model.scale else ()
    rows = []
    for name, (x, y, z) in _special_inputs(model).items():
        d = evaluate_row(model, Operands(x, y, z, (scales, scales)))
        value = exact_value(d, model.d)
        known = value != "nan" or model.nan is not None or model.d.nan_for_negative_zero
        rows.append((name, f"{value} ({to_hex(d, model.d) if known else 'pattern not known'})"))
    return rows


def _special_inputs(model: Model) -> dict[str, tuple[Patterns, Patterns, int]]:
    """By name: the first patterns of a and of b, the others being +0, and the pattern of c."""
    a, b, c, addend = model.a, model.b, model.c, model.addend
    one = exact_value(b.one, b)  # 1, but for a format without a normal 1
    cases: dict[str, tuple[Patterns, Patterns, int]] = {}
    if addend and c.has_nan:
        cases["NaN"] = (), (), c.nan
    elif a.has_nan and not addend:
        cases[f"NaN * {one}"] = (a.nan,), (b.one,), 0
    if a.has_negative_zero and not addend:
        every = "" if model.length == 1 else ", every product"
        cases[f"-0 * {one}{every}"] = (a.sign_bit,) * model.length, (b.one,) * model.length, 0
    elif a.has_negative_zero and c.has_negative_zero:
        others = "" if model.length == 1 else ", other products +0"
        cases[f"-0 * {one} + (-0){others}"] = (a.sign_bit,), (b.one,), c.sign_bit
    if a.has_infinity:
        cases["infinity * 0"] = (a.infinity,), (0,), 0
        minus = a.infinity | a.sign_bit
        if not a.signed:
            return cases
        if not addend and model.length > 1:
            cases["infinity - infinity"] = (minus, a.infinity), (b.one, b.one), 0
        elif addend and c.has_infinity:
            cases[f"-infinity * {one}, c = infinity"] = (minus,), (b.one,), c.infinity
    return cases


def _property(wanted: str, name: str, known: KnownProperty | None) -> SheetLine:
    if known is None:
        return SheetLine(name, "not asked", f"{UNASKED}: {ASKS}")
    if known.verdict == "none":
        return SheetLine(name, "not asked", known.why)
    verdict = {"equal": "yes", "different": "no", "unknown": "open"}[known.verdict]
    if verdict == "yes":
        how = proved_text(known.engines, known.confirmed_by, "by rules about its nodes alone")
        return SheetLine(name, verdict, f"proved {how}")
    if verdict == "no":
        return SheetLine(name, verdict, f"a counterexample, replayed: mmaprobe prove --property {wanted}")
    return SheetLine(name, verdict, f"no answer in {known.seconds} s: a larger --limit may bring one")


def page(sheets: list[Sheet], title: str) -> str:
    """The sheets as one page of HTML."""
    from mmaprobe.reports.report import environment

    numbered = [replace(sheet, id=f"sheet-{number}") for number, sheet in enumerate(sheets, 1)]
    return environment().get_template("datasheet.html").render(title=title, sheets=numbered)
