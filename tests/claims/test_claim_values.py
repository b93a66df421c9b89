"""Every value that a claim, or a condition of it, reads is a number, or the claim is at fault."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner, Result

from mmaprobe.cli.main import main
from mmaprobe.hypotheses.claim import Claim, claims_named
from mmaprobe.queries.claims.samples import claim_rows
from mmaprobe.queries.kernel.questions.scene import Conditions
from mmaprobe.queries.search.scene import evaluate_claim
from mmaprobe.smtmodel.algorithms.scene import Shape, Truth
from mmaprobe.smtmodel.carriers.algebra import all_of

pytestmark = pytest.mark.solvers

P = """unit: p
formats: {a: e2m1, b: e2m1, c: e5m2, d: e5m2}
length: 1
steps: {d: "round(fused(a[0] * b[0], c, F=3, rounding=up, zeros=12), e5m2, nearest_even)"}
"""
OVERFLOWS = """unit: p
formats: {a: e3m2, b: e3m2, c: e3m1_ieee, d: e3m1_ieee}
length: 1
steps: {d: "round(exact(a[0] * b[0], c), e3m1_ieee, nearest_even)"}
"""
SATURATES = OVERFLOWS.replace("unit: p", "unit: q").replace("nearest_even)", "nearest_even, overflow=saturate)")
BECOMES_NAN = """unit: p
formats: {a: e3m2, b: e3m2, c: e3m1_all_ones, d: e3m1_all_ones}
length: 1
steps: {d: "round(exact(a[0] * b[0], c), e3m1_all_ones, nearest_even)"}
"""
SMALL = {"format": "e2m1", "a": [0, 0], "b": [0, 0], "c": [2, 2]}
LARGE = {"format": "e3m2", "a": [2, 2], "b": [1, 2], "c": [0, 0]}  # products beyond 16, which e3m1 does not have


def written(folder: Path, units: dict[str, str], **changes: Any) -> Path:
    """A claim file, with its unit files beside it."""
    for name, text in units.items():
        (folder / f"{name}.yaml").write_text(text)
    data = {"id": "mine", "about": "", "source": "", "says": "nothing", "expect": "holds", "terms": 1, "inputs": SMALL,
            "parts": {name: str(folder / f"{name}.yaml") for name in units}}  # fmt: skip
    path = folder / "mine.yaml"
    path.write_text(yaml.safe_dump(data | changes, width=1000))
    return path


def run(path: Path, *more: str) -> Result:
    store = str(path.parent / "store")
    return CliRunner().invoke(main, ["verify", str(path), "--timeout", "30", "--store", store, *more])


@pytest.mark.parametrize("reads", ["value(p) > 3", "not value(p) <= 3", "error(p) > 2", "ulp(p) > 2**-1"])
def test_a_condition_reads_the_value_that_a_part_has(reads: str, tmp_path: Path) -> None:
    """A result of 512, beyond what exact sums can be, is no small number that a condition excludes: it refutes."""
    found = run(written(tmp_path, {"p": P}, inputs=SMALL | {"where": [reads]}, claim="error(p) <= 2"))
    assert (found.exit_code, "mine: refuted" in found.output) == (1, True), found.output


def test_there_is_an_input_whose_condition_reads_a_large_value(tmp_path: Path) -> None:
    for where, claim in (["value(p) > 3"], "error(p) > 2"), (["value(p) > 100"], "error(p) > 2"):
        found = run(written(tmp_path, {"p": P}, inputs=SMALL | {"where": where}, quantifier="exists", claim=claim))
        assert (found.exit_code, "mine: holds" in found.output) == (0, True), found.output


@pytest.mark.parametrize("where", [["value(p) > 0"], ["not value(p) <= 0"], ["zero(p)"], ["value(q) > 0", "ulp(p) > 0"],
                                   ["distance(p, q) == 0"], ["finite(p) and value(p) > 0"]])  # fmt: skip
@pytest.mark.parametrize(("claim", "quantifier"), [("error(q) <= 6 * 2**-3 * ulp(exact())", "all"),
                                                   ("bits(q) == 0", "exists")])  # fmt: skip
def test_a_condition_that_reads_an_infinite_result_is_at_fault(
    where: list[str], claim: str, quantifier: str, tmp_path: Path
) -> None:
    inputs = LARGE | {"where": where}
    path = written(tmp_path, {"p": OVERFLOWS, "q": SATURATES}, inputs=inputs, claim=claim, quantifier=quantifier)
    found = run(path)
    assert found.exit_code == 2, found.output
    assert f" inputs.where.{len(where) - 1}: p gives " in found.stderr
    assert "inf for a0 = " in found.stderr
    assert ": no number; " in found.stderr


def test_a_condition_is_asked_of_the_inputs_that_meet_those_before_it(tmp_path: Path) -> None:
    inputs = LARGE | {"where": ["finite(p)", "value(p) > 0"]}
    found = run(written(tmp_path, {"p": OVERFLOWS}, inputs=inputs, claim="value(p) <= 12"), "--certificate",
                str(tmp_path / "proof"))  # fmt: skip
    assert (found.exit_code, "mine: holds" in found.output) == (0, True), found.output
    assert "every value that a condition reads is a number" in found.output
    done = CliRunner().invoke(main, ["check", str(tmp_path / "proof")])
    assert done.exit_code == 0, done.output


@pytest.mark.parametrize(("unit", "value"), [(OVERFLOWS, "inf"), (BECOMES_NAN, "nan")])
@pytest.mark.parametrize("claim", ["distance(p, q) <= 1", "distance(q, p) <= 0", "value(p) <= 99", "nonnegative(p)",
                                   "zero(p) or nonzero(p)", "fits(p, e3m2)", "ulp(p) <= 99"])  # fmt: skip
def test_a_claim_that_reads_what_is_no_number_is_at_fault(unit: str, value: str, claim: str, tmp_path: Path) -> None:
    other = SATURATES if value == "inf" else SATURATES.replace("e3m1_ieee", "e3m1_all_ones")
    units = {"p": unit} | ({"q": other} if "q" in claim else {})
    found = run(written(tmp_path, units, inputs=LARGE, claim=claim))
    assert found.exit_code == 2, found.output
    assert " claim: p gives " in found.stderr
    assert f"{value} for a0 = " in found.stderr
    assert ": no number; " in found.stderr


def test_integers_lie_as_far_apart_as_their_numbers(tmp_path: Path) -> None:
    """-1 and 0 are neighbours, whose patterns are not."""
    p = P.replace("d: e5m2", "d: int8").replace("e5m2, nearest_even)", "int8, toward_zero)")
    units = {"p": p, "q": p.replace("unit: p", "unit: q").replace("toward_zero)", "down)")}
    for claim, code in ("distance(p, q) <= 1", 0), ("distance(p, q) <= 0", 1):
        found = run(written(tmp_path, units, inputs=SMALL | {"c": [0, 2]}, claim=claim))
        assert found.exit_code == code, found.output


# --- certificates ----------------------------------------------------------------------------------------------------


def checked(folder: Path) -> Result:
    return CliRunner().invoke(main, ["check", str(folder)])


def certified(path: Path) -> Path:
    found = run(path, "--certificate", str(path.parent / "proof"))
    assert (found.exit_code, "mine: holds" in found.output) == (0, True), found.output
    return path.parent / "proof"


def never_at_fault(self: Conditions, *more: Truth) -> Conditions:
    return Conditions(all_of([self.met, *(one.yes for one in more)]), self.at_fault)


def test_a_certificate_without_the_lemma_about_conditions_is_rejected(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The claim is true of all inputs on which p is finite; that it is finite is no condition."""
    path = written(tmp_path, {"p": OVERFLOWS}, inputs=LARGE | {"where": ["value(p) > 0"]}, claim="value(p) <= 12")
    with monkeypatch.context() as patched:
        patched.setattr(Conditions, "then", never_at_fault)
        folder = certified(path)
    assert [record["rule"] for record in json.loads((folder / "log.json").read_text())["records"]][-1] == "undecided"
    found = checked(folder)
    assert found.exit_code == 1
    assert "undecided: whether every value that a condition reads is a number is not known" in found.output


def test_a_false_theorem_by_what_values_are_not_is_rejected(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As it was proved once: a condition reads a value that is too large for the sum as some small number."""
    path = written(tmp_path, {"p": P}, inputs=SMALL | {"where": ["value(p) > 3"]}, claim="error(p) <= 2")
    with monkeypatch.context() as patched:
        patched.setattr(Conditions, "then", never_at_fault)
        patched.setattr(Shape, "room", lambda self, terms: [])
        plain = Truth.of
        patched.setattr(Truth, "of", lambda holds, reads: replace(plain(holds, reads), yes=holds))
        folder = certified(path)
    found = checked(folder)
    assert found.exit_code == 1
    assert "log.json: theorem " in found.output


# --- the grid of exact sums -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["rdna3/wmma/f32_16x16x16_f16", "rdna3.5/wmma/f32_16x16x16_bf16",
                                  "rdna4/wmma/f32_16x16x16_f16", "rdna3/dot2/f32_f16"])  # fmt: skip
def test_claims_about_results_finer_than_all_terms(name: str, tmp_path: Path) -> None:
    """1 * 1 - 1 * 1 is no zero on RDNA3 and 3.5, but a number far below the last places of the products."""
    fmt = "bf16" if name.endswith("bf16") else "f16"
    inputs = {"format": fmt, "a": [0, 2], "b": [0, 2], "c": "zero"}
    path = written(
        tmp_path, {}, terms=2, inputs=inputs, parts={"d": name}, claim="error(d) <= 2**-18 * magnitude_sum()"
    )
    (claim,) = claims_named(str(path))
    assert isinstance(claim, Claim)
    batch = evaluate_claim(claim, claim_rows(claim, 20000, 1))
    assert batch.admitted.all()
    assert not batch.at_fault.any()
    assert not batch.deciding.any()
    if name.startswith("rdna3"):
        path = written(tmp_path, {}, terms=2, inputs=inputs, parts={"d": name}, claim="error(d) == 0 or exact() != 0")
        found = run(path)
        assert (found.exit_code, "mine: refuted" in found.output) == (1, True), found.output


def test_a_claim_without_a_name_has_that_of_its_file(tmp_path: Path) -> None:
    path = written(tmp_path, {}, terms=1, inputs={"format": "f16", "a": [0, 2], "b": [0, 2], "c": "zero"},
                   parts={"d": "ieee/fma/f32"}, claim="error(d) == 0")  # fmt: skip
    text = path.read_text(encoding="utf-8")
    own = tmp_path / "My Claim (2).yaml"
    own.write_text("".join(line for line in text.splitlines(keepends=True) if not line.startswith(("id:", '"id"'))))
    assert [claim.id for claim in claims_named(str(own))] == ["my-claim-2"]


def test_a_result_below_the_grid_is_called_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Shape, "room", lambda self, terms: [])
    inputs = {"format": "f16", "a": [0, 2], "b": [0, 2], "c": "zero"}
    parts = {"d": "rdna3/wmma/f32_16x16x16_f16"}
    found = run(written(tmp_path, {}, terms=2, inputs=inputs, parts=parts, claim="error(d) <= 1"))
    assert found.exit_code == 2
    assert "it lies below the grid of exact sums, the multiples of 2^-23" in found.stderr
    found = run(written(tmp_path, {"p": P}, claim="value(p) <= 512"))
    assert found.exit_code == 2
    assert "it lies beyond the exact sums that the exponents allow, which are below 2^5" in found.stderr


def test_the_format_of_an_addend_that_is_zero_may_be_narrower(tmp_path: Path) -> None:
    """Products have exponents that c's format has not."""
    inputs = {"format": "e3m2", "a": [2, 2], "b": [2, 2], "c": "zero"}
    found = run(written(tmp_path, {"q": SATURATES}, inputs=inputs, claim="value(q) == 12 or zero(a)  or zero(b)"))
    assert (found.exit_code, "mine: refuted" in found.output) == (1, True), found.output
    assert "q gives" in found.output
    found = run(written(tmp_path, {"q": SATURATES}, inputs=inputs, claim="abs(value(q)) == 12 or value(q) == 0"))
    assert (found.exit_code, "mine: holds" in found.output) == (0, True), found.output
