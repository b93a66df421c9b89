"""Claims: their files, their language against rationals, verdicts replayed by the exact oracle, exit codes."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Iterator
from fractions import Fraction
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from click.testing import CliRunner, Result

from mmaprobe.cli.main import main
from mmaprobe.cli.options import progress
from mmaprobe.hypotheses.claim import Claim, build_claims, claims, claims_named
from mmaprobe.hypotheses.claim_file import Statement
from mmaprobe.hypotheses.unit_claims import BoundClaim
from mmaprobe.queries.claims import algorithms
from mmaprobe.queries.claims import verify as verifying
from mmaprobe.queries.claims.decide import decide
from mmaprobe.queries.claims.error_bound import verify_bound
from mmaprobe.queries.claims.maximise import Worst, _Search, maximise
from mmaprobe.queries.claims.outcome import Outcome
from mmaprobe.queries.claims.overflow import bound
from mmaprobe.queries.claims.samples import claim_rows, mutated
from mmaprobe.queries.claims.stages import Stages
from mmaprobe.queries.kernel.bounds.wording import up_text
from mmaprobe.queries.kernel.questions.scene import deciding, scene_of
from mmaprobe.queries.search.distinguish import Options
from mmaprobe.queries.search.samples import Table
from mmaprobe.queries.search.scene import build_query, evaluate_claim
from mmaprobe.queries.solvers.store import Store
from mmaprobe.smtmodel.algorithms import parse_reduction, sum_of_array
from mmaprobe.smtmodel.algorithms.predicate import FUNCTIONS
from mmaprobe.smtmodel.arithmetic.display import exact_value
from mmaprobe.smtmodel.base.errors import FaultError, InputError, ParameterError, UnknownNameError
from mmaprobe.smtmodel.base.yamlfile import read_yaml
from mmaprobe.smtmodel.carriers.terms import TermCarrier
from mmaprobe.smtmodel.tables.reference import parse_reference
from tests.oracles import algorithm_oracle as oracle
from tests.oracles.claim_oracle import Rationals, unit_of
from tests.oracles.oracle import decode
from tests.oracles.termeval import evaluate_terms

pytestmark = pytest.mark.solvers

VOLTA = "volta/mma/m8n8k4.f32.f16.f16.f32"
BASE: dict[str, Any] = {
    "id": "mine", "about": "an example", "source": "a paper", "says": "nothing", "expect": "refuted", "terms": 2,
    "inputs": {"a": [-3, 3], "b": [-2, 4], "c": [-4, 4]},
    "parts": {"p": f"markidis@unit={VOLTA},split=toward_zero", "q": f"ootomo-yokota@unit={VOLTA},split=toward_zero"},
    "claim": "error(q) <= error(p)",
}  # fmt: skip

IMMA = "ampere/mma/m16n8k32.s32.s8.s8.s32"
QUICK = (
    "ootomo-not-worse-f16", "ootomo-not-worse-f32@terms=1", "ootomo-not-worse-no-addend@terms=2",
    "markidis-not-worse-f16@terms=1", "markidis-not-worse-f32@terms=2", "markidis-not-worse-no-addend@terms=1",
    "three-tf32-reach-7@terms=1", "three-tf32-small-first-reach-8@terms=2", "three-tf32-signed-unbounded@terms=2",
    "three-tf32-mixed-reach-8@terms=2", "three-tf32-eight-reach-4",
    "int8-sums", "int8-sums-one-side", "int8-wraps-one-side", "int8-wraps-digits", "ozaki-int8-7-wraps",
    "ozaki-int8-ii-13-wraps",
    f"int8-wraps@unit={IMMA}", f"uint8-wraps@unit={IMMA.replace('s8', 'u8')}",
    "uint8-int8-wraps@unit=x86/avx512/vpdpbusds",
    "chain-length@chain=2", "fp8-smallest-term", "error-bound-near-4", "ootomo-worse-table-5",
    "ootomo-not-worse-four-products@terms=1,split=toward_zero",
    "symmetric-no-addend-fp8@model=cdna3/mfma/f32_32x32x16_fp8_fp8",
    "symmetric-no-addend-two-steps@model=cdna3/mfma/f32_16x16x16_f16",
    f"error-bound@model={VOLTA}", f"error-bound-tight@model={VOLTA}",
)  # fmt: skip


def text_of(**changes: Any) -> str:
    """A claim file with changes, of those parts alone that it names."""
    data = json.loads(json.dumps(BASE))
    for key, value in changes.items():
        outer, _, inner = key.partition("__")
        if inner:
            data[outer][inner] = value
        else:
            data[outer] = value
    if not any(key.startswith("parts") for key in changes):
        named = json.dumps([data["claim"], data["inputs"], data.get("maximise")])
        data["parts"] = {name: part for name, part in data["parts"].items() if re.search(rf"\b{name}\b", named)}
        data["parts"] = data["parts"] or BASE["parts"]
    return yaml.safe_dump(data, sort_keys=False)


def claim_of(**changes: Any) -> Claim:
    (claim,) = build_claims(read_yaml(text_of(**changes), "mine.yaml"))
    assert isinstance(claim, Claim)
    return claim


def run(*arguments: str) -> Result:
    return CliRunner().invoke(main, ["verify", *arguments])


def check(claim: Statement, outcome: Outcome[Any]) -> None:
    """As expected, and an input that decides does so in rationals."""
    assert outcome.verdict == claim.expect, [step.what for step in outcome.asked]
    if not isinstance(claim, Claim):
        return
    by_example = outcome.verdict == ("refuted" if claim.quantifier == "all" else "holds")
    assert (outcome.input is not None) == by_example
    if outcome.input is not None:
        oracle = Rationals(claim, outcome.input.row)
        assert oracle.decides()
        vector = outcome.document.vector
        assert vector is not None
        results = vector.results
        assert {name: int(found.d, 16) for name, found in results.items()} == oracle.results


@pytest.fixture(scope="module")
def answers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    """What several claims rest on is asked once."""
    with Store(tmp_path_factory.mktemp("answers") / "store.sqlite") as store:
        yield store


def cases(quick: bool) -> list[Statement]:
    chosen = {claim.id for name in QUICK for claim in claims_named(name)}
    return [claim for found in claims().values() for claim in found if (claim.id in chosen) == quick]


@pytest.mark.parametrize("claim", cases(True), ids=lambda claim: claim.id)
def test_quick_claims(claim: Statement, answers: Store) -> None:
    check(claim, decide(claim, Options(timeout=120, store=answers)))


@pytest.mark.slow
@pytest.mark.parametrize("claim", cases(False), ids=lambda claim: claim.id)
def test_slow_claims(claim: Statement, answers: Store) -> None:
    check(claim, decide(claim, Options(timeout=300, store=answers)))


# --- the language ----------------------------------------------------------------------------------------------------

PREDICATES = [
    "error(q) <= error(p)", "error(q) < error(p)", "error(p) > error(q)", "not error(q) >= error(p)",
    "error(p) <= 3 * 2**-20", "2 * error(p) < ulp(exact())", "error(p) == 0 and not error(q) == 0",
    "error(p) <= 2**-22 * magnitude_sum() or value(c) < 0", "error(p) <= top() * 2**-25 + ulp(p)",
    "distance(p, q) >= 1", "bits(p) == bits(q)", "finite(p)", "zero(c)", "nonzero(b)", "nonnegative(a)", "fits(a, f16)",
    "lacks(b, tf32)", "fits(c, bf16)", "value(a[0]) < value(b[1]) + 1", "0 <= value(c) <= 2",
    "abs(value(p) - exact()) == error(p)", "max(error(p), error(q)) <= 2**-21", "-value(a[1]) * value(b[0]) < value(c)",
    "ulp(c) <= ulp(p)", "value(a[0]) != -value(a[1])", "zero(a[0]) or lacks(a[1], f16)", "error(p) <= terms() * 2**-24",
    "error(p) <= 0.7 * error(q) + 1.1 * 2**-25", "error(p) <= 2.5e-8 * magnitude_sum() + 3E-9 or value(c) > 1e+0",
    "value(a[0]) < -1.3 * value(b[1]) or 0.1 - value(c) >= -value(b[0]) * 0.25 * 1.7",
    "not 0.3 <= value(c) <= 7.77 or 1.9 * (error(p) - 0.3 * error(q)) > -0.01 * (ulp(c) - 2**-3)",
]  # fmt: skip


def test_every_function_is_checked() -> None:
    assert all(any(f"{name}(" in text for text in PREDICATES) for name in FUNCTIONS)


@pytest.mark.parametrize("text", PREDICATES)
def test_language(text: str) -> None:
    claim = claim_of(claim=text, quantifier="exists")
    table = claim_rows(claim, 60, 3)
    batch = evaluate_claim(claim, table)
    assert batch.admitted.all()
    assert not batch.at_fault.any()
    expected = [Rationals(claim, row).decides() for row in table.tolist()]
    assert [bool(x) for x in batch.deciding] == expected
    symbolic = TermCarrier()
    names = dict(zip(claim.layout.names, claim.layout.formats, strict=True))
    scene = scene_of(claim.assertion, [symbolic.symbol(name, fmt.width) for name, fmt in names.items()])
    values = {name: table[:20, k] for k, name in enumerate(names)}
    (found,) = evaluate_terms([deciding(claim.assertion, scene).node], values)
    assert [bool(x) for x in np.broadcast_to(found, 20)] == expected[:20]


def test_more_products_reach_no_smaller_share(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a case with fewer products reached, more products reach with zeros."""
    monkeypatch.setattr(verifying, "REACHED", 0.4)
    path = tmp_path / "mine.yaml"
    inputs = {"a": [-5, 5], "b": [-5, 5], "c": "zero"}
    claim = "error(p) <= 2**-10 * magnitude_sum()"
    path.write_text(text_of(claim=claim, inputs=inputs, terms="{terms}", cases={"terms": [1, 2, 16]}, expect="holds"))
    result = run(str(path), "--json")
    reached = [Fraction(one["shares"]["reached"]) for one in json.loads(result.stdout)["claims"]]
    assert reached == sorted(reached)
    climbed = list[int]()

    def climb(claim: Claim, *given: Any) -> Worst:
        climbed.append(claim.terms)
        return Worst(claim, given[0], Fraction(1), (0,) * (2 * claim.terms + 1))

    monkeypatch.setattr(verifying, "climb", climb)
    for one in claims_named(str(path)):
        decide(one, Options(timeout=30))
    assert climbed == [1, 1, 2, 1, 16]  # by itself, too, a case begins with one product


SHARES = [  # claims that compare with the sum of magnitudes, and what they compare
    ({"expect": "holds", "inputs__where": ["value(c) < 1"]}, "error(p)"),
    ({"expect": "holds", "inputs__c": "zero", "terms": 4}, "error(p)"),
    ({"expect": "holds"}, "abs(value(p) - value(q))"),
    ({"maximise": {"quantity": "error(p)", "unit": "magnitude_sum()"}}, "error(p)"),
]  # fmt: skip


@pytest.mark.parametrize(("changes", "compared"), SHARES)
def test_what_is_reached_counts_every_simulated_input(
    changes: dict[str, Any], compared: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also if the work is interrupted before anything is proved, and before it climbs to the largest share: "nothing is
    reached" was said then."""
    claim, looked = claim_of(claim=f"{compared} <= 2**-9 * magnitude_sum()", **changes), list[Table]()

    def seen(draw: Callable[..., Table], most: int) -> Callable[..., Table]:
        def rows(*given: Any) -> Table:
            looked.append(draw(*given)[:most])
            return looked[-1]

        return rows

    def ended(*given: Any) -> None:
        raise KeyboardInterrupt

    climbing = "mmaprobe.queries.claims.maximise"
    monkeypatch.setattr(verifying, "claim_rows", seen(claim_rows, 2 if "maximise" in changes else 40))
    monkeypatch.setattr(f"{climbing}.claim_rows", seen(claim_rows, 40))
    monkeypatch.setattr(f"{climbing}.mutated", seen(mutated, 40))
    monkeypatch.setattr(verifying, "SAMPLE_LEAST", 0.0)
    monkeypatch.setattr(verifying, "CLIMB_MOST", 0.3)
    monkeypatch.setattr(verifying._Verifier, "_bounded", ended)
    outcome = verifying.verify(claim, Options(timeout=5))
    rows = np.concatenate(looked)
    rows = rows[evaluate_claim(claim, rows).admitted.astype(bool)]
    inputs = [Rationals(claim, row) for row in rows.tolist()]
    shares = [one.number(compared) / whole for one in inputs if (whole := one.number("magnitude_sum()"))]
    reached, most = Fraction(outcome.document.shares.reached or 0), Fraction(str(max(shares)))
    assert reached == most > 0
    assert outcome.document.shares.late is True  # that nothing is proved is for want of time


def test_an_input_that_was_found_before_an_interrupt_is_said_to_be_found_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A claim refuted by simulation was said to be refuted by the search that an interrupt ended; and what was found
    is not lost if the interrupt comes before it is small."""
    path = tmp_path / "mine.yaml"
    path.write_text(text_of(claim="error(p) <= 2**-60 * magnitude_sum()"))

    def ended(*given: Any, **named: Any) -> Any:
        raise KeyboardInterrupt

    for place, name in ((verifying, "climb"), (verifying, "shrink_rows"), (verifying, "within_of")):
        with monkeypatch.context() as patched:
            patched.setattr(place, name, ended)
            found = run(str(path))
        assert "mine: refuted" in found.stderr
        assert "by the input above, replayed (4096 simulated inputs)" in found.stderr


def test_what_climbing_found_is_reached_if_it_is_interrupted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """And `--maximise` finds no less than what is reached."""
    claim = claim_of(claim="error(p) <= 2**-9 * magnitude_sum()", expect="holds")
    found = list[Fraction]()

    class Ended(_Search):
        def climb(self, seconds: float, begin: Any = None) -> None:
            if self.claim.terms == 1:
                return
            row = (0x3F800001,) * 4 + (0,)
            found.append(max(self._values(np.array([row], dtype=np.uint64))))
            self._found(found[-1] + 1, row)  # as if it were larger than all that was simulated
            raise KeyboardInterrupt

    monkeypatch.setattr("mmaprobe.queries.claims.maximise._Search", Ended)
    reached = verifying.verify(claim, Options(timeout=30)).reached
    assert reached == found[0] + 1


def test_maximise_finds_no_less_than_what_is_reached(monkeypatch: pytest.MonkeyPatch) -> None:
    """What was found before is where it begins."""
    claim = claim_of(claim="error(p) <= 2**-9 * magnitude_sum()", expect="holds", inputs__c="zero",
                     maximise={"quantity": "error(p)", "unit": "magnitude_sum()"})  # fmt: skip
    outcome = decide(claim, Options(timeout=30))
    found = maximise(claim, Options(timeout=1e-3), also=[(1, 2, 3), *outcome.known(claim)]).value
    reached = Fraction(outcome.document.shares.reached or 0)
    assert found == reached > 0


def test_inputs_of_other_formats_are_no_inputs_of_a_claim() -> None:
    """Nor are those of more products."""
    one, two = (claim_of(claim="error(p) <= 2 * magnitude_sum()", terms=terms) for terms in (1, 2))
    other = claim_of(claim="error(p) <= 2 * magnitude_sum()", inputs__format="f16")
    row = (0x3F800000,) * 5
    outcome = algorithms.AlgorithmOutcome(two, row=row)
    assert (outcome.known(two), outcome.known(one), outcome.known(other)) == ([row], [row], [])
    assert verifying._Verifier(two, Options())._padded((1, 2, 3)) == (1, 0, 2, 0, 3)
    assert verifying._Verifier(one, Options())._padded(row) is None


def test_a_part_that_nothing_names_is_refused(tmp_path: Path) -> None:
    """It is said which, and what to do."""
    path, other = tmp_path / "mine.yaml", {"p": "ieee/fma/f32", "q": "ieee/fma/f32"}
    hint = ": leave it out, or name it under claim, where or maximise"
    for claim, code in (("error(p) <= 1", 2), ("error(p) <= error(q)", 0), ("nonzero(c) or zero(c)", 0)):
        path.write_text(text_of(claim=claim, parts=other, expect="holds", terms=1, inputs__where=[]))
        found = run(str(path))
        assert found.exit_code == code, found.output
        assert (f"parts.q: no expression of the claim names this part{hint}" in found.stderr) == (code == 2)
    path.write_text(text_of(claim="error(p) <= 1", parts={**other, "r": "ieee/fma/f32"}, terms=1, inputs__where=[]))
    assert f"parts.q: no expression of the claim names this part, nor r{hint}" in run(str(path)).stderr
    path.write_text(text_of(claim="error(p) <= 1", parts=other, terms=1, maximise={"quantity": "error(q)"}))
    assert isinstance(claims_named(str(path))[0], Claim)
    for shipped in claims().values():
        for one in shipped:
            if isinstance(one, Claim):
                one.check_parts()


def test_what_is_proved_is_said_to_ignore_conditions(tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    for where in ([], ["fits(b, e2m1)"]):
        changes = {"parts": {"p": "ieee/fma/f32"}, "inputs__where": where, "expect": "holds", "terms": 1}
        path.write_text(text_of(claim="error(p) <= 1.1 * magnitude_sum()", **changes))
        found = run(str(path))
        assert "holds" in found.stderr
        assert ("holds for all inputs in the windows" in found.stderr) == bool(where)


def test_the_language_is_not_idle() -> None:
    """Over all predicates both truths occur, and most predicates have both."""
    both = 0
    for text in PREDICATES:
        claim = claim_of(claim=text, quantifier="exists")
        found = evaluate_claim(claim, claim_rows(claim, 2000, 3)).deciding
        both += found.any() and not found.all()
    assert both >= len(PREDICATES) - 2  # finite(p), and what is equal by definition


# --- files -----------------------------------------------------------------------------------------------------------

WRONG: list[tuple[dict[str, Any], str, str]] = [
    ({"claim": "error(r) == 0"}, "unknown name 'r'", "claim"),
    ({"claim": "eror(p) == 0"}, "did you mean 'error'?", "claim"),
    ({"claim": "error(p"}, "not an expression", "claim"),
    ({"claim": "error(p) <= 1  # for all units"}, "a comment within an expression", "claim"),
    ({"claim": "error(p, q) == 0"}, "error takes 1 argument", "claim"),
    ({"claim": "[error(p)]"}, "no part of the language", "claim"),
    ({"claim": "error(p) <= 0.1234567890123456 * magnitude_sum()"}, "decimals of at most 15 digits", "claim"),
    ({"claim": "error(p) <= 123456789012345.98765 * magnitude_sum()"}, "decimals of at most 15 digits", "claim"),
    ({"claim": "error(p) <= 1e-400 * magnitude_sum()"}, "1e-400: no part of the language", "claim"),
    ({"claim": "error(p) <= 1.23456789012345678e-5 * magnitude_sum()"}, "decimals of at most 15 digits", "claim"),
    ({"claim": "error(p) <= 1e999 * magnitude_sum()"}, "1e999: no part of the language", "claim"),
    ({"claim": "error(p) <= max(0.3, value(c))"}, "3/10: a constant is a sum of powers of two", "claim"),
    ({"claim": "error(p) <= 1.1**2 * magnitude_sum()"}, "121/100: a constant is a sum of powers of two", "claim"),
    ({"claim": "error(p) <= 2**0.5 * magnitude_sum()"}, "a power of constants is needed", "claim"),
    ({"claim": "error(p) <= magnitude_sum() / 3"}, "constants are whole numbers, decimals of", "claim"),
    ({"claim": "__import__('os')"}, "unknown function", "claim"),
    ({"inputs__a": [3, -3]}, "3 is above -3", "inputs"),
    ({"inputs__a": [-300, 3]}, "leave those of f32", "inputs"),
    ({"inputs__format": "f33"}, "did you mean 'f32'?", "inputs.format"),
    ({"inputs__where": ["zero(x)"]}, "unknown name 'x'", "inputs.where.0"),
    ({"parts__p": "markidi"}, "did you mean 'markidis'?", "parts.p"),
    ({"parts__p": "markidis@split=nearest"}, "split", "parts.p"),
    ({"parts__p": "volta/mma/m8n8k4.f32.f16.f16.f32"}, "does not hold these f32 numbers", "parts.p"),
    (
        {"inputs__format": "f16", "terms": 8, "parts__p": f"{VOLTA}@output=f16"},
        "8 products are a chain of a unit of 4, but it takes c in f32 and gives f16",
        "parts.p",
    ),
    ({"terms": 0}, "the number of products is a whole number", "terms"),
    ({"trems": 2}, "did you mean 'terms'?", "trems"),
    ({"expect": "true"}, "'refuted' is needed", "expect"),
]


@pytest.mark.parametrize(("changes", "message", "key"), WRONG)
def test_faulty_files(changes: dict[str, Any], message: str, key: str, tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text(text_of(**changes))
    found = run(str(path))
    assert found.exit_code == 2
    assert found.stderr.startswith(f"error: {path}:")
    assert f" {key}: " in found.stderr
    assert message in found.stderr


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"claim": "error(p)"}, "a condition"),
        ({"claim": "p <= q"}, "a number is needed"),
        ({"claim": "value(a[2]) == 0"}, "no such product"),
        ({"claim": "2**value(c) == 0"}, "a power of constants"),
        ({"claim": "0**-1 == value(c)"}, "a power of constants"),
        ({"claim": "value(c) < 2**9999999999"}, "a number of more than 16384 bits"),
        ({"claim": "distance(p, a[0]) == 0", "inputs__format": "f16"}, "numbers of two formats: f32 and f16"),
        ({"inputs__where": ["value(c) > 1", "value(c) < 1"]}, "no input meets all conditions"),
        ({"inputs__a": [17, 18], "parts__p": "markidis"}, "no number"),
    ],
)
def test_claims_without_sense(changes: dict[str, Any], message: str, tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text(text_of(**changes))
    found = run(str(path), "--timeout", "60", "--store", str(tmp_path / "store"))
    assert (found.exit_code, message in found.stderr) == (2, True), found.stderr


def test_exit_codes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(verifying, "SAMPLE_SHARE", 0.0)  # a long time limit, for busy machines, and a short simulation
    small = {"terms": 1, "inputs": {"format": "f16", "a": [0, 0], "b": [0, 0], "c": [0, 1], "where": ["fits(a, bf16)"]}}
    store = ["--store", str(tmp_path / "store"), "--timeout", "240"]
    for expect, claim, code in (
        ("holds", "value(p) < 2**4", 0), ("refuted", "value(p) < 2**4", 1),
        ("refuted", "value(p) < 2", 0), ("holds", "value(p) < 2", 1),
    ):  # fmt: skip
        path = tmp_path / "mine.yaml"
        path.write_text(text_of(**small, expect=expect, claim=claim))
        found = run(str(path), *store, "--json")
        assert found.exit_code == code, found.stderr
        (document,) = json.loads(found.stdout)["claims"]
        assert document["verdict"] == ("holds" if claim.endswith("4") else "refuted")
        assert (document["vector"] is None) == claim.endswith("4")
        assert all(lemma["confirmed_by"] for lemma in document["lemmas"])
        assert bool(document["lemmas"]) == claim.endswith("4")
    path.write_text(text_of(terms=1, inputs__format="f16"))
    found = run(str(path), "--store", str(tmp_path / "store"), "--timeout", "0.5")
    assert found.exit_code == 3
    assert "the time ran out" in found.stderr or "the whole question: bitwuzla" in found.stderr  # built in time or not


def test_each_case_has_its_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also after a case that ended in a fault."""
    seconds: list[float] = []

    def faulty(claim: Claim, options: Options, earlier: object) -> None:
        assert options.timeout is not None
        seconds.append(options.timeout)
        time.sleep(1)
        raise FaultError("engines contradict each other")

    monkeypatch.setattr("mmaprobe.queries.claims.decide.decide", faulty)
    path = tmp_path / "mine.yaml"
    path.write_text(text_of())
    found = run(str(path), str(path), "--timeout", "60", "--store", str(tmp_path / "store"))
    assert found.exit_code == 4, found.stderr
    assert len(seconds) == 2
    assert min(seconds) > 59.5


@pytest.mark.parametrize(
    ("seconds", "words"), [(40.4, "after 40.4 s; tried"), (58.8, "after 58.8 s, past its limit of 40 s; tried")]
)
def test_a_case_that_took_longer_than_its_limit_says_so(
    seconds: float, words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def late(claim: Statement, options: Options, before: Any) -> Outcome[Any]:
        outcome = decide(claim, Options(timeout=0.0), before)
        outcome.seconds = seconds
        return outcome

    monkeypatch.setattr("mmaprobe.queries.claims.decide.decide", late)
    path = tmp_path / "mine.yaml"
    path.write_text(text_of(terms=1, inputs__format="f16"))
    assert words in run(str(path), "--timeout", "40").stderr


def test_certificate(tmp_path: Path) -> None:
    small = {"terms": 1, "inputs": {"format": "f16", "a": [0, 0], "b": [0, 0], "c": [0, 0]}, "expect": "holds"}
    path = tmp_path / "mine.yaml"
    path.write_text(text_of(**small, claim="value(p) < 2**4"))
    found = run(
        str(path), "--certificate", str(tmp_path / "proof"), "--timeout", "60", "--store", str(tmp_path / "store")
    )
    assert found.exit_code == 0, found.stderr
    assert "accepted by the checker" in found.stderr
    assert list((tmp_path / "proof").glob("**/manifest.json"))


def test_it_is_said_that_solvers_are_asked(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """Also where no terminal shows progress."""
    monkeypatch.setattr(Stages, "ways", ())
    monkeypatch.setattr(verifying, "LONG", 0.0)
    inputs = {"format": "f16", "a": [0, 0], "b": [0, 0], "c": [0, 0]}
    outcome = decide(
        claim_of(terms=1, inputs=inputs, claim="value(p) < 2**4"),
        Options(timeout=10, progress=partial(progress, loud=0)),
    )
    assert re.fullmatch(
        r"mine: neither an input nor a rule decides it; solvers are asked, for at most [0-9] s\n",
        capsys.readouterr().err,
    )
    assert outcome.asked[-1].what == "the whole question" or outcome.theorem is not None


def test_words_that_differ_by_factors_have_no_rule(monkeypatch: pytest.MonkeyPatch) -> None:
    """Which is said where nothing decides, with the reason; of parts of one word, or of one scale, it is not."""
    monkeypatch.setattr(Stages, "ways", ())
    inputs = {"format": "f32", "a": [-2, 2], "b": [-2, 2], "c": "zero"}
    parts = {"eight": f"ootomo-yokota@unit={VOLTA},scale=8", "eleven": f"ootomo-yokota@unit={VOLTA},scale=11",
             "same": f"ootomo-yokota@unit={VOLTA},scale=8,sums=by_size", "plain": f"markidis@unit={VOLTA}"}  # fmt: skip
    asked = {
        pair: [step.what for step in decide(
            claim_of(terms=1, inputs=inputs, parts={name: parts[name] for name in pair},
                     claim=f"bits({pair[0]}) == bits({pair[1]}) or not finite({pair[0]})"),
            Options(timeout=2)).asked if "factors" in step.what]
        for pair in (("eight", "eleven"), ("eight", "same"), ("eleven", "plain"))
    }  # fmt: skip
    assert {pair for pair, differ in asked.items() if differ} == {("eight", "eleven")}
    assert asked["eight", "eleven"][0].startswith("a rule for eight and eleven, whose words differ by factors (")


def test_time_ends_what_is_built_to_be_evaluated() -> None:
    """Of a long claim that takes longer than evaluating it."""
    start = time.monotonic()
    outcome = decide(claim_of(terms=256), Options(timeout=2))
    assert (outcome.verdict, outcome.interrupted) == ("unknown", False)
    assert [step.what for step in outcome.asked] == ["simulated 0 inputs: the time ran out"]
    assert time.monotonic() - start < 20


def test_an_answer_after_its_time_is_checked_on_fewer_inputs(monkeypatch: pytest.MonkeyPatch) -> None:
    """And not on none: an input that contradicts it is found all the same."""

    class Held(algorithms.AlgorithmOutcome):
        proved = True

    counts, rows = list[int](), algorithms.claim_rows
    monkeypatch.setattr(algorithms, "claim_rows", lambda *given: counts.append(given[1]) or rows(*given))
    for late in (False, True):
        Held(claim_of(claim="value(p) <= value(p)")).check(late)
        with pytest.raises(FaultError):
            Held(claim_of(claim="value(p) < value(p)")).check(late)
    assert counts == [4096, 4096, 64, 64]


def test_names() -> None:
    assert [claim.case["terms"] for claim in claims_named("ootomo-not-worse-f16@split=toward_zero")] == [2, 4]
    with pytest.raises(UnknownNameError, match="did you mean 'ootomo-not-worse-f16'"):
        claims_named("ootomo-not-worse-f61")
    with pytest.raises(UnknownNameError, match="did you mean 'ootomo-equals-markidis'"):
        claims_named("ootomo")
    with pytest.raises(UnknownNameError, match=r"unknown claim 'nothing' \("):
        claims_named("nothing")
    with pytest.raises(UnknownNameError, match="case"):
        claims_named("ootomo-not-worse-f16@terms=3")
    with pytest.raises(InputError, match="no such file"):
        claims_named("none.yaml")


def test_a_fixed_zero_stays_zero() -> None:
    claim = claim_of(inputs__c="zero")
    assert "c" not in {symbol.symbol_name() for symbol in build_query(claim, "deciding").inputs}
    table = claim_rows(claim, 200, 1)
    assert not table[:, -1].any()
    table[:, -1] = 0x3F800000
    assert not evaluate_claim(claim, table).admitted.any()


def test_what_maximise_leaves_out_is_counted(tmp_path: Path) -> None:
    """Products of f16 that overflow a result of f16 have no value; the document says so, also without a bound."""
    path, inputs = tmp_path / "mine.yaml", {"format": "f16", "a": [7, 8], "b": [7, 8], "c": "zero"}
    parts = {"p": "ieee/fma/f16"}
    path.write_text(text_of(terms=1, inputs=inputs, parts=parts, claim="finite(p)", maximise={"quantity": "value(p)"}))
    found = run(str(path), "--maximise", "--timeout", "0.4", "--json", "--store", str(tmp_path / "store"))
    worst = json.loads(found.stdout)["claims"][0]["worst"]
    assert 0 < worst["value"] <= 65504
    assert worst["left_out"] > 0
    assert f"{worst['left_out']} inputs with a result that is infinite" in found.stderr


def test_a_quantity_of_patterns_alone_is_maximised(tmp_path: Path) -> None:
    """No value of a part is asked for that may not be representable."""
    path = tmp_path / "mine.yaml"
    parts = {"p": f"markidis@unit={VOLTA},split=toward_zero", "q": f"markidis@unit={VOLTA},split=nearest_even"}
    claim = {"claim": "distance(p, q) < 2**30", "maximise": {"quantity": "distance(p, q)"}}
    path.write_text(text_of(terms=1, parts=parts, **claim))
    found = run(str(path), "--maximise", "--timeout", "0.4", "--json", "--store", str(tmp_path / "store"))
    assert found.exit_code in (0, 3), found.stderr
    assert json.loads(found.stdout)["claims"][0]["worst"]["value"] >= 1


@pytest.mark.parametrize(("claim", "unit", "most"), [
    ("error(p) <= 2**-11 * magnitude_sum()", "magnitude_sum()", Fraction(1, 1 << 11)),  # by the rounding, less
    ("error(p) <= 2**-9 * magnitude_sum()", "ulp(exact())", None),  # another unit
    ("error(p) <= (terms() + 0.5) * ulp(exact())", "ulp(exact())", Fraction(3, 2)),
    ("error(p) < 0.25", "1", Fraction(1, 4)),
])  # fmt: skip
def test_what_was_proved_is_said_beside_the_largest_value(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, claim: str, unit: str, most: Fraction | None
) -> None:
    """Of a search that proves nothing, as it has no time for its questions."""
    monkeypatch.setattr(verifying, "CLIMB_MOST", 0.1)  # no input refutes it
    path, inputs = tmp_path / "mine.yaml", {"format": "f16", "a": [0, 1], "b": [0, 1], "c": "zero"}
    wanted = {"quantity": "error(p)", "unit": unit}
    path.write_text(text_of(terms=1, inputs=inputs, parts={"p": "ieee/fma/f16"}, claim=claim, maximise=wanted))
    (stated,) = claims_named(str(path))
    outcome = decide(stated, Options("bitwuzla", 30.0))
    assert outcome.verdict == "holds"
    assert outcome.most is None if most is None else outcome.most is not None and 0 < outcome.most <= most
    found = run(str(path), "--maximise", "--timeout", "3", "--json", "--store", str(tmp_path / "store"))
    (document,) = json.loads(found.stdout)["claims"]
    assert document["worst"]["most"] == (None if outcome.most is None else str(outcome.most))
    if outcome.most is not None:
        assert Fraction(document["worst"]["exact_value"]) <= outcome.most
        assert f"; more than {up_text(outcome.most)} never, as proved above" in found.stderr
        assert "no bound proved" not in found.stderr


@pytest.mark.slow
def test_maximise(tmp_path: Path) -> None:
    """The worst input of a space that can be searched whole, and the bound."""
    path = tmp_path / "mine.yaml"
    inputs = {"format": "f16", "a": [0, 0], "b": [0, 0], "c": "zero", "where": ["fits(a, e2m1)", "fits(b, e2m1)"]}
    path.write_text(text_of(terms=1, inputs=inputs, claim="value(p) <= 2", maximise={"quantity": "value(p)"}))
    arguments = [str(path), "--maximise", "--timeout", "10", "--json", "--store", str(tmp_path / "store")]
    (document,) = json.loads(run(*arguments).stdout)["claims"]
    worst = document["worst"]
    assert (worst["exact_value"], worst["bound"]) == ("9/4", "3")
    assert worst["vector"]["a"] == worst["vector"]["b"] == ["3e00"]
    path.write_text(text_of())
    found = run(str(path), "--maximise")
    assert (found.exit_code, "no quantity to maximise" in found.stderr) == (2, True)


# --- error bounds ----------------------------------------------------------------------------------------------------


def bound_claim(model: str, bound: str) -> BoundClaim:
    data = {"id": "mine", "about": "", "source": "", "says": "nothing", "expect": "holds", "model": model,
            "error_bound": bound}  # fmt: skip
    (claim,) = build_claims(read_yaml(yaml.safe_dump(data), "mine.yaml"))
    assert isinstance(claim, BoundClaim)
    return claim


@pytest.mark.parametrize(
    ("model", "bound", "known"),
    [
        (f"{VOLTA}@fraction_bits=22", "tight", 4),
        (f"{VOLTA}@fraction_bits=19", "tight", 4),
        ("hopper/wgmma/m64n8k32.f32.e4m3.e4m3", "tight", 32),
    ],
)
def test_bounds_that_do_not_hold(model: str, bound: str, known: int, answers: Store) -> None:
    """Not implied by what the rules give, and nothing is proved."""
    outcome = verify_bound(bound_claim(model, bound), Options(timeout=60, store=answers))
    assert outcome.verdict == "unknown"
    assert outcome.asked[-1].what == f"only |d - exact| <= {known} u + max(u, ulp(d)) is known"


@pytest.mark.parametrize("model", ["ieee/fma/f32", "volta/mma/m8n8k4.f16.f16.f16.f16", f"{VOLTA}@carry_bits=2",
                                   "cdna3/mfma/f32_16x16x16_f16"])  # fmt: skip
def test_bounds_of_other_models(model: str) -> None:
    with pytest.raises(ParameterError, match="truncating"):
        verify_bound(bound_claim(model, "loose"), Options(timeout=10))


@pytest.mark.parametrize(("model", "fraction_bits", "bound"), [
    (VOLTA, 23, "tight"), (f"{VOLTA}@fraction_bits=19", 19, "loose"),
])  # fmt: skip
def test_bounds_against_rationals(model: str, fraction_bits: int, bound: str, answers: Store) -> None:
    """What is proved holds on inputs in rationals, and is not idle: half of it is exceeded."""
    assert verify_bound(bound_claim(model, bound), Options(timeout=60, store=answers)).verdict == "holds"
    u = f"top() * 2**-{fraction_bits}"
    formula = f"3 * {u} + max({u}, ulp(d))" if bound == "tight" else f"5 * {u} + ulp(d)"
    inputs = {"format": "f16", "a": [-14, 4], "b": [-14, 4], "c": [-28, 8]}
    claim = claim_of(terms=4, inputs=inputs, parts={"d": model}, claim=f"error(d) <= {formula}")
    rows = claim_rows(claim, 4096, 5)
    assert not evaluate_claim(claim, rows).deciding.any()
    assert not any(Rationals(claim, row).decides() for row in rows[:100].tolist())
    half = claim_of(terms=4, inputs=inputs, parts={"d": model}, claim=f"2 * error(d) <= {formula}")
    assert evaluate_claim(half, rows).deciding.any()


# --- overflow --------------------------------------------------------------------------------------------------------

RECURRENCE = "recurrence@chain=5,unit=ampere/mma/m16n8k16.f32.f16.f16.f32"


def overflow_claim(**changes: Any) -> Statement:
    data = {"id": "mine", "about": "", "source": "", "says": "nothing", "expect": "holds", "reduction": RECURRENCE,
            "numbers": 65519, "overflow": "smallest"} | changes  # fmt: skip
    (claim,) = build_claims(read_yaml(yaml.safe_dump(data), "mine.yaml"))
    return claim


@pytest.mark.slow
@pytest.mark.parametrize(("changes", "verdict"), [
    ({}, "holds"), ({"numbers": 65518}, "refuted"), ({"numbers": 65520}, "refuted"),
    ({"numbers": 65518, "overflow": "never"}, "holds"), ({"numbers": 65519, "overflow": "never"}, "refuted"),
])  # fmt: skip
def test_overflow(changes: dict[str, Any], verdict: str) -> None:
    assert decide(overflow_claim(**changes), Options()).verdict == verdict


def test_overflow_of_units_that_round_up() -> None:
    with pytest.raises(InputError, match="only ever truncated"):
        decide(overflow_claim(reduction="single-pass@unit=cdna3/mfma/f32_16x16x16_f16", overflow="never"), Options())


@pytest.mark.parametrize("text", [RECURRENCE, "single-pass", "recurrence@columns=outside", "split"])
def test_bounds_bound(text: str) -> None:
    """No sum is above the bound of so many numbers, and of ones it is the bound."""
    reduction = parse_reduction(text)
    rng = np.random.default_rng(1)
    for count in (3, 700, 3000):
        (most,) = bound(reduction, count).goal.bounds  # type: ignore[attr-defined]
        numbers = rng.random(count, dtype=np.float32)
        found = exact_value(sum_of_array(reduction, numbers.view(np.uint32)), reduction.result_format)
        ones = np.full(count, 0x3F7FFFFF, dtype=np.uint32)
        largest = exact_value(sum_of_array(reduction, ones), reduction.result_format)
        assert isinstance(found, Fraction)
        assert isinstance(largest, Fraction)
        assert found < largest <= most
        assert most <= largest * (1 + Fraction(1, 1000))


@pytest.mark.slow
def test_the_smallest_overflow_in_rationals() -> None:
    """The recurrence of the paper in exact rationals: infinite from 65519 ones on."""
    found = {count: recurrence_of_ones(count) for count in (65518, 65519)}
    assert [decode("f16", found[count]).kind for count in (65518, 65519)] == ["finite", "inf"]


def recurrence_of_ones(count: int) -> int:
    unit = unit_of(parse_reference("volta/mma/m8n8k4.f32.f16.f16.f32"))
    warp = cache(lambda numbers: oracle.warp(unit, 4, "f16", numbers, 16, 5, False))
    numbers = [0x3C00] * count  # 1 - 2^-24 as f16
    while len(numbers) > 1:
        blocks = oracle.in_blocks(numbers, 16 * 16 * 5)
        numbers = [oracle.convert(warp(tuple(block)), "f32", "f16", "nearest_even") for block in blocks]
    return numbers[0]
