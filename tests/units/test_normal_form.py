"""The two rules of the normal form that are not about loops alone, proved: a number rounded again, terms reordered."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import permutations
from typing import Any

import pytest

from mmaprobe.queries.candidates.classes import partition
from mmaprobe.queries.kernel import closed
from mmaprobe.queries.kernel.lemmas import Lemma, exhausted
from mmaprobe.queries.search.distinguish import Options
from mmaprobe.queries.tactics.normalising import Normaliser
from mmaprobe.smtmodel.arithmetic.decode import unpack
from mmaprobe.smtmodel.arithmetic.formats import FORMATS, Format
from mmaprobe.smtmodel.carriers.algebra import Bit, Bits, truth
from mmaprobe.smtmodel.evaluate.model import Model
from mmaprobe.smtmodel.nodes import Element, ExactSum, FusedSum, Index, Node, Product, Round
from mmaprobe.smtmodel.nodes.node import Context
from mmaprobe.smtmodel.nodes.normal import normal
from mmaprobe.smtmodel.nodes.round import TINY, ZEROS, Rounding
from mmaprobe.smtmodel.units.unit import Unit

pytestmark = pytest.mark.solvers

SOLVER = Options("bitwuzla", 60.0)
C = Element("c")


@dataclass(frozen=True)
class RoundedAgain:
    """Every pattern that one rounding can give is kept by another one of the same format."""

    inner: Rounding
    outer: Rounding

    @property
    def format(self) -> Format:
        return self.inner.format

    def statement(self) -> str:
        return f"a result of {self.inner} is kept by {self.outer}"

    def inputs(self, symbol: Callable[[str, int], Bits]) -> tuple[Bits, ...]:
        return (symbol("pattern", self.format.width),)

    def claim(self, given: tuple[Bits, ...]) -> Bit:
        (pattern,), fmt = given, self.format
        found = unpack(pattern, fmt)
        context = Context({"c": (pattern,)}, {"c": fmt}, {})
        again = context.value(Round(C, self.outer)).pattern
        assert again is not None
        unlike = truth(pattern.carrier, False)
        if self.inner.subnormals != "keep":
            unlike = unlike | ~(found.is_zero | found.term.significand.msb())
        if self.inner.zero == "positive":
            unlike = unlike | (found.is_zero & found.sign)
        if fmt.padding:
            unlike = unlike | pattern.truncate(fmt.padding).any()
        named = truth(pattern.carrier, True) if self.outer.nan is None else again.equals(self.outer.nan)
        number = ~unpack(again, fmt).is_nan & again.eq(pattern)
        return unlike | (found.is_nan & unpack(again, fmt).is_nan & named) | (~found.is_nan & number)


@pytest.fixture(autouse=True)
def _own_lemma(monkeypatch: pytest.MonkeyPatch) -> None:
    """A lemma that no rule of the kernel needs is settled like those that do."""
    monkeypatch.setattr(closed, "is_lemma", lambda kind: True)
    monkeypatch.setattr(closed, "PACKAGES", (*closed.PACKAGES, "tests."))


def is_kept(inner: Rounding, outer: Rounding) -> bool:
    """Whether the normal form rounds once."""
    return normal(Round(Round(C, inner), outer)) == Round(C, inner)


def roundings(fmt: Format) -> list[Rounding]:
    tiny: Any = TINY
    return [Rounding(fmt, mode, "infinity", how, zero) for mode in ("nearest_even", "down", "to_odd")
            for how in tiny for zero in ZEROS]  # fmt: skip


def holds(goal: Lemma) -> bool:
    return Normaliser(SOLVER).settle(goal) is not None


@pytest.mark.parametrize("name", ["f16", "bf16", "e4m3", "e5m2", "e4m3fnuz", "e2m3"])
def test_a_result_rounded_again_is_itself_on_all_patterns(name: str) -> None:
    every = roundings(FORMATS[name])
    pairs = [(inner, outer) for inner in every[:9] for outer in every if is_kept(inner, outer)]
    assert len(pairs) > 9
    for inner, outer in pairs[::3]:
        exhausted(RoundedAgain(inner, outer))


@pytest.mark.parametrize("name", ["f32", "f64", "e8m13", "tf32"])
def test_a_result_rounded_again_is_itself_by_a_solver(name: str) -> None:
    every = roundings(FORMATS[name])
    plain = every[0]
    for outer in every:
        for inner in (plain, replace(plain, subnormals=outer.subnormals, zero=outer.zero)):
            assert not is_kept(inner, outer) or holds(RoundedAgain(inner, outer)), (inner, outer)
    for wrong in (replace(plain, subnormals="flush_after"), replace(plain, zero="positive")):
        assert not is_kept(plain, wrong)
        assert not holds(RoundedAgain(plain, wrong))
    named = replace(plain, nan=FORMATS[name].nan)
    assert is_kept(named, named)
    assert holds(RoundedAgain(named, named))


def products(count: int) -> list[Node]:
    return [Product(Element("a", Index(k)), Element("b", Index(k))) for k in range(count)]


@pytest.mark.parametrize(
    "total",
    [
        lambda items: ExactSum(items),
        lambda items: FusedSum(items, 13),
        lambda items: FusedSum(items, 9, "nearest_even", zeros=-12),
        lambda items: FusedSum(items, 9, "down", least=-9),
        lambda items: FusedSum(items, 6, carry_bits=1),
        lambda items: FusedSum(items, 6, sticky=True),
    ],
)
def test_terms_of_a_sum_stand_in_any_order(total: Callable[[tuple[Node, ...]], Node]) -> None:
    """One normal form, and proved equal without it."""
    for count in (1, 2):
        orders = [total(items) for items in permutations([*products(count), C])]
        assert len({normal(node) for node in orders}) == 1
        how = Rounding(FORMATS["f16"], zero="exact_positive")
        units = [Unit(FORMATS["e4m3"], FORMATS["e4m3"], FORMATS["f16"], 2, Round(node, how)) for node in orders]
        models = [Model(f"order {place}", unit) for place, unit in enumerate(units)]
        found = partition(models, SOLVER)
        assert [len(members) for members in found.classes] == [len(orders)]


def test_terms_with_parameters_of_their_own_do_not() -> None:
    one, other = products(2)
    for named in ({"floors": (None, -3)}, {"reach": (4, None)}, {}):
        bits: Any = (8, 9) if not named else 8
        assert normal(FusedSum((one, other), bits, **named)) != normal(FusedSum((other, one), bits, **named))  # type: ignore[arg-type]
