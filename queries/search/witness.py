"""Witnesses: inputs on which two models differ, replayed and minimised before they are reported.

Shrinking needs no solver: all changes that make an input easier to read are tried together on the array carrier, and
kept if the models still differ. The smaller of two inputs has, in this order: fewer nonzero terms, fewer operands that
are not powers of two, fewer significand bits, exponents nearer to zero, fewer signs.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from mmaprobe.queries.kernel.questions.problem import Placed, Problem
from mmaprobe.queries.search.exercises import exercises
from mmaprobe.queries.solvers.contract import Answer
from mmaprobe.smtmodel.arithmetic.formats import Format
from mmaprobe.smtmodel.carriers.algebra import constant
from mmaprobe.smtmodel.carriers.arrays import ArrayCarrier
from mmaprobe.smtmodel.evaluate.batch import Patterns, to_integers
from mmaprobe.smtmodel.evaluate.model import Evaluation
from mmaprobe.smtmodel.evaluate.operands import Layout, Operands
from mmaprobe.smtmodel.evaluate.programs import ARRAYS

Row = tuple[int, ...]  # patterns in the order of Operands.every
Keep = Callable[["ReplayedRows"], Patterns]

_CARRIER = ARRAYS  # records the operations of a model once, for many replays
_FOLDING = ArrayCarrier()  # records nothing: each step of a search has other constants, and so other operations
LONG_SUM = 32  # products above which whole runs are dropped first


@dataclass(frozen=True)
class ReplayedRows:
    """Both models on a batch of inputs, by the array carrier."""

    left: Patterns
    right: Patterns
    admitted: Patterns  # 1 where the input counts
    differs: Patterns  # 1 where the input counts and the results differ
    evaluations: tuple[Evaluation, Evaluation]  # with signals where they were asked for


@dataclass(frozen=True)
class Witness:
    """A replayed input on which two models differ. `exercises` holds for each model the features that the input
    exercises."""

    operands: Operands[int]
    left: int
    right: int
    exercises: tuple[tuple[str, ...], tuple[str, ...]] = field(default=((), ()))


def replay(
    problem: Problem, rows: Sequence[Row] | Patterns, traced: bool = False, folded: bool = False
) -> ReplayedRows:
    """Evaluate both models on every row; `traced`: with all signals; `folded`: an operand that is +0 in every row is a
    constant, which is evaluated faster; searches replay their last row again without folding. The operands of a single
    row are constants, as in `evaluate_batch`."""
    table = np.asarray(rows, dtype=np.uint64)
    layout = problem.layout
    carrier = _FOLDING if folded else _CARRIER
    lanes = [
        constant(carrier, int(column[0]), fmt.width)
        if len(column) == 1 or (folded and not column.any())
        else carrier.lanes(column, fmt.width)
        for column, fmt in zip(np.ascontiguousarray(table.T), layout.formats, strict=True)
    ]
    operands = layout.split(lanes)
    with np.errstate(over="ignore"):
        first, second = problem.evaluate(operands, traced)
        admitted = problem.admits(operands)
        differs = problem.differ(first.d, second.d) & admitted
        results = [to_integers(value, len(table)) for value in (first.d, second.d, admitted, differs)]
    return ReplayedRows(results[0], results[1], results[2], results[3], (first, second))


def differs_on(problem: Problem, row: Row) -> bool:
    """Whether the two models differ on an admitted input, by evaluation."""
    return bool(replay(problem, [row]).differs[0])


def results_differ(problem: Problem, left: Patterns, right: Patterns) -> NDArray[np.bool_]:
    """Where two arrays of results differ, by the problem's comparison."""
    lanes = [_CARRIER.lanes(side, fmt.width) for side, fmt in ((left, problem.left.d), (right, problem.right.d))]
    with np.errstate(over="ignore"):
        return np.asarray(to_integers(problem.differ(lanes[0], lanes[1]), len(left)) != 0)


def answered_row(layout: Layout, answer: Answer) -> Row:
    """The input that a solver gave, with zeros for operands that it was not asked for."""
    return tuple(answer.values.get(name, 0) for name in layout.names)


def confirmed_witness(problem: Problem, row: Row, traced: bool = True) -> Witness | None:
    """The witness of a row, with the features that it exercises if `traced`; None if the models agree on the row, or if
    the row does not count."""
    result = replay(problem, [row], traced=traced)
    if not result.differs[0]:
        return None
    features = exercised_features(problem, result) if traced else ()
    return Witness(problem.layout.split(row), int(result.left[0]), int(result.right[0]), *features)


def shrunk_witness(problem: Problem, rows: Patterns, differs: Patterns) -> Witness | None:
    """The first row on which the models differ (`differs`), shrunk to a witness; None if there is no such row."""
    places = np.flatnonzero(differs)
    return confirmed_witness(problem, shrink(problem, tuple(map(int, rows[places[0]])))) if len(places) else None


def exercised_features(problem: Problem, result: ReplayedRows) -> list[tuple[tuple[str, ...], tuple[str, ...]]]:
    """For each input of a replay with signals, the features that it exercises in either model."""
    count, features = len(result.left), list[list[tuple[str, ...]]]()
    with np.errstate(over="ignore"):
        for model, evaluation in zip((problem.left, problem.right), result.evaluations, strict=True):
            flags = {name: to_integers(flag, count) for name, flag in exercises(model, evaluation).items()}
            features.append([tuple(name for name, on in flags.items() if on[i]) for i in range(count)])
    return list(zip(*features, strict=True))


def moved_input(problem: Problem, operands: Operands[int]) -> Operands[int]:
    """The input of the right side of a problem."""
    layout = problem.layout
    lanes = [
        _CARRIER.lanes(np.array([x], np.uint64), f.width) for x, f in zip(operands.every, layout.formats, strict=True)
    ]
    moved = problem.moved(layout.split(lanes))
    return layout.split([int(to_integers(bits, 1)[0]) for bits in moved.every])


def inputs_of(problem: Problem, operands: Operands[int]) -> tuple[Operands[int], Operands[int]]:
    """The inputs of both sides of a problem."""
    if isinstance(problem, Placed):
        return problem.whole(operands), problem.whole(operands)
    return operands, moved_input(problem, operands)


def shrink(problem: Problem, row: Row, keep: Keep | None = None, traced: bool = False) -> Row:
    """The smallest input reached by steps that keep the difference of the models, and the truth of `keep`, if given;
    `traced`: `keep` reads signals."""

    def good(rows: list[Row]) -> Patterns:
        result = replay(problem, rows, traced, folded=True)
        return result.differs & keep(result) if keep is not None else result.differs

    return shrink_rows(problem.layout, row, good)


def shrink_rows(layout: Layout, row: Row, good: Callable[[list[Row]], Patterns], seconds: float | None = None) -> Row:
    """The smallest row reached by steps within a number of seconds; `good` gives 1 for every row that may be kept."""
    end = None if seconds is None else time.monotonic() + seconds
    row = _without_runs(layout, row, good, end)
    seen = {row}
    while end is None or time.monotonic() < end:
        others = [other for other in dict.fromkeys(smaller_rows(row, layout)) if other not in seen]
        most, *smaller = costs_of([row, *others], layout)
        costs = {other: cost for other, cost in zip(others, smaller, strict=True) if cost < most}
        tried = list(costs)
        if not tried:
            return row
        seen.update(tried)
        candidates = [tried[i] for i in np.flatnonzero(good(tried))]
        if not candidates:
            return row
        row = min(candidates, key=costs.__getitem__)
    return row


def _without_runs(layout: Layout, row: Row, good: Callable[[list[Row]], Patterns], end: float | None) -> Row:
    """The row with whole runs of products set to zero, the longest first, as single products would take long."""
    used = _nonzero_products(row, layout)
    run = len(used) // 2 if len(used) > LONG_SUM else 0
    lone = {i: 0 for k in set(range(layout.length)).difference(used) for i in (k, layout.length + k)}
    if run and good([bare := row_with(row, lone)])[0]:
        row = bare  # at once all products with a zero factor, of which single steps remove one each
    while run and used and (end is None or time.monotonic() < end):
        parts = [used[start : start + run] for start in range(0, len(used), run)]
        tried = [row_with(row, {i: 0 for k in part for i in (k, layout.length + k)}) for part in parts]
        kept = np.flatnonzero(good(tried))
        if len(kept):
            row = tried[kept[-1]]
            used = _nonzero_products(row, layout)
        if not len(kept) or run > len(used):
            run //= 2
    return row


def _nonzero_products(row: Row, layout: Layout) -> list[int]:
    """The places of the products that are not zero."""
    return [k for k in range(layout.length) if row[k] and row[layout.length + k]]


def fields_of(pattern: int, fmt: Format) -> tuple[int, int, int]:
    """(sign, exponent field, fraction field)."""
    body = pattern >> fmt.padding
    return (
        pattern >> fmt.field_width,
        body >> fmt.fraction & ((1 << fmt.exponent) - 1),
        body & ((1 << fmt.fraction) - 1),
    )


def _pattern(sign: int, exponent: int, fraction: int, fmt: Format) -> int:
    return (sign << fmt.field_width) | ((exponent << fmt.fraction | fraction) << fmt.padding)


def cost_of(row: Row, layout: Layout) -> tuple[int, ...]:
    return costs_of([row], layout)[0]


def costs_of(rows: Sequence[Row] | Patterns, layout: Layout) -> list[tuple[int, ...]]:
    """The costs by which rows are compared: terms, operands that are no powers of two, significand bits, distances
    of exponents, signs."""
    table, count = np.asarray(rows, dtype=np.uint64).reshape(len(rows), len(layout.formats)), layout.length
    products = (table[:, :count] | table[:, count : 2 * count]) != 0
    terms = np.count_nonzero(products, axis=1) + (table[:, 2 * count] != 0)
    uneven, bits, distance, signs = (np.zeros(len(rows), dtype=np.int64) for _ in range(4))
    for fmt in dict.fromkeys(layout.formats):
        patterns = table[:, [other == fmt for other in layout.formats]]
        body = patterns >> np.uint64(fmt.padding)
        exponent = (body >> np.uint64(fmt.fraction) & np.uint64((1 << fmt.exponent) - 1)).astype(np.int64)
        fraction = body & np.uint64((1 << fmt.fraction) - 1)
        lowest = bit_length(fraction & (~fraction + np.uint64(1)))
        length = np.where(exponent == 0, bit_length(fraction), fmt.fraction + 1) - lowest
        length = np.where(fraction == 0, 0, length)
        uneven += np.count_nonzero(length, axis=1)
        bits += length.sum(axis=1)
        distance += np.where(patterns == 0, 0, np.abs(exponent - fmt.one_exponent)).sum(axis=1)
        signs += (patterns >> np.uint64(fmt.field_width)).sum(axis=1, dtype=np.int64)
    return list(map(tuple, np.stack([terms, uneven, bits, distance, signs], axis=1).tolist()))


def bit_length(values: Patterns) -> NDArray[np.int64]:
    """The bit lengths of values below 2^53."""
    return np.frexp(values.astype(np.float64))[1].astype(np.int64)


def smaller_rows(row: Row, layout: Layout) -> Iterator[Row]:
    """Inputs that may be easier to read than a row."""
    count, formats = layout.length, layout.formats
    for k in range(count):
        yield row_with(row, {k: 0, count + k: 0})
    yield row_with(row, {2 * count: 0})
    for index, fmt in enumerate(formats):
        for pattern in _simpler(row[index], fmt):
            yield row_with(row, {index: pattern})
    for k in range(count):
        yield from _balanced(row, k, count + k, formats)
        yield from _copied(row, k, layout)
    yield from _rescaled(row, layout)


def _copied(row: Row, k: int, layout: Layout) -> Iterator[Row]:
    """Rows in which one product replaces every other nonzero product, or a single one of them."""
    count = layout.length
    if not (row[k] and row[count + k]):
        return
    used = [i for i in _nonzero_products(row, layout) if i != k]
    yield row_with(row, dict.fromkeys(used, row[k]) | {count + i: row[count + k] for i in used})
    for i in used:
        yield row_with(row, {i: row[k], count + i: row[count + k]})


def row_with(row: Row, changes: dict[int, int]) -> Row:
    changed = list(row)
    for index, pattern in changes.items():
        changed[index] = pattern
    return tuple(changed)


def _simpler(pattern: int, fmt: Format) -> Iterator[int]:
    """Patterns with shorter significands, exponents nearer to zero, or a positive sign."""
    if not pattern:
        return
    sign, exponent, fraction = fields_of(pattern, fmt)
    for kept in range(fmt.fraction):
        yield _pattern(sign, exponent, fraction & ~((1 << (fmt.fraction - kept)) - 1), fmt)
    for power in range(fmt.fraction):  # subnormal powers of two
        if not exponent:
            yield _pattern(sign, 0, 1 << power, fmt)
    one = fmt.one_exponent
    for nearer in {one, (exponent + one) // 2, exponent + (1 if exponent < one else -1)}:
        yield _pattern(sign, nearer, fraction, fmt)
        yield _pattern(sign, nearer, 0, fmt)
    if sign:
        yield _pattern(0, exponent, fraction, fmt)


def _balanced(row: Row, left: int, right: int, formats: Sequence[Format]) -> Iterator[Row]:
    """Rows with the same product from other factors: an exponent moved from one to the other, or both signs changed."""
    (s, e, f), (t, g, h) = fields_of(row[left], formats[left]), fields_of(row[right], formats[right])
    if not (row[left] and row[right] and e and g):
        return
    for step in {formats[left].one_exponent - e, g - formats[right].one_exponent, 1, -1}:
        x, y = e + step, g - step
        if 0 < x < 1 << formats[left].exponent and 0 < y < 1 << formats[right].exponent:
            yield row_with(row, {left: _pattern(s, x, f, formats[left]), right: _pattern(t, y, h, formats[right])})
    if s and t:
        yield row_with(row, {left: _pattern(0, e, f, formats[left]), right: _pattern(0, g, h, formats[right])})
    if s != t and s:
        yield row_with(row, {left: _pattern(t, e, f, formats[left]), right: _pattern(s, g, h, formats[right])})


def _rescaled(row: Row, layout: Layout) -> Iterator[Row]:
    """Rows in which every term is multiplied by the same power of two."""
    count, formats = layout.length, layout.formats
    scaled = [*range(count), 2 * count]  # one factor of each product, and the addend
    scaled += range(layout.columns, len(row))[:1]
    for step in (-16, -8, -4, -2, -1, 1, 2, 4, 8, 16):
        changed = []
        for index in scaled:
            sign, exponent, fraction = fields_of(row[index], formats[index])
            if row[index] == 0:
                continue
            if not exponent > 0 or not 0 < exponent + step < 1 << formats[index].exponent:
                break
            changed.append((index, _pattern(sign, exponent + step, fraction, formats[index])))
        else:
            yield row_with(row, dict(changed))
