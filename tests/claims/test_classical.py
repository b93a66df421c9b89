"""Claims that slices keep the classical bound: what is proved, refuted and certified."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

from mmaprobe.hypotheses.claim import build_claims, claims_named
from mmaprobe.hypotheses.unit_claims import ClassicalClaim
from mmaprobe.queries.certificates.names import CLAIM
from mmaprobe.queries.checking.folder import check_folder
from mmaprobe.queries.claims import classical
from mmaprobe.queries.claims.decide import decide
from mmaprobe.queries.search.distinguish import Options
from mmaprobe.smtmodel.arithmetic.formats import FORMATS
from mmaprobe.smtmodel.base.errors import InputError
from mmaprobe.smtmodel.base.yamlfile import read_yaml
from tests.tampering import fitted

pytestmark = pytest.mark.compilers

DATA = {"id": "mine", "expect": "holds", "plan": "plan:ozaki/int8-ii-14", "products": 64, "spread": 0, "classical": 8}


def claim_of(**data: Any) -> ClassicalClaim:
    (claim,) = build_claims(read_yaml(yaml.safe_dump(DATA | data), "mine.yaml"))
    assert isinstance(claim, ClassicalClaim)
    return claim


@pytest.mark.parametrize(
    ("spread", "times", "verdict"), [(0, 8, "holds"), (3, 8, "holds"), (4, 15, "unknown"), (10, 8, "refuted")]
)
def test_verdicts(spread: int, times: int, verdict: str) -> None:
    """1.02 times K u at K = 64 is proved of elements of one size, of smaller ones twice as much."""
    assert decide(claim_of(spread=spread, classical=times), Options()).verdict == verdict


def test_the_smallest_number_of_slices() -> None:
    """8 slices keep the bound where 7 do not."""
    (eight,), (seven,) = claims_named("ozaki-int8-8-classical"), claims_named("ozaki-int8-7-classical-once")
    for claim, spread, verdict in ((eight, 3, "holds"), (seven, 0, "refuted")):
        assert isinstance(claim, ClassicalClaim)
        assert (claim.count, claim.spread, claim.classical) == (1024, spread, 1)
        outcome = classical.verify_classical(claim, Options())
        assert outcome.verdict == verdict


def test_a_certificate(tmp_path: Path) -> None:
    decide(claim_of(), Options()).certify(tmp_path, Options())
    assert {found.kind for found in check_folder(tmp_path)} == {"fine"}
    for change in ({"classical": 9}, {"spread": 1}, {"products": 65}, {"plan": "plan:ozaki/int8-7"}, {"reach": 99}):
        (tmp_path / CLAIM).write_text(yaml.safe_dump(DATA | change))
        fitted(tmp_path)
        assert "fault" in {found.kind for found in check_folder(tmp_path)}, change


def test_one_product() -> None:
    plan = claim_of().plan
    assert classical.beyond(plan, 1, 0, 1 << 20) is None
    found = classical.beyond(plan, 1, 0, 1)
    assert found is not None
    assert 1 < found.times < 64


def test_inputs_are_numbers_of_their_format() -> None:
    """Also of a format whose patterns end in bits that no number has."""
    fmt = FORMATS["tf32"]
    rows, numbers = classical._tried(fmt, 3, 2)
    assert not (rows & np.uint64((1 << fmt.padding) - 1)).any()
    assert {one / other for one, other in numbers} == {8}
    assert 2 - Fraction(1, 1 << fmt.fraction) in {one for one, _ in numbers}


def test_files_that_are_wrong() -> None:
    for change in ({"spread": -1}, {"classical": 0}, {"products": 0}, {"plan": "no/such"}, {"reach": "far"}):
        with pytest.raises(InputError):
            claim_of(**change)
