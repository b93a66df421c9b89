"""Sums of scale blocks, times their scale factors, keep the order of the sums.

Solvers find it hard to see that a multiplication keeps an order; that one by a constant does is easy. So it is proved
for each significand that the scale can have.
"""

from __future__ import annotations

from collections.abc import Sequence

from queries.properties.monotone.ledger import NamedFacts
from queries.properties.monotone.steps import absolute, implies, signed
from smtmodel.algebra import Bits, all_of, any_of
from smtmodel.decode import Term, multiply


def scaled_order(
    ledger: NamedFacts, name: str, totals: Sequence[Bits], rises: str, terms: Sequence[Term], factors: Sequence[Term]
) -> str:
    """The name of the fact that the two terms are ordered: sums (in two's complement, of which `rises` says that the
    first is not above the second) times the product of two scale factors. Raises UnprovedError."""
    sums, scaled = [absolute(total) for total in totals], [term.significand for term in terms]
    both = [~totals[0].msb() & ~totals[1].msb(), totals[0].msb() & totals[1].msb()]
    claim = implies(both[0], sums[0].ule(sums[1])) & implies(both[1], sums[1].ule(sums[0]))
    used = [rises, ledger.establish(f"{name}: magnitudes of the sums", claim, totals, [rises])]
    kept = [implies(sums[x].ule(sums[y]), scaled[x].ule(scaled[y])) for x, y in ((0, 1), (1, 0))]
    kept += [implies(~total.any(), ~product.any()) for total, product in zip(sums, scaled, strict=True)]
    scale, (left, right) = multiply(*factors).significand, (factor.significand for factor in factors)
    values = sorted({x * y for x in range(1 << left.width) for y in range(1 << right.width)})
    some = any_of([scale.equals(value) for value in values])
    used.append(ledger.establish(f"{name}: what scales can be", some, [left, right]))
    for value in values:
        text = f"{name}: the order of sums times {value}"
        used.append(ledger.establish(text, implies(scale.equals(value), all_of(kept)), [*sums, scale]))
    numbers = [signed(term.sign, term.significand, term.significand.width + 1) for term in terms]
    cuts: list[Bits] = [*totals, *scaled, scale]
    return ledger.establish(f"{name}: scaled sums are ordered", numbers[0].sle(numbers[1]), cuts, used)
