"""IEEE addition, multiplication and fused multiply-add: against NumPy, MPFR and exact rationals by sampling, and
proved equal to the floating-point theory of a solver.

A proof covers all five rounding modes in one query, the mode being a free variable of the theory. Whole queries take
minutes for 16 bits; split by cases they take seconds: addition by whether the signs agree, multiplication by the
exponents. Both are proved commutative first, so that half of the cases do. The longest run with the slow proofs. For
f16 the product of a subnormal and a normal number is left to sampling (and to the proof for bf16): the solver's
multiplier and ours then have no common structure, and no engine here finishes within a minute.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, get_args

import gmpy2  # type: ignore[import-untyped]
import numpy as np
import pytest
from numpy.typing import NDArray

from mmaprobe.queries.solvers.contract import Answer
from mmaprobe.queries.solvers.portfolio import solve
from mmaprobe.queries.solvers.smtlib import Query
from mmaprobe.smtmodel.arithmetic import ieee
from mmaprobe.smtmodel.arithmetic.formats import FORMATS, Format
from mmaprobe.smtmodel.arithmetic.rounding import Rounding, Target
from mmaprobe.smtmodel.carriers.algebra import Bits, constant
from mmaprobe.smtmodel.carriers.arrays import ArrayCarrier
from mmaprobe.smtmodel.carriers.terms import TermCarrier
from mmaprobe.smtmodel.evaluate.batch import to_integers
from tests.oracles import oracle

pytestmark = pytest.mark.solvers

MODES: tuple[Rounding, ...] = get_args(Rounding)
THEORY: dict[Rounding, str] = {
    "nearest_even": "RNE",
    "nearest_away": "RNA",
    "toward_zero": "RTZ",
    "up": "RTP",
    "down": "RTN",
}
ARITY = {"add": 2, "mul": 2, "fma": 3}
SECONDS = 300.0  # for one query; the slowest takes a twentieth of it
ARRAYS = ArrayCarrier()


def ours(operation: str, fmt: Format, mode: Rounding, *operands: Bits) -> Bits:
    result: Bits = getattr(ieee, operation)(*operands, fmt, mode)
    return result


def on_arrays(operation: str, fmt: Format, mode: Rounding, columns: Sequence[NDArray[Any]]) -> list[int]:
    operands = [ARRAYS.lanes(column, fmt.width) for column in columns]
    with np.errstate(over="ignore"):
        return [int(x) for x in to_integers(ours(operation, fmt, mode, *operands), len(columns[0]))]


# --- sampling -----------------------------------------------------------------------------------------------------

NUMPY: dict[str, tuple[Any, Any]] = {
    "f16": (np.float16, np.uint16),
    "f32": (np.float32, np.uint32),
    "f64": (np.float64, np.uint64),
}
MPFR: dict[str, tuple[int, int, int]] = {"f16": (11, -23, 16), "f32": (24, -148, 128), "f64": (53, -1073, 1024)}
MPFR_MODES: dict[Rounding, Any] = {
    "nearest_even": gmpy2.RoundToNearest,
    "toward_zero": gmpy2.RoundToZero,
    "up": gmpy2.RoundUp,
    "down": gmpy2.RoundDown,
}


def operands(fmt: Format, count: int, total: int, seed: int) -> Iterator[list[int]]:
    """Operands that meet: exponents near each other or near the ends of the range, simple significands, specials."""
    rng = random.Random(seed)
    largest = (1 << fmt.exponent) - 1
    centres = [0, 1, largest // 2, largest - 2, largest // 4 + 2, fmt.bias - fmt.precision]
    edges = [0, fmt.infinity, fmt.nan & ~fmt.sign_bit, fmt.largest, 1 << fmt.padding]
    for _ in range(total):
        centre, reach = rng.choice(centres), rng.choice([1, 3, fmt.precision + 2])
        row = []
        for _ in range(count):
            field = min(max(centre + rng.randint(-reach, reach), 0), largest)
            fraction = rng.getrandbits(fmt.fraction) & (-1 << rng.choice([0, fmt.fraction // 2, fmt.fraction - 1]))
            pattern = (field << fmt.fraction | fraction) << fmt.padding
            row.append((rng.choice(edges) if rng.random() < 0.05 else pattern) | rng.getrandbits(1) * fmt.sign_bit)
        yield row


def columns_of(rows: Sequence[Sequence[int]]) -> list[NDArray[Any]]:
    return [np.array(column, dtype=np.uint64) for column in zip(*rows, strict=True)]


def canonical(fmt: Format, pattern: int) -> int:
    """The pattern, or one that stands for every NaN."""
    return fmt.nan if oracle.decode(fmt.name, pattern).kind == "nan" else pattern


@pytest.mark.parametrize("name", NUMPY)
@pytest.mark.parametrize("operation", ["add", "mul"])
def test_numpy_agrees(name: str, operation: str) -> None:
    fmt, (real, word) = FORMATS[name], NUMPY[name]
    rng = np.random.default_rng(5)
    columns = columns_of(list(operands(fmt, 2, 30_000, 5)))
    anything = [rng.integers(0, 1 << fmt.width, 30_000, dtype=np.uint64) for _ in range(2)] if fmt.width < 64 else []
    columns = [np.concatenate(pair) for pair in zip(columns, anything, strict=True)] if anything else columns
    x, y = (column.astype(word).view(real) for column in columns)
    with np.errstate(all="ignore"):
        result = x + y if operation == "add" else x * y
    patterns = np.where(np.isnan(result), word(fmt.nan), result.view(word))
    assert on_arrays(operation, fmt, "nearest_even", columns) == patterns.tolist()


@pytest.mark.parametrize("name", MPFR)
@pytest.mark.parametrize("mode", MODES)
def test_mpfr_agrees(name: str, mode: Rounding) -> None:
    """Every operation; MPFR has no rounding to nearest, ties away, for which exact rationals stand in."""
    fmt, (precision, emin, emax), (real, word) = FORMATS[name], MPFR[name], NUMPY[name]
    rounding = MPFR_MODES.get(mode)
    for operation, arity in ARITY.items():
        rows = list(operands(fmt, arity, 600, arity))
        results = on_arrays(operation, fmt, mode, columns_of(rows))
        for row, result in zip(rows, results, strict=True):
            if rounding is None:
                expected = getattr(oracle, f"ieee_{operation}")(name, mode, *row)
            else:
                numbers = [gmpy2.mpfr(float(x), 53) for x in np.array(row, word).view(real)]
                with gmpy2.context(precision=precision, emin=emin, emax=emax, subnormalize=True, round=rounding):
                    number = getattr(gmpy2, operation)(*numbers)
                expected = int(np.array(float(number), real).view(word))
            assert canonical(fmt, result) == canonical(fmt, expected), (operation, row)


SIGNED = [name for name, fmt in FORMATS.items() if fmt.signed]


@pytest.mark.parametrize("name", [name for name in SIGNED if name not in NUMPY])
def test_exact_rationals_agree(name: str) -> None:
    """The other signed formats, those without infinities, NaN or a negative zero included."""
    fmt = FORMATS[name]
    for mode in MODES:
        for operation, arity in ARITY.items():
            rows = list(operands(fmt, arity, 120, 3))
            results = on_arrays(operation, fmt, mode, columns_of(rows))
            expected = [getattr(oracle, f"ieee_{operation}")(name, mode, *row) for row in rows]
            assert [canonical(fmt, x) for x in results] == [canonical(fmt, x) for x in expected], (mode, operation)


@pytest.mark.parametrize("name", SIGNED)
@pytest.mark.parametrize("source", ["f32", "f16"])
def test_conversions(source: str, name: str) -> None:
    """From the oracle's point of view a conversion is an exact number, encoded."""
    wide, fmt = FORMATS[source], FORMATS[name]
    (column,) = columns_of(list(operands(wide, 1, 400, 8)))
    for mode in MODES:
        with np.errstate(over="ignore"):
            lanes = ieee.convert(ARRAYS.lanes(column, wide.width), wide, Target(fmt, mode))
        for pattern, result in zip(column.tolist(), to_integers(lanes, len(column)).tolist(), strict=True):
            x = oracle.decode(source, pattern)
            if x.kind == "finite":
                expected = oracle.encode(name, x.sign, abs(x.value), mode, "ieee")
            elif x.kind == "inf":
                expected = oracle.infinity(name, x.sign)
            else:
                expected = fmt.nan
            assert canonical(fmt, result) == canonical(fmt, expected), (mode, hex(pattern), hex(result))


def test_nan_pattern_is_a_choice() -> None:
    fmt = FORMATS["f16"]
    x, y = (constant(ARRAYS, pattern, 16) for pattern in (fmt.infinity, fmt.infinity | fmt.sign_bit))
    zero = constant(ARRAYS, 0, 16)
    assert ieee.add(x, y, fmt, nan=0x7FFF).value == ieee.mul(x, zero, fmt, nan=0x7FFF).value == 0x7FFF
    assert ieee.fma(x, zero, y, fmt, nan=0x7FFF).value == 0x7FFF
    assert ieee.add(x, y, fmt).value == 0x7E00


# --- proofs -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Operand:
    """An operand of a query: fixed leading bits of exponent and fraction (the sign is free), the rest free."""

    name: str
    prefix: str = ""

    def build(self, carrier: TermCarrier, fmt: Format) -> Bits:
        free = fmt.width - 1 - len(self.prefix)
        bits = carrier.symbol(f"{self.name}_sign", 1)
        if self.prefix:
            bits = bits.concat(constant(carrier, int(self.prefix, 2), len(self.prefix)))
        return bits.concat(carrier.symbol(f"{self.name}_rest", free))


def theory(fmt: Format, term: str) -> str:
    return f"((_ to_fp {fmt.exponent} {fmt.precision}) {term})"


def against_theory(operation: str, fmt: Format, cases: Sequence[Sequence[Operand]], where: str = "true") -> Query:
    """Is there an input of some case, with `where`, and a rounding mode for which we differ from the theory?

    SMT-LIB's `=` on floating-point numbers takes all NaNs as one and tells zeros of different signs apart.
    """
    carrier = TermCarrier()
    definitions, differences = [], []
    for number, case in enumerate(cases):
        built = [operand.build(carrier, fmt) for operand in case]
        definitions += [(operand.name, bits.node) for operand, bits in zip(case, built, strict=True)]
        chosen = "none"
        for mode in MODES:
            name = f"{mode}_{number}"
            definitions.append((name, ours(operation, fmt, mode, *built).node))
            chosen = name if chosen == "none" else f"(ite (= rm {THEORY[mode]}) {name} {chosen})"
        theirs = f"(fp.{operation} rm {' '.join(theory(fmt, operand.name) for operand in case)})"
        differences.append(f"(not (= {theory(fmt, chosen)} {theirs}))")
    epilogue = f"(declare-const rm RoundingMode)\n(assert {where})\n(assert (or false {' '.join(differences)}))"
    return Query((), (), tuple(definitions), epilogue, "QF_BVFP")


def decide(query: Query) -> Answer:
    return solve(query, "bitwuzla", SECONDS)[0]


def proved(query: Query) -> bool:
    answer = decide(query)
    assert answer.status != "unknown", str(answer)
    return answer.status == "unsat"


X, Y, Z = Operand("x"), Operand("y"), Operand("z")


@pytest.mark.parametrize("operation", ARITY)
def test_eight_bits_whole(operation: str) -> None:
    assert proved(against_theory(operation, FORMATS["e5m2"], [(X, Y, Z)[: ARITY[operation]]]))


@pytest.mark.parametrize("name", [pytest.param("f16", marks=pytest.mark.slow), "bf16"])
@pytest.mark.parametrize("signs", ["equal", "opposite"])
def test_addition(name: str, signs: str) -> None:
    """Of a number and one that is not larger: with commutativity, all pairs."""
    fmt = FORMATS[name]
    low = f"(_ extract {fmt.width - 2} 0)"
    same = "(= x_sign y_sign)" if signs == "equal" else "(not (= x_sign y_sign))"
    assert proved(against_theory("add", fmt, [(X, Y)], f"(and (bvuge ({low} x) ({low} y)) {same})"))


@pytest.mark.parametrize(
    ("operation", "name"),
    [("mul", "f16"), ("mul", "bf16"), ("add", "bf16"), pytest.param("add", "f16", marks=pytest.mark.slow)],
)
def test_commutes(operation: str, name: str) -> None:
    carrier, fmt = TermCarrier(), FORMATS[name]
    x, y = (carrier.symbol(side, fmt.width) for side in "xy")
    pairs = [(ours(operation, fmt, mode, x, y).node, ours(operation, fmt, mode, y, x).node) for mode in MODES]
    manager = carrier.manager
    differ = manager.Or([manager.Not(manager.Equals(*pair)) for pair in pairs])
    assert proved(Query((x.node, y.node), (manager.BVULT(x.node, y.node), differ)))


@pytest.mark.parametrize(
    "case", ["normal, normal", pytest.param("subnormal, normal", marks=pytest.mark.slow), "subnormal, subnormal"]
)
def test_multiplication_of_bf16(case: str) -> None:
    """With commutativity, all pairs; zeros count as subnormal, infinities and NaNs as normal."""
    fmt = FORMATS["bf16"]
    conditions = []
    for side, kind in zip("xy", case.split(", "), strict=True):
        is_zero = f"(= ((_ extract 14 7) {side}) #x00)"
        conditions.append(is_zero if kind == "subnormal" else f"(not {is_zero})")
    assert proved(against_theory("mul", fmt, [(X, Y)], f"(and {' '.join(conditions)})"))


#: the exponents of normal f16 numbers, by their leading bits
PREFIXES = [*("1" * k + "0" for k in range(1, 5)), *("0" * k + "1" for k in range(1, 5))]


@pytest.mark.slow
@pytest.mark.parametrize("first", range(len(PREFIXES)))
def test_multiplication_of_normal_f16(first: int) -> None:
    """One prefix against itself and all after it."""
    cases = [
        (Operand(f"x{number}", PREFIXES[first]), Operand(f"y{number}", second))
        for number, second in enumerate(PREFIXES[first:])
    ]
    assert proved(against_theory("mul", FORMATS["f16"], cases))


@pytest.mark.parametrize("prefixes", [("00000", "00000"), ("11111", "1"), ("11111", "0")])
def test_multiplication_of_special_f16(prefixes: tuple[str, str]) -> None:
    """Subnormal by subnormal; infinity and NaN by anything."""
    assert proved(against_theory("mul", FORMATS["f16"], [(Operand("x", prefixes[0]), Operand("y", prefixes[1]))]))


@pytest.mark.slow
@pytest.mark.parametrize("leading", range(1 << 7))
def test_multiplication_of_subnormal_f16_proved(leading: int) -> None:
    """Every subnormal (and zero) of eight neighbours by anything: the case that the solvers find hardest."""
    cases = [(Operand("x", f"00000{leading:07b}"), Operand("y"))]
    assert proved(against_theory("mul", FORMATS["f16"], cases))


def test_multiplication_of_subnormal_f16() -> None:
    """What only the slow tests prove: every subnormal by many normal numbers, in every mode, against binary64.

    The product of two f16 numbers is exact in binary64, and so is its scaling into the subnormals of f16.
    """
    fmt = FORMATS["f16"]
    rng = np.random.default_rng(9)
    x = np.tile(np.arange(1, 1 << 10, dtype=np.uint64), 40)
    y = rng.integers(1 << 10, fmt.infinity, len(x), dtype=np.uint64)
    x = x | (rng.integers(0, 2, len(x), dtype=np.uint64) << np.uint64(15))
    real = [column.astype(np.uint16).view(np.float16).astype(np.float64) for column in (x, y)]
    product = real[0] * real[1]
    unit = np.exp2(np.maximum(np.frexp(product)[1] - 1, -14) - 10.0)
    steps = product / unit
    away = np.copysign(np.floor(np.abs(steps) + 0.5), steps)
    rounded: dict[Rounding, Callable[[Any], Any]] = {
        "nearest_even": np.rint,
        "nearest_away": lambda _: away,
        "toward_zero": np.trunc,
        "up": np.ceil,
        "down": np.floor,
    }
    for mode, act in rounded.items():
        expected = (act(steps) * unit).astype(np.float16).view(np.uint16)
        assert on_arrays("mul", fmt, mode, [x, y]) == expected.tolist(), mode


# --- the machinery notices a wrong rounding -----------------------------------------------------------------------


@pytest.mark.parametrize(("mode", "other"), [("nearest_even", "toward_zero"), ("nearest_away", "nearest_even")])
@pytest.mark.parametrize(("name", "operation"), [("f16", "add"), ("bf16", "mul"), ("e5m2", "fma")])
def test_a_wrong_rounding_is_refuted(name: str, operation: str, mode: Rounding, other: Rounding) -> None:
    """Our result in one mode against the theory in another; the answer is confirmed outside of the solver."""
    fmt, carrier = FORMATS[name], TermCarrier()
    names = "xyz"[: ARITY[operation]]
    symbols = [carrier.symbol(side, fmt.width) for side in names]
    result = ours(operation, fmt, mode, *symbols).node
    theirs = f"(fp.{operation} {THEORY[other]} {' '.join(theory(fmt, side) for side in names)})"
    wrong = f"(assert (not (= {theory(fmt, 'ours')} {theirs})))"
    inputs = tuple(symbol.node for symbol in symbols)
    answer = decide(Query(inputs, (), (("ours", result),), wrong, "QF_BVFP"))
    assert answer.status == "sat"
    row = [answer.values[side] for side in names]
    exact = partial(getattr(oracle, f"ieee_{operation}"), name)
    (got,) = on_arrays(operation, fmt, mode, columns_of([row]))
    assert canonical(fmt, got) == canonical(fmt, exact(mode, *row))
    assert canonical(fmt, got) != canonical(fmt, exact(other, *row))
    right = wrong.replace(THEORY[other], THEORY[mode])
    fixed = (
        f"{right}{''.join(f'(assert (= {side} (_ bv{x} {fmt.width})))' for side, x in zip(names, row, strict=True))}"
    )
    assert proved(Query(inputs, (), (("ours", result),), fixed, "QF_BVFP"))
