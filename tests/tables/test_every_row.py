"""Every row of the table through the commands that take a model; a sample of them in each run, all of them slowly."""

from __future__ import annotations

import json
import random
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from mmaprobe.cli.main import main
from mmaprobe.smtmodel.evaluate.model import Model
from mmaprobe.smtmodel.tables.catalogue import catalogue
from mmaprobe.smtmodel.tables.reference import parse_reference

ROWS = sorted(row["id"] for row in catalogue())
SAMPLE, SEED = 2, 58  # rows of a quick run; a failure is tried again by its name


def output_of(*words: str, code: int = 0) -> str:
    """What a command prints that ends with this code."""
    found = CliRunner().invoke(main, words, prog_name="mmaprobe")
    assert found.exit_code == code, (words, found.exit_code, found.output[-400:], found.exception)
    return found.output


def vector(model: Model) -> dict[str, object]:
    """Ones in every product, with scale factors that are one, and c zero."""

    def text(name: str, pattern: int) -> str:
        return f"{pattern:0{model.formats[name].digits}x}"

    row: dict[str, object] = {side: [text(side, model.formats[side].one)] * model.length for side in "ab"}
    factors = [name for name in ("scale_a", "scale_b") if name in model.formats]
    return row | {"c": text("c", 0)} | {name: [text(name, model.formats[name].one)] * model.scales for name in factors}


def commands_take(reference: str, folder: Path, timeout: int) -> None:
    """Show, explain, evaluate, simulate, prove, cover and export take a row; none says anything of a fault."""
    model = parse_reference(reference)
    assert f"unit: {reference}" in output_of("show", reference)
    given = vector(model)
    assert "\nd = " in output_of("explain", reference, json.dumps(given))
    rows = folder / "rows.jsonl"
    rows.write_text(json.dumps({"id": "ones", "model": reference} | given) + "\n")
    answered = json.loads(output_of("run", str(rows), "--device", f"model:{reference}").splitlines()[0])
    k = model.length
    files = {name: folder / f"{name}.npy" for name in ("a", "b", "scale_a", "scale_b", "d")}
    for name, shape in (("a", (2, k)), ("b", (k, 3)), ("scale_a", (2, model.scales)), ("scale_b", (model.scales, 3))):
        if fmt := model.formats.get(name):
            np.save(files[name], np.full(shape, fmt.one, dtype=f"uint{max(8, 1 << (fmt.width - 1).bit_length())}"))
    scales = ("--scale-a", str(files["scale_a"]), "--scale-b", str(files["scale_b"])) if model.scale else ()
    output_of("simulate", str(files["a"]), str(files["b"]), "--model", reference, "-o", str(files["d"]), *scales)
    assert np.load(files["d"]).shape == (2, 3)
    assert "equal: proved in " in output_of("prove", reference, reference)
    covered = folder / "cover.jsonl"
    for seconds in (timeout, 60):  # on a busy machine the conditions may not be built in the first of these
        found = CliRunner().invoke(
            main, ("cover", reference, "--no-pairs", "--timeout", str(seconds), "-o", str(covered))
        )
        assert found.exit_code in (0, 3), found.output[-400:]  # 3: the time ran out, what was found is written
        if covered.exists():
            break
    assert "0 mismatches" in output_of("evaluate", str(covered))
    assert output_of("export", str(rows), "--format", "csv").splitlines()[1].startswith(f"ones,{reference},")
    assert answered["d"] in output_of("export", str(rows), "--format", "csv")
    for kind in ("smt2", "c"):
        output_of("export", str(rows), "--format", kind, "-o", str(folder / kind))
    for kind in ("cpp", "verilog"):
        output_of("export", reference, "--format", kind, "-o", str(folder / kind))


@pytest.mark.parametrize("reference", random.Random(SEED).sample(ROWS, SAMPLE))
def test_commands_take_some_rows(reference: str, tmp_path: Path) -> None:
    commands_take(reference, tmp_path, 1)


@pytest.mark.slow
@pytest.mark.parametrize("reference", ROWS)
def test_commands_take_every_row(reference: str, tmp_path: Path) -> None:
    commands_take(reference, tmp_path, 5)
