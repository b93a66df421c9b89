"""`mmaprobe check`: what was proved passes; with any one thing changed it does not, and the place is named."""

from __future__ import annotations

import copy
import json
import random
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from pysmt.fnode import FNode

from benchmarks.sabotage import ROOT, changes
from cli.main import main
from queries.certificates.certificate import whole_of_query
from queries.certificates.chain import Facts, chain_faults
from queries.certificates.names import CHAIN, FACTS
from queries.certificates.sum_rules import SumTree
from queries.certificates.tree import RULES, Tree, statement_text
from queries.checking.folder import check_all, check_folder
from queries.claims.verify import verify
from queries.equality.certify import chain_texts
from queries.kernel import enclosures, expressions, facts, rows, same, shares, sums, together, undecided, unreachable
from queries.kernel.enclosures import weakened
from queries.kernel.induction import carried, closed
from queries.kernel.lemmas import AlignmentLoses, query_of
from queries.kernel.theorem import RULES as MADE
from queries.kernel.theorem import Made, RuleError
from queries.kernel.theorem import rule as made_rule
from queries.properties.bound import bound_in_units, bound_of, chain_of, error_of
from queries.properties.bound_certificate import certify_bound
from queries.properties.bound_report import find_bound
from queries.search.distinguish import Options
from queries.solvers.contract import Answer
from queries.tactics.written import Written
from smtmodel.inputs import Inputs
from smtmodel.reference import parse_reference
from smtmodel.unit import Unit
from smtmodel.unitfile import parse_unit, unit_text
from tests.node_units import random_unit
from tests.tampering import fitted
from tests.test_bounds import ARITHMETICS, UNITS, believed, small
from tests.test_claim_stages import claim_of
from tests.test_table9 import SUM, unit_of

BFDOT = "arm/neon/bfdot"
TABLE_9 = unit_of(SUM.format("F=2"))
Document = dict[str, Any]


def tree_of(unit: Unit) -> Document:
    """All that is proved of a unit: its bound, and that of a chain. Raises RuleError for nothing."""
    roots = [theorem := bound_of(unit, believed)]
    roots.append(weakened(theorem, error_of(theorem).merged()))
    with suppress(RuleError):  # no chain
        chain = chain_of(unit, believed)
        roots += [closed(chain), carried(chain, 3)]
    with suppress(RuleError):  # no sum of the kind of Table 9
        roots.append(bound_in_units(unit, unit.length + 1, True, believed))
    lemmas = [theorem for root in roots for theorem in root.walk() if theorem.rule == "settled"]
    found: Document = json.loads(json.dumps(Written(unit).stating(roots, dict.fromkeys(lemmas, "lemma"))))
    return found


def faults(document: Document) -> list[tuple[int, str]]:
    return list(Tree(document).check())


def found_at(document: Document, number: int) -> bool:
    """Whether a fault is found in a theorem; what comes after it is not checked."""
    return any(place == number for place, _ in Tree(document).check())


def test_every_rule_is_checked() -> None:
    of_plans = {name for name, made in MADE.items() if made.__module__ == sums.__name__}
    assert of_plans == {"begun", "halved", "held", "nothing", "tile", "added", "iterated", "of_all_products"}
    assert of_plans <= SumTree.rules.keys()
    of_covering = {name for name, made in MADE.items() if made.__module__ == unreachable.__name__}  # nor these
    assert of_covering == {"refuted", "implied"}
    of_chains = {
        name for name, made in MADE.items() if made.__module__ in (facts.__name__, undecided.__name__, same.__name__)
    }
    assert of_chains == {
        "given",
        "defined",
        "follows",
        "by_first_words",
        "undecided",
        "agreed",  # chain.py has these
        "themselves",
        "replaced",
        "one_maximum",
        "never",
    }  # and these one proof, without lemmas
    of_rows = {name for name, made in MADE.items() if made.__module__ == rows.__name__}  # row_rules.py has these
    assert of_rows == {"below_one", "parted", "joined", "converted", "column_sums", "trees", "in_sequence",
                       "never_overflows"}  # fmt: skip
    of_properties = {name for name, made in MADE.items() if made.__module__ == together.__name__}
    assert of_properties == {"every_order", "each_part", "raised_elsewhere", "negates", "does_not_fall"}
    of_forms = {name for name, made in MADE.items() if made.__module__ == expressions.__name__}
    assert of_forms == {"one_expression", "one_sum", "one_form"}
    of_claims = {name for name, made in MADE.items() if made.__module__ == shares.__name__} - RULES.keys()
    assert of_claims == {"compares"}  # what it checks is made again from the claim file
    known = RULES.keys() | of_plans | of_covering | of_chains | of_claims | of_rows | of_properties | of_forms
    assert known == MADE.keys()


def test_two_rules_of_one_name_are_refused() -> None:
    before = dict(MADE)

    def exact() -> Made:
        return Made(AlignmentLoses(1, 1, 1, "toward_zero"))

    with pytest.raises(RuleError, match=r"none of the kernel's rules"):
        made_rule(exact)
    assert before == MADE


@pytest.mark.parametrize("name", UNITS)
def test_trees_of_small_units_pass(name: str) -> None:
    assert faults(tree_of(small(*UNITS[name]).unit)) == []


def test_trees_of_the_table_pass() -> None:
    for reference in ARITHMETICS[::6]:
        unit = parse_reference(reference).unit
        document = tree_of(unit)
        assert faults(document) == [], reference
        again = Written(parse_unit(unit_text(unit), "unit.yaml")).stating((), {})
        assert json.loads(json.dumps(again["nodes"])) == document["nodes"], reference


def test_trees_of_random_units_pass() -> None:
    rng, seen = random.Random(5), 0
    for _ in range(120):
        unit = random_unit(rng)
        try:
            document = tree_of(unit)
        except RuleError:
            continue
        assert faults(document) == [], unit_text(unit)
        seen += 1
    assert seen > 30


# -- one thing changed in a tree


def numbers_in(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The places of all numbers and fractions in a goal."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from numbers_in(inner, (*path, key))
    elif isinstance(value, list):
        for place, inner in enumerate(value):
            yield from numbers_in(inner, (*path, place))
    elif (isinstance(value, int) and not isinstance(value, bool)) or (isinstance(value, str) and value[0].isdigit()):
        yield path


def put(value: Any, path: tuple[Any, ...], change: Callable[[Any], Any]) -> None:
    for key in path[:-1]:
        value = value[key]
    value[path[-1]] = change(value[path[-1]])


def own(document: Document, number: int) -> Document:
    """The document with a theorem of its own at a place, to be changed."""
    theorems = list(document["theorems"])
    theorems[number] = copy.deepcopy(theorems[number])
    return {**document, "theorems": theorems}


def other(value: int | str) -> int | str:
    """Another number: a fraction becomes a little smaller, nothing becomes something."""
    return value + 1 if isinstance(value, int) else str(Fraction(value) * (1 - Fraction(1, 1 << 20)) or Fraction(1, 7))


#: a sum with cut terms that becomes one of a chain, and roundings that flush
CHANGED = ["chain", "cut", "flush before", "floor", "exact in a sum", "chain that flushes", "table 9"]


def small_tree(name: str) -> Document:
    return tree_of(TABLE_9 if name == "table 9" else small(*UNITS[name]).unit)


@pytest.mark.parametrize("name", CHANGED)
def test_any_number_changed_in_a_conclusion_is_found_there(name: str) -> None:
    document, rng, count = small_tree(name), random.Random(6), 0
    for number, theorem in enumerate(document["theorems"]):
        places = list(numbers_in(theorem["goal"]))
        for path in rng.sample(places, min(len(places), 12)):
            broken = own(document, number)
            less = theorem["rule"] == "loosened"  # more units would follow as well
            put(broken["theorems"][number]["goal"], path, (lambda units: units - 9) if less else other)
            if theorem["rule"] == "settled":  # a lemma about something else: those that need it miss it
                users = {k for k, one in enumerate(document["theorems"]) if number in one["premises"]}
                assert users <= {k for k, _ in faults(broken)}, (number, path)
            else:
                assert found_at(broken, number), (number, path)
            count += 1
    assert count > 50


#: the first of which may be called the second: a lemma is one, and the result's own size is that of the exact result
ALIKE = {("settled", "exhausted"), ("weakened", "whole")}


@pytest.mark.parametrize("name", CHANGED)
def test_another_premise_or_rule_is_found_there(name: str) -> None:
    document, rng = small_tree(name), random.Random(7)
    goals = [theorem["goal"] for theorem in document["theorems"]]
    for number, theorem in enumerate(document["theorems"]):
        for place, premise in enumerate(theorem["premises"]):
            before, after = theorem["premises"][:place], theorem["premises"][place + 1 :]
            others = [new for new in range(number) if goals[new] != goals[premise]]
            for middle in [[], [number], [-1], [10**6], *([new] for new in rng.sample(others, min(3, len(others))))]:
                broken = own(document, number)
                broken["theorems"][number]["premises"] = [*before, *middle, *after]
                assert found_at(broken, number), (number, premise, middle)
        for rule in rng.sample([*RULES, "nothing"], 5):
            if rule != theorem["rule"] and (theorem["rule"], rule) not in ALIKE:
                broken = own(document, number)
                broken["theorems"][number]["rule"] = rule
                assert found_at(broken, number), (number, rule)


def test_what_is_no_bound_of_the_result_is_not_stated() -> None:
    document = tree_of(small(*UNITS["chain"]).unit)
    for number, theorem in enumerate(document["theorems"]):
        if number not in document["states"]:
            broken = {**document, "states": [*document["states"], number]}
            goal = theorem["goal"]
            final = goal["is"] == "Enclosed" and goal["node"] == document["unit"]["result"] and not goal["assuming"]
            assert found_at(broken, number) == (not final and goal["is"] != "Chained")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("LOSSES", dict.fromkeys(enclosures.LOSSES, (Fraction(1, 2), Fraction(1, 2)))),
        ("grid_of", lambda every: 0),
        ("largest", lambda forms: forms[0]),
        ("_multiplied", lambda facts: facts[0]),
    ],
)
def test_a_broken_kernel_is_noticed(name: str, value: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(enclosures, name, value)
    found = []
    for unit in UNITS.values():
        try:
            found += faults(tree_of(small(*unit).unit))
        except RuleError:
            continue
    assert found


def test_changes_of_the_campaign_are_of_texts_that_stand_once() -> None:
    for change in changes():
        assert (ROOT / change["file"]).read_text().count(change["old"]) == 1, change["old"]


# -- folders


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A certificate of a bound of a chain, by which its files are copied."""
    path = tmp_path_factory.mktemp("certificate")
    model = parse_reference(BFDOT)
    result = find_bound(model, Inputs(), 2 * model.length, believed)
    certify_bound(result, path, Options(timeout=60.0))
    return path


@pytest.fixture
def copied(folder: Path, tmp_path: Path) -> Path:
    for path in folder.iterdir():
        (tmp_path / path.name).write_bytes(path.read_bytes())
    return tmp_path


def rewritten(folder: Path, changes: Callable[[Document], None] = lambda manifest: None) -> None:
    """Make the manifest fit what was changed, as somebody would who wants it to pass."""
    manifest = json.loads((folder / "manifest.json").read_text())
    changes(manifest)
    (folder / "manifest.json").write_text(json.dumps(manifest))
    fitted(folder)


def worst(folder: Path) -> set[tuple[str, str]]:
    return {(found.place, found.kind) for found in check_folder(folder) if found.kind != "fine"}


def test_a_certificate_of_a_bound(copied: Path) -> None:
    found = list(check_folder(copied))
    assert {finding.kind for finding in found} == {"fine"}
    assert [f for f in found if f.says.startswith("states: after 2 instructions |d - exact| <=")]


@pytest.mark.parametrize("name", ["tree.json", "unit.yaml", "lemma-01.smt2", "lemma-01.cnf", "lemma-01.drat"])
def test_a_changed_or_missing_file_is_found(name: str, copied: Path) -> None:
    text = (copied / name).read_text()
    (copied / name).write_text(text + "\n")
    assert (name, "fault") in worst(copied)
    (copied / name).unlink()
    assert (name, "fault") in worst(copied)


def test_certificates_of_several_cases_are_checked_together(folder: Path, tmp_path: Path) -> None:
    """In folders of names with slashes; a folder with files of which no manifest tells is not passed over."""
    for case in ("x@model=a/b", "x@model=c"):
        shutil.copytree(folder, tmp_path / case)
    alone = list(check_folder(folder))
    assert [(one.place, one.kind) for one in check_all(tmp_path)] == [
        (f"{case}/{one.place}", one.kind) for case in ("x@model=a/b", "x@model=c") for one in alone
    ]
    (tmp_path / "x@model=a" / "b" / "manifest.json").unlink()
    faults = {one.place for one in check_all(tmp_path) if one.kind == "fault"}
    assert faults == {"x@model=a/b"}


def test_a_lemma_about_something_else_is_found(copied: Path) -> None:
    """With formula, proof and digests that fit: a true lemma, but not the one that the theorem needs."""
    whole = whole_of_query(query_of(AlignmentLoses(4, 3, 1, "down")), 60.0)
    for suffix, text in (("smt2", whole.query.text), ("cnf", whole.cnf), ("drat", whole.drat)):
        (copied / f"lemma-01.{suffix}").write_text(text)
    rewritten(copied)
    assert [place.split(",")[0] for place, _ in worst(copied)] == ["tree.json"]


def test_a_tree_about_another_unit_is_found(copied: Path) -> None:
    text = (copied / "unit.yaml").read_text()
    (copied / "unit.yaml").write_text(text.replace("to_odd", "nearest_even"))
    rewritten(copied)
    assert worst(copied) == {("unit.yaml", "fault")}


def test_a_tree_that_is_none_is_found(copied: Path) -> None:
    for text in ("", "[]", "{}", '{"unit": {}}'):
        (copied / "tree.json").write_text(text)
        rewritten(copied)
        assert ("tree.json", "fault") in worst(copied)


def without_proof(folder: Path, *words: str) -> None:
    def change(manifest: Document) -> None:
        (piece,) = manifest["pieces"]
        piece["sha256"].pop("lemma-01.drat"), piece["sha256"].pop("lemma-01.cnf")
        piece["words"] = list(words)

    for suffix in ("cnf", "drat"):
        (folder / f"lemma-01.{suffix}").unlink()
    rewritten(folder, change)


def says(status: Any) -> Callable[[str, str], Answer]:
    return lambda engine, text: Answer(status, engine, "1", 0.1)


def test_a_lemma_without_a_proof_rests_on_words(copied: Path) -> None:
    without_proof(copied, "z3 4.13: unsat in 0.1 s")
    assert worst(copied) == {("lemma-01.smt2", "open")}
    kinds = {status: next(found.kind for found in check_folder(copied, says(status)) if found.kind != "fine")
             for status in ("unsat", "unknown", "sat")}  # fmt: skip
    assert kinds == {"unsat": "word", "unknown": "open", "sat": "fault"}


def test_exit_codes(copied: Path) -> None:
    def run(*arguments: str) -> tuple[int, str]:
        done = CliRunner().invoke(main, ["check", *arguments])
        return done.exit_code, done.output

    code, text = run(str(copied))
    assert code == 0
    assert text.startswith("checked: ")
    assert text.splitlines()[-1].startswith("believed: ")
    assert run(str(copied.parent / "nothing"))[0] == 2
    without_proof(copied, "bitwuzla 0.9: unsat in 0.1 s")
    code, text = run(str(copied))
    assert code == 0
    assert "1 lemma for which solvers alone answer" in text
    assert run(str(copied), "--no-engines")[0] == 3
    broken = json.loads((copied / "tree.json").read_text())
    broken["theorems"][3]["rule"] = "element"
    (copied / "tree.json").write_text(json.dumps(broken))
    rewritten(copied)
    code, text = run(str(copied), "--no-engines", "--json")
    assert code == 1
    assert text.startswith("rejected by the checker: ")
    assert "tree.json, theorem 3" in text


def test_what_is_stated_is_read_off_the_tree() -> None:
    document = tree_of(small(*UNITS["truncated"]).unit)
    tree = Tree(document)
    assert list(tree.check()) == []
    assert statement_text(tree, document["states"][0]).startswith("|d - exact| <= ")


# -- chains of facts


@pytest.fixture(scope="module")
def chain(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The steps of a proof of a claim, with its lemmas as queries alone."""
    path = tmp_path_factory.mktemp("chain")
    outcome = verify(claim_of("distance(three, four) <= 7"), Options("bitwuzla", 60.0))
    assert outcome.chain is not None
    for name, text in chain_texts(outcome.chain).items():
        (path / name).write_text(text)
    for number, lemma in enumerate(outcome.lemmas, 1):
        (path / f"lemma-{number:02d}.smt2").write_text(lemma.query.text)
    return path


class ReadOnce(Facts):
    """Facts of files that do not change: what one changed step leaves as it is is read, and made, once."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.files: dict[Path, list[FNode]] = {}
        self.made: dict[tuple[FNode, frozenset[tuple[FNode, FNode]]], FNode] = {}

    def asserted(self, path: Path) -> list[FNode]:
        if path not in self.files:
            self.files[path] = super().asserted(path)
        return self.files[path]

    def with_terms(self, term: FNode, terms: Mapping[FNode, FNode]) -> FNode:
        key = term, frozenset(terms.items())
        if key not in self.made:
            self.made[key] = super().with_terms(term, terms)
        return self.made[key]


def chain_of_facts(path: Path) -> Document:
    found: Document = json.loads((path / CHAIN).read_text())
    return found


def test_a_chain_of_facts_passes(chain: Path) -> None:
    document = chain_of_facts(chain)
    assert len(document["steps"]) > 15
    assert list(chain_faults(chain, Facts(chain / FACTS), document)) == []


def test_a_changed_step_is_found_there(chain: Path) -> None:
    document, rng, read = chain_of_facts(chain), random.Random(8), ReadOnce(chain / FACTS)
    steps = document["steps"]
    for number in rng.sample(range(1, len(steps) - 1), 3):
        step, later = steps[number], steps[-1]["fact"]
        changes: list[Document] = [{"lemma": other["lemma"]} for other in rng.sample(steps, 3)
                                   if other["lemma"] != step["lemma"]]  # fmt: skip
        changes += [{"uses": [*step["uses"], later]}, {"fact": later}]
        changes += [{"uses": step["uses"][1:]}] * bool(step["uses"])
        changes += [{"terms": dict.fromkeys(step["terms"], later)}] * bool(step["terms"])
        for change in changes:
            broken = {**document, "steps": [*steps[:number], step | change, *steps[number + 1 :]]}
            try:
                found = {name for name, _ in chain_faults(chain, read, broken)}
            except AssertionError:  # a term of another width, which is a fault of the file
                read = ReadOnce(chain / FACTS)  # the other stopped half way
                continue
            assert broken["steps"][number]["fact"] in found, (number, change)


def test_a_chain_that_ends_elsewhere_or_lacks_a_step_is_found(chain: Path) -> None:
    document, read = chain_of_facts(chain), ReadOnce(chain / FACTS)
    assert list(chain_faults(chain, read, {**document, "states": [document["steps"][0]["fact"]]}))
    last = document["states"][-1]
    unproved = next(name for name in read.terms if name.startswith("term-"))
    assert list(chain_faults(chain, read, {**document, "states": [unproved, last]})) == [(unproved, "is not proved")]
    assert list(chain_faults(chain, read, {**document, "axioms": {}}))
    named = dict.fromkeys(step["fact"] for step in document["steps"])  # some are proved twice
    missing = [{**document, "steps": [step for step in document["steps"] if step["fact"] != name]} for name in named]
    noticed = [bool(list(chain_faults(chain, read, one))) for one in missing[::3]]
    assert all(noticed)


# -- claims


def test_a_claim_about_table_9_is_a_tree(tmp_path: Path) -> None:
    """Its joins are checked: nothing is left to an argument, nor to the word of an engine."""
    claim = tmp_path / "claim.yaml"
    lines = ("id: t", "about: t", "source: t", "says: holds", "expect: holds", "error_bound: loose",
             "model: volta/mma/m8n8k4.f32.f16.f16.f32@length=2")  # fmt: skip
    claim.write_text("\n".join(lines) + "\n")
    folder = tmp_path / "proof"
    run = CliRunner().invoke(main, ["verify", str(claim), "--certificate", str(folder), "--timeout", "60"])
    assert run.exit_code == 0, run.output
    assert worst(folder) == set()
    done = CliRunner().invoke(main, ["check", str(folder)])
    assert done.exit_code == 0, done.output
    assert "states: |d - exact| <= 3 u + ulp(d), where inputs are finite" in done.output
