"""Instances of the rules about results of units: bounds in units of an alignment, signs, order."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

from benchmarks.rules.campaign import Campaign
from benchmarks.rules.enclosures import Deriving
from benchmarks.rules.lemmas import Truths, some_lemma
from benchmarks.rules.units import ADDENDS, FACTORS, RESULTS, WIDE, Small, small_unit
from mmaprobe.queries.kernel.bounds.enclosures import alignments
from mmaprobe.queries.kernel.bounds.table9 import terms_of_sum
from mmaprobe.queries.kernel.datapath.rounding_losses import TruncationKeeps
from mmaprobe.queries.kernel.errors import RuleError
from mmaprobe.queries.kernel.lemmas import AlignmentLoses
from mmaprobe.queries.kernel.properties.opposite import RoundsOpposite, lemmas_of
from mmaprobe.queries.kernel.properties.rises import needed
from mmaprobe.queries.kernel.theorem import Theorem
from mmaprobe.smtmodel.arithmetic.formats import format_named
from mmaprobe.smtmodel.base.errors import ParameterError
from mmaprobe.smtmodel.nodes import Each, Element, FusedSum, Index, Node, Product, Round
from mmaprobe.smtmodel.nodes.round import Rounding
from mmaprobe.smtmodel.units.unit import Unit

# -- bounds in units of an alignment


def truncating(rng: random.Random) -> Unit:
    """A sum of all products and c, truncated and rounded once: mostly as `summed` wants it."""
    choose: Any = rng.choice
    some = ("e1m1_none", "e1m1b2_none", "e2m1b3_none", "e2m1", "e1m2_none")
    while True:
        a, b = (format_named(rng.choice(some)) for _ in range(2))
        c = format_named(rng.choice((*some, "e3m1_none", "e4m1_none", "e3m2")))
        d = format_named(rng.choice(("e4m1_none", "e4m1_none", "e4m3_ieee", "e3m3_ieee", "e4m1_ieee", "e3m2")))
        length = rng.choice((1, 2, 2))
        usual = [Product(Element("a", Index(k)), Element("b", Index(k))) for k in range(length)]
        terms: list[Node] = [Element("c"), *usual]
        if rng.random() < 0.2:
            own = Index(0, ((0, 1),))
            terms = [Each(0, range(length), Product(Element("a", own), Element("b", own))), Element("c")]
        maker = Small(rng, length, {"a": a, "b": b, "c": c}, None)
        kind = rng.random()
        if kind < 0.1:
            terms[rng.randrange(len(terms))] = maker.product(0)
        elif kind < 0.15:
            terms.append(rng.choice(terms))
        elif kind < 0.2:
            terms.pop()
        rng.shuffle(terms)
        low = rng.randint(-5, 3) if rng.random() < 0.2 else None
        own_fields: dict[str, Any] = {"zeros": low} if rng.random() < 0.5 else {"least": low}
        if rng.random() < 0.1:
            own_fields = rng.choice(({"sticky": True}, {"carry_bits": 1}, {"reach": (3,) * len(terms)}))
        mode: Any = "toward_zero" if rng.random() < 0.9 else choose(("down", "nearest_even"))
        try:
            bits: Any = rng.randint(0, 6) if rng.random() < 0.95 else tuple(rng.randint(1, 4) for _ in terms)
            total = FusedSum(tuple(terms), bits, mode, **own_fields)
            how = Rounding(d, "toward_zero") if rng.random() < 0.85 else maker.rounding(d)
            return Unit(a, b, c, length, Round(total, how))
        except ParameterError:
            continue


def in_units(campaign: Campaign, truths: Truths, rng: random.Random) -> None:
    """The bounds of one truncating sum; at times from premises about another."""
    unit = truncating(rng) if rng.random() < 0.93 else small_unit(rng, (1, 2))
    own = Deriving(campaign, truths, unit, rng, chain=rng.random() < 0.05)
    total = unit.result.term if isinstance(unit.result, Round) else None
    terms = terms_of_sum(total) if isinstance(total, FusedSum) else [(unit.result, ())]
    premises = [theorem for term in terms if (theorem := own.node(*term)) is not None]
    if rng.random() < 0.05:
        premises = premises[1:]
    lemmas: list[AlignmentLoses] = []
    if isinstance(total, FusedSum):
        try:
            lemmas = alignments(total, (), premises)
        except RuleError:
            lemmas = []
    found = campaign.call("summed", unit, premises, own.proved(lemmas))
    if found is None:
        return
    fmt = unit.d if rng.random() < 0.95 else unit.a
    lemma = truths.theorem(TruncationKeeps(fmt))
    bound = None if lemma is None else campaign.call("truncated", found, lemma)
    campaign.call("loosened", found, 3, False)
    if bound is not None:
        campaign.call("truncated", bound, lemma)
        units: int = bound.goal.units  # type: ignore[attr-defined]
        for _ in range(3):
            other = campaign.call("loosened", bound, units + rng.randint(-1, 2), rng.random() < 0.5)
            bound = bound if other is None else other


# -- signs


def turned(campaign: Campaign, truths: Truths, unit: Unit) -> Theorem | None:
    """That a unit's result is negated if its operands are, with the lemmas of roundings that are true."""
    try:
        lemmas = lemmas_of(unit)
    except RuleError:
        return campaign.call("turned", unit, ())
    return campaign.call("turned", unit, [one for lemma in lemmas if (one := truths.theorem(lemma)) is not None])


def signs(campaign: Campaign, truths: Truths, rng: random.Random) -> None:
    """The result of a unit, mostly of one that is symmetric; then another lemma."""
    unit = even_unit(rng) if rng.random() < 0.7 else small_unit(rng)
    turned(campaign, truths, unit)
    other = truths.theorem(some_lemma(RoundsOpposite, rng))
    if other is not None:
        campaign.call("turned", unit, [other])


def even_unit(rng: random.Random) -> Unit:
    """A unit that rounds both signs alike, mostly."""

    class Even(Small):
        def rounding(self, fmt: Any = None) -> Rounding:
            how, choose = super().rounding(fmt), self.rng.choice
            mode: Any = choose(("nearest_even", "nearest_away", "toward_zero", "to_odd"))
            return replace(how, mode=mode, nan=None) if self.rng.random() < 0.85 else how

        def fused(self, items: tuple[Node, ...]) -> Node:
            node = super().fused(items)
            assert isinstance(node, FusedSum)
            return replace(node, rounding="toward_zero", sticky=False, carry_bits=None) \
                if self.rng.random() < 0.8 else node  # fmt: skip

    while True:
        a, b, c = (format_named(rng.choice(names)) for names in (FACTORS, FACTORS, ADDENDS))
        if rng.random() < 0.1:
            a = format_named("ue1m1_none")
        scale = format_named("ue1m1_none") if rng.random() < 0.2 else None
        length = rng.choice((1, 2, 2))
        maker = Even(rng, length, {"a": a, "b": b, "c": c}, scale, gates=0.2)
        try:
            top = maker.repeat(2) if rng.random() < 0.4 else maker.round(2)
            return Unit(a, b, c, length, top, scale, length if scale else 0)
        except ParameterError:
            continue


# -- order


def rising_unit(rng: random.Random) -> Unit:
    """A unit near those whose results rise with a product or the addend."""
    choose: Any = rng.choice
    while True:
        a, b = (format_named(rng.choice(("e1m1_none", "e1m1_none", "e2m1", "e1m2_none", "binary3p2se"))) for _ in "ab")
        c = format_named(rng.choice((*ADDENDS, *RESULTS)))
        scale = format_named("ue1m1_none") if rng.random() < 0.1 else None
        length = rng.choice((1, 1, 2))
        maker = Small(rng, length, {"a": a, "b": b, "c": c}, scale)
        items: list[Node] = [Element("c")]
        for k in range(length):
            factors: list[Node] = [Element("a", Index(k)), Element("b", Index(k))]
            if rng.random() < 0.1:
                factors = [maker.converted(factor) for factor in factors]
            term: Node = Product(factors[0], factors[1], rng.random() < 0.05)
            items.append(maker.scaled(term) if scale and rng.random() < 0.8 else term)
        try:
            if rng.random() < 0.1:
                items.append(maker.term(1))
            rng.shuffle(items)
            total: Node
            if rng.random() < 0.75:
                each: dict[str, Any] = {}
                if rng.random() < 0.25:
                    each = choose(({"least": rng.randint(-3, 3)}, {"zeros": rng.randint(-3, 3)},
                                   {"reach": tuple(rng.choice((None, rng.randint(0, 6))) for _ in items)},
                                   {"floors": tuple(rng.choice((None, rng.randint(-3, 3))) for _ in items)},
                                   {"sticky": True}, {"carry_bits": 1}))  # fmt: skip
                bits = tuple(rng.randint(0, 6) for _ in items) if rng.random() < 0.2 else rng.randint(0, 6)
                mode = "toward_zero" if each.get("sticky") else choose(("toward_zero", "toward_zero", "nearest_even",
                                                                        "down", "up", "to_odd"))  # fmt: skip
                total = FusedSum(tuple(items), bits, mode, **each)
            else:
                total = maker.sum_of(tuple(items))
            if rng.random() < 0.2:
                more = rng.random() < 0.5
                total = maker.sum_of((total, maker.product(0))) if more else Round(total, maker.rounding())
            result: Node = Round(total, maker.rounding(rng.choice((None, format_named(rng.choice(WIDE))))))
            if rng.random() < 0.15:
                result = maker.repeat(1)
            return Unit(a, b, c, length, result, scale, length if scale else 0)
        except ParameterError:
            continue


def order(campaign: Campaign, truths: Truths, rng: random.Random) -> None:
    """The results of a unit, where the rule says that they do not fall."""
    unit = rising_unit(rng) if rng.random() < 0.85 else small_unit(rng, (1, 2))
    for raised in (None, 0, unit.length - 1):
        for normal in (False, True):
            try:
                lemmas = needed(unit, raised, normal)
            except (RuleError, ParameterError):
                campaign.call("rises", unit, raised, normal, ())
                continue
            proved = [theorem for lemma in lemmas if (theorem := truths.theorem(lemma)) is not None]
            if rng.random() < 0.05:
                proved = proved[1:]
            campaign.call("rises", unit, raised, normal, proved)
