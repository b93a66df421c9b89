"""How many gates printed models have: benchmarks/cells.md.

`python -m benchmarks.cells [--only TEXT] [--seconds 600] [-o FILE]`

Yosys reads the module that `export --format verilog` prints, and makes gates of it (`synth -flatten`, then `abc` with
gates of two inputs, inverters and multiplexers): cells of Yosys's own library, of no process. Nothing is pipelined, and
adders, shifters and multipliers are those that Yosys chooses, so that these are sizes to compare with each other.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import time
from pathlib import Path
from tempfile import TemporaryDirectory

from mmaprobe.cli.line import StatusLine
from mmaprobe.reports.exports.verilog import module
from mmaprobe.smtmodel.tables.reference import parse_reference

ROWS = ["ieee/fma/f16", "ieee/fma/bf16", "ieee/fma/f32", "arm/neon/bfdot", "x86/avx10.2/vdpphps",
        "volta/mma/m8n8k4.f32.f16.f16.f32", "turing/mma/m16n8k8.f32.f16.f16.f32",
        "ampere/mma/m16n8k16.f32.f16.f16.f32", "hopper/mma/m16n8k16.f32.f16.f16.f32",
        "hopper/wgmma/m64n8k32.f32.e4m3.e4m3", "cdna3/mfma/f32_32x32x8_f16"]  # fmt: skip
SCRIPT = "read_verilog unit.v; synth -flatten -top unit; stat; ltp -noff"


def measured(reference: str, seconds: float) -> str:
    """A row of the table: products, gates, and gates on the longest path."""
    model, start = parse_reference(reference), time.monotonic()
    with TemporaryDirectory(prefix="mmaprobe-") as folder:
        (Path(folder) / "unit.v").write_text(module(model, "unit"), encoding="utf-8")
        try:
            done = subprocess.run(["yosys", "-p", SCRIPT], cwd=folder, capture_output=True, text=True, check=True,
                                  timeout=seconds)  # fmt: skip
        except subprocess.TimeoutExpired:
            return f"| `{reference}` | {model.length} | not in {seconds:g} s | | |"
    cells = re.findall(r"Number of cells: +(\d+)", done.stdout)[-1]
    path = re.findall(r"Longest topological path in \S+ \(length=(\d+)\)", done.stdout)[-1]
    return f"| `{reference}` | {model.length} | {int(cells):,} | {path} | {time.monotonic() - start:.0f} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", help="models whose name contains this")
    parser.add_argument("--seconds", type=float, default=600.0, help="seconds for a model")
    parser.add_argument("-o", "--output", type=Path)
    arguments = parser.parse_args()
    line, lines = StatusLine(), ["| model | products | cells | longest path | s |", "|---|---|---|---|---|"]
    for reference in ROWS:
        if arguments.only in reference:
            lines.append(measured(reference, arguments.seconds))
            line.say(lines[-1])
    if arguments.output:
        arguments.output.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
