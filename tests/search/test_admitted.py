"""Restrictions of inputs that admit nothing, or zeros alone: decided exactly, and never a vacuous proof."""

from __future__ import annotations

import json
from itertools import product
from pathlib import Path

import numpy as np
import pytest
import yaml
from click.testing import CliRunner, Result

from mmaprobe.cli.main import main
from mmaprobe.queries.kernel.questions.problem import Problem, admits
from mmaprobe.queries.search.admitted_rows import admitted_rows
from mmaprobe.queries.search.samples import sample_rows
from mmaprobe.smtmodel.arithmetic.formats import FORMATS, Format, format_named
from mmaprobe.smtmodel.base.errors import ParameterError
from mmaprobe.smtmodel.carriers.arrays import ArrayCarrier
from mmaprobe.smtmodel.evaluate.batch import to_integers
from mmaprobe.smtmodel.evaluate.model import Model
from mmaprobe.smtmodel.evaluate.operands import Layout, Operands
from mmaprobe.smtmodel.inputs.admitted import ExponentRange, Inputs, admitted
from mmaprobe.smtmodel.tables.reference import member_of, parse_reference

pytestmark = pytest.mark.solvers

VOLTA = "volta/mma/m8n8k4.f32.f16.f16.f32"
SCALED = "blackwell/tcgen05mma_block_scale/m64n8k64.block32.f32.e2m1.e2m1.ue8m0@length=32,block=32"
FLAGS = ("finite", "nonnegative", "nonzero", "normal", "products_below_two")
QUESTION = {
    "id": "mine", "question": "?", "source": "a paper", "model": "ampere/mma/m16n8k8.f32.bf16.bf16.f32",
    "hypotheses": {"two": {"carry_bits": 2}, "three": {"carry_bits": 3}}, "expect": "equal",
}  # fmt: skip
EMPTY = {"nonzero": True, "exponents": {"min": 200, "max": 300}}


def run(*arguments: str) -> Result:
    return CliRunner().invoke(main, list(arguments))


def admitted_patterns(fmt: Format, inputs: Inputs) -> set[int]:
    """Every pattern of a format that is the factor a of some admitted input, by enumeration. b is the same pattern, or
    where it matters zero and powers of two: at every exponent, of f16 at those about which its windows lie."""
    unit = parse_reference(f"{VOLTA}@length=1,block=1")
    model = Model.of("any", fmt, fmt, FORMATS["f32"], member_of(unit))
    rows = [(x, x, 0) for x in range(1 << fmt.width)]
    if inputs.products_below_two:
        fields = range(1 << fmt.exponent) if fmt.width <= 8 else (0, 1, 15, 30)
        rows = [(x, field << fmt.fraction, 0) for x in range(1 << fmt.width) for field in fields]
    found = _admits(model, inputs.model_copy(update={"zero_terms": (1,)}), rows)
    return {x for (x, _, _), one in zip(rows, found, strict=True) if one}


def _admits(model: Model, inputs: Inputs, rows: list[tuple[int, int, int]]) -> list[bool]:
    carrier, table = ArrayCarrier(), np.array(rows, dtype=np.uint64)
    x, y, c = (carrier.lanes(np.ascontiguousarray(table[:, k]), fmt.width)
               for k, fmt in enumerate((model.a, model.b, model.c)))  # fmt: skip
    with np.errstate(over="ignore"):
        return [bool(one) for one in to_integers(admits(inputs, model, Operands((x,), (y,), c)), len(rows))]


def test_integers_are_normal_and_have_the_significands_that_explain_shows() -> None:
    """Of int8 only 0 and -128 counted as normal, and each pair's product below 2^15 as below two."""
    any_unit = member_of(parse_reference(f"{VOLTA}@length=1,block=1"))
    model = Model.of("any", FORMATS["int8"], FORMATS["int8"], FORMATS["f32"], any_unit)
    values = range(-128, 128)
    rows = [(x % 256, y % 256, 0) for x in values for y in values]
    assert all(_admits(model, Inputs(normal=True), rows))
    assert _admits(model, Inputs(products_below_two=True), rows) == [abs(x * y) < 2**13 for x in values for y in values]


WINDOWS = {
    "e2m1": [None, *((low, high) for low in range(-2, 5) for high in range(low, 5))],
    "e4m3": [None, (-20, -9), (-9, -7), (-7, -7), (-6, -6), (-6, 40), (8, 8), (9, 9), (9, 60), (-60, 60)],
    "f16": [(-30, -15), (-15, -14), (15, 16), (16, 16)],
}


@pytest.mark.parametrize("name", WINDOWS)
def test_what_is_admitted_by_enumeration(name: str) -> None:
    """Every combination of restrictions, against all patterns of the format."""
    fmt = FORMATS[name]
    for window, *chosen in product(WINDOWS[name], *[(False, True)] * len(FLAGS)):
        exponents = None if window is None else ExponentRange(min=window[0], max=window[1])
        if name == "f16" and not all(chosen) and (chosen[0] or chosen[1] or chosen[4]):
            continue  # it has 65,536 patterns: fewer combinations
        inputs = Inputs(**dict(zip(FLAGS, chosen, strict=True)), exponents=exponents)
        found = admitted_patterns(fmt, inputs)
        zeros = {0, fmt.sign_bit}
        expected = "nothing" if not found else "zeros" if found <= zeros else "numbers"
        assert admitted(inputs, fmt) == expected, inputs


@pytest.mark.parametrize("arguments", [
    ("prove", VOLTA, f"{VOLTA}@carry_bits=2", "--inputs", "exponents=100..110,nonzero"),
    ("prove", "--property", "exact", VOLTA, "--inputs", "nonzero,exponents=30..40"),
    ("prove", "--property", "monotonic-product", VOLTA, "--inputs", "exponents=30..40"),
    ("prove", "--property", "sign-symmetric", VOLTA, "--inputs", "nonzero,exponents=-40..-30"),
    ("distinguish", VOLTA, f"{VOLTA}@carry_bits=2", "--inputs", "normal,nonzero,exponents=-20..-16"),
])  # fmt: skip
def test_nothing_admitted_is_bad_input(arguments: tuple[str, ...], tmp_path: Path) -> None:
    found = run(*arguments, "--store", str(tmp_path / "store"))
    assert found.exit_code == 2, found.stderr
    assert "f16 has exponents from -14 to 15" in found.stderr
    assert "equal" not in found.stderr


@pytest.mark.parametrize(("command", "data"), [
    ("distinguish", QUESTION | {"inputs": EMPTY}),
    ("verify", {"id": "mine", "about": "", "source": "", "says": "nothing", "expect": "holds",
                "model": QUESTION["model"], "property": "sign-symmetric", "inputs": EMPTY}),
    ("verify", {"id": "mine", "about": "", "source": "", "says": "nothing", "expect": "holds",
                "model": VOLTA, "other": f"{VOLTA}@carry_bits=2", "property": "equal", "inputs": EMPTY}),
])  # fmt: skip
def test_files_that_admit_nothing(command: str, data: dict[str, object], tmp_path: Path) -> None:
    """File, line and key."""
    path = tmp_path / "mine.yaml"
    path.write_text(yaml.safe_dump(data, sort_keys=False))
    line = next(k for k, text in enumerate(path.read_text().splitlines(), 1) if "exponents:" in text)
    found = run(command, str(path), "--store", str(tmp_path / "store"))
    assert found.exit_code == 2, found.stderr
    assert f"mine.yaml:{line}: inputs.exponents: no input is admitted: " in found.stderr
    assert "has exponents from" in found.stderr


def test_zeros_alone_are_said(tmp_path: Path) -> None:
    store = ("--store", str(tmp_path / "store"), "--json")
    more = f"{VOLTA}@carry_bits=6"
    message = "of a only zeros are admitted: f16 has exponents from -14 to 15"
    for _ in range(2):  # from the store as well
        found = run("prove", VOLTA, more, "--inputs", "exponents=100..110", *store)
        assert (found.exit_code, message in found.stderr) == (0, True), found.stderr
        assert json.loads(found.stdout)["zeros_only"] == ["a", "b"]
        assert "equal, where only zeros of a, b are admitted: proved in" in found.stderr
    found = run("distinguish", VOLTA, more, "--inputs", "exponents=500..600", *store)
    assert "of c only zeros are admitted: f32 has exponents from -126 to 127" in found.stderr
    assert json.loads(found.stdout)["questions"][0]["zeros_only"] == ["a", "b", "c"]
    path = tmp_path / "mine.yaml"
    path.write_text(yaml.safe_dump({"id": "mine", "about": "", "source": "", "says": "nothing", "expect": "holds",
                                    "model": VOLTA, "other": more, "property": "equal",
                                    "inputs": {"exponents": {"min": 100, "max": 110}}}))  # fmt: skip
    found = run("verify", str(path), *store)
    assert (found.exit_code, message in found.stderr) == (0, True), found.stderr
    assert json.loads(found.stdout)["claims"][0]["zeros_only"] == ["a", "b"]


def test_terms_fixed_to_zero() -> None:
    """Their exponents do not matter; a scale factor is never restricted; there is no term beyond the addend."""
    model, window = parse_reference(VOLTA), ExponentRange(min=100, max=110)
    Problem(model, model, Inputs(nonzero=True, exponents=window, zero_terms=(0, 1, 2, 3)))
    with pytest.raises(ParameterError, match="f16 has exponents from -14 to 15"):
        Problem(model, model, Inputs(nonzero=True, exponents=window, zero_terms=(0, 1, 2)))
    with pytest.raises(ParameterError, match="zero_terms: 5: there are 4 products and an addend"):
        Problem(model, model, Inputs(zero_terms=(5,)))
    scaled = parse_reference(SCALED)
    Problem(scaled, scaled, Inputs(finite=True, nonzero=True, exponents=ExponentRange(min=0, max=0)))
    with pytest.raises(ParameterError, match="e2m1 has exponents from 0 to 2"):
        Problem(scaled, scaled, Inputs(nonzero=True, exponents=ExponentRange(min=3, max=3)))


@pytest.mark.parametrize("name", ["ue1m1_none", "ue1m1_all_ones", "ue2m1_ieee", "e1m1_none", "binary3p2se", "ue8m0"])
def test_samples_are_patterns_of_their_formats(name: str) -> None:
    """Also of formats in which few numbers are above one: a pattern that is none contradicted what was proved."""
    fmt = format_named(name)
    layout = Layout((2, 2, 1, 1, 1, 0, 0), (fmt,) * 7, ("a0", "a1", "b0", "b1", "c", "scale_a0", "scale_b0"))
    for table in (sample_rows(layout, 3000), admitted_rows(layout, Inputs(), 3000, 20, (3, 5))):
        assert int(table.max()) < 1 << fmt.width
