"""Random pairs of small models, each with so few inputs that evaluating all of them tells whether the two differ.

The verdicts of `prove` (and of `distinguish` for some) are held against that truth, and the evaluation itself against
the exact rationals of tests/oracles/oracle.py. Half of the pairs are equal, which no solver had a part in choosing.

`python -m benchmarks.small_pairs [--count 500] [--first 0] [--timeout 60] [-o benchmarks/small_pairs.md]`
"""

from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.campaign import parser, which
from benchmarks.pages import put_page
from mmaprobe.queries.equality.staged import prove
from mmaprobe.queries.kernel.questions.problem import Problem
from mmaprobe.queries.search.distinguish import Options, distinguish
from mmaprobe.queries.search.witness import Witness
from mmaprobe.queries.tactics.records import Proof
from mmaprobe.smtmodel.arithmetic.formats import FORMATS
from mmaprobe.smtmodel.base.errors import ParameterError
from mmaprobe.smtmodel.evaluate.batch import evaluate_batch
from mmaprobe.smtmodel.evaluate.model import Model
from mmaprobe.smtmodel.families.member import FUNCTIONS, Member, nvidia_nan
from mmaprobe.smtmodel.families.parameters import FAMILY
from mmaprobe.smtmodel.inputs.admitted import Compare, ExponentRange, Inputs
from mmaprobe.smtmodel.tables.reference import member_of
from tests.oracles import oracle
from tests.oracles.family_oracle import parameters_of

Table = NDArray[np.uint64]
Flags = NDArray[np.bool_]

LARGEST, USUAL = 1 << 20, 1 << 16  # inputs of one pair: of some, of most
FORMATS8 = ("e4m3", "e5m2", "e4m3fnuz", "e5m2fnuz", "e3m2", "e2m3", "e2m1")
#: formats of a, b, c and the number of products
SHAPES = (
    *((a, "e2m1", c, 1) for a in ("e2m1", "e3m2") for c in FORMATS8),
    *((a, a, c, 1) for a in ("e3m2", "e2m3") for c in ("e3m2", "e2m3")),
    *((a, "e2m1", c, 1) for a in FORMATS8[:5] for c in ("e2m1", "e3m2")),
    *((a, a, "e2m1", 1) for a in FORMATS8[:4]),
    *(("e2m1", "e2m1", c, 2) for c in ("e2m1", "e2m1", "e2m1", *FORMATS8)),
    *((a, "e2m1", "e2m1", 2) for a in ("e3m2", "e2m3")),
)
ROUNDED = ("rounded_e5m2", "rounded_f16", "rounded_bf16")
#: the values that parameters are drawn from
CHOICES: dict[str, tuple[Any, ...]] = {
    "block": (0, 1),  # 0: all products
    FAMILY: (
        *("t-fdpa",) * 4,
        "emulated-fp8",
        "emulated-fp8",
        "tr-fdpa",
        "gtr-fdpa",
        "e-fdpa",
        "fma-chain",
        "ftz-addmul",
    ),
    "fraction_bits": (*range(1, 15), "exact"),
    "carry_bits": ("exact", "exact", 0, 1, 2, 3, 4),
    "product": ("unnormalised", "normalised", *ROUNDED),
    "product_rounding": tuple(oracle.ROUND),
    "product_overflow": (None, None, None, 0, 2, 3, 5),
    "align_rounding": ("toward_zero", *oracle.ROUND, "sticky"),
    "late_fraction_bits": tuple(range(1, 13)),
    "late_rounding": ("down", *oracle.ROUND),
    "late_small_addend": ("keep", "cut"),
    "block_order": ("contiguous", "contiguous", ((1,), (0,))),
    "group": (1, 2),
    "partials": ("unnormalised", "unnormalised", "normalised"),
    "exponent_floor": (None, None, *range(-12, 4, 2), -3, -1),
    "floor_applies_to": ("zero_terms", "maximum"),
    "output": ("f32", "f16", "f16", "e8m13"),
    "output_rounding": tuple(oracle.ROUND),
    "flush_inputs": (False, False, True),
    "flush_outputs": (False, True),
    "zero_sign": ("positive", "ieee"),
    "overflow": ("infinity", "saturate", "ieee"),
}
#: parameters that seldom matter to such formats; drawn less often, so that the equal pairs are not all of them
OFTEN_EQUAL = ("flush_inputs", "flush_outputs", "output", "overflow", FAMILY, "block_order")
#: parameters of a sum that is cut
CUT = {"fraction_bits", "align_rounding", "carry_bits", "exponent_floor", "floor_applies_to"}
RESTRICTIONS = (
    *(Inputs(),) * 4, Inputs(finite=True), Inputs(finite=True, nonnegative=True), Inputs(nonnegative=True),
    Inputs(finite=True, normal=True), Inputs(finite=True, nonzero=True),
    Inputs(finite=True, exponents=ExponentRange(min=-1, max=2)),
)  # fmt: skip


@dataclass(frozen=True)
class Pair:
    """A problem, the parameters that tell its sides apart, the inputs that count, and how many of them differ."""

    number: int
    problem: Problem
    changed: tuple[str, ...]
    rows: Table
    differing: int

    @property
    def equal(self) -> bool:
        return not self.differing


def draw(rng: np.random.Generator, values: Sequence[Any]) -> Any:
    return values[int(rng.integers(len(values)))]


def random_model(rng: np.random.Generator) -> Model:
    """Any model of a small shape whose parameters go together."""
    a, b, c, length = draw(rng, SHAPES)
    while True:
        function = FUNCTIONS[draw(rng, CHOICES[FAMILY])]
        values = {name: draw(rng, choices) for name, choices in CHOICES.items() if name in function.defaults}
        if "block" in values:
            values["block"] = values["block"] or length
        nan = draw(rng, (None, None, nvidia_nan(FORMATS[values["output"]])))
        try:
            member = function(length=length, nan=nan, **values)
        except ParameterError:
            continue
        return Model.of("small", FORMATS[a], FORMATS[b], FORMATS[c], member)


def read_parameters(member: Member) -> list[str]:
    """The parameters that the unit reads, as far as the others tell."""
    values = member.values
    found = {FAMILY, *(name for name in values if name in CHOICES)} - set(FUNCTIONS[member.family].idle(values))
    if values["length"] == 1:
        found -= {"block", "block_order", "group"}
    if values.get("fraction_bits") == "exact":
        found -= CUT
    if values.get("align_rounding") == "sticky":
        found -= {"exponent_floor", "floor_applies_to"}
    return sorted(found)


def neighbour(rng: np.random.Generator, model: Model) -> tuple[Model, tuple[str, ...]] | None:
    """The model with one parameter changed, or two, and their names; None where the values do not go together."""
    member = member_of(model)
    known = {FAMILY: member.family, **member.values}
    names = [name for name in read_parameters(member) if name not in OFTEN_EQUAL or rng.random() < 0.25]
    chosen = tuple(str(name) for name in rng.permutation(names)[: 1 + (rng.random() < 0.2)])
    values: dict[str, Any] = {}
    for name in chosen:
        old = known[name]
        near = isinstance(old, int) and not isinstance(old, bool) and name not in ("block", "product_overflow")
        options = [old + step for step in (-2, -1, 1, 2)] if near else CHOICES[name]
        values[name] = draw(rng, options)
        if name == "block":
            values[name] = values[name] or model.length
        if values[name] == old:
            return None
    try:
        changed = member.changed(values)
    except ParameterError:
        return None
    return Model.of("small", model.a, model.b, model.c, changed), chosen


@cache
def admitted(fmt: str, inputs: Inputs) -> list[int]:
    """The patterns of a format that count, decoded by the oracle."""
    form, found = oracle.FORMATS[fmt], []
    for pattern in range(2 * (form.ones + 1)):
        x = oracle.decode(fmt, pattern)
        zero = x.kind == "finite" and not x.significand
        normal, window = zero or x.significand >= 1, inputs.exponents
        wrong = (inputs.finite and x.kind != "finite") or (inputs.nonnegative and pattern > form.ones)
        wrong |= (inputs.nonzero and zero) or (inputs.normal and not normal)
        if window is not None and not zero:
            wrong |= not normal or not window.min <= x.exponent <= window.max
        if not wrong:
            found.append(pattern)
    return found


def every_row(model: Model, inputs: Inputs, largest: int = LARGEST) -> Table | None:
    """All inputs that count, in columns a, b, c; None if there are none or too many."""
    names = [*[model.a.name] * model.length, *[model.b.name] * model.length, model.c.name]
    columns = [admitted(name, inputs) for name in names]
    for index in inputs.zero_terms:
        for place in (2 * index,) if index == model.length else (index, model.length + index):
            columns[place] = [0]
    count = int(np.prod([len(column) for column in columns]))
    if not 0 < count <= largest:
        return None
    rest, found = np.arange(count), []
    for patterns in columns:
        found.append(np.array(patterns, dtype=np.uint64)[rest % len(patterns)])
        rest //= len(patterns)
    return np.stack(found, axis=1)


def results(model: Model, rows: Table) -> Table:
    return evaluate_batch(model, rows[:, : model.length], rows[:, model.length : -1], rows[:, -1])


def numbers(patterns: Table, fmt: str) -> NDArray[np.float64]:
    """Results as NumPy's own floating-point numbers; e8m13 travels as f32."""
    narrow, kind = (np.uint16, np.float16) if fmt == "f16" else (np.uint32, np.float32)
    return patterns.astype(narrow).view(kind).astype(np.float64)


def differences(problem: Problem, rows: Table) -> Flags:
    """Where the two results differ as the contract has it."""
    left, right = results(problem.left, rows), results(problem.right, rows)
    x, y = numbers(left, problem.left.d.name), numbers(right, problem.right.d.name)
    both_nan: Flags = np.isnan(x) & np.isnan(y)
    different: Flags = x != y if problem.compare == "value" else left != right
    named = all(model.nan is not None for model in (problem.left, problem.right))
    return different if named and problem.compare == "bits" else different & ~both_nan


def oracle_disagreements(model: Model, rows: Table) -> int:
    """Rows on which the model and the exact rationals differ."""
    parameters = parameters_of(model)
    forms, k = {side: getattr(model, side).name for side in "abcd"}, model.length
    exact = [oracle.evaluate(forms, parameters, row[:k], row[k : 2 * k], row[2 * k]) for row in rows.tolist()]
    ours, theirs, name = results(model, rows), np.array(exact, dtype=np.uint64), model.d.name
    both_nan = np.isnan(numbers(ours, name)) & np.isnan(numbers(theirs, name))
    return int(((ours != theirs) & ~(both_nan & (model.nan is None))).sum())


def make_pair(number: int, largest: int | None = None) -> Pair:
    """The pair of a number: always the same one. Even numbers are equal pairs, odd ones differ, every other one of
    them on few inputs."""
    rng = np.random.default_rng([2026, number])
    largest = largest or (LARGEST if number % 25 < 2 else USUAL)
    while True:
        left, inputs = random_model(rng), draw(rng, RESTRICTIONS)
        if rng.random() < 0.1:
            inputs = inputs.model_copy(update={"zero_terms": (int(rng.integers(left.length + 1)),)})
        rows = every_row(left, inputs, largest)
        if rows is None:
            continue
        some = rows[rng.integers(len(rows), size=1000)]
        for _ in range(12):
            found = neighbour(rng, left)
            if found is None:
                continue
            right, changed = found
            compare: Compare = "value" if left.d != right.d or rng.random() < 0.2 else "bits"
            problem = Problem(left, right, inputs, compare)
            sampled = int(differences(problem, some).sum())
            if sampled > (0, len(some), 0, len(some) // 50)[number % 4]:
                continue
            differing = int(differences(problem, rows).sum())
            most = (0, len(rows), 0, len(rows) // 200)[number % 4]
            if differing <= most and (differing > 0) == (number % 2 == 1):
                return Pair(number, problem, changed, rows, differing)


def describe(pair: Pair) -> str:
    """The parameters that are read, what changed, and the inputs that count."""
    left, right = pair.problem.left, pair.problem.right
    members = [member_of(model) for model in (left, right)]
    names = [name for name in (*read_parameters(members[0]), "nan") if name != FAMILY]
    values = {name: members[0].text(name) for name in (FAMILY, *names)}
    text = ", ".join(f"{name}={value}" for name, value in values.items())
    edits = [f"{n}: {values[n]} -> {members[1].text(n)}" for n in pair.changed]
    inputs = pair.problem.inputs.model_dump(exclude_defaults=True)
    shape = f"{left.length} x {left.a.name} {left.b.name} + {left.c.name}"
    return f"{shape}; {text}; {'; '.join(edits)}; {inputs or 'all inputs'}, by {pair.problem.compare}"


@dataclass
class Result:
    """What the tool said about a pair: `found` by `distinguish`, if asked; `checked` evaluations by the oracle."""

    pair: Pair
    proof: Proof
    found: str | None
    seconds: tuple[float, float]
    trouble: list[str]
    checked: int

    @property
    def verdicts(self) -> list[str]:
        return [self.proof.verdict, *([self.found] if self.found else [])]

    @property
    def decider(self) -> str:
        """simulation, a solver, or one term."""
        if self.proof.witness is not None:
            return "a solver" if self.proof.tried else "simulation"
        return "a solver" if self.proof.lemmas else "one term"


def check(pair: Pair, timeout: float, oracle_rows: int = 200) -> Result:
    """Ask the tool about a pair, and compare with the truth."""
    solver = "z3" if pair.number % 10 in (4, 7) else "bitwuzla"
    options, trouble = Options(solver, timeout), []
    start = time.monotonic()
    proof = prove(pair.problem, options, confirm=False)
    middle = time.monotonic()
    witnesses, found = [proof.witness], None
    if pair.number % 8 in (0, 3):
        outcome = distinguish(pair.problem, options)
        found, witnesses = outcome.verdict, [*witnesses, *outcome.witnesses]
    end = time.monotonic()
    wanted = "equal" if pair.equal else "different"
    for name, verdict in (("prove", proof.verdict), ("distinguish", found)):
        if verdict not in (None, "unknown", wanted):
            trouble.append(f"{name} says {verdict}, {pair.differing} of {len(pair.rows)} inputs differ")
    for witness in witnesses:
        trouble += [] if witness is None else _check_witness(pair, witness)
    rng = np.random.default_rng(pair.number)
    whole = len(pair.rows) <= oracle_rows
    rows = pair.rows if whole else pair.rows[rng.integers(len(pair.rows), size=oracle_rows)]
    for model in (pair.problem.left, pair.problem.right):
        if wrong := oracle_disagreements(model, rows):
            trouble.append(f"the oracle differs on {wrong} of {len(rows)} inputs")
    return Result(pair, proof, found, (middle - start, end - middle), trouble, 2 * len(rows))


def _check_witness(pair: Pair, witness: Witness) -> Iterator[str]:
    """A witness must count, and the oracle must give its two results."""
    row = np.array([witness.operands.every], dtype=np.uint64)
    if not (pair.rows == row).all(axis=1).any():
        yield f"witness {row.tolist()} does not count"
    if not differences(pair.problem, row)[0]:
        yield f"witness {row.tolist()} does not differ"
    for model, result in ((pair.problem.left, witness.left), (pair.problem.right, witness.right)):
        if oracle_disagreements(model, row) or int(results(model, row)[0]) != result:
            yield f"witness {row.tolist()}: the oracle gives another result"


def report(outcomes: Sequence[Result], seconds: float) -> str:
    """The counts and times in Markdown."""
    asked = [verdict for outcome in outcomes for verdict in outcome.verdicts]
    wrong = sum(bool(outcome.trouble) for outcome in outcomes)
    lines = [
        f"# {(__doc__ or '').splitlines()[0]}",
        f"{len(outcomes)} pairs in {seconds:.0f} s, {sum(len(o.pair.rows) for o in outcomes)} inputs evaluated on both "
        f"sides; {len(asked)} verdicts, {asked.count('unknown')} unknown; {wrong} pairs with a disagreement. "
        f"{sum(o.checked for o in outcomes)} evaluations held against the oracle, and every witness.",
        "| pairs | number | prove: simulation | prove: a solver | prove: one term | unknown | prove, s | longest, s "
        "| distinguish asked | unknown | s | longest, s |\n|" + "---|" * 12,
    ]
    for name, equal in (("equal", True), ("different", False)):
        chosen = [outcome for outcome in outcomes if outcome.pair.equal == equal]
        deciders = Counter(outcome.decider for outcome in chosen if outcome.proof.verdict != "unknown")
        cells: list[object] = [name, len(chosen), *(deciders[who] for who in ("simulation", "a solver", "one term"))]
        cells += [sum(o.proof.verdict == "unknown" for o in chosen), *_times([o.seconds[0] for o in chosen])]
        searched = [outcome for outcome in chosen if outcome.found]
        cells += [len(searched), sum(o.found == "unknown" for o in searched), *_times([o.seconds[1] for o in searched])]
        lines[-1] += "\n| " + " | ".join(map(str, cells)) + " |"
    rare = sum(0 < o.pair.differing <= len(o.pair.rows) / 1000 for o in outcomes)
    lines.append(f"{rare} of the different pairs differ on one input in a thousand or fewer.")
    changed = Counter(name for outcome in outcomes for name in outcome.pair.changed)
    lines.append("Parameters changed: " + ", ".join(f"{name} {count}" for name, count in changed.most_common()) + ".")
    odd = [o for o in outcomes if o.trouble or "unknown" in o.verdicts]
    lines += [f"- {o.pair.number}: {o.verdicts}; {describe(o.pair)}; {'; '.join(o.trouble)}" for o in odd]
    return "\n\n".join(lines) + "\n"


def _times(seconds: Sequence[float]) -> tuple[str, str]:
    return f"{sum(seconds):.0f}", f"{max(seconds, default=0.0):.1f}"


def main() -> None:
    options = parser(__doc__, 500, 60.0)
    options.add_argument("--minutes", type=float, default=0.0, help="start no pair after so long")
    options.add_argument("-o", "--output", type=Path)
    arguments = options.parse_args()
    outcomes, start = [], time.monotonic()
    for number in which(arguments):
        if arguments.minutes and time.monotonic() - start > 60 * arguments.minutes:
            break
        outcome = check(make_pair(number), arguments.timeout)
        outcomes.append(outcome)
        pair, took = outcome.pair, " ".join(f"{x:.1f}" for x in outcome.seconds)
        print(number, f"{pair.differing}/{len(pair.rows)}", *outcome.verdicts, outcome.decider, took, describe(pair),
              *outcome.trouble, sep=" | ", file=sys.stderr, flush=True)  # fmt: skip
    text = report(outcomes, time.monotonic() - start)
    put_page(text, arguments.output)
    sys.exit(1 if any(outcome.trouble for outcome in outcomes) else 0)


if __name__ == "__main__":
    main()
