"""Checks whether a text is a number. Python's own functions accept more than users mean: `str.isdigit` and `int` accept
the digits of every script (and `int` refuses some digits of `isdigit`), and `int` reads 1_0 as 10. Here digits are 0 to
9, and a text of more than LONGEST digits, which `int` would refuse, is no number."""

from __future__ import annotations

import re

LONGEST = 4000  # digits; `int` raises above 4300
_DIGITS = re.compile(f"[0-9]{{1,{LONGEST}}}")
_WHOLE = re.compile(f"[+-]?[0-9]{{1,{LONGEST}}}")
_DECIMAL = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)(e[+-]?[0-9]+)?", re.IGNORECASE)


def is_digits(text: str) -> bool:
    """Whether a text is a whole number without a sign."""
    return bool(_DIGITS.fullmatch(text))


def is_whole(text: str) -> bool:
    """Whether a text is a whole number, with or without a sign."""
    return bool(_WHOLE.fullmatch(text))


def is_decimal(text: str) -> bool:
    """Whether a text is a decimal number such as 3, 0.5 or 1e-3; infinities and NaN are not."""
    return bool(_DECIMAL.fullmatch(text))
