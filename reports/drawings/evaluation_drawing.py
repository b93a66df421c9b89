"""A drawing of one evaluation, or of two evaluations of one input with their first difference marked."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from mmaprobe.reports import words
from mmaprobe.reports.drawings.bits_drawing import MOST_ROWS, BitsDrawing, Folded, bits_width, fold
from mmaprobe.reports.drawings.sheet import (
    ALONE,
    CELL,
    LETTER,
    LINE,
    MARGIN,
    MARK,
    MILLIMETRES,
    NARROWEST,
    ROOMY,
    TALL,
    Drawing,
    Sheet,
)
from mmaprobe.smtmodel.arithmetic.display import bit_fields, number_text
from mmaprobe.smtmodel.explain.explanation import Explanation, Picture
from mmaprobe.smtmodel.inputs.vectors import to_hex
from mmaprobe.smtmodel.nodes.trace import Name

if TYPE_CHECKING:
    from mmaprobe.queries.compare.neighbours import Divergence

WIDEST_PAIR = 1560.0  # a wider pair of evaluations is stacked
HIGHEST = 230.0 / MILLIMETRES  # pixels: the height of a column of a page
FEWER = (MOST_ROWS, 8, 5, 3)  # the most rows of terms: the first number with which the drawing fits a page is taken
FIELD_GAP = 6.0  # between sign, exponent and fraction


def evaluation_drawing(
    explanations: Sequence[Explanation],
    difference: Divergence | None = None,
    *,
    width: float | None = None,
    names: Sequence[str] = (),
) -> Drawing:
    """One evaluation, or two evaluations of one input with their first difference marked, in one drawing.

    `width`: in pixels (None: the natural width). Two evaluations are stacked where they have no room side by side. With
    a width, fewer terms are drawn one by one where the drawing would be higher than a page. `names`: short titles that
    replace references and expressions.
    """
    mark, text = _mark(difference), _difference(explanations, difference)
    beside = width is not None and len(explanations) == 2 and width / 2 >= NARROWEST
    named = list(zip(words.sides_of(explanations, difference), _filled(names, explanations), strict=True))
    for most in FEWER:
        sheets: list[Sheet] = []
        above = None
        for (one, side), name in named:
            sheet = Sheet(_width(one, side) if width is None else width / 2 if beside else width, mark)
            above = _Evaluation(one, sheet, side, name, most, None if beside or width is None else above)
            above.draw()
            sheets.append(sheet)
        side_by_side = beside or (width is None and sum(sheet.width for sheet in sheets) <= WIDEST_PAIR)
        drawing = _drawing(sheets, explanations, text, 2 if side_by_side else 1, "mp")
        if width is None or drawing.size[1] <= HIGHEST:
            break
    return drawing


def evaluation_drawings(
    explanations: Sequence[Explanation], difference: Divergence | None = None, *, prefix: str = "mp"
) -> list[Drawing]:
    """As `evaluation_drawing`, but one drawing for each evaluation, for pages that arrange these side by side or
    stacked. `prefix`: the prefix of element ids, which must differ between the drawings of one page."""
    drawings = []
    for index, (one, side) in enumerate(words.sides_of(explanations, difference)):
        sheet = Sheet(_width(one, side), _mark(difference))
        _Evaluation(one, sheet, side).draw()
        drawings.append(_drawing([sheet], [one], _difference(explanations, difference), 1, f"{prefix}{'ab'[index]}"))
    return drawings


def _filled(names: Sequence[str], explanations: Sequence[Explanation]) -> list[str]:
    """A name for each evaluation, empty where `names` has none."""
    return [*names, *[""] * len(explanations)][: len(explanations)]


def _mark(difference: Divergence | None) -> str:
    return ALONE if difference is not None and difference.of_one_side else MARK


def _drawing(
    sheets: list[Sheet], explanations: Sequence[Explanation], difference: str, columns: int, prefix: str
) -> Drawing:
    title = "Evaluation under " + " and ".join(explanation.model.reference for explanation in explanations)
    texts = []
    for one in explanations:
        result = f"{to_hex(one.result, one.model.d)}, {number_text(one.result, one.model.d)}"
        texts.append(f"{one.model.reference} ({words.parameters_text(one.model)}) gives {result}.")
    return Drawing(sheets, title, " ".join(filter(None, [*texts, difference])), columns, prefix)


def _difference(explanations: Sequence[Explanation], difference: Divergence | None) -> str:
    return f"First difference: {words.difference_text(difference)}." if len(explanations) == 2 else ""


def _width(explanation: Explanation, marked: Name | None) -> float:
    """The width in pixels of the widest sum, so that each sum takes as few panels as possible."""
    pictures = filter(words.has_bits, words.pictures_of(explanation))
    widths = [bits_width(picture, marked) for picture in pictures]
    return max(ROOMY, 2 * MARGIN + (explanation.model.d.width + 4) * CELL, *widths)


class _Evaluation:
    """One evaluation on a sheet. `name`: the evaluation's title; `most`: the most rows of terms; `above`: the
    evaluation of the same input under another model that is drawn above this one."""

    def __init__(
        self, explanation: Explanation, sheet: Sheet, marked: Name | None, name: str = "", most: int = MOST_ROWS,
        above: _Evaluation | None = None,
    ) -> None:  # fmt: skip
        self.explanation, self.sheet, self.marked, self.name = explanation, sheet, marked, name
        self.most, self.above = most, above
        self.table: list[tuple[str, str, str, str, str]] = []
        self.pictures: dict[tuple[int, int], Picture] = {}  # the drawn pictures, by step and number

    @property
    def brief(self) -> bool:
        """Whether the expression and the bits of the result are left out."""
        return self.most == FEWER[-1]

    def draw(self) -> None:
        explanation, sheet = self.explanation, self.sheet
        sheet.paragraph(self.name or explanation.model.reference, "mp-title")
        if not self.name and not self.brief:
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
        rows, folded = fold(words.nonzero_products(explanation), self.marked, self.most)
        self.table, signals = words.product_table(explanation, rows)
        differ = any(words.is_marked(self.marked, names) for names in signals)
        if self.above is not None and self.above.table == self.table and not differ:
            sheet.paragraph("the same inputs and products", "mp-soft", indent=8)
            return
        self._table(self.table, signals)
        for text in self._more(folded):
            sheet.paragraph(text, "mp-soft", indent=8)

    def _more(self, folded: Folded | None) -> list[str]:
        explanation, texts = self.explanation, list[str]()
        if folded is not None:
            names = [row.name for row in folded.rows]
            texts.append(f"{len(names)} more products, together {folded.total}: {words.places_text(names)}")
        if zeros := words.zero_products_text(explanation):
            texts.append(zeros)
        if scales := words.shared_operands(explanation):
            texts.append("; ".join(f"{name} {words.input_text(given)}" for name, given in scales[:MOST_ROWS]))
            if len(scales) > MOST_ROWS:
                texts[-1] += f"; and {len(scales) - MOST_ROWS} more scale factors"
        return texts

    def _table(self, table: Sequence[tuple[str, ...]], signals: Sequence[Sequence[Name]]) -> None:
        """Draw the inputs and products in five columns. A narrow sheet lacks the last two columns, which the pictures
        show too; where the models differ, their texts stand below the line. On a still narrower sheet each line becomes
        a paragraph."""
        sheet = self.sheet
        marks = [words.is_marked(self.marked, names) for names in signals]
        widths = [max(len(line[column]) for line in table) + 2 for column in range(5)]
        room = (sheet.right - MARGIN - 8) / LETTER - (len(MARK) if any(marks) and sheet.roomy else 0)
        for column in (3, 4):
            if sum(widths) - 2 > room:
                widths[column] = 0
        fits = sum(widths) - 2 <= room
        for line, names, marked in zip(table, signals, marks, strict=True):
            label = ", ".join(part for part in line if part)
            with sheet.group(f"{label}, the models differ here" if marked else label):
                if not fits:
                    if names:
                        self._folded(line, marked)
                    continue
                below = sheet.mark(LINE, MARGIN + 8 + (sum(widths) - 2) * LETTER) if marked else 0.0
                x = MARGIN + 8
                for part, width in zip(line, widths, strict=True):
                    if width and part:
                        sheet.text(x, part.rstrip(), "" if names else "mp-small")
                    x += width * LETTER
                sheet.y += LINE + below
                left_out = [part.strip() for part, width in zip(line, widths, strict=True) if part and not width]
                if marked and left_out:
                    sheet.paragraph(f"product: {', '.join(left_out)}", indent=24)

    def _folded(self, line: Sequence[str], marked: bool) -> None:
        """Draw a line of the table as a paragraph "k: a times b", with the product where the models differ."""
        name, a, b, *rest = line
        product = "".join(f", {part.strip()}" for part in rest if part and marked)
        self.sheet.paragraph(f"{name}: {a}{f' times {b}' if b else ''}{product}", marked=marked, indent=8)

    # -- steps

    def _step(self, index: int) -> None:
        explanation, sheet = self.explanation, self.sheet
        step = explanation.steps[index]
        sheet.paragraph(words.step_text(explanation, index), "mp-title")
        for text in words.undrawn_texts(explanation, step):
            sheet.paragraph(text, indent=8)
        for picture in words.drawn_pictures(step):
            key = index, len(self.pictures)
            above = self.above.pictures.get(key) if self.above is not None and self.brief else None
            BitsDrawing(picture, sheet, self.marked, self.most, above).draw()
            self.pictures[key] = picture
        if result := words.result_text(explanation, step):
            sheet.paragraph(result, indent=8)

    def _result(self) -> None:
        """Draw the fields of the result; a field that does not fit on the line starts a new line."""
        sheet, fmt, result = self.sheet, self.explanation.model.d, self.explanation.result
        digits, value = to_hex(result, fmt), number_text(result, fmt)
        sheet.paragraph(f"d = {digits}  {value}", "mp-title")
        if self.brief:
            return
        fields = bit_fields(result, fmt).split(" ")
        captions = ["sign", "exponent", "fraction"][-len(fields) :] if fmt.fraction else ["sign", "exponent"]
        room = int((sheet.right - MARGIN - 8) / CELL)
        pieces = [(field[at : at + room], caption if at == 0 else "") for field, caption in
                  zip(fields, captions, strict=True) for at in range(0, len(field), room)]  # fmt: skip
        with sheet.group(f"bits of d: {' '.join(fields)}"):
            x = MARGIN + 8
            for bits, caption in pieces:
                if x > MARGIN + 8 and x + len(bits) * CELL > sheet.right:
                    x, sheet.y = MARGIN + 8, sheet.y + TALL + LINE
                sheet.text(x, caption if len(bits) > 1 else "±", "mp-small", y=sheet.y + TALL + 10)
                for bit in bits:
                    sheet.cell(x, bit, "")
                    x += CELL
                x += FIELD_GAP
        sheet.y += TALL + LINE
