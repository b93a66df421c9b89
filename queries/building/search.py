"""The search through tiers of drafts, which asks the questions that split the remaining candidates best.

A tier gives the drafts to try in place of one draft. Later tiers are tried if earlier tiers have no candidate.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from mmaprobe.queries.building.answers import DeviceAnswers, NonzeroLeaves, joined_rows
from mmaprobe.queries.building.axes import ordinary_neighbours, simplest, with_tiny
from mmaprobe.queries.building.candidates import Candidate, drafts_of
from mmaprobe.queries.building.draft import Draft, Odd, Store
from mmaprobe.queries.building.likely import MODES
from mmaprobe.queries.building.mending import in_mode
from mmaprobe.queries.building.number_kinds import finite, nonzero, not_zero, ordinary
from mmaprobe.queries.building.stages import DraftStage, Pool, Stages
from mmaprobe.queries.building.steps import Tier, drafts_of_merged, merged_drafts
from mmaprobe.queries.search.samples import Table
from mmaprobe.smtmodel.base.errors import ParameterError
from mmaprobe.smtmodel.evaluate.batch import Patterns
from mmaprobe.smtmodel.evaluate.numbers import nans
from mmaprobe.smtmodel.units.unit import Unit

POOL = 240  # inputs among which a stage's questions are chosen
CONFIRMED = 600  # inputs among which questions to confirm a tier's candidates are chosen
FIRST = 40  # inputs of a first round, which thins out many candidates
ROUNDS = 6  # the most first rounds
MANY_CANDIDATES = 60  # the number of candidates above which there are first rounds
KEPT = 120  # candidates of a step that are kept for the next step
ENDS = 120  # candidates that are kept after each of the last three stages (smallest numbers, zeros, largest numbers)
TIER = 0.3  # share of the remaining time for one tier
AT_ONCE = 6  # questions between two evaluations of the candidates
NARROW = -100  # formats with a larger least exponent are narrow: sums in them may be tiny though terms are not


class TierSearch:
    """The search for the arithmetic of one sketch's trees. `noted`: units that came near, each with its draft (None: it
    has no draft of this sketch); `strict`: whether the last step must give every answer to ordinary numbers;
    `farthest`: the number and the name of the last stage that an attempt reached; `ended`: the number of the stage in
    which the last attempt ended, and the drafts at the start of that stage. `before`: an earlier search over another
    sketch; `share`: the share of the remaining time for one tier."""

    def __init__(
        self, stages: Stages, answers: DeviceAnswers, before: TierSearch | None = None, share: float = TIER
    ) -> None:
        self.sketch, self.stages, self.answers = stages.sketch, stages, answers
        self.asked = answers.asked
        self.strict, self.share = False, share
        self._refuted: set[tuple[object, ...]] = set()  # tiers without a candidate
        self.noted: dict[Unit, Draft | None] = dict.fromkeys(before.noted) if before else {}
        self.farthest: tuple[int, str] = before.farthest if before else (-1, "")
        self.ended: tuple[int, Sequence[Draft]] | None = before.ended if before else None
        self._agreed: dict[tuple[object, ...], set[int]] = {}  # the questions answered right, by number

    @property
    def at_a_step(self) -> bool:
        """Whether the last attempt ended in the stage of a step."""
        return self.ended is not None and self.ended[0] < len(self.stages.steps)

    def by_stages(self, start: Sequence[Draft] = ()) -> list[Candidate]:
        """The units left after every stage has been decided once; `start`: the drafts to begin with."""
        alive = list(start) or self.sketch.start()
        for number, stage in enumerate(self.stages.all):
            units = self.by_tiers(alive, stage)
            if not units:
                self.farthest = max(self.farthest, (number, self.answers.at), key=lambda reached: reached[0])
                self.ended = number, alive
                return []
            alive = merged_drafts(drafts_of(units))[: ENDS if stage in self.stages.limits else KEPT]
        self.ended = None
        units = self.drafted(alive, drafts_of_merged, None)  # units with all leaves; the stages use few
        right = self.agreeing(units, self.stages.everything) if len(units) > len(alive) else units
        return right or units

    def by_tiers(self, alive: Sequence[Draft], stage: DraftStage) -> list[Candidate]:
        """The candidates of the first tier of a stage that has candidates; else those of the stages to try
        instead."""
        self.answers.at = stage.name
        for number, tier in enumerate(stage.tiers, start=1):
            what = f"group {number} of {len(stage.tiers)} at {stage.name}"
            apart = [draft for merged in alive for draft in drafts_of_merged(merged)]
            for given in (alive,) if apart == alive else (alive, apart):
                key = stage.name, stage.rank, self.strict, tier, tuple(given)
                if key in self._refuted:
                    continue
                if units := self.answers.clock.within(self.share, what, partial(self._try, given, tier, stage, key)):
                    return units
        return next(filter(None, (self._one_by_one(alive, others) for others in stage.otherwise)), [])

    def _one_by_one(self, alive: Sequence[Draft], stages: Sequence[DraftStage]) -> list[Candidate]:
        """The candidates left after some stages."""
        units: list[Candidate] = []
        for stage in stages:
            if not (units := self.by_tiers(alive, stage)):
                break
            alive = drafts_of(units[:KEPT])
        return units

    def _try(self, given: Sequence[Draft], tier: Tier, stage: DraftStage, key: tuple[object, ...]) -> list[Candidate]:
        """The candidates of a tier. A tier without candidates is noted as refuted: later answers cannot change that."""
        units = self._narrow(given, tier, stage)
        if not units:
            self._refuted.add(key)
        return units

    def unit(self, candidate: Candidate, kept: NonzeroLeaves) -> Unit:
        """The unit of a candidate, restricted to the leaves `kept` (None: all leaves)."""
        return candidate.unit if candidate.draft is None else self.sketch.unit(candidate.draft, kept)

    def simplest(self, tier: Tier, base: Draft) -> list[Draft]:
        """A tier's drafts in their simplest forms, each once."""
        drafts = (simplest(draft, self.asked, self.sketch.weights) for draft in tier(base))
        return list(dict.fromkeys(drafts))

    def drafted(self, alive: Sequence[Draft], tier: Tier, kept: NonzeroLeaves) -> list[Candidate]:
        """The candidates of a tier's drafts from each remaining draft, each unit once."""
        seen: dict[Unit, Candidate] = {}
        for base in alive:
            for draft in self.simplest(tier, base):
                unit = self.sketch.possible_unit(draft, kept)
                if unit is not None:
                    seen.setdefault(unit, Candidate(draft, unit))
        return list(seen.values())

    def _narrow(self, alive: Sequence[Draft], tier: Tier, stage: DraftStage) -> list[Candidate]:
        """The candidates of a tier that give every answer, once no further input of the stage distinguishes them."""
        drafts: list[Draft] = [draft for base in alive for draft in self.simplest(tier, base)]
        # few answers to other stages' questions show the treatment of small numbers: these answers are compared last
        own = replace(stage, since=stage.rank) if stage.signs and stage.counts in (nonzero, finite) else stage
        for number, pool in enumerate(stage.pools):
            self.answers.check_time()
            candidates = self.drafted(drafts, lambda given: [given], pool.kept)
            candidates = self.agreeing(candidates, own)
            if not candidates:
                return []
            for _ in range(ROUNDS):
                self.answers.check_time()
                if len(candidates) > MANY_CANDIDATES:
                    candidates = self.split(candidates, stage, pool.kept, pool.rows(FIRST))
            ordinary_only, first = stage.counts is ordinary, AT_ONCE if number == 0 else AT_ONCE // 2
            several = number == 0 and len(candidates) > 1
            for _ in range(2 if several else 1):
                doubted = 0 if ordinary_only and number else first
                candidates = self.split(candidates, stage, pool.kept, pool.rows(POOL), doubted)
            if candidates and ordinary_only:
                candidates = self._confirmed(candidates, stage, pool, first)
            left = {candidate.unit for candidate in candidates}
            drafts = [given for given in drafts if self.sketch.possible_unit(given, pool.kept) in left]
        # drafts with the same unit here may differ at other leaves
        alike: dict[tuple[Store | None, Odd | None, tuple[Unit | None, ...]], Draft] = {}
        for given in drafts:  # the number of steps between stores shows only at leaves of many steps
            units = tuple(self.sketch.possible_unit(given, pool.kept) for pool in stage.pools)
            alike.setdefault((given.store, given.odd, units), given)
        last = stage.pools[-1].kept
        candidates = [Candidate(given, self.sketch.unit(given, last)) for given in alike.values()]
        return candidates if own is stage else self.agreeing(candidates, stage)

    def _confirmed(self, alive: list[Candidate], stage: DraftStage, pool: Pool, most: int) -> list[Candidate]:
        """The candidates that agree with the device on up to `most` further inputs. These distinguish one candidate
        from units that differ from it in one choice: if the right candidate is in another tier, inputs that only split
        the candidates of this tier may refute none of them."""
        [draft] = drafts_of(alive[:1])
        beside = self.drafted([draft], lambda given: ordinary_neighbours(given, self.asked), pool.kept)
        rows = pool.rows(CONFIRMED)
        results = self._counted(self._results([alive[0], *beside], rows, pool.kept), stage)
        usable = np.flatnonzero(stage.counts(results, self.asked.d).all(axis=0))
        tells, chosen = results[1:, usable] != results[0, usable], list[int]()
        while len(chosen) < most and tells.any():
            best = int(tells.sum(axis=0).argmax())
            chosen.append(int(usable[best]))
            tells = tells[~tells[:, best]]
        if chosen:
            self.answers.put(rows[chosen], stage.rank, pool.kept)
        return self.agreeing(alive, stage)

    def split(
        self, alive: list[Candidate], stage: DraftStage, kept: NonzeroLeaves, pool: Table, first: int = AT_ONCE
    ) -> list[Candidate]:
        """Ask the questions that split the candidates best, until none in the pool splits them. `first`: if no input in
        the pool splits them, the number of questions that test whether any candidate is right."""
        if not alive or not len(pool):
            return alive
        results, fresh = self._counted(self._results(alive, pool, kept), stage), True
        usable = np.asarray(stage.counts(results, self.asked.d).all(axis=0))
        if stage.counts is ordinary:
            usable &= ~self._tiny_within(alive, results, pool, kept, stage).any(axis=0)
        left, places = np.flatnonzero(usable), np.arange(len(alive))  # indices into the pool, and of candidates
        while len(places) and len(left):
            now = results[np.ix_(places, left)]
            kinds = np.array([len(np.unique(column)) for column in now.T]) if len(places) > 1 else np.ones(len(left))
            order = np.argsort(kinds, kind="stable")[::-1][:AT_ONCE]
            chosen = left[[place for place in order if kinds[place] > 1]]
            if not len(chosen):
                if not fresh or not first:
                    break
                # questions that test whether any candidate is right
                chosen = left[self._inexact(alive[places[0]], pool[left], kept)[:first]]
            asked = self.answers.put(pool[chosen], stage.rank, kept)
            counts = stage.counts(asked.answers, self.asked.d)
            agreed = results[np.ix_(places, chosen)] == self._counted(asked.answers, stage)
            agreed |= ~counts
            if not agreed.all(axis=1).any():
                self.note(alive[places[int(agreed.sum(axis=1).argmax())]])
            places, left = places[agreed.all(axis=1)], np.setdiff1d(left, chosen)
            if fresh and (kinds <= 1).all():
                break
            fresh = False
            self.answers.progress(f"{stage.name}: {len(places)} candidates, {self.answers.questions} questions")
        return [alive[place] for place in places]

    def _inexact(self, candidate: Candidate, rows: Table, kept: NonzeroLeaves) -> NDArray[np.int64]:
        """The indices of the rows whose results vary most with the mode in which the candidate rounds."""
        unit = self.unit(candidate, kept)
        evaluated = self.answers.evaluated([in_mode(unit, mode) for mode in MODES], rows)
        kinds = [len(np.unique(column)) for column in evaluated.T]
        return np.argsort(kinds, kind="stable")[::-1][:AT_ONCE]

    def _tiny_within(
        self, alive: Sequence[Candidate], results: Patterns, rows: Table, kept: NonzeroLeaves, stage: DraftStage
    ) -> NDArray[np.bool_]:
        """For each candidate and row, whether the treatment of tiny sums in a narrow format changes the result."""
        flags = np.zeros(results.shape, dtype=np.bool_)
        drafts = [(at, x.draft, x.draft.roundings().values()) for at, x in enumerate(alive) if x.draft is not None]
        narrow = [(at, x) for at, x, roundings in drafts if any(own.rounding.format.emin > NARROW for own in roundings)]
        if narrow:
            flush = partial(with_tiny, kind="flush_before", unbounded=False)
            flushing = [replace(alive[at], draft=draft.with_each_rounding(flush)) for at, draft in narrow]
            places = [at for at, _ in narrow]
            flags[places] = self._counted(self._results(flushing, rows, kept), stage) != results[places]
        return flags

    def agreeing(self, candidates: list[Candidate], stage: DraftStage) -> list[Candidate]:
        """The candidates that give all answers so far to the inputs of this stage and of earlier stages."""
        alive, rank = candidates, stage.rank
        if self.strict and stage is self.stages.steps[-1]:
            rank = self.stages.carries.rank
        for kept in dict.fromkeys(asked.kept for asked in reversed(self.answers.bank)):  # new answers decide most
            alive = [candidate for candidate in alive if self._is_possible(candidate, kept)]
            known = [self._known(candidate, kept, stage) for candidate in alive]
            some = [
                asked
                for asked in self.answers.bank
                if asked.kept == kept
                and stage.since <= asked.rank <= rank
                and any(asked.number not in numbers for numbers in known)
            ]
            if not some:
                continue
            rows, answers = joined_rows(some)
            ranks = np.concatenate([np.full(len(x.rows), x.rank) for x in some])
            counts = np.flatnonzero(stage.counts(answers, self.asked.d))
            counts = counts[np.argsort(ranks[counts], kind="stable")[::-1]]  # the newest first, as they decide most
            for part in (counts[:1], counts[1:AT_ONCE], counts[AT_ONCE : 8 * AT_ONCE], counts[8 * AT_ONCE :]):
                if not len(part) or not alive:
                    continue
                results = self._counted(self._results(alive, rows[part], kept), stage)
                agreed = results == self._counted(answers[part], stage)
                if stage.counts is ordinary and not agreed.all():
                    agreed |= self._tiny_within(alive, results, rows[part], kept, stage)
                elif kept is not None and not agreed.all():
                    agreed |= self._other_zeros(alive, results, rows[part], answers[part], stage) & ~agreed
                fitting = [candidate for candidate, row in zip(alive, agreed, strict=True) if row.all()]
                if not fitting:
                    self.note(alive[int(agreed.sum(axis=1).argmax())])
                alive = fitting
            for candidate in alive:
                self._known(candidate, kept, stage).update(asked.number for asked in some)
        return alive

    def _other_zeros(
        self, alive: Sequence[Candidate], results: Patterns, rows: Table, answers: Patterns, stage: DraftStage
    ) -> NDArray[np.bool_]:
        """For each candidate and row, whether the result differs from the answer only in the sign of a zero, and the
        unit with all leaves gives the right sign: zeros at the other leaves have signs too."""
        d = self.asked.d
        zero = ~not_zero(answers, d) & ~not_zero(results, d)
        flags = np.zeros(results.shape, dtype=np.bool_)
        places = np.flatnonzero((zero | (results == self._counted(answers, stage))).all(axis=1)).tolist()
        if places:
            whole = self._results([alive[place] for place in places], rows, None)
            flags[places] = zero[places] & (self._counted(whole, stage) == self._counted(answers, stage))
        return flags

    def _is_possible(self, candidate: Candidate, kept: NonzeroLeaves) -> bool:
        """Whether there is a unit of the candidate for these leaves: a draft may have one for some leaves alone."""
        return candidate.draft is None or self.sketch.possible_unit(candidate.draft, kept) is not None

    def _known(self, candidate: Candidate, kept: NonzeroLeaves, stage: DraftStage) -> set[int]:
        """The numbers of the questions about the leaves `kept` whose answers a candidate is known to give."""
        return self._agreed.setdefault((candidate.draft or candidate.unit, kept, stage.counts, stage.signs), set())

    def _results(self, candidates: Sequence[Candidate], table: Table, kept: NonzeroLeaves) -> Patterns:
        """The results of all candidates, shape (candidates, rows); equal units are evaluated once."""
        places: dict[Unit, int] = {}
        which = [places.setdefault(self.unit(candidate, kept), len(places)) for candidate in candidates]
        return self.answers.evaluated(list(places), table)[which]

    def _counted(self, patterns: Patterns, stage: DraftStage) -> Patterns:
        """The patterns, with one pattern for all NaNs, and one for both zeros where the signs of zeros do not count."""
        same = self.answers.same(patterns)
        if stage.signs and stage.counts is not ordinary:
            return same
        negative_zero = (same == np.uint64(self.asked.d.sign_bit)) & ~nans(same, self.asked.d)
        return np.where(negative_zero, np.uint64(0), same)

    def note(self, candidate: Candidate) -> None:
        """Keep a candidate that comes near. If no candidate is right, the nearest of these is reported."""
        try:
            unit = self.unit(candidate, None)
        except ParameterError:  # only its restriction to few leaves is possible
            return
        self.noted.pop(unit, None)
        self.noted[unit] = candidate.draft
