"""Certificates of rewriting: every derivation is accepted, and every side condition of its rules refuses a step."""

from __future__ import annotations

import ast
import copy
import json
import random
from collections.abc import Iterator
from dataclasses import astuple, replace
from pathlib import Path
from typing import Any

import pytest

from mmaprobe.queries.kernel.datapath.ranges import Scope
from mmaprobe.queries.kernel.equality import rewriting
from mmaprobe.queries.kernel.equality.rewriting import Alike
from mmaprobe.queries.kernel.theorem import Theorem
from mmaprobe.smtmodel.arithmetic.formats import FORMATS, Format
from mmaprobe.smtmodel.nodes import (
    Constant,
    Cut,
    Each,
    Element,
    ExactSum,
    FusedSum,
    Gate,
    GridSum,
    Index,
    Literal,
    Node,
    Product,
    Relu,
    Repeat,
    Round,
    Running,
    Scale,
    SortedSum,
)
from mmaprobe.smtmodel.nodes.round import Rounding
from mmaprobe.smtmodel.tables.reference import parse_reference
from mmaprobe.smtmodel.units.unit import Unit
from mmaprobe.smtmodel.units.unitfile import parse_unit, unit_text
from tests.node_units import random_unit
from tests.rules.test_rewriting import MULTIPLES_OF_64, PLAIN, USEFUL
from tests.second import alike_rules, rewrite_rules, term_ranges
from tests.second.goals import read_goal
from tests.second.magnitudes import FaultError
from tests.second.rewrite_rules import REWRITES, Needs, Place
from tests.second.term_ranges import Held, Known
from tests.second.tree import Tree
from tests.second.written import Written, written

Document = dict[str, Any]
AGAIN = "number of the format, rounded again"


def faults(document: Document) -> list[tuple[int, str]]:
    return list(Tree(document).check())


def useful() -> Iterator[tuple[str, Unit, Theorem]]:
    """Units in which every rule of rewriting is used."""
    for reference, _ in USEFUL:
        unit = parse_unit(reference, "x.yaml") if "steps" in reference else parse_reference(reference).unit
        if (proof := PLAIN.proof(unit)) is not None:
            yield reference, unit, proof


def test_derivations_pass() -> None:
    """Of published units and those near them, and of random ones."""
    used: set[str] = set()
    for reference, unit, proof in useful():
        used |= {one.word for one in proof.walk() if one.rule == "rewritten"}
        assert faults(written(unit, [proof])) == [], reference
    assert used == REWRITES.keys() == rewriting.REWRITES.keys()
    rng, seen = random.Random(20), 0
    for _ in range(60):
        unit = random_unit(rng)
        if (proof := PLAIN.proof(unit)) is not None:
            assert faults(written(unit, [proof])) == [], unit
            seen += 1
    assert seen > 20


def test_ranges_of_terms_are_those_of_the_datapath() -> None:
    """The checker computes them from formats, and the prover from the widths of the datapath's own vectors."""
    rng, seen = random.Random(21), 0
    f16, f32 = FORMATS["f16"], FORMATS["f32"]
    given = [(MULTIPLES_OF_64, Rounding(FORMATS["e2m1"])), (FORMATS["e4m3"], Rounding(f16, nan=1))]
    units = [
        Unit(fmt, f16, f32, 1, Round(ExactSum((Round(Element("a", Index(0)), how), Element("c"))), Rounding(f32)))
        for fmt, how in given
    ]
    for unit in (*units, *(random_unit(rng) for _ in range(60))):
        own, scope = Written(unit), Scope.of(unit)
        known = Known(Tree(own.stating(())))
        for node, at in own.nodes.items():
            inside = ((1, Held(frozenset({own.formats[unit.c]}), -2)),)
            for one, held in ((scope, ()), (scope.within(1, rewriting.Held(frozenset((unit.c,)), -2)), inside)):
                found, wanted = known.ranges(held, at), rewriting.ranges_of(one, node)
                if isinstance(node, ExactSum) and wanted is None:  # of a term that has several
                    continue
                assert (found is None) is (wanted is None), node
                assert {tuple(x.document.values()) for x in found or ()} == {astuple(x) for x in wanted or ()}, node
                seen += found is not None
    assert seen > 500


# -- one thing changed in a derivation


def others(document: Document, number: int) -> Iterator[tuple[str, Document]]:
    """A theorem that says something else, or rests on something else."""
    theorem = document["theorems"][number]

    def broken(change: str, **fields: Any) -> tuple[str, Document]:
        theorems = [*document["theorems"]]
        theorems[number] = {**copy.deepcopy(theorem), **fields}
        return f"{number}: {change}", {**document, "theorems": theorems}

    goal, nodes = theorem["goal"], len(document["nodes"])
    for name in ("counting", "signs"):
        if name in goal:
            yield broken(name, goal={**goal, name: not goal[name]})
    for name in ("node", "other"):
        if name in goal:
            for change in (-1, 1):
                if 0 <= goal[name] + change < nodes and not again(document, theorem, goal[name] + change):
                    yield broken(name, goal={**goal, name: goal[name] + change})
    if "scope" in goal:
        formats, held = goal["scope"]["formats"], goal["scope"]["held"]
        yield broken("formats", goal={**goal, "scope": {"formats": formats[1:], "held": held}})
        strange = [[9, {"formats": [0], "unit": None}]]
        if theorem["rule"] != "rewritten":  # which holds in any scope
            yield broken("scope", goal={**goal, "scope": {"formats": formats, "held": [*held, *strange]}})
        if held and theorem["rule"] != "rewritten":
            level, kind = held[-1]
            for other in ({**kind, "formats": []}, {**kind, "unit": 3}):
                yield broken("kind", goal={**goal, "scope": {"formats": formats, "held": [*held[:-1], [level, other]]}})
    for place in range(len(theorem["premises"])):
        rest = [one for k, one in enumerate(theorem["premises"]) if k != place]
        yield broken("a premise less", premises=rest)
    if "name" in theorem:
        for name in REWRITES.keys() - {theorem["name"]}:
            yield broken(name, name=name)
    for rule in ("rewritten", "followed", "congruent", "looped", "results_alike"):
        if rule != theorem["rule"]:
            yield broken(rule, rule=rule)


def again(document: Document, theorem: Document, node: int) -> bool:
    """Whether a node is another rounding of the number that a theorem says is not changed by one: it is true of it."""
    item = document["nodes"][node]
    return theorem.get("name") == AGAIN and item["kind"] == "round" and item["term"] == theorem["goal"]["other"]


@pytest.mark.oracle
def test_a_theorem_that_says_something_else_is_found_there() -> None:
    count = 0
    for reference, unit, proof in useful():
        document = written(unit, [proof])
        for number, theorem in enumerate(document["theorems"]):
            if theorem["rule"] in ("settled", "exhausted"):
                continue
            for what, broken in others(document, number):
                found = Tree({**broken, "theorems": broken["theorems"][: number + 1]}).check(number)
                assert any(place == number for place, refusal in found if "rests" not in refusal), (reference, what)
                count += 1
    assert count > 1000


def test_a_lemma_about_something_else_is_missed() -> None:
    seen = set()
    for reference, unit, proof in useful():
        document = written(unit, [proof])
        for number, theorem in enumerate(document["theorems"]):
            goal = theorem["goal"]
            for name, value in list(goal.items()):
                if theorem["rule"] not in ("settled", "exhausted") or name == "is":
                    continue
                goal[name] = value + 1 if type(value) is int else {**value, "width": 99} if name == "range" else "other"
                users = {k for k, one in enumerate(document["theorems"]) if number in one["premises"]}
                assert users <= {k for k, _ in faults(document)}, (reference, number, name)
                goal[name] = value
                seen.add(goal["is"])
    assert seen == set(alike_rules.LEMMAS)


# -- every side condition, by a step that it refuses

F16, F32, E4M3, UE8M0 = (FORMATS[name] for name in ("f16", "f32", "e4m3", "ue8m0"))
A, B, C = Element("a", Index(0)), Element("b", Index(0)), Element("c")
P = Product(A, B)
LOOPED = Product(Element("a", Index(0, ((1, 1),))), Element("b", Index(0, ((1, 1),))))
ACC, ZERO, MINUS = Running(1), Constant(), Constant(True)
UNKNOWN = Cut(P, 4)  # nothing is known of the numbers that it can be


def r(term: Node, fmt: Format = F16, **how: Any) -> Round:
    return Round(term, Rounding(fmt, **how))


def plus(node: Any) -> Node:
    """A rounding, or a loop over one, with +0 for exact zero sums."""
    if isinstance(node, Repeat):
        return replace(node, body=plus(node.body))
    return with_how(node, zero="exact_positive")


def with_how(node: Round, **how: Any) -> Round:
    return replace(node, rounding=replace(node.rounding, **how))


def fused(*items: Node, bits: Any = 4, **own: Any) -> FusedSum:
    return FusedSum(items, bits, **own)


def loop(body: Node, start: Node = ZERO, places: Any = range(3)) -> Repeat:
    return Repeat(1, places, start, body)


def chain(**how: Any) -> Repeat:
    return loop(r(ExactSum((LOOPED, ACC)), **how))


LIMITED, NORMALISED = Product(A, B, limit=5), Product(A, B, normalised=True)
GATED, E4 = Gate(P, True), r(C, E4M3)
HELD = r(P)
COARSE = fused(P, C, bits=2, sticky=False)
OWN = Literal(0x3C00, F16)
FREE_SUM, EACH = ExactSum((P, C)), Each(2, range(2), P)
EACH_SUM = Each(2, range(2), FREE_SUM)
SCALED_SUM = "scaled exact sum in an exact sum"
P_SCALE, Q_SCALE = Element("scale_a", Index(0)), Element("scale_b", Index(0))
FAR_SCALE = Element("scale_b", Index(0, ((2, 1),)))  # of the place that terms are repeated over


def scaled(term: Node, right: Node = Q_SCALE) -> Node:
    return Scale(term, P_SCALE, right)


SCALED = ExactSum((scaled(P), scaled(C)))
RECTIFIED = "rectified before it is rounded"
STEP = r(ExactSum((LOOPED, ACC)), zero="exact_positive")
FIRST = r(ExactSum((P, ZERO)), zero="exact_positive")
FLUSHED = r(ExactSum((P, C)), zero="positive", subnormals="flush_after")
FITS = r(fused(P, P, bits=3), mode="up")
FAR = r(P, subnormals="flush_after")
FREE_TURNED, TWO = ExactSum((C, P)), ExactSum((P, P))
READ = r(C, zero="positive", subnormals="flush_after")
READ_C = replace(C, subnormals="positive_zero", positive_zeros=True)
READ_ACC = r(ACC, zero="positive", subnormals="flush_after")
FLUSH: dict[str, Any] = {"mode": "down", "subnormals": "flush_after"}
START = with_how(READ, subnormals="keep")
ONCE, PLUS = loop(r(ExactSum((LOOPED, r(ACC, zero="positive")))), C), r(ExactSum((LOOPED, ACC)))
CUT = "all that is added may be -0, or the largest"
NUMBER = {"fmt": FORMATS["e4m3"], "nan": 0}  # for a NaN +0 is written, which is no number other than zero
WRITTEN = {"fmt": FORMATS["e4m3"], "nan": 1}

#: a rule, a node, what is said to stand for it, and the condition that refuses it (None: it is allowed)
STEPS: list[tuple[str, Node, Node, str | None]] = [
    ("product limit never reached", LIMITED, P, None),
    ("product limit never reached", C, P, "it says nothing of a"),
    ("product limit never reached", P, P, "the product has no limit"),
    ("product limit never reached", LIMITED, Product(B, A), "what stands for the node is something else"),
    ("product limit never reached", Product(OWN, B, limit=5),
     Product(OWN, B), "it is not known which numbers a term can be"),
    ("gated products whose zeros have any sign", GATED, Gate(P), None),
    ("gated products whose zeros have any sign", Gate(P), Gate(P), "the zero is +0"),
    ("gated products whose zeros have any sign", GATED, P, "a factor may be a NaN, or infinite"),
    ("gated products whose zeros have any sign", Gate(Product(OWN, B)),
     Product(OWN, B), "it is not known which numbers a factor can be"),
    ("gated products whose zeros have any sign", GATED,
     Gate(Product(B, A)), "what stands for the node is something else"),
    ("products held by the format that they are rounded to", ExactSum((HELD, C)), ExactSum((NORMALISED, C)), None),
    ("products held by the format that they are rounded to", ExactSum((HELD, HELD)),
     ExactSum((NORMALISED, NORMALISED)), "not one term changes"),
    ("products held by the format that they are rounded to", ExactSum((HELD, C)),
     ExactSum((NORMALISED, C, C)), "what stands for the node is something else"),
    ("products held by the format that they are rounded to", ExactSum((r(C), C)),
     ExactSum((C, C)), "the term is not a product"),
    ("products held by the format that they are rounded to", ExactSum((HELD, C)),
     ExactSum((P, C)), "what stands for the node is something else"),
    ("products held by the format that they are rounded to", ExactSum((r(P, E4M3), C)),
     ExactSum((NORMALISED, C)), "the format has no NaN, or no infinity"),
    ("products held by the format that they are rounded to", ExactSum((r(P, nan=0), C)),
     ExactSum((NORMALISED, C)), "the format has no NaN, or no infinity"),
    ("products held by the format that they are rounded to", ExactSum((r(P, subnormals="flush_before"), C)),
     ExactSum((NORMALISED, C)), "tiny products are flushed"),
    ("products that an exact sum normalises in vain", NORMALISED, P, None),
    ("products that an exact sum normalises in vain", P, P, "the product is not normalised"),
    ("floor below every term", fused(P, C, zeros=-30), fused(P, C), None),
    ("floor below every term", fused(P, C, least=-20), fused(P, C), None),
    ("floor below every term", fused(P, C), fused(P, C), "the sum has no floor"),
    ("floor below every term", fused(UNKNOWN, C, zeros=-30), fused(UNKNOWN, C),
     "it is not known which numbers a term can be"),
    ("floor below every term", fused(P, C, zeros=-30, least=-30),
     fused(P, C, zeros=-30), "what stands for the node is something else"),
    ("floor below every term", fused(P, C, least=-10, sticky=True),
     fused(P, C, sticky=True), "something else depends on the largest exponent"),
    ("floor below every term", fused(P, C, least=-10, carry_bits=3),
     fused(P, C, carry_bits=3), "something else depends on the largest exponent"),
    ("floor below every term", fused(P, C, least=-10, reach=(9, None)),
     fused(P, C, reach=(9, None)), "something else depends on the largest exponent"),
    ("carry bits that no sum needs", fused(P, C, carry_bits=2), fused(P, C), None),
    ("carry bits that no sum needs", fused(P, C), fused(P, C), "the sum does not wrap, or not in one width"),
    ("carry bits that no sum needs", fused(P, C, carry_bits=1), fused(P, C), "the sum may wrap"),
    # 2 * (15/8)^2 is below 8, with half a unit of the last place for each not
    ("carry bits that no sum needs", fused(P, P, carry_bits=2), fused(P, P), None),
    ("carry bits that no sum needs", fused(P, P, carry_bits=2, bits=0, rounding="up"),
     fused(P, P, bits=0, rounding="up"), "the sum may wrap"),
    ("carry bits that no sum needs", fused(Each(1, range(2), LOOPED), carry_bits=1),
     fused(Each(1, range(2), LOOPED)), "the sum may wrap"),
    ("overflow as the rounding has it", r(P), r(P, overflow="infinity"), None),
    ("overflow as the rounding has it", r(P, mode="toward_zero"),
     r(P, mode="toward_zero", overflow="infinity"), "what stands for the node is something else"),
    ("overflow as the rounding has it", r(P, mode="up"),
     r(P, mode="up", overflow="infinity"), "its overflow depends on the sign, or is named"),
    ("overflow as the rounding has it", r(P, overflow="saturate"),
     r(P, overflow="infinity"), "its overflow depends on the sign, or is named"),
    ("overflow that no number reaches", r(P, F32, overflow="saturate"), r(P, F32, overflow="infinity"), None),
    ("overflow that no number reaches", r(P), r(P, overflow="infinity"), "its overflow is IEEE's"),
    ("overflow that no number reaches", r(ExactSum((P, C)), overflow="saturate"),
     r(ExactSum((P, C)), overflow="infinity"), "a number may be as large"),
    ("overflow that no number reaches", r(ExactSum((C, ZERO)), overflow="saturate"),
     r(ExactSum((C, ZERO)), overflow="infinity"), None),
    ("overflow that no number reaches", r(ExactSum((ZERO, C)), overflow="infinity", mode="toward_zero"),
     r(ExactSum((ZERO, C)), overflow="saturate", mode="toward_zero"), None),
    ("overflow that no number reaches", r(ExactSum((C, ZERO)), overflow="infinity", mode="up"),
     r(ExactSum((C, ZERO)), mode="up"), "a number may be as large"),
    ("overflow that no number reaches", r(ExactSum((C, C)), overflow="saturate"),
     r(ExactSum((C, C)), overflow="infinity"), "a number may be as large"),
    ("no sum rounded to zero", r(ExactSum((P, C)), zero="positive"), plus(r(ExactSum((P, C)), zero="positive")), None),
    ("no sum rounded to zero", r(ExactSum((P, C))), plus(r(ExactSum((P, C)))), "not every zero result is +0"),
    ("no sum rounded to zero", FLUSHED, plus(FLUSHED), "what is not zero may be rounded to zero"),
    ("no sum rounded to zero", r(P, zero="positive"), FIRST, None),
    ("no sum rounded to zero", r(P, zero="positive"), plus(r(P, zero="positive")), "what stands for the node is no"),
    ("no sum rounded to zero", r(P, zero="positive"), plus(r(ExactSum((C, ZERO)))), "it is the sum of other terms"),
    ("no sum rounded to zero", r(ACC, zero="positive"), plus(r(ExactSum((ACC, ZERO)))), "a loop may read it once"),
    ("no sum rounded to zero", r(ExactSum((P, C)), E4M3, zero="positive"),
     plus(r(ExactSum((P, C)), E4M3, zero="positive")), "what is not zero may be rounded to zero"),
    ("no sum rounded to zero", r(fused(P, C, bits=9), E4M3, zero="positive"),
     plus(r(fused(P, C, bits=9), E4M3, zero="positive")), "what is not zero may be rounded to zero"),
    ("no sum rounded to zero", r(fused(P, C, bits=9, zeros=0), E4M3, zero="positive"),
     r(fused(P, C, bits=9, zeros=0), E4M3, zero="exact_positive"), "what is not zero may be rounded to zero"),
    ("no sum rounded to zero", r(fused(P, C, sticky=True), zero="positive"),
     plus(r(fused(P, C, sticky=True), zero="positive")), "what is not zero may be rounded to zero"),
    ("no last sum of a loop rounded to zero", chain(zero="positive"), plus(chain(zero="positive")), None),
    ("no last sum of a loop rounded to zero", replace(chain(zero="positive"), places=range(1)),
     plus(replace(chain(zero="positive"), places=range(1))), "the first step is the last"),
    ("no last sum of a loop rounded to zero", loop(r(GridSum((LOOPED, ACC), (4, 4)), zero="positive")),
     plus(loop(r(GridSum((LOOPED, ACC), (4, 4)), zero="positive"))), "a step before may see the sign of a zero"),
    ("no last sum of a loop rounded to zero", chain(zero="positive"),
     replace(chain(zero="exact_positive"), start=C), "what stands for the node is something else"),
    ("no last sum of a loop rounded to zero", loop(UNKNOWN), loop(P), "it is not known which numbers the results"),
    ("sum that fits the result", FITS, with_how(FITS, mode="toward_zero"), None),
    ("sum that fits the result", r(fused(P, P), mode="down"),
     r(fused(P, P), mode="toward_zero"), "zeros, or tiny results"),
    ("sum that fits the result", r(fused(P, P), mode="up", subnormals="flush_after"),
     r(fused(P, P), mode="toward_zero", subnormals="flush_after"), "zeros, or tiny results"),
    ("sum that fits the result", r(fused(P, P), mode="toward_zero"),
     r(fused(P, P), mode="toward_zero"), "bits lie below the last place"),
    ("sum that fits the result", r(fused(P, P, sticky=True), mode="up"),
     r(fused(P, P, sticky=True), mode="toward_zero"), "bits lie below the last place"),
    ("sum that fits the result", r(fused(P, P, bits=(3, 4)), mode="up"),
     r(fused(P, P, bits=(3, 4)), mode="toward_zero"), "bits lie below the last place"),
    ("sum that fits the result", r(fused(ZERO, ZERO), mode="up"),
     r(fused(ZERO, ZERO), mode="toward_zero"), "the sum is zero"),
    ("sum that fits the result", r(fused(Each(1, range(9), LOOPED), bits=6), mode="up"),
     r(fused(Each(1, range(9), LOOPED), bits=6), mode="toward_zero"), "the sum may have more bits than the format"),
    ("sum that fits the result", r(fused(P, P, bits=9), mode="up"),
     r(fused(P, P, bits=9), mode="toward_zero"), "the sum may have more bits than the format"),
    ("sum that fits the result", r(fused(*[P] * 2, bits=8), mode="up"),
     r(fused(*[P] * 2, bits=8), mode="toward_zero"), None),
    ("sum that fits the result", r(fused(C, bits=2), E4M3, mode="up"),
     r(fused(C, bits=2), E4M3, mode="toward_zero"), "its last place may not be one of the format"),
    ("sum that fits the result", r(fused(P, P, bits=1, least=40), mode="up"),
     r(fused(P, P, bits=1, least=40), mode="toward_zero"), "its last place may not be one of the format"),
    ("a term that is never -0", r(ExactSum((P, ZERO))), plus(r(ExactSum((P, ZERO)))), None),
    ("a term that is never -0", r(fused(P, ZERO)), plus(r(fused(P, ZERO))), None),
    ("a term that is never -0", r(ExactSum((P, MINUS))), plus(r(ExactSum((P, MINUS)))), CUT),
    ("a term that is never -0", r(fused(r(P, zero="positive"), P)), plus(r(fused(r(P, zero="positive"), P))), CUT),
    ("a term that is never -0", r(fused(r(P, zero="positive"), P, bits=10)),
     plus(r(fused(r(P, zero="positive"), P, bits=10))), None),
    ("a term that is never -0", r(ExactSum((r(P, zero="positive"), fused(P, C, bits=10, carry_bits=1)))),
     plus(r(ExactSum((r(P, zero="positive"), fused(P, C, bits=10, carry_bits=1))))), CUT),
    ("a term that is never -0", r(ExactSum((r(P, zero="positive"), C))),
     plus(r(ExactSum((r(P, zero="positive"), C)))), None),
    ("a term that is never -0", r(ExactSum((r(P), r(P)))), plus(r(ExactSum((r(P), r(P))))), CUT),
    ("a term that is never -0", r(ExactSum((r(P, zero="positive", nan=0x8000),) * 2)),
     plus(r(ExactSum((r(P, zero="positive", nan=0x8000),) * 2))), CUT),
    ("a term that is never -0", r(ExactSum((P, ZERO)), mode="down"),
     plus(r(ExactSum((P, ZERO)), mode="down")), "zeros have signs"),
    ("a term that is never -0", r(ExactSum((ZERO,))), plus(r(ExactSum((ZERO,)))), CUT),
    ("a term that is never -0", r(ExactSum((loop(UNKNOWN),) * 2)), plus(r(ExactSum((loop(UNKNOWN),) * 2))), CUT),
    ("sign of a zero that nothing reads", r(P), plus(r(P)), None),
    ("sign of a zero that nothing reads", r(P, zero="exact_positive"), r(P, zero="exact_positive"), "nothing changes"),
    ("exact sum in an exact sum", ExactSum((FREE_SUM, ACC)), ExactSum((P, C, ACC)), None),
    ("exact sum in an exact sum", ExactSum((C, EACH_SUM)), ExactSum((C, EACH, Each(2, range(2), C))), None),
    ("exact sum in an exact sum", fused(FREE_SUM, ACC), ExactSum((P, C, ACC)), "it says nothing of a"),
    ("exact sum in an exact sum", ExactSum((FREE_SUM, ACC)), fused(P, C, ACC),
     "what stands for the node is no exact sum"),
    ("exact sum in an exact sum", ExactSum((P, C)), ExactSum((P, C)), "nothing changes"),
    ("exact sum in an exact sum", ExactSum((FREE_SUM,)), P, "what stands for the node is no exact sum"),
    ("exact sum in an exact sum", ExactSum((FREE_SUM, ACC)), ExactSum((P, ACC)), "it is the sum of other terms"),
    ("exact sum in an exact sum", ExactSum((FREE_SUM, ACC)), ExactSum((P, C, C)), "it is the sum of other terms"),
    ("exact sum in an exact sum", ExactSum((r(FREE_SUM), ACC)), ExactSum((P, C, ACC)),
     "it is the sum of other terms"),
    ("exact sum in an exact sum", ExactSum((Cut(FREE_SUM, 4), ACC)), ExactSum((P, C, ACC)),
     "it is the sum of other terms"),
    ("exact sum in an exact sum", ExactSum((fused(P, C), ACC)), ExactSum((P, C, ACC)), "it is the sum of other terms"),
    ("exact sum in an exact sum", ExactSum((C, EACH_SUM)), ExactSum((C, EACH, C)), "it is the sum of other terms"),
    ("exact sum in an exact sum", ExactSum((C, EACH_SUM)), ExactSum((C, EACH, Each(2, range(3), C))),
     "it is the sum of other terms"),
    (SCALED_SUM, ExactSum((scaled(FREE_SUM), ACC)), ExactSum((SCALED, ACC)), None),
    (SCALED_SUM, ExactSum((C, scaled(ExactSum((EACH, C))))),
     ExactSum((C, ExactSum((Each(2, range(2), scaled(P)), scaled(C))))), None),
    (SCALED_SUM, ExactSum((Each(2, range(2), scaled(FREE_SUM)),)), ExactSum((Each(2, range(2), SCALED),)), None),
    (SCALED_SUM, fused(scaled(FREE_SUM), ACC), ExactSum((SCALED, ACC)), "it says nothing of a"),
    (SCALED_SUM, ExactSum((scaled(FREE_SUM), ACC)), fused(SCALED, ACC), "what stands for the node is no exact sum"),
    (SCALED_SUM, ExactSum((scaled(FREE_SUM), ACC)), ExactSum((SCALED,)), "it is the sum of other terms"),
    (SCALED_SUM, ExactSum((P, C)), ExactSum((P, C)), "it is the sum of other terms"),
    (SCALED_SUM, ExactSum((scaled(FREE_SUM),)), ExactSum((SCALED,)), None),
    (SCALED_SUM, r(scaled(FREE_SUM)), r(SCALED), None),
    (SCALED_SUM, r(scaled(FREE_SUM)), r(SCALED, mode="up"), "what stands for the node is something else"),
    (SCALED_SUM, r(FREE_SUM), r(SCALED), "no scaled sum became a sum of scaled terms"),
    (SCALED_SUM, ExactSum((scaled(FREE_SUM), ACC)), ExactSum((FREE_SUM, ACC)), "another term is scaled"),
    (SCALED_SUM, ExactSum((scaled(FREE_SUM), ACC)), ExactSum((ExactSum((scaled(P), scaled(P))), ACC)),
     "another term is scaled"),
    (SCALED_SUM, ExactSum((scaled(FREE_SUM), ACC)), ExactSum((ExactSum((scaled(P),)), ACC)), "another sum is scaled"),
    (SCALED_SUM, ExactSum((scaled(fused(P, C)), ACC)), ExactSum((SCALED, ACC)), "another sum is scaled"),
    (SCALED_SUM, ExactSum((scaled(FREE_SUM), ACC)),
     ExactSum((ExactSum((scaled(P), scaled(C, right=P_SCALE))), ACC)), "it is scaled by other factors"),
    (SCALED_SUM, ExactSum((FREE_SUM, ACC)), ExactSum((SCALED, ACC)), "no scaled sum became a sum of scaled terms"),
    (SCALED_SUM, ExactSum((scaled(FREE_SUM, right=C), ACC)),
     ExactSum((ExactSum((scaled(P, right=C), scaled(C, right=C))), ACC)), "a factor may be infinite or negative"),
    (SCALED_SUM, ExactSum((scaled(FREE_SUM, right=UNKNOWN), ACC)),
     ExactSum((ExactSum((scaled(P, right=UNKNOWN), scaled(C, right=UNKNOWN))), ACC)), "nothing is known of a factor"),
    (SCALED_SUM, ExactSum((Each(2, range(2), scaled(FREE_SUM)),)), ExactSum((Each(2, range(3), SCALED),)),
     "terms stand for other places"),
    (SCALED_SUM, ExactSum((scaled(ExactSum((EACH, C)), right=FAR_SCALE), ACC)),
     ExactSum((ExactSum((Each(2, range(2), scaled(P, right=FAR_SCALE)), scaled(C, right=FAR_SCALE))), ACC)),
     "a factor depends on the place"),
    ("zero added", r(ExactSum((P, ZERO, MINUS))), r(ExactSum((P,))), None),
    ("zero added", r(ExactSum((P, C))), r(ExactSum((P, C))), "no zero is added, or nothing else"),
    ("zero added", r(ExactSum((ZERO, ZERO))), r(ExactSum((ZERO,))), "no zero is added, or nothing else"),
    ("zero added", r(ExactSum((P, C, ZERO))), r(ExactSum((P,))), "what stands for the node is something else"),
    ("sum of one term", r(ExactSum((P,))), r(P), None),
    ("sum of one term", r(ExactSum((P, C))), r(P), "it is a sum of several terms"),
    ("sum of one term", r(ExactSum((Each(1, range(2), LOOPED),))), r(LOOPED), "it is a sum of several terms"),
    ("number of the format, rounded again", r(r(P)), r(P), None),
    ("number of the format, rounded again", r(r(P, F32)), r(P, F32), "it is not a number of the format"),
    ("number of the format, rounded again", r(r(P)), r(C), "what stands for the node is something else"),
    ("number of the format, rounded again", r(C), C, "it is not rounded before"),
    ("number of the format, rounded again", r(r(C), subnormals="flush_before"), r(C), "a NaN or a tiny"),
    ("number of the format, rounded again", r(r(P), subnormals="flush_after"), r(P), "a NaN or a tiny"),
    ("number of the format, rounded again", r(FAR, subnormals="flush_before"), FAR, None),
    ("number of the format, rounded again", r(r(P), nan=0), r(P), "a NaN or a tiny"),
    ("fused sum that loses nothing", fused(P, P, bits=34), ExactSum((P, P)), None),
    ("fused sum that loses nothing", fused(P, P, bits=33), ExactSum((P, P)), "a term may lose bits"),
    ("fused sum that loses nothing", fused(P, C, bits=(40, 39)), ExactSum((P, C)), "a term may lose bits"),
    ("fused sum that loses nothing", fused(P, P, bits=34, least=17), ExactSum((P, P)), "a term may lose bits"),
    ("fused sum that loses nothing", fused(P, P, bits=34), ExactSum((P, C)),
     "what stands for the node is something else"),
    ("fused sum that loses nothing", fused(P, P, bits=34, sticky=True), ExactSum((P, P)),
     "it wraps, or has a sticky bit"),
    ("fused sum that loses nothing", fused(P, P, bits=34, carry_bits=3), ExactSum((P, P)),
     "it wraps, or has a sticky bit"),
    ("fused sum that loses nothing", fused(P, P, bits=34, reach=(9, None)), ExactSum((P, P)), "a term may vanish"),
    ("fused sum that loses nothing", fused(P, bits=34), ExactSum((P,)), "it is one term"),
    ("fused sum that loses nothing", fused(ZERO, ZERO, bits=34), ExactSum((ZERO, ZERO)), "it is a sum of zeros"),
    ("sorted sum that loses nothing", SortedSum((P, P, P), (35, 35)), ExactSum((P, P, P)), None),
    ("sorted sum that loses nothing", SortedSum((P, P, P), (34, 35)), ExactSum((P, P, P)), "a term may lose bits"),
    ("sorted sum that loses nothing", SortedSum((P, ZERO, C), (38, 40)), ExactSum((P, ZERO, C)),
     "a term may lose bits"),
    ("sorted sum that loses nothing", SortedSum((P, P, P), (35, 36)), ExactSum((P, P, C)),
     "what stands for the node is something else"),
    ("sorted sum that loses nothing", SortedSum((ZERO, ZERO, ZERO), (5, 5)), ExactSum((ZERO, ZERO, ZERO)),
     "it is a sum of zeros"),
    ("sorted sum that loses nothing", SortedSum((P, P, Product(OWN, B)), (99, 99)), ExactSum((P, P, Product(OWN, B))),
     "it is not known which numbers a term can be"),
    ("sorted sum that loses nothing", fused(P, P, bits=34), ExactSum((P, P)), "it says nothing of a"),
    ("rounding that the next one makes needless", r(r(P, F32, mode="to_odd")), r(P), None),
    ("rounding that the next one makes needless", r(r(P, F32, mode="up"), mode="up"), r(P, mode="up"), None),
    ("rounding that the next one makes needless", r(r(FREE_SUM, F32, mode="to_odd", zero="positive"), mode="down"),
     r(FREE_SUM, mode="down", zero="positive"), None),
    ("rounding that the next one makes needless", r(r(P, F32)), r(P), "nothing says that once is enough"),
    ("rounding that the next one makes needless", r(r(P, F32, mode="to_odd"), mode="down"), r(P, mode="down"),
     "a zero sum has another sign"),
    ("rounding that the next one makes needless", r(r(P, F32, mode="to_odd", nan=1)), r(P), "a NaN becomes a number"),
    ("rounding that the next one makes needless", r(r(P, E4M3, mode="to_odd")), r(P),
     "there are no infinities between"),
    ("rounding that the next one makes needless", r(r(P, F32, mode="to_odd", subnormals="flush_before")), r(P),
     "tiny numbers are flushed"),
    ("rounding that the next one makes needless", r(P), r(P), "it is not rounded before"),
    ("rounding that the next one makes needless", r(r(P, F32, mode="to_odd")), r(C),
     "what stands for the node is something else"),
    ("rounding that the number needs not", r(r(P, F32)), r(P), None),
    ("rounding that the number needs not", r(r(P, F32)), r(C), "what stands for the node is something else"),
    ("rounding that the number needs not", r(r(P, F32, zero="positive")), r(P), "its zeros are +0"),
    ("rounding that the number needs not", r(r(P, E4M3)), r(P), "the first rounding changes numbers"),
    ("rounding that the number needs not", r(r(C, F32, subnormals="flush_after", nan=1)), r(C), "the first rounding"),
    ("rounding that the number needs not", r(r(ExactSum((P,)), F32)), r(ExactSum((P,))), "it is a sum of one term"),
    ("rounding that the number needs not", r(r(Relu(P), F32)), r(Relu(P)), "a sign may be another"),
    ("rounding that the number needs not", r(ExactSum((C, r(P, F32)))), r(FREE_TURNED), None),
    ("rounding that the number needs not", r(ExactSum((C, r(FREE_SUM, F32)))), r(ExactSum((C, P, C))), "the first"),
    ("rounding that the number needs not", r(ExactSum((C, r(TWO, FORMATS["f64"])))), r(ExactSum((C, P, P))), None),
    ("rounding that the number needs not", r(ExactSum((C, r(P, F32)))), r(ExactSum((C, C))), "it is the sum of other"),
    ("rounding that the number needs not", r(ExactSum((C, P))), r(ExactSum((C, P))), "the term is not rounded before"),
    ("rounding that the number needs not", r(P), r(P), "a term alone is not rounded before"),
    ("rounding that the number needs not", r(ExactSum((C, r(P, F32)))), r(FREE_TURNED, mode="up"),
     "what stands for the node is something else"),
    ("number of the format and +0, rounded again", r(ExactSum((r(P), ZERO))), FIRST, None),
    ("number of the format and +0, rounded again", r(ExactSum((r(FREE_SUM), ZERO)), mode="up"),
     plus(r(ExactSum((P, C, ZERO)))), None),
    ("number of the format and +0, rounded again", r(ExactSum((r(P), C))), FIRST, "+0 is not all"),
    ("number of the format and +0, rounded again", r(ExactSum((C, ZERO))), FIRST, "the term is not rounded before"),
    ("number of the format and +0, rounded again", r(ExactSum((r(P), ZERO)), nan=0x7E00), FIRST, "another NaN, or"),
    ("number of the format and +0, rounded again", r(ExactSum((r(P), ZERO)), mode="down"), FIRST, "another NaN, or"),
    ("number of the format and +0, rounded again", r(ExactSum((r(P, F32), ZERO))), FIRST, "another NaN, or"),
    ("number of the format and +0, rounded again", r(ExactSum((r(C), ZERO)), subnormals="flush_after"),
     plus(r(ExactSum((C, ZERO)))), "it is changed again"),
    ("number of the format and +0, rounded again", r(ExactSum((r(P, E4M3), ZERO)), E4M3),
     plus(r(ExactSum((P, ZERO)), E4M3)), "what is not zero may be rounded to zero"),
    ("number of the format and +0, rounded again", r(ExactSum((r(P), ZERO))), r(ExactSum((P, ZERO))),
     "what stands for the node is something else"),
    ("number of the format and +0, rounded again", r(ExactSum((r(P), ZERO))), plus(r(ExactSum((C, ZERO)))),
     "it is the sum of other terms"),
    ("product of zeros", Product(ZERO, MINUS), MINUS, None),
    ("product of zeros", Product(ZERO, A), ZERO, "a factor is not zero"),
    ("product of zeros", Product(MINUS, MINUS), MINUS, "what stands for the node is something else"),
    ("input read as its own format is rounded", READ, READ_C, None),
    ("input read as its own format is rounded", with_how(READ, subnormals="keep"), READ_C, "what stands for the node"),
    ("input read as its own format is rounded", with_how(READ, zero="ieee"), READ_C, "it is no input, or"),
    ("input read as its own format is rounded", with_how(READ, nan=1), READ_C, "it may be another number"),
    ("input read as its own format is rounded", r(A, zero="positive"), A, "it may be another number"),
    ("results so far that are read as they are", ONCE, replace(ONCE, start=START, body=PLUS), None),
    ("results so far that are read as they are", ONCE, replace(ONCE, body=PLUS), "the start is not rounded"),
    ("results so far that are read as they are", ONCE, replace(ONCE, start=READ, body=PLUS), "another node reads"),
    ("results so far that are read as they are", ONCE,
     replace(ONCE, start=START, body=r(ExactSum((P, ACC)))), "another node reads"),
    ("results so far that are read as they are", ONCE,
     replace(ONCE, start=START, body=PLUS, places=range(2)), "what stands for the node"),
    ("results so far that are read as they are", loop(r(ExactSum((LOOPED, ACC, r(ACC, zero="positive")))), C),
     loop(r(ExactSum((LOOPED, ACC, ACC))), r(C, zero="positive")), "another node reads"),
    ("results so far that are read as they are", loop(r(ExactSum((LOOPED, r(ACC, zero="positive", nan=1)))), C),
     loop(PLUS, r(C, zero="positive", nan=1)), "a number is written for a NaN"),
    ("results so far that are read as they are", loop(r(ExactSum((r(LOOPED), READ_ACC))), C),
     loop(r(ExactSum((r(LOOPED), ACC))), READ), "a result is changed where it is read"),
    ("results so far that are read as they are", loop(r(ExactSum((LOOPED, READ_ACC)), **FLUSH), C),
     loop(r(ExactSum((LOOPED, ACC)), **FLUSH), READ), "a result may be -0"),
    ("neutral zero added", r(ExactSum((P, C, MINUS))), r(ExactSum((P, C))), None),
    ("neutral zero added", r(ExactSum((P, C, ZERO))), r(ExactSum((P, C))), "no zero that is neutral is added"),
    ("neutral zero added", r(ExactSum((P, MINUS)), mode="down"), r(ExactSum((P,)), mode="down"),
     "no zero that is neutral is added"),
    ("neutral zero added", r(ExactSum((P, ZERO)), mode="down"), r(ExactSum((P,)), mode="down"), None),
    ("neutral zero added", r(ExactSum((P, C, MINUS))), r(ExactSum((P,))), "what stands for the node is something else"),
    ("first step of a loop", loop(STEP), replace(loop(STEP, FIRST), places=(1, 2)), None),
    (RECTIFIED, Relu(r(P)), r(Relu(P)), None),
    (RECTIFIED, Relu(r(Relu(P), mode="up")), r(Relu(P), mode="up"), None),
    (RECTIFIED, Relu(r(P), zero="keep"), r(Relu(P)), "it is another rectifier"),
    (RECTIFIED, Relu(P), r(Relu(P)), "it is not rounded before"),
    (RECTIFIED, Relu(r(P, E4M3)), r(Relu(P), E4M3), "the format lacks a sign, zero, infinities or NaNs"),
    (RECTIFIED, Relu(r(P, nan=1)), r(Relu(P), nan=1), "the format lacks a sign, zero, infinities or NaNs"),
    (RECTIFIED, Relu(r(P)), r(Relu(P), mode="up"), "what stands for the node is something else"),
    (RECTIFIED, Relu(r(P)), r(Relu(C)), "something else is rectified"),
    ("first step of a loop", loop(STEP, places=range(1)), FIRST, None),
    ("first step of a loop", loop(STEP),
     replace(loop(STEP, FIRST), places=(2,)), "what stands for the node is something else"),
    ("first step of a loop", loop(STEP),
     replace(loop(STEP, replace(FIRST, term=ExactSum((C, ZERO)))), places=(1, 2)), "that is not its first step"),
    ("first step of a loop", loop(STEP, places=(1, 0)),
     replace(loop(STEP, FIRST), places=(0,)), "that is not its first step"),
    ("first step of a loop", loop(STEP, C, places=range(1)), FIRST, "that is not its first step"),
    ("first step of a loop", loop(STEP, places=range(1)), with_how(FIRST, mode="up"), "that is not its first step"),
    ("first step of a loop", loop(STEP, places=range(1)),
     r(ExactSum((P, ZERO, ZERO)), zero="exact_positive"), "that is not its first step"),
    ("first step of a loop", chain(),
     replace(loop(r(ExactSum((LOOPED, ACC))), r(ExactSum((P, ZERO)))), places=(1, 2)),
     "the first step may see the sign of a zero"),
    ("first step of a loop", loop(r(ExactSum((Each(2, range(2), P), ACC)), zero="exact_positive"), places=range(1)),
     r(ExactSum((Each(2, range(2), P), ZERO)), zero="exact_positive"), "there is a loop in the loop"),
]  # fmt: skip

UNIT = parse_unit("""unit: any
formats: {a: e4m3, b: e4m3, c: f16, d: f16}
length: 1
roundings: {r: "round(f16, nearest_even)"}
steps: {d: "r(exact(a[0:1] * b[0:1], c))"}
""", "x.yaml")  # fmt: skip


UNIT_THAT_SCALES = replace(UNIT, scale=UE8M0, scale_block=1)


def needs(name: str, node: Node, other: Node) -> Needs:
    """What a step rests on, and what it keeps. Raises FaultError for one that is refused."""
    unit = UNIT_THAT_SCALES if name == SCALED_SUM else UNIT
    own = Written(unit)
    found = [own.restated(Alike(Scope.of(unit), one, one, True, True), [*own.formats])["node"] for one in (node, other)]
    tree = Tree(json.loads(json.dumps(own.stating(()))))
    return REWRITES[name](Place(tree, Known(tree), (), *found))


def refusal(name: str, node: Node, other: Node) -> str | None:
    """With what a step is refused."""
    try:
        needs(name, node, other)
    except FaultError as fault:
        return str(fault)
    return None


#: steps that do not keep how a node counts in an alignment, or signs of zeros
LOST = [
    ("products that an exact sum normalises in vain", NORMALISED, P, (False, True)),
    ("floor below every term", fused(P, C, zeros=-9), fused(P, C), (False, True)),
    ("products held by the format that they are rounded to", fused(HELD, C, least=-9), fused(NORMALISED, C, least=-9),
     (True, True)),
    ("gated products whose zeros have any sign", GATED, Gate(P), (True, False)),
    ("sign of a zero that nothing reads", r(P), r(P, zero="exact_positive"), (True, False)),
    ("number of the format, rounded again", r(r(P), zero="positive"), r(P), (True, False)),
    ("zero added", r(ExactSum((P, C, ZERO))), r(ExactSum((P, C))), (True, False)),
    ("zero added", plus(r(ExactSum((P, ZERO)))), plus(r(ExactSum((P,)))), (True, False)),
    ("zero added", plus(r(ExactSum((P, C, ZERO)))), plus(r(ExactSum((P, C)))), (True, True)),
]  # fmt: skip


def test_what_a_step_does_not_keep_is_said() -> None:
    for name, node, other, kept in LOST:
        found = needs(name, node, other)
        assert (found.counting, found.signs) == kept, name


@pytest.mark.parametrize("name", REWRITES)
def test_every_condition_of_a_rule_refuses_a_step(name: str) -> None:
    for rule, node, other, wanted in STEPS:
        if rule == name:
            found = refusal(name, node, other)
            assert (found is None) is (wanted is None), (wanted, found, node, other)
            assert wanted is None or (found or "").startswith(wanted), (wanted, found)
    assert any(rule == name and wanted is None for rule, _, _, wanted in STEPS)


def conditions(module: Any) -> set[str]:
    """The texts of a module's conditions, as far as they are fixed."""
    tree, found = ast.parse(Path(module.__file__).read_text()), set()
    for call in ast.walk(tree):
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id == "need":
            text = call.args[1]
            first = text.values[0] if isinstance(text, ast.JoinedStr) else text
            if isinstance(first, ast.Constant):
                found.add(str(first.value).strip())
    return found


def test_no_condition_of_rewriting_is_without_a_step() -> None:
    refused = {wanted for *_, wanted in STEPS if wanted is not None}
    known = conditions(rewrite_rules)
    assert {one for one in known if not any(one.startswith(text) for text in refused)} == set()
    assert all(any(one.startswith(text) for one in known) for text in refused)


# -- the rules that join steps

SCOPE = Scope.of(UNIT)
SUM, ROUNDED = ExactSum((NORMALISED, C)), r(fused(NORMALISED, C))
BARE = fused(P, C)
STEP_SUM = r(ExactSum((LOOPED, ACC)))
HELD_SO_FAR = rewriting.kind_of(SCOPE, loop(STEP_SUM))
assert HELD_SO_FAR is not None
INNER = SCOPE.within(1, HELD_SO_FAR)
WITH_C = r(ExactSum((LOOPED, C, ACC)))  # of which C is a multiple of less
GRID = loop(r(GridSum((LOOPED, ACC), (4, 4))))


def alike(node: Node, other: Node, counting: bool = True, signs: bool = True, scope: Scope = SCOPE) -> Alike:
    return Alike(scope, node, other, counting, signs)


#: a rule, its premises, what it is said to give, and the condition that refuses it (None: it is allowed)
JOINED: list[tuple[str, list[Alike], Any, str | None]] = [
    ("followed", [alike(P, NORMALISED), alike(NORMALISED, P)], alike(P, P), None),
    ("followed", [alike(P, NORMALISED), alike(P, P)], alike(P, P), "the second does not begin where the first ends"),
    ("followed", [alike(P, NORMALISED), alike(NORMALISED, P, scope=INNER)], alike(P, P),
     "the second does not begin where the first ends"),
    ("followed", [alike(P, NORMALISED, signs=False), alike(NORMALISED, P)], alike(P, P),
     "the conclusion does not follow"),
    ("followed", [alike(P, NORMALISED), alike(NORMALISED, P, counting=False)], alike(P, P),
     "the conclusion does not follow"),
    ("congruent", [alike(NORMALISED, P, counting=False)], alike(SUM, FREE_SUM), None),
    ("congruent", [alike(NORMALISED, P, counting=False)], alike(ExactSum((C, NORMALISED)), FREE_SUM),
     "the premises are not about what changes"),
    ("congruent", [], alike(SUM, FREE_SUM), "the premises are not about what changes"),
    ("congruent", [], alike(SUM, SUM), "the premises are not about what changes"),
    ("congruent", [alike(NORMALISED, P)], alike(r(NORMALISED), r(P, mode="up")),
     "the nodes differ in more than operands"),
    ("congruent", [alike(NORMALISED, P)], alike(SUM, ExactSum((P, C, C))), "the nodes differ in more than operands"),
    ("congruent", [alike(NORMALISED, P, scope=INNER)], alike(SUM, FREE_SUM), "a premise is in another scope"),
    ("congruent", [alike(P, NORMALISED)], alike(Gate(P), Gate(NORMALISED)), "of a gate it is not known"),
    ("congruent", [alike(NORMALISED, P)], alike(Relu(NORMALISED), Relu(P)), None),
    ("congruent", [alike(NORMALISED, P, counting=False)], alike(Relu(NORMALISED), Relu(P)),
     "the conclusion does not follow"),
    ("congruent", [alike(NORMALISED, P, counting=False)], alike(fused(NORMALISED, C), BARE),
     "a fused sum sees with which exponents its terms count"),
    ("congruent", [alike(NORMALISED, P)], alike(fused(NORMALISED, C), BARE), None),
    ("congruent", [alike(NORMALISED, P)], alike(fused(NORMALISED, C, least=-9), fused(P, C, least=-9)), None),
    ("congruent", [alike(NORMALISED, P)], alike(Cut(NORMALISED, 4), Cut(P, 4)), None),
    ("congruent", [alike(NORMALISED, P)], alike(Cut(NORMALISED, 4, least=0), Cut(P, 4, least=0)), None),
    ("congruent", [alike(SUM, FREE_SUM, signs=False)], alike(r(SUM), r(FREE_SUM)), "the conclusion does not follow"),
    ("congruent", [alike(SUM, FREE_SUM, signs=False)], alike(plus(r(SUM)), plus(r(FREE_SUM))), None),
    ("congruent", [alike(BARE, FREE_SUM, signs=False)], alike(plus(r(BARE)), plus(r(FREE_SUM))),
     "the conclusion does not follow"),
    ("congruent", [alike(E4, r(P, E4M3))], alike(loop(STEP_SUM, E4), loop(STEP_SUM, r(P, E4M3))), None),
    ("congruent", [alike(E4, C)], alike(loop(STEP_SUM, E4), loop(STEP_SUM, C)), "the start has another format"),
    ("congruent", [alike(UNKNOWN, C)], alike(loop(STEP_SUM, UNKNOWN), loop(STEP_SUM, C)),
     "the start has another format"),
    ("congruent", [alike(r(C), C, signs=False)], alike(replace(GRID, start=r(C)), replace(GRID, start=C)),
     "the body sees the sign of a zero"),
    ("congruent", [alike(STEP_SUM, STEP)], alike(loop(STEP_SUM), loop(STEP)), "the body of a loop is in another scope"),
    ("looped", [alike(STEP_SUM, STEP, scope=INNER)], alike(loop(STEP_SUM), loop(STEP)), None),
    ("looped", [alike(STEP_SUM, STEP, scope=INNER)], alike(loop(STEP_SUM), loop(STEP, C)),
     "what stands for the node is something else"),
    ("looped", [alike(STEP_SUM, STEP, False, scope=INNER)], alike(loop(STEP_SUM), loop(STEP)),
     "the premise is not about the body, or it counts otherwise"),
    ("looped", [alike(C, STEP, scope=INNER)], alike(loop(STEP_SUM), loop(STEP)),
     "the premise is not about the body, or it counts otherwise"),
    ("looped", [alike(STEP_SUM, STEP)], alike(loop(STEP_SUM), loop(STEP)), "the premise is in another scope"),
    ("looped", [alike(STEP_SUM, STEP, scope=INNER.within(2, rewriting.Held(frozenset((F16,)))))],
     alike(loop(STEP_SUM), loop(STEP)), "the premise is in another scope"),
    ("looped", [alike(STEP_SUM, STEP, scope=SCOPE.within(2, rewriting.Held(frozenset((F16,)))))],
     alike(loop(STEP_SUM), loop(STEP)), "the premise is about another loop"),
    ("looped", [alike(STEP_SUM, r(ACC, E4M3), scope=INNER)], alike(loop(STEP_SUM), loop(r(ACC, E4M3))),
     "the results are of another format"),
    ("looped", [alike(UNKNOWN, Cut(C, 4), scope=INNER)], alike(loop(UNKNOWN), loop(Cut(C, 4))),
     "the results are of another format"),
    ("looped", [alike(STEP_SUM, STEP, scope=SCOPE.within(1, rewriting.Held(frozenset((F16,)), 3)))],
     alike(loop(STEP_SUM), loop(STEP)), "the results are not of the kind assumed"),
    ("looped", [alike(STEP_SUM, STEP, scope=INNER)], alike(loop(STEP_SUM, E4), loop(STEP, E4)),
     "the results are not of the kind assumed"),
    ("looped", [alike(STEP_SUM, STEP, scope=INNER)], alike(loop(STEP_SUM, UNKNOWN), loop(STEP, UNKNOWN)),
     "it is not known which numbers the results so far are"),
    ("looped", [alike(WITH_C, STEP, scope=SCOPE.within(1, rewriting.Held(frozenset((F16,)), -18)))],
     alike(loop(WITH_C), loop(STEP)), "the results are not of the kind assumed"),
    ("looped", [alike(chain(nan=1).body, STEP, scope=SCOPE.within(1, rewriting.Held(frozenset((F16,)), -18)))],
     alike(chain(nan=1), loop(STEP)), "the results are not of the kind assumed"),
    ("looped", [alike(STEP_SUM, STEP, signs=False, scope=INNER)], alike(loop(STEP_SUM), loop(STEP)),
     "the conclusion does not follow"),
    ("looped", [alike(STEP_SUM, GRID.body, signs=False, scope=INNER)], alike(loop(STEP_SUM), GRID, signs=False),
     "the body sees the sign of a zero"),
    ("results_alike", [alike(UNIT.result, r(P))], rewriting.SameResults(UNIT, r(P)), None),
    ("results_alike", [alike(UNIT.result, loop(r(P)))], rewriting.SameResults(UNIT, loop(r(P))), None),
    ("results_alike", [alike(UNIT.result, r(P))], rewriting.SameResults(UNIT, r(C)), "the conclusion does not follow"),
    ("results_alike", [alike(UNIT.result, r(P))], alike(P, P), "its goal is of another kind"),
    ("results_alike", [alike(P, r(P))], rewriting.SameResults(UNIT, r(P)),
     "the premise is not about the unit's result"),
    ("results_alike", [alike(UNIT.result, r(P), scope=INNER)], rewriting.SameResults(UNIT, r(P)),
     "the premise is not about the unit's result"),
    ("results_alike", [alike(UNIT.result, r(P), signs=False)], rewriting.SameResults(UNIT, r(P)),
     "zeros may have other signs"),
    ("results_alike", [alike(UNIT.result, P)], rewriting.SameResults(UNIT, P), "the result is not rounded"),
    ("results_alike", [alike(UNIT.result, r(P, F32))], rewriting.SameResults(UNIT, r(P, F32)),
     "it is not rounded to the same format"),
    ("results_alike", [alike(UNIT.result, r(P, nan=0x7E00))], rewriting.SameResults(UNIT, r(P, nan=0x7E00)),
     "it is not rounded to the same format"),
]  # fmt: skip


def refused(rule: str, premises: list[Alike], goal: Any, change: Any = lambda goals: None) -> str | None:
    """With what a step is refused, the premises being believed."""
    own, goals = Written(UNIT), []
    for one in (*premises, goal):
        goals.append({"is": type(one).__name__} | own.restated(one, [*own.formats]))
    tree = Tree(json.loads(json.dumps(own.stating(()))))
    change(goals)
    tree.goals = [read_goal(json.loads(json.dumps(one))) for one in goals]
    try:
        Tree.rules[rule](tree, tree.goals[-1], range(len(premises)), {"name": "sum of one term"})
    except FaultError as fault:
        return str(fault)
    return None


def test_every_condition_of_a_joining_rule_refuses_a_step() -> None:
    for rule, premises, goal, wanted in JOINED:
        found = refused(rule, premises, goal)
        assert (found is None) is (wanted is None), (rule, wanted, found, premises, goal)
        assert wanted is None or (found or "").startswith(wanted), (wanted, found)


#: what is wrong with a goal or with premises as they are written, or with what they are about
WRONG: list[tuple[str, Any, Any]] = [
    ("a goal of another kind is needed", alike(r(ExactSum((P,))), r(P)),
     lambda goals: goals[0].update({"is": "Rises"})),
    ("it is not said what is alike", alike(r(ExactSum((P,))), r(P)), lambda goals: goals[0].update(signs=1)),
    ("there is no such node", alike(r(ExactSum((P,))), r(P)), lambda goals: goals[0].update(node=999)),
    ("there is no such node", alike(r(ExactSum((P,))), r(P)), lambda goals: goals[0].update(other=-1)),
    ("it is about other operands", alike(r(ExactSum((P,))), r(P)), lambda goals: goals[0]["scope"]["formats"].pop()),
    ("it says something of inputs", alike(r(ExactSum((P,))), r(P), scope=replace(SCOPE, unsigned=frozenset({"c"}))),
     lambda goals: None),
    ("a loop is around itself", alike(r(ExactSum((P,))), r(P), scope=replace(INNER, held=INNER.held * 2)),
     lambda goals: None),
    ("the conclusion does not follow", alike(r(ExactSum((P,))), r(P), signs=False), lambda goals: None),
]  # fmt: skip


def test_no_condition_of_joining_rules_is_without_a_step() -> None:
    seen = {wanted for *_, wanted in JOINED if wanted is not None}
    for wanted, goal, change in WRONG:
        assert refused("rewritten", [], goal, change) == wanted
        seen.add(wanted)
    assert refused("rewritten", [alike(P, P)], WRONG[0][1]) == "a premise is not a lemma about the datapath"
    assert refused("rewritten", [], alike(LIMITED, P)) is not None
    known = conditions(alike_rules) | conditions(term_ranges)
    lemmas = {"a premise is not a lemma about the datapath", "the lemmas are about another datapath"}  # tried above
    named = {"a loop has no step"}  # tried below
    assert {one for one in known if not any(text.startswith(one) for text in seen)} == lemmas | named


def test_a_loop_without_steps_is_refused() -> None:
    document = Written(parse_unit(unit_text(UNIT).replace("r(exact", "repeat(i in range(2), c, r(exact").replace(
        "c))", "c)))"), "x.yaml")).stating(())  # fmt: skip
    tree = Tree(document)
    tree.nodes[tree.unit["result"]]["places"] = []
    with pytest.raises(FaultError, match="a loop has no step"):
        Known(tree).formats((), tree.unit["result"])
