"""Random claims whose conditions read results, some of them infinite, NaN or far from all sums, and all their inputs.

One or two units of a few products, drawn over all kinds of nodes; conditions and claims of any words of the language,
for all inputs or some. What a claim says is worked out anew, from docs/claims.md alone, in exact rationals, over the
oracle of nodes (tests/oracles/node_oracle.py). "At fault" is right where some input in the windows leads to a result
that is no number and is read; a verdict by an input where that input is one; any other verdict where no input is at
fault.

`python -m benchmarks.claim_values [--count 40] [--first 0] [--timeout 20] [-o FILE]`
"""

from __future__ import annotations

import ast
import random
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext, suppress
from dataclasses import dataclass
from fractions import Fraction
from functools import cache, cached_property
from itertools import product
from math import prod
from pathlib import Path
from typing import Any
from unittest.mock import patch

from benchmarks.campaign import Drawn, Result, asked, counts, end, every, parser
from benchmarks.pages import table_head
from mmaprobe.queries.claims import verify
from mmaprobe.queries.search.distinguish import Options
from mmaprobe.smtmodel.arithmetic.formats import format_named
from mmaprobe.smtmodel.base.errors import MmaprobeError, ParameterError
from mmaprobe.smtmodel.nodes import Element, Round
from mmaprobe.smtmodel.nodes.node import walk
from mmaprobe.smtmodel.units.unit import Unit
from mmaprobe.smtmodel.units.unitfile import parse_unit, unit_text
from tests.node_units import Maker
from tests.oracles.node_oracle import ANY_NAN, evaluate
from tests.oracles.oracle import FORMATS, decode, floor_log2

INPUTS = 900  # of one claim, at most
#: formats of a and b, their windows, and the number of products
FACTORS = (("e2m1", [0, 1], 1), ("e2m1", [0, 0], 1), ("e3m2", [1, 2], 1), ("binary4p2se", [-1, 1], 1),
           ("e2m1_ieee", [0, 0], 1), ("e2m1", [0, 0], 2), ("e2m0_all_ones", [0, 1], 2),
           ("e2m1_all_ones", [1, 1], 2))  # fmt: skip
#: formats of c and of results, and windows of c
ADDENDS = (("e2m1_ieee", [0, 0]), ("e2m1_all_ones", [0, 1]), ("e3m2", [-1, 0]), ("e4m3", [-2, -2]), ("e5m2", [2, 2]),
           ("binary6p3se", [0, 1]), ("binary4p2se", [-1, 0]), ("e1m1_none", [1, 1]), ("e3m4_ieee", [3, 3]))  # fmt: skip
STEPS = (
    "exact({terms}, c)", "fused({terms}, c, F={bits})", "fused({terms}, c, F={bits}, rounding={how}, zeros={far})",
    "fused({terms}, c, F={bits}, carry={carry})", "grid({terms}, c, F=[{bits}, {more}], frame=1)",
    "cut(grid({terms}, c, F=[{bits}, {more}], frame=1, rounding={how}), 3, {how})",
    "fused({terms}, c, F={bits}, sticky=true)",
)  # fmt: skip
MODES = ("nearest_even", "nearest_even", "toward_zero", "up", "down", "nearest_away", "to_odd")
OVERFLOWS = ("ieee", "infinity", "saturate")
UNIT = """unit: {name}
formats: {{a: {factors}, b: {factors}, c: {addend}, d: {addend}}}
length: {length}
steps: {{d: "round({step}, {addend}, {mode}, overflow={overflow})"}}
"""
QUANTITIES = ("value(p)", "value(q)", "error(p)", "error(q)", "abs(value(p) - value(q))", "distance(p, q)", "ulp(p)",
              "ulp(exact())", "exact()", "magnitude_sum()", "top()", "bits(p)", "bits(q)", "value(a[0])", "value(c)",
              "max(error(p), error(q))", "value(p) - exact()", "value(p) * value(b[0])", "-value(q)", "ulp(c)",
              "ulp(value(p) + 1)", "error(p) - error(q)", "distance(q, c)",
              "2 * value(p) - value(q) * exact()")  # fmt: skip
CONDITIONS = ("finite(p)", "finite(q)", "not finite(p)", "zero(p)", "nonzero(q)", "nonnegative(p)", "zero(c)",
              "nonzero(a)", "nonnegative(b)", "fits(p, ue8m0)", "lacks(q, ue8m0)", "fits(a, e2m1)")  # fmt: skip
CONSTANTS: dict[str, Any] = {"Two": Fraction(2)} | {fmt: fmt for fmt in FORMATS}
COMPARISONS = ("<", "<=", ">", ">=", "==", "!=")


# -- what a claim says


class NoNumberError(Exception):
    """A predicate reads a result that is no number."""


@cache
def places(fmt: str) -> dict[Fraction, int]:
    """The finite numbers of a format in their order."""
    found = {number(fmt, pattern) for pattern in range(1 << format_named(fmt).width)} - {None}
    return {value: place for place, value in enumerate(sorted(found))}  # type: ignore[type-var]


@cache
def number(fmt: str, pattern: int) -> Fraction | None:
    """What a pattern stands for; None for an infinity or a NaN."""
    found = decode(fmt, pattern)
    return Fraction(int(found.value.numerator), int(found.value.denominator)) if found.kind == "finite" else None


def exponent(value: Fraction) -> int:
    return floor_log2(abs(value))  # type: ignore[arg-type]


@dataclass(frozen=True)
class Pattern:
    """A pattern of a format: an input or a result."""

    fmt: str
    bits: int

    @property
    def value(self) -> Fraction:
        found = number(self.fmt, self.bits)
        if found is None:
            raise NoNumberError
        return found

    @property
    def digits(self) -> int:
        """Fraction bits that the number needs."""
        value = abs(self.value)
        return (
            exponent(value) - exponent(Fraction(value.numerator & -value.numerator, value.denominator)) if value else 0
        )


class Side(tuple[Any, ...]):
    """The numbers of a side: what is done with them is done with each, and a comparison holds if it does for each."""

    def _each(self, function: Callable[..., Any], *others: Any) -> Side:
        spread = (other if isinstance(other, Side) else [other] * len(self) for other in others)
        return Side(function(*map(plain, own)) for own in zip(self, *spread, strict=True))

    def __abs__(self) -> Side:
        return self._each(abs)

    def __mul__(self, other: Any) -> Side:  # type: ignore[override]
        return self._each(lambda x, y: x * y, other)

    __rmul__ = __mul__  # type: ignore[assignment]

    def __sub__(self, other: Any) -> Side:
        return self._each(lambda x, y: x - y, other)

    def __lt__(self, other: Any) -> bool:
        return all(self._each(lambda x, y: x < y, other))

    def __le__(self, other: Any) -> bool:
        return all(self._each(lambda x, y: x <= y, other))

    def __gt__(self, other: Any) -> bool:
        return all(self._each(lambda x, y: x > y, other))

    def __ge__(self, other: Any) -> bool:
        return all(self._each(lambda x, y: x >= y, other))

    def __eq__(self, other: object) -> bool:
        return all(self._each(lambda x, y: x == y, other))

    def __ne__(self, other: object) -> bool:
        return all(self._each(lambda x, y: x != y, other))

    __hash__ = tuple.__hash__


def plain(what: Any) -> Any:
    """The number that an input is, where a number is needed."""
    return what.value if isinstance(what, Pattern) else what


@dataclass(frozen=True)
class Words:
    """The words of the language on one input."""

    a: tuple[Pattern, ...]
    b: tuple[Pattern, ...]
    c: Pattern
    parts: dict[str, Pattern]

    @cached_property
    def names(self) -> dict[str, Any]:
        terms = [x.value * y.value for x, y in zip(self.a, self.b, strict=True)]
        tops = [
            exponent(x.value) + exponent(y.value) for x, y in zip(self.a, self.b, strict=True) if x.value and y.value
        ]
        tops += [exponent(self.c.value)] if self.c.value else []
        exact = sum(terms, self.c.value)
        result = next(iter(self.parts.values())).fmt

        def every(what: Any, test: Callable[[Pattern], bool]) -> bool:
            return all([test(x) for x in (what if isinstance(what, tuple) else (what,))])  # noqa: C419 - each is read

        def ulp(what: Any) -> Fraction:
            value = what.value if isinstance(what, Pattern) else Fraction(what)
            fmt = FORMATS[result]
            return Fraction(2) ** (max(exponent(value), fmt.emin) - fmt.mantissa_bits) if value else Fraction(0)

        return {
            **self.parts, "a": Side(self.a), "b": Side(self.b), "c": self.c,
            "exact": lambda: exact, "value": lambda x: x._each(plain) if isinstance(x, Side) else x.value,
            "error": lambda x: abs(x.value - exact),
            "magnitude_sum": lambda: sum(map(abs, terms), abs(self.c.value)),
            "max": lambda x, y: x._each(max, y) if isinstance(x, Side) else max(x, y),
            "top": lambda: Fraction(2) ** max(tops) if tops else Fraction(0), "ulp": ulp,
            "distance": lambda x, y: abs(places(x.fmt)[x.value] - places(y.fmt)[y.value]), "bits": lambda x: x.bits,
            "finite": lambda x: number(x.fmt, x.bits) is not None, "zero": lambda x: every(x, lambda y: y.value == 0),
            "nonzero": lambda x: every(x, lambda y: y.value != 0),
            "nonnegative": lambda x: every(x, lambda y: y.value is not None and not decode(y.fmt, y.bits).sign),
            "fits": lambda x, fmt: every(x, lambda y: y.digits <= FORMATS[fmt].mantissa_bits),
            "lacks": lambda x, fmt: every(x, lambda y: not y.value or y.digits > FORMATS[fmt].mantissa_bits),
        }  # fmt: skip

    def says(self, text: str) -> Any:
        """What an expression is. Raises NoNumberError."""
        return _program(text)(self.names)


@cache
def _program(text: str) -> Callable[[dict[str, Any]], Any]:
    return _read(ast.parse(text.replace("2**", "Two**"), mode="eval").body)


def _read(tree: ast.expr) -> Callable[[dict[str, Any]], Any]:
    """All of an expression is read: `and` and `or` stop nowhere."""
    if isinstance(tree, ast.BoolOp):
        parts, join = [_read(part) for part in tree.values], all if isinstance(tree.op, ast.And) else any
        return lambda names: join([part(names) for part in parts])
    if isinstance(tree, ast.UnaryOp) and isinstance(tree.op, ast.Not):
        inner = _read(tree.operand)
        return lambda names: not inner(names)
    code = compile(ast.Expression(tree), "claim", "eval")
    return lambda names: eval(code, CONSTANTS, names)


@dataclass(frozen=True)
class Truth:
    """Of all inputs in the windows how many are at fault, are admitted, and decide."""

    at_fault: int
    admitted: int
    deciding: int

    def allows(self, verdict: str, quantifier: str) -> bool:
        """Whether what was said is right."""
        by_input, by_theorem = ("refuted", "holds") if quantifier == "all" else ("holds", "refuted")
        if verdict in ("at fault", by_input):
            return bool(self.at_fault if verdict == "at fault" else self.deciding)
        wanted = by_theorem if self.admitted else "none admitted"
        return verdict == wanted and not self.deciding and not self.at_fault


def truth(inputs: Sequence[Words], where: Sequence[str], claim: str, quantifier: str) -> Truth:
    counts = Counter[str]()
    for one in inputs:
        try:
            if all(one.says(text) for text in where):  # each is asked where those before it are met
                counts["admitted"] += 1
                counts["deciding"] += one.says(claim) == (quantifier == "exists")
        except NoNumberError:
            counts["at fault"] += 1
    return Truth(counts["at fault"], counts["admitted"], counts["deciding"])


# -- claims at random


@dataclass(frozen=True)
class Statement(Drawn):
    """A claim, and what is true."""

    truth: Truth

    def text(self) -> str:
        inputs, terms = self.data["inputs"], self.data["terms"]
        units = "; ".join(" ".join(text.split()) for text in self.units.values())
        return f"{self.data['quantifier']}, {terms} products: {self.data['claim']}; {inputs}; {self.truth}; {units}"

    def allows(self, verdict: str) -> bool:
        return self.truth.allows(verdict, self.data["quantifier"])


def make(which: int) -> Statement:
    """The statement of a number, always the same one."""
    rng = random.Random(f"claim values {which}")
    while True:
        factors, window, terms = rng.choice(FACTORS)
        addend, last = rng.choice(ADDENDS)
        length = rng.randint(1, terms)
        try:
            units = {name: _unit(rng, name, factors, addend, length) for name in "pq"}
            parsed = {name: parse_unit(text, f"{name}.yaml") for name, text in units.items()}
        except MmaprobeError:
            continue
        c: Any = rng.choice(("zero", last, last))
        if not all(unit.addend for unit in parsed.values()):
            c = "zero"
        columns = [_patterns(factors, window)] * (2 * terms) + [_patterns(addend, c)]
        if prod(map(len, columns)) > INPUTS:
            continue
        inputs = list(_inputs(columns, factors, addend, parsed, terms))
        where = [_predicate(rng, inputs) for _ in range(rng.choice((0, 1, 1, 1, 2)))]
        if rng.random() < 0.4:
            where.insert(0, rng.choice(("finite(p)", "finite(q)", *("finite(p) and finite(q)",) * 3)))
        claim, quantifier = _claim(rng, inputs, where), rng.choice(("all", "all", "exists"))
        data = {"id": f"random-{which}", "about": "", "source": "", "says": "nothing", "quantifier": quantifier,
                "expect": rng.choice(("holds", "refuted")), "terms": terms, "claim": claim,
                "inputs": {"format": factors, "a": window, "b": window, "c": c, "where": where}}  # fmt: skip
        return Statement(which, data, units, truth(inputs, where, claim, quantifier))


def _unit(rng: random.Random, name: str, factors: str, addend: str, length: int) -> str:
    """Raises ParameterError."""
    bits = rng.randrange(1, 6)
    if rng.random() < 0.6:
        step = rng.choice(STEPS).format(terms=f"a[0:{length}] * b[0:{length}]", bits=bits, more=bits + rng.randrange(3),
                                        how=rng.choice(MODES), far=rng.choice((-3, 2, 12)),
                                        carry=rng.choice((1, 2)))  # fmt: skip
        return UNIT.format(name=name, factors=factors, addend=addend, length=length, step=step, mode=rng.choice(MODES),
                           overflow=rng.choice(OVERFLOWS))  # fmt: skip
    a, c = format_named(factors), format_named(addend)
    while True:
        maker = Maker(rng, length, {"a": a, "b": a, "c": c}, None, gates=0.15)
        try:
            top = Round(maker.round(2), maker.rounding(c))
            nodes = list(walk(top))
            if sum(not isinstance(x, Element) for x in nodes) <= 9:
                return unit_text(Unit(a, a, c, length, top, reference=name))
        except ParameterError:
            continue


def _patterns(fmt: str, window: Any) -> list[int]:
    """Zeros, and normal numbers with exponents in a window."""
    if window == "zero":
        return [0]

    def admits(value: Fraction | None) -> bool:
        return value is not None and (not value or max(window[0], FORMATS[fmt].emin) <= exponent(value) <= window[1])

    return [pattern for pattern in range(1 << format_named(fmt).width) if admits(number(fmt, pattern))]


def _inputs(
    columns: Sequence[Sequence[int]], factors: str, addend: str, units: dict[str, Unit], terms: int
) -> Iterator[Words]:
    known: dict[tuple[Any, ...], int] = {}
    for row in product(*columns):
        a, b, c = row[:terms], row[terms:-1], row[-1]
        results = {name: Pattern(addend, _chained(unit, a, b, c, known)) for name, unit in units.items()}
        sides = (tuple(Pattern(factors, x) for x in side) for side in (a, b))
        yield Words(*sides, Pattern(addend, c), results)


def _chained(unit: Unit, a: Sequence[int], b: Sequence[int], c: int, known: dict[tuple[Any, ...], int]) -> int:
    for start in range(0, len(a), unit.length):
        own = [side[start : start + unit.length] for side in (a, b)]
        key = (id(unit), *map(tuple, own), c)
        if key not in known:
            known[key] = evaluate(unit, *own, c)
        c = unit.d.nan if known[key] == ANY_NAN else known[key]
    return c


def _claim(rng: random.Random, inputs: Sequence[Words], where: Sequence[str]) -> str:
    """Any predicate, or one that holds of all admitted inputs, or of all but few."""
    admitted = []
    for one in inputs:
        with suppress(NoNumberError):
            admitted += [one] * all(one.says(text) for text in where)
    if rng.random() < 0.2 or not admitted:
        return _predicate(rng, inputs)
    quantity = rng.choice(QUANTITIES)
    values = _values(quantity, admitted)
    if not values:
        return _predicate(rng, inputs)
    comparison, value = rng.choice((("<=", max(values)), (">=", min(values))))
    text = f"{quantity} {comparison[: rng.choice((1, 2, 2))]} {_constant(value)}"
    return rng.choice(
        (text, text, f"({text}) or {_predicate(rng, inputs)}", f"not {quantity} > {_constant(max(values))}")
    )


def _predicate(rng: random.Random, inputs: Sequence[Words]) -> str:
    kind = rng.random()
    if kind < 0.12:
        return f"{_predicate(rng, inputs)} {rng.choice(('and', 'or'))} {_predicate(rng, inputs)}"
    if kind < 0.2:
        return f"not ({_predicate(rng, inputs)})"
    if kind < 0.45:
        return rng.choice(CONDITIONS)
    quantity = rng.choice(QUANTITIES)
    values = _values(quantity, rng.choices(inputs, k=20))
    value = rng.choice((max(values), min(values), rng.choice(values))) if values else Fraction(1)
    value += Fraction(rng.choice((0, 0, 0, 1, -1)), rng.choice((1, 16)))
    return f"{quantity} {rng.choice(COMPARISONS)} {_constant(value)}"


def _values(quantity: str, inputs: Sequence[Words]) -> list[Fraction]:
    found = []
    for one in inputs:
        with suppress(NoNumberError):
            found.append(Fraction(one.says(quantity)))
    return found


def _constant(value: Fraction) -> str:
    return f"{value.numerator} * 2**-{value.denominator.bit_length() - 1}"


# -- what is said


def check(statement: Statement, options: Options) -> Result[Statement]:
    return asked(statement, options, {": no number; ": "at fault", "no input meets all conditions": "none admitted"})


def table(found: Sequence[Result[Statement]]) -> list[str]:
    verdicts = ("holds", "refuted", "at fault", "none admitted", "unknown")
    lines = table_head("truth", "number", *verdicts, "wrong", "s", "longest, s")
    rows: dict[str, Callable[[Truth], Any]] = {
        "decided by an input": lambda t: t.deciding and not t.at_fault,
        "decided by none": lambda t: t.admitted and not t.deciding and not t.at_fault,
        "no input admitted": lambda t: not t.admitted and not t.at_fault,
        "at fault, and decided by an input": lambda t: t.at_fault and t.deciding,
        "at fault": lambda t: t.at_fault and not t.deciding, "all": lambda t: True,
    }  # fmt: skip
    for name, chosen in rows.items():
        own = [one for one in found if chosen(one.statement.truth)]
        counts_of_verdicts = Counter(one.verdict for one in own)
        lines.append(counts(name, *(counts_of_verdicts[kind] for kind in verdicts), of=own))
    return lines


def main() -> None:
    options = parser(__doc__, 40, 20.0)
    options.add_argument("-o", "--output", type=Path)
    given = options.parse_args()

    def ask(number: int) -> Result[Statement]:
        alone = bool(number % 4)  # one solver, whom none confirms
        with patch.object(verify, "confirm", lambda lemmas, *_: lemmas) if alone else nullcontext():
            return check(make(number), Options("bitwuzla" if alone else "auto", given.timeout))

    found = every(given, ask)
    end(__doc__, "", table(found), found, given.output)


if __name__ == "__main__":
    main()
