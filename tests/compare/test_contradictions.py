"""Devices that change between two runs, and devices that answer one question in two ways: each is named."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from mmaprobe.queries.candidates.identify import Identifier
from mmaprobe.queries.compare.steady import ContradictionError, spread
from mmaprobe.queries.order.reveal import reveal
from mmaprobe.queries.search.distinguish import Options
from mmaprobe.smtmodel.inputs.vectors import Vector
from mmaprobe.smtmodel.tables.reference import parse_reference
from tests.command_line.test_cli import run
from tests.devices.test_devices import addends, program, write
from tests.identify.test_identify import SMALL, answers_of, small

pytestmark = pytest.mark.solvers

VOLTA = "volta/mma/m8n8k4.f32.f16.f16.f32"
#: a unit of f16 products with f32 results: c first, then one product after another; what stands for ORDER comes before
UNIT = """import math, struct
def number(text, kind):
    return struct.unpack(">" + kind, bytes.fromhex(text))[0]
def single(x):
    try:
        return struct.unpack(">f", struct.pack(">f", x))[0]
    except OverflowError:
        return math.copysign(math.inf, x)
for row in rows():
    terms = [number(x, "e") * number(y, "e") for x, y in zip(row["a"], row["b"])]
    ORDER
    d = number(row["c"], "f")
    for term in terms:
        d = single(d + term)
    say(row, d="7fffffff" if math.isnan(d) else struct.pack(">f", d).hex())
"""
SHUFFLED = UNIT.replace("ORDER", "random.shuffle(terms)")
SUM = UNIT.replace("ORDER", "pass")
BACKWARDS = UNIT.replace("ORDER", "terms.reverse()")


@pytest.fixture
def family(tmp_path: Path) -> str:
    path = tmp_path / "small.yaml"
    path.write_text(SMALL, encoding="utf-8")
    return str(path)


def identified(family: str, device: str, *more: str, code: int) -> str:
    return run("identify", family, "--device", device, "--solver", "bitwuzla", *more, code=code).stderr


def test_places_are_spread_evenly() -> None:
    assert spread(3, 16) == [0, 1, 2]
    assert spread(101, 5) == [0, 25, 50, 75, 100]


# --- answers of an earlier run --------------------------------------------------------------------------------------


def test_identify_refuses_the_answers_of_a_device_that_has_changed(tmp_path: Path, family: str) -> None:
    answers = tmp_path / "answers.jsonl"
    device = program(tmp_path, SUM)
    identified(family, device, "-o", str(answers), code=1)
    before = answers.read_bytes()
    assert "answers of an earlier run" in identified(family, device, "-o", str(answers), code=1)
    program(tmp_path, BACKWARDS)
    message = identified(family, device, "-o", str(answers), code=2)
    line = int(message.partition(f"error: {answers}:")[2].partition(":")[0])
    d = json.loads(before.splitlines()[line - 1])["d"]
    assert f"{answers}:{line}: d: the device has changed: its answer is {d} here, " in message
    assert "no candidate" not in message
    assert answers.read_bytes() == before


@pytest.mark.parametrize("left", [0, 2])
def test_run_refuses_the_answers_of_a_device_that_has_changed(tmp_path: Path, left: int) -> None:
    """Also where nothing is left to ask."""
    answers, path = tmp_path / "answers.jsonl", write(tmp_path / "in.jsonl", *addends(40))
    device = program(tmp_path, f"for _, row in zip(range({40 - left}), rows()): say(row)\n")
    run("run", path, "--device", device, "-o", str(answers), code=3 if left else 0)
    before = answers.read_bytes()
    program(tmp_path, 'for row in rows(): say(row, d=f\'{int(row["c"], 16) + (int(row["c"], 16) > 20):08x}\')\n')
    message = run("run", path, "--device", device, "-o", str(answers), code=2).stderr
    assert "the device has changed: its answer is 000000" in message
    assert answers.read_bytes() == before


def test_vectors_that_tell_hypotheses_apart_are_asked_again_first(tmp_path: Path) -> None:
    """One in 300, and the only answer that has changed."""
    vectors = addends(300)
    vectors[77] = replace(vectors[77], extra={"question": "mine", "predictions": {"x": "0000004d", "y": "0000004e"}})
    answers, path = tmp_path / "answers.jsonl", write(tmp_path / "in.jsonl", *vectors)
    device = program(tmp_path, "for row in rows(): say(row)\n")
    run("run", path, "--device", device, "-o", str(answers), code=0)
    program(tmp_path, "for row in rows(): say(row, d='0000004e' if row['c'] == '0000004d' else row['c'])\n")
    message = run("run", path, "--device", device, "-o", str(answers), code=2).stderr
    assert f"{answers}:78: d: the device has changed: its answer is 0000004d here, 0000004e now" in message


def test_an_earlier_run_of_a_device_that_contradicts_itself(tmp_path: Path) -> None:
    answers, path = tmp_path / "answers.jsonl", write(tmp_path / "in.jsonl", *addends(40))
    device = program(tmp_path, "for row in rows(): say(row)\n")
    run("run", path, "--device", device, "-o", str(answers), code=0)
    program(tmp_path, "for n, row in enumerate(rows()): say(row, d=f'{n:08x}')\n")
    message = run("run", path, "--device", device, "-o", str(answers), code=3).stderr
    assert "contradicts itself: it answered vector v" in message


# --- one question, two answers --------------------------------------------------------------------------------------


def test_identify_names_a_device_that_contradicts_itself(tmp_path: Path, family: str) -> None:
    device = program(tmp_path, "random.seed(4)\n" + SHUFFLED)
    result = run("identify", family, "--device", device, "--json", code=3)
    assert f"error: {device} contradicts itself: it answered vector " in result.stderr
    assert "no candidate" not in result.stderr
    document = json.loads(result.stdout)
    assert (document["verdict"], "contradicts itself" in document["error"]) == ("open", True)
    first, again = document["contradictions"][0]["answers"]
    assert first != again
    assert first in document["error"]
    assert again in document["error"]


def test_the_order_of_a_shuffled_sum_is_no_tree_but_a_contradiction() -> None:
    """At once, without asking every pair of leaves first."""
    model, rng, asked = parse_reference("ieee/fma/f32@length=64"), random.Random(2), []

    def shuffled(vector: Vector) -> int:
        asked.append(vector)
        sides = [np.array(side, dtype=np.uint32).view(np.float32) for side in (vector.operands.a, vector.operands.b)]
        terms = [*(sides[0] * sides[1]), np.array([vector.operands.c], dtype=np.uint32).view(np.float32)[0]]
        rng.shuffle(terms)
        return int(np.cumsum(np.array(terms), dtype=np.float32)[-1].view(np.uint32))

    def ask(vectors: Sequence[Vector]) -> list[int]:
        return list(map(shuffled, vectors))

    with pytest.raises(ContradictionError, match=r"it answered vector .* with [0-9a-f]{8} and then with") as caught:
        reveal(ask, model, again=ask)
    assert caught.value.exit_code == 3
    assert len(asked) < 500


def test_candidates_are_not_ruled_out_by_noise() -> None:
    """A candidate, but for a last bit that comes and goes."""
    exact, rng = answers_of(VOLTA), random.Random(5)

    def noisy(vectors: list[Vector]) -> list[int]:
        return [d ^ (rng.getrandbits(1) if d & 0x7F else 0) for d in exact(vectors)]

    found = Identifier(small().candidates(), noisy, Options("bitwuzla", 60.0)).run()
    assert (found.verdict, bool(found.contradictions), found.nearest == []) == ("open", True, True)


def test_run_names_a_device_that_contradicts_itself(tmp_path: Path) -> None:
    answers, path = tmp_path / "answers.jsonl", write(tmp_path / "in.jsonl", *addends(40))
    flips = 'seen = set()\nfor row in rows():\n    say(row, d=f\'{int(row["c"], 16) + (row["c"] in seen):08x}\')\n'
    device = program(tmp_path, flips + "    seen.add(row['c'])\n")
    result = run("run", path, "--device", device, "-o", str(answers), "--json", code=3)
    assert (
        f"error: {device} contradicts itself: it answered vector v0 with 00000000 and then with 00000001"
        in result.stderr
    )
    assert "contradicts itself" in json.loads(result.stdout)["error"]
    assert len(answers.read_text(encoding="utf-8").splitlines()) == 40


def test_run_asks_again_what_fits_no_hypothesis(tmp_path: Path) -> None:
    """One answer of 300 was wrong, once: that one is doubted."""
    vectors = [
        replace(one, extra={"question": "mine", "predictions": {"x": f"{k:08x}"}}) for k, one in enumerate(addends(300))
    ]
    path = write(tmp_path / "in.jsonl", *vectors)
    glitch = "for n, row in enumerate(rows()): say(row, d='00000fff' if n == 123 else row['c'])\n"
    message = run("run", path, "--device", program(tmp_path, glitch), code=3).stderr
    assert "it answered vector v123 with 00000fff and then with 0000007b" in message


def test_compare_asks_again_where_it_finds_no_difference(tmp_path: Path) -> None:
    """The second time that it is asked anything, every answer is another."""
    turns = "seen = set()\nfor row in rows():\n    key = json.dumps([row['a'], row['b'], row['c']])\n"
    turns += "    say(row, d=f'{int(row[\"c\"], 16) ^ (key in seen):08x}')\n    seen.add(key)\n"
    echo = "for row in rows(): say(row)\n"
    device = program(tmp_path, turns)
    names = [device, program(tmp_path, echo, "quiet.py")]
    message = run("compare", *names, "--model", VOLTA, "--samples", "0", code=3).stderr
    assert f"{device}: contradicts itself" in message
