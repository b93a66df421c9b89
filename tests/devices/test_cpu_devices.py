"""`cpu:`: the instructions of this processor as devices, and the list of what is here."""

from __future__ import annotations

import json
import platform
import re
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner, Result

from mmaprobe.cli.main import main
from mmaprobe.runner import cpu
from mmaprobe.runner.cpu import INSTRUCTIONS, CpuDevice, CpuInstruction, instructions_here, why_missing
from mmaprobe.runner.devices import open_device
from mmaprobe.runner.protocol import DeviceUnavailableError
from mmaprobe.smtmodel.base.errors import UnknownNameError
from mmaprobe.smtmodel.evaluate.batch import evaluate_batch
from mmaprobe.smtmodel.tables.reference import parse_reference
from mmaprobe.smtmodel.units.unit_files import units
from tests.cpu import MACHINES, Inputs, differing

pytestmark = pytest.mark.compilers


def run(*arguments: str) -> Result:
    return CliRunner().invoke(main, [*arguments])


def opened(name: str) -> CpuDevice:
    try:
        return CpuDevice(name)
    except DeviceUnavailableError as error:
        pytest.skip(str(error))


#: instructions of processors that nobody has: which no device asks
UNASKED = re.compile(r"x86/avx10\.2/|x86/amx/(tdp[bh]+f8ps|tmmultf32ps)|arm/sme/(fmopa-f16$|bfmopa-b16|fdot-f16f32)")


def test_every_unit_of_a_processor_is_an_instruction() -> None:
    named = {name for name in units() if name.partition("/")[0] in MACHINES}
    processors = {name for name in named if not UNASKED.match(name)}
    assert len(named - processors) == 14
    assert {row.reference for row in INSTRUCTIONS} >= {*processors, "ieee/fma/f32", "ieee/fma/f64"}
    assert len({row.name for row in INSTRUCTIONS}) == len(INSTRUCTIONS)


@pytest.mark.parametrize("row", [row for row in instructions_here() if row.reference], ids=lambda row: row.name)
def test_devices_answer_what_their_units_compute(row: CpuInstruction) -> None:
    with opened(row.name) as device:
        model = parse_reference(row.reference)
        a, b, c = Inputs(model, seed=7).vectors(900)
        assert not differing(model, evaluate_batch(model, a, b, c), device.patterns(a, b, c)).size


def test_an_instruction_without_an_addend() -> None:
    opened("dpps").close()
    found = run("order", "--device", "cpu:dpps", "--formats", "f32,f32,f32", "--length", "4", "--json")
    assert json.loads(found.stdout)["outline"] == ["0-3 (added in pairs)"]
    assert run("order", "--device", "cpu:dpps", "--formats", "f32,f32,f64", "--length", "4").exit_code == 2
    assert run("order", "--device", "cpu:dpps", "--formats", "f32,f32,f32", "--length", "5").exit_code == 2


def test_the_list_says_what_is_missing_and_why(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = {row["id"]: row for row in json.loads(run("list", "devices", "--json").stdout)}
    assert {f"cpu:{row.name}" for row in INSTRUCTIONS} | {"cuda:", "hip:"} == rows.keys()
    assert all(row["here"] == (row["missing"] is None) for name, row in rows.items() if name not in ("cuda:", "hip:"))
    elsewhere = {f"cpu:{row.name}": row.arch for row in INSTRUCTIONS if row not in instructions_here()}
    assert all(f"an instruction of {arch}" in rows[name]["missing"] for name, arch in elsewhere.items())
    lines = run("list", "devices").stdout.splitlines()
    assert [line.split()[0] for line in lines] == [*(f"cpu:{row.name}" for row in instructions_here()),
                                                   *dict.fromkeys(elsewhere.values()), "cuda:", "hip:"]  # fmt: skip
    for name, arch in elsewhere.items():
        (line,) = (line for line in lines if line.startswith(f"{arch} "))
        assert re.search(rf"[(,] ?{name.removeprefix('cpu:')}[,)]", line)
        assert f"  MISSING: this is {platform.machine()}" in line
    shown = [line.split()[0] for line in run("list", "devices", "riscv").stdout.splitlines()]
    assert shown == [name for name, row in rows.items() if "riscv" in row["summary"]]
    monkeypatch.setenv("CC", "no-such-compiler")
    assert all("no C compiler 'no-such-compiler'" in why_missing(row) for row in instructions_here())


def test_errors(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    with pytest.raises(UnknownNameError, match="did you mean 'vdpbf16ps'"):
        open_device("cpu:vdpbf16p")
    other = next(row for row in INSTRUCTIONS if row not in instructions_here())
    assert run("order", "--device", f"cpu:{other.name}", "--formats", "f32,f32,f32,f32", "--length", "1").exit_code == 2
    broken = tmp_path / "broken.c"
    broken.write_text("int main(void) { return")
    monkeypatch.setattr(cpu, "SOURCE", broken)
    with pytest.raises(DeviceUnavailableError, match=r"does not compile|no C compiler"):
        cpu.program("cc", ("-O1", "-DFRESH"))


def test_a_processor_without_the_instruction_is_told_from_a_failure(tmp_path: Path) -> None:
    for status, expected in ((cpu.MISSING, cpu.MissingInstructionError), (1, cpu.IncompleteError)):
        program = tmp_path / "program"
        program.write_text(f"#!/bin/sh\nexit {status}\n")
        program.chmod(0o755)
        zeros = np.zeros((1, 1), dtype=np.uint64)
        with pytest.raises(expected) as caught:
            cpu.execute([str(program)], "f32", zeros, zeros, zeros[0])
        assert type(caught.value) is expected
