"""The examples of docs/extending.md, carried out on a copy of the project: each in so many files as the page says."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "extending.md"
PACKAGES = ("cli", "hypotheses", "mmaprobe", "queries", "reports", "runner", "smtmodel", "studies")
VOLTA = "volta/mma/m8n8k4.f32.f16.f16.f32"
MINUS = """unit: minus
formats: {a: f16, b: f16, c: f16, d: f16}
length: 1
roundings: {r: round(f16)}
steps:
  d: r(exact(minus(a[0] * b[0]), c))
"""
#: what was added -> commands that could not run before, and what they say
EXAMPLES = {
    "an algorithm": [("list algorithms", "markidis-three")],
    "a family": [(f"show {VOLTA}@family=two-roundings", "d: r(exact(r(exact(a[0:4] * b[0:4])), c))")],
    "a parameter": [
        (
            "distinguish ieee/fma/f32@flush_outputs=true ieee/fma/f32@flush_outputs=true,tiny=before_rounding "
            "--solver bitwuzla",
            "right gives 00000000",
        ),
    ],
    "a property": [(f"prove --property commutative {VOLTA} --solver bitwuzla --no-confirm", ": proved in")],
    "a node": [
        ("show minus.yaml", "d: r(exact(minus(a[0] * b[0]), c))"),
        ("distinguish minus.yaml ieee/fma/f16 --solver bitwuzla", "left gives bc00"),
        ("prove --property order-independent minus.yaml --solver bitwuzla --no-confirm", ": proved in"),
        ("prove --property error-bound minus.yaml", "no rule says what minus loses"),
    ],
    "a solver": [("distinguish ieee/fma/f16 ieee/fma/f16@nan=none --solver z3-seeded", "z3-seeded")],
    "an instruction": [
        ("list models", "mine/mma/half"),
        ("prove mine/mma/half ieee/fma/f16 --solver bitwuzla --no-confirm", "equal: "),
    ],
}


@pytest.fixture
def copy(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Always in one place, so that what no example changes is compiled once; beside it, and not in the user's cache."""
    place = tmp_path_factory.getbasetemp() / "extended"
    shutil.rmtree(place, ignore_errors=True)
    for name in PACKAGES:
        shutil.copytree(ROOT / name, place / name, ignore=shutil.ignore_patterns("__pycache__"))
    monkeypatch.setenv("PYTHONPYCACHEPREFIX", str(place.with_name("extended-bytecode")))
    return place


def rows() -> dict[str, tuple[int, str]]:
    found = re.findall(r"^\| (an? [a-z]+) \| (\d) \| (.*) \|$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    return {name: (int(files), example) for name, files, example in found}


@pytest.mark.parametrize("added", EXAMPLES)
def test_an_example(added: str, copy: Path) -> None:
    files, example = rows()[added]
    if named := re.search(r"\(extending/(\w+\.diff)\)", example):
        diff = PAGE.parent / "extending" / named[1]
        subprocess.run(["git", "apply", str(diff)], cwd=copy, check=True)
        changed = re.findall(r"^\+\+\+ b/(.*)$", diff.read_text(encoding="utf-8"), re.MULTILINE)
        (copy / "minus.yaml").write_text(MINUS, encoding="utf-8")
    else:
        changed = ["smtmodel/units/mine/mma/half.yaml"]
        (copy / changed[0]).parent.mkdir(parents=True)
        (copy / changed[0]).write_text(MINUS.replace("minus(a[0] * b[0])", "a[0] * b[0]"), encoding="utf-8")
    assert len(changed) == files <= 2
    for command, said in EXAMPLES[added]:
        done = subprocess.run([sys.executable, "-m", "cli.main", *command.split()], cwd=copy, capture_output=True,
                              text=True, timeout=120)  # fmt: skip
        assert said in done.stdout + done.stderr, (command, done.stdout + done.stderr)


def test_what_is_said_to_be_possible_is_shown() -> None:
    assert set(EXAMPLES) <= rows().keys()
    assert {name for name, (_, example) in rows().items() if ".diff" in example} < set(EXAMPLES)
