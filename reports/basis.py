"""The basis of each line of a data sheet: results recorded on a GPU that decide it, a publication, a device's answers,
or the user's input."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

from mmaprobe.documents.identify import Build, Identify
from mmaprobe.reports.arithmetic import INNER, LINES, alternatives_text, arithmetic, in_words, with_value
from mmaprobe.smtmodel.base.wording import counted
from mmaprobe.smtmodel.evaluate.model import Model
from mmaprobe.smtmodel.tables.instruction import Instruction
from mmaprobe.smtmodel.tables.recordings import DECIDED, Decided
from mmaprobe.smtmodel.tables.reference import parse_reference

NAMED = "the instruction itself"  # formats, shape
ABOVE = "the lines above"  # the basis of the expression and of what follows from it
EVALUATED = "the expression, evaluated"
GIVEN = "given in the reference"
ASSUMED = "assumed: the family does not vary it"
ORDER = {"group", "partials"}  # parameters about which the revealed order of the additions says something


def of_group(rows: Sequence[Instruction], parameters: Collection[str]) -> str:
    """The basis of a line that depends on these parameters, for instructions of equal arithmetic. If their bases
    differ, each basis is followed by the names of its instructions, the most frequent one by "the others"."""
    kinds: dict[str, list[str]] = {}
    for row in rows:
        kinds.setdefault(of_instruction(row, parameters), []).append(row.name)
    if len(kinds) == 1:
        return next(iter(kinds))
    *named, (rest, _) = sorted(kinds.items(), key=lambda item: len(item[1]))
    return "; ".join([*(f"{text} ({', '.join(names)})" for text, names in named), f"{rest} (the others)"])


def of_instruction(row: Instruction, parameters: Collection[str]) -> str:
    """The GPUs whose recorded rows contradict every near value of the parameters, with the number of rows; if there is
    none, the publication, and the near values with which all recorded rows agree."""
    if deciding := deciders(row, parameters):
        return "recorded: " + ", ".join(f"{gpu} {counted(row.recorded[gpu], 'row')}" for gpu in deciding)
    fitting = [_fitting(row, name, parameters, values) for name in parameters if (values := _open(row, name))]
    rows = f"; the rows of {' and '.join(row.recorded)} also fit: {'; and '.join(fitting)}" if fitting else ""
    return publication_of(row, parameters) + rows


def deciders(row: Instruction, parameters: Collection[str]) -> list[str]:
    """The GPUs whose recorded rows contradict every near value of the parameters."""
    return [gpu for gpu, one in DECIDED.get(row.reference, {}).items() if _decides(one, parameters)]


def publication_of(row: Instruction, parameters: Collection[str]) -> str:
    """The publication of an instruction's parameters, or what they are inferred from."""
    start = "published:" if row.origin == "published model" else "inferred from"
    return f"{start} {row.source_of(parameters)}"


def _decides(one: Decided, parameters: Collection[str]) -> bool:
    return not set(parameters) & set(one["open"]) and bool(set(parameters) & set(one["decided"]))


def _open(row: Instruction, name: str) -> list[str]:
    """The near values of a parameter with which the rows of every GPU agree."""
    first, *others = [one["open"].get(name, []) for one in DECIDED.get(row.reference, {}).values()] or [[]]
    return [value for value in first if all(value in other for other in others)]


def _fitting(row: Instruction, name: str, parameters: Collection[str], values: Sequence[str]) -> str:
    """The line that depends on `parameters`, for near values of one of them. If these change a node that the line does
    not name, the values themselves in words."""
    model = parse_reference(row.reference)
    lines = [line for line, names in LINES.items() if names == parameters]
    lines_of_values = [with_value(model, name, value).get(line) for line in lines for value in values]
    texts = [text for text in lines_of_values if text is not None and text not in dict(arithmetic(model.unit)).values()]
    texts = texts or [in_words(name, value.rpartition(": ")[2]) for value in values]
    if all(text.endswith(INNER) for text in texts):
        return alternatives_text(text.removesuffix(INNER) for text in texts) + INNER
    return alternatives_text(texts)


def of_changed(row: Instruction, model: Model, parameters: Collection[str]) -> str:
    """The basis of a line that depends on these parameters, for a reference to an instruction that may change some of
    them (NAME@parameter=value)."""
    return GIVEN if row.changed(model).intersection(parameters) else of_instruction(row, parameters)


def of_file(model: Model) -> str:
    """The evidence that a unit file states, up to the first semicolon; else its source. Either is of the whole unit:
    which line rests on which answer, the file does not say."""
    return next((text.split(";")[0] for text in (model.unit.evidence, model.unit.source) if text), "the file")


def of_device(document: Identify, varied: Collection[str], parameters: Collection[str]) -> str:
    """The basis of a line in the answers that `identify` received from the device of the sheet: the questions that
    ruled out values of these parameters, or else the number of all questions. `varied`: the parameters that the family
    varies; the others are assumed, as far as the order of the additions does not show them."""
    order = document.summation_order
    if varied and not set(varied).intersection(parameters):
        if not (order and order.tree and ORDER.intersection(parameters)):
            return ASSUMED
        return f"answers to {counted(order.questions, 'question')} for the order; the rest is assumed"
    numbers = [str(n) for n, row in enumerate(document.asked, 1) if set(row.ruled_out).intersection(parameters)]
    questions = f"question{'s' * (len(numbers) > 1)} {', '.join(numbers)}" if numbers else question_count_text(document)
    return f"answers to {questions}"


def question_count_text(document: Identify | Build) -> str:
    """The number of questions that a device answered, in words."""
    order = document.summation_order
    more = f", {order.questions} for the order" if order else ""
    return f"{counted(document.questions, 'question')}{more}, {counted(document.validated, 'vector')} to validate"


def constant_basis(text: str) -> Callable[[Collection[str]], str]:
    """A basis that is the same for every line."""
    return lambda parameters: text
