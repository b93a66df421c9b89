"""Whether the input beside a question, or beside a claim, refutes or decides it: its terms are made again, and
evaluated by the gates that also check proofs, which share no code with what found the input."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from pysmt.fnode import FNode

from hypotheses.claim import Claim
from queries.certificates.bitblast import Blaster, bits_of
from queries.certificates.certificate import CLAIM, WITNESS
from queries.certificates.gates import TRUE
from queries.certificates.magnitudes import need
from queries.certificates.together import refuting_fault
from queries.checking.finding import Contents, Finding, of_file, read_claim
from queries.proof.same import Compared
from queries.proof.undecided import Question
from queries.properties.asked import plain, read_document, read_question
from smtmodel.algebra import Bits


class _Evaluated:
    """Terms, once each symbol has the pattern that is stated of it."""

    def __init__(self, symbols: Sequence[FNode], stated: Mapping[str, str]) -> None:
        self.blaster = Blaster()
        need({symbol.symbol_name() for symbol in symbols} == stated.keys(), "it is no input of the question")
        for symbol in symbols:
            value, width = int(stated[symbol.symbol_name()], 16), symbol.bv_width()
            need(0 <= value < 1 << width, "a pattern does not fit its operand")
            self.blaster.memo[symbol] = bits_of(value, width)

    def holds(self, *terms: FNode) -> bool:
        return all(self.blaster.truth(term) == TRUE for term in terms)

    def pattern(self, bits: Bits) -> str:
        found = self.blaster.bits(bits.node)
        return f"0x{sum((bit == TRUE) << place for place, bit in enumerate(found)):0{(len(found) + 3) // 4}x}"


@of_file(WITNESS)
def witness(folder: Path, contents: Contents) -> Iterator[Finding]:
    """Whether the input is admitted, and decides what it is said to decide."""
    stated = read_document(folder / WITNESS)
    if CLAIM in contents.files:
        claim = read_claim(folder, Claim)
        asked = Question(claim)
        decides = _Evaluated(asked.symbols, stated["values"]).holds(asked.assumed, asked.fits.node, asked.goal.node)
        says = {"all": "refutes", "exists": "shows"}[claim.quantifier]
        yield Finding(WITNESS, f"an admitted input that {says}: {claim.text}" if decides else
                      "it is not admitted, or does not decide the claim", "fine" if decides else "fault")  # fmt: skip
        return
    problem = read_question(folder, WITNESS)
    units = {"left": plain(problem.left.unit), "right": plain(problem.right.unit)}
    if fault := refuting_fault(stated | units):
        yield Finding(WITNESS, fault, "fault")
        return
    compared = Compared(problem, "select")
    found = _Evaluated(compared.symbols, stated["values"])
    if not found.holds(*compared.assertions, compared.differ.node):
        yield Finding(WITNESS, "it is not admitted, or the two sides do not differ on it", "fault")
        return
    results = (f"{side} gives {found.pattern(one.d)}"
               for side, one in zip(problem.sides, (compared.left, compared.right), strict=True))  # fmt: skip
    yield Finding(WITNESS, f"not {stated['property']}: on this input {', '.join(results)}")
