"""The command `explain`: files, JSON, a second model, colours."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from mmaprobe.cli.main import main
from mmaprobe.reports.bits_text import Canvas
from mmaprobe.reports.evaluation_text import draw
from mmaprobe.smtmodel.base.wording import ranges_text
from mmaprobe.smtmodel.nodes.trace import Name, Stage
from tests.explain.test_explain import AMPERE, EQUATION_10, HOPPER, VOLTA, drawn, explained, run


def test_explain_with_a_second_model() -> None:
    lines = run("explain", AMPERE, json.dumps(EQUATION_10), "--and", HOPPER).stdout.splitlines()
    assert lines[-1] == "first divergence: alignment: block0.aligned[2]: 0 | 2^-2"
    marked = [line for line in lines if "<-- differs" in line]
    assert marked == [
        "     2 -  -2  .|.........................|1  <-- differs",
        "     2 -  -2  .|.........................1|  <-- differs",
    ]


def test_explain_as_json() -> None:
    document = json.loads(run("explain", AMPERE, json.dumps(EQUATION_10), "--and", HOPPER, "--json").stdout)
    first, second = document["evaluations"]
    assert (first["d"], first["real"], second["d"]) == ("bf000000", "-2^-1", "bf400000")
    signals = {signal["name"]: signal for signal in first["signals"]}
    aligned = signals["block0.aligned[0]"]
    assert (int(aligned["value"], 16), aligned["scale"], aligned["real"]) == (1 << 24, -1, "2^23")
    assert signals["block0.max_exponent"]["real"] == "23"
    assert signals["block1.result"]["real"] == "-2^-1"
    assert document["difference"]["stage"] == "alignment"
    alone = json.loads(run("explain", AMPERE, json.dumps(EQUATION_10), "--json").stdout)
    assert (alone["difference"], len(alone["evaluations"])) == (None, 1)


def test_rows_of_files(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    rows = [{"model": VOLTA, **EQUATION_10}, {"model": AMPERE, **EQUATION_10, "d": "bf000000"}]
    path.write_text("\n" + "\n".join(json.dumps(row) for row in rows) + "\n", encoding="utf-8")
    assert run("explain", VOLTA, str(path)).stdout.splitlines()[-1].startswith("d = 00000000")
    lines = run("explain", AMPERE, f"{path}:3").stdout.splitlines()
    assert lines[-1] == "observed: bf000000  -2^-1, as the model has it"
    assert run("explain", VOLTA, "-", stdin=json.dumps(EQUATION_10)).stdout
    for line in (0, 1, 9):
        message = run("explain", VOLTA, f"{path}:{line}", code=2).stderr
        assert str(path) in message


@pytest.mark.parametrize(
    ("model", "vector", "message"),
    [
        (VOLTA, "{", "VECTOR: not JSON"),
        (VOLTA, "nosuch.jsonl", "nosuch.jsonl: no such file; a vector is a JSON object, or FILE:LINE"),
        (VOLTA, '{"a": ["xyz"], "b": ["0"], "c": "0"}', "VECTOR: a[0]: 'xyz' is not hexadecimal"),
        (VOLTA, '{"a": ["1", "2", "3", "4", "5"], "b": ["1", "2", "3", "4", "5"], "c": "0"}', "a: 5 elements, but"),
        (VOLTA, json.dumps({"model": "ieee/fma/f32", "a": ["0"], "b": ["0"], "c": "0"}), "the vector's format is f32"),
        (VOLTA, json.dumps({**EQUATION_10, "d": "q"}), "VECTOR: d: 'q' is not hexadecimal"),
        ("volta/mma/nothing", json.dumps(EQUATION_10), "unknown model"),
        ("dot.sv", VOLTA, "dot.sv: a design, where a model is wanted: --device rtl:FILE,top=NAME asks it"),
        ("rtl/dot.vhd", VOLTA, "rtl/dot.vhd: a design, where a model is wanted"),
        ("vectors.jsonl", VOLTA, "vectors.jsonl: a file of vectors, where a model is wanted"),
    ],
)
def test_bad_input(model: str, vector: str, message: str) -> None:
    result = run("explain", model, vector, code=2)
    assert result.stdout == ""
    assert result.stderr.startswith("error: ")
    assert message in result.stderr


def test_zero_products_beyond_a_models_length_are_left_out() -> None:
    row = {"model": AMPERE, "a": ["3c00"] + ["0000"] * 15, "b": ["3c00"] * 16, "c": "00000000"}
    assert run("explain", VOLTA, json.dumps(row)).stdout.endswith("  1\n")


def test_colours_only_on_request() -> None:
    explanation = explained(AMPERE, **EQUATION_10)
    canvas = Canvas(colour=True, marked=Name("block0.", Stage.ALIGNED, "2"))
    draw(explanation, canvas)
    assert any("\x1b[" in line for line in canvas.lines)
    assert "\x1b[" not in "".join(drawn(explanation))
    assert "\x1b[" not in run("explain", AMPERE, json.dumps(EQUATION_10)).stdout


def test_ranges() -> None:
    assert ranges_text([0, 1, 2, 5, 7, 8]) == "0-2, 5, 7-8"


def test_units_of_other_formats_are_not_compared() -> None:
    row = '{"a": ["3c00"], "b": ["3c00"], "c": "3f800000"}'
    other = "hopper/mma/m16n8k16.f32.bf16.bf16.f32"
    result = CliRunner().invoke(main, ["explain", "hopper/mma/m16n8k16.f32.f16.f16.f32", row, "--against", other])
    assert result.exit_code == 2
    assert "another format of a" in result.output


def test_an_element_of_a_product_with_scale_factors_is_refused(tmp_path: Path) -> None:
    for name in ("a", "b"):
        np.save(tmp_path / f"{name}.npy", np.full((32, 32), 0x38, np.uint8))
    files = [str(tmp_path / "a.npy"), str(tmp_path / "b.npy")]
    unit = "rtx-blackwell/mma_block_scale/m16n8k32.block32.f32.e4m3.e4m3.f32.ue8m0"
    result = CliRunner().invoke(main, ["explain", unit, *files, "--element", "1,1"])
    assert result.exit_code == 2
    assert "takes scale factors" in result.output
