"""Scale factors that are the same for every largest magnitude: the rule against all numbers of small formats."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from mmaprobe.queries.checking.folder import check_folder
from mmaprobe.queries.kernel.integers.factors import FactorsAlike, same_factors, same_integers
from mmaprobe.queries.kernel.lemmas import exhausted
from mmaprobe.queries.kernel.theorem import RuleError, Theorem
from mmaprobe.queries.plans.certify import certify_plans
from mmaprobe.queries.plans.equal import prove_plans
from mmaprobe.queries.search.distinguish import Options
from mmaprobe.smtmodel.plans import plan_files
from mmaprobe.smtmodel.plans.gemm import simulate
from mmaprobe.smtmodel.plans.plan import Plan
from mmaprobe.smtmodel.plans.planfile import parse_plan
from mmaprobe.smtmodel.tables.reference import parse_plan_reference, parse_reference
from tests.oracles.oracle import decode
from tests.plans.test_blocks import tiny
from tests.rules.test_every import UNIT as SUMS
from tests.rules.test_every import tiny as tiny_sums

pytestmark = pytest.mark.compilers

FACTOR = "e(product(2**-2, largest(a, block=2)))"
BLOCK = "largest(a, block=2)"


def power(most: Fraction) -> int:
    """The exponent of a number."""
    place = most.numerator.bit_length() - most.denominator.bit_length()
    return place - (Fraction(2) ** place > most)


def up(most: Fraction) -> int:
    return power(most) + (most != Fraction(2) ** power(most))


#: factors with their exponents for a largest magnitude, told a second time; e rounds down, u up
FACTORS: dict[str, Callable[[Fraction], int]] = {
    FACTOR: lambda most: power(most) - 2,
    f"e(quotient({BLOCK}, 2**2))": lambda most: power(most / 4),
    f"e(r(quotient({BLOCK}, number(0x40800000, f32))))": lambda most: power(most) - 2,
    f"e(quotient({BLOCK}, number(0x40c00000, f32)))": lambda most: power(most / 6),
    f"u(quotient({BLOCK}, number(0x40c00000, f32)))": lambda most: up(most / 6),
    f"u(r(product({BLOCK}, number(0x3e2aaaab, f32))))": lambda most: up(most / 6),  # rounded, a power of two is one
    f"u(product({BLOCK}, number(0x3e2aaaab, f32)))": lambda most: power(most / 6) + 1,  # and without it is beyond
    f"u(product({BLOCK}, number(0x3e2aaaaa, f32)))": lambda most: up(most / 6),
    f"e(product(2**-1, {BLOCK}))": lambda most: power(most) - 1,
    f"u(product(2**-3, {BLOCK}))": lambda most: up(most) - 3,
}  # fmt: skip


def test_sums_of_no_products_say_nothing_of_every_k() -> None:
    """Of K = 0 a theorem was made, which speaks of every multiple of 0; and sums of 7 bits may leave their range."""
    wide, narrow = tiny_sums(unit=SUMS.replace("int7", "int8").replace("=6", "=7")), tiny_sums()
    assert same_integers(wide, wide, 1).goal.statement().endswith("for K = 1")
    for length in (1, 0, -1):
        with pytest.raises(RuleError, match="may leave" if length == 1 else "K is from 1 on"):
            same_integers(wide, narrow, length)


def plan_of(factor: str) -> Plan:
    return tiny(FACTOR, factor)


def proved(left: Plan, right: Plan, *sides: int) -> Theorem:
    return same_factors(left, right, [exhausted(FactorsAlike(left, right, side)) for side in sides])


@pytest.mark.parametrize("one", FACTORS)
def test_factors_are_proved_equal_exactly_if_they_are(one: str) -> None:
    """For all numbers of e2m3, and then results are the same for all inputs of two products."""
    numbers = [abs(decode("e2m3", pattern).value) for pattern in range(1, 32)]
    rows = np.array([(x, y) for x in range(64) for y in range(0, 64, 5)], dtype=np.uint8)
    for other in FACTORS:
        left, right = plan_of(one), plan_of(other)
        if any(FACTORS[one](most) != FACTORS[other](most) for most in numbers):
            with pytest.raises(RuleError, match="shows otherwise"):
                proved(left, right, 0)
            continue
        assert proved(left, right, 0)
        c = np.zeros((len(rows), len(rows)), np.uint32)
        d = [simulate(rows, np.ascontiguousarray(rows.T), c, plan, engine="numpy") for plan in (left, right)]
        assert np.array_equal(*d)


def test_shipped_factors_by_other_rules(tmp_path: Path) -> None:
    """TransformerEngine's tuned kernel multiplies by a number of bf16 next to 1/448, another reading divides by 448; of
    f32, engines are asked."""
    te, mx = (parse_plan_reference(f"plan:{name}") for name in ("transformerengine/mxfp8", "mx/fp8"))
    library = Path(plan_files.FOLDER)

    def changed(plan: Plan, old: str, new: str) -> Plan:
        text = (library / f"{plan.reference}.yaml").read_text()
        assert old in text
        return parse_plan(text.replace(old, new), "mine.yaml", parse_reference)

    reciprocal = "number(0x3b124925, f32)"
    for plan, old, new, equal in (
        (te, reciprocal, "number(0x3b12, bf16)", True), (te, reciprocal, "number(0x3b124924, f32)", True),
        (te, reciprocal, "number(0x3b40, bf16)", False),
        (mx, "product(2**-8, largest(a", "quotient(2**-8, largest(a", False),
    ):  # fmt: skip
        other = changed(plan, old, new)
        found = prove_plans(plan, other, options=Options(timeout=60.0))
        assert found.verdict == ("equal" if equal else "different"), new
        if equal:
            assert found.theorem is not None
            assert found.theorem.rule == "same_factors"
            assert found.multiples == 1
            assert not found.is_rewritten
    proof = prove_plans(mx, changed(mx, "product(2**-8, largest(a, block=32))", "quotient(largest(a, block=32), 2**8)"))
    assert proof.verdict == "equal"
    certify_plans(proof, tmp_path / "certificate", Options())
    assert {one.kind for one in check_folder(tmp_path / "certificate")} == {"fine"}


def test_what_is_refused() -> None:
    plan, other = plan_of(FACTOR), plan_of(f"e(quotient({BLOCK}, 2**2))")
    lemma = exhausted(FactorsAlike(plan, other, 0))
    assert same_factors(plan, other, [lemma])
    for left, right, lemmas, reason in (
        (plan, other, [], "differ in more"), (other, plan, [lemma], "about other plans"),
    ):  # fmt: skip
        with pytest.raises(RuleError, match=reason):
            same_factors(left, right, lemmas)
    changed = FACTOR, f"e(quotient({BLOCK}, 2**2))"
    rounded = tiny(*changed, "a1: q(quotient(a, factor_a))", "a1: q(r(quotient(a, factor_a)))")
    with pytest.raises(RuleError, match="differ in more"):
        same_factors(plan, rounded, [exhausted(FactorsAlike(plan, rounded, 0))])
    steps = tiny(*changed, "largest(b)))", "largest(a)))")
    with pytest.raises(RuleError, match="other things with their sums"):
        same_factors(plan, steps, [exhausted(FactorsAlike(plan, steps, 0))])
    rows = tiny(FACTOR, f"e(product(largest(a), {BLOCK}))")
    with pytest.raises(RuleError, match="from other magnitudes"):
        FactorsAlike(plan, rows, 0)
    without = parse_plan_reference("plan:loop/fma")
    with pytest.raises(RuleError, match="no scale factors"):
        FactorsAlike(without, without, 0)
