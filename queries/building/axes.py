"""What is tried beside the steps of a tree: products, and the ends of the range, in tiers; and what lies beside."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence, Set
from dataclasses import replace
from functools import partial
from itertools import combinations, product

from mmaprobe.queries.building.draft import (
    STARTS,
    SWAPPED,
    Choices,
    How,
    Normalised,
    Place,
    Scaled,
    Start,
    Step,
    Store,
    Zeros,
)
from mmaprobe.queries.building.parts import RESTS, Reading, drafts_of_parts, other_parts, read_once
from mmaprobe.queries.building.steps import (
    FIXED,
    INNER,
    MODES,
    ROOMY,
    SHORT,
    WIDE,
    Tier,
    format_of,
    in_fixed_point,
    short_addends,
    sizes,
    unit_of,
    with_step,
)
from mmaprobe.queries.building.weights import ADDED, Weights
from mmaprobe.smtmodel.arithmetic.formats import FORMATS, Format
from mmaprobe.smtmodel.arithmetic.rounding import NEAREST, Mode, Overflow
from mmaprobe.smtmodel.inputs.signature import Signature
from mmaprobe.smtmodel.nodes.element import Subnormals
from mmaprobe.smtmodel.nodes.round import Tiny, Zero

TERMS: tuple[Place, ...] = ("products", "addend")  # that are rounded before they are added
ANY = 1 << 16  # beyond every exponent
NEVER_UP = frozenset(("toward_zero", "to_odd"))  # no result reaches the next power of two
READ_BITS = (8, 11, 12, 16, 22, 24)  # of inputs in long formats, where a and b are read apart
APART = 4  # roles whose products are rounded or not, each by itself
FEWER = range(9)  # bits beyond a format's that a sum which seems exact might be cut to

READS: tuple[tuple[Subnormals, Subnormals], ...] = (
    ("keep", "keep"), ("zero", "zero"), ("positive_zero", "positive_zero"), ("zero", "keep"), ("keep", "zero"),
)  # fmt: skip
TINIES: tuple[tuple[Tiny, bool], ...] = (
    ("keep", False), ("flush_after", False), ("flush_before", False), ("flush_before", True), ("keep", True),
)  # fmt: skip
OVERFLOW: tuple[Overflow, ...] = ("ieee", "infinity", "saturate")
ZEROS: tuple[Zeros, ...] = ("", "-0", "+0")  # what products with a zero factor give
GATED = ZEROS[1:]
NORMALISED: tuple[Normalised, ...] = ("", "products", "all", "factors", "numbers")
SCALED: tuple[Scaled, ...] = ("terms", "sums")
SIGNS: tuple[Zero, ...] = ("ieee", "exact_positive", "positive")


# -- products


def product_tiers(
    kinds: Sequence[str],
    asked: Signature,
    adding: Sequence[int],
    fused: Callable[[], frozenset[int]] = frozenset,
) -> list[Tier]:
    """What a sum of two products begins with, and how products are rounded before they are added. `adding`: the roles
    of the steps that add products. `fused`: asks which products are fused into the addition, where others are rounded
    before."""
    names = ["", *(name for name in INNER if FORMATS[name] != asked.d)]
    starts: Sequence[Start] = STARTS if "binary" in kinds else STARTS[:1]

    def known(choices: Choices) -> Iterator[Choices]:
        exact: set[str] = set()  # the formats that no product is rounded to unless it is tiny or infinite
        for how in of_products(choices):
            if how is not None and _exact(how, asked):
                if how.format in exact:
                    continue
                exact.add(how.format)
            for start in starts:
                yield rounding(choices, start, how)

    def rounding(choices: Choices, start: Start, how: How | None) -> Choices:
        found = replace(choices, start=start, products=how)
        hidden = how is not None and _exact(how, asked)
        return replace(found, unshown=found.unshown | {"products"}) if hidden else found

    def other(choices: Choices) -> Iterator[Choices]:
        for name, start in product(names, starts[:2]):
            for mode in MODES[:1] if _exact(How(format=name), asked) else MODES:
                yield rounding(choices, start, How(mode, name))

    def in_some(choices: Choices) -> Iterator[Choices]:
        """Some steps add exact products, others rounded ones: a loop of fused steps, and what it leaves over."""
        some = [frozenset(few) for size in range(1, len(adding)) for few in combinations(adding[:APART], size)]
        for tried, few in product(known(choices), some):
            if tried.products is not None:
                yield replace(tried, unrounded=few)

    def one_by_one(choices: Choices) -> Iterator[Choices]:
        """Some products are exact, the others rounded, in any steps."""
        few = fused()
        for tried in known(choices) if few else ():
            if tried.products is not None:
                yield replace(tried, fused=few)

    def swapped(choices: Choices) -> Iterator[Choices]:
        for start, how in product(SWAPPED if "binary" in kinds else (), of_products(choices)):
            yield replace(choices, start=start, products=how)

    def normalised(choices: Choices) -> Iterator[Choices]:
        """Products alone, and all terms or factors, which only subnormal ones tell apart."""
        for start, counts in product(starts, NORMALISED[1:] if choices.fuses else NORMALISED[1:2]):
            yield replace(choices, start=start, normalised=counts)

    def shortened(choices: Choices) -> Iterator[Choices]:
        for bits, mode, start in product(range(2, asked.a.precision + asked.b.precision), MODES, starts[:1]):
            name = "" if bits <= asked.d.precision else WIDE
            yield replace(choices, start=start, products=How(mode, name, bits))

    def read(choices: Choices) -> Iterator[Choices]:
        """Both inputs with fewer bits than they have."""
        for bits, mode, tried in product(range(2, asked.a.precision), MODES, list(known(choices))):
            yield replace(tried, parts=read_once(Reading(bits, mode), Reading(bits, mode)))

    def read_apart(choices: Choices) -> Iterator[Choices]:
        modes: tuple[Mode, ...] = ("nearest_even", "toward_zero")
        for mode, start in product(modes, starts):
            for one, other in product(_readings(asked.a, mode), _readings(asked.b, mode)):
                yield replace(choices, start=start, parts=read_once(one, other))

    def addend(choices: Choices) -> Iterator[Choices]:
        """c in a shorter format, or with fewer bits than its own has."""
        for how in short_addends(asked):
            yield replace(choices, addend=how)
        for bits, mode in product(range(2, asked.c.precision), MODES):
            yield replace(choices, addend=How(mode, asked.c.name, bits))

    def in_parts(choices: Choices, several: bool, kept: bool = False) -> Iterator[Choices]:
        for start, parts in product(dict.fromkeys((starts[0], starts[-1])), drafts_of_parts(asked, several, kept)):
            yield replace(choices, start=start, parts=parts)

    narrow = [read] if asked.a.precision > 2 and asked.a.precision == asked.b.precision else []
    first = [known, *([swapped] if "binary" in kinds else [])]
    first += [in_some] if len(adding) > 1 else []
    first += [one_by_one] if "binary" in kinds else []
    parts = [partial(in_parts, several=several) for several in (False, True)]
    in_segments = partial(in_parts, several=False, kept=True)
    joined = [addend] if asked.addend else []
    return [*first, normalised, *joined, in_segments, other, shortened, *narrow, read_apart, *parts]


def of_products(choices: Choices) -> list[How | None]:
    """How products are likely to be rounded: not, or as sums are."""
    found = [how for step in choices.steps for how in (step.how, step.leaves) if how is not None]
    return [None, *dict.fromkeys(found)]


def _readings(fmt: Format, mode: Mode) -> list[Reading | None]:
    """What may be all that is read of an input: as many bits as it has, or fewer."""
    known = range(2, fmt.precision) if fmt.precision <= FORMATS["f16"].precision else READ_BITS
    return [None, *(Reading(bits, mode) for bits in known if bits < fmt.precision)]


# -- the ends of the range


def all_tiny(choices: Choices, kind: Tiny, unbounded: bool, asked: Signature) -> Choices:
    """The choices with one treatment of tiny results in every rounding."""
    return choices.with_hows({at: tiny(how, kind, unbounded, asked) for at, how in choices.hows().items()})


def tiny(how: How, kind: Tiny, unbounded: bool, asked: Signature) -> How:
    """`unbounded`: first rounded with unbounded exponent, where it is not by itself."""
    fmt = format_of(how, asked)
    bits = how.bits if how.bits is not None and how.bits != fmt.precision else None
    return replace(how, tiny=kind, bits=fmt.precision if unbounded and bits is None else bits)


def read_as(choices: Choices, reads: tuple[Subnormals, Subnormals]) -> Choices:
    return replace(choices, a=reads[0], b=None, c=reads[1])


def one_read(choices: Choices) -> list[Choices]:
    """The choices in which the subnormals of one factor alone are zero."""
    return [replace(choices, a="zero", b="keep"), replace(choices, a="keep", b="zero")]


def of_ends(choices: Choices, like: Choices, asked: Signature) -> Choices:
    """The choices with the treatment of tiny results, zeros and overflow taken from others."""
    ends, last = like.hows(), like.hows()[like.last]

    def ended(how: How, given: How) -> How:
        found = tiny(how, given.tiny, given.bits == format_of(given, asked).precision, asked)
        return replace(found, zero=given.zero, overflow=given.overflow)

    found = choices.with_hows({place: ended(how, ends.get(place, last)) for place, how in choices.hows().items()})
    floor = {step.zeros for step in like.steps if step.fraction_bits is not None}
    return with_floor(found, floor.pop()) if len(floor) == 1 else found


def with_floor(choices: Choices, zeros: int | None) -> Choices:
    """The exponent of zero terms of every fused sum."""
    steps = tuple(step if step.fraction_bits is None else replace(step, zeros=zeros) for step in choices.steps)
    return replace(choices, steps=steps)


def with_negated(choices: Choices, roles: Set[int]) -> Choices:
    """The sums of these roles, and of no others, with their signs changed."""
    steps = tuple(replace(step, negated=role in roles) for role, step in enumerate(choices.steps))
    return replace(choices, steps=steps)


def floors(choices: Choices, d: Format) -> Sequence[int | None]:
    """The exponents of zero terms that are tried."""
    if not choices.fuses:
        return (None,)
    found = [None, *range(d.emin - 18, d.emin + 1)]
    return [*found, *range(-139, -126)] if d.emin > -100 else found


def at_ends(choices: Choices, weights: Weights) -> Iterator[Choices]:
    """What only the ends of the range show: what is multiplied by powers of two, and whether c is rounded then; which
    bits of subnormal numbers a segment takes."""
    for leading in (True, False) if choices.parts.kept else (choices.parts.leading,):
        yield from _multiplying(replace(choices, parts=replace(choices.parts, leading=leading)), weights)


def with_signs(choices: Choices) -> Iterator[Choices]:
    """The signs of segments that are zero."""
    for positive in (True, False) if choices.parts.kept else (choices.parts.positive,):
        yield replace(choices, parts=replace(choices.parts, positive=positive))


def _multiplying(choices: Choices, weights: Weights) -> Iterator[Choices]:
    if all(shift == 0 for _, shift in weights.values()):
        yield choices
        return
    addends = [choices.addend, None] if choices.addend is not None else [None]
    for scaled, addend in product(SCALED, addends):
        yield replace(choices, scaled=scaled, addend=addend)


def tiny_tiers(asked: Signature, weights: Weights, apart: bool) -> list[Tier]:
    """How subnormal numbers are read and written, in tiers. `apart`: with roundings that do otherwise than others."""

    def alike(choices: Choices, reads: Sequence[tuple[Subnormals, Subnormals]]) -> Iterator[Choices]:
        for tried, chosen, (kind, unbounded) in product(list(at_ends(choices, weights)), reads, TINIES):
            yield read_as(all_tiny(tried, kind, unbounded, asked), chosen)

    def differing(choices: Choices) -> Iterator[Choices]:
        hows = choices.hows()
        places = list(hows)
        if len(places) > 4:  # the last one, and all others
            groups = [[choices.last], [place for place in places if place != choices.last]]
        else:
            groups = [[place] for place in places]
        for kinds in product(TINIES[:4], repeat=len(groups)):
            chosen = {place: kind for group, kind in zip(groups, kinds, strict=True) for place in group}
            tried = choices.with_hows({place: tiny(how, *chosen[place], asked) for place, how in hows.items()})
            for reads in READS:
                yield read_as(tried, reads)

    def floored(choices: Choices) -> Iterator[Choices]:
        for zeros, reads in product(floors(choices, asked.d)[1:], READS[:3]):
            yield with_floor(read_as(choices, reads), zeros)

    def tiny_products(choices: Choices) -> Iterator[Choices]:
        """Products that are rounded where they are tiny alone, as all others fit."""
        for mode in MODES if _exact(How(), asked) else ():
            yield from alike(replace(choices, products=How(mode)), READS[:3])

    def every(choices: Choices) -> Iterator[Choices]:
        for zeros, tried in product(floors(choices, asked.d)[1:], list(alike(choices, READS))):
            yield with_floor(tried, zeros)

    def one_side(choices: Choices) -> Iterator[Choices]:
        for tried in alike(choices, (("keep", "keep"), ("keep", "zero"))):
            yield from one_read(tried)

    def fixed(choices: Choices) -> Iterator[Choices]:
        """Sums in fixed point: products are cut at one place, which may have been taken for zeros."""
        choices = replace(read_as(all_tiny(choices, "keep", False, asked), READS[0]), zeros="")
        for role, step in enumerate(choices.steps[:APART]):
            for tried in in_fixed_point(step, asked, FIXED):
                yield with_step(choices, role, tried)

    first = [lambda choices: alike(choices, READS[:3]), floored, tiny_products]
    return [*first, lambda choices: alike(choices, READS), one_side, fixed, *([differing] if apart else []), every]


def tiny_tier(role: int, asked: Signature) -> Tier:
    """Whether the sums of one role are kept or flushed where they are tiny."""
    places: list[Place] = [role, ("leaves", role)]
    places += ["convert"] if role == 0 else []

    def kept_or_flushed(choices: Choices) -> Iterator[Choices]:
        hows = choices.hows()
        for kind in TINIES[:2]:
            yield choices.with_hows({at: tiny(hows[at], *kind, asked) for at in places if at in hows})

    return kept_or_flushed


def refined_tiers(asked: Signature, adding: Sequence[int]) -> list[Tier]:
    """How what is flushed is flushed, where each role is known to keep or to flush what is tiny, and how subnormal
    inputs are read; then products that some steps alone round, where they are tiny."""

    def plain(choices: Choices) -> Iterator[Choices]:
        hows = choices.hows()
        flushed = [place for place, how in hows.items() if how.tiny != "keep"]
        for kind, unbounded, reads in product(TINIES[1:4] if flushed else TINIES[1:2], (False, True), READS):
            kinds = {at: kind if at in flushed else ("keep", unbounded) for at in hows}
            yield read_as(choices.with_hows({at: tiny(how, *kinds[at], asked) for at, how in hows.items()}), reads)

    def begun(choices: Choices) -> Iterator[Choices]:
        """What a sum begins with shows here alone where every product is a number of the format."""
        for start in (*STARTS, *SWAPPED):
            yield from plain(replace(choices, start=start))

    def in_some(choices: Choices) -> Iterator[Choices]:
        some = [frozenset(few) for size in range(1, len(adding)) for few in combinations(adding[:APART], size)]
        for few in some if choices.products is not None and _exact(choices.products, asked) else ():
            yield from begun(replace(choices, unrounded=few))

    return [plain, begun, in_some]


def zero_tiers(kinds: Sequence[str], asked: Signature) -> list[Tier]:
    """The signs of zeros, in tiers."""
    begins: Sequence[Start | None] = (None, "zero", "first") if {"binary", "fused"} & set(kinds) else (None,)

    def signs(choices: Choices) -> Iterator[Choices]:
        choices = replace(with_negated(choices, frozenset()), positive_zeros=False, zeros="")
        for given, sign, start in product(list(with_signs(choices)), SIGNS, begins):
            tried = given.with_hows({place: replace(how, zero=sign) for place, how in given.hows().items()})
            yield tried if start is None else replace(tried, start=start)

    def last(choices: Choices) -> Iterator[Choices]:
        choices = replace(with_negated(choices, frozenset()), positive_zeros=False, zeros="")
        hows = choices.hows().items()
        for one, other, start in product(SIGNS, SIGNS, begins):
            apart = {place: replace(how, zero=one if place == choices.last else other) for place, how in hows}
            tried = choices.with_hows(apart)
            yield tried if start is None else replace(tried, start=start)

    def positive(choices: Choices) -> Iterator[Choices]:
        for tried in signs(choices):
            yield replace(tried, positive_zeros=True)

    def negated(choices: Choices) -> Iterator[Choices]:
        """Sums of some steps are subtracted, or the last one changes its sign."""
        roles = range(len(choices.steps))
        some = [frozenset(few) for size in (1, 2) for few in combinations(roles[:APART], size)]
        for tried, few in product(signs(choices), dict.fromkeys([*some, frozenset(roles)])):
            yield with_negated(tried, few)

    def everything(choices: Choices) -> Iterator[Choices]:
        for tried, reads, (kind, unbounded) in product(list(signs(choices)), READS, TINIES):
            yield read_as(all_tiny(tried, kind, unbounded, asked), reads)

    def floored(choices: Choices) -> Iterator[Choices]:
        for zeros, tried in product(floors(choices, asked.d), list(signs(choices))):
            yield with_floor(tried, zeros)

    def gated(choices: Choices) -> Iterator[Choices]:
        """Products with a zero factor are left out, or +0."""
        for tried, zeros in product(signs(choices), GATED):
            yield replace(tried, zeros=zeros)

    return [signs, positive, last, negated, floored, gated, everything]


def end_tiers(asked: Signature, weights: Weights) -> list[Tier]:
    """What results beyond the largest number become, in tiers."""
    limits = [asked.d.emax + 1, asked.d.emax + 2]

    def alike(choices: Choices) -> Iterator[Choices]:
        for tried, overflow in product(list(at_ends(choices, weights)), OVERFLOW):
            same = {place: replace(how, overflow=overflow) for place, how in tried.hows().items()}
            yield tried.with_hows(same)

    def limited(choices: Choices) -> Iterator[Choices]:
        for tried, limit in product(list(alike(choices)), limits):
            yield replace(tried, limit=limit)

    def last(choices: Choices) -> Iterator[Choices]:
        hows = choices.hows().items()
        for one, other in product(OVERFLOW, OVERFLOW):
            apart = {place: replace(how, overflow=one if place == choices.last else other) for place, how in hows}
            yield choices.with_hows(apart)

    def gated(choices: Choices) -> Iterator[Choices]:
        """Zero times infinity is zero, or nothing."""
        for tried, zeros in product(list(last(choices)), GATED):
            yield replace(tried, zeros=zeros)

    def rests(choices: Choices) -> Iterator[Choices]:
        """What a part leaves of infinities and NaNs."""
        if len(choices.parts.pairs) > 1:
            for tried, rest in product(list(last(choices)), RESTS):
                yield replace(tried, parts=replace(tried.parts, rest=rest))

    return [alike, last, limited, gated, rests]


# -- what lies beside


def neighbours(choices: Choices, asked: Signature, weights: Weights) -> Iterator[Choices]:
    """The choices with one of them changed: what vectors of validation must refute."""
    yield from ordinary_neighbours(choices, asked)
    for zeros in floors(choices, asked.d):
        yield with_floor(choices, zeros)
    for place, own in choices.hows().items():
        for changed in _other_ends(own, asked):
            yield choices.with_hows({place: changed})
    yield from at_ends(choices, weights)
    yield from with_signs(choices)
    yield replace(choices, positive_zeros=not choices.positive_zeros)
    for given in ZEROS:
        yield replace(choices, zeros=given)
    for rest in RESTS if len(choices.parts.pairs) > 1 else ():
        yield replace(choices, parts=replace(choices.parts, rest=rest))
    yield replace(choices, limit=asked.d.emax + 1 if choices.limit is None else None)
    for reads in READS:
        yield read_as(choices, reads)
    yield from one_read(choices)


def ordinary_neighbours(choices: Choices, asked: Signature) -> Iterator[Choices]:
    """Those of them that ordinary numbers tell from these choices."""
    for role, step in enumerate(choices.steps):
        for other in (*_other_steps(step, asked), *(_other_leaving(step, asked) if role else ())):
            yield with_step(choices, role, other)
    for leaves in dict.fromkeys(step.leaves for step in choices.steps):
        if leaves is not None and choices.store is None:
            yield from (replace(choices, store=Store(size, leaves)) for size in sizes(asked))
    for place, own in choices.hows().items():
        for mode in MODES:
            yield choices.with_hows({place: replace(own, mode=mode)})
    for counts in NORMALISED:
        yield replace(choices, normalised=counts)
    for start in (*STARTS, *SWAPPED):
        yield replace(choices, start=start)
    for how in of_products(choices):
        yield replace(choices, products=how)
    for role in range(len(choices.steps)) if choices.products is not None else ():
        yield replace(choices, unrounded=choices.unrounded ^ {role})
    for leaf in range(asked.length) if choices.fused else ():
        yield replace(choices, fused=choices.fused ^ {leaf})
    if choices.addend is not None:
        yield replace(choices, addend=None)
    for parts in other_parts(choices.parts):
        yield replace(choices, parts=parts)
    for name in INNER:
        if choices.convert is None and FORMATS[name] != asked.d:
            steps = tuple(replace(step, how=replace(step.how, format=name)) for step in choices.steps)
            yield replace(choices, steps=steps, convert=How(choices.steps[0].how.mode))
    if choices.convert is not None:
        once = replace(choices.steps[0], how=replace(choices.steps[0].how, format=""))
        yield replace(with_step(choices, 0, once), convert=None)


def _other_steps(step: Step, asked: Signature) -> Iterator[Step]:
    bits = step.fraction_bits
    yield replace(step, negated=not step.negated)
    if bits is None:
        yield from in_fixed_point(step, asked, 1)
        for more in FEWER:
            yield replace(step, fraction_bits=format_of(step.how, asked).precision + more)
        return
    for other in (bits - 1, bits + 1):
        yield replace(step, fraction_bits=other)
    for align in MODES:
        yield replace(step, align=align, sticky=False)
    if not step.rounded:
        yield replace(step, cancels=not step.cancels)
    if step.align == "toward_zero":
        yield replace(step, sticky=not step.sticky)
    if step.late is None and not step.groups:
        for carry in (None, *range(7)):
            yield replace(step, carry_bits=carry)
    if (late := step.late) is not None:
        for change in (-1, 1):
            yield replace(step, late=replace(late, sum_bits=late.sum_bits + change))
            yield replace(step, late=replace(late, addend_bits=late.addend_bits + change))
            if late.cut is not None:
                yield replace(step, late=replace(late, cut=late.cut + change))
        for align in MODES:
            yield replace(step, late=replace(late, align=align))
        yield replace(step, late=replace(late, reach=bits + 1 if late.reach is None else None))


def _other_leaving(step: Step, asked: Signature) -> Iterator[Step]:
    """The choices with the result of a role's steps converted where it was not, or not where it was; or not rounded."""
    if step.leaves is not None:
        yield replace(step, leaves=None)
        return
    if step.fraction_bits is None:
        yield replace(step, rounded=not step.rounded)
    own = format_of(step.how, asked)
    for short in SHORT:
        if FORMATS[short].precision < own.precision:
            yield replace(step, leaves=How(MODES[0], short))
    for wide in ROOMY:
        if FORMATS[wide].precision > own.precision:  # as short, but only where it leaves them
            yield replace(step, how=replace(step.how, format=wide), leaves=step.how)


def _other_ends(how: How, asked: Signature) -> Iterator[How]:
    for kind, unbounded in TINIES:
        yield tiny(how, kind, unbounded, asked)
    for sign in SIGNS:
        yield replace(how, zero=sign)
    for overflow in OVERFLOW:
        yield replace(how, overflow=overflow)


# -- what says the same


def simplest(choices: Choices, asked: Signature, weights: Weights) -> Choices:
    """The simplest choices that describe the same arithmetic."""
    shifts = [weights.get(k, ADDED)[1] for k in (range(asked.length) if weights else (0,))]
    if choices.products is not None and _always_fits(choices.products, asked, min(shifts), max(shifts)):
        choices = replace(choices, products=None, fused=frozenset(), unshown=choices.unshown - {"products"})
    addend = weights.get("c", ADDED)[1]
    least = _least(choices, asked, min(shifts), addend)
    own = _least(replace(choices, products=None), asked, min(shifts), addend)  # of terms before they are rounded
    largest = max(asked.a.emax + asked.b.emax + max(0, *shifts), asked.c.emax + max(0, addend)) + 2
    most = largest + (asked.length + 1).bit_length() + 2  # no sum is as large as 2^most, however often it is rounded
    if asked.scale is not None:
        least, own, most = -ANY, -ANY, ANY
    hows = choices.hows().items()
    return choices.with_hows({at: _simplest(how, asked, own if at in TERMS else least, most) for at, how in hows})


def _exact(how: How, asked: Signature) -> bool:
    """Whether a product that is rounded so is the exact one, unless it is tiny or infinite."""
    return asked.a.precision + asked.b.precision <= min(format_of(how, asked).precision, how.bits or 64)


def _always_fits(how: How, asked: Signature, low: int, high: int) -> bool:
    fmt = format_of(how, asked)
    bits = min(fmt.precision, how.bits or fmt.precision)
    return (
        asked.a.precision + asked.b.precision <= bits
        and unit_of(asked.a) + unit_of(asked.b) + low >= unit_of(fmt)
        and asked.a.emax + asked.b.emax + high + 1 < fmt.emax
    )


def _simplest(how: How, asked: Signature, least: int, most: int) -> How:
    """`least`, `most`: what is rounded is zero or at least 2^least, a multiple of it, and less than 2^most."""
    fmt = format_of(how, asked)
    if most <= fmt.emax or (how.overflow == "infinity" and how.mode in NEAREST):
        how = replace(how, overflow="ieee")  # which prescribes infinity for these
    exact = least >= unit_of(fmt)  # tiny results are
    unbounded = how.bits == fmt.precision
    if least >= fmt.emin:
        return replace(how, tiny="keep", bits=None if unbounded else how.bits)
    if how.tiny == "keep":  # rounded twice in one direction, or to odd, is rounded once
        return replace(how, bits=None) if unbounded and (exact or how.mode not in NEAREST) else how
    if (unbounded or how.tiny == "flush_after") and (exact or how.mode in NEVER_UP):
        # no rounded result reaches the least normal number from below
        return replace(how, tiny="flush_before", bits=None if unbounded else how.bits)
    return how


def _least(choices: Choices, asked: Signature, shift: int, addend: int) -> int:
    """The exponent of the last place that any term has. `shift`, `addend`: the least powers of two with which products
    count, and that of c."""
    rounded = choices.products
    least = unit_of(asked.a) + unit_of(asked.b) + min(shift, 0 if choices.scaled == "sums" else shift)
    if rounded is not None and not choices.unrounded and not choices.fused:
        least = max(least, unit_of(format_of(rounded, asked)))
    return min(least, unit_of(asked.c) + min(addend, 0)) if asked.addend else least
