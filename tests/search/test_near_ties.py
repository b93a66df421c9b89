"""Sums beside a tie by the last digit of one product: rows show them up to the last F at which two sums differ."""

from __future__ import annotations

import numpy as np
import pytest

from mmaprobe.queries.kernel.questions.problem import Problem
from mmaprobe.queries.search.distinguish import Options, distinguish
from mmaprobe.queries.search.samples import near_tie_rows
from mmaprobe.queries.search.witness import replay
from mmaprobe.smtmodel.arithmetic.formats import FORMATS
from mmaprobe.smtmodel.evaluate.model import Model
from mmaprobe.smtmodel.tables.reference import parse_reference
from mmaprobe.smtmodel.units.unitfile import parse_unit

UNIT = """unit: {name}
formats: {{a: {fmt}, b: {fmt}, c: {c}, d: f32}}
length: {length}
steps:
  d: round({step}, f32, nearest_even)
"""


def problem(fmt: str, bits: int, terms: str, length: int = 2, c: str = "none") -> Problem:
    def model(step: str) -> Model:
        text = UNIT.format(name=step.partition("(")[0], fmt=fmt, c=c, length=length, step=step)
        return Model(step, parse_unit(text, "unit.yaml"))

    return Problem(model(f"fused({terms}, F={bits})"), model(f"exact({terms})"))


def most_zeros(digits: int) -> int:
    """The most zeros between two ones of a product of two numbers with so many digits."""
    numbers = np.arange(1, 1 << digits)
    texts = {f"{int(one):b}".rstrip("0") for one in np.unique(np.outer(numbers, numbers))}
    return max(len(zeros) for text in texts for zeros in text.split("1"))


@pytest.mark.parametrize("fmt", ["e5m2", "e4m3", "f16"])
def test_two_products_up_to_the_last_difference(fmt: str) -> None:
    """A tie below a power of two is 25 places below it; what is lost is beyond the zeros after the product's first
    one."""
    last = 25 + most_zeros(FORMATS[fmt].precision)
    outcome = distinguish(problem(fmt, last, "a[0:2] * b[0:2]"), Options("bitwuzla", 60.0))
    assert outcome.simulated
    assert outcome.verdict == "different"
    beyond = problem(fmt, last + 1, "a[0:2] * b[0:2]")
    assert not replay(beyond, near_tie_rows(beyond.layout, FORMATS["f32"], 4096)).differs.any()


def test_a_product_below_an_addend() -> None:
    for length, terms in ((1, "a[0] * b[0], c"), (4, "a[0:4] * b[0:4], c")):
        asked = problem("e4m3", 30, terms, length, "f32")
        rows = near_tie_rows(asked.layout, FORMATS["f32"], 4096)
        found = rows[replay(asked, rows).differs != 0]
        assert len(found)
        assert (found[:, -1] != 0).any()


def test_no_rows_without_such_products() -> None:
    for name in ("ampere/mma/m16n8k32.s32.s8.s8.s32", "ieee/fma/f64"):
        model = parse_reference(name)
        assert not len(near_tie_rows(Problem(model, model).layout, model.d, 64))
