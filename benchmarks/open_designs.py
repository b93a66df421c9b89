"""Imitations of designs as people publish them (multiply-adders, dot products, matrix units), with their rounding modes
and their oddities, as programs in exact numbers: is each built, or is it said where it differs from the nearest unit?

    python -m benchmarks.open_designs [--only TEXT] [--timeout 120] [-o FILE]
    python -m benchmarks.open_designs --serve NAME

Prints a row for each: what `identify` ends with ("exact" where the unit that it built gives the results of 20,000 new
vectors, "described" with how it is described, "not found"), and the seconds of computing, the device's own too;
--timeout counts these, so that other programs do not. A design that is built and differs on a new vector is "WRONG".
None of these programs is a published one: they were written after what is said of such designs.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np

from benchmarks.library_held import computing
from benchmarks.pages import keep_line
from mmaprobe.cli import main as cli
from mmaprobe.queries.building.shapes import Kind, Shapes
from mmaprobe.smtmodel.evaluate.batch import evaluate_models
from mmaprobe.smtmodel.evaluate.model import Model
from mmaprobe.smtmodel.evaluate.numbers import nans
from mmaprobe.smtmodel.inputs.signature import parse_signature
from mmaprobe.smtmodel.units.unitfile import parse_unit
from tests.oracles.exact_numbers import (
    FORMATS_BITS,
    ZERO,
    N,
    add,
    aligned,
    cut_at,
    mul,
    negated,
    place,
    precise,
    to,
    top,
)
from tests.oracles.programs import Program, Row, products

KINDS: tuple[Kind, ...] = ("middle", "heavy", "small", "large", "anything")
ROWS = 4000
MODES = ("rne", "rtz", "rdn", "rup", "rna")
F16, MIXED, S32, B16 = "f16,f16,f16,f16", "f16,f16,f32,f32", "f32,f32,f32,f32", "bf16,bf16,f32,f32"
DESIGNS: dict[str, Program] = {}


def design(name: str, formats: str, length: int, modes: Sequence[str] = ("rne",)) -> Callable[..., Any]:
    """Adds a design for each rounding mode, the function's last argument."""

    def added(compute: Callable[..., N]) -> Callable[..., N]:
        for mode in modes:
            DESIGNS[f"{name}-{mode}" if len(modes) > 1 else name] = Program(
                formats, length, partial(_with, compute, mode)
            )
        return compute

    return added


def _with(compute: Callable[..., N], mode: str, a: Row, b: Row, c: N) -> N:
    return compute(a, b, c, mode)


def special(terms: Sequence[N]) -> bool:
    return any(x.kind for x in terms)


@design("fma-f16", F16, 1, MODES)
def _(a: Row, b: Row, c: N, mode: str) -> N:
    """A multiply-adder as IEEE has it."""
    return to("f16", add((*products(a, b), c), mode), mode)


@design("fma-bf16", "bf16,bf16,bf16,bf16", 1, ("rdn", "rna"))
def _(a: Row, b: Row, c: N, mode: str) -> N:
    return to("bf16", add((*products(a, b), c), mode), mode)


@design("sorted-jam", MIXED, 2, MODES)
def _(a: Row, b: Row, c: N, mode: str) -> N:
    """Three operands, sorted: the two largest are added, with a sticky bit, normalised, then the third."""
    terms = [*products(a, b), c]
    if special(terms):
        return to("f32", add(terms), mode)
    large, middle, small = sorted(terms, key=lambda x: top(x) if x.m else -100000, reverse=True)
    first = precise(add((large, middle), mode), 50, "odd")
    return to("f32", add((first, small), mode) if first.m or small.m else add(terms, mode), mode)


@design("sorted-sticky", MIXED, 2, MODES)
def _(a: Row, b: Row, c: N, mode: str) -> N:
    """Three operands, sorted and aligned at the largest, two additions, one sticky bit for both that are cut."""
    return _sticky([*products(a, b), c], 50, "f32", mode)


@design("sorted-sticky-short", "e5m2,e5m2,f16,f16", 2, MODES)
def _(a: Row, b: Row, c: N, mode: str) -> N:
    return _sticky([*products(a, b), c], 26, "f16", mode)


def _sticky(terms: Sequence[N], bits: int, fmt: str, mode: str) -> N:
    """In two's complement: what is cut off goes toward minus infinity, and one sticky bit below is ORed of all."""
    if special(terms) or not any(x.m for x in terms):
        return to(fmt, add(terms, mode), mode)
    unit = max(place(x) for x in terms if x.m) - bits
    kept = [cut_at(x, unit, "rtz") for x in terms]
    lost = any(add((x, negated(y))).m for x, y in zip(terms, kept, strict=True))
    total = add(kept, mode)
    if lost:
        size = (abs(total.m) << max(0, total.e - unit) + 1 if total.m else 0) | 1
        total = N(-size if total.neg else size, min(total.e, unit) - 1, total.neg)
    return to(fmt, total, mode)


@design("vector-keeps-sign", MIXED, 4, ("rne", "rtz"))
def _(a: Row, b: Row, c: N, mode: str) -> N:
    """A vector unit: aligned at the largest exponent, zeros count at 2^-126; cut to zero, the sum keeps its sign."""
    terms = [*products(a, b), c]
    if special(terms):
        return to("f32", add(terms), mode)
    cut = aligned(terms, 26, least=-126)
    exact = add(terms)
    return to("f32", cut, mode) if cut.m else N(0, neg=exact.neg)


@design("vector-sign-of-c", MIXED, 4)
def _(a: Row, b: Row, c: N, mode: str) -> N:
    """Aligned at the largest exponent, 2^-14 at least; a sum that is cut to zero has the sign of all terms, if one."""
    terms = [*products(a, b), c]
    if special(terms):
        return to("f32", add(terms), mode)
    cut = aligned(terms, 24, least=-14)
    return to("f32", cut, mode) if cut.m else N(0, neg=all(x.neg for x in terms))


@design("zero-has-one", MIXED, 4)
def _(a: Row, b: Row, c: N, mode: str) -> N:
    """Without a test for zero: the alignment sees a zero factor with the least exponent."""
    terms = [*products(a, b), c]
    if special(terms):
        return to("f32", add(terms), mode)
    at = [(x.at if x.m else -14) + (y.at if y.m else -14) for x, y in zip(a, b, strict=True)]
    at.append(c.at if c.m else -126)
    return to("f32", aligned(terms, 24, least=max(at)), mode)


@design("zero-is-one", F16, 1)
@design("zero-is-one-4", MIXED, 4)
def _(a: Row, b: Row, c: N, mode: str) -> N:
    """The hidden bit is always one: a zero, and subnormals, are normal numbers of the least exponent."""

    def one(x: N, emin: int, bits: int) -> N:
        if x.kind or (x.m and top(x) >= emin):
            return x
        fraction = abs(x.m) << max(0, x.e - (emin - bits + 1)) if x.m else 0
        size = fraction | 1 << bits - 1
        return N(-size if x.neg else size, emin - bits + 1, x.neg, "", emin)

    fmt = "f16" if len(a) == 1 else "f32"
    c = one(c, FORMATS_BITS[fmt][1], FORMATS_BITS[fmt][0])
    return to(fmt, add((*(mul(one(x, -14, 11), one(y, -14, 11)) for x, y in zip(a, b, strict=True)), c)), mode)


def bits_of(x: N, first: int, end: int, precision: int = 8) -> N:
    """Some bits of a bf16 significand, 0 the leading one."""
    if x.kind:
        return x if not first else ZERO
    size, e = abs(x.m), x.e
    whole = size << max(0, e - (top(x) - precision + 1)) if x.m else 0
    low = top(x) - precision + 1 if x.m else 0
    kept = whole & ((1 << precision - first) - 1) & ~((1 << precision - end) - 1)
    return N(-kept if x.neg else kept, low, x.neg)


def flushed(x: N) -> N:
    return N(0, neg=x.neg) if x.m and not x.kind and top(x) < -126 else x


@design("phases", "bf16,bf16,bf16,bf16", 1, ("rne", "rtz"))
@design("phases-f32", B16, 1)
def _(a: Row, b: Row, c: N, mode: str) -> N:
    """Factors of 5 and 3 bits, and of 7 and 1; two of the four products, each rounded to the result."""
    x, y, d = flushed(a[0]), flushed(b[0]), flushed(c)
    for first, end in ((0, 5), (5, 8)):
        d = to("bf16", add((d, mul(bits_of(x, first, end), bits_of(y, 0, 7)))), mode, tiny="before")
    return d


@design("phases-three", "bf16,bf16,bf16,bf16", 1)
def _(a: Row, b: Row, c: N, mode: str) -> N:
    x, y, d = flushed(a[0]), flushed(b[0]), flushed(c)
    for one, other in (((0, 5), (0, 7)), ((5, 8), (0, 7)), ((0, 5), (7, 8))):
        d = to("bf16", add((d, mul(bits_of(x, *one), bits_of(y, *other)))), mode, tiny="before")
    return d


@design("phase-one", "bf16,bf16,bf16,bf16", 1)
def _(a: Row, b: Row, c: N, mode: str) -> N:
    return to("bf16", add((flushed(c), mul(bits_of(flushed(a[0]), 0, 5), bits_of(flushed(b[0]), 0, 7)))), mode,
              tiny="before")  # fmt: skip


@design("fixed-odd", "f16,f16,bf16,bf16", 4, ("rne", "rtz"))
def _(a: Row, b: Row, c: N, mode: str) -> N:
    """Products rounded to odd at 2^-24, a sum truncated to f32, then rounded to bf16."""
    terms = [cut_at(x, -24, "odd") for x in products(a, b)]
    return to("bf16", to("f32", add((*terms, c)), "rtz"), mode)


@design("fixed-odd-f32", MIXED, 4)
def _(a: Row, b: Row, c: N, mode: str) -> N:
    """Products rounded to odd at 2^-30, the sum of products truncated to 24 bits, then c, rounded."""
    terms = [cut_at(x, -30, "odd") for x in products(a, b)]
    return to("f32", add((precise(add(terms), 24, "rtz"), c)), mode)


@design("no-specials", F16, 1)
def _(a: Row, b: Row, c: N, mode: str) -> N:
    """Infinities and NaNs are not known: they are numbers beyond the range; the result overflows to infinity."""

    def number(x: N) -> N:
        return N(-1024 if x.neg else 1024, 6, x.neg, "", 16) if x.kind else x

    found = add((mul(number(a[0]), number(b[0])), number(c)))
    return to("f16", found, mode, over="inf")


@design("hobby-f32", S32, 1)
def _(a: Row, b: Row, c: N, mode: str) -> N:
    """A product truncated to 24 bits, an addition with two guard bits and no sticky bit, truncated, zeros for all that
    is subnormal."""

    def daz(x: N) -> N:
        return ZERO if x.m and not x.kind and top(x) < -126 else x

    p = to("f32", mul(daz(a[0]), daz(b[0])), "rtz", tiny="before", zero="+", over="inf")
    c = daz(c)
    if special((p, c)) or not (p.m and c.m):
        return to("f32", add((p, c)), "rtz", tiny="before", zero="+", over="inf")
    return to(
        "f32", aligned([replace(p, at=top(p)), replace(c, at=top(c))], 25), "rtz", tiny="before", zero="+", over="inf"
    )


@design("lost-carry", F16, 1)
def _(a: Row, b: Row, c: N, mode: str) -> N:
    """Rounding up of a significand of ones does not raise the exponent: the result is half as large."""
    exact = add((mul(a[0], b[0]), c))
    found = to("f16", exact)
    if exact.kind or found.kind or not found.m or not exact.m or top(found) == top(exact):
        return found
    return N(found.m, found.e - 1, found.neg) if top(exact) >= -14 else found


@design("kulisch", MIXED, 4)
def _(a: Row, b: Row, c: N, mode: str) -> N:
    """An accumulator in fixed point: products cut at 2^-20 toward minus infinity, c too, rounded at the end."""
    return to("f32", add([cut_at(x, -20, "rdn") for x in (*products(a, b), c)]), mode)


@design("saturating-kulisch", MIXED, 4)
def _(a: Row, b: Row, c: N, mode: str) -> N:
    """The same of 2^-24, with results that saturate at 2^20."""
    if special((*a, *b, c)):
        return to("f32", add((*products(a, b), c)))
    total = add([cut_at(x, -24, "rtz") for x in (*products(a, b), c)])
    limit = (1 << 44) - 1
    if abs(total.m) * 2.0**total.e >= 2.0**20:
        total = N(-limit if total.neg else limit, -24, total.neg)
    return to("f32", total, mode)


@design("truncated-multiplier", F16, 1)
def _(a: Row, b: Row, c: N, mode: str) -> N:
    """The lowest eight columns of partial products are not formed."""
    if special((*a, *b, c)) or not a[0].m or not b[0].m:
        return to("f16", add((mul(a[0], b[0]), c)))

    def whole(x: N) -> tuple[int, int]:
        low = max(top(x), -14) - 10
        return abs(x.m) << x.e - low, low

    (x, ex), (y, ey) = whole(a[0]), whole(b[0])
    size = sum((x & ~((1 << max(0, 8 - i)) - 1)) << i for i in range(11) if y >> i & 1)
    neg = a[0].neg != b[0].neg
    return to("f16", add((N(-size if neg else size, ex + ey, neg), c)))


@design("far-path", "f32,f32,f32,f32", 1)
def _(a: Row, b: Row, c: N, mode: str) -> N:
    """Where c lies more than 49 places above the product, this is not seen at all: no sticky bit."""
    p = mul(a[0], b[0])
    if special((p, c)) or not p.m or not c.m or top(c) - top(p) <= 49:
        return to("f32", add((p, c), "rup"), "rup")
    return c


@design("late-c-away", B16, 8, ("rna", "rup"))
def _(a: Row, b: Row, c: N, mode: str) -> N:
    """Products aligned and truncated to 26 bits, normalised and rounded to f32, then c."""
    terms = products(a, b)
    if special(terms):
        return to("f32", add((*terms, c)))
    return to("f32", add((to("f32", aligned(terms, 26), mode), c), mode), mode)


@design("tree-rtz", "e4m3,e4m3,bf16,bf16", 8)
def _(a: Row, b: Row, c: N, mode: str) -> N:
    """A tree of f16 sums that truncate, flushed; c joins rounded to odd, then bf16."""
    rest = products(a, b)
    while len(rest) > 1:
        rest = [to("f16", add(rest[k : k + 2]), "rtz", tiny="after") for k in range(0, len(rest), 2)]
    return to("bf16", to("f32", add((rest[0], c)), "odd"))


@design("max-of-exponents-of-pairs", MIXED, 4)
def _(a: Row, b: Row, c: N, mode: str) -> N:
    """Products aligned in pairs, then the pairs and c at their largest exponent, a sticky bit at the end."""
    terms = products(a, b)
    if special((*terms, c)):
        return to("f32", add((*terms, c)))
    pairs = [aligned(terms[k : k + 2], 24) for k in (0, 2)]
    return to("f32", aligned([*pairs, c], 28, sticky=True), mode)


class ThreeWay:
    """The three-way adder: `p` bits of each addend, 2p + 3 of the first sum, 3p + 8 of the second."""

    def __init__(self, source: str, target: str) -> None:
        self.target, (self.p, self.emin) = target, FORMATS_BITS[target]
        self.low, (self.q, _) = 2 - 2 * (1 - self.emin), FORMATS_BITS[source]

    def addend(self, x: N, y: N | None) -> tuple[int, int, bool]:
        """An exponent, p bits, and the sign; a zero product counts far below, a zero accumulator at emin."""
        if y is None:
            e = self.emin if x.at is None else x.at
            return e, abs(x.m) << max(0, x.e - (e - self.p + 1)), x.neg
        if not x.m or not y.m:
            return self.low + self.emin - 1, 0, x.neg != y.neg
        assert x.at is not None
        assert y.at is not None
        left, right = (abs(z.m) << z.e - (z.at - self.q + 1) for z in (x, y) if z.at is not None)
        return x.at + y.at + 1, left * right << self.p - 2 * self.q, x.neg != y.neg

    def of(self, a: Row, b: Row, c: N, mode: str) -> N:
        terms, p = [*products(a, b), c], self.p
        if special(terms):
            return to(self.target, add(terms), mode)
        (e1, m1, s1), (e2, m2, s2), (e3, m3, s3) = sorted(
            (self.addend(a[0], b[0]), self.addend(a[1], b[1]), self.addend(c, None)), key=lambda x: -x[0]
        )
        first, lost1, sign1 = _sum(m1 << p + 3, m2 << 2 * p + 3, min(e1 - e2, 2 * p + 3), p, s1, s2)
        zero = not first and not lost1 and s1 != s2
        sign1 = mode == "rdn" if zero else sign1
        shift = min(e1 + 1 - e3, 3 * p + 8)
        lost2 = bool(m3 << 3 * p + 8 >> shift & (1 << p) - 1)
        if zero and m3 and lost2:  # the smallest alone
            return to(self.target, N(-m3 if s3 else m3, e3 - p + 1, s3), mode)
        second, _, sign = _sum(first << p + 4, m3 << 3 * p + 8, shift, p, sign1, s3)
        size, e = second << 1 | (lost1 or lost2), e1 + 1 - (3 * p + 7) - 1
        if not size:
            return N(0, neg=mode == "rdn" if sign1 != s3 else sign)
        return to(self.target, N(-size if sign else size, e, sign), mode)


def _sum(large: int, small: int, shift: int, p: int, one: bool, other: bool) -> tuple[int, bool, bool]:
    """A sum with a smaller number shifted right, whose last p bits are lost: its size, whether a bit was lost, and the
    sign."""
    kept, lost = small >> shift >> p, bool(small >> shift & (1 << p) - 1)
    total = large + kept if one == other else large - kept - lost
    return abs(total), lost, one != (total < 0) if total else one if one == other else False


for _name, _formats, _source, _target in (
    ("f16-f32", MIXED, "f16", "f32"), ("bf16-f32", B16, "bf16", "f32"),
    ("e5m2-f16", "e5m2,e5m2,f16,f16", "e5m2", "f16"),
):  # fmt: skip
    design(f"three-way-{_name}", _formats, 2, MODES)(ThreeWay(_source, _target).of)


def serve(name: str) -> None:
    one = DESIGNS[name]
    digits = {"f16": 4, "bf16": 4, "f32": 8}[one.formats.split(",")[3]]
    for line in sys.stdin:
        row = json.loads(line)
        sides = [[int(text, 16) for text in row[side]] for side in "ab"]
        sides = [side + [0] * (one.length - len(side)) for side in sides]
        d = one.result(*sides, int(row["c"], 16))
        print(json.dumps({"id": row.get("id"), "d": f"{d:x}".zfill(digits)}), flush=True)


def computed() -> float:
    """Seconds of computing of this process and of those that it has started, also of those that still run."""
    ticks, left = 0, [os.getpid()]
    while left:
        folder = Path("/proc", str(left.pop()))
        with suppress(OSError):
            ticks += sum(map(int, (folder / "stat").read_text().rpartition(")")[2].split()[11:15]))
            left += [int(pid) for task in folder.glob("task/*/children") for pid in task.read_text().split()]
    return ticks / os.sysconf("SC_CLK_TCK")


def identify(arguments: Sequence[str]) -> None:
    """`mmaprobe identify`, whose timeouts count seconds of computing."""
    began, (at, last) = time.perf_counter, (0.0, 0.0)

    def clock() -> float:
        nonlocal at, last
        if began() - at > 0.02:
            at, last = began(), max(last, computed())
        return last

    with patch("time.monotonic", clock):
        cli.main(["identify", *arguments])


def outcome(name: str, seconds: float) -> tuple[str, float, str]:
    """What `identify` ends with; seconds; and a text."""
    one = DESIGNS[name]
    with tempfile.TemporaryDirectory() as folder:
        file, begun = Path(folder, "built.yaml"), computing()
        device = f"command:{sys.executable} -m benchmarks.open_designs --serve {name}"
        command = [sys.executable, "-m", "benchmarks.open_designs", "--identify", "--device", device, "--formats",
                   one.formats, "--length", str(one.length), "--timeout", str(seconds), "--save", str(file),
                   "--json"]  # fmt: skip
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        took = computing() - begun
        if not done.stdout.strip():
            return "error", took, done.stderr.strip()[-200:]
        found = json.loads(done.stdout)
        if file.exists():
            unit = parse_unit(file.read_text(encoding="utf-8"), file.name)
            wrong, count = _wrong(one, unit)
            text = " ".join(str(found["unit"]).split("steps:")[-1].split())
            outcome_text = f"exit {done.returncode}, {len(found.get('undecided', []))} open"
            if wrong:
                return f"WRONG ({wrong} of {count}; {found['verdict']}, {outcome_text})", took, text
            return f"exact ({found['verdict']}, {outcome_text})", took, text
        described = found.get("differs")
        if described is None:
            return f"not found (exit {done.returncode})", took, str(found.get("why") or found.get("stage"))
        text = "; ".join(f"{way['how']} where {' and '.join(way['where'])}" for way in described["ways"])
        inside = f", only where: {described['inside']}" if described.get("inside") else ""
        return f"described (exit {done.returncode}, {described['wrong']} of {described['fresh']}{inside})", took, text


def _wrong(one: Program, unit: Any) -> tuple[int, int]:
    shapes = Shapes(parse_signature(one.formats, one.length), seed=77)
    rows = np.concatenate([shapes.rows(kind, ROWS) for kind in KINDS])
    described, found = one.answers(rows), evaluate_models([Model("built", unit)], rows)[0]
    differ = (described != found) & ~(nans(described, unit.d) & nans(found, unit.d))
    return int(differ.sum()), len(rows)


def main() -> None:
    if sys.argv[1:2] == ["--identify"]:
        identify(sys.argv[2:])
        return
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--serve")
    parser.add_argument("--only", default="")
    parser.add_argument("--timeout", type=float, default=120)
    parser.add_argument("-o", "--output", type=Path)
    given = parser.parse_args()
    if given.serve:
        serve(given.serve)
        return
    for name in DESIGNS:
        if any(text in name for text in given.only.split(",")):
            outcome_text, took, text = outcome(name, given.timeout)
            line = f"| {name} | {outcome_text} | {took:.0f} | {text} |"
            keep_line(line, given.output)


if __name__ == "__main__":
    main()
