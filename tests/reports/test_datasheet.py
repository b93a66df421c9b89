"""Data sheets: every architecture has one, they say what the models do, and the error bound holds."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from mmaprobe.cli.commands.datasheet import _Asker
from mmaprobe.cli.main import main
from mmaprobe.documents.parts import Verdict
from mmaprobe.queries.properties.bound_report import document_of, find_bound
from mmaprobe.queries.search.distinguish import Options
from mmaprobe.queries.tactics.settling import Settled
from mmaprobe.reports import basis
from mmaprobe.reports.arithmetic import LINES, arithmetic
from mmaprobe.reports.datasheet import (
    KnownProperty,
    Sheet,
    SheetLine,
    groups,
    identification,
    page,
    properties_of,
    sheet_of_identified,
    sheet_of_model,
    sheets_of,
    special_values,
)
from mmaprobe.reports.gpu_page import file_name, pages
from mmaprobe.reports.latex import COLUMNS, latex_of_sheets
from mmaprobe.smtmodel.arithmetic.display import exact_value
from mmaprobe.smtmodel.base.progress import Pieces
from mmaprobe.smtmodel.evaluate.batch import evaluate_row
from mmaprobe.smtmodel.evaluate.model import Model
from mmaprobe.smtmodel.evaluate.operands import Operands
from mmaprobe.smtmodel.inputs.admitted import Inputs
from mmaprobe.smtmodel.tables.gpus import GPUS
from mmaprobe.smtmodel.tables.instructions import INSTRUCTIONS
from mmaprobe.smtmodel.tables.recordings import RECORDED
from mmaprobe.smtmodel.tables.reference import parse_reference
from mmaprobe.smtmodel.units.unitfile import parse_unit, unit_text
from tests.places import DOCS
from tests.records import recorded
from tests.reports.browser import check_page
from tests.reports.test_report import FAMILY, SMALL, VOLTA, Page, run

pytestmark = pytest.mark.browser

HOPPER = "hopper/mma/m16n8k16.f32.f16.f16.f32"
EMULATED = "hopper/mma/m16n8k32.f32.e4m3.e4m3.f32"


class Silent:
    """No property is known; lemmas about the datapath are proved."""

    settle = Settled(Options(timeout=None), confirmed=False)

    def __call__(self, wanted: str, model: Model) -> KnownProperty | None:
        return None


SILENT = Silent()


@cache
def every_sheet() -> list[Sheet]:
    return sheets_of(None, SILENT, Pieces(lambda text: None, "sheets"))


def test_every_instruction_is_on_one_sheet() -> None:
    sheets = every_sheet()
    named = [name for sheet in sheets for name in sheet.instructions]
    assert sorted(named) == sorted(INSTRUCTIONS)
    for sheet in sheets:
        names, model = {line.name for line in sheet.lines}, parse_reference(sheet.instructions[0])
        assert {"Formats", "Operation", "Products", "NaN", *properties_of(model).values()} <= names
        assert all(line.value and line.basis for line in sheet.lines)
    for group in groups(INSTRUCTIONS.values()):
        assert len({parse_reference(row.reference).unit.result for row in group}) == 1


def test_a_sheet_says_what_the_model_does() -> None:
    class Knowing(Silent):
        def __call__(self, wanted: str, model: Model) -> KnownProperty:
            verdicts: dict[str, Verdict] = {
                "order-independent": "equal",
                "sign-symmetric": "different",
                "monotonic-addend": "unknown",
            }
            return KnownProperty(verdicts[wanted], ["one"], ["two"], seconds=3)

    lines = {line.name: line for line in sheet_of_model(parse_reference(HOPPER), Knowing()).lines}
    assert lines["Fraction bits"].value == "25 below the largest exponent"
    assert lines["NaN"].value == "nan (7fffffff)"
    assert lines["Exponent floor"].value.startswith("-133")
    assert lines["Error against the exact sum"].value.startswith("|d - exact| <= 2^-23 * |exact| + 1.")
    properties = [lines[name] for name in properties_of(parse_reference(HOPPER)).values()]
    assert [line.value for line in properties] == ["yes", "no", "open"]
    assert properties[0].basis == "proved by one; confirmed by two"


def test_a_sheet_speaks_of_what_a_unit_has() -> None:
    """Not of an addend that it does not read, nor of subnormal integers and zeros with a sign among them."""
    text = "unit: u\nformats: {{a: {0}, b: {0}, c: {1}, d: {2}}}\nlength: 1\nsteps: {{d: 'round({3}, {2})'}}\n"
    units = [parse_unit(text.format(*given), "u.yaml") for given in (
        ("e5m2", "none", "f32", "exact(a[0] * b[0])"), ("int8", "int32", "int32", "exact(a[0] * b[0], c)"),
    )]  # fmt: skip
    without, whole = (
        {line.name: line.value for line in sheet_of_model(Model("u", unit), SILENT).lines} for unit in units
    )
    assert without["Formats"] == "e5m2 * e5m2 -> f32"
    assert without["Operation"] == "exact product, then rounded"
    assert without["NaN * 1"] == "nan (pattern not known)"
    assert without["-0 * 1"] == "-0 (80000000)"
    assert not {"infinity - infinity", "-0 * 1 + (-0)"} & without.keys()
    assert not {"Zero results", "Subnormal results", "Subnormal inputs", "Zero inputs", "-0 * 1 + (-0)"} & whole.keys()


@pytest.mark.parametrize(
    ("d", "products"),
    [
        ("r(fused(a[0:3] * b[0:3], c, F=17))", "3; all products in one step"),
        ("r(fused(fused(a[0:2] * b[0:2], F=17), a[2] * b[2], c, F=17))", "3; added in 2 sums"),
    ],
)
def test_products_of_two_sums_are_not_said_to_be_in_one_step(d: str, products: str) -> None:
    text = (
        "unit: u\nformats: {a: f16, b: f16, c: f32, d: f32}\nlength: 3\n"
        f'roundings: {{r: "round(f32, toward_zero)"}}\nsteps: {{d: "{d}"}}\n'
    )
    assert dict(arithmetic(parse_unit(text, "u.yaml")))["Products"] == products


def test_roundings_have_the_names_of_the_file() -> None:
    text = (
        unit_text(parse_reference(SMALL).unit)
        .replace("  r: round", "  narrow: round")
        .replace("r(fused", "narrow(fused")
    )
    lines = {line.name: line for line in sheet_of_model(Model("x", parse_unit(text, "x.yaml")), SILENT).lines}
    assert re.match(r"narrow: round\(f32, .*; d: narrow\(fused\(", lines["Expression"].value)


@pytest.mark.parametrize("group", groups(INSTRUCTIONS.values())[::24], ids=lambda group: group[0].reference)
def test_the_error_is_the_bound_that_is_proved(group: Any) -> None:
    model = parse_reference(group[0].reference)
    (line,) = (line for line in sheet_of_model(model, SILENT).lines if line.name == "Error against the exact sum")
    found = find_bound(model, Inputs(), None, SILENT.settle)
    assert line.value == document_of(found).formula
    assert all(premise in line.basis for premise in found.premises)


def test_a_unit_without_a_bound_says_why() -> None:
    wraps = f"{HOPPER}@carry_bits=0"
    (line,) = (x for x in sheet_of_model(parse_reference(wraps), SILENT).lines if x.name.startswith("Error"))
    assert (line.value, line.basis) == (
        "no bound is proved",
        "fused: a sum of 17 terms may wrap in 0 carry bits, in step d",
    )


def test_an_identified_device(tmp_path: Path) -> None:
    family, store = tmp_path / "tiny.yaml", ("--store", str(tmp_path / "store.sqlite"))
    family.write_text(FAMILY)
    document = run("identify", str(family), "--device", f"model:{SMALL}", "--json", *store).stdout
    path, target = tmp_path / "unit.json", tmp_path / "unit.html"
    path.write_text(document)
    assert (
        "1 answer without asking, 2 asked"
        in run("datasheet", str(path), "-o", str(target), "--limit", "1", *store).stderr
    )
    text = Page(target.read_text()).text
    assert "identified in tiny, from answers to 1 question" in text
    assert "23 below the largest exponent" in text
    again = run("datasheet", str(path), "-o", str(target), "--limit", "1", *store).stderr
    assert "3 answers without asking" in again
    assert "asked" not in again
    named = {**json.loads(document), "family": "nvidia-f16"}  # which varies fraction_bits, not flush_inputs
    bases = {line.name: line.basis for line in sheet_of_identified(identification(named), SILENT).lines}
    assert re.fullmatch(r"answers to questions? [\d, ]+", bases["Fraction bits"])
    assert bases["Subnormal inputs"] == basis.ASSUMED
    questions = json.loads(document)["summation_order"]["questions"]
    assert bases["Operation"] == f"answers to {questions} questions for the order; the rest is assumed"
    assert bases["Addend"] == basis.ASSUMED  # the tree is the same whether it is fused or late
    unordered = {**named, "summation_order": {"questions": 0, "tree": None}}
    assert {line.name: line.basis for line in sheet_of_identified(identification(unordered), SILENT).lines}[
        "Operation"
    ] == basis.ASSUMED
    left = {"exponent_floor": [None, -132, -131], "floor_applies_to": ["zero_terms", "maximum"], "carry_bits": [3, 4]}
    changed = {**json.loads(document), "undecided": {**left, "late_sum_bits": [31, 32]}}
    lines = {line.name: line for line in sheet_of_identified(identification(changed), SILENT).lines}
    floor = "none: zero terms have no exponent; or -132 or -131: the exponent of zero terms in the alignment"
    assert lines["Exponent floor"].value == floor  # where it is none, it does not matter to which terms it applies
    assert lines["Carry bits"].value == "3 or 4, then it wraps"
    assert lines["late_sum_bits"].value == "31 or 32"  # which this family does not have
    assert {lines[name].basis for name in ("Exponent floor", "Carry bits")} == {lines["late_sum_bits"].basis}
    assert lines["NaN"].value == "nan (pattern not known)"
    with pytest.raises(ValueError, match="no candidate"):
        sheet_of_identified(identification({**changed, "verdict": "no candidate"}), SILENT)


def test_the_page_is_there_before_solvers_answer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is known is written first; an interrupt keeps the answers that came before it."""
    target, asked, seen = tmp_path / "sheet.html", _Asker._ask, []

    def slowly(self: _Asker, wanted: str, model: Model, problems: list[Any], key: str) -> KnownProperty:
        seen.append(Page(target.read_text()).text.count("not asked"))
        if len(seen) == 2:
            raise KeyboardInterrupt
        return asked(self, wanted, model, problems, key)

    monkeypatch.setattr(_Asker, "_ask", slowly)
    result = CliRunner().invoke(main, ["datasheet", SMALL, "-o", str(target), "--store", str(tmp_path / "s.sqlite")])
    assert "still to ask the solvers: 3 questions" in result.stderr  # one follows from rules alone
    assert result.exit_code != 0
    assert seen == [3, 3]
    assert Page(target.read_text()).text.count("not asked") == 2


def test_a_bound_without_its_lemmas_is_asked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was not asked is not called open; lemmas of bounds are asked for although every property is known."""
    known = KnownProperty("equal")
    monkeypatch.setattr(_Asker, "_known", lambda self, *question: known)
    target = tmp_path / "sheet.html"
    given = ["datasheet", VOLTA, "-o", str(target), "--store", str(tmp_path / "s.sqlite")]
    assert "1 open" in run(*given, "--limit", "0").stderr
    text = Page(target.read_text()).text
    assert "not asked" in text
    assert "the store has no answer yet to a lemma about its datapath: --limit SECONDS above 0 asks the solvers" in text
    message = run(*given).stderr
    assert "still to ask the solvers: 1 question, 20 s each at most" in message
    assert "0 open" in message
    assert "proved by rules about its nodes, where" in Page(target.read_text()).text


def test_a_device_that_was_built_without_a_family(tmp_path: Path) -> None:
    path, target = tmp_path / "unit.json", tmp_path / "unit.html"
    unit = unit_text(parse_reference(SMALL).unit)
    path.write_text(json.dumps({
        "schema": 1, "device": {"name": "command:x"}, "verdict": "built", "unit": unit,
        "summation_order": {"questions": 12, "outline": []}, "questions": 30, "validated": 4096,
    }))  # fmt: skip
    run("datasheet", str(path), "-o", str(target), "--limit", "0", "--store", str(tmp_path / "store.sqlite"))
    lines = sheet_of_identified(identification(json.loads(path.read_text())), SILENT).lines
    assert {line.name: line.value for line in lines}["Fraction bits"] == "23 below the largest exponent"
    assert {line.basis for line in lines if line.name in LINES} == {"the device's answers"}
    assert (
        "built without a family, from answers to 30 questions, 12 for the order, 4096 vectors to validate"
        in Page(target.read_text()).text
    )


# --- on what a line rests ------------------------------------------------------------------------------------------


def bases_of(reference: str) -> dict[str, str]:
    return {line.name: line.basis for line in sheet_of_model(parse_reference(reference), SILENT).lines}


def test_every_line_says_whose_results_or_whose_words_it_rests_on() -> None:
    kinds = ("recorded: ", "published: ", "inferred from ")
    for sheet in every_sheet():
        for line in sheet.lines:
            if line.name in LINES:
                assert line.basis.startswith(kinds), line
                assert "recorded: " not in line.basis or any(name in RECORDED for name in sheet.instructions)
            assert line.basis != "model"
    for name in ("Rounding on the way", *(name for name, _ in arithmetic(parse_reference(HOPPER).unit))):
        assert name in LINES


def test_a_line_is_recorded_where_rows_refute_what_is_near() -> None:
    bases = bases_of(HOPPER)
    assert bases["Fraction bits"] == bases["Products"] == bases["Carry bits"] == recorded(HOPPER)
    bf16 = bases_of("ampere/mma/m16n8k16.f32.bf16.bf16.f32")
    assert bf16["Exponent floor"].startswith("published: MMA-Sim 2.1.1; the rows of A100 and A2 also fit: none: zero")
    assert bf16["Carry bits"] == (
        "published: Xie et al. 2026, Tables 3 to 5; the rows of A100 and A2 also fit: 3 or 4, then it wraps"
    )
    assert (
        bases_of("turing/mma/m16n8k8.f32.f16.f16.f32")["Fraction bits"] == "published: Xie et al. 2026, Tables 3 to 5"
    )
    assert bases_of("cdna3/mfma/f32_16x16x16_f16")["Cut of the sum"] == "published: MMA-Sim 2.1.1"
    assert bases_of("rtx-blackwell/mma/m16n8k16.f32.e4m3.e4m3.f32")["Fraction bits"] == "published: MMA-Sim 2.1.1"
    emulated = bases_of(EMULATED)
    assert emulated["Fraction bits"] == recorded(EMULATED)
    assert emulated["Results beyond the range"].endswith(
        "also fit: the largest finite number; or as IEEE 754 has it for this rounding mode, of a rounding on the way"
    )
    way = dict(arithmetic(parse_reference(EMULATED).unit))["Rounding on the way"]
    assert way == "a, b: rounded to f16, nearest even; each sum: rounded to f32, toward zero"
    assert emulated["Carry bits"] == recorded(EMULATED)  # five are enough for its largest sum, by theorem
    blackwell = bases_of(EMULATED.replace("hopper", "blackwell"))
    assert blackwell["Carry bits"].startswith("inferred from recorded results of H100, H200 and B200; ")


@pytest.mark.parametrize("fmt", ["e4m3", "e4m3fnuz", "e2m1", "e5m3_none", "f16", "binary8p4", "int8"])
@pytest.mark.parametrize("mode", ["nearest_even", "toward_zero", "up", "down", "to_odd"])
@pytest.mark.parametrize("overflow", ["ieee", "infinity", "saturate"])
def test_a_sheet_says_what_a_format_has_beyond_its_range(fmt: str, mode: str, overflow: str) -> None:
    """Formats without infinity, without NaN, without -0, and integers; against the results."""
    unit = parse_unit(
        f"""
unit: beyond
formats: {{a: {fmt}, b: {fmt}, c: {fmt}, d: {fmt}}}
length: 1
roundings: {{r: "round({fmt}, {mode}, overflow={overflow})"}}
steps: {{d: "r(exact(a[0] * b[0], c))"}}
""",
        "beyond.yaml",
    )
    model, lines = Model("beyond", unit), dict(arithmetic(unit))
    form = model.d
    signs = [
        (form.largest, form.sign_bit | form.largest if not form.complement else form.largest + 1)[k] for k in (0, 1)
    ]
    found = [exact_value(evaluate_row(model, Operands((x,), (form.largest,), 0)), form) for x in signs]
    ends = [form.most, -form.most - form.complement]
    text = lines["Results beyond the range"]
    directed = [mode == "up", mode == "down"] if mode in ("up", "down") else [mode == "nearest_even"] * 2
    expected = {
        "the nearest end of the format": ends, "the largest finite number": ends, "infinity": ["inf", "-inf"],
        "NaN, as the format has no infinity": ["nan", "nan"],
        "NaN where IEEE 754 has infinity for this rounding mode":
            ["nan" if yes else end for yes, end in zip(directed, ends, strict=True)],
        "as IEEE 754 has it for this rounding mode":
            [name if yes else end for yes, name, end in zip(directed, ("inf", "-inf"), ends, strict=True)],
    }  # fmt: skip
    assert found == expected[text]
    assert ("Subnormal results" in lines, "Subnormal inputs" in lines) == (not form.complement,) * 2
    assert ("Zero inputs" in lines) == form.has_negative_zero
    if not form.has_negative_zero:
        assert lines.get("Zero results") == (None if form.complement else "the format's only zero")


def test_a_sheet_of_a_sum_that_wraps_has_no_results_beyond_the_range() -> None:
    lines = dict(arithmetic(parse_reference("cdna3/mfma/i32_16x16x32_i8").unit))
    assert "Results beyond the range" not in lines
    assert lines["Carry bits"] == "0, then it wraps"


def test_the_only_nan_of_a_format_is_known() -> None:
    sheet = sheet_of_model(parse_reference("ieee/fma/e4m3fnuz"), SILENT)
    assert {line.name: line.value for line in sheet.lines}["NaN"] == "nan (80)"


def test_a_sheet_without_c_speaks_of_no_c() -> None:
    text = "{a: f16, b: f16, c: none, d: f32}\nlength: 1\nsteps: {d: 'round(exact(a[0] * b[0]), f32, nearest_even)'}"
    sheet = sheet_of_model(Model("none", parse_unit(f"unit: none\nformats: {text}\n", "none.yaml")), SILENT)
    assert "Symmetric in sign (negating every a negates d)" in [line.name for line in sheet.lines]


def test_a_changed_parameter_is_given_and_a_unit_file_says_its_own_evidence() -> None:
    bases = bases_of(f"{HOPPER}@fraction_bits=24")
    assert bases["Fraction bits"] == basis.GIVEN
    assert bases["Products"].startswith("recorded: ")
    assert bases_of("x86/amx/tdpbf16ps")["Rounding of the result"] == "recorded on an Intel Xeon with AMX"
    sheet = sheet_of_model(parse_reference("x86/amx/tdpbf16ps"), SILENT)
    text = page([sheet], "a sheet")  # a basis that many lines have stands once, below them
    assert text.count('<a href="#sheet-1-1">[1]</a>') == sum("Intel Xeon" in line.basis for line in sheet.lines) > 5
    assert '<p class="soft" id="sheet-1-1">[1] recorded on an Intel Xeon with AMX</p>' in text


# --- the pages of GPUs ----------------------------------------------------------------------------------------------


def test_the_pages_of_all_gpus_are_up_to_date() -> None:
    folder = DOCS / "gpus"
    written = {path.name: path.read_text(encoding="utf-8") for path in folder.glob("*.md")}
    assert written == pages(Pieces(lambda text: None, "pages")), "to write them: python -m benchmarks.gpu_pages"
    assert {file_name(gpu) for gpus in GPUS.values() for gpu in gpus} | {"README.md"} == set(written)
    h100 = written["h100.md"]
    assert "Recorded on this GPU: 42,784 results of 32 of the 32 instructions" in h100
    assert "| Fraction bits | 1-16 | 25 below the largest exponent | H100, H200 |" in h100
    assert "- A: published: MMA-Sim 2.1.1\n" in h100
    floor = "-133: the exponent of zero terms in the alignment"
    assert f"| Exponent floor | 1, 3, 5-9, 14, 16-17 | {floor} | 1, 3, 5, 14, 16-17: A; 6-9: C |" in h100
    assert "refute every value near" in h100
    assert "no published model" in written["mi350x.md"]
    files = written["rx-9070.md"]  # no claim about near values, which nobody has tried on rows of unit files
    assert "refute every value near" not in files
    assert files.count("71 rows") == 1


def test_sheets_as_tables_of_latex(tmp_path: Path) -> None:
    """Every line stands in the table as in HTML; nothing of the text is read as a command or as mathematics."""
    line = SheetLine("Formats", "f16 -> f32 ~^\\ <= $5", "b")
    assert latex_of_sheets([Sheet("a_b & 50%", ["x/y"], "{#}", [line])]) == (
        "% needs \\usepackage{amsmath,array,longtable}\n"
        "\\paragraph{a\\_b \\& 50\\%}\n"
        f"\\begin{{longtable}}{{{COLUMNS}}}\n"
        "property & value & basis \\\\ \\hline \\endhead\n"
        "Formats & f16 $\\to$ f32 \\textasciitilde{}\\textasciicircum{}\\textbackslash{} $<$= \\$5 & b \\\\\n"
        "\\end{longtable}\n"
        "\\noindent x/\\allowbreak{}y\\par\n\\noindent \\{\\#\\}\\par\n"
    )
    grown = SheetLine("Error", "|d - exact| <= 2^-3 G * |c| where G = (1 + g)^(n - 1)")
    assert r"& $\lvert d - \mathrm{exact}\rvert \le 2^{-3} G \cdot \lvert c\rvert$ where $G = (1 + g)^{n - 1}$ &" in (
        latex_of_sheets([Sheet("x", [], "", [grown])])
    )
    sheet = sheet_of_model(parse_reference(HOPPER), SILENT)
    text = latex_of_sheets([sheet])
    names = [row.partition(" & ")[0] for row in text.splitlines() if row.endswith(r" \\")]
    assert names == [line.name for line in sheet.lines]
    assert r"$\lvert d - \mathrm{exact}\rvert \le " in text
    assert text.isascii()
    page = tmp_path / "x.tex"
    assert CliRunner().invoke(main, ["datasheet", HOPPER, "-o", str(page), "--limit", "0"]).exit_code == 0
    assert page.read_text(encoding="utf-8").startswith(text[:1000])


@pytest.mark.skipif(shutil.which("pdflatex") is None, reason="no LaTeX: apt-get install texlive-latex-base")
@pytest.mark.slow
def test_latex_takes_the_tables(tmp_path: Path) -> None:
    for subject, file in ((HOPPER, "unit.tex"), ("plan:cublas/split-k", "plan.tex")):
        command = ["datasheet", subject, "-o", str(tmp_path / file), "--limit", "0"]
        assert CliRunner().invoke(main, command).exit_code == 0
    head = r"\documentclass{article}\usepackage{amsmath,array,longtable}\begin{document}"
    (tmp_path / "x.tex").write_text(head + r"\input{unit}\input{plan}\end{document}")
    done = subprocess.run(["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "x.tex"], cwd=tmp_path,
                          capture_output=True, text=True, timeout=60)  # fmt: skip
    assert done.returncode == 0, done.stdout[-2000:]
    assert "Missing character" not in (tmp_path / "x.log").read_text(errors="replace")


def test_a_page_of_a_gpu_by_command(tmp_path: Path) -> None:
    target = tmp_path / "x.md"
    run("datasheet", "v100", "-o", str(target))
    assert target.read_text() == (DOCS / "gpus" / "v100.md").read_text()
    run("datasheet", "volta", "-o", str(target), code=2)


@pytest.mark.parametrize("width", [400, 1600])
def test_all_sheets_in_a_browser(chromium: Any, width: int, tmp_path: Path) -> None:
    target = tmp_path / "volta.html"
    run("datasheet", "volta", "--limit", "0", "-o", str(target), "--store", str(tmp_path / "store.sqlite"))
    assert len(re.findall("<section", target.read_text())) == 3
    assert "<title>Numerical data sheets: Volta</title>" in target.read_text()
    check_page(chromium, target.as_uri(), width, "light").context.close()


@pytest.mark.parametrize("arguments", [(), (VOLTA, "--all"), ("voltaa",), ("volta/mma/none",)])
def test_bad_subjects(arguments: tuple[str, ...], tmp_path: Path) -> None:
    run("datasheet", *arguments, "-o", str(tmp_path / "x.html"), "--limit", "0", code=2)


def test_two_subjects_are_sent_to_the_commands_that_compare() -> None:
    """Each of which takes the two."""
    one, other = "volta/mma/m8n8k4.f32.f16.f16.f32", "volta/mma/m8n8k4.f32.f16.f16.f32@fraction_bits=22"
    found = CliRunner().invoke(main, ["datasheet", one, other, "-o", "x.html"])
    assert (found.exit_code, "a sheet has one subject, not 2" in found.stderr) == (2, True)
    for named in ("compare model:ONE model:OTHER", "prove ONE OTHER"):
        assert f"mmaprobe {named}" in found.stderr
        command = named.replace("ONE", one).replace("OTHER", other).split()
        assert "gives" in CliRunner().invoke(main, command).stderr
    plans = CliRunner().invoke(main, ["prove", "plan:cublas/plain", "plan:cublas/split-k"])
    assert (plans.exit_code, "gives" in plans.stderr) == (1, True)


def test_a_file_that_identify_did_not_write(tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    path.write_text('{"schema": 1}')
    assert str(path) in run("datasheet", str(path), "-o", str(tmp_path / "x.html"), code=2).stderr


def test_products_that_count_are_products() -> None:
    """A product in `counting(...)` is a term of its sum as one without it."""
    text = """
unit: counts
formats: {a: f16, b: f16, c: f32, d: f32}
length: 3
roundings: {r: 'round(f32, nearest_even)'}
steps:
  q: fused(a[0] * b[0], a[1] * b[1], F=10)
  d: r(fused(q, TERM, c, F=20, floors=[none, -3, none]))
"""
    plain, counting = (
        dict(arithmetic(parse_unit(text.replace("TERM", term), "counts.yaml")))
        for term in ("a[2] * b[2]", "counting(a[2] * b[2])")
    )
    assert counting == plain
    assert counting["Products"] == "3; added in 2 sums"
    assert counting["Exponent floor"].endswith("d: none, -3, none: the least exponents of its terms in order")


ODD_LINES = {
    "r(fused(a[0:2] * b[0:2], c, F=9, reach=[none, 4]))": (
        "Bits shifted out",
        "truncated; none, 4: the places below the largest exponent beyond which its terms in order vanish",
    ),
    "r(fused(a[0:2] * b[0:2], c, F=9, reach=[4, 4]))": (
        "Bits shifted out",
        "truncated; a term more than 4 places below the largest exponent vanishes",
    ),
    "r(grid(a[0:2] * b[0:2], c, F=[4, 5], rounding=nearest_even, floors=[none, -6]))": (
        "Grid",
        "terms rounded nearest even to multiples of one 2^(exponent - F), the largest, F = 4, 5 by operand; added; "
        "none, -6: the least exponents of its terms in order",
    ),
    "r(cut(exact(a[0:2] * b[0:2], c), 9, toward_zero, least=-6))": (
        "Cut of the sum",
        "normalised and cut to 9 bits, toward zero; below 2^-6, at the last place that is kept at 2^-6",
    ),
    "r(fused(counting(a[0:2] * b[0:2]), c, F=9))": (
        "Exponent floor",
        "none: zero terms have no exponent, except products",
    ),
    "r(fused(counting(a[0:2] * b[0:2]), c, F=9, zeros=-4))": (
        "Exponent floor",
        "-4: the exponent of zero terms in the alignment, except products",
    ),
    "r(exact(product(a[0:2], b[0:2], limit=3), c))": (
        "Products before alignment",
        "unnormalised, infinite from 2^3 on",
    ),
    "r(exact(r(exact(r(a[0] * b[0]), c)), r(a[1] * b[1])))": ("Products", "2; added in 2 sums"),
}


@pytest.mark.parametrize("step", ODD_LINES)
def test_a_sheet_says_of_each_term_what_becomes_of_it(step: str) -> None:
    name, text = ODD_LINES[step]
    unit = parse_unit(f"""
unit: odd
formats: {{a: e4m3, b: e4m3, c: f16, d: f16}}
length: 2
roundings: {{r: "round(f16, nearest_even)"}}
steps: {{d: "{step}"}}
""", "odd.yaml")  # fmt: skip
    assert dict(arithmetic(unit))[name] == text


def test_sums_that_c_joins_are_one_or_several() -> None:
    lines = dict(arithmetic(parse_reference("rdna4/wmma/f32_16x16x16_f16").unit))
    assert lines["Addend"] == "aligned with the finished sums of the products"


def test_special_values_are_called_by_the_factor_that_is_there() -> None:
    """4-bit integers have a 1 that no exponent field says; an unsigned format has no -infinity."""
    text = "unit: odd\nformats: {{a: {a}, b: {b}, c: f16, d: f16}}\nlength: 1\n"
    text += "roundings: {{r: 'round(f16, nearest_even)'}}\nsteps: {{d: 'r(exact(a[0] * b[0], c))'}}\n"
    whole = parse_unit(text.format(a="f16", b="int4"), "odd.yaml")
    assert [name for name, _ in special_values(Model("odd", whole))] == [
        "NaN", "-0 * 4 + (-0)", "infinity * 0", "-infinity * 4, c = infinity"]  # fmt: skip
    unsigned = parse_unit(text.format(a="ue4m3_ieee", b="f16"), "odd.yaml")
    assert [name for name, _ in special_values(Model("odd", unsigned))] == ["NaN", "infinity * 0"]
