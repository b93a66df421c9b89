"""`mmaprobe check`: what was proved passes; with any one thing changed it does not, and the place is named."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from mmaprobe.cli.main import main
from mmaprobe.queries.certificates.certificate import whole_of_query
from mmaprobe.queries.checking.folder import check_all, check_folder
from mmaprobe.queries.kernel.lemmas import AlignmentLoses, query_of
from mmaprobe.queries.kernel.questions.problem import Problem
from mmaprobe.queries.kernel.questions.statements import Monotonic, Negated, Reordered
from mmaprobe.queries.kernel.terms.same import SidesAgree
from mmaprobe.queries.kernel.theorem import RULES as MADE
from mmaprobe.queries.kernel.theorem import Made, RuleError
from mmaprobe.queries.kernel.theorem import rule as made_rule
from mmaprobe.queries.properties.bound_certificate import certify_bound
from mmaprobe.queries.properties.bound_report import find_bound
from mmaprobe.queries.search.distinguish import Options
from mmaprobe.queries.solvers.contract import Answer
from mmaprobe.smtmodel.inputs.admitted import Inputs
from mmaprobe.smtmodel.tables.reference import parse_reference
from tests.said import believed
from tests.tampering import fitted

pytestmark = pytest.mark.solvers

BFDOT = "arm/neon/bfdot"
Document = dict[str, Any]


def test_two_rules_of_one_name_are_refused() -> None:
    before = dict(MADE)

    def exact() -> Made:
        return Made(AlignmentLoses(1, 1, 1, "toward_zero"))

    with pytest.raises(RuleError, match=r"none of the kernel's rules"):
        made_rule(exact)
    assert before == MADE


# -- folders


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A certificate of a bound of a chain, by which its files are copied."""
    path = tmp_path_factory.mktemp("certificate")
    model = parse_reference(BFDOT)
    result = find_bound(model, Inputs(), 2 * model.length, believed)
    certify_bound(result, path, Options(timeout=60.0))
    return path


@pytest.fixture
def copied(folder: Path, tmp_path: Path) -> Path:
    for path in folder.iterdir():
        (tmp_path / path.name).write_bytes(path.read_bytes())
    return tmp_path


def rewritten(folder: Path, changes: Callable[[Document], None] = lambda manifest: None) -> None:
    """Make the manifest fit what was changed, as somebody would who wants it to pass."""
    manifest = json.loads((folder / "manifest.json").read_text())
    changes(manifest)
    (folder / "manifest.json").write_text(json.dumps(manifest))
    fitted(folder)


def worst(folder: Path) -> set[tuple[str, str]]:
    return {(found.place, found.kind) for found in check_folder(folder) if found.kind != "fine"}


def test_a_certificate_of_a_bound(copied: Path) -> None:
    found = list(check_folder(copied))
    assert {finding.kind for finding in found} == {"fine"}
    assert [f for f in found if f.says.startswith("states: after 2 instructions: |d - exact| <=")]


@pytest.mark.parametrize("name", ["log.json", "unit.yaml", "lemma-01.smt2", "lemma-01.cnf", "lemma-01.drat"])
def test_a_changed_or_missing_file_is_found(name: str, copied: Path) -> None:
    text = (copied / name).read_text()
    (copied / name).write_text(text + "\n")
    assert (name, "fault") in worst(copied)
    (copied / name).unlink()
    assert (name, "fault") in worst(copied)


def test_certificates_of_several_cases_are_checked_together(folder: Path, tmp_path: Path) -> None:
    """In folders of names with slashes; a folder with files of which no manifest tells is not passed over."""
    for case in ("x@model=a/b", "x@model=c"):
        shutil.copytree(folder, tmp_path / case)
    alone = list(check_folder(folder))
    assert [(one.place, one.kind) for one in check_all(tmp_path)] == [
        (f"{case}/{one.place}", one.kind) for case in ("x@model=a/b", "x@model=c") for one in alone
    ]
    (tmp_path / "x@model=a" / "b" / "manifest.json").unlink()
    faults = {one.place for one in check_all(tmp_path) if one.kind == "fault"}
    assert faults == {"x@model=a/b"}


def test_a_lemma_about_something_else_is_found(copied: Path) -> None:
    """With formula, proof and digests that fit: a true lemma, but not the one that the theorem needs."""
    whole = whole_of_query(query_of(AlignmentLoses(4, 3, 1, "down")), 60.0)
    for suffix, text in (("smt2", whole.query.text), ("cnf", whole.cnf), ("drat", whole.drat)):
        (copied / f"lemma-01.{suffix}").write_text(text)
    rewritten(copied)
    assert worst(copied) == {("log.json", "fault")}


def test_a_log_about_another_unit_is_found(copied: Path) -> None:
    text = (copied / "unit.yaml").read_text()
    (copied / "unit.yaml").write_text(text.replace("to_odd", "nearest_even"))
    rewritten(copied)
    assert worst(copied) == {("log.json", "fault")}


def test_a_log_that_is_none_is_found(copied: Path) -> None:
    for text in ("", "[]", "{}", '{"schema": 1}'):
        (copied / "log.json").write_text(text)
        rewritten(copied)
        assert ("log.json", "fault") in worst(copied)


def without_proof(folder: Path, *words: str) -> None:
    def change(manifest: Document) -> None:
        (piece,) = manifest["pieces"]
        piece["sha256"].pop("lemma-01.drat"), piece["sha256"].pop("lemma-01.cnf")
        piece["words"] = list(words)

    for suffix in ("cnf", "drat"):
        (folder / f"lemma-01.{suffix}").unlink()
    rewritten(folder, change)


def says(status: Any) -> Callable[[str, str], Answer]:
    return lambda engine, text: Answer(status, engine, "1", 0.1)


def test_a_lemma_without_a_proof_rests_on_words(copied: Path) -> None:
    without_proof(copied, "z3 4.13: unsat in 0.1 s")
    assert worst(copied) == {("lemma-01.smt2", "open")}
    kinds = {status: next(found.kind for found in check_folder(copied, says(status)) if found.kind != "fine")
             for status in ("unsat", "unknown", "sat")}  # fmt: skip
    assert kinds == {"unsat": "word", "unknown": "open", "sat": "fault"}


def test_what_is_stated_has_one_reading(tmp_path: Path) -> None:
    """Of units that are equal by rules alone, and of ones that differ; and the goals of theorems say what they are."""
    text = "unit: {}\nformats: {{a: e2m1, b: e2m1, c: f16, d: f16}}\nlength: 2\nsteps: {{d: 'round({}, f16)'}}\n"
    sums = {"one": "exact(a[0:2] * b[0:2], c)", "two": "exact(c, a[1] * b[1], a[0] * b[0])"}
    for name, step in (sums | {"other": "fused(a[0:2] * b[0:2], c, F=12)"}).items():
        (tmp_path / f"{name}.yaml").write_text(text.format(name, step), encoding="utf-8")

    def checked(other: str) -> tuple[str, str]:
        folder, units = tmp_path / f"with {other}", [str(tmp_path / f"{name}.yaml") for name in ("one", other)]
        CliRunner().invoke(main, ["prove", *units, "--certificate", str(folder)])
        done = CliRunner().invoke(main, ["check", str(folder)])
        assert done.exit_code == 0, done.output
        return done.output, (folder / "README.md").read_text(encoding="utf-8")

    said, page = checked("two")
    assert said.startswith("checked: 4 files as written, no proof by a solver needed\n")
    assert re.search(r"states: d of left\.yaml \(unit \w+\) = d of right\.yaml \(unit", said)
    assert "checks proofs" not in said
    assert ("No rule asks a solver." in page, "drat-trim lemma-01" in page, "| file |" in page) == (True, False, False)
    said, _ = checked("other")
    assert "it is not true that left.yaml and right.yaml give the same d: the input below shows it" in said
    model = parse_reference(BFDOT)
    unit = f"{BFDOT} (unit {model.unit.digest})"
    assert {SidesAgree(goal).statement() for goal in (Problem(model, model), Monotonic(model, model, raised=1),
            Monotonic(model, model), Negated(model, model), Reordered(model, model, order=(1, 0)))} == {
        f"d of {unit} = d of {unit}", f"d of {unit} does not fall when product 1 rises",
        f"d of {unit} does not fall when c rises", f"of {unit}, d(a, b, c) = -d(-a, b, -c)",
        f"d of {unit} is the same in the order 1-0 of its products",
    }  # fmt: skip


def test_exit_codes(copied: Path) -> None:
    def run(*arguments: str) -> tuple[int, str]:
        done = CliRunner().invoke(main, ["check", *arguments])
        return done.exit_code, done.output

    code, text = run(str(copied))
    assert code == 0
    assert text.startswith("checked: ")
    assert text.splitlines()[-1].startswith("believed (docs/trusted.md): ")
    assert text.splitlines()[-1].endswith("the rules of its kernel, and the program that checks proofs; no solver")
    assert run(str(copied.parent / "nothing"))[0] == 2
    without_proof(copied, "bitwuzla 0.9: unsat in 0.1 s")
    code, text = run(str(copied))
    assert code == 0
    assert "1 lemma for which solvers alone answer" in text
    assert run(str(copied), "--no-engines")[0] == 3
    broken = json.loads((copied / "log.json").read_text())
    broken["records"][3]["rule"] = "element"
    (copied / "log.json").write_text(json.dumps(broken))
    rewritten(copied)
    code, text = run(str(copied), "--no-engines", "--json")
    assert code == 1
    assert text.startswith("rejected by the checker: ")
    assert "log.json: theorem 3: " in text


# -- claims


def test_a_claim_about_table_9_is_a_log(tmp_path: Path) -> None:
    """Its joins are checked: nothing is left to an argument, nor to the word of an engine."""
    claim = tmp_path / "claim.yaml"
    lines = ("id: t", "about: t", "source: t", "says: holds", "expect: holds", "error_bound: loose",
             "model: volta/mma/m8n8k4.f32.f16.f16.f32@length=2")  # fmt: skip
    claim.write_text("\n".join(lines) + "\n")
    folder = tmp_path / "proof"
    run = CliRunner().invoke(main, ["verify", str(claim), "--certificate", str(folder), "--timeout", "60"])
    assert run.exit_code == 0, run.output
    assert worst(folder) == set()
    done = CliRunner().invoke(main, ["check", str(folder)])
    assert done.exit_code == 0, done.output
    assert "log.json: states: |d - exact| <= 3 u + ulp(d)\n" in done.output
