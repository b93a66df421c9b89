"""`prove --property error-bound`: a proved bound of the error of one model, as a formula and as numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from mmaprobe.cli.commands.prove_line import ERROR_BOUND, AnyDocument, Found, OfSides
from mmaprobe.cli.options import refuse, say
from mmaprobe.documents.prove import ErrorBound, Nearest, NumericBound, PlanErrorBound, PlanFormula, below_text
from mmaprobe.smtmodel.base.wording import counted

if TYPE_CHECKING:
    from mmaprobe.queries.conjectures.bounds import BoundOfModel, BoundOfPlan
    from mmaprobe.queries.kernel.bounds.forms import Form
    from mmaprobe.queries.kernel.theorem import Theorem
    from mmaprobe.queries.plans.bound_report import PlanBound
    from mmaprobe.queries.properties.bound_report import BoundResult

SHOWN = 8  # products of an input that is printed


class OfBound(OfSides[Found, AnyDocument]):
    """The error of one model or plan has a bound."""

    def check(self) -> None:
        super().check()
        refuse(f"{ERROR_BOUND} compares no results", "compare")
        if self.line.latex:
            refuse("LaTeX shows the formulas alone", "explain")
        if len(self.line.sides) != 1:
            raise click.UsageError(f"{ERROR_BOUND} is a property of one model")

    def show_latex(self, bounds: Sequence[tuple[str, str]], conditions: str) -> None:
        """Print bounds, each with what it is for, as LaTeX on standard output, unless a JSON document stands there."""
        from mmaprobe.reports.latex import latex_of_bounds

        put = say if self.line.as_json else click.echo
        put(latex_of_bounds(bounds, conditions))


class UnitBound(OfBound["BoundResult", ErrorBound]):
    """A bound of a unit, or of a chain of its instructions."""

    def conjectured(self) -> BoundOfModel:
        from mmaprobe.queries.conjectures.bounds import BoundOfModel

        line = self.line
        return BoundOfModel(line.sides[0].model, line.inputs, line.length, line.measure)

    def show(self, found: BoundResult, document: ErrorBound) -> None:
        from mmaprobe.queries.properties.bound import error_of
        from mmaprobe.smtmodel.arithmetic.display import exact_value

        if found.shown is None:
            near = document.nearest
            if found.near is None or near is None:
                say(f"{ERROR_BOUND}: unknown: no bound is proved: {found.reason}")
                return
            d, exact = float(exact_value(found.near.results[-1], found.model.d)), float(found.near.exact)
            say(f"{ERROR_BOUND}: refuted: a sum wraps, and no bound holds: d is {d:.6g} where the exact result is "
                f"{exact:.6g} and all magnitudes add up to {near.bound:.6g}")  # fmt: skip
            _show_near(found, near)
            return
        if self.line.latex:
            chain = [("", document.chain.any)] if document.chain else []
            self.show_latex([("", document.formula), *chain], ", ".join(document.premises))
            return
        if self.line.explain:
            _show_theorems(found.shown)
        say(f"  {document.formula}")
        _show_constants(error_of(found.shown), document.formula)
        say(f"  where {', '.join(document.premises)}")
        say(f"  {_numeric(document.window)}")
        if (near := document.nearest) is None:
            say("  none of the inputs tried is one that the bound is about")
        elif not near.error:
            say(f"  {_exact(document.tried)}")
        else:
            say(
                f"  nearest input found, of any size: an error of {near.error:.6g}, {near.ratio:.4f} of the bound there"
            )
            _show_near(found, near)
        if document.chain:
            say(f"  each instruction: {document.chain.step}")
            say("    where E is the error before it, and A is |c| and the magnitudes of all products before it")
            say(f"  {document.chain.any}")
        _show_proved(document, f"; checked against {counted(document.tried, 'input')}")


class PlanBounds(OfBound["PlanBound", PlanErrorBound]):
    """Bounds of a plan, for every K and for the K asked."""

    def conjectured(self) -> BoundOfPlan:
        from mmaprobe.queries.conjectures.bounds import BoundOfPlan
        from mmaprobe.queries.plans.bound_report import SIZES

        line, lengths = self.line, SIZES if self.line.length is None else (self.line.length,)
        return BoundOfPlan(line.sides[0].plan, line.inputs, lengths, line.sides[0].text, line.measure)

    def show(self, found: PlanBound, document: PlanErrorBound) -> None:
        from mmaprobe.queries.plans.bound_report import growth_of, whole_text

        if document.verdict == "unknown":
            say(f"{ERROR_BOUND}: unknown: no bound is proved: {document.reason}")
            return
        if self.line.latex:
            bounds = list[tuple[str, str]]()
            if (formula := document.formula) is not None:
                bounds.append((_lengths(formula), whole_text(formula)))
            bounds += [(f"K = {row.length}", row.bound) for row in document.sizes]
            bounds += [(f"K = {one.length}, where {one.premises}", one.bound) for one in document.largest or ()]
            self.show_latex(bounds, "" if document.largest else _premises(document))
            return
        if document.largest:
            for most in document.largest:
                say(f"  for K = {most.length}: {most.bound}")
                say(f"    where {most.premises}")
            say(f"{ERROR_BOUND}: proved in {document.seconds:.1f} s; none in sum |a_k b_k|: {document.reason}")
            return
        if self.line.explain:
            _show_theorems(found.theorems[0])
        if (formula := document.formula) is not None:
            say(f"  for {_lengths(formula)}: {formula.bound}")
            if growth := growth_of(formula):
                say(f"    where G = {growth}")
            if line := _other_lengths(formula, [row.length for row in document.sizes]):
                say(f"    {line}")
        else:
            say(f"  no formula for any K: {document.reason}")
        for row, form in zip(document.sizes, (size.form for size in found.sizes), strict=True):
            say(f"  for K = {row.length}: {row.bound}")
            _show_constants(form, row.bound)
            say(f"    {_numeric(row.window)}")
            if (near := row.nearest) is not None and not near.error:
                say(f"    {_exact(row.tried)}")
            elif near is not None:
                tried, there = f"nearest of {row.tried} inputs", f"{near.ratio:.4f} of the bound there"
                say(f"    {tried}: an error of {near.error:.6g}, {there} (its numbers: --json)")
        say(f"  where {_premises(document)}")
        _show_proved(document)


def _exact(tried: int) -> str:
    """What is said where no input that was tried has an error."""
    return f"none of {counted(tried, 'input')} has an error"


def _show_theorems(last: Theorem) -> None:
    """Print the chain of theorems to `last`."""
    for theorem in last.walk():
        say(f"  {theorem.rule}: {theorem.goal.statement()}{f' ({theorem.word})' if theorem.word else ''}")


def _show_proved(document: ErrorBound | PlanErrorBound, checked: str = "") -> None:
    """Print the lemmas of a proved bound, and the verdict; `checked`: a text about the check of the bound."""
    for lemma in document.lemmas:
        say(f"  the datapath: {lemma.lemma}: {lemma.by}")
    rules = sum(document.rules.values()) - len(document.lemmas)
    say(f"{ERROR_BOUND}: proved in {document.seconds:.1f} s, {counted(rules, 'theorem')} by rules of the kernel, "
        f"{counted(len(document.lemmas), 'lemma')} about the datapath{checked}")  # fmt: skip


def _premises(bound: PlanErrorBound) -> str:
    sums = [] if bound.measure == "largest" else ["and sums are over all K products"]
    return ", ".join([*bound.premises, *sums])


def _lengths(formula: PlanFormula) -> str:
    """The values of K that a formula covers."""
    from mmaprobe.queries.plans.bound_report import lengths_text

    return f"{lengths_text(formula)}{'' if formula.width else ', any n'}"


def _other_lengths(formula: PlanFormula, shown: Sequence[int]) -> str:
    """A text about the values of K that a formula does not cover; empty where the formula covers all."""
    if formula.width or (formula.multiples == 1 and not formula.before):
        return ""
    beyond = (k for k in shown if k <= formula.before or (k - formula.before) % formula.multiples)
    others = ", ".join(f"K = {k}" for k in beyond)
    return f"it says nothing of {others or 'any other K'}: {'see below' if others else '--length K gives its bound'}"


def _show_constants(form: Form, shown: str) -> None:
    """Print the coefficients that are rounded up in a formula."""
    from mmaprobe.queries.properties.bound_report import constants_of

    for line in constants_of(form, shown):
        say(f"    {line}")


def _numeric(window: NumericBound) -> str:
    """The bound as a number, with the inputs for which it holds."""
    from mmaprobe.queries.kernel.bounds.wording import up_decimal

    bound = up_decimal(window.bound, 6)
    below = f"below {below_text(window.max)} in magnitude"
    return f"for inputs {below} (exponents of at most {window.max}): |d - exact| <= {bound}"


def _show_near(result: BoundResult, nearest: Nearest) -> None:
    """Print the operands of a short input, or how to print those of a long one."""
    from mmaprobe.cli.text.vectors import show_operands
    from mmaprobe.smtmodel.evaluate.operands import layout_of

    if result.near is not None and nearest.vector and result.length <= SHOWN:
        show_operands(result.model, layout_of(result.model).split(result.near.row))
    else:
        say("    (its operands: --json)")
