"""A plan: D of a matrix product of any K as an expression over c and over sums of all products."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from math import prod
from typing import Any, ClassVar

from mmaprobe.smtmodel.arithmetic.formats import Format
from mmaprobe.smtmodel.base.errors import ParameterError
from mmaprobe.smtmodel.base.htmltext import html_table
from mmaprobe.smtmodel.base.wording import shortened
from mmaprobe.smtmodel.evaluate.model import Model
from mmaprobe.smtmodel.nodes import Constant, Element, Node, Round
from mmaprobe.smtmodel.nodes.given import Given
from mmaprobe.smtmodel.nodes.node import Context, Value, of_kind, walk
from mmaprobe.smtmodel.nodes.round import Rounding
from mmaprobe.smtmodel.operand import FACTORS
from mmaprobe.smtmodel.plans.stages import Chain, Stage, check_holds, check_takes
from mmaprobe.smtmodel.plans.words import Gathered, Words, check_word, factor_of, gathered, share_of
from mmaprobe.smtmodel.units.unit import operand_formats


@dataclass(frozen=True, eq=False)
class Products(Node):
    """The sum of all products, which a stage forms from a start. It has a value at a given K only: as the expression
    into which the plan is lowered, or as a matrix."""

    kind: ClassVar[str] = "sum"
    source: ClassVar[str] = ""
    stage: Stage
    start: Node
    is_number = True

    def __post_init__(self) -> None:
        if isinstance(self.start, Round):
            check_holds("start", self.stage.accumulator, self.start.rounding.format)
        elif isinstance(self.start, Products):
            check_holds("start", self.stage.accumulator, self.start.stage.d)
        elif not isinstance(self.start, (Constant, Element)):
            raise ParameterError("start", f"a sum starts from c, zero or a rounded result, not `{self.start.kind}`")

    def evaluate(self, context: Context, keep: int | None) -> Value:
        raise ParameterError("sum", "a sum of all products has a value for a given K only")

    def sentence(self) -> str:
        return "the sum of all products"


@dataclass(frozen=True, repr=False)
class Plan:
    """How D is computed from A, B and C (`a`, `b`, `c`: their formats), for any K.

    `result`: an expression over `Products`, c and rounded nodes; it is a rounding, or a sum of products. `convert_a`,
    `convert_b`: how elements are rounded to the units' formats, or to a format whose numbers these formats hold, where
    elements are not taken as they are; it gives the word of a side that a unit reads if it names no other. `names`,
    `roundings`, `words`: the parts of the expression, the roundings, and the words of each side that the plan's file
    names. `place`: the file, line and key of its result.
    """

    a: Format
    b: Format
    c: Format
    result: Node
    convert_a: Rounding | None = None
    convert_b: Rounding | None = None
    reference: str = field(default="", compare=False)
    place: str = field(default="", compare=False)
    about: str = field(default="", compare=False)
    source: str = field(default="", compare=False)
    evidence: str = field(default="", compare=False)
    names: Mapping[str, Node] = field(default_factory=dict, compare=False, hash=False)
    roundings: Mapping[str, Rounding] = field(default_factory=dict, compare=False, hash=False)
    words: Mapping[str, Mapping[str, Round]] = field(default_factory=dict, compare=False, hash=False)

    def __post_init__(self) -> None:
        if not self.sums:
            raise ParameterError("d", "a plan needs a sum of all products: sum(UNIT, START)")
        if any(part.block for part in gathered(self.result)):
            raise ParameterError("d", "a step reads what all elements of a row or a column give, not those of a block")
        if not isinstance(self.result, (Round, Products)):
            raise ParameterError("d", "the result is not rounded to a format: its last step must be a round")
        for product in self.sums:
            if isinstance(product.start, Element):
                check_holds("start", product.stage.accumulator, self.c)
            if product.start != Constant():
                check_takes("start", product.stage)
        for chain in self.chains:
            self._check_unit(chain)

    def _check_unit(self, chain: Chain) -> None:
        model = chain.model
        for side, fmt, word in zip("ab", (self.a, self.b), self.read(chain.words), strict=True):
            if word is not None:
                check_word(side, word, fmt)
                if any(part.operand != side for part in gathered(word)):
                    raise ParameterError(side, "a word reads several elements of the other side")
            wanted, given = getattr(model, side), fmt if word is None else word.rounding.format
            if given != wanted:
                hint = (
                    " (conversions: a rounding for each of a and b)" if word is None
                    else f" (words of several roundings: {side}0: r(t({side})), where r rounds to {wanted.name})"
                )  # fmt: skip
                raise ParameterError(side, f"{model.reference} takes {wanted.name}, not {given.name}{hint}")
        first = self.models[0]
        if (model.scale, model.scale_block) != (first.scale, first.scale_block):
            raise ParameterError(model.reference, "all units of a plan take the same scale factors, or none")
        self._check_factors(chain)
        own = {row.name for row in FACTORS} if self.factors else set[str]()
        if more := [name for name in model.formats if name not in self.formats and name not in own]:
            raise ParameterError(model.reference, f"it takes {more[0]}, which no plan has")

    def _check_factors(self, chain: Chain) -> None:
        """Raises ParameterError for factors of words that do not fit the unit, or the other units."""
        model, own = chain.model, tuple(map(factor_of, self.read(chain.words)))
        if own == (None, None) and self.factors is None:
            return
        if self.factors != own:
            raise ParameterError(model.reference, "all words that units read have the same pair of factors, or none")
        for side, factor in zip("ab", self.factors, strict=True):
            if factor.rounding.format != model.scale:
                wanted = "no scale factors" if model.scale is None else f"scale factors in {model.scale.name}"
                raise ParameterError(side, f"{model.reference} takes {wanted}, not in {factor.rounding.format.name}")
            if any(isinstance(part, Given) for part in walk(factor)):
                raise ParameterError(side, "the factor of a block reads no single element: largest(a, block=32)")
            if any(part.block not in (None, model.scale_block) for part in gathered(factor)):
                raise ParameterError(side, f"{model.reference} takes a factor for each {model.scale_block} products")

    @classmethod
    def chained(cls, model: Model, from_zero: bool = False) -> Plan:
        """The plan in which a unit takes K in tiles, from c; from +0 where the unit does not read c, or if
        `from_zero`."""
        result = Products(Chain(model), Element("c") if model.addend and not from_zero else Constant())
        return cls(model.a, model.b, model.c, result, reference=model.reference)

    def with_result(self, result: Node, **changes: Any) -> Plan:
        """The plan with another expression, whose nodes have no names, and with other changes."""
        return replace(self, result=result, names={}, roundings={}, **changes)

    @cached_property
    def addend(self) -> bool:
        """Whether c enters the result."""
        return any(node.is_addend for node in walk(self.result))

    @cached_property
    def formats(self) -> Mapping[str, Format]:
        """The formats of its operands by name."""
        return operand_formats(self.a, self.b, self.c, self.scale)

    @cached_property
    def sums(self) -> tuple[Products, ...]:
        """The sums of all products in it."""
        return tuple(of_kind(self.result, Products))

    @cached_property
    def formats_of_results(self) -> tuple[Format, ...]:
        """The formats of its result and of all sums on the way, each once."""
        rounded = (node.rounding.format for node in of_kind(self.result, Round))
        inside = (stage.d for products in self.sums for stage in products.stage.walk())
        return tuple(dict.fromkeys((self.d, *rounded, *inside)))

    @property
    def adds_integers(self) -> bool:
        """Whether all its sums are in formats of integers, in which too large a sum wraps or saturates; in other
        formats it is rounded."""
        return all(products.stage.d.is_integer for products in self.sums)

    @cached_property
    def models(self) -> tuple[Model, ...]:
        """The units that it uses, each once."""
        return tuple(dict.fromkeys(chain.model for chain in self.chains))

    @cached_property
    def chains(self) -> tuple[Chain, ...]:
        """The uses of units in its stages, each once."""
        return tuple(dict.fromkeys(chain for product in self.sums for chain in product.stage.chains))

    @cached_property
    def gathered(self) -> frozenset[Gathered]:
        """The numbers found from several elements of a row or a column at once that its words and its result read."""
        words = (word for side in range(2) for word in self.words_read(side) if word is not None)
        return frozenset(part for node in (*words, self.result) for part in gathered(node))

    @cached_property
    def factors(self) -> tuple[Round, Round] | None:
        """The scale factors of a and of b that come with its words; None where its units take none, or are given them
        from outside."""
        one, other = map(factor_of, self.read(self.chains[0].words))
        return None if one is None or other is None else (one, other)

    def read(self, words: Words) -> Words:
        """The words that a unit reads of elements, given the words that its chain names."""
        a, b = words
        return (a or self._converted[0], b or self._converted[1])

    @cached_property
    def _converted(self) -> Words:
        return self._word("a", self.convert_a), self._word("b", self.convert_b)

    def _word(self, side: str, how: Rounding | None) -> Round | None:
        """The word of a converted side, in the format of the units that name no other word: that of the first such unit
        for all."""
        if how is None:
            return None
        word = Round(Given(0, getattr(self, side)), how)
        taken = [getattr(chain.model, side) for chain in self.chains if getattr(chain, side) is None]
        wider = taken and taken[0] != how.format and taken[0].holds(how.format)
        return Round(word, Rounding(taken[0])) if wider else word

    def words_read(self, side: int) -> tuple[Round | None, ...]:
        """The words of a (0) or of b (1) that its units read, each once, after the words of which it is made."""
        return self._words_read[side]

    @cached_property
    def _words_read(self) -> tuple[tuple[Round | None, ...], ...]:
        read = [dict.fromkeys(self.read(chain.words)[side] for chain in self.chains) for side in range(2)]
        return tuple(tuple(sorted(words, key=lambda x: 0 if x is None else sum(1 for _ in walk(x)))) for words in read)

    def least_normal(self, operand: str) -> int:
        """The exponent of the smallest normal number of an input's format; of a word's format, where that has fewer
        exponents."""
        own: Format = getattr(self, operand)
        words = self.words_read("ab".index(operand)) if operand in "ab" else ()
        return max([own.emin, *(word.rounding.format.emin for word in words if word is not None)])

    def share(self, products: Products) -> Fraction:
        """How many times one of its sums contains the sum of all products, where no word is rounded."""
        pairs = dict.fromkeys(self.read(chain.words) for chain in products.stage.chains)
        return sum((prod(map(share_of, pair), start=Fraction(1)) for pair in pairs), Fraction(0))

    @property
    def scale(self) -> Format | None:
        """The format of the scale factors that are given from outside, if its units take any."""
        return None if self.factors else self.models[0].scale

    @property
    def scale_block(self) -> int:
        """The number of products that share a pair of scale factors."""
        return self.models[0].scale_block

    @contextmanager
    def named(self) -> Iterator[None]:
        """Within this context, a ParameterError of a stage, such as for products that do not fit, names the plan or its
        place, too, unless it begins with that name."""
        try:
            yield
        except ParameterError as error:
            name, text = self.place or self.reference or "plan", str(error)
            raise ParameterError("" if text.startswith((f"{name}:", f"{name} ")) else name, text) from None

    def __repr__(self) -> str:
        """Two lines: what it takes and gives, and what it does."""
        return f"{self._head}\n  {shortened(self.about or f'by {self._units}', 110)}"

    def _repr_html_(self) -> str:
        facts = [(key, text) for key in ("about", "source", "evidence") if (text := getattr(self, key))]
        return html_table(self._head, [*facts, ("units", self._units)])

    @property
    def _head(self) -> str:
        addend = f"{self.c.name} + " if self.addend else ""
        name = f"plan:{self.reference}" if self.about else self.reference or "a plan"
        return f"{name}: {addend}sum of K products {self.a.name} * {self.b.name} -> {self.d.name}"

    @property
    def _units(self) -> str:
        return ", ".join(model.reference for model in self.models)

    @property
    def d(self) -> Format:
        """The format of the result."""
        return self.result.rounding.format if isinstance(self.result, Round) else self._last.stage.d

    @property
    def _last(self) -> Products:
        assert isinstance(self.result, Products)
        return self.result
