"""Covering vectors of what is lost with one bit: an OR with one input missing is caught, wherever it matters."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from fractions import Fraction
from functools import cache
from math import floor
from pathlib import Path

import numpy as np
import pytest

from benchmarks.netlists import changed, changes_of
from mmaprobe.queries.covering.cover import Cover, Covering
from mmaprobe.queries.kernel.cases.conditions import ONE_BIT
from mmaprobe.queries.kernel.questions.designs import Designed
from mmaprobe.queries.search.lone_rows import lone_input_rows, lone_rows
from mmaprobe.queries.search.witness import replay
from mmaprobe.runner.rtl import RtlDevice
from mmaprobe.smtmodel.arithmetic.display import exact_value
from mmaprobe.smtmodel.arithmetic.formats import FORMATS
from mmaprobe.smtmodel.evaluate.operands import layout_of
from mmaprobe.smtmodel.tables.reference import parse_reference
from tests.marks import some_slow

FMA = "ieee/fma/f16"
DESIGN = Path(__file__).parent.parent / "devices/designs/fma.sv"
LOST = f"{ONE_BIT} lost of "


@cache
def cover() -> Cover:
    """The covering vectors of an FMA that samples give."""
    covering = Covering(parse_reference(FMA), pairs=False, changes=[])
    covering.sample(lambda text: None)
    return covering.finished()


def number(pattern: int) -> Fraction:
    found = exact_value(pattern, FORMATS["f16"])
    assert not isinstance(found, str) or found == "-0"
    return Fraction(0) if isinstance(found, str) else found


def first(value: Fraction) -> int:
    """The exponent of the first one of a number that is not zero."""
    found = abs(value).numerator.bit_length() - value.denominator.bit_length()
    return found if abs(value) >= Fraction(2) ** found else found - 1


def lowest(value: Fraction) -> Fraction:
    return Fraction(value.numerator & -value.numerator, value.denominator)


def rounded(value: Fraction) -> Fraction:
    """To the nearest number of 11 bits, ties to even, with exponents from -14 on."""
    if not value:
        return value
    unit = Fraction(2) ** (max(first(value), -14) - 10)
    places = floor(value / unit)
    rest = value / unit - places
    return (places + (rest > Fraction(1, 2) or (rest == Fraction(1, 2) and places % 2 == 1))) * unit


def test_a_result_hangs_on_the_bit_that_is_named() -> None:
    seen = Counter[str]()
    for row, reasons in zip(cover().rows, cover().reasons, strict=True):
        for reason in reasons:
            if not isinstance(reason, tuple) or not reason[0].aspect.startswith(LOST):
                continue
            a, b, c = map(number, row)
            sign, _, name = reason[0].aspect.removeprefix(LOST).split()
            own, other = (c, a * b) if name == "addend" else (a * b, c)
            bit = lowest(own)
            assert (own < 0) == (sign == "-")
            assert rounded(own + other) != rounded(own - (bit if own > 0 else -bit) + other), (row, reason)
            places = int(reason[0].case.split()[0])
            above = own if "its first one" in reason[0].case else max(own, other, key=abs)
            assert first(above) - first(bit) == places, (row, reason)
            seen[name] += 1
    assert seen["0"] > 50
    assert seen["addend"] > 50


@pytest.mark.compilers
@pytest.mark.skipif(shutil.which("yosys") is None, reason="Yosys is not installed (the package yosys)")
@pytest.mark.parametrize("part", some_slow(range(4), *range(1, 4)))
def test_an_or_with_an_input_missing_is_caught_wherever_it_matters(part: int) -> None:
    """Of what is lost of the product, of the addend and of a small result in a design of another architecture. What no
    covering vector catches no other one of many does."""
    model, design = parse_reference(FMA), RtlDevice(f"{DESIGN},top=fma").design
    layout, document = layout_of(model), json.loads(design.netlist)
    (inner,) = document["modules"].values()
    rows, found = np.array(cover().rows, dtype=np.uint64), Counter[bool]()
    others = np.concatenate([lone_rows(layout, model.d, 3000, 9), lone_input_rows(layout, 1000, 9)])
    ors = {name for name, cell in inner["cells"].items() if cell["type"] == "$reduce_or"}
    missing = [change for change in changes_of(document) if change[0] in ors and change[1] and change[3] == "0"]
    for change in missing[part::4]:
        problem = Designed(model, model, design=changed(design, document, change))
        caught = bool(replay(problem, rows).differs.any())
        assert caught or not replay(problem, others).differs.any(), change
        found[caught] += 1
    assert found[True] > 14  # four or five without these conditions
