"""Checks a tree of theorems about an error bound: every side condition and conclusion of every rule, by itself.

Together with magnitudes.py it shares no code with what found or wrote the tree: it reads a document of plain data
(queries/proof/written.py says what is in it), and the statements of the rules are those of the docstrings of
queries/proof, written a second time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from fractions import Fraction
from typing import Any

from queries.certificates.magnitudes import (
    ONE,
    FaultError,
    Form,
    Monomial,
    above,
    add,
    changed,
    covers,
    decimal_text,
    flat,
    form_text,
    lifted,
    lifts,
    merged,
    most,
    need,
    plain,
    put,
    read_form,
    single,
    times,
    two,
)

CHAIN = -1
SLACK = 1 + Fraction(1, 1 << 40)  # how much larger than it must be a rounded coefficient may be
#: by mode, in units of the last place: how far a rounding falls, and rises
FALLS = {"nearest_even": "1/2", "nearest_away": "1/2", "toward_zero": "1", "to_odd": "1", "down": "1", "up": "0"}
RISES = FALLS | {"down": "0", "up": "1"}
LOSSES = {mode: (Fraction(FALLS[mode]), Fraction(RISES[mode])) for mode in FALLS}


# -- what is read


@dataclass(frozen=True)
class Facts:
    """What is known of the value v of a node beside its exact value x."""

    low: Form
    high: Form
    size: Form
    weight: Form | None = None
    least: int | None = None
    head: Fraction | None = None
    digits: int | None = None
    grid: int | None = None
    bits: int | None = None
    formats: frozenset[int] | None = None

    @property
    def error(self) -> Form:
        return most(self.low, self.high)

    @property
    def value(self) -> Form:
        return add(self.size, self.error)

    @property
    def nothing(self) -> bool:
        return not (self.low or self.high or self.size)


@dataclass(frozen=True)
class Goal:
    """What a theorem states: `kind`, and its parts; those of no use to a kind are left empty."""

    kind: str
    node: int = -1
    places: tuple[tuple[int, int], ...] = ()
    facts: Facts | None = None
    assuming: frozenset[tuple[int, frozenset[int]]] = frozenset()
    parts: Mapping[str, Any] = field(default_factory=dict)


def read_facts(given: Mapping[str, Any]) -> Facts:
    forms = {name: read_form(given[name]) for name in ("low", "high", "size", "weight") if given[name] is not None}
    numbers = {name: given[name] for name in ("least", "digits", "grid", "bits")}
    need(all(value is None or type(value) is int for value in numbers.values()), "a number is no whole number")
    head = None if given["head"] is None else Fraction(given["head"])
    known = None if given["formats"] is None else frozenset(given["formats"])
    return Facts(**forms, **numbers, head=head, formats=known)  # type: ignore[arg-type]


def read_goal(given: Mapping[str, Any]) -> Goal:
    kind = given["is"]
    if kind != "Enclosed":
        parts = {name: value for name, value in given.items() if name != "is"}
        return Goal(kind, parts=parts)
    assuming = frozenset((one["level"], frozenset(one["formats"])) for one in given["assuming"])
    places = tuple((level, place) for level, place in given["places"])
    return Goal(kind, given["node"], places, read_facts(given["facts"]), assuming)


@dataclass(frozen=True)
class Step:
    """E to growth E + part A + own, and A to A + size."""

    level: int
    growth: Fraction
    part: Fraction
    own: Form
    size: Form

    @classmethod
    def read(cls, given: Mapping[str, Any]) -> Step:
        return cls(given["level"], Fraction(given["growth"]), Fraction(given["part"]), read_form(given["own"]),
                   read_form(given["size"]))  # fmt: skip

    def run(self, places: Sequence[int], error: Form, size: Form) -> tuple[Form, Form]:
        """E and A after a step for each place, E rounded up a little: the last step counts its own once, the one
        before it `growth` times as much, and so on."""
        weight, sizes, errors = Fraction(1), [size], [Form()]
        seen = Fraction(0)  # the sum of the weights of the steps after this one
        for place in reversed(places):
            errors.append(times(put(self.own, self.level, place), weight))
            errors.append(times(put(self.size, self.level, place), self.part * seen))
            sizes.append(put(self.size, self.level, place))
            seen, weight = seen + weight, above(weight * self.growth)
        return add(*errors, times(error, weight), times(size, self.part * seen)), add(*sizes)


class Tree:
    """A document, and the goals of its theorems."""

    def __init__(self, document: Mapping[str, Any]) -> None:
        self.unit, self.nodes, self.formats = document["unit"], document["nodes"], document["formats"]
        self.theorems, self.states = document["theorems"], document["states"]
        self.goals: list[Goal] = []
        need(len({repr(fmt) for fmt in self.formats}) == len(self.formats), "a format stands twice")
        for number, node in enumerate(self.nodes):
            need(all(below < number for below in _below(node)), f"node {number} stands before its operands")

    def check(self) -> Iterator[tuple[int, str]]:
        """The faults found: theorem and what is wrong with it."""
        for number, theorem in enumerate(self.theorems):
            try:
                self.goals.append(Goal("unreadable"))
                self.goals[-1] = goal = read_goal(theorem["goal"])
                premises = theorem["premises"]
                need(all(type(p) is int and 0 <= p < number for p in premises), "a premise is not before it")
                need(theorem["rule"] in RULES, "there is no such rule")
                RULES[theorem["rule"]](self, goal, premises, theorem)
            except FaultError as fault:
                yield number, f"{theorem['rule']}: {fault}"
            except (KeyError, ValueError, TypeError, IndexError, ZeroDivisionError) as error:
                yield number, f"cannot be read: {type(error).__name__} {error}"
        used = {premise for theorem in self.theorems for premise in theorem["premises"]} | set(self.states)
        yield from ((number, "nothing rests on it") for number in range(len(self.theorems)) if number not in used)
        for number in self.states:
            if not (type(number) is int and 0 <= number < len(self.goals)):
                yield -1, "what is stated is no theorem of it"
            elif not self.final(self.goals[number]):
                yield number, "it is stated, but is no bound of the result"

    def final(self, goal: Goal) -> bool:
        """Whether a goal is about the result, and assumes nothing."""
        whole = goal.node == self.unit["result"] and not goal.assuming and not goal.places
        if goal.kind == "Turns":
            found = goal.parts
            return found["node"] == self.unit["result"] and found["turns"] is True and not found["assuming"]
        return goal.kind in ("Carried", "Closed", "BoundInUnits") or (goal.kind == "Enclosed" and whole)

    # -- what nodes are

    def emin(self, fmt: int) -> int:
        found = self.formats[fmt]
        return (1 if found["subnormals"] else 0) - int(found["bias"])

    def last(self, fmt: int) -> int:
        """The place of the last bit of the smallest number."""
        return self.emin(fmt) - int(self.formats[fmt]["fraction"])

    def free(self, node: int) -> set[int]:
        """The loop variables that a node depends on."""
        what = self.nodes[node]
        own = {level for level, _ in (what["index"] or {"factors": ()})["factors"]} if what["kind"] == "element" else (
            {what["level"]} if what["kind"] == "acc" else set())  # fmt: skip
        if what["kind"] == "repeat":
            return self.free(what["start"]) | (self.free(what["body"]) - {what["level"]})
        inner = set[int]().union(*map(self.free, _below(what)))
        return own | (inner - {what["level"]} if what["kind"] == "each" else inner)

    def bound(self, node: int, places: Iterable[tuple[int, int]]) -> tuple[tuple[int, int], ...]:
        free = self.free(node)
        return tuple(sorted((level, place) for level, place in dict(places).items() if level in free))

    def terms(self, items: Iterable[int], places: Iterable[tuple[int, int]]) -> Iterator[tuple[int, Any, int]]:
        """The terms of a sum, each with the position of the operand that it comes from."""
        for position, item in enumerate(items):
            what, known = self.nodes[item], dict(places)
            if what["kind"] != "each":
                yield item, self.bound(item, known.items()), position
                continue
            for place in what["places"]:
                inner = self.terms([what["body"]], {**known, what["level"]: place}.items())
                yield from ((node, at, position) for node, at, _ in inner)

    def node(self, goal: Goal, kind: str) -> Mapping[str, Any]:
        """The node that a goal is about, which must be of a kind."""
        need(goal.kind == "Enclosed", "its goal is of another kind")
        what: Mapping[str, Any] = self.nodes[goal.node]
        need(what["kind"] == kind, f"its node is {what['kind']}, not {kind}")
        need(goal.places == self.bound(goal.node, goal.places), "it has other loop variables")
        return what

    def enclosed(self, premise: int) -> tuple[Goal, Facts]:
        goal = self.goals[premise]
        need(goal.kind == "Enclosed" and goal.facts is not None, "a premise of another kind is needed")
        assert goal.facts is not None
        return goal, goal.facts

    def about(self, goal: Goal, premises: Sequence[int], wanted: Sequence[tuple[int, Any]]) -> list[Facts]:
        """The facts of premises that must be about these nodes, and with which the goal must share what it assumes."""
        found = [self.enclosed(premise) for premise in premises]
        need([(one.node, one.places) for one, _ in found] == list(wanted), "the premises are not about its operands")
        assumed = frozenset[tuple[int, frozenset[int]]]().union(*(one.assuming for one, _ in found))
        need(goal.assuming == assumed, "it assumes something else than its premises")
        return [facts for _, facts in found]

    def numbers(self, formats: frozenset[int], low: Form, high: Form, size: Form, grid: int | None = None,
                flushed: bool = False) -> Facts:  # fmt: skip
        """What holds of a number of one of these formats."""
        if not formats:
            return Facts(low, high, size, {}, None, Fraction(2), 0, None, 0, formats)
        own = min(map(self.last, formats))
        grid = own if grid is None else max(own, grid)
        top = max(map(self.emin, formats))
        tiny = plain(0 if flushed or grid >= top else two(top) - two(grid))
        fraction = max(int(self.formats[fmt]["fraction"]) for fmt in formats)
        weight = add(size, most(low, high), tiny)
        least = min(map(self.emin, formats))
        return Facts(low, high, size, weight, least, Fraction(2), fraction, grid, fraction + 1, formats)


def _below(node: Mapping[str, Any]) -> list[int]:
    """The operands of a node."""
    names = ("left", "right", "term", "start", "body")
    return [node[name] for name in names if name in node] + list(node.get("items", ()))


def conclude(goal: Goal, facts: Facts) -> None:
    """The facts of the goal must be these."""
    names = [one.name for one in fields(Facts)]
    wrong = [name for name in names if getattr(goal.facts, name) != getattr(facts, name)]
    need(not wrong, f"the conclusion does not follow: {', '.join(wrong)}")


# -- the rules


def element(tree: Tree, goal: Goal, premises: Sequence[int], _: Any) -> None:
    what = tree.node(goal, "element")
    need(not premises and not goal.assuming, "an input rests on nothing")
    name = what["operand"]
    fmt = tree.unit["scale" if name.startswith("scale") else name]
    need(fmt is not None, "the unit has no such operand")
    index, places = what["index"] or {"offset": 0, "factors": []}, dict(goal.places)
    offset = index["offset"] + sum(step * places[level] for level, step in index["factors"] if level in places)
    rest = tuple((level, step) for level, step in index["factors"] if level not in places)
    facts = tree.numbers(frozenset({fmt}), {}, {}, single(name, offset, rest))
    kept = tree.formats[fmt]["subnormals"] and what["subnormals"] == "keep"
    conclude(goal, replace(facts, weight=single(name, offset, rest, kept)))


def constant(tree: Tree, goal: Goal, premises: Sequence[int], _: Any) -> None:
    tree.node(goal, "zero")
    need(not premises and not goal.assuming, "a constant rests on nothing")
    conclude(goal, tree.numbers(frozenset(), {}, {}, {}))


def literal(tree: Tree, goal: Goal, premises: Sequence[int], _: Any) -> None:
    what = tree.node(goal, "number")
    need(not premises and not goal.assuming, "a number rests on nothing")
    fmt = what["format"]
    conclude(goal, tree.numbers(frozenset({fmt}), {}, {}, plain(_finite(what["pattern"], tree.formats[fmt]))))


def _finite(pattern: int, fmt: Mapping[str, Any]) -> Fraction:
    """The magnitude of a pattern of a format, read off its fields; one that is not finite is a fault."""
    fraction, width = int(fmt["fraction"]), int(fmt["exponent"])
    bits = pattern >> int(fmt["padding"])
    field, digits = bits >> fraction & ((1 << width) - 1), bits & ((1 << fraction) - 1)
    need(fmt["specials"] == "ieee" and field != (1 << width) - 1, "it is no number of a format as those of IEEE 754")
    least = field == 0 and fmt["subnormals"]
    whole = digits if least else digits | 1 << fraction
    return whole * two(max(field, 1 if fmt["subnormals"] else 0) - int(fmt["bias"]) - fraction)


def assumed(tree: Tree, goal: Goal, premises: Sequence[int], _: Any) -> None:
    what = tree.nodes[goal.node]
    need(not premises and len(goal.assuming) == 1 and goal.places == (), "it assumes one thing and rests on nothing")
    ((level, formats),) = goal.assuming
    lost, flushed = Form(), False
    if what["kind"] == "acc":
        need(level == what["level"] and level != CHAIN, "it is about the result so far of another loop")
    else:
        need(what["kind"] == "element" and what["operand"] == "c" and level == CHAIN, "that cannot be assumed")
        need(formats == {tree.unit["c"]}, "the addend is a number of its own format")
        if what["subnormals"] != "keep":
            lost, flushed = plain(two(tree.emin(tree.unit["c"]))), True
    error = add(single("error", level), lost)
    conclude(goal, tree.numbers(formats, error, error, single("size", level), flushed=flushed))


def _product(every: Sequence[Facts]) -> Facts:
    def joined(name: str, how: Callable[[Any, Any], Any], one: Facts, other: Facts) -> Any:
        pair = getattr(one, name), getattr(other, name)
        return None if None in pair else how(*pair)

    so_far = every[0]
    for facts in every[1:]:
        error = add(times(so_far.size, facts.error), times(facts.size, so_far.error), times(so_far.error, facts.error))
        sums = {name: joined(name, lambda x, y: x + y, so_far, facts) for name in ("least", "digits", "grid", "bits")}
        so_far = Facts(error, error, times(so_far.size, facts.size), joined("weight", times, so_far, facts),
                       head=joined("head", lambda x, y: x * y, so_far, facts), **sums)  # fmt: skip
    return so_far


def product(tree: Tree, goal: Goal, premises: Sequence[int], _: Any) -> None:
    what = tree.node(goal, "product")
    sides = [(side, tree.bound(side, goal.places)) for side in (what["left"], what["right"])]
    every = tree.about(goal, premises, sides)
    facts = _product(every)
    if what["normalised"]:
        need(all(one.formats is not None for one in every), "a factor is no number of a format")
        digits = None if facts.digits is None else facts.digits + 1
        facts = replace(facts, weight=facts.value, least=facts.grid, head=Fraction(2), digits=digits)
    conclude(goal, facts)


def scale(tree: Tree, goal: Goal, premises: Sequence[int], _: Any) -> None:
    what = tree.node(goal, "scale")
    parts = [(part, tree.bound(part, goal.places)) for part in (what["term"], what["left"], what["right"])]
    conclude(goal, _product(tree.about(goal, premises, parts)))


def _grid(every: Sequence[Facts]) -> int | None:
    found = [facts.grid for facts in every if not facts.nothing]
    return None if None in found else min((grid for grid in found if grid is not None), default=0)


def exact(tree: Tree, goal: Goal, premises: Sequence[int], _: Any) -> None:
    what = tree.node(goal, "exact")
    every = tree.about(goal, premises, [term[:2] for term in tree.terms(what["items"], goal.places)])
    sums = [add(*(getattr(facts, name) for facts in every)) for name in ("low", "high", "size")]
    bits = every[0].bits if len(every) == 1 else None
    conclude(goal, Facts(sums[0], sums[1], sums[2], plain(1), 0, grid=_grid(every), bits=bits))


@dataclass(frozen=True)
class Term:
    """A term of a fused sum that may be other than zero, the bits kept of it, and its reach."""

    facts: Facts
    bits: int
    reach: int | None

    def loses(self, part: Fraction) -> Fraction:
        """At most this times 2^m, where a term within reach loses that part of a unit."""
        if self.reach is None:
            return part * two(-self.bits)
        need(self.facts.head is not None and self.reach >= 0, "nothing is known of the size of a term that vanishes")
        return max(part * two(-self.bits), (self.facts.head or 0) * two(-self.reach - 1))

    def lemma(self, mode: str) -> dict[str, Any] | None:
        """What the datapath must be known to do to it."""
        digits, head = self.facts.digits, self.facts.head
        if digits is None or head is None or head not in map(two, range(1 + int(head).bit_length())):
            return None
        width = digits + int(head).bit_length() - 1
        return {"width": width, "fraction": digits, "bits": self.bits, "mode": mode}


def fused(tree: Tree, goal: Goal, premises: Sequence[int], _: Any) -> None:
    what = tree.node(goal, "fused")
    places = list(tree.terms(what["items"], goal.places))
    every = tree.about(goal, premises[: len(places)], [term[:2] for term in places])
    keeps, reaches = what["fraction_bits"], what["reach"] or [None] * len(what["items"])
    keeps = keeps if isinstance(keeps, list) else [keeps] * len(what["items"])
    terms = [Term(facts, keeps[at], reaches[at]) for facts, (_, _, at) in zip(every, places, strict=True)
             if not facts.nothing]  # fmt: skip
    mode, finest, sticky = what["rounding"], max(keeps), bool(what["sticky"])
    _lemmas(tree, premises[len(places) :], "AlignmentLoses", [term.lemma(mode) for term in terms])
    if not terms:
        return conclude(goal, tree.numbers(frozenset(), {}, {}, {}))
    some = [term.facts for term in terms]
    heads = [term.facts.head for term in terms if term.facts.head is not None]
    known = len(heads) == len(terms)
    away = sum(two(-term.bits) for term in terms)  # a term that is rounded away from zero gains a unit
    if what["carry_bits"] is not None:
        room = sum(heads) + (0 if mode == "toward_zero" else away)
        need(known and room <= two(1 + what["carry_bits"]), "the sum may wrap")
    need(not sticky or mode == "toward_zero", "a sticky sum is truncated")
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
    conclude(goal, Facts(
        add(*(f.low for f in some), sides[0]), add(*(f.high for f in some), sides[1]), add(*(f.size for f in some)),
        add(m, plain(max(map(two, bounds), default=0))), min(leasts) if len(leasts) == len(some) else None,
        sum(heads) + away + two(-finest) if known else None, finest + sticky, None if sticky else _grid(some),
    ))  # fmt: skip
    return None


def grid(tree: Tree, goal: Goal, premises: Sequence[int], _: Any) -> None:
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
    conclude(goal, Facts(
        add(*(f.low for f in every), sides[0]), add(*(f.high for f in every), sides[1]), add(*(f.size for f in every)),
        times(unit, two(finest)), min(leasts) + finest if len(leasts) == len(some) else None,
        sum(heads) + 2 * len(every) * two(-finest) if len(heads) == len(some) else None, finest,
    ))  # fmt: skip
    return None


def _largest(weights: Sequence[Form]) -> Form:
    """At least each of them: the largest of one magnitude of each that counts once, and what is left of any."""
    leads: set[Monomial] = set()
    rests = []
    for weight in weights:
        lead = next((atom for atom, value in weight.items() if value == 1 and atom != ONE), frozenset())
        leads |= lead
        rests.append({atom: value for atom, value in weight.items() if atom != lead})
    return add({frozenset(leads): Fraction(1)} if leads else {}, most(*rests))


def _lemmas(tree: Tree, premises: Sequence[int], kind: str, wanted: Sequence[Mapping[str, Any] | None]) -> None:
    """The other premises must be these lemmas about the datapath, all of them."""
    goals = [tree.goals[premise] for premise in premises]
    need(all(goal.kind == kind for goal in goals), "a premise is no lemma about this node's datapath")
    given = [dict(goal.parts) for goal in goals]
    needed = [dict(one) for one in wanted if one is not None]
    need(all(one in needed for one in given), "a lemma is about another datapath")
    need(all(one in given for one in needed), "a lemma about the datapath is missing")


def cut(tree: Tree, goal: Goal, premises: Sequence[int], _: Any) -> None:
    what = tree.node(goal, "cut")
    (y,) = tree.about(goal, premises, [(what["term"], tree.bound(what["term"], goal.places))])
    fraction, least = what["bits"] - 1, what["least"]
    relative = Fraction(0) if y.bits is not None and y.bits <= what["bits"] else two(-fraction)
    fixed = Fraction(0)
    if least is not None and (y.grid is None or y.grid < least - fraction):
        fixed = two(least - fraction)
    low, high = (add(times(y.value, relative * part), plain(fixed * part)) for part in LOSSES[what["mode"]])
    found = Facts(add(y.low, low), add(y.high, high), y.size, None, least, Fraction(2), fraction, y.grid, what["bits"])
    conclude(goal, found if least is None else replace(found, weight=add(found.value, plain(two(least)))))


def rounded(tree: Tree, goal: Goal, premises: Sequence[int], _: Any) -> None:
    what = tree.node(goal, "round")
    how, operand = what["rounding"], [(what["term"], tree.bound(what["term"], goal.places))]
    (y,) = tree.about(goal, premises[:1], operand)
    number, fmt = how["format"], tree.formats[how["format"]]
    _lemmas(tree, premises[1:], "RoundingLoses", [{"format": number, "mode": how["mode"]}])
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
    conclude(goal, tree.numbers(frozenset({number}), low, high, y.size, y.grid, flushes))


def whole(tree: Tree, goal: Goal, premises: Sequence[int], _: Any) -> None:
    (premise,) = premises
    below, facts = tree.enclosed(premise)
    node = tree.unit["result"]
    while node != below.node:
        need(tree.nodes[node]["kind"] in ("round", "cut"), "the result is more than a rounding of it")
        node = tree.nodes[node]["term"]
    _same(goal, below)
    conclude(goal, replace(facts, size=single("exact")))


def _same(goal: Goal, other: Goal) -> None:
    mine, its = ((one.kind, one.node, one.places, one.assuming) for one in (goal, other))
    need(mine == its, "it is about something else than its premise")


def weakened(tree: Tree, goal: Goal, premises: Sequence[int], _: Any) -> None:
    (premise,) = premises
    below, facts = tree.enclosed(premise)
    _same(goal, below)
    assert goal.facts is not None
    claimed = goal.facts.low
    need(covers(claimed, facts.error) or covers(claimed, merged(facts.error)), "it is not implied by its premise")
    conclude(goal, replace(facts, low=claimed, high=claimed))


def _step(tree: Tree, goal: Goal, level: int, formats: frozenset[int], result: frozenset[int] | None) -> Step:
    """What a theorem about one step says, if that is linear in what it assumes."""
    need((level, formats) in goal.assuming, "the step assumes something else of the result so far")
    need(result is not None and result <= formats, "the step's result is no number of the formats assumed")
    assert goal.facts is not None
    marks = [next(iter(single(name, level))) for name in ("error", "size")]

    def reads(atom: frozenset[Monomial]) -> bool:
        return any(factor[:2] in (("error", level), ("size", level)) for item in atom for factor in item)

    def parts(form: Form) -> tuple[Fraction, Fraction, Form]:
        split = add(*(flat({atom: value}) if reads(atom) else {atom: value} for atom, value in form.items()))
        rest = {atom: value for atom, value in split.items() if atom not in marks}
        need(not any(map(reads, rest)), "the error is not linear in the result so far")
        return split.get(marks[0], Fraction(0)), split.get(marks[1], Fraction(0)), rest

    growth, part, own = parts(goal.facts.error)
    grown, kept, size = parts(goal.facts.size)
    need(not grown and kept <= 1, "the result so far enters the step more than once")
    return Step(level, growth, part, own, size)


def _close(claimed: Form, least: Form) -> None:
    """A coefficient that was rounded up is large enough, and hardly larger."""
    need(covers(claimed, least), "the bound is smaller than what follows")
    need(covers(times(least, SLACK), claimed), "the bound is larger than what follows")


def repeated(tree: Tree, goal: Goal, premises: Sequence[int], _: Any) -> None:
    what = tree.node(goal, "repeat")
    level, known = what["level"], dict(goal.places)
    (first, begin), (body, facts) = (tree.enclosed(premise) for premise in premises)
    need((first.node, body.node) == (what["start"], what["body"]), "the premises are not about its start and its body")
    need(first.places == tree.bound(what["start"], goal.places), "its start has other loop variables")
    inner = {own: place for own, place in known.items() if own != level}
    need(body.places == tree.bound(what["body"], inner.items()), "the body is not of any place")
    own = [one for one in body.assuming if one[0] == level]
    need(goal.assuming == (body.assuming - frozenset(own)) | first.assuming, "it assumes something else")
    need(len(own) <= 1 and bool(what["places"]), "the body assumes several things, or there is no place")
    if not own:  # the last round alone counts
        last = what["places"][-1]
        low, high, size = (put(form, level, last) for form in (facts.low, facts.high, facts.size))
        weight = None if facts.weight is None else put(facts.weight, level, last)
        return conclude(goal, replace(facts, low=low, high=high, size=size, weight=weight))
    ((_, formats),) = own
    need(begin.formats is not None and begin.formats <= formats, "the start is no number of the formats assumed")
    error, size = _step(tree, body, level, formats, facts.formats).run(what["places"], begin.error, begin.size)
    assert goal.facts is not None
    claimed = goal.facts.low
    _close(claimed, error)
    return conclude(goal, tree.numbers(formats, claimed, claimed, size))


def chained(tree: Tree, goal: Goal, premises: Sequence[int], _: Any) -> None:
    (premise,) = premises
    below, facts = tree.enclosed(premise)
    c, d = tree.unit["c"], tree.unit["d"]
    need(goal.kind == "Chained" and below.node == tree.unit["result"], "it is not about the result")
    need(below.assuming == {(CHAIN, frozenset({c}))}, "the premise is not about any addend")
    one, other = tree.formats[d], tree.formats[c]
    alike = ("exponent", "bias", "specials", "signed", "subnormals")
    # the patterns are aligned at the top: what the wider one has more are bits of the fraction
    width = {name: fmt["storage"] or fmt["signed"] + fmt["exponent"] + fmt["fraction"] + fmt["padding"]
             for name, fmt in (("d", one), ("c", other))}  # fmt: skip
    need(all(one[name] == other[name] for name in alike) and width["d"] == width["c"]
         and one["fraction"] <= other["fraction"], "a result is no addend")  # fmt: skip
    need(facts.formats is not None, "the result is no number of a format")
    step = _step(tree, below, CHAIN, frozenset({c}), frozenset({c}))
    need(Step.read(goal.parts["step"]) == step, "the conclusion does not follow")


def closed(tree: Tree, goal: Goal, premises: Sequence[int], _: Any) -> None:
    step = _of_chain(tree, goal, premises, "Closed")
    need(step.growth >= 1, "the error of the result so far shrinks")
    own = merged(step.own)
    products = most(own, lifted(times(flat(step.size), step.part), lifts(own)))
    products = merged({atom: value for atom, value in products.items() if atom != ONE})
    found = {"growth": step.growth, "part": step.part, "fixed": own.get(ONE, Fraction(0))}
    claimed = {name: Fraction(goal.parts[name]) for name in found}
    need(claimed == found and read_form(goal.parts["products"]) == products, "the conclusion does not follow")


def _of_chain(tree: Tree, goal: Goal, premises: Sequence[int], kind: str) -> Step:
    (premise,) = premises
    need(goal.kind == kind and tree.goals[premise].kind == "Chained", "a premise about a chain is needed")
    return Step.read(tree.goals[premise].parts["step"])


def carried(tree: Tree, goal: Goal, premises: Sequence[int], _: Any) -> None:
    step, count, unit = _of_chain(tree, goal, premises, "Carried"), goal.parts["count"], tree.unit
    need(type(count) is int and count >= 1, "a chain has an instruction")
    stride = {"a": unit["length"], "b": unit["length"], "scale_a": unit["scales"], "scale_b": unit["scales"]}

    def placed(form: Form) -> Form:
        return changed(form, lambda factor: (*factor[:2], (*factor[2], (CHAIN, stride[factor[0]])), factor[3]))

    step = replace(step, own=placed(step.own), size=placed(step.size))
    error, _ = step.run(range(count), {}, single("c"))
    _close(read_form(goal.parts["error"]), merged(error))


def _input(tree: Tree, node: int, places: Mapping[int, int]) -> tuple[str, int]:
    """The operand that a node is, and the place there."""
    what = tree.nodes[node]
    need(what["kind"] == "element" and what["subnormals"] == "keep", "a factor is no input, or is read as another")
    index = what["index"] or {"offset": 0, "factors": ()}
    return what["operand"], index["offset"] + sum(step * places[level] for level, step in index["factors"])


def _the_sum(tree: Tree) -> Mapping[str, Any]:
    """The one sum that the result is a rounding of."""
    top = tree.nodes[tree.unit["result"]]
    need(top["kind"] == "round", "the result is not rounded")
    total: Mapping[str, Any] = tree.nodes[top["term"]]
    need(total["kind"] == "fused", "the result is not one fused sum")
    return total


def summed(tree: Tree, goal: Goal, premises: Sequence[int], _: Any) -> None:
    need(goal.kind == "SumInUnits", "its goal is of another kind")
    total = _the_sum(tree)
    kept = total["fraction_bits"]
    need(total["rounding"] == "toward_zero" and not total["sticky"] and total["carry_bits"] is None, "it may wrap")
    need(type(kept) is int and not any(far is not None for far in total["reach"] or ()), "terms are cut off apart")
    terms = list(tree.terms(total["items"], ()))
    found = [tree.enclosed(premise) for premise in premises[: len(terms)]]
    need([(one.node, one.places) for one, _ in found] == [term[:2] for term in terms], "premises about other terms")
    every = [facts for _, facts in found]
    need(not any(one.assuming for one, _ in found) and not any(f.low or f.high for f in every), "a term is not exact")
    added = []
    for node, places, _ in terms:
        what, known = tree.nodes[node], dict(places)
        if what["kind"] == "product":
            need(not what["normalised"] and what["limit"] is None, "a product is normalised, or has a limit")
            added.append(tuple(sorted(_input(tree, what[side], known) for side in ("left", "right"))))
        else:
            added.append((_input(tree, node, known),))
    every_product = [(("a", k), ("b", k)) for k in range(tree.unit["length"])]
    need(sorted(added) == sorted([*every_product, (("c", 0),)]), "not every product, and c, is added once")
    for bound in (total["zeros"], total["least"], *total["floors"]):
        need(bound is None or all(f.least is not None and f.least >= bound for f in every), "a floor exceeds exponents")
    lemmas = [Term(facts, kept, None).lemma("toward_zero") for facts in every]
    _lemmas(tree, premises[len(terms) :], "AlignmentLoses", lemmas)
    whole = all(facts.digits is not None and facts.digits <= kept for facts in every)
    need(goal.parts["lost"] == len(terms) - (1 if whole else 0), "the conclusion does not follow")


def truncated(tree: Tree, goal: Goal, premises: Sequence[int], _: Any) -> None:
    first, *rest = premises
    need(goal.kind == "BoundInUnits" and tree.goals[first].kind == "SumInUnits", "a premise about the sum is needed")
    how, number, total = tree.nodes[tree.unit["result"]]["rounding"], tree.unit["d"], _the_sum(tree)
    need(how["format"] == number and how["mode"] == "toward_zero" and how["subnormals"] == "keep", "not only cut off")
    a, b, c, d = (tree.formats[tree.unit[name]] for name in "abcd")
    need(d["signed"] and d["subnormals"] and d["fraction"] > 0, "the format has no sign, or no subnormal numbers")
    (top_a, _), (top_b, _), (top_c, _), (top, fields) = map(_largest_number, (a, b, c, d))
    need(fields == (1 << d["fraction"]) - 1, "the largest number has not all bits")
    reach = top_a + top_b + 2
    need(reach + tree.unit["length"].bit_length() < top, "the products can overflow")
    fine = min(c["fraction"], total["fraction_bits"]) <= d["fraction"] and reach <= top - total["fraction_bits"]
    need(top_c < top or (top_c == top and fine), "the addend can make it overflow")
    _lemmas(tree, rest, "TruncationKeeps", [{"format": number}])
    expected = {"units": tree.goals[first].parts["lost"] - 1, "apart": False}
    need(dict(goal.parts) == expected, "the conclusion does not follow")


def _largest_number(fmt: Mapping[str, Any]) -> tuple[int, int]:
    """The exponent of the largest number of a format, and its fraction field."""
    exponent, fraction, specials = fmt["exponent"], fmt["fraction"], fmt["specials"]
    top = (1 << (exponent + fraction)) - 1
    top -= {"ieee": 1 << fraction, "unused": 1 << fraction, "all_ones": 1,
            "extended": 1 if fmt["signed"] else 2}.get(specials, 0)  # fmt: skip
    return (top >> fraction) - fmt["bias"], top & ((1 << fraction) - 1)


def loosened(tree: Tree, goal: Goal, premises: Sequence[int], _: Any) -> None:
    (premise,) = premises
    below = tree.goals[premise]
    need(goal.kind == below.kind == "BoundInUnits", "it is about something else than its premise")
    more = goal.parts["units"] - below.parts["units"]
    steps = {(False, False): 0, (False, True): 1, (True, True): 0}
    step = below.parts["apart"], goal.parts["apart"]
    need(step in steps and more >= steps[step], "it is not implied by its premise")


def turned(tree: Tree, goal: Goal, premises: Sequence[int], _: Any) -> None:
    need(goal.kind == "Turns", "its goal is of another kind")
    what = tree.nodes[goal.parts["node"]]
    kind = what["kind"]
    operands = [what["term"], what["left"], what["right"]] if kind == "scale" else _below(what)
    own = [tree.goals[premise] for premise in premises[: len(operands)]]
    need(all(one.kind == "Turns" for one in own), "a premise of another kind is needed")
    need([one.parts["node"] for one in own] == operands, "the premises are not about its operands")
    flips = [bool(one.parts["turns"]) for one in own]
    assumed = {level for one in own for level in one.parts["assuming"]}
    found = True
    if kind == "element":
        found = what["operand"] in ("a", "c")
        need(not found or all(tree.formats[tree.unit[name]]["signed"] for name in "ac"), "an operand has no sign")
    elif kind == "product":
        found = flips[0] is not flips[1]
    elif kind == "scale":
        found = flips[0]
        need(not any(flips[1:]), "a scale factor turns")
    elif kind == "repeat":
        need(all(flips), "the results of the loop stay")
        need(what["level"] not in own[0].parts["assuming"], "the start reads the results of the loop")
    elif kind not in ("zero", "acc"):
        need(kind in ("each", "cut", "round", "exact", "fused"), f"of a {kind} it is not known")
        seen = {flip for flip, node in zip(flips, operands, strict=True) if tree.nodes[node]["kind"] != "zero"}
        need(len(seen) < 2, "some terms turn, and some stay")
        found = False not in seen
    if found and kind in ("cut", "round", "fused"):
        _magnitudes_alone(tree, what)
    assumed = assumed | {what["level"]} if kind == "acc" else assumed
    assumed = assumed - {what["level"]} if kind == "repeat" else assumed
    wanted = []
    if found and kind == "round":
        how = what["rounding"]
        target = {"format": how["format"], "rounding": how["mode"], "overflow": how["overflow"],
                  "flush": how["subnormals"] == "flush_after", "positive_zero": how["zero"] == "positive"}  # fmt: skip
        wanted.append({"target": target})
    _lemmas(tree, premises[len(operands) :], "RoundsOpposite", wanted)
    need(goal.parts["turns"] is found and set(goal.parts["assuming"]) == assumed, "the conclusion does not follow")


def _magnitudes_alone(tree: Tree, what: Mapping[str, Any]) -> None:
    """A node that must treat both signs alike."""
    kind = what["kind"]
    mode = what["mode"] if kind == "cut" else what["rounding"] if kind == "fused" else what["rounding"]["mode"]
    need(mode not in ("up", "down"), "it is rounded up, or down")
    if kind == "round":
        need(tree.formats[what["rounding"]["format"]]["signed"], "it is rounded to a format without signs")
    if kind == "fused":
        need(not what["sticky"], "a sticky bit has no sign")
        if what["carry_bits"] is not None:
            more = Fraction(0) if mode == "toward_zero" else two(-what["fraction_bits"])
            most = sum(_largest_significand(tree, node) + more for node, _, _ in tree.terms(what["items"], ()))
            need(most < two(1 + what["carry_bits"]), "the sum may wrap")


def _largest_significand(tree: Tree, node: int) -> Fraction:
    """What a term is at most, times the power of two at its exponent."""
    what = tree.nodes[node]
    if what["kind"] == "repeat":
        what = tree.nodes[what["body"]]
    if what["kind"] == "product":
        left, right = _largest_significand(tree, what["left"]), _largest_significand(tree, what["right"])
        bits = Fraction(1, 2 * left.denominator * right.denominator)
        return 2 - bits if what["normalised"] else left * right
    if what["kind"] == "zero":
        return Fraction(0)
    need(what["kind"] in ("element", "round"), "it is not known how large a term is")
    number = what["rounding"]["format"] if what["kind"] == "round" else tree.unit[what["operand"].split("_")[0]]
    return 2 - two(-tree.formats[number]["fraction"])


def lemma(tree: Tree, goal: Goal, premises: Sequence[int], theorem: Any) -> None:
    """About the datapath: what the file that it names says, which is checked beside this."""
    kinds = ("AlignmentLoses", "RoundingLoses", "TruncationKeeps", "RoundsOpposite")
    need(goal.kind in kinds and not premises, "it is no lemma about the datapath")
    need(isinstance(theorem.get("leaf"), str), "no file is named that shows it")


Rule = Callable[[Tree, Goal, Sequence[int], Any], None]
RULES: dict[str, Rule] = {rule.__name__: rule for rule in (
    element, constant, literal, assumed, product, scale, exact, fused, grid, cut, rounded, whole, weakened, repeated,
    chained, closed, carried, summed, truncated, loosened, turned,
)} | {"settled": lemma, "exhausted": lemma}  # fmt: skip


# -- statements in words


def statement_text(tree: Tree, number: int) -> str:
    """A theorem about the result, on one line."""
    goal, where = tree.goals[number], _where(tree)
    if goal.kind == "Closed":
        part, fixed, growth = (Fraction(goal.parts[name]) for name in ("part", "fixed", "growth"))
        terms = [f"{decimal_text(part)} |c|" * bool(part), f"{form_text(read_form(goal.parts['products']))} of each"]
        terms += [decimal_text(fixed)] if fixed else []
        rate = f"1 + g + ... + g^(n-1), g = 1 + {decimal_text(growth - 1)}" if growth > 1 else "n"
        return f"after n instructions |d - exact| <= G ({' + '.join(filter(None, terms))}), G = {rate}{where}"
    if goal.kind == "Turns":
        return "negating every a and c negates d, as a value: a zero has any sign"
    if goal.kind == "BoundInUnits":
        last = "ulp(d)" if goal.parts["apart"] else "max(u, ulp(d))"
        return f"|d - exact| <= {goal.parts['units']} u + {last}, where inputs are finite: u = 2^(m - F)"
    if goal.kind == "Carried":
        error = form_text(read_form(goal.parts["error"]))
        return f"after {goal.parts['count']} instructions |d - exact| <= {error}{where}"
    assert goal.facts is not None
    return f"|d - exact| <= {form_text(goal.facts.error)}{where}"


def _where(tree: Tree) -> str:
    limits = {node["limit"] for node in tree.nodes if node["kind"] == "product" and node["limit"] is not None}
    flushes = any(node["kind"] == "element" and node["subnormals"] != "keep" for node in tree.nodes)
    found = [f"no product reaches 2^{limit}" for limit in sorted(limits)]
    found += ["exact is of the inputs as they are read, subnormals as zero"] if flushes else []
    return ", ".join([", where inputs are finite", "no rounding overflows", *found])
