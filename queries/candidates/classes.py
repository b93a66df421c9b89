"""Equivalence classes of candidates: models with the same results so far are proved equal, or distinguished."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace

from mmaprobe.queries.equality.staged import prove
from mmaprobe.queries.kernel.questions.problem import Candidates, Problem, evaluate_on, symbolic_operands
from mmaprobe.queries.search.distinguish import Options
from mmaprobe.queries.search.witness import Row, differs_on
from mmaprobe.queries.tactics.records import Proof
from mmaprobe.smtmodel.base.errors import OutOfTimeError
from mmaprobe.smtmodel.base.progress import Pieces
from mmaprobe.smtmodel.carriers.terms import TermCarrier
from mmaprobe.smtmodel.evaluate.model import Model
from mmaprobe.smtmodel.units.unit import Memo

AHEAD = 16  # pairs for each thread of the pool that are collected before the first one is asked
WHY = "alike by construction"  # the reason for two models with the same expression or the same term


@dataclass
class Equality:
    """A model, and why it is equal to the first model of its class. `confirmed`: confirmations by other engines."""

    model: Model
    why: str
    confirmed: list[str] = field(default_factory=list)


@dataclass
class Partition:
    """Models partitioned into equivalence classes (each member with its reason), vectors that distinguish the classes,
    and the pairs left open."""

    classes: list[list[Equality]] = field(default_factory=list)
    witnesses: list[Row] = field(default_factory=list)
    unknown: list[tuple[Model, Model]] = field(default_factory=list)


def partition(
    models: Sequence[Model], options: Options, confirm: bool = False, deadline: float | None = None
) -> Partition:
    """`partition_sets` for one set of models."""
    return partition_sets([models], options, confirm, deadline)[0]


def partition_sets(
    sets: Sequence[Sequence[Model]],
    options: Options,
    confirm: bool = False,
    deadline: float | None = None,
    interrupt: Callable[[], None] | None = None,
) -> list[Partition]:
    """Prove the models of each set equal or find vectors that distinguish them. A model is compared with the first
    model of every class of its set.

    All NaNs are equal. Models built into the same term need no solver. `options.timeout` is for one pair alone on the
    machine; each of several pairs asked at the same time gets `pool.sharing` times as long. After the `deadline` (of
    time.monotonic) nothing more is asked, and undecided pairs are open. `interrupt` is called at an interrupt, which
    then counts as the deadline; without `interrupt`, KeyboardInterrupt is raised.

    In each round the first model without a class is compared with all other models without a class, as many at a time
    as the pool has threads. Results are taken in order, so that the outcome does not depend on which pair is answered
    first. The terms of a set are built when its turn comes, for enough sets at a time to occupy every thread.
    """
    return _Partitioning(sets, options, confirm, deadline, interrupt).run()


@dataclass(frozen=True)
class _Pair:
    """Models with the same term, to be compared with the first model of a class. `number`: the number of their set."""

    number: int
    members: list[Equality]
    group: list[Model]

    @property
    def models(self) -> tuple[Model, Model]:
        return self.members[0].model, self.group[0]

    @property
    def problem(self) -> Problem:
        left, right = (model.any_nan for model in self.models)
        return Candidates(left, right)


class _Partitioning:
    def __init__(
        self,
        sets: Sequence[Sequence[Model]],
        options: Options,
        confirm: bool,
        deadline: float | None,
        interrupt: Callable[[], None] | None,
    ) -> None:
        self.options, self.confirm, self.deadline, self.interrupt = options, confirm, deadline, interrupt
        self.partitions = [Partition() for _ in sets]
        self.sets = sets

    def run(self) -> list[Partition]:
        enough, pairs = AHEAD * self.options.pool.threads, 0
        self.left: dict[int, list[list[Model]]] = {}  # number of a set -> its groups of models without a class
        for number, models in enumerate(self.sets):
            self.left[number] = self._grouped_by_term(models)
            pairs += len(self.left[number]) - 1
            if pairs >= enough or number == len(self.sets) - 1:
                self._rounds()
                self.left, pairs = {}, 0
        return self.partitions

    def _rounds(self) -> None:
        """Compare models of the sets in `left`, until each model has a class."""
        while any(self.left.values()):
            pairs = []
            for number, groups in self.left.items():
                for first, *twins in groups[:1]:
                    members = [Equality(first, ""), *(Equality(model, WHY) for model in twins)]
                    self.partitions[number].classes.append(members)
                    pairs += [_Pair(number, members, group) for group in groups[1:]]
            self.left = {number: [] for number in self.left}
            self.pieces = Pieces(self.options.progress, "pairs", len(pairs))
            self._decide(pairs)

    def _decide(self, pairs: list[_Pair]) -> None:
        self.taken = 0
        try:
            self.options.pool.gather(self._prove, pairs, self._take)
        except KeyboardInterrupt:
            if not self._stopped():
                raise
            for pair in pairs[self.taken :]:
                self._take(pair, lambda: None)

    def _stopped(self) -> bool:
        """Handle an interrupt. Returns whether only the questions end; if not, the caller raises the interrupt
        again."""
        if self.interrupt is not None:
            self.interrupt()
            self.deadline = time.monotonic()
        return self.interrupt is not None

    @property
    def _is_late(self) -> bool:
        return self.deadline is not None and time.monotonic() >= self.deadline

    def _grouped_by_term(self, models: Sequence[Model]) -> list[list[Model]]:
        """Models grouped by the term that they build on the same inputs; after the deadline each model is a group."""
        carrier = TermCarrier(maximum="relational")
        operands = symbolic_operands(Problem(models[0], models[0]), carrier)
        groups: dict[object, list[Model]] = {}
        memo: Memo = {}
        for model in models:
            term = None
            try:
                with suppress(OutOfTimeError), carrier.until(self.deadline):
                    term = None if self._is_late else evaluate_on(model, operands, False, memo).d.node
            except KeyboardInterrupt:
                if not self._stopped():
                    raise
            groups.setdefault(model if term is None else term, []).append(model)
        return list(groups.values())

    def _is_distinguished(self, pair: _Pair) -> bool:
        problem = pair.problem
        return any(differs_on(problem, row) for row in self.partitions[pair.number].witnesses)

    def _prove(self, pair: _Pair) -> Proof | None:
        """The proof for a pair; None if a witness already distinguishes its models, or no time is left."""
        left = None if self.deadline is None else self.deadline - time.monotonic()
        if (left is not None and left <= 0) or self._is_distinguished(pair):
            return None
        limit = self.options.timeout
        if limit is not None:
            limit *= self.options.pool.sharing(self.options.solver)
        if left is not None:  # seconds of this machine, which the threads share
            left *= self.options.pool.width / self.options.pool.threads
            limit = min(left, limit or left)
        return prove(
            pair.problem,
            replace(self.options, timeout=limit, deadline=self.deadline, progress=self.pieces),
            self.confirm,
        )

    def _take(self, pair: _Pair, result: Callable[[], Proof | None]) -> None:
        partition = self.partitions[pair.number]
        proof = None if (distinguished := self._is_distinguished(pair)) else result()
        self.pieces.next()
        if proof is not None and proof.interrupted:
            raise KeyboardInterrupt
        self.taken += 1
        if proof is not None and proof.verdict == "equal":
            why = f"proved by {', '.join(proof.engines) or 'construction'}"
            pair.members.extend(Equality(model, why, proof.confirmations) for model in pair.group)
            return
        self.left[pair.number].append(pair.group)
        if proof is not None and proof.witness is not None:
            partition.witnesses.append(proof.witness.operands.every)
        elif not distinguished:
            partition.unknown.append(pair.models)
