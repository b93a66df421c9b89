"""Checks a certificate again, from its folder alone: files, proofs, a tree of theorems, and what lemmas are about.

A tree is checked by queries/certificates/tree.py and a proof by queries/certificates/checker.py, which share no code
with what found them. That the unit of a tree is the one of `unit.yaml`, and a lemma about the datapath is what that
datapath gives, is checked by making both again.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import Any, Literal

import numpy as np

from hypotheses.claim import Claim, build_claims
from hypotheses.schema import Inputs
from hypotheses.unit_claims import OverflowClaim
from queries.certificates.certificate import (
    CHAIN,
    CLAIM,
    COVER,
    FACTS,
    MANIFEST,
    PLANS,
    PROPERTY,
    QUESTION,
    ROWS,
    SCHEMA,
    SUFFIXES,
    TREE,
    UNIT,
    check_piece,
    digest,
    formula_fault,
)
from queries.certificates.chain import Facts, chain_faults
from queries.certificates.row_rules import row_faults
from queries.certificates.together import one_unit, property_fault, property_text
from queries.certificates.tree import Tree, statement_text
from queries.checking.plans import plans_fault, plans_text
from queries.covering.unreachable import datapath
from queries.plans.certify import LEFT_PLAN, RIGHT_PLAN, read_plan
from queries.proof.lemmas import LEMMAS, Lemma, query_of
from queries.proof.opposite import RoundsOpposite
from queries.proof.recorded import Words
from queries.proof.rounding_rises import RoundingRises, RoundingScales
from queries.proof.rows import BELOW_ONE, left_open, need_truncation, recorded, units_of
from queries.proof.same import Compared
from queries.proof.shares import ShareClaim, WordIsSmall, WordsLeave, share_claim
from queries.proof.undecided import Question, ZerosGiveZero, lemmas_of
from queries.proof.written import Written
from queries.proof.written_rows import same_operations, start_of
from queries.properties.asked import plain, read_document, read_question, read_unit
from queries.properties.statements import Monotonic, Negated, Reordered
from queries.search.problem import Problem
from queries.solvers.contract import ENGINE_NAMES, Answer
from queries.solvers.smtlib import Query
from smtmodel.algorithms import sum_of_array
from smtmodel.carriers.terms import Maximum
from smtmodel.display import exact_value
from smtmodel.dot import Model
from smtmodel.errors import InputError, MmaprobeError
from smtmodel.formats import Format
from smtmodel.rounding import Target
from smtmodel.unitfile import parse_unit
from smtmodel.wording import counted
from smtmodel.yamlfile import read_yaml

MAXIMA: tuple[Maximum, ...] = ("relational", "select")
SIDES = ("left", "right")
ANSWERS = (TREE, CHAIN, ROWS, QUESTION, PROPERTY, PLANS, COVER)  # the files that say what was proved
MEANING = {"smt2": "as written", "cnf": "the formula of the query", "drat": "verified"}
Ask = Callable[[str, str], Answer]  # what an engine says of a text in SMT-LIB


@dataclass(frozen=True)
class Finding:
    """What was found at one place of a certificate. `word`: it holds if the engine named does not err; `open`: it could
    not be checked; `fault`: it was rejected."""

    place: str
    says: str
    kind: Literal["fine", "word", "open", "fault"] = "fine"


def check_folder(folder: Path, ask: Ask | None = None, timeout: float | None = None) -> Iterator[Finding]:
    """All findings of a certificate. `ask`: for lemmas without a proof. Raises InputError if there is none."""
    manifest = _manifest(folder)
    yield from _digests(folder, manifest["sha256"])
    names = [piece["name"] for piece in manifest["pieces"]]
    for part in manifest["parts"]:
        yield from _part(folder, str(part), ask, timeout)
    for piece in manifest["pieces"]:
        yield from _piece(folder, piece, ask, timeout)
    files: dict[str, str] = manifest["sha256"]
    if TREE in files:
        yield from _tree(folder, names)
    if CHAIN in files:
        yield from _chain(folder, names)
    if ROWS in files:
        yield from _rows(folder)
    if QUESTION in files:
        yield from _question(folder, files, names)
    if PROPERTY in files:
        yield from _property(folder, manifest["parts"])
    if PLANS in files:
        yield from _plans(folder, manifest["parts"])
    if COVER in files:
        yield from _cover(folder, names, manifest["parts"])
    if files.keys().isdisjoint(ANSWERS):
        yield Finding(MANIFEST, "nothing in the folder says what was proved", "fault")


def _part(folder: Path, name: str, ask: Ask | None, timeout: float | None) -> Iterator[Finding]:
    """A certificate that is part of another."""
    if name != Path(name).name or name == "..":
        yield Finding(MANIFEST, f"{name!r} is not a folder in it", "fault")
        return
    try:
        for found in check_folder(folder / name, ask, timeout):
            yield replace(found, place=f"{name}/{found.place}")
    except InputError as error:
        yield Finding(name, str(error), "fault")


def _manifest(folder: Path) -> dict[str, Any]:
    """The manifest, as far as it is used. Raises InputError."""
    try:
        found: dict[str, Any] = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
        if found["schema"] != SCHEMA:
            raise InputError(f"of schema {found['schema']}; this version reads {SCHEMA}", str(folder / MANIFEST))
        for piece in found["pieces"]:
            _ = str(piece["name"]), list(piece["words"]), dict(piece["sha256"])
        _ = dict(found["sha256"]), list(found["parts"])
    except OSError as error:
        raise InputError(f"no certificate: {error.strerror}", str(folder / MANIFEST)) from None
    except (ValueError, KeyError, TypeError) as error:
        raise InputError(f"no manifest of a certificate: {error!r}", str(folder / MANIFEST)) from None
    return found


def _digests(folder: Path, digests: Mapping[str, str]) -> Iterator[Finding]:
    for name, expected in digests.items():
        try:
            same = digest(folder / name) == expected
        except OSError as error:
            yield Finding(name, str(error.strerror), "fault")
            continue
        yield Finding(name, "as written") if same else Finding(name, "changed since it was written", "fault")


def _piece(folder: Path, piece: Mapping[str, Any], ask: Ask | None, timeout: float | None) -> Iterator[Finding]:
    """A query, and its proof; or what engines say of it now."""
    name, digests = piece["name"], piece["sha256"]
    written = {found.place: found for found in _digests(folder, digests)}
    suffixes = SUFFIXES if len(digests) > 1 or name == "whole" else SUFFIXES[:1]
    for suffix in suffixes:
        file = f"{name}.{suffix}"
        found = written.get(file, Finding(file, "is not in the manifest", "fault"))
        if found.kind == "fine" and suffix != "smt2":
            fault, complete = _fault(folder, name, suffix, timeout)
            found = Finding(file, fault or MEANING[suffix], "fine" if not fault else "fault" if complete else "open")
        yield found
    if len(suffixes) == 1:
        yield _words(folder / f"{name}.smt2", piece["words"], ask)


def _fault(folder: Path, name: str, suffix: str, timeout: float | None) -> tuple[str, bool]:
    """What is wrong with a formula or a proof, and whether all of it was checked."""
    if suffix == "cnf":
        try:
            return formula_fault(folder, name), True
        except Exception as error:  # the parser of another library says in many ways that it cannot read a file
            return f"cannot be read beside {name}.smt2: {type(error).__name__}", True
    found = check_piece(folder, name, timeout)
    return found.fault, found.complete


def _words(query: Path, words: list[str], ask: Ask | None) -> Finding:
    """What the engines that are named say of a query now."""
    named = [engine for engine in ENGINE_NAMES if any(word.split()[:1] == [engine] for word in words)]
    if ask is None or not named or not query.exists():
        return Finding(query.name, f"no proof; said by {', '.join(words) or 'nobody'}; not asked again", "open")
    answers = [ask(engine, query.read_text(encoding="utf-8")) for engine in named]
    said = "; ".join(map(str, answers))
    if any(answer.status == "sat" for answer in answers):
        return Finding(query.name, f"has a model: {said}", "fault")
    if all(answer.status != "unsat" for answer in answers):
        return Finding(query.name, f"no proof, and no answer: {said}", "open")
    return Finding(query.name, f"no proof; by the word of the engines alone: {said}", "word")


def _tree(folder: Path, pieces: list[str]) -> Iterator[Finding]:
    """The theorems, one finding for each that does not stand, and what they state."""
    try:
        document = read_document(folder / TREE)
        tree = Tree(document)
        faults = list(tree.check())
        stated = [statement_text(tree, number) for number in tree.states] if not faults else []
    except Exception as error:  # whatever a document that is not a tree raises
        yield Finding(TREE, f"cannot be read: {type(error).__name__}: {error}", "fault")
        return
    for number, fault in faults:
        yield Finding(f"{TREE}, theorem {number}", fault, "fault")
    if not faults:
        yield Finding(TREE, f"{len(tree.theorems)} theorems follow by their rules")
    yield _unit(folder, document)
    wanted = None
    if (folder / CLAIM).exists():
        try:
            wanted = share_claim(_claim_of(folder))
        except Exception as error:  # whatever a file that is no such claim raises
            yield Finding(CLAIM, f"cannot be read: {type(error).__name__}: {error}", "fault")
    models = [] if wanted is None else [zero.model for zero in wanted.zeros]
    for number, theorem in enumerate(document["theorems"]):
        if theorem.get("leaf") is not None:
            yield _lemma(folder, document, number, theorem, pieces, models)
    if wanted is not None:
        yield _stated(folder, document, wanted)
    yield from (Finding(TREE, f"states: {text}") for text in stated)


def _question(folder: Path, files: Mapping[str, str], pieces: list[str]) -> Iterator[Finding]:
    """Whether what the folder has answers its question, of which the terms are made again."""
    try:
        problem = read_question(folder)
        left, right = (plain(model.unit) for model in (problem.left, problem.right))
        if TREE in files:
            stated = read_document(folder / TREE)
            (goal,) = (stated["theorems"][number]["goal"] for number in stated["states"])
            fits = left == right == plain(read_unit(folder / UNIT)) and _tree_answers(goal, problem)
        elif "whole" in pieces:
            text = (folder / "whole.smt2").read_text(encoding="utf-8")
            fits = text in (text_of(problem, maximum) for maximum in MAXIMA)
        elif type(problem) is Reordered:
            fits = left == right and sorted(problem.order) == list(range(problem.length))
            fits = fits and one_unit(left, right, problem.order)
        else:
            fits = type(problem) is Problem and one_unit(left, right)
    except Exception as error:  # whatever files that are not a question raise
        yield Finding(QUESTION, f"cannot be read: {type(error).__name__}: {error}", "fault")
        return
    if fits:
        yield Finding(QUESTION, f"answered: no admitted input on which {' and '.join(problem.sides)} differ")
    else:
        yield Finding(QUESTION, "is not what the rest of the folder answers", "fault")


def _tree_answers(goal: Mapping[str, Any], problem: Problem) -> bool:
    """Whether what a tree states of a unit says that the sides of a problem about it do not differ."""
    if goal["is"] == "Turns":
        return type(problem) is Negated and problem.compare == "value"
    rises = goal["is"] == "Rises" and type(problem) is Monotonic and goal["raised"] == problem.raised
    return rises and (problem.inputs.normal or not goal["normal"])


def text_of(problem: Problem, maximum: Maximum) -> str:
    """Do the sides of a problem differ on an admitted input? In SMT-LIB."""
    made = Compared(problem, maximum)
    return Query(made.symbols, (*made.assertions, made.differ.node)).text


def _property(folder: Path, parts: Sequence[str]) -> Iterator[Finding]:
    """Whether the parts, each of which is checked, give the property."""
    try:
        stated, unit = read_document(folder / PROPERTY), plain(read_unit(folder / UNIT))
        asked = []
        for part in parts:
            question = read_document(folder / part / QUESTION)
            asked.append(question | {name: plain(read_unit(folder / part / f"{name}.yaml")) for name in SIDES})
        fault = property_fault(stated, unit, asked)
        text = fault or f"the parts give it, of {UNIT}: {property_text(stated, unit, asked)}"
    except Exception as error:  # whatever files that are no property raise
        yield Finding(PROPERTY, f"cannot be read: {type(error).__name__}: {error}", "fault")
        return
    yield Finding(PROPERTY, text, "fault" if fault else "fine")


def _plans(folder: Path, parts: Sequence[str]) -> Iterator[Finding]:
    """Whether two plans are equal, by rules and by the parts, each of which is checked."""
    try:
        stated = read_document(folder / PLANS)
        left, right = (read_plan(folder, name) for name in (LEFT_PLAN, RIGHT_PLAN))
        fault = plans_fault(stated, left, right, [read_question(folder / part) for part in parts])
        text = fault or f"{LEFT_PLAN} and {RIGHT_PLAN} are equal {plans_text(stated)}"
    except Exception as error:  # whatever files that are no plans raise
        yield Finding(PLANS, f"cannot be read: {type(error).__name__}: {error}", "fault")
        return
    yield Finding(PLANS, text, "fault" if fault else "fine")


def _cover(folder: Path, pieces: list[str], parts: Sequence[str]) -> Iterator[Finding]:
    """Whether the lemmas ask about cases of this unit, and speak of all that is said to be out of reach."""
    try:
        stated, unit = read_document(folder / COVER), read_unit(folder / UNIT)
        known = datapath(Model(UNIT, unit))
        conditions = {str(condition): condition for condition in known.flags}
        faults = []
        for lemma, cases in stated["lemmas"].items():
            text = known.query([tuple(conditions[name] for name in case) for case in cases]).text
            if lemma not in pieces or (folder / f"{lemma}.smt2").read_text(encoding="utf-8") != text:
                faults.append(f"{lemma}.smt2 does not ask whether some input reaches these cases")
        for case in stated["cases"]:
            said = stated["lemmas"][case["lemma"]]
            if not case["conditions"] or not any(set(part) <= set(case["conditions"]) and part for part in said):
                faults.append(f"{case['lemma']} does not speak of {' and '.join(case['conditions'])}")
        faults += [f"nobody says what {part} is for" for part in parts
                   if part not in {change["part"] for change in stated["changes"]}]  # fmt: skip
        for change in stated["changes"]:
            problem = read_question(folder / change["part"])
            plainly = type(problem) is Problem and problem.inputs == Inputs() and problem.compare == "bits"
            if change["part"] not in parts or not plainly or plain(problem.left.unit) != plain(unit):
                faults.append(f"{change['part']} does not say that {change['change']} changes nothing")
    except Exception as error:  # whatever files that are no such documents raise
        yield Finding(COVER, f"cannot be read: {type(error).__name__}: {error}", "fault")
        return
    yield from (Finding(COVER, fault, "fault") for fault in faults)
    if not faults:
        told = f"no input reaches any of {counted(len(stated['cases']), 'case')}"
        same = [f"{change['change']} gives the same results" for change in stated["changes"]]
        yield Finding(COVER, "; ".join([told, *same]))


def _chain(folder: Path, pieces: list[str]) -> Iterator[Finding]:
    """The facts, one finding for each that does not follow, and what they say."""
    try:
        document = read_document(folder / CHAIN)
        facts = Facts(folder / FACTS)
        faults = list(chain_faults(folder, facts, document))
        strange = {step["lemma"] for step in document["steps"]} - set(pieces)
        said = list(_claim(folder, document, facts, pieces)) if (folder / CLAIM).exists() else []
    except Exception as error:  # whatever files that are not a chain raise
        yield Finding(CHAIN, f"cannot be read: {type(error).__name__}: {error}", "fault")
        return
    yield from (Finding(f"{CHAIN}, {name}", fault, "fault") for name, fault in faults)
    yield from (Finding(CHAIN, f"rests on {name}, which is not in the manifest", "fault") for name in sorted(strange))
    if not faults:
        axioms = ", ".join(document["axioms"].values())
        yield Finding(CHAIN, f"{len(document['steps'])} facts follow one from another; from: {axioms}")
    yield from said


def _claim(folder: Path, document: Mapping[str, Any], facts: Facts, pieces: list[str]) -> Iterator[Finding]:
    """Whether the facts say that no admitted input decides the claim of the claim file, which is made again."""
    claim = _claim_of(folder)
    whole = document["whole"]
    question = Question(claim, frozenset(whole))
    wanted = {"admitted": question.assumed, "none": question.none.node}
    if not question.fits.node.is_true():
        wanted["numbers"] = question.fits.node
    terms = facts.named(Query((), (), tuple(wanted.items())).text)
    stated = [facts.terms[name] for name in (*document["axioms"], *document["states"])]
    if stated != [terms[name] for name in wanted]:
        yield Finding(CLAIM, f"{CHAIN} does not state that no admitted input decides it", "fault")
        return
    for part, names in whole.items():
        wanted_lemmas: tuple[Lemma, ...] = lemmas_of(claim, part)
        for name, lemma in zip(names, wanted_lemmas, strict=True):
            if name not in pieces or (folder / f"{name}.smt2").read_text(encoding="utf-8") != query_of(lemma).text:
                yield Finding(CLAIM, f"{name}.smt2 does not ask: {lemma.statement()}", "fault")
                return
    yield Finding(CLAIM, f"no admitted input decides, and every value is a number: {claim.text}")


def _claim_of(folder: Path) -> Claim:
    (claim,) = build_claims(read_yaml((folder / CLAIM).read_text(encoding="utf-8"), CLAIM))
    assert isinstance(claim, Claim)
    return claim


def _stated(folder: Path, document: Mapping[str, Any], wanted: ShareClaim) -> Finding:
    """Whether what a tree states is what the claim of the claim file needs, which was made again."""
    try:
        unit = parse_unit((folder / UNIT).read_text(encoding="utf-8"), UNIT)
        goals = [document["theorems"][place]["goal"] for place in document["states"]]
        (within,) = (goal for goal in goals if goal["is"] == "Within")
        zeros = [goal["count"] for goal in goals if goal["is"] == "ZerosGiveZero"]
        again = Written(unit).restated(wanted, [Format(**fmt) for fmt in document["formats"]])
        same = all(within[name] == again[name] for name in ("space", "values"))
        enough = Fraction(within["share"]) <= wanted.share and Fraction(within["size"]) <= wanted.size
        one = {zero.model.unit.result for zero in wanted.zeros} == {unit.result}
    except Exception as error:  # whatever files that are no such documents raise
        return Finding(CLAIM, f"cannot be read: {type(error).__name__}: {error}", "fault")
    if same and enough and one and zeros == [zero.count for zero in wanted.zeros]:
        return Finding(CLAIM, f"no admitted input decides, and every value is a number: {wanted.text}")
    return Finding(CLAIM, f"{TREE} does not state what it needs", "fault")


def _rows(folder: Path) -> Iterator[Finding]:
    """The bounds of rows, one finding for each that does not follow, and what they say."""
    try:
        document = read_document(folder / ROWS)
        (claim,) = build_claims(read_yaml((folder / CLAIM).read_text(encoding="utf-8"), CLAIM))
        assert isinstance(claim, OverflowClaim)
        faults = row_faults(document)
        starts = [start_of(document, place) for place in document["states"]]
        made = [recorded(claim.reduction, start) for start in starts]
        strange = [place for place, one in zip(document["states"], made, strict=True)
                   if not same_operations(document, place, one)]  # fmt: skip
        for one in made:
            for unit in units_of(one):
                need_truncation(unit)
        least = claim.numbers - (claim.overflow == "smallest")
        count = left_open(claim.reduction, least, starts)
        ones = np.full(claim.numbers, BELOW_ONE, dtype=np.uint32)
        last = exact_value(sum_of_array(claim.reduction, ones), claim.reduction.result_format)
    except Exception as error:  # whatever files that are no such documents raise
        yield Finding(ROWS, f"cannot be read: {type(error).__name__}: {error}", "fault")
        return
    yield from (Finding(f"{ROWS}, theorem {number}", fault, "fault") for number, fault in faults)
    yield from (Finding(f"{ROWS}, theorem {number}", "is about other operations", "fault") for number in strange)
    if count is not None:
        yield Finding(ROWS, f"nothing is said of {count} numbers", "fault")
    if claim.overflow == "smallest" and last != "inf":
        yield Finding(CLAIM, f"{claim.numbers} times the largest number below 1 do not overflow", "fault")
    elif not faults and not strange and count is None:
        yield Finding(ROWS, f"{len(document['theorems'])} bounds follow one from another")
        yield Finding(CLAIM, claim.text)


def _unit(folder: Path, document: Mapping[str, Any]) -> Finding:
    """Whether the tree is about the unit of the unit file."""
    try:
        unit = parse_unit((folder / UNIT).read_text(encoding="utf-8"), UNIT)
    except (OSError, MmaprobeError) as error:
        return Finding(UNIT, f"cannot be read: {error}", "fault")
    again = Written(unit).stating((), {})
    formats = document["formats"]
    same = again["formats"] == formats[: len(again["formats"])]
    if same and all(again[name] == document[name] for name in ("unit", "nodes")):
        return Finding(UNIT, f"the unit of {TREE}")
    return Finding(UNIT, f"is not the unit of {TREE}", "fault")


def _lemma(folder: Path, document: Mapping[str, Any], number: int, theorem: Mapping[str, Any],
           pieces: list[str], models: Sequence[Model] = ()) -> Finding:  # fmt: skip
    """Whether the file of a lemma asks what this datapath gives for it."""
    name, place = str(theorem["leaf"]), f"{TREE}, theorem {number}"
    if name not in pieces:
        return Finding(place, f"rests on {name}, which is not in the manifest", "fault")
    try:
        lemma = _lemma_of(theorem["goal"], document["formats"], models)
        text = (folder / f"{name}.smt2").read_text(encoding="utf-8")
        same = query_of(lemma).text == text
    except Exception as error:  # a lemma about widths or formats that cannot be
        return Finding(place, f"cannot be read: {type(error).__name__}: {error}", "fault")
    if not same:
        return Finding(place, f"{name}.smt2 does not ask what the datapath gives for: {lemma.statement()}", "fault")
    return Finding(place, f"{name}.smt2 asks of the datapath: {lemma.statement()}")


def _lemma_of(goal: Mapping[str, Any], formats: list[Any], models: Sequence[Model]) -> Lemma:
    """A lemma as it is written; `models`: that of the tree, where it is about one."""

    def read(parts: Mapping[str, Any]) -> dict[str, Any]:
        kinds: dict[str, Callable[[Any], Any]] = dict.fromkeys(
            ("format", "given", "source", "into"), lambda value: Format(**formats[value])
        )
        kinds |= {"target": lambda value: Target(**read(value)), "words": lambda value: Words(**read(value)),
                  "window": tuple, "share": Fraction}  # fmt: skip
        return {name: kinds[name](value) if name in kinds else value for name, value in parts.items()}

    parts = read(goal)
    name = parts.pop("is")
    if name == ZerosGiveZero.__name__:
        (model,) = models
        return ZerosGiveZero(model, **parts)
    about = (*LEMMAS, RoundsOpposite, RoundingRises, RoundingScales, WordIsSmall, WordsLeave)
    (kind,) = (kind for kind in about if kind.__name__ == name)
    found: Lemma = kind(**parts)
    return found
