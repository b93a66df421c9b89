"""Parts of a claim: anything that gives d = c + sum of a_k * b_k and has a name, an algorithm or a model."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

from mmaprobe.smtmodel.algorithms.forms import StepsForm
from mmaprobe.smtmodel.algorithms.products import Multiword
from mmaprobe.smtmodel.algorithms.reference import parse_algorithm
from mmaprobe.smtmodel.algorithms.steps import RESULT, Step
from mmaprobe.smtmodel.algorithms.words import converted, split
from mmaprobe.smtmodel.arithmetic.formats import Format
from mmaprobe.smtmodel.base.errors import ParameterError
from mmaprobe.smtmodel.carriers.algebra import Bit, Bits, all_of, constant
from mmaprobe.smtmodel.evaluate.model import Model
from mmaprobe.smtmodel.evaluate.operands import check_plain
from mmaprobe.smtmodel.tables.reference import parse_reference


class FirstWordForm(StepsForm):
    """A dot product of finite numbers that equal their first words (`firsts`, of a and of b): all other words are the
    constant zero, and so are the unit's results on these words and +0."""

    def __init__(self, firsts: Sequence[tuple[Bits, ...]], words: int) -> None:
        super().__init__()
        self.firsts, self.count = iter(firsts), words

    def words(
        self, side: tuple[Bits, ...], fmt: Format, split: Callable[[Bits], tuple[Bits, ...]]
    ) -> tuple[tuple[Bits, ...], ...]:
        first = next(self.firsts)
        return (first, *[tuple(constant(x.carrier, 0, x.width) for x in first)] * (self.count - 1))

    def instruction(self, unit: Model, a: tuple[Bits, ...], b: tuple[Bits, ...], addend: Bits) -> Bits:
        if addend.value == 0 and any(all(x.value == 0 for x in side) for side in (a, b)):
            return constant(addend.carrier, 0, unit.d.width)
        return super().instruction(unit, a, b, addend)


@dataclass(frozen=True)
class Part:
    """What a text names: an algorithm, or (with a slash in its name) a model, chained over as many products as there
    are. Raises what `parse_algorithm` and `parse_reference` raise, and ParameterError for a model that no chain of
    plain products fits."""

    text: str

    def __post_init__(self) -> None:
        what = self.what
        if isinstance(what, Model) and (what.scale is not None or what.a.name != what.b.name):
            raise ParameterError(self.text, "a unit with factors of one format and no scale factors is needed")
        if isinstance(what, Model):
            check_plain(what)

    @cached_property
    def what(self) -> Multiword | Model:
        is_model = "/" in self.text.partition("@")[0]
        return parse_reference(self.text) if is_model else parse_algorithm(self.text)

    @property
    def source(self) -> Format:
        """The format of the factors."""
        return self.what.a if isinstance(self.what, Model) else self.what.source_format

    @property
    def addend(self) -> Format:
        return self.what.c if isinstance(self.what, Model) else self.what.sum_format

    @property
    def result(self) -> Format:
        return self.what.d if isinstance(self.what, Model) else self.what.sum_format

    def steps(
        self, a: Sequence[Bits], b: Sequence[Bits], c: Bits, given: Format, first_words: bool = False
    ) -> dict[Step, Bits]:
        """The steps, the last is RESULT; a and b in the format `given`, whose numbers this one holds.

        `first_words`: it is known that numbers are `whole`, and that the unit makes +0 of zeros and +0.
        """
        left, right = ([converted(number, given, self.source) for number in side] for side in (a, b))
        what = self.what
        if isinstance(what, Multiword):
            kept = FirstWordForm(self._first(a, b, given), what.words) if first_words else StepsForm()
            what.evaluate(kept, tuple(left), tuple(right), c)
            return kept.steps
        form = StepsForm()
        form.note(RESULT, form.chain(what, tuple(left), tuple(right), 0, len(left), c))
        return form.steps

    def _first(self, a: Sequence[Bits], b: Sequence[Bits], given: Format) -> list[tuple[Bits, ...]]:
        """Numbers that the unit's formats hold, in these."""
        model = self.what if isinstance(self.what, Model) else self.what.model
        sides = ((a, model.a), (b, model.b))
        return [tuple(converted(number, given, fmt) for number in side) for side, fmt in sides]

    def whole(self, number: Bits, given: Format) -> Bit:
        """Whether a number in the format `given` is its own first word, as a factor a and b, and the others are +0."""
        what = self.what
        assert isinstance(what, Multiword)
        wide = converted(number, given, self.source)
        (left,), (right,) = self._first([number], [number], given)
        found = []
        for fmt, itself in ((what.model.a, left), (what.model.b, right)):
            first, *rest = split(wide, self.source, fmt, what.split, what.words, what.scale)
            found += [first.eq(itself), *(~word.any() for word in rest)]
        return all_of(found)

    def holds(self, fmt: Format, low: int, high: int) -> bool:
        """Whether every normal number of a format with an exponent from `low` to `high` is a factor of this part."""
        mine = self.source
        return mine.fraction >= fmt.fraction and mine.emin <= low and high <= mine.emax
