"""Certificates of claims hold the plans that the claims name, spell them out, and are refused where one is edited."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner, Result

from mmaprobe.cli.main import main
from mmaprobe.queries.certificates.plan_files import plan_texts
from mmaprobe.queries.certificates.statement import table_names
from mmaprobe.smtmodel.plans import plan_files
from mmaprobe.smtmodel.plans.plantext import plan_text
from mmaprobe.smtmodel.tables.reference import parse_plan_path
from tests.certificates.test_attacks import put
from tests.tampering import fitted

pytestmark = pytest.mark.solvers

PART, UNIT, CLAIM = "part-1.plan.yaml", "unit-1.yaml", "claim.yaml"
PROVED = {"plan": "plan:ozaki/int8-ii-13", "products": 8, "classical": 20}
REFUTED = {
    "terms": 2, "inputs": {"format": "f32", "a": [-4, 4], "b": [-4, 4], "c": "zero"},
    "parts": {"p": "plan:triton/bf16x3"}, "claim": "error(p) <= 2**-20 * magnitude_sum()",
}  # fmt: skip
VOLTA = "volta/mma/m8n8k4.f32.f16.f16.f32"


def run(*words: object) -> Result:
    return CliRunner().invoke(main, [str(word) for word in words])


def certified(folder: Path, name: str, claim: dict[str, object]) -> Path:
    """The certificate of a claim, which passes."""
    (folder / f"{name}.yaml").write_text(yaml.safe_dump({"id": name, **claim}))
    found = run("verify", folder / f"{name}.yaml", "--certificate", folder / name)
    assert "certificate:" in found.output, found.output
    checked = run("check", folder / name)
    assert checked.exit_code == 0, checked.output
    return folder / name


@pytest.fixture(scope="module")
def proofs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the certificate of a claim that is proved, and of one that an input refutes."""
    folder = tmp_path_factory.mktemp("claims")
    certified(folder, "proved", PROVED)
    certified(folder, "refuted", REFUTED)
    return folder


def test_a_claim_about_one_length_rests_on_theorems_about_its_plans(tmp_path: Path) -> None:
    """The log says that they are about this K; about another one it is refused."""
    claim = {"terms": 8, "inputs": {"format": "f16", "a": [-2, 2], "b": [-2, 2], "c": "zero"},
             "parts": {"p": VOLTA}, "claim": "error(p) <= 2**-9 * magnitude_sum()"}  # fmt: skip
    folder = certified(tmp_path, "one", claim)
    assert json.loads((folder / "log.json").read_text())["lengths"] == [8]
    put(folder, lambda log: log.update(lengths=[16]))
    refused = run("check", folder)
    assert (refused.exit_code, "the claim is about K = 8, and its proof about others" in refused.output) == (1, True)


def test_check_spells_the_plan_out(proofs: Path) -> None:
    says = run("check", proofs / "refuted").output
    for line in (
        f"stated: {PART}: formats: a: f32, b: f32, c: f32, d: f32",
        f"stated: {PART}: words: a1: h(r(exact(a, -a0)))",
        f"stated: {PART}: steps: d: sum(promote(32, then(wgmma(a1, b0), wgmma(a0, b1), wgmma(a0, b0)), r), c)",
        f"{PART}: is the plan triton/bf16x3 that ships",
    ):
        assert line in says
    assert "stated: proved: for all inputs, error(d) <= 20 K u sum |a_k b_k|" in run("check", proofs / "proved").output


def test_a_later_plan_of_the_name_changes_nothing(
    proofs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = run("check", proofs / "refuted").output
    library = tmp_path / "library"
    shutil.copytree(plan_files.FOLDER, library)
    file = library / "triton/bf16x3.yaml"
    file.write_text(file.read_text().replace("promote(32", "promote(64"))
    monkeypatch.setattr(plan_files, "FOLDER", library)
    plan_files._shipped.cache_clear()
    try:
        after = run("check", proofs / "refuted")
    finally:
        plan_files._shipped.cache_clear()
    assert after.exit_code == 0
    ships = f"{PART}: is the plan triton/bf16x3 that ships"
    other = f"{PART}: calls itself triton/bf16x3, but is NOT the plan of that name that ships"
    assert ships in before
    assert after.output == before.replace(ships, other)


@pytest.mark.parametrize(("proof", "file", "old", "new", "why"), [
    ("refuted", PART, "wgmma(a0, b1)", "mma(a0, b1)", f"{PART}:22: steps.d: column 37 of"),
    ("refuted", PART, "promote(32", "promote(64", None),
    ("refuted", "witness.json", "0x3f800000", "0x7f800000", "it is not admitted, or does not decide the claim"),
    ("refuted", CLAIM, f"./{PART}", "plan:triton/bf16x3", "names a plan that is not in the folder"),
    ("refuted", CLAIM, "2**-20", "2**-4", "it is not admitted, or does not decide the claim"),
    ("refuted", UNIT, "F=25", "F=4", None),
    ("proved", CLAIM, f"./{PART}", "plan:ozaki/int8-ii-13", "names a plan that is not in the folder"),
    ("proved", CLAIM, f"./{PART}", f"../{PART}", "names a file that is not in the folder"),
    ("proved", CLAIM, "products: 8", "products: 9", "does not state what the files ask"),
    ("proved", CLAIM, "classical: 20", "classical: 1", "does not state what the files ask"),
    ("proved", PART, "nearest_even", "toward_zero", "a rounding with rules of its own"),
    ("proved", PART, "product(2**48, r(product(a,", "product(2**40, r(product(a,", "is all that is known"),
    ("proved", PART, UNIT, "ampere/mma/m16n8k32.s32.s8.s8.s32", f"{PART}:16: units.mma: units: "),
    ("proved", UNIT, "int32", "f32", f"{UNIT} does not add integers"),
    ("proved", PART, "", None, f"{PART}: No such file or directory"),
])  # fmt: skip
def test_an_edited_certificate_is_refused(
    proofs: Path, tmp_path: Path, proof: str, file: str, old: str, new: str | None, why: str | None
) -> None:
    """As it is edited, and with digests and words that fit the edited files. `why`: None where what the edited files
    state is as true, and names no shipped plan."""
    folder = tmp_path / proof
    shutil.copytree(proofs / proof, folder)
    text = (folder / file).read_text()
    assert old in text
    if new is None:
        (folder / file).unlink()
    else:
        (folder / file).write_text(text.replace(old, new, 1))
    edited = run("check", folder)
    assert edited.exit_code == 1
    assert f"{file}: {'No such file' if new is None else 'changed since it was written'}" in edited.output
    if new is not None:
        fitted(folder)
        edited = run("check", folder)
    assert str(tmp_path.parent) not in edited.output
    if why is None:
        assert f"{PART}: calls itself triton/bf16x3, but is NOT the plan of that name that ships" in edited.output
        assert edited.exit_code == 0
    else:
        assert edited.exit_code == 1
        assert why in edited.output


def test_plans_of_ones_own(tmp_path: Path) -> None:
    """With words that read words, and beside a scheme of the same unit."""
    (tmp_path / "own.yaml").write_text(plan_text(parse_plan_path("plan:ozaki/int8-ii-13")))
    certified(tmp_path, "words", PROVED | {"plan": "./own.yaml"})
    scheme = f"markidis@unit={VOLTA},split=toward_zero"
    (tmp_path / "three.yaml").write_text(plan_text(parse_plan_path(f"{scheme},products=3")))
    certified(tmp_path, "beside", {
        "terms": 4, "inputs": {"format": "f32", "a": [0, 0], "b": [0, 0], "c": "zero"},
        "parts": {"three": "./three.yaml", "four": scheme},
        "claim": "abs(value(three) - value(four)) <= 2**-18 * magnitude_sum()",
    })  # fmt: skip


def test_every_shipped_plan_is_held_as_it_ships() -> None:
    for name in plan_files.plans():
        texts = plan_texts({PART: parse_plan_path(f"plan:{name}")})
        assert (PART, f"is the plan {name} that ships") in list(table_names(texts))
