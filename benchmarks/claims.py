"""Settles shipped claims and writes the table of docs/claims.md: `python -m benchmarks.claims -o docs/claims.md`.

Two cores are enough; each case has 300 s. The text above the table is kept as it is in the file; so are the rows
of other claims if some are named: `python -m benchmarks.claims -o docs/claims.md fp8-loses monotonic-addend`.
"""

from __future__ import annotations

import argparse
from itertools import groupby
from pathlib import Path

from benchmarks.sides import results_of
from mmaprobe.documents.parts import ABSENT, Vector
from mmaprobe.documents.prove import PairProof
from mmaprobe.documents.verify import Claim, ClaimVector
from mmaprobe.hypotheses.claim import claims, claims_named
from mmaprobe.hypotheses.unit_claims import PropertyClaim
from mmaprobe.queries.claims.decide import decide
from mmaprobe.queries.search.distinguish import Options
from mmaprobe.smtmodel.base.wording import counted

HEAD = "| claim and case | verdict | by | input |\n|---|---|---|---|\n"


def by(document: Claim) -> str:
    """Who decided."""
    if document.vector is not None or document.counterexample is not None:
        last = document.asked[-1]
        found = [answer.partition(":")[0] for answer in last.answers if ": sat " in answer]
        if found:
            return str(found[-1])
        return str(last.what) if document.counterexample is None else "simulated inputs"
    count, confirmed = len(document.lemmas), sum(bool(lemma.confirmed_by) for lemma in document.lemmas)
    engines = sorted({lemma.answer.partition(":")[0] for lemma in document.lemmas})
    return f"{', '.join(engines)}: {counted(count, 'lemma')}, {confirmed} confirmed" if count else "bounds"


def operands_text(vector: ClaimVector | Vector) -> str:
    """Every operand in hex, in order: `2 x a*b` for two equal products in a row, 0 for one with a zero factor; zero
    products at the end and a zero addend are left out."""
    products = [f"{a}*{b}" if int(a, 16) and int(b, 16) else "0" for a, b in zip(vector.a, vector.b, strict=True)]
    runs = [(product, len(list(run))) for product, run in groupby(products)]
    terms = [product if count == 1 else f"{count} x {product}" for product, count in runs]
    if runs[-1][0] == "0":
        terms.pop()
    terms += [vector.c] if int(vector.c, 16) else []
    return f"`{' + '.join(terms) or '0'}`"


def vector_text(vector: ClaimVector | None) -> str:
    """The operands, and the errors in ulps."""
    if vector is None:
        return ""
    errors = ", ".join(f"{name} {found.error_ulps:.3g} ulp" for name, found in vector.results.items()
                       if found.error_ulps is not ABSENT)  # fmt: skip
    return f"{operands_text(vector)}: {errors}" if errors else operands_text(vector)


def counterexample_text(proof: PairProof, biased: bool) -> str:
    """The operands and the result of each side; of a sum that is biased, no results, as it has one for each of the
    random bits."""
    vector = proof.vector
    assert vector is not None
    if biased:
        return f"{operands_text(vector)}: another mean"
    sides, results = (vector, vector.other_side or vector), results_of(proof.sides, vector.results)
    return ", ".join(f"{operands_text(side)} gives {d}" for side, d in zip(sides, results, strict=True))


def name_text(name: str) -> str:
    """As code, which a narrow window breaks anywhere."""
    return "`" + name.replace("|", "\\|") + "`"


def verdict_text(says: str, verdict: str) -> str:
    """A verdict, and what the source says, if anything."""
    if says == "nothing":
        return verdict
    return f"{verdict}, as the source says" if says == verdict else f"{verdict}; the source says {says}"


def row(document: Claim, biased: bool) -> str:
    proof = document.counterexample
    decisive = vector_text(document.vector) if proof is None else counterexample_text(proof, biased)
    cells = (name_text(document.id), verdict_text(document.says, document.verdict),
             f"{by(document)}, {document.seconds:.1f} s", decisive)  # fmt: skip
    return f"| {' | '.join(cells)} |\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-o", "--output", type=Path, required=True)
    parser.add_argument("names", nargs="*", metavar="CLAIM", help="decide these alone, and keep the other rows")
    arguments = parser.parse_args()
    path: Path = arguments.output
    text, _, table = path.read_text(encoding="utf-8").partition(HEAD)
    shipped = [claim for cases in claims().values() for claim in cases]
    chosen = [claim for name in arguments.names for claim in claims_named(name)] or shipped
    rows = {line.split(" | ")[0][2:]: f"{line}\n" for line in table.splitlines() if arguments.names}
    for claim in chosen:
        biased = isinstance(claim, PropertyClaim) and claim.wanted == "unbiased"
        name = name_text(claim.id)
        rows[name] = row(decide(claim, Options(timeout=300)).document, biased)
        print(rows[name], end="", flush=True)
        lines = [rows[own] for known in shipped if (own := name_text(known.id)) in rows]
        path.write_text(f"{text}{HEAD}{''.join(lines)}", encoding="utf-8")


if __name__ == "__main__":
    main()
