"""Certificates of what no input reaches: they pass, and with anything in them changed they do not."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from mmaprobe.queries.certificates.sat import CertificateError
from mmaprobe.queries.checking.folder import check_folder
from mmaprobe.queries.covering.certify import certify_cover
from mmaprobe.queries.covering.cover import Change, Cover, Covering
from mmaprobe.queries.search.distinguish import Options
from tests.certificates.test_property_certificates import unit
from tests.tampering import accepted, fitted, tampered

pytestmark = pytest.mark.solvers

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
    stated = [one.says for one in found if one.says.startswith("states: ")]
    assert len(stated) == len(json.loads((folder / "cover.json").read_text())["cases"]) + 1
    assert " = " in stated[-1]


def test_any_field_changed_is_refused(folder: Path) -> None:
    faults = {f"cover.json: ('changes', 0, 'change') is {SAME.name}x"}  # what the change is called
    assert set(tampered(folder, "cover.json", 5)) <= faults
    assert list(tampered(folder, "unit.yaml", 4)) == []
    assert accepted(folder)


def test_lemmas_in_each_others_place_are_one_certificate(folder: Path, tmp_path: Path) -> None:
    """A rule looks for what it asks among all queries: their names say nothing."""
    shutil.copytree(folder, tmp_path, dirs_exist_ok=True)
    for path in folder.glob("lemma-01.*"):
        shutil.copy(folder / f"lemma-02{path.suffix}", tmp_path / path.name)
        shutil.copy(path, tmp_path / f"lemma-02{path.suffix}")
    fitted(tmp_path)
    assert accepted(tmp_path)
    for path in folder.glob("lemma-01.*"):
        shutil.copy(path, tmp_path / path.name)
    fitted(tmp_path)
    assert {found.place for found in check_folder(tmp_path) if found.kind == "fault"} == {"lemma-02.smt2", "log.json"}


def test_nothing_proved_has_no_certificate(tmp_path: Path) -> None:
    cover = Cover(UNIT, Covering(UNIT, False, [], samples=64).layout)
    with pytest.raises(CertificateError, match="everything is reached: nothing was proved"):
        certify_cover(cover, tmp_path, QUICK)
    cover.counts[SAME] = 0
    with pytest.raises(CertificateError, match="conditions that no vector reaches are undecided: nothing was proved"):
        certify_cover(cover, tmp_path, QUICK)
