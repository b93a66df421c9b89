"""The covering vectors of a unit: for every condition of its datapath, and every two conditions of a step, an input
that meets them; for every change of one parameter an input that shows it; or the theorem that no input does.

Samples come first, then rows near those that were chosen. Solvers are asked for the rest, many cases in one question:
an answer meets at least one of them, and "unsat" refutes all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mmaprobe.queries.compare.neighbours import neighbours
from mmaprobe.queries.equality.staged import prove
from mmaprobe.queries.kernel.cases.conditions import Condition, conditions_of, flaws_of, hangs, possible
from mmaprobe.queries.kernel.cases.unreachable import Case, Unreachable, datapath, refuted, text_of, unreachable_by
from mmaprobe.queries.kernel.questions.problem import Problem, evaluate_on, symbolic_operands
from mmaprobe.queries.kernel.terms.same import Compared, undiffering
from mmaprobe.queries.kernel.theorem import RuleError, Theorem
from mmaprobe.queries.properties.forms import by_rewriting
from mmaprobe.queries.search.admitted_rows import admitted_rows
from mmaprobe.queries.search.distinguish import Options, free_sets
from mmaprobe.queries.search.lone_rows import lone_input_rows, lone_rows
from mmaprobe.queries.search.samples import Table, sample_rows, subnormal_rows, tie_rows, zero_rows
from mmaprobe.queries.search.witness import answered_row
from mmaprobe.queries.solvers.asking import Engines, Heard, SolverFaultError
from mmaprobe.queries.solvers.contract import Answer
from mmaprobe.queries.solvers.smtlib import Query
from mmaprobe.queries.tactics.confirm import CONFIRMERS, PATIENCE
from mmaprobe.queries.tactics.records import Proof
from mmaprobe.smtmodel.arithmetic.formats import Format
from mmaprobe.smtmodel.base.errors import ParameterError
from mmaprobe.smtmodel.base.interrupts import held_back
from mmaprobe.smtmodel.base.wording import counted
from mmaprobe.smtmodel.carriers.algebra import Bit, Bits, any_of
from mmaprobe.smtmodel.carriers.terms import TermCarrier
from mmaprobe.smtmodel.evaluate.batch import evaluate_models
from mmaprobe.smtmodel.evaluate.model import Model
from mmaprobe.smtmodel.evaluate.operands import Layout, layout_of
from mmaprobe.smtmodel.evaluate.programs import RecordedArrays
from mmaprobe.smtmodel.inputs.admitted import Inputs
from mmaprobe.smtmodel.nodes import Round
from mmaprobe.smtmodel.nodes.node import of_kind

SAMPLES = 6144  # rows of each kind of samples
SEED = 1  # of the samples, and of the order in which changes are tried
LONE = 4  # times as many rows whose result hangs on one bit
CHUNK = 2048  # rows evaluated together
TRIED = 32  # rows of a chunk, of those that meet a condition, tried for whether the result hangs on it
WHICH = 16  # bits of the number of a flaw
EACH = 3  # vectors for each condition, and each changed parameter; one for a place of a bit, or two conditions
ARRANGED = 1 << 28  # the most rows, times what is wanted, that are put in order
ROUNDS = 3  # times that rows near the chosen ones are tried
SMALL_SECONDS, WHOLE_SECONDS, BESIDE_SECONDS, PROOF_SECONDS = 3.0, 30.0, 15.0, 20.0  # of one question, at first
#: processor time of a second engine: this many times the first engine's seconds, and this many seconds more
SECOND_SHARE, SECOND_LEAST = 5.0, 8.0
SMALL_SETS = 2  # sets of few products that are asked about before all products
LONGEST = 512  # the most products of a unit that is covered as a whole
Reached = NDArray[np.bool_]

_CARRIER = RecordedArrays()


@dataclass(frozen=True)
class Change:
    """A unit that differs in one parameter."""

    name: str
    model: Model

    def __str__(self) -> str:
        return f"differs from {self.name}"


Wanted = Case | Change


@dataclass
class Cover:
    """The outcome. `rows`, with the `reasons`, what each was chosen for; the first ones (`first`, 0 where they are not
    counted) reach everything that is reached, each the most that none before it reaches; `unreachable`: the cases that
    no input meets; `same`: the changes that no input shows, each with its proof; `open`: the cases and changes with
    neither a row nor a proof."""

    model: Model
    layout: Layout
    rows: list[tuple[int, ...]] = field(default_factory=list)
    reasons: list[list[Wanted]] = field(default_factory=list)
    counts: dict[Wanted, int] = field(default_factory=dict)
    unreachable: dict[Case, Theorem] = field(default_factory=dict)
    same: dict[Change, Proof] = field(default_factory=dict)
    interrupted: bool = False
    first: int = 0

    @property
    def open(self) -> list[Wanted]:
        """The cases and changes with neither a row nor a proof."""
        return [
            wanted
            for wanted, count in self.counts.items()
            if not count and wanted not in self.unreachable and wanted not in self.same
        ]

    @property
    def results(self) -> list[int]:
        """The results of the unit, row by row."""
        return self.results_of(self.model)

    def results_of(self, model: Model) -> list[int]:
        """The results of a unit with the same inputs, row by row."""
        table = np.array(self.rows, dtype=np.uint64).reshape(-1, len(self.layout.formats))
        patterns: list[int] = evaluate_models([model], table)[0].tolist()
        return patterns


class Covering:
    """Looks for covering vectors of one unit. `pairs`: also for every two conditions of a step. `changes`: the units
    from which it is to be distinguished; by default, those that differ in one parameter. `cases`: False for changes
    alone. `samples`: the number of rows of each kind of samples."""

    def __init__(
        self,
        model: Model,
        pairs: bool = True,
        changes: Sequence[Change] | None = None,
        *,
        cases: bool = True,
        samples: int = SAMPLES,
    ) -> None:
        if cases and model.length > LONGEST:
            raise ParameterError("length", f"units of up to {LONGEST} products are covered, not of {model.length}")
        self.model, self.layout = model, layout_of(model)
        self._key, self.singles = object(), list[Condition]()
        self.random = np.random.default_rng(SEED)
        self.count = samples
        given = (Change(f"{name}={value}", near) for name, value, near in neighbours(model))
        self.changes = [change for change in (given if changes is None else changes) if self._comparable(change)]
        if cases:
            self._flags(np.zeros((1, len(self.layout.formats)), dtype=np.uint64))
        self.flaws = flaws_of(self.singles)
        self.together = list(self._pairs()) if pairs else []
        self.both = [(self.singles[i], self.singles[j]) for i, j in self.together]
        self.wanted: list[Wanted] = [*((single,) for single in self.singles), *self.both, *self.changes]
        own = [1 if one.is_one_bit else EACH for one in self.singles]
        each = own + [1] * len(self.together) + [EACH] * len(self.changes)
        self.places = {wanted: place for place, wanted in enumerate(self.wanted)}
        self.needs = np.array(each, dtype=np.int64)
        numbers = {flaw: number for number, flaw in enumerate(self.flaws)}
        self._flaws = np.array([-1 if one.flaw is None else numbers[one.flaw] for one in self.singles], dtype=np.int64)
        self.reached = np.zeros(len(self.wanted), dtype=np.int64)
        self.found = Cover(model, self.layout)
        self.seen: set[tuple[int, ...]] = set()
        self.deadline: float | None = None
        self.aside: list[Table] | None = None  # tables to be tried for changes, where solvers are asked about none
        self.heard = Heard()

    def _comparable(self, change: Change) -> bool:
        try:
            Problem(self.model, change.model)
        except ParameterError:
            return False
        return True

    def _pairs(self) -> Iterator[tuple[int, int]]:
        steps: dict[str, list[int]] = {}
        for place, condition in enumerate(self.singles):
            if not condition.alone:
                steps.setdefault(condition.step, []).append(place)
        for places in steps.values():
            for i, j in combinations(places, 2):
                if self.singles[i].aspect != self.singles[j].aspect:
                    yield i, j

    # -- rows

    def samples(self) -> Iterator[Table]:
        """Sample rows of every kind, a few thousand at a time."""
        layout, fmt = self.layout, self.model.d
        yield sample_rows(layout, self.count, SEED)
        yield tie_rows(layout, fmt, self.count // 2, SEED)
        yield subnormal_rows(layout, self.count // 2, SEED)
        for seed in range(SEED, SEED + LONE):
            yield lone_rows(layout, fmt, self.count, seed)
        kept = max(node.rounding.format.precision for node in of_kind(self.model.unit.result, Round))
        if kept > fmt.precision:
            yield lone_rows(layout, fmt, self.count, SEED + LONE, kept)
        yield lone_input_rows(layout, self.count // 2, SEED)
        for number, inputs in enumerate((Inputs(), Inputs(finite=True), Inputs(normal=True, finite=True))):
            yield admitted_rows(layout, inputs, self.count // 2, SEED + number)
        yield zero_rows(layout, self.count // 2, SEED)

    def take(self, table: Table, apart: bool = False) -> None:
        """Choose rows that meet a case, or show a change, for which there are too few rows so far, as long as there is
        time. `apart`: they may be tried for changes later, together with other rows, in half the time."""
        table[:, self.layout.unread] = 0
        for start in range(0, len(table), CHUNK):
            if start and self._remaining() <= 0:
                return
            if self.aside is None or not apart:
                self._choose(table[start : start + CHUNK])
                continue
            self._choose(table[start : start + CHUNK], range(len(self.wanted) - len(self.changes)))
            self.aside.append(table[start : start + CHUNK])
            if sum(map(len, self.aside)) >= 2 * CHUNK:
                self._choose_aside()

    def _choose_aside(self) -> None:
        """Choose rows that show a change from the tables put aside."""
        if self.aside:
            self._choose(np.concatenate(self.aside), range(len(self.wanted) - len(self.changes), len(self.wanted)))
            self.aside = []

    def _choose(self, table: Table, among: range | None = None) -> None:
        """Choose rows for what is wanted; `among`: the places of what matters, None for all."""
        among = range(len(self.wanted)) if among is None else among
        left = among.start + np.flatnonzero((self.reached < self.needs)[among.start : among.stop])
        if not len(left) or not len(table):
            return
        hits = self._hits(table, left)
        column_hits = hits.sum(axis=0)
        scores = hits.sum(axis=1)
        needs = self.needs[left] - self.reached[left]
        for column in np.argsort(column_hits, kind="stable"):
            while needs[column] > 0 and column_hits[column] > 0:
                rows = np.flatnonzero(hits[:, column])
                best = int(rows[np.argmax(scores[rows])])
                mine = np.flatnonzero(hits[best])
                row = tuple(int(x) for x in table[best])
                hits[best] = False
                column_hits[mine] -= 1
                scores[best] = 0
                if row in self.seen:
                    continue
                useful = mine[needs[mine] > 0]
                with held_back:  # an interrupt leaves no row without its reasons
                    self.seen.add(row)
                    self.found.rows.append(row)
                    self.found.reasons.append([self.wanted[left[place]] for place in useful])
                    self.reached[left[mine]] += 1
                needs[mine] -= 1
                for done in useful[needs[useful] == 0]:
                    scores -= hits[:, done]

    def _hits(self, table: Table, left: NDArray[np.int64], most: int | None = TRIED) -> Reached:
        """Which rows meet the case, or show the change, of each index in `left`; shape (rows, len(left)). `most`: as of
        `_try`."""
        one, two = len(self.singles), len(self.singles) + len(self.together)
        out = np.empty((len(left), len(table)), dtype=np.bool_)
        singles, pairs, changes = left[left < one], left[(left >= one) & (left < two)] - one, left[left >= two] - two
        flags = self._flags(table) if len(singles) or len(pairs) else ()
        for own, place in zip(out, singles, strict=False):
            own[:] = flags[place].node
        self._try(table, singles, out, most)
        for own, place in zip(out[len(singles) :], pairs, strict=False):
            i, j = self.together[place]
            own[:] = (flags[i] & flags[j]).node
        if len(changes):
            out[len(left) - len(changes) :] = self._shown_by_rows(table, [self.changes[place] for place in changes]).T
        return out.T

    def _try(self, table: Table, places: NDArray[np.int64], met: Reached, most: int | None) -> None:
        """Keep in `met`, of the rows that meet the conditions at some places, those whose result hangs on the flaw of
        its condition. `most`: the most rows that are tried for a condition; the others do not count."""
        tried = [(row, np.flatnonzero(met[row])[:most]) for row in np.flatnonzero(self._flaws[places] >= 0)]
        for row, _ in tried:
            met[row] = False
        if any(len(rows) for _, rows in tried):
            own = np.concatenate([np.full(len(rows), row) for row, rows in tried])
            rows = np.concatenate([rows for _, rows in tried])
            met[own, rows] = self._hang(table[rows], places[own])

    def _hang(self, table: Table, places: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Whether the result of each row hangs on the flaw of the condition at its place."""
        which = self._flaws[places].astype(np.uint64)
        out = [np.empty(0, dtype=np.bool_)]
        for start in range(0, len(table), CHUNK):
            own, made = table[start : start + CHUNK], which[start : start + CHUNK]
            with np.errstate(over="ignore"):
                flag = _CARRIER.formed((self._key, "hang"), self._hung, _CARRIER.lanes(made, WHICH), *self._lanes(own))
            out.append(np.broadcast_to(flag.node, len(own)))
        return np.concatenate(out)

    def _hung(self, which: Bits, *patterns: Bits) -> Bit:
        """Whether the result hangs on the flaw with the number `which`."""
        operands = self.layout.split(patterns)
        made = {flaw: which.equals(number) for number, flaw in enumerate(self.flaws)}
        return hangs(self.model, operands, evaluate_on(self.model, operands, traced=False).d, made)

    def _lanes(self, table: Table) -> list[Bits]:
        formats = self.layout.formats
        return [_CARRIER.lanes(np.ascontiguousarray(table[:, i]), fmt.width) for i, fmt in enumerate(formats)]

    def _flags(self, table: Table) -> tuple[Bit, ...]:
        """Whether rows meet each condition, whatever the result hangs on, in the order of `singles`."""
        with np.errstate(over="ignore"):
            return _CARRIER.formed(self._key, self._met, *self._lanes(table))

    def _met(self, *patterns: Bits) -> tuple[Bit, ...]:
        """Whether inputs meet each condition. Sets the list of conditions, which is the same for all inputs."""
        operands = self.layout.split(patterns)
        flags = possible(conditions_of(self.model, self.layout, operands, evaluate_on(self.model, operands)))
        self.singles = self.singles or list(flags)
        assert self.singles == list(flags)
        return tuple(flags.values())

    def _shown_by_rows(self, table: Table, beside: Sequence[Change]) -> Reached:
        """Which rows show which change, shape (rows, changes)."""
        results = evaluate_models([self.model, *(change.model for change in beside)], table)
        own = _CARRIER.lanes(results[:1], self.model.d.width)
        out = np.empty((len(table), len(beside)), dtype=np.bool_)
        alike: dict[tuple[Format, bool], list[int]] = {}  # the changes whose results are compared in one way
        for place, change in enumerate(beside):
            alike.setdefault((change.model.d, change.model.nan is None), []).append(place)
        for places in alike.values():
            model = beside[places[0]].model
            others = _CARRIER.lanes(results[np.array(places) + 1], model.d.width)
            differ = Problem(self.model, model).differ(own, others)
            out[:, places] = np.broadcast_to(np.asarray(differ.node), (len(places), len(table))).T
        return out

    def beside(self, rows: Table, count: int) -> Table:
        """Rows that differ from others in one or two places: by a last bit, an exponent, a sign, a zero, an edge."""
        if not len(rows):
            return rows.reshape(0, len(self.layout.formats))
        table = rows[self.random.integers(0, len(rows), count)].copy()
        for _ in range(2):
            columns = self.random.integers(0, table.shape[1], count)
            kinds = self.random.integers(0, 8, count)
            for column, fmt in enumerate(self.layout.formats):
                here = np.flatnonzero(columns == column)
                old, kind = table[here, column], kinds[here]
                step, binade = np.uint64(1 << fmt.padding), np.uint64(1 << (fmt.padding + fmt.fraction))
                edges = np.array([fmt.one, fmt.largest, 1 << fmt.padding, 1 << (fmt.padding + fmt.fraction)], np.uint64)
                edge = edges[self.random.integers(0, len(edges), len(here))]
                top = np.uint64(fmt.sign_bit if fmt.signed else 0)
                new = np.choose(kind, [old + step, old - step, old + binade, old - binade, old ^ top,
                                       np.zeros_like(old), edge, edge | top])  # fmt: skip
                table[here, column] = new & np.uint64((1 << fmt.width) - 1)
            if self.random.random() < 0.5:
                break
        return table

    # -- the search

    def begin(self, options: Options) -> None:
        """Begin a search that ends after `options.timeout` seconds."""
        self.options = options
        self.deadline = None if options.timeout is None else options.clock() + options.timeout

    def run(self, options: Options, changes: bool = True) -> Cover:
        """The whole search, in `options.timeout` seconds; an interrupt ends it with the findings so far. `changes`:
        whether solvers are asked about changes and lone lost bits, too. Raises SolverFaultError."""
        self.begin(options)
        self.aside = None if changes else []
        try:
            self.sample(options.progress)
            self._solve([(one,) for one in self.singles if changes or not one.is_one_bit])
            if changes:
                self._show_changes()
            self._choose_aside()
            self._solve(self.both)
            if changes:
                self._prove_changes(PROOF_SECONDS)
            self._ask_longer(changes)
        except KeyboardInterrupt:
            self.found.interrupted = True
        return self.finished()

    def sample(self, progress: Callable[[str], None]) -> None:
        """Choose rows among samples, and among rows near the chosen ones, as long as there is time."""
        for table in self.samples():
            if self._remaining() <= 0:
                return
            progress(f"samples: {self._state()}")
            self.take(table)
        for _ in range(ROUNDS):
            if not self._left(self.wanted) or self._remaining() <= 0:
                break
            progress(f"rows beside those found: {self._state()}")
            self.take(self.beside(np.array(self.found.rows, dtype=np.uint64), self.count))
        apart: list[Wanted] = [*((single,) for single in self.singles), *self.changes]
        near, kinds = list[Table](), list[set[tuple[str, ...]]]()  # `kinds`: of the reasons of each row
        for kin in dict.fromkeys(_kind_of(wanted) for wanted in self._left(apart)):
            if self._remaining() <= 0:
                return
            kinds += [set(map(_kind_of, reasons)) for reasons in self.found.reasons[len(kinds) :]]
            rows = [row for row, own in zip(self.found.rows, kinds, strict=True) if kin in own]
            near.append(self.beside(np.array(rows, dtype=np.uint64), self.count // 2))
            if sum(map(len, near)) >= CHUNK:  # a few rows take as long as many
                progress(f"rows beside those of {kin[-1]}: {self._state()}")
                self.take(np.concatenate([table for table in near if len(table)]), apart=True)
                near = []
        if any(map(len, near)):
            self.take(np.concatenate([table for table in near if len(table)]), apart=True)

    def finished(self) -> Cover:
        """The findings so far."""
        self.found.counts = {wanted: int(count) for wanted, count in zip(self.wanted, self.reached, strict=True)}
        return self.found

    def arrange(self) -> None:
        """Put rows first that reach everything that is reached, each the most that none before it reaches; not of so
        many that it would take long."""
        if len(self.found.rows) * len(self.wanted) > ARRANGED:
            return
        table = np.array(self.found.rows, dtype=np.uint64).reshape(-1, len(self.layout.formats))
        hits = self._hits(table, np.arange(len(self.wanted)), None) if len(table) else np.zeros((0, 0), np.bool_)
        scores, left, order = hits.sum(axis=1), hits.any(axis=0), list[int]()
        while left.any():
            order.append(best := int(np.argmax(scores)))
            new = hits[best] & left
            left &= ~new
            scores -= hits[:, new].sum(axis=1)
            more = dict.fromkeys([*self.found.reasons[best], *(self.wanted[place] for place in np.flatnonzero(new))])
            self.found.reasons[best] = list(more)
        self.found.first = len(order)
        order += sorted(set(range(len(table))).difference(order))
        self.found.rows = [self.found.rows[place] for place in order]
        self.found.reasons = [self.found.reasons[place] for place in order]

    def _state(self) -> str:
        return f"{np.count_nonzero(self.reached)} of {counted(len(self.wanted), 'condition')} reached"

    def _left(self, wanted: Sequence[Any]) -> list[Any]:
        """The cases or changes that have neither a row nor a theorem."""
        reached, done = self.reached, (self.found.unreachable, self.found.same)
        return [one for one in wanted if not reached[self.places[one]] and one not in done[0] and one not in done[1]]

    def _remaining(self) -> float:
        return float("inf") if self.deadline is None else self.deadline - self.options.clock()

    def _solve(self, cases: Sequence[Case]) -> None:
        for case in self._left(cases):
            if len(case) > 1 and (theorem := unreachable_by(self.found.unreachable, self.model, case)) is not None:
                self.found.unreachable[case] = theorem
        steps: dict[object, list[Case]] = {}
        for case in self._left(cases):
            steps.setdefault(_kind_of_question(case), []).append(case)
        sets = free_sets(Problem(self.model, self.model))
        for group in steps.values():
            for free in sets[:-1][:SMALL_SETS]:
                self._search(group, lambda left, free=free: datapath(self.model, free).query(left), SMALL_SECONDS)  # type: ignore[misc]
            self._decide(self._left(group))

    def _search(self, group: Sequence[Wanted], question: Callable[[list[Any]], Query], seconds: float) -> Answer | None:
        """Choose rows for a group, until a question has no row as its answer: this last answer, or None if all of the
        group have a row or the time is over."""
        while left := self._left(group):
            limit = min(seconds, self._remaining())
            if limit <= 0:
                return None
            [answer, *_] = self._engines(limit).answers(question(left))
            if answer.status != "sat":
                return answer
            row = answered_row(self.layout, answer)
            before = len(left)
            table = np.array([row], dtype=np.uint64)
            self.take(np.concatenate([table, self.beside(table, CHUNK // 4)]), apart=True)
            if len(self._left(group)) == before:
                raise SolverFaultError(f"{answer.engine} {answer.version}: its answer reaches none of the cases: {row}")
        return None

    def _decide(self, group: list[Case], seconds: float = WHOLE_SECONDS) -> None:
        """Find rows for the cases, or theorems; if no answer comes, each half of the cases is asked by itself.
        `seconds`: the most for one question."""
        answer = self._search(group, lambda left: datapath(self.model).query(left), seconds)
        left = tuple(self._left(group))
        if answer is None or not left:
            return
        if answer.status == "unsat":
            self._conclude(left, answer)
        elif len(left) > 1 and self._remaining() > 0:
            self._decide(list(left[: len(left) // 2]))
            self._decide(list(left[len(left) // 2 :]))

    def _conclude(self, cases: tuple[Case, ...], answer: Answer) -> None:
        """The theorem from an engine's "unsat", confirmed by a second engine if its answer comes in time."""
        limit = min(self._remaining(), SECOND_SHARE * answer.seconds + SECOND_LEAST)
        late = min(self._remaining(), PATIENCE * limit)
        others = [replace(self._engines(late, other), processor=limit) for other in CONFIRMERS if limit > 0]
        try:
            theorem = refuted(Unreachable(self.model, cases), self._engines(answer.seconds), others)
        except RuleError:
            return
        for case in cases:
            self.found.unreachable[case] = theorem

    def _engines(self, seconds: float, solver: str | None = None) -> Engines:
        return self.options.engines(seconds if seconds != float("inf") else None, self._state(), solver, self.heard)

    def _show_changes(self) -> None:
        """Rows for changes that no sample showed: with few products, then with all, for each change by itself. Before
        that, the changes whose unit has the same normal form, which takes less time than a question has."""
        self._rewrite_changes(SMALL_SECONDS)
        sets = free_sets(Problem(self.model, self.model))
        for free in sets[:-1][:SMALL_SETS]:
            self._search(self.changes, lambda left, free=free: self._difference(left, free), SMALL_SECONDS)  # type: ignore[misc]
        for change in self._left(self.changes):
            problem = Problem(self.model, change.model)
            answer = self._search([change], lambda left, problem=problem: Compared(problem).question, BESIDE_SECONDS)  # type: ignore[misc]
            if answer is not None and answer.status == "unsat":
                theorem = undiffering(problem, "relational", self._engines(answer.seconds))
                self.found.same[change] = Proof(problem, why=str(answer), theorem=theorem)

    def _difference(self, changes: Sequence[Change], free: tuple[int, ...]) -> Query:
        """The query for an input that shows one of the changes, where all products but the `free` ones are zero."""
        carrier = TermCarrier(maximum="relational")
        operands = symbolic_operands(Problem(self.model, self.model), carrier, free)
        own = evaluate_on(self.model, operands).d
        differ = [Problem(self.model, x.model).differ(own, evaluate_on(x.model, operands).d) for x in changes]
        symbols = tuple(bits.node for bits in operands.every if bits.value is None)
        return Query(symbols, (*carrier.definitions, any_of(differ).node))

    def _rewrite_changes(self, seconds: float) -> None:
        """The proofs by rewriting that changes have no effect; `seconds`: the most for each."""
        for change in self._left(self.changes):
            if (limit := min(seconds, self._remaining())) <= 0:
                return
            by_rules = by_rewriting(Problem(self.model, change.model), replace(self.options, timeout=limit))
            if by_rules is not None:
                self.found.same[change] = by_rules

    def _ask_longer(self, changes: bool) -> None:
        """Ask again about what is still open, one case or change at a time, each with its share of the time that is
        left where this is more than the question had."""
        cases = self._left([(one,) for one in self.singles if changes or not one.is_one_bit] + self.both)
        for done, case in enumerate(cases):
            limit = self._remaining() / (len(cases) - done + len(self._left(self.changes)))
            if limit <= WHOLE_SECONDS:
                break
            self._decide([case], limit)
        if changes and (left := len(self._left(self.changes))):
            self._prove_changes(self._remaining() / left, PROOF_SECONDS)

    def _prove_changes(self, seconds: float, before: float = 0.0) -> None:
        """A row for each change that no sample showed, or the proof that the change has no effect. `seconds`: the most
        for each; `before`: what each had before, of which more is wanted."""
        if seconds <= before:
            return
        self._rewrite_changes(seconds)
        for change in self._left(self.changes):
            limit = min(seconds, self._remaining())
            if limit <= 0:
                return
            problem = Problem(self.model, change.model)
            proof = prove(problem, replace(self.options, timeout=limit))
            if proof.interrupted:
                raise KeyboardInterrupt
            if proof.witness is not None:
                row = np.array([proof.witness.operands.every], dtype=np.uint64)
                self.take(row)
                self.take(self.beside(row, CHUNK // 4))
            elif proof.verdict == "equal":
                self.found.same[change] = proof


def _kind_of_question(case: Case) -> tuple[object, ...]:
    """What the cases of one question share: the step, and the flag on which the result hangs."""
    return case[0].step, *(flag for _, flag in flaws_of(case))


def _kind_of(wanted: Wanted) -> tuple[str, ...]:
    """What nearby inputs may share: the aspect and step of a case, the parameter of a change."""
    if isinstance(wanted, Change):
        return (wanted.name.partition("=")[0],)
    return tuple(part for condition in wanted for part in (condition.step, condition.aspect))


def words(wanted: Wanted) -> str:
    """A case, or a change that an input shows, in words."""
    return str(wanted) if isinstance(wanted, Change) else text_of(wanted)
