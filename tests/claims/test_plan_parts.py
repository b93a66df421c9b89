"""Parts of claims that are plans: they are what they spell, are found beside the claim, and certificates hold them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import yaml
from click.testing import CliRunner, Result

from mmaprobe.cli.main import main
from mmaprobe.queries.claims.samples import claim_rows
from mmaprobe.queries.kernel.questions.recorded import recorded_part
from mmaprobe.queries.kernel.questions.scene import lanes_of
from mmaprobe.queries.kernel.theorem import RuleError
from mmaprobe.smtmodel.algorithms.parts import Part
from mmaprobe.smtmodel.arithmetic.formats import FORMATS
from mmaprobe.smtmodel.base.errors import MmaprobeError
from mmaprobe.smtmodel.evaluate.batch import to_integers
from mmaprobe.smtmodel.plans.plantext import plan_text
from mmaprobe.smtmodel.tables.reference import parse_plan_path
from tests.claims.test_claim_stages import claim_of

pytestmark = pytest.mark.solvers

VOLTA = "volta/mma/m8n8k4.f32.f16.f16.f32"
THREE = f"markidis@unit={VOLTA},split=toward_zero,products=3"
FOUR = f"markidis@unit={VOLTA},split=toward_zero"
CLAIM = {
    "id": "mine", "about": "x", "source": "x", "says": "nothing", "expect": "refuted", "terms": 2,
    "inputs": {"format": "f32", "a": [-4, 4], "b": [-4, 4], "c": "zero"},
    "parts": {"mine": "./mine.yaml", "four": FOUR}, "claim": "error(mine) <= error(four)",
}  # fmt: skip


def run(*arguments: str) -> Result:
    return CliRunner().invoke(main, arguments)


def written(folder: Path, **changes: object) -> str:
    """The path of a claim about a plan file beside it."""
    (folder / "mine.yaml").write_text(plan_text(parse_plan_path(THREE)), encoding="utf-8")
    path = folder / "claim.yaml"
    path.write_text(yaml.safe_dump(CLAIM | changes), encoding="utf-8")
    return str(path)


def test_a_plan_file_is_the_scheme_that_it_spells(tmp_path: Path) -> None:
    """Step by step, and in what rules record of it."""
    written(tmp_path)
    inputs = {"format": "f32", "a": [-6, 6], "b": [-6, 6], "c": [-12, 12]}
    parts = {"mine": f"{tmp_path}/mine.yaml", "three": THREE, "shipped": "plan:multiword/ootomo-yokota"}
    claim = claim_of("finite(mine)", terms=5, inputs=inputs, parts=parts)
    table = claim_rows(claim, 500, 1)
    mine, three = ({str(step): to_integers(bits, len(table)).tolist() for step, bits in lanes_of(
        claim.assertion, table).steps(name).items()} for name in ("mine", "three"))  # fmt: skip
    assert mine == three
    assert len(np.unique(mine["d"])) > 300
    f32 = FORMATS["f32"]
    one, other = (recorded_part(Part(parts[name]), f32, 5) for name in ("mine", "three"))
    assert one == other
    with pytest.raises(RuleError, match="scaled"):
        recorded_part(Part("plan:multiword/ootomo-yokota"), f32, 5)


def test_a_claim_about_a_plan_beside_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Wherever one is; its certificate holds the plan, and says so where this is another one."""
    monkeypatch.chdir("/")
    kept = tmp_path / "certificate"
    found = run("verify", written(tmp_path), "--timeout", "60", "--certificate", str(kept), "--json")
    assert found.exit_code == 0
    assert '"verdict": "refuted"' in found.stdout
    (tmp_path / "mine.yaml").unlink()
    checked = run("check", str(kept))
    assert checked.exit_code == 0
    assert "part-1.plan.yaml: mine" in checked.output or "part-1.plan.yaml: markidis" in checked.output
    plan = kept / "part-1.plan.yaml"
    plan.write_text(plan.read_text(encoding="utf-8").replace("mma(a1, b0)", "mma(a0, b0)"), encoding="utf-8")
    assert run("check", str(kept)).exit_code == 1


def test_what_is_no_part(tmp_path: Path) -> None:
    for text, message in (
        ("single-pass", "a sum of numbers"), ("markidiss", "did you mean 'markidis'"),
        ("plan:multiword/markidiss", "did you mean"), ("./none.yaml", "no such file"),
        ("plan:cutlass/linear-combination", ""),
    ):  # fmt: skip
        if not message:
            assert Part(text).result == FORMATS["f16"]
            continue
        with pytest.raises(MmaprobeError, match=message):
            Part(text)
