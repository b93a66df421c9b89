"""What follows from a plan's bound for a claim about many numbers of products, said a second time, of plain data.

`told` has the inputs (a lowest and a highest exponent of each operand, the fraction bits of a factor and of the addend,
the largest number of products, whether there is an addend), the bound with what may not overflow, what the plan repeats
and how G grows, and what is concluded: the smallest number of products, of which all are multiples, and the shares of
M = |c| + sum of |a_k b_k| at both ends.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from fractions import Fraction
from functools import cached_property
from typing import Any

from tests.second.goals import Condition, read_condition
from tests.second.loop_rules import SLACK
from tests.second.magnitudes import Factor, Form, above, flat, need, read_form, two

Told = Mapping[str, Any]


class Inputs:
    """The inputs of a claim, for one number of products."""

    def __init__(self, told: Told, count: int) -> None:
        self.told, self.count, self.addend = told, count, bool(told["addend"])
        (low_a, high_a), (low_b, high_b), (low_c, high_c) = (told["windows"][name] for name in "abc")
        self.least = two(low_a + low_b) if not self.addend else min(two(low_a + low_b), two(low_c))
        tops = {
            "a": (high_a, told["fraction"]),
            "b": (high_b, told["fraction"]),
            "c": (high_c, told["addend_fraction"]),
        }
        self.largest = {name: two(top + 1) - two(top - bits) for name, (top, bits) in tops.items()}
        self.largest["c"] *= self.addend
        self.every = count * two(high_a + high_b + 2) + self.addend * two(high_c + 1)

    @cached_property
    def growth(self) -> Fraction:
        """The value of G, rounded up at each step."""
        at, levels = self.told["at"], 0
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


def of_plan(told: Told) -> None:
    """The share is convex in the number of repetitions, so that at both ends it is that of the bound; of halves it
    grows, so that the last one is that of all."""
    first, last, at = told["first"], told["terms"], told["at"]
    need(1 <= first <= last and last % first == 0, "not every number of products is a multiple")
    need(at["width"] or (not at["before"] and first % at["period"] == 0), "the bound is about other multiples")
    need(Fraction(at["growth"]) >= 1 and at["loops"] >= 1, "G does not grow")
    form, conditions = read_form(told["form"]), list(map(read_condition, told["conditions"]))
    need(all(map(Inputs(told, last).fits, conditions)), "a rounding may overflow on the largest inputs")
    shares = [Inputs(told, count).share(form) for count in (last if at["width"] else first, last)]
    for claimed, least in zip(map(Fraction, told["shares"]), shares, strict=True):
        need(least <= claimed <= least * SLACK, "the conclusion does not follow")


def for_every_length(told: Told, claim: str) -> None:
    """The claim's share and that which is known both lie on a line, so that the claim follows if it does at both
    ends."""
    compared = ast.parse(claim, mode="eval").body
    need(isinstance(compared, ast.Compare) and isinstance(compared.ops[0], ast.LtE), "it is no such claim")
    assert isinstance(compared, ast.Compare)
    (against,) = compared.comparators

    def at(count: int) -> Fraction:
        return _value(against, {"terms": Fraction(count), "magnitude_sum": Fraction(1)})

    first, last = told["first"], told["terms"]
    middle = Fraction(first + last, 2)
    on_line = _value(against, {"terms": middle, "magnitude_sum": Fraction(1)}) == (at(first) + at(last)) / 2
    need(on_line and _value(against, {"terms": Fraction(1), "magnitude_sum": Fraction(0)}) == 0, "its share bends")
    known = list(map(Fraction, told["shares"]))
    need(at(first) >= known[0] and at(last) >= known[1], "only more is known")


def _value(tree: ast.expr, given: Mapping[str, Fraction]) -> Fraction:
    match tree:
        case ast.Constant(value=int(value)):
            return Fraction(value)
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
                    return one ** int(other)
    need(False, "it is no expression of a claim")
    raise AssertionError
