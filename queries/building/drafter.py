"""Units made from a summation tree and a draft: the tree gives the steps, the draft the expression of each step."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import groupby

from mmaprobe.queries.building.draft import (
    FACTORS,
    OTHERS,
    PRODUCTS,
    TERMS,
    Draft,
    Groups,
    Hole,
    Step,
    changed,
    rounded,
)
from mmaprobe.queries.building.parts import Pair, part_of
from mmaprobe.queries.building.roles import RoledTree, adders_of
from mmaprobe.queries.building.weights import ADDED, negated_number, power_of_two, shift_of, times_power_of_two
from mmaprobe.queries.order.mask_traces import Power
from mmaprobe.queries.order.text import Outliner
from mmaprobe.queries.order.tree import Leaf, leaves_of, nodes_of, stride_of
from mmaprobe.queries.order.tree import Node as Sum
from mmaprobe.smtmodel.arithmetic.formats import Format
from mmaprobe.smtmodel.arithmetic.rounding import Mode, is_stochastic
from mmaprobe.smtmodel.base.errors import ParameterError
from mmaprobe.smtmodel.inputs.signature import Signature
from mmaprobe.smtmodel.nodes import (
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
from mmaprobe.smtmodel.nodes import Sum as WholeSum
from mmaprobe.smtmodel.nodes.repeat import places_of
from mmaprobe.smtmodel.nodes.rewriting import replaced, with_operands
from mmaprobe.smtmodel.nodes.round import Rounding
from mmaprobe.smtmodel.units.unit import Unit

REPEATED = 3  # repetitions that make a loop, at least
PERIODS = (1, 2, 3, 4, 8)  # lengths of repeated patterns that a chain is searched for
DEEPEST = 75  # nested steps without a loop, at most: a step takes about ten nested calls of Python
SWAPPED = ("second", "zero_second")  # starts that begin with the second product

Added = tuple[Sum, tuple[Sum | Leaf, ...]]  # a step of a chain, and the branches added
Stretch = tuple[int, list[Added]]  # a period, and the steps that repeat with it
Loop = tuple[tuple[int, int], ...]
Formed = Callable[[Groups], list[list[Node]]]  # the products of a step, in groups


class TooDeepError(Exception):
    """The unit of a tree would need more than DEEPEST nested steps, because too few of them repeat."""


class Drafter:
    """Makes the units of drafts for one tree. `plain`: without loops, for a tree of few leaves."""

    def __init__(self, part: RoledTree, asked: Signature, plain: bool = False) -> None:
        self.root, self.asked, self.roles, self.turns = part.root, asked, part.roles, part.turns
        self.plain = plain or asked.scale is not None
        self.outliner = Outliner(part.root) if not self.plain else None
        self.adder, self.weights, self.scaled = adders_of(part), part.weights, part.scaled
        self.inside = {leaf for node in nodes_of(part.root) if id(node) in part.scaled for leaf in leaves_of(node)}
        self._chains: dict[int, tuple[Sum | Leaf, list[Stretch]]] = {}

    def unit(self, draft: Draft) -> Unit:
        """The unit of a draft. Raises ParameterError if the draft's parts exclude each other, and TooDeepError."""
        asked, parts, result = self.asked, draft.parts, None
        if parts.passes == "whole" and not (isinstance(self.root, Sum) and self.root.has_c):
            raise ParameterError("passes", "a second pass needs c, which takes the result of the first")
        for pairs in [(pair,) for pair in parts.pairs] if parts.passes == "whole" else [parts.pairs]:
            result = self._result(_UnitMaker(self, draft, pairs, result))
        assert result is not None
        return Unit(
            asked.a, asked.b, asked.c, asked.length, result, asked.scale, asked.scale_block if asked.scale else 0
        )

    def _result(self, making: _UnitMaker) -> Node:
        result, draft = making.value(self.root, (), 1, 0), making.draft
        if isinstance(self.root, Sum) and making.multiplies(self.root):
            result = making.multiplied(result, self.root)
        last = draft.convert or (None if isinstance(result, (Round, Repeat)) else draft.steps[0].round)
        return result if last is None else rounded(result, last)

    def stretches(self, branch: Sum) -> tuple[Sum | Leaf, list[Stretch]]:
        """The start of a chain, and its steps in stretches, each with its period."""
        assert self.outliner is not None
        if id(branch) not in self._chains:
            start, steps = self.outliner.steps(branch)
            runs: list[Stretch] = []
            while steps:
                length, period = max((self._repeats(steps, period) * period, -period) for period in PERIODS)
                runs.append((-period, steps[:length]))
                steps = steps[length:]
            self._chains[id(branch)] = start, runs
        return self._chains[id(branch)]

    def _repeats(self, steps: Sequence[Added], period: int) -> int:
        """The number of successive occurrences of the first `period` steps, with products shifted by a constant stride.
        Fewer than REPEATED occurrences count as 1 for a period of 1, and as 0 for longer periods."""
        assert self.outliner is not None
        distances, count = set[int](), period
        for step, other in zip(steps, steps[period:], strict=False):
            (node, added), (later, others) = step, other
            own = self.outliner.displaced(step, other)
            if not own or "c" in added or self.weighs(added) != self.weighs(others):
                break
            distances |= own
            if len(distances) > 1 or (id(node) in self.scaled) != (id(later) in self.scaled):
                break
            count += 1
        return count // period if count // period >= REPEATED else int(period == 1)

    def weighs(self, branches: Iterable[Sum | Leaf]) -> list[Power]:
        """The weights of the leaves of some branches."""
        if not self.weights:
            return []
        return [self.weights.get(leaf, ADDED) for branch in branches for leaf in leaves_of(branch)]


class _UnitMaker:
    """Makes one unit. `pairs`: the parts of a and b to multiply. `before`: an expression in place of c (None: c).
    `base`: in the body of a loop, the loop's first product, to which indices of products are relative."""

    def __init__(
        self, drafter: Drafter, draft: Draft, pairs: Sequence[Pair], before: Node | None, base: int = 0
    ) -> None:
        self.drafter, self.draft, self.pairs, self.before, self.base = drafter, draft, pairs, before, base
        self.odd: dict[Node, int] = {}  # by term: the fraction bits of the term minus those of its step

    @property
    def passes(self) -> Sequence[Sequence[Pair]]:
        """The pairs of parts of each pass of a step: one pair in each pass, or all in one."""
        return [(pair,) for pair in self.pairs] if self.draft.parts.passes == "steps" else [self.pairs]

    def arithmetic_of(self, node: Sum) -> Step:
        """The arithmetic of a step of the tree."""
        return self.draft.steps[self.drafter.roles[id(node)]]

    def multiplies(self, branch: Sum) -> bool:
        """Whether a sum as a whole is multiplied by a power of two, since all its terms have the same power."""
        return self.draft.scaled == "sums" and id(branch) in self.drafter.scaled

    def multiplied(self, value: Node, branch: Sum) -> Node:
        """The value of a sum times the power of two of its terms."""
        return times_power_of_two(value, shift_of(leaves_of(branch), self.drafter.weights) or 0)

    def weighed(self, term: Node, leaf: Leaf) -> Node:
        """A term times its power of two, if single terms are multiplied."""
        if self.draft.scaled == "sums" and leaf in self.drafter.inside:
            return term
        return times_power_of_two(term, self.drafter.weights.get(leaf, ADDED)[1])

    def value(self, branch: Sum | Leaf, loop: Loop, level: int, depth: int) -> Node:
        """The expression of a branch. `loop`: level and stride of each enclosing loop that shifts the branch's
        products; `level`: the level of the next loop within; `depth`: the number of enclosing steps. Raises
        TooDeepError."""
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
        result, number, below = None, 0, start
        for period, stretch in stretches:
            for _, alike in groupby(stretch, key=self.step_key):
                steps = list(alike)
                last, alone = steps[-1][0], False
                if result is None:
                    result, steps = self.chain_start(start, steps, loop, level, depth)
                    alone = self.draft.start in SWAPPED  # the first step adds the earlier product
                while steps:
                    count = len(steps) // period * period if len(steps) >= REPEATED * period and not alone else 1
                    alone = False
                    node, added = steps[0]
                    result = self.joined(result, below, node, added)
                    if count > 1:
                        result = self.repeated(result, steps[:count], period, loop, level, depth)
                    else:
                        number += 1
                        if depth + number > DEEPEST:
                            raise ParameterError("steps", f"more than {DEEPEST} within one another do not repeat")
                        result = self.step(node, added, result, loop, level, depth + number)
                    below, steps = steps[count - 1][0], steps[count:]
                below = last
        assert result is not None
        return result

    def step_key(self, step: Added) -> tuple[Step, int, list[tuple[bool, bool]]]:
        """The key by which consecutive steps of a chain are alike: the arithmetic of the step; the number of stores of
        the running sum before the step; for each product, whether it keeps other fraction bits, and whether it is exact
        while others are rounded."""
        fused, odd = self.draft.fused, frozenset[int]() if self.draft.odd is None else self.draft.odd[0]
        leaves = (leaf for branch in step[1] for leaf in leaves_of(branch)) if fused or odd else ()
        return self.arithmetic_of(step[0]), self.stored(step[1]), [(leaf in odd, leaf in fused) for leaf in leaves]

    def stored(self, branches: Iterable[Sum | Leaf]) -> int:
        """The number of stores of the running sum before the last of these branches is added."""
        store = self.draft.store
        if store is None:
            return 0
        return max(self.drafter.turns[leaf] for branch in branches for leaf in leaves_of(branch)) // store.every

    def joined(self, value: Node, branch: Sum | Leaf, node: Sum, added: Sequence[Sum | Leaf]) -> Node:
        """The value of a branch as an operand of the step `node`, which adds `added` to it: rounded again if the roles
        differ, or if the running sum is stored in between."""
        if isinstance(branch, Sum):
            leaves = self.arithmetic_of(branch).leaves
            if leaves is not None and self.drafter.roles[id(branch)] != self.drafter.roles[id(node)]:
                value = rounded(value, leaves)
            if self.multiplies(branch) and not self.multiplies(node):
                value = self.multiplied(value, branch)
        store = self.draft.store
        if store is not None and self.stored([branch]) < self.stored(added):
            value = rounded(value if isinstance(branch, Sum) else self.alone(node, [value]), store.round)
        return value

    def chain_start(
        self, start: Sum | Leaf, steps: list[Added], loop: Loop, level: int, depth: int
    ) -> tuple[Node, list[Added]]:
        """The first expression of a chain, and the steps that follow."""
        node, added = steps[0]
        other = added[0]
        if isinstance(start, Sum) or start == "c" or node.kind != "binary" or isinstance(other, Sum):
            return self.value(start, loop, level, depth + 1), steps
        if self.draft.start in SWAPPED and other != "c":
            start, steps = other, [(node, (start,)), *steps[1:]]
        if self.draft.start == "zero" and self._goes_on(start, steps):
            return Constant(), [(node, (start,)), *steps]
        zero = [Constant()] if self.draft.start in ("zero", "zero_second") else []
        if self.draft.start == "pair":
            return self.term(start, loop), steps
        return self.in_passes(node, [start], zero, loop, level), steps

    def in_passes(self, node: Sum, leaves: Sequence[int], others: Sequence[Node], loop: Loop, level: int) -> Node:
        """The products and the other operands of a step, added in one pass, or in a pass for each pair of parts."""
        for pairs in self.passes if leaves else [self.pairs]:
            own = self.products(leaves, loop, level, pairs)
            others = [self.total(node, lambda _, own=own: [own], others)]  # type: ignore[misc]
        return others[0]

    def _goes_on(self, start: Leaf, steps: Sequence[Added]) -> bool:
        """Whether the first product continues the stride of the products in the next REPEATED steps: one loop then adds
        all of them."""
        numbers = [start, *(added[0] for _, added in steps[:REPEATED])]
        if self.drafter.outliner is None or len(steps) < REPEATED:
            return False
        if start == "c" or any(isinstance(k, Sum) or k == "c" for k in numbers):
            return False
        if len(set(self.drafter.weighs(numbers))) > 1:
            return False
        return stride_of(map(self.drafter.outliner.first, numbers)) is not None

    def repeated(self, start: Node, steps: Sequence[Added], period: int, loop: Loop, level: int, depth: int) -> Node:
        """The loop of some steps that repeat with a period, from the running sum `start`."""
        assert self.drafter.outliner is not None
        first = self.drafter.outliner.first
        base = first(steps[0][1][0])
        stride = first(steps[period][1][0]) - base
        places = [base + number * stride for number in range(len(steps) // period)]
        shifted = _UnitMaker(self.drafter, self.draft, self.pairs, self.before, self.base + base)
        body: Node = Running(level)
        for number, (node, added) in enumerate(steps[:period]):
            body = shifted.joined(body, steps[number - 1][0], node, added) if number else body
            body = shifted.step(node, added, body, (*loop, (level, 1)), level + 1, depth + 1)
        return Repeat(level, places_of(places), start, body)

    def step(
        self, node: Sum, added: Sequence[Sum | Leaf], running: Node | None, loop: Loop, level: int, depth: int
    ) -> Node:
        """The expression of one step: the running sum (None: there is none) plus the branches `added`."""
        leaves = sorted(leaf for leaf in added if isinstance(leaf, int))
        sums = [
            self.joined(self.value(child, loop, level, depth + 1), child, node, added)
            for child in added
            if isinstance(child, Sum)
        ]
        ends: list[Node] = [self.joined(self.term("c", loop), "c", node, added)] if "c" in added else []
        if running is None and self.draft.store is not None and not sums:
            return self.alone(
                node, [*ends, *(self.joined(self.term(leaf, loop), leaf, node, added) for leaf in leaves)]
            )
        if running is None and node.kind == "binary" and len(leaves) == 2:
            if self.draft.start == "pair":
                return self.in_passes(node, leaves, [], loop, level)
            chain_start, [(_, [other])] = self.chain_start(leaves[0], [(node, (leaves[1],))], loop, level, depth)
            assert isinstance(other, int)
            return self.in_passes(node, [other], [chain_start], loop, level)
        if running is not None:
            ends = [running, *ends]
        elif node.kind == "fused" and self.draft.start == "zero" and not ends:
            ends = [Constant()]
        if not leaves or self.arithmetic_of(node).first is None:
            return self.in_passes(node, leaves, [*sums, *ends], loop, level)

        def groups(kind: Groups) -> list[list[Node]]:
            parts = groupby(sorted(leaves, key=GROUPED[kind]), key=GROUPED[kind])
            return [self.products(list(part), loop, level, self.pairs) for _, part in parts]

        return self.total(node, groups, [*sums, *ends])

    def products(self, leaves: Sequence[int], loop: Loop, level: int, pairs: Sequence[Pair]) -> list[Node]:
        """Products of some parts as terms of a sum: one range (Each) for three or more evenly spaced products without
        scale factors. A product that keeps other fraction bits is a term of its own."""
        if self.draft.odd is not None and not self.draft.odd[0].isdisjoint(leaves):
            odd, more = self.draft.odd
            terms: list[Node] = []
            for apart, group in groupby(leaves, key=odd.__contains__):
                part = list(group)
                if not apart:
                    terms += self.products(part, loop, level, pairs)
                    continue
                alone = [self.product(leaf, loop, pair) for leaf in part for pair in pairs]
                self.odd |= dict.fromkeys(alone, more)
                terms += alone
            return terms
        stride, weighs = stride_of(leaves), len(set(self.drafter.weighs(leaves)))
        if len(leaves) < 3 or stride is None or weighs > 1 or self.drafter.asked.scale is not None:
            return [self.product(leaf, loop, pair) for pair in pairs for leaf in leaves]
        places = *loop, (level, stride)
        return [Each(level, range(len(leaves)), self.product(leaves[0], places, pair)) for pair in pairs]

    def term(self, leaf: Leaf, loop: Loop) -> Node:
        """A leaf as a term: a product of all parts, or c times its weight, rounded."""
        draft = self.draft
        if leaf != "c":
            terms = [self.product(leaf, loop, pair) for pair in self.pairs]
            return terms[0] if len(terms) == 1 else ExactSum(tuple(terms))
        if self.before is not None:
            return self.before
        addend: Node = draft.c
        turns = self.drafter.weights.get(leaf, ADDED)[0] < 0
        addend = self.weighed(negated_number(addend, self.drafter.asked.c) if turns else addend, leaf)
        return addend if draft.addend is None else rounded(addend, draft.addend)

    def product(self, leaf: int, loop: Loop, pair: Pair) -> Node:
        """The product of two parts as a term: weighed, rounded, and multiplied by its scale factors."""
        draft, asked = self.draft, self.drafter.asked
        product = self.weighed(self._product(leaf, Index(leaf - self.base, loop), pair), leaf)
        exact = self.drafter.adder.get(leaf) in draft.unrounded or leaf in draft.fused
        if draft.products is not None and not exact:
            product = rounded(product, draft.products)
        if asked.scale is None:
            return product
        block = Index(leaf // asked.scale_block)
        return Scale(product, Element("scale_a", block), Element("scale_b", block))

    def _product(self, leaf: int, index: Index, pair: Pair) -> Node:
        draft, parts, asked = self.draft, self.draft.parts, self.drafter.asked
        a: Node = replace(draft.a, index=index)
        a = negated_number(a, asked.a) if self.drafter.weights.get(leaf, ADDED)[0] < 0 else a
        left = part_of(a, parts.a, pair[0], parts, asked.a)
        right = part_of(replace(draft.b, index=index), parts.b, pair[1], parts, asked.b)
        filling = dict(zip(FACTORS, (left, right), strict=True))
        return replaced(draft.product, lambda part: filling.get(part) if isinstance(part, Hole) else None)

    # -- sums

    def alone(self, node: Sum, terms: Sequence[Node]) -> Node:
        """Terms other than products, added with a step's arithmetic."""
        return self.total(node, lambda _: [], terms)

    def total(self, node: Sum, products: Formed, others: Sequence[Node]) -> Node:
        """The products of a step and its other operands, added and rounded as in the step."""
        arithmetic, d = self.arithmetic_of(node), self.drafter.asked.d
        sum_of, fmt = arithmetic.sum, arithmetic.result_format(d)
        if arithmetic.first is not None and not any(products("")):
            assert arithmetic.aligned is not None
            sum_of = replace(arithmetic.aligned, items=(TERMS,))  # no products to add these terms to
            if arithmetic.between is not None and isinstance(arithmetic.joins, FusedSum):
                sum_of = replace(arithmetic.joins, items=(TERMS,))
        if not arithmetic.negated:
            [result] = self.filled(sum_of, products, others, fmt)
            return result if arithmetic.round is None else rounded(result, arithmetic.round)
        if arithmetic.round is None:
            raise ParameterError("negated", "only a rounded sum can be negated in a draft")
        turned = changed(sum_of, FusedSum, lambda part: replace(part, rounding=mirrored(part.rounding)))
        inverted = [self.opposite(term, fmt) for term in others]
        [result] = self.filled(
            turned, lambda kind: [[self.opposite(term, fmt) for term in part] for part in products(kind)], inverted, fmt
        )
        return negated_number(rounded(result, mirrored_round(arithmetic.round)), fmt)

    def filled(self, node: Node, products: Formed, others: Sequence[Node], fmt: Format) -> list[Node]:
        """The terms of a sum's expression with holes filled; a hole may stand for several terms. A sum that adds other
        terms to a finished sum is left out if there are no other terms. `fmt`: the format of the result."""
        if isinstance(node, Hole):
            own = [] if node == OTHERS else [term for part in products(node.groups) for term in part]
            return own if node.name == PRODUCTS.name else [*own, *others]
        if isinstance(node, FusedSum) and isinstance(hole := node.items[0], Hole) and hole.groups:
            return [self.aligned(node, [(0, term) for term in part], fmt) for part in products(hole.groups)]
        if isinstance(node, WholeSum):
            terms = [
                (at, term) for at, item in enumerate(node.items) for term in self.filled(item, products, others, fmt)
            ]
            alone = len(terms) == 1 and not isinstance(terms[0][1], Each)
            if alone and (isinstance(node, ExactSum) or not (isinstance(node.items[0], Hole) or _cuts(node))):
                return [terms[0][1]]
            return [self.aligned(node, terms, fmt) if isinstance(node, FusedSum) else node.of_terms(terms)]
        if isinstance(node, Cut) and OTHERS in node.term.operands and not others:
            return self.filled(node.term, products, others, fmt)
        operands = [self.filled(part, products, others, fmt) for part in node.operands]
        return [with_operands(node, (part[0] for part in operands))] if all(operands) else []

    def opposite(self, term: Node, fmt: Format) -> Node:
        """A term with its sign changed."""
        if isinstance(term, Each):
            return replace(term, body=self.opposite(term.body, fmt))
        if isinstance(term, Scale):
            return replace(term, term=self.opposite(term.term, fmt))
        if isinstance(term, Gate):
            return Gate(self.opposite(term.term, fmt), not term.minus_zero)
        if isinstance(term, Product):
            own = self.drafter.asked.a
            return replace(term, left=negated_number(term.left, own))
        if not term.is_number:
            raise ParameterError("negated", "only a rounded sum has a sign to change")
        return negated_number(term, fmt)

    def aligned(self, node: FusedSum, terms: Sequence[tuple[int, Node]], fmt: Format) -> Node:
        """A fused sum of terms; the number beside each term is the position of the operand whose parameters it
        takes."""
        bits, least, asked = node.fraction_bits, node.least, self.drafter.asked
        total = node.of_terms([(at, self.counted(term, fmt) if self.draft.counted else term) for at, term in terms])
        if isinstance(bits, tuple):
            return total
        if least is not None and not all(_of_products(term) for _, term in terms):  # other terms may have any size
            more = max(0, max(asked.c.emax, asked.d.emax) + 2 - least)
            bits, least = bits + more, least + more
            total = replace(total, fraction_bits=bits, least=least)
        keeps = tuple(bits + self.odd.get(term, 0) for _, term in terms)
        whole = keeps[0] if len(set(keeps)) == 1 else keeps
        return total if whole == bits else replace(total, fraction_bits=whole)

    def counted(self, term: Node, fmt: Format) -> Node:
        """A number as a normalised product with 1, which enters an alignment with the exponent of its leading bit.
        Raises ParameterError for a running sum that starts from c in another format."""
        if isinstance(term, Running):
            if fmt != self.drafter.asked.c:
                raise ParameterError("normalised", "a sum so far starts from c in another format")
            term = Round(term, Rounding(fmt))  # no value changes, but a factor must be a number of a format
        if isinstance(term, Constant) or not term.is_number:
            return term
        return Product(term, power_of_two(0), True)


def _cuts(node: WholeSum) -> bool:
    """Whether a fused sum keeps fewer bits than the finished sum that is its first operand."""
    kept = node.items[0].bits_of_terms
    return isinstance(node, FusedSum) and (node.value_at(node.fraction_bits, 0) or 0) < max(kept, default=0)


def _of_products(term: Node) -> bool:
    """Whether a term is a product or a range of products."""
    return isinstance(term, Product) or (isinstance(term, Each) and isinstance(term.body, Product))


MIRRORED: Mapping[Mode, Mode] = {"up": "down", "down": "up"}


def mirrored(mode: Mode) -> Mode:
    """The mode that rounds -x to the negative of what `mode` rounds x to."""
    return MIRRORED.get(mode, mode)


def mirrored_round(own: Round) -> Round:
    """A rounding in the mirrored mode; a first rounding to fewer bits is mirrored too."""
    term, mode = own.term, own.rounding.mode
    assert not is_stochastic(mode)  # no built unit takes random bits
    term = replace(term, mode=mirrored(term.mode)) if isinstance(term, Cut) else term
    return Round(term, replace(own.rounding, mode=mirrored(mode)))


GROUPED: Mapping[Groups, Callable[[int], int]] = {
    "": lambda k: 0,
    "even_odd": lambda k: k % 2,
    "pairs": lambda k: k // 2,
    "quads": lambda k: k // 4,
}
