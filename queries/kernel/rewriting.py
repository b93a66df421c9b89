"""Rewriting: a node is replaced by one that computes alike, by a rule and the lemmas that it rests on.

Two nodes compute alike if, on all inputs, their values have the same infinities and NaNs and, where they have none,
both or neither count as zero, and they are the same number with the same sign, that of a zero included. They count
alike if they also have the same exponent, by which a fused sum aligns, wherever they do not count as zero. They compute
alike but for the signs of zeros if, where both are zero, the signs may differ: products, exact sums, cuts and roundings
preserve this, since there the sign of a zero operand affects only the sign of a zero result.

Every rule of `REWRITES` gives a replacement for one node, with the lemmas from which it follows that the two compute
alike; if a lemma is not proved, the node is not replaced. m is the largest exponent, at which a fused sum aligns its
terms, and F the number of fraction bits that it keeps.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import zip_longest

from mmaprobe.queries.kernel.closed import REWRITES as REWRITING
from mmaprobe.queries.kernel.closed import is_of
from mmaprobe.queries.kernel.effects import (
    AlignmentKeepsUnit,
    BoundKeeps,
    FormatHolds,
    LargestIsKept,
    NeverReaches,
    Normalises,
    NumberIsKept,
    RoundingKeepsUnit,
    RoundsAlike,
    RoundsTwice,
)
from mmaprobe.queries.kernel.lemmas import AlignmentLoses, Lemma
from mmaprobe.queries.kernel.ranges import Held, Range, Scope, ranges_of
from mmaprobe.queries.kernel.rounding_rises import RoundingScales
from mmaprobe.queries.kernel.theorem import Made, RuleError, Theorem, goal_of, rule
from mmaprobe.queries.kernel.wording import unit_digest
from mmaprobe.smtmodel.arithmetic.formats import Format
from mmaprobe.smtmodel.arithmetic.rounding import NEAREST, Mode, Overflow, Target
from mmaprobe.smtmodel.base.errors import ParameterError
from mmaprobe.smtmodel.nodes import (
    Constant,
    Cut,
    Each,
    ExactSum,
    FusedSum,
    Gate,
    Node,
    Product,
    Relu,
    Repeat,
    Round,
    Running,
    Scale,
)
from mmaprobe.smtmodel.nodes.node import Terminal, walk
from mmaprobe.smtmodel.nodes.rewriting import at_place, with_operands, with_running
from mmaprobe.smtmodel.nodes.round import Rounding
from mmaprobe.smtmodel.units.unit import Unit

SHORT = 3  # loops of at most this number of steps are often written out


@dataclass(frozen=True)
class Alike:
    """The two nodes compute alike in a scope, and count alike if `counting`; but for the signs of zeros if not
    `signs`."""

    scope: Scope
    node: Node
    other: Node
    counting: bool
    signs: bool = True

    def statement(self) -> str:
        counts, zeros = " and counts" if self.counting else "", "" if self.signs else ", but for the signs of zeros"
        return f"this {self.node.kind} computes{counts} as the other {self.other.kind}{zeros}"


@dataclass(frozen=True)
class Replacement:
    """The node that a rule puts in place of another, and the lemmas that have to be proved. `counting`: the two count
    alike as well; `signs`: zeros have the same signs."""

    other: Node
    lemmas: tuple[Lemma, ...] = ()
    counting: bool = True
    signs: bool = True


Rewrite = Callable[[Scope, Node], Replacement | None]
REWRITES: dict[str, Rewrite] = {}  # by what is said of them


def rewrite(name: str) -> Callable[[Rewrite], Rewrite]:
    """A rule of rewriting, one of `closed.REWRITES`. Raises RuleError for any other function or name."""

    def kept(function: Rewrite) -> Rewrite:
        if name in REWRITES or function in REWRITES.values() or not is_of(REWRITING, function):
            raise RuleError(f"{function.__module__}.{function.__qualname__} is none of the kernel's rules of rewriting")
        REWRITES[name] = function
        return function

    return kept


# --- the rules of rewriting -----------------------------------------------------------------------------------------


@rewrite("product limit never reached")
def unreached(scope: Scope, node: Node) -> Replacement | None:
    """If no product of finite numbers has a magnitude of 2^limit or more, the limit makes none infinite."""
    if not isinstance(node, Product) or node.limit is None or (ranges := ranges_of(scope, node)) is None:
        return None
    return Replacement(replace(node, limit=None), tuple(NeverReaches(one, node.limit) for one in _sorted(ranges)))


@rewrite("gated products whose zeros have any sign")
def gated_zero(scope: Scope, node: Node) -> Replacement | None:
    """The two gates of a product differ in the signs of zeros alone, and from the product as well, if no factor can be
    a NaN or infinite: the product is zero where a factor is."""
    if not isinstance(node, Gate):
        return None
    held = [scope.known(factor).formats for factor in node.term.operands]
    if all(own is not None and not any(fmt.has_nan or fmt.has_infinity for fmt in own) for own in held):
        return Replacement(node.term, signs=False)
    return Replacement(replace(node, minus_zero=False), signs=False) if node.minus_zero else None


@rewrite("products held by the format that they are rounded to")
def held_product(scope: Scope, node: Node) -> Replacement | None:
    """If rounding does not change the value of a product, as a term of a sum, it only normalises the product. Rounding
    to a format that has infinities, NaNs and signs does not change these."""
    for place, item in enumerate(_items(node)):
        term = item.body if isinstance(item, Each) else item
        if not isinstance(term, Round) or not isinstance(term.term, Product) or term.rounding.loses_nan:
            continue
        how, ranges = term.rounding, ranges_of(scope, term.term)
        if ranges is None or how.format.specials != "ieee" or how.subnormals == "flush_before":
            continue
        product = replace(term.term, normalised=True)
        other = replace(item, body=product) if isinstance(item, Each) else product
        items = (*node.operands[:place], other, *node.operands[place + 1 :])
        lemmas = tuple(FormatHolds(one, target_of(how)) for one in _sorted(ranges))
        return Replacement(with_operands(node, items), lemmas)
    return None


@rewrite("products that an exact sum normalises in vain")
def normalised_in_vain(scope: Scope, node: Node) -> Replacement | None:
    """A normalised product is the same number with another exponent."""
    if not isinstance(node, Product) or not node.normalised:
        return None
    other = replace(node, normalised=False)
    if (ranges := ranges_of(scope, other)) is None:
        return None
    return Replacement(other, tuple(map(Normalises, _sorted(ranges))), counting=False)


@rewrite("floor below every term")
def needless_floor(scope: Scope, node: Node) -> Replacement | None:
    """A floor z, the exponent of zero terms or a least m, raises m to max(m, z). If a nonzero term has an exponent of
    at least z, m does not change; if all terms are zero, so is the sum. Else m < z, and every nonzero term has an
    exponent of at most m: if each is the same number aligned at m and at z, the sum is the same number, in other units,
    provided that nothing else depends on m: no carry bits, no sticky bit, and no reach."""
    if not isinstance(node, FusedSum):
        return None
    bound = node.least if node.zeros is None else node.zeros
    if bound is None or (terms := _ranges(scope, node)) is None:
        return None
    low = [(one, bits) for one, bits in terms if one.low < bound]
    if low and (node.carry_bits is not None or node.sticky or any(far is not None for far in node.reach)):
        return None
    if any(bound - bits > one.unit for one, bits in low):  # bits may lie below the last place: the lemma is not tried
        return None
    lemmas = tuple(BoundKeeps(one, bits, node.rounding, bound) for one, bits in low)
    other = replace(node, zeros=None) if node.zeros is not None else replace(node, least=None)
    return Replacement(other, lemmas, counting=not low)


@rewrite("carry bits that no sum needs")
def needless_carry(scope: Scope, node: Node) -> Replacement | None:
    """A sum in F + 1 + n bits and a sign does not wrap if it is always below 2^(F + 1 + n) units. A term below h * 2^e
    is less than h * 2^F units when aligned, or one unit more if alignment may round it up."""
    if not isinstance(node, FusedSum) or node.carry_bits is None or (terms := _ranges(scope, node)) is None:
        return None
    if not fits(scope, node):
        return None
    return Replacement(replace(node, carry_bits=None), _losses(terms, node.rounding))


def fits(scope: Scope, node: FusedSum) -> bool:
    """Whether a sum never wraps."""
    heads = [_head(scope, item) for item in node.items]
    if any(head is None for head in heads):
        return False
    raised = 0 if node.rounding == "toward_zero" else Fraction(1, 1 << min(node.bits_of_terms))
    most = sum(item.count * (head + raised) for item, head in zip(node.items, heads, strict=True) if head)
    return node.carry_bits is None or most < 2 ** (1 + node.carry_bits)


def _head(scope: Scope, node: Node) -> Fraction | None:
    """The largest magnitude that a term can have, as a multiple of 2^e for its exponent e; None if not known."""
    if isinstance(node, (Each, Gate)):
        return _head(scope, node.body if isinstance(node, Each) else node.term)
    if isinstance(node, Product) and not node.normalised:
        left, right = (_head(scope, operand) for operand in node.operands)
        return None if left is None or right is None else left * right
    ranges = ranges_of(scope, node)
    if ranges is None:
        return None
    return max((Fraction((1 << one.width) - 1, 1 << one.fraction) for one in ranges), default=Fraction(0))


@rewrite("fused sum that loses nothing")
def lossless_sum(scope: Scope, node: Node) -> Replacement | None:
    """If every term is a multiple of 2^(m - F) at the largest m that there can be, no alignment loses anything, since
    it loses less than one unit: the sum is exact. Whether it counts as zero, and the sign of a zero, depend on the
    numbers added, in both."""
    if not isinstance(node, FusedSum) or node.sticky or node.carry_bits is not None or not _is_several(node):
        return None
    if any(far is not None for far in node.reach) or not (terms := _ranges(scope, node)):
        return None
    top = max([one.high for one, _ in terms] + [*node.bounds])
    if any(one.unit < top - bits for one, bits in terms):
        return None
    return Replacement(ExactSum(node.items), _losses(terms, node.rounding), counting=False)


@rewrite("overflow as the rounding has it")
def plain_overflow(scope: Scope, node: Node) -> Replacement | None:
    """IEEE 754-2019, 7.4: beyond the largest number, to nearest gives infinity, and toward zero the largest number. The
    rule for overflow changes nothing else in a rounding."""
    given: dict[Mode, Overflow] = {"nearest_even": "infinity", "nearest_away": "infinity", "toward_zero": "saturate",
                                   "to_odd": "saturate"}  # fmt: skip
    if not isinstance(node, Round) or node.rounding.overflow != "ieee" or node.rounding.mode not in given:
        return None
    how = replace(node.rounding, overflow=given[node.rounding.mode])
    return Replacement(replace(node, rounding=how), (RoundsAlike(target_of(node.rounding), target_of(how)),))


@rewrite("no sum rounded to zero")
def no_sum_to_zero(scope: Scope, node: Node) -> Replacement | None:
    """Whether every zero result is +0, or only every exact zero sum, makes a difference only where a nonzero sum is
    rounded to zero. If every term is a multiple of the smallest subnormal number, aligned or not, so is the sum,
    wrapped or not, and no nonzero multiple is rounded to zero."""
    if not isinstance(node, Round) or node.rounding.zero != "positive":
        return None
    other = _with_plus(node)
    return None if (lemmas := _kept_from_zero(scope, other)) is None else Replacement(other, lemmas)


@rewrite("no last sum of a loop rounded to zero")
def no_last_sum_to_zero(scope: Scope, node: Node) -> Replacement | None:
    """As above, of the last of two or more steps, whose result so far has the format of results, whatever the start
    has. The signs of zeros of the steps before may differ: the last step gives an exact zero sum a plus, whatever its
    terms' signs, and reads the sign of a zero nowhere else."""
    if not isinstance(node, Repeat) or len(node.places) < 2 or not is_blind(node.body):
        return None
    last = scope.within(node.level, Held(scope.known(node.body).formats or frozenset()))
    found = no_sum_to_zero(last, node.body)
    return None if found is None else replace(found, other=replace(node, body=found.other))


def _kept_from_zero(scope: Scope, node: Round) -> tuple[Lemma, ...] | None:
    """The lemmas by which no nonzero sum is rounded to zero; None if one may be."""
    how, fmt = node.rounding, node.rounding.format
    if how.subnormals != "keep" or not _is_sum(node.term):
        return None
    lemmas = _multiples(scope, node.term, fmt.emin - fmt.fraction)
    return None if lemmas is None else (*lemmas, _stays_nonzero(how))


@rewrite("sum that fits the result")
def fitting_sum(scope: Scope, node: Node) -> Replacement | None:
    """A sum of at most 2^p units, where p is the format's precision and a unit at least the smallest subnormal number,
    is a number of the format, unless it overflows, so that all modes round it alike. Wrapping does not make a sum
    larger, and with n carry bits the sum is at most 2^(F + 1 + n) units. The sign of a zero sum depends on the mode if
    that is down and the signs of zeros are IEEE's."""
    if not isinstance(node, Round) or not isinstance(node.term, FusedSum) or node.rounding.subnormals != "keep":
        return None
    how, total, bits, fmt = node.rounding, node.term, node.term.fraction_bits, node.rounding.format
    if how.mode == "toward_zero" or (how.mode == "down" and how.zero == "ieee"):
        return None
    if total.sticky or not isinstance(bits, int):
        return None
    if not (terms := _ranges(scope, total)):
        return None
    most = _most_units(scope, total, bits)
    if total.carry_bits is not None:
        most = min(most, 1 << bits + 1 + total.carry_bits)
    low, high = min(one.low for one, _ in terms) - bits, max([one.high for one, _ in terms] + [*total.bounds]) - bits
    if most > 1 << fmt.precision or low < fmt.emin - fmt.fraction or high > fmt.emax:
        return None
    other = replace(how, mode="toward_zero")
    losses = _losses(terms, total.rounding)
    return Replacement(replace(node, rounding=other), (*losses, RoundsAlike(target_of(how), target_of(other), True)))


def _most_units(scope: Scope, total: FusedSum, bits: int) -> int:
    """An upper bound of the magnitudes of a sum's terms together, in units of 2^(m - bits), from the ranges of the
    terms, which are known: a term below 2^(m + i) is at most 2^(i + bits) units, also if alignment raises it by less
    than one."""
    most = 0
    for item in total.items:
        integers = [one.integer for one in ranges_of(scope, item) or ()]
        most += item.count << max(integers) + bits if integers else 0
    return most


def _losses(terms: Sequence[tuple[Range, int]], mode: Mode) -> tuple[Lemma, ...]:
    """The lemmas that alignment raises no term by as much as one unit of the last place kept."""
    return tuple(dict.fromkeys(AlignmentLoses(one.width, one.fraction, bits, mode) for one, bits in terms))


@rewrite("a term that is never -0")
def positive_term(scope: Scope, node: Node) -> Replacement | None:
    """Unless rounding is down, an exact zero sum is -0 only if all terms have the sign set. A term that is never -0 has
    it only if it is less than zero; then another term, which an exact sum does not truncate, is greater than zero."""
    if not _has_ieee_zeros(node) or not isinstance(node, Round):
        return None
    other = _with_plus(node)
    if Constant() in _items(node.term):
        return Replacement(other)
    items = _items(node.term) if isinstance(node.term, ExactSum) else ()
    lemmas = next((found for item in items if (found := _never_negative_zero(scope, item)) is not None), None)
    return None if lemmas is None else Replacement(other, lemmas)


def _never_negative_zero(scope: Scope, node: Node) -> tuple[Lemma, ...] | None:
    """The lemmas by which no value of a node is -0: it is rounded with +0 for every zero result, or with +0 for exact
    zero sums if no other sum is rounded to zero; in a loop, in every step. None if a value may be -0."""
    if isinstance(node, Repeat):
        held = kind_of(scope, node)
        return None if held is None else _never_negative_zero(scope.within(node.level, held), node.body)
    if not isinstance(node, Round) or node.rounding.zero == "ieee" or not node.rounding.nan_or_zero:
        return None
    return () if node.rounding.zero == "positive" else _kept_from_zero(scope, node)


@rewrite("sign of a zero that nothing reads")
def unread_sign(scope: Scope, node: Node) -> Replacement | None:
    """The rule for the signs of zeros changes nothing else in a rounding."""
    if not isinstance(node, Round) or node.rounding.zero == "exact_positive":
        return None
    return Replacement(_with_plus(node), signs=False)


@rewrite("exact sum in an exact sum")
def nested_sum(_: Scope, node: Node) -> Replacement | None:
    """Nothing is lost between an exact sum and another one that it is a term of. An infinity or a NaN among the terms
    of either is one of the whole, which counts as zero where all of them do; the sign of a zero depends on whether all,
    or any, of the numbers added are negative, in either grouping."""
    if not isinstance(node, ExactSum) or (other := node.flat) is node:
        return None
    return Replacement(other)


@rewrite("zero added")
def zero_added(scope: Scope, node: Node) -> Replacement | None:
    """A zero term changes nothing in an exact sum but the sign of a zero sum, which matters if the rounding keeps
    it."""
    if not isinstance(node, Round) or not isinstance(node.term, ExactSum) or len(node.term.items) < 2:
        return None
    items = tuple(item for item in node.term.items if not isinstance(item, Constant))
    if not items or len(items) == len(node.term.items):
        return None
    other = replace(node, term=ExactSum(items))
    return Replacement(other, signs=plus_for_zeros(node) and plus_for_zeros(other))


@rewrite("sum of one term")
def single_term(scope: Scope, node: Node) -> Replacement | None:
    """An exact sum of one term is that term, where it is rounded."""
    if not isinstance(node, Round) or not isinstance(node.term, ExactSum) or len(node.term.items) > 1:
        return None
    (item,) = node.term.items
    return None if isinstance(item, Each) else Replacement(replace(node, term=item))


@rewrite("number of the format, rounded again")
def rounded_again(scope: Scope, node: Node) -> Replacement | None:
    """If a rounding does not change any number of its format, it does not change one that was rounded to the format
    before, nor the sign of a zero unless every zero result is +0. Infinities and NaNs do not change."""
    if not isinstance(node, Round) or not isinstance(node.term, (Round, Repeat)):
        return None
    how, inner = node.rounding, node.term
    if scope.known(inner).formats != frozenset((how.format,)) or how.subnormals == "flush_before" or how.loses_nan:
        return None
    lemma = NumberIsKept(replace(target_of(how), positive_zero=False))
    return Replacement(inner, (lemma,), signs=how.zero != "positive")


@rewrite("rounding that the next one makes needless")
def rounded_twice(scope: Scope, node: Node) -> Replacement | None:
    """A number rounded twice is as if it were rounded once, if every normalised magnitude is, and rounding does not
    depend on the unit: so it is where the first rounding goes to odd with two bits to spare, or both go one way."""
    if not isinstance(node, Round) or not isinstance(node.term, Round):
        return None
    how, first = node.rounding, node.term.rounding
    if "flush_before" in (how.subnormals, first.subnormals) or not first.keeps_nan or not first.format.has_infinity:
        return None
    spare = first.format.precision - how.format.precision
    if not (spare >= 2 and first.mode == "to_odd") and not (spare >= 0 and first.mode == how.mode not in NEAREST):
        return None
    if (other := _without_first(how, node.term)) is None:
        return None
    targets = target_of(first), target_of(how), target_of(other.rounding)
    scales = dict.fromkeys((RoundingScales(targets[0]), RoundingScales(targets[2])))
    return Replacement(other, (RoundsTwice(*targets), *scales))


@rewrite("rounding that the number needs not")
def rounded_in_vain(scope: Scope, node: Node) -> Replacement | None:
    """If a first rounding does not change any number that it gets, a second one gets the same number without it."""
    if not isinstance(node, Round) or not isinstance(node.term, Round):
        return None
    how, first = node.rounding, node.term.rounding
    if first.format.specials != "ieee" or not first.keeps_nan or first.subnormals == "flush_before":
        return None
    if not (ranges := ranges_of(scope, node.term.term)) or not all(_may_hold(first.format, one) for one in ranges):
        return None
    if (other := _without_first(how, node.term)) is None:
        return None
    return Replacement(other, tuple(FormatHolds(one, target_of(first)) for one in _sorted(ranges)))


def _without_first(how: Rounding, node: Round) -> Round | None:
    """What is rounded first, rounded as a second rounding has it; None if an exact zero sum, which has its sign from
    the first one, would have another."""
    first = node.rounding
    zero = "positive" if how.zero == "positive" else first.zero
    same = zero != "ieee" or (how.mode == "down") == (first.mode == "down")
    return Round(node.term, replace(how, zero=zero)) if same else None


@rewrite("-0 added")
def minus_zero_added(_: Scope, node: Node) -> Replacement | None:
    """Unless rounding is down, -0 among the terms of an exact sum changes nothing, not even the sign of a zero sum,
    which is -0 if all terms are. A sum of one term is that term, also where exact zero sums are +0."""
    if not isinstance(node, Round) or not isinstance(node.term, ExactSum) or node.rounding.mode == "down":
        return None
    items = tuple(item for item in node.term.items if item != Constant(negative=True))
    if not items or len(items) == len(node.term.items):
        return None
    other = replace(node, term=ExactSum(items))
    several = _is_several(other.term) or node.rounding.zero != "exact_positive"
    return Replacement(other, signs=several)


@rewrite("first step of a loop")
def first_step(scope: Scope, node: Node) -> Replacement | None:
    """A loop equals the loop that starts from the result of its first step and has one step less; a loop of one step
    equals that step. This is applied to loops that start from +0, and to loops of at most `SHORT` steps, which are
    written in both ways."""
    if (
        not isinstance(node, Repeat)
        or not plus_for_zeros(node.body)
        or any(isinstance(part, (Repeat, Each)) for part in walk(node.body))
    ):
        return None
    if node.start != Constant() and len(node.places) > SHORT:
        return None
    first = with_running(at_place(node.body, node.level, node.places[0]), node.level, node.start)
    rest = tuple(node.places[1:])
    return Replacement(replace(node, places=rest, start=first) if rest else first)


def _with_plus(node: Round) -> Round:
    """The rounding with +0 for exact zero sums."""
    return replace(node, rounding=replace(node.rounding, zero="exact_positive"))


def plus_for_zeros(node: Node) -> bool:
    """Whether the sign of a zero result does not depend on the sign of a zero operand."""
    if not isinstance(node, Round) or node.rounding.zero == "ieee":
        return False
    return node.rounding.zero == "positive" or (isinstance(node.term, ExactSum) and _is_sum(node.term))


#: the nodes in which the sign of a zero operand affects only the sign of a zero result
BLIND = (Terminal, Running, Product, Gate, Scale, Each, ExactSum, FusedSum, Cut, Round, Repeat)


def is_blind(node: Node) -> bool:
    """Whether operands that are alike but for the signs of zeros give results that are alike but for the signs of
    zeros."""
    return all(isinstance(part, BLIND) for part in walk(node))


@rewrite("chain from +0 that is never -0")
def positive_chain(scope: Scope, node: Node) -> Replacement | None:
    """By induction, no result of a loop that starts from +0 is -0, so that its exact zero sums may be rounded to +0.

    The terms are multiples of the smallest subnormal number, so that no nonzero sum is rounded to zero. The previous
    result is not -0. If its sign is not set, not all terms have the sign set; if it is set, the result is not zero, and
    of terms that all have the sign set the largest, not truncated to zero, makes the sum less than zero. Without a
    floor, m is the exponent of a nonzero term."""
    if not isinstance(node, Repeat) or node.start != Constant() or not isinstance(node.body, Round):
        return None
    body, fmt = node.body, node.body.rounding.format
    if not _has_ieee_zeros(body) or body.rounding.subnormals != "keep" or Running(node.level) not in _items(body.term):
        return None
    if (known := multiples(scope, node)) is None:
        return None
    held, found = known
    inner = scope.within(node.level, held)
    units = _multiples(inner, body.term, fmt.emin - fmt.fraction)
    if units is None:
        return None
    lemmas = [*found, *units, _stays_nonzero(body.rounding)]
    if isinstance(body.term, FusedSum):
        total = body.term
        bounds = (total.zeros, total.least, *total.floors, *total.reach, total.carry_bits)
        if any(bound is not None for bound in bounds) or (terms := _ranges(inner, total)) is None:
            return None
        lemmas += [LargestIsKept(one, bits, total.rounding) for one, bits in terms]
    return Replacement(replace(node, body=_with_plus(body)), tuple(lemmas))


def multiples(scope: Scope, node: Repeat) -> tuple[Held, tuple[Lemma, ...]] | None:
    """What is known by induction about the results of a loop that starts from +0, and the lemmas needed: if all other
    terms are multiples of 2^unit, so are the results, as a sum of such terms is, aligned or not, and so is its
    rounding. None if that is not known."""
    body = node.body
    if node.start != Constant() or not isinstance(body, Round) or body.rounding.subnormals != "keep":
        return None
    if not _is_sum(body.term) or node.level in node.start.free or not body.rounding.nan_or_zero:
        return None
    others = [item for item in _items(body.term) if item != Running(node.level)]
    if any(Running(node.level) in walk(item) for item in others):
        return None
    ranges = [ranges_of(scope, item) for item in others]
    units = [one.unit for found in ranges if found is not None for one in found]
    if None in ranges or not units:
        return None
    held = Held(frozenset((body.rounding.format,)), min(units))
    lemmas = _multiples(scope.within(node.level, held), body.term, min(units))
    if lemmas is None:
        return None
    return held, (*lemmas, RoundingKeepsUnit(target_of(body.rounding), min(units)))


def target_of(how: Rounding) -> Target:
    """The target by which a rounding rounds a finite magnitude, except tiny ones that it flushes before."""
    return Target(how.format, how.mode, how.overflow, how.subnormals == "flush_after", how.zero == "positive")


def _sorted(ranges: frozenset[Range]) -> list[Range]:
    return sorted(ranges, key=repr)


def _items(node: Node) -> tuple[Node, ...]:
    return node.items if isinstance(node, (ExactSum, FusedSum)) else ()


def _may_hold(fmt: Format, one: Range) -> bool:
    """Whether a format may hold the numbers of a range, so that the lemma is tried."""
    bits = one.width - max(0, one.unit - one.low + one.fraction)
    return bits <= fmt.precision and one.unit >= fmt.emin - fmt.fraction and one.high + one.integer <= fmt.emax + 1


def _is_several(node: Node) -> bool:
    """Whether a sum has more than one term."""
    return sum(item.count for item in _items(node)) > 1


def _is_sum(node: Node) -> bool:
    """Whether a zero result of a node has the sign of a zero sum: an exact sum of one term is that term instead."""
    return isinstance(node, FusedSum) or _is_several(node)


def _has_ieee_zeros(node: Node) -> bool:
    if not isinstance(node, Round) or not node.rounding.nan_or_zero:
        return False
    return node.rounding.zero == "ieee" and node.rounding.mode != "down" and _is_sum(node.term)


def _ranges(scope: Scope, node: FusedSum) -> list[tuple[Range, int]] | None:
    """The ranges of the terms of a sum, each with the bits kept of it."""
    bits = node.fraction_bits if isinstance(node.fraction_bits, tuple) else (node.fraction_bits,) * len(node.items)
    found: dict[tuple[Range, int], None] = {}
    for item, own in zip(node.items, bits, strict=True):
        ranges = ranges_of(scope, item)
        if ranges is None:
            return None
        found |= {(one, own): None for one in _sorted(ranges)}
    return list(found)


def _multiples(scope: Scope, node: Node, unit: int) -> tuple[Lemma, ...] | None:
    """The lemmas by which a sum is a multiple of 2^unit: its terms are, also once they are aligned, m <= unit + F or
    not; aligned to a larger m they always are. None if a term may not be one."""
    if isinstance(node, ExactSum):
        ranges = [ranges_of(scope, item) for item in node.items]
        return () if all(own is not None and all(one.unit >= unit for one in own) for own in ranges) else None
    if not isinstance(node, FusedSum) or node.sticky or (terms := _ranges(scope, node)) is None:
        return None
    least = _least_maximum(scope, node)
    small = [(one, bits) for one, bits in terms if least < unit + bits]
    if any(one.unit < unit for one, _ in small):
        return None
    return tuple(AlignmentKeepsUnit(one, bits, node.rounding, unit) for one, bits in small if one.low < unit + bits)


def _least_maximum(scope: Scope, node: FusedSum) -> int:
    """A lower bound of m wherever a sum of known terms is not zero: the least exponent of any term, since one is not
    zero; the least exponent of the alignment; the floors; of each term the lesser of its own and that of zeros."""
    lows = [min(one.low for one in ranges) for item in node.items if (ranges := ranges_of(scope, item))]
    zeros = [] if node.zeros is None else [min(node.zeros, low) for low in lows]
    bounds = [bound for bound in (node.least, *node.floors) if bound is not None]
    return max([min(lows, default=0), *zeros, *bounds])


def _stays_nonzero(how: Rounding) -> Lemma:
    return RoundingKeepsUnit(target_of(how), how.format.emin - how.format.fraction, nonzero=True)


# --- the rules of inference -----------------------------------------------------------------------------------------


@rule
def rewritten(scope: Scope, node: Node, name: str, lemmas: Sequence[Theorem]) -> Made:
    """A node computes alike with its replacement by a rewriting rule whose lemmas are proved, in their order."""
    applied = REWRITES[name](scope, node) if name in REWRITES else None
    if applied is None:
        raise RuleError(f"rewritten: {name} says nothing of this {node.kind}")
    _are_proved(lemmas, applied.lemmas, "rewritten")
    goal = Alike(scope, node, applied.other, applied.counting, applied.signs)
    return Made(goal, tuple(lemmas), name)


def _are_proved(theorems: Sequence[Theorem], lemmas: Sequence[Lemma], name: str) -> None:
    """Raises RuleError unless the theorems state the lemmas, in their order."""
    for lemma, theorem in zip_longest(lemmas, theorems):
        if lemma is None or theorem is None or goal_of(theorem, type(lemma), name) != lemma:
            raise RuleError(f"{name}: not proved: {'no such lemma' if lemma is None else lemma.statement()}")


@rule
def followed(first: Theorem, second: Theorem) -> Made:
    """Transitivity: if a first node computes alike with a second, and that with a third, so do the first and the
    third."""
    left: Alike = goal_of(first, Alike, "followed")
    right: Alike = goal_of(second, Alike, "followed")
    if (left.scope, left.other) != (right.scope, right.node):
        raise RuleError("followed: the second does not begin where the first ends")
    counting, signs = left.counting and right.counting, left.signs and right.signs
    return Made(Alike(left.scope, left.node, right.other, counting, signs), (first, second))


@rule
def congruent(scope: Scope, node: Node, operands: Sequence[Theorem | None]) -> Made:
    """Congruence: a node computes alike if its operands do (None: an operand does not change). Roundings, cuts and
    exact sums depend on their operands as numbers; a fused sum depends on exponents as well; products, scales and
    rectifiers pass them on. An exact sum counts with the exponent 0, a cut with its normalised exponent, and a fused
    sum with m. A loop depends on its start as a number of a format. A difference in the signs of zeros is passed on by
    the nodes of `BLIND`, and ends where, before and after, every zero result, or every exact zero sum, is +0."""
    goals = [None if one is None else goal_of(one, Alike, "congruent") for one in operands]
    if len(goals) != len(node.operands):
        raise RuleError("congruent: not as many operands")
    others = [old if goal is None else goal.other for old, goal in zip(node.operands, goals, strict=True)]
    if any(goal is not None and (goal.scope, goal.node) != (scope, old)
           for old, goal in zip(node.operands, goals, strict=True)):  # fmt: skip
        raise RuleError("congruent: a premise is not about an operand")
    changed = any(goal is not None for goal in goals)
    counting = all(goal is None or goal.counting for goal in goals)
    signs = all(goal is None or goal.signs for goal in goals)
    match node:
        case Round() | ExactSum() | Cut():
            counting = True
        case FusedSum():
            if not counting:
                raise RuleError("congruent: a fused sum sees with which exponents its terms count")
        case Repeat():
            if goals[1] is not None or (changed and not _one_format(scope, node.start, others[0])):
                raise RuleError("congruent: a loop's body is in another scope, or its start has another format")
            if not signs and not is_blind(node.body):
                raise RuleError("congruent: the loop's body sees the sign of a zero")
            counting = True
        case Product() | Scale() | Each() | Relu():
            pass
        case _:
            raise RuleError(f"congruent: of a {node.kind} it is not known")
    try:
        other = with_operands(node, others)
    except ParameterError as error:
        raise RuleError(f"congruent: {error}") from None
    ends = (node.body, node.body) if isinstance(node, Repeat) else (node, other)
    signs = signs or all(map(plus_for_zeros, ends))
    return Made(Alike(scope, node, other, counting, signs), tuple(one for one in operands if one is not None))


@rule
def looped(scope: Scope, node: Repeat, body: Theorem, lemmas: Sequence[Theorem] = ()) -> Made:
    """Induction over a loop: two loops with the same start compute and count alike if their bodies do for any result so
    far of the kind known (`Held`). The start and every result of the body are of that kind, by the lemmas of
    `multiples` where their formats alone do not tell."""
    goal: Alike = goal_of(body, Alike, "looped")
    if goal.node != node.body or not goal.counting or not goal.scope.held:
        raise RuleError("looped: the premise is not about the body, or it counts otherwise")
    level, held = goal.scope.held[-1]
    if goal.scope != scope.within(level, held) or level != node.level:
        raise RuleError("looped: the premise is in another scope")
    if not _one_format(goal.scope, goal.node, goal.other):
        raise RuleError("looped: the results are of another format")
    known = (held, ()) if held == kind_of(scope, node) else multiples(scope, node)
    if known is None or known[0] != held:
        raise RuleError("looped: the results are not of the kind assumed")
    _are_proved(lemmas, known[1], "looped")
    if not goal.signs and not is_blind(goal.other):
        raise RuleError("looped: the body sees the sign of a zero")
    other = replace(node, body=goal.other)
    return Made(Alike(scope, node, other, True, goal.signs), (body, *lemmas))


def _one_format(scope: Scope, node: Node, other: Node) -> bool:
    """Whether both are numbers of the same formats."""
    found = scope.known(node).formats
    return found is not None and found == scope.known(other).formats


def kind_of(scope: Scope, node: Repeat) -> Held | None:
    """What is known of the results of a loop by their formats."""
    start, body = scope.known(node.start).formats, scope.known(node.body).formats
    return None if start is None or not body else Held(start | body)


@dataclass(frozen=True)
class SameResults:
    """A unit computes, on all inputs, the same results as with another expression; if it does not name the pattern of a
    NaN, any NaN equals another."""

    unit: Unit
    other: Node

    def statement(self) -> str:
        return f"unit {unit_digest(self.unit)} computes the same with {sum(1 for _ in walk(self.other))} nodes"


@rule
def results_alike(unit: Unit, theorem: Theorem) -> Made:
    """Numbers that compute alike and are rounded to one format have one pattern there."""
    goal: Alike = goal_of(theorem, Alike, "results_alike")
    if (goal.scope, goal.node) != (Scope.of(unit), unit.result):
        raise RuleError("results_alike: the premise is not about the unit's result")
    if not goal.signs:
        raise RuleError("results_alike: zeros may have other signs")
    left, right = (list(_roundings(node)) for node in (goal.node, goal.other))
    if not left or not right or (left[0].format, left[0].nan) != (right[0].format, right[0].nan):
        raise RuleError("results_alike: the result is not rounded to the same format")
    return Made(SameResults(unit, goal.other), (theorem,))


def _roundings(node: Node) -> Iterator[Rounding]:
    """How a result is rounded, if it is."""
    while isinstance(node, Repeat):
        node = node.body
    if isinstance(node, Round):
        yield node.rounding
