"""A small certificate of every kind, written once; and which rule each of them ends in."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from benchmarks.plan_statements import UNITS, plan
from mmaprobe.documents.prove import Measure
from mmaprobe.hypotheses.claim import Claim, build_claims
from mmaprobe.queries.certificates.asked import of_claim
from mmaprobe.queries.certificates.claim_files import claim_texts
from mmaprobe.queries.certificates.logged import certify_theorems
from mmaprobe.queries.claims.decide import decide
from mmaprobe.queries.claims.shares import within_of
from mmaprobe.queries.covering.certify import certify_cover
from mmaprobe.queries.covering.cover import Change, Covering
from mmaprobe.queries.kernel.bounds.unit_shares import compares
from mmaprobe.queries.kernel.questions.problem import Problem
from mmaprobe.queries.kernel.questions.statements import problems_of
from mmaprobe.queries.plans.bound_report import find_plan_bound
from mmaprobe.queries.plans.certify import certify_plan_bound, certify_plans
from mmaprobe.queries.plans.equal import prove_plans
from mmaprobe.queries.properties.bound import bound_in_units
from mmaprobe.queries.properties.bound_certificate import certify_bound, certify_unit_bounds
from mmaprobe.queries.properties.bound_report import find_bound
from mmaprobe.queries.properties.certify import certify_proofs
from mmaprobe.queries.properties.proving import proofs_of, verdict_of
from mmaprobe.queries.search.distinguish import Options
from mmaprobe.queries.tactics.settling import Settled
from mmaprobe.smtmodel.base.yamlfile import read_yaml
from mmaprobe.smtmodel.evaluate.model import Model
from mmaprobe.smtmodel.inputs.admitted import Inputs
from mmaprobe.smtmodel.tables.reference import parse_reference
from mmaprobe.smtmodel.units.unitfile import parse_unit
from tests.rules.test_table9 import SUM, unit_of

UNIT = """unit: small
formats: {{a: e2m1, b: e2m1, c: e4m3, d: e4m3}}
length: 2
roundings: {{r: "round(e4m3, {how})"}}
steps:
  d: {step}
"""
STEPS = {
    "fused": "r(fused(a[0:2] * b[0:2], c, F={bits}))",
    "chain": "repeat(i in range(2), c, r(exact(a[i] * b[i], acc)))",
    "exact": "r(exact(a[0:2] * b[0:2], c))",
    "carry": "r(fused(a[0:2] * b[0:2], c, F=4, carry={bits}))",
}
VOLTA = "volta/mma/m8n8k4.f32.f16.f16.f32"
SHORT = parse_reference(f"{VOLTA}@length=2")
FREE = Options("bitwuzla", 60.0)


def unit(step: str, how: str = "toward_zero", bits: int = 4) -> Model:
    return Model(step, parse_unit(UNIT.format(how=how, step=STEPS[step].format(bits=bits)), "small.yaml"))


CLAIM = {"id": "mine", "about": "", "source": "", "says": "nothing", "expect": "holds"}


def _property(wanted: str, model: Model, folder: Path) -> None:
    proofs = proofs_of(problems_of(wanted, model, Inputs()), FREE, confirm=False)
    assert verdict_of(proofs) == "equal"
    certify_proofs(wanted, proofs, folder, FREE)


def _equal(left: Model, right: Model, folder: Path, inputs: Inputs | None = None) -> None:
    certify_proofs("equal", proofs_of([Problem(left, right, inputs or Inputs())], FREE, confirm=False), folder, FREE)


def _plans(left: str, right: str, length: int | None, folder: Path) -> None:
    certify_plans(prove_plans(plan(left), plan(right), length, FREE, confirm=False), folder, FREE)


def _cover(folder: Path) -> None:
    same = Change("sticky=true", unit("fused"))  # which is none
    certify_cover(Covering(unit("fused"), False, [same], samples=512).run(FREE), folder, FREE)


def _bound(model: Model, length: int | None, folder: Path) -> None:
    certify_bound(find_bound(model, Inputs(), length, Settled(FREE, needed=False)), folder, FREE)


def _plan_bound(folder: Path, measure: Measure) -> None:
    small = plan("sum(promote(8, fma, r), c)")
    found = find_plan_bound(small, Inputs(), [16], Settled(FREE, needed=False), measure=measure)
    certify_plan_bound(found, folder, FREE)


OVERFLOWS = """unit: p
formats: {a: e3m2, b: e3m2, c: e3m1_ieee, d: e3m1_ieee}
length: 1
steps: {d: "round(exact(a[0] * b[0], c), e3m1_ieee, nearest_even)"}
"""
SHARED = """unit: p
formats: {a: e4m3, b: e4m3, c: bf16, d: bf16}
length: 2
steps: {d: "round(fused(a[0:2] * b[0:2], c, F=6), bf16, toward_zero)"}
"""
LARGE = {"format": "e3m2", "a": [2, 2], "b": [1, 2], "c": [0, 0]}  # products beyond 16, which e3m1 does not have
NUMBERS = {"format": "e4m3", "a": [0, 1], "b": [0, 1], "c": [0, 1]}


def _claim(folder: Path, part: str = "", **data: Any) -> None:
    if part:
        file = folder.with_name(f"{folder.name}.yaml")
        file.write_text(part)
        data["parts"] = {"p": str(file)}
    (claim,) = build_claims(read_yaml(yaml.safe_dump(CLAIM | data), "mine.yaml"))
    decide(claim, FREE).certify(folder, FREE)


def shown_by_none(folder: Path) -> None:
    """Of a claim about some input, that there is none."""
    positive = LARGE | {"where": ["finite(p)", "value(p) > 0"]}
    _claim(folder, OVERFLOWS, terms=1, quantifier="exists", claim="value(p) > 12", inputs=positive)


def _table_9(folder: Path) -> None:
    own = unit_of(SUM.format("F=2"))
    theorem = bound_in_units(own, own.length + 1, True, Settled(FREE, needed=False))
    certify_unit_bounds([theorem], Model("unit", own), folder, FREE)


def _tails(folder: Path) -> None:
    more = {"fused4": (4, "r(exact(c, r(fused(a[0:4] * b[0:4], +0, F=3))))"),
            "exact1": (1, "r(exact(c, r(exact(a[0] * b[0], +0))))")}  # fmt: skip
    with pytest.MonkeyPatch.context() as patched:
        for name, step in more.items():
            patched.setitem(UNITS, name, step)
        _plans("sum(fused4, c)", "sum(chain(fused4, tail=exact1), c)", 5, folder)


def _shares(folder: Path) -> None:
    (file := folder.with_name("p.yaml")).write_text(SHARED)
    data = {"terms": 1, "inputs": NUMBERS, "parts": {"p": str(file)}, "claim": "error(p) <= 4 * magnitude_sum()"}
    (claim,) = build_claims(read_yaml(yaml.safe_dump(CLAIM | data), "mine.yaml"))
    assert isinstance(claim, Claim)
    theorem = compares(claim.assertion, within_of(claim, Settled(FREE, needed=False)))
    certify_theorems([theorem], of_claim(claim), claim_texts(claim), folder, FREE)


#: each kind, and the rule that its last theorem is by
KINDS: Mapping[str, tuple[Callable[[Path], None], str]] = {
    "bound": (lambda folder: _bound(unit("fused"), None, folder), "rounded"),
    "bound of a chain": (lambda folder: _bound(unit("exact"), 4, folder), "closed"),
    "bound in units": (_table_9, "loosened"),
    "claimed bound": (lambda folder: _claim(folder, error_bound="loose", model=f"{VOLTA}@length=2"), "loosened"),
    "order": (lambda folder: _property("order-independent", unit("fused"), folder), "every_order"),
    "sign": (lambda folder: _property("sign-symmetric", unit("fused"), folder), "each_part"),
    "rise": (lambda folder: _property("monotonic-product", unit("exact"), folder), "each_part"),
    "exact": (lambda folder: _property("exact", unit("exact"), folder), "each_part"),
    "padding": (lambda folder: _property("zero-padding", SHORT, folder), "each_part"),
    "one expression": (
        lambda folder: _equal(unit("fused"), Model("other", unit("fused").unit), folder),
        "one_expression",
    ),
    "one form": (lambda folder: _equal(unit("carry", bits=3), unit("carry", bits=4), folder), "one_form"),
    "stages": (lambda folder: _equal(parse_reference(f"{VOLTA}@length=1"), SHORT, folder), "undiffering"),
    "plan bound": (lambda folder: _plan_bound(folder, "elements"), "weakened"),
    "plan bound in the largest elements": (lambda folder: _plan_bound(folder, "largest"), "of_largest"),
    "plans at every K": (lambda folder: _plans("sum(ones, c)", "sum(fma, c)", None, folder), "same_sums"),
    "plans at a K": (
        lambda folder: _plans("sum(split(4, two, r, grain=8), c)", "sum(two, c)", 8, folder),
        "same_units",
    ),
    "plans with a tail": (_tails, "same_tails"),
    "claim": (
        lambda folder: _claim(
            folder, OVERFLOWS, terms=1, claim="value(p) <= 12", inputs=LARGE | {"where": ["finite(p)", "value(p) > 0"]}
        ),
        "undecided",
    ),
    "claim by shares": (_shares, "compares"),
    "overflow": (
        lambda folder: _claim(folder, overflow="never", reduction="recurrence@side=2,chain=1", numbers=20),
        "never_overflows",
    ),
    "wraps": (
        lambda folder: _claim(folder, wraps="never", plan="ampere/mma/m16n8k32.s32.s8.s8.s32", products=50),
        "never_wraps",
    ),
    "slices": (
        lambda folder: _claim(folder, classical=20, plan="plan:ozaki/int8-ii-13", products=8),
        "within_classical",
    ),
    "span": (
        lambda folder: _claim(folder, classical=2**24, span=4, plan="plan:ozaki/int8-6", products=2),
        "within_span",
    ),
    "cover": (_cover, "one_form"),
}
