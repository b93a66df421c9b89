"""No false statement is called true: provers refuse models that they are not about, and an evaluation that contradicts
a verdict is a fault."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import fields, replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from click.testing import CliRunner, Result

from mmaprobe.cli.main import main
from mmaprobe.hypotheses.claim import build_claims
from mmaprobe.hypotheses.claim_file import Statement
from mmaprobe.hypotheses.unit_claims import WrapClaim
from mmaprobe.queries.certificates.asked import of_claim
from mmaprobe.queries.claims import overflow
from mmaprobe.queries.claims.algorithms import AlgorithmOutcome
from mmaprobe.queries.claims.classical import ClassicalOutcome
from mmaprobe.queries.claims.decide import KINDS
from mmaprobe.queries.claims.decide import decide as decided
from mmaprobe.queries.claims.error_bound import BoundOutcome
from mmaprobe.queries.claims.outcome import Outcome, SearchStep
from mmaprobe.queries.claims.overflow import OverflowOutcome
from mmaprobe.queries.claims.wraps import WrapOutcome
from mmaprobe.queries.kernel.integers.wraps import NeverWraps
from mmaprobe.queries.kernel.questions.problem import Problem
from mmaprobe.queries.kernel.questions.statements import problems_of
from mmaprobe.queries.kernel.questions.truncating import truncating_steps
from mmaprobe.queries.properties import proving
from mmaprobe.queries.search.admitted_rows import admitted_rows
from mmaprobe.queries.search.distinguish import Options
from mmaprobe.queries.search.witness import Row, replay
from mmaprobe.smtmodel.arithmetic.display import exact_value
from mmaprobe.smtmodel.arithmetic.formats import FORMATS, format_named
from mmaprobe.smtmodel.base.errors import FaultError, InputError, ParameterError
from mmaprobe.smtmodel.base.yamlfile import read_yaml
from mmaprobe.smtmodel.evaluate.numbers import in_f64
from mmaprobe.smtmodel.evaluate.operands import layout_of
from mmaprobe.smtmodel.inputs.admitted import ExponentRange, Inputs
from mmaprobe.smtmodel.nodes import Element, FusedSum, Node, Product, Round
from mmaprobe.smtmodel.nodes.node import walk
from mmaprobe.smtmodel.nodes.rewriting import rebuilt
from mmaprobe.smtmodel.nodes.round import Rounding
from mmaprobe.smtmodel.tables.reference import parse_reference
from tests.said import assumed, proved

pytestmark = pytest.mark.solvers

VOLTA = "volta/mma/m8n8k4.f32.f16.f16.f32"
HEAD = {"id": "mine", "about": "", "source": "", "says": "nothing", "expect": "holds"}


def claim_of(**parts: Any) -> Statement:
    (claim,) = build_claims(read_yaml(yaml.safe_dump(HEAD | parts), "mine.yaml"))
    return claim


def run(*arguments: str) -> Result:
    return CliRunner().invoke(main, list(arguments))


# --- provers refuse what they are not about --------------------------------------------------------------------------


@pytest.mark.parametrize("bound", ["loose", "tight"])
@pytest.mark.parametrize(("reference", "parameter"), [
    (f"{VOLTA}@flush_inputs=true", "inputs"),
    (f"{VOLTA}@product=rounded_bf16", "format"),
    (f"{VOLTA}@product=normalised", "normalised"),
    (f"{VOLTA}@product_overflow=4", "limit"),
    (f"{VOLTA}@flush_outputs=true", "subnormals"),
    (f"{VOLTA}@fraction_bits=exact", "fused"),
    (f"{VOLTA}@exponent_floor=0", "fused"),
    (f"{VOLTA}@block=2", "steps"),
    ("turing/mma/m16n8k8.f32.f16.f16.f32@flush_inputs=true", "inputs"),
    ("ada-lovelace/mma/m16n8k16.f32.e4m3.e4m3.f32@product=rounded_f16", "format"),
    ("ampere/mma/m16n8k8.f32.bf16.bf16.f32@length=8,block=8", "fused"),
    (f"{VOLTA}@output=f16,output_rounding=toward_zero", "d"),
])  # fmt: skip
def test_bounds_are_refused_by_name(reference: str, parameter: str, bound: str) -> None:
    with pytest.raises(InputError, match=rf"^mine.yaml:\d+: model: {parameter}: "):
        decided(claim_of(model=reference, error_bound=bound), Options(timeout=10))


@pytest.mark.parametrize(("changes", "parameter"), [
    ("product=rounded_bf16,product_rounding=up", "format"), ("product_overflow=0", "limit"),
    ("carry_bits=0", "carry_bits"), ("family=tr-fdpa", "steps"), ("output=f16", "d"),
    ("output_rounding=up", "mode"), ("align_rounding=up", "rounding"),
])  # fmt: skip
def test_overflow_is_refused_by_name(changes: str, parameter: str) -> None:
    claim = claim_of(reduction=f"recurrence@unit=({VOLTA}@{changes}),chain=1", numbers=300, overflow="never")
    with pytest.raises(InputError, match=rf"^mine.yaml:\d+: reduction: {parameter}: "):
        decided(claim, Options())


#: what an argument about truncating sums does not depend on, of each kind of node and of a rounding
FREE = {
    FusedSum: {"fraction_bits", "zeros", "least"}, Product: set[str](), Element: {"subnormals"},
    Rounding: {"overflow", "zero", "nan"},
}  # fmt: skip
READS = {"items", "left", "right", "operand", "index"}


@pytest.mark.parametrize("kind", FREE)
def test_a_parameter_that_nobody_thought_of_is_refused(kind: type, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every field that is not free, the ones to come as well."""
    monkeypatch.setattr(kind, "__post_init__", lambda self: None, raising=False)  # no value is refused at its making
    unit = parse_reference(VOLTA).unit
    for item in fields(kind):
        if item.name in READS:
            continue

        def changed(old: Node, new: Node, name: str = item.name) -> Node:
            owner: Any = replace(new.rounding) if kind is Rounding and isinstance(new, Round) else new
            if not isinstance(owner, kind):
                return new
            owner = replace(owner)
            known = dict.fromkeys(("fraction_bits", "zeros", "least", "nan"), 7)
            other = (known | {"format": FORMATS["f16"], "subnormals": "flush_before"}).get(name, "never heard of")
            object.__setattr__(owner, name, other)
            return replace(new, rounding=owner) if isinstance(new, Round) else owner

        result = rebuilt(unit.result, changed, {})
        assert result != unit.result
        other = replace(unit)
        object.__setattr__(other, "result", result)
        object.__setattr__(other, "last", unit.last)
        if item.name in FREE[kind]:
            truncating_steps(other, "")
        else:
            with pytest.raises(ParameterError, match=rf"^{item.name}: "):
                truncating_steps(other, "")


# --- what an evaluation contradicts ----------------------------------------------------------------------------------


@pytest.mark.parametrize(("made", "parts"), [
    (BoundOutcome, {"model": f"{VOLTA}@flush_inputs=true", "error_bound": "loose"}),
    (BoundOutcome, {"model": f"{VOLTA}@product=rounded_bf16", "error_bound": "loose"}),
    (BoundOutcome, {"model": f"{VOLTA}@fraction_bits=22", "error_bound": "tight"}),
    (BoundOutcome, {"model": f"{VOLTA}@exponent_floor=0", "error_bound": "loose"}),
    (OverflowOutcome, {"reduction": f"recurrence@unit={VOLTA},chain=1", "numbers": 65519, "overflow": "never"}),
    (WrapOutcome, {"plan": "ampere/mma/m16n8k32.s32.s8.s8.s32", "products": 131072, "wraps": "never"}),
    (ClassicalOutcome, {"plan": "plan:ozaki/int8-ii-14", "products": 1, "classical": 1}),
    (AlgorithmOutcome, {"terms": 1, "inputs": {"format": "f16", "a": [0, 1], "b": [0, 1], "c": [0, 0]},
                        "parts": {"p": VOLTA}, "claim": "value(p) < 4"}),
])  # fmt: skip
def test_a_contradicted_claim_is_a_fault(
    made: type[Outcome[Any]], parts: dict[str, Any], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A prover that calls a false claim true, with a theorem that nobody proved, is not believed: exit code 4, no
    verdict, both said."""

    def proves(claim: Statement, options: Options, known: Sequence[Row] = ()) -> Outcome[Any]:
        return made(claim, theorem=assumed(*of_claim(claim).goals), asked=[SearchStep("nothing")])

    kind = type(claim_of(**parts))
    monkeypatch.setitem(KINDS, kind, KINDS[kind]._replace(verify=proves))
    path = tmp_path / "mine.yaml"
    path.write_text(yaml.safe_dump(HEAD | parts))
    found = run("verify", str(path), "--store", str(tmp_path / "store"))
    assert found.exit_code == 4, found.stderr
    assert "'mine holds' was proved, but an evaluation contradicts it: " in found.stderr
    assert " holds in " not in found.stderr


def test_a_count_is_the_smallest_by_an_evaluation_and_a_theorem_together() -> None:
    claim = claim_of(plan="ampere/mma/m16n8k32.s32.s8.s8.s32", products=131072, wraps="smallest")
    assert isinstance(claim, WrapClaim)
    proved, fewer = assumed(*of_claim(claim).goals), assumed(NeverWraps(claim.plan, claim.proved - 1, None, None))
    for exceeds, theorem, verdict in (
        ({131072: True}, proved, "holds"), ({131072: True}, None, "unknown"), ({131072: True}, fewer, "unknown"),
        ({}, proved, "unknown"), ({131072: False}, proved, "refuted"), ({131072: True, 131071: True}, None, "refuted"),
    ):  # fmt: skip
        assert WrapOutcome(claim, exceeds=exceeds, theorem=theorem).verdict == verdict


FALSE = [
    (("order-independent",), f"{VOLTA}@partials=normalised"),
    (("sign-symmetric",), "cdna3/mfma/f32_32x32x8_f16"),
    (("monotonic-product",), f"{VOLTA}@carry_bits=0"),
    (("exact",), VOLTA),
    (("equal",), VOLTA),
]


@pytest.mark.parametrize(("wanted", "reference"), FALSE)
def test_a_contradicted_proof_is_a_fault(
    wanted: tuple[str], reference: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(proving, "prove", lambda problem, options, confirm: proved(problem))
    monkeypatch.setattr(proving, "prove_monotonic", lambda problem, *_: proved(problem))
    models = [reference, f"{reference}@fraction_bits=21"] if wanted == ("equal",) else [reference]
    found = run("prove", *models, "--property", *wanted, "--store", str(tmp_path / "store"))
    assert found.exit_code == 4, found.stderr
    assert "was proved, but an evaluation contradicts it: " in found.stderr
    assert ": proved" not in found.stderr


def test_bounds_and_evaluation_of_a_reduction_contradict(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(overflow, "bound", lambda reduction, numbers: 1)
    claim = claim_of(reduction=f"recurrence@unit={VOLTA},chain=1", numbers=65519, overflow="never")
    with pytest.raises(FaultError, match=r"bounds say that no 65519 numbers .* overflow; evaluated, 65519 times .* do"):
        decided(claim, Options())


def test_a_true_verdict_passes(tmp_path: Path) -> None:
    found = run("prove", VOLTA, f"{VOLTA}@nan=none", "--store", str(tmp_path / "store"))
    assert found.exit_code == 0, found.stderr


# --- the inputs ------------------------------------------------------------------------------------------------------


def restrictions() -> Iterator[Inputs]:
    window = ExponentRange(min=-2, max=3)
    names = ("finite", "nonnegative", "nonzero", "normal", "products_below_two")
    for chosen in product((False, True), repeat=len(names)):
        flags = dict(zip(names, chosen, strict=True))
        yield Inputs(**flags)
        yield Inputs(**flags, exponents=window, zero_terms=(1, 4))


@pytest.mark.parametrize("reference", [VOLTA, "hopper/wgmma/m64n8k32.f32.e4m3.e4m3@length=4,block=4"])
def test_admitted_rows_are_admitted(reference: str) -> None:
    model = parse_reference(reference)
    for inputs in restrictions():
        rows = admitted_rows(layout_of(model), inputs, 200, 1)
        found = replay(Problem(model, model, inputs), [tuple(row) for row in rows.tolist()])
        assert found.admitted.mean() > 0.5, inputs
    (raised, *_) = problems_of("monotonic-product", model, Inputs(finite=True))
    rows = admitted_rows(raised.layout, raised.inputs, 400, 1)
    assert replay(raised, [tuple(row) for row in rows.tolist()]).admitted.mean() > 0.2


@pytest.mark.parametrize("name", ["e2m1", "e4m3", "ue4m3", "e4m3fnuz", "f16", "bf16", "tf32", "int8", "e5m9_ieee"])
def test_numbers_in_f64(name: str) -> None:
    """Also those of formats for which NumPy has no type."""
    fmt = format_named(name)
    patterns = np.random.default_rng(1).integers(0, 1 << fmt.width, 300, dtype=np.uint64)
    patterns &= ~np.uint64((1 << fmt.padding) - 1)
    for pattern, number in zip(patterns.tolist(), in_f64(patterns, fmt).tolist(), strict=True):
        value = exact_value(pattern, fmt)
        assert np.isnan(number) if value == "nan" else number == float(value)


# --- signs and orders --------------------------------------------------------------------------------


def test_nodes_say_nothing_of_signs_of_zeros(tmp_path: Path) -> None:
    """Sign symmetry by nodes is of values: bit for bit, a sum that cancels is +0 on both sides."""
    found = run("prove", "--property", "sign-symmetric", "--compare", "bits", "ieee/fma/f16@length=2",
                "--store", str(tmp_path / "store"))  # fmt: skip
    assert found.exit_code == 1, found.stderr


@pytest.mark.parametrize("wanted", ["order-independent", "zero-padding"])
def test_products_fixed_to_zero(wanted: str) -> None:
    """Two exchanges generate every order only where no product stands fixed."""
    with pytest.raises(ParameterError, match=f"zero_terms: {wanted} is asked with all products free"):
        problems_of(wanted, parse_reference(VOLTA), Inputs(zero_terms=(0,)))


def test_a_property_of_nothing_is_refused() -> None:
    with pytest.raises(ParameterError, match="no shorter dot product"):
        problems_of("zero-padding", parse_reference("ieee/fma/f32"), Inputs())
    with pytest.raises(ParameterError, match="none can rise"):
        problems_of("monotonic-product", parse_reference(VOLTA), Inputs(zero_terms=(0, 1, 2, 3)))
    with pytest.raises(ParameterError, match="it cannot rise"):
        problems_of("monotonic-addend", parse_reference(VOLTA), Inputs(zero_terms=(4,)))


@pytest.mark.parametrize(
    "reference",
    ["ieee/fma/f32@flush_inputs=true", "ieee/fma/f32@flush_outputs=true", f"{VOLTA}@exponent_floor=0"],
)
def test_an_exact_sum_is_that_of_the_inputs(reference: str) -> None:
    """The sum that a model is compared with flushes nothing and knows no floor, whatever the model does."""
    (problem,) = problems_of("exact", parse_reference(reference), Inputs())
    nodes = list(walk(problem.right.unit.result))
    assert {node.kind for node in nodes} == {"element", "product", "each", "exact", "round"}
    assert all(node.subnormals == "keep" for node in nodes if isinstance(node, Element))
    assert problem.right.unit.rounding == replace(problem.left.unit.rounding, subnormals="keep")
