"""Proof that two plans are equal, for one K or for every K that is a multiple of a tile; or an input on which they
differ.

Two plans are proved equal for one K by a common normal form of their expressions; for every multiple of a number of
products by induction: both plans repeat a step that adds this number of products to a sum; the steps are equal from any
sum (by normal form, or proved like units), the sums start from the same value, and the same steps follow the last sum.
Two stages that differ only in an inner stage are equal if the inner stages are equal for the numbers of products that
they take.

For a difference, inputs with few nonzero products, with all, or with zeros alone, are tried at the smallest K first,
then replayed at the K that is printed, where others are tried, too.
Solvers are asked about many products only after a difference with few products."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mmaprobe.documents.parts import Verdict
from mmaprobe.queries.equality.staged import prove
from mmaprobe.queries.kernel.equality.plan_units import (
    AtLength,
    Form,
    Part,
    Steps,
    Tails,
    read_alike,
    same_forms,
    units_of,
)
from mmaprobe.queries.kernel.equality.plans import PlansAgree, same_frames, same_sums, same_tails, same_units
from mmaprobe.queries.kernel.equality.stages import same_around, same_bodies, same_parts, same_steps
from mmaprobe.queries.kernel.integers.every import every_product
from mmaprobe.queries.kernel.integers.factors import FactorsAlike, factors_of, same_factors, same_integers
from mmaprobe.queries.kernel.questions.problem import Placed, Problem
from mmaprobe.queries.kernel.theorem import RuleError, Theorem, goal_of
from mmaprobe.queries.order.probe import power_pattern
from mmaprobe.queries.plans.why import lines_of
from mmaprobe.queries.properties.bound import proved
from mmaprobe.queries.search.distinguish import Options, distinguish
from mmaprobe.queries.search.samples import sample_rows
from mmaprobe.queries.search.witness import (
    ReplayedRows,
    Row,
    Witness,
    confirmed_witness,
    differs_on,
    replay,
    row_with,
    shrink,
    shrink_rows,
)
from mmaprobe.queries.tactics.records import Proof
from mmaprobe.queries.tactics.settling import Settled, result_or_none
from mmaprobe.smtmodel.arithmetic.formats import Format
from mmaprobe.smtmodel.base.errors import FaultError, ParameterError
from mmaprobe.smtmodel.base.libraries import compiler
from mmaprobe.smtmodel.base.wording import counted
from mmaprobe.smtmodel.evaluate.batch import Patterns
from mmaprobe.smtmodel.evaluate.model import Model
from mmaprobe.smtmodel.evaluate.numbers import from_numbers, same_results
from mmaprobe.smtmodel.nodes import Constant
from mmaprobe.smtmodel.plans import Parted, Plan, Stage
from mmaprobe.smtmodel.plans.gemm import Engine, simulate
from mmaprobe.smtmodel.plans.lowering import unit_of_plan
from mmaprobe.smtmodel.plans.partitions import Halves
from mmaprobe.smtmodel.plans.stages import Then, parts_of
from mmaprobe.smtmodel.tables.reference import PLAN
from mmaprobe.smtmodel.units.unit import LONGEST, Unit

ROWS = 1024  # inputs for each set of places
LONG = 256  # K above which samples are matrices of SIDE rows and columns instead
SIDE = 48
SHRINKING = 10.0  # seconds for shrinking an input found by matrices
SETS = 24  # sets of places, at most
SMALLER = 8  # lengths of the longest unit: the largest K of the search for a smaller difference
MULTIPLES = 4  # multiples of the tile: the largest K of the search for a difference if no K is asked
BRIEF = 0.2  # share of the remaining time for one query with few products
WHOLE = 128  # K up to which solvers are asked about all products, and loops are written out
NONE = f"inputs that differ: no K up to {LONGEST} is known that both plans take"
SEED, CHECKING = 1, 20  # seeds of samples, and of the samples that check a verdict


@dataclass
class PlanProof:
    """The outcome for two plans. `length`: the K asked, or the K of the difference found; `problem`: the problem of the
    witness; `solved`: the proofs by solvers."""

    left: Plan
    right: Plan
    length: int | None = None
    theorem: Theorem | None = None
    problem: Placed | None = None
    witness: Witness | None = None
    solved: list[Proof] = field(default_factory=list)
    tried: list[str] = field(default_factory=list)
    seconds: float = 0.0
    interrupted: bool = False

    @property
    def verdict(self) -> Verdict:
        """Equal, if the theorem is about these plans and the K asked; different, if the witness shows a difference when
        it is replayed on the plans' units for its K; else unknown."""
        sides = self.left, self.right
        if (goal := self.goal) is not None:
            return "equal" if (goal.left, goal.right) == sides and goal.covers(self.length) else "unknown"
        if self.witness is None or self.problem is None or self.length is None:
            return "unknown"
        units = tuple(unit_of_plan(plan, self.length) for plan in sides)
        theirs = (self.problem.left.unit, self.problem.right.unit) == units
        return "different" if theirs and _differs(self.problem, self.witness.operands.every) else "unknown"

    @property
    def goal(self) -> PlansAgree | None:
        """The goal of the theorem; None without a theorem."""
        return None if self.theorem is None else goal_of(self.theorem, PlansAgree, "the verdict")

    @property
    def multiples(self) -> int:
        """The number m for which the plans are proved equal for every K that is a multiple of m; 0 if they are proved
        equal for one K only, or not at all."""
        return 0 if self.goal is None else self.goal.multiples

    @property
    def rules(self) -> list[str]:
        """The rules that made the theorem, in words."""
        return [] if self.theorem is None else list(lines_of(self.theorem))

    @property
    def is_rewritten(self) -> bool:
        """Whether a theorem was proved without lemmas about scale factors."""
        return self.theorem is not None and not any(isinstance(x.goal, FactorsAlike) for x in self.theorem.walk())

    @property
    def proofs(self) -> tuple[Proof, ...]:
        """The proofs by solvers on which the theorem rests."""
        used = [] if self.theorem is None else list(self.theorem.walk())
        return tuple(proof for proof in self.solved if proof.theorem in used)


def prove_plans(
    left: Plan, right: Plan, length: int | None = None, options: Options | None = None, confirm: bool = True
) -> PlanProof:
    """Prove two plans equal for K = `length`, or, if `length` is None, for every multiple of a tile; or find an input
    on which they differ. `confirm`: whether the proofs by solvers are cross-checked by another solver.

    An interrupt ends the work. Raises ParameterError for plans that cannot be compared, or for a K that one of them
    does not take, and FaultError if an evaluation contradicts what was proved.
    """
    return _Prover(left, right, length, options or Options(), confirm).run()


def with_one_addend(left: Plan, right: Plan) -> tuple[Plan, Plan]:
    """Two plans, the second one with the first one's format of c if neither reads c: no result depends on it."""
    return left, right if left.addend or right.addend else replace(right, c=left.c)


class _Prover:
    def __init__(self, left: Plan, right: Plan, length: int | None, options: Options, confirm: bool) -> None:
        left, right = with_one_addend(left, right)
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
        if length is not None and length > LONGEST:
            raise ParameterError("length", f"{length} products are too many; at most {LONGEST}")
        self.lengths = [length] if length else self._searched()
        for k in self.lengths[:1]:
            self._problem(k, (0,))  # raises ParameterError for formats or a K that do not fit
        if left.addend != right.addend:
            reads, other = (left, right) if left.addend else (right, left)
            hint = "models of one K (plan:NAME@length=K) are compared where c is +0"
            raise ParameterError("c", f"{reads.reference} reads c, and {other.reference} does not; {hint}")

    def run(self) -> PlanProof:
        try:
            self._decide()
        except KeyboardInterrupt:
            self.proof.interrupted = True
            if self.length is not None and self.proof.length != self.length:
                self._forget()
        self.proof.seconds = self.options.clock() - self.start
        if self.proof.verdict == "equal" and not self.proof.interrupted:
            self._check()
        return self.proof

    def _decide(self) -> None:
        """Try the cheap rules first; if none decides, search for a difference and try induction by solvers; last, for a
        small K, ask solvers about all products."""
        length = self.length
        if self._equal(self._for_all(by_solver=False)) or self._equal(self._by_factors()):
            return None
        if length and self._equal(result_or_none(same_integers, self.left, self.right, length)):
            return None
        if length and (theorem := self._at(length)) is not None:
            self._equal(same_units(self.left, self.right, length, theorem))
            return None
        if length and self._equal(result_or_none(every_product, self.left, self.right, length)):
            return None
        if length is None:
            if any(map(self._differ_on_samples, self.lengths)):
                return self._smaller()
        else:
            # few tiles show a difference faster; it is then moved to the K asked
            few = [self.tile, *([2 * self.tile] if 2 * self.tile <= LONG < length else [])]
            again = length % self.tile == 0 and any(map(self._differ_on_samples, few)) and self._differ_again(length)
            if again or self._differ_on_samples(length):
                return None
            self._forget()
        if self._equal(self._for_all()) or (length and self._equal(self._by_tails(length))):
            return None
        if any(map(self._found_by_solver, self.lengths[:MULTIPLES])):
            return None
        searched = ", ".join(map(str, self.lengths))
        self._note(f"a few products that differ, at K = {searched}: none found" if searched else NONE)
        return self._whole(length) if length and length <= WHOLE else None

    def _searched(self) -> list[int]:
        """Every K at which a difference is searched for if none is asked: multiples of the tile or, if it is too long,
        of the tiles of single stages, as far as both plans take them."""
        if self.tile <= LONGEST:
            numbers = [*range(1, MULTIPLES + 1), *(-(-k // self.tile) for k in self._halved())]
            return [n * self.tile for n in dict.fromkeys(numbers) if n * self.tile <= LONGEST]
        stages = (stage for plan in (self.left, self.right) for total in plan.sums for stage in total.stage.walk())
        some = {n * stage.period for stage in stages for n in range(1, MULTIPLES + 1)}
        return [k for k in sorted(some) if k <= LONGEST and self._fits(k)]

    def _smaller(self) -> None:
        """Search for a difference at a smaller K, a multiple of the longest unit's length. It replaces the difference
        found so far."""
        unit = max(model.length for plan in (self.left, self.right) for model in plan.models)
        length = self.proof.length or 0
        lengths = range(unit, min(length, (SMALLER + 1) * unit), unit)
        any(self._differ_on_samples(k) for k in lengths if self._fits(k))

    def _halved(self) -> Iterator[int]:
        """Numbers of products that some stage cuts into halves: the period of the stage says nothing about them."""
        sums = (product.stage for plan in (self.left, self.right) for product in plan.sums)
        every = ([halves.longest for stage in total.walk() if (halves := parts_of(stage, Halves))] for total in sums)
        yield from (k for most in sorted({max(some) for some in every if some}) for k in (most + 1, 2 * most))

    def _fits(self, length: int) -> bool:
        """Whether both plans take `length` products."""
        try:
            self._units(length)
        except ParameterError:
            return False
        return True

    def _equal(self, theorem: Theorem | None) -> bool:
        """Whether a theorem answers the question; if so, it becomes the theorem of the proof."""
        if theorem is None or not goal_of(theorem, PlansAgree, "a proof").covers(self.length):
            return False
        self.proof.theorem = theorem
        return True

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
        return replace(self.options, timeout=self.options.left(self.start, share))

    # -- equal

    def _for_all(self, by_solver: bool = True) -> Theorem | None:
        """The theorem that the plans agree for every multiple of some number of products; None if no rule shows it.
        `by_solver`: whether solvers may prove the steps of an induction equal."""
        self.by_solver = by_solver
        if not same_frames(self.left, self.right):
            return None
        theorems = [
            self._stages(one.stage, other.stage)
            or (self._from_zero(one.stage, other.stage) if one.start == Constant() else None)
            for one, other in zip(self.left.sums, self.right.sums, strict=True)
        ]
        sums = [theorem for theorem in theorems if theorem is not None]
        return same_sums(self.left, self.right, sums) if len(sums) == len(theorems) else None

    def _by_factors(self) -> Theorem | None:
        """The theorem that two plans agree although they compute scale factors in different ways, by lemmas about the
        factors; None if no rule shows it."""
        settle = Settled(self._remaining(0.5), self.confirm, needed=False)
        with suppress(RuleError):
            sides = [side for side in range(2) if factors_of(self.left)[side] != factors_of(self.right)[side]]
            lemmas = proved([FactorsAlike(self.left, self.right, side) for side in sides], settle)
            return same_factors(self.left, self.right, lemmas)
        return None

    def _by_tails(self, length: int) -> Theorem | None:
        """The theorem that two plans with the same tiles agree at a K: the additions of the products left over are
        proved equal."""
        part = Tails(length)
        if not same_frames(self.left, self.right) or (units := self._units_of(part)) is None:
            return None
        rest = counted(units[0].length, "product")
        tail = self._agree(part, units, f"{rest} left over, from any sum that tiles make")
        return None if tail is None else same_tails(self.left, self.right, length, tail)

    def _stages(self, one: Stage, other: Stage) -> Theorem | None:
        """The theorem that two stages agree from any running sum; None if no rule shows it."""
        if one == other and read_alike(self.left, self.right):
            return same_parts(self.left, self.right, one, other, None)
        theorem = self._by_parts(one, other) or self._by_bodies(one, other) or self._by_induction(one, other)
        if theorem is None:
            self._note("rules for every K: none compares the stages that differ")
        return theorem

    def _by_parts(self, one: Stage, other: Stage) -> Theorem | None:
        if not same_around(self.left, self.right, one, other):
            return None
        assert isinstance(one, Parted)
        assert isinstance(other, Parted)
        if (bodies := self._stages(one.body, other.body)) is None:
            return None
        # refused where the parts of the two stages have different numbers of products
        return result_or_none(same_parts, self.left, self.right, one, other, bodies)

    def _by_bodies(self, one: Stage, other: Stage) -> Theorem | None:
        """The theorem that two sequences of stages agree; None if no rule shows it."""
        if not isinstance(one, Then) or not isinstance(other, Then) or len(one.bodies) != len(other.bodies):
            return None
        theorems = [self._stages(*pair) for pair in zip(one.bodies, other.bodies, strict=True)]
        bodies = [theorem for theorem in theorems if theorem is not None]
        return same_bodies(self.left, self.right, one, other, bodies) if len(bodies) == len(theorems) else None

    def _by_induction(self, one: Stage, other: Stage) -> Theorem | None:
        """The theorem that two stages that each repeat a step agree; None if no rule shows it."""
        part = Steps(one, other)
        if (units := self._units_of(part)) is None or units[0].d != units[1].d:
            return None
        step = self._agree(part, units, f"a step of {units[0].length} products from any sum so far", self.by_solver)
        return None if step is None else same_steps(self.left, self.right, one, other, step)

    def _from_zero(self, one: Stage, other: Stage) -> Theorem | None:
        """The theorem that two stages that each repeat a step agree from +0, as no running sum becomes -0; None if no
        rule shows it."""
        part = Steps(one, other)
        step = None if (units := self._units_of(part)) is None else self._form(part, units, "positive")
        return None if step is None else same_steps(self.left, self.right, one, other, step)

    def _units_of(self, part: Part) -> tuple[Unit, Unit] | None:
        """The units of a part of the plans; None if there are none."""
        return result_or_none(units_of, "a proof", self.left, self.right, part)

    def _agree(self, part: Part, units: tuple[Unit, Unit], what: str, by_solver: bool = True) -> Theorem | None:
        """The theorem that the units of a part agree, by their forms or by solvers; None if neither shows it. `what`:
        the units, in words."""
        if (theorem := self._forms(part, units)) is not None or not by_solver:
            return theorem
        name = "step" if isinstance(part, Steps) else "tail"
        left, right = (Model(f"{name} of {unit.reference}", unit) for unit in units)
        proof = prove(Problem(left, right), self._remaining(0.5), self.confirm)
        self.proof.solved.append(proof)
        if proof.theorem is None:
            self._note(f"{what}: {proof.verdict}")
        return proof.theorem

    def _forms(self, part: Part, units: tuple[Unit, Unit]) -> Theorem | None:
        """The theorem that the units of a part agree, by the first normal form in common."""
        forms: tuple[Form, ...] = ("plain", "read", "joined")
        return next((theorem for form in forms if (theorem := self._form(part, units, form)) is not None), None)

    def _form(self, part: Part, units: tuple[Unit, Unit], form: Form) -> Theorem | None:
        """The theorem that the units of a part agree, by one normal form; loops are written out up to `WHOLE`
        products."""
        if form in ("joined", "positive") and units[0].length > WHOLE:
            return None
        return result_or_none(same_forms, self.left, self.right, part, form)

    def _at(self, length: int) -> Theorem | None:
        """The theorem that both plans' units for a K agree, by normal forms."""
        return self._forms(AtLength(length), self._units(length))

    def _note(self, text: str) -> None:
        if text not in self.proof.tried:
            self.proof.tried.append(text)

    def _whole(self, length: int) -> None:
        """Ask solvers whether the plans are equal at a K for all inputs, as for units."""
        proof = prove(Problem(*self._models(length)), self._remaining(), self.confirm)
        self.proof.solved.append(proof)
        self.proof.tried += [str(answer) for answer in proof.tried if answer.status == "unknown"]
        if proof.theorem is not None:
            self._equal(same_units(self.left, self.right, length, proof.theorem))
        elif proof.witness is not None:
            self._different(self._problem(length, range(length)), proof.witness)

    # -- different

    def _different(self, problem: Placed, witness: Witness) -> None:
        self.proof.witness, self.proof.problem = witness, problem
        self.proof.length = problem.left.length

    def _forget(self) -> None:
        """Discard a difference at another K: it does not answer the question about the K asked."""
        self.proof.witness, self.proof.problem = None, None
        self.proof.length = self.length

    def _differ_on_samples(self, length: int) -> bool:
        """Whether the plans differ on samples, of which one becomes the witness. A difference in more than the sign of
        a zero is preferred."""
        if length not in self.none and (self._at(length) or not self._sampled(length)):
            self.none.add(length)
        return length not in self.none

    def _sampled(self, length: int) -> bool:
        """Whether the plans differ on samples of `length` products, at a few places or, last, at all."""
        zeros: list[tuple[Placed, Witness]] = []
        for places in dict.fromkeys((*places_asked(self.left, self.right, length), tuple(range(length)))):
            problem = self._problem(length, places)
            row = self._on_matrices(problem) if length > LONG else _on_rows(problem)
            if row is not None:
                if len(places) == length:
                    problem, row = self._at_nonzero(problem, row)
                witness = self._witness(problem, row)
                if _magnitudes(problem, witness.left, witness.right):
                    self._different(problem, witness)
                    return True
                zeros.append((problem, witness))
        for problem, witness in zeros[:1]:
            self._different(problem, witness)
        return bool(zeros) or self._differ_in_zeros(length)

    def _at_nonzero(self, problem: Placed, row: Row) -> tuple[Placed, Row]:
        """A row without its products +0 * +0, and the problem about the places of the others."""
        count = problem.length
        kept = [k for k in range(count) if row[k] or row[count + k]] or [0]
        few = (*(row[k] for k in kept), *(row[count + k] for k in kept), *row[2 * count :])
        return self._problem(problem.left.length, [problem.places[k] for k in kept]), few

    def _differ_in_zeros(self, length: int) -> bool:
        """Whether the plans differ on inputs of zeros. Other samples have products +0 at places not asked, and a sum of
        zeros is then +0. Here all products, or all but one, are -0 (-0 * +0, or +0 * -1, as units may read -0 as +0). c
        is a zero or, if all products are -0, also a number of either sign with the pattern 1 or 3. With the least
        normal number as c, the one product may also leave a sum below this number that a unit flushes to -0."""
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
        rows = list(dict.fromkeys(row_with(row, dict.fromkeys(problem.layout.unread, 0)) for row in rows))
        many = length > LONG
        differing = np.flatnonzero(np.diag(self._products(problem, rows)) if many else replay(problem, rows).differs)
        if not len(differing):
            return False
        self._different(problem, self._witness(problem, rows[int(differing[0])]))
        return True

    def _witness(self, problem: Placed, row: Row) -> Witness:
        """The witness of a row on which the plans differ. Raises FaultError if the replay shows no difference."""
        witness = confirmed_witness(problem, row, traced=False)
        if witness is None:
            raise FaultError(f"matrices and single inputs disagree at K = {problem.left.length}: a fault of mmaprobe")
        return witness

    def _differ_again(self, length: int) -> bool:
        """Whether the input found at a smaller K shows a difference at the K `length` too, with its products at the
        corresponding places asked here, or at their own places. If the difference is in the sign of a zero, zeros are
        tried again at this K."""
        smaller, problem = self.proof.witness, self.proof.problem
        if smaller is None or problem is None or problem.left.length >= length:
            return False
        if not _magnitudes(problem, smaller.left, smaller.right):
            return self._differ_in_zeros(length)
        asked = (places_asked(self.left, self.right, k) for k in (problem.left.length, length))
        instead = dict(zip(*asked, strict=False)).get(problem.places, ())
        for places in dict.fromkeys((instead, problem.places)):
            if len(places) != len(problem.places):
                continue
            moved = self._problem(length, places)
            witness = confirmed_witness(moved, smaller.operands.every, traced=False)
            if witness is not None and _magnitudes(moved, witness.left, witness.right):
                self._different(moved, witness)
                return True
        return False

    def _on_matrices(self, problem: Placed) -> Row | None:
        """A shrunk row on which the plans differ, for a large K: the search multiplies matrices, each row of A with
        each column of B."""
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
        """Whether the plans differ for the a and c of each row with the b of every row (rows x rows)."""
        table, count = np.array(rows, dtype=np.uint64), problem.length
        length, places = problem.left.length, list(problem.places)
        a, b = (np.zeros((len(rows), length), dtype=np.uint64) for _ in "ab")
        a[:, places], b[:, places] = table[:, :count], table[:, count : 2 * count]
        c = np.repeat(table[:, 2 * count :], len(rows), axis=1)
        engine: Engine = "numpy" if compiler() is None else "compiled"
        one, other = (simulate(a, b.T, c, plan, engine=engine) for plan in (self.left, self.right))
        return ~same_results(one, other, self.left.d)

    def _found_by_solver(self, length: int) -> bool:
        """Whether solvers find a difference. They are asked at a large K only if they find a difference at a smaller K
        with the same remainder modulo the tile."""
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
        """Raises FaultError if plans proved equal differ on matrices or samples."""
        lengths = [self.length] if self.length else []
        if (multiples := self.proof.multiples) != 0:
            some = {multiples, 3 * multiples, math.lcm(multiples, self.tile)}
            lengths = [k for k in sorted(some) if k <= LONGEST and self._fits(k)] or lengths
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
    """The pattern of 2^exponent, or of 3/2 * 2^exponent (`halves` = 3); 0 if the format has no such normal number."""
    if not (fmt.emin <= exponent <= fmt.emax and fmt.fraction):
        return 0
    return power_pattern(fmt, 1, exponent) + (halves - 2 << fmt.fraction - 1 + fmt.padding)


def _with(zeros: tuple[int, int], length: int, place: int | None, other: tuple[int, int, int]) -> Row:
    """A row whose a and b are zeros, except at one place, which has the first two numbers of `other`; c is the
    third."""
    sides = [[one if k == place else zero for k in range(length)] for zero, one in zip(zeros, other, strict=False)]
    return *sides[0], *sides[1], other[2]


_differs = lru_cache(differs_on)  # a proof's verdict is asked for many times


def model_reference(plan: Plan, length: int) -> str:
    """The reference of a plan's model at K = `length`."""
    return f"{PLAN}{plan.reference}@length={length}"


def _rows(problem: Problem, seed: int, count: int = ROWS) -> list[Row]:
    return list(map(tuple, sample_rows(problem.layout, count, seed).tolist()))


def _magnitudes(problem: Problem, left: Any, right: Any) -> Any:
    """The bits of two results other than the sign, combined by OR: zero if both results are zeros."""
    return (left | right) & (problem.left.d.sign_bit - 1)


def _on_rows(problem: Problem) -> Row | None:
    """A shrunk row on which the plans differ, from a search with single inputs. A row whose results are not both zeros
    is preferred."""

    def weighty(result: ReplayedRows) -> Patterns:
        return np.asarray(_magnitudes(problem, result.left, result.right) != 0, dtype=np.uint64)

    rows = _rows(problem, SEED)
    result = replay(problem, rows)
    differing = np.flatnonzero(result.differs)
    better = differing[weighty(result)[differing] != 0]
    if len(better):
        return shrink(problem, rows[int(better[0])], weighty)
    return shrink(problem, rows[int(differing[0])]) if len(differing) else None


def places_asked(left: Plan, right: Plan, length: int) -> list[tuple[int, ...]]:
    """Sets of a few places of K beside the places at which a plan divides K."""
    marks = sorted(k for k in {0, 1, *_cuts(left, length), *_cuts(right, length), length - 1} if 0 <= k < length)
    near = marks if len(marks) <= 8 else [*marks[:5], *marks[-3:]]
    sets = [group for count in (1, 2, 3) for group in combinations(near, count)]
    few = sets if len(sets) <= SETS else sets[:: -(-len(sets) // SETS)]
    return [*few, *([tuple(near)] if len(near) > 3 else [])]


def _cuts(plan: Plan, length: int) -> Iterator[int]:
    for stage in (stage for product in plan.sums for stage in product.stage.walk()):
        size = stage.period
        if isinstance(stage, Parted):
            yield from stage.partition.starts(length, stage)
            size = stage.partition.turn(stage)
        yield from (size - 1, size)


def matrices_agree(left: Plan, right: Plan, length: int) -> bool:
    """Whether two plans give the same results for random matrices (12 x K and K x 12); all NaNs are equal."""
    rng = np.random.default_rng(CHECKING)
    sides = [
        from_numbers(np.ldexp(rng.standard_normal(shape), rng.integers(-3, 4, shape)), fmt, "nearest_even")
        for fmt, shape in ((left.a, (12, length)), (left.b, (length, 12)), (left.c, (12, 12)))
    ]
    c = sides[2] if left.addend and right.addend else None
    one, other = (simulate(sides[0], sides[1], c, plan, engine="numpy") for plan in (left, right))
    return bool(same_results(one, other, left.d).all())
