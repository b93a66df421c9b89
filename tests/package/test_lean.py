"""What works after an install without dependencies, with numpy and click alone: the machine of a GPU needs no more."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from mmaprobe.smtmodel.evaluate.operands import Operands
from mmaprobe.smtmodel.inputs.vectors import Vector
from mmaprobe.smtmodel.tables.reference import parse_reference

pytestmark = pytest.mark.programs

MODEL = "hopper/mma/m16n8k16.f32.f16.f16.f32"
LEAN = """
import sys
class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] not in ALLOWED and name.partition(".")[0] in INSTALLED:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
from importlib.metadata import packages_distributions
ALLOWED = {"numpy", "click", "mmaprobe"}
INSTALLED = set(packages_distributions()) | {"cupy"}
sys.meta_path.insert(0, Absent())
from mmaprobe.cli.main import main
main()
"""


def lean(*arguments: str, given: str = "") -> subprocess.CompletedProcess[str]:
    """The command line where only numpy and click are installed."""
    command = [sys.executable, "-c", LEAN, *arguments]
    return subprocess.run(command, input=given, capture_output=True, text=True, timeout=60, check=False)


def rows(**more: object) -> str:
    operands = Operands((0x3C00, 0x4000), (0x3C00, 0x3C00), 0x3F800000)  # 1 + 1 * 1 + 2 * 1
    row = Vector(parse_reference(MODEL), operands, id=1).to_json() | more
    return json.dumps(row) + "\n"


def test_serving_a_model() -> None:
    done = lean("device", MODEL, given=rows())
    assert done.returncode == 0, done.stderr
    header, answer = map(json.loads, done.stdout.splitlines())
    assert header["device"]["model"] == MODEL
    assert answer == {"id": 1, "d": "40800000"}


def test_running_vectors(tmp_path: Path) -> None:
    output = tmp_path / "answers.jsonl"
    done = lean("run", "-", "--device", f"model:{MODEL}", "-o", str(output), given=rows())
    assert done.returncode == 0, done.stderr
    assert json.loads(output.read_text())["d"] == "40800000"


def test_predictions_need_more() -> None:
    done = lean("run", "-", "--device", f"model:{MODEL}", given=rows(predictions={"one": "40800000"}))
    assert done.returncode == 2
    assert "needs the Python package 'pydantic'" in done.stderr
    assert "Traceback" not in done.stderr


def test_cuda_says_what_is_missing() -> None:
    for command in (
        ["device", "cuda:mma/m16n8k16.f32.f16.f16.f32"],
        ["run", "-", "--device", "cuda:m8n8k4.f32.f16.f16.f32"],
    ):
        done = lean(*command, given=rows())
        assert done.returncode == 2
        assert "the Python package 'cupy' is missing: pip install '.[cuda12]' in a clone" in done.stderr
        assert len(done.stderr.splitlines()) == 1
