"""Certificates of properties: they pass, and with anything in them changed they do not."""

from __future__ import annotations

import copy
import json
import random
import re
import shutil
from dataclasses import asdict
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from hypotheses.claim import claims_named
from queries.certificates.exact_values import Unrounded, chained
from queries.certificates.magnitudes import FaultError
from queries.certificates.together import groups_of, one_unit, property_fault, refuting_fault, rewritten_unit
from queries.certificates.tree import Tree
from queries.certificates.writing_out import Numbers, alike
from queries.checking.folder import check_folder
from queries.claims.certify import certify_claim
from queries.claims.decide import decide
from queries.kernel.problem import Problem
from queries.kernel.statements import problems_of, reordered_groups
from queries.properties.asked import plain, read_document, read_question
from queries.properties.bound import bound_of
from queries.properties.bound_certificate import certify_theorems, certify_wrap
from queries.properties.bound_report import find_bound
from queries.properties.bound_samples import ExactRow, numbers_of
from queries.properties.certify import certify_proofs, certify_refuted
from queries.properties.proving import proofs_of, verdict_of
from queries.search.distinguish import Options
from queries.search.samples import sample_rows
from queries.tactics.settling import Settled
from queries.tactics.written import Written
from smtmodel.dot import Model
from smtmodel.formats import FORMATS
from smtmodel.inputs import ExponentRange, Inputs
from smtmodel.operands import layout_of
from smtmodel.reference import parse_reference
from smtmodel.unitfile import parse_unit, unit_text
from tests.node_units import random_unit
from tests.said import believed
from tests.tampering import accepted, fitted, tampered
from tests.test_bounds import ARITHMETICS
from tests.test_rewriting import PLAIN

UNIT = """unit: small
formats: {{a: e2m1, b: e2m1, c: e4m3, d: e4m3}}
length: 2
roundings: {{r: "round(e4m3, {how})"}}
steps:
  d: {step}
"""
STEPS = {
    "fused": "r(fused(a[0:2] * b[0:2], c, F={bits}))",
    "chain": "repeat(i in range(2), c, r(exact(a[i] * b[i], acc)))",
    "exact": "r(exact(a[0:2] * b[0:2], c))",
}
FREE = Options(timeout=60.0)


def unit(step: str, how: str = "toward_zero", bits: int = 4) -> Model:
    return Model(step, parse_unit(UNIT.format(how=how, step=STEPS[step].format(bits=bits)), "small.yaml"))


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
    assert found[-1].place == "property.json"
    assert found[-1].says.startswith("the parts give it")


#: of each property, a unit that does not have it
WITHOUT = {
    "order-independent": unit("chain", bits=2), "sign-symmetric": unit("fused", "down"),
    "monotonic-addend": unit("fused", bits=1), "monotonic-product": unit("fused", bits=1), "exact": unit("fused"),
    "zero-padding": parse_reference("volta/mma/m8n8k4.f32.f16.f16.f32@length=2,exponent_floor=9"),
}  # fmt: skip


def refuted(problems: list[Problem], wanted: str, folder: Path) -> dict[str, Any]:
    """The input of a certificate that is written and passes."""
    proofs = proofs_of(problems, FREE, confirm=False)
    assert verdict_of(proofs) == "different"
    certify_refuted(wanted, proofs[-1], folder, FREE)
    found = list(check_folder(folder))
    assert {one.kind for one in found} == {"fine"}
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
    certify_claim(decide(claim, FREE), tmp_path, FREE)
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
    values = [{name: int(value, 16) for name, value in row.items()} for row in found["rows"]]
    assert result.near is not None
    assert chained(plain(wraps.unit), values)[-1] == (result.near.exact, result.near.bound)
    values[0]["a1"] ^= 0x8000
    assert chained(plain(wraps.unit), values)[-1][1] == result.near.bound
    zeros = dict.fromkeys(first, "0x0")
    infinite = zeros | {"a0": "0x7c00", "b0": "0x3c00"}
    alone = [[zeros], [infinite], [first | {"c": "0x0", "a0": "0x3c00"}], [], [first, first]]
    for changed in alone if rows == 1 else [[first], [first, zeros], [*more, first]]:
        assert refused_witness(tmp_path, found | {"rows": changed}), changed
    assert refused_witness(tmp_path, found | {"length": 24 if rows == 1 else 4})
    assert refused_witness(tmp_path, found | {"length": 8, "rows": [zeros, first]})  # an addend from nowhere
    assert refused_witness(tmp_path, found | {"property": "exact"})
    (tmp_path / "unit.yaml").write_text(unit_text(parse_reference(str(wraps.reference)[:-1] + "3").unit))
    assert refused_witness(tmp_path, found)


def test_what_a_unit_makes_of_numbers_without_rounding() -> None:
    """As `ExactRow` has it, of all kinds of nodes."""
    parts = "segment(a[0], 1, 3, leading=true) * b[0], segment(a[1], 1, 3) * b[1], relu(number(0xb8, e4m3) * c)"
    segments = Model("segments", parse_unit(UNIT.format(how="down", step=f"r(exact({parts}))"), "small.yaml"))
    drawn = (random_unit(random.Random(seed), ("e2m1", "binary4p2se"), ("e3m2", "e2m3")) for seed in range(30))
    for seed, model in enumerate([segments, *(Model("small", unit) for unit in drawn)]):
        layout, document = layout_of(model), plain(model.unit)
        for row in sample_rows(layout, 6 if seed else 150, seed):
            values = dict(zip(layout.names, map(int, row), strict=True))
            if (given := numbers_of(layout, row)) is not None:
                exact = ExactRow(model.unit, given).exact(model.unit.result, {}, {})
                assert Unrounded(document, values).result == exact
                assert Unrounded(document, values, sizes=True).result >= abs(exact)


def test_an_order_across_steps_refutes_nothing(tmp_path: Path) -> None:
    """Of products of two steps nobody says that their order has no effect."""
    model = parse_reference("hopper/mma/m16n8k8.f32.tf32.tf32.f32@length=8,block=4")
    order = (4, 1, 2, 3, 0, 5, 6, 7)
    found = {"property": "order-independent", "asks": "reordered", "order": list(order), "compare": "bits"}
    assert "leaves the step" in refuting_fault(found | {"left": plain(model.unit), "right": plain(model.unit)})


def test_any_field_changed_is_refused(folders: dict[str, Path]) -> None:
    folder = written("order-independent", folders["order-independent"])
    for names, step in (("question.json", 1), ("property.json", 1), ("manifest.json", 5), ("*.yaml", 3)):
        assert list(tampered(folder, names, step)) == []
    assert accepted(folder)


def test_any_field_of_what_rises_changed_is_refused(folders: dict[str, Path]) -> None:
    part = written("monotonic-product", folders["monotonic-product"]) / "proof-1"
    fewer = re.compile(r"question.json: \('(inputs|compare)'")  # as true; nothing that rises is compared so
    assert [what for what in tampered(part, "question.json", 2) if not fewer.match(what)] == []
    assert list(tampered(part, "tree.json", 13)) == []
    assert accepted(part)


def test_what_rises_of_normal_numbers_says_nothing_of_others(tmp_path: Path) -> None:
    normal = Inputs(normal=True)
    proofs = proofs_of(problems_of("monotonic-product", unit("fused", bits=3), normal), FREE, confirm=False)
    assert verdict_of(proofs) == "equal"
    certify_proofs("monotonic-product", proofs, tmp_path, FREE)
    assert accepted(tmp_path)
    for path in (tmp_path / "property.json", *tmp_path.glob("*/question.json")):
        document = json.loads(path.read_text())
        path.write_text(json.dumps(document | {"inputs": Inputs().model_dump(mode="json")}))
    fitted(tmp_path)
    faults = [found.place for found in check_folder(tmp_path) if found.kind == "fault"]
    assert faults
    assert {Path(place).name for place in faults} == {"question.json"}


def test_what_rises_of_one_unit_says_nothing_of_another(folders: dict[str, Path], tmp_path: Path) -> None:
    part = written("monotonic-product", folders["monotonic-product"]) / "proof-1"
    shutil.copytree(part, tmp_path, dirs_exist_ok=True)
    for side in ("left.yaml", "right.yaml"):
        (tmp_path / side).write_text(unit_text(unit("exact", "nearest_even").unit))
    fitted(tmp_path)
    assert [found.place for found in check_folder(tmp_path) if found.kind == "fault"] == ["question.json"]


def test_a_proof_of_another_question_is_refused(folders: dict[str, Path], tmp_path: Path) -> None:
    part = written("zero-padding", folders["zero-padding"]) / "proof-1"
    assert (part / "whole.drat").exists()
    shutil.copytree(part, tmp_path, dirs_exist_ok=True)
    for side in ("left.yaml", "right.yaml"):
        (tmp_path / side).write_text(unit_text(parse_reference("volta/mma/m8n8k4.f16.f16.f16.f16@length=2").unit))
    fitted(tmp_path)
    assert [found.place for found in check_folder(tmp_path) if found.kind == "fault"] == ["question.json"]


def parts_of(folder: Path) -> list[dict[str, Any]]:
    found = []
    for part in sorted(folder.glob("proof-*")):
        problem = read_question(part)
        sides = {"left": plain(problem.left.unit), "right": plain(problem.right.unit)}
        found.append(read_document(part / "question.json") | sides)
    return found


@pytest.mark.parametrize("wanted", CASES)
def test_a_part_left_out_or_changed_is_refused(wanted: str, folders: dict[str, Path]) -> None:
    folder = written(wanted, folders[wanted])
    stated, parts, own = read_document(folder / "property.json"), parts_of(folder), plain(CASES[wanted].unit)
    assert property_fault(stated, own, parts) == ""
    for at in range(len(parts)):
        assert property_fault(stated, own, [*parts[:at], *parts[at + 1 :]]), at
        for name, value in (("inputs", {**stated["inputs"], "finite": True}), ("asks", "nothing"),
                            ("compare", "bits" if stated["compare"] == "value" else "value"),
                            ("right", plain(unit("fused", bits=3).unit))):  # fmt: skip
            broken = copy.deepcopy(parts)
            broken[at][name] = value
            assert property_fault(stated, own, broken), (at, name)
    assert property_fault(stated, plain(unit("fused", bits=3).unit), parts)
    for other in CASES:
        assert other == wanted or property_fault({**stated, "property": other}, own, parts), other


def test_orders_that_do_not_generate_all_are_refused() -> None:
    own = plain(parse_reference("volta/mma/m8n8k4.f32.f16.f16.f32").unit)
    stated = {"property": "order-independent", "compare": "bits", "inputs": Inputs().model_dump(mode="json")}

    def parts(*orders: tuple[int, ...]) -> list[dict[str, Any]]:
        return [{"inputs": stated["inputs"], "compare": "bits", "asks": "reordered", "order": list(order), "left": own,
                 "right": own} for order in orders]  # fmt: skip

    exchange, turn = (1, 0, 2, 3), (1, 2, 3, 0)
    assert property_fault(stated, own, parts(exchange, turn)) == ""
    for orders in ((exchange,), (turn,), (exchange, exchange), (exchange, (1, 2, 0, 3)), ((0, 1, 3, 2), turn), (),
                   (exchange, turn, (0, 0, 1, 2)), (exchange, turn[:3])):  # fmt: skip
        assert property_fault(stated, own, parts(*orders)), orders
    fixed = {**stated, "inputs": {**stated["inputs"], "zero_terms": [1]}}
    assert "fixed" in property_fault(fixed, own, [part | {"inputs": fixed["inputs"]} for part in parts(exchange, turn)])


def test_steps_are_those_of_the_property() -> None:
    """The groups of products that plain data says are those that the problems are about."""
    for reference in ARITHMETICS[::3]:
        model = parse_reference(reference)
        assert groups_of(plain(model.unit)) == [tuple(group) for group in reordered_groups(model)], reference


def test_products_that_no_order_brings_do_not_rise() -> None:
    own = plain(parse_reference("volta/mma/m8n8k4.f32.f16.f16.f32").unit)
    stated: dict[str, Any] = {"property": "monotonic-product", "compare": "bits",
                              "inputs": Inputs().model_dump(mode="json")}  # fmt: skip
    base = {"inputs": stated["inputs"], "compare": "bits", "left": own, "right": own}
    rises = base | {"asks": "raised", "raised": 1}
    turn = base | {"asks": "reordered", "order": [1, 2, 3, 0]}
    exchange = base | {"asks": "reordered", "order": [1, 0, 2, 3]}
    assert property_fault(stated, own, [rises, turn]) == ""
    assert "[2, 3] do not rise" in property_fault(stated, own, [rises, exchange])
    assert "do not rise" in property_fault(stated, own, [rises])
    assert "in another way" in property_fault(stated, own, [rises, turn | {"compare": "value"}])
    assert property_fault(stated, own, [turn])
    assert property_fault(stated, own, [rises | {"raised": 9}, turn])
    inputs = stated["inputs"] | {"zero_terms": [3]}
    assert "stand fixed" in property_fault(stated | {"inputs": inputs}, own, [
        part | {"inputs": inputs} for part in (rises, turn)])  # fmt: skip


def test_the_addend_and_every_product_rise() -> None:
    own = plain(unit("chain").unit)
    stated = {"property": "monotonic", "compare": "bits", "inputs": Inputs().model_dump(mode="json")}
    base = {"inputs": stated["inputs"], "compare": "bits", "left": own, "right": own, "asks": "raised"}
    parts = [base | {"raised": k} for k in (None, 0, 1)]
    assert property_fault(stated, own, parts) == ""
    for at in range(3):
        assert property_fault(stated, own, [*parts[:at], *parts[at + 1 :]])
    for name in ("monotonic-addend", "monotonic-product"):
        less = {**stated, "property": name}
        assert property_fault(less, own, parts[:1] if name == "monotonic-addend" else parts[1:]) == ""
        assert property_fault(less, own, parts[1:] if name == "monotonic-addend" else parts[:1])
    fixed = {**stated, "inputs": {**stated["inputs"], "zero_terms": [0]}}
    assert property_fault(fixed, own, [part | {"inputs": fixed["inputs"]} for part in (parts[0], parts[2])]) == ""


def test_what_is_not_the_exact_sum_is_refused(folders: dict[str, Path]) -> None:
    folder = written("exact", folders["exact"])
    stated, (part,), own = read_document(folder / "property.json"), parts_of(folder), plain(CASES["exact"].unit)
    kinds = {node["kind"]: at for at, node in enumerate(part["right"]["nodes"])}
    for kind, changes in {
        "round": {"rounding": part["right"]["nodes"][kinds["round"]]["rounding"] | {"mode": "up"}},
        "each": {"places": [0]}, "product": {"normalised": True}, "element": {"subnormals": "zero"},
    }.items():  # fmt: skip
        broken = copy.deepcopy(part)
        broken["right"]["nodes"][kinds[kind]] |= changes
        assert property_fault(stated, own, [broken]), kind
    for kind, changes in {"product": {"limit": 3}, "exact": {"items": []}, "element": {"operand": "b"}}.items():
        broken = copy.deepcopy(part)
        broken["right"]["nodes"][kinds[kind]] |= changes
        assert property_fault(stated, own, [broken]), kind
    assert property_fault(stated, own, [part, part])


def test_a_unit_that_is_not_shorter_pads_nothing() -> None:
    own = plain(CASES["zero-padding"].unit)
    stated = {"property": "zero-padding", "compare": "bits", "inputs": Inputs().model_dump(mode="json")}
    part = {"inputs": stated["inputs"], "compare": "bits", "asks": "agree", "left": own, "right": own}
    shorter = plain(parse_reference("volta/mma/m8n8k4.f32.f16.f16.f32@length=1").unit)
    assert property_fault(stated, own, [part | {"left": shorter}]) == ""
    assert "not shorter" in property_fault(stated, own, [part])
    assert "another unit" in property_fault(stated, shorter, [part | {"left": shorter}])
    assert "one length" in property_fault(stated, own, [part | {"left": shorter}] * 2)
    assert property_fault(stated, own, [part | {"left": own, "right": shorter}])


def test_a_symmetric_unit_is_asked_about_its_negated_input() -> None:
    own = plain(unit("fused").unit)
    stated = {"property": "sign-symmetric", "compare": "value", "inputs": Inputs().model_dump(mode="json")}
    part = {"inputs": stated["inputs"], "compare": "value", "asks": "negated", "left": own, "right": own}
    assert property_fault(stated, own, [part]) == ""
    for parts in ([], [part, part], [part | {"asks": "agree"}], [part | {"asks": "raised", "raised": None}]):
        assert property_fault(stated, own, parts)
    assert property_fault({**stated, "compare": "bits"}, own, [part | {"compare": "bits"}])


def carrying(bits: int, how: str = "toward_zero") -> Model:
    step = f"r(fused(a[0:2] * b[0:2], c, F=4, carry={bits}))"
    return Model(f"carry {bits}", parse_unit(UNIT.format(how=how, step=step), "small.yaml"))


def test_units_of_one_normal_form(tmp_path: Path) -> None:
    """Two products below 4 and an addend below 2, in units of their exponents: below 2^4."""
    (proof,) = proofs_of([Problem(carrying(3), carrying(4))], FREE, confirm=False)
    assert proof.theorem is not None
    assert proof.theorem.rule == "one_form"
    manifest = dict(certify_proofs("equal", [proof], tmp_path, FREE))[tmp_path]
    assert manifest["parts"] == ["form-left", "form-right"]
    assert {one.kind for one in check_folder(tmp_path)} == {"fine"}
    kept = (tmp_path / "right.yaml").read_text()
    for other in (carrying(2), carrying(4, "nearest_even")):
        (tmp_path / "right.yaml").write_text(unit_text(other.unit))
        fitted(tmp_path)
        assert [found.place for found in check_folder(tmp_path) if found.kind == "fault"] == ["question.json"]
        (tmp_path / "form-right" / "unit.yaml").write_text(unit_text(other.unit))
        fitted(tmp_path)
        assert "form-right/unit.yaml" in [found.place for found in check_folder(tmp_path) if found.kind == "fault"]
        for name in ("right.yaml", "form-right/unit.yaml"):
            (tmp_path / name).write_text(kept)
    fitted(tmp_path)
    assert accepted(tmp_path)
    weaker = re.compile(r"question.json: \('(inputs|compare)'")  # as true, on fewer inputs
    assert [what for what in tampered(tmp_path, step=29) if not weaker.match(what)] == []
    form = PLAIN.proof(other.unit)  # right of its own, and the units differ in a rounding
    assert form is not None
    certify_theorems([form], other.unit, tmp_path / "form-right", FREE)
    (tmp_path / "right.yaml").write_text(unit_text(other.unit))
    fitted(tmp_path)
    assert [found.place for found in check_folder(tmp_path) if found.kind == "fault"] == ["question.json"]
    bound = bound_of(carrying(3).unit, Settled(FREE, needed=False))  # right as well, and says nothing of what it is
    certify_theorems([bound], carrying(3).unit, tmp_path / "form-left", FREE)
    assert "question.json" in [found.place for found in check_folder(tmp_path) if found.kind == "fault"]
    with pytest.raises(FaultError, match="it is not said what the unit computes the same as"):
        rewritten_unit(read_document(tmp_path / "form-left" / "tree.json"))


def test_parts_that_are_of_neither_unit_are_refused(tmp_path: Path) -> None:
    (proof,) = proofs_of([Problem(carrying(3), carrying(4))], FREE, confirm=False)
    certify_proofs("equal", [proof], tmp_path, FREE)
    (tmp_path / "form-left").rename(tmp_path / "left")
    path = tmp_path / "manifest.json"
    path.write_text(path.read_text().replace("form-left", "left"))
    assert [found.place for found in check_folder(tmp_path) if found.kind == "fault"] == ["question.json"]


def test_a_sum_that_may_wrap_has_no_bound() -> None:
    """The tree of a unit, said of one with fewer carry bits: 2 * 1.5^2 + 1.875 are above 2^2, and below 2^3."""
    document = json.loads(json.dumps(Written(carrying(2).unit).stating([bound_of(carrying(2).unit, believed)], {})))
    assert "fused: the sum may wrap" not in {fault for _, fault in Tree(document).check()}
    next(node for node in document["nodes"] if node["kind"] == "fused")["carry_bits"] = 1
    assert "fused: the sum may wrap" in {fault for _, fault in Tree(document).check()}


def test_a_document_that_no_manifest_names_is_refused(tmp_path: Path) -> None:
    """Else what it says would be read by what it is a part of, and nothing would have checked it."""
    (proof,) = proofs_of([Problem(carrying(3), carrying(4))], FREE, confirm=False)
    certify_proofs("equal", [proof], tmp_path, FREE)
    path = tmp_path / "form-left" / "manifest.json"
    manifest = json.loads(path.read_text())
    del manifest["sha256"]["tree.json"]
    path.write_text(json.dumps(manifest))
    assert "form-left/tree.json" in {found.place for found in check_folder(tmp_path) if found.kind == "fault"}


def test_one_expression_has_a_certificate(tmp_path: Path) -> None:
    left, right = unit("fused"), Model("other", unit("fused").unit)
    certify_proofs("equal", proofs_of([Problem(left, right)], FREE, confirm=False), tmp_path, FREE)
    assert accepted(tmp_path)
    weaker = re.compile(r"question.json: \('(inputs|compare)'")  # as true, on fewer inputs
    assert [what for what in tampered(tmp_path) if not weaker.match(what)] == []
    assert list(tampered(tmp_path, "*.yaml")) == []


def test_one_unit_has_one_set_of_operands_and_the_order_given() -> None:
    text = UNIT.format(how="toward_zero", step=STEPS["chain"])
    chain, other = (plain(parse_unit(text.replace("a: e2m1", f"a: {name}"), "x.yaml")) for name in ("e2m1", "e2m3"))
    assert one_unit(chain, chain)
    assert not one_unit(chain, other)
    assert not one_unit(chain, chain, [1, 0])
    exact = plain(unit("exact").unit)
    assert one_unit(exact, exact, [1, 0])
    assert not one_unit(exact, exact, [0, 0])


ONE_ROUND = "repeat(i in range(2), c, r(exact(a[i] * b[i], acc)))"


def plain_unit(step: str) -> dict[str, Any]:
    text = UNIT.replace("a: e2m1, b: e2m1, c: e4m3", "a: f16, b: f16, c: f32").replace("d: e4m3", "d: f32")
    return plain(parse_unit(text.replace("e4m3", "f32").format(how="toward_zero", step=step), "loop.yaml"))


def test_a_loop_in_a_loop_is_written_out_round_by_round() -> None:
    """The inner one begins each time with what the outer one has."""
    one, two = plain_unit(ONE_ROUND), plain_unit(f"repeat(j in range(2), c, {ONE_ROUND.replace(' c,', ' acc,')})")
    assert alike(two, two)
    assert not alike(one, two)


def test_a_gate_is_a_number_of_its_own() -> None:
    every = [plain_unit(f"r(exact({product}, c))") for product in (
        "gate(a[0:2] * b[0:2], -0)", "gate(a[0:2] * b[0:2], +0)", "a[0:2] * b[0:2]")]  # fmt: skip
    assert [[one_unit(one, other) for other in every] for one in every] == [
        [at == k for k in range(3)] for at in range(3)]  # fmt: skip


def test_a_second_rounding_is_left_out_where_it_changes_nothing() -> None:
    numbers, fmt = Numbers(), asdict(FORMATS["f32"])
    how = {"nan": None, "subnormals": "keep", "zero": "ieee", "mode": "toward_zero", "overflow": "ieee"}
    inner = numbers.element("c", None, {"subnormals": "keep", "positive_zeros": False})

    def twice(first: dict[str, Any], second: dict[str, Any], other: dict[str, Any] = fmt) -> bool:
        """Whether a second rounding gives another number."""
        once = numbers.rounded(inner, how | first, fmt)
        return numbers.rounded(once, how | second, other) != once

    assert not twice({}, {})
    assert not twice({}, {"mode": "up"})
    assert not twice({"subnormals": "flush_after"}, {})
    assert twice({}, {"subnormals": "flush_after"})  # numbers that the first one keeps
    assert twice({"zero": "exact_positive"}, {"zero": "exact_positive"})  # -0, of a sum that is not zero
    assert twice({}, {"zero": "positive"})
    assert twice({}, {}, asdict(FORMATS["f16"]))
    assert twice({}, {"nan": 1})
    assert twice({"nan": 1}, {"nan": 1})  # a number, which another rounding may flush


def test_units_are_one_but_for_nans() -> None:
    hopper = plain(parse_reference("hopper/mma/m16n8k16.f32.f16.f16.f32").unit)
    assert one_unit(hopper, hopper)
    other = copy.deepcopy(hopper)
    last = other["nodes"][other["unit"]["result"]]
    while last["kind"] == "repeat":
        last = other["nodes"][last["body"]]
    last["rounding"]["nan"] += 1
    assert not one_unit(hopper, other)
    last["rounding"]["nan"] = None
    assert one_unit(hopper, other)
    last["rounding"]["mode"] = "up"
    assert not one_unit(hopper, other)
