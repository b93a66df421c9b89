"""Claims against the sum of magnitudes: what is proved is true, every side condition is looked at, by `check` too."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any, cast

import pytest

from mmaprobe.hypotheses.claim import Claim
from mmaprobe.queries.certificates.names import CLAIM
from mmaprobe.queries.checking.folder import check_folder
from mmaprobe.queries.claims.certify import certify_claim
from mmaprobe.queries.claims.samples import claim_rows
from mmaprobe.queries.claims.shares import by_shares
from mmaprobe.queries.claims.verify import verify
from mmaprobe.queries.kernel.lemmas import exhausted
from mmaprobe.queries.kernel.recorded import Added, Addend, Instruction, Nothing, Value, Word, Words, recorded_part
from mmaprobe.queries.kernel.shares import (
    Near,
    Space,
    Within,
    WordIsSmall,
    WordsLeave,
    adds_products,
    after_addition,
    after_instruction,
    begins,
    compares,
    from_here,
    near_each_other,
    near_the_sum,
    share_claim,
    space_of,
)
from mmaprobe.queries.kernel.theorem import RuleError, Theorem
from mmaprobe.queries.kernel.undecided import NoInputDecides, ZerosGiveZero
from mmaprobe.queries.properties.bound import bound_of, error_of
from mmaprobe.queries.search.distinguish import Options
from mmaprobe.queries.search.scene import evaluate_claim
from mmaprobe.smtmodel.algorithms.exact import Window
from mmaprobe.smtmodel.arithmetic.formats import FORMATS, format_named
from mmaprobe.smtmodel.evaluate.model import Model
from mmaprobe.smtmodel.nodes import FusedSum, Round
from mmaprobe.smtmodel.tables.reference import parse_reference
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
    """What is proved of an error, in 2^-60 of the sum of magnitudes."""
    none = error("0", **{name: claim.file.data[name] for name in ("inputs", "parts", "terms")})
    with pytest.raises(RuleError, match="M is known") as raised:
        by_shares(none, believed)
    return int(float(str(raised.value).split()[2]) * 1.00001 * 2**60)


PARTS = {
    "a unit": {"parts": {"p": VOLTA}, "terms": 6},
    "words": {"parts": {"p": f"multiword@unit=({VOLTA}),split=toward_zero,products=4"}},
    "words left out": {"parts": {"p": f"multiword@unit=({VOLTA}),split=nearest_even,products=3"}},
    "sums outside": {"parts": {"p": f"multiword@unit=({VOLTA}),products=4,chain=1,addend=first,order=small_first"}},
    "no c": {"parts": {"p": VOLTA}, "inputs": SMALL | {"c": "zero"}},
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
        found = by_shares(claim_of(text.format(bits), terms=terms, inputs=signed), believed)
        assert isinstance(found.goal, NoInputDecides)
        nears = [one for one in found.premises[0].premises if isinstance(one.goal, Near)]
        assert [len(near.goal.products) for near in nears] == [0, -(-terms // 8)]
    with pytest.raises(RuleError, match=r"within: only 1\.67033e-06 M is known"):
        by_shares(claim_of(text.format(20), terms=8, inputs=signed), believed)
    other = {"three": f"{TF32}=3", "four": f"{TF32}=4".replace("split=toward_zero", "split=nearest_even")}
    with pytest.raises(RuleError, match=r"within: only 2\.00392 M is known"):  # other words: nothing is shared
        by_shares(claim_of(text.format(17), inputs=signed, parts=other), believed)


E8 = FORMATS["e4m3"]
CUT = Words(E8, F16, FORMATS["e5m2"], "toward_zero", 2)


def test_lemmas_about_words() -> None:
    """Of every number of a small format; what is said is the least."""
    window = (-4, 4)
    for lemma in (WordIsSmall(CUT, window, Fraction(1), 0), WordIsSmall(CUT, window, Fraction(1, 9), 1),
                  WordsLeave(CUT, window, Fraction(0))):  # fmt: skip
        assert exhausted(lemma).goal == lemma
    false = [WordIsSmall(CUT, window, Fraction(1, 10), 1), WordIsSmall(CUT, window, Fraction(99, 100), 0),
             WordsLeave(replace(CUT, count=1), window, Fraction(1, 10)),
             WordsLeave(replace(CUT, into=format_named("e2m1_ieee"), rounding="nearest_even"), (2, 3), Fraction(2)),
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
SMALLS = [believed(WordIsSmall(WHOLE, window, Fraction(1), 0)) for window in (SPACE.window.a, SPACE.window.b)]
LEAVES = [believed(WordsLeave(WHOLE, window, Fraction(0))) for window in (SPACE.window.a, SPACE.window.b)]


def once(value: Instruction = ONCE, space: Space = SPACE, bound: Theorem = BOUND, words: Any = SMALLS) -> Theorem:
    return after_instruction(value, begins(space, Addend()), bound, words)


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
    "not from c": ("not counted from c", lambda: near_the_sum(from_here(once()), SMALLS, LEAVES, Fraction(1))),
    "twice": ("added twice", lambda: _sum(_twice())),
    "kinds": ("several kinds", lambda: _sum(begins(SPACE, Addend()))),
    "left": ("what the words leave", lambda: near_the_sum(once(), SMALLS, LEAVES[:1], Fraction(1))),
    "share": ("is known", lambda: near_the_sum(once(), SMALLS, LEAVES, Fraction(1, 1 << 30))),
    "bases": ("base in common", lambda: near_each_other([once(), from_here(once())], SMALLS, Fraction(1))),
    "spaces": ("base in common", lambda: near_each_other([once(), once(space=MORE)], SMALLS, Fraction(1))),
    "apart": ("is known", lambda: near_each_other([once(), begins(SPACE, Addend())], SMALLS, Fraction(1, 2))),
}  # fmt: skip
F32 = FORMATS["f32"]


def _added(value: Added | None = None, space: Space = SPACE, second: Theorem | None = None) -> Theorem:
    nothing = begins(space, Nothing()) if second is None else second
    return after_addition(value or Added(F32, Addend(), Nothing()), begins(space, Addend()), nothing)


def _twice() -> Theorem:
    return after_instruction(replace(ONCE, addend=ONCE), once(), BOUND, SMALLS)


def _sum(near: Theorem) -> Theorem:
    return near_the_sum(near, SMALLS, LEAVES, Fraction(1))


def test_the_rules_give_what_they_say() -> None:
    goal = once().goal
    assert isinstance(goal, Near)
    assert (goal.base, goal.products) == (Addend(), ((FACTOR, FACTOR, 0, 2),))
    assert Fraction(1, 1 << 23) < goal.distance < Fraction(1, 1 << 20) < 1 < goal.size < 3
    apart = near_each_other([once(), begins(SPACE, Addend())], SMALLS, Fraction(2))
    assert isinstance(apart.goal, Within)
    assert isinstance(_sum(once()).goal, Within)
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


def test_what_words_leave_and_what_is_left_out_count() -> None:
    """By the numbers: of two words that leave r and s, of which the last product is left out."""
    two = replace(WHOLE, count=2)
    first, second = Word(two, 0), Word(two, 1)
    windows = (SPACE.window.a, SPACE.window.b)
    one, part = Fraction(1), Fraction(1, 1 << 10)
    words = [believed(WordIsSmall(two, window, share, k)) for window in windows for k, share in ((0, one), (1, part))]
    rests = [
        believed(WordsLeave(two, windows[0], Fraction(1, 8))),
        believed(WordsLeave(two, windows[1], Fraction(1, 4))),
    ]
    near = begins(SPACE, Addend())
    value: Any = Addend()
    for a, b in ((first, first), (first, second), (second, first)):
        value = Instruction(MODEL, a, b, 0, 2, value)
        near = after_instruction(value, near, BOUND, words)
    assert isinstance(near.goal, Near)
    least = near.goal.distance + part * part + Fraction(1, 8) + Fraction(1, 4) + Fraction(1, 32)
    assert isinstance(near_the_sum(near, words, rests, least).goal, Within)
    with pytest.raises(RuleError, match="is known"):
        near_the_sum(near, words, rests, least - Fraction(1, 1 << 40))
    assert near.goal.size == 1 + 2 * part + near.goal.off
    products = near.goal.distance - near.goal.distance % Fraction(1, 1 << 40)
    assert products > 3 * Fraction(1, 1 << 23)


def test_every_pair_of_words_that_is_left_out_anywhere_counts() -> None:
    """Two pairs: one is added for the first product alone, one for none."""
    two = replace(WHOLE, count=2)
    windows, parts = (SPACE.window.a, SPACE.window.b), (Fraction(1), Fraction(1, 1 << 10))
    words = [believed(WordIsSmall(two, window, part, k)) for window in windows for k, part in enumerate(parts)]
    rests = [believed(WordsLeave(two, window, Fraction(0))) for window in windows]
    near, value = begins(SPACE, Addend()), cast(Value, Addend())
    for i, j, stop in ((0, 0, 2), (0, 1, 2), (1, 0, 1)):
        value = Instruction(MODEL, Word(two, i), Word(two, j), 0, stop, value)
        near = after_instruction(value, near, BOUND, words)
    assert isinstance(near.goal, Near)
    least = near.goal.distance + parts[1] + parts[1] ** 2
    assert isinstance(near_the_sum(near, words, rests, least).goal, Within)
    with pytest.raises(RuleError, match="is known"):
        near_the_sum(near, words, rests, least - Fraction(1, 1 << 40))


@pytest.mark.parametrize("large", [6, 20])
def test_a_result_out_of_range_is_no_number_of_a_claim(large: int) -> None:
    claim = error("2**-18", terms=2)
    within, zero = by_shares(claim, believed).premises
    huge = [
        believed(WordIsSmall(WHOLE, window, Fraction(1 << large), 0)) for window in (SPACE.window.a, SPACE.window.b)
    ]
    near = once(words=huge)
    wide = near_the_sum(near, huge, LEAVES, Fraction(1 << 41))
    assert isinstance(within.goal, Within)
    with pytest.raises(RuleError, match="leave the range"):
        compares(error("2**41", terms=2).assertion, wide, [zero])


@pytest.mark.parametrize(("says", "broken"), BREACHES.values(), ids=BREACHES)
def test_side_conditions(says: str, broken: Callable[[], Theorem]) -> None:
    with pytest.raises(RuleError, match=says):
        broken()


def test_side_conditions_of_what_a_claim_needs() -> None:
    claim = error("2**-18", terms=2)
    good = by_shares(claim, believed)
    within, zero = good.premises
    assert compares(claim.assertion, within, [zero]).goal == NoInputDecides(claim.assertion)
    for other in (error("2**-19", terms=2), error("2**-18", terms=3), error("2**-18", OTHER.reference, terms=2),
                  error("2**-18", terms=2, inputs=SMALL | {"a": [-2, 3]})):  # fmt: skip
        with pytest.raises(RuleError, match="says less"):
            compares(other.assertion, within, [zero])
    for zeros in ([], [believed(ZerosGiveZero(MODEL, 1))], [believed(ZerosGiveZero(OTHER, 2))]):
        with pytest.raises(RuleError, match="makes a zero of zeros"):
            compares(claim.assertion, within, zeros)
    with pytest.raises(RuleError, match="another kind"):
        compares(claim.assertion, zero, [zero])
    with pytest.raises(RuleError, match="not every product"):
        adds_products(replace(MODEL.unit, length=5))
    assert space_of(claim.assertion) == replace(SPACE, terms=2)


# -- certificates


def test_a_certificate_of_shares_is_checked(tmp_path: Path) -> None:
    claim = error("2**-8", "volta/mma/m8n8k4.f16.f16.f16.f16", terms=1)
    outcome = verify(claim, Options(timeout=60))
    assert (outcome.verdict, outcome.row, len(outcome.lemmas)) == ("holds", None, 3)
    certify_claim(outcome, tmp_path, Options(timeout=60))
    findings = list(check_folder(tmp_path))
    assert {finding.kind for finding in findings} == {"fine"}
    assert any(finding.says.startswith("states: no input decides") for finding in findings)
    text = (tmp_path / CLAIM).read_text()
    for old, new in (("2**-8", "2**-9"), ("terms: 1", "terms: 2")):
        assert text.count(old) == 1
        _rewritten(tmp_path, CLAIM, text.replace(old, new))
        assert any(one.kind == "fault" for one in check_folder(tmp_path)), old
    _rewritten(tmp_path, CLAIM, text)
    assert {finding.kind for finding in check_folder(tmp_path)} == {"fine"}


def _rewritten(folder: Path, name: str, text: str) -> None:
    (folder / name).write_text(text)
    fitted(folder)
