"""Drafts: units with open parts.

A draft has an expression for each part of the arithmetic of a summation tree: the sums of each role, the roundings
between and after sums, the products, the inputs. Such an expression consists of nodes, with holes for its operands. In
each of these places other expressions are tried (steps.py, axes.py), and so are variants of the nodes and further nodes
around these (likely.py). A draft also has choices that belong to no single place: the starts of sums, the order of
additions, and products that differ from the others.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cache, cached_property
from typing import Any, ClassVar, Literal, NoReturn

from mmaprobe.queries.building.parts import UNSPLIT, Parts
from mmaprobe.smtmodel.arithmetic.formats import Format
from mmaprobe.smtmodel.arithmetic.rounding import Mode, is_stochastic
from mmaprobe.smtmodel.base.errors import ParameterError
from mmaprobe.smtmodel.nodes import Cut, Element, ExactSum, FusedSum, Index, Node, Product, Round
from mmaprobe.smtmodel.nodes.element import Subnormals
from mmaprobe.smtmodel.nodes.node import Terminal, of_kind, walk
from mmaprobe.smtmodel.nodes.rewriting import rebuilt, replaced
from mmaprobe.smtmodel.nodes.round import Rounding

Start = Literal["pair", "first", "zero", "second", "zero_second"]
Groups = Literal["", "even_odd", "pairs", "quads"]
Scaled = Literal["terms", "sums"]
Odd = tuple[frozenset[int], int]
#: the place of a rounding: in the steps of a role, on results of a role that enter another role, or elsewhere
Place = int | tuple[Literal["leaves"], int] | Literal["products", "addend", "convert", "store"]
Reads = tuple[Subnormals, Subnormals]  # how subnormal factors and a subnormal c are read


@dataclass(frozen=True, eq=False)
class Hole(Terminal):
    """The place of an operand in an expression. `groups`: groups of products, each of which is summed first."""

    kind: ClassVar[str] = "hole"
    source: ClassVar[str] = ""
    name: str
    groups: Groups = ""

    def evaluate(self, *_: object) -> NoReturn:
        raise AssertionError("a draft has no value before its holes are filled")

    def sentence(self) -> str:
        return f"the place of {self.name}"


TERM = Hole("term")  # the operand of a rounding
TERMS, PRODUCTS, OTHERS = Hole("terms"), Hole("products"), Hole("others")  # a step's terms: all; products; all others
FACTORS = Hole("a"), Hole("b")  # the operands of a product
EXACT, PRODUCT = ExactSum((TERMS,)), Product(*FACTORS)
INPUTS = Element("a", Index(0)), Element("b", Index(0)), Element("c")


@cache
def fused(
    bits: int, align: Mode = "toward_zero", sticky: bool = False, *,
    carry_bits: int | None = None, least: int | None = None, items: tuple[Node, ...] = (TERMS,),
) -> FusedSum:  # fmt: skip
    """A fused sum with F = `bits`."""
    return FusedSum(items, bits, align, sticky, carry_bits, None, least)


@cache
def round_to(fmt: Format, mode: Mode = "nearest_even", bits: int | None = None, first: Mode | None = None) -> Round:
    """A rounding to `fmt`. If `bits` is given, a first rounding to `bits` bits with unbounded exponent comes before, in
    the mode `first` (None: `mode`)."""
    return round_by(Rounding(fmt, mode), bits, first)


def round_by(rounding: Rounding, bits: int | None = None, first: Mode | None = None) -> Round:
    """The node that rounds a hole by `rounding`, with a first rounding as in `round_to`."""
    if bits is None:
        return Round(TERM, rounding)
    assert not is_stochastic(rounding.mode)  # no unit that is built takes random bits
    return Round(Cut(TERM, bits, first or rounding.mode), rounding)


def rounded(term: Node, own: Round) -> Node:
    """The term rounded by `own`, which is a rounding of a hole."""
    return Round(replace(own.term, term=term) if isinstance(own.term, Cut) else term, own.rounding)


def first_bits(own: Round) -> int | None:
    """The number of bits to which a rounding first rounds with unbounded exponent; None without such a first
    rounding."""
    return own.term.bits if isinstance(own.term, Cut) else None


def in_mode(own: Round, mode: Mode) -> Round:
    """The rounding in another mode. A first rounding to fewer bits changes its mode too, if both had the same mode."""
    rounding, term = own.rounding, own.term
    if isinstance(term, Cut) and term.mode == rounding.mode:
        term = replace(term, mode=mode)
    return Round(term, replace(rounding, mode=mode))


def with_rounding(own: Round, **parameters: Any) -> Round:
    """The rounding with other parameters, such as those for tiny results, zeros and overflow."""
    return Round(own.term, replace(own.rounding, **parameters))


def changed(root: Node, kind: type[Node], change: Callable[..., Node]) -> Node:
    """The expression with every node of a kind changed; the given expression if a node refuses the change."""
    return _possible(root, lambda: rebuilt(root, lambda _, node: change(node) if isinstance(node, kind) else node, {}))


def with_node(root: Node, old: Node, new: Node) -> Node:
    """The expression with a node replaced by another; the given expression if a node refuses the new operand."""
    return _possible(root, lambda: replaced(root, lambda part: new if part == old else None))


def _possible(root: Node, rewritten: Callable[[], Node]) -> Node:
    """The rewritten expression; `root`, which is a candidate already, if a node refuses its new parts or parameters."""
    try:
        return rewritten()
    except ParameterError:
        return root


@dataclass(frozen=True)
class Step:
    """The arithmetic of the steps of one role. `sum`: an expression over TERMS; or over PRODUCTS, which are summed
    first, and OTHERS. `round`: the rounding of the sum; None: the sum is not rounded. `leaves`: a further rounding
    where the result is an operand of a step of another role. `negated`: the terms are added with their signs changed,
    in the mirrored mode, and the sign of the rounded sum is changed back, so that exact cancellation gives -0 when
    rounding to nearest."""

    round: Round | None
    sum: Node = EXACT
    leaves: Round | None = None
    negated: bool = False

    @cached_property
    def aligned(self) -> FusedSum | None:
        """The fused sum that has the products of the step; None without such a sum."""
        return next((node for node in of_kind(self.sum, FusedSum)), None)

    @property
    def bits(self) -> int | None:
        """F of the fused sum that has the products of the step; None without such a sum."""
        fraction_bits = None if self.aligned is None else self.aligned.fraction_bits
        assert not isinstance(fraction_bits, tuple)
        return fraction_bits

    @cached_property
    def joins(self) -> Node | None:
        """The sum in which other terms join the finished sum of the products; None without such a sum."""
        return next((node for node in walk(self.sum) if OTHERS in node.operands), None)

    @cached_property
    def first(self) -> FusedSum | None:
        """The fused sum of the products alone, which other terms join late; None without such a sum."""
        first = None if self.joins is None else self.joins.operands[0]
        first = first.term if isinstance(first, Round) else first
        return first if isinstance(first, FusedSum) else None

    @property
    def between(self) -> Rounding | None:
        """The rounding of the sum of the products alone, before other terms join it; None if that sum is not
        rounded."""
        first = None if self.joins is None else self.joins.operands[0]
        return first.rounding if isinstance(first, Round) else None

    def result_format(self, d: Format) -> Format:
        """The format of the step's result."""
        return d if self.round is None else self.round.rounding.format


@dataclass(frozen=True)
class Store:
    """After every `every` steps of the root's chain, the running sum is rounded once more, by `round`."""

    every: int
    round: Round


@dataclass(frozen=True)
class Draft:
    """The arithmetic of a unit, apart from its summation tree. `tree`: the index of the tree, if several trees are
    possible. `steps`: the arithmetic of the steps, by role.

    `product`: an expression over FACTORS; `a`, `b` and `c`: how these inputs are read; `products`: the rounding of
    products (None: they are exact); `addend`: the rounding of c times its power of two (None: there is no such
    rounding). `convert`: a further rounding of the last step's result, to the format of d. `counted`: numbers enter an
    alignment with the exponents of their leading bits.

    `start`: how the first step of a chain, which adds two products, begins: "pair": both in one sum; "first": the first
    product is rounded before the second is added; "zero": the first product is added to +0, and a fused sum of products
    alone includes +0; "second", "zero_second": as "first" and "zero", with the second product first. `unrounded`: the
    roles of steps whose products are exact though `products` rounds; `fused`: single products that are exact though
    `products` rounds. `parts`: the parts of a and b that are multiplied. `scaled`: the values that a device multiplies
    by powers of two: terms before they are added, or the largest sums whose terms all have the same power. `odd`:
    products with other fraction bits than their neighbours, and the difference (negative: fewer bits). `unshown`: the
    places of roundings whose modes no answer has distinguished.
    """

    steps: tuple[Step, ...]
    tree: int = 0
    product: Node = PRODUCT
    products: Round | None = None
    addend: Round | None = None
    convert: Round | None = None
    store: Store | None = None
    a: Element = INPUTS[0]
    b: Element = INPUTS[1]
    c: Element = INPUTS[2]
    counted: bool = False
    start: Start = "pair"
    unrounded: frozenset[int] = frozenset()
    fused: frozenset[int] = frozenset()
    parts: Parts = UNSPLIT
    scaled: Scaled = "terms"
    odd: Odd | None = None
    unshown: frozenset[Place] = frozenset()

    def roundings(self) -> dict[Place, Round]:
        """Every rounding, by its place."""
        roundings: dict[Place, Round | None] = {role: step.round for role, step in enumerate(self.steps)}
        roundings |= {"products": self.products, "addend": self.addend, "convert": self.convert}
        roundings["store"] = None if self.store is None else self.store.round
        roundings |= {("leaves", role): step.leaves for role, step in enumerate(self.steps)}
        return {place: own for place, own in roundings.items() if own is not None}

    def with_roundings(self, roundings: Mapping[Place, Round]) -> Draft:
        """The draft with other roundings at these places."""
        steps = tuple(
            replace(step, round=roundings.get(role, step.round), leaves=roundings.get(("leaves", role), step.leaves))
            for role, step in enumerate(self.steps)
        )
        store = self.store and replace(self.store, round=roundings.get("store", self.store.round))
        products, addend = roundings.get("products", self.products), roundings.get("addend", self.addend)
        convert = roundings.get("convert", self.convert)
        return replace(self, steps=steps, products=products, addend=addend, convert=convert, store=store)

    def with_each_rounding(self, change: Callable[[Round], Round]) -> Draft:
        """The draft with every rounding changed."""
        return self.with_roundings({place: change(own) for place, own in self.roundings().items()})

    def with_step(self, role: int, step: Step) -> Draft:
        return replace(self, steps=(*self.steps[:role], step, *self.steps[role + 1 :]))

    def with_sums(self, change: Callable[[Node], Node]) -> Draft:
        """The draft with the sum of every step changed."""
        return replace(self, steps=tuple(replace(step, sum=change(step.sum)) for step in self.steps))

    def read_as(self, a: Subnormals, b: Subnormals, c: Subnormals) -> Draft:
        """The draft whose subnormal inputs are read in these ways."""
        left, right = replace(self.a, subnormals=a), replace(self.b, subnormals=b)
        return replace(self, a=left, b=right, c=replace(self.c, subnormals=c))

    def with_zeros(self, positive: bool) -> Draft:
        """The draft whose zero inputs are read as +0, or keep their signs."""
        a, b, c = (replace(x, positive_zeros=positive) for x in (self.a, self.b, self.c))
        return replace(self, a=a, b=b, c=c)

    @property
    def fuses(self) -> bool:
        """Whether any step aligns its terms."""
        return any(step.aligned is not None for step in self.steps)

    @property
    def last(self) -> Place:
        """The place of the last rounding."""
        return 0 if self.convert is None else "convert"
