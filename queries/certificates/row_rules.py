"""Checks bounds of rows of numbers, operation by operation: in integers, sharing no code with the search that found
them.

A document has the theorems, premises first. Each has the rule, its premises, the parameters of the operation besides
the rows, the format of the numbers, and their bounds as runs of (count, bound). Statements: the docstrings of
queries/kernel/rows.py.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

from queries.certificates.magnitudes import FaultError, need

LARGEST = Fraction((1 << 24) - 1, 1 << 24)  # below 1, in f32


def row_faults(document: Mapping[str, Any]) -> list[tuple[int, str]]:
    """The theorems that do not follow, by number, each with the reason."""
    found, rows = list[tuple[int, str]](), list[tuple[dict[str, Any], list[Fraction]]]()
    for number, theorem in enumerate(document["theorems"]):
        try:
            bounds = [Fraction(bound) for count, bound in theorem["bounds"] for _ in range(count)]
            need(all(type(p) is int and 0 <= p < number for p in theorem["premises"]), "a premise is not before it")
            premises = [rows[place] for place in theorem["premises"]]
            wanted = _bounds(theorem, premises)
            need(bounds == wanted, "its bounds do not follow")
        except (FaultError, KeyError, ValueError, TypeError, IndexError) as fault:
            found.append((number, f"{theorem['rule']}: {fault}"))
            bounds = []
        rows.append((theorem["format"], bounds))
    return found


def _bounds(theorem: Mapping[str, Any], rows: Sequence[tuple[dict[str, Any], list[Fraction]]]) -> list[Fraction]:
    """The bounds that the rule concludes from its premises. Raises FaultError if it does not apply."""
    rule, fmt, told = theorem["rule"], theorem["format"], theorem["told"]
    if rule == "below_one":
        need(not rows and fmt["exponent"] == 8 and fmt["fraction"] == 23, "it is about numbers of f32")
        return [LARGEST] * told["numbers"]
    if rule == "joined":
        need(len(rows) == 2 and rows[0][0] == rows[1][0] == fmt, "its rows are of two formats")
        return [*rows[0][1], *rows[1][1]]
    ((source, given),) = rows
    if rule == "converted":
        need(fmt == told["to"], "the numbers are of another format than it says")
        return [_nearest(bound, fmt) for bound in given]
    if rule == "column_sums":
        need(source == told["factors"] and fmt == told["sums"], "the numbers are of another format than the unit's")
        side, width = told["shape"]
        size, group = side * width, side * width * told["chain"]
        rows_ = given + [Fraction(0)] * (-len(given) % group)
        every = [[rows_[at] for at in range(start + j, start + group, width)]
                 for start in range(0, len(rows_), group) for j in range(width)]  # fmt: skip
        need(size > 0, "a matrix has no numbers")
        return [_down(sum(column, Fraction(0)), fmt) for column in every]
    need(source == fmt, "it changes the format")
    if rule == "parted":
        return given[told["start"] : told["stop"]]
    if rule == "trees":
        filled = given + [Fraction(0)] * (-len(given) % told["size"])
        return [_tree(filled[at : at + told["size"]], fmt) for at in range(0, len(filled), told["size"])]
    need(rule == "in_sequence", "there is no such rule")
    running = given[0]
    for bound in given[1:]:
        running = _nearest(running + bound, fmt)
    return [running]


def _tree(layer: list[Fraction], fmt: Mapping[str, Any]) -> Fraction:
    while len(layer) > 1:
        half = -(-len(layer) // 2)
        pairs = zip(layer, layer[half:], strict=False)  # of an odd number one is left
        layer = [_nearest(x + y, fmt) for x, y in pairs] + layer[len(layer) - half : half]
    return layer[0]


def _place(value: Fraction, fmt: Mapping[str, Any]) -> int:
    """The place of the last bit of a format's number of that size."""
    place: int = value.numerator.bit_length() - value.denominator.bit_length() - fmt["fraction"]
    if value < Fraction(2) ** (place + fmt["fraction"]):
        place -= 1
    least: int = 1 - fmt["bias"] - fmt["fraction"]
    return max(place, least)


def _down(value: Fraction, fmt: Mapping[str, Any]) -> Fraction:
    if not value:
        return value
    unit = Fraction(2) ** _place(value, fmt)
    return _finite(value // unit * unit, fmt)


def _nearest(value: Fraction, fmt: Mapping[str, Any]) -> Fraction:
    if not value:
        return value
    unit = Fraction(2) ** _place(value, fmt)
    units, rest = divmod(value, unit)
    up = 2 * rest > unit or (2 * rest == unit and units % 2 == 1)
    return _finite((units + up) * unit, fmt)


def _finite(value: Fraction, fmt: Mapping[str, Any]) -> Fraction:
    need(fmt["specials"] == "ieee", "only formats of IEEE 754 are known here")
    top: int = (1 << fmt["exponent"]) - 2 - fmt["bias"]
    need(value < Fraction(2) ** (top + 1), "a sum may overflow")
    return value
