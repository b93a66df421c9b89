"""The report: one page from results, complete, self-contained, and readable in a real browser."""

from __future__ import annotations

import html.parser
import json
import re
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from mmaprobe.cli.main import main
from mmaprobe.reports.report import documents, sections
from mmaprobe.reports.views import Pictures
from mmaprobe.smtmodel.base.errors import InputError
from tests.reports.browser import check_page
from tests.reports.colours import contrast, schemes

pytestmark = pytest.mark.browser

VOLTA = "volta/mma/m8n8k4.f32.f16.f16.f32"
SMALL = f"{VOLTA}@length=2,block=2"
ROW = {"model": VOLTA, "a": ["3c00", "4000"], "b": ["3c00", "3c00"], "c": "3f800000", "d": "40800000", "id": "<b>&amp;"}
FAMILY = """id: tiny
about: two widths
formats: {a: f16, b: f16, c: f32, d: f32}
length: 2
parameters:
  fraction_bits: [23, 24]
"""
CLAIM = {"schema": 1, "claims": [{
    "id": "no-worse", "about": "An algorithm is not worse", "quantifier": "all", "claim": "|e1| <= |e2|",
    "parts": {"e1": "error of one"}, "verdict": "refuted", "lemmas": [],
    "asked": [{"what": "4096 simulated inputs", "seconds": 0.1, "answers": []}], "counterexample": None,
    "as_expected": True, "expect": "refuted",
    "vector": {"format": "f32", "a": ["3d000000"], "b": ["3f800000"], "c": "0", "exact": "1", "exact_decimal": "1",
               "results": {"e1": {"d": "3f800001", "value": "1 + 2^-23", "decimal": "1.00000012", "error": "2^-23",
                                  "error_decimal": "1.1920929e-07"}}, "first_divergence": None},
}, {
    "id": "never-far", "about": "Two results are near", "quantifier": "all", "claim": "|e1 - e2| <= 1", "parts": {},
    "verdict": "holds", "asked": [], "vector": None, "counterexample": None, "as_expected": False, "expect": "refuted",
    "lemmas": [{"name": "near", "answer": "bitwuzla 0.9.1: unsat in 0.1 s", "confirmed_by": "z3 5.4: unsat in 2 s"}],
}]}  # fmt: skip
VOID = {"meta", "link", "img", "br", "hr", "input"}


class Page(html.parser.HTMLParser):
    """Well-formedness, ids, and addresses of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.ids: list[str] = []
        self.targets: list[str] = []
        self.addresses: list[str] = []
        self.text = ""
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in VOID:
            self.open.append(tag)
        for name, value in attrs:
            if name == "id":
                self.ids.append(value or "")
            elif name in ("href", "src", "action", "data-copies"):
                (self.targets if name == "data-copies" or (value or "")[:1] == "#" else self.addresses).append(
                    value or ""
                )

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self.open.pop()

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


def run(*arguments: str, code: int = 0) -> Result:
    result = CliRunner().invoke(main, list(arguments))
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    assert result.exit_code == code, result.output
    return result


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A file of results of each command."""
    folder = tmp_path_factory.mktemp("results")
    family, rows = folder / "tiny.yaml", folder / "rows.jsonl"
    family.write_text(FAMILY)
    rows.write_text(json.dumps(ROW) + "\n")
    store = ("--store", str(folder / "store.sqlite"), "--solver", "bitwuzla")
    commands = {
        "distinguish": (("distinguish", "truncation-or-toward-zero", *store), 0),
        "prove": (
            ("prove", SMALL, f"{SMALL}@carry_bits=4".replace("@length=2,block=2@", "@length=2,block=2,"), *store),
            0,
        ),
        "property": (("prove", "--property", "sign-symmetric", "cdna3/mfma/f32_32x32x8_f16", *store), 1),
        "plans": (("prove", "plan:cublas/plain", "plan:cublas/split-k", "--length", "80", *store), 1),
        "separate": (("separate", str(family), *store), 0),
        "one": (("separate", str(family), "--one", "--store", str(folder / "store.sqlite")), 0),
        "identify": (("identify", str(family), "--device", f"model:{SMALL}", *store), 0),
        "run": (("run", str(rows), "--device", f"model:{VOLTA}"), 0),
        "evaluate": (("evaluate", str(rows)), 0),
    }
    found = {"vectors": rows}
    for name, (command, code) in commands.items():
        found[name] = folder / f"{name}.json"
        found[name].write_text(run(*command, "--json", code=code).stdout)
    found["verify"], found["study"] = folder / "verify.json", folder / "study.json"
    produced = {"produced": {"by": "mmaprobe", "command": "mmaprobe verify or study"}}
    found["verify"].write_text(json.dumps(CLAIM | produced))
    (folder / "s.png").write_bytes(b"\x89PNG\r\n\x1a\n")
    study = {"schema": 1, "study": "s", "seed": 0, "sizes": [4], "new": 1, "files": [str(folder / "s.png")]}
    found["study"].write_text(json.dumps(study | produced))
    return found


@pytest.fixture(scope="module")
def page(results: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    target = tmp_path_factory.mktemp("page") / "report.html"
    run("report", *map(str, results.values()), "-o", str(target))
    return target


def test_the_page_is_whole(page: Path, results: dict[str, Path]) -> None:
    text = page.read_text()
    read = Page(text)
    assert len(read.ids) == len(set(read.ids))
    assert {target.removeprefix("#") for target in read.targets} <= set(read.ids)
    assert all(address.startswith("data:") for address in read.addresses)
    assert not re.search(r"https?://(?!www\.w3\.org/2000/svg)", text)
    assert "<b>&amp;" in read.text  # an id from a file, escaped
    for path in results.values():
        assert f"From {path}." in read.text


#: 1 and a product of 2^-23, which 20 bits below the largest exponent do not hold
VECTOR_THAT_DIFFERS = '{"a": ["3c00", "1000"], "b": ["3c00", "0c00"], "c": "00000000"}'


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("distinguish", ["truncation-or-toward-zero", "different", "replayed under both models"]),
        ("prove", ["equal", "bitwuzla", "lemma"]),
        ("property", ["refuted", "d(a, b, c)", "replay of the vector on both sides"]),
        (
            "plans",
            [
                "Are plan:cublas/plain and plan:cublas/split-k equal for K = 80?",
                "different",
                "replay of the vector on both sides",
                "plan:cublas/plain@length=80",
                "plan:cublas/split-k@length=80",
            ],
        ),
        ("separate", ["every pair distinguished or proved equal", "candidates2", "class 0", "class 1"]),
        ("one", ["2 different results of one vector", "candidates2", "class 0", "class 1"]),
        ("identify", ["identified", "unit", "Question 1", "ruled out", "fraction_bits", "Order of summation"]),
        ("run", ["1 vector answered", "software model"]),
        ("evaluate", ["0 of 1 rows differ"]),
        ("vectors", ["1 vector, 1 with a result", "observed", "40800000"]),
        (
            "verify",
            [
                "An algorithm is not worse",
                "refuted",
                "3f800001",
                "2^-5 = 0.03125",
                "|e1| <= |e2|",
                "4096 simulated inputs",
                "replay of the vector",
                "bitwuzla 0.9.1",
                "z3 5.4",
                "no: refuted",
            ],
        ),
        ("study", ["Study s", "sizes"]),
    ],
)
def test_a_section_says_what_the_result_says(name: str, words: list[str], results: Any, tmp_path: Path) -> None:
    target = tmp_path / "one.html"
    run("report", str(results[name]), "-o", str(target), "--title", "Mine & yours")
    text = re.sub(r"\s+", " ", Page(target.read_text()).text)
    for word in ["Mine & yours", "To repeat it", *words]:
        assert word in text, word


def test_vectors_of_validation_agree_if_a_unit_is_identified(results: Any, tmp_path: Path) -> None:
    found = json.loads(results["identify"].read_text())
    given, target = tmp_path / "given.json", tmp_path / "one.html"
    for verdict, words in ("identified", "further vectors agree"), ("no candidate", "further vectors asked"):
        given.write_text(json.dumps(found | {"verdict": verdict}))
        run("report", str(given), "-o", str(target))
        assert f"{found['validated']} {words}" in Page(target.read_text()).text


def test_rows_without_a_result_are_not_compared(tmp_path: Path) -> None:
    rows, given, target = tmp_path / "rows.jsonl", tmp_path / "given.json", tmp_path / "one.html"
    without = {key: value for key, value in ROW.items() if key != "d"}
    for listed, code, words in ([without], 3, "nothing was compared"), ([ROW, without | {"id": 2}], 0, "0 of 1 rows"):
        rows.write_text("".join(json.dumps(row) + "\n" for row in listed))
        given.write_text(run("evaluate", str(rows), "--json", code=code).stdout)
        run("report", str(given), "-o", str(target))
        assert words in Page(target.read_text()).text


def test_the_command_that_made_a_result_is_repeated(page: Path, results: dict[str, Path]) -> None:
    produced = json.loads(results["distinguish"].read_text())["produced"]
    assert produced["command"].startswith("mmaprobe distinguish truncation-or-toward-zero --store ")
    text = Page(page.read_text()).text
    assert text.count(produced["command"]) == 1
    assert f"produced by{produced['by']}" in text


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", " no results of run"),
        ("[1]", " no results of run"),
        ("{", "1: not JSON"),
        ('{"schema": 1}', "1: no results of run"),
        ('{"revealed": true, "questions": 9}', "1: no results of run"),
        ('{"device": {}, "verdict": "built", "questions": 9}', "1: no results of run"),
        ('{"schema": 2, "questions": []}', "1: schema: 2 is not known"),
        ('{"property": 1, "proofs": 2}', "1: "),
        ('{"questions": [{}]}', "1: hypotheses: this key is missing"),
        ('{"evaluations": [], "difference": null}', "1: not as a command wrote it"),
        ('{"questions": [], "devices": [], "differences": []}', "1: verdict: this key is missing"),
        ("\n" + json.dumps(ROW) + "\n" + json.dumps({**ROW, "a": ["zz", "0"]}), "3: a[0]: 'zz' is not hexadecimal"),
        (json.dumps(ROW) + "\n" + json.dumps({**ROW, "model": "volta"}), "2: "),
    ],
)
def test_bad_results_are_refused(text: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "bad.json"
    path.write_text(text)
    answer = run("report", str(path), "-o", str(tmp_path / "x.html"), code=2).stderr
    assert answer.startswith(f"error: {path}:{message}")
    assert "Error" not in answer
    assert answer.count(str(path)) == 1
    assert not (tmp_path / "x.html").exists()


def test_comparisons_and_explanations_are_sections(tmp_path: Path) -> None:
    """The reason and both results of a comparison; the result and the first divergence of an explanation."""
    other, path = f"{VOLTA}@fraction_bits=20", tmp_path / "result.json"
    row = json.loads(VECTOR_THAT_DIFFERS)
    path.write_text(run("explain", VOLTA, json.dumps(row), "--against", other, "--json").stdout)
    (section,) = sections(str(path), Pictures())
    (view,) = section.vectors
    assert (section.kind, dict(section.facts)["first divergence"]) == ("explain", "alignment: aligned[1]")
    assert [one.bits for one in view.outcomes] == ["3f800001", "3f800000"]
    assert len(view.pictures) == 2
    device = tmp_path / "device.py"
    device.write_text("import numpy as np\ndef matmul(a, b, c): return np.zeros_like(c)\n")
    for name, bits in ((f"model:{other}", None), (f"python:{device}:matmul", "00000000")):
        command = ["compare", f"model:{VOLTA}", name, "-n", "1", "--samples", "10", "--json"]
        document = json.loads(text := run(*command).stdout)
        path.write_text(text)
        (section,) = sections(str(path), Pictures())
        facts, results = dict(section.facts), document["differences"][0]["results"]
        assert (section.kind, section.verdict, facts["second"]) == ("compare", "different", name)
        assert facts.get("reason") == document["reason"]
        shown = {one.name: one.bits for one in section.vectors[0].outcomes}
        assert shown == results
        assert bits in (None, results["second"])
    page = tmp_path / "x.html"
    run("report", str(path), "-o", str(page))
    assert "the device&#39;s answer" in page.read_text()


def test_keys_of_ones_own_hide_nothing(tmp_path: Path) -> None:
    """Rows keep them, whatever their names."""
    path = tmp_path / "result.json"
    document = json.loads(run("distinguish", VOLTA, f"{VOLTA}@fraction_bits=20", "--json").stdout)
    (vector,) = document["questions"][0]["vectors"]
    plainly = sections(str(_written(path, document)), Pictures())[0].vectors
    vector.update(of=1, parsed=2, plain=3, __init__=4)
    assert sections(str(_written(path, document)), Pictures())[0].vectors == plainly


def _written(path: Path, document: dict[str, Any]) -> Path:
    path.write_text(json.dumps(document))
    return path


def test_one_document_or_one_a_line(tmp_path: Path) -> None:
    path = tmp_path / "two.jsonl"
    path.write_text(json.dumps(ROW) + "\n\n" + json.dumps(ROW) + "\n")
    assert len(documents(str(path))) == 2
    with pytest.raises(InputError):
        documents(str(tmp_path / "none"))


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_contrast_of_the_page(scheme: str, page: Path) -> None:
    css = re.search(r"<style>(.*?)\.mp text \{", page.read_text(), re.DOTALL)
    assert css
    colours = schemes(css.group(1))[scheme]
    for name in ("ink", "soft", "link", "yes", "no", "open"):
        assert contrast(colours[f"--{name}"], colours["--paper"]) >= 4.5, name
    assert contrast(colours["--ink"], colours["--band"]) >= 4.5


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [400, 1600])
def test_in_a_browser(chromium: Any, page: Path, width: int, scheme: str) -> None:
    shown = check_page(chromium, page.as_uri(), width, scheme)
    button = shown.locator("button:visible").first
    button.scroll_into_view_if_needed()
    button.click()
    shown.locator(".copy [role=status]", has_text=re.compile("copied|selected")).wait_for()
    shown.context.close()


def test_nothing_is_cut_off_on_paper(chromium: Any, page: Path) -> None:
    """A4 with margins of a centimetre; paper does not scroll."""
    shown = chromium.new_page(viewport={"width": 718, "height": 1000})
    shown.goto(page.as_uri())
    shown.emulate_media(media="print")
    wide = shown.evaluate(
        "[...document.querySelectorAll('.scroll, pre, body')].filter(e => e.scrollWidth > e.clientWidth)"
        ".map(e => e.getAttribute('aria-label') || e.tagName)"
    )
    assert wide == []
    broken = shown.evaluate(
        "[...document.querySelectorAll('td')]"
        ".filter(e => /^[0-9a-f]{4,16}$/.test(e.textContent) && e.checkVisibility())"
        ".filter(e => { const r = document.createRange(); r.selectNodeContents(e);"
        " return r.getClientRects().length > 1; }).map(e => e.textContent)"
    )
    assert broken == []  # a pattern is one word
    widths = shown.evaluate("[...document.querySelectorAll('.pictures svg')].map(e => e.getBoundingClientRect().width)")
    assert min(widths) > 600  # two models are below each other, not at half their size
    shown.close()


@pytest.mark.parametrize(("width", "rows"), [(400, 2), (1600, 1)])
def test_two_models_stand_beside_each_other_where_there_is_room(
    chromium: Any, page: Path, width: int, rows: int
) -> None:
    shown = chromium.new_page(viewport={"width": width, "height": 900})
    shown.goto(page.as_uri())
    tops = shown.evaluate(
        "[...document.querySelectorAll('.pictures')].map(e => [...e.querySelectorAll('svg')]"
        ".map(s => s.getBoundingClientRect().top)).filter(tops => tops.length === 2)"
    )
    assert tops
    assert {len(set(pair)) for pair in tops} == {rows}
    shown.close()


def test_a_pattern_of_f64_is_one_word_on_paper(tmp_path: Path) -> None:
    row = {"model": "ieee/fma/f64", "a": ["3ff0000000000000"], "b": ["4000000000000000"], "c": "0000000000000000"}
    (path := tmp_path / "rows.jsonl").write_text(json.dumps(row))
    run("report", str(path), "-o", str(tmp_path / "page.html"))
    text = (tmp_path / "page.html").read_text()
    assert text.count('<td class="bits short">4000000000000000</td>') == 2  # b0 and d
    assert '<td class="bits long">' not in text


def test_a_column_with_nothing_in_it_is_left_out(page: Path) -> None:
    assert "why they are one class" not in page.read_text()  # the classes of the family have one candidate each


def test_without_scripts_everything_is_there(chromium: Any, page: Path, results: dict[str, Path]) -> None:
    context = chromium.new_context(java_script_enabled=False)
    shown = context.new_page()
    shown.goto(page.as_uri())
    assert shown.locator("button:visible").count() == 0
    assert shown.locator("section").count() == sum(len(sections(str(path), Pictures())) for path in results.values())
    assert shown.locator("figure svg").count() >= 6
    context.close()
