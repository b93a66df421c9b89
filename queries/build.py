"""The arithmetic of a device of which nothing is known: its order first, then what each step does, by questions.

What the tree leaves open is settled in stages, each with inputs on which only its own choices can show: roundings in
the middle of the range, then the smallest numbers and zeros, then the largest, infinities and NaNs. Candidates are
drafted from the choices of a stage, tried against the answers so far, and the next question is the one that splits them
best. The unit that is left answers thousands of vectors over the whole range before it is called found.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from itertools import product
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from queries.classes import Equality, settle
from queries.distinguish import Options
from queries.draft import STARTS, SWAPPED, Choices, Drafter, TooDeepError
from queries.samples import Table
from queries.shapes import Shapes
from queries.summation_tree import Leaf, Node, nodes_of
from smtmodel.batch import Patterns, evaluate_models
from smtmodel.dot import Model, UnitModel
from smtmodel.errors import ParameterError
from smtmodel.formats import FORMATS, Format
from smtmodel.instructions import INSTRUCTIONS
from smtmodel.nodes import ExactSum, Round
from smtmodel.nodes import Node as Step
from smtmodel.operands import layout_of
from smtmodel.reference import parse_reference
from smtmodel.rounding import ROUNDINGS
from smtmodel.signature import Signature
from smtmodel.unit import Unit
from smtmodel.unit_table import units
from smtmodel.unitfile import parse_unit, unit_text
from smtmodel.vectors import Vector

AskRows = Callable[[Sequence[Vector]], Sequence[int]]
Verdict = Literal["built", "unexplained", "open"]
BUILT = "built"  # the reference of what is drafted
POOL = 240  # inputs from which the questions of a stage are chosen
FIRST = 40  # of them, for many candidates
ROUNDS = 6  # such looks
MANY = 60  # candidates for which a few inputs are looked at first
KEPT = 30  # candidates that go on into the next stage
AT_ONCE = 6  # questions between two looks at what is left
VALIDATION = 6000  # vectors over the whole range
AGAIN = 5  # times that a unit is sought anew, with the answers that refuted the last one
NEAREST = frozenset(("nearest_even", "nearest_away"))
NEVER_UP = frozenset(("toward_zero", "to_odd"))  # no result reaches the next power of two
Axes = Mapping[str, Sequence[Any]]


@dataclass(frozen=True)
class Stage:
    """Choices to settle, in tiers: the next one where no candidate of those before fits. `rows`: where inputs come
    from. `counts`: the results by which candidates are judged. `rank`: its inputs tell about stages from that on."""

    name: str
    rank: int
    tiers: tuple[Axes, ...]
    rows: Callable[[Shapes, int], Table]
    counts: Callable[[Patterns, Format], NDArray[np.bool_]]


@dataclass
class Built:
    """What came of it: the unit, or the vectors that no candidate explains with the nearest candidate."""

    verdict: Verdict = "open"
    unit: Unit | None = None
    choices: Choices | None = None
    equal: list[tuple[Model, str]] = field(default_factory=list)  # proved equal to the unit, and how
    open: list[Model] = field(default_factory=list)  # that answer alike as far as was asked, and nothing is proved
    near: tuple[Model, int] | None = None  # the instruction of the table with the fewest different answers
    questions: int = 0
    validated: int = 0
    why: str = ""
    stage: str = ""
    nearest: Unit | None = None
    explained: int = 0
    unexplained: list[tuple[Vector, int, int]] = field(default_factory=list)  # vector, answer, the nearest one's


def normal(patterns: Patterns, fmt: Format) -> NDArray[np.bool_]:
    """Finite numbers that are neither zero nor subnormal."""
    fields = (patterns & np.uint64((1 << fmt.field_width) - 1)) >> np.uint64(fmt.padding)
    found: NDArray[np.bool_] = (fields >> np.uint64(fmt.fraction) > 0) & (fields <= np.uint64(fmt.largest_field))
    return found


def finite(patterns: Patterns, fmt: Format) -> NDArray[np.bool_]:
    fields = (patterns & np.uint64((1 << fmt.field_width) - 1)) >> np.uint64(fmt.padding)
    found: NDArray[np.bool_] = fields <= np.uint64(fmt.largest_field)
    return found


def nonzero(patterns: Patterns, fmt: Format) -> NDArray[np.bool_]:
    """Finite numbers but zero."""
    found: NDArray[np.bool_] = (patterns & np.uint64((1 << fmt.field_width) - 1)) > 0
    return found & finite(patterns, fmt)


def every(patterns: Patterns, fmt: Format) -> NDArray[np.bool_]:
    return np.ones(patterns.shape, dtype=np.bool_)


def nans(patterns: Patterns, fmt: Format) -> NDArray[np.bool_]:
    """NaNs of the formats of results."""
    fields = (patterns & np.uint64((1 << fmt.field_width) - 1)) >> np.uint64(fmt.padding)
    found: NDArray[np.bool_] = fields > np.uint64(fmt.infinity_field if fmt.specials == "ieee" else fmt.largest_field)
    return found


@dataclass(frozen=True)
class _Candidate:
    choices: Choices
    model: UnitModel


class Builder:
    """Builds the unit of one device, whose summation tree is one of `roots`. `ask`: its answers to vectors. Raises what
    `ask` does."""

    def __init__(
        self,
        roots: Sequence[Node | Leaf],
        asked: Signature,
        ask: AskRows,
        options: Options,
        deadline: float | None = None,
    ) -> None:
        self.asked, self.ask, self.options, self.deadline = asked, ask, options, deadline
        self.progress = options.progress
        self.result = Built()
        self.drafters = [Drafter(root, asked) for root in roots]
        self.kinds = {node.kind for root in roots for node in nodes_of(root)}
        self.layout = layout_of(asked)
        self.shapes = Shapes(asked)
        self.table = np.zeros((0, 2 * asked.length + 1), dtype=np.uint64)
        self.answers = np.zeros(0, dtype=np.uint64)
        self.origins = np.zeros(0, dtype=np.int64)  # the rank of the stage that asked each question
        self.stages = self._stages()
        self.seen = self.table, self.answers  # what validated, and its answers
        self._best: tuple[int, _Candidate] | None = None

    def run(self) -> Built:
        result = self.result
        try:
            for _ in range(AGAIN):
                before = len(self.answers)
                alive = self._settle()
                if not alive:
                    if len(self.answers) == before:
                        break
                    continue
                alive = self._validated(alive)
                if alive and (alive := self._decided(alive)):
                    result.verdict = "built"
                    result.choices = replace(alive[0].choices, nan=self._nan())
                    result.unit = self.drafters[result.choices.tree].unit(result.choices)
                    return result
        except TooDeepError:
            result.why = "its order has no repetition, and so many steps within steps are no unit's"
            return result
        result.verdict = "unexplained"
        self._unexplained()
        return result

    # -- stages

    def _stages(self) -> list[Stage]:
        d = self.asked.d
        modes = (*ROUNDINGS, "to_odd")
        same = tuple({"mode": mode, "inner": mode} for mode in modes)
        mixed = tuple({"mode": mode, "inner": inner} for mode in modes for inner in modes)
        wider = [name for name in ("bf16", "f16", "e8m13", "f32", "f64") if FORMATS[name] != d]
        inner = tuple({"inner_format": name, "format": ""} for name in wider)
        if d.name == "f32":
            inner += ({"inner_format": "e8m13", "format": "e8m13"},)
        own: dict[str, Sequence[Any]] = {"products": (False, True), "tree": range(len(self.drafters))}
        if "binary" in self.kinds:
            own["start"] = STARTS
        if "fused" in self.kinds:
            own["fraction_bits"] = range(2, 40)
            own["align"] = ("toward_zero",)
        swapped = {"start": (*STARTS, *SWAPPED)} if "binary" in self.kinds else {}
        aligns: dict[str, Sequence[Any]] = {}
        if "fused" in self.kinds:
            cuts = [{"align": mode} for mode in modes] + [{"sticky": True}]
            aligns = {"aligned": cuts, "start": STARTS[:1], "products": (False,)}
        tiers = (
            own | {"rounding": same},
            own | swapped | {"rounding": mixed} | ({"products": (False,)} if aligns else {}),
            own | {"rounding": same, "inside": inner} | ({"products": (False,)} if aligns else {}),
            *((own | aligns | {"rounding": same},) if aligns else ()),
        )
        reads = [{"a": a, "c": c} for a, c in _READS]
        floors: Sequence[Any] = (None, *range(d.emin - 18, d.emin + 1)) if "fused" in self.kinds else (None,)
        if "fused" in self.kinds and d.name == "f16":
            floors = (*floors, *range(-139, -126))
        tinies = [{"tiny": "keep"}, {"tiny": "flush_after"}, {"tiny": "flush_before"},
                  {"tiny": "flush_before", "cut": True}, {"tiny": "keep", "cut": True}]  # fmt: skip
        lows: tuple[Axes, ...] = ({"reads": reads[:3], "zeros": floors},)
        lows += ({"reads": reads, "zeros": floors, "tinies": tinies},) if len(floors) > 1 else ()
        subnormal: tuple[Axes, ...] = ({"reads": reads[:3], "tinies": tinies}, {"reads": reads, "tinies": tinies})
        signs: dict[str, Sequence[Any]] = {
            "zero": ("ieee", "exact_positive", "positive"),
            "begins": [{}, {"start": "zero"}, {"start": "first"}],
        }
        zeros: tuple[Axes, ...] = (
            signs,
            signs | {"positive_zeros": (False, True)},
            signs | {"reads": reads, "tinies": tinies},
        )
        ends = ({"overflow": ("ieee", "infinity", "saturate")},)
        return [
            Stage("roundings", 0, tiers, Shapes.middle, normal),
            *([Stage("small numbers", 1, lows, Shapes.small, normal)] if len(floors) > 1 else []),
            Stage("the smallest numbers", 2, subnormal, Shapes.small, nonzero),
            Stage("zeros", 2, zeros, Shapes.small, finite),
            Stage("overflow and specials", 3, ends, Shapes.large, every),
        ]

    def _settle(self) -> list[_Candidate]:
        alive = [Choices()]
        found: list[_Candidate] = []
        for stage in self.stages:
            self.result.stage = stage.name
            for axes in stage.tiers:
                found = self._narrow(self._drafted(alive, axes), stage)
                if found:
                    break
            if not found:
                return []
            alive = [candidate.choices for candidate in found[:KEPT]]
        return found

    def _drafted(self, alive: Sequence[Choices], axes: Axes) -> list[_Candidate]:
        """All combinations of what is alive with a stage's choices, each arithmetic once."""
        seen: dict[Unit, _Candidate] = {}
        for base, *values in product(alive, *axes.values()):
            changes: dict[str, Any] = {}
            for name, value in zip(axes, values, strict=True):
                changes |= value if isinstance(value, dict) else {name: value}
            choices = replace(base, **changes)
            if self._needless(choices):
                continue
            try:
                unit = self.drafters[choices.tree].unit(choices)
            except ParameterError:
                continue
            if unit not in seen:
                seen[unit] = _Candidate(choices, UnitModel(unit, BUILT))
        return list(seen.values())

    def _needless(self, choices: Choices) -> bool:
        """Whether other choices say the same."""
        modes, asked = {choices.mode, choices.inner}, self.asked
        inner = FORMATS[choices.inner_format] if choices.inner_format else asked.d
        if choices.products and (
            asked.a.precision + asked.b.precision <= inner.precision
            and unit_of(asked.a) + unit_of(asked.b) >= unit_of(inner)
            and asked.a.emax + asked.b.emax + 1 < inner.emax
        ):
            return True  # every product is a number of the format
        if choices.overflow == "infinity" and modes <= NEAREST:
            return True  # IEEE prescribes it for these
        if choices.cut and choices.tiny == "keep" and not modes & NEAREST:
            return True  # rounded twice in one direction, or to odd, is rounded once
        if not choices.cut and choices.tiny != "flush_after":
            return False
        if modes <= NEVER_UP and choices.tiny != "keep":
            return True  # no rounded result reaches the least normal number from below
        return not choices.inner_format and self._least(choices) >= unit_of(self.asked.d)  # tiny results are exact

    def _least(self, choices: Choices) -> int:
        """The exponent of the last place that any term has."""
        asked = self.asked
        product = unit_of(asked.d) if choices.products else unit_of(asked.a) + unit_of(asked.b)
        return min(product, unit_of(asked.c)) if asked.addend else product

    def _narrow(self, candidates: list[_Candidate], stage: Stage) -> list[_Candidate]:
        """The candidates that give every answer, when no input of the stage's tells them apart any more."""
        alive = self._agreeing(candidates, stage)
        for _ in range(ROUNDS):
            if len(alive) > MANY:
                alive = self._split(alive, stage, stage.rows(self.shapes, FIRST))
        for _ in range(2):
            alive = self._split(alive, stage, stage.rows(self.shapes, POOL))
        return alive

    def _split(self, alive: list[_Candidate], stage: Stage, pool: Table) -> list[_Candidate]:
        """Ask what splits the candidates best, until this pool tells nothing more."""
        fresh = True
        while alive and len(pool):
            results = self._results(alive, pool)
            usable = np.asarray(stage.counts(results, self.asked.d).all(axis=0))
            kinds = [len(np.unique(results[:, column])) if usable[column] else 0 for column in range(len(pool))]
            order = np.argsort(kinds)[::-1][:AT_ONCE]
            chosen = [int(column) for column in order if kinds[column] > 1]
            if not chosen:
                if fresh and usable.any():  # some that tell nothing apart, to see whether any candidate is right
                    chosen = [int(column) for column in np.flatnonzero(usable)[:AT_ONCE]]
                    self._asked(pool[chosen], stage)
                    alive = self._agreeing(alive, stage)
                return alive
            fresh = False
            self._asked(pool[chosen], stage)
            alive = self._agreeing(alive, stage)
            pool = np.delete(pool, chosen, axis=0)
            self.progress(f"{stage.name}: {len(alive)} candidates, {len(self.answers)} questions")
        return alive

    def _agreeing(self, candidates: list[_Candidate], stage: Stage) -> list[_Candidate]:
        """Those that give the answers so far, as far as these count: to inputs of this stage and of those before."""
        counts = stage.counts(self.answers, self.asked.d) & (self.origins <= stage.rank)
        if not counts.any() or not candidates:
            return candidates
        table, answers = self.table[counts], self._same(self.answers[counts])
        alive = candidates
        for part in np.array_split(np.arange(len(answers)), max(1, len(answers) // 32)):
            if not alive:
                break
            agreed = self._results(alive, table[part]) == answers[part]
            best = int(agreed.sum(axis=1).argmax())
            kept = [candidate for candidate, row in zip(alive, agreed, strict=True) if row.all()]
            if not kept:
                self._best = int(part[0]) + int(agreed[best].sum()), alive[best]
            alive = kept
        return alive

    def _results(self, candidates: Sequence[_Candidate], table: Table) -> Patterns:
        return self._same(evaluate_models([candidate.model for candidate in candidates], table))

    def _same(self, patterns: Patterns) -> Patterns:
        """One pattern for all NaNs."""
        return np.where(nans(patterns, self.asked.d), np.uint64(self.asked.d.nan), patterns)

    def _asked(self, rows: Table, stage: Stage) -> None:
        answers = np.array(self.ask([self._vector(row) for row in rows]), dtype=np.uint64)
        self._keep(rows, answers, np.full(len(rows), stage.rank))

    def _keep(self, rows: Table, answers: Patterns, origins: NDArray[np.int64]) -> None:
        self.table = np.concatenate([self.table, rows])
        self.answers = np.concatenate([self.answers, answers])
        self.origins = np.concatenate([self.origins, origins])
        self.result.questions = len(self.answers)

    def _vector(self, row: Any) -> Vector:
        return Vector(self.asked, self.layout.split([int(x) for x in row]), id=f"build-{len(self.answers)}")

    # -- the end

    def _nan(self) -> int | None:
        """The pattern of NaNs, where all are alike."""
        answers = np.concatenate([self.answers, self.seen[1]])
        seen = {int(d) for d in answers[nans(answers, self.asked.d)]}
        return seen.pop() if len(seen) == 1 else None

    def _validated(self, alive: list[_Candidate]) -> list[_Candidate]:
        """Those that give the answers to vectors over the whole range; some that none gives are kept as questions."""
        self.result.stage = "validation"
        parts = [(stage.rank, stage.rows(self.shapes, VALIDATION // 4)) for stage in self.stages]
        parts.append((self.stages[-1].rank, self.shapes.anything(VALIDATION // 4)))
        origins = np.concatenate([np.full(len(part), rank) for rank, part in parts])
        rows = np.concatenate([part for _, part in parts])
        answers = np.zeros(len(rows), dtype=np.uint64)
        for start in range(0, len(rows), 512):
            part = rows[start : start + 512]
            self.progress(f"validation: {start} of {len(rows)} vectors")
            answers[start : start + 512] = self.ask([self._vector(row) for row in part])
        self.result.validated += len(rows)
        self.seen = np.concatenate([self.seen[0], rows]), np.concatenate([self.seen[1], answers])
        wrong = np.zeros((len(alive), len(rows)), dtype=np.bool_)
        for number, candidate in enumerate(alive):
            found = evaluate_models([candidate.model], rows)[0]
            wrong[number] = self._same(found) != self._same(answers)
        right = [candidate for candidate, row in zip(alive, wrong, strict=True) if not row.any()]
        if right:
            return right
        best = int(wrong.sum(axis=1).argmin())
        places = np.flatnonzero(wrong[best])
        places = places[np.argsort((rows[places] != 0).sum(axis=1), kind="stable")][:MANY]
        self._best = len(rows) - int(wrong[best].sum()), alive[best]
        self._keep(rows[places], answers[places], origins[places])
        return []

    def _decided(self, alive: list[_Candidate]) -> list[_Candidate]:
        """Solvers prove what is left equal, to the instructions of the table that answer alike as well, or find vectors
        that the device is asked; none is left where it answers otherwise than all of them."""
        result, last = self.result, self.stages[-1]
        while alive:
            known = self._known()
            models = [*(candidate.model for candidate in alive), *known]
            result.stage = "proof"
            self.progress(f"proving {len(models)} candidates equal")
            same = [model for model in known if commuted(model.unit.result) == commuted(alive[0].model.unit.result)]
            models = [model for model in models if not any(model is other for other in same)]
            found = settle(models, self.options, confirm=True, deadline=self.deadline)
            if not found.witnesses:
                break
            self._asked(np.array(found.witnesses, dtype=np.uint64), last)
            alive = self._agreeing(alive, last)
        else:
            return []
        own = alive[0].model
        for members in found.classes:
            if any(member.model is own for member in members):
                result.equal = [(m.model, why_of(m)) for m in members if m.model is not own]
        result.equal = [*((model, COMMUTED) for model in same), *result.equal]
        proved = [own, *(model for model, _ in result.equal)]
        result.open = [model for model in models if not any(model is other for other in proved)]
        return alive

    def _known(self) -> list[Model]:
        """The instructions and units that ship, of these formats and this length, that give every answer so far."""
        found: list[Model] = []
        wrong: list[tuple[int, Model]] = []
        table, answers = np.concatenate([self.table, self.seen[0]]), np.concatenate([self.answers, self.seen[1]])
        nan = self._nan()
        for model in same_signature(self.asked):
            if None not in (nan, model.nan) and nan != model.nan:
                continue
            results = evaluate_models([model], table)[0]
            count = int((self._same(results) != self._same(answers)).sum())
            wrong.append((count, model))
            found += [model] if not count else []
        self.result.near = None if found or not wrong else min(wrong, key=lambda pair: pair[0])[::-1]
        return found

    def _unexplained(self) -> None:
        """The nearest candidate, and the smallest vectors that it does not explain."""
        if self._best is None:
            return
        self.result.explained, best = self._best
        self.result.nearest = best.model.unit
        found = self._results([best], self.table)[0]
        wrong = np.flatnonzero(found != self._same(self.answers))
        wrong = wrong[np.argsort((self.table[wrong] != 0).sum(axis=1), kind="stable")][:3]
        self.result.unexplained = [
            (self._vector(self.table[place]), int(self.answers[place]), int(found[place])) for place in wrong
        ]


COMMUTED = "the same but for the order of the terms of exact sums"


def commuted(node: Step) -> Step:
    """The expression with the terms of exact sums in one order, which no result depends on."""
    changes: dict[str, Any] = {}
    for item in fields(node):  # type: ignore[arg-type]
        value = getattr(node, item.name)
        if isinstance(value, Step):
            changes[item.name] = commuted(value)
        elif isinstance(value, tuple) and value and all(isinstance(part, Step) for part in value):
            parts = [commuted(part) for part in value]
            changes[item.name] = tuple(sorted(parts, key=hash) if isinstance(node, ExactSum) else parts)
    if isinstance(node, Round):
        changes["rounding"] = replace(node.rounding, nan=None)
    return replace(node, **changes) if changes else node  # type: ignore[type-var]


def unit_of(fmt: Format) -> int:
    """The exponent of a format's least number."""
    return fmt.emin - fmt.fraction


def why_of(equality: Equality) -> str:
    """Why two are equal, and who says so as well."""
    return equality.why + (f", confirmed by {' and '.join(equality.confirmed)}" if equality.confirmed else "")


def same_signature(asked: Signature) -> list[Model]:
    """The instructions of the table and the units that ship, of these formats and this length."""
    formats = asked.a.name, asked.b.name, asked.c.name
    found = [
        name for name, row in INSTRUCTIONS.items() if (row.a, row.b, row.c) == formats and row.length == asked.length
    ]
    models = [parse_reference(name) for name in [*found, *units()]]
    if asked.length == 1:
        models += [parse_reference(f"ieee/fma/{name}") for name in ("f64", "f32", "f16")]
    return [
        model
        for model in models
        if (model.a, model.b, model.c, model.d) == (asked.a, asked.b, asked.c, asked.d)
        and (model.length, model.scale) == (asked.length, None)
    ]


_READS: tuple[tuple[str, str], ...] = (
    ("keep", "keep"), ("zero", "zero"), ("positive_zero", "positive_zero"), ("zero", "keep"), ("keep", "zero"),
)  # fmt: skip


def text_of(unit: Unit) -> str:
    """The unit file of a unit; what it says is read again and compared. Raises AssertionError where it is another."""
    text = unit_text(unit)
    assert parse_unit(text, "built.yaml") == unit
    return text
