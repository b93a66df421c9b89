"""Designs that Verilator and Icarus Verilog simulate: pipelines, handshakes, arrays, and mistakes."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner

from mmaprobe.cli.main import main
from mmaprobe.queries.search.samples import sample_rows
from mmaprobe.reports.exports.verilog import module
from mmaprobe.runner.devices import open_device
from mmaprobe.runner.protocol import DeviceError, DeviceUnavailableError
from mmaprobe.runner.simulated import SimulatedDevice
from mmaprobe.smtmodel.base.errors import InputError, ParameterError
from mmaprobe.smtmodel.evaluate.batch import evaluate_models
from mmaprobe.smtmodel.evaluate.operands import layout_of
from mmaprobe.smtmodel.inputs.vectors import Vector
from mmaprobe.smtmodel.tables.reference import parse_reference

PROGRAMS = {"icarus": "iverilog", "verilator": "verilator"}
SIMULATORS = [
    pytest.param(name, marks=[
        pytest.mark.skipif(shutil.which(program) is None, reason=f"{program} is not installed"),
        *([pytest.mark.slow] if name == "verilator" else []),  # it compiles a program of each design
    ])
    for name, program in PROGRAMS.items()
]  # fmt: skip
pytestmark = pytest.mark.compilers
MODEL = "volta/mma/m8n8k4.f32.f16.f16.f32"
STAGES = """
module stages(input clk, input rst, input [15:0] x0, x1, x2, x3, input [63:0] y, input [31:0] z, input on,
              output reg [31:0] q);
  reg [63:0] a, b; reg [31:0] c; wire [31:0] d;
  unit inner(.a(a), .b(b), .c(c), .d(d));
  always @(posedge clk)
    if (rst) q <= 0;
    else if (on) begin a <= {x3, x2, x1, x0}; b <= y; c <= z; q <= d; end
endmodule
"""
#: one input at a time, for a number of cycles that hangs on it
WAITING = """
`include "words.vh"
module waiting %s #(parameter int LEAST = 3) (
  input logic clk, rst_n, take, output logic ready, input %s, input `WORD y, input [31:0] z,
  output logic done, input logic go, output logic [31:0] q);
  logic [63:0] a, b; logic [31:0] c; logic [31:0] d; logic busy; logic [4:0] left;
  unit inner(.a(a), .b(b), .c(c), .d(d));
  assign ready = !busy, done = busy && left == 0, q = d;
  always_ff @(posedge clk or negedge rst_n)
    if (!rst_n) busy <= 0;
    else if (!busy) begin
      if (take) begin busy <= 1; a <= %s; b <= y; c <= z; left <= LEAST + y[3:0]; end
    end else if (left != 0) left <= left - 1;
    else if (go) busy <= 0;
endmodule
"""
PORTS = """a: x
b: y
c: z
d: q
clock: clk
reset_low: rst_n
valid_in: take
ready_in: ready
valid_out: done
ready_out: go
parameters: {LEAST: 5}
"""


def written(folder: Path, text: str, name: str = "design.sv") -> Path:
    (folder / name).write_text(text, encoding="utf-8")
    (folder / "unit.v").write_text(module(parse_reference(MODEL), "unit"), encoding="utf-8")
    return folder / name


def vectors(count: int) -> tuple[list[Vector], list[int]]:
    """Vectors of the model, and its results."""
    model = parse_reference(MODEL)
    layout = layout_of(model)
    rows = sample_rows(layout, count)
    return [Vector(model, layout.split(row)) for row in rows.tolist()], evaluate_models([model], rows)[0].tolist()


@pytest.mark.parametrize("simulator", SIMULATORS)
def test_a_pipeline_gives_the_results_of_the_model_at_its_latency(tmp_path: Path, simulator: str) -> None:
    path = written(tmp_path, STAGES)
    text = f"rtl:{tmp_path}/unit.v,{path},top=stages,a=x0+x1+x2+x3,b=y,c=z,d=q,on=1,reset=rst"
    asked, wanted = vectors(150)
    with open_device(f"{text},simulator={simulator}") as device:
        assert (type(device), device.description["latency"]) == (SimulatedDevice, 2)
        assert device.every(asked) == wanted
    with open_device(text) as device:  # as Yosys reads it
        assert (device.description["latency"], device.every(asked[:40])) == (2, wanted[:40])


@pytest.mark.parametrize("simulator", SIMULATORS)
def test_a_design_that_says_when_it_takes_inputs_and_has_results(tmp_path: Path, simulator: str) -> None:
    """An array of ports of a structure in a package, where the simulator knows these."""
    array = simulator == "verilator"
    kinds = ("import halves::*;", "half_t x [0:3]", "{x[3], x[2], x[1], x[0]}") if array else ("", "[63:0] x", "x")
    package = "package halves; typedef struct packed {logic s; logic [4:0] e; logic [9:0] f;} half_t; endpackage\n"
    path = written(tmp_path, (package if array else "") + WAITING % kinds)
    (tmp_path / "words.vh").write_text("`define WORD [63:0]\n", encoding="utf-8")
    (tmp_path / "ports.yaml").write_text(PORTS, encoding="utf-8")
    asked, wanted = vectors(150)
    text = f"rtl:{path},{tmp_path}/unit.v,top=waiting,include={tmp_path},ports={tmp_path}/ports.yaml"
    with open_device(f"{text},simulator={simulator}") as device:
        assert device.every(asked) == wanted
        assert "latency" not in device.description


@pytest.mark.skipif(shutil.which("iverilog") is None, reason="iverilog is not installed")
def test_the_netlist_is_what_is_proved(tmp_path: Path) -> None:
    written(tmp_path, "")
    text = f"rtl:{tmp_path}/unit.v,top=unit"
    run = CliRunner().invoke(main, ["compare", f"model:{MODEL}", f"{text},simulator=icarus", "--samples", "0"])
    assert f"to prove it: mmaprobe prove {MODEL} {text}\n" in run.output


@pytest.mark.skipif(shutil.which("iverilog") is None, reason="iverilog is not installed")
def test_what_is_no_answer_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    head = "module one(input clk, input [63:0] a, b, input [31:0] c, output reg [31:0] d);\n"
    end = ",simulator=icarus"
    for text, error, message in (
        (f"{head} always @(posedge clk) d <= d + a[31:0];\nendmodule\n", ParameterError, "undefined bits for all"),
        (f"{head} initial d = 0; always @(posedge clk) d <= d + a;\nendmodule\n", ParameterError, "it is no pipeline"),
        (f"{head} always @(posedge clk) d <= 0;\nendmodule\n", ParameterError, "latency=NUMBER"),
        (f"{head} assign wrong = ;\nendmodule\n", InputError, "Icarus Verilog: .*error"),
    ):
        with pytest.raises(error, match=message):
            open_device(f"rtl:{written(tmp_path, text)},top=one{end}")
    path = written(tmp_path, f"{head} always @(posedge clk) d <= a[0] ? b[31:0] : 32'bx;\nendmodule\n")
    with open_device(f"rtl:{path},top=one{end},latency=1") as device, pytest.raises(DeviceError, match="undefined"):
        device.every(vectors(20)[0])
    for more, message in (
        ("", "what is the input tick"), (",tick=0,d=e", "no output port e"),
        (",tick=0,reset=r", "reset=r: there is no"), (",ports=none.yaml", r"none\.yaml"), (",d=a+b", "d is one port"),
    ):  # fmt: skip
        path = written(tmp_path, "module one(input tick, input [63:0] a, b, output [31:0] d); endmodule\n")
        with pytest.raises(InputError, match=message):
            open_device(f"rtl:{path},top=one{end}{more}")
    (tmp_path / "ports.yaml").write_text("latency: -1\n")
    with pytest.raises(InputError, match=r"ports\.yaml:1: latency"):
        open_device(f"rtl:{path},top=one{end},tick=0,ports={tmp_path}/ports.yaml")
    with pytest.raises(InputError, match="one of verilator, icarus"):
        open_device(f"rtl:{path},top=one,simulator=other")
    monkeypatch.setenv("PATH", str(tmp_path))
    for name, program in PROGRAMS.items():
        with pytest.raises(DeviceUnavailableError, match=f"install the package {program}"):
            open_device(f"rtl:{path},top=one,simulator={name}")


@pytest.mark.skipif(shutil.which("iverilog") is None, reason="iverilog is not installed")
def test_results_that_do_not_come_end_the_run(tmp_path: Path) -> None:
    text = "module one(input clk, take, input [63:0] a, b, input [31:0] c, output [31:0] d, output done);\n"
    path = written(tmp_path, text + "  assign d = a[31:0], done = take & a[0];\nendmodule\n")
    with (
        open_device(f"rtl:{path},top=one,simulator=icarus,valid_in=take,valid_out=done") as device,
        pytest.raises(DeviceError, match=r"results? for 20 inputs"),
    ):
        device.every(vectors(20)[0])
