"""Pairs of models of one normal form and two expressions: which have a certificate, and whether the check accepts it.

Rows of the table, a part of each family's candidates, and random pairs of small models.
`python -m benchmarks.certified_forms [--candidates 400] [--pairs 12] [--seconds 15] [-o FILE]`
"""

from __future__ import annotations

import argparse
import random
import sys
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from benchmarks.pages import put_page
from benchmarks.small_pairs import neighbour, random_model
from mmaprobe.hypotheses.family import families
from mmaprobe.queries.candidates.kinds import candidate_of
from mmaprobe.queries.certificates.sat import CertificateError
from mmaprobe.queries.checking.folder import check_folder
from mmaprobe.queries.kernel.questions.problem import Problem
from mmaprobe.queries.properties.certify import certify_sides
from mmaprobe.queries.properties.forms import by_rewriting
from mmaprobe.queries.search.distinguish import Options
from mmaprobe.queries.tactics.normalising import Normaliser, rules_of
from mmaprobe.smtmodel.evaluate.model import Model
from mmaprobe.smtmodel.tables.catalogue import catalogue
from mmaprobe.smtmodel.tables.reference import parse_reference

Pairs = list[tuple[Model, Model]]


def of_one_form(models: Sequence[Model], normaliser: Normaliser) -> Pairs:
    """The first model of each normal form with each other one whose expression is another."""
    kinds: dict[object, dict[object, Model]] = {}
    for model in models:
        own = candidate_of(model.any_nan, normaliser)
        kinds.setdefault(own.form, {}).setdefault(own.model.unit.result, own.model)
    return [(first, other) for first, *rest in map(list, map(dict.values, kinds.values())) for other in rest]


def small(count: int, normaliser: Normaliser) -> Pairs:
    """Of so many random pairs, those of one normal form and two expressions."""
    found: Pairs = []
    for number in range(count):
        rng = np.random.default_rng([7, number])
        one = random_model(rng)
        other = neighbour(rng, one)
        if other is not None and other[0].d == one.d:
            found += of_one_form([one, other[0]], normaliser)
    return found


def kind_of(problem: Problem, seconds: float) -> tuple[str, list[str]]:
    """The kind of certificate of a pair, and the rules of rewriting that make both sides one form."""
    options = Options("bitwuzla", seconds)
    proof = by_rewriting(problem, options, confirm=False)
    if proof is None or proof.theorem is None:
        return "not proved", []
    rules = rules_of(proof.theorem.premises)
    with TemporaryDirectory() as folder:
        try:
            ((_, manifest),) = certify_sides(proof, Path(folder), options)
        except CertificateError:
            return "none", rules
        kinds = {found.kind for found in check_folder(Path(folder))}
        kind = "steps" if manifest["parts"] else "whole question"
        return kind if kinds == {"fine"} else f"{kind}, {'rejected' if 'fault' in kinds else 'in part'}", rules


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--candidates", type=int, default=400)
    parser.add_argument("--pairs", type=int, default=12)
    parser.add_argument("--seconds", type=float, default=15.0)
    parser.add_argument("--only", nargs="*")
    parser.add_argument("-o", "--output", type=Path)
    given = parser.parse_args()
    rng, normaliser, kinds, used = (
        random.Random(20),
        Normaliser(Options("bitwuzla", None)),
        Counter[str](),
        Counter[str](),
    )
    rows = ["| of | models | pairs | looked at | certificates |", "|---|---|---|---|---|"]
    for name in given.only or ["table", *families(), "small pairs"]:
        if name == "small pairs":
            count, pairs = 2 * given.candidates, small(given.candidates, normaliser)
        else:
            every = (
                [parse_reference(row["id"]) for row in catalogue()]
                if name == "table"
                else families()[name].candidates()
            )
            models = every if name == "table" else rng.sample(every, min(given.candidates, len(every)))
            count, pairs = len(models), of_one_form(models, normaliser)
        chosen, own, start = rng.sample(pairs, min(given.pairs, len(pairs))), Counter[str](), time.process_time()
        for left, right in chosen:
            kind, rules = kind_of(Problem(left, right), given.seconds)
            own[kind] += 1
            used.update(rules)
        kinds.update(own)
        counts = ", ".join(f"{number} {kind}" for kind, number in own.items())
        rows.append(f"| {name} | {count} | {len(pairs)} | {len(chosen)} | {counts} |")
        print(rows[-1], f"{time.process_time() - start:.0f} s", file=sys.stderr, flush=True)
    text = f"# {(__doc__ or '').splitlines()[0]}\n\n"
    text += f"{sum(kinds.values())} pairs, {given.seconds:g} s for each: {dict(kinds)}.\n\n" + "\n".join(rows) + "\n\n"
    text += (
        "| rule | pairs |\n|---|---|\n"
        + "\n".join(f"| {name} | {number} |" for name, number in used.most_common())
        + "\n"
    )
    put_page(text, given.output)


if __name__ == "__main__":
    main()
