"""The products under `emulate`, and the divergences of two machines, as lines of text."""

from __future__ import annotations

from mmaprobe.documents.emulate import Divergence, Emulated, EmulatedProduct
from mmaprobe.smtmodel.base.wording import counted


def size_text(row: EmulatedProduct | Divergence) -> str:
    """The shape of a product, or of several at once."""
    blocks, m, n, k = row.shape
    return f"{m} x {n} x {k}" if blocks == 1 else f"{blocks} of {m} x {n} x {k}"


def emulated_lines(emulated: Emulated) -> list[str]:
    """A table: each operator, shape and plan; then what was native."""
    total = sum(row.count for row in emulated.products)
    lines = [
        f"{emulated.machine}, {emulated.framework}: {counted(total, 'matrix product')} computed as this machine does"
    ]
    for row in emulated.products:
        what = f"{row.operator}{' (gradient)' if row.backward else ''}"
        a, b, d = row.formats
        lines.append(
            f"  {row.count} x {what}  {a} * {b} -> {d}  {size_text(row)}  {', '.join(row.plans)}  [{row.known}]"
        )
        if row.after:
            lines.append(f"      {row.after}")
    evidence = dict.fromkeys((", ".join(row.plans), row.evidence) for row in emulated.products if row.plans)
    lines += [f"  {plan}: {why}" for plan, why in evidence]
    for title, counts in (("as they are", emulated.native), ("as they are by choice, not emulated", emulated.unknown)):
        if counts:
            named = ", ".join(f"{name} {count}" for name, count in sorted(counts.items()))
            lines.append(f"{title}: {named}")
    return lines
