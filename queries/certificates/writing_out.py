"""Expressions written out without loops: each intermediate number of a unit, made once from the numbers it is
computed from.

Two numbers are the same if they are computed in the same way from the same numbers. The terms of a sum have no order. A
number of a format is unchanged by a rounding to that format, if the rounding changes no subnormal number, zero or NaN
that can occur.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from queries.certificates.document import nan_as, operands_of
from queries.certificates.magnitudes import need

Plain = dict[str, Any]
Read = Callable[[str, int | None, Plain], int]  # operand, place, and the node that reads it
Made = tuple[Any, ...]
ALONE = {"kind", "items", "frame"}  # of sums: what is not one value for all terms, or one for each


class Numbers:
    """Numbers, identified by what they are made of."""

    def __init__(self) -> None:
        self.known: dict[Made, int] = {}
        self.made_of: list[Made] = []

    def made(self, *parts: Any) -> int:
        """The number made of these parts; equal parts give the same number."""
        if parts not in self.known:
            self.known[parts] = len(self.made_of)
            self.made_of.append(parts)
        return self.known[parts]

    def zero(self) -> int:
        return self.made("zero", False)

    def element(self, operand: str, place: int | None, how: Mapping[str, Any]) -> int:
        """An input element as it is read."""
        return self.made("element", operand, place, how["subnormals"], how["positive_zeros"])

    def exact(self, terms: Sequence[int]) -> int:
        """The exact sum of terms, and of those of which a term is itself the exact sum."""
        flat: list[int] = []
        for term in terms:
            kind, *parts = self.made_of[term]
            flat += [one for one, _ in parts[1]] if kind == "exact" else [term]
        return self.made("exact", (), tuple(sorted((term, ()) for term in flat)))

    def applied(self, kind: str, operands: Sequence[int], own: Plain) -> int:
        """What a node that is no sum makes of its operands; `own`: its parameters."""
        return self.made(kind, *operands, json.dumps(sorted(own.items()), sort_keys=True))

    def rounded(self, term: int, how: Mapping[str, Any], fmt: Mapping[str, Any]) -> int:
        """A number rounded to a format."""
        own = json.dumps(fmt, sort_keys=True), how["nan"], how["subnormals"], how["zero"]
        inner = self.made_of[term]
        steady = nan_as(how, fmt) != "number"  # another rounding may change the number that is written for a NaN
        if steady and inner[0] == "round" and inner[2][:2] == own[:2] and own[3] != "exact_positive":
            keeps = own[2] == "keep" or inner[2][2] != "keep"
            if own[2:] == inner[2][2:] or (keeps and own[3] == "ieee"):
                return term
        return self.made("round", term, own, how["mode"], how["overflow"])

    def of_unit(self, unit: Plain, read: Read) -> int:
        """The result of a unit on the operands that `read` gives."""
        return _Unit(self, unit, read).value(unit["unit"]["result"], {}, {})


class Rules:
    """Rules that give other numbers that are the same on every input: each is applied to a number that is made of
    numbers in their forms."""

    def __init__(self, numbers: Numbers) -> None:
        self.numbers = numbers
        self.forms: list[int] = []

    def form(self, number: int) -> int:
        """The number that is the same on every input, to whose parts the rules were applied as well."""
        for made in self.numbers.made_of[len(self.forms) : number + 1]:  # what a number is made of is before it
            self.forms.append(self._form(made))
        return self.forms[number]

    def _form(self, made: Made) -> int:
        match made:
            case ("round", int(term), *how):
                return self.rounded(self.forms[term], how)
            case ("exact", (), terms):
                return self.numbers.exact([self.forms[term] for term, _ in terms])
            case ("product", int(left), int(right), own):
                return self.numbers.made("product", self.forms[left], self.forms[right], own)
            case ("relu", int(term), own):
                return self.numbers.made("relu", self.forms[term], own)
            case (kind, str(rest), tuple(terms)):
                return self.added(kind, rest, [(self.forms[term], own) for term, own in terms])
        return self.numbers.made(*made)

    def rounded(self, term: int, how: Sequence[Any]) -> int:
        """A rounding of a number in its form."""
        return self.numbers.made("round", term, *how)

    def added(self, kind: str, rest: str, terms: Sequence[Made]) -> int:
        """A sum that is not exact, of terms in their forms."""
        return self.numbers.made(kind, rest, tuple(sorted(terms)))


class _Unit:
    def __init__(self, numbers: Numbers, unit: Plain, read: Read) -> None:
        self.numbers, self.nodes, self.formats, self.read = numbers, unit["nodes"], unit["formats"], read
        self.free = free_of(self.nodes)
        self.values: dict[Made, int] = {}

    def value(self, at: int, places: Mapping[int, int], sums: Mapping[int, int]) -> int:
        """The number of a node, for given loop variables and intermediate results of loops."""
        key = at, *((level, places.get(level), sums.get(level)) for level in sorted(self.free[at]))
        if key not in self.values:
            self.values[key] = self._made(self.nodes[at], places, sums)
        return self.values[key]

    def _made(self, node: Plain, places: Mapping[int, int], sums: Mapping[int, int]) -> int:
        kind, made = node["kind"], self.numbers.made
        if kind == "element":
            index = node["index"]
            place = None if index is None else index["offset"] + sum(step * places[lv] for lv, step in index["factors"])
            return self.read(node["operand"], place, node)
        if kind == "acc":
            return sums[node["level"]]
        if kind == "repeat":
            level, running = node["level"], self.value(node["start"], places, sums)
            for place in node["places"]:
                running = self.value(node["body"], {**places, level: place}, {**sums, level: running})
            return running
        if kind == "round":
            how = node["rounding"]
            return self.numbers.rounded(self.value(node["term"], places, sums), how, self.formats[how["format"]])
        if "items" in node:
            return self._sum(node, places, sums)
        operands = [self.value(operand, places, sums) for operand in operands_of(node)]
        need(
            kind in ("zero", "number", "product", "gate", "segment", "scale", "cut", "cancelling", "relu"),
            f"of a {kind} it is not known what it is made of",
        )
        own = {name: self.formats[value] if name == "format" else value for name, value in node.items()
               if name not in ("kind", "term", "left", "right")}  # fmt: skip
        if kind == "zero":
            return made("zero", node["negative"])
        return self.numbers.applied(kind, operands, own)

    def _sum(self, node: Plain, places: Mapping[int, int], sums: Mapping[int, int]) -> int:
        values = {name: value for name, value in node.items() if name not in ALONE and value != []}
        each = [name for name in sorted(values) if isinstance(values[name], list)]
        if "fraction_bits" in values and "fraction_bits" not in each:
            each = sorted([*each, "fraction_bits"])
        terms = []
        for position, at in enumerate(node["items"]):
            own = [values[name][position] if isinstance(values[name], list) else values[name] for name in each]
            own.append(node.get("frame") == position)
            terms += [(term, json.dumps(own)) for term in self._terms(at, places, sums)]
        if node["kind"] == "exact":
            return self.numbers.exact([term for term, _ in terms])
        rest = json.dumps([(name, value) for name, value in sorted(values.items()) if name not in each] + [each])
        return self.numbers.made(node["kind"], rest, tuple(sorted(terms)))

    def _terms(self, at: int, places: Mapping[int, int], sums: Mapping[int, int]) -> Iterator[int]:
        node = self.nodes[at]
        if node["kind"] != "each":
            yield self.value(at, places, sums)
            return
        for place in node["places"]:
            yield from self._terms(node["body"], {**places, node["level"]: place}, sums)


def free_of(nodes: Sequence[Plain]) -> list[set[int]]:
    """The loop variables that each node depends on, operands first."""
    found: list[set[int]] = []
    for node in nodes:
        own = set[int]()
        if node["kind"] == "element" and node["index"] is not None:
            own = {level for level, _ in node["index"]["factors"]}
        elif node["kind"] == "acc":
            own = {node["level"]}
        elif node["kind"] == "repeat":
            own = found[node["start"]] | (found[node["body"]] - {node["level"]})
        elif node["kind"] == "each":
            own = found[node["body"]] - {node["level"]}
        else:
            own = own.union(*(found[operand] for operand in operands_of(node)))
        found.append(own)
    return found


def alike(left: Plain, right: Plain, order: Sequence[int] | None = None) -> bool:
    """Whether two units over the same operands compute their results in the same way, the products of the right one
    being reordered: order[k] is the product in place k."""

    def result(unit: Plain, source: Sequence[int] | None) -> int:
        def read(operand: str, place: int | None, node: Plain) -> int:
            if source is not None and place is not None and operand in ("a", "b"):
                place = source[place]
            return numbers.element(operand, place, node)

        return numbers.of_unit(unit, read)

    numbers = Numbers()
    return result(left, None) == result(right, order)
