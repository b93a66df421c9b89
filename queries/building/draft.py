"""Units drafted from a summation tree: the tree gives the steps, `Choices` the arithmetic of each."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby, pairwise
from typing import Literal

from mmaprobe.queries.building.parts import UNSPLIT, Pair, Parts, part_of
from mmaprobe.queries.building.roles import Part, adders_of
from mmaprobe.queries.building.weights import ADDED, opposite, power_of_two, shift_of, shifted
from mmaprobe.queries.order.beside import Power
from mmaprobe.queries.order.text import Outliner
from mmaprobe.queries.order.tree import Leaf, leaves_of, nodes_of
from mmaprobe.queries.order.tree import Node as Sum
from mmaprobe.smtmodel.arithmetic.formats import FORMATS, Format
from mmaprobe.smtmodel.arithmetic.rounding import Mode, Overflow
from mmaprobe.smtmodel.base.errors import ParameterError
from mmaprobe.smtmodel.inputs.signature import Signature
from mmaprobe.smtmodel.nodes import (
    Cancelling,
    Constant,
    Cut,
    Each,
    Element,
    ExactSum,
    FusedSum,
    Gate,
    Index,
    Node,
    Product,
    Repeat,
    Round,
    Running,
    Scale,
)
from mmaprobe.smtmodel.nodes.element import Subnormals
from mmaprobe.smtmodel.nodes.repeat import places_of
from mmaprobe.smtmodel.nodes.round import Rounding, Tiny, Zero
from mmaprobe.smtmodel.units.unit import Unit

Start = Literal["pair", "first", "zero", "second", "zero_second"]
STARTS: tuple[Start, ...] = ("pair", "first", "zero")
SWAPPED: tuple[Start, ...] = ("second", "zero_second")
Zeros = Literal["", "+0", "-0"]
Groups = Literal["", "even_odd", "pairs", "quads"]
Scaled = Literal["terms", "sums"]
Normalised = Literal["", "products", "all", "factors", "numbers"]
WIDER = ("f32", "f64")  # in which subnormal factors are normal numbers
REPEATED = 3  # repetitions from which on steps are written as a loop
PERIODS = (1, 2, 3, 4, 8)  # of repetitions that are searched for in the steps of a chain
DEEPEST = 75  # nested steps without a loop; each takes about ten nested calls of Python

Added = tuple[Sum, tuple[Sum | Leaf, ...]]  # a step of a chain, and what it adds
Stretch = tuple[int, list[Added]]  # a period, and the steps that repeat with it
Loop = tuple[tuple[int, int], ...]
Odd = tuple[frozenset[int], int]
#: where a rounding occurs: in the steps of a role, where their results enter another role, or elsewhere
Place = int | tuple[Literal["leaves"], int] | Literal["products", "addend", "convert", "store"]


class TooDeepError(Exception):
    """The unit of a tree would need more than DEEPEST nested steps, because too few of them repeat."""


@dataclass(frozen=True)
class How:
    """How a sum or a product is rounded to a format ("": that of the result).

    `bits`: it is first rounded to this many significant bits, with unbounded exponent, in the mode `first` (None:
    `mode`).
    """

    mode: Mode = "nearest_even"
    format: str = ""
    bits: int | None = None
    first: Mode | None = None
    tiny: Tiny = "keep"
    zero: Zero = "ieee"
    overflow: Overflow = "ieee"


@dataclass(frozen=True)
class Late:
    """How the finished sum of a fused step's products is added to the step's other operands. `sum_bits`, `addend_bits`:
    F of the finished sum and of the others, which are aligned at the largest exponent m among them. `align`: how bits
    below the last place kept are rounded. `cut`: significant bits to which the new sum is rounded. `reach`: an operand
    more than this many places below m vanishes."""

    sum_bits: int
    addend_bits: int
    align: Mode
    cut: int | None = None
    reach: int | None = None


@dataclass(frozen=True)
class Step:
    """The arithmetic of the steps of one role. `fraction_bits`: F of a fused sum; None for an exact sum. `least`: the
    least exponent at which its terms are aligned, beyond all products where they are kept in fixed point (with F, as
    much larger as it takes where there are other terms). `groups`:
    products that are summed first. `rounded`: whether the sum is rounded to a format. `leaves`: the rounding of the
    result where it is an operand of a step of another role; None: no further rounding. `negated`: the terms are added
    with their signs changed, and the sign of the rounded sum is changed back; `how` is the rounding of the sum of the
    terms themselves. Exact cancellation then gives -0 when rounding to nearest. `cancels`: a sum that is not rounded
    counts as a zero in the next alignment where its terms cancel."""

    how: How = How()
    fraction_bits: int | None = None
    align: Mode = "toward_zero"
    sticky: bool = False
    carry_bits: int | None = None
    zeros: int | None = None
    least: int | None = None
    groups: Groups = ""
    late: Late | None = None
    rounded: bool = True
    leaves: How | None = None
    negated: bool = False
    cancels: bool = False


@dataclass(frozen=True)
class Store:
    """The running sum of the root's chain is also rounded, as `how` says, after every `every` steps."""

    every: int
    how: How


@dataclass(frozen=True)
class Choices:
    """Everything that a unit needs beside its summation tree. `tree`: the index of the tree, where several are
    possible. `steps`: by role.

    `start`: how a step that adds two products, the first of a chain, begins: "pair": both in one sum; "first": the
    first is rounded before the second is added; "zero": the first is added to +0, and a fused sum of products alone
    includes +0; "second", "zero_second": as "first" and "zero", with the second product first. `products`: how products
    are rounded before they are added (None: they are exact); `unrounded`: the roles of steps whose products are exact
    all the same; `fused`: products that are. `normalised`: what counts in an alignment with the exponent of its leading
    bit, even if that of its format is larger, or a product's is not its factors'; of "factors" the subnormal ones do,
    and of "numbers" these and c and sums so far. `zeros`: of a product with a zero factor, whatever the other one is
    ("": as IEEE 754 has it; "-0" in a sum is as if it were left out). `limit`: a product of magnitude 2^limit or more
    is infinite. `convert`: a further rounding of the last step's result, to the format of d. `a`, `b`, `c`: how
    subnormals are read, those of b as of a where it is None. `parts`: which bits of a and b are multiplied. `scaled`:
    what a device multiplies by a power of two: terms before they are added, or the largest sums of which all terms
    count with one. `addend`: how c is rounded after it is multiplied by one (None: it is exact). `odd`: products that
    keep other fraction bits than those beside them, and how many more (fewer if negative). `unshown`: the roundings
    whose modes no answer has told apart; these choices stand for those with any modes there.
    """

    tree: int = 0
    steps: tuple[Step, ...] = (Step(),)
    start: Start = "pair"
    products: How | None = None
    unrounded: frozenset[int] = frozenset()
    fused: frozenset[int] = frozenset()
    normalised: Normalised = ""
    zeros: Zeros = ""
    limit: int | None = None
    convert: How | None = None
    a: Subnormals = "keep"
    b: Subnormals | None = None
    c: Subnormals = "keep"
    positive_zeros: bool = False
    store: Store | None = None
    parts: Parts = UNSPLIT
    scaled: Scaled = "terms"
    addend: How | None = None
    odd: Odd | None = None
    unshown: frozenset[Place] = frozenset()

    def hows(self) -> dict[Place, How]:
        """Every rounding, by its place."""
        found: dict[Place, How | None] = {role: step.how for role, step in enumerate(self.steps)}
        found |= {
            "products": self.products,
            "addend": self.addend,
            "convert": self.convert,
            "store": None if self.store is None else self.store.how,
        }
        found |= {("leaves", role): step.leaves for role, step in enumerate(self.steps)}
        return {place: how for place, how in found.items() if how is not None}

    def with_hows(self, hows: Mapping[Place, How]) -> Choices:
        """The choices with other roundings at these places."""
        steps = tuple(
            replace(step, how=hows.get(role, step.how), leaves=hows.get(("leaves", role), step.leaves))
            for role, step in enumerate(self.steps)
        )
        store = self.store and replace(self.store, how=hows.get("store", self.store.how))
        products, addend = hows.get("products", self.products), hows.get("addend", self.addend)
        convert = hows.get("convert", self.convert)
        return replace(self, steps=steps, products=products, addend=addend, convert=convert, store=store)

    @property
    def fuses(self) -> bool:
        """Whether any step aligns its terms."""
        return any(step.fraction_bits is not None for step in self.steps)

    @property
    def last(self) -> Place:
        """Where the result is rounded."""
        return 0 if self.convert is None else "convert"


class Drafter:
    """Drafts units of one tree. `plain`: without loops, for a tree of few leaves."""

    def __init__(self, part: Part, asked: Signature, plain: bool = False) -> None:
        self.root, self.asked, self.roles, self.turns = part.root, asked, part.roles, part.turns
        self.plain = plain or asked.scale is not None
        self.outliner = Outliner(part.root) if not self.plain else None
        self.adder, self.weights, self.scaled = adders_of(part), part.weights, part.scaled
        self.inside = {leaf for node in nodes_of(part.root) if id(node) in part.scaled for leaf in leaves_of(node)}
        self._chains: dict[int, tuple[Sum | Leaf, list[Stretch]]] = {}

    def unit(self, choices: Choices) -> Unit:
        """The unit of some choices. Raises ParameterError where they exclude each other, and TooDeepError."""
        asked, parts, found = self.asked, choices.parts, None
        if parts.passes == "whole" and not (isinstance(self.root, Sum) and "c" in leaves_of(self.root)):
            raise ParameterError("passes", "there is no c for the result of another one")
        for pairs in [(pair,) for pair in parts.pairs] if parts.passes == "whole" else [parts.pairs]:
            found = self._result(_Draft(self, choices, pairs, found))
        assert found is not None
        return Unit(
            asked.a, asked.b, asked.c, asked.length, found, asked.scale, asked.scale_block if asked.scale else 0
        )

    def _result(self, draft: _Draft) -> Node:
        found, convert = draft.value(self.root, (), 1, 0), draft.choices.convert
        if isinstance(self.root, Sum) and draft.multiplies(self.root):
            found = draft.multiplied(found, self.root)
        if convert is not None:
            return draft.made(found, convert)
        return found if isinstance(found, (Round, Repeat)) else draft.made(found, draft.choices.steps[0].how)

    def stretches(self, branch: Sum) -> tuple[Sum | Leaf, list[Stretch]]:
        """The start of a chain, and its steps in stretches, each with the period of its repetition."""
        assert self.outliner is not None
        if id(branch) not in self._chains:
            start, steps = self.outliner.steps(branch)
            found: list[Stretch] = []
            while steps:
                length, period = max((self._repeats(steps, period) * period, -period) for period in PERIODS)
                found.append((-period, steps[:length]))
                steps = steps[length:]
            self._chains[id(branch)] = start, found
        return self._chains[id(branch)]

    def _repeats(self, steps: Sequence[Added], period: int) -> int:
        """How many times the pattern of the first `period` steps occurs in succession, its products shifted by one
        constant stride. Fewer than REPEATED times count as 1 for a period of 1, and as 0 for longer ones."""
        assert self.outliner is not None
        first, shape, distances = self.outliner.first, self.outliner.shape, set()
        count = period
        for (node, added), (later, others) in zip(steps, steps[period:], strict=False):
            if node.kind != later.kind or [*map(shape, added)] != [*map(shape, others)] or "c" in added:
                break
            if self.weighs(added) != self.weighs(others) or (id(node) in self.scaled) != (id(later) in self.scaled):
                break
            distances |= {first(y) - first(x) for x, y in zip(added, others, strict=True)}
            if len(distances) > 1:
                break
            count += 1
        return count // period if count // period >= REPEATED else int(period == 1)

    def weighs(self, branches: Iterable[Sum | Leaf]) -> list[Power]:
        """The weights of the leaves of some branches."""
        if not self.weights:
            return []
        return [self.weights.get(leaf, ADDED) for branch in branches for leaf in leaves_of(branch)]


class _Draft:
    """`pairs`: the parts of a and b that are multiplied. `before`: what stands in place of c (None: c itself)."""

    def __init__(self, drafter: Drafter, choices: Choices, pairs: Sequence[Pair], before: Node | None) -> None:
        self.drafter, self.choices, self.pairs, self.before = drafter, choices, pairs, before
        self.odd: dict[Node, int] = {}  # terms that keep more fraction bits than their step's, or fewer

    @property
    def passes(self) -> Sequence[Sequence[Pair]]:
        """The parts that are multiplied, apart for each time that a step is made."""
        return [(pair,) for pair in self.pairs] if self.choices.parts.passes == "steps" else [self.pairs]

    def does(self, node: Sum) -> Step:
        """The arithmetic of a step of the tree."""
        return self.choices.steps[self.drafter.roles[id(node)]]

    def multiplies(self, branch: Sum) -> bool:
        """Whether sums are multiplied by powers of two, and all terms of this one count with one."""
        return self.choices.scaled == "sums" and id(branch) in self.drafter.scaled

    def multiplied(self, value: Node, branch: Sum) -> Node:
        return shifted(value, shift_of(leaves_of(branch), self.drafter.weights) or 0)

    def weighed(self, term: Node, leaf: Leaf) -> Node:
        """A term with its power of two, where terms have theirs."""
        if self.choices.scaled == "sums" and leaf in self.drafter.inside:
            return term
        return shifted(term, self.drafter.weights.get(leaf, ADDED)[1])

    def value(self, branch: Sum | Leaf, loop: Loop, level: int, depth: int) -> Node:
        """The expression of a branch. `loop`: level and stride of each enclosing loop that shifts the branch's
        products; `level`: of the next loop inside; `depth`: of nested steps. Raises TooDeepError."""
        if depth > DEEPEST:
            raise TooDeepError
        if not isinstance(branch, Sum):
            return self.term(branch, loop)
        if self.drafter.plain:
            return self.step(branch, branch.children, None, loop, level, depth)
        start, stretches = self.drafter.stretches(branch)
        if not stretches:
            return self.step(branch, branch.children, None, loop, level, depth)
        if all(len(steps) < REPEATED for _, steps in stretches) and len(stretches) + depth > DEEPEST:
            raise TooDeepError
        found, number, below = None, 0, start
        for period, stretch in stretches:
            for _, alike in groupby(stretch, key=self.does_then):
                steps = list(alike)
                last, alone = steps[-1][0], False
                if found is None:
                    found, steps = self.begun(start, steps, loop, level, depth)
                    alone = self.choices.start in SWAPPED  # the first step now adds the product before the others
                while steps:
                    count = len(steps) // period * period if len(steps) >= REPEATED * period and not alone else 1
                    alone = False
                    node, added = steps[0]
                    found = self.joined(found, below, node, added)
                    if count > 1:
                        found = self.repeated(found, steps[:count], period, loop, level, depth)
                    else:
                        number += 1
                        if depth + number > DEEPEST:
                            raise ParameterError("steps", f"more than {DEEPEST} within one another do not repeat")
                        found = self.step(node, added, found, loop, level, depth + number)
                    below, steps = steps[count - 1][0], steps[count:]
                below = last
        assert found is not None
        return found

    def does_then(self, step: Added) -> tuple[Step, int, list[tuple[bool, bool]]]:
        """The arithmetic of a step of a chain, how many times the running sum has been stored before it, and which of
        its products keep other fraction bits, or are exact where others are not."""
        fused, odd = self.choices.fused, frozenset[int]() if self.choices.odd is None else self.choices.odd[0]
        leaves = (leaf for branch in step[1] for leaf in leaves_of(branch)) if fused or odd else ()
        return self.does(step[0]), self.stored(step[1]), [(leaf in odd, leaf in fused) for leaf in leaves]

    def stored(self, branches: Iterable[Sum | Leaf]) -> int:
        """How many times the running sum has been stored before the last of these branches is added."""
        store = self.choices.store
        if store is None:
            return 0
        return max(self.drafter.turns[leaf] for branch in branches for leaf in leaves_of(branch)) // store.every

    def joined(self, value: Node, branch: Sum | Leaf, node: Sum, added: Sequence[Sum | Leaf]) -> Node:
        """The value of a branch as an operand of the step `node`, which adds `added` to it: rounded further where the
        roles differ or the running sum is stored in between."""
        if isinstance(branch, Sum):
            leaves = self.does(branch).leaves
            if leaves is not None and self.drafter.roles[id(branch)] != self.drafter.roles[id(node)]:
                value = self.made(value, leaves)
            if self.multiplies(branch) and not self.multiplies(node):
                value = self.multiplied(value, branch)
        store = self.choices.store
        if store is not None and self.stored([branch]) < self.stored(added):
            value = self.made(value if isinstance(branch, Sum) else self.total(node, (value,)), store.how)
        return value

    def begun(
        self, start: Sum | Leaf, steps: list[Added], loop: Loop, level: int, depth: int
    ) -> tuple[Node, list[Added]]:
        """The expression with which a chain begins, and the steps that follow."""
        node, added = steps[0]
        other = added[0]
        if isinstance(start, Sum) or start == "c" or node.kind != "binary" or isinstance(other, Sum):
            return self.value(start, loop, level, depth + 1), steps
        if self.choices.start in SWAPPED and other != "c":
            start, steps = other, [(node, (start,)), *steps[1:]]
        if self.choices.start == "zero" and self._goes_on(start, steps):
            return Constant(), [(node, (start,)), *steps]
        zero = [Constant()] if self.choices.start in ("zero", "zero_second") else []
        if self.choices.start == "pair":
            return self.term(start, loop), steps
        return self.in_passes(node, [start], zero, loop, level), steps

    def in_passes(self, node: Sum, leaves: Sequence[int], others: Sequence[Node], loop: Loop, level: int) -> Node:
        """The products of a step and its other operands, added at once; or once for every pair of parts."""
        for pairs in self.passes if leaves else [self.pairs]:
            others = [self.total(node, (*self.products(leaves, loop, level, pairs), *others))]
        return others[0]

    def _goes_on(self, start: Leaf, steps: Sequence[Added]) -> bool:
        """Whether the first product continues the stride of the products in the next REPEATED steps, so that one loop
        can add all of them."""
        numbers = [start, *(added[0] for _, added in steps[:REPEATED])]
        if self.drafter.outliner is None or len(steps) < REPEATED:
            return False
        if start == "c" or any(isinstance(k, Sum) or k == "c" for k in numbers):
            return False
        if len(set(self.drafter.weighs(numbers))) > 1:
            return False
        firsts = [self.drafter.outliner.first(k) for k in numbers]
        return len({later - earlier for earlier, later in pairwise(firsts)}) == 1

    def repeated(self, start: Node, steps: Sequence[Added], period: int, loop: Loop, level: int, depth: int) -> Node:
        assert self.drafter.outliner is not None
        first = self.drafter.outliner.first
        base = first(steps[0][1][0])
        stride = first(steps[period][1][0]) - base
        places = [base + number * stride for number in range(len(steps) // period)]
        shifted = _Shifted(self, base)
        body: Node = Running(level)
        for number, (node, added) in enumerate(steps[:period]):
            body = shifted.joined(body, steps[number - 1][0], node, added) if number else body
            body = shifted.step(node, added, body, (*loop, (level, 1)), level + 1, depth + 1)
        return Repeat(level, places_of(places), start, body)

    def step(
        self, node: Sum, added: Sequence[Sum | Leaf], running: Node | None, loop: Loop, level: int, depth: int
    ) -> Node:
        """One step: the running sum (None: there is none) plus `added`."""
        leaves = sorted(leaf for leaf in added if isinstance(leaf, int))
        sums = [
            self.joined(self.value(child, loop, level, depth + 1), child, node, added)
            for child in added
            if isinstance(child, Sum)
        ]
        ends: list[Node] = [self.joined(self.term("c", loop), "c", node, added)] if "c" in added else []
        if running is None and self.choices.store is not None and not sums:
            return self.total(
                node, [*ends, *(self.joined(self.term(leaf, loop), leaf, node, added) for leaf in leaves)]
            )
        if running is None and node.kind == "binary" and len(leaves) == 2:
            if self.choices.start == "pair":
                return self.in_passes(node, leaves, [], loop, level)
            begun, [(_, [other])] = self.begun(leaves[0], [(node, (leaves[1],))], loop, level, depth)
            assert isinstance(other, int)
            return self.in_passes(node, [other], [begun], loop, level)
        if running is not None:
            ends = [running, *ends]
        elif node.kind == "fused" and self.choices.start == "zero" and not ends:
            ends = [Constant()]
        does = self.does(node)
        if does.fraction_bits is None or not leaves or (does.late is None and not does.groups):
            return self.in_passes(node, leaves, [*sums, *ends], loop, level)
        return self.made(self.late(does, leaves, [*sums, *ends], loop, level), does.how)

    def late(self, does: Step, leaves: Sequence[int], others: Sequence[Node], loop: Loop, level: int) -> Node:
        """A fused step of two stages: the fused sum of its products, or of each group of them, then the fused sum of
        these totals and the other operands."""
        late, bits = does.late, does.fraction_bits
        assert bits is not None
        group = GROUPED[does.groups]
        parts = [list(part) for _, part in groupby(sorted(leaves, key=group), key=group)]
        totals = [self.fused(does, tuple(self.products(part, loop, level, self.pairs))) for part in parts]
        joining = does.align if late is None else late.align
        if late is None:
            return FusedSum((*totals, *self.counted(others, does)), bits, joining, does.sticky, None, does.zeros)
        total = totals[0] if len(totals) == 1 else FusedSum(tuple(totals), bits, joining, False, None, does.zeros)
        if not others:
            return total
        keeps = (late.sum_bits, *(late.addend_bits for _ in others))
        reach = () if late.reach is None else (None, *(late.reach for _ in others))
        found: Node = FusedSum((total, *self.counted(others, does)), keeps, late.align, zeros=does.zeros, reach=reach)
        return found if late.cut is None else Cut(found, late.cut, late.align, self._format(does.how).emin)

    def products(self, leaves: Sequence[int], loop: Loop, level: int, pairs: Sequence[Pair]) -> list[Node]:
        """Products of some parts as terms of a sum: one range (Each) if there are three or more, evenly spaced, without
        scale factors. Products that keep other fraction bits are terms by themselves."""
        if self.choices.odd is not None and not self.choices.odd[0].isdisjoint(leaves):
            odd, more = self.choices.odd
            found: list[Node] = []
            for apart, group in groupby(leaves, key=odd.__contains__):
                part = list(group)
                if not apart:
                    found += self.products(part, loop, level, pairs)
                    continue
                alone = [self.product(leaf, loop, pair) for leaf in part for pair in pairs]
                self.odd |= dict.fromkeys(alone, more)
                found += alone
            return found
        steps = {later - earlier for earlier, later in pairwise(leaves)}
        weighs = len(set(self.drafter.weighs(leaves)))
        if len(leaves) < 3 or len(steps) > 1 or weighs > 1 or self.drafter.asked.scale is not None:
            return [self.product(leaf, loop, pair) for pair in pairs for leaf in leaves]
        places = *loop, (level, steps.pop())
        return [Each(level, range(len(leaves)), self.product(leaves[0], places, pair)) for pair in pairs]

    def term(self, leaf: Leaf, loop: Loop) -> Node:
        choices = self.choices
        if leaf != "c":
            terms = [self.product(leaf, loop, pair) for pair in self.pairs]
            return terms[0] if len(terms) == 1 else ExactSum(tuple(terms))
        if self.before is not None:
            return self.before
        addend: Node = Element("c", None, choices.c, choices.positive_zeros)
        turns = self.drafter.weights.get(leaf, ADDED)[0] < 0
        addend = self.weighed(opposite(addend, self.drafter.asked.c) if turns else addend, leaf)
        return addend if choices.addend is None else self.made(addend, choices.addend)

    def product(self, leaf: int, loop: Loop, pair: Pair) -> Node:
        """The product of two parts."""
        choices, parts, asked = self.choices, self.choices.parts, self.drafter.asked
        index, turns = Index(self.place(leaf), loop), self.drafter.weights.get(leaf, ADDED)[0] < 0
        a: Node = Element("a", index, choices.a, choices.positive_zeros)
        b = Element("b", index, choices.b or choices.a, choices.positive_zeros)
        left = part_of(opposite(a, asked.a) if turns else a, parts.a, pair[0], parts, asked.a)
        right = part_of(b, parts.b, pair[1], parts, asked.b)
        if choices.normalised in ("factors", "numbers"):
            left, right = (self.in_wider(side, fmt) for side, fmt in ((left, asked.a), (right, asked.b)))
        product: Node = Product(left, right, choices.normalised in ("products", "all"), choices.limit)
        if choices.zeros:
            product = Gate(product, choices.zeros == "-0")
        product = self.weighed(product, leaf)
        exact = self.drafter.adder.get(leaf) in choices.unrounded or leaf in choices.fused
        if choices.products is not None and not exact:
            product = self.made(product, choices.products)
        if asked.scale is None:
            return product
        block = Index(leaf // asked.scale_block)
        return Scale(product, Element("scale_a", block), Element("scale_b", block))

    def in_wider(self, factor: Node, fmt: Format) -> Node:
        """A factor in a format in which none is subnormal. Raises ParameterError where there is no such format."""
        for wider in (FORMATS[name] for name in WIDER):
            if wider.emin <= fmt.emin - fmt.fraction and wider.holds(fmt):
                return Round(factor, Rounding(wider))
        raise ParameterError("normalised", f"no format has the subnormal numbers of {fmt.name} as normal ones")

    def place(self, leaf: int) -> int:
        """The index of a product, without the offsets that loops add."""
        return leaf

    # -- sums

    def total(self, node: Sum, terms: Sequence[Node]) -> Node:
        """The sum of terms with the arithmetic of a step, rounded if the step rounds."""
        does = self.does(node)
        if does.negated:
            return self.negated(does, terms)
        total: Node
        if does.fraction_bits is not None:
            total = self.fused(does, terms)
        else:
            total = terms[0] if len(terms) == 1 and not isinstance(terms[0], Each) else ExactSum(tuple(terms))
        if does.rounded:
            return self.made(total, does.how)
        return Cancelling(total) if does.cancels and isinstance(total, FusedSum) else total

    def negated(self, does: Step, terms: Sequence[Node]) -> Node:
        """The sum of the terms with their signs changed, rounded in the mirrored mode, and its sign changed back."""
        if not does.rounded:
            raise ParameterError("negated", "only sums that are rounded are drafted so")
        first, fmt = does.how.first, self._format(does.how)
        how = replace(does.how, mode=mirrored(does.how.mode), first=None if first is None else mirrored(first))
        inverted = tuple(self.opposite(term, fmt) for term in terms)
        if does.fraction_bits is None:
            total: Node = ExactSum(inverted)
        else:
            total = self.fused(replace(does, align=mirrored(does.align)), inverted)
        return opposite(self.made(total, how), fmt)

    def opposite(self, term: Node, fmt: Format) -> Node:
        """A term of a sum with its sign changed."""
        if isinstance(term, Each):
            return replace(term, body=self.opposite(term.body, fmt))
        if isinstance(term, Scale):
            return replace(term, term=self.opposite(term.term, fmt))
        if isinstance(term, Gate):
            return Gate(self.opposite(term.term, fmt), not term.minus_zero)
        if isinstance(term, Product):
            own = self.drafter.asked.a
            return replace(term, left=opposite(term.left, own))
        if not term.is_number:
            raise ParameterError("negated", "a sum that is not rounded has no sign to change")
        return opposite(term, fmt)

    def fused(self, does: Step, terms: Sequence[Node]) -> Node:
        assert does.fraction_bits is not None
        items, bits, least = self.counted(terms, does), does.fraction_bits, does.least
        if least is not None and not all(map(_of_products, terms)):  # fixed point with room for any number
            more = max(0, max(self.drafter.asked.c.emax, self.drafter.asked.d.emax) + 2 - least)
            bits, least = bits + more, least + more
        keeps = tuple(bits + self.odd.get(term, 0) for term in terms)
        whole = keeps[0] if len(set(keeps)) == 1 else keeps
        return FusedSum(items, whole, does.align, does.sticky, does.carry_bits, does.zeros, least)

    def counted(self, terms: Iterable[Node], does: Step) -> tuple[Node, ...]:
        """Terms of an alignment; numbers as normalised products with 1 where they count with their leading bits. Raises
        ParameterError for sums so far that start from c in another format."""
        if self.choices.normalised not in ("all", "numbers"):
            return tuple(terms)
        return tuple(self._normalised(term, does) for term in terms)

    def _normalised(self, term: Node, does: Step) -> Node:
        if isinstance(term, Running):
            if (fmt := self._format(does.how)) != self.drafter.asked.c:
                raise ParameterError("normalised", "a sum so far may be a number of two formats")
            term = Round(term, Rounding(fmt))  # as it is, which makes it a factor
        if isinstance(term, Constant) or not term.is_number:
            return term
        return Product(term, power_of_two(0), True)

    def made(self, term: Node, how: How) -> Node:
        """A term rounded to a format."""
        fmt = self._format(how)
        if how.bits is not None:
            term = Cut(term, how.bits, how.first or how.mode)
        return Round(term, Rounding(fmt, how.mode, how.overflow, how.tiny, how.zero))

    def _format(self, how: How) -> Format:
        return FORMATS[how.format] if how.format else self.drafter.asked.d


class _Shifted(_Draft):
    """Drafts the body of a loop whose variable starts at `base`: the indices of products are relative to `base`."""

    base: int

    def __init__(self, draft: _Draft, base: int) -> None:
        super().__init__(draft.drafter, draft.choices, draft.pairs, draft.before)
        self.base = base + (draft.base if isinstance(draft, _Shifted) else 0)

    def place(self, leaf: int) -> int:
        return leaf - self.base


def _of_products(term: Node) -> bool:
    """Whether a term is a product, or some."""
    return isinstance(term, Product) or (isinstance(term, Each) and isinstance(term.body, Product))


MIRRORED: Mapping[Mode, Mode] = {"up": "down", "down": "up"}


def mirrored(mode: Mode) -> Mode:
    """The mode that rounds -x to the negative of what `mode` rounds x to."""
    return MIRRORED.get(mode, mode)


GROUPED: Mapping[Groups, Callable[[int], int]] = {
    "": lambda k: 0,
    "even_odd": lambda k: k % 2,
    "pairs": lambda k: k // 2,
    "quads": lambda k: k // 4,
}
