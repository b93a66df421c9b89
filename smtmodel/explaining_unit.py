"""From the visits of an evaluation to its picture, for units that are expressions: a picture for every rounding."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction

from smtmodel.dot import UnitModel
from smtmodel.explaining import bits_row, fraction_row, round_row, term_row
from smtmodel.explanation import Cause, CauseKind, Explanation, Input, Picture, PictureKind, Row, Rule, Special, Step
from smtmodel.facts import Item, evaluate_one, facts_of, integer, item_of, item_of_pattern
from smtmodel.nodes import Cut, Element, ExactSum, FusedSum, Node, Product, Round
from smtmodel.nodes.node import walk
from smtmodel.operands import Operands, layout_of
from smtmodel.trace import Visit


def explain_unit(model: UnitModel, operands: Operands[int]) -> Explanation:
    """The picture of one evaluation; every rounded result is a step of its own."""
    return _Explainer(model, operands).explanation()


class _Explainer:
    def __init__(self, model: UnitModel, operands: Operands[int]) -> None:
        self.model, self.operands = model, operands
        self.evaluation = evaluate_one(model, operands)
        self.facts = facts_of(self.evaluation)
        self.sums: dict[Node, Picture] = {}  # the last one of each sum

    def explanation(self) -> Explanation:
        products: list[Row] = []
        steps: list[Step] = []
        for visit in self.evaluation.trace.visits:
            node = visit.node
            if isinstance(node, Product):
                products.append(self._product(visit, str(len(products))))
            elif isinstance(node, (ExactSum, FusedSum)):
                self.sums[node] = self._sum(visit, node)
            elif isinstance(node, Cut):
                self.sums[node] = self._cut(visit, node)
            elif isinstance(node, Round):
                picture = self._rounded(visit, node)
                passes = (
                    len(picture.rows) <= 1 and picture.plain and picture.special is None and picture.kind != "product"
                )
                pattern = self.facts[f"{visit.prefix}result"].value
                steps.append(Step(visit.prefix, (), (picture,), pattern, passes=passes))
        result = integer(self.evaluation.d)
        return Explanation(
            self.model, self.operands, self._inputs(), tuple(products), tuple(steps), None, result, self.facts
        )

    def _inputs(self) -> dict[str, Input]:
        operands, layout = self.operands, layout_of(self.model)
        sides = ((operands.a, self.model.length), (operands.b, self.model.length), ((operands.c,), 1),
                 (operands.scale_a, self.model.scales), (operands.scale_b, self.model.scales))  # fmt: skip
        row = [pattern for side, count in sides for pattern in (*side, *[0] * (count - len(side)))]
        flushing = {node.operand for node in walk(self.model.unit.result)
                    if isinstance(node, Element) and node.subnormals != "keep"}  # fmt: skip
        found = {}
        for name, pattern, fmt in zip(layout.names, row, layout.formats, strict=True):
            item = item_of_pattern(name, pattern, fmt)
            subnormal = item.exponent == fmt.emin and not item.significand >> fmt.fraction and not item.is_zero
            found[name] = Input(name, pattern, fmt, subnormal and name.rstrip("0123456789") in flushing)
        return found

    def _product(self, visit: Visit, name: str) -> Row:
        place = visit.place if visit.place.isdigit() else name
        return term_row(item_of(place, visit.value), (f"product[{place}]",))

    def _sum(self, visit: Visit, node: ExactSum | FusedSum) -> Picture:
        prefix = visit.prefix
        items = [item_of(name, value) for name, value in self.evaluation.trace.entered[prefix][1]]
        top = self.facts.get(f"{prefix}max_exponent")
        rows, zeros = [], []
        maximum = None if top is None else top.value + (top.scale or 0)
        finest = self.facts.get(f"{prefix}sum.magnitude")
        for item in items:
            if item.is_zero and not item.special:
                zeros.append(item.name)
                continue
            signals = (f"{prefix}term[{item.name}]", f"{prefix}aligned[{item.name}]")
            kept = self.facts.get(signals[1]) if maximum is not None else None
            unit = 0 if kept is None or kept.scale is None else kept.scale
            row = term_row(item, signals, kept, unit)
            is_top = item.exponent == maximum and not item.special
            rows.append(replace(row, marks=row.marks | {"maximum"} if is_top else row.marks))
        exact = sum((row.value for row in rows), Fraction(0))
        total = fraction_row("sum", exact)  # of a single term, which is passed on as it is
        if finest is not None and finest.scale is not None:
            negative = bool(self.facts[f"{prefix}sum.negative"].value)
            total = bits_row("sum", negative, finest.value, finest.scale, keep_zeros=maximum is not None)
        if maximum is None and exact != total.value:
            total = replace(total, marks=frozenset(["sticky"]))
        total = replace(total, signals=(f"{prefix}sum.negative", f"{prefix}sum.magnitude"))
        unit_place = None if maximum is None or not rows else total.last
        kind: PictureKind = "sum" if isinstance(node, FusedSum) else "pair"
        return Picture(prefix, kind, tuple(rows), tuple(zeros), total, maximum, None, unit_place)

    def _cut(self, visit: Visit, node: Cut) -> Picture:
        number = self.facts[f"{visit.prefix}cut"]
        assert number.scale is not None
        picture = self.sums.get(node.term) or self._single(item_of("term", visit.value))
        row = bits_row("cut", picture.total.negative, number.value, number.scale, keep_zeros=True)
        if row.value == picture.total.value:
            return picture
        return replace(picture, cut=replace(row, signals=(f"{visit.prefix}cut",)))

    def _single(self, item: Item) -> Picture:
        """A term that is rounded by itself."""
        row = term_row(item, ())
        rows = () if item.is_zero and not item.special else (row,)
        return Picture("", "product", rows, () if rows else (item.name,), replace(row, name="sum"), name=item.name)

    def _rounded(self, visit: Visit, node: Round) -> Picture:
        prefix, how = visit.prefix, node.rounding
        picture = self.sums.get(node.term)
        if picture is None:
            below = next(v for v in reversed(self.evaluation.trace.visits) if v.node == node.term)
            picture = self._single(item_of(below.place or below.prefix.rstrip("."), below.value))
        signals = (f"{prefix}rounded", f"{prefix}result")
        pattern = self.facts[signals[1]].value
        special = _special(picture.rows, pattern, (f"{prefix}special.nan", f"{prefix}special.infinite", signals[1]))
        if special is not None:
            return replace(picture, special=special, prefix=prefix)
        rounded = round_row(picture.cut or picture.total, how.format, how.mode, pattern, signals)
        return replace(picture, rounded=rounded)


def _special(rows: Sequence[Row], pattern: int, signals: tuple[str, ...]) -> Special | None:
    """The rule that decides where a term is not finite."""
    kinds: dict[str, CauseKind] = {"nan": "nan", "infinite": "infinite"}
    causes = [(row, kinds[mark]) for row in rows for mark in row.marks & {"nan", "infinite"}]
    if not causes:
        return None
    opposite = len({row.negative for row, kind in causes if kind == "infinite"}) == 2
    rule: Rule = "nan" if any(kind == "nan" for _, kind in causes) else "opposite" if opposite else "infinity"
    wanted = "nan" if rule == "nan" else "infinite"
    return Special(rule, tuple(Cause(row.name, kind) for row, kind in causes if kind == wanted), pattern, signals)
