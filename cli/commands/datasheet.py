"""The `datasheet` command: what a unit computes, on one page."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import click

from mmaprobe.cli.choice import PageFile, Seconds
from mmaprobe.cli.command import Command
from mmaprobe.cli.completion import models_or_architectures
from mmaprobe.cli.options import STORE, opened_store, print_json, progress, refuse, say
from mmaprobe.smtmodel.base.errors import UnknownNameError
from mmaprobe.smtmodel.base.files import is_file, missing_file, write_whole
from mmaprobe.smtmodel.base.progress import Pieces, Wait
from mmaprobe.smtmodel.base.wording import counted, duration

if TYPE_CHECKING:
    from mmaprobe.documents.identify import Build, Identify
    from mmaprobe.queries.kernel.questions.problem import Problem
    from mmaprobe.queries.search.distinguish import Options
    from mmaprobe.reports.datasheet import KnownProperty, Sheet
    from mmaprobe.smtmodel.evaluate.model import Model

T = TypeVar("T")
TWO = (
    "what two units do differently: mmaprobe compare model:ONE model:OTHER; whether results ever differ: "
    "mmaprobe prove ONE OTHER, also of plans"
)


@click.command(cls=Command)
@click.argument(
    "subjects",
    metavar="[MODEL | PLAN | ARCH | GPU | IDENTIFIED.json]",
    nargs=-1,
    shell_complete=models_or_architectures,
)
@click.option("--all", "every", is_flag=True, help="Every architecture of the table.")
@click.option("-o", "--output", type=PageFile(".html", ".tex", ".md"), metavar="FILE",
              help="Write the page here: HTML, tables of LaTeX (FILE.tex), or of a GPU a short one as Markdown "
              "(FILE.md).")  # fmt: skip
@click.option("--disclosure", type=click.Choice(["riscv-ime"]),
              help="No page: print what a standard asks to be disclosed of a unit. RISC-V's integrated matrix "
              "extension: (G, psm, rnd) and the reduction.")  # fmt: skip
@click.option(
    "--p3109", is_flag=True, help="No page: print what IEEE P3109 asks to be declared: kappa, an error bound."
)
@click.option("--limit", type=Seconds(zero=True), default=20.0, show_default=True,
              help="Seconds for each property to be proved; 0: no solver is asked.")  # fmt: skip
@STORE
@click.option("--json", "as_json", is_flag=True, help="With --disclosure or --p3109: one JSON document.")
def datasheet(
    subjects: tuple[str, ...], every: bool, output: Path | None, disclosure: str | None, p3109: bool, limit: float,
    store: Path | None, as_json: bool,
) -> None:  # fmt: skip
    """Make the numerical data sheet of a unit. It has formats, sum, rounding, special values, properties, error bound.

    The subject is a model (or a unit file), a plan, an architecture, a GPU (H100, "RTX 4090", MI300X), or what
    `identify --json` printed for an unknown device.
    Properties are proved by answers in the store, or by solvers within --limit seconds each; what is not answered is
    called open. What two units do differently: `mmaprobe compare model:ONE model:OTHER`.
    The page is written at once with what is known, and again with the answers; an interrupt keeps those that came.

    \b
    mmaprobe datasheet hopper/mma/m16n8k16.f32.f16.f16.f32 -o hopper.html
    mmaprobe datasheet MI300X -o mi300x.html
    mmaprobe datasheet plan:cublas/split-k -o split-k.html
    mmaprobe datasheet "RTX 4090" -o rtx-4090.md
    mmaprobe datasheet unit.json -o unit.html
    mmaprobe datasheet --all -o units.html
    mmaprobe datasheet riscv/zvbdota/vfwbdota16bf.n8 --disclosure riscv-ime
    mmaprobe datasheet arm/neon/bfdot --p3109
    """
    from mmaprobe.queries.search.distinguish import Options
    from mmaprobe.reports.datasheet import BOUND, UNPROVED, page
    from mmaprobe.reports.latex import latex_of_sheets

    if len(subjects) > 1:
        raise click.UsageError(f"a sheet has one subject, not {len(subjects)}; {TWO}")
    subject = subjects[0] if subjects else None
    if disclosure is not None or p3109:
        if every or output is not None:
            raise click.UsageError(
                "--disclosure and --p3109 print about one unit; -o, --output and --all are for pages"
            )
        if disclosure is not None and p3109:
            raise click.UsageError("--disclosure and --p3109 are documents of their own: give one of them")
        if subject is None:
            raise click.UsageError("give a model, a unit file or a file of identify")
        if disclosure is not None:
            refuse("this disclosure is read off the unit: no solver is asked", "limit", "store")
            _disclose(subject, as_json)
        else:
            _declare(subject, limit, store, as_json)
        return
    refuse("a page is no document: it is written with -o, and --disclosure prints one", "as_json")
    if output is None:
        raise click.UsageError("give the file of the page with -o FILE")
    if every == (subject is not None):
        raise click.UsageError("give a model, an architecture or a file of identify, or --all")
    if output.suffix == ".md":
        refuse("a page in Markdown asks no solver", "limit", "store")
        _write_short(subject, output)
        return

    def write(ask: _Asker) -> int:
        sheets = _sheets(subject, ask, pieces)
        ask.bounds = sum(line.name == BOUND and line.value in UNPROVED for sheet in sheets for line in sheet.lines)
        tables = output.suffix == ".tex"
        write_whole(output, latex_of_sheets(sheets) if tables else page(sheets, _title(subject, sheets)))
        progress("")
        return len(sheets)

    with opened_store(store) as opened:
        pieces = Pieces(progress, "sheets")
        options = Options(timeout=limit, store=opened, progress=pieces)
        known = _Asker(options, limit, {}, asks=False)
        count = write(known)
        if not known.waiting or not limit:
            say(f"{output}: {counted(count, 'sheet')}, {counted(known.known, 'answer')} without asking, "
                f"{known.open} open")  # fmt: skip
            return
        say(f"{output}: {counted(count, 'sheet')} with what is known; still to ask the solvers: "
            f"{counted(known.waiting, 'question')}, {duration(limit)} each at most")  # fmt: skip
        asker = _Asker(options, limit, known.answers, asks=True)
        try:
            write(asker)
        except KeyboardInterrupt:
            write(_Asker(options, limit, asker.answers, asks=False))
            raise
    say(f"{output}: {counted(known.known, 'answer')} without asking, {asker.asked} asked, {asker.open} open")


def _title(subject: str | None, sheets: Sequence[Sheet]) -> str:
    """The title of a page: the GPU or the architecture that was asked for, else the unit if it is the only one."""
    from mmaprobe.reports.gpu_page import architecture_name
    from mmaprobe.smtmodel.tables.gpus import GPUS, gpu_named

    what = "Numerical data sheets" if len(sheets) > 1 else "Numerical data sheet"
    if subject is None:
        return what
    if not is_file(subject) and (named := gpu_named(subject)) is not None:
        return f"{what}: {named[0]} ({architecture_name(named[1])})"
    return f"{what}: {architecture_name(subject) if subject in GPUS else sheets[0].title}"


def _disclose(subject: str, as_json: bool) -> None:
    """Print what RISC-V's integrated matrix extension asks to be disclosed of a unit."""
    from mmaprobe.reports.disclosure import disclosure_text, ime_disclosure

    document = ime_disclosure(*_model_and_basis(subject))
    print_json(document) if as_json else print(disclosure_text(document))


def _declare(subject: str, limit: float, store: Path | None, as_json: bool) -> None:
    """Print what IEEE P3109 asks to be declared of a unit."""
    from mmaprobe.queries.properties.declaration import declaration, declaration_text
    from mmaprobe.queries.search.distinguish import Options

    model, _ = _model_and_basis(subject)
    with opened_store(store) as opened:
        document = declaration(model, Options(timeout=limit, store=opened, progress=Pieces(progress, "steps")))
    progress("")
    print_json(document) if as_json else print(declaration_text(document))


def _model_and_basis(subject: str) -> tuple[Model, str]:
    """The model of a reference or of a document of identify, and the evidence for the model in words."""
    from mmaprobe.reports.datasheet import basis_of_identified, basis_of_model, model_of_identified
    from mmaprobe.smtmodel.tables.reference import parse_reference

    if not _is_document(subject):
        model = parse_reference(subject)
        return model, basis_of_model(model)
    return _from_identified(subject, lambda document: (model_of_identified(document), basis_of_identified(document)))


def _is_document(subject: str) -> bool:
    """Whether a subject is a file other than a unit file: it should be a document of identify."""
    from mmaprobe.smtmodel.tables.reference import is_unit_file

    return is_file(subject) and not is_unit_file(subject)


def _from_identified(subject: str, make: Callable[[Identify | Build], T]) -> T:
    """The value that `make` returns for a document of identify. Raises InputError."""
    from mmaprobe.reports.datasheet import identification
    from mmaprobe.reports.report import documents, wrong_document

    try:
        return make(identification(documents(subject)[0]))
    except (LookupError, TypeError, ValueError, AttributeError) as error:
        raise wrong_document(error, subject) from None


def _write_short(subject: str | None, output: Path) -> None:
    """Write the Markdown page of a GPU. Raises ParameterError for any other subject."""
    from mmaprobe.reports.gpu_page import gpu_page
    from mmaprobe.smtmodel.base.errors import ParameterError
    from mmaprobe.smtmodel.tables.gpus import gpu_named

    if subject is None or gpu_named(subject) is None:
        raise ParameterError("--output", f'{output}: a page in Markdown is of one GPU (H100, "RTX 4090"); use .html')
    write_whole(output, gpu_page(subject, Pieces(progress, "sheets")))
    progress("")
    say(f"{output}: 1 page")


def _sheets(subject: str | None, ask: _Asker, pieces: Pieces) -> list[Sheet]:
    from mmaprobe.reports.datasheet import sheet_of_identified, sheet_of_model, sheets_of
    from mmaprobe.smtmodel.tables.gpus import GPUS, architecture_of
    from mmaprobe.smtmodel.tables.instructions import INSTRUCTIONS
    from mmaprobe.smtmodel.tables.reference import is_unit_file, names_plan, parse_reference

    architectures = sorted({row.arch for row in INSTRUCTIONS.values()})
    if subject is None or subject in architectures:
        return sheets_of(subject, ask, pieces)
    if _is_document(subject):
        return [_from_identified(subject, lambda document: sheet_of_identified(document, ask))]
    if names_plan(subject):
        return [_sheet_of_plan(subject, ask)]
    if subject.endswith(".json"):
        raise missing_file(subject)
    if "/" not in subject and not is_unit_file(subject):
        if (arch := architecture_of(subject)) is not None:
            return sheets_of(arch, ask, pieces)
        raise UnknownNameError(
            "architecture or GPU",
            subject,
            [*architectures, *(g for row in GPUS.values() for g in row)],
            " (`mmaprobe list gpus` shows all)",
        )
    return [sheet_of_model(parse_reference(subject), ask)]


def _sheet_of_plan(name: str, ask: _Asker) -> Sheet:
    from mmaprobe.queries.plans.bound_report import SIZES, document_of_plan, find_plan_bound
    from mmaprobe.reports.plan_sheet import sheet_of_plan
    from mmaprobe.smtmodel.inputs.admitted import Inputs
    from mmaprobe.smtmodel.tables.reference import parse_plan_reference

    plan = parse_plan_reference(name)
    bound = find_plan_bound(plan, Inputs(), SIZES, ask.settle, ask.options.progress, searched=min(SIZES))
    ask.asked += ask.asks
    ask.unknown += bound.verdict == "unknown"
    return sheet_of_plan(plan, name, document_of_plan(bound, name))


class _Asker:
    """Answers questions about properties of models: without a solver where an answer follows, else (if `asks`) by
    solvers, for `limit` seconds each. An open question is asked again only if `limit` is larger than before.
    `answers`: the answers of an earlier pass by the key of the question, None where no answer follows."""

    def __init__(self, options: Options, limit: float, answers: dict[str, KnownProperty | None], asks: bool) -> None:
        from mmaprobe.queries.tactics.settling import Settled

        self.options, self.limit, self.answers, self.asks = options, limit, answers, asks
        self.known = self.asked = self.unknown = self.left = self.bounds = 0
        within = replace(options, timeout=None if asks else 0.0)  # each lemma has its own limit
        self.settle = Settled(within, seconds=limit)

    @property
    def open(self) -> int:
        """The number of properties and bounds without an answer."""
        return self.unknown + self.bounds

    @property
    def waiting(self) -> int:
        """The number of questions that are left to a later pass. A bound found while a lemma is open may be smaller
        once the lemma has an answer."""
        return 0 if self.asks else self.left + max(self.bounds, bool(self.settle.open))

    def __call__(self, wanted: str, model: Model) -> KnownProperty | None:
        from mmaprobe.queries.kernel.questions.statements import problems_of
        from mmaprobe.queries.properties.report import open_key
        from mmaprobe.reports.datasheet import KnownProperty
        from mmaprobe.smtmodel.base.errors import ParameterError
        from mmaprobe.smtmodel.inputs.admitted import Inputs

        try:
            problems = problems_of(wanted, model, Inputs())
        except ParameterError as error:  # the property cannot be asked of this unit
            return KnownProperty("none", why=str(error))
        key = open_key(problems, wanted)
        known = self._known(wanted, model, problems, key)
        if known is not None and (known.verdict != "unknown" or known.limit >= self.limit):
            self.known += 1
        elif self.asks:
            known = self.answers[key] = self._ask(wanted, model, problems, key)
        else:
            self.left += 1
        self.unknown += known is None or known.verdict == "unknown"
        return known

    def _known(self, wanted: str, model: Model, problems: list[Problem], key: str) -> KnownProperty | None:
        """The answer that follows from the solvers' answers in the store; else the record that the question was left
        open."""
        from mmaprobe.reports.datasheet import KnownProperty

        if key in self.answers:
            return self.answers[key]
        store = self.options.store
        if store is None:
            return None
        known = self._from_proofs(wanted, model, problems, stored=True)
        left = store.find_result(key)
        if known.verdict == "unknown" or (left is None and not _is_certain(known)):
            self.answers[key] = None if left is None else KnownProperty(**left)
        else:
            self.answers[key] = known
        return self.answers[key]

    def _ask(self, wanted: str, model: Model, problems: list[Problem], key: str) -> KnownProperty:
        self.asked += 1
        started = time.monotonic()
        known = self._from_proofs(wanted, model, problems)
        known = replace(known, limit=self.limit, seconds=round(time.monotonic() - started, 1))
        if self.options.store is not None and not _is_certain(known):
            left = {"verdict": "unknown", "limit": self.limit, "seconds": known.seconds}
            self.options.store.record_result(key, left)
        return known

    def _from_proofs(self, wanted: str, model: Model, problems: list[Problem], stored: bool = False) -> KnownProperty:
        """The verdict of proofs on a property; `stored`: by answers in the store alone. Raises KeyboardInterrupt where
        a proof was interrupted."""
        from mmaprobe.queries.properties.proving import proofs_of, verdict_on
        from mmaprobe.queries.tactics.records import confirmations_of, engines_of
        from mmaprobe.reports.datasheet import KnownProperty

        self.options.progress(Wait(f"{wanted}: {model.reference}", self.limit))
        proofs = proofs_of(problems, replace(self.options, stored=stored), True)
        if any(proof.interrupted for proof in proofs):
            raise KeyboardInterrupt
        engines = engines_of(proofs)
        seconds = round(sum(proof.seconds for proof in proofs), 3)
        return KnownProperty(verdict_on(wanted, proofs), engines, confirmations_of(proofs), seconds=seconds)


def _is_certain(known: KnownProperty) -> bool:
    """Whether more time for solvers changes nothing: the verdict is a difference, or a proof that a second engine
    confirmed or that needed no engine."""
    proved = known.verdict == "equal" and (known.confirmed_by or not known.engines)
    return known.verdict == "different" or bool(proved)
