"""Drafts to try once the steps of a tree are decided: tiers for products and for the smallest and largest numbers; and
the neighbours of a draft."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence, Set
from dataclasses import replace
from functools import partial
from itertools import combinations, product
from typing import Any

from mmaprobe.queries.building import likely
from mmaprobe.queries.building.draft import (
    FACTORS,
    Draft,
    Place,
    Reads,
    Start,
    Step,
    Store,
    changed,
    first_bits,
    in_mode,
    round_by,
    round_to,
    with_rounding,
)
from mmaprobe.queries.building.draft import fused as fused_sum
from mmaprobe.queries.building.likely import MODES, varied_expressions
from mmaprobe.queries.building.parts import (
    RESTS,
    Parts,
    Reading,
    drafts_of_parts,
    other_parts,
    read_once,
    uneven_parts,
)
from mmaprobe.queries.building.steps import (
    FIXED,
    Tier,
    in_fixed_point,
    short_addends,
    store_periods,
    with_alignment,
    with_another_node,
)
from mmaprobe.queries.building.weights import ADDED, Weights
from mmaprobe.smtmodel.arithmetic.formats import FORMATS, Format
from mmaprobe.smtmodel.arithmetic.rounding import NEAREST, Mode
from mmaprobe.smtmodel.inputs.signature import Signature
from mmaprobe.smtmodel.nodes import Cancelling, FusedSum, Gate, Node, Product, Round
from mmaprobe.smtmodel.nodes.round import Rounding, Tiny

TERMS_ROUNDED: tuple[Place, ...] = ("products", "addend")  # roundings of terms before they are added
ANY = 1 << 16  # beyond every exponent
NEVER_UP = frozenset(("toward_zero", "to_odd"))  # modes in which no result reaches the next power of two
APART = 4  # the most roles whose subsets are tried, for instance as the roles that round products


Axis = Callable[[Draft], Iterable[Draft]]  # gives variants of a draft: one for each of some values of one part


def tier_of(*axes: Axis) -> Tier:
    """The tier of all combinations of the axes' values; the last axis changes first."""

    def tier(draft: Draft) -> Iterable[Draft]:
        drafts: Iterable[Draft] = [draft]
        for axis in axes:
            drafts = [other for one in drafts for other in axis(one)]
        return drafts

    return tier


def starts_axis(starts: Iterable[Start]) -> Axis:
    return lambda draft: (replace(draft, start=start) for start in starts)


def parts_axis(parts: Iterable[Parts]) -> Axis:
    every = list(parts)
    return lambda draft: (replace(draft, parts=part) for part in every)


# -- products


def product_tiers(
    kinds: Sequence[str], asked: Signature, adders: Sequence[int], fused: Callable[[], frozenset[int]] = frozenset
) -> list[Tier]:
    """The tiers of products: the start of a sum of two products, and the rounding of products before they are added.
    `adders`: the roles of the steps that add products. `fused`: asks the device which products are fused into the
    addition while other products are rounded before it."""
    binary = "binary" in kinds
    starts: Sequence[Start] = likely.STARTS if binary else likely.STARTS[:1]
    start_axis, first = starts_axis(starts), starts_axis(starts[:1])
    plain = [round_to(fmt) for fmt in (asked.d, *likely.INNER)]

    def rounding(draft: Draft, roundings: Iterable[Round | None]) -> Iterator[Draft]:
        for own in roundings:
            changed = replace(draft, products=own)
            hidden = own is not None and _exact(own, asked)
            yield replace(changed, unshown=changed.unshown | {"products"}) if hidden else changed

    def known(draft: Draft) -> Iterator[Draft]:
        """Products with the roundings of the sums. A rounding that changes only tiny or infinite products is tried in
        one mode for each format."""
        every = product_roundings(draft)
        exact = {own.rounding.format: own for own in reversed(every) if own is not None and _exact(own, asked)}
        roundings = (own for own in every if own is None or exact.get(own.rounding.format, own) == own)
        return rounding(draft, roundings)

    def other(draft: Draft) -> Iterator[Draft]:
        every = (in_mode(own, mode) for own in plain for mode in (MODES[:1] if _exact(own, asked) else MODES))
        return rounding(draft, dict.fromkeys(every))

    def in_some(draft: Draft) -> Iterator[Draft]:
        """Some roles add exact products and other roles rounded products, as in a loop of fused steps with steps left
        over."""
        for few in some_of(adders) if draft.products is not None else ():
            yield replace(draft, unrounded=few)

    def one_by_one(draft: Draft) -> Iterator[Draft]:
        """Some single products are exact and all others rounded, in steps of any role."""
        if draft.products is not None and (few := fused()):
            yield replace(draft, fused=few)

    def shortened(draft: Draft) -> Iterator[Draft]:
        for bits, mode in product(range(2, asked.a.precision + asked.b.precision), MODES):
            yield replace(draft, products=round_to(asked.d if bits <= asked.d.precision else likely.WIDE, mode, bits))

    def read_apart(draft: Draft) -> Iterator[Draft]:
        for mode in likely.DIRECT:
            pairs = product(_readings(asked.a, mode), _readings(asked.b, mode))
            yield from tier_of(start_axis, parts_axis(read_once(*pair) for pair in pairs))(draft)

    def addend(draft: Draft) -> Iterator[Draft]:
        """c rounded to a shorter format, or to fewer bits than its own format has."""
        fewer = (round_to(asked.c, mode, bits) for bits, mode in product(range(2, asked.c.precision), MODES))
        yield from (replace(draft, addend=own) for own in (*short_addends(asked), *fewer))

    def normalised(draft: Draft) -> Iterable[Draft]:
        """Drafts with normalised products; if steps align terms, also with all terms, or with subnormal factors,
        normalised."""
        return list(normalising(draft, asked))[1 : None if draft.fuses else 2]

    def in_parts(several: bool, kept: bool = False) -> Tier:
        """The tier of products of parts. Its many drafts are listed only when the tier is tried."""
        ends = starts_axis(dict.fromkeys((starts[0], starts[-1])))
        return lambda draft: tier_of(ends, parts_axis(drafts_of_parts(asked, several, kept)))(draft)

    both = (Reading(bits, mode) for bits, mode in product(range(2, asked.a.precision), MODES))
    narrow = [tier_of(parts_axis(read_once(way, way) for way in both), known, start_axis)]
    tiers = [tier_of(known, start_axis)]
    if binary:
        swapped = starts_axis(likely.SWAPPED)
        tiers.append(tier_of(swapped, lambda draft: (replace(draft, products=own) for own in product_roundings(draft))))
    tiers += [tier_of(known, start_axis, in_some)] if len(adders) > 1 else []
    tiers += [tier_of(known, start_axis, one_by_one)] if binary else []
    tiers += [tier_of(start_axis, normalised), *([addend] if asked.addend else []), in_parts(False, kept=True)]
    tiers += [tier_of(other, starts_axis(starts[:2])), tier_of(first, shortened)]
    tiers += narrow if 2 < asked.a.precision == asked.b.precision else []
    tiers += [read_apart, in_parts(False), in_parts(True)]
    return [*tiers, lambda draft: parts_axis(uneven_parts(asked))(draft), partial(with_another_node, d=asked.d)]


def some_of(roles: Sequence[int]) -> list[frozenset[int]]:
    """The proper, nonempty subsets of the first APART roles."""
    return [frozenset(few) for size in range(1, len(roles)) for few in combinations(roles[:APART], size)]


def normalising(draft: Draft, asked: Signature) -> Iterator[Draft]:
    """Drafts in which some numbers enter an alignment with the exponent of their leading bit, instead of the exponent
    that the format, or the factors of a product, give. These numbers are in turn: none; products; all terms; subnormal
    factors; subnormal factors, c and running sums."""

    def with_product(form: Callable[[Node, Node], Product], counted: bool = False) -> Draft:
        varied = changed(draft.product, Product, lambda part: replace(form(*FACTORS), limit=part.limit))
        return replace(draft, product=varied, counted=counted)

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
    """A format in which the subnormal numbers of another format are normal; None if there is none."""
    every = (wider for wider in likely.ROOMY if wider.emin <= fmt.unit and wider.holds(fmt))
    return next(every, None)


def product_roundings(draft: Draft) -> list[Round | None]:
    """Likely roundings of products: none, and those of the sums."""
    roundings = [own for step in draft.steps for own in (step.round, step.leaves) if own is not None]
    return [None, *dict.fromkeys(roundings)]


def _readings(fmt: Format, mode: Mode) -> list[Reading | None]:
    """The roundings of an input that is read to fewer bits; None: the input is read in full."""
    known = range(2, fmt.precision) if fmt.precision <= FORMATS["f16"].precision else likely.READ_BITS
    return [None, *(Reading(bits, mode) for bits in known if bits < fmt.precision)]


# -- the ends of the range


def with_tiny(own: Round, kind: Tiny, unbounded: bool) -> Round:
    """The rounding with another treatment of tiny results; `unbounded`: whether values are first rounded with unbounded
    exponent, unless `own` first rounds to another number of bits."""
    precision, changed = own.rounding.format.precision, with_rounding(own, subnormals=kind)
    if first_bits(own) in (None, precision):
        return round_by(changed.rounding, precision if unbounded else None)
    return changed


def one_factor_flushed(draft: Draft) -> list[Draft]:
    """The drafts in which subnormals of one factor alone are read as zero."""
    return [draft.read_as("zero", "keep", draft.c.subnormals), draft.read_as("keep", "zero", draft.c.subnormals)]


def with_ends_of(draft: Draft, like: Draft) -> Draft:
    """A draft with the treatment of tiny results, zeros and overflow of the draft `like`."""
    ends, last = like.roundings(), like.roundings()[like.last]

    def ended(own: Round, given: Round) -> Round:
        parameters = given.rounding
        tiny = with_tiny(own, parameters.subnormals, first_bits(given) == parameters.format.precision)
        return with_rounding(tiny, zero=parameters.zero, overflow=parameters.overflow)

    draft = draft.with_roundings({place: ended(own, ends.get(place, last)) for place, own in draft.roundings().items()})
    floor = {step.aligned.zeros for step in like.steps if step.aligned is not None}
    return with_floor(draft, floor.pop()) if len(floor) == 1 else draft


def with_floor(draft: Draft, zeros: int | None) -> Draft:
    """The draft in which zero terms have the exponent `zeros` in every fused sum."""
    return draft.with_sums(lambda root: changed(root, FusedSum, partial(replace, zeros=zeros)))


def with_negated(draft: Draft, roles: Set[int]) -> Draft:
    """The draft in which the sums of these roles, and of no others, have their signs changed."""
    steps = tuple(replace(step, negated=role in roles) for role, step in enumerate(draft.steps))
    return replace(draft, steps=steps)


def with_floors(draft: Draft, d: Format, first: int = 0) -> Iterator[Draft]:
    """Drafts with each of the likely exponents of zero terms, from index `first` on."""
    floors: Sequence[int | None] = likely.zero_floors(d) if draft.fuses else (None,)
    return (with_floor(draft, zeros) for zeros in floors[first:])


def at_ends(draft: Draft, weights: Weights) -> Iterator[Draft]:
    """Drafts that differ only at the ends of the range: in whether terms or sums are multiplied by powers of two; in
    whether c is rounded after such a multiplication; in the bits that a segment takes of subnormal numbers."""
    multiplies = any(shift for _, shift in weights.values())
    addends = [draft.addend, None] if draft.addend is not None else [None]
    for leading in (True, False) if draft.parts.kept else (draft.parts.leading,):
        changed = replace(draft, parts=replace(draft.parts, leading=leading))
        for scaled, addend in product(likely.SCALED, addends) if multiplies else ():
            yield replace(changed, scaled=scaled, addend=addend)
        if not multiplies:
            yield changed


def with_signs(draft: Draft) -> Iterator[Draft]:
    """The drafts with each sign of zero segments; if products are not of segments, the draft itself."""
    for positive in (True, False) if draft.parts.kept else (draft.parts.positive,):
        yield replace(draft, parts=replace(draft.parts, positive=positive))


def reading_axis(ways: Sequence[Reads]) -> Axis:
    """The axis of the ways in which subnormal factors and a subnormal c are read."""
    return lambda draft: (draft.read_as(factors, factors, c) for factors, c in ways)


def every_tiny(draft: Draft) -> Iterator[Draft]:
    """Each treatment of tiny results, the same in every rounding."""
    return (
        draft.with_each_rounding(partial(with_tiny, kind=kind, unbounded=unbounded))
        for kind, unbounded in likely.TINIES
    )


def each_rounding(parameter: str, values: Sequence[Any]) -> Axis:
    """The axis of a parameter of roundings with the same value in every rounding."""
    return lambda draft: (draft.with_each_rounding(partial(with_rounding, **{parameter: value})) for value in values)


def last_rounding(parameter: str, values: Sequence[Any]) -> Axis:
    """The axis of a parameter of roundings with one value in the last rounding, and one in all other roundings."""

    def axis(draft: Draft) -> Iterator[Draft]:
        for last, rest in product(values, values):
            roundings = draft.roundings().items()
            apart = {at: with_rounding(own, **{parameter: last if at == draft.last else rest}) for at, own in roundings}
            yield draft.with_roundings(apart)

    return axis


def tiny_tiers(asked: Signature, weights: Weights, apart: bool) -> list[Tier]:
    """The tiers for the treatment of subnormal numbers in inputs and results. `apart`: whether each rounding may treat
    tiny results in its own way."""

    def differing(draft: Draft) -> Iterator[Draft]:
        roundings = draft.roundings()
        groups = [[place] for place in roundings]
        if len(roundings) > 4:  # one treatment for the last rounding, and one for all others
            groups = [[draft.last], [place for place in roundings if place != draft.last]]
        for kinds in product(likely.TINIES[:4], repeat=len(groups)):
            chosen = {place: kind for group, kind in zip(groups, kinds, strict=True) for place in group}
            yield draft.with_roundings({place: with_tiny(own, *chosen[place]) for place, own in roundings.items()})

    def tiny_products(draft: Draft) -> Iterator[Draft]:
        """Products are rounded, which changes only tiny products: all others are numbers of the format."""
        for mode in MODES if _exact(round_to(asked.d), asked) else ():
            yield replace(draft, products=round_to(asked.d, mode))

    def fixed(draft: Draft) -> Iterator[Draft]:
        """Sums in fixed point, which cut products at one place, so that small products count as zeros."""
        draft = without_gates(
            draft.with_each_rounding(partial(with_tiny, kind="keep", unbounded=False)).read_as("keep", "keep", "keep")
        )
        for role, step in enumerate(draft.steps[:APART]):
            yield from (draft.with_step(role, tried) for tried in in_fixed_point(step, asked, FIXED))

    ends, few, every = partial(at_ends, weights=weights), reading_axis(likely.READS[:3]), reading_axis(likely.READS)
    floored = partial(with_floors, d=asked.d, first=1)
    exact_factors = reading_axis([("keep", "keep"), ("keep", "zero")])
    return [
        tier_of(ends, few, every_tiny),
        tier_of(floored, few),
        tier_of(tiny_products, ends, few, every_tiny),
        tier_of(ends, every, every_tiny),
        tier_of(ends, exact_factors, every_tiny, one_factor_flushed),
        tier_of(partial(with_another_node, d=asked.d), ends, few, every_tiny),
        fixed,
        *([tier_of(differing, every)] if apart else []),
        tier_of(partial(normalising, asked=asked), floored),
        tier_of(floored, ends, every, every_tiny),
    ]


def tiny_tier(role: int) -> Tier:
    """The tier that keeps or flushes tiny sums of one role."""
    places: tuple[Place, ...] = (role, ("leaves", role)) if role else (role, ("leaves", role), "convert")

    def kept_or_flushed(draft: Draft) -> Iterator[Draft]:
        roundings = draft.roundings()
        for kind in likely.TINIES[:2]:
            yield draft.with_roundings({at: with_tiny(roundings[at], *kind) for at in places if at in roundings})

    return kept_or_flushed


def refined_tiers(asked: Signature, adders: Sequence[int]) -> list[Tier]:
    """The tiers for a tree of which it is known which roles keep and which flush tiny sums. They try the ways of
    flushing, the reading of subnormal inputs, and the roles that round tiny products. They also try the starts of sums,
    as these show only here if every other product is a number of the format."""

    def flushing(draft: Draft) -> Iterator[Draft]:
        roundings = draft.roundings()
        flushed = [place for place, own in roundings.items() if own.rounding.subnormals != "keep"]
        for kind, unbounded in product(likely.TINIES[1:4] if flushed else likely.TINIES[1:2], (False, True)):
            kinds = {at: kind if at in flushed else ("keep", unbounded) for at in roundings}
            yield draft.with_roundings({at: with_tiny(own, *kinds[at]) for at, own in roundings.items()})

    def in_some(draft: Draft) -> Iterator[Draft]:
        for few in some_of(adders) if draft.products is not None and _exact(draft.products, asked) else ():
            yield replace(draft, unrounded=few)

    plain, start_axis = (flushing, reading_axis(likely.READS)), starts_axis((*likely.STARTS, *likely.SWAPPED))
    return [tier_of(*plain), tier_of(start_axis, *plain), tier_of(in_some, start_axis, *plain)]


def zero_tiers(kinds: Sequence[str], asked: Signature) -> list[Tier]:
    """The tiers for the signs of zeros."""

    def plain(draft: Draft) -> list[Draft]:
        return [without_gates(with_negated(draft, frozenset())).with_zeros(positive=False)]

    def begun(draft: Draft) -> Iterator[Draft]:
        yield draft
        if {"binary", "fused"} & set(kinds):
            yield from starts_axis(("zero", "first"))(draft)

    def negated(draft: Draft) -> Iterator[Draft]:
        """The sums of one or two roles, or of all roles, have their signs changed."""
        roles = range(len(draft.steps))
        some = [frozenset(few) for size in (1, 2) for few in combinations(roles[:APART], size)]
        yield from (with_negated(draft, few) for few in dict.fromkeys([*some, frozenset(roles)]))

    signs = plain, with_signs, each_rounding("zero", likely.SIGNS), begun
    return [
        tier_of(*signs),
        tier_of(*signs, lambda draft: [draft.with_zeros(positive=True)]),
        tier_of(plain, last_rounding("zero", likely.SIGNS), begun),
        tier_of(*signs, negated),
        tier_of(partial(with_floors, d=asked.d), *signs),
        tier_of(*signs, partial(with_another_node, d=asked.d)),  # such as a gate, for products with a zero factor
        tier_of(*signs, reading_axis(likely.READS), every_tiny),
    ]


def end_tiers(asked: Signature, weights: Weights) -> list[Tier]:
    """The tiers for results beyond the largest number."""

    def limited(draft: Draft) -> Iterator[Draft]:
        yield from (with_limit(draft, limit) for limit in (asked.d.emax + 1, asked.d.emax + 2))

    alike = partial(at_ends, weights=weights), each_rounding("overflow", likely.OVERFLOW)
    last = last_rounding("overflow", likely.OVERFLOW)
    another = partial(with_another_node, d=asked.d)  # such as a gate, for which zero times infinity is zero
    return [
        tier_of(*alike),
        tier_of(*alike, limited),
        last,
        tier_of(lambda draft: [without_gates(draft)], last, another),
        tier_of(last, with_rests),
    ]


def with_rests(draft: Draft) -> Iterator[Draft]:
    """Drafts with each remainder that an infinity or a NaN leaves when a part is subtracted from it."""
    for rest in RESTS if len(draft.parts.pairs) > 1 else ():
        yield replace(draft, parts=replace(draft.parts, rest=rest))


def without_gates(draft: Draft) -> Draft:
    """The draft without gates around its products."""
    return replace(draft, product=changed(draft.product, Gate, lambda part: part.term))


def with_limit(draft: Draft, limit: int | None) -> Draft:
    """The draft in which products of magnitude 2^limit or more are infinite."""
    return replace(draft, product=changed(draft.product, Product, partial(replace, limit=limit)))


# -- neighbours


def neighbours(draft: Draft, asked: Signature, weights: Weights) -> Iterator[Draft]:
    """The drafts with one choice changed, which vectors of validation must refute."""
    yield from ordinary_neighbours(draft, asked)
    yield from with_floors(draft, asked.d)
    for place, own in draft.roundings().items():
        for other in _other_ends(own):
            yield draft.with_roundings({place: other})
    yield from at_ends(draft, weights)
    yield from with_signs(draft)
    yield draft.with_zeros(positive=not draft.c.positive_zeros)
    yield from with_rests(draft)
    yield from reading_axis(likely.READS)(draft)
    yield from one_factor_flushed(draft)


def ordinary_neighbours(draft: Draft, asked: Signature) -> Iterator[Draft]:
    """The neighbours that differ from the draft on ordinary numbers."""
    for role, step in enumerate(draft.steps):
        for other in (*_other_steps(step, asked), *(_other_conversions(step, asked.d) if role else ())):
            yield draft.with_step(role, other)
    yield from (replace(draft, product=other) for other in varied_expressions(draft.product, asked.d))
    for leaves in dict.fromkeys(step.leaves for step in draft.steps):
        if leaves is not None and draft.store is None:
            yield from (replace(draft, store=Store(size, leaves)) for size in store_periods(asked))
    for place, own in draft.roundings().items():
        for mode in MODES:
            yield draft.with_roundings({place: in_mode(own, mode)})
    yield from normalising(draft, asked)
    yield from starts_axis((*likely.STARTS, *likely.SWAPPED))(draft)
    for products in product_roundings(draft):
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
        yield replace(draft.with_step(0, _in_format(draft.steps[0], asked.d)), convert=None)
        return
    for fmt in likely.INNER:
        if fmt != asked.d:
            steps = tuple(_in_format(step, fmt) for step in draft.steps)
            yield replace(draft, steps=steps, convert=round_to(asked.d, draft.roundings()[0].rounding.mode))


def _in_format(step: Step, fmt: Format) -> Step:
    """The step whose sum, if it is rounded, is rounded to another format."""
    return step if step.round is None else replace(step, round=with_rounding(step.round, format=fmt))


def _other_steps(step: Step, asked: Signature) -> Iterator[Step]:
    yield replace(step, negated=not step.negated)
    yield from (replace(step, sum=other) for other in varied_expressions(step.sum, asked.d))
    if step.aligned is None:
        yield from in_fixed_point(step, asked, 1)
        for more in likely.FEWER:
            yield replace(step, sum=fused_sum(step.result_format(asked.d).precision + more))
        return
    yield from (with_alignment(step, align, sticky=False) for align in MODES)
    if step.round is None and isinstance(step.sum, FusedSum):
        yield replace(step, sum=Cancelling(step.sum))


def _other_conversions(step: Step, d: Format) -> Iterator[Step]:
    """Steps whose result is passed to steps of other roles in another way: without its conversion; for a step without a
    conversion, with a conversion, or with the rounding of the sum added or left out."""
    if step.leaves is not None:
        yield replace(step, leaves=None)
        return
    if step.aligned is None:
        yield replace(step, round=round_to(d) if step.round is None else None)
    for short in likely.SHORT:
        if short.precision < step.result_format(d).precision:
            yield replace(step, leaves=round_to(short))
    for wide in likely.ROOMY:
        if wide.precision > step.result_format(d).precision:  # rounded as before where another role adds it, else wide
            own = step.round or round_to(d)
            yield replace(step, round=with_rounding(own, format=wide), leaves=own)


def _other_ends(own: Round) -> Iterator[Round]:
    for kind, unbounded in likely.TINIES:
        yield with_tiny(own, kind, unbounded)
    for sign in likely.SIGNS:
        yield with_rounding(own, zero=sign)
    for overflow in likely.OVERFLOW:
        yield with_rounding(own, overflow=overflow)


# -- simplification


def simplest(draft: Draft, asked: Signature, weights: Weights) -> Draft:
    """The simplest draft of the same arithmetic."""
    shifts = [weights.get(k, ADDED)[1] for k in (range(asked.length) if weights else (0,))]
    if draft.products is not None and _always_fits(draft.products, asked, min(shifts), max(shifts)):
        draft = replace(draft, products=None, fused=frozenset(), unshown=draft.unshown - {"products"})
    addend = weights.get("c", ADDED)[1]
    least = _least(draft, asked, min(shifts), addend)
    own = _least(replace(draft, products=None), asked, min(shifts), addend)  # the last place of terms not rounded yet
    largest = max(asked.a.emax + asked.b.emax + max(0, *shifts), asked.c.emax + max(0, addend)) + 2
    most = largest + (asked.length + 1).bit_length() + 2  # every sum, however often rounded, is less than 2^most
    if asked.scale is not None:
        least, own, most = -ANY, -ANY, ANY
    roundings = draft.roundings().items()
    return draft.with_roundings({at: _simplest(x, own if at in TERMS_ROUNDED else least, most) for at, x in roundings})


def _exact(own: Round, asked: Signature) -> bool:
    """Whether the rounding changes only products that are tiny or infinite."""
    return asked.a.precision + asked.b.precision <= min(own.rounding.format.precision, first_bits(own) or 64)


def _always_fits(own: Round, asked: Signature, low: int, high: int) -> bool:
    fmt = own.rounding.format
    return (
        _exact(own, asked)
        and asked.a.unit + asked.b.unit + low >= fmt.unit
        and asked.a.emax + asked.b.emax + high + 1 < fmt.emax
    )


def _simplest(own: Round, least: int, most: int) -> Round:
    """The simplest rounding of values that are less than 2^most, and zero or multiples of 2^least."""
    given, fmt = own.rounding, own.rounding.format
    if most <= fmt.emax or (given.overflow == "infinity" and given.mode in NEAREST):
        own = with_rounding(own, overflow="ieee")  # "ieee" gives infinity in these modes
    exact = least >= fmt.unit  # whether tiny results are exact
    unbounded = first_bits(own) == fmt.precision
    if least >= fmt.emin:
        return with_tiny(own, "keep", False)
    if given.subnormals == "keep":  # rounding twice in one direction, or twice to odd, is one rounding
        return with_tiny(own, "keep", False) if unbounded and (exact or given.mode not in NEAREST) else own
    if (unbounded or given.subnormals == "flush_after") and (exact or given.mode in NEVER_UP):
        return with_tiny(own, "flush_before", False)  # no smaller value is rounded to the least normal number
    return own


def _least(draft: Draft, asked: Signature, shift: int, addend: int) -> int:
    """The exponent of the last place of any term. `shift`, `addend`: the least exponents of the powers of two by which
    products, and c, are multiplied."""
    rounded = draft.products
    least = asked.a.unit + asked.b.unit + min(shift, 0 if draft.scaled == "sums" else shift)
    if rounded is not None and not draft.unrounded and not draft.fused:
        least = max(least, rounded.rounding.format.unit)
    return min(least, asked.c.unit + min(addend, 0)) if asked.addend else least
