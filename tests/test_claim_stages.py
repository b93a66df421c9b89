"""Claims proved in stages: what is proved holds, what is false is not proved, and cuts keep the meaning."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import yaml

from benchmarks.claims import row
from hypotheses.claim import Claim, build_claims, claims_named
from hypotheses.yamlfile import read_yaml
from queries.claim_report import document_of
from queries.claim_samples import claim_rows
from queries.claim_scene import lanes_of, look
from queries.claim_stages import Stages
from queries.distinguish import Options
from queries.settle import settle
from queries.smtlib import Query
from queries.verify import verify
from smtmodel.batch import to_integers

TF32 = "multiword@unit=ampere/mma/m16n8k8.f32.tf32.tf32.f32,split=toward_zero,order=large_first,products"
VOLTA = "volta/mma/m8n8k4.f32.f16.f16.f32"
POSITIVE = ["nonnegative(a)", "nonnegative(b)"]


def claim_of(claim: str, **changes: Any) -> Claim:
    inputs = {"format": "f32", "a": [0, 0], "b": [0, 0], "c": "zero", "where": POSITIVE}
    parts = {"three": f"{TF32}=3", "four": f"{TF32}=4"}
    data = {"id": "mine", "about": "", "source": "", "says": "nothing", "expect": "holds", "terms": 2,
            "inputs": inputs, "parts": parts, "claim": claim} | changes  # fmt: skip
    (found,) = build_claims(read_yaml(yaml.safe_dump(data), "mine.yaml"))
    assert isinstance(found, Claim)
    return found


def ways(claim: Claim) -> tuple[list[str], list[str]]:
    """Of every way whether it proves the claim, and the questions answered "unsat"."""
    proved: list[str] = []

    def prove(what: str, query: Query, share: float, cuts: int) -> bool:
        unsat = Options().ask(query, 60.0, what, "bitwuzla")[0].status == "unsat"
        if unsat:
            proved.append(what)
        return unsat

    return [way.__name__ for way in Stages(claim, prove).ways if way()], proved


@pytest.mark.parametrize(("terms", "zeros", "bound"), [(1, True, 7), (2, True, 7), (3, True, 10), (4, False, 6)])
def test_intervals(terms: int, zeros: bool, bound: int) -> None:
    """The bound follows from intervals, and one less does not."""
    where = POSITIVE if zeros else [*POSITIVE, "nonzero(a)", "nonzero(b)"]
    inputs = {"format": "f32", "a": [0, 0], "b": [0, 0], "c": "zero", "where": where}
    claims = [claim_of(f"distance(three, four) <= {b}", terms=terms, inputs=inputs) for b in (bound, bound - 1)]
    found, lemmas = ways(claims[0])
    assert found[:1] == ["intervals"]
    assert lemmas[:2] == ["interval of a.word0[0]", "interval of a.word1[0]"]
    assert len([name for name in lemmas if name.startswith("interval of unit.")]) == 3
    assert ways(claims[1])[0] == []


@pytest.mark.parametrize("where", [[], ["nonnegative(a)"]])
def test_intervals_of_signed_numbers(where: list[str]) -> None:
    """They are not where the words of positive numbers are: the first false interval ends the way."""
    inputs = {"format": "f32", "a": [0, 0], "b": [0, 0], "c": "zero", "where": where}
    found, lemmas = ways(claim_of("distance(three, four) <= 10", inputs=inputs))
    assert found == []
    assert not any(name.startswith("interval of unit.") for name in lemmas)


def test_any_result() -> None:
    """Whatever an exact result and another one are, the other is off by a last place of it, or exact."""
    claim = "error(three) != 0 or error(four) == 0 or error(four) * 2**{} >= exact()"
    outcome = verify(claim_of(claim.format(24)), Options(timeout=60))
    assert outcome.verdict == "holds"
    assert outcome.lemmas[0].name == "every result and the exact sum may be any number"
    assert "any_result" not in ways(claim_of(claim.format(23)))[0]
    found, lemmas = ways(claim_of("value(three) < 2**3 or value(three) == value(four)"))
    assert (found, lemmas) == (["any_result"], ["the result of four may be any number"])


@pytest.mark.parametrize("name", ["markidis", "ootomo-yokota"])
@pytest.mark.parametrize("split", ["toward_zero", "nearest_even"])
def test_first_words(name: str, split: str) -> None:
    """Of numbers of f16 the factors are the first words: results are the same, step by step."""
    inputs = {"format": "f16", "a": [-6, 6], "b": [-6, 6], "c": [-12, 12]}
    claim = claim_of("finite(p)", terms=4, inputs=inputs, parts={"p": f"{name}@unit={VOLTA},split={split}"})
    short = replace(claim, shape=replace(claim.shape, whole=frozenset("p")))
    table = claim_rows(claim, 2000, 1)
    plain, whole = ({step: to_integers(bits, len(table)) for step, bits in lanes_of(each, table).steps("p").items()}
                    for each in (claim, short))  # fmt: skip
    assert plain.keys() == whole.keys()
    assert all(np.array_equal(plain[step], whole[step]) for step in plain)
    assert len(np.unique(plain["d"])) > 1000
    assert not look(claim, table).deciding.any()


def test_rows_of_the_table() -> None:
    """Of a property that fails both sides stand in the row."""
    (claim,) = claims_named("symmetric-round-down@model=cdna3/mfma/f32_32x32x8_f16")
    document = document_of(settle(claim, Options(timeout=60)))
    cells = [cell.strip() for cell in row(document).strip("|\n ").split(" | ")]
    assert cells[:4] == [claim.id, "refuted", "refuted", "simulated inputs"]
    left, right = document["counterexample"]["vector"]["results"]
    assert left in cells[5]
    assert right in cells[5]
    assert int(left, 16) ^ 0x80000000 != int(right, 16)
