"""Which choices of a matrix product change bits, for every unit of the table: a row for each arithmetic.

Units of the same formats are of one arithmetic if their chains are proved equal for every K that both take whole. Those
whose units are alike but for the formats of a and b are one row. benchmarks/plan_units.jsonl has the answers.
"""

from __future__ import annotations

import json
import re
import time
from collections import Counter, defaultdict
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

import numpy as np

from benchmarks.pages import keep_row, read_rows
from benchmarks.plan_answers import ROOT, answer
from mmaprobe.queries.compare.steady import same_answer
from mmaprobe.smtmodel.arithmetic.formats import Format
from mmaprobe.smtmodel.base.errors import MmaprobeError
from mmaprobe.smtmodel.base.wording import counted
from mmaprobe.smtmodel.evaluate.batch import evaluate_row
from mmaprobe.smtmodel.evaluate.model import Model
from mmaprobe.smtmodel.evaluate.numbers import from_numbers, to_numbers, type_of
from mmaprobe.smtmodel.evaluate.operands import Operands
from mmaprobe.smtmodel.evaluate.tiles import kind_of
from mmaprobe.smtmodel.inputs.vectors import to_hex
from mmaprobe.smtmodel.nodes.normal import normal
from mmaprobe.smtmodel.plans import Plan
from mmaprobe.smtmodel.plans.lowering import unit_of_plan
from mmaprobe.smtmodel.plans.planfile import parse_plan
from mmaprobe.smtmodel.tables.instructions import INSTRUCTIONS
from mmaprobe.smtmodel.tables.reference import parse_reference
from mmaprobe.smtmodel.units.unit_files import units

RECORDS = ROOT / "benchmarks" / "plan_units.jsonl"
Row = dict[str, Any]


@dataclass(frozen=True)
class Choice:
    """A column: two steps of a plan, of a unit `u` and a rounding `r` to the format of c, with `{4}` for four times the
    unit's length. `over`: products above the unit's length, which are asked alone."""

    name: str
    words: str
    left: str
    right: str
    over: int = 0


CHAIN, FOUR = "sum(u, +0)", "sum(split(4, u, r), +0)"
CHOICES = (
    Choice("tiles", "tiles of K of one instruction, or of two", "sum(u, c)", "sum(turns({2}, u), c)"),
    Choice("split", "one run of K, or two", CHAIN, "sum(split(2, u, r), +0)"),
    Choice("pairs", "four runs of K: their sums added in order, or in pairs", FOUR,
           "sum(split(4, u, r, order=pairwise), +0)"),
    Choice("backwards", "four runs of K: their sums added in order, or from the last to the first", FOUR,
           "sum(split(4, u, r, order=backwards), +0)"),
    Choice("interleaved", "one accumulator, or two that take instructions in turn", CHAIN,
           "sum(interleave(2, u, r, grain={1}), +0)"),
    Choice("promoted", "no promotion, or one every two instructions", CHAIN, "sum(promote({2}, u, r), +0)"),
    Choice("later", "a promotion every two instructions, or every four", "sum(promote({2}, u, r), +0)",
           "sum(promote({4}, u, r), +0)"),
    Choice("c last", "the sum begins with c, or with +0 and c is added last", "sum(u, c)", "r(exact(sum(u, +0), c))"),
    Choice("odd tail", "one product more than an instruction takes: zeros fill a second instruction, or an FMA adds it",
           "sum(u, c)", "sum(chain(u, tail=fma), c)", 1),
)  # fmt: skip


def chainable() -> list[Model]:
    """The units of the table whose results can be the next addend, without those that take scale factors."""
    models = map(parse_reference, (*INSTRUCTIONS, *units()))
    every = (model for model in models if not model.c.is_integer)  # sums that wrap have no order
    return [model for model in every if model.scale is None and model.c.holds(model.d)]


def formats(model: Model) -> tuple[str, ...]:
    return tuple(fmt.name for fmt in (model.a, model.b, model.c, model.d))


@cache
def plan_of(step: str, reference: str) -> Plan:
    """The plan of a step with a unit, `fma` a fused multiply-add of its formats."""
    model = parse_reference(reference)
    a, b, c, d = formats(model)
    names = {"u": reference} | ({"fma": f"ieee/fma/{d}.{a}.{b}.{c}"} if "fma" in step else {})
    step = re.sub(r"\{(\d)\}", lambda found: str(int(found[1]) * model.length), step)
    text = (
        f"plan: choice\nformats: {{a: {a}, b: {b}, c: {c}, d: {c}}}\nunits: {json.dumps(names)}\n"
        f"roundings:\n  r: round({c}, nearest_even)\nsteps:\n  d: {step if c == d else f'r({step})'}\n"
    )
    return parse_plan(text, f"{step} of {reference}", parse_reference)


class AnsweredQuestions:
    """The questions about one unit and a choice, or about two units, answered once. `timeout`: seconds for a new one;
    None where all are known."""

    def __init__(self, timeout: float | None) -> None:
        self.timeout = timeout
        self.rows: dict[tuple[str, str], Row] = {tuple(row["asked"]): row for row in read_rows(RECORDS)}

    def units(self, one: Model, other: Model) -> Row:
        """Whether their chains are equal."""
        return self._answer(one.reference, other.reference, None)

    def choice(self, model: Model, choice: Choice) -> Row | None:
        """The answer of a column that is a choice; None where it was not asked yet."""
        if self.timeout is None and (model.reference, choice.name) not in self.rows:
            return None
        return self._answer(model.reference, choice.name, model.length + choice.over if choice.over else None)

    def _moved(self, one: str, other: str) -> Row | None:
        """The vector of another unit that is one of this question too; None if none is, or of two units."""
        if "/" in other:
            return None
        model, plans = parse_reference(one), plans_of(one, other)
        for (name, choice), row in reversed(self.rows.items()):
            like = parse_reference(name)
            if choice == other and row["verdict"] == "different" and like.c == model.c:
                with suppress(MmaprobeError):
                    if found := moved(row, plans, (like.a, like.b), (like.length, model.length)):
                        return found
        return None

    def _answer(self, one: str, other: str, length: int | None) -> Row:
        if (one, other) not in self.rows and self.timeout is not None:
            row = {"id": len(self.rows) + 1, "asked": [one, other]}
            row |= self._moved(one, other) or answer(plans_of(one, other), length, self.timeout)
            print(f"{row['seconds']:6.1f} s  {row['verdict']:9}  {one}  {other}", flush=True)
            keep_row(row, RECORDS)
            self.rows[one, other] = row
        return self.rows[one, other]


def moved(row: Row, plans: tuple[Plan, Plan], formats: Sequence[Format], lengths: tuple[int, int]) -> Row | None:
    """The vector of another unit's row, its numbers rounded to the formats of two plans and its places moved from one
    unit's length to another one's, as a row; None if it is no difference of theirs. `formats`: of the other's a and
    b."""
    start, (old, new), left = time.monotonic(), lengths, plans[0]
    count = row["length"] // old * new + row["length"] % old
    sides = [[0] * count for _ in "ab"]
    for place, *pair in row["products"]:
        at = place // old * new + min(place % old, new - 1)
        for side, pattern, fmt, own in zip(sides, pair, formats, (left.a, left.b), strict=True):
            number = to_numbers(np.array([int(pattern, 16)], dtype=kind_of(fmt)), fmt).astype(np.float64)
            side[at] = int(from_numbers(number.astype(type_of(own)), own, "nearest_even")[0])
    operands = Operands(tuple(sides[0]), tuple(sides[1]), int(row["c"], 16))
    models = [Model(plan.reference, unit_of_plan(plan, count)) for plan in plans]
    results = [evaluate_row(model, operands) for model in models]
    if same_answer(left.d, *results):
        return None
    used = [k for k in range(count) if sides[0][k] or sides[1][k]]
    return {
        "verdict": "different", "seconds": round(time.monotonic() - start, 1), "length": count,
        "products": [[k, to_hex(sides[0][k], left.a), to_hex(sides[1][k], left.b)] for k in used],
        "c": row["c"], "results": [to_hex(result, left.d) for result in results],
    }  # fmt: skip


def is_wide(model: Model) -> bool:
    """Whether its formats have at least 8 bits."""
    return min(model.a.width, model.b.width) >= 8


def is_choice(model: Model, choice: Choice) -> bool:
    """Whether there is such a choice: products beyond an instruction, and an FMA that gives results like its own."""
    return not choice.over or (model.length > 1 and model.c == model.d)


def plans_of(one: str, other: str) -> tuple[Plan, Plan]:
    """The two plans of a question: of a unit and the name of a choice, or of two units."""
    for choice in CHOICES:
        if choice.name == other:
            return plan_of(choice.left, one), plan_of(choice.right, one)
    return plan_of("sum(u, c)", one), plan_of("sum(u, c)", other)


def arithmetics(ask: AnsweredQuestions) -> list[list[Model]]:
    """The units, those of one arithmetic together."""
    groups: dict[tuple[str, ...], list[list[Model]]] = defaultdict(list)
    for model in chainable():
        several = groups[formats(model)]
        known = (group for group in several if any(map(partial(_one_expression, model), group)))
        asked = (group for group in several if ask.units(group[0], model)["verdict"] == "equal")
        found = next(known, None) or next(asked, None)
        if found is None:
            several.append([model])
        else:
            found.append(model)
    return [group for several in groups.values() for group in several]


def _one_expression(one: Model, other: Model) -> bool:
    return one.length == other.length and normal(one.unit.result) == normal(other.unit.result)


FORMAT = re.compile(r"[._-]?(?<![a-z0-9])(tf32|xf32|bf16|f16|f32|f64|fp8|bf8|e\d+m\d+(fnuz)?)(?![a-z0-9])")


def table(groups: Sequence[list[Model]]) -> list[list[list[Model]]]:
    """The arithmetics of each row: those whose units are alike but for the formats of a and b."""
    rows: dict[tuple[str, ...], list[list[Model]]] = defaultdict(list)
    for group in groups:
        rows[_units(group), *formats(group[0])[2:]].append(group)
    return list(rows.values())


def _units(group: Sequence[Model]) -> str:
    """Their names without formats, those of one processor and kind of instruction together."""
    found: dict[str, list[str]] = defaultdict(list)
    for model in group:
        kind, name = model.reference.rsplit("/", 1)
        found[kind].append(FORMAT.sub("", name).strip("._"))
    return "; ".join(" ".join(filter(None, (kind, ", ".join(dict.fromkeys(names))))) for kind, names in found.items())


def _formats(group: Sequence[Model]) -> str:
    """The formats of a, b and c, and of the result where that is another one."""
    sides = [dict.fromkeys(getattr(model, side).name for model in group) for side in "abcd"]
    a, b, c, d = (", ".join(names) for names in sides)
    return f"{a if a == b else f'{a} * {b}'} + {c}{'' if c == d else f' to {d}'}"


HEAD = """## Every unit

Here are the {units} whose result can be the next addend and that take no scale factors. Two of them have the same
arithmetic if they give the same bits for every K that is a multiple of both lengths: there are {groups} arithmetics.
A row holds those that differ in the formats of a and b alone ({rows}). Units of one row and the same formats can
replace each other, as `mma`, `wgmma` and `tcgen05` often do; units of two rows differ, or it is unknown. M and N occur
in no plan.

The answers are to these choices, each with its two plans; `u` is the unit, `{{2}}` the length of two of its
instructions, `r` rounds to the format of c:

{columns}
| answer | meaning |
|---|---|
| = 32 | neutral: the same bits for every K that is a multiple of 32 |
| = at 33 | the same bits for K = 33 |
| 32 | differs: an input with K = 32 is known (there may be a shorter one) |
| 32 / 64 | the same of a row with several formats, of different formats |
| unknown | see [below](#unknown) |
| - | there is no such choice |
{missing}
Of a row with several formats each of at least 8 bits was asked. Products of e3m2, e2m3 and e2m1 with these formats, or
one another, were not: few of their sums are inexact.

[plan_units.jsonl](../benchmarks/plan_units.jsonl) has all {answers} with their rules or inputs, {unknown}.

"""


#: what is said before the questions that are unknown, below the table
OPEN = """### Unknown

Of these questions the answer is unknown. Samples, of all products and of few, found no difference. Neither rewriting
nor solvers found a proof; they were asked about all products, about a few, and about the last ones alone after any sum
of the others."""


def section(ask: AnsweredQuestions) -> str:
    """The part of the page."""
    groups = arithmetics(ask)
    rows = table(groups)
    asked = [[group for at, group in enumerate(row) if not at or is_wide(group[0])] for row in rows]
    cells = {(group[0], choice): _cell(ask, group[0], choice) for row in asked for group in row for choice in CHOICES}
    counts = Counter(row["verdict"] for row in ask.rows.values())
    unknown = [row["asked"] for row in ask.rows.values() if row["verdict"] == "unknown"]
    pairs = [f"- {one}{' and ' if '/' in other else ', '}{other}\n" for one, other in unknown]
    text = HEAD.format(
        columns="".join(f"- {choice.name}: {choice.words}: `{choice.left}`, `{choice.right}`\n" for choice in CHOICES),
        rows=counted(len(rows), "row"), units=counted(sum(map(len, groups)), "unit"), groups=len(groups),
        answers=counted(len(ask.rows), "answer"), unknown=f"{counts['unknown'] or 'none'} of them unknown",
        missing="| | not asked yet |\n" if "" in cells.values() else "",
    )  # fmt: skip
    text += "| units and formats | answers |\n|---|---|\n"
    for row, some in zip(rows, asked, strict=True):
        found = (f"{choice.name} {' / '.join(dict.fromkeys(cells[group[0], choice] for group in some))}"
                 for choice in CHOICES)  # fmt: skip
        models = [model for group in row for model in group]
        text += f"| {_units(models)}<br>{_formats(models)} | {', '.join(found)} |\n"
    return f"{text}\n{OPEN}\n\n{''.join(pairs)}" if pairs else text


def _cell(ask: AnsweredQuestions, model: Model, choice: Choice) -> str:
    """The answer of a column for a unit."""
    if not is_choice(model, choice):
        return "-"
    row = ask.choice(model, choice)
    if row is None or row["verdict"] == "unknown":
        return "" if row is None else "unknown"
    if row["verdict"] == "equal":
        return f"= {row['multiples']}" if row["multiples"] else f"= at {model.length + choice.over}"
    return str(row["length"])
