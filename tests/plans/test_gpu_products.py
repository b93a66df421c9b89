"""What cuBLAS, Triton and JAX gave on an H200, and PyTorch on its Xeon (benchmarks/gpu_gemm.py recorded it,
benchmarks/gpu_plans.py found the plans): every element again, bit for bit, by its plan."""

from __future__ import annotations

import json

import numpy as np

from benchmarks.gpu_gemm import KINDS, NUMERICS, Record, places, random_factors
from benchmarks.gpu_plans import sample_of
from mmaprobe.queries.plans.candidates import Candidates
from mmaprobe.runner.callable import open_callable
from mmaprobe.smtmodel.inputs.signature import parse_signature
from mmaprobe.smtmodel.plans.gemm import simulate
from mmaprobe.smtmodel.plans.planfile import parse_plan
from mmaprobe.smtmodel.tables.reference import parse_plan_path, parse_reference
from tests.places import DATA, ROOT

PRODUCTS = DATA / "gpu_products.jsonl"
PARTS = DATA / "triton_parts.jsonl"
EXAMPLE = ROOT / "examples" / "triton_parts.py"
SHIPPED = {"fp8": "plan:cutlass/fp8-promoted", "fp8-rows": "plan:deepgemm/fp8"}


def test_recorded_products_are_what_their_plans_give() -> None:
    kinds = set()
    for row in map(json.loads, PRODUCTS.read_text().splitlines()):
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
    assert len(kinds) == 24


def test_triton_with_factors_in_parts() -> None:
    """input_precision tf32x3, bf16x3 and bf16x6: each row has an element that shows two products of parts swapped."""
    for row in map(json.loads, PARTS.read_text().splitlines()):
        rows, columns, length = map(int, row["shape"].split(","))
        i, j = len(places(rows, 1)), len(places(columns, 2))
        function = open_callable(f"{EXAMPLE}:{row['kind'].removeprefix('triton-')}").function
        plan = parse_plan_path(f"plan:{row['kind'].replace('-', '/')}")
        found, planned = [], []
        for cancels in (False, True):
            a, b = (x.astype(np.float32) for x in random_factors(NUMERICS["f32"], length, cancels, length))
            a, b = np.ascontiguousarray(a[:i]), np.ascontiguousarray(b[:, :j])
            found += function(a, b).view(np.uint32).ravel().tolist()
            planned += simulate(a.view(np.uint32), b.view(np.uint32), None, plan).ravel().tolist()
        assert found == planned == [int(pattern, 16) for pattern in row["d"].split()], row["kind"]
