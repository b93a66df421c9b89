"""The `verify` command: claims about algorithms."""

from __future__ import annotations

import hashlib
import re
import sys
from dataclasses import replace
from fractions import Fraction
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from mmaprobe.cli.command import Command
from mmaprobe.cli.completion import claim_names
from mmaprobe.cli.options import JSON, end_work, overall, print_json, say, show_zeros, solver_options
from mmaprobe.cli.text.certificates import CERTIFICATE, NO_CERTIFICATE, attach, check_attached
from mmaprobe.cli.text.vectors import show_counterexample, stopped_text
from mmaprobe.smtmodel.base.errors import FaultError, MmaprobeError
from mmaprobe.smtmodel.base.interrupts import allow, left
from mmaprobe.smtmodel.base.progress import Pieces
from mmaprobe.smtmodel.base.wording import counted

if TYPE_CHECKING:
    from mmaprobe.documents.verify import Claim as Document
    from mmaprobe.documents.verify import ClaimVector, Worst
    from mmaprobe.hypotheses.claim_file import Statement
    from mmaprobe.queries.claims.outcome import Outcome
    from mmaprobe.queries.search.distinguish import Options

LISTED = 64  # products above which those with the same factors share a line; the most lines that are shown
SPANS = 4  # places, at most, that are named of products with the same factors
TRIED = 8  # steps of a search without an answer that are printed


@click.command(cls=Command)
@click.argument("names", nargs=-1, required=True, metavar="CLAIM...", shell_complete=claim_names)
@CERTIFICATE
@click.option(
    "--maximise",
    "largest",
    is_flag=True,
    help="Also search for the input with the largest value of the quantity that the claim file names.",
)
@solver_options("each case")
@JSON
def verify(names: tuple[str, ...], certificate: Path | None, largest: bool, options: Options, as_json: bool) -> None:
    """Verify or refute claims about algorithms on matrix units.

    CLAIM is an id (`mmaprobe list claims`), one case of it, or a claim file. An input that decides is replayed and
    shown with the error of every implementation.

    \b
    mmaprobe verify ootomo-not-worse-f16
    mmaprobe verify ootomo-not-worse-f16@terms=2,split=toward_zero
    mmaprobe verify my-claim.yaml --certificate proof
    """
    from mmaprobe.documents.verify import Verify
    from mmaprobe.hypotheses.claim import claims_named
    from mmaprobe.queries.claims.decide import decide
    from mmaprobe.queries.claims.maximise import maximise, maximised

    claims = [claim for name in names for claim in claims_named(name)]
    for claim in claims if largest else ():
        maximised(claim)
    outcomes: list[Outcome[Any]] = []
    documents: list[Document] = []
    failure: MmaprobeError | None = None
    fault: FaultError | None = None
    pieces = Pieces(options.progress, "cases")
    options = replace(options, progress=pieces)
    for number, claim in enumerate(pieces.of(claims)):
        if number:
            allow(options.timeout)
        try:
            outcome = decide(claim, replace(options, timeout=left(options.timeout)), outcomes)
        except FaultError as error:  # the other claims have answers all the same
            say(f"{claim.id}: {error}")
            fault = fault or error
            continue
        outcomes.append(outcome)
        end_work()
        document = outcome.document
        _show(document, claim, options.timeout)
        if certificate is not None and not outcome.certificates:
            say(f"  {NO_CERTIFICATE}")
        elif certificate is not None:
            from mmaprobe.queries.certificates.place import empty_folder

            if len(claims) > 1 and not any(earlier.certificates for earlier in documents):
                empty_folder(certificate)
            folder = certificate if len(claims) == 1 else certificate / _folder_name(claim.id)
            document, failure = attach(
                document,
                folder,
                partial(outcome.certify, options=options),
                options.timeout and options.timeout * outcome.certificates,
            )
        if largest and not outcome.interrupted:
            allow(options.timeout)
            worst = maximise(claim, options, outcome.most, outcome.known(claim)).document
            end_work()
            _show_worst(worst)
            document = replace(document, worst=worst)
        documents.append(document)
        if outcome.interrupted or failure is not None:
            break
    codes = [_code(document) for document in documents]
    if len(codes) > 1:
        answered = "answered as expected" if any(claim.expect for claim in claims) else "hold"
        say(f"{codes.count(0)} of {len(claims)} cases {answered}, {codes.count(3)} unknown")
    if as_json:
        print_json(Verify(claims=documents))
    check_attached(failure)
    if fault is not None:
        raise fault
    sys.exit(overall(codes))


def _folder_name(case: str) -> str:
    """The folder name of a case, whose values may be paths. Characters that do not belong in a folder name are
    replaced; a digest then tells apart cases that differ in these alone."""
    plain = re.sub(r"[^A-Za-z0-9@=,._+-]", "-", case)[:150]
    return plain if plain == case else f"{plain}-{hashlib.sha256(case.encode()).hexdigest()[:8]}"


def _code(document: Document) -> int:
    if document.verdict == "unknown":
        return 3
    return 0 if document.as_expected else 1


def _show(document: Document, claim: Statement, limit: float | None) -> None:
    from mmaprobe.documents.distinguish import expected_text
    from mmaprobe.documents.verify import QUANTIFIED

    say(f"{document.id}: {document.verdict}")
    if document.about:
        say(f"  {document.about}")
    say(f"  {QUANTIFIED[document.quantifier]}: {document.claim}")
    for name, text in document.parts.items():
        say(f"  {name} = {text}")
    show_zeros(claim.zeros)
    if document.vector is not None:
        _show_vector(document.vector)
        if not any(int(text, 16) for side in (document.vector.a, document.vector.b) for text in side):
            say("  every number of a and b is zero here; `where: [nonzero(a), nonzero(b)]` in `inputs` excludes it")
    if document.counterexample is not None:
        show_counterexample(document.counterexample)
    if document.shares:
        say(f"  error or difference, as a share of the sum of magnitudes: {_shares(document)}")
        if claim.where and document.shares.proved is not None:
            say("  the proved share holds for all inputs in the windows, also those that `where` leaves out")
    by = _by(document)
    expected = expected_text(document.expect, document.as_expected)
    if document.verdict == "unknown":
        say(f"  {stopped_text(document)}{_past_text(document.seconds, limit)}; tried")
        for step in document.asked[:TRIED]:
            say(f"    {': '.join(filter(None, (step.what, ', '.join(step.answers))))}")
        if len(document.asked) > TRIED:
            say(f"    and {counted(len(document.asked) - TRIED, 'further step')} (--json lists them)")
    else:
        says = {"nothing": "says nothing"}.get(document.says, f"says {document.says}")
        source = f"(the source {says})" if document.source else ""
        end = " ".join(filter(None, (expected, source)))
        say(f"  {document.verdict} in {document.seconds:.1f} s, {by}{end and f'; {end}'}")
    say()


def _past_text(seconds: float, limit: float | None) -> str:
    """That a case took clearly longer than its limit, as where a step under way does not end at once; else empty."""
    return "" if limit is None or seconds < 1.1 * limit + 1 else f", past its limit of {limit:g} s"


def _shares(document: Document) -> str:
    """The share that is proved, rounded up, and the share that is reached, rounded down."""
    from mmaprobe.queries.kernel.bounds.wording import down_text, up_text

    shares = document.shares
    nothing = "nothing is proved" + " in the time given" * (shares.late is True)
    proved = nothing if shares.proved is None else f"{up_text(Fraction(shares.proved))} is proved"
    if shares.reached is None:
        return f"{proved}; no input that counts was looked at"
    other = ", if not by the input above" * (document.vector is not None)
    return f"{proved}; {down_text(Fraction(shares.reached))} is reached{other}"


def _show_worst(worst: Worst) -> None:
    if worst.vector is None:
        say(f"  no input found with {worst.quantity}{_left_out(worst)}")
        return
    from mmaprobe.queries.kernel.bounds.wording import up_text

    _show_vector(worst.vector)
    proved = f"; {worst.bound} is never reached ({worst.engine})" if worst.bound else ""
    proved += f"; more than {up_text(Fraction(worst.most))} never, as proved above" if worst.most else ""
    found = f"largest {worst.quantity} found: {worst.value}{proved or '; no bound proved'}"
    say(f"  {found} ({worst.seconds:.1f} s){_left_out(worst)}")
    say()


def _left_out(worst: Worst) -> str:
    count = worst.left_out
    return f"; left out: {counted(count, 'input')} with a result that is infinite, NaN or out of range" if count else ""


def _by(document: Document) -> str:
    from mmaprobe.documents.prove import confirmed_text

    if document.vector is not None or document.counterexample is not None:
        last = document.asked[-1]
        return f"by the input above, replayed ({last.what}{''.join(f', {a}' for a in last.answers[:1])})"
    lemmas = document.lemmas
    if not lemmas:
        return "; ".join(step.what for step in document.asked)
    for lemma in lemmas:
        say(f"  lemma: {lemma.name}: {lemma.answer}; {confirmed_text(lemma.confirmed_by)}")
    return f"by {counted(len(lemmas), 'lemma')}"


def _products(vector: ClaimVector) -> list[tuple[str, tuple[str, str]]]:
    """The places of the products with a nonzero factor, with {} for the side, and the patterns of their factors: one
    entry for each product; in a long vector one for all products with the same factors."""
    spans, end = dict[tuple[str, str], list[str]](), 0
    for pair, alike in groupby(zip(vector.a, vector.b, strict=True)):
        begin, end = end, end + len(list(alike))
        if any(int(text, 16) for text in pair):
            place = f"{{0}}{begin} to {{0}}{end - 1}" if end - begin > 1 else f"{{0}}{begin}"
            spans.setdefault(pair, []).append(place)
    if len(vector.a) <= LISTED:
        return [(f"{{0}}{k}", pair) for k, pair in enumerate(zip(vector.a, vector.b, strict=True)) if pair in spans]
    return [(", ".join(_shortened(places)), pair) for pair, places in spans.items()]


def _shortened(places: list[str]) -> list[str]:
    """The first places and the last one of many."""
    return places if len(places) <= SPANS else [*places[: SPANS - 1], "...", places[-1]]


def _show_vector(vector: ClaimVector) -> None:
    from mmaprobe.smtmodel.arithmetic.display import both, value_text
    from mmaprobe.smtmodel.arithmetic.formats import format_named

    fmt, addend = format_named(vector.format), format_named(vector.c_format)
    shown = _products(vector)
    for places, pair in shown[:LISTED]:
        for side, text in zip("ab", pair, strict=True):
            say(f"  {places.format(side)} = {text}  {value_text(int(text, 16), fmt)}")
    if len(shown) > LISTED:
        say(f"  and so on: {counted(len(vector.a), 'product')}, which --json lists")
    say(f"   c = {vector.c}  {value_text(int(vector.c, 16), addend)}")
    say(f"  exact sum {both(vector.exact, vector.exact_decimal)}")
    width = max(map(len, vector.results))
    for name, result in vector.results.items():
        say(f"  {name:>{width}} gives {result.d}  {both(result.value, result.decimal)}")
        if result.error:
            error = both(result.error, result.error_decimal)
            say(f"  {'':>{width}} error {error} = {result.error_ulps:.4g} ulp")
    if vector.first_divergence:
        steps = "; ".join(f"{name} {step.step} = {step.pattern}" for name, step in vector.first_divergence.items())
        say(f"  first divergence: {steps}")
