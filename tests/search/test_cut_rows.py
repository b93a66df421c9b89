"""Differences that show where the largest terms of a sum cancel: samples find them, and no solver is asked."""

from __future__ import annotations

from dataclasses import replace

import pytest

from mmaprobe.queries.equality.staged import prove
from mmaprobe.queries.kernel.questions.problem import Problem
from mmaprobe.queries.search.cut_rows import cut_rows
from mmaprobe.queries.search.distinguish import Options, distinguish
from mmaprobe.smtmodel.arithmetic.formats import FORMATS
from mmaprobe.smtmodel.evaluate.model import Model
from mmaprobe.smtmodel.inputs.admitted import Inputs
from mmaprobe.smtmodel.units.unitfile import parse_unit

UNASKED = Options(stored=True)  # no answer is stored, so that no query is asked
UNIT = """
unit: dot
formats: {{a: {a}, b: {b}, c: {c}, d: {d}}}
length: {n}
roundings: {{r: "round({d}, {mode})"}}
steps: {{d: "r({sum})"}}
"""


def dot(how: str, a: str, b: str, c: str, d: str, n: int, mode: str) -> Model:
    terms = f"a[0:{n}] * b[0:{n}]" + (", c" if c != "none" else "")
    text = UNIT.format(a=a, b=b, c=c, d=d, n=n, mode=mode, sum=how.format(terms))
    return Model(how, parse_unit(text, "dot.yaml"))


def losing(a: str, b: str) -> int:
    """The most bits with which a sum of products still loses some bit."""
    left, right = FORMATS[a], FORMATS[b]
    return left.emax + right.emax - left.unit - right.unit - 1


CASES = [
    ("e5m2", "e5m2", "none", "f16", 4, "toward_zero"),
    ("e5m2", "e5m2", "none", "f16", 5, "nearest_even"),
    ("e5m2", "e5m2", "f16", "f16", 8, "up"),
    ("e5m2", "f16", "none", "f16", 4, "toward_zero"),
    ("e5m2", "e5m2", "none", "f32", 3, "up"),
    ("f16", "f16", "none", "f32", 3, "nearest_even"),
    ("f16", "f16", "none", "bf16", 8, "nearest_even"),
    ("f16", "e4m3", "f32", "f32", 2, "nearest_even"),
    ("e4m3", "e2m3", "none", "f32", 3, "nearest_even"),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: "-".join(map(str, case)))
def test_sums_that_keep_one_bit_more(case: tuple[str, str, str, str, int, str]) -> None:
    """Sums of the most bits that lose something differ from sums of one bit more, and from the exact sum."""
    bits = losing(*case[:2])
    cut, whole, exact = (
        dot(how, *case) for how in (f"fused({{}}, F={bits})", f"fused({{}}, F={bits + 1})", "exact({})")
    )
    for other in (whole, exact):
        problem = Problem(cut, other)
        outcome = distinguish(problem, UNASKED)
        assert (outcome.verdict, outcome.steps) == ("different", [])
        proof = prove(problem, UNASKED)
        assert (proof.verdict, proof.compared) == ("different", None)  # no terms were built


def test_two_large_products_cancel() -> None:
    case = ("e5m2", "e5m2", "none", "f16", 4, "toward_zero")
    model = dot("exact({})", *case)
    layout = Problem(model, model).layout
    for row in cut_rows(layout, model.d, [61], 512, model.blocks).tolist():
        products = list(zip(row[:4], row[4:8], strict=True))
        assert any((x ^ 0x80, y) in products for x, y in products if x & 0x40 and y & 0x40), row


@pytest.mark.parametrize("changed", [{"bits": []}, {"a": "int8", "b": "int8"}, {"n": 2}])
def test_no_rows_where_no_such_input_is(changed: dict[str, object]) -> None:
    given = {"a": "f16", "b": "f16", "c": "none", "d": "f32", "n": 3, "mode": "nearest_even", "bits": [9]} | changed
    bits = given.pop("bits")
    model = dot("exact({})", **given)  # type: ignore[arg-type]
    layout = Problem(model, model).layout
    assert isinstance(bits, list)
    assert cut_rows(layout, model.d, bits, 64).shape == (0, len(layout.names))


def test_a_restriction_that_no_such_input_meets() -> None:
    """Two nonnegative products never cancel."""
    case = ("e5m2", "e5m2", "none", "f16", 4, "toward_zero")
    cut, exact = dot(f"fused({{}}, F={losing('e5m2', 'e5m2')})", *case), dot("exact({})", *case)
    problem = replace(Problem(cut, exact), inputs=Inputs(finite=True, nonnegative=True))
    assert distinguish(problem, UNASKED).verdict == "unknown"
