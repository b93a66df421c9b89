"""Devices that speak lines of hexadecimal words."""

from __future__ import annotations

import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from mmaprobe.cli.main import main
from mmaprobe.queries.compare.observed import evaluate_vectors
from mmaprobe.reports.exports.cpp_header import header
from mmaprobe.reports.exports.verilog import identifier
from mmaprobe.runner.devices import DeviceError, open_device
from mmaprobe.smtmodel.evaluate.operands import Operands
from mmaprobe.smtmodel.inputs.vectors import Vector
from mmaprobe.smtmodel.tables.reference import parse_reference
from tests.devices.test_devices import VOLTA, addends, answered, random_vectors

pytestmark = pytest.mark.programs

SCALED = "rtx-blackwell/mma_block_scale/m16n8k64.block16.f32.e2m1.e2m1.f32.ue4m3"
ECHO = "for line in sys.stdin: print(line.split()[8], flush=True)\n"  # c, after four elements of a and of b
MULADD = """import numpy as np
np.seterr(all="ignore")
for line in sys.stdin:
    x = np.array([int(word, 16) for word in line.split()], np.uint32).view(np.float32)
    print(f"{(x[0] * x[1] + x[2]).view(np.uint32):08x}", flush=True)
"""
UNREAD = """unit: small
formats: {a: e2m1, b: e2m1, c: f32, d: f32}
length: 2
roundings: {r: "round(f32, nearest_even)"}
steps: {d: "r(exact(a[0] * b[0], a[1] * b[1]))"}
"""


def bench(folder: Path, body: str) -> str:
    path = folder / "bench.py"
    path.write_text(f"import os, sys, time\n{body}", encoding="utf-8")
    return "plain:" + shlex.join([sys.executable, "-I", str(path)])


def run(*words: str, code: int = 0) -> str:
    result = CliRunner().invoke(main, list(words))
    assert result.exit_code == code, result.output
    return result.output


def test_a_line_has_every_operand_in_order(tmp_path: Path) -> None:
    """With zeros for products that are missing, and all digits; c where the unit reads one."""
    seen = tmp_path / "seen"
    device = bench(tmp_path, f"for line in sys.stdin: open({str(seen)!r}, 'a').write(line); print(0, flush=True)\n")
    small = tmp_path / "small.yaml"
    small.write_text(UNREAD, encoding="utf-8")
    factors = ((0x38,) * 4, (0x40, 0x41, 0x42, 0x43))
    vectors = [
        Vector(parse_reference(VOLTA), Operands((1, 2), (0x3C00, 4), 0x3F800000)),
        Vector(parse_reference(SCALED), Operands((1, 2), (3, 0xF), 5, factors)),
        Vector(parse_reference(str(small)), Operands((1,), (2,), 0)),
    ]
    with open_device(device) as opened:
        assert answered(opened, vectors) == ([0, 0, 0], None)
    first, second, third = seen.read_text().splitlines()
    assert first == "0001 0002 0000 0000 3c00 0004 0000 0000 3f800000"
    assert second.split() == [*"12", *"0" * 62, *"3f", *"0" * 62, "00000005", *["38"] * 4, "40", "41", "42", "43"]
    assert third == "1 0 2 0"


def test_many_vectors_and_single_questions(tmp_path: Path) -> None:
    with open_device(bench(tmp_path, ECHO), 20) as device:
        assert [device.every([vector])[0] for vector in addends(3)] == [0, 1, 2]
        assert answered(device, addends(10000, named=False)) == (list(range(10000)), None)


@pytest.mark.parametrize(("body", "result"), [
    ("for line in sys.stdin: print(*line.split()[7:], flush=True)\n", "an answer of 2 words, not one: '0000 00000000'"),
    ("print('VCD info: opened', flush=True); time.sleep(60)\n", "an answer of 3 words, not one: 'VCD info: opened'"),
    ("for line in sys.stdin: print('xxxxxxxx', flush=True)\n", "'xxxxxxxx' is not hexadecimal"),
    ("for line in sys.stdin: print('3f80', flush=True)\n", "a pattern of f32 has 8 digits"),
    ("for line in sys.stdin: print('03f800000', flush=True)\n", "has 8 hexadecimal digits, found 9"),
    ("for line in sys.stdin: print(line.split()[8])\n", "no answer within 0.5 s .*does it flush each answer"),
    ("sys.stdin.readline(); sys.exit('no licence')\n", r"exit status 1, without an answer(?s:.*)no licence"),
    ("for line in sys.stdin: print('0\\n0', flush=True)\n", "more answers than vectors: '0', on vector 5"),
    ("for k, line in enumerate(sys.stdin): k == 2 or print('0', flush=True)\n", "no answer within 0.5 s .*vector 5"),
])  # fmt: skip
def test_what_is_wrong_is_said(tmp_path: Path, body: str, result: str) -> None:
    with open_device(bench(tmp_path, body), 0.5) as device:
        with pytest.raises(DeviceError, match=result):
            device.every(addends(5))
        with pytest.raises(DeviceError, match="has failed before"):
            device.every([addends(1)[0]])


def test_an_answer_left_over_is_noticed_before_the_next_question(tmp_path: Path) -> None:
    twice = bench(tmp_path, "for line in sys.stdin: print(0, flush=True); print(0, flush=True)\n")
    with open_device(twice) as device, pytest.raises(DeviceError, match="more answers than vectors"):
        _ = [device.every([vector])[0] for vector in addends(100)]


def test_commands_ask_a_bench(tmp_path: Path) -> None:
    """docs/my-kernel.md has `identify`."""
    device, rows, asked = bench(tmp_path, MULADD), tmp_path / "rows.jsonl", ("--formats", "f32,f32,f32,f32")
    rows.write_text('{"model": "ieee/muladd/f32", "a": ["40000000"], "b": ["40400000"], "c": "3f800000"}\n')
    assert '"d": "40e00000"' in run("run", str(rows), "--device", device)
    run("order", "--device", device, *asked, "--length", "1")
    assert "no difference" in run("compare", device, "model:ieee/muladd/f32", code=1)


def test_an_exported_header_in_a_bench_is_the_model(tmp_path: Path) -> None:
    if shutil.which("g++") is None:
        pytest.skip("g++ is not installed")
    model = parse_reference(VOLTA)
    (tmp_path / "unit.h").write_text(header(model), encoding="utf-8")
    (tmp_path / "bench.cpp").write_text(
        '#include "unit.h"\n#include <cstdio>\nint main() {\n  uint16_t x[8]; unsigned c;\n'
        '  for (int k = 0; scanf(k < 8 ? "%hx" : "%x", k < 8 ? (void *)&x[k] : &c) == 1; k = (k + 1) % 9)\n'
        f'    if (k == 8) printf("%08x\\n", {identifier(model.reference)}(x, x + 4, c)), fflush(stdout);\n}}\n',
        encoding="utf-8",
    )
    subprocess.run(["g++", "-w", "-O0", "bench.cpp", "-o", "bench"], cwd=tmp_path, check=True)
    vectors = random_vectors(VOLTA, 300)
    with open_device(f"plain:{tmp_path / 'bench'}") as device:
        assert answered(device, vectors) == ([row.predicted for row in evaluate_vectors(vectors)], None)
