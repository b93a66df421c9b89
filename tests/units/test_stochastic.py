"""Stochastic rounding by N random bits: IEEE P3109's A, B and C, on arrays and as terms, against exact rationals."""

from __future__ import annotations

import re
from dataclasses import replace
from fractions import Fraction
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from numpy.typing import NDArray

import mmaprobe
from mmaprobe.cli.main import main
from mmaprobe.queries.kernel.questions.problem import admits
from mmaprobe.queries.kernel.questions.statements import Reordered, problems_of
from mmaprobe.queries.search.admitted_rows import admitted_rows
from mmaprobe.smtmodel.arithmetic.display import exact_value
from mmaprobe.smtmodel.arithmetic.formats import FORMATS, format_named
from mmaprobe.smtmodel.arithmetic.rounding import STOCHASTIC
from mmaprobe.smtmodel.base.errors import InputError, ParameterError
from mmaprobe.smtmodel.carriers.arrays import ArrayCarrier
from mmaprobe.smtmodel.carriers.terms import TermCarrier
from mmaprobe.smtmodel.evaluate.batch import evaluate_batch, evaluate_row, to_integers
from mmaprobe.smtmodel.evaluate.model import Model
from mmaprobe.smtmodel.evaluate.operands import Operands, layout_of
from mmaprobe.smtmodel.inputs.admitted import ExponentRange, Inputs
from mmaprobe.smtmodel.nodes import Element, Round
from mmaprobe.smtmodel.nodes.round import Rounding
from mmaprobe.smtmodel.tables.reference import parse_reference
from mmaprobe.smtmodel.units.unit import Unit
from mmaprobe.smtmodel.units.unitfile import parse_unit, unit_text
from tests.cpu import Inputs as ProcessorInputs
from tests.cpu import differing
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
    for old, new, message in (
        (", random)", ")", "stochastic_b needs random bits"),
        ("stochastic_b", "nearest_even", "nearest_even takes no random bits"),
        ("uint6", "int6", "int6 is no format of random bits"),
        (", random)", ", exact(random))", "random bits are an operand"),
    ):
        with pytest.raises(InputError, match=message):
            parse_unit(unit_text(given).replace(old, new), "wrong.yaml")
    with pytest.raises(ParameterError, match="random bits are random or draws, not c"):
        Round(Element("c"), Rounding(FORMATS["f32"], "stochastic_a"), Element("c"))
    with pytest.raises(ParameterError, match="random bits"):
        replace(given.last, random=None)


def test_of_a_row() -> None:
    """A row of the table is rounded by random bits where its parameters say so, each step of a chain by its own."""
    drawn = parse_reference("arm/neon/fdot.f16.e4m3.e4m3@output_rounding=stochastic_c,random_bits=6")
    assert drawn.formats["random"] == format_named("uint6")
    assert drawn.unit.last.random == Element("random")
    chained = parse_reference("ieee/fma/f32@length=3,output_rounding=stochastic_a,random_bits=4")
    assert unit_text(chained.unit).endswith("d: repeat(i in range(3), c, r(exact(a[i] * b[i], acc), draws[i]))\n")
    for name, message in {
        "arm/neon/fdot.f16.e4m3.e4m3@output_rounding=stochastic_c": "stochastic_c needs a number of random bits",
        "arm/neon/fdot.f16.e4m3.e4m3@random_bits=4": "takes no random bits",
        "riscv/zvbdota/vfwbdota16bf.n4@output_rounding=stochastic_a,random_bits=4": "several results are rounded in a",
    }.items():
        with pytest.raises(ParameterError, match=message):
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
    found, value = 0, cache(exact_value)
    for row, all_of_one in enumerate(zip(*results, strict=True)):
        x, y = (value(int(side[row, 0]), model.a) for side in (a, b))
        values = [0 if v == "-0" else v for v in (value(r, model.d) for r in all_of_one)]
        total = sum(v for v in values if not isinstance(v, str))
        wanted = len(values) * Fraction(0 if x == "-0" else x) * Fraction(0 if y == "-0" else y)
        one, two = (value(side[row], problem.left.d) for side in (left, right))
        if any(isinstance(v, str) for v in values):
            assert (one, two) == ("nan", "nan")
            continue
        same = one == two or {one, two} <= {0, "-0"}
        assert same == (total == wanted)
        found += not same
    assert bool(found) == biased


def test_a_counterexample_of_the_mean_has_its_sums(tmp_path: Path) -> None:
    (file := tmp_path / "drawn.yaml").write_text(
        """unit: drawn
formats: {a: e2m1, b: e2m1, c: e4m3, d: e4m3, random: uint4}
length: 2
roundings: {r: "round(e4m3, stochastic_a)"}
steps: {d: "r(exact(a[0:2] * b[0:2], c), random)"}
"""
    )
    found = mmaprobe.prove(str(file), property="unbiased").difference
    assert found is not None
    a, b, c = (np.asarray(x).view(np.uint8).ravel().tolist() for x in (found.left.a, found.left.b, found.left.c))
    model = parse_reference(str(file))
    results = [evaluate_row(model, Operands(tuple(a), tuple(b), c[0], ((), (), (r,)))) for r in range(16)]
    sums = [exact_value(result, model.d) for result in results]
    exact = sum(Fraction(float(x)) * Fraction(float(y)) for x, y in zip(found.left.a, found.left.b, strict=True))
    assert found.left.d == sum(x for x in sums if isinstance(x, Fraction))
    assert found.right.d == 16 * (exact + Fraction(float(found.left.c)))
    assert not found.left.more
    shown = CliRunner().invoke(main, ["prove", "--property", "unbiased", str(file)]).output
    assert "random = every value" in shown
    for name, d in (("all results added", found.left.d), ("as many exact sums", found.right.d)):
        (line,) = (line for line in shown.splitlines() if name in line)
        assert line.endswith(f" = {d:.9g}")


CHAINS = (
    "arm/neon/fdot.f16.e4m3.e4m3@length=6,block=2,output_rounding=stochastic_a,random_bits=5",
    "hopper/mma/m16n8k16.f32.f16.f16.f32@length=8,block=4,fraction_bits=30,output_rounding=stochastic_b,random_bits=3",
    "cdna3/mfma/f32_16x16x16_f16@output_rounding=stochastic_c,random_bits=7",
)


@pytest.mark.oracle
@pytest.mark.parametrize("reference", CHAINS)
def test_steps_by_bits_of_their_own(reference: str) -> None:
    """Arrays and terms give what exact rationals do; of a step's bits those of its first product count, no others."""
    model, rng = parse_reference(reference), np.random.default_rng(5)
    undrawn = re.sub(r"stochastic_.,random_bits=[0-9]+", "toward_zero", reference)
    a, b, c = ProcessorInputs(parse_reference(undrawn), seed=8).vectors(270)
    draws = rng.integers(0, 1 << model.formats["draws"].width, a.shape).astype(np.uint64)
    none = np.empty((len(a), 0), dtype=np.uint64)
    found = evaluate_batch(model, a, b, c, none, none, none, draws)
    rows = zip(*(side.tolist() for side in (a, b, c, draws)), strict=True)
    expected = [node_oracle.evaluate(model.unit, x, y, z, draws=r) for x, y, z, r in rows]
    right = np.array([model.d.nan if one == node_oracle.ANY_NAN else one for one in expected], dtype=np.uint64)
    assert not differing(model, found, right).size
    unread = draws.copy()
    unread[:, 1] ^= np.uint64(1)
    changed = draws.copy()
    changed[:, 0] ^= np.uint64((1 << model.formats["draws"].width) - 1)
    assert np.array_equal(evaluate_batch(model, a, b, c, none, none, none, unread), found)
    assert differing(model, evaluate_batch(model, a, b, c, none, none, none, changed), found).size > 9
    carrier = TermCarrier()
    x, y, r = ([carrier.symbol(f"{name}{k}", model.formats[name].width) for k in range(model.length)]
               for name in ("a", "b", "draws"))  # fmt: skip
    term = model.unit.evaluate(x, y, carrier.symbol("c", model.c.width), (), (), (), r)[0].node
    values = {f"{name}{k}": side[:30, k] for name, side in (("a", a), ("b", b), ("draws", draws))
              for k in range(model.length)}  # fmt: skip
    assert not differing(model, np.array(evaluate_term(term, values | {"c": c[:30]}), np.uint64), found[:30]).size


def test_random_bits_stay_with_the_steps() -> None:
    """Products are exchanged without their bits, of which all numbers meet whatever inputs are admitted."""
    model, order = parse_reference(CHAINS[0]), []
    for problem in problems_of("order-independent", model, Inputs()):
        assert isinstance(problem, Reordered)
        moved = problem.moved(Operands((0, 1, 2, 3, 4, 5), (0, 1, 2, 3, 4, 5), 0, ((), (), (), (9, 8, 7, 6, 5, 4))))
        assert moved.a == moved.b == problem.order
        assert moved.sides["draws"] == (9, 8, 7, 6, 5, 4)
        order.append(problem.order)
    assert len(set(order)) == 3
    carrier, one = ArrayCarrier(), FORMATS["e4m3"].one
    lanes = {name: carrier.lanes(np.arange(32, dtype=np.uint64) * (name == "r") + value, width)
             for name, value, width in (("a", one, 8), ("c", FORMATS["f16"].one, 16), ("r", 0, 5))}  # fmt: skip
    rest = ((), (), (), (lanes["r"],) * 6)
    operands = Operands((lanes["a"],) * 6, (lanes["a"],) * 6, lanes["c"], rest)
    for inputs in (Inputs(nonzero=True), Inputs(zero_terms=(1,)), Inputs(exponents=ExponentRange(min=-1, max=1))):
        given = operands
        if inputs.zero_terms:
            zero = carrier.lanes(np.zeros(32, dtype=np.uint64), 8)
            given = replace(operands, **dict.fromkeys(("a", "b"), (lanes["a"], zero, *((lanes["a"],) * 4))))
        assert to_integers(admits(inputs, model, given), 32).tolist() == [1] * 32
        rows = admitted_rows(layout_of(model), inputs, 400, 1)
        assert len({*rows[:, -1].tolist()}) == 32
    for name, message in (("exact", "its exact sum one"), ("unbiased", "several results")):
        with pytest.raises(ParameterError, match=message):
            problems_of(name, model, Inputs())


def test_what_has_no_mean() -> None:
    seven = "arm/neon/fdot.f16.e4m3.e4m3@output_rounding=stochastic_c,random_bits=7"
    messages = {"ieee/fma/f32": "rounds no result by random bits", seven: "at most 6 random bits, not 7"}
    for name, message in messages.items():
        with pytest.raises(ParameterError, match=message):
            problems_of("unbiased", parse_reference(name), Inputs())


def test_the_file_of_a_chain_of_several_products_is_read() -> None:
    """A step of several products reads the first one's draw. The others may stay unread, but not all of them."""
    name = "hopper/mma/m16n8k16.f32.f16.f16.f32@length=32,output_rounding=stochastic_a,random_bits=8"
    text = unit_text(parse_reference(name).unit)
    assert "draws[i]" in text
    assert unit_text(parse_unit(text, "x.yaml", whole=True)) == text
    with pytest.raises(InputError, match=r"formats.draws: no step reads draws\[0-31\]"):
        parse_unit(text.replace(", draws[i]", "").replace("stochastic_a", "nearest_even"), "x.yaml", whole=True)


def test_bits_that_no_format_names_are_said_to_have_none() -> None:
    text = ("unit: x\nformats: {a: e2m1, b: e2m1, c: e4m3, d: e4m3, random: uint3}\nlength: 2\n"
            "roundings: {r: 'round(e4m3, stochastic_a)'}\n"
            "steps: {d: 'repeat(k in range(2), c, r(exact(acc, a[k] * b[k]), draws[k]))'}\n")  # fmt: skip
    with pytest.raises(InputError, match="draws: it is read, and has no format"):
        parse_unit(text, "x.yaml")
