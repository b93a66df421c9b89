"""Claims about every number of products: the inputs that refute them beyond the few that terms of claims take."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path

import pytest
from click.testing import CliRunner

from mmaprobe.cli.main import main
from mmaprobe.hypotheses.claim import Claim, build_claims
from mmaprobe.queries.claims.long_sums import LongSums
from mmaprobe.smtmodel.base.yamlfile import read_yaml
from tests.oracles.claim_oracle import Rationals

TEXT = """id: long
terms: {multiples: 1, most: 1024}
inputs: {format: f16, a: [%d, 2], b: [%d, 2], c: zero}
parts: {p: "%s"}
claim: error(p) <= %s * magnitude_sum()
"""
FMA = "multiword@words=1,products=1,unit=ieee/fma/f32"


def claim_of(share: str, part: str = FMA) -> Claim:
    (claim,) = build_claims(read_yaml(TEXT % (-2, -2, part, share), "long.yaml"))
    assert isinstance(claim, Claim)
    return claim


def run(tmp_path: Path, claim: str) -> dict[str, object]:
    (tmp_path / "long.yaml").write_text(claim)
    store = str(tmp_path / "store.sqlite")
    result = CliRunner().invoke(main, ["verify", str(tmp_path / "long.yaml"), "--json", "--store", store])
    (document,) = json.loads(result.stdout)["claims"]
    return dict(document)


def test_long_sums_refute_what_short_ones_do_not(tmp_path: Path) -> None:
    document = run(tmp_path, TEXT % (-2, -2, FMA, "2**-17"))
    assert document["verdict"] == "refuted"
    vector = document["vector"]
    assert isinstance(vector, dict)
    a, b = ([int(x, 16) for x in vector[side]] for side in "ab")
    assert 32 < len(a) <= 512  # no longer than it has to be
    assert Rationals(claim_of("2**-17").at(len(a)), (*a, *b, 0)).decides()


@pytest.mark.slow
def test_what_is_reached_comes_near_what_is_proved(tmp_path: Path) -> None:
    shares = run(tmp_path, TEXT % (-14, -14, FMA, "(terms() * 2**-23)"))["shares"]
    assert isinstance(shares, dict)
    proved, reached = Fraction(shares["proved"]), Fraction(shares["reached"])
    assert reached <= proved < 2 * reached


def test_inputs_are_admitted_and_their_errors_exact() -> None:
    claim = claim_of("2**-17")
    seen = 0
    for longs in LongSums(claim, claim.shape.parts["p"], []).worst(0):
        for one in longs:
            oracle = Rationals(claim.at(one.terms), one.row)
            whole = sum(map(abs, oracle.products))
            assert one.share == abs(oracle.value(("f32", oracle.results["p"])) - oracle.exact) / whole
            assert all(x == 0 or -2 <= (x >> 10 & 31) - 15 <= 2 for x in one.row)
            seen += 1
    assert seen >= 6


@pytest.mark.slow
def test_an_overflow_of_a_long_sum_is_the_claim_s_fault(tmp_path: Path) -> None:
    f16 = "multiword@words=1,products=1,unit=volta/mma/m8n8k4.f16.f16.f16.f16"
    (tmp_path / "long.yaml").write_text((TEXT % (-2, -2, f16, "2")).replace("multiples: 1", "multiples: 4"))
    result = CliRunner().invoke(main, ["verify", str(tmp_path / "long.yaml"), "--store", str(tmp_path / "store")])
    assert result.exit_code == 2
    assert "gives no number for" in result.stderr


@pytest.mark.slow
def test_conditions_are_not_searched_with_many_products(tmp_path: Path) -> None:
    text = (TEXT % (-2, -2, FMA, "2**-17")).replace("c: zero", 'c: zero, where: ["nonnegative(a)"]')
    assert run(tmp_path, text)["verdict"] == "unknown"
