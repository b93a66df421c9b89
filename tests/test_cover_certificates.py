"""Certificates of what no input reaches: they pass, and with anything in them changed they do not."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from queries.certificates.certificate import CertificateError
from queries.checking.folder import check_folder
from queries.covering.certify import certify_cover
from queries.covering.cover import Change, Cover, Covering
from queries.search.distinguish import Options
from smtmodel.unitfile import unit_text
from tests.tampering import accepted, fitted, tampered
from tests.test_property_certificates import unit

QUICK = Options(timeout=60.0)
UNIT = unit("fused")
SAME = Change("sticky=true", unit("fused"))  # that is none: its name is its writer's word


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("cover")
    found = Covering(UNIT, False, [SAME], samples=512).run(QUICK)
    assert not found.open
    assert found.unreachable
    certify_cover(found, path, QUICK)
    return path


def test_what_no_input_reaches_has_a_certificate(folder: Path) -> None:
    found = list(check_folder(folder))
    assert {one.kind for one in found} == {"fine"}
    assert found[-1].says.startswith("no input reaches any of ")
    assert found[-1].says.endswith(
        "; proof-1/right.yaml gives the same results: it calls itself small; the table of units has no such name"
    )


def test_any_field_changed_is_refused(folder: Path) -> None:
    told = {f"cover.json: ('changes', 0, 'change') is {SAME.name}x"}  # what the change is called
    assert set(tampered(folder, "cover.json", 5)) <= told
    assert list(tampered(folder, "unit.yaml", 4)) == []
    assert accepted(folder)


def test_a_case_that_some_input_reaches_is_refused(folder: Path) -> None:
    path = folder / "cover.json"
    text, document = path.read_text(), json.loads(path.read_text())
    reached = ["c: value: +0"]
    for changed in ({"cases": [*document["cases"], {"conditions": reached, "lemma": "lemma-01"}]},
                    {"lemmas": {**document["lemmas"], "lemma-01": [reached]}}, {"changes": []},
                    {"cases": [{"conditions": [], "lemma": "lemma-01"}]}):  # fmt: skip
        path.write_text(json.dumps(document | changed))
        fitted(folder)
        assert not accepted(folder), changed
    path.write_text(text)
    fitted(folder)
    assert accepted(folder)


def test_lemmas_in_each_others_place_are_refused(folder: Path, tmp_path: Path) -> None:
    """Each file is right and proved, and does not ask about the cases that its name stands for."""
    shutil.copytree(folder, tmp_path, dirs_exist_ok=True)
    for path in folder.glob("lemma-01.*"):
        shutil.copy(folder / f"lemma-03{path.suffix}", tmp_path / path.name)
        shutil.copy(path, tmp_path / f"lemma-03{path.suffix}")
    fitted(tmp_path)
    assert {found.place for found in check_folder(tmp_path) if found.kind == "fault"} == {"cover.json"}


def test_a_change_of_another_unit_is_refused(folder: Path, tmp_path: Path) -> None:
    """Both sides of the part are one unit, and not that of the folder."""
    shutil.copytree(folder, tmp_path, dirs_exist_ok=True)
    for side in ("left.yaml", "right.yaml"):
        (tmp_path / "proof-1" / side).write_text(unit_text(unit("fused", bits=3).unit))
    fitted(tmp_path)
    assert {found.place for found in check_folder(tmp_path) if found.kind == "fault"} == {"cover.json"}


def test_nothing_proved_has_no_certificate(tmp_path: Path) -> None:
    with pytest.raises(CertificateError, match="nothing was proved"):
        certify_cover(Cover(UNIT, Covering(UNIT, False, [], samples=64).layout), tmp_path, QUICK)
