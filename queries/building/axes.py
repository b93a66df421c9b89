"""What is tried beside the steps of a tree: products, and the ends of the range, in tiers; and what lies beside."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence, Set
from dataclasses import replace
from functools import partial
from itertools import combinations, product

from mmaprobe.queries.building.draft import (
    FACTORS,
    Draft,
    Place,
    Reads,
    Start,
    Step,
    Store,
    bits_of,
    changed,
    floored,
    how,
    in_mode,
    of_rounding,
    with_ends,
)
from mmaprobe.queries.building.draft import fused as fused_sum
from mmaprobe.queries.building.likely import (
    DIRECT,
    FEWER,
    INNER,
    MODES,
    OVERFLOW,
    READ_BITS,
    READS,
    ROOMY,
    SCALED,
    SHORT,
    SIGNS,
    STARTS,
    SWAPPED,
    TINIES,
    WIDE,
    floors,
    varied,
)
from mmaprobe.queries.building.parts import RESTS, Reading, drafts_of_parts, other_parts, read_once
from mmaprobe.queries.building.steps import (
    FIXED,
    Tier,
    aligning,
    in_fixed_point,
    short_addends,
    sizes,
    unit_of,
    with_another_node,
)
from mmaprobe.queries.building.weights import ADDED, Weights
from mmaprobe.smtmodel.arithmetic.formats import FORMATS, Format
from mmaprobe.smtmodel.arithmetic.rounding import NEAREST, Mode
from mmaprobe.smtmodel.inputs.signature import Signature
from mmaprobe.smtmodel.nodes import Cancelling, FusedSum, Gate, Node, Product, Round
from mmaprobe.smtmodel.nodes.round import Rounding, Tiny

TERMS_ROUNDED: tuple[Place, ...] = ("products", "addend")  # before they are added
ANY = 1 << 16  # beyond every exponent
NEVER_UP = frozenset(("toward_zero", "to_odd"))  # no result reaches the next power of two
APART = 4  # roles whose products are rounded or not, each by itself


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
    formats = [asked.d, *(fmt for fmt in INNER if fmt != asked.d)]
    starts: Sequence[Start] = STARTS if "binary" in kinds else STARTS[:1]

    def known(draft: Draft) -> Iterator[Draft]:
        exact: set[Format] = set()  # the formats that no product is rounded to unless it is tiny or infinite
        for own in of_products(draft):
            if own is not None and _exact(own, asked):
                if own.rounding.format in exact:
                    continue
                exact.add(own.rounding.format)
            for start in starts:
                yield rounding(draft, start, own)

    def rounding(draft: Draft, start: Start, own: Round | None) -> Draft:
        found = replace(draft, start=start, products=own)
        hidden = own is not None and _exact(own, asked)
        return replace(found, unshown=found.unshown | {"products"}) if hidden else found

    def other(draft: Draft) -> Iterator[Draft]:
        for fmt, start in product(formats, starts[:2]):
            for mode in MODES[:1] if _exact(how(fmt), asked) else MODES:
                yield rounding(draft, start, how(fmt, mode))

    def in_some(draft: Draft) -> Iterator[Draft]:
        """Some steps add exact products, others rounded ones: a loop of fused steps, and what it leaves over."""
        some = [frozenset(few) for size in range(1, len(adding)) for few in combinations(adding[:APART], size)]
        for tried, few in product(known(draft), some):
            if tried.products is not None:
                yield replace(tried, unrounded=few)

    def one_by_one(draft: Draft) -> Iterator[Draft]:
        """Some products are exact, the others rounded, in any steps."""
        few = fused()
        for tried in known(draft) if few else ():
            if tried.products is not None:
                yield replace(tried, fused=few)

    def swapped(draft: Draft) -> Iterator[Draft]:
        for start, own in product(SWAPPED if "binary" in kinds else (), of_products(draft)):
            yield replace(draft, start=start, products=own)

    def normalised(draft: Draft) -> Iterator[Draft]:
        """Products alone, and all terms or factors, which only subnormal ones tell apart."""
        every = list(normalising(draft, asked))[1:]
        for start, tried in product(starts, every if draft.fuses else every[:1]):
            yield replace(tried, start=start)

    def shortened(draft: Draft) -> Iterator[Draft]:
        for bits, mode, start in product(range(2, asked.a.precision + asked.b.precision), MODES, starts[:1]):
            fmt = asked.d if bits <= asked.d.precision else WIDE
            yield replace(draft, start=start, products=how(fmt, mode, bits))

    def read(draft: Draft) -> Iterator[Draft]:
        """Both inputs with fewer bits than they have."""
        for bits, mode, tried in product(range(2, asked.a.precision), MODES, list(known(draft))):
            yield replace(tried, parts=read_once(Reading(bits, mode), Reading(bits, mode)))

    def read_apart(draft: Draft) -> Iterator[Draft]:
        for mode, start in product(DIRECT, starts):
            for one, other in product(_readings(asked.a, mode), _readings(asked.b, mode)):
                yield replace(draft, start=start, parts=read_once(one, other))

    def addend(draft: Draft) -> Iterator[Draft]:
        """c in a shorter format, or with fewer bits than its own has."""
        for own in short_addends(asked):
            yield replace(draft, addend=own)
        for bits, mode in product(range(2, asked.c.precision), MODES):
            yield replace(draft, addend=how(asked.c, mode, bits))

    def in_parts(draft: Draft, several: bool, kept: bool = False) -> Iterator[Draft]:
        for start, parts in product(dict.fromkeys((starts[0], starts[-1])), drafts_of_parts(asked, several, kept)):
            yield replace(draft, start=start, parts=parts)

    narrow = [read] if asked.a.precision > 2 and asked.a.precision == asked.b.precision else []
    first = [known, *([swapped] if "binary" in kinds else [])]
    first += [in_some] if len(adding) > 1 else []
    first += [one_by_one] if "binary" in kinds else []
    parts = [partial(in_parts, several=several) for several in (False, True)]
    in_segments = partial(in_parts, several=False, kept=True)
    joined = [addend] if asked.addend else []
    return [
        *first,
        normalised,
        *joined,
        in_segments,
        other,
        shortened,
        *narrow,
        read_apart,
        *parts,
        partial(with_another_node, d=asked.d),
    ]


def normalising(draft: Draft, asked: Signature) -> Iterator[Draft]:
    """What counts in an alignment with the exponent of its leading bit, even if that of its format is larger, or a
    product's is not its factors': nothing; products; all terms; subnormal factors; these, and c and sums so far."""

    def with_product(form: Callable[[Node, Node], Product], counted: bool = False) -> Draft:
        of = changed(draft.product, Product, lambda part: replace(form(*FACTORS), limit=part.limit))
        return replace(draft, product=of, counted=counted)

    def wider(left: Node, right: Node) -> Product:
        return Product(Round(left, Rounding(formats[0])), Round(right, Rounding(formats[1])))

    for counted in (False, True):
        if not counted:
            yield with_product(Product)
        yield with_product(partial(Product, normalised=True), counted)
    formats = [fmt for fmt in map(without_subnormals, (asked.a, asked.b)) if fmt is not None]
    if len(formats) == len(FACTORS):
        yield from (with_product(wider, counted) for counted in (False, True))


def without_subnormals(fmt: Format) -> Format | None:
    """A format in which the subnormal numbers of another are normal ones."""
    every = (wider for wider in ROOMY if wider.emin <= fmt.emin - fmt.fraction and wider.holds(fmt))
    return next(every, None)


def of_products(draft: Draft) -> list[Round | None]:
    """How products are likely to be rounded: not, or as sums are."""
    found = [own for step in draft.steps for own in (step.how, step.leaves) if own is not None]
    return [None, *dict.fromkeys(found)]


def _readings(fmt: Format, mode: Mode) -> list[Reading | None]:
    """What may be all that is read of an input: as many bits as it has, or fewer."""
    known = range(2, fmt.precision) if fmt.precision <= FORMATS["f16"].precision else READ_BITS
    return [None, *(Reading(bits, mode) for bits in known if bits < fmt.precision)]


# -- the ends of the range


def all_tiny(draft: Draft, kind: Tiny, unbounded: bool) -> Draft:
    """The draft with one treatment of tiny results in every rounding."""
    return draft.every_how(lambda own: tiny(own, kind, unbounded))


def tiny(own: Round, kind: Tiny, unbounded: bool) -> Round:
    """`unbounded`: first rounded with unbounded exponent, where it is not by itself."""
    precision, found = own.rounding.format.precision, with_ends(own, subnormals=kind)
    if bits_of(own) in (None, precision):
        return of_rounding(found.rounding, precision if unbounded else None)
    return found


def read_as(draft: Draft, reads: Reads) -> Draft:
    return draft.read_as(reads[0], reads[0], reads[1])


def one_read(draft: Draft) -> list[Draft]:
    """The draft in which the subnormals of one factor alone are zero."""
    return [draft.read_as("zero", "keep", draft.c.subnormals), draft.read_as("keep", "zero", draft.c.subnormals)]


def of_ends(draft: Draft, like: Draft) -> Draft:
    """The draft with the treatment of tiny results, zeros and overflow taken from others."""
    ends, last = like.hows(), like.hows()[like.last]

    def ended(own: Round, given: Round) -> Round:
        how = given.rounding
        found = tiny(own, how.subnormals, bits_of(given) == how.format.precision)
        return with_ends(found, zero=how.zero, overflow=how.overflow)

    found = draft.with_hows({place: ended(own, ends.get(place, last)) for place, own in draft.hows().items()})
    floor = {step.aligned.zeros for step in like.steps if step.aligned is not None}
    return with_floor(found, floor.pop()) if len(floor) == 1 else found


def with_floor(draft: Draft, zeros: int | None) -> Draft:
    """The exponent of zero terms of every fused sum."""
    return draft.with_sums(lambda node: floored(node, zeros))


def with_negated(draft: Draft, roles: Set[int]) -> Draft:
    """The sums of these roles, and of no others, with their signs changed."""
    steps = tuple(replace(step, negated=role in roles) for role, step in enumerate(draft.steps))
    return replace(draft, steps=steps)


def floors_of(draft: Draft, d: Format) -> Sequence[int | None]:
    """The exponents of zero terms that are tried."""
    return floors(d) if draft.fuses else (None,)


def at_ends(draft: Draft, weights: Weights) -> Iterator[Draft]:
    """What only the ends of the range show: what is multiplied by powers of two, and whether c is rounded then; which
    bits of subnormal numbers a segment takes."""
    for leading in (True, False) if draft.parts.kept else (draft.parts.leading,):
        yield from _multiplying(replace(draft, parts=replace(draft.parts, leading=leading)), weights)


def with_signs(draft: Draft) -> Iterator[Draft]:
    """The signs of segments that are zero."""
    for positive in (True, False) if draft.parts.kept else (draft.parts.positive,):
        yield replace(draft, parts=replace(draft.parts, positive=positive))


def _multiplying(draft: Draft, weights: Weights) -> Iterator[Draft]:
    if all(shift == 0 for _, shift in weights.values()):
        yield draft
        return
    addends = [draft.addend, None] if draft.addend is not None else [None]
    for scaled, addend in product(SCALED, addends):
        yield replace(draft, scaled=scaled, addend=addend)


def tiny_tiers(asked: Signature, weights: Weights, apart: bool) -> list[Tier]:
    """How subnormal numbers are read and written, in tiers. `apart`: with roundings that do otherwise than others."""

    def alike(draft: Draft, reads: Sequence[Reads]) -> Iterator[Draft]:
        for tried, chosen, (kind, unbounded) in product(list(at_ends(draft, weights)), reads, TINIES):
            yield read_as(all_tiny(tried, kind, unbounded), chosen)

    def differing(draft: Draft) -> Iterator[Draft]:
        hows = draft.hows()
        places = list(hows)
        if len(places) > 4:  # the last one, and all others
            groups = [[draft.last], [place for place in places if place != draft.last]]
        else:
            groups = [[place] for place in places]
        for kinds in product(TINIES[:4], repeat=len(groups)):
            chosen = {place: kind for group, kind in zip(groups, kinds, strict=True) for place in group}
            tried = draft.with_hows({place: tiny(own, *chosen[place]) for place, own in hows.items()})
            for reads in READS:
                yield read_as(tried, reads)

    def floored(draft: Draft) -> Iterator[Draft]:
        for zeros, reads in product(floors_of(draft, asked.d)[1:], READS[:3]):
            yield with_floor(read_as(draft, reads), zeros)

    def tiny_products(draft: Draft) -> Iterator[Draft]:
        """Products that are rounded where they are tiny alone, as all others fit."""
        for mode in MODES if _exact(how(asked.d), asked) else ():
            yield from alike(replace(draft, products=how(asked.d, mode)), READS[:3])

    def every(draft: Draft) -> Iterator[Draft]:
        for zeros, tried in product(floors_of(draft, asked.d)[1:], list(alike(draft, READS))):
            yield with_floor(tried, zeros)

    def one_side(draft: Draft) -> Iterator[Draft]:
        for tried in alike(draft, (("keep", "keep"), ("keep", "zero"))):
            yield from one_read(tried)

    def fixed(draft: Draft) -> Iterator[Draft]:
        """Sums in fixed point: products are cut at one place, which may have been taken for zeros."""
        draft = ungated(read_as(all_tiny(draft, "keep", False), READS[0]))
        for role, step in enumerate(draft.steps[:APART]):
            for tried in in_fixed_point(step, asked, FIXED):
                yield draft.with_step(role, tried)

    def another(draft: Draft) -> Iterator[Draft]:
        for tried in with_another_node(draft, asked.d):
            yield from alike(tried, READS[:3])

    first: list[Tier] = [lambda draft: alike(draft, READS[:3]), floored, tiny_products]
    return [*first, lambda draft: alike(draft, READS), one_side, another, fixed, *([differing] if apart else []), every]


def tiny_tier(role: int) -> Tier:
    """Whether the sums of one role are kept or flushed where they are tiny."""
    places: list[Place] = [role, ("leaves", role)]
    places += ["convert"] if role == 0 else []

    def kept_or_flushed(draft: Draft) -> Iterator[Draft]:
        hows = draft.hows()
        for kind in TINIES[:2]:
            yield draft.with_hows({at: tiny(hows[at], *kind) for at in places if at in hows})

    return kept_or_flushed


def refined_tiers(asked: Signature, adding: Sequence[int]) -> list[Tier]:
    """How what is flushed is flushed, where each role is known to keep or to flush what is tiny, and how subnormal
    inputs are read; then products that some steps alone round, where they are tiny."""

    def plain(draft: Draft) -> Iterator[Draft]:
        hows = draft.hows()
        flushed = [place for place, own in hows.items() if own.rounding.subnormals != "keep"]
        for kind, unbounded, reads in product(TINIES[1:4] if flushed else TINIES[1:2], (False, True), READS):
            kinds = {at: kind if at in flushed else ("keep", unbounded) for at in hows}
            yield read_as(draft.with_hows({at: tiny(own, *kinds[at]) for at, own in hows.items()}), reads)

    def begun(draft: Draft) -> Iterator[Draft]:
        """What a sum begins with shows here alone where every product is a number of the format."""
        for start in (*STARTS, *SWAPPED):
            yield from plain(replace(draft, start=start))

    def in_some(draft: Draft) -> Iterator[Draft]:
        some = [frozenset(few) for size in range(1, len(adding)) for few in combinations(adding[:APART], size)]
        for few in some if draft.products is not None and _exact(draft.products, asked) else ():
            yield from begun(replace(draft, unrounded=few))

    return [plain, begun, in_some]


def zero_tiers(kinds: Sequence[str], asked: Signature) -> list[Tier]:
    """The signs of zeros, in tiers."""
    begins: Sequence[Start | None] = (None, "zero", "first") if {"binary", "fused"} & set(kinds) else (None,)

    def signs(draft: Draft) -> Iterator[Draft]:
        draft = ungated(with_negated(draft, frozenset())).with_zeros(positive=False)
        for given, sign, start in product(list(with_signs(draft)), SIGNS, begins):
            tried = given.every_how(partial(with_ends, zero=sign))
            yield tried if start is None else replace(tried, start=start)

    def last(draft: Draft) -> Iterator[Draft]:
        draft = ungated(with_negated(draft, frozenset())).with_zeros(positive=False)
        hows = draft.hows().items()
        for one, other, start in product(SIGNS, SIGNS, begins):
            apart = {place: with_ends(own, zero=one if place == draft.last else other) for place, own in hows}
            tried = draft.with_hows(apart)
            yield tried if start is None else replace(tried, start=start)

    def positive(draft: Draft) -> Iterator[Draft]:
        for tried in signs(draft):
            yield tried.with_zeros(positive=True)

    def negated(draft: Draft) -> Iterator[Draft]:
        """Sums of some steps are subtracted, or the last one changes its sign."""
        roles = range(len(draft.steps))
        some = [frozenset(few) for size in (1, 2) for few in combinations(roles[:APART], size)]
        for tried, few in product(signs(draft), dict.fromkeys([*some, frozenset(roles)])):
            yield with_negated(tried, few)

    def everything(draft: Draft) -> Iterator[Draft]:
        for tried, reads, (kind, unbounded) in product(list(signs(draft)), READS, TINIES):
            yield read_as(all_tiny(tried, kind, unbounded), reads)

    def with_floors(draft: Draft) -> Iterator[Draft]:
        for zeros, tried in product(floors_of(draft, asked.d), list(signs(draft))):
            yield with_floor(tried, zeros)

    def another(draft: Draft) -> Iterator[Draft]:
        """As of products with a zero factor, which are left out, or +0."""
        for tried in signs(draft):
            yield from with_another_node(tried, asked.d)

    return [signs, positive, last, negated, with_floors, another, everything]


def end_tiers(asked: Signature, weights: Weights) -> list[Tier]:
    """What results beyond the largest number become, in tiers."""
    limits = [asked.d.emax + 1, asked.d.emax + 2]

    def alike(draft: Draft) -> Iterator[Draft]:
        for tried, overflow in product(list(at_ends(draft, weights)), OVERFLOW):
            yield tried.every_how(partial(with_ends, overflow=overflow))

    def limited(draft: Draft) -> Iterator[Draft]:
        for tried, limit in product(list(alike(draft)), limits):
            yield with_limit(tried, limit)

    def last(draft: Draft) -> Iterator[Draft]:
        hows = draft.hows().items()
        for one, other in product(OVERFLOW, OVERFLOW):
            apart = {place: with_ends(own, overflow=one if place == draft.last else other) for place, own in hows}
            yield draft.with_hows(apart)

    def another(draft: Draft) -> Iterator[Draft]:
        """As where zero times infinity is zero, or nothing."""
        for tried in last(ungated(draft)):
            yield from with_another_node(tried, asked.d)

    def rests(draft: Draft) -> Iterator[Draft]:
        """What a part leaves of infinities and NaNs."""
        if len(draft.parts.pairs) > 1:
            for tried, rest in product(list(last(draft)), RESTS):
                yield replace(tried, parts=replace(tried.parts, rest=rest))

    return [alike, last, limited, another, rests]


def ungated(draft: Draft) -> Draft:
    """The draft with products of which a zero factor is one as any other."""
    return replace(draft, product=changed(draft.product, Gate, lambda part: part.term))


def with_limit(draft: Draft, limit: int | None) -> Draft:
    """A product of magnitude 2^limit or more is infinite."""
    return replace(draft, product=changed(draft.product, Product, lambda part: replace(part, limit=limit)))


# -- what lies beside


def neighbours(draft: Draft, asked: Signature, weights: Weights) -> Iterator[Draft]:
    """The drafts with one thing changed: what vectors of validation must refute."""
    yield from ordinary_neighbours(draft, asked)
    for zeros in floors_of(draft, asked.d):
        yield with_floor(draft, zeros)
    for place, own in draft.hows().items():
        for other in _other_ends(own):
            yield draft.with_hows({place: other})
    yield from at_ends(draft, weights)
    yield from with_signs(draft)
    yield draft.with_zeros(positive=not draft.c.positive_zeros)
    for rest in RESTS if len(draft.parts.pairs) > 1 else ():
        yield replace(draft, parts=replace(draft.parts, rest=rest))
    for reads in READS:
        yield read_as(draft, reads)
    yield from one_read(draft)


def ordinary_neighbours(draft: Draft, asked: Signature) -> Iterator[Draft]:
    """Those of them that ordinary numbers tell from this draft."""
    for role, step in enumerate(draft.steps):
        for other in (*_other_steps(step, asked), *(_other_leaving(step, asked.d) if role else ())):
            yield draft.with_step(role, other)
    yield from (replace(draft, product=other) for other in varied(draft.product, asked.d))
    for leaves in dict.fromkeys(step.leaves for step in draft.steps):
        if leaves is not None and draft.store is None:
            yield from (replace(draft, store=Store(size, leaves)) for size in sizes(asked))
    for place, own in draft.hows().items():
        for mode in MODES:
            yield draft.with_hows({place: in_mode(own, mode)})
    yield from normalising(draft, asked)
    for start in (*STARTS, *SWAPPED):
        yield replace(draft, start=start)
    for products in of_products(draft):
        yield replace(draft, products=products)
    for role in range(len(draft.steps)) if draft.products is not None else ():
        yield replace(draft, unrounded=draft.unrounded ^ {role})
    for leaf in range(asked.length) if draft.fused else ():
        yield replace(draft, fused=draft.fused ^ {leaf})
    if draft.addend is not None:
        yield replace(draft, addend=None)
    for parts in other_parts(draft.parts):
        yield replace(draft, parts=parts)
    if draft.convert is not None:
        last = draft.steps[0]
        yield replace(draft.with_step(0, replace(last, how=last.how and _in(last.how, asked.d))), convert=None)
        return
    for fmt in INNER:
        if fmt != asked.d:
            steps = tuple(step if step.how is None else replace(step, how=_in(step.how, fmt)) for step in draft.steps)
            yield replace(draft, steps=steps, convert=how(asked.d, draft.hows()[0].rounding.mode))


def _in(own: Round, fmt: Format) -> Round:
    """A rounding to another format."""
    return Round(own.term, replace(own.rounding, format=fmt))


def _other_steps(step: Step, asked: Signature) -> Iterator[Step]:
    yield replace(step, negated=not step.negated)
    yield from (replace(step, sum=other) for other in varied(step.sum, asked.d))
    if step.aligned is None:
        yield from in_fixed_point(step, asked, 1)
        for more in FEWER:
            yield replace(step, sum=fused_sum(step.rounding(asked.d).precision + more))
        return
    yield from (aligning(step, align, sticky=False) for align in MODES)
    if step.how is None and isinstance(step.sum, FusedSum):
        yield replace(step, sum=Cancelling(step.sum))


def _other_leaving(step: Step, d: Format) -> Iterator[Step]:
    """The draft with the result of a role's steps converted where it was not, or not where it was; or not rounded."""
    if step.leaves is not None:
        yield replace(step, leaves=None)
        return
    if step.aligned is None:
        yield replace(step, how=how(d) if step.how is None else None)
    for short in SHORT:
        if short.precision < step.rounding(d).precision:
            yield replace(step, leaves=how(short))
    for wide in ROOMY:
        if wide.precision > step.rounding(d).precision:  # as short, but only where it leaves them
            yield replace(step, how=how(wide) if step.how is None else _in(step.how, wide), leaves=step.how or how(d))


def _other_ends(own: Round) -> Iterator[Round]:
    for kind, unbounded in TINIES:
        yield tiny(own, kind, unbounded)
    for sign in SIGNS:
        yield with_ends(own, zero=sign)
    for overflow in OVERFLOW:
        yield with_ends(own, overflow=overflow)


# -- what says the same


def simplest(draft: Draft, asked: Signature, weights: Weights) -> Draft:
    """The simplest draft that describe the same arithmetic."""
    shifts = [weights.get(k, ADDED)[1] for k in (range(asked.length) if weights else (0,))]
    if draft.products is not None and _always_fits(draft.products, asked, min(shifts), max(shifts)):
        draft = replace(draft, products=None, fused=frozenset(), unshown=draft.unshown - {"products"})
    addend = weights.get("c", ADDED)[1]
    least = _least(draft, asked, min(shifts), addend)
    own = _least(replace(draft, products=None), asked, min(shifts), addend)  # of terms before they are rounded
    largest = max(asked.a.emax + asked.b.emax + max(0, *shifts), asked.c.emax + max(0, addend)) + 2
    most = largest + (asked.length + 1).bit_length() + 2  # no sum is as large as 2^most, however often it is rounded
    if asked.scale is not None:
        least, own, most = -ANY, -ANY, ANY
    hows = draft.hows().items()
    return draft.with_hows({at: _simplest(x, own if at in TERMS_ROUNDED else least, most) for at, x in hows})


def _exact(own: Round, asked: Signature) -> bool:
    """Whether a product that is rounded so is the exact one, unless it is tiny or infinite."""
    return asked.a.precision + asked.b.precision <= min(own.rounding.format.precision, bits_of(own) or 64)


def _always_fits(own: Round, asked: Signature, low: int, high: int) -> bool:
    fmt = own.rounding.format
    return (
        _exact(own, asked)
        and unit_of(asked.a) + unit_of(asked.b) + low >= unit_of(fmt)
        and asked.a.emax + asked.b.emax + high + 1 < fmt.emax
    )


def _simplest(own: Round, least: int, most: int) -> Round:
    """`least`, `most`: what is rounded is zero or at least 2^least, a multiple of it, and less than 2^most."""
    given, fmt = own.rounding, own.rounding.format
    if most <= fmt.emax or (given.overflow == "infinity" and given.mode in NEAREST):
        own = with_ends(own, overflow="ieee")  # which prescribes infinity for these
    exact = least >= unit_of(fmt)  # tiny results are
    unbounded = bits_of(own) == fmt.precision
    if least >= fmt.emin:
        return tiny(own, "keep", False)
    if given.subnormals == "keep":  # rounded twice in one direction, or to odd, is rounded once
        return tiny(own, "keep", False) if unbounded and (exact or given.mode not in NEAREST) else own
    if (unbounded or given.subnormals == "flush_after") and (exact or given.mode in NEVER_UP):
        return tiny(own, "flush_before", False)  # no rounded result reaches the least normal number from below
    return own


def _least(draft: Draft, asked: Signature, shift: int, addend: int) -> int:
    """The exponent of the last place that any term has. `shift`, `addend`: the least powers of two with which products
    count, and that of c."""
    rounded = draft.products
    least = unit_of(asked.a) + unit_of(asked.b) + min(shift, 0 if draft.scaled == "sums" else shift)
    if rounded is not None and not draft.unrounded and not draft.fused:
        least = max(least, unit_of(rounded.rounding.format))
    return min(least, unit_of(asked.c) + min(addend, 0)) if asked.addend else least
