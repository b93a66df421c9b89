"""Questions that want one vector: a hypothesis distinguished from all others at once."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from mmaprobe.cli.main import main
from mmaprobe.documents.distinguish import Distinguish
from mmaprobe.documents.reading import read
from mmaprobe.hypotheses.library import library, question_named
from mmaprobe.hypotheses.retarget import RetargetError
from mmaprobe.hypotheses.schema import build_question, retarget
from mmaprobe.queries.search.answer import answer
from mmaprobe.queries.search.distinguish import Options
from mmaprobe.reports.solved import distinguish_sections
from mmaprobe.reports.views import Pictures
from mmaprobe.smtmodel.base.errors import InputError
from mmaprobe.smtmodel.base.yamlfile import read_yaml
from tests.files.test_hypotheses import text_with
from tests.search.test_distinguish import admissible, result

pytestmark = pytest.mark.solvers

ASK = Options("bitwuzla", timeout=60)
FOUR = "exact-products-four-roundings"
SMALL = "model: volta/mma/m8n8k4.f32.f16.f16.f32@length=1,fraction_bits=4,output=f16"
#: rounding down and up differ from truncation on inputs of one sign each: no input does both
ROUNDINGS = {
    "model": SMALL, "one_vector": "one_vector: zero", "two": "  zero: {align_rounding: toward_zero}",
    "three": "  down: {align_rounding: down}\n  up: {align_rounding: up}",
    "inputs": "inputs: {finite: true, normal: true, exponents: {min: -2, max: 2}, zero_terms: [1]}",
}  # fmt: skip


def test_listing_1_of_valpey_et_al() -> None:
    """One vector, on which the exact result differs from that of every rounding, by the oracle."""
    question = library()[FOUR]
    answered = answer(question, ASK)
    assert (answered.verdict, answered.exit_code) == ("different", 0)
    (vector,) = answered.vectors
    found = {name: result(model, vector.operands) for name, model in question.models.items()}
    assert found.pop("exact") not in found.values()
    assert admissible(question.inputs, vector.model, vector.operands)


def test_several_vectors_each_for_all() -> None:
    question = library()[FOUR]
    vectors = answer(question, Options("bitwuzla", timeout=60, count=2)).vectors
    assert len(vectors) == 2
    for vector in vectors:
        exact, *others = [result(model, vector.operands) for model in question.models.values()]
        assert exact not in others


def test_pairs_that_no_one_vector_serves(tmp_path: Path) -> None:
    """Each pair differs and the question asks for more: not as expected, and never called equal."""
    text = text_with(**ROUNDINGS)
    question = build_question(read_yaml(text, "mine.yaml"))
    joint = answer(question, ASK)
    assert (joint.verdict, joint.exit_code, joint.vectors) == ("divided", 1, [])
    alone = build_question(read_yaml(text_with(**ROUNDINGS | {"one_vector": ""}), "mine.yaml"))
    pairs = {(pair.left, pair.right): pair.outcome.verdict for pair in answer(alone, ASK).pairs}
    assert pairs["zero", "down"] == pairs["zero", "up"] == "different"
    path = tmp_path / "mine.yaml"
    path.write_text(text)
    run = CliRunner().invoke(main, ["distinguish", str(path), "--json", "--solver", "bitwuzla"])
    (document,) = json.loads(run.stdout)["questions"]
    assert (run.exit_code, document["verdict"], document["one_vector"]) == (1, "divided", "zero")
    assert [pair["verdict"] for pair in document["pairs"]] == ["divided"]
    assert "zero | down, up: no single input distinguishes it from all others" in run.stderr
    assert "equal" not in run.stderr
    (section,) = distinguish_sections(read(Distinguish, {"questions": [document]}), Pictures(0))
    assert any("no single input distinguishes it from all others" in text for _, text in section.facts)


@pytest.mark.parametrize(
    ("changes", "key", "words"),
    [
        ({"one_vector": "one_vector: thre"}, "one_vector", "'thre' is none of the hypotheses: two, three"),
        ({"one_vector": "one_vector: two", "expect": "expect: equal"}, "expect", "different"),
    ],
)
def test_faulty_files(changes: dict[str, str], key: str, words: str) -> None:
    with pytest.raises(InputError, match=words) as caught:
        build_question(read_yaml(text_with(**changes), "mine.yaml"))
    assert caught.value.key == key


def test_the_question_moves_to_another_model() -> None:
    moved = question_named(FOUR, "ampere/mma/m16n8k16.f32.f16.f16.f32")
    assert (moved.one_vector, moved.inputs.zero_terms) == ("exact", (16,))
    assert moved.pairs == [("exact", other) for other in list(moved.models)[1:]]
    file = read_yaml(
        text_with(
            one_vector="one_vector: two", two="  two: {block: L/4}", three="  three: {}\n  four: {fraction_bits: 24}"
        ),
        "mine.yaml",
    )
    assert build_question(file).one_vector == "two"
    with pytest.raises(RetargetError, match="'two' is left out"):
        retarget(file, "volta/mma/m8n8k4.f32.f16.f16.f32@length=2")
