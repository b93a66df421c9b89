"""Rules about rows of numbers that are summed: bounds bound, and every side condition is looked at."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
import yaml

from mmaprobe.hypotheses.claim import build_claims
from mmaprobe.queries.certificates.names import CLAIM
from mmaprobe.queries.checking.folder import check_folder
from mmaprobe.queries.claims.decide import decide
from mmaprobe.queries.claims.overflow import bound, never
from mmaprobe.queries.kernel.integers.rows import (
    BELOW_ONE,
    F32,
    Bounded,
    NeverOverflows,
    Summands,
    below_one,
    column_sums,
    converted,
    in_sequence,
    joined,
    never_overflows,
    parted,
    recorded,
    rounded,
    trees,
)
from mmaprobe.queries.kernel.theorem import RuleError
from mmaprobe.queries.search.distinguish import Options
from mmaprobe.smtmodel.algorithms import parse_reduction, sum_of_array
from mmaprobe.smtmodel.arithmetic.display import exact_value
from mmaprobe.smtmodel.arithmetic.formats import FORMATS
from mmaprobe.smtmodel.base.errors import ParameterError
from mmaprobe.smtmodel.base.yamlfile import read_yaml
from mmaprobe.smtmodel.tables.reference import parse_reference
from tests.oracles.algorithm_oracle import convert
from tests.oracles.oracle import decode
from tests.tampering import fitted

pytestmark = pytest.mark.all_inputs

VOLTA = parse_reference("volta/mma/m8n8k4.f32.f16.f16.f32")
F16 = FORMATS["f16"]
REDUCTIONS = ["recurrence@side=4,chain=2", "single-pass@side=4,chain=2,warps=3", "split@side=4,share=30,warps=2",
              "warp-shuffle@format=f16,warps=3", "single-pass@side=4,chain=3,columns=outside"]  # fmt: skip


@pytest.mark.parametrize("text", REDUCTIONS)
def test_bounds_are_above_every_sum(text: str) -> None:
    reduction, rng = parse_reduction(text), np.random.default_rng(3)
    for count in (1, 2, 17, 33, 300):
        goal = bound(reduction, count).goal
        assert isinstance(goal, Bounded)
        assert goal.made == recorded(reduction, count)
        assert goal.format == reduction.result_format
        (most,) = goal.bounds
        for low in (0, 1 << 14, BELOW_ONE):
            row = np.uint32(BELOW_ONE) - rng.integers(0, low + 1, count, dtype=np.uint32)
            found = exact_value(sum_of_array(reduction, row), reduction.result_format)
            assert (Fraction(0) if isinstance(found, str) else found) <= most


@pytest.mark.parametrize("text", REDUCTIONS)
def test_fewer_numbers_are_as_many_with_zeros(text: str) -> None:
    """What the last rule says of counts of one shape."""
    reduction, rng = parse_reduction(text), np.random.default_rng(4)
    shapes = {count: getattr(recorded(reduction, count), "shape", ()) for count in (5, 40, 63, 64, 65, 200)}
    for count, more in ((5, 40), (40, 63), (63, 64), (65, 200)):
        if shapes[count] == shapes[more] and not text.startswith("split"):  # whose parts each end in zeros
            row = rng.random(count, dtype=np.float32).view(np.uint32)
            assert sum_of_array(reduction, row) == sum_of_array(reduction, np.pad(row, (0, more - count)))
    assert len(set(shapes.values())) == (2 if text.startswith("recurrence") else 1)


def test_rounding_of_bounds() -> None:
    for pattern in range(0, 0x3B800000, 0x1234567):
        value = Fraction(decode("f32", pattern).value)
        assert rounded(value, F16, True) == decode("f16", convert(pattern, "f32", "f16", "nearest_even")).value
        assert rounded(value, F16, False) == decode("f16", convert(pattern, "f32", "f16", "toward_zero")).value
    with pytest.raises(RuleError, match="may exceed the largest f16"):
        rounded(Fraction(65520), F16, True)
    assert rounded(Fraction(65519), F16, True) == 65504


def test_side_conditions() -> None:
    row = below_one(12)
    half = converted(row, F16)
    with pytest.raises(RuleError, match="of f32, not of f16"):
        column_sums(row, VOLTA, (2, 2), 1)
    with pytest.raises(RuleError, match="two formats"):
        joined(row, half)
    for changed in ("align_rounding=up", "output_rounding=nearest_even", "product_overflow=0"):
        with pytest.raises(ParameterError, match="only ever truncated"):
            column_sums(half, parse_reference(f"{VOLTA.reference}@{changed}"), (2, 2), 1)
    with pytest.raises(ParameterError, match="d: f16: bounds are known only of sums of exact products in f32"):
        column_sums(half, parse_reference("volta/mma/m8n8k4.f16.f16.f16.f16@output_rounding=toward_zero"), (2, 2), 1)
    with pytest.raises(RuleError, match="may exceed the largest f16"):
        trees(converted(below_one(1 << 16), F16), 1 << 16)
    large = trees(converted(below_one(1 << 16), F16), 1 << 15)
    with pytest.raises(RuleError, match="may exceed the largest f16"):
        in_sequence(large)
    with pytest.raises(RuleError, match="another kind"):
        in_sequence(never_overflows(parse_reduction("warp-shuffle"), 3, [bound(parse_reduction("warp-shuffle"), 3)]))
    assert parted(row, 3, 5).goal.made.length == 2  # type: ignore[attr-defined]


def test_side_conditions_of_the_last_rule() -> None:
    reduction, other = (parse_reduction(f"recurrence@side=2,chain={chain}") for chain in (1, 2))
    sums = [bound(reduction, count) for count in (4, 16, 50)]
    assert never_overflows(reduction, 50, sums).goal == NeverOverflows(reduction, 50)
    for numbers, known, message in (
        (51, sums, "51 numbers"),
        (50, sums[1:], "4 numbers"),
        (50, sums[:2], "50 numbers"),
    ):
        with pytest.raises(RuleError, match=f"nothing is known of {message}"):
            never_overflows(reduction, numbers, known)
    with pytest.raises(RuleError, match="of other operations"):
        never_overflows(other, 4, sums[:1])
    with pytest.raises(RuleError, match="of other operations"):
        never_overflows(reduction, 4, [below_one(4)])


def test_a_certificate_of_overflow(tmp_path: Path) -> None:
    data = {"id": "mine", "about": "", "source": "", "says": "nothing", "expect": "holds", "overflow": "never",
            "reduction": "recurrence@side=2,chain=1", "numbers": 50}  # fmt: skip
    (claim,) = build_claims(read_yaml(yaml.safe_dump(data), "mine.yaml"))
    decide(claim, Options()).certify(tmp_path, Options())
    assert {found.kind for found in check_folder(tmp_path)} == {"fine"}
    for change in ({"numbers": 51}, {"overflow": "smallest"}, {"reduction": "recurrence@side=2,chain=2"}):
        (tmp_path / CLAIM).write_text(yaml.safe_dump(data | change))
        fitted(tmp_path)
        assert "fault" in {found.kind for found in check_folder(tmp_path)}, change


def test_a_sum_that_overflows_has_no_bound() -> None:
    reduction = parse_reduction("warp-shuffle@format=f16,warps=32")
    assert never(reduction, 65535) is None
    assert never(reduction, 30000) is not None
    assert Bounded(Summands(1), F32, (Fraction(1),)).statement() == "1 numbers of f32 are at most 1"
