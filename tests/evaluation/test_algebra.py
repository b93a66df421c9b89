"""Every operation of the algebra against plain integers: folded constants, arrays, solver terms, and mixtures."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import product as combinations
from typing import Any

import numpy as np
import pytest
from pysmt.environment import Environment

from mmaprobe.queries.solvers.portfolio import solve
from mmaprobe.queries.solvers.smtlib import Query
from mmaprobe.smtmodel.carriers import algebra
from mmaprobe.smtmodel.carriers.algebra import Bit, Bits, WidthError, constant, truth
from mmaprobe.smtmodel.carriers.arrays import ArrayCarrier
from mmaprobe.smtmodel.carriers.carrier import Carrier
from mmaprobe.smtmodel.carriers.limbs import limbs_of
from mmaprobe.smtmodel.carriers.terms import TermCarrier
from mmaprobe.smtmodel.evaluate.programs import RecordedArrays
from tests.oracles.termeval import evaluate_term

pytestmark = pytest.mark.oracle

Widths = tuple[int, ...]
Row = tuple[int, ...]
NARROW = range(1, 65)
WIDE = (65, 100, 128, 200, 300)
SPREAD = (1, 2, 3, 4, 7, 8, 11, 16, 23, 24, 31, 32, 33, 48, 53, 54, 63, 64, *WIDE)
ROWS = 48
ARRAYS, TERMS = ArrayCarrier(), TermCarrier()


def _refuse(self: Carrier, *arguments: Any) -> Any:
    raise AssertionError("constants must fold without the carrier")


NOTHING: Carrier = type("Nothing", (Carrier,), dict.fromkeys(Carrier.__abstractmethods__, _refuse))()


@dataclass(frozen=True)
class Case:
    """An operation: the widths of its operands for a base width, ours, and what it means for plain integers (the
    base width first)."""

    name: str
    widths: Callable[[int], Widths]
    ours: Callable[..., Bits | Bit]
    plain: Callable[..., int]


def one(w: int) -> Widths:
    return (w,)


def two(w: int) -> Widths:
    return (w, w)


def signed(value: int, width: int) -> int:
    return value - (value >> (width - 1) << width)


def jam(w: int, x: int, n: int) -> int:
    return x >> n | (x >> n << n != x)


def length(w: int, x: int) -> int:
    return w - x.bit_length()


CASES = [
    Case("add", two, lambda x, y: x + y, lambda w, x, y: (x + y) % 2**w),
    Case("sub", two, lambda x, y: x - y, lambda w, x, y: (x - y) % 2**w),
    Case("mul", two, lambda x, y: x * y, lambda w, x, y: (x * y) % 2**w),
    Case("and", two, lambda x, y: x & y, lambda w, x, y: x & y),
    Case("or", two, lambda x, y: x | y, lambda w, x, y: x | y),
    Case("xor", two, lambda x, y: x ^ y, lambda w, x, y: x ^ y),
    Case("invert", one, lambda x: ~x, lambda w, x: 2**w - 1 - x),
    Case("negate", one, lambda x: -x, lambda w, x: -x % 2**w),
    Case("eq", two, lambda x, y: x.eq(y), lambda w, x, y: x == y),
    Case("ult", two, lambda x, y: x.ult(y), lambda w, x, y: x < y),
    Case("ule", two, lambda x, y: x.ule(y), lambda w, x, y: x <= y),
    Case("slt", two, lambda x, y: x.slt(y), lambda w, x, y: signed(x, w) < signed(y, w)),
    Case("sle", two, lambda x, y: x.sle(y), lambda w, x, y: signed(x, w) <= signed(y, w)),
    Case("equals", one, lambda x: x.equals(1), lambda w, x: x == 1),
    Case("any", one, lambda x: x.any(), lambda w, x: x != 0),
    Case("msb", one, lambda x: x.msb(), lambda w, x: x >> (w - 1)),
    Case("middle_bit", one, lambda x: x.bit(x.width // 2), lambda w, x: x >> (w // 2) & 1),
    Case("minimum", two, algebra.minimum, lambda w, x, y: min(x, y)),
    Case("product", lambda w: (w, w // 2 + 1), algebra.product, lambda w, x, y: x * y),
    Case("concat", lambda w: (w, w // 3 + 1), lambda x, y: x.concat(y), lambda w, x, y: x << (w // 3 + 1) | y),
    Case("concat_below", lambda w: (w // 3 + 1, w), lambda x, y: x.concat(y), lambda w, x, y: x << w | y),
    Case("pad", one, lambda x: x.pad(5), lambda w, x: x << 5),
    Case("pad_nothing", one, lambda x: x.pad(0), lambda w, x: x),
    Case("zext", one, lambda x: x.zext(x.width + 9), lambda w, x: x),
    Case("zext_far", one, lambda x: x.zext(x.width + 70), lambda w, x: x),
    Case("sext", one, lambda x: x.sext(x.width + 9), lambda w, x: signed(x, w) % 2 ** (w + 9)),
    Case("sext_far", one, lambda x: x.sext(x.width + 70), lambda w, x: signed(x, w) % 2 ** (w + 70)),
    Case("top", one, lambda x: x.top((x.width + 1) // 2), lambda w, x: x >> (w // 2)),
    Case("truncate", one, lambda x: x.truncate((x.width + 1) // 2), lambda w, x: x % 2 ** ((w + 1) // 2)),
    Case(
        "extract",
        one,
        lambda x: x.extract(x.width - 1 - x.width // 4, x.width // 3),
        lambda w, x: x % 2 ** (w - w // 4) >> (w // 3),
    ),
    Case("leading_zeros", one, lambda x: x.leading_zeros(), length),
    Case("shift_right_jam", two, algebra.shift_right_jam, jam),
    Case("shift_right_jam_narrow", lambda w: (w, w // 2 + 1), algebra.shift_right_jam, jam),
    Case("shift_right_jam_wide", lambda w: (w, w + 7), algebra.shift_right_jam, jam),
    Case("select", lambda w: (1, w, w), lambda p, *xs: algebra.select(p.bit(0), *xs), lambda w, p, x, y: x if p else y),
    Case("bits", one, lambda x: x.any().bits(x.width), lambda w, x: x != 0),
]
SHIFTS: dict[str, Callable[[int, int, int], int]] = {
    "shl": lambda w, x, n: (x << min(n, w)) % 2**w,
    "lshr": lambda w, x, n: x >> n,
    "ashr": lambda w, x, n: (signed(x, w) >> n) % 2**w,
}


def _shifts() -> Iterator[Case]:
    amounts: dict[str, Callable[[int], int]] = {
        "same": lambda w: w,
        "narrower": lambda w: w // 2 + 1,
        "one_bit": lambda w: 1,
        "wider": lambda w: w + 6,
        "much_wider": lambda w: w + 80,
    }
    for name, plain in SHIFTS.items():
        for form, width in amounts.items():
            widths: Callable[[int], Widths] = lambda w, width=width: (w, width(w))  # type: ignore[misc] # noqa: E731
            ours: Callable[..., Bits] = lambda x, n, name=name: getattr(x, name)(n)  # noqa: E731
            yield Case(f"{name}_{form}", widths, ours, plain)


CASES += _shifts()
BY_NAME = {case.name: case for case in CASES}


def row_values(base: int, widths: Widths, rng: random.Random) -> list[Row]:
    """Edges, numbers close to limb boundaries and to the base width, and random numbers of every length."""

    def value(width: int) -> int:
        full = (1 << width) - 1
        edges = [0, 1, full, 1 << (width - 1), full >> 1, base - 1, base, base + 1, 63, 64, 65, 128]
        anything = rng.getrandbits(width)
        some = rng.choice([rng.choice(edges), anything, anything >> rng.randrange(width), rng.randrange(2 * base)])
        return some & full

    return [tuple(value(width) for width in widths) for _ in range(ROWS)]


def array_input(values: Sequence[int], width: int) -> Bits:
    if width <= 64:
        return ARRAYS.lanes(np.array(values, dtype=np.uint64), width)
    limbs = [(low, min(64, width - low)) for low in range(0, width, 64)]
    return Bits(ARRAYS, width, tuple(array_input([x >> low & (1 << n) - 1 for x in values], n) for low, n in limbs))


def array_output(value: Bits | Bit, count: int) -> list[int]:
    limbs = [value] if isinstance(value, Bit) else limbs_of(value)
    total = sum(np.asarray(limb.node).astype(object) << (64 * i) for i, limb in enumerate(limbs))
    return [int(x) for x in np.broadcast_to(np.asarray(total, dtype=object), (count,))]


def evaluate_arrays(case: Case, widths: Widths, rows: Sequence[Row], fixed: Sequence[bool]) -> list[int]:
    """Operands marked `fixed` are constants, those of the first row."""
    operands = [
        constant(ARRAYS, column[0], width) if is_fixed else array_input(column, width)
        for column, width, is_fixed in zip(zip(*rows, strict=True), widths, fixed, strict=True)
    ]
    with np.errstate(over="ignore"):
        return array_output(case.ours(*operands), len(rows))


def evaluate_recorded(case: Case, widths: Widths, rows: Sequence[Row], fixed: Sequence[bool]) -> list[list[int]]:
    """The same by a recording: as the machine in C makes its calls, where there is a compiler, and as NumPy does."""
    operands = [
        constant(ARRAYS, column[0], width) if is_fixed else array_input(column, width)
        for column, width, is_fixed in zip(zip(*rows, strict=True), widths, fixed, strict=True)
    ]
    carrier = RecordedArrays()
    with np.errstate(over="ignore"):
        found = [array_output(carrier.formed(case.name, case.ours, *operands), len(rows))]
        for program, _ in carrier.programs.values():
            program.run = program.by_numpy
            found.append(array_output(carrier.formed(case.name, case.ours, *operands), len(rows)))
    return found


def evaluate_symbols(case: Case, widths: Widths, rows: Sequence[Row], fixed: Sequence[bool]) -> list[int]:
    columns = dict(enumerate(zip(*rows, strict=True)))
    operands = [
        constant(TERMS, columns[i][0], width) if is_fixed else TERMS.symbol(f"v{i}w{width}", width)
        for i, (width, is_fixed) in enumerate(zip(widths, fixed, strict=True))
    ]
    values = {f"v{i}w{width}": columns[i] for i, width in enumerate(widths)}
    return [int(x) for x in evaluate_term(case.ours(*operands).node, values)]


def with_fixed(rows: Sequence[Row], fixed: Sequence[bool]) -> list[Row]:
    return [tuple(f if is_fixed else x for f, x, is_fixed in zip(rows[0], r, fixed, strict=True)) for r in rows]


def mixtures(count: int) -> list[tuple[bool, ...]]:
    """Which operands are constants: none, or some but not all."""
    return [fixed for fixed in combinations((False, True), repeat=count) if not all(fixed)]


@pytest.mark.parametrize("name", BY_NAME)
def test_constants_fold(name: str) -> None:
    case, rng = BY_NAME[name], random.Random(1)
    for base in SPREAD:
        widths = case.widths(base)
        for row in row_values(base, widths, rng):
            result = case.ours(*(constant(NOTHING, x, width) for x, width in zip(row, widths, strict=True)))
            assert result.value is not None
            assert int(result.value) == case.plain(base, *row), (base, row)


@pytest.mark.parametrize("name", BY_NAME)
@pytest.mark.parametrize("bases", [NARROW, WIDE], ids=["narrow", "wide"])
def test_arrays(name: str, bases: Sequence[int], monkeypatch: pytest.MonkeyPatch) -> None:
    for name_, value in (("WORTH", 1), ("BUILT", -1)):  # the machine at once
        monkeypatch.setattr(f"mmaprobe.smtmodel.carriers.recording.{name_}", value)
    case, rng = BY_NAME[name], random.Random(2)
    for base in bases:
        widths = case.widths(base)
        for fixed in mixtures(len(widths)):
            rows = row_values(base, widths, rng)
            expected = [case.plain(base, *row) for row in with_fixed(rows, fixed)]
            assert evaluate_arrays(case, widths, rows, fixed) == expected, (base, fixed)
            assert evaluate_recorded(case, widths, rows, fixed) == 2 * [expected], (base, fixed)


@pytest.mark.parametrize("name", BY_NAME)
def test_terms(name: str) -> None:
    case, rng = BY_NAME[name], random.Random(3)
    for base in SPREAD:
        widths = case.widths(base)
        for fixed in mixtures(len(widths)):
            rows = row_values(base, widths, rng)
            expected = [case.plain(base, *row) for row in with_fixed(rows, fixed)]
            assert evaluate_symbols(case, widths, rows, fixed) == expected, (base, fixed)


@pytest.mark.parametrize("name", SHIFTS)
def test_shifts_by_known_amounts(name: str) -> None:
    rng = random.Random(4)
    for base in (1, 2, 8, 33, 63, 64, 65, 128, 200):
        for amount in {0, 1, 2, base // 2, base - 1, base, base + 1, 63, 64, 65, 2 * base, 1000}:
            case = Case(name, one, lambda x, n=amount: getattr(x, name)(n), SHIFTS[name])
            rows = row_values(base, (base,), rng)
            expected = [case.plain(base, x, amount) for (x,) in rows]
            assert [int(case.ours(constant(NOTHING, x, base)).value or 0) for (x,) in rows] == expected
            assert evaluate_arrays(case, (base,), rows, (False,)) == expected, (base, amount)
            assert evaluate_symbols(case, (base,), rows, (False,)) == expected, (base, amount)


LOGIC: dict[str, tuple[Callable[..., Bit], Callable[[bool, bool, bool], bool]]] = {
    "and": (lambda x, y, z: x & y, lambda x, y, z: x and y),
    "or": (lambda x, y, z: x | y, lambda x, y, z: x or y),
    "xor": (lambda x, y, z: x ^ y, lambda x, y, z: x != y),
    "not": (lambda x, y, z: ~x, lambda x, y, z: not x),
    "choose": (algebra.choose, lambda x, y, z: y if x else z),
    "any_of": (lambda *xs: algebra.any_of(xs), lambda *xs: any(xs)),
    "all_of": (lambda *xs: algebra.all_of(xs), lambda *xs: all(xs)),
}


@pytest.mark.parametrize("name", LOGIC)
def test_truth_values(name: str) -> None:
    """Over every input, with every choice of operands known beforehand."""
    ours, plain = LOGIC[name]
    rows = list(combinations((False, True), repeat=3))
    for fixed in combinations((False, True), repeat=3):
        for base in rows:
            given = [tuple(b if f else x for b, f, x in zip(base, fixed, row, strict=True)) for row in rows]
            expected = [plain(*row) for row in given]
            columns = [array_input(column, 1).bit(0) for column in zip(*rows, strict=True)]
            arrays = [truth(ARRAYS, base[i]) if fixed[i] else columns[i] for i in range(3)]
            assert array_output(ours(*arrays), len(rows)) == expected
            terms = [truth(TERMS, base[i]) if fixed[i] else TERMS.symbol(f"p{i}", 1).bit(0) for i in range(3)]
            values = {f"p{i}": [int(row[i]) for row in rows] for i in range(3)}
            assert evaluate_term(ours(*terms).node, values).tolist() == expected
            if all(fixed):
                assert ours(*(truth(NOTHING, x) for x in base)).value == expected[0]


def family(count: int) -> Callable[[int], Widths]:
    return lambda w: (w,) * count


@pytest.mark.parametrize("count", [1, 2, 3, 4, 5, 9])
def test_max_of(count: int) -> None:
    case = Case("max_of", family(count), lambda *xs: algebra.max_of(xs), lambda w, *xs: max(xs))
    rng = random.Random(count)
    for base in (1, 5, 10, 53, 64, 65, 128, 200):
        for fixed in mixtures(count)[:: max(1, 2**count // 8)]:
            rows = row_values(base, (base,) * count, rng)
            expected = [max(row) for row in with_fixed(rows, fixed)]
            assert evaluate_arrays(case, (base,) * count, rows, fixed) == expected
            assert evaluate_symbols(case, (base,) * count, rows, fixed) == expected
        values = [constant(NOTHING, x, base) for x in rows[0]]
        assert algebra.max_of(values).value == max(rows[0])


def _sum_case(carrier: Carrier, count: int, total: int) -> Case:
    """Operands: `count` signs, then as many magnitudes."""

    def ours(*operands: Bits) -> Bits:
        signs = [sign.bit(0) for sign in operands[:count]]
        return algebra.sum_of(carrier, signs, operands[count:], total)

    def plain(w: int, *operands: int) -> int:
        pairs = zip(operands[:count], operands[count:], strict=True)
        wrapped: int = sum(-m if s else m for s, m in pairs) % 2**total
        return wrapped

    return Case("sum_of", lambda w: (1,) * count + (w,) * count, ours, plain)


@pytest.mark.parametrize("count", [1, 2, 5])
@pytest.mark.parametrize("extra", [0, 1, 4, 70])
def test_sum_of(count: int, extra: int) -> None:
    """Exact where the width suffices, wrapped where it does not."""
    rng = random.Random(count)
    apart = TermCarrier(Environment(), signs_apart=True)
    for base in (1, 4, 30, 60, 64, 65, 130):
        chosen = mixtures(2 * count)
        for fixed in chosen[:: max(1, len(chosen) // 6)]:
            case = _sum_case(ARRAYS, count, base + extra)
            widths = case.widths(base)
            rows = row_values(base, widths, rng)
            expected = [case.plain(base, *row) for row in with_fixed(rows, fixed)]
            assert evaluate_arrays(case, widths, rows, fixed) == expected
            assert evaluate_symbols(_sum_case(TERMS, count, base + extra), widths, rows, fixed) == expected
        operands = [apart.symbol(f"s{i}w{width}", width) for i, width in enumerate(widths)]
        node = _sum_case(apart, count, base + extra).ours(*operands).node
        values = {f"s{i}w{width}": [row[i] for row in rows] for i, width in enumerate(widths)}
        assert evaluate_term(node, values).tolist() == [case.plain(base, *row) for row in rows]
        folded = _sum_case(NOTHING, count, base + extra)
        operands = [constant(NOTHING, x, width) for x, width in zip(rows[0], widths, strict=True)]
        assert folded.ours(*operands).value == folded.plain(base, *rows[0])


@pytest.mark.parametrize("total", [2, 4, 6])
def test_the_two_signed_sums_are_equal(total: int) -> None:
    """Three terms of three bits; two bits wrap always, six never."""
    environment = Environment()
    carriers = [TermCarrier(environment), TermCarrier(environment, signs_apart=True)]
    widths = (1,) * 3 + (min(3, total),) * 3
    operands = [carriers[0].symbol(f"x{i}", width) for i, width in enumerate(widths)]
    sums = [_sum_case(carrier, 3, total).ours(*operands).node for carrier in carriers]
    manager = environment.formula_manager
    query = Query(tuple(x.node for x in operands), (manager.Not(manager.Equals(*sums)),))
    assert solve(query, "bitwuzla", 60)[0].status == "unsat"


@pytest.mark.parametrize("count", [2, 4, 9])
def test_the_relational_maximum_is_the_maximum(count: int) -> None:
    environment = Environment()
    plain, relational = TermCarrier(environment), TermCarrier(environment, maximum="relational", prefix="r_")
    values = [plain.symbol(f"x{i}", 8).node for i in range(count)]
    expected, largest = plain.max_of(values, 8), relational.max_of(values, 8)
    manager = environment.formula_manager
    differs = manager.Not(manager.Equals(expected, largest))
    (definition,) = relational.definitions
    assert solve(Query(tuple(values), (definition, differs)), "bitwuzla", 60)[0].status == "unsat"
    # every input has such a maximum: the definition excludes none
    violated = (manager.Equals(expected, largest), manager.Not(definition))
    assert solve(Query(tuple(values), violated), "bitwuzla", 60)[0].status == "unsat"
    assert solve(Query(tuple(values), (differs,)), "bitwuzla", 60)[0].status == "sat"


MISFITS: list[Callable[[Bits, Bits], Any]] = [
    lambda x, y: x + y,
    lambda x, y: x.eq(y),
    lambda x, y: algebra.select(x.any(), x, y),
    lambda x, y: x.extract(8, 0),
    lambda x, y: x.extract(2, 3),
    lambda x, y: x.bit(8),
    lambda x, y: y.zext(8),
    lambda x, y: x.truncate(0),
]


def test_widths_are_checked() -> None:
    known = [constant(NOTHING, 5, width) for width in (8, 9)]
    for x, y in (known, [TERMS.symbol(f"u{width}", width) for width in (8, 9)]):
        for act in MISFITS:
            with pytest.raises(WidthError):
                act(x, y)
    with pytest.raises(WidthError):
        constant(NOTHING, 0, 0)
