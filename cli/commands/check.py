"""The `check` command: checks a certificate again, from its folder alone."""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import click

from mmaprobe.cli.choice import FileName, Seconds
from mmaprobe.cli.command import Command
from mmaprobe.cli.options import JSON, print_json, progress, say
from mmaprobe.smtmodel.base.interrupts import allow
from mmaprobe.smtmodel.base.wording import counted

if TYPE_CHECKING:
    from mmaprobe.queries.solvers.contract import Answer

SECONDS = 300.0
BELIEVED = (
    "believed (docs/trusted.md): that the units, inputs and questions in the files are those that were meant; how "
    "mmaprobe evaluates a unit, and writes a question as a formula; {means}; {engines}"
)


@click.command(cls=Command)
@click.argument("folder", type=FileName(file_okay=False), metavar="FOLDER")
@click.option(
    "--engines/--no-engines",
    default=True,
    show_default=True,
    help="Also ask the engines again about lemmas that have no checked proof.",
)
@click.option(
    "--timeout",
    type=Seconds(),
    default=SECONDS,
    show_default=True,
    metavar="SECONDS",
    help="Seconds for one proof, or for one answer of an engine.",
)
@JSON
def check(folder: Path, engines: bool, timeout: float, as_json: bool) -> None:
    """Check a certificate again.

    Checks every file and every proof, calls every rule of the proof again, and compares what it ends in with what the
    files ask. Says first what is stated: of which inputs and units. --json lists every finding. Nothing but the folder
    is read, which may hold several certificates, as the cases of a claim do. Proofs are checked by drat-trim if it is
    on the path, or by mmaprobe's own program, which needs a C compiler. Exit code 1 if a part is rejected, 3 if one
    could not be checked.

    \b
    mmaprobe prove --property error-bound arm/neon/bfdot --certificate proof
    mmaprobe check proof
    """  # fmt: skip
    from mmaprobe.queries.checking.folder import MEANING, check_all
    from mmaprobe.queries.checking.report import document_of
    from mmaprobe.queries.solvers.contract import SolverProcess

    def ask(engine: str, text: str) -> Answer:
        return SolverProcess(engine, text).answer(timeout)

    allow(None)  # the time is for each answer
    findings = []
    for finding in check_all(folder, ask if engines else None, timeout):
        progress(f"{finding.place}: {finding.says}")
        findings.append(finding)
    progress("")
    document = document_of(folder, findings)
    counts = Counter(one.kind for one in document.findings)
    sentences = Counter(one.says for one in document.findings if one.kind == "fine")
    files, proofs = counted(sentences[MEANING["smt2"]], "file"), counted(sentences[MEANING["drat"]], "proof")
    needed = f"{proofs} verified{f' by {document.checker}' if document.checker else ''}"
    if not (queries := any(one.place.endswith(".smt2") for one in document.findings)):
        needed = "no proof by a solver needed"
    rests = f"; {counted(counts['word'], 'lemma')} for which solvers alone answer" if counts["word"] else ""
    say({
        "fault": f"rejected by the checker: {counted(counts['fault'], 'fault')}",
        "incomplete": f"incomplete: {counted(counts['open'], 'part')} could not be checked{rests}",
        "checked": f"checked: {files} as written, {needed}{rests}",
    }[document.verdict])  # fmt: skip
    for one in document.findings:
        if one.kind != "fine" or one.says not in MEANING.values():
            say(f"  {one.place}: {one.says}")
    if document.verdict == "checked":
        means = "the rules of its kernel" + ", and the program that checks proofs" * queries
        say(BELIEVED.format(means=means, engines="the solvers named above" if counts["word"] else "no solver"))
    if as_json:
        print_json(document)
    sys.exit({"checked": 0, "fault": 1, "incomplete": 3}[document.verdict])
