"""Random claims about small units, each on so few inputs that evaluating all of them tells the truth.

Errors against the sum of magnitudes, the largest term, the last place or another unit's error; distances and values of
two units; all inputs or some, signs and zeros restricted, up to four products in one step or in a chain of them. The
constant of a claim is the least for which it holds (in 64ths), or one less. The truth is of the array carrier's results
and NumPy's own numbers, which hold all values here exactly; it shares nothing with the terms of claims.

`python -m benchmarks.claim_statements [--count 200] [--first 0] [--timeout 20] [--blind] [-o FILE]`
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np

from benchmarks.campaign import Drawn, Result, asked, counts, end, every, parser
from benchmarks.pages import table_head
from benchmarks.statements import Lanes, Table, grid_of, numbers, results, values_of
from mmaprobe.queries.claims.outcome import Outcome
from mmaprobe.queries.claims.verify import _Verifier
from mmaprobe.queries.search.distinguish import Options
from mmaprobe.smtmodel.arithmetic.formats import Format, format_named
from mmaprobe.smtmodel.base.errors import MmaprobeError, ParameterError
from mmaprobe.smtmodel.evaluate.model import Model
from mmaprobe.smtmodel.units.unitfile import parse_unit

INPUTS = 1 << 18  # of one claim, at most
GRAIN = 64  # constants are multiples of 1/64
TRIES = 60  # claims drawn for one that can be asked
ADDEND = "e4m3"
UNIT = """unit: {name}
formats: {{a: {factors}, b: {factors}, c: e4m3, d: e4m3}}
length: {length}
roundings: {{r: "round(e4m3, {mode})"}}
steps:
  d: {step}
"""
MODES = ("nearest_even", "nearest_even", "toward_zero", "toward_zero", "up", "down", "nearest_away", "to_odd")
STEPS = (
    "r(exact({terms}, c))", "r(fused({terms}, c, F={bits}))", "r(fused({terms}, c, F={bits}, rounding={how}))",
    "r(fused({terms}, c, F={bits}, carry={carry}))", "r(exact(r(exact({terms})), c))",
    "repeat(i in range({length}), c, r(exact(a[i] * b[i], acc)))",
    "r(exact(repeat(i in range({length}), +0, r(exact(a[i] * b[i], acc))), c))",
)  # fmt: skip
SIGNS = ((), (), ("nonnegative(a)", "nonnegative(b)"), ("nonzero(a)", "nonzero(b)"), ("nonnegative(a)", "nonzero(b)"))


@dataclass(frozen=True)
class Values:
    """Of all admitted inputs: the results of both parts, exact sums, sums of magnitudes, and 2^e of largest terms."""

    p: Lanes
    q: Lanes
    patterns: tuple[Table, Table]
    exact: Lanes
    magnitude: Lanes
    top: Lanes

    def distance(self) -> Lanes:
        """How many numbers lie between two results: their places from zero, with their signs."""
        half = 1 << (format_named(ADDEND).width - 1)
        places = [np.where(side >= half, half - side.astype(np.int64), side.astype(np.int64)) for side in self.patterns]
        apart: Lanes = np.abs(places[0] - places[1]).astype(np.float64)
        return apart


#: a quantity and what it is measured in, as claims have it and in numbers
FORMS: dict[str, tuple[str, str, Callable[[Values], tuple[Lanes, Lanes]]]] = {
    "share": ("error(p)", "magnitude_sum()", lambda v: (abs(v.p - v.exact), v.magnitude)),
    "apart": ("abs(value(p) - value(q))", "magnitude_sum()", lambda v: (abs(v.p - v.q), v.magnitude)),
    "top": ("error(p)", "top()", lambda v: (abs(v.p - v.exact), v.top)),
    "place": ("error(p)", "ulp(exact())", lambda v: (abs(v.p - v.exact), last_place(v.exact))),
    "better": ("error(p)", "error(q)", lambda v: (abs(v.p - v.exact), abs(v.q - v.exact))),
    "distance": ("distance(p, q)", "1", lambda v: (v.distance(), np.ones_like(v.p))),
    "order": ("value(p) - value(q)", "1", lambda v: (v.p - v.q, np.ones_like(v.p))),
}


def last_place(values: Lanes) -> Lanes:
    """The unit in the last place of the results' format at a number; 0 at zero."""
    fmt = format_named(ADDEND)
    exponent = np.floor(np.log2(np.where(values == 0, 1, abs(values))))
    return np.where(values == 0, 0, 2.0 ** (np.maximum(exponent, fmt.emin) - fmt.fraction))


@dataclass(frozen=True)
class Statement(Drawn):
    """A claim, and whether it holds."""

    form: str
    true: bool

    def text(self) -> str:
        units = "; ".join(f"{name} = {text.split('d: ')[-1].strip()}, {text.split('e4m3, ')[-1].partition(')')[0]}"
                          for name, text in self.units.items())  # fmt: skip
        inputs, terms = self.data["inputs"], self.data["terms"]
        return f"{self.data['quantifier']}, {terms} products: {self.data['claim']}; {units}; {inputs}"

    def allows(self, verdict: str) -> bool:
        return verdict == ("holds" if self.true else "refuted")


def make(number: int) -> Statement:
    """The statement of a number, always the same one."""
    rng = random.Random(f"claim {number}")
    for _ in range(TRIES):
        found = _drawn(number, rng)
        if found is not None:
            return found
    raise ValueError(f"no claim {number}")


def _drawn(number: int, rng: random.Random) -> Statement | None:
    """One whose results are all finite, of not too many inputs."""
    factors, length, rounds = rng.choice(("e2m1", "e2m1", "e3m2")), rng.choice((1, 1, 2)), rng.choice((1, 1, 2))
    form = list(FORMS)[number % len(FORMS)]
    units = {"p": _unit(rng, "p", factors, length)}
    if "q" in FORMS[form][0] + FORMS[form][1]:
        units["q"] = _unit(rng, "q", factors, length)
    low = rng.choice((0, 0, -1)) if factors == "e3m2" else rng.choice((0, 1))
    window = [low, low + rng.choice((0, 1))]
    addend = rng.choice(("zero", [rng.choice((-3, -1, 0)), 1], [0, 0]))
    where = rng.choice(SIGNS)
    inputs = {"format": factors, "a": window, "b": window, "c": addend, "where": list(where)}
    try:
        models = [Model(name, parse_unit(text, f"{name}.yaml")) for name, text in units.items()]
    except (MmaprobeError, ParameterError):
        return None
    values = _values(models, inputs, length * rounds)
    if values is None or not (np.isfinite(values.p) & np.isfinite(values.q)).all():
        return None
    quantifier, wanted = rng.choice(("all", "all", "exists")), rng.random() < 0.5
    quantity, unit, sides = FORMS[form]
    left, right = sides(values)
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.where(right > 0, left / right, np.where(left > 0, np.inf, -np.inf))
    most = ratio.max()
    share = int(np.ceil(most * GRAIN)) if np.isfinite(most) else rng.randrange(GRAIN)
    share -= 0 if wanted else 1
    never = bool((left * GRAIN <= share * right).all())
    sign, true = ("<=", never) if quantifier == "all" else (">", not never)
    data = {"id": f"random-{number}", "about": "", "source": "", "says": "nothing", "quantifier": quantifier,
            "expect": rng.choice(("holds", "refuted")), "terms": length * rounds, "inputs": inputs,
            "claim": f"{quantity} {sign} {share} * 2**-6 * {unit}"}  # fmt: skip
    return Statement(number, data, units, form, true)


def _unit(rng: random.Random, name: str, factors: str, length: int) -> str:
    step = rng.choice(STEPS).format(terms=f"a[0:{length}] * b[0:{length}]", length=length, bits=rng.randrange(1, 7),
                                    how=rng.choice(MODES), carry=rng.choice((1, 2, 3)))  # fmt: skip
    return UNIT.format(name=name, factors=factors, length=length, mode=rng.choice(MODES), step=step)


def _patterns(fmt: Format, window: list[int] | str, where: list[str], side: str) -> list[int]:
    """Zeros, and normal numbers in a window, as far as conditions admit them."""
    if window == "zero":
        return [0]
    low, high = map(int, window)

    def admits(pattern: int, value: float) -> bool:
        if value == 0:
            return f"nonzero({side})" not in where
        return 2.0**fmt.emin <= abs(value) < np.inf and low <= np.floor(np.log2(abs(value))) <= high

    return [pattern for pattern, value in enumerate(values_of(fmt).tolist()) if admits(pattern, value)
            and not (pattern >> (fmt.width - 1) and f"nonnegative({side})" in where)]  # fmt: skip


def _values(models: list[Model], inputs: dict[str, Any], terms: int) -> Values | None:
    fmt, addend = format_named(inputs["format"]), format_named(ADDEND)
    columns = [_patterns(fmt, inputs[side], inputs["where"], side) for side in "ab" for _ in range(terms)]
    columns.append(_patterns(addend, inputs["c"], inputs["where"], "c"))
    if np.prod([float(len(column)) for column in columns]) > INPUTS:
        return None
    table = grid_of(columns)
    patterns = [_chained(model, table, terms) for model in models]
    p, q = (numbers(model, found) for model, found in zip((models * 2)[:2], (patterns * 2)[:2], strict=True))
    factors, last = values_of(fmt)[table[:, :-1]], values_of(addend)[table[:, -1]]
    products = factors[:, :terms] * factors[:, terms:]
    sizes = np.concatenate([_power(factors[:, :terms]) * _power(factors[:, terms:]), _power(last)[:, None]], axis=1)
    magnitude = abs(products).sum(axis=1) + abs(last)
    sides = (patterns * 2)[0], (patterns * 2)[1]
    return Values(p, q, sides, products.sum(axis=1) + last, magnitude, sizes.max(axis=1))


def _power(values: Lanes) -> Lanes:
    """2^e of each normal number; 0 of zeros."""
    return np.where(values == 0, 0, 2.0 ** np.floor(np.log2(np.where(values == 0, 1, abs(values)))))


def _chained(model: Model, table: Table, terms: int) -> Table:
    """The results of a unit over all products, as many at a time as it takes."""
    running = table[:, -1]
    for start in range(0, terms, model.length):
        own = [table[:, side + start : side + start + model.length] for side in (0, terms)]
        running = results(model, np.concatenate([*own, running[:, None]], axis=1))
    return running


# -- what is said


@contextmanager
def blind() -> Iterator[None]:
    """No prover looks at an example: what is left is what it would prove."""
    with ExitStack() as stack:
        stack.enter_context(patch.object(_Verifier, "_simulate", lambda self, *limits: False))
        stack.enter_context(patch.object(_Verifier, "_climb", lambda self: False))
        stack.enter_context(patch.object(_Verifier, "_reached", lambda self, wanted, decided: False))
        stack.enter_context(patch.object(Outcome, "check", lambda self, late: None))
        yield


def check(statement: Statement, timeout: float) -> Result[Statement]:
    return asked(statement, Options(timeout=timeout))


def table(found: list[Result[Statement]]) -> list[str]:
    lines = table_head("claims about", "number", "true", "held", "refuted", "unknown", "wrong", "s", "longest, s")
    for form in (*FORMS, "all"):
        own = [one for one in found if form in (one.statement.form, "all")]
        counts_of_verdicts = Counter(one.verdict for one in own)
        true = sum(one.statement.true for one in own)
        lines.append(
            counts(
                form,
                true,
                counts_of_verdicts["holds"],
                counts_of_verdicts["refuted"],
                counts_of_verdicts["unknown"],
                of=own,
            )
        )
    return lines


def main() -> None:
    options = parser(__doc__, 200, 20.0)
    options.add_argument("--blind", action="store_true", help="the provers look at no example")
    options.add_argument("-o", "--output", type=Path)
    given = options.parse_args()

    def ask(number: int) -> Result[Statement]:
        with blind() if given.blind else ExitStack():
            return check(make(number), given.timeout)

    found = every(given, ask)
    how = " Provers looked at no example." if given.blind else " Provers look at examples."
    end(__doc__, how, table(found), found, given.output)


if __name__ == "__main__":
    main()
