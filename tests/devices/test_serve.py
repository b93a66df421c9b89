"""A model served as a device: it introduces itself, answers at once and in order, and ends quietly."""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from mmaprobe.queries.compare.observed import evaluate_vectors
from mmaprobe.runner import serve as serving
from mmaprobe.runner.devices import open_device
from mmaprobe.runner.model_device import ModelDevice
from mmaprobe.smtmodel.base.errors import InputError
from tests.command_line.test_cli import json_lines
from tests.devices.test_devices import (
    REFERENCES,
    VOLTA,
    addends,
    answered,
    random_vectors,
)
from tests.devices.test_run import content

pytestmark = pytest.mark.programs

SERVE = [sys.executable, "-m", "mmaprobe.cli.main", "device", VOLTA]
QUESTION = json.dumps(addends(4)[3].to_json())


def serve(text: str, code: int) -> tuple[list[dict[str, Any]], str]:
    result = subprocess.run(SERVE, input=text, capture_output=True, text=True, check=False, timeout=20)
    assert result.returncode == code, result.stderr
    assert "Traceback" not in result.stderr
    return json_lines(result.stdout), result.stderr


def test_a_served_model_introduces_itself_and_answers() -> None:
    bare = json.dumps({"a": ["3c00"], "b": ["4000"], "c": "3F800000"})
    changed = json.dumps({**json.loads(QUESTION), "model": VOLTA + "@carry_bits=3", "id": 7, "d": "00000005"})
    name = {"arch": "Volta", "unit": "mma", "instruction": "m8n8k4.f32.f16.f16.f32"}
    half = json.dumps({**name, "a": ["0"], "b": ["0"], "c": "00000001"})
    header, *answers = serve("\n".join([QUESTION, "", bare, changed, half]), 0)[0]
    assert header == {"device": {"name": f"software model {VOLTA}", "model": VOLTA}}
    expected = [("v3", "00000003"), (None, "40400000"), (7, "00000003"), (None, "00000001")]
    assert answers == [{"id": name, "d": d} for name, d in expected]
    rows, output = serve(f"{QUESTION}\n{{\n", 2)
    assert rows == [header, answers[0]]
    assert output.startswith("error: standard input:2: not JSON")


@pytest.mark.parametrize(
    ("bad", "words"),
    [
        ("{", "not JSON"),
        ("[" * 100000, "nested too deep"),
        ('{"a": ["0", "0", "0", "0", "0"], "b": ["0", "0", "0", "0", "0"], "c": "0"}', "has 4 products"),
        ('{"model": "ampere/mma/m16n8k16.f32.bf16.bf16.f32", "a": ["0"], "b": ["0"], "c": "0"}', "other formats"),
    ],
    ids=range(4),
)
def test_a_bad_line_ends_a_served_model(tmp_path: Path, bad: str, words: str) -> None:
    asked, output = tmp_path / "asked", tmp_path / "said"
    asked.write_text(f"{QUESTION}\n\n{bad}\n{QUESTION}\n", encoding="utf-8")
    with asked.open("rb") as source, output.open("wb") as sink, pytest.raises(InputError, match=words) as caught:
        serving.serve(ModelDevice(VOLTA), source.fileno(), sink.fileno())
    assert (caught.value.file, caught.value.line) == ("standard input", 3)
    assert [row.get("d") for row in content(output)] == [None, "00000003"]


def test_a_served_model_answers_one_question_at_once_and_stops_quietly() -> None:
    with subprocess.Popen(SERVE, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as device:
        assert device.stdin is not None is not device.stdout
        assert device.stderr is not None
        assert b"device" in device.stdout.readline()
        for half in (QUESTION[:20], QUESTION[20:] + "\n"):
            device.stdin.write(half.encode())
            device.stdin.flush()
            time.sleep(0.05)
        assert json.loads(device.stdout.readline()) == {"id": "v3", "d": "00000003"}
        device.stdout.close()  # nobody reads any more
        device.stdin.write((QUESTION + "\n").encode())
        device.stdin.close()
        assert device.stderr.read() == b""
        assert device.wait(10) == 0


@pytest.mark.parametrize(
    ("start", "banned"),
    [
        ("from mmaprobe.cli.main import main", "bitwuzla z3 cvc5 pysmt cupy"),
        (
            "from mmaprobe.cli.commands.run import device as main",
            "bitwuzla z3 cvc5 pysmt cupy pydantic yaml mmaprobe.hypotheses mmaprobe.queries",
        ),
    ],
)
def test_a_served_model_imports_no_solver(start: str, banned: str) -> None:
    arguments = ["device", VOLTA] if "mmaprobe.cli.main" in start else [VOLTA]
    code = f"""import sys
for name in {banned!r}.split():
    sys.modules[name] = None  # importing it fails
{start}
main({arguments!r})"""
    result = subprocess.run([sys.executable, "-c", code], input=QUESTION, capture_output=True, text=True, check=False)
    assert (result.returncode, result.stderr) == (0, "")
    assert json_lines(result.stdout)[1] == {"id": "v3", "d": "00000003"}


@pytest.mark.parametrize("reference", REFERENCES[2:7])
def test_a_served_model_answers_what_evaluate_gives(reference: str) -> None:
    vectors = random_vectors(reference, 60)
    expected = [row.predicted for row in evaluate_vectors(vectors)]
    with open_device(
        "command:" + shlex.join([sys.executable, "-m", "mmaprobe.cli.main", "device", reference])
    ) as device:
        assert device.every([vectors[0]])[0] == expected[0]
        assert answered(device, vectors) == (expected, None)
        assert device.description["model"] == reference
