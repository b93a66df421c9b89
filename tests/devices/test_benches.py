"""Files for designers' benches: words for $readmemh and conditions as a module, in a simulation by Icarus, and a test
of cocotb, each with a design that is the model and with one that is not."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from collections import Counter
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

from mmaprobe.cli.main import main
from mmaprobe.queries.covering.cover import Cover, Covering
from mmaprobe.queries.covering.report import vectors_of
from mmaprobe.queries.kernel.cases.conditions import conditions_of, possible
from mmaprobe.queries.search.samples import sample_rows, subnormal_rows, tie_rows
from mmaprobe.reports.exports.verilog import Printed
from mmaprobe.smtmodel.evaluate.operands import layout_of
from mmaprobe.smtmodel.inputs.vectors import Vector
from mmaprobe.smtmodel.tables.reference import parse_reference

FMA, NAME = "ieee/fma/f16", "ieee_fma_f16"
BENCH = """module bench;
  reg [63:0] words [0:COUNT-1];
  reg [63:0] word;
  wire [15:0] d;
  wire [CASES-1:0] met;
  reg [CASES-1:0] hit;
  integer i, wrong;
  ieee_fma_f16 unit(.a(word[15:0]), .b(word[31:16]), .c(word[47:32]), .d(d));
  ieee_fma_f16_conditions conditions(.a(word[15:0]), .b(word[31:16]), .c(word[47:32]), .d(d), .q(word[63:48]), .met(met)
    WIRES);
  initial begin
    $readmemh("vectors.hex", words);
    hit = 0; wrong = 0;
    for (i = 0; i < COUNT; i = i + 1) begin
      word = words[i]; #1;
      hit = hit | met;
      if (d !== word[63:48]) wrong = wrong + 1;
    end
    $display("%0d %b", wrong, hit);
  end
endmodule
"""
WRONG = ("sum_negative =", "sum_negative = 1'b1 ^")
icarus = pytest.mark.skipif(shutil.which("iverilog") is None, reason="Icarus is not installed (the package iverilog)")
pytestmark = pytest.mark.compilers


@cache
def covering() -> Covering:
    found = Covering(parse_reference(FMA), pairs=False, changes=[])
    found.sample(lambda text: None)
    return found


@cache
def cover() -> Cover:
    return covering().finished()


def on_wires() -> list[int]:
    """The places of the conditions that wires tell."""
    return [place for place, one in enumerate(covering().singles) if one.flaw is None]


def exported(source: object, kind: str, path: Path) -> str:
    result = CliRunner().invoke(main, ["export", str(source), "--format", kind, "-o", str(path)])
    assert result.exit_code == 0, result.output
    return path.read_text(encoding="utf-8")


def vectors(folder: Path) -> Path:
    path = folder / "cover.jsonl"
    path.write_text("".join(json.dumps(vector.to_json()) + "\n" for vector in vectors_of(cover())), encoding="utf-8")
    return path


def simulated(folder: Path, change: tuple[str, str] = ("", "")) -> tuple[int, str]:
    """The number of wrong results, and the conditions met, the last one first."""
    text = exported(FMA, "verilog", folder / "unit.v")
    conditions = exported(FMA, "coverage", folder / "conditions.sv")
    exported(vectors(folder), "memh", folder / "vectors.hex")
    if change[0]:
        assert text.count(change[0]) == 1
        (folder / "unit.v").write_text(text.replace(*change), encoding="utf-8")
    head = conditions[: conditions.index(");")]
    wires = [name for name in re.findall(r"input +(?:\[\d+:0\] )?(\w+)", head) if name not in ("a", "b", "c", "d", "q")]
    bench = BENCH.replace("COUNT", str(len(cover().rows))).replace("CASES", str(len(on_wires())))
    bench = bench.replace("WIRES", "".join(f", .{wire}(unit.{wire})" for wire in wires))
    assert len(wires) > 5
    (folder / "bench.v").write_text(bench, encoding="utf-8")
    sources = ["bench.v", "unit.v", "conditions.sv"]
    subprocess.run(["iverilog", "-g2012", "-o", "bench", *sources], cwd=folder, check=True)
    output = subprocess.run(
        ["vvp", "-n", "bench"], cwd=folder, check=True, capture_output=True, text=True
    ).stdout.split()
    return int(output[0]), output[1]


@icarus
def test_a_simulation_of_the_words_meets_the_conditions(tmp_path: Path) -> None:
    wrong, met = simulated(tmp_path)
    assert wrong == 0
    rows, cases = np.array(cover().rows, dtype=np.uint64), np.arange(len(covering().singles))
    reached = covering()._hits(rows, cases, None).any(axis=0)[on_wires()]
    assert met == "".join(str(int(flag)) for flag in reached[::-1])
    assert 400 < met.count("1") < len(met)


@icarus
def test_a_simulation_of_another_design_gives_other_results(tmp_path: Path) -> None:
    assert simulated(tmp_path, WRONG)[0] > 100


@pytest.mark.skipif(shutil.which("yosys") is None, reason="Yosys is not installed (the package yosys)")
def test_conditions_are_statements_for_a_tool_that_looks_for_inputs(tmp_path: Path) -> None:
    exported(FMA, "coverage", tmp_path / "conditions.sv")
    counts = f"select -assert-count {len(on_wires())} t:$cover; select -assert-count 1 t:$assert"
    script = f"read_verilog -sv -formal -DCOVERS -DASSERTIONS conditions.sv; {counts}"
    subprocess.run(["yosys", "-q", "-p", script], cwd=tmp_path, check=True)


@icarus
@pytest.mark.skipif(find_spec("cocotb") is None, reason="cocotb is not installed")
@pytest.mark.parametrize("change", [("", ""), WRONG], ids=["same", "other"])
def test_cocotb_reports_what_was_hit_and_what_is_wrong(tmp_path: Path, change: tuple[str, str]) -> None:
    text = exported(FMA, "verilog", tmp_path / "unit.v")
    (tmp_path / "unit.v").write_text(text.replace(*change) if change[0] else text, encoding="utf-8")
    test = exported(vectors(tmp_path), "cocotb", tmp_path / "test_cover.py")
    report, output = by_cocotb(tmp_path, test)
    assert all(report["hits"].values()), output
    assert len(report["hits"]) > 400
    assert bool(report["wrong"]) == bool(change[0])


def by_cocotb(folder: Path, test: str) -> tuple[dict[str, Any], str]:
    """The report of a test of cocotb, which is run as its first lines say, and the output."""
    commands = [line.strip() for line in test[: test.index("import json")].splitlines() if line.startswith("    ")]
    assert [line.split()[0] for line in commands] == ["export", "make"]
    path = f"{Path(sys.executable).parent}:/usr/bin:/bin"
    done = subprocess.run(["bash", "-c", "\n".join(commands)], cwd=folder, capture_output=True, text=True,
                          env={"PATH": path, "MMAPROBE_REPORT": str(folder / "report.json")})  # fmt: skip
    report: dict[str, Any] = json.loads((folder / "report.json").read_text(encoding="utf-8"))
    return report, done.stdout


@pytest.mark.skipif(shutil.which("verilator") is None, reason="Verilator is not installed (the package verilator)")
@pytest.mark.parametrize("stages", [0, 2])
def test_verilator_warns_of_nothing_in_a_printed_unit_and_its_conditions(tmp_path: Path, stages: int) -> None:
    module = CliRunner().invoke(main, ["export", FMA, "--format", "verilog", "--stages", str(stages)]).stdout
    (tmp_path / "unit.v").write_text(module, encoding="utf-8")
    exported(FMA, "coverage", tmp_path / "conditions.sv")
    bound = ["conditions.sv", "-DBOUND", "-DCOVERS", "-DASSERTIONS", f"-DRESULT={NAME}.d"] if not stages else []
    lint = ["verilator", "--lint-only", "-Wall", "--top-module", NAME, "unit.v", *bound]
    done = subprocess.run(lint, cwd=tmp_path, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


#: a design with ports, a clock, a reset and an enable of its own around the unit, in which `d` is registered twice
MINE = """module mine(input ck, rst_n, en, input [7:0] x0, x1, input [15:0] y, z, output reg [15:0] q);
  wire [15:0] d; reg [15:0] one;
  ieee_fma_f16 unit(.a({x1, x0}), .b(y), .c(z), .d(d));
  always @(posedge ck) if (!rst_n) q <= 16'hx; else if (en) begin one <= d; q <= one; end
endmodule
"""
PORTS = "a=x0+x1,b=y,c=z,d=q,top=mine,clock=ck,reset_low=rst_n,en=1,latency=2"


@icarus
@pytest.mark.skipif(find_spec("cocotb") is None, reason="cocotb is not installed")
@pytest.mark.parametrize(
    ("ports", "design"),
    [
        (PORTS, MINE),
        (
            PORTS.replace(",latency=2", ""),
            MINE.replace("output reg", "output").replace("q <= one;", "").replace("q <= 16'hx", "one <= 0")
            .replace("endmodule", "  assign q = d;\nendmodule"),
        ),
    ],
    ids=["a pipeline", "a clock and no register"],
)  # fmt: skip
def test_a_test_of_cocotb_drives_the_ports_that_are_named(tmp_path: Path, ports: str, design: str) -> None:
    """Of the printed unit within another design, by the commands of the test's first lines."""
    text = exported(FMA, "verilog", tmp_path / "unit.v")
    (tmp_path / "unit.v").write_text(text + design, encoding="utf-8")
    vectors(tmp_path)
    path = tmp_path / "test_cover.py"
    result = CliRunner().invoke(
        main, ["export", str(tmp_path / "cover.jsonl"), "--format", "cocotb", "--ports", ports, "-o", str(path)]
    )
    assert result.exit_code == 0, result.output
    report, output = by_cocotb(tmp_path, path.read_text(encoding="utf-8"))
    assert (report["wrong"], all(report["hits"].values())) == ([], True), output


@pytest.mark.parametrize(("ports", "message"), [
    ("scale_a=s", "ieee/fma/f16 has no scale_a; it has a, b, c, d"), ("a=x+y+z", "not those of 3 equal ports"),
    ("design.v", "it is written OPERAND=PORT"), ('a=x"', "is no name of a port"), ("latency=2", "need a clock"),
    ("ready_in=r,clock=c", "reads no ready_in"), ("d=q+r", "d is one port"), ("a=x,a=y", "a is given twice"),
])  # fmt: skip
def test_ports_that_a_test_of_cocotb_cannot_drive(tmp_path: Path, ports: str, message: str) -> None:
    result = CliRunner().invoke(main, ["export", str(vectors(tmp_path)), "--format", "cocotb", "--ports", ports])
    assert (result.exit_code, message in result.output) == (2, True), result.output


@pytest.mark.parametrize("reference", [FMA, "volta/mma/m8n8k4.f32.f16.f16.f32"])
def test_the_table_of_conditions_has_each_of_them(tmp_path: Path, reference: str) -> None:
    """Ranges spelt out, the table has the steps, aspects and cases of all conditions."""
    one = Printed(parse_reference(reference))
    conditions = possible(conditions_of(parse_reference(reference), one.layout, one.operands, one.evaluation))
    wanted = Counter((one.step, re.sub(" [0-9]+$", "", one.aspect), one.asked) for one in conditions)
    found = Counter[tuple[str, str, str]]()
    for line in exported(reference, "conditions", tmp_path / "conditions.md").splitlines()[4:]:
        steps, kind, _, cases = line.strip("| ").split(" | ")
        of_steps = [step.split(", ")[0] for step in spelt(steps)]
        found.update((step, kind, case) for step in of_steps for case in spelt(cases))
    assert found == wanted


def spelt(cell: str) -> list[str]:
    """The texts of a cell, each range as its members."""
    every = []
    for text in cell.split("; "):
        if (span := re.search(r"(-?[0-9]+)\.\.(-?[0-9]+)", text)) is None:
            every.append(text)
            continue
        numbers = range(int(span[1]), int(span[2]) + 1)
        every += [text[: span.start()] + str(number) + text[span.end() :] for number in numbers]
    return every


RISCV = """#define RVTEST_RV64UF
#define TESTNUM gp
#define RVTEST_CODE_BEGIN .text; .globl _start; _start: .option norelax
#define TEST_PASSFAIL li a0, 0; li a7, 93; ecall; fail: li a0, 1; li a7, 93; ecall
#define RVTEST_CODE_END
#define RVTEST_DATA_BEGIN
#define RVTEST_DATA_END
"""
TOOLS = ["cpp", "riscv64-linux-gnu-as", "riscv64-linux-gnu-ld", "qemu-riscv64"]


@pytest.mark.skipif(not all(map(shutil.which, TOOLS)), reason=f"not all of {', '.join(TOOLS)} are installed")
@pytest.mark.parametrize("reference", ["ieee/fma/f16", "ieee/fma/f32", "ieee/fma/f64"])
def test_a_test_for_riscv_passes_in_an_emulator(tmp_path: Path, reference: str) -> None:
    """And fails where one result, or one exception, is another."""
    model = parse_reference(reference)
    layout, texts = layout_of(model), list[str]()
    for row in np.concatenate([sample_rows(layout, 200), tie_rows(layout, model.d, 50), subnormal_rows(layout, 100)]):
        texts.append(json.dumps(Vector(model, layout.split(row.tolist())).to_json()) + "\n")
    (tmp_path / "vectors.jsonl").write_text("".join(texts), encoding="utf-8")
    text = exported(tmp_path / "vectors.jsonl", "riscv", tmp_path / "test.S")
    (tmp_path / "riscv_test.h").write_text(RISCV, encoding="utf-8")
    (tmp_path / "test_macros.h").write_text("", encoding="utf-8")
    last = next(line for line in reversed(text.splitlines()) if line.startswith("  ."))
    words = last.split("  #")[0].split(", ")
    wrong_d = last.replace(words[3], f"{int(words[3], 16) ^ 1:#x}")
    wrong_flags = last.replace(f", {words[4]}  #", f", {int(words[4]) ^ 1}  #")
    for changed, status in ((last, 0), (wrong_d, 1), (wrong_flags, 1)):
        assert (changed != last) == bool(status)
        (tmp_path / "test.S").write_text(text.replace(last, changed), encoding="utf-8")
        for command in (
            "cpp -P test.S -o test.s", "riscv64-linux-gnu-as -march=rv64gc_zfh test.s -o test.o",
            "riscv64-linux-gnu-ld test.o -o test",
        ):  # fmt: skip
            subprocess.run(command.split(), cwd=tmp_path, check=True)
        emulated = ["qemu-riscv64", "-cpu", "rv64,Zfh=true", "./test"]
        assert subprocess.run(emulated, cwd=tmp_path).returncode == status


def test_vectors_of_another_unit_are_no_test_for_riscv(tmp_path: Path) -> None:
    other = parse_reference("ieee/fma/bf16")
    path = tmp_path / "vectors.jsonl"
    path.write_text(json.dumps(Vector(other, layout_of(other).split([0, 0, 0])).to_json()) + "\n", encoding="utf-8")
    result = CliRunner().invoke(main, ["export", str(path), "--format", "riscv"])
    assert (result.exit_code, "has vectors of ieee/fma/f16, ieee/fma/f32" in result.output) == (2, True), result.output


def test_the_heads_of_exported_conditions_say_how_their_numbers_relate(tmp_path: Path) -> None:
    every, shown = len(covering().singles), len(on_wires())
    assert f", {every} in all: those of single inputs" in exported(FMA, "conditions", tmp_path / "conditions.md")
    head = exported(FMA, "coverage", tmp_path / "conditions.sv").split("module ")[0]
    assert f"// {shown} conditions: those of single inputs" in head
    assert f"// but for the {every - shown} that ask" in head
    reached = {text for vector in vectors_of(cover()) for text in vector.extra["reaches"]}
    assert f"CONDITIONS: those that some vector reaches ({len(reached)})" in exported(
        vectors(tmp_path), "cocotb", tmp_path / "test_cover.py"
    )
