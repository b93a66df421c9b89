"""Drafts: units of which something is still open.

A draft is a summation tree with an expression for each part of the arithmetic: for the sums of each role, the roundings
between and after them, the products, the inputs. Such an expression is one over nodes, with holes where operands come.
What is tried are other expressions in these places (steps.py, axes.py), and what a node says of itself: its variants,
and the nodes that may stand around it (likely.py). Beside them a draft says what is no part of one place: what a sum
begins with, what is added in which order, which products are otherwise.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cache, cached_property
from typing import Any, ClassVar, Literal, NoReturn

from mmaprobe.queries.building.parts import UNSPLIT, Parts
from mmaprobe.smtmodel.arithmetic.formats import Format
from mmaprobe.smtmodel.arithmetic.rounding import Mode
from mmaprobe.smtmodel.nodes import Cut, Element, ExactSum, FusedSum, Index, Node, Product, Round
from mmaprobe.smtmodel.nodes.element import Subnormals
from mmaprobe.smtmodel.nodes.node import Terminal, walk
from mmaprobe.smtmodel.nodes.rewriting import rebuilt, replaced
from mmaprobe.smtmodel.nodes.round import Rounding

Start = Literal["pair", "first", "zero", "second", "zero_second"]
Groups = Literal["", "even_odd", "pairs", "quads"]
Scaled = Literal["terms", "sums"]
Odd = tuple[frozenset[int], int]
#: where a rounding occurs: in the steps of a role, where their results enter another role, or elsewhere
Place = int | tuple[Literal["leaves"], int] | Literal["products", "addend", "convert", "store"]
Reads = tuple[Subnormals, Subnormals]  # how subnormal factors and a subnormal c are read


@dataclass(frozen=True, eq=False)
class Hole(Terminal):
    """Where an operand of an expression comes. `groups`: of products, each of which a sum adds by itself."""

    kind: ClassVar[str] = "hole"
    source: ClassVar[str] = ""
    name: str
    groups: Groups = ""

    def evaluate(self, *_: object) -> NoReturn:
        raise AssertionError("a draft has no value before its holes are filled")

    def sentence(self) -> str:
        return f"the place of {self.name}"


TERM = Hole("term")  # of a rounding
TERMS, PRODUCTS, OTHERS = Hole("terms"), Hole("products"), Hole("others")  # of a step: all, or its products and others
FACTORS = Hole("a"), Hole("b")  # of a product
EXACT, PRODUCT = ExactSum((TERMS,)), Product(*FACTORS)
INPUTS = Element("a", Index(0)), Element("b", Index(0)), Element("c")


@cache
def fused(
    bits: int, align: Mode = "toward_zero", sticky: bool = False, *,
    carry_bits: int | None = None, least: int | None = None, items: tuple[Node, ...] = (TERMS,),
) -> FusedSum:  # fmt: skip
    """A fused sum of F = `bits`."""
    return FusedSum(items, bits, align, sticky, carry_bits, None, least)


@cache
def how(fmt: Format, mode: Mode = "nearest_even", bits: int | None = None, first: Mode | None = None) -> Round:
    """A rounding. `bits`: first to this many significant bits, with unbounded exponent, in the mode `first` (None:
    `mode`)."""
    return of_rounding(Rounding(fmt, mode), bits, first)


def of_rounding(rounding: Rounding, bits: int | None = None, first: Mode | None = None) -> Round:
    return Round(TERM if bits is None else Cut(TERM, bits, first or rounding.mode), rounding)


def made(term: Node, how: Round) -> Node:
    """A term rounded."""
    return Round(replace(how.term, term=term) if isinstance(how.term, Cut) else term, how.rounding)


def bits_of(how: Round) -> int | None:
    """The bits to which it first rounds with unbounded exponent."""
    return how.term.bits if isinstance(how.term, Cut) else None


def in_mode(how: Round, mode: Mode) -> Round:
    """In another mode, also where it first rounds to fewer bits, if it is one mode."""
    own, term = how.rounding, how.term
    if isinstance(term, Cut) and term.mode == own.mode:
        term = replace(term, mode=mode)
    return Round(term, replace(own, mode=mode))


def with_ends(how: Round, **ends: Any) -> Round:
    """With other parameters for what lies at the ends of the range."""
    return Round(how.term, replace(how.rounding, **ends))


def changed(root: Node, kind: type[Node], change: Callable[..., Node]) -> Node:
    """The expression with every node of a kind changed."""
    return rebuilt(root, lambda _, node: change(node) if isinstance(node, kind) else node, {})


def with_node(root: Node, old: Node, new: Node) -> Node:
    """The expression with another node in the place of one."""
    return replaced(root, lambda part: new if part == old else None)


@dataclass(frozen=True)
class Step:
    """The arithmetic of the steps of one role. `sum`: over TERMS; or over PRODUCTS, which are summed first, and OTHERS.
    `how`: the rounding of the sum; None: it is not rounded. `leaves`: that of the result where it is an operand of a
    step of another role. `negated`: the terms are added with their signs changed, in the mirrored mode, and the sign of
    the rounded sum is changed back. Exact cancellation then gives -0 when rounding to nearest."""

    how: Round | None
    sum: Node = EXACT
    leaves: Round | None = None
    negated: bool = False

    @cached_property
    def aligned(self) -> FusedSum | None:
        """The sum that aligns its products, if one does."""
        return next((node for node in walk(self.sum) if isinstance(node, FusedSum)), None)

    @property
    def bits(self) -> int | None:
        """F of that sum."""
        found = None if self.aligned is None else self.aligned.fraction_bits
        assert not isinstance(found, tuple)
        return found

    @cached_property
    def first(self) -> FusedSum | None:
        """The sum of its products alone, where other terms join them late."""
        joins = (node.operands[0] for node in walk(self.sum) if OTHERS in node.operands)
        return next((node for node in joins if isinstance(node, FusedSum)), None)

    def rounding(self, d: Format) -> Format:
        """The format of its result."""
        return d if self.how is None else self.how.rounding.format


@dataclass(frozen=True)
class Store:
    """The running sum of the root's chain is also rounded, as `how` says, after every `every` steps."""

    every: int
    how: Round


@dataclass(frozen=True)
class Draft:
    """A unit but for its summation tree. `tree`: the index of the tree, where several are possible. `steps`: by role.

    `product`, over FACTORS, of inputs read as `a` and `b` say; `products`: its rounding (None: it is exact). `c`: how
    the addend is read; `addend`: its rounding after it is multiplied by one. `convert`: a further rounding of the last
    step's result, to the format of d. `counted`: numbers count in an alignment with their leading bits.

    `start`: how a step that adds two products, the first of a chain, begins: "pair": both in one sum; "first": the
    first is rounded before the second is added; "zero": the first is added to +0, and a fused sum of products alone
    includes +0; "second", "zero_second": as "first" and "zero", with the second product first. `unrounded`: the roles
    of steps whose products are exact all the same; `fused`: products that are. `parts`: which bits of a and b are
    multiplied. `scaled`: what a device multiplies by a power of two: terms before they are added, or the largest sums
    of which all terms count with one. `odd`: products that keep other fraction bits than those beside them, and how
    many more (fewer if negative). `unshown`: the roundings whose modes are open, as no answer has told them apart.
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

    def hows(self) -> dict[Place, Round]:
        """Every rounding, by its place."""
        found: dict[Place, Round | None] = {role: step.how for role, step in enumerate(self.steps)}
        found |= {"products": self.products, "addend": self.addend, "convert": self.convert}
        found["store"] = None if self.store is None else self.store.how
        found |= {("leaves", role): step.leaves for role, step in enumerate(self.steps)}
        return {place: how for place, how in found.items() if how is not None}

    def with_hows(self, hows: Mapping[Place, Round]) -> Draft:
        """With other roundings at these places."""
        steps = tuple(
            replace(step, how=hows.get(role, step.how), leaves=hows.get(("leaves", role), step.leaves))
            for role, step in enumerate(self.steps)
        )
        store = self.store and replace(self.store, how=hows.get("store", self.store.how))
        products, addend = hows.get("products", self.products), hows.get("addend", self.addend)
        convert = hows.get("convert", self.convert)
        return replace(self, steps=steps, products=products, addend=addend, convert=convert, store=store)

    def every_how(self, change: Callable[[Round], Round]) -> Draft:
        """With every rounding changed."""
        return self.with_hows({place: change(how) for place, how in self.hows().items()})

    def with_step(self, role: int, step: Step) -> Draft:
        return replace(self, steps=(*self.steps[:role], step, *self.steps[role + 1 :]))

    def with_sums(self, change: Callable[[Node], Node]) -> Draft:
        """With the sum of every step changed."""
        return replace(self, steps=tuple(replace(step, sum=change(step.sum)) for step in self.steps))

    def read_as(self, a: Subnormals, b: Subnormals, c: Subnormals) -> Draft:
        """With subnormal inputs read in these ways."""
        read = (replace(x, subnormals=way) for x, way in ((self.a, a), (self.b, b), (self.c, c)))
        return self._reading(*read)

    def with_zeros(self, positive: bool) -> Draft:
        """Whether zeros are read as +0."""
        return self._reading(*(replace(x, positive_zeros=positive) for x in (self.a, self.b, self.c)))

    def _reading(self, a: Element, b: Element, c: Element) -> Draft:
        return replace(self, a=a, b=b, c=c)

    @property
    def fuses(self) -> bool:
        """Whether any step aligns its terms."""
        return any(step.aligned is not None for step in self.steps)

    @property
    def last(self) -> Place:
        """Where the result is rounded."""
        return 0 if self.convert is None else "convert"
