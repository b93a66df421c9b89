"""Whether what a folder has answers what its documents say: a question, a property, plans, a claim, a cover.

What is asked is made again from the files, and compared with what was proved.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from hypotheses.claim import Claim
from hypotheses.unit_claims import OverflowClaim
from queries.certificates.chain import Facts, chain_faults
from queries.certificates.magnitudes import need
from queries.certificates.names import (
    CHAIN,
    CLAIM,
    COVER,
    FACTS,
    FORMS,
    LEFT_PLAN,
    PLANS,
    PROPERTY,
    QUESTION,
    RIGHT_PLAN,
    ROWS,
    SUMS,
    TREE,
    UNIT,
    WITNESS,
)
from queries.certificates.reading import file_text
from queries.certificates.row_rules import row_faults
from queries.certificates.together import any_pattern, one_unit, property_fault, property_text, rewritten_unit
from queries.checking.finding import Contents, Finding, of_file, read_claim
from queries.checking.padding import padding_fault
from queries.checking.plan_bounds import bounds
from queries.checking.plans import plans_fault, plans_text
from queries.checking.trees import theorems
from queries.checking.witnesses import witness
from queries.kernel.lemmas import Lemma, query_of
from queries.kernel.problem import Problem
from queries.kernel.rows import BELOW_ONE, left_open, need_truncation, recorded, units_of
from queries.kernel.same import Compared
from queries.kernel.statements import Monotonic, Negated, Reordered
from queries.kernel.undecided import ConditionsReadNumbers, Question, lemmas_of
from queries.kernel.unreachable import datapath
from queries.plans.certify import read_plan
from queries.properties.asked import PADDING, plain, read_document, read_question, read_unit
from queries.solvers.smtlib import Query
from queries.tactics.written_rows import same_operations, start_of
from smtmodel.algorithms import sum_of_array
from smtmodel.carriers.terms import Maximum
from smtmodel.display import exact_value
from smtmodel.dot import Model
from smtmodel.inputs import Inputs
from smtmodel.wording import counted

MAXIMA: tuple[Maximum, ...] = ("relational", "select")
SIDES = ("left", "right")


@of_file(QUESTION)
def question(folder: Path, contents: Contents) -> Iterator[Finding]:
    """Whether what the folder has answers its question, of which the terms are made again."""
    problem = read_question(folder)
    left, right = (plain(model.unit) for model in (problem.left, problem.right))
    if TREE in contents.files:
        stated = read_document(folder / TREE)
        (goal,) = (stated["theorems"][number]["goal"] for number in stated["states"])
        fits = left == right == plain(read_unit(folder / UNIT)) and _tree_answers(goal, problem)
    elif "whole" in contents.pieces:
        text = file_text(folder / "whole.smt2")
        fits = text in (text_of(problem, maximum) for maximum in MAXIMA)
    elif contents.parts:
        fits = type(problem) is Problem and _one_form(folder, contents.parts, left, right)
    elif type(problem) is Reordered:
        fits = one_unit(left, right, problem.order)
    else:
        fits = type(problem) is Problem and one_unit(left, right)
    if fits:
        yield Finding(QUESTION, f"answered: no admitted input on which {' and '.join(problem.sides)} differ")
    else:
        yield Finding(QUESTION, "is not what the rest of the folder answers", "fault")


def _one_form(folder: Path, parts: Sequence[str], left: dict[str, Any], right: dict[str, Any]) -> bool:
    """Whether two units are one where each is what the tree of its part says that it is alike with."""
    found = list(any_pattern(left, right))
    for k, part in enumerate(FORMS):
        if part in parts:
            need(plain(read_unit(folder / part / UNIT)) == found[k], f"{part} is of another unit")
            found[k] = rewritten_unit(read_document(folder / part / TREE))
    return one_unit(found[0], found[1])


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


@of_file(PROPERTY)
def properties(folder: Path, contents: Contents) -> Iterator[Finding]:
    """Whether the parts, each of which is checked, give the property."""
    stated, unit = read_document(folder / PROPERTY), plain(read_unit(folder / UNIT))
    asked = []
    for part in contents.parts:
        own = read_document(folder / part / QUESTION)
        asked.append(own | {name: plain(read_unit(folder / part / f"{name}.yaml")) for name in SIDES})
    fault = property_fault(stated, unit, asked)
    if stated["property"] == PADDING and not fault:
        fault = padding_fault(stated, unit, [part["left"] for part in asked], every=True)
    text = fault or f"the parts give it, of {UNIT}: {property_text(stated, unit, asked)}"
    yield Finding(PROPERTY, text, "fault" if fault else "fine")


@of_file(PLANS)
def plans(folder: Path, contents: Contents) -> Iterator[Finding]:
    """Whether two plans are equal, by rules and by the parts, each of which is checked."""
    stated = read_document(folder / PLANS)
    left, right = (read_plan(folder, name) for name in (LEFT_PLAN, RIGHT_PLAN))
    fault = plans_fault(stated, left, right, [read_question(folder / part) for part in contents.parts])
    text = fault or f"{LEFT_PLAN} and {RIGHT_PLAN} are equal {plans_text(stated)}"
    yield Finding(PLANS, text, "fault" if fault else "fine")


@of_file(COVER)
def cover(folder: Path, contents: Contents) -> Iterator[Finding]:
    """Whether the lemmas ask about cases of this unit, and speak of all that is said to be out of reach."""
    stated, unit = read_document(folder / COVER), read_unit(folder / UNIT)
    known = datapath(Model(UNIT, unit))
    conditions = {str(condition): condition for condition in known.flags}
    faults = []
    for lemma, cases in stated["lemmas"].items():
        text = known.query([tuple(conditions[name] for name in case) for case in cases]).text
        if lemma not in contents.pieces or file_text(folder / f"{lemma}.smt2") != text:
            faults.append(f"{lemma}.smt2 does not ask whether some input reaches these cases")
    for case in stated["cases"]:
        said = stated["lemmas"][case["lemma"]]
        if not case["conditions"] or not any(set(part) <= set(case["conditions"]) and part for part in said):
            faults.append(f"{case['lemma']} does not speak of {' and '.join(case['conditions'])}")
    faults += [f"nobody says what {part} is for" for part in contents.parts
               if part not in {change["part"] for change in stated["changes"]}]  # fmt: skip
    for change in stated["changes"]:
        problem = read_question(folder / change["part"]) if change["part"] in contents.parts else None
        plainly = type(problem) is Problem and problem.inputs == Inputs() and problem.compare == "bits"
        if problem is None or not plainly or plain(problem.left.unit) != plain(unit):
            faults.append(f"{change['part']} does not say that {change['change']} changes nothing")
    if not stated["cases"] and not stated["changes"]:
        faults.append("it states nothing")
    yield from (Finding(COVER, fault, "fault") for fault in faults)
    if not faults:
        told = f"no input reaches any of {counted(len(stated['cases']), 'case')}"
        # what a change is called is said by nobody but the document: the unit's file is what was compared
        same = [f"{change['part']}/right.yaml, called {change['change']}, gives the same results"
                for change in stated["changes"]]  # fmt: skip
        yield Finding(COVER, "; ".join([told, *same]))


@of_file(CHAIN)
def chain(folder: Path, contents: Contents) -> Iterator[Finding]:
    """The facts, one finding for each that does not follow, and what they say."""
    document = read_document(folder / CHAIN)
    facts = Facts(folder / FACTS)
    strange = {step["lemma"] for step in document["steps"]} - set(contents.pieces)
    yield from (Finding(CHAIN, f"rests on {name}, which is not in the manifest", "fault") for name in sorted(strange))
    if CLAIM not in contents.files:
        yield Finding(CHAIN, f"there is no {CLAIM}: nothing says what the facts are about", "fault")
    if strange or CLAIM not in contents.files:
        return
    faults = list(chain_faults(folder, facts, document))
    said = list(_claim(folder, document, facts, contents.pieces))
    yield from (Finding(f"{CHAIN}, {name}", fault, "fault") for name, fault in faults)
    if not faults:
        axioms = ", ".join(document["axioms"].values())
        yield Finding(CHAIN, f"{len(document['steps'])} facts follow one from another; from: {axioms}")
    yield from said


def _claim(folder: Path, document: Mapping[str, Any], facts: Facts, pieces: list[str]) -> Iterator[Finding]:
    """Whether the facts say that no admitted input decides the claim of the claim file, which is made again."""
    claim = read_claim(folder, Claim)
    whole = document["whole"]
    question = Question(claim.assertion, frozenset(whole))
    wanted = {"admitted": question.assumed, "none": question.none.node}
    if not question.fits.node.is_true():
        wanted["numbers"] = question.fits.node
    terms = facts.named(Query((), (), tuple(wanted.items())).text)
    stated = [facts.terms[name] for name in (*document["axioms"], *document["states"])]
    if stated != [terms[name] for name in wanted]:
        yield Finding(CLAIM, f"{CHAIN} does not state that no admitted input decides it", "fault")
        return
    lemmas: list[tuple[str | None, Lemma]] = []
    for part, names in whole.items():
        lemmas += zip(names, lemmas_of(claim.assertion, part), strict=True)
    reads = not question.at_fault.node.is_false()
    if reads:
        lemmas.append((document.get("conditions"), ConditionsReadNumbers(claim.assertion)))
    for name, lemma in lemmas:
        if name not in pieces:
            yield Finding(CLAIM, f"no lemma says: {lemma.statement()}", "fault")
            return
        if file_text(folder / f"{name}.smt2") != query_of(lemma).text:
            yield Finding(CLAIM, f"{name}.smt2 does not ask: {lemma.statement()}", "fault")
            return
    numbers = f"every value{' (those of conditions too)' if reads else ''} is a number"
    yield Finding(CLAIM, f"no admitted input decides, and {numbers}: {claim.text}")


@of_file(ROWS)
def rows(folder: Path, contents: Contents) -> Iterator[Finding]:
    """The bounds of rows, one finding for each that does not follow, and what they say."""
    document = read_document(folder / ROWS)
    claim = read_claim(folder, OverflowClaim)
    need(bool(document["states"]), "it states nothing")
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
    yield from (Finding(f"{ROWS}, theorem {number}", fault, "fault") for number, fault in faults)
    yield from (Finding(f"{ROWS}, theorem {number}", "is about other operations", "fault") for number in strange)
    if count is not None:
        yield Finding(ROWS, f"nothing is said of {count} numbers", "fault")
    if claim.overflow == "smallest" and last != "inf":
        yield Finding(CLAIM, f"{claim.numbers} times the largest number below 1 do not overflow", "fault")
    elif not faults and not strange and count is None:
        yield Finding(ROWS, f"{len(document['theorems'])} bounds follow one from another")
        yield Finding(CLAIM, claim.text)


#: what looks at each file that says what was proved
ANSWERS = {TREE: theorems, CHAIN: chain, ROWS: rows, QUESTION: question, PROPERTY: properties, PLANS: plans,
           COVER: cover, SUMS: bounds, WITNESS: witness}  # fmt: skip
