"""What every test shares: no test reads or fills the user's own store of answers, or reads the user's defaults; every
JSON document that a command prints is one that reports/documents.py describes; and the groups of tests that take long,
each of which runs alone by its name (`pytest -m solvers`)."""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Callable, Iterator
from functools import cache
from hashlib import sha256
from itertools import count
from pathlib import Path
from typing import Any

import click
import pytest
from pydantic import ValidationError

from mmaprobe.cli import options
from mmaprobe.cli.entry import COLLECTED
from mmaprobe.queries.solvers import engines, store
from mmaprobe.reports import documents
from mmaprobe.smtmodel.base.frames import with_room
from tests import shared_answers
from tests.browser import chromium as chromium  # one browser for every module: Playwright allows no second

#: group -> modules without their test_; what is in none runs with `make test-fast`. "oracle": results bit for bit
#: against the oracle and other carriers, on many inputs; "all_inputs": rules against every input of small formats;
#: "records": the tables of recorded answers and of choices, row by row
GROUPS = {
    "solvers": (
        "admitted", "attacks", "bitblast", "bounds", "build", "certificate", "check", "claim_stages", "compare",
        "contradictions", "cover", "cover_certificates", "distinguish", "face", "facts", "false_statements", "families",
        "forms", "goals", "held_back", "identify", "identify_gemm", "ieee", "long_sums", "merged", "monotone",
        "mutations", "normal_form", "one_vector", "order", "output", "plan_bound_certificates", "plan_bounds",
        "plan_certificates", "pool", "properties", "property_certificates", "prove", "prove_plans", "question_library",
        "rises", "shares", "small_pairs", "solvers", "statements", "store_solving", "unit_properties", "verdicts",
        "verify",
    ),
    "browser": ("datasheet", "report", "svg"),
    "cluster": ("cluster", "cluster_refused"),
    "kernels": ("cuda", "cuda_product", "cupy_launch", "evidence", "kernels"),
    "compilers": (
        "algorithms", "compiled", "cpu_devices", "cpu_units", "own_formats", "plans", "simulate", "witnesses",
    ),
    "oracle": ("algebra", "carriers", "mma_sim", "nodes", "oracle", "oracle_formats", "rdna", "reductions", "second"),
    "all_inputs": ("odd_units", "rows", "rule_truth", "table9"),
    "records": ("plan_choices", "recordings"),
    "curves": ("drawings", "renderers", "studies"),
    "pages": ("claims_page", "documentation", "extending", "notebook", "page_commands"),
    "programs": ("current_folder", "devices", "lean", "run", "serve", "store_files"),
}  # fmt: skip


#: tests of ten seconds and more that have quicker siblings: they run with `make proofs`
LONG = (
    "test_build.py::test_sums_that_are_negated[{d: 'r(exact(c, r(number(0xbf800000, f32) * r(fused",
    "test_build.py::test_units_of_processors[arm/neon/bfdot-",
    "test_build.py::test_units_of_processors[x86/avx512/vdp",
    "test_build.py::test_what_no_candidate_explains_is_said",
    "test_distinguish.py::test_library[cdna3-late-sum]", "test_distinguish.py::test_library[xie-block]",
    "test_documentation.py::test_commands_print_what_is_shown[docs/plans.md]",
    "test_documentation.py::test_commands_print_what_is_shown[docs/prove.md]",
    "test_documentation.py::test_commands_print_what_is_shown[docs/report.md]",
    "test_documentation.py::test_commands_print_what_is_shown[docs/studies/README.md]",
    "test_documentation.py::test_commands_print_what_is_shown[docs/tutorial.md]",
    "test_drawings.py::test_latex_takes_it",
    "test_families.py::test_a_family_for_other_formats_is_named",
    "test_identify.py::test_normal_forms_compute_as_the_candidates[any]",
    "test_identify.py::test_normal_forms_compute_as_the_candidates[nvidia-fp8]",
    "test_identify_gemm.py::test_edges_are_elements_of_their_own",
    "test_identify_gemm.py::test_no_plan_is_named_for_an_order_of_no_plan",
    "test_page_commands.py::test_commands_without_output_run[docs/README.md]",
    "test_rewriting.py::test_small_units_near_the_limits_compute_as_their_normal_forms",
    "test_second.py::test_what_is_proved_of_the_table_passes[rest",
    "test_studies.py::test_curves", "test_table9.py::test_bounds_hold_on_all_inputs_and_none_smaller_does[unit4-",
)  # fmt: skip


#: modules that are about the processes of solvers: there each question is asked
PROCESSES = {"test_cluster", "test_pool", "test_portfolio", "test_solvers", "test_store_solving"}

_STORES = count()


def pytest_configure(config: pytest.Config) -> None:
    gc.disable()  # while modules are loaded, all of which stay
    for group, modules in GROUPS.items():
        config.addinivalue_line("markers", f"{group}: {', '.join(modules)}")


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Modules of other groups than the one that is asked for are not loaded: a third of the time of the fast ones."""
    asked, _, rest = str(config.option.markexpr).partition(" ")
    if asked not in {*GROUPS, "fast"} or "or" in rest.split() or not collection_path.name.startswith("test_"):
        return None
    return True if _groups().get(collection_path.stem, "fast") != asked else None


@cache
def _groups() -> dict[str, str]:
    return {f"test_{module}": group for group, modules in GROUPS.items() for module in modules}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        item.add_marker(_groups().get(item.path.stem, "fast"))
        if item.nodeid.partition("/")[2].startswith(LONG):
            item.add_marker("slow")


def pytest_collection_finish() -> None:
    """What was loaded stays, and few of the objects that tests make hold each other: to look for those that do took a
    sixth of the processors' time."""
    gc.freeze()
    gc.set_threshold(*COLLECTED)
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
    again where the bytes of both files are the same: tests that change one thing in a certificate leave its proofs as
    they are. tests/test_certificate.py asks the checker itself."""
    folder = sys.modules.get("mmaprobe.queries.checking.folder")  # no test of certificates was collected without it
    if folder is None:
        yield
        return

    def once(plain: Callable[..., Any], suffixes: tuple[str, str]) -> Callable[..., Any]:
        known: dict[tuple[Any, ...], Any] = {}

        def checked(place: Path, name: str, *rest: Any) -> Any:
            files = [place / f"{name}.{suffix}" for suffix in suffixes]
            if not all(file.exists() for file in files):
                return plain(place, name, *rest)
            key = *(sha256(file.read_bytes()).digest() for file in files), *rest
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
    """One for all workers, and for the commands of the documentation."""
    folder = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        folder = folder.parent
    (folder / "answers").mkdir(exist_ok=True)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(shared_answers.FOLDER, str(folder / "answers"))
        yield


@pytest.fixture(autouse=True)
def questions_asked_once(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.path.stem not in PROCESSES:
        monkeypatch.setattr(engines, "SolverProcess", shared_answers.ask)


@pytest.fixture(autouse=True)
def described_documents(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """The faults of documents printed in a test, which has none."""
    faults: list[str] = []

    def checked(document: Any) -> str:
        text = plain(document)
        command = click.get_current_context().info_name or ""
        try:
            documents.check(command, text)
        except ValidationError as error:
            faults.append(f"{command} --json: {error}")
        return text

    plain = options.document_text
    monkeypatch.setattr(options, "document_text", checked)
    yield faults
    assert not faults, "\n".join(faults)
