"""The order of sums of up to 1024 products: its search does not go as deep as a sum is long, nor does what is said."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mmaprobe.queries.order.reveal import Tree, reveal
from mmaprobe.smtmodel.families.parameters import PARAMETERS
from mmaprobe.smtmodel.inputs.vectors import Vector
from mmaprobe.smtmodel.tables.reference import parse_reference
from tests.command_line.test_cli import run

pytestmark = pytest.mark.solvers

MOST = PARAMETERS["length"].high or 0
ODD = 300  # products of a chain in another order
Sum = Callable[[Any, Any], Any]  # of products (float64) and the addend


def chain(order: Any) -> Sum:
    """c, then one product after another, in single precision."""
    return lambda products, c: np.cumsum(np.array([c, *products[order]], dtype=np.float32), dtype=np.float32)[-1]


def after(order: Any) -> Sum:
    """The same, but c comes last."""
    return lambda products, c: np.cumsum(np.array([*products[order], c], dtype=np.float32), dtype=np.float32)[-1]


def numpy_sum(products: Any, c: Any) -> Any:
    """NumPy's own: blocks of eight running sums, then pairs of blocks."""
    return np.sum(products.astype(np.float32), dtype=np.float32) + np.float32(c)


def fused(block: int) -> Sum:
    """Blocks with the running sum, everything cut 24 bits below the largest term."""

    def total(products: Any, c: Any) -> Any:
        for start in range(0, len(products), block):
            terms = np.array([c, *products[start : start + block]])
            unit = 2.0 ** (np.frexp(np.abs(terms).max())[1] - 25)
            c = float(np.float32(np.trunc(terms / unit).sum() * unit)) if terms.any() else 0.0
        return np.float32(c)

    return total


def revealed(length: int, total: Sum) -> Tree:
    def ask(vector: Vector) -> int:
        a, b = (np.array(side, dtype=np.uint32).view(np.float32) for side in (vector.operands.a, vector.operands.b))
        c = np.array([vector.operands.c], dtype=np.uint32).view(np.float32)[0]
        with np.errstate(all="ignore"):
            result = total(a.astype(np.float64) * b, float(c))
        return int(np.float32(result).view(np.uint32))

    return reveal(lambda vectors: list(map(ask, vectors)), parse_reference(f"ieee/fma/f32@length={length}"))


def shuffled(length: int) -> Any:
    return np.random.default_rng(length).permutation(length)


@pytest.mark.parametrize("length", [512, MOST])
def test_chains(length: int) -> None:
    tree = revealed(length, chain(range(length)))
    assert tree.blocks() == tuple((k,) for k in range(length))
    assert (tree.addend, len(tree.questions) < 2 * length + 40) == ("fused", True)
    assert tree.draw()[:2] == [
        f"c, 0-{length - 1} (added one after another)",
        f"blocks: 0 then 1 then ... then {length - 1}",
    ]
    assert tree.admits(parse_reference(f"ieee/fma/f32@length={length}").unit)
    assert not tree.admits(parse_reference(f"volta/mma/m8n8k4.f32.f16.f16.f32@length={length},block=8").unit)


@pytest.mark.parametrize("order", [np.arange(ODD)[::-1], shuffled(ODD)])
def test_chains_in_other_orders(order: Any) -> None:
    """Whose first products come last: many times as few questions as there are pairs, and no deep search."""
    tree = revealed(ODD, after(order))
    steps = [set(step) for step in tree.blocks()]
    assert tree.addend == "after"
    assert set.union(*steps[:2]) == {int(k) for k in order[:2]}
    assert steps[2:] == [{int(k)} for k in order[2:]]
    assert len(tree.questions) < ODD * 12
    assert max(map(len, tree.draw())) < ODD * 16
    assert len(tree.blocks()) == ODD


@pytest.mark.parametrize(("length", "block"), [(512, 2), (MOST, 128)])
def test_fused_blocks(length: int, block: int) -> None:
    tree = revealed(length, fused(block))
    assert tree.blocks() == tuple(tuple(range(k, k + block)) for k in range(0, length, block))
    assert tree.addend in ("fused", None)
    reference = f"hopper/mma/m16n8k16.f32.f16.f16.f32@length={length},block={block},fraction_bits=24"
    assert tree.admits(parse_reference(reference).unit)
    assert any(f"times, each {block} products further" in line for line in tree.draw())


def test_numpys_pairwise_sum() -> None:
    """Its blocks are 128 numbers, eight running sums each."""
    tree = revealed(512, numpy_sum)
    assert tree.addend == "after"
    assert len(tree.questions) < 6000
    assert len("\n".join(tree.draw())) < 50_000


def test_the_time_ends_the_search_and_keeps_the_answers(tmp_path: Path) -> None:
    path, answers = tmp_path / "long.yaml", tmp_path / "answers.jsonl"
    path.write_text(
        "id: long\nformats: {a: f32, b: f32, c: f32, d: f32}\n"
        f"length: {MOST}\nparameters:\n  fraction_bits: [24, 25]\n  block: [1, {MOST}]\n",
        encoding="utf-8",
    )
    device = f"model:ieee/fma/f32@length={MOST}"
    start = time.monotonic()
    result = run("identify", str(path), "--device", device, "--timeout", "2", "-o", str(answers), "--json", code=3)
    assert time.monotonic() - start < 60
    message = f"about the summation order of {MOST} products and the addend"
    assert "error: the time ran out after " in result.stderr
    assert message in result.stderr
    assert message in json.loads(result.stdout)["error"]
    assert answers.read_text(encoding="utf-8").count("\n") >= 1
