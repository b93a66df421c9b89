"""Numbers that are read as the addend of a unit, without readings that change none.

Reading makes every zero +0, and may make subnormal numbers zero. It changes no number that is neither -0 nor, where it
flushes, subnormal. Of a sum of one such number y and of multiples of 2^g, rounded to the format of y of p bits, it
changes none either:

- a sum that is exactly zero is -0 only if y is -0, or where rounding is down;
- if what is added to y is zero, the sum is y; else y is below 2^(g - 1), and the sum at least that, or y, with p bits,
  is a multiple of 2^(g - p), and so is the sum; if that is normal (subnormal, where nothing flushes), so is the result.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import cache
from typing import Any

from queries.certificates.document import nan_as
from queries.certificates.lossless import Lossless, last_place
from queries.certificates.writing_out import Rules


class ReadAddends(Rules):
    """`lossless`: what is known of the numbers."""

    def __init__(self, lossless: Lossless) -> None:
        super().__init__(lossless.numbers)
        self.lossless = lossless
        self.never_minus, self.never_tiny = cache(self._never_minus), cache(self._never_tiny)

    def rounded(self, term: int, how: Sequence[Any]) -> int:
        return term if self.keeps(term, how) else super().rounded(term, how)

    def keeps(self, number: int, how: Sequence[Any]) -> bool:
        """Whether a rounding is how a unit reads an addend, and does not change this number in its form."""
        (text, _, tiny, _), *_ = how
        return _is_reading(how) and self.never_minus(number, text) and (tiny == "keep" or self.never_tiny(number, text))

    def _never_minus(self, number: int, text: str) -> bool:
        """Whether it is a number of the format that is never -0."""
        match self.numbers.made_of[number]:
            case ("zero", negative):
                return not negative
            case ("element", "c", _, _, plus):
                return bool(plus) and self._is_of(number, text)
            case ("round", int(term), (own, nan, tiny, zero), mode, _) if own == text and _no_number(nan, text):
                terms = self.lossless.terms_of(term)
                if zero == "positive":
                    return True
                if mode == "down" or not self._far(terms, text, tiny != "keep"):
                    return False
                return any(self.never_minus(one, text) for one in terms)
        return False

    def _never_tiny(self, number: int, text: str) -> bool:
        """Whether it is a number of the format that is never subnormal."""
        match self.numbers.made_of[number]:
            case ("zero", _):
                return True
            case ("element", "c", _, tiny, _):
                return bool(tiny != "keep") and self._is_of(number, text)
            case ("round", int(term), (own, nan, tiny, _), *_) if own == text and _no_number(nan, text):
                return tiny != "keep" or self._far(self.lossless.terms_of(term), text, True)
        return False

    def _far(self, terms: Sequence[int], text: str, normal: bool) -> bool:
        """Whether a sum of terms that is not zero is at least the smallest (`normal`: normal) number of the format."""
        fmt = json.loads(text)
        least = last_place(fmt) + (fmt["fraction"] if normal else 0)
        grids = [(one, self.lossless.grid(one)) for one in terms]
        if all(grid is not None and grid >= least for _, grid in grids):
            return True
        near = [one for one, grid in grids if grid is None or grid - fmt["fraction"] - 1 < least]
        return len(near) == 1 and (self.never_tiny(near[0], text) if normal else self._is_of(near[0], text))

    def _is_of(self, number: int, text: str) -> bool:
        """Whether all that it may be are numbers of the format."""
        match self.numbers.made_of[number]:
            case ("element", "c", *_):
                return bool(self.lossless.formats["c"] == json.loads(text))
            case ("round", _, (own, *_), *_):
                return bool(own == text)
            case made:
                return bool(made[0] == "zero")


def _no_number(nan: int | None, text: str) -> bool:
    """Whether what is written for a NaN is none but +0."""
    return nan_as({"nan": nan}, json.loads(text)) != "number"


def _is_reading(how: Sequence[Any]) -> bool:
    (text, nan, tiny, zero), mode, overflow = how
    fmt = json.loads(text)
    signs = fmt["signed"] and fmt["specials"] not in ("negative_zero", "extended")
    plain = (nan, zero, mode, overflow) == (None, "positive", "nearest_even", "ieee")
    return bool(plain and signs and tiny in ("keep", "flush_after") and fmt["subnormals"])
