"""Bounds in the unit u of an alignment and the last place of the result, as in Table 9 of Xie et al. 2026.

They hold for a unit whose result is one sum of all its products and c, each term truncated to a multiple of u = 2^(m -
F), and rounded once toward zero; m is the largest exponent of a nonzero term (for a product the sum of its factors'
exponents, each at least emin). The statements here hold for all finite inputs, without the hypotheses of enclosures.py.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from mmaprobe.queries.kernel.bounds.enclosures import Enclosed, Places, alignments, terms_of
from mmaprobe.queries.kernel.datapath.rounding_losses import TruncationKeeps
from mmaprobe.queries.kernel.lemmas import AlignmentLoses
from mmaprobe.queries.kernel.theorem import Made, RuleError, Theorem, goal_of, rule
from mmaprobe.smtmodel.nodes import Element, FusedSum, Node, Product, Round
from mmaprobe.smtmodel.units.unit import Unit


@dataclass(frozen=True)
class SumInUnits:
    """The statement that |s - exact| <= lost * u for the sum s before its rounding, and that s is a multiple of u."""

    unit: Unit
    lost: int

    def statement(self) -> str:
        return f"the sum loses at most {self.lost} u"


@dataclass(frozen=True)
class BoundInUnits:
    """The statement that d is finite, and |d - exact| at most units * u + max(u, ulp(d)); or, if `apart`, units * u +
    ulp(d)."""

    unit: Unit
    units: int
    apart: bool

    def statement(self) -> str:
        return f"|d - exact| <= {self.units} u + {'ulp(d)' if self.apart else 'max(u, ulp(d))'}"


def sum_of(unit: Unit) -> FusedSum:
    """The sum of a unit whose result is one fused sum, rounded. Raises RuleError."""
    if not isinstance(unit.result, Round):
        raise RuleError("steps: the result is not one sum, rounded")
    if not isinstance(unit.result.term, FusedSum):
        raise RuleError("fused: the sum that is rounded is not of aligned terms")
    return unit.result.term


def terms_of_sum(total: FusedSum) -> list[tuple[Node, Places]]:
    """The terms of a sum, in order, with their values of loop variables."""
    return [term for item in total.items for term in terms_of(item, {})]


def factors_of(node: Node, places: Mapping[int, int]) -> tuple[int, ...]:
    """The indices of both factors of a product a_k b_k; for c, no indices. Raises RuleError for another term."""
    if isinstance(node, Product) and not node.normalised and node.limit is None:
        factors = [node.left, node.right]
    elif isinstance(node, Element) and node.operand == "c":
        factors = [node]
    else:
        raise RuleError("fused: a term is neither an exact unnormalised product nor c")
    places_of = {one.operand: 0 if one.index is None else one.index.at(places) for one in factors
             if isinstance(one, Element) and one.subnormals == "keep"}  # fmt: skip
    if places_of.keys() != ({"c"} if len(factors) == 1 else {"a", "b"}):
        raise RuleError("inputs: a factor is not an input of its own side, or loses its subnormal numbers")
    return () if len(factors) == 1 else (places_of["a"], places_of["b"])


@rule
def summed(unit: Unit, premises: Sequence[Theorem], lemmas: Sequence[Theorem]) -> Made:
    """Each term keeps F bits: it is truncated to a multiple of u = 2^(m - F) and loses less than u; the sum loses
    nothing more. A term with the exponent m loses nothing if it has at most F digits below its exponent: if all terms
    have at most F, one of them loses nothing. A lower bound of m changes nothing if no term's exponent lies below it.
    The terms must be c and every product a_k b_k once, each exact; then their sum is the exact result."""
    total = sum_of(unit)
    if total.rounding != "toward_zero" or total.sticky or total.carry_bits is not None or any(
        far is not None for far in total.reach
    ) or not isinstance(total.fraction_bits, int):  # fmt: skip
        raise RuleError("fused: a term is not truncated at one place, or the sum may wrap")
    wanted = terms_of_sum(total)
    goals: list[Enclosed] = [goal_of(premise, Enclosed, "summed") for premise in premises]
    if [(goal.node, goal.places) for goal in goals] != wanted or any(goal.unit is not unit for goal in goals):
        raise RuleError("summed: the premises are not about its terms")
    if any(goal.assuming or goal.provided or goal.facts.low.parts or goal.facts.high.parts for goal in goals):
        raise RuleError("summed: a term is not exact")
    products = sorted(factors_of(node, dict(places)) for node, places in wanted)
    if products != [(), *((k, k) for k in range(unit.length))]:
        raise RuleError("steps: not every product, and c, is added once")
    leasts = [goal.facts.known.least for goal in goals]
    if any(least is None or least < bound for least in leasts for bound in total.bounds):
        raise RuleError(f"fused: its floor {max(total.bounds)} can exceed the exponents of all terms")
    if {goal_of(lemma, AlignmentLoses, "summed") for lemma in lemmas} != set(alignments(total, (), premises)):
        raise RuleError("summed: a lemma about the datapath is missing, or about another one")
    digits = [goal.facts.known.digits for goal in goals]
    whole = all(number is not None and number <= total.fraction_bits for number in digits)
    return Made(SumInUnits(unit, len(goals) - whole), (*premises, *lemmas))


@rule
def truncated(premise: Theorem, lemma: Theorem) -> Made:
    """The sum s, a multiple of u, rounded toward zero to d, a multiple of ulp(d): it loses less than ulp(d). If u >=
    ulp(d), s is a multiple of ulp(d) and loses nothing; else it loses a multiple of u, at most ulp(d) - u. So |d -
    exact| <= lost * u + max(u, ulp(d)) - u.

    It does not overflow: all products together are below 2^(emax - 1). c is below 2^emax, or it is truncated to as many
    bits as the largest numbers of d's format have: if c has the exponent emax, no product reaches u, and each is
    truncated to zero."""
    goal: SumInUnits = goal_of(premise, SumInUnits, "truncated")
    unit, total = goal.unit, sum_of(goal.unit)
    assert isinstance(unit.result, Round)
    how, fmt = unit.result.rounding, unit.d
    if how.format != fmt or how.mode != "toward_zero" or how.subnormals != "keep":
        raise RuleError("subnormals: the sum is not rounded toward zero to a format that keeps subnormal numbers")
    full = fmt.fraction > 0 and not ~fmt.largest_field & ((1 << fmt.fraction) - 1)
    if not (fmt.signed and fmt.subnormals and full):
        raise RuleError(f"d: {fmt.name} has no sign, no subnormal numbers, or a largest number that is not full")
    products = unit.a.emax + unit.b.emax + 2  # no product reaches 2^products
    assert isinstance(total.fraction_bits, int)
    same = unit.c.emax == fmt.emax and min(unit.c.fraction, total.fraction_bits) <= fmt.fraction
    if products + unit.length.bit_length() >= fmt.emax or not (
        unit.c.emax < fmt.emax or (same and products <= fmt.emax - total.fraction_bits)
    ):  # fmt: skip
        raise RuleError(f"d: {fmt.name} can overflow on finite inputs")
    if goal_of(lemma, TruncationKeeps, "truncated") != TruncationKeeps(fmt):
        raise RuleError("truncated: a lemma is about another datapath")
    return Made(BoundInUnits(unit, goal.lost - 1, False), (premise, lemma))


@rule
def loosened(premise: Theorem, units: int, apart: bool) -> Made:
    """A bound holds with more units; and max(u, ulp(d)) <= u + ulp(d)."""
    goal: BoundInUnits = goal_of(premise, BoundInUnits, "loosened")
    if units < goal.units + (apart and not goal.apart) or (goal.apart and not apart):
        raise RuleError(f"loosened: only {goal.statement()} is known")
    return Made(BoundInUnits(goal.unit, units, apart), (premise,))
