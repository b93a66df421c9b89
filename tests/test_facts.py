"""Rules about terms, and that no input decides a claim: what they prove is true, every side condition is looked at."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from queries.certificates.certificate import CHAIN, CLAIM, MANIFEST, digest
from queries.claims.certify import certify_claim
from queries.claims.verify import verify
from queries.proof.checking import check_folder
from queries.proof.facts import Basis, Fact, defined, follows, given, question
from queries.proof.kernel import RuleError, Theorem
from queries.proof.lemmas import Lemma, exhausted, settled
from queries.proof.undecided import (
    ByFirstWords,
    FirstWordIsWhole,
    NoInputDecides,
    Question,
    ZerosGiveZero,
    by_first_words,
    lemmas_of,
    undecided,
)
from queries.search.distinguish import Options
from queries.solvers.contract import Answer
from queries.solvers.smtlib import Query
from smtmodel.algebra import Bit, constant
from smtmodel.carriers.terms import TermCarrier
from tests.test_claim_stages import VOLTA, claim_of


def engine(query: Query) -> Answer:
    return Options().ask(query, 60.0, "a lemma", "bitwuzla")[0]


def says(status: str) -> Callable[[Query], Answer]:
    return lambda query: Answer(status, "nobody", "0", 0.0)  # type: ignore[arg-type]


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
    with pytest.raises(RuleError, match="another kind"):
        follows(basis, claim.node, [claim.node], [], says("unsat"))  # type: ignore[list-item]
    taken = basis.carrier.symbol("cut0w8", 8)
    with pytest.raises(RuleError, match="is in use"):
        follows(basis, (taken.any() | claim).node, [], [(taken + taken).node], says("unsat"))


def test_maxima_are_of_their_terms(basis: Basis) -> None:
    x, y = (basis.carrier.symbol(name, 8).node for name in "xy")
    largest = basis.carrier.max_of([x, y], 8)
    fact = defined(basis, largest, [y, x])
    same = basis.carrier.manager.Equals(largest, y)
    assert isinstance(follows(basis, same, [fact, given(basis)], [], engine).goal, Fact)
    for terms in ([x], [x, y, largest]):
        with pytest.raises(RuleError, match="not those of the maximum"):
            defined(basis, largest, terms)
    with pytest.raises(RuleError, match="not those of the maximum"):
        defined(basis, x, [y])


# -- claims


SMALL = {"format": "e4m3", "a": [0, 1], "b": [0, 1], "c": "zero"}


def believed(goal: Lemma) -> Theorem:
    return settled(goal, lambda query, name: (Answer("unsat", "nobody", "0", 0.0), None))


def believe(asked: Question, bit: Bit) -> Theorem:
    return follows(asked, bit.node, [given(asked)], [], says("unsat"))


def test_side_conditions_of_undecided() -> None:
    claim = claim_of("error(p) < ulp(exact())", terms=1, inputs=SMALL, parts={"p": VOLTA})
    asked, other = Question(claim), Question(claim)
    none, numbers = believe(asked, asked.none), believe(asked, asked.fits)
    found = undecided(asked, none, numbers)
    assert isinstance(found.goal, NoInputDecides)
    assert found.goal.claim is claim
    with pytest.raises(RuleError, match="says something else"):
        undecided(asked, numbers, none)
    with pytest.raises(RuleError, match="says something else"):
        undecided(other, none, numbers)
    with pytest.raises(RuleError, match="says something else"):
        undecided(asked, believe(asked, ~asked.goal), numbers)
    with pytest.raises(RuleError, match="whether all values are numbers"):
        undecided(asked, none, None)
    with pytest.raises(RuleError, match="another kind"):
        undecided(asked, none, numbers, [none])


WORDS = {"p": f"markidis@unit={VOLTA},split=toward_zero", "q": f"ootomo-yokota@unit={VOLTA},split=toward_zero"}


def test_side_conditions_of_first_words() -> None:
    inputs = {"format": "f16", "a": [-1, 1], "b": [0, 1], "c": [0, 1]}
    claim = claim_of("finite(p) or finite(q)", inputs=inputs, parts=WORDS)
    whole, zeros = map(believed, lemmas_of(claim, "p"))
    found = by_first_words(claim, "p", whole, zeros)
    assert found.goal == ByFirstWords(claim, "p")
    for part in lemmas_of(claim, "q"), lemmas_of(replace(claim, terms=1), "p"):
        lemmas = [believed(lemma) for lemma in part]
        with pytest.raises(RuleError, match="another part, or other numbers"):
            by_first_words(claim, "p", *lemmas)
    wider = replace(claim, shape=replace(claim.shape, window=replace(claim.shape.window, a=(-14, 15))))
    with pytest.raises(RuleError, match="another part, or other numbers"):
        by_first_words(wider, "p", whole, zeros)
    with pytest.raises(RuleError, match="another kind"):
        by_first_words(claim, "p", zeros, whole)
    asked = Question(claim, frozenset("p"))
    none = believe(asked, asked.none)
    assert undecided(asked, none, None, [found]).premises == (none, found)
    for first in ([], [by_first_words(claim, "q", *map(believed, lemmas_of(claim, "q")))],
                  [by_first_words(other := replace(claim), "p", *map(believed, lemmas_of(other, "p")))]):  # fmt: skip
        with pytest.raises(RuleError, match="of every part made of them"):
            undecided(asked, none, None, first)
    alone = claim_of("finite(p)", terms=1, inputs=SMALL, parts={"p": VOLTA})
    with pytest.raises(RuleError, match="has no words"):
        lemmas_of(alone, "p")


def test_first_words_of_every_number() -> None:
    """Of numbers of 8 bits, all of them; of larger ones than the factors' format has, one is not its first word."""
    part = claim_of("finite(p)", inputs=SMALL, parts={"p": WORDS["p"]}).shape.parts["p"]
    factors = claim_of("finite(p)", inputs=SMALL, parts={"p": WORDS["p"]}).shape.factors
    assert exhausted(FirstWordIsWhole(part, factors, ((-6, 8), (-6, 8)))).goal is not None
    wide = claim_of("finite(p)", parts={"p": WORDS["p"]}).shape.factors
    failing = FirstWordIsWhole(part, wide, ((0, 0), (0, 0)))
    with pytest.raises(RuleError, match="sat"):
        settled(failing, lambda query, name: (engine(query), None))


@pytest.mark.parametrize(("change", "true"), [("", True), ("@zero_sign=ieee,align_rounding=up", True)])
def test_zeros_give_zero(change: str, true: bool) -> None:
    claim = claim_of("finite(p)", inputs=SMALL, parts={"p": f"markidis@unit=({VOLTA}{change}),split=toward_zero"})
    lemma = lemmas_of(claim, "p")[1]
    assert isinstance(lemma, ZerosGiveZero)
    assert (settled(lemma, lambda query, name: (engine(query), None)).goal == lemma) is true


# -- certificates


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The certificate of a claim about words, proved from the steps that its parts share."""
    path = tmp_path_factory.mktemp("claim")
    inputs = {"format": "f16", "a": [0, 1], "b": [0, 1], "c": "zero"}
    outcome = verify(claim_of("distance(p, q) == 0", terms=1, inputs=inputs, parts=WORDS), Options(timeout=40))
    assert outcome.verdict == "holds"
    assert isinstance(outcome.theorem, Theorem)
    certify_claim(outcome, path, Options())
    return path


def kinds(path: Path) -> dict[str, str]:
    return {found.place: found.kind for found in check_folder(path)}


def test_a_certificate_of_a_claim_passes(folder: Path) -> None:
    assert set(kinds(folder).values()) == {"fine"}
    assert {CHAIN, CLAIM} <= kinds(folder).keys()


@pytest.mark.parametrize(("file", "old", "new"), [
    (CLAIM, "distance(p, q) == 0", "distance(p, q) == 1"), (CLAIM, "- 0\n  - 1", "- 0\n  - 2"),
    (CLAIM, "split=toward_zero", "split=nearest_even"), (CLAIM, "terms: 1", "terms: 2"),
    (CHAIN, '"whole": {', '"whole": {}, "other": {'), (CHAIN, '"lemma-01",', '"lemma-02",'),
])  # fmt: skip
def test_a_certificate_of_another_claim_is_refused(folder: Path, tmp_path: Path, file: str, old: str, new: str) -> None:
    for path in folder.iterdir():
        text = path.read_text()
        (tmp_path / path.name).write_text(text.replace(old, new) if path.name == file else text)
    assert (tmp_path / file).read_text() != (folder / file).read_text()
    manifest = json.loads((tmp_path / MANIFEST).read_text())
    manifest["sha256"][file] = digest(tmp_path / file)
    (tmp_path / MANIFEST).write_text(json.dumps(manifest))
    assert "fault" in kinds(tmp_path).values()
