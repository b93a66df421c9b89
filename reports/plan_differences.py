"""The differences between two plans, in words."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

from mmaprobe.queries.plans.results import PlansOfResult
from mmaprobe.reports.plan_sheet import stage_words
from mmaprobe.smtmodel.arithmetic.display import number_text
from mmaprobe.smtmodel.evaluate.model import Model
from mmaprobe.smtmodel.nodes import Constant, Element, ExactSum, Literal, Node, Product, Relu, Round
from mmaprobe.smtmodel.nodes.node import of_kind, walk
from mmaprobe.smtmodel.nodes.normal import normal
from mmaprobe.smtmodel.plans import Plan, Products
from mmaprobe.smtmodel.plans.joins import rounding_words
from mmaprobe.smtmodel.plans.plantext import step_text

#: the respects in which plans may differ, in words: the beginnings of the sentences
INPUTS, UNIT, SUM, C, RESULT = "the inputs are", "the unit is", "the sum of the products:", "C:", "the result is"
STEPS = (Element, Literal, Constant, Relu, Round, Product, ExactSum)  # what follows a sum in most libraries

#: respect -> a plan's value, for comparison with other plans, and the value in words
Respects = dict[str, tuple[object, str]]


def products_left_out(results: Sequence[PlansOfResult]) -> list[str]:
    """A sentence on the difference between the products that two results contain; none if both contain the same."""
    texts = ["; ".join(one.products.sentences()) or "all are added once" for one in results]
    return [f"of the products, {texts[0]} (D1); {texts[1]} (D2)"] if texts[0] != texts[1] else []


def why_they_differ(one: Plan, other: Plan, with_c: bool) -> dict[str, str]:
    """The respects in which two plans differ, each with a sentence. `with_c`: the products had a C."""
    ways = zip(respects_of(one, with_c).items(), respects_of(other, with_c).values(), strict=True)
    return {what: f"{what} {left} (D1); {right} (D2)" for (what, (key, left)), (other_key, right) in ways
            if key != other_key and left != right}  # fmt: skip


def respects_of(plan: Plan, with_c: bool) -> Respects:
    """A plan in each of the respects in which plans may differ; in where it adds C only `with_c`."""
    taken = [f"rounded to {rounding_words(how)}" if how else "taken as they are"
             for how in (plan.convert_a, plan.convert_b)]  # fmt: skip
    starts = any(isinstance(products.start, Element) for products in plan.sums)
    uses = any(of_kind(plan.result, Element))
    where = {C: "the first sum begins with it" if starts else "added at the end" if uses else "not used"}
    words = {
        INPUTS: taken[0] if taken[0] == taken[1] else f"{taken[0]} (A) and {taken[1]} (B)",
        UNIT: " and ".join(model.reference for model in plan.models),
        SUM: "; ".join(str(one) for own in plan.sums for one in stage_words(own.stage)),
        **(where if with_c else {}),
        RESULT: _words_of_result(plan, "the sum and c" if starts and with_c else "the sum"),
    }
    arithmetics = tuple(map(_arithmetic, plan.models))  # a unit may have two names
    return {what: (arithmetics if what == UNIT else text, text) for what, text in words.items()}


@cache
def _arithmetic(model: Model) -> tuple[int, Node]:
    return model.length, normal(model.unit.result)


def _words_of_result(plan: Plan, total: str) -> str:
    """What becomes of a plan's sum, in words, step by step; the plan's expression if it has several sums, or steps that
    are none of those that follow a sum in most libraries. `total`: the sum in words."""
    usual = all(isinstance(node, (Products, *STEPS)) for node in walk(plan.result))
    return _steps(plan.result, total) if usual and len(plan.sums) == 1 else step_text(plan)[0]


def _steps(node: Node, total: str) -> str:
    match node:
        case Products():
            return total
        case Element():
            return "c"
        case Literal():
            return number_text(node.pattern, node.format)
        case Relu():
            return f"{_steps(node.term, total)}, but zero for those below zero"
        case Round():
            before = _steps(node.term, total)
            then = "then " if "rounded to" in before else ""
            return f"{before}, {then}rounded to {rounding_words(node.rounding)}"
        case Product(factor, term):
            return f"{_apart(term, total)} times {_steps(factor, total)}"
        case ExactSum(terms):
            first, *others = sorted(terms, key=lambda term: not any(of_kind(term, Products)))
            return f"{_steps(first, total)}{''.join(_added(term, first, total) for term in others)}"
    raise AssertionError(f"no step of a result: {node.kind}")


def _added(term: Node, to: Node, total: str) -> str:
    """The addition of a term that is not the sum, in words."""
    if isinstance(term, Literal):
        return f", plus {_steps(term, total)}"
    return f"{'' if isinstance(to, Products) else ','} and {_apart(term, total)}"


def _apart(term: Node, total: str) -> str:
    """A term in words, in parentheses where the words say several things."""
    text = _steps(term, total)
    return f"({text})" if "," in text or " and " in text else text
