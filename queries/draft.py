"""Units drafted from a summation tree: the tree gives the steps, a few choices say what each of them does."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

from queries.summation_text import Outliner
from queries.summation_tree import Leaf
from queries.summation_tree import Node as Sum
from smtmodel.formats import FORMATS
from smtmodel.nodes import (
    Constant,
    Cut,
    Each,
    Element,
    ExactSum,
    FusedSum,
    Index,
    Node,
    Product,
    Repeat,
    Round,
    Running,
)
from smtmodel.nodes.element import Subnormals
from smtmodel.nodes.repeat import places_of
from smtmodel.nodes.round import Rounding, Tiny, Zero
from smtmodel.rounding import Mode, Overflow
from smtmodel.signature import Signature
from smtmodel.unit import Unit

Start = Literal["pair", "first", "zero", "second", "zero_second"]
STARTS: tuple[Start, ...] = ("pair", "first", "zero")
SWAPPED: tuple[Start, ...] = ("second", "zero_second")
REPEATED = 3  # alike steps that are written as a loop
DEEPEST = 150  # steps within steps that a unit can have without a loop


class TooDeepError(Exception):
    """A tree without repetition, of more steps than can stand within each other."""


@dataclass(frozen=True)
class Choices:
    """What a tree leaves open. `tree`: which one, where the order itself is open.

    `start`: how a step begins that adds two products: both at once; the `first` rounded, or added to +0 (`zero`); or
    the second. `products`: rounded before they are added. `mode` and `format` of the last rounding, `inner` of those
    before. `cut`: every sum is first rounded to the bits of its format with unbounded exponent. F and what belongs to
    it are of fused steps; `late`: F of a step that adds c to a finished sum.
    """

    tree: int = 0
    start: Start = "pair"
    products: bool = False
    mode: Mode = "nearest_even"
    inner: Mode = "nearest_even"
    format: str = ""
    inner_format: str = ""
    fraction_bits: int = 24
    align: Mode = "toward_zero"
    sticky: bool = False
    zeros: int | None = None
    a: Subnormals = "keep"
    c: Subnormals = "keep"
    positive_zeros: bool = False
    tiny: Tiny = "keep"
    cut: bool = False
    zero: Zero = "ieee"
    overflow: Overflow = "ieee"
    nan: int | None = None


class Drafter:
    """Drafts units of one tree. Raises TooDeepError."""

    def __init__(self, root: Sum | Leaf, asked: Signature) -> None:
        self.root, self.asked = root, asked
        self.outliner = Outliner(root)
        self._chains: dict[int, tuple[Sum | Leaf, list[list[tuple[Sum, tuple[Sum | Leaf, ...]]]]]] = {}

    def unit(self, choices: Choices) -> Unit:
        """The unit of some choices. Raises ParameterError where they exclude each other."""
        found = _Draft(self, choices).value(self.root, (), 1, 0, True)
        if not isinstance(found, (Round, Repeat)):
            found = _Draft(self, choices).rounded((found,), True)
        asked = self.asked
        return Unit(asked.a, asked.b, asked.c, asked.length, found)

    def runs(self, branch: Sum) -> tuple[Sum | Leaf, list[list[tuple[Sum, tuple[Sum | Leaf, ...]]]]]:
        """What a chain starts from, and its runs of alike steps."""
        if id(branch) not in self._chains:
            start, steps = self.outliner.steps(branch)
            self._chains[id(branch)] = start, self.outliner.runs(steps)
        return self._chains[id(branch)]


class _Draft:
    def __init__(self, drafter: Drafter, choices: Choices) -> None:
        self.drafter, self.choices = drafter, choices
        asked = drafter.asked

        def rounding(name: str, mode: Mode) -> Rounding:
            fmt = FORMATS[name] if name else asked.d
            return Rounding(fmt, mode, choices.overflow, choices.tiny, choices.zero, choices.nan)

        self.last, self.before = rounding(choices.format, choices.mode), rounding(choices.inner_format, choices.inner)

    def value(self, branch: Sum | Leaf, loop: tuple[tuple[int, int], ...], level: int, depth: int, last: bool) -> Node:
        """A branch as a node; `loop`: the loops that shift its products; `last`: its result is the unit's."""
        if depth > DEEPEST:
            raise TooDeepError
        if not isinstance(branch, Sum):
            return self.term(branch, loop)
        start, runs = self.drafter.runs(branch)
        if not runs:
            return self.step(branch, branch.children, None, loop, level, depth, last)
        if all(len(run) < REPEATED for run in runs) and len(runs) + depth > DEEPEST:
            raise TooDeepError
        found = None
        for number, run in enumerate(runs):
            ending = last and number == len(runs) - 1
            steps = list(run)
            if found is None:
                found, steps = self.begun(start, steps, loop, level, depth, ending)
            if len(steps) >= REPEATED:
                found = self.repeated(found, steps, loop, level, depth, ending)
                continue
            for place, (node, added) in enumerate(steps):
                over = ending and place == len(steps) - 1
                found = self.step(node, added, found, loop, level, depth + number + place + 1, over)
        assert found is not None
        return found

    def begun(
        self, start: Sum | Leaf, steps: list[tuple[Sum, tuple[Sum | Leaf, ...]]], loop: tuple[tuple[int, int], ...],
        level: int, depth: int, ending: bool,
    ) -> tuple[Node, list[tuple[Sum, tuple[Sum | Leaf, ...]]]]:  # fmt: skip
        """What a chain begins with, and the steps that are left."""
        node, added = steps[0]
        other = added[0]
        if isinstance(start, Sum) or start == "c" or node.kind != "binary" or isinstance(other, Sum):
            return self.value(start, loop, level, depth + 1, False), steps
        if self.choices.start in SWAPPED and other != "c":
            start, steps = other, [(node, (start,)), *steps[1:]]
        if self.choices.start == "zero" and self._goes_on(start, steps):
            return Constant(), [(Sum("binary", (start, start)), (start,)), *steps]
        first: Node = self.term(start, loop)
        if self.choices.start in ("zero", "zero_second"):
            first = self.rounded((Constant(), first), False)
        elif self.choices.start != "pair":
            first = self.rounded((first,), False)
        return first, steps

    def _goes_on(self, start: Leaf, steps: Sequence[tuple[Sum, tuple[Sum | Leaf, ...]]]) -> bool:
        """Whether the first product stands where a loop over the others would have the place before them."""
        numbers = [start, *(added[0] for _, added in steps[:REPEATED])]
        if len(steps) < REPEATED or start == "c" or any(isinstance(k, Sum) or k == "c" for k in numbers):
            return False
        firsts = [self.drafter.outliner.first(k) for k in numbers]
        return len({later - earlier for earlier, later in pairwise(firsts)}) == 1

    def repeated(
        self, start: Node, steps: Sequence[tuple[Sum, tuple[Sum | Leaf, ...]]], loop: tuple[tuple[int, int], ...],
        level: int, depth: int, last: bool,
    ) -> Node:  # fmt: skip
        first = self.drafter.outliner.first
        node, added = steps[0]
        base = first(added[0])
        stride = first(steps[1][1][0]) - base
        places = [base + number * stride for number in range(len(steps))]
        shifted = _Shift(base)
        body = self.step(node, added, Running(level), (*loop, (level, 1)), level + 1, depth + 1, last, shifted)
        return Repeat(level, places_of(places), start, body)

    def step(
        self, node: Sum, added: Sequence[Sum | Leaf], running: Node | None, loop: tuple[tuple[int, int], ...],
        level: int, depth: int, last: bool, shift: _Shift | None = None,
    ) -> Node:  # fmt: skip
        """One step: the sum so far, if there is one, and what is added."""
        draft = self if shift is None else _Shifted(self, shift)
        leaves = sorted(leaf for leaf in added if isinstance(leaf, int))
        terms: list[Node] = [
            draft.value(child, loop, level, depth + 1, False) for child in added if isinstance(child, Sum)
        ]
        products = draft.products(leaves, loop, level)
        ends: list[Node] = [draft.term("c", loop)] if "c" in added else []
        if running is None and node.kind == "binary" and len(leaves) == 2:
            begun, rest = draft.begun(leaves[0], [(node, (leaves[1],))], loop, level, depth, last)
            return draft.rounded((begun, draft.value(rest[0][1][0], loop, level, depth, False)), last)
        start = [] if running is None else [running]
        if node.kind == "fused":
            if running is None and self.choices.start == "zero" and not ends:
                start = [Constant()]
            return draft.fused((*products, *terms, *start, *ends), last)
        return draft.rounded((*products, *terms, *start, *ends), last)

    def products(self, leaves: Sequence[int], loop: tuple[tuple[int, int], ...], level: int) -> list[Node]:
        """Products as terms of a sum: one range of them where they are evenly spaced."""
        steps = {later - earlier for earlier, later in pairwise(leaves)}
        if len(leaves) < 3 or len(steps) > 1:
            return [self.term(leaf, loop) for leaf in leaves]
        inner = self.term(leaves[0], (*loop, (level, steps.pop())))
        return [Each(level, range(len(leaves)), inner)]

    def term(self, leaf: Leaf, loop: tuple[tuple[int, int], ...]) -> Node:
        choices = self.choices
        if leaf == "c":
            return Element("c", None, choices.c, choices.positive_zeros)
        index = Index(leaf, loop)
        left, right = (Element(side, index, choices.a, choices.positive_zeros) for side in ("a", "b"))
        product: Node = Product(left, right)
        return Round(product, self.before) if choices.products else product

    def rounded(self, terms: tuple[Node, ...], last: bool) -> Node:
        """The exact sum of terms, rounded."""
        how = self.last if last else self.before
        total: Node = terms[0] if len(terms) == 1 and not isinstance(terms[0], Each) else ExactSum(terms)
        if self.choices.cut:
            total = Cut(total, how.format.precision, how.mode)
        return Round(total, how)

    def fused(self, terms: tuple[Node, ...], last: bool) -> Node:
        choices, how = self.choices, self.last if last else self.before
        total: Node = FusedSum(terms, choices.fraction_bits, choices.align, choices.sticky, None, choices.zeros)
        if choices.cut:
            total = Cut(total, how.format.precision, how.mode)
        return Round(total, how)


@dataclass(frozen=True)
class _Shift:
    """In a loop whose variable starts at `base` products stand where they would without it."""

    base: int


class _Shifted(_Draft):
    def __init__(self, draft: _Draft, shift: _Shift) -> None:
        super().__init__(draft.drafter, draft.choices)
        self.base = shift.base + (draft.base if isinstance(draft, _Shifted) else 0)

    base: int = 0

    def term(self, leaf: Leaf, loop: tuple[tuple[int, int], ...]) -> Node:
        return super().term(leaf if leaf == "c" else leaf - self.base, loop)
