"""Rules about terms, and that no input decides a claim: what they prove is true, every side condition is looked at."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path
from random import Random

import numpy as np
import pytest
from pysmt.fnode import FNode

from mmaprobe.queries.certificates.names import CLAIM, LOG
from mmaprobe.queries.checking.folder import check_folder
from mmaprobe.queries.claims.verify import verify
from mmaprobe.queries.equality.staged import prove
from mmaprobe.queries.kernel.bounds.unit_shares import share_claim
from mmaprobe.queries.kernel.lemmas import exhausted, settled
from mmaprobe.queries.kernel.questions.problem import Problem
from mmaprobe.queries.kernel.terms.facts import (
    Alike,
    Basis,
    Fact,
    defined,
    equal,
    follows,
    given,
    never,
    one_maximum,
    question,
    replaced,
    themselves,
)
from mmaprobe.queries.kernel.terms.same import Compared, SidesAgree, agreed
from mmaprobe.queries.kernel.terms.undecided import (
    ByFirstWords,
    ConditionsReadNumbers,
    FirstWordIsWhole,
    NoInputDecides,
    Question,
    ZerosGiveZero,
    by_first_words,
    lemmas_of,
    undecided,
)
from mmaprobe.queries.kernel.theorem import RuleError, Theorem
from mmaprobe.queries.properties import proving
from mmaprobe.queries.search.distinguish import Options
from mmaprobe.queries.solvers.asking import Engines
from mmaprobe.queries.tactics.records import Proof
from mmaprobe.smtmodel.carriers.algebra import Bit, constant
from mmaprobe.smtmodel.carriers.terms import TermCarrier
from mmaprobe.smtmodel.evaluate.model import Model
from mmaprobe.smtmodel.tables.reference import parse_reference
from mmaprobe.smtmodel.units.unitfile import parse_unit
from tests.claims.test_claim_stages import VOLTA, claim_of
from tests.oracles.termeval import evaluate_term, objects
from tests.said import believed, says
from tests.tampering import fitted

pytestmark = pytest.mark.solvers

engine = Engines("bitwuzla", 60.0, "a lemma")


@pytest.fixture
def basis() -> Basis:
    """Of two numbers of 8 bits the first is less than the second."""
    carrier = TermCarrier(maximum="relational")
    return Basis(carrier, carrier.symbol("x", 8).ult(carrier.symbol("y", 8)).node)


def test_facts_follow_from_facts_with_terms_cut_out(basis: Basis) -> None:
    x, y = (basis.carrier.symbol(name, 8) for name in "xy")
    admitted = given(basis)
    positive = follows(basis, y.any().node, [admitted], [], engine)
    assert positive.goal == Fact(basis, y.any().node)
    product = x.zext(16) * y.zext(16)
    bounded = follows(basis, product.ult(constant(basis.carrier, 255 * 255, 16)).node, [admitted], [], engine)
    twice = (product + product).ult(constant(basis.carrier, 2 * 255 * 255 - 65536, 16))
    with pytest.raises(RuleError, match="follows: sat"):
        follows(basis, twice.node, [bounded], [product.node], engine)
    wide = product.zext(17)
    claim = (wide + wide).ult(constant(basis.carrier, 2 * 255 * 255, 17)).node
    query, stands = question(basis, claim, [bounded.goal.term], [product.node])  # type: ignore[attr-defined]
    assert "bvmul" not in query.text
    assert list(stands.values()) == [product.node]
    assert follows(basis, claim, [bounded], [product.node], engine).premises == (bounded,)
    with pytest.raises(RuleError, match="follows: sat"):
        follows(basis, claim, [], [product.node], engine)


def test_a_counterexample_is_a_whole_input() -> None:
    """What says nothing of the claim holds of it as well."""
    carrier = TermCarrier()
    x, y = (carrier.symbol(name, 8) for name in "xy")
    basis = Basis(carrier, (x.any() & y.equals(7)).node)
    whole, _ = question(basis, x.equals(0).node, [basis.assumed], [], (x.node, y.node))
    answer = engine.answers(whole)[0]
    assert answer.values["x"] != 0
    assert answer.values["y"] == 7
    lemma, _ = question(basis, x.equals(0).node, [basis.assumed], [])
    assert lemma.text.count("declare-const") == 1


def test_a_negated_term_that_is_cut_out_is_cut_everywhere(basis: Basis) -> None:
    some = basis.carrier.symbol("x", 8).any()
    query, stands = question(basis, (some | ~some).node, [], [some.node])
    assert some.node.is_not()
    assert list(stands.values()) == [some.node.arg(0)]
    assert "BitVec" not in query.text


def test_side_conditions_of_follows(basis: Basis) -> None:
    other = Basis(TermCarrier(), basis.assumed)
    claim = basis.carrier.symbol("y", 8).any()
    strange = TermCarrier().symbol("strange", 8).any()
    for status in ("sat", "unknown"):
        with pytest.raises(RuleError, match=f"follows: {status}"):
            follows(basis, claim.node, [given(basis)], [], says(status))
    with pytest.raises(RuleError, match="about something else"):
        follows(basis, claim.node, [given(other)], [], says("unsat"))
    with pytest.raises(RuleError, match="another carrier"):
        follows(basis, strange.node, [], [], says("unsat"))
    with pytest.raises(RuleError, match="not a Theorem"):
        follows(basis, claim.node, [claim.node], [], says("unsat"))  # type: ignore[list-item]
    taken = basis.carrier.symbol("cut0w8", 8)
    with pytest.raises(RuleError, match="is in use"):
        follows(basis, (taken.any() | claim).node, [], [(taken + taken).node], says("unsat"))


def test_claims_are_true_where_an_input_is_named_as_what_is_cut_out() -> None:
    """Random claims and cut-points, of which one is often made of that input; what is true is known by exhaustion."""
    random, carrier = Random(1), TermCarrier()
    manager, names = carrier.manager, ["cut0w2", "x", "y"]
    operations = [manager.BVAdd, manager.BVAnd, manager.BVXor, manager.BVOr]
    basis = Basis(carrier, manager.TRUE())
    every = np.arange(1 << 6, dtype=np.uint64)
    values = {name: objects(every >> np.uint64(2 * place) & np.uint64(3)) for place, name in enumerate(names)}
    taken, x, y = (carrier.symbol(name, 2).node for name in names)
    found = Counter[str]()
    for _ in range(120):
        cut = random.choice(operations)(taken, x)
        terms = [cut, x, y, *([taken] if random.random() < 0.2 else [])]
        for _ in range(6):
            terms.append(random.choice(operations)(*random.sample(terms, 2)))
        claim = manager.Or(*(manager.Equals(*random.sample(terms[4:], 2)) for _ in range(3)))
        holds = bool(np.all(evaluate_term(claim, values)))
        try:
            follows(basis, claim, [], [cut], engine)
        except RuleError as error:
            found["in use" if "in use" in str(error) else "refuted"] += 1
            continue
        found["proved"] += 1
        assert holds, claim
    assert min(found[what] for what in ("in use", "refuted", "proved")) > 5, found


def test_maxima_are_of_their_terms(basis: Basis) -> None:
    x, y = (basis.carrier.symbol(name, 8).node for name in "xy")
    largest = basis.carrier.max_of([x, y], 8)
    fact = defined(basis, largest, [y, x])
    same = basis.carrier.manager.Equals(largest, y)
    assert isinstance(follows(basis, same, [fact, given(basis)], [], engine).goal, Fact)
    for terms in ([x], [x, y, largest]):
        with pytest.raises(RuleError, match="not those of the maximum"):
            defined(basis, largest, terms)
    with pytest.raises(RuleError, match="not a maximum"):
        defined(basis, x, [y])


def test_no_maximum_is_defined_by_itself(basis: Basis) -> None:
    """m = max(m + 1, y): no number is."""
    carrier = basis.carrier
    taken, y = carrier.symbol("maximum0", 8), carrier.symbol("y", 8)
    more = (taken + carrier.symbol("x", 8)).node
    largest = carrier.max_of([more, y.node], 8)
    assert largest != taken.node
    assert isinstance(defined(basis, largest, [more, y.node]).goal, Fact)
    with pytest.raises(TypeError):
        carrier.maxima[taken.node] = frozenset({more})  # type: ignore[index]
    for made in ({taken.node: frozenset({more})}, {y.node: frozenset({largest}), largest: frozenset({y.node})}):
        carrier.maxima = made  # whatever a carrier says
        symbol, terms = next(iter(made.items()))
        with pytest.raises(RuleError, match="defined by itself"):
            defined(basis, symbol, list(terms))
        with pytest.raises(RuleError, match="defined by itself"):
            one_maximum(basis, symbol, symbol, themselves(basis, [symbol]))


# -- terms in each other's place


def zero_sum(basis: Basis) -> tuple[Theorem, FNode, FNode]:
    """That x + 0 is x, for what is no symbol."""
    twice = basis.carrier.symbol("x", 8) + basis.carrier.symbol("y", 8)
    sum_ = basis.carrier.manager.BVAdd(twice.node, basis.carrier.manager.BV(0, 8))
    return follows(basis, equal(basis, sum_, twice.node), [], [twice.node], engine), sum_, twice.node


def test_terms_stand_for_equal_ones(basis: Basis) -> None:
    fact, longer, short = zero_sum(basis)
    manager = basis.carrier.manager
    term = manager.Not(manager.Equals(longer, short))
    alike = replaced(themselves(basis, [term]), [(fact, longer, short)])
    assert alike.goal == Alike(basis, (term,), (manager.Not(manager.Equals(short, short)),))
    inner = alike.goal.others[0]  # type: ignore[attr-defined]
    never_so = follows(basis, manager.Not(inner), [], [], engine)
    assert never(basis, term, alike, never_so).goal == Fact(basis, manager.Not(term))
    none = themselves(basis, [manager.FALSE()])
    assert never(basis, manager.FALSE(), none).goal == Fact(basis, manager.Not(manager.FALSE()))


def test_side_conditions_of_replacing(basis: Basis) -> None:
    fact, longer, short = zero_sum(basis)
    same, other = equal(basis, longer, short), Basis(basis.carrier, basis.assumed)
    unequal = follows(basis, basis.carrier.manager.Not(same), [], [], says("unsat"))
    elsewhere = follows(other, same, [], [], says("unsat"))
    start = themselves(basis, [longer])
    for theorem, old in (fact, short), (given(basis), longer), (unequal, longer), (elsewhere, longer):
        with pytest.raises(RuleError, match="not a fact that a term is what stands for it"):
            replaced(start, [(theorem, old, short)])
    with pytest.raises(RuleError, match="another kind"):
        replaced(fact, [])
    with pytest.raises(RuleError, match="another kind"):
        replaced(start, [(start, longer, short)])
    with pytest.raises(RuleError, match="of another carrier"):
        themselves(basis, [TermCarrier().symbol("strange", 3).node])


def test_side_conditions_of_maxima(basis: Basis) -> None:
    fact, longer, short = zero_sum(basis)
    carrier = basis.carrier
    x, y = (carrier.symbol(name, 8).node for name in "xy")
    first, second, third = (carrier.max_of([one, y], 8) for one in (longer, short, x))
    alike = replaced(themselves(basis, [longer]), [(fact, longer, short)])
    assert one_maximum(basis, first, second, alike).goal == Fact(basis, equal(basis, first, second))
    assert defined(basis, first, [y, short], alike).premises == (alike,)
    for one, two in ((first, third), (second, third)):
        with pytest.raises(RuleError, match="of other terms"):
            one_maximum(basis, one, two, alike)
    with pytest.raises(RuleError, match="of other terms"):
        one_maximum(basis, first, second, themselves(basis, [longer]))
    with pytest.raises(RuleError, match="not a maximum"):
        one_maximum(basis, x, second, alike)
    with pytest.raises(RuleError, match="not those of the maximum"):
        defined(basis, first, [y, short])
    other = Basis(TermCarrier(), basis.assumed)
    with pytest.raises(RuleError, match="about something else"):
        one_maximum(basis, first, second, themselves(other, []))


def test_side_conditions_of_never(basis: Basis) -> None:
    fact, longer, short = zero_sum(basis)
    term = equal(basis, longer, short)
    alike = themselves(basis, [term])
    with pytest.raises(RuleError, match="not known to be false"):
        never(basis, term, alike)
    with pytest.raises(RuleError, match="says something else"):
        never(basis, term, alike, fact)
    with pytest.raises(RuleError, match="another kind"):
        never(basis, term, fact)
    with pytest.raises(RuleError, match="about something else"):
        never(Basis(TermCarrier(), basis.assumed), term, alike)


def test_side_conditions_of_agreed() -> None:
    models = [parse_reference(VOLTA), parse_reference(f"{VOLTA}@carry_bits=4")]
    problem = Problem(models[0], models[1])
    compared, other = Compared(problem), Compared(problem)
    fact = follows(compared, compared.never, [], [], says("unsat"))
    assert agreed(compared, fact).goal == SidesAgree(problem)
    for wrong in (follows(compared, compared.differ.node, [], [], says("unsat")),
                  follows(other, other.never, [], [], says("unsat"))):  # fmt: skip
        with pytest.raises(RuleError, match="says something else, or of another problem"):
            agreed(compared, wrong)
    with pytest.raises(RuleError, match="another kind"):
        agreed(compared, agreed(compared, fact))


def test_equal_is_said_of_what_was_proved_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a prover says of something else, or nothing, is no verdict."""
    problem = Problem(parse_reference(VOLTA), parse_reference(f"{VOLTA}@carry_bits=1"))
    theorem = prove(Problem(problem.left, problem.left), Options("bitwuzla", 20.0), confirm=False).theorem
    assert theorem is not None
    for found in (Proof(problem), Proof(problem, theorem=theorem)):
        monkeypatch.setattr(proving, "by_form", lambda *given, found=found: found)
        (proof,) = proving.proofs_of([problem], Options(), confirm=False)
        assert proof.verdict == "unknown"


# -- claims


SMALL = {"format": "e4m3", "a": [0, 1], "b": [0, 1], "c": "zero"}


def believe(asked: Question, bit: Bit) -> Theorem:
    return follows(asked, bit.node, [given(asked)], [], says("unsat"))


def test_side_conditions_of_undecided() -> None:
    claim = claim_of("error(p) < ulp(exact())", terms=1, inputs=SMALL, parts={"p": VOLTA})
    asked, other = Question(claim.assertion), Question(claim.assertion)
    none, numbers = believe(asked, asked.none), believe(asked, asked.fits)
    found = undecided(asked, none, numbers)
    assert isinstance(found.goal, NoInputDecides)
    assert found.goal.assertion is claim.assertion
    with pytest.raises(RuleError, match="says something else"):
        undecided(asked, numbers, none)
    with pytest.raises(RuleError, match="says something else"):
        undecided(other, none, numbers)
    with pytest.raises(RuleError, match="says something else"):
        undecided(asked, believe(asked, ~asked.fits), numbers)
    with pytest.raises(RuleError, match="whether all values are numbers"):
        undecided(asked, none, None)
    with pytest.raises(RuleError, match="another kind"):
        undecided(asked, none, numbers, [none])


def test_side_conditions_of_what_conditions_read() -> None:
    where = ["finite(p)", "value(p) > 1"]
    claim = claim_of("error(p) < 2", terms=1, inputs=SMALL | {"where": where}, parts={"p": VOLTA})
    asked, known = Question(claim.assertion), believed(ConditionsReadNumbers(claim.assertion))
    none, numbers = believe(asked, asked.none), believe(asked, asked.fits)
    assert undecided(asked, none, numbers, (), known).premises == (none, numbers, known)
    with pytest.raises(RuleError, match="every value that a condition reads is a number is not known"):
        undecided(asked, none, numbers)
    with pytest.raises(RuleError, match="of another claim"):
        undecided(asked, none, numbers, (), believed(ConditionsReadNumbers(replace(claim.assertion))))
    with pytest.raises(RuleError, match="another kind"):
        undecided(asked, none, numbers, (), none)
    parts = {"p": VOLTA, "q": VOLTA}
    share = claim_of("error(p) <= 1 * magnitude_sum()", terms=1, inputs=SMALL | {"where": where}, parts=parts)
    assert share_claim(share.assertion).share == 1  # a share is known of results that are numbers alone
    other = claim_of(share.assertion.text, terms=1, inputs=SMALL | {"where": ["value(q) > 1"]}, parts=parts)
    # whether q is a number is left to a bound of its error
    assert share_claim(other.assertion).read == share_claim(share.assertion).parts
    assert not share_claim(share.assertion).read


WORDS = {"p": f"markidis@unit={VOLTA},split=toward_zero", "q": f"ootomo-yokota@unit={VOLTA},split=toward_zero"}


def test_side_conditions_of_first_words() -> None:
    inputs = {"format": "f16", "a": [-1, 1], "b": [0, 1], "c": [0, 1]}
    claim = claim_of("finite(p) or finite(q)", inputs=inputs, parts=WORDS)
    whole, zeros = map(believed, lemmas_of(claim.assertion, "p"))
    found = by_first_words(claim.assertion, "p", whole, zeros)
    assert found.goal == ByFirstWords(claim.assertion, "p")
    for part in lemmas_of(claim.assertion, "q"), lemmas_of(replace(claim.assertion, terms=1), "p"):
        lemmas = [believed(lemma) for lemma in part]
        with pytest.raises(RuleError, match="another part, or other numbers"):
            by_first_words(claim.assertion, "p", *lemmas)
    wider = claim.assertion.reshaped(window=replace(claim.shape.window, a=(-14, 15)))
    with pytest.raises(RuleError, match="another part, or other numbers"):
        by_first_words(wider, "p", whole, zeros)
    with pytest.raises(RuleError, match="another kind"):
        by_first_words(claim.assertion, "p", zeros, whole)
    asked = Question(claim.assertion, frozenset("p"))
    none = believe(asked, asked.none)
    assert undecided(asked, none, None, [found]).premises == (none, found)
    other = replace(claim.assertion)
    for first in ([], [by_first_words(claim.assertion, "q", *map(believed, lemmas_of(claim.assertion, "q")))],
                  [by_first_words(other, "p", *map(believed, lemmas_of(other, "p")))]):  # fmt: skip
        with pytest.raises(RuleError, match="of every part made of them"):
            undecided(asked, none, None, first)
    alone = claim_of("finite(p)", terms=1, inputs=SMALL, parts={"p": VOLTA})
    with pytest.raises(RuleError, match="one word of each factor"):
        lemmas_of(alone, "p")


def test_first_words_of_every_number() -> None:
    """Of numbers of 8 bits, all of them; of larger ones than the factors' format has, one is not its first word."""
    part = claim_of("finite(p)", inputs=SMALL, parts={"p": WORDS["p"]}).shape.parts["p"]
    factors = claim_of("finite(p)", inputs=SMALL, parts={"p": WORDS["p"]}).shape.factors
    assert exhausted(FirstWordIsWhole(part, factors, ((-6, 8), (-6, 8)))).goal is not None
    wide = claim_of("finite(p)", parts={"p": WORDS["p"]}).shape.factors
    failing = FirstWordIsWhole(part, wide, ((0, 0), (0, 0)))
    with pytest.raises(RuleError, match="sat"):
        settled(failing, engine)


@pytest.mark.parametrize(("change", "true"), [("", True), ("@zero_sign=ieee,align_rounding=up", True)])
def test_zeros_give_zero(change: str, true: bool) -> None:
    claim = claim_of("finite(p)", inputs=SMALL, parts={"p": f"markidis@unit=({VOLTA}{change}),split=toward_zero"})
    lemma = lemmas_of(claim.assertion, "p")[1]
    assert isinstance(lemma, ZerosGiveZero)
    assert (settled(lemma, engine).goal == lemma) is true


def test_a_zero_in_each_product_is_not_enough_for_another_pairing() -> None:
    """The lemma speaks of products of which one factor is zero: a unit that multiplies others with each other fails."""
    text = """unit: crossed
formats: {a: e2m1, b: e2m1, c: e2m1, d: f32}
length: 2
roundings: {r: "round(f32, toward_zero)"}
steps:
  d: r(exact(a[0] * b[PLACE], a[1] * b[1], c))
"""
    straight, crossed = (Model(place, parse_unit(text.replace("PLACE", place), "x.yaml")) for place in "01")
    assert exhausted(ZerosGiveZero(straight, 2))
    with pytest.raises(RuleError, match="shows otherwise"):
        exhausted(ZerosGiveZero(crossed, 2))


# -- certificates


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The certificate of a claim about words, proved from the steps that its parts share."""
    path = tmp_path_factory.mktemp("claim")
    inputs = {"format": "f16", "a": [0, 1], "b": [0, 1], "c": "zero"}
    outcome = verify(claim_of("distance(p, q) == 0", terms=1, inputs=inputs, parts=WORDS), Options(timeout=40))
    assert outcome.verdict == "holds"
    assert isinstance(outcome.theorem, Theorem)
    outcome.certify(path, Options())
    return path


def kinds(path: Path) -> dict[str, str]:
    return {found.place: found.kind for found in check_folder(path)}


def test_a_certificate_of_a_claim_passes(folder: Path) -> None:
    assert set(kinds(folder).values()) == {"fine"}
    assert {LOG, "stated"} <= kinds(folder).keys()


@pytest.mark.parametrize(("file", "old", "new"), [
    (CLAIM, "distance(p, q) == 0", "distance(p, q) == 1"), (CLAIM, "- 0\n  - 1", "- 0\n  - 2"),
    (CLAIM, "split=toward_zero", "split=nearest_even"), (CLAIM, "terms: 1", "terms: 2"),
    (LOG, '"whole":["p","q"]', '"whole":[]'), (LOG, '"rule":"by_first_words"', '"rule":"by_first_word"'),
])  # fmt: skip
def test_a_certificate_of_another_claim_is_refused(folder: Path, tmp_path: Path, file: str, old: str, new: str) -> None:
    for path in folder.iterdir():
        text = path.read_text()
        (tmp_path / path.name).write_text(text.replace(old, new) if path.name == file else text)
    assert (tmp_path / file).read_text() != (folder / file).read_text()
    fitted(tmp_path)
    assert "fault" in kinds(tmp_path).values()
