"""No theorem without an argument: rules called with what they are not about, engines that lie, rules and lemmas of
somebody else's, theorems that are changed."""

from __future__ import annotations

import copy
import pickle
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from mmaprobe.cli.main import main
from mmaprobe.queries.kernel import arguments, closed, lemmas
from mmaprobe.queries.kernel import theorem as kernel
from mmaprobe.queries.kernel.bounds import enclosures
from mmaprobe.queries.kernel.bounds.enclosures import (
    Enclosed,
    element,
    exact,
    fused,
    rounded,
    scale,
    terms_of,
    weakened,
)
from mmaprobe.queries.kernel.bounds.forms import Form
from mmaprobe.queries.kernel.cases.conditions import Condition
from mmaprobe.queries.kernel.cases.unreachable import Unreachable, datapath, refuted
from mmaprobe.queries.kernel.datapath.rounding_losses import RoundingLoses
from mmaprobe.queries.kernel.equality import rewriting
from mmaprobe.queries.kernel.equality.expressions import one_expression, one_form, one_sum
from mmaprobe.queries.kernel.equality.rewriting import REWRITES, congruent, rewrite, rewritten
from mmaprobe.queries.kernel.lemmas import AlignmentLoses, exhausted, settled
from mmaprobe.queries.kernel.properties.rises import needed
from mmaprobe.queries.kernel.questions.problem import Problem
from mmaprobe.queries.kernel.questions.statements import Monotonic, Reordered
from mmaprobe.queries.kernel.terms.facts import Basis, follows, given
from mmaprobe.queries.kernel.terms.same import Compared, SidesAgree
from mmaprobe.queries.kernel.theorem import RULES, Made, OpenLemmaError, RuleError, Theorem, goal_of, rule
from mmaprobe.queries.solvers import asking
from mmaprobe.queries.solvers.asking import Engines, Heard, SolverFaultError, confirmation
from mmaprobe.queries.solvers.contract import Answer
from mmaprobe.queries.solvers.pool import Pool
from mmaprobe.queries.solvers.smtlib import Query
from mmaprobe.queries.solvers.store import Store
from mmaprobe.smtmodel.arithmetic.formats import FORMATS
from mmaprobe.smtmodel.carriers.algebra import Bit, Bits
from mmaprobe.smtmodel.carriers.terms import TermCarrier
from mmaprobe.smtmodel.evaluate.model import Model
from mmaprobe.smtmodel.nodes import Element, ExactSum, FusedSum, Index, Product, Round
from mmaprobe.smtmodel.nodes.known import power
from mmaprobe.smtmodel.nodes.round import Rounding
from mmaprobe.smtmodel.tables.reference import parse_reference
from mmaprobe.smtmodel.units.unit import Unit
from tests.claims.test_claim_stages import claim_of
from tests.said import believed, planted, says

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


class Alike(Unit):
    """A unit that equals every other."""

    def __eq__(self, other: object) -> bool:
        return True

    def __hash__(self) -> int:
        return hash(UNIT)


class OneToOne(tuple):  # type: ignore[type-arg]
    """An order, or cases, that change when they are looked at."""

    def __iter__(self) -> Any:
        return iter(())


class Fickle(Rounding):
    """A rounding that may be another one when it is asked."""


class Toward(str):
    """A mode that equals every other."""

    def __eq__(self, other: object) -> bool:
        return True

    __hash__ = str.__hash__


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


def alike() -> Unit:
    return Alike(SMALL.a, SMALL.b, SMALL.c, 1, SMALL.result)


class Big(Fraction):
    """A number."""


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
        lambda: one_expression(Monotonic(MODEL, MODEL)), "the sides are given different inputs"),
    "forms in the place of monotonicity": (
        lambda: one_form(Monotonic(MODEL, MODEL), None, None), "the sides are given different inputs"),
    "a premise that is nothing": (lambda: exact(ExactSum((A, C)), (), [terms()[0], None]), "NoneType is not a Theorem"),
    "text for premises": (lambda: exact(ExactSum((A, C)), (), "ab"), "str is not a sequence"),
    "a model within a case": (
        lambda: refuted(replace(CASE, model=Model(VOLTA, alike())), says("unsat")), "a Alike within a Unreachable"),
    "cases in a list": (
        lambda: refuted(replace(CASE, cases=list(CASE.cases)), says("unsat")), "a list within a Unreachable"),
    "cases of one's own": (
        lambda: refuted(replace(CASE, cases=OneToOne(CASE.cases)), says("unsat")), "a OneToOne within a Unreachable"),
    "an order of one's own": (
        lambda: one_sum(Reordered(MODEL, MODEL, order=OneToOne(range(4)))), "a OneToOne within a Reordered"),
    "an order in a list": (
        lambda: one_sum(Reordered(MODEL, MODEL, order=list(range(4)))), "a list within a Reordered"),
    "a rounding within a unit": (
        lambda: element(replace(SMALL, result=replace(SMALL.result, rounding=Fickle(FORMATS["f32"]))), A),
        "a Fickle within a Unit"),
    "a node within a unit": (
        lambda: element(replace(SMALL, result=replace(SMALL.result, term=Odd((A, C)))), A), "a Odd within a Unit"),
    "a node within a node": (
        lambda: congruent(rewriting.Scope.of(UNIT), ExactSum((A, Odd((A, C)))), [None, None]),
        "a Odd within a ExactSum"),
    "a mode within a lemma": (
        lambda: settled(RoundingLoses(FORMATS["e2m1"], Toward("up")), says("unsat")),
        "a Toward within a RoundingLoses"),
    "a number within a form": (lambda: weakened(terms()[0], Form({frozenset({()}): Big(1)})), "a Big within a Form"),
    "a model within terms": (
        lambda: Compared(Problem(Model(VOLTA, alike()), MODEL)), "a Alike within a Problem"),
    "a model whose datapath is remembered": (lambda: datapath(Model(VOLTA, alike())), "a Alike within a tuple"),
    "a unit whose lemmas are remembered": (lambda: needed(alike(), None, False), "a Alike within a tuple"),
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
        Theorem(Made(goal), "exact", object(), {})
    empty = object.__new__(Theorem)
    changed, taken = copy.copy(made), terms()[0]
    for name in ("goal", "rule", "premises", "word"):
        object.__setattr__(empty, name, getattr(made, name))
    object.__setattr__(taken, "goal", replace(goal, facts=replace(goal.facts, known=replace(goal.facts.known, bits=1))))
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


def test_a_form_and_the_parts_of_a_claim_are_not_changed() -> None:
    form = terms()[0].goal.facts.weight  # type: ignore[attr-defined]
    claim = claim_of("error(three) <= 2**-9 * magnitude_sum()")
    for mapping in (form.parts, claim.assertion.shape.parts):
        with pytest.raises(TypeError):
            mapping[next(iter(mapping))] = 0
    assert pickle.loads(pickle.dumps(form)) == form


def test_a_number_that_equals_another_is_not_remembered_in_its_place() -> None:
    for other in (1e2, True, Fraction(3)):
        assert type(power(other)) is not int  # type: ignore[arg-type]
        assert type(power(int(other))) is Fraction


def test_a_statement_calls_no_unit_by_the_name_of_another() -> None:
    """A reference of the table is that of its own unit; any other comes with what tells units apart."""
    assert CASE.statement().startswith(f"no input of {VOLTA} reaches")
    other = parse_reference("ampere/mma/m16n8k8.f32.f16.f16.f32").unit
    names = {Unreachable(Model(name, unit), CASE.cases).statement().partition(" reaches")[0]
            for name in ("./one.yaml", VOLTA) for unit in (SMALL, other)}  # fmt: skip
    assert len(names) == 4
    assert all("(unit " in one for one in names)
    sides = SidesAgree(Problem(Model("./one.yaml", UNIT), Model("./one.yaml", other))).statement()
    assert len({side.rpartition("./one.yaml")[2] for side in sides.split(" = ")}) == 2


def test_what_a_model_is_made_from_makes_its_unit() -> None:
    """Two units with the NaNs of one member would be equal once NaNs are one."""
    with pytest.raises(TypeError):
        Model(VOLTA, SMALL, MODEL.member)  # type: ignore[call-arg]
    assert replace(MODEL, unit=SMALL).member is None
    assert MODEL.any_nan.unit == MODEL.any_nan.any_nan.unit


def test_the_rules_are_a_closed_list() -> None:
    assert set(RULES) <= set(closed.RULES)
    assert {function.__module__ for function in RULES.values()} <= set(closed.RULES.values())
    assert len(REWRITES) == len(closed.REWRITES)

    def anything() -> Made:
        """0 = 1."""
        return Made(Nonsense())

    for name, module in (
        ("anything", __name__),
        ("below_one", __name__),
        ("below_one", "mmaprobe.queries.kernel.integers.rows"),
    ):
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
        __module__ = "mmaprobe.queries.kernel.lemmas"

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


def test_an_answer_is_what_an_engine_gave_to_this_question(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither made by somebody, nor of another question, nor changed; by no public name of the ways it takes."""
    query, other = (lemmas.query_of(AlignmentLoses(3, 1, bits, "up")) for bits in (0, 1))
    (real,) = Engines("z3").answers(query)
    assert real.status == "unsat"
    with Store(tmp_path / "store.sqlite") as store:
        for answer in (Answer("unsat", "z3", real.version, 0.0), replace(real, engine="cvc5"), copy.copy(real)):
            with pytest.raises(ValueError, match="no engine gave this answer"):
                store.record(query.text, answer, None, 0)
            monkeypatch.setattr(asking, "solve", lambda *given, answer=answer: [answer])
            with pytest.raises(SolverFaultError, match="no engine gave this answer"):
                Engines().answers(query)
        with pytest.raises(ValueError, match="no engine gave this answer"):
            store.record(other.text, real, None, 0)
        monkeypatch.setattr(asking, "solve", lambda *given: [real])
        with pytest.raises(SolverFaultError, match="no engine gave this answer"):
            Engines().answers(other)
        assert Engines().answers(query) == [real]
        store.record(query.text, real, None, 0)
        kept = store.find(query.text, "z3", None, 0)
        assert kept is not None
        assert kept.stored
    assert [name for name in vars(Heard) if not name.startswith("_")] == [
        "find",
        "of",
    ]  # of answers that are held against what engines gave


def test_what_was_heard_is_not_asked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []
    monkeypatch.setattr(
        asking, "solve", lambda *given: asked.append(given) or planted(given[0], Answer("unsat", "z3", "0", 0.0))
    )
    engines, query = Engines(), lemmas.query_of(AlignmentLoses(3, 1, 0, "up"))
    assert engines.answers(query) == replace(engines, answered_queries=[]).answers(query)
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
