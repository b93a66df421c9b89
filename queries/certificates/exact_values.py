"""What a unit, as plain data, makes of finite inputs without rounding, in rationals; and how large its terms are."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from queries.certificates.magnitudes import need, two

Plain = Mapping[str, Any]


def number_of(fmt: Plain, pattern: int) -> Fraction:
    """The number of a format that a pattern, which is neither infinite nor a NaN, stands for."""
    rest = pattern >> fmt["padding"]
    fraction, field = rest & (1 << fmt["fraction"]) - 1, rest >> fmt["fraction"]
    exponent, negative = field & (1 << fmt["exponent"]) - 1, fmt["signed"] and field >> fmt["exponent"]
    normal = int(exponent > 0 or not fmt["subnormals"])
    found: Fraction = (fraction + (normal << fmt["fraction"])) * two(
        exponent + 1 - normal - fmt["bias"] - fmt["fraction"]
    )
    return -found if negative else found


@dataclass(frozen=True)
class Unrounded:
    """One input of a unit, as numbers by their names. `sizes`: of every number its magnitude, so that what is added up
    is the magnitudes of all terms. `so_far`: the addend, where it is no number of its format."""

    document: Plain
    values: Mapping[str, int]
    sizes: bool = False
    so_far: Fraction | None = None

    @property
    def result(self) -> Fraction:
        return self._of(self.document["unit"]["result"], {}, {})

    def _of(self, at: int, places: Mapping[int, int], running: Mapping[int, Fraction]) -> Fraction:
        node = self.document["nodes"][at]
        match node["kind"]:
            case "element":
                return self._read(node, places)
            case "zero":
                return Fraction(0)
            case "number":
                return self._number(node["format"], node["pattern"])
            case "acc":
                return running[node["level"]]
            case "repeat":
                found = self._of(node["start"], places, running)
                for place in node["places"]:
                    found = self._of(node["body"], {**places, node["level"]: place}, {**running, node["level"]: found})
                return found
            case "each":
                every = (self._of(node["body"], {**places, node["level"]: place}, running) for place in node["places"])
                return sum(every, Fraction(0))
            case "relu":
                return max(self._of(node["term"], places, running), Fraction(0))
            case "segment":
                return self._segment(node, self._of(node["term"], places, running))
        if "items" in node:
            return sum((self._of(item, places, running) for item in node["items"]), Fraction(0))
        factors = [node[name] for name in ("term", "left", "right") if name in node]
        found = Fraction(1)
        for factor in factors:
            found *= self._of(factor, places, running)
        return found

    def _number(self, fmt: int, pattern: int) -> Fraction:
        found = number_of(self.document["formats"][fmt], pattern)
        return abs(found) if self.sizes else found

    def _read(self, node: Plain, places: Mapping[int, int]) -> Fraction:
        operand, index = node["operand"], node["index"]
        if operand == "c" and self.so_far is not None:
            return self.so_far
        at = (
            "" if index is None else index["offset"] + sum(factor * places[level] for level, factor in index["factors"])
        )
        fmt = self.document["unit"][operand if operand in "abc" else "scale"]
        found = self._number(fmt, self.values[f"{operand}{at}"])
        least = two(1 - self.document["formats"][fmt]["bias"])
        return Fraction(0) if node["subnormals"] != "keep" and abs(found) < least else found

    def _segment(self, node: Plain, number: Fraction) -> Fraction:
        """Some bits of a significand, counted from its leading one, or from that of the least normal number."""
        fmt = self.document["formats"][self.document["unit"][self.document["nodes"][node["term"]]["operand"]]]
        size, exponent = abs(number), -4096
        need(size == 0 or size >= two(exponent), "the number is too small")
        while size >= two(exponent + 1):
            exponent += 1
        last = two((exponent if node["leading"] else max(exponent, fmt["subnormals"] - fmt["bias"])) + 1 - node["end"])
        found: Fraction = size // last % (1 << node["end"] - node["first"]) * last
        return -found if number < 0 else found


def chained(document: Plain, rows: list[Mapping[str, int]]) -> list[tuple[Fraction, Fraction]]:
    """After each instruction of a chain, whose first addend alone is a number: the exact result, and the magnitudes of
    all terms."""
    found: list[tuple[Fraction, Fraction]] = []
    for row in rows:
        exact, size = found[-1] if found else (None, None)
        one = Unrounded(document, row, False, exact)
        found.append((one.result, replace(one, sizes=True, so_far=size).result))
    return found
