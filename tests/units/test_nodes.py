"""Random units of nodes on the array carrier and as solver terms, against the exact-rational oracle, bit for bit."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from mmaprobe.queries.compare.neighbours import neighbours
from mmaprobe.smtmodel.arithmetic.formats import Format
from mmaprobe.smtmodel.base.errors import InputError
from mmaprobe.smtmodel.carriers.algebra import Bits, constant
from mmaprobe.smtmodel.carriers.arrays import ArrayCarrier
from mmaprobe.smtmodel.carriers.terms import TermCarrier
from mmaprobe.smtmodel.evaluate.batch import evaluate_lanes, to_integers
from mmaprobe.smtmodel.evaluate.model import Model
from mmaprobe.smtmodel.nodes import Each, Element, Index, Node, Repeat, Round
from mmaprobe.smtmodel.nodes.node import Context, Value, Variant
from mmaprobe.smtmodel.nodes.normal import normal
from mmaprobe.smtmodel.nodes.rewriting import rebuilt, replaced
from mmaprobe.smtmodel.nodes.trace import Silent
from mmaprobe.smtmodel.units.unit import Unit
from mmaprobe.smtmodel.units.unitfile import parse_unit, unit_text
from tests.node_units import Patterns, random_unit, vectors
from tests.oracles import node_oracle
from tests.oracles.oracle import FORMATS, decode
from tests.oracles.termeval import evaluate_term

pytestmark = pytest.mark.oracle

UNITS, VECTORS, GROUPS = 200, 16, 10
CARRIER = ArrayCarrier()


def result_format(unit: Unit) -> str:
    node = unit.result
    while isinstance(node, Repeat):
        node = node.body
    assert isinstance(node, Round)
    return node.rounding.format.name


def evaluated(unit: Unit, table: tuple[Patterns, ...], lane: Callable[[Patterns, str, int], Bits]) -> Bits:
    """The result where `lane` makes the input signals."""

    def side(columns: Patterns, fmt: Format | None, name: str) -> list[Bits]:
        assert fmt is not None
        return [lane(columns[:, k], f"{name}{k}", fmt.width) for k in range(columns.shape[1])]

    a, b, c, *scales = table
    factors = [side(s, unit.scale, name) for s, name in zip(scales, ("sa", "sb"), strict=False)]
    with np.errstate(over="ignore"):
        signals = side(a, unit.a, "a"), side(b, unit.b, "b"), lane(c, "c", unit.c.width)
        return unit.evaluate(*signals, *factors)[0]


def on_arrays(unit: Unit, table: tuple[Patterns, ...]) -> list[int]:
    d = evaluated(unit, table, lambda column, name, width: CARRIER.lanes(np.ascontiguousarray(column), width))
    return [int(x) for x in np.broadcast_to(np.asarray(d.node, dtype=np.uint64), (len(table[2]),))]


def as_terms(unit: Unit, table: tuple[Patterns, ...]) -> list[int]:
    carrier, values = TermCarrier(), {}

    def symbol(column: Patterns, name: str, width: int) -> Bits:
        values[name] = column
        return carrier.symbol(name, width)

    return [int(x) for x in evaluate_term(evaluated(unit, table, symbol).node, values)]


def oracle(unit: Unit, table: tuple[Patterns, ...]) -> list[int]:
    rows = zip(*(side.tolist() for side in table), strict=True)
    return [node_oracle.evaluate(unit, *row) for row in rows]


def compare(unit: Unit, table: tuple[Patterns, ...], got: list[int], wanted: list[int]) -> int:
    """How many results are finite and not zero."""
    fmt, count = result_format(unit), 0
    assert len(got) == len(wanted)
    for row, (mine, theirs) in enumerate(zip(got, wanted, strict=True)):
        inputs = [side[row].tolist() for side in table]
        if theirs == node_oracle.ANY_NAN:
            assert decode(fmt, mine).kind == "nan", (inputs, hex(mine), unit.result)
            continue
        assert mine == theirs, (inputs, hex(mine), hex(theirs), unit.result)
        count += decode(fmt, theirs).kind == "finite" and bool(theirs & FORMATS[fmt].ones)
    return count


@pytest.mark.parametrize("group", range(GROUPS))
def test_random_units(group: int) -> None:
    useful = 0
    for seed in range(group, UNITS, GROUPS):
        unit = random_unit(random.Random(seed))
        table = vectors(unit, VECTORS, np.random.default_rng(seed))
        wanted = oracle(unit, table)
        useful += compare(unit, table, on_arrays(unit, table), wanted)
        if seed % 40 == 7:
            compare(unit, table, as_terms(unit, table), wanted)
    assert useful > UNITS // GROUPS * VECTORS // 4


def shuffled(node: Node, rng: random.Random) -> Node:
    """The same expression with the places of ranges of terms in another order, counted from another place."""

    def change(old: Node, new: Node) -> Node:
        if not isinstance(new, Each):
            return new
        shift = rng.randrange(-2, 3)
        body = replaced(new.body, lambda part: moved(part, new.level, shift))
        return Each(new.level, tuple(rng.sample([place - shift for place in new.places], len(new.places))), body)

    return rebuilt(node, change, {})


def moved(part: Node, level: int, shift: int) -> Node | None:
    if not (isinstance(part, Element) and part.index is not None):
        return None
    factor = dict(part.index.factors).get(level, 0)
    return replace(part, index=Index(part.index.offset + factor * shift, part.index.factors))


def test_the_normal_form_computes_alike_and_knows_no_order_of_terms() -> None:
    changed = ranges = 0
    for seed in range(0, UNITS, 2):
        unit, rng = random_unit(random.Random(seed)), random.Random(seed)
        other = shuffled(unit.result, rng)
        assert normal(unit.result) == normal(other), seed
        ranges += other != unit.result
        plain = normal(unit.result)
        changed += plain != unit.result
        table = vectors(unit, VECTORS, np.random.default_rng(seed))
        assert on_arrays(unit, table) == on_arrays(replace(unit, result=plain), table), seed
    assert ranges > UNITS // 10
    assert changed > UNITS // 10


@pytest.mark.parametrize("step", ["r(exact(a[i] * b[i], acc))", "r(fused(a[i:i + 2] * b[i:i + 2], acc, F=3))"])
def test_rounds_that_change_nothing_are_left_out(step: str, monkeypatch: pytest.MonkeyPatch) -> None:
    unit = parse_unit(
        "unit: long\nformats: {a: e2m1, b: e2m1, c: e4m3, d: e4m3}\nlength: 201\n"
        f"roundings:\n  r: round(e4m3, nearest_even)\nsteps:\n  d: repeat(i in range(200), c, {step})\n",
        "long.yaml",
    )
    rounds = 0
    evaluate = Round.evaluate

    def counted(node: Round, context: Context, keep: int | None) -> Value:
        nonlocal rounds
        rounds += 1
        return evaluate(node, context, keep)

    monkeypatch.setattr(Round, "evaluate", counted)
    draw, drawn, found = random.Random(3), [], []
    for _ in range(40):
        a, b = ([draw.choice([0, 8, draw.randrange(16)])] * 201 for _ in "ab")  # also sums that rise to the largest one
        for side in (a, b):
            side[draw.choice([0, 1, 100, 199])] = draw.randrange(16)
        drawn.append((a, b, draw.choice([0, 128, draw.randrange(256)])))
    columns = [np.array(side, np.uint64) for side in zip(*drawn, strict=True)]
    whole = to_integers(evaluate_lanes(Model("long", unit), *columns).d, 40)
    assert rounds == 200, "all signals of all rounds are kept"
    for (a, b, c), expected in zip(drawn, whole.tolist(), strict=True):
        rounds = 0
        signals = [[constant(CARRIER, x, fmt.width) for x in side] for side, fmt in ((a, unit.a), (b, unit.b))]
        result = unit.evaluate(*signals, constant(CARRIER, c, 8), trace=Silent())[0].value
        assert result == expected, (a[0], b[0], c)
        found.append(rounds)
    assert max(found) < 100


@pytest.mark.parametrize("steps", [
    "{d: 'r(exact(c, gate(a[0] * b[0], -0), gate(a[1] * b[1], +0)))'}",
    "{d: 'r(fused(gate(a[0:2] * b[0:2], -0), c, F=6, zeros=-9))'}",
    "{d: 'repeat(i in range(2), c, r(exact(acc, gate(a[i] * b[i], -0))))'}",
    "{d: 'r(exact(c, segment(a[0], 0, 2) * b[0], segment(a[1], 1, 3, positive=true, leading=true) * b[1]))'}",
    "{d: 'r(fused(each(k in range(2), segment(a[k], 1, 3) * b[k]), c, F=9))'}",
    "{d: 'r(fused(cancelling(fused(a[0:2] * b[0:2], F=1)), c, F=10))'}",
    "{d: 'r(relu(exact(c, a[0] * b[0])))'}",
    "{d: 'r(relu(c, nan=zero, zero=signed))'}",
    "{s: 'r(exact(c, a[0] * b[0]))', d: 'r(exact(a[1] * relu(s, nan=zero, zero=keep), relu(s, zero=signed)))'}",
    "{d: 'r(fused(relu(r(a[0] * b[0]), nan=zero, zero=signed), relu(fused(c, a[1] * b[1], F=3)), F=7, zeros=-9))'}",
    "{d: 'repeat(i in range(2), c, r(relu(r(exact(acc, a[i] * b[i])), zero=keep)))'}",
    "{d: 'r(signed(fused(a[0:2] * b[0:2], c, F=5, zeros=-3)))'}",
    "{d: 'r(signed(grid(a[0] * b[0], a[1] * b[1], F=[2, 2], floors=[3, none])))'}",
    "{d: 'p(signed(fused(a[0:2] * b[0:2], c, F=5, zeros=3, reach=[2, none])))'}",
    "{d: 'r(fused(counting(a[0:2] * b[0:2]), counting(c), F=6))'}",
    "{d: 'r(sorted(a[0] * b[0], a[1] * b[1], counting(c), F=[9, 11]))'}",
    "{d: 'r(sorted(c, counting(a[1] * b[1]), a[0] * b[0], F=[4, 21]))'}",
    "{s: 'r(a[0] * b[0])', d: 'r(exact(s, sorted(b[1], a[1] * b[0], a[0] * a[1], F=[0, 0])))'}",
])  # fmt: skip
@pytest.mark.parametrize(("mode", "fmt"), [("nearest_even", "e5m2"), ("down", "e5m2"), ("down", "e4m3fnuz")])
def test_gates_segments_rectifiers_and_what_becomes_of_zeros(steps: str, mode: str, fmt: str) -> None:
    """On arrays and as terms. A product with a zero factor is one zero, whatever the other factor is; a factor's bits
    count with its exponent; a sum that cancels is a zero for another alignment; a sum that is cut to zero has a sign; a
    zero counts; a rectifier has one rule for NaNs, and one for zeros. A NaN written as -0 is no zero."""
    text = (
        f"unit: gated\nformats: {{a: {fmt}, b: {fmt}, c: f16, d: f16}}\nlength: 2\n"
        f"roundings: {{r: 'round(f16, {mode})', p: 'round(f16, {mode}, zero=exact_positive)'}}\nsteps: {steps}\n"
    )
    unit = parse_unit(text, "gated.yaml")
    assert parse_unit(unit_text(unit), "gated.yaml") == unit
    rng = np.random.default_rng(3)
    some = np.array([0, 0x80, 0x3C, 0xBC, 0x7C, 0xFC, 0x7F, 1, 0x4B, 0xFB], dtype=np.uint64)
    sides = [rng.choice(some, (300, 2)) for _ in range(2)]
    table = (
        *sides,
        rng.choice(np.array([0, 0x8000, 0x3C00, 0xFC00, 0x7C00, 0x7E00, 0xFE00, 1, 2, 0x400], dtype=np.uint64), 300),
    )
    wanted = oracle(unit, table)
    assert compare(unit, table, on_arrays(unit, table), wanted)
    assert compare(unit, table, as_terms(unit, table), wanted)
    plain = unit.rewritten(lambda _, node: node.varied(Variant(node.kind, True, False)))
    assert on_arrays(plain, table) != on_arrays(unit, table)


@pytest.mark.parametrize("zero", ["ieee", "exact_positive", "positive"])
def test_a_negative_sum_times_a_factor_of_zero_is_a_zero_sum(zero: str) -> None:
    """With zero=exact_positive it was -0, where IEEE's rule gave +0."""
    unit = parse_unit(f"""unit: scaled
formats: {{a: e4m3, b: e4m3, c: none, d: f32, scale: ue4m3}}
length: 2
scale_block: 2
roundings: {{r: "round(f32, nearest_even, zero={zero})"}}
steps: {{d: "r(scale(exact(a[0:2] * b[0:2]), scale_a[0], scale_b[0]))"}}
""", "scaled.yaml")  # fmt: skip
    some = np.array([0, 0x80, 0x38, 0xB8, 0xC0], dtype=np.uint64)
    rng, one = np.random.default_rng(4), np.full((200, 1), 0x38, dtype=np.uint64)
    left, right = (rng.choice(some, (200, 2)) for _ in range(2))
    table = left, right, one[:, 0] * np.uint64(0), rng.choice(np.array([0, 0x38], dtype=np.uint64), (200, 1)), one
    wanted = oracle(unit, table)
    assert compare(unit, table, on_arrays(unit, table), wanted)
    assert compare(unit, table, as_terms(unit, table), wanted)


def test_a_normalised_product_counts_with_no_exponent_where_it_is_zero() -> None:
    text = "unit: g\nformats: {a: f16, b: f16, c: f32, d: f32}\nlength: 1\nroundings: {r: 'round(f32, nearest_even)'}\n"
    with pytest.raises(InputError, match="is not normalised, and counts with no exponent"):
        parse_unit(text + "steps: {d: 'r(fused(counting(product(a[0], b[0], normalised=true)), c, F=9))'}\n", "g.yaml")


def test_what_lies_beside_a_gated_product() -> None:
    """The other zero, and the product as IEEE 754 has it, are among the units that differ a little; a product that is
    rounded keeps its gate."""
    text = "unit: g\nformats: {a: f16, b: f16, c: f32, d: f32}\nlength: 1\nroundings: {r: 'round(f32, nearest_even)'}\n"
    found = {unit_text(near.unit).split("d: ")[-1].strip() for _, _, near in neighbours(Model("g", parse_unit(
        text + "steps: {d: 'r(exact(c, gate(a[0] * b[0], -0)))'}\n", "g.yaml")))}  # fmt: skip
    assert {
        "r(exact(c, gate(a[0] * b[0], +0)))", "r(exact(c, a[0] * b[0]))", "r(exact(c, r(gate(a[0] * b[0], -0))))"
    } <= found  # fmt: skip
