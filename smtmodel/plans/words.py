"""Words: a word is the number that a unit of a plan reads in place of an element: a rounded expression over this
element (`Given`), and perhaps over numbers found from all elements of the row or column, or of a block (`Gathered`)."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cache, cached_property
from typing import ClassVar

from mmaprobe.smtmodel.arithmetic.decode import unpack
from mmaprobe.smtmodel.arithmetic.formats import Format
from mmaprobe.smtmodel.base.errors import ParameterError
from mmaprobe.smtmodel.carriers.algebra import Bits
from mmaprobe.smtmodel.nodes import Element, ExactSum, Largest, Literal, Node, Product, Quotient, Residue, Round, Shared
from mmaprobe.smtmodel.nodes.element import MINUS, power_of_two
from mmaprobe.smtmodel.nodes.given import Given, Magnitude
from mmaprobe.smtmodel.nodes.largest import check_magnitudes, magnitude
from mmaprobe.smtmodel.nodes.node import Context, Terminal, Value, of_kind, walk
from mmaprobe.smtmodel.nodes.rewriting import replaced
from mmaprobe.smtmodel.nodes.round import Rounding
from mmaprobe.smtmodel.nodes.shared import own_power, powers_of, shared_power

#: the words read in place of an element of a, and of an element of b; None: the element as it is
Words = tuple[Round | None, Round | None]
PLAIN: Words = (None, None)


@dataclass(frozen=True, eq=False)
class Gathered(Terminal):
    """A number found from all elements of a row of A, or of a column of B; or, with `block`, from every `block` of
    these elements. It has a value for a given K only. `format`: the format of the elements."""

    source: ClassVar[str] = ""
    later: ClassVar[frozenset[str]] = frozenset({"block"})
    operand: str
    format: Format
    block: int | None = field(default=None, kw_only=True)
    never_below_zero = True

    @property
    @abstractmethod
    def given(self) -> Format:
        """The format of the number's patterns."""

    @abstractmethod
    def own(self, pattern: Bits) -> Bits:
        """The pattern of one element; the largest pattern of several elements decides their common number."""

    @abstractmethod
    def found(self, largest: Bits) -> Bits:
        """The pattern of the common number, by the largest pattern of the elements."""

    @abstractmethod
    def node_over(self, items: tuple[Node, ...]) -> Node:
        """The node over these elements."""

    def evaluate(self, context: Context, keep: int | None) -> Value:
        raise ParameterError(self.kind, f"{self.sentence()} has a value for a given K only")

    @property
    def whose(self) -> str:
        """The elements, in words."""
        return f"{self.operand}'s elements" if not self.block else f"{self.block} elements of {self.operand}"


@dataclass(frozen=True, eq=False)
class SharedOf(Gathered):
    """The power of two that the elements share (see `Shared`)."""

    kind: ClassVar[str] = "shared"
    up: bool = False
    inverse: bool = False

    def __post_init__(self) -> None:
        if self.block is not None:  # the rules about slices are about whole rows
            raise ParameterError("block", "a power of two is shared by all elements of a row: for a block "
                                 "write largest(a, block=32)")  # fmt: skip

    @cached_property
    def given(self) -> Format:
        return powers_of(self.format)

    def own(self, pattern: Bits) -> Bits:
        return own_power(unpack(pattern, self.format), self.given, self.up)

    def found(self, largest: Bits) -> Bits:
        return shared_power(largest, self.given, self.inverse)

    def node_over(self, items: tuple[Node, ...]) -> Node:
        return Shared(items, self.format, self.up, self.inverse)

    def sentence(self) -> str:
        return f"the power of two that {self.whose} share"


@dataclass(frozen=True, eq=False)
class LargestOf(Gathered):
    """The largest magnitude of the elements (see `Largest`)."""

    kind: ClassVar[str] = "largest"

    def __post_init__(self) -> None:
        check_magnitudes(self.format)

    @property
    def given(self) -> Format:
        return self.format

    def own(self, pattern: Bits) -> Bits:
        return magnitude(pattern, self.format)

    def found(self, largest: Bits) -> Bits:
        return largest

    def node_over(self, items: tuple[Node, ...]) -> Node:
        return Largest(items, self.format)

    def sentence(self) -> str:
        return f"the largest magnitude of {self.whose}"


@dataclass(frozen=True, eq=False)
class Scaled(Round):
    """A word of a block format: a rounded element, with the scale factor of its block, which the unit reads as well."""

    kind: ClassVar[str] = "block_scaled"
    factor: Round | None = None

    @classmethod
    def of(cls, element: Round, factor: Round) -> Scaled:
        """An element that is rounded already, with a factor."""
        return cls(element, element.rounding, None, factor)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.factor is None or not any(part.block for part in gathered(self.factor)):
            raise ParameterError("block_scaled", "the factor of a block must be computed from the block's elements, "
                                 "as by largest(a, block=32), and rounded")  # fmt: skip

    @property
    def element(self) -> Round:
        """The number read in place of the element."""
        assert isinstance(self.term, Round)
        return self.term


def factor_of(word: Round | None) -> Round | None:
    """The scale factor that comes with a word."""
    return word.factor if isinstance(word, Scaled) else None


def gathered(node: Node) -> tuple[Gathered, ...]:
    """The numbers found from several elements that an expression reads, each once."""
    return tuple(of_kind(node, Gathered))


@cache
def over_given(word: Round) -> tuple[Round, tuple[Gathered, ...]]:
    """A word over `Given` nodes: the element, then the numbers found from several elements, in their order; and these
    numbers."""
    return _over(word.element if isinstance(word, Scaled) else word, 1)


@cache
def factor_over(factor: Round) -> tuple[Round, tuple[Gathered, ...]]:
    """A scale factor over `Given` nodes: the numbers found from several elements, in their order; and these numbers."""
    return _over(factor, 0)


def _over(word: Round, first: int) -> tuple[Round, tuple[Gathered, ...]]:
    read = gathered(word)
    places = {part: Magnitude(number, part.given) for number, part in enumerate(read, start=first)}
    node = replaced(word, lambda part: places.get(part) if isinstance(part, Gathered) else None)
    assert isinstance(node, Round)
    return node, read


def check_word(name: str, word: Node, fmt: Format) -> None:
    """Raises ParameterError for an expression that is no word of elements of a format."""
    if not isinstance(word, Round):
        raise ParameterError(name, "a word is rounded to a format: its last step must be a round")
    for node in walk(word):
        if not isinstance(node, Given | Literal | Round | ExactSum | Product | Quotient | Gathered | Residue):
            what = "numbers, sums, products, quotients and residues"
            raise ParameterError(name, f"a word is made of the element, {what}, not a {node.kind}")
        if isinstance(node, Given) and node != Given(0, fmt):
            raise ParameterError(name, f"a word of {node.format.name} elements, where {fmt.name} elements are needed")


def share_of(word: Node | None) -> Fraction:
    """The factor by which an element is multiplied to give a word, where nothing is rounded. The element itself, a
    quotient, a residue and a number found from several elements count as 1."""
    match word:
        case Literal():
            return word.value or Fraction(0)
        case ExactSum():
            return sum(map(share_of, word.items), Fraction(0))
        case Product():
            return share_of(word.left) * share_of(word.right)
        case Round():
            return share_of(word.term)
    return Fraction(1)


def split(source: Format, how: Rounding, count: int, scale: int = 0) -> tuple[Node, ...]:
    """A number of a format as a sum of words, the k-th of them times 2^(-k * scale). Each word is the remainder of the
    number, rounded; the next remainder is the difference, rounded to nearest (exact for numbers inside the range of
    both formats), times 2^scale."""
    words, nearest = list[Node](), Rounding(source)
    rest: Node = Given(0, source)
    for _ in range(count):
        words.append(rest if how.format == source else Round(rest, how))
        rest = Round(ExactSum((rest, Product(MINUS, words[-1]))), nearest)
        if scale:
            rest = Round(Product(power_of_two(scale), rest), nearest)
    return tuple(words)


def plain_words(source: Format, how: Rounding, count: int) -> tuple[Round | None, ...]:
    """The words of `split`, unscaled and with a plain rounding, as a unit reads them."""
    return as_read(split(source, Rounding(how.format, how.mode), count))


def as_read(words: Sequence[Node]) -> tuple[Round | None, ...]:
    """Words as a unit reads them: None is the element itself."""
    return tuple(word if isinstance(word, Round) else None for word in words)


def word_at(
    word: Round, element: Element, found: Callable[[Gathered], Node], became: dict[Node, Node] | None = None
) -> Node:
    """A word with its `Given` node replaced by an element, and its gathered numbers by `found`. `became` keeps the
    replacement of each node: words of one element have parts in common."""
    return replaced(word, lambda node: element if isinstance(node, Given) else
                    found(node) if isinstance(node, Gathered) else None, became)  # fmt: skip
