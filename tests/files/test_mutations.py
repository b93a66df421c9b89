"""Files mutated at random: each is read, or refused in one line, within its limit; no traceback, no fault."""

from __future__ import annotations

import os
import random
import signal
from contextlib import contextmanager

import pytest
from click.testing import CliRunner

from mmaprobe.cli.main import main
from mmaprobe.hypotheses.claim import claims_named
from mmaprobe.hypotheses.family import family_named
from mmaprobe.hypotheses.library import question_named
from mmaprobe.smtmodel.base.errors import MmaprobeError
from tests.files.mutations import matrix_files, mutated, mutated_rows, mutated_yaml, row_files, yaml_files

pytestmark = pytest.mark.solvers

SEED = int(os.environ.get("MMAPROBE_MUTATION_SEED", "1"))
COUNT = int(os.environ.get("MMAPROBE_MUTATIONS", "100"))  # of each of the three kinds
LIMIT = 30  # seconds of a processor after which a file hangs: far beyond what any needs to be read
SOLVED = 600  # with questions to solvers: building those of a whole claim is not counted by --timeout
V = "volta/mma/m8n8k4.f32.f16.f16.f32"


class HangsError(BaseException):
    """Not caught by anything that is tested."""


@contextmanager
def limited(what, seconds=LIMIT):
    def late(*rest):
        raise HangsError(what)

    before = signal.signal(signal.SIGPROF, late)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


def command(*arguments, seconds=LIMIT):
    """A command ends as it should, with an error in one line if there is one."""
    with limited(arguments, seconds):
        done = CliRunner().invoke(main, list(arguments))
    assert done.exception is None or isinstance(done.exception, SystemExit), (arguments, done.exc_info)
    assert done.exit_code in (0, 1, 2, 3), (arguments, done.stderr)
    assert "Traceback" not in done.stderr
    if done.exit_code == 2 and not done.stderr.startswith("Usage"):
        assert [line.startswith("error: ") for line in done.stderr.splitlines()][-1], (arguments, done.stderr)
    return done.exit_code


def read(path):
    """What a command does with a file of its kind before it asks solvers."""
    kind = path.parent.name
    if kind.startswith("claims"):
        claims_named(str(path))
    elif kind.startswith("families"):
        family_named(str(path)).candidates()
    else:
        question_named(str(path))
        question_named(str(path), "hopper/mma/m16n8k16.f32.f16.f16.f32")


def mutants(count, originals, change, seed):
    for number in range(count):
        rng = random.Random(f"{seed} {number}")
        yield number, change(rng.choice(originals), originals, rng)


def yaml_mutants(count, tmp_path):
    files = yaml_files()
    contents = {path.read_bytes(): path for path in files}
    for number in range(count):
        rng = random.Random(f"{SEED} yaml {number}")
        original = rng.choice(list(contents))
        kind = next(name for name in ("claims", "families", "pairs") if name in contents[original].parts)
        path = tmp_path / kind / f"{number}.yaml"
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(mutated_yaml(original, list(contents), rng))
        yield path


def outcome(path):
    """The error that refuses a file, or None; any other error is a failure."""
    try:
        with limited(path):
            read(path)
    except MmaprobeError as error:
        return error
    except Exception as error:
        raise AssertionError(f"{path}: {type(error).__name__}: {error}") from error
    return None


def test_questions_families_and_claims(tmp_path):
    errors = [(path, error) for path in yaml_mutants(COUNT, tmp_path) if (error := outcome(path))]
    for path, error in errors:
        assert error.exit_code in (2, 3), (path, error)
        assert "\n" not in str(error), (path, error)
    assert len(errors) > COUNT / 4


def test_files_of_vectors(tmp_path):
    path = tmp_path / "rows.jsonl"
    rng = random.Random(SEED)
    commands = [
        ["evaluate", str(path)],
        ["run", str(path), "--device", f"model:{V}", "--json"],
        ["explain", V, str(path)],
        ["report", str(path), "-o", str(tmp_path / "page.html")],
        ["identify", "nvidia-f16", "--device", f"recorded:{path}", "--model", V, "--timeout", "1"],
        *(["export", str(path), "--format", name] for name in ("csv", "npz", "junit", "smt2", "fptest")),
    ]
    weights = [30, 30, 20, 5, 0.2, 4, 4, 4, 4, 4]
    codes = set()
    for _, content in mutants(COUNT, row_files(), mutated_rows, f"{SEED} rows"):
        path.write_bytes(content)
        [chosen] = rng.choices(commands, weights)
        codes.add(command(*chosen))
    assert codes >= {0, 2}


def test_matrices(tmp_path):
    a, b = tmp_path / "a.npy", tmp_path / "b.npy"
    b.write_bytes(matrix_files()[1])
    codes = set()
    changed = mutants(COUNT, matrix_files(), mutated, f"{SEED} matrices")
    for number, content in (*changed, (3, matrix_files()[0])):  # the last one as it is
        a.write_bytes(content)
        given = [str(a), str(b)] if number % 2 else [str(b), str(a)]
        convert = ["--convert", "nearest_even"] if number % 3 else []
        codes.add(
            command("simulate", *given, "--model", V, "-o", str(tmp_path / "d.npy"), "--engine", "numpy", *convert)
        )
    assert codes >= {0, 2}


@pytest.mark.slow
def test_questions_families_and_claims_as_commands(tmp_path):
    """The whole way, solvers included; fewer of them, since each takes as long as a hundred that are only read."""
    names = {"claims": "verify", "families": "separate", "pairs": "distinguish"}
    store = str(tmp_path / "store.sqlite")
    for path in yaml_mutants(COUNT // 5, tmp_path):
        command(names[path.parent.name], str(path), "--timeout", "0.5", "--store", store, seconds=SOLVED)
