"""The wheel: built from the files of the project, installed where nothing else is, and used away from the checkout."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import tomllib
import zipfile
from pathlib import Path

import pytest

from tests.package.test_layout import LEVELS as PACKAGES
from tests.places import ROOT

FOREIGN = ("cli", "queries", "runner")
DATA = (".yaml", ".jsonl", ".json", ".c", ".html", ".css", ".js", ".typed")
PROGRAM = """
import numpy as np
import mmaprobe, cli, queries, runner
from mmaprobe import smtmodel
for module in (mmaprobe, smtmodel):
    print(module.__file__)
print(cli.OWNER, queries.OWNER, runner.OWNER)
a = np.full((2, 32), 0.5, np.float16)
print(mmaprobe.matmul(a, a.T, unit="hopper/mma/m16n8k16.f32.f16.f16.f32")[0, 0])
print(mmaprobe.matmul(a, a.T, plan="cublas/split-k")[0, 0])
"""


def run(*command: str | Path, folder: Path) -> str:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    found = subprocess.run(command, cwd=folder, env=kept, capture_output=True, text=True)
    assert found.returncode == 0, found.stdout + found.stderr
    return found.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Built from a copy: nothing is left in the checkout, and no earlier build is taken for this one."""
    folder = tmp_path_factory.mktemp("wheel")
    source = folder / "source"
    source.mkdir()
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source)
    (source / "docs").mkdir()
    shutil.copy(ROOT / "docs" / "mmaprobe.1", source / "docs")
    for name in PACKAGES:
        shutil.copytree(ROOT / name, source / name, symlinks=True, ignore=shutil.ignore_patterns("__pycache__"))
    run(sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "-w", folder, source, folder=folder)
    (built,) = folder.glob("*.whl")
    return built


@pytest.mark.slow
def test_it_holds_every_file(wheel: Path) -> None:
    inside = set(zipfile.ZipFile(wheel).namelist())
    for package in PACKAGES:
        for path in (ROOT / package).rglob("*"):
            if path.is_file() and (path.suffix == ".py" or path.suffix in DATA):
                place = path.relative_to(ROOT)
                assert str(place if package == "mmaprobe" else "mmaprobe" / place) in inside
    version = next(name.partition(".dist-info")[0] for name in inside if ".dist-info/" in name)
    assert {name.partition("/")[0] for name in inside} == {"mmaprobe", f"{version}.dist-info", f"{version}.data"}


@pytest.mark.slow
def test_it_works_in_a_bare_environment(wheel: Path, tmp_path: Path) -> None:
    bare = tmp_path / "bare"
    run(sys.executable, "-m", "venv", "--without-pip", bare, folder=tmp_path)
    python = bare / "bin" / "python"
    run(sys.executable, "-m", "pip", "--quiet", "--python", python, "install", "--no-deps", "--no-index", wheel,
        folder=tmp_path)  # fmt: skip
    (site,) = (bare / "lib").glob("python*/site-packages")
    # what it depends on: the folder alone, so that no link from there to the checkout is followed
    (site / "dependencies.pth").write_text(f"{sysconfig.get_paths()['purelib']}\n")
    for name in FOREIGN:  # other packages of these names
        (site / name).mkdir()
        (site / name / "__init__.py").write_text(f"OWNER = 'the other {name}'\n")
    program = tmp_path / "mine.py"
    program.write_text(PROGRAM)
    *files, owners, product, plan = run(python, program, folder=tmp_path).splitlines()
    assert all(Path(file).is_relative_to(site) for file in files)
    assert owners == "the other cli the other queries the other runner"
    assert (float(product), float(plan)) == (8.0, 8.0)
    assert (bare / "share" / "man" / "man1" / "mmaprobe.1").is_file()
    assert run(bare / "bin" / "mmaprobe", "list", "plans", folder=tmp_path).startswith("plan:")


@pytest.mark.slow
def test_a_source_distribution_passes_its_tests(tmp_path: Path) -> None:
    """It holds every file of the project, with the links between its folders."""
    pytest.importorskip("setuptools")
    source = tmp_path / "source"
    left_out = shutil.ignore_patterns(".*", "__pycache__", "site", "build", "*.egg-info", "*.jsonl.tmp")
    shutil.copytree(ROOT, source, symlinks=True, ignore=left_out)
    build = f"from setuptools import build_meta; build_meta.build_sdist({str(tmp_path)!r})"
    run(sys.executable, "-c", build, folder=source)
    (packed,) = tmp_path.glob("mmaprobe-*.tar.gz")
    with tarfile.open(packed) as archive:
        archive.extractall(tmp_path, filter="data")
    unpacked = tmp_path / packed.name.removesuffix(".tar.gz")
    every = {path.relative_to(source) for path in source.rglob("*") if ".egg-info" not in str(path)}
    assert {path for path in every if not (unpacked / path).exists()} == set()
    for link in (ROOT / "mmaprobe").iterdir():
        if link.is_symlink():
            assert (unpacked / "mmaprobe" / link.name).readlink() == link.readlink()
    quick = ("tests/package/test_layout.py", "tests/units/test_integers.py")
    run(sys.executable, "-m", "pytest", "-n", "0", "-p", "no:cacheprovider", *quick, folder=unpacked)


def test_every_pinned_version_has_its_hashes() -> None:
    """`make` installs by requirements.lock alone: the versions of constraints.txt, and hashes for each of them."""
    lock = (ROOT / "requirements.lock").read_text(encoding="utf-8").replace("\\\n", "")
    locked = {}
    for line in lock.splitlines():
        pin, *hashes = line.split(" --hash=")
        assert hashes, line
        assert all(re.fullmatch("sha256:[0-9a-f]{64}", one.strip()) for one in hashes), line
        name, version = pin.partition(";")[0].strip().split("==")
        locked[_plain(name)] = version
    pins = dict(line.split("==") for line in (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines())
    apart = {"torch"}  # in an environment of its own
    assert locked == {_plain(name): version for name, version in pins.items() if name not in apart}
    wanted = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["build-system"]["requires"]
    assert wanted == [f"setuptools=={locked['setuptools']}"]


def _plain(name: str) -> str:
    return re.sub("[-_.]+", "-", name).lower()
