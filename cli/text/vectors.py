"""Human-readable text of vectors and verdicts."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from mmaprobe.cli.options import say
from mmaprobe.documents.distinguish import expected_text, pair_text
from mmaprobe.documents.prove import PairProof, Prove, ProveInvariant, ProvePlans
from mmaprobe.smtmodel.base.interrupts import why_ended
from mmaprobe.smtmodel.base.wording import counted, table_lines
from mmaprobe.smtmodel.operand import FURTHER

if TYPE_CHECKING:
    from mmaprobe.documents.verify import Claim
    from mmaprobe.hypotheses.schema import Question
    from mmaprobe.queries.compare.observed import ObservedVector
    from mmaprobe.queries.kernel.questions.problem import Placed
    from mmaprobe.queries.search.answer import Answered, PairAnswer
    from mmaprobe.queries.search.witness import Witness
    from mmaprobe.smtmodel.arithmetic.formats import Format
    from mmaprobe.smtmodel.evaluate.model import Model
    from mmaprobe.smtmodel.evaluate.operands import Operands, Reader
    from mmaprobe.smtmodel.inputs.vectors import Vector

SHOWN = 10  # mismatches that are printed
OPERANDS = 40  # operands of one input that are printed, and c
ONE_SIGN = ", all inputs non-negative"  # of a restricted query


def show_answer(answered: Answered) -> None:
    """Print the question, the verdict on each pair with the solvers that gave it, and every vector with its
    predictions."""
    question = answered.question
    say(f"{question.id}: {question.question}")
    if question.source:
        say(f"  source: {question.source}")
    for line in table_lines([(name, model.reference) for name, model in question.models.items()]):
        say(f"  {line}")
    for pair in answered.pairs:
        say(f"  {pair.left} | {pair.right}: {_verdict(pair)}")
    for vector in answered.vectors:
        say()
        show_vector(question, vector)
    for device, name in question.observed.items():
        say(f"  observed on {device}: {name}")
    if question.note:
        say(f"  note: {question.note}")
    if question.expect and answered.verdict != "unknown":
        say(f"  {expected_text(question.expect, answered.exit_code == 0)}")
    say()


def _verdict(pair: PairAnswer) -> str:
    outcome = pair.outcome
    steps = [
        f"{_free(step.free, outcome.problem.length)}{ONE_SIGN * step.one_sign}: {', '.join(map(str, step.answers))}"
        for step in outcome.steps
    ]
    asked = "; ".join(["found by simulation"] * outcome.simulated + steps)
    return pair_text(pair.document(), asked, f", {counted(len(outcome.witnesses), 'vector')}")


def _free(products: Sequence[int], length: int) -> str:
    """The products that a query leaves free, the others being zero, in words."""
    few = f"product{'s' * (len(products) > 1)} {', '.join(map(str, products))}"
    return f"{few if len(products) < length else 'all products'} free"


def show_operands(model: Model, operands: Operands[int]) -> None:
    """Print the nonzero operands as bit fields, powers of two and decimals; at most a screen of operands."""
    show_lines(operand_lines(model, operands))


def show_lines(lines: Mapping[str, str]) -> None:
    """Print lines of operands by name: the first ones, and the addend."""
    more = [name for name in [*lines][OPERANDS:] if name != "c"]
    for name, line in lines.items():
        if name not in more:
            say(line)
        elif name == more[0]:
            say(f"   and {counted(len(more), 'operand')} more, which --json lists")


def operand_lines(model: Model, operands: Operands[int]) -> dict[str, str]:
    """The operands that show_operands shows, by name."""
    from mmaprobe.smtmodel.arithmetic.display import bit_fields, value_text
    from mmaprobe.smtmodel.inputs.vectors import to_hex

    elements: list[tuple[str, int, Any]] = []
    for k, (x, y) in enumerate(zip(operands.a, operands.b, strict=True)):
        if x or y:
            elements += [(f"a{k}", x, model.a), (f"b{k}", y, model.b)]
    if model.addend:
        elements.append(("c", operands.c, model.c))
    further = [(row, k, x) for row in FURTHER for k, x in enumerate(operands.sides[row.name])]
    elements += [(row.at(k), x, model.formats[row.name]) for row, k, x in sorted(further, key=lambda one: one[1])]
    return {
        name: f"  {name:>4} = {to_hex(pattern, fmt):<8}  {bit_fields(pattern, fmt):<34}  " + value_text(pattern, fmt)
        for name, pattern, fmt in elements
    }


def say_unread(reader: Reader) -> None:
    """Print that a unit or a plan takes no addend, if it takes none."""
    if not reader.addend:
        say(f"{reader.reference} does not read c")


def show_lemmas(proofs: Iterable[PairProof]) -> None:
    """Print the lemmas of proofs, one a line."""
    for lemma in (lemma for proof in proofs for lemma in proof.lemmas):
        second = f", confirmed by {lemma.confirmed_by}" if lemma.confirmed_by else ""
        using = f", using {lemma.using}" if lemma.using else ""
        say(f"  lemma {lemma.name} ({counted(lemma.cuts, 'cut-point')}{using}): {lemma.answer}{second}")


def stopped_text(document: Prove | ProvePlans | ProveInvariant | Claim) -> str:
    """Why there is no verdict, and after how long."""
    return f"{why_ended() if document.interrupted else 'unknown'} after {document.seconds:.1f} s"


def answers_text(answers: Iterable[str]) -> str:
    """The inconclusive answers of solvers in one line; answers of one solver with one reason are counted."""
    counts = Counter(re.sub(r" in [\d.]+ s", "", answer) for answer in answers)
    return "; ".join(f"{answer}{f', {count} times' if count > 1 else ''}" for answer, count in counts.items())


def result_text(d: int, fmt: Format) -> str:
    """A result as a pattern and as a number."""
    from mmaprobe.smtmodel.arithmetic.display import value_text
    from mmaprobe.smtmodel.inputs.vectors import to_hex

    return f"{to_hex(d, fmt)}  {value_text(d, fmt)}"


def show_results(results: Sequence[tuple[str, int, Format]]) -> None:
    """Print the result of each side. `results`: for each side its name, its result, and the format of the result."""
    width = max(len(name) for name, _, _ in results)
    for name, d, fmt in results:
        say(f"  {name:>{width}} gives {result_text(d, fmt)}")


def show_witness(problem: Placed | None, witness: Witness | None, names: Iterable[str]) -> None:
    """Print the input on which two plans differ, and the result of each."""
    assert problem is not None
    assert witness is not None
    show_operands(problem.left, problem.whole(witness.operands))
    sides = zip(names, (witness.left, witness.right), (problem.left.d, problem.right.d), strict=True)
    show_results([*sides])


def _is_zero(line: str) -> bool:
    return line.split()[-1] in ("0", "-0")


def show_counterexample(proof: PairProof) -> None:
    """Print an input on which the two sides differ, and both results. Of the second side only operands that differ from
    the first side's are printed, and no zeros that both sides have."""
    from mmaprobe.documents.parts import input_of
    from mmaprobe.smtmodel.arithmetic.formats import format_named
    from mmaprobe.smtmodel.tables.reference import parse_reference

    row = proof.vector
    assert row is not None
    width = max(map(len, proof.sides))
    shown: dict[str, str] = {}
    sides = zip(proof.sides, (proof.left, proof.right), (row, row.other_side or row), row.results, strict=True)
    for label, side, vector, result in sides:
        model = parse_reference(side)
        lines = operand_lines(model, input_of(vector).operands)
        lines |= {name: f"  {name:>4} = every value" for name in row.every or ()}
        show_lines({name: line for name, line in lines.items()
                    if shown.get(name) != line and not (shown and name not in shown and _is_zero(line))})  # fmt: skip
        for name in sorted(shown.keys() - lines.keys()):
            say(f"  {name:>4} = 0")
        shown = lines
        fmt = format_named(row.result_format) if row.result_format else model.d
        say(f"  {label:>{width}} gives {result_text(int(result, 16), fmt)}")


def show_vector(question: Question, vector: Vector) -> None:
    """Print the inputs, then each prediction and the hardware known to agree with it."""
    show_operands(vector.model, vector.operands)
    width = max(map(len, vector.predictions), default=0)
    for name, text in vector.predictions.items():
        fmt = question.models[name].d
        devices = [device for device, seen in question.observed.items() if seen == name]
        tail = f"   <- {', '.join(devices)}" if devices else ""
        say(f"  {name:>{width}} gives {result_text(int(text, 16), fmt)}{tail}")
    if vector.exercises:
        say(f"  exercises: {vector.exercises_in_words}")


def show_mismatch(row: ObservedVector, file: str) -> None:
    """Print one line about a mismatch of `evaluate`."""
    say(f"  {file}:{row.vector.line}: {row.model.reference}: {row.mismatch_text}")
