"""What cuBLAS gave on an H200 (benchmarks/gpu_gemm.py recorded it, benchmarks/gpu_plans.py found the plans): every
element again, bit for bit, by its plan."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

from benchmarks.gpu_gemm import KINDS, Record
from benchmarks.gpu_plans import sample_of
from queries.plans.candidates import Candidates
from smtmodel.plans.planfile import parse_plan
from smtmodel.reference import parse_plan_path, parse_reference
from smtmodel.signature import parse_signature

DATA = Path(__file__).with_name("data") / "gpu_products.jsonl"
SHIPPED = {"fp8": "plan:cutlass/fp8-promoted", "fp8-rows": "plan:deepgemm/fp8"}


def test_recorded_products_are_what_their_plans_give() -> None:
    kinds = set()
    for row in map(json.loads, DATA.read_text().splitlines()):
        kind, plan = KINDS[row["kind"]], parse_plan(row["plan"], row["shape"], parse_reference)
        formats = f"{kind.given},{kind.given},{kind.result}"
        candidates = Candidates(parse_signature(formats, 1))
        candidates.compiled.update(plan.models)
        patterns = row["d"].split()
        d = np.array([int(pattern, 16) for pattern in patterns], dtype=f"u{len(patterns[0]) // 2}")
        sample = sample_of(Record(row["kind"], {row["shape"]: d}), kind, row["shape"], formats)
        assert candidates.same(plan, sample), (row["kind"], row["shape"], plan.reference)
        if row["kind"] in SHIPPED:
            assert candidates.same(parse_plan_path(SHIPPED[row["kind"]]), sample)
        kinds.add(row["kind"])
    assert len(kinds) == 9
