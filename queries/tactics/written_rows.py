"""Bounds of rows of numbers as a document, by which an independent program can check them."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import groupby
from typing import Any

from queries.kernel.rows import Bounded, Given, Source
from queries.kernel.theorem import Theorem
from smtmodel.dot import Model
from smtmodel.formats import Format

RULES = {"part": "parted", "joined": "joined", "converted": "converted", "column_sums": "column_sums",
         "trees": "trees", "in_sequence": "in_sequence"}  # fmt: skip


def row_document(never: Theorem) -> dict[str, Any]:
    """A document of the theorems on which `never` rests, premises first; `states`: those that are its premises."""
    every = [theorem for theorem in never.walk() if isinstance(theorem.goal, Bounded)]
    places = {theorem: place for place, theorem in enumerate(every)}
    found = []
    for theorem in every:
        goal = theorem.goal
        assert isinstance(goal, Bounded)
        runs = [[len(list(run)), str(bound)] for bound, run in groupby(goal.bounds)]
        found.append({
            "rule": theorem.rule, "premises": [places[premise] for premise in theorem.premises],
            "told": told_of(goal.made), "format": format_of(goal.format), "bounds": runs,
        })  # fmt: skip
    return {"schema": 1, "theorems": found, "states": [places[premise] for premise in never.premises]}


def told_of(made: Source) -> dict[str, Any]:
    """The arguments of an operation besides rows, as plain data."""
    if isinstance(made, Given):
        return {"numbers": made.length}
    match made.name, made.told:
        case "part", (start, stop):
            return {"start": start, "stop": stop}
        case "converted", (_, Format() as fmt):
            return {"to": format_of(fmt)}
        case "trees", (_, size):
            return {"size": size}
        case "column_sums", (Model() as unit, (side, width), chain):
            factors, sums = format_of(unit.b), format_of(unit.d)
            return {"unit": unit.reference, "shape": [side, width], "chain": chain, "factors": factors, "sums": sums}
    return {}


def format_of(fmt: Format) -> dict[str, Any]:
    return {"exponent": fmt.exponent, "fraction": fmt.fraction, "bias": fmt.bias, "specials": fmt.specials}


def same_operations(document: Mapping[str, Any], place: int, made: Source) -> bool:
    """Whether a theorem of a document is about these operations."""
    theorem = document["theorems"][place]
    rows = () if isinstance(made, Given) else made.rows
    rule = "below_one" if isinstance(made, Given) else RULES[made.name]
    if theorem["rule"] != rule or theorem["told"] != told_of(made) or len(theorem["premises"]) != len(rows):
        return False
    pairs = zip(theorem["premises"], rows, strict=True)
    return all(same_operations(document, premise, row) for premise, row in pairs)


def start_of(document: Mapping[str, Any], place: int) -> int:
    """How many numbers are summed."""
    theorem = document["theorems"][place]
    return theorem["told"]["numbers"] if theorem["rule"] == "below_one" else start_of(document, theorem["premises"][0])
