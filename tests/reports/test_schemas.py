"""The JSON documents: what describes them is up to date, and finds what is wrong (the fixture described_documents of
conftest.py holds every document of every test against it)."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import FrozenInstanceError, replace
from pathlib import Path
from typing import Any, Literal

import pytest
from click.testing import CliRunner

from mmaprobe.cli.main import PLACES, main
from mmaprobe.documents.commands import DOCUMENTS
from mmaprobe.documents.lists import ListedFormat
from mmaprobe.documents.parts import ABSENT, Hex, Part, Vector, plain
from mmaprobe.documents.reading import WrongDocumentError, read
from tests.schemas import FOLDER, VECTOR, check, files, said

VOLTA = "volta/mma/m8n8k4.f32.f16.f16.f32"


def document(*arguments: str) -> Any:
    result = CliRunner().invoke(main, list(arguments))
    assert result.exit_code in (0, 1), result.output
    return json.loads(result.stdout)


def test_files_and_page_are_those_of_the_types() -> None:
    wrong = [str(path) for path, text in files() if not path.is_file() or path.read_text(encoding="utf-8") != text]
    assert not wrong, "python -m tests.schemas writes them"
    assert {path.stem for path in FOLDER.iterdir()} == {*DOCUMENTS, VECTOR}


def test_every_command_with_json_is_described() -> None:
    with_json = {name for name in PLACES if any("--json" in option.opts for option in main.commands[name].params)}
    assert with_json == set(DOCUMENTS)


def broken(found: dict[str, Any], how: str) -> dict[str, Any]:
    if how == "another key":
        return found | {"colour": "red"}
    if how == "a key less":
        return {key: value for key, value in found.items() if key != "difference"}
    if how == "another type":
        return found | {"evaluations": "none"}
    return found | {"schema": 2}


@pytest.mark.parametrize("how", ["another key", "a key less", "another type", "another version"])
def test_what_is_not_described_is_found(how: str) -> None:
    found = document("explain", VOLTA, '{"a": ["3c00"], "b": ["3c00"], "c": "3f800000"}', "--json")
    check("explain", json.dumps(found))
    with pytest.raises(WrongDocumentError):
        check("explain", json.dumps(broken(found, how)))


def test_a_document_is_a_value() -> None:
    """Whose fields stay, stand in the order of the keys, and may be absent."""
    found = ListedFormat(id="x", summary="y", bias=3)
    with pytest.raises(FrozenInstanceError):
        found.id = "z"  # type: ignore[misc]
    assert json.dumps(found, default=plain) == '{"schema": 1, "id": "x", "summary": "y", "bias": 3}'
    assert found == read(ListedFormat, plain(found)) != replace(found, width=0)
    assert not found.width
    assert found.width is ABSENT


@pytest.mark.parametrize(
    ("kind", "value", "key"),
    [
        (Sequence[int], [1, True], "1"), (Sequence[int], 1.0, None), (float, "1", None), (str | None, 1, None),
        (Mapping[str, Sequence[Hex]], {"a": ["0x"]}, "a.0"), (Literal[1], True, None), (bool, 1, None),
        (Vector, {"a": [1], "b": [], "c": "0"}, "a.0"),
    ],
)  # fmt: skip
def test_a_value_of_another_type_is_found(kind: Any, value: Any, key: str | None) -> None:
    with pytest.raises(WrongDocumentError) as error:
        read(kind, value)
    assert error.value.key == key


def test_a_fault_of_a_document_fails_the_test_that_prints_it(described_documents: list[str]) -> None:
    from mmaprobe.cli import options

    outer = main.make_context("mmaprobe", ["list", "formats"])
    with outer, main.commands["list"].make_context("list", ["formats"], parent=outer):
        options.document_text([{"id": "f16"}])
    assert "list --json" in described_documents.pop()


@pytest.mark.parametrize("kind", main.commands["list"].params[0].type.choices)  # type: ignore[attr-defined]
def test_every_row_of_a_list_has_the_version(kind: str) -> None:
    rows = document("list", kind, "--json")
    assert rows
    assert {row["schema"] for row in rows} == {1}


@pytest.mark.parametrize(
    "arguments",
    [
        ("run", "FILE", "--device", f"model:{VOLTA}"),
        ("run", "FILE", "--device", f"model:{VOLTA}", "-o", "OUT"),
        ("run", "FILE", "--device", f"model:{VOLTA}", "--json"),
        ("evaluate", "FILE", "-o", "OUT"),
        ("evaluate", "FILE", "--model", f"{VOLTA}@fraction_bits=20", "-o", "-"),
    ],
    ids=" ".join,
)
def test_keys_of_ones_own_are_kept(arguments: tuple[str, ...], tmp_path: Path) -> None:
    own = {"note": "mine", "tags": ["x", 1], "by": {"me": None}}
    row = {"id": 1, "model": VOLTA, "a": ["3c00"], "b": ["3c00"], "c": "3f800000", "d": "40000000"} | own
    path, output = tmp_path / "vectors.jsonl", tmp_path / "out.jsonl"
    path.write_text(json.dumps(row))
    result = CliRunner().invoke(main, [{"FILE": str(path), "OUT": str(output)}.get(one, one) for one in arguments])
    assert result.exit_code == 0, result.output
    (written,) = json.loads(result.stdout)["vectors"] if "--json" in arguments else [
        json.loads(output.read_text() if "OUT" in arguments else result.stdout)
    ]  # fmt: skip
    assert {key: written[key] for key in own} == own


@pytest.mark.parametrize("command", ["compare", "identify"])
def test_keys_of_a_recorded_row_are_kept(command: str, tmp_path: Path) -> None:
    """In a difference as it was recorded, and in the answers that identify keeps."""
    row = {"model": VOLTA, "a": ["3c00"], "b": ["3c00"], "c": "34000000", "d": "3f800001", "note": "mine"}
    path, family, output = (tmp_path / name for name in ("rows.jsonl", "two.yaml", "out.jsonl"))
    path.write_text(json.dumps(row))
    family.write_text(
        "id: two\nabout: x\nformats: {a: f16, b: f16, c: f32, d: f32}\nlength: 4\n"
        "parameters: {fraction_bits: [22, 23]}\n"
    )
    rest = {
        "compare": (f"recorded:{path}", f"model:{VOLTA}@fraction_bits=22"),
        "identify": (str(family), "--device", f"recorded:{path}", "--model", VOLTA),
    }[command]
    result = CliRunner().invoke(main, [command, *rest, "-o", str(output)])
    assert result.exit_code == 0, result.output
    assert [json.loads(line)["note"] for line in output.read_text().splitlines()] == ["mine"]


class _Long(Part):
    """A part one of whose fields stands on several lines."""

    number: Literal["one", "two", "three"] = (
        ABSENT  #: the number in the words of the language that is spoken here, of which there are three
    )


def test_a_comment_within_a_long_field_is_read() -> None:
    assert said(_Long)["number"].startswith("the number in the words")
