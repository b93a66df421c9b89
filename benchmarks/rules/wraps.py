"""Instances of the rules about sums of integers that wrap, or are rounded in a format of few bits that holds integers:
of small integers, for few products, on all or many elements.

What a plan's words and sums are is evaluated by the plan itself, with accumulators of 32 bits beside its own.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.rules.campaign import Campaign
from benchmarks.rules.lemmas import Truths
from benchmarks.rules.numbers import Unchecked
from mmaprobe.queries.kernel.integers.wraps import NeverWraps
from mmaprobe.smtmodel.arithmetic.display import exact_value
from mmaprobe.smtmodel.arithmetic.formats import Format, format_named
from mmaprobe.smtmodel.base.errors import MmaprobeError
from mmaprobe.smtmodel.evaluate.batch import Patterns as Table
from mmaprobe.smtmodel.evaluate.model import Model
from mmaprobe.smtmodel.evaluate.tiles import kind_of
from mmaprobe.smtmodel.nodes import Constant, ExactSum, FusedSum, Node, Recombined, Residue, Round
from mmaprobe.smtmodel.nodes.node import walk
from mmaprobe.smtmodel.nodes.rewriting import rebuilt
from mmaprobe.smtmodel.nodes.round import Rounding
from mmaprobe.smtmodel.plans.gemm import simulate
from mmaprobe.smtmodel.plans.joins import Promote
from mmaprobe.smtmodel.plans.matrices import Job, Patterns
from mmaprobe.smtmodel.plans.plan import Plan, Products
from mmaprobe.smtmodel.plans.planfile import parse_plan
from mmaprobe.smtmodel.plans.stages import Chain, Parted, Stage, Then
from mmaprobe.smtmodel.units.unitfile import parse_unit

UNIT = """unit: mma.yaml
formats: {{a: {a}, b: {b}, c: {c}, d: {c}}}
length: {length}
roundings: {{r: "round({c}, {mode})", h: "round(e5m3b15_ieee, toward_zero)"}}
steps: {{d: "r({sum})"}}
"""
TERMS = "a[0:{length}] * b[0:{length}], c"
SUMS = ("fused({terms}, F={F}, carry=0, least={F})",) * 4 + (
    "exact({terms})",
    "exact({terms})",
    "fused({terms}, F={F}, carry=0, least={F}, zeros=0)",
    "fused({terms}, F={F}, carry=0)",
    "exact({terms}, c)",
    "exact(a[0:{length}] * b[0:{length}])",
    "exact(product(a[0], b[0], normalised=true), c)",
    "exact(product(a[0], c))",
    "exact(a[0], c)",
    "exact({terms}, product(a[0], b[0]))",
)
FLOAT_SUMS = ("fused({terms}, F={F})",) * 4 + (
    "exact({terms})",
    "fused({terms}, F={F}, least=2)",
    "fused({terms}, F={F}, zeros=3)",
    "fused({terms}, F={F}, floors=[3, 0])",
    "fused({terms}, F={F}, reach=[2, 9])",
    "fused(h(a[0]) * h(b[0]), c, F={F})",
    "exact({terms}, c)",
    "exact({terms}, product(a[0], b[0]))",
)
PLAN = """plan: tiny
formats: {{a: {a}, b: {b}, c: f32, d: f32}}
units: {{mma: mma.yaml}}
roundings:
  t: round({c}, toward_zero)
  h: round({h}, nearest_even)
  q: round({q}, {mode})
  r: round({r}, nearest_even)
  s: round(f32, nearest_even)
{words}
steps:
  c0: t(c)
  one: {sum}
  d: s(exact(s(one), c))
"""
PARTS = ("a", "product(2**1, a)", "product(a, 1 / shared(a))", "product(2**1, r(product(a, 1 / shared(a))))",
         "product(2**1, r(product(a, 1 / shared(a, up=true))))", "exact(a, 2**0)", "product(a, a)")  # fmt: skip
STAGES = ("sum({mma})",) * 6 + ("sum({mma}, c0)", "sum(then({mma}, {mma}))", "sum(chain({mma}, tail={mma}))",
                                "sum(interleave(2, {mma}, s))")  # fmt: skip
FLOAT_STAGES = (*STAGES[:5], "sum(promote(2, {mma}, t))", "sum(promote(1, then({mma}, {mma}), s))")
INTEGERS = ("int3", "int3", "uint3", "int4", "e2m1")
MOST = 4096  # rows of A, and columns of B
LONGEST = 4  # the largest K
WIDE = format_named("int32")


def _unit(rng: random.Random, bits: int, a: str, b: str, total: str, c: str = "", mode: str = "toward_zero") -> Model:
    length = rng.choice((1, 1, 2, 3))
    terms = TERMS.format(length=length)
    text = total.format(terms=terms, F=bits - 2, length=length)
    made = UNIT.format(a=a, b=b, c=c or f"int{bits}", mode=mode, length=length, sum=text)
    return Model("mma.yaml", parse_unit(made, "mma.yaml"))


def tiny(rng: random.Random, floats: bool = False, wide: bool = False) -> Plan:
    """A plan of small integers, or of words of small numbers; with `floats`, units read and add numbers of a format
    with exponents, or, if it is `wide`, the same integers in a wide accumulator. Raises MmaprobeError for one that
    cannot be."""
    a, b = (rng.choice(INTEGERS) for _ in range(2)) if not floats else ("e2m1", "e2m1")
    bits = rng.randint(5, 9) if floats else rng.randint(4, 7)
    c = rng.choice(("e4m3", "e5m4b15_ieee", "e5m5b15_ieee", "e4m5b7_none", "e3m3b3_none")) if floats else f"int{bits}"
    h = rng.choice(("e3m2", "e2m3", "e2m1", "e4m3"))
    if rng.random() < 0.4 or "e2m1" in (a, b):
        q, element = rng.choice(("int3", "int4")), rng.choice(("e2m1", "e2m1", "e3m2"))
        mode = rng.choice(("toward_zero", "toward_zero", "nearest_even", "up"))
        part = rng.choice(PARTS)
        words = f"words:\n  a_part: r({part})\n  a1: q(a_part)\n"
        words += f"  a2: q(r(product({rng.choice(('2**1', '2**2'))}, r(exact(a_part, -a1)))))\n"
        words += words[7:].replace("a_", "b_").replace("a1", "b1").replace("a2", "b2").replace("(a", "(b").replace(
            "shared(a", "shared(b").replace(", a)", ", b)")  # fmt: skip
        mma, r = f"mma({rng.choice(('a1', 'a2'))}, {rng.choice(('b1', 'b2'))})", rng.choice(("f32", "e4m3", "f32"))
        if floats:
            how, total = rng.choice(("toward_zero", "toward_zero", "nearest_even", "up")), rng.choice(FLOAT_SUMS)
            if not wide:
                words += "".join(f"  {side}{k}h: h({side}{k})\n" for side in "ab" for k in (1, 2))
                mma = mma.replace("1", "1h").replace("2", "2h")
            c = "int16" if wide else c
            unit = _unit(rng, bits, *(q, q, "exact({terms})") if wide else (h, h, total), c, how)
        else:
            unit = _unit(rng, bits, q, q, rng.choice(SUMS[:6]))
        given = element, element
    else:
        words, mma, q, r, mode = "", "mma", "int3", "f32", "toward_zero"
        unit, given = _unit(rng, bits, a, b, rng.choice(SUMS)), (a, b)
    text = PLAN.format(a=given[0], b=given[1], q=q, r=r, mode=mode, words=words, c=c, h=h,
                       sum=rng.choice(FLOAT_STAGES if floats else STAGES).format(mma=mma))  # fmt: skip
    return parse_plan(text, "tiny.yaml", lambda name: unit)


RESIDUES = """plan: tiny
formats: {{a: {a}, b: {b}, c: f32, d: f32}}
units: {{mma: mma.yaml}}
roundings:
  w: round({w}, {mode})
  q: round({q}, nearest_even)
  s: round(f32, nearest_even)
words:
{words}
steps:
  total: recombined({sums}, moduli=[{moduli}])
  d: s(exact(s(total), c))
"""


def recombining(rng: random.Random) -> Plan:
    """A plan of residues of small integers, sometimes of different ones or by other moduli. Raises MmaprobeError for
    one that cannot be."""
    moduli = rng.choice(((3, 5), (7, 9), (2, 3, 5), (5, 7), (8, 7), (9, 8), (15, 14, 13), (7,)))
    q, w = rng.choice(("int4", "int4", "int3")), rng.choice(("int3", "int3", "int4", "f16"))
    element = rng.choice(("int3", "e2m1", "e2m1"))
    own = rng.choice(("{0}", "{0}", "product({0}, 1 / shared({0}))", "product(2**1, s(product({0}, 1 / shared({0}))))"))
    names, words = ("a", "b"), []
    for side in names:
        words += [f"  {side}_whole: w({own.format(side)})", f"  {side}_other: w(product(2**1, {side}))"]
        for number, modulus in enumerate(moduli):
            whole = "other" if rng.random() < 0.04 else "whole"
            modulus = modulus if rng.random() < 0.96 else modulus + 1
            words.append(f"  {side}{number}: q(residue({side}_{whole}, {modulus}))")
    unit = _unit(rng, rng.randint(7, 9), q, q, SUMS[0])
    sums = ", ".join(f"sum(mma(a{number}, b{number}))" for number in range(len(moduli)))
    text = RESIDUES.format(a=element, b=element, q=q, w=w, mode=rng.choice(("toward_zero", "nearest_even")),
                           words="\n".join(words), sums=sums, moduli=", ".join(map(str, moduli)))  # fmt: skip
    return parse_plan(text, "tiny.yaml", lambda name: unit)


def _elements(fmt: Format, most: int | None) -> list[int]:
    values = {x: exact_value(x, fmt) for x in range(1 << fmt.width)}
    values = {x: 0 if value == "-0" else value for x, value in values.items()}
    return [x for x, value in values.items() if not isinstance(value, str) and (most is None or abs(value) <= most)]


def _rows(fmt: Format, most: int | None, length: int, rng: random.Random) -> Table:
    """All rows of so many elements; if there are too many, some, of which many have the extreme elements."""
    every = _elements(fmt, most)
    if len(every) ** length <= MOST // 8:
        rows = list(product(every, repeat=length))
    else:
        ends = sorted(every, key=lambda x: abs(float(exact_value(x, fmt))))[-3:]  # type: ignore[arg-type]
        rows = list(product(ends, repeat=length))[: MOST // 16]
        rows += [tuple(rng.choices(every, k=length)) for _ in range(MOST // 16)]
    return np.array(rows, dtype=kind_of(fmt))


def roomy(stage: Stage) -> Stage:
    """A chain of instructions, several, or runs of them, with accumulators of 32 bits, whose sums are exact."""
    if isinstance(stage, Then):
        return Then(tuple(map(roomy, stage.bodies)))
    if isinstance(stage, Parted):
        return replace(stage, body=roomy(stage.body), join=Promote(Rounding(WIDE, "toward_zero")))
    assert isinstance(stage, Chain)
    unit = stage.model.unit

    def change(_: Node, new: Node) -> Node:
        if isinstance(new, FusedSum):
            return ExactSum(new.items)
        return Round(new.term, Rounding(WIDE, "toward_zero")) if isinstance(new, Round) else new

    result = rebuilt(unit.result, change, {})
    assert isinstance(result, Round)
    wide = unit.with_result(result, c=WIDE)
    return replace(stage, model=Model("wide", wide))


def _by_value(d: Table, fmt: Format, known: dict[Any, int]) -> NDArray[np.int64]:
    """In the place of each result the place of its number among those that are known: equal where numbers are."""
    every, places = np.unique(d, return_inverse=True)
    values = (exact_value(int(x), fmt) for x in every)
    found = [known.setdefault(0 if value == "-0" else value, len(known)) for value in values]
    return np.array(found)[places].reshape(d.shape)


def never_wraps(goal: NeverWraps, rng: random.Random) -> Iterator[str]:
    plan = goal.plan
    for length, products in product(range(1, min(goal.length, LONGEST) + 1), plan.sums):
        rows = _rows(plan.a, goal.most_a, length, rng)
        columns = _rows(plan.b, goal.most_b, length, rng).T
        found, known = [], dict[Any, int]()
        for stage in (products.stage, roomy(products.stage)):
            alone = Plan(plan.a, plan.b, stage.accumulator, Products(stage, Constant()), plan.convert_a, plan.convert_b)
            d = simulate(rows, np.ascontiguousarray(columns), None, alone)
            found.append(_by_value(d, stage.d, known))
        differ = np.argwhere(found[0] != found[1])
        if len(differ):
            row, column = differ[0]
            yield f"{rows[row]} times {columns[:, column]}: a sum wraps"
            return
        for node in (node for node in walk(plan.result) if isinstance(node, Recombined)):
            if differ := _not_recombined(plan, node, rows, columns):
                yield differ
                return
    if goal.length > LONGEST:
        raise Unchecked


def _not_recombined(plan: Plan, node: Recombined, rows: Table, columns: Table) -> str:
    """Elements whose integers have another sum of products than is recombined, in words; of the first sum's residues,
    those of other sums have to be of the same."""
    whole = plan.with_result(Round(node, Rounding(WIDE)))
    d = simulate(rows, np.ascontiguousarray(columns), None, whole).astype(np.int64)
    (first, *_) = whole.sums
    sides = []
    for word, side, fmt in zip(first.stage.chains[0].words, (rows, columns), (plan.a, plan.b), strict=True):
        assert word is not None
        assert isinstance(word.term, Residue)
        assert isinstance(word.term.term, Round)
        own = word.term.term
        found = Job(whole, rows, columns).word_matrix(own, Patterns(side, fmt)).astype(np.int64)
        width = own.rounding.format.width
        sides.append(np.where(found >> width - 1, found - (1 << width), found))
    differ = np.argwhere(sides[0] @ sides[1] != np.where(d >> WIDE.width - 1, d - (1 << WIDE.width), d))
    if not len(differ):
        return ""
    row, column = differ[0]
    return f"{rows[row]} times {columns[:, column]}: another number is recombined"


def instances(campaign: Campaign, truths: Truths, rng: random.Random) -> None:
    """A tiny plan at a few K, with elements of any magnitude and of small ones."""
    floats, state = rng.random() < 0.4, rng.getstate()
    try:
        plan = tiny(rng, floats) if floats or rng.random() < 0.5 else recombining(rng)
    except MmaprobeError:
        return
    for length in (rng.randint(0, 2), rng.randint(1, LONGEST), rng.randint(1, LONGEST)):
        most = [rng.choice((None, None, 0, 1, 2, 3, -1)) for _ in range(2)]
        campaign.call("never_wraps", plan, length, *most)
    if floats:
        again = random.Random(rng.random())
        again.setstate(state)
        with suppress(MmaprobeError):
            other = tiny(rng, floats) if rng.random() < 0.1 else tiny(again, floats, wide=True)
            campaign.call("same_integers", plan, other, rng.randint(1, 3))


MEANINGS = {NeverWraps: never_wraps}
