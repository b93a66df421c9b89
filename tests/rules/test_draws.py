"""The rule of stochastic rounding: its bound on all inputs and random bits of small formats, its lemma, refusals."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from mmaprobe.queries.kernel.bounds import draws
from mmaprobe.queries.kernel.bounds.enclosures import Enclosed
from mmaprobe.queries.kernel.lemmas import exhausted
from mmaprobe.queries.kernel.theorem import RuleError, Theorem
from mmaprobe.queries.properties.bound import bound_of
from mmaprobe.queries.properties.bound_report import document_of, find_bound
from mmaprobe.smtmodel.arithmetic import rounding
from mmaprobe.smtmodel.arithmetic.display import exact_value
from mmaprobe.smtmodel.arithmetic.formats import format_named
from mmaprobe.smtmodel.arithmetic.rounding import STOCHASTIC, Stochastic
from mmaprobe.smtmodel.carriers.algebra import Bits, constant
from mmaprobe.smtmodel.evaluate.batch import evaluate_batch
from mmaprobe.smtmodel.evaluate.model import Model
from mmaprobe.smtmodel.inputs.admitted import Inputs
from mmaprobe.smtmodel.units.unitfile import parse_unit
from tests.said import believed


def drawn(mode: str, d: str = "e2m1", bits: int = 2) -> Model:
    text = f"""unit: drawn
formats: {{a: e2m1, b: e2m1, c: {d}, d: {d}, random: uint{bits}}}
length: 1
roundings: {{r: "round({d}, {mode})"}}
steps: {{d: "r(exact(a[0] * b[0], c), random)"}}
"""
    return Model("drawn", parse_unit(text, "drawn.yaml", whole=True))


@pytest.mark.all_inputs
@pytest.mark.parametrize("mode", STOCHASTIC)
@pytest.mark.parametrize("d", ["e2m1", "binary4p2se"])
def test_the_bound_on_all_inputs(mode: str, d: str) -> None:
    model = drawn(mode, d)
    theorem, fmt = bound_of(model.unit, believed), model.d
    assert isinstance(theorem.goal, Enclosed)
    a, b, c, r = (x.ravel() for x in np.meshgrid(*(np.arange(16, dtype=np.uint64),) * 3, np.arange(4, dtype=np.uint64)))
    none = np.empty((len(a), 0), dtype=np.uint64)
    found = evaluate_batch(model, a[:, None], b[:, None], c, none, none, r[:, None]).tolist()
    values = [exact_value(x, model.a) for x in range(16)], [exact_value(x, fmt) for x in range(16)]
    largest, worst = exact_value(fmt.largest, fmt), Fraction(0)
    for x, y, z, result in zip(a.tolist(), b.tolist(), c.tolist(), found, strict=True):
        numbers = [0 if v == "-0" else v for v in (values[0][x], values[0][y], values[1][z], values[1][result])]
        if not all(isinstance(v, Fraction | int) for v in numbers):
            continue
        left, right, addend, rounded = map(Fraction, numbers)  # type: ignore[arg-type]
        total = left * right + addend
        unit = max(abs(total), Fraction(2) ** fmt.emin) * Fraction(1, 1 << fmt.fraction)
        if abs(rounded) < Fraction(largest):  # type: ignore[arg-type]
            worst = max(worst, abs(rounded - total) / unit)
    assert Fraction(1, 3) < worst <= 1  # as the theorem has it: 2^-f |exact|
    assert theorem.goal.statement().count(f"2^-{fmt.fraction} * |exact|") == 1


CHAIN = """unit: chain
formats: {a: e2m1, b: e2m1, c: e2m1, d: e2m1, draws: uint2}
length: 2
roundings: {r: "round(e2m1, MODE)"}
steps: {d: "repeat(i in range(2), c, r(exact(a[i] * b[i], acc), draws[i]))"}
"""


@pytest.mark.all_inputs
@pytest.mark.parametrize("mode", STOCHASTIC)
def test_the_bound_of_a_chain_on_all_inputs(mode: str) -> None:
    """Two steps by bits of their own, with factors b of 1/2 and 1: the bound holds, and a quarter of it does not."""
    model = Model("chain", parse_unit(CHAIN.replace("MODE", mode), "chain.yaml", whole=True))
    document = document_of(find_bound(model, Inputs(), None, believed))
    sides = (
        [np.arange(16, dtype=np.uint64)] * 3 + [np.array([1, 2], np.uint64)] * 2 + [np.arange(4, dtype=np.uint64)] * 2
    )
    x0, x1, z, y0, y1, r0, r1 = (side.ravel() for side in np.meshgrid(*sides))
    a, b, draws = (np.stack(pair, axis=1) for pair in ((x0, x1), (y0, y1), (r0, r1)))
    none = np.empty((len(z), 0), dtype=np.uint64)
    found = evaluate_batch(model, a, b, z, none, none, none, draws)
    numbers = np.array([float(0 if v == "-0" else v) for v in (exact_value(x, model.a) for x in range(16))])
    terms = {"a_0 b_0": numbers[x0] * numbers[y0], "a_1 b_1": numbers[x1] * numbers[y1], "c": numbers[z]}
    error = abs(numbers[found] - sum(terms.values()))
    assert isinstance(document.terms, tuple | list)
    bound = np.zeros(len(z))
    for term in document.terms:
        (of,) = term.of
        names = [name if name == "c" else f"{name}_{place}" for name, place, _ in of]
        bound += float(Fraction(term.coefficient)) * (abs(terms[" ".join(names)]) if names else 1)
    fine = sum(map(abs, terms.values())) <= 6  # where no rounding overflows
    assert (error <= bound)[fine].all()
    assert (4 * error > bound)[fine].any()


@pytest.mark.parametrize("mode", STOCHASTIC)
@pytest.mark.parametrize(("name", "bits"), [("e2m1", 2), ("e2m1", 3), ("binary3p1se", 3), ("int4", 2), ("e3m2", 2)])
def test_the_lemma(mode: Stochastic, name: str, bits: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """It holds of all inputs, and of none of two ways to draw that are wrong."""
    lemma = draws.DrawIsNextTo(format_named(name), mode, bits)
    assert exhausted(lemma).goal == lemma

    def always(_: Stochastic, rest: Bits, random: Bits) -> Bits:
        return constant(rest.carrier, 1 << random.width, random.width + 1)

    monkeypatch.setattr(rounding, "draw", always)
    with pytest.raises(RuleError, match="shows otherwise"):
        exhausted(lemma)


def test_refusals() -> None:
    """The rule needs its lemmas, both operands in order, and random bits."""
    model = drawn("stochastic_b")
    node, unit = model.unit.last, model.unit
    (total, random) = node.operands
    assert total.kind == "exact"
    found = bound_of(unit, believed)
    every = {one.goal.node: one for one in found.walk() if isinstance(one.goal, Enclosed) and one.rule != "whole"}
    premises = [every[total], every[random]]
    lemmas: list[Theorem] = [believed(one) for one in draws.draw_lemmas(node, unit.formats)]
    assert draws.drawn(node, (), premises, lemmas).goal
    for given, proved, refusal in (
        (premises[::-1], lemmas, "not about its operands"), (premises[:1], lemmas, "not about its operands"),
        (premises, lemmas[1:], "stays open"), (premises, lemmas[:-1], "stays open"),
        (premises, [*lemmas, believed(draws.DrawIsNextTo(model.d, "stochastic_a", 2))], "another datapath"),
    ):  # fmt: skip
        with pytest.raises(RuleError, match=refusal):
            draws.drawn(node, (), given, proved)
    with pytest.raises(RuleError, match="without random bits"):
        draws.draw_lemmas(node, {})


def test_a_bound_shows_the_lemma_about_draws() -> None:
    """By this lemma, bounds of two modes are a bound of what random bits give."""
    found = document_of(find_bound(drawn("stochastic_a"), Inputs(), None, believed))
    said = "stochastic_a by 2 random bits gives what rounding to e2m1 toward zero, or away from zero, gives"
    assert said in [one.lemma for one in found.lemmas]
