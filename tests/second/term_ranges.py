"""What the checker of rewriting knows of the numbers that terms of sums can be, in its own words.

A scope says what is known of the result so far of each loop around a node: its formats, and the power of two of which
it is a multiple. A range is that of the nonzero finite numbers that a term can be, as the datapath bounds them: a
significand of `width` bits, `fraction` of them below the exponent, which is from `low` to `high`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from tests.second.document import Document, largest_number, most_of, nan_as, operands_of
from tests.second.magnitudes import NOTHING, end_of, need, rounded_at_most, two

Plain = Mapping[str, Any]
#: the nodes in which the sign of a zero operand affects only the sign of a zero result
BLIND = {"element", "zero", "number", "acc", "product", "gate", "scale", "each", "exact", "fused", "cut", "round",
         "repeat"}  # fmt: skip


@dataclass(frozen=True)
class Held:
    """A result so far is a number of one of these formats, and a multiple of 2^unit (None: of their smallest), and not
    -0, or not subnormal."""

    formats: frozenset[int]
    unit: int | None = None
    never_minus: bool = False
    never_tiny: bool = False


Scope = tuple[tuple[int, Held], ...]  # by level, outermost first


@dataclass(frozen=True)
class Range:
    """As queries/kernel/datapath/ranges.py writes one. `unit`: every number is a multiple of 2^unit; `leading`: the
    first bit of the significand is set unless the exponent is the least."""

    width: int
    fraction: int
    low: int
    high: int
    unit: int
    leading: bool = False

    @property
    def document(self) -> dict[str, Any]:
        names = ("width", "fraction", "low", "high", "unit", "leading")
        return {name: getattr(self, name) for name in names}

    @property
    def most(self) -> Fraction:
        """The largest significand, in units of the power of two at its exponent."""
        return Fraction((1 << self.width) - 1, 1 << self.fraction)


Ranges = frozenset[Range] | None


@dataclass(frozen=True)
class Value:
    """The finite values of a node: zeros or numbers of `formats`, multiples of 2^grid, up to `largest`, of `bits`
    significant bits; where they count, with an exponent e from `least` to `most`, multiples of 2^(e - digits). `plus`:
    none is -0; `large`: none is subnormal; `parts`: of what it is the exact sum. `adds`: a zero has the sign of a sum;
    where all numbers added are negative or -0, it is at most zero, and counts as zero if it is one (`agrees`), or it is
    not zero (`positive`)."""

    formats: frozenset[int] | None = None
    grid: int | None = None
    largest: Fraction | None = None
    bits: int | None = None
    least: int | None = None
    digits: int | None = None
    most: int | None = None
    zero: bool = False
    finite: bool = False
    plus: bool = False
    large: bool = False
    parts: tuple[Value, ...] = ()
    adds: bool = False
    agrees: bool = False
    positive: bool = False

    @property
    def sizes(self) -> tuple[int | None, ...]:
        return self.grid, self.bits, self.least, self.digits, self.most

    @property
    def top(self) -> int | None:
        return end_of(self.largest)


NOUGHT = Value(frozenset(), NOTHING, Fraction(0), 0, None, 0, None, True, True, True, True, agrees=True)


def read_scope(tree: Document, given: Plain) -> Scope:
    names = ("a", "b", "c") + (("scale_a", "scale_b") if tree.unit["scale"] is not None else ())
    need(given["formats"] == [[name, tree.unit[name.split("_")[0]]] for name in names], "it is about other operands")
    need(given["unsigned"] == [], "it says something of inputs")
    found = tuple((level, Held(**{**one, "formats": frozenset(one["formats"])})) for level, one in given["held"])
    need(len(dict(found)) == len(found), "a loop is around itself")
    return found


class Known:
    """What is known of the nodes of a tree."""

    def __init__(self, tree: Document) -> None:
        self.tree = tree
        self.found: dict[tuple[Scope, int], Ranges] = {}
        self.values: dict[tuple[Scope, int], Value] = {}
        self.given: dict[int, Value] = {}  # of the results so far of loops, while these are looked for

    def formats(self, scope: Scope, at: int) -> frozenset[int] | None:
        """The formats of which a value is a number, none for a zero; None if they are not known."""
        node = self.tree.nodes[at]
        kind = node["kind"]
        if kind == "element":
            return frozenset({self.tree.unit[node["operand"].split("_")[0]]})
        if kind == "zero":
            return frozenset()
        if kind == "acc":
            return dict(scope)[node["level"]].formats if node["level"] in dict(scope) else None
        if kind == "repeat":
            need(bool(node["places"]), "a loop has no step")
            node = self.tree.nodes[node["body"]]
        return frozenset({node["rounding"]["format"]}) if node["kind"] == "round" else None

    def ranges(self, scope: Scope, at: int) -> Ranges:
        """The ranges of the nonzero terms that a node adds to a sum; None if they are not known."""
        if (scope, at) not in self.found:
            self.found[scope, at] = self._ranges(scope, at)
        return self.found[scope, at]

    def _ranges(self, scope: Scope, at: int) -> Ranges:
        node = self.tree.nodes[at]
        kind = node["kind"]
        if kind in ("each", "gate"):
            return self.ranges(scope, node["body" if kind == "each" else "term"])
        if kind in ("product", "scale"):
            first, *rest = [self.ranges(scope, one) for one in factors_of(node)]
            for other in rest:
                if first is None or other is None:
                    return None
                first = frozenset(_product(x, y) for x in first for y in other)
            return frozenset(map(_normalised, first or ())) if kind == "product" and node["normalised"] else first
        if kind == "exact":
            own = [self.ranges(scope, item) for item in node["items"]]
            if any(ranges is None for ranges in own):
                return None
            terms = [one for ranges, item in zip(own, node["items"], strict=True) for one in ranges or ()
                     for _ in range(self.count(item))]  # fmt: skip
            return frozenset({_sum(terms)})
        formats = self.formats(scope, at)
        if formats is None:
            return None
        return frozenset(self._number(fmt, self.value(scope, at).grid) for fmt in formats)

    def value(self, scope: Scope, at: int) -> Value:
        """What is known of the finite values of a node."""
        if (scope, at) not in self.values:
            self.values[scope, at] = self._value(scope, at)
        return self.values[scope, at]

    def _value(self, scope: Scope, at: int) -> Value:
        node = self.tree.nodes[at]
        kind = node["kind"]
        if kind == "zero":
            return replace(NOUGHT, plus=not node["negative"])
        if kind == "acc":
            held = dict(scope).get(node["level"])
            if node["level"] in self.given:
                return self.given[node["level"]]
            return Value() if held is None else replace(
                self._numbers(held.formats, held.unit, None), plus=held.never_minus, large=held.never_tiny)  # fmt: skip
        if kind == "element":
            fmt = self.tree.unit[node["operand"].split("_")[0]]
            finite = self.tree.formats[fmt]["specials"] in ("none", "unused")
            return replace(self._numbers(frozenset({fmt}), None, None), finite=finite, plus=node["positive_zeros"],
                           large=node["subnormals"] != "keep")  # fmt: skip
        if kind == "repeat":
            return self._within(node["level"], self._induction(scope, node)).value(scope, node["body"])
        below = [self.value(scope, one) for one in operands_of(node)]
        if kind == "round":
            return self._rounded(node["rounding"], below[0])
        if kind in ("each", "gate"):
            return below[0] if kind == "each" else replace(below[0], plus=False)
        if kind in ("relu", "segment", "cancelling"):
            kept = replace(below[0], plus=False, parts=(), adds=False, positive=False)
            kept = kept if kind == "cancelling" else replace(kept, agrees=False)
            return replace(kept, formats=None, large=False) if kind == "segment" else kept
        if kind in ("product", "scale"):
            found = below[0]
            for other in below[1:]:
                pairs = zip(found.sizes, other.sizes, strict=True)
                sizes: Any = [None if x is None or y is None else x + y for x, y in pairs]
                found = Value(None, sizes[0], _times(found.largest, other.largest), *sizes[1:], agrees=True,
                              zero=found.zero or other.zero, finite=found.finite and other.finite)  # fmt: skip
            plus = kind == "product" and all(one.zero and one.plus for one in below)
            free = kind == "scale" or node["limit"] is None
            return replace(found, plus=plus, finite=found.finite and free, **self._normalised(node, found))
        if kind == "cut":
            largest = below[0].largest
            if largest is not None:
                largest = rounded_at_most(largest, node["bits"], node["least"], node["mode"])
            end, least = end_of(largest), node["least"]
            most = None if end is None else end - 1 if least is None else max(end - 1, least)
            return Value(None, below[0].grid, largest, node["bits"], least, node["bits"] - 1, most, below[0].zero,
                         below[0].finite, agrees=below[0].agrees and node["least"] is None)  # fmt: skip
        counts = [self.count(item) for item in node["items"]] if kind in ("exact", "fused", "grid") else []
        terms = [one for one, many in zip(below, counts, strict=True) for _ in range(many)] if counts else []
        if kind == "exact":
            return _exact(terms)
        if kind == "grid":
            return _on_grid(node, list(zip(terms, self._bits(node), strict=True)))
        return self._fused(node, terms) if kind == "fused" else Value()

    def _bits(self, node: Plain) -> list[int]:
        """The number of bits kept of each term."""
        each = node["fraction_bits"]
        each = each if isinstance(each, list) else [each] * len(node["items"])
        return [own for own, item in zip(each, node["items"], strict=True) for _ in range(self.count(item))]

    def _normalised(self, node: Plain, found: Value) -> dict[str, Any]:
        """How a normalised product counts: 2^e is at most its magnitude."""
        if node["kind"] == "scale" or not node["normalised"]:
            return {}
        most = None if found.top is None else found.top - 1
        return {"least": found.grid, "digits": None if found.digits is None else found.digits + 1, "most": most}

    def _numbers(
        self, fmts: frozenset[int], grid: int | None, bits: int | None, largest: Fraction | None = None
    ) -> Value:
        """Numbers of formats, multiples of 2^grid of so many significant bits, up to `largest`."""
        if not fmts:
            return NOUGHT
        lasts, emins = ([how(fmt) for fmt in fmts] for how in (self.tree.last, self.tree.emin))
        digits = max(self.tree.formats[fmt]["fraction"] for fmt in fmts)
        grid = min(lasts) if grid is None else max(grid, *lasts) if len(lasts) == 1 else max(grid, min(lasts))
        bits = digits + 1 if bits is None else min(bits, digits + 1)
        if len(fmts) == 1:
            digits = max(0, bits - 1, emins[0] - grid)
        every = max(most_of(self.tree.formats[fmt]) for fmt in fmts)
        end = end_of(min(every, largest) if largest else every)
        assert end is not None
        return Value(
            fmts,
            grid,
            every if largest is None else min(every, largest),
            bits,
            max(min(emins), grid),
            digits,
            max(min(emins), end - 1),
            agrees=True,
        )

    def _rounded(self, how: Plain, y: Value) -> Value:
        fmt, number = self.tree.formats[how["format"]], frozenset({how["format"]})
        largest, numbers = largest_number(fmt)[0], fmt["specials"] in ("none", "unused")
        if nan_as(how, fmt) == "number":
            return replace(self._numbers(number, None, None), finite=numbers)
        infinite = fmt["specials"] in ("ieee", "extended")
        same = y.finite or (infinite and how["overflow"] != "sat_finite")
        small, most = same and y.top is not None and y.top <= largest, None
        if same and y.largest is not None:
            most = rounded_at_most(y.largest, fmt["fraction"] + 1, self.tree.emin(how["format"]), how["mode"])
        ends = how["overflow"] not in ("ieee", "infinity") or (most is not None and most <= most_of(fmt))
        grid = None if y.grid is None else min(y.grid, largest - fmt["fraction"])
        found = replace(self._numbers(number, grid, y.bits if small else None, most),
                        finite=numbers or (y.finite and ends), zero=y.zero)  # fmt: skip
        found = replace(found, grid=NOTHING) if y.zero else found
        own = (how["zero"] == "exact_positive" and y.adds) or (how["mode"] != "down" and (y.plus or y.positive))
        plus = how["zero"] == "positive" or (own and self.reaches(how, y, how["subnormals"] != "keep"))
        return replace(found, plus=plus, large=how["subnormals"] != "keep" or self.reaches(how, y, True))

    def reaches(self, how: Plain, y: Value, normal: bool) -> bool:
        """Whether y, unless it is zero, is at least the smallest positive number of the format, or the smallest normal
        one: a multiple of it, or a number of the format to which something far larger is added."""
        least = self.tree.emin(how["format"]) if normal else self.tree.last(how["format"])
        if y.grid is not None and y.grid >= least:
            return True
        precision = self.tree.formats[how["format"]]["fraction"] + 1
        near = [one for one in y.parts or (y,) if one.grid is None or one.grid < least + precision]
        if len(near) != 1 or near[0].formats is None:
            return False
        return near[0].formats <= {how["format"]} and (near[0].large or not normal)

    def kept(self, how: Plain, y: Value) -> bool:
        """Whether a rounding changes no value, but for the sign of a zero."""
        fmt, flushes = self.tree.formats[how["format"]], how["subnormals"] != "keep"
        named = fmt["specials"] not in ("none", "unused")
        if not fmt["subnormals"]:
            return False
        if y.formats is not None and y.formats <= {how["format"]}:
            return (not named or nan_as(how, fmt) == "nan") and (
                y.large or not flushes or (y.grid is not None and y.grid >= self.tree.emin(how["format"]))
            )
        if None in (y.bits, y.top, y.grid) or fmt["specials"] in ("negative_zero", "extended"):
            return False
        assert y.bits is not None
        assert y.top is not None
        assert y.grid is not None
        least = self.tree.emin(how["format"]) if flushes else self.tree.last(how["format"])
        fits = y.bits <= fmt["fraction"] + 1 and least <= y.grid and y.top <= largest_number(fmt)[0]
        return fits and (y.finite or (fmt["specials"] == "ieee" and nan_as(how, fmt) == "nan"))

    def _fused(self, node: Plain, terms: Sequence[Value]) -> Value:
        """What is aligned is a multiple of the last place kept at m, or of what it is a multiple of itself."""
        bits = self._bits(node)
        some = [(one, own) for one, own in zip(terms, bits, strict=True) if not one.zero]
        if not some:
            return replace(NOUGHT, plus=all(one.plus for one in terms))
        floors = [bound for bound in (node["least"], *node["floors"]) if bound is not None]
        leasts = [one.least for one, _ in some if one.least is not None]
        if len(leasts) == len(some):
            floors += [min(leasts), min(node["zeros"], max(leasts)) if node["zeros"] is not None else min(leasts)]
        found = [[one.grid, max(floors) - own if floors else None] for one, own in some]
        grids = [max(known) for pair in found if (known := [grid for grid in pair if grid is not None])]
        free = node["carry_bits"] is None and node["zeros"] is None and node["least"] is None and not any(
            bound is not None for bound in (*node["floors"], *node["reach"]))  # fmt: skip
        agrees = free and all(one.agrees and self._stays(one, own) for one, own in zip(terms, bits, strict=True))
        positive = any((one.plus and (one.zero or agrees)) or (one.positive and agrees) for one in terms)
        grid = min(grids) if len(grids) == len(some) and not node["sticky"] else None
        least = min(leasts) if len(leasts) == len(some) else None
        return Value(None, grid, self._end(node, some), least=least, digits=max(bits) + node["sticky"],
                     most=self._most(node, some),
                     finite=all(one.finite for one in terms), adds=True, agrees=agrees, positive=positive)  # fmt: skip

    def _end(self, node: Plain, some: Sequence[tuple[Value, int]]) -> Fraction | None:
        """The largest magnitude of a sum: aligning adds to no term more than a place kept at the largest m."""
        sizes = [one.largest for one, _ in some if one.largest is not None]
        if len(sizes) < len(some):
            return None
        m = self._most(node, some)
        if m is None:
            return sum(sizes, Fraction(0)) if node["rounding"] == "toward_zero" and not node["sticky"] else None
        if node["sticky"]:  # what is ORed into the last place
            sizes.append(two(m - max(own for _, own in some)))
        if node["rounding"] != "toward_zero":
            sizes += [two(m - own) for _, own in some]
        return sum(sizes, Fraction(0))

    def _most(self, node: Plain, some: Sequence[tuple[Value, int]]) -> int | None:
        """The largest exponent at which terms are aligned."""
        ends = [one.most for one, _ in some if one.most is not None]
        bounds = (bound for bound in (node["zeros"], node["least"], *node["floors"]) if bound is not None)
        return max([*ends, *bounds]) if len(ends) == len(some) else None

    def _stays(self, one: Value, bits: int) -> bool:
        """Whether no number other than zero is cut to zero at its own exponent."""
        if one.zero or (one.digits is not None and one.digits <= bits):
            return True
        if not one.formats or one.grid is None:
            return False
        return one.grid >= max(map(self.tree.emin, one.formats)) - bits

    def so_far(self, scope: Scope, at: int) -> Held:
        """What is known of the start and of the results of a loop, by induction."""
        found = self._induction(scope, self.tree.nodes[at])
        need(bool(found.formats), "it is not known which numbers the results so far are")
        return Held(found.formats or frozenset(), None if found.zero else found.grid, found.plus, found.large)

    def _induction(self, scope: Scope, node: Plain) -> Value:
        need(bool(node["places"]), "a loop has no step")
        start = found = self.value(scope, node["start"])
        for _ in range(4):
            either = _either(found, self._within(node["level"], found).value(scope, node["body"]))
            if either == found:
                return found
            if either.largest != found.largest:  # it may grow with every step
                formats = either.formats
                plain = Value() if formats is None else self._numbers(formats, None, None)
                either = replace(either, largest=plain.largest, most=plain.most)
            found = either
        last = self._within(node["level"], Value()).value(scope, node["body"])
        if start.formats is None or last.formats is None:
            return Value()
        return self._numbers(start.formats | last.formats, None, None)

    def _within(self, level: int, so_far: Value) -> Known:
        """The same in a loop, of whose results so far this is known."""
        inner = Known(self.tree)
        inner.given = {**self.given, level: so_far}
        return inner

    def _number(self, number: int, unit: int | None) -> Range:
        """The numbers of a format that are multiples of 2^unit."""
        fmt = self.tree.formats[number]
        fraction = int(fmt["fraction"]) if fmt["subnormals"] else 0
        low, high = self.tree.emin(number), largest_number(fmt)[0]
        found = Range(fraction + 1, fraction, low, high, low - fraction, True)
        if unit is None or unit <= found.unit:
            return found
        return replace(found, unit=unit, low=min(max(unit, low), high))

    def count(self, at: int) -> int:
        """The number of terms that a node adds to a sum."""
        node = self.tree.nodes[at]
        return len(node["places"]) * self.count(node["body"]) if node["kind"] == "each" else 1

    def blind(self, at: int) -> bool:
        """Whether operands that are alike but for the signs of zeros give such results."""
        return all(self.tree.nodes[one]["kind"] in BLIND for one in self.tree.below(at))

    def items(self, at: int) -> Sequence[int]:
        """The terms of a sum; of another node none."""
        node = self.tree.nodes[at]
        found: Sequence[int] = node["items"] if node["kind"] in ("exact", "fused") else ()
        return found

    def adds(self, at: int) -> bool:
        """Whether a zero result has the sign of a sum of zeros: an exact sum of one term is that term."""
        return self.tree.nodes[at]["kind"] == "fused" or sum(map(self.count, self.items(at))) > 1

    def aligned(self, scope: Scope, at: int) -> list[tuple[Range, int]] | None:
        """The ranges of the terms of a fused sum, each with the bits kept of it; None if one is not known."""
        node = self.tree.nodes[at]
        bits = node["fraction_bits"]
        each = bits if isinstance(bits, list) else [bits] * len(node["items"])
        own = [self.ranges(scope, item) for item in node["items"]]
        if any(ranges is None for ranges in own):
            return None
        return [(one, kept) for ranges, kept in zip(own, each, strict=True) for one in ranges or ()]


def _exact(terms: Sequence[Value]) -> Value:
    """An exact sum, which counts with the exponent 0."""
    grids, sizes = [one.grid for one in terms if not one.zero], [one.largest for one in terms]
    grid = None if None in grids else min((one for one in grids if one is not None), default=NOTHING)
    largest = None if None in sizes else sum((one for one in sizes if one is not None), Fraction(0))
    top = end_of(largest)
    bits, digits = terms[0].bits if len(terms) == 1 else None, None
    if grid is not None and top is not None and grid <= top:
        digits, bits = -grid, top - grid if bits is None else min(bits, top - grid)
    minus = [one for one in terms if one.plus or one.positive]
    agrees = all(one.agrees for one in terms)
    return Value(
        None, grid, largest, bits, 0, digits, 0, all(one.zero for one in terms), all(one.finite for one in terms),
        parts=tuple(part for one in terms for part in one.parts or (one,)), adds=len(terms) > 1 or terms[0].adds,
        agrees=agrees, positive=any(one.zero and one.plus for one in terms) or (agrees and bool(minus)),
    )  # fmt: skip


def _on_grid(node: Plain, terms: Sequence[tuple[Value, int]]) -> Value:
    """A sum of terms on one grid: its place is at least that of some term, and it is added where bits are flipped."""
    some = [(one, bits) for one, bits in terms if not one.zero]
    if not some:
        return replace(NOUGHT, plus=all(one.plus for one, _ in terms), finite=False)
    floors = [e - bits for e, bits in zip(node["floors"], node["fraction_bits"], strict=False) if e is not None]
    leasts = [one.least - bits for one, bits in some if one.least is not None]
    grids = [one.grid for one, _ in some if one.grid is not None]
    if node["frame"] is not None:
        grids += [max([min(leasts), *floors])] if len(leasts) == len(some) else []
    grid = min(grids) if len(grids) == len(some) + (node["frame"] is not None) else None
    ends = [one.most - bits for one, bits in some if one.most is not None]
    sizes = [one.largest for one, _ in some if one.largest is not None]
    units = len(terms) * ((node["rounding"] != "toward_zero") + (node["frame"] is not None))
    largest = sum(sizes) + (units * two(max(ends + floors)) if units else 0) if len(ends) == len(some) else None
    most = max(ends + floors) + max(bits for _, bits in terms) if len(ends) == len(some) else None
    return Value(None, grid, largest, most=most, finite=all(one.finite for one, _ in terms))


def _either(one: Value, other: Value) -> Value:
    """What is known of two nodes."""
    both: Any = {
        name: getattr(one, name) and getattr(other, name) for name in ("zero", "finite", "plus", "large", "agrees")
    }
    if one.zero or other.zero:
        kept = other if one.zero else one
        return replace(kept, **{**both, "large": kept.large}, parts=(), adds=False, positive=False)
    hows: Any = (min, max, min, max, max)
    largest = None if one.largest is None or other.largest is None else max(one.largest, other.largest)
    pairs = zip(hows, one.sizes, other.sizes, strict=True)
    sizes: Any = [None if x is None or y is None else how(x, y) for how, x, y in pairs]
    formats = None if one.formats is None or other.formats is None else one.formats | other.formats
    return Value(formats, sizes[0], largest, *sizes[1:], **both)


def _times(one: Fraction | None, other: Fraction | None) -> Fraction | None:
    return None if one is None or other is None else one * other


def factors_of(node: Plain) -> list[int]:
    """What a product or a scaled term multiplies."""
    return [node[name] for name in ("term", "left", "right") if name in node]


def _product(left: Range, right: Range) -> Range:
    return Range(left.width + right.width, left.fraction + right.fraction, left.low + right.low,
                 left.high + right.high, left.unit + right.unit)  # fmt: skip


def _normalised(one: Range) -> Range:
    """With the first bit of its significand set, so that it has one bit before its point."""
    before = one.width - one.fraction
    return Range(one.width, one.width - 1, one.low + before - one.width, one.high + before - 1, one.unit)


def _sum(terms: Sequence[Range]) -> Range:
    """An exact sum in fixed point, which counts with the exponent 0: as wide as its largest magnitude."""
    low = min(one.low - one.fraction for one in terms)
    largest = sum((1 << one.width + one.high - one.fraction - low) - 1 for one in terms)
    return Range(largest.bit_length(), -low, 0, 0, min(one.unit for one in terms))
