"""The instructions of the table and the shipped units that equal a unit: by normal form, else by proof."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np

from mmaprobe.queries.candidates.classes import Equality, partition
from mmaprobe.queries.candidates.identify import Identification
from mmaprobe.queries.candidates.kinds import candidate_of, why_alike
from mmaprobe.queries.compare.observed import agrees
from mmaprobe.queries.kernel.questions.problem import Candidates
from mmaprobe.queries.search.distinguish import Options
from mmaprobe.queries.search.samples import every_row
from mmaprobe.queries.search.witness import replay
from mmaprobe.queries.tactics.normalising import Normaliser
from mmaprobe.smtmodel.arithmetic.display import exact_value
from mmaprobe.smtmodel.base.errors import OutOfTimeError
from mmaprobe.smtmodel.evaluate.batch import evaluate_row, evaluate_rows
from mmaprobe.smtmodel.evaluate.model import Model
from mmaprobe.smtmodel.evaluate.operands import unpadded
from mmaprobe.smtmodel.inputs.vectors import Vector
from mmaprobe.smtmodel.nodes import Node, Round
from mmaprobe.smtmodel.nodes.normal import normal as normal_form
from mmaprobe.smtmodel.nodes.rewriting import rebuilt
from mmaprobe.smtmodel.tables.instructions import INSTRUCTIONS
from mmaprobe.smtmodel.tables.reference import parse_reference
from mmaprobe.smtmodel.units.unit import Unit
from mmaprobe.smtmodel.units.unit_files import units

EVERY_INPUT_BITS = 16  # bits of all operands together up to which every input is evaluated
NAMING = 20.0  # seconds for proofs that a candidate of a family is a unit of the table
SAME_FORM = "by rules: one normal form, in which terms of sums have no order"


@dataclass
class Naming:
    """The result of `name_of`. `equal`: the models proved equal to the given one, each with the reason; `witnesses`:
    inputs, as rows of bit patterns, on which some of the models compared by proof differ; `open`: the models not proved
    equal; `late`: the deadline passed."""

    equal: list[tuple[Model, str]] = field(default_factory=list)
    witnesses: list[tuple[int, ...]] = field(default_factory=list)
    open: list[Model] = field(default_factory=list)
    late: bool = False


def name_of(
    own: Model, others: Sequence[Model], options: Options, deadline: float | None, most: int | None = None
) -> Naming:
    """The models of `others` that equal `own`, with which all of them agree on the inputs asked so far. Normal forms
    are compared first, then rewriting is tried. At most `most` of the remaining models (None: all) are evaluated on
    every input if there are few inputs, else compared by proof, until the deadline (of time.monotonic)."""
    equal = [(model, SAME_FORM) for model in others if same_by_form(own, model)]
    equal += _by_rewriting(own, _without(others, equal), options, deadline)
    same, witnesses, rest = _by_evaluation(own, _without(others, equal)[:most], deadline)
    equal += same
    partitioned = partition([own, *rest], options, confirm=True, deadline=deadline)
    proved = [x for members in partitioned.classes if members[0].model is own for x in members[1:]]
    equal += [(equality.model, why_of(equality)) for equality in proved]
    late = deadline is not None and time.monotonic() >= deadline
    return Naming(equal, [*witnesses, *partitioned.witnesses], _without(others, equal), late)


def _by_evaluation(
    own: Model, others: Sequence[Model], deadline: float | None
) -> tuple[list[tuple[Model, str]], list[tuple[int, ...]], list[Model]]:
    """The models with the same result as `own` on every input, each with the reason; for each differing model, an input
    on which it differs; and the models with too many inputs to evaluate, or not reached before the deadline."""
    same: list[tuple[Model, str]] = []
    witnesses: list[tuple[int, ...]] = []
    left: list[Model] = []
    for model in others:
        problem = Candidates(own.any_nan, model.any_nan)
        rows = every_row(problem.layout, EVERY_INPUT_BITS)
        if rows is None or (deadline is not None and time.monotonic() > deadline):
            left.append(model)
        elif len(differ := np.flatnonzero(replay(problem, rows).differs)):
            witnesses.append(tuple(rows[differ[0]].tolist()))
        else:
            same.append((model, f"evaluated on all {len(rows)} inputs"))
    return same, witnesses, left


def _without(models: Sequence[Model], known: Sequence[tuple[Model, str]]) -> list[Model]:
    return [model for model in models if not any(model is one for one, _ in known)]


def _by_rewriting(
    own: Model, others: Sequence[Model], options: Options, deadline: float | None
) -> list[tuple[Model, str]]:
    """The models that rewriting rules bring to the same form as `own`, each with the reason. Stops at the deadline."""
    normaliser = Normaliser(replace(options, deadline=deadline), confirmed=True)
    same: list[tuple[Model, str]] = []
    with suppress(OutOfTimeError):
        mine = candidate_of(own.any_nan, normaliser)
        for model in others:
            if deadline is not None and time.monotonic() > deadline:
                break
            other = candidate_of(model.any_nan, normaliser)
            if other.form == mine.form:
                same.append((model, why_alike(mine, other, normaliser)))
    return same


def first_of_known_form(drafts: Sequence[Model], known: Sequence[Model]) -> Model | None:
    """The first of `drafts` that has the normal form of one of the known models; None if no draft has one."""
    return next((draft for draft in drafts if any(same_by_form(draft, model) for model in known)), None)


def same_by_form(one: Model, other: Model) -> bool:
    """Whether two units have one normal form, the patterns of NaN results aside."""
    return normal_form(any_pattern(one.unit.result)) == normal_form(any_pattern(other.unit.result))


def any_pattern(node: Node) -> Node:
    """The expression with the pattern of NaN results left unspecified."""
    return _patterned(node, None, 0)


def with_nan(unit: Unit, nan: int | None) -> Unit:
    """The unit whose roundings to the width of d give this pattern for NaN (None: any quiet NaN); roundings to other
    widths, and to formats in which the pattern is a number, give any quiet NaN."""
    return unit.computing(_patterned(unit.result, nan, unit.d.width))


def _patterned(node: Node, nan: int | None, width: int) -> Node:
    def changed(_: Node, part: Node) -> Node:
        if not isinstance(part, Round):
            return part
        fmt = part.rounding.format
        fits = nan is not None and fmt.width == width and exact_value(nan, fmt) == "nan"
        pattern = nan if fits else None
        if part.rounding.nan is not None and not part.rounding.keeps_nan:
            pattern = part.rounding.nan  # in this format the pattern is a number
        return replace(part, rounding=replace(part.rounding, nan=pattern))

    return rebuilt(node, changed, {})


def why_of(equality: Equality) -> str:
    """The reason why two models are equal, and the solvers that confirmed it."""
    return equality.why + (f", confirmed by {' and '.join(equality.confirmed)}" if equality.confirmed else "")


def same_signature(asked: Model, shortest: int | None = None) -> list[Model]:
    """The instructions of the table, the shipped units and (for one product) IEEE's fused multiply-adds with the
    formats, length and scale factors of a model. `shortest`: if the model has no scale factors, also units of fewer
    products, down to this number."""
    formats = asked.a.name, asked.b.name, asked.c.name
    least = asked.length if shortest is None or asked.scale is not None else shortest
    rows = [
        name
        for name, row in INSTRUCTIONS.items()
        if (row.a, row.b, row.c) == formats and least <= row.length <= asked.length
    ]
    models = [parse_reference(name) for name in [*rows, *units()]]
    if least == 1:
        models += [parse_reference(f"ieee/fma/{name}") for name in ("f64", "f32", "f16")]
    return [
        model
        for model in models
        if (model.a, model.b, model.c, model.d.width) == (asked.a, asked.b, asked.c, asked.d.width)
        and least <= model.length <= asked.length
        and model.scale == asked.scale
        and (asked.scale is None or model.scale_block == asked.scale_block)
    ]


def equal_units(identification: Identification, options: Options, deadline: float | None) -> tuple[list[str], str]:
    """The instructions and shipped units equal to the identified candidate, NaN patterns aside, and the reason: a
    normal form, else a proof within NAMING seconds."""
    if identification.verdict != "identified":
        return [], ""
    survivors, asked = identification.survivors, _answered(identification)
    known = [
        model
        for model in same_signature(survivors[0])
        if all(agrees(model, evaluate_row(model, vector.operands), vector) for vector in asked)
    ]
    known_draft = first_of_known_form(survivors, known)
    until = min(time.monotonic() + NAMING, math.inf if deadline is None else deadline)
    try:
        equal = name_of(known_draft or survivors[0], known, options, until, 0 if known_draft else None).equal
    except KeyboardInterrupt:  # the identified candidate is still printed
        equal = []
    return [model.reference for model, _ in equal], equal[0][1] if equal else ""


def _answered(identification: Identification) -> list[Vector]:
    """The vectors that were asked, with their answers."""
    return [replace(question.vector, d=question.answer) for question in identification.questions]


def consistent_units(identification: Identification, recorded: Sequence[Vector]) -> list[str]:
    """If several candidates are left: the instructions and shipped units that give every answer, else an empty list.
    Units of fewer products than the family's are included, if they take every input."""
    if identification.verdict != "open" or not identification.survivors:
        return []
    answered = list(recorded) or _answered(identification)
    rows = [unpadded(vector.operands) for vector in answered]
    longest = max((len(row.a) for row in rows), default=0)
    return [
        model.reference
        for model in same_signature(identification.survivors[0], max(longest, 1))
        if all(map(partial(agrees, model), evaluate_rows(model, rows), answered))
    ]
