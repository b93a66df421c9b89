"""A whole evaluation as SVG, or two of one input beside each other with the first difference marked."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections.abc import Sequence
from fractions import Fraction
from typing import TYPE_CHECKING

from reports import words
from reports.bits_svg import GUTTER, MOST_ROWS, NOTES, BitsDrawing, bits_width, fold, picture_grid
from reports.sheet import CELL, LETTER, LINE, MARGIN, TALL, Sheet, document
from smtmodel.display import bit_fields, number_text, powers
from smtmodel.explanation import Explanation, Row
from smtmodel.trace import Name, Stage
from smtmodel.vectors import to_hex

if TYPE_CHECKING:
    from queries.compare.neighbours import Divergence

NARROWEST = 660.0
WIDEST_PAIR = 1560.0  # two evaluations that are wider stand below each other


def evaluation_svg(
    explanations: Sequence[Explanation],
    difference: Divergence | None = None,
    *,
    prefix: str = "mp",
    styled: bool = True,
) -> str:
    """The drawing of one evaluation, or of two of one input and where they diverge, in one picture.

    `prefix`: of the ids, which must differ among drawings of one page. `styled`: whether it carries its own styles.
    """
    sheets = [_sheet(one, side, prefix) for one, side in _sides(explanations, difference)]
    columns = 2 if sum(sheet.width for sheet in sheets) <= WIDEST_PAIR else 1
    return _document(sheets, explanations, _difference(explanations, difference), columns, styled)


def evaluation_svgs(
    explanations: Sequence[Explanation],
    difference: Divergence | None = None,
    *,
    prefix: str = "mp",
    styled: bool = True,
) -> list[str]:
    """The same, a picture for each evaluation: a page puts them beside or below each other, as it has room."""
    found = []
    for index, (one, side) in enumerate(_sides(explanations, difference)):
        sheet = _sheet(one, side, f"{prefix}{'ab'[index]}")
        found.append(_document([sheet], [one], _difference(explanations, difference), 1, styled))
    return found


def _sides(explanations: Sequence[Explanation], difference: Divergence | None) -> list[tuple[Explanation, Name | None]]:
    """The evaluations, each with the signal at which it diverges from the other."""
    sides = [None, None] if difference is None else [difference.left, difference.right]
    return [(one, side.name if side else None) for one, side in zip(explanations, sides, strict=False)]


def _sheet(explanation: Explanation, marked: Name | None, prefix: str) -> Sheet:
    sheet = Sheet(_width(explanation, marked), prefix)
    _Drawing(explanation, sheet, marked).draw()
    return sheet


def _document(
    sheets: list[Sheet], explanations: Sequence[Explanation], difference: str, columns: int, styled: bool
) -> str:
    title = "Evaluation under " + " and ".join(explanation.model.reference for explanation in explanations)
    texts = []
    for one in explanations:
        result = f"{to_hex(one.result, one.model.d)}, {number_text(one.result, one.model.d)}"
        texts.append(f"{one.model.reference} ({words.parameters_text(one.model)}) gives {result}.")
    root = document(sheets, title, " ".join(filter(None, [*texts, difference])), columns, styled)
    return ET.tostring(root, encoding="unicode")


def _difference(explanations: Sequence[Explanation], difference: Divergence | None) -> str:
    return f"First difference: {words.difference_text(difference)}." if len(explanations) == 2 else ""


def _width(explanation: Explanation, marked: Name | None) -> float:
    widest = 0.0
    for picture in words.pictures_of(explanation):
        if picture.rows and picture.special is None and not words.is_plain(picture):
            widest = max(widest, bits_width(picture_grid(picture, fold(picture.rows, marked)[0])))
    fields = GUTTER + (explanation.model.d.width + 2) * CELL
    return max(NARROWEST, 2 * MARGIN + GUTTER + widest + NOTES, 2 * MARGIN + fields)


class _Drawing:
    def __init__(self, explanation: Explanation, sheet: Sheet, marked: Name | None) -> None:
        self.explanation, self.sheet, self.marked = explanation, sheet, marked

    def draw(self) -> None:
        explanation, sheet = self.explanation, self.sheet
        sheet.paragraph(explanation.model.reference, "mp-title")
        sheet.paragraph(words.parameters_text(explanation.model), "mp-soft")
        sheet.y += 6
        self._products()
        for item in words.step_runs(explanation, self.marked):
            sheet.y += 8
            if isinstance(item, range):
                sheet.paragraph(words.passing_text(explanation, item), "mp-soft")
            else:
                self._step(item)
        sheet.y += 8
        self._result()

    # -- products

    def _products(self) -> None:
        explanation, sheet = self.explanation, self.sheet
        nonzero = [row for row in explanation.products if row.bits or row.marks]
        rows, folded = fold(nonzero, self.marked)
        table = [("k", "a", "b", "product", "exponent, significand")]
        for row in rows:
            a, b = [words.input_text(one) for one in words.factors(explanation, row)] or ("", "")
            table.append((row.name, a, b, *words.term_text(row)))
        c = words.input_text(explanation.inputs["c"])
        table.append(("c", c, "", "", words.addend_text(explanation)))
        signals = [(), *(row.signals for row in rows), (Name("", Stage.ADDEND),)]
        self._table(table, signals)
        for text in self._more(nonzero, rows, folded is not None):
            sheet.paragraph(text, "mp-soft", indent=8)

    def _more(self, nonzero: Sequence[Row], rows: Sequence[Row], folded: bool) -> list[str]:
        explanation, texts = self.explanation, []
        if folded:
            drawn = {row.name for row in rows}
            rest = [row for row in nonzero if row.name not in drawn]
            total = powers(sum((row.value for row in rest), Fraction(0)))
            texts.append(f"{len(rest)} more products, together {total}: {words.places([r.name for r in rest])}")
        if zeros := words.zero_products_text(explanation):
            texts.append(zeros)
        scales = [(name, given) for name, given in explanation.inputs.items() if name.startswith("scale")]
        if scales:
            texts.append("; ".join(f"{name} {words.input_text(given)}" for name, given in scales[:MOST_ROWS]))
            if len(scales) > MOST_ROWS:
                texts[-1] += f"; and {len(scales) - MOST_ROWS} more scale factors"
        return texts

    def _table(self, table: Sequence[tuple[str, ...]], signals: Sequence[Sequence[Name]]) -> None:
        sheet = self.sheet
        widths = [max(len(line[column]) for line in table) + 2 for column in range(5)]
        room = (sheet.width - 2 * MARGIN - 8) / LETTER
        for column in (3, 4):  # these can be read off the pictures
            if sum(widths) > room:
                widths[column] = 0
        for line, names in zip(table, signals, strict=True):
            marked = words.is_marked(self.marked, names)
            label = ", ".join(part for part in line if part)
            with sheet.group(f"{label}, the models differ here" if marked else label):
                if marked:
                    sheet.mark(LINE)
                x = MARGIN + 8
                for part, width in zip(line, widths, strict=True):
                    if width and part:
                        sheet.text(x, part.rstrip(), "" if names else "mp-small")
                    x += width * LETTER
            sheet.y += LINE

    # -- steps

    def _step(self, index: int) -> None:
        explanation, sheet = self.explanation, self.sheet
        step = explanation.steps[index]
        sheet.paragraph(words.step_text(explanation, index), "mp-title")
        for group in words.drawn_groups(step):
            sheet.paragraph(words.group_text(explanation, group), indent=8)
        if exact := words.exact_products_text(step):
            sheet.paragraph(exact, indent=8)
        for picture in words.drawn_pictures(step):
            BitsDrawing(picture, sheet, self.marked).draw()
        if result := words.result_text(explanation, step):
            sheet.paragraph(result, indent=8)

    def _result(self) -> None:
        """The result by fields."""
        sheet, fmt, result = self.sheet, self.explanation.model.d, self.explanation.result
        digits, value = to_hex(result, fmt), number_text(result, fmt)
        sheet.paragraph(f"d = {digits}  {value}", "mp-title")
        fields = bit_fields(result, fmt).split(" ")
        captions = ["sign", "exponent", "fraction"][-len(fields) :] if fmt.fraction else ["sign", "exponent"]
        with sheet.group(f"bits of d: {' '.join(fields)}"):
            x = MARGIN + 8
            for field, caption in zip(fields, captions, strict=True):
                for bit in field:
                    sheet.cell(x, bit, "")
                    x += CELL
                left, y = x - len(field) * CELL, sheet.y + TALL + 10
                sheet.text(left, caption if len(field) > 1 else "±", "mp-small", y=y)
                x += 6
        sheet.y += TALL + LINE
