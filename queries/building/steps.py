"""What is tried for the steps of one role: how they add and round, in tiers, what published units do first."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product

from mmaprobe.queries.building.draft import STARTS, Choices, Groups, How, Late, Step, Store
from mmaprobe.smtmodel.arithmetic.formats import FORMATS, Format
from mmaprobe.smtmodel.arithmetic.rounding import ROUNDINGS, Mode
from mmaprobe.smtmodel.inputs.signature import Signature

Tier = Callable[[Choices], Iterable[Choices]]
MODES: tuple[Mode, ...] = (*ROUNDINGS, "to_odd")
INNER = ("f32", "f64", "bf16", "f16", "e8m13", "tf32")  # formats of results within
ROOMY = ("f32", "f64")  # of these, those in which sums are often kept
SHORT = ("bf16", "f16")  # in which sums are stored on the way
STORED = tuple(2**k for k in range(1, 12))  # steps between two such stores
MOST_BITS = 40  # of a fused sum, where the result has no more
GUARDS = range(1, 9)  # bits beyond those of a format that are kept of a sum which is not exact
WIDE = "f64"  # the format of sums of more bits than the result has
SMALL = 8  # products of a sum whose order is not known, up to which everything is tried
ALIGNED: tuple[tuple[Mode, bool], ...] = (*((mode, False) for mode in MODES), ("toward_zero", True))
GROUPS: tuple[Groups, ...] = ("even_odd", "pairs", "quads")  # of products that are summed first
JOINED = range(10)  # bits that a finished sum keeps beyond those of its terms
LONGEST = 128  # bits of an accumulator of products in fixed point
FIXED = 40  # places above the last one of products, below which they may be cut in fixed point
LIKELY = {"exact": 8, "binary": 9, "fused": 10, "any": 6}  # tiers of a kind, from the first on, that most units have
CUTS = (None, 31, 32, 33, 30, 29, 28, 27, 26, 25, 24)  # bits of a sum that a late addend joined


@dataclass(frozen=True)
class StepAxes:
    """What is tried for the steps of a role; for the last step also how its result is converted. A tier is a method
    that takes what is decided of the steps above."""

    kind: str
    role: int
    asked: Signature
    seen: Callable[[], int] = lambda: 0  # significant bits of the results so far
    lanes: Sequence[frozenset[int]] = ()  # products that a fused step may add as one lane, where there are few
    adds_c: bool = False  # whether one of the steps adds c

    @property
    def others(self) -> list[str]:
        """The formats of results within other than that of the result."""
        return [name for name in INNER if FORMATS[name] != self.asked.d]

    @property
    def every_f(self) -> range:
        return range(1, max(MOST_BITS, self.asked.d.precision + 8) + 1)

    def tiers(self, quick: bool = False) -> list[Tier]:
        """What is tried, in order: the next tier where nothing of those before fits; `quick`: what most units have."""
        every = self._every_tier()
        return every[: LIKELY[self.kind]] if quick else every

    def _every_tier(self) -> list[Tier]:
        if self.kind == "any":
            few = self.asked.length <= SMALL
            short = self.asked.d.precision < FORMATS[self.others[0]].precision
            all_tried = [self.elsewhere, self.fused, self.aligned]
            return [
                self.likely,
                self.likely_fused,
                *(all_tried if few else [self.roomier]),
                *([self.roomier_fused] if short else []),
            ]
        if self.kind == "fused":
            # a short result shows little of whether f32 keeps a sum or nothing rounds it
            both = [self.unrounded, self.fused_roomier]
            short = self.asked.d.precision < FORMATS[ROOMY[0]].precision
            return [
                self.decided,
                self.decided_otherwise,
                self.fused,
                self.fused_shorter,
                self.aligned_shorter,
                *(both[::-1] if short else both),
                self.aligned,
                self.wrapped,
                self.one_lane,
                self.short_addend,
                self.fused_elsewhere,
                self.grouped,
                self.aligned_elsewhere,
            ]
        exact: list[Tier] = [self.decided, self.rounded, self.whole, self.leaving_nearest, self.short_addend]
        exact += [self.decided_otherwise] if self.kind == "binary" else []
        exact += [self.elsewhere]
        exact += [self.cut_short, self.cut_otherwise] if self.kind == "binary" else []
        exact += [self.leaving, self.guarded, self.shortened, self.stored, self.fixed]
        return exact if self.kind == "exact" else [*exact, self.lengthened, self.fused, self.aligned, self.unrounded]

    def step(self, choices: Choices, step: Step) -> Choices:
        """The choices with this step in the role."""
        return with_step(choices, self.role, step)

    def converted(self, choices: Choices, step: Step, modes: Sequence[Mode] = MODES) -> Iterator[Choices]:
        return converted(choices, self.role, step, self.asked, modes)

    def own(self, choices: Choices) -> list[str]:
        return list(dict.fromkeys(["", *(step.how.format for step in choices.steps[: self.role])]))

    def decided(self, choices: Choices) -> Iterator[Choices]:
        """The same as one of the steps above."""
        for role, step in enumerate(choices.steps[: self.role]):
            if step not in choices.steps[:role] and (self.kind != "fused" or step.fraction_bits is not None):
                found = self.step(choices, step)
                hidden = role in choices.unshown
                yield replace(found, unshown=found.unshown | {self.role}) if hidden else found

    def decided_otherwise(self, choices: Choices) -> Iterator[Choices]:
        """The same bits as in a fused step above, with another rounding of what is cut off, or of the sum."""
        above = [step for step in choices.steps[: self.role] if step.fraction_bits is not None and step.rounded]
        others = (
            replace(step, how=replace(step.how, mode=mode), align=align, sticky=sticky)
            for step, (align, sticky), mode in product(above, ALIGNED, MODES)
        )
        for step in dict.fromkeys(others):
            yield self.step(choices, step)

    def rounded(self, choices: Choices) -> Iterator[Choices]:
        for name, mode in product(self.own(choices), MODES):
            yield self.step(choices, Step(How(mode, name)))

    def whole(self, choices: Choices) -> Iterator[Choices]:
        """Nothing is lost before another step adds the sum."""
        if self.role:
            yield self.step(choices, Step(rounded=False))

    def guarded(self, choices: Choices) -> Iterator[Choices]:
        """Some bits more than the format has are kept, and no sticky bit of what is below them."""
        for more, mode in product(GUARDS, MODES[:2]):
            yield self.step(choices, Step(How(mode, "", self.asked.d.precision + more, "toward_zero")))

    def elsewhere(self, choices: Choices) -> Iterator[Choices]:
        for name, mode in product(self.others, MODES):
            for tried in self.converted(choices, Step(How(mode, name))):
                yield tried
                yield from with_above(tried, self.role, self.asked)
                if FORMATS[name].emin > self.asked.d.emin:  # what the steps below pass on may be tiny there
                    yield from (with_below(tried, self.role, Step(How(below, name))) for below in MODES)

    def shortened(self, choices: Choices) -> Iterator[Choices]:
        for bits, mode in product(range(2, self.asked.d.precision), MODES):
            yield self.step(choices, Step(How(mode, "", bits)))

    def leaving(self, choices: Choices, modes: Sequence[Mode] = MODES) -> Iterator[Choices]:
        """The result of such steps is converted before another step adds it."""
        for name, mode, short in product(dict.fromkeys(("", *self.own(choices), *ROOMY)), modes, SHORT):
            if self.role and FORMATS[short].precision < (FORMATS[name] if name else self.asked.d).precision:
                for last in dict.fromkeys((mode, MODES[0])):
                    yield self.step(choices, Step(How(mode, name), leaves=How(last, short)))

    def leaving_nearest(self, choices: Choices) -> Iterator[Choices]:
        yield from self.leaving(choices, MODES[:1])

    def stored(self, choices: Choices) -> Iterator[Choices]:
        """The running sum of the chain that ends here is converted now and then."""
        for name, short, mode, size in product(ROOMY, SHORT, (MODES[0], "toward_zero"), sizes(self.asked)):
            for tried in self.converted(choices, Step(How(MODES[0], name)), MODES[:1]):
                yield replace(tried, store=Store(size, How(mode, short)))

    def fixed(self, choices: Choices) -> Iterator[Choices]:
        """The accumulator is in fixed point, and what is below its last bit shows in ordinary numbers, as that of c."""
        for mode in MODES:
            yield from (self.step(choices, tried) for tried in in_fixed_point(Step(How(mode)), self.asked, FIXED))

    def lengthened(self, choices: Choices) -> Iterator[Choices]:
        for bits, mode in product(range(self.asked.d.precision + 1, FORMATS[WIDE].precision), MODES):
            yield from self.converted(choices, Step(How(mode, WIDE, bits)), (mode, "nearest_even"))

    def fused(self, choices: Choices) -> Iterator[Choices]:
        for name, mode, bits in product(self.own(choices), MODES, self.every_f):
            yield self.step(choices, Step(How(mode, name), bits))

    def cut_short(self, choices: Choices) -> Iterator[Choices]:
        """The smaller term is cut a few bits below the last place of the larger one, without a sticky bit."""
        for name, mode, more in product(self.own(choices), MODES, (-1, 0, *GUARDS)):
            precision = FORMATS[name].precision if name else self.asked.d.precision
            yield self.step(choices, Step(How(mode, name), precision + more))

    def cut_otherwise(self, choices: Choices) -> Iterator[Choices]:
        """The same, rounded where it is cut, or with a sticky bit."""
        for tried, (align, sticky) in product(self.cut_short(choices), ALIGNED):
            step = tried.steps[self.role]
            yield self.step(choices, replace(step, align=align, sticky=sticky))

    def unrounded(self, choices: Choices) -> Iterator[Choices]:
        for align, bits, cancels in product(MODES if self.role else (), self.every_f, (False, True)):
            yield self.step(choices, Step(fraction_bits=bits, align=align, rounded=False, cancels=cancels))

    def aligned(self, choices: Choices) -> Iterator[Choices]:
        for mode, bits in product(MODES, self.every_f):
            yield self.step(choices, Step(How(mode), bits, sticky=True))
            for align in MODES:
                if align != "toward_zero":
                    yield self.step(choices, Step(How(mode), bits, align))

    def wrapped(self, choices: Choices) -> Iterator[Choices]:
        for carry, mode, bits in product(range(5), MODES, self.every_f):
            yield self.step(choices, Step(How(mode), bits, carry_bits=carry))

    def one_lane(self, choices: Choices) -> Iterator[Choices]:
        """One lane keeps a bit more or less than the others, where every set of leaves may have one of its products."""
        for tried, lane, more in product(list(self.likely_fused(choices)), self.lanes, (-1, 1)):
            yield replace(tried, odd=(lane, more))

    def short_addend(self, choices: Choices) -> Iterator[Choices]:
        """c is rounded to a shorter format before it is added."""
        tried = self.likely_fused if self.kind == "fused" else self.rounded
        if self.adds_c:
            for step, addend in product(list(tried(choices)), short_addends(self.asked)):
                yield replace(step, addend=addend)

    def fused_roomier(self, choices: Choices) -> Iterator[Choices]:
        for name, mode, bits in product(self.others[:1], MODES[:3], self.every_f):
            yield from self.converted(choices, Step(How(mode, name), bits), (mode, "nearest_even"))

    @property
    def shorter(self) -> list[str]:
        """The formats of fewer bits than the result's that hold every result so far, where the last step has shown
        any: those with the fewest bits."""
        seen = 0 if self.role else self.seen()
        found = [name for name in INNER if seen <= FORMATS[name].precision < self.asked.d.precision]
        least = min((FORMATS[name].precision for name in found), default=0)
        return [name for name in found if seen and FORMATS[name].precision == least]

    def fused_shorter(self, choices: Choices) -> Iterator[Choices]:
        """Sums that are kept in a shorter format."""
        for name, mode in product(self.shorter, MODES):
            for bits in range(1, FORMATS[name].precision + 9):
                yield from self.converted(choices, Step(How(mode, name), bits))

    def aligned_shorter(self, choices: Choices) -> Iterator[Choices]:
        for name, mode, (align, sticky) in product(self.shorter, MODES, ALIGNED):
            for bits in range(FORMATS[name].precision - 4, FORMATS[name].precision + 9):
                if (align, sticky) != ("toward_zero", False):
                    yield from self.converted(choices, Step(How(mode, name), bits, align, sticky))

    def fused_elsewhere(self, choices: Choices) -> Iterator[Choices]:
        for name, mode, bits in product(self.others, MODES, self.every_f):
            yield from self.converted(choices, Step(How(mode, name), bits), (mode, "nearest_even"))

    def aligned_elsewhere(self, choices: Choices) -> Iterator[Choices]:
        for name, mode in product((name for name in self.others if name in ROOMY), MODES):
            precision = FORMATS[name].precision
            modes: tuple[Mode, ...] = (mode, "nearest_even")
            for bits in range(precision - 4, precision + 9):
                yield from self.converted(choices, Step(How(mode, name), bits, sticky=True), modes)
                for align in MODES:
                    if align != "toward_zero":
                        yield from self.converted(choices, Step(How(mode, name), bits, align), modes)

    def grouped(self, choices: Choices) -> Iterator[Choices]:
        for groups, bits, align, mode in product(GROUPS, range(20, 34), MODES, MODES[:3]):
            yield self.step(choices, Step(How(mode), bits, groups=groups, late=Late(bits, bits, align)))

    def likely(self, choices: Choices) -> Iterator[Choices]:
        for tried in (*self.decided(choices), *self.rounded(choices)):
            for start in STARTS:
                for how in (None, tried.steps[self.role].how):
                    yield replace(tried, start=start, products=how)

    def roomier(self, choices: Choices) -> Iterator[Choices]:
        for mode, start in product(MODES, STARTS):
            for tried in self.converted(choices, Step(How(mode, self.others[0])), (mode, "nearest_even")):
                yield replace(tried, start=start)

    def likely_fused(self, choices: Choices) -> Iterator[Choices]:
        for mode, bits in product(MODES[:3], range(self.asked.d.precision - 4, self.asked.d.precision + 9)):
            yield self.step(choices, Step(How(mode), bits))

    def roomier_fused(self, choices: Choices) -> Iterator[Choices]:
        """Blocks added in a longer format, of which the last sum is converted."""
        name = self.others[0]
        precision = FORMATS[name].precision
        for mode, bits in product(MODES[:3], range(precision - 4, precision + 9)):
            yield from self.converted(choices, Step(How(mode, name), bits), (mode, "nearest_even"))


def short_addends(asked: Signature) -> list[How]:
    """Roundings of c to shorter formats than its own."""
    names = [name for name in INNER if FORMATS[name].precision < asked.c.precision]
    return [How(mode, name) for name, mode in product(names, MODES)]


def late_tiers(role: int) -> list[Tier]:
    """How a term that is not a product joins a fused step: as one more term, or after the products are summed."""

    def together(choices: Choices) -> Iterator[Choices]:
        yield choices

    def after(choices: Choices) -> Iterator[Choices]:
        step = choices.steps[role]
        bits = step.fraction_bits
        if bits is None:
            return
        aligns = MODES if step.late is None else (step.late.align,)
        for more, cut, align, far in product(JOINED, CUTS, aligns, (None, bits + 1)):
            for addend in dict.fromkeys((bits, bits + more)):
                yield with_step(choices, role, replace(step, late=Late(bits + more, addend, align, cut, far)))

    return [together, after]


def carry_tiers(roles: Sequence[int]) -> list[Tier]:
    """Whether fused sums wrap, the same for all."""

    def every(choices: Choices, carry: int | None) -> Choices:
        for role in roles:
            step = choices.steps[role]
            if step.fraction_bits is not None and not step.sticky and step.late is None and not step.groups:
                choices = with_step(choices, role, replace(step, carry_bits=carry))
        return choices

    return [lambda choices: [choices], lambda choices: [every(choices, carry) for carry in (None, *range(9))]]


def in_fixed_point(step: Step, asked: Signature, places: int) -> Iterator[Step]:
    """The step with its terms kept in fixed point: cut at one place, whatever the largest of them. At most `places`
    above the last place that a product has; none where no accumulator is as long as the range of products."""
    top = asked.a.emax + asked.b.emax + 2
    last = unit_of(asked.a) + unit_of(asked.b)
    if top - last > LONGEST or step.fraction_bits is not None:
        return
    for place, align in product(range(last + 1, min(last + places + 1, top)), (MODES[0], "toward_zero", "down")):
        yield replace(step, fraction_bits=top - place, align=align, least=top)


def converted(
    choices: Choices, role: int, step: Step, asked: Signature, modes: Sequence[Mode] = MODES
) -> Iterator[Choices]:
    """The step itself; the last step of a unit with a conversion of its result where d has another format."""
    if role:
        yield with_step(choices, role, step)
        return
    fmt = FORMATS[step.how.format]
    if fmt.width == asked.d.width:
        yield replace(with_step(choices, role, step), convert=None)
    if fmt.precision > asked.d.precision:
        yield from (replace(with_step(choices, role, step), convert=How(mode)) for mode in dict.fromkeys(modes))
        return
    found = replace(with_step(choices, role, step), convert=How(MODES[0]))
    exact = unit_of(fmt) >= unit_of(asked.d) and fmt.emax <= asked.d.emax
    yield found if exact else replace(found, unshown=found.unshown | {"convert"})


def merged(found: Sequence[Choices]) -> list[Choices]:
    """Choices that differ in the mode of one rounding alone as one, if every mode is among them."""
    waiting = list(found)
    for place in dict.fromkeys(place for choices in found for place in choices.hows()):
        alike: dict[Choices, list[Choices]] = {}
        for choices in waiting:
            how = choices.hows().get(place)
            one = choices if how is None else choices.with_hows({place: replace(how, mode=MODES[0])})
            alike.setdefault(one, []).append(choices)
        waiting = []
        for one, some in alike.items():
            every = len(some) == len(MODES)
            waiting += [replace(one, unshown=one.unshown | {place})] if every else some
    return waiting


def shown(choices: Choices) -> list[Choices]:
    """The choices that some stand for: any modes at two places that have not shown theirs; at more of them one mode
    for all, or another at one of them."""
    plain, hows = replace(choices, unshown=frozenset()), choices.hows()
    places = [place for place in hows if place in choices.unshown]
    modes: Iterable[tuple[Mode, ...]] = product(MODES, repeat=len(places))
    if len(places) > 2:
        same = [(mode,) * len(places) for mode in MODES]
        modes = dict.fromkeys(
            (*given[:at], mode, *given[at + 1 :]) for given in same for at in range(len(places)) for mode in MODES
        )
    changed = (dict(zip(places, given, strict=True)) for given in modes)
    return [plain.with_hows({at: replace(hows[at], mode=mode) for at, mode in given.items()}) for given in changed]


def sizes(asked: Signature) -> list[int]:
    """The steps between two stores of a running sum that are tried."""
    return [size for size in STORED if size < asked.length]


def with_step(choices: Choices, role: int, step: Step) -> Choices:
    return replace(choices, steps=(*choices.steps[:role], step, *choices.steps[role + 1 :]))


def with_below(choices: Choices, role: int, step: Step) -> Choices:
    """The choices with the steps of all roles below this one replaced by one step."""
    above = choices.steps[: role + 1]
    return replace(choices, steps=(*above, *(step,) * (len(choices.steps) - len(above))))


def with_above(choices: Choices, role: int, asked: Signature) -> Iterator[Choices]:
    """The steps of all roles above round to the longer format of this one too, and the last result is converted: what
    is rounded twice is seldom another number than what is rounded once."""
    how, above = choices.steps[role].how, choices.steps[:role]
    alike = all(step.how.format == "" and step.leaves is None and step.fraction_bits is None for step in above)
    if not role or not alike or choices.convert is not None or format_of(how, asked).precision <= asked.d.precision:
        return
    last = above[0].how.mode
    for same in (True, False):
        raised = (replace(step, how=How(how.mode if same else step.how.mode, how.format)) for step in above)
        yield replace(choices, steps=(*raised, *choices.steps[role:]), convert=How(last))


def format_of(how: How, asked: Signature) -> Format:
    return FORMATS[how.format] if how.format else asked.d


def unit_of(fmt: Format) -> int:
    """The exponent of a format's least number."""
    return fmt.emin - fmt.fraction
