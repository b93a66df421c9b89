"""Random units of odd forms, each on all of its inputs: what it gives is what the oracle gives, and what every form
gives by which it may be called equal to another unit.

Formats of one or two bits of exponents, without fractions, without a sign, with any bias; literals that may be NaN or
infinite, also as factors; numbers written for a NaN; products of c, of one input, of a result so far; limits, cuts and
floors beyond the range; loops that begin anywhere, take one place twice or add the result so far twice; scale factors
that are zero, infinite or NaN. The forms: the normal form, that of rewriting by lemmas, that with loops and terms
written out, that with exact roundings left out (for every c, and for those that are not -0).

`python -m benchmarks.odd_units [--count 300] [--first 0] [-o FILE]`
"""

from __future__ import annotations

import random
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.campaign import parser, which
from benchmarks.statements import Table, different, formats_of, grid_of, numbers, text_of
from mmaprobe.queries.kernel.equality.expressions import terms_written_out
from mmaprobe.queries.kernel.equality.plan_units import joined, joined_after_zero, read
from mmaprobe.queries.search.distinguish import Options
from mmaprobe.queries.tactics.normalising import Normaliser, normal_form
from mmaprobe.smtmodel.arithmetic.formats import FORMATS, Format, format_named
from mmaprobe.smtmodel.base.errors import ParameterError
from mmaprobe.smtmodel.evaluate.batch import evaluate_batch
from mmaprobe.smtmodel.evaluate.model import Model
from mmaprobe.smtmodel.nodes import (
    Constant,
    Cut,
    Each,
    Element,
    ExactSum,
    Index,
    Literal,
    Node,
    Product,
    Repeat,
    Round,
    Running,
    Scale,
)
from mmaprobe.smtmodel.nodes.node import walk
from mmaprobe.smtmodel.nodes.normal import normal
from mmaprobe.smtmodel.nodes.rewriting import written_out
from mmaprobe.smtmodel.nodes.round import Rounding
from mmaprobe.smtmodel.units.unit import Unit
from tests.node_units import MODES, Maker
from tests.oracles import node_oracle, oracle

TINY = (
    "e1m1_none", "ue1m1_none", "e1m1_all_ones", "e1m1_negative_zero", "binary3p2se", "binary3p1se", "e2m0_all_ones",
    "e2m0_negative_zero", "ue1m1_all_ones", "ue2m0_all_ones", "ue2m1_none", "ue2m1_ieee", "ue2m1_extended", "e1m2_none",
    "e2m1", "e2m1_ieee", "e2m1_all_ones", "e2m1_negative_zero", "e2m1b0_none", "e2m1b5_none", "e2m1b9_ieee",
)  # fmt: skip
WIDER = (
    "e4m3", "e5m2", "e4m3fnuz", "e3m2", "e2m3", "e3m0_extended", "e3m1b7_none", "e4m0_all_ones", "e2m2b0_none",
    "e3m4_ieee", "binary6p3se", "binary6p1se", "e2m4b9_ieee", "e4m2b1_negative_zero",
)  # fmt: skip
SCALES = ("ue2m0_all_ones", "ue1m1_none", "ue1m1_all_ones", "ue2m1_none", "ue3m0_all_ones", "ue2m1_ieee",
          "ue2m1_extended")  # fmt: skip
WIDEST, ROWS, HELD = 15, 1 << 14, 25  # bits of an input; inputs of a unit, and those held against the oracle
MOST = 11  # nodes of a unit, besides elements


def _known(name: str) -> Format:
    """A format, which the oracle knows as well."""
    fmt = format_named(name)
    specials = {"negative_zero": "fnuz", "extended": "p3109"}.get(fmt.specials, fmt.specials)
    row = oracle.Format(fmt.exponent, fmt.fraction, 1 - fmt.bias, specials, signed=fmt.signed)
    oracle.FORMATS.setdefault(fmt.name, row)
    return fmt


INPUTS = [_known(name) for name in TINY]
RESULTS = [fmt for fmt in [*INPUTS, *map(_known, WIDER)] if fmt.signed]
FACTORS = [_known(name) for name in SCALES]


@dataclass
class OddMaker(Maker):
    """Makes nodes that end where formats do."""

    gates: float = 0.25

    def rounding(self, fmt: Format | None = None) -> Rounding:
        rng = self.rng
        fmt = fmt or rng.choice(RESULTS)
        nan = self.pattern(fmt) if rng.random() < 0.3 else None
        choose: Any = rng.choice
        return Rounding(
            fmt,
            choose(MODES),
            choose(("infinity", "saturate", "ieee")),
            choose(("keep", "keep", "flush_after", "flush_before")),
            choose(("ieee", "exact_positive", "positive")),
            nan,
        )

    def pattern(self, fmt: Format) -> int:
        any_pattern = self.rng.randrange(1 << fmt.width)
        return self.rng.choice((0, fmt.sign_bit, 1, fmt.one, fmt.largest, fmt.infinity, fmt.nan, any_pattern))

    def element(self, operand: Any, level: int | None = None) -> Element:
        return replace(super().element(operand, level), positive_zeros=self.rng.random() < 0.15)

    def literal(self) -> Literal:
        fmt = self.rng.choice(RESULTS)
        return Literal(self.pattern(fmt), fmt)

    def number(self, depth: int) -> Node:
        return self.literal() if self.rng.random() < 0.15 else super().number(depth)

    def product(self, depth: int, level: int | None = None) -> Node:
        rng, kind = self.rng, self.rng.random()
        left: Node = self.element("a", level)
        right: Node = self.element("b", level)
        if kind < 0.2:
            right = rng.choice((self.element("c"), left, self.literal(), Constant(rng.random() < 0.5)))
        elif kind < 0.26:
            left = self.number(depth - 1)
        limit = rng.choice((-9, -1, 0, 1, 2, 4, 8)) if rng.random() < 0.15 else None
        node = self.gated(Product(left, right, rng.random() < 0.25, limit))
        return self.scaled(node) if self.scale and rng.random() < 0.7 else node

    def scaled(self, node: Node) -> Node:
        left, right = Element("scale_a", Index(0)), Element("scale_b", Index(0))
        other = self.rng.choice((right, right, right, left, Literal(0x30, FORMATS["ue4m3"])))
        return Scale(node, left, other)

    def repeat(self, depth: int, fmt: Format | None = None) -> Node:
        rng, level = self.rng, self.levels
        self.levels += 1
        start = rng.choice((Constant(rng.random() < 0.5), self.element("c"), self.element("c"), self.literal()))
        running = Running(level)
        items: list[Node] = [running, self.product(0, level)]
        kind = rng.random()
        if kind < 0.3:
            items.append(self.term(depth - 1))
        elif kind < 0.4:
            items.append(running)
        elif kind < 0.55:
            items = [Product(running, self.element("a", level)), self.element("c")] if kind < 0.5 else [running]
        rng.shuffle(items)
        return self.kept(Repeat(level, self.places(), start, Round(self.sum_of(tuple(items)), self.rounding(fmt))))

    def places(self) -> Any:
        kind = self.rng.random()
        if kind < 0.3:
            return tuple(self.rng.choices(range(self.length), k=1 if kind < 0.2 else self.rng.randint(1, 3)))
        return super().places()

    def sum_of(self, items: tuple[Node, ...]) -> Node:
        rng = self.rng
        node = super().sum_of((*items, Constant(rng.random() < 0.3)) if rng.random() < 0.1 else items)
        if rng.random() < 0.1:
            node = ExactSum((node,))
        if rng.random() < 0.15:
            choose: Any = rng.choice
            node = Cut(node, choose((2, 3, 4, 9, 40)), choose(MODES), choose((None, None, -9, -2, 0, 3, 12)))
        return node

    def unit(self) -> Node:
        """A result: a loop over all products, one sum of them all and c, or any expression."""
        kind, level = self.rng.random(), self.levels
        if kind < 0.3:
            return self.repeat(2)
        if kind < 0.6:
            return self.round(2)
        self.levels += 1
        terms = (Each(level, range(self.length), self.product(0, level)), self.element("c"))
        return Round(self.sum_of(terms), self.rounding())


def unit_of(number: int) -> Unit:
    """The unit of a number, always the same one."""
    rng = random.Random(f"odd unit {number}")
    while True:
        length, scale = rng.choice((1, 1, 2, 2, 3)), rng.choice((None, None, None, rng.choice(FACTORS)))
        a, b, c = (rng.choice(INPUTS) for _ in "abc")
        if (a.width + b.width) * length + c.width > WIDEST:
            continue
        try:
            result = OddMaker(rng, length, {"a": a, "b": b, "c": c}, scale).unit()
            if sum(not isinstance(node, Element) for node in walk(result)) <= MOST:
                return Unit(a, b, c, length, result, scale, length if scale else 0)
        except ParameterError:
            continue


Form = Callable[[Unit, Normaliser], Node | None]
FORMS: dict[str, Form] = {
    "normal form": lambda unit, _: normal(unit.result),
    "form rewritten by lemmas": lambda unit, proofs: normal(normal_form(unit, proofs.proof(unit))),
    "form with loops and terms written out": lambda unit, _: normal(terms_written_out(unit.result)),
    "form with loops written out": lambda unit, _: written_out(unit.result),
    "form by rules without lemmas": lambda unit, _: read(unit),
    "form without exact roundings": lambda unit, _: normal(joined(unit)),
    "form without exact roundings, c not -0": lambda unit, _: joined_after_zero(unit),
}


@dataclass
class Outcome:
    """What was compared of one unit, and what is wrong."""

    unit: Unit
    compared: list[str]
    wrong: list[str]


def check(unit: Unit, proofs: Normaliser, seed: int = 0) -> Outcome:
    """A unit against the oracle on some inputs, and against each of its forms on all (of many, on some)."""
    model, rng = Model("odd", unit), np.random.default_rng(seed)
    table = grid_of([range(1 << fmt.width) for fmt in formats_of(model)])
    table = table[rng.permutation(len(table))[:ROWS]]
    sides = rng.integers(0, 1 << (unit.scale.width if unit.scale else 1), (len(table), 2)).astype(np.uint64)

    def results(one: Model) -> Table:
        k, scales = unit.length, (sides[:, :1], sides[:, 1:]) if unit.scale else ()
        return evaluate_batch(one, table[:, :k], table[:, k : 2 * k], table[:, 2 * k], *scales)

    own = results(model)
    outcome = Outcome(unit, ["oracle"], list(_unlike_oracle(model, table[:HELD], sides[:HELD], own[:HELD])))
    for name, make in FORMS.items():
        form = make(unit, proofs)
        if form is None or form == unit.result:
            continue
        outcome.compared.append(name)
        other = Model(name, unit.with_result(form))
        apart = different((model, own), (other, results(other)), "bits")
        if name.endswith("not -0") and unit.c.has_negative_zero:
            apart &= table[:, 2 * unit.length] != unit.c.sign_bit
        if apart.any():
            outcome.wrong.append(f"{name} differs on {int(apart.sum())} inputs, {table[apart][0].tolist()} for one")
    return outcome


def _unlike_oracle(model: Model, rows: Table, sides: Table, given: Table) -> Iterator[str]:
    k, unit = model.length, model.unit
    for row, factors, pattern in zip(rows.tolist(), sides.tolist(), given.tolist(), strict=True):
        scales = ([factors[0]], [factors[1]]) if unit.scale else ()
        exact = node_oracle.evaluate(unit, row[:k], row[k : 2 * k], row[2 * k], *scales)
        own = numbers(model, np.array([pattern], dtype=np.uint64))[0]
        if not (np.isnan(own) if exact == node_oracle.ANY_NAN else exact == pattern):
            yield f"the oracle gives {exact:x}, not {pattern:x}, for {row} {scales}"
            return


def main() -> None:
    assert __doc__ is not None
    options = parser(__doc__, 300)
    options.add_argument("-o", "--output", type=Path)
    given = options.parse_args()
    proofs, counts, wrong = Normaliser(Options(timeout=10.0)), Counter[str](), list[str]()
    for number in which(given):
        outcome = check(unit_of(number), proofs)
        counts.update(outcome.compared)
        if outcome.wrong:
            wrong.append(f"- {number}: {'; '.join(outcome.wrong)}")
            print(wrong[-1], text_of(outcome.unit), sep="\n", flush=True)
    compared = ", ".join(f"{count} with the {name}" for name, count in counts.items())
    text = f"{given.count} units, compared {compared}: {len(wrong)} wrong."
    print(text)
    if given.output:
        lines = ["# Random units of odd forms\n", __doc__.strip(), "", text, *wrong, ""]
        given.output.write_text("\n".join(lines), encoding="utf-8")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
