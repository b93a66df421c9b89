"""Text that is not UTF-8 is bad input, with file and line, in every file that is read, and on standard input."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from mmaprobe.cli.main import main

V = "volta/mma/m8n8k4.f32.f16.f16.f32"
LINE = 37  # on which the byte is
ROW = json.dumps({"model": V, "a": ["3c00"], "b": ["3c00"], "c": "00000000", "d": "3f800000"}).encode()
ROWS = b"\n".join([ROW] * (LINE - 1) + [b'{"id": "caf\xe9"}', ROW])
COMMENTS = b"# a comment\n" * (LINE - 1)
SAID = "cannot be read: not text in UTF-8\n"


def output_of(*arguments: str, stdin: bytes | None = None) -> str:
    done = CliRunner().invoke(main, list(arguments), input=stdin)
    assert done.exit_code == 2, done.stderr
    return done.stderr


@pytest.mark.parametrize("ending", ["jsonl", "jsonl.gz"])
@pytest.mark.parametrize(
    "before",
    [["evaluate"], ["explain", V], ["export", "--format", "csv"], ["report", "-o", "r.html"],
     ["run", "--device", f"model:{V}"]],
    ids=lambda words: words[0],
)  # fmt: skip
def test_rows(before: list[str], ending: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    path = tmp_path / f"rows.{ending}"
    path.write_bytes(gzip.compress(ROWS) if ending.endswith("gz") else ROWS)
    named = f"{path}:{LINE}" if before[0] == "explain" else str(path)
    assert output_of(*before, named).endswith(f"{path}:{LINE}: {SAID}")


def test_rows_of_a_device_and_of_standard_input(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_bytes(ROWS)
    assert output_of("compare", f"recorded:{path}", f"model:{V}").endswith(f"{path}:{LINE}: {SAID}")
    assert output_of("evaluate", "-", stdin=ROWS).endswith(f"standard input:{LINE}: {SAID}")


@pytest.mark.parametrize("command", [["show"], ["distinguish"], ["verify"], ["separate"]], ids=lambda words: words[0])
def test_files_in_yaml(command: list[str], tmp_path: Path) -> None:
    path = tmp_path / "file.yaml"
    path.write_bytes(COMMENTS + b"id: caf\xe9\n")
    assert output_of(*command, str(path)) == f"error: {path}:{LINE}: {SAID}"


def test_defaults(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "config.toml"
    path.write_bytes(COMMENTS + b"timeout = 3 # caf\xe9\n")
    monkeypatch.setenv("MMAPROBE_CONFIG", str(path))
    assert output_of("prove", V, V) == f"error: {path}:{LINE}: {SAID}"


def test_the_table_of_a_study(tmp_path: Path) -> None:
    (tmp_path / "valero-tf32.csv").write_bytes(b"a\n" * (LINE - 1) + b"\xe9\n")
    assert output_of("study", "valero-tf32", "-o", str(tmp_path)).endswith(f"valero-tf32.csv:{LINE}: {SAID}")


def test_documents(tmp_path: Path) -> None:
    manifest, answers = tmp_path / "manifest.json", tmp_path / "answers.jsonl"
    for content, what in ((b"\n" * (LINE - 1) + b'"\xe9"', f"line {LINE} is not text in UTF-8"),
                          (b"[" * 100_000, "nested too deep"),
                          (b"{\n" + b'"a": 1,\n' * (LINE - 2) + b"}", f" at line {LINE}, column 1")):  # fmt: skip
        manifest.write_bytes(content)
        assert what in output_of("check", str(tmp_path))
        assert what in output_of("simulate", "a.npy", "b.npy", "-o", "d.npy", "--plan", str(manifest))
    answers.write_bytes(ROWS)
    rows = tmp_path / "rows.jsonl"
    rows.write_bytes(ROW)
    assert f"{answers}:1: " in output_of("run", str(rows), "--device", f"model:{V}", "-o", str(answers))
