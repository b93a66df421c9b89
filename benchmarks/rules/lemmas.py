"""The truth of lemmas about the datapath, over all their values: from the docstring of each, in binary64.

What a lemma says of an alignment or of a rounding is computed here from numbers, not from bits; its claim, as the
kernel evaluates it, calls the code of the datapath.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from benchmarks.rules.campaign import Campaign
from benchmarks.rules.meanings import is_whole
from benchmarks.rules.numbers import (
    INFINITE,
    NOT_A_NUMBER,
    ROUND,
    Flags,
    Lanes,
    Value,
    Whole,
    log2,
    rounded,
    units,
    zeros,
)
from benchmarks.rules.units import RESULTS, WIDE
from mmaprobe.queries.kernel.datapath.effects import (
    BoundKeeps,
    FormatHolds,
    NeverReaches,
    Normalises,
    RoundsAlike,
    RoundsTwice,
)
from mmaprobe.queries.kernel.datapath.ranges import Range
from mmaprobe.queries.kernel.datapath.rounding_losses import RoundingLoses, TruncationKeeps
from mmaprobe.queries.kernel.datapath.rounding_rises import RoundingRises, RoundingScales
from mmaprobe.queries.kernel.errors import RuleError
from mmaprobe.queries.kernel.lemmas import AlignmentLoses, Lemma
from mmaprobe.queries.kernel.properties.opposite import RoundsOpposite
from mmaprobe.queries.kernel.theorem import RULES, Theorem
from mmaprobe.smtmodel.arithmetic.formats import Format, format_named
from mmaprobe.smtmodel.arithmetic.rounding import NEAREST, OVERFLOWS, Mode, Target
from mmaprobe.smtmodel.nodes.round import Rounding
from tests.node_units import MODES
from tests.said import believed

SPARE = 3  # bits of a magnitude below those of a format: of those that follow, rounding sees only whether one is set
FEW = 15  # bits of a lemma that is evaluated by the kernel itself before a rule is given it


def numbers_of(one: Range) -> tuple[Lanes, Whole]:
    """The nonzero numbers of a range, of both signs, and their exponents."""
    size, e = (side.ravel() for side in np.meshgrid(np.arange(1, 1 << one.width), np.arange(one.low, one.high + 1)))
    exact = np.ldexp(size.astype(float), e - one.fraction)
    counts = is_whole(np.ldexp(exact, -one.unit))
    if one.leading:
        counts = counts & ((size >> (one.width - 1) != 0) | (e == one.low))
    exact, e = exact[counts], e[counts]
    return np.concatenate([exact, -exact]), np.concatenate([e, e])


def magnitudes(fmt: Format, low: int, high: int, most: int | None = None, spare: int = SPARE) -> tuple[Lanes, Flags]:
    """Numbers of both signs, with zeros, of all significands at all places; and which are negative."""
    digits = np.arange((1 << fmt.fraction + 1 + spare) if most is None else most + 1).astype(float)
    size = np.unique(np.ldexp(digits[:, None], np.arange(low, high + 1)[None, :]))
    return np.concatenate([size, -size]), np.repeat([False, True], len(size))


def signed(exact: Lanes, negative: Flags) -> Value:
    """Single numbers, with the signs of zeros."""
    found = zeros(len(exact), False)
    return Value(found.kind, exact, found.exponent, exact == 0, negative, negative, found.single, found.fault)


def target_value(exact: Lanes, negative: Flags, target: Target) -> Value:
    """Numbers rounded for a target."""
    how = Rounding(target.format, target.rounding, target.overflow, "flush_after" if target.flush else "keep",
                   "positive" if target.positive_zero else "ieee")  # fmt: skip
    return rounded(signed(exact, negative), how)


def grid(fmt: Format) -> int:
    """The exponent of the smallest numbers of a format."""
    return fmt.unit


def in_bounds(lost: Lanes, exact: Lanes, kept: Lanes, unit: Lanes, mode: Mode) -> bool:
    """Whether a rounding loses at most a unit, half of one to nearest, and in its direction."""
    size = np.abs(lost) <= unit / 2 if mode in NEAREST else np.abs(lost) <= unit
    way = {"down": kept <= exact, "up": kept >= exact, "toward_zero": np.abs(kept) <= np.abs(exact)}
    return bool((size & way.get(mode, True)).all())


def alignment_loses(own: AlignmentLoses) -> bool:
    size = np.arange(1 << own.width).astype(float)
    exact = np.ldexp(np.concatenate([size, -size]), -own.fraction)
    for m in range(own.width + own.bits + 4):
        kept = units(exact, m - own.bits, own.mode)
        lost = np.abs(exact - kept)
        if not in_bounds(lost, exact, kept, np.ldexp(np.ones(len(exact)), m - own.bits), own.mode):
            return False
        if (lost >= 2.0 ** (m - own.bits)).any() or (m == 0 and own.fraction <= own.bits and lost.any()):
            return False
    return True


def in_format(exact: Lanes, fmt: Format, mode: Mode) -> tuple[Lanes, Lanes, Flags]:
    """Rounded to the precision and the least exponent of a format, the unit there, and where it is below the largest
    number."""
    e = np.maximum(np.where(exact != 0, log2(np.where(exact != 0, exact, 1.0)), fmt.emin), fmt.emin)
    kept = np.ldexp(ROUND[mode](np.ldexp(exact, fmt.fraction - e)), e - fmt.fraction)
    top, significand = fmt.largest_number
    return kept, np.ldexp(1.0, e - fmt.fraction), np.abs(kept) < float(significand) * 2.0**top


def rounding_loses(own: RoundingLoses) -> bool:
    exact, _ = magnitudes(own.format, grid(own.format) - 2, own.format.emax + 2)
    kept, _, below = in_format(exact, own.format, own.mode)
    f, emin = own.format.fraction, own.format.emin
    unit = np.where(np.abs(exact) < 2.0**emin, 2.0 ** (emin - f), np.abs(exact) * 2.0**-f)
    return in_bounds(((kept - exact) * below), exact, np.where(below, kept, exact), unit, own.mode)


def truncation_keeps(own: TruncationKeeps) -> bool:
    exact, _ = magnitudes(own.format, grid(own.format) - 2, own.format.emax + 2)
    d, _, below = in_format(exact, own.format, "toward_zero")
    e = np.maximum(np.where(d != 0, log2(np.where(d != 0, d, 1.0)), own.format.emin), own.format.emin)
    ulp = np.ldexp(1.0, e - own.format.fraction)
    return bool((~below | ((np.abs(d) <= np.abs(exact)) & (np.abs(exact) < np.abs(d) + ulp))).all())


def bound_keeps(own: BoundKeeps) -> bool:
    exact, e = numbers_of(own.range)
    raised = units(exact, own.bound - own.bits, own.mode)
    return all(((e > m) | (units(exact, m - own.bits, own.mode) == raised)).all()
               for m in range(own.range.low, own.bound))  # fmt: skip


def never_reaches(own: NeverReaches) -> bool:
    return bool((np.abs(numbers_of(own.range)[0]) < 2.0**own.limit).all())


def format_holds(own: FormatHolds) -> bool:
    exact, _ = numbers_of(own.range)
    exact = np.concatenate([exact, [0.0, -0.0]])
    negative = np.signbit(exact)
    found = target_value(exact, negative, own.target)
    same = found.finite & (found.exact == exact) & (found.negative == negative)
    return bool((same & ((exact == 0) | (found.exponent == log2(np.where(exact == 0, 1.0, exact))))).all())


def rounds_alike(own: RoundsAlike) -> bool:
    fmt, least = own.left.format, grid(own.left.format)
    most = 1 << fmt.fraction + 1 if own.fitting else None
    every = magnitudes(fmt, least if own.fitting else least - SPARE - fmt.fraction, fmt.emax + 3, most)
    one, two = (target_value(*every, target).patterns for target in (own.left, own.right))
    assert one is not None
    return bool((one == two).all())


def rounds_twice(own: RoundsTwice) -> bool:
    first, fmt = own.first.format, own.then.format
    wide = max(first, fmt, key=lambda one: one.fraction)
    low = min(grid(first), grid(fmt)) - SPARE - wide.fraction
    exact, negative = magnitudes(wide, low, max(first.emax, fmt.emax) + 3)
    exact, negative = exact[exact != 0], negative[exact != 0]
    between, once = target_value(exact, negative, own.first), target_value(exact, negative, own.once)
    finite = between.finite
    twice = target_value(np.where(finite, between.exact, 0.0), between.negative, own.then)
    assert twice.patterns is not None
    infinite = (between.kind == INFINITE) & (once.kind == INFINITE) & (between.exact * once.exact > 0)
    same = np.where(finite, twice.patterns == once.patterns, infinite)
    return bool(same.all())


def rounds_opposite(own: RoundsOpposite) -> bool:
    fmt = own.target.format
    exact, _ = magnitudes(fmt, grid(fmt) - 4, fmt.emax + 4)
    size = exact[: len(exact) // 2]
    one, two = (
        target_value(-size if minus else size, np.full(len(size), minus), own.target) for minus in (False, True)
    )
    nan = (one.kind == NOT_A_NUMBER) & (two.kind == NOT_A_NUMBER)
    signs = (one.exact >= 0) & (two.exact <= 0)
    return bool((nan | ((one.kind == two.kind) & (one.exact == -two.exact) & signs)).all())


def rounding_rises(own: RoundingRises) -> bool:
    fmt = own.target.format
    exact, _ = magnitudes(fmt, grid(fmt) - 4, fmt.emax + 4)
    size = exact[: len(exact) // 2]
    for minus in (False, True):
        found = target_value(-size if minus else size, np.full(len(size), minus), own.target)
        line = np.where(found.kind == INFINITE, found.exact * 1e300, found.exact) * (-1 if minus else 1)
        line = line[found.kind != NOT_A_NUMBER]
        if (np.maximum.accumulate(line) > line).any():
            return False
    return True


TRUTHS: dict[type, Callable[[Any], bool]] = {
    AlignmentLoses: alignment_loses, RoundingLoses: rounding_loses, TruncationKeeps: truncation_keeps,
    BoundKeeps: bound_keeps, NeverReaches: never_reaches, FormatHolds: format_holds, RoundsAlike: rounds_alike,
    RoundsTwice: rounds_twice,
    RoundsOpposite: rounds_opposite, RoundingRises: rounding_rises,
    Normalises: lambda own: True, RoundingScales: lambda own: True,  # the same number, whatever its unit
}  # fmt: skip


class Truths:
    """Theorems of lemmas that are true, each found once."""

    def __init__(self) -> None:
        self._known: dict[Lemma, Theorem | None] = {}

    def theorem(self, lemma: Lemma) -> Theorem | None:
        """The lemma, if it is true: by the kernel's own evaluation where it has few inputs."""
        if lemma not in self._known:
            true = TRUTHS[type(lemma)](lemma)
            self._known[lemma] = (_evaluated(lemma) or believed(lemma)) if true else None
        return self._known[lemma]


def _evaluated(lemma: Lemma) -> Theorem | None:
    try:
        return RULES["exhausted"](lemma) if bits_of(lemma) <= FEW else None
    except RuleError:
        return None


def bits_of(lemma: Lemma) -> int:
    """The bits of all inputs of a lemma."""
    from mmaprobe.smtmodel.carriers.algebra import Bits, constant
    from mmaprobe.smtmodel.carriers.arrays import ArrayCarrier

    carrier, widths = ArrayCarrier(), list[int]()

    def symbol(name: str, width: int) -> Bits:
        widths.append(width)
        return constant(carrier, 0, width)

    lemma.inputs(symbol)
    return sum(widths)


# -- lemmas at random


def some_range(rng: random.Random) -> Range:
    width = rng.randint(2, 5)
    fraction, low = rng.randint(0, width + 1), rng.randint(-4, 2)
    return Range(width, fraction, low, low + rng.randint(0, 5), low - fraction + rng.choice((0, 0, 0, 1, 2, 3)),
                 rng.random() < 0.4)  # fmt: skip


def some_target(rng: random.Random, fmt: Format | None = None) -> Target:
    choose: Any = rng.choice
    fmt = format_named(choose(RESULTS)) if fmt is None else fmt
    return Target(fmt, choose(MODES), choose(OVERFLOWS), rng.random() < 0.2, rng.random() < 0.3)


def some_twice(rng: random.Random) -> RoundsTwice:
    then = some_target(rng)
    first = some_target(rng, format_named(rng.choice((*WIDE, *RESULTS))))
    mode: Any = rng.choice(("to_odd", "to_odd", then.rounding, first.rounding))
    return RoundsTwice(
        replace(first, rounding=mode), then, then if rng.random() < 0.7 else some_target(rng, then.format)
    )


def some_lemma(kind: type, rng: random.Random) -> Any:
    """A lemma of a class, true or not."""
    mode: Any = rng.choice(MODES)
    one, target, bits = some_range(rng), some_target(rng), rng.randint(0, 6)
    fmt = target.format
    made: dict[type, Callable[[], Any]] = {
        AlignmentLoses: lambda: AlignmentLoses(rng.randint(1, 3), rng.randint(0, 5), bits, mode),
        RoundingLoses: lambda: RoundingLoses(fmt, mode),
        TruncationKeeps: lambda: TruncationKeeps(fmt),
        BoundKeeps: lambda: BoundKeeps(one, bits, mode, one.low + rng.randint(1, 6)),
        NeverReaches: lambda: NeverReaches(one, one.high + one.integer + rng.randint(-2, 1)),
        Normalises: lambda: Normalises(one),
        FormatHolds: lambda: FormatHolds(one, some_target(rng, format_named(rng.choice(WIDE)))),
        RoundsAlike: lambda: RoundsAlike(target, some_target(rng, fmt) if rng.random() < 0.7 else target,
                                         rng.random() < 0.5),
        RoundsTwice: lambda: some_twice(rng),
        RoundsOpposite: lambda: RoundsOpposite(target),
        RoundingRises: lambda: RoundingRises(target),
        RoundingScales: lambda: RoundingScales(target),
    }  # fmt: skip
    return made[kind]()


def instances(campaign: Campaign, truths: Truths, rng: random.Random) -> None:
    """A lemma of each class, settled by evaluation: what is settled is true."""
    for kind in TRUTHS:
        tallied(campaign, some_lemma(kind, rng), TRUTHS[kind])


def tallied(campaign: Campaign, lemma: Any, true: Callable[[Any], bool]) -> Theorem | None:
    """A lemma, settled by evaluation, and held against its truth."""
    own = campaign.tally(type(lemma).__name__)
    theorem = campaign.call("exhausted", lemma, check=False)
    if theorem is None:
        own.refused["", 0] += 1
        return None
    own.theorems += 1
    if not true(lemma):
        own.false.append(f"{campaign.seed}: {lemma.statement()}")
    return theorem
