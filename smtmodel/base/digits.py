"""Numbers as text. Python takes more than is meant: digits of every script, for which `str.isdigit` is no test (it
takes some for which `int` raises), and 1_0 as 10. Here only 0 to 9 are digits, and what `int` refuses for its length is
none."""

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
    """Whether a text is a whole number."""
    return bool(_WHOLE.fullmatch(text))


def is_decimal(text: str) -> bool:
    """Whether a text is a decimal number such as 3, 0.5 or 1e-3; infinities and NaN are none."""
    return bool(_DECIMAL.fullmatch(text))
