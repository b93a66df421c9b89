"""Two processes that are told to write one file: neither loses what the other wrote."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from mmaprobe.runner.answers import AnswersFile
from mmaprobe.smtmodel.base.errors import InputError, OutputError
from mmaprobe.smtmodel.base.files import append_whole, open_claimed, size_of, write_whole
from mmaprobe.studies.table import claimed_table
from tests.command_line.test_cli import VOLTA, run
from tests.command_line.test_output import ENTRY

pytestmark = pytest.mark.programs

#: says that it has answered once, then waits for a file
SLOW = """
import json, pathlib, sys, time
for number, line in enumerate(sys.stdin):
    if number == 1:
        pathlib.Path({started!r}).touch()
        while not pathlib.Path({go!r}).exists():
            time.sleep(0.02)
    print(json.dumps({{"id": json.loads(line)["id"], "d": "3f800000"}}), flush=True)
"""
ORDER = ["--formats", "f16,f16,f32,f32", "--length", "4"]


@pytest.mark.parametrize("command", ["run", "order", "identify"])
def test_the_second_run_is_refused_and_the_first_goes_on(command: str, tmp_path: Path) -> None:
    started, go, answers, program = (tmp_path / name for name in ("started", "go", "answers.jsonl", "slow.py"))
    program.write_text(SLOW.format(started=str(started), go=str(go)), encoding="utf-8")
    row = {"model": VOLTA, "a": ["3c00"], "b": ["3c00"]}
    rows = [json.dumps({**row, "c": f"{number:08x}"}) + "\n" for number in range(20)]
    (tmp_path / "vectors.jsonl").write_text("".join(rows), encoding="utf-8")
    arguments = {"run": [str(tmp_path / "vectors.jsonl")], "order": ORDER, "identify": ["nvidia-f16"]}[command]
    device = f"command:{sys.executable} {program}"
    words = [command, *arguments, "-o", str(answers), "--device"]
    first = subprocess.Popen([sys.executable, "-c", ENTRY, *words, device], stderr=subprocess.PIPE, text=True)
    try:
        while not started.exists():
            assert first.poll() is None
        other = f"model:{VOLTA}" if command == "run" else device
        result = run(*words, other, code=2)
        assert f"{answers}: another run writes here: wait for its end" in result.stderr
    finally:
        go.touch()
        if command != "run":  # what such a device is takes long to find out
            first.kill()
        message = first.communicate(timeout=300)[1]
    kept = [json.loads(line) for line in answers.read_text(encoding="utf-8").splitlines()]
    assert {one["provenance"]["device"] for one in kept} == {device}
    if command == "run":
        assert (first.returncode, len(kept)) == (0, 20), message
        run(*words, device, code=0)  # nobody writes there any more


def test_a_table_of_points_has_one_writer(tmp_path: Path) -> None:
    path = tmp_path / "valero-tf32.csv"
    with claimed_table(path, ("percent",)):
        result = run("study", "valero-tf32", "--sizes", "32", "-o", str(tmp_path), code=2)
        assert "another run writes here" in result.stderr
        header = path.read_text(encoding="utf-8")
    assert not path.exists()  # it has no row
    path.write_text(header[:9], encoding="utf-8")  # killed while it was new
    with claimed_table(path, ("percent",)) as table:
        assert table.rows == {}
        assert path.read_text(encoding="utf-8") == header


def test_nothing_is_added_to_the_file_of_another_run(tmp_path: Path) -> None:
    path = tmp_path / "vectors.jsonl"
    write_whole(path, "mine\n")
    size = size_of(path)
    append_whole(path, "more\n", size)
    with pytest.raises(InputError, match="another run writes here"):
        append_whole(path, "even more\n", size)
    with open_claimed(path), pytest.raises(InputError, match="another run writes here"):
        append_whole(path, "even more\n", size_of(path))
    assert path.read_text(encoding="utf-8") == "mine\nmore\n"


def test_a_file_that_is_taken_away_is_made_anew(tmp_path: Path) -> None:
    path = tmp_path / "answers.jsonl"
    with open_claimed(path):
        path.unlink()
        with open_claimed(path) as stream:
            stream.write(b"here\n")
    assert path.read_bytes() == b"here\n"


def test_a_file_that_is_gone_on_with_is_not_replaced(tmp_path: Path) -> None:
    """Nor by a command that writes a whole file; and a run whose file is gone does not say that it has answered."""
    path = tmp_path / "answers.jsonl"
    with open_claimed(path):
        with pytest.raises(InputError, match="another run writes here"):
            write_whole(path, "other")
        assert path.read_bytes() == b""
    write_whole(path, "other")
    vectors = tmp_path / "vectors.jsonl"
    vectors.write_text(json.dumps({"model": VOLTA, "a": ["3c00"], "b": ["3c00"], "c": "3f800000"}) + "\n")
    target = tmp_path / "new.jsonl"
    with pytest.raises(OutputError, match="removed or replaced meanwhile"), AnswersFile(target, "mine", None):
        target.unlink()
