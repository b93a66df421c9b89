"""Sparse instructions: the dense row, with zeros in the places that the metadata leaves out."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from numpy.typing import NDArray

from mmaprobe.cli.main import main
from mmaprobe.smtmodel.arithmetic.formats import FORMATS
from mmaprobe.smtmodel.base.errors import ParameterError
from mmaprobe.smtmodel.evaluate.batch import evaluate_batch, evaluate_row
from mmaprobe.smtmodel.evaluate.operands import Operands
from mmaprobe.smtmodel.tables.catalogue import catalogue
from mmaprobe.smtmodel.tables.instructions import INSTRUCTIONS
from mmaprobe.smtmodel.tables.reference import parse_reference
from mmaprobe.smtmodel.tables.sparse import sparse_rows, spread
from tests.cpu import Inputs, Vectors, differing
from tests.oracles import node_oracle
from tests.units.test_nodes import oracle

Whole = NDArray[np.int64]

AMPERE = "ampere/mma_sp/m16n8k32.f32.f16.f16.f32"


def test_every_row_is_of_a_dense_one_and_says_that_it_is_inferred() -> None:
    listed = {row["id"]: row for row in catalogue()}
    assert len(sparse_rows()) == 80
    for name, row in sparse_rows().items():
        model = parse_reference(name)
        (dense,) = re.findall(r": as (\S+) adds, zeros", listed[name]["source"])
        assert listed[name]["evidence"] == "inferred"
        assert model.length == row.length == row.shape[2]
        assert row.length in (INSTRUCTIONS[dense].length, 2 * INSTRUCTIONS[dense].length)
        assert model.unit == parse_reference(f"{dense}@length={row.length}").unit


@pytest.mark.parametrize("name", ["volta/mma_sp/m8n8k8.f32.f16.f16.f32", "hopper/mma_sp/m16n8k64.f32.e4m3.e4m3.f32",
                                  "cdna3/smfmac/f32_16x16x16_xf32"])  # fmt: skip
def test_what_is_no_sparse_instruction(name: str) -> None:
    with pytest.raises(Exception, match="of sparse instructions"):
        parse_reference(name)


@pytest.mark.parametrize("fmt", ["f16", "tf32"])
def test_kept_elements_are_spread(fmt: str) -> None:
    rng = np.random.default_rng(1)
    half = 1 if fmt == "tf32" else 2
    places = np.stack([np.sort(rng.permuted(np.arange(2 * half))[:half]) for _ in range(40)]).reshape(5, -1)
    kept = rng.integers(1, 100, places.shape)
    whole, there = spread(kept, places, FORMATS[fmt])
    for i in range(5):
        expected = [0] * (2 * places.shape[1])
        for j in range(places.shape[1]):
            expected[2 * half * (j // half) + places[i, j]] = kept[i, j]
        assert whole[i].tolist() == expected
        assert (there[i] == (whole[i] > 0)).all()


@pytest.mark.parametrize("places", [[[1, 0]], [[1, 1]], [[3, 4]], [[-1, 2]], [[0, 1, 2]], [[0]]])
def test_metadata_that_does_not_fit(places: list[list[int]]) -> None:
    with pytest.raises(ParameterError, match="metadata"):
        spread(np.ones((1, 2), dtype=np.uint16), np.array(places), FORMATS["f16"])


def simulated(folder: Path, *names: str, code: int = 0) -> str:
    files = [str(folder / f"{name}.npy") for name in names]
    run = CliRunner().invoke(main, ["simulate", *files, "--metadata", str(folder / "e.npy"), "--model", AMPERE, "-o",
                                    str(folder / "d.npy")])  # fmt: skip
    assert run.exit_code == code, run.output
    return run.output


def test_simulate_with_metadata(tmp_path: Path) -> None:
    """Rows that keep different places, a K of two instructions, an infinity that no row reads."""
    rng, model = np.random.default_rng(2), parse_reference(AMPERE)
    places = np.array([[0, 3] * 16, [1, 2] * 16, [0, 3] * 16])
    a, b, c = (rng.integers(0x3000, 0x4000, size, dtype=np.uint16) for size in ((3, 32), (64, 2), (3, 2)))
    b[5] = 0x7C00  # place 1 of a four: the middle row reads it
    c = c.astype(np.uint32) << 16
    for name, matrix in (("a", a), ("b", b), ("c", c), ("e", places)):
        np.save(tmp_path / f"{name}.npy", matrix)
    simulated(tmp_path, "a", "b", "c")
    found = np.load(tmp_path / "d.npy")
    assert np.isinf(found[1]).all()
    assert np.isfinite(found[[0, 2]]).all()
    for i in (0, 2):
        for j in range(2):
            columns = [4 * (n // 2) + places[i, n] for n in range(32)]
            d = int(c[i, j])
            for tile in (0, 32):
                row, column = [0] * 32, [0] * 32
                for n, k in enumerate(columns):
                    if tile <= k < tile + 32:
                        row[k - tile], column[k - tile] = int(a[i, n]), int(b[k, j])
                d = evaluate_row(model, Operands(tuple(row), tuple(column), d))
            assert found[i, j].view(np.uint32) == d


def test_metadata_belongs_to_sparse_instructions(tmp_path: Path) -> None:
    for name in "abe":
        np.save(tmp_path / f"{name}.npy", np.zeros((2, 2)))
    files = [str(tmp_path / f"{name}.npy") for name in "ab"]
    run = CliRunner().invoke(main, ["simulate", *files, "--metadata", str(tmp_path / "e.npy"), "-o", "d.npy", "--model",
                                    "ampere/mma/m16n8k16.f32.f16.f16.f32"])  # fmt: skip
    assert run.exit_code == 2
    assert "no sparse instruction" in run.output
    assert "rising" in simulated(tmp_path, "a", "b", code=2)


# -- each row against sums of the kept products alone, in whole numbers

#: exponent bits, fraction bits, whether the top exponent is one of numbers (E4M3)
FIELDS = {"f16": (5, 10, False), "bf16": (8, 7, False), "tf32": (8, 10, False), "f32": (8, 23, False),
          "e4m3": (4, 3, True), "e5m2": (5, 2, False), "e8m13": (8, 13, False),
          "e4m3fnuz": (4, 3, True), "e5m2fnuz": (5, 2, True)}  # fmt: skip
#: unused low bits of a pattern
PADDING = {"tf32": 13, "e8m13": 10}
#: fraction bits of the aligned terms and products of a step, zeros among them (of tf32 half of them), by what has it
STEPS = {"ampere/mma_sp": (24, 8), "ada-lovelace/mma_sp": (24, 8), "hopper/mma_sp": (25, 16),
         "hopper/wgmma_sp": (25, 16), "blackwell/mma_sp": (25, 16), "rtx-blackwell/mma_sp": (25, 16)}  # fmt: skip
FP8_STEPS = {"ada-lovelace/mma_sp": (13, 16), "hopper/wgmma_sp": (13, 32), "rtx-blackwell/mma_sp": (25, 32)}
NVIDIA = [name for name in sparse_rows() if "/smfmac/" not in name]
CDNA3 = [name for name in sparse_rows() if "/smfmac/" in name]
COUNT = 100_000


def parts(patterns: Whole, fmt: str) -> tuple[Whole, Whole, NDArray[np.bool_], NDArray[np.bool_]]:
    """Whole numbers and exponents (value: number * 2^(exponent - fraction)), which are infinite, which NaN; of these
    the number is 1 or -1, of a NaN 0."""
    exponents, fraction, numbers_on_top = FIELDS[fmt]
    patterns = patterns.astype(np.int64) >> PADDING.get(fmt, 0)
    sign = 1 - 2 * (patterns >> exponents + fraction)
    top, digits = (1 << exponents) - 1, patterns & (1 << fraction) - 1
    field = patterns >> fraction & top
    special = (field == top) & ((digits == (1 << fraction) - 1) | (not numbers_on_top))
    if fmt.endswith("fnuz"):  # the pattern of -0 is the NaN
        special = patterns == 1 << exponents + fraction
    nan = special & ((digits != 0) | numbers_on_top)
    number = sign * np.where(special, 1, digits | np.where(field > 0, 1 << fraction, 0))
    bias = (top >> 1) + fmt.endswith("fnuz")
    return np.where(nan, 0, number), np.maximum(field, 1) - bias, special & ~nan, nan


def packed(total: Whole, last: Whole, fmt: str, nearest: bool) -> Whole:
    """total * 2^last as a number of a format, rounded to nearest even or toward zero; every zero is +0."""
    exponents, fraction, _ = FIELDS[fmt]
    bias = (1 << exponents - 1) - 1
    size = np.abs(total)
    exponent = np.maximum(np.frexp(size.astype(np.float64))[1] - 1 + last, 1 - bias)
    shift = exponent - fraction - last
    right, left = np.clip(shift, 0, 62), np.clip(-shift, 0, 62)
    kept = size >> right << left
    if nearest:
        rest, half = size - (size >> right << right), np.int64(1) << np.maximum(right, 1) - 1
        kept += (right > 0) & ((rest > half) | ((rest == half) & (kept & 1 == 1)))
    pattern = np.minimum(kept + (exponent + bias - 1 << fraction), (1 << exponents) - 1 << fraction)
    pattern = np.where(size > 0, pattern, 0)
    signed = np.where((total < 0) & (pattern > 0), pattern | 1 << exponents + fraction, pattern)
    return signed << PADDING.get(fmt, 0)


def kept_sums(name: str, a: Whole, b: Whole, c: Whole) -> Whole:
    """The results of the kept products (count x K / 2), in steps of half as many as a dense instruction takes."""
    row = sparse_rows()[name]
    where = name.rpartition("/")[0]
    bits, step = (FP8_STEPS if row.a in ("e4m3", "e5m2") else STEPS)[where]
    kept = step // (4 if row.a == "tf32" else 2)
    given, result = row.c, parse_reference(name).d.name
    floor = (-14 if result == "f16" else -126) - (7 if bits == 25 or where == "hopper/wgmma_sp" else 6)
    for k in range(0, a.shape[1], kept):
        x, y, z = parts(a[:, k : k + kept], row.a), parts(b[:, k : k + kept], row.b), parts(c[:, None], given)
        products = x[0] * y[0]
        infinite = x[2] | y[2]
        nan = (x[3] | y[3] | (infinite & (products == 0))).any(axis=1) | z[3][:, 0]
        signs = np.sign(np.concatenate([np.where(infinite, products, 0), np.where(z[2], z[0], 0)], axis=1))
        up, down = (signs > 0).any(axis=1), (signs < 0).any(axis=1)
        number = np.concatenate([np.where(infinite, 0, products), np.where(z[2], 0, z[0])], axis=1)
        places = np.array([FIELDS[row.a][1] + FIELDS[row.b][1]] * products.shape[1] + [FIELDS[given][1]])
        exponent = np.concatenate([x[1] + y[1], z[1]], axis=1)
        top = np.maximum(np.where(number == 0, floor, exponent).max(axis=1), floor)
        shift = bits - places - (top[:, None] - exponent)
        cut = np.abs(number) << np.clip(shift, 0, 40) >> np.clip(-shift, 0, 62)
        found = packed((np.sign(number) * cut).sum(axis=1), top - bits, result, result == "f16")
        infinity, negative = (0x7C00, 0xFC00) if result == "f16" else (0x7F800000, 0xFF800000)
        found = np.where(up, infinity, np.where(down, negative, found))
        c, given = np.where(nan | (up & down), 0x7FFF if result == "f16" else 0x7FFFFFFF, found), result
    return c


def masked(name: str, count: int) -> tuple[Vectors, Vectors]:
    """Vectors of the dense unit with zeros in the places left out, and those of the kept products."""
    model, rng = parse_reference(name), np.random.default_rng(7)
    a, b, c = Inputs(model, seed=sum(map(ord, name))).vectors(count)
    group = 2 if sparse_rows()[name].a == "tf32" else 4
    order = np.argsort(rng.random((count, model.length // group, group)), axis=2)[:, :, : group // 2]
    places = (np.sort(order, axis=2) + group * np.arange(model.length // group)[:, None]).reshape(count, -1)
    kept = [np.take_along_axis(side, places, axis=1) for side in (a, b)]
    whole = [np.zeros_like(side) for side in (a, b)]
    for side, own in zip(whole, kept, strict=True):
        np.put_along_axis(side, places, own, axis=1)
    return (whole[0], whole[1], c), (kept[0], kept[1], c)


def agrees(name: str, count: int) -> None:
    vectors, (a, b, c) = masked(name, count)
    wanted = kept_sums(name, a.astype(np.int64), b.astype(np.int64), c.astype(np.int64)).astype(np.uint64)
    found = evaluate_batch(parse_reference(name), *vectors)
    wrong = np.flatnonzero(found != wanted)
    assert not wrong.size, (
        len(wrong),
        [side[wrong[0]].tolist() for side in vectors],
        found[wrong[0]],
        wanted[wrong[0]],
    )


@pytest.mark.parametrize("name", NVIDIA)
def test_sums_of_the_kept_products(name: str) -> None:
    agrees(name, 450)


@pytest.mark.slow
@pytest.mark.parametrize("name", NVIDIA)
def test_sums_of_the_kept_products_of_many_vectors(name: str) -> None:
    agrees(name, COUNT)


def aligned(numbers: Whole, places: Whole, counted: NDArray[np.bool_], exponents: Whole) -> tuple[Whole, Whole]:
    """The sum of numbers * 2^places, each cut toward zero 24 bits below the largest exponent that counts, as a whole
    number of these units; and that exponent."""
    top = np.where(counted, exponents, LEAST).max(axis=1)
    shift = places - (top - 24)[:, None]
    cut = np.abs(numbers) << np.clip(shift, 0, 40) >> np.clip(-shift, 0, 62)
    return (np.sign(numbers) * cut).sum(axis=1), top


LEAST = -5000  # an exponent below all others


def moved(number: Whole, shift: Whole) -> Whole:
    """number * 2^shift, rounded down."""
    return number << np.clip(shift, 0, 40) >> np.clip(-shift, 0, 62)


def smfmac_sums(name: str, a: Whole, b: Whole, c: Whole) -> Whole:
    """CDNA3's results: the products of eight places, of FP8 the even and the odd ones of sixteen, added with 24 bits
    below the largest exponent; that sum and the addend with 32 and 24 below theirs; 32 bits of the total, rounded."""
    row = sparse_rows()[name]
    narrow = row.a.endswith("fnuz")
    step = 16 if narrow else 8
    for k in range(0, a.shape[1], step):
        x, y = parts(a[:, k : k + step], row.a), parts(b[:, k : k + step], row.b)
        z = tuple(side[:, 0] for side in parts(c[:, None], "f32"))
        products, exponents = x[0] * y[0], x[1] + y[1]
        places = exponents - FIELDS[row.a][1] - FIELDS[row.b][1]
        infinite = x[2] | y[2]
        nan = (x[3] | y[3] | (infinite & (products == 0))).any(axis=1) | z[3]
        size = np.frexp(np.abs(products).astype(np.float64))[1] + places
        infinite |= (size > 128) & (products != 0)
        signs = np.concatenate([np.where(infinite, np.sign(products), 0), np.where(z[2], z[0], 0)[:, None]], axis=1)
        up, down = (signs > 0).any(axis=1), (signs < 0).any(axis=1)
        halves = [slice(0, None, 2), slice(1, None, 2)] if narrow else [slice(None)]
        sums = [aligned(*(side[:, half] for side in (products, places, products != 0, exponents))) for half in halves]
        top = np.maximum(sums[0][1], sums[-1][1])
        total = sum(moved(number, where - top) for number, where in sums)
        largest = np.maximum(np.where(z[0] != 0, z[1], LEAST), top)
        added = moved(z[0], z[1] - 23 - (largest - 24)) << 8
        if narrow:
            added = np.where(z[1] < largest - 25, 0, added)
        whole = moved(total, top - largest + 8) + np.where(z[0] != 0, added, 0)
        exponent = np.maximum(np.frexp(np.abs(whole).astype(np.float64))[1] - 1 + largest - 32, -126)
        last = np.maximum(exponent - 31, largest - 32)
        whole = moved(whole, largest - 32 - last)
        found = packed(whole, last, "f32", nearest=True)
        found = np.where((whole < 0) & (found == 0), 1 << 31, found)  # what was cut is a zero with the sum's sign
        found = np.where(up, 0x7F800000, np.where(down, 0xFF800000, found))
        c = np.where(nan | (up & down), 0x7FC00000, found)
    return c


def smfmac_agrees(name: str, count: int) -> None:
    vectors, _ = masked(name, count)
    model = parse_reference(name)
    wanted = smfmac_sums(name, *(side.astype(np.int64) for side in vectors)).astype(np.uint64)
    wrong = differing(model, evaluate_batch(model, *vectors), wanted)
    assert not wrong.size, (len(wrong), [side[wrong[0]].tolist() for side in vectors], hex(wanted[wrong[0]]))


@pytest.mark.parametrize("name", CDNA3)
def test_sums_of_smfmac(name: str) -> None:
    smfmac_agrees(name, 450)


@pytest.mark.slow
@pytest.mark.parametrize("name", CDNA3)
def test_sums_of_smfmac_of_many_vectors(name: str) -> None:
    smfmac_agrees(name, COUNT)


def test_the_oracle_agrees_on_smfmac() -> None:
    for name in CDNA3[::4]:
        vectors, _ = masked(name, 45)
        model = parse_reference(name)
        wanted = np.array(oracle(model.unit, vectors))
        wanted = np.where(wanted == node_oracle.ANY_NAN, model.d.nan, wanted).astype(np.uint64)
        assert not differing(model, evaluate_batch(model, *vectors), wanted).size


def test_sums_of_smfmac_contradict_what_is_near() -> None:
    name = "cdna3/smfmac/f32_16x16x64_fp8_bf8"
    vectors, _ = masked(name, 2000)
    wanted = smfmac_sums(name, *(side.astype(np.int64) for side in vectors)).astype(np.uint64)
    for change in ("fraction_bits=23", "late_fraction_bits=28", "late_rounding=toward_zero", "late_small_addend=keep",
                   "block=8"):  # fmt: skip
        changed = parse_reference(f"{name}@{change}")
        assert differing(changed, evaluate_batch(changed, *vectors), wanted).size, change


def test_the_kept_products_contradict_what_is_near() -> None:
    name = "hopper/mma_sp/m16n8k32.f32.f16.f16.f32"
    vectors, (a, b, c) = masked(name, 2000)
    wanted = kept_sums(name, a.astype(np.int64), b.astype(np.int64), c.astype(np.int64))
    for change in ("fraction_bits=24", "block=8", "block=32", "align_rounding=down", "output_rounding=nearest_even"):
        assert (evaluate_batch(parse_reference(f"{name}@{change}"), *vectors) != wanted).any(), change
