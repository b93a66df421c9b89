"""A summation tree as a few lines of text: runs, strides and repetitions of any length."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from mmaprobe.queries.order.tree import (
    KINDS,
    Leaf,
    Node,
    compact,
    is_pairwise,
    leaf_order,
    leaves_of,
    nodes_of,
    size_of,
    stride_of,
)
from mmaprobe.smtmodel.base.wording import counted
from mmaprobe.smtmodel.inputs.signature import Signature

DRAWN = 12  # the most levels of a tree that are drawn
TIMES = 5  # the least number of similar steps in succession that are drawn as one
AGAIN = 3  # the least number of repetitions of several steps that are drawn once
PERIOD = 16  # the most steps that repeat together
LISTED = 12  # the most ranges of terms in a line
Parts = Mapping[tuple[int, ...], tuple[tuple[int, ...], ...]]
ChainStep = tuple[Node, tuple[Node | Leaf, ...]]  # a step of a chain, and the branches that it adds


@dataclass(frozen=True)
class Outline:
    """A line of text, and the outlines below this line."""

    text: str
    below: tuple[Outline, ...] = ()

    def lines(self) -> list[str]:
        """The tree as lines, with its root on top."""
        lines = [self.text]
        for number, part in enumerate(self.below):
            last = number == len(self.below) - 1
            first, *rest = part.lines()
            lines.append(("└─ " if last else "├─ ") + first)
            lines += [("   " if last else "│  ") + line for line in rest]
        return lines


def shared_text(width: int) -> str:
    """The sentence that the order among products that share a leaf was not asked."""
    return f"{width} products share scale factors: the order of such products was not asked"


class Outliner:
    """Draws one tree. `width` products share a leaf; `parts`: the groups of a fused step's products that are summed
    first; `apart`: c joins the finished sum of its step."""

    def __init__(self, root: Node | Leaf, width: int = 1, parts: Parts | None = None, apart: bool = False) -> None:
        self.root, self.width, self.parts, self.apart = root, width, parts or {}, apart
        self._shapes: dict[int, tuple[int, int]] = {}  # by step: the number of its shape, and its first product
        known: dict[object, int] = {}
        for node in nodes_of(root):
            start = min(self.first(child) for child in node.children)
            key = node.kind, tuple((self.shape(child), self.first(child) - start) for child in node.children)
            self._shapes[id(node)] = known.setdefault(key, len(known)), start

    def outline(self) -> Outline:
        """The whole tree."""
        return self._outline(self.root, 0)

    def shape(self, branch: Node | Leaf) -> int:
        """The number of a branch's shape: equal for branches that differ only by a distance added to every product."""
        return self._shapes[id(branch)][0] if isinstance(branch, Node) else -1 if branch == "c" else -2

    def first(self, branch: Node | Leaf) -> int:
        return self._shapes[id(branch)][1] if isinstance(branch, Node) else FAR if branch == "c" else leaf_order(branch)

    def _label(self, leaves: Iterable[Leaf]) -> str:
        return compact(k for leaf in leaves if leaf != "c" for k in range(leaf, leaf + self.width))

    # -- lines

    def _outline(self, branch: Node | Leaf, depth: int) -> Outline:
        if not isinstance(branch, Node):
            return Outline("c" if branch == "c" else self._label([branch]))
        if short := self._short(branch):
            return Outline(short)
        if depth == DRAWN:
            leaves = leaves_of(branch)
            names = ["c"] * ("c" in leaves) + [self._label(leaves)]
            return Outline(f"... {counted(len(nodes_of(branch)), 'step')} more, of {' and '.join(names)}")
        return self._chain(branch, depth) or self._recurring(branch, depth) or self._step(branch, depth)

    def _short(self, branch: Node) -> str | None:
        """One line for a chain of single terms, or for a pairwise sum of neighbours; None for another branch."""
        start, steps = self.steps(branch)
        if not isinstance(start, Node) and len(steps) > 1 and self._single(steps):
            leaves = [start, *self._leaves(steps)]
            numbers = [leaf for leaf in leaves if leaf != "c"]
            if "c" not in leaves[1:] and numbers == sorted(numbers):
                return f"{'c, ' if start == 'c' else ''}{self._label(numbers)} (added one after another)"
        below = leaves_of(branch)
        if len(below) > 2 and "c" not in below and list(below) == sorted(below, key=leaf_order) and is_pairwise(branch):
            return f"{self._label(below)} (added in pairs)"
        return None

    def _step(self, node: Node, depth: int) -> Outline:
        """One step with its terms: c, sums (similar sums together), then the products."""
        below = []
        if "c" in node.children:
            below.append(Outline("c (joins the finished sum)" if self.apart else "c"))
        sums = [child for child in node.children if isinstance(child, Node)]
        if len(sums) > 1 and (distance := self._distance(sums)) and self._worth(sums):
            first = self._outline(sums[0], depth + 1)
            text = f"{len(sums)} alike, each {counted(distance, 'product')} further; the first:"
            below.append(Outline(text, (first,)))
        else:
            below += [self._outline(child, depth + 1) for child in sums]
        products = tuple(sorted(child for child in node.children if isinstance(child, int)))
        parts = self.parts.get(products, (products,)) if products else ()
        if node.kind == "binary":
            below += [Outline(self._label([k])) for k in products]
        else:
            below += [Outline(self._label(part) + (" (summed first)" if len(parts) > 1 else "")) for part in parts]
        return Outline(KINDS[node.kind], tuple(below))

    def _worth(self, sums: Sequence[Node]) -> bool:
        """Whether showing one branch in place of all of them makes the text shorter."""
        return len(sums) >= TIMES or (sums[0].size > 2 and self._short(sums[0]) is None)

    def _distance(self, branches: Sequence[Node | Leaf]) -> int | None:
        """The constant distance from each branch to the next, if all have one shape; else None."""
        if len({self.shape(branch) for branch in branches}) > 1:
            return None
        return stride_of(map(self.first, branches))

    # -- chains

    def _chain(self, branch: Node, depth: int) -> Outline | None:
        """Steps in succession, many of them alike; None if few are alike."""
        start, steps = self.steps(branch)
        runs = self.runs(steps)
        if not any(len(run) >= TIMES for run in runs):
            return None
        below = [self._outline(start, depth + 1)]
        if not isinstance(start, Node) and start != "c" and self._single(runs[0]):
            leaves = [start, *self._leaves(runs[0])]
            if len(leaves) == 2 or stride_of(map(leaf_order, leaves)) is not None:
                runs.pop(0)
                below = [Outline(f"{self._sequence(leaves)} (added one after another)")]
        for run in runs:
            node, added = run[0]
            if self._single(run):
                label = self._sequence(self._leaves(run)) or "c"
                below.append(Outline(f"{label} (added one after another)" if len(run) > 1 else label))
                continue
            terms = self._step(Node(node.kind, added), depth + 1).below
            if len(run) == 1:
                below.append(self._own(terms) if node.kind == "binary" and len(terms) == 1 else
                             Outline(KINDS[node.kind], terms))  # fmt: skip
                continue
            distance = self.first(run[1][1][0]) - self.first(added[0])
            text = f"{len(run)} times, each {counted(distance, 'product')} further: the sum so far and"
            text += " this" if node.kind == "binary" else f" these, {KINDS[node.kind]}"
            below.append(Outline(text, terms))
        return Outline("one step after another", tuple(below))

    def _own(self, terms: tuple[Outline, ...]) -> Outline:
        """The outline of a sum that a step adds: the step and the sum's last addition share one line."""
        (sum_,) = terms
        return Outline("a sum of its own, added", sum_.below if sum_.text == KINDS["binary"] else terms)

    def _recurring(self, branch: Node, depth: int) -> Outline | None:
        """Steps in succession, not in the order of their products: single terms as a list, or the repeated steps once;
        None for other steps."""
        start, steps = self.steps(branch)
        if len(steps) >= AGAIN and size_of(start) <= 2 and self._single(steps) and "c" not in self._leaves(steps):
            first = ["c" if leaf == "c" else self._label([leaf]) for leaf in leaves_of(start)]
            if len(ranges := [*first, *self._ranges(self._leaves(steps))]) <= LISTED:
                return Outline(f"{', '.join(ranges)} (added one after another)")
        for period in range(2, min(PERIOD, len(steps) // AGAIN) + 1):
            distance = self.first(steps[period][1][0]) - self.first(steps[0][1][0])
            times = len(steps) // period
            alike = steps[: times * period]
            if all(self.displaced(*pair) == {distance} for pair in zip(alike, alike[period:], strict=False)):
                text = f"{times} times, each {counted(distance, 'product')} further: "
                text += "the sum so far and these, one after another"
                below = self._outline(start, depth + 1), Outline(text, self._added(steps[:period], depth))
                return Outline("one step after another", (*below, *self._added(steps[len(alike) :], depth)))
        return None

    def _added(self, steps: Sequence[ChainStep], depth: int) -> tuple[Outline, ...]:
        """The outlines of the branches that some steps add."""
        drawn = [self._step(Node(node.kind, added), depth + 2) for node, added in steps]
        return tuple(x.below[0] if len(x.below) == 1 else x for x in drawn)

    def displaced(self, one: ChainStep, other: ChainStep) -> set[int]:
        """The distances of the branches that two steps add; empty if they are not alike."""
        if not self._alike(one, other):
            return set()
        return {self.first(y) - self.first(x) for x, y in zip(one[1], other[1], strict=True)}

    def _ranges(self, leaves: Sequence[Leaf]) -> Iterator[str]:
        """Products as ranges, in the order in which they are added. Runs at equal distances are one range."""
        numbers = [leaf for leaf in leaves if leaf != "c"]
        while numbers:
            alike = 1
            while alike < len(numbers) and numbers[alike] - numbers[alike - 1] == numbers[1] - numbers[0] > 0:
                alike += 1
            alike = alike if alike > 3 or numbers[:alike] == [*range(numbers[0], numbers[0] + alike)] else 1
            yield self._label(numbers[:alike])
            numbers = numbers[alike:]

    def _single(self, run: Sequence[ChainStep]) -> bool:
        """Whether each step adds one product."""
        return all(len(added) == 1 and not isinstance(added[0], Node) for _, added in run)

    def _leaves(self, run: Sequence[ChainStep]) -> list[Leaf]:
        return [term for _, added in run for term in added if not isinstance(term, Node)]

    def _sequence(self, leaves: Sequence[Leaf]) -> str:
        """Terms in the order in which they are added."""
        if len(leaves) > 1 and leaf_order(leaves[0]) > leaf_order(leaves[-1]):
            return f"{', '.join(self._label([leaf]) for leaf in leaves[:2])} .. {self._label(leaves[-1:])}"
        return self._label(leaves)

    def steps(self, branch: Node) -> tuple[Node | Leaf, list[ChainStep]]:
        """The start of a chain, and its steps in order. The running sum of a step is its largest operand, or a smaller
        operand if the other operands are then like those of the next step."""
        steps: list[ChainStep] = []
        current: Node | Leaf = branch
        while isinstance(current, Node):
            given = sorted(current.children, key=partial(self._rank, steps[-1][1][0] if steps else None), reverse=True)
            others = [tuple(child for child in current.children if child is not one) for one in given]
            alike = [bool(steps) and self._alike(steps[-1], (current, rest)) for rest in others]
            place = alike.index(True) if True in alike else 0
            running, rest, again = given[place], others[place], alike[place]
            if isinstance(running, Node) and self.shape(running) in map(self.shape, rest) and not again:
                break  # equal halves are no chain
            if not isinstance(running, Node) and running != "c" and not (again and len(rest) == 1):
                break  # a sum that starts with these terms
            steps.append((current, rest))
            current = running
        return current, steps[::-1]

    def _rank(self, later: Node | Leaf | None, term: Node | Leaf) -> tuple[int, bool, int]:
        """A sort key of operands by the likelihood of being the running sum: the size, c, and for products the distance
        from the product of the next step, as farther products were added earlier."""
        far = 0 if later is None or isinstance(later, Node) else abs(self.first(term) - self.first(later))
        return size_of(term), term == "c", far

    def _alike(self, one: ChainStep, other: ChainStep) -> bool:
        return one[0].kind == other[0].kind and list(map(self.shape, one[1])) == list(map(self.shape, other[1]))

    def runs(self, steps: Sequence[ChainStep]) -> list[list[ChainStep]]:
        runs: list[list[ChainStep]] = []
        for step in steps:
            run = runs[-1] if runs else []
            if run and self._alike(run[-1], step) and self._goes_on(run, step):
                run.append(step)
            elif len(run) == 2 and self._alike(run[-1], step):  # any two steps are a run; the third decides
                runs.append([run.pop(), step])
            else:
                runs.append([step])
        return runs

    def _goes_on(self, run: Sequence[ChainStep], step: ChainStep) -> bool:
        own = self.displaced(run[-1], step)
        return len(own) == 1 and (len(run) < 2 or own == self.displaced(run[-2], run[-1]))


FAR = 1 << 32  # stands for c among the numbers of products


def title_of(asked: Signature) -> str:
    """The terms that are added, in words."""
    names = f"{asked.a.name} * {asked.b.name}"
    c = f"c in {asked.c.name}, " if asked.addend else ""
    terms = f"{'c and ' if asked.addend else ''}{counted(asked.length, 'product')}"
    return f"summation order of {terms} ({names}, {c}results in {asked.d.name})"
