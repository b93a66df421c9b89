"""Rules of rewriting, one by one: what may stand for a node, and the lemmas about the datapath that this rests on.

Each rule is given the node and what is said to stand for it, and returns what it `Needs`; it raises FaultError if the
other node is not what the rule makes of the first. Lemmas are as a document has them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from tests.second.document import Document, largest_number, nan_as, operands_of
from tests.second.magnitudes import need, two
from tests.second.term_ranges import BLIND, Held, Known, Plain, Range, Scope, factors_of

Lemmas = list[dict[str, Any]]


@dataclass(frozen=True)
class Needs:
    """The lemmas of a replacement (`choices`: one of these lists); whether the two also count alike in an alignment,
    and whether zeros have the same signs."""

    choices: Sequence[Lemmas] = ([],)
    counting: bool = True
    signs: bool = True


@dataclass(frozen=True)
class Place:
    """A node, what stands for it, and where."""

    tree: Document
    known: Known
    scope: Scope
    at: int
    other: int

    @property
    def node(self) -> Plain:
        found: Plain = self.tree.nodes[self.at]
        return found

    @property
    def new(self) -> Plain:
        found: Plain = self.tree.nodes[self.other]
        return found

    def of(self, at: int, other: int) -> Place:
        return replace(self, at=at, other=other)

    def kind(self, *kinds: str) -> Plain:
        need(self.node["kind"] in kinds, f"it says nothing of a {self.node['kind']}")
        return self.node

    def changes(self, **fields: Any) -> None:
        """Check that the other node is this one with these fields."""
        need(self.new == {**self.node, **fields}, "what stands for the node is something else")

    def rounds(self, **fields: Any) -> None:
        """Check that the other node is this rounding with these parameters."""
        self.changes(rounding={**self.node["rounding"], **fields})

    def ranges(self, at: int) -> list[Range]:
        found = self.known.ranges(self.scope, at)
        need(found is not None, "it is not known which numbers a term can be")
        return list(found or ())

    def aligned(self) -> list[tuple[Range, int]]:
        found = self.known.aligned(self.scope, self.at)
        need(found is not None, "it is not known which numbers a term can be")
        return found or []

    def items(self) -> Sequence[int]:
        return self.known.items(self.at)


def unreached(place: Place) -> Needs:
    limit = place.kind("product")["limit"]
    need(limit is not None, "the product has no limit")
    place.changes(limit=None)
    return Needs([[_lemma("NeverReaches", one, limit=limit) for one in place.ranges(place.at)]])


def gated_zero(place: Place) -> Needs:
    what = place.kind("gate")
    if place.other != what["term"]:
        need(what["minus_zero"], "the zero is +0")
        place.changes(minus_zero=False)
        return Needs(signs=False)
    for factor in factors_of(place.tree.nodes[what["term"]]):
        formats = place.known.formats(place.scope, factor)
        need(formats is not None, "it is not known which numbers a factor can be")
        numbers = all(place.tree.formats[fmt]["specials"] in ("none", "unused") for fmt in formats or ())
        need(numbers, "a factor may be a NaN, or infinite")
    return Needs(signs=False)


def held_product(place: Place) -> Needs:
    what = place.kind("exact", "fused")
    items, others = what["items"], place.new.get("items", ())
    changed = [k for k, pair in enumerate(zip(items, others, strict=False)) if pair[0] != pair[1]]
    need(len(changed) == 1, "not one term changes")
    place.changes(items=[*items[: changed[0]], others[changed[0]], *items[changed[0] + 1 :]])
    (k,) = changed
    term = place.of(items[k], others[k])
    if term.node["kind"] == "each":
        term.changes(body=term.new["body"])
        term = place.of(term.node["body"], term.new["body"])
    how, fmt = term.kind("round")["rounding"], _format(place, term.at)
    exact = place.of(term.node["term"], term.other)
    need(exact.node["kind"] == "product", "the term is not a product")
    exact.changes(normalised=True)
    need(fmt["specials"] == "ieee" and nan_as(how, fmt) == "nan", "the format has no NaN, or no infinity")
    need(how["subnormals"] != "flush_before", "tiny products are flushed")
    lemmas = [_lemma("FormatHolds", one, target=target_of(how)) for one in place.ranges(exact.at)]
    return Needs([lemmas])


def normalised_in_vain(place: Place) -> Needs:
    need(place.kind("product")["normalised"], "the product is not normalised")
    place.changes(normalised=False)
    return Needs([[_lemma("Normalises", one) for one in place.ranges(place.other)]], counting=False)


def needless_floor(place: Place) -> Needs:
    what = place.kind("fused")
    name = "least" if what["zeros"] is None else "zeros"
    bound = what[name]
    need(bound is not None, "the sum has no floor")
    place.changes(**{name: None})
    low = [(one, bits) for one, bits in place.aligned() if one.low < bound]
    if low:
        free = what["carry_bits"] is None and not what["sticky"] and not any(far is not None for far in what["reach"])
        need(free, "something else depends on the largest exponent")
    mode = what["rounding"]
    lemmas = [_lemma("BoundKeeps", one, bits=bits, mode=mode, bound=bound) for one, bits in low]
    return Needs([lemmas], counting=not low)


def needless_carry(place: Place) -> Needs:
    what = place.kind("fused")
    carry, bits = what["carry_bits"], what["fraction_bits"]
    need(carry is not None and type(bits) is int, "the sum does not wrap, or not in one width")
    place.changes(carry_bits=None)
    more = Fraction(0) if what["rounding"] == "toward_zero" else two(-bits)
    most = sum(place.known.count(item) * (_head(place, item) + more) for item in what["items"])
    need(most < two(1 + carry), "the sum may wrap")
    return Needs([_losses(place)])


def _head(place: Place, at: int) -> Fraction:
    """The largest magnitude of a term, in units of the power of two at its exponent."""
    node = place.tree.nodes[at]
    if node["kind"] in ("each", "gate"):
        return _head(place, node["body" if node["kind"] == "each" else "term"])
    if node["kind"] == "product" and not node["normalised"]:
        return _head(place, node["left"]) * _head(place, node["right"])
    return max((one.most for one in place.ranges(at)), default=Fraction(0))


def _losses(place: Place) -> Lemmas:
    mode = place.node["rounding"]
    return [{"is": "AlignmentLoses", "width": one.width, "fraction": one.fraction, "bits": bits, "mode": mode}
            for one, bits in place.aligned()]  # fmt: skip


def plain_overflow(place: Place) -> Needs:
    how = place.kind("round")["rounding"]
    given = {"nearest_even": "infinity", "nearest_away": "infinity", "toward_zero": "saturate", "to_odd": "saturate"}
    need(how["overflow"] == "ieee" and how["mode"] in given, "its overflow depends on the sign, or is named")
    place.rounds(overflow=given[how["mode"]])
    return Needs([[_rounds_alike(place)]])


def unreached_overflow(place: Place) -> Needs:
    how = place.kind("round")["rounding"]
    own = {"nearest_even": "infinity", "nearest_away": "infinity", "toward_zero": "saturate", "to_odd": "saturate"}
    plain = own.get(how["mode"], "ieee")
    need(how["overflow"] not in ("ieee", plain), "its overflow is IEEE's")
    fmt, term = place.tree.formats[how["format"]], place.node["term"]
    top, emax = place.known.value(place.scope, term).top, largest_number(fmt)[0]
    if top is None or top > emax:
        need(how["mode"] in ("nearest_even", "nearest_away", "toward_zero"), "a number may be as large")
        need(fmt["specials"] != "complement", "a number may be as large")
        _adds_little(place, term, how["format"], Fraction(2) ** (emax - fmt["fraction"] - 1))
    place.rounds(overflow=plain)
    return Needs()


def _adds_little(place: Place, at: int, name: str, half: Fraction) -> None:
    """A sum is that of one number of a format and of others that are below `half`."""
    sizes: list[tuple[Fraction, bool]] = []
    for item in _terms(place, at):
        facts, count = place.known.value(place.scope, item), place.known.count(item)
        if not facts.zero:
            need(facts.largest is not None, "a number may be as large")
            sizes.append((count * (facts.largest or Fraction(0)), facts.formats == {name} and count == 1))
    numbers = [size for size, is_number in sizes if is_number]
    need(bool(numbers), "a number may be as large")
    need(sum((size for size, _ in sizes), -max(numbers)) < half, "a number may be as large")


def _rounds_alike(place: Place, fitting: bool = False) -> dict[str, Any]:
    left, right = (target_of(node["rounding"]) for node in (place.node, place.new))
    return {"is": "RoundsAlike", "left": left, "right": right, "fitting": fitting}


def no_sum_to_zero(place: Place) -> Needs:
    what = place.kind("round")
    how, term = what["rounding"], what["term"]
    need(how["zero"] == "positive", "not every zero result is +0")
    need(place.tree.nodes[term]["kind"] != "acc", "a loop may read it once")
    y = place.known.value(place.scope, term)
    need(place.known.reaches(how, y, how["subnormals"] != "keep"), "what is not zero may be rounded to zero")
    if y.adds:
        _plus(place)
        return Needs()
    place.changes(term=place.new.get("term", -1), rounding={**how, "zero": "exact_positive"})
    total = place.tree.nodes[place.new["term"]]
    _is_sum_of(place, total, [term])
    return Needs()


def _is_sum_of(place: Place, total: Plain, terms: Sequence[int]) -> None:
    """Check that a node is the exact sum of terms and +0."""
    need(total["kind"] == "exact", "what stands for the node is no exact sum")
    *items, last = total["items"]
    need(items == [*terms] and _is_plus_zero(place, last), "it is the sum of other terms")


def no_last_sum_to_zero(place: Place) -> Needs:
    what = place.kind("repeat")
    need(len(what["places"]) > 1, "the first step is the last")
    need(place.known.blind(what["body"]), "a step before may see the sign of a zero")
    place.changes(body=place.new["body"])
    y = place.known.value(place.scope, place.at)
    need(bool(y.formats), "it is not known which numbers the results so far are")
    held = Held(y.formats or frozenset(), None if y.zero else y.grid, y.plus, y.large)
    last = (*place.scope, (what["level"], held))
    return no_sum_to_zero(replace(place, scope=last, at=what["body"], other=place.new["body"]))


def fitting_sum(place: Place) -> Needs:
    how, fmt = place.kind("round")["rounding"], _format(place, place.at)
    total = place.of(place.node["term"], place.node["term"])
    what, bits = total.kind("fused"), total.node["fraction_bits"]
    need(how["subnormals"] == "keep" and (how["mode"] != "down" or how["zero"] != "ieee"), "zeros, or tiny results")
    need(how["mode"] != "toward_zero" and not what["sticky"] and type(bits) is int, "bits lie below the last place")
    place.rounds(mode="toward_zero")
    terms = [one for one, _ in total.aligned()]
    need(bool(terms), "the sum is zero")
    most = 0
    for item in what["items"]:
        whole = [one.width - one.fraction for one in place.ranges(item)]
        most += place.known.count(item) << max(whole) + bits if whole else 0
    if what["carry_bits"] is not None:
        most = min(most, 1 << bits + 1 + what["carry_bits"])
    bounds = [bound for bound in (what["zeros"], what["least"], *what["floors"]) if bound is not None]
    low, high = min(one.low for one in terms) - bits, max([one.high for one in terms] + bounds) - bits
    need(most <= 1 << fmt["fraction"] + 1, "the sum may have more bits than the format")
    inside = low >= place.tree.last(how["format"]) and high <= largest_number(fmt)[0]
    need(inside, "its last place may not be one of the format")
    return Needs([[*_losses(total), _rounds_alike(place, True)]])


def positive_term(place: Place) -> Needs:
    how = place.kind("round")["rounding"]
    _plus(place)
    need(how["zero"] == "ieee" and how["mode"] != "down", "zeros have signs")
    y = place.known.value(place.scope, place.node["term"])
    need(y.adds and y.positive, "all that is added may be -0, or the largest term cut to zero")
    return Needs()


def unread_sign(place: Place) -> Needs:
    need(place.kind("round")["rounding"]["zero"] != "exact_positive", "nothing changes")
    _plus(place)
    return Needs(signs=False)


def nested_sum(place: Place) -> Needs:
    place.kind("exact")
    need(place.new["kind"] == "exact", "what stands for the node is no exact sum")
    need(place.at != place.other, "nothing changes")
    one, other = (list(_summed(place.tree, at, ())) for at in (place.at, place.other))
    need(one == other, "it is the sum of other terms")
    return Needs()


def _summed(tree: Document, at: int, ranges: tuple[tuple[int, Sequence[int]], ...]) -> Iterator[tuple[Any, int]]:
    """What an exact sum adds: each term that is no exact sum itself, with the ranges that it is repeated over."""
    node = tree.nodes[at]
    if node["kind"] == "exact":
        for item in node["items"]:
            yield from _summed(tree, item, ranges)
    elif node["kind"] == "each":
        yield from _summed(tree, node["body"], (*ranges, (node["level"], node["places"])))
    else:
        yield ranges, at


def scaled_sum(place: Place) -> Needs:
    if place.kind("exact", "round")["kind"] == "round":
        place.changes(term=place.new.get("term"))
        _scaled(place, place.node["term"], place.new["term"])
        return Needs()
    items = place.node["items"]
    need(place.new["kind"] == "exact", "what stands for the node is no exact sum")
    need(len(items) == len(place.new["items"]) and place.at != place.other, "it is the sum of other terms")
    for one, other in zip(items, place.new["items"], strict=True):
        if one != other:
            _scaled(place, one, other)
    return Needs()


def _scaled(place: Place, at: int, other: int) -> None:
    """A term of the sum, and what stands for it: a scaled exact sum, and the exact sum of as many scaled terms."""
    one, new = place.tree.nodes[at], place.tree.nodes[other]
    if one["kind"] == new["kind"] == "each":
        need((one["level"], one["places"]) == (new["level"], new["places"]), "terms stand for other places")
        return _scaled(place, one["body"], new["body"])
    need((one["kind"], new["kind"]) == ("scale", "exact"), "no scaled sum became a sum of scaled terms")
    factors = one["left"], one["right"]
    for factor in factors:
        known = place.known.formats(place.scope, factor)
        need(bool(known), "nothing is known of a factor")
        for fmt in map(place.tree.formats.__getitem__, known or ()):
            need(not fmt["signed"] and fmt["specials"] not in ("ieee", "extended"),
                 "a factor may be infinite or negative")  # fmt: skip
    total = place.tree.nodes[one["term"]]
    need(total["kind"] == "exact" and len(total["items"]) == len(new["items"]), "another sum is scaled")
    for term, scaled in zip(total["items"], new["items"], strict=True):
        _each_scaled(place.tree, term, scaled, factors)
    return None


def _each_scaled(tree: Document, at: int, other: int, factors: tuple[int, int]) -> None:
    one, new = tree.nodes[at], tree.nodes[other]
    if one["kind"] == "each":
        need(new["kind"] == "each" and (one["level"], one["places"]) == (new["level"], new["places"]),
             "terms stand for other places")  # fmt: skip
        need(not any(one["level"] in tree.free(factor) for factor in factors), "a factor depends on the place")
        return _each_scaled(tree, one["body"], new["body"], factors)
    need(new["kind"] == "scale" and new["term"] == at, "another term is scaled")
    need((new["left"], new["right"]) == factors, "it is scaled by other factors")
    return None


def zero_added(place: Place) -> Needs:
    total = place.of(place.kind("round")["term"], place.new.get("term", -1))
    items = total.kind("exact")["items"]
    kept = [item for item in items if place.tree.nodes[item]["kind"] != "zero"]
    need(bool(kept) and len(kept) < len(items), "no zero is added, or nothing else")
    place.changes(term=total.other)
    total.changes(items=kept)
    return Needs(signs=plus_for_zeros(place.known, place.at) and plus_for_zeros(place.known, place.other))


def single_term(place: Place) -> Needs:
    total = place.of(place.kind("round")["term"], -1)
    items = total.kind("exact")["items"]
    need(len(items) == 1 and place.tree.nodes[items[0]]["kind"] != "each", "it is a sum of several terms")
    place.changes(term=items[0])
    return Needs()


def rounded_again(place: Place) -> Needs:
    what, how = place.kind("round"), place.node["rounding"]
    need(place.other == what["term"], "what stands for the node is something else")
    need(place.tree.nodes[what["term"]]["kind"] in ("round", "repeat", "acc"), "it is not rounded before")
    y = place.known.value(place.scope, what["term"])
    need(y.formats == frozenset({how["format"]}), "it is not a number of the format")
    need(place.known.kept(how, y), "a NaN or a tiny number becomes another number")
    return Needs(signs=how["zero"] != "positive" or y.plus)


def _terms(place: Place, at: int) -> list[int]:
    """What a node is the exact sum of."""
    node = place.tree.nodes[at]
    return [*node["items"]] if node["kind"] == "exact" else [at]


def zero_after(place: Place) -> Needs:
    how, items = place.kind("round")["rounding"], _terms(place, place.node["term"])
    rest = [item for item in items if not _is_plus_zero(place, item)]
    need(len(rest) == 1 < len(items), "+0 is not all that is added to a term")
    inner = place.tree.nodes[rest[0]]
    need(inner["kind"] == "round", "the term is not rounded before")
    first = inner["rounding"]
    same = (how["format"], how["nan"]) == (first["format"], first["nan"])
    need(same and (how["mode"] != "down" or how["zero"] != "ieee"), "another NaN, or another zero")
    need(place.known.kept(how, place.known.value(place.scope, rest[0])), "it is changed again")
    y = place.known.value(place.scope, inner["term"])
    need(place.known.reaches(first, y, first["subnormals"] != "keep"), "what is not zero may be rounded to zero")
    plus = {**first, "zero": "exact_positive"}
    need(place.new["kind"] == "round" and place.new["rounding"] == plus, "what stands for the node is something else")
    _is_sum_of(place, place.tree.nodes[place.new["term"]], _terms(place, inner["term"]))
    return Needs()


def rounded_in_vain(place: Place) -> Needs:
    how = place.kind("round")["rounding"]
    if place.tree.nodes[place.node["term"]]["kind"] == "round":
        first = place.tree.nodes[place.node["term"]]
        need(how["zero"] == "positive" or first["rounding"]["zero"] != "positive", "its zeros are +0")
        _is_needless(place, first)
        _without_first(place)
        return Needs()
    items, others = (_terms(place, node.get("term", -1)) for node in (place.node, place.new))
    need(len(items) > 1, "a term alone is not rounded before")
    place.changes(term=place.new["term"])
    at = next((k for k, pair in enumerate(zip(items, others, strict=False)) if pair[0] != pair[1]), len(items) - 1)
    inner = place.tree.nodes[items[at]]
    need(inner["kind"] == "round", "the term is not rounded before")
    _is_needless(place, inner)
    need(others == items[:at] + _terms(place, inner["term"]) + items[at + 1 :], "it is the sum of other terms")
    first, one = inner["rounding"], _is_number(place, inner["term"])
    one = one or place.tree.nodes[inner["term"]]["kind"] == "product"
    alike = first["zero"] == "ieee" and (first["mode"] == "down") is (how["mode"] == "down")
    read = how["zero"] != "positive" and not plus_for_zeros(place.known, place.at)
    return Needs(signs=not read or alike or (one and first["zero"] != "positive"))


def _is_number(place: Place, at: int) -> bool:
    """Whether a value is one number, and no sum."""
    node = place.tree.nodes[at]
    return node["kind"] in ("element", "zero", "number", "round") or (
        node["kind"] == "repeat" and _is_number(place, node["body"]))  # fmt: skip


def _is_needless(place: Place, inner: Plain) -> None:
    """Check that a rounding changes nothing that it gets, and what that is."""
    term = inner["term"]
    node = place.tree.nodes[term]
    need(node["kind"] in BLIND, "a sign may be another than that of what was added")
    need(node["kind"] != "exact" or place.known.adds(term), "it is a sum of one term")
    y = place.known.value(place.scope, term)
    need(place.known.kept(inner["rounding"], y), "the first rounding changes numbers")


def product_of_zeros(place: Place) -> Needs:
    what = place.kind("product")
    factors = [place.tree.nodes[what[side]] for side in ("left", "right")]
    need(all(one["kind"] == "zero" for one in factors), "a factor is not zero")
    minus = factors[0]["negative"] is not factors[1]["negative"]
    need(place.new == {"kind": "zero", "negative": minus}, "what stands for the node is something else")
    return Needs()


def input_read(place: Place) -> Needs:
    how = place.kind("round")["rounding"]
    one, fmt = place.tree.nodes[place.node["term"]], _format(place, place.at)
    need(one["kind"] == "element" and how["zero"] == "positive", "it is no input, or a zero has its sign")
    own = place.tree.unit[one["operand"].split("_")[0]] == how["format"]
    named = nan_as(how, fmt) == "nan" or fmt["specials"] in ("none", "unused")
    need(own and fmt["subnormals"] and named, "it may be another number")
    tiny = "keep" if how["subnormals"] == "keep" == one["subnormals"] else "positive_zero"
    need(place.new == {**one, "subnormals": tiny, "positive_zeros": True}, "what stands for the node is something else")
    return Needs()


def read_once(place: Place) -> Needs:
    what = place.kind("repeat")
    start, body = (place.new.get(name, -1) for name in ("start", "body"))
    place.changes(start=start, body=body)
    reading = place.tree.nodes[start]
    need(reading["kind"] == "round" and reading["term"] == what["start"], "the start is not rounded")
    how = reading["rounding"]
    need(_reads(place, what["body"], body, what["level"], how), "another node reads the result so far")
    named = Held(frozenset({how["format"]}), None, how["zero"] == "positive", how["subnormals"] != "keep")
    fmt = place.tree.formats[how["format"]]
    need(nan_as(how, fmt) != "number", "a number is written for a NaN")
    y = place.known.value((*place.scope, (what["level"], named)), body)
    need(y.formats == frozenset({how["format"]}) and place.known.kept(how, y), "a result is changed where it is read")
    need(how["zero"] != "positive" or y.plus, "a result may be -0")
    return Needs()


def _reads(place: Place, at: int, other: int, level: int, how: Plain) -> bool:
    """Whether a node is another one in which every result so far is rounded, and is read nowhere else."""
    node, new = place.tree.nodes[at], place.tree.nodes[other]
    if node["kind"] == "acc" and node["level"] == level:
        return False
    if node["kind"] == "round" and _is_running(place, node["term"], level):
        return node["rounding"] == how and _is_running(place, other, level)
    below, under = operands_of(node), operands_of(new)
    names = ("left", "right", "term", "start", "body", "items")
    rest = [{name: value for name, value in one.items() if name not in names} for one in (node, new)]
    return rest[0] == rest[1] and len(below) == len(under) and all(
        _reads(place, one, two, level, how) for one, two in zip(below, under, strict=True))  # fmt: skip


def rectified(place: Place) -> Needs:
    what = place.kind("relu")
    need((what["nan"], what["zero"]) == ("keep", "positive"), "it is another rectifier")
    first = place.tree.nodes[what["term"]]
    need(first["kind"] == "round", "it is not rounded before")
    how, fmt = first["rounding"], place.tree.formats[first["rounding"]["format"]]
    whole = fmt["specials"] in ("ieee", "extended") and fmt["signed"] and fmt["subnormals"]
    need(whole and nan_as(how, fmt) == "nan", "the format lacks a sign, zero, infinities or NaNs")
    inner = place.tree.nodes[first["term"]]
    again = inner["kind"] == "relu" and inner["zero"] == "positive"
    need(place.new == {**first, "term": place.new.get("term")}, "what stands for the node is something else")
    inside = place.tree.nodes[place.new["term"]]
    need(inside == (inner if again else {**what, "term": first["term"]}), "something else is rectified")
    return Needs()


def lossless_sum(place: Place) -> Needs:
    what = place.kind("fused")
    need(not what["sticky"] and what["carry_bits"] is None, "it wraps, or has a sticky bit")
    need(all(far is None for far in what["reach"]), "a term may vanish")
    need(sum(map(place.known.count, what["items"])) > 1, "it is one term")
    terms = place.aligned()
    bounds = [bound for bound in (what["zeros"], what["least"], *what["floors"]) if bound is not None]
    need(bool(terms), "it is a sum of zeros")
    most = max([one.high for one, _ in terms] + bounds)
    need(all(one.unit >= most - bits for one, bits in terms), "a term may lose bits")
    need(place.new == {"kind": "exact", "items": what["items"]}, "what stands for the node is something else")
    return Needs([_losses(place)], counting=False)


def lossless_sorted(place: Place) -> Needs:
    what = place.kind("sorted")
    ranges = [one for item in what["items"] for one in place.ranges(item)]
    need(bool(ranges), "it is a sum of zeros")
    places = [(one.high + (one.width - one.fraction) - 1, one.unit) for one in ranges]
    span = max(top for top, _ in places) - min(unit for _, unit in places)
    need(span <= min(what["fraction_bits"]), "a term may lose bits")
    need(place.new == {"kind": "exact", "items": what["items"]}, "what stands for the node is something else")
    return Needs(counting=False)


def _without_first(place: Place) -> tuple[Plain, Plain]:
    """A rounding of a rounded number and that before it, where the first one is left out."""
    what = place.kind("round")
    inner = place.tree.nodes[what["term"]]
    need(inner["kind"] == "round", "it is not rounded before")
    how, first = what["rounding"], inner["rounding"]
    need(nan_as(first, place.tree.formats[first["format"]]) == "nan", "a NaN becomes a number")
    zero = "positive" if how["zero"] == "positive" else first["zero"]
    need(zero != "ieee" or (how["mode"] == "down") is (first["mode"] == "down"), "a zero sum has another sign")
    place.changes(term=inner["term"], rounding={**how, "zero": zero})
    return how, first


def rounded_twice(place: Place) -> Needs:
    how, first = _without_first(place)
    need("flush_before" not in (how["subnormals"], first["subnormals"]), "tiny numbers are flushed")
    fmt, own = (place.tree.formats[one["format"]] for one in (first, how))
    need(fmt["specials"] in ("ieee", "extended"), "there are no infinities between")
    odd = first["mode"] == "to_odd" and fmt["fraction"] >= own["fraction"] + 2
    alike = first["mode"] == how["mode"] and how["mode"] not in ("nearest_even", "nearest_away")
    need(odd or (alike and fmt["fraction"] >= own["fraction"]), "nothing says that once is enough")
    targets = [target_of(one) for one in (first, how, place.new["rounding"])]
    twice = {"is": "RoundsTwice", **dict(zip(("first", "then", "once"), targets, strict=True))}
    scaled = ({"is": "RoundingScales", "target": target, "bits": 0} for target in (targets[0], targets[2]))
    return Needs([[twice, *scaled]])


def neutral_zero_added(place: Place) -> Needs:
    how, total = place.kind("round")["rounding"], place.of(place.node["term"], place.new.get("term", -1))
    items = total.kind("exact")["items"]
    neutral = {"kind": "zero", "negative": how["mode"] != "down"}
    kept = [item for item in items if place.tree.nodes[item] != neutral]
    need(0 < len(kept) < len(items), "no zero that is neutral is added")
    place.changes(term=total.other)
    total.changes(items=kept)
    return Needs(signs=how["zero"] != "exact_positive" or sum(map(place.known.count, kept)) > 1)


def first_step(place: Place) -> Needs:
    what = place.kind("repeat")
    body, places = what["body"], what["places"]
    need(plus_for_zeros(place.known, body), "the first step may see the sign of a zero")
    loops = any(place.tree.nodes[one]["kind"] in ("repeat", "each") for one in place.tree.below(body))
    need(not loops, "there is a loop in the loop")
    first = place.other
    if len(places) > 1:
        place.changes(places=places[1:], start=place.new.get("start"))
        first = place.new["start"]
    need(_is_step(place.tree, first, body, what["level"], places[0], what["start"]), "that is not its first step")
    return Needs()


def _is_step(tree: Document, at: int, body: int, level: int, where: int, start: int) -> bool:
    """Whether a node is the body of a loop at a place, with `start` for the result so far."""
    node, own = tree.nodes[at], tree.nodes[body]
    if own["kind"] == "acc" and own["level"] == level:
        return at == start
    names = ("left", "right", "term")
    if {name: value for name, value in node.items() if name not in (*names, "items", "index")} != {
        name: value for name, value in own.items() if name not in (*names, "items", "index")
    }:
        return False
    if "index" in own and node["index"] != _index_at(own["index"], level, where):
        return False
    pairs = [(node.get(name), own[name]) for name in names if name in own]
    if len(node.get("items", ())) != len(own.get("items", ())):
        return False
    pairs += zip(node.get("items", ()), own.get("items", ()), strict=True)
    return all(one is not None and _is_step(tree, one, other, level, where, start) for one, other in pairs)


def _index_at(index: Mapping[str, Any] | None, level: int, where: int) -> Mapping[str, Any] | None:
    if index is None:
        return None
    moved = sum(step * where for own, step in index["factors"] if own == level)
    return {"offset": index["offset"] + moved, "factors": [x for x in index["factors"] if x[0] != level]}


# -- what rules have in common


def _lemma(kind: str, one: Range, **parts: Any) -> dict[str, Any]:
    return {"is": kind, "range": one.document, **parts}


def target_of(how: Plain) -> dict[str, Any]:
    return {"format": how["format"], "rounding": how["mode"], "overflow": how["overflow"],
            "flush": how["subnormals"] == "flush_after", "positive_zero": how["zero"] == "positive"}  # fmt: skip


def plus_for_zeros(known: Known, at: int) -> bool:
    """Whether the sign of a zero result does not depend on the signs of zero operands."""
    node = known.tree.nodes[at]
    if node["kind"] != "round" or node["rounding"]["zero"] == "ieee":
        return False
    exact = known.tree.nodes[node["term"]]["kind"] == "exact"
    return node["rounding"]["zero"] == "positive" or (exact and known.adds(node["term"]))


def _plus(place: Place) -> None:
    """Check that the other node is this rounding with +0 for exact zero sums."""
    place.kind("round")
    place.rounds(zero="exact_positive")


def _format(place: Place, at: int) -> Plain:
    found: Plain = place.tree.formats[place.tree.nodes[at]["rounding"]["format"]]
    return found


def _is_plus_zero(place: Place, at: int) -> bool:
    return bool(place.tree.nodes[at] == {"kind": "zero", "negative": False})


def _is_running(place: Place, at: int, level: int) -> bool:
    return bool(place.tree.nodes[at] == {"kind": "acc", "level": level})


#: by the name that a derivation gives to each
REWRITES: dict[str, Callable[[Place], Needs]] = {
    "product limit never reached": unreached,
    "gated products whose zeros have any sign": gated_zero,
    "products held by the format that they are rounded to": held_product,
    "products that an exact sum normalises in vain": normalised_in_vain,
    "floor below every term": needless_floor,
    "carry bits that no sum needs": needless_carry,
    "fused sum that loses nothing": lossless_sum,
    "sorted sum that loses nothing": lossless_sorted,
    "overflow as the rounding has it": plain_overflow,
    "overflow that no number reaches": unreached_overflow,
    "no sum rounded to zero": no_sum_to_zero,
    "no last sum of a loop rounded to zero": no_last_sum_to_zero,
    "sum that fits the result": fitting_sum,
    "a term that is never -0": positive_term,
    "sign of a zero that nothing reads": unread_sign,
    "exact sum in an exact sum": nested_sum,
    "scaled exact sum in an exact sum": scaled_sum,
    "zero added": zero_added,
    "sum of one term": single_term,
    "number of the format, rounded again": rounded_again,
    "rounding that the next one makes needless": rounded_twice,
    "rounding that the number needs not": rounded_in_vain,
    "neutral zero added": neutral_zero_added,
    "first step of a loop": first_step,
    "number of the format and +0, rounded again": zero_after,
    "product of zeros": product_of_zeros,
    "input read as its own format is rounded": input_read,
    "results so far that are read as they are": read_once,
    "rectified before it is rounded": rectified,
}
