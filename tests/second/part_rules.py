"""Rules about the parts of inputs: roundings that count with their values until all terms are added. Values are
polynomials: products of symbols, each an input or what a rounding adds to its operand, with coefficients."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

from tests.second.document import Document, conclude, largest_number, need_lemmas, operands_of
from tests.second.goals import CHAIN, Condition, Facts, Goal, frozen
from tests.second.magnitudes import Form, add, covers, need, plain, single, times
from tests.second.node_rules import after_rounding, finite

Places = tuple[tuple[int, int], ...]
Symbol = tuple[Any, ...]  # ("input", its magnitude's name and index) or ("added", node, places)
Polynomial = dict[tuple[Symbol, ...], Fraction]
LOSSLESS = ("element", "zero", "number", "product", "exact", "scale", "gate", "round", "each")


class Polynomials:
    """The polynomial of each node of a tree's unit: roundings add nothing, but for those of `kept`. `chain`: of c only
    the size that is assumed of it is known."""

    def __init__(self, tree: Document, kept: Iterable[int], chain: bool = False) -> None:
        self.tree, self.kept, self.chain = tree, frozenset(kept), chain

    def of(self, node: int, places: Places, running: Mapping[int, Polynomial]) -> Polynomial:
        what = self.tree.nodes[node]
        match what["kind"]:
            case "element":
                index, known = what["index"] or {"offset": 0, "factors": []}, dict(places)
                offset = index["offset"] + sum(
                    step * known[level] for level, step in index["factors"] if level in known
                )
                rest = tuple((level, step) for level, step in index["factors"] if level not in known)
                return {(("input", what["operand"], offset, rest, what["subnormals"]),): Fraction(1)}
            case "zero":
                return {}
            case "number":
                fmt = self.tree.formats[what["format"]]
                sign = fmt["exponent"] + fmt["fraction"] + fmt["padding"]
                return {(): finite(what["pattern"], fmt) * (-1 if what["pattern"] >> sign & 1 else 1)}
            case "acc":
                need(what["level"] in running, "a result so far is not known")
                return running[what["level"]]
            case "product" | "scale":
                found: Polynomial = {(): Fraction(1)}
                for operand in operands_of(what) if what["kind"] == "product" else [
                        what["term"], what["left"], what["right"]]:  # fmt: skip
                    found = multiplied(found, self.of(operand, places, running))
                return found
            case "exact" | "fused" | "grid":
                terms = self.tree.terms(what["items"], places)
                return summed([self.of(term, at, running) for term, at, _ in terms])
            case "gate" | "cancelling" | "cut":
                return self.of(what["term"], places, running)
            case "round":
                own = ("added", node, self.tree.bound(node, places))
                added: list[Polynomial] = [{(own,): Fraction(1)}] if node in self.kept else []
                return summed([self.of(what["term"], places, running), *added])
            case "sum":
                words = [[self.of(word, (), {}) for word in pair] for pair in self.tree.pairs_of(what["stage"])]
                need(not any(() in word for pair in words for word in pair), "a word is not zero where its element is")
                return summed([self.of(what["start"], places, running), *(multiplied(*pair) for pair in words)])
            case "repeat":
                so_far, level = self.of(what["start"], places, running), what["level"]
                for place in what["places"]:
                    at = tuple(sorted({**dict(places), level: place}.items()))
                    so_far = self.of(what["body"], at, {**running, level: so_far})
                return so_far
        need(False, f"nothing is known of {what['kind']}")
        raise AssertionError

    def bound(self, polynomial: Polynomial, lost: bool | None = None) -> Form:
        """The sum of the magnitudes of its products; `lost`: of those with, or without, what a rounding added."""
        found: Form = {}
        for symbols, value in polynomial.items():
            if lost is None or any(kind == "added" for kind, *_ in symbols) is lost:
                size = plain(abs(value))
                for symbol in symbols:
                    size = times(size, self.size(symbol))
                found = add(found, size)
        return found

    def over_products(self, polynomial: Polynomial, lost: bool) -> Form:
        """The same, where all but products of c mean sums over all products of a plan."""
        sides: tuple[Polynomial, Polynomial] = ({}, {})
        for symbols, value in polynomial.items():
            sides[all(symbol[:2] == ("input", "c") for symbol in symbols)][symbols] = value
        each, rest = (self.bound(side, lost) for side in sides)
        return add(self.tree.over_all(each), rest)

    def size(self, symbol: Symbol) -> Form:
        if symbol[0] == "input":
            return single("size", CHAIN) if self.chain and symbol[1] == "c" else single(*symbol[1:4])
        _, node, places = symbol
        what = self.tree.nodes[node]
        polynomial, how = self.of(what["term"], places, {}), what["rounding"]
        below, (grid, bits) = self.bound(polynomial), self.known(what["term"], self.tree.emin(how["format"]))
        lost = self.nonzero(
            after_rounding(self.tree, Facts({}, {}, below, grid=grid, bits=bits), how).error, polynomial
        )
        whole = how["mode"] in ("nearest_even", "nearest_away", "toward_zero")
        return below if whole and covers(lost, below) else lost  # zero is a number, too

    def known(self, node: int, emin: int) -> tuple[int | None, int | None]:
        """Of a number that is rounded to a format of this smallest exponent: a power of two of which it is a multiple,
        and how many bits it has at most. None below 2^emin is like one of multiples of it: there nothing is lost."""
        if not self.tree.unit.get("windows"):
            found = self.tree.number_read(node, self.kept)
            return (found.grid, found.bits) if found else (None, None)
        grid, bits, least = self._place(node)
        return emin if grid is not None and least is not None and grid < emin <= least else grid, bits

    def _place(self, node: int) -> tuple[int | None, int | None, int | None]:
        """The same in windows, and a power of two that is no larger than the number, which may be zero."""
        what = self.tree.nodes[node]
        match what["kind"]:
            case "element":
                facts = self.tree.read(what["operand"], {})
                return (
                    facts.grid,
                    facts.bits,
                    facts.least if what["operand"] in dict(self.tree.unit["windows"]) else None,
                )
            case "number":
                value = abs(finite(what["pattern"], self.tree.formats[what["format"]]))
                grid = (value.numerator & -value.numerator).bit_length() - value.denominator.bit_length()
                top = value.numerator.bit_length() - value.denominator.bit_length()
                return grid, top - grid + 1, top
            case "product":
                one, other = map(self._place, operands_of(what))
                return tuple(None if None in pair else sum(pair) for pair in zip(one, other, strict=True))  # type: ignore
            case "exact":
                grids = [self._place(term)[0] for term, _, _ in self.tree.terms(what["items"], ())]
                grid = None if None in grids else min(grids)  # type: ignore[type-var]
                return grid, None, grid
            case "round":
                fmt, (grid, bits, least) = self.tree.formats[what["rounding"]["format"]], self._place(what["term"])
                emin = self.tree.emin(what["rounding"]["format"])
                grid = grid if grid is None else min(grid, largest_number(fmt)[0] - fmt["fraction"])
                bits = fmt["fraction"] + 1 if bits is None else min(bits, fmt["fraction"] + 1)
                return grid, bits, least if least is not None and least >= emin else grid
        return None, None, None

    def nonzero(self, form: Form, polynomial: Polynomial) -> Form:
        """A bound of what is lost of a number that is zero with the one element that it is made of: where it is not,
        the element is at least the least number of its window."""
        windows = dict(self.tree.unit.get("windows", ()))
        read = self._inputs(polynomial) if windows and not self.chain and () not in polynomial else set()
        if len(read) != 1 or not {name for name, _, _ in read} <= windows.keys():
            return form
        ((name, offset, rest),) = read
        relative = {atom: value for atom, value in form.items() if atom not in plain(Fraction(1))}
        fixed = sum((value for atom, value in form.items() if atom in plain(Fraction(1))), Fraction(0))
        return add(relative, times(single(name, offset, rest), plain(fixed * Fraction(2) ** -windows[name][0])))

    def _inputs(self, polynomial: Polynomial) -> set[tuple[Any, ...]]:
        """The elements of which a number is made."""
        found = set[tuple[Any, ...]]()
        for kind, *what in (symbol for symbols in polynomial for symbol in symbols):
            term = None if kind == "input" else self.tree.nodes[what[0]]["term"]
            found |= {tuple(what[:3])} if term is None else self._inputs(self.of(term, what[1], {}))
        return found


def summed(every: Iterable[Polynomial]) -> Polynomial:
    found: Polynomial = {}
    for one in every:
        for symbols, value in one.items():
            found[symbols] = found.get(symbols, Fraction(0)) + value
    return {symbols: value for symbols, value in found.items() if value}


def multiplied(one: Polynomial, other: Polynomial) -> Polynomial:
    return summed({tuple(sorted((*x, *y), key=repr)): v * w} for x, v in one.items() for y, w in other.items())


def part(tree: Document, goal: Goal, premises: Sequence[int], _: Any) -> None:
    how, below = tree.node(goal, "round")["rounding"], tree.below(goal.node)
    need(all(tree.nodes[node]["kind"] in LOSSLESS for node in below), "a rounding of what is not exact")
    kept = {node for node in below if tree.nodes[node]["kind"] == "round"}
    need(goal.assuming == {(("kept", node), frozenset()) for node in kept}, "it keeps other roundings")
    hows = [tree.nodes[node]["rounding"] for node in kept]
    need_lemmas(tree, premises, "RoundingLoses", [{"format": one["format"], "mode": one["mode"]} for one in hows])
    known = Polynomials(tree, kept)
    found = set()
    for node, own in zip(kept, hows, strict=True):
        places, term = tree.bound(node, goal.places), tree.nodes[node]["term"]
        most = known.bound(known.of(term, tree.bound(term, places), {}))
        found.add(Condition(node, places, largest_number(tree.formats[own["format"]])[0], frozen(most)))
    need(goal.provided == found, "other roundings may not overflow")
    polynomial = known.of(goal.node, goal.places, {})
    size = known.bound(polynomial)
    facts = tree.numbers(frozenset({how["format"]}), {}, {}, size, flushed=how["subnormals"] != "keep")
    weight = None if facts.weight is None else known.nonzero(facts.weight, polynomial)
    conclude(goal, replace(facts, weight=weight))


def rejoined(tree: Document, goal: Goal, premises: Sequence[int], _: Any) -> None:
    (premise,) = premises
    below, facts = tree.enclosed(premise)
    kept = {level[1] for level, _ in below.assuming if isinstance(level, tuple)}
    others = {one for one in below.assuming if not isinstance(one[0], tuple)}
    need(bool(kept) and {level for level, _ in others} <= {CHAIN}, "what is kept, and of c, is all that is assumed")
    inside = {below_ for node in kept for below_ in tree.below(node)}
    need(not others or all(tree.nodes[node].get("operand") != "c" for node in inside), "c is also an exact input")
    need(goal.node == below.node and goal.assuming == others, "it is about another, or assumes something else")
    need(not (goal.places or tree.free(goal.node)), "it is about some places alone")
    need(not others or not tree.of_plan, "a plan is no instruction of a chain")
    need(goal.provided == below.provided, "something else may not overflow")
    known = Polynomials(tree, kept, bool(others))
    found = known.of(goal.node, (), {})
    lost, size = (known.over_products(found, lost=side) for side in (True, False))
    conclude(goal, replace(facts, low=add(facts.low, lost), high=add(facts.high, lost), size=size))
