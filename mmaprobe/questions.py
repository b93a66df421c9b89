"""Questions put to solvers: do two units differ, are they equal, does a claim hold?"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from mmaprobe.products import Plans, Units
from mmaprobe.smtmodel.arithmetic.formats import Format
from mmaprobe.smtmodel.base.errors import ParameterError, UnknownNameError
from mmaprobe.smtmodel.evaluate.numbers import to_numbers
from mmaprobe.smtmodel.evaluate.operands import Operands
from mmaprobe.smtmodel.evaluate.tiles import kind_of
from mmaprobe.units import Model, Plan, WantedError, model_of, plan_of, restrictions_of, seconds_of, whole_of

if TYPE_CHECKING:
    from mmaprobe.documents.verify import Claim
    from mmaprobe.queries.kernel.problem import Problem
    from mmaprobe.queries.search.distinguish import Options
    from mmaprobe.queries.search.witness import Witness

Verdict = Literal["different", "equal", "unknown"]


@dataclass(frozen=True)
class Case:
    """One input of a unit, and the unit's result: arrays of numbers in the types of its formats.

    `a`, `b`: one axis with the products' factors; `c`, `d`: one number; `scale_a`, `scale_b`: one axis, or None where
    the unit takes none; `more`: what else it takes, by name. `unit`: its reference.
    """

    unit: str
    a: NDArray[Any]
    b: NDArray[Any]
    c: Any
    d: Any
    scale_a: NDArray[Any] | None = None
    scale_b: NDArray[Any] | None = None
    more: Mapping[str, NDArray[Any]] = field(default_factory=dict, repr=False)


@dataclass(frozen=True)
class Difference:
    """An input that decides, evaluated again. Two units differ on it: `left` and `right` are the input and the result
    of each. Where a property fails, `right` is what the property compares with: another order, other signs, one operand
    raised."""

    left: Case
    right: Case


class Verdicts:
    """`bool()` of it is an error: a verdict has three values."""

    verdict: str

    def __bool__(self) -> bool:
        raise TypeError(f"compare .verdict, which is {self.verdict!r}")


@dataclass(frozen=True)
class Distinction(Verdicts):
    """Whether two units differ. `verdict`: different (with `differences`), equal (on every admitted input, according to
    `engine`), or unknown (time ran out). `seconds`: of the deciding solvers."""

    verdict: Verdict
    differences: tuple[Difference, ...]
    engine: str | None
    seconds: float


@dataclass(frozen=True)
class Proved(Verdicts):
    """The outcome of a proof of `property`.

    `verdict`: of two units or plans equal, on every admitted input, or different; of a property holds or refuted; or
    unknown (`tried` says what was tried). `difference` is an input on which they differ, or which refutes the property,
    evaluated again. `engines` proved the lemmas; `confirmed_by` proved
    each of them again, or is empty. `seconds`: of the clock. `rules`: why the two are equal, where rules proved
    it without a lemma; `multiples`: of plans compared without `length`, a number: the verdict is for every K that is a
    multiple of it.
    """

    property: str
    verdict: Literal["equal", "different", "holds", "refuted", "unknown"]
    difference: Difference | None
    engines: tuple[str, ...]
    confirmed_by: tuple[str, ...]
    seconds: float
    rules: tuple[str, ...] = ()
    multiples: int | None = None
    tried: tuple[str, ...] = ()


@dataclass(frozen=True)
class Claimed(Verdicts):
    """The outcome of one case of a claim: of `id`, which says `claim`. `verdict`: holds, refuted or unknown;
    `expected`: what its file expects; `document`: what `mmaprobe verify --json` prints of it, as a value whose
    attributes are its keys, with the input that decided."""

    id: str
    claim: str
    verdict: Literal["holds", "refuted", "unknown"]
    expected: str
    document: Claim = field(repr=False)


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

    Units: `left` and `right`, of the same input formats. `count` differences that exercise different things; `inputs`:
    which are admitted, a comma-separated list of finite, nonnegative, nonzero, normal, products_below_two, special,
    exponents=LOW..HIGH; `compare`: bits, or value (zeros are equal, result formats may differ); `timeout` in seconds;
    `solver`: auto, bitwuzla, z3 or cvc5.

    Raises MmaprobeError: formats that differ, restrictions that admit no input, names that are not known; FaultError
    (one of them) where evaluation does not confirm a solver's answer.

    Source: every difference is evaluated again under both units; "equal" is the answer of one solver, checked against
    samples (docs/distinguish.md).
    """
    from mmaprobe.queries.kernel.problem import Problem
    from mmaprobe.queries.search.contradiction import check_problems
    from mmaprobe.queries.search.distinguish import distinguish as search

    _choice("compare", compare, ("bits", "value"))
    problem = Problem(
        model_of("left", left),
        model_of("right", right),
        restrictions_of(inputs),
        compare,
    )
    outcome = search(problem, options_of(solver, timeout, count))
    if outcome.verdict == "equal":
        check_problems([problem])
    answer = outcome.steps[-1].answer if outcome.steps else None
    by = f"{answer.engine} {answer.version}" if answer is not None and outcome.verdict == "equal" else None
    found = tuple(_difference(problem, witness) for witness in outcome.witnesses)
    return Distinction(outcome.verdict, found, by, outcome.seconds)


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
    monotonic-addend, monotonic-product, zero-padding or exact. Of plans (plan:NAME, or what `mmaprobe.plan` returns)
    `length` is K; without it the proof is for every multiple of a tile. `inputs` and `compare` as for `distinguish`;
    `confirm`: True or False, whether a second solver confirms every lemma; `timeout` in seconds for the whole proof;
    `solver` as for `distinguish`.

    Raises MmaprobeError: as `distinguish`, and for an unknown property.

    Source: stage by stage, by solvers and rules (docs/prove.md); certificates are written by `mmaprobe prove`.
    """
    from mmaprobe.hypotheses.properties import Property, check_compared
    from mmaprobe.queries.kernel.problem import Problem
    from mmaprobe.queries.kernel.statements import problems_of
    from mmaprobe.queries.properties.proving import proofs_of, verdict_on
    from mmaprobe.queries.properties.report import said
    from mmaprobe.queries.tactics.records import confirmations_of

    if property == "error-bound":
        raise ParameterError("property", "a bound is more than a verdict: mmaprobe.bound(unit)")
    _choice("property", property, get_args(Property))
    if compare is not None:
        _choice("compare", compare, ("bits", "value"))
    check_compared(property, compare)
    options, confirm = options_of(solver, timeout), flag_of("confirm", confirm)
    length = None if length is None else whole_of("length", length)
    if right is not None and property != "equal":
        raise ParameterError("right", f"{property} is a property of one unit")
    if right is not None and (length is not None or any(is_plan(side) for side in (left, right))):
        if unread := [name for name, given in (("inputs", inputs), ("compare", compare)) if given]:
            whose = "plans" if any(is_plan(side) for side in (left, right)) else "chains of units (length)"
            raise ParameterError(", ".join(unread), f"{whose} are compared bit for bit, on every input")
        return _plans_proved(_plan("left", left), _plan("right", right), length, options, confirm)
    if length is not None:
        raise ParameterError("length", "it is for two plans, or two units that take K in tiles")
    restrictions, model = restrictions_of(inputs), model_of("left", left)
    if property == "equal" and right is None:
        raise ParameterError("right", "give a second unit, or a property of one")
    if right is None:
        problems = problems_of(property, model, restrictions, compare)
    else:
        problems = [Problem(model, model_of("right", right), restrictions, compare or "bits")]
    proofs = proofs_of(problems, options, confirm)
    shown = next((proof for proof in proofs if proof.witness is not None), None)
    difference = None
    if shown is not None and shown.witness is not None:
        difference = _difference(shown.problem, shown.witness)
    return Proved(
        property,
        said(property, verdict_on(property, proofs)),
        difference,
        tuple(sorted({engine for proof in proofs for engine in proof.engines})),
        tuple(confirmations_of(proofs)),
        sum(proof.seconds for proof in proofs),
        rules=tuple(proof.why for proof in proofs if proof.why),
        tried=tuple(str(answer) for proof in proofs for answer in proof.tried if answer.status == "unknown"),
    )


def verify(claim: str | os.PathLike[str], *, timeout: float = 300.0, solver: str = "auto") -> list[Claimed]:
    """Verify or refute a claim about algorithms on matrix units: each of its cases.

    `claim`: an id of `mmaprobe list claims`, one case of it (`ID@name=value`), or the path of a claim file.

    Shapes: those that the claim's file says; inputs in the document are hexadecimal patterns.

    Units: those of the claim; `timeout` in seconds for each case; `solver` as for `distinguish`.

    Raises MmaprobeError: a name that is not known, a file with a mistake.

    Source: each claim's file says from which paper it is (docs/claims.md).
    """
    from mmaprobe.hypotheses.claim import claims_named
    from mmaprobe.queries.claims.decide import decide
    from mmaprobe.queries.claims.report import document_of

    if not isinstance(claim, (str, os.PathLike)):
        raise WantedError("claim", claim, "the id of a claim or the path of its file")
    found = []
    for one in claims_named(os.fspath(claim)):
        outcome = decide(one, options_of(solver, timeout))
        found.append(Claimed(one.id, one.text, outcome.verdict, str(one.expect), document_of(outcome)))
    return found


def numbers_of(patterns: Sequence[int] | NDArray[Any], fmt: Format) -> NDArray[Any]:
    """Patterns as numbers, in the type of their format."""
    return to_numbers(np.array(patterns, dtype=kind_of(fmt)), fmt)


def case_of(model: Model, operands: Operands[int], d: int | None = None) -> Case:
    """An input and a result as numbers; the model's result without `d`."""
    from mmaprobe.smtmodel.evaluate.batch import evaluate_row

    pattern = evaluate_row(model, operands) if d is None else d
    given = {name: numbers_of(operands.sides[name], fmt) for name, fmt in model.formats.items()}
    a, b, c = given.pop("a"), given.pop("b"), given.pop("c")[0]
    scales = given.pop("scale_a", None), given.pop("scale_b", None)
    return Case(model.reference, a, b, c, numbers_of([pattern], model.d)[0], *scales, given)


def _difference(problem: Problem, witness: Witness) -> Difference:
    from mmaprobe.queries.search.witness import moved_input

    operands = witness.operands
    return Difference(case_of(problem.left, operands), case_of(problem.right, moved_input(problem, operands)))


def _plans_proved(left: Plan, right: Plan, length: int | None, options: Options, confirm: bool) -> Proved:
    from mmaprobe.queries.plans.equal import prove_plans
    from mmaprobe.queries.tactics.records import confirmations_of

    proof = prove_plans(left, right, length, options, confirm)
    difference = None
    if proof.witness is not None and proof.problem is not None:
        problem, whole = proof.problem, proof.problem.whole(proof.witness.operands)
        difference = Difference(case_of(problem.left, whole), case_of(problem.right, whole))
    return Proved(
        "equal",
        proof.verdict,
        difference,
        tuple(sorted({engine for one in proof.proofs for engine in one.engines})),
        tuple(confirmations_of(proof.proofs)),
        proof.seconds,
        tuple(proof.rules),
        proof.multiples or None,
        tuple(proof.tried),
    )


def is_plan(side: object) -> bool:
    """Whether an argument is a plan for any K, or the name of one. Raises InputError for a file that is not YAML."""
    from mmaprobe.smtmodel.tables.reference import names_plan

    return isinstance(side, Plan) or (isinstance(side, (str, os.PathLike)) and names_plan(os.fspath(side)))


def _plan(name: str, side: object) -> Plan:
    return Plan.chained(side) if isinstance(side, Model) else plan_of(name, side)


def options_of(solver: str, timeout: float, count: int = 1) -> Options:
    """How solvers are asked. Raises MmaprobeError."""
    from mmaprobe.queries.search.distinguish import Options

    _choice("solver", solver, ("auto", "bitwuzla", "z3", "cvc5"))
    return Options(solver, seconds_of("timeout", timeout), count=whole_of("count", count))


def flag_of(name: str, given: object) -> bool:
    """True or False. Raises MmaprobeError."""
    if not isinstance(given, bool):
        raise WantedError(name, given, "True or False")
    return given


def _choice(name: str, given: str, known: Sequence[str]) -> None:
    if given not in known:
        raise UnknownNameError(name, str(given), known)
