"""What every test shares: no test reads or fills the user's own store of answers, or reads the user's defaults; every
JSON document that a command prints is one of documents/; and the groups of tests that take long
(pyproject.toml names them), each of which runs alone by its name (`pytest -m solvers`)."""

from __future__ import annotations

import gc
import os
import signal
import sys
from collections.abc import Callable, Iterator
from functools import cache
from hashlib import sha256
from itertools import count
from pathlib import Path
from typing import Any

import click
import pytest

from mmaprobe.cli import options
from mmaprobe.cli.entry import GC_THRESHOLDS
from mmaprobe.documents.reading import WrongDocumentError
from mmaprobe.queries.solvers import engines, store
from mmaprobe.smtmodel.base.frames import with_room
from tests import schemas, shared_answers
from tests.marks import may_hold

_STORES = count()


def pytest_configure(config: pytest.Config) -> None:
    gc.disable()  # while modules are loaded, all of which stay
    # as of what a script starts with &, or nohup does, and of all below it
    for number, handler in ((signal.SIGINT, signal.default_int_handler), (signal.SIGHUP, signal.SIG_DFL)):
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, handler)


@cache
def _groups(config: pytest.Config) -> frozenset[str]:
    """The markers of pyproject.toml that are groups."""
    markers = (line.partition(": ") for line in config.getini("markers"))
    return frozenset(name for name, _, text in markers if text.startswith("group: "))


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Modules of other groups than the one that is asked for are not loaded: a third of the time of the fast ones."""
    asked, _, rest = str(config.option.markexpr).partition(" ")
    groups = _groups(config)
    if asked not in {*groups, "fast"} or "or" in rest.split() or not collection_path.name.startswith("test_"):
        return None
    return None if may_hold(collection_path.read_text(encoding="utf-8"), asked, groups) else True


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if _groups(item.config).isdisjoint(mark.name for mark in item.iter_markers()):
            item.add_marker("fast")


def pytest_collection_finish() -> None:
    """What was loaded stays, and few of the objects that tests make hold each other: to look for those that do took a
    sixth of the processors' time."""
    gc.freeze()
    gc.set_threshold(*GC_THRESHOLDS)
    gc.enable()


def pytest_sessionfinish() -> None:
    """What is not freed here stays for good: pytest, and the interpreter at its end, need not look at all of it
    again."""
    gc.collect()
    gc.freeze()


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool:
    """Tests have the room for frames that commands have."""
    given = {name: pyfuncitem.funcargs[name] for name in pyfuncitem._fixtureinfo.argnames}
    assert with_room(lambda: pyfuncitem.obj(**given)) is None, "a test returns nothing"
    return True


@pytest.fixture(scope="session", autouse=True)
def proofs_checked_once() -> Iterator[None]:
    """A formula that was compared with its query, and a proof that was checked against its formula, are not looked at
    again where the bytes of both files and the checker are the same: tests that change one thing in a certificate leave
    its proofs as they are. tests/certificates/test_certificate.py asks the checker itself."""
    folder = sys.modules.get("mmaprobe.queries.checking.folder")  # no test of certificates was collected without it
    checker = sys.modules.get("mmaprobe.queries.certificates.checker")
    if folder is None or checker is None:
        yield
        return

    def once(plain: Callable[..., Any], suffixes: tuple[str, str]) -> Callable[..., Any]:
        known: dict[tuple[Any, ...], Any] = {}

        def checked(place: Path, name: str, *rest: Any) -> Any:
            files = [place / f"{name}.{suffix}" for suffix in suffixes]
            if not all(file.exists() for file in files):
                return plain(place, name, *rest)
            key = *(sha256(file.read_bytes()).digest() for file in files), checker.checker_named(), *rest
            if key in known:
                return known[key]
            found = plain(place, name, *rest)
            if getattr(found, "complete", True):
                known[key] = found
            return found

        return checked

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(folder, "formula_fault", once(folder.formula_fault, ("smt2", "cnf")))
        patch.setattr(folder, "check_piece", once(folder.check_piece, ("cnf", "drat")))
        yield


@pytest.fixture(autouse=True)
def own_store(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path_factory.getbasetemp() / f"store-{next(_STORES)}.sqlite"  # a folder for each test takes longer
    monkeypatch.setattr(store, "default_path", lambda: path)
    monkeypatch.setenv("MMAPROBE_CONFIG", "")


@pytest.fixture(scope="session", autouse=True)
def folder_of_answers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """One for all workers, and for the commands of the documentation: a new one, unless the environment names one that
    is kept from run to run."""
    folder = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        folder = folder.parent
    answers = Path(os.environ.get(shared_answers.FOLDER) or folder / "answers").resolve()
    answers.mkdir(parents=True, exist_ok=True)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(shared_answers.FOLDER, str(answers))
        yield


@pytest.fixture(autouse=True)
def questions_asked_once(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.node.get_closest_marker("processes") is None:
        monkeypatch.setattr(engines, "SolverProcess", shared_answers.ask)


@pytest.fixture(scope="session", autouse=True)
def shares_climbed_to_briefly() -> Iterator[None]:
    """Once a share of the sum of magnitudes is proved, no test asks how large a share some input reaches."""
    verify = sys.modules.get("mmaprobe.queries.claims.verify")
    with pytest.MonkeyPatch.context() as patch:
        if verify is not None:
            patch.setattr(verify, "REACHED", 0.1)
        yield


@pytest.fixture
def few_new_elements(monkeypatch: pytest.MonkeyPatch) -> None:
    """Plans that give one recorded product are compared on few new elements, for tests that do not look at these."""
    from mmaprobe.queries.plans import apart

    for name, value in (("SIDE", 4), ("SPARSE_SIDE", 4), ("FAMILIES", 1)):
        monkeypatch.setattr(apart, name, value)


@pytest.fixture(autouse=True)
def described_documents(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """The faults of documents printed in a test, which has none."""
    faults: list[str] = []

    def checked(document: Any) -> str:
        text = plain(document)
        command = click.get_current_context().info_name or ""
        try:
            schemas.check(command, text)
        except WrongDocumentError as error:
            faults.append(f"{command} --json: {error.key}: {error}")
        return text

    plain = options.document_text
    monkeypatch.setattr(options, "document_text", checked)
    yield faults
    assert not faults, "\n".join(faults)
