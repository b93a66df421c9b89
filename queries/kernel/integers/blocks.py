"""The loss where a block of elements of a row or a column shares a scale factor, which is found from its elements.

Bounds are in terms of the largest magnitude of a block: the error of an element's quantised number as a multiple of it,
and sums of quantised numbers as multiples of the sum over blocks of the product of both largest magnitudes.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Literal as OneOf
from typing import TypeAlias

from mmaprobe.queries.kernel.bounds.forms import Form, round_up
from mmaprobe.queries.kernel.bounds.induction import Chained
from mmaprobe.queries.kernel.bounds.parts import adds_products_once
from mmaprobe.queries.kernel.bounds.wording import up_text
from mmaprobe.queries.kernel.integers.slices import LEAST, LosesOfLargest
from mmaprobe.queries.kernel.theorem import Made, RuleError, Theorem, goal_of, rule
from mmaprobe.smtmodel.arithmetic.display import finite_value
from mmaprobe.smtmodel.arithmetic.formats import Format
from mmaprobe.smtmodel.carriers.algebra import constant
from mmaprobe.smtmodel.carriers.arrays import ArrayCarrier
from mmaprobe.smtmodel.evaluate.model import pattern_of
from mmaprobe.smtmodel.nodes import Constant, Element, Literal, Node, Product, Quotient, Round
from mmaprobe.smtmodel.nodes.element import flushed_in
from mmaprobe.smtmodel.nodes.given import Given
from mmaprobe.smtmodel.nodes.known import power
from mmaprobe.smtmodel.nodes.node import of_kind, walk
from mmaprobe.smtmodel.nodes.round import Rounding
from mmaprobe.smtmodel.plans.plan import Plan, Products
from mmaprobe.smtmodel.plans.stages import Chain
from mmaprobe.smtmodel.plans.words import Gathered, LargestOf, Scaled, factor_over, over_given

FACTORS = ["scale_a", "scale_b"]


@dataclass(frozen=True)
class LosesOfBlocks:
    """For K = `length`, c = +0 and finite elements, where no rounding of sums overflows: |d - exact| <= share * the sum
    over blocks of the number of products of a whole block times the largest magnitudes of both sides, plus `rest`. The
    largest magnitude of each block is from 2^-reach to 2^reach, or, with `zeros`, zero; with `spread`, one that is not
    zero is at least 2^-spread times that of its row, or of its column."""

    plan: Plan
    length: int
    reach: int
    spread: int | None
    zeros: bool
    share: Fraction
    rest: Fraction

    @property
    def block(self) -> int:
        """The number of products in a whole block."""
        return self.plan.scale_block

    @property
    def bound(self) -> str:
        rest = f" + {up_text(self.rest)}" if self.rest else ""
        return f"|d - exact| <= {up_text(self.share)} * {self.block} * sum of max |a_k| * max |b_k| of each block{rest}"

    @property
    def where(self) -> str:
        """The largest magnitudes for which the bound holds."""
        range_text = f"the largest magnitudes of blocks of {self.block} are from 2^-{self.reach} to 2^{self.reach}"
        rows = f" and at least 2^-{self.spread} times those of their rows and columns"
        return f"{range_text}{'' if self.spread is None else rows}{', or 0' if self.zeros else ''}"

    def statement(self) -> str:
        return f"{self.plan.reference or 'a plan'}: {self.bound} (K = {self.length}, c = 0; {self.where})"


InLargest: TypeAlias = LosesOfLargest | LosesOfBlocks  # bounds in largest magnitudes


@rule
def loses_of_blocks(plan: Plan, length: int, reach: int, spread: int | None, zeros: bool, chain: Theorem) -> Made:
    """The result of a chain of instructions from zero, for quantised numbers and their factors, is as far from their
    exact sum as `_Results` says. A quantised number is as far from its element as `_Side` says; the errors of two such
    numbers give that of their product."""
    goal: Chained = goal_of(chain, Chained, "loses_of_blocks")
    if length < 1 or not 0 <= reach < LEAST or not (spread is None or 0 <= spread < LEAST):
        raise RuleError(f"loses_of_blocks: K is from 1 on, and exponents are from 0 to {LEAST - 1}")
    if [model.unit for model in plan.models] != [goal.unit]:
        raise RuleError("loses_of_blocks: the premise is not about the plan's unit")
    if flushed_in(goal.unit.result):
        raise RuleError("loses_of_blocks: a unit reads subnormal numbers as zero")
    adds_products_once(goal.unit, True)
    words = list(dict.fromkeys(plan.read(use.words) for use in plan.chains))
    if len(words) > 1 or not all(isinstance(one, Scaled) for one in words[0]):
        raise RuleError("loses_of_blocks: units read other words than those of one block format")
    a, b = (_Side.of(one, reach, spread, zeros) for one in words[0] if isinstance(one, Scaled))
    found = _Results(goal, a, b, length, reach).of(plan.result)
    if found.rows != (-a.rows, -b.rows):
        raise RuleError("loses_of_blocks: the largest magnitudes of a row do not cancel")
    times = found.times * a.middle * b.middle
    share = times * found.share + abs(times - 1) * a.most * b.most + (1 + a.loss) * (1 + b.loss) - 1
    return Made(LosesOfBlocks(plan, length, reach, spread, zeros, share, found.rest), (chain,))


# -- numbers found from elements


@dataclass(frozen=True)
class _Region:
    """The logarithms of the largest magnitudes of a block and of its row, as the corners of the region of both."""

    corners: tuple[tuple[int, int], ...]

    @classmethod
    def of(cls, reach: int, spread: int | None) -> _Region:
        near = 2 * reach if spread is None else min(spread, 2 * reach)
        return cls(((-reach, -reach), (reach, reach), (reach - near, reach), (-reach, near - reach)))

    def most(self, block: int, row: int) -> int:
        """The logarithm of the largest product of these powers of both magnitudes."""
        return max(block * x + row * y for x, y in self.corners)


@dataclass(frozen=True)
class _Size:
    """A number that is from `low` to `high` times the `powers` of the largest magnitude of the block, of that of its
    row, and of the scale factor; and, with `element`, times the element, with a further error of at most `tiny`."""

    low: Fraction
    high: Fraction
    powers: tuple[int, int, int] = (0, 0, 0)
    element: bool = False
    tiny: Fraction = Fraction(0)

    def times(self, other: _Size) -> _Size:
        (i, j, k), (x, y, z) = self.powers, other.powers
        if (self.element and other.element) or (self.tiny or other.tiny):
            raise RuleError("loses_of_blocks: elements are multiplied, or multiplied again once they are rounded")
        return _Size(self.low * other.low, self.high * other.high, (i + x, j + y, k + z), self.element or other.element)

    @property
    def inverse(self) -> _Size:
        i, j, k = self.powers
        if self.element:
            raise RuleError("loses_of_blocks: a number is divided by an element")
        return _Size(1 / self.high, 1 / self.low, (-i, -j, -k))


@dataclass
class _Sizes:
    """The numbers of which the words of a side are made. `factor`: the scale factor, which counts as a magnitude of its
    own; `own`: its size."""

    factor: Round
    region: _Region
    rows: bool  # whether the largest magnitude of the row is known
    own: _Size | None = None
    made: dict[Node, _Size] = field(default_factory=dict)

    def of(self, node: Node) -> _Size:
        if node not in self.made:
            self.made[node] = self._of(node)
        return self.made[node]

    def _of(self, node: Node) -> _Size:
        match node:
            case Given():
                return _Size(Fraction(1), Fraction(1), element=True)
            case LargestOf():
                if node.block is None and not self.rows:
                    raise RuleError("loses_of_blocks: it is not known how far the largest magnitudes of blocks differ")
                return _Size(Fraction(1), Fraction(1), (0, 1, 0) if node.block is None else (1, 0, 0))
            case Literal() if (value := _positive(node)) is not None:
                return _Size(value, value)
            case Product(limit=None):
                return self.of(node.left).times(self.of(node.right))
            case Quotient():
                return self.of(node.left).times(self.of(node.right).inverse)
            case Round():
                found = self._rounded(node.rounding, self.of(node.term))
                if node is not self.factor:
                    return found
                self.own = found
                return _Size(Fraction(1), Fraction(1), (0, 0, 1))
        raise RuleError(f"loses_of_blocks: the rule does not cover words with a {node.kind}")

    def range(self, size: _Size) -> tuple[Fraction, Fraction]:
        """The least and the largest of such numbers; with an element, for the element of the largest magnitude."""
        i, j, k = size.powers
        low, high = size.low, size.high
        if k:
            assert self.own is not None
            own = self.own if k > 0 else self.own.inverse
            low, high = low * own.low ** abs(k), high * own.high ** abs(k)
            i, j = i + abs(k) * own.powers[0], j + abs(k) * own.powers[1]
        i += size.element
        return low / power(self.region.most(-i, -j)), high * power(self.region.most(i, j))

    def _rounded(self, how: Rounding, size: _Size) -> _Size:
        fmt = how.format
        low, high = self.range(size)
        room = fmt.most
        if fmt.is_integer or fmt.complement or how.subnormals != "keep":
            raise RuleError("loses_of_blocks: a rounding with rules of its own")
        below, above = off_by(how)
        if size.element and how.mode == "up":
            raise RuleError("loses_of_blocks: elements of both signs are rounded up")
        if how.mode == "nearest_even":
            room += power(fmt.emax - fmt.precision - 1)  # a quarter of its last place
        if high + size.tiny > room:
            raise RuleError("loses_of_blocks: a number of which a word is made may overflow")
        if not size.element:
            if low < power(fmt.emin):
                raise RuleError("loses_of_blocks: a number of which a scale factor is made may be subnormal")
            return replace(size, low=size.low * below, high=size.high * above)
        if not fmt.subnormals:
            raise RuleError("loses_of_blocks: an element is rounded to a format without zero")
        tiny = size.tiny * above + power(fmt.unit)
        return replace(size, low=size.low * below, high=size.high * above, tiny=tiny)


def off_by(how: Rounding) -> tuple[Fraction, Fraction]:
    """The least and the largest ratio of a rounded number to the normal number above zero that is rounded."""
    unit = power(-how.format.precision)
    match how.mode:
        case "nearest_even":
            return 1 - unit / (1 + unit), 1 + unit / (1 + unit)
        case "toward_zero":
            return 1 / (1 + 2 * unit), Fraction(1)
        case "up":
            return Fraction(1), 1 + 2 * unit
    raise RuleError(f"loses_of_blocks: the rule does not cover rounding {how.mode}")


def _positive(node: Literal) -> Fraction | None:
    return node.value if node.value is not None and node.value > 0 else None


def _of_zeros(node: Node, sizes: _Sizes) -> OneOf["zero", "positive", "infinite"]:
    """The kind of a number in a block of zeros; the largest magnitude of its row, if known, is not zero."""
    if not any(isinstance(one, Given) or (isinstance(one, LargestOf) and one.block is not None) for one in walk(node)):
        sizes.of(node)  # only numbers of the row: a normal one
        return "positive"
    match node:
        case Given() | LargestOf():
            return "zero"
        case Product(limit=None) | Quotient():
            kinds = (_of_zeros(node.left, sizes), _of_zeros(node.right, sizes))
            if kinds == ("positive", "zero") and isinstance(node, Quotient):
                return "infinite"
            if "infinite" not in kinds and (isinstance(node, Product) or kinds[1] == "positive"):
                return min(kinds, key="zero positive".index)
        case Round():
            kind, how = _of_zeros(node.term, sizes), node.rounding
            if kind == "zero":
                return "zero" if how.format.subnormals else "positive"
            if kind == "infinite" and how.overflow == "sat_finite":
                return "positive"
    raise RuleError("loses_of_blocks: it is not known what a block of zeros becomes")


def _idle(word: Scaled, sizes: _Sizes) -> Fraction:
    """The scale factor of a block of zeros. Raises RuleError if elements of such a block, or of a row of zeros, may not
    become zeros."""
    factor = word.factor
    assert factor is not None
    if (_of_zeros(word.element, sizes), _of_zeros(factor.term, sizes)) != ("zero", "zero"):
        raise RuleError("loses_of_blocks: elements of a block of zeros are not zero")
    least = finite_value(0, factor.rounding.format)
    assert least is not None
    (own,) = {one.format for one in walk(word.element) if isinstance(one, Given)}
    by_row = any(isinstance(one, LargestOf) and one.block is None for one in walk(word))
    if by_row and (least or _in_zeros(over_given(word), own) or _in_zeros(factor_over(factor))):
        raise RuleError("loses_of_blocks: elements or factors of a row of zeros are not zero")
    return least


def _in_zeros(over: tuple[Round, tuple[Gathered, ...]], *own: Format) -> bool:
    """Whether a number is not zero if its element (if it has one) and all that it reads of a row are zeros."""
    node, read = over
    formats = (*own, *(part.given for part in read))
    found = pattern_of(node, *(constant(ArrayCarrier(), 0, fmt.width) for fmt in formats))
    return finite_value(found.node.item(), node.rounding.format) != 0


@dataclass(frozen=True)
class _Side:
    """A quantised number times its factor, divided by `middle` and by the power `rows` of the largest magnitude of the
    row, is an element with an error of at most `loss` times the largest magnitude of the block. Its magnitude, or that
    of the smallest normal number with the same factor, is at most `most` times the block's largest magnitude, and the
    factor at most `factor` times. `idle`: the factor of a block of zeros, if there may be one."""

    middle: Fraction
    rows: int
    loss: Fraction
    most: Fraction
    factor: Fraction
    idle: Fraction

    @classmethod
    def of(cls, word: Scaled, reach: int, spread: int | None, zeros: bool) -> _Side:
        """Let y be the operand of the rounding to the format of elements, and t the largest magnitude times the factor
        of the element in y: |y| <= t + tiny. Rounding to nearest loses no more of y than of the smallest normal number,
        or than the relative error u/(1 + u); saturation loses the part of y beyond the largest number."""
        assert word.factor is not None
        sizes = _Sizes(word.factor, _Region.of(reach, spread), spread is not None)
        sizes.of(word.factor)
        own, how = sizes.of(word.element.term), word.element.rounding
        if not own.element or own.powers[0] or own.powers[2] != -1:
            raise RuleError("loses_of_blocks: what is rounded is not an element divided by its scale factor")
        fmt, room = how.format, how.format.most
        plain = how.mode == "nearest_even" and how.subnormals == "keep" and fmt.subnormals and fmt.signed
        if not plain or fmt.is_integer or fmt.complement:
            raise RuleError("loses_of_blocks: elements are not rounded to nearest numbers of a floating-point format")
        middle, unit, least = (own.low + own.high) / 2, power(-fmt.precision), power(fmt.emin)
        low, high = sizes.range(replace(own, low=middle, high=middle))
        off = own.high / middle - 1 + own.tiny / low
        loss = max(unit / (1 + unit) * (1 + off), unit * least / low)
        if high * (1 + off) > room:
            if how.beyond != "saturate":
                raise RuleError("loses_of_blocks: an element may overflow")
            loss = max(loss, 1 + off - room / high)
        loss += off
        idle = _idle(word, sizes) if zeros else Fraction(0)
        return cls(middle, own.powers[1], loss, max(1 + loss, least / low), 1 / low, idle)

    def largest_factor(self, reach: int) -> Fraction:
        """The largest factor, where no factor depends on the row."""
        return max(self.factor * self.middle * power(reach), self.idle)


# -- results


@dataclass(frozen=True)
class _Result:
    """A number that is `times` the sum, times the powers `rows` of the largest magnitudes of the row and of the column,
    with an error of at most `share` times these factors times the sum over blocks, plus `rest`."""

    times: Fraction
    rows: tuple[int, int]
    share: Fraction
    rest: Fraction


@dataclass
class _Results:
    """The results that are made of a sum; `does`: the effect of an instruction."""

    does: Chained
    a: _Side
    b: _Side
    length: int
    reach: int

    @property
    def most(self) -> Fraction:
        """The largest ratio of the sum of magnitudes of products to the sum over blocks."""
        return self.a.most * self.b.most

    def of(self, node: Node) -> _Result:
        match node:
            case Products(start=Constant() | Element(), stage=Chain(tail=None)):
                return self._sum()
            case Product(limit=None):
                for one, other in ((node.left, node.right), (node.right, node.left)):
                    if any(of_kind(one, Products)):
                        return self._product(self.of(one), other)
            case Round() if node.rounding == Rounding(node.rounding.format) and not node.rounding.format.is_integer:
                found, fmt = self.of(node.term), node.rounding.format
                _, above = off_by(node.rounding)
                share = found.share + (above - 1) * (self.most + found.share)
                return replace(found, share=share, rest=found.rest * above + power(fmt.unit))
        raise RuleError(f"loses_of_blocks: the rule does not cover results with a {node.kind}")

    def _sum(self) -> _Result:
        """By induction: each instruction takes E and A to growth * E + part * A + own and A + size, and A is at most
        the size of all."""
        step, unit = self.does.step, self.does.unit
        count, factors = -(-self.length // unit.length), self.length % unit.length == 0
        own, rest = self._form_bound(step.own, factors)
        size, none = self._form_bound(step.size, factors)
        if none:
            raise RuleError("loses_of_blocks: an instruction adds more than products")
        grown = round_up(max(step.growth, Fraction(1)) ** count)
        return _Result(Fraction(1), (0, 0), grown * (own + count * step.part * size), grown * count * rest)

    def _form_bound(self, form: Form, factors: bool) -> tuple[Fraction, Fraction]:
        """The bound of a form about the products of one instruction: for all instructions together, a multiple of the
        sum over all blocks, and a number for each instruction. `factors`: no block is without elements."""
        shares, rest = defaultdict[tuple[bool, int], Fraction](Fraction), Fraction(0)
        for atom, value in form.flat().parts.items():
            (item,) = atom
            names, places = sorted(factor.name for factor in item), {factor.offset for factor in item}
            if not names:
                rest += value
            elif names == ["a", "b", *FACTORS]:
                (place,) = {factor.offset for factor in item if factor.name in ("a", "b")}
                shares[True, place] += value
            elif names == FACTORS and len(places) == 1 and factors:
                shares[False, places.pop()] += value
            else:
                raise RuleError("loses_of_blocks: the error of an instruction is stated in other magnitudes")
        each, alone = (max((x for (own, _), x in shares.items() if own is kind), default=Fraction(0))
                       for kind in (True, False))  # fmt: skip
        a, b, unit = self.a, self.b, self.does.unit
        if a.idle or b.idle:  # forms have the factors of blocks of zeros, too
            product = max(a.idle * b.largest_factor(self.reach), a.largest_factor(self.reach) * b.idle)
            rest += alone * product * (unit.length // unit.scale_block)
        return each * self.most + alone * a.factor * b.factor / unit.scale_block, rest

    def _product(self, one: _Result, other: Node) -> _Result:
        if isinstance(other, Literal) and (value := _positive(other)) is not None:
            return replace(one, times=one.times * value, rest=one.rest * value)
        if isinstance(other, LargestOf):
            a, b = one.rows
            rows = (a + 1, b) if other.operand == "a" else (a, b + 1)
            return replace(one, rows=rows, rest=one.rest * power(self.reach))
        raise RuleError("loses_of_blocks: a sum is multiplied by more than numbers and largest magnitudes of rows")
