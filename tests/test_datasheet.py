"""Data sheets: every architecture has one, they say what the models do, and the error bound holds."""

from __future__ import annotations

import json
import re
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from reports.bounds import losses, roundings
from reports.datasheet import ASKED, groups, sheet_of_identified, sheet_of_model, sheets_of
from smtmodel.display import exact_value
from smtmodel.dot import Model
from smtmodel.explaining import explain
from smtmodel.explanation import Explanation
from smtmodel.instructions import INSTRUCTIONS
from smtmodel.nodes import Cut, Element
from smtmodel.nodes.node import walk
from smtmodel.progress import Pieces
from smtmodel.reference import parse_reference
from tests.browser import check_page
from tests.test_report import FAMILY, SMALL, VOLTA, Page, run
from tests.test_svg import operands_of

HOPPER = "hopper/mma/m16n8k16.f32.f16.f16.f32"


def silent(wanted: str, model: Model) -> None:
    return None


def test_every_instruction_is_on_one_sheet() -> None:
    sheets = sheets_of(None, silent, Pieces(lambda text: None, "sheets"))
    named = [name for sheet in sheets for name in sheet.instructions]
    assert sorted(named) == sorted(INSTRUCTIONS)
    for sheet in sheets:
        names = {line.name for line in sheet.lines}
        assert {"Formats", "Operation", "Products", "NaN", *ASKED.values()} <= names
        assert all(line.value and line.basis for line in sheet.lines)
    for group in groups(INSTRUCTIONS.values()):
        assert len({parse_reference(row.reference).unit.result for row in group}) == 1


def test_a_sheet_says_what_the_model_does() -> None:
    def ask(wanted: str, model: Model) -> dict[str, Any]:
        verdict = {"order-independent": "equal", "sign-symmetric": "different", "monotonic-addend": "unknown"}[wanted]
        return {"verdict": verdict, "engines": ["one"], "confirmed_by": ["two"], "seconds": 3}

    lines = {line.name: line for line in sheet_of_model(parse_reference(HOPPER), ask).lines}
    assert lines["Fraction bits"].value == "25 below the largest exponent"
    assert lines["NaN"].value == "nan (7fffffff)"
    assert lines["Exponent floor"].value.startswith("-133")
    assert "17 * 2^(e - 25)" in lines["Error against the exact sum"].value
    properties = [lines[name] for name in ASKED.values()]
    assert [line.value for line in properties] == ["yes", "no", "open"]
    assert properties[0].basis == "proved by one; confirmed by two"


def cut_bits(model: Model) -> int:
    [cut] = [node for node in walk(model.unit.result) if isinstance(node, Cut)]
    return cut.bits


def errors(explanation: Explanation) -> tuple[Fraction, Fraction] | None:
    """(the error of a result, the bound that the sheet promises); None where something is not finite."""
    model, unit = explanation.model, explanation.model.unit
    c = explanation.inputs["c"]
    result, addend = exact_value(explanation.result, model.d), exact_value(c.pattern, c.format)
    pictures = [part for step in explanation.steps for part in step.pictures]
    if (isinstance(result, str) and result != "-0") or any(part.special for part in pictures):
        return None
    if any(part.rounded and part.rounded.outcome in ("overflow", "flushed") for part in pictures):
        return None
    products = sum((row.value for row in explanation.products), Fraction(0))
    if any(step.groups for step in explanation.steps):
        products = Fraction(0)
        for step in explanation.steps:
            for group in step.groups:
                assert group.scales is not None
                factors = [explanation.inputs[name] for name in group.scales]
                values = [exact_value(factor.pattern, factor.format) for factor in factors]
                products += group.total * Fraction(values[0]) * Fraction(values[1])
    exact = products + (0 if addend == "-0" else Fraction(addend))
    bound = Fraction(0)
    for part in pictures:
        if part.maximum is not None:
            own = [loss for loss in losses(unit) if loss.name == part.name]
            bound += sum(loss.terms * Fraction(2) ** (part.maximum - loss.bits) for loss in own)
        if part.cut is not None:
            bound += Fraction(2) ** (max(part.total.first, model.d.emin) - cut_bits(model) + 1)
    rounded = [part.rounded for part in pictures if part.rounded]
    assert len(rounded) <= roundings(unit)
    for one in rounded:
        unit = Fraction(2) ** one.lowest
        bound += unit / 2 if one.mode.startswith("nearest") else unit
    return abs((Fraction(0) if result == "-0" else Fraction(result)) - exact), bound


@pytest.mark.parametrize("group", groups(INSTRUCTIONS.values())[::4], ids=lambda group: group[0].reference)
def test_no_result_is_farther_than_the_bound(group: Any) -> None:
    model, rng = parse_reference(group[0].reference), np.random.default_rng(5)
    nodes = list(walk(model.unit.result))
    if any(isinstance(node, Element) and node.subnormals != "keep" for node in nodes):
        pytest.skip("what is flushed or rounded before the sum lies outside the bound")
    found = [errors(explain(model, operands_of(model, rng))) for _ in range(12)]
    counted = [pair for pair in found if pair]
    assert len(counted) >= 6
    assert all(error <= bound for error, bound in counted)


def test_an_identified_device(tmp_path: Path) -> None:
    family, store = tmp_path / "tiny.yaml", ("--store", str(tmp_path / "store.sqlite"))
    family.write_text(FAMILY)
    document = run("identify", str(family), "--device", f"model:{SMALL}", "--json", *store).stdout
    path, target = tmp_path / "unit.json", tmp_path / "unit.html"
    path.write_text(document)
    assert "3 asked" in run("datasheet", str(path), "-o", str(target), "--limit", "1", *store).stderr
    text = Page(target.read_text()).text
    assert "identified in tiny by" in text
    assert "23 below the largest exponent" in text
    assert "0 asked" in run("datasheet", str(path), "-o", str(target), "--limit", "1", *store).stderr  # from the store
    named = {**json.loads(document), "family": "nvidia-f16"}  # which varies fraction_bits, not flush_inputs
    bases = {line.name: line.basis for line in sheet_of_identified(named, silent).lines}
    assert (bases["Fraction bits"], bases["Subnormal inputs"]) == (
        "model",
        "not asked: the family takes it for granted",
    )
    changed = {**json.loads(document), "undecided": {"exponent_floor": [None, -131]}}
    lines = {line.name: line for line in sheet_of_identified(changed, silent).lines}
    assert lines["Exponent floor"].value == "none or -131"
    assert lines["NaN"].value == "nan (pattern not known)"
    with pytest.raises(ValueError, match="no candidate"):
        sheet_of_identified({**changed, "verdict": "no candidate"}, silent)


@pytest.mark.parametrize("width", [400, 1600])
def test_all_sheets_in_a_browser(chromium: Any, width: int, tmp_path: Path) -> None:
    target = tmp_path / "volta.html"
    run("datasheet", "volta", "--limit", "0", "-o", str(target), "--store", str(tmp_path / "store.sqlite"))
    assert len(re.findall("<section", target.read_text())) == 2
    check_page(chromium, target.as_uri(), width, "light").context.close()


@pytest.mark.parametrize("arguments", [(), (VOLTA, "--all"), ("voltaa",), ("volta/mma/none",)])
def test_bad_subjects(arguments: tuple[str, ...], tmp_path: Path) -> None:
    run("datasheet", *arguments, "-o", str(tmp_path / "x.html"), "--limit", "0", code=2)


def test_a_file_that_identify_did_not_write(tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    path.write_text('{"schema": 1}')
    assert str(path) in run("datasheet", str(path), "-o", str(tmp_path / "x.html"), code=2).stderr
