"""The search for inputs that distinguish two models.

Shaped inputs are simulated first: they show most differences in less time than a query takes to build and answer. Then
small queries are asked, in which all but one, two or three products are zero: their answers come sooner and are easier
to read. Only if no small input exists is the query about all products asked; its "unsat" is the proof that the models
agree on every admitted input.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import zip_longest
from math import inf

import numpy as np

from mmaprobe.documents.parts import Verdict
from mmaprobe.queries.kernel.questions.problem import Problem, symbolic_operands
from mmaprobe.queries.kernel.terms.same import agrees, undiffering
from mmaprobe.queries.kernel.theorem import RuleError, Theorem
from mmaprobe.queries.search.admitted_rows import admitted_rows, kept_bits
from mmaprobe.queries.search.cut_rows import cut_rows
from mmaprobe.queries.search.exercises import EXERCISES, exercises
from mmaprobe.queries.search.samples import Table, near_tie_rows, sample_rows, subnormal_rows, tie_rows
from mmaprobe.queries.search.witness import (
    ReplayedRows,
    Row,
    Witness,
    answered_row,
    confirmed_witness,
    costs_of,
    differs_on,
    replay,
    shrink,
)
from mmaprobe.queries.solvers.asking import AnsweredQuery, Engines, Heard, SolverFaultError
from mmaprobe.queries.solvers.contract import DEFAULT_MEMORY, Answer
from mmaprobe.queries.solvers.engines import AUTO
from mmaprobe.queries.solvers.pool import Pool
from mmaprobe.queries.solvers.smtlib import Query
from mmaprobe.queries.solvers.store import Store
from mmaprobe.smtmodel.base.errors import OutOfTimeError
from mmaprobe.smtmodel.base.interrupts import TimeUp
from mmaprobe.smtmodel.carriers.algebra import Bit, all_of
from mmaprobe.smtmodel.carriers.terms import TermCarrier
from mmaprobe.smtmodel.evaluate.batch import Patterns, to_integers
from mmaprobe.smtmodel.evaluate.model import Evaluation
from mmaprobe.smtmodel.inputs.admitted import Inputs

SAMPLES = 4096  # shaped inputs of each kind, before any query
ADMITTED = 16  # tables of SAMPLES inputs that the restrictions admit, before any query
LEAST_CUT, MOST_CUT = 256, 1 << 20  # rows about the last places kept: at least, and at most, times their products
EASIEST = 1000  # inputs, of those that show a difference, among which the easiest to read is chosen
SMALL = 3  # the most products left free in restricted queries
SMALL_SHARE = 0.1  # the largest share of the time for one restricted query
SINGLE_SHARE = 0.25  # factor of the share if one product is free: such a query is hard, and later queries contain it
SEARCH_SHARE = 0.4  # in place of SMALL_SHARE where only restricted queries are asked; also for random admitted inputs
BRIEF = 2.5  # seconds for each restricted query in a first round, since another may be answered sooner


@dataclass(frozen=True)
class Options:
    """How to ask. `timeout`: seconds for each pair, None without a limit; their clock (`clock`) stops while other
    questions are asked. `deadline`: the time, of time.monotonic, after which no query is built or asked, whatever the
    `timeout`. `memory`: MiB for each solver process; `count`: the most witnesses; `pool`: where the solvers run;
    `store`: where their answers are kept; `fresh`: stored answers are not used; `stored`: only stored answers are used;
    `simulate`: shaped inputs are tried before any query."""

    solver: str = AUTO
    timeout: float | None = 300.0
    memory: int = DEFAULT_MEMORY
    count: int = 1
    progress: Callable[[str], None] = lambda text: None
    store: Store | None = None
    fresh: bool = False
    pool: Pool = field(default_factory=Pool)
    simulate: bool = True
    deadline: float | None = None
    stored: bool = False

    def clock(self) -> float:
        """The time in seconds of the clock that measures a `timeout`."""
        return self.pool.clock()

    @property
    def answerless(self) -> bool:
        """Whether no query has an answer, so that none need be built: only stored answers are used, of which there are
        none."""
        return self.stored and (self.store is None or self.store.is_empty)

    def left(self, start: float, share: float = 1.0) -> float | None:
        """A share of the seconds that are left of a `timeout` that began at `start` (of `clock`); None without a
        timeout."""
        return None if self.timeout is None else max(0.0, self.timeout - (self.clock() - start)) * share

    def ask(self, query: Query, seconds: float | None, name: str, solver: str | None = None) -> list[Answer]:
        """The engines' answers, in the order of `portfolio.solve`. Raises OutOfTimeError at the deadline."""
        return self.engines(seconds, name, solver).answers(query)

    def engines(
        self, seconds: float | None, name: str, solver: str | None = None, heard: Heard | None = None,
        processor: float | None = None,
    ) -> Engines:  # fmt: skip
        """The engines for one question of a rule of inference. `seconds`: the limit for the question; `processor`:
        seconds of processor time for each engine; `name`: the text shown to users who wait."""
        return Engines(solver or self.solver, seconds, name, self.memory, self.store, self.fresh, self.pool,
                       self.deadline, self.progress, heard or Heard(), stored=self.stored,
                       processor=processor)  # fmt: skip


@dataclass(frozen=True)
class AskedQuery(AnsweredQuery):
    """One query with its answers. `free`: the products that are variables; `one_sign`: only nonnegative inputs are
    admitted."""

    free: tuple[int, ...]
    one_sign: bool


@dataclass
class PairOutcome:
    """The result for one pair. `witnesses`: inputs that exercise different features; `theorem`: states that there is no
    witness; `complete`: there are no witnesses of further kinds; `simulated`: the first witness was found by
    simulation."""

    problem: Problem
    witnesses: list[Witness] = field(default_factory=list)
    steps: list[AskedQuery] = field(default_factory=list)
    complete: bool = True
    simulated: bool = False
    theorem: Theorem | None = None

    @property
    def verdict(self) -> Verdict:
        """The verdict: different if there is a witness, equal if the theorem is about this problem, else unknown."""
        if self.witnesses:
            return "different"
        return "equal" if agrees(self.theorem, self.problem) else "unknown"

    @property
    def seconds(self) -> float:
        """Time of the deciding solvers."""
        return sum(step.answer.seconds for step in self.steps)


Signature = tuple[bool, ...]
Size = tuple[tuple[int, ...], bool]  # the products that are variables, and whether only nonnegative inputs are admitted


class WitnessSearch:
    """The search for witnesses of one problem."""

    def __init__(self, problem: Problem, options: Options, small: bool = False) -> None:
        self.problem, self.options, self.small = problem, options, small
        self.deadline = None if options.timeout is None else options.clock() + options.timeout
        self.outcome = PairOutcome(problem)
        self.seen: list[Signature] = []
        self.refuted: set[Size] = set()
        self.whole: Size | None = None if small else (free_sets(problem)[-1], False)

    def run(self) -> PairOutcome:
        """Search until there are enough witnesses, no further witness exists, or the time is over. Raises
        SolverFaultError."""
        outcome, late = self.outcome, False
        if self.options.simulate and (simulated := self._simulate()) is not None:
            outcome.witnesses.append(simulated)
            outcome.simulated = True
        try:
            if outcome.simulated:
                self._simulate_on()
            if not self.options.answerless:
                self._ask_on()
        except (OutOfTimeError, TimeUp):  # TimeUp may be raised at any point
            late = True
        enough = len(outcome.witnesses) == self.options.count
        answered = enough or not outcome.steps or outcome.steps[-1].answer.status != "unknown"
        decided = answered and not self.small and not late
        outcome.complete = decided or not outcome.witnesses
        return outcome

    def interrupted(self) -> PairOutcome:
        """What an interrupted `run` found."""
        self.outcome.complete = not self.outcome.witnesses
        return self.outcome

    def _ask_on(self) -> None:
        """Ask until there are enough witnesses, or there is no further witness. Raises OutOfTimeError,
        SolverFaultError."""
        outcome, attempts, start = self.outcome, self._attempts(), 0
        while len(outcome.witnesses) < self.options.count:
            witness = None
            for position in range(start, len(attempts)):
                size, limit = attempts[position]
                if size in self.refuted:
                    continue
                witness = self._ask(size, limit)
                if witness is not None:
                    start = position
                    break
            if witness is None:
                return
            outcome.witnesses.append(witness)

    def _remaining(self) -> float | None:
        return None if self.deadline is None else max(0.0, self.deadline - self.options.clock())

    def _attempts(self) -> list[tuple[Size, float | None]]:
        """The queries in order, each with its seconds (None: all that remain). Restricted queries come first, about
        small sets of products and about all products with one sign: each with a short limit, then with its full one.
        The query about all products comes last."""
        *small, whole = free_sets(self.problem)
        sizes: list[Size] = [(free, False) for free in small]
        sizes += [] if self.problem.inputs.nonnegative else [(whole, True)]
        patience = {size: self._patience(size) for size in sizes}
        brief: list[tuple[Size, float | None]] = [(size, min(limit, BRIEF)) for size, limit in patience.items()]
        patient = [(size, limit) for size, limit in patience.items() if limit > BRIEF]
        return [*brief, *patient, *([] if self.whole is None else [(self.whole, None)])]

    def _patience(self, size: Size) -> float:
        """Seconds for a restricted query."""
        share = (SMALL_SHARE if not self.small else SEARCH_SHARE) * (SINGLE_SHARE if len(size[0]) == 1 else 1)
        return inf if self.options.timeout is None else self.options.timeout * share

    def _ask(self, size: Size, limit: float | None) -> Witness | None:
        free, one_sign = size
        problem = self.problem
        if one_sign:
            problem = replace(problem, inputs=problem.inputs.model_copy(update={"nonnegative": True}))
        remaining = self._remaining()
        if remaining is not None:
            limit = remaining if limit is None else min(limit, remaining)
        limit = None if limit == inf else limit
        engines = self.options.engines(limit, f"{len(free)} of {self.problem.length} products free")
        if size == self.whole and not self.seen:
            with suppress(RuleError):
                self.outcome.theorem = undiffering(problem, "select", engines)
        else:
            engines.answers(build_query(problem, free, self.seen, deadline=self.options.deadline))
        (answered,) = engines.answered_queries
        self.outcome.steps.append(AskedQuery(answered.query, answered.answers, free, one_sign))
        answer = answered.answer
        if answer.status == "unsat":
            self.refuted.add(size)
        if answer.status != "sat":
            return None
        return self._replayed(answered_row(self.problem.layout, answer), answer)

    def _simulate(self) -> Witness | None:
        """The witness that is the easiest to read among many shaped inputs; None if none of these is a witness."""
        for rows in self._tables():
            if (row := easiest_difference(self.problem, rows)) is not None:
                return self._kept(row)
        row = cut_difference(self.problem) or admitted_difference(self.problem, self._remaining())
        return None if row is None else self._kept(row)

    def _tables(self, seed: int = 1) -> Iterator[Table]:
        """Shaped inputs."""
        layout, results = self.problem.layout, {model.d for model in (self.problem.left, self.problem.right)}
        tables = [sample_rows(layout, SAMPLES, seed), *(tie_rows(layout, fmt, SAMPLES, seed) for fmt in results)]
        yield np.concatenate([*tables, subnormal_rows(layout, SAMPLES, seed)])
        for fmt in results:
            yield near_tie_rows(layout, fmt, SAMPLES, seed)

    def _simulate_on(self) -> None:
        """Add witnesses of further kinds, the easiest to read of each kind, from shaped inputs and inputs that the
        restrictions admit, for as long as new kinds turn up and there is time."""
        layout, cuts = self.problem.layout, kept_bits(*self.problem.models)
        for seed in range(1, ADMITTED + 1):
            before = len(self.seen)
            admitted = admitted_rows(layout, self.problem.inputs, SAMPLES, seed, cuts)
            for rows in (*self._tables(seed), _cut_table(self.problem, seed), admitted):
                self._take_kinds(rows)
            if len(self.seen) == before or self._is_over():
                return

    def _is_over(self) -> bool:
        return len(self.outcome.witnesses) >= self.options.count or self._remaining() == 0

    def _take_kinds(self, rows: Table) -> None:
        """Add a witness of each kind that the rows show and no witness has."""
        rows = rows[replay(self.problem, rows).differs != 0][:SAMPLES]
        if not len(rows) or self._is_over():
            return
        flags = _flags(self.problem, replay(self.problem, rows, traced=True).evaluations)
        kinds = np.stack([to_integers(flag, len(rows)) != 0 for flag in flags], axis=1)
        costs, best = costs_of(rows, self.problem.layout), dict[Signature, int]()
        for place in sorted(range(len(rows)), key=costs.__getitem__):
            best.setdefault(tuple(kinds[place].tolist()), place)
        for kind, place in best.items():
            if kind not in self.seen and not self._is_over():
                self.outcome.witnesses.append(self._kept(tuple(map(int, rows[place]))))

    def _replayed(self, row: Row, answer: Answer) -> Witness:
        if not differs_on(self.problem, row):
            raise SolverFaultError(
                f"{answer.engine} {answer.version} gave a model on which the two do not differ: {row}"
            )
        return self._kept(row)

    def _kept(self, row: Row) -> Witness:
        """A row on which the models differ, shrunk to a smaller witness; after the first witness, to one that exercises
        the same features as the row. The features are added to `seen`."""
        keep = None
        if self.seen:
            first = confirmed_witness(self.problem, row)
            assert first is not None
            keep = partial(self._same_kind, _signature(first))
        small = confirmed_witness(self.problem, shrink(self.problem, row, keep, traced=keep is not None))
        assert small is not None
        self.seen.append(_signature(small))
        return small

    def _same_kind(self, signature: Signature, result: ReplayedRows) -> Patterns:
        return to_integers(_of_kind(_flags(self.problem, result.evaluations), signature), len(result.left))


def cut_difference(problem: Problem) -> Row | None:
    """The easiest to read of rows about the last places that the sums of the models keep on which the sides differ."""
    return easiest_difference(problem, _cut_table(problem))


def _cut_table(problem: Problem, seed: int = 1) -> Table:
    """Rows about the last places that the sums of the models keep."""
    layout, models = problem.layout, problem.models
    bits, steps = kept_bits(*models), list(dict.fromkeys(step for model in models for step in model.blocks))
    count = min(SAMPLES, max(LEAST_CUT, MOST_CUT // layout.length))
    tables = [cut_rows(layout, fmt, bits, count, steps, seed) for fmt in dict.fromkeys(model.d for model in models)]
    return np.concatenate(tables)


def easiest_difference(problem: Problem, rows: Table) -> Row | None:
    """The easiest to read of the first rows on which the sides differ; None where they agree on all rows."""
    if not len(places := np.flatnonzero(replay(problem, rows).differs)):
        return None
    costs = costs_of(rows[places[:EASIEST]], problem.layout)
    return tuple(map(int, rows[places[costs.index(min(costs))]]))


def admitted_difference(problem: Problem, seconds: float | None) -> Row | None:
    """The first of many dense random inputs on which the sides differ, where inputs are restricted: few of the shaped
    inputs meet a restriction. `seconds`: what is left, of which a share is used."""
    if problem.inputs == Inputs():
        return None
    end = inf if seconds is None else time.monotonic() + SEARCH_SHARE * seconds
    cuts = kept_bits(problem.left, problem.right)
    for seed in range(1, ADMITTED + 1):
        if time.monotonic() > end:
            break
        rows = admitted_rows(problem.layout, problem.inputs, SAMPLES, seed, cuts)
        if len(places := np.flatnonzero(replay(problem, rows).differs)):
            return tuple(map(int, rows[places[0]]))
    return None


def build_query(
    problem: Problem,
    free: Sequence[int] | None = None,
    seen: Sequence[Signature] = (),
    carrier: TermCarrier | None = None,
    deadline: float | None = None,
) -> Query:
    """The query whether the two models differ on an input. `free`: the products that are variables (None: all); the
    others are zero. `seen`: signatures of witnesses that the query excludes. `deadline`: of time.monotonic. Raises
    OutOfTimeError at the deadline."""
    carrier = carrier or TermCarrier()
    with carrier.until(deadline):
        operands = symbolic_operands(problem, carrier, free)
        evaluations = problem.evaluate(operands, traced=bool(seen))
        conditions = [problem.admits(operands), problem.differ(evaluations[0].d, evaluations[1].d)]
        if seen:
            flags = _flags(problem, evaluations)
            conditions += [~_of_kind(flags, signature) for signature in seen]
    assertions = tuple(condition.node for condition in conditions) + tuple(carrier.definitions)
    symbols = tuple(bits.node for bits in operands.every if bits.value is None)
    return Query(symbols, assertions)


def free_sets(problem: Problem) -> list[tuple[int, ...]]:
    """The sets of products that queries leave free, in the order of asking: sets of one, two and three products, each
    size first with products of the unit's first step, then with products of different steps; last the set of all."""
    steps = max((model.blocks for model in (problem.left, problem.right)), key=len)
    fixed, every = problem.inputs.zero_terms, range(problem.length)  # also products that are in none of the steps
    turns = [k for turn in zip_longest(*steps) for k in turn]
    orders = [[*(k for step in steps for k in step), *every], [*turns, *every]]
    first = [] if problem.focus is None else [problem.focus]
    usable = [
        list(dict.fromkeys([*first, *(k for k in order if k is not None and k < problem.length and k not in fixed)]))
        for order in orders
    ]
    small = [tuple(order[:count]) for count in range(1, SMALL + 1) for order in usable if count < len(order)]
    return [*dict.fromkeys(small), tuple(sorted(usable[0]))]


def first_free(problem: Problem, count: int) -> tuple[int, ...]:
    """The first set of `count` products in `free_sets`; all products if there is no such set."""
    every = free_sets(problem)
    return next((some for some in every if len(some) == count), every[-1])


def _flags(problem: Problem, evaluations: Sequence[Evaluation]) -> list[Bit]:
    flags: list[Bit] = []
    for model, evaluation in zip((problem.left, problem.right), evaluations, strict=True):
        flags += exercises(model, evaluation).values()
    return flags


def _of_kind(flags: Sequence[Bit], signature: Signature) -> Bit:
    """Whether an input exercises exactly the features of a signature."""
    return all_of([flag if wanted else ~flag for flag, wanted in zip(flags, signature, strict=True)])


def _signature(witness: Witness) -> Signature:
    return tuple(name in names for names in witness.exercises for name in EXERCISES)


def distinguish(problem: Problem, options: Options | None = None, small: bool = False) -> PairOutcome:
    """Inputs on which two models differ, or the verdict that there are none. `small`: only restricted queries are
    asked, so that the verdict is never "equal". Raises SolverFaultError."""
    return WitnessSearch(problem, options or Options(), small).run()
