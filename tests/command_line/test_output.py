"""Output that cannot be written, streams that are closed, and errors that nobody expected: no traceback, no silence."""

from __future__ import annotations

import json
import os
import resource
import signal
import stat
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from mmaprobe import listed
from mmaprobe.cli.commands.prove_models import _unconfirmed
from mmaprobe.cli.main import main
from mmaprobe.cli.text.certificates import check_attached
from mmaprobe.documents.prove import OneLemma
from mmaprobe.queries.certificates.sat import CertificateError, FaultyProofError
from mmaprobe.runner.answers import AnswersFile
from mmaprobe.smtmodel.base.errors import FaultError, InputError, OutOfTimeError, OutputError
from mmaprobe.smtmodel.base.files import append_whole, whole_file, write_whole
from mmaprobe.smtmodel.inputs.vectors import parse_row

pytestmark = pytest.mark.solvers

V = "volta/mma/m8n8k4.f32.f16.f16.f32"
ROW = {"model": V, "a": ["3c00"], "b": ["3c00"], "c": "00000000"}
ENTRY = "from mmaprobe.cli.entry import main; main()"
FULL = Path("/dev/full")
needs_full = pytest.mark.skipif(not FULL.exists(), reason="no /dev/full here")


@contextmanager
def small_disk(size):
    """Files end after so many bytes, as on a full disk."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("PYTHONDONTWRITEBYTECODE", "1")  # of which Python would keep the half
            patch.setattr(sys, "dont_write_bytecode", True)
            yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def shell(text, tmp_path, **named):
    """A command line in which `mmaprobe` is the program; its exit code, and both outputs."""
    program = tmp_path / "mmaprobe"
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -P -c "{ENTRY}" "$@"\n')
    program.chmod(0o755)
    path = f"{tmp_path}:{os.environ['PATH']}"
    done = subprocess.run(
        ["bash", "-c", text], cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False,
        env=os.environ | {"PATH": path, "XDG_CACHE_HOME": str(tmp_path / "cache")}, **named,
    )  # fmt: skip
    assert "Traceback" not in done.stderr, done.stderr
    return done.returncode, done.stdout, done.stderr


@pytest.fixture
def rows(tmp_path):
    path = tmp_path / "vectors.jsonl"
    path.write_text("".join(json.dumps({**ROW, "id": f"v{k}", "c": f"{k:08x}"}) + "\n" for k in range(50)))
    return path


# --- files --------------------------------------------------------------------------------------------------------


def test_a_file_is_written_whole_or_not_at_all(tmp_path):
    path = tmp_path / "out.txt"
    path.write_text("before")
    path.chmod(0o640)
    with small_disk(100), pytest.raises(OutputError, match=r"out\.txt: cannot be written: File too large") as caught:
        write_whole(path, "x" * 1000)
    assert caught.value.exit_code == 4
    assert (path.read_text(), os.listdir(tmp_path)) == ("before", ["out.txt"])

    def half():
        with whole_file(path) as stream:
            stream.write(b"half")
            raise RuntimeError

    with pytest.raises(RuntimeError):
        half()
    assert (path.read_text(), os.listdir(tmp_path)) == ("before", ["out.txt"])
    with small_disk(100), pytest.raises(OutputError, match=r"out\.txt: cannot be written: File too large"):
        append_whole(path, " and " + "x" * 1000)
    append_whole(path, " and more")
    assert path.read_text() == "before and more"
    write_whole(path, "after")
    assert (path.read_text(), stat.S_IMODE(path.stat().st_mode)) == ("after", 0o640)


def test_links_stay_links_and_pipes_are_written_as_they_are(tmp_path):
    target, link, pipe = tmp_path / "target", tmp_path / "link", tmp_path / "pipe"
    link.symlink_to("target")
    write_whole(link, "through")
    assert (target.read_text(), link.is_symlink()) == ("through", True)
    os.mkfifo(pipe)
    reader = subprocess.Popen(["cat", str(pipe)], stdout=subprocess.PIPE)
    write_whole(pipe, "piped")
    assert (reader.communicate()[0], pipe.is_fifo()) == (b"piped", True)
    with pytest.raises(InputError, match="Is a directory"):
        write_whole(tmp_path, "")
    with pytest.raises(InputError, match="cannot be written: No such file"):
        write_whole(tmp_path / "none" / "x", "")
    if FULL.exists():
        with pytest.raises(OutputError, match="/dev/full: cannot be written: No space left"):
            write_whole(FULL, "x")
        assert FULL.is_char_device()


def test_files_of_commands_stay_as_they_were(tmp_path, rows, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    for name in ("a", "b"):
        np.save(tmp_path / f"{name}.npy", np.ones((64, 64), dtype=np.float16))
    a, b = (str(tmp_path / f"{name}.npy") for name in "ab")
    commands = {
        "d.npy": ["simulate", a, b, "--model", V, "--engine", "numpy", "-o"],
        "rows.csv": ["export", str(rows), "--format", "csv", "-o"],
        "page.html": ["report", str(rows), "-o"],
        "rows.jsonl": ["evaluate", str(rows), "-o"],
        "bits.svg": ["explain", V, json.dumps(ROW), "--svg"],
    }
    for name, command in commands.items():
        path = tmp_path / name
        path.write_text("before")
        with small_disk(1000):
            done = CliRunner().invoke(main, [*command, str(path)])
        assert (done.exit_code, path.read_text()) == (4, "before"), (name, done.output)
        why = "4096 requested and" if name == "d.npy" else "File too large"  # NumPy has a way of its own
        assert f"error: {path}: cannot be written: {why}" in done.stderr
        assert " in 0." not in done.stderr, "a result that no file holds was announced"
    assert not [name for name in os.listdir(tmp_path) if name.endswith(".new")]


# --- answers, which are appended ----------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [10, 300, 1000, 1500])
def test_answers_go_on_after_a_full_disk(tmp_path, rows, size):
    path = tmp_path / "answers.jsonl"
    command = ["run", str(rows), "--device", f"model:{V}", "-o", str(path)]
    with small_disk(size):
        done = CliRunner().invoke(main, command)
    assert done.exit_code == 4
    assert f"error: {path}: cannot be written: File too large" in done.stderr
    kept = path.read_text() if path.exists() else ""
    assert kept == "" or kept.endswith("\n")
    done = CliRunner().invoke(main, command)
    assert (done.exit_code, len(path.read_text().splitlines())) == (0, 50)


@pytest.mark.parametrize("length", [1, 9, 25])
def test_a_first_answer_cut_short(tmp_path, length):
    path, vector = tmp_path / "answers.jsonl", parse_row(ROW)
    with AnswersFile(path, "model:x") as answers:
        answers.append(vector, 0, {})
    whole = path.read_bytes()
    path.write_bytes(whole[:length])
    with AnswersFile(path, "model:x") as answers:
        assert answers.take(vector) is None
        answers.append(vector, 0, {})
    assert len(path.read_bytes()) == len(whole)
    path.write_text("{important")
    with pytest.raises(InputError, match="choose another"):
        AnswersFile(path, "model:x")


@needs_full
def test_a_device_file_holds_no_earlier_answers(rows, tmp_path):
    done = CliRunner().invoke(main, ["run", str(rows), "--device", f"model:{V}", "-o", "/dev/full"])
    assert (done.exit_code, "No space left" in done.stderr) == (4, True)
    done = CliRunner().invoke(main, ["run", str(rows), "--device", f"model:{V}", "-o", "/dev/null"])
    assert done.exit_code == 0
    code, out, _ = shell(f"mmaprobe run {rows} --device model:{V} -o /dev/stdout | wc -l", tmp_path)
    assert (code, out.strip()) == (0, "50")


# --- certificates -------------------------------------------------------------------------------------------------


def test_a_certificate_below_a_file_is_refused_before_anything_is_proved(tmp_path):
    (tmp_path / "proof").write_text("a file")
    folder = tmp_path / "proof" / "below"
    done = CliRunner().invoke(main, ["prove", V, f"{V}@carry_bits=4", "--certificate", str(folder), "--json"])
    assert (done.exit_code, done.stdout) == (2, "")
    assert "is no folder" in done.stderr


def test_what_is_proved_stands_without_its_certificate(tmp_path):
    folder = tmp_path / "proof"
    command = ["prove", V, f"{V}@carry_bits=4", "--certificate", str(folder), "--json"]
    with small_disk(3000):
        done = CliRunner().invoke(main, command)
    document = json.loads(done.stdout)
    assert (done.exit_code, document["verdict"]) == (4, "equal")
    assert "cannot be written" in document["certificate_error"]
    assert "equal: proved" in done.stderr
    assert "the proof above is valid, but its certificate was not written" in done.stderr
    assert not (folder / "manifest.json").exists()


@pytest.mark.parametrize("failure", [CertificateError("everything is reached"), FaultyProofError("rejected")])
def test_a_proof_that_is_none_is_not_called_valid(failure, capsys):
    with pytest.raises(CertificateError):
        check_attached(failure)
    assert capsys.readouterr().err.splitlines()[-1] == "the certificate was not written:"


def test_a_certificate_for_which_time_ran_out_may_be_written_with_more(tmp_path, monkeypatch):
    def late(*_):
        raise OutOfTimeError("time ran out for the proof of the whole question")

    monkeypatch.setattr("mmaprobe.queries.certificates.whole.WholeProof.drat", property(late))
    done = CliRunner().invoke(main, ["prove", V, f"{V}@carry_bits=4", "--certificate", str(tmp_path / "proof")])
    assert done.exit_code == 3
    assert "several times as long as those above; give a longer --timeout" in done.stderr


# --- standard streams ---------------------------------------------------------------------------------------------


@needs_full
@pytest.mark.parametrize("command", ["list formats", "list formats --json", "--help", "run V --device model:M",
                                     "device M < V", "completion bash", "explain M ROW"])  # fmt: skip
def test_standard_output_on_a_full_disk(command, tmp_path, rows):
    words = command.replace("ROW", f"'{json.dumps(ROW)}'").replace("V", str(rows)).replace("M", V)
    code, _, err = shell(f"mmaprobe {words} > /dev/full", tmp_path)
    assert (code, "error: standard output: cannot be written: No space left on device" in err) == (4, True), err


def test_standard_output_that_is_closed(tmp_path, rows):
    code, _, err = shell(f"mmaprobe distinguish {V} {V}@fraction_bits=20 >&-", tmp_path)
    assert (code, "error: standard output: is closed" in err) == (2, True)
    code, _, err = shell(f"mmaprobe device {V} < {rows} >&-", tmp_path)
    assert (code, "error: standard output: cannot be written" in err) == (4, True)
    assert shell(f"mmaprobe evaluate {rows} >&- 2>&-", tmp_path)[0] in (0, 3)  # which prints nothing there


def test_standard_input_that_is_closed(tmp_path):
    for command in (f"run - --device model:{V}", "evaluate -", f"device {V}"):
        code, _, err = shell(f"mmaprobe {command} <&-", tmp_path)
        assert (code, "error: standard input: " in err) == (2, True), err


def test_a_pipe_that_nobody_reads(tmp_path):
    """The exit code is that of the answer, or 3 where there was more to do."""
    many = tmp_path / "many.jsonl"
    many.write_text((json.dumps(ROW) + "\n") * 3000)
    quick = "( sleep 0; exec true )"
    commands = {
        "list models": 0, "list models --json": 0, "--help": 0, f"export {many} --format csv": 0,
        f"run {many} --device model:{V}": 3, f"device {V} < {many}": 0,
    }  # fmt: skip
    for command, code in commands.items():
        _, out, err = shell(f"mmaprobe {command} | {quick}; echo ${{PIPESTATUS[0]}}", tmp_path)
        assert (out.split(), err) == ([str(code)], ""), (command, err)


# --- what nobody expected -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("error", [ZeroDivisionError, EOFError])  # the latter of a truncated module, say
def test_an_unexpected_error_is_a_fault(error, monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))

    def broken(*rest, **named):
        raise error("of\nall things")

    monkeypatch.setitem(listed.KINDS, "formats", broken)
    done = CliRunner().invoke(main, ["list", "formats"])
    path = tmp_path / "cache" / "mmaprobe" / "fault.txt"
    assert (done.exit_code, done.stdout) == (4, "")
    assert "Traceback" not in done.stderr
    fault = f"error: a fault of mmaprobe, not of the input: {error.__name__}: of all things ("
    assert done.stderr.lstrip().startswith(fault)
    assert str(path) in done.stderr
    assert "Traceback" in path.read_text()
    monkeypatch.setenv("XDG_CACHE_HOME", "/dev/null")
    assert "Traceback" in CliRunner().invoke(main, ["list", "formats"]).stderr
    monkeypatch.setitem(listed.KINDS, "formats", lambda: [][0:1][5])  # an IndexError
    assert CliRunner().invoke(main, ["list", "formats"]).exit_code == 4


def test_memory_that_runs_out_is_no_fault(monkeypatch):
    def broken():
        raise MemoryError

    monkeypatch.setitem(listed.KINDS, "formats", broken)
    done = CliRunner().invoke(main, ["list", "formats"])
    assert (done.exit_code, done.stderr) == (3, "error: memory ran out\n")


def test_a_fault_outweighs_what_is_unknown():
    from mmaprobe.cli.options import overall

    assert [overall(codes) for codes in ([0, 0], [0, 1], [1, 3, 0], [3, 4, 1])] == [0, 1, 3, 4]


def test_a_fault_leaves_the_other_answers(monkeypatch):
    from mmaprobe.queries.claims import decide
    from mmaprobe.queries.search import answer

    def faulty(original):
        def run(first, *rest, **named):
            if first.id in ("exact-products", "fp8-smallest-term"):
                raise FaultError("two engines disagree")
            return original(first, *rest, **named)

        return run

    monkeypatch.setattr(answer, "answer", faulty(answer.answer))
    monkeypatch.setattr(decide, "decide", faulty(decide.decide))
    for command, first, second in (
        ("distinguish", "exact-products", "carry-bits-volta"), ("verify", "fp8-smallest-term", "fp8-loses"),
    ):  # fmt: skip
        done = CliRunner().invoke(main, [command, first, second, "--json"])
        documents = json.loads(done.stdout)
        assert done.exit_code == 4
        assert [one["id"] for one in documents["questions" if command == "distinguish" else "claims"]] == [second]
        assert "error: two engines disagree" in done.stderr


@pytest.mark.parametrize("module", ["mmaprobe.cli.main", "mmaprobe.cli.commands.listing"])
def test_an_interrupt_while_the_program_loads(module: str):
    """As soon as a line of ours runs, also where what is raised would be ignored; what the interpreter does before is
    its own."""
    program = f"""
import os, signal, sys
class Loads:
    def find_spec(self, name, *rest):
        if name == {module!r}:
            sys.meta_path.remove(self)
            try:
                os.kill(os.getpid(), signal.SIGINT)
                import csv
            except KeyboardInterrupt:
                pass
sys.meta_path.insert(0, Loads())
sys.argv = ["mmaprobe", "list", "claims"]
{ENTRY}
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (3, "interrupted\n")
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_lemmas_that_no_second_solver_confirmed_are_named() -> None:
    def lemmas(confirmed: int) -> list[OneLemma]:
        by = ["z3"] * confirmed + [None] * (9 - confirmed)
        return [OneLemma(name=f"l{k}", cuts=0, using=None, answer="", seconds=0, confirmed_by=by[k]) for k in range(9)]

    assert _unconfirmed(lemmas(7)) == "a second solver for 7 of 9 lemmas (not: l7; l8)"
    assert _unconfirmed(lemmas(4)) == "a second solver for 4 of 9 lemmas (not: --explain says which)"
    assert _unconfirmed(lemmas(0)) == "no second solver"
