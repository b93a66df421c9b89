"""Certificates of the error bounds of plans: they pass, and with anything in them changed they do not."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from mmaprobe.cli.main import main
from mmaprobe.queries.certificates.plan_files import plan_texts, read_plan
from mmaprobe.queries.checking.folder import check_folder
from mmaprobe.queries.kernel.bounds.sums import growth_of
from mmaprobe.queries.kernel.log import Replay, Subject, Writer
from mmaprobe.queries.kernel.questions.steps import recorded
from mmaprobe.queries.kernel.theorem import RuleError
from mmaprobe.queries.plans.bound import bound_of_plan
from mmaprobe.smtmodel.arithmetic.display import exact_value
from mmaprobe.smtmodel.arithmetic.formats import Format, format_named
from mmaprobe.smtmodel.nodes import Index
from mmaprobe.smtmodel.plans import Parted, Plan, Span
from mmaprobe.smtmodel.plans.partitions import Equal
from mmaprobe.smtmodel.plans.planfile import parse_plan
from mmaprobe.smtmodel.plans.stages import Cut, Part
from mmaprobe.smtmodel.tables.reference import parse_plan_path, parse_plan_reference, parse_reference
from mmaprobe.smtmodel.units.unitfile import unit_text
from tests.plans.test_plan_bounds import EVERY, FILE, HALVES, STEPS, plan_of
from tests.proofs.test_bounds import believed
from tests.said import says
from tests.tampering import accepted, fitted, tampered

pytestmark = pytest.mark.solvers

Document = dict[str, Any]
Change = Callable[[Document], Any]
CONVERTED_TEXT = """plan: small
formats: {a: f32, b: f32, c: f32, d: f32}
units: {mma: ampere/mma/m16n8k8.f32.tf32.tf32.f32}
roundings: {r: 'round(f32, nearest_even)', p: 'round(tf32, nearest_away)', q: 'round(tf32, toward_zero)'}
convert: {a: p, b: q}
steps: {d: 'sum(promote(16, mma, r), c)'}
"""
CONVERTED = {
    "converted": CONVERTED_TEXT,
    "narrowed": CONVERTED_TEXT.replace("mma/m16n8k8.f32.tf32.tf32.f32", "mma/m16n8k8.f32.f16.f16.f32")
                              .replace("tf32", "f16"),
}  # fmt: skip


def made_again(plan: Plan, lengths: tuple[int | None, ...]) -> None:
    """The log of the bounds of a plan makes them again, from the files of the plan."""
    roots = [bound_of_plan(plan, length, believed) for length in lengths]
    text = json.dumps(Writer(Subject(plans=(plan,), lengths=lengths)).stating(roots))
    again = read_plan(plan_texts({"one.plan.yaml": plan}), "one.plan.yaml")
    subject = Subject(plans=(again,), lengths=lengths)
    theorems = Replay(json.loads(text), subject, says("unsat")).run()
    assert [one.goal.statement() for one in theorems] == [one.goal.statement() for one in roots]
    assert json.dumps(Writer(subject).stating(theorems)) == text


@pytest.mark.parametrize("step", STEPS + HALVES)
def test_bounds_of_small_plans_are_made_again(step: str) -> None:
    made_again(plan_of(step), (48, None))


@pytest.mark.parametrize("text", CONVERTED.values(), ids=CONVERTED)
def test_bounds_with_conversions_are_made_again(text: str) -> None:
    made_again(parse_plan(text, "small.yaml", parse_reference), (32, None))


@pytest.mark.parametrize("name", EVERY)
def test_bounds_of_plans_that_ship_are_made_again(name: str) -> None:
    plan = parse_plan_path(f"plan:{name}")
    if not plan.gathered:  # of which there is no bound
        made_again(plan, (100 if name == "loop/lanes" else 96, None))


@pytest.mark.parametrize("model", [
    "blackwell/tcgen05mma_block_scale/m64n8k32.block32.f32.e4m3.e5m2.ue8m0", "arm/neon/bfdot",
    "cdna3/mfma/f32_16x16x32_fp8_fp8",
])  # fmt: skip
def test_bounds_of_chained_units_are_made_again_from_their_files(model: str) -> None:
    """With scale factors, inputs read as zero, and a product that has a limit."""
    plan = parse_plan_reference(f"plan:{model}")
    made_again(plan, (3 * plan.models[0].length, None))


def test_a_bound_in_the_largest_elements_is_made_again(tmp_path: Path) -> None:
    """Of slices that share a power of two; no change of the log of another bound, or K, passes."""
    folder = tmp_path / "c"
    line = ["prove", "--property", "error-bound", "plan:ozaki/int8-6", "--length", "24", "--store", str(tmp_path / "s")]
    done = CliRunner().invoke(main, [*line, "--certificate", str(folder)])
    assert done.exit_code == 0, done.output
    assert accepted(folder)
    assert any("K up to 24, c = 0" in str(found) for found in check_folder(folder))
    assert list(tampered(folder, "log.json", 3)) == []


# -- the steps


@dataclass(frozen=True)
class Odd(Equal):
    """Runs that take some products twice, or not at all."""

    by: int = 0

    def cut(self, span: Span, stage: Parted) -> Cut:
        spans = (part.span for part in super().cut(span, stage).parts)
        places = ((one, one.start.offset) for one in spans)
        moved = [replace(one, start=Index(at // 2 if self.by == 2 else at + self.by)) for one, at in places]
        return Cut([Part(one) for one in moved])


@pytest.mark.parametrize("by", [1, 2])
def test_every_product_is_taken_once(by: int) -> None:
    plan = plan_of("sum(split(2, fma, r), c)")
    stage = plan.sums[0].stage
    assert isinstance(stage, Parted)
    assert recorded(plan, replace(stage, partition=Odd(2)), 16)
    with pytest.raises(RuleError, match="places: "):
        recorded(plan, replace(stage, partition=Odd(2, by=by)), 16)


@pytest.mark.parametrize("length", [0, -2])
def test_a_sum_has_products(length: int) -> None:
    plan = plan_of("sum(fma, c)")
    with pytest.raises(RuleError, match="are no sum"):
        recorded(plan, plan.sums[0].stage, length)


@pytest.mark.parametrize("step", [
    "sum(split(2, halve(8, fma, r), r), c)", "sum(split(2, split([16], mma, r), r), c)",
    "sum(split(2, whole(8, mma, head=fma), r), c)", "sum(swizzle(2, split(2, fma, r)), c)",
    "sum(windows(4, fma, r), c)",
    "sum(through(halve(8), fma), c)",
    "sum(lanes(fma, r, 2, 2, fold(2, 1), unroll=8, order=backwards), c)", "sum(split(2, first(8, mma, fma), r), c)",
])  # fmt: skip
def test_what_is_not_one_step_repeated_has_no_formula(step: str) -> None:
    plan = plan_of(step)
    with pytest.raises(RuleError, match="is not one step repeated"):
        recorded(plan, plan.sums[0].stage, None)


# -- numbers


def test_a_geometric_sum_is_no_smaller_than_it_is() -> None:
    for rate in (Fraction(1), 1 + Fraction(1, 1 << 24), Fraction(5, 3), 1 + Fraction(5, 1 << 23)):
        for count in (0, 1, 2, 3, 7, 16, 100, 511):
            least = sum((rate**k for k in range(count)), Fraction(0))
            assert least <= growth_of(rate, count) <= least * (1 + Fraction(1, 1 << 40))


def numbers_of(fmt: Format) -> set[Fraction | int]:
    found = [exact_value(pattern, fmt) for pattern in range(1 << fmt.width)]
    return {Fraction(0) if value == "-0" else value for value in found if not isinstance(value, str) or value == "-0"}


SMALL = ("e4m3", "e5m2", "e2m1", "e2m3", "e3m2", "e5m2fnuz", "e4m3fnuz", "ue4m3")


def test_a_format_that_holds_another_has_all_its_numbers() -> None:
    small, other = format_named("e2m1"), format_named("e3m2")
    formats = [*map(format_named, SMALL), replace(small, bias=2), replace(small, subnormals=False)]
    formats += [replace(other, specials=specials) for specials in ("ieee", "all_ones", "extended")]
    formats += map(format_named, ("e4m3_none", "e4m0_all_ones", "ue8m0", "ue4m0_all_ones", "ue3m1_none"))
    values, held = {fmt: numbers_of(fmt) for fmt in formats}, 0
    written = {fmt: {str(exact_value(pattern, fmt)) for pattern in range(1 << fmt.width)} for fmt in formats}
    for fmt in formats:
        for other in formats:
            if fmt.holds(other):
                held += fmt != other
                assert values[other] <= values[fmt], (fmt, other)
                assert all(pattern in written[fmt] for pattern in written[other]), (fmt, other)
    assert held > 8
    wide = ["e5m2", "e3m2", "e2m1", "e4m3", "f16", "tf32", "f32"]
    for less, more in pairwise(wide[4:]):
        assert format_named(more).holds(format_named(less))
        assert not format_named(less).holds(format_named(more))
    assert all(format_named("f16").holds(format_named(name)) for name in wide[1:5])


# -- a whole certificate


@pytest.fixture(scope="module")
def proved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("plan")
    (folder / "small.yaml").write_text(FILE.format(step="sum(promote(8, fma, r), c)", d="f32"), encoding="utf-8")
    line = ["prove", "--property", "error-bound", f"plan:{folder / 'small.yaml'}", "--length", "32"]
    done = CliRunner().invoke(main, [*line, "--store", str(folder / "s"), "--certificate", str(folder / "c")])
    assert done.exit_code == 0, done.output
    return folder / "c"


@pytest.fixture
def copied(proved: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(proved, tmp_path / "c"))


def test_the_command_checks_it(proved: Path) -> None:
    done = CliRunner().invoke(main, ["check", str(proved)])
    assert done.exit_code == 0, done.output
    assert "log.json: states: for any n from 1 on, K = 8 n, " in done.output
    assert "log.json: states: for K = 32: |d - exact| <= " in done.output


@pytest.mark.parametrize("name", ["log.json", "bounded.plan.yaml", "unit-1.yaml", "lemma-01.smt2", "lemma-01.drat"])
def test_a_file_that_is_missing_or_another_is_found(copied: Path, name: str) -> None:
    path = copied / name
    text = path.read_text()
    path.write_text(text.replace("1", "2", 1))
    assert not accepted(copied)
    path.unlink()
    assert not accepted(copied)


def by_rule(name: str, **parts: Any) -> Change:
    """Something else in the last record of a rule."""
    return lambda log: next(one for one in log["records"][::-1] if one["rule"] == name).update(parts)


SABOTAGE: list[Change] = [
    by_rule("added", lemmas=[]), by_rule("tile", chain=0), by_rule("iterated", body=0),
    by_rule("iterated", step=0), by_rule("weakened", premise=0), by_rule("of_all_products", start=0),
    by_rule("begun", formats=[]), by_rule("held", step=0), by_rule("chained", result=0),
    lambda log: log.update(lengths=[None]), lambda log: log.update(lengths=[None, 24]),
    lambda log: log.update(lengths=[None, 1 << 30]), lambda log: log.update(states=log["states"][::-1]),
    lambda log: log.update(states=log["states"][:1]), lambda log: log.update(states=log["states"] * 2),
    lambda log: log.update(says=log["says"][::-1]), lambda log: log.update(schema=2),
    lambda log: [one.update(length=24) for one in log["values"] if one.get("length") == 32],
    lambda log: [one.update(growth="1") for one in log["values"] if one["is"] == "PlanAt"],
    lambda log: [one.update(fraction=9) for one in log["values"] if one["is"] == "Format"],
]  # fmt: skip


@pytest.mark.parametrize("change", SABOTAGE, ids=[str(at) for at in range(len(SABOTAGE))])
def test_logs_that_were_made_to_say_something_else_are_refused(copied: Path, change: Change) -> None:
    document = json.loads((copied / "log.json").read_text())
    kept = json.dumps(document)
    change(document)
    assert json.dumps(document) != kept
    (copied / "log.json").write_text(json.dumps(document))
    fitted(copied)
    assert not accepted(copied)


def test_any_line_of_the_plan_changed_is_refused(copied: Path) -> None:
    """Some of them, and of its unit and of the manifest."""
    assert list(tampered(copied, "*.plan.yaml", 2)) == []
    assert list(tampered(copied, "unit-1.yaml", 4)) == []
    assert list(tampered(copied, "manifest.json", 6)) == []


def test_another_unit_of_the_plan_is_refused(copied: Path) -> None:
    (copied / "unit-1.yaml").write_text(unit_text(parse_reference("ampere/mma/m16n8k8.f32.f16.f16.f32").unit))
    fitted(copied)
    assert {found.place for found in check_folder(copied) if found.kind == "fault"} == {"log.json"}


def test_a_log_of_nothing_states_nothing(copied: Path) -> None:
    log = json.loads((copied / "log.json").read_text()) | {"records": [], "states": [], "says": [], "values": []}
    (copied / "log.json").write_text(json.dumps(log))
    fitted(copied)
    assert not accepted(copied)
