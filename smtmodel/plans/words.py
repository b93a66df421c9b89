"""Words: what a unit of a plan reads in place of an element, as an expression over this element (`Given`), rounded."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from mmaprobe.smtmodel.arithmetic.display import exact_value
from mmaprobe.smtmodel.arithmetic.formats import Format
from mmaprobe.smtmodel.base.errors import ParameterError
from mmaprobe.smtmodel.nodes import Element, ExactSum, Literal, Node, Product, Round
from mmaprobe.smtmodel.nodes.element import MINUS, power_of_two
from mmaprobe.smtmodel.nodes.given import Given
from mmaprobe.smtmodel.nodes.node import walk
from mmaprobe.smtmodel.nodes.rewriting import replaced
from mmaprobe.smtmodel.nodes.round import Rounding

#: what is read in place of an element of a, and of one of b; None: the element as it is
Words = tuple[Round | None, Round | None]
PLAIN: Words = (None, None)


def rounded_element(fmt: Format, how: Rounding | None) -> Round | None:
    """The one word of a side whose elements are rounded; none if they are taken as they are."""
    return None if how is None else Round(Given(0, fmt), how)


def check_word(name: str, word: Node, fmt: Format) -> None:
    """Raises ParameterError for what is no word of elements of a format."""
    if not isinstance(word, Round):
        raise ParameterError(name, "a word is rounded to a format: its last step is a round")
    for node in walk(word):
        if not isinstance(node, Given | Literal | Round | ExactSum | Product):
            raise ParameterError(name, f"a word is made of the element, numbers, sums and products, not a {node.kind}")
        if isinstance(node, Given) and node != Given(0, fmt):
            raise ParameterError(name, f"a word of the other side, where one of {fmt.name} elements is needed")


def share_of(word: Node | None) -> Fraction:
    """What a word is of its element where nothing is rounded: of the element 1."""
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
    """A number of a format as a sum of words, the k-th times 2^(-k * scale): each is what is left of it, rounded. What
    is left after a word is the difference, rounded to nearest (exact for numbers inside the range of both formats),
    times 2^scale."""
    found, nearest = list[Node](), Rounding(source)
    rest: Node = Given(0, source)
    for _ in range(count):
        found.append(rest if how.format == source else Round(rest, how))
        rest = Round(ExactSum((rest, Product(MINUS, found[-1]))), nearest)
        if scale:
            rest = Round(Product(power_of_two(scale), rest), nearest)
    return tuple(found)


def plain_words(source: Format, how: Rounding, count: int) -> tuple[Round | None, ...]:
    """Those of `split`, unscaled and with a plain rounding, as a unit reads them."""
    return as_read(split(source, Rounding(how.format, how.mode), count))


def as_read(words: Sequence[Node]) -> tuple[Round | None, ...]:
    """Words as a unit reads them: None is the element itself."""
    return tuple(word if isinstance(word, Round) else None for word in words)


def word_at(word: Round, element: Element) -> Node:
    """A word of an element."""
    return replaced(word, lambda node: element if isinstance(node, Given) else None)
