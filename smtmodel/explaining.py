"""From the trace of one evaluation to its picture.

The trace has every signal of the arithmetic. Derived here, and checked by the tests against the signals: which bits of
a sum the output format keeps, what two patterns added by IEEE add up to, and which inputs make a special value.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction

from smtmodel.display import exact_value
from smtmodel.dot import Model, UnitModel
from smtmodel.explanation import (
    Cause,
    Explanation,
    Group,
    Input,
    Outcome,
    Picture,
    PictureKind,
    Rounded,
    Row,
    Special,
    Step,
)
from smtmodel.facts import Fact, Item, evaluate_one, facts_of, integer, item_of, item_of_pattern
from smtmodel.families import addend_of
from smtmodel.formats import Format
from smtmodel.operands import Operands, layout_of


def bits_row(name: str, negative: bool, magnitude: int, unit: int, keep_zeros: bool = False) -> Row:
    """The row of (-1)^negative * magnitude * 2^unit from its leading one to its last one, or to the unit."""
    if not magnitude:
        return Row(name, negative, "", unit - 1)
    if not keep_zeros:
        zeros = (magnitude & -magnitude).bit_length() - 1
        magnitude, unit = magnitude >> zeros, unit + zeros
    bits = f"{magnitude:b}"
    return Row(name, negative, bits, unit + len(bits) - 1)


def fraction_row(name: str, value: Fraction) -> Row:
    """The row of an exact dyadic number."""
    return bits_row(name, value < 0, abs(value.numerator), 1 - value.denominator.bit_length())


def term_row(item: Item, signals: tuple[str, ...], kept: Fact | None = None, unit: int = 0) -> Row:
    """A term of a sum. `kept`: its magnitude as aligned, of which the bits from the place `unit` on count."""
    if item.special:
        mark = "nan" if item.is_nan else "infinite"
        return Row(item.name, item.negative, "", 0, signals=signals, marks=frozenset([mark]))
    if kept is None:
        row = bits_row(item.name, item.negative, item.significand, item.unit)
        return replace(row, exponent=item.exponent, signals=signals)
    assert kept.scale is not None
    magnitude = kept.value >> (unit - kept.scale)
    row = bits_row(item.name, item.negative, magnitude, unit, keep_zeros=True)
    below = max(0, unit - item.unit)
    whole = item.significand >> below << max(0, item.unit - unit)
    tail, marks = item.significand & ((1 << below) - 1), frozenset[str]()
    if whole and not magnitude:
        marks, tail = frozenset(["dropped"]), item.significand
    elif magnitude != whole:
        marks = frozenset(["raised"])
    lost = bits_row("", False, tail, item.unit)
    return replace(row, cut=lost.bits, cut_first=lost.first, exponent=item.exponent, signals=signals, marks=marks)


def round_row(total: Row, fmt: Format, mode: str, pattern: int, signals: tuple[str, ...]) -> Rounded:
    """Which bits of a sum a format keeps; what became of the others is read off the resulting pattern."""
    magnitude, unit = int(total.bits or "0", 2), total.last
    lowest = max(total.first, fmt.emin) - fmt.fraction if magnitude else unit
    below = max(0, lowest - unit)
    rest = magnitude & ((1 << below) - 1)
    half = bool(below) and bool(rest >> (below - 1))
    sticky = bool(below) and bool(rest & ((1 << (below - 1)) - 1))
    row = bits_row("kept", total.negative, magnitude >> below, unit + below, keep_zeros=True)
    outcome = _outcome(abs(row.value), Fraction(2) ** lowest, bool(rest), exact_value(pattern, fmt))
    return Rounded(fmt, mode, row, lowest, half, sticky, pattern, outcome, signals)


def _outcome(kept: Fraction, step: Fraction, inexact: bool, result: Fraction | str) -> Outcome:
    """What made a result of the bits kept: nothing, a cut, one step up, or a limit of the format."""
    if isinstance(result, str) and result != "-0":
        return "overflow"
    size = Fraction(0) if isinstance(result, str) else abs(result)
    if size == kept:
        return "cut" if inexact else "exact"
    if size == kept + step:
        return "raised"
    return "overflow" if size else "flushed"


def explain(model: Model, operands: Operands[int]) -> Explanation:
    """The picture of one evaluation."""
    if isinstance(model, UnitModel):
        from smtmodel.explaining_unit import explain_unit

        return explain_unit(model, operands)
    return _Explainer(model, operands).explanation()


class _Explainer:
    """One evaluation: its signals, its inputs decoded, and the step under way."""

    def __init__(self, model: Model, operands: Operands[int]) -> None:
        self.model, self.accumulator, self.operands = model, model.accumulator, operands
        self.reader = addend_of(model.accumulator)
        self.evaluation = evaluate_one(model, operands)
        self.facts = facts_of(self.evaluation)
        self.inputs: dict[str, Input] = {}
        self.decoded: dict[str, Item] = {}
        self.members: dict[str, tuple[int, ...]] = {}  # the products of each term of the step
        self.index = 0
        missing = (0,) * (model.length - len(operands.a))
        row = (*operands.a, *missing, *operands.b, *missing, operands.c)
        for side in (operands.scale_a, operands.scale_b):
            row += (*side, *[0] * (model.scales - len(side)))
        layout = layout_of(model)
        for name, pattern, fmt in zip(layout.names, row, layout.formats, strict=True):
            reader = None if name.startswith("scale") else self.reader
            given, read = (item_of_pattern(name, pattern, fmt, how) for how in (None, reader))
            self.decoded[name] = read
            self.inputs[name] = Input(name, pattern, fmt, read.is_zero and not given.is_zero)

    def explanation(self) -> Explanation:
        blocks, output = self.accumulator.blocks, self.model.d
        added_last = self.accumulator.addend == "after"
        incoming = (0, output) if added_last else (self.operands.c, self.model.c)
        steps: list[Step] = []
        for self.index, indices in enumerate(blocks):
            self.incoming = incoming
            steps.append(self._step(self.accumulator.prefix(self.index), indices, incoming))
            incoming = (steps[-1].result, output)
        after = self._after(steps[-1].result) if added_last else None
        products = tuple(self._product(k) for k in range(self.model.length))
        inputs, result = self.inputs, integer(self.evaluation.d)
        return Explanation(self.model, self.operands, inputs, products, tuple(steps), after, result, self.facts)

    # -- products

    def _product_item(self, k: int) -> Item:
        """The exact product; not finite if a factor is not."""
        sign, significand, exponent = (self.facts[f"product[{k}].{x}"] for x in ("sign", "significand", "exponent"))
        assert significand.scale is not None
        assert exponent.scale is not None
        kinds = {cause.kind for cause in self._product_causes(k)}
        is_nan = bool(kinds & {"nan", "inf*0"})
        place, zero = exponent.value + exponent.scale, self.decoded[f"a{k}"].is_zero or self.decoded[f"b{k}"].is_zero
        return Item(str(k), bool(sign.value), significand.value, place, significand.scale, zero, bool(kinds), is_nan)

    def _product(self, k: int) -> Row:
        return term_row(self._product_item(k), (f"product[{k}]",))

    def _product_causes(self, k: int, term: str | None = None) -> list[Cause]:
        pair = [self.decoded[f"a{k}"], self.decoded[f"b{k}"]]
        term = str(k) if term is None else term
        nans = tuple(item.name for item in pair if item.is_nan)
        infinite = tuple(item.name for item in pair if item.is_infinite)
        if nans:
            return [Cause(term, "nan", nans)]
        if infinite and any(item.is_zero for item in pair):
            return [Cause(term, "inf*0", tuple(item.name for item in pair))]
        return [Cause(term, "infinite", infinite)] if infinite else []

    def _groups(self, indices: Sequence[int]) -> dict[str, Group]:
        """The terms of a step by name, with their products and scale factors."""
        accumulator = self.accumulator
        size = accumulator.group if accumulator.grouping == "scale_blocks" and self.model.scale else 1
        found = {}
        for start in range(0, len(indices), size):
            members = tuple(indices[start : start + size])
            name = f"{members[0]}-{members[-1]}" if size > 1 else str(members[0])
            block = members[0] // accumulator.scale_block
            scales = (f"scale_a{block}", f"scale_b{block}") if self.model.scale else None
            total = sum((term_row(self._product_item(k), ()).value for k in members), Fraction(0))
            found[name] = Group(name, members, total, scales)
        return found

    # -- steps

    def _step(self, prefix: str, indices: tuple[int, ...], incoming: tuple[int, Format]) -> Step:
        accumulator = self.accumulator
        groups = self._groups(indices)
        self.members = {name: group.members for name, group in groups.items()}
        if accumulator.operation == "add_mul":
            pictures = self._pairwise(prefix, indices)
        elif accumulator.partials == "normalised":
            pictures = self._partials(prefix)
        else:
            kinds: list[PictureKind] = ["sum"]
            if accumulator.addend == "late":
                kinds = ["even", "odd", "join"] if accumulator.grouping == "even_odd" else ["products"]
                kinds.append("late")
            pictures = [
                self._sum(prefix if kind == "sum" else f"{prefix}{kind}.", kind, prefix if kind == kinds[-1] else None)
                for kind in kinds
            ]
            terms = {*self.members, "addend"}  # not the sums of some of them
            rows = [row for part in pictures for row in part.rows if row.name in terms]
            pictures[-1] = self._finished(pictures[-1], prefix, rows)
            if pictures[-1].special:  # the sums before it mean nothing
                pictures = pictures[-1:]
        result = self.facts[f"{pictures[-1].prefix if accumulator.partials == 'normalised' else prefix}result"].value
        zero = all(self._product_item(k).is_zero and not self._product_item(k).special for k in indices)
        before = exact_value(*incoming)
        passes = zero and before == exact_value(result, self.model.d) and before not in ("nan", "inf", "-inf")
        grouped = tuple(groups.values()) if self.model.scale else ()
        return Step(prefix, indices, tuple(pictures), result, grouped, passes)

    def _partials(self, prefix: str) -> list[Picture]:
        """Additions one by one; the first running sum is the first term itself."""
        names, pictures = [*self.members, "addend"], []
        for number, name in enumerate(names[1:], start=1):
            part = f"{prefix}partial{number}."
            picture = self._finished(self._sum(part, "partial", part), part)
            pictures.append(replace(picture, name=name))
        return pictures

    def _unit(self, kind: PictureKind, name: str, maximum: int) -> int:
        """The lowest place that a term keeps."""
        late = kind == "late" and name == "products"
        bits = self.accumulator.late_fraction_bits if late else self.accumulator.fraction_bits
        assert bits != "exact"
        return maximum - bits

    def _sum(self, prefix: str, kind: PictureKind, finish: str | None) -> Picture:
        """The sum of the terms entered under a prefix. `finish`: what the signals of its rounding begin with."""
        items = [item_of(name, value) for name, value in self.evaluation.trace.entered[prefix][1]]
        top = self.facts.get(f"{prefix}max_exponent")
        maximum = None if top is None else top.value + (top.scale or 0)
        rows, zeros = [], []
        for item in items:
            if item.is_zero and not item.special:
                zeros.append(item.name)
                continue
            signals = (f"{prefix}term[{item.name}]", f"{prefix}aligned[{item.name}]")
            if maximum is None:
                row = term_row(item, signals)
            else:
                row = term_row(item, signals, self.facts[signals[1]], self._unit(kind, item.name, maximum))
            top_one = item.exponent == maximum and not item.special
            rows.append(replace(row, marks=row.marks | {"maximum"} if top_one else row.marks))
        sign = f"{prefix}sum.negative" if finish is None else f"{finish}sign"
        total = self._total(sign, f"{prefix}sum.magnitude", f"{prefix}sum")
        if maximum is None or not rows:
            return self._sticky(Picture(prefix, kind, tuple(rows), tuple(zeros), total))
        exponents = [row.exponent for row in rows if row.exponent is not None]
        floor = maximum if self.accumulator.exponent_floor is not None and maximum > max(exponents, default=0) else None
        unit = min(self._unit(kind, item.name, maximum) for item in items)
        picture = Picture(prefix, kind, tuple(rows), tuple(zeros), total, maximum, floor, unit)
        return self._wrapping(picture)

    def _total(self, sign: str, magnitude: str, signed: str) -> Row:
        number = self.facts[magnitude]
        assert number.scale is not None
        whole = not self.accumulator.exact_sum
        row = bits_row("sum", bool(self.facts[sign].value), number.value, number.scale, keep_zeros=whole)
        return replace(row, signals=(sign, magnitude, signed))

    def _sticky(self, picture: Picture) -> Picture:
        """Two exact terms far apart: the lowest bit of the sum stands for all below it (ieee.py)."""
        if sum((row.value for row in picture.rows), Fraction(0)) == picture.total.value:
            return picture
        return replace(picture, total=replace(picture.total, marks=frozenset(["sticky"])))

    def _wrapping(self, picture: Picture) -> Picture:
        """The two's complement of a negative sum, in the unit's width where it has one, and the sum before a wrap."""
        exact, carry, unit = (
            sum((row.value for row in picture.rows), Fraction(0)),
            self.accumulator.carry_bits,
            picture.unit,
        )
        assert unit is not None
        wraps = exact != picture.total.value
        if exact >= 0 and not wraps:
            return picture
        number = int(exact / Fraction(2) ** unit)
        width = max(abs(number).bit_length(), *(row.first - unit + 1 for row in picture.rows)) + 1
        if carry != "exact" and self.accumulator.fraction_bits != "exact":
            width = self.accumulator.fraction_bits + 2 + carry
        signals = picture.total.signals
        complement = Row("complement", False, f"{number % (1 << width):0{width}b}", unit + width - 1, signals=signals)
        unwrapped = bits_row("unwrapped", exact < 0, abs(number), unit, keep_zeros=True) if wraps else None
        return replace(picture, complement=complement, unwrapped=unwrapped)

    def _finished(self, picture: Picture, prefix: str, rows: Sequence[Row] = ()) -> Picture:
        """The picture with its rounding, or with the special rule in its place. `rows`: all terms of the step."""
        flags = (f"{prefix}special.nan", f"{prefix}special.infinite")
        is_nan, is_infinite = (bool(self.facts[flag].value) for flag in flags)
        result = (f"{prefix}rounded", f"{prefix}result")
        if not is_nan and not is_infinite:
            mode, pattern = self.accumulator.output_rounding, self.facts[result[0]].value
            cut = self._cut(picture.total, f"{prefix}cut")
            return replace(
                picture, cut=cut, rounded=round_row(cut or picture.total, self.model.d, mode, pattern, result)
            )
        causes = [c for row in rows or picture.rows if row.marks & {"nan", "infinite"} for c in self._causes(row)]
        special = self._special(is_nan, causes, self.facts[result[1]].value, (*flags, result[1]))
        return replace(picture, special=special)

    def _cut(self, total: Row, signal: str) -> Row | None:
        """The sum as cut before it is rounded, where that changes it."""
        number = self.facts.get(signal)
        if number is None:
            return None
        assert number.scale is not None
        row = bits_row("cut", total.negative, number.value, number.scale, keep_zeros=True)
        return None if row.value == total.value else replace(row, signals=(signal,))

    @staticmethod
    def _special(is_nan: bool, causes: list[Cause], pattern: int, signals: tuple[str, ...]) -> Special:
        for kind in ("nan", "inf*0"):
            deciding = tuple(cause for cause in causes if cause.kind == kind)
            if is_nan and deciding:
                return Special("nan" if kind == "nan" else "inf*0", deciding, pattern, signals)
        return Special("opposite" if is_nan else "infinity", tuple(causes), pattern, signals)

    def _causes(self, row: Row) -> list[Cause]:
        """Why a term is not finite."""
        if row.name not in self.members:
            return self._of(row)
        found = [cause for k in self.members[row.name] for cause in self._product_causes(k, row.name)]
        block = self.members[row.name][0] // self.accumulator.scale_block
        scales = [self.decoded[f"{side}{block}"] for side in ("scale_a", "scale_b")] if self.model.scale else []
        if any(scale.is_nan for scale in scales):
            found.append(Cause(row.name, "nan", tuple(scale.name for scale in scales if scale.is_nan)))
        if found and "nan" in row.marks and any(scale.is_zero for scale in scales):
            found.append(Cause(row.name, "inf*0", tuple(scale.name for scale in scales if scale.is_zero)))
        return found or [Cause(row.name, "too_large")]

    # -- results of IEEE operations between patterns

    def _pairwise(self, prefix: str, indices: Sequence[int]) -> list[Picture]:
        """Products rounded one by one, added in pairs, then to the running sum."""
        layer, pictures = [], []
        for position, k in enumerate(indices):
            signal = f"{prefix}multiplied[{position}].result"
            pictures.append(self._added("product", str(k), [self._product_item(k)], signal))
            layer.append(item_of_pattern(str(k), self.facts[signal].value, self.model.d))
        level = 0
        while len(layer) > 1:
            above = []
            for position, pair in enumerate(zip(layer[::2], layer[1::2], strict=True)):
                signal = f"{prefix}pair{level}[{position}].result"
                name = f"{pair[0].name.partition('-')[0]}-{pair[1].name.rpartition('-')[2]}"
                pictures.append(self._added("pair", name, pair, signal))
                above.append(item_of_pattern(name, self.facts[signal].value, self.model.d))
            layer, level = above, level + 1
        reader = self.reader if self.index == 0 else None
        running = item_of_pattern("addend", *self.incoming, reader)
        pictures.append(self._added("pair", "", [running, layer[0]], f"{prefix}result"))
        return pictures

    def _after(self, result: int) -> Picture:
        """The sum of the products and c, by an IEEE addition to nearest."""
        model, output = self.model, self.model.d
        c = item_of_pattern("c", self.operands.c, model.c, self.reader)
        items = [item_of_pattern("sum", result, output), c]
        return self._added("after", "", items, "after.result", "nearest_even")

    def _added(
        self, kind: PictureKind, name: str, items: Sequence[Item], signal: str, mode: str | None = None
    ) -> Picture:
        """The correctly rounded sum of terms."""
        pattern, fmt = self.facts[signal].value, self.model.d
        zeros = tuple(item.name for item in items if item.is_zero and not item.special)
        rows = tuple(term_row(item, ()) for item in items if item.special or not item.is_zero)
        total = replace(fraction_row("sum", sum((row.value for row in rows), Fraction(0))), signals=(signal,))
        picture = Picture("", kind, rows, zeros, total, name=name)
        special = [row for row in rows if row.marks]
        if not special:
            rounding = mode or self.accumulator.output_rounding
            return replace(picture, rounded=round_row(total, fmt, rounding, pattern, (signal,)))
        causes = self._product_causes(int(name)) if kind == "product" else [c for row in special for c in self._of(row)]
        is_nan = exact_value(pattern, fmt) == "nan"
        return replace(picture, special=self._special(is_nan, causes, pattern, (signal,)))

    def _of(self, row: Row) -> list[Cause]:
        """The cause of an operand that is no product of the step any more."""
        given = row.name == "c" or (row.name == "addend" and self.index == 0)
        return [Cause(row.name, "nan" if "nan" in row.marks else "infinite", ("c",) if given else ())]
