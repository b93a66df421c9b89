"""Which program checks proofs, and what is believed of it: of another program its verdict and its exit status together,
and of one that says nothing, dies or does not end, nothing."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner

from mmaprobe.cli.main import main
from mmaprobe.queries.certificates import checker
from mmaprobe.queries.certificates.certificate import Leaf, whole_of_query, write_certificate
from mmaprobe.queries.certificates.checker import DRAT_TRIM, OWN, Check, check_files
from mmaprobe.queries.certificates.sat import CertificateError
from mmaprobe.queries.search.distinguish import Options
from mmaprobe.queries.solvers.smtlib import Query
from mmaprobe.smtmodel import __version__
from mmaprobe.smtmodel.base import libraries
from mmaprobe.smtmodel.base.errors import OutOfTimeError
from tests.certificates.test_certificate import sum_query

pytestmark = [pytest.mark.solvers, pytest.mark.skipif(libraries.compiler() is None, reason="no C compiler")]

Install = Callable[..., Path]
FORMULA, PROOF = "p cnf 2 4\n1 2 0\n-1 2 0\n1 -2 0\n-1 -2 0\n", "2 0\n0\n"
VERIFIED, REJECTED = "print('\\rc words\\n\\rs VERIFIED')\n", "print('\\ns NOT VERIFIED')\n"
VOLTA = "volta/mma/m8n8k4.f32.f16.f16.f32"


@pytest.fixture(autouse=True)
def without(monkeypatch: pytest.MonkeyPatch) -> None:
    """No drat-trim is on the path."""
    folders = os.environ["PATH"].split(os.pathsep)
    monkeypatch.setenv("PATH", os.pathsep.join(one for one in folders if not (Path(one) / DRAT_TRIM).exists()))


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Install:
    def installed(text: str, first: str = f"#!{sys.executable} -IS\n") -> Path:
        folder = tmp_path / f"bin{len(list(tmp_path.iterdir()))}"
        folder.mkdir()
        found = folder / DRAT_TRIM
        found.write_text(f"{first}import os, sys, time\n{text}")
        found.chmod(0o755)
        monkeypatch.setenv("PATH", f"{found.parent}{os.pathsep}{os.environ['PATH']}")
        return found

    return installed


@pytest.fixture
def nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine with neither drat-trim nor a compiler."""
    monkeypatch.setattr(checker, "_own", lambda: (None, "there is neither"))


def check(folder: Path, formula: str = FORMULA, proof: str = PROOF, timeout: float = 20.0) -> Check:
    for name, text in (("f.cnf", formula), ("f.drat", proof)):
        (folder / name).write_text(text, encoding="latin-1")
    return check_files(folder / "f.cnf", folder / "f.drat", timeout)


def run(*words: str | Path) -> tuple[int, str, str]:
    found = CliRunner().invoke(main, list(map(str, words)))
    return found.exit_code, found.stdout, found.stderr


def test_drat_trim_on_the_path_is_asked_and_no_other(install: Install, tmp_path: Path,
                                                     monkeypatch: pytest.MonkeyPatch) -> None:  # fmt: skip
    install(f"open('{tmp_path}/asked', 'w').write(' '.join(sys.argv[1:]))\n{VERIFIED}")
    monkeypatch.setattr(checker, "_own", lambda: pytest.fail("it is built where drat-trim is there"))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "-c").mkdir()  # a folder whose name is an option
    assert check(Path("-c")) == Check("", DRAT_TRIM)
    assert (tmp_path / "asked").read_text() == f"{tmp_path}/-c/f.cnf {tmp_path}/-c/f.drat -w"


def test_one_in_the_current_folder_is_not(install: Install, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(install(VERIFIED).parent)
    monkeypatch.setenv("PATH", f".{os.pathsep}{os.environ['PATH'].partition(os.pathsep)[2]}")
    assert checker.checker().name == OWN


@pytest.mark.parametrize(
    ("text", "late"),
    [
        (f"{VERIFIED}sys.exit(1)", False),
        (f"{VERIFIED}sys.stdout.flush()\nos.kill(os.getpid(), 9)", False),
        ("", False),
        ("sys.stderr.write('s VERIFIED')", False),
        ("print('s VERIFIED, or not')", False),
        ("print('c s VERIFIED')", False),
        (REJECTED, False),  # and ends as one that has verified it
        (f"{VERIFIED}{REJECTED}", False),
        (f"{VERIFIED}{VERIFIED}", False),
        ("print('s TIMEOUT')", False),
        ("print('s DERIVATION')\nsys.exit(1)", False),
        ("time.sleep(100)", True),
        (f"{VERIFIED}sys.stdout.flush()\ntime.sleep(100)", True),
        (f"{VERIFIED}sys.stdout.flush()\nif not os.fork(): time.sleep(100)", True),  # whose child may say more
    ],
)
def test_what_is_not_believed(text: str, late: bool, install: Install, tmp_path: Path) -> None:
    install(text)
    found = check(tmp_path, timeout=1.0)
    assert not found.valid
    assert (found.complete, found.late, found.checker) == (False, late, DRAT_TRIM)


def test_what_it_rejects_is_rejected(install: Install, tmp_path: Path) -> None:
    install(f"{REJECTED}sys.exit(1)")
    assert check(tmp_path) == Check("drat-trim says: s NOT VERIFIED", DRAT_TRIM)


def test_one_that_cannot_be_run_checks_nothing(install: Install, tmp_path: Path) -> None:
    install(VERIFIED, "#!/no/such/interpreter\n")
    found = check(tmp_path)
    assert not found.valid
    assert not found.complete
    assert "drat-trim (" in found.fault


@pytest.mark.parametrize(
    ("proof", "fault"),
    [
        ("010 0\n0\n", "step 1: not a clause"),  # 8 for drat-trim
        ("2 0\n0x1 0\n0\n", "step 2: not a clause"),
        ("a\x04\x00a\x00", "step 1: not a clause"),  # the same proof in binary
        ("c words\n2 0\n0\n", "step 1: not a clause"),
        ("2 0 0\n", "step 1: not a clause"),
        ("2\n0\n0\n", "step 1: not a clause"),
        ("dd 2 0\n0\n", "step 1: not a clause"),
        ("2 0\n", "the proof does not end in the empty clause"),
        ("0\n2 0\n", "the proof does not end in the empty clause"),
        ("", "the proof does not end in the empty clause"),
    ],
)
@pytest.mark.parametrize("public", [True, False])
def test_both_read_the_same_steps(proof: str, fault: str, public: bool, install: Install, tmp_path: Path) -> None:
    if public:
        install(VERIFIED)
    assert check(tmp_path, proof=proof) == Check(fault, DRAT_TRIM if public else OWN)


def test_without_any_nothing_is_accepted(nothing: None, tmp_path: Path) -> None:
    found = check(tmp_path)
    assert not found.valid
    assert not found.complete
    assert "install drat-trim or a C compiler" in found.fault


def leaf() -> Leaf:
    """A lemma that an engine has answered."""
    symbols, (goal,) = sum_query(3).inputs, sum_query(3).assertions
    query = Query(symbols, (goal,))
    return Leaf("sums in two orders", query, ("z3 4: unsat",), whole_of_query(query, 30.0))


def test_no_certificate_is_written_unchecked(nothing: None, tmp_path: Path) -> None:
    """Nor does its lemma rest on the answer of the engine, as one whose proof takes too long."""
    given = leaf()
    for one in (given, Leaf(given.states, given.query, given.words)):
        with pytest.raises(CertificateError, match="install drat-trim or a C compiler") as caught:
            write_certificate(tmp_path / "proof", Options(timeout=60.0), {}, [one])
        assert not isinstance(caught.value, OutOfTimeError)
        assert caught.value.exit_code == 3
        assert list((tmp_path / "proof").iterdir()) == []


def test_check_says_which_has_checked(tmp_path: Path, install: Install, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "proof"
    code, _, message = run("prove", VOLTA, f"{VOLTA}@carry_bits=4", "--certificate", folder)
    assert code == 0
    assert "accepted by the checker (check.c)" in message.replace("\n", " ")
    code, printed, message = run("check", folder, "--json")
    own = f"check.c of mmaprobe {__version__}"
    assert (code, json.loads(printed)["checker"]) == (0, own)
    assert f"2 proofs verified by {own}\n" in message

    found = install(VERIFIED)
    code, printed, message = run("check", folder, "--json")
    assert (code, json.loads(printed)["checker"]) == (0, f"drat-trim ({found})")
    assert f"2 proofs verified by drat-trim ({found})\n" in message

    install("")
    code, printed, message = run("check", folder, "--json")
    assert (code, json.loads(printed)["verdict"]) == (3, "incomplete")
    assert "lemma-01.drat: not checked: drat-trim says nothing, and ended with status 0" in message

    monkeypatch.undo()
    monkeypatch.setattr(checker.shutil, "which", lambda name: None)
    monkeypatch.setattr(checker, "_own", lambda: (None, "there is neither"))
    code, printed, message = run("check", folder, "--json")
    assert (code, json.loads(printed)["verdict"], json.loads(printed)["checker"]) == (3, "incomplete", None)
    assert "lemma-02.drat: not checked: no checker of proofs: install drat-trim or a C compiler" in message
    assert "0 proofs verified" not in message
