"""Studies of one's own: files with plans, sizes, distributions and norms."""

from __future__ import annotations

import csv
import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

from mmaprobe.cli.main import main
from mmaprobe.smtmodel.base.errors import InputError, ParameterError
from mmaprobe.studies.exact import size_of
from mmaprobe.studies.file import studies, study_named
from mmaprobe.studies.run import Draw, Product, points, values_of
from mmaprobe.studies.study import Series, Study
from mmaprobe.studies.table import Point

pytestmark = pytest.mark.curves

SCALED = "blackwell/tcgen05mma_block_scale/m64n8k32.block32.f32.e4m3.e4m3.ue8m0"
PLAN = """plan: mine
formats: {a: f16, b: f16, c: f32, d: f32}
units: {mma: volta/mma/m8n8k4.f32.f16.f16.f32}
steps: {d: "sum(mma, c)"}
"""
STUDY = """id: mine
sizes: [8, 4]
rows: 3
distributions: [triangular]
measures: [entry-1, entry-2, entry-max]
curves:
- plan: ./mine-plan.yaml
- {label: f32, plan: ieee/fma/f32}
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "mine-plan.yaml").write_text(PLAN)
    (tmp_path / "mine.yaml").write_text(STUDY)
    (tmp_path / "relu.yaml").write_text(PLAN.replace("sum(mma, c)", "round(relu(sum(mma, c)), f32)"))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_study_of_one_s_own(folder: Path) -> None:
    """Ten lines: the errors in its table are those of rationals."""
    arguments = ["study", "mine.yaml", "-o", "out", "--json"]
    document = json.loads(CliRunner().invoke(main, arguments).stdout)
    assert (document["study"], document["new"], document["sizes"]) == ("mine", 4, [4, 8])
    assert json.loads(CliRunner().invoke(main, arguments).stdout)["new"] == 0
    with Path("out/mine.csv").open() as stream:
        rows = {(row["series"], row["size"]): row for row in csv.DictReader(stream)}
    study = study_named("mine.yaml")
    for size in study.sizes:
        subject = Product(study, Draw("triangular", size, 0))
        for series in study.series:
            result, sums = subject.result(series.algorithm), []
            for i, j in np.ndindex(3, 3):
                terms = (Fraction(x) * Fraction(y) for x, y in zip(subject.a[i], subject.b[:, j], strict=True))
                sums.append(abs(Fraction(result[i, j]) - sum(terms)))
            magnitudes = [np.abs(subject.a), np.abs(subject.b)]
            row = rows[series.label, str(size)]
            assert float(row["entry-1"]) == pytest.approx(float(sum(sums)) / np.prod([one.sum() for one in magnitudes]))
            assert float(row["entry-max"]) == pytest.approx(
                float(max(sums)) / np.prod([one.max() for one in magnitudes])
            )
            squares = [float(np.sqrt((one**2).sum())) for one in magnitudes]
            assert float(row["entry-2"]) == pytest.approx(float(sum(x * x for x in sums)) ** 0.5 / np.prod(squares))


def test_another_plan_under_the_same_name_is_measured_again(folder: Path) -> None:
    arguments = ["study", "mine.yaml", "-o", "out", "--json"]
    assert json.loads(CliRunner().invoke(main, arguments).stdout)["new"] == 4
    (folder / "mine-plan.yaml").write_text(PLAN.replace("volta/mma/m8n8k4", "ampere/mma/m16n8k16"))
    assert json.loads(CliRunner().invoke(main, arguments).stdout)["new"] == 2


def test_ranges_of_exponents(folder: Path) -> None:
    (folder / "mine.yaml").write_text(STUDY.replace("rows: 3", "rows: 3\nlength: 16").replace("[8, 4]", "[0, 30]"))
    study = study_named("mine.yaml")
    assert CliRunner().invoke(main, ["study", "mine.yaml", "-o", "out"]).exit_code == 0
    beyond = CliRunner().invoke(main, ["study", "mine.yaml", "--sizes", "401", "-o", "out"])
    assert "whole numbers from 0 to 400 are needed" in beyond.output
    narrow, wide = (Product(study, Draw("triangular", size, 0)) for size in study.sizes)
    assert narrow.a.shape == wide.a.shape == (3, 16)
    exponents = np.frexp(wide.a)[1]
    assert exponents.min() < -20
    assert exponents.max() > 20
    assert np.abs(narrow.a).max() <= 0.5


@pytest.mark.parametrize(
    ("given", "sizes"),
    [
        ("factor: 1.0e+39", "8"),
        ("factor: .inf", "8"),
        ("format: f64\nfactor: 1.0e+300", "8"),
        ("length: 16", "200"),
        ("grid: f16\nfactor: 1.0e+6", "8"),
    ],
)
def test_numbers_beyond_the_format_are_refused(folder: Path, given: str, sizes: str) -> None:
    """Their exact products are no numbers, and slices of them have no end."""
    (folder / "mine.yaml").write_text(STUDY.replace("rows: 3", f"rows: 3\n{given}"))
    with pytest.raises(ParameterError, match=f"sizes: at {sizes} not all that is drawn are numbers of"):
        Product(study_named("mine.yaml"), Draw("triangular", int(sizes), 0))
    done = CliRunner().invoke(main, ["study", "mine.yaml", "--sizes", sizes, "-o", "out"])
    assert (done.exit_code, "not all that is drawn" in done.output) == (2, True)


def test_zeros_have_no_error(folder: Path) -> None:
    np.save("mine.npy", np.zeros(4))
    (folder / "mine.yaml").write_text(STUDY.replace("[triangular]", "[mine.npy]"))
    study = study_named("mine.yaml")
    assert {values_of(study, series, point) for point, series in points(study, (8,), 0)} == {(0.0, 0.0, 0.0)}


def test_the_conversion_counts(folder: Path) -> None:
    """Numbers that are none of a plan's format are rounded to nearest, and what that loses is in the error."""
    study = study_named("mine.yaml")
    subject = Product(study, Draw("triangular", 8, 0))
    assert not np.array_equal(subject.a, subject.a.astype(np.float16))
    rounded = [np.float64(np.float16(x)) for x in subject.a[0]]
    assert np.abs(subject.a[0] - rounded).max() > 2**-16
    point, series = next(points(study, (8,), 0))
    assert values_of(study, series, point)[2] > 2**-14


def test_numbers_are_drawn_from_a_file(folder: Path) -> None:
    """Of the file all numbers come, and no others; what was measured of another file is measured again, and no more."""
    numbers = np.array([[1.5, -3.0, 2.0**-7], [0.1, 7.0, 1e3]])
    np.save("mine.npy", numbers)
    (folder / "mine.yaml").write_text(STUDY.replace("[triangular]", "[mine.npy, normal]"))
    study = study_named("mine.yaml")
    drawn = Draw("mine.npy", 8, 0).numbers((40, 40), "a", study)
    assert set(drawn.ravel()) == set(np.float64(np.float32(numbers)).ravel())
    counts = np.unique(drawn, return_counts=True)[1]
    assert 1600 / 6 - 80 < counts.min() <= counts.max() < 1600 / 6 + 80
    arguments = ["study", "mine.yaml", "-o", "out", "--json"]
    assert [json.loads(CliRunner().invoke(main, arguments).stdout)["new"] for _ in range(2)] == [8, 0]
    np.save("mine.npy", numbers + 1)
    assert json.loads(CliRunner().invoke(main, arguments).stdout)["new"] == 4


@pytest.mark.parametrize(
    ("numbers", "message"),
    [
        (None, "mine.npy: No such file"),
        (np.array([1.0, np.inf]), "mine.npy: finite numbers within"),
        (np.array([1e39]), "mine.npy: finite numbers within"),
        (np.array([]), "mine.npy: finite numbers within"),
        (np.array(["1"]), "mine.npy: finite numbers within"),
        (np.array([1j]), "mine.npy: finite numbers within"),
    ],
)
def test_a_file_without_numbers_is_refused(folder: Path, numbers: np.ndarray[Any, Any] | None, message: str) -> None:
    if numbers is not None:
        np.save("mine.npy", numbers)
    (folder / "mine.yaml").write_text(STUDY.replace("[triangular]", "[mine.npy]"))
    with pytest.raises(InputError, match=f"mine.yaml:4: distributions.0: {message}"):
        study_named("mine.yaml")


def test_entrywise_norms() -> None:
    matrix = np.array([[3.0, -4.0], [0.0, 1.0]]) * 1e-200
    assert [size_of(matrix, name) for name in ("entry-1", "entry-2", "entry-max")] == pytest.approx(
        [8e-200, 26**0.5 * 1e-200, 4e-200]
    )


def test_a_bound_of_rounded_numbers_is_refused(folder: Path) -> None:
    """What the rounding of inputs loses is no part of a plan's bound: the curve would lie below errors."""
    bound = STUDY + "- bound: ./mine-plan.yaml\n"
    (folder / "mine.yaml").write_text(bound)
    result = CliRunner().invoke(main, ["study", "mine.yaml", "-o", "out"])
    assert result.exit_code == 2
    assert "a study with this bound has `grid: f16`" in result.output
    assert not Path("out/mine.csv").exists()  # refused before anything is measured
    (folder / "mine.yaml").write_text("grid: f16\n" + bound)
    assert CliRunner().invoke(main, ["study", "mine.yaml", "-o", "out"]).exit_code == 0
    with Path("out/mine.csv").open() as stream:
        values = {(row["size"], row["series"]): float(row["entry-max"]) for row in csv.DictReader(stream)}
    labels = [series.label for series in study_named("mine.yaml").series]
    assert all(0 < values[size, labels[0]] <= values[size, labels[2]] for size in ("4", "8"))


UNIT = """unit: u
formats: {a: e5m2, b: e2m3, c: f32, d: f32}
length: 5
roundings: {r: "round(f32, toward_zero)"}
steps: {d: "r(fused(a[0:5] * b[0:5], c, F=17))"}
"""


@pytest.mark.parametrize(("stopped_at", "lines"), [(4, 0), (8, 3)])
def test_a_study_without_a_point_leaves_no_table(
    folder: Path, monkeypatch: pytest.MonkeyPatch, stopped_at: int, lines: int
) -> None:
    """An interrupt before the first point leaves no file and speaks of none; one after it leaves the points."""

    def interrupted(study: Study, series: Series, point: Point) -> tuple[float, ...]:
        if point.size == stopped_at:
            raise KeyboardInterrupt
        return values_of(study, series, point)

    monkeypatch.setattr("mmaprobe.studies.run.values_of", interrupted)
    result = CliRunner().invoke(main, ["study", "mine.yaml", "-o", "out"])
    assert result.exit_code != 0
    assert [len(path.read_text().splitlines()) for path in Path("out").glob("*")] == [lines] * bool(lines)
    assert ("finished points are in" in result.output) == bool(lines)


@pytest.mark.parametrize(
    ("formats", "other", "grid"),
    [
        ("a: e5m2, b: e2m3", "", "e2m1"),
        ("a: e5m2, b: f16", "", "e5m2"),
        ("a: f16, b: e4m3", "- {label: second, bound: ./mine-plan.yaml}\n", "e4m3"),
        ("a: f16, b: e8m13", "- {label: second, bound: ./u2.yaml}\n", "e4m3"),
        ("a: e3m4_none, b: f16", "", "e3m2"),
    ],
)
def test_the_grid_that_is_advised_is_one_for_all_bounds(folder: Path, formats: str, other: str, grid: str) -> None:
    """The first message names the widest format within those of every bound: a study with it runs."""
    (folder / "u.yaml").write_text(UNIT.replace("a: e5m2, b: e2m3", formats))
    (folder / "u2.yaml").write_text(UNIT.replace("a: e5m2, b: e2m3", "a: e4m3, b: f16"))
    study = f"id: st\nsizes: [10]\nrows: 2\nmeasures: [entry-max]\ncurves:\n- bound: ./u.yaml\n{other}"
    (folder / "st.yaml").write_text(study)
    refused = CliRunner().invoke(main, ["study", "st.yaml", "-o", "out"])
    assert (refused.exit_code, f"a study with this bound has `grid: {grid}`\n" in refused.output) == (2, True)
    assert not Path("out/st.csv").exists()
    (folder / "st.yaml").write_text(f"grid: {grid}\n{study}")
    done = CliRunner().invoke(main, ["study", "st.yaml", "-o", "out"])
    assert done.exit_code == 0, done.output


def test_formats_of_which_none_is_within_both_have_no_grid(folder: Path) -> None:
    (folder / "u.yaml").write_text(UNIT.replace("a: e5m2, b: e2m3", "a: e2m1, b: ue4m3"))
    (folder / "st.yaml").write_text("id: st\nsizes: [10]\nrows: 2\ncurves:\n- bound: ./u.yaml\n")
    refused = CliRunner().invoke(main, ["study", "st.yaml", "-o", "out"])
    assert refused.exit_code == 2
    assert "no `grid` is within e2m1 and ue4m3" in refused.output


def test_results_in_a_format_without_a_type_are_numbers(folder: Path) -> None:
    """Of such a format arrays hold patterns: errors are those of the numbers that these are."""
    (folder / "mine-plan.yaml").write_text(
        PLAN.replace("d: f32", "d: e3m6_ieee").replace("sum(mma, c)", "round(sum(mma, c), e3m6_ieee)")
    )
    assert CliRunner().invoke(main, ["study", "mine.yaml", "-o", "out"]).exit_code == 0
    with Path("out/mine.csv").open() as stream:
        errors = [float(row["entry-max"]) for row in csv.DictReader(stream) if row["series"] == "./mine-plan.yaml"]
    assert len(errors) == 2
    assert all(0 < error < 2**-5 for error in errors)


@pytest.mark.parametrize(
    ("key", "c", "mended"),
    [
        ("addend_factor: 0", "f16", "grid: f16\naddend_factor: 0\n"),
        ("format: f32", "f32", "grid: f16\nformat: f32\n"),
    ],
)
def test_addends_are_not_rounded_to_the_grid(folder: Path, key: str, c: str, mended: str) -> None:
    (folder / "mine-plan.yaml").write_text(
        f"plan: mine\nformats: {{a: f16, b: f16, c: {c}, d: f32}}\nunits: {{mma: volta/mma/m8n8k4.f32.f16.f16.f32}}\n"
        'roundings: {r: "round(f32, nearest_even)"}\nsteps: {d: "r(exact(sum(mma, +0), c))"}\n'
    )
    study = "id: st\nkind: bias\nsizes: [8]\nrows: 2\ncurves:\n- bound: ./mine-plan.yaml\n"
    (folder / "st.yaml").write_text(f"format: f64\ngrid: f16\n{study}")
    refused = CliRunner().invoke(main, ["study", "st.yaml", "-o", "out"])
    assert (refused.exit_code, f"a study with this bound has `{key}`\n" in refused.output) == (2, True)
    (folder / "st.yaml").write_text(f"{mended}{study}")
    done = CliRunner().invoke(main, ["study", "st.yaml", "-o", "out"])
    assert done.exit_code == 0, done.output


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("plan: ./mine-plan.yaml", "plan: ./other.yaml", "other.yaml: no such file"),
        (
            "plan: ./mine-plan.yaml",
            "reduction: split",
            "mine.yaml:7: curves.0.reduction: a reduction stands in studies",
        ),
        ("plan: ./mine-plan.yaml", "plan: ieee/fma/f32\n  bound: ieee/fma/f32", "curves.0: a curve has one of"),
        ("[entry-1, entry-2, entry-max]", "[percent]", "mine.yaml:5: measures.0: percent is none of l1"),
        ("[8, 4]", "[8, 0]", "mine.yaml:2: sizes: lengths from 1"),
        ("rows: 3", "rows: 3\ngrid: f17", "mine.yaml:4: grid: 'f17' is none of"),
        ("rows: 3", "rows: 3\naddend_factor: 2", "mine.yaml:4: addend_factor: only a study of kind `bias` has addends"),
        ("[triangular]", "[cauchy]", "mine.yaml:4: distributions"),
        ("id: mine", "id: mine\nkind: sum", "mine.yaml:2: kind: a study of kind `sum` has no `rows`"),
        (
            "id: mine\nsizes: [8, 4]\nrows: 3",
            "id: mine\nkind: sum\nformat: f64\nsizes: [8, 4]",
            "and its format is f32",
        ),
        ("label: f32", "label: ./mine-plan.yaml", "mine.yaml:8: curves.1: a second curve with the label"),
        (
            "plan: ./mine-plan.yaml",
            f"plan: {SCALED}",
            "scale factors",
        ),
        (
            "plan: ./mine-plan.yaml",
            "plan: plan:cutlass/linear-combination",
            "mine.yaml:7: curves.0.plan: plan:cutlass/linear-combination gives 3/2 for a product of 1: errors here are "
            "those against A * B",
        ),
        ("plan: ./mine-plan.yaml", "plan: relu.yaml", "curves.0.plan: relu.yaml gives 0 for a product of -1"),
    ],
)
def test_errors_name_line_and_key(folder: Path, old: str, new: str, message: str) -> None:
    text = STUDY.replace(old, new, 1)
    assert text != STUDY
    (folder / "mine.yaml").write_text(text)
    with pytest.raises((InputError, ParameterError)) as caught:
        study_named("mine.yaml")
    assert message in str(caught.value)


def test_every_study_that_ships_is_a_file() -> None:
    assert len(studies()) >= 8
    assert all(study.about and study.series for study in studies().values())
