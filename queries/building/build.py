"""The arithmetic of a device of which nothing is known: its order first, then what each step does, by questions.

Steps are decided one role at a time, from the last one down, with inputs whose sums the steps below pass on unchanged.
Then come products and the starts of sums, the smallest numbers and zeros, the largest, infinities and NaNs: each stage
has inputs on which only its own part of a draft has an effect. Candidates are drafts with other expressions in that
part, compared with the answers so far; the next question is the one that splits them best. The unit that is left must
give thousands of answers over the whole range before it is called found.
"""

from __future__ import annotations

import math
import random
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mmaprobe.queries.building.answers import BUILT, DeviceAnswers, joined_rows
from mmaprobe.queries.building.axes import with_ends_of
from mmaprobe.queries.building.candidates import Candidate, Sketch, drafts_of
from mmaprobe.queries.building.clock import Clock
from mmaprobe.queries.building.describing import Describer, Description
from mmaprobe.queries.building.draft import Draft
from mmaprobe.queries.building.drafter import TooDeepError
from mmaprobe.queries.building.lanes import with_one_lane
from mmaprobe.queries.building.mending import mended
from mmaprobe.queries.building.naming import same_signature, with_nan
from mmaprobe.queries.building.number_kinds import every, finite, nonzero, not_zero, ordinary
from mmaprobe.queries.building.outcome import Built
from mmaprobe.queries.building.roles import RoledTree, one_role, roles_apart, roles_by_shape
from mmaprobe.queries.building.search import POOL, TIER, TierSearch
from mmaprobe.queries.building.shapes import Shapes
from mmaprobe.queries.building.stages import KINDS, LONG, SHORT, WHOLE, DraftStage, Stages
from mmaprobe.queries.building.steps import Tier
from mmaprobe.queries.building.validation import Validation
from mmaprobe.queries.building.weights import Weights
from mmaprobe.queries.order.ends import products_of
from mmaprobe.queries.order.probe import AskAll, Probe
from mmaprobe.queries.order.tree import Leaf, Node, nodes_of, one_after_another
from mmaprobe.queries.search.distinguish import Options
from mmaprobe.queries.search.samples import Table
from mmaprobe.smtmodel.base.errors import IncompleteError, OutOfTimeError, ParameterError
from mmaprobe.smtmodel.base.wording import counted
from mmaprobe.smtmodel.evaluate.batch import Patterns, evaluate_models
from mmaprobe.smtmodel.evaluate.model import Model
from mmaprobe.smtmodel.inputs.signature import Signature
from mmaprobe.smtmodel.inputs.vectors import Vector
from mmaprobe.smtmodel.nodes import Constant, Element
from mmaprobe.smtmodel.nodes.node import Node as Expression
from mmaprobe.smtmodel.nodes.node import Variant, walk
from mmaprobe.smtmodel.units.unit import Unit

ORDERS = 0.4  # share of an attempt's time for some of the possible orders
REPORT = 0.03  # share of the time that is kept for the report
DESCRIBED = 0.2  # share that is kept for a description of where the device differs from the nearest unit
DESCRIBING = 60.0  # the most seconds for this description
LARGER = 0.8  # share of the remaining time for one group, where the usual one was too short
BY_STEPS = 0.8  # share of the time after which only changes of near candidates are tried
AGAIN = 5  # the most searches, each with the answers that refuted the unit of the one before
AGAIN_ALIKE = 3  # searches while like steps have one role
APART = 12  # the most steps that may each have a role of their own
NAMED = 40  # last near candidates, of which the nearest is named where none is found
NEAR = 0.3  # the largest share of wrong answers of a unit of which one stage is decided again
NOTED = 6  # near candidates that are changed
MENDS = 4  # changed units and known units that are changed further
COMPARED = 5  # near units, of which the one with the simplest difference is described
SHOWN = 200  # vectors of each kind, by which the compared units are chosen
MENDED = 160  # answers with which changed units are compared first
TURNS = 4  # rounds of further changes, each by the answers that the units of the round before do not give
ALONE = 16  # questions about products without c, which show how many bits their sums have
TRIED = 20  # orders that are tried one by one, where no uniform arithmetic fits any


class Attempt(NamedTuple):
    """A search among the units of some trees (`parts`). `quick`: only likely drafts are tried; `share`: of the
    remaining time."""

    parts: Sequence[RoledTree]
    quick: bool
    share: float = 1.0


class Builder:
    """Builds the unit of one device, whose summation tree is one of `roots`. `ask`: answers vectors; `weights`: of the
    terms that the device multiplies. Raises the errors of `ask`."""

    def __init__(
        self,
        roots: Sequence[Node | Leaf],
        asked: Signature,
        ask: AskAll,
        options: Options,
        deadline: float | None = None,
        weights: Weights | None = None,
    ) -> None:
        self.asked, self.roots, self.options, self.weights = asked, roots, options, weights or {}
        self.result = Built()
        now = time.monotonic()
        left = 0.0 if deadline is None else max(0.0, deadline - now)
        self.until = math.inf if deadline is None else deadline - REPORT * left
        ended = None if deadline is None else self.until - DESCRIBED * left
        self.answers = DeviceAnswers(asked, ask, Clock(ended), options.progress)
        self.shapes = Shapes(asked, weights=self.weights)
        self.chance = random.Random(1)
        self.random = np.random.default_rng(1)
        self.products: dict[Node | Leaf, frozenset[int]] = {}  # the fused products of each tree asked about
        self.share = TIER  # the share of the remaining time for one group of candidates
        self.alone: Sketch | None = None  # the sketch of the last questions about products without c
        self.known = same_signature(asked)  # instructions of the table, and shipped units
        self.turn_to([self._uniform(root) for root in roots])

    def _uniform(self, root: Node | Leaf) -> RoledTree:
        return one_role(root, self.weights)

    def turn_to(self, parts: Sequence[RoledTree], quick: bool = False) -> None:
        """Search from now on among the units of these trees. `quick`: only likely drafts are tried."""
        sketch = Sketch(parts, self.asked)
        stages = Stages(sketch, self.shapes, self.chance, quick, self._bits, self._fused)
        self.search = TierSearch(stages, self.answers, getattr(self, "search", None), self.share)
        self.validation = Validation(self.search, self.known, self.options, self.result)

    def _bits(self, alone: bool) -> int:
        """The most significant bits of answers so far; `alone`: of those to products without c, some of which are
        asked here for each tree."""
        stages = self.search.stages
        if alone and self.alone is not stages.sketch:
            self.alone = stages.sketch
            products = frozenset(range(min(self.asked.length, WHOLE)))
            self.answers.put(self.shapes.sums(ALONE, products, SHORT), stages.products.rank, products)
        return self.answers.bits(alone)

    def _fused(self) -> frozenset[int]:
        """The products fused into the addition, where others are rounded before it; asked once for a tree."""
        parts = self.search.sketch.parts
        root = parts[0].root
        if len(parts) > 1 or self.asked.length > LONG:
            return frozenset()

        def ask(vectors: Sequence[Vector]) -> list[int]:
            rows = np.array([vector.operands.every for vector in vectors], dtype=np.uint64)
            results: list[int] = self.answers.put(rows, self.search.stages.products.rank, None).answers.tolist()
            return results

        if root not in self.products:
            probe = Probe(ask, self.asked, addend=self.asked.addend)
            probe.weights = self.weights
            fused, rounded, _ = products_of(probe, root)
            self.products[root] = frozenset(fused if rounded else ())
        return self.products[root]

    def run(self) -> Built:
        """The outcome. Raises the errors of `ask`."""
        self._sought_out()
        result, answers = self.result, self.answers
        result.questions, result.validated, result.stage = answers.questions, answers.checks, answers.at
        result.left = list(dict.fromkeys(answers.clock.left))
        return result

    def _sought_out(self) -> None:
        result, answers = self.result, self.answers
        try:
            if self._finished(self._recognised()) or self._by_steps() or self._by_changes():
                self._built()
                return
            if (left := dict.fromkeys(answers.clock.left)) and not result.why:
                result.why = f"the time was too short for {counted(len(left), 'group')} of candidates"
            result.verdict = "open" if result.why else "unexplained"
            self.answers.at = self.search.farthest[1] or self.answers.at
        except TooDeepError:
            result.why = "its order has no repetition, and no unit nests its steps so deeply"
            return
        except OutOfTimeError as error:
            result.why = str(error)
        if result.why and self._standing():
            return
        self._unexplained()

    def _by_steps(self) -> list[Candidate]:
        """The candidates found step by step, in most of the time; where groups had too little of it, and some is left,
        once more with larger shares."""
        clock, now = self.answers.clock, time.monotonic()
        clock.limit = None if clock.deadline is None else now + BY_STEPS * (clock.deadline - now)
        try:
            if alive := self._by_attempts():
                return alive
            if clock.left and clock.limit is not None:
                clock.left.clear()
                self.share = LARGER
                return self._by_attempts()
        except OutOfTimeError as error:
            self.result.why = str(error)
        return []

    def _by_attempts(self) -> list[Candidate]:
        for parts, quick, share in self._attempts():
            before = self.search.stages
            self.turn_to(parts, quick)
            if parts is not before.sketch.parts:
                self._ranked_anew(before)
            what = f"{'likely' if quick else 'all'} arithmetics of {counted(len(parts), 'order')}"
            look = partial(self._sought, AGAIN_ALIKE if quick else AGAIN)
            if alive := self.answers.clock.within(share, what, look):
                return alive
        return []

    def _by_changes(self) -> list[Candidate]:
        """The candidates found by changing units that came near, in the remaining time."""
        self.answers.clock.limit = self.answers.clock.deadline
        for _ in range(AGAIN):
            if not (alive := self._mended()):
                break
            if alive := self._finished(alive):
                return alive
        return []

    def _built(self) -> None:
        result = self.result
        result.verdict, result.why = "built", ""
        assert result.unit is not None
        result.unit = with_nan(result.unit, self.answers.nan())

    def _standing(self) -> bool:
        """Whether some unit agrees with all answers, though the time ran out before the rest of validation. This unit
        is then the outcome, with an open verdict; other units that agree are its open candidates."""
        result = self.result
        wrong = self.answers.wrong([candidate.unit for candidate in result.standing])
        right = [candidate for candidate, count in zip(result.standing, wrong, strict=True) if not count]
        if not right:
            return False
        nan = self.answers.nan()
        result.unit = with_nan(right[0].unit, nan)
        result.open = [*self.validation.known(), *(candidate.model for candidate in right[1:])]
        result.equal, result.refuted, result.unseen = [], 0, 0
        result.why = f"the time ran out before {result.untried}"
        return True

    def _attempts(self) -> Iterator[Attempt]:
        """First, like steps have one role; then, if there are few, each step may have its own; then chains are tried in
        place of steps that seem to lose nothing. Of several orders those with one step come first; two orders are tried
        one after the other, each as if it were the only one."""
        if len(self.roots) > 2:
            at_once = [x for x in self.roots if isinstance(x, Node) and len(x.children) == x.size > 2]
            yield from (Attempt([self._uniform(root)], True, ORDERS) for root in at_once)
            yield Attempt([self._uniform(root) for root in self.roots], True, ORDERS)
            yield from (
                Attempt([roles_apart(root, self.weights)], True, ORDERS)
                for root in self.roots
                if len(self.roots) <= TRIED and root not in at_once
            )
            yield from (Attempt([self._uniform(root)], False, ORDERS) for root in at_once)
            return
        for number, root in enumerate(self.roots, start=1):
            share = 1.0 if number == len(self.roots) else ORDERS
            yield from (attempt._replace(share=min(share, attempt.share)) for attempt in self._of(root))

    def _of(self, root: Node | Leaf) -> Iterator[Attempt]:
        same, each = [roles_by_shape(root, self.weights)], roles_apart(root, self.weights)
        differ = len(nodes_of(root)) <= APART and each.count > same[0].count
        yield Attempt(same, differ)
        if differ:
            yield Attempt([each], True, ORDERS)
        if differ and self.search.at_a_step:
            yield Attempt(same, False, ORDERS)
        if differ:
            yield Attempt([each], False)
        yield from (Attempt([roles_by_shape(chain, self.weights)], True, ORDERS) for chain in one_after_another(root))

    def _sought(self, times: int) -> list[Candidate]:
        """The candidates that give every answer, found in at most `times` attempts. The second comes before changes of
        near candidates, since it knows the answers that refuted the first."""
        search, number = self.search, len(self.search.stages.all)
        for turn in range(times):
            before, ended, number = self.answers.questions, search.ended, len(search.stages.all)
            if alive := self._finished(search.by_stages()):
                return alive
            if (odd := self._one_lane()) and (alive := self._finished(search.by_stages(odd))):
                return alive
            if not turn and self.answers.questions > before:
                continue
            if search.farthest[0] >= number - 5 and (alive := self._finished(self._one_stage_again())):
                return alive
            if search.farthest[0] >= number - 3 and (alive := self._finished(self._mended())):
                return alive
            stuck = self.answers.questions == before or (search.ended is not None and search.ended == ended)
            if stuck and (search.strict or not self._late()):
                return []
            search.strict = self._late()
        return []

    def _finished(self, alive: list[Candidate]) -> list[Candidate]:
        """The candidates that pass all of validation and every proof, with all of the remaining time."""
        if not alive:
            return []
        self.search.farthest = len(self.search.stages.all), "validation"
        with self.answers.clock.whole():
            alive = self.validation.validated(alive)
            while alive and not self.validation.covered(alive[0]):
                alive = self.search.agreeing(alive, self.search.stages.everything)
            return self.validation.decided(alive) if alive else []

    def _recognised(self) -> list[Candidate]:
        """The instructions of the table and the shipped units that give every answer; those of one signature are
        distinguished by a few questions."""
        alive = [Candidate(None, model.unit.computing(model.unit.result)) for model in self.known]
        self.answers.at = "what is known"
        for kind, rank in zip(KINDS, self.search.stages.ranks, strict=True):
            stage = DraftStage(self.answers.at, rank, (), (), every)
            alive = self.search.split(alive, stage, None, self.shapes.rows(kind, POOL))
        return alive

    def _mended(self) -> list[Candidate]:
        """The units that give every answer, found by a few changes of a known unit or of one that came near."""
        self.answers.at = "what is known, changed"
        chosen = [asked for asked in self.answers.bank if asked.kept is None] + self.answers.validated
        if not chosen or self.search.stages.long:
            return []
        rows, answers = joined_rows(chosen)
        near = [*list(self.search.noted)[-NOTED:], *(model.unit for model in self.known)]
        near = [unit.computing(unit.result) for unit in near]
        if not near:
            return []
        answers = self.answers.same(answers)

        def wrong_on(some: NDArray[np.int64], units: Sequence[Unit]) -> NDArray[np.bool_]:
            return np.asarray(self.answers.evaluated(units, rows[some]) != answers[some])

        sample = np.sort(self.random.permutation(len(rows))[: MENDED * 4])
        least = wrong_on(sample, near).sum(axis=1)
        best = [near[at] for at in np.argsort(least, kind="stable")[:MENDS]]
        whole = wrong_on(np.arange(len(rows)), best)
        differing = np.flatnonzero(whole.any(axis=0))
        some = np.unique(np.concatenate([sample[: MENDED // 2], self.random.permutation(differing)[:MENDED]]))
        # units right on these answers may be wrong on others: they are changed until no answer is wrong
        for _ in range(TURNS):
            if not (changed := mended(best, partial(wrong_on, some))):
                break
            whole = wrong_on(np.arange(len(rows)), changed)
            if not whole.any(axis=1).all():
                return [Candidate(None, changed[at]) for at in np.flatnonzero(~whole.any(axis=1))]
            ranked = np.argsort(whole.sum(axis=1), kind="stable")[:MENDS]
            best, differing = [changed[at] for at in ranked], np.flatnonzero(whole[ranked].any(axis=0))
            some = np.union1d(some, self.random.permutation(differing)[:MENDED])
        return []

    def _near(self) -> list[tuple[Unit, Draft]]:
        """The last near candidates that are drafts of this sketch."""
        noted = list(self.search.noted.items())[-NAMED:]
        return [(unit, draft) for unit, draft in noted if draft is not None]

    def _one_lane(self) -> list[Draft]:
        """Drafts for a new search: those with one lane of other fraction bits that explains every ordinary answer that
        a near candidate does not give."""
        near = [(unit, draft) for unit, draft in self._near() if draft.fuses and draft.odd is None]
        if not near:
            return []
        rows, answers = joined_rows(self.answers.every)
        numbers = ordinary(answers, self.asked.d)
        rows, answers = rows[numbers], self.answers.same(answers[numbers])
        wrong = self.answers.evaluated([unit for unit, _ in near], rows) != answers
        counts, search = wrong.sum(axis=1), self.search
        least = int(counts.min())
        if not 0 < least <= NEAR * len(rows):
            return []

        def right(drafts: Sequence[Candidate], some: NDArray[np.int64]) -> list[Candidate]:
            given = self.answers.evaluated([candidate.unit for candidate in drafts], rows[some]) == answers[some]
            return [candidate for candidate, fits in zip(drafts, given.all(axis=1), strict=True) if fits]

        tried: list[Candidate] = []
        for at in np.flatnonzero(counts == least)[:MENDS]:
            (_, base), missed = near[at], np.flatnonzero(wrong[at])
            lanes = partial(with_one_lane, part=search.sketch.parts[base.tree], wrong=rows[missed], asked=self.asked)
            tried += right(search.drafted([base], lanes, None), missed)
        tried = right(tried, np.arange(len(rows)))
        tried = search.split(tried, search.stages.products, None, self.shapes.rows("middle", POOL))
        changed = [replace(search.sketch.start()[draft.tree], odd=draft.odd) for draft in drafts_of(tried)]
        return list(dict.fromkeys(changed))

    def _one_stage_again(self) -> list[Candidate]:
        """The units that give every answer and differ from a near unit in what a single stage decides, as the first
        tier that fits a stage's inputs need not be the right one. The first tiers of every stage come before later
        ones, which are longer."""
        near = self._near()
        if not near:
            return []
        wrong = self.answers.wrong([unit for unit, _ in near])
        if min(wrong) > NEAR * (self.answers.questions + self.answers.checks):
            return []
        unit, base = near[int(np.argmin(wrong))]
        last, stages = self.search.stages.everything.rank, self._likely_first(unit)
        for depth in range(max(len(stage.tiers) for stage in stages)):
            for stage in stages:
                tiers = stage.tiers[depth : depth + 1]
                tiers = tiers if stage in self.search.stages.limits else [self._ended(tier) for tier in tiers]
                whole = replace(stage, name=f"{stage.name}, again", rank=last, tiers=tiers, counts=every, otherwise=())
                if right := self.search.by_tiers([base], whole):
                    return self.search.drafted(drafts_of(right), lambda given: [given], None)
        return []

    def _likely_first(self, unit: Unit) -> list[DraftStage]:
        """The stages in the order in which they are likely to be wrong in a unit: by its wrong answers, the signs of
        zeros, infinities and NaNs, or tiny numbers; or, if a wrong answer or result is a normal number, the steps, the
        last decided step first."""
        d = self.asked.d
        *steps, tiny, zeros, ends = self.search.stages.all
        asked = self.answers.every
        [wrong], (rows, answers) = self.answers.differences([unit], asked), joined_rows(asked)
        given, results = answers[wrong], evaluate_models([Model(BUILT, unit)], rows[wrong])[0]
        if any((ordinary(x, d) & nonzero(x, d)).any() for x in (results, given)):
            return [*reversed(steps), tiny, zeros, ends]
        if not any(not_zero(x, d).any() for x in (results, given)):
            return [zeros, tiny, ends, *steps]
        first = [ends, tiny] if not (finite(results, d) & finite(given, d)).any() else [tiny, ends]
        return [*first, zeros, *steps]

    def _ended(self, tier: Tier) -> Tier:
        """A tier whose drafts keep the treatment of overflow and tiny results."""
        return lambda given: (with_ends_of(found, given) for found in tier(given))

    def _late(self) -> bool:
        """Whether the last attempt ended at ordinary numbers, in a stage after all steps were decided."""
        return self.answers.at in (self.search.stages.products.name, self.search.stages.carries.name)

    def _ranked_anew(self, before: Stages) -> None:
        """Give questions that were asked while other steps had roles a rank that is about no single step."""
        old, new = before.products.rank, self.search.stages.products.rank
        self.answers.bank = [replace(asked, rank=new + max(0, asked.rank - old)) for asked in self.answers.bank]

    def _unexplained(self) -> None:
        """The nearest candidate, and the smallest vectors that it does not explain."""
        if not self.answers.bank:
            return
        self.validation.known()
        if not self.search.noted:
            return
        noted = list(self.search.noted)
        # later candidates may explain more answers and yet be further away
        earlier = noted[: -NAMED : len(noted) // NAMED + 1]
        near, known = [*noted[-NAMED:], *earlier], [model.unit for model in self.known]
        if not self.asked.addend:
            near, known = _without_addend(near), _without_addend(known)
        near += known
        by_questions = near[int(self.answers.differences(near, self.answers.bank).sum(axis=1).argmin())]
        sample = self._sample()
        rows, answers = joined_rows(self.answers.every) if sample is None else sample
        near = self._nearest_first(near, rows, answers)
        self.result.description = None if sample is None else self._described(near, known, by_questions, rows, answers)
        best = near[0] if self.result.description is None else self.result.description.unit
        self.result.nearest = best
        if sample is not None:
            more, given = joined_rows(self.answers.every)
            rows, answers = np.concatenate([more, rows]), np.concatenate([given, answers])
        results = self.answers.same(evaluate_models([Model(BUILT, best)], rows)[0])
        answers = self.answers.same(answers)
        within, differs = self._is_within(rows, answers), answers != results
        self.result.within, self.result.beyond = (
            (int((differs & kind).sum()), int(kind.sum())) for kind in (within, ~within)
        )
        wrong = np.flatnonzero(differs)
        wrong = wrong[np.unique(rows[wrong], axis=0, return_index=True)[1]]  # a vector may have been asked twice
        wrong = wrong[np.argsort((rows[wrong] != 0).sum(axis=1), kind="stable")][:3]
        self.result.unexplained = [
            (self.answers.vector(rows[place]), int(answers[place]), int(results[place])) for place in wrong
        ]

    def _ask_anew(self, rows: Table) -> Patterns:
        """The device's answers to further rows, which are not kept as questions."""
        given = self.answers.ask(self.answers.vectors(rows))
        return self.answers.same(np.array(given, dtype=np.uint64))

    def _sample(self) -> tuple[Table, Patterns] | None:
        """New rows of each kind with their answers; None for a recording, which has no answers to other vectors.
        Questions are chosen to tell units apart, and elsewhere another unit is often nearest."""
        new = np.concatenate([self.shapes.rows(kind, SHOWN) for kind in KINDS])
        try:
            return new, self._ask_anew(new)
        except IncompleteError:
            return None

    def _is_within(self, rows: Table, answers: Patterns) -> NDArray[np.bool_]:
        """For each row, whether all operands are finite and the answer is, below the largest number."""
        length, asked = self.asked.length, self.asked
        sides = (rows[:, :length], asked.a), (rows[:, length : 2 * length], asked.b), (rows[:, [2 * length]], asked.c)
        operands = np.concatenate([finite(side, fmt) for side, fmt in sides], axis=1).all(axis=1)
        magnitudes = answers & np.uint64((1 << asked.d.width) - 1 & ~asked.d.sign_bit)
        flags: NDArray[np.bool_] = operands & finite(answers, asked.d) & (magnitudes < asked.d.largest)
        return flags

    def _nearest_first(self, units: Sequence[Unit], rows: Table, answers: Patterns) -> list[Unit]:
        """The units by their wrong answers: first those within the range of finite numbers, as the treatment of
        infinities, NaNs and overflow says little of how a unit adds; the shortest first where these are as many."""
        results = self.answers.same(evaluate_models([Model(BUILT, unit) for unit in units], rows))
        wrong = results != self.answers.same(answers)
        sizes = [len(list(walk(unit.result))) for unit in units]
        within = wrong[:, self._is_within(rows, answers)].sum(axis=1)
        return [units[at] for at in np.lexsort((sizes, wrong.sum(axis=1), within)).tolist()]

    def _described(
        self, near: Sequence[Unit], known: Sequence[Unit], by_questions: Unit, new: Table, own_answers: Patterns
    ) -> Description | None:
        """Where the device differs from one of some units, the nearest first; `known`: those in the table or shipped;
        `by_questions`: the nearest one by the questions. None if no simple condition describes this."""
        until = min(self.until, time.monotonic() + DESCRIBING)
        self.answers.progress("describing where the nearest unit differs")
        try:
            units = list(near[:COMPARED])
            # a simple condition may describe the difference of the nearest known unit
            units += [unit for unit in near if unit in known][:1]
            units = list(dict.fromkeys([*units, *map(_plain, [*units, by_questions]), by_questions]))
            rows, answers = joined_rows(self.answers.every)
            rows, answers = np.concatenate([rows, new]), np.concatenate([self.answers.same(answers), own_answers])
            return Describer(self.asked, self.shapes, self._ask_anew, until).described(units, rows, answers)
        except IncompleteError:  # a recording has no answers to other vectors
            return None


def _without_addend(units: Sequence[Unit]) -> list[Unit]:
    """The units with +0 in the place of c, without those of which there is none, each once."""
    found: dict[Unit, None] = {}
    for unit in units:
        with suppress(ParameterError):
            found[unit.rewritten(lambda _, node: Constant() if node.is_addend else node)] = None
    return list(found)


def _plain(unit: Unit) -> Unit:
    """The unit with inputs read as in IEEE 754, and without nodes such as gates around others; the given unit if no
    such unit is possible."""

    def changed(_: Expression, node: Expression) -> Expression:
        if isinstance(node, Element):
            return replace(node, subnormals="keep", positive_zeros=False)
        return node.varied(Variant(node.kind, True, False))

    try:
        return unit.rewritten(changed)
    except ParameterError:
        return unit
