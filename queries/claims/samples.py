"""Inputs for the search of a claim: zeros and normal numbers in its windows, of shapes that algorithms find hard.

Each row has one sampling mode for exponents, one for signs and one for significands: at the ends of a window or
anywhere; one sign or mixed; few words of bits or many. In some rows the second product cancels the first but for a last
bit; in some all products but the first are equal. Numbers that do not meet a comparison about every number of a side
(`abs(a) <= 2`) are replaced by numbers that meet it.
"""

from __future__ import annotations

import ast

import numpy as np
from numpy.typing import NDArray

from mmaprobe.hypotheses.claim import Claim
from mmaprobe.queries.search.samples import Table, with_signs
from mmaprobe.smtmodel.algorithms.scene import Scene
from mmaprobe.smtmodel.arithmetic.formats import FORMATS, Format
from mmaprobe.smtmodel.carriers.algebra import all_of, constant
from mmaprobe.smtmodel.evaluate.batch import lanes, to_integers

BATCH = 4096  # inputs simulated at a time
SHRINK = 30.0  # seconds, at most, in which an input is made small
EACH = ("zero", "nonzero", "nonnegative", "fits", "lacks", "value", "abs", "max")  # functions of numbers of a side


def claim_rows(claim: Claim, count: int, seed: int) -> Table:
    """Patterns of shape (count, columns of the claim's layout)."""
    rng = np.random.default_rng(seed)
    window, terms = claim.shape.window, claim.terms
    modes = rng.integers(0, 1 << 30, (4, count))
    zeros = rng.choice([0.0, 0.0, 0.1, 0.6], count)
    columns: list[Table] = []
    for fmt, bounds in zip(claim.layout.formats, [window.a] * terms + [window.b] * terms + [window.c], strict=True):
        exponent = _exponents(bounds, modes[0], rng)
        fraction = fractions(fmt, modes[1], rng)
        mixed = rng.integers(0, 2, count)
        sign = np.where(modes[2] % 4 == 0, 0, np.where(modes[2] % 4 == 1, len(columns) < terms, mixed))
        fields = (exponent + fmt.bias).astype(np.uint64) << np.uint64(fmt.fraction) | fraction
        pattern = with_signs(fmt, sign, np.minimum(fields, np.uint64(fmt.largest_field)))
        columns.append(np.where(rng.random(count) < zeros, np.uint64(0), pattern))
    for start, name in ((0, "a"), (terms, "b")):
        _replace(claim, name, columns[start : start + terms], rng)
    if terms > 1:
        chosen = modes[3] % 8 == 0
        flipped = columns[0] ^ np.uint64(claim.shape.factors.sign_bit)
        last = rng.integers(0, 2, count).astype(np.uint64) << np.uint64(claim.shape.factors.padding)
        columns[1] = np.where(chosen & (columns[0] != 0), flipped ^ last, columns[1])
        columns[terms + 1] = np.where(chosen & (columns[0] != 0), columns[terms], columns[terms + 1])
    if terms > 2:  # one large product and many small equal products
        alike = modes[3] % 8 == 1
        one = modes[3] % 16 == 9  # the first product equals the small ones as well
        for side in range(0, 2 * terms, terms):
            for k in (*range(2, terms), 0):
                columns[side + k] = np.where(alike if k else one, columns[side + 1], columns[side + k])
    if claim.zero_addend:
        columns[-1] = np.zeros(count, dtype=np.uint64)
    return np.stack(columns, axis=1)


def on_each(tree: ast.expr, side: str) -> bool:
    """Whether a condition is about every number of a side alone."""
    nodes = list(ast.walk(tree))
    named = {node.id for node in nodes if isinstance(node, ast.Name)} - FORMATS.keys() - {*EACH}
    return named == {side} and not any(isinstance(node, ast.Subscript) for node in nodes)


def meets(claim: Claim, side: str, patterns: Table, kind: type[ast.AST] = ast.AST) -> NDArray[np.bool_]:
    """Which numbers of a side meet all conditions on every number of the side, of the conditions with a syntax node of
    this kind."""
    asked = [tree for tree in claim.assertion.conditions
             if on_each(tree, side) and any(isinstance(node, kind) for node in ast.walk(tree))]  # fmt: skip
    if not asked:
        return np.ones(len(patterns), dtype=np.bool_)
    shape, given = claim.shape, lanes(patterns, claim.shape.factors.width)
    zero = constant(given.carrier, 0, given.width)
    a, b = (([given] if side == name else [zero]) for name in "ab")
    scene = Scene(shape, a, b, constant(given.carrier, 0, shape.addend.width))
    met = all_of([scene.truth(tree).yes for tree in asked])
    return to_integers(met, len(patterns)).astype(np.bool_)


def _replace(claim: Claim, side: str, columns: list[Table], rng: np.random.Generator) -> None:
    """Replace numbers that do not meet the comparisons about every number of a side by numbers that meet them."""
    every = np.concatenate(columns)
    met = meets(claim, side, every, ast.Compare)
    if not met.all() and met.any():
        every[~met] = rng.choice(every[met], int((~met).sum()))
        for column, own in zip(columns, np.split(every, len(columns)), strict=True):
            column[:] = own


def mutated(claim: Claim, rows: Table, count: int, rng: np.random.Generator) -> Table:
    """Rows like the given ones: in each row a few operands have a bit changed, or are a neighbouring number or a new
    one; in some rows one product also takes the place of all, or of all but the first."""
    out = rows[rng.integers(0, len(rows), count)]
    fresh = claim_rows(claim, count, int(rng.integers(1 << 31)))
    formats = claim.layout.formats
    for _ in range(3):
        column = rng.integers(0, len(formats) - claim.zero_addend, count)
        for index, fmt in enumerate(formats):
            chosen = np.flatnonzero((column == index) & (rng.random(count) < 0.7))
            if not len(chosen):
                continue
            pattern = out[chosen, index]
            bit = np.uint64(1) << rng.integers(fmt.padding, fmt.field_width, len(chosen)).astype(np.uint64)
            step = np.uint64(1 << fmt.padding)
            choices = [pattern ^ bit, pattern + step, pattern - step, fresh[chosen, index],
                       pattern ^ np.uint64(fmt.sign_bit)]  # fmt: skip
            kept = np.uint64((1 << fmt.width) - 1)
            out[chosen, index] = np.choose(rng.integers(0, len(choices), len(chosen)), choices) & kept
    terms = claim.terms
    copied = np.flatnonzero(rng.random(count) < 0.2)  # one product put in the place of all, or of all but the first
    chosen, first = rng.integers(0, terms, len(copied)), rng.integers(0, 2, len(copied))
    for side in range(0, 2 * terms, terms):
        pattern = out[copied, side + chosen]
        for k in range(terms):
            out[copied, side + k] = np.where(k >= first, pattern, out[copied, side + k])
    return out


def _exponents(bounds: tuple[int, int], modes: NDArray[np.int64], rng: np.random.Generator) -> NDArray[np.int64]:
    low, high = bounds
    count = len(modes)
    anywhere = rng.integers(low, high + 1, count)
    ends = np.where(rng.random(count) < 0.5, low, high)
    one = low + (modes >> 8) % (high - low + 1)
    near = np.clip(one + rng.integers(-1, 2, count), low, high)
    exponents: NDArray[np.int64] = np.choose(modes % 4, [anywhere, ends, near, np.full(count, high)])
    return exponents


def fractions(fmt: Format, modes: NDArray[np.int64], rng: np.random.Generator) -> Table:
    """Fraction fields: random bits, their leading bits alone, one bit set or cleared, leading ones, or words of 11 bits
    whose residuals are large or tiny."""
    count, width = len(modes), fmt.fraction
    bits = rng.integers(0, 1 << width, count, dtype=np.uint64)
    everything = np.uint64((1 << width) - 1)
    kept = np.uint64(width) - np.minimum((modes >> 4) % 13, width).astype(np.uint64)
    leading = bits >> kept << kept
    below = np.uint64(max(width - 10, 0))
    rest = np.uint64((1 << int(below)) - 1)
    ones, half = int(rest), (1 << int(below)) >> 1
    edges = [0, 1, half, ones, max(ones - 1, 0), max(half - 1, 0)]
    edge = rng.choice(np.array(edges, dtype=np.uint64), count)
    words = (bits & ~rest) | (edge & rest)
    few = np.uint64(1) << rng.integers(0, max(width, 1), count).astype(np.uint64)
    few = np.where(rng.random(count) < 0.5, few, everything - few)
    fractions: Table = np.choose(
        modes % 6, [bits, leading, words, words, few & everything, everything & (bits | ~rest)]
    )
    return fractions
