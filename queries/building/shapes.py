"""Random inputs for a unit about which little is known, by kind: from few terms in the middle of the range to special
values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from mmaprobe.queries.building.weights import ADDED, Weights
from mmaprobe.queries.order.tree import Leaf
from mmaprobe.queries.search.samples import Lanes, Table, pattern_of, sample_rows, tie_rows
from mmaprobe.smtmodel.arithmetic.formats import FORMATS, Format
from mmaprobe.smtmodel.evaluate.operands import layout_of
from mmaprobe.smtmodel.inputs.signature import Signature

WIDE = 60  # the number of exponents above which a range has room for large numbers
INNER = FORMATS["f16"]  # the format in which sums may be kept, whatever the format of the result
TOP = INNER.emax - 4  # the exponent of large terms, so that sums are in the range of f16
DEEP = 64  # the most places between terms, for sums that may have more bits than the result
HIDDEN = 0.2  # share of the rows in which two large terms cancel: the result then shows the kept bits of other terms
TIED = 0.15  # share of the rows with a sum about half way between two results: these show roundings before the last
MET = 0.06  # share of the small rows in which c and one product cancel
PRECISIONS = tuple(FORMATS[name].precision for name in ("bf16", "f16", "f32", "f32", "f64"))  # precisions of inner sums
SHORTEST = 4  # significant bits of terms whose sums are exact
FAINT = 20  # the most places below the least normal result at which the largest of faint terms lies
NEAR = 10  # the most places between the largest and the least of faint terms
BELOW = 8  # the most places below the least subnormal result at which terms vanish
NONZERO_PRODUCTS = (1, 2, 3, 4)  # numbers of nonzero products in most rows


Kind = Literal["middle", "heavy", "small", "vanishing", "subnormal", "large", "anything", "cancelling", "faint"]


class Shapes:
    """Rows of a, b and c for one signature, from a seed. `weights`: the powers of two by which the device multiplies
    its terms; the rows undo them, so that the weighted terms have the same sizes and signs as without weights.
    `narrow`: whether products stay in the range of f16, as lower steps may keep them in f16."""

    def __init__(self, asked: Signature, seed: int = 1, weights: Weights | None = None, narrow: bool = False) -> None:
        self.asked, self.weights = asked, weights or {}
        shifts = [self.weights.get(k, ADDED)[1] for k in range(asked.length)]
        own, its = max(shifts, key=shifts.count, default=0), self.weights.get("c", ADDED)[1]
        self.shift, self.addend_shift = own, its  # exponents of the weights of most products, and of c
        self.products = asked.a.emin + asked.b.emin + own, asked.a.emax + asked.b.emax + own
        self.addends = asked.c.emin + its, asked.c.emax + its
        if narrow:
            self.products = max(self.products[0], INNER.emin), min(self.products[1], TOP - 1)
        self.random = np.random.default_rng(seed)
        self._seed = seed

    def rows(self, kind: Kind, count: int) -> Table:
        """Rows of inputs of one kind."""
        make = {"middle": self.middle, "heavy": self.heavy, "small": self.small, "vanishing": self.vanishing,
                "subnormal": self.subnormal, "large": self.large, "anything": self.anything,
                "cancelling": self.cancelling, "faint": self.faint}[kind]  # fmt: skip
        return self._scaled(self._turned(make(count)), kind)

    def _turned(self, table: Table) -> Table:
        """The rows with the signs of subtracted terms inverted."""
        for leaf, (sign, _) in self.weights.items():
            if sign < 0 and leaf == "c" and self.asked.addend:
                table[:, 2 * self.asked.length] ^= np.uint64(self.asked.c.sign_bit)
            elif sign < 0 and leaf != "c":
                table[:, leaf] ^= np.uint64(self.asked.a.sign_bit)
        return table

    def _scaled(self, table: Table, kind: Kind = "middle") -> Table:
        """The rows with scale factors, if the unit takes them: all equal to 1, near 1, or of any size."""
        fmt, width = self.asked.scale, 2 * self.asked.length + 1
        if fmt is None or table.shape[1] > width:
            return table
        shape = len(table), 2 * self.asked.scales
        fraction = self.random.integers(0, 1 << fmt.fraction, shape, dtype=np.uint64)
        exponents = fmt.bias + self.random.integers(-3, 4, shape)
        near = pattern_of(fmt, np.zeros(shape[0] * shape[1], dtype=np.int64), exponents.ravel(), fraction.ravel())
        rows = near.reshape(shape)
        rows[self.random.random(shape[0]) < 0.5] = fmt.one
        if kind in ("large", "anything"):
            any_pattern = self.random.integers(0, 1 << fmt.field_width, shape, dtype=np.uint64)
            some = self.random.random((shape[0], 1)) < 0.3
            rows = np.where(some & (self.random.random(shape) < 0.5), any_pattern, rows)
        return np.concatenate([table, rows], axis=1)

    def at(self, kind: Kind, count: int, leaves: frozenset[Leaf]) -> Table:
        """Rows of a kind in which only some leaves are nonzero."""
        numbers = sorted(leaf for leaf in leaves if leaf != "c")
        self._seed += 1
        asked, length = self.asked, self.asked.length
        few = Signature(asked.a, asked.b, asked.c, asked.d, len(numbers), asked.addend)
        leaves_of_few: list[tuple[Leaf, Leaf]] = [*enumerate(numbers), ("c", "c")]
        weights = {leaf: (1, self.weights.get(k, ADDED)[1]) for leaf, k in leaves_of_few}
        given = Shapes(few, self._seed, weights).rows(kind, count)
        table = np.zeros((len(given), 2 * length + 1), dtype=np.uint64)
        table[:, numbers] = given[:, : len(numbers)]
        table[:, [length + k for k in numbers]] = given[:, len(numbers) : -1]
        if "c" in leaves:
            table[:, -1] = given[:, -1]
        return self._scaled(self._turned(table), kind)

    def middle(self, count: int) -> Table:
        """Normal numbers far from the ends of every range: terms of both signs, at the distances below the largest term
        where bits are lost; some cancel."""
        parts = [self._mixed(share, terms) for share, terms in self._shares(count)]
        return self.random.permutation(np.concatenate(parts))

    def sums(self, count: int, leaves: frozenset[Leaf], bits: int) -> Table:
        """Sums of some leaves, all others being zero. One factor of each product has `bits` bits, few enough that no
        product is rounded; the other is a power of two, and products are normalised. c has twice as many bits."""
        places = np.array(sorted(leaf for leaf in leaves if leaf != "c"), dtype=np.int64)
        chosen = np.zeros(2 * self.asked.length + 1, dtype=np.bool_)
        chosen[places], chosen[self.asked.length + places], chosen[-1] = True, True, "c" in leaves
        table = self._mixed(count, max(1, len(places)), places if len(places) else None, bits, "c" in leaves)
        table[:, ~chosen] = 0
        return self._scaled(self._turned(self._few(table)))

    def _few(self, table: Table) -> Table:
        """The rows, of which some have some factors set to zero."""
        length = self.asked.length
        gone = self.random.random((len(table), length)) < self.random.choice((0.0, 0.0, 0.3), (len(table), 1))
        table[:, :length][gone] = 0
        table[:, length : 2 * length][gone] = 0
        return table

    def heavy(self, count: int) -> Table:
        """Products of one sign and similar size at all places: sums that need their carry bits."""
        asked, length = self.asked, self.asked.length
        low, high = self._range(length)
        top = np.clip(self.random.integers(-4, 5, (count, 1)), low, high)
        exponents = np.repeat(top, length + 1, axis=1) - (self.random.random((count, length + 1)) < 0.1)
        signs = np.repeat(self.random.integers(0, 2, (count, 1)), length + 1, axis=1)
        a, b = self._products(exponents[:, :length], signs[:, :length], normal=True)
        full = self.random.random(count) < 0.6
        for side, fmt in ((a, asked.a), (b, asked.b)):
            side[full] |= np.uint64(((1 << fmt.fraction) - 1) << fmt.padding)
            over = (side & np.uint64(~fmt.sign_bit & (1 << fmt.width) - 1)) > fmt.largest
            side[over] = side[over] & np.uint64(fmt.sign_bit) | np.uint64(fmt.largest)
        c = self._addends(exponents[:, length], signs[:, length])
        return self._plain(np.concatenate([a, b, c[:, None]], axis=1))

    def small(self, count: int) -> Table:
        """Terms, partial sums and results about the smallest numbers, and zeros of both signs."""
        parts = []
        for share, terms in self._shares(count):
            third = share // 3
            parts += [self._about(share - 2 * third, terms, self.asked.d.emin), self._ties(third // 2, terms),
                      self._border(third - third // 2, terms), self._zeros(third)]  # fmt: skip
        table = self.random.permutation(np.concatenate(parts))
        if self.asked.addend:
            self._cancel_addend(table)
        return table

    def cancelling(self, count: int) -> Table:
        """Terms of few bits that are normal numbers, and whose sums may be tiny."""
        asked, terms, few = self.asked, self.asked.length, min(SHORTEST, self.asked.a.precision)
        least = np.where(self.random.random((count, 1)) < 0.7, asked.d.emin, max(asked.d.emin, INNER.emin))
        exponents = least + self.random.integers(0, 4, (count, terms + 1))
        signs = self._signs(exponents.shape)
        a, b = self._products(exponents[:, :terms], signs[:, :terms], True, few)
        c = self._addends(exponents[:, terms], signs[:, terms], few)
        if terms > 1:
            self._cancel(a, b, few)
        c[self.random.random(count) < 0.2] = 0
        return self._few(self._plain(np.concatenate([a, b, c[:, None]], axis=1)))

    def faint(self, count: int) -> Table:
        """Nonzero terms at all places, each below the least normal result: the bits that sums lose show an exponent
        that counts in the alignment where no product is zero."""
        asked, terms = self.asked, self.asked.length
        exponents = asked.d.emin - self.random.integers(1, FAINT + 1, (count, 1))
        exponents = exponents - self.random.integers(0, NEAR + 1, (count, terms + 1))
        signs = self._signs(exponents.shape)
        a, b = self._products(exponents[:, :terms], signs[:, :terms], normal=False)
        c = self._addends(exponents[:, terms], signs[:, terms])
        return self._plain(np.concatenate([a, b, c[:, None]], axis=1))

    def vanishing(self, count: int) -> Table:
        """Terms below the least subnormal result, or slightly larger, zeros of both signs, and sums that cancel."""
        return self.random.permutation(np.concatenate([self._vanishing(*share) for share in self._shares(count)]))

    def subnormal(self, count: int) -> Table:
        """Products of a subnormal and a large factor among other terms of similar size."""
        return self.random.permutation(np.concatenate([self._of_tiny_factors(*share) for share in self._shares(count)]))

    def large(self, count: int) -> Table:
        """Results about the largest numbers, infinities and NaNs."""
        parts = []
        for share, terms in self._shares(count):
            half = share // 2
            parts += [self._about(share - half, terms, self.asked.d.emax), self._special(half, terms)]
        return self.random.permutation(np.concatenate(parts))

    def anything(self, count: int) -> Table:
        """Shaped and random patterns over the whole range."""
        self._seed += 1
        plain = Signature(self.asked.a, self.asked.b, self.asked.c, self.asked.d, self.asked.length)
        return self._plain(sample_rows(layout_of(plain), count, self._seed))

    # -- parts

    def _shares(self, count: int) -> list[tuple[int, int]]:
        """The number of rows for each number of nonzero products, as pairs (rows, products)."""
        kinds = sorted({min(terms, self.asked.length) for terms in (*NONZERO_PRODUCTS, self.asked.length)})
        shares = np.array_split(np.arange(count), len(kinds))
        return [(len(share), terms) for share, terms in zip(shares, kinds, strict=True)]

    def _plain(self, table: Table) -> Table:
        """The rows with c = 0 where the device takes no addend."""
        if not self.asked.addend:
            table[:, -1] = 0
        return table

    def _placed(self, a: Table, b: Table, c: Table, given: Lanes | None = None) -> Table:
        """Put products at random places, adjacent or scattered, or at given places; all other products are zero."""
        count, terms = a.shape
        length = self.asked.length
        table = np.zeros((count, 2 * length + 1), dtype=np.uint64)
        places = self.random.random((count, length)).argsort(axis=1)[:, :terms]
        starts = self.random.integers(0, length - terms + 1, count)
        near = self.random.random(count) < 0.5
        places[near] = (starts[:, None] + np.arange(terms))[near]
        if given is not None:
            places = np.broadcast_to(given, (count, terms))
        rows = np.arange(count)[:, None]
        table[rows, places], table[rows, length + places], table[:, -1] = a, b, c
        return self._plain(table)

    def _numbers(self, fmt: Format, exponents: Lanes, signs: Lanes, bits: int | None = None) -> Table:
        """Numbers of these exponents, with at most `bits` significant bits."""
        shape = exponents.shape
        fraction = self.random.integers(0, 1 << fmt.fraction, shape, dtype=np.uint64)
        if bits is not None and bits - 1 < fmt.fraction:
            gone = np.uint64(fmt.fraction - bits + 1)
            fraction = fraction >> gone << gone
        short = self.random.integers(0, fmt.fraction + 1, shape, dtype=np.uint64)
        fraction = np.where(self.random.random(shape) < 0.5, fraction >> short << short, fraction)
        flat = pattern_of(fmt, signs.ravel(), exponents.ravel() + fmt.bias, fraction.ravel())
        return flat.reshape(shape)

    def _addends(self, exponents: Lanes, signs: Lanes, bits: int | None = None) -> Table:
        """Addends with these exponents after the multiplication by weights."""
        return self._numbers(self.asked.c, exponents - self.addend_shift, signs, bits)

    def _products(self, targets: Lanes, signs: Lanes, normal: bool, bits: int | None = None) -> tuple[Table, Table]:
        """Factors of products with these exponents after the multiplication by weights, as far as ranges allow; with
        `bits`, one factor has at most `bits` significant bits, and the other is a power of two."""
        a, b = self.asked.a, self.asked.b
        targets = (np.clip(targets, *self.products) if normal else targets) - self.shift
        low = (0, 0) if normal else (a.fraction, b.fraction)
        left = targets // 2 + self.random.integers(-2, 3, targets.shape)
        left = np.clip(left, targets - b.emax, targets - b.emin + low[1])
        left = np.clip(left, a.emin - low[0], a.emax)
        right = np.clip(targets - left, b.emin - low[1], b.emax)
        return self._numbers(a, left, signs, bits), self._numbers(b, right, np.zeros_like(signs), bits and 1)

    def _signs(self, shape: tuple[int, ...]) -> Lanes:
        signs = self.random.integers(0, 2, shape)
        alike = self.random.random(shape[0]) < 0.3
        signs[alike] = signs[alike][..., :1] if len(shape) > 1 else 0
        return signs

    def _range(self, terms: int, bits: int | None = None) -> tuple[int, int]:
        """The exponents for `terms` terms far from the ends of every range; if there is room, large enough that no
        nonzero sum is below the smallest normal result."""
        asked = self.asked
        low = max(self.products[0], asked.d.emin, self.addends[0])
        high = min(self.products[1], min(asked.d.emax, self.addends[1]) - terms.bit_length() - 3)
        low = min(low, high)
        places = min(asked.a.precision, bits or 64) + min(asked.b.precision, bits or 64)
        return max(low, min(low + places, high - asked.d.precision - 4)), high

    def _mixed(
        self, count: int, terms: int, places: Lanes | None = None, bits: int | None = None, with_c: bool = True
    ) -> Table:
        """Terms with some sums that cancel, and some ties of two successive roundings. `with_c`: whether c is a
        term."""
        numbers = terms + (with_c and self.asked.addend)
        hidden, tied = int(HIDDEN * count) if numbers > 2 else 0, int(TIED * count)
        parts = [self._middle(count - hidden - tied, terms, places, bits)]
        parts += [self._hidden(hidden, terms, numbers, places, bits)] if hidden else []
        parts += [self._tied(tied, terms, numbers, places, bits)] if tied else []
        return self.random.permutation(np.concatenate(parts))

    def _hidden(self, count: int, terms: int, numbers: int, places: Lanes | None, bits: int | None) -> Table:
        """Two large terms of opposite signs, and other terms. The result shows which bits of the other terms are kept
        beside the large terms. Some distances exceed the precision of the result, some that of an inner sum."""
        asked = self.asked
        low, high = self._range(terms, bits)
        least = max(self.products[0], asked.d.emin)
        roomy = high - low > WIDE
        high = high if roomy or numbers > NONZERO_PRODUCTS[-1] else high + 2
        top = self.random.integers(0, TOP, (count, 1)) if roomy else high + self.random.integers(0, 3, (count, 1))
        lost = self.random.choice(PRECISIONS, (count, 1)) - self.random.integers(0, 4, (count, terms + 1))
        below = self.random.integers(0, min(DEEP, high - low) + 1, (count, 1))
        below = np.where(self.random.random((count, 1)) < 0.5, lost, below + self.random.integers(0, 4, lost.shape))
        exponents = np.maximum(top - below, least)
        rows, one = np.arange(count), self.random.integers(0, numbers, count)
        other = (one + self.random.integers(1, numbers, count)) % numbers
        signs = self._signs(exponents.shape)
        signs[rows, other] = 1 - signs[rows, one]
        for place in (one, other):
            exponents[rows, place] = top[:, 0]
        a, b = self._products(exponents[:, :terms], signs[:, :terms], True, bits)
        c = self._addends(exponents[:, terms], signs[:, terms], bits and 2 * bits)
        with_c = np.maximum(one, other) == terms
        self._opposite(a, b, rows[~with_c], one[~with_c], other[~with_c])
        here, product = rows[with_c], np.minimum(one, other)[with_c]  # where c and a product are the large terms
        a[here, product], b[here, product] = self._products(top[here, 0], signs[here, product], True, 1)
        c[here] = self._addends(top[here, 0], signs[here, terms], 1)
        return self._placed(a, b, c, places)

    def _tied(self, count: int, terms: int, numbers: int, places: Lanes | None, bits: int | None) -> Table:
        """Sums about half way between two results: a number of the result's format, half a unit in its last place, and
        a term of about half a unit in the last place of a longer format. A sum of only two terms has a second term with
        more bits instead of the third."""
        asked, own, rows = self.asked, self.asked.d.precision, np.arange(count)
        low, high = self._range(terms, bits)
        inner = self.random.choice([kept for kept in PRECISIONS if kept > own] or [own + 2], count)
        top = np.clip(self.random.integers(low, high + 1, count), -TOP, TOP)
        top = np.maximum(top, np.minimum(asked.d.emin + inner + 1, asked.d.emax - 2))  # no term is tiny
        last = np.maximum(top - inner + self.random.integers(-1, 2, count), asked.d.emin)
        order = self.random.random((count, numbers)).argsort(axis=1)[:, :3]
        number = np.full((count, terms + 1), -1)  # by term, the number that it is
        for which, place in enumerate(order.T):
            number[rows, place] = which
        exponents = np.choose(number + 1, [np.full((count, 1), low), *(x[:, None] for x in (top, top - own, last))])
        signs = self._signs(exponents.shape)
        signs[rows, order[:, 1 % numbers]] = signs[rows, order[:, 0]]  # the half unit is added, not subtracted
        a, b = np.zeros((2, count, terms), dtype=np.uint64)
        for which, kept in enumerate((min(bits or own, own, asked.a.precision), 1, 2)):
            here = number[:, :terms] == which
            left, right = self._products(exponents[:, :terms], signs[:, :terms], True, kept)
            if which == 2 and asked.a.fraction:  # often one and a half units
                left |= (self.random.random(left.shape) < 0.6) * np.uint64(
                    1 << (asked.a.fraction - 1 + asked.a.padding)
                )
            a[here], b[here] = left[here], right[here]
        if numbers == 2 and bits is None:
            self._a_little_less(a, b, exponents, number == 1)
        c = self._addends(exponents[:, terms], signs[:, terms], 1)
        c = np.where(number[:, terms] == 0, self._addends(top, signs[:, terms], own), c)
        c[number[:, terms] < 0] = 0
        return self._placed(a, b, c, places)

    def _a_little_less(self, a: Table, b: Table, exponents: Lanes, here: NDArray[np.bool_]) -> None:
        """Make some products slightly less than a power of two: (1 + 2^-n)(1 - 2^-n) = 1 - 2^-2n times that power."""
        asked, here = self.asked, here[:, : a.shape[1]]
        signs = (a[here] & np.uint64(asked.a.sign_bit) > 0).astype(np.int64)
        left, right = self._products(exponents[:, : a.shape[1]][here] - 1, signs, True, 1)
        bits = self.random.integers(1, max(2, min(asked.a.fraction, asked.b.fraction) + 1), len(left)).astype(np.uint64)
        one = np.uint64(1)
        more = one << np.uint64(asked.a.fraction) >> bits
        less = (one << np.uint64(asked.b.fraction)) - (one << np.uint64(asked.b.fraction + 1) >> bits)
        a[here] = left | more << np.uint64(asked.a.padding)
        b[here] = right | less << np.uint64(asked.b.padding)

    def _middle(self, count: int, terms: int, places: Lanes | None = None, bits: int | None = None) -> Table:
        """Normal terms at random distances below the largest, some far apart and some near each other."""
        asked = self.asked
        low, high = self._range(terms, bits)
        centre = min(max(0, (low + high) // 2) if high - low > WIDE else high - 4, TOP)
        top = np.clip(min(centre, high) + self.random.integers(-4, 5, count), low, high)
        deep = self.random.random((count, 1)) < (0.0 if bits is None else 0.3)
        wanted = np.where(deep, DEEP, asked.d.precision + 10)  # some sums keep more bits than the result
        reach = np.minimum(wanted, high - low)
        far = self.random.random((count, terms + 1)) < 0.5
        near = self.random.integers(0, min(3, high - low) + 1, far.shape)
        distance = np.where(far, self.random.integers(0, reach + 1, far.shape), near)
        distance[np.arange(count), self.random.integers(0, terms + 1, count)] = 0
        exponents = np.maximum(top[:, None] - distance, low)
        if high - low < asked.d.precision + 10:  # the range of products is small; the range of c may be larger
            away = self.random.integers(-asked.d.precision - 4, asked.d.precision + 5, count)
            away = np.where(self.random.random(count) < 0.5, away, 0)
            ends = max(self.addends[0], asked.d.emin), min(self.addends[1], asked.d.emax) - 3
            exponents[:, terms] = np.clip(exponents[:, terms] + away, *ends)
        signs = self._signs((count, terms + 1))
        a, b = self._products(exponents[:, :terms], signs[:, :terms], True, bits)
        c = self._addends(exponents[:, terms], signs[:, terms], bits and 2 * bits)
        if terms > 1:
            self._cancel(a, b, bits)
        c[self.random.random(count) < 0.3] = 0
        return self._placed(a, b, c, places)

    def _cancel(self, a: Table, b: Table, bits: int | None = None) -> None:
        """In some rows, make a product the negative of another, or nearly so."""
        count, terms = a.shape
        rows = np.flatnonzero(self.random.random(count) < 0.35)
        one, other = self._two(len(rows), terms)
        self._opposite(a, b, rows, one, other)
        side, fmt = (b, self.asked.b) if bits is None else (a, self.asked.a)
        last = fmt.padding + max(0, 0 if bits is None else fmt.precision - bits)
        side[rows, other] ^= self.random.integers(0, 2, len(rows)).astype(np.uint64) << np.uint64(last)

    def _cancel_addend(self, table: Table) -> None:
        """In some rows, make c the negative of a product, and every other product zero."""
        length = self.asked.length
        low, high = max(self.products[0], self.addends[0]), min(self.products[1], self.addends[1])
        rows = np.flatnonzero(self.random.random(len(table)) < MET)
        if low > high or not len(rows):
            return
        exponents, signs = self.random.integers(low, high + 1, len(rows)), self.random.integers(0, 2, len(rows))
        places = self.random.integers(0, length, len(rows))
        a, b = self._products(exponents[:, None], signs[:, None], True, 1)
        table[rows, : 2 * length] = 0
        table[rows, places], table[rows, length + places] = a[:, 0], b[:, 0]
        table[rows, 2 * length] = self._addends(exponents, 1 - signs, 1)

    def _two(self, count: int, terms: int) -> tuple[Lanes, Lanes]:
        """Two different terms in each row."""
        one = self.random.integers(0, terms, count)
        return one, (one + self.random.integers(1, max(2, terms), count)) % terms

    def _opposite(self, a: Table, b: Table, rows: Lanes, one: Lanes, other: Lanes) -> None:
        """In the given rows, make one product the negative of another."""
        a[rows, other] = a[rows, one] ^ np.uint64(self.asked.a.sign_bit)
        b[rows, other] = b[rows, one]

    def _about(self, count: int, terms: int, centre: int) -> Table:
        """Terms whose exponents are about the exponent of the least or of the largest result."""
        asked = self.asked
        spread = asked.d.fraction + 3 if centre < 0 else 3
        exponents = centre + self.random.integers(-spread, 4, (count, terms + 1))
        signs = self._signs((count, terms + 1))
        a, b = self._products(exponents[:, :terms], signs[:, :terms], normal=False)
        c = self._addends(exponents[:, terms], signs[:, terms])
        if terms > 1:
            self._cancel(a, b)
        c[self.random.random(count) < 0.4] = 0
        if self.asked.addend:
            a[self.random.random(count) < 0.05] = 0  # only the addend is left
        self._tiny_factors(a, b, exponents[:, :terms], 0.1)
        return self._placed(a, b, c)

    def _vanishing(self, count: int, terms: int) -> Table:
        asked, rows = self.asked, np.arange(count)
        least = asked.d.unit
        exponents = least + self.random.integers(-BELOW, 2, (count, terms + 1))
        signs = self._signs(exponents.shape)
        one, other = self._two(count, terms)
        cancels = (self.random.random(count) < 0.2) & (terms > 2)
        exponents[rows[cancels], one[cancels]] = sum(self._range(2)) // 2
        a, b = self._products(exponents[:, :terms], signs[:, :terms], normal=False)
        self._opposite(a, b, rows[cancels], one[cancels], other[cancels])
        for side, fmt, share in ((a, asked.a, 0.1), (b, asked.b, 0.1)):
            side[self.random.random(side.shape) < share] &= np.uint64(fmt.sign_bit)
        c = self._addends(exponents[:, terms], signs[:, terms])
        c[self.random.random(count) < 0.7] &= np.uint64(asked.c.sign_bit)
        table = self._placed(a, b, c)
        signed = (self.random.random(count) < 0.5)[:, None] & (table[:, :-1] == 0)
        tops = np.repeat(np.array([asked.a.sign_bit, asked.b.sign_bit], dtype=np.uint64), asked.length)
        table[:, :-1] |= np.where(signed & (self.random.random(signed.shape) < 0.5), tops, np.uint64(0))
        return table

    def _of_tiny_factors(self, count: int, terms: int) -> Table:
        asked = self.asked
        low = max(self.products[0], asked.d.emin, self.addends[0])
        high = min(max(asked.a.emin + asked.b.emax, asked.b.emin + asked.a.emax) + self.shift, self.products[1])
        top = self.random.integers(low, max(low, min(high, self._range(terms)[1])) + 1, (count, 1))
        exponents = top - self.random.integers(0, asked.d.precision + 6, (count, terms + 1))
        near = self.random.random(exponents.shape) < 0.5
        exponents[near] = (top - self.random.integers(0, 4, exponents.shape))[near]
        signs = self._signs(exponents.shape)
        a, b = self._products(exponents[:, :terms], signs[:, :terms], normal=False)
        self._tiny_factors(a, b, exponents[:, :terms], 0.3)
        c = self._addends(exponents[:, terms], signs[:, terms])
        c[self.random.random(count) < 0.3] = 0
        return self._placed(a, b, c)

    def _tiny_factors(self, a: Table, b: Table, targets: Lanes, share: float) -> None:
        """Give a share of the products a subnormal factor a, and an equal share a subnormal factor b; the other factor
        is large enough that the product is normal."""
        chance, one, other = self.random.random(targets.shape), (a, self.asked.a), (b, self.asked.b)
        for (side, fmt), (beside, its), here in ((one, other, chance < share), (other, one, chance > 1 - share)):
            if not fmt.fraction:  # a format without subnormal numbers
                continue
            count = int(here.sum())
            bits = self.random.integers(1, 1 << min(fmt.fraction, 20), count, dtype=np.uint64)
            side[here] = side[here] & np.uint64(fmt.sign_bit) | bits << np.uint64(fmt.padding)
            exponents = targets[here] - self.shift - fmt.emin + self.random.integers(0, 4, count)
            signs = (beside[here] & np.uint64(its.sign_bit) > 0).astype(np.int64)
            beside[here] = self._numbers(its, np.clip(exponents, its.emin, its.emax), signs)

    def _ties(self, count: int, terms: int) -> Table:
        self._seed += 1
        layout = layout_of(Signature(self.asked.a, self.asked.b, self.asked.c, self.asked.d, terms))
        table = tie_rows(layout, self.asked.d, count, self._seed)
        return self._placed(table[:, :terms], table[:, terms : 2 * terms], table[:, 2 * terms])

    def _border(self, count: int, terms: int) -> Table:
        """The least normal number as an addend or a product, and a slightly smaller or larger term beside it."""
        asked, least = self.asked, self.asked.d.emin
        exponents = least - self.random.integers(1, asked.d.fraction + 6, (count, terms))
        signs = self._signs((count, terms))
        a, b = self._products(exponents, signs, normal=False)
        exponent = np.full(count, least - self.addend_shift + asked.c.bias)
        c = pattern_of(asked.c, 1 - signs[:, 0], exponent, np.zeros(count, dtype=np.uint64))
        if terms > 1:
            pair = self.random.random(count) < (0.5 if asked.addend else 1.0)
            whole = np.full((count, 1), least)
            left, right = self._products(whole, 1 - signs[:, :1], normal=False)
            for side, fmt, part in ((a, asked.a, left), (b, asked.b, right)):
                power = part[:, 0] & ~np.uint64(((1 << fmt.fraction) - 1) << fmt.padding)
                side[pair, 1] = power[pair]
            a[pair, 2:] = 0
            c[pair] = 0
        return self._placed(a, b, c)

    def _zeros(self, count: int) -> Table:
        asked = self.asked
        table = self._middle(count, min(2, asked.length))
        formats = [asked.a] * asked.length + [asked.b] * asked.length + [asked.c]
        zero = self.random.random(table.shape) < 0.8
        zero[: count // 2] = True
        signs = self.random.integers(0, 2, table.shape).astype(np.uint64)
        alike = self.random.random(count) < 0.5
        signs[alike] = (np.arange(table.shape[1]) < asked.length) | (np.arange(table.shape[1]) == 2 * asked.length)
        tops = np.array([fmt.sign_bit for fmt in formats], dtype=np.uint64)
        return self._plain(np.where(zero, signs * tops, table))

    def _special(self, count: int, terms: int) -> Table:
        asked = self.asked
        table = self._middle(count, terms)
        length = asked.length
        for side, fmt in ((slice(0, length), asked.a), (slice(length, 2 * length), asked.b),
                          (slice(2 * length, 2 * length + 1), asked.c)):  # fmt: skip
            part = table[:, side]
            here = self.random.random(part.shape) < (0.8 / length if side.stop != 2 * length + 1 else 0.3)
            part[here] = self.random.choice(_specials(fmt), int(here.sum()))
        return self._plain(table)


def _specials(fmt: Format) -> Table:
    specials: Sequence[int] = (fmt.infinity, fmt.nan, fmt.largest, 0, fmt.largest)
    return np.array([x | sign for x in specials for sign in (0, fmt.sign_bit)], dtype=np.uint64)
