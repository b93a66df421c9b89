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
from typing import Any

from queries.certificates.document import nan_as
from queries.certificates.lossless import Lossless, last_place
from queries.certificates.writing_out import Made


class ReadAddends:
    """`lossless`: what is known of the numbers."""

    def __init__(self, lossless: Lossless) -> None:
        self.lossless, self.numbers = lossless, lossless.numbers
        self.forms: list[int] = []

    def form(self, number: int) -> int:
        """The number that is the same on every input, of which no part is read that reading does not change."""
        for made in self.numbers.made_of[len(self.forms) : number + 1]:  # what a number is made of is before it
            self.forms.append(self._form(made))
        return self.forms[number]

    def _form(self, made: Made) -> int:
        match made:
            case ("round", term, *how) if _is_reading(how) and self._keeps(self.forms[term], how):
                return self.forms[term]
            case ("round", term, *how):
                return self.numbers.made("round", self.forms[term], *how)
            case ("exact", (), terms):
                return self.numbers.exact([self.forms[term] for term, _ in terms])
        return self.numbers.made(*made)

    def _keeps(self, number: int, how: Sequence[Any]) -> bool:
        """Whether reading a number in its form does not change it."""
        (text, _, tiny, _), *_ = how
        match self.numbers.made_of[number]:
            case ("zero", False):
                return True
            case ("round", _, *own) if own == how:
                return True
            case ("element", "c", _, subnormals, True):
                return bool(self.lossless.formats["c"] == json.loads(text)) and (tiny == "keep" or subnormals != "keep")
            case ("round", int(term), (own, nan, subnormals, _), mode, _) if own == text:
                fmt = json.loads(text)
                if mode == "down" or nan_as({"nan": nan}, fmt) == "number":
                    return False
                if tiny == "keep" and subnormals != "keep":  # y may be subnormal, and become -0
                    return False
                terms = self.lossless.terms_of(term)
                others = [one for one in terms if not self._keeps(one, how)]
                least = last_place(fmt) + (fmt["fraction"] if tiny != "keep" else 0)
                grids = [self.lossless.grid(one) for one in others]
                return len(others) == len(terms) - 1 and all(
                    grid is not None and grid - fmt["fraction"] - 1 >= least for grid in grids
                )
        return False


def _is_reading(how: Sequence[Any]) -> bool:
    (text, nan, tiny, zero), mode, overflow = how
    fmt = json.loads(text)
    signs = fmt["signed"] and fmt["specials"] not in ("negative_zero", "extended")
    plain = (nan, zero, mode, overflow) == (None, "positive", "nearest_even", "ieee")
    return bool(plain and signs and tiny in ("keep", "flush_after") and fmt["subnormals"])
