"""Questions to solvers: do two units differ, are they equal, does a claim hold?"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from html import escape
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from mmaprobe.arrays import numbers_of
from mmaprobe.named import (
    Model,
    Plan,
    WantedError,
    choice_of,
    flag_of,
    gives_plan,
    model_of,
    restrictions_of,
    seconds_of,
    whole_of,
    whole_product_of,
)
from mmaprobe.products import Plans, Units
from mmaprobe.smtmodel.arithmetic.display import exact_value
from mmaprobe.smtmodel.base.errors import ParameterError
from mmaprobe.smtmodel.base.htmltext import html_table
from mmaprobe.smtmodel.evaluate.operands import Operands
from mmaprobe.smtmodel.operand import NAMED

if TYPE_CHECKING:
    from mmaprobe.documents.distinguish import QuestionAnswered
    from mmaprobe.documents.prove import Prove, ProvePlans
    from mmaprobe.documents.verify import Claim
    from mmaprobe.queries.claims.outcome import Outcome
    from mmaprobe.queries.kernel.questions.problem import Problem
    from mmaprobe.queries.search.distinguish import Options
    from mmaprobe.queries.search.witness import Witness


TERMS, SHOWN = 4, 20  # terms, at most, in a line and in a table


@dataclass(frozen=True, repr=False)
class Case:
    """One input of a unit, and the unit's result: arrays of numbers in the types of its formats.

    `a`, `b`: one axis with the products' factors; `c`, `d`: one number, `c` None if the unit reads none;
    `more`: name -> a further operand of the unit; for scale factors `scale_a` and `scale_b`, one axis each. `unit`: its
    reference.
    """

    unit: str
    a: NDArray[Any]
    b: NDArray[Any]
    c: Any
    d: Any
    more: Mapping[str, Any] = field(default_factory=dict)

    def __repr__(self) -> str:
        """Two lines: the unit and its result, and the products that are not zero with c."""
        return f"{self.unit} gives {self.d}\n  of {self.terms}"

    def _repr_html_(self) -> str:
        return case_table(f"{self.unit} gives {self.d}", self)

    @property
    def terms(self) -> str:
        """The input as a sum: its products that are not zero, and c."""
        return terms_text(self.a, self.b, self.c, self.more)


@dataclass(frozen=True, repr=False)
class Difference:
    """A deciding input, evaluated again. If two units differ on it, `left` and `right` are the input with each unit's
    result. If a property fails, `right` is the case that the property compares with: another order, other signs, one
    operand raised."""

    left: Case
    right: Case

    def __repr__(self) -> str:
        """Two lines: both results, and the input."""
        return f"{self._head}\n  of {self._input.terms}{self._other}"

    def _repr_html_(self) -> str:
        return case_table(self._head, self._input) + (f"<div>{escape(self._other)}</div>" if self._other else "")

    @property
    def _input(self) -> Case:
        """The left input, with the c that the right one alone reads."""
        return self.left if self.left.c is not None else replace(self.left, c=self.right.c)

    @property
    def _head(self) -> str:
        left, right = self.left, self.right
        if left.unit == right.unit:
            return f"{left.unit} gives {left.d} | {right.d}"
        return f"{left.unit} gives {left.d} | {right.unit} gives {right.d}"

    @property
    def _other(self) -> str:
        right = self.right if self.right.c is not None else replace(self.right, c=self.left.c)
        return "" if self._input.terms == right.terms else f" | {right.terms}"


@dataclass(frozen=True, repr=False)
class Counterexample:
    """The input that decides a claim: arrays of numbers in the types of its formats.

    `a`, `b`: one axis with the products' factors; `c`: one number; `results`: name -> the result of this part of the
    claim; `exact`: c + sum of a[k] * b[k], as a fraction.
    """

    a: NDArray[Any]
    b: NDArray[Any]
    c: Any
    results: Mapping[str, Any]
    exact: Fraction

    def __repr__(self) -> str:
        """Two lines: the result of each part, and the input."""
        return f"{self._head}\n  of {terms_text(self.a, self.b, self.c, {})}"

    def _repr_html_(self) -> str:
        return case_table(self._head, self)

    @property
    def _head(self) -> str:
        return ", ".join(f"{name} gives {number}" for name, number in self.results.items())


class Verdicts:
    """`bool()` of a verdict is an error: a verdict has three values."""

    document: Any

    def __repr__(self) -> str:
        """Two lines: the verdict, and the input that decided or the solvers that answered."""
        return "\n".join(f"{'  ' * (n > 0)}{line}" for n, line in enumerate(self._lines()))

    def _repr_html_(self) -> str:
        first, *rest = self._lines()
        shown = next((one._repr_html_() for one in self._shown if one is not None), "")
        if shown:
            return f"<div><b>{escape(self._head)}</b></div>{shown}"
        return f"<div><b>{escape(first)}</b></div>" + "".join(f"<div>{escape(line)}</div>" for line in rest)

    @property
    def _shown(self) -> tuple[Any, ...]:
        """Inputs that decided, which notebooks show as a table."""
        return ()

    @property
    def _head(self) -> str:
        """The verdict, with its subject if no input shows the subject."""
        return self.verdict

    def _lines(self) -> list[str]:
        found = next((repr(one).splitlines() for one in self._shown if one is not None), [])
        return [": ".join([self._head, *found[:1]]), *(line.strip() for line in found[1:])]

    @property
    def verdict(self) -> str:
        """The verdict of the document."""
        return str(self.document.verdict)

    def __bool__(self) -> bool:
        raise TypeError(f"compare .verdict, which is {self.verdict!r}")


@dataclass(frozen=True, repr=False)
class Distinction(Verdicts):
    """Whether two units differ. `verdict`: different (with `differences`), equal (on every admitted input), or unknown
    (time ran out). `document`: the output of `mmaprobe distinguish --json` for the two units, as a value whose
    attributes are its keys, with each solver's answers."""

    document: QuestionAnswered = field(repr=False)
    differences: tuple[Difference, ...]

    @property
    def _shown(self) -> tuple[Any, ...]:
        return self.differences[:1]


@dataclass(frozen=True, repr=False)
class Proved(Verdicts):
    """The outcome of a proof.

    `verdict`: for two units or plans equal (on every admitted input) or different; for a property holds or refuted; or
    unknown. `difference` is an input on which the two differ, or which refutes the property, evaluated again.
    `document`: the output of `mmaprobe prove --json`, as a value whose attributes are its keys: the solvers that proved
    and confirmed the lemmas, the rules, and the attempts.
    """

    document: Prove | ProvePlans = field(repr=False)
    difference: Difference | None

    @property
    def _shown(self) -> tuple[Any, ...]:
        return (self.difference,)

    @property
    def _head(self) -> str:
        from mmaprobe.documents.prove import ProvePlans

        document = self.document
        if self.difference is not None:
            return self.verdict if document.property == "equal" else f"{document.property}: {self.verdict}"
        sides = document if isinstance(document, ProvePlans) else document.proofs[0]
        equal = document.property == "equal"
        return f"{self.verdict}: {f'{sides.left} = {sides.right}' if equal else f'{document.property}, {sides.right}'}"

    def _lines(self) -> list[str]:
        from mmaprobe.documents.prove import proved_text

        by = proved_text(self.document.engines, self.document.confirmed_by, "")
        return [*super()._lines(), *([by] if by and self.verdict in ("equal", "holds") else [])]


@dataclass(frozen=True, repr=False)
class Claimed(Verdicts):
    """The outcome of one case of a claim. `verdict`: holds, refuted or unknown. `input`: the input that decided a claim
    about algorithms, or None; `difference`: the input that refuted a claim about units, or None. `document`: the output
    of `mmaprobe verify --json` for the case, as a value whose attributes are its keys."""

    document: Claim = field(repr=False)
    input: Counterexample | None = None
    difference: Difference | None = None

    @property
    def _shown(self) -> tuple[Any, ...]:
        return self.input, self.difference

    @property
    def _head(self) -> str:
        return f"{self.document.id}: {self.verdict}"

    def _lines(self) -> list[str]:
        first, *rest = super()._lines()
        return [first, *(rest or [self.document.claim])]


class Cases(list[Claimed]):
    """The cases of a claim, each with its outcome."""

    def __repr__(self) -> str:
        """Two lines for each case."""
        return "\n".join(map(repr, self))

    def _repr_html_(self) -> str:
        return "".join(one._repr_html_() for one in self)


def distinguish(
    left: Units,
    right: Units,
    *,
    count: int = 1,
    inputs: str = "",
    compare: Literal["bits", "value"] = "bits",
    timeout: float = 300.0,
    solver: str = "auto",
) -> Distinction:
    """Inputs on which two units differ, or the verdict that there are none.

    Shapes: of a difference, `a` and `b` have as many elements as the shorter unit has products.

    Units: `left` and `right`, of the same input formats. `count`: the number of differences, each of another kind;
    `inputs`: the inputs admitted, a comma-separated list of finite, nonnegative, nonzero, normal, products_below_two,
    special, exponents=LOW..HIGH; `compare`: bits, or value (zeros are equal, result formats may differ); `timeout` in
    seconds; `solver`: auto, bitwuzla, z3 or cvc5.

    Raises MmaprobeError: different formats, restrictions that admit no input, unknown names; its subclass FaultError if
    evaluation does not confirm a solver's answer.

    Source: every difference is evaluated again under both units; "equal" is the answer of one solver, checked against
    samples (docs/distinguish.md).
    """
    from mmaprobe.hypotheses.schema import pair_of
    from mmaprobe.queries.search.answer import answer
    from mmaprobe.queries.search.contradiction import check_problems

    choice_of("compare", compare, ("bits", "value"))
    question = pair_of(model_of("left", left), model_of("right", right), restrictions_of(inputs))
    answered = answer(question, options_of(solver, timeout, count), compare)
    (outcome,) = (pair.outcome for pair in answered.pairs)
    if outcome.verdict == "equal":
        check_problems([outcome.problem])
    differences = tuple(_difference(outcome.problem, witness) for witness in outcome.witnesses)
    return Distinction(answered.document(), differences)


def prove(
    left: Units | Plans,
    right: Units | Plans | None = None,
    *,
    property: str = "equal",
    length: int | None = None,
    inputs: str = "",
    compare: Literal["bits", "value"] | None = None,
    confirm: bool = True,
    timeout: float = 300.0,
    solver: str = "auto",
) -> Proved:
    """Prove two units or two plans equal, or a property of one unit, on every admitted input.

    Shapes: of a difference, `a` and `b` have one element for each product.

    Units: `left` and `right`, or `left` alone with `property`: order-independent, sign-symmetric, monotonic,
    monotonic-addend, monotonic-product, zero-padding or exact. For plans (plan:NAME, or results of `mmaprobe.plan`)
    `length` is K; without it the proof is for every multiple of a tile. `inputs` and `compare` as for `distinguish`;
    `confirm`: True or False, whether a second solver confirms every lemma; `timeout` in seconds for the whole proof;
    `solver` as for `distinguish`.

    Raises MmaprobeError: as `distinguish`, and for an unknown property.

    Source: stage by stage, by solvers and rules (docs/prove.md); certificates are written by `mmaprobe prove`.
    """
    from mmaprobe.hypotheses.properties import Property, check_compared
    from mmaprobe.queries.conjectures.models import ModelConjecture

    if property == "error-bound":
        raise ParameterError("property", "a bound is more than a verdict: mmaprobe.bound(unit)")
    choice_of("property", property, get_args(Property))
    if compare is not None:
        choice_of("compare", compare, ("bits", "value"))
    check_compared(property, compare)
    options, confirm = options_of(solver, timeout), flag_of("confirm", confirm)
    length = None if length is None else whole_of("length", length)
    if right is not None and property != "equal":
        raise ParameterError("right", f"{property} is a property of one unit")
    if right is not None and (length is not None or any(gives_plan(side) for side in (left, right))):
        if unread := [name for name, given in (("inputs", inputs), ("compare", compare)) if given]:
            whose = "plans" if any(gives_plan(side) for side in (left, right)) else "chains of units (length)"
            raise ParameterError(", ".join(unread), f"{whose} are compared bit for bit, on every input")
        return _plans_proved(whole_product_of("left", left), whole_product_of("right", right), length, options, confirm)
    if length is not None:
        one = (
            f"; one plan at one K is a unit: {left}@length={length}"
            if isinstance(left, str) and gives_plan(left)
            else ""
        )
        raise ParameterError("length", f"it is for two plans, or two units that take K in tiles{one}")
    restrictions, model = restrictions_of(inputs), model_of("left", left)
    if property == "equal" and right is None:
        raise ParameterError("right", "give a second unit, or a property of one")
    other = None if right is None else model_of("right", right)
    decided = ModelConjecture.of(property, model, other, restrictions, compare).decide(options, confirm)
    shown = (_difference(one.problem, one.witness) for one in decided.found if one.witness is not None)
    return Proved(decided.document, next(shown, None))


def verify(claim: str | os.PathLike[str], *, timeout: float = 300.0, solver: str = "auto") -> Cases:
    """Verify or refute a claim about algorithms on matrix units: each of its cases.

    `claim`: an id of `mmaprobe list claims`, one case of it (`ID@name=value`), or the path of a claim file.

    Shapes: those in the claim's file; inputs in the document are hexadecimal patterns.

    Units: those of the claim; `timeout` in seconds for each case; `solver` as for `distinguish`.

    Raises MmaprobeError: an unknown name, a file with a mistake.

    Source: each claim's file names its paper (docs/claims.md).
    """
    from mmaprobe.hypotheses.claim import claims_named
    from mmaprobe.queries.claims.decide import decide

    if not isinstance(claim, (str, os.PathLike)):
        raise WantedError("claim", claim, "the id of a claim or the path of its file")
    options = options_of(solver, timeout)
    outcomes: list[Outcome[Any]] = []
    for one in claims_named(os.fspath(claim)):
        outcomes.append(decide(one, options, outcomes))
    return Cases(Claimed(one.document, _input_of(one), _difference_of(one)) for one in outcomes)


def _input_of(outcome: Outcome[Any]) -> Counterexample | None:
    """The input that decided a claim about algorithms, as numbers."""
    if (decided := outcome.input) is None:
        return None
    operands, shape = decided.operands, decided.claim.shape
    results = {name: numbers_of([d], shape.parts[name].result)[0] for name, d in decided.results.items()}
    a, b = numbers_of(operands.a, shape.factors), numbers_of(operands.b, shape.factors)
    return Counterexample(a, b, numbers_of([operands.c], shape.addend)[0], results, decided.exact)


def _difference_of(outcome: Outcome[Any]) -> Difference | None:
    """The input that refutes a claim about units."""
    proof = outcome.refuting
    return None if proof is None or proof.witness is None else _difference(proof.problem, proof.witness)


def terms_text(a: NDArray[Any], b: NDArray[Any], c: Any, more: Mapping[str, Any]) -> str:
    """An input as a sum: its products that are not zero (nor is infinity times zero), and c unless it is None; only the
    first ones if there are many."""
    pairs = zip(a.tolist(), b.tolist(), strict=True)
    found = [f"{x} * {y}" for x, y in pairs if (x and y) or x * y != 0]  # a product of tiny numbers may be 0.0
    shown = found[:TERMS] + ([f"({len(found) - TERMS} more)"] if len(found) > TERMS else [])
    rest = [f", {name} {np.asarray(side).tolist()}" for name, side in more.items()]
    return " + ".join([*(shown or ["zero products"]), *([] if c is None else [f"c = {c}"])]) + "".join(rest)


def case_table(head: str, case: Case | Counterexample) -> str:
    """The products of an input that are not zero, and c unless it is None, as a table of HTML."""
    pairs = list(enumerate(zip(case.a.tolist(), case.b.tolist(), strict=True)))
    rows = [(k, x, y) for k, (x, y) in pairs if x or y]
    return html_table(head, [*rows[:SHOWN], *([] if case.c is None else [("c", case.c, "")])], ("k", "a", "b"))


def case_of(model: Model, operands: Operands[int], d: int | None = None) -> Case:
    """An input and a result as numbers: the result `d`, or, without it, the model's result."""
    from mmaprobe.smtmodel.evaluate.batch import evaluate_row

    pattern = evaluate_row(model, operands) if d is None else d
    sides = {name: numbers_of(operands.sides[name], fmt) for name, fmt in model.formats.items()}
    given: dict[str, Any] = {name: side[0] if NAMED[name].per == "sum" else side for name, side in sides.items()}
    a, b, c = (given.pop(name) for name in "abc")
    return Case(model.reference, a, b, c if model.addend else None, numbers_of([pattern], model.d)[0], given)


def _difference(problem: Problem, witness: Witness) -> Difference:
    from mmaprobe.queries.search.witness import inputs_of

    left, right = inputs_of(problem, witness.operands)
    one, other = case_of(problem.left, left), case_of(problem.right, right)
    if problem.every:  # sums over every value of an operand, in a format of their own
        one, other = (
            replace(case, d=float(exact_value(d, problem.left.d)), more=_without(case.more, problem.every))
            for case, d in ((one, witness.left), (other, witness.right))
        )
    return Difference(one, other)


def _without(more: Mapping[str, Any], names: Sequence[str]) -> dict[str, Any]:
    return {name: number for name, number in more.items() if name not in names}


def _plans_proved(left: Plan, right: Plan, length: int | None, options: Options, confirm: bool) -> Proved:
    from mmaprobe.queries.conjectures.plans import PlanConjecture

    decided = PlanConjecture(left, right, length, (left.reference, right.reference)).decide(options, confirm)
    proof, difference = decided.found, None
    if proof.witness is not None and proof.problem is not None:
        difference = _difference(proof.problem, proof.witness)
    return Proved(decided.document, difference)


def options_of(solver: str, timeout: float, count: int = 1) -> Options:
    """The options of solvers. Raises MmaprobeError."""
    from mmaprobe.queries.search.distinguish import Options

    choice_of("solver", solver, ("auto", "bitwuzla", "z3", "cvc5"))
    return Options(solver, seconds_of("timeout", timeout), count=whole_of("count", count))
