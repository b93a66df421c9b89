"""Makes false statements for the tests: true claims and proofs with one parameter of their unit changed, of which an
evaluation finds an input that breaks them.

python -m benchmarks.false_statements -o tests/data/false_statements.jsonl.gz
"""

from __future__ import annotations

import argparse
import gzip
import json
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from mmaprobe.hypotheses.claim import Claim, _shipped
from mmaprobe.hypotheses.unit_claims import BoundClaim
from mmaprobe.queries.claims.error_bound import within_bound
from mmaprobe.queries.claims.samples import claim_rows
from mmaprobe.queries.kernel.questions.problem import Problem
from mmaprobe.queries.kernel.questions.statements import problems_of
from mmaprobe.queries.search.admitted_rows import admitted_rows
from mmaprobe.queries.search.samples import sample_rows
from mmaprobe.queries.search.scene import evaluate_claim
from mmaprobe.queries.search.witness import replay
from mmaprobe.smtmodel.base.errors import MmaprobeError
from mmaprobe.smtmodel.base.files import write_whole
from mmaprobe.smtmodel.evaluate.batch import evaluate_batch
from mmaprobe.smtmodel.evaluate.numbers import in_f64
from mmaprobe.smtmodel.evaluate.operands import layout_of
from mmaprobe.smtmodel.inputs.admitted import Inputs
from mmaprobe.smtmodel.tables.reference import member_of, parse_reference
from tests.false_statements import Statement, breaks_bound, claim_of, is_false, kind_of

VOLTA = "volta/mma/m8n8k4.f32.f16.f16.f32"
TURING = "turing/mma/m16n8k8.f32.f16.f16.f32"
AMPERE = "ampere/mma/m16n8k16.f32.f16.f16.f32"
HOPPER = "hopper/mma/m16n8k16.f32.f16.f16.f32"
TF32 = "ampere/mma/m16n8k8.f32.tf32.tf32.f32"
FP8 = "hopper/wgmma/m64n8k32.f32.e4m3.e4m3@length=8,block=8"
F16 = "volta/mma/m8n8k4.f16.f16.f16.f16"
ADA = "ada-lovelace/mma/m16n8k16.f32.e4m3.e4m3.f32"
LATE = "cdna3/mfma/f32_32x32x8_f16"
SCALED = "blackwell/tcgen05mma_block_scale/m64n8k64.block32.f32.e2m1.e2m1.ue8m0@length=32,block=32"
UNITS = (VOLTA, TURING, AMPERE, HOPPER, TF32, FP8, F16, ADA, LATE, SCALED, "cdna1/mfma/f32_16x16x4f32",
         "cdna2/mfma/f32_32x32x2bf16", "ieee/fma/f32", "ieee/fma/f16@length=2")  # fmt: skip
VALUES: dict[str, Sequence[object]] = {
    "family": ("e-fdpa", "tr-fdpa", "gtr-fdpa", "emulated-fp8"), "block": (1, 2, 4),
    "fraction_bits": (5, 12, 21, 22, 25, 30, "exact"),
    "carry_bits": (0, 1, 2), "product": ("normalised", "rounded_bf16", "rounded_f16", "rounded_tf32"),
    "product_overflow": (0, 8), "align_rounding": ("down", "up", "nearest_even", "away", "sticky"),
    "late_fraction_bits": (12, 24), "late_rounding": ("up", "nearest_even"),
    "late_small_addend": ("keep", "cut"), "block_order": ("interleaved_pairs", "0-2:1-3"),
    "partials": ("normalised",), "exponent_floor": (0, -20), "output": ("f16", "e8m13"),
    "output_rounding": ("down", "up", "nearest_even", "nearest_away", "toward_zero"), "flush_inputs": ("true",),
    "flush_outputs": ("true",), "zero_sign": ("positive", "ieee"), "overflow": ("saturate", "ieee"),
}  # fmt: skip
PROPERTIES = ("order-independent", "sign-symmetric", "monotonic-addend", "monotonic-product", "zero-padding", "exact")
CLAIMS = ("ootomo-equals-markidis", "chain-length-exact", "three-tf32-never-11", "three-tf32-never-8",
          "three-tf32-four-never-7", "three-tf32-eight-never-5", "three-tf32-mixed-never-8", "fp8-least-loss",
          "three-tf32-signed-relative", "ootomo-not-worse-one-f16",
          "fp8-promoted-least-loss", "markidis-not-worse-f16", "ootomo-not-worse-f16")  # fmt: skip
EACH = 3  # statements of one property and parameter
PROOFS = 230  # statements about properties and equality, at most


def changed(unit: str) -> Iterator[tuple[str, str]]:
    """References that differ from a unit's in one parameter, and the parameter."""
    base, _, given = unit.partition("@")
    for name, values in VALUES.items():
        if name in given:
            continue
        for value in values:
            reference = f"{base}@{given},{name}={value}" if given else f"{base}@{name}={value}"
            try:
                model = parse_reference(reference)
            except MmaprobeError:
                continue
            if model.unit != parse_reference(unit).unit:
                yield reference, name


def broken(problem: Problem) -> list[int] | None:
    """An input on which the sides of a problem differ."""
    layout, count = problem.layout, 800
    table = [sample_rows(layout, count, 3), admitted_rows(layout, problem.inputs, count, 3, (24,))]
    rows = [tuple(row) for row in np.concatenate(table).tolist()]
    found = np.flatnonzero(replay(problem, rows).differs)
    return list(rows[found[0]]) if len(found) else None


def proofs() -> Iterator[Statement]:
    """Properties of changed units that do not hold, and changed units that differ from theirs."""
    made = Counter[tuple[str, str]]()
    asked = [(wanted, unit, *change) for unit in UNITS for change in changed(unit) for wanted in ("equal", *PROPERTIES)]
    for place in np.random.default_rng(1).permutation(len(asked)):
        wanted, unit, reference, name = asked[place]
        if made[wanted, name] >= EACH:
            continue
        models = [unit, reference] if wanted == "equal" else [reference]
        try:
            problem = (Problem(*map(parse_reference, models)) if wanted == "equal"
                       else problems_of(wanted, parse_reference(reference), Inputs())[0])  # fmt: skip
        except (MmaprobeError, IndexError):  # it cannot be asked of this unit
            continue
        row = broken(problem)
        if row is not None:
            made[wanted, name] += 1
            yield {"property": wanted, "models": models, "problem": 0, "row": row}
            if sum(made.values()) >= PROOFS:
                return


def bounds() -> Iterator[Statement]:
    """Error bounds that a changed unit exceeds."""
    made = Counter[tuple[str, str]]()
    for unit in (VOLTA, TURING, HOPPER, ADA, FP8):
        for reference, name in changed(unit):
            for bound in ("loose", "tight"):
                data = head(f"bound-{bound}") | {"model": reference, "error_bound": bound}
                claim = claim_of({"claim": data})
                assert isinstance(claim, BoundClaim)
                bits = member_of(claim.model).values.get("fraction_bits", "exact")  # E-FDPA has none
                if bits == "exact" or claim.model.scale is not None or made[bound, name] >= EACH:
                    continue
                row = exceeded(claim, bits)
                if row is not None and breaks_bound(claim, row):
                    made[bound, name] += 1
                    yield {"claim": data, "row": row}


def exceeded(claim: BoundClaim, bits: int) -> list[int] | None:
    """An input whose error is above a bound."""
    layout, k = layout_of(claim.model), claim.model.length
    table = admitted_rows(layout, Inputs(finite=True), 300, 3, (bits,))
    values = np.stack([in_f64(table[:, i], fmt) for i, fmt in enumerate(layout.formats)], axis=1)
    table, values = (side[np.isfinite(values).all(axis=1)] for side in (table, values))
    results = in_f64(evaluate_batch(claim.model, table[:, :k], table[:, k : 2 * k], table[:, 2 * k]), claim.model.d)
    for row, given, d in zip(table.tolist(), values.tolist(), results.tolist(), strict=True):
        if not within_bound(claim, list(map(Fraction, given)), d):
            return list(row)
    return None


def head(name: str) -> dict[str, Any]:
    return {"id": name, "about": "", "source": "", "says": "nothing", "expect": "holds"}


def overflows() -> Iterator[Statement]:
    """Sums that overflow, said not to."""
    for change, count, overflow in (
        ("product_overflow=0", 300, "never"), ("product_overflow=-4", 40, "never"),
        ("product_overflow=0", 40, "smallest"),
        ("product=rounded_bf16,product_rounding=up", 65518, "never"),
        ("product=rounded_f16,product_rounding=up,product_overflow=0", 16, "never"),
        ("output_rounding=up", 65518, "never"), ("align_rounding=up", 65519, "never"),
    ):  # fmt: skip
        for chain in (1, 5):
            reduction = f"recurrence@unit=({VOLTA}@{change}),chain={chain}"
            data = head("overflow") | {"reduction": reduction, "numbers": count, "overflow": overflow}
            found = {"claim": data, "row": [count - (overflow == "smallest")]}
            if is_false(found):
                yield found
    for chain in (1, 5):
        data = head("overflow") | {"reduction": f"recurrence@unit={VOLTA},chain={chain}", "numbers": 65519}
        yield {"claim": data | {"overflow": "never"}, "row": [65519]}


def claims() -> Iterator[Statement]:
    """Claims about algorithms, of a changed unit."""
    made = Counter[tuple[str, str]]()
    for name in CLAIMS:
        data = _shipped()[name].data
        data = {key: value for key, value in data.items() if key not in ("cases", "maximise")} | {
            "expect": "holds", "id": name}  # fmt: skip
        cases = {key: values[0] for key, values in _shipped()[name].data.get("cases", {}).items()}
        text = yaml.safe_dump(data, width=1000)
        for key, value in cases.items():
            text = text.replace("{" + key + "}", str(value))
        units = dict.fromkeys(re.findall(r"[a-z0-9-]+/[a-z0-9_]+/[a-z0-9_.]+(?:@[a-z_=0-9,]+(?=\)))?", text))
        for unit in units:
            for reference, parameter in changed(unit):
                if made[name, parameter] >= 1 or parameter == "output":  # results must be addends as well
                    continue
                wrapped = f"({reference})" if f"({unit})" not in text and f"unit={unit}" in text else reference
                statement: Statement = {"claim": yaml.safe_load(text.replace(unit, wrapped))}
                try:
                    claim = claim_of(statement)
                    assert isinstance(claim, Claim)
                    table = claim_rows(claim, 4096, 3)
                    found = np.flatnonzero(evaluate_claim(claim, table).deciding)
                except MmaprobeError:
                    continue
                if len(found):
                    made[name, parameter] += 1
                    yield statement | {"row": table[found[0]].tolist()}


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("-o", "--output", type=Path, required=True)
    output: Path = options.parse_args().output
    found: list[Statement] = []
    for make in (proofs, bounds, claims, overflows):
        found += [statement for statement in make() if is_false(statement)]
        print(len(found), dict(Counter(map(kind_of, found))), flush=True)
    lines = "".join(json.dumps(one, separators=(",", ":")) + "\n" for one in found)
    write_whole(output, gzip.compress(lines.encode(), mtime=0))


if __name__ == "__main__":
    main()
