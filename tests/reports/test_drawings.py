"""Drawings for papers: nothing meets anything else at any width, and every writer writes the same shapes."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

from mmaprobe.cli.main import main
from mmaprobe.queries.compare.neighbours import parted
from mmaprobe.queries.order.text import Outline
from mmaprobe.reports.drawings.evaluation_drawing import evaluation_drawing
from mmaprobe.reports.drawings.order_drawing import order_drawing
from mmaprobe.reports.drawings.pdf import pdf_of
from mmaprobe.reports.drawings.plan_drawing import plan_drawing
from mmaprobe.reports.drawings.sheet import (
    LETTER,
    MILLIMETRES,
    SIZE,
    Box,
    Drawing,
    Line,
    Sheet,
    Text,
    pixels,
    shapes_of,
)
from mmaprobe.reports.drawings.styles import look_of
from mmaprobe.reports.drawings.svg import svg_of
from mmaprobe.reports.drawings.tikz import TEX, tikz_of
from mmaprobe.smtmodel.base.errors import ParameterError
from mmaprobe.smtmodel.explain.explaining import explain
from mmaprobe.smtmodel.explain.explanation import Explanation
from mmaprobe.smtmodel.tables.instructions import INSTRUCTIONS
from mmaprobe.smtmodel.tables.reference import parse_plan_path, parse_reference
from tests.explain.test_explain import AMPERE, CDNA3_FP8, EQUATION_10, HOPPER, NVFP4, VOLTA, explained
from tests.reports.test_svg import operands_of

pytestmark = pytest.mark.curves

COLUMN = 85.0  # millimetres of a paper's column
WIDTHS = (None, 83.0, COLUMN, 120.0, 178.0)
OUTLINE = Outline("one step after another", (
    Outline("0-15 (added one after another)"),
    Outline("31 times, each 16 products further: the sum so far and these, added in one step, "
            "aligned to the largest term", (
        Outline("16-31 (added one after another)"), Outline("c (joins the finished sum)"),
    )),
))  # fmt: skip


def shapes(sheet: Sheet, kind: type[Any]) -> Iterator[Any]:
    return (shape for shape in shapes_of(sheet.root) if isinstance(shape, kind))


def extent(text: Text) -> tuple[float, float, float, float]:
    """left, top, right, bottom of its letters."""
    return text.left, text.y - 0.75 * text.size, text.left + text.width, text.y + 0.2 * text.size


def meet(one: tuple[float, ...], other: tuple[float, ...], slack: float = 0.3) -> bool:
    across = min(one[2], other[2]) - max(one[0], other[0])
    down = min(one[3], other[3]) - max(one[1], other[1])
    return across > slack and down > slack


def on(text: Text, box: Box) -> bool:
    """Whether a box is behind a text."""
    return box.x <= text.left + 1 and box.y <= text.y <= box.y + box.height


def collisions(drawing: Drawing) -> list[str]:
    """Texts that meet another one, a line that bars them, the frame of another mark, or the edge."""
    found = []
    for sheet in drawing.sheets:
        texts = sorted((text for text in shapes(sheet, Text) if text.text.strip()), key=lambda text: text.y)
        for index, text in enumerate(texts):
            left, _, right, bottom = extent(text)
            if left < 0 or right > sheet.width or bottom > sheet.y + 14:
                found.append(f"{text.text!r} leaves the sheet")
            for other in texts[index + 1 :]:
                if other.y - text.y > 20:
                    break
                if meet(extent(text), extent(other)):
                    found.append(f"{text.text!r} meets {other.text!r}")
        grounds = [box for box in shapes(sheet, Box) if box.css in ("mp-paper", "mp-mark")]
        for line in shapes(sheet, Line):
            if line.css in ("mp-align", "mp-unit"):
                bar = (line.x1 - 0.5, line.y1, line.x1 + 0.5, line.y2)
                barred = [text for text in texts if meet(extent(text), bar)]
                found += [f"{text.text!r} meets a bar" for text in barred if not any(on(text, box) for box in grounds)]
    return found


def drawn(explanations: Sequence[Explanation], width: float | None, names: Sequence[str] = ()) -> Drawing:
    given = None if width is None else pixels(width)
    return evaluation_drawing(explanations, parted(explanations), width=given, names=names)


# --- collisions ---------------------------------------------------------------------------------------------------


def test_collisions_are_seen() -> None:
    """The test itself: text on text, text over the edge, text on the alignment line."""
    sheet = Sheet(400)
    sheet.text(20, "above")
    sheet.text(40, "below")
    sheet.text(390, "beyond")
    sheet.y += 40
    sheet.text(100, "barred")
    sheet.line(110, 0, 110, 100, "mp-align")
    sheet.y += 40
    assert collisions(Drawing([sheet], "", "")) == [
        "'above' meets 'below'", "'beyond' leaves the sheet", "'barred' meets a bar"
    ]  # fmt: skip


@pytest.mark.parametrize("reference", [VOLTA, CDNA3_FP8, NVFP4, *list(INSTRUCTIONS)[7::67], "x86/amx/tdpbf16ps",
                                       "ieee/fma/f64@length=2"])  # fmt: skip
def test_nothing_meets_in_a_drawing_of_an_evaluation(reference: str) -> None:
    model = parse_reference(reference)
    explanation = explain(model, operands_of(model, np.random.default_rng(11)))
    for width in WIDTHS:
        assert collisions(drawn([explanation], width)) == [], width


@pytest.mark.parametrize("width", WIDTHS)
def test_nothing_meets_where_two_evaluations_part(width: float | None) -> None:
    pairs = [
        [explained(reference, **EQUATION_10) for reference in (AMPERE, HOPPER)],
        [explained(VOLTA + change, a=["3fff"] * 4, b=["3fff"] * 4, c="3fffffff") for change in ("", "@carry_bits=3")],
        [explained(VOLTA + change, a=["3e00", "be00"], b=["3e00", "3e00"], c="34000000")
         for change in ("", "@product=normalised")],
        [explained(CDNA3_FP8 + change, a=["40", "38", "44"], b=["40", "39", "c8"], c="b3b00001")
         for change in ("", "@late_rounding=toward_zero")],
    ]  # fmt: skip
    for pair in pairs:
        drawing = drawn(pair, width)
        assert collisions(drawing) == []
        marks = [text for sheet in drawing.sheets for text in shapes(sheet, Text) if "differs" in text.text]
        assert len(marks) >= 2
        if width is not None:
            assert drawing.size[0] == pytest.approx(pixels(width))


@pytest.mark.parametrize("width", WIDTHS)
def test_nothing_meets_in_a_tree(width: float | None) -> None:
    given = None if width is None else pixels(width)
    drawing = order_drawing(
        OUTLINE, "summation order of c and 512 products (f16 * f16, c in f32)", ["9 questions"], given
    )
    assert collisions(drawing) == []
    (sheet,) = drawing.sheets
    boxes = sorted(shapes(sheet, Box), key=lambda box: box.y)
    assert len(boxes) == 5
    assert all(one.y + one.height < other.y for one, other in pairwise(boxes))
    assert all(box.x + box.width <= sheet.width - 10 for box in boxes)


def test_too_narrow_a_drawing_is_refused() -> None:
    with pytest.raises(ParameterError, match="too narrow"):
        pixels(40)


# --- writers ------------------------------------------------------------------------------------------------------


def test_print_has_the_colours_of_the_light_scheme() -> None:
    assert (look_of("rect", "mp-one").fill, look_of("text", "mp-one").fill) == ("#1f4e79", "#ffffff")
    assert look_of("line", "mp-unit").dash == (4.0, 2.0)
    assert look_of("rect", "mp-line").fill is None
    assert look_of("text", "").fill == "#14181f"


def test_names_stand_in_place_of_references() -> None:
    pair = [explained(reference, **EQUATION_10) for reference in (AMPERE, HOPPER)]
    texts = [text.text for sheet in drawn(pair, COLUMN, ("A100", "H100")).sheets for text in shapes(sheet, Text)]
    assert {"A100", "H100"} <= set(texts)
    assert not any("mma/" in text or "round(" in text for text in texts)
    assert "round(" in " ".join(text.text for text in shapes(drawn(pair[:1], None).sheets[0], Text))


def latex(text: str) -> list[str]:
    """The texts of a tikzpicture's nodes, after a check of what stands in it."""
    assert text.isascii()
    lines = [line for line in text.splitlines() if not line.startswith("%")]
    assert lines[0].startswith(r"\begin{tikzpicture}[")
    assert lines[-1] == r"\end{tikzpicture}"
    number = r"-?\d+(?:\.\d+)?"
    place, colour = rf"\({number},{number}\)", r"mmaprobe[A-Z]+"
    commands = [
        rf"\\definecolor\{{{colour}\}}\{{HTML\}}\{{[0-9A-F]{{6}}\}}", rf"\\begin\{{scope\}}\[shift=\{{{place}\}}\]",
        r"\\end\{scope\}", rf"\\draw\[draw={colour},line width={number}pt[\w =,.]*\] {place} -- {place};",
        rf"\\(?:path|fill)\[[\w=,. ]*\] {place} rectangle {place};",
        rf"\\node\[anchor=base(?: (?:west|east))?,text={colour},font=\{{.*\}}\] at {place} \{{.*\}};",
    ]  # fmt: skip
    for line in lines[1:-1]:
        assert any(re.fullmatch(command, line) for command in commands), line
        bare = line.replace(r"\{", "").replace(r"\}", "")
        assert bare.count("{") == bare.count("}")
    defined = set(re.findall(rf"\\definecolor\{{({colour})\}}", text))
    assert set(re.findall(colour, text)) == defined
    return [re.sub(r".*\) \{(.*)\};", r"\1", line) for line in lines if line.startswith(r"\node")]


def untexed(text: str) -> str:
    for letter, code in sorted(TEX.items(), key=lambda item: -len(item[1])):
        text = text.replace(code, letter)
    return text


def test_tikz_says_what_the_drawing_does() -> None:
    drawing = drawn([explained(reference, **EQUATION_10) for reference in (AMPERE, HOPPER)], COLUMN)
    texts = latex(tikz_of(drawing, millimetres=COLUMN))
    assert [untexed(text) for text in texts] == [t.text for sheet in drawing.sheets for t in shapes(sheet, Text)]
    width, _ = drawing.size
    scale = re.search(r"x=([\d.]+)pt", tikz_of(drawing, millimetres=COLUMN))
    assert scale is not None
    assert float(scale[1]) * width == pytest.approx(COLUMN * 72.27 / 25.4, rel=1e-3)


@pytest.mark.skipif(shutil.which("pdflatex") is None, reason="no LaTeX: apt-get install texlive-pictures")
@pytest.mark.slow
def test_latex_takes_it(tmp_path: Path) -> None:
    """Every kind of picture: a difference marked in two lines, scale factors, special values, chains, trees."""
    ampere, hopper = (explained(reference, **EQUATION_10) for reference in (AMPERE, HOPPER))
    wraps = [
        explained(VOLTA + change, a=["3fff"] * 4, b=["3fff"] * 4, c="3fffffff") for change in ("", "@carry_bits=3")
    ]
    scaled = explained(NVFP4, a=["2"], b=["4"], c="3f800000", scale_a=["38"] * 4, scale_b=["38"] * 4)
    special = explained(HOPPER, a=["7c00"], b=["3c00"], c="ff800000")
    chain = explained("x86/amx/tdpbf16ps", a=["3f80", "4000"], b=["3f80", "4000"], c="3f800000")
    late = explained(CDNA3_FP8, a=["40", "38", "44"], b=["40", "39", "c8"], c="b3b00001")
    groups = ([ampere, hopper], wraps, [scaled], [special], [chain], [late])
    body = "\\clearpage ".join(tikz_of(drawn(group, COLUMN), millimetres=COLUMN) for group in groups)
    body += tikz_of(drawn([ampere], None)) + tikz_of(order_drawing(OUTLINE, "a tree_of 100%", ["{note} & #1"]))
    (tmp_path / "x.tex").write_text(
        "\\documentclass{article}\\usepackage{tikz}\\usetikzlibrary{patterns}\\begin{document}"
        + body
        + "\\end{document}"
    )
    command = ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "x.tex"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stdout[-2000:]
    assert "Missing character" not in (tmp_path / "x.log").read_text(errors="replace")


def test_pdf_has_its_fonts_and_its_size() -> None:
    pytest.importorskip("matplotlib")
    drawing = drawn([explained(VOLTA, a=["3c00"], b=["3c01"], c="3f800000")], COLUMN)
    content = pdf_of(drawing, millimetres=COLUMN)
    assert b"/FontFile2" in content
    box = re.search(rb"/MediaBox \[ 0 0 ([\d.]+) ([\d.]+) \]", content)
    assert box is not None
    width, height = drawing.size
    assert float(box[1]) == pytest.approx(COLUMN * 72 / 25.4, abs=0.1)
    assert float(box[2]) == pytest.approx(float(box[1]) * height / width, abs=0.1)


def test_letters_of_the_pdf_fit_the_layout() -> None:
    """DejaVu Sans Mono, plain and bold: what stands in a drawing is as wide as the layout has it, or a little less."""
    pytest.importorskip("matplotlib")
    from matplotlib.font_manager import FontProperties
    from matplotlib.textpath import TextPath

    for weight in ("normal", "bold"):
        face = FontProperties(family="DejaVu Sans Mono", weight=weight)
        for letter in ("0", "m", "−", "±", "·", "◀"):
            ten, one = (TextPath((0, 0), letter * count, size=SIZE, prop=face).get_extents().width for count in (10, 1))
            assert 0.97 * LETTER < (ten - one) / 9 <= LETTER, letter


def test_svg_of_a_width_in_millimetres() -> None:
    drawing = drawn([explained(VOLTA, a=["3c00"], b=["3c01"], c="3f800000")], COLUMN)
    assert 'width="85mm"' in svg_of(drawing, millimetres=COLUMN)


def test_the_command_writes_all_of_them(tmp_path: Path) -> None:
    files = {kind: tmp_path / f"why.{kind}" for kind in ("svg", "pdf", "tikz")}
    options = [part for kind, path in files.items() for part in (f"--{kind}", str(path))]
    command = ["explain", AMPERE, json.dumps(EQUATION_10), "--against", HOPPER, "--width", "85"]
    done = CliRunner().invoke(main, [*command, "--name", "A100", "--name", "H100", *options])
    assert (done.exit_code, done.stdout) == (0, ""), done.output
    assert files["pdf"].read_bytes().startswith(b"%PDF")
    assert "A100" in latex(files["tikz"].read_text())
    assert 'width="85mm"' in files["svg"].read_text()
    assert CliRunner().invoke(main, command).exit_code == 2  # a width of nothing
    assert CliRunner().invoke(main, [*command[:-1], "30", *options]).exit_code == 2
    assert CliRunner().invoke(main, [*command, *options, *["--name", "x"] * 3]).exit_code == 2


EVEN_AND_ODD = "cdna3/mfma/f32_16x16x32_fp8_fp8"


@pytest.mark.parametrize("reference", ["plan:cublas/split-k@length=4096", HOPPER, "x86/amx/tdpbf16ps", EVEN_AND_ODD])
def test_the_tree_of_a_plan_or_of_a_unit(reference: str, tmp_path: Path) -> None:
    files = [tmp_path / "tree.svg", tmp_path / "tree.tikz"]
    command = ["show", reference, "--width", "85", "--svg", str(files[0]), "--tikz", str(files[1])]
    done = CliRunner().invoke(main, command)
    assert (done.exit_code, done.stdout, done.stderr.split()) == (0, "", list(map(str, files))), done.output
    words = " ".join(map(untexed, latex(files[1].read_text())))
    wanted = {
        "plan": "inside: tiles of 16 products in order",
        "hopp": "0-15",
        "x86/": "1,3..31 (added one after another)",
        "cdna": "0,2..14",  # which are aligned by themselves, before the odd ones and c join them
    }
    assert wanted[reference[:4]] in words
    assert CliRunner().invoke(main, ["show", reference, "--width", "85"]).exit_code == 2


def test_two_pictures_are_two_files(tmp_path: Path) -> None:
    one, same = tmp_path / "x", tmp_path / "." / "sub" / ".." / "x"
    (tmp_path / "sub").mkdir()
    result = CliRunner().invoke(main, ["show", AMPERE, "--svg", str(one), "--tikz", str(same)])
    assert result.exit_code == 2
    assert "--svg and --tikz name one file" in result.stderr
    assert not one.exists()


@pytest.mark.parametrize(("width", "marks"), [(COLUMN, 2), (178.0, 4)])
def test_a_difference_is_marked_in_the_lines_that_have_its_bits(width: float, marks: int, tmp_path: Path) -> None:
    """In a column the sum takes two lines, and the addend has bits in the second alone: a mark for each model. Two
    columns beside each other are a bit wider here, and it has bits in both lines."""
    ampere, hopper = (f"{arch}/mma/m16n8k16.f32.f16.f16.f32" for arch in ("ampere", "hopper"))
    row = json.dumps({"a": ["c400", "3c00"], "b": ["4400", "1000"], "c": "36900000"})
    path = tmp_path / "x.svg"
    command = ["explain", ampere, row, "--against", hopper, "--width", str(width), "--svg", str(path)]
    assert CliRunner().invoke(main, command).exit_code == 0
    assert path.read_text().count("differs here") == marks


def test_a_step_that_one_model_alone_has_is_marked_as_that(tmp_path: Path) -> None:
    """CDNA3 adds the products before the addend joins: that sum is in the second picture, and differs from nothing."""
    row, path = json.dumps({"a": ["c400", "3555"], "b": ["4400", "3555"], "c": "36900000"}), tmp_path / "x.svg"
    command = ["explain", AMPERE, row, "--against", "cdna3/mfma/f32_16x16x16_f16"]
    text = CliRunner().invoke(main, command).stdout
    assert CliRunner().invoke(main, [*command, "--svg", str(path)]).exit_code == 0
    for shown in (text, path.read_text()):
        assert (shown.count("only here"), shown.count("differs")) == (1, 0)


def test_a_long_name_is_broken_where_its_changes_begin() -> None:
    reference = f"{VOLTA}@align_rounding=sticky"
    evaluation = explain(parse_reference(reference), operands_of(parse_reference(VOLTA), np.random.default_rng(1)))
    titles = [text.text for text in shapes(drawn([evaluation], COLUMN).sheets[0], Text) if text.css == "mp-title"]
    assert titles[:2] == reference.replace("@", " @").split()


@pytest.mark.parametrize(("width", "columns"), [(COLUMN, 1), (120.0, 1), (170.0, 2)])
def test_two_evaluations_are_beside_each_other_where_the_width_allows(width: float, columns: int) -> None:
    """And no higher than a column of a page: of many terms fewer are drawn one by one, inputs once."""
    a, b = ["3c00", "3c01", "4000", "0001", *["3c00"] * 12], ["3c00", "3c01", "c000", *["3c00"] * 12, "6800"]
    drawing = drawn([explained(reference, a=a, b=b, c="40000001") for reference in (AMPERE, HOPPER)], width)
    assert drawing.columns == columns
    assert drawing.size[0] == pytest.approx(pixels(width))
    assert drawing.size[1] * MILLIMETRES <= 230
    assert collisions(drawing) == []
    above = [text.text for sheet in drawing.sheets for text in shapes(sheet, Text)].count(
        "the same inputs and products"
    )
    assert above == (2 - columns)


def test_a_pair_in_a_column_is_no_higher_than_it() -> None:
    """The terms that both have are drawn once, and their sum is said once, not in each line of a wide sum."""
    terms = {"a": ["3fff"] * 4, "b": ["3fff"] * 4, "c": "3fffffff"}
    drawing = drawn([explained(reference, **terms) for reference in (VOLTA, f"{VOLTA}@carry_bits=3")], COLUMN)
    assert drawing.size[1] * MILLIMETRES <= 245
    texts = [text.text for sheet in drawing.sheets for text in shapes(sheet, Text)]
    assert [texts.count(text) for text in ("the same terms", "3 more terms", "nothing truncated")] == [1, 1, 1]
    other = drawn([explained(VOLTA, **terms), explained(VOLTA, **(terms | {"c": "3ffffffe"}))], COLUMN)
    assert "the same terms" not in [text.text for sheet in other.sheets for text in shapes(sheet, Text)]


PLANS = ["cublas/split-k", "openblas/sgemm", "loop/pairwise", "loop/lanes", "triton/bf16x3", "xla/bf16x3",
         "cutlass/linear-combination", "multiword/ootomo-yokota", "ozaki/int8-ii-13"]  # fmt: skip


@pytest.mark.parametrize("width", WIDTHS)
def test_nothing_meets_in_a_picture_of_k(width: float | None) -> None:
    for name in PLANS:
        length = 11 if name.startswith("ozaki") else 1000
        drawing = plan_drawing(parse_plan_path(f"plan:{name}"), length, width and pixels(width))
        assert collisions(drawing) == [], name
        assert drawing.size[1] * MILLIMETRES <= 230, name


def bars(drawing: Drawing) -> list[Box]:
    return [box for sheet in drawing.sheets for box in shapes(sheet, Box) if box.css in ("mp-zero", "mp-carry0")]


def test_a_split_is_a_bar_for_each_run_and_an_addition_for_each_further_one() -> None:
    drawing = plan_drawing(parse_plan_path("plan:cublas/split-k"), 1024)
    one, *others = runs = bars(drawing)
    assert [run.width for run in runs] == pytest.approx([one.width] * 4)
    assert [later.x - run.x for run, later in pairwise(runs)] == pytest.approx([one.width] * 3)
    assert len({run.y for run in runs}) == len(others) + 1
    dots = [box for box in shapes(drawing.sheets[0], Box) if box.css == "mp-one"]
    assert len(dots) == 3
    assert len({dot.y for dot in dots}) == 1, "each is added to the sum of those before"
    assert len({dot.x for dot in dots}) == 3, "one after another"


def test_what_is_left_over_has_a_colour_of_its_own() -> None:
    """A last short tile of one sum; in lanes the products after the last full turn, which go on with the first one."""
    whole, short = bars(plan_drawing(parse_plan_path("plan:cublas/plain"), 40))
    assert (whole.css, short.css) == ("mp-zero", "mp-carry0")
    assert short.x == pytest.approx(whole.x + whole.width)
    assert short.width == pytest.approx(whole.width / 4)
    lanes = bars(plan_drawing(parse_plan_path("plan:loop/lanes"), 70))
    assert [box.css for box in lanes].count("mp-carry0") == 1
    assert [box.css for box in lanes].count("mp-zero") == 64


def test_many_sums_are_drawn_as_the_first_and_the_last() -> None:
    drawing = plan_drawing(parse_plan_path("plan:deepgemm/fp8"), 8192)
    assert len(bars(drawing)) < 13
    assert any("53 sums alike" in text.text for text in shapes(drawing.sheets[0], Text))
    assert "K = 8192: 64 sums, 63 additions of sums" in drawing.description


def test_pairs_are_added_as_a_tree() -> None:
    """Of eight sums, four additions are first, then two, then one."""
    drawing = plan_drawing(parse_plan_path("plan:loop/pairwise"), 64)
    dots = [box.x for box in shapes(drawing.sheets[0], Box) if box.css == "mp-one"]
    assert sorted(Counter(dots).values()) == [1, 2, 4]
