"""Commands of pages whose output is not shown (```sh blocks) run as well, in a folder with the files they name; those
that cannot run here are listed with the reason."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from tests.documentation import PAGES, Terminal, blocks
from tests.marks import some_slow
from tests.places import ROOT

pytestmark = pytest.mark.pages

#: what a line of a page has that is not run here -> why
NOT_RUN = {
    r"\brtl:": "a design, and Yosys: tests/devices/test_rtl.py",
    r"cuda:|make evidence": "needs an NVIDIA GPU",
    r"hip:": "needs an AMD GPU",
    r"\bssh ": "needs another machine",
    r"10\.0\.0\.1": "needs several machines; tests/solvers/test_cluster.py has a scheduler and workers of its own",
    r"^(make|git|cd|python3 -m venv|\.|pip) ": "sets up a clone, as tests/package/test_wheel.py does",
    r"cpu:tdpbf16ps": "needs a processor with AMX; tests/devices/test_cpu_devices.py runs it if there is one",
    r"cpu:vdpbf16ps": "needs a processor with AVX512-BF16; tests/devices/test_cpu_devices.py runs it if there is one",
    r"torch_device": "needs PyTorch",
    r"^mmaprobe separate nvidia-f16": "takes minutes; benchmarks/separations.md has it",
    r"^mmaprobe cover plan:": "takes the ten minutes that it is given",
    r"^mmaprobe study valero-tf32": "takes a minute; tests/studies/test_studies.py runs studies of fewer sizes",
    r"^mmaprobe identify --gemm --device python:": "takes minutes; docs/library-plans.md has these libraries",
    r"^mmaprobe identify nvidia-f16 --device recorded:one.jsonl": "takes long; see tests/identify/test_identify.py",
    r"^mmaprobe datasheet unit.json": "tests/reports/test_datasheet.py has it, with a unit that identify found",
    r"^mmaprobe datasheet (MI300X|blackwell|--all)": "asks 20 s a property; tests/reports/test_datasheet.py has others",
}
SERVED = '#!/bin/sh\nexec mmaprobe device "hopper/mma/m16n8k16.f32.f16.f16.f32@fraction_bits=24"\n'
#: what readers have when they come to these commands
MATERIALS = """
import numpy as np
from mmaprobe import matmul
rng = np.random.default_rng(1)
a, b = rng.standard_normal((16, 96)).astype(np.float16), rng.standard_normal((96, 16)).astype(np.float16)
np.save("a.npy", a), np.save("b.npy", b), np.save("a16.npy", a), np.save("b16.npy", b)
np.save("c.npy", np.zeros((16, 16), np.float32))
unit = "hopper/mma/m16n8k16.f32.f16.f16.f32"
np.save("d1.npy", matmul(a, b, unit=unit)), np.save("d2.npy", matmul(a, b, unit=unit + "@fraction_bits=24"))
"""
QUESTION = """\
id: my-question
question: How many carry bits?
source: none
model: volta/mma/m8n8k4.f32.f16.f16.f32@product=normalised
inputs: {finite: true}
hypotheses:
  two: {carry_bits: 2}
  three: {carry_bits: 3}
expect: different
"""
AMX = "x86/amx/tdpbf16ps"
COMMANDS = (
    "python materials.py",
    "mmaprobe distinguish carry-bits-volta -o vectors.jsonl --json > results.json",
    "mmaprobe run vectors.jsonl --device model:volta/mma/m8n8k4.f32.f16.f16.f32 -o observed.jsonl",
    f"mmaprobe show {AMX} > unit.yaml",
)
#: a page's file of a name that others have, too
OWN = {
    "docs/units.md": f"rm observed.jsonl; mmaprobe distinguish {AMX} x86/avx512/vdpbf16ps -o amx.jsonl; "
    f"mmaprobe run amx.jsonl --device model:{AMX} -o observed.jsonl"
}


def _lines(page: Path) -> list[tuple[int, str]]:
    return [
        (number, line)
        for block in blocks(page)
        if block.language in ("sh", "") and not block.name
        for number, line in enumerate(block.lines, block.line)
        if re.match(r"[\w.]+ ", line)
    ]


def _why_not(line: str) -> str | None:
    return next((why for pattern, why in NOT_RUN.items() if re.search(pattern, line)), None)


def _run() -> dict[Path, list[tuple[int, str]]]:
    """The lines of each page that are run: each command once, on the first page that has it."""
    seen: set[str] = set()
    found: dict[Path, list[tuple[int, str]]] = {}
    for page in PAGES:
        for number, line in _lines(page):
            command = line.partition(" #")[0].rstrip()
            if command not in seen and _why_not(line) is None:
                found.setdefault(page, []).append((number, line))
            seen.add(command)
    return found


RUN = _run()


@pytest.fixture(scope="module")
def materials(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the files that the commands name."""
    folder = tmp_path_factory.mktemp("materials")
    terminal = Terminal(folder, tmp_path_factory.mktemp("home"))
    (folder / "materials.py").write_text(MATERIALS)
    (folder / "my-question.yaml").write_text(QUESTION)
    (folder / "mine.py").write_text("def matmul(a, b):\n    return a @ b\n")
    for name in ("my-gpu", "my-datapath"):
        (folder / name).write_text(SERVED)
        (folder / name).chmod(0o755)
    for command in COMMANDS:
        printed = terminal.run(command)
        assert terminal.status == 0, (command, printed)
    return folder


@pytest.mark.parametrize(
    "page", some_slow(RUN, ROOT / "docs" / "README.md"), ids=lambda page: str(page.relative_to(ROOT))
)
def test_commands_without_output_run(page: Path, materials: Path, tmp_path: Path) -> None:
    folder, name = tmp_path / "clone", str(page.relative_to(ROOT))
    folder.mkdir()
    terminal = Terminal(folder, tmp_path / "home")
    for path in materials.iterdir():
        if path.is_file():
            shutil.copy(path, folder)
    terminal.run(OWN.get(name, "true"))
    wrong = []
    for number, text in RUN[page]:
        printed = "\n".join(terminal.run(text))
        if terminal.status not in (0, 1) or "Traceback" in printed:
            wrong.append(f"{name}:{number}: {text}\nends with {terminal.status}\n{printed[-600:]}")
    assert not wrong, "\n\n".join(wrong)


def test_every_reason_is_of_some_line() -> None:
    every = [line for page in PAGES for _, line in _lines(page)]
    for pattern in NOT_RUN:
        assert any(re.search(pattern, line) for line in every), pattern
