"""The `prove` command: equality of two models, or a property of one, by staged proof."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import click

from cli.options import JSON, parse_inputs, print_json, progress, say, solver_options

if TYPE_CHECKING:
    from queries.problem import Problem
    from queries.prove import Proof


@click.command()
@click.argument("models", nargs=-1, required=True, metavar="MODEL [MODEL]")
@click.option(
    "--property", "wanted", type=click.Choice(["equal", "order-independent"]), help="Default: equal for two models."
)
@click.option(
    "--inputs",
    "restrictions",
    metavar="LIST",
    default="",
    help="finite, nonnegative, nonzero, normal (comma-separated).",
)
@click.option(
    "--compare",
    type=click.Choice(["bits", "value"]),
    default="bits",
    show_default=True,
    help="value: zeros are equal, and result formats may differ.",
)
@click.option(
    "--confirm/--no-confirm", default=True, show_default=True, help="Have a second solver confirm every lemma."
)
@click.option("--explain", is_flag=True, help="Print the chain of lemmas.")
@solver_options
@JSON
def prove(
    models: tuple[str, ...], wanted: str | None, restrictions: str, compare: Any, confirm: bool, explain: bool,
    solver: str, timeout: float, memory: int, as_json: bool,
) -> None:  # fmt: skip
    """Prove two models equal on every input, or one model independent of the order of its products.

    Named signals are proved equal stage by stage. A difference is reported with a replayed vector.

    \b
    mmaprobe prove turing/mma/m16n8k8.f32.f16.f16.f32 ampere/mma/m16n8k8.f32.f16.f16.f32
    mmaprobe prove --property order-independent hopper/mma/m16n8k16.f32.f16.f16.f32
    """
    from queries.distinguish import Options
    from queries.prove import prove as prove_problem

    problems = _problems(models, wanted, restrictions, compare)
    proofs: list[Proof] = []
    for problem in problems:
        left = timeout - sum(proof.seconds for proof in proofs)
        proofs.append(prove_problem(problem, Options(solver, max(left, 0.0), memory, 1, progress), confirm))
        progress("")
        if proofs[-1].verdict == "different":
            break
    verdicts = {proof.verdict for proof in proofs}
    verdict = "different" if "different" in verdicts else "unknown" if "unknown" in verdicts else "equal"
    _show(proofs, verdict, wanted or "equal", explain)
    if as_json:
        print_json(
            {"schema": 1, "property": wanted or "equal", "verdict": verdict, "proofs": [_json(p) for p in proofs]}
        )
    sys.exit({"equal": 0, "different": 1, "unknown": 3}[verdict])


def _problems(models: tuple[str, ...], wanted: str | None, restrictions: str, compare: Any) -> list[Problem]:
    from dataclasses import replace

    from queries.problem import Problem
    from queries.properties import reorderings
    from smtmodel.reference import parse_reference

    parsed = [parse_reference(model) for model in models]
    inputs = parse_inputs(restrictions)
    if wanted == "order-independent":
        if len(parsed) != 1:
            raise click.UsageError("order-independent is a property of one model")
        return [replace(problem, inputs=inputs, compare=compare) for problem in reorderings(parsed[0])]
    if len(parsed) != 2:
        raise click.UsageError("two models are compared (or give --property)")
    return [Problem(parsed[0], parsed[1], inputs, compare)]


def _show(proofs: list[Proof], verdict: str, wanted: str, explain: bool) -> None:
    from cli.show import show_operands
    from smtmodel.display import number_text
    from smtmodel.vectors import to_hex

    lemmas = [lemma for proof in proofs for lemma in proof.lemmas]
    seconds = sum(proof.seconds for proof in proofs)
    if explain:
        for lemma in lemmas:
            second = f", confirmed by {lemma.confirmed}" if lemma.confirmed else ""
            say(f"  lemma {lemma.left} = {lemma.right} ({lemma.cuts} cuts): {lemma.answer}{second}")
    for proof in proofs:
        if proof.witness is not None:
            problem, witness = proof.problem, proof.witness
            show_operands(problem.left, witness.operands)
            for name, model, result in (("left", problem.left, witness.left), ("right", problem.right, witness.right)):
                say(f"  {name:>5} gives {to_hex(result, model.d)}  {number_text(result, model.d)}")
    if verdict == "equal":
        engines = ", ".join(sorted({engine for proof in proofs for engine in proof.engines})) or "construction alone"
        missing = any(lemma.confirmed is None for lemma in lemmas)
        seconds_by = sorted({f"{c.engine} {c.version}" for lemma in lemmas if (c := lemma.confirmed)})
        by = "nobody (for every lemma)" if missing or not lemmas else ", ".join(seconds_by)
        say(f"{wanted}: proved in {seconds:.1f} s, {len(lemmas)} lemmas, by {engines}; confirmed by {by}")
    elif verdict == "different":
        say(f"{wanted}: no; the vector above was replayed under both sides")
    else:
        tried = [str(answer) for proof in proofs for answer in proof.tried if answer.status == "unknown"]
        say(f"{wanted}: unknown after {seconds:.1f} s; tried {'; '.join(tried) or 'nothing in time'}")


def _json(proof: Proof) -> dict[str, Any]:
    from smtmodel.vectors import Vector

    problem, witness = proof.problem, proof.witness
    return {
        "left": problem.left.reference,
        "right": problem.right.reference,
        "order": list(getattr(problem, "order", ())) or None,
        "verdict": proof.verdict,
        "seconds": round(proof.seconds, 3),
        "engines": proof.engines,
        "confirmed_by": proof.confirmations,
        "lemmas": [
            {
                "left": lemma.left,
                "right": lemma.right,
                "cuts": lemma.cuts,
                "solver": lemma.answer.engine,
                "seconds": lemma.answer.seconds,
                "confirmed_by": lemma.confirmed.engine if lemma.confirmed else None,
            }
            for lemma in proof.lemmas
        ],
        "vector": Vector(problem.left, witness.operands).to_json() if witness else None,
        "results": [f"{witness.left:x}", f"{witness.right:x}"] if witness else None,
    }
