"""Where two evaluations of one input part, and which neighbours of a model give an observed result instead."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from smtmodel.accumulator import ZERO_SIGNS, format_parameter
from smtmodel.batch import evaluate_row
from smtmodel.display import exact_value
from smtmodel.dot import Model
from smtmodel.errors import ParameterError
from smtmodel.facts import Fact, evaluate_one, facts_of
from smtmodel.operands import Operands
from smtmodel.reference import with_parameters
from smtmodel.rounding import OVERFLOWS, ROUNDINGS

#: the last part of a signal's name up to its index -> the stage of the datapath
STAGES = {
    "product": "products",
    "addend": "decoding",
    "term": "terms",
    "max_exponent": "exponents",
    "aligned": "alignment",
    "placed": "alignment",
    "sum": "sum",
    "sign": "sum",
    "cut": "cut of the sum",
    "special": "special values",
    "rounded": "rounding",
    "result": "result",
    "multiplied": "products",
    "pair": "sum",
    "after": "final addition",
}
PART = re.compile(r"(\]|addend)\.(sign|exponent|is_\w+)$")  # of a term, whose number is a signal too
FLOORS = {"f16": (-19, -20, -21), "f32": (-131, -132, -133), "e8m13": (-131, -132, -133)}
MOST_CARRIES = 6  # enough for 64 terms


@dataclass(frozen=True)
class Parting:
    """The first signal in which two evaluations differ. A side is None where only the other has the signal."""

    stage: str
    left: Fact | None
    right: Fact | None

    @property
    def signal(self) -> str:
        fact = self.left or self.right
        assert fact is not None
        return fact.name


@dataclass(frozen=True)
class Neighbour:
    """A model with one parameter changed that gives the result observed, and where its evaluation parts."""

    parameter: str
    value: Any
    model: Model
    parting: Parting | None

    @property
    def text(self) -> str:
        return format_parameter(self.value)

    @property
    def change(self) -> str:
        return f"{self.parameter}={self.text}"


def parting(left: Model, right: Model, operands: Operands[int]) -> Parting | None:
    """Where two models part on one input; None if no signal that counts differs."""
    return first_difference(
        facts_of(evaluate_one(left, operands)), left, facts_of(evaluate_one(right, operands)), right
    )


def first_difference(left: dict[str, Fact], one: Model, right: dict[str, Fact], other: Model) -> Parting | None:
    """The first signal that differs in value, in the order of the stages.

    Terms of zero do not count, nor do their exponents; where a special value decides, no number on the way counts. Of
    the signals that only one side has, nonzero terms count: an alignment (where the other side sums exactly) is no
    difference until a sum shows it.
    """
    same_nan = one.nan is not None and other.nan is not None
    sides = [_telling(facts, model, one.d == other.d, same_nan) for facts, model in ((left, one), (right, other))]
    if _chained(left) != _chained(right):  # the first block answers to the only one
        sides = [{name.removeprefix("block0."): told for name, told in side.items()} for side in sides]
    for name in _merged(list(sides[0]), list(sides[1])):
        here, there = (side.get(name) for side in sides)
        if here is None or there is None:
            if not (alone := here or there) or not _tells_alone(alone[0]):
                continue
        elif here[1] == there[1]:
            continue
        return Parting(STAGES[_local(name)], here and here[0], there and there[0])
    results = [next(reversed(side.values())) for side in sides]
    same = results[0][1] == results[1][1]
    return None if same else Parting("result", results[0][0], results[1][0])


Told = tuple[Fact, Any]


def _tells_alone(fact: Fact) -> bool:
    """Whether a signal that only one side has is a difference: a nonzero term of a sum, but not the running sum of a
    later block."""
    prefix, found, name = fact.name.rpartition("term[")
    running = name == "addend]" and prefix.startswith("block") and prefix != "block0."
    return bool(found) and fact.kind == "number" and fact.value != 0 and not running


def _local(name: str) -> str:
    """The stage's word in a signal's name: `block0.aligned[3]` is of `aligned`."""
    for part in name.split("."):
        word = part.partition("[")[0]
        word = "pair" if word.startswith("pair") else word
        if word in STAGES and not part.startswith("partial"):
            return word
    raise ValueError(f"a signal of no stage: {name}")


def _chained(facts: dict[str, Fact]) -> bool:
    return any(name.startswith("block") for name in facts)


def _telling(facts: dict[str, Fact], model: Model, alike: bool, nan_counts: bool) -> dict[str, Told]:
    """The signals that count, with what is compared of each: numbers by value, patterns too if formats differ."""
    decided = [
        name.removesuffix("special.nan")
        for name, fact in facts.items()
        if name.endswith("special.nan") and (fact.value or facts[name.removesuffix("nan") + "infinite"].value)
    ]
    zero = {name for name, fact in facts.items() if fact.kind == "number" and not fact.value}
    terms = {name for name in facts if name.endswith("]") and "term[" in name}
    live = {name.rpartition("term[")[0] for name in terms - zero}
    found: dict[str, Told] = {}
    for name, fact in facts.items():
        if any(name.startswith(prefix) for prefix in decided) and _local(name) not in ("special", "result"):
            continue
        owner, _, last = name.rpartition(".")
        if (PART.search(name) and zero & {owner, f"{owner}.significand"}) or name in zero & terms:
            continue
        if last == "sum" or (last == "max_exponent" and name.removesuffix(last) not in live):
            continue  # a sum is told by its sign and magnitude
        found[name] = (fact, fact.real if fact.kind != "pattern" else _pattern(fact, model, alike, nan_counts))
    return found


def _pattern(fact: Fact, model: Model, alike: bool, nan_counts: bool) -> Any:
    value = exact_value(fact.value, model.d)
    if value == "nan" and not nan_counts:
        return value
    return fact.value if alike else Fraction(0) if value == "-0" else value


def _merged(left: list[str], right: list[str]) -> list[str]:
    """All names in the order of the left; those of the right alone after the name before them."""
    known, after = set(left), dict[str | None, list[str]]()
    previous: str | None = None
    for name in right:
        if name in known:
            previous = name
        else:
            after.setdefault(previous, []).append(name)
    return [*after.get(None, []), *(item for name in left for item in (name, *after.get(name, [])))]


# -- neighbours


def candidates(model: Model) -> Iterator[tuple[str, Any]]:
    """(parameter, value) for every plausible change of one parameter, those that keep the stages as they are first;
    values that do not fit the others are among them."""
    acc = model.accumulator
    steps: dict[str, tuple[Any, ...]] = {}
    if not acc.exact_sum and acc.fraction_bits != "exact":
        steps["fraction_bits"] = _near(acc.fraction_bits)
        steps["align_rounding"] = (*ROUNDINGS, "sticky")
        steps["carry_bits"] = ("exact", *range(1, MOST_CARRIES + 1))
        floor = acc.exponent_floor
        steps["exponent_floor"] = (None, *(FLOORS.get(acc.output, ()) if floor is None else _near(floor)))
        if floor is not None:
            steps["floor_applies_to"] = ("zero_terms", "maximum")
    if acc.addend == "late":
        steps["late_fraction_bits"] = _near(acc.late_fraction_bits)
        steps["late_sum_bits"] = (31,) if acc.late_sum_bits is None else (None, *_near(acc.late_sum_bits))
        steps["late_rounding"] = ROUNDINGS
        steps["late_small_addend"] = ("keep", "cut")
        steps["product_overflow"] = (None, 128)
    steps |= {
        "product": ("unnormalised", "normalised", "rounded_f32"),
        "output_rounding": ROUNDINGS,
        "overflow": OVERFLOWS,
        "zero_sign": ZERO_SIGNS,
        "flush_inputs": (False, True),
        "input_zeros": ("signed", "positive"),
        "flush_outputs": (False, True),
        "block": tuple(n for n in range(acc.length, 0, -1) if acc.length % n == 0),
        "block_order": ("contiguous", "interleaved_pairs"),
        "addend": ("fused", "late", "after"),
        "partials": ("unnormalised", "normalised"),
    }
    yield from ((name, value) for name, values in steps.items() for value in values if value != getattr(acc, name))


def _near(value: int) -> tuple[int, ...]:
    return tuple(value + step for step in (-1, 1, -2, 2))


def neighbours(model: Model) -> Iterator[tuple[str, Any, Model]]:
    """The models with one parameter changed, less those that are impossible."""
    for name, value in candidates(model):
        try:
            yield name, value, with_parameters(model, {name: value})
        except ParameterError:
            continue


def reproducing(model: Model, operands: Operands[int], agrees: Callable[[Model, int], bool]) -> list[Neighbour]:
    """The neighbours whose result agrees with what was observed, and where each parts from the model."""
    facts = facts_of(evaluate_one(model, operands))
    found = []
    for name, value, near in neighbours(model):
        if agrees(near, evaluate_row(near, operands)):
            difference = first_difference(facts, model, facts_of(evaluate_one(near, operands)), near)
            found.append(Neighbour(name, value, near, difference))
    return found
