"""Certificates of properties: they pass, and with anything in them changed they do not."""

from __future__ import annotations

import json
import re
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from mmaprobe.hypotheses.claim import claims_named
from mmaprobe.queries.checking.folder import check_folder
from mmaprobe.queries.checking.witnesses import _refutes
from mmaprobe.queries.claims.decide import decide
from mmaprobe.queries.kernel.questions.problem import Problem
from mmaprobe.queries.kernel.questions.statements import Reordered, problems_of
from mmaprobe.queries.properties.bound_certificate import certify_wrap
from mmaprobe.queries.properties.bound_report import find_bound
from mmaprobe.queries.properties.certify import certify_proofs, certify_refuted
from mmaprobe.queries.properties.proving import proofs_of, verdict_of
from mmaprobe.smtmodel.evaluate.model import Model
from mmaprobe.smtmodel.inputs.admitted import ExponentRange, Inputs
from mmaprobe.smtmodel.tables.reference import parse_reference
from mmaprobe.smtmodel.units.unitfile import unit_text
from tests.certificates.certified import FREE, unit
from tests.said import believed
from tests.tampering import accepted, fitted, tampered

pytestmark = pytest.mark.solvers

#: of each property, a unit that has it
CASES = {
    "order-independent": unit("fused"), "sign-symmetric": unit("fused"), "monotonic-product": unit("exact"),
    "exact": unit("exact"), "zero-padding": parse_reference("volta/mma/m8n8k4.f32.f16.f16.f32@length=2"),
}  # fmt: skip


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    return {name: tmp_path_factory.mktemp(name) for name in CASES}


@cache
def written(wanted: str, folder: Path) -> Path:
    proofs = proofs_of(problems_of(wanted, CASES[wanted], Inputs()), FREE, confirm=False)
    assert verdict_of(proofs) == "equal"
    certify_proofs(wanted, proofs, folder, FREE)
    return folder


@pytest.mark.parametrize("wanted", CASES)
def test_a_property_has_a_certificate(wanted: str, folders: dict[str, Path]) -> None:
    found = list(check_folder(written(wanted, folders[wanted])))
    assert {one.kind for one in found} == {"fine"}
    assert (found[-1].place, found[-1].says[:8]) == ("log.json", "states: ")
    compared = "+0 and -0 are equal, and a NaN neither rises nor falls"  # nothing is compared bit by bit
    assert any(one.says == compared for one in found) is wanted.startswith("monotonic")


#: of each property, a unit that does not have it
WITHOUT = {
    "order-independent": unit("chain", bits=2), "sign-symmetric": unit("fused", "down"),
    "monotonic-addend": unit("fused", bits=1), "monotonic-product": unit("fused", bits=1), "exact": unit("fused"),
    "zero-padding": parse_reference("volta/mma/m8n8k4.f32.f16.f16.f32@length=2,exponent_floor=9"),
}  # fmt: skip


def read_document(path: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(path.read_text())
    return found


def refuted(problems: list[Problem], wanted: str, folder: Path) -> dict[str, Any]:
    """The input of a certificate that is written and passes."""
    proofs = proofs_of(problems, FREE, confirm=False)
    assert verdict_of(proofs) == "different"
    certify_refuted(wanted, proofs[-1], folder, FREE)
    found = list(check_folder(folder))
    assert {one.kind for one in found} == {"fine"}
    subject = "right.yaml" if wanted == "zero-padding" else "left.yaml"
    assert (f", and so that {subject} is {wanted} (" in found[0].says) is (wanted != "equal")
    assert found[-1].says.startswith(f"not {wanted}: on this input {proofs[-1].problem.sides[0]} gives ")
    return read_document(folder / "witness.json")


def refused_witness(folder: Path, document: dict[str, Any]) -> bool:
    (folder / "witness.json").write_text(json.dumps(document))
    fitted(folder)
    return not accepted(folder)


@pytest.mark.parametrize("wanted", WITHOUT)
def test_an_input_that_refutes_is_evaluated_again(wanted: str, tmp_path: Path) -> None:
    """It refutes nothing else, and another input nothing; the parts of other certificates are no such inputs."""
    found = refuted(problems_of(wanted, WITHOUT[wanted], Inputs()), wanted, tmp_path)
    zeros = dict.fromkeys(found["values"], "0x0")
    for values in (zeros, dict(list(found["values"].items())[1:]), found["values"] | {"a0": "0x10000"}):
        assert refused_witness(tmp_path, found | {"values": values})
    for other in (*WITHOUT, "equal"):
        if other not in (wanted, "equal" if wanted in ("exact", "zero-padding") else wanted):
            assert refused_witness(tmp_path, found | {"property": other})
    finite = (
        Inputs(zero_terms=(0,)) if wanted.startswith("monotonic") else Inputs(exponents=ExponentRange(min=9, max=9))
    )
    assert refused_witness(tmp_path, found | {"inputs": finite.model_dump(mode="json")})


def test_an_input_on_which_two_units_differ(tmp_path: Path) -> None:
    problem = Problem(unit("fused", bits=1), unit("fused", bits=3), Inputs(zero_terms=(1,)))
    found = refuted([problem], "equal", tmp_path)
    assert found["values"].keys() == {"a0", "b0", "c"}
    (tmp_path / "left.yaml").write_text((tmp_path / "right.yaml").read_text())
    assert refused_witness(tmp_path, found)


def test_an_input_that_decides_a_claim_is_evaluated_again(tmp_path: Path) -> None:
    (claim,) = claims_named("ootomo-not-worse-f16@terms=2,split=toward_zero")
    decide(claim, FREE).certify(tmp_path, FREE)
    assert accepted(tmp_path)
    found = read_document(tmp_path / "witness.json")
    assert found["values"] == {"a0": "0xbfd0", "a1": "0x5800", "b0": "0x3c00", "b1": "0x6800", "c": "0x3e500000"}
    (tmp_path / "witness.json").write_text(json.dumps(found | {"values": found["values"] | {"c": "0x3e500001"}}))
    fitted(tmp_path)
    assert accepted(tmp_path)  # another input that decides
    larger = {"a0": "0xdfd0", "a1": "0x7800", "c": "0x42500000"}  # decides, and is larger than the claim admits
    for change in ({"c": "0xbe500000"}, larger):
        assert refused_witness(tmp_path, found | {"values": found["values"] | change})


@pytest.mark.parametrize(("products", "rows"), [(4, 1), (12, 2)])
def test_an_input_on_which_a_sum_wraps_is_evaluated_again(products: int, rows: int, tmp_path: Path) -> None:
    """It says nothing where the sum does not wrap, or a value is infinite, or the chain goes on."""
    wraps = parse_reference("volta/mma/m8n8k4.f32.f16.f16.f32@carry_bits=1")
    result = find_bound(wraps, Inputs(), None if rows == 1 else products, believed)
    certify_wrap(result, tmp_path, FREE)
    assert {one.kind for one in check_folder(tmp_path)} == {"fine"}
    found = read_document(tmp_path / "witness.json")
    assert (found["length"], len(found["rows"])) == (products, rows)
    first, *more = found["rows"]
    zeros = dict.fromkeys(first, "0x0")
    infinite = zeros | {"a0": "0x7c00", "b0": "0x3c00"}
    alone = [[zeros], [infinite], [first | {"c": "0x0", "a0": "0x3c00"}], [], [first, first]]
    for changed in alone if rows == 1 else [[first], [first, zeros], [*more, first]]:
        assert refused_witness(tmp_path, found | {"rows": changed}), changed
    for length in (24 if rows == 1 else 4, products + 1, float(products)):  # the last two are of no chain
        assert refused_witness(tmp_path, found | {"length": length}), length
    assert refused_witness(tmp_path, found | {"length": 8, "rows": [zeros, first]})  # an addend from nowhere
    assert refused_witness(tmp_path, found | {"property": "exact"})
    (tmp_path / "unit.yaml").write_text(unit_text(parse_reference(str(wraps.reference)[:-1] + "3").unit))
    assert refused_witness(tmp_path, found)


def test_an_order_names_each_product_once(tmp_path: Path) -> None:
    """-1 would be the last one."""
    model = unit("exact")
    proofs = proofs_of([Reordered(model, model, order=(-1, 0))], FREE, confirm=False)
    certify_proofs("equal", proofs, tmp_path, FREE)
    faults = [one.says for one in check_folder(tmp_path) if one.kind == "fault"]
    assert faults == ["cannot be read: order: [-1, 0] does not name each of 2 products once"]


def test_an_order_across_steps_refutes_nothing() -> None:
    """Of products of two steps nobody says that their order has no effect."""
    model = parse_reference("hopper/mma/m16n8k8.f32.tf32.tf32.f32@length=8,block=4")
    within, across = (1, 2, 3, 0, 4, 5, 6, 7), (4, 1, 2, 3, 0, 5, 6, 7)
    asked = {"property": "order-independent"}
    assert _refutes(Reordered(model, model, order=within), asked)
    for order in (across, (0, 0, 2, 3, 4, 5, 6, 7), within[:4]):
        assert not _refutes(Reordered(model, model, order=order), asked)


def test_any_field_changed_is_refused(folders: dict[str, Path]) -> None:
    folder = written("order-independent", folders["order-independent"])
    for names, step in (("question.json", 1), ("property.json", 1), ("manifest.json", 5), ("*.yaml", 3)):
        assert list(tampered(folder, names, step)) == []
    assert accepted(folder)


def carried(bits: int, how: str = "toward_zero") -> Model:
    return unit("carry", how, bits)


def test_units_of_one_normal_form(tmp_path: Path) -> None:
    """Two products below 4 and an addend below 2, in units of their exponents: below 2^4."""
    (proof,) = proofs_of([Problem(carried(3), carried(4))], FREE, confirm=False)
    assert proof.theorem is not None
    assert proof.theorem.rule == "one_form"
    certify_proofs("equal", [proof], tmp_path, FREE)
    assert {one.kind for one in check_folder(tmp_path)} == {"fine"}
    kept = (tmp_path / "right.yaml").read_text()
    for other in (carried(1), carried(4, "nearest_even")):
        (tmp_path / "right.yaml").write_text(unit_text(other.unit))
        fitted(tmp_path)
        assert [found.place for found in check_folder(tmp_path) if found.kind == "fault"] == ["log.json"]
    (tmp_path / "right.yaml").write_text(kept)
    fitted(tmp_path)
    assert accepted(tmp_path)


def test_one_expression_has_a_certificate(tmp_path: Path) -> None:
    left, right = unit("fused"), Model("other", unit("fused").unit)
    certify_proofs("equal", proofs_of([Problem(left, right)], FREE, confirm=False), tmp_path, FREE)
    assert accepted(tmp_path)
    weaker = re.compile(r"question.json: \('(inputs|compare)'")  # as true, on fewer inputs, and the page says so
    assert [what for what in tampered(tmp_path) if not weaker.match(what)] == []
    assert list(tampered(tmp_path, "*.yaml")) == []
