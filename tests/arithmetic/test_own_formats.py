"""Formats that have no row: what their spellings stand for, and every pattern and product of them by the oracle."""

from __future__ import annotations

import json
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from click.testing import CliRunner
from gmpy2 import mpq
from numpy.typing import NDArray

import mmaprobe
from benchmarks import odd_units as odd_units  # adds formats to the oracle's, which are tested as well
from benchmarks import statements as statements  # adds formats to the oracle's, which are tested as well
from mmaprobe.cli.main import main
from mmaprobe.smtmodel.arithmetic import ieee
from mmaprobe.smtmodel.arithmetic.decode import unpack
from mmaprobe.smtmodel.arithmetic.display import exact_value
from mmaprobe.smtmodel.arithmetic.formats import FORMATS, SPELLINGS, format_named
from mmaprobe.smtmodel.arithmetic.ordering import negated, pattern_key
from mmaprobe.smtmodel.arithmetic.rounding import ROUNDINGS, Target
from mmaprobe.smtmodel.base.errors import MmaprobeError
from mmaprobe.smtmodel.carriers.arrays import ArrayCarrier
from mmaprobe.smtmodel.carriers.terms import TermCarrier
from mmaprobe.smtmodel.evaluate.batch import evaluate_batch
from mmaprobe.smtmodel.evaluate.compiled import compile_model
from mmaprobe.smtmodel.evaluate.numbers import from_numbers, nans, to_numbers, type_of
from mmaprobe.smtmodel.tables.reference import parse_reference
from mmaprobe.smtmodel.units.unitfile import parse_unit, unit_text
from tests.arithmetic.test_oracle_formats import grid, neighbours
from tests.oracles import oracle
from tests.oracles.termeval import evaluate_term

pytestmark = pytest.mark.compilers

Patterns = NDArray[np.uint64]
OWN = [name for name in oracle.FORMATS if name not in FORMATS]
SIGNED = [name for name in OWN if oracle.FORMATS[name].signed]
CARRIER = ArrayCarrier()


def run(*arguments: str, code: int = 0) -> str:
    result = CliRunner().invoke(main, arguments)
    assert result.exit_code == code, result.output
    return result.stdout if code == 0 else result.stderr


# --- spellings --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("spelled", "name"),
    [
        ("e5m10_ieee", "f16"),
        ("e5m10b15_ieee", "f16"),
        ("e4m3_all_ones", "e4m3"),
        ("e2m1_none", "e2m1"),
        ("binary8p4sf", "e4m3fnuz"),
        ("e5m2b16_negative_zero", "e5m2fnuz"),
        ("binary8p3", "binary8p3se"),
        ("e4m3b8_extended", "binary8p4se"),
        ("ue4m4b8_all_ones", "binary8p5uf"),
        ("e4m3b7_ieee", "e4m3_ieee"),
        ("e4m3b7_extended", "e4m3_extended"),
    ],
)
def test_two_spellings_of_a_format_are_one_format(spelled: str, name: str) -> None:
    assert format_named(spelled) == format_named(name)
    assert format_named(spelled).name == name


@pytest.mark.parametrize("name", OWN)
def test_the_fields_are_those_of_the_oracle(name: str) -> None:
    fmt, other = format_named(name), oracle.FORMATS[name]
    assert (fmt.name, fmt.exponent, fmt.fraction, fmt.emin) == (
        name,
        other.exponent_bits,
        other.mantissa_bits,
        other.emin,
    )
    assert (fmt.signed, fmt.largest) == (other.signed, other.largest)
    assert fmt.nan == (other.nan if other.specials != "none" else 0)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("e1m3_ieee", "it takes 2 to 15 exponent and 1 to 52 fraction bits"),
        ("e16m3_none", "16 exponent"),
        ("e15m52_none", "68 bits are too many"),
        ("e4m3b99999_ieee", "the bias 99999 is impossible"),
        ("ue4m3_negative_zero", "an unsigned format has no -0"),
        ("ue1m0_extended", "no pattern is left for a normal number"),
        ("binary2p1", "K is from 3 to 64, and the precision from 1 to K - 1"),
        ("binary8p8", "the precision from 1 to K - 1"),
        ("binary8p9ue", "the precision from 1 to K"),
        ("binary8p0", "the precision"),
        ("e4m4", "did you mean 'e4m3'?"),
        ("e4m3_unused", "unknown format"),
    ],
)
def test_formats_that_cannot_be(name: str, message: str) -> None:
    with pytest.raises(MmaprobeError, match=message.replace("?", r"\?")) as caught:
        format_named(name)
    assert name in str(caught.value)
    assert message in run(
        "order", "--device", "model:ieee/fma/f16", "--formats", f"{name},f16,f32", "--length", "4", code=2
    )


def test_values_of_the_report() -> None:
    """Some values of binary8p3 and binary8p4 in the interim report of IEEE P3109: the least, one, the largest."""
    known = {"binary8p3": {1: "1/131072", 0x40: "1", 0x7E: "49152"}, "binary8p4": {1: "1/1024", 0x40: "1", 0x7E: "224"}}
    for name, values in known.items():
        fmt = format_named(name)
        assert {pattern: str(exact_value(pattern, fmt)) for pattern in values} == values
        assert [exact_value(pattern, fmt) for pattern in (0, 0x7F, 0x80, 0xFF)] == [0, "inf", "nan", "-inf"]


# --- every pattern ----------------------------------------------------------------------------------------------------


def patterns(name: str) -> Patterns:
    return np.arange(1 << format_named(name).width, dtype=np.uint64)


@pytest.mark.parametrize("name", OWN)
def test_every_pattern(name: str) -> None:
    fmt = format_named(name)
    kinds = {"nan": "nan", "inf": "inf"}
    for pattern in patterns(name).tolist():
        known = oracle.decode(name, pattern)
        wanted: Fraction | str = kinds.get(known.kind, known.value)
        if known.sign and wanted in ("inf", 0):
            wanted = f"-{wanted}"
        assert exact_value(pattern, fmt) == wanted, pattern
    found = unpack(CARRIER.lanes(patterns(name), fmt.width), fmt)
    is_nan = np.broadcast_to(
        np.asarray(found.is_nan.node if found.is_nan.value is None else found.is_nan.value), 1 << fmt.width
    )
    assert np.array_equal(is_nan, nans(patterns(name), fmt))


@pytest.mark.parametrize("name", OWN)
def test_the_order_of_patterns_is_that_of_numbers(name: str) -> None:
    fmt = format_named(name)
    numbers = {n: oracle.decode(name, n) for n in patterns(name).tolist()}
    values = {n: x.value if x.kind == "finite" else (-1 if x.sign else 1) * Fraction(2) ** 500
              for n, x in numbers.items() if x.kind != "nan"}  # fmt: skip
    lanes = CARRIER.lanes(np.array(list(values), dtype=np.uint64), fmt.width)
    key = pattern_key(lanes, fmt)
    signed = np.asarray(key.node).astype(np.int64)
    signed -= (signed >> (key.width - 1)) << key.width
    assert sorted(zip(signed.tolist(), values.values(), strict=True)) == sorted(
        zip(signed.tolist(), values.values(), strict=True), key=lambda pair: pair[1]
    )
    if fmt.signed:
        for n, m in zip(values, np.asarray(negated(lanes, fmt).node).tolist(), strict=True):
            assert m in values
            least = fmt.complement and n == fmt.sign_bit  # the least integer has no opposite
            assert m == n if least else values[m] == -values[n]


@pytest.mark.parametrize("name", SIGNED)
def test_every_rounding(name: str) -> None:
    """Numbers at and between neighbours, and beyond the largest, in every direction and overflow."""
    fmt, f64 = format_named(name), FORMATS["f64"]
    beyond = grid(name)[-1]
    wide = [low + share * (high - low) for low, high in (*neighbours(name), (beyond, 2 * beyond))
            for share in (mpq(0), mpq(1, 8), mpq(1, 2), mpq(7, 8))]  # fmt: skip
    numbers = np.array([float(x) for x in wide] + [-float(x) for x in wide])
    lanes = CARRIER.lanes(numbers.view(np.uint64), 64)
    exact = list(zip(np.signbit(numbers).tolist(), [*wide, *wide], strict=True))
    for mode in (*ROUNDINGS, "to_odd"):
        inside = [oracle.encode(name, *x, mode) if x[1] <= grid(name)[-2] else None for x in exact]
        for overflow in ("infinity", "saturate", "ieee"):
            target = Target(fmt, mode, overflow)  # type: ignore[arg-type]
            found = np.asarray(ieee.convert(lanes, f64, target).node).tolist()
            for x, kept, d in zip(exact, inside, found, strict=True):
                wanted = oracle.encode(name, *x, mode, overflow) if kept is None else kept
                same = d == wanted or {oracle.decode(name, n).kind for n in (d, wanted)} == {"nan"}
                assert same, (mode, overflow, x)


def some_slow(name: str) -> Any:
    quick = ("e4m3_ieee", "binary6p3se", "binary8p1se", "binary8p3se", "binary8p4se")
    return pytest.param(name, marks=() if name in quick else pytest.mark.slow)


@pytest.mark.parametrize("name", [some_slow(n) for n in SIGNED if oracle.FORMATS[n].specials != "none"])
def test_every_product_and_sum(name: str) -> None:
    """All pairs of factors with several addends, on arrays, in C and as terms: the fused multiply-add of IEEE."""
    model, fmt, other = parse_reference(f"ieee/fma/{name}"), format_named(name), oracle.FORMATS[name]
    every = patterns(name)
    a, b = (side.ravel() for side in np.meshgrid(every, every))
    numbers = [oracle.decode(name, n) for n in every.tolist()]
    rng = np.random.default_rng(len(name) + other.mantissa_bits)
    found_in: dict[tuple[str, bool, Fraction], int] = {}
    different: list[oracle.Decoded] = []
    product = np.empty(len(a), dtype=np.int64)  # the place of each in `different`
    for place, (x, y) in enumerate(zip(a.tolist(), b.tolist(), strict=True)):
        z = oracle.multiply(numbers[x], numbers[y])
        product[place] = known = found_in.setdefault((z.kind, z.sign, z.value), len(different))
        if known == len(different):
            different.append(z)

    def fma(z: oracle.Decoded, addend: oracle.Decoded) -> int:
        if (special := oracle.special_sum([z, addend])) is not None:
            return other.nan if special.kind == "nan" else oracle.infinity(name, special.sign)
        total = z.value + addend.value
        sign = total < 0 if total else oracle.negative_zero([z, addend], "nearest_even")
        return oracle.encode(name, sign, abs(total), "nearest_even", "ieee")

    compiled = compile_model(model)
    for c in (0, fmt.largest, 1 | fmt.sign_bit, fmt.infinity, int(rng.integers(1 << fmt.width))):
        addend = np.full(len(a), c, np.uint64)
        found = evaluate_batch(model, a[:, None], b[:, None], addend)
        wanted = np.array([fma(z, numbers[c]) for z in different], dtype=np.uint64)[product]
        assert np.array_equal(without_payload(found, name), wanted)
        if compiled is not None:
            tile = compiled.tile(every[:, None], every[None], np.full((len(every), len(every)), c, np.uint64))
            assert np.array_equal(without_payload(tile.T.ravel(), name), wanted)
        some = rng.choice(len(a), 400)
        terms = as_terms(name, a[some], b[some], addend[some])
        assert np.array_equal(without_payload(terms, name), wanted[some])


def without_payload(results: NDArray[Any], name: str) -> Patterns:
    found = np.asarray(results, dtype=np.uint64)
    return np.where(nans(found, format_named(name)), np.uint64(oracle.FORMATS[name].nan), found)


def as_terms(name: str, *sides: Patterns) -> Patterns:
    carrier, fmt = TermCarrier(), format_named(name)
    symbols = [carrier.symbol(letter, fmt.width) for letter in "abc"]
    result = ieee.fma(*symbols, fmt)
    return np.asarray(evaluate_term(result.node, dict(zip("abc", sides, strict=True)))).astype(np.uint64)


@pytest.mark.parametrize("name", ["e4m3_ieee", "e3m4_ieee", "e4m3b11_negative_zero"])
def test_arrays_of_ml_dtypes(name: str) -> None:
    kind = {"e4m3_ieee": ml_dtypes.float8_e4m3, "e3m4_ieee": ml_dtypes.float8_e3m4}.get(
        name, ml_dtypes.float8_e4m3b11fnuz
    )
    fmt = format_named(name)
    assert type_of(fmt) == type_of(replace(fmt, name="mine")) == np.dtype(kind)
    numbers = np.array([[0.5, -3.0]]).astype(kind)
    assert np.array_equal(from_numbers(numbers, fmt), numbers.view(np.uint8))
    assert to_numbers(from_numbers(np.array([[0.5, -3.0]]), fmt), fmt).tolist() == [[0.5, -3.0]]
    assert type_of(format_named("binary8p3")) == np.uint8
    assert type_of(format_named("e5m6_ieee")) == np.uint16


# --- in every place ---------------------------------------------------------------------------------------------------

UNIT = """unit: own
formats: {a: binary8p4, b: e3m4_ieee, c: binary8p3, d: binary8p3, scale: binary8p1uf}
length: 4
scale_block: 4
roundings:
  r: round(binary8p3, toward_zero)
steps:
  d: r(fused(each(k in range(4), scale(a[k] * b[k], scale_a[0], scale_b[0])), c, F=9))
"""
PLAIN = UNIT.replace(", scale: binary8p1uf", "").replace("scale_block: 4\n", "")
PLAIN = PLAIN.replace("scale(a[k] * b[k], scale_a[0], scale_b[0])", "a[k] * b[k]")
FORMATS_OF = "binary8p4,e3m4_ieee,binary8p3,binary8p3"
PLAN = """plan: mine
formats: {a: binary8p4, b: e3m4_ieee, c: e5m6_ieee, d: e5m6_ieee}
units: {u: own.yaml}
roundings: {r: round(e5m6_ieee), s: round(binary8p3)}
steps:
  d: r(exact(sum(split(2, chain(u), s)), c))
"""
QUESTION = """id: mine
question: Does the rounding matter?
source: here
model: ieee/fma/binary8p4
hypotheses:
  zero: {output_rounding: toward_zero}
  up: {output_rounding: up}
expect: different
"""


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.chdir(tmp_path)
    for name, text in {"scaled": UNIT, "own": PLAIN, "plan": PLAN, "question": QUESTION}.items():
        Path(f"{name}.yaml").write_text(text, encoding="utf-8")
    Path("other.yaml").write_text(PLAIN.replace("F=9", "F=8"), encoding="utf-8")
    return "own.yaml"


def test_in_a_unit_file() -> None:
    unit = parse_unit(UNIT, "own.yaml")
    assert [unit.a.name, unit.d.name] == ["binary8p4se", "binary8p3se"]
    assert parse_unit(unit_text(unit), "own.yaml") == unit
    assert "own_formats" not in unit_text(unit)
    mine = "own_formats: {e4m3_ieee: {exponent: 5, fraction: 2, specials: ieee}}\nformats:"
    with pytest.raises(MmaprobeError, match="the spelling of a format"):
        parse_unit(UNIT.replace("formats:", mine, 1), "own.yaml")
    named = UNIT.replace(
        "formats:", mine.replace("e4m3_ieee", "mine").replace("specials", "signed: false, specials"), 1
    )
    scaled = parse_unit(named.replace("binary8p1uf", "mine"), "own.yaml")
    assert (scaled.scale is not None and scaled.scale.signed, scaled.scale and scaled.scale.width) == (False, 7)
    assert parse_unit(unit_text(scaled), "own.yaml") == scaled


def test_in_questions_about_units(own: str) -> None:
    run("distinguish", own, "other.yaml", "--solver", "bitwuzla", "-o", "v.jsonl")
    row = json.loads(Path("v.jsonl").read_text(encoding="utf-8"))
    assert row["predictions"]["left"] != row["predictions"]["right"]
    assert (len(row["a"][0]), len(row["c"])) == (2, 2)
    assert "d: r(fused(" in run("explain", own, "v.jsonl:1")
    Path("observed.jsonl").write_text(json.dumps({**row, "model": own, "d": row["predictions"]["left"]}) + "\n")
    run("evaluate", "observed.jsonl")
    run("export", "observed.jsonl", "--format", "npz", "-o", "v.npz")
    assert np.load("v.npz")["a"].dtype == np.uint8
    run("export", "observed.jsonl", "--format", "smt2", "-o", "v.smt2")
    run("datasheet", own, "-o", "sheet.html", "--limit", "0")
    assert (
        json.loads(run("prove", "scaled.yaml", "scaled.yaml", "--solver", "bitwuzla", "--json"))["verdict"] == "equal"
    )
    assert json.loads(run("prove", "--property", "error-bound", own, "--json"))["verdict"] == "holds"
    run("distinguish", "question.yaml", "--solver", "bitwuzla")


def test_in_questions_to_devices(own: str) -> None:
    tree = json.loads(run("order", "--device", f"model:{own}", "--formats", FORMATS_OF, "--length", "4", "--json"))
    assert (tree["revealed"], tree["formats"]["d"]) == (True, "binary8p3se")
    chain = "ieee/fma/binary8p3"
    built = ("identify", "--device", f"model:{chain}", "--formats", ",".join(["binary8p3"] * 4), "--length", "1")
    run(*built, "--save", "found.yaml")
    assert "r(exact(a[0] * b[0], c))" in Path("found.yaml").read_text(encoding="utf-8")
    scale = ("--scale", "binary8p4/4")
    assert "has a sign" in run(
        "identify", "--device", f"model:{own}", "--formats", FORMATS_OF, "--length", "4", *scale, code=2
    )


def test_in_matrices_and_plans(own: str) -> None:
    rng = np.random.default_rng(0)
    a, b = rng.integers(0, 128, (5, 8), dtype=np.uint8), rng.integers(0, 0x70, (8, 6), dtype=np.uint8)
    np.save("a.npy", a)
    np.save("b.npy", b)
    for engine in ("numpy", "compiled"):
        run("simulate", "a.npy", "b.npy", "-o", f"{engine}.npy", "--model", own, "--engine", engine)
    found = np.load("numpy.npy")
    assert found.dtype == np.uint8
    assert np.array_equal(found, np.load("compiled.npy"))
    assert np.array_equal(found, mmaprobe.matmul(a, b.view(ml_dtypes.float8_e3m4), unit=own))
    assert mmaprobe.matmul(np.eye(2, 4), np.eye(4, 2), unit=own, convert="nearest_even").tolist() == [[64, 0], [0, 64]]
    run("simulate", "a.npy", "b.npy", "-o", "d.npy", "--plan", "plan.yaml")
    assert np.load("d.npy").dtype == np.uint16
    assert run("simulate", "a.npy", "b.npy", "-o", "d.npy", "--model", f"{chain_of(4)}") == ""


def chain_of(length: int) -> str:
    """A row of the table with another format of results, which its next step takes as its addend."""
    return f"ieee/fma/binary8p3.binary8p4.e3m4_ieee.binary8p3@length={length}"


@pytest.mark.parametrize(
    ("tail", "result"),
    [("output=e5m6_ieee", "e5m6_ieee"), ("output=e5m10_ieee", "f16"), ("product=rounded_binary8p4", "f32"),
     ("output=bf16,nan=none", "bf16")],
)  # fmt: skip
def test_in_a_parameter(tail: str, result: str) -> None:
    model = parse_reference(f"hopper/mma/m16n8k16.f32.f16.f16.f32@{tail}")
    assert model.d.name == result
    assert parse_reference(model.reference).unit == model.unit


@pytest.mark.parametrize(
    ("tail", "message"),
    [
        ("output=e4m4", "unknown value"),
        ("output=ue4m3", "ue4m3 has no sign"),
        ("output=binary8p9", "the precision"),
        ("scale_format=binary8p3", "binary8p3 has a sign"),
    ],
)
def test_not_in_a_parameter(tail: str, message: str) -> None:
    with pytest.raises(MmaprobeError, match=message):
        parse_reference(f"hopper/mma/m16n8k16.f32.f16.f16.f32@{tail}")


def test_a_format_without_one() -> None:
    """A bias that leaves no pattern for 1: what begins at one begins at the number next to it."""
    assert [hex(format_named(name).one) for name in ("e4m3_ieee", "e4m3b0_ieee", "e4m3b40_ieee")] == [
        "0x38",
        "0x8",
        "0x70",
    ]
    small = "ieee/fma/e4m3b40_ieee"
    assert json.loads(run("distinguish", small, f"{small}@output_rounding=up", "--solver", "bitwuzla"))["predictions"]


def test_the_spellings_are_listed() -> None:
    listed = run("list", "formats")
    assert all(spelling in listed for spelling in SPELLINGS)
