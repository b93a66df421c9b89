"""Words: what a unit of a plan reads in place of an element, as an expression over this element (`Given`), rounded. It
may hold the power of two that the elements of the whole row or column share (`SharedOf`)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache, cached_property
from typing import ClassVar

from mmaprobe.smtmodel.arithmetic.display import exact_value
from mmaprobe.smtmodel.arithmetic.formats import Format
from mmaprobe.smtmodel.base.errors import ParameterError
from mmaprobe.smtmodel.nodes import Element, ExactSum, Literal, Node, Product, Residue, Round
from mmaprobe.smtmodel.nodes.element import MINUS, power_of_two
from mmaprobe.smtmodel.nodes.given import Given
from mmaprobe.smtmodel.nodes.node import Context, Terminal, Value, of_kind, walk
from mmaprobe.smtmodel.nodes.rewriting import replaced
from mmaprobe.smtmodel.nodes.round import Rounding
from mmaprobe.smtmodel.nodes.shared import powers_of

#: what is read in place of an element of a, and of one of b; None: the element as it is
Words = tuple[Round | None, Round | None]
PLAIN: Words = (None, None)


@dataclass(frozen=True, eq=False)
class SharedOf(Terminal):
    """The power of two that all elements of a row of A, or of a column of B, share (see `Shared`). It has a value for
    a given K only. `format`: of the elements."""

    kind: ClassVar[str] = "shared"
    source: ClassVar[str] = ""
    operand: str
    format: Format
    up: bool = False
    inverse: bool = False

    @cached_property
    def powers(self) -> Format:
        """The format of its patterns."""
        return powers_of(self.format)

    def evaluate(self, context: Context, keep: int | None) -> Value:
        raise ParameterError("shared", "a power of two that a whole row shares has a value for a given K only")

    def sentence(self) -> str:
        return f"the power of two that {self.operand}'s elements share"


def shares(node: Node) -> tuple[SharedOf, ...]:
    """The shared powers in an expression, each once."""
    return tuple(of_kind(node, SharedOf))


@cache
def over_given(word: Round) -> tuple[Round, tuple[SharedOf, ...]]:
    """A word over the element, and over its shared powers in their order, as `Given` nodes."""
    shares_of = shares(word)
    places = {shared: Given(number, shared.powers) for number, shared in enumerate(shares_of, start=1)}
    node = replaced(word, lambda part: places.get(part) if isinstance(part, SharedOf) else None)
    assert isinstance(node, Round)
    return node, shares_of


def rounded_element(fmt: Format, how: Rounding | None) -> Round | None:
    """The one word of a side whose elements are rounded; none if they are taken as they are."""
    return None if how is None else Round(Given(0, fmt), how)


def check_word(name: str, word: Node, fmt: Format) -> None:
    """Raises ParameterError for what is no word of elements of a format."""
    if not isinstance(word, Round):
        raise ParameterError(name, "a word is rounded to a format: its last step is a round")
    for node in walk(word):
        if not isinstance(node, Given | Literal | Round | ExactSum | Product | SharedOf | Residue):
            raise ParameterError(
                name, f"a word is made of the element, numbers, sums, products and residues, not a {node.kind}"
            )
        if isinstance(node, Given) and node != Given(0, fmt):
            raise ParameterError(name, f"a word of the other side, where one of {fmt.name} elements is needed")


def share_of(word: Node | None) -> Fraction:
    """The factor by which an element is multiplied to give a word, where nothing is rounded; 1 for the element
    itself."""
    match word:
        case Literal():
            value = exact_value(word.pattern, word.format)
            return value if isinstance(value, Fraction) else Fraction(0)
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
    """Those of `split`, unscaled and with a plain rounding, as a unit reads them."""
    return as_read(split(source, Rounding(how.format, how.mode), count))


def as_read(words: Sequence[Node]) -> tuple[Round | None, ...]:
    """Words as a unit reads them: None is the element itself."""
    return tuple(word if isinstance(word, Round) else None for word in words)


def word_at(word: Round, element: Element, shared: Callable[[SharedOf], Node]) -> Node:
    """A word of an element."""
    return replaced(word, lambda node: element if isinstance(node, Given) else
                    shared(node) if isinstance(node, SharedOf) else None)  # fmt: skip
