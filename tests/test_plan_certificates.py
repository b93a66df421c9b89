"""Certificates that two plans are equal: they pass, and with anything in them changed they do not."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import cache
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from benchmarks.plan_statements import UNIT, UNITS, plan
from cli.main import main
from queries.certificates.writing_out import Numbers, alike
from queries.checking.folder import check_folder
from queries.checking.plans import OneZero, _Written, plans_fault
from queries.kernel.problem import Problem
from queries.kernel.statements import reorderings
from queries.plans.certify import certify_difference, certify_plans, read_plan
from queries.plans.equal import prove_plans
from queries.properties.asked import plain
from queries.properties.forms import by_expression
from queries.search.distinguish import Options
from smtmodel.dot import Model
from smtmodel.errors import InputError
from smtmodel.formats import FORMATS
from smtmodel.nodes import Index
from smtmodel.nodes.round import Rounding
from smtmodel.plans import Plan
from smtmodel.plans.lowering import unit_of_plan
from smtmodel.plans.span import Span
from smtmodel.plans.stages import Chain
from smtmodel.reference import parse_reference
from smtmodel.unitfile import parse_unit
from tests.tampering import accepted, fitted, tampered
from tests.test_bounds import ARITHMETICS
from tests.test_prove_plans import with_units

QUICK = Options("bitwuzla", 60.0)
VOLTA = "volta/mma/m8n8k4.f32.f16.f16.f32"
LANES = "sum(lanes({}, r, 2, 2, fold(2, 1), unroll=8{}), c)"
#: pairs that are equal: both steps, and K
EQUAL = [
    ("sum(ones, c)", "sum(fma, c)", None),
    ("sum(promote(8, pairs, r), c)", "sum(promote(8, two, r), c)", None),
    ("sum(split(2, ones, r, grain=4), c)", "sum(split(2, fma, r, grain=2), c)", None),
    ("sum(split([8], pairs, r), c)", "sum(split([8], two, r), c)", None),
    ("sum(interleave(2, ones, r, grain=4), c)", "sum(interleave(2, fma, r, grain=4), c)", 24),
    ("sum(lanes(fma, r, 4, fold(4, 1)), c)", "sum(lanes(fma, r, 4, fold(4, 1), tail=fma), c)", 8),
    ("sum(lanes(pairs, r, 4, fold(4, 1)), c)", "sum(lanes(two, r, 4, fold(4, 1)), c)", None),
    ("sum(lanes(ones, r, 2, fold(2, 1), grain=8), c)", "sum(lanes(fma, r, 2, fold(2, 1), grain=8), c)", None),
    ("sum(halve(8, ones, r, grain=4), c)", "sum(halve(8, fma, r, grain=4), c)", None),
    ("sum(halve(8, ones, r, grain=4, first=smaller), c)", "sum(halve(8, fma, r, grain=4, first=smaller), c)", None),
    (LANES.format("fma", ", order=backwards"), LANES.format("fma", ", order=backwards, tail=fma"), None),
    ("sum(turns(8, swizzle(2, ones, grain=2)), c)", "sum(turns(8, swizzle(2, fma, grain=2)), c)", None),
    ("sum(swizzle(2, ones, grain=2), c)", "sum(swizzle(2, fma, grain=2), c)", None),
    ("sum(turns(8, swizzle(2, pairs, grain=2)), c)", "sum(turns(16, turns(8, swizzle(2, two, grain=2))), c)", None),
    ("sum(turns(8, split(2, ones, r, grain=4)), c)", "sum(turns(8, split(2, fma, r, grain=4)), c)", None),
    ("sum(whole(4, ones, head=fma), c)", "sum(whole(4, fma, head=fma), c)", None),
    ("r(exact(sum(z(ones), +0), c))", "r(exact(sum(z(fma), +0), c))", None),
    ("r(relu(r(exact(sum(z(ones), +0), c)), zero=keep))", "r(relu(r(exact(sum(z(fma), +0), c)), zero=keep))", None),
    ("sum(split(4, two, r, grain=8), c)", "sum(two, c)", 8),
]  # fmt: skip


@cache
def steps() -> tuple[Plan, Plan]:
    """Two whose steps a solver proves equal."""
    return with_units("sum(mma, c)", f"{VOLTA}@carry_bits=4"), with_units("sum(mma, c)", VOLTA)


def folder_of(pair: tuple[Plan, Plan], length: int | None, folder: Path) -> Path:
    proof = prove_plans(*pair, length, QUICK, confirm=False)
    assert proof.verdict == "equal"
    certify_plans(proof, folder, QUICK)
    return folder


@pytest.mark.parametrize(("left", "right", "length"), EQUAL)
def test_equal_plans_have_a_certificate(left: str, right: str, length: int | None, tmp_path: Path) -> None:
    folder = folder_of((plan(left), plan(right)), length, tmp_path)
    assert {found.kind for found in check_folder(folder)} == {"fine"}
    stated = json.loads((folder / "plans.json").read_text())
    assert plans_fault(stated, read_plan(folder, "left.plan.yaml"), read_plan(folder, "right.plan.yaml"), []) == ""


@pytest.mark.parametrize(("left", "right"), [pair[:2] for pair in EQUAL if pair[2] != 8])
def test_they_are_equal_for_the_multiples_that_are_proved_and_no_others(left: str, right: str) -> None:
    ground = prove_plans(plan(left), plan(right), None, QUICK, confirm=False).ground
    assert ground is not None
    taken = [n for n in range(1, 33) if not plans_fault({"schema": 1, "length": None, "multiples": n}, plan(left),
                                                        plan(right), [])]  # fmt: skip
    assert taken == list(range(ground.multiples, 33, ground.multiples))


def test_any_field_changed_is_refused(tmp_path: Path) -> None:
    folder = folder_of((plan(EQUAL[1][0]), plan(EQUAL[1][1])), None, tmp_path)
    assert list(tampered(folder, "plans.json")) == ["plans.json: ('length',) is 0"]  # nothing is said of it
    assert list(tampered(folder, "manifest.json")) == []
    equal = {"left.plan.yaml: line 8: unit: unit-2.yaml"}  # then both plans are one
    assert set(tampered(folder, "*.yaml")) <= equal


def test_a_step_proved_by_a_solver_is_a_part(tmp_path: Path) -> None:
    folder = folder_of(steps(), None, tmp_path)
    assert [path.name for path in folder.glob("proof-*")] == ["proof-1"]
    assert accepted(folder)
    stated, plans = json.loads((folder / "plans.json").read_text()), steps()
    assert "nothing shows that steps of 4" in plans_fault(stated, *plans, [])
    models = [Model("step", parse_reference(reference).unit) for reference in (f"{VOLTA}@carry_bits=4", VOLTA)]
    part = Problem(*models)
    assert plans_fault(stated, *plans, [part]) == ""
    assert "about something else" in plans_fault(stated, *plans, [part, part])
    for other in (Problem(models[1], models[0]), Problem(models[0], models[0]), Problem(*models, compare="value")):
        assert "nothing shows" in plans_fault(stated, *plans, [other])
    (folder / "proof-1" / "whole.drat").unlink()
    assert not accepted(folder)


#: pairs that differ, for the K or multiples with which they are called equal
DIFFER = [
    ("sum(ones, c)", "sum(four, c)", None, 4),
    ("sum(ones, c)", "sum(ones, +0)", None, 4),
    ("sum(promote(8, ones, r), c)", "sum(promote(8, ones, z), c)", None, 8),
    ("sum(promote(8, ones, r), c)", "sum(promote(4, ones, r), c)", None, 8),
    ("sum(split(2, ones, r), c)", "sum(split(4, ones, r), c)", None, 16),
    ("sum(split(4, ones, r), c)", "sum(split(4, ones, r, order=pairwise), c)", None, 16),
    ("sum(split([4], ones, r), c)", "sum(split([8], ones, r), c)", None, 4),
    ("sum(promote(6, chain(four, tail=fma), r), c)", "sum(promote(6, chain(four, tail=two), r), c)", None, 6),
    ("sum(chain(four, tail=fma), c)", "sum(chain(four, tail=two), c)", 7, 0),
    ("sum(promote(8, ones, r), c)", "sum(promote(8, ones, r, even=2), c)", 20, 0),
    ("sum(lanes(fma, r, 4, fold(4, 1)), c)", "sum(lanes(fma, r, 4, fold(4, 1), tail=fma), c)", 7, 0),
    ("sum(interleave(2, fma, r), c)", "sum(interleave(2, fma, r, grain=2), c)", None, 4),
    ("sum(swizzle(2, fma), c)", "sum(swizzle(2, fma, grain=2), c)", None, 4),
    ("sum(swizzle(2, ones, grain=2), c)", "sum(swizzle(2, fma, grain=2), c)", None, 2),
    ("sum(lanes(fma, r, 2, fold(2, 1)), c)", "sum(lanes(fma, r, 2, fold(2, 1), grain=2), c)", None, 4),
    ("sum(lanes(fma, r, 3, fold(3, 1), grain=4), c)",
     "sum(lanes(fma, r, 3, fold(3, 1), grain=4, tail=fma), c)", None, 3),
    ("sum(halve(8, chain(four, tail=fma), r, grain=2), c)",
     "sum(halve(8, chain(four, tail=two), r, grain=2), c)", None, 2),
    ("sum(halve(8, ones, r, grain=4), c)", "sum(halve(8, ones, r, grain=4, first=smaller), c)", None, 4),
    (LANES.format("ones", ""), LANES.format("ones", ", order=backwards"), None, 8),
    (LANES.format("pairs", ", order=backwards"), LANES.format("four", ", order=backwards"), None, 8),
    (LANES.format("chain(four, tail=fma)", ", order=backwards"),
     LANES.format("chain(four, tail=flush)", ", order=backwards"), None, 32),
    ("sum(two, c)", "sum(late, c)", None, 2), ("sum(two, c)", "sum(short, c)", None, 2),
    ("r(exact(sum(ones, +0), c))", "z(exact(sum(ones, +0), c))", None, 4),
    ("r(exact(sum(ones, +0), c))", "sum(ones, c)", None, 4), ("z(exact(sum(ones, +0), c))", "sum(ones, c)", 4, 0),
]  # fmt: skip


@pytest.mark.parametrize(("left", "right", "length", "multiples"), DIFFER)
def test_no_plans_that_differ_are_accepted(left: str, right: str, length: int | None, multiples: int) -> None:
    stated = {"schema": 1, "length": length, "multiples": multiples}
    assert plans_fault(stated, plan(left), plan(right), [])
    for times in (2, 3):
        assert plans_fault({**stated, "multiples": multiples * times or 12 * times}, plan(left), plan(right), [])


@pytest.mark.parametrize("length", [None, 12])
def test_an_input_on_which_plans_differ_is_evaluated_again(length: int | None, tmp_path: Path) -> None:
    """Another K, other places and another plan are looked at with it, and refused where they do not differ."""
    proof = prove_plans(plan("sum(ones, c)"), plan("sum(promote(8, ones, r), c)"), length, QUICK, confirm=False)
    certify_difference(proof, tmp_path, QUICK)
    found, kinds = json.loads((tmp_path / "witness.json").read_text()), [one.kind for one in check_folder(tmp_path)]
    assert set(kinds) == {"fine"}
    more = found["values"] | {f"{side}{len(found['places'])}": "0x0" for side in "ab"}
    changes: list[dict[str, Any]] = [
        {"values": dict.fromkeys(found["values"], "0x0")}, {"values": {"c": "0x0"}},
        {"places": [*found["places"], 99], "values": more}, {"places": [-1, *found["places"]], "values": more},
        {"places": found["places"][::-1]}, {"length": found["places"][-1]}, {"length": 0},
    ]  # fmt: skip
    for change in changes:
        (tmp_path / "witness.json").write_text(json.dumps(found | change))
        fitted(tmp_path)
        assert not accepted(tmp_path), change
    (tmp_path / "witness.json").write_text(json.dumps(found))
    (tmp_path / "left.plan.yaml").write_text((tmp_path / "right.plan.yaml").read_text())
    fitted(tmp_path)
    assert not accepted(tmp_path)


def test_last_sums_are_rounded_alike() -> None:
    stated = {"schema": 1, "length": None, "multiples": 4}
    assert plans_fault(stated, plan("sum(z(ones), c)"), plan("sum(z(fma), c)"), []) == ""
    for other in ("sum(fma, c)", "sum(r(fma), c)"):
        assert "rounded otherwise" in plans_fault(stated, plan("sum(z(ones), c)"), plan(other), [])


def test_what_is_said_of_k_is_what_was_found() -> None:
    same = plan("sum(split(2, ones, r, grain=4), c)"), plan("sum(split(2, fma, r, grain=2), c)")
    good = {"schema": 1, "length": None, "multiples": 8}
    assert plans_fault(good, *same, []) == ""
    for length, multiples in ((None, 4), (None, 0), (12, 8), (0, 0), (None, -8), (None, True), (8, 1), (1, 0)):
        assert plans_fault({"schema": 1, "length": length, "multiples": multiples}, *same, []), (length, multiples)
    tails = plan("sum(chain(four, tail=fma), c)"), plan("sum(chain(four, tail=two), c)")
    assert plans_fault({"schema": 1, "length": None, "multiples": 4}, *tails, []) == ""
    assert plans_fault({"schema": 1, "length": None, "multiples": 1}, *tails, [])


def test_the_command(tmp_path: Path) -> None:
    folder = str(tmp_path / "proof")
    pair = "ampere/mma/m16n8k16.f32.f16.f16.f32", "ampere/mma/m16n8k8.f32.f16.f16.f32"
    done = CliRunner().invoke(main, ["prove", *pair, "--length", "4096", "--certificate", folder])
    assert done.exit_code == 0, done.output
    done = CliRunner().invoke(main, ["check", folder])
    assert done.exit_code == 0, done.output
    assert done.output.startswith("checked: ")
    assert "are equal for every K that is a multiple of 16\n" in done.output


# -- products left over

FUSED = "r(exact(c, r(fused(a[0:{0}] * b[0:{0}], +0, F=3))))"
LEFT_OVER = {
    "fused4": (4, FUSED.format(4)), "exact1": (1, "r(exact(c, r(exact(a[0] * b[0], +0))))"),
    "other4": (4, "r(exact(c, r(fused(a[0:4] * b[0:4], +0, F=2))))"), "squared": (1, "r(exact(c, b[0] * b[0]))"),
}  # fmt: skip


def test_products_left_over_are_compared_from_any_sum_of_tiles(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of four places three are filled up with zeros, of which the part has one."""
    for name, unit in LEFT_OVER.items():
        monkeypatch.setitem(UNITS, name, unit)
    sides = plan("sum(fused4, c)"), plan("sum(chain(fused4, tail=exact1), c)")
    folder = folder_of(sides, 5, tmp_path)
    assert accepted(folder)
    (part,) = (proof.problem for proof in prove_plans(*sides, 5, QUICK, confirm=False).proofs)

    def fault(left: Plan | str, right: Plan | str, length: int = 5) -> str:
        one, other = (plan(side) if isinstance(side, str) else side for side in (left, right))
        return plans_fault({"schema": 1, "length": length, "multiples": 0}, one, other, [part])

    assert fault(*sides) == ""
    assert fault(*sides, 9) == ""
    same, tail = "sum(fused4, c)", "sum(chain({}, tail=exact1), {})"
    assert fault(same, tail.format("other4", "c"))
    assert fault(same, tail.format("fused4", "+0"))
    assert fault(same, f"z({tail.format('fused4', 'c')})")
    assert fault(*sides, 6)
    flush = plan("sum(chain(fused4, tail=squared), c)")
    flush = replace(flush, convert_a=Rounding(FORMATS["e2m1"], subnormals="flush_after"))
    stated = {"schema": 1, "length": 5, "multiples": 0}
    assert plans_fault(stated, flush, flush, []) == ""
    assert plans_fault(stated, flush, replace(flush, convert_a=None), [])
    for first, second in (("sum({}, c)", "sum(four, c)"), ("sum(four, c)", "sum({}, c)")):
        step = f"r(exact({first}, {second}))"
        other = step.replace("four", "pairs").format("chain(fused4, tail=exact1)")
        assert fault(step.format("fused4"), other)


def test_zeros_with_which_a_tile_is_filled_up_are_one() -> None:
    numbers = Numbers()
    zero, one = numbers.zero(), numbers.element("a", 0, {"subnormals": "keep", "positive_zeros": False})
    product, other = (numbers.made("product", zero, factor, "") for factor in (zero, one))

    def form(kind: str, *terms: tuple[int, str]) -> tuple[tuple[int, str], ...]:
        found: tuple[tuple[int, str], ...] = numbers.made_of[OneZero(numbers).form(numbers.made(kind, "", terms))][2]
        return found

    assert form("fused", (product, ""), (product, "")) == ((product, ""),)
    for kind, terms in (("grid", [(product, "")] * 2), ("fused", [(product, "[1]"), (product, "[2]")]),
                        ("fused", [(other, "")] * 2), ("fused", [(one, "")] * 2)):  # fmt: skip
        assert form(kind, *terms) == tuple(terms)
    filled, sums = OneZero(numbers), [numbers.made("fused", "", ((product, ""),) * count) for count in (1, 2)]
    assert len({filled.form(numbers.made("relu", total, "")) for total in sums}) == 1


@pytest.mark.parametrize("step", [
    "r(exact(product(number(0x3fc00000, f32), sum(four, +0)), r(product(c, number(0x3f000000, f32)))))",
    "r(relu(r(exact(c, sum(four, +0))), nan=zero, zero=keep))", "r(relu(exact(sum(four, c), c)))",
])  # fmt: skip
def test_what_is_around_a_sum_is_written_out_as_in_a_unit(step: str) -> None:
    """So that a part about the plans as units is about the plans; tiles filled up with zeros are within."""
    numbers, whole = Numbers(), plan(step)
    unit = numbers.of_unit(plain(unit_of_plan(whole, 3)), numbers.element)
    filled = OneZero(numbers)
    assert filled.form(_Written(numbers, whole, 3, whole.c).of(whole.result)) == filled.form(unit)


# -- expressions written out


def test_units_written_out_are_one_in_any_order_that_is_of_no_effect() -> None:
    """Of the units of the table: as the rule of the kernel says, which compares normal forms."""
    numbers = count()
    for reference in ARITHMETICS[::5]:
        model = parse_reference(reference)
        own = plain(model.unit)
        assert alike(own, own)
        for problem in reorderings(model):
            assert alike(own, own, problem.order) == (by_expression(problem) is not None), reference
            next(numbers)
    assert next(numbers) > 40


def test_segments_and_sums_that_cancel_are_written_out() -> None:
    """With every parameter; one that stands in a loop as one that does not, in any order of the sum."""

    def own(step: str) -> dict[str, Any]:
        text = UNIT.format(name="u", length=2, step=f"r(fused({step}, c, F=2, zeros=1))")
        return plain(parse_unit(text, "u.yaml"))

    parts = "segment(a[0], 0, 2, leading=true) * b[0], segment(a[1], 0, 2, leading=true) * b[1]"
    sums = f"cancelling(fused({parts}, F=3))"
    assert alike(own(sums), own(sums.replace(parts, "each(k in range(2), segment(a[k], 0, 2, leading=true) * b[k])")))
    assert alike(own(sums), own(sums), (1, 0))
    for old, new in (("cancelling(fused", "(fused"), (", leading=true) * b[1]", ") * b[1]"), ("0, 2", "0, 3"),
                     ("0, 2", "1, 2"), ("leading=true", "leading=true, positive=true"), ("F=3", "F=4"),
                     ("a[1]", "b[1]"), ("segment(a[1], 0, 2, leading=true)", "a[1]")):  # fmt: skip
        assert not alike(own(sums), own(sums.replace(old, new))), new


def test_a_plan_that_names_a_file_elsewhere_is_refused(tmp_path: Path) -> None:
    folder = folder_of((plan(EQUAL[0][0]), plan(EQUAL[0][1])), None, tmp_path)
    path = folder / "left.plan.yaml"
    path.write_text(path.read_text().replace("unit-1.yaml", "../unit-1.yaml"))
    with pytest.raises(InputError, match="not in the folder"):
        read_plan(folder, path.name)


def test_runs_are_of_products_for_which_their_bodies_are_equal() -> None:
    """Halves of multiples of 8 are equal; those of runs of 4 are too, and no rule says so."""
    stated = {"schema": 1, "length": None, "multiples": 8}
    one, other, third, fourth = (
        plan(f"sum(split([{at}], halve(8, {body}, r, grain=8), r), c)") for at in (4, 8) for body in ("pairs", "two")
    )
    assert "is not one step" in plans_fault(stated, one, other, [])
    assert plans_fault(stated, third, fourth, []) == ""


def test_a_long_loop_is_written_out_to_its_end() -> None:
    chain = plain(parse_reference("ieee/fma/f32@length=16").unit)
    for k in (0, 9, 14):
        order = [*range(k), k + 1, k, *range(k + 2, 16)]
        assert not alike(chain, chain, order)


def test_steps_of_two_periods_are_compared_over_both(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(UNITS, "six", (6, "repeat(i in range(6), c, r(exact(a[i] * b[i], acc)))"))
    sides = plan("sum(ones, c)"), plan("sum(six, c)")
    taken = [
        n for n in (4, 6, 8, 12, 18, 24) if not plans_fault({"schema": 1, "length": None, "multiples": n}, *sides, [])
    ]
    assert taken == [12, 24]


@pytest.mark.parametrize("count", [1, 3, 4])
def test_a_tile_reads_its_own_products_and_zeros_beyond(count: int) -> None:
    """Every second product from the fifth on."""
    numbers, sums = Numbers(), plan("sum(four, c)")
    (stage,) = (one.stage for one in sums.sums)
    assert isinstance(stage, Chain)
    start = numbers.element("c", None, {"subnormals": "keep", "positive_zeros": False})

    def read(operand: str, place: int | None, how: dict[str, Any]) -> int:
        if place is None:
            return start
        return numbers.element(operand, 5 + 2 * place, how) if place < count else numbers.zero()

    written = _Written(numbers, sums, 0, sums.c)
    assert written.tile(stage.model, Span.of(count, Index(5), 2), start) == numbers.of_unit(
        plain(stage.model.unit), read
    )
    minus, how = numbers.made("zero", True), {"subnormals": "keep", "positive_zeros": True}
    assert written._read(minus, how, sums.c) == numbers.zero()
