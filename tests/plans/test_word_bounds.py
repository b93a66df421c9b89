"""Bounds of plans with words: of random schemes over tiny formats no result is beyond one, for a given K and for any;
results are those of programs in exact numbers that share no code; rules that are broken are noticed."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mmaprobe.queries.kernel.bounds import enclosures, parts, sums
from mmaprobe.queries.kernel.bounds.enclosures import Enclosed, numbers
from mmaprobe.queries.kernel.bounds.forms import NOUGHT, Factor, Form
from mmaprobe.queries.kernel.bounds.parts import OfPlan, Parted
from mmaprobe.queries.kernel.bounds.wording import COUNT, GROWTH
from mmaprobe.queries.kernel.datapath.rounding_losses import RoundingLoses
from mmaprobe.queries.kernel.questions import steps
from mmaprobe.queries.kernel.questions.steps import Added, Loop, PlanAt, SoFar, Tile, Zero, recorded
from mmaprobe.queries.kernel.theorem import RuleError
from mmaprobe.queries.plans import bound
from mmaprobe.queries.plans.bound import bound_of_plan
from mmaprobe.queries.properties.bound import error_of
from mmaprobe.smtmodel.evaluate.tiles import kind_of
from mmaprobe.smtmodel.nodes import Element, Index
from mmaprobe.smtmodel.nodes.known import Known
from mmaprobe.smtmodel.plans import Plan
from mmaprobe.smtmodel.plans.gemm import simulate
from mmaprobe.smtmodel.plans.planfile import parse_plan
from mmaprobe.smtmodel.plans.words import word_at
from mmaprobe.smtmodel.tables.reference import parse_plan_reference, parse_reference
from tests.oracles.exact_numbers import N, add, aligned, mul, negated, pattern, read, to
from tests.oracles.oracle import FORMATS
from tests.said import believed

pytestmark = pytest.mark.solvers

Pair = tuple[int, int]
#: source, words' and sums' formats, and the largest exponent of inputs, at which nothing overflows
SPACES = [("e6m9_ieee", "e4m3_ieee", "e6m9_ieee", 2), ("e4m3_ieee", "e2m1_ieee", "f16", -1),
          ("e4m3_ieee", "e4m3_ieee", "e6m9_ieee", 2), ("e6m9_ieee", "e4m3_ieee", "f16", 1)]  # fmt: skip
UNITS = {
    "one": (1, "{}", "r(exact(c, a[0] * b[0]))"),
    "seq": (2, "{}", "repeat(i in range(0, 2), c, r(exact(acc, a[i] * b[i])))"),
    "two": (2, "{}", "z(fused(a[0:2] * b[0:2], c, F=4))"),
    "flush": (2, "{subnormals: positive_zero, zeros: positive}",
              "r(exact(c, r(exact(r(a[0] * b[0]), r(a[1] * b[1])))))"),
}  # fmt: skip


@dataclass(frozen=True)
class Scheme:
    """Numbers of `count` words, what is left times 2^`scale` each time; the products of `pairs`, in order, by a unit:
    one pair after another (`stage`: "plain"), each added outside every two products ("promote"), all pairs of two
    products before the next two ("turns"). Scaled ones have sums for each size, added at the end."""

    space: tuple[str, str, str, int]
    unit: str
    mode: str
    count: int
    scale: int
    pairs: tuple[Pair, ...]
    stage: str
    addend: bool

    @property
    def groups(self) -> list[tuple[int, list[Pair]]]:
        if not self.scale:
            return [(0, list(self.pairs))]
        sizes = sorted({i + j for i, j in self.pairs}, reverse=True)
        return [(size, [pair for pair in self.pairs if sum(pair) == size]) for size in sizes]

    def text(self, folder: Path) -> str:
        source, given, total, _ = self.space
        length, inputs, step = UNITS[self.unit]
        (folder / "unit.yaml").write_text(
            f"unit: {self.unit}\nformats: {{a: {given}, b: {given}, c: {total}, d: {total}}}\nlength: {length}\n"
            + (f"inputs: {inputs}\n" if inputs != "{}" else "")
            + f"roundings: {{r: 'round({total})', z: 'round({total}, toward_zero)'}}\nsteps:\n  d: {step}\n"
        )
        lines = [f"plan: scheme\nformats: {{a: {source}, b: {source}, c: {total}, d: {total}}}",
                 f"units: {{mma: '{folder / 'unit.yaml'}'}}",
                 f"roundings: {{h: 'round({given}, {self.mode})', s: 'round({source})', q: 'round({total})'}}",
                 "words:"]  # fmt: skip
        for side in (0, 1):
            name, rest = "ab"[side], "ab"[side]
            for k in range(max(pair[side] for pair in self.pairs) + 1):
                lines.append(f"  {name}{k}: h({rest})")
                left = f"s(exact({rest}, -{name}{k}))"
                rest = f"s(product(2**{self.scale}, {left}))" if self.scale else left
        own = []
        for size, pairs in self.groups:
            bodies = [f"mma(a{i}, b{j})" for i, j in pairs]
            if self.stage == "promote":
                bodies = [f"promote(2, {body}, q)" for body in bodies]
            stage = f"then({', '.join(bodies)})"
            stage = f"turns(2, {stage})" if self.stage == "turns" else stage
            start = "c" if self.addend and size == self.groups[-1][0] else "+0"
            found = f"sum({stage}, {start})"
            own.append(f"q(product(2**{-size * self.scale}, {found}))" if size * self.scale else found)
        result = own[0]
        for other in own[1:]:
            result = f"q(exact({result}, {other}))"
        return "\n".join([*lines, f"steps:\n  d: {result}"])

    def plan(self, folder: Path) -> Plan:
        return parse_plan(self.text(folder), "scheme.yaml", parse_reference, whole=True)

    # -- in exact numbers

    def split(self, x: N) -> list[N]:
        source, given, _, _ = self.space
        mode, found = {"nearest_even": "rne", "toward_zero": "rtz"}[self.mode], []
        for _ in range(self.count):
            found.append(to(given, x, mode))
            x = to(source, add([x, negated(found[-1])]))
            if self.scale:
                x = to(source, mul(N(1, self.scale), x))
        return found

    def instruction(self, a: Sequence[N], b: Sequence[N], c: N) -> N:
        total, given = self.space[2], self.space[1]
        if self.unit in ("one", "seq"):
            for x, y in zip(a, b, strict=True):
                c = to(total, add([c, mul(x, y)]))
            return c
        if self.unit == "two":
            x, y, c = ([read(fmt, pattern(fmt, one)) for one in row]
                       for fmt, row in ((given, a), (given, b), (total, [c])))  # fmt: skip
            return to(total, aligned([*map(mul, x, y), *c], 4), "rtz")
        least = FORMATS[given].emin
        x, y = ([one if abs(value(one)) >= Fraction(2) ** least else N(0) for one in side] for side in (a, b))
        c = c if abs(value(c)) >= Fraction(2) ** FORMATS[total].emin else N(0)
        return to(total, add([c, to(total, add([to(total, mul(p, q)) for p, q in zip(x, y, strict=True)]))]))

    def run(self, a: Sequence[N], b: Sequence[N], c: N) -> N:
        words = [[self.split(x) for x in side] for side in (a, b)]
        length, total = UNITS[self.unit][0], self.space[2]

        def tile(pair: Pair, start: int, count: int, so_far: N) -> N:
            for at in range(start, start + count, length):
                sides = [[words[side][k][pair[side]] if k < min(start + count, len(a)) else N(0)
                          for k in range(at, at + length)] for side in (0, 1)]  # fmt: skip
                so_far = self.instruction(*sides, so_far)
            return so_far

        result: N | None = None
        for size, pairs in self.groups:
            so_far = c if self.addend and size == self.groups[-1][0] else N(0)
            if self.stage == "turns":
                for start in range(0, len(a), 2):
                    for pair in pairs:
                        so_far = tile(pair, start, min(2, len(a) - start), so_far)
            else:
                for pair in pairs:
                    if self.stage == "plain":
                        so_far = tile(pair, 0, len(a), so_far)
                        continue
                    for start in range(0, len(a), 2):
                        so_far = to(total, add([so_far, tile(pair, start, min(2, len(a) - start), N(0))]))
            if size * self.scale:
                so_far = to(total, mul(N(1, -size * self.scale), so_far))
            result = so_far if result is None else to(total, add([result, so_far]))
        assert result is not None
        return result


def value(x: N) -> Fraction:
    assert not x.kind
    return Fraction(x.m) * Fraction(2) ** x.e


def some_scheme(rng: random.Random) -> Scheme:
    count, scale = rng.choice(((1, 0), (2, 0), (2, 0), (3, 0), (2, 2), (2, 4)))
    every = [(i, j) for i in range(count) for j in range(count) if (i, j) != (0, 0)]
    pairs = [(0, 0), *rng.sample(every, rng.randint(0, min(4, len(every))))]
    rng.shuffle(pairs)
    return Scheme(rng.choice(SPACES), rng.choice(list(UNITS)), rng.choice(("nearest_even", "toward_zero")), count,
                  scale, tuple(pairs), rng.choice(("plain", "promote", "turns")), rng.random() < 0.5)  # fmt: skip


def evaluated(form: Form, scheme: Scheme, a: Any, b: Any, c: Any, times: Fraction, exact: Any) -> Any:
    """A bound, in f64: of A (M x K), B (K x N), C (M x N)."""
    least = 2.0 ** max(FORMATS[fmt].emin for fmt in scheme.space[:2])
    found: Any = np.zeros(c.shape)
    for atom, coefficient in form.parts.items():
        every: list[Any] = []
        for item in atom:
            left, right = np.ones(a.shape), np.ones(b.shape)
            plain: Any = 1.0
            for factor in item:
                side = {"a": a, "b": b, "c": c}.get(factor.name)
                if side is None:
                    plain = plain * {COUNT: a.shape[1], GROWTH: float(times), "exact": np.abs(exact)}[factor.name]
                    continue
                size, low = np.abs(side), 2.0 ** FORMATS[scheme.space[2]].emin if factor.name == "c" else least
                size = np.where((size > 0) & (size < low), low, size) if factor.raised else size
                if factor.name == "c":
                    plain = plain * size
                elif factor.name == "a":
                    left = left * size
                else:
                    right = right * size
            products = any(factor.name in ("a", "b") for factor in item)
            every.append((left @ right if products else 1.0) * plain)
        found = found + float(coefficient) * np.max([np.broadcast_to(x, c.shape) for x in every], axis=0)
    return found * (1 + 1e-9)


def inputs(scheme: Scheme, k: int, rng: np.random.Generator, count: int) -> tuple[Any, Any, Any]:
    """Patterns of A (M x K), B (K x M) and C: zeros, and numbers up to the largest exponent, of all sizes or of one
    size. For one product, of a narrow format every number."""
    source, _, total, top = scheme.space
    every = []
    for fmt in (source, total):
        sizes = np.abs(_numbers(fmt))
        every.append(np.flatnonzero(sizes < 2.0 ** (top + 1)))
    sizes = np.abs(_values(source, every[0]))
    near = every[0][sizes >= 2.0 ** (top - 3)]
    if k == 1 and len(every[0]) <= 256:
        a, b = every[0][:, None], every[0][None, :]
    else:
        a, b = (np.where(rng.random((count, 1)) < 0.6, rng.choice(near, (count, k)), rng.choice(every[0], (count, k)))
                for _ in "ab")  # fmt: skip
        b = np.ascontiguousarray(b.T)
    shape = len(a), b.shape[1]
    c = rng.choice(every[1], shape) if scheme.addend else np.zeros(shape, dtype=np.int64)
    return a, b, c


def _values(fmt: str, patterns: Any) -> Any:
    """Numbers of patterns; NaN for an infinity."""
    return _numbers(fmt)[np.asarray(patterns).astype(np.int64)]


@cache
def _numbers(fmt: str) -> Any:
    row = FORMATS[fmt]
    every = (read(fmt, p) for p in range(1 << (row.exponent_bits + row.mantissa_bits + 1)))
    return np.array([np.nan if x.kind else float(value(x)) for x in every])


def beyond(scheme: Scheme, folder: Path, seed: int, count: int = 24) -> tuple[list[str], float]:
    """What is beyond its bound, and the largest share of one. Compares some results with those of the program."""
    plan, rng, texts, most = scheme.plan(folder), np.random.default_rng(seed), [], 0.0
    general = bound_of_plan(plan, None, believed)
    assert isinstance(general.goal, Enclosed)
    at = general.goal.unit
    assert isinstance(at, PlanAt)
    for k in (1, 2, 3, 4, 8):
        forms = [(error_of(bound_of_plan(plan, k, believed)), Fraction(0))]
        if k % at.repeats.period == 0:
            n = k // at.repeats.period
            times = sums.growth_of(at.growth, n - 1) * at.growth ** ((at.loops - 1) * (n - 1))
            forms.append((error_of(general), times))
        a, b, c = inputs(scheme, k, rng, count)
        d = simulate(*(side.astype(kind_of(fmt)) for side, fmt in ((a, plan.a), (b, plan.b), (c, plan.c))), plan)
        (source, _, total, _), places = scheme.space, rng.integers(0, c.shape, (10, 2))
        x, y, z, w = (_values(fmt, side) for fmt, side in ((source, a), (source, b), (total, c), (total, d)))
        for row, column in places:
            left, right = ([read(source, int(p)) for p in side] for side in (a[row], b[:, column]))
            own = scheme.run(left, right, read(total, int(c[row, column])))
            overflows = bool(own.kind)  # a scaled word may
            assert overflows == np.isnan(w[row, column])
            assert overflows or Fraction(float(w[row, column])) == value(own), (scheme, k, left, right)
        exact = x @ y + z
        for form, times in forms:
            allowed, error = (
                evaluated(form, scheme, x, y, z, times, exact),
                np.abs(np.where(np.isnan(w), exact, w) - exact),
            )
            texts += [f"{scheme}: K = {k}: {x[row]} {y[:, column]} {z[row, column]}: {error[row, column]} is more than "
                     f"{allowed[row, column]}" for row, column in np.argwhere(error > allowed)[:1]]  # fmt: skip
            most = max(most, float((error / np.where(allowed > 0, allowed, 1)).max()))
    return texts, most


@pytest.mark.parametrize("seed", range(12))
def test_no_result_of_a_scheme_is_beyond_its_bound(seed: int, tmp_path: Path) -> None:
    texts, most = beyond(some_scheme(random.Random(seed)), tmp_path, seed)
    assert not texts
    assert most > 0


@pytest.mark.slow
def test_no_result_of_many_schemes_is_beyond_its_bound(tmp_path: Path) -> None:
    every = [beyond(some_scheme(random.Random(seed)), tmp_path, seed) for seed in range(100, 600)]
    assert not [text for texts, _ in every for text in texts]


def _nothing_lost(self: Any, polynomial: Any, counts: Any) -> Form:
    return NOUGHT if counts(True) else Parted.size(self, polynomial, counts)


BROKEN: list[tuple[str, Any, str, Any, dict[str, Any]]] = [
    ("words lose nothing", OfPlan, "summed", _nothing_lost, {"count": 2, "pairs": ((0, 0),)}),
    ("roundings in words add nothing", parts, "after_rounding",
     lambda facts, how: numbers(Known.number(frozenset({how.format})), NOUGHT, NOUGHT, facts.size), {"count": 2}),
    ("subnormal words are not flushed", steps, "pair_read", lambda plan, model, words: tuple(
        Element(name, Index()) if word is None else word_at(word, Element(name, Index()), steps._refused)
        for name, word in zip("ab", plan.read(words), strict=True)), {"unit": "flush", "count": 1, "pairs": ((0, 0),)}),
    ("an instruction from zero loses nothing", Form, "split", lambda form, own: (NOUGHT, form), {"stage": "promote"}),
    ("later rounds lose nothing", sums, "_from_zero", lambda step, start, body, from_zero, each, times: from_zero.facts,
     {"stage": "plain", "addend": False, "count": 1, "pairs": ((0, 0),), "unit": "one",
      "space": SPACES[2]}),
]  # fmt: skip


@pytest.mark.parametrize(("owner", "name", "broken", "given"), [row[1:] for row in BROKEN], ids=[x[0] for x in BROKEN])
def test_a_broken_rule_is_noticed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, owner: Any, name: str, broken: Any,
                                  given: dict[str, Any]) -> None:  # fmt: skip
    """By a result beyond the bound that it gives, or by a rule."""
    scheme = Scheme(SPACES[3], "one", "toward_zero", 2, 0, ((0, 0), (1, 0), (0, 1)), "plain", False)
    scheme = replace(scheme, **given)
    assert not beyond(scheme, tmp_path, 0)[0]
    monkeypatch.setattr(owner, name, broken)
    for module in (parts, sums):
        if hasattr(module, name):
            monkeypatch.setattr(module, name, broken)
    if name == "pair_read":
        monkeypatch.setattr(steps, "pairs_of", pairs := lambda plan: tuple(dict.fromkeys(
            broken(plan, chain.model, chain.words) for chain in plan.chains)))  # fmt: skip
        for module in (parts, sums):
            monkeypatch.setattr(module, "pairs_of", pairs)
    try:
        texts = beyond(scheme, tmp_path, 0)[0]
    except RuleError:
        return
    assert texts


def test_loops_one_after_another_grow_as_it_is_said() -> None:
    """(x + y G) r^n for the G of m loops is at most what `_grown` says for that of m + 1."""
    rng, x, y = random.Random(3), frozenset({()}), frozenset({(Factor(GROWTH),)})
    for _ in range(300):
        n, m = rng.randint(1, 9), rng.randint(1, 4)
        r = 1 + Fraction(rng.randint(0, 8), rng.choice((8, 1024)))
        form = Form({x: Fraction(rng.randint(0, 9)), y: Fraction(rng.randint(0, 9))})

        def growth(loops: int, r: Fraction = r, n: int = n) -> Fraction:
            return sum((r**k for k in range(n - 1)), Fraction(0)) * r ** ((loops - 1) * (n - 1))

        before, after = (lambda factor: growth(m)), (lambda factor: growth(m + 1))  # noqa: B023
        found = sums._grown(form, r, sums.G).value(after)
        assert form.value(before) * r**n <= found


def test_rules_refuse_what_is_not_so(tmp_path: Path) -> None:
    scheme = Scheme(SPACES[0], "two", "nearest_even", 2, 0, ((0, 0), (1, 0)), "promote", True)
    plan = scheme.plan(tmp_path)
    own = bound._Composer(plan, None, believed)
    own.result()
    (model,), (products,) = plan.models, plan.sums
    chain, zero = own._chain(model), own._from_zero(model)
    assert zero is not None
    with pytest.raises(RuleError, match="where the addend is zero"):
        sums.from_zero(chain.premises[0])  # of any addend
    loop = recorded(plan, products.stage, None)
    assert isinstance(loop, Loop)
    assert isinstance(loop.body, Added)
    so_far, one = loop.body.values
    assert isinstance(one, Tile)
    assert isinstance(so_far, SoFar)
    nothing = sums.nothing(plan, steps.made(Zero))
    held = sums.held(plan, so_far, frozenset({plan.c}))
    from_start = steps.made(Tile, model, one.read, so_far)
    with pytest.raises(RuleError, match="the start is not zero"):
        sums.tile(from_start, zero, held)
    with pytest.raises(RuleError, match="no unit of the plan reads"):
        sums.tile(steps.made(Tile, model, one.read[::-1], one.start), chain, nothing)
    tile = sums.tile(one, zero, nothing)
    assert sums.tile(one, chain, nothing).goal.facts.error.covers(tile.goal.facts.error)  # type: ignore[attr-defined]
    lemma = [believed(RoundingLoses(loop.body.rounding.format, loop.body.rounding.mode))]
    body = sums.added(loop.body, [held, tile], lemma)
    at_zero = sums.added(loop.body, [sums.held(plan, so_far, frozenset()), tile], lemma)
    start = own._step(loop.start, {sums.START: frozenset({plan.c})})
    with pytest.raises(RuleError, match="the start is not zero"):
        sums.iterated(loop, start, body, at_zero)
    with pytest.raises(RuleError, match="sum so far is not a number"):
        sums.iterated(loop, start, at_zero)
    begun = steps.made(Loop, loop.level, None, steps.made(Zero), loop.body)
    assert sums.iterated(begun, nothing, body, at_zero).goal.loops == 1  # type: ignore[attr-defined]
    for other in (tile, body):  # a round of another step, and one from any sum
        with pytest.raises(RuleError, match="the iteration from zero"):
            sums.iterated(begun, nothing, body, other)
    total, first = own.sums[products.stage], enclosures.element(at := PlanAt(plan), products.start)  # type: ignore[arg-type]
    with pytest.raises(RuleError, match="grow faster"):
        sums.of_all_products(at, products, total, first, [])
    at = PlanAt(plan, None, total.goal.growth, 1)  # type: ignore[attr-defined]
    first = enclosures.element(at, products.start)  # type: ignore[arg-type]
    with pytest.raises(RuleError, match="grow faster"):  # there are two loops
        sums.of_all_products(at, products, total, first, [])
    at = replace(at, loops=2)
    first = enclosures.element(at, products.start)  # type: ignore[arg-type]
    with pytest.raises(RuleError, match="stays open"):
        sums.of_all_products(at, products, total, first, [])
    found = sums.of_all_products(at, products, total, first, list(map(believed, sums.word_lemmas(plan))))
    with pytest.raises(RuleError, match="assumes something"):
        enclosures.whole(found)
    assert not parts.rejoined(found).goal.assuming  # type: ignore[attr-defined]


def test_a_word_that_is_not_zero_where_its_element_is(tmp_path: Path) -> None:
    text = Scheme(SPACES[0], "one", "nearest_even", 1, 0, ((0, 0),), "plain", True).text(tmp_path)
    plan = parse_plan(text.replace("a0: h(a)", "a0: h(s(exact(a, 2**0)))"), "x.yaml", parse_reference, whole=True)
    with pytest.raises(RuleError, match="not zero where its element is"):
        bound_of_plan(plan, None, believed)


def test_a_unit_that_adds_products_twice_is_given_no_words(tmp_path: Path) -> None:
    scheme = Scheme(SPACES[0], "one", "nearest_even", 2, 0, ((0, 0), (1, 0)), "plain", True)
    text = scheme.text(tmp_path)
    file = tmp_path / "unit.yaml"
    file.write_text(file.read_text().replace("a[0] * b[0]", "a[0] * b[0], a[0] * b[0]"))
    with pytest.raises(RuleError, match="not every product, and c, is added once"):
        bound_of_plan(parse_plan(text, "x.yaml", parse_reference, whole=True), None, believed)
    assert error_of(bound_of_plan(Plan.chained(parse_reference(str(file))), None, believed)).parts


#: at K = 512 the largest coefficient of sum |a_k b_k| that is wanted; the f32 chain has 2^-15
TOLD = {
    "ieee/fma/f32": 1.0001 * 2.0**-15,
    "plan:multiword/markidis": 1.2701 * 2.0**-15,
    "markidis@unit=volta/mma/m8n8k4.f32.f16.f16.f32": 1.2625 * 2.0**-14,
    "plan:multiword/ootomo-yokota": 1.0157 * 2.0**-18,
    "ootomo-yokota@unit=volta/mma/m8n8k4.f32.f16.f16.f32": 1.188 * 2.0**-17,
    "ootomo-yokota@unit=cdna3/mfma/f32_32x32x8_f16": 1.3327 * 2.0**-18,
    "ootomo-yokota@unit=cdna2/mfma/f32_32x32x8f16": 1.2543 * 2.0**-18,
    "plan:triton/tf32x3": 1.879 * 2.0**-19,
    "plan:triton/bf16x3": 1.576 * 2.0**-15,
    "plan:triton/bf16x6": 1.276 * 2.0**-19,
}


@pytest.mark.parametrize("name", TOLD)
def test_the_bounds_of_algorithms(name: str) -> None:
    plan = parse_plan_reference(name)
    form = error_of(bound_of_plan(plan, 512, believed)).merged()
    found = max(value for atom, value in form.parts.items() for item in atom if [x.name for x in item] == ["a", "b"])
    assert 0.9 * TOLD[name] < found <= TOLD[name]
    general = error_of(bound_of_plan(plan, None, believed))
    assert {"a", "b", GROWTH} <= {factor.name for atom in general.parts for item in atom for factor in item}
