"""What follows from a plan's bound, or from a unit's, for a claim, said a second time, of plain data.

`data` has the inputs (a lowest and a highest exponent of each operand, the fraction bits of a factor and of the addend,
the largest number of products, whether there is an addend), the bound with what may not overflow, what the plan repeats
and how G grows, and what is concluded: the smallest number of products, of which all are multiples, and the shares of
M = |c| + sum of |a_k b_k| at both ends. Of a claim about one number of products it has the unit, or the plan at this K
as one, as `written.py` writes it, one share, and the largest result, in M.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import cached_property
from itertools import product
from typing import Any

from tests.second.document import ANY, Document, operands_of
from tests.second.goals import Condition, read_condition
from tests.second.loop_rules import SLACK
from tests.second.magnitudes import Factor, Form, Monomial, above, flat, need, read_form, two
from tests.second.node_rules import finite
from tests.second.step_rules import need_each_product_once

TheoremData = Mapping[str, Any]
MOST_ZEROS = 10  # products of which all choices of a factor that is zero are looked at


class Inputs:
    """The inputs of a claim, for one number of products."""

    def __init__(self, data: TheoremData, count: int) -> None:
        self.data, self.count, self.addend = data, count, bool(data["addend"])
        (low_a, high_a), (low_b, high_b), (low_c, high_c) = (data["windows"][name] for name in "abc")
        self.least = two(low_a + low_b) if not self.addend else min(two(low_a + low_b), two(low_c))
        tops = {
            "a": (high_a, data["fraction"]),
            "b": (high_b, data["fraction"]),
            "c": (high_c, data["addend_fraction"]),
        }
        self.largest = {name: two(top + 1) - two(top - bits) for name, (top, bits) in tops.items()}
        self.largest["c"] *= self.addend
        self.every = count * two(high_a + high_b + 2) + self.addend * two(high_c + 1)

    @cached_property
    def growth(self) -> Fraction:
        """The value of G, rounded up at each step."""
        at, levels = self.data["at"], 0
        if at["width"]:
            while at["width"] << levels < self.count:
                levels += 1
        turns = levels if at["width"] else (self.count - at["before"]) // at["period"] - 1
        total, power = Fraction(0), Fraction(1)
        for _ in range(turns):
            total, power = above(total + power), above(power * Fraction(at["growth"]))
        return total if at["width"] else above(total * power ** (at["loops"] - 1))

    def number(self, factor: Factor) -> Fraction | None:
        """G and K; None for a magnitude of a number."""
        return self.growth if factor[0] == "growth" else Fraction(self.count) if factor[0] == "count" else None

    def most(self, factor: Factor) -> Fraction:
        """The largest value of any one magnitude."""
        known = self.number(factor)
        if known is not None:
            return known
        need(not factor[3], "a magnitude is that of a number that may be subnormal")
        need(factor[0] in (*self.largest, "exact"), "a magnitude is none of an input")
        return self.every if factor[0] == "exact" else self.largest[factor[0]]

    def share(self, form: Form) -> Fraction:
        """A bound by M: |c| and all products are M together, the exact result is at most M, and of what else there is M
        is at least its least value."""
        sums, rest = {"c": Fraction(0), "ab": Fraction(0)}, Fraction(0)
        for atom, value in flat(form).items():
            (item,) = atom
            for factor in item:
                known = self.number(factor)
                value *= 1 if known is None else known
            need(not any(factor[2] or factor[3] for factor in item), "a magnitude is not that of any element")
            names = [factor for factor in item if self.number(factor) is None]
            kind = "".join(factor[0] for factor in names)
            if kind in sums:
                sums[kind] += value
            elif kind == "exact":
                rest += value
            else:
                for factor in names:
                    value *= self.most(factor)
                rest += value * (self.count if {"a", "b"} & {factor[0] for factor in names} else 1) / self.least
        return rest + max(sums["ab"], sums["c"] * self.addend)

    def fits(self, condition: Condition) -> bool:
        """Whether nothing overflows there for the largest inputs."""
        known = {next(iter(next(iter(dict(mark))))): dict(form) for mark, form in condition.where}

        def value(form: Form, of: Callable[[Factor], Fraction]) -> Fraction:
            found = Fraction(0)
            for atom, factor in form.items():
                sizes = []
                for item in atom:
                    size = Fraction(1)
                    for one in item:
                        size *= of(one)
                    sizes.append(size)
                found += factor * max(sizes)
            return found

        def of(factor: Factor) -> Fraction:
            inner = known.get((factor,))
            return self.most(factor) if inner is None else value(inner, of)

        if condition.most is None:
            return False
        form = dict(condition.most)
        if not condition.each:  # sums over all products
            form = {atom: factor * (self.count if any(one[0] in ("a", "b") for item in atom for one in item) else 1)
                    for atom, factor in flat(form).items()}  # fmt: skip
        return value(form, of) < two(condition.below)


def of_plan(data: TheoremData) -> None:
    """The share is convex in the number of repetitions, so that at both ends it is that of the bound; of halves it
    grows, so that the last one is that of all. Where the bound begins after the smallest number of products, `once` has
    that for this one; no share before the second number is then larger than that of the first, as it is told."""
    first, last, at = data["first"], data["terms"], data["at"]
    need(1 <= first <= last and last % first == 0, "not every number of products is a multiple")
    counts = [at["before"] + turns * at["period"] for turns in range(1, 2 + (2 * last) // at["period"])]
    begins = 2 * first if "once" in data else first
    wanted = range(begins, last + 1, first)
    need(at["width"] or (begins <= last and set(wanted) <= set(counts)), "the bound is about other multiples")
    need(Fraction(at["growth"]) >= 1 and at["loops"] >= 1, "G does not grow")
    form, conditions = read_form(data["form"]), list(map(read_condition, data["conditions"]))
    need(all(map(Inputs(data, last).fits, conditions)), "a rounding may overflow on the largest inputs")
    shares = [Inputs(data, count).share(form) for count in (last if at["width"] else begins, last)]
    if "once" in data:
        need(data["once"]["length"] == first, "the other bound is about another number of products")
        alone = Inputs(data | {"at": at | {"period": first, "before": 0}}, first)
        need(all(map(alone.fits, map(read_condition, data["once"]["conditions"]))), "one run may overflow")
        least = max(shares[0], alone.share(read_form(data["once"]["form"])))
        shares = [least, max(least, shares[1])]
    for claimed, least in zip(map(Fraction, data["shares"]), shares, strict=True):
        need(least <= claimed <= least * SLACK, "the conclusion does not follow")


def of_unit(data: TheoremData) -> None:
    """Of the terms of M alone only the one with the largest coefficient counts; what is at most M counts as M; and all
    else is at most its largest value, M at least its least one."""
    inputs, alone, rest = Inputs(data, data["terms"]), dict[Any, Fraction](), Fraction(0)
    conditions = [replace(one, each=True) for one in map(read_condition, data["conditions"])]
    need(all(map(inputs.fits, conditions)), "a rounding may overflow on the largest inputs")
    need_each_product_once(Document(data["unit"]), data["unit"]["unit"])
    for atom, value in read_form(data["form"]).items():
        kinds = {_term(item) for item in atom}
        if None in kinds:
            rest += value * max(_product(inputs, item) for item in atom) / inputs.least
        elif len(kinds) == 1 and kinds != {"exact"}:
            alone[min(kinds)] = alone.get(min(kinds), Fraction(0)) + value
        else:
            rest += value
    if not inputs.addend:
        alone.pop("c", None)
    _need_share(data, rest + max(alone.values(), default=Fraction(0)))


def of_plan_at(data: TheoremData) -> None:
    """The same of the bound of a plan for one number of products, whose magnitudes are sums."""
    inputs = Inputs(data, data["terms"])
    need(
        all(map(inputs.fits, map(read_condition, data["conditions"]))), "a rounding may overflow on the largest inputs"
    )
    _need_share(data, inputs.share(read_form(data["form"])))


def compares(every: Sequence[TheoremData], claim: str) -> None:
    """The claim's share is no smaller than those known of what it compares, no result leaves the range of the claim's
    numbers, and where M is zero, the results are. `every`: of what is compared, and then of what conditions read."""
    compared, against = _sides(claim, every)
    given = {"terms": Fraction(every[0]["terms"]), "magnitude_sum": Fraction(1)}
    need(_value(against, given) >= sum(Fraction(data["share"]) for data in compared), "only more is known")
    for data in every:
        inputs = Inputs(data, data["terms"])
        need(Fraction(data["size"]) * inputs.every <= two(data["range"]), "a result may leave the range")
        need(data["terms"] <= MOST_ZEROS, "it has too many products for all zeros to be looked at")
        for zeros in product("ab", repeat=data["terms"]):
            none = {("c", 0), *((name, place) for place, name in enumerate(zeros))}
            need(_is_zero(data["unit"], none), "a result may be something where M is zero")


def _sides(claim: str, every: Sequence[TheoremData]) -> tuple[Sequence[TheoremData], ast.expr]:
    """What is known of the one or two results that are compared, and with what they are. Two results are as far apart
    as both are from the exact sum, at most."""
    compared = ast.parse(claim, mode="eval").body
    need(isinstance(compared, ast.Compare) and isinstance(compared.ops[0], ast.LtE), "it is no such claim")
    assert isinstance(compared, ast.Compare)
    count = {"error": 1, "abs": 2}[ast.unparse(compared.left).partition("(")[0]]
    need(len(every) >= count, "it is known of too few results")
    for name in ("first", "terms", "windows", "addend", "fraction", "addend_fraction"):
        need(all(data.get(name) == every[0].get(name) for data in every), "they are known of other inputs")
    return every[:count], compared.comparators[0]


def _need_share(data: TheoremData, share: Fraction) -> None:
    need(share <= Fraction(data["share"]) <= share * SLACK, "the conclusion does not follow")
    need(Fraction(data["size"]) >= 1 + share, "a result may be larger")
    low = data["windows"]
    unit = min(low["a"][0] + low["b"][0] - 2 * data["fraction"], low["c"][0] - data["addend_fraction"])
    need(finest(data) >= unit, "a result may lie between the numbers of a claim")


def _term(item: Monomial) -> Any:
    """What a product of magnitudes is, if it is at most M: a place of products, c, or the exact result."""
    names = [factor[0] for factor in item]
    if any(factor[2] or factor[3] for factor in item):
        return None
    if names in (["c"], ["exact"]):
        return names[0]
    return str(item[0][1]) if names == ["a", "b"] and item[0][1] == item[1][1] else None


def _product(inputs: Inputs, item: Monomial) -> Fraction:
    size = Fraction(1)
    for factor in item:
        size *= inputs.most(factor)
    return size


def finest(data: TheoremData) -> int:
    """All results are multiples of 2^this: sums, and whatever is cut or rounded, of what they are made of."""
    windows, nodes, formats = data["windows"], data["unit"]["nodes"], data["unit"]["formats"]
    places = {name: windows[name][0] - data["fraction" if name != "c" else "addend_fraction"] for name in "abc"}
    known: list[int] = []
    for node in nodes:
        below = [known[operand] for operand in operands_of(node)]
        match node["kind"]:
            case "element":
                known.append(places[node["operand"]])
            case "zero" | "acc":
                known.append(ANY)
            case "number":
                size = finite(node["pattern"], formats[node["format"]])
                known.append((size.numerator & -size.numerator).bit_length() - size.denominator.bit_length()
                             if size else ANY)  # fmt: skip
            case "product" | "scale":
                inside = [own for own, operand in zip(below, operands_of(node), strict=True)
                          if nodes[operand]["kind"] != "zero"]  # fmt: skip
                need(ANY not in inside, "a result so far is multiplied")
                known.append(sum(inside) if len(inside) == len(below) else ANY)
            case "exact" | "fused" | "grid" | "round" | "cut" | "gate" | "cancelling" | "each" | "relu" | "repeat":
                known.append(min(below))
            case other:
                need(False, f"nothing is known of {other}")
    own = formats[data["unit"]["unit"]["d"]]
    last = (1 if own["subnormals"] else 0) - own["bias"] - own["fraction"]
    return max(known[data["unit"]["unit"]["result"]], int(last))


def _is_zero(document: Mapping[str, Any], zeros: set[tuple[str, int]]) -> bool:
    """Whether the result is zero where these inputs are."""
    nodes = document["nodes"]

    def of(number: int, places: Mapping[int, int]) -> bool:
        node = nodes[number]
        match node["kind"]:
            case "element":
                index = node["index"] or {"offset": 0, "factors": []}
                at = index["offset"] + sum(by * places[level] for level, by in index["factors"])
                return (node["operand"], at) in zeros
            case "zero" | "acc":
                return True  # the result so far: by induction
            case "product" | "scale":
                return any(of(operand, places) for operand in operands_of(node))
            case "each":
                return all(of(node["body"], {**places, node["level"]: place}) for place in node["places"])
            case "repeat":
                every = [of(node["body"], {**places, node["level"]: place}) for place in node["places"]]
                return of(node["start"], places) and all(every)
            case "exact" | "fused" | "round" | "cut" | "gate" | "cancelling" | "relu":
                return all(of(operand, places) for operand in operands_of(node))
        return False

    return of(document["unit"]["result"], {})


def for_every_length(every: Sequence[TheoremData], claim: str) -> None:
    """The claim's share and those which are known all lie on lines, so that the claim follows if it does at both ends.
    `every`: of what is compared, and then of what conditions read."""
    compared, against = _sides(claim, every)

    def at(count: int) -> Fraction:
        return _value(against, {"terms": Fraction(count), "magnitude_sum": Fraction(1)})

    first, last = every[0]["first"], every[0]["terms"]
    middle = Fraction(first + last, 2)
    on_line = _value(against, {"terms": middle, "magnitude_sum": Fraction(1)}) == (at(first) + at(last)) / 2
    need(on_line and _value(against, {"terms": Fraction(1), "magnitude_sum": Fraction(0)}) == 0, "its share bends")
    for place, count in enumerate((first, last)):
        need(at(count) >= sum(Fraction(data["shares"][place]) for data in compared), "only more is known")


def _value(tree: ast.expr, given: Mapping[str, Fraction]) -> Fraction:
    match tree:
        case ast.Constant(value=int() | float() as value):
            return Fraction(str(value))
        case ast.Call(func=ast.Name(id=name), args=[]):
            return given[name]
        case ast.UnaryOp(op=ast.USub(), operand=inner):
            return -_value(inner, given)
        case ast.BinOp(op=operator, left=left, right=right):
            one, other = _value(left, given), _value(right, given)
            match operator:
                case ast.Add():
                    return one + other
                case ast.Sub():
                    return one - other
                case ast.Mult():
                    return one * other
                case ast.Div():
                    return one / other
                case ast.Pow():
                    need(other.denominator == 1, "a power is no whole one")
                    return one ** int(other)
    need(False, "it is no expression of a claim")
    raise AssertionError
