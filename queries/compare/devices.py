"""Two devices on the same vectors: where they differ, minimised by asking them again.

A side is a callable that answers vectors, whatever the device. Every difference is asked again before it counts, so
that noise does not count as one, and again after minimisation.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from mmaprobe.queries.compare.observed import evaluate_vectors
from mmaprobe.queries.compare.steady import AGAIN, Answer, AskDevice, spread
from mmaprobe.queries.kernel.questions.problem import Problem
from mmaprobe.queries.search.witness import (
    Row,
    cost_of,
    exercised_features,
    fields_of,
    replay,
    results_differ,
    row_with,
    smaller_rows,
)
from mmaprobe.smtmodel.arithmetic.decode import unpack
from mmaprobe.smtmodel.arithmetic.formats import Format
from mmaprobe.smtmodel.base.errors import MmaprobeError, OutOfTimeError, ParameterError
from mmaprobe.smtmodel.base.progress import Share
from mmaprobe.smtmodel.base.wording import counted
from mmaprobe.smtmodel.carriers.arrays import ArrayCarrier
from mmaprobe.smtmodel.evaluate.batch import to_integers
from mmaprobe.smtmodel.evaluate.model import Model
from mmaprobe.smtmodel.evaluate.operands import Layout, Operands, layout_of, padded
from mmaprobe.smtmodel.inputs.admitted import Compare
from mmaprobe.smtmodel.inputs.signature import Signature
from mmaprobe.smtmodel.inputs.vectors import Vector
from mmaprobe.smtmodel.operand import NAMED

FIRST, LARGEST = 128, 2048  # vectors of the first and of the largest batch: a slow device shows a difference early
REPEATS = 4  # times that a question is repeated before its answer is believed
NOISY_REPEATS = 16  # further repeats for a device that has contradicted itself
TRIES = 2  # vectors of each new kind that are asked again, the easiest to read
ROUNDS = 80  # rounds of reductions of one difference
MOST_CANDIDATES = 512  # reductions put to the devices at a time
KEPT = 512  # answered vectors kept for judging explanations, and as many of those with different answers

Kind = tuple[tuple[str, ...], str, str]
Answered = tuple[Operands[int], Answer, Answer]

_CARRIER = ArrayCarrier()


@dataclass
class ComparedDevice:
    """A device. `model`: the instruction for which its vectors are made; `software`: the device is that model;
    `design`: it is a design in Verilog; `steady`: it always gives the same answer (a model, a recording) and need not
    be asked twice; `closed`: it answers recorded inputs alone; `takes_addend`: whether it can be given c. `ask` gives
    results in order, None for no answer."""

    name: str
    model: Model
    ask: AskDevice
    software: bool = False
    design: bool = False
    steady: bool = False
    closed: bool = False
    asked: int = 0
    noisy: bool = False
    takes_addend: bool = True

    @property
    def addend(self) -> bool:
        """Whether it reads c."""
        return self.takes_addend and self.model.addend

    def results(self, inputs: Sequence[Operands[int]]) -> list[Answer]:
        """The results of inputs of one length, cut into tiles of the model's length."""
        length = self.model.length
        chained = any(len(one.a) > length for one in inputs)
        if chained and not self.addend:
            raise ParameterError("c", f"{self.name} cannot be chained: it does not read c")
        if chained and self.model.c.width != self.model.d.width:
            raise ParameterError(
                "c", f"{self.model.reference} cannot be chained: its result and its addend differ in width"
            )
        return running_results(self._asked, inputs, length, self.model)[-1] if inputs else []

    def _asked(self, inputs: Sequence[Operands[int]]) -> Sequence[Answer]:
        """The results of inputs of the model's length or less."""
        answers = self.ask([self.vector(one) for one in inputs])
        self.asked += len(inputs)
        return answers

    def vector(self, operands: Operands[int]) -> Vector:
        """An input as a vector for the device, with all of its scale factors."""
        return Vector(self.model, replace(operands, rest=padded(operands, self.model).rest))


def compared_model(model: Model) -> ComparedDevice:
    """A model as a device."""

    def ask(vectors: Sequence[Vector]) -> list[Answer]:
        return [row.predicted for row in evaluate_vectors(vectors, model)]

    return ComparedDevice(f"model:{model.reference}", model, ask, software=True, steady=True)


def running_results(
    ask: Callable[[Sequence[Operands[int]]], Sequence[Answer]], inputs: Sequence[Operands[int]], span: int, model: Model
) -> list[list[Answer]]:
    """The addends of inputs of one length, then the results after each span of products: each is the next addend."""
    after: list[list[Answer]] = [[one.c for one in inputs]]
    for start in range(0, len(inputs[0].a), span):
        known = {k: c for k, c in enumerate(after[-1]) if c is not None}
        answers = ask([segment(inputs[k], start, span, c, model) for k, c in known.items()])
        by_number = dict(zip(known, answers, strict=True))
        after.append([by_number.get(k) for k in range(len(inputs))])
    return after


def segment(operands: Operands[int], start: int, length: int, c: int, model: Model) -> Operands[int]:
    """`length` products of a longer input, with an addend of their own."""
    block = model.scale_block
    parts = {
        "product": slice(start, start + length),
        "block": slice(start // block, (start + length) // block),
        "sum": slice(None),
    }
    a, b, _, *rest = (side[parts[NAMED[name].per]] for name, side in operands.sides.items())
    return Operands(a, b, c, tuple(rest))


def differing(problem: Problem, left: Sequence[Answer], right: Sequence[Answer]) -> NDArray[np.bool_]:
    """Where two lists of results differ, by the problem's comparison; False where one is missing."""
    known = np.array([x is not None and y is not None for x, y in zip(left, right, strict=True)], dtype=bool)
    sides = (np.array([value or 0 for value in values], dtype=np.uint64) for values in (left, right))
    return np.asarray(known & results_differ(problem, *sides), dtype=np.bool_)


class Pair:
    """Two sides and the inputs that both take: of the shorter instruction's length, or of a chain's length.

    Raises ParameterError for sides that cannot be compared.
    """

    def __init__(
        self, left: ComparedDevice, right: ComparedDevice, compare: Compare = "bits", length: int | None = None
    ) -> None:
        self.left, self.right = left, right
        self.problem = Problem(left.model, right.model, compare=compare)
        self.length = self.problem.length if length is None else length
        self.layout: Layout = layout_of(self.problem.left, self.length, addend=left.addend and right.addend)

    @property
    def sides(self) -> tuple[ComparedDevice, ComparedDevice]:
        return self.left, self.right

    def ask(self, rows: Sequence[Row]) -> tuple[list[Answer], list[Answer]]:
        inputs = [self.layout.split(row) for row in rows]
        return self.left.results(inputs), self.right.results(inputs)

    def differ(self, left: Sequence[Answer], right: Sequence[Answer]) -> NDArray[np.bool_]:
        return differing(self.problem, left, right)

    def exercised(self, rows: Sequence[Row]) -> list[tuple[tuple[str, ...], tuple[str, ...]]]:
        """The features that each input exercises in the two models; none for a chain of instructions, or where formats
        alone are known."""
        if self.length > self.problem.length or isinstance(self.left.model, Signature):
            return [((), ())] * len(rows)
        return exercised_features(self.problem, replay(self.problem, rows, traced=True))

    def kinds(self, rows: Sequence[Row], left: Sequence[Answer], right: Sequence[Answer]) -> list[Kind]:
        """The kind of each row's difference: the features that the input exercises in either model, and whether the
        results are NaN, infinite or zero."""
        if not rows:
            return []
        sorts = _result_kinds(left, self.left.model.d), _result_kinds(right, self.right.model.d)
        together = [tuple(sorted({name for side in sides for name in side})) for sides in self.exercised(rows)]
        return list(zip(together, *sorts, strict=True))


def _result_kinds(results: Sequence[Answer], fmt: Format) -> list[str]:
    values = unpack(_CARRIER.lanes(np.array([d or 0 for d in results], dtype=np.uint64), fmt.width), fmt)
    named = {"nan": values.is_nan, "inf": values.is_infinite, "zero": values.is_zero}
    flags = {name: to_integers(flag, len(results)) for name, flag in named.items()}
    return [next((name for name, on in flags.items() if on[i]), "") for i in range(len(results))]


@dataclass(frozen=True)
class Difference:
    """An input on which the devices gave different answers, every time. `first`: the input before it was minimised."""

    pair: Pair
    row: Row
    left: int
    right: int
    kind: Kind
    first: Row

    @property
    def operands(self) -> Operands[int]:
        return self.pair.layout.split(self.row)

    @property
    def exercises(self) -> list[str]:
        return sorted({name for side in self.pair.exercised([self.row])[0] for name in side})

    @property
    def instruction(self) -> Vector | None:
        """The input as a vector of the first device's instruction; None where the first device is a chain of
        instructions."""
        parts, length = self.operands, self.pair.problem.length
        if any(parts.a[length:]) or any(parts.b[length:]):
            return None
        return self.pair.left.vector(segment(parts, 0, length, parts.c, self.pair.left.model))


@dataclass(frozen=True)
class Contradiction:
    """A device that answered one input in several ways."""

    side: ComparedDevice
    operands: Operands[int]
    answers: tuple[Answer, ...]


@dataclass
class Comparison:
    """The questions and findings so far. `wanted`: the number of differences of different kinds after which to stop;
    `until`: the time after which no device is asked, in seconds of time.monotonic."""

    wanted: int = 3
    progress: Callable[[str], None] = lambda text: None
    until: float | None = None
    compared: int = 0  # vectors that both devices answered
    different: int = 0  # of these, vectors with different answers (some may be noise)
    differences: list[Difference] = field(default_factory=list)
    contradictions: list[Contradiction] = field(default_factory=list)
    kept: list[Answered] = field(default_factory=list)
    differing: list[Answered] = field(default_factory=list)  # with different answers, for which `kept` had no room
    apart: list[Answered] = field(default_factory=list)  # of recordings without a common input: with one answer each

    @property
    def done(self) -> bool:
        return len(self.differences) >= self.wanted

    def run(self, pair: Pair, rows: Iterable[Row], total: int) -> None:
        """Ask both devices until enough differences are found or the rows (about `total`) are used up. Raises the
        devices' errors and OutOfTimeError; the findings before an error stay.

        A recording is compared with another recording, or with a model, in every row, and all answers are kept, as a
        later row may contradict what the first ones suggest."""
        taken, whole = 0, any(side.closed for side in pair.sides) and all(side.steady for side in pair.sides)
        limit = total if whole else KEPT
        for batch in _batches(rows):
            self._in_time(f"after {taken} of about {counted(total, 'vector')}")
            left, right = pair.ask(batch)
            answered = [x is not None and y is not None for x, y in zip(left, right, strict=True)]
            self.compared += sum(answered)
            room = limit - len(self.kept)
            self.keep(
                ((pair.layout.split(batch[i]), left[i], right[i]) for i, known in enumerate(answered) if known), limit
            )
            places = np.flatnonzero(pair.differ(left, right))
            beyond = ((pair.layout.split(batch[i]), left[i], right[i]) for i in places if sum(answered[:i]) >= room)
            self.differing += islice(beyond, KEPT - len(self.differing))
            self.different += len(places)
            self.take(pair, [batch[i] for i in places], [left[i] for i in places], [right[i] for i in places])
            taken += len(batch)
            text = f"{self.compared} vectors, {self.different} different answers"
            self.progress(Share(text, min(taken, total), total, "vectors"))
            if self.done and not whole:
                return
        if not self.differences:
            self._stand_by(pair)

    def _in_time(self, where: str) -> None:
        """Raises OutOfTimeError, with what was done until then."""
        if self.until is not None and time.monotonic() > self.until:
            raise OutOfTimeError(f"the time ran out {where}")

    def _stand_by(self, pair: Pair) -> None:
        """Ask again some vectors on which both devices agree, as a device may contradict itself there too."""
        kept = [self.kept[place] for place in spread(len(self.kept), AGAIN)]
        for side, first in zip(pair.sides, ([one[1] for one in kept], [one[2] for one in kept]), strict=True):
            if kept and not side.steady:
                again, itself = side.results([one[0] for one in kept]), Problem(side.model, side.model)
                for i in np.flatnonzero(differing(itself, first, again)):
                    self.contradictions.append(Contradiction(side, kept[i][0], (first[i], again[i])))

    def keep(self, answered: Iterable[Answered], limit: int = KEPT) -> None:
        """Remember answers, up to a limit."""
        self.kept += islice(answered, max(0, limit - len(self.kept)))

    def take(self, pair: Pair, rows: Sequence[Row], left: Sequence[Answer], right: Sequence[Answer]) -> None:
        """Follow up vectors with different answers: those of each new kind that are easiest to read, if the devices
        repeat their answers."""
        by_kind: dict[Kind, list[Row]] = {}
        order = {row: cost_of(row, pair.layout) for row in rows}
        kinds = pair.kinds(rows, left, right)
        for row, kind in sorted(zip(rows, kinds, strict=True), key=lambda one: order[one[0]]):
            if not self._known(kind) and len(by_kind.setdefault(kind, [])) < TRIES:
                by_kind[kind].append(row)
        chosen = [row for members in by_kind.values() for row in members][: LARGEST // REPEATS]
        for row, difference in self._confirmed(pair, chosen, chosen).items():
            if self.done:
                return
            if not self._known(difference.kind):
                self._pursue(pair, row, difference)

    def _known(self, kind: Kind) -> bool:
        return any(kind == one.kind for one in self.differences)

    def _pursue(self, pair: Pair, row: Row, difference: Difference) -> None:
        if any(side.closed for side in pair.sides):
            self.differences.append(difference)
            return
        try:
            path = self._shrunk(pair, row)
            stable = self._confirmed(pair, path, [row] * len(path))
        except (MmaprobeError, KeyboardInterrupt):
            self.differences.append(difference)
            raise
        fitting = [one for one in stable.values() if not self._known(one.kind)]
        self.differences.append(fitting[-1] if fitting else difference)

    def _confirmed(self, pair: Pair, rows: Sequence[Row], first: Sequence[Row]) -> dict[Row, Difference]:
        """The rows for which both devices repeat their different answers, with the differences."""
        if not rows:
            return {}
        sides = [self._repeated(side, pair, rows) for side in pair.sides]
        left, right = sides
        differ, kinds = pair.differ(left, right), pair.kinds(rows, left, right)
        differences = {}
        for i, row in enumerate(rows):
            x, y = left[i], right[i]
            if differ[i] and x is not None and y is not None:
                differences[row] = Difference(pair, row, x, y, kinds[i], first[i])
        return differences

    def _repeated(self, side: ComparedDevice, pair: Pair, rows: Sequence[Row]) -> list[Answer]:
        """A device's answers; None where it does not repeat its answer."""
        inputs, itself = [pair.layout.split(row) for row in rows], Problem(side.model, side.model)
        answers = [side.results(inputs)]
        stable = np.ones(len(rows), dtype=bool)
        while not side.steady and len(answers) <= (REPEATS + NOISY_REPEATS if side.noisy else REPEATS):
            answers.append(side.results(inputs))
            changed = stable & differing(itself, answers[0], answers[-1])
            for i in np.flatnonzero(changed):
                side.noisy = True
                self.contradictions.append(Contradiction(side, inputs[i], tuple(one[i] for one in answers)))
            stable &= ~changed
        return [answer if good else None for answer, good in zip(answers[0], stable, strict=True)]

    def _shrunk(self, pair: Pair, row: Row) -> list[Row]:
        """Ever simpler inputs on which the devices still differ, each in a new way: products left out by halves and
        less, then any step that makes an input easier to read."""
        path, seen, rounds = [row], {row}, 0
        for steps in (_shorter, _simpler):
            while rounds < ROUNDS:
                rounds += 1
                smaller = self._smaller(pair, path[-1], steps, seen)
                if smaller is None:
                    break
                path.append(smaller)
                self.progress(f"{len(path)} reductions")
        return path

    def _smaller(
        self, pair: Pair, row: Row, steps: Callable[[Row, Layout], Iterator[Row]], seen: set[Row]
    ) -> Row | None:
        """The candidate of one round that is easiest to read, among those on which the devices differ."""
        limit = reading_cost(row, pair.layout)
        fresh = {other for other in steps(row, pair.layout) if other not in seen}
        costs = {other: price for other in fresh if (price := reading_cost(other, pair.layout)) < limit}
        tried = sorted(costs, key=lambda other: (costs[other], other))
        for start in range(0, len(tried), MOST_CANDIDATES):
            part = tried[start : start + MOST_CANDIDATES]
            self._in_time("while a difference was minimised")
            seen.update(part)
            left, right = pair.ask(part)
            good = np.flatnonzero(pair.differ(left, right))
            chosen = [part[i] for i in good]
            kinds = pair.kinds(chosen, [left[i] for i in good], [right[i] for i in good])
            for other, kind in zip(chosen, kinds, strict=True):
                if not self._known(kind):
                    return other
        return None


def reading_cost(row: Row, layout: Layout) -> tuple[int, ...]:
    """The costs of reading an input, as for witnesses; then the numbers of set bits, then of products' places."""
    count = layout.length
    ones = sum(fields_of(pattern, fmt)[2].bit_count() for pattern, fmt in zip(row, layout.formats, strict=True))
    return (*cost_of(row, layout), ones, sum(k for k in range(count) if row[k] or row[count + k]))


def _shorter(row: Row, layout: Layout) -> Iterator[Row]:
    """Rows without some of the terms: without halves, quarters and so on."""
    count = layout.length
    terms = [(k, count + k) for k in range(count) if row[k] or row[count + k]]
    columns: list[tuple[int, ...]] = [*terms, *([(2 * count,)] if row[2 * count] else [])]
    size = len(columns)
    while size:
        for start in range(0, len(columns), size):
            yield row_with(row, {index: 0 for group in columns[start : start + size] for index in group})
        size //= 2


def _simpler(row: Row, layout: Layout) -> Iterator[Row]:
    """The steps of a witness; fraction bits cleared from the top, and one by one; products moved forward."""
    yield from smaller_rows(row, layout)
    count = layout.length
    for index, fmt in enumerate(layout.formats):
        for place in range(fmt.fraction):
            bit = 1 << (place + fmt.padding)
            if row[index] & bit:
                below = bit - 1 | ~(((1 << fmt.fraction) - 1) << fmt.padding)  # lower bits, sign and exponent
                yield row_with(row, {index: row[index] & below})
                yield row_with(row, {index: row[index] & ~bit})
    if not layout.scales:
        used = [k for k in range(count) if row[k] or row[count + k]]
        rest = (0,) * (count - len(used))
        yield (*(row[k] for k in used), *rest, *(row[count + k] for k in used), *rest, *row[2 * count :])


def _batches(rows: Iterable[Row]) -> Iterator[list[Row]]:
    source, size = iter(rows), FIRST
    while batch := list(islice(source, size)):
        yield batch
        size = min(2 * size, LARGEST)
