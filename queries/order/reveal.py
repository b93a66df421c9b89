"""The order in which a device adds up d = c + sum of a_k * b_k, revealed from its answers alone.

A huge number at one leaf of the sum and its negative at another hide every small unit that is added to either of them
before they cancel: the units that come back count the leaves outside of the step where the two meet (the method of
FPRev). Only formats and length of the device are assumed.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from mmaprobe.documents.identify import OrderStep
from mmaprobe.queries.compare.steady import AGAIN, AGAIN_IN_DOUBT, AskDevice
from mmaprobe.queries.order.ends import Ends, ends_of
from mmaprobe.queries.order.levels import Builder, Inside
from mmaprobe.queries.order.mask_traces import Power
from mmaprobe.queries.order.probe import AskAll, NoTreeError, Probe, Question, Span, UnrevealedError
from mmaprobe.queries.order.structure import bits_of_late_products, has_groups, starts_at_zero, trees_of
from mmaprobe.queries.order.text import Outline, Outliner, shared_text
from mmaprobe.queries.order.tree import (
    KINDS,
    Leaf,
    Node,
    compact,
    has_c,
    leaf_order,
    leaves_of,
    masked_leaves,
    nodes_of,
    pruned,
)  # fmt: skip
from mmaprobe.smtmodel.base.wording import counted
from mmaprobe.smtmodel.evaluate.model import Model
from mmaprobe.smtmodel.nodes.node import walk
from mmaprobe.smtmodel.units.unit import Unit, added_together

__all__ = ["Question", "Tree", "UnrevealedError", "reveal"]

Products = tuple[int, ...]
LISTED = 16  # the most blocks that are listed individually


@dataclass(frozen=True)
class Tree:
    """The findings about a sum.

    `width`: the number of products that share a leaf (a scale block), or 1. `apart`: whether c joins the finished sum
    of the first block's products; None if no answer shows it. `parts`: by the products of a fused step, the groups that
    are summed first, one group if no products are summed first; steps that could not be looked into are missing.
    `span`: the exponents of mask and unit; `places`: their least distance in any question, within which an exact step
    loses nothing. `weights`: sign and exponent of the powers of two by which terms are multiplied, if not all are 1.
    """

    length: int
    root: Node | Leaf
    span: Span
    places: int = 0
    width: int = 1
    apart: bool | None = None
    apart_places: int = 0
    parts: dict[Products, tuple[Products, ...]] = field(default_factory=dict)
    questions: tuple[Question, ...] = ()
    ends: Ends | None = None
    weights: Mapping[Leaf, Power] = field(default_factory=dict)

    @cached_property
    def _steps(self) -> list[tuple[Node | Leaf, ...]]:
        """The branches that each step of the chain adds to the running sum, the first step first; c is left out."""
        steps: list[tuple[Node | Leaf, ...]] = []
        node = self._chain
        while isinstance(node, Node):
            running = self._running(node)
            steps.append(tuple(child for child in node.children if child is not running and child != "c"))
            node = running if running is not None else "c"
        if isinstance(node, int):
            steps.append((node,))
        single = all(len(step) == 1 and isinstance(step[0], int) for step in steps[:-1])
        if len(steps) > 1 and single and len(steps[-1]) == 2:  # a chain of single products starts with two
            return [(child,) for child in steps[-1]] + steps[-2::-1]
        return steps[::-1]

    def _running(self, node: Node) -> Node | Leaf | None:
        """The child that holds the running sum: the child with c, else the only child that is a sum."""
        if node.has_c:
            return next(filter(has_c, node.children))
        sums = [child for child in node.children if isinstance(child, Node)]
        return sums[0] if len(sums) == 1 else None

    @property
    def _after(self) -> bool:
        root = self.root
        return isinstance(root, Node) and len(root.children) == 2 and "c" in root.children and root.size > 2

    @property
    def _chain(self) -> Node | Leaf:
        """The tree, without c if c joins at the end."""
        if not self._after or not isinstance(self.root, Node):
            return self.root
        return next(child for child in self.root.children if child != "c")

    def blocks(self) -> tuple[Products, ...]:
        """The products of each step of the chain, in order; their order within a step is not revealed."""
        runs = []
        for step in self._steps:
            leaves = sorted(leaf_order(leaf) for child in step for leaf in leaves_of(child))
            runs.append(tuple(k for first in leaves for k in range(first, first + self.width)))
        return tuple(runs)

    @property
    def addend(self) -> Literal["fused", "late", "after"] | None:
        """The place at which c enters: "fused": with the products of the first block; "late": after their sum; "after":
        after all blocks (with one block, the same as "late"). None: fused or late."""
        if self._after:
            return "after"
        node = self.root
        while isinstance(node, Node) and "c" not in node.children:
            node = next(filter(has_c, node.children))
        assert isinstance(node, Node)
        others = [child for child in node.children if child != "c"]
        if len(others) == 1 and isinstance(others[0], Node):
            return "late"
        if node.kind != "fused":
            return "fused"
        return None if self.apart is None else "late" if self.apart else "fused"

    def admits(self, unit: Unit) -> bool:
        """Whether a unit's structure can give these answers; its other parameters do not count."""
        if unit.length != self.length:
            return False
        kept, shown = self._shown
        trees = (pruned(tree, kept) for tree in trees_of(unit, self.span.bits, len(kept)))
        fits = any(tree is not None and np.array_equal(masked_leaves(tree), shown) for tree in trees)
        return fits and self._admits_addend(unit) and self._admits_groups(unit)

    @cached_property
    def _shown(self) -> tuple[frozenset[Leaf], NDArray[np.int16]]:
        return frozenset(leaves_of(self.root)), masked_leaves(self.root)

    def _admits_addend(self, unit: Unit) -> bool:
        if self.apart is None or starts_at_zero(unit):
            return True
        kept = bits_of_late_products(unit)
        visible = kept is not None and kept >= self.apart_places
        return (kept is not None) == self.apart or (kept is not None and not visible)

    def _admits_groups(self, unit: Unit) -> bool:
        if has_groups(walk(unit.result)):  # a mask in a group hides more or less, depending on the operands
            return True
        parts = added_together(unit)
        for block in unit.blocks:
            seen = self.parts.get(tuple(sorted(block)))
            own = {part for part in parts if part <= set(block)}
            whole = sum(map(len, own)) == len(block) == len(set().union(*own))
            if seen is not None and seen != tuple(sorted(tuple(sorted(part)) for part in (own if whole else {block}))):
                return False
        return True

    # -- as text and for files

    def outline(self) -> Outline:
        """The tree in few lines."""
        return Outliner(self.root, self.width, self.parts, bool(self.apart)).outline()

    def steps(self) -> list[OrderStep]:
        """Every step, in the order of computation, with the products, c and the numbers of earlier steps that it
        adds."""
        steps: list[OrderStep] = []
        numbers: dict[int, int] = {}
        for node in nodes_of(self.root):
            numbers[id(node)] = len(steps)
            sums = [numbers[id(child)] for child in node.children if isinstance(child, Node)]
            leaves = [child for child in node.children if not isinstance(child, Node)]
            steps.append(OrderStep(kind=node.kind, terms=leaves, steps=sums))
        return steps

    def draw(self) -> list[str]:
        """The tree as lines of text, and the other findings."""
        lines = self.outline().lines()
        blocks = self.blocks()
        if len(blocks) > 1:
            lines.append("blocks: " + " then ".join(_listed(blocks)))
        lines.append(f"addend: {self.addend or 'fused or late: no answer shows it'}")
        if self.width > 1:
            lines.append(shared_text(self.width))
        if KINDS["exact"] in "\n".join(lines):
            lines.append(f"without loss: within the {self.places} places that the formats allow to see")
        lines.append(counted(len(self.questions), "question"))
        return lines


def reveal(
    ask: AskAll,
    model: Model,
    thorough: bool = False,
    again: AskDevice | None = None,
    addend: bool = True,
    ends: bool = False,
    asked_again: int | None = AGAIN,
    without: Collection[int] = (),
    any_factor: bool = False,
) -> Tree:
    """The summation tree of the device behind `ask`. `model` gives formats, length and scale factors only.

    `addend`: whether the device takes c. `ends`: ask also where the sum starts, which products are rounded, and which
    products are not in the sum: such products are no leaves of the tree, nor are the products of `without`. `thorough`:
    ask every pair of leaves. `again`: repeats questions, for a device that may contradict itself: `asked_again` of them
    at the end, None for all. `any_factor`: all terms may be multiplied by a number that is no power of two, whose
    roundings hide some steps: the tree is then a guess. Raises UnrevealedError, with the questions, if the answers fit
    no tree or the formats' range is too narrow (scale blocks are leaves only where products cannot be), and
    ContradictionError.
    """
    probe = Probe(ask, model, again=again, addend=addend, missing=ends, without=without, any_factor=any_factor)
    if model.scale is not None and model.scales > 1 and probe.widest() < probe.needed:
        probe = Probe(ask, model, model.scale_block, again, addend, any_factor=any_factor)
    try:
        root, inside = _root(probe, thorough, ends)
    except UnrevealedError:
        probe.stand_by(AGAIN_IN_DOUBT)
        raise
    row_ends = ends_of(probe, root) if ends else None
    probe.stand_by(len(probe.questions) if asked_again is None else asked_again)
    return Tree(
        length=model.length,
        root=root,
        span=probe.span,
        places=probe.places,
        width=probe.width,
        apart=inside.apart,
        apart_places=inside.places,
        parts=inside.parts,
        questions=tuple(probe.questions),
        ends=row_ends,
        weights=probe.weights,
    )


def _root(probe: Probe, thorough: bool, ends: bool) -> tuple[Node | Leaf, Inside]:
    """The tree and what is within its fused steps. If the answers for large masks fit no tree, smaller masks are tried,
    but not if units were hidden in part: the device then keeps about as many places as there are, and smaller masks
    show fewer places. Raises UnrevealedError."""
    failed: UnrevealedError | None = None
    while True:
        try:
            probe.calibrate()
        except UnrevealedError as narrow:
            raise probe.fail(failed.reason) if failed else narrow from None
        if ends:  # every question is asked again; the first masks show an order that is drawn anew for each result
            probe.stand_by(AGAIN)
        try:
            return _looked_into(probe, Builder(probe, thorough))
        except UnrevealedError as error:
            failed = error
        if not (probe.beyond or isinstance(failed, NoTreeError)) or not probe.lower():
            raise failed


def _looked_into(probe: Probe, builder: Builder) -> tuple[Node | Leaf, Inside]:
    """The tree and what is within its fused steps. The tree is built again if a mask within such a step spares a unit
    of the step."""
    while True:
        root, inside = builder.tree(), Inside(probe)
        if probe.width == 1:
            inside.look(root)
        unsure = list(inside.unsure(root))
        back = probe.come_back([(pair, [leaf], probe.span.bits) for pair, leaf, _ in unsure])
        spared = [(pair, size) for (pair, _, size), came in zip(unsure, back, strict=True) if came]
        if not spared:
            return root, inside
        probe.ask_pairs(pair for pair, _ in spared)
        if all(probe.lost(*pair) == size for pair, size in spared) and not probe.count_singly():
            one, other = spared[0][0]
            raise NoTreeError(f"a mask at {one} and {other} hides a step, but no unit in it", tuple(probe.questions))


def _listed(blocks: tuple[Products, ...]) -> list[str]:
    """The blocks in words; of many blocks in the usual order, only the first two and the last."""
    usual = [k for block in blocks for k in block] == list(range(len(blocks) * len(blocks[0])))
    names = [compact(block) for block in blocks]
    return names if len(names) <= LISTED or not usual else [*names[:2], "...", names[-1]]
