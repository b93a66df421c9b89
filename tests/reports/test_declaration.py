"""Declarations for IEEE P3109: kappa is what the definition counts, and bounds hold."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

from mmaprobe.cli.main import main
from mmaprobe.queries.kernel.questions.statements import problems_of
from mmaprobe.queries.properties import declaration as module
from mmaprobe.queries.properties.declaration import format_name
from mmaprobe.queries.search.distinguish import Options
from mmaprobe.queries.search.witness import confirmed_witness
from mmaprobe.queries.tactics.records import Proof
from mmaprobe.smtmodel.arithmetic.display import exact_value
from mmaprobe.smtmodel.arithmetic.formats import format_named
from mmaprobe.smtmodel.evaluate.batch import evaluate_row
from mmaprobe.smtmodel.evaluate.numbers import steps_between
from mmaprobe.smtmodel.evaluate.operands import Operands
from mmaprobe.smtmodel.inputs.admitted import Inputs
from mmaprobe.smtmodel.tables.reference import parse_reference
from tests.schemas import check

#: Annex E.3: eight products of Binary8p4se, added in binary16
E3 = """unit: e3
formats: {a: binary8p4se, b: binary8p4se, c: f16, d: binary8p4se}
length: 8
roundings:
  s: round(f16, nearest_even)
  r: round(binary8p4se, nearest_even)
steps:
  sum: repeat(k in range(8), +0, s(exact(acc, a[k] * b[k])))
  d: r(sum)
"""


def declared(name: str) -> dict[str, Any]:
    result = CliRunner().invoke(main, ["datasheet", name, "--p3109", "--json"])
    assert result.exit_code == 0, result.output
    check("datasheet", result.stdout)
    found: dict[str, Any] = json.loads(result.stdout)
    return found


def test_an_exact_unit_has_kappa_0() -> None:
    found = declared("arm/neon/fdot.f32.e4m3.e4m3")
    assert found["kappa"] == "0"
    assert found["kappa_basis"].startswith("proved by ")
    assert "vector" not in found
    assert found["error_bound"] == "|d - exact| <= 2^-24 * |exact|"
    assert found["approximates"].endswith("-> binary32, (NearestTiesToEven, SatNone)")


@pytest.mark.parametrize("name", ["ieee/fma/e2m1", "ieee/fma/e2m3"])
def test_a_format_without_infinity_and_nan_saturates(name: str) -> None:
    assert declared(name)["approximates"].endswith("SatFinite)")


@pytest.mark.parametrize("name", ["arm/neon/bfdot", "volta/mma/m8n8k4.f32.f16.f16.f32"])
def test_an_input_that_refutes_kappa_0_is_counted(name: str) -> None:
    """The number of values, counted one by one from the smaller result to the larger."""
    found, model = declared(name), parse_reference(name)
    vector = found["vector"]
    ours, defined = (int(x, 16) for x in vector["results"])
    numbers = [[int(x, 16) for x in vector[side]] for side in ("a", "b")]
    c = int(vector["c"], 16)
    assert evaluate_row(model, Operands(tuple(numbers[0]), tuple(numbers[1]), c)) == ours
    values = [exact_value(pattern, model.d) for pattern in (ours, defined)]
    if found["kappa"] == "infinity":
        assert sorted(isinstance(value, str) for value in values) == [False, True]
    else:
        assert found["kappa"] is None
        assert found["at_least"] == abs(ours - defined) > 0  # of one sign here
        assert {ours >> 31, defined >> 31} == {ours >> 31}


def test_a_negative_zero_is_no_infinity(monkeypatch: pytest.MonkeyPatch) -> None:
    model = parse_reference("ieee/fma/f16@flush_outputs=true")
    (problem,) = problems_of("exact", model, Inputs())
    witness = confirmed_witness(problem, (0x9400, 0x2000, 0x8000))  # -2^-17, which is flushed to -0
    assert (witness.left, witness.right) == (0x8000, 0x8080)
    monkeypatch.setattr(module, "proofs_of", lambda *_: [Proof(problem, witness=witness)])
    found = module.declaration(model, Options(timeout=0.0))
    assert (found.kappa, found.at_least) == (None, 0x80)


def test_the_bound_of_annex_e_3_holds(tmp_path: Path) -> None:
    (path := tmp_path / "e3.yaml").write_text(E3)
    found, model, rng = declared(str(path)), parse_reference(str(path)), np.random.default_rng(3)
    coefficients = {json.dumps(term["of"]): Fraction(term["coefficient"]) for term in found["terms"]}
    assert found["approximates"].startswith("dot product of 8: Binary8p4se * Binary8p4se -> Binary8p4se")
    constant = sum(value for of, value in coefficients.items() if of in ("[[]]", "[]"))
    assert 0 < constant < 1
    for _ in range(300):
        a, b = ([int(x) for x in rng.integers(0, 0x58, 8) | rng.integers(0, 2, 8) << 7] for _ in range(2))
        x, y = ([exact_value(one, model.a) for one in side] for side in (a, b))
        if "nan" in (*x, *y):
            continue
        products = [left * right for left, right in zip(x, y, strict=True)]
        exact, size = sum(products), sum(map(abs, products))
        got = exact_value(evaluate_row(model, Operands(tuple(a), tuple(b), 0)), model.d)
        if isinstance(got, str):
            continue
        limit = Fraction("0.94") / 256 * size + abs(exact) / 16 + Fraction(1, 2048)
        assert abs(got - exact) <= limit


@pytest.mark.parametrize("name", ["binary8p4se", "binary6p3se", "e4m3", "f16", "e5m2fnuz", "int8", "uint4"])
def test_steps_are_counted_as_the_definition_has_it(name: str) -> None:
    fmt, rng = format_named(name), np.random.default_rng(1)
    finite = {p: v for p in range(1 << fmt.width) if not isinstance(v := exact_value(p, fmt), str) or v == "-0"}
    values = sorted({0 if value == "-0" else value for value in finite.values()})
    place = {value: k for k, value in enumerate(values)} | {"-0": values.index(0)}
    one, other = (np.array(list(finite), np.uint64)[rng.choice(len(finite), 200)] for _ in "lr")
    wanted = [abs(place[finite[p]] - place[finite[q]]) for p, q in zip(one.tolist(), other.tolist(), strict=True)]
    assert steps_between(one, other, fmt).tolist() == wanted


def test_steps_between_any_two_numbers_of_64_bits_are_counted() -> None:
    f64, least = format_named("f64"), 1 << 63
    one, other = (np.array(side, np.uint64) for side in ((0x3FF0 << 48, least | 5, 0), (0x3FF0 << 48 | 1, 7, least)))
    assert steps_between(one, other, f64).tolist() == [1, 12, 0]
    assert steps_between(np.array([least]), np.array([least - 1]), format_named("int64")).tolist() == [2**64 - 1]
    assert steps_between(np.array([least]), np.array([least - 1]), format_named("uint64")).tolist() == [1]
    assert steps_between(np.array([least]), np.array([0]), format_named("uint64")).tolist() == [least]


def test_a_bit_that_a_format_does_not_read_is_no_sign() -> None:
    one, other = np.array([0x81, 0x85], np.uint64), np.array([0x01, 0x02], np.uint64)
    assert steps_between(one, other, format_named("ue4m3")).tolist() == [0, 3]


@pytest.mark.parametrize(
    ("name", "wanted"),
    [
        ("binary8p4se", "Binary8p4se"),
        ("binary6p3sf", "Binary6p3sf"),
        ("binary8p1uf", "Binary8p1uf"),
        ("binary8p4ue", "Binary8p4ue"),
        ("e4m3fnuz", "Binary8p4sf"),
        ("e4m3", "e4m3"),
        ("ue8m0", "ue8m0"),
        ("f16", "binary16"),
        ("f32", "binary32"),
    ],
)
def test_names_of_formats(name: str, wanted: str) -> None:
    assert format_name(format_named(name)) == wanted


def test_what_is_raised_is_a_premise_where_the_formula_has_it(tmp_path: Path) -> None:
    """As of every unit whose fused sum takes subnormal factors; without x° nothing is said of it."""
    raised = "x° is x, or the smallest normal number of its format where x is smaller and not zero"
    for name, has in (("volta/mma/m8n8k4.f32.f16.f16.f32", True), ("arm/neon/fdot.f32.e4m3.e4m3", False)):
        found = declared(name)
        assert ("°" in found["error_bound"]) is has
        assert (raised in found["premises"]) is has
        bound = CliRunner().invoke(main, ["prove", "--property", "error-bound", name, "--json"])
        assert json.loads(bound.stdout)["premises"] == found["premises"]
        text = CliRunner().invoke(main, ["prove", "--property", "error-bound", name])
        assert text.stderr.count(raised) == has


def test_the_input_of_kappa_is_whole(tmp_path: Path) -> None:
    path = tmp_path / "drawn.yaml"
    path.write_text("""unit: drawn
formats: {a: e2m1, b: e2m1, c: e4m3, d: e4m3, random: uint4}
length: 2
roundings: {r: "round(e4m3, stochastic_b)"}
steps: {d: "r(fused(a[0:2] * b[0:2], c, F=3), random)"}
""")
    assert "random" in declared(str(path))["vector"]
    text = CliRunner().invoke(main, ["datasheet", str(path), "--p3109"]).output
    (line,) = (line for line in text.splitlines() if line.strip().startswith("input "))
    assert "random = " in line
    assert "; c = " in line
