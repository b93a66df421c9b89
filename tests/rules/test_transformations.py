"""2Sum, fast 2Sum and what a rounding leaves: their values, and the bounds of sums with them, on all inputs of small
formats."""

from __future__ import annotations

from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pytest

from mmaprobe.queries.kernel.bounds import enclosures as rules
from mmaprobe.queries.kernel.bounds.forms import EXACT
from mmaprobe.queries.kernel.bounds.parts import part, part_lemmas
from mmaprobe.queries.kernel.bounds.transformations import (
    Followed,
    error_free,
    fast_two_sum,
    leaves,
    losses,
    residuals,
    rest_of_rounding,
    two_sum,
)
from mmaprobe.queries.kernel.errors import RuleError
from mmaprobe.queries.plans.bound import bound_of_plan
from mmaprobe.queries.properties import bound
from mmaprobe.queries.properties.bound import bound_of, chain_of, error_of
from mmaprobe.queries.properties.bound_samples import covered
from mmaprobe.smtmodel.arithmetic.display import exact_value
from mmaprobe.smtmodel.arithmetic.formats import Format
from mmaprobe.smtmodel.base.errors import InputError
from mmaprobe.smtmodel.evaluate.model import Model
from mmaprobe.smtmodel.nodes import Element, ExactSum, Index, Node, Product, Round
from mmaprobe.smtmodel.plans.planfile import parse_plan
from mmaprobe.smtmodel.tables.reference import parse_reference
from mmaprobe.smtmodel.units.unit import Unit
from mmaprobe.smtmodel.units.unitfile import parse_unit
from tests.said import believed
from tests.second.proved import faults

UNIT = """unit: small
formats: {a: FORMAT, b: FORMAT, c: FORMAT, d: FORMAT}
length: 1
roundings: {r: "round(FORMAT, MODE)"WORD}
steps:
STEPS
"""
SUM = "s: r(exact(X, Y))"
PROGRAMS = {
    "2Sum": [SUM, "u: r(exact(s, -X))", "w: r(exact(s, -u))", "p: r(exact(X, -w))", "q: r(exact(Y, -u))",
             "e: r(exact(p, q))"],
    "2Sum, signs": [SUM, "u: r(exact(X, -s))", "w: r(exact(u, s))", "p: r(exact(w, -X))", "q: r(exact(u, Y))",
                    "e: r(exact(q, -p))"],
    "fast 2Sum": [SUM, "z: r(exact(s, -X))", "e: r(exact(Y, -z))"],
    "fast 2Sum, signs": [SUM, "z: r(exact(X, -s))", "e: r(exact(z, Y))"],
    "Kahan's sign": [SUM, "z: r(exact(s, -X))", "e: r(exact(z, -Y))"],
}  # fmt: skip
FORMS = ("e3m2_ieee", "e2m3_ieee", "e3m1_ieee")
MODES = ("nearest_even", "nearest_away")


def unit_of(steps: list[str], fmt: str, mode: str = "nearest_even", x: str = "a[0]", y: str = "b[0]",
            coarse: str = "e3m1_ieee", other: str = "nearest_even") -> Unit:  # fmt: skip
    text = UNIT.replace("STEPS", "\n".join(f"  {step}" for step in steps)).replace("FORMAT", fmt).replace("MODE", mode)
    word = ', h: "round(COARSE, OTHER)"' if any("h(" in step for step in steps) else ""
    text = text.replace("WORD", word).replace("OTHER", other).replace("COARSE", coarse).replace("X", x).replace("Y", y)
    return parse_unit(text, "small.yaml")


def numbers_of(fmt: Format) -> dict[int, Fraction]:
    every = ((p, exact_value(p, fmt)) for p in range(1 << fmt.width))
    return {p: Fraction(0) if v == "-0" else Fraction(v) for p, v in every if not isinstance(v, str) or v == "-0"}


def results(unit: Unit, c: list[int] | None = None) -> list[tuple[Fraction, Fraction, Fraction, Fraction]]:
    """Of all finite inputs on which nothing overflows: a, b, c and the result."""
    sides = numbers_of(unit.a), numbers_of(unit.b), numbers_of(unit.c)
    rows = np.array(list(product(sides[0], sides[1], c or sides[2])), np.uint64)
    found, admitted = covered(Model("small", unit), rows)
    values = numbers_of(unit.d)
    return [(sides[0][a], sides[1][b], sides[2][z], values[d])
            for (a, b, z), d in zip(rows[admitted].tolist(), found[admitted].tolist(), strict=True)]  # fmt: skip


def lost(node: Node) -> tuple[Round, int]:
    """The addition whose loss a node is said to be, and its sign."""
    return next(iter([*two_sum(node), *((s, sign) for s, _, _, sign in fast_two_sum(node))]))


@pytest.mark.parametrize("fmt", FORMS)
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_gives_what_its_addition_loses(name: str, mode: str, fmt: str) -> None:
    """Fast 2Sum where |x| >= |y|: with other inputs it does not."""
    steps = PROGRAMS[name]
    unit = unit_of([*steps[:-1], steps[-1].replace("e:", "d:")], fmt, mode)
    s, sign = lost(unit.result)
    sums = {(a, b): total for a, b, _, total in results(unit_of([steps[0].replace("s:", "d:")], fmt, mode), [0])}
    seen = [(a, b, e, sign * (a + b - sums[a, b])) for a, b, _, e in results(unit, [0]) if (a, b) in sums]
    assert len(seen) > 500
    fast = "fast" in name or "Kahan" in name
    assert all(e == wanted for a, b, e, wanted in seen if not fast or abs(a) >= abs(b))
    assert any(e for *_, e in seen)
    assert isinstance(s, Round)
    if fast:
        assert any(e != wanted for *_, e, wanted in seen)


@pytest.mark.parametrize("mode", ["toward_zero", "up", "down", "to_odd"])
def test_no_program_is_taken_for_it_in_another_mode(mode: str) -> None:
    for steps in PROGRAMS.values():
        assert not residuals(unit_of([*steps, "d: r(exact(s, e))"], "e3m2_ieee", mode).result)


@pytest.mark.parametrize("left", range(2, 6))
def test_a_program_with_one_wrong_operand_is_none(left: int) -> None:
    """A sign or an operand changed in each step after the first two."""
    steps = PROGRAMS["2Sum"]
    for old, new in (("-", ""), ("u", "w"), ("w", "u"), ("X", "Y"), ("Y", "X"), ("q", "-q")):
        broken = [*steps]
        broken[left] = broken[left].partition(":")[0] + ":" + broken[left].partition(":")[2].replace(old, new)
        try:
            unit = unit_of([*broken, "d: r(exact(s, e))"], "e3m2_ieee")
        except InputError:  # a step that reads itself
            continue
        if broken != steps and "q" not in old:
            assert not any(list(two_sum(node)) for node in residuals(unit.result)), broken


@pytest.mark.parametrize("other", ["nearest_even", "nearest_away", "toward_zero", "up", "to_odd"])
@pytest.mark.parametrize("coarse", ["e3m1_ieee", "e2m1"])
def test_what_a_rounding_leaves_is_a_number(coarse: str, other: str) -> None:
    """To nearest and toward zero; up, a small number leaves more than the format holds."""
    unit = unit_of(["hi: h(a[0])", "d: r(exact(a[0], -hi))"], "e4m2_ieee", coarse=coarse, other=other)
    words = {a: h for a, _, _, h in results(unit_of(["d: r(exact(h(a[0]), +0))"], "e4m2_ieee", coarse=coarse,
                                                    other=other), [0])}  # fmt: skip
    wrong = [a for a, _, _, rest in results(unit, [0]) if abs(a) < 4 and rest != a - words[a]]
    assert (rest_of_rounding(unit.result) is not None) == (other in ("nearest_even", "nearest_away", "toward_zero"))
    assert not wrong or other in ("up", "to_odd")
    assert wrong or other not in ("up", "to_odd")


#: steps that end in a sum with what an addition lost, and by how much naive bounds are larger
SUMS = {
    "added back last": ([*PROGRAMS["2Sum"], "t: r(exact(s, c))", "d: r(exact(t, e))"], "Y"),
    "added back to c": ([*PROGRAMS["2Sum"], "t: r(exact(e, c))", "d: r(exact(s, t))"], "Y"),
    "signs": ([*PROGRAMS["2Sum, signs"], "d: r(exact(s, e, c))"], "Y"),
    "of a product": ([*PROGRAMS["2Sum"], "d: r(exact(s, e, a[0]))"], "Y"),
    "twice": ([*PROGRAMS["2Sum"], "t: r(exact(product(2**1, e), c))", "d: r(exact(s, t, -e))"], "Y"),
    "fast": ([step.replace("X", "number(0x1c, e3m1_ieee)") for step in PROGRAMS["fast 2Sum"]]
             + ["d: r(exact(s, e, c, -number(0x1c, e3m1_ieee)))"], "Y"),
    "fast, not ordered": ([*PROGRAMS["fast 2Sum"], "d: r(exact(s, e, c))"], "Y"),
    "of more bits": ([step.replace("X", "c").replace("Y", "product(number(0x0a, e3m2_ieee), h(a[0]))")
                      for step in PROGRAMS["2Sum"]] + ["d: r(exact(s, e, b[0]))"], "Y"),
    "words": (["hi: h(a[0])", "lo: r(exact(a[0], -hi))"] + [step.replace("X", "hi").replace("Y", "c")
              for step in PROGRAMS["2Sum"]] + ["d: r(exact(s, r(exact(e, lo))))"], "Y"),
}  # fmt: skip


EXACT_SUMS: dict[str, Any] = {
    "of a product": lambda a, b, c: a + b + a, "twice": lambda a, b, c: a + b + c, "fast": lambda a, b, c: b + c,
    "words": lambda a, b, c: a + c, "of more bits": lambda a, b, c: 0.75 * a + b + c,
}  # fmt: skip


def worst(name: str, unit: Unit) -> tuple[float, float]:
    """The largest error less the bound, and the largest share of it, of all finite inputs on which nothing overflows:
    exact, in 53 bits."""
    model, error = Model("small", unit), error_of(bound_of(unit, believed))
    sides = [np.array(sorted(numbers_of(fmt)), np.uint64) for fmt in (unit.a, unit.b, unit.c)]
    table = np.stack([axis.ravel() for axis in np.meshgrid(*sides, indexing="ij")], 1)
    found, admitted = covered(model, table)
    table, found = table[admitted], found[admitted]
    floats = {p: float(v) for p, v in numbers_of(unit.d).items()}
    value = np.vectorize(lambda pattern: floats.get(int(pattern), np.nan))
    a, b, c, d = (value(column) for column in (*table.T, found))
    exact = EXACT_SUMS.get(name, lambda a, b, c: a + b + c)(a, b, c)
    sizes = {"a": np.abs(a), "b": np.abs(b), "c": np.abs(c), EXACT: np.abs(exact)}
    bound = np.zeros(len(d))
    for atom, factor in error.parts.items():
        assert not any(one.raised for item in atom for one in item)
        items = [np.prod([sizes[one.name] for one in item], axis=0) * np.ones(len(d)) for item in atom]
        bound += float(factor) * np.max(items, axis=0)
    errors = np.abs(d - exact)
    return float(np.max(errors - bound)), float(np.max(errors / np.where(bound > 0, bound, 1)))


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", SUMS)
def test_no_input_is_beyond_the_bound_of_a_sum(name: str, mode: str) -> None:
    """And one of them comes near it, but where fast 2Sum has the smaller number first, or a product has more bits."""
    steps, y = SUMS[name]
    unit = unit_of(steps, "e3m1_ieee" if name != "words" else "e3m2_ieee", mode, y=y.replace("Y", "b[0]"),
                   coarse="e2m1" if name == "of more bits" else "e3m1_ieee")  # fmt: skip
    theorem = bound_of(unit, believed)
    assert "error_free" in {one.rule for one in theorem.walk()}
    beyond, near = worst(name, unit)
    assert beyond <= 0
    assert near > (0.1 if name in ("fast, not ordered", "of more bits") else 0.3)
    assert faults(unit, [theorem]) == []


@pytest.mark.parametrize(("y", "number"), [("product(number(0x0a, e3m2_ieee), h(a[0]))", False), ("h(a[0])", True)])
def test_what_has_more_bits_than_the_format_is_no_number(y: str, number: bool) -> None:
    """0.75 times a number of e2m1, whose four bits e3m1 has not, and the number itself."""
    steps = [step.replace("product(number(0x0a, e3m2_ieee), h(a[0]))", y) for step in SUMS["of more bits"][0]]
    unit = unit_of(steps, "e3m1_ieee", y="b[0]", coarse="e2m1")
    assert isinstance(unit.result, Round)
    node = unit.result.term
    assert isinstance(node, ExactSum)
    goals: list[Any] = [bound._Composer(unit, believed).of(leaf, ()).goal for leaf in leaves(node)]
    followed = Followed(node, {goal.node: goal.facts for goal in goals})
    assert (len(followed.values[node.items[1]]) == 1) == number


def test_a_rounding_is_not_both_kept_and_followed() -> None:
    """That of a + b, as a term of a sum, and as a factor of another."""
    unit = unit_of(["lo: r(exact(a[0], b[0]))", "d: r(exact(lo, lo * b[0], c))"], "e3m2_ieee")
    assert isinstance(unit.result, Round)
    node = unit.result.term
    assert isinstance(node, ExactSum)
    composer = bound._Composer(unit, believed)
    premises = {leaf: composer.of(leaf, ()) for leaf in leaves(node)}
    lemmas = [believed(one) for one in losses(node)]
    assert error_free(node, (), list(premises.values()), lemmas)
    lo, times = node.items[:2]
    assert isinstance(lo, Round)
    assert isinstance(times, Product)
    factors = [part(unit, lo, (), [believed(one) for one in part_lemmas(lo)]), composer.of(Element("b", Index(0)), ())]
    premises[times] = rules.product(times, (), factors)
    with pytest.raises(RuleError, match="a rounding that is kept is followed"):
        error_free(node, (), list(premises.values()), lemmas)


def test_a_step_of_a_chain_loses_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    """The addend is any sum so far, which stands in several places: it enters the sum once."""
    unit = unit_of([*PROGRAMS["2Sum"], "d: r(exact(s, e))"], "e3m2_ieee", x="c", y="b[0]")
    chain: Any = chain_of(unit, believed).goal
    assert chain.step.growth == 1 + Fraction(1, 8)
    monkeypatch.setattr(bound, "residuals", lambda node: frozenset())
    with pytest.raises(RuleError, match="more than once"):
        chain_of(unit, believed)


PLAN = """plan: {name}
formats: {{a: f16, b: f16, c: f32, d: f32}}
units: {{mma: ampere/mma/m16n8k16.f32.f16.f16.f32}}
roundings: {{r: "round(f32, {mode})"}}
steps:
  x: sum(mma, +0)
  s: r(exact(x, c))
  u: r(exact(s, -x))
  w: r(exact(s, -u))
  e: r(exact(r(exact(x, -w)), r(exact(c, -u))))
  d: r(exact(s, {last}))
"""


def test_a_plan_adds_what_an_addition_lost() -> None:
    """Of c only the last rounding is lost; without it both."""
    bounds = {}
    for last in ("e", "-0"):
        plan = parse_plan(PLAN.format(name="mine", mode="nearest_even", last=last), "mine.yaml", parse_reference)
        for length in (64, None):
            error = error_of(bound_of_plan(plan, length, believed))
            bounds[last, length] = {factor.name: value for atom, value in error.flat().parts.items()
                                    for item in atom if len(item) == 1 for factor in item}  # fmt: skip
    for length in (64, None):
        assert "c" not in bounds["e", length]
        assert bounds["-0", length]["c"] > Fraction(1, 1 << 25)
    plan = parse_plan(PLAN.format(name="mine", mode="toward_zero", last="e"), "mine.yaml", parse_reference)
    assert "c" in {f.name for atom in error_of(bound_of_plan(plan, 64, believed)).parts for item in atom for f in item}
