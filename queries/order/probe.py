"""Questions about the order of a sum. A mask is a huge number at one leaf and its negative at another. Units are equal
small numbers at the other leaves; those that are added to a huge number are lost. The result shows how many are not."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial

from mmaprobe.queries.compare.steady import AskDevice, spread, stand_by
from mmaprobe.queries.order.mask_traces import VARIANTS, Power, TraceCounter
from mmaprobe.queries.order.nested import Nested
from mmaprobe.queries.order.tree import Leaf, Pair, pair_of
from mmaprobe.smtmodel.arithmetic.display import exponent_of, finite_value, number_text, powers
from mmaprobe.smtmodel.arithmetic.formats import FORMATS, Format
from mmaprobe.smtmodel.base.errors import IncompleteError
from mmaprobe.smtmodel.evaluate.model import Model
from mmaprobe.smtmodel.evaluate.operands import Operands
from mmaprobe.smtmodel.inputs.vectors import Vector
from mmaprobe.smtmodel.operand import FACTORS, FURTHER

AskAll = Callable[[Sequence[Vector]], Sequence[int]]

ELEMENTS = 1 << 22  # the most products in the vectors that are formed together
LEAST_TOGETHER = 8  # the least number of units counted together that is tried
ROWS = 64  # rows of units that are cached
SUMS = FORMATS["f32"]  # the format of most units' sums, whatever the format of their results
GROUPS = 32  # the most groups of leaves, each with a question of its own for every mask, if masks exceed all results
RAISED = 2  # places by which units are raised to confirm that they are hidden alike
SCALED = (
    ", as if results were multiplied by a factor that is no power of two, such as alpha = 0.7; `identify --gemm` finds "
    "plans of a function with such a factor"
)
ADDED = (
    "something is added besides the products, as a bias is; give it as c, and the format of c in --formats; or results "
    "go through a function that is not 0 at 0, as exp, or have a zero point, as quantised results may"
)
EVEN = "an order is found if these factors are powers of two: ask the function with other scales"
WIDEST = 64  # fraction bits: every accumulator cuts within this many places
SINGLY = 32  # the most leaves that are asked about one at a time, if counts beside traces fit no tree
UNSURE = 3  # last bits of a result that may be wrong, as a factor and the multiplication by it are rounded


@dataclass(frozen=True)
class Terms:
    """Powers of two at leaves: `own` at a few leaves, `unit` at the other leaves of `group`, zeros elsewhere."""

    own: tuple[tuple[Leaf, Power], ...]
    group: Sequence[Leaf] = ()
    unit: Power = (1, 0)


@dataclass(frozen=True)
class Question:
    """A question and its answer. The vector is formed when it is needed, as a long sum has many long questions."""

    text: str
    d: int
    number: int
    form: Callable[[str, int], Vector]

    @property
    def vector(self) -> Vector:
        return self.form(self.text, self.number)


class UnrevealedError(IncompleteError):
    """The answers do not show the order of a sum. `questions`: the questions asked."""

    def __init__(self, reason: str, questions: tuple[Question, ...] = ()) -> None:
        self.reason, self.questions = reason, questions
        super().__init__(f"the order of the sum cannot be revealed: {reason}")


class NoTreeError(UnrevealedError):
    """No tree fits the numbers of leaves that the masks hid."""


@dataclass(frozen=True)
class Span:
    """The exponents of the mask and of the unit."""

    mask: int
    unit: int

    @property
    def bits(self) -> int:
        return self.mask - self.unit


def exponents(fmt: Format, normal: bool) -> tuple[int, int]:
    """The smallest and the largest exponent of a power of two; `normal`: without subnormals."""
    low = fmt.emin if normal or not fmt.subnormals else fmt.unit
    return low, fmt.emax


def power_pattern(fmt: Format, sign: int, exponent: int) -> int:
    """The pattern of a signed power of two within `exponents`."""
    normal = exponent >= fmt.emin
    field = (exponent + fmt.bias) << fmt.fraction if normal else 1 << (exponent - fmt.emin + fmt.fraction)
    return field << fmt.padding | (fmt.sign_bit if sign < 0 else 0)


def idle(model: Model) -> dict[str, list[int]]:
    """The values, by operand, of a model's operands other than a, b and c that change nothing: scale factors of 1, and
    zeros for all others."""
    neutral = {}
    for row, count in zip(FURTHER, model.counts[-len(FURTHER) :], strict=True):
        one = power_pattern(model.formats[row.name], 1, 0) if count and row.is_factor else 0
        neutral[row.name] = [one] * count
    return neutral


def shares(total: int, ranges: list[tuple[int, int]]) -> list[int]:
    """Exponents of factors, as equal as their ranges allow, with a given total."""
    exponents = []
    for position, (low, high) in enumerate(ranges):
        rest = ranges[position + 1 :]
        least = max(low, total - sum(top for _, top in rest))
        most = min(high, total - sum(bottom for bottom, _ in rest))
        share = min(max(total // (len(rest) + 1), least), most)
        exponents.append(share)
        total -= share
    return exponents


def weights_of(alone: Mapping[Leaf, Fraction | None]) -> dict[Leaf, Power]:
    """The signed powers of two by which terms are multiplied, from the results for a single term of 1 (`alone`); empty
    if all are 1. A term whose result is no power of two has no weight."""
    weights: dict[Leaf, Power] = {}
    for leaf, value in alone.items():
        size = abs(value) if value else Fraction(1)
        shift = size.numerator.bit_length() - size.denominator.bit_length()
        if value and size == Fraction(2) ** shift:
            weights[leaf] = (1 if value > 0 else -1, shift)
    return weights if any(weight != (1, 0) for weight in weights.values()) else {}


def factor_of(alone: Mapping[Leaf, Fraction | None]) -> Fraction:
    """The factor, from 1 to below 2, by which all terms are multiplied besides powers of two, from the results for a
    single term of 1 (`alone`); 1 if the terms have different factors."""
    factors = {abs(value) / Fraction(2) ** exponent_of(abs(value)) for value in alone.values() if value}
    return factors.pop() if len(factors) == 1 else Fraction(1)


def uneven(alone: Mapping[Leaf, Fraction | None]) -> str:
    """That terms count by different factors, of which one is no power of two, from the results for a single term of 1
    (`alone`); empty if they do not."""
    sizes = {leaf: abs(value) for leaf, value in alone.items() if value}
    odd = next((leaf for leaf, size in sizes.items() if size != Fraction(2) ** exponent_of(size)), None)
    other = next((leaf for leaf, size in sizes.items() if odd is not None and size != sizes[odd]), None)
    if odd is None or other is None:
        return ""
    one, two = (f"{float(sizes[leaf]):.6g}" for leaf in (odd, other))
    return f"{_name(odd)} counts {one} times, {_name(other)} {two} times; {EVEN}"


def _name(leaf: Leaf) -> str:
    return "term c" if leaf == "c" else f"product {leaf}"


class Probe:
    """Asks one device, many vectors at a time. A leaf is c, a single product, or the first product of a scale block of
    `width` products, which stands for them all. `again`: repeats questions (None: none is repeated); `addend`: whether
    c is a leaf.

    If the result's format does not hold the number of all leaves, units are counted in `groups` of leaves, with one
    question for each group. `any_factor`: whether results may be multiplied by a number that is no power of two;
    `factor` is then that number without its power of two, by which results are divided before they count. `missing`:
    whether products that are not in the sum are searched for; these (`left_out`), and the products known before not to
    be in the sum (`without`), are no leaves.
    """

    def __init__(
        self, ask: AskAll, model: Model, width: int = 1, again: AskDevice | None = None, addend: bool = True,
        missing: bool = False, without: Collection[int] = (), any_factor: bool = False,
    ) -> None:  # fmt: skip
        self.any_factor, self.factor = any_factor, Fraction(1)
        self.ask, self.model, self.width, self.again = ask, model, width, again
        self.products = [k for k in range(0, model.length, width) if k not in without]
        self.leaves: list[Leaf] = ["c", *self.products] if addend else [*self.products]
        self.groups: list[list[Leaf]] = [self.leaves]
        self.questions: list[Question] = []
        self.span = Span(0, 0)
        self.normal = True
        self.asked: dict[Pair, int] = {}  # by mask asked so far: the number of leaves that it takes out of the sum
        self.met: defaultdict[Leaf, list[Leaf]] = defaultdict(list)  # the leaves that have shared a mask with each
        self.signs = VARIANTS[0]  # the signs of mask and units that worked last
        self._beside: TraceCounter | None = None
        self.missing, self.left_out = missing, tuple[int, ...]()
        self.weights: Mapping[Leaf, Power] = {}  # of terms that the device multiplies
        self._weighed = self._may_be_weighed = False
        self._uneven = ""  # two terms that count by different factors of which one is no power of two
        self._unheard = True  # whether every failure so far was that c alone gave zero
        self._highest: int | None = None  # the largest exponent allowed for a mask, if larger exponents failed
        self.tight = False  # whether the unit is the largest that every step hides
        self.singly = False  # whether each mask is asked about one leaf at a time
        self.assumed: set[Pair] = set()  # masks whose counts were partly derived from those of other masks
        self.traced: set[Pair] = set()  # masks that left a trace, beside which larger units were counted
        self._given: dict[tuple[Pair, Power, int, int, Leaf, int], Fraction | None] = {}
        self._filled: dict[tuple[int, bool, bool, Power], tuple[Sequence[Leaf], _Filled]] = {}
        self._parts: dict[tuple[Power, bool], list[int]] = {}

    # -- the range of the formats

    @property
    def _factors(self) -> list[Format]:
        scaled = [fmt for row in FACTORS if (fmt := self.model.formats.get(row.name)) is not None and self.width > 1]
        return [self.model.a, self.model.b, *scaled]

    @property
    def together(self) -> int:
        """The most leaves whose units are counted in one question."""
        return max(map(len, self.groups))

    @property
    def needed(self) -> int:
        """The least distance, in places, of mask and unit at which rounding to the result's format hides units."""
        return self.model.d.precision + self.together.bit_length() + 3

    def _range(self, normal: bool, beyond: bool = False) -> tuple[int, int]:
        """The smallest and the largest exponent that every leaf and the result can have. `beyond`: whether results may
        be larger than their format allows."""
        factors = [exponents(fmt, normal) for fmt in self._factors]
        product, c = (sum(low for low, _ in factors), sum(high for _, high in factors)), exponents(self.model.c, normal)
        shifted = [
            (low + shift, high + shift)
            for leaf, (low, high) in ((0, product), ("c", c))[: 1 + ("c" in self.leaves)]
            for shift in {shift for at, (_, shift) in self.weights.items() if (at == "c") == (leaf == "c")} or {0}
        ]
        low, high = exponents(self.model.d, normal or self.factor != 1)
        lows, highs = zip((low, WIDEST if beyond else high), *shifted, strict=True)
        return max(lows), min(highs)

    def spans(self) -> Iterator[tuple[Span, bool]]:
        """The spans of mask and unit to try, the widest first, each with whether it avoids subnormals."""
        return ((span, normal) for span, normal in self._spans() if self._highest is None or span.mask <= self._highest)

    def _spans(self) -> Iterator[tuple[Span, bool]]:
        wanted = max(WIDEST, self.model.d.precision) + self.together.bit_length() + 4
        given = {normal: self._range(normal) for normal in (True, False)}
        for normal in (True, False) if given[True][1] - given[True][0] >= wanted else (False, True):
            low, high = given[normal]
            bits = min(high - low, wanted)
            mask = min(high, max(low + bits, bits // 2))
            for unit in range(mask - bits, mask - self.needed + 1, 4):
                yield Span(mask, unit), normal
        within = FORMATS["f16"]  # sums may have this format, whatever the result has
        low, high = max(given[True][0], within.unit), min(given[True][1], within.emax)
        if high < mask and high - low >= self.needed:
            yield Span(high, low), True
        if (most := max((abs(shift) for _, shift in self.weights.values()), default=0)) > 0:
            for normal, (low, high) in given.items():  # sums may be kept before a multiplication
                if high - low - 2 * most >= self.needed:
                    yield Span(high - most, low + most), normal

    def widest(self) -> int:
        """The places between the largest and the smallest power of two."""
        return max(high - low for low, high in (self._range(True), self._range(False)))

    # -- questions

    def values(self, asked: Sequence[tuple[Terms, str]]) -> list[Fraction | None]:
        """The device's sums of powers of two; None for a sum that is not finite."""
        forms = [(partial(self._vector, terms, self.normal, self.weights), text) for terms, text in asked]
        return [self._divided(finite_value(d, self.model.d)) for d in self.patterns(forms)]

    def _divided(self, value: Fraction | None) -> Fraction | None:
        """A result divided by `factor`, rounded to so few bits that the device's roundings do not change these."""
        if self.factor == 1 or not value:
            return value
        sums = value / self.factor
        last = Fraction(2) ** (exponent_of(abs(sums)) + 1 - self._counting)
        return round(sums / last) * last

    @property
    def _counting(self) -> int:
        """The number of reliable significant bits of a result."""
        return self.model.d.precision - (UNSURE if self.factor != 1 else 0)

    def patterns(self, asked: Sequence[tuple[Callable[[str, int], Vector], str]]) -> list[int]:
        """The device's results for vectors, which are formed as they are asked."""
        results: list[int] = []
        part = max(1, ELEMENTS // self.model.length)
        for start in range(0, len(asked), part):
            some = asked[start : start + part]
            first = len(self.questions) + 1
            answers = self.ask([form(text, number) for number, (form, text) in enumerate(some, first)])
            for number, ((form, text), d) in enumerate(zip(some, answers, strict=True), first):
                self.questions.append(Question(text, d, number, form))
            results += answers
        return results

    def value(self, terms: Mapping[Leaf, Power], text: str) -> Fraction | None:
        """The device's sum of powers of two at some leaves; None if it is not finite."""
        return self.values([(Terms(tuple(terms.items())), text)])[0]

    def _vector(self, terms: Terms, normal: bool, weights: Mapping[Leaf, Power], text: str, number: int) -> Vector:
        row = self._row(terms, normal, weights).copied()
        for leaf, power in terms.own:
            self._put(row, leaf, power, normal, weights)
        operands = Operands(tuple(row.a), tuple(row.b), row.c, tuple(map(tuple, row.rest.values())))
        return Vector(self.model, operands, id=number, extra={"question": text})

    def _row(self, terms: Terms, normal: bool, weights: Mapping[Leaf, Power]) -> _Filled:
        """A row with units at the leaves of a group, zeros elsewhere. It is cached, as many questions share it."""
        key = (id(terms.group), normal, bool(weights), terms.unit)
        if key not in self._filled:
            model = self.model
            row = _Filled([0] * model.length, [0] * model.length, 0, idle(model))
            for leaf in terms.group:
                self._put(row, leaf, terms.unit, normal, weights)
            if not terms.group:
                return row
            if len(self._filled) > ROWS:
                self._filled.clear()
            self._filled[key] = terms.group, row  # the reference keeps the group alive, so that its id stays its own
        return self._filled[key][1]

    def _put(self, row: _Filled, leaf: Leaf, power: Power, normal: bool, weights: Mapping[Leaf, Power]) -> None:
        """Fill in the factors that give a power of two at a leaf after its weight."""
        sign, shift = weights.get(leaf, (1, 0))
        power = power[0] * sign, power[1] - shift
        if weights:
            self._check_reach(leaf, power[1], normal)
        if leaf == "c":
            row.c = power_pattern(self.model.c, *power)
            return
        row.a[leaf], row.b[leaf], *scales = self._factors_of(power, normal)
        for factor, pattern in zip(FACTORS, scales, strict=False):
            row.rest[factor.name][leaf // self.model.scale_block] = pattern

    def _check_reach(self, leaf: Leaf, exponent: int, normal: bool) -> None:
        """Raises UnrevealedError for a power of two that needs factors out of range: no factors make up for the weights
        of a device that multiplies a term by 2^-200, or gives arbitrary numbers."""
        formats = [self.model.c] if leaf == "c" else self._factors
        low, high = map(sum, zip(*(exponents(fmt, normal and leaf != "c") for fmt in formats), strict=True))
        if not low <= exponent <= high:
            wanted = f"2^{exponent} is needed there, which is beyond the range of its formats"
            raise self.fail(self._uneven or f"{_name(leaf)} counts so much, or so little, that {wanted}")

    def _factors_of(self, power: Power, normal: bool) -> list[int]:
        """The patterns of the factors whose product is a signed power of two; the first factor has the sign."""
        if (power, normal) not in self._parts:
            sign, exponent = power
            factors = self._factors
            parts = shares(exponent, [exponents(fmt, normal) for fmt in factors])
            self._parts[power, normal] = list(map(power_pattern, factors, [sign, *[1] * (len(parts) - 1)], parts))
        return self._parts[power, normal]

    def fail(self, reason: str) -> UnrevealedError:
        """The error for a reason, with the questions asked so far."""
        return UnrevealedError(reason, tuple(self.questions))

    def stand_by(self, most: int) -> None:
        """Ask some questions again. Raises ContradictionError for a device that answers differently now."""
        if self.again is not None:
            chosen = [self.questions[place] for place in spread(len(self.questions), most)]
            stand_by(self.again, [(question.vector, question.d) for question in chosen], most)

    def calibrate(self) -> None:
        """Choose mask and unit, and the number of units counted together, so that units are counted exactly and a mask
        alone comes back. Raises UnrevealedError."""
        if self.widest() < self.needed and self.together < LEAST_TOGETHER:
            raise self.fail(self._narrow())
        if self._try_beyond():
            return
        seen, narrow = "", self._narrow()
        self._group(1 << self._counting)
        while True:
            if self.widest() >= self.needed:
                for span, normal in self.spans():
                    self.span, self.normal, self._beside = span, normal, None
                    flaw = self._flaw()
                    if not flaw:
                        return
                    if not self._weighed and self._may_be_weighed and self._weigh():
                        return self.calibrate()
                    seen = seen or flaw
            if self.together < LEAST_TOGETHER:
                raise self.fail(self._why(seen) if seen else narrow)
            self._group((self.together + 1) // 2)

    def _why(self, seen: str) -> str:
        """The reason why units cannot be counted; `seen`: the first flaw."""
        if self.value({}, "zeros alone"):
            return f"zeros give {number_text(self.questions[-1].d, self.model.d)}: {ADDED}"
        if self._uneven:
            return self._uneven
        if self._unheard:
            return f"c does not count: {seen}; for a device that takes no c, give three formats (a, b and d)"
        return f"small numbers beside a mask do not add up exactly, so that nothing can be counted: {seen}"

    def _group(self, most: int) -> None:
        """Count the units of at most `most` leaves together."""
        if self.together > most:
            self.groups = [self.leaves[start : start + most] for start in range(0, len(self.leaves), most)]

    @property
    def beyond(self) -> bool:
        """Whether masks are larger than any result."""
        return self.span.mask > self.model.d.emax

    def lower(self) -> bool:
        """Forget all counts, and use smaller masks from now on, as partial sums may have a smaller range than the
        result. Returns whether there are smaller masks."""
        within = self.beyond
        self._forget(self.model.d.emax if within else self.span.mask - 1)
        return within or next(self.spans(), None) is not None

    def _forget(self, highest: int | None) -> None:
        """Forget all counts, and use no mask of a larger exponent from now on."""
        self._highest = highest
        self.groups, self.tight, self._beside, self.signs = [self.leaves], False, None, VARIANTS[0]
        self.singly = False
        self.traced.clear()
        self.assumed.clear()
        self.asked.clear()
        self.met.clear()

    def count_singly(self) -> bool:
        """Forget all counts, and ask about each leaf alone from now on, since a single unit is distinguished from any
        trace. Returns whether this may change anything."""
        if not self.traced or self.singly or len(self.leaves) > SINGLY:
            return False
        tight = self.tight
        self._forget(self._highest)
        self.groups, self.tight, self.singly = [[leaf] for leaf in self.leaves], tight, True
        return True

    def _try_beyond(self) -> bool:
        """Try masks larger than any result, if masks within the result's range would not hide a unit in sums of f32.
        Returns whether such masks can be used."""
        if self._highest is not None:
            return False
        low, high = self._range(False, beyond=True)
        kept, many = SUMS.precision + 1, len(self.leaves).bit_length()
        if self.widest() >= kept + many + RAISED or high <= self.model.d.emax or high - low < kept:
            return False
        size = min(len(self.leaves), 1 << min(high - low - kept, self._counting))
        if len(self.leaves) > size * GROUPS:
            return False
        self._group(size)
        self.span, self.normal = Span(high, low), False
        self.tight = high - low < kept + size.bit_length() + RAISED
        if not self._flaw():
            return True
        self._forget(self.model.d.emax)
        return False

    def _narrow(self) -> str:
        names = " x ".join(fmt.name for fmt in self._factors)
        text = f"the formats' range is too narrow (needs 2^{self.needed} between the largest and the smallest number, "
        text += f"but {names} with c in {self.model.c.name} and results in {self.model.d.name} has 2^{self.widest()}"
        if self.model.scale is not None and self.width == 1:
            text += f"; scale factors are shared by {self.model.scale_block} products"
        return text + ")"

    def _flaw(self) -> str:
        """The reason why the present mask and unit cannot be used; empty if they can."""
        mask, unit = self.span.mask, self.span.unit
        one = powers(Fraction(2) ** unit)
        singles = dict.fromkeys((self.products[0], self.products[-1], self.leaves[0]))
        masked = dict.fromkeys(() if self.beyond else (self.products[0], self.leaves[0]))
        where = "everywhere" if len(self.groups) == 1 else "at {} of the leaves"
        checks = [
            *((f"{one} at term {leaf} alone", Terms(((leaf, (1, unit)),)), 1) for leaf in singles),
            *((f"{one} {where.format(len(group))}", Terms((), group, (1, unit)), len(group)) for group in self.groups),
            *((f"2^{mask} at term {leaf} alone", Terms(((leaf, (1, mask)),)), 1 << mask - unit) for leaf in masked),
        ]
        for text, terms, expected in checks:
            [value] = self.values([(terms, text)])
            if value is None or value != expected * Fraction(2) ** unit:
                self._may_be_weighed = bool(value) or (
                    self.missing and value == 0 and terms.own[:1] != (("c", (1, unit)),)
                )
                self._unheard &= value == 0 and terms.own[:1] == (("c", (1, unit)),)
                answer = number_text(self.questions[-1].d, self.model.d)
                scaled = value and terms.own and value.numerator.bit_count() != 1
                return f"{text} gave {answer}{SCALED if scaled else ''}"
        self._may_be_weighed = False
        flaw = self._unread()
        self._unheard &= not flaw
        return flaw

    def _weigh(self) -> bool:
        """Ask for 1 at each leaf alone: the device may subtract terms, multiply terms by powers of two or all terms by
        one other factor, or leave products out. Returns whether it does any of these."""
        self._weighed, self.normal = True, True
        self._given.clear()  # answers to questions without weights
        values = self.values([(Terms(((leaf, (1, 0)),)), f"1 at term {leaf} alone") for leaf in self.leaves])
        alone = dict(zip(self.leaves, values, strict=True))
        self._leave_out([k for k in self.products if alone[k] == 0] if self.missing else [])
        if self.any_factor and (factor := factor_of(alone)) != 1:
            self.factor, self._highest = factor, None  # masks of every size are tried again
        sums = {leaf: self._divided(alone[leaf]) for leaf in self.leaves}
        self.weights = weights_of(sums)
        self._uneven = uneven(sums)
        return bool(self.weights or self.left_out or self.factor != 1)

    def _leave_out(self, silent: Sequence[int]) -> None:
        """Remove from the leaves the products that alone gave zero, if a huge number there changes nothing either."""
        high = self._range(True)[1]
        asked = [(Terms(((k, (1, high)),)), f"2^{high} at term {k} alone") for k in silent]
        gone = [k for k, value in zip(silent, self.values(asked), strict=True) if value == 0]
        if gone and len(gone) < len(self.products):
            self.left_out = tuple(gone)
            self.products = [k for k in self.products if k not in gone]
            self.leaves = [leaf for leaf in self.leaves if leaf not in gone]
            self.groups = [self.leaves]

    def _unread(self) -> str:
        """The reason why units cannot be counted under a mask; empty if they can."""
        if len(self.leaves) < 3:
            return ""
        pair, seen = (self.leaves[0], self.leaves[-1]), ""
        for signs in VARIANTS:
            [value] = self._masks([(pair, signs, self.span.unit, self.groups[0])])
            count = self._count(value, self.groups[0], signs, 0)
            if count is not None and count <= len(self.leaves) - 2:
                if len(self.groups) == 1:
                    self._know(pair, len(self.leaves) - count)
                return ""
            if not seen:
                text = self._mask(pair, signs, self.span.unit, self.groups[0])[1]
                seen = f"{text}: {'no number' if value is None else powers(value)}"
        spared = self._spared(pair)
        if spared is None:
            return seen
        self._know(pair, len(self.leaves) - spared)
        return ""

    def lost(self, one: Leaf, other: Leaf) -> int:
        """The number of leaves, both included, that a mask on two leaves takes out of the sum. Raises
        UnrevealedError."""
        pair = pair_of(one, other)
        if pair not in self.asked:
            self.ask_pairs([pair])
        return self.asked[pair]

    def ask_pairs(self, pairs: Iterable[tuple[Leaf, Leaf]]) -> None:
        """Ask about masks on pairs of leaves, all new pairs together. Raises UnrevealedError."""
        new = [pair for pair in dict.fromkeys(pair_of(*pair) for pair in pairs) if pair not in self.asked]
        for group in (new[:1], new[1:]):  # the first pair shows which signs work
            for pair, lost in zip(group, self.measure(group, 0), strict=True):
                self._know(pair, lost)

    def ask_around(self, pivot: Leaf, others: Sequence[Leaf]) -> None:
        """Ask about masks on one leaf and each of some other leaves. If units are counted in several groups, few
        questions suffice: the sets of leaves that such masks hide are nested, so that every mask between two masks that
        hide equally many leaves of a group hides as many. Some counts are then `assumed`. Raises UnrevealedError."""
        new = [pair_of(pivot, leaf) for leaf in others if pair_of(pivot, leaf) not in self.asked]
        whole = len(self.groups) == 1 or self.singly
        self.ask_pairs(new if whole else new[:1])
        nested = Nested(self.counts, self.groups, new[1:], pivot) if not whole else None
        for pair, left in nested.left().items() if nested is not None else ():
            self.assumed.add(pair)
            self._know(pair, len(self.leaves) - left)
        self.ask_pairs(new)

    def ask_assumed(self) -> bool:
        """Ask in full about masks for which counts were assumed. Returns whether there were such masks. Raises
        UnrevealedError."""
        pairs = list(self.assumed)
        self.assumed.clear()
        for pair, lost in zip(pairs, self.measure(pairs, 0), strict=True):
            self.asked[pair] = lost
        return bool(pairs)

    def counts(self, asked: Sequence[tuple[Pair, Sequence[Leaf]]]) -> list[int | None]:
        """For each question, the number of units of a group that come back under a mask; None if the answer does not
        show it."""
        values = self._masks([(pair, self.signs, self.span.unit, group) for pair, group in asked])
        pairs = zip(values, asked, strict=True)
        return [self._count(value, group, self.signs, 0) for value, (_, group) in pairs]

    def _know(self, pair: Pair, lost: int) -> None:
        self.asked[pair] = lost
        self.met[pair[0]].append(pair[1])
        self.met[pair[1]].append(pair[0])

    def measure(self, pairs: Sequence[Pair], raised: int) -> list[int]:
        """The numbers of leaves that masks on pairs hide, asked with units 2^raised times as large. Raises
        UnrevealedError."""
        if self.singly:
            return self._measure_singly(pairs, self.span.unit + raised)
        counts: list[int | None] = [None] * len(pairs)
        seen: list[list[str]] = [[] for _ in pairs]
        count, unit = len(self.groups), self.span.unit + raised
        # with directed rounding and the wrong sign of the units, an ulp of the mask remains: try other signs
        for number, signs in enumerate(dict.fromkeys((self.signs, *VARIANTS))):
            if number == 1 and not raised:
                for place in [place for place, lost in enumerate(counts) if lost is None]:
                    spared = self._traces(0).as_before(pairs[place])
                    if spared is not None:
                        counts[place] = len(self.leaves) - spared
                        self.traced.add(pairs[place])
            rest = [place for place, lost in enumerate(counts) if lost is None]
            values = self._masks([(pairs[place], signs, unit, group) for place in rest for group in self.groups])
            for position, place in enumerate(rest):
                left = self._left(values[position * count : (position + 1) * count], signs, raised)
                if left is not None:
                    counts[place], self.signs = len(self.leaves) - left, signs
                else:
                    value = values[position * count]
                    seen[place].append("nan or infinite" if value is None else powers(value))
        return [
            self._beside_a_trace(pair, raised, texts) if lost is None else lost
            for pair, lost, texts in zip(pairs, counts, seen, strict=True)
        ]

    def _measure_singly(self, pairs: Sequence[Pair], unit: int) -> list[int]:
        """The numbers of leaves that masks hide, each leaf asked about alone. Raises NoTreeError for a mask that does
        not cancel, for instance since a partial sum saturates."""
        masks = [(pair, self.signs, unit, group) for pair in pairs for group in self.groups]
        lost = dict.fromkeys(pairs, 0)
        for (pair, signs, _, group), value in zip(masks, self._masks(masks), strict=True):
            if value is None or (value and group[0] in pair):
                text = f"2^{self.span.mask} at {pair[0]} and its negative at {pair[1]} do not cancel"
                raise NoTreeError(text, tuple(self.questions))
            lost[pair] += value != signs[1] * Fraction(2) ** unit
        return list(lost.values())

    def _beside_a_trace(self, pair: Pair, raised: int, seen: Sequence[str]) -> int:
        spared = self._spared(pair, raised)
        if spared is None:
            text = self._mask(pair, self.signs, self.span.unit + raised, self.groups[0])[1]
            raise self.fail(f"{text}: no number of units came back, but {', '.join(seen)}")
        return len(self.leaves) - spared

    def spares(self, pair: Pair, group: Sequence[Leaf]) -> bool | None:
        """Whether any units at some leaves come back under a mask; None if no answer shows it."""
        if self.singly:
            return any(self.counts([(pair, [leaf]) for leaf in group]))
        for signs in dict.fromkeys((self.signs, *VARIANTS)):
            count = self._traces(0).count(pair, signs, group)
            if count is not None:
                return count > 0
        return None

    def _spared(self, pair: Pair, raised: int = 0) -> int | None:
        """The number of units that come back beside a trace of the mask, counted in groups as small as needed; None if
        no answer shows it."""
        self.traced.add(pair)
        return self._traces(raised).spared(pair)

    def _traces(self, raised: int) -> TraceCounter:
        least = self.span.unit + raised
        if self._beside is None or self._beside.least != least:

            def ask(pair: Pair, signs: Power, unit: int, group: Sequence[Leaf]) -> Fraction | None:
                exact = self.factor == 1  # beside a trace, every bit of a result counts
                return self._masks([(pair, signs, unit, group)])[0] if exact else None

            groups = self.groups if self._beside is None else self._beside.groups
            self._beside = TraceCounter(ask, groups, least, self.model.d.precision)
        return self._beside

    def _left(self, values: Sequence[Fraction | None], signs: Power, raised: int) -> int | None:
        """The number of units that came back in all groups; None if a result is not a whole number of units."""
        total = 0
        for value, group in zip(values, self.groups, strict=True):
            count = self._count(value, group, signs, raised)
            if count is None:
                return None
            total += count
        return total if total <= len(self.leaves) - 2 else None

    def _count(self, value: Fraction | None, group: Sequence[Leaf], signs: Power, raised: int) -> int | None:
        """The number of units of a group in a sum. If the sum is no whole number of units: None, or 0 if each leaf is
        asked about alone."""
        if value is None:
            return None
        count = value / (signs[1] * Fraction(2) ** (self.span.unit + raised))
        whole = count.denominator == 1 and 0 <= count <= len(group)
        return int(count) if whole else 0 if self.singly else None

    def come_back(self, asked: Sequence[tuple[Pair, Sequence[Leaf], int]]) -> list[bool]:
        """For each question, whether units at some leaves, the given number of places below a mask, come back in full,
        with zeros at all other leaves."""
        most, masks = self.together, list[tuple[Pair, Power, int, Sequence[Leaf]]]()
        places = list[int]()
        for place, (pair, leaves, distance) in enumerate(asked):
            for start in range(0, len(leaves), most):
                masks.append((pair, self.signs, self.span.mask - distance, leaves[start : start + most]))
                places.append(place)
        values = self._masks(masks) if self.singly else self.values([self._mask(*mask) for mask in masks])
        full = [len(group) * signs[1] * Fraction(2) ** unit for _, signs, unit, group in masks]
        lost = {place for place, value, units in zip(places, values, full, strict=True) if value != units}
        return [place not in lost for place in range(len(asked))]

    def _masks(self, masks: Sequence[tuple[Pair, Power, int, Sequence[Leaf]]]) -> list[Fraction | None]:
        """The sums of masks on pairs with units, each as (pair, signs, exponent of the units, group of leaves). New
        ones are asked together."""
        keys = [(pair, signs, self.span.mask, unit, group[0], len(group)) for pair, signs, unit, group in masks]
        new = {key: mask for key, mask in zip(keys, masks, strict=True) if key not in self._given}
        values = self.values([self._mask(*mask) for mask in new.values()])
        self._given |= dict(zip(new, values, strict=True))
        return [self._given[key] for key in keys]

    def _mask(self, pair: Pair, signs: Power, unit: int, group: Sequence[Leaf]) -> tuple[Terms, str]:
        """The terms of a mask on a pair of leaves and units at the other leaves of a group, with the question's
        text."""
        own = ((pair[0], (signs[0], self.span.mask)), (pair[1], (-signs[0], self.span.mask)))
        some = "elsewhere" if len(group) == len(self.leaves) else f"at the others of {group[0]} to {group[-1]}"
        text = f"2^{self.span.mask} at {pair[0]}, its negative at {pair[1]}, units of 2^{unit} {some}"
        return Terms(own, group, (signs[1], unit)), text

    @property
    def places(self) -> int:
        """The least distance, in places, of mask and unit in any question."""
        return self.span.mask - max(self.span.unit, self._beside.most if self._beside is not None else self.span.unit)

    def survivors(self, pair: Pair, others: list[Leaf], unit: int, text: str) -> Fraction | None:
        """The device's sum of units at some leaves under a mask, as a multiple of the unit, with zeros elsewhere; None
        if it is not finite."""
        sign, small = self.signs
        terms: dict[Leaf, Power] = dict.fromkeys(others, (small, unit))
        terms[pair[0]], terms[pair[1]] = (sign, self.span.mask), (-sign, self.span.mask)
        value = self.value(terms, text)
        return None if value is None else value / (small * Fraction(2) ** unit)


@dataclass
class _Filled:
    """The patterns of a vector while it is being filled. `rest`: the patterns of the operands other than a, b and c, by
    name."""

    a: list[int]
    b: list[int]
    c: int
    rest: dict[str, list[int]]

    def copied(self) -> _Filled:
        rest = {name: side.copy() for name, side in self.rest.items()}
        return _Filled(self.a.copy(), self.b.copy(), self.c, rest)
