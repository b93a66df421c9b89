"""Designs proved to be a model: what the model printed gives back, what single changes make of it, and certificates."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from itertools import product
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from pysmt.fnode import FNode

from mmaprobe.cli.main import main
from mmaprobe.queries.checking.folder import check_folder
from mmaprobe.queries.equality import cases, sweeping
from mmaprobe.queries.equality.simulated import in_order
from mmaprobe.queries.equality.sweeping import prove_design
from mmaprobe.queries.kernel.questions.designs import Designed
from mmaprobe.queries.properties.certify import certify_proofs
from mmaprobe.queries.search.distinguish import Options
from mmaprobe.queries.search.witness import replay
from mmaprobe.reports.exports.verilog import module
from mmaprobe.runner.rtl import RtlDevice
from mmaprobe.smtmodel.carriers.terms import TermCarrier
from mmaprobe.smtmodel.designs.design import Design
from mmaprobe.smtmodel.designs.yosys import read_design
from mmaprobe.smtmodel.evaluate.model import Model
from mmaprobe.smtmodel.nodes.trace import Part
from mmaprobe.smtmodel.tables.reference import parse_reference
from mmaprobe.smtmodel.units.unitfile import parse_unit
from tests.marks import some_slow
from tests.oracles.termeval import evaluate_term

pytestmark = [
    pytest.mark.compilers,
    pytest.mark.skipif(shutil.which("yosys") is None, reason="Yosys is not installed (the package yosys)"),
]

SMALL = """unit: small
formats: {a: e2m1, b: e2m1, c: e3m2, d: e3m2}
length: 1
roundings: {r: "round(e3m2, nearest_even)"}
steps: {d: "r(fused(c, a[0] * b[0], F=3))"}
"""
LEFT = """unit: fma
formats: {a: e3m2_ieee, b: e3m2_ieee, c: e3m2_ieee, d: e3m2_ieee}
length: 1
roundings: {r: "round(e3m2_ieee, nearest_even)"}
steps: {d: "r(exact(a[0] * b[0], c))"}
"""
PRINTED = ["ieee/fma/f16", "ieee/fma/f32", "volta/mma/m8n8k4.f32.f16.f16.f32", "arm/neon/bfdot",
           "hopper/mma/m16n8k16.f32.f16.f16.f32"]  # fmt: skip
STAGED = [("small", 1), ("small", 3), *zip(PRINTED, (2, 3, 4), strict=False)]
SMALL_FMAS = {"left": "left.sv,top=left", "first": "fma.sv,top=fma,#FIRST=1"}
PORTS = tuple((name, name) for name in "abcd")
HERE = Path(__file__).parent / "designs"
#: designs that are written by hand: the model, and changes that make another function of each
OWN = {
    "fma": ("ieee/fma/f16", [
        ("wire again = !near[N] && $signed(places) < room", "wire again = 0"),  # what was anticipated is not mended
        ("(kept[0] | |sum[N-P-1:0])", "|sum[N-P-1:0]"),  # ties
        ("|moved_p[N:0]", "|moved_p[N-1:0]"),  # a bit that is lost below the last place
    ]),
    "dot4": ("volta/mma/m8n8k4.f32.f16.f16.f32", [
        (" + {28'b0, minus[4]}", ""),  # a ones' complement for a negative number
        ("larger(exponent[1], exponent[0])", "exponent[1]"),  # a product that may be the largest
        ("|nan | |positive & |negative", "|nan"),  # an infinity less another one
    ]),
    "scaled": (str(HERE / "scaled.yaml"), [
        ("2'b11: digits = 9", "2'b11: digits = 8"),  # one product
        ("&scale_a | &scale_b", "&scale_a"),  # NaN
        ("(kept[0] | ", "("),  # ties among subnormal results
    ]),
    "fixed": (str(HERE / "fixed.yaml"), [
        ("places < 2", "places < 3"),  # a bit that is lost two places below the last one
        ("sum < 0 | zeros", "sum < 0"),  # a sum of zeros below zero
        ("(rest | whole[0])", "rest"),  # ties
    ]),
}  # fmt: skip
MUTANTS = [(name, number) for name, (_, changes) in OWN.items() for number in range(len(changes))]
KINDS = ({"$and", "$or", "$xor"}, {"$add", "$sub"}, {"$eq", "$ne"}, {"$lt", "$le", "$gt", "$ge"},
         {"$logic_and", "$logic_or"}, {"$reduce_or", "$reduce_and", "$reduce_bool", "$logic_not"})  # fmt: skip


@cache
def small() -> Model:
    return Model("small.yaml", parse_unit(SMALL, "small.yaml"))


def printed(model: Model, folder: Path) -> Path:
    path = folder / "unit.v"
    path.write_text(module(model, "unit"), encoding="utf-8")
    return path


def design_of(model: Model, folder: Path) -> Design:
    return replace(read_design([printed(model, folder)], "unit"), ports=PORTS)


def changed(design: Design, random: Random) -> Design:
    """A design in which one cell is another one, or reads one bit from elsewhere."""
    document = json.loads(design.netlist)
    (inner,) = document["modules"].values()
    cells: list[dict[str, Any]] = list(inner["cells"].values())
    cell = random.choice(cells)
    others = sorted({kind for kinds in KINDS if cell["type"] in kinds for kind in kinds} - {cell["type"]})
    if others and random.random() < 0.5:
        cell["type"] = random.choice(others)
    else:
        port = random.choice([port for port, way in cell["port_directions"].items() if way == "input"])
        bits = cell["connections"][port]
        inputs = [bit for row in inner["ports"].values() if row["direction"] == "input" for bit in row["bits"]]
        bits[random.randrange(len(bits))] = random.choice(["0", "1", *inputs])
    return replace(design, netlist=json.dumps(document))


def every_row(model: Model) -> np.ndarray:
    """All inputs of a small unit."""
    widths = [model.a.width, model.b.width, model.c.width]
    every, columns = np.arange(1 << sum(widths), dtype=np.uint64), []
    for width in widths:
        columns.append(every & np.uint64((1 << width) - 1))
        every >>= np.uint64(width)
    return np.stack(columns, axis=1)


@pytest.mark.parametrize("reference", some_slow(PRINTED, *PRINTED))
def test_a_model_read_back_is_proved_to_be_itself(tmp_path: Path, reference: str) -> None:
    model = parse_reference(reference)
    proof = prove_design(Designed(model, model, design=design_of(model, tmp_path)), Options(timeout=300), confirm=False)
    assert proof.verdict == "equal"
    assert proof.theorem is not None
    assert proof.theorem.rule == "agreed"


@pytest.mark.parametrize("case", some_slow(STAGED, *STAGED[2:]))
def test_a_model_printed_in_stages_is_proved_to_be_itself(tmp_path: Path, case: tuple[str, int]) -> None:
    reference, stages = case
    model = small() if reference == "small" else parse_reference(reference)
    path = tmp_path / "unit.v"
    path.write_text(module(model, "unit", stages), encoding="utf-8")
    design = replace(read_design([path], "unit"), ports=PORTS)
    assert (design.parsed.latency, design.parsed.clocks) == (stages, frozenset({"clk"}))
    assert prove_design(Designed(model, model, design=design), Options(timeout=300), confirm=False).verdict == "equal"
    widths = [len(cell.output) for cell in design.parsed.cells if cell.kind == "$dff"]
    assert 0 < sum(widths) < 150 * stages or reference != "small"


@pytest.mark.parametrize("seed", some_slow(range(8), *range(1, 8)))
def test_verdicts_on_changed_designs_are_those_of_all_inputs(tmp_path: Path, seed: int) -> None:
    model, random = small(), Random(seed)
    design, rows = design_of(model, tmp_path), every_row(model)
    found = dict.fromkeys(("equal", "different"), 0)
    for other in [design, *(changed(design, random) for _ in range(12))]:
        problem = Designed(model, model, design=other)
        differ = replay(problem, rows).differs.any()
        proof = prove_design(problem, Options(timeout=60), confirm=False)
        assert proof.verdict == ("different" if differ else "equal")
        found[proof.verdict] += 1
    assert all(found.values())


def own_problem(name: str, folder: Path, change: tuple[str, str] = ("", "")) -> Designed:
    """The question whether a design, or a changed one, is its model."""
    model = parse_reference(OWN[name][0])
    text = (HERE / f"{name}.sv").read_text(encoding="utf-8")
    assert not change[0] or text.count(change[0]) == 1
    path = folder / f"{name}.sv"
    path.write_text(text.replace(*change) if change[0] else text, encoding="utf-8")
    device = RtlDevice(f"{path},top={name}")
    return Designed(model, model, design=device.design)


@pytest.mark.parametrize("name", some_slow(OWN, "fma", "dot4"))
def test_a_design_of_another_architecture_is_proved(tmp_path: Path, name: str) -> None:
    assert prove_design(own_problem(name, tmp_path), Options(timeout=600), confirm=False).verdict == "equal"


@pytest.mark.slow
def test_four_products_of_bf16_are_proved() -> None:
    model, device = parse_reference(str(HERE / "dot4.yaml")), RtlDevice(f"{HERE}/dot4.sv,top=dot4,#W=8,#F=7")
    problem = Designed(model, model, design=device.design)
    assert prove_design(problem, Options(timeout=600), confirm=False).verdict == "equal"


@pytest.mark.parametrize("mutant", some_slow(MUTANTS, *(one for one in MUTANTS if one[1])))
def test_a_changed_design_is_refuted_by_an_input(tmp_path: Path, mutant: tuple[str, int]) -> None:
    name, number = mutant
    problem = own_problem(name, tmp_path, OWN[name][1][number])
    proof = prove_design(problem, Options(timeout=120), confirm=False)
    assert proof.verdict == "different"
    assert proof.witness is not None
    assert replay(problem, [proof.witness.operands.every]).differs[0]


def small_fma(folder: Path, name: str, design: Design | None = None) -> Designed:
    """A fused multiply-add of six bits: with a carry-save sum of the product and an addend that begins left of it, or
    with factors without leading zeros."""
    path = folder / "fma.yaml"
    path.write_text(LEFT, encoding="utf-8")
    model = Model("fma.yaml", parse_unit(LEFT, "fma.yaml"))
    return Designed(model, model, design=design or RtlDevice(f"{HERE}/{SMALL_FMAS[name]},#W=3,#F=2").design)


@pytest.mark.slow
@pytest.mark.parametrize("name", SMALL_FMAS)
@pytest.mark.parametrize("seed", range(4))
def test_verdicts_by_cases_on_changed_designs_are_those_of_all_inputs(
    tmp_path: Path, name: str, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The result at once is given no time, so that it is divided by the distance of the exponents, for even seeds to
    each by itself, for one also by where the first ones are; few samples."""
    monkeypatch.setattr(sweeping, "WHOLE", 0.001)
    least = 0 if seed % 2 else 7 if seed == 2 else 5
    monkeypatch.setattr(cases.Patience, "limit", lambda self, case: 0 if case.depth < least else 60)
    monkeypatch.setattr(sweeping, "SAMPLES", 8)
    random, design = Random(seed), small_fma(tmp_path, name).design
    for other in [design, *(changed(design, random) for _ in range(4))]:
        problem = small_fma(tmp_path, name, other)
        differ = replay(problem, every_row(problem.left)).differs.any()
        proof = prove_design(problem, Options(timeout=120), confirm=False)
        assert proof.verdict == ("different" if differ else "equal")
        if not differ:
            assert len([lemma for lemma in proof.lemmas if "apart" in lemma.name]) == 1 << least


def by_its_sum(monkeypatch: pytest.MonkeyPatch) -> None:
    """Words that hang on all inputs are not looked for one by one: what remains is the sum."""
    candidates = sweeping._Sweep._candidates

    def fewer(sweep: sweeping._Sweep, term: FNode) -> Iterator[tuple[str, FNode]]:
        return candidates(sweep, term) if len(term.get_free_variables()) < 4 else iter(())

    monkeypatch.setattr(sweeping._Sweep, "_candidates", fewer)


def test_a_sum_of_numbers_of_both_signs_is_proved_as_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    by_its_sum(monkeypatch)
    proof = prove_design(own_problem("fixed", tmp_path), Options(timeout=120), confirm=False)
    assert proof.verdict == "equal"
    assert {"the sum of ordinary numbers", "the bits of a summand"} <= {lemma.name for lemma in proof.lemmas}


@pytest.mark.slow
def test_a_proof_by_the_sum_has_a_certificate(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    by_its_sum(monkeypatch)
    monkeypatch.setattr(cases.Patience, "limit", lambda self, case: 0 if case.depth < 2 else 60)
    options = Options(timeout=300)
    proof = prove_design(own_problem("fixed", tmp_path), options, confirm=False)
    assert len([lemma for lemma in proof.lemmas if "zeros first" in lemma.name]) >= 3
    certify_proofs("equal", [proof], tmp_path / "certificate", options)
    assert not [found.says for found in check_folder(tmp_path / "certificate") if found.kind != "fine"]


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_verdicts_by_the_sum_on_changed_designs_are_those_of_all_inputs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    by_its_sum(monkeypatch)
    monkeypatch.setattr(sweeping, "SAMPLES", 8)
    random, problem = Random(seed), own_problem("fixed", tmp_path)
    every = np.arange(1 << 21, dtype=np.uint64)
    rows = np.stack(
        [every >> np.uint64(low) & np.uint64(15) for low in (0, 4, 8, 12)] + [every >> np.uint64(16)], axis=1
    )
    for _ in range(4):
        other = replace(problem, design=changed(problem.design, random))
        differ = replay(other, rows).differs.any()
        proof = prove_design(other, Options(timeout=120), confirm=False)
        assert proof.verdict == ("different" if differ else "equal")


def test_the_word_that_stays_open_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sweeping._Sweep, "_lemma", lambda *given, **more: None)
    path = tmp_path / "fixed.sv"
    shutil.copy(HERE / "fixed.sv", path)
    done = CliRunner().invoke(main, ["prove", str(HERE / "fixed.yaml"), f"rtl:{path},top=fixed"])
    assert done.exit_code == 3
    (line,) = done.stderr.splitlines()
    assert "0 lemmas proved; open: word " in line
    assert re.search(r" of the design, which seems to be .*, in \w+;", line), line


@pytest.mark.slow
@pytest.mark.parametrize("missing", ["a distance", "places"])
def test_cases_that_miss_one_are_no_proof(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, missing: str) -> None:
    monkeypatch.setattr(sweeping, "WHOLE", 0.001)
    monkeypatch.setattr(cases.Patience, "limit", lambda self, case: 0 if case.depth < 6 else 60)
    parts, dropped = cases.Case.parts, list[cases.Case]()

    def fewer(case: cases.Case) -> list[cases.Case]:
        every = parts(case)
        if case.depth == (4 if missing == "a distance" else 5) and 0 in case.within and not dropped:
            dropped.append(every.pop())
        return every

    monkeypatch.setattr(cases.Case, "parts", fewer)
    proof = prove_design(small_fma(tmp_path, "left"), Options(timeout=120), confirm=False)
    assert dropped
    assert proof.verdict == "unknown"


@pytest.mark.slow
@pytest.mark.parametrize("name", SMALL_FMAS)
def test_a_proof_by_cases_has_a_certificate(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setattr(sweeping, "WHOLE", 0.001)
    monkeypatch.setattr(cases.Patience, "limit", lambda self, case: 0 if case.depth < 2 else 60)
    options = Options(timeout=300)
    proof = prove_design(small_fma(tmp_path, name), options, confirm=False)
    assert len([lemma for lemma in proof.lemmas if "apart" in lemma.name]) == 4
    certify_proofs("equal", [proof], tmp_path / "certificate", options)
    assert not [found.says for found in check_folder(tmp_path / "certificate") if found.kind != "fine"]


@pytest.mark.parametrize("width", [1, 2, 5, 24])
def test_the_places_of_first_ones_are_all_cases_once(width: int) -> None:
    word = TermCarrier().symbol("x", width).node
    waiting, found = [cases.Zeros(word)], list[int]()
    while waiting:
        if parts := (one := waiting.pop()).parts():
            assert [part.low for part in parts] == [one.low, parts[0].most + 1]
            assert parts[1].most == one.most
            waiting += parts
        else:
            found.append(one.low)
    assert sorted(found) == list(range(width + 1))


@pytest.mark.parametrize("width", [1, 2, 5])
def test_leading_zeros_are_counted(width: int) -> None:
    carrier = TermCarrier()
    count = cases.leading_zeros(carrier.manager, carrier.symbol("x", width).node, 4)
    assert list(evaluate_term(count, {"x": list(range(1 << width))})) == [
        width - value.bit_length() for value in range(1 << width)
    ]


@pytest.mark.parametrize("width", [1, 3])
def test_leading_zeros_are_as_many_as_conditions_say(width: int) -> None:
    carrier = TermCarrier()
    word = carrier.symbol("x", width).node
    values = range(1 << width)
    for low in range(width + 1):
        for high in (*range(low, width + 1), None):
            terms = list(cases.Zeros(word, low, high).conditions(carrier.manager))
            found = [evaluate_term(term, {"x": list(values)}) for term in terms]
            for value in values:
                wanted = low <= width - value.bit_length() <= (width if high is None else high)
                assert all(lanes[value] for lanes in found) == wanted


def test_a_product_in_rows_is_the_product() -> None:
    """Factors of all widths up to 5, with zeros above or not, and wide ones: every value, or many."""
    random = np.random.default_rng(1)
    for one, other, above in [*product(range(1, 6), range(1, 6), (0, 2)), (11, 11, 0), (24, 8, 3), (24, 24, 0)]:
        carrier = TermCarrier(in_rows=True)
        x, y = (carrier.symbol(name, bits) for name, bits in (("x", one), ("y", other)))
        wide = one + other + above
        found = x.zext(wide) * y.zext(wide)
        if one + other <= 10:
            columns = [part.ravel() for part in np.meshgrid(*(np.arange(1 << bits) for bits in (one, other)))]
        else:
            columns = [random.integers(0, 1 << bits, 500, dtype=np.uint64) for bits in (one, other)]
        values = dict(zip("xy", columns, strict=True))
        assert not any(term.is_bv_mul() for term in in_order([found.node]))
        assert [int(value) for value in evaluate_term(found.node, values)] == [
            int(p) * int(q) for p, q in zip(*columns, strict=True)
        ]


@pytest.mark.parametrize("name", ["first", "another"])
def test_a_product_of_factors_without_leading_zeros_is_known(tmp_path: Path, name: str) -> None:
    text = (HERE / "fma.sv").read_text(encoding="utf-8")
    path = tmp_path / "fma.sv"
    path.write_text(text if name == "first" else text.replace("first_b = mb << zeros_b", "first_b = mb << zeros_a"))
    design = RtlDevice(f"{path},top=fma,#FIRST=1,#W=3,#F=2").design
    sweep = sweeping._Sweep(small_fma(tmp_path, "first", design), Options(timeout=60), confirm=False)
    sweep._build(sweep._inputs())
    special = sweep.compared.carrier.manager.Or(*sweep._parts(Part.NAN), *sweep._parts(Part.INFINITE))
    products = [word for word in sweep._parts(Part.SIGNIFICAND) if word.is_bv_mul()]
    known = list(sweep._ordinary_products(special, products))
    assert [[factor.bv_width() for factor in one.shifted] for one in known] == ([[3, 3]] if name == "first" else [])


def test_a_carry_save_sum_is_a_product_and_an_addend(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sweeping, "BRIEF", 0.5)
    sweep = sweeping._Sweep(small_fma(tmp_path, "left"), Options(timeout=60), confirm=False)
    sweep._build(sweep._inputs())
    sums = [term for term in sweep.theirs if sweeping._carry_save(term)]
    assert len(sums) == 1  # the last one, of which the others are parts
    sweep._added(sums[0])
    names = [lemma.name for lemma in sweep.proof.lemmas]
    assert names.count("a carry-save sum") == 3
    assert names[-1] == "the words added are product[0].significand"


def run(*arguments: object) -> tuple[int, str]:
    result = CliRunner().invoke(main, [str(argument) for argument in arguments])
    assert result.exception is None or isinstance(result.exception, SystemExit), result.output
    return result.exit_code, result.output


def test_a_proof_has_a_certificate_that_names_the_netlist(tmp_path: Path) -> None:
    (tmp_path / "small.yaml").write_text(SMALL, encoding="utf-8")
    path, folder = printed(small(), tmp_path), tmp_path / "certificate"
    code, message = run("prove", tmp_path / "small.yaml", f"rtl:{path},top=unit", "--certificate", folder)
    assert (code, message.startswith("equal: proved in")) == (0, True), message
    code, message = run("check", folder)
    assert (code, "the design unit of design.json (ports " in message) == (0, True), message
    netlist = (folder / "design.json").read_text(encoding="utf-8")
    (folder / "design.json").write_text(netlist.replace('"$add"', '"$sub"', 1), encoding="utf-8")
    assert run("check", folder)[0] == 1


def test_a_difference_is_a_vector_with_a_certificate(tmp_path: Path) -> None:
    (tmp_path / "small.yaml").write_text(SMALL, encoding="utf-8")
    path, folder = printed(small(), tmp_path), tmp_path / "certificate"
    path.write_text(path.read_text(encoding="utf-8").replace("sum_negative =", "sum_negative = 1'b1 ^", 1))
    code, message = run("prove", tmp_path / "small.yaml", f"rtl:{path},top=unit", "--certificate", folder)
    assert (code, "the design unit gives" in message) == (1, True), message
    assert run("check", folder)[0] == 0


def mistakes() -> Iterator[tuple[list[str], str]]:
    yield ["rtl:unit.v,top=unit", "ieee/fma/f16"], "give MODEL rtl:FILE,top=NAME"
    yield ["ieee/fma/f16", "rtl:unit.v,top=unit", "--property", "monotonic"], "is a property of one model"
    yield ["ieee/fma/f32", "rtl:unit.v,top=unit"], "a has 32 bits, and its port 4"


def test_mistakes_are_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    printed(small(), tmp_path)
    monkeypatch.chdir(tmp_path)
    for arguments, wanted in mistakes():
        code, message = run("prove", *arguments)
        assert (code, wanted in message) == (2, True), message


def test_a_bit_that_nothing_defines_is_no_proof(tmp_path: Path) -> None:
    design = design_of(small(), tmp_path)
    document = json.loads(design.netlist)
    (inner,) = document["modules"].values()
    inner["ports"]["d"]["bits"][0] = "x"
    problem = Designed(small(), small(), design=replace(design, netlist=json.dumps(document)))
    assert prove_design(problem).verdict != "equal"
