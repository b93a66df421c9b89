"""Validation of candidates: vectors over the whole range, and vectors that reach every condition; then proofs."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from mmaprobe.queries.building.answers import BUILT, Answered, NonzeroLeaves, joined_rows
from mmaprobe.queries.building.axes import neighbours
from mmaprobe.queries.building.candidates import Candidate
from mmaprobe.queries.building.mending import near_units
from mmaprobe.queries.building.naming import SAME_FORM, Naming, first_of_known_form, name_of
from mmaprobe.queries.building.outcome import Built
from mmaprobe.queries.building.search import FIRST, POOL, TierSearch
from mmaprobe.queries.building.stages import KINDS, LONG
from mmaprobe.queries.compare.neighbours import in_wider_format
from mmaprobe.queries.covering.cover import Change, Cover, Covering
from mmaprobe.queries.kernel.questions.problem import Candidates
from mmaprobe.queries.search.distinguish import Options, distinguish
from mmaprobe.queries.search.samples import Table
from mmaprobe.queries.search.specials import special_rows
from mmaprobe.smtmodel.base.wording import counted
from mmaprobe.smtmodel.evaluate.model import Model
from mmaprobe.smtmodel.inputs.vectors import Vector

VALIDATION = 10_000  # vectors over the whole range
NUMBERS = 8_000_000  # the most inputs in these vectors
SPECIAL = 2  # vectors for each pair of special values in each pair of places
MORE = 0.2  # share of the remaining time for a long sum's vectors beyond the first
PROOFS = 40.0  # seconds for the proofs that candidates are equal
TELLING = 240.0  # the most seconds of the remaining time for inputs that tell candidates apart which no proof decides
FAINT = 1_500  # rows of faint terms among which questions that split the last candidates are chosen
COVERED = 1024  # samples of each kind from which covering vectors are chosen, besides the rows of every stage
BESIDE = 0.3  # share of the remaining time for rows of every role that distinguish a unit from its neighbours
COVERING = 12.0  # seconds for vectors that reach conditions
SHARE = 0.25  # the largest share of the remaining time for vectors that reach conditions
BANKED = 60  # vectors kept as questions, at most, of each batch on which the best candidate differs


class Validation:
    """Compares candidates of a search with the device, and puts into `result` which candidates were refuted, proved or
    left open. `shipped`: instructions and units of the same formats and length."""

    def __init__(self, search: TierSearch, shipped: Sequence[Model], options: Options, result: Built) -> None:
        self.search, self.stages, self.answers, self.clock = search, search.stages, search.answers, search.answers.clock
        self.asked, self.shipped, self.options, self.result = search.asked, shipped, options, result

    def validated(self, alive: list[Candidate]) -> list[Candidate]:
        """The candidates that agree over the whole range; where none does, some vectors on which the best candidate
        differs are kept as questions."""
        self.answers.at = "validation"
        rows, deadline, now = self.stages.shapes.rows, self.clock.deadline, time.monotonic()
        until = None if deadline is None else now + MORE * (deadline - now)
        share = -(-VALIDATION // len(KINDS))
        wanted = min(share, NUMBERS // len(KINDS) // (2 * self.asked.length + 1))
        count, done = max(FIRST, share * LONG // self.asked.length) if self.stages.long else share, 0
        while True:
            kinds = zip(KINDS, self.stages.ranks, strict=True)
            new = [self.answers.checked(rows(kind, count), rank) for kind, rank in kinds]
            if not done:
                specials = special_rows(self.answers.layout, SPECIAL, count * len(KINDS))
                new.append(self.answers.checked(specials, self.stages.ends.rank))
            wrong = np.concatenate([self._wrong(candidate, new) for candidate in alive])
            right = [candidate for candidate, row in zip(alive, wrong, strict=True) if not row.any()]
            if not right:
                break
            self._stand(right, "any of its conditions was asked about")
            alive, done = right, done + count
            if done >= wanted or (until is not None and time.monotonic() > until):
                return right
        best = int(wrong.sum(axis=1).argmin())
        self.search.note(alive[best])
        places, start = np.flatnonzero(wrong[best]), 0
        for asked in new:
            here = places[(places >= start) & (places < start + len(asked.rows))] - start
            here = here[np.argsort((asked.rows[here] != 0).sum(axis=1), kind="stable")][:BANKED]
            if len(here):
                self.answers.bank.append(Answered(asked.rows[here], asked.answers[here], asked.rank))
            start += len(asked.rows)
        return []

    def _wrong(self, candidate: Candidate, new: Sequence[Answered]) -> NDArray[np.bool_]:
        self.answers.check_time()
        return self.answers.differences([candidate.unit], new)

    def _stand(self, alive: Sequence[Candidate], untried: str) -> None:
        """Note the candidates for the case that the time ends. `untried`: the work that would then be left."""
        self.result.standing, self.result.untried = list(alive), untried

    def covered(self, candidate: Candidate) -> bool:
        """Whether the device agrees with a unit on its covering vectors: inputs that reach its conditions, and inputs
        that distinguish it from each unit that differs in one choice. Vectors on which the device differs are kept as
        questions."""
        few = self.stages.few and candidate.draft is not None
        self.answers.at = "validation"
        deadline, now = self.clock.deadline, time.monotonic()
        until = None if deadline is None else now + BESIDE * (deadline - now)
        places: dict[NonzeroLeaves, list[tuple[int, Table]]] = {None: []}
        for rank, pool in self.stages.pools_with_ranks(few):
            places.setdefault(pool.kept, []).append((rank, pool.rows(POOL)))
        refuted: set[str] = set()
        names: set[str] = set()
        right, wanted, asked = True, 0, 0  # `wanted`: all conditions and changed units; `asked`: those asked about
        for kept, pools in places.items():
            if kept is not None and until is not None and time.monotonic() > until:
                break
            cases = kept is None and not self.stages.long and self.asked.addend
            changes = [] if few and kept is None else list(self._changes(candidate, kept))
            if not cases and not changes:
                continue
            model = Model(BUILT, self.search.unit(candidate, kept))
            covering = Covering(model, False, changes, cases=cases, samples=COVERED)
            wanted += len(covering.wanted)
            self._untried(candidate, wanted - asked, wanted)
            ranks: list[int] = []
            needed = len(KINDS) if kept is None else 1
            for number, (rank, rows) in enumerate([*_by_rank(pools[:needed]), *_by_rank(pools[needed:])]):
                if number >= needed and until is not None and time.monotonic() > until:
                    break
                covering.take(rows)
                ranks += [rank] * (len(covering.found.rows) - len(ranks))
            if cases:
                left = COVERING if deadline is None else SHARE * (deadline - time.monotonic())
                covering.run(replace(self.options, timeout=min(COVERING, max(0.0, left))), changes=False)
                ranks += [self.stages.ends.rank] * (len(covering.found.rows) - len(ranks))
            cover = covering.finished()
            right &= self._agrees(cover, np.array(ranks), kept, candidate)
            asked += len(covering.wanted)
            self._untried(candidate, wanted - asked, wanted)
            names |= {change.name for change in covering.changes if change not in cover.same}
            refuted |= {change.name for change in covering.changes if cover.counts[change]}
        self.result.refuted, self.result.unseen = len(refuted), len(names - refuted)
        return right

    def _untried(self, candidate: Candidate, left: int, wanted: int) -> None:
        """Note how many conditions and units that differ in one choice are still to be asked about."""
        first = [candidate, *(other for other in self.result.standing if other is not candidate)]
        self._stand(first, f"{left} of the {counted(wanted, 'condition')} were asked about")

    def _changes(self, candidate: Candidate, kept: NonzeroLeaves) -> Iterator[Change]:
        """The units that differ from a candidate in a single choice."""
        if candidate.draft is None:
            yield from (
                Change(str(number), Model(BUILT, unit)) for number, unit in enumerate(near_units(candidate.unit))
            )
            return
        for number, draft in enumerate(neighbours(candidate.draft, self.asked, self.search.sketch.weights)):
            if draft != candidate.draft and (unit := self.search.sketch.possible_unit(draft, kept)) is not None:
                yield Change(str(number), Model(BUILT, unit))
        if kept is None and (converted := in_wider_format(candidate.unit)):
            yield Change("input_format", Model(BUILT, converted[1]))

    def _agrees(self, cover: Cover, ranks: NDArray[np.int64], kept: NonzeroLeaves, candidate: Candidate) -> bool:
        """Whether the device agrees with the unit on covering vectors. Vectors on which they differ are kept as
        questions about the leaves `kept` alone, unless the signs of the zeros at other leaves count."""
        if not cover.rows:
            return True
        rows = np.array(cover.rows, dtype=np.uint64)
        [expected] = self.answers.evaluated([self.search.unit(candidate, None)], rows)
        alone = self.answers.same(np.array(cover.results, dtype=np.uint64)) == expected
        right = True
        for rank in dict.fromkeys(ranks.tolist()):
            here = np.flatnonzero(ranks == rank)
            asked = self.answers.checked(rows[here], rank)
            wrong = self.answers.same(asked.answers) != expected[here]
            for some, leaves in ((wrong & alone[here], kept), (wrong & ~alone[here], None)):
                if some.any():
                    self.answers.bank.append(Answered(asked.rows[some], asked.answers[some], rank, leaves))
            if wrong.any():
                self.search.note(candidate)
                right = False
        return right

    def decided(self, alive: list[Candidate]) -> list[Candidate]:
        """Solvers prove the candidates, and instructions of the table that agree so far, equal, or find vectors, which
        are put to the device. Returns the candidates left: none if the device agrees with no candidate."""
        result, last = self.result, self.stages.everything
        if len(alive) > 1:
            faint = self.stages.shapes.rows("faint", min(FAINT, NUMBERS // (2 * self.asked.length + 1)))
            self.answers.at = "validation"
            alive = self.search.split(alive, last, None, faint, 0)
        while alive:
            known = self.known()
            self.answers.at = "proof"
            drafts: list[Model] = [candidate.model for candidate in alive]
            self.answers.progress(f"proving {len(drafts) + len(known)} candidates equal")
            self._stand(alive, "it was proved equal to the other candidates, or told from them")
            own = first_of_known_form(drafts, known) or (known[0] if known else drafts[0])
            others = [model for model in (*known, *drafts) if model is not own]
            naming = name_of(own, others, self.options, self.clock.end(PROOFS))
            if naming.open and not naming.witnesses:
                self._told_apart(own, naming)
            if not naming.witnesses:
                break
            self.answers.put(np.array(naming.witnesses, dtype=np.uint64), last.rank, None)
            alive = self.search.agreeing(alive, last)
        else:
            return []
        if naming.open and naming.late:
            self.clock.left.append(f"proofs about {counted(len(naming.open), 'candidate')}")
        own_name = [(own, SAME_FORM)] if own.reference != BUILT else []
        result.unit, result.equal, result.open = own.unit, [*own_name, *naming.equal], naming.open
        return alive

    def _told_apart(self, own: Model, naming: Naming) -> None:
        """Search in the remaining time for an input on which an open model and `own` differ."""
        deadline = self.clock.end(TELLING)
        self.answers.progress(f"telling {counted(len(naming.open), 'unit')} from the one found")
        for left in range(len(naming.open), 0, -1):
            model, seconds = naming.open[-left], (deadline - time.monotonic()) / left
            if seconds <= 0:
                naming.late = True
                return
            problem = Candidates(own.any_nan, model.any_nan)
            found = distinguish(problem, replace(self.options, timeout=seconds, deadline=deadline))
            naming.late |= time.monotonic() >= deadline
            if found.witnesses:
                naming.witnesses.append(found.witnesses[0].operands.every)
                return
            if found.verdict == "equal":
                naming.equal.append((model, f"proved by {found.steps[-1].answer.engine}"))
                naming.open.remove(model)

    def known(self) -> list[Model]:
        """The instructions and shipped units of these formats and this length that give every answer so far."""
        nan = self.answers.nan()
        models = [model for model in self.shipped if None in (nan, model.nan) or nan == model.nan]
        wrong = self.answers.wrong([model.unit for model in models])
        right = [model for model, count in zip(models, wrong, strict=True) if not count]
        self.result.near = None if right or not models else min(zip(models, wrong, strict=True), key=lambda x: x[1])
        self.result.near_vector = None if self.result.near is None else self._smallest(self.result.near[0])
        return right

    def _smallest(self, model: Model) -> Vector | None:
        """The smallest input so far on which a model and the device differ."""
        asked = self.answers.every
        rows = joined_rows(asked)[0][self.answers.differences([model.unit], asked)[0]]
        if not len(rows):
            return None
        return self.answers.vector(rows[np.argmin((rows != 0).sum(axis=1))])


def _by_rank(pools: Sequence[tuple[int, Table]]) -> list[tuple[int, Table]]:
    """The tables of each rank joined, as covering hardly takes longer for many rows than for few."""
    by_rank: dict[int, list[Table]] = {}
    for rank, rows in pools:
        by_rank.setdefault(rank, []).append(rows)
    return [(rank, np.concatenate(tables)) for rank, tables in by_rank.items()]
