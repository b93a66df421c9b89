"""Monotonicity by the rule about nodes: what it proves has no fall, and every side condition is looked at."""

from __future__ import annotations

import copy
import random
import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from benchmarks.statements import Statement, broken_addend, broken_product, columns_of, grid_of
from mmaprobe.queries.kernel.datapath.gains import Factor, gains_of, numbers_of, products_of
from mmaprobe.queries.kernel.datapath.rounding_rises import RoundingRises, RoundingScales
from mmaprobe.queries.kernel.lemmas import exhausted
from mmaprobe.queries.kernel.properties.rises import Rises, needed, rises
from mmaprobe.queries.kernel.properties.together import does_not_fall
from mmaprobe.queries.kernel.questions.statements import Monotonic
from mmaprobe.queries.kernel.terms.same import SidesAgree
from mmaprobe.queries.kernel.theorem import RuleError, Theorem
from mmaprobe.queries.properties.falls import find_fall
from mmaprobe.queries.search.samples import sample_rows
from mmaprobe.queries.search.witness import replay
from mmaprobe.smtmodel.arithmetic.formats import FORMATS, Format, format_named
from mmaprobe.smtmodel.arithmetic.rounding import ROUNDINGS, STOCHASTIC, Mode, Overflow, Target
from mmaprobe.smtmodel.evaluate.model import Model
from mmaprobe.smtmodel.inputs.admitted import Inputs
from mmaprobe.smtmodel.nodes import (
    Cut,
    Element,
    ExactSum,
    FusedSum,
    Gate,
    Index,
    Node,
    Product,
    Repeat,
    Round,
    Running,
    Scale,
)
from mmaprobe.smtmodel.nodes.relu import RELU_ZEROS, Relu
from mmaprobe.smtmodel.nodes.round import Rounding
from mmaprobe.smtmodel.tables.reference import parse_reference
from mmaprobe.smtmodel.units.unit import Unit
from mmaprobe.smtmodel.units.unitfile import parse_unit
from tests.said import believed
from tests.second.tree import Tree
from tests.second.written import written

pytestmark = pytest.mark.solvers

SMALL = "hopper/wgmma/m64n8k32.f32.e4m3.e4m3"
FUSED = f"{SMALL}@length=3,block=3,fraction_bits=8"


def question(reference: str, raised: int | None = 0, inputs: Inputs | None = None) -> Monotonic:
    model = parse_reference(reference)
    return Monotonic(model, model, inputs or Inputs(), raised=raised)


def of_unit(change: Callable[[Unit], Unit], raised: int | None = 0, reference: str = FUSED) -> Monotonic:
    model = parse_reference(reference)
    model = Model("changed", change(model.unit))
    return Monotonic(model, model, raised=raised)


def asked(problem: Monotonic) -> tuple[Unit, int | None, bool]:
    return problem.left.unit, problem.raised, problem.inputs.normal


def holds(problem: Monotonic) -> bool:
    """Whether the rule says so; the checker, which has a statement of its own, must say the same."""
    try:
        lemmas = needed(*asked(problem))
    except RuleError:
        return False
    document = document_of(rises(*asked(problem), list(map(believed, lemmas))))
    assert not list(Tree(document).check())
    return True


def document_of(theorem: Theorem) -> dict[str, Any]:
    assert isinstance(theorem.goal, Rises)
    return written(theorem.goal.unit, [theorem])


def checked(problem: Monotonic) -> str:
    """What the checker says of a unit if it is told without a lemma that it rises."""
    unit, raised, normal = asked(problem)
    document = written(unit, [])
    goal = {"is": "Rises", "raised": raised, "normal": normal}
    stated = {"theorems": [{"rule": "rises", "premises": [], "goal": goal}], "states": [0]}
    ((_, fault),) = Tree(document | stated).check()
    return fault


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
    ("hopper/mma/m16n8k32.f16.e4m3.e5m2.f16", 9, True), ("hopper/mma/m16n8k32.f32.e4m3.e5m2.f32", 9, False),
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


def values(fmt: Format, converted: bool = False) -> dict[float, list[int]]:
    """Every positive number of a format, and its exponents; those of the value where it is converted."""
    found: dict[float, list[int]] = {}
    for part in numbers_of(fmt, True):
        for e in range(part.low, part.high + 1):
            for p in part.significands:
                value = p * 2.0 ** (e - fmt.fraction)
                found.setdefault(value, []).append(int(np.frexp(value)[1]) - 1 if converted else e)
    return found


@pytest.mark.parametrize(
    ("a", "b", "converted"),
    [("e2m1", "e3m2", False), ("e2m3", "e2m1", False), ("e4m3", "e2m1", False), ("e3m2", "e2m1", True)],
)
def test_gains_are_the_least(a: str, b: str, converted: bool) -> None:
    """Of every two products, one by one; some pair of each two exponents comes so near."""
    one, two = FORMATS[a], FORMATS[b]
    products: dict[tuple[float, int], None] = {}
    for x, left in values(one, converted).items():
        for y, right in values(two).items():
            products |= dict.fromkeys((x * y, e + f) for e in left for f in right)
    known = gains_of(products_of(Factor(one, converted), Factor(two), True), one.fraction + two.fraction)
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
    for drawn in STOCHASTIC:
        for lemma in (RoundingRises(Target(FORMATS["e3m2"], drawn), 2), RoundingScales(Target(e5m2, drawn), 2)):
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
AT, BT = Element("a", Index(0, ((1, 1),))), Element("b", Index(0, ((1, 1),)))
R = Rounding(FORMATS["e5m2"], "toward_zero")
SCALED = Scale(P, Element("scale_a", Index(0)), Element("scale_b", Index(0)))
BREACHES: dict[str, tuple[str, Callable[[], Monotonic]]] = {
    "wraps": ("wraps", lambda: of_unit(summed(carry_bits=1))),
    "sticky": ("sticky", lambda: of_unit(summed(sticky=True))),
    "few places": ("may lose more", lambda: of_unit(summed(fraction_bits=3))),
    "few places of its own": ("may lose more", lambda: of_unit(
        summed(items=(P,), fraction_bits=1, rounding="down"))),
    # it does not fall, but its own loss is as large as its gain, which the rule does not look behind
    "rounded up to the next exponent": ("may lose more", lambda: of_unit(
        summed(items=(C,), fraction_bits=22, rounding="nearest_even"), None)),
    "normalised": ("nothing is known|normalised", lambda: of_unit(items(replace(P, normalised=True), C))),
    "squares": ("other factors|other inputs", lambda: of_unit(items(Product(A, A), C))),
    "rounded factors": ("is rounded to", lambda: of_unit(items(Product(Round(A, Rounding(FORMATS["e3m2"])), B), C))),
    "twice": ("several terms", lambda: of_unit(items(P, P, C))),
    "c twice": ("several terms", lambda: of_unit(items(C, C), None)),
    "lost factors": ("is lost", lambda: of_unit(items(Product(replace(A, subnormals="zero"), B), C))),
    "mixed factors": ("stands in another", lambda: of_unit(items(Product(A, Element("b", Index(1))), C))),
    "signed scale": ("sign", lambda: of_unit(
        lambda unit: items(SCALED, C)(replace(unit, scale=FORMATS["e4m3"], scale_block=3)))),
    "cut inside": ("of a cut", lambda: of_unit(items(Cut(FusedSum((P,), 30), 6, "down"), C))),
    "rectified inside": ("of a relu", lambda: of_unit(items(Relu(FusedSum((P,), 30)), C))),
    "a NaN that becomes zero": ("a NaN becomes a number", lambda: of_unit(lambda unit: replace(
        unit, result=Round(Relu(unit.result, nan="zero"), R)))),
    "NaN below all": ("is NaN, ", lambda: of_unit(lambda unit: replace(
        unit, result=Round(_term(unit), Rounding(FORMATS["e4m3fnuz"], overflow="infinity"))))),
    "too many": ("too many to compare", lambda: question("ampere/mma/m16n8k8.f32.f16.f16.f32", 0)),
    "NaN as a number": ("NaN is a number|format without NaN", lambda: of_unit(lambda unit: replace(
        unit, result=Round(_term(unit), Rounding(FORMATS["e2m1"]))))),
    "a pattern that is no NaN": ("a NaN is a number|that of a number", lambda: of_unit(lambda unit: replace(
        unit, result=Round(_term(unit), Rounding(FORMATS["f32"], nan=0x7F800000))))),
    "scaled by c": ("of a scale|scale factor is not an input", lambda: of_unit(items(Scale(P, C, C), C))),
    "a bound that a sum around it does not see": ("a bound|least exponent", lambda: of_unit(items(
        FusedSum((P, C), 40, least=-30), Product(Element("a", Index(1)), Element("b", Index(1)))))),
    "raised at a step of its own": ("several terms", lambda: of_unit(
        lambda unit: replace(unit, result=Repeat(1, (1, 0), Round(P, R), Round(
            FusedSum((Product(AT, BT), Running(1)), 6), R))))),
    "vanishes": ("may vanish", lambda: of_unit(lambda unit: summed(
        items=(P, C), reach=(20, None), fraction_bits=(8, 8))(unit))),
}  # fmt: skip


@pytest.mark.parametrize(("says", "problem"), BREACHES.values(), ids=BREACHES)
def test_side_conditions(says: str, problem: Callable[[], Monotonic]) -> None:
    with pytest.raises(RuleError, match=says):
        needed(*asked(problem()))
    if says != "too many to compare":  # the checker compares more of them
        assert re.search(says, checked(problem()))


def test_a_theorem_needs_every_lemma() -> None:
    problem = question(f"{SMALL}@length=2,block=2,fraction_bits=16")
    lemmas = list(map(believed, needed(*asked(problem))))
    known = rises(*asked(problem), lemmas)
    assert does_not_fall(problem, known).goal == SidesAgree(problem)
    other = believed(RoundingRises(Target(FORMATS["e5m2"], "up")))
    for wrong in (lemmas[1:], [other, *lemmas[1:]]):
        with pytest.raises(RuleError, match="missing"):
            rises(*asked(problem), wrong)
    two = Monotonic(problem.left, parse_reference(FUSED), raised=0)
    normal = rises(problem.left.unit, 0, True, lemmas)
    for changed, about, why in (
        (two, known, "about one model"), (replace(problem, raised=1), known, "another operand"),
        (question(FUSED), known, "another unit"), (problem, normal, "normal numbers alone"),
    ):  # fmt: skip
        with pytest.raises(RuleError, match=why):
            does_not_fall(changed, about)
    assert does_not_fall(replace(problem, inputs=Inputs(finite=True, normal=True)), normal)


def test_a_changed_tree_is_refused() -> None:
    """Every lemma is needed, and is about this datapath; so is every part of the goal, and of the unit what matters."""
    problem = question(f"{SMALL}@length=2,block=2,fraction_bits=16")
    document = document_of(rises(*asked(problem), list(map(believed, needed(*asked(problem))))))
    assert not list(Tree(document).check())
    last = len(document["theorems"]) - 1
    for place in range(last):
        broken = copy.deepcopy(document)
        del broken["theorems"][last]["premises"][place]
        assert list(Tree(broken).check()), place
        goal = document["theorems"][place]["goal"]
        for name in ("width", "fraction", "bits", "mode", "target"):
            if name in goal:
                given = goal[name]
                other = (
                    given - 1 if isinstance(given, int) else given | {"rounding": "up"} if name == "target" else "up"
                )
                broken = copy.deepcopy(document)
                broken["theorems"][place]["goal"][name] = other
                assert list(Tree(broken).check()), (place, name)
    for name, value in (("raised", 2), ("raised", "0"), ("normal", 0), ("node", 1)):
        broken = copy.deepcopy(document)
        broken["theorems"][last]["goal"][name] = value
        assert list(Tree(broken).check()), (name, value)
    total = next(node for node in document["nodes"] if node["kind"] == "fused")
    for name, value in (("fraction_bits", 7), ("sticky", True), ("carry_bits", 2), ("rounding", "up")):
        kept, total[name] = total[name], value
        assert list(Tree(document).check()), name
        total[name] = kept


def test_a_nan_between_is_no_step_to_a_number() -> None:
    """e4m3 overflows to NaN, which e2m1 has no pattern for: it becomes 0, and c rises from 0 to there."""
    text = """unit: x
formats: {a: e5m2, b: e5m2, c: e4m3, d: e2m1}
length: 2
roundings: {r: "round(e4m3, nearest_even, overflow=infinity)", q: "round(e2m1, toward_zero)"}
steps:
  d: q(exact(r(exact(a[0:2] * b[0:2], c))))
"""
    model = Model("x", parse_unit(text, "x.yaml"))
    problem = Monotonic(model, model)
    assert not holds(problem)
    assert replay(problem, [(0xCB, 0xC4, 0x4B, 0x44, 0xF8, 0x38)]).differs.all()


@pytest.mark.parametrize(("least", "bits"), [(1, 1), (3, 2), (0, 1)])
def test_below_a_bound_a_term_is_cut(least: int, bits: int) -> None:
    """One whose exponent lies below the least that counts loses, even where nothing larger stands beside it."""
    problem = of_unit(items(P, C))
    unit = replace(problem.left.unit, result=Round(FusedSum((P, C), bits, least=least), R))
    assert not holds(Monotonic(Model("x", unit), Model("x", unit), raised=0))


def drawn(rng: random.Random) -> Unit:
    """A small unit: sums in sums, of numbers of few bits, cut and bounded in every way."""
    a, b, c = (format_named(name) for name in rng.choice((("e2m1", "e2m1", "e3m2"), ("e2m1", "e1m1_none", "e2m1"))))
    count = 1 if c.name == "e3m2" else 2

    def rounding(fmt: Format | None = None) -> Rounding:
        overflow: tuple[Overflow, ...] = ("ieee", "infinity", "saturate")
        found = fmt or FORMATS[rng.choice(("e4m3", "e5m2", "e4m3fnuz"))]
        return Rounding(found, rng.choice(ROUNDINGS), rng.choice(overflow), rng.choice(("keep", "flush_after")))

    def total(*items: Node) -> Node:
        if rng.random() < 0.1:
            return ExactSum(items)
        bits = rng.choice((1, 2, 3, 4, 5, 6, 8))
        zeros, least = (rng.choice((-4, -2, 0, 1, 3)) if rng.random() < 0.25 else None for _ in range(2))
        floors = tuple(rng.choice((None, -3, 1)) for _ in items) if rng.random() < 0.2 else ()
        reach = tuple(rng.choice((None, 2, 5)) for _ in items) if rng.random() < 0.2 else ()
        return FusedSum(items, bits, rng.choice(ROUNDINGS), zeros=zeros, least=least, floors=floors, reach=reach)

    products: list[Node] = [Product(Element("a", Index(k)), Element("b", Index(k))) for k in range(count)]
    products = [Gate(one, rng.random() < 0.5) if rng.random() < 0.3 else one for one in products]
    match rng.randrange(5):
        case 0:
            top: Node = Round(total(*products, C), rounding())
        case 1:
            top = Round(total(total(*products), C), rounding())
        case 2:
            top = Round(Cut(total(total(*products), C), 4, rng.choice(ROUNDINGS)), rounding())
        case 3:
            top = Round(Relu(Round(total(*products, C), rounding()), zero=rng.choice(RELU_ZEROS)), rounding())
        case _:
            how = rounding()
            top = Repeat(
                1, range(count), Round(total(products[0], C), how), Round(total(Product(AT, BT), Running(1)), how)
            )
    return Unit(a, b, c, count, top)


def test_small_sums_are_as_all_inputs_say() -> None:
    """The rule and the checker agree on each, and what they say of it is true."""
    rng, proved = random.Random(11), 0
    for _ in range(120):
        unit, raised = drawn(rng), rng.choice((None, 0))
        problem = Monotonic(Model("drawn", unit), Model("drawn", unit), raised=raised)
        if not holds(problem):
            assert checked(problem) != "rises: that a rounding does not fall is not known"
            continue
        proved += 1
        wanted = Statement(0, "monotonic-addend" if raised is None else "monotonic-product", (problem.left,))
        table = grid_of(columns_of(problem.left, Inputs()))
        if raised is None:
            assert not broken_addend(wanted, table)
        else:
            assert not replay(problem, sample_rows(problem.layout, 2048, 7)).differs.any()
    assert proved > 15


@pytest.mark.parametrize("mode", ROUNDINGS)
def test_a_product_alone_falls_where_its_own_cut_moves(mode: Mode) -> None:
    """Of a subnormal factor and a large one the exponent is high: more is cut off than of a larger product."""
    base = of_unit(items(P)).left.unit
    verdicts = set[tuple[bool, bool]]()
    for bits in range(1, 7):
        result = Round(FusedSum((P,), bits, mode), Rounding(FORMATS["f16"]))
        formats = {"a": FORMATS["e2m3"], "b": FORMATS["e2m1"], "c": FORMATS["e2m1"]}
        model = Model("alone", replace(base, **formats, length=1, result=result))
        broken = broken_product(Statement(0, "monotonic-product", (model,)), grid_of(columns_of(model, Inputs())))
        verdicts.add((holds(Monotonic(model, model, raised=0)), broken > 0))
        assert verdicts <= {(True, False), (False, True), (False, False)}
        if broken:
            assert "may lose more" in checked(Monotonic(model, model, raised=0))
    assert verdicts >= {(True, False), (False, True)}
