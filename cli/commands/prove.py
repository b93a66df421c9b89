"""The `prove` command: equality of two models, or a property of one, by staged proof."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

import click

from mmaprobe.cli.choice import Choice, FileName, WholeNumber
from mmaprobe.cli.command import Command
from mmaprobe.cli.commands.error_bound import ERROR_BOUND, Shown, prove_bound
from mmaprobe.cli.completion import file_names, models
from mmaprobe.cli.options import (
    COMPARE_HELP,
    DESIGN,
    EXIT,
    FIXED,
    FLAGS,
    JSON,
    inputs_option,
    refuse,
    say,
    show_zeros,
    solver_options,
)
from mmaprobe.cli.text.certificates import CERTIFICATE, finish
from mmaprobe.cli.text.vectors import answers_text, show_lemmas, stopped_text
from mmaprobe.hypotheses.properties import FALLING, Property
from mmaprobe.smtmodel.base.wording import counted
from mmaprobe.smtmodel.inputs.restrictions import parse_inputs

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from mmaprobe.documents.parts import Verdict
    from mmaprobe.documents.prove import OneLemma, PairProof, Prove
    from mmaprobe.queries.certificates.certificate import Certificate
    from mmaprobe.queries.kernel.questions.problem import Problem
    from mmaprobe.queries.search.distinguish import Options
    from mmaprobe.smtmodel.inputs.admitted import Compare, Inputs

NAMED = 3  # the most lemmas whose names are in the first line


@click.command(cls=Command)
@click.argument("models", nargs=-1, metavar="[MODEL [MODEL]]", shell_complete=models)
@click.option(
    "--property",
    "wanted",
    type=Choice([*get_args(Property), ERROR_BOUND]),
    default="equal",
    help="For two models: equal. For one model: the others (`mmaprobe list words` explains them).",
)
@inputs_option()
@click.option(
    "--compare",
    type=Choice(["bits", "value"]),
    help=f"{COMPARE_HELP} (default: bits).",
)
@click.option(
    "--confirm/--no-confirm", default=True, show_default=True, help="Have a second solver confirm every lemma."
)
@CERTIFICATE
@click.option("--explain", is_flag=True, help="Print the chain of lemmas.")
@click.option("--latex", is_flag=True, help="error-bound: print the formulas and their conditions as LaTeX.")
@click.option(
    "--length",
    type=WholeNumber(1),
    metavar="K",
    help="Prove two plans, or two units in chains, equal at this K (default: at every multiple of a tile). "
    "error-bound: of a chain of instructions with K products.",
)
@click.option(
    "--measure",
    type=Choice(["elements", "largest"]),
    help="error-bound: in the magnitudes of all elements, or in the largest one of the row of A and of the column of B "
    "(default: elements; largest for plans of which no other bound is known).",
)
@click.option(
    "--invariant", "rules", type=FileName(dir_okay=False), metavar="MAP", shell_complete=file_names,
    help="In place of models: whether a result depends on M, N or its place, by a map of `identify --gemm --json`, or "
    "rules by hand (docs/batch-invariance.md).",
)  # fmt: skip
@click.option(
    "--shapes", default="", metavar="M=..,N=..,K=..",
    help="With --invariant: the shapes asked about, as M=1..8,N=4096,K=16..1024 (default: those of the map).",
)  # fmt: skip
@FIXED
@FLAGS
@solver_options("the whole proof")
@JSON
def prove(
    models: tuple[str, ...], wanted: str, restrictions: str, compare: Any, confirm: bool,
    certificate: Path | None, explain: bool, latex: bool, length: int | None, measure: Any, rules: Path | None,
    shapes: str,
    fixed: Any, flags: str | None, options: Options, as_json: bool,
) -> None:  # fmt: skip
    """Prove two models or designs equal, or a property. A proof is about every input.

    Intermediate results are proved equal stage by stage. A difference is reported as a vector, which is evaluated
    again. The second model may be a design in Verilog, rtl:FILE.sv,top=NAME (see `mmaprobe compare`). --flags asks
    whether the exceptions are equal, in place of the results; a design's are at its port flags, or d=PORT.

    exact: the result is the exact sum, rounded once by the unit's last rounding, which also says what becomes of
    an overflow, of an infinite sum and of NaN; subnormal results are kept, and zeros are equal.

    \b
    mmaprobe prove turing/mma/m16n8k8.f32.f16.f16.f32 ampere/mma/m16n8k8.f32.f16.f16.f32
    mmaprobe prove --property order-independent hopper/mma/m16n8k16.f32.f16.f16.f32
    mmaprobe prove plan:cublas/plain plan:cublas/split-k --length 4096
    mmaprobe prove ieee/fma/f16 rtl:fma.sv,top=fma
    mmaprobe prove --invariant map.json --fixed N
    """
    from mmaprobe.cli.commands.prove_invariant import run_invariant
    from mmaprobe.cli.commands.prove_plans import about_plans, run_plans
    from mmaprobe.queries.properties.proving import proofs_of, verdict_on
    from mmaprobe.queries.properties.report import proof_document
    from mmaprobe.smtmodel.tables.reference import names_plan

    if rules is not None:
        if models:
            raise click.UsageError("--invariant is about a map: it takes no model")
        refuse("--invariant compares plans, bit for bit and on every input", "wanted", "restrictions", "compare")
        refuse("--invariant has --shapes", "length")
        refuse("it is about the results of two models", "flags")
        refuse(f"it is for {ERROR_BOUND}", "latex", "measure")
        run_invariant(rules, shapes, fixed, options, confirm, explain, as_json, certificate)
    refuse("it goes with --invariant", "shapes", "fixed")
    if not models:
        raise click.UsageError("Missing argument 'MODEL [MODEL]'.")
    if wanted != "equal":
        refuse(f"{wanted} is a property of results", "flags")
    if wanted == ERROR_BOUND:
        refuse(f"{ERROR_BOUND} compares no results", "compare")
        if latex:
            refuse("LaTeX is of the formulas alone", "explain")
        inputs, how = parse_inputs(restrictions), Shown(explain, latex, measure)
        sys.exit(prove_bound(models, inputs, length, options, confirm, how, as_json, certificate))
    refuse(f"it is for {ERROR_BOUND}", "latex", "measure")
    if wanted != "equal" and len(models) != 1:
        raise click.UsageError(f"{wanted} is a property of one model{_plan_hint(models)}")
    if about_plans(models, length):
        what = "plans for any K" if any(map(names_plan, models)) else "chains of a unit to --length products"
        why = f"{what} can only be proved equal, bit for bit and on every input{_plan_hint(models)}"
        refuse(why, "restrictions", "compare", "flags")
        if restrictions or compare:
            raise click.UsageError(why)
        run_plans(models, length, options, confirm, explain, as_json, certificate)
    if length is not None:
        raise click.UsageError(f"--length is for two plans, two units that take K in tiles, and {ERROR_BOUND}")
    if wanted.startswith("monotonic"):
        refuse(FALLING, "compare")
    problems = _problems(models, wanted, restrictions, compare, flags)
    proofs = proofs_of(problems, options, confirm)
    document = proof_document(wanted, proofs, problems[0].zeros)
    verdict = verdict_on(wanted, proofs)
    say(_headline(document, verdict))
    show_zeros(problems[0].zeros)
    if wanted == "equal" and problems[0].left.length != problems[0].right.length:
        say(f"  about {counted(problems[0].length, 'product')}; those beyond, of the longer model, are of +0")
    _show_details(document, explain)

    def write(folder: Path) -> Iterable[Certificate]:
        from mmaprobe.queries.properties.certify import certify_proofs, certify_refuted

        if verdict == "equal":
            return certify_proofs(wanted, proofs, folder, options)
        return certify_refuted(wanted, proofs[-1], folder, options)

    into, seconds = None if verdict == "unknown" else certificate, options.timeout and options.timeout * len(proofs)
    finish(document, into, write, seconds, as_json)
    sys.exit(EXIT[verdict])


def _plan_hint(models: tuple[str, ...]) -> str:
    """What to do about plans where models are needed."""
    from mmaprobe.smtmodel.tables.reference import names_plan

    return "; a plan is a model at one K: plan:NAME@length=K" if any(map(names_plan, models)) else ""


def _problems(
    models: tuple[str, ...], wanted: str, restrictions: str, compare: Any, flags: str | None
) -> list[Problem]:
    from mmaprobe.queries.kernel.questions.problem import Problem
    from mmaprobe.queries.kernel.questions.statements import problems_of
    from mmaprobe.smtmodel.tables.reference import parse_reference, with_flags

    if any(model.startswith(DESIGN) for model in models):
        return [_designed(models, wanted, parse_inputs(restrictions), compare or "bits", flags)]
    parsed = [parse_reference(model) for model in models]
    parsed = parsed if flags is None else [with_flags(model, flags) for model in parsed]
    inputs = parse_inputs(restrictions)
    if wanted != "equal":
        return problems_of(wanted, parsed[0], inputs, compare)
    if len(parsed) != 2:
        raise click.UsageError("give two models, or one model and --property")
    return [Problem(parsed[0], parsed[1], inputs, compare or "bits")]


def _designed(models: tuple[str, ...], wanted: str, inputs: Inputs, compare: Compare, flags: str | None) -> Problem:
    """The question whether a design gives the results of a model, or the model's exceptions at the port for flags."""
    from mmaprobe.queries.kernel.questions.designs import Designed
    from mmaprobe.runner.rtl import RtlDevice
    from mmaprobe.smtmodel.tables.reference import parse_reference, with_flags

    if wanted != "equal" or len(models) != 2 or models[0].startswith(DESIGN):
        raise click.UsageError(f"a design is proved to be a model: give MODEL {DESIGN}FILE,top=NAME")
    model, text = parse_reference(models[0]), models[1].removeprefix(DESIGN)
    if flags is not None:
        model, text = with_flags(model, flags), text if ",d=" in text else f"{text},d=flags"
    return Designed(model, model, inputs, compare, RtlDevice(text).design)


def _headline(document: Prove, verdict: Verdict) -> str:
    """The verdict, with what it rests on: the first line of the output."""
    wanted, seconds, proofs = document.property, document.seconds, document.proofs
    where = f", where only zeros of {', '.join(document.zeros_only)} are admitted" if document.zeros_only else ""
    stated = (wanted if wanted == "equal" else f"{wanted} ({document.statement})") + where
    lemmas = [lemma for proof in proofs for lemma in proof.lemmas]
    count = counted(len(lemmas), "lemma")
    whys = [proof.why for proof in proofs if proof.why]
    by = ", ".join(document.confirmed_by) or _unconfirmed(lemmas)
    if verdict == "equal" and len(whys) == len(proofs) > 0:
        rests = f", with {count} by {', '.join(document.engines)}; confirmed by {by}" if lemmas else ""
        return f"{stated}: proved in {seconds:.1f} s: {'; '.join(dict.fromkeys(whys))}{rests}"
    if verdict == "equal":
        engines = ", ".join(document.engines) or "rules alone"
        return f"{stated}: proved in {seconds:.1f} s, {count}, by {engines}; confirmed by {by}"
    if verdict == "different":
        return f"{stated}: no; both results below were evaluated again, with NumPy"
    tried = answers_text(text for proof in proofs for text in proof.unanswered) or "nothing in time"
    left = "".join(f"; open: {proof.open}" for proof in proofs if proof.open)
    return f"{stated}: {stopped_text(document)}, {count} proved{left}; tried {tried}"


def _show_details(document: Prove, explain: bool) -> None:
    proofs = document.proofs
    if explain:
        show_lemmas(proofs)
    for proof in proofs:
        if proof.vector:
            show_witness(proof)


def _unconfirmed(lemmas: Sequence[OneLemma]) -> str:
    """Which solvers confirmed some of the lemmas; up to NAMED lemmas that no second solver confirmed are named."""
    left = [lemma.name for lemma in lemmas if lemma.confirmed_by is None]
    if len(left) == len(lemmas):
        return "no second solver"
    which = "; ".join(left) if len(left) <= NAMED else "--explain says which"
    return f"a second solver for {len(lemmas) - len(left)} of {len(lemmas)} lemmas (not: {which})"


def _is_zero(line: str) -> bool:
    return line.split()[-1] in ("0", "-0")


def show_witness(proof: PairProof) -> None:
    """Print an input on which the two sides differ, and both results. Of the second side only operands that differ from
    the first side's are printed, and no zeros that both sides have."""
    from mmaprobe.cli.text.vectors import operand_lines, result_text, show_lines
    from mmaprobe.documents.parts import input_of
    from mmaprobe.smtmodel.tables.reference import parse_reference

    row = proof.vector
    assert row is not None
    width = max(map(len, proof.sides))
    shown: dict[str, str] = {}
    sides = zip(proof.sides, (proof.left, proof.right), (row, row.other_side or row), row.results, strict=True)
    for label, side, vector, result in sides:
        model = parse_reference(side)
        lines = operand_lines(model, input_of(vector).operands)
        show_lines({name: line for name, line in lines.items()
                    if shown.get(name) != line and not (shown and name not in shown and _is_zero(line))})  # fmt: skip
        for name in sorted(shown.keys() - lines.keys()):
            say(f"  {name:>4} = 0")
        shown = lines
        say(f"  {label:>{width}} gives {result_text(int(result, 16), model.d)}")
