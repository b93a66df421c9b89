"""`prove --property error-bound`: a proved bound of the error of one model, as a formula and as numbers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import click

from mmaprobe.cli.options import EXIT, progress, say
from mmaprobe.cli.text.certificates import finish
from mmaprobe.smtmodel.base.wording import counted

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from mmaprobe.documents.prove import (
        ErrorBound,
        LargestBoundAt,
        Measure,
        Nearest,
        NumericBound,
        PlanErrorBound,
        PlanFormula,
    )
    from mmaprobe.queries.kernel.bounds.forms import Form
    from mmaprobe.queries.kernel.theorem import Theorem
    from mmaprobe.queries.plans.bound_report import PlanBound
    from mmaprobe.queries.properties.bound_report import BoundResult
    from mmaprobe.queries.search.distinguish import Options
    from mmaprobe.smtmodel.inputs.admitted import Inputs

ERROR_BOUND = "error-bound"


@dataclass(frozen=True)
class Shown:
    """`explain`: print the chain of lemmas too. `latex`: print formulas alone, as LaTeX. `measure`: the magnitudes in
    bounds; None: of all elements, or, with no rule for these, the largest."""

    explain: bool
    latex: bool
    measure: Measure | None = None


SHOWN = 8  # products of an input that is printed
SMALL = 16  # exponents below it are shown as whole numbers


def prove_bound(
    models: tuple[str, ...], inputs: Inputs, length: int | None, options: Options, confirm: bool, how: Shown,
    as_json: bool, certificate: Path | None = None,
) -> int:  # fmt: skip
    """Print the bound; returns the exit code. Raises ParameterError and FaultError as `find_bound` does, and
    CertificateError after the proved bound was printed."""
    from mmaprobe.queries.properties.bound_certificate import certify_bound, certify_wrap
    from mmaprobe.queries.properties.bound_report import document_of, find_bound
    from mmaprobe.queries.tactics.settling import Settled
    from mmaprobe.smtmodel.tables.reference import names_plan, parse_reference

    if len(models) != 1:
        raise click.UsageError(f"{ERROR_BOUND} is a property of one model")
    if names_plan(models[0]):
        return _prove_of_plan(models[0], inputs, length, options, confirm, how, as_json, certificate)
    result = find_bound(parse_reference(models[0]), inputs, length, Settled(options, confirm), how.measure)
    progress("")
    document = document_of(result)
    _show(result, document, how)
    write = certify_bound if result.verdict == "holds" else certify_wrap
    into = None if result.verdict == "unknown" else certificate
    finish(document, into, lambda folder: write(result, folder, options), options.timeout, as_json)
    return EXIT[result.verdict]


def _prove_of_plan(
    name: str, inputs: Inputs, length: int | None, options: Options, confirm: bool, how: Shown, as_json: bool,
    certificate: Path | None,
) -> int:  # fmt: skip
    from mmaprobe.queries.plans.bound_report import SIZES, document_of_plan, find_plan_bound
    from mmaprobe.queries.plans.certify import certify_plan_bound
    from mmaprobe.queries.tactics.settling import Settled
    from mmaprobe.smtmodel.tables.reference import parse_plan_reference

    plan, lengths = parse_plan_reference(name), SIZES if length is None else (length,)
    settled = Settled(options, confirm)
    bound = find_plan_bound(plan, inputs, lengths, settled, options.progress, late=settled.late, measure=how.measure)
    progress("")
    document = document_of_plan(bound, name)
    _show_plan(bound, document, how)
    into = certificate if bound.verdict == "holds" else None
    finish(document, into, lambda folder: certify_plan_bound(bound, folder, options), options.timeout, as_json)
    return EXIT[bound.verdict]


def _show_plan(bound: PlanBound, document: PlanErrorBound, how: Shown) -> None:
    from mmaprobe.queries.plans.bound_report import growth_of
    from mmaprobe.reports.latex import latex_of_bounds

    if bound.verdict == "unknown":
        say(f"{ERROR_BOUND}: unknown: no bound is proved: {bound.reason}")
        return
    if how.latex:
        bounds = list[tuple[str, str]]()
        if (formula := document.formula) is not None:
            growth = f" where G = {growth_of(formula)}" if growth_of(formula) else ""
            bounds.append((_lengths(formula), formula.bound + growth))
        bounds += [(f"K = {row.length}", row.bound) for row in document.sizes]
        bounds += [
            (f"K = {most.length}, where {_of_largest(most)}", most.bound)
            for most in (document.largest if bound.largest else ())
        ]
        say(latex_of_bounds(bounds, "" if bound.largest else _premises(bound)))
        return
    if bound.largest:
        _show_largest(document.largest)
        say(f"{ERROR_BOUND}: proved in {bound.seconds:.1f} s; none in sum |a_k b_k|: {bound.reason}")
        return
    if how.explain:
        _show_theorems(bound.theorems[0])
    if (formula := document.formula) is not None:
        say(f"  for {_lengths(formula)}: {formula.bound}")
        if growth := growth_of(formula):
            say(f"    where G = {growth}")
        if line := _other_lengths(formula, [row.length for row in document.sizes]):
            say(f"    {line}")
    else:
        say(f"  no formula for any K: {bound.reason}")
    for row, form in zip(document.sizes, (size.form for size in bound.sizes), strict=True):
        say(f"  for K = {row.length}: {row.bound}")
        _show_constants(form, row.bound)
        say(f"    {_numeric(row.window)}")
        if (near := row.nearest) is not None:
            tried = f"nearest input of {row.tried}"
            say(f"    {tried}: an error of {near.error:.6g}, {near.ratio:.4f} of the bound there (its numbers: --json)")
    say(f"  where {_premises(bound)}")
    _show_proved(document)


def _show_theorems(last: Theorem) -> None:
    """Print the chain of theorems to `last`."""
    for theorem in last.walk():
        say(f"  {theorem.rule}: {theorem.goal.statement()}{f' ({theorem.word})' if theorem.word else ''}")


def _show_proved(document: ErrorBound | PlanErrorBound, checked: str = "") -> None:
    """The lemmas of a bound that is proved, and the verdict; `checked`: a text about its check."""
    for lemma in document.lemmas:
        say(f"  the datapath: {lemma.lemma}: {lemma.by}")
    rules = sum(document.rules.values()) - len(document.lemmas)
    say(f"{ERROR_BOUND}: proved in {document.seconds:.1f} s, {counted(rules, 'theorem')} by rules of the kernel, "
        f"{counted(len(document.lemmas), 'lemma')} about the datapath{checked}")  # fmt: skip


def _premises(bound: PlanBound) -> str:
    sums = [] if bound.measure == "largest" else ["and sums are over all K products"]
    return ", ".join([*bound.premises, *sums])


def _show_largest(every: Sequence[LargestBoundAt]) -> None:
    for one in every:
        say(f"  for K = {one.length}: {one.bound}")
        say(f"    where {_of_largest(one)}")


def _of_largest(one: LargestBoundAt) -> str:
    """The bound's inputs in words."""
    return f"inputs are finite, c = 0, and {one.where}"


def _lengths(formula: PlanFormula) -> str:
    """The values of K that a formula covers."""
    from mmaprobe.queries.plans.bound_report import lengths_text

    return f"{lengths_text(formula)}{'' if formula.width else ', any n'}"


def _other_lengths(formula: PlanFormula, shown: Sequence[int]) -> str:
    """What is said of the values of K that a formula does not cover; nothing where it covers all."""
    if formula.width or (formula.multiples == 1 and not formula.before):
        return ""
    beyond = (k for k in shown if k <= formula.before or (k - formula.before) % formula.multiples)
    others = ", ".join(f"K = {k}" for k in beyond)
    return f"it says nothing of {others or 'any other K'}: {'see below' if others else '--length K gives its bound'}"


def _show_constants(form: Form, shown: str) -> None:
    """The coefficients that are rounded up in a formula."""
    from mmaprobe.queries.properties.bound_report import constants_of

    for line in constants_of(form, shown):
        say(f"    {line}")


def _numeric(window: NumericBound) -> str:
    """The bound as a number, and the inputs that it is for."""
    from mmaprobe.queries.kernel.bounds.wording import up_decimal

    top = window.max
    below = str(2 << top) if 0 <= top < SMALL else f"2^{top + 1}"
    bound = up_decimal(window.bound, 6)
    return f"for inputs below {below} in magnitude (exponents of at most {top}): |d - exact| <= {bound}"


def _show_near(result: BoundResult, nearest: Nearest) -> None:
    """The operands of an input that is not long."""
    from mmaprobe.cli.text.vectors import show_operands
    from mmaprobe.smtmodel.evaluate.operands import layout_of

    if result.near is not None and nearest.vector and result.length <= SHOWN:
        show_operands(result.model, layout_of(result.model).split(result.near.row))
    else:
        say("    (its operands: --json)")


def _show(result: BoundResult, document: ErrorBound, how: Shown) -> None:
    from mmaprobe.queries.properties.bound import error_of
    from mmaprobe.queries.properties.bound_report import conditions_of
    from mmaprobe.reports.latex import latex_of_bounds
    from mmaprobe.smtmodel.arithmetic.display import exact_value

    if result.shown is None:
        near = document.nearest
        if result.near is None or near is None:
            say(f"{ERROR_BOUND}: unknown: no bound is proved: {result.reason}")
            return
        d = exact_value(result.near.results[-1], result.model.d)
        say(f"{ERROR_BOUND}: refuted: a sum wraps, and no bound holds: d is {float(d):.6g} where the exact result is "
            f"{float(result.near.exact):.6g} and all magnitudes add up to {near.bound:.6g}")  # fmt: skip
        _show_near(result, near)
        return
    if how.latex:
        chain = [("", document.chain.any)] if document.chain else []
        say(latex_of_bounds([("", document.formula), *chain], conditions_of(result.premises, document.formula)))
        return
    if how.explain:
        _show_theorems(result.shown)
    say(f"  {document.formula}")
    _show_constants(error_of(result.shown), document.formula)
    say(f"  where {conditions_of(result.premises, document.formula)}")
    say(f"  {_numeric(document.window)}")
    if (near := document.nearest) is None:
        say("  none of the inputs tried is one that the bound is about")
    else:
        say(f"  nearest input, of any size: an error of {near.error:.6g}, {near.ratio:.4f} of the bound there")
        _show_near(result, near)
    if document.chain:
        say(f"  each instruction: {document.chain.step}")
        say("    where E is the error before it, and A is |c| and the magnitudes of all products before it")
        say(f"  {document.chain.any}")
    _show_proved(document, f"; checked against {counted(document.tried, 'input')}")
