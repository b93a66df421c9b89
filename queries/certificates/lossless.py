"""Sums of sums as one sum: numbers that are written out, without the roundings between them that lose nothing.

A rounding is plain if it keeps subnormal numbers and the sign that IEEE 754 gives to a zero, makes a NaN a NaN or +0,
and no sum of its terms that is not zero is rounded to zero, as all of them are multiples of the smallest number of its
format. Four rules hold of its terms:

- a term that is a plain rounding of one number, which its format always holds, is that number;
- with a term +0, or one that is never -0, a sum of zeros is +0: one +0 says so, and the others are left out;
- in such a sum the sign of a term that is zero does not count, so that of the terms of a term, +0 is left out;
- a plain rounding alone, rounded to its own format again, is that rounding.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from queries.certificates.document import nan_as
from queries.certificates.result_rules import largest_number
from queries.certificates.writing_out import Numbers, Rules

Plain = Mapping[str, Any]
EVERY = 1 << 20  # an exponent above all others: zero is a multiple of any power of two


class Lossless(Rules):
    """`formats`: those of a, b and c; `positive`: c is never -0."""

    def __init__(self, numbers: Numbers, formats: Mapping[str, Plain], positive: bool = False) -> None:
        super().__init__(numbers)
        self.formats, self.positive = formats, positive
        self.unsigned: dict[int, int] = {}
        self.grids: dict[int, int | None] = {}
        self.read: dict[str, Plain] = {}

    def rounded(self, term: int, how: Sequence[Any]) -> int:
        other = self._with_zero(term, how)
        _, _, *own = self.numbers.made_of[other]
        return self._summed(own, self._terms(other)) if self._is_plain(other) else other

    def _with_zero(self, term: int, how: Sequence[Any]) -> int:
        """A rounding, with +0 as one of its terms and the signs of IEEE 754, if it makes zero sums +0 and no other sum
        zero."""
        (text, nan, subnormals, zero), *rest = how
        other = self.numbers.made("round", term, *how)
        kind, *parts = self.numbers.made_of[term]
        several = kind == "exact" and len(parts[1]) > 1  # one term alone has its own sign
        if zero != "positive" and not (zero == "exact_positive" and several):
            return other
        every = self.numbers.exact([*self.terms_of(term), self.numbers.zero()])
        plain = self.numbers.made("round", every, (text, nan, subnormals, "ieee"), *rest)
        return plain if self._is_plain(plain) else other

    def _summed(self, how: Sequence[Any], terms: Sequence[int]) -> int:
        """Terms in their forms, added exactly and rounded plainly."""
        positive = any(map(self.never_minus, terms))
        flat: list[int] = []
        for term in terms:
            one = self._without_sign(term) if positive else term
            flat += [part for part in (self._terms(one) if self._holds(one) else [one]) if not self._is_zero(part)]
        if len(flat) == 1 and self._is_plain(flat[0]):
            (_, _, *own) = self.numbers.made_of[flat[0]]
            if own[0][:2] == how[0][:2]:
                if not positive:
                    return flat[0]
                how, flat = own, [part for part in self._terms(flat[0]) if not self._is_zero(part)]
        every = [*flat, *([self.numbers.zero()] if positive else [])]
        return self.numbers.made("round", self.numbers.exact(every) if len(every) > 1 else every[0], *how)

    def _without_sign(self, number: int) -> int:
        """What may stand for a term where the sign of its zero does not count."""
        if not self._is_plain(number):
            return number
        if number not in self.unsigned:
            terms = [self._without_sign(term) for term in self._terms(number) if not self._is_zero(term)]
            (_, _, *how) = self.numbers.made_of[number]
            self.unsigned[number] = self._summed(how, terms) if terms else self.numbers.zero()
        return self.unsigned[number]

    # -- what is known of a number

    def never_minus(self, number: int) -> bool:
        """Whether a number in its form is never -0."""
        match self.numbers.made_of[number]:
            case ("element", "c", _, subnormals, plus):  # a subnormal below zero may be read as -0
                return self.positive and (subnormals != "zero" or bool(plus))
            case ("round", _, (text, nan, _, "positive"), *_) if nan_as({"nan": nan}, self._format(text)) != "number":
                return True
        return self._is_zero(number) or (self._is_plain(number) and any(map(self._is_zero, self._terms(number))))

    def _is_plain(self, number: int) -> bool:
        kind, *parts = self.numbers.made_of[number]
        if kind != "round":
            return False
        _, (text, nan, subnormals, zero), mode, _ = parts
        fmt = self._format(text)
        signs = fmt["signed"] and fmt["specials"] not in ("negative_zero", "extended")
        if (subnormals, zero) != ("keep", "ieee") or mode == "down" or not signs:
            return False
        grids = [self.grid(term) for term in self._terms(number)]
        return nan_as({"nan": nan}, fmt) != "number" and all(at is not None and at >= last_place(fmt) for at in grids)

    def _holds(self, number: int) -> bool:
        """Whether a number is a plain rounding of one that is not zero, at most, and changes nothing in it."""
        if not self._is_plain(number):
            return False
        _, _, (text, nan, *_), *_ = self.numbers.made_of[number]
        fmt, terms = self._format(text), [term for term in self._terms(number) if not self._is_zero(term)]
        infinite = fmt["specials"] in ("ieee", "extended") and nan_as({"nan": nan}, fmt) == "nan"
        sizes = list(map(self._size, terms))
        return len(terms) <= 1 and all(
            size is not None and size[0] <= fmt["fraction"] + 1 and size[1] <= largest_number(fmt)[0]
            and (infinite or size[2]) for size in sizes
        )  # fmt: skip

    def _size(self, number: int) -> tuple[int, int, bool] | None:
        """The most bits of its significand, an exponent of two above its magnitude, and whether it is always finite."""
        match self.numbers.made_of[number]:
            case ("element", operand, *_) if operand in self.formats:
                fmt = self.formats[operand]
                return fmt["fraction"] + 1, largest_number(fmt)[0] + 1, fmt["specials"] in ("none", "unused")
            case ("round", _, (text, *_), *_):
                fmt = self._format(text)
                return fmt["fraction"] + 1, largest_number(fmt)[0] + 1, False
            case ("product", int(left), int(right), own) if ["limit", None] in json.loads(own):
                one, other = self._size(left), self._size(right)
                if one is not None and other is not None:
                    return one[0] + other[0], one[1] + other[1], one[2] and other[2]
        return None

    def grid(self, number: int) -> int | None:
        """The e of a 2^e of which it is a multiple, if it is finite; None if none is known."""
        if number not in self.grids:
            self.grids[number] = self._grid_of(number)
        return self.grids[number]

    def _grid_of(self, number: int) -> int | None:
        match self.numbers.made_of[number]:
            case ("zero", _):
                return EVERY
            case ("element", operand, *_) if operand in self.formats:
                return last_place(self.formats[operand])
            case ("product", int(left), int(right), _):
                one, other = self.grid(left), self.grid(right)
                return None if one is None or other is None else one + other
            case ("round", _, (text, nan, *_), *_):
                fmt = self._format(text)
                if nan_as({"nan": nan}, fmt) == "number":  # which may be any multiple
                    return None
                last = last_place(fmt)
                least = min(last if at is None else at for at in map(self.grid, self._terms(number)))
                highest: int = largest_number(fmt)[0] - fmt["fraction"]
                return min(max(least, last), highest)
        return None

    def _terms(self, number: int) -> list[int]:
        """What a rounding adds."""
        return self.terms_of(self.numbers.made_of[number][1])

    def terms_of(self, number: int) -> list[int]:
        """What an exact sum adds, sums within it taken apart; a number that is none adds itself."""
        return list(self._added(number))

    def _added(self, number: int) -> Iterator[int]:
        made = self.numbers.made_of[number]
        if made[0] != "exact":
            yield number
            return
        for term, _ in made[2]:
            yield from self._added(term)

    def _is_zero(self, number: int) -> bool:
        """Whether it is +0 on every input."""
        match self.numbers.made_of[number]:
            case ("product", int(left), int(right), _):
                return self._is_zero(left) and self._is_zero(right)
            case made:
                return made == ("zero", False)

    def _format(self, text: str) -> Plain:
        if text not in self.read:
            self.read[text] = json.loads(text)
        return self.read[text]


def last_place(fmt: Plain) -> int:
    """The exponent of the smallest number of a format."""
    return (1 if fmt["subnormals"] else 0) - int(fmt["bias"]) - int(fmt["fraction"])
