"""Sections of a report from answers of solvers: distinguish, prove, verify, separate."""

from __future__ import annotations

from collections.abc import Sequence

from mmaprobe.documents.distinguish import Distinguish, PairOfHypotheses, QuestionAnswered, pair_text
from mmaprobe.documents.identify import Separate
from mmaprobe.documents.parts import ABSENT, input_of
from mmaprobe.documents.prove import UNCONFIRMED, PairProof, Prove, ProvePlans, proved_text
from mmaprobe.documents.verify import QUANTIFIED, Claim, ClaimVector, Verify
from mmaprobe.reports.views import (
    MOST_VECTORS,
    Pictures,
    Section,
    Tone,
    VectorView,
    more_vectors,
    title_of,
    vector_view,
)
from mmaprobe.smtmodel.arithmetic.display import both, value_text
from mmaprobe.smtmodel.arithmetic.formats import format_named
from mmaprobe.smtmodel.base.wording import counted
from mmaprobe.smtmodel.tables.reference import LENGTH, PLAN, parse_reference

TONES: dict[str, Tone] = {
    "different": "no", "equal": "yes", "holds": "yes", "refuted": "no", "found": "yes", "none": "no", "unknown": "open",
}  # fmt: skip

MOST_OUTCOMES = 8  # results of a vector that distinguishes many classes


def distinguish_sections(document: Distinguish, pictures: Pictures) -> list[Section]:
    """A section for each question."""
    return [_question(question, pictures) for question in document.questions]


def _question(question: QuestionAnswered, pictures: Pictures) -> Section:
    models = {name: parse_reference(reference) for name, reference in question.hypotheses.items()}
    section = Section("distinguish", question.question, question.verdict, _tone_of(question.verdict))
    section.facts = [("question", question.id)]
    section.facts += [(f"hypothesis {name}", model.reference) for name, model in models.items()]
    section.facts += [(f"left out: {name}", reason) for name, reason in question.dropped.items()]
    section.facts += [(f"{pair.left} or {pair.right}", _pair(pair)) for pair in question.pairs]
    section.facts += [(f"observed on {device}", name) for device, name in question.observed.items()]
    if question.expect:
        section.facts.append(("expected", question.expect))
    for row in question.vectors[:MOST_VECTORS]:
        vector, predictions = input_of(row), row.predictions or {}
        candidates = [(name, models[name], bits) for name, bits in predictions.items() if name in models]
        section.vectors.append(vector_view(title_of(vector), vector, candidates, pictures))
    section.more = more_vectors(len(question.vectors))
    return section


def _tone_of(verdict: str) -> Tone:
    return "yes" if verdict == "different" else "no" if verdict == "equal" else "open"


def _pair(pair: PairOfHypotheses) -> str:
    answers = [answer for step in pair.asked for answer in step.answers]
    by = ", ".join(dict.fromkeys(f"{a.solver} {a.version} ({a.status})" for a in answers)) or "no engine"
    return pair_text(pair, f"{by}, in {pair.seconds} s", ", by vectors replayed under both models")


def prove_sections(document: Prove, pictures: Pictures) -> list[Section]:
    """The section of `prove` about two models, or about a property of one."""
    wanted, proofs = document.property, document.proofs
    subject = " and ".join(dict.fromkeys(name for proof in proofs for name in (proof.left, proof.right)))
    title = f"Are {subject} equal?" if wanted == "equal" else f"Is {subject} {wanted}?"
    section = _proved(title, document, [text for proof in proofs for text in proof.unanswered])
    section.vectors = [view for proof in proofs if proof.vector for view in _sides(proof, pictures)]
    return [section]


def plans_sections(document: ProvePlans, pictures: Pictures) -> list[Section]:
    """The section of `prove` about two plans."""
    every = "every K that is whole tiles" if document.multiples is None else f"every multiple of {document.multiples}"
    lengths = every if document.length is None else f"K = {document.length}"
    title = f"Are {document.left} and {document.right} equal for {lengths}?"
    section = _proved(title, document, document.unanswered)
    if (row := document.vector) is not None:
        vector = input_of(row)
        right = parse_reference(f"{PLAN}{document.right.removeprefix(PLAN)}{LENGTH}{vector.model.length}")
        sides = zip((vector.model, right), row.results, strict=True)
        candidates = [(model.reference, model, bits) for model, bits in sides]
        section.vectors = [vector_view("counterexample", vector, candidates, pictures)]
    return [section]


def _proved(title: str, document: Prove | ProvePlans, unanswered: Sequence[str]) -> Section:
    """A section with the verdict of a proof, the solvers that gave it, and the lemmas. `unanswered`: what was tried
    without an answer."""
    verdict, lemmas = document.verdict, [lemma for proof in document.proofs for lemma in proof.lemmas]
    section = Section("prove", title, verdict, TONES[verdict])
    proved, asked = proved_text(document.engines, document.confirmed_by), ", ".join(document.engines) or "no solver"
    section.facts = [("proved", proved) if TONES[verdict] == "yes" else ("asked", asked)]
    section.facts += [("confirmed by", "replay of the vector on both sides")] if TONES[verdict] == "no" else []
    section.facts.append(("time", f"{document.seconds} s"))
    if verdict == "unknown":
        section.facts.append(("tried", "; ".join(unanswered) or "nothing in time"))
    if certificates := document.certificates:
        section.facts.append(("certificate", ", ".join(one.folder for one in certificates)))
    if lemmas:
        section.header = ("lemma", "cut-points", "answer", "confirmed by")
        section.rows = [(x.name, str(x.cuts), x.answer, x.confirmed_by or UNCONFIRMED) for x in lemmas]
    return section


def _sides(proof: PairProof, pictures: Pictures) -> list[VectorView]:
    row = proof.vector
    assert row is not None
    models = [parse_reference(name) for name in (proof.left, proof.right)]
    names, results = proof.sides, row.results
    first = input_of(row)
    if row.every:
        view = vector_view("counterexample", first, [(models[0].reference, models[0], None)], pictures)
        fmt = format_named(row.result_format)
        sums = (f"{name}: {value_text(int(result, 16), fmt)}" for name, result in zip(names, results, strict=True))
        view.notes.append(f"for every {' and '.join(row.every)}: {', '.join(sums)}")
        return [view]
    if row.other_side is ABSENT:
        candidates = [(name, model, bits) for name, model, bits in zip(names, models, results, strict=True)]
        return [vector_view("counterexample", first, candidates, pictures)]
    views = []
    for name, model, vector in zip(names, models, (first, input_of(row.other_side)), strict=True):
        views.append(vector_view(f"counterexample, {name}", vector, [(name, model, None)], pictures))
    views[0].notes.append(f"compared: {names[0]} = {results[0]}, {names[1]} = {results[1]}")
    return views


def verify_sections(document: Verify, pictures: Pictures) -> list[Section]:
    """A section for each claim."""
    sections = []
    for claim in document.claims:
        section = Section("verify", claim.about or claim.id, claim.verdict, TONES[claim.verdict])
        by, confirmed = _claim_words(claim)
        section.facts = [
            (QUANTIFIED[claim.quantifier], claim.claim), *claim.parts.items(), ("by", by), ("confirmed by", confirmed),
        ]  # fmt: skip
        if claim.expect is not None:
            section.facts.append(("expected", "yes" if claim.as_expected else f"no: {claim.expect}"))
        _claim_vector(section, claim.vector)
        if claim.counterexample:
            section.vectors = _sides(claim.counterexample, pictures)
        sections.append(section)
    return sections


def _claim_words(claim: Claim) -> tuple[str, str]:
    """What decided a claim, and what confirmed that: an input, or the engines of its lemmas."""
    steps = [step.what for step in claim.asked]
    if claim.vector or claim.counterexample:
        return steps[-1], "replay of the vector"
    if claim.verdict == "unknown" or not claim.lemmas:
        return "; ".join(steps), UNCONFIRMED
    first, second = (dict.fromkeys((getattr(lemma, key) or "").partition(":")[0] for lemma in claim.lemmas)
                     for key in ("answer", "confirmed_by"))  # fmt: skip
    return ", ".join(first), UNCONFIRMED if "" in second else ", ".join(second)


def _claim_vector(section: Section, row: ClaimVector | None) -> None:
    """Add the input of a claim about algorithms: numbers of one format, and each implementation's result and error."""
    if row is None:
        return
    results = row.results
    section.header = ("", "bits", "value", "error")
    factors = format_named(row.format)
    given = [(f"a{k}", text, factors) for k, text in enumerate(row.a)]
    given += [(f"b{k}", text, factors) for k, text in enumerate(row.b)]
    given.append(("c", row.c, format_named(getattr(row, "c_format", row.format))))  # missing in earlier documents
    section.rows = [(name, text, value_text(int(text, 16), fmt), "") for name, text, fmt in given]
    section.rows.append(("exact sum", "", both(row.exact, row.exact_decimal), ""))
    for name, one in results.items():
        error = both(one.error, one.error_decimal) if one.error else ""
        section.rows.append((name, one.d, both(one.value, one.decimal), error))


def separate_sections(document: Separate, pictures: Pictures) -> list[Section]:
    """The section of `separate`: the classes of candidates, and the vectors that distinguish these."""
    classes, rows, open_pairs = document.classes, document.vectors, document.unknown
    alone = any(one.members[0].why for one in classes)  # --one: a class has one result, and nothing is proved equal
    verdict = f"{counted(len(open_pairs), 'pair')} open" if open_pairs else "every pair distinguished or proved equal"
    verdict = f"{counted(len(classes), 'different result')} of one vector" if alone else verdict
    title = f"Which vectors distinguish the candidates of {document.family}?"
    section = Section("separate", title, verdict, "open" if open_pairs else "yes")
    section.facts = [
        ("candidates", str(document.candidates)), ("classes", str(len(classes))), ("vectors", str(len(rows))),
        ("time", f"{document.seconds} s"), *(("open", " | ".join(pair)) for pair in open_pairs[:10]),
    ]  # fmt: skip
    equal = not alone and any(member.why for one in classes for member in one.members)
    why = ("why they are one class",) if equal else ()
    section.header = ("class", "candidates in it", *why, *(f"vector {k}" for k in range(len(rows))))
    for number, one in enumerate(classes):
        whys = dict.fromkeys(member.why for member in one.members if member.why)
        names = ", ".join(member.model.partition("@")[2] or member.model for member in one.members[:3])
        names += f", and {len(one.members) - 3} more" if len(one.members) > 3 else ""
        section.rows.append((str(number), names, *("; ".join(whys) for _ in why), *one.results))
    for index, row in enumerate(rows[:MOST_VECTORS]):
        seen = {one.results[index]: (number, one) for number, one in reversed(list(enumerate(classes)))}
        candidates = [
            (f"class {number}", parse_reference(one.members[0].model), bits)
            for bits, (number, one) in sorted(seen.items(), key=lambda item: item[1][0])
        ]
        title = str(index if row.id is ABSENT else row.id)
        view = vector_view(title, input_of(row), candidates[:MOST_OUTCOMES], pictures)
        if len(candidates) > MOST_OUTCOMES:
            view.notes.append(f"{len(candidates)} different results, of which {MOST_OUTCOMES} are shown")
        section.vectors.append(view)
    section.more = more_vectors(len(rows))
    return [section]
