"""Numbers and bit patterns as text: the text read back is the exact value of the pattern."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from fractions import Fraction

import pytest

from mmaprobe.smtmodel.arithmetic.display import MAX_POWERS, bit_fields, decimal, exact_value, number_text, powers
from mmaprobe.smtmodel.arithmetic.formats import FORMATS
from tests.oracles import oracle

TERM = re.compile(r"(?P<sign>[+-]?)(?:(?P<odd>\d+\*)?2\^(?P<exponent>-?\d+)|(?P<whole>\d+))")
SMALL_WIDTH = 10  # formats up to this width are read back pattern by pattern


def parsed(text: str) -> Fraction:
    """The number that a text of `powers` stands for."""
    if text == "0":
        return Fraction(0)
    packed = text.replace(" ", "")
    total, end = Fraction(0), 0
    for term in TERM.finditer(packed):
        assert term.start() == end, f"unreadable: {text!r}"
        end = term.end()
        size = Fraction(term["whole"] or int((term["odd"] or "1*")[:-1]) * Fraction(2) ** int(term["exponent"]))
        total += -size if term["sign"] == "-" else size
    assert end == len(packed), f"unreadable: {text!r}"
    return total


def patterns(name: str) -> Iterator[int]:
    """Every pattern of a small format; specials, neighbours of specials and a random sample of a wide one."""
    fmt = FORMATS[name]
    if fmt.width <= SMALL_WIDTH:
        yield from range(1 << fmt.width)
        return
    rng = random.Random(5)
    for special in (0, fmt.nan, fmt.infinity, fmt.largest, 1 << fmt.padding, 1 << (fmt.field_width - 1)):
        for near in (special - 1, special, special + 1):
            yield near % (1 << fmt.width)
            yield (near | fmt.sign_bit) % (1 << fmt.width)
    for _ in range(400):
        few_bits = rng.getrandbits(fmt.width) & rng.getrandbits(fmt.width) & rng.getrandbits(fmt.width)
        yield rng.choice((few_bits, rng.getrandbits(fmt.width)))


@pytest.mark.parametrize("name", FORMATS)
def test_number_text_is_the_exact_value(name: str) -> None:
    fmt = FORMATS[name]
    for pattern in patterns(name):
        expected = oracle.decode(name, pattern)
        text = number_text(pattern, fmt)
        sign = "-" if expected.sign else ""
        if expected.kind == "nan":
            assert text == "nan", f"{pattern:#x}"
        elif expected.kind == "inf":
            assert text == f"{sign}inf", f"{pattern:#x}"
        elif expected.value == 0:
            assert text == f"{sign}0", f"{pattern:#x}"
        else:
            assert parsed(text) == expected.value, f"{pattern:#x}"
            assert exact_value(pattern, fmt) == expected.value, f"{pattern:#x}"


@pytest.mark.parametrize("name", FORMATS)
def test_bit_fields_are_the_pattern_without_padding(name: str) -> None:
    fmt, reference = FORMATS[name], oracle.FORMATS[name]
    fields = ([1] if reference.signed else []) + [reference.exponent_bits, reference.mantissa_bits]
    fields = [sum(fields)] if "int" in name else fields
    mask = (1 << sum(fields)) - 1
    for pattern in patterns(name):
        text = bit_fields(pattern, fmt)
        assert [len(part) for part in text.split(" ")] == [width for width in fields if width], f"{pattern:#x}: {text}"
        assert int(text.replace(" ", ""), 2) == (pattern >> reference.padding) & mask, f"{pattern:#x}: {text}"


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (Fraction(0), "0"),
        (Fraction(1), "1"),
        (Fraction(-1), "-1"),
        (Fraction(1, 1024), "2^-10"),
        (Fraction(3), "3"),
        (Fraction(-9), "-9"),
        (Fraction(10), "2^3 + 2^1"),
        (2 - Fraction(1, 2**40), "2^1 - 2^-40"),
        (Fraction(7 * 2**20), "2^23 - 2^20"),
        (Fraction(0b10101), "2^4 + 2^2 + 1"),
        (Fraction(0b1010101), "85"),
        (Fraction(-0b1010101, 2**8), "-85*2^-8"),
    ],
)
def test_powers_examples(value: Fraction, text: str) -> None:
    assert powers(value) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (Fraction(0), "0"),
        (Fraction(-5, 4), "-1.25"),
        (Fraction(1, 3), "0.333333333"),
        (Fraction(3, 2) * 2**1023, "1.34826985e+308"),
        (Fraction(2) ** 2000, "1.14813070e+602"),
        (-(Fraction(2) ** -1100), "-7.36215183e-332"),
    ],
)
def test_decimals_have_no_largest_and_no_smallest_number(value: Fraction, text: str) -> None:
    assert decimal(value) == text


def test_powers_uses_as_few_terms_as_there_are() -> None:
    """Three or fewer terms wherever three signed powers suffice, an odd number times a power elsewhere."""
    reachable = {Fraction(0)}
    for _ in range(MAX_POWERS):
        steps = [sign * Fraction(2) ** k for sign in (1, -1) for k in range(10)]
        reachable |= {number + step for number in reachable for step in steps}
    for number in range(-255, 256):
        text = powers(Fraction(number))
        assert parsed(text) == number
        alone = re.fullmatch(r"-?(\d+)(\*.*)?", text)
        if alone is None or int(alone[1]) < 10:
            assert Fraction(number) in reachable, number
        else:
            assert Fraction(number) not in reachable, number
            assert int(alone[1]) % 2 == 1


def test_powers_of_random_dyadic_numbers() -> None:
    rng = random.Random(11)
    for _ in range(2000):
        value = Fraction(rng.randrange(-(1 << 60), 1 << 60) or 1) * Fraction(2) ** rng.randrange(-1100, 1000)
        assert parsed(powers(value)) == value
