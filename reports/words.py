"""The words of a drawing of an evaluation: the same in text, SVG and reports."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterable, Iterator, Sequence
from fractions import Fraction
from itertools import groupby
from typing import TYPE_CHECKING

from mmaprobe.smtmodel.arithmetic.display import bit_fields, exact_value, number_text, powers
from mmaprobe.smtmodel.arithmetic.formats import Format
from mmaprobe.smtmodel.base.files import STANDARD_INPUT
from mmaprobe.smtmodel.base.wording import as_words, counted, ranges_text, some_of
from mmaprobe.smtmodel.evaluate.facts import SignalFact
from mmaprobe.smtmodel.evaluate.model import Model
from mmaprobe.smtmodel.explain.explaining import fraction_line
from mmaprobe.smtmodel.explain.explanation import BitLine, Cause, Explanation, Group, Input, Picture, Rounded, StepView
from mmaprobe.smtmodel.inputs.vectors import to_hex
from mmaprobe.smtmodel.nodes.trace import Kind, Name, Part, Stage
from mmaprobe.smtmodel.operand import FURTHER, NAMED
from mmaprobe.smtmodel.units.unitfile import step_texts

if TYPE_CHECKING:
    from mmaprobe.queries.compare.neighbours import Divergence
    from mmaprobe.queries.compare.observed import ObservedVector
    from mmaprobe.smtmodel.plans import Plan
    from mmaprobe.smtmodel.units.unit import Unit

LONGEST = 30  # characters of a significand
ROW_NOTES = {"raised": "away from zero", "flipped": "flipped: one unit more", "dropped": "too small: dropped"}


def explain_command(row: ObservedVector, file: str) -> str:
    """The command that explains the model's evaluation of a row of a file. Of a row of standard input the command has
    the row itself."""
    where = json.dumps(row.vector.to_json()) if file == STANDARD_INPUT else f"{file}:{row.vector.line}"
    return shlex.join(["mmaprobe", "explain", row.model.reference, where])


def parameters_text(model: Model) -> str:
    """The expression: its roundings and steps, as unit files write them."""
    return "; ".join(f"{name}: {text}" for name, text in step_texts(model.unit).items())


def operands_text(given: Model | Unit | Plan) -> str:
    """The formats of a, b, c (if c is read) and d."""
    addend = f" + {given.c.name}" if given.addend else ""
    return f"{given.a.name} * {given.b.name}{addend} -> {given.d.name}"


# -- numbers


def pattern_text(pattern: int, fmt: Format, width: int = 0) -> str:
    """A bit pattern in hexadecimal, by fields (if that fits in `width` characters), and as powers of two."""
    digits, value = to_hex(pattern, fmt), number_text(pattern, fmt)
    text = f"{digits}  {bit_fields(pattern, fmt)}  {value}"
    return text if len(text) <= width else f"{digits}  {value}"


def input_text(given: Input) -> str:
    """An input's pattern and value."""
    flushed = " read as 0" if given.flushed else ""
    return f"{to_hex(given.pattern, given.format)} {number_text(given.pattern, given.format)}{flushed}"


def sign_of(row: BitLine) -> str:
    return "-" if row.negative else "+"


def term_text(row: BitLine) -> tuple[str, str]:
    """(value, exponent and significand) of a product."""
    if row.marks:
        return ("nan" if "nan" in row.marks else "-inf" if row.negative else "inf"), ""
    assert row.exponent is not None
    return powers(row.value), f"{row.exponent:>4}  {sign_of(row)}{_binary(row, row.exponent)}"


def whole_sum_operands(explanation: Explanation) -> list[tuple[str, Input]]:
    """The operands of the whole sum that are read."""
    unread = () if explanation.model.addend else ("c",)
    return [(name, given) for name, given in explanation.inputs.items() if name in NAMED and name not in unread]


def shared_operands(explanation: Explanation) -> list[tuple[str, Input]]:
    """The scale factors, and other operands of each product besides its factors."""
    listed = [row for row in FURTHER if row.per != "sum"]
    return [(row.at(k), explanation.inputs[row.at(k)])
            for row in listed for k in range(explanation.model.unit.count(row.name))]  # fmt: skip


def alone_signals(name: str) -> tuple[Name, ...]:
    """The signals that an operand of the whole sum has."""
    return (Name("", Stage.ADDEND),) if name == "c" else ()


def alone_text(explanation: Explanation, name: str) -> str:
    """Exponent and significand of an operand of the whole sum; empty for a zero, a special value, or a c without an
    exponent."""
    given = explanation.inputs[name]
    value = exact_value(given.pattern, given.format)
    if not isinstance(value, Fraction) or not value:
        return ""
    row = fraction_line(name, value)
    if name != "c":
        return f"{row.first:>4}  {sign_of(row)}{_binary(row, row.first)}"
    fact = explanation.facts.get(Name("", Stage.ADDEND, part=Part.EXPONENT))
    exponent = None if fact is None else fact.real
    if exponent is None:
        return ""
    return f"{int(exponent):>4}  {sign_of(row)}{_binary(row, int(exponent))}"


def product_table(
    explanation: Explanation, rows: Sequence[BitLine]
) -> tuple[list[tuple[str, str, str, str, str]], list[Sequence[Name]]]:
    """A head, a line for each of the products of `rows`, and a line for each operand of the whole sum; and the signals
    that each line shows."""
    alone = whole_sum_operands(explanation)
    lines = [("k", "a", "b", "product", "exponent, significand")]
    lines += [(row.name, *factor_texts(explanation, row), *term_text(row)) for row in rows]
    lines += [(name, input_text(given), "", "", alone_text(explanation, name)) for name, given in alone]
    return lines, [(), *(row.signals for row in rows), *map(alone_signals, dict(alone))]


def nonzero_products(explanation: Explanation) -> list[BitLine]:
    """The products that are not zero."""
    return [row for row in explanation.products if row.bits or row.marks]


def _binary(row: BitLine, point: int) -> str:
    """The bits with the binary point after the place `point`."""
    top, low = max(row.first, point), min(row.last, point)
    bits = "0" * (top - row.first) + row.bits + "0" * (row.last - low)
    whole = top - point + 1
    text = f"{bits[:whole]}.{bits[whole:]}" if bits[whole:] else bits
    return text if len(text) <= LONGEST else text[: LONGEST - 3] + "..."


# -- steps


def step_text(explanation: Explanation, index: int) -> str:
    """The title of a step: its name, its products, and its incoming sums."""
    step, several = explanation.steps[index], len(explanation.steps) > 1
    products = f"product{'s' * (len(step.indices) > 1)} {ranges_text(step.indices)}" if step.indices else ""
    what = " and ".join(part for part in (products, ", ".join(step.incoming)) if part)
    return ": ".join(part for part in (step_name(step) if several else "", what) if part)


def step_name(step: StepView) -> str:
    return step.name or "d"


def result_text(explanation: Explanation, step: StepView, width: int = 0) -> str:
    """The result of a step; empty for the last step, and for a step without a result."""
    if step.result is None or not step.name or len(explanation.steps) == 1:
        return ""
    return f"{step.name} = {pattern_text(step.result, step.format, width - len(step.name) - 3)}"


def passing_text(explanation: Explanation, indices: Sequence[int]) -> str:
    """Steps of one loop whose products are all zero."""
    first, last = explanation.steps[indices[0]], explanation.steps[indices[-1]]
    assert last.result is not None
    names = step_name(first) if first is last else f"{step_name(first)} to {step_name(last)}"
    text = pattern_text(last.result, last.format)
    return f"{names}: zero products; what comes in passes unchanged: {text}"


def group_text(explanation: Explanation, group: Group) -> str:
    """A group of products that is summed exactly and scaled."""
    assert group.scales is not None
    given = [explanation.inputs.get(name) for name in group.scales]
    texts = [name if one is None else number_text(one.pattern, one.format)
             for name, one in zip(group.scales, given, strict=True)]  # fmt: skip
    scaled = " ".join(f"* ({text})" if " " in text else f"* {text}" for text in texts)
    return f"group {group.name}: exact sum {powers(group.total)}, scaled {scaled}"


def undrawn_texts(explanation: Explanation, step: StepView) -> list[str]:
    """The texts of a step above its pictures: the groups of products that are scaled, and the products that are exactly
    representable in the format to which each is rounded."""
    texts = [group_text(explanation, group) for group in step.groups if len(group.members) > 1 and group.total]
    if exact := [picture for picture in step.pictures if _is_exact_product(picture)]:
        numbers = [int(picture.name) for picture in exact]
        formats = {picture.rounded.format.name for picture in exact if picture.rounded}
        texts.append(f"product{'s' * (len(exact) > 1)} {ranges_text(numbers)}: exact in {', '.join(formats)}")
    return texts


def _is_exact_product(picture: Picture) -> bool:
    return picture.single and picture.plain and picture.special is None and picture.name.isdigit()


def drawn_pictures(step: StepView) -> list[Picture]:
    """The sums of a step that are drawn: all but exact products and sums of zeros; the last one always."""
    last = step.pictures[-1]
    return [part for part in step.pictures if part is last or (part.rows and not _is_exact_product(part))]


def pictures_of(explanation: Explanation) -> Iterator[Picture]:
    """Every sum that is drawn."""
    for item in step_runs(explanation, None):
        if isinstance(item, int):
            yield from drawn_pictures(explanation.steps[item])


def step_runs(explanation: Explanation, marked: Name | None) -> Iterator[int | range]:
    """The steps to be drawn (int), and runs of steps of one loop that pass their input unchanged (range). A step in
    which two models diverge is drawn."""

    def kind(index: int) -> tuple[str, int]:
        step = explanation.steps[index]
        parts = marked is not None and bool(step.prefix) and marked.step.startswith(step.prefix)
        drawn = not step.passes or len(explanation.steps) == 1 or parts
        return ("", index) if drawn else (step.name.rstrip("0123456789[]"), -1)

    for (_, index), run in groupby(range(len(explanation.steps)), key=kind):
        indices = list(run)
        yield index if index >= 0 else range(indices[0], indices[-1] + 1)


def zero_products_text(explanation: Explanation) -> str:
    """The products that are zero; nothing if there are none."""
    zeros = [row.name for row in explanation.products if not (row.bits or row.marks)]
    return f"{counted(len(zeros), 'zero product')}: {places_text(zeros)}" if zeros else ""


def places_text(names: Sequence[str]) -> str:
    """Terms by name, products by their places."""
    numbers = ranges_text([int(name) for name in names if name.isdigit()])
    return ", ".join(part for part in (numbers, *(name for name in names if not name.isdigit())) if part)


def factor_texts(explanation: Explanation, row: BitLine) -> tuple[str, str]:
    """The factors of a product in words."""
    if row.name in explanation.factors:
        return explanation.factors[row.name]
    a, b = map(input_text, factor_inputs(explanation, row))
    return a, b


def factor_inputs(explanation: Explanation, row: BitLine) -> list[Input]:
    """The inputs that a product multiplies; empty if its factors are not inputs."""
    return [explanation.inputs[f"{side}{row.name}"] for side in "ab"] if row.name.isdigit() else []


# -- one sum


def first_line(picture: Picture) -> tuple[str, str, Sequence[Name]] | None:
    """The first line about a sum: its words, their style, and the signals that they show; None where there is no such
    line, as for zeros that are not rounded."""
    if picture.special is not None:
        return _special_text(picture), "special", picture.special.signals
    if not picture.rows:
        return None if picture.rounded is None else (_zero_text(picture), "fill", ())
    if _is_plain(picture):
        return _plain_text(picture), "", _plain_signals(picture)
    return _title_text(picture), "", () if picture.maximum is None else (Name(picture.prefix, Stage.MAXIMUM),)


def has_bits(picture: Picture) -> bool:
    """Whether the bits of a sum are drawn below its first line."""
    return picture.special is None and bool(picture.rows) and not _is_plain(picture)


def last_line(picture: Picture) -> tuple[str, Sequence[Name]] | None:
    """How a sum was rounded, and the signals of the rounding; None without rounding, or where the first line says
    it."""
    if picture.rounded is None or not (has_bits(picture) or (picture.special is None and not picture.rows)):
        return None
    return rounded_text(picture.rounded), picture.rounded.signals


def is_marked(marked: Name | None, signals: Iterable[Name]) -> bool:
    """Whether two models diverge in one of the signals, or in a part of one."""
    return marked is not None and any(name in (marked, marked.whole) for name in signals)


def _special_text(picture: Picture) -> str:
    """The rule that decides the result in place of a sum."""
    special = picture.special
    assert special is not None
    head = f"{picture.name}: " if picture.name else ""
    what = {
        "nan": "a NaN decides",
        "inf*0": "infinity times zero is a NaN",
        "opposite": "infinities of both signs: NaN",
        "infinity": "an infinity decides",
    }[special.rule]
    return f"{head}{what}: {'; '.join(_cause(cause) for cause in special.causes)}"


def _cause(cause: Cause) -> str:
    name = cause.term
    if cause.inputs == (name,):
        return name
    return f"term {name}" + (f" ({', '.join(cause.inputs)})" if cause.inputs else "")


def _is_plain(picture: Picture) -> bool:
    """Whether a sum loses nothing and is short enough for one line."""
    return picture.maximum is None and picture.plain and len(picture.rows) <= 2


def _plain_text(picture: Picture) -> str:
    """A sum that loses nothing, on one line."""
    terms = [f"({powers(row.value)})" if row.negative else powers(row.value) for row in picture.rows]
    called = [*(row.name for row in picture.rows), *picture.zeros]
    head = f"{picture.name} = " if picture.name and not picture.single else ""
    zeros = ["0"] * len(picture.zeros)
    total = f" = {powers(picture.total.value)}" if len(called) > 1 else ""
    exact = f"exact in {picture.rounded.format.name}" if picture.rounded else "exact"
    return f"{head}{' + '.join(called)}: {' + '.join([*terms, *zeros])}{total}, {exact}"


def _zero_text(picture: Picture) -> str:
    """A sum whose terms are all zero, or a number that is zero."""
    return f"{picture.name}: 0" if picture.single else "every term is zero"


def _plain_signals(picture: Picture) -> list[Name]:
    signals = [*picture.total.signals, *(picture.rounded.signals if picture.rounded else ())]
    return signals + [signal for row in picture.rows for signal in row.signals]


def _title_text(picture: Picture) -> str:
    """What is added, and the exponent at which the terms are aligned."""
    if picture.single and picture.rounded is not None:
        return f"{picture.name}: rounded to {picture.rounded.format.name}"
    what = f"{picture.name}: " if picture.name else ""
    if picture.maximum is None:
        terms = " + ".join(row.name for row in picture.rows)
        return f"{what}exact sum" + (f" of {terms}" if len(picture.rows) < 5 else "")
    assert picture.unit is not None
    floor = "the exponent floor, above every term"
    if picture.largest is not None:
        named = dict[tuple[int, int], list[str]]()
        for name, exponent, bits in picture.largest:
            named.setdefault((exponent, bits), []).append(name)
        sources = [f"{exponent} - {bits} ({_terms_text(names)})" for (exponent, bits), names in named.items()]
        return f"{what}largest exponent less F: {', '.join(sources) or floor}; bits kept to 2^{picture.unit}"
    winners = [row.name for row in picture.rows if "maximum" in row.marks]
    source = floor if picture.floor is not None else _terms_text(winners)
    most = picture.maximum - picture.unit
    kept = f"{most}" if picture.fewest == most else f"{picture.fewest} to {most}"
    return f"{what}maximum exponent {picture.maximum} ({source}); {kept} bits kept below it, to 2^{picture.unit}"


def _terms_text(names: Sequence[str]) -> str:
    return (f"term{'s' * (len(names) > 1)} " if names[0].isdigit() else "") + some_of(names, 6)


def lost_text(picture: Picture) -> str:
    """What becomes of the bits of terms below the lowest place that the alignment keeps."""
    return "rounded off" if picture.rounds else "truncated"


def zeros_text(picture: Picture) -> str:
    """The zero terms, which have no rows."""
    called = picture.zeros
    folded = counted(len(called), "zero term")
    return folded if len(called) > 3 else f"{folded}: {', '.join(called)}"


def row_note(row: BitLine) -> str:
    return ", ".join(text for mark, text in ROW_NOTES.items() if mark in row.marks)


def rounded_text(rounded: Rounded) -> str:
    """How a sum was rounded, and the result."""
    below = f"half {int(rounded.half)}, sticky {int(rounded.sticky)}"
    lowest = rounded.kept.bits[-1:] or "0"
    how = {
        "exact": "exact",
        "cut": f"lowest bit {lowest}, {below}: truncated",
        "raised": f"lowest bit {lowest}, {below}: one unit up",
        "overflow": "beyond the largest finite number",
        "flushed": "a subnormal result is flushed to zero",
    }[rounded.outcome]
    more = " (subnormal)" if rounded.subnormal else ""
    text = number_text(rounded.pattern, rounded.format)
    return f"{rounded.format.name}, {as_words(rounded.mode)}: {how}{more}: {text}"


def rounding_spans(picture: Picture, rounded: Rounded) -> list[tuple[int, int, str]]:
    """The bits of a sum that rounding keeps, and those that decide the rounding: the places of the first and the last
    one, and the name."""
    top, low = max(rounded.kept.first, rounded.lowest), rounded.lowest
    return [(top, low, "kept"), (low - 1, low - 1, "half"), (low - 2, (picture.cut or picture.total).last, "sticky")]


def rounded_line(rounded: Rounded | None) -> BitLine | None:
    """The result as a row of bits, if rounding truncated or incremented the sum; else None."""
    if rounded is None or rounded.outcome not in ("cut", "raised"):
        return None
    value = exact_value(rounded.pattern, rounded.format)
    return fraction_line(rounded.format.name, value) if isinstance(value, Fraction) else None


# -- two evaluations


def sides_of(
    explanations: Sequence[Explanation], difference: Divergence | None
) -> list[tuple[Explanation, Name | None]]:
    """The evaluations, each with the signal at which it diverges from the other."""
    sides = [None, None] if difference is None else [difference.left, difference.right]
    return [(one, side.name if side else None) for one, side in zip(explanations, sides, strict=False)]


def difference_text(difference: Divergence | None) -> str:
    """Where two evaluations diverge, on one line."""
    return _divergence_text(difference, "{left} | {right}", "only the first has {only}", "only the second has {only}")


def change_text(effect: str, difference: Divergence | None) -> str:
    """What a change of a model gives, and where it first changes the evaluation, on one line."""
    where = _divergence_text(difference, "{left} becomes {right}", "{only} is gone", "{only} is new")
    return f"{effect}; first divergence: {where}"


def _divergence_text(difference: Divergence | None, both: str, first: str, second: str) -> str:
    if difference is None:
        return "none: every signal that counts is the same"
    left, right = difference.left, difference.right
    if left is not None and right is not None:
        texts = [value_text(left), value_text(right)]
        if left.format != right.format:
            texts = [f"{text} in {fact.format.name}" if fact.format else text
                     for text, fact in zip(texts, (left, right), strict=True)]  # fmt: skip
        if left.name.of != right.name.of:  # terms that have different names on the two sides
            texts = [f"{fact.name} {text}" for fact, text in zip((left, right), texts, strict=True)]
            return f"{difference.stage}: {both.format(left=texts[0], right=texts[1])}"
        sides = f"{difference.signal}: {both.format(left=texts[0], right=texts[1])}"
    else:
        only = left or right
        assert only is not None
        fmt = only.format
        value = value_text(only) if fmt is None else f"{fmt.name} {number_text(only.value, fmt)}"
        sides = (first if right is None else second).format(only=f"{only.name} ({value})")
    return f"{difference.stage}: {sides}"


def value_text(fact: SignalFact) -> str:
    real = fact.real
    if real is None:
        return fact.digits
    return powers(real) if fact.kind is Kind.NUMBER else str(real)
