"""Which plans reproduce two results of one matrix product, and the smallest K at which the results of two plans
differ."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from queries.compare.gemm import Element, Matrices
from queries.compare.steady import same_answer
from queries.plans.candidates import Candidates, Sample
from smtmodel.compiled import compiler
from smtmodel.dot import Model
from smtmodel.errors import ParameterError
from smtmodel.plans import Chain, Plan
from smtmodel.plans.matrices import Job, Patterns, Strip
from smtmodel.signature import Signature
from smtmodel.tiles import Engine, Matrix, kind_of

SECONDS = 60.0  # of trying plans, at most
SIDE, MANY = 12, 96  # rows, and columns, that are recomputed, and for plans that reproduce those
PREFIXES = 128  # values of K at which two plans are compared, at most


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
        look(candidates.cuts(plan.models[0], asked.length))

    look(candidates.table())
    for plan in [side[0] for side in found if side and is_chain(side[0])]:  # a result is that of an instruction
        if wanting():
            look_around(plan)
    if wanting():
        look(candidates.usual(asked.length))
    for plan in list(alike.values()):
        if is_chain(plan) and wanting():
            look_around(plan)
    return Given(tuple(found[0]), len(tried), complete), Given(tuple(found[1]), len(tried), complete)


def _arithmetic(plan: Plan) -> object:
    """A key that is equal for plans that differ in the names of their instructions alone."""
    text = plan.reference
    for model in plan.models:
        text = text.replace(model.reference, model.c.name)
    return text, plan.convert_a, plan.convert_b, tuple((model.unit.result, model.d) for model in plan.models)


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
    for plan in dict.fromkeys(candidates.usual(asked.length)):
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


def parted_after(one: Plan, other: Plan, matrices: Matrices, element: Element) -> int | None:
    """The smallest K, of those tried, at which the results of two plans differ if an element is computed from the first
    K products alone; None if there is none."""
    rows, columns = slice(element.row, element.row + 1), slice(element.column, element.column + 1)
    a, b = matrices.a[rows], matrices.b[:, columns]
    c = np.zeros((1, 1), dtype=kind_of(one.c)) if matrices.c is None else matrices.c[rows, columns]
    engine: Engine = "compiled" if compiler() is not None else "numpy"
    length = a.shape[1]

    def part(count: int) -> bool:
        try:
            found = [
                Strip(Job(plan, a[:, :count], b[:count], engine), slice(None), Patterns(c, plan.c)).result()
                for plan in (one, other)
            ]
        except ParameterError:  # a K that a plan does not take
            return False
        return bool(found[0][0, 0] != found[1][0, 0])

    step = -(-length // PREFIXES)
    counts = [*range(step, length, step), length]
    first = next((count for count in counts if part(count)), None)
    return None if first is None else next(count for count in range(max(first - step, 0) + 1, first + 1) if part(count))
