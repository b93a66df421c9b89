"""Claims that say no more than what they claim."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner, Result

from mmaprobe.cli.main import main

pytestmark = pytest.mark.solvers

SHORT: dict[str, Any] = {
    "id": "mine", "terms": 2, "inputs": {"format": "f16", "a": [-2, 2], "b": [-2, 2], "c": "zero"},
    "parts": {"p": "hopper/mma/m16n8k16.f32.f16.f16.f32"},
}  # fmt: skip


def verify(folder: Path, *options: str, **keys: object) -> Result:
    path = folder / "mine.yaml"
    path.write_text(yaml.safe_dump(SHORT | keys), encoding="utf-8")
    return CliRunner().invoke(main, ["verify", str(path), *options])


@pytest.mark.parametrize(("claim", "code"), [("error(p) == 0", 0), ("value(p) <= 5", 1)])
def test_the_exit_code_says_whether_it_holds(claim: str, code: int, tmp_path: Path) -> None:
    short = {"format": "f16", "a": [0, 0], "b": [0, 0], "c": "zero", "where": ["nonnegative(a)", "nonnegative(b)"]}
    result = verify(tmp_path, claim=claim, terms=1, inputs=short if code == 0 else SHORT["inputs"])
    assert result.exit_code == code, result.output
    assert "\n  for all inputs: " in result.output
    assert "expected" not in result.output
    assert "EXPECTED" not in result.output
    assert "the source" not in result.output


def test_a_source_and_an_expectation_are_said(tmp_path: Path) -> None:
    keys = {"source": "a page", "says": "holds", "expect": "refuted", "about": "it is small"}
    result = verify(tmp_path, claim="value(p) <= 5", **keys)
    assert result.exit_code == 0, result.output
    assert result.output.splitlines()[1] == "  it is small"
    assert result.output.rstrip().endswith("; as expected (the source says holds)")


def test_all_missing_keys_are_in_one_message(tmp_path: Path) -> None:
    (tmp_path / "mine.yaml").write_text("id: mine\nclaim: error(p) == 0\n", encoding="utf-8")
    result = CliRunner().invoke(main, ["verify", str(tmp_path / "mine.yaml")])
    assert result.exit_code == 2
    assert "these keys are missing: terms, inputs, parts" in result.output


def test_zeros_that_answer_are_said_to_be_zeros(tmp_path: Path) -> None:
    """Some input with an error of zero: the first one has no product at all, which is no answer that helps."""
    message = "every number of a and b is zero here"
    result = verify(tmp_path, claim="error(p) == 0 and value(p) == 0", quantifier="exists")
    assert result.exit_code == 0, result.output
    assert message in result.output
    others = {**SHORT["inputs"], "where": ["nonzero(a)", "nonzero(b)"]}
    other = verify(tmp_path, claim="error(p) == 0 and value(p) == 0", quantifier="exists", inputs=others)
    assert other.exit_code == 0, other.output
    assert message not in other.output
