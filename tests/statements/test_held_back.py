"""False statements that no prover has been tried on while it was written: nothing proves them.

By hand: units that differ in one rare condition, properties of units that flush, have a floor, a sticky bit or few
bits, restrictions that admit few inputs, plans that differ at a tail alone. By program: conditions of a datapath that
some input reaches, called unreachable; bounds made a little smaller. That each is false is shown by evaluation.
"""

from __future__ import annotations

from fractions import Fraction
from functools import partial

import numpy as np
import pytest

from benchmarks import plan_statements
from benchmarks.statements import blind
from mmaprobe.queries.covering.cover import Covering
from mmaprobe.queries.kernel.bounds.enclosures import weakened
from mmaprobe.queries.kernel.bounds.forms import Form
from mmaprobe.queries.kernel.cases.unreachable import Unreachable, refuted
from mmaprobe.queries.kernel.properties.together import ORDER, each_part, every_order
from mmaprobe.queries.kernel.questions.problem import Problem
from mmaprobe.queries.kernel.questions.statements import problems_of
from mmaprobe.queries.kernel.theorem import RuleError
from mmaprobe.queries.plans import equal as plans_equal
from mmaprobe.queries.properties.bound import bound_of, error_of
from mmaprobe.queries.properties.forms import by_expression, by_rewriting
from mmaprobe.queries.properties.proving import proofs_of, verdict_of
from mmaprobe.queries.search.distinguish import Options
from mmaprobe.queries.search.samples import sample_rows
from mmaprobe.queries.search.witness import replay
from mmaprobe.queries.solvers.asking import Engines
from mmaprobe.smtmodel.base.errors import MmaprobeError
from mmaprobe.smtmodel.evaluate.model import Model
from mmaprobe.smtmodel.inputs.admitted import ExponentRange, Inputs
from mmaprobe.smtmodel.units.unitfile import parse_unit
from tests.proofs.test_bounds import UNITS, small
from tests.said import believed

pytestmark = pytest.mark.solvers

UNIT = """unit: held back
formats: {{a: {a}, b: {a}, c: {d}, d: {d}}}
length: {length}
inputs: {{{reads}}}
roundings: {{r: "round({d}, {how})"}}
steps:
  d: {step}
"""
P, Q = "a[0] * b[0]", "a[0:2] * b[0:2]"
NEAR = "nearest_even"
ROWS = 1 << 16


def unit(step: str, how: str = NEAR, reads: str = "", d: str = "e5m2", a: str = "e2m1") -> Model:
    length = 1 + ("[1]" in step or ":2]" in step or "range(2)" in step or "(1, 0)" in step)
    text = UNIT.format(length=length, step=step, how=how, reads=reads, d=d, a=a)
    return Model(f"{step}, {how} {reads}", parse_unit(text, "held.yaml"))


#: two units, of which an input shows a difference; or one step and two ways to round or to read
PAIRS: list[tuple[Model, Model]] = [
    *((unit(f"r(fused({P}, c, {one}))"), unit(f"r(fused({P}, c, {other}))")) for one, other in (
        ("F=4", "F=5"), ("F=3, sticky=true", "F=3"), ("F=3", "F=3, rounding=nearest_even"),
        ("F=2, rounding=down", "F=2"), ("F=2, rounding=up", "F=2, rounding=nearest_away"),
        ("F=2, zeros=0", "F=2"), ("F=1, least=1", "F=1"), ("F=2, floors=[none, -1]", "F=2"),
        ("F=6, reach=[none, 2]", "F=6"), ("F=[3, 4]", "F=3"), ("F=9", "F=12"), ("F=1, zeros=3", "F=1, least=3"),
        ("F=3, sticky=true", "F=4, sticky=true"), ("F=0, carry=0", "F=0"),
    )),
    *((unit(f"r(fused({Q}, c, {one}))"), unit(f"r(fused({Q}, c, {other}))")) for one, other in (
        ("F=3, carry=0", "F=3"), ("F=3, carry=1", "F=3, carry=0"), ("F=5", "F=6"), ("F=1, zeros=1", "F=1, zeros=2"),
    )),
    (unit(f"r(fused({P}, c, F=1))"), unit("r(fused(product(a[0], b[0], normalised=true), c, F=1))")),
    (unit(f"r(exact({P}, c))"), unit("r(exact(product(a[0], b[0], limit=5), c))")),
    (unit(f"r(exact({P}, c))"), unit(f"r(fused({P}, c, F=9))")),
    (unit(f"r(cut(exact({P}, c), 4, toward_zero))"), unit(f"r(cut(exact({P}, c), 5, toward_zero))")),
    (unit(f"r(cut(exact({P}, c), 5, down))"), unit(f"r(exact({P}, c))")),
    (unit(f"r(exact(r({P}), c))"), unit(f"r(exact({P}, c))")),
    (unit(f"r(fused({P}, c, F=3, sticky=true))"), unit(f"r(exact({P}, c))")),
    (unit(f"r(exact({P}, c, number(1, e5m2)))"), unit(f"r(exact({P}, c))")),
    (unit(f"r(exact({P}, -0))"), unit(f"r(exact({P}, +0))")),
    (unit("repeat(i in range(2), c, r(exact(a[i] * b[i], acc)))"),
     unit("r(exact(a[0] * b[0], r(exact(a[1] * b[1], c))))")),
    (unit("r(exact(repeat(i in range(2), +0, r(exact(a[i] * b[i], acc))), c))"),
     unit("repeat(i in range(2), c, r(exact(a[i] * b[i], acc)))")),
    (unit(f"r(exact(r(exact({Q})), c))"), unit(f"r(exact({Q}, c))")),
    (unit(f"r(fused(fused({Q}, F=2), c, F=2))"), unit(f"r(fused({Q}, c, F=2))")),
    *((unit(f"r(exact({P}, c))", one), unit(f"r(exact({P}, c))", other)) for one, other in (
        (NEAR, "nearest_away"), ("toward_zero", "to_odd"), ("down", "toward_zero"), ("to_odd", "up"),
        (f"{NEAR}, subnormals=flush_after", NEAR),
        ("down", "down, zero=exact_positive"),
        (f"{NEAR}, nan=0x7f", f"{NEAR}, nan=0x7e"), (f"{NEAR}, zero=positive", NEAR),
    )),
    (unit(f"r({P})", f"{NEAR}, subnormals=flush_after", d="e3m2", a="e2m3"),
     unit(f"r({P})", f"{NEAR}, subnormals=flush_before", d="e3m2", a="e2m3")),
    (unit(f"r({P})", "nearest_even, zero=positive", a="e3m2"), unit(f"r({P})", "nearest_even", a="e3m2")),
    *((unit(f"r(exact({P}, c))", NEAR, reads), unit(f"r(exact({P}, c))")) for reads in (
        "subnormals: zero", "zeros: positive")),
]  # fmt: skip
PAIRS += [(unit(f"r({P})", one, a="e5m2"), unit(f"r({P})", other, a="e5m2")) for one, other in (
    (f"{NEAR}, overflow=saturate", NEAR), ("toward_zero, overflow=infinity", "toward_zero"))]  # fmt: skip
#: unit, property, inputs
PROPERTIES: list[tuple[Model, str, Inputs]] = [
    *((unit("repeat(i in range(2), c, r(exact(a[i] * b[i], acc)))"), "order-independent", inputs) for inputs in (
        Inputs(), Inputs(finite=True, nonzero=True), Inputs(exponents=ExponentRange(min=0, max=1)))),
    (unit("r(fused(a[0] * b[0], a[1] * b[1], c, F=[1, 2, 2]))"), "order-independent", Inputs()),
    (unit("r(fused(a[0] * b[0], a[1] * b[1], c, F=4, reach=[1, none, none]))"), "order-independent", Inputs()),
    (unit("r(fused(a[0] * b[0], r(a[1] * b[1]), c, F=1))", "to_odd", d="e2m3"), "order-independent", Inputs()),
    *((unit(f"r(exact({P}, c))", how), "sign-symmetric", Inputs()) for how in ("down", "up")),
    (unit(f"r(fused({P}, c, F=1, rounding=down))"), "sign-symmetric", Inputs(finite=True)),
    (unit(f"r(fused({P}, c, F=2, rounding=toward_zero, carry=0))"), "sign-symmetric", Inputs()),
    (unit(f"r(exact({P}, c, number(60, e5m2)))"), "sign-symmetric", Inputs(nonzero=True)),
    (unit(f"r(fused({Q}, c, F=2))"), "monotonic-addend", Inputs(finite=True)),
    (unit(f"r(fused({P}, c, F=1, zeros=2))"), "monotonic-product", Inputs()),
    (unit(f"r(fused({Q}, c, F=1))"), "monotonic-product", Inputs(finite=True)),
    (unit(f"r(fused({Q}, c, F=1))"), "monotonic-addend", Inputs()),
    (unit(f"r(fused({P}, c, F=3, carry=0))"), "monotonic-addend", Inputs(nonnegative=True, finite=True)),
    (unit(f"r(fused({P}, c, F=4, reach=[1, none]))"), "monotonic-addend", Inputs()),
    (unit(f"r(cut(fused({P}, c, F=1), 2, down))"), "monotonic", Inputs()),
    *((unit(f"r(fused({P}, c, F=2))"), "exact", inputs) for inputs in (
        Inputs(), Inputs(finite=True, nonzero=True), Inputs(exponents=ExponentRange(min=-2, max=3)))),
    (unit(f"r(exact({P}, c))", f"{NEAR}, subnormals=flush_before"), "exact", Inputs(finite=True)),
    (unit(f"r(exact(r({P}), c))", "to_odd", d="e2m3"), "exact", Inputs()),
    (unit(f"r(exact({P}, c))", NEAR, "subnormals: zero"), "exact", Inputs(nonzero=True)),
    (unit(f"r(fused({P}, c, F=3, sticky=true))"), "exact", Inputs()),
]  # fmt: skip
#: both steps, K (None: any)
PLANS = [
    ("sum(chain(four, tail=fma), c)", "sum(chain(four, tail=two), c)", 5 + 1),
    ("sum(chain(four, tail=fma), c)", "sum(four, c)", 7), ("sum(chain(ones, tail=two), c)", "sum(fma, c)", 6),
    ("sum(split(3, fma, r), c)", "sum(split(3, fma, r, grain=2), c)", 8),
    ("sum(split(2, ones, r), c)", "sum(split(2, fma, r), c)", 12), ("sum(split([4], fma, r), c)", "sum(fma, c)", 6),
    ("sum(lanes(fma, r, 4, fold(4, 1)), c)", "sum(lanes(fma, r, 4, fold(2, 2), fold(2, 1)), c)", 4),
    ("sum(lanes(fma, r, 4, fold(4, 1)), c)", "sum(lanes(fma, r, 4, fold(4, 1), head=2), c)", 6),
    ("sum(lanes(fma, r, 4, fold(4, 1)), c)", "sum(lanes(fma, r, 4, fold(4, 1), tail=fma), c)", None),
    ("sum(interleave(2, fma, r, tail=fma), c)", "sum(interleave(2, fma, r, grain=2, tail=fma), c)", 5),
    ("sum(interleave(4, fma, r), c)", "sum(split(4, fma, r), c)", 8),
    ("sum(promote(8, fma, r, even=2), c)", "sum(promote(8, fma, r), c)", 12),
    ("sum(promote(8, fma, r, tail=fma), c)", "sum(promote(8, fma, r), c)", 12),
    ("sum(promote(4, fma, r), c)", "sum(promote(4, fma, r), +0)", None),
    ("sum(promote(4, fma, r), c)", "sum(promote(8, fma, r), c)", None),
    ("sum(promote(4, fma, r), c)", "sum(promote(4, fma, z), c)", None),
    ("sum(halve(4, fma, r), c)", "sum(halve(8, fma, r), c)", 8), ("sum(halve(4, two, r), c)", "sum(two, c)", None),
    ("r(exact(sum(fma, +0), c))", "sum(fma, c)", None),
    ("z(exact(sum(fma, +0), c))", "r(exact(sum(fma, +0), c))", None),
    ("sum(r(fma), c)", "sum(z(two), c)", None), ("sum(pairs, c)", "sum(ones, c)", None),
    ("sum(late, c)", "sum(short, c)", None), ("sum(split(2, four, r, order=pairwise), c)", "sum(four, c)", None),
]  # fmt: skip
BLIND = Options(timeout=3.0)
QUICK = PAIRS[::6], PROPERTIES[::5], PLANS[::4]


def differs(problem: Problem) -> bool:
    """Whether some input of many breaks it."""
    layout = problem.layout
    widths = [fmt.width for fmt in layout.formats]
    if sum(widths) <= 16:
        grid = np.indices([1 << width for width in widths]).reshape(len(widths), -1).T.astype(np.uint64)
        rows = grid
    else:
        rows = sample_rows(layout, ROWS)
    return bool(np.any(replay(problem, rows).differs))


def test_there_are_a_hundred() -> None:
    assert len(PAIRS) + len(PROPERTIES) + len(PLANS) + 12 >= 100


@pytest.mark.parametrize("pair", PAIRS, ids=lambda pair: f"{pair[0].reference} | {pair[1].reference}")
def test_units_differ_and_are_not_one_expression(pair: tuple[Model, Model]) -> None:
    """By rules that ask no engine."""
    problem = Problem(*pair)
    assert differs(problem)
    assert by_expression(problem) is None


def equal_by_any(problem: Problem) -> bool:
    with blind():
        proved = verdict_of(proofs_of([problem], BLIND, confirm=False)) == "equal"
    return proved or by_rewriting(problem, BLIND, confirm=False) is not None


@pytest.mark.parametrize("pair", QUICK[0])
def test_units_are_not_proved_equal(pair: tuple[Model, Model]) -> None:
    assert not equal_by_any(Problem(*pair))


@pytest.mark.slow
@pytest.mark.parametrize("pair", PAIRS)
def test_no_units_are_proved_equal(pair: tuple[Model, Model]) -> None:
    assert not equal_by_any(Problem(*pair))


def is_proved(model: Model, wanted: str, inputs: Inputs) -> bool:
    problems = problems_of(wanted, model, inputs)
    assert any(map(differs, problems)), "it is true"
    rule = every_order if wanted == ORDER else partial(each_part, wanted)
    with pytest.raises(RuleError):  # from no theorem
        rule(model, inputs, problems[0].compare, [])
    with blind():
        return verdict_of(proofs_of(problems, BLIND, confirm=False)) == "equal"


@pytest.mark.parametrize(("model", "wanted", "inputs"), QUICK[1])
def test_a_property_is_not_proved(model: Model, wanted: str, inputs: Inputs) -> None:
    assert not is_proved(model, wanted, inputs)


@pytest.mark.slow
@pytest.mark.parametrize(("model", "wanted", "inputs"), PROPERTIES)
def test_no_property_is_proved(model: Model, wanted: str, inputs: Inputs) -> None:
    assert not is_proved(model, wanted, inputs)


def plans_proved(left: str, right: str, length: int | None, patched: pytest.MonkeyPatch) -> bool:
    """Whether they are proved equal, by a prover that looks at no product."""
    sides = plan_statements.plan(left), plan_statements.plan(right)
    asked = plan_statements.Statement(left, right, length)
    lengths = [length] if length else [*plan_statements.lengths_of(asked, sides, 0), 7, 6]
    taken = []
    for k in lengths:
        try:
            taken.append(plan_statements.agree(*sides, k, 4))
        except MmaprobeError:
            continue
    assert not all(taken), "they are equal"
    for name in ("_differ_on_samples", "_differ_by_solver"):
        patched.setattr(plans_equal._Prover, name, lambda self, k: False)
    patched.setattr(plans_equal._Prover, "_check", lambda self: None)
    proof = plans_equal.prove_plans(*sides, length, BLIND, confirm=False)
    if proof.verdict != "equal" or length is not None:
        return proof.verdict == "equal"
    many = (proof.multiples * n for n in (1, 2, 3, 5))  # equal for some multiples is no lie
    return any(not plan_statements.agree(*sides, k, 4) for k in many)


@pytest.mark.parametrize(("left", "right", "length"), QUICK[2])
def test_plans_are_not_proved_equal(left: str, right: str, length: int | None, monkeypatch: pytest.MonkeyPatch) -> None:
    assert not plans_proved(left, right, length, monkeypatch)


@pytest.mark.slow
@pytest.mark.parametrize(("left", "right", "length"), PLANS)
def test_no_plans_are_proved_equal(left: str, right: str, length: int | None, monkeypatch: pytest.MonkeyPatch) -> None:
    assert not plans_proved(left, right, length, monkeypatch)


def test_what_some_input_reaches_is_not_out_of_reach() -> None:
    """Each reached condition, together with what no input reaches: one lemma about both."""
    model = unit(f"r(fused({P}, c, F=3))")
    found = Covering(model, False, [], samples=256).run(Options(timeout=30.0))
    reached = [case for case, count in found.counts.items() if count and isinstance(case, tuple)]
    beyond = next(iter(found.unreachable))
    for case in reached[:: len(reached) // 8][:8]:
        with pytest.raises(RuleError, match="sat"):
            refuted(Unreachable(model, (beyond, case)), Engines(seconds=10.0))


@pytest.mark.parametrize("name", ["truncated", "sticky", "floor", "chain"])
def test_a_bound_is_not_made_smaller(name: str) -> None:
    theorem = bound_of(small(*UNITS[name]).unit, believed)
    proved = error_of(theorem)
    for part in (Fraction(1, 2), 1 - Fraction(1, 1 << 30)):
        less = Form({atom: factor * part for atom, factor in proved.parts.items()})
        with pytest.raises(RuleError):
            weakened(theorem, less)
