"""docs/claims.md: every input of its table gives what is printed beside it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction

import pytest

from benchmarks.claims import HEAD, operands_text, vector_text, verdict_text
from mmaprobe.documents.parts import Vector
from mmaprobe.hypotheses.claim import Claim, claims
from mmaprobe.hypotheses.unit_claims import PropertyClaim
from mmaprobe.queries.claims.vectors import ClaimInput
from mmaprobe.smtmodel.arithmetic.display import exact_value
from mmaprobe.smtmodel.evaluate.batch import evaluate_row
from mmaprobe.smtmodel.evaluate.model import Model
from mmaprobe.smtmodel.evaluate.operands import Operands
from tests.places import DOCS

pytestmark = pytest.mark.pages

PAGE = DOCS / "claims.md"


def table() -> Iterator[tuple[str, str]]:
    """Claims with an input, and what the table says of it."""
    for line in PAGE.read_text(encoding="utf-8").partition(HEAD)[2].splitlines():
        cells = line.strip("| ").split(" | ")
        if "`" in cells[-1]:
            yield cells[0].strip("`").replace("\\|", "|"), cells[-1]


def operands(text: str, length: int) -> Operands[int]:
    """Of `3 x 3c00*4000 + 2 x 0 + bf80*0800 + c4000000`: products in order, then c."""
    factors: list[tuple[int, int]] = []
    c = 0
    for part in text.split(" + "):
        count, _, product = part.rpartition(" x ")
        a, star, b = product.partition("*")
        if star or product == "0":
            factors += [(int(a, 16), int(b or "0", 16))] * int(count or 1)
        else:
            c = int(product, 16)
    factors += [(0, 0)] * (length - len(factors))
    a_side, b_side = zip(*factors, strict=True)
    return Operands(a_side, b_side, c)


CASES = dict(table())
KNOWN = {claim.id: claim for cases in claims().values() for claim in cases}


def test_the_table_has_inputs_of_shipped_claims() -> None:
    assert len(CASES) > 60
    assert set(CASES) <= set(KNOWN)


def is_biased(model: Model, given: Operands[int]) -> bool:
    """Whether the mean of the results over all four random bits is not the exact sum."""
    results = [exact_value(evaluate_row(model, replace(given, rest=((bits,),))), model.d) for bits in range(16)]
    factors = [exact_value(x, fmt) for fmt, side in ((model.a, given.a), (model.b, given.b)) for x in side]
    numbers = [x for x in (*results, *factors, exact_value(given.c, model.c)) if isinstance(x, Fraction)]
    assert len(numbers) == len(results) + len(factors) + 1
    products = zip(numbers[16 : 16 + model.length], numbers[16 + model.length : -1], strict=True)
    return sum(numbers[:16]) != 16 * (sum(x * y for x, y in products) + numbers[-1])


@pytest.mark.parametrize("name", CASES)
def test_an_input_gives_what_is_printed(name: str) -> None:
    claim = KNOWN[name]
    if isinstance(claim, Claim):
        (text,) = re.findall("`(.*?)`", CASES[name])
        given = operands(text, claim.terms)
        vector = ClaimInput(claim, (*given.a, *given.b, given.c)).document
        assert vector_text(vector) == CASES[name]
    else:
        assert isinstance(claim, PropertyClaim)
        model = claim.model
        if claim.wanted == "unbiased":
            (text,) = re.findall("`(.*?)`", CASES[name])
            assert is_biased(model, operands(text, model.length))
            return
        sides = re.findall(r"`(.*?)` gives (\w+)", CASES[name])
        assert len(sides) == 2
        for text, d in sides:
            assert evaluate_row(model, operands(text, model.length)) == int(d, 16), text


def test_operands_are_written_in_full_and_in_order() -> None:
    vector = {"a": ["3c00", "3c00", "0000", "0000", "bf80", "0"], "b": ["4000", "4000", "3c00", "1", "0800", "0"]}
    text = operands_text(Vector(**vector, c="c4000000"))
    assert text == "`2 x 3c00*4000 + 2 x 0 + bf80*0800 + c4000000`"
    read = operands(text.strip("`"), 6)
    assert read == Operands((0x3C00, 0x3C00, 0, 0, 0xBF80, 0), (0x4000, 0x4000, 0, 0, 0x800, 0), 0xC4000000)
    assert operands_text(Vector(a=["0"], b=["0"], c="0")) == "`0`"


def test_the_table_has_what_the_files_say_of_their_sources() -> None:
    rows = [line.strip("| ").split(" | ") for line in PAGE.read_text(encoding="utf-8").partition(HEAD)[2].splitlines()]
    meanings = {cells[0].strip("`").replace("\\|", "|"): cells[1] for cells in rows if len(cells) > 2}
    assert len(meanings) > 100
    for name, text in meanings.items():
        assert text == verdict_text(KNOWN[name].says, text.partition(",")[0].partition(";")[0])
    assert verdict_text("holds", "refuted") == "refuted; the source says holds"
