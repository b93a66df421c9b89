"""The two sides of a counterexample, as tables print them."""

from __future__ import annotations

from collections.abc import Sequence


def results_of(sides: Sequence[str], results: Sequence[str]) -> tuple[str, str]:
    """What the model gives for the input of each side, in hex. Sign symmetry compares d(a, b, c) with -d(-a, b, -c):
    there the second side's own result is the negated one."""
    one, two = results
    if sides[1].startswith("-d("):
        two = f"{int(two, 16) ^ 1 << 4 * len(two) - 1:0{len(two)}x}"
    return one, two
