"""Models as circuits: BTOR2 read by a second reader, AIGER by ABC, against the netlist of the module in Verilog."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import bitwuzla
import numpy as np
import pytest
from click.testing import CliRunner

from mmaprobe.cli.main import main
from mmaprobe.queries.search.samples import sample_rows, subnormal_rows
from mmaprobe.reports.exports.circuits import aiger, btor2
from mmaprobe.reports.exports.verilog import module, ports_of
from mmaprobe.smtmodel.evaluate.batch import evaluate_models
from mmaprobe.smtmodel.evaluate.model import Model
from mmaprobe.smtmodel.evaluate.operands import layout_of
from mmaprobe.smtmodel.tables.reference import parse_reference
from mmaprobe.smtmodel.units.unitfile import parse_unit
from tests.marks import some_slow

SMALL = """unit: small
formats: {a: e2m1, b: e2m1, c: e3m2, d: e3m2}
length: 2
roundings: {r: "round(e3m2, nearest_even)"}
steps: {d: "r(fused(c, a[0] * b[0], a[1] * b[1], F=3))"}
"""
MODELS = ["ieee/fma/f16", "ieee/fma/f16@flags=riscv", "volta/mma/m8n8k4.f32.f16.f16.f32", "rdna3/dot2/f32_f16",
          "riscv/zvbdota/vfwbdota16bf.n4", "cdna3/mfma/f32_32x32x8_f16", "arm/neon/smmla", "arm/neon/bfdot",
          "blackwell/tcgen05mma_block_scale/m64n8k64.block16.f32.e2m1.e2m1.ue4m3"]  # fmt: skip
BINARY: dict[str, Callable[[int, int, int], int]] = {
    "and": lambda x, y, w: x & y, "or": lambda x, y, w: x | y, "xor": lambda x, y, w: x ^ y,
    "add": lambda x, y, w: x + y, "sub": lambda x, y, w: x - y, "mul": lambda x, y, w: x * y,
    "sll": lambda x, y, w: x << min(y, w), "srl": lambda x, y, w: x >> min(y, w),
    "sra": lambda x, y, w: signed(x, w) >> min(y, w), "eq": lambda x, y, w: x == y, "iff": lambda x, y, w: x == y,
    "ult": lambda x, y, w: x < y, "ulte": lambda x, y, w: x <= y, "implies": lambda x, y, w: (x ^ 1) | y,
    "slt": lambda x, y, w: signed(x, w) < signed(y, w), "slte": lambda x, y, w: signed(x, w) <= signed(y, w),
}  # fmt: skip


def signed(value: int, width: int) -> int:
    return value - (value >> (width - 1) << width)


def small() -> Model:
    return Model("small.yaml", parse_unit(SMALL, "small.yaml"))


def without_c() -> Model:
    text = SMALL.replace("c: e3m2", "c: none").replace("fused(c, ", "fused(")
    return Model("small.yaml", parse_unit(text, "small.yaml"))


def words_of(model: Model, row: list[int]) -> dict[str, int]:
    """The word of each port: its elements side by side, the first one in the lowest bits."""
    words, layout = {}, layout_of(model)
    read = [pattern for place, pattern in enumerate(row) if place not in layout.unread]
    for name, fmt, count in ports_of(model):
        words[name] = sum(pattern << k * fmt.width for k, pattern in enumerate(read[:count]))
        read = read[count:]
    return words


def result_of(text: str, inputs: dict[str, int]) -> int:
    """What a file in BTOR2 gives: a second reading of its operations, on integers."""
    sorts, values, widths = dict[int, int](), dict[int, int](), dict[int, int]()
    for line in text.splitlines():
        if line.startswith(";"):
            continue
        number, kind, *rest = line.split()
        at = int(number)
        if kind == "sort":
            assert rest[0] == "bitvec"
            sorts[at] = int(rest[1])
            continue
        if kind == "output":
            assert rest[1] == "d"
            return values[int(rest[0])]
        width = widths[at] = sorts[int(rest[0])]
        args = [int(word) for word in rest[1:] if word.isdigit()]
        match kind:
            case "input":
                value = inputs[rest[1]]
            case "constd":
                value = args[0]
            case "not":
                value = ~values[args[0]]
            case "neg":
                value = -values[args[0]]
            case "slice":
                value = values[args[0]] >> args[2]
                assert width == args[1] - args[2] + 1
            case "uext":
                value = values[args[0]]
            case "sext":
                value = signed(values[args[0]], widths[args[0]])
            case "concat":
                value = values[args[0]] << widths[args[1]] | values[args[1]]
            case "ite":
                value = values[args[1] if values[args[0]] else args[2]]
            case _:
                value = BINARY[kind](values[args[0]], values[args[1]], widths[args[0]])
        values[at] = value & ((1 << width) - 1)
    raise AssertionError("no output")


@pytest.mark.parametrize("reference", ["small", "without c", *some_slow(MODELS, *MODELS[2:])])
def test_btor2_gives_the_results_of_the_model(reference: str) -> None:
    model = {"small": small, "without c": without_c}.get(reference, lambda: parse_reference(reference))()
    layout, text = layout_of(model), btor2(model)[0].decode()
    rows = np.concatenate([sample_rows(layout, 40), subnormal_rows(layout, 20)])
    wanted = evaluate_models([model], rows)[0].tolist()
    assert [result_of(text, words_of(model, row)) for row in rows.tolist()] == wanted
    assert len(set(wanted)) > 3


def test_another_program_reads_it(tmp_path: Path) -> None:
    """Bitwuzla's reader: with the inputs fixed, no other result is possible. It knows no outputs."""
    model = small()
    rows = sample_rows(layout_of(model), 20)
    for row, d in zip(rows[:6].tolist(), evaluate_models([model], rows[:6])[0].tolist(), strict=True):
        for asked, verdict in ((d, "unsat"), (d ^ 1, "sat")):
            lines = btor2(model)[0].decode().splitlines()
            number, _, result, _ = lines.pop().split()
            sorts = {line.split()[3]: line.split()[0] for line in lines if " sort " in line}
            names = {line.split()[3]: line.split() for line in lines if " input " in line}
            at = int(number)
            for name, word in {**words_of(model, row), "d": asked}.items():
                width = str(model.d.width if name == "d" else sum(
                    fmt.width * count for own, fmt, count in ports_of(model) if own == name))  # fmt: skip
                given = result if name == "d" else names[name][0]
                lines += [f"{at} constd {sorts[width]} {word}",
                          f"{at + 1} {'neq' if name == 'd' else 'eq'} {sorts['1']} {given} {at}",
                          f"{at + 2} constraint {at + 1}"]  # fmt: skip
                at += 3
            path = tmp_path / "query.btor2"
            path.write_text("\n".join([*lines, ""]), encoding="utf-8")
            manager = bitwuzla.TermManager()
            parser = bitwuzla.Parser(manager, bitwuzla.Options(), "btor2")
            parser.parse(str(path), True, True)
            assert str(parser.bitwuzla().check_sat()).split(".")[-1].lower() == verdict


@pytest.mark.compilers
@pytest.mark.skipif(shutil.which("yosys") is None, reason="Yosys is not installed (the package yosys)")
@pytest.mark.skipif(shutil.which("yosys-abc") is None, reason="yosys-abc is not installed (the package yosys-abc)")
@pytest.mark.parametrize("reference", ["small", *some_slow(MODELS[:2] + MODELS[6:7], *MODELS[:2], MODELS[6])])
def test_abc_finds_aiger_equal_to_the_netlist_of_the_module(tmp_path: Path, reference: str) -> None:
    model = small() if reference == "small" else parse_reference(reference)
    (tmp_path / "unit.aig").write_bytes(aiger(model)[0])
    text = module(model, "unit")
    (tmp_path / "unit.v").write_text(text, encoding="utf-8")
    changed = text.replace("assign d = ", "assign d = 1 ^ ")
    (tmp_path / "changed.v").write_text(changed, encoding="utf-8")
    for name, verdict in (("unit", "Networks are equivalent"), ("changed", "Networks are NOT EQUIVALENT")):
        script = f"read_verilog {name}.v; synth -flatten -top unit; aigmap; write_aiger other.aig"
        subprocess.run(["yosys", "-q", "-p", script], cwd=tmp_path, check=True, capture_output=True)
        asked = ["yosys-abc", "-c", "cec -n unit.aig other.aig"]
        assert verdict in subprocess.run(asked, cwd=tmp_path, capture_output=True, text=True).stdout


def test_the_command_writes_both(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("small.yaml").write_text(SMALL, encoding="utf-8")
    for wanted, message in (("btor2", "BTOR2, "), ("aiger", "AIGER, ")):
        result = CliRunner().invoke(main, ["export", "small.yaml", "--format", wanted, "-o", "unit"])
        assert (result.exit_code, f"unit: {message}" in result.output) == (0, True), result.output
    assert Path("unit").read_bytes().startswith(b"aig ")
    assert b"i0 a[0]\n" in Path("unit").read_bytes()
