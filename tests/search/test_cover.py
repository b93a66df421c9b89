"""Covering vectors: what they are said to reach they reach, and what is said to be out of reach no input reaches."""

from __future__ import annotations

import json
import math
import re
import shutil
import subprocess
from dataclasses import replace
from fractions import Fraction
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner, Result

from benchmarks.covered import caught, differing
from benchmarks.netlists import measured
from mmaprobe.cli.commands import cover as cover_command
from mmaprobe.cli.line import StatusLine
from mmaprobe.cli.main import main
from mmaprobe.queries.compare.neighbours import neighbours
from mmaprobe.queries.covering import report
from mmaprobe.queries.covering.cover import Change, Cover, Covering
from mmaprobe.queries.kernel.cases.conditions import Condition
from mmaprobe.queries.kernel.cases.unreachable import Unreachable, implied, refuted
from mmaprobe.queries.kernel.questions.problem import Problem
from mmaprobe.queries.kernel.terms.same import SidesAgree
from mmaprobe.queries.kernel.theorem import RuleError
from mmaprobe.queries.search.distinguish import Options
from mmaprobe.queries.solvers.asking import Engines
from mmaprobe.queries.tactics.records import Proof
from mmaprobe.smtmodel.arithmetic.display import exact_value
from mmaprobe.smtmodel.arithmetic.formats import format_named
from mmaprobe.smtmodel.base import interrupts
from mmaprobe.smtmodel.base.interrupts import interrupt, state
from mmaprobe.smtmodel.evaluate.batch import evaluate_row
from mmaprobe.smtmodel.evaluate.model import Model
from mmaprobe.smtmodel.evaluate.operands import Operands
from mmaprobe.smtmodel.inputs.vectors import Vector
from mmaprobe.smtmodel.nodes.counting import ZEROS_COUNT
from mmaprobe.smtmodel.tables.reference import parse_reference
from mmaprobe.smtmodel.units.unitfile import parse_unit
from tests.said import says

pytestmark = pytest.mark.solvers

FMA = "ieee/fma/f16"
SMALL = """unit: small
formats: {a: e2m1, b: e2m1, c: e3m2, d: e3m2}
length: 1
roundings: {r: "round(e3m2, nearest_even)"}
steps: {d: "r(fused(c, a[0] * b[0], F=3))"}
"""


SPECIAL = SMALL.replace("e2m1", "e2m1_ieee").replace("e3m2", "e2m2_ieee")
TWO = """unit: two
formats: {a: e3m3_ieee, b: e3m3_ieee, c: e4m5_ieee, d: e4m5_ieee}
length: 2
roundings: {r: "round(e4m5_ieee, nearest_even)"}
steps: {d: "r(fused(a[0:2] * b[0:2], c, F=9, carry=3))"}
"""


def small(text: str = SMALL) -> Model:
    return Model("small", parse_unit(text, "small.yaml"))


def run(*arguments: str) -> Result:
    return CliRunner().invoke(main, list(arguments))


def value(pattern: int, name: str) -> Fraction | str:
    found = exact_value(pattern, format_named(name))
    return Fraction(0) if found == "-0" else found


def half_of(exact: Fraction) -> Fraction:
    """Half a unit of the last place that f16 keeps of a number."""
    exponent = -14
    while abs(exact) >= Fraction(2) ** (exponent + 1):
        exponent += 1
    return Fraction(2) ** (exponent - 11)


def test_roundings_are_what_exact_arithmetic_says() -> None:
    covering = Covering(parse_reference(FMA), pairs=False)
    covering.sample(lambda text: None)
    seen = set()
    for row, reasons in zip(covering.found.rows, covering.found.reasons, strict=True):
        for reason in reasons:
            if not isinstance(reason, tuple) or reason[0].step != "d" or reason[0].aspect not in ("rounding", "sum"):
                continue
            a, b, c = (value(pattern, "f16") for pattern in row)
            assert not any(isinstance(x, str) for x in (a, b, c))
            exact = Fraction(a) * Fraction(b) + Fraction(c)
            case = reason[0].case
            if reason[0].aspect == "sum":
                zero = "zero" in case
                assert (exact == 0) == zero, (row, case)
                assert zero or (exact < 0) == (case == "negative"), (row, case)
            else:
                halves, off = divmod(abs(exact), half_of(exact))
                assert (halves % 2 == 1) == ("half" in case and "below" not in case), (row, case)
                assert (off != 0) == ("below" in case or "above" in case), (row, case)
                assert ("odd" in case) == (halves // 2 % 2 == 1), (row, case)
            seen.add(case)
    assert len(seen) > 10


def test_the_rounding_of_a_loop_of_one_round_is_not_that_of_the_result() -> None:
    def cases(step: str, d: str, name: str) -> dict[tuple[str, str], list[bool]]:
        text = SMALL.replace("roundings: {", 'roundings: {s: "round(e2m1, toward_zero)", ').replace(
            "d: e3m2", f"d: {d}"
        )
        text = text.partition("steps:")[0] + f'steps: {{d: "{step}"}}\n'
        covering = Covering(Model("small", parse_unit(text, "small.yaml")), pairs=False, changes=[])
        every = np.array(list(product(range(16), range(16), range(0, 64, 9))), dtype=np.uint64)
        flags = covering._hits(every, np.arange(len(covering.singles)), None)
        return {(one.aspect, one.case): flags[:, place].tolist() for place, one in enumerate(covering.singles)
                if one.step == name and one.aspect in ("rounding", "range", "zero result")}  # fmt: skip

    loop = "r(exact(repeat(i in range(1), +0, s(exact(a[i] * b[i], acc))), c))"
    assert cases(loop, "e3m2", "repeat[0]") == cases("s(exact(a[0] * b[0], +0))", "e2m1", "d") != {}


@pytest.mark.parametrize(("text", "addends"), [(SMALL, 64), (SPECIAL, 32)])
def test_every_input_of_a_small_unit_agrees_with_the_theorems(text: str, addends: int) -> None:
    covering = Covering(small(text), pairs=text == SMALL)
    found = covering.run(Options("bitwuzla", 240))
    assert not found.open
    assert found.unreachable
    every = np.array(list(product(range(16), range(16), range(addends))), dtype=np.uint64)
    flags = covering._hits(every, np.arange(len(covering.singles)), None)
    met = {condition: flags[:, place] for place, condition in enumerate(covering.singles)}
    for wanted, count in found.counts.items():
        if isinstance(wanted, tuple):
            reached = np.logical_and.reduce([met[condition] for condition in wanted]).any()
            assert reached == (wanted not in found.unreachable) == (count > 0), wanted
        else:
            shows = covering._shown_by_rows(every, [wanted]).any()
            assert shows == (wanted not in found.same) == (count > 0), wanted.name


@pytest.fixture(scope="module")
def two() -> Cover:
    covering = Covering(small(TWO), pairs=False, changes=[])
    return covering.run(Options("bitwuzla", 60))


def terms_of(row: tuple[int, ...]) -> list[tuple[str | Fraction, str | Fraction, int]]:
    """The factors and the sign of each product of `TWO`, and the addend with the factor 1."""
    words = [(pattern, "e3m3_ieee", 6) for pattern in row[:4]]
    values = [value(pattern, name) for pattern, name, _ in words] + [Fraction(1), value(row[4], "e4m5_ieee")]
    signs = [pattern >> top & 1 for pattern, _, top in words] + [0, row[4] >> 9 & 1]
    return [(values[k], values[k + 2], signs[k] ^ signs[k + 2]) for k in range(2)] + [(values[4], values[5], signs[5])]


def test_infinity_times_zero_is_the_only_reason_for_a_nan_in_each_product(two: Cover) -> None:
    alone = set()
    for row in two.rows:
        special = [(k, x, y) for k, (x, y, _) in enumerate(terms_of(row)) if isinstance(x, str) or isinstance(y, str)]
        if len(special) == 1:
            (k, x, y), infinities = special[0], ("inf", "-inf")
            alone |= {(k, "first")} if x in infinities and y == 0 else set()
            alone |= {(k, "second")} if y in infinities and x == 0 else set()
    assert alone == set(product(range(2), ("first", "second")))


def test_the_sign_of_a_zero_hangs_on_each_term(two: Cover) -> None:
    """Each is the only positive one: of zeros, and of numbers that cancel."""
    found = set()
    for row in two.rows:
        terms = terms_of(row)
        if any(isinstance(x, str) or isinstance(y, str) for x, y, _ in terms):
            continue
        values, signs = [Fraction(x) * Fraction(y) for x, y, _ in terms], [sign for _, _, sign in terms]
        if sum(values) == 0 and signs.count(0) == 1:
            found.add((signs.index(0), any(values)))
    assert found == set(product(range(3), (False, True)))


def test_a_changed_operator_that_vectors_do_not_show_changes_nothing(tmp_path: Path) -> None:
    """Of the printed module: a zero product that counts with the other factor's exponent, say."""
    path = tmp_path / "two.yaml"
    path.write_text(TWO, encoding="utf-8")
    found, _ = measured(str(path), None, 30.0, False, 0, StatusLine())
    assert found["caught"] > 90
    assert set(found) == {"caught", "equal"}


def test_the_result_of_a_case_hangs_on_what_the_unit_says(two: Cover) -> None:
    case = next(wanted for wanted in two.counts if isinstance(wanted, tuple) and wanted[0].flaw)
    assert case[0].flaw is not None
    assert str(case[0]).endswith(f', and the flag "{case[0].flaw[1]}" decides the result')
    assert (replace(case[0], flaw=None),) in two.counts
    with pytest.raises(RuleError, match="another unit"):
        refuted(Unreachable(two.model, ((replace(case[0], flaw=(case[0].flaw[0], "other")),),)), says("unsat"))


@pytest.mark.parametrize("given", [{"cases": False}, {"changes": []}])
def test_vectors_tell_a_unit_whose_zero_products_count(given: dict[str, Any]) -> None:
    """Those for a change of one parameter alone, and those for conditions alone."""
    text = """unit: one
formats: {a: e4m3, b: e4m3, c: none, d: f32}
length: 2
roundings: {r: "round(f32, toward_zero)"}
steps: {d: "r(fused(a[0:2] * b[0:2], F=13))"}
"""
    wrong = text.replace("a[0:2] * b[0:2]", "counting(a[0:2] * b[0:2])")
    right, other = (Model("one", parse_unit(one, "one.yaml")) for one in (text, wrong))
    covering = Covering(right, pairs=False, samples=500, **given)
    found = covering.run(Options("bitwuzla", 60))
    assert not found.open
    assert found.results != found.results_of(other)


@pytest.mark.parametrize("reference", ["hopper/wgmma/m64n8k32.f16.e5m2.e5m2", "rdna4/wmma/f16_16x16x16_f16",
                                       "blackwell/tcgen05mma/m64n8k32.f16.e4m3.e4m3"])  # fmt: skip
def test_samples_tell_units_whose_zero_terms_count(reference: str) -> None:
    """Without solvers: a product is zero beside an addend, or products, far below it."""
    model = parse_reference(reference)
    counting = [Change(f"{name}={value}", near) for name, value, near in neighbours(model) if name == ZEROS_COUNT]
    covering = Covering(model, pairs=False, changes=counting, cases=False, samples=2048)
    covering.sample(lambda text: None)
    assert counting
    assert covering.reached.min() > 0


def test_a_change_is_none_by_a_theorem_about_it() -> None:
    """Another change's theorem, and one about a case, say nothing of it."""
    unit = small()
    covering = Covering(unit)
    found = covering.run(Options("bitwuzla", 60))
    change, same = next(iter(found.same.items()))
    assert same.theorem.goal == SidesAgree(Problem(unit, change.model))
    assert same.verdict == "equal"
    assert same.ground
    other = next(one for one in covering.changes if one not in found.same)
    for theorem in (same.theorem, next(iter(found.unreachable.values()))):
        assert Proof(Problem(unit, other.model), theorem=theorem).verdict == "unknown"


def test_no_theorem_of_a_case_that_an_input_reaches() -> None:
    covering = Covering(small(), pairs=False)
    covering.sample(lambda text: None)
    reached = next((one,) for one, count in zip(covering.singles, covering.reached, strict=True) if count)
    with pytest.raises(RuleError, match="sat"):
        refuted(Unreachable(small(), (reached,)), Engines("bitwuzla", 30.0))
    found = covering.run(Options("bitwuzla", 60))
    case, theorem = next(iter(found.unreachable.items()))
    assert theorem.goal.statement().startswith("no input of small (unit ")
    assert implied(Unreachable(small(), ((*reached, *case),)), theorem)
    with pytest.raises(RuleError, match="does not speak of"):
        implied(Unreachable(small(), (reached,)), theorem)
    with pytest.raises(RuleError, match="another unit"):
        implied(Unreachable(parse_reference(FMA), (case,)), theorem)


def test_an_unknown_answer_proves_nothing() -> None:
    case = (Condition("d", "rounding", "half, even"),)
    with pytest.raises(RuleError, match="unknown"):
        refuted(Unreachable(small(), (case,)), says("unknown"))


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    folder = tmp_path_factory.mktemp("cover")
    (folder / "small.yaml").write_text(SMALL, encoding="utf-8")
    vectors = folder / "cover.jsonl"
    result = run("cover", str(folder / "small.yaml"), "-o", str(vectors), "--json", "--solver", "bitwuzla")
    assert result.exit_code == 0, result.stderr
    document: dict[str, Any] = json.loads(result.stdout)
    return vectors, document


def test_the_command_writes_vectors_that_say_what_they_reach(written: tuple[Path, dict[str, Any]]) -> None:
    path, document = written
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    assert rows == document["vectors"]
    texts = {text for row in rows for text in row["reaches"]}
    kinds = [document[kind] for kind in ("conditions", "pairs", "changes")]
    assert texts == {text for kind in kinds for text in kind["reached"]}
    assert document["complete"]
    assert all(kind["out_of_reach"] for kind in kinds)
    assert all(text.startswith("differs from ") for text in document["changes"]["reached"])
    assert run("evaluate", str(path)).exit_code == 0


def test_no_file_is_written_where_no_vector_was_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every command that reads vectors would refuse it."""
    monkeypatch.setattr(report, "vectors_of", lambda *given: [])
    path = tmp_path / "none.jsonl"
    found = run("cover", "ieee/muladd/f16", "--no-pairs", "-o", str(path), "--timeout", "2", "--fresh")
    assert f"no vector was found: {path} is not written" in found.stderr
    assert not path.exists()


@pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler")
def test_a_c_header_has_the_same_numbers(written: tuple[Path, dict[str, Any]], tmp_path: Path) -> None:
    path, document = written
    header = tmp_path / "cover.h"
    assert run("export", str(path), "--format", "c", "-o", str(header)).exit_code == 0
    program = tmp_path / "show.c"
    program.write_text(
        '#include <stdio.h>\n#include "cover.h"\nint main(void) { for (int i = 0; i < MMAPROBE_VECTORS; i++) '
        'printf("%x %x %02x %02x\\n", mmaprobe_a[i][0], mmaprobe_b[i][0], mmaprobe_c[i], mmaprobe_d[i]); return 0; }\n',
        encoding="utf-8",
    )
    subprocess.run(["cc", "-std=c99", "-Wall", "-Werror", "-o", str(tmp_path / "show"), str(program)], check=True)
    shown = subprocess.run([tmp_path / "show"], check=True, capture_output=True, text=True).stdout.split()
    assert shown == [x for row in document["vectors"] for x in (row["a"][0], row["b"][0], row["c"], row["d"])]


def test_one_header_has_one_model(tmp_path: Path) -> None:
    rows = [{"model": name, "a": ["3c00"], "b": ["3c00"], "c": "0000"} for name in (FMA, f"{FMA}@length=2")]
    path = tmp_path / "two.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    result = run("export", str(path), "--format", "c")
    assert result.exit_code == 2
    assert "of 2 models" in result.stderr


def test_too_long_a_unit_is_refused() -> None:
    result = run("cover", "hopper/mma/m16n8k16.f32.f16.f16.f32@length=1024,block=16")
    assert result.exit_code == 2
    assert "512 products" in result.stderr


@pytest.mark.parametrize("name", ["sticky-dropped", "zero-wins-maximum", "not-normalised-first-fma"])
def test_mutants_of_the_datapath_are_caught(name: str) -> None:
    [mutant] = [one for one in differing() if one.id == name]
    assert caught(mutant, 0.0).model


def test_what_was_found_is_written_whenever_the_time_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The process was ended while it wrote thousands of vectors, a second after its time."""
    limits, written = list[float | None](), report.vectors_of

    def vectors_of(cover: Cover, signalling: Model | None = None) -> list[Vector]:
        limits.append(state.hard)
        return written(cover, signalling)

    monkeypatch.setattr(report, "vectors_of", vectors_of)
    path = tmp_path / "vectors.jsonl"
    found = CliRunner().invoke(
        main, ["cover", "ieee/muladd/f16", "--no-pairs", "-o", str(path), "--timeout", "2", "--fresh"]
    )
    assert found.exit_code in (0, 3), found.output
    assert limits == [None]
    assert path.read_text().count("\n") > 10


def test_once_the_time_is_over_one_table_is_looked_at_and_no_query_is_made(monkeypatch: pytest.MonkeyPatch) -> None:
    covering, looked = Covering(small()), list[int]()
    covering.options = Options("bitwuzla", 60)
    covering.deadline = covering.options.clock() - 1
    monkeypatch.setattr(covering, "_choose", lambda table: looked.append(len(table)))
    covering.take(np.zeros((5000, len(covering.layout.formats)), dtype=np.uint64))
    assert looked == [2048]
    monkeypatch.delattr("mmaprobe.queries.covering.cover.datapath")
    monkeypatch.delattr("mmaprobe.queries.covering.cover.Compared")
    covering._solve([(single,) for single in covering.singles])
    covering._show_changes()


def test_a_time_that_ends_while_conditions_are_built_is_said(tmp_path: Path) -> None:
    """The process was ended in the midst of it, without a word of what to give."""
    path = tmp_path / "vectors.jsonl"
    command = ["cover", "plan:loop/lanes@length=256", "--no-pairs", "-o", str(path), "--timeout", "1"]
    found = run(*command)
    assert found.exit_code == 3
    assert "no vector was found, as the conditions were not built in time: give more than --timeout 1" in found.stderr
    assert not path.exists()


@pytest.mark.parametrize(
    ("seconds", "why"),
    [
        (0.0, "the time was over: give more than --timeout 9"),
        (5.0, "no engine answered in the seconds that one question had, which grow with --timeout"),
    ],
)
def test_why_conditions_stay_open_is_said(monkeypatch: pytest.MonkeyPatch, seconds: float, why: str) -> None:
    """The exit code is 3 in both cases."""
    monkeypatch.setattr(Covering, "run", lambda self, options: self.finished())
    monkeypatch.setattr(interrupts, "left", lambda given: seconds)
    found = run("cover", "ieee/fma/f16", "--no-pairs", "--timeout", "9")
    assert found.exit_code == 3
    assert re.search(rf"not decided: \d+ in all; {why}", found.stderr), found.stderr


def test_time_that_is_left_goes_to_what_is_still_open(monkeypatch: pytest.MonkeyPatch) -> None:
    """The fixed seconds of a question were all that it had, whatever --timeout was."""
    for name in ("SMALL_SECONDS", "WHOLE_SECONDS", "BESIDE_SECONDS", "PROOF_SECONDS"):
        monkeypatch.setattr(f"mmaprobe.queries.covering.cover.{name}", 0.001)
    found = Covering(small(TWO), pairs=False).run(Options("bitwuzla", 120))
    assert found.unreachable
    assert found.same
    assert not found.open


def test_changes_of_the_same_form_are_proved_before_solvers_are_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    """A question about one takes as long as the proofs of a hundred: of an integer unit, whose sums lose no bits, there
    were enough to use up the time."""
    covering = Covering(parse_reference("x86/avx-vnni-int8/vpdpbssd"), pairs=False, cases=False)
    covering.options = Options("bitwuzla", 60)
    monkeypatch.setattr(covering, "_search", lambda *_: None)
    covering._show_changes()
    assert {change.name.partition("=")[0] for change in covering.found.same} >= {"zeros", "overflow"}


def test_the_conditions_are_said_to_be_built(monkeypatch: pytest.MonkeyPatch) -> None:
    said = list[str]()
    monkeypatch.setattr(cover_command, "progress", said.append)
    run("cover", "plan:loop/lanes@length=256", "--timeout", "1")
    assert said[0] == "conditions of plan:loop/lanes@length=256"


def test_an_interrupt_leaves_no_row_without_its_reasons() -> None:
    """What was found until then is written: each row with what it reaches."""

    class Interrupted(list[Any]):
        def append(self, row: Any) -> None:
            super().append(row)
            if len(self) == 3:
                interrupt(KeyboardInterrupt, None)

    covering = Covering(small(), pairs=False, changes=[])
    covering.found.rows = Interrupted()
    found = covering.run(Options("bitwuzla", 60))
    assert found.interrupted
    assert len(found.rows) == len(found.reasons) == 3
    assert sum(found.counts.values()) >= 3
    assert len(report.vectors_of(found)) == 3


TWICE = """unit: twice
formats: {a: e5m2, b: e5m2, c: f32, d: bf16}
length: 1
roundings: {wide: "round(f32, toward_zero)", narrow: "round(bf16, nearest_even)"}
steps: {sum: "wide(exact(c, a[0] * b[0]))", d: "narrow(sum)"}
"""


def met_by(model: Model, rows: list[tuple[int, ...]]) -> dict[str, list[bool]]:
    """For each case of the inputs and steps of a unit, whether each row meets it."""
    covering = Covering(model, pairs=False, changes=[])
    met = covering._hits(np.array(rows, dtype=np.uint64), np.arange(len(covering.singles)), None)
    return {str(case): met[:, place].tolist() for place, case in enumerate(covering.singles)}


def reached(cover: Cover, case: str) -> list[tuple[tuple[int, ...], int]]:
    """The rows that were chosen for a case of one condition, with their results."""
    return [(row, result) for row, reasons, result in zip(cover.rows, cover.reasons, cover.results, strict=True)
            for reason in reasons if isinstance(reason, tuple) and str(reason[0]) == case]  # fmt: skip


def test_a_term_beyond_what_is_kept_decides_what_is_half_way() -> None:
    """Of a sum that is rounded twice: without the product, each difference has another result."""
    model = Model("twice.yaml", parse_unit(TWICE, "twice.yaml"))
    covering = Covering(model, pairs=False, changes=[], samples=2048)
    covering.sample(lambda text: None)
    rows = reached(
        covering.finished(), "sum: apart: 0 beyond what is kept, the other half way and rounded up, a difference"
    )
    assert len(rows) >= 3
    for (_, b, c), result in rows:
        assert evaluate_row(model, Operands((0,), (b,), c, ((), ()))) != result


def test_the_largest_term_is_outdone_by_the_others(two: Cover) -> None:
    rows = reached(two, "d: term c: the largest alone, and the sum has the other sign")
    assert rows
    for row, result in rows:
        c, d = (value(pattern, "e4m5_ieee") for pattern in (row[4], result))
        assert isinstance(c, Fraction)
        assert isinstance(d, Fraction)
        assert c * d < 0


def test_distances_on_a_grid_are_those_of_exponents_less_f() -> None:
    """One below the largest is a case of every term: with the exponents that the alignment raises, where F differs, it
    was said that no input reaches it."""
    bits, emin = (6, 6, 9), {"e3m3_ieee": -2, "e4m5_ieee": -6}
    model = small(TWO.replace("fused(a[0:2] * b[0:2], c, F=9, carry=3)", "grid(a[0:2] * b[0:2], c, F=[6, 9])"))
    covering = Covering(model, pairs=False, changes=[], samples=4096)
    covering.sample(lambda text: None)
    found = covering.finished()
    seen = set()
    for row, reasons in zip(found.rows, found.reasons, strict=True):
        cases = [str(reason[0]) for reason in reasons if isinstance(reason, tuple)]
        asked = [match for case in cases if (match := re.fullmatch(r"d: term (\w): ([0-9]+) below the largest", case))]
        if not asked:
            continue
        places = list[int | None]()
        for one, other, _ in terms_of(row):
            assert isinstance(one, Fraction)
            assert isinstance(other, Fraction)
            names = ("e3m3_ieee",) * 2 if len(places) < 2 else ("", "e4m5_ieee")
            exponents = [max(exponent_of(x), emin[name]) for x, name in zip((one, other), names, strict=True) if name]
            places.append(sum(exponents) - bits[len(places)] if one and other else None)
        for match in asked:
            own = places["01c".index(match[1])]
            assert own is not None
            assert max(place for place in places if place is not None) - own == int(match[2]), (row, match[0])
            seen.add((match[1], match[2]))
    assert {("0", "1"), ("1", "1"), ("c", "1"), ("0", "6"), ("c", "9")} <= seen


def exponent_of(x: Fraction) -> int:
    """Of the leading one; 0 of a zero."""
    return math.floor(math.log2(abs(x))) if x else 0


def test_integers_have_no_conditions_of_special_values() -> None:
    """A third of the conditions of such a unit, none of which an input reaches, took most of its time."""
    for reference, fewest in (("cdna3/mfma/i32_16x16x32_i8", 1000), ("x86/avx512/vpdpbusd", 100)):
        cases = [str(one) for one in Covering(parse_reference(reference), pairs=False, changes=[]).singles]
        assert len(cases) > fewest
        assert not [case for case in cases if re.search("infini|NaN", case)]
        table = run("export", reference, "--format", "conditions").stdout
        assert "product" in table
        assert not re.search("infini|NaN", table)


def test_proofs_by_one_pair_of_engines_share_a_line(tmp_path: Path) -> None:
    path = tmp_path / "small.yaml"
    path.write_text(SMALL, encoding="utf-8")
    said = run("cover", str(path), "-o", str(tmp_path / "cover.jsonl"), "--solver", "bitwuzla").stderr
    assert " out of reach by bitwuzla " in said
    assert "unsat in" not in said
    assert said.count("out of reach by bitwuzla") <= 2, said


def test_rows_put_aside_show_the_changes_that_they_show_at_once() -> None:
    every = np.array(list(product(range(16), range(16), range(64)))[:15000], dtype=np.uint64)
    at_once, later = Covering(small()), Covering(small())
    later.aside = []
    at_once.take(every.copy(), apart=True)
    later.take(every.copy(), apart=True)
    assert 0 < sum(map(len, later.aside)) < len(every)  # some were tried on the way
    later._choose_aside()
    shown = [(one.reached > 0).tolist() for one in (at_once, later)]
    assert shown[0] == shown[1]
    assert any(shown[0][-len(later.changes) :])


def test_products_of_integers_have_the_significands_that_explain_shows() -> None:
    """That of two int8 is their product over 2^12. `cover` took the highest of its four bits above the point for the
    second one, and said that no input reaches a significand of 2 and more."""
    model = small("""unit: small
formats: {a: int8, b: int8, c: f32, d: f32}
length: 1
roundings: {r: "round(f32, nearest_even)"}
steps: {d: "r(fused(a[0] * b[0], c, F=4))"}
""")
    values = range(-128, 128)
    met = met_by(model, [(a % 256, b % 256, 0) for a in values for b in values])
    sizes = np.array([abs(a * b) / 2**12 * (1 if a * b > 0 else -1) for a in values for b in values])
    for sign, word in ((1, "+"), (-1, "-")):
        for case, low, high in (("of 2 or more", 2, 9), ("from 1 to 2", 1, 2), ("below 1", 2**-12, 1)):
            flags = met[f"product: product 0: {word}significand {case}"]
            assert (np.array(flags) == ((sign * sizes >= low) & (sign * sizes < high))).all(), (word, case)


def test_an_integer_times_infinity_is_no_subnormal_number_times_infinity() -> None:
    model = small("""unit: small
formats: {a: int8, b: e3m2_ieee, c: f32, d: f32}
length: 1
roundings: {r: "round(f32, nearest_even)"}
steps: {d: "r(exact(a[0] * b[0], c))"}
""")
    cases, factor = met_by(model, [(3, 0x1C, 0), (4, 0x1C, 0), (0, 0x1C, 0)]), "product: product 0: infinity, and the "
    assert cases[f"{factor}first factor another number"] == [True, False, False]
    assert cases[f"{factor}first factor a power of two"] == [False, True, False]
    assert f"{factor}first factor subnormal" not in cases


SUM = "r(exact(a[0] * b[0], c))"
OF_SUM = "r(fused(s, c, F=3))"
NAN_OF_NEGATIVE_ZERO, PLUS, MINUS, NONE = 32, 6, 14, 8  # patterns: of c, and of factors the infinities and -0


@pytest.mark.parametrize(("result", "s", "c", "row", "case", "met"), [
    (SUM, "", "e3m2_negative_zero", (2, 2, NAN_OF_NEGATIVE_ZERO), "c: value: -subnormal", False),
    ("r(grid(a[0] * b[0], c, F=[0, 3]))", "", "e3m2", (2, 2, 0), "d: largest exponent: more above every term's", False),
    ("r(grid(a[0] * b[0], c, F=[0, 3], floors=[1, none]))", "", "e3m2", (2, 2, 0),
     "d: largest exponent: one above every term's", True),
    (SUM, "", "e3m2", (PLUS, 2, 0), "d: special: +infinity", True),
    (SUM, "", "e3m2", (MINUS, 2, 24), "d: sign: -", True),
    ("r(exact(s, s))", "fused(a[0] * b[0], c, F=3)", "e3m2", (5, 5, 27), "d: one bit of a result: 0, clear, subnormal",
     False),
    (OF_SUM, "fused(a[0] * b[0], F=3)", "e3m2", (NONE, 2, 32), "d: sum: of zeros, all -", True),
    (OF_SUM, "fused(a[0] * b[0], F=3)", "e3m2", (NONE, 2, 32), "d: term s: -zero", True),
    ("r(exact(s, +0))", "fused(a[0] * b[0], c, F=3)", "e3m2_ieee", (MINUS, 2, 28), "d: special: s alone NaN", True),
    ("r(exact(s, +0))", "fused(a[0] * b[0], c, F=3)", "e3m2_ieee", (MINUS, 2, 27), "d: special: s alone -infinity",
     True),
    ("r(grid(s, c, F=[3, 3], frame=0))", "fused(a[0] * b[0], F=3)", "e3m2", (NONE, 2, 12),
     "d: frame: -, a term opposes", True),
    ("r(fused(a[0] * b[0], c, F=6, reach=[none, 1]))", "", "e3m2", (4, 2, 8), "d: term c: +vanishes", True),
    ("r(fused(a[0] * b[0], c, F=6, zeros=2))", "", "e3m2", (0, 2, 12), "d: largest exponent: more above every term's",
     True),
    ("r(fused(a[0] * b[0], c, F=6, zeros=2))", "", "e3m2", (0, 2, 12), "d: leading one: -2 places", True),
])  # fmt: skip
def test_conditions_hold_where_the_nodes_say_so(
    result: str, s: str, c: str, row: tuple[int, ...], case: str, met: bool
) -> None:
    """Of NaNs among small patterns, exponents on a grid, infinite results, zero and infinite sums as terms, terms
    beyond the reach of an alignment, and exponents of zeros that cut no bit. `cover` said that no input reaches most of
    them, or wrote vectors that do not."""
    step = f'  s: "{s}"\n' if s else ""
    d = "e3m2_negative_zero" if "+infinity" in case or "result" in case else "e3m3_ieee"
    model = small(f"""unit: small
formats: {{a: e2m1_ieee, b: e2m1_ieee, c: {c}, d: {d}}}
length: 1
roundings: {{r: "round({d}, nearest_even)"}}
steps:
{step}  d: "{result}"
""")
    assert met_by(model, [row])[case] == [met]


def test_a_sum_that_cancels_counts_with_its_exponent() -> None:
    """`cover` had the case of a zero that does not count alone, and called it a zero."""
    model = small("""unit: small
formats: {a: e3m3_ieee, b: e3m3_ieee, c: e4m5_ieee, d: e4m5_ieee}
length: 2
roundings: {r: "round(e4m5_ieee, nearest_even)"}
steps:
  s: "fused(a[0:2] * b[0:2], F=6)"
  d: "r(fused(s, c, F=3))"
""")
    one, minus, small_c, large_c = 0x18, 0x58, 2 << 5, 7 << 5  # 1, -1, 2^-5, 1
    rows = [(one, minus, one, one, c) for c in (small_c, large_c)] + [(0, 0, one, one, small_c)]
    cases = met_by(model, rows)
    counts = "d: term s: zero that counts, its exponent the largest, and another loses bits"
    assert cases[counts] == [True, False, False]
    assert "d: term s: zero that does not count, with an exponent that would cut another" in cases
    assert "d: term c: zero, with an exponent that would cut another" in cases
    assert not [case for case in cases if case.startswith("d: term c: zero that")]


def test_sums_that_keep_their_signs_have_conditions_of_their_own() -> None:
    """Those of the first were the second's."""
    model = small("""unit: small
formats: {a: e2m1, b: e2m1, c: e3m2, d: e3m2}
length: 1
roundings: {r: "round(e3m2, nearest_even)"}
steps:
  s: "r(signed(fused(a[0] * b[0], c, F=0)))"
  d: "r(signed(grid(s, c, F=[0, 4])))"
""")
    cases = met_by(model, [(2, 2, 0), (2, 10, 12)])
    assert cases["fused.exact: sum: positive"] == [True, False]
    assert cases["grid.exact: sum: positive"] == [True, True]


def test_the_first_rows_reach_everything_and_each_the_most_of_what_is_left(tmp_path: Path) -> None:
    covering = Covering(small())
    found = covering.run(Options("bitwuzla", 60))
    covering.arrange()
    hits = covering._hits(np.array(found.rows, dtype=np.uint64), np.arange(len(covering.wanted)), None)
    assert 0 < found.first < len(found.rows) == len(set(found.rows))
    every = {wanted for wanted, count in found.counts.items() if count}
    assert {reason for reasons in found.reasons[: found.first] for reason in reasons} == every
    left = hits.any(axis=0)
    for row in range(found.first):
        news = (hits & left).sum(axis=1)
        assert news[row] == news.max() > 0
        left &= ~hits[row]
    assert not left.any()
    for row, reasons in enumerate(found.reasons):
        assert reasons
        assert all(hits[row, covering.places[reason]] for reason in reasons)
    file, vectors = tmp_path / "small.yaml", tmp_path / "vectors.jsonl"
    file.write_text(SMALL, encoding="utf-8")
    said = run("cover", str(file), "-o", str(vectors)).stderr
    assert f": {len(found.rows)} vectors (the first {found.first} reach all that is reached), " in said
    assert len(vectors.read_text(encoding="utf-8").splitlines()) == len(found.rows)
