"""Which plans reproduce two results of one matrix product, and the first step in which two plans differ."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, zip_longest

import numpy as np

from queries.compare.gemm import Element, Matrices
from queries.compare.steady import same_answer
from queries.plans.candidates import Candidates, Sample
from smtmodel.dot import Model
from smtmodel.errors import ParameterError
from smtmodel.instructions import INSTRUCTIONS
from smtmodel.losses import Loss, losses
from smtmodel.nodes import Round
from smtmodel.nodes.node import walk
from smtmodel.numbers import to_numbers
from smtmodel.operands import Operands
from smtmodel.plans import Chain, Plan
from smtmodel.plans.lowering import unit_of_plan
from smtmodel.signature import Signature
from smtmodel.tiles import Matrix, kind_of
from smtmodel.unit_table import units

SECONDS = 60.0  # of trying plans, at most
DIGITS = 4  # decimal digits of alpha and beta
SIDE, MANY = 12, 96  # rows, and columns, that are recomputed, and for plans that reproduce those


@dataclass(frozen=True)
class Given:
    """The plans that reproduce a result in every element compared, and how many plans were `tried`; `complete`: whether
    none was left out for lack of time."""

    plans: tuple[Plan, ...]
    tried: int
    complete: bool


def plans_of_results(
    model: Model, matrices: Matrices, elements: Sequence[Element], report: Callable[[str], None]
) -> tuple[Given, Given]:
    """For each of the two results D in `matrices`: the plans with the formats of `model` that reproduce it at all
    `elements`. What ships, every instruction of the table and what libraries usually do are tried; `report` is called
    with the progress."""
    asked = Signature(model.a, model.b, model.c, model.d, matrices.a.shape[1], matrices.c is not None)
    candidates = Candidates(asked)
    rows, columns = [element.row for element in elements], [element.column for element in elements]
    a, b = matrices.a[rows][:, None], matrices.b[:, columns].T[:, :, None]
    c = np.zeros((len(elements), 1, 1), dtype=kind_of(model.c))
    if matrices.c is not None:
        c[:, 0, 0] = matrices.c[rows, columns]
    given = [matrices.d[side][rows, columns] for side in (0, 1)]
    found: tuple[list[Plan], list[Plan]] = [], []
    start = time.monotonic()
    sample = Sample(a, b, c, c)
    tried: set[Plan] = set()
    alike: dict[bytes, Plan] = {}  # the first plan with each result
    known: dict[object, Matrix | None] = {}  # results by `_arithmetic`: many instructions have the same expression
    complete = True

    def wanting() -> bool:
        return not (found[0] and found[1])

    def look(plans: Iterable[Plan]) -> None:
        nonlocal complete
        for plan in plans:
            if time.monotonic() > start + SECONDS:
                complete = False
                break
            if plan in tried:
                continue
            tried.add(plan)
            report(f"trying {plan.reference}")
            key = _arithmetic(plan)
            if key not in known:
                known[key] = candidates.results(plan, sample)
            if (results := known[key]) is None:
                continue
            alike.setdefault(results.tobytes(), plan)
            for side in (0, 1):
                pairs = zip(results.ravel().tolist(), given[side].tolist(), strict=True)
                if all(same_answer(model.d, one, other) for one, other in pairs):
                    found[side].append(plan)

    def look_around(plan: Plan) -> None:
        candidates.compiled.update(plan.models)
        look(candidates.like(plan).cuts(plan.models[0], asked.length))

    look(candidates.table())

    def look_beside() -> None:
        """The same instruction as in a result that is known, with K cut otherwise."""
        for plan in [side[0] for side in found if side]:
            if wanting():
                look_around(plan)
            if wanting():
                look(candidates.like(plan).uneven(plan.models[0], asked.length))

    look_beside()
    for usual in (candidates.usual, candidates.unusual):
        if wanting():
            look(usual(asked.length))
    beside = any(found)
    for plan in list(alike.values()):
        if is_chain(plan) and wanting():
            look_around(plan)
        if any(found) and not beside:  # the other result is likely of the same instruction
            look_beside()
            beside = True
    for plan in list(alike.values()):
        if is_chain(plan) and wanting():
            look(candidates.like(plan).uneven(plan.models[0], asked.length))
    for side in (0, 1) if wanting() else ():
        scalars = None if found[side] else scalars_of(asked, sample, given[side])
        for maker in [] if scalars is None else [Candidates(asked, None, None, scalars)]:
            look(maker.chains([*units(), *INSTRUCTIONS]))
            for plan in [] if found[side] else [plan for plan in list(alike.values()) if is_chain(plan)]:
                look(maker.cuts(plan.models[0], asked.length))
    return Given(tuple(found[0]), len(tried), complete), Given(tuple(found[1]), len(tried), complete)


def scalars_of(asked: Signature, sample: Sample, d: Matrix) -> tuple[float, float] | None:
    """Alpha and beta of few decimal digits such that the results are about alpha * A B + beta * C; None if no such
    numbers are near, or they are 1 and 1, or 1 and 0."""
    a, b, c, results = (
        to_numbers(np.ascontiguousarray(side), fmt).astype(np.float64)
        for side, fmt in ((sample.a, asked.a), (sample.b, asked.b), (sample.c, asked.c), (d, asked.d))
    )
    terms = np.stack([(a @ b).ravel(), c.ravel()][: 1 + asked.addend], axis=1)
    if not np.isfinite(terms).all() or not np.isfinite(results).all():
        return None
    found, *_ = np.linalg.lstsq(terms, results, rcond=None)
    error = 4 * np.abs(results - terms @ found).max() / np.abs(terms).max(axis=0)
    near = [_short(value, limit) for value, limit in zip(found, error, strict=True)]
    alpha, beta = near[0], near[1] if asked.addend else 0.0
    return None if alpha is None or beta is None or (alpha, beta) in ((1, 1), (1, 0)) or not alpha else (alpha, beta)


def _short(value: float, error: float) -> float | None:
    """The number of the fewest decimal digits, at most four, within an error of a value."""
    tried = (float(f"{value:.{digits}g}") for digits in range(1, DIGITS + 1))
    return 0.0 if abs(value) <= error else next((one for one in tried if abs(one - value) <= error), None)


def _arithmetic(plan: Plan) -> object:
    """A key that is equal for plans that differ in the names of their instructions alone."""
    text = plan.reference
    for model in plan.models:
        text = text.replace(model.reference, model.c.name)
    rounded = tuple(node.rounding for node in walk(plan.result) if isinstance(node, Round))
    return text, rounded, plan.convert_a, plan.convert_b, tuple((model.unit.result, model.d) for model in plan.models)


def is_chain(plan: Plan) -> bool:
    """Whether a plan only takes K in tiles of instructions, without a tail."""
    return all(isinstance(products.stage, Chain) and products.stage.tail is None for products in plan.sums)


@dataclass(frozen=True)
class Fitting:
    """The plans that reproduce all elements compared (`looked`: how many), and how many plans were `tried`; `best`: the
    plan that reproduces the most elements, and `most`: how many."""

    plans: tuple[Plan, ...]
    tried: int
    looked: int
    best: Plan | None
    most: int


def plans_of_product(
    asked: Signature, a: Matrix, b: Matrix, c: Matrix | None, d: Matrix, report: Callable[[str], None], seconds: float
) -> Fitting:
    """The plans that reproduce D: what ships, what libraries usually do, and every instruction of the table are tried
    for `seconds`, and for at most a quarter of that time after one was found. Raises ParameterError for matrices whose
    shapes do not fit together."""
    shape = (a.shape[0], b.shape[1]) if a.ndim == b.ndim == 2 else ()
    if not shape or a.shape[1] != b.shape[0] or d.shape != shape or (c is not None and c.shape != shape):
        others = f", C {c.shape}" if c is not None else ""
        raise ParameterError("A and B", f"shapes {a.shape} and {b.shape} do not give D {d.shape}{others}")
    candidates = Candidates(asked)

    def looked(side: int) -> Sample:
        rows, columns = (np.unique(np.linspace(0, own - 1, min(own, side)).astype(int)) for own in shape)
        at = np.ix_(rows, columns)
        addend = np.zeros((len(rows), len(columns)), dtype=kind_of(asked.c)) if c is None else c[at]
        return Sample(a[None, rows], b[None, :, columns], addend[None], d[at][None])

    sample = looked(SIDE)
    found: list[Plan] = []
    best, most, tried, start = None, 0, 0, time.monotonic()
    every = chain(candidates.usual(asked.length), candidates.unusual(asked.length))
    for plan in dict.fromkeys(every):
        if time.monotonic() > start + seconds:
            break
        report(f"trying {plan.reference}")
        tried += 1
        if (results := candidates.results(plan, sample)) is None:
            continue
        agree = results.size - candidates.differing(results, sample)
        if agree == results.size:
            found.append(plan)
            seconds = min(seconds, time.monotonic() - start + seconds / 4)
        if agree > most:
            best, most = plan, agree
    if found:
        sample = looked(MANY)
        agree_of = {plan: _agreeing(candidates, plan, sample) for plan in found}
        best, most = max(agree_of.items(), key=lambda item: item[1])
        found = [plan for plan in found if agree_of[plan] == sample.d.size]
    return Fitting(tuple(found), tried, sample.d.size, best, most)


def _agreeing(candidates: Candidates, plan: Plan, sample: Sample) -> int:
    results = candidates.results(plan, sample)
    return 0 if results is None else results.size - candidates.differing(results, sample)


def first_step(one: Plan, other: Plan, matrices: Matrices, element: Element) -> tuple[Loss | None, Loss | None] | None:
    """The first steps of an element at which two plans differ, in the products that they add or in their results (None:
    a plan has no more steps); None if all steps are the same, or the product is too long to be traced. Steps that add
    the same products with the same result are no difference, also where others come between them."""
    row, column = element.row, element.column
    a, b = (tuple(map(int, side)) for side in (matrices.a[row], matrices.b[:, column]))
    operands = Operands(a, b, 0 if matrices.c is None else int(matrices.c[row, column]))
    try:
        steps = [losses(Model(plan.reference, unit_of_plan(plan, len(a))), operands)[0] for plan in (one, other)]
    except ParameterError:
        return None
    both = Counter(map(_what, steps[0])) & Counter(map(_what, steps[1]))
    pairs = zip_longest(*(_left(side, both.copy()) for side in steps))
    return next(((left, right) for left, right in pairs if _what(left) != _what(right)), None)


def _left(steps: Sequence[Loss], both: Counter[object]) -> Iterator[Loss]:
    """Steps without sums to which +0 is added, and without those that add products and are counted in `both`."""
    for before, step in zip((None, *steps), steps, strict=False):
        if step.products is not None and both[_what(step)]:
            both[_what(step)] -= 1
        elif before is None or step.products is not None or step.value != before.value:
            yield step


def _what(step: Loss | None) -> object:
    return None if step is None else (step.products, step.value)
