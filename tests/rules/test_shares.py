"""Claims against the sum of magnitudes: what is proved is true, every side condition is looked at, by `check` too."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks import random_schemes
from mmaprobe.hypotheses.claim import Claim
from mmaprobe.queries.certificates.names import CLAIM
from mmaprobe.queries.checking.folder import check_folder
from mmaprobe.queries.claims.samples import claim_rows
from mmaprobe.queries.claims.shares import within_of
from mmaprobe.queries.claims.verify import verify
from mmaprobe.queries.kernel.bounds import forms, unit_shares
from mmaprobe.queries.kernel.bounds.parts import Parted, adds_products_once
from mmaprobe.queries.kernel.bounds.shares import (
    Apart,
    Near,
    Space,
    WordIsSmall,
    adds_products,
    after_addition,
    after_instruction,
    begins,
    from_here,
    near_each_other,
    space_of,
)
from mmaprobe.queries.kernel.bounds.unit_shares import (
    Errs,
    compares,
    makes_zero,
    of_plan_at,
    of_unit,
    share_claim,
    share_of,
    unit_of,
    windows_of,
)
from mmaprobe.queries.kernel.lemmas import exhausted
from mmaprobe.queries.kernel.questions.recorded import Added, Addend, Instruction, Nothing, Word, Words, recorded_part
from mmaprobe.queries.kernel.questions.scene import lanes_of
from mmaprobe.queries.kernel.questions.windows import Windowed
from mmaprobe.queries.kernel.terms.undecided import NoInputDecides
from mmaprobe.queries.kernel.theorem import RuleError, Theorem
from mmaprobe.queries.plans.bound import bound_of_plan
from mmaprobe.queries.properties.bound import bound_of, error_of
from mmaprobe.queries.search.distinguish import Options
from mmaprobe.queries.search.scene import evaluate_claim
from mmaprobe.smtmodel.algorithms.exact import Window
from mmaprobe.smtmodel.algorithms.parts import Part
from mmaprobe.smtmodel.arithmetic.display import exact_value
from mmaprobe.smtmodel.arithmetic.formats import FORMATS, format_named
from mmaprobe.smtmodel.evaluate.batch import evaluate_batch, to_integers
from mmaprobe.smtmodel.evaluate.model import Model
from mmaprobe.smtmodel.nodes import Element, ExactSum, FusedSum, Index, Product, Round
from mmaprobe.smtmodel.nodes.round import Rounding
from mmaprobe.smtmodel.plans.dot import RESULT
from mmaprobe.smtmodel.tables.reference import parse_reference
from mmaprobe.smtmodel.units.unitfile import parse_unit
from tests.claims.test_claim_stages import TF32, VOLTA, claim_of
from tests.said import believed
from tests.tampering import fitted

pytestmark = pytest.mark.solvers

SMALL = {"format": "f16", "a": [-2, 2], "b": [-1, 3], "c": [-3, 3]}
F16 = FORMATS["f16"]
WHOLE = Words(F16, F16, F16, "nearest_even", 1)


def error(share: str, part: str = VOLTA, **changes: Any) -> Claim:
    return claim_of(f"error(p) <= {share} * magnitude_sum()", **{"inputs": SMALL, "parts": {"p": part}} | changes)


def known(claim: Claim) -> int:
    """What is proved of an error, in 2^-60 of the sum of magnitudes, rounded up."""
    return -int(-goal_within(claim).share * 2**60 // 1)


def goal_within(claim: Claim) -> Apart | Errs:
    goal = within_of(claim, believed)[0].goal
    assert isinstance(goal, (Apart, Errs))
    return goal


PARTS = {
    "a unit": {"parts": {"p": VOLTA}, "terms": 6},
    "words": {"parts": {"p": f"multiword@unit=({VOLTA}),split=toward_zero,products=4"}},
    "words left out": {"parts": {"p": f"multiword@unit=({VOLTA}),split=nearest_even,products=3"}},
    "sums outside": {"parts": {"p": f"multiword@unit=({VOLTA}),products=4,chain=1,addend=first,order=small_first"}},
    "no c": {"parts": {"p": VOLTA}, "inputs": SMALL | {"c": "zero"}},
    "scaled words": {"parts": {"p": f"ootomo-yokota@unit=({VOLTA})"}},
}


@pytest.mark.parametrize("changes", PARTS.values(), ids=PARTS)
def test_what_is_proved_is_true(changes: dict[str, Any]) -> None:
    """No input errs by more than what is proved; some err by a part of it."""
    inputs = {"format": "f32", "a": [-2, 2], "b": [-1, 3], "c": [-3, 3]}
    given = {"terms": 4, "inputs": inputs} | changes if "unit" in changes["parts"]["p"] else changes
    share = known(error("1", **given))
    assert 0 < share < 1 << 48
    rows = claim_rows(error("1", **given), 4096, 1)
    assert not evaluate_claim(error(f"{share} * 2**-60", **given), rows).deciding.any()
    assert evaluate_claim(error(f"{share // 40} * 2**-60", **given), rows).deciding.any()


def test_two_results_are_compared_from_what_they_share() -> None:
    """The last cross product alone parts them, in sums of any length; a share that is too small is not proved."""
    signed = {"format": "f32", "a": [-3, 3], "b": [-3, 3], "c": "zero"}
    text = "abs(value(three) - value(four)) <= 2**-{} * magnitude_sum()"
    for terms, bits in ((1, 19), (8, 19), (16, 18)):
        claim = claim_of(text.format(bits), terms=terms, inputs=signed)
        within = within_of(claim, believed)
        assert compares(claim.assertion, within).goal == NoInputDecides(claim.assertion)
        nears = [one for one in within[0].premises if isinstance(one.goal, Near)]
        assert [len(near.goal.products) for near in nears] == [0, -(-terms // 8)]
    claim = claim_of(text.format(20), terms=8, inputs=signed)
    with pytest.raises(RuleError, match=r"1\.67033e-06 of the sum of magnitudes is all that is known"):
        compares(claim.assertion, within_of(claim, believed))
    other = {"three": f"{TF32}=3", "four": f"{TF32}=4".replace("split=toward_zero", "split=nearest_even")}
    found = goal_within(claim_of(text.format(17), inputs=signed, parts=other))  # other words: nothing is shared
    assert found.share > 2


E8 = FORMATS["e4m3"]
CUT = Words(E8, F16, FORMATS["e5m2"], "toward_zero", 2)


def test_lemmas_about_words() -> None:
    """Of every number of a small format; what is said is the least."""
    window = (-4, 4)
    for lemma in (WordIsSmall(CUT, window, Fraction(1), 0), WordIsSmall(CUT, window, Fraction(1, 9), 1)):
        assert exhausted(lemma).goal == lemma
    false = [WordIsSmall(CUT, window, Fraction(1, 10), 1), WordIsSmall(CUT, window, Fraction(99, 100), 0),
             WordIsSmall(replace(CUT, into=format_named("e2m1_ieee"), rounding="nearest_even"), (2, 3), Fraction(2), 0),
             ]  # fmt: skip
    for lemma in false:
        with pytest.raises(RuleError, match="shows otherwise"):
            exhausted(lemma)


def test_only_sums_of_products_are_recorded() -> None:
    scaled = claim_of("finite(p)", parts={"p": f"ootomo-yokota@unit={VOLTA},split=toward_zero"}).shape.parts["p"]
    with pytest.raises(RuleError, match="words that are scaled"):
        recorded_part(scaled, FORMATS["f32"], 2)


@pytest.mark.parametrize("text", [
    "error(p) < 2**-9 * magnitude_sum()", "error(p) <= 2**-9 * exact()", "error(p) <= exact() * magnitude_sum()",
    "value(p) <= 2**-9 * magnitude_sum()", "abs(value(p) - value(c)) <= 2**-9 * magnitude_sum()",
    "error(p) <= 2**-9 * magnitude_sum() or zero(a)",
])  # fmt: skip
def test_other_claims_are_not_taken(text: str) -> None:
    with pytest.raises(RuleError, match="share_claim"):
        share_claim(claim_of(text, inputs=SMALL, parts={"p": VOLTA}).assertion)
    some = claim_of("error(p) <= 2**-9 * magnitude_sum()", inputs=SMALL, parts={"p": VOLTA}, quantifier="exists")
    with pytest.raises(RuleError, match="share_claim"):
        share_claim(some.assertion)


# -- side conditions

MODEL = parse_reference(VOLTA)
SPACE = Space(F16, FORMATS["f32"], Window((-2, 2), (-1, 3), (-3, 3)), 2, False)
FACTOR = Word(WHOLE, 0)
ONCE = Instruction(MODEL, FACTOR, FACTOR, 0, 2, Addend())
BOUND = bound_of(MODEL.unit, believed)
UNITS = (Part(VOLTA), Part(f"{VOLTA}@overflow=saturate"))
SMALLS = [believed(WordIsSmall(WHOLE, window, Fraction(1), 0)) for window in (SPACE.window.a, SPACE.window.b)]


def once(value: Instruction = ONCE, space: Space = SPACE, bound: Theorem = BOUND, words: Any = SMALLS) -> Theorem:
    return after_instruction(value, begins(space, Addend()), bound, words)


def windowed(space: Space | None = None) -> Theorem:
    """The bound of a unit on the inputs of a space."""
    return bound_of(unit_of(UNITS[0], space or SPACE), believed)


MORE = replace(SPACE, terms=3)


def _wide(top: int) -> Space:
    return replace(SPACE, factors=F16, window=Window(SPACE.window.a, SPACE.window.b, (-3, top)))


def bound_at(reference: str) -> Theorem:
    return bound_of(parse_reference(reference).unit, believed)


OTHER = parse_reference("ampere/mma/m16n8k16.f32.f16.f16.f32")
BF = replace(WHOLE, source=FORMATS["bf16"], into=FORMATS["bf16"])
ROUNDED = MODEL.unit.result
assert isinstance(ROUNDED, Round)
assert isinstance(ROUNDED.term, FusedSum)
STUCK = replace(MODEL.unit, result=replace(ROUNDED, term=replace(ROUNDED.term, sticky=True)))
STICKY = Model("sticky", STUCK)
LIMITED = parse_reference("cdna3/mfma/f32_32x32x8_f16")
BREACHES: dict[str, tuple[str, Callable[[], Theorem]]] = {
    "begin": ("made of others", lambda: begins(SPACE, ONCE)),
    "addend": ("not about its addend", lambda: once(replace(ONCE, addend=Nothing()))),
    "bound": ("not that of the unit", lambda: once(replace(ONCE, model=OTHER))),
    "inner bound": ("not that of the unit", lambda: once(bound=BOUND.premises[0])),
    "format of c": ("another format", lambda: once(space=replace(SPACE, addend=F16))),
    "too many": ("fewer products", lambda: once(replace(ONCE, stop=5), replace(SPACE, terms=9))),
    "beyond": ("fewer products", lambda: once(replace(ONCE, stop=3))),
    "words": ("other formats", lambda: once(replace(ONCE, a=Word(BF, 0)))),
    "no word": ("no such word", lambda: once(replace(ONCE, a=Word(WHOLE, -1)))),
    "no lemma": ("nothing is known", lambda: once(words=SMALLS[:1])),
    "other numbers": ("other numbers", lambda: once(space=replace(SPACE, factors=E8))),
    "overflow": ("may overflow", lambda: once(space=_wide(127))),
    "sticky": ("sticky", lambda: once(replace(ONCE, model=STICKY), bound=bound_of(STUCK, believed))),
    "limit": ("exact unnormalised", lambda: once(replace(ONCE, model=LIMITED), bound=bound_at(LIMITED.reference))),
    "added": ("not about its numbers", lambda: _added(second=once())),
    "both based": ("both have a base", lambda: _added(Added(F32, Addend(), ONCE), second=once())),
    "of f16": ("another format", lambda: _added(Added(F16, Addend(), Nothing()))),
    "sum overflows": ("may overflow", lambda: _added(space=_wide(127))),
    "bases": ("base in common", lambda: near_each_other([once(), from_here(once())], SMALLS)),
    "spaces": ("base in common", lambda: near_each_other([once(), once(space=MORE)], SMALLS)),
    "one": ("not two", lambda: near_each_other([once()], SMALLS)),
    "unit": ("not that of the part's result", lambda: of_unit(SPACE, UNITS[0], BOUND)),
    "space": ("not that of the part's result", lambda: of_unit(MORE, UNITS[0], windowed())),
    "c of a unit": ("another format", lambda: of_unit(replace(SPACE, addend=F16), UNITS[0], BOUND)),
    "large": ("may overflow", lambda: of_unit(_wide(127), UNITS[0], windowed(_wide(127)))),
    "other sum": ("not every product", lambda: adds_products_once(replace(MODEL.unit, length=5))),
}  # fmt: skip
F32 = FORMATS["f32"]


def _added(value: Added | None = None, space: Space = SPACE, second: Theorem | None = None) -> Theorem:
    nothing = begins(space, Nothing()) if second is None else second
    return after_addition(value or Added(F32, Addend(), Nothing()), begins(space, Addend()), nothing)


def test_the_rules_give_what_they_say() -> None:
    goal = once().goal
    assert isinstance(goal, Near)
    assert (goal.base, goal.products) == (Addend(), ((FACTOR, FACTOR, 0, 2),))
    assert Fraction(1, 1 << 23) < goal.distance < Fraction(1, 1 << 20) < 1 < goal.size < 3
    alike = near_each_other([once(), once()], SMALLS).goal
    assert isinstance(alike, Apart)
    assert (alike.share, alike.values) == (2 * goal.distance, (ONCE, ONCE))
    own = of_unit(SPACE, UNITS[0], windowed()).goal
    assert isinstance(own, Errs)
    assert 0 < own.share < goal.distance
    added = _added().goal
    assert isinstance(added, Near)
    assert (added.distance, added.base) == (Fraction(1, 1 << 24), Addend())


def test_of_products_that_stand_alone_the_largest_counts() -> None:
    """In a chain each product has a share of its own; all of M may be the one that has the largest."""
    reference = "ieee/fma/f16@length=2"
    bound, space = bound_at(reference), replace(SPACE, addend=F16, no_addend=True)
    goal = once(replace(ONCE, model=parse_reference(reference)), space, bound).goal
    assert isinstance(goal, Near)
    alone = sorted(value for atom, value in error_of(bound).parts.items() for item in atom if len(item) == 2)
    assert len(alone) == 2
    assert alone[0] < alone[1] < goal.distance < sum(alone)


def test_a_result_out_of_range_is_no_number_of_a_claim(monkeypatch: pytest.MonkeyPatch) -> None:
    claim = error("2**41", terms=2)
    within = within_of(claim, believed)
    monkeypatch.setattr(unit_shares, "share_claim", lambda one: replace(share_claim(one), size=Fraction(1)))
    with pytest.raises(RuleError, match="leave the range"):
        compares(claim.assertion, within)


def test_a_unit_that_adds_a_product_twice_has_another_exact_sum(tmp_path: Path) -> None:
    path = tmp_path / "twice.yaml"
    path.write_text("""unit: twice
formats: {a: f16, b: f16, c: f32, d: f32}
length: 2
roundings: {r: "round(f32, toward_zero)"}
steps: {d: "r(exact(a[0:2] * b[0:2], a[0] * b[0], c))"}
""")
    part = Part(str(path))
    bound = bound_of(unit_of(part, SPACE), believed)
    with pytest.raises(RuleError, match="not every product"):
        of_unit(SPACE, part, bound)


def test_what_is_lost_is_a_share_of_an_input_that_is_zero_with_it() -> None:
    """a_0 - a_0 rounded, times b_0, is zero with either; a_0 + b_0 with neither."""
    unit = Windowed(MODEL.unit, (("a", (-2, 2)), ("b", (-1, 3))))
    a, b = (Element(name, Index(0)) for name in "ab")
    word = Round(a, Rounding(FORMATS["e5m2"]))
    parted, one = Parted(unit, {word}), forms.number(1)
    assert parted.relative(one, parted.of(word, ())) == forms.magnitude("a", Index(0)) * 4
    assert parted.relative(one, parted.of(Product(word, b), ())) == forms.magnitude("a", Index(0)) * 4
    for node in (ExactSum((a, b)), ExactSum((word, Product(a, b), b))):
        assert parted.relative(one, parted.of(node, ())) == one
    assert Parted(unit, {word}, chain=True).relative(one, parted.of(word, ())) == one


@pytest.mark.parametrize("window", [(-2, 1), (3, 3), (-6, 8)])
def test_what_is_known_of_numbers_in_a_window_is_true_of_each(window: tuple[int, int]) -> None:
    fmt = FORMATS["e4m3"]
    unit = Windowed(replace(MODEL.unit, a=fmt), (("a", window),))
    known = unit.given["a"]
    for number in numbers_in(fmt, window):
        exponent = floor_log2(number)
        assert known.least is not None
        assert known.most is not None
        assert known.least <= exponent <= known.most
        for place in (known.grid, exponent - (known.digits or 0)):
            assert place is not None
            assert (number / Fraction(2) ** place).denominator == 1
        assert known.largest is not None
        assert known.head is not None
        assert number <= known.head * Fraction(2) ** exponent
        assert number <= known.largest < Fraction(2) ** (window[1] + 1)
    assert known.never_tiny
    for wrong in ((-7, 0), (1, 0), (0, 9)):
        with pytest.raises(RuleError, match="a has no exponents from"):
            Windowed(replace(MODEL.unit, a=fmt), (("a", wrong),))


def numbers_in(fmt: Any, window: tuple[int, int]) -> list[Fraction]:
    every = [exact_value(pattern, fmt) for pattern in range(1 << fmt.width - 1)]
    sizes = [x for x in every if isinstance(x, Fraction) and x]
    return [x for x in sizes if Fraction(2) ** window[0] <= x < Fraction(2) ** (window[1] + 1)]


def floor_log2(x: Fraction) -> int:
    return next(k for k in range(-20, 20) if Fraction(2) ** k <= x < Fraction(2) ** (k + 1))


def test_what_is_proved_and_reached_is_said_whatever_is_claimed() -> None:
    """Of a share below what is reached: refuted; above what is proved: it holds."""
    found = {}
    for share in ("2**-30", "(3 * 2**-20 - 2**-20)"):
        outcome = verify(error(share, terms=2), Options(timeout=60))
        assert outcome.share is not None
        found[share] = outcome.verdict
        assert outcome.reached is not None
        assert 0 < outcome.reached <= outcome.share
    assert found == {"2**-30": "refuted", "(3 * 2**-20 - 2**-20)": "holds"}


def test_a_result_between_the_places_of_a_claim_is_none_of_its_numbers(tmp_path: Path) -> None:
    """A sticky bit lies below every place of the terms."""
    path = tmp_path / "sticky.yaml"
    path.write_text("""unit: sticky
formats: {a: f16, b: f16, c: f32, d: f32}
length: 2
roundings: {r: "round(f32, toward_zero)"}
steps: {d: "r(fused(a[0:2] * b[0:2], c, F=23, sticky=true))"}
""")
    part = Part(str(path))
    bound = bound_of(unit_of(part, SPACE), believed)
    with pytest.raises(RuleError, match="no multiple"):
        of_unit(SPACE, part, bound)
    with pytest.raises(RuleError, match="no multiple"):
        by_plan(SPACE, part, SPACE.terms)


def by_plan(space: Space, part: Part, count: int | None) -> Theorem:
    return of_plan_at(space, part, bound_of_plan(part.plan, count, believed, windows_of(space)))


def test_the_bound_of_a_plan_is_a_share_for_its_own_number_of_products() -> None:
    part = Part(VOLTA)
    goal = by_plan(SPACE, part, SPACE.terms).goal
    assert isinstance(goal, Errs)
    assert (goal.space, goal.part) == (SPACE, part)
    for count in (None, 2 * SPACE.terms):
        with pytest.raises(RuleError, match="for this K"):
            by_plan(SPACE, part, count)


@pytest.mark.parametrize("plan", ["plan:cublas/tf32", "plan:triton/tf32x3"])
def test_a_plan_that_begins_at_zero_has_a_share(plan: str) -> None:
    """It reads no c: as one unit it does not add c, of which the plan's rule knows that it is +0."""
    inputs = {"format": "f32", "a": [-4, 4], "b": [-4, 4], "c": "zero"}
    claim = error("1", plan, inputs=inputs, terms=8)
    assert 0 < goal_within(claim).share < Fraction(1, 500)


@pytest.mark.parametrize(("says", "broken"), BREACHES.values(), ids=BREACHES)
def test_side_conditions(says: str, broken: Callable[[], Theorem]) -> None:
    with pytest.raises(RuleError, match=says):
        broken()


def test_side_conditions_of_what_a_claim_needs() -> None:
    claim = error("2**-18", terms=2)
    within = within_of(claim, believed)
    assert compares(claim.assertion, within).goal == NoInputDecides(claim.assertion)
    for other in (error("2**-30", terms=2), error("2**-18", terms=3), error("2**-18", OTHER.reference, terms=2),
                  error("2**-18", terms=2, inputs=SMALL | {"a": [-2, 3]})):  # fmt: skip
        with pytest.raises(RuleError, match=r"about other results|is all that is known"):
            compares(other.assertion, within)
    with pytest.raises(RuleError, match="another kind"):
        compares(claim.assertion, [BOUND])
    with pytest.raises(RuleError, match="not every product"):
        adds_products(replace(MODEL.unit, length=5))
    assert space_of(claim.assertion) == replace(SPACE, terms=2)


ZEROS = {
    "r(exact(a[0] * b[0], a[1] * b[1], c))": True,
    "r(exact(a[0] * b[0], a[1] * b[1], c, number(0x3c00, f16)))": False,
    "r(exact(a[0] * b[1], a[1] * b[0], c))": False,
    "r(exact(product(r(exact(a[0], b[0])), b[1]), a[1] * b[0], c))": False,
    "repeat(k in range(2), c, r(fused(acc, a[k] * b[k], F=5)))": True,
    "repeat(k in range(2), c, r(exact(acc, a[k] * b[k], a[0])))": False,
    "r(exact(product(r(exact(a[0], product(number(0xbc00, f16), r(a[0])))), b[0]), a[1] * b[1], c))": True,
}


@pytest.mark.parametrize(("step", "zero"), ZEROS.items())
def test_when_a_unit_makes_a_zero_of_zeros(step: str, zero: bool) -> None:
    text = f"""unit: one
formats: {{a: f16, b: f16, c: f32, d: f32}}
length: 2
roundings: {{r: "round(f32, nearest_even)"}}
steps: {{d: "{step}"}}
"""
    unit = parse_unit(text, "one.yaml")
    if zero:
        makes_zero(unit.result)
    else:
        with pytest.raises(RuleError, match="zero of zeros"):
            makes_zero(unit.result)


def test_a_magnitude_that_is_no_term_counts_by_its_least_sum() -> None:
    """|a_0| is at most 2^3, and M at least 2^-3 (c) where it is not zero."""
    a, b = (forms.magnitude(name, Index(0)) for name in "ab")
    c, exact = forms.magnitude("c"), forms.magnitude(forms.EXACT)
    top = 8 - Fraction(1, 1 << 8)
    assert share_of(SPACE, a) == top * 8
    assert share_of(SPACE, forms.number(1)) == 8
    assert share_of(SPACE, a * b * 3 + c * 2 + exact * 5) == 8
    assert share_of(SPACE, a * b + forms.magnitude("a", Index(1)) * forms.magnitude("b", Index(1))) == 1
    assert share_of(replace(SPACE, no_addend=True), a * b + c * 7) == 1
    assert share_of(SPACE, forms.largest([a * b, c]) * 3) == 3
    assert share_of(SPACE, a * forms.magnitude("b", Index(1))) == top * (16 - Fraction(1, 1 << 7)) * 8
    with pytest.raises(RuleError, match="subnormal"):
        share_of(SPACE, forms.magnitude("a", Index(0), raised=True))


@pytest.mark.parametrize("number", [0, 1, 3, 5, 8, 13, 21, 34])
def test_no_input_of_a_random_scheme_errs_by_more_than_is_proved(number: int, tmp_path: Path) -> None:
    scheme = random_schemes.make(number, tmp_path)
    found = random_schemes.proved(scheme, believed)
    assert isinstance(found, Fraction)
    assert random_schemes.largest(scheme.claim) <= found


def test_a_part_as_a_unit_computes_the_same() -> None:
    """Over words that are rounded, truncated and scaled, sums in the unit and outside, tails of tiles."""
    base = f"unit=({VOLTA})"
    for part in (VOLTA, f"markidis@{base}", f"ootomo-yokota@{base}", f"multiword@{base},words=3,products=6,loop=tiles",
                 f"multiword@{base},split=toward_zero,chain=1,addend=last,scale=9,sums=by_size",
                 "markidis@unit=cdna2/mfma/f32_32x32x8f16", "multiword@unit=x86/amx/tdpbf16ps", "tf64"):  # fmt: skip
        source = "f16" if part == VOLTA else "f64" if part == "tf64" else "f32"
        claim = error("1", part, terms=6, inputs={"format": source, "a": [-9, 9], "b": [-9, 9], "c": [-9, 9]})
        unit = claim.shape.parts["p"].unit(FORMATS[source], 6)
        rows = claim_rows(claim, 512, 5)
        sides = [rows[:, :6], rows[:, 6:12], rows[:, 12]]
        given = [claim.layout.formats[k] for k in (0, 6, 12)]
        assert given == [unit.a, unit.b, unit.c]
        one = evaluate_batch(Model("lowered", unit), *sides)
        with np.errstate(over="ignore"):
            other = to_integers(lanes_of(claim.assertion, rows).steps("p")[RESULT], len(rows))
        assert np.array_equal(one, other), part


@pytest.mark.parametrize(
    ("part", "given"),
    [(f"markidis@unit=({VOLTA})", "f16"), (f"ootomo-yokota@unit=({VOLTA})", "bf16"),
     ("markidis@unit=cdna2/mfma/f32_32x32x8f16", "f16"), ("ieee/fma/f32", "bf16"), ("x86/amx/tdpbf16ps", "e4m3")],
)  # fmt: skip
def test_a_part_takes_factors_of_a_narrower_format(part: str, given: str) -> None:
    claim = error("1", part, terms=6, inputs={"format": given, "a": [-6, 6], "b": [-6, 6], "c": [-9, 9]})
    unit, rows = claim.shape.parts["p"].unit(FORMATS[given], 6), claim_rows(claim, 512, 5)
    with np.errstate(over="ignore"):
        wanted = to_integers(lanes_of(claim.assertion, rows).steps("p")[RESULT], len(rows))
    assert evaluate_batch(Model("lowered", unit), rows[:, :6], rows[:, 6:12], rows[:, 12]).tolist() == wanted.tolist()


def test_factors_that_a_part_does_not_hold_are_refused() -> None:
    with pytest.raises(RuleError, match="unit_of: a factor is no number of the part's format"):
        unit_of(Part(VOLTA), replace(SPACE, factors=FORMATS["f32"]))


# -- certificates


def test_a_certificate_of_shares_is_checked(tmp_path: Path) -> None:
    claim = error("2**-8", "volta/mma/m8n8k4.f16.f16.f16.f16", terms=1)
    outcome = verify(claim, Options(timeout=60))
    assert (outcome.verdict, outcome.row, len(outcome.lemmas)) == ("holds", None, 2)
    outcome.certify(tmp_path, Options(timeout=60))
    findings = list(check_folder(tmp_path))
    assert {finding.kind for finding in findings} == {"fine"}
    assert any(finding.says.startswith("states: no input decides") for finding in findings)
    text = (tmp_path / CLAIM).read_text()
    for old, new in (("2**-8", "2**-14"), ("terms: 1", "terms: 2")):
        assert text.count(old) == 1
        _rewritten(tmp_path, CLAIM, text.replace(old, new))
        assert any(one.kind == "fault" for one in check_folder(tmp_path)), old
    _rewritten(tmp_path, CLAIM, text)
    assert {finding.kind for finding in check_folder(tmp_path)} == {"fine"}


def _rewritten(folder: Path, name: str, text: str) -> None:
    (folder / name).write_text(text)
    fitted(folder)
