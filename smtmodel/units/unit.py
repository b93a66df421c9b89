"""A unit: an expression over nodes, the formats of its operands, and the names of its steps."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from mmaprobe.smtmodel.arithmetic.formats import Format
from mmaprobe.smtmodel.base.errors import ParameterError, check_number
from mmaprobe.smtmodel.carriers.algebra import Bits
from mmaprobe.smtmodel.nodes import Constant, Cut, Each, Element, Flags, Node, Product, Repeat, Round, Sum
from mmaprobe.smtmodel.nodes.node import Context, Flaws, Shared, of_kind, structure, walk
from mmaprobe.smtmodel.nodes.repeat import Places, elements_read, indices_read
from mmaprobe.smtmodel.nodes.rewriting import rebuilt
from mmaprobe.smtmodel.nodes.round import Rounding, is_random
from mmaprobe.smtmodel.nodes.trace import Trace
from mmaprobe.smtmodel.operand import DRAWN, NAMED, OPERANDS

LONGEST = 4096  # products, at most, of a unit in questions
TRACED = 65536  # products, at most, of a unit that is only evaluated: an element of a matrix product, step by step
#: by operands' formats, the values that several units share on the same inputs
Memo = dict[tuple[tuple[str, Format], ...], Shared]


def operand_formats(
    a: Format, b: Format, c: Format, scale: Format | None, more: Sequence[tuple[str, Format]] = ()
) -> dict[str, Format]:
    """The formats of operands by name; `scale`: the format of both scale factors, if there are any; `more`: the keys
    and formats of further operands."""
    given = {"a": a, "b": b, "c": c, "scale": scale, **dict(more)}
    return {row.name: fmt for row in OPERANDS if (fmt := given.get(row.key)) is not None}


@dataclass(frozen=True)
class Unit:
    """d as a node over a and b (`length` elements each), c, scale factors (a pair for each `scale_block` products), and
    further operands with formats in `more` (by the keys of `OPERANDS`).

    Two units are equal if their expressions are equal by structure: names, `about`, `source` and `evidence` do not
    count. `names`: the closed steps by name, in the order of the text; `roundings`: the roundings by name; `signals`,
    `titles`: the prefixes of nodes' signals, and the names of nodes as terms of a sum, if the nodes' place among the
    steps does not give these. `unrolled`: the products of each step, if successive steps form no repetition.
    """

    a: Format
    b: Format
    c: Format
    length: int
    result: Node
    scale: Format | None = None
    scale_block: int = 0
    names: Mapping[str, Node] = field(default_factory=dict, compare=False, hash=False)
    roundings: Mapping[str, Rounding] = field(default_factory=dict, compare=False, hash=False)
    signals: Mapping[Node, str] = field(default_factory=dict, compare=False, hash=False)
    titles: Mapping[Node, str] = field(default_factory=dict, compare=False, hash=False)
    unrolled: tuple[tuple[int, ...], ...] | None = field(default=None, compare=False)
    more: tuple[tuple[str, Format], ...] = ()
    reference: str = field(default="", compare=False)
    about: str = field(default="", compare=False)
    source: str = field(default="", compare=False)
    evidence: str = field(default="", compare=False)

    def __post_init__(self) -> None:
        check_number("length", self.length, (1, TRACED))
        for name, fmt in (("a", self.a), ("b", self.b), ("c", self.c)):
            if not fmt.subnormals:
                raise ParameterError(name, f"{fmt.name} has no zero, which missing products and sums of none are")
        if self.scale is not None and (self.scale_block < 1 or self.length % self.scale_block):
            raise ParameterError("scale_block", f"{self.scale_block} does not divide the length {self.length}")
        assert self.rounding
        if isinstance(self.result, Flags):
            self.result.check()
        for name in DRAWN:
            if name in self.formats and not is_random(fmt := self.formats[name]):
                raise ParameterError(name, f"{fmt.name} is no format of random bits: uint2 to uint64 are")
        for read, ranges in elements_read(self.result):
            self._check_place(read, ranges)

    @property
    def rounding(self) -> Rounding:
        """The rounding of the result. Raises ParameterError where the result is not rounded."""
        return self.result.rounding if isinstance(self.result, Flags) else self.last.rounding

    @cached_property
    def last(self) -> Round:
        """The node that rounds the result. Raises ParameterError where it is not rounded."""
        node = self.result
        while isinstance(node, Repeat):
            node = node.body
        if not isinstance(node, Round):
            raise ParameterError(
                "d", "the result is not rounded to a format: its last step must be a round, or its flags"
            )
        return node

    @property
    def operands(self) -> tuple[Any, ...]:
        """The unit's signature: the formats of a, b and c, the length, the format and block of scale factors, and the
        formats of further operands."""
        return self.a, self.b, self.c, self.length, self.scale, self.scale_block, *self.more

    @cached_property
    def formats(self) -> Mapping[str, Format]:
        """The formats of the operands by name."""
        return operand_formats(self.a, self.b, self.c, self.scale, self.more)

    @cached_property
    def addend(self) -> bool:
        """Whether any step reads c."""
        return any(node.is_addend for node in walk(self.result))

    @property
    def d(self) -> Format:
        """The format of the result."""
        return self.rounding.format

    @property
    def nan(self) -> int | None:
        """The pattern of a NaN result; None: any NaN's."""
        return self.rounding.nan

    @property
    def scales(self) -> int:
        """The number of scale factors on each side."""
        return self.length // self.scale_block if self.scale is not None else 0

    def count(self, operand: str) -> int:
        """The number of elements of an operand."""
        return NAMED[operand].count(self.length, self.scales) if operand in self.formats else 0

    @cached_property
    def blocks(self) -> tuple[tuple[int, ...], ...]:
        """The places of the products in blocks, in the order of the steps: a block for each round of a repetition, and
        one for the products outside repetitions; a single block if nothing is repeated."""
        if self.unrolled is not None:
            return self.unrolled
        loops = [node for node in of_kind(self.result, Repeat) if not node.free]
        blocks = [tuple(sorted(products_of(loop.body, {loop.level: place}))) for loop in loops for place in loop.places]
        if loops:
            blocks.append(tuple(sorted(products_of(self.result, {}) - set().union(*blocks))))
        return tuple(block for block in blocks if block) or (tuple(range(self.length)),)

    def _check_place(self, node: Element, ranges: Mapping[int, Places]) -> None:
        """Raises ParameterError for a place outside the operand, at the least or greatest value of a loop variable, and
        for small integers that would be read as zero."""
        count = self.count(node.operand)
        if not count:
            raise ParameterError(node.operand, "it is read, and has no format")
        if node.subnormals != "keep" and (fmt := self.formats[node.operand]).is_integer:
            raise ParameterError(node.operand, f"{fmt.name} has no subnormal numbers that could be read as zero")
        if node.index is None:
            return
        if not node.index.factors and 0 <= node.index.offset < count:  # the quick test, enough for most elements
            return
        ends = [sorted(factor * end for end in (min(ranges[level]), max(ranges[level])))
                for level, factor in node.index.factors]  # fmt: skip
        low, high = (node.index.offset + sum(end[side] for end in ends) for side in (0, 1))
        if low < 0 or high >= count:
            where = f"{low}" if low == high else f"{low} to {high}"
            raise ParameterError(node.operand, f"index {where} is outside 0 to {count - 1}")

    def unread(self) -> dict[str, tuple[int, ...]]:
        """The places of each operand that no step reads; (0,) for an unread operand of the whole sum."""
        unread: dict[str, set[int]] = {row.name: set() for row in OPERANDS}
        for node, ranges in elements_read(self.result):
            unread[node.operand].update(index.offset for index in indices_read(node, ranges))
        return {name: tuple(k for k in range(self.count(name)) if k not in read) for name, read in unread.items()}

    def ignored(self) -> tuple[int, ...]:
        """The places of products with a factor that no step reads."""
        unread = self.unread()
        return tuple(sorted({*unread["a"], *unread["b"]}))

    @property
    def digest(self) -> str:
        """Twelve digits that identify a unit by its operands' formats and its expression."""
        import hashlib  # loads OpenSSL, 3.5 MB

        text = f"{self.operands!r}\n{structure(self.result)}"
        return hashlib.sha256(text.encode()).hexdigest()[:12]

    @cached_property
    def labels(self) -> dict[Node, str]:
        """The prefix of every node's signals: empty for the result and for the body of a repetition (whose signals
        begin with block0 and so on, or with the repetition's name and step); a step's name; for a rounded sum, the
        rounding's prefix; else the kind, with a number if several nodes have it."""
        names: dict[Node, str] = {node.body: "" for node in of_kind(self.result, Repeat)}
        names |= {node: name for name, node in self.names.items()} | {self.result: ""} | dict(self.signals)
        for node in reversed(list(walk(self.result))):
            cuts = (Sum,) if isinstance(node, Cut) else (Cut, Sum)  # a sum cut twice has two steps
            if isinstance(node, (Round, Cut)) and node in names and isinstance(node.term, cuts):
                names.setdefault(node.term, names[node])
        nodes = [node for node in walk(self.result) if node not in names]
        for kind in {node.kind for node in nodes}:
            alike = [node for node in nodes if node.kind == kind]
            names |= {node: f"{kind}{number}" if len(alike) > 1 else kind for number, node in enumerate(alike, start=1)}
        return names

    def with_result(self, result: Node, **changes: Any) -> Unit:
        """The unit with another expression, without names of its nodes, and with other changes."""
        return replace(self, result=result, names={}, roundings={}, signals={}, titles={}, **changes)

    def computing(self, result: Node) -> Unit:
        """A unit of the same signature with another expression, without a name or names of steps."""
        return self.with_result(result, unrolled=None, reference="", about="", source="", evidence="")

    def rewritten(self, change: Callable[[Node, Node], Node]) -> Unit:
        """The unit with its expression rebuilt, operands first: `change` takes each node, and the same node over its
        rebuilt operands. Nodes keep their names. Raises ParameterError."""
        changed: dict[Node, Node] = {}
        result = rebuilt(self.result, change, changed)
        names = {name: changed[node] for name, node in self.names.items()}
        signals, titles = ({changed.get(node, node): text for node, text in table.items()}
                           for table in (self.signals, self.titles))  # fmt: skip
        return replace(self, result=result, names=names, signals=signals, titles=titles)

    def evaluate(
        self,
        a: Sequence[Bits],
        b: Sequence[Bits],
        c: Bits,
        *rest: Sequence[Bits],
        trace: Trace | None = None,
        memo: Memo | None = None,
        flaws: Flaws | None = None,
    ) -> tuple[Bits, Trace]:
        """The result's pattern, and the signals in `trace`; missing trailing products are zero. `rest`: the further
        operands, in the order of OPERANDS. `memo`: values that units share on the same inputs. `flaws`: flags of values
        to invert."""
        patterns = dict(zip(NAMED, (a, b, (c,), *rest), strict=False))
        shared = None if memo is None else memo.setdefault(tuple(self.formats.items()), {})
        signals = Trace() if trace is None else trace
        names = self.labels if signals.keeps else {}  # nothing else reads names
        context = Context(patterns, self.formats, names, signals, self.titles, shared, flaws or {})
        result = context.value(self.result).pattern
        assert result is not None
        return result, context.trace


def products_of(node: Node, places: Mapping[int, int]) -> set[int]:
    """The places of a that a node reads, for given values of the surrounding loop variables."""
    return {index.at(places) for element, ranges in elements_read(node) if element.operand == "a"
            for index in indices_read(element, ranges)}  # fmt: skip


def added_together(unit: Unit) -> set[frozenset[int]]:
    """For every sum that adds several products, the set of their places."""
    sums: set[frozenset[int]] = set()

    def visit(node: Node, places: dict[int, int]) -> None:
        if isinstance(node, Sum):
            own = [item for item in node.items if isinstance(item.body if isinstance(item, Each) else item, Product)]
            sums.add(frozenset(k for item in own for k in products_of(item, places)))
        if isinstance(node, Repeat):
            visit(node.start, places)
            for place in node.places:
                visit(node.body, {**places, node.level: place})
            return
        for operand in node.operands:
            if not isinstance(operand, Each):
                visit(operand, places)

    visit(unit.result, {})
    return {part for part in sums if len(part) > 1}


def closed_steps(result: Node) -> list[Node]:
    """The nodes without free loop variables that occur more than once; a text has to name these."""
    counts: dict[Node, int] = {}
    for node in walk(result):
        for operand in node.operands:
            counts[operand] = counts.get(operand, 0) + 1
    simple = (Element, Constant, Each)  # a range of terms is no step
    return [node for node in walk(result) if counts.get(node, 0) > 1 and not node.free and not isinstance(node, simple)]
