"""Families whose candidates the table does not have, or that no unit can have: nothing vanishes without a word."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import pytest

from hypotheses.family import build_family, families
from smtmodel.accumulator import Accumulator
from smtmodel.errors import InputError
from smtmodel.reference import parse_reference
from smtmodel.yamlfile import read_yaml
from tests.test_cli import run

VOLTA = "volta/mma/m8n8k4.f32.f16.f16.f32"
TWELVE = """\
id: twelve
formats: {a: f16, b: f16, c: f32, d: f32}
length: 12
parameters:
  block: [4, 12]
  fraction_bits: {from: 23, to: 25}
"""
CHAIN = """\
id: chain
formats: {a: f32, b: f32, c: f32, d: f32}
length: 4
parameters:
  operation: [fma_chain]
  output_rounding: [nearest_even]
  block: [1]
"""
PARTLY = TWELVE + "  carry_bits: [exact, 3]\n  partials: [unnormalised, normalised]\n"


def test_a_length_that_no_instruction_has(tmp_path: Path) -> None:
    """The device is one of the candidates: all of its products are asked, and it is found."""
    path = tmp_path / "twelve.yaml"
    path.write_text(TWELVE, encoding="utf-8")
    device = f"command:{sys.executable} -P -m cli.main device {VOLTA}@length=12,block=4"
    command = ["identify", str(path), "--device", device, "--solver", "bitwuzla", "--json"]
    document = json.loads(run(*command, code=0).stdout)
    decided = {name: document["decided"][name] for name in ("length", "block", "fraction_bits")}
    assert (document["verdict"], decided) == ("identified", {"length": 12, "block": 4, "fraction_bits": 23})
    base = build_family(read_yaml(TWELVE, "twelve.yaml")).base
    assert base.length == 12
    assert parse_reference(base.reference) == base


@pytest.mark.parametrize("shipped", list(families()))
def test_any_family_takes_another_length(shipped: str) -> None:
    file = families()[shipped].file
    assert file is not None
    text = Path(file.name).read_text(encoding="utf-8")
    base = build_family(read_yaml(re.sub(r"length: \d+", "length: 96", text), "changed.yaml")).base
    assert base.length == 96
    assert parse_reference(base.reference) == base


@pytest.mark.parametrize("length", [0, -4, 1025, 2048])
def test_impossible_lengths_are_bad_input(length: int) -> None:
    with pytest.raises(InputError, match=rf"f.yaml:3: length: {length} is impossible; .* from 1 to 1024"):
        build_family(read_yaml(TWELVE.replace("length: 12", f"length: {length}"), "f.yaml"))


def test_what_is_left_out_is_said(tmp_path: Path) -> None:
    path = tmp_path / "partly.yaml"
    path.write_text(PARTLY, encoding="utf-8")
    reason = "carry_bits: only a truncated sum of several terms wraps: carry_bits must be exact"
    said = f"left out: 6 of 24 combinations impossible: 6 x {reason}"
    vectors = ["separate", str(path), "--one", "--json"]
    asked = ["identify", str(path), "--device", f"model:{VOLTA}@length=12,block=4", "--solver", "bitwuzla", "--json"]
    for command in (vectors, asked):
        result = run(*command, code=0)
        assert said in result.stderr
        document = json.loads(result.stdout)
        assert document["candidates"] == 18
        assert document["impossible"] == {"combinations": 24, "left_out": 6, "reasons": {reason: 6}}


def test_no_candidate_left_is_bad_input(tmp_path: Path) -> None:
    """A chain of FMAs wants the zeros and overflows of IEEE 754, which the family does not give it."""
    path = tmp_path / "chain.yaml"
    path.write_text(CHAIN, encoding="utf-8")
    reason = " x zero_sign: with the operation fma_chain it must be ieee"
    for command in (["separate"], ["identify", "--device", "model:ieee/fma/f32@length=4"]):
        said = run(command[0], str(path), *command[1:], code=2).stderr
        assert f"error: {path}:4: parameters: no candidate is left for " in said
        assert reason in said
    path.write_text(TWELVE + "except:\n  - {block: [4, 12]}\n", encoding="utf-8")
    assert "every combination is excluded by `except`" in run("separate", str(path), code=2).stderr


def test_many_reasons_are_summed_up() -> None:
    left_out = families()["amd-mfma"].impossible
    assert left_out.combinations == left_out.count + 11722
    assert re.fullmatch(
        r"\d+ of \d+ combinations impossible: (\d+ x [^;]+; ){3}\d+ for \d+ other reasons", left_out.text()
    )


def test_a_family_for_other_formats_is_named() -> None:
    device = "model:hopper/wgmma/m64n8k32.f32.e4m3.e4m3"
    said = run("identify", "nvidia-f16", "--device", device, "--solver", "bitwuzla", code=1).stderr
    assert "nvidia-f16 is made for f16 f16 f32 f32, and the device was asked e4m3 e4m3 f32 f32: try nvidia-fp8" in said


def test_a_candidate_of_another_length_is_named_as_what_it_is() -> None:
    for candidate in build_family(read_yaml(TWELVE, "twelve.yaml")).candidates():
        accumulator: Accumulator = parse_reference(candidate.reference).accumulator
        assert accumulator == candidate.accumulator
