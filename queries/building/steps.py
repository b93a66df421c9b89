"""Drafts to try for the steps of one role (the steps of a sum with the same arithmetic, roles.py): ways to add and
round, in tiers. A tier gives the drafts to try in place of one draft. Tiers with the arithmetic of published units come
first."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import product

from mmaprobe.queries.building import likely
from mmaprobe.queries.building.draft import (
    OTHERS,
    PRODUCTS,
    TERMS,
    Draft,
    Hole,
    Step,
    Store,
    fused,
    in_mode,
    round_to,
    with_node,
)
from mmaprobe.queries.building.likely import MODES, with_inserted_node
from mmaprobe.queries.building.templates import LIKELY, ORDER, TEMPLATES, Template, all_bits
from mmaprobe.smtmodel.arithmetic.formats import Format, format_named
from mmaprobe.smtmodel.arithmetic.rounding import Mode
from mmaprobe.smtmodel.inputs.signature import Signature
from mmaprobe.smtmodel.nodes import Cancelling, Cut, ExactSum, FusedSum, Round
from mmaprobe.smtmodel.nodes.round import Rounding

Tier = Callable[[Draft], Iterable[Draft]]
Way = tuple[Mode, bool]  # how a fused sum cuts its terms: the mode, and whether it has a sticky bit
PLAIN: Sequence[Way] = (("toward_zero", False), ("toward_zero", True))
ROUNDED: Sequence[Way] = [way for way in likely.ALIGNED if way not in PLAIN]
SMALL = 8  # the most products of a sum of unknown order for which every tier is tried
LONGEST = 128  # bits of an accumulator of products in fixed point
LONGER = 6  # the most bits that a rounded sum of products has beyond the result, or that its rounding removes
FIXED = 40  # the most places above the last place of products at which fixed point may cut them


@dataclass(frozen=True)
class StepAxes:
    """The drafts to try for the steps of a role; for the last step, whose role is 0, also the conversions of its
    result. Each tier, made by a method or from a template, takes a draft in which the steps above, those of lower
    roles, are decided."""

    kind: str
    role: int
    asked: Signature
    seen: Callable[[], int] = lambda: 0  # significant bits of the results so far
    lanes: Sequence[frozenset[int]] = ()  # products that may be a lane of a fused step, if K is small
    adds_c: bool = False  # whether one of the steps adds c
    alone: bool = False  # whether only products are nonzero, without the terms that join their sum

    @property
    def others(self) -> list[Format]:
        """The formats of inner sums, without the result's."""
        return [fmt for fmt in likely.INNER if fmt != self.asked.d]

    def tiers(self, quick: bool = False) -> list[Tier]:
        """The tiers in order, each tried if earlier tiers have no candidate. `quick`: whether only the first tiers,
        which have most units, are given."""
        few, short = self.asked.length <= SMALL, self.asked.d.precision < likely.ROOMY[0].precision
        special = ", few" if self.kind == "any" and few else ", alone" if self.alone else ""
        names = list(ORDER[self.kind + special])
        if self.kind == "any" and self.asked.d.precision < self.others[0].precision:
            names.append("roomier_fused")
        if self.kind == "fused" and short:  # a short result hardly shows whether sums are kept in f32 or exact
            names.remove("unrounded")
            names.insert(names.index("fused_roomier") + 1, "unrounded")
        return [*map(self.tier, names[: LIKELY[self.kind]] if quick else names)]

    def tier(self, name: str) -> Tier:
        """The tier of a template or of a method, by name."""
        if name in TEMPLATES:
            return partial(self.of_template, TEMPLATES[name])
        chosen: Tier = getattr(self, name)
        return chosen

    def of_template(self, template: Template, draft: Draft) -> Iterator[Draft]:
        """The drafts with each step of a template."""
        d = self.asked.d
        formats = {
            "own": lambda: self.own(draft),
            "result": lambda: [d],
            "roomier": lambda: self.others[:1],
            "others": lambda: self.others,
            "roomy": lambda: [fmt for fmt in self.others if fmt in likely.ROOMY],
            "wide": lambda: [likely.WIDE],
            "shorter": lambda: self.shorter,
        }[template.formats]()
        for step, modes in template.steps(formats, d):
            yield from self.converted(draft, step, modes) if template.convert else [self.step(draft, step)]

    def step(self, draft: Draft, step: Step) -> Draft:
        """The draft with this step for the role."""
        return draft.with_step(self.role, step)

    def converted(self, draft: Draft, step: Step, modes: Sequence[Mode] = MODES) -> Iterator[Draft]:
        """The step itself; the last step of a unit with a conversion of its result where d has another format."""
        converted, d, fmt = self.step(draft, step), self.asked.d, step.result_format(self.asked.d)
        if self.role:
            yield converted
            return
        if fmt.width == d.width:
            yield replace(converted, convert=None)
        if fmt.precision > d.precision:
            yield from (replace(converted, convert=round_to(d, mode)) for mode in dict.fromkeys(modes))
            return
        converted = replace(converted, convert=round_to(d))
        exact = fmt.unit >= d.unit and fmt.emax <= d.emax
        yield converted if exact else replace(converted, unshown=converted.unshown | {"convert"})

    def own(self, draft: Draft) -> list[Format]:
        """The formats of the result, and of the steps above."""
        return list(
            dict.fromkeys([self.asked.d, *(step.result_format(self.asked.d) for step in draft.steps[: self.role])])
        )

    def decided(self, draft: Draft) -> Iterator[Draft]:
        """The arithmetic of one of the steps above."""
        for role, step in enumerate(draft.steps[: self.role]):
            if step not in draft.steps[:role] and (self.kind != "fused" or step.aligned is not None):
                drafts = self.step(draft, step)
                hidden = role in draft.unshown
                yield replace(drafts, unshown=drafts.unshown | {self.role}) if hidden else drafts

    def decided_otherwise(self, draft: Draft) -> Iterator[Draft]:
        """The fraction bits of a fused step above, with another rounding of terms, or of the sum."""
        above = [(step, step.round) for step in draft.steps[: self.role] if step.aligned is not None and step.round]
        others = (
            replace(with_alignment(step, align, sticky), round=in_mode(rounding, mode))
            for (step, rounding), (align, sticky), mode in product(above, likely.ALIGNED, MODES)
        )
        for step in dict.fromkeys(others):
            yield self.step(draft, step)

    def whole(self, draft: Draft) -> Iterator[Draft]:
        """Exact sums, which another step adds without rounding."""
        if self.role:
            yield self.step(draft, Step(None))

    def other_format(self, draft: Draft) -> Iterator[Draft]:
        """Exact sums rounded to an inner format other than the result's, in this step alone or in others too."""
        for fmt, mode in product(self.others, MODES):
            for tried in self.converted(draft, Step(round_to(fmt, mode))):
                yield tried
                yield from with_above(tried, self.role, self.asked)
                if fmt.emin > self.asked.d.emin:  # sums of the steps below may be tiny in this format
                    yield from (with_below(tried, self.role, Step(round_to(fmt, below))) for below in MODES)

    def leaving(self, draft: Draft, modes: Sequence[Mode] = MODES) -> Iterator[Draft]:
        """Steps whose result is converted before another step adds it."""
        for fmt, mode, short in product(dict.fromkeys((*self.own(draft), *likely.ROOMY)), modes, likely.SHORT):
            if self.role and short.precision < fmt.precision:
                for last in dict.fromkeys((mode, MODES[0])):
                    yield self.step(draft, Step(round_to(fmt, mode), leaves=round_to(short, last)))

    def leaving_nearest(self, draft: Draft) -> Iterator[Draft]:
        """As `leaving`, with sums rounded to nearest, ties to even."""
        yield from self.leaving(draft, MODES[:1])

    def stored(self, draft: Draft) -> Iterator[Draft]:
        """The running sum of the chain that ends here is rounded once more after every few steps."""
        for fmt, short, mode, size in product(likely.ROOMY, likely.SHORT, likely.DIRECT, store_periods(self.asked)):
            for tried in self.converted(draft, Step(round_to(fmt)), MODES[:1]):
                yield replace(tried, store=Store(size, round_to(short, mode)))

    def fixed(self, draft: Draft) -> Iterator[Draft]:
        """The accumulator is in fixed point, with so high a last place that ordinary terms, products or c, are cut."""
        for mode in MODES:
            yield from (
                self.step(draft, tried)
                for tried in in_fixed_point(Step(round_to(self.asked.d, mode)), self.asked, FIXED)
            )

    def fixed_products(self, draft: Draft) -> Iterator[Draft]:
        """Products alone are cut at one place, and c joins their sum; or the sum is rounded again at the end."""
        for mode in MODES:
            step = Step(round_to(self.asked.d, mode))
            joined = in_fixed_point(step, self.asked, FIXED, alone=True) if self.adds_c else ()
            yield from (self.step(draft, tried) for tried in joined)
        for fmt, mode in product(self.others[:1], likely.DIRECT):
            for tried in in_fixed_point(Step(round_to(fmt, mode)), self.asked, FIXED, alone=self.adds_c):
                yield from self.converted(draft, tried)

    def unrounded(self, draft: Draft) -> Iterator[Draft]:
        """Fused sums that another step adds without rounding."""
        for align, total in product(MODES if self.role else (), all_bits(self.asked.d, self.asked.d)):
            own = replace(total, rounding=align)
            yield from (self.step(draft, Step(None, cancels)) for cancels in (own, Cancelling(own)))

    def one_lane(self, draft: Draft) -> Iterator[Draft]:
        """One lane keeps a bit more or less than the others. `lanes` is empty, and so is this tier, for sums whose
        leaves are not all nonzero at once."""
        for tried, lane, more in product(list(self.tier("likely_fused")(draft)), self.lanes, (-1, 1)):
            yield replace(tried, odd=(lane, more))

    def short_addend(self, draft: Draft) -> Iterator[Draft]:
        """c is rounded to a shorter format before it is added."""
        tried = self.tier("likely_fused" if self.kind == "fused" else "rounded")
        if self.adds_c:
            for step, addend in product(list(tried(draft)), short_addends(self.asked)):
                yield replace(step, addend=addend)

    @property
    def shorter(self) -> list[Format]:
        """The formats with the fewest bits, fewer than the result's, that hold every result so far; empty for all but
        the last step, and without results."""
        seen = 0 if self.role else self.seen()
        formats = [fmt for fmt in likely.INNER if seen <= fmt.precision < self.asked.d.precision]
        least = min((fmt.precision for fmt in formats), default=0)
        return [fmt for fmt in formats if seen and fmt.precision == least]

    def grouped(self, draft: Draft) -> Iterator[Draft]:
        """Products are summed in groups first, and the sums of the groups in another fused sum."""
        for groups, bits, align, mode in product(likely.GROUPS, range(20, 34), MODES, MODES[:3]):
            each = fused(bits, items=(Hole(PRODUCTS.name, groups),))
            total = fused(bits, align, items=(each,))
            yield self.step(draft, Step(round_to(self.asked.d, mode), _late(total, bits, bits, align)))

    def rounded_first(self, draft: Draft, ways: Sequence[Way] = PLAIN) -> Iterator[Draft]:
        """Sums of products are rounded to fewer bits than d has, but at least as many as the results of products alone
        have; other terms join the rounded sum in another fused sum."""
        d, least = self.asked.d, max(2, self.seen())
        for bits, mode, way, total in product(range(least, d.precision), MODES, ways, all_bits(d, d)):
            first = replace(total, rounding=way[0], sticky=way[1])
            if self.alone:
                yield self.step(draft, Step(round_to(d), _after_rounding(first, with_bits(d, bits), mode, bits)))
            else:
                own = round_to(with_bits(d, bits), mode) if self.role else round_to(d, mode, bits)
                yield self.step(draft, Step(own, first))

    def rounded_first_otherwise(self, draft: Draft) -> Iterator[Draft]:
        """As `rounded_first`, with terms rounded where they are cut."""
        yield from self.rounded_first(draft, ROUNDED)

    def rounded_longer(self, draft: Draft) -> Iterator[Draft]:
        """Sums of products rounded to numbers of a few bits more than the result's, which other terms join."""
        d = self.asked.d
        for more, mode, way, less in product(range(1, LONGER + 1), MODES, PLAIN, range(-2, LONGER)):
            bits, first = d.precision + more, fused(d.precision + more + less, *way)
            if self.alone:
                total = _after_rounding(first, with_bits(d, bits), mode, bits)
                yield from (self.step(draft, Step(round_to(d, last), total)) for last in MODES)
            elif self.role:
                yield self.step(draft, Step(round_to(with_bits(d, bits), mode), first))

    def nested(self, draft: Draft, ways: Sequence[Way] = PLAIN) -> Iterator[Draft]:
        """Products in a fused sum of their own, which another fused sum cuts to fewer bits."""
        for mode, way, less, total in product(MODES, ways, likely.GUARDS, all_bits(self.asked.d, self.asked.d)):
            bits = total.bits_of_terms[0] - less
            if bits > 0:
                first = replace(total, items=(PRODUCTS,), sticky=way[1])
                yield self.step(draft, Step(round_to(self.asked.d, mode), _late(first, bits, bits, way[0])))

    def inserted(self, draft: Draft) -> Iterator[Draft]:
        """A node of any kind around a likely sum, or around products."""
        first = self.tier("likely_fused" if self.kind == "fused" else "rounded")(draft)
        for tried in first:
            step = tried.steps[self.role]
            yield from (
                self.step(tried, replace(step, sum=other)) for other in with_inserted_node(step.sum, self.asked.d)
            )
            yield from with_another_node(tried, self.asked.d)

    def likely(self, draft: Draft) -> Iterator[Draft]:
        """Likely steps with each start of a sum, and with products exact or rounded as the sum is."""
        for tried in (*self.decided(draft), *self.tier("rounded")(draft)):
            for start in likely.STARTS:
                for products in (None, tried.steps[self.role].round):
                    yield replace(tried, start=start, products=products)

    def likely_roomier(self, draft: Draft) -> Iterator[Draft]:
        """Sums in a longer format, with each start of a sum."""
        for tried, start in product(list(self.tier("roomier")(draft)), likely.STARTS):
            yield replace(tried, start=start)


def with_another_node(draft: Draft, d: Format) -> Iterator[Draft]:
    """Drafts with a node of any kind around the product, or around a factor."""
    yield from (replace(draft, product=other) for other in with_inserted_node(draft.product, d))


def with_alignment(step: Step, align: Mode, sticky: bool) -> Step:
    """A step with another rounding of the terms of its fused sum."""
    assert step.aligned is not None
    other = replace(step.aligned, rounding=align, sticky=sticky)
    return replace(step, sum=with_node(step.sum, step.aligned, other))


def short_addends(asked: Signature) -> list[Round]:
    """Roundings of c to shorter formats than its own."""
    return [round_to(fmt, mode) for fmt, mode in product(likely.INNER, MODES) if fmt.precision < asked.c.precision]


def late_tiers(role: int) -> list[Tier]:
    """The tiers for terms that are no products in a fused step: they are further terms of the sum, or they join the
    finished sum of the products."""

    def as_terms(draft: Draft) -> Iterator[Draft]:
        if draft.steps[role].between is None:
            yield draft

    def to_sum(draft: Draft, cuts: Sequence[int | None]) -> Iterator[Draft]:
        step, bits = draft.steps[role], draft.steps[role].bits
        if bits is None or step.aligned is None or step.round is None or step.between is not None:
            return
        first = step.first or replace(step.aligned, items=(PRODUCTS,))
        aligns = MODES if step.first is None else (step.first.rounding,)
        least = step.round.rounding.format.emin
        for more, cut, align, far in product(likely.JOINED, cuts, aligns, (None, bits + 1)):
            for addend in dict.fromkeys((bits, bits + more)):
                joined = _late(first, bits + more, addend, align, far)
                total = joined if cut is None else Cut(joined, cut, align, least)
                yield draft.with_step(role, replace(step, sum=total))

    def to_number(draft: Draft, ways: Sequence[Way]) -> Iterator[Draft]:
        """Other terms join a sum of products already rounded; the last rounding may have another mode."""
        step = draft.steps[role]
        if step.aligned is None or step.round is None or (step.first is not None and step.between is None):
            return
        first = Round(step.first or replace(step.aligned, items=(PRODUCTS,)), step.between or step.round.rounding)
        for bits, way, mode in product(range(1, likely.MOST_BITS + 1), ways, MODES):
            total = replace(_late(first, bits, bits, way[0]), sticky=way[1])
            yield draft.with_step(role, replace(step, round=in_mode(step.round, mode), sum=total))

    return [
        as_terms,
        partial(to_sum, cuts=likely.CUTS[:1]),
        partial(to_number, ways=PLAIN),
        partial(to_sum, cuts=likely.CUTS[1:]),
        partial(to_number, ways=ROUNDED),
    ]


def _late(
    first: FusedSum | Round, sum_bits: int, addend_bits: int, align: Mode = "toward_zero", reach: int | None = None
) -> FusedSum:
    """The fused sum of a finished sum of products (`first`) and the other operands. `sum_bits`, `addend_bits`: the
    fraction bits kept of the first and of the others; `reach`: the distance below the largest exponent at which the
    others vanish (None: they do not)."""
    far = () if reach is None else (None, reach)
    bits = sum_bits if sum_bits == addend_bits and reach is None else (sum_bits, addend_bits)
    zeros = first.zeros if isinstance(first, FusedSum) else None
    return FusedSum((first, OTHERS), bits, align, zeros=zeros, reach=far)


def _after_rounding(first: FusedSum, fmt: Format, mode: Mode, bits: int) -> FusedSum:
    """A sum of `bits` bits that other terms join once the sum of products is rounded to a number of a format."""
    return _late(Round(replace(first, items=(PRODUCTS,)), Rounding(fmt, mode)), bits, bits)


def with_bits(d: Format, bits: int) -> Format:
    """The format of numbers within a unit with `bits` significant bits and room for sums."""
    return format_named(f"e{max(8, d.exponent)}m{bits - 1}_ieee")


def carry_tiers(roles: Sequence[int]) -> list[Tier]:
    """The tiers of carry bits, the same in all fused sums."""

    def every(draft: Draft, carry: int | None, last: bool) -> Draft:
        """The draft with these carry bits in the fused sums of products, or (`last`) in the sums in which other terms
        join late."""
        for role in roles:
            step = draft.steps[role]
            total = step.joins if last else step.aligned
            if isinstance(total, FusedSum) and not total.sticky and not isinstance(total.fraction_bits, tuple):
                other = replace(total, carry_bits=carry)
                draft = draft.with_step(role, replace(step, sum=with_node(step.sum, total, other)))
        return draft

    def carries(draft: Draft, last: bool) -> Iterator[Draft]:
        return (every(draft, carry, last) for carry in (None, *range(9)))

    return [lambda draft: [draft], partial(carries, last=False), partial(carries, last=True)]


def in_fixed_point(step: Step, asked: Signature, places: int, alone: bool = False) -> Iterator[Step]:
    """The step with terms kept in fixed point, cut at one place whatever the largest term: at most `places` above the
    last place of products; no step if the range of products is longer than any accumulator. `alone`: only products are
    cut; other terms join their sum."""
    top = asked.a.emax + asked.b.emax + 2
    last = asked.a.unit + asked.b.unit
    if top - last > LONGEST or step.aligned is not None:
        return
    for place, align in product(range(last + 1, min(last + places + 1, top)), (*likely.DIRECT, "down", "to_odd")):
        total = fused(top - place, align, least=top, items=(PRODUCTS if alone else TERMS,))
        yield replace(step, sum=ExactSum((total, OTHERS)) if alone else total)


def merged_drafts(drafts: Sequence[Draft]) -> list[Draft]:
    """The drafts, with those that differ only in the mode of one rounding merged, if every mode is among them."""
    waiting = list(drafts)
    for place in dict.fromkeys(place for draft in drafts for place in draft.roundings()):
        alike: dict[Draft, list[Draft]] = {}
        for draft in waiting:
            own = draft.roundings().get(place)
            one = draft if own is None else draft.with_roundings({place: in_mode(own, MODES[0])})
            alike.setdefault(one, []).append(draft)
        waiting = []
        for one, some in alike.items():
            every = len(some) == len(MODES)
            waiting += [replace(one, unshown=one.unshown | {place})] if every else some
    return waiting


def drafts_of_merged(draft: Draft) -> list[Draft]:
    """The drafts that a merged one stands for: with any modes at up to two merged places; at more places, with one
    mode, or with another mode at one."""
    plain, roundings = replace(draft, unshown=frozenset()), draft.roundings()
    places = [place for place in roundings if place in draft.unshown]
    modes: Iterable[tuple[Mode, ...]] = product(MODES, repeat=len(places))
    if len(places) > 2:
        same = [(mode,) * len(places) for mode in MODES]
        modes = dict.fromkeys(
            (*given[:at], mode, *given[at + 1 :]) for given in same for at in range(len(places)) for mode in MODES
        )
    changed = (dict(zip(places, given, strict=True)) for given in modes)
    return [plain.with_roundings({at: in_mode(roundings[at], mode) for at, mode in given.items()}) for given in changed]


def store_periods(asked: Signature) -> list[int]:
    """The numbers of steps between two stores of a running sum to be tried."""
    return [size for size in likely.STORED if size < asked.length]


def with_below(draft: Draft, role: int, step: Step) -> Draft:
    """The draft with the steps of all roles below this one replaced by one step."""
    above = draft.steps[: role + 1]
    return replace(draft, steps=(*above, *(step,) * (len(draft.steps) - len(above))))


def with_above(draft: Draft, role: int, asked: Signature) -> Iterator[Draft]:
    """Drafts in which all roles above also round to the longer format of this role, and the last result is converted.
    For most numbers such a second rounding gives the same as one rounding."""
    above, d, fmt = draft.steps[:role], asked.d, draft.steps[role].result_format(asked.d)
    roundings = [step.round for step in draft.steps[: role + 1]]
    alike = all(step.result_format(d) == d and step.leaves is None and step.aligned is None for step in above)
    last, own = roundings[0], roundings[-1]
    if not role or not alike or draft.convert or fmt.precision <= d.precision or last is None or own is None:
        return
    for same in (True, False):
        raised = (x and round_to(fmt, (own if same else x).rounding.mode) for x in roundings[:-1])
        steps = (replace(step, round=other) for step, other in zip(above, raised, strict=True))
        yield replace(draft, steps=(*steps, *draft.steps[role:]), convert=round_to(d, last.rounding.mode))
