"""Monotonicity by the rule about nodes: what it proves has no fall, and every side condition is looked at."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from hypotheses.schema import Inputs
from queries.proof.kernel import RuleError, Theorem
from queries.proof.lemmas import Lemma, exhausted, settled
from queries.proof.same import SidesAgree
from queries.properties.monotone.search import find_fall
from queries.properties.rises import RoundingRises, RoundingScales, gains_of, needed, numbers_of, products_of, rises
from queries.properties.statements import Monotonic
from queries.search.samples import sample_rows
from queries.search.witness import replay
from queries.solvers.contract import Answer
from smtmodel.dot import Model
from smtmodel.formats import FORMATS, Format
from smtmodel.nodes import Cut, Element, FusedSum, Index, Product, Round, Scale
from smtmodel.nodes.round import Rounding
from smtmodel.reference import parse_reference
from smtmodel.rounding import Target
from smtmodel.unit import Unit

SMALL = "hopper/wgmma/m64n8k32.f32.e4m3.e4m3"
FUSED = f"{SMALL}@length=3,block=3,fraction_bits=8"


def question(reference: str, raised: int | None = 0, inputs: Inputs | None = None) -> Monotonic:
    model = parse_reference(reference)
    return Monotonic(model, model, inputs or Inputs(), raised=raised)


def of_unit(change: Callable[[Unit], Unit], raised: int | None = 0, reference: str = FUSED) -> Monotonic:
    model = parse_reference(reference)
    model = Model("changed", change(model.unit))
    return Monotonic(model, model, raised=raised)


def believed(lemma: Lemma) -> Theorem:
    return settled(lemma, lambda query, name: (Answer("unsat", "nobody", "0", 0.0), None))


def holds(problem: Monotonic) -> bool:
    try:
        return bool(needed(problem))
    except RuleError:
        return False


MODES = ("toward_zero", "down", "up", "nearest_even")
CASES = [f"{SMALL}@length={length},block={block},fraction_bits={bits},align_rounding={mode}"
         for length, block in ((3, 3), (4, 2)) for bits in (3, 9, 16) for mode in MODES]  # fmt: skip


@pytest.mark.slow
def test_what_it_proves_has_no_fall() -> None:
    """Sums of all kinds of cuts, few and many places kept: where rows shaped for it show a fall, nothing is proved;
    where it is proved, neither these nor others fall."""
    proved, fallen = 0, 0
    for reference in CASES:
        for raised in (0, None):
            problem = question(reference, raised)
            if holds(problem):
                proved += 1
                rows = [tuple(map(int, row)) for row in sample_rows(problem.layout, 2048, 7)]
                assert not replay(problem, rows).differs.any(), (reference, raised)
                assert find_fall(problem) is None, (reference, raised)
            else:
                fallen += find_fall(problem) is not None
    assert proved >= 4
    assert fallen > 20


@pytest.mark.parametrize(("reference", "raised", "says"), [
    ("cdna3/mfma/f32_16x16x32_fp8_fp8", 0, True), ("cdna3/mfma/f32_16x16x32_fp8_fp8", None, True),
    ("ampere/mma/m16n8k16.f32.f16.f16.f32", None, False),
    ("ampere/mma/m8n8k4.f64.f64.f64.f64", 3, True), ("cdna1/mfma/f32_32x32x2f32", 1, True),
    ("ada-lovelace/mma/m16n8k16.f32.e5m2.e5m2.f32", 5, True), ("ada-lovelace/mma/m16n8k16.f32.e4m3.e4m3.f32", 5, False),
    ("blackwell/tcgen05mma_block_scale/m64n8k64.block16.f32.e2m1.e2m1.ue4m3", 63, True),
    ("blackwell/tcgen05mma_block_scale/m64n8k32.block32.f32.e2m1.e2m1.ue8m0", 0, True),
])  # fmt: skip
def test_units_of_the_table(reference: str, raised: int | None, says: bool) -> None:
    assert holds(question(reference, raised)) is says


def test_normal_numbers_rise_by_more() -> None:
    volta = "volta/mma/m8n8k4.f32.f16.f16.f32"
    assert holds(question(volta, 2, Inputs(finite=True, normal=True)))
    assert not holds(question(volta, 2))


def values(fmt: Format) -> dict[float, list[int]]:
    """Every positive number of a format, and its exponents."""
    found: dict[float, list[int]] = {}
    for part in numbers_of(fmt, True):
        for e in range(part.low, part.high + 1):
            for p in part.significands:
                found.setdefault(p * 2.0 ** (e - fmt.fraction), []).append(e)
    return found


@pytest.mark.parametrize(("a", "b"), [("e2m1", "e3m2"), ("e2m3", "e2m1"), ("e4m3", "e2m1")])
def test_gains_are_the_least(a: str, b: str) -> None:
    """Of every two products, one by one; some pair of each two exponents comes so near."""
    one, two = FORMATS[a], FORMATS[b]
    products: dict[tuple[float, int], None] = {}
    for x, left in values(one).items():
        for y, right in values(two).items():
            products |= dict.fromkeys((x * y, e + f) for e in left for f in right)
    known = gains_of(products_of(one, two, True), one.fraction + two.fraction)
    least: dict[tuple[int, int], float] = {}
    every = list(products)
    size, exponent = (np.array(side) for side in zip(*every, strict=True))
    for value, e in every:
        off = size - value
        for f in set(exponent.tolist()) - {e}:
            apart = off[(exponent == f) & (off > 0)]
            if len(apart):
                least[e, f] = min(least.get((e, f), np.inf), float(apart.min()))
    for key, gain in least.items():
        assert known[key] * 2.0**-1300 <= gain if known[key] < 2**1000 else known[key] / 2**1300 <= gain
    exact = sum(known[key] / 2**1300 == min(gain, least.get(key[::-1], gain)) for key, gain in least.items())
    assert exact > len(least) // 2


def test_lemmas_about_rounding() -> None:
    e5m2 = FORMATS["e5m2"]
    for mode in ("nearest_even", "toward_zero", "up", "to_odd"):
        for lemma in (RoundingRises(Target(e5m2, mode)), RoundingScales(Target(e5m2, mode, flush=True))):
            assert exhausted(lemma).goal == lemma


def _term(unit: Unit) -> FusedSum:
    assert isinstance(unit.result, Round)
    assert isinstance(unit.result.term, FusedSum)
    return unit.result.term


def summed(**changes: object) -> Callable[[Unit], Unit]:
    def change(unit: Unit) -> Unit:
        assert isinstance(unit.result, Round)
        return replace(unit, result=replace(unit.result, term=replace(_term(unit), **changes)))

    return change


def items(*terms: object) -> Callable[[Unit], Unit]:
    return summed(items=terms)


A, B, C = Element("a", Index(0)), Element("b", Index(0)), Element("c")
P = Product(A, B)
SCALED = Scale(P, Element("scale_a", Index(0)), Element("scale_b", Index(0)))
BREACHES: dict[str, tuple[str, Callable[[], Monotonic]]] = {
    "wraps": ("wraps", lambda: of_unit(summed(carry_bits=1))),
    "sticky": ("sticky", lambda: of_unit(summed(sticky=True))),
    "few places": ("may lose more", lambda: of_unit(summed(fraction_bits=3))),
    "normalised": ("nothing is known", lambda: of_unit(items(replace(P, normalised=True), C))),
    "squares": ("other factors", lambda: of_unit(items(Product(A, A), C))),
    "twice": ("several terms", lambda: of_unit(items(P, P, C))),
    "c twice": ("several terms", lambda: of_unit(items(C, C), None)),
    "lost factors": ("is lost", lambda: of_unit(items(Product(replace(A, subnormals="zero"), B), C))),
    "mixed factors": ("stands in another", lambda: of_unit(items(Product(A, Element("b", Index(1))), C))),
    "signed scale": ("with a sign", lambda: of_unit(
        lambda unit: items(SCALED, C)(replace(unit, scale=FORMATS["e4m3"], scale_block=3)))),
    "cut inside": ("is cut", lambda: of_unit(items(Cut(FusedSum((P,), 30), 6, "down"), C))),
    "NaN below all": ("is NaN", lambda: of_unit(lambda unit: replace(
        unit, result=Round(_term(unit), Rounding(FORMATS["e4m3fnuz"], overflow="infinity"))))),
    "too many": ("one by one", lambda: question("ampere/mma/m16n8k8.f32.f16.f16.f32", 0)),
    "vanishes": ("may vanish", lambda: of_unit(lambda unit: summed(
        items=(P, C), reach=(20, None), fraction_bits=(8, 8))(unit))),
}  # fmt: skip


@pytest.mark.parametrize(("says", "problem"), BREACHES.values(), ids=BREACHES)
def test_side_conditions(says: str, problem: Callable[[], Monotonic]) -> None:
    with pytest.raises(RuleError, match=says):
        needed(problem())


def test_a_theorem_needs_every_lemma() -> None:
    problem = question(f"{SMALL}@length=2,block=2,fraction_bits=16")
    lemmas = list(map(believed, needed(problem)))
    assert rises(problem, lemmas).goal == SidesAgree(problem)
    other = believed(RoundingRises(Target(FORMATS["e5m2"], "up")))
    for wrong in (lemmas[1:], [other, *lemmas[1:]]):
        with pytest.raises(RuleError, match="missing"):
            rises(problem, wrong)
    two = Monotonic(problem.left, parse_reference(FUSED), raised=0)
    with pytest.raises(RuleError, match="of one model"):
        needed(two)
