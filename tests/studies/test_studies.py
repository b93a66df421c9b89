"""Studies: exact references, measures, the table that is gone on with, the shapes of the curves, the command."""

from __future__ import annotations

import json
import math
import sys
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape

import numpy as np
import pytest
from click.testing import CliRunner

from mmaprobe.cli.main import main
from mmaprobe.smtmodel.algorithms import parse_reduction
from mmaprobe.smtmodel.base.errors import InputError, ParameterError
from mmaprobe.smtmodel.tables.reference import parse_plan_path
from mmaprobe.studies.exact import exact_product, percent_error, relative_error, signed_measures, size_of
from mmaprobe.studies.file import studies
from mmaprobe.studies.plot import AXES, UNITS, draw, looks_of, size_text
from mmaprobe.studies.run import SUBJECTS, Bias, Draw, Product, Sum, points, run
from mmaprobe.studies.study import SIGNED, Series, Study
from mmaprobe.studies.table import Point, Table
from tests.places import DOCS

pytestmark = pytest.mark.curves

STUDIES = studies()
VALERO = STUDIES["valero-tf32"]
SMALL = replace(VALERO, id="small", sizes=(4, 8), series=VALERO.series[:2], measures=("l2", "linf"))


def nothing(done: int, total: int, point: Point) -> None:
    pass


@pytest.mark.parametrize("spread", [0, 30, 200])
def test_exact_products_are_exact(spread: int) -> None:
    rng = np.random.default_rng(spread)
    a, b = (
        np.ldexp(rng.standard_normal(shape), rng.integers(-spread, spread + 1, shape)) for shape in ((4, 9), (9, 3))
    )
    a[0, :4], b[:4, 0] = (1, -1, 2.0**-40, 0), (1, 1, 2.0**-40, 3)  # cancels
    high, low = exact_product(a, b)
    for i in range(4):
        for j in range(3):
            terms = [Fraction(x) * Fraction(y) for x, y in zip(a[i], b[:, j], strict=True)]
            off = abs(Fraction(high[i, j]) + Fraction(low[i, j]) - sum(terms))
            assert off <= max(map(abs, terms)) / 2**95
    assert np.abs(high - a @ b).max() > 0 or spread == 0


def test_measures() -> None:
    a, b = np.array([[3.0, -4.0], [0.0, 1.0]]), np.array([[2.0, 0.0], [0.0, 0.5]])
    error = np.array([[0.0, 1e-3], [-2e-3, 0.0]])
    for norm, sizes in (("l1", (2e-3, 5.0, 2.0)), ("linf", (2e-3, 7.0, 2.0))):
        assert [size_of(matrix, norm) for matrix in (error, a, b)] == pytest.approx(list(sizes))
    largest = math.sqrt(13 + math.sqrt(160))  # singular value of a: eigenvalues of a aT are 13 +- sqrt(160)
    assert size_of(a, "l2") == pytest.approx(largest)
    assert relative_error(error, largest * 2, "l2") == pytest.approx(1e-3 / largest)
    assert relative_error(error * 1e-300, largest, "l2") == pytest.approx(2e-303 / largest)
    assert relative_error(np.array([[np.nan]]), largest, "l2") == math.inf
    assert relative_error(np.zeros((2, 2)), largest, "l1") == 0
    assert percent_error(101.0, 100.0) == pytest.approx(1)
    assert percent_error(math.inf, 1.0) == math.inf


def test_numbers_depend_on_the_draw_alone() -> None:
    draws = [Draw("normal", 8, 3).numbers((4, 8), "a", VALERO) for _ in range(2)]
    assert np.array_equal(*draws)
    others = [Draw("normal", 8, 4), Draw("normal", 8, 3, 1), Draw("uniform", 8, 3)]
    assert all(not np.array_equal(draws[0], other.numbers((4, 8), "a", VALERO)) for other in others)
    assert not np.array_equal(draws[0], Draw("normal", 8, 3).numbers((4, 8), "b", VALERO))
    assert np.array_equal(draws[0], draws[0].astype(np.float32))
    coarse = Draw("normal", 8, 3).numbers((64, 8), "a", STUDIES["architectures"])
    significands = np.frexp(coarse)[0] * 16
    assert np.array_equal(significands, np.rint(significands))
    assert len(np.unique(coarse)) > 30


def test_new_rows_are_put_in_order(tmp_path: Path) -> None:
    """Points that other machines measured come in any order; what stood there before stays where it is."""
    table = Table(tmp_path / "table.csv", ("percent",))
    old, *new = (Point("s", 0, "normal", "f32", size, "x", "y") for size in (9, 1, 2, 3))
    for point in (old, new[2], new[0], new[1]):
        table.add(point, (float(point.size),))
    table.put_last(new)
    again = Table(table.path, ("percent",))
    assert list(again.rows.items()) == list(table.rows.items())
    assert [values[0] for values in again.rows.values()] == [9.0, 1.0, 2.0, 3.0]
    assert [path.name for path in tmp_path.iterdir()] == ["table.csv"]


def test_a_run_that_was_ended_goes_on(tmp_path: Path) -> None:
    whole = Table(tmp_path / "whole.csv", SMALL.measures)
    assert run(SMALL, SMALL.sizes, 1, whole, nothing) == 8
    assert run(SMALL, SMALL.sizes, 1, whole, nothing) == 0

    def stop(done: int, total: int, point: Point) -> None:
        assert total == 8
        if done == 5:
            raise KeyboardInterrupt

    path = tmp_path / "part.csv"
    with pytest.raises(KeyboardInterrupt):
        run(SMALL, SMALL.sizes, 1, Table(path, SMALL.measures), stop)
    assert len(path.read_text().splitlines()) == 6
    with path.open("a") as stream:
        stream.write("small,1,uniform,1 of f32,8,SG")  # killed while writing
    assert run(SMALL, SMALL.sizes, 1, Table(path, SMALL.measures), nothing) == 3
    assert path.read_text() == whole.path.read_text()
    assert run(SMALL, SMALL.sizes, 2, Table(path, SMALL.measures), nothing) == 8
    other = replace(SMALL, repeats=2)
    assert run(other, SMALL.sizes, 2, Table(path, SMALL.measures), nothing) == 8
    rows = [line.split(",") for line in path.read_text().splitlines()[1:]]
    assert rows[0][-2:] != rows[8][-2:]


def test_files_that_are_no_tables(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    path.write_text("a,b\n1,2\n")
    with pytest.raises(InputError, match=r"x\.csv:1: not a table"):
        Table(path, SMALL.measures)
    path.unlink()
    run(SMALL, (4,), 0, Table(path, SMALL.measures), nothing)
    path.write_text(path.read_text().replace("e-0", "f-0", 1))
    with pytest.raises(InputError, match=r"x\.csv:\d: not a row"):
        Table(path, SMALL.measures)
    with pytest.raises(InputError, match="cannot be used"):
        Table(tmp_path, SMALL.measures)


@pytest.mark.parametrize("sizes", [(), (0,), (1 << 27,)])
def test_sizes_that_cannot_be(sizes: tuple[int, ...], tmp_path: Path) -> None:
    with pytest.raises(ParameterError, match="sizes"):
        run(SMALL, sizes, 0, Table(tmp_path / "x.csv", SMALL.measures), nothing)


@pytest.mark.parametrize("study", STUDIES.values(), ids=lambda study: study.id)
def test_every_study_names_algorithms_of_its_kind(study: Study) -> None:
    assert len({series.label for series in study.series}) == len(study.series)
    for series in study.series:
        for text in filter(None, (series.algorithm, series.minus)):
            if series.bound:
                assert study.kind != "sum"
                assert parse_plan_path(text).sums
            elif study.kind != "sum":
                assert parse_plan_path(text).scale is None
            else:
                parse_reduction(text)


def errors(study: Study, distribution: str, size: int) -> dict[str, float]:
    product = Product(study, Draw(distribution, size, 0))
    return {series.label: product.measure(series, ("l2",))[0] for series in study.series}


def test_the_shape_of_figure_4() -> None:
    for distribution in ("normal", "uniform"):
        found = errors(VALERO, distribution, 48)
        assert 1e-6 < found["1xTF32"] < 3e-4
        assert found["1xTF32"] < found["1xFP16, f16 results"]
        assert 0.5 < found["3xTF32, sums outside"] / found["SGEMM"] < 2
        assert found["4xTF32"] == pytest.approx(found["3xTF32"], rel=0.02)
        assert found["1xTF32"] / 5 > found["3xTF32"] > 3 * found["SGEMM"]


def test_the_shape_of_figure_5() -> None:
    found = errors(STUDIES["valero-tf64"], "uniform", 48)
    assert found["1xTF64"] > 1e6 * found["DGEMM"]
    assert found["3xTF64"] < 20 * found["DGEMM"]
    assert found["4xTF64"] <= found["3xTF64"]
    assert found["SGEMM"] > found["1xTF64"]


def test_truncated_words() -> None:
    """Cut words err to one side: of uniform numbers the errors add up instead of cancelling, of two words as of one."""
    found = errors(VALERO, "uniform", 48)
    assert found["1xTF32, truncated"] > 4 * found["1xTF32"]
    assert found["3xTF32, truncated"] > 2 * found["3xTF32"]
    assert found["4xTF32, truncated"] == pytest.approx(found["3xTF32, truncated"], rel=0.02)


def test_the_shape_of_figure_3_of_xie() -> None:
    """Round-down lowers the sums of numbers of both signs; round-to-zero does not, nor does truncation."""
    study = STUDIES["xie-bias"]
    subject = Bias(study, Draw("normal", 8, 0))
    found = {series.label: subject.measure(series, SIGNED) for series in study.series
             if not (series.minus or series.bound)}  # fmt: skip
    count = (study.rows or 0) ** 2
    for label, (mean, deviation, negative) in found.items():
        biased = label == "CDNA3, down"
        assert (mean < -20 * deviation / math.sqrt(count)) == biased, label
        assert biased or abs(mean) < 5 * deviation / math.sqrt(count)
        assert (negative > 55) == biased


def test_signed_errors_in_rationals() -> None:
    """The deviations of single elements from c + sum of a * b."""
    study = STUDIES["xie-bias"]
    subject = Bias(replace(study, rows=3), Draw("uniform", 8, 1))
    series = study.series[0]
    error = subject.error(series)
    for i, j in np.ndindex(3, 3):
        exact = Fraction(subject.addend[i, j])
        exact += sum(Fraction(x) * Fraction(y) for x, y in zip(subject.a[i], subject.b[:, j], strict=True))
        assert abs(Fraction(error[i, j]) - (Fraction(subject.result(series.algorithm)[i, j]) - exact)) < 2**-30
    assert np.array_equal(subject.a, subject.a.astype(np.float16).astype(np.float64))
    assert subject.a.max() > 500
    assert 0 <= subject.addend.min() <= subject.addend.max() < 1


@pytest.mark.parametrize("name", ["valero-tf32", "valero-tf64", "architectures", "xie-bias", "proved-bounds"])
def test_no_error_is_above_its_proved_bound(name: str) -> None:
    """Element by element, and by each measure; truncated sums of uniform numbers come near."""
    study = STUDIES[name]
    of = {series.label: series for series in study.series}
    bounds = [label for label in of if label.endswith(", proved bound")]
    assert bounds
    for distribution in study.distributions:
        subject = SUBJECTS[study.kind](replace(study, rows=24), Draw(distribution, 64, 2))
        assert isinstance(subject, Product)
        for label in bounds:
            series, bound = of[label.removesuffix(", proved bound")], subject.error(of[label])
            assert (np.abs(subject.error(series)) <= bound).all()
            below = [abs(value) for value in subject.measure(series, study.measures)]
            assert all(x <= y for x, y in zip(below, subject.measure(of[label], study.measures), strict=True))
    near = np.abs(subject.error(of["Volta"])) / subject.error(of["Volta, proved bound"]) if "Volta" in of else 1.0
    assert np.max(near) > 0.01 or name == "architectures"  # whose sums of 64 products are exact


def test_signed_measures() -> None:
    found = signed_measures(np.array([[-3.0, 1.0], [0.0, -2.0]]))
    assert found == {"mean": -1.0, "deviation": pytest.approx(math.sqrt(2.5)), "negative": 50.0}


def test_the_recurrence_overflows() -> None:
    for name, size, lost in (
        ("recurrence", 100_000, False),
        ("recurrence", 150_000, True),
        ("single-pass", 150_000, False),
    ):
        subject = Sum(STUDIES["navarro-variants"], Draw("uniform", size, 0))
        assert (subject.measure(Series(name, name), ("percent",))[0] == math.inf) == lost


@pytest.mark.slow
def test_curves(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    table = Table(tmp_path / "x.csv", SMALL.measures)
    run(SMALL, SMALL.sizes, 0, table, nothing)
    table.rows = {key: (math.inf, math.inf) if key[4] == "8" else row for key, row in table.rows.items()}
    paths = draw(SMALL, SMALL.sizes, 0, table, tmp_path / "x")
    assert [path.name for path in paths] == ["x.png", "x.svg"]
    text = paths[1].read_text()
    assert "1xTF32 (overflows from 8)" in text
    assert "uniform numbers: l2 error" in text
    assert size_text(SMALL) in text
    assert "4 × K times K × 4" in size_text(replace(SMALL, rows=4, axis="K"))
    assert {"n u", "u (u = "} <= {label for label in ("n u", "u (u = ") if label in text}
    draw(SMALL, SMALL.sizes, 0, table, tmp_path / "x")
    assert paths[1].read_text() == text


def test_errors_of_zero_are_counted(tmp_path: Path) -> None:
    """A logarithmic axis has no place for them: the panel says how many are missing, and where."""
    pytest.importorskip("matplotlib")
    table = Table(tmp_path / "x.csv", SMALL.measures)
    first = SMALL.distributions[0]
    table.rows = {point.key: (0.0 if point.distribution == first else 1e-6,) * len(SMALL.measures)
                  for point, _ in points(SMALL, SMALL.sizes, 0)}  # fmt: skip
    svg = draw(SMALL, SMALL.sizes, 0, table, tmp_path / "x")[1].read_text()
    assert svg.count("4 errors of 0 not drawn, at 4 to 8") == len(SMALL.measures)
    table.rows = {key: tuple(1e-6 for _ in row) for key, row in table.rows.items()}
    assert "not drawn" not in draw(SMALL, SMALL.sizes, 0, table, tmp_path / "x")[1].read_text()


def test_equal_curves_take_turns(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """At every point of the line exactly one of them is drawn; no marker hides another."""
    pytest.importorskip("matplotlib")
    from matplotlib.figure import Figure

    lines: list[Any] = []
    monkeypatch.setattr(Figure, "savefig", lambda figure, *_, **__: lines.extend(figure.axes[0].lines))
    table = Table(tmp_path / "x.csv", STUDIES["valero-tf32"].measures)
    study = replace(STUDIES["valero-tf32"], measures=("l2",))
    first = study.series[:3]
    table.rows = {point.key: (1e-6 if series in first else 2e-6 * (1 + study.series.index(series)),)
                  for point, series in points(study, study.sizes, 0)}  # fmt: skip
    draw(study, study.sizes, 0, table, tmp_path / "x")
    drawn = [line for line in lines if len(line.get_xdata()) and set(line.get_ydata()) == {1e-6}]
    assert len(drawn) == 6  # of both files
    shares, marked = [], []
    for line in drawn[:3]:
        offset, (on, off) = line._unscaled_dash_pattern
        shares.append({step for step in range(int(on + off)) if (step + offset) % (on + off) < on})
        start, every = line.get_markevery()
        marked.append({place for place in range(len(study.sizes)) if place >= start and (place - start) % every == 0})
    assert sorted(step for share in shares for step in share) == list(range(12))
    assert sorted(place for places in marked for place in places) == list(range(len(study.sizes)))
    others = [line for line in lines if len(line.get_xdata()) and set(line.get_ydata()) == {2e-6 * 5}]
    assert others[0].get_linestyle() in ("-", "--")


def test_a_column_of_a_paper(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The longest legend, the longest title: one panel above the other, and nothing beyond the edges."""
    pytest.importorskip("matplotlib")
    from matplotlib.figure import Figure

    boxes: list[Any] = []

    def laid_out(figure: Figure, *_: Any, **__: Any) -> None:
        if not boxes:
            figure.canvas.draw()
            boxes.append(figure.get_tightbbox())

    monkeypatch.setattr(Figure, "savefig", laid_out)
    study = replace(STUDIES["valero-tf32"], measures=("l2", "deviation"))
    table = Table(tmp_path / "x.csv", study.measures)
    table.rows = {point.key: (1e-6, 1e-6) for point, _ in points(study, study.sizes, 0)}
    paths = draw(study, study.sizes, 0, table, tmp_path / "x", 85)
    assert [path.suffix for path in paths] == [".png", ".svg", ".pdf"]
    assert boxes[0].x0 >= 0
    assert 2.5 < boxes[0].x1 <= 85 / 25.4
    with pytest.raises(ParameterError, match="60 mm is too narrow: 80 or more"):
        draw(study, study.sizes, 0, table, tmp_path / "x", 60)


@pytest.mark.parametrize("millimetres", [None, 85])
@pytest.mark.parametrize("measures", [("entry-1", "entry-2"), ("entry-2", "entry-max"), ("l2", "linf")])
def test_the_legend_names_the_lines_of_every_panel(
    measures: tuple[str, str], millimetres: float | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first or the last panel has no lines of u."""
    pytest.importorskip("matplotlib")
    from matplotlib.figure import Figure
    from matplotlib.legend import Legend

    found: list[list[str]] = []

    def laid_out(figure: Figure, *_: Any, **__: Any) -> None:
        found.append([text.get_text() for legend in figure.findobj(Legend) for text in legend.get_texts()])

    monkeypatch.setattr(Figure, "savefig", laid_out)
    study = replace(SMALL, measures=measures)
    table = Table(tmp_path / "x.csv", study.measures)
    table.rows = {point.key: (1e-6, 1e-6) for point, _ in points(study, study.sizes, 0)}
    draw(study, study.sizes, 0, table, tmp_path / "x", millimetres)
    lines = [*(series.label for series in study.series), "u (u = $2^{-24}$)", "n u"]
    assert all(texts == lines for texts in found)


@pytest.mark.parametrize("name", ["architectures", "valero-tf32"])
def test_sizes_in_a_column_have_room(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("matplotlib")
    from matplotlib.figure import Figure

    labels: list[Any] = []

    def laid_out(figure: Figure, *_: Any, **__: Any) -> None:
        figure.canvas.draw()
        labels[:] = [text.get_window_extent() for text in figure.axes[-1].get_xticklabels() if text.get_text()]

    monkeypatch.setattr(Figure, "savefig", laid_out)
    study = replace(STUDIES[name], measures=("l2",))
    table = Table(tmp_path / "x.csv", study.measures)
    table.rows = {point.key: (1e-6,) for point, _ in points(study, study.sizes, 0)}
    draw(study, study.sizes, 0, table, tmp_path / "x", 85)
    assert len(labels) >= 4
    assert all(one.x1 + 2 < other.x0 for one, other in pairwise(labels))


def test_powers_of_ten_of_both_signs_have_room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In the column, which narrow windows show, as what the axes count has: the points are those of docs/studies."""
    pytest.importorskip("matplotlib")
    from matplotlib.figure import Figure

    labels: list[Any] = []
    axes: list[Any] = []
    ends: dict[str, str] = {}

    def laid_out(figure: Figure, *_: Any, **__: Any) -> None:
        figure.canvas.draw()
        ends.update(
            {line.get_label(): line.get_marker() for line in figure.axes[0].lines if line.get_label()[0] != "_"}
        )
        axes[:] = [figure.bbox, *(panel.yaxis.label.get_window_extent() for panel in figure.axes)]
        labels[:] = [text.get_window_extent() for text in figure.axes[0].get_yticklabels()]

    monkeypatch.setattr(Figure, "savefig", laid_out)
    study = STUDIES["xie-bias"]
    draw(study, study.sizes, 0, Table(DOCS / "studies/xie-bias.csv", study.measures), tmp_path / "x", 85)
    inside = [one for one in labels if one.y1 > 0]
    assert len(inside) >= 6
    assert all(one.y1 - other.y0 < 0.2 * one.height for one, other in pairwise(inside))
    assert len(axes) == 1 + len(study.measures) * len(study.distributions)
    assert all(axes[0].x0 <= label.x0 and label.y1 <= axes[0].y1 for label in axes[1:])
    assert all(other.y1 < one.y0 for one, other in pairwise(axes[1:]))
    bounds = [series.label for series in study.series if series.bound]
    assert len({ends[label] for label in bounds}) == len(bounds) > 1
    assert all(ends[label] == ends[label.removesuffix(", proved bound")] for label in bounds)


def test_groups_differ_in_grey() -> None:
    """Every two of them, by luminance or, beyond eight, by marker."""
    pytest.importorskip("matplotlib")
    for count in (2, 5, 8):
        looks = list(looks_of([str(n) for n in range(count)]).values())
        greys = [0.2126 * red + 0.7152 * green + 0.0722 * blue for (red, green, blue, _), _ in looks]
        assert greys == sorted(greys)
        assert min(late - early for early, late in pairwise(greys)) > 0.04
        assert max(greys) < 0.85  # on white
        assert len({marker for _, marker in looks}) == count


def test_every_measure_has_an_axis() -> None:
    assert {measure for study in studies().values() for measure in study.measures} <= set(AXES)
    assert {study.format for study in studies().values()} <= set(UNITS)


def test_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(studies(), "small", SMALL)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    arguments = ["study", "small", "--sizes", "8,4", "-o", str(tmp_path / "new"), "--json"]
    result = CliRunner().invoke(main, arguments)
    assert result.exit_code == 0
    assert "pip install '.[plots]' in a clone" in result.stderr
    document = json.loads(result.stdout)
    assert (document["new"], document["sizes"]) == (8, [4, 8])
    assert document["files"] == [str(tmp_path / "new" / "small.csv")]
    assert json.loads(CliRunner().invoke(main, arguments).stdout)["new"] == 0


@pytest.mark.parametrize("kind", ["png", "svg", "pdf"])
def test_pictures_that_no_study_has_drawn_stay(kind: str, tmp_path: Path) -> None:
    (tmp_path / f"valero-tf32.{kind}").write_text("mine")
    result = CliRunner().invoke(main, ["study", "valero-tf32", "-o", str(tmp_path)])
    assert result.exit_code == 2
    assert "no study drew this" in result.output
    assert [path.read_text() for path in tmp_path.iterdir()] == ["mine"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["valero-tf23"], "did you mean 'valero-tf32'"),
        (["valero-tf32", "--sizes", "8,x"], "is not a list of sizes such as 32,64,128"),
        (["valero-tf32", "--sizes", "0"], "sizes"),
        (["valero-tf32", "--seed", "-1"], "seed"),
    ],
)
def test_command_errors(arguments: list[str], message: str, tmp_path: Path) -> None:
    result = CliRunner().invoke(main, ["study", *arguments, "-o", str(tmp_path / "out")])
    assert result.exit_code == 2
    assert message in result.output


def test_lists() -> None:
    for kind, expected in (("studies", set(STUDIES)), ("algorithms", {"markidis", "single-pass"})):
        found = json.loads(CliRunner().invoke(main, ["list", kind, "--json"]).stdout)
        assert expected <= {row["id"] for row in found}


@pytest.mark.parametrize("study", STUDIES.values(), ids=lambda study: study.id)
def test_pages_have_all_points_and_both_pictures(study: Study) -> None:
    """A point for every curve and size, so that nothing is measured to draw the picture again; and what is drawn."""
    folder = DOCS / "studies"
    table = Table(folder / f"{study.id}.csv", study.measures)
    wanted = [point for point, _ in points(study, study.sizes, 0)]
    assert list(table.rows) == [point.key for point in wanted]
    page = "".join(path.read_text(encoding="utf-8") for path in folder.glob("*.md"))  # some are on one page
    for name in (f"{study.id}.svg", f"{study.id}-column.svg"):
        assert f'"{name}"' in page
        drawn = (folder / name).read_text(encoding="utf-8")
        assert all(escape(series.label) in drawn for series in study.series)


def test_points_give_the_picture_again(tmp_path: Path) -> None:
    matplotlib = pytest.importorskip("matplotlib")
    study, kept = STUDIES["navarro-cub"], (DOCS / "studies/navarro-cub.svg").read_bytes()
    if f"Matplotlib v{matplotlib.__version__}".encode() not in kept:
        pytest.skip("drawn by another matplotlib")
    table = Table(DOCS / "studies/navarro-cub.csv", study.measures)
    draw(study, study.sizes, 0, table, tmp_path / study.id)
    assert (tmp_path / "navarro-cub.svg").read_bytes() == kept
