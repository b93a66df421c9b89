"""Parts of a claim: named schemes, plans and models that give d = c + sum of a_k * b_k."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache

from mmaprobe.smtmodel.algorithms.reference import REDUCTIONS
from mmaprobe.smtmodel.algorithms.words import converted
from mmaprobe.smtmodel.arithmetic.formats import Format
from mmaprobe.smtmodel.base.errors import ParameterError
from mmaprobe.smtmodel.carriers.algebra import Bit, Bits, all_of
from mmaprobe.smtmodel.evaluate.operands import check_plain
from mmaprobe.smtmodel.nodes import Round
from mmaprobe.smtmodel.nodes.round import Rounding
from mmaprobe.smtmodel.plans.dot import ByFirstWords, Dot, Step, word_format
from mmaprobe.smtmodel.plans.lowering import unit_of_plan
from mmaprobe.smtmodel.plans.multiword import parse_scheme
from mmaprobe.smtmodel.plans.plan import Plan
from mmaprobe.smtmodel.plans.stages import Chain
from mmaprobe.smtmodel.tables.reference import CORE, is_plan, is_unit_file, parse_plan_reference
from mmaprobe.smtmodel.units.unit import Unit


@dataclass(frozen=True)
class Part:
    """The algorithm named by a text: a scheme such as markidis, a plan, or a model chained over all products. Raises
    the errors of `parse_scheme` and `parse_plan_reference`, and ParameterError for an algorithm that is no chain of
    plain products."""

    text: str

    def __post_init__(self) -> None:
        plan = self.plan
        if plan.scale is not None or plan.a.name != plan.b.name:
            raise ParameterError(self.text, "a unit with factors of one format and no scale factors is needed")
        for model in plan.models:
            check_plain(model)

    @cached_property
    def plan(self) -> Plan:
        text = self.text.strip()
        path = text.partition("@")[0]
        if not ("/" in path or path.endswith(CORE) or is_plan(text) or is_unit_file(text)):
            if path in REDUCTIONS:
                raise ParameterError(text, "a sum of numbers, where an algorithm for products is needed")
            parse_scheme(text)  # its error names the nearest scheme
        return parse_plan_reference(text)

    @property
    def source(self) -> Format:
        """The format of the factors."""
        return self.plan.a

    @property
    def addend(self) -> Format:
        return self.plan.c

    @property
    def result(self) -> Format:
        return self.plan.d

    @property
    def words(self) -> int:
        """The largest number of words of a factor."""
        return max(len(self.plan.words_read(side)) for side in range(2))

    def steps(
        self, a: Sequence[Bits], b: Sequence[Bits], c: Bits, given: Format, first_words: bool = False
    ) -> dict[Step, Bits]:
        """The values of the steps, the last of them RESULT; a and b are in the format `given`, a subset of the part's
        format.

        `first_words`: the caller knows that all factors are `whole`, and that the unit's result for products with zeros
        and the addend +0 is +0.
        """
        if first_words:
            firsts = [[self._first(number, given, side) for number in numbers] for side, numbers in enumerate((a, b))]
            return ByFirstWords(self.plan, (firsts[0], firsts[1]), c).all_steps()
        left, right = ([converted(number, given, self.source) for number in side] for side in (a, b))
        return Dot(self.plan, left, right, c).all_steps()

    def _first(self, number: Bits, given: Format, side: int) -> Bits:
        """A number converted to the format of its first word, which holds it."""
        return converted(number, given, word_format(self.plan, side))

    def whole(self, number: Bits, given: Format) -> Bit:
        """Whether a number in the format `given` equals its first word, as a factor a and as a factor b, and its other
        words are +0."""
        wide = converted(number, given, self.source)
        dot, conditions = Dot(self.plan, [wide], [wide], wide), list[Bit]()
        for side, words in enumerate(dot.read):
            first, *rest = (dot.word(side, place, 0) for place in range(len(words)))
            conditions += [first.eq(self._first(number, given, side)), *(~word.any() for word in rest)]
        return all_of(conditions)

    def check(self, terms: int) -> None:
        """Raises ParameterError for a number of products that does not fit."""
        for chain in (product.stage for product in self.plan.sums if isinstance(product.stage, Chain)):
            model = chain.model
            if terms > model.length and not model.c.takes(model.d):
                what = f"{terms} products are a chain of a unit of {model.length}"
                raise ParameterError(self.text, f"{what}, but it takes c in {model.c.name} and gives {model.d.name}")
        unit_of_plan(self.plan, terms)

    def unit(self, given: Format, terms: int) -> Unit:
        """The part for `terms` products, as a unit with factors in the format `given`; its results are the part's for
        factors that the part `holds`. Raises ParameterError for a number of products that does not fit."""
        return _unit(self, given, terms)

    def holds(self, fmt: Format, low: int, high: int) -> bool:
        """Whether every normal number of a format with an exponent from `low` to `high` is a factor of this part."""
        mine = self.source
        return mine.fraction >= fmt.fraction and mine.emin <= low and high <= mine.emax


@lru_cache(maxsize=64)
def _unit(part: Part, given: Format, terms: int) -> Unit:
    unit = replace(unit_of_plan(part.plan, terms), a=given, b=given, reference=part.text)
    if isinstance(unit.result, Round):
        return unit
    return replace(unit, result=Round(unit.result, Rounding(part.result)))
