"""Settles every shipped claim and writes the table of docs/claims.md: `python benchmarks/claims.py -o docs/claims.md`.

Two cores are enough; each case has 300 s. The text above the table is kept as it stands in the file.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from hypotheses.claim import claims
from queries.claim_report import document_of
from queries.distinguish import Options
from queries.settle import settle

MARK = "## The shipped claims"
HEAD = "| claim and case | source says | verdict | by | seconds | input |\n|---|---|---|---|---|---|\n"


def by(document: dict[str, Any]) -> str:
    """Who decided."""
    if document["vector"] is not None:
        last = document["asked"][-1]
        return str(last["what"] if not last["answers"] else last["answers"][0].partition(":")[0])
    count, confirmed = len(document["lemmas"]), sum(bool(lemma["confirmed_by"]) for lemma in document["lemmas"])
    engines = sorted({lemma["answer"].partition(":")[0] for lemma in document["lemmas"]})
    return f"{', '.join(engines)}: {count} lemmas, {confirmed} confirmed" if count else "bounds"


def vector_text(vector: dict[str, Any] | None) -> str:
    """The nonzero operands in hex, and the errors in ulps."""
    if vector is None:
        return ""
    pairs = list(dict.fromkeys(f"{a}*{b}" for a, b in zip(vector["a"], vector["b"], strict=True)
                               if int(a, 16) and int(b, 16)))  # fmt: skip
    shown = " + ".join(pairs[:3]) + (" + ..." if len(pairs) > 3 else "")
    c = f" + {vector['c']}" if int(vector["c"], 16) else ""
    errors = ", ".join(f"{name} {found['error_ulps']:.3g} ulp" for name, found in vector["results"].items()
                       if "error_ulps" in found)  # fmt: skip
    return f"`{shown}{c}`: {errors}"


def row(document: dict[str, Any]) -> str:
    cells = (document["id"].replace("|", "\\|"), document["says"], document["verdict"], by(document),
             f"{document['seconds']:.1f}", vector_text(document["vector"]))  # fmt: skip
    return f"| {' | '.join(cells)} |\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("-o", "--output", type=Path, required=True)
    path: Path = parser.parse_args().output
    text = path.read_text(encoding="utf-8").partition(MARK)[0]
    lines = []
    for claim in (case for cases in claims().values() for case in cases):
        options = Options(timeout=300)
        lines.append(row(document_of(settle(claim, options))))
        print(lines[-1], end="", flush=True)
        path.write_text(f"{text}{MARK}\n\n{HEAD}{''.join(lines)}", encoding="utf-8")


if __name__ == "__main__":
    main()
