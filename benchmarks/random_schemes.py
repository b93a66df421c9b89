"""Random algorithms in words over small formats, and the largest errors that they have: all inputs are evaluated.

Words, pairs of them, orders, scales, sums outside of the unit and their chains; units that align, chain or sum exactly,
with roundings of every mode. What is proved of a scheme is a share of the sum of magnitudes; the truth is the largest
share of all inputs, by the claim's own evaluation, which does not use the unit that the proof is about.

With `--lengths` of the same schemes what is proved for every number of products, compared with inputs of one period and
of two: with all of them where they are few.

`python -m benchmarks.random_schemes [--count 200] [--first 0] [--lengths]`
"""

from __future__ import annotations

import random
import time
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from benchmarks.campaign import claim_of, parser, which
from benchmarks.statements import grid_of
from mmaprobe.hypotheses.claim import Claim, Largest
from mmaprobe.queries.claims.maximise import _Search
from mmaprobe.queries.claims.samples import claim_rows
from mmaprobe.queries.claims.shares import within_lengths, within_of
from mmaprobe.queries.kernel.bounds.unit_shares import Errs, ErrsUpTo, share_claim
from mmaprobe.queries.kernel.theorem import RuleError
from mmaprobe.queries.properties.bound import Settle
from mmaprobe.queries.search.distinguish import Options
from mmaprobe.smtmodel.base.errors import InputError

INPUTS = 1 << 13  # of one scheme, at most
UNIT = """unit: {name}
formats: {{a: {word}, b: {word}, c: e5m6_ieee, d: e5m6_ieee}}
length: {length}
inputs: {{subnormals: {subnormals}}}
roundings: {{r: "round(e5m6_ieee, {mode}{tiny})"}}
steps:
  d: {step}
"""
STEPS = (
    "r(exact({terms}, c))", "r(fused({terms}, c, F={bits}))", "r(fused({terms}, c, F={bits}, rounding={how}))",
    "repeat(i in range({length}), c, r(exact(a[i] * b[i], acc)))", "r(exact(r(exact({terms})), c))",
)  # fmt: skip
MODES = ("nearest_even", "toward_zero", "nearest_away", "up", "down", "to_odd")


@dataclass(frozen=True)
class Scheme:
    """A part of a claim, as text, about all inputs of a window."""

    text: str
    claim: Claim


def make(number: int, folder: Path) -> Scheme:
    """A scheme of few enough inputs."""
    rng = random.Random(number)
    while True:
        try:
            if (found := _drawn(rng, folder / f"scheme-{number}.yaml")) is not None:
                return found
        except InputError:  # not every scheme takes every window
            continue


def _drawn(rng: random.Random, path: Path) -> Scheme | None:
    length = rng.choice((1, 2, 2, 3))
    terms, how = ", ".join(f"a[{k}] * b[{k}]" for k in range(length)), rng.choice(MODES)
    step = rng.choice(STEPS).format(terms=terms, bits=rng.randint(4, 8), how=how, length=length)
    path.write_text(UNIT.format(
        name=path.stem, word=rng.choice(("e5m2_ieee", "e5m1_ieee", "e5m1_ieee", "e4m1_ieee")), length=length, step=step,
        mode=rng.choice(MODES), subnormals=rng.choice(("keep", "keep", "zero")),
        tiny=rng.choice(("", "", ", subnormals=flush_after", ", subnormals=flush_before")),
    ))  # fmt: skip
    words = rng.choice((1, 2, 2, 2, 3))
    kept = rng.choice(
        [sum(i + j <= level for i in range(words) for j in range(words)) for level in range(2 * words - 1)]
    )
    scale = rng.choice((0, 0, 3, 4)) if words > 1 else 0
    given = {
        "unit": f"({path})", "source": "f16", "words": words, "products": kept, "split": rng.choice(MODES[:3]),
        "scale": scale, "sums": "by_size" if scale else rng.choice(("one", "by_size")),
        "order": rng.choice(("small_first", "large_first")), "loop": rng.choice(("products", "tiles")),
        "chain": rng.choice(("all", 1, 2)), "addend": rng.choice(("unit", "first", "last")),
    }  # fmt: skip
    part = "multiword@" + ",".join(f"{name}={value}" for name, value in given.items())
    count = rng.choice((1, 1, 2))
    low = rng.randint(-4, 2)
    factors, width = rng.choice((("e4m3", 2), ("e4m3", 1), ("e3m4_ieee", 0)) if count == 1 else (("e3m2", 0),))
    window = [low, low + width] if factors == "e4m3" else [rng.randint(-1, 2)] * 2
    addend = rng.choice(("zero", [window[0], window[0]]))
    data = {
        "id": path.stem, "about": "a random scheme", "source": "benchmarks", "says": "nothing", "expect": "holds",
        "terms": count, "inputs": {"format": factors, "a": window, "b": window, "c": addend}, "parts": {"p": part},
        "claim": "error(p) <= 0 * magnitude_sum()",
    }  # fmt: skip
    claim = claim_of(data, str(path))
    assert isinstance(claim, Claim)
    return Scheme(f"{part}: {path.read_text()} {data['inputs']}", claim) if _size(claim) <= INPUTS else None


def _patterns(claim: Claim) -> list[list[int]]:
    """What each operand of a claim may be."""
    window, terms, found = claim.shape.window, claim.terms, []
    for fmt, (low, high) in zip(
        claim.layout.formats, [window.a] * terms + [window.b] * terms + [window.c], strict=True
    ):
        normal = range(low + fmt.bias << fmt.fraction, high + fmt.bias + 1 << fmt.fraction)
        ends = [x << fmt.padding for x in normal if x <= fmt.largest_field]
        found.append([0, *ends, *(x | fmt.sign_bit for x in ends)])
    if claim.zero_addend:
        found[-1] = [0]
    return found


def _size(claim: Claim) -> int:
    return int(np.prod([float(len(one)) for one in _patterns(claim)]))


def largest(claim: Claim) -> Fraction:
    """The largest share of the sum of magnitudes that an error is, of all inputs on which the result is a number."""
    wanted = share_claim(claim.assertion)
    search = _Search(claim, Largest(wanted.compared, wanted.against, ()), Options())
    return max(search._values(grid_of(_patterns(claim))))


def proved(scheme: Scheme, settle: Settle) -> Fraction | str:
    """The share that is proved, or why there is none."""
    try:
        goal = within_of(scheme.claim, settle)[0].goal
    except RuleError as error:
        return str(error)
    assert isinstance(goal, Errs)
    return goal.share


@dataclass
class Compared:
    """What is proved of a scheme for every number of products, held against inputs: how many numbers of products were
    compared with all their inputs, and what is wrong."""

    whole: int = 0
    ratio: float = 0.0
    wrong: str = ""


def compared_lengths(scheme: Scheme, settle: Settle) -> Compared | str:
    """What is proved for every multiple of the period, compared; or why nothing is proved."""
    claim, found = scheme.claim, Compared()
    first = claim.shape.parts["p"].plan.sums[0].stage.period
    several = replace(claim, assertion=replace(claim.assertion, terms=first, most=8 * first))
    try:
        goal = within_lengths(several, settle)[0].goal
    except RuleError as error:
        return str(error)
    assert isinstance(goal, ErrsUpTo)
    for times in (1, 2, 8):
        own = several.at(times * first)
        whole, wanted = _size(own) <= INPUTS, share_claim(own.assertion)
        table = grid_of(_patterns(own)) if whole else claim_rows(own, 4096, times)
        search = _Search(own, Largest(wanted.compared, wanted.against, ()), Options())
        most = max(search._values(table))
        share = goal.shares[0] + (goal.shares[1] - goal.shares[0]) * Fraction(times - 1, 7)
        found.whole += whole
        if most > share or search.worst.left_out:
            found.wrong = f"K = {own.terms}: {share} is proved, {most} reached, {search.worst.left_out} no numbers"
        found.ratio = max(found.ratio, float(most / share) if share else 0.0)
    return found


def of_lengths(chosen: range) -> None:
    from tests.said import believed

    start, refused, every = time.monotonic(), list[str](), list[Compared]()
    with TemporaryDirectory() as folder:
        for number in chosen:
            scheme = make(number, Path(folder))
            found = compared_lengths(scheme, believed)
            if isinstance(found, str):
                refused.append(f"{number}: {found}")
                continue
            every.append(found)
            if found.wrong:
                print(f"WRONG {number}: {found.wrong}: {scheme.text}", flush=True)
    wrong, whole = sum(bool(one.wrong) for one in every), sum(one.whole for one in every)
    spent, ratios = time.monotonic() - start, sorted(one.ratio for one in every)
    print(f"{len(chosen)} schemes for every K in {spent:.0f} s: {wrong} wrong, {len(refused)} refused; "
          f"{whole} K with all inputs; reached / proved: median {ratios[len(ratios) // 2]:.2f}")  # fmt: skip
    print("\n".join(refused))


def main() -> None:
    from tests.said import believed

    options = parser((__doc__ or "").partition("\n")[0], 200)
    options.add_argument("--lengths", action="store_true")
    given = options.parse_args()
    if given.lengths:
        of_lengths(which(given))
        return
    ratios, refused, wrong, start = [], [], 0, time.monotonic()
    with TemporaryDirectory() as folder:
        for number in which(given):
            scheme = make(number, Path(folder))
            share, most = proved(scheme, believed), largest(scheme.claim)
            if isinstance(share, str):
                refused.append(f"{number}: {share}")
            elif share < most:
                wrong += 1
                print(f"WRONG {number}: {share} is proved, {most} is reached: {scheme.text}", flush=True)
            elif most > 0:
                ratios.append(float(share / most))
    ratios.sort()
    spent, middle, most_of = time.monotonic() - start, ratios[len(ratios) // 2], ratios[len(ratios) * 9 // 10]
    print(f"{given.count} schemes in {spent:.0f} s: {wrong} wrong, {len(refused)} refused")
    print(f"proved / reached: median {middle:.2f}, nine of ten below {most_of:.2f}")
    print("\n".join(refused))


if __name__ == "__main__":
    main()
