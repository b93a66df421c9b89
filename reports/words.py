"""What a drawing of an evaluation says, in words: one wording for text, for SVG and for reports."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING

from smtmodel.display import bit_fields, exact_value, number_text, powers
from smtmodel.dot import Model, UnitModel
from smtmodel.explaining import fraction_row
from smtmodel.explanation import Cause, Explanation, Group, Input, Picture, Rounded, Row, Special, Step
from smtmodel.facts import Fact
from smtmodel.formats import Format
from smtmodel.unitfile import step_texts
from smtmodel.vectors import to_hex

if TYPE_CHECKING:
    from queries.neighbours import Parting

Names = Callable[[str], str]
LONGEST = 30  # characters of a significand
AFTER = "c is added once, by an IEEE addition to nearest"
ROW_NOTES = {"raised": "rounded up", "dropped": "too small: dropped"}


def parameters_text(model: Model) -> str:
    """What of the arithmetic a reader needs for the picture."""
    if isinstance(model, UnitModel):
        return "; ".join(f"{name}: {text}" for name, text in step_texts(model.unit).items())
    acc, parts = model.accumulator, [model.accumulator.operation.replace("_", " ")]
    if len(acc.blocks) > 1:
        parts.append(f"{len(acc.blocks)} chained blocks of {len(acc.blocks[0])}")
    if acc.product != "unnormalised":
        parts.append(f"products {acc.product}")
    if not acc.exact_sum:
        parts.append(f"F={acc.fraction_bits} {acc.align_rounding}")
    if acc.carry_bits != "exact":
        parts.append(f"{acc.carry_bits} carry bit{'s' * (acc.carry_bits != 1)}")
    if acc.exponent_floor is not None:
        parts.append(f"floor {acc.exponent_floor}")
    if acc.grouping != "none":
        parts.append(f"{acc.grouping}" + (f" of {acc.group}" if acc.group > 1 else ""))
    if acc.addend != "fused":
        cut = "" if acc.addend != "late" or acc.late_sum_bits is None else f", cut to {acc.late_sum_bits} bits"
        parts.append(f"addend {acc.addend}{cut}")
    if acc.partials != "unnormalised":
        parts.append("partial sums normalised")
    return ", ".join([*parts, f"result {acc.output} {acc.output_rounding}"])


# -- numbers


def pattern_text(pattern: int, fmt: Format, width: int = 0) -> str:
    """A pattern in hexadecimal, by field if that fits in `width`, and in powers of two."""
    digits, value = to_hex(pattern, fmt), number_text(pattern, fmt)
    text = f"{digits}  {bit_fields(pattern, fmt)}  {value}"
    return text if len(text) <= width else f"{digits}  {value}"


def input_text(given: Input) -> str:
    """An input's pattern and value."""
    flushed = " read as 0" if given.flushed else ""
    return f"{to_hex(given.pattern, given.format)} {number_text(given.pattern, given.format)}{flushed}"


def sign_of(row: Row) -> str:
    return "-" if row.negative else "+"


def term_text(row: Row) -> tuple[str, str]:
    """(value, exponent and significand) of a product."""
    if row.marks:
        return ("nan" if "nan" in row.marks else "-inf" if row.negative else "inf"), ""
    assert row.exponent is not None
    return powers(row.value), f"{row.exponent:>4}  {sign_of(row)}{_binary(row, row.exponent)}"


def addend_text(explanation: Explanation) -> str:
    """Exponent and significand of the addend; nothing for a zero, a special value, or one that is not read."""
    c = explanation.inputs["c"]
    value = exact_value(c.pattern, c.format)
    fact = explanation.facts.get("addend.exponent")
    exponent = None if fact is None else fact.real
    if not isinstance(value, Fraction) or not value or exponent is None:
        return ""
    row = fraction_row("c", value)
    return f"{int(exponent):>4}  {sign_of(row)}{_binary(row, int(exponent))}"


def _binary(row: Row, point: int) -> str:
    """The bits with the binary point after the place `point`."""
    top, low = max(row.first, point), min(row.last, point)
    bits = "0" * (top - row.first) + row.bits + "0" * (row.last - low)
    whole = top - point + 1
    text = f"{bits[:whole]}.{bits[whole:]}" if bits[whole:] else bits
    return text if len(text) <= LONGEST else text[: LONGEST - 3] + "..."


def ranges(numbers: Sequence[int]) -> str:
    """0, 1, 2, 5 as "0-2, 5"."""
    parts: list[list[int]] = []
    for number in numbers:
        if parts and number == parts[-1][-1] + 1:
            parts[-1].append(number)
        else:
            parts.append([number])
    return ", ".join(f"{part[0]}-{part[-1]}" if len(part) > 1 else str(part[0]) for part in parts)


# -- steps


def step_names(explanation: Explanation, index: int) -> tuple[str, Names]:
    """The title of a step, and what its terms are called there."""
    step, several = explanation.steps[index], len(explanation.steps) > 1
    late = explanation.model.accumulator.addend == "after"
    running = f"d{index - 1}" if index else "+0" if late else "c"
    products = f"product{'s' * (len(step.indices) > 1)} {ranges(step.indices)}"
    title = f"block {index}: {products} and {running}" if several else f"{products} and {running}"
    return title, lambda name: running if name == "addend" else name


def passing_text(explanation: Explanation, indices: Sequence[int]) -> str:
    """Steps whose products are all zero."""
    name = "blocks" if len(indices) > 1 else "block"
    text = pattern_text(explanation.steps[indices[-1]].result, explanation.model.d)
    return f"{name} {ranges(indices)}: zero products; the sum passes unchanged: {text}"


def group_text(explanation: Explanation, group: Group) -> str:
    """A group of products that is summed exactly and scaled."""
    assert group.scales is not None
    texts = [number_text(explanation.inputs[name].pattern, explanation.inputs[name].format) for name in group.scales]
    scaled = " ".join(f"* ({text})" if " " in text else f"* {text}" for text in texts)
    return f"group {group.name}: exact sum {powers(group.total)}, scaled {scaled}"


def drawn_groups(step: Step) -> list[Group]:
    return [group for group in step.groups if len(group.members) > 1 and group.total]


def exact_products_text(explanation: Explanation, step: Step) -> str:
    """The products that are exact in the format of the result, where each is rounded; nothing if there are none."""
    exact = [int(picture.name) for picture in step.pictures if picture.kind == "product" and picture.plain]
    return f"product{'s' * (len(exact) > 1)} {ranges(exact)}: exact in {explanation.model.d.name}" if exact else ""


def drawn_pictures(step: Step) -> list[Picture]:
    """The sums of a step, without products that are exact."""
    return [picture for picture in step.pictures if not (picture.kind == "product" and picture.plain)]


def pictures_of(explanation: Explanation) -> Iterator[Picture]:
    """Every sum that is drawn."""
    for item in step_runs(explanation, None):
        if isinstance(item, int):
            yield from drawn_pictures(explanation.steps[item])
    if explanation.after is not None:
        yield explanation.after


def step_runs(explanation: Explanation, marked: str | None) -> Iterator[int | range]:
    """The steps to be drawn, and runs of steps that pass the sum on. A step where two models part is drawn."""
    start, several = 0, len(explanation.steps) > 1
    for index, step in enumerate(explanation.steps):
        parts = marked is not None and bool(step.prefix) and marked.startswith(step.prefix)
        if step.passes and several and not parts:
            continue
        if start < index:
            yield range(start, index)
        yield index
        start = index + 1
    if start < len(explanation.steps):
        yield range(start, len(explanation.steps))


def zero_products_text(zeros: Sequence[int]) -> str:
    return f"{len(zeros)} zero product{'s' * (len(zeros) > 1)}: {ranges(zeros)}"


# -- one sum


def is_marked(marked: str | None, signals: Iterable[str]) -> bool:
    """Whether one of the signals, or a part of it, is where two models part."""
    return marked is not None and any(marked == name or marked.startswith(name + ".") for name in signals)


def special_text(special: Special, names: Names) -> str:
    what = {
        "nan": "a NaN decides",
        "inf*0": "infinity times zero is a NaN",
        "opposite": "infinities of both signs: NaN",
        "infinity": "an infinity decides",
    }[special.rule]
    return f"{what}: {'; '.join(_cause(cause, names) for cause in special.causes)}"


def _cause(cause: Cause, names: Names) -> str:
    name = names(cause.term)
    if cause.inputs == (name,):
        return name
    return f"term {name}" + (f" ({', '.join(cause.inputs)})" if cause.inputs else "")


def is_plain(picture: Picture) -> bool:
    """Whether a sum loses nothing and is short enough for one line."""
    return picture.maximum is None and picture.plain and len(picture.rows) <= 2


def plain_text(picture: Picture, names: Names) -> str:
    """A sum that loses nothing, in a line."""
    terms = [f"({powers(row.value)})" if row.negative else powers(row.value) for row in picture.rows]
    called = [names(name) for name in (*(row.name for row in picture.rows), *picture.zeros)]
    zeros = ["0"] * len(picture.zeros)
    total = f" = {powers(picture.total.value)}" if len(called) > 1 else ""
    return f"{' + '.join(called)}: {' + '.join([*terms, *zeros])}{total}, exact"


def plain_signals(picture: Picture) -> list[str]:
    signals = [*picture.total.signals, *(picture.rounded.signals if picture.rounded else ())]
    return signals + [signal for row in picture.rows for signal in row.signals]


def title_text(picture: Picture, names: Names) -> str:
    """What is added, and the exponent that everything is aligned to."""
    what = {
        "even": "even products: ", "odd": "odd products: ", "join": "even and odd sums: ",
        "products": "the products: ", "late": "late addend: ",
    }.get(picture.kind, f"adding {names(picture.name)}: " if picture.name else "")  # fmt: skip
    if picture.maximum is None:
        terms = " + ".join(names(row.name) for row in picture.rows)
        return f"{what}exact sum" + (f" of {terms}" if len(picture.rows) < 5 else "")
    assert picture.unit is not None
    winners = [names(row.name) for row in picture.rows if "maximum" in row.marks]
    if picture.floor is not None:
        source = "the exponent floor, above every term"
    else:
        word = f"term{'s' * (len(winners) > 1)} " if winners[0].isdigit() else ""
        source = word + ", ".join(winners[:6]) + (", ..." if len(winners) > 6 else "")
    kept = f"{picture.maximum - picture.unit} bits kept below it, to 2^{picture.unit}"
    return f"{what}maximum exponent {picture.maximum} ({source}); {kept}"


def zeros_text(picture: Picture, names: Names) -> str:
    """The zero terms, which have no rows."""
    called = [names(name) for name in picture.zeros]
    folded = f"{len(called)} zero term{'s' * (len(called) > 1)}"
    return folded if len(called) > 3 else f"{folded}: {', '.join(called)}"


def row_note(row: Row) -> str:
    return ", ".join(text for mark, text in ROW_NOTES.items() if mark in row.marks)


def rounded_text(rounded: Rounded) -> str:
    """What rounding made of a sum."""
    below = f"half {int(rounded.half)}, sticky {int(rounded.sticky)}"
    lowest = rounded.kept.bits[-1:] or "0"
    how = {
        "exact": "exact",
        "cut": f"lowest bit {lowest}, {below}: cut off",
        "raised": f"lowest bit {lowest}, {below}: one unit up",
        "overflow": "beyond the largest finite number",
        "flushed": "a subnormal result is flushed to zero",
    }[rounded.outcome]
    more = " (subnormal)" if rounded.subnormal else ""
    text = number_text(rounded.pattern, rounded.format)
    return f"{rounded.format.name} {rounded.mode}: {how}{more}: {text}"


def rounded_row(rounded: Rounded | None) -> Row | None:
    """The result as a row, where rounding changed something that bits can show."""
    if rounded is None or rounded.outcome not in ("cut", "raised"):
        return None
    value = exact_value(rounded.pattern, rounded.format)
    return fraction_row(rounded.format.name, value) if isinstance(value, Fraction) else None


# -- two evaluations


def difference_text(difference: Parting | None, words: tuple[str, str] = ("the first", "the second")) -> str:
    """Where two evaluations part, in a line; `words` are for the two sides."""
    if difference is None:
        return "none: every signal that counts is the same"
    sides = [difference.left, difference.right]
    if None in sides:
        here = words[0] if difference.right is None else words[1]
        fact = difference.left or difference.right
        assert fact is not None
        return f"{difference.stage}: only {here} has {fact.name} ({value_text(fact)})"
    texts = [value_text(fact) for fact in sides if fact is not None]
    return f"{difference.stage}: {difference.signal}: {texts[0]} | {texts[1]}"


def value_text(fact: Fact) -> str:
    real = fact.real
    if real is None:
        return f"{fact.value:0{(fact.width + 3) // 4}x}"
    return powers(real) if fact.kind == "number" else str(real)
