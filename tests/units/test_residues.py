"""Residues and what is recombined from them: over every carrier, against exact rationals and Python's integers."""

from __future__ import annotations

import random
from itertools import product

import numpy as np
import pytest

from mmaprobe.smtmodel.base.errors import InputError
from mmaprobe.smtmodel.carriers.terms import TermCarrier
from mmaprobe.smtmodel.evaluate.batch import evaluate_batch
from mmaprobe.smtmodel.evaluate.compiled import compile_model
from mmaprobe.smtmodel.evaluate.model import Model, evaluate
from mmaprobe.smtmodel.evaluate.programs import ARRAYS
from mmaprobe.smtmodel.nodes.residues import reduced
from mmaprobe.smtmodel.units.unitfile import parse_unit, unit_text
from tests.oracles.node_oracle import evaluate as by_rationals
from tests.oracles.oracle import decode
from tests.oracles.termeval import evaluate_term

pytestmark = pytest.mark.compilers

UNIT = """
unit: residues
formats: {{a: {side}, b: {side}, c: {c}, d: {d}}}
length: 1
roundings: {{r: "round({d}, nearest_even)"}}
steps: {{d: "r({step})"}}
"""


def model(step: str, side: str = "e4m3", c: str = "none", d: str = "f32") -> Model:
    unit = parse_unit(UNIT.format(step=step, side=side, c=c, d=d), "unit.yaml")
    assert parse_unit(unit_text(unit), "unit.yaml") == unit
    return Model("residues", unit)


def rows(bits: int, operands: int) -> list[np.ndarray]:  # type: ignore[type-arg]
    every = np.array(list(product(range(1 << bits), repeat=operands)), dtype=np.uint64)
    return [every[:, k] for k in range(operands)]


def nearest(value: int, modulus: int) -> int:
    """By a search."""
    return min((x for x in range(-modulus, modulus) if (x - value) % modulus == 0), key=lambda x: (abs(x), x))


def number(fmt: str, pattern: int) -> float:
    x = decode(fmt, pattern)
    return float(x.value) * (-1 if x.sign and x.value > 0 else 1) if x.kind == "finite" else float("nan")


@pytest.mark.parametrize("modulus", [2, 5, 251, 256])
def test_every_product_of_two_small_numbers(modulus: int) -> None:
    """Products are up to 2^17 and have up to 18 bits behind the point."""
    own = model(f"residue(a[0] * b[0], {modulus})")
    a, b = rows(8, 2)
    found = evaluate_batch(own, a[:, None], b[:, None], np.zeros_like(a))
    values = [number("e4m3", x) for x in range(256)]
    wanted = [values[x] * values[y] for x, y in zip(a, b, strict=True)]
    exact = {w: np.float32(nearest(int(w), modulus)) for w in set(wanted) if w == w}
    results = found.astype(np.uint32).view(np.float32)
    for got, w in zip(results, wanted, strict=True):
        assert np.isnan(got) if w != w else (got == exact[w] and not (got == 0 and np.signbit(got)))
    compiled = compile_model(own)
    assert compiled is not None
    table = compiled.tile(a[::256, None], b[None, :256], np.zeros((256, 256), dtype=np.uint32))
    assert np.array_equal(table.ravel(), found)


@pytest.mark.parametrize(
    ("step", "side", "c"),
    [
        ("residue(a[0] * b[0], 11)", "e5m2", "none"),
        ("residue(a[0], 16)", "f16", "none"),
        ("residue(exact(a[0] * b[0], c), 7)", "e4m3", "f16"),
        ("recombined(a[0], b[0], c, moduli=[3, 4, 5])", "int4", "int5"),
        ("recombined(a[0], residue(b[0], 9), c, moduli=[7, 9, 2])", "e4m3", "e5m2"),
        ("recombined(a[0], moduli=[12])", "e4m3", "none"),
    ],
)
def test_four_witnesses(step: str, side: str, c: str) -> None:
    """The array carrier, the symbolic one, generated code and exact rationals."""
    own, rng = model(step, side, c), np.random.default_rng(1)
    a, b, addend = (rng.integers(0, 1 << fmt.width, 300, dtype=np.uint64) for fmt in (own.a, own.b, own.c))
    addend = addend if own.addend else np.zeros_like(addend)
    found = evaluate_batch(own, a[:, None], b[:, None], addend)
    carrier = TermCarrier()
    x, y, z = carrier.symbol("a", own.a.width), carrier.symbol("b", own.b.width), carrier.symbol("c", own.c.width)
    term = evaluate(own, [x], [y], z, traced=False).d
    assert [int(d) for d in evaluate_term(term.node, {"a": a, "b": b, "c": addend})] == found.tolist()
    compiled = compile_model(own)
    assert compiled is not None
    for k, d in enumerate(found.tolist()):
        wanted = by_rationals(own.unit, [int(a[k])], [int(b[k])], int(addend[k]))
        assert d == wanted or (wanted == -1 and np.isnan(np.uint32(d).view(np.float32)))
        if k < 40:
            tile = compiled.tile(a[k : k + 1, None], b[None, k : k + 1], addend[k : k + 1, None])
            assert tile.item() == d


def test_every_triple_is_recombined() -> None:
    own = model("recombined(a[0], b[0], c, moduli=[3, 4, 5])", "int5", "int5")
    a, b, c = rows(5, 3)
    found = evaluate_batch(own, a[:, None], b[:, None], c).astype(np.uint32).view(np.float32)
    signed = [x - 32 * (x > 15) for x in range(32)]
    by_residues = {(x % 3, x % 4, x % 5): x for x in range(-29, 31)}
    wanted = [by_residues[signed[x] % 3, signed[y] % 4, signed[z] % 5] for x, y, z in zip(a, b, c, strict=True)]
    assert np.array_equal(found, np.array(wanted, dtype=np.float32))
    assert not np.signbit(found[found == 0]).any()


@pytest.mark.parametrize("width", [1, 8, 29, 53, 110])
@pytest.mark.parametrize("modulus", [2, 3, 199, 256, 65521])
def test_wide_numbers(width: int, modulus: int) -> None:
    rng = random.Random(width)
    values = [rng.getrandbits(width) for _ in range(200)] + [0, (1 << width) - 1, ((1 << width) // modulus) * modulus]
    values = [v % (1 << width) for v in [*values, max(0, values[-1] - 1)]]
    carrier = TermCarrier()
    term = reduced(carrier.symbol("x", width), modulus)
    assert [int(x) for x in evaluate_term(term.node, {"x": np.array(values, dtype=object)})] == [
        v % modulus for v in values
    ]
    if width <= 64:
        with np.errstate(over="ignore"):
            lanes = reduced(ARRAYS.lanes(np.array(values, dtype=np.uint64), width), modulus).node
        assert [int(x) for x in np.broadcast_to(lanes, len(values))] == [v % modulus for v in values]


@pytest.mark.parametrize("modulus", [199, 256])
def test_numbers_of_any_exponent(modulus: int) -> None:
    """Numbers of f64 up to 2^1023."""
    rng = np.random.default_rng(2)
    a = rng.integers(0, 1 << 64, 3000, dtype=np.uint64)
    own = model(f"residue(a[0], {modulus})", "f64", d="f64")
    found = evaluate_batch(own, a[:, None], np.zeros_like(a)[:, None], np.zeros_like(a)).view(np.float64)
    values = a.view(np.float64)
    finite = np.isfinite(values)
    assert finite.sum() > 2900
    wanted = [(int(x) + modulus // 2) % modulus - modulus // 2 for x in values[finite]]
    assert found[finite].tolist() == wanted
    assert np.isnan(found[~finite]).all()


@pytest.mark.parametrize(
    ("step", "message"),
    [
        ("residue(a[0], 1)", "1 is impossible"),
        ("residue(a[0])", "1 argument given, 2 needed"),
        ("recombined(a[0], b[0], moduli=[6, 4])", "6 and 4 have a common divisor"),
        ("recombined(a[0], b[0], moduli=[7])", "2 numbers have 1 moduli"),
        ("recombined(a[0], b[0])", "moduli is missing"),
    ],
)
def test_mistakes(step: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        model(step)
