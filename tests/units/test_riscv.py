"""RISC-V's bulk normalisation against results of its reference simulator, and an oracle in 64-bit integers."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import cache
from importlib.resources import files
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from mmaprobe.smtmodel.evaluate.batch import evaluate_batch, evaluate_row
from mmaprobe.smtmodel.evaluate.model import Model
from mmaprobe.smtmodel.evaluate.operands import Operands
from mmaprobe.smtmodel.tables.instructions import INSTRUCTIONS
from mmaprobe.smtmodel.tables.reference import parse_reference
from tests.records import Records

pytestmark = pytest.mark.oracle

ROWS = sorted(name for name in INSTRUCTIONS if name.startswith("riscv/"))
#: exponent bits, fraction bits, whether there are infinities
FIELDS = {"bf16": (8, 7, True), "e4m3": (4, 3, False), "e5m2": (5, 2, True)}
SINGLE, ODD, COUNT = 23, 0x7FC00000, 100_000
#: changes that some recorded result contradicts
NEARBY = [
    "fraction_bits=25", "fraction_bits=27", "align_rounding=toward_zero", "align_rounding=nearest_even",
    "output_rounding=nearest_even", "output_rounding=toward_zero", "step_sums=kept", "block=4", "nan=0x7fffffff",
    "fraction_bits=exact",
]  # fmt: skip

Ints = NDArray[np.int64]


def value_of(patterns: Ints, fmt: str) -> tuple[Ints, Ints, Ints]:
    """Significands with their signs; biased exponents, of subnormals 1; and 0 for numbers, 1 for infinities, 2 NaN."""
    exponents, fraction, infinities = FIELDS[fmt]
    sign, field = patterns >> (exponents + fraction), (patterns >> fraction) & ((1 << exponents) - 1)
    digits = patterns & ((1 << fraction) - 1)
    significand = digits | ((field > 0).astype(np.int64) << fraction)
    top = field == (1 << exponents) - 1
    nan = top & ((digits != 0) if infinities else (digits == (1 << fraction) - 1))
    kind = np.where(nan, 2, np.where(top & infinities, 1, 0))
    return np.where(sign == 1, -significand, significand), np.maximum(field, 1), kind


def jammed(value: Ints, places: Ints) -> Ints:
    """Shifted right, the last bit set where a bit was lost."""
    places = np.minimum(places, 62)
    lost = (value & ((np.int64(1) << places) - 1)) != 0
    return (value >> places) | lost


def odd_f32(magnitude: Ints, exponent: Ints, negative: NDArray[np.bool_]) -> Ints:
    """The pattern of magnitude * 2^exponent rounded to odd; infinity beyond the largest number, +0 for zero."""
    length = np.frexp(magnitude.astype(np.float64))[1].astype(np.int64)  # exact: below 2^53
    biased = exponent + length - 1 + 127
    last = np.maximum(biased, 1) - 127 - SINGLE  # the exponent of the last place
    shift = exponent - last
    kept = np.where(shift >= 0, magnitude << np.clip(shift, 0, 40), jammed(magnitude, -np.minimum(shift, 0)))
    packed = kept + (np.maximum(biased, 1) - 1 << SINGLE)
    packed = np.where((packed >= 0x7F800000) | (biased >= 255), 0x7F800000, packed)
    return np.where(magnitude == 0, 0, packed | (negative.astype(np.int64) << 31))


def added_to_odd(left: Ints, right: Ints) -> Ints:
    """The sum of two finite f32 patterns, rounded to odd: exact as the sum of two doubles, of which one is rounded."""
    x, y = (part.astype(np.uint32).view(np.float32).astype(np.float64) for part in (left, right))
    total = x + y
    part = total - x
    error = (x - (total - part)) + (y - part)
    bits = total.view(np.int64)
    inexact = (error != 0) & (bits & 1 == 0)
    away = (error > 0) == (total > 0)
    bits = np.where(inexact, bits + np.where(away, 1, -1), bits)  # to odd in f64
    whole = bits & ((1 << 52) - 1) | (((bits >> 52) & 0x7FF) != 0).astype(np.int64) << 52
    exponent = np.maximum((bits >> 52) & 0x7FF, 1) - 1075
    return odd_f32(whole >> 10 | (whole & 1023 != 0), exponent + 10, bits < 0)


def oracle(row: str, a: Ints, b: Ints, c: Ints) -> Ints:
    """The results of a row for arrays of vectors (of shape vectors x products) and of addends."""
    instruction = INSTRUCTIONS[row]
    (x, ex, kind_x), (y, ey, kind_y) = value_of(a, instruction.a), value_of(b, instruction.b)
    fractions = sum(FIELDS[fmt][1] for fmt in (instruction.a, instruction.b))
    bias = sum((1 << FIELDS[fmt][0] - 1) - 1 for fmt in (instruction.a, instruction.b))
    guard = (instruction.length - 1).bit_length()
    product, exponent = x * y, np.where(x * y == 0, 0, ex + ey)
    top = exponent.max(axis=1)
    aligned = jammed(np.abs(product) << (SINGLE + guard - fractions), top[:, None] - exponent)
    total = np.where(product < 0, -aligned, aligned).sum(axis=1)
    dot = odd_f32(np.abs(total), top - bias - SINGLE - guard, total < 0)
    one_sign = (a >> _signs(instruction.a)) == (b >> _signs(instruction.b))
    infinite = (kind_x == 1) | (kind_y == 1)
    plus, minus = ((infinite & (one_sign == same)).any(axis=1) for same in (True, False))
    nan = ((kind_x == 2) | (kind_y == 2) | (infinite & (product == 0))).any(axis=1) | (plus & minus)
    dot = np.where(plus, 0x7F800000, np.where(minus, 0xFF800000, dot))
    nan |= (c & 0x7FFFFFFF) > 0x7F800000
    special, infinite_c = (dot & 0x7FFFFFFF) == 0x7F800000, (c & 0x7FFFFFFF) == 0x7F800000
    nan |= special & infinite_c & (dot != c)
    finite = added_to_odd(np.where(special, 0, dot), np.where(nan | infinite_c, 0, c))
    return np.where(nan, ODD, np.where(special, dot, np.where(infinite_c, c, finite)))


def _signs(fmt: str) -> int:
    exponents, fraction, _ = FIELDS[fmt]
    return exponents + fraction


def sampled(row: str, count: int, seed: int) -> tuple[Ints, Ints, Ints]:
    """Random patterns: of all bits; with exponents that lie near one another; and with many zeros and subnormals."""
    random, instruction = np.random.default_rng(seed), INSTRUCTIONS[row]

    def side(fmt: str, shape: tuple[int, ...]) -> Ints:
        exponents, fraction, _ = FIELDS.get(fmt, (8, 23, True))
        whole = random.integers(0, 1 << (1 + exponents + fraction), shape)
        middle = random.integers(0, 1 << exponents, (count, *(1,) * (len(shape) - 1)))
        field = np.clip(middle + random.integers(-3, 4, shape), 0, (1 << exponents) - 2)
        near = (whole & ~(((1 << exponents) - 1) << fraction)) | field << fraction
        tiny = whole & ~(((1 << exponents) - 1) << fraction) & -(random.integers(0, 2, shape))
        how = random.integers(0, 4, (count, *(1,) * (len(shape) - 1)))
        return np.where(how == 0, whole, np.where(how == 3, tiny, near))

    shape = (count, instruction.length)
    return side(instruction.a, shape), side(instruction.b, shape), side("f32", (count,))


def evaluated(model: Model, a: Ints, b: Ints, c: Ints) -> Ints:
    return evaluate_batch(model, *(part.astype(np.uint64) for part in (a, b, c))).astype(np.int64)


@cache
def recorded() -> dict[str, tuple[Ints, Ints, Ints, Ints]]:
    def numbers(values: list[str] | str) -> int | list[int]:
        return int(values, 16) if isinstance(values, str) else [int(x, 16) for x in values]

    return {row: tuple(np.array([numbers(vector[key]) for vector in own]) for key in "abcd")
            for row, own in Records("riscv.jsonl.gz").items()}  # type: ignore[misc] # fmt: skip


def test_every_result_of_the_simulator_agrees_with_the_model_and_the_oracle() -> None:
    assert sum(len(d) for *_, d in recorded().values()) == 2000
    for row, (*vectors, d) in recorded().items():
        assert (evaluated(parse_reference(row), *vectors) == d).all()
        assert (oracle(row, *vectors) == d).all()


@pytest.mark.parametrize("change", NEARBY)
def test_results_of_the_simulator_contradict_what_is_near(change: str) -> None:
    (*vectors, d) = recorded()["riscv/zvbdota/vfwbdota16bf.n8"]
    assert (evaluated(parse_reference(f"riscv/zvbdota/vfwbdota16bf.n8@{change}"), *vectors) != d).any()


@pytest.mark.parametrize("row", ROWS)
def test_the_oracle_agrees(row: str) -> None:
    count = COUNT if ".n8" in row or ".n4" in row else COUNT // 4
    vectors = sampled(row, count, ROWS.index(row))
    assert (evaluated(parse_reference(row), *vectors) == oracle(row, *vectors)).all()


def pseudo_code(a: Sequence[int], b: Sequence[int]) -> int:
    """The draft's functional description for finite bf16, of as many products as there are, before c is added."""
    guard = (len(a) - 1).bit_length()
    signs = [(x ^ y) >> 15 for x, y in zip(a, b, strict=True)]
    fields = [((x >> 7) & 255, (y >> 7) & 255, x & 127, y & 127) for x, y in zip(a, b, strict=True)]
    products = [((m > 0) << 7 | x) * ((n > 0) << 7 | y) for m, n, x, y in fields]
    references = [(max(m, 1) + max(n, 1)) * (product > 0)
                  for (m, n, *_), product in zip(fields, products, strict=True)]  # fmt: skip
    top, total = max(references), 0
    for sign, product, reference in zip(signs, products, references, strict=True):
        padded, shift = product << 24 + 1 + guard - 16, top - reference
        aligned = padded >> shift | (padded & (1 << shift) - 1 != 0)
        total += -aligned if sign else aligned
    size, negative = abs(total), total < 0
    zeros = 2 * guard + 25 - size.bit_length()
    exponent = top + guard + 1 - zeros - 254 + 127
    if not size:
        return 0
    if exponent >= 255:
        return negative << 31 | 255 << 23
    if exponent >= 1:
        lost = (size << zeros) & (1 << 2 * guard + 1) - 1
        return negative << 31 | exponent << 23 | ((size << zeros) >> 2 * guard + 1 | (lost != 0)) & (1 << 23) - 1
    if exponent < -23:
        return negative << 31 | 1
    return negative << 31 | size >> 23 + exponent | (size & ((1 << 23) - 1) >> 23 + exponent != 0)


def test_subnormal_results_tell_the_draft_s_pseudo_code_from_the_routine() -> None:
    path = Path(str(files("mmaprobe.hypotheses"))) / "vectors" / "riscv.jsonl"
    vectors = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    assert len(vectors) == 2
    for vector in vectors:
        a, b = ([int(x, 16) for x in vector[side]] for side in "ab")
        routine = evaluate_row(parse_reference(vector["model"]), Operands(tuple(a), tuple(b), 0))
        exact = (a[0] >> 7) - 127 + (b[0] >> 7) - 127  # one product of powers of two
        assert routine == 1 << exact + 149
        assert vector["predictions"] == {"routine": f"{routine:08x}", "pseudo-code": f"{pseudo_code(a, b):08x}"}


def test_results_that_are_not_subnormal_are_those_of_the_draft_s_pseudo_code() -> None:
    row = "riscv/zvbdota/vfwbdota16bf.n8"
    a, b, _ = sampled(row, 4000, 1)
    finite = ((a & 0x7FFF) < 0x7F80).all(axis=1) & ((b & 0x7FFF) < 0x7F80).all(axis=1)
    found = evaluated(parse_reference(row), a, b, np.zeros(len(a), dtype=np.int64))
    asked = np.flatnonzero(finite & ((found & 0x7F800000 != 0) | (found == 0)))
    assert len(asked) > 1000
    assert [pseudo_code(a[k].tolist(), b[k].tolist()) for k in asked] == found[asked].tolist()
