"""The `verify` command: claims about algorithms."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from cli.options import JSON, print_json, progress, say, solver_options

if TYPE_CHECKING:
    from queries.distinguish import Options
    from queries.verify import Outcome


@click.command()
@click.argument("names", nargs=-1, required=True, metavar="CLAIM...")
@click.option(
    "--certificate",
    type=click.Path(file_okay=False, path_type=Path),
    metavar="DIR",
    help="Write SMT-LIB, CNF and a checked DRAT proof of what is proved into this folder.",
)
@solver_options
@JSON
def verify(names: tuple[str, ...], certificate: Path | None, options: Options, as_json: bool) -> None:
    """Verify or refute claims about algorithms on matrix units.

    CLAIM is an id (`mmaprobe list claims`), one case of it, or a claim file. What decides by example is replayed and
    shown with every part's error. --timeout is for each case.

    \b
    mmaprobe verify ootomo-not-worse-f16
    mmaprobe verify ootomo-not-worse-f16@terms=2,split=toward_zero
    mmaprobe verify my-claim.yaml --certificate proof
    """
    from hypotheses.claim import claims_named
    from queries.claim_report import document_of
    from queries.verify import verify as settle

    claims = [claim for name in names for claim in claims_named(name)]
    documents = []
    for claim in claims:
        outcome = settle(claim, options)
        progress("")
        document = document_of(outcome)
        _show(document)
        if certificate is not None and outcome.query is not None:
            folder = certificate if len(claims) == 1 else certificate / claim.id
            document["certificate"] = _certify(outcome, folder, options)
        documents.append(document)
        if outcome.interrupted:
            break
    codes = [_code(document) for document in documents]
    if len(codes) > 1:
        say(f"{codes.count(0)} of {len(claims)} cases answered as expected, {codes.count(3)} unknown")
    if as_json:
        print_json({"schema": 1, "claims": documents})
    sys.exit(3 if 3 in codes else max(codes))


def _code(document: dict[str, Any]) -> int:
    if document["verdict"] == "unknown":
        return 3
    return 0 if document["as_expected"] else 1


def _certify(outcome: Outcome, folder: Path, options: Options) -> dict[str, Any]:
    """Raises CertificateError."""
    from queries.certificate import whole_of_query, write_certificate
    from queries.prove import Lemma

    query, answer = outcome.query, outcome.answer
    assert query is not None
    assert answer is not None
    whole = whole_of_query(query, options.timeout, options.memory)
    lemma = Lemma("the whole question", 0, query, answer, confirmed=outcome.confirmed)
    question = f"{outcome.claim.id}: {outcome.claim.text}"
    manifest = write_certificate(folder, [lemma], whole, question, options.timeout, options.memory, options.progress)
    piece = manifest["pieces"][0]
    say(f"  certificate: {folder}: {piece['clauses']} clauses, {piece['proof_lines']} lines, verified by "
        f"{piece['checker']}")  # fmt: skip
    return {"folder": str(folder), **manifest}


def _show(document: dict[str, Any]) -> None:
    say(f"{document['id']}: {document['about']}")
    quantified = {"all": "for all inputs", "exists": "for some input"}[document["quantifier"]]
    say(f"  {quantified}: {document['claim']}")
    for name, text in document["parts"].items():
        say(f"  {name} = {text}")
    if document["vector"] is not None:
        _show_vector(document["vector"])
    by = _by(document)
    expected = "as expected" if document["as_expected"] else f"EXPECTED {document['expect']}"
    if document["verdict"] == "unknown":
        tried = "; ".join(f"{step['what']}: {', '.join(step['answers']) or 'nothing found'}"
                          for step in document["asked"])  # fmt: skip
        stopped = "interrupted" if document["interrupted"] else "unknown"
        say(f"  {stopped} after {document['seconds']:.1f} s; tried {tried}")
    else:
        says = {"nothing": "says nothing"}.get(document["says"], f"says {document['says']}")
        say(f"  {document['verdict']} in {document['seconds']:.1f} s, {by}; {expected} (the source {says})")
    say()


def _by(document: dict[str, Any]) -> str:
    if document["vector"] is not None:
        last = document["asked"][-1]
        return f"by the input above, replayed ({last['what']}{''.join(f', {a}' for a in last['answers'][:1])})"
    confirmed = document["confirmed_by"]
    return f"by {document['engine']}, confirmed by {confirmed or 'nobody'}"


def _show_vector(vector: dict[str, Any]) -> None:
    from smtmodel.display import number_text
    from smtmodel.formats import FORMATS

    fmt = FORMATS[vector["format"]]
    for k, pair in enumerate(zip(vector["a"], vector["b"], strict=True)):
        for side, text in zip("ab", pair, strict=True):
            if any(int(one, 16) for one in pair):
                say(f"  {side}{k} = {text}  {number_text(int(text, 16), fmt)}")
    say(f"   c = {vector['c']}")
    say(f"  exact sum {vector['exact']}")
    width = max(map(len, vector["results"]))
    for name, result in vector["results"].items():
        error = f"  error {result['error']} = {result['error_ulps']:.4g} ulp" if "error" in result else ""
        say(f"  {name:>{width}} gives {result['d']}  {result['value']}{error}")
    if vector["parting"]:
        steps = "; ".join(f"{name} {step['step']} = {step['pattern']}" for name, step in vector["parting"].items())
        say(f"  they part at: {steps}")
