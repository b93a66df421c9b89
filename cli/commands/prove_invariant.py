"""`prove --invariant`: whether results depend on the shape of a product, by a map of a library or by rules by hand."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from mmaprobe.cli.options import EXIT, say
from mmaprobe.cli.text.certificates import finish
from mmaprobe.cli.text.vectors import answers_text, proved_text, show_witness, stopped_text
from mmaprobe.smtmodel.base.wording import counted, spans_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from mmaprobe.documents.prove import ElementAt, ProveInvariant
    from mmaprobe.queries.certificates.certificate import Certificate
    from mmaprobe.queries.plans.invariant import Fixed, Invariance
    from mmaprobe.queries.search.distinguish import Options

LISTED = 4  # the most pairs of plans that are printed


def run_invariant(
    path: Path, shapes: str, fixed: Fixed | None, options: Options, confirm: bool, explain: bool, as_json: bool,
    certificate: Path | None,
) -> NoReturn:  # fmt: skip
    """Prove or refute, print the verdict, and end with its exit code. Raises MmaprobeError."""
    from mmaprobe.queries.plans.invariant import Shapes, prove_invariant
    from mmaprobe.queries.plans.mapping import rules_of
    from mmaprobe.queries.plans.report import document_of_invariance

    rules = rules_of(path)
    found = prove_invariant(rules, Shapes.of(rules, shapes), fixed, options, confirm)
    options.progress("")
    document = document_of_invariance(found)
    _show(document, found, explain)

    def write(folder: Path) -> Iterable[Certificate]:
        from mmaprobe.queries.plans.certify import certify_invariance

        return certify_invariance(found, folder, options)

    finish(document, None if found.verdict == "unknown" else certificate, write, options.timeout, as_json)
    sys.exit(EXIT[found.verdict])


def _show(document: ProveInvariant, found: Invariance, explain: bool) -> None:
    wanted = f"{document.property} ({found.shapes.text()}{f'; {found.fixed} fixed' if found.fixed else ''})"
    if document.verdict == "different":
        _show_difference(document, found, wanted)
        return
    pairs = document.compared
    engines = sorted({engine for pair in pairs for engine in pair.engines})
    by = sorted({engine for pair in pairs for engine in pair.confirmed_by})
    if document.verdict == "equal":
        how = proved_text(engines, by, "by rewriting alone" if pairs else "as each K has one plan")
        say(f"{wanted}: proved in {document.seconds:.1f} s, {how}")
    else:
        say(f"{wanted}: {stopped_text(document)}")
    for pair in pairs[: None if explain else LISTED]:
        say(f"  {pair.left} and {pair.right}: one sum in {_named(pair.example[0])} and {_named(pair.example[1])}")
        say(f"    equal at {_spans(pair.proved)} of K = {_spans(pair.lengths)}")
        for line in pair.rules if explain else ():
            say(f"      {line}")
        if pair.unanswered:
            say(f"    tried: {answers_text(pair.unanswered)}")
    if len(pairs) > LISTED and not explain:
        say(f"  and {counted(len(pairs) - LISTED, 'more pair')} of plans (--explain)")
    if document.open_example is not None:
        say(
            f"  the map says nothing of some results at K = {_spans(document.open)}, the first one "
            f"{_named(document.open_example)}: --shapes leaves them out"
        )
        if not any(map(found.left_open, found.found.needs)):
            say("  results of which it speaks are the same wherever K is")


def _show_difference(document: ProveInvariant, found: Invariance, wanted: str) -> None:
    assert found.difference is not None
    proof = found.difference[0]
    say(f"{wanted}: no; one row and one column, in two shapes, replayed on both plans")
    names = (f"{_named(one)}, by {one.plan}," for one in document.difference)
    show_witness(proof.problem, proof.witness, names)


def _named(element: ElementAt) -> str:
    return f"{element.place} of {' x '.join(map(str, element.shape))}"


def _spans(spans: Sequence[Sequence[int]]) -> str:
    return spans_text(spans, LISTED) or "no K"
