"""False statements about units that are odd where formats end: a number written for NaN, results of formats neither of
which holds the other. Truth by all inputs; nothing proves them, with no example to look at, and `check` takes none."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from benchmarks.statements import (
    Statement,
    admitted,
    beyond,
    blind,
    columns_of,
    grid_of,
    judged,
    problems_about,
    results,
    values_of,
)
from mmaprobe.cli.main import main
from mmaprobe.queries.kernel.bounds.wording import up_decimal, up_float, up_text
from mmaprobe.queries.kernel.questions.problem import Problem, _holding
from mmaprobe.queries.kernel.questions.statements import problems_of
from mmaprobe.queries.kernel.theorem import RuleError
from mmaprobe.queries.properties.bound import bound_of, error_of
from mmaprobe.queries.properties.forms import by_expression
from mmaprobe.queries.properties.proving import proofs_of, verdict_of
from mmaprobe.queries.properties.signs import symmetry_of
from mmaprobe.queries.search.distinguish import Options
from mmaprobe.queries.search.samples import sample_rows
from mmaprobe.queries.search.witness import confirmed_witness, replay
from mmaprobe.queries.tactics.normalising import Normaliser, normal_form
from mmaprobe.queries.tactics.settling import Settled
from mmaprobe.smtmodel.arithmetic import ieee
from mmaprobe.smtmodel.arithmetic.display import exact_value
from mmaprobe.smtmodel.arithmetic.formats import format_named
from mmaprobe.smtmodel.arithmetic.rounding import Target
from mmaprobe.smtmodel.base.errors import InputError, ParameterError
from mmaprobe.smtmodel.carriers.algebra import constant
from mmaprobe.smtmodel.carriers.arrays import ArrayCarrier
from mmaprobe.smtmodel.evaluate.batch import evaluate_batch
from mmaprobe.smtmodel.evaluate.model import Model
from mmaprobe.smtmodel.inputs.admitted import Compare, ExponentRange, Inputs
from mmaprobe.smtmodel.nodes.normal import normal
from mmaprobe.smtmodel.nodes.round import Rounding
from mmaprobe.smtmodel.tables.reference import parse_reference
from mmaprobe.smtmodel.units.unitfile import parse_unit
from tests.oracles import node_oracle
from tests.second.document import Document, nan_as
from tests.second.magnitudes import FaultError
from tests.second.sign_rules import turns
from tests.second.written import written
from tests.tampering import accepted

pytestmark = pytest.mark.all_inputs

UNIT = """unit: odd
formats: {{a: {a}, b: {a}, c: {c}, d: {d}}}
length: {length}
roundings: {{r: "round({d}, {r})", z: "round({z})"}}
steps:
  d: {step}
"""
NARROW = """unit: narrow
formats: {a: e3m2, b: e3m2, c: e3m2, d: e2m3}
length: 1
roundings: {r: "round(e5m2, nearest_even)", z: "round(e2m3, nearest_even)"}
steps:
  sum: r(exact(a[0] * b[0], c))
  d: z(sum)
"""
SCALED = """unit: scaled
formats: {{{formats}}}
length: 1
scale_block: 1
steps:
  d: round(exact(scale(a[0] * b[0], scale_a[0], {factor}), c), e4m3)
"""
NEAR = "nearest_even"
SUM = "exact(a[0] * b[0], c)"
LOOP = "repeat(i in range(2), +0, r(fused(a[i] * b[i], acc, F=4)))"
BLIND = Options(timeout=10.0)


def unit(
    step: str, r: str = NEAR, z: str = f"e4m3, {NEAR}", d: str = "e5m2", a: str = "e2m1", c: str = "e4m3"
) -> Model:
    text = UNIT.format(step=step, r=r, z=z, d=d, a=a, c=c, length=2 if "[i]" in step else 1)
    return Model(f"{step}; {r}; {z}", parse_unit(text, "odd.yaml"))


@dataclass(frozen=True)
class Untrue:
    wanted: str
    models: tuple[Model, ...]
    compare: Compare | None = None

    def __str__(self) -> str:
        return f"{self.wanted}, {' | '.join(model.reference for model in self.models)}"


def pair(left: Model, right: Model, compare: Compare | None = None) -> Untrue:
    return Untrue("equal", (left, right), compare)


ODD = [
    *(pair(unit(f"r({SUM})", f"{NEAR}{one}", d=d), unit(f"r({SUM})", f"{NEAR}{other}", d=d)) for d, one, other in (
        ("e5m2", "", ", nan=0x3c"), ("e5m2", "", ", nan=0x0"), ("e5m2", ", nan=0x7e", ", nan=0x3c"),
        ("e2m3", "", ", nan=0x7"), ("e2m3", ", nan=0x0", ", nan=0x20"), ("e4m3", "", ", nan=0x38"),
        ("e4m3fnuz", "", ", nan=0x1"), ("binary6p3se", "", ", nan=0x1"))),
    *(Untrue("sign-symmetric", (unit(f"r({SUM})", f"{NEAR}, nan={nan}", d=d),)) for d, nan in (
        ("e5m2", "0x3c"), ("e2m3", "0x7"), ("e4m3", "0x38"), ("binary6p3se", "0x1"))),
    Untrue("sign-symmetric", (unit(f"r(exact(z({SUM}), a[0] * b[0]))", z=f"e2m3, {NEAR}, nan=0x7"),)),
    # a rounding again: of the NaN that was made a number, and of the number that was made of a NaN
    pair(unit(f"r(z({SUM}))", z=f"e5m2, {NEAR}, nan=0x3c"), unit(f"r({SUM})")),
    pair(unit(f"r(exact(z(r({SUM})), a[0] * b[0]))", z=f"e5m2, {NEAR}, nan=0x3c"),
         unit(f"r(exact(r({SUM}), a[0] * b[0]))")),
    *(pair(unit(f"r(r({SUM}))", how), unit(f"r({SUM})", how)) for how in (
        f"{NEAR}, subnormals=flush_after, nan=0x1", f"{NEAR}, zero=positive, nan=0x80")),
    # one pattern, which is NaN where the result is rounded, and a number within
    pair(unit(f"r(exact(z({SUM}), a[0] * b[0]))", f"{NEAR}, nan=0x7d", f"e6m1_ieee, {NEAR}, nan=0x7d"),
         unit(f"r(exact(z({SUM}), a[0] * b[0]))", NEAR, f"e6m1_ieee, {NEAR}")),
    # -0 for NaN, where no zero is -0 otherwise
    pair(unit("r(exact(z(c), a[0] * b[0]))", z=f"e2m3, {NEAR}, zero=positive, nan=0x20"),
         unit("r(exact(z(c), a[0] * b[0]))", f"{NEAR}, zero=exact_positive", f"e2m3, {NEAR}, zero=positive, nan=0x20")),
    *(pair(unit(LOOP, f"{NEAR}, zero=exact_positive, nan={nan}", a="binary3p2se"),
           unit(LOOP, f"{NEAR}, nan={nan}", a="binary3p2se")) for nan in ("0x80",)),
    # numbers that the format of more bits does not hold
    pair(Model("narrow", parse_unit(NARROW, "odd.yaml")), unit(f"r({SUM})", a="e3m2", c="e3m2"), "value"),
]  # fmt: skip


@pytest.mark.parametrize("untrue", ODD, ids=str)
def test_nothing_false_is_proved(untrue: Untrue) -> None:
    found = judged(Statement(0, untrue.wanted, untrue.models, compare=untrue.compare))
    assert found is not None
    assert not found.true
    problems = problems_about(found)
    with blind():
        assert verdict_of(proofs_of(problems, BLIND, confirm=False)) != "equal"
    assert all(by_expression(problem) is None for problem in problems)


@pytest.mark.parametrize("untrue", [one for one in ODD if one.wanted == "equal"], ids=str)
def test_forms_compute_as_the_units(untrue: Untrue) -> None:
    """The forms, by which the statements would be proved, without the samples that are looked at first."""
    for model in untrue.models:
        proof = Normaliser(BLIND).proof(model.unit)
        form = model.unit.with_result(normal(normal_form(model.unit, proof)))
        table = grid_of(columns_of(model, Inputs()))
        assert np.array_equal(results(model, table), results(Model("form", form), table))


def test_a_number_that_stands_for_nan_is_no_nan_of_any_pattern() -> None:
    """Nor where a parameter of a family says so."""
    name = "volta/mma/m8n8k4.f32.f16.f16.f32@length=1,block=1,nan="
    number, unknown = (parse_reference(name + nan) for nan in ("0", "none"))
    assert number.any_nan is number
    assert by_expression(Problem(number, unknown)) is None


@pytest.mark.parametrize("untrue", [one for one in ODD if one.wanted == "sign-symmetric"], ids=str)
def test_no_sign_symmetry_is_believed(untrue: Untrue) -> None:
    unit = untrue.models[0].unit
    with pytest.raises(RuleError, match="is negated is not known"):
        symmetry_of(unit, Settled(BLIND, False))
    document = Document(written(unit, []))
    with pytest.raises(FaultError, match="does not round both signs alike"):
        turns(document, document.unit["result"], {})


def test_of_two_lengths_it_is_said_what_is_compared(tmp_path: Path) -> None:
    for length, products in ((1, "a[0] * b[0]"), (2, "a[0:2] * b[0:2]")):
        text = UNIT.format(step=f"r(exact({products}, c))", r=f"{NEAR}, zero=positive", z=f"e4m3, {NEAR}", d="e4m3",
                           a="e2m1", c="e2m1", length=length)  # fmt: skip
        (tmp_path / f"{length}.yaml").write_text(text)
    found = CliRunner().invoke(main, ["prove", "--no-confirm", *(str(tmp_path / f"{n}.yaml") for n in (1, 2))])
    assert "about 1 product; further products of the longer model have factors +0" in found.stderr
    assert found.exit_code == 0


def test_a_sheet_of_a_unit_of_which_a_property_cannot_be_asked(tmp_path: Path) -> None:
    text = UNIT.format(step=f"r({SUM})", r=NEAR, z=f"e4m3, {NEAR}", d="e4m3", a="e2m1", c="ue2m1_ieee", length=1)
    (tmp_path / "unit.yaml").write_text(text)
    sheet = tmp_path / "sheet.html"
    found = CliRunner().invoke(main, ["datasheet", str(tmp_path / "unit.yaml"), "-o", str(sheet), "--limit", "0"])
    assert found.exit_code == 0
    assert "ue2m1_ieee has no sign: c cannot be negated" in sheet.read_text()


def test_the_one_order_of_one_product_has_a_certificate(tmp_path: Path) -> None:
    (tmp_path / "unit.yaml").write_text(
        UNIT.format(step=f"r({SUM})", r=NEAR, z=f"e4m3, {NEAR}", d="e4m3", a="e2m1", c="e4m3", length=1)
    )
    asked = ["prove", "--property", "order-independent", str(tmp_path / "unit.yaml")]
    found = CliRunner().invoke(main, [*asked, "--certificate", str(tmp_path / "proof")])
    assert found.exit_code == 0
    assert accepted(tmp_path / "proof")
    assert '"every_order"' in (tmp_path / "proof" / "log.json").read_text()


def test_formats_of_one_name_are_not_one_format() -> None:
    """Of two files that each call one of their own so."""
    own = "own_formats: {{t: {{exponent: {}, fraction: {}, specials: none}}}}\n"
    text = UNIT.format(step=f"r({SUM})", r=NEAR, z=f"e4m3, {NEAR}", d="e5m2", a="t", c="e4m3", length=1)
    sides = [Model("own", parse_unit(own.format(*fields) + text, "own.yaml")) for fields in ((3, 2), (2, 3))]
    with pytest.raises(ParameterError, match="different formats: e3m2 and e2m3"):
        Problem(*sides)


@pytest.mark.parametrize(
    "name", ["e5m2", "e4m3", "e4m3fnuz", "binary6p3se", "binary8p3se", "e2m3", "tf32", "e2m0_all_ones"]
)
def test_checkers_know_what_is_written_for_nan(name: str) -> None:
    fmt = format_named(name)
    step = 1 << fmt.padding
    for pattern in (None, *range(0, 1 << fmt.width, max(step, 1 << fmt.width >> 12))):
        how, found = Rounding(fmt, nan=pattern), nan_as({"nan": pattern}, asdict(fmt))
        assert (found == "nan", found != "number") == (how.keeps_nan, how.nan_or_zero), pattern


HELD = [("e5m2", "e2m3"), ("f16", "bf16"), ("e4m3fnuz", "binary6p3se"), ("e8m13", "f32"), ("ue8m0", "e5m2"),
        ("e2m1b5_none", "e4m3")]  # fmt: skip


@pytest.mark.parametrize(("one", "other"), HELD)
def test_results_are_compared_where_both_are_held(one: str, other: str) -> None:
    """Every number of both formats, and its neighbours, against every number of the other."""
    sides = [format_named(name) for name in (one, other)]
    wide = _holding(*sides)
    for fmt in sides:
        for pattern in {
            x << fmt.padding for x in (0, 1, 2, fmt.largest_field, fmt.one >> fmt.padding, fmt.infinity_field)
        }:
            value = exact_value(pattern, fmt)
            moved = ieee.convert(constant(ArrayCarrier(), pattern, fmt.width), fmt, Target(wide, "nearest_even")).value
            assert moved is not None
            assert exact_value(moved, wide) == value
    assert wide in sides or wide.name == "both"


@pytest.mark.parametrize("step", ["exact(exact({}))", "exact(exact(exact({})))", "cut(exact({}), 3, down)"])
@pytest.mark.parametrize("zero", ["ieee", "exact_positive", "positive"])
def test_a_sum_of_one_term_is_that_term(step: str, zero: str) -> None:
    """Also within another, and where the term is -0."""
    one, other = (unit(f"r({form.format('a[0] * b[0]')})", f"{NEAR}, zero={zero}") for form in (step, "exact({})"))
    table = grid_of(columns_of(one, Inputs()))[::7]
    found = results(one, table)
    assert found.tolist() == [node_oracle.evaluate(one.unit, row[:1], row[1:2], row[2]) for row in table.tolist()]
    if "cut" not in step:
        assert found.tolist() == results(other, table).tolist()


def test_nothing_is_rounded_to_a_format_without_a_sign() -> None:
    """What -3 would be there is not defined: no statement about it is true."""
    with pytest.raises(InputError, match="ue3m2_all_ones has no sign"):
        unit(f"r({SUM})", d="ue3m2_all_ones")


@pytest.mark.parametrize(
    ("formats", "message"),
    [
        ("a: ue8m0, b: e2m1, c: e4m3, d: e4m3", "ue8m0 has no zero"),
        ("a: e2m1, b: e2m1, c: ue8m0, d: e4m3", "ue8m0 has no zero"),
    ],
)
def test_operands_that_no_sum_can_take(formats: str, message: str) -> None:
    """Pattern 0 is not zero there, which +0 and missing products are."""
    with pytest.raises(InputError, match=message):
        parse_unit(SCALED.format(formats=formats, factor="scale_b[0]"), "odd.yaml")


@pytest.mark.parametrize(
    "term",
    [
        *(
            f"fused(exact({SUM}), exact(a[0] * b[0]), F=0, rounding={mode})"
            for mode in ("toward_zero", "nearest_even", "up")
        ),
        "grid(a[0] * b[0], c, F=[1, 1], reach=[none, -2])",
        *(f"fused(fused(a[0] * b[0], +0, F=40, {name}=-10), c, F=[2, 30])" for name in ("zeros", "least")),
        *(
            total.format("cut(fused(c, number(0xc, e2m1b9_ieee), F=0), 3, up)")
            for total in (
                "fused({}, a[0] * b[0], F=2)",
                "grid({}, a[0] * b[0], F=[0, 2])",
                "fused(fused({}, F=3), a[0] * b[0], F=2)",
            )
        ),
    ],
)
def test_what_lies_far_below_an_exponent_is_aligned(term: str) -> None:
    """An exact sum counts with the exponent 0, so that all of a small one lies below the last place that is kept. A
    term of which no place is in reach vanishes. A sum counts with the exponent at which it was aligned, also where a
    least exponent changed none of its bits; one that is cut, where it is zero, with one below all."""
    model = unit(f"r({term})", a="e2m1b9_ieee", c="e2m1b9_ieee")
    table = grid_of(columns_of(model, Inputs()))[::5]
    wanted = [node_oracle.evaluate(model.unit, row[:1], row[1:2], row[2]) for row in table.tolist()]
    assert all(exact in (own, node_oracle.ANY_NAN) for exact, own in zip(wanted, results(model, table), strict=True))


def test_an_infinite_scale_factor_is_infinite() -> None:
    """All factors of a format with infinities, with a zero, a number and an infinity as products."""
    text = SCALED.format(formats="a: e2m1_ieee, b: e2m1, c: e2m1, d: e4m3, scale: ue2m1_ieee", factor="scale_b[0]")
    model = Model("scaled", parse_unit(text.replace("e4m3", "e5m2"), "odd.yaml"))
    columns = [range(16), (0, 2, 9), (0, 8, 3), range(8), range(8)]
    rows = grid_of(columns)
    found = evaluate_batch(model, rows[:, :1], rows[:, 1:2], rows[:, 2], rows[:, 3:4], rows[:, 4:])
    for (a, b, c, left, right), own in zip(rows.tolist(), found.tolist(), strict=True):
        exact = node_oracle.evaluate(model.unit, [a], [b], c, [left], [right])
        assert exact == own or (exact == node_oracle.ANY_NAN and exact_value(own, model.d) == "nan")


@pytest.mark.parametrize("pattern", ["0x7fc", "0x7fd", "0"])
def test_a_fixed_scale_factor_is_a_positive_number(pattern: str) -> None:
    formats = "a: e2m1, b: e2m1, c: e4m3, d: e4m3, scale: ue8m0"
    with pytest.raises(InputError, match="or a positive number"):
        parse_unit(SCALED.format(formats=formats, factor=f"number({pattern}, e9m2_ieee)"), "odd.yaml")


def test_restrictions_that_admit_nothing_prove_nothing() -> None:
    """None of these formats has an infinity or a NaN, and all statements about no input would hold."""
    model = unit(f"r({SUM})", c="e2m3")
    for inputs in (Inputs(special=True), Inputs(special=True, zero_terms=(0,))):
        with pytest.raises(ParameterError, match="no input is admitted"):
            problems_of("exact", model, inputs)
    assert problems_of("exact", unit(f"r({SUM})"), Inputs(special=True))  # c may be NaN
    with pytest.raises(ParameterError, match="no input is admitted"):
        problems_of("exact", unit(f"r({SUM})"), Inputs(special=True, zero_terms=(1,)))


@pytest.mark.parametrize("inputs", [Inputs(normal=True), Inputs(exponents=ExponentRange(min=-20, max=20))])
@pytest.mark.parametrize("c", ["e4m3", "e5m2", "binary6p3se", "e4m3fnuz"])
def test_what_is_no_number_is_not_normal(c: str, inputs: Inputs) -> None:
    """A NaN, or an infinity, may share its exponent with the largest numbers."""
    problem = Problem(unit(f"r({SUM})", c=c), unit("r(exact(a[0] * b[0], c))", "down", c=c), inputs)
    table = grid_of(columns_of(problem.left, Inputs()))
    counts = admitted(problem.left.c, inputs)
    found = replay(problem, table).admitted.astype(bool)
    assert set(table[found][:, 2].tolist()) == set(counts)
    assert np.isfinite(values_of(problem.left.c)[list(counts)]).all()


@pytest.mark.parametrize("digits", [3, 6])
def test_a_bound_in_decimals_is_rounded_up(digits: int) -> None:
    for value in (
        Fraction(0),
        Fraction(1),
        Fraction(1, 3),
        Fraction(1, 1 << 24),
        Fraction(2) ** 200,
        Fraction(99999999, 10),
    ):
        assert value <= Fraction(up_decimal(value, digits)) <= value * (1 + Fraction(10) ** (1 - digits))
        assert value <= Fraction(up_float(value)) <= value * (1 + Fraction(1, 1 << 52))


@pytest.mark.parametrize(("value", "text"), [
    (Fraction(2) ** -147, "2^-147"), (Fraction(2) ** -147 - Fraction(2) ** -190, "2^-147"),
    (Fraction(5, 1 << 20), "5*2^-20"), (Fraction(2) ** -20 + Fraction(2) ** -60, "1.0001*2^-20"),
    (3 - Fraction(2) ** -40, "1.5000*2^1"), (64 - Fraction(2) ** -40, "64")])  # fmt: skip
def test_a_coefficient_is_rounded_up_and_short(value: Fraction, text: str) -> None:
    assert up_text(value) == text
    number, _, power = text.partition("*2^")
    assert value <= (Fraction(2) ** int(text[2:]) if text.startswith("2^") else Fraction(number) * 2 ** int(power or 0))


@pytest.mark.parametrize(
    "name", ["e2m1_ieee", "e1m1_none", "binary3p2se", "binary3p1se", "e2m0_all_ones", "e1m1_all_ones"]
)
@pytest.mark.parametrize("mode", [NEAR, "toward_zero", "up", "to_odd"])
def test_formats_of_two_exponents_have_bounds(name: str, mode: str) -> None:
    """A lemma about a format whose largest exponent is the least one, or next to it; every input is below its bound."""
    statement = Statement(0, "error-bound", (unit(f"r({SUM})", mode, d=name, c="e2m1"),))
    bound = error_of(bound_of(statement.models[0].unit, Settled(BLIND, False)))
    assert beyond(statement, bound)[0] == 0


def test_a_sum_with_one_exponent_shows_what_it_exercises() -> None:
    problem = Problem(unit("r(fused(exact(a[0] * b[0], c), F=[0]))"), unit(f"r({SUM})"))
    row = next(row for row in sample_rows(problem.layout, 256).tolist() if replay(problem, [row]).differs[0])
    assert confirmed_witness(problem, row) is not None


@pytest.mark.parametrize("given", [{"a": "ue1m1_none"}, {"c": "ue2m1_all_ones"}])
def test_what_has_no_sign_is_not_negated(given: dict[str, str]) -> None:
    with pytest.raises(ParameterError, match="has no sign"):
        problems_of("sign-symmetric", unit(f"r({SUM})", **given), Inputs())
