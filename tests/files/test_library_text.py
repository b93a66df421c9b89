"""What shipped files say for people: every about, question, source and note is read here."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from mmaprobe.hypotheses.library import shipped_files

SHIPPED: dict[str, dict[str, Any]] = {Path(file.name).name: file.data for file in shipped_files("")}
FEWEST = {"about": 6, "question": 6, "source": 4, "note": 8}  # words
PAPERS = r"(Fasi|Navarro|Valero-Lara|Valpey|Xie) et al\. 20\d\d|MMA-Sim 2\.1\.1|RISC-V ISA manual|Intel AVX10\.2|Bochs"
PLACEHOLDER = re.compile(r"\b(todo|tbd|fixme|xxx?|lorem|foo|placeholder)\b|\.\.\.|…", re.I)
LEFT_HANGING = re.compile(r"\b(a|an|and|at|by|for|from|in|of|on|or|the|to|where|which|with)\W*$|[,;:]$")
ALGORITHMS = ("3xTF32", "4xTF32")  # names of which the field writes the first letter so
#: what a sentence cannot begin with where nothing is before it
BACKWARD = re.compile(r"(It|They|This|That|These|Those|Such|Here|There too|Likewise|Also)\b")


def faults(key: str, text: object, names: tuple[str, ...] = (), phrase: bool = False) -> list[str]:
    """What is wrong with a text. It begins with a capital, with one of `names`, or as it likes if it is a `phrase`."""
    if not isinstance(text, str):
        return ["no text"]
    found = []
    if len(text.split()) < FEWEST[key]:
        found.append(f"fewer than {FEWEST[key]} words")
    if PLACEHOLDER.search(text):
        found.append("a placeholder")
    if key != "question" and LEFT_HANGING.search(text):
        found.append("left hanging")
    if BACKWARD.match(text) and key != "note":
        found.append("begins as if something stood before it")
    if text != " ".join(text.split()):
        found.append("blanks that are not single")
    if not (phrase or text[0].isupper() or text.startswith(names)):
        found.append("begins in lower case")
    if key == "question" and (not text.endswith("?") or text.count("?") != 1):
        found.append("not one question")
    if key == "note" and not text.endswith("."):
        found.append("no full stop")
    if key in ("about", "source") and text.endswith("."):
        found.append("a heading has no full stop")
    return found


@pytest.mark.parametrize("name", SHIPPED)
def test_texts_of_shipped_files(name: str) -> None:
    data = SHIPPED[name]
    family, names = bool({"parameters", "candidates"} & set(data)), tuple(data.get("hypotheses", {}))
    wanted = ["question" if "hypotheses" in data else "about", *(key for key in ("source", "note") if key in data)]
    assert {key: faults(key, data.get(key), (*names, *ALGORITHMS), family) for key in wanted} == {
        key: [] for key in wanted
    }
    assert family or "source" in data


@pytest.mark.parametrize("name", [name for name, data in SHIPPED.items() if "source" in data])
def test_sources_name_a_paper(name: str) -> None:
    source = SHIPPED[name]["source"]
    assert re.match(PAPERS, source) or re.search(r"\bour own\b", source, re.I), source


def test_no_two_claims_say_the_same() -> None:
    texts = [data["about"] for data in SHIPPED.values() if "about" in data]
    assert sorted(set(texts)) == sorted(texts)


@pytest.mark.parametrize(
    ("key", "text", "fault"),
    [
        ("about", "x", "fewer than"),
        ("about", "It does not where all partial sums are exact", "as if something"),
        ("about", "The error of a sum of four products is at most that of", "left hanging"),
        ("about", "The error of a sum of four products is TODO at most", "a placeholder"),
        ("question", "Are three carry bits enough for five terms", "not one question"),
        ("note", "With single-precision results it is toward_zero and no other", "no full stop"),
        ("note", "with single-precision results it is toward_zero and no other.", "lower case"),
        ("source", None, "no text"),
    ],
)
def test_faults_are_found(key: str, text: object, fault: str) -> None:
    assert any(fault in found for found in faults(key, text))
