"""The outcome of `compare` as text."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

from mmaprobe.cli.options import say
from mmaprobe.cli.text.vectors import result_text, show_operands, show_results
from mmaprobe.smtmodel.base.wording import counted

if TYPE_CHECKING:
    from mmaprobe.queries.compare.devices import Contradiction
    from mmaprobe.reports.comparison import Report

SHOWN = 5  # explanations of each kind printed, and contradictions, at most


def show(report: Report) -> None:
    """Print the comparison and its explanations."""
    assert report.pair is not None
    left, right = report.pair.sides
    if reason := report.reason():
        say(reason)
    say(f"  first:  {left.name}")
    say(f"  second: {right.name}")
    for index in range(len(report.comparison.differences)):
        _show_difference(report, index)
    _show_common(report)
    for one in report.comparison.contradictions[:SHOWN]:
        _show_contradiction(one)
    if len(report.comparison.contradictions) > SHOWN:
        say(f"  and {len(report.comparison.contradictions) - SHOWN} more contradictions")
    _show_counts(report)


def _show_difference(report: Report, index: int) -> None:
    from mmaprobe.reports.comparison import terms

    difference = report.comparison.differences[index]
    pair, parts = difference.pair, difference.operands
    if any(side.closed for side in pair.sides):
        how = "as recorded (a recording cannot be minimised)"
    elif difference.first != difference.row:
        how = f"minimised from {counted(terms(pair.layout.split(difference.first)), 'nonzero term')}"
    else:
        how = counted(terms(parts), "term")
    say()
    say(f"difference {index + 1}: {how}")
    show_operands(pair.left.model, parts)
    left, right = pair.sides
    show_results([("first", difference.left, left.model.d), ("second", difference.right, right.model.d)])
    if difference.exercises:
        say(f"  exercises: {', '.join(difference.exercises)}")
    if difference.instruction is None:
        lengths = " and ".join(str(side.model.length) for side in pair.sides)
        say(f"  needs a chain of instructions, in tiles of {lengths} products")
    for which in (0, 1):
        _show_changes(report, index, which)
    if questions := report.questions(index):
        say(f"  questions that distinguish these results: {', '.join(one.question.id for one in questions)}")


def _show_changes(report: Report, index: int, side: int) -> None:
    """Print the neighbours of one model that explain a difference: first the neighbours that explain every difference,
    with their first divergence; then the names of the others."""
    from mmaprobe.reports.words import change_text

    near = {one.change: one for one in report.changes[index][side]}
    word, other = ("first", "second") if side == 0 else ("second", "first")
    best = [one.change for one in report.common[side]][:SHOWN]
    for change in best:
        say("  " + change_text(f"{change} in the {word} model gives the {other}'s result", near[change].divergence))
    rest = [change for change in near if change not in best]
    if rest:
        say(f"  {'also: ' if best else f'in the {word} model, for this difference only: '}{', '.join(rest)}")


def _show_common(report: Report) -> None:
    count = len(report.comparison.differences)
    if not count:
        return
    say()
    shown = "the difference" if count == 1 else f"all {count} differences"
    for word, side in (("first", 0), ("second", 1)):
        if report.common[side] or any(near[side] for near in report.changes):
            listed = ", ".join(f"{one.change} ({one.agree} of {one.answers})" for one in report.common[side])
            start = f"single changes of the {word} model that explain {shown} above (answers reproduced): "
            say(start + (listed or "none"))
            if report.pair and (changes := report.unspelled(side)[:SHOWN]):
                file = f"show {shlex.quote(report.pair.sides[side].model.reference)} --change {shlex.quote(changes[0])}"
                say(f"  for unit files alone, not for references: {', '.join(changes)}, as in `mmaprobe {file}`")
    complete = [one for one in report.explanations if one.complete]
    if not complete:
        say("no question of the library has hypotheses that predict every answer of both devices")
    for one in complete[:SHOWN]:
        say(f"{one.question.id} ({len(one.differences)} of {count}): {one.question.question}")
        for word, supports in (("first", one.left), ("second", one.right)):
            listed = ", ".join(f"{s.hypothesis!r} ({s.agree} of {s.answers} answers)" for s in supports)
            say(f"  {word:>6} agrees with {listed}")
    for word, rest in (
        ("more questions", complete[SHOWN:]),
        (
            "questions that explain differences, but not every answer",
            [o for o in report.explanations if not o.complete],
        ),
    ):
        if rest:
            say(f"{word}: {', '.join(one.question.id for one in rest)}")


def _show_contradiction(one: Contradiction) -> None:
    answers = ", ".join(result_text(d, one.side.model.d) for d in one.answers if d is not None)
    say(f"{one.side.name} contradicts itself: {answers} for one input")
    show_operands(one.side.model, one.operands)


def _show_counts(report: Report) -> None:
    from mmaprobe.runner.wiring import as_netlist

    comparison = report.comparison
    assert report.pair is not None
    if report.gemm or not comparison.compared:
        return
    what = f"{counted(comparison.compared, 'vector')} answered by both, {comparison.different} with different answers"
    if comparison.differences or comparison.different:
        minimised = sum(one.first != one.row for one in comparison.differences)
        say(what + (f", and {counted(minimised, 'minimised vector')}" if minimised else ""))
        return
    say(f"no difference in {counted(comparison.compared, 'vector')} answered by both; this is not a proof")
    if again := len(report.repeated):
        say(f"{again} of those chosen, such as random ones, had been asked before, and were asked once")
    if report.untold:
        names = ", ".join(sorted({change.name for change in report.untold}))
        say(f"no vector was found that shows these changes of one parameter, nor a proof that none does: {names}")
    sides = report.pair.sides
    if all(side.software for side in sides):
        say(f"to prove it: mmaprobe prove {' '.join(side.model.reference for side in sides)}")
    for model, other in (sides, sides[::-1]):
        if model.software and not other.software:
            reference = shlex.quote(model.model.reference)
            if other.design:
                say(f"to prove it: mmaprobe prove {reference} {shlex.quote(as_netlist(other.name))}")
            else:
                say(f"vectors that reach every case: mmaprobe cover {reference}, and `mmaprobe run --check`")
