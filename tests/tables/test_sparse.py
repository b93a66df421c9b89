"""Sparse instructions: the dense row, with zeros in the places that the metadata leaves out."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from mmaprobe.cli.main import main
from mmaprobe.smtmodel.arithmetic.formats import FORMATS
from mmaprobe.smtmodel.base.errors import ParameterError
from mmaprobe.smtmodel.evaluate.batch import evaluate_row
from mmaprobe.smtmodel.evaluate.operands import Operands
from mmaprobe.smtmodel.tables.catalogue import catalogue
from mmaprobe.smtmodel.tables.instructions import INSTRUCTIONS
from mmaprobe.smtmodel.tables.reference import parse_reference
from mmaprobe.smtmodel.tables.sparse import sparse_rows, spread

AMPERE = "ampere/mma_sp/m16n8k32.f32.f16.f16.f32"


def test_every_row_is_of_a_dense_one_and_says_that_it_is_inferred() -> None:
    listed = {row["id"]: row for row in catalogue()}
    assert len(sparse_rows()) == 80
    for name, row in sparse_rows().items():
        model = parse_reference(name)
        (dense,) = re.findall(r": as (\S+) adds, zeros", listed[name]["source"])
        assert listed[name]["evidence"] == "inferred"
        assert model.length == row.length == row.shape[2]
        assert row.length in (INSTRUCTIONS[dense].length, 2 * INSTRUCTIONS[dense].length)
        assert model.unit == parse_reference(f"{dense}@length={row.length}").unit


@pytest.mark.parametrize("name", ["volta/mma_sp/m8n8k8.f32.f16.f16.f32", "hopper/mma_sp/m16n8k64.f32.e4m3.e4m3.f32",
                                  "cdna3/smfmac/f32_16x16x16_xf32"])  # fmt: skip
def test_what_is_no_sparse_instruction(name: str) -> None:
    with pytest.raises(Exception, match="of sparse instructions"):
        parse_reference(name)


@pytest.mark.parametrize("fmt", ["f16", "tf32"])
def test_kept_elements_are_spread(fmt: str) -> None:
    rng = np.random.default_rng(1)
    half = 1 if fmt == "tf32" else 2
    places = np.stack([np.sort(rng.permuted(np.arange(2 * half))[:half]) for _ in range(40)]).reshape(5, -1)
    kept = rng.integers(1, 100, places.shape)
    whole, there = spread(kept, places, FORMATS[fmt])
    for i in range(5):
        expected = [0] * (2 * places.shape[1])
        for j in range(places.shape[1]):
            expected[2 * half * (j // half) + places[i, j]] = kept[i, j]
        assert whole[i].tolist() == expected
        assert (there[i] == (whole[i] > 0)).all()


@pytest.mark.parametrize("places", [[[1, 0]], [[1, 1]], [[3, 4]], [[-1, 2]], [[0, 1, 2]], [[0]]])
def test_metadata_that_does_not_fit(places: list[list[int]]) -> None:
    with pytest.raises(ParameterError, match="metadata"):
        spread(np.ones((1, 2), dtype=np.uint16), np.array(places), FORMATS["f16"])


def simulated(folder: Path, *names: str, code: int = 0) -> str:
    files = [str(folder / f"{name}.npy") for name in names]
    run = CliRunner().invoke(main, ["simulate", *files, "--metadata", str(folder / "e.npy"), "--model", AMPERE, "-o",
                                    str(folder / "d.npy")])  # fmt: skip
    assert run.exit_code == code, run.output
    return run.output


def test_simulate_with_metadata(tmp_path: Path) -> None:
    """Rows that keep different places, a K of two instructions, an infinity that no row reads."""
    rng, model = np.random.default_rng(2), parse_reference(AMPERE)
    places = np.array([[0, 3] * 16, [1, 2] * 16, [0, 3] * 16])
    a, b, c = (rng.integers(0x3000, 0x4000, size, dtype=np.uint16) for size in ((3, 32), (64, 2), (3, 2)))
    b[5] = 0x7C00  # place 1 of a four: the middle row reads it
    c = c.astype(np.uint32) << 16
    for name, matrix in (("a", a), ("b", b), ("c", c), ("e", places)):
        np.save(tmp_path / f"{name}.npy", matrix)
    simulated(tmp_path, "a", "b", "c")
    found = np.load(tmp_path / "d.npy")
    assert np.isinf(found[1]).all()
    assert np.isfinite(found[[0, 2]]).all()
    for i in (0, 2):
        for j in range(2):
            columns = [4 * (n // 2) + places[i, n] for n in range(32)]
            d = int(c[i, j])
            for tile in (0, 32):
                row, column = [0] * 32, [0] * 32
                for n, k in enumerate(columns):
                    if tile <= k < tile + 32:
                        row[k - tile], column[k - tile] = int(a[i, n]), int(b[k, j])
                d = evaluate_row(model, Operands(tuple(row), tuple(column), d))
            assert found[i, j].view(np.uint32) == d


def test_metadata_belongs_to_sparse_instructions(tmp_path: Path) -> None:
    for name in "abe":
        np.save(tmp_path / f"{name}.npy", np.zeros((2, 2)))
    files = [str(tmp_path / f"{name}.npy") for name in "ab"]
    run = CliRunner().invoke(main, ["simulate", *files, "--metadata", str(tmp_path / "e.npy"), "-o", "d.npy", "--model",
                                    "ampere/mma/m16n8k16.f32.f16.f16.f32"])  # fmt: skip
    assert run.exit_code == 2
    assert "no sparse instruction" in run.output
    assert "rising" in simulated(tmp_path, "a", "b", code=2)
