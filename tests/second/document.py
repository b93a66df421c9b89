"""A tree of theorems as read, and what every rule needs of it: operands, terms, premises, lemmas."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import fields, replace
from fractions import Fraction
from typing import Any, ClassVar

from tests.second.goals import CHAIN, Condition, Facts, Goal, read_condition
from tests.second.magnitudes import FaultError, Form, Range, add, end_of, most, need, plain, two

#: by mode, in units of the last place: how far a rounding lowers a value at most, and how far it raises one
ANY = 1 << 20  # a place above all: zero is a multiple of every power of two
FALLS = {"nearest_even": "1/2", "nearest_away": "1/2", "toward_zero": "1", "to_odd": "1", "down": "1", "up": "0"}
RISES = FALLS | {"down": "0", "up": "1"}
LOSSES = {mode: (Fraction(FALLS[mode]), Fraction(RISES[mode])) for mode in FALLS}


class Document:
    """A tree as read: the unit, its nodes and formats, and the goals of the theorems checked so far."""

    of_plan: ClassVar[bool] = False

    def __init__(self, document: Mapping[str, Any]) -> None:
        self.unit, self.nodes, self.formats = document["unit"], document["nodes"], document["formats"]
        self.theorems, self.states = document["theorems"], document["states"]
        self.goals: list[Goal] = []
        self.conditions = list(map(read_condition, document.get("conditions", ())))
        self.made_of: dict[int, frozenset[int]] = {}
        need(len({repr(fmt) for fmt in self.formats}) == len(self.formats), "a format stands twice")
        need(self.of_plan or not any(one.each for one in self.conditions), "of a unit it is said what is said of plans")
        for number, node in enumerate(self.nodes):
            need(all(operand < number for operand in operands_of(node)), f"node {number} stands before its operands")

    def emin(self, fmt: int) -> int:
        found = self.formats[fmt]
        return (1 if found["subnormals"] else 0) - int(found["bias"])

    def last(self, fmt: int) -> int:
        """The exponent of the smallest number of a format, of which all are multiples."""
        return self.emin(fmt) - int(self.formats[fmt]["fraction"])

    def free(self, node: int) -> set[int]:
        """The loop variables that a node depends on."""
        what = self.nodes[node]
        own = {level for level, _ in (what["index"] or {"factors": ()})["factors"]} if what["kind"] == "element" else (
            {what["level"]} if what["kind"] == "acc" else set())  # fmt: skip
        if what["kind"] == "repeat":
            return self.free(what["start"]) | (self.free(what["body"]) - {what["level"]})
        inner = set[int]().union(*map(self.free, operands_of(what)))
        return own | (inner - {what["level"]} if what["kind"] == "each" else inner)

    def below(self, node: int) -> frozenset[int]:
        """A node and all that it is made of."""
        if node not in self.made_of:
            found = frozenset({node}).union(*map(self.below, operands_of(self.nodes[node])))
            self.made_of[node] = found
        return self.made_of[node]

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

    def node(self, goal: Goal, *kinds: str) -> Mapping[str, Any]:
        """The node that a goal is about, which must be of one of the given kinds."""
        need(goal.kind == "Enclosed", "its goal is of another kind")
        what: Mapping[str, Any] = self.nodes[goal.node]
        need(what["kind"] in kinds, f"its node is {what['kind']}, not {' or '.join(kinds)}")
        need(goal.places == self.bound(goal.node, goal.places), "it has other loop variables")
        return what

    def enclosed(self, premise: int) -> tuple[Goal, Facts]:
        goal = self.goals[premise]
        need(goal.kind == "Enclosed" and goal.facts is not None, "a premise of another kind is needed")
        assert goal.facts is not None
        return goal, goal.facts

    def about(self, goal: Goal, premises: Sequence[int], wanted: Sequence[tuple[int, Any]],
              overflows: Callable[[Sequence[Facts]], Condition] | None = None) -> list[Facts]:  # fmt: skip
        """The facts of the premises, which must be about the nodes `wanted`; the goal must have their hypotheses.
        `overflows`: where else nothing may overflow, given their facts."""
        found = [self.enclosed(premise) for premise in premises]
        every = [facts for _, facts in found]
        need([(one.node, one.places) for one, _ in found] == list(wanted), "the premises are not about its operands")
        own = frozenset() if overflows is None else frozenset({overflows(every)})
        need(goal.assuming == self.together([one for one, _ in found]), "it assumes something else than its premises")
        need(goal.provided == own.union(*(one.provided for one, _ in found)), "something else may not overflow")
        return every

    def together(self, goals: Sequence[Goal]) -> frozenset[tuple[Any, frozenset[int]]]:
        """What goals assume, all together: none of them may take a rounding that another keeps, or an addend that
        another assumes something of, otherwise."""
        found = frozenset[tuple[Any, frozenset[int]]]().union(*(goal.assuming for goal in goals))
        for goal in goals:
            inside = self.below(goal.node) if found - goal.assuming else ()
            for level, _ in found - goal.assuming:
                if isinstance(level, tuple):
                    need(level[1] not in inside, "a rounding that is kept is also taken as one that is not")
                elif level == CHAIN:
                    need(not any(self.nodes[node].get("operand") == "c" for node in inside), "c is also an exact input")
        return found

    def over_all(self, form: Form) -> Form:
        """A form about each product, over all products that it means."""
        return form

    def number_read(self, node: int, kept: frozenset[int]) -> Facts | None:
        """What is known of a number that a word rounds; None: nothing."""
        return None

    def step(self, goal: Goal, kind: str) -> Mapping[str, Any]:
        """The step of a plan that a goal is about, of a kind."""
        raise FaultError("a unit has no steps")

    def pairs_of(self, stage: int) -> Sequence[tuple[int, int]]:
        """What the units of a stage read."""
        raise FaultError("a unit has no sum of all products")

    def read(self, name: str, size: Form) -> Facts:
        """The facts of a number of an operand: where it has a window of exponents, it is zero or a normal number of
        it."""
        fmt, window = self.unit["scale" if name.startswith("scale") else name], dict(self.unit.get("windows", ()))
        if name not in window:
            return self.numbers(frozenset({fmt}), {}, {}, size)
        (low, high), fraction = window[name], int(self.formats[fmt]["fraction"])
        need(self.emin(fmt) <= low <= high <= largest_number(self.formats[fmt])[0], "there is no such window")
        facts = self.numbers(frozenset({fmt}), {}, {}, size, low - fraction, flushed=True)
        head = 2 - two(-fraction)
        return replace(facts, least=low, most=high, digits=fraction, head=head,
                       interval=up_to(range_of(self.formats[fmt]), head * two(high)))  # fmt: skip

    def numbers(self, formats: frozenset[int], low: Form, high: Form, size: Form, grid: int | None = None,
                flushed: bool = False, bits: int | None = None, interval: Range | None = None) -> Facts:  # fmt: skip
        """The facts that hold of a number of one of these formats, of so many significant bits, if given."""
        if not formats:
            return Facts(low, high, size, {}, None, Fraction(2), 0, ANY, 0, formats, None, (Fraction(0), Fraction(0)))
        own = min(map(self.last, formats))
        grid = own if grid is None else max(own, grid)
        top = max(map(self.emin, formats))
        tiny = plain(0 if flushed or grid >= top else two(top) - two(grid))
        fraction = max(int(self.formats[fmt]["fraction"]) for fmt in formats)
        weight = add(size, most(low, high), tiny)
        emin, ranges = min(map(self.emin, formats)), [range_of(self.formats[fmt]) for fmt in formats]
        every = min(low for low, _ in ranges), max(high for _, high in ranges)
        interval = every if interval is None else (max(every[0], interval[0]), min(every[1], interval[1]))
        end = end_of(max(-interval[0], interval[1]) or max(-every[0], every[1]))
        assert end is not None
        bits = fraction + 1 if bits is None or bits > fraction else bits
        if len(formats) == 1:  # normal numbers have so many bits, subnormal ones lie on the grid
            fraction = max(bits - 1, emin - grid, 0)
        return Facts(low, high, size, weight, max(emin, grid), 2 - two(-fraction), fraction, grid, bits, formats,
                     max(emin, end - 1), interval)  # fmt: skip


def operands_of(node: Mapping[str, Any]) -> list[int]:
    """The operands of a node."""
    names = ("left", "right", "term", "start", "body")
    return [node[name] for name in names if name in node] + list(node.get("items", ()))


def random_bits(tree: Any, node: Mapping[str, Any]) -> int:
    """How many random bits a number is rounded by."""
    if node["random"] is None:
        return 0
    drawn = tree.nodes[node["random"]]
    fmt = tree.formats[tree.unit[drawn["operand"]] if drawn["kind"] == "element" else drawn["format"]]
    return int(fmt["exponent"] + fmt["fraction"])


def largest_number(fmt: Mapping[str, Any]) -> tuple[int, int]:
    """The exponent of the largest number of a format, and its fraction field."""
    exponent, fraction, specials = fmt["exponent"], fmt["fraction"], fmt["specials"]
    top = (1 << (exponent + fraction)) - 1
    top -= {"ieee": 1 << fraction, "unused": 1 << fraction, "all_ones": 1,
            "extended": 1 if fmt["signed"] else 2}.get(specials, 0)  # fmt: skip
    return (top >> fraction) - fmt["bias"], top & ((1 << fraction) - 1)


def range_of(fmt: Mapping[str, Any]) -> Range:
    """The least and the largest number of a format, or 0."""
    most = most_of(fmt)
    if not fmt["signed"]:
        return Fraction(0), most
    return -most - two(1 - int(fmt["bias"]) - int(fmt["fraction"])) * (fmt["specials"] == "complement"), most


def up_to(interval: Range, top: Fraction) -> Range:
    """The numbers of an interval up to a magnitude."""
    return max(interval[0], -top), min(interval[1], top)


def most_of(fmt: Mapping[str, Any]) -> Fraction:
    """The largest number of a format."""
    exponent, field = largest_number(fmt)
    return ((1 << fmt["fraction"]) + field) * two(exponent - int(fmt["fraction"]))


def nan_as(how: Mapping[str, Any], fmt: Mapping[str, Any]) -> str:
    """The result of a rounding to a format for a NaN: a "nan", "+0", or another "number"."""
    given, sign = how["nan"], fmt["exponent"] + fmt["fraction"] + fmt["padding"]
    number = "number" if (given or 0) >> fmt["padding"] or not fmt["subnormals"] else "+0"
    if fmt["specials"] in ("none", "unused"):
        return number
    if given is None:
        return "nan"
    fields = (given & (1 << sign) - 1) >> fmt["padding"]
    if fmt["signed"] and fmt["specials"] in ("negative_zero", "extended"):
        found = given == 1 << sign
    elif fmt["specials"] == "ieee":
        found = fields > (1 << fmt["exponent"]) - 1 << fmt["fraction"]
    else:
        found = fields == (1 << fmt["exponent"] + fmt["fraction"]) - 1
    return "nan" if found else number


def holds(fmt: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Whether every finite number of the other format is one of a format."""
    finest, tops = [], []
    for one in (fmt, other):
        emin = (1 if one["subnormals"] else 0) - one["bias"]
        finest.append(emin - one["fraction"] * (one is other or bool(one["subnormals"])))
        tops.append((1 << one["exponent"]) - (2 if one["specials"] in ("ieee", "unused") else 1) - one["bias"])
    wide = (
        fmt["fraction"] >= other["fraction"]
        and finest[0] <= finest[1]
        and bool(fmt["signed"] or not other["signed"])
        and bool(fmt["subnormals"] or not other["subnormals"])  # without subnormal numbers there is no zero
    )
    # of the largest numbers of the other kinds some are no numbers: a larger exponent is asked for
    return fmt == other or (wide and tops[1] + (fmt["specials"] not in ("ieee", "unused")) <= tops[0])


def conclude(goal: Goal, facts: Facts) -> None:
    """Check that the facts of the goal are these. Raises FaultError if they are not."""
    names = [one.name for one in fields(Facts)]
    wrong = [name for name in names if getattr(goal.facts, name) != getattr(facts, name)]
    need(not wrong, f"the conclusion does not follow: {', '.join(wrong)}")


def need_same(goal: Goal, other: Goal) -> None:
    mine, its = ((one.kind, one.node, one.places, one.assuming, one.provided) for one in (goal, other))
    need(mine == its, "it is about something else than its premise")


def need_nothing(goal: Goal, premises: Sequence[int]) -> None:
    need(not premises and not goal.assuming and not goal.provided, "it rests on something")


def need_lemmas(tree: Document, premises: Sequence[int], kind: str, wanted: Sequence[Mapping[str, Any] | None]) -> None:
    """The premises must be exactly these lemmas about the datapath."""
    goals = [tree.goals[premise] for premise in premises]
    need(all(goal.kind == kind for goal in goals), "a premise is not a lemma about this node's datapath")
    given = [dict(goal.parts) for goal in goals]
    needed = [dict(one) for one in wanted if one is not None]
    need(all(one in needed for one in given), "a lemma is about another datapath")
    need(all(one in given for one in needed), "a lemma about the datapath is missing")


Rule = Callable[[Any, Goal, Sequence[int], Any], None]
