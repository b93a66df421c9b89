"""The drawing of an evaluation: its bits are those of the evaluation, its marks and words are where they belong."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ET
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

from mmaprobe.cli.main import main
from mmaprobe.queries.compare.neighbours import first_difference
from mmaprobe.reports.drawings.bits_drawing import fold
from mmaprobe.reports.drawings.evaluation_drawing import evaluation_drawing, evaluation_drawings
from mmaprobe.reports.drawings.styles import COLOURS, look_of
from mmaprobe.reports.drawings.svg import SVG, svg_of
from mmaprobe.smtmodel.arithmetic.display import powers
from mmaprobe.smtmodel.evaluate.model import Model
from mmaprobe.smtmodel.evaluate.operands import Operands
from mmaprobe.smtmodel.explain.explaining import explain
from mmaprobe.smtmodel.explain.explanation import BitLine, Explanation
from mmaprobe.smtmodel.nodes.trace import Name, Stage
from mmaprobe.smtmodel.tables.instructions import INSTRUCTIONS
from mmaprobe.smtmodel.tables.reference import parse_reference
from tests import inputs
from tests.explain.test_explain import AMPERE, CDNA3_FP8, EQUATION_10, HOPPER, NVFP4, VOLTA, explained
from tests.reports.colours import contrast

pytestmark = pytest.mark.browser

NAME = f"{{{SVG}}}"
#: text and what is behind it
PAIRS = [
    ("ink", "paper"), ("soft", "paper"), ("ink", "zero"), ("on-one", "one"), ("ink", "carry-zero"),
    ("on-carry", "carry"), ("on-cut", "cut"), ("mark", "mark-paper"), ("mark", "paper"), ("ink", "mark-paper"),
    ("soft", "mark-paper"),
]  # fmt: skip


def parsed(*explanations: Explanation) -> ET.Element:
    difference = None
    if len(explanations) == 2:
        left, right = explanations
        difference = first_difference(left.facts, left.model, right.facts, right.model)
    return ET.fromstring(svg_of(evaluation_drawing(explanations, difference)))


def operands_of(model: Model, rng: np.random.Generator) -> Operands[int]:
    sides = [tuple(map(int, inputs.numbers(fmt, (model.length,), rng))) for fmt in (model.a, model.b)]
    c = int(inputs.numbers(model.c, (1,), rng)[0])
    scales = [tuple(map(int, rng.integers(100, 126, model.scales))) for _ in range(2)]
    return Operands(*sides, c, tuple(scales))


def texts(root: ET.Element) -> list[str]:
    return [element.text or "" for element in root.iter(f"{NAME}text")]


def rows_of(root: ET.Element, name: str) -> list[ET.Element]:
    groups = root.iter(f"{NAME}g")
    return [group for group in groups if group.get("aria-label", "").startswith(f"{name}, ")]


def cells(row: ET.Element, cut: bool) -> str:
    kinds = [element for element in row.iter(f"{NAME}text") if element.get("text-anchor") == "middle"]
    found = [e for e in kinds if e.get("class", "").startswith("mp-") and (e.text or "") in ("0", "1")]
    return "".join(e.text or "" for e in found if ("cut" in e.get("class", "")) == cut)


@pytest.mark.parametrize("reference", [VOLTA, AMPERE, HOPPER])
def test_cells_are_the_bits_of_the_evaluation(reference: str) -> None:
    explanation = explained(reference, **EQUATION_10)
    picture = explanation.steps[0].pictures[0]
    root = parsed(explanation)
    assert picture.rows
    for row in picture.rows:
        drawn = rows_of(root, row.name)[-1]
        assert cells(drawn, cut=False) == row.bits
        assert cells(drawn, cut=True).lstrip("0") == row.cut.lstrip("0")
    assert any(row.cut for row in picture.rows) == (cells(root, cut=True) != "")


def test_bits_cut_off_among_kept_ones_are_drawn() -> None:
    """A late addend, of which bits are lost that the products' sum keeps, and which is rounded up."""
    explanation = explained(CDNA3_FP8, a=["40", "38", "44"], b=["40", "39", "c8"], c="b3b00001")
    [late] = [row for row in explanation.steps[0].pictures[-1].rows if row.name == "c"]
    drawn = rows_of(parsed(explanation), "c")[-1]
    assert cells(drawn, cut=True).count("1") == late.cut.count("1") == 4
    assert "away from zero" in drawn.get("aria-label", "")


def test_the_result_stands_by_fields() -> None:
    explanation = explained(VOLTA, **EQUATION_10)
    [result] = [g for g in parsed(explanation).iter(f"{NAME}g") if g.get("aria-label", "").startswith("bits of d")]
    assert cells(result, cut=False) == f"{explanation.result:032b}"


def test_two_models_are_marked_where_they_part() -> None:
    left, right = (explained(reference, **EQUATION_10) for reference in (AMPERE, HOPPER))
    root = parsed(left, right)
    marked = [g for g in root.iter(f"{NAME}g") if "the models differ here" in g.get("aria-label", "")]
    assert [group.get("aria-label", "").split(",")[0] for group in marked] == ["2", "2"]  # the term cut on one side
    assert len(root.findall(f".//{NAME}rect[@class='mp-mark']")) == 2
    description = root.findtext(f"{NAME}desc")
    assert description is not None
    assert "First difference: alignment" in description
    assert not parsed(left).findall(f".//{NAME}rect[@class='mp-mark']")


def test_two_pictures_say_what_one_does() -> None:
    """For a page that puts them where it has room."""
    left, right = (explained(reference, **EQUATION_10) for reference in (AMPERE, HOPPER))
    difference = first_difference(left.facts, left.model, right.facts, right.model)
    both = parsed(left, right)
    roots = [ET.fromstring(svg_of(one)) for one in evaluation_drawings([left, right], difference)]
    assert [word for root in roots for word in texts(root)] == texts(both)
    assert [len(root.findall(f".//{NAME}rect[@class='mp-mark']")) for root in roots] == [1, 1]
    for root, reference in zip(roots, (AMPERE, HOPPER), strict=True):
        assert root.findtext(f"{NAME}title") == f"Evaluation under {reference}"
        assert "First difference: alignment" in str(root.findtext(f"{NAME}desc"))
    ids = [element.get("id") for root in roots for element in root.iter() if element.get("id")]
    assert len(ids) == len(set(ids))


def test_text_between_the_rows_stands_on_paper() -> None:
    """The alignment line passes behind it."""
    root = parsed(explained(VOLTA, a=["3c00"], b=["3c01"], c="3f800000"))
    [zeros] = [t for t in root.iter(f"{NAME}text") if "zero term" in str(t.text)]
    x, y = float(str(zeros.get("x"))), float(str(zeros.get("y")))
    grounds = [r for r in root.iter(f"{NAME}rect") if r.get("class") == "mp-paper" and r.get("x")]
    assert any(
        float(str(r.get("x"))) < x and float(str(r.get("y"))) < y < float(str(r.get("y"))) + float(str(r.get("height")))
        for r in grounds
    )


def test_labels_keep_away_from_the_line_of_the_last_place() -> None:
    """Those of the bits that rounding drops, which are wider than the bits."""
    root = parsed(explained(HOPPER, a=["3000", "8200"], b=["3c00", "0800"], c="00000000"))
    [line] = {float(str(one.get("x1"))) for one in root.iter(f"{NAME}line") if one.get("class") == "mp-unit"}
    [half] = [one for one in root.iter(f"{NAME}text") if one.text == "half"]
    assert float(str(half.get("x"))) + len("half") * 6 < line - 1


def test_many_terms_share_a_row() -> None:
    reference = "hopper/wgmma/m64n8k32.f32.e4m3.e4m3"
    rng = np.random.default_rng(7)
    model = parse_reference(reference)
    explanation = explain(model, operands_of(model, rng))
    picture = explanation.steps[0].pictures[0]
    rows, folded = fold(picture.rows, None)
    assert folded is not None
    assert len(rows) + len(folded.rows) == len(picture.rows)
    assert {*rows, *folded.rows} == {*picture.rows}
    total, lost = (sum((getattr(row, key) for row in folded.rows), Fraction(0)) for key in ("value", "lost"))
    assert folded.text.startswith(f"{len(folded.rows)} more terms: together {powers(total)}")
    assert folded.text.endswith(f"bits, together {powers(lost)}" if lost else "nothing truncated")
    assert any("maximum" in row.marks for row in rows)
    assert folded.text in " ".join(texts(parsed(explanation)))


def test_the_row_that_parts_is_never_folded() -> None:
    rows = [BitLine(str(k), False, "1", 20 - k, signals=(Name("", Stage.TERM, str(k)),)) for k in range(40)]
    assert fold(rows, None)[0] == rows[:11]
    assert rows[39] in fold(rows, Name("", Stage.TERM, "39"))[0]


def test_the_product_that_differs_is_shown_on_a_narrow_sheet(tmp_path: Path) -> None:
    vector = '{"a": ["000f", "3c00", "3c01"], "b": ["0c00", "0c00", "13ff"], "c": "38000001"}'
    for width in ((), ("--width", "85")):
        command = ["explain", VOLTA, vector, "--against", f"{VOLTA}@product=normalised", *width]
        done = CliRunner().invoke(main, [*command, "--svg", str(tmp_path / "p.svg")])
        assert done.exit_code in (0, 1), done.output
        shown = " ".join(texts(ET.fromstring((tmp_path / "p.svg").read_text())))
        assert all(exponent in shown for exponent in ("-26  +0.0000001111", "-33  +")), shown


@pytest.mark.parametrize("reference", [NVFP4, *list(INSTRUCTIONS)[::23], "ieee/fma/f64@length=2"])
def test_any_evaluation_is_a_readable_document(reference: str) -> None:
    model, rng = parse_reference(reference), np.random.default_rng(3)
    for _ in range(3):
        explanation = explain(model, operands_of(model, rng))
        root = parsed(explanation)
        ids = [element.get("id") for element in root.iter() if element.get("id")]
        assert len(ids) == len(set(ids))
        assert root.get("aria-labelledby") in ids
        assert root.get("aria-describedby") in ids
        width = float(root.get("width", "0"))
        for element in root.iter(f"{NAME}text"):  # nothing runs over the right edge
            css = element.get("class", "")
            letter = 6.05 if "small" in css else 7.9 if "title" in css else 7.25
            if element.get("text-anchor") == "start":
                assert float(element.get("x", "0")) + letter * len(element.text or "") <= width, element.text
        assert f"{explanation.result:0{model.d.digits}x}" in " ".join(texts(root))


@pytest.mark.parametrize("dark", [False, True])
def test_contrast(dark: bool) -> None:
    for text, ground in PAIRS:
        assert contrast(COLOURS[text][dark], COLOURS[ground][dark]) >= 4.5, (text, ground)


@pytest.mark.parametrize("dark", [False, True])
def test_browsers_show_the_colours_of_the_screen(dark: bool, tmp_path: Path, chromium: Any) -> None:
    path = tmp_path / "x.svg"
    pair = [explained(reference, **EQUATION_10) for reference in (AMPERE, HOPPER)]
    path.write_text(svg_of(evaluation_drawing(pair, None)))
    page = chromium.new_page(color_scheme="dark" if dark else "light")
    page.goto(path.as_uri())
    painted = page.evaluate(
        "[...document.querySelectorAll('[class^=mp-], text')].map(e => [e.tagName, e.getAttribute('class') || '',"
        " getComputedStyle(e).fill, getComputedStyle(e).stroke, getComputedStyle(e).whiteSpace])"
    )
    page.close()
    assert {"text", "rect", "line"} == {tag for tag, *_ in painted}
    for tag, css, fill, stroke, spaces in painted:
        look = look_of(tag, css, dark=dark)
        assert look.fill is None or rgb(look.fill) == fill, (tag, css)
        assert look.stroke is None or rgb(look.stroke) == stroke, (tag, css)
        assert tag != "text" or spaces == "pre"


def rgb(colour: str) -> str:
    """A colour as browsers write it."""
    return f"rgb({', '.join(str(int(colour[at : at + 2], 16)) for at in (1, 3, 5))})"


def test_the_command_draws_a_file(tmp_path: Path) -> None:
    target = tmp_path / "why.svg"
    command = ["explain", AMPERE, json.dumps(EQUATION_10), "--against", HOPPER, "--svg", str(target)]
    result = CliRunner().invoke(main, command)
    assert result.exit_code == 0, result.output
    assert result.stdout == ""
    root = ET.parse(target).getroot()
    assert root.findtext(f"{NAME}title") == f"Evaluation under {AMPERE} and {HOPPER}"
    assert not [v for e in root.iter() for k, v in e.items() if "href" in k or "http" in v]
    refused = CliRunner().invoke(main, [*command[:-1], str(tmp_path / "no" / "why.svg")])
    assert refused.exit_code == 2
