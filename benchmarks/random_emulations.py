"""Random emulations over tiny formats, and statements about them whose truth is known: all inputs are evaluated.

Slices and residues of a shared power of two: formats of elements, places and roundings of words, which pairs of slices
are kept and in which order, moduli, widths of integers that wrap or saturate, integers held in formats with exponents
whose sums are rounded, factors, some wrong. An oracle in
Python's integers (tests/oracles/emulation_oracle.py) gives every result and the truth of each statement: that no sum
wraps, that errors are within some times the classical bound, that two emulations are equal.

`python -m benchmarks.random_emulations [--count 500] [--first 0] [--timeout 15] [-o FILE]`
"""

from __future__ import annotations

import random
import re
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from benchmarks.campaign import claim_of, parser, which
from benchmarks.pages import keep_row, read_rows
from mmaprobe.queries.claims.decide import decide
from mmaprobe.queries.plans.equal import prove_plans
from mmaprobe.queries.search.distinguish import Options
from mmaprobe.smtmodel.plans.gemm import simulate
from mmaprobe.smtmodel.plans.plan import Plan
from mmaprobe.smtmodel.tables.reference import parse_plan_path
from tests.oracles import emulation_oracle as oracle
from tests.oracles.emulation_oracle import Emulation, Held, Results, Side

UNIT = """unit: {name}
formats: {{a: {word}, b: {word}, c: {sums}, d: {sums}}}
length: 1
roundings: {{r: "round({sums}, {mode})"}}
steps: {{d: "{step}"}}
"""
PLAN = """plan: {name}
formats: {{a: {a}, b: {b}, c: {d}, d: {d}}}
units: {{mma: {name}-unit.yaml}}
roundings: {{q0: "round(int{word}, {a_mode})", q1: "round(int{word}, {b_mode})", w0: "round(int12, {a_mode})",
  w1: "round(int12, {b_mode})", t: "round(f32, nearest_even)", r: "round({d}, nearest_even)",
  h: "round({held}, nearest_even)"}}
words:
{words}
steps:
{steps}
"""
MODES = {True: "toward_zero", False: "nearest_even"}
DIGITS = {"f32": 24, "bf16": 8}
HELD = {4: ("e3m2", "e4m3", "f16"), 5: ("e4m3", "f16"), 6: ("bf16", "f16")}  # what has all integers of so many bits
Truth = tuple[bool, str]


def drawn(rng: random.Random) -> Emulation:
    moduli = rng.choice(((), (), (7, 8, 5), (8, 15), (16, 15, 13)))
    count = rng.randint(1, 3)

    def side() -> Side:
        steps = tuple(rng.choice((1, 2, 2, 3)) for _ in range(count - 1))
        first = rng.randint(0, 4 if moduli else 2)
        return Side(rng.choice(("e2m1", "e2m1", "int3")), rng.random() < 0.5, first, () if moduli else steps,
                    rng.random() < 0.8)  # fmt: skip

    pairs = [(i, j) for i in range(count) for j in range(count) if i + j < rng.choice((1, 2, 3, 4))] or [(0, 0)]
    if rng.random() < 0.3:
        rng.shuffle(pairs)
    word, saturates = rng.choice((4, 5, 6)), rng.random() < 0.3
    sums = rng.choice([bits for bits in (4, 6, 8, 10, 12) if saturates or bits >= 2 * word - 2])
    each = Emulation(
        side(), side(), word, moduli, () if moduli else tuple(pairs), sums, saturates,
        rng.choice((0,) * 8 + (1, -1)), rng.choice((24, 24, 8)),
    )  # fmt: skip
    if rng.random() < 0.7:
        return each
    digits = rng.randint(3, 10)
    held = Held(
        rng.choice(HELD[word]), rng.choice((None, None, digits - 1, digits, digits + 1, 20)), rng.random() < 0.7
    )
    return replace(each, sums=digits, held=held)


def write(each: Emulation, name: str, folder: Path) -> Path:
    """The plan file of an emulation."""
    word, sums, mode, bits = f"int{each.word}", f"int{each.sums}", "toward_zero", each.sums - 2
    wraps = None if each.saturates else f"F={bits}, carry=0, least={bits}"
    if each.held is not None:
        word, sums, mode = each.held.format, f"e5m{each.sums - 1}_ieee", MODES[each.held.cut]
        wraps = None if each.held.kept is None else f"F={each.held.kept}"
    elif each.saturates:
        mode += ", overflow=saturate"
    step = "r(exact(a[0] * b[0], c))" if wraps is None else f"r(fused(a[0] * b[0], c, {wraps}))"
    (folder / f"{name}-unit.yaml").write_text(
        UNIT.format(name=f"{name}-unit", word=word, sums=sums, step=step, mode=mode)
    )
    words = [line for k, side in enumerate((each.a, each.b)) for line in _words(side, "ab"[k], k, each)]
    if each.held is not None:
        words += [f"{word}h: h({word})" for word in re.findall("(?m)^[ab][0-9]+(?=:)", "\n".join(words))]
    powers = [f"shared({x}{', up=true' if side.up else ''})" for x, side in (("a", each.a), ("b", each.b))]
    path = folder / f"{name}.yaml"
    path.write_text(PLAN.format(
        name=name, a=each.a.format, b=each.b.format, word=each.word, a_mode=MODES[each.a.cut], b_mode=MODES[each.b.cut],
        d=next(fmt for fmt, digits in DIGITS.items() if digits == each.digits),
        held=each.held.format if each.held else "f32",
        words="\n".join(f"  {line}" for line in words), steps="\n".join(f"  {line}" for line in _steps(each, *powers)),
    ))  # fmt: skip
    return path


def _words(side: Side, x: str, number: int, each: Emulation) -> Iterator[str]:
    power = f"shared({x}{', up=true' if side.up else ''})"
    start = f"t(product(2**{side.first}, t(product({x}, 1 / {power}))))"
    if each.moduli:
        yield f"{x}_whole: w{number}({start})"
        for k, modulus in enumerate(each.moduli):
            yield f"{x}{k}: q{number}(residue({x}_whole, {modulus}))"
        return
    yield f"{x}_rest0: {start}"
    yield f"{x}0: q{number}({x}_rest0)"
    read = [pair[number] for pair in each.pairs]
    for k, step in enumerate(side.steps[: max(read)], 1):
        yield f"{x}_rest{k}: t(product(2**{step}, t(exact({x}_rest{k - 1}, -{x}{k - 1}))))"
        yield f"{x}{k}: q{number}({x}_rest{k})"


def _steps(each: Emulation, one: str, other: str) -> Iterator[str]:
    held = "h" if each.held else ""
    if each.moduli:
        sums = ", ".join(f"sum(mma(a{k}{held}, b{k}{held}))" for k in range(len(each.moduli)))
        yield f"all: recombined({sums}, moduli=[{', '.join(map(str, each.moduli))}])"
        yield f"total: t(product(2**{each.off - each.a.first - each.b.first}, all))"
    else:
        parts = []
        for k, (i, j) in enumerate(each.pairs):
            place = each.a.first + each.b.first + sum(each.a.steps[:i]) + sum(each.b.steps[:j])
            yield f"t{k}: t(product(2**{each.off - place}, sum(mma(a{i}{held}, b{j}{held}))))"
            parts.append(f"t{k}")
        yield f"total: t(exact({', '.join(parts)}))"
    yield f"d: r(product(t(product(total, {one})), {other}))"


@dataclass(frozen=True)
class Known:
    """An emulation, its plan, and the results of all inputs of one and of two products."""

    name: str
    each: Emulation
    plan: Plan
    results: dict[int, Results]
    wrong: int


def known(number: int, folder: Path) -> Known:
    """The emulation of a number, and on how many inputs its plan gives another result than the oracle."""
    rng, name = random.Random(number), f"emulation-{number}"
    each = drawn(rng)
    plan = parse_plan_path(f"plan:{write(each, name, folder)}")
    results, wrong = {}, 0
    for length in (1, 2):
        found = results[length] = oracle.results(each, length)
        rows, columns = (side.astype(np.uint8) for side in found.sides)
        bits = simulate(rows, np.ascontiguousarray(columns.T), None, plan, engine="numpy").astype(np.uint32)
        wrong += int(np.sum((bits << (0 if each.digits == 24 else 16)).view(np.float32) != found.d))
    return Known(name, each, plan, results, wrong)


# -- statements


def statements(one: Known, rng: random.Random, folder: Path, timeout: float) -> Iterator[tuple[str, str, bool]]:
    """Two of an emulation: what is said, the verdict, and the truth."""
    path = f"plan:{folder / (one.name + '.yaml')}"
    kinds = [partial(_wraps, one, path), partial(_within, one, path), partial(_equal, one, folder, timeout)]
    for kind in rng.sample(kinds, 2):
        yield kind(rng)


def _decided(data: dict[str, object]) -> str:
    head = {"id": "random", "about": "random", "source": "benchmarks", "says": "nothing", "expect": "holds"}
    outcome = decide(claim_of(head | data, "random.yaml"), Options())
    return outcome.verdict if outcome.verdict != "unknown" else f"unknown ({outcome.asked[0]})"


def _wraps(one: Known, path: str, rng: random.Random) -> tuple[str, str, bool]:
    length = rng.choice((1, 2))
    truth = not any((one.results[k].beyond | one.results[k].wide).any() for k in range(1, length + 1))
    data = {"plan": path, "products": length, "wraps": "never"}
    return f"no sum of {length} wraps", _decided(data), truth


def _within(one: Known, path: str, rng: random.Random) -> tuple[str, str, bool]:
    length, times, near = rng.choice((1, 2)), 1 << rng.randint(0, 30), rng.randint(0, 5)
    spans, truth = rng.random() < 0.5, True
    for k in range(1, length + 1) if spans else (length,):
        x = one.results[k]
        meant = np.logical_and.outer(x.most[0] > 0, x.most[1] > 0)
        if spans:
            meant &= np.outer(*x.most) <= 2**near * x.product
        else:
            meant &= np.logical_and.outer(
                *(least * 2**near >= most for least, most in zip(x.least, x.most, strict=True))
            )
        truth &= not (meant & (abs(x.d - x.exact) > times * k * 2.0**-one.each.digits * x.size)).any()
    data = {"plan": path, "products": length, "reach": 4, "classical": times, "span" if spans else "spread": near}
    return f"{'span' if spans else 'spread'} {near}, {times} times, K = {length}", _decided(data), truth


def _equal(one: Known, folder: Path, timeout: float, rng: random.Random) -> tuple[str, str, bool]:
    changed, length = _changed(one.each, rng), rng.choice((1, 2))
    other = parse_plan_path(f"plan:{write(changed, one.name + '-changed', folder)}")
    truth = np.array_equal(one.results[length].d, oracle.results(changed, length).d)
    verdict = prove_plans(one.plan, other, length, Options(timeout=timeout)).verdict
    return (
        f"equal to one changed, K = {length}",
        {"equal": "holds", "different": "refuted"}.get(verdict, verdict),
        truth,
    )


def _changed(each: Emulation, rng: random.Random) -> Emulation:
    """One thing changed, which may change no result."""
    choices = [
        replace(each, a=replace(each.a, cut=not each.a.cut)), replace(each, b=replace(each.b, up=not each.b.up)),
        replace(each, sums=each.sums + 2), replace(each, sums=max(each.sums, 10), saturates=not each.saturates),
        replace(each, word=each.word - 1), replace(each, pairs=each.pairs[::-1]),
    ]  # fmt: skip
    if each.held is not None:
        choices += [
            replace(each, held=None, sums=12, saturates=False),
            replace(each, held=replace(each.held, kept=None)),
        ]
    if len(each.pairs) > 1:
        choices.append(replace(each, pairs=each.pairs[:-1]))
    return rng.choice(choices)


def record(number: int, timeout: float) -> dict[str, object]:
    """What comes of an emulation and its statements: what is said, the verdict, the truth."""
    start = time.monotonic()
    with TemporaryDirectory() as folder:
        one = known(number, Path(folder))
        found = list(statements(one, random.Random(-number - 1), Path(folder), timeout))
    seconds = round(time.monotonic() - start, 1)
    return {"number": number, "differ": one.wrong, "statements": found, "seconds": seconds, "each": str(one.each)}


def main() -> None:
    options = parser(__doc__, 500, 15.0)
    options.add_argument("-o", "--output", type=Path, help="records, a line for each; those that are there are kept")
    given = options.parse_args()
    wanted, records = which(given), {each["number"]: each for each in read_rows(given.output)}
    for number in wanted:
        if number not in records:
            records[number] = record(number, given.timeout)
            if given.output is not None:
                keep_row(records[number], given.output)
    seen = Counter[str]()
    for each in (records[number] for number in wanted):
        seen["results that differ"] += each["differ"]
        for what, verdict, truth in each["statements"]:
            wrong = verdict == ("refuted" if truth else "holds")
            seen[f"{verdict.partition(' ')[0]}, {'true' if truth else 'false'}"] += 1
            seen["wrong"] += wrong
            if wrong or verdict.startswith("unknown") or each["differ"]:
                print(f"- {each['number']}, {verdict}{', WRONG' if wrong else ''}: {what}; {truth}; {each['each']}")
    seconds = [records[number]["seconds"] for number in wanted]
    print(f"{given.count} emulations, {sum(seconds):.0f} s, at most {max(seconds):.0f} s for one: {dict(seen)}")


if __name__ == "__main__":
    main()
