"""The two sides of a counterexample, as tables print them."""

from __future__ import annotations

from typing import Any


def results_of(proof: dict[str, Any]) -> tuple[str, str]:
    """What the model gives for the input of each side, in hex. Sign symmetry compares d(a, b, c) with -d(-a, b, -c):
    there the second side's own result is the negated one."""
    one, two = proof["vector"]["results"]
    if proof["sides"][1].startswith("-d("):
        two = f"{int(two, 16) ^ 1 << 4 * len(two) - 1:0{len(two)}x}"
    return one, two
