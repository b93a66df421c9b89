"""`compare` for two result matrices of one product."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mmaprobe.cli.array_files import errors_name, load_matrix
from mmaprobe.cli.options import progress, refuse, say
from mmaprobe.cli.product_files import patterns_of
from mmaprobe.cli.text.plan_results import say_wrapped, sentences
from mmaprobe.documents.devices import (
    ComparedModel,
    ComparedPlans,
    ComputedAgain,
    DifferingElement,
    DotProduct,
    FirstSteps,
    Gemm,
    ModelAgreement,
    StepOfPlan,
)
from mmaprobe.documents.parts import ABSENT
from mmaprobe.smtmodel.arithmetic.display import value_text
from mmaprobe.smtmodel.base.errors import ParameterError
from mmaprobe.smtmodel.base.interrupts import left
from mmaprobe.smtmodel.base.wording import counted
from mmaprobe.smtmodel.inputs.vectors import operands_json, to_hex
from mmaprobe.smtmodel.operand import FACTORS

if TYPE_CHECKING:
    from mmaprobe.queries.compare.devices import ComparedDevice, Comparison, Pair
    from mmaprobe.queries.compare.gemm import Differences, Element, Matrices, Reproduced, Trace
    from mmaprobe.reports.comparison import Report
    from mmaprobe.smtmodel.evaluate.model import Model
    from mmaprobe.smtmodel.explain.losses import Loss
    from mmaprobe.smtmodel.plans import Plan


@dataclass(frozen=True)
class Files:
    """The files of two results of one product: A, B, D1 and D2, C if there is one, and the files of scale factors by
    name. `formats`, `convert`: the values of the options. `save`: the path from which the names of the plan files are
    derived."""

    sides: Sequence[Path]
    c: Path | None
    factors: Mapping[str, Path]
    formats: str | None
    convert: Any
    save: Path | None = None

    @property
    def names(self) -> str:
        return ", ".join(map(str, self.sides if self.c is None else (*self.sides, self.c)))


def run_gemm(
    comparison: Comparison, report: Report, sides: list[ComparedDevice], model: Model | None, compare: Any,
    files: Files, seconds: float | None,
) -> None:  # fmt: skip
    """Reduce differing matrices to a dot product of a few terms. `seconds`: the time for the whole command. Raises
    MmaprobeError."""
    from mmaprobe.queries.compare.devices import Pair, compared_model
    from mmaprobe.queries.compare.gemm import differing_elements, reproduced
    from mmaprobe.smtmodel.inputs.signature import Signature

    first, second = sides if model is None else (compared_model(model), compared_model(model))
    pair = Pair(first, second, compare)
    matrices = load_matrices(pair, files)
    with errors_name(files.names, "A and B", "C", "D1", "D2"):
        matrices.check(first.model)
    differences = differing_elements(pair.problem, matrices)
    report.gemm = gemm = Gemm(elements=differences.total, differing=differences.count)
    say(f"{differences.count} of {differences.total} elements differ")
    if not differences.count:
        return
    report.gemm = gemm = replace(
        gemm, first=_element(differences.first, pair), largest=_element(differences.largest, pair)
    )
    _show_elements(differences, pair)
    if sides:
        _follow(comparison, report, pair, matrices, differences)
        return
    assert model is not None
    report.differ = True
    if isinstance(model, Signature):
        report.gemm = replace(gemm, plans=_plans(model, matrices, differences, seconds, files.save))
        return
    fit = reproduced(model, matrices, differences.chosen, pair.problem, progress)
    progress("")
    _show_reproduced(fit, pair)
    report.gemm = gemm = replace(gemm, model=_reproduced(fit, model))
    ends = fit.models
    if ends[0] is not None and ends[1] is not None and ends[0] != ends[1]:
        _follow(
            comparison, report, Pair(compared_model(ends[0]), compared_model(ends[1]), compare), matrices, differences
        )
        return
    assert differences.first is not None
    if model.scale is None:
        gemm = replace(gemm, plans=_plans(model, matrices, differences, seconds, files.save))
    told_apart = gemm.plans and gemm.plans.why is not ABSENT
    explained = "plans explain" if told_apart else "no single change that was tried gives"
    say(f"{explained} both results; --json prints the dot product")
    report.gemm = replace(gemm, dot_product=_dot_product(matrices, differences.first, pair))


def _plans(
    model: Model, matrices: Matrices, differences: Differences, seconds: float | None, save: Path | None
) -> ComparedPlans:
    """The plans and instructions of the table that reproduce each result; for the two plans, one of each result, that
    differ least, the differences and the first step in which they differ."""
    from mmaprobe.cli.text.plan_results import save_plan
    from mmaprobe.queries.plans.recorded import Recorded
    from mmaprobe.queries.plans.report import plans_found
    from mmaprobe.queries.plans.results import plans_of_results
    from mmaprobe.reports.plan_pairs import nearest_pair

    recorded = Recorded.of(model, matrices.a, matrices.b, matrices.c, matrices.d)
    places = [(element.row, element.column) for element in differences.chosen]
    given = plans_of_results(recorded, places, progress, left(seconds))
    progress("")
    pair = nearest_pair(given, recorded, places)
    for sentence in () if pair is None else pair.why:
        say_wrapped(sentence, "why: ")
    every = []
    for index, one in enumerate(given):
        first = () if pair is None else pair.plans[index : index + 1]
        every.append(plans_found(one, first))
        for sentence in sentences(one, recorded, seconds, first):
            say_wrapped(sentence, f"D{index + 1}: ")
        path = save and save.with_stem(f"{save.stem}-D{index + 1}")
        save_plan(path, [*first, *one.plans], one, recorded.about, recorded.length)
    document = ComparedPlans(why=ABSENT if pair is None else pair.why, D1=every[0], D2=every[1])
    if pair is None or differences.first is None or any(one.products for one in given):
        return document
    return replace(document, first_step=_first_step(pair.plans, matrices, differences.first))


def _first_step(pair: tuple[Plan, Plan], matrices: Matrices, element: Element) -> FirstSteps | None:
    """Print the first step of an element in which two plans differ, and return it as each plan computes it."""
    from mmaprobe.queries.plans.first_step import first_step

    steps = first_step(*pair, matrices, element)
    if steps is None:
        return None

    def text(step: Loss | None) -> str:
        if step is None:
            return "no such step"
        products = "" if step.products is None else f", products {step.products[0]} to {step.products[1]},"
        return f"{step.step}{products} gives {float(step.value):.9g}"

    where = f"[{element.row}, {element.column}]"
    say_wrapped(f"the first step of element {where} in which they differ: {text(steps[0])} (D1); {text(steps[1])} (D2)")
    first, second = (
        None if step is None else StepOfPlan(step=step.step, products=step.products, value=str(step.value))
        for step in steps
    )
    return FirstSteps(D1=first, D2=second)


def _follow(comparison: Comparison, report: Report, pair: Pair, matrices: Matrices, differences: Differences) -> None:
    """Recompute the elements on both devices, and reduce the first divergence to a few terms."""
    from mmaprobe.queries.compare.gemm import reduce, traced

    report.pair = pair
    traces = traced(pair.left, pair.right, pair.problem, matrices, differences.chosen)
    assert report.gemm is not None
    gemm = replace(report.gemm, computed_again=_computed_again(pair, traces))
    diverged = [trace for trace in traces if trace.diverged is not None]
    if not diverged:
        say("  the devices agree on these elements: D1 and D2 were not both produced by them")
    source = reduce(comparison, pair.left, pair.right, pair.problem, traces) or (diverged[0] if diverged else None)
    trace = source or traces[0]
    report.gemm = gemm = replace(gemm, dot_product=_dot_product(matrices, trace.element, pair))
    if source is not None:
        start, end = source.products
        element = [source.element.row, source.element.column]
        report.gemm = replace(gemm, element=element, tile=source.diverged, products=[start, end])
        where = f"[{source.element.row}, {source.element.column}]"
        say(f"  element {where}: first divergence in products {start} to {end - 1} of {len(source.operands.a)}")


def _computed_again(pair: Pair, traces: Sequence[Trace]) -> ComputedAgain:
    """The number of elements in which each device reproduces its matrix's result."""
    from mmaprobe.queries.compare.devices import differing
    from mmaprobe.queries.kernel.questions.problem import Problem

    counts = {}
    for index, (word, side) in enumerate(zip(("first", "second"), pair.sides, strict=True)):
        last = [trace.results[index][-1] for trace in traces]
        same = ~differing(Problem(side.model, side.model, compare=pair.problem.compare), last,
                          [trace.element.d[index] for trace in traces])  # fmt: skip
        counts[word] = int(same.sum())
        tail = "" if same.all() else ": its matrix was not computed this way"
        say(f"  {side.name} reproduces D{index + 1} in {counts[word]} of {len(traces)} elements{tail}")
    return ComputedAgain(elements=len(traces), **counts)


def load_matrices(pair: Pair, files: Files) -> Matrices:
    """The matrices as bit patterns. Raises InputError or ParameterError."""
    from mmaprobe.queries.compare.gemm import Matrices
    from mmaprobe.smtmodel.evaluate.numbers import check_convert
    from mmaprobe.smtmodel.plans.gemm import addend

    model, convert, inputs, results = pair.left.model, files.convert, files.sides[:2], files.sides[2:]
    if model.scale is None:
        refuse(f"{model.reference or 'what the files say'} takes no scale factors", *(row.name for row in FACTORS))
    without_c = [side.name for side in pair.sides if not side.addend]
    if without_c and files.c is not None:
        raise ParameterError("--c", f"{without_c[0]} does not read c: leave it out")
    check_convert([load_matrix(path, mapped=True) for path in (*inputs, files.c) if path], convert)
    a, b = (patterns_of(path, fmt, convert) for path, fmt in zip(inputs, (model.a, model.b), strict=True))
    c = None if files.c is None else patterns_of(files.c, model.c, convert, bias=True)
    if c is not None and a.shape[1] == b.shape[0]:
        with errors_name(files.names, "C"):
            c = addend(c, (a.shape[0], b.shape[1]))
    one, two = (patterns_of(path, side.model.d) for path, side in zip(results, pair.sides, strict=True))
    scales = {name: patterns_of(path, model.formats.get(name, model.a)) for name, path in files.factors.items()}
    return Matrices(a, b, c, (one, two), scales)


# -- text and JSON


def _show_elements(differences: Differences, pair: Pair) -> None:
    for word, one in (("first", differences.first), ("largest", differences.largest)):
        if one is not None:
            texts = [
                f"{to_hex(d, side.model.d)} ({value_text(d, side.model.d)})"
                for d, side in zip(one.d, pair.sides, strict=True)
            ]
            ulps = "" if one.ulps is None else f", {one.ulps} ulp apart"
            say(f"  {word}: [{one.row}, {one.column}]: {' | '.join(texts)}{ulps}")


def _show_reproduced(fit: Reproduced, pair: Pair) -> None:
    for index in (0, 1):
        text = f"  {pair.left.name} gives D{index + 1} in {fit.agree[index]} of {fit.elements} elements compared"
        if fit.changes[index]:
            text += f"; all of them with one change: {', '.join(fit.changes[index])}"
        elif fit.models[index] is None:
            text += "; no single change tried gives all"
            if (reached := fit.reached[index]) is not None:
                text += f" (after {counted(reached, 'product')} its partial sum equals the first element)"
        say(text)


def _reproduced(fit: Reproduced, model: Model) -> ComparedModel:
    first, second = (
        ModelAgreement(agree=agree, changes=changes, reached_after=reached)
        for agree, changes, reached in zip(fit.agree, fit.changes, fit.reached, strict=True)
    )
    return ComparedModel(model=model.reference, elements=fit.elements, D1=first, D2=second)


def _element(one: Element | None, pair: Pair) -> DifferingElement | None:
    if one is None:
        return None
    results = [to_hex(d, side.model.d) for d, side in zip(one.d, pair.sides, strict=True)]
    return DifferingElement(row=one.row, column=one.column, d=results, ulps=one.ulps)


def _dot_product(matrices: Matrices, element: Element, pair: Pair) -> DotProduct:
    operands = operands_json(matrices.dot(element, pair.left.model), pair.left.model)
    return DotProduct.of({"row": element.row, "column": element.column} | operands)
