"""Rules about one node: the facts about its value follow from those of its operands, and from lemmas about its
datapath."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import count
from typing import Any

from tests.second.document import (
    ANY,
    LOSSES,
    Document,
    conclude,
    largest_number,
    need_lemmas,
    need_nothing,
    random_bits,
    range_of,
    up_to,
)
from tests.second.goals import CHAIN, Condition, Facts, Goal, frozen
from tests.second.magnitudes import (
    ONE,
    Form,
    Monomial,
    Range,
    add,
    at_most,
    end_of,
    most,
    need,
    plain,
    rounded_at_most,
    single,
    times,
    two,
)


def element(tree: Document, goal: Goal, premises: Sequence[int], _: Any) -> None:
    what = tree.node(goal, "element")
    need_nothing(goal, premises)
    name = what["operand"]
    fmt = tree.unit["scale" if name.startswith("scale") else name]
    need(fmt is not None, "the unit has no such operand")
    index, places = what["index"] or {"offset": 0, "factors": []}, dict(goal.places)
    offset = index["offset"] + sum(step * places[level] for level, step in index["factors"] if level in places)
    rest = tuple((level, step) for level, step in index["factors"] if level not in places)
    facts = tree.read(name, single(name, offset, rest))
    windowed = name in dict(tree.unit.get("windows", ()))
    kept = tree.formats[fmt]["subnormals"] and what["subnormals"] == "keep" and not windowed
    conclude(goal, replace(facts, weight=single(name, offset, rest, kept)))


def segment(tree: Document, goal: Goal, premises: Sequence[int], _: Any) -> None:
    term = tree.node(goal, "segment")["term"]
    (facts,) = tree.about(goal, premises, [(term, tree.bound(term, goal.places))])
    need(not facts.low and not facts.high, "of a number that is not exact")
    conclude(goal, replace(facts, formats=None))


def constant(tree: Document, goal: Goal, premises: Sequence[int], _: Any) -> None:
    tree.node(goal, "zero")
    need_nothing(goal, premises)
    conclude(goal, tree.numbers(frozenset(), {}, {}, {}))


def literal(tree: Document, goal: Goal, premises: Sequence[int], _: Any) -> None:
    what = tree.node(goal, "number")
    need_nothing(goal, premises)
    conclude(goal, number_of(tree, what))


def number_of(tree: Document, what: Mapping[str, Any]) -> Facts:
    """The facts about a fixed number."""
    fmt = what["format"]
    value = finite(what["pattern"], tree.formats[fmt])
    minus = what["pattern"] >> sum(tree.formats[fmt][part] for part in ("exponent", "fraction", "padding"))
    if not value:
        return tree.numbers(frozenset(), {}, {}, {})
    top = next(k for k in count(-2000) if two(k) > value)
    grid = next(k for k in count(top, -1) if (value / two(k)).denominator == 1)
    facts = tree.numbers(frozenset({fmt}), {}, {}, plain(value), grid)
    exponent = max(top - 1, tree.emin(fmt))
    return replace(facts, least=exponent, most=exponent, head=value / two(exponent), digits=exponent - grid,
                   grid=grid, bits=top - grid, interval=(-value * minus, value * (1 - minus)))  # fmt: skip


def finite(pattern: int, fmt: Mapping[str, Any]) -> Fraction:
    """The magnitude that a pattern of a format represents. Raises FaultError if it is not finite."""
    fraction, width = int(fmt["fraction"]), int(fmt["exponent"])
    bits = pattern >> int(fmt["padding"])
    field, digits = bits >> fraction & ((1 << width) - 1), bits & ((1 << fraction) - 1)
    need(fmt["specials"] == "ieee" and field != (1 << width) - 1, "it is not a number of a format as those of IEEE 754")
    least = field == 0 and fmt["subnormals"]
    whole = digits if least else digits | 1 << fraction
    return whole * two(max(field, 1 if fmt["subnormals"] else 0) - int(fmt["bias"]) - fraction)


def assumed(tree: Document, goal: Goal, premises: Sequence[int], _: Any) -> None:
    what = tree.nodes[goal.node]
    alone = not premises and not goal.provided and not goal.places
    need(alone and len(goal.assuming) == 1, "it assumes one thing and rests on nothing")
    ((level, formats),) = goal.assuming
    lost, flushed = Form(), False
    if what["kind"] == "acc":
        need(level == what["level"] and level != CHAIN, "it is about the result so far of another loop")
    else:
        need(what["kind"] == "element" and what["operand"] == "c" and level == CHAIN, "that cannot be assumed")
        need(formats <= {tree.unit["c"]}, "the addend is a number of its own format")
        if formats and what["subnormals"] != "keep":
            lost, flushed = plain(two(tree.emin(tree.unit["c"]))), True
    if not formats:  # it is zero
        return conclude(goal, tree.numbers(formats, {}, {}, {}))
    error = add(single("error", level), lost)
    conclude(goal, tree.numbers(formats, error, error, single("size", level), flushed=flushed))


def product_of(every: Sequence[Facts]) -> Facts:
    def joined(name: str, how: Callable[[Any, Any], Any], one: Facts, other: Facts) -> Any:
        pair = getattr(one, name), getattr(other, name)
        return None if None in pair else how(*pair)

    so_far = every[0]
    for facts in every[1:]:
        error = add(times(so_far.size, facts.error), times(facts.size, so_far.error), times(so_far.error, facts.error))
        names = ("least", "most", "digits", "grid", "bits")
        sums = {name: joined(name, lambda x, y: x + y, so_far, facts) for name in names}
        so_far = Facts(error, error, times(so_far.size, facts.size), joined("weight", times, so_far, facts),
                       head=joined("head", lambda x, y: x * y, so_far, facts),
                       interval=joined("interval", _multiplied, so_far, facts), **sums)  # fmt: skip
    return so_far


def _multiplied(one: Range, other: Range) -> Range:
    """What numbers of two intervals multiply to, in each of which is 0."""
    return min(one[0] * other[1], one[1] * other[0]), max(one[0] * other[0], one[1] * other[1])


def without_overflow(goal: Goal, below: int, y: Facts) -> Condition:
    """That a number with the facts `y` does not reach 2^below at the node of a goal."""
    return Condition(goal.node, goal.places, below, frozen(y.value))


def product(tree: Document, goal: Goal, premises: Sequence[int], _: Any) -> None:
    what = tree.node(goal, "product")
    sides = [(side, tree.bound(side, goal.places)) for side in (what["left"], what["right"])]
    limit = what["limit"]
    overflows = None if limit is None else lambda every: without_overflow(goal, limit, product_of(every))
    every = tree.about(goal, premises, sides, overflows)
    facts = product_of(every)
    if what["normalised"]:
        small = facts.head is not None and facts.head < 4
        need(small or all(one.formats is not None for one in every), "a factor may be too large beside its exponent")
        digits = None if facts.digits is None else facts.digits + 1
        head = 2 - (Fraction(0) if digits is None else two(-digits))
        top = None if facts.top is None else facts.top - 1
        facts = replace(facts, weight=facts.value, least=facts.grid, most=top, head=head, digits=digits)
    conclude(goal, facts)


def unchanged(tree: Document, goal: Goal, premises: Sequence[int], _: Any) -> None:
    term = tree.node(goal, "gate", "cancelling", "relu")["term"]
    (facts,) = tree.about(goal, premises, [(term, tree.bound(term, goal.places))])
    if tree.nodes[goal.node]["kind"] == "relu" and facts.interval is not None:
        facts = replace(facts, interval=(Fraction(0), facts.interval[1]))
    conclude(goal, facts)


def scale(tree: Document, goal: Goal, premises: Sequence[int], _: Any) -> None:
    what = tree.node(goal, "scale")
    parts = [(part, tree.bound(part, goal.places)) for part in (what["term"], what["left"], what["right"])]
    conclude(goal, product_of(tree.about(goal, premises, parts)))


def grid_of(every: Sequence[Facts]) -> int | None:
    """The g of 2^g, of which a sum of these terms is a multiple; None if it is not known."""
    found = [facts.grid for facts in every if not facts.nothing]
    return None if None in found else min((grid for grid in found if grid is not None), default=ANY)


def exact(tree: Document, goal: Goal, premises: Sequence[int], _: Any) -> None:
    what = tree.node(goal, "exact")
    every = tree.about(goal, premises, [term[:2] for term in tree.terms(what["items"], goal.places)])
    conclude(goal, sum_of(every, _left(tree, what["items"], every)))


def _left(tree: Document, items: Sequence[int], every: Sequence[Facts]) -> Range | None:
    """The interval of a number less what it is rounded to; None for other sums."""
    own = every[0].interval
    if len(items) != 2 or tree.nodes[items[1]]["kind"] != "product" or own is None:
        return None
    minus, kept = (tree.nodes[tree.nodes[items[1]][side]] for side in ("left", "right"))
    if minus["kind"] != "number" or kept["kind"] != "round" or kept["term"] != items[0]:
        return None
    one = tree.formats[minus["format"]]
    if minus["pattern"] != ((1 << one["exponent"]) + one["bias"]) << one["fraction"] or one["bias"] >> one["exponent"]:
        return None  # no -1
    number, how = max(-own[0], own[1]), kept["rounding"]
    fmt = tree.formats[how["format"]]
    if not fmt["subnormals"]:
        return None
    integers = fmt["exponent"] == 1 and fmt["bias"] == 1 - fmt["fraction"] and (
        fmt["specials"] == ("complement" if fmt["signed"] else "none"))  # fmt: skip
    least, most = range_of(fmt)
    if integers and how["mode"] == "toward_zero" and least <= int(own[0]) and int(own[1]) <= most:
        finest = [min(0, place) for place in (every[0].grid, None if every[0].bits is None else -every[0].bits)
                  if place is not None]  # fmt: skip
        return up_to(own, 1 - two(max(finest)) if finest else Fraction(1))
    tiny = tree.last(how["format"]) if how["subnormals"] == "keep" else tree.emin(how["format"])
    left = max(number * two(-int(fmt["fraction"])), two(tiny), number - most)
    return -left, left


def sum_of(every: Sequence[Facts], left: Range | None = None) -> Facts:
    """The facts about the exact sum of terms."""
    sums = [add(*(getattr(facts, name) for facts in every)) for name in ("low", "high", "size")]
    others = [facts for facts in every if not facts.nothing]  # a sum of one number and zeros has its bits
    bits = others[0].bits if len(others) == 1 else None
    own, ranges = grid_of(every), [facts.interval for facts in every]
    found = Facts(sums[0], sums[1], sums[2], plain(1), 0, grid=own, bits=bits, most=0)
    if None not in ranges:
        found = replace(found, interval=_added(ranges, Fraction(0)))
        if left is not None and found.interval is not None:
            found = replace(found, interval=(max(left[0], found.interval[0]), min(left[1], found.interval[1])))
        top = found.top
        if own is not None and top is not None and own <= top:
            found = replace(found, head=two(top) - two(own), digits=-own, bits=min(top - own, bits or top - own))
    return found


def _added(ranges: Sequence[Range | None], more: Fraction) -> Range:
    """The interval of a sum of numbers of intervals, each of which is known, and of something up to `more`."""
    known = [one for one in ranges if one is not None]
    return sum((low for low, _ in known), -more), sum((high for _, high in known), more)


def _at_most(every: Sequence[Facts], more: Fraction | None, head: Fraction | None, end: int | None) -> Range | None:
    """The interval of a sum: of its terms with what aligning adds to them, and of head * 2^end."""
    ranges = [facts.interval for facts in every]
    own = None if None in ranges or more is None else _added(ranges, more)
    whole = None if head is None or end is None else head * two(end)
    if own is None:
        return None if whole is None else (-whole, whole)
    return own if whole is None else up_to(own, whole)


@dataclass(frozen=True)
class Term:
    """A term of a fused sum that may be nonzero, the number of its bits that are kept, and its reach."""

    facts: Facts
    bits: int
    reach: int | None

    def loses(self, part: Fraction) -> Fraction:
        """A bound of the term's loss, in units of 2^m; `part`: what a term within reach loses, in units of its last
        place."""
        if self.reach is None:
            return part * two(-self.bits)
        need(self.facts.head is not None and self.reach >= 0, "nothing is known of the size of a term that vanishes")
        return max(part * two(-self.bits), (self.facts.head or 0) * two(-self.reach - 1))

    def lemma(self, mode: str) -> dict[str, Any] | None:
        """The lemma about the datapath's alignment of the term; None if none is needed."""
        digits, head = self.facts.digits, self.facts.head
        if None in (digits, head, self.facts.bits) or digits is None or head is None:
            return None
        above = next(places for places in count() if head < two(places))
        return {"width": digits + above, "fraction": digits, "bits": self.bits, "mode": mode}

    def aligned(self, mode: str) -> Fraction:
        """The most that it is in units of 2^m once it is aligned, if its head is known: its head rounded to the bits
        that are kept, as no smaller number becomes a larger one."""
        return at_most(self.facts.head or Fraction(0), -self.bits, mode)


def fused(tree: Document, goal: Goal, premises: Sequence[int], _: Any) -> None:
    what = tree.node(goal, "fused")
    places = list(tree.terms(what["items"], goal.places))
    every = tree.about(goal, premises[: len(places)], [term[:2] for term in places])
    keeps, reaches = what["fraction_bits"], what["reach"] or [None] * len(what["items"])
    keeps = keeps if isinstance(keeps, list) else [keeps] * len(what["items"])
    terms = [Term(facts, keeps[at], reaches[at]) for facts, (_, _, at) in zip(every, places, strict=True)
             if not facts.nothing]  # fmt: skip
    mode, finest, sticky = what["rounding"], max(keeps), bool(what["sticky"])
    need_lemmas(tree, premises[len(places) :], "AlignmentLoses", [term.lemma(mode) for term in terms])
    if not terms:
        return conclude(goal, tree.numbers(frozenset(), {}, {}, {}))
    some = [term.facts for term in terms]
    known = all(term.facts.head is not None for term in terms)
    room = sum(term.aligned(mode) for term in terms)
    if what["carry_bits"] is not None:
        need(known and room < two(1 + what["carry_bits"]), "the sum may wrap")
    need(all(facts.weight is not None for facts in some), "the exponent of a term is not known")
    m = _largest([facts.weight for facts in some if facts.weight is not None])
    bounds = [bound for bound in (what["zeros"], what["least"], *what["floors"]) if bound is not None
              and any(facts.least is None or facts.least < bound for facts in some)]  # fmt: skip
    stuck = two(-finest - 1) if sticky else Fraction(0)
    spare = all(term.facts.digits is not None and term.facts.digits <= term.bits for term in terms)
    sides = []
    for side in (0, 1):
        lost = [term.loses(LOSSES[mode][side]) for term in terms]
        own = sum(lost) - (min(lost) if spare else 0) + stuck
        fixed = [two(bound) * (stuck + sum(one for one, term in zip(lost, terms, strict=True) if not (
            term.reach is None and term.facts.grid is not None and term.facts.grid >= bound - term.bits)))
            for bound in bounds]  # fmt: skip
        sides.append(add(times(m, Fraction(own)), plain(max(fixed, default=0))))
    leasts = [facts.least for facts in some if facts.least is not None]
    ends = [facts.most for facts in some]
    floors = [bound for bound in (what["zeros"], what["least"], *what["floors"]) if bound is not None]
    end = None if None in ends else max([one for one in ends if one is not None] + floors)
    head = room + two(-finest) if known else None
    each = [keeps[at] for _, _, at in places] if mode != "toward_zero" else []
    more = sum(map(two, [-bits for bits in ([finest] if sticky else each)]), Fraction(0))
    lows = [bound for bound in (what["least"], *what["floors"]) if bound is not None]  # of m, where a term is not zero
    if len(leasts) == len(some):
        lows += [min(leasts), min(leasts if what["zeros"] is None else [what["zeros"], max(leasts)])]
    places_kept = [[term.facts.grid, *([max(lows) - term.bits] if lows else [])] for term in terms]
    grids = [max(own) for one in places_kept if (own := [grid for grid in one if grid is not None])]
    conclude(goal, Facts(
        add(*(f.low for f in some), sides[0]), add(*(f.high for f in some), sides[1]), add(*(f.size for f in some)),
        add(m, plain(max(map(two, bounds), default=0))), min(leasts) if len(leasts) == len(some) else None,
        head, finest + sticky, None if sticky or len(grids) < len(some) else min(grids), most=end,
        interval=_at_most(every, None if end is None else more * two(end), head, end),
    ))  # fmt: skip
    return None


def grid(tree: Document, goal: Goal, premises: Sequence[int], _: Any) -> None:
    what = tree.node(goal, "grid")
    places = list(tree.terms(what["items"], goal.places))
    every = tree.about(goal, premises, [term[:2] for term in places])
    if all(facts.nothing for facts in every):
        return conclude(goal, tree.numbers(frozenset(), {}, {}, {}))
    own = [what["fraction_bits"][at] for _, _, at in places]
    reach = [(what["reach"] or [None] * len(what["items"]))[at] for _, _, at in places]
    floors = [low - bits for low, bits in zip(what["floors"], what["fraction_bits"], strict=False) if low is not None]
    opposes = [what["frame"] is not None and at != what["frame"] for _, _, at in places]
    some = [(facts, bits) for facts, bits in zip(every, own, strict=True) if not facts.nothing]
    need(all(facts.weight is not None for facts, _ in some), "the exponent of a term is not known")
    fewest, finest = min(what["fraction_bits"]), max(what["fraction_bits"])
    m = _largest([times(facts.weight, two(fewest - bits)) for facts, bits in some if facts.weight is not None])
    unit = add(times(m, two(-fewest)), plain(max(map(two, floors), default=Fraction(0))))
    whole = all(facts.digits is not None and facts.digits <= bits for facts, bits in some)
    spare = whole and not floors and not any(opposes)
    sides = []
    for part in LOSSES[what["rounding"]]:
        lost = []
        for facts, far, other in zip(every, reach, opposes, strict=True):
            one = Fraction(0) if facts.nothing else Fraction(part)
            if far is not None and not facts.nothing:
                need(facts.head is not None, "nothing is known of the size of a term that vanishes")
                one = max(one, (facts.head or 0) * two(-far - 1))
            if other:
                one = Fraction(1) if what["rounding"] == "toward_zero" and far is None else one + 1
            lost.append(one)
        sides.append(times(unit, sum(lost, Fraction(0)) - (min(lost) if spare else 0)))
    leasts = [facts.least - bits for facts, bits in some if facts.least is not None]
    heads = [facts.head * two(bits - finest) for facts, bits in some if facts.head is not None]
    ends = [facts.most - bits for facts, bits in some if facts.most is not None]
    end = max(ends + floors) + finest if len(ends) == len(some) else None
    head = sum(heads) + 2 * len(every) * two(-finest) if len(heads) == len(some) else None
    units = len(every) * ((what["rounding"] != "toward_zero") + (what["frame"] is not None))
    more = None if end is None else units * two(end - finest)
    grid, place = grid_of(every), max([min(leasts), *floors]) if len(leasts) == len(some) else None
    if what["frame"] is not None:
        grid = None if grid is None or place is None else min(grid, place)
    conclude(goal, Facts(
        add(*(f.low for f in every), sides[0]), add(*(f.high for f in every), sides[1]), add(*(f.size for f in every)),
        times(unit, two(finest)), min(leasts) + finest if len(leasts) == len(some) else None,
        head, finest, grid, most=end, interval=_at_most(every, more, head, end),
    ))  # fmt: skip
    return None


def _largest(weights: Sequence[Form]) -> Form:
    """An upper bound of all weights: the largest of the leading magnitudes with coefficient one, plus a bound of the
    rests."""
    leads: set[Monomial] = set()
    rests = []
    for weight in weights:
        lead = next((atom for atom, value in weight.items() if value == 1 and atom != ONE), frozenset())
        leads |= lead
        rests.append({atom: value for atom, value in weight.items() if atom != lead})
    return add({frozenset(leads): Fraction(1)} if leads else {}, most(*rests))


def cut(tree: Document, goal: Goal, premises: Sequence[int], _: Any) -> None:
    what = tree.node(goal, "cut")
    (y,) = tree.about(goal, premises[:1], [(what["term"], tree.bound(what["term"], goal.places))])
    fraction, least = what["bits"] - 1, what["least"]
    kept = {"name": f"{what['bits']} bits", "exponent": 8, "fraction": fraction, "bias": 127, "specials": "none",
            "signed": True, "subnormals": True, "padding": 0, "storage": 0}  # fmt: skip
    need(kept in tree.formats, "no lemma is about numbers of the bits that are kept")
    need_lemmas(tree, premises[1:], "RoundingLoses", [{"format": tree.formats.index(kept), "mode": what["mode"]}])
    relative = Fraction(0) if y.bits is not None and y.bits <= what["bits"] else two(-fraction)
    fixed = Fraction(0)
    if least is not None and (y.grid is None or y.grid < least - fraction):
        fixed = two(least - fraction)
    low, high = (add(times(y.value, relative * part), plain(fixed * part)) for part in LOSSES[what["mode"]])
    head = 2 - two(-fraction)
    interval = _rounded(y.interval, what["bits"], least, what["mode"])
    top = None if interval is None else end_of(max(-interval[0], interval[1]))
    last = None if top is None else top - 1 if least is None else max(top - 1, least)
    found = Facts(add(y.low, low), add(y.high, high), y.size, None, least, head, fraction, y.grid, what["bits"],
                  most=last, interval=interval)  # fmt: skip
    conclude(goal, found if least is None else replace(found, weight=add(found.value, plain(two(least)))))


def _rounded(interval: Range | None, bits: int, least: int | None, mode: str) -> Range | None:
    """What numbers of an interval are rounded to, as they would be with any exponent."""
    if interval is None:
        return None
    return -rounded_at_most(-interval[0], bits, least, mode), rounded_at_most(interval[1], bits, least, mode)


def rounded(tree: Document, goal: Goal, premises: Sequence[int], _: Any) -> None:
    what = tree.node(goal, "round")
    how, operand = what["rounding"], [(what["term"], tree.bound(what["term"], goal.places))]
    top = largest_number(tree.formats[how["format"]])[0]
    (y,) = tree.about(goal, premises[:1], operand, lambda every: without_overflow(goal, top, every[0]))
    need(what["random"] is None, "it is rounded by random bits")
    need_lemmas(tree, premises[1:], "RoundingLoses", [{"format": how["format"], "mode": how["mode"]}])
    conclude(goal, after_rounding(tree, y, how))


def drawn(tree: Document, goal: Goal, premises: Sequence[int], _: Any) -> None:
    """Rounded by random bits, of one operand more: up or down, whatever the bits are."""
    what = tree.node(goal, "round")
    how, drawn_by = what["rounding"], what["random"]
    need(drawn_by is not None and how["mode"].startswith("stochastic_"), "it is not rounded by random bits")
    operands = [(one, tree.bound(one, goal.places)) for one in (what["term"], drawn_by)]
    top = largest_number(tree.formats[how["format"]])[0]
    y, _bits = tree.about(goal, premises[:2], operands, lambda every: without_overflow(goal, top, every[0]))
    draws = [premise for premise in premises[2:] if tree.goals[premise].kind == "DrawIsNextTo"]
    fmt = how["format"]
    need_lemmas(tree, draws, "DrawIsNextTo", [{"format": fmt, "mode": how["mode"], "bits": random_bits(tree, what)}])
    others = [premise for premise in premises[2:] if premise not in draws]
    need_lemmas(
        tree, others, "RoundingLoses", [{"format": fmt, "mode": mode} for mode in ("toward_zero", "up", "down")]
    )
    conclude(goal, after_rounding(tree, y, {**how, "mode": "to_odd"}))


def after_rounding(tree: Document, y: Facts, how: Mapping[str, Any]) -> Facts:
    """The facts about a number with the facts `y`, rounded."""
    number, fmt = how["format"], tree.formats[how["format"]]
    need(fmt["signed"] and fmt["subnormals"], "the format has no sign, or no subnormal numbers")
    fraction, emin, flushes = fmt["fraction"], tree.emin(number), how["subnormals"] != "keep"
    relative = Fraction(0) if y.bits is not None and y.bits <= fraction + 1 else two(-fraction)
    sides = []
    for part in LOSSES[how["mode"]]:
        tiny = Fraction(0) if y.grid is not None and y.grid >= emin - fraction else two(emin - fraction) * part
        if flushes and (y.grid is None or y.grid < emin):
            tiny = two(emin)
        sides.append(add(times(y.value, relative * part), plain(tiny)))
    low, high = add(y.low, sides[0]), add(y.high, sides[1])
    last = largest_number(fmt)[0] - fraction  # the largest number may stand for what is beyond it
    grid = y.grid if y.grid is None or y.grid >= ANY else min(y.grid, last)
    interval = _rounded(y.interval, fraction + 1, emin, how["mode"])
    found = tree.numbers(frozenset({number}), low, high, y.size, grid, flushes, y.bits, interval)
    return found if grid is None or grid < ANY else replace(found, least=max(emin, last))  # of a zero
