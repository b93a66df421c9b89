"""Random statements that two plans are equal, held against products of matrices through both.

Units of e2m1 products with e4m3 sums, of which matrices of random bits meet most cases; stages within stages; the
second plan is the first one with one or two things changed, such as a unit, an order or a number, so that half of the
pairs are equal. A verdict `equal` for every multiple of a K is tried at six of these, or both plans refuse it.

`python -m benchmarks.plan_statements [--count 500] [--first 0] [--timeout 15] [--odd] [-o FILE]`
"""

from __future__ import annotations

import math
import random
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchmarks.campaign import parser, which
from mmaprobe.queries.plans.equal import prove_plans
from mmaprobe.queries.search.distinguish import Options
from mmaprobe.smtmodel.arithmetic.formats import FORMATS
from mmaprobe.smtmodel.base.errors import FaultError, InputError, ParameterError
from mmaprobe.smtmodel.evaluate.model import Model
from mmaprobe.smtmodel.plans import Plan
from mmaprobe.smtmodel.plans.gemm import simulate
from mmaprobe.smtmodel.plans.planfile import parse_plan
from mmaprobe.smtmodel.units.unitfile import parse_unit

UNITS = {
    "fma": (1, "r(exact(a[0] * b[0], c))"),
    "two": (2, "r(exact(a[0:2] * b[0:2], c))"),
    "short": (2, "r(fused(a[0:2] * b[0:2], c, F=3))"),
    "late": (2, "r(exact(r(exact(a[0:2] * b[0:2])), c))"),
    "four": (4, "r(exact(a[0:4] * b[0:4], c))"),
    "ones": (4, "repeat(i in range(4), c, r(exact(a[i] * b[i], acc)))"),
    "pairs": (4, "repeat(i in range(0, 4, 2), c, r(exact(a[i:i + 2] * b[i:i + 2], acc)))"),
    "flush": (1, "f(exact(a[0] * b[0], c))"),
    "cut": (2, "r(cut(fused(a[0:2] * b[0:2], c, F=4), 3, toward_zero, least=-3))"),
}
FORMATS_USED = "formats: {{a: e2m1, b: e2m1, c: e4m3, d: e4m3}}\n"
UNIT = (
    "unit: {name}\n" + FORMATS_USED + "length: {length}\n"
    "roundings:\n  r: round(e4m3, nearest_even)\n  f: round(e4m3, toward_zero, subnormals=flush_before)\n"
    "steps:\n  d: {step}\n"
)
PLAN = "plan: small\n" + FORMATS_USED + "units:\n{units}\nroundings:\n{roundings}\nsteps:\n  d: {step}\n"
MODES = {"r": "nearest_even", "z": "toward_zero", "f": "nearest_away, subnormals=flush_after", "u": "up"}
PLAIN = [name for name in UNITS if name not in ("flush", "cut")]
CHANGES = (
    ("ones", "fma"), ("fma", "ones"), ("pairs", "two"), ("two", "pairs"), ("two", "short"), ("short", "two"),
    ("four", "two"), ("late", "two"), (", order=pairwise", ""), (", grain=2", ""), (", grain=4", ", grain=2"),
    (", order=backwards", ""), (", order=backwards", ", order=pairwise"),
    (", even=4", ""),
    ("promote(8", "promote(4"), ("promote(4", "promote(8"), ("split(2", "split(4"), ("split(4", "split(2"),
    ("fold(2, 2), 2, fold(2, 1)", "fold(4, 1)"), (", head=2", ""),
    ("split([4]", "split([8]"), ("split([8]", "split([4]"),
    ("halve(8", "halve(4"), (", first=smaller", ""),
    (", tail=fma", ""), (", z", ", r"), (", +0)", ", c)"), ("interleave(2", "split(2"),
)  # fmt: skip
#: of statements with `odd` stages, besides
ODD_CHANGES = (
    ("turns(4", "turns(2"), ("turns(2", "turns(4"), ("whole(4", "whole(2"), ("head=fma", "head=two"),
    ("head=", "tail="),
    (", share=2", ""), (", tail=two", ", tail=fma"), (", tail=two", ""), ("promote(6", "promote(4"), (", f)", ", r)"),
    ("flush", "fma"), ("cut", "two"), ("swizzle(2", "swizzle(4"), ("swizzle(4", "swizzle(2"), ("first(2", "first(4"),
    ("first(4", "first(2"),
    ("through(", "add("), ("add(", "promote("), ("promote(split", "add(split"),
    ("turns(8, swizzle(", "turns(4, swizzle("),
)  # fmt: skip
LENGTHS = (None, None, 1, 3, 4, 6, 8, 12, 16, 24)
MULTIPLES = (1, 2, 3, 5, 8)
SIDE = 128  # rows and columns of the matrices
FEW = 48  # of them in tests, where plans that differ do so in many elements


@dataclass(frozen=True)
class Statement:
    """The two are equal for `length` products, or for every multiple of some number."""

    left: str
    right: str
    length: int | None

    def __str__(self) -> str:
        return f"{self.left} | {self.right}; K = {self.length or 'any'}"


def statement(number: int, odd: bool = False) -> Statement:
    """The statement of a number; `odd`: of more stages, and of units and roundings that flush and cut."""
    draw = random.Random(f"odd {number}" if odd else number)
    stage = _odd_stage(draw, 2) if odd else _stage(draw, 2)
    step = draw.choice([f"sum({stage}, c)", f"r(exact(sum({stage}, +0), c))", f"sum({stage}, +0)"])
    changes = CHANGES + ODD_CHANGES if odd else CHANGES
    other = _changed(draw, step, changes)
    if draw.random() < 0.3:
        other = _changed(draw, other, changes)
    return Statement(step, other, draw.choice(LENGTHS))


def _stage(draw: random.Random, depth: int) -> str:
    kinds = ["unit", "unit", "promote", "split", "interleave", "lanes", "halve", "round", "chain"]
    kind = draw.choice(kinds if depth else ["unit", "unit", "chain"])
    if kind == "unit":
        return draw.choice(PLAIN)
    if kind == "chain":
        return f"chain({draw.choice(PLAIN)}, tail={draw.choice(['fma', 'two'])})"
    body, how = _stage(draw, depth - 1), draw.choice("rrrz")
    order = draw.choice(["", ", order=pairwise", ", order=backwards"])
    grain = draw.choice(["", ", grain=2", ", grain=4"])
    match kind:
        case "promote":
            return f"promote({draw.choice([2, 4, 8, 12])}, {body}, {how}{draw.choice(['', '', ', even=4'])})"
        case "split":
            ways = draw.choice(["2", "3", "4", "[4]", "[8]", "[4, 8]"])
            return f"split({ways}, {body}, {how}{order}{grain if ways.isdigit() else ''})"
        case "interleave":
            return f"interleave({draw.choice([2, 4])}, {body}, {how}{order}{grain}{draw.choice(['', ', tail=fma'])})"
        case "lanes":
            folds = draw.choice(["4, fold(2, 2), fold(2, 1)", "4, fold(4, 1)", "4, fold(2, 2), 2, fold(2, 1)"])
            first = draw.choice(["", ", head=2", ", unroll=8, order=backwards", ", grain=2", ", grain=4"])
            tail = draw.choice(["", ", tail=fma"]) if "unroll" not in first else ", tail=fma"
            return f"lanes({body}, {how}, {folds}{first}{tail})"
        case "halve":
            first = draw.choice(["", ", first=smaller"])
            return f"halve({draw.choice([4, 8])}, {body}, {how}{grain}{first})"
    return f"{how}({body})"


def _odd_stage(draw: random.Random, depth: int) -> str:
    """A stage that takes what is left over in one of several ways, within others of its kind and plain ones."""
    if not depth or draw.random() < 0.2:
        return _stage(draw, depth)
    body, number = _odd_stage(draw, depth - 1), draw.choice([2, 3, 4, 6])
    how, left = draw.choice("rzfu"), draw.choice(["fma", "two", "flush", "cut"])
    kinds = [
        f"turns({number}, {body})", f"turns({number}, {body}, tail={left})", f"whole({number}, {body}, tail={left})",
        f"whole({number}, {body}, head={left})", f"promote({2 * number}, {body}, {how}, share=2)",
        f"promote({number}, {body}, {how}, tail={left})", f"chain({draw.choice(list(UNITS))}, tail={left})",
        f"swizzle(2, {body}{draw.choice(['', ', grain=2'])})", f"turns(8, swizzle({draw.choice([2, 4])}, {body}))",
        f"first({number}, {left}, {body})", f"windows({number}, {body}, {how})",
        _joined(draw, body, number, how), _joined(draw, body, number, how),
    ]  # fmt: skip
    return draw.choice(kinds)


def _joined(draw: random.Random, body: str, number: int, how: str) -> str:
    """A partition with a join that is not its usual one."""
    cut = draw.choice(
        [
            f"split({number})",
            f"split({number}, grain=2)",
            "[4]",
            f"interleave({number}, grain=2)",
            f"swizzle({number}, grain=2)",
            f"halve({number}, grain=2)",
            f"windows({number})",
            f"{number}",
        ]
    )
    join = draw.choice(["through", "promote", "add", "add"])
    order = draw.choice(["", ", order=pairwise", ", order=backwards"]) if join == "add" else ""
    return f"{join}({cut}, {body}{'' if join == 'through' else f', {how}'}{order})"


def _changed(draw: random.Random, step: str, every: tuple[tuple[str, str], ...]) -> str:
    changes = [change for change in every if change[0] in step]
    if not changes or draw.random() < 0.1:
        return step
    old, new = draw.choice(changes)
    place = draw.choice([k for k in range(len(step)) if step.startswith(old, k)])
    return step[:place] + new + step[place + len(old) :]


def plan(step: str) -> Plan:
    """The plan of a step. Raises InputError for one that is none."""

    def unit(name: str) -> Model:
        length, text = UNITS[name]
        return Model(name, parse_unit(UNIT.format(name=name, length=length, step=text), f"{name}.yaml"))

    units = "\n".join(f"  {name}: {name}" for name in UNITS if name in step)
    used = [name for name in MODES if f", {name}" in step or f"{name}(" in step.replace("four(", "")]
    roundings = "\n".join(f"  {name}: round(e4m3, {MODES[name]})" for name in used) or "  {}"
    return parse_plan(PLAN.format(units=units, roundings=roundings, step=step), "small.yaml", unit)


@dataclass(frozen=True)
class Outcome:
    """`verdict`: that of the prover; `refused`: the plans cannot be compared; `wrong` where matrices differ under
    `equal`, or an evaluation met the prover's verdict."""

    verdict: str
    seconds: float
    wrong: str = ""


def check(asked: Statement, timeout: float, seed: int) -> Outcome:
    """What the prover says of a statement, held against matrices."""
    start = time.perf_counter()
    try:
        plans = plan(asked.left), plan(asked.right)
        proof = prove_plans(*plans, asked.length, Options(timeout=timeout), confirm=False)
    except (ParameterError, InputError) as error:
        return Outcome("refused", time.perf_counter() - start, "" if str(error) else "no reason is given")
    except FaultError as error:
        return Outcome("fault", time.perf_counter() - start, str(error))
    seconds = time.perf_counter() - start
    wrong = ""
    if proof.verdict == "equal":
        for length in lengths_of(asked, plans, proof.multiples):
            if not agree(*plans, length, seed):
                wrong = f"they differ at K = {length}"
                break
    return Outcome(proof.verdict, seconds, wrong)


def lengths_of(asked: Statement, plans: tuple[Plan, Plan], multiples: int) -> Iterator[int]:
    """Where both are tried: for every K also at one that both take, the tile's. `multiples`: 0 where none is said."""
    tile = math.lcm(*(products.stage.period for side in plans for products in side.sums))
    if asked.length is None:
        yield from ((multiples or tile) * n for n in MULTIPLES)
        yield math.lcm(multiples or tile, tile)
    else:
        yield asked.length


def agree(left: Plan, right: Plan, length: int, seed: int, side: int = SIDE) -> bool:
    """Whether matrices of random bits, most of them zeros in every second case, give the same bits, all NaNs equal, or
    both plans refuse this K."""
    draw = np.random.default_rng((seed, length))
    shapes = (side, length), (length, side), (side, side)
    a, b, c = (
        draw.integers(0, 1 << fmt.width, shape).astype(np.uint64)
        for shape, fmt in zip(shapes, (left.a, left.b, left.c), strict=True)
    )
    c *= left.addend and right.addend
    if seed % 2:
        a[draw.random(a.shape) < 0.6] = 0
    found = []
    for each in (left, right):
        try:
            found.append(simulate(a, b, c, each, engine="numpy"))
        except ParameterError:
            found.append(None)
    one, other = found
    if one is None or other is None:
        return one is other
    nan = FORMATS["e4m3"].sign_bit - 1
    return bool(np.all((one == other) | ((one & nan == nan) & (other & nan == nan))))


def main() -> None:
    assert __doc__ is not None
    options = parser(__doc__, 500, 15.0)
    options.add_argument("--odd", action="store_true", help="of more stages, and of units that flush and cut")
    options.add_argument("-o", "--output", type=Path)
    args = options.parse_args()
    counts: Counter[str] = Counter()
    lines, seconds = [], []
    for number in which(args):
        asked = statement(number, args.odd)
        outcome = check(asked, args.timeout, number)
        counts[outcome.verdict] += 1
        counts["wrong"] += bool(outcome.wrong)
        seconds.append(outcome.seconds)
        if outcome.wrong or outcome.verdict == "unknown":
            lines.append(f"- {number}, {outcome.verdict}{outcome.wrong and ', wrong: ' + outcome.wrong}: `{asked}`")
            print(lines[-1], flush=True)
    found = ", ".join(f"{counts[key]} {key}" for key in ("equal", "different", "unknown", "refused", "fault", "wrong"))
    text = f"{args.count} statements in {sum(seconds):.0f} s (longest {max(seconds):.1f} s): {found}."
    print(text)
    if args.output:
        args.output.write_text(
            "\n".join(["# Random statements about two plans\n", __doc__.strip(), "", text, "", *lines, ""])
        )


if __name__ == "__main__":
    main()
