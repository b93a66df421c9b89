"""Families whose candidates the table does not have, or that no unit can have: nothing vanishes without a word."""

from __future__ import annotations

import json
import pickle
import re
import sys
import time
from pathlib import Path

import pytest

from mmaprobe.hypotheses.family import Impossible, build_family, families, parameters_of
from mmaprobe.smtmodel.arithmetic.formats import format_named
from mmaprobe.smtmodel.base.errors import InputError, OutOfTimeError, ParameterError, UnknownNameError
from mmaprobe.smtmodel.base.yamlfile import read_yaml
from mmaprobe.smtmodel.evaluate.model import Model
from mmaprobe.smtmodel.families.member import FUNCTIONS, FamilyFunction
from mmaprobe.smtmodel.families.parameters import FAMILIES, FAMILY, PARAMETERS
from mmaprobe.smtmodel.nodes import Scale
from mmaprobe.smtmodel.nodes.node import walk
from mmaprobe.smtmodel.tables.reference import member_of, parse_reference, with_parameters
from tests.command_line.test_cli import run
from tests.places import DOCS

pytestmark = pytest.mark.solvers

VOLTA = "volta/mma/m8n8k4.f32.f16.f16.f32"
TWELVE = """\
id: twelve
formats: {a: f16, b: f16, c: f32, d: f32}
length: 12
parameters:
  block: [4, 12]
  fraction_bits: {from: 23, to: 25}
"""
NORMALISED = TWELVE + "  carry_bits: 3\n  partials: normalised\n"
PARTLY = TWELVE + "  carry_bits: [exact, 3]\n  partials: [unnormalised, normalised]\n"


def test_a_length_that_no_instruction_has(tmp_path: Path) -> None:
    """The device is one of the candidates: all of its products are asked, and it is found."""
    path = tmp_path / "twelve.yaml"
    path.write_text(TWELVE, encoding="utf-8")
    device = f"command:{sys.executable} -P -m mmaprobe.cli.main device {VOLTA}@length=12,block=4"
    command = ["identify", str(path), "--device", device, "--solver", "bitwuzla", "--json"]
    document = json.loads(run(*command, code=0).stdout)
    assert (document["verdict"], document["decided"]) == ("identified", {"block": 4, "fraction_bits": 23})
    assert document["assumed"]["length"] == 12  # no candidate has another one, so that no answer decides it
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


def test_formats_that_no_instruction_takes() -> None:
    """bf16 results, and formats of one's own: candidates are named after a chain of fused multiply-adds."""
    for names in (("f16", "f16", "f32", "bf16"), ("e4m3_ieee", "binary8p3", "f32", "f32")):
        formats = ", ".join(f"{side}: {name}" for side, name in zip("abcd", names, strict=True))
        text = TWELVE.replace("a: f16, b: f16, c: f32, d: f32", formats)
        candidates = build_family(read_yaml(text, "own.yaml")).candidates()
        assert len(candidates) == 6
        for model in candidates:
            assert [getattr(model, side) for side in "abcd"] == [format_named(name) for name in names]
            assert parse_reference(model.reference).unit == model.unit


@pytest.mark.parametrize("length", [0, -4, 1025, 2048])
def test_impossible_lengths_are_bad_input(length: int) -> None:
    with pytest.raises(InputError, match=rf"f.yaml:3: length: {length} is impossible; .* from 1 to 1024"):
        build_family(read_yaml(TWELVE.replace("length: 12", f"length: {length}"), "f.yaml"))


def test_what_is_left_out_is_said(tmp_path: Path) -> None:
    path = tmp_path / "partly.yaml"
    path.write_text(PARTLY, encoding="utf-8")
    reason = "carry_bits: only a truncated sum of several terms wraps: carry_bits must be exact"
    message = f"left out: 6 of 24 combinations impossible: 6 x {reason}"
    vectors = ["separate", str(path), "--one", "--json"]
    asked = ["identify", str(path), "--device", f"model:{VOLTA}@length=12,block=4", "--solver", "bitwuzla", "--json"]
    for command in (vectors, asked):
        result = run(*command, code=0)
        assert message in result.stderr
        document = json.loads(result.stdout)
        assert document["candidates"] == 18
        assert document["impossible"] == {"combinations": 24, "left_out": 6, "reasons": {reason: 6}}


def test_no_candidate_left_is_bad_input(tmp_path: Path) -> None:
    """Sums that are normalised after every addition do not wrap."""
    path = tmp_path / "normalised.yaml"
    path.write_text(NORMALISED, encoding="utf-8")
    reason = "6 of 6 combinations impossible: 6 x carry_bits: only a truncated sum of several terms wraps"
    for command in (["separate"], ["identify", "--device", f"model:{VOLTA}@length=12,block=4"]):
        message = run(command[0], str(path), *command[1:], code=2).stderr
        assert f"error: {path}:4: parameters: no candidate is left for " in message
        assert reason in message


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        (TWELVE + "  group: 4\n", r"7: parameters.group: t-fdpa does not take it; .* `candidates`"),
        (TWELVE + "  late_sum_bits: 31\n", r"7: .*late_sum_bits: .*; tr-fdpa, gtr-fdpa take it; grids over other"),
        (TWELVE + "  family: late\n", "7: parameters.family: unknown family 'late'"),
        (TWELVE + "  family: []\n", "7: parameters.family: no values"),
        (TWELVE.replace("parameters:", "grids:"), "4: grids: unknown key"),
        (TWELVE.partition("parameters")[0], "1: a family has either `candidates`"),
        (TWELVE + "candidates: [{family: fma-chain}]\n", "1: a family has either `candidates`"),
        (TWELVE.partition("parameters")[0] + "candidates: []\n", "4: candidates: no grids"),
        (TWELVE.partition("parameters")[0] + "candidates: [{block: 4}]\n", r"4: candidates.0: a grid names its family"),
        (TWELVE.partition("parameters")[0] + "candidates:\n  - family: tfdpa\n",
         "5: candidates.0.family: unknown family 'tfdpa'; did you mean 't-fdpa'"),
        (TWELVE.partition("parameters")[0] + "candidates:\n  - family: fma-chain\n    block: 4\n",
         r"6: candidates.0.block: fma-chain does not take it"),
        (TWELVE.partition("parameters")[0] + "candidates:\n  - family: t-fdpa\n    length: 4\n",
         "6: candidates.0.length: it belongs beside `formats`"),
    ],
)  # fmt: skip
def test_what_a_family_file_cannot_say(changed: str, message: str) -> None:
    with pytest.raises(InputError, match=f"f.yaml:{message}"):
        build_family(read_yaml(changed, "f.yaml"))


def test_a_family_is_the_union_of_its_grids() -> None:
    """A grid takes the parameters of its own function; what two of them share is one candidate."""
    grids = """candidates:
  - {family: t-fdpa, block: [4, 12], fraction_bits: [23, 24]}
  - {family: t-fdpa, block: 4, fraction_bits: [24, 25], exponent_floor: [none, -132], floor_applies_to: maximum}
  - {family: fma-chain, output_rounding: nearest_even}
  - {family: tr-fdpa, fraction_bits: 24, late_fraction_bits: [30, 31]}
"""
    family = build_family(read_yaml(TWELVE.partition("parameters")[0] + grids, "f.yaml"))
    with pytest.raises(OutOfTimeError, match="time ran out when 0 candidates of twelve were made, of 11 combinations"):
        family.candidates(time.monotonic())
    found = [parameters_of(model) for model in family.candidates()]
    assert len(found) == 4 + 3 + 1 + 2  # 24 bits without a floor, whose reading has no effect, are there twice
    assert family.impossible.combinations == 4 + 4 + 1 + 2
    assert [values[FAMILY] for values in found].count("fma-chain") == 1
    late = [values for values in found if values[FAMILY] == "tr-fdpa"]
    assert [(values["late_fraction_bits"], values["block"]) for values in late] == [(30, 12), (31, 12)]
    assert family.values[FAMILY] == ("t-fdpa", "fma-chain", "tr-fdpa")
    assert family.values["block"] == (4, 12, 1)
    assert "carry_bits" not in family.values


@pytest.mark.parametrize("function", list(FUNCTIONS.values()), ids=list(FUNCTIONS))
def test_every_parameter_of_a_function_is_taken(function: FamilyFunction) -> None:
    """And no other is."""
    wanted = {"length": 16, "block": 16, "fraction_bits": 24, "scale_format": "ue8m0", "scale_block": 16, "group": 16}
    base = {name: value for name, value in wanted.items() if name in function.takes}
    assert function(**base).values["length"] == 16
    for name in set(PARAMETERS) - set(function.takes):
        with pytest.raises(ParameterError, match=f"{function.name} does not take it"):
            function(**base, **{name: None})
    assert not set(function.fixed) & set(function.takes)


@pytest.mark.parametrize("family", FAMILIES[3:])
def test_another_family_keeps_what_the_two_have_in_common(family: str) -> None:
    """And a reference says all of it, whatever was changed before."""
    row = parse_reference(f"{VOLTA}@fraction_bits=20,output_rounding=down,flush_outputs=true")
    model = with_parameters(row, {FAMILY: family})
    old, new = parameters_of(row), parameters_of(model)
    assert new[FAMILY] == family
    assert all(new[name] == old[name] for name in old.keys() & new.keys() - {FAMILY})
    assert {"length", "output_rounding", "flush_outputs"} <= new.keys()
    back = with_parameters(model, {FAMILY: "t-fdpa"})
    for found in (model, back):
        assert parse_reference(found.reference) == found


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ("late_rounding=up", "t-fdpa does not take it; tr-fdpa, gtr-fdpa, grid-fdpa take it"),
        ("family=e-fdpa,fraction_bits=3", "fraction_bits: e-fdpa does not take it"),
        ("family=tfdpa", "family: unknown value 'tfdpa'; did you mean 't-fdpa'"),
        ("family=st-fdpa", "scale_format: the family needs one"),
        ("fraction_bitz=3", "unknown parameter 'fraction_bitz'; did you mean 'fraction_bits'"),
    ],
)
def test_what_a_family_does_not_have(changes: str, message: str) -> None:
    with pytest.raises((ParameterError, UnknownNameError), match=message):
        parse_reference(f"{VOLTA}@{changes}")


def test_scale_factors_are_not_lost() -> None:
    scaled = "rtx-blackwell/mma_block_scale/m16n8k32.block32.f32.e4m3.e4m3.f32.ue8m0"
    with pytest.raises(ParameterError, match="e-fdpa takes no scale factors, which the unit has"):
        parse_reference(f"{scaled}@family=e-fdpa")
    assert parse_reference(f"{scaled}@family=t-fdpa").unit == parse_reference(scaled).unit
    running = parse_reference(f"{scaled}@partials=normalised").unit
    assert sum(isinstance(node, Scale) for node in walk(running.result)) == 32


def test_many_reasons_are_summed_up() -> None:
    left_out = Impossible(20, {"one": 4, "two": 3, "three": 2, "four": 1, "five": 1})
    message = "11 of 20 combinations impossible: 4 x one; 3 x two; 2 x three; 2 for 2 other reasons"
    assert left_out.text() == message


@pytest.mark.slow
def test_a_family_for_other_formats_is_named() -> None:
    device = "model:hopper/wgmma/m64n8k32.f32.e4m3.e4m3"
    message = run("identify", "nvidia-f16", "--device", device, "--solver", "bitwuzla", code=1).stderr
    assert (
        "nvidia-f16 is made for f16 f16 f32 f32, and the device was asked e4m3 e4m3 f32 f32: try nvidia-fp8" in message
    )
    assert "without FAMILY, `identify` builds the unit" in message
    assert "a31 = " not in message  # no one vector is the reason


def test_a_candidate_of_another_length_is_named_as_what_it_is() -> None:
    for candidate in build_family(read_yaml(TWELVE, "twelve.yaml")).candidates():
        assert parse_reference(candidate.reference) == candidate


def test_a_candidate_makes_its_unit_when_it_is_read() -> None:
    for candidate in build_family(read_yaml(TWELVE, "twelve.yaml")).candidates():
        assert "unit" not in vars(candidate)
        sent = pickle.loads(pickle.dumps(candidate))  # as a process of simulations gets it
        with pytest.raises(AttributeError, match="'Model' object has no attribute 'units'"):
            _ = candidate.units  # type: ignore[attr-defined]
        made = Model.of(candidate.reference, format_named("f16"), format_named("f16"), format_named("f32"),
                        member_of(candidate))  # fmt: skip
        assert sent.unit == candidate.unit == made.unit
        assert candidate.unit is candidate.unit


def test_the_page_lists_the_functions() -> None:
    page = (DOCS / "identify.md").read_text(encoding="utf-8")
    rows = [f"| `{function.name}` | {function.about} | {function.source} |" for function in FUNCTIONS.values()]
    assert "\n".join(rows) in page
