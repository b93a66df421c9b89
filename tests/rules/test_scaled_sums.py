"""Scaled exact sums in exact sums: every term scaled instead, by a rule, on all inputs of small formats."""

from __future__ import annotations

import itertools
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

from mmaprobe.cli.main import main
from mmaprobe.queries.kernel.datapath.ranges import Scope
from mmaprobe.queries.kernel.equality.rewriting import scaled_sum
from mmaprobe.smtmodel.arithmetic.formats import FORMATS, Format
from mmaprobe.smtmodel.nodes import Constant, Cut, Each, Element, ExactSum, FusedSum, Index, Node, Product, Round, Scale
from mmaprobe.smtmodel.nodes.node import walk
from mmaprobe.smtmodel.nodes.round import ZEROS, Rounding
from mmaprobe.smtmodel.units.unit import Unit
from tests.node_units import MODES
from tests.units.test_nodes import on_arrays

SMALL = Format("q", 2, 1, 1, "ieee")
WIDE = Format("w", 4, 2, 7, "ieee")
#: formats of factors that the rule speaks of, and of those that it does not; (specials, signed)
POSITIVE = {"NaN": ("all_ones", False), "numbers": ("none", False)}
OTHERS = {"infinite": ("ieee", False), "negative": ("all_ones", True)}
P, Q = Element("scale_a", Index(0)), Element("scale_b", Index(0))
X, Y, C = Element("a", Index(0)), Element("b", Index(0)), Element("c")
PLACED = Product(Element("a", Index(0, ((1, 1),))), Element("b", Index(0, ((1, 1),))))
SUMS = [
    ExactSum((Scale(ExactSum((X, Y)), P, Q), C)),
    ExactSum((Scale(ExactSum((Product(X, Y), C)), P, Q), Constant(negative=True))),
    ExactSum((C, Scale(ExactSum((X,)), P, Q), Scale(ExactSum((Y, X, C)), Q, P))),
    ExactSum((Scale(ExactSum((FusedSum((X, Y), 1), Cut(ExactSum((X, C)), 2))), P, Q), Y)),
    ExactSum((Scale(ExactSum((Each(1, range(2), PLACED), C)), P, Q), X)),
    ExactSum((Each(1, range(2), Scale(ExactSum((PLACED, C)), P, Q)),)),
    ExactSum((Scale(ExactSum((X, C)), P, Q),)),
    ExactSum((Scale(ExactSum((X,)), P, Q),)),
]


def factor(specials: str, signed: bool) -> Format:
    return Format("s", 2, 1, 1, specials, signed)  # type: ignore[arg-type]


def unit_of(total: Node, scale: Format, how: Rounding) -> Unit:
    return Unit(SMALL, SMALL, SMALL, 2, Round(total, how), scale, 2)


@cache
def inputs(scale: Format) -> tuple[Any, ...]:
    """All of a, b, c and the first factor, with three patterns of the second one."""
    numbers, every = range(1 << SMALL.width), range(1 << scale.width)
    table = itertools.product(numbers, numbers, numbers, every, [0, 2, every[-1]])
    a, b, c, p, q = (np.array(column, np.uint64) for column in zip(*table, strict=True))
    return np.stack([a, b], axis=1), np.stack([b, a], axis=1), c, p[:, None], q[:, None]


def differing(total: Node, other: Node, scale: Format, how: Rounding) -> int:
    one, two = (on_arrays(unit_of(node, scale, how), inputs(scale)) for node in (total, other))
    return sum(x != y for x, y in zip(one, two, strict=True))


def with_scaled_terms(total: ExactSum) -> ExactSum:
    scope = Scope.of(unit_of(total, factor("none", False), Rounding(WIDE)))
    found = scaled_sum(scope, total)
    assert found is not None
    assert found.counting
    assert found.signs
    assert isinstance(found.other, ExactSum)
    return found.other


@pytest.mark.all_inputs
@pytest.mark.parametrize("name", POSITIVE)
@pytest.mark.parametrize("number", range(len(SUMS)))
def test_the_sum_of_scaled_terms_is_the_same_on_every_input(name: str, number: int) -> None:
    """With one rule for the signs of zeros in each mode, rounded, and as a term of an aligned sum."""
    scale, total = factor(*POSITIVE[name]), SUMS[number]
    other = with_scaled_terms(total)
    assert not any(isinstance(part, Scale) and isinstance(part.term, ExactSum) for part in walk(other))
    for place, mode in enumerate(MODES):
        how = Rounding(WIDE, mode, zero=ZEROS[(place + number) % len(ZEROS)])
        assert not differing(total, other, scale, how)
    how = Rounding(WIDE, "down")
    assert not differing(FusedSum((total, X), 1), FusedSum((other, X), 1), scale, how)


@pytest.mark.all_inputs
@pytest.mark.parametrize("name", POSITIVE)
@pytest.mark.parametrize("terms", [(X, C), (X,), (Product(X, Y), C, Y)], ids=len)
def test_the_rounding_of_a_scaled_sum_is_that_of_the_sum_of_scaled_terms(name: str, terms: tuple[Node, ...]) -> None:
    scale, scaled = factor(*POSITIVE[name]), Scale(ExactSum(terms), P, Q)
    scope = Scope.of(unit_of(scaled, scale, Rounding(WIDE)))
    for place, mode in enumerate(MODES):
        how = Rounding(WIDE, mode, zero=ZEROS[(place + len(terms)) % len(ZEROS)])
        found = scaled_sum(scope, Round(scaled, how))
        assert found is not None
        assert found.other == Round(ExactSum(tuple(Scale(term, P, Q) for term in terms)), how)
        assert not differing(scaled, found.other.term, scale, how)


@pytest.mark.parametrize("name", OTHERS)
def test_of_other_factors_it_says_nothing(name: str) -> None:
    """An infinite one makes a NaN of terms of both signs, but not of their sum; of negative ones nothing was shown."""
    scale, total = factor(*OTHERS[name]), SUMS[0]
    how = Rounding(WIDE)
    assert scaled_sum(Scope.of(unit_of(total, scale, how)), total) is None
    if name == "infinite":
        assert differing(total, with_scaled_terms(total), scale, how)


def test_what_is_not_exact_is_left_as_it_is() -> None:
    scope = Scope.of(unit_of(SUMS[0], factor("none", False), Rounding(WIDE)))
    for total in (
        ExactSum((Scale(FusedSum((X, Y), 1), P, Q), C)),
        ExactSum((Scale(Cut(ExactSum((X, Y)), 2), P, Q), C)),
        FusedSum((Scale(ExactSum((X, Y)), P, Q), C), 1),
        ExactSum((Scale(ExactSum((Each(1, range(2), PLACED), C)), P, Element("scale_b", Index(0, ((1, 1),)))),)),
    ):
        assert scaled_sum(scope, total) is None


UNIT = """unit: {name}
formats: {{a: e4m3, b: e4m3, c: f32, d: f32, scale: {scale}}}
length: 2
scale_block: 2
roundings: {{r: "round(f32, nearest_even)"}}
steps: {{d: "r({sum})"}}
"""
PRODUCTS = "scale(exact(a[0:2] * b[0:2]), scale_a[0], scale_b[0])"
INSIDE = "exact(scale(exact(a[0:2] * b[0:2]), scale_a[0], scale_b[0]), c)"
EACH_TERM = "exact(scale(a[0] * b[0], scale_a[0], scale_b[0]), c, scale(a[1] * b[1], scale_a[0], scale_b[0]))"


@pytest.mark.parametrize(
    ("total", "terms"), [(INSIDE, EACH_TERM), (PRODUCTS, EACH_TERM.replace(" c,", ""))], ids=["added", "alone"]
)
def test_units_that_scale_are_proved_equal_by_rewriting(total: str, terms: str, tmp_path: Path) -> None:
    """And the certificate is checked."""
    files = []
    for name, text in (("sum", total), ("terms", terms)):
        (tmp_path / f"{name}.yaml").write_text(UNIT.format(name=name, scale="ue8m0", sum=text))
        files.append(str(tmp_path / f"{name}.yaml"))
    done = CliRunner().invoke(main, ["prove", *files, "--timeout", "20", "--certificate", str(tmp_path / "proof")])
    assert done.exit_code == 0, done.output
    checked = CliRunner().invoke(main, ["check", str(tmp_path / "proof")])
    assert checked.exit_code == 0, checked.output


def test_factors_of_the_table_are_positive() -> None:
    for name in ("ue8m0", "ue4m3"):
        fmt = FORMATS[name]
        assert not fmt.signed
        assert not fmt.has_infinity
