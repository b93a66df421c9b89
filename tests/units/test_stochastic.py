"""Stochastic rounding by N random bits: IEEE P3109's A, B and C, on arrays and as terms, against exact rationals."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from numpy.typing import NDArray

from mmaprobe.queries.kernel.statements import problems_of
from mmaprobe.smtmodel.arithmetic.display import exact_value
from mmaprobe.smtmodel.arithmetic.formats import FORMATS, format_named
from mmaprobe.smtmodel.arithmetic.rounding import STOCHASTIC
from mmaprobe.smtmodel.base.errors import InputError, ParameterError
from mmaprobe.smtmodel.carriers.terms import TermCarrier
from mmaprobe.smtmodel.evaluate.batch import evaluate_batch
from mmaprobe.smtmodel.evaluate.model import Model
from mmaprobe.smtmodel.inputs.admitted import Inputs
from mmaprobe.smtmodel.nodes import Element, Round
from mmaprobe.smtmodel.nodes.round import Rounding
from mmaprobe.smtmodel.tables.reference import parse_reference
from mmaprobe.smtmodel.units.unit import Unit
from mmaprobe.smtmodel.units.unitfile import parse_unit, unit_text
from tests.oracles import node_oracle
from tests.oracles.termeval import evaluate_term

VECTORS = 600
EXACT = "exact(a[0:2] * b[0:2], c)"
Table = NDArray[np.uint64]


def unit(d: str, mode: str, bits: int, total: str = EXACT, more: str = "") -> Unit:
    text = f"""unit: drawn
formats: {{a: e4m3, b: e4m3, c: {d}, d: {d}, random: uint{bits}}}
length: 2
roundings: {{r: "round({d}, {mode}{more})"}}
steps:
  d: r({total}, random)
"""
    return parse_unit(text, "drawn.yaml", whole=True)


def inputs(given: Unit, count: int, seed: int) -> tuple[Table, Table, Table, Table]:
    """Factors of like magnitudes, of which every tenth pattern may be anything; addends and random bits at random."""
    rng = np.random.default_rng(seed)
    near = rng.integers(0x20, 0x50, (2, count, 2)) | rng.integers(0, 2, (2, count, 2)) << 7
    anything = rng.random((2, count, 2)) < 0.1
    a, b = np.where(anything, rng.integers(0, 256, (2, count, 2)), near).astype(np.uint64)
    c = rng.integers(0, 1 << given.c.width, count).astype(np.uint64)
    c[rng.random(count) < 0.5] = 0
    return a, b, c, rng.integers(0, 1 << given.formats["random"].width, (count, 1)).astype(np.uint64)


def wanted(given: Unit, table: tuple[Table, ...]) -> list[int]:
    rows = zip(*(side.tolist() for side in table), strict=True)
    return [node_oracle.evaluate(given, a, b, c, random=r) for a, b, c, (r,) in rows]


def agree(given: Unit, found: list[int], table: tuple[Table, ...]) -> None:
    for row, (mine, theirs) in enumerate(zip(found, wanted(given, table), strict=True)):
        if theirs == node_oracle.ANY_NAN:
            assert exact_value(mine, given.d) == "nan"
        else:
            assert mine == theirs, ([side[row].tolist() for side in table], hex(mine), hex(theirs))


@pytest.mark.oracle
@pytest.mark.parametrize("mode", STOCHASTIC)
@pytest.mark.parametrize(("d", "bits", "total", "more"), [
    ("e4m3", 4, EXACT, ""), ("f16", 2, EXACT, ", subnormals=flush_before"), ("binary8p3se", 11, EXACT, ", saturate"),
    ("binary8p1se", 3, EXACT, ""), ("e2m1", 5, EXACT, ", subnormals=flush_after"), ("int8", 4, EXACT, ""),
    ("bf16", 7, "fused(a[0:2] * b[0:2], c, F=12)", ", overflow=infinity, zero=positive"),
])  # fmt: skip
def test_oracle(mode: str, d: str, bits: int, total: str, more: str) -> None:
    """Arrays and terms give what exact rationals do, to formats with and without fraction bits, infinities, zeros."""
    given = unit(d, mode, bits, total, more.replace(", saturate", ", overflow=saturate"))
    table = inputs(given, VECTORS, bits)
    nothing = np.empty((VECTORS, 0), dtype=np.uint64)
    found = evaluate_batch(Model("drawn", given), table[0], table[1], table[2], nothing, nothing, table[3])
    agree(given, [int(x) for x in found], table)
    carrier, few = TermCarrier(), tuple(side[:100] for side in table)
    a, b, r = ([carrier.symbol(f"{name}{k}", fmt.width) for k in range(side.shape[1])]
               for name, fmt, side in (("a", given.a, table[0]), ("b", given.b, table[1]),
                                       ("r", given.formats["random"], table[3])))  # fmt: skip
    term = given.evaluate(a, b, carrier.symbol("c", given.c.width), (), (), r)[0].node
    values = {f"{name}{k}": side[:, k] for name, side in (("a", few[0]), ("b", few[1]), ("r", few[3]))
              for k in range(side.shape[1])}  # fmt: skip
    agree(given, [int(x) for x in evaluate_term(term, values | {"c": few[2]})], few)


@pytest.mark.parametrize("mode", STOCHASTIC)
def test_how_many_raise(mode: str) -> None:
    """Of 2^N numbers of random bits floor(D 2^N) raise a magnitude, D its share of a unit, for A; D 2^N to the nearest
    number, ties away, for B, and ties to even for C: the definitions of P3109 counted."""
    bits, given = 3, unit("e4m3", mode, 3, "exact(c, a[0] * b[0], a[1] * b[1])")
    count, grid = 1 << bits, 1 << 5
    for part in range(grid):  # 16 + 2 * part / 32, whose unit is 2: the sum of 16 and two products
        high, low = divmod(part, 8)
        a = np.array([[FORMATS["e4m3"].one] * 2] * count, dtype=np.uint64)
        b = np.array([[pattern(Fraction(high, 2)), pattern(Fraction(low, 16))]] * count, dtype=np.uint64)
        c = np.full(count, pattern(Fraction(16)), dtype=np.uint64)
        none, random = np.empty((count, 0), dtype=np.uint64), np.arange(count, dtype=np.uint64)[:, None]
        found = evaluate_batch(Model("drawn", given), a, b, c, none, none, random).tolist()
        assert set(found) <= {pattern(Fraction(16)), pattern(Fraction(18))}
        assert found == sorted(found)  # more random bits raise whatever fewer do
        share = Fraction(part, grid) * count
        floor = share.numerator // share.denominator
        most = {"stochastic_a": floor, "stochastic_b": (2 * share + 1) // 2, "stochastic_c": round(share)}[mode]
        assert found.count(pattern(Fraction(18))) == most


def pattern(value: Fraction) -> int:
    """The e4m3 of a number."""
    return next(x for x in range(FORMATS["e4m3"].largest + 1) if exact_value(x, FORMATS["e4m3"]) == value)


def test_text() -> None:
    """A unit is written as it is read, and refuses what says nothing of random bits, or too much."""
    given = unit("e4m3", "stochastic_b", 6)
    assert parse_unit(unit_text(given), "again.yaml") == given
    for old, new, told in (
        (", random)", ")", "stochastic_b needs random bits"),
        ("stochastic_b", "nearest_even", "nearest_even takes no random bits"),
        ("uint6", "int6", "int6 is no format of random bits"),
        (", random)", ", exact(random))", "random bits are an operand"),
    ):
        with pytest.raises(InputError, match=told):
            parse_unit(unit_text(given).replace(old, new), "wrong.yaml")
    with pytest.raises(ParameterError, match="random bits are the operand random, not c"):
        Round(Element("c"), Rounding(FORMATS["f32"], "stochastic_a"), Element("c"))
    with pytest.raises(ParameterError, match="random bits"):
        replace(given.last, random=None)


def test_of_a_row() -> None:
    """A row of the table is rounded by random bits where its parameters say so; steps that are chained are not."""
    drawn = parse_reference("arm/neon/fdot.f16.e4m3.e4m3@output_rounding=stochastic_c,random_bits=6")
    assert drawn.formats["random"] == format_named("uint6")
    assert drawn.unit.last.random == Element("random")
    for name, told in {
        "arm/neon/fdot.f16.e4m3.e4m3@output_rounding=stochastic_c": "stochastic_c needs a number of random bits",
        "arm/neon/fdot.f16.e4m3.e4m3@random_bits=4": "takes no random bits",
        "ieee/fma/f32@length=2,output_rounding=stochastic_a,random_bits=4": "several results are rounded",
    }.items():
        with pytest.raises(ParameterError, match=told):
            parse_reference(name)


@pytest.mark.parametrize("mode", STOCHASTIC)
@pytest.mark.parametrize(("d", "bits", "biased"), [("e4m3", 4, False), ("e4m3", 3, True), ("e3m2", 4, True)])
def test_the_mean(mode: str, d: str, bits: int, biased: bool) -> None:
    """The two sides of the property "unbiased" are equal where the mean of all results is the product, or a result is
    not finite, and nowhere else."""
    text = f"""unit: drawn
formats: {{a: e2m3, b: e2m3, c: none, d: {d}, random: uint{bits}}}
length: 1
roundings: {{r: "round({d}, {mode})"}}
steps: {{d: "r(a[0] * b[0], random)"}}
"""
    model = Model("drawn", parse_unit(text, "drawn.yaml", whole=True))
    (problem,) = problems_of("unbiased", model, Inputs())
    a, b = (x.reshape(-1, 1).astype(np.uint64) for x in np.meshgrid(np.arange(64), np.arange(64)))
    c, none = np.zeros(4096, dtype=np.uint64), np.empty((4096, 0), dtype=np.uint64)
    every = [np.full((4096, 1), r, dtype=np.uint64) for r in range(1 << bits)]
    results = [evaluate_batch(model, a, b, c, none, none, r).tolist() for r in every]
    left, right = (evaluate_batch(side, a, b, c, none, none, every[0]).tolist() for side in problem.models)
    found = 0
    for row, all_of_one in enumerate(zip(*results, strict=True)):
        x, y = (exact_value(int(side[row, 0]), model.a) for side in (a, b))
        values = [0 if v == "-0" else v for v in (exact_value(r, model.d) for r in all_of_one)]
        total = sum(v for v in values if not isinstance(v, str))
        wanted = len(values) * Fraction(0 if x == "-0" else x) * Fraction(0 if y == "-0" else y)
        one, two = (exact_value(side[row], problem.left.d) for side in (left, right))
        if any(isinstance(v, str) for v in values):
            assert (one, two) == ("nan", "nan")
            continue
        same = one == two or {one, two} <= {0, "-0"}
        assert same == (total == wanted)
        found += not same
    assert bool(found) == biased


def test_what_has_no_mean() -> None:
    for name, told in (("ieee/fma/f32", "rounds no result by random bits"), (
        "arm/neon/fdot.f16.e4m3.e4m3@output_rounding=stochastic_c,random_bits=7", r"at most of 2\^6")):  # fmt: skip
        with pytest.raises(ParameterError, match=told):
            problems_of("unbiased", parse_reference(name), Inputs())
