"""Rewriting: a rule replaces a node by a node that computes alike, if the lemmas on which the rule rests are proved.

Two nodes compute alike if, on all inputs, their values have the same infinities and NaNs, and finite values are the
same number with the same sign (that of a zero included) and count as zero in both or in neither. They count alike if
they also have the same exponent, by which a fused sum aligns, wherever they do not count as zero. They compute alike
but for the signs of zeros if the signs may differ where both are zero. Products, exact sums, cuts and roundings
preserve this relation, since the sign of a zero operand affects only the sign of a zero result there.

Every rule of `REWRITES` gives a replacement for one node, with the lemmas from which it follows that the two compute
alike; if a lemma is not proved, the node is not replaced. m is the largest exponent, at which a fused sum aligns its
terms, and F the number of fraction bits that it keeps.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import wraps
from itertools import zip_longest
from typing import TypeVar

from mmaprobe.queries.kernel.closed import REWRITES as REWRITING
from mmaprobe.queries.kernel.closed import is_of
from mmaprobe.queries.kernel.datapath.effects import (
    BoundKeeps,
    FormatHolds,
    NeverReaches,
    Normalises,
    RoundsAlike,
    RoundsTwice,
)
from mmaprobe.queries.kernel.datapath.ranges import Held, Range, Scope, ranges_of
from mmaprobe.queries.kernel.datapath.rounding_rises import RoundingScales
from mmaprobe.queries.kernel.lemmas import AlignmentLoses, Lemma
from mmaprobe.queries.kernel.theorem import Made, RuleError, Theorem, goal_of, rule
from mmaprobe.smtmodel.arithmetic.formats import Format
from mmaprobe.smtmodel.arithmetic.rounding import NEAREST, Mode, Overflow, ResultMode, Target
from mmaprobe.smtmodel.base.errors import ParameterError
from mmaprobe.smtmodel.nodes import (
    Constant,
    Cut,
    Each,
    Element,
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
    SortedSum,
)
from mmaprobe.smtmodel.nodes.known import UNKNOWN, Known
from mmaprobe.smtmodel.nodes.node import Terminal, of_kind, walk
from mmaprobe.smtmodel.nodes.rewriting import at_place, replaced, with_operands, with_running
from mmaprobe.smtmodel.nodes.round import Rounding
from mmaprobe.smtmodel.nodes.scale import spread
from mmaprobe.smtmodel.nodes.sums import Sum
from mmaprobe.smtmodel.units.unit import Unit

SHORT = 3  # loops of at most this number of steps are often written out


@dataclass(frozen=True)
class Alike:
    """Two nodes compute alike in a scope. `counting`: they count alike, too; `signs`: zeros have the same signs (if
    not, the nodes compute alike but for the signs of zeros)."""

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
    """The node that a rule puts in place of another, and the lemmas that have to be proved. `counting`, `signs`: as in
    `Alike`."""

    other: Node
    lemmas: tuple[Lemma, ...] = ()
    counting: bool = True
    signs: bool = True


Rewrite = Callable[[Scope, Node], Replacement | None]
Kind = TypeVar("Kind", bound=Node)
REWRITES: dict[str, Rewrite] = {}  # by description


def rewrite(name: str, *kinds: type[Kind]) -> Callable[[Callable[[Scope, Kind], Replacement | None]], Rewrite]:
    """A decorator for a rule of rewriting for nodes of some kinds. Raises RuleError for a function that is not in
    `closed.REWRITES`, and for a name or function that is registered already."""

    def kept(function: Callable[[Scope, Kind], Replacement | None]) -> Rewrite:
        @wraps(function)
        def applied(scope: Scope, node: Node) -> Replacement | None:
            return function(scope, node) if isinstance(node, kinds) else None

        twice = name in REWRITES or function.__name__ in {rule.__name__ for rule in REWRITES.values()}
        if twice or not is_of(REWRITING, function):
            raise RuleError(f"{function.__module__}.{function.__qualname__} is none of the kernel's rules of rewriting")
        REWRITES[name] = applied
        return applied

    return kept


#: mode: the result of IEEE 754 beyond the largest number, where it does not depend on the sign
AS_IEEE: dict[ResultMode, Overflow] = {
    "nearest_even": "infinity", "nearest_away": "infinity", "toward_zero": "saturate", "to_odd": "saturate",
}  # fmt: skip

# --- the rules of rewriting -----------------------------------------------------------------------------------------


@rewrite("product limit never reached", Product)
def unreached(scope: Scope, node: Product) -> Replacement | None:
    """If no product of finite numbers has a magnitude of 2^limit or more, the limit makes none infinite."""
    if node.limit is None or (ranges := ranges_of(scope, node)) is None:
        return None
    return Replacement(replace(node, limit=None), tuple(NeverReaches(one, node.limit) for one in _sorted(ranges)))


@rewrite("gated products whose zeros have any sign", Gate)
def gated_zero(scope: Scope, node: Gate) -> Replacement | None:
    """The two kinds of gates of a product differ only in the signs of zeros. If no factor can be a NaN or infinite, a
    gate and the product also differ only in these: the product is zero where a factor is."""
    held = [scope.known(factor).formats for factor in node.term.operands]
    if all(own is not None and not any(fmt.has_nan or fmt.has_infinity for fmt in own) for own in held):
        return Replacement(node.term, signs=False)
    return Replacement(replace(node, minus_zero=False), signs=False) if node.minus_zero else None


@rewrite("products held by the format that they are rounded to", ExactSum, FusedSum)
def held_product(scope: Scope, node: Sum) -> Replacement | None:
    """If a rounding does not change the value of a product that is a term of a sum, the rounding only normalises the
    product. A rounding to a format that has infinities, NaNs and signs does not change these."""
    for place, item in enumerate(node.items):
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


@rewrite("products that an exact sum normalises in vain", Product)
def normalised_in_vain(scope: Scope, node: Product) -> Replacement | None:
    """A normalised product is the same number with another exponent."""
    if not node.normalised:
        return None
    other = replace(node, normalised=False)
    if (ranges := ranges_of(scope, other)) is None:
        return None
    return Replacement(other, tuple(map(Normalises, _sorted(ranges))), counting=False)


@rewrite("floor below every term", FusedSum)
def needless_floor(scope: Scope, node: FusedSum) -> Replacement | None:
    """A floor z, the exponent of zero terms or a least m, raises m to max(m, z). If a nonzero term has an exponent of
    at least z, m does not change; if all terms are zero, so is the sum. Else m < z, and every nonzero term has an
    exponent of at most m: if each is the same number aligned at m and at z, the sum is the same number, in other units,
    provided that nothing else depends on m: no carry bits, no sticky bit, and no reach."""
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


@rewrite("carry bits that no sum needs", FusedSum)
def needless_carry(scope: Scope, node: FusedSum) -> Replacement | None:
    """A sum in F + 1 + n bits and a sign does not wrap if it is always below 2^(F + 1 + n) units. A term below h * 2^e
    is less than h * 2^F units when aligned, or one unit more if alignment may round it up."""
    if node.carry_bits is None or (terms := _ranges(scope, node)) is None:
        return None
    if not node.never_wraps([scope.known(item) for item in node.items for _ in range(item.count)]):
        return None
    return Replacement(replace(node, carry_bits=None), _losses(terms, node.rounding))


@rewrite("fused sum that loses nothing", FusedSum)
def lossless_sum(scope: Scope, node: FusedSum) -> Replacement | None:
    """If every term is a multiple of 2^(m - F) at the largest possible m, no alignment loses anything, since a loss is
    less than one unit: the sum is exact. Whether a sum counts as zero, and the sign of a zero, depend on the numbers
    added, in the fused and in the exact sum."""
    if node.sticky or node.carry_bits is not None or not _is_several(node):
        return None
    if any(far is not None for far in node.reach) or not (terms := _ranges(scope, node)):
        return None
    top = max([one.high for one, _ in terms] + [*node.bounds])
    if any(one.unit < top - bits for one, bits in terms):
        return None
    return Replacement(ExactSum(node.items), _losses(terms, node.rounding), counting=False)


@rewrite("sorted sum that loses nothing", SortedSum)
def lossless_sorted(scope: Scope, node: SortedSum) -> Replacement | None:
    """If every term is a multiple of the last place that the first addition keeps, at the largest possible first place,
    neither addition cuts anything off: the sum is exact. The second addition keeps no fewer places."""
    bounds = [ranges_of(scope, item) for item in node.items]
    terms = [one for ranges in bounds for one in ranges or ()]
    last = max((one.high + one.integer - 1 for one in terms), default=0) - node.fraction_bits[0]
    if None in bounds or not terms or any(one.unit < last for one in terms):
        return None
    return Replacement(ExactSum(node.items), counting=False)


@rewrite("overflow as the rounding has it", Round)
def plain_overflow(scope: Scope, node: Round) -> Replacement | None:
    """IEEE 754-2019, 7.4: beyond the largest number, to nearest gives infinity, and toward zero the largest number. The
    rule for overflow changes nothing else in a rounding."""
    if node.rounding.overflow != "ieee":
        return None
    if (plain := AS_IEEE.get(node.rounding.mode)) is None:
        return None
    how = replace(node.rounding, overflow=plain)
    return Replacement(replace(node, rounding=how), (RoundsAlike(target_of(node.rounding), target_of(how)),))


@rewrite("overflow that no number reaches", Round)
def unreached_overflow(scope: Scope, node: Round) -> Replacement | None:
    """If every number that is rounded lies below 2^emax, no result lies beyond the largest number; nor, to nearest or
    toward zero, if every such number is the sum of a number of the format and of others that are less than half a unit
    in the largest number's last place. The rule for overflow, which says nothing of infinite operands, then acts as
    IEEE's does."""
    how, plain = node.rounding, AS_IEEE.get(node.rounding.mode, "ieee")
    if how.overflow in ("ieee", plain):
        return None
    top = scope.known(node.term).top
    if not (top is not None and top <= how.format.emax) and not _adds_little(scope, node):
        return None
    return Replacement(replace(node, rounding=replace(how, overflow=plain)))


def _adds_little(scope: Scope, node: Round) -> bool:
    """Whether a rounded sum has one term that is a number of the format, and other terms so small that rounding removes
    them even beside the largest number of the format."""
    items = _added(node.term)
    return node.rounding.holds_beside([scope.known(item) for item in items], [item.count for item in items])


@rewrite("no sum rounded to zero", Round)
def no_sum_to_zero(scope: Scope, node: Round) -> Replacement | None:
    """A rounding with every zero result +0 and one with every exact zero sum +0 differ only where a nonzero sum is
    rounded to zero. If a single number is rounded, +0 is added to it."""
    if node.rounding.zero != "positive":
        return None
    known = scope.known(node.term)
    if not node.rounding.keeps_nonzero(known) or isinstance(node.term, Running):  # `read_once` treats these
        return None
    return Replacement(_with_plus(node if known.adds else replace(node, term=ExactSum((node.term, Constant())))))


@rewrite("no last sum of a loop rounded to zero", Repeat)
def no_last_sum_to_zero(scope: Scope, node: Repeat) -> Replacement | None:
    """As `no_sum_to_zero`, for the last of two or more steps, whose result so far has the format of results, whatever
    format the start has. The signs of zeros of the steps before may differ: the last step gives an exact zero sum a
    plus, whatever its terms' signs, and reads the sign of a zero nowhere else."""
    if len(node.places) < 2 or not is_blind(node.body):
        return None
    if (last := _held(scope.known(node))) is None:
        return None
    rewritten = no_sum_to_zero(scope.within(node.level, last), node.body)
    return None if rewritten is None else replace(rewritten, other=replace(node, body=rewritten.other))


@rewrite("sum that fits the result", Round)
def fitting_sum(scope: Scope, node: Round) -> Replacement | None:
    """A sum of at most 2^p units, where p is the format's precision and a unit at least the smallest subnormal number,
    is a number of the format, unless it overflows, so that all modes round it alike. Wrapping does not make a sum
    larger, and with n carry bits the sum is at most 2^(F + 1 + n) units. The sign of a zero sum depends on the mode if
    that is down and the signs of zeros are IEEE's."""
    if not isinstance(node.term, FusedSum) or node.rounding.subnormals != "keep":
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
    if most > 1 << fmt.precision or low < fmt.unit or high > fmt.emax:
        return None
    other = replace(how, mode="toward_zero")
    losses = _losses(terms, total.rounding)
    return Replacement(replace(node, rounding=other), (*losses, RoundsAlike(target_of(how), target_of(other), True)))


def _most_units(scope: Scope, total: FusedSum, bits: int) -> int:
    """An upper bound of the sum of the magnitudes of a sum's terms, in units of 2^(m - bits), from the ranges of the
    terms: a term below 2^(m + i) is at most 2^(i + bits) units, even if alignment raises it by less than a unit."""
    most = 0
    for item in total.items:
        integers = [one.integer for one in ranges_of(scope, item) or ()]
        most += item.count << max(integers) + bits if integers else 0
    return most


def _losses(terms: Sequence[tuple[Range, int]], mode: Mode) -> tuple[Lemma, ...]:
    """The lemmas that alignment raises no term by as much as one unit of the last place kept."""
    return tuple(dict.fromkeys(AlignmentLoses(one.width, one.fraction, bits, mode) for one, bits in terms))


@rewrite("a term that is never -0", Round)
def positive_term(scope: Scope, node: Round) -> Replacement | None:
    """Unless rounding is down, an exact zero sum is -0 only if all terms have the sign set. A term that is never -0 has
    the sign set only if it is less than zero; then another term is greater than zero, or the largest one is cut to
    zero."""
    if node.rounding.zero != "ieee" or node.rounding.mode == "down":
        return None
    known = scope.known(node.term)
    return Replacement(_with_plus(node)) if known.adds and known.positive else None


@rewrite("sign of a zero that nothing reads", Round)
def unread_sign(scope: Scope, node: Round) -> Replacement | None:
    """The rule for the signs of zeros changes nothing else in a rounding."""
    if node.rounding.zero == "exact_positive":
        return None
    return Replacement(_with_plus(node), signs=False)


@rewrite("exact sum in an exact sum", ExactSum)
def nested_sum(_: Scope, node: ExactSum) -> Replacement | None:
    """Nothing is lost between an exact sum and an exact sum that has it as a term. An infinity or a NaN among the terms
    of either is a term of the whole sum, which counts as zero where all its terms do; the sign of a zero depends on
    whether all, or any, of the numbers added are negative, in either grouping."""
    if (other := node.flat) is node:
        return None
    return Replacement(other)


@rewrite("scaled exact sum in an exact sum", ExactSum, Round)
def scaled_sum(scope: Scope, node: Node) -> Replacement | None:
    """Nothing is lost where an exact sum is scaled, nor between the scaled sum and an exact sum that has it as a term,
    or its rounding: scaling each of its terms is the same, if no factor is infinite or negative. If a factor is zero or
    a NaN, all terms become zero or NaN, and an infinite term times zero a NaN. The sign of a zero depends on the signs
    of all terms, as it does where they are scaled."""
    items = [spread(item, lambda factor: scope.known(factor).is_magnitude) for item in node.operands]
    return None if items == list(node.operands) else Replacement(with_operands(node, items))


@rewrite("zero added", Round)
def zero_added(scope: Scope, node: Round) -> Replacement | None:
    """A zero term changes nothing in an exact sum but the sign of a zero sum, which matters only if the rounding keeps
    this sign."""
    if not isinstance(node.term, ExactSum) or len(node.term.items) < 2:
        return None
    items = tuple(item for item in node.term.items if not isinstance(item, Constant))
    if not items or len(items) == len(node.term.items):
        return None
    other = replace(node, term=ExactSum(items))
    return Replacement(other, signs=plus_for_zeros(node) and plus_for_zeros(other))


@rewrite("sum of one term", Round)
def single_term(scope: Scope, node: Round) -> Replacement | None:
    """An exact sum of one term is rounded as the term itself is."""
    if not isinstance(node.term, ExactSum) or len(node.term.items) > 1:
        return None
    (item,) = node.term.items
    return None if isinstance(item, Each) else Replacement(replace(node, term=item))


@rewrite("number of the format, rounded again", Round)
def rounded_again(scope: Scope, node: Round) -> Replacement | None:
    """A rounding changes no number of its own format, unless subnormal numbers are flushed; nor does it change the sign
    of a zero, unless every zero result is +0."""
    if not isinstance(node.term, (Round, Repeat, Running)):
        return None
    how, inner, known = node.rounding, node.term, scope.known(node.term)
    if known.formats != frozenset((how.format,)) or not how.keeps(known):
        return None
    return Replacement(inner, signs=how.zero != "positive" or known.never_minus)


@rewrite("number of the format and +0, rounded again", Round)
def zero_after(scope: Scope, node: Round) -> Replacement | None:
    """The second rounding only turns -0 into +0. A term +0 in the sum that was rounded first does the same, unless a
    nonzero sum is rounded to zero."""
    if not isinstance(node.term, ExactSum):
        return None
    how, items = node.rounding, [item for item in node.term.items if item != Constant()]
    if len(items) != 1 or len(node.term.items) == 1 or not isinstance(items[0], Round):
        return None
    one, first = items[0], items[0].rounding
    if (first.format, first.nan) != (how.format, how.nan) or (how.mode == "down" and how.zero == "ieee"):
        return None
    if not how.keeps(scope.known(one)) or not first.keeps_nonzero(scope.known(one.term)):
        return None
    return Replacement(_with_plus(replace(one, term=ExactSum((*_added(one.term), Constant())))))


@rewrite("rounding that the next one makes needless", Round)
def rounded_twice(scope: Scope, node: Round) -> Replacement | None:
    """A number rounded twice equals the number rounded once, if this is so for every normalised magnitude, and rounding
    does not depend on the unit: it is so where the first rounding goes to odd with two bits to spare, or both go one
    way."""
    if not isinstance(node.term, Round):
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


@rewrite("rounding that the number needs not", Round)
def rounded_in_vain(scope: Scope, node: Round) -> Replacement | None:
    """If a first rounding does not change any number that it gets, the operand of the next rounding, that number or an
    exact sum with it, is the same without the first. Where the sum is zero, its sign may depend on the signs of the
    terms: a single number has its own sign in both, and a sum of zeros the same sign if both roundings are down, or
    neither is."""
    how, items = node.rounding, _added(node.term)
    held = [(at, one) for at, one in enumerate(items)
            if isinstance(one, Round) and isinstance(one.term, BLIND) and one.rounding.keeps(scope.known(one.term))
            and (_is_several(one.term) or not isinstance(one.term, ExactSum))]  # fmt: skip
    if held and len(items) == 1:
        other = None if held[0][1].rounding.zero == "positive" else _without_first(how, held[0][1])
        return None if other is None else Replacement(other)
    plus, replacement = how.zero == "positive" or plus_for_zeros(node), None
    for at, one in held:
        total = ExactSum((*items[:at], *_added(one.term), *items[at + 1 :]))
        replacement = Replacement(replace(node, term=total), signs=plus or _has_signs(one, how.mode == "down"))
        if replacement.signs:
            break
    return replacement


def _has_signs(node: Round, down: bool) -> bool:
    """Whether a zero result has the sign set exactly if all numbers added have it, or, if `down`, at least one."""
    single = isinstance(node.term, Product) or node.term.is_number
    zero = node.rounding.zero
    return (zero == "ieee" and (node.rounding.mode == "down") == down) or (single and zero != "positive")


def _without_first(how: Rounding, node: Round) -> Round | None:
    """The operand of a first rounding, rounded by the second alone; None if an exact zero sum, whose sign the first
    rounding decides, would have another sign."""
    first = node.rounding
    zero = "positive" if how.zero == "positive" else first.zero
    same = zero != "ieee" or (how.mode == "down") == (first.mode == "down")
    return Round(node.term, replace(how, zero=zero)) if same else None


@rewrite("product of zeros", Product)
def product_of_zeros(_: Scope, node: Product) -> Replacement | None:
    """A product of zeros is a zero, with the sign of a product."""
    if not all(isinstance(factor, Constant) for factor in node.operands):
        return None
    return Replacement(Constant(node.left != node.right))


@rewrite("neutral zero added", Round)
def neutral_zero_added(_: Scope, node: Round) -> Replacement | None:
    """A term -0 of an exact sum changes nothing, not even the sign of a zero sum, which is -0 only if all terms are -0.
    Where rounding is down, the neutral zero is +0, since there a zero sum is +0 only if all terms are +0. A sum of one
    term is that term, also where exact zero sums are +0."""
    if not isinstance(node.term, ExactSum):
        return None
    neutral = Constant(negative=node.rounding.mode != "down")
    items = tuple(item for item in node.term.items if item != neutral)
    if not items or len(items) == len(node.term.items):
        return None
    other = replace(node, term=ExactSum(items))
    several = _is_several(other.term) or node.rounding.zero != "exact_positive"
    return Replacement(other, signs=several)


@rewrite("input read as its own format is rounded", Round)
def input_read(scope: Scope, node: Round) -> Replacement | None:
    """An input that is rounded to its own format, with every zero +0, equals the input read with zeros as +0."""
    if not isinstance(node.term, Element) or node.rounding.zero != "positive":
        return None
    how, one = node.rounding, node.term
    if dict(scope.formats).get(one.operand) != how.format or how.loses_nan or not how.format.subnormals:
        return None
    keep = how.subnormals == one.subnormals == "keep"
    return Replacement(replace(one, subnormals="keep" if keep else "positive_zero", positive_zeros=True))


@rewrite("results so far that are read as they are", Repeat)
def read_once(scope: Scope, node: Repeat) -> Replacement | None:
    """If a loop reads the result so far only through one rounding, and this rounding changes none of the loop's
    results, the rounding can be done once, on the start. A rounding that reads -0, or subnormal numbers, as +0 changes
    no result if no result is such a number; this is derived for a step that reads a result so far after this
    rounding."""
    so_far = Running(node.level)
    hows = {part.rounding for part in of_kind(node.body, Round) if part.term == so_far}
    if len(hows) != 1:
        return None
    (how,) = hows
    try:
        body, bare = (
            replaced(node.body, lambda part, to=to: to if part == Round(so_far, how) else None)  # type: ignore[misc]
            for to in (so_far, Constant())
        )
    except ParameterError:  # a product takes rounded numbers alone
        return None
    if so_far in walk(bare) or body == so_far or (read := _held(how.known(UNKNOWN, False))) is None:
        return None
    known = scope.within(node.level, read).known(body)
    if known.formats != read.formats or not how.keeps(known) or (how.zero == "positive" and not known.never_minus):
        return None
    return Replacement(replace(node, start=Round(node.start, how), body=body))


@rewrite("first step of a loop", Repeat)
def first_step(scope: Scope, node: Repeat) -> Replacement | None:
    """A loop equals the loop that starts from the result of its first step and has one step less; a loop of one step
    equals that step. This is applied to loops that start from +0, and to loops of at most `SHORT` steps, which are
    written in both ways."""
    if not plus_for_zeros(node.body) or any(of_kind(node.body, (Repeat, Each))):
        return None
    if node.start != Constant() and len(node.places) > SHORT:
        return None
    first = with_running(at_place(node.body, node.level, node.places[0]), node.level, node.start)
    rest = tuple(node.places[1:])
    return Replacement(replace(node, places=rest, start=first) if rest else first)


@rewrite("rectified before it is rounded", Relu)
def rectified(_: Scope, node: Relu) -> Replacement | None:
    """Rounding keeps order, zero, infinities and NaNs in a signed format that has all of these, and gives a zero that
    is +0 no other sign: what is rounded can be rectified before. What is rectified there already is never below
    zero."""
    if (node.nan, node.zero) != ("keep", "positive") or not isinstance(node.term, Round):
        return None
    how, inner = node.term.rounding, node.term.term
    if not (how.format.has_infinity and how.format.signed and how.format.subnormals and how.keeps_nan):
        return None
    again = isinstance(inner, Relu) and inner.zero == "positive"
    return Replacement(replace(node.term, term=inner if again else replace(node, term=inner)))


def _with_plus(node: Round) -> Round:
    """The rounding with +0 for exact zero sums."""
    return replace(node, rounding=replace(node.rounding, zero="exact_positive"))


def plus_for_zeros(node: Node) -> bool:
    """Whether the sign of a zero result does not depend on the sign of a zero operand."""
    if not isinstance(node, Round) or node.rounding.zero == "ieee":
        return False
    return node.rounding.zero == "positive" or (isinstance(node.term, ExactSum) and _is_several(node.term))


#: the nodes in which the sign of a zero operand affects only the sign of a zero result
BLIND = (Terminal, Running, Product, Gate, Scale, Each, ExactSum, FusedSum, Cut, Round, Repeat)


def is_blind(node: Node) -> bool:
    """Whether a node, given operands that are alike but for the signs of zeros, gives results that are alike but for
    the signs of zeros."""
    return all(isinstance(part, BLIND) for part in walk(node))


def target_of(how: Rounding) -> Target:
    """The target by which a rounding rounds a finite magnitude, except tiny ones that it flushes before. Raises
    RuleError for a rounding by random bits: it is no function of the magnitude."""
    if how.stochastic:
        raise RuleError(f"nothing is known of {how.mode}")
    return drawn_target(how)


def drawn_target(how: Rounding) -> Target:
    """The target of a rounding that may be by random bits: given these bits, it is a function of the magnitude."""
    return Target(how.format, how.mode, how.beyond, how.subnormals == "flush_after", how.zero == "positive")


def _sorted(ranges: frozenset[Range]) -> list[Range]:
    return sorted(ranges, key=repr)


def _items(node: Node) -> tuple[Node, ...]:
    return node.items if isinstance(node, (ExactSum, FusedSum)) else ()


def _added(node: Node) -> tuple[Node, ...]:
    """The terms of an exact sum; for another node, the node itself."""
    return node.items if isinstance(node, ExactSum) else (node,)


def _is_several(node: Node) -> bool:
    """Whether a sum has more than one term."""
    return sum(item.count for item in _items(node)) > 1


def _ranges(scope: Scope, node: FusedSum) -> list[tuple[Range, int]] | None:
    """The ranges of the terms of a sum, each with the number of bits that the sum keeps of it; None if the range of a
    term is not known."""
    bits = node.fraction_bits if isinstance(node.fraction_bits, tuple) else (node.fraction_bits,) * len(node.items)
    counted: dict[tuple[Range, int], None] = {}
    for item, own in zip(node.items, bits, strict=True):
        ranges = ranges_of(scope, item)
        if ranges is None:
            return None
        counted |= {(one, own): None for one in _sorted(ranges)}
    return list(counted)


# --- forms, by the rules that need no lemma --------------------------------------------------------------------------

#: the rules that need no lemma
PLAIN: tuple[Rewrite, ...] = (
    product_of_zeros, gated_zero, nested_sum, scaled_sum, no_last_sum_to_zero, read_once, no_sum_to_zero, positive_term,
    unread_sign, neutral_zero_added, zero_added, single_term, rounded_again, zero_after, rounded_in_vain, input_read,
    rectified,
)  # fmt: skip


def form_of(scope: Scope, node: Node) -> Node:
    """A result rewritten by the rules that need no lemma, operands first, until none applies. The two compute alike,
    and are rounded to one format with one pattern for NaN (`results_alike`)."""
    form = _Forms(scope).of(node)
    return form if _how_rounded(node) == _how_rounded(form) else node


#: the nodes that `congruent` takes, besides loops
CONGRUENT = (Round, ExactSum, Cut, FusedSum, Product, Scale, Each, Relu)


class _Forms:
    """The forms of nodes in a scope, by the arguments of `congruent` and `looped`, without making their theorems."""

    def __init__(self, scope: Scope) -> None:
        self.scope = scope
        self.forms: dict[tuple[Node, bool], Node] = {}

    def of(self, node: Node) -> Node:
        """The form of a node. The forms of the nodes below are made first, since steps may be nested hundreds deep."""
        waiting = [(node, False)]
        while waiting:
            part, below = waiting.pop()
            if below:
                self._of(part, True)
            elif not isinstance(part, Terminal) and (part, True) not in self.forms:
                operands = (part.start,) if isinstance(part, Repeat) else part.operands
                waiting += [(part, True), *((operand, False) for operand in operands)]
        return self._of(node, True)

    def _of(self, node: Node, signs: bool) -> Node:
        """The form of a node whose operands have forms. `signs`: whether the signs of the node's zeros matter."""
        if isinstance(node, Terminal):
            return node
        key = node, signs
        if key not in self.forms:
            while True:
                node = self._within(node, signs)
                proposed = (rule(self.scope, node) for rule in PLAIN)
                chosen = next((one for one in proposed if one is not None and (one.signs or not signs)), None)
                if chosen is None:
                    break
                node = chosen.other
            self.forms[key] = node
        return self.forms[key]

    def _within(self, node: Node, signs: bool) -> Node:
        if isinstance(node, Repeat):
            return self._loop(node)
        if not isinstance(node, CONGRUENT):
            return node
        signs = signs and not plus_for_zeros(node)
        with suppress(ParameterError):
            return with_operands(node, [self._of(operand, signs) for operand in node.operands])
        return node

    def _loop(self, node: Repeat) -> Node:
        if (once := read_once(self.scope, node)) is not None:  # before other rules change how the result so far is read
            node = once.other  # type: ignore[assignment]
        start = self._of(node.start, True)
        if _one_format(self.scope, node.start, start):
            node = with_operands(node, (start, node.body))  # type: ignore[assignment]
        if (held := kind_of(self.scope, node)) is None:
            return node
        inner = self.scope.within(node.level, held)
        body = _Forms(inner).of(node.body)
        return with_operands(node, (node.start, body)) if _one_format(inner, node.body, body) else node


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
            raise RuleError(f"congruent: no congruence is known of a {node.kind}")
    try:
        other = with_operands(node, others)
    except ParameterError as error:
        raise RuleError(f"congruent: {error}") from None
    ends = (node.body, node.body) if isinstance(node, Repeat) else (node, other)
    signs = signs or all(map(plus_for_zeros, ends))
    return Made(Alike(scope, node, other, counting, signs), tuple(one for one in operands if one is not None))


@rule
def looped(scope: Scope, node: Repeat, body: Theorem) -> Made:
    """Induction over a loop: two loops with the same start compute and count alike if their bodies do for any result so
    far of the kind known (`kind_of`)."""
    goal: Alike = goal_of(body, Alike, "looped")
    if goal.node != node.body or not goal.counting or not goal.scope.held:
        raise RuleError("looped: the premise is not about the body, or it counts otherwise")
    level, held = goal.scope.held[-1]
    if goal.scope != scope.within(level, held) or level != node.level:
        raise RuleError("looped: the premise is in another scope")
    if not _one_format(goal.scope, goal.node, goal.other):
        raise RuleError("looped: the results are of another format")
    if held != kind_of(scope, node):
        raise RuleError("looped: the results are not of the kind assumed")
    if not goal.signs and not is_blind(goal.other):
        raise RuleError("looped: the body sees the sign of a zero")
    other = replace(node, body=goal.other)
    return Made(Alike(scope, node, other, True, goal.signs), (body,))


def _one_format(scope: Scope, node: Node, other: Node) -> bool:
    """Whether both are numbers of the same formats."""
    formats = scope.known(node).formats
    return formats is not None and formats == scope.known(other).formats


def kind_of(scope: Scope, node: Repeat) -> Held | None:
    """The facts about the start and the results of a loop."""
    return _held(node.so_far(scope.knowledge))


def _held(known: Known) -> Held | None:
    if not known.formats:
        return None
    return Held(known.formats, None if known.zero else known.grid, known.never_minus, known.never_tiny)


@dataclass(frozen=True)
class SameResults:
    """A unit gives, on all inputs, the same results as with another expression. If the unit does not name the
    pattern of a NaN, all NaNs are equal."""

    unit: Unit
    other: Node

    def statement(self) -> str:
        return f"unit {self.unit.digest} computes the same as an expression of {sum(1 for _ in walk(self.other))} nodes"


@rule
def results_alike(unit: Unit, theorem: Theorem) -> Made:
    """Numbers that compute alike and are rounded to one format have one pattern there."""
    goal: Alike = goal_of(theorem, Alike, "results_alike")
    if (goal.scope, goal.node) != (Scope.of(unit), unit.result):
        raise RuleError("results_alike: the premise is not about the unit's result")
    if not goal.signs:
        raise RuleError("results_alike: zeros may have other signs")
    left, right = map(_how_rounded, (goal.node, goal.other))
    if left is None or left != right:
        raise RuleError("results_alike: the result is not rounded to the same format")
    return Made(SameResults(unit, goal.other), (theorem,))


def _how_rounded(node: Node) -> tuple[Format, int | None] | None:
    """The format to which a result is rounded, and its pattern for NaN; None if it is not rounded."""
    while isinstance(node, Repeat):
        node = node.body
    return (node.rounding.format, node.rounding.nan) if isinstance(node, Round) else None
