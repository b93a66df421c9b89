"""Attacks on certificates of every kind: a log, or any file beside it, that was changed by somebody who makes all
digests, the question and the page fit again. None of them passes, whatever it says then."""

from __future__ import annotations

import copy
import json
import shutil
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner

from benchmarks.plan_statements import plan
from mmaprobe.cli.main import main
from mmaprobe.queries.certificates.asked import RequiredGoals
from mmaprobe.queries.certificates.bitblast import cnf_of_text
from mmaprobe.queries.certificates.certificate import whole_of_query
from mmaprobe.queries.certificates.logged import certify_theorems
from mmaprobe.queries.certificates.manifest import read_manifest
from mmaprobe.queries.certificates.names import PLAN, STATING, SUFFIXES
from mmaprobe.queries.certificates.plan_files import plan_texts
from mmaprobe.queries.certificates.questions import question_texts
from mmaprobe.queries.certificates.reading import FolderTexts
from mmaprobe.queries.checking.finding import Finding
from mmaprobe.queries.checking.folder import check_folder, statement_findings
from mmaprobe.queries.checking.log import log
from mmaprobe.queries.kernel import closed
from mmaprobe.queries.kernel.lemmas import AlignmentLoses, query_of
from mmaprobe.queries.kernel.log import Subject
from mmaprobe.queries.kernel.questions.problem import Problem
from mmaprobe.queries.kernel.questions.statements import Reordered
from mmaprobe.queries.properties.bound import bound_of
from mmaprobe.queries.properties.certify import certify_proofs
from mmaprobe.queries.properties.proving import proofs_of
from mmaprobe.smtmodel.base.errors import InputError
from mmaprobe.smtmodel.evaluate.model import Model
from mmaprobe.smtmodel.tables.reference import parse_reference
from mmaprobe.smtmodel.units.unitfile import parse_unit, unit_text
from tests.certificates.certified import FREE, KINDS, VOLTA, shown_by_none, unit
from tests.said import believed
from tests.tampering import accepted, documents, fitted, lines, tampered

pytestmark = pytest.mark.solvers

Document = dict[str, Any]


@pytest.fixture(scope="session")
def kinds(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """The certificate of a kind, which is written once."""
    top, made = tmp_path_factory.mktemp("kinds"), set[str]()

    def of(name: str) -> Path:
        if name not in made:
            KINDS[name][0](top / name)
            made.add(name)
        return top / name

    return of


@pytest.fixture(params=KINDS)
def folder(request: pytest.FixtureRequest, kinds: Callable[[str], Path], tmp_path: Path) -> Path:
    """A copy of the certificate of each kind."""
    return Path(shutil.copytree(kinds(request.param), tmp_path / request.param))


def document(folder: Path, name: str = "log.json") -> Document:
    found: Document = json.loads((folder / name).read_text())
    return found


def put(folder: Path, change: Callable[[Document], Any], name: str = "log.json") -> None:
    """A document with a change, and all that fits it."""
    whole = document(folder, name)
    change(whole)
    (folder / name).write_text(json.dumps(whole))
    fitted(folder)


def found_in(folder: Path) -> list[Finding]:
    return list(check_folder(folder))


def refused(folder: Path) -> bool:
    """Whether it has a fault: not only something open."""
    try:
        return any(found.kind == "fault" for found in check_folder(folder))
    except InputError:
        return True


def refused_by_log(folder: Path) -> bool:
    """Whether the log alone has a fault: queries and proofs, which take longer, are not looked at."""
    manifest = read_manifest(folder)
    pieces = [piece.name for piece in manifest.pieces]
    texts = FolderTexts(folder, {*manifest.sha256, *(f"{name}.smt2" for name in pieces)})
    every = [*statement_findings(folder, manifest), *log(texts, pieces)]
    return any(found.kind == "fault" for found in every)


# -- every kind, and every rule


def test_a_certificate_of_every_kind_passes(folder: Path) -> None:
    assert {found.kind for found in found_in(folder)} == {"fine"}
    records, states = document(folder)["records"], document(folder)["states"]
    assert KINDS[folder.name][1] in {records[state]["rule"] for state in states}
    assert any(found.says.startswith("states: ") for found in found_in(folder))


#: rules whose theorems are about parts of what a certificate can state, never about the whole of it
WITHIN = """given defined follows themselves replaced one_maximum never settled exhausted by_first_words element
    segment constant literal assumed product unchanged scale exact fused grid cut part repeated
    chained summed from_zero begun held nothing tile added iterated halved begins from_here after_instruction
    after_addition of_unit near_each_other below_one parted joined converted column_sums trees
    in_sequence rewritten followed congruent looped results_alike turned rises same_forms same_parts same_bodies
    same_steps loses_of_largest loses_of_elements loses_of_blocks drawn of_plan of_plan_at compensated error_free"""
#: of each other rule, a rule of a kind here whose theorems have the same goal: what is stated is checked alike
LIKE = {
    "agreed": "undiffering", "one_sum": "one_expression", "raised_elsewhere": "one_expression",
    "negates": "one_expression", "does_not_fall": "one_expression", "whole": "weakened",
    "rejoined": "weakened", "of_all_products": "weakened", "carried": "closed", "truncated": "loosened",
    "refuted": "implied", "for_every_length": "undecided", "every_product": "same_sums", "every_sum": "never_wraps",
    "every_error": "within_classical", "same_factors": "same_sums", "same_integers": "same_sums",
}  # fmt: skip


def test_every_rule_that_a_certificate_may_end_in_is_here(kinds: Callable[[str], Path]) -> None:
    ends = {
        document(kinds(name))["records"][state]["rule"] for name in KINDS for state in document(kinds(name))["states"]
    }
    assert {KINDS[name][1] for name in KINDS} <= ends
    within = set(WITHIN.split())
    assert not within & (ends | LIKE.keys())
    assert set(LIKE.values()) <= ends
    assert within | ends | LIKE.keys() == closed.RULES.keys()


# -- the log


def dropped(at: int) -> Callable[[Document], Any]:
    return lambda log: log["records"].pop(at)


def twice(log: Document) -> None:
    """A theorem again, after the others."""
    log["records"].append(copy.deepcopy(log["records"][-1]))


def twice_before(log: Document) -> None:
    """The first theorem again, with all numbers that fit."""
    log["records"].insert(0, copy.deepcopy(log["records"][0]))
    log["states"] = [state + 1 for state in log["states"]]


def by_another(log: Document) -> None:
    own = log["records"][log["states"][0]]
    own["rule"] = next(name for name in closed.RULES if name != own["rule"])


def more_states(log: Document) -> None:
    log["states"] = [*log["states"], log["states"][-1]]


#: what a log may say, for which no theorem stands
LOGS: dict[str, Callable[[Document], Any]] = {
    "empty": lambda log: log.update(records=[], states=[]),
    "nothing stated": lambda log: log.update(states=[]),
    "stated twice": more_states,
    "the first theorem stated": lambda log: log.update(states=[0] * (1 + len(log["records"]))),
    "without the last record": dropped(-1),
    "a record twice": twice,
    "a record twice, before it": twice_before,
    "another rule": by_another,
    "no such rule": lambda log: log["records"][-1].update(rule="sorry"),
    "another argument": lambda log: log["records"][-1].update(more=0),
    "no records": lambda log: log.pop("records"),
    "records in another order": lambda log: log.update(records=log["records"][::-1], lengths=[1]),
    "one more value": lambda log: log["values"].append({"is": "Space"}),
    "a value that nothing names": lambda log: log["values"].append({"is": "Scope", "formats": [], "held": []}),
    "more K": lambda log: log.update(lengths=[*log["lengths"], 3]),
    "engines": lambda log: log["records"][-1].update(engines=0),
    "another schema": lambda log: log.update(schema=2),
    "huge numbers": lambda log: log["records"][-1].update(count=1 << 4000),
    "a huge K": lambda log: log.update(lengths=[1 << 60]),
    "a K of another type": lambda log: log.update(lengths=["8"]),
    "many K": lambda log: log.update(lengths=list(range(1, 1 << 14))),
    "no document": lambda log: log.clear(),
}


def test_another_log_is_refused(folder: Path) -> None:
    """A third of the changes of each kind, and each change of a third of the kinds."""
    text = (folder / "log.json").read_text()
    for name, change in list(LOGS.items())[list(KINDS).index(folder.name) % 3 :: 3]:
        put(folder, change)
        assert refused_by_log(folder), name
        (folder / "log.json").write_text(text)


@pytest.mark.parametrize("text", ["", "[]", "1", "{", "[" * 100_000, '{"schema": 1}', "\x00"])
def test_what_is_no_log_is_refused(kinds: Callable[[str], Path], tmp_path: Path, text: str) -> None:
    folder = Path(shutil.copytree(kinds("bound"), tmp_path / "c"))
    (folder / "log.json").write_text(text)
    fitted(folder)
    assert refused(folder)


def test_a_place_of_the_log_changed_is_refused(folder: Path) -> None:
    """Some of all places, of records, of the values that they name, of what is stated, of the words."""
    count = sum(1 for _ in documents(document(folder)))
    more = ("'numbers') is 21", "'loops') is 2")  # as true: a sum of one more number does not overflow; a larger G
    passed = tampered(folder, "log.json", max(1, count // 12))
    assert [what for what in passed if not any(one in what for one in more)] == []
    assert accepted(folder)


@pytest.mark.parametrize("value", [
    "1e999999999", "1/0", "1_0", " 1", "inf", 1.5, "9" * 5000, None, {"value": 10**30}, [[]], -1,
])  # fmt: skip
@pytest.mark.parametrize("kind", ["plan bound", "bound of a chain", "claim by shares"])
def test_fractions_are_plain_ones(kinds: Callable[[str], Path], kind: str, value: Any, tmp_path: Path) -> None:
    """A power of ten would take all memory there is."""
    folder = Path(shutil.copytree(kinds(kind), tmp_path / "c"))

    def change(log: Document) -> None:
        for entry in [*log["values"], *log["records"]]:
            for name in ("growth", "share", "claimed", "count", "width", "terms", "exponent"):
                if name in entry:
                    entry[name] = value

    put(folder, change)
    assert refused(folder)


SIZES: list[tuple[str, dict[str, Any]]] = [
    ("overflow", {"rule": "below_one", "numbers": 1 << 60}),
    ("bound of a chain", {"rule": "carried", "count": 1 << 19}),
    ("overflow", {"rule": "below_one", "numbers": True}),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "record"), SIZES)
def test_counts_are_bounded(kinds: Callable[[str], Path], kind: str, record: dict[str, Any], tmp_path: Path) -> None:
    folder = Path(shutil.copytree(kinds(kind), tmp_path / "c"))
    put(folder, lambda log: [own.update(record) for own in log["records"] if own["rule"] == record["rule"]])
    assert refused(folder)


def test_a_lemma_of_many_bits_is_refused(kinds: Callable[[str], Path], tmp_path: Path) -> None:
    folder = Path(shutil.copytree(kinds("bound"), tmp_path / "c"))
    put(folder, lambda log: [own.update(width=1 << 40) for own in log["values"] if own["is"] == "AlignmentLoses"])
    assert refused(folder)


def test_bounds_that_assume_something_are_not_stated(kinds: Callable[[str], Path], tmp_path: Path) -> None:
    """Of a chain each instruction is bounded for an addend that errs: the same words would leave that out."""
    folder = Path(shutil.copytree(kinds("bound of a chain"), tmp_path / "c"))
    for at, record in enumerate(document(folder)["records"]):
        if at not in document(folder)["states"]:
            put(folder, lambda log, at=at: log.update(records=log["records"][: at + 1], states=[at], says=["x"]))  # type: ignore[misc]
            assert any(found.says == "does not state what the files ask" for found in found_in(folder)), record
            shutil.rmtree(folder)
            shutil.copytree(kinds("bound of a chain"), folder)


# -- what is stated


def test_a_certificate_proves_no_other_statement(folder: Path, kinds: Callable[[str], Path]) -> None:
    """The log of every other kind beside these files."""
    own = (folder / "log.json").read_text()
    names = list(KINDS)
    for name in names[names.index(folder.name) % 4 :: 4]:  # some of the others, of each a few
        other = (kinds(name) / "log.json").read_text()
        if other == own:
            continue
        (folder / "log.json").write_text(other)
        fitted(folder)
        assert refused_by_log(folder), name


def test_files_that_say_two_things_are_refused(folder: Path, kinds: Callable[[str], Path]) -> None:
    """One of them would be read by people, and another proved."""
    own = set(STATING) & document(folder, "manifest.json")["sha256"].keys()
    of_each = {"bound", "order", "one expression", "plan bound", "plans at every K", "claim", "overflow", "cover"}
    for name in sorted(of_each):
        files = [path for path in kinds(name).glob("*.*") if path.suffix in (".json", ".yaml")]
        added = [path for path in files if not (folder / path.name).exists()]
        if not {path.name for path in added} & set(STATING):
            continue
        for path in added:
            shutil.copy(path, folder / path.name)
        names = dict.fromkeys([path.name for path in added], "0" * 64)
        put(folder, lambda manifest, names=names: manifest["sha256"].update(names), "manifest.json")  # type: ignore[misc]
        assert refused(folder), (own, name)
        for path in added:
            (folder / path.name).unlink()
        put(folder, lambda manifest, names=names: [manifest["sha256"].pop(one) for one in names], "manifest.json")  # type: ignore[misc]
    assert accepted(folder)


def test_a_place_of_what_is_asked_changed_is_refused(folder: Path) -> None:
    """Of question.json, property.json, plans.json, cover.json, all; what is called so, and fewer inputs, aside."""
    for name in ("question.json", "property.json", "plans.json", "cover.json"):
        weaker = ("'inputs'", "'compare'", "('changes', 0, 'change')", "('length',)")
        passed = [what for what in tampered(folder, name) if not any(one in what for one in weaker)]
        assert passed == [], folder.name
    assert accepted(folder)


def test_a_line_of_a_unit_or_plan_changed_is_refused(folder: Path) -> None:
    """Or it is the same unit, or plan, as far as what is stated."""
    for path in sorted(folder.glob("*.yaml")):
        every = list(lines(path.read_text()))
        step = max(1, len(every) // 3)
        # as true: more bits than needed, a floor below all, one run
        allowed = ("carry=5", "carry=1, least=30", "zeros=-132", "split(5")
        passed = list(tampered(folder, path.name, step))
        assert not [what for what in passed if not any(one in what for one in allowed)], (
            folder.name,
            path.name,
            passed,
        )


def window(folder: Path, **change: Any) -> None:
    data = yaml.safe_load((folder / "claim.yaml").read_text())
    (folder / "claim.yaml").write_text(yaml.safe_dump(data | change))
    fitted(folder)


@pytest.mark.parametrize("kind", ["claim", "claim by shares"])
def test_another_claim_is_refused(kinds: Callable[[str], Path], kind: str, tmp_path: Path) -> None:
    data = yaml.safe_load((kinds(kind) / "claim.yaml").read_text())
    changes: list[Document] = [
        {"terms": 2}, {"inputs": data["inputs"] | {"a": [0, 2]}}, {"inputs": data["inputs"] | {"c": [0, 9]}},
        {"inputs": data["inputs"] | {"where": ["nonnegative(a)"]}}, {"quantifier": "exists"},
        {"claim": data["claim"].replace("<=", "<")}, {"claim": data["claim"].split("<=")[0] + "<= 2**-99"},
        {"parts": {"p": VOLTA + "@length=8"}},
    ]  # fmt: skip
    for change in changes:
        if kind == "claim by shares" and "where" in change.get("inputs", {}):
            continue  # as true, on fewer inputs
        folder = Path(shutil.copytree(kinds(kind), tmp_path / "c"))
        window(folder, **change)
        assert refused(folder), change
        shutil.rmtree(folder)


@pytest.mark.parametrize("change", [{"numbers": 21}, {"overflow": "smallest"}, {"numbers": 1 << 10}, {"numbers": 0},
                                    {"reduction": "recurrence@side=2,chain=2"}])  # fmt: skip
def test_another_count_is_refused(kinds: Callable[[str], Path], change: Document, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(kinds("overflow"), tmp_path / "c"))
    window(folder, **change)
    assert refused(folder)


@pytest.mark.parametrize(("kind", "change"), [
    ("plans at every K", {"multiples": 2}), ("plans at every K", {"multiples": 1}),
    ("plans at every K", {"multiples": 0}),
    ("plans at every K", {"multiples": 0, "length": 8}), ("plans at every K", {"multiples": -4}),
    ("plans at every K", {"multiples": True}), ("plans at a K", {"length": 16}), ("plans at a K", {"length": 0}),
    ("plans at a K", {"multiples": 8, "length": 0}), ("plans at a K", {"length": 1 << 60}),
    ("plans with a tail", {"length": 9}), ("plans with a tail", {"length": 6}), ("plans with a tail", {"parts": []}),
])  # fmt: skip
def test_another_number_of_products_is_refused(
    kinds: Callable[[str], Path], kind: str, change: Document, tmp_path: Path
) -> None:
    folder = Path(shutil.copytree(kinds(kind), tmp_path / "c"))
    put(folder, lambda asked: asked.update(change), "plans.json")
    assert refused(folder)


def test_plans_in_each_others_place_are_refused(kinds: Callable[[str], Path], tmp_path: Path) -> None:
    for kind in ("plans at every K", "plans at a K", "plans with a tail"):
        folder = Path(shutil.copytree(kinds(kind), tmp_path / kind))
        left, right = ((folder / f"{side}.plan.yaml").read_text() for side in ("left", "right"))
        (folder / "left.plan.yaml").write_text(right)
        fitted(folder)
        assert refused(folder), kind  # one plan twice, which no such theorem states
        (folder / "right.plan.yaml").write_text(left.replace("unit-1.yaml", "../unit-1.yaml"))
        fitted(folder)
        assert refused(folder), kind


@pytest.mark.parametrize("change", [
    {"model": "volta/mma/m8n8k4.f32.f16.f16.f32"}, {"model": f"{VOLTA}@length=2,carry_bits=9"}, {"lengths": []},
    {"lengths": [2]}, {"lengths": [1, 1]}, {"lengths": [True]}, {"lengths": [1.0]},
    {"model": "u.yaml"}, {"model": 1}, {"model": "plan:cublas/plain@length=2"},
    {"property": "exact"}, {"property": "order-independent"}, {"property": "sign-symmetric"},
])  # fmt: skip
def test_a_forged_padding_is_refused(kinds: Callable[[str], Path], change: Document, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(kinds("padding"), tmp_path / "c"))
    put(folder, lambda asked: asked.update(change), "property.json")
    assert refused(folder)


def test_a_padding_of_another_unit_is_refused(kinds: Callable[[str], Path], tmp_path: Path) -> None:
    folder = Path(shutil.copytree(kinds("padding"), tmp_path / "c"))
    for reference in (f"{VOLTA}@length=1", f"{VOLTA}@length=2,carry_bits=1"):
        (folder / "unit.yaml").write_text(unit_text(parse_reference(reference).unit))
        fitted(folder)
        assert refused(folder)


def test_an_order_changed_is_refused(kinds: Callable[[str], Path], tmp_path: Path) -> None:
    """Of the question that two sides agree, said of an order that was not proved; and a part left out."""
    folder = Path(shutil.copytree(kinds("one expression"), tmp_path / "c"))
    for change in ({"asks": "reordered", "order": [1, 0]}, {"asks": "reordered", "order": [0, 0]}, {"asks": "negated"},
                   {"asks": "raised", "raised": 0}, {"asks": "anything"}):  # fmt: skip
        put(folder, lambda asked, change=change: asked.update(change), "question.json")  # type: ignore[misc]
        assert refused(folder), change
    for kind in ("order", "sign", "rise", "exact", "padding"):
        folder = Path(shutil.copytree(kinds(kind), tmp_path / kind))
        put(folder, lambda log: log["records"][-1].update(parts=log["records"][-1]["parts"][1:]))
        assert refused(folder), kind


def test_what_rises_of_normal_numbers_says_nothing_of_others(kinds: Callable[[str], Path], tmp_path: Path) -> None:
    for kind in ("rise", "order", "sign", "exact"):
        folder = Path(shutil.copytree(kinds(kind), tmp_path / kind))
        normal = document(folder, "property.json")["inputs"] | {"normal": True}
        put(folder, lambda asked, normal=normal: asked.update(inputs=normal), "property.json")  # type: ignore[misc]
        assert refused(folder), kind  # as true, and not what the theorem states
        put(folder, lambda log: [one.update(inputs=one["inputs"] | {"normal": True}) for one in log["values"]
                                 if one["is"] == "Inputs"])  # fmt: skip
        put(folder, lambda asked: asked.update(inputs=asked["inputs"] | {"normal": False}), "property.json")
        assert refused(folder), kind


# -- queries and proofs


def with_lemma(folder: Path) -> str:
    """The query with the longest proof: some follow by unit propagation alone, whatever else their proofs say."""
    pieces = document(folder, "manifest.json")["pieces"]
    return str(max(pieces, key=lambda piece: piece["proof_lines"] or 0)["name"])


WITH_LEMMAS = ("padding", "stages", "claim", "claim by shares", "cover", "plans with a tail")


@pytest.mark.parametrize("kind", WITH_LEMMAS)
def test_another_query_in_the_place_of_one_is_refused(kinds: Callable[[str], Path], kind: str, tmp_path: Path) -> None:
    """A true lemma with a good proof, and one that nothing can meet; and one more that nobody asks."""
    true = whole_of_query(query_of(AlignmentLoses(4, 3, 1, "down")), 60.0)
    falsum = "(set-logic QF_BV)\n(declare-const x (_ BitVec 1))\n(assert (= x #b0))\n(assert (= x #b1))\n(check-sat)\n"
    others = [{"smt2": true.query.text, "cnf": true.cnf, "drat": true.drat},
              {"smt2": falsum, "cnf": "", "drat": "0\n"}]  # fmt: skip
    others[1]["cnf"] = cnf_of_text(falsum).text
    for other in others:
        folder = Path(shutil.copytree(kinds(kind), tmp_path / "c"))
        name = with_lemma(folder)
        for suffix, text in other.items():
            (folder / f"{name}.{suffix}").write_text(text)
        fitted(folder)
        faults = {found.place.split(",")[0] for found in found_in(folder) if found.kind == "fault"}
        assert faults == {"log.json"}, faults  # the query and its proof are fine, and say nothing of it
        shutil.rmtree(folder)
        folder = Path(shutil.copytree(kinds(kind), tmp_path / "c"))
        for suffix, text in other.items():
            (folder / f"lemma-99.{suffix}").write_text(text)
        more = {"name": "lemma-99", "states": "", "words": [],
                "sha256": {f"lemma-99.{suffix}": "0" * 64 for suffix in other}}  # fmt: skip
        put(folder, lambda manifest, more=more: manifest["pieces"].append(more), "manifest.json")  # type: ignore[misc]
        assert [(found.place, found.says) for found in found_in(folder) if found.kind == "fault"] == [
            ("lemma-99.smt2", "is asked by no rule")]  # fmt: skip
        shutil.rmtree(folder)


@pytest.mark.parametrize("kind", WITH_LEMMAS)
def test_words_are_no_proof(kinds: Callable[[str], Path], kind: str, tmp_path: Path) -> None:
    """Of a query without its proof, engines may say what they want."""
    folder = Path(shutil.copytree(kinds(kind), tmp_path / "c"))
    name = with_lemma(folder)

    def change(manifest: Document) -> None:
        (piece,) = (one for one in manifest["pieces"] if one["name"] == name)
        piece["sha256"] = {f"{name}.smt2": "0" * 64}
        piece["words"] = ["z3 4.13: unsat in 0.1 s, confirmed by everybody"]

    for suffix in ("cnf", "drat"):
        (folder / f"{name}.{suffix}").unlink()
    put(folder, change, "manifest.json")
    assert {found.place: found.kind for found in found_in(folder) if found.kind != "fine"} == {f"{name}.smt2": "open"}
    done = CliRunner().invoke(main, ["check", str(folder), "--no-engines"])
    assert done.exit_code == 3


@pytest.mark.parametrize("kind", WITH_LEMMAS)
def test_queries_and_proofs_that_are_changed_are_refused(
    kinds: Callable[[str], Path], kind: str, tmp_path: Path
) -> None:
    for suffix, change in (("smt2", lambda text: text + "\n"), ("cnf", lambda text: text + "1 0\n"),
                           ("drat", lambda text: "0\n"), ("drat", lambda text: text.removesuffix("0\n")),
                           ("smt2", lambda text: text.replace("assert", "assume", 1))):  # fmt: skip
        folder = Path(shutil.copytree(kinds(kind), tmp_path / "c"))
        path = folder / f"{with_lemma(folder)}.{suffix}"
        path.write_text(change(path.read_text()))
        assert refused(folder), suffix
        fitted(folder)
        assert refused(folder), suffix
        shutil.rmtree(folder)


WIDE = "(set-logic QF_BV)\n(declare-const x (_ BitVec {}))\n(assert (= (bvmul x x) (bvadd x x)))\n(check-sat)\n"


@pytest.mark.parametrize("text", [WIDE.format(1 << 40), WIDE.format(1 << 15), "(" * 100_000, "", "\x00"])
def test_a_query_that_is_too_large_is_refused(kinds: Callable[[str], Path], text: str, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(kinds("stages"), tmp_path / "c"))
    (folder / "lemma-01.smt2").write_text(text)
    fitted(folder)
    assert refused(folder)


def test_terms_changed_are_refused(kinds: Callable[[str], Path], tmp_path: Path) -> None:
    text = (kinds("claim") / "terms.smt2").read_text()
    rows = text.splitlines(keepends=True)
    others = ["", "(", text + "(define-fun more () Bool true)\n", text.replace("bvnot", "bvneg", 1),
              text.replace("#b0", "#b1", 1), "".join(rows[:-1]), "(" * 100_000,
              *("".join([*rows[:at], *rows[at + 1 :]]) for at in range(2, len(rows), len(rows) // 6))]  # fmt: skip
    for other in others:
        folder = Path(shutil.copytree(kinds("claim"), tmp_path / "c"))
        (folder / "terms.smt2").write_text(other)
        fitted(folder)
        assert refused(folder), other[:60]
        shutil.rmtree(folder)


# -- the folder


def test_any_file_that_is_missing_or_another_is_found(folder: Path) -> None:
    for path in sorted(folder.iterdir()):
        kept = path.read_bytes()
        path.write_bytes(kept + b"\n ")
        if path.name != "manifest.json":
            assert refused(folder), path.name
        path.unlink()
        assert refused(folder), path.name
        path.write_bytes(kept)
    assert accepted(folder)


def test_a_place_of_the_manifest_changed_is_refused(folder: Path) -> None:
    assert list(tampered(folder, "manifest.json", 7)) == []
    assert accepted(folder)


def test_a_page_that_says_something_else_is_refused(folder: Path) -> None:
    page = (folder / "README.md").read_text()
    (folder / "README.md").write_text(page.replace(" ", "  ", 1))
    assert [found.place for found in found_in(folder) if found.kind == "fault"] == ["README.md"]


def says(log: Document) -> None:
    log["says"] = [text.replace("2^", "3^", 1) if "2^" in text else f"{text} or less" for text in log["says"]]


@pytest.mark.parametrize("kind", ["bound", "bound of a chain", "bound in units", "plan bound"])
def test_words_of_other_bounds_are_refused(kinds: Callable[[str], Path], kind: str, tmp_path: Path) -> None:
    changes = (says, lambda log: log.pop("says"), lambda log: log.update(says=[]), lambda log: log.update(says="x"),
               lambda log: log["says"].append("d is exact"))  # fmt: skip
    for change in changes:
        folder = Path(shutil.copytree(kinds(kind), tmp_path / "c"))
        put(folder, change)
        assert refused(folder)
        shutil.rmtree(folder)


def test_the_files_of_another_unit_are_refused(kinds: Callable[[str], Path], tmp_path: Path) -> None:
    """With the log of theirs, of which the words are kept."""
    folder = Path(shutil.copytree(kinds("bound"), tmp_path / "c"))
    for other in (unit("fused", bits=3), unit("fused", "nearest_even"), unit("exact"), unit("chain")):
        (folder / "unit.yaml").write_text(unit_text(other.unit))
        fitted(folder)
        assert refused(folder), other
    folder = Path(shutil.copytree(kinds("one form"), tmp_path / "d"))
    left = parse_unit((folder / "left.yaml").read_text(), "left.yaml")
    for other in (unit("carry", bits=1), unit("carry", "nearest_even")):
        texts = question_texts(Problem(replace(unit("carry"), unit=left), other))
        for name, text in texts.items():
            (folder / name).write_text(text)
        fitted(folder)
        assert refused(folder), other


def cases_of(folder: Path) -> Iterator[Document]:
    asked = document(folder, "cover.json")
    yield {"cases": [*asked["cases"], ["c: value: +0"]]}
    yield {"cases": [["c: value: +0"], *asked["cases"][1:]]}
    yield {"cases": asked["cases"][1:]}
    yield {"cases": asked["cases"][::-1]}
    yield {"cases": [[], *asked["cases"][1:]]}
    yield {"cases": [["no such"], *asked["cases"][1:]]}
    yield {"changes": []}
    yield {"changes": asked["changes"] * 2}
    yield {"cases": [], "changes": []}


def test_cases_that_some_input_reaches_are_refused(kinds: Callable[[str], Path], tmp_path: Path) -> None:
    for change in cases_of(kinds("cover")):
        folder = Path(shutil.copytree(kinds("cover"), tmp_path / "c"))
        put(folder, lambda asked, change=change: asked.update(change), "cover.json")  # type: ignore[misc]
        assert refused(folder), change
        shutil.rmtree(folder)
    folder = Path(shutil.copytree(kinds("cover"), tmp_path / "c"))
    (folder / "unit-1.yaml").write_text(unit_text(unit("fused", bits=3).unit))
    fitted(folder)
    assert refused(folder)  # a change that some input shows


def test_a_change_of_a_cover_is_said_with_its_unit(kinds: Callable[[str], Path], tmp_path: Path) -> None:
    """What it is called is the word of its writer; it reads what the unit reads."""
    folder = Path(shutil.copytree(kinds("cover"), tmp_path / "c"))
    put(folder, lambda asked: asked["changes"][0].update(change="F=99"), "cover.json")
    found = [found.says for found in found_in(folder) if "F=99" in found.says]
    assert found == ["unit-1.yaml gives the same d as unit.yaml, and is called F=99 by its writer"]
    (folder / "unit-1.yaml").write_text((folder / "unit-1.yaml").read_text().replace(", c,", ","))
    fitted(folder)
    assert any("a change reads other operands than the unit" in found.says for found in found_in(folder))


# -- what is said, and of what


def test_the_bound_of_a_unit_is_none_of_a_plan_that_uses_it(tmp_path: Path) -> None:
    """Both are said in the same words."""
    used = plan("sum(promote(8, fma, r), c)")
    theorem = bound_of(used.models[0].unit, believed)
    certify_theorems([theorem], RequiredGoals(Subject(plans=(used,))), plan_texts({PLAN: used}), tmp_path, FREE)
    assert [found.says for found in found_in(tmp_path) if found.kind == "fault"] == [
        "does not state what the files ask"
    ]


def test_a_unit_is_compared_with_itself_alone(kinds: Callable[[str], Path], tmp_path: Path) -> None:
    """That another unit gives with its products in another order what this one gives is no property of this one."""
    left = unit("chain")
    text = unit_text(left.unit).replace("a[i] * b[i]", "a[1 - i] * b[1 - i]")
    problem = Reordered(left, Model("turned", parse_unit(text, "small.yaml")), order=(1, 0))
    certify_proofs("equal", proofs_of([problem], FREE, confirm=False), tmp_path, FREE)
    faults = [found.says for found in found_in(tmp_path) if found.kind == "fault"]
    assert faults
    assert all("a unit is compared with itself" in says for says in faults)


def test_what_no_input_shows_is_said_so(tmp_path: Path) -> None:
    """The proof that nothing shows a claim about some input refutes it."""
    shown_by_none(tmp_path / "c")
    assert accepted(tmp_path / "c")
    assert document(tmp_path / "c", "manifest.json")["question"].startswith("mine: for no input, value(p) > 12\n")


def test_an_addend_that_one_unit_does_not_read_is_said(tmp_path: Path) -> None:
    left = unit("exact")
    text = unit_text(left.unit).replace(", c))", "))")
    problem = Problem(left, Model("without", parse_unit(text, "small.yaml")), compare="value")
    certify_proofs("equal", proofs_of([problem], FREE, confirm=False), tmp_path, FREE)
    assert accepted(tmp_path)
    put(tmp_path, lambda asked: asked["inputs"].update(zero_terms=[]), "question.json")
    assert any("the file does not say so" in found.says for found in found_in(tmp_path))


def test_the_table_of_queries_says_nothing_else(kinds: Callable[[str], Path], tmp_path: Path) -> None:
    """What its writer calls a query, and who answered it, stand in one line of the page."""
    folder = Path(shutil.copytree(kinds("stages"), tmp_path / "c"))
    rows = (folder / "README.md").read_text().count("\n")
    more = "x |\n\n# All units agree\n\x1b[2J"
    put(folder, lambda manifest: manifest["pieces"][0].update(states=more, words=[more]), "manifest.json")
    page = (folder / "README.md").read_text()
    assert (page.count("\n"), "\n# All units" in page, "\x1b" in page) == (rows, False, False)


@pytest.mark.parametrize("name", ["more.txt", "UNIT.yaml", "unit-9.yaml", "right.yaml", "terms.smt2", "Claim.yaml"])
def test_a_file_that_nothing_reads_is_refused(kinds: Callable[[str], Path], name: str, tmp_path: Path) -> None:
    """Somebody may take it for what is stated, whatever digest it has."""
    folder = Path(shutil.copytree(kinds("bound"), tmp_path / "c"))
    (folder / name).write_text((folder / "unit.yaml").read_text())
    put(folder, lambda manifest: manifest["sha256"].update({name: "0" * 64}), "manifest.json")
    assert [found.place for found in found_in(folder) if found.kind == "fault"] == [name]


def test_a_query_that_is_there_twice_is_refused(kinds: Callable[[str], Path], tmp_path: Path) -> None:
    for other in ("lemma-01", "lemma-77"):
        folder = Path(shutil.copytree(kinds("stages"), tmp_path / other))
        (piece,) = document(folder, "manifest.json")["pieces"]
        again = piece | {"name": other, "sha256": {f"{other}.{suffix}": "0" * 64 for suffix in SUFFIXES}}
        for suffix in SUFFIXES:
            (folder / f"{other}.{suffix}").write_text((folder / f"lemma-01.{suffix}").read_text())
        put(folder, lambda manifest, again=again: manifest["pieces"].append(again), "manifest.json")  # type: ignore[misc]
        assert [found.place for found in found_in(folder) if found.kind == "fault"] == [f"{other}.smt2"]


def test_the_command_says_where_it_is_wrong(kinds: Callable[[str], Path], tmp_path: Path) -> None:
    folder = Path(shutil.copytree(kinds("order"), tmp_path / "c"))
    put(folder, LOGS["another rule"])
    done = CliRunner().invoke(main, ["check", str(folder)])
    assert done.exit_code == 1
    assert "log.json: theorem " in done.output
