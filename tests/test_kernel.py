"""No theorem without an argument: rules called with what they are not about, engines that lie, rules and lemmas of
somebody else's, theorems that are changed."""

from __future__ import annotations

import copy
import pickle
from dataclasses import dataclass, replace
from typing import Any

import pytest
from click.testing import CliRunner

from cli.main import main
from queries.kernel import arguments, closed, enclosures, lemmas, rewriting
from queries.kernel import theorem as kernel
from queries.kernel.conditions import Condition
from queries.kernel.enclosures import Enclosed, element, exact, fused, rounded, scale, terms_of, weakened
from queries.kernel.expressions import one_expression, one_form
from queries.kernel.facts import Basis, follows, given
from queries.kernel.lemmas import AlignmentLoses, exhausted, settled
from queries.kernel.problem import Problem
from queries.kernel.rewriting import REWRITES, congruent, rewrite, rewritten
from queries.kernel.rounding_losses import RoundingLoses
from queries.kernel.same import Compared
from queries.kernel.statements import Monotonic
from queries.kernel.theorem import RULES, Made, OpenLemmaError, RuleError, Theorem, goal_of, rule
from queries.kernel.unreachable import Unreachable, refuted
from queries.solvers import asking
from queries.solvers.asking import Engines, Heard, SolverFaultError, confirmation
from queries.solvers.contract import Answer
from queries.solvers.pool import Pool
from queries.solvers.smtlib import Query
from queries.solvers.store import Store
from smtmodel.algebra import Bit, Bits
from smtmodel.carriers.terms import TermCarrier
from smtmodel.formats import FORMATS
from smtmodel.nodes import Element, ExactSum, FusedSum, Index, Product, Round
from smtmodel.nodes.round import Rounding
from smtmodel.reference import parse_reference
from smtmodel.unit import Unit
from tests.said import believed, says

VOLTA = "volta/mma/m8n8k4.f32.f16.f16.f32"
MODEL = parse_reference(VOLTA)
UNIT = MODEL.unit
ROUNDED = UNIT.result
assert isinstance(ROUNDED, Round)
assert isinstance(ROUNDED.term, FusedSum)
SUM = ROUNDED.term


def premises() -> list[Theorem]:
    """The theorems about the terms of Volta's sum."""
    made = []
    for item in SUM.items:
        for node, places in terms_of(item, {}):
            if isinstance(node, Product):
                own = [element(UNIT, factor, enclosures.bound_places(factor, dict(places))) for factor in node.operands]
                made.append(enclosures.product(node, places, own))
            else:
                assert isinstance(node, Element)
                made.append(element(UNIT, node, places))
    return made


def alignments() -> list[Theorem]:
    return list(map(believed, enclosures.alignments(SUM, (), premises())))


@dataclass(frozen=True)
class Nonsense:
    """A statement of one's own, that no value contradicts."""

    def statement(self) -> str:
        return "0 = 1"

    def inputs(self, symbol: Any) -> tuple[Bits, ...]:
        return (symbol("x", 1),)

    def claim(self, inputs: tuple[Bits, ...]) -> Bit:
        return inputs[0].bit(0) | ~inputs[0].bit(0)


class Odd(ExactSum):
    """A sum that is none."""


class Believing(Engines):
    """Engines that say what is wanted."""

    def answers(self, query: Query) -> list[Answer]:
        return [Answer("unsat", "z3", "0", 0.0)]


class Forgetful(Heard):
    """Everything was answered before."""

    def find(self, text: str, solver: str) -> Answer | None:
        return Answer("unsat", "z3", "0", 0.0)


class Lying(Pool):
    """A place where solvers run that says what is wanted."""

    def race(self, *given: Any) -> list[Answer]:
        return [Answer("unsat", "z3", "0", 0.0)]


class Full(Store):
    """A store that has every answer."""

    def __init__(self) -> None:
        pass

    def find(self, *given: Any) -> Answer | None:
        return Answer("unsat", "z3", "0", 0.0)


def basis() -> Basis:
    carrier = TermCarrier()
    return Basis(carrier, carrier.symbol("x", 4).any().node)


def terms() -> list[Theorem]:
    a, b, c = Element("a", Index(0)), Element("b", Index(0)), Element("c")
    return [element(UNIT, a), element(UNIT, b), element(UNIT, c)]


def test_what_is_right_is_a_theorem() -> None:
    total = fused(SUM, (), premises(), alignments())
    bound = rounded(ROUNDED, (), [total], [believed(RoundingLoses(UNIT.d, ROUNDED.rounding.mode))])
    assert goal_of(bound, Enclosed, "test").unit is UNIT


A, B, C = Element("a", Index(0)), Element("b", Index(0)), Element("c")
SMALL = Unit(
    FORMATS["f16"], FORMATS["f16"], FORMATS["f32"], 1, Round(FusedSum((A, B, C), 23), Rounding(FORMATS["f32"]))
)
LEMMA = RoundingLoses(FORMATS["e2m1"], "up")
CASE = Unreachable(MODEL, ((Condition("d", "rounding", "half, even"),),))

#: what is called with something that it is not about; the words of the error
MISUSES: dict[str, tuple[Any, str]] = {
    "an exact sum that truncates": (lambda: exact(SUM, (), premises()), "FusedSum is not a ExactSum"),
    "a product of three terms of a sum": (
        lambda: scale(SMALL.result.operands[0], (), terms()), "FusedSum is not a Scale"),
    "a subclass of a node": (lambda: exact(Odd((A, C)), (), terms()[::2]), "Odd is not a ExactSum"),
    "a node of one's own in any node's place": (
        lambda: congruent(rewriting.Scope.of(UNIT), Odd((A, C)), [None, None]), "Odd is not a Node"),
    "an addend in the place of a unit": (lambda: element(C, C), "is not a Unit or PlanAt"),
    "a number that is a truth": (lambda: enclosures.weakened(terms()[0], True), "bool is not a Form"),
    "places in a list": (lambda: element(UNIT, A, [(1, 0)]), "list is not a tuple"),
    "a place that is no number": (lambda: element(UNIT, A, ((1, True),)), "bool is not a int"),
    "lemmas left out": (lambda: fused(SUM, (), premises(), []), "stays open"),
    "some lemmas left out": (lambda: fused(SUM, (), premises(), alignments()[1:]), "stays open"),
    "no argument for lemmas": (lambda: fused(SUM, (), premises()), "missing a required argument"),
    "a lemma of another rounding": (
        lambda: rounded(ROUNDED, (), [fused(SUM, (), premises(), alignments())], [believed(LEMMA)]),
        "another datapath"),
    "a function for an engine": (
        lambda: settled(LEMMA, lambda query: [Answer("unsat", "z3", "0", 0.0)]), "function is not a Engines"),
    "an engine of one's own": (lambda: settled(LEMMA, Believing()), "Believing is not a Engines"),
    "a confirmation of one's own": (lambda: settled(LEMMA, says("unsat"), [Believing()]), "Believing is not a Engines"),
    "an answer for an engine": (lambda: settled(LEMMA, Answer("unsat", "z3", "0", 0.0)), "Answer is not a Engines"),
    "an engine that does not know": (lambda: settled(LEMMA, says("unknown")), "unknown"),
    "an engine that has an example": (lambda: settled(LEMMA, says("sat")), "sat"),
    "a lemma of one's own": (lambda: settled(Nonsense(), says("unsat")), "Nonsense is not a Lemma"),
    "a lemma of one's own, evaluated": (lambda: exhausted(Nonsense()), "Nonsense is not a Lemma"),
    "a function for an answer": (
        lambda: follows(own := basis(), own.assumed, [], [], lambda query: Answer("unsat", "z3", "0", 0.0)),
        "function is not a Engines"),
    "a fact of another basis": (
        lambda: follows(own := basis(), own.assumed, [given(basis())], [], says("unsat")), "something else"),
    "unreachable by a function": (lambda: refuted(CASE, lambda query, name: None), "function is not a Engines"),
    "unreachable, as a theorem says": (lambda: refuted(Nonsense(), says("unsat")), "Nonsense is not a Unreachable"),
    "a goal in the place of a theorem": (
        lambda: weakened(terms()[0].goal, terms()[0].goal.facts.error), "Enclosed is not a Theorem"),  # type: ignore
    "a function for lemmas": (
        lambda: rewritten(rewriting.Scope.of(UNIT), SUM, next(iter(REWRITES)), lambda lemma: None), "not a sequence"),
    "a rewriting that there is not": (
        lambda: rewritten(rewriting.Scope.of(UNIT), SUM, "anything at all", []), "says nothing"),
    "monotonicity in the place of equality": (
        lambda: one_expression(Monotonic(MODEL, MODEL)), "Monotonic is not a Problem"),
    "forms in the place of monotonicity": (
        lambda: one_form(Monotonic(MODEL, MODEL), None, None), "Monotonic is not a Problem"),
    "a premise that is nothing": (lambda: exact(ExactSum((A, C)), (), [terms()[0], None]), "NoneType is not a Theorem"),
    "text for premises": (lambda: exact(ExactSum((A, C)), (), "ab"), "str is not a sequence"),
    "an argument too many": (lambda: given(basis(), "z3"), "too many positional arguments"),
}  # fmt: skip


@pytest.mark.parametrize("name", MISUSES)
def test_a_rule_is_refused_what_it_is_not_about(name: str) -> None:
    misuse, words = MISUSES[name]
    with pytest.raises(RuleError, match=words):
        misuse()


def test_a_theorem_is_what_a_rule_made() -> None:
    """Neither by its class, nor as a copy, nor changed afterwards."""
    made = terms()[0]
    goal: Any = made.goal
    with pytest.raises(RuleError, match="made by a rule"):
        Theorem(goal, "exact", (), "", object())
    empty = object.__new__(Theorem)
    changed, taken = copy.copy(made), terms()[0]
    for name in ("goal", "rule", "premises", "word"):
        object.__setattr__(empty, name, getattr(made, name))
    object.__setattr__(taken, "goal", replace(goal, facts=replace(goal.facts, bits=1)))
    for forged in (empty, changed, taken):
        with pytest.raises(RuleError, match="another kind"):
            enclosures.whole(forged)
    with pytest.raises((RuleError, pickle.PicklingError, TypeError)):
        enclosures.whole(pickle.loads(pickle.dumps(made)))


def test_a_basis_stays_as_it_was_made() -> None:
    compared = Compared(Problem(MODEL, MODEL))
    for name, value in (("never", compared.assumed), ("assumed", compared.never), ("problem", None)):
        with pytest.raises(RuleError, match="set once"):
            setattr(compared, name, value)

    class Equal(Problem):
        def differ(self, left: Any, right: Any) -> Any:
            return super().differ(left, left)

    with pytest.raises(RuleError, match="Equal is none of the problems"):
        Compared(Equal(MODEL, MODEL))


def test_what_a_theorem_was_made_of_cannot_change_afterwards() -> None:
    given_, total = terms()[::2], ExactSum((A, C))
    theorem = exact(total, (), given_)
    given_.clear()
    assert len(theorem.premises) == 2


def test_the_rules_are_a_closed_list() -> None:
    assert set(RULES) <= set(closed.RULES)
    assert {function.__module__ for function in RULES.values()} <= set(closed.RULES.values())
    assert len(REWRITES) == len(closed.REWRITES)

    def anything() -> Made:
        """0 = 1."""
        return Made(Nonsense())

    for name, module in (("anything", __name__), ("below_one", __name__), ("below_one", "queries.kernel.rows")):
        anything.__name__ = anything.__qualname__ = name
        anything.__module__ = module
        with pytest.raises(RuleError, match=r"none of the kernel's rules|two rules"):
            rule(anything)
    with pytest.raises(RuleError, match="two rules"):
        rule(exact.__wrapped__)  # type: ignore[attr-defined]
    with pytest.raises(RuleError, match="none of the kernel's rules"):
        rewrite("anything")(lambda scope, node: None)
    with pytest.raises(TypeError):
        closed.RULES["anything"] = __name__  # type: ignore[index]


def test_every_lemma_is_in_the_list_and_no_other_class_is() -> None:
    for name, module in closed.LEMMAS.items():
        assert closed.is_lemma(getattr(__import__(module, fromlist=[name]), name)), name

    class AlignmentLoses:  # of the same name
        __module__ = "queries.kernel.lemmas"

    AlignmentLoses.__qualname__ = "AlignmentLoses"
    assert not closed.is_lemma(AlignmentLoses)
    assert closed.is_lemma(lemmas.AlignmentLoses)


def test_every_parameter_of_a_rule_has_a_type_that_is_checked() -> None:
    """None is a function, nor anything."""
    for name, function in RULES.items():
        hints = arguments.Signature(function.__wrapped__)._hints  # type: ignore[attr-defined]
        for parameter, hint in hints.items():
            if parameter != "return":
                with pytest.raises(RuleError) as error:
                    arguments.checked(object(), hint)
                assert "no rule takes" not in str(error.value), (name, parameter)
    with pytest.raises(RuleError, match="no rule takes"):
        arguments.checked(lambda: None, kernel.Callable[[], None])  # type: ignore[attr-defined]


@pytest.mark.parametrize("part", [{"heard": Forgetful()}, {"pool": Lying()}, {"store": Full()}])
def test_engines_have_no_part_that_answers_by_itself(part: dict[str, Any]) -> None:
    with pytest.raises(TypeError, match="of another class"):
        Engines(**part)


def test_an_engine_does_not_confirm_itself() -> None:
    query, answer = Query((), ()), Answer("unsat", "nobody", "0", 0.0)
    assert confirmation(query, answer, [says("unsat")]) is None
    second = confirmation(query, replace(answer, engine="z3"), [says("unknown"), says("unsat")])
    assert second is not None
    assert second.engine == "nobody"
    with pytest.raises(SolverFaultError, match="contradict"):
        confirmation(query, answer, [says("sat")])


def test_a_confirmation_that_comes_too_late_loses_no_answer() -> None:
    answer = Answer("unsat", "nobody", "0", 0.0)
    assert confirmation(Query((), ()), answer, [Engines("z3", until=0.0)]) is None
    late = replace(says("unsat"), until=0.0, heard=Heard())
    assert settled(LEMMA, says("unsat"), [replace(late, solver="z3")]).goal == LEMMA


def test_what_was_heard_is_not_asked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []
    monkeypatch.setattr(asking, "solve", lambda *given: asked.append(given) or [Answer("unsat", "z3", "0", 0.0)])
    engines, query = Engines(), lemmas.query_of(AlignmentLoses(3, 1, 0, "up"))
    assert engines.answers(query) == replace(engines, said=[]).answers(query)
    assert replace(engines, solver="z3").answers(query)
    assert len(asked) == 1
    assert replace(engines, solver="cvc5").answers(query)
    assert len(asked) == 2


@pytest.mark.parametrize("more", [[], ["--length", "64"]])
def test_a_bound_whose_lemmas_stay_open_is_unknown(more: list[str]) -> None:
    hopper = "hopper/mma/m16n8k16.f32.f16.f16.f32"
    answer = CliRunner().invoke(
        main, ["prove", "--property", "error-bound", hopper, "--fresh", "--timeout", "0.0001", *more]
    )
    assert answer.exit_code == 3, answer.output
    assert "unknown: no bound is proved: a lemma about the datapath stays open" in answer.stderr
    with pytest.raises(OpenLemmaError):
        fused(SUM, (), premises(), [])
