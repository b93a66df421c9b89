"""`mmaprobe check` of folders that a stranger made: nothing outside of the folder is read, what states nothing is
rejected, and a broken manifest is bad input, whatever it holds."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from mmaprobe.cli.main import main
from mmaprobe.queries.certificates.place import written_apart
from mmaprobe.queries.certificates.reading import digest
from mmaprobe.queries.checking.folder import check_folder
from tests.tampering import accepted, fitted

pytestmark = pytest.mark.solvers

UNIT = """unit: {name}
formats: {{a: e2m1, b: e2m1, c: e3m2, d: e3m2}}
length: {length}
steps:
  d: {step}
"""
SUM = "round(exact(a[0] * b[0], a[1] * b[1], c), e3m2, toward_zero)"
TURNED = "round(exact(c, a[1] * b[1], a[0] * b[0]), e3m2, toward_zero)"


def unit(path: Path, step: str = SUM, length: int = 2) -> Path:
    path.write_text(UNIT.format(name=path.stem, step=step, length=length))
    return path


def run(*words: object, code: int | None = 0) -> str:
    done = CliRunner().invoke(main, [str(word) for word in words])
    assert code is None or done.exit_code == code, done.output
    return done.output


@pytest.fixture(scope="module")
def equality(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The certificate that two units of one expression are equal."""
    folder = tmp_path_factory.mktemp("equality")
    sides = unit(folder / "u.yaml"), unit(folder / "v.yaml", TURNED)
    run("prove", *sides, "--certificate", folder / "proof")
    return folder / "proof"


@pytest.fixture
def proof(equality: Path, tmp_path: Path) -> Path:
    shutil.copytree(equality, tmp_path / "proof")
    assert accepted(tmp_path / "proof")
    return tmp_path / "proof"


def rewritten(folder: Path, change: Callable[[dict[str, Any]], Any]) -> None:
    """A manifest with a change."""
    path = folder / "manifest.json"
    document = json.loads(path.read_text())
    change(document)
    path.write_text(json.dumps(document))


def faults_of(folder: Path) -> list[str]:
    return [f"{found.place}: {found.says}" for found in check_folder(folder) if found.kind == "fault"]


# -- broken manifests

DEEP = "[" * 100_000


@pytest.mark.parametrize(("change", "key"), [
    (lambda m: m.update(sha256=[]), "sha256"), (lambda m: m.update(parts=[]), "parts"),
    (lambda m: m["sha256"].update({"a\u0000": "0" * 64}), "sha256"),
    (lambda m: m["sha256"].update({"\ud800": "0" * 64}), "sha256"), (lambda m: m.update(question=1), "question"),
    (lambda m: m["sha256"].update({"left.yaml": []}), "sha256"), (lambda m: m.update(pieces=[[]]), "pieces"),
    (lambda m: m.update(pieces=[{"name": "lemma-01", "states": "", "words": [1], "sha256": {}}]), "words"),
    (lambda m: m.update(pieces=[{"name": "../x", "states": "", "words": [], "sha256": {}}]), "name"),
    (lambda m: m.update(pieces=[{"name": "x", "states": "", "words": [], "sha256": {"\u0000": "0" * 64}}]), "sha256"),
    (lambda m: m["sha256"].update({"/dev/zero": "0" * 64}), "sha256"),
    (lambda m: m["sha256"].update({"../../etc/passwd": "0" * 64}), "sha256"),
    (lambda m: m.update(schema="5"), "schema"), (lambda m: m.pop("pieces"), "pieces"),
    (lambda m: m.update(more=1), "more"),
])  # fmt: skip
def test_a_broken_manifest_is_bad_input(proof: Path, change: Callable[[dict[str, Any]], Any], key: str) -> None:
    rewritten(proof, change)
    text = run("check", proof, code=2)
    assert "manifest.json" in text
    assert key in text


@pytest.mark.parametrize("text", [DEEP, "", "[]", "1", '"x"', "{", '{"schema": 5, "schema": 5}', "\x00", "\ufeff{}"])
def test_a_text_that_is_no_manifest_is_bad_input(proof: Path, text: str) -> None:
    (proof / "manifest.json").write_text(text)
    assert "manifest.json" in run("check", proof, code=2)
    (proof / "manifest.json").write_bytes(b"\xff\xfe")
    assert "manifest.json" in run("check", proof, code=2)


def test_documents_nested_deep_are_a_fault(proof: Path) -> None:
    (proof / "question.json").write_text(DEEP)
    fitted(proof)
    assert "nested too deep" in run("check", proof, code=1)


def test_folders_within_folders_have_an_end(tmp_path: Path) -> None:
    inner = tmp_path / "nested"
    inner.mkdir()
    for _ in range(400):
        inner = inner / "x"
        inner.mkdir()
    run("check", tmp_path / "nested", code=1)


# -- nothing but the folder is read


def test_links_and_what_is_no_file_are_not_read(proof: Path) -> None:
    (proof.parent / "elsewhere.yaml").write_text((proof / "left.yaml").read_text())
    (proof / "left.yaml").unlink()
    (proof / "left.yaml").symlink_to(proof.parent / "elsewhere.yaml")
    assert "left.yaml: is a link: a file of the folder is needed" in faults_of(proof)
    (proof / "left.yaml").unlink()
    os.mkfifo(proof / "left.yaml")
    assert "left.yaml: is not a regular file" in faults_of(proof)
    (proof / "left.yaml").unlink()
    (proof / "left.yaml").symlink_to("/dev/zero")
    assert not accepted(proof)
    (proof / "left.yaml").unlink()
    (proof / "left.yaml").mkdir()
    assert not accepted(proof)


def test_a_manifest_that_is_no_file_is_bad_input(proof: Path) -> None:
    for make in (os.mkfifo, lambda path: Path(path).symlink_to("/dev/zero")):
        (proof / "manifest.json").unlink()
        make(proof / "manifest.json")  # type: ignore[operator]
        run("check", proof, code=2)


def test_a_file_larger_than_any_is_not_read(proof: Path) -> None:
    os.truncate(proof / "left.yaml", 1 << 40)
    assert "left.yaml: has more than 64 MiB" in faults_of(proof)


def test_what_the_manifest_does_not_name_is_no_part(proof: Path) -> None:
    (proof / "notes.txt").write_text("mine")
    assert accepted(proof)
    assert "notes.txt: is no part of the certificate, and was not read" in run("check", proof)
    (proof / "unit.yaml").write_text("mine")
    assert faults_of(proof) == ["unit.yaml: is not in the manifest"]


def test_what_lies_beside_several_certificates_is_said(proof: Path, tmp_path: Path) -> None:
    several = tmp_path / "several"
    for name in ("a", "b"):
        shutil.copytree(proof, several / name)
    run("check", several)
    (several / "notes.txt").write_text("mine")
    (several / ".new-killed").mkdir()
    shutil.copytree(proof, several / ".new-killed" / "proof-1")
    text = run("check", several)
    for name in ("notes.txt", ".new-killed"):
        assert f"  {name}: is no part of the certificate, and was not read" in text
    assert "proof-1" not in text
    (several / "left.yaml").write_text("mine")
    run("check", several, code=2)


def test_a_certificate_that_was_not_finished_is_none(proof: Path, tmp_path: Path) -> None:
    shutil.copytree(proof, tmp_path / "whole" / ".new-killed" / "proof-1")
    run("check", tmp_path / "whole", code=2)


@pytest.mark.parametrize("name", ["x" * 5000, "no/such"])
def test_a_folder_that_is_none_is_bad_input(name: str, tmp_path: Path) -> None:
    run("check", tmp_path / name, code=2)


# -- what states nothing


def stating(folder: Path, names: dict[str, str]) -> Path:
    """A certificate of these files."""
    folder.mkdir()
    for name, text in names.items():
        (folder / name).write_text(text)
    document = {"schema": 5, "question": "", "solver": "", "pieces": [],
                "sha256": {name: digest(folder / name) for name in names}}  # fmt: skip
    (folder / "manifest.json").write_text(json.dumps(document))
    return folder


def test_what_states_nothing_is_rejected(tmp_path: Path) -> None:
    run("prove", "--property", "error-bound", unit(tmp_path / "u.yaml"), "--certificate", tmp_path / "bound")
    text, log = ((tmp_path / "bound" / name).read_text() for name in ("unit.yaml", "log.json"))
    nothing = json.dumps(json.loads(log) | {"records": [], "states": [], "says": [], "values": []})
    assert faults_of(stating(tmp_path / "nothing", {"unit.yaml": text, "log.json": nothing}))
    for files in ({"unit.yaml": text}, {"log.json": log}, {}):
        assert faults_of(stating(tmp_path / f"only {len(files)} {next(iter(files), '')}", files))
    cover = {"schema": 1, "cases": [], "changes": []}
    of_cover = {"unit.yaml": text, "cover.json": json.dumps(cover), "log.json": nothing}
    assert faults_of(stating(tmp_path / "cover", of_cover))


def test_an_unknown_way_to_compare_is_rejected(proof: Path) -> None:
    for value in ("foo", "", None, ["bits"]):
        document = json.loads((proof / "question.json").read_text()) | {"compare": value}
        (proof / "question.json").write_text(json.dumps(document))
        fitted(proof)
        assert any("compare" in line for line in faults_of(proof)), value


# -- where certificates are written


def test_a_folder_of_other_files_is_refused(tmp_path: Path) -> None:
    u, v, mine = unit(tmp_path / "u.yaml"), unit(tmp_path / "v.yaml", TURNED), tmp_path / "project"
    mine.mkdir()
    for name in ("README.md", "manifest.json", "left.yaml"):
        (mine / name).write_text(f"my {name}")
    for place in (mine, tmp_path):
        assert "certificate" in run("prove", u, v, "--certificate", place, code=2)
    assert (mine / "README.md").read_text() == "my README.md"
    (mine / "manifest.json").write_text('{"name": "of a web page"}')
    run("prove", u, v, "--certificate", mine, code=2)
    skeleton = tmp_path / "skeleton"
    (skeleton / "src").mkdir(parents=True)
    run("prove", u, v, "--certificate", skeleton, code=2)
    assert (skeleton / "src").is_dir()
    assert sorted(path.name for path in mine.iterdir()) == ["README.md", "left.yaml", "manifest.json"]


def test_inputs_are_not_overwritten(proof: Path) -> None:
    before = {path: path.read_text() for path in proof.rglob("*.*")}
    text = run("prove", proof / "left.yaml", proof / "right.yaml", "--certificate", proof, code=2)
    assert "would overwrite an input" in text
    claim = proof.parent / "claim.yaml"
    claim.write_text(
        "id: t\nabout: t\nsource: t\nsays: nothing\nexpect: holds\nterms: 1\n"
        "inputs: {format: e2m1, a: [0, 0], b: [0, 0], c: [0, 0]}\n"
        f"parts: {{p: {proof}/left.yaml}}\nclaim: error(p) <= 2\n"
    )
    text = run("verify", claim, "--certificate", proof, "--timeout", "30", code=None)
    assert "would overwrite an input" in text
    assert {path: path.read_text() for path in proof.rglob("*.*")} == before


def test_an_older_certificate_gives_way(tmp_path: Path) -> None:
    u, place = unit(tmp_path / "u.yaml"), tmp_path / "proof"
    run("prove", "--property", "order-independent", u, "--certificate", place)
    assert (place / "property.json").exists()
    v = unit(tmp_path / "v.yaml", SUM.replace("toward_zero", "nearest_even"))
    run("prove", u, v, "--certificate", place, code=1)
    assert {path.name for path in place.iterdir()} == {"README.md", "left.yaml", "manifest.json", "right.yaml",
                                                       "witness.json"}  # fmt: skip
    assert accepted(place)
    (place / "notes.txt").write_text("mine")
    run("prove", u, v, "--certificate", place, code=2)
    assert (place / "notes.txt").exists()


def test_an_older_certificate_stays_where_none_is_written(proof: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from mmaprobe.queries.certificates import logged

    def fails(*given: object, **named: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(logged, "write_certificate", fails)
    u, v = unit(proof.parent / "u.yaml"), unit(proof.parent / "v.yaml", TURNED)
    run("prove", u, v, "--certificate", proof, code=None)
    assert accepted(proof)
    assert not [path for path in proof.iterdir() if path.name.startswith(".")]
    run("prove", u, v, "--certificate", proof.parent / "new" / "one", code=None)
    assert not (proof.parent / "new").exists()


@pytest.mark.parametrize("at", range(1, 8))
def test_an_interrupt_while_one_takes_the_place_leaves_the_older_one(
    proof: Path, monkeypatch: pytest.MonkeyPatch, at: int
) -> None:
    """At any of the moves."""
    before, count, rename = (proof / "manifest.json").read_text(), [0], Path.rename

    def interrupted(path: Path, target: Path) -> Path:
        count[0] += 1
        if count[0] == at:
            raise KeyboardInterrupt
        return rename(path, target)

    monkeypatch.setattr(Path, "rename", interrupted)
    with suppress(KeyboardInterrupt), written_apart(proof) as new:
        for name in ("manifest.json", "left.yaml", "other.txt"):
            (new / name).write_text("new")
    assert count[0] >= at
    assert (proof / "manifest.json").read_text() == before
    assert accepted(proof)
    assert not [path for path in proof.iterdir() if path.name.startswith(".")]


def test_what_was_left_of_a_killed_run_is_removed(proof: Path) -> None:
    (proof / ".new-killed").mkdir()
    (proof / ".new-killed" / "left.yaml").write_text("half")
    u, v = unit(proof.parent / "u.yaml"), unit(proof.parent / "v.yaml", TURNED)
    run("prove", u, v, "--certificate", proof)
    assert not (proof / ".new-killed").exists()


def test_cases_take_the_place_of_older_ones(tmp_path: Path) -> None:
    claim = tmp_path / "claim.yaml"
    lines = ("id: t", "about: t", "source: t", "says: nothing", "expect: holds", "cases: {model: [%s, %s]}",
             'model: "{model}"', "property: order-independent")  # fmt: skip
    names = [unit(tmp_path / f"{name}.yaml") for name in "uvw"]
    claim.write_text("\n".join(lines) % (names[0], names[1]))
    place = tmp_path / "proofs"
    run("verify", claim, "--certificate", place)
    first = {path.name for path in place.iterdir()}
    claim.write_text("\n".join(lines) % (names[1], names[2]))
    run("verify", claim, "--certificate", place)
    assert {path.name for path in place.iterdir()} != first
    assert len(list(place.iterdir())) == 2
    run("check", place)


# -- what is stated, whole


def test_restrictions_and_units_are_said(tmp_path: Path) -> None:
    """Of the same units a statement about some inputs cannot be handed on as one about all."""
    u, v = unit(tmp_path / "u.yaml"), unit(tmp_path / "v.yaml", TURNED)
    run("prove", u, v, "--inputs", "normal,exponents=0..1", "--certificate", tmp_path / "proof")
    text, page = run("check", tmp_path / "proof"), (tmp_path / "proof" / "README.md").read_text()
    for words in (
        "inputs: those alone that are normal, with exponents from 0 to 1", "left.yaml: u: 2 products of e2m1",
        "right.yaml: v: 2 products of e2m1", digest(tmp_path / "proof" / "left.yaml"), "bit by bit",
    ):  # fmt: skip
        assert words in text
        assert words in page


def test_a_rewritten_readme_or_question_is_a_fault(proof: Path) -> None:
    page = (proof / "README.md").read_text()
    (proof / "README.md").write_text(page.replace("u:", "hopper/mma/m16n8k16.f32.f16.f16.f32:", 1))
    assert faults_of(proof) == ["README.md: does not say what the files state"]
    (proof / "README.md").unlink()
    assert any(line.startswith("README.md") for line in faults_of(proof))
    (proof / "README.md").write_text(page)
    rewritten(proof, lambda m: m.update(question="hopper and volta are equal on all inputs"))
    assert faults_of(proof) == ["manifest.json: its question is not what the files state"]


def test_a_unit_that_calls_itself_another_is_told(tmp_path: Path) -> None:
    name = "volta/mma/m8n8k4.f32.f16.f16.f32"
    own = unit(tmp_path / "u.yaml")
    own.write_text(own.read_text().replace("unit: u", f"unit: {name}"))
    run("prove", own, own, "--certificate", tmp_path / "proof")
    assert f"left.yaml: calls itself {name}, but is NOT the unit of that name" in run("check", tmp_path / "proof")
    run("prove", name, name, "--certificate", tmp_path / "other")
    assert f"left.yaml: is {name} of the table" in run("check", tmp_path / "other")


# -- shorter units

VOLTA = "volta/mma/m8n8k4.f32.f16.f16.f32@length=2"


def padded(folder: Path, change: Callable[[dict[str, Any]], Any], name: str) -> None:
    """A document with a change, and the question and page that fit it."""
    document = json.loads((folder / name).read_text())
    change(document)
    (folder / name).write_text(json.dumps(document))
    fitted(folder)


def test_a_shorter_unit_is_the_one_of_the_table(tmp_path: Path) -> None:
    run("prove", "--property", "zero-padding", VOLTA, "--certificate", tmp_path / "padding")
    folder = tmp_path / "padding"
    assert accepted(folder)
    text = run("check", folder)
    assert f"the whole one is {VOLTA}, the shorter ones are that with length 1" in text
    for change in (
        {"model": "volta/mma/m8n8k4.f32.f16.f16.f32"}, {"model": f"{VOLTA},carry_bits=9"}, {"lengths": []},
        {"lengths": [2]}, {"model": "u.yaml"}, {"model": 1}, {"model": "plan:cublas/plain@length=2"},
    ):  # fmt: skip
        shutil.copytree(folder, tmp_path / "changed")
        padded(tmp_path / "changed", lambda document, change=change: document.update(change), "property.json")
        assert faults_of(tmp_path / "changed"), change
        shutil.rmtree(tmp_path / "changed")


def test_no_other_unit_is_taken_for_the_shorter_one(tmp_path: Path) -> None:
    """A shorter unit with the zero product written in agrees with a unit whose own shorter one would not; and one that
    differs from it refutes nothing."""
    whole = unit(tmp_path / "w.yaml", "round(fused(c, a[0] * b[0], a[1] * b[1], F=3, zeros=6), e3m2, nearest_even)")
    zero = "number(0x0, e2m1) * number(0x0, e2m1)"
    short = unit(tmp_path / "s.yaml", f"round(fused(c, a[0] * b[0], {zero}, F=3, zeros=6), e3m2, nearest_even)", 1)
    run("prove", short, whole, "--certificate", tmp_path / "forged")
    folder = tmp_path / "forged"
    question = json.loads((folder / "question.json").read_text())
    document = {"schema": 1, "inputs": question["inputs"], "compare": "bits", "property": "zero-padding",
                "model": "w", "lengths": [1]}  # fmt: skip
    shutil.copy(folder / "right.yaml", folder / "unit.yaml")
    for name in ("question.json", "left.yaml", "right.yaml"):
        (folder / name).unlink()
    names = dict.fromkeys(("property.json", "unit.yaml", "log.json"), "0" * 64)
    for model, says in (("w", "unknown model 'w'"), (VOLTA, f"the unit is not {VOLTA} of the table")):
        (folder / "property.json").write_text(json.dumps(document | {"model": model}))
        rewritten(folder, lambda m: m.update(sha256=dict(names)))
        fitted(folder)
        (fault,) = faults_of(folder)
        assert fault.startswith("log.json: ")
        assert says in fault

    plain = unit(tmp_path / "p.yaml", "round(fused(c, a[0] * b[0], F=3, zeros=6), e3m2, nearest_even)", 1)
    run("prove", plain, whole, "--certificate", tmp_path / "refuted", code=1)
    padded(tmp_path / "refuted", lambda d: d.update(property="zero-padding", model=VOLTA, lengths=[1]), "witness.json")
    assert [line.rpartition(": ")[2] for line in faults_of(tmp_path / "refuted")] == [
        f"the unit is not {VOLTA} of the table"
    ]


# -- claims


CLAIM = """id: t
about: t
source: t
says: nothing
expect: {expect}
terms: 1
inputs: {{format: e2m1, a: [0, 1], b: [0, 0], c: [0, 1]}}
parts: {{p: ./p.yaml}}
claim: error(p) <= {bound}
"""


@pytest.mark.parametrize(("expect", "bound"), [("holds", "4"), ("refuted", "2**-4")])
def test_a_certificate_holds_the_units_of_its_claim(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, expect: str, bound: str
) -> None:
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    unit(Path("p.yaml"), "round(exact(a[0] * b[0], c), e3m2, toward_zero)", 1)
    Path("claim.yaml").write_text(CLAIM.format(expect=expect, bound=bound))
    run("verify", "claim.yaml", "--certificate", "proof", "--timeout", "60")
    shutil.move("proof", tmp_path / "elsewhere")
    text = run("check", tmp_path / "elsewhere")
    for words in (
        'inputs: {"format": "e2m1", "a": [0, 1], "b": [0, 0], "c": [0, 1]}', "terms: 1", f"error(p) <= {bound}",
        "./unit-1.yaml", digest(tmp_path / "elsewhere" / "unit-1.yaml"),
    ):  # fmt: skip
        assert words in text
    monkeypatch.chdir(tmp_path)
    unit(Path("p.yaml"), "round(exact(c, c), e3m2, toward_zero)", 1)
    assert accepted(tmp_path / "elsewhere")
    text = (tmp_path / "elsewhere" / "claim.yaml").read_text()
    for other in ("./p.yaml", f"{tmp_path}/p.yaml", "'{x}'", "ootomo-yokota@unit =./p.yaml"):
        more = f"cases: {{x: [{tmp_path}/p.yaml]}}\n" if "{x}" in other else ""
        (tmp_path / "elsewhere" / "claim.yaml").write_text(text.replace("./unit-1.yaml", other) + more)
        fitted(tmp_path / "elsewhere")
        assert any("claim" in line or "cannot be read" in line for line in faults_of(tmp_path / "elsewhere")), other
