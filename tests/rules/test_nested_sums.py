"""Exact sums of exact sums: one sum of all their terms, by a rule, on every input of small formats."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

from mmaprobe.cli.main import main
from mmaprobe.queries.kernel.questions.problem import Problem
from mmaprobe.queries.kernel.questions.statements import Reordered, reorderings
from mmaprobe.queries.properties.forms import by_form
from mmaprobe.queries.search.distinguish import Options
from mmaprobe.queries.tactics.normalising import Normaliser, normal_form, rules_of
from mmaprobe.smtmodel.arithmetic.formats import Format
from mmaprobe.smtmodel.arithmetic.rounding import OVERFLOWS
from mmaprobe.smtmodel.evaluate.model import Model
from mmaprobe.smtmodel.nodes import (
    Constant,
    Cut,
    Each,
    Element,
    ExactSum,
    FusedSum,
    Index,
    Node,
    Product,
    Relu,
    Repeat,
    Round,
)
from mmaprobe.smtmodel.nodes.repeat import Running
from mmaprobe.smtmodel.nodes.round import TINY, ZEROS, Rounding
from mmaprobe.smtmodel.units.unit import Unit
from mmaprobe.smtmodel.units.unitfile import parse_unit
from tests.node_units import MODES
from tests.units.test_nodes import on_arrays

RULE = "exact sum in an exact sum"
PLAIN = Normaliser(Options("bitwuzla", None))
UNIT = """unit: {name}
formats: {{a: {factor}, b: {factor}, c: {addend}, d: {addend}}}
length: {length}
roundings: {{r: "round({addend}, {how})"}}
steps: {{{steps}}}
"""


def model(steps: str, length: int = 2, how: str = "nearest_even", formats: tuple[str, str] = ("e4m3", "bf16")) -> Model:
    steps = steps if ": " in steps else f'd: "{steps}"'
    text = UNIT.format(name="u", factor=formats[0], addend=formats[1], length=length, how=how, steps=steps)
    return Model(steps, parse_unit(text, "u.yaml"))


def proved(one: Model, other: Model) -> bool:
    """By the expressions alone, in which no engine is asked about the two units."""
    found = by_form(Problem(one, other), Options("bitwuzla", 20.0), confirm=False)
    return found is not None and found.verdict == "equal"


FLAT = "r(exact(a[0:4] * b[0:4], c))"
#: groupings of four products and c
GROUPED = [
    "r(exact(exact(a[0:4] * b[0:4]), c))",
    "r(exact(c, exact(exact(exact(a[0:4] * b[0:4])))))",
    "r(exact(exact(a[0:2] * b[0:2]), exact(a[2:4] * b[2:4]), c))",
    "r(exact(exact(a[2:4] * b[2:4], c), a[0:2] * b[0:2]))",
    "r(exact(a[3] * b[3], exact(a[2] * b[2], exact(a[1] * b[1], exact(a[0] * b[0], c)))))",
    "r(exact(exact(a[0] * b[0], a[1] * b[1]), exact(exact(a[2] * b[2], a[3] * b[3]), exact(c))))",
    "r(exact(exact(a[0:4:2] * b[0:4:2]), exact(a[1:4:2] * b[1:4:2], c)))",
    'low: "exact(a[0:3] * b[0:3])", high: "exact(a[3] * b[3], c)", d: "r(exact(high, low))"',
]


@pytest.mark.parametrize("how", ["nearest_even", "down", "up, zero=positive", "to_odd, subnormals=flush_before"])
def test_sums_in_any_groups_are_one(how: str) -> None:
    flat = model(FLAT, 4, how)
    for steps in GROUPED:
        assert proved(flat, model(steps, 4, how)), steps
        assert proved(model(steps, 4, how), model(GROUPED[2], 4, how)), steps


#: within other nodes: (nested, flat)
WITHIN = [
    ("repeat(k in range(0, 4), c, r(exact(exact(a[k] * b[k]), acc)))",
     "repeat(k in range(0, 4), c, r(exact(a[k] * b[k], acc)))"),
    ("repeat(k in range(0, 4, 2), +0, r(exact(exact(acc, a[k] * b[k]), exact(a[k+1] * b[k+1]))))",
     "repeat(k in range(0, 4, 2), +0, r(exact(acc, a[k:k+2] * b[k:k+2])))"),
    ("r(cut(exact(exact(a[0:4] * b[0:4]), c), 5, down))", "r(cut(exact(a[0:4] * b[0:4], c), 5, down))"),
    ("r(fused(exact(exact(a[0:2] * b[0:2]), a[2] * b[2]), a[3] * b[3], c, F=4))",
     "r(fused(exact(a[0:3] * b[0:3]), a[3] * b[3], c, F=4))"),
    ("r(exact(r(exact(exact(a[0:4] * b[0:4]), +0)), c))", "r(exact(r(exact(+0, a[0:4] * b[0:4])), c))"),
]  # fmt: skip


@pytest.mark.parametrize(("nested", "flat"), WITHIN)
def test_sums_within_other_nodes_are_one(nested: str, flat: str) -> None:
    assert proved(model(nested, 4), model(flat, 4))


def test_a_zero_in_an_inner_sum_is_left_out() -> None:
    """Where the rounding does not keep the sign of a zero: rules about a sum's terms see those of the sums within."""
    for how, alike in (("nearest_even, zero=exact_positive", True), ("nearest_even", False)):
        assert proved(model("r(exact(exact(a[0] * b[0], +0), c))", how=how),
                      model("r(exact(a[0] * b[0], c))", how=how)) is alike  # fmt: skip


#: what is no exact sum in an exact sum, or has other terms; (one, another, whether they are the same after all)
NEIGHBOURS = [
    ("r(exact(fused(a[0:2] * b[0:2], F=3), c))", "r(exact(a[0:2] * b[0:2], c))"),
    ("r(fused(fused(a[0:2] * b[0:2], F=3), c, F=3))", "r(fused(a[0:2] * b[0:2], c, F=3))"),
    ("r(fused(exact(a[0:2] * b[0:2]), c, F=3))", "r(fused(a[0:2] * b[0:2], c, F=3))"),
    ("r(exact(r(exact(a[0:2] * b[0:2])), c))", "r(exact(a[0:2] * b[0:2], c))"),
    ("r(exact(cut(exact(a[0:2] * b[0:2]), 3), c))", "r(exact(a[0:2] * b[0:2], c))"),
    ("r(exact(exact(a[0] * b[0], c), c))", "r(exact(a[0] * b[0], c))"),
    ("r(exact(exact(a[0] * b[0], c), a[0] * b[0]))", "r(exact(exact(a[1] * b[1], c), a[0] * b[0]))"),
    ("r(exact(exact(a[0] * b[0], -0), c))", "r(exact(exact(a[0] * b[0], +0), c))"),
]


@pytest.mark.parametrize(("one", "other"), NEIGHBOURS)
def test_what_only_looks_alike_is_not_one(one: str, other: str) -> None:
    left, right = model(one), model(other)
    assert not proved(left, right)
    proof = PLAIN.proof(left.unit)
    assert RULE not in rules_of([proof] if proof else []) or one.startswith("r(exact(exact(")


# -- every input of small formats

SMALL = {
    "with infinities and NaNs": Format("q", 2, 1, 1, "ieee"),
    "finite": Format("p", 2, 1, 1, "none"),
    "one zero, one NaN": Format("z", 2, 1, 1, "negative_zero"),
}


@cache
def inputs(fmt: Format) -> tuple[Any, ...]:
    """All of a, b and c."""
    every = itertools.product(range(1 << fmt.width), repeat=3)
    a, b, c = (np.array(column, np.uint64) for column in zip(*every, strict=True))
    return np.stack([a, b], axis=1), np.stack([b, a], axis=1), c


X, Y, Z = Product(Element("a", Index(0)), Element("b", Index(0))), Element("b", Index(0)), Element("c")
MINUS = Constant(negative=True)


def sums() -> list[Node]:
    """Nested sums whose terms are numbers, products, zeros, sums that are not exact, and ranges of terms."""
    fused, cut = FusedSum((X, Y), 1), Cut(ExactSum((X, Y)), 2)
    each = Each(1, range(2), ExactSum((Element("a", Index(0, ((1, 1),))), Element("b", Index(0, ((1, 1),))))))
    return [
        ExactSum((ExactSum((X, Y)), Z)),
        ExactSum((Z, ExactSum((ExactSum((Y,)), X)))),
        ExactSum((ExactSum((X, Z)),)),
        ExactSum((ExactSum((ExactSum((Z,)),)),)),
        ExactSum((ExactSum((Z, MINUS)), MINUS)),
        ExactSum((ExactSum((Z, Z)), ExactSum((Y, Y)))),
        ExactSum((ExactSum((fused, Z)), cut)),
        ExactSum((ExactSum((cut,)), MINUS)),
        ExactSum((Relu(ExactSum((X, Y))), ExactSum((Z,)))),
        ExactSum((each, Z)),
        ExactSum((each,)),
    ]


def roundings(fmt: Format) -> list[Rounding]:
    """Every mode with every rule for the signs of zeros, each with one of the rules for overflow and tiny results."""
    others = itertools.cycle(itertools.product(OVERFLOWS, TINY))
    nan = fmt.nan if fmt.has_nan else None
    return [Rounding(fmt, mode, *next(others), zero, nan) for mode, zero in itertools.product(MODES, ZEROS)]


AROUND: list[Callable[[Node], Node]] = [lambda x: FusedSum((x, Y), 1), lambda x: Cut(x, 2, "up")]


@pytest.mark.all_inputs
@pytest.mark.parametrize("name", SMALL)
@pytest.mark.parametrize("number", range(len(sums())))
def test_the_sum_of_all_terms_is_the_same_on_every_input(name: str, number: int) -> None:
    """In every mode, with every rule for the signs of zeros; rounded, cut, and as a term of an aligned sum."""
    fmt, total = SMALL[name], sums()[number]
    assert isinstance(total, ExactSum)
    flat = total.flat
    assert flat != total
    assert not any(isinstance(item, ExactSum) for item in flat.items)
    wide = Format("w", 3, 2, 3, fmt.specials)
    for place, how in enumerate(roundings(wide)):
        units = [
            Unit(fmt, fmt, fmt, 2, Round(around(node), how))
            for around in (lambda x: x, AROUND[place % len(AROUND)])
            for node in (total, flat)
        ]
        one, other, one_inside, other_inside = (on_arrays(unit, inputs(fmt)) for unit in units)
        assert one == other, how
        assert one_inside == other_inside, how


def test_the_rule_is_applied_wherever_an_exact_sum_stands_in_one() -> None:
    for total in sums():
        unit = Unit(*[SMALL["finite"]] * 3, 2, Round(total, Rounding(SMALL["finite"])))
        found = PLAIN.proof(unit)
        assert RULE in rules_of([found] if found else [])
        form = normal_form(unit, found)
        assert not any(isinstance(part, ExactSum) and part.flat != part for part in _within(form))


def _within(node: Node) -> list[Node]:
    return [node, *(part for operand in node.operands for part in _within(operand))]


def test_loops_and_their_results_stay_what_they_are() -> None:
    """The result so far is one term, whatever sum it was."""
    step = Round(ExactSum((ExactSum((Running(1), Y)), Z)), Rounding(SMALL["finite"]))
    assert step.term.flat.items == (Running(1), Y, Z)  # type: ignore[attr-defined]
    loop = Repeat(1, range(3), Constant(), step)
    assert ExactSum((loop, Z)).flat.items == (loop, Z)


# -- the command, and its certificate


def written(folder: Path, name: str, found: Model) -> str:
    text = UNIT.format(name=name, factor="e4m3", addend="bf16", length=found.unit.length, how="nearest_even",
                       steps=f'd: "{found.reference}"' if "\"" not in found.reference else found.reference)  # fmt: skip
    (folder / f"{name}.yaml").write_text(text)
    return str(folder / f"{name}.yaml")


@pytest.mark.parametrize("steps", [GROUPED[0], GROUPED[4], GROUPED[7]])
def test_the_proof_is_by_rewriting_and_its_certificate_is_checked(steps: str, tmp_path: Path) -> None:
    files = [written(tmp_path, name, model(text, 4)) for name, text in (("one", FLAT), ("other", steps))]
    done = CliRunner().invoke(main, ["prove", *files, "--certificate", str(tmp_path / "proof")])
    assert done.exit_code == 0, done.output
    assert "of an exact sum in any groups" in done.output
    checked = CliRunner().invoke(main, ["check", str(tmp_path / "proof")])
    assert checked.exit_code == 0, checked.output


def test_products_of_nested_sums_stand_in_any_order() -> None:
    for steps in GROUPED[4:]:
        for problem in reorderings(model(steps, 4)):
            found = by_form(problem, Options("bitwuzla", 20.0), confirm=False)
            assert found is not None, steps


def test_products_of_an_aligned_inner_sum_do_not() -> None:
    two = model("r(exact(fused(a[0:2] * b[0:2], F=3), fused(a[2] * b[2], c, F=3)))", 3)
    for order, alike in (((1, 0, 2), True), ((2, 1, 0), False)):
        found = by_form(Reordered(two, two, order=order), Options("bitwuzla", 20.0), confirm=False)
        assert (found is not None) is alike
