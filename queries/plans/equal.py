"""Proves two plans equal, for one K or for every K that is a multiple of a tile, or finds an input on which they
differ.

Equal for one K: their expressions have the same normal form. Equal for every multiple of a number of products, by
induction: both plans repeat a step that adds that number of products to a sum; the steps are equal from any sum (by
normal form, or proved as units are), the sums start from the same value, and the same is done with the last sum. Two
stages that differ only in an inner stage are equal if the inner stages are equal for the numbers of products that they
are given.

Different: inputs with few nonzero products, or with zeros alone, are tried at the smallest K first and replayed at the
K that is printed. Solvers are asked about many products only if they found a difference with few.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from queries.compare.steady import same_answer
from queries.equality.staged import prove
from queries.kernel.problem import Placed, Problem
from queries.order.probe import power_pattern
from queries.plans.addends import read_once
from queries.plans.merged import ZERO, merged, merged_after_zero
from queries.plans.tails import tails
from queries.search.distinguish import Options, distinguish
from queries.search.samples import sample_rows
from queries.search.witness import Replay, Row, Witness, replaced, replay, shrink, shrink_rows
from queries.tactics.records import Proof, Verdict
from smtmodel.batch import Patterns
from smtmodel.dot import Model
from smtmodel.errors import FaultError, ParameterError
from smtmodel.formats import Format
from smtmodel.gemm import Engine, simulate
from smtmodel.libraries import compiler
from smtmodel.nodes.normal import normal
from smtmodel.nodes.round import Rounding
from smtmodel.numbers import from_numbers
from smtmodel.plans import (
    Halves,
    Interleaved,
    Lanes,
    Plan,
    Products,
    Promoted,
    Rounded,
    Runs,
    Span,
    Split,
    Stage,
    Swizzled,
    Turns,
    Uneven,
    Whole,
)
from smtmodel.plans.loop import around, step_of, unit_of_step
from smtmodel.plans.lowering import unit_of_plan
from smtmodel.reference import PLAN
from smtmodel.unit import LONGEST, Unit
from smtmodel.wording import counted

ROWS = 1024  # inputs for each set of places
LONG = 256  # K above which samples are matrices instead: SIDE rows by as many columns
SIDE = 48
SHRINKING = 10.0  # seconds for shrinking an input found by matrices
SETS = 24  # sets of places, at most
EVERY = 32  # K up to which one more set has all places
SMALLER = 8  # a smaller difference is searched for at K up to this many lengths of the longest unit
MULTIPLES = 4  # of the tile, up to which K is searched for a difference if no K is asked
BRIEF = 0.2  # of the remaining time, for one query with few products
WHOLE = 128  # K up to which solvers are asked about all products, and loops are written out
SEED, CHECKING = 1, 20  # the second one for checks of a verdict


@dataclass(frozen=True)
class Ground:
    """Why two plans are equal: a rule, the K for which it holds (every multiple of `multiples`; 0: the K asked alone),
    and what it rests on."""

    rule: str
    multiples: int
    proofs: tuple[Proof, ...] = ()
    grounds: tuple[Ground, ...] = ()

    @property
    def every(self) -> Iterator[Ground]:
        """This ground, and all those on which it rests."""
        yield self
        for ground in self.grounds:
            yield from ground.every

    def lines(self, depth: int = 0) -> Iterator[str]:
        """The rule, and indented below it the rules on which it rests."""
        yield "  " * depth + self.rule
        for ground in self.grounds:
            yield from ground.lines(depth + 1)

    @property
    def every_proof(self) -> tuple[Proof, ...]:
        return tuple(proof for ground in self.every for proof in ground.proofs)


@dataclass
class PlanProof:
    """The outcome for two plans. `length`: the K asked, or at which a difference was found; `problem`: the one that the
    witness is of."""

    left: Plan
    right: Plan
    verdict: Verdict = "unknown"
    length: int | None = None
    ground: Ground | None = None
    problem: Placed | None = None
    witness: Witness | None = None
    tried: list[str] = field(default_factory=list)
    seconds: float = 0.0
    interrupted: bool = False

    @property
    def proofs(self) -> tuple[Proof, ...]:
        """The proofs by solvers that the verdict rests on."""
        return () if self.ground is None else self.ground.every_proof


def prove_plans(
    left: Plan, right: Plan, length: int | None = None, options: Options | None = None, confirm: bool = True
) -> PlanProof:
    """Prove two plans equal for K = `length`, or, if `length` is None, for every multiple of a tile; or find an input
    on which they differ. `confirm`: whether the proofs by solvers are cross-checked by another solver.

    An interrupt ends the work. Raises ParameterError for plans that cannot be compared, or for a K that one of them
    does not take, and FaultError if an evaluation contradicts what was proved.
    """
    return _Prover(left, right, length, options or Options(), confirm).run()


Several = TypeVar("Several", Split, Uneven, Interleaved)
Parts = Halves | Promoted | Turns | Whole  # stages with one body, which sums parts of the products


class _Prover:
    def __init__(self, left: Plan, right: Plan, length: int | None, options: Options, confirm: bool) -> None:
        self.left, self.right, self.length = left, right, length
        for plan in (left, right):
            if plan.scale is not None:
                raise ParameterError(
                    "plan", f"{plan.reference} takes scale factors: its products of a given K are not compared"
                )
        if length is not None and length < 1:
            raise ParameterError("length", f"{length} is impossible; it takes a whole number from 1 on")
        self.options, self.confirm = options, confirm
        self.start = options.clock()
        self.proof = PlanProof(left, right, length=length)
        self.none = set[int]()  # numbers of products at which samples show no difference
        self.tile = math.lcm(*(product.stage.period for plan in (left, right) for product in plan.sums))
        if max(length or 0, self.tile) > LONGEST:
            raise ParameterError("length", f"{max(length or 0, self.tile)} products are too many; at most {LONGEST}")
        self._problem(length or self.tile, (0,))  # raises ParameterError for formats or a K that do not fit
        if left.addend != right.addend:
            reads, other = (left, right) if left.addend else (right, left)
            hint = "models of one K (plan:NAME@length=K) are compared where c is +0"
            raise ParameterError("c", f"{reads.reference} reads c, and {other.reference} does not; {hint}")

    def run(self) -> PlanProof:
        try:
            self._decide()
        except KeyboardInterrupt:
            self.proof.interrupted = True
        self.proof.seconds = self.options.clock() - self.start
        if self.proof.verdict == "equal" and not self.proof.interrupted:
            self._check()
        return self.proof

    def _decide(self) -> None:
        """Try the cheap rules first; if none decides, search for a difference and try induction by solvers; if K is
        small, ask solvers about all its products last."""
        length = self.length
        ground = self._for_all(by_solver=False)
        if ground is not None and (length or 0) % ground.multiples == 0:
            return self._equal(ground)
        if length and (ground := _alike(f"K = {length}:", 0, *self._units(length))):
            return self._equal(ground)
        if length is None:
            numbers = [*range(1, MULTIPLES + 1), *(-(-k // self.tile) for k in self._halved())]
            lengths = [n * self.tile for n in dict.fromkeys(numbers) if n * self.tile <= LONGEST]
            if any(self._differ_on_samples(k) for k in lengths):
                return self._smaller()
        else:
            lengths = [length]
            # at a large K a difference is quicker found with few tiles, then moved
            few = [self.tile, *([2 * self.tile] if 2 * self.tile <= LONG < length else [])]
            if (length % self.tile or any(map(self._differ_on_samples, few))) and (
                self._differ_again(length) or self._differ_on_samples(length)
            ):
                return None
            self._forget()
        ground = self._for_all()
        if ground is not None and (length or 0) % ground.multiples == 0:
            return self._equal(ground)
        if length and (ground := self._by_tails(length)):
            return self._equal(ground)
        if (length and self._differ_on_samples(length)) or any(map(self._found_by_solver, lengths[:MULTIPLES])):
            return None
        self._note(f"a few products that differ, at K = {', '.join(map(str, lengths))}: none found")
        return self._whole(length) if length and length <= WHOLE else None

    def _smaller(self) -> None:
        """Search for a difference at a smaller K, a multiple of the longest unit's length; if there is one, it replaces
        the first."""
        unit = max(model.length for plan in (self.left, self.right) for model in plan.models)
        found = self.proof.length or 0
        lengths = range(unit, min(found, (SMALLER + 1) * unit), unit)
        any(self._differ_on_samples(k) for k in lengths if self._fits(k))

    def _halved(self) -> Iterator[int]:
        """Numbers of products from which on a stage halves them: its period says nothing about them."""
        sums = [product.stage for plan in (self.left, self.right) for product in plan.sums]
        yield from (k for most in sorted(set(map(_most, sums)) - {0}) for k in (most + 1, 2 * most))

    def _fits(self, length: int) -> bool:
        """Whether both plans take `length` products."""
        try:
            self._units(length)
        except ParameterError:
            return False
        return True

    def _equal(self, ground: Ground) -> None:
        self.proof.verdict, self.proof.ground = "equal", ground

    def _units(self, length: int) -> tuple[Unit, Unit]:
        return unit_of_plan(self.left, length), unit_of_plan(self.right, length)

    def _models(self, length: int) -> tuple[Model, Model]:
        left, right = (
            Model(model_reference(plan, length), unit)
            for unit, plan in zip(self._units(length), (self.left, self.right), strict=True)
        )
        return left, right

    def _problem(self, length: int, places: Sequence[int]) -> Placed:
        return Placed(*self._models(length), places=tuple(places))

    def _remaining(self, share: float = 1.0) -> Options:
        limit = self.options.timeout
        if limit is None:
            return self.options
        return replace(self.options, timeout=max(0.0, limit - (self.options.clock() - self.start)) * share)

    # -- equal

    def _for_all(self, by_solver: bool = True) -> Ground | None:
        """Why the plans are equal for every multiple of some number of products; None if no rule shows it. `by_solver`:
        whether solvers may prove the steps of an induction equal."""
        self.by_solver = by_solver
        pairs = self._pairs
        if pairs is None:
            return None
        grounds = [
            self._stages(one.stage, other.stage)
            or (self._by_induction(one.stage, other.stage, zero=True) if one.start == ZERO else None)
            for one, other in pairs
        ]
        found = [ground for ground in grounds if ground is not None]
        if len(found) < len(grounds):
            return None
        if len(found) == 1:
            return found[0]
        return Ground("each sum of all products", math.lcm(*(g.multiples for g in found)), (), tuple(found))

    @property
    def _pairs(self) -> list[tuple[Products, Products]] | None:
        """The sums of both plans, if these do the same with them; None if not."""
        if len(self.left.sums) != len(self.right.sums) or not _same_inputs(self.left, self.right):
            return None
        pairs = list(zip(self.left.sums, self.right.sums, strict=True))
        starts = all(normal(one.start) == normal(other.start) for one, other in pairs)
        return pairs if starts and normal(around(self.left)) == normal(around(self.right)) else None

    def _by_tails(self, length: int) -> Ground | None:
        """Why two plans with the same tiles are equal at a K: what they do with the products left over is proved
        equal."""
        found = tails(self.left, self.right, length) if self._pairs is not None and self._alike_read else None
        if found is None:
            return None
        rest, *units = found
        what = f"K = {length}: the same {length - rest} products in tiles; with {counted(rest, 'product')} left over"
        if ground := _alike(f"{what}, from any sum that tiles make,", 0, units[0], units[1]):
            return ground
        models = [Model(f"tail of {unit.reference}", unit) for unit in units]
        proof = prove(Problem(models[0], models[1]), self._remaining(0.5), self.confirm)
        if proof.verdict != "equal":
            self._note(f"{counted(rest, 'product')} left over, from any sum that tiles make: {proof.verdict}")
            return None
        return Ground(f"{what}, proved equal from any sum that tiles make", 0, (proof,))

    def _stages(self, one: Stage, other: Stage) -> Ground | None:
        """Why two stages are equal from any start and for all products, for every K that is one of the ground's
        multiples; None if no rule shows it."""
        if one == other and self._alike_read:
            return Ground("the same stage", 1)
        found = self._congruent(one, other) or self._by_induction(one, other)
        if found is None:
            self._note("rules for every K: none compares the stages that differ")
        return found

    @property
    def _alike_read(self) -> bool:
        """Whether both plans convert their inputs alike, so that one stage is the same in both."""
        return _conversions(self.left) == _conversions(self.right)

    def _congruent(self, one: Stage, other: Stage) -> Ground | None:
        match one, other:
            case Rounded(), Rounded() if one.rounding == other.rounding:
                inner, times = self._stages(one.body, other.body), 1
            case Split(), Split() if replace(_ordered(one), body=other.body, grain=other.grain) == _ordered(other):
                inner = self._stages(one.body, other.body)
                grains = math.lcm(*(stage.grain or stage.body.period for stage in (one, other)))
                if inner is None:
                    return None
                multiples = one.ways * math.lcm(grains, inner.multiples)
                return Ground(f"split in {one.ways} equal runs, each one equal", multiples, (), (inner,))
            case Uneven(), Uneven() if replace(_ordered(one), body=other.body) == _ordered(other):
                inner = self._stages(one.body, other.body)
                if inner is None or any(place % inner.multiples for place in one.at):
                    return None
                places = " and ".join(map(str, one.at))  # no plan takes a K that ends before the last of them
                return Ground(f"split at {places}, each run equal", inner.multiples, (), (inner,))
            case Lanes(), Lanes() if replace(one, body=other.body, head=other.head, tail=other.tail) == other:
                inner = self._stages(one.body, other.body)
                if inner is None or (one.order == "backwards" and inner.multiples > 1):  # single products
                    return None
                multiples = one.multiples(inner.multiples)  # whole turns: no head, no tail
                return Ground(f"vectors of {one.lanes} lanes, each lane equal", multiples, (), (inner,))
            case Interleaved(), Interleaved() if replace(_ordered(one), body=other.body, tail=other.tail) == _ordered(
                other
            ):
                inner = self._stages(one.body, other.body)
                if inner is None:
                    return None
                multiples = one.ways * math.lcm(one.grain, inner.multiples)  # whole turns: no tail
                return Ground(f"{one.ways} lanes of one layout, each one equal", multiples, (), (inner,))
            case Swizzled(), Swizzled() if replace(one, body=other.body) == other:
                inner = self._stages(one.body, other.body)
                if inner is None:
                    return None
                multiples = math.lcm(one.grain, inner.multiples) * one.ways
                return Ground(f"{one.ways} passes over the same products, each one equal", multiples, (), (inner,))
            case Promoted(), Promoted() if (one.every, one.rounding) == (other.every, other.rounding):
                return self._in_parts(one, other, one.every, "sums of {} products, each one equal")
            case Turns(), Turns() if one.every == other.every:
                return self._in_parts(one, other, one.every, "turns of {} products, each one equal")
            case Whole(), Whole() if replace(one, body=other.body) == other and (one.head is None or self._alike_read):
                return self._in_parts(one, other, one.number, "multiples of {} products, equal")
            case Halves(), Halves() if replace(one, body=other.body) == other:
                return self._in_parts(one, other, one.grain, "halves of multiples of {}, each one equal")
            case _:
                return None
        return None if inner is None else replace(inner, multiples=inner.multiples * times)

    def _in_parts(self, one: Parts, other: Parts, number: int, words: str) -> Ground | None:
        """Why two stages are equal whose bodies are given multiples of `number` products: their bodies are equal for
        these."""
        inner = self._stages(one.body, other.body)
        if inner is None or number % inner.multiples:
            return None
        return Ground(words.format(number), number, (), (inner,))

    def _by_induction(self, one: Stage, other: Stage, zero: bool = False) -> Ground | None:
        """Why two stages that each repeat a step are equal; None if no rule shows it. `zero`: for sums that start from
        +0 and never become -0."""
        steps = step_of(one), step_of(other)
        if steps[0] is None or steps[1] is None or steps[0].last != steps[1].last or steps[0].sums != steps[1].sums:
            return None
        period, sums = math.lcm(steps[0].period, steps[1].period), steps[0].sums
        if period > LONGEST:
            return None
        units = [
            unit_of_step(plan, step.stage, sums, period)
            for plan, step in zip((self.left, self.right), steps, strict=True)
            if step is not None
        ]
        so_far = "sum so far, which is never -0," if zero else "sum so far"
        induction = f"induction: a step of {period} products from any {so_far}"
        if ground := _alike(f"{induction} has", period, units[0], units[1], zero):
            return ground
        if zero or units[0].d != units[1].d or not self.by_solver:
            return None
        models = [Model(f"step of {unit.reference}", unit) for unit in units]
        proof = prove(Problem(models[0], models[1]), self._remaining(0.5), self.confirm)
        if proof.verdict != "equal":
            self._note(f"a step of {period} products from any sum so far: {proof.verdict}")
            return None
        return Ground(f"{induction} is proved equal", period, (proof,))

    def _note(self, text: str) -> None:
        if text not in self.proof.tried:
            self.proof.tried.append(text)

    def _whole(self, length: int) -> None:
        """Ask solvers whether the plans are equal at a K for all inputs, as is done for units."""
        proof = prove(Problem(*self._models(length)), self._remaining(), self.confirm)
        self.proof.tried += [str(answer) for answer in proof.tried if answer.status == "unknown"]
        if proof.verdict == "equal":
            self._equal(Ground(f"proved as units of {length} products", 0, (proof,)))
        elif proof.witness is not None:
            problem = self._problem(length, range(length))
            self._different(problem, proof.witness)

    # -- different

    def _different(self, problem: Placed, witness: Witness) -> None:
        self.proof.verdict, self.proof.witness, self.proof.problem = "different", witness, problem
        self.proof.length = problem.left.length

    def _forget(self) -> None:
        """Discard a difference found at another K: it does not answer the question about the K asked."""
        self.proof.verdict, self.proof.witness, self.proof.problem = "unknown", None, None
        self.proof.length = self.length

    def _differ_on_samples(self, length: int) -> bool:
        """Whether the plans differ on samples. Differences other than in the sign of a zero are preferred."""
        if length not in self.none and (_alike("", 0, *self._units(length)) or not self._sampled(length)):
            self.none.add(length)
        return length not in self.none

    def _sampled(self, length: int) -> bool:
        """The same, by samples at one number of products."""
        zeros: list[tuple[Placed, Witness]] = []
        for places in places_asked(self.left, self.right, length):
            problem = self._problem(length, places)
            row = self._on_matrices(problem) if length > LONG else _on_rows(problem)
            if row is not None:
                witness = self._witness(problem, row)
                if _magnitudes(problem, witness.left, witness.right):
                    self._different(problem, witness)
                    return True
                zeros.append((problem, witness))
        for problem, witness in zeros[:1]:
            self._different(problem, witness)
        return bool(zeros) or self._differ_in_zeros(length)

    def _differ_in_zeros(self, length: int) -> bool:
        """Whether the plans differ on inputs of zeros. In other samples the products at places not asked are +0, which
        makes a sum of zeros +0. Here all products are -0 (-0 * +0, or +0 * -1, as units may read -0 as +0), or all but
        one; c is a zero, or, if all products are -0, also a number of either sign with the pattern 1 or 3. With c the
        least normal number, one product may also leave less than that, which may be flushed to -0."""
        problem = self._problem(length, range(length))
        a, b, c = self.left.a, self.left.b, self.left.c
        minus, half = c.sign_bit if c.has_negative_zero else 0, c.emin // 2
        small = _power(a, half, 3), b.sign_bit | _power(b, c.emin - half), _power(c, c.emin)
        marks = {places[0] for places in places_asked(self.left, self.right, length) if len(places) == 1}
        rows: list[Row] = []
        for zeros in ((a.sign_bit if a.has_negative_zero else 0, 0), (0, b.sign_bit | b.one)):
            rows += [_with(zeros, length, None, (0, 0, sign + few)) for few in (0, 1, 3) for sign in (minus, 0)]
            for one in sorted(marks):
                rows += [_with(zeros, length, one, (0, 0, sign)) for sign in (minus, 0)]
                rows += [_with(zeros, length, one, small)] if all(small) else []
        rows = list(dict.fromkeys(replaced(row, dict.fromkeys(problem.layout.unread, 0)) for row in rows))
        many = length > LONG
        differing = np.flatnonzero(np.diag(self._products(problem, rows)) if many else replay(problem, rows).differs)
        if not len(differing):
            return False
        self._different(problem, self._witness(problem, rows[int(differing[0])]))
        return True

    def _witness(self, problem: Placed, row: Row) -> Witness:
        """The witness of a row on which the plans differ. Raises FaultError if they do not differ in its replay."""
        witness = _replayed(problem, row)
        if witness is None:
            raise FaultError(f"matrices and single inputs disagree at K = {problem.left.length}: a fault of mmaprobe")
        return witness

    def _differ_again(self, length: int) -> bool:
        """Whether the input found at a smaller K shows a difference at this K too, moved to the places asked here in
        place of its own, or at its own. A difference in the sign of a zero is searched for again with zeros."""
        found, problem = self.proof.witness, self.proof.problem
        if found is None or problem is None or problem.left.length >= length:
            return False
        if not _magnitudes(problem, found.left, found.right):
            return self._differ_in_zeros(length)
        asked = (places_asked(self.left, self.right, k) for k in (problem.left.length, length))
        instead = dict(zip(*asked, strict=False)).get(problem.places, ())
        for places in dict.fromkeys((instead, problem.places)):
            if len(places) != len(problem.places):
                continue
            moved = self._problem(length, places)
            witness = _replayed(moved, found.operands.every)
            if witness is not None and _magnitudes(moved, witness.left, witness.right):
                self._different(moved, witness)
                return True
        return False

    def _on_matrices(self, problem: Placed) -> Row | None:
        """A shrunk row on which the plans differ, searched for with matrix products: each row of A with each column of
        B. For a large K."""
        rows, c = _rows(problem, SEED, SIDE), 2 * problem.length
        differs = self._products(problem, rows)
        if not np.any(differs):
            return None
        i, j = np.argwhere(differs)[0]
        row = (*rows[i][: problem.length], *rows[j][problem.length : c], rows[i][c])

        def good(tried: list[Row]) -> Patterns:
            parts = [tried[k : k + SIDE] for k in range(0, len(tried), SIDE)]
            return np.concatenate([np.diag(self._products(problem, part)) for part in parts]).astype(np.uint64)

        return shrink_rows(problem.layout, row, good, SHRINKING)

    def _products(self, problem: Placed, rows: list[Row]) -> NDArray[np.bool_]:
        """Whether the plans differ for the a and c of each row with the b of each other row (rows x rows)."""
        table, count = np.array(rows, dtype=np.uint64), problem.length
        length, places = problem.left.length, list(problem.places)
        a, b = (np.zeros((len(rows), length), dtype=np.uint64) for _ in "ab")
        a[:, places], b[:, places] = table[:, :count], table[:, count : 2 * count]
        c = np.repeat(table[:, 2 * count :], len(rows), axis=1)
        engine: Engine = "numpy" if compiler() is None else "compiled"
        one, other = (simulate(a, b.T, c, plan, engine=engine) for plan in (self.left, self.right))
        differs = one != other
        for i, j in np.argwhere(differs):
            differs[i, j] = not same_answer(self.left.d, int(one[i, j]), int(other[i, j]))
        return np.asarray(differs, dtype=np.bool_)

    def _found_by_solver(self, length: int) -> bool:
        """Whether solvers find a difference. At a large K they are asked only if they find one at a smaller K with the
        same remainder modulo the tile."""
        small = self.tile + length % self.tile
        if length <= max(WHOLE, small):
            return self._differ_by_solver(length)
        if self.length is None or not self._fits(small) or not self._differ_by_solver(small):
            return False
        if self._differ_again(length):
            return True
        self._forget()
        return self._differ_by_solver(length)

    def _differ_by_solver(self, length: int) -> bool:
        for places in places_asked(self.left, self.right, length)[:4]:
            problem = self._problem(length, places)
            outcome = distinguish(problem, self._remaining(BRIEF), small=True)
            answers = [answer for step in outcome.steps for answer in step.answers]
            self.proof.tried += [str(answer) for answer in answers if answer.status == "unknown"]
            if outcome.witnesses:
                self._different(problem, outcome.witnesses[0])
                return True
        return False

    def _check(self) -> None:
        """Raises FaultError if plans that were proved equal differ on matrices or samples."""
        ground = self.proof.ground
        assert ground is not None
        lengths = [self.length or 0]
        if (multiples := ground.multiples) != 0:
            some = {multiples, 3 * multiples, math.lcm(multiples, self.tile)}
            lengths = [k for k in sorted(some) if k <= LONGEST and self._fits(k)]
        for length in lengths:
            for places in places_asked(self.left, self.right, length)[: 4 if length <= LONG else 0]:
                problem = self._problem(length, places)
                if np.any(replay(problem, _rows(problem, CHECKING)).differs):
                    raise self._contradiction(length)
            if not matrices_agree(self.left, self.right, length):
                raise self._contradiction(length)

    def _contradiction(self, length: int) -> FaultError:
        names = f"{self.left.reference} and {self.right.reference}"
        return FaultError(f"{names} were proved equal, and differ at K = {length}: this is a fault of mmaprobe")


def _power(fmt: Format, exponent: int, halves: int = 2) -> int:
    """The pattern of 2^exponent, or of 3/2 of it (`halves` = 3); 0 where the format has no such normal number."""
    if not (fmt.emin <= exponent <= fmt.emax and fmt.fraction):
        return 0
    return power_pattern(fmt, 1, exponent) + (halves - 2 << fmt.fraction - 1 + fmt.padding)


def _with(zeros: tuple[int, int], length: int, place: int | None, other: tuple[int, int, int]) -> Row:
    """A row of zeros for a and b but at one place, where they are those of `other`, its third number is c."""
    sides = [[one if k == place else zero for k in range(length)] for zero, one in zip(zeros, other, strict=False)]
    return *sides[0], *sides[1], other[2]


def _replayed(problem: Problem, row: Row) -> Witness | None:
    """The witness of a row, None where the results are the same."""
    result = replay(problem, [row])
    if not result.differs[0]:
        return None
    return Witness(problem.layout.split(row), int(result.left[0]), int(result.right[0]))


def model_reference(plan: Plan, length: int) -> str:
    """The reference of the model that a plan is at K = `length`."""
    return f"{PLAN}{plan.reference}@length={length}"


def _alike(what: str, multiples: int, one: Unit, other: Unit, zero: bool = False) -> Ground | None:
    """A ground for `what` and `multiples`, if two units have the same normal form: as they are, or, up to `WHOLE`
    products, with loops written out and exact roundings left out. `zero`: for every c other than -0; their results must
    then never be -0 either."""
    inputs = [(unit.a, unit.b, unit.c, unit.scale, unit.scale_block) for unit in (one, other)]
    if inputs[0] != inputs[1]:
        return None
    if not zero and normal(one.result) == normal(other.result):
        return Ground(f"{what} one normal form", multiples)
    if not zero and normal(read_once(one)) == normal(read_once(other)):
        return Ground(f"{what} one normal form, where results so far are read as they are", multiples)
    if one.length > WHOLE:
        return None
    form = merged_after_zero if zero else merged
    try:
        left, right = form(one), form(other)
        alike = left is not None and right is not None and normal(left) == normal(right)
    except RecursionError:  # loops written out are too many steps within one another: the rule says nothing
        alike = False
    return Ground(f"{what} one normal form, without roundings that lose nothing", multiples) if alike else None


def _ordered(stage: Several) -> Several:
    """The stage with its sums added in order, if that gives the same: at most three in pairs, at most two backwards."""
    ways = len(stage.at) + 1 if isinstance(stage, Uneven) else stage.ways
    return replace(stage, order="sequential") if ways <= (2 if stage.order == "backwards" else 3) else stage


def _same_inputs(one: Plan, other: Plan) -> bool:
    return all(getattr(one, name) == getattr(other, name) for name in ("a", "b", "c", "scale", "scale_block"))


def _conversions(plan: Plan) -> tuple[Rounding | None, ...]:
    return plan.convert_a, plan.convert_b


def _rows(problem: Problem, seed: int, count: int = ROWS) -> list[Row]:
    return list(map(tuple, sample_rows(problem.layout, count, seed).tolist()))


def _magnitudes(problem: Problem, left: Any, right: Any) -> Any:
    """The bits of two results other than the sign, combined by OR: zero if both results are zeros."""
    return (left | right) & (problem.left.d.sign_bit - 1)


def _on_rows(problem: Problem) -> Row | None:
    """A shrunk row on which the plans differ, searched for with single inputs. A row whose results are not both zeros
    is preferred."""

    def weighty(result: Replay) -> Patterns:
        return np.asarray(_magnitudes(problem, result.left, result.right) != 0, dtype=np.uint64)

    rows = _rows(problem, SEED)
    result = replay(problem, rows)
    differing = np.flatnonzero(result.differs)
    better = differing[weighty(result)[differing] != 0]
    if len(better):
        return shrink(problem, rows[int(better[0])], weighty)
    return shrink(problem, rows[int(differing[0])]) if len(differing) else None


def places_asked(left: Plan, right: Plan, length: int) -> list[tuple[int, ...]]:
    """Sets of a few places of K, on both sides of where one of the plans divides it; for a short K also the set of all
    places."""
    marks = sorted(k for k in {0, 1, *_cuts(left, length), *_cuts(right, length), length - 1} if 0 <= k < length)
    near = marks if len(marks) <= 8 else [*marks[:5], *marks[-3:]]
    sets = [group for count in (1, 2, 3) for group in combinations(near, count)]
    few = sets if len(sets) <= SETS else sets[:: -(-len(sets) // SETS)]
    many = dict.fromkeys((tuple(near), tuple(range(length)) if length <= EVERY else ()))
    return [*few, *(places for places in many if len(places) > 3)]


def _cuts(plan: Plan, length: int) -> Iterator[int]:
    for product in plan.sums:
        yield from _cuts_of(product.stage, length)


def _cuts_of(stage: Stage, length: int) -> Iterator[int]:
    if isinstance(stage, Runs):
        yield from (run.start.offset for run in stage.spans(Span.of(length)))
    size = stage.every if isinstance(stage, (Promoted, Turns)) else stage.period
    if isinstance(stage, Interleaved):
        size = stage.grain
    if isinstance(stage, (Interleaved, Lanes, Swizzled)):  # where each of its sums or passes begins
        ways = stage.lanes if isinstance(stage, Lanes) else stage.ways
        yield from range(0, ways * stage.grain, stage.grain)
    yield from (size - 1, size)
    for part in stage.parts:
        yield from _cuts_of(part, length)


def _most(stage: Stage) -> int:
    """The most products that a stage, or a part of it, adds without halving them; 0 where nothing is halved."""
    own = stage.longest if isinstance(stage, Halves) else 0
    return max((own, *map(_most, stage.parts)))


def matrices_agree(left: Plan, right: Plan, length: int) -> bool:
    """Whether two plans give the same results for random matrices (12 x K and K x 12); all NaNs are equal."""
    rng = np.random.default_rng(CHECKING)
    sides = [
        from_numbers(np.ldexp(rng.standard_normal(shape), rng.integers(-3, 4, shape)), fmt, "nearest_even")
        for fmt, shape in ((left.a, (12, length)), (left.b, (length, 12)), (left.c, (12, 12)))
    ]
    c = sides[2] if left.addend and right.addend else None
    one, other = (simulate(sides[0], sides[1], c, plan, engine="numpy").ravel() for plan in (left, right))
    return all(same_answer(left.d, int(one[k]), int(other[k])) for k in np.flatnonzero(one != other))
