"""Certificates that two plans are equal: they pass, and with anything in them changed they do not."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from benchmarks.plan_statements import UNITS, plan
from mmaprobe.cli.main import main
from mmaprobe.queries.certificates.plan_files import plan_texts, read_plan
from mmaprobe.queries.certificates.sat import CertificateError
from mmaprobe.queries.checking.folder import check_folder
from mmaprobe.queries.plans.certify import certify_difference, certify_plans
from mmaprobe.queries.plans.equal import prove_plans
from mmaprobe.queries.search.distinguish import Options
from mmaprobe.smtmodel.arithmetic.formats import FORMATS
from mmaprobe.smtmodel.base.errors import InputError
from mmaprobe.smtmodel.nodes.round import Rounding
from mmaprobe.smtmodel.plans import Plan
from tests.plans.test_prove_plans import with_units
from tests.tampering import accepted, fitted, tampered

pytestmark = pytest.mark.solvers

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
    assert found_multiples(folder, length) == []


def found_multiples(folder: Path, length: int | None) -> list[int]:
    """For which other multiples, or K, the certificate passes as well."""
    name = "multiples" if length is None else "length"
    stated = json.loads((folder / "plans.json").read_text())
    passed = []
    for number in {*range(1, 33, 5), stated[name] * 2, stated[name] // 2, stated[name] + 1} - {stated[name]}:
        (folder / "plans.json").write_text(json.dumps(stated | {name: number}))
        fitted(folder)
        if accepted(folder):
            passed.append(number)
    return passed


def test_any_field_changed_is_refused(tmp_path: Path) -> None:
    folder = folder_of((plan(EQUAL[1][0]), plan(EQUAL[1][1])), None, tmp_path)
    assert list(tampered(folder, "plans.json")) == []
    assert list(tampered(folder, "manifest.json")) == []
    equal = {"left.plan.yaml: line 8: unit: unit-2.yaml"}  # then both plans are one
    assert set(tampered(folder, "*.yaml")) <= equal


def test_a_step_proved_by_a_solver_has_its_proof(tmp_path: Path) -> None:
    folder = folder_of(steps(), None, tmp_path)
    assert [path.name for path in folder.glob("*.drat")] == ["lemma-01.drat"]
    assert accepted(folder)
    asked = json.loads((folder / "plans.json").read_text())
    for parts in (
        [],
        ["x.yaml"],
        [{"is": "Tails", "length": 5}],
        [{"is": "Steps", "one": -1, "other": 0}],
    ):
        (folder / "plans.json").write_text(json.dumps(asked | {"parts": parts}))
        fitted(folder)
        assert not accepted(folder), parts
    (folder / "plans.json").write_text(json.dumps(asked))
    fitted(folder)
    (folder / "lemma-01.drat").unlink()
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


def put_plans(folder: Path, left: Plan, right: Plan) -> None:
    """Other plans in the place of those of a certificate."""
    texts = plan_texts({"left.plan.yaml": left, "right.plan.yaml": right})
    for path in folder.glob("unit-*.yaml"):
        path.unlink()
    for name, text in texts.items():
        (folder / name).write_text(text)
    manifest = json.loads((folder / "manifest.json").read_text())
    kept = {name: "0" * 64 for name in manifest["sha256"] if not name.startswith("unit-")}
    manifest["sha256"] = kept | dict.fromkeys(texts, "0" * 64)
    (folder / "manifest.json").write_text(json.dumps(manifest))
    fitted(folder)


@pytest.mark.parametrize(("left", "right", "length", "multiples"), DIFFER)
def test_no_plans_that_differ_are_accepted(
    left: str, right: str, length: int | None, multiples: int, tmp_path: Path
) -> None:
    """By the certificate that one of them is itself."""
    one, other = plan(left), plan(right)
    for at, side in enumerate((one, other)):
        try:
            folder = folder_of((side, side), length, tmp_path / str(at))
        except (AssertionError, CertificateError):  # a plan that no rule says anything of
            continue
        assert accepted(folder)
        put_plans(folder, one, other)
        for number in {multiples, 2 * multiples, 12, 0}:
            asked = json.loads((folder / "plans.json").read_text())
            (folder / "plans.json").write_text(json.dumps(asked | {"multiples": number}))
            fitted(folder)
            assert not accepted(folder), number


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


def test_the_command(tmp_path: Path) -> None:
    folder = str(tmp_path / "proof")
    pair = "ampere/mma/m16n8k16.f32.f16.f16.f32", "ampere/mma/m16n8k8.f32.f16.f16.f32"
    done = CliRunner().invoke(main, ["prove", *pair, "--length", "4096", "--certificate", folder])
    assert done.exit_code == 0, done.output
    done = CliRunner().invoke(main, ["check", folder])
    assert done.exit_code == 0, done.output
    assert done.output.startswith("checked: ")
    assert (
        "stated: left.plan.yaml and right.plan.yaml give the same d, for every K that is a multiple of 16\n"
        in done.output
    )


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
    same, tail = "sum(fused4, c)", "sum(chain({}, tail=exact1), {})"
    flush = plan("sum(chain(fused4, tail=squared), c)")
    others = [(plan(same), plan(tail.format("other4", "c"))), (plan(same), plan(tail.format("fused4", "+0"))),
              (plan(same), plan(f"z({tail.format('fused4', 'c')})")), sides[::-1], (sides[0], flush),
              (flush, replace(flush, convert_a=Rounding(FORMATS["e2m1"], subnormals="flush_after")))]  # fmt: skip
    for left, right in others:
        put_plans(folder, left, right)
        assert not accepted(folder), right.reference
    put_plans(folder, *sides)
    assert accepted(folder)
    asked = json.loads((folder / "plans.json").read_text())
    for length in (6, 9, 4):
        (folder / "plans.json").write_text(json.dumps(asked | {"length": length}))
        fitted(folder)
        assert not accepted(folder), length


def test_a_plan_that_names_a_file_elsewhere_is_refused(tmp_path: Path) -> None:
    folder = folder_of((plan(EQUAL[0][0]), plan(EQUAL[0][1])), None, tmp_path)
    path = folder / "left.plan.yaml"
    path.write_text(path.read_text().replace("unit-1.yaml", "../unit-1.yaml"))
    with pytest.raises(InputError, match="not in the folder"):
        read_plan({one.name: one.read_text() for one in folder.iterdir()}, path.name)
    fitted(folder)
    assert any("not in the folder" in found.says for found in check_folder(folder) if found.kind == "fault")
