"""No input decides a claim about algorithms: the rules that derive this from facts about the claim's terms.

The terms are those of the claim on free symbols (queries/kernel/questions/scene.py), which the rule makes itself.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from mmaprobe.queries.kernel import arguments
from mmaprobe.queries.kernel.naming import model_text
from mmaprobe.queries.kernel.questions.scene import conditions, decides, scene_of, symbolic_scene
from mmaprobe.queries.kernel.terms.facts import Basis, Fact
from mmaprobe.queries.kernel.theorem import Made, RuleError, Theorem, goal_of, rule
from mmaprobe.smtmodel.algorithms.assertion import Assertion
from mmaprobe.smtmodel.algorithms.exact import admitted
from mmaprobe.smtmodel.algorithms.parts import Part
from mmaprobe.smtmodel.arithmetic.decode import unpack
from mmaprobe.smtmodel.arithmetic.formats import Format
from mmaprobe.smtmodel.carriers.algebra import Bit, Bits, all_of, constant, select
from mmaprobe.smtmodel.carriers.terms import TermCarrier
from mmaprobe.smtmodel.evaluate.model import Model, evaluate

Symbol = Callable[[str, int], Bits]


def check_windows(fmt: Format, *windows: tuple[int, int]) -> None:
    """Raises RuleError for a window of exponents that a format does not have: `admitted` says nothing of inputs
    there."""
    if any(not fmt.emin <= low <= high <= fmt.emax for low, high in windows):
        raise RuleError(f"a window of exponents beyond those of {fmt.name}")


@dataclass(frozen=True)
class FirstWordIsWhole:
    """For a zero, or a number with its exponent in one of the windows, the first word is the number itself (-0 is +0
    where there is one zero), and the other words are +0."""

    part: Part
    factors: Format
    windows: tuple[tuple[int, int], tuple[int, int]]

    def statement(self) -> str:
        return f"first words of {self.part.text} are the factors, for exponents {self.windows[0]} and {self.windows[1]}"

    def inputs(self, symbol: Symbol) -> tuple[Bits, ...]:
        return (symbol("x", self.factors.width),)

    def claim(self, inputs: tuple[Bits, ...]) -> Bit:
        (number,) = inputs
        check_windows(self.factors, *self.windows)
        outside = all_of([~admitted(number, self.factors, bounds) for bounds in self.windows])
        return outside | self.part.whole(number, self.factors)


@dataclass(frozen=True)
class ZerosGiveZero:
    """If all factors are finite, and each of `count` products has a factor zero, a unit gives +0 for the addend +0, and
    a zero of either sign for -0."""

    model: Model
    count: int

    def statement(self) -> str:
        return f"{model_text(self.model)} gives a zero where {self.count} products have a factor zero, and c is zero"

    def inputs(self, symbol: Symbol) -> tuple[Bits, ...]:
        sides = enumerate((self.model.a, self.model.b))
        factors = [symbol(f"x{side}_{k}", fmt.width) for side, fmt in sides for k in range(self.count)]
        return (*factors, symbol("sign", 1))

    def claim(self, inputs: tuple[Bits, ...]) -> Bit:
        model = self.model
        a, b, (sign,) = inputs[: self.count], inputs[self.count : -1], inputs[-1:]
        pairs = [(unpack(x, model.a), unpack(y, model.b)) for x, y in zip(a, b, strict=True)]
        given = [~(value.is_nan | value.is_infinite) for pair in pairs for value in pair]
        given += [x.is_zero | y.is_zero for x, y in pairs]
        none = constant(sign.carrier, 0, model.c.width)
        addend = select(sign.bit(0), constant(sign.carrier, model.c.sign_bit, model.c.width), none)
        result = evaluate(model, a, b, addend).d
        return ~all_of(given) | (unpack(result, model.d).is_zero & (sign.bit(0) | ~result.any()))


@dataclass(frozen=True)
class ByFirstWords:
    """On admitted inputs of a claim, the steps of a part equal those computed from its first words alone
    (smtmodel/plans/dot.py)."""

    assertion: Assertion
    part: str

    def statement(self) -> str:
        return f"the steps of {self.part} are those of its first words alone"


def lemmas_of(assertion: Assertion, name: str) -> tuple[FirstWordIsWhole, ZerosGiveZero]:
    """The lemmas that `by_first_words` needs about a part. Raises RuleError for one without words, and for several
    units."""
    part, shape = assertion.shape.parts[name], assertion.shape
    if part.words == 1:
        raise RuleError(f"by_first_words: {name} has one word of each factor")
    if len(part.plan.models) > 1:
        raise RuleError(f"by_first_words: {name} has several units")
    (model,) = part.plan.models
    return (FirstWordIsWhole(part, shape.factors, (shape.window.a, shape.window.b)),
            ZerosGiveZero(model, min(assertion.terms, model.length)))  # fmt: skip


@rule
def by_first_words(assertion: Assertion, name: str, whole: Theorem, zeros: Theorem) -> Made:
    """A part splits each factor into words, adds up products of words in its unit, and the unit's results outside of
    it. If the first word of every factor is the factor, and the others are +0, and the unit makes +0 of zeros, finite
    numbers and +0, then each step equals that of the first words, with +0 for the unit's results on other words and the
    addend +0. Fewer products than in the lemma are covered too: the missing ones are products with zeros."""
    wanted = lemmas_of(assertion, name)
    goals = (goal_of(whole, FirstWordIsWhole, "by_first_words"), goal_of(zeros, ZerosGiveZero, "by_first_words"))
    if goals != wanted:
        raise RuleError("by_first_words: a lemma is about another part, or other numbers")
    return Made(ByFirstWords(assertion, name), (whole, zeros))


@dataclass(frozen=True)
class ConditionsReadNumbers:
    """On every input in the windows of a claim, each condition reads numbers alone where those before it are met."""

    about: Assertion

    def statement(self) -> str:
        return "every value that a condition reads is a number"

    def inputs(self, symbol: Symbol) -> tuple[Bits, ...]:
        layout = self.about.layout
        names = layout.names[:-1] if self.about.zero_addend else layout.names
        return tuple(symbol(name, fmt.width) for name, fmt in zip(names, layout.formats, strict=False))

    def claim(self, inputs: tuple[Bits, ...]) -> Bit:
        none = constant(inputs[0].carrier, 0, self.about.shape.addend.width)
        row = (*inputs, none) if self.about.zero_addend else inputs
        return ~conditions(self.about, scene_of(self.about, row)).at_fault


class Question(Basis):
    """A claim as terms; `counts`: an input is admitted; `fits`: the results that the claim reads, of the parts `reads`,
    are numbers; `goal`: they are, and the input decides the claim; `at_fault`: a condition reads a result that is no
    number. Parts in `whole` are computed from first words alone."""

    def __init__(self, assertion: Assertion, whole: frozenset[str] = frozenset()) -> None:
        arguments.whole((assertion, whole))
        shaped = assertion.reshaped(whole=whole)
        self.assertion, self.whole = assertion, whole
        self.scene, self.symbols = symbolic_scene(shaped)
        asked, truth = conditions(shaped, self.scene), self.scene.truth(shaped.predicate)
        self.counts, self.at_fault, self.fits = asked.met, asked.at_fault, truth.numbers
        self.goal, self.reads = decides(assertion, truth), tuple(truth.reads)
        assert isinstance(self.scene.carrier, TermCarrier)
        super().__init__(self.scene.carrier, self.counts.node)

    @property
    def none(self) -> Bit:
        """The input does not decide the claim, or not all of the claim's values are numbers."""
        return ~self.goal


@dataclass(frozen=True)
class NoInputDecides:
    """Every value that the conditions of a claim read is a number on all inputs in the windows; on every admitted input
    the values of the claim are numbers, and the input does not decide the claim."""

    assertion: Assertion

    def __post_init__(self) -> None:
        if self.assertion.most is not None:
            raise RuleError("NoInputDecides: a claim about one number of products is needed")

    def statement(self) -> str:
        return f"no input decides: {self.assertion}"


@dataclass(frozen=True)
class NoLengthDecides:
    """As `NoInputDecides`, for a claim about several numbers of products and for each of these numbers; the claim's
    values are exact, without a limit of width."""

    assertion: Assertion

    def statement(self) -> str:
        return f"no input decides: {self.assertion}"


@rule
def undecided(
    question: Question,
    none: Theorem,
    numbers: Theorem | None,
    first: Sequence[Theorem] = (),
    asked: Theorem | None = None,
) -> Made:
    """No input decides a claim if no admitted input decides it where its values are numbers, and on every admitted
    input they are numbers. For all inputs in the windows it is defined which of them are admitted only if the values
    that the conditions read are numbers there (`asked`). The parts whose terms are computed from first words must be
    proved to equal these terms (`first`)."""
    premises = [none, *([] if numbers is None else [numbers])]
    wanted = [question.none] + ([] if numbers is None else [question.fits])
    goals: list[Fact] = [goal_of(premise, Fact, "undecided") for premise in premises]
    if [(goal.basis, goal.term) for goal in goals] != [(question, bit.node) for bit in wanted]:
        raise RuleError("undecided: a fact says something else, or of another claim")
    if numbers is None and not question.fits.node.is_true():
        raise RuleError("undecided: whether all values are numbers is not known")
    if asked is None:
        if not question.at_fault.node.is_false():
            raise RuleError("undecided: whether every value that a condition reads is a number is not known")
    elif goal_of(asked, ConditionsReadNumbers, "undecided").about is not question.assertion:
        raise RuleError("undecided: what is known of conditions is of another claim")
    words: list[ByFirstWords] = [goal_of(one, ByFirstWords, "undecided") for one in first]
    if any(one.assertion is not question.assertion for one in words) or {one.part for one in words} != question.whole:
        raise RuleError("undecided: that first words are whole is not known of every part made of them")
    return Made(NoInputDecides(question.assertion), (*premises, *first, *([] if asked is None else [asked])))
