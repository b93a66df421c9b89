"""One change at a time to the provers: is a false statement proved, and who notices?

Each change is a piece of text of queries/ that is replaced in a copy of that package: of a tactic, a rule's side
conditions, what is cut out of a lemma, a goal, a rule of rewriting. Under it the provers are asked about statements of
benchmarks/statements.py, of which the truth is known by all their inputs: 300 false ones and 100 true ones, those first
that call the function changed and are soon answered. The provers look at no example, so that nothing but their own
reasoning stands between a false statement and "proved". The changes are data, benchmarks/sabotage.yaml.

What comes of a change is kept in a file of lines, benchmarks/sabotage.jsonl; a run goes on with changes that are not
there.

`python -m benchmarks.sabotage [--only TEXT] [--statements FILE] [--seconds 15] [-o FILE]`
"""

from __future__ import annotations

import argparse
import ast
import json
import os
import pickle
import random
import shlex
import shutil
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, fields, replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from unittest.mock import patch

import yaml

from benchmarks import plan_statements
from benchmarks.pages import keep_row, read_rows, table_head
from benchmarks.statements import (
    SHAPES,
    Statement,
    blind,
    bound_theorem,
    judged,
    make,
    passes,
    problems_about,
    proofs_about,
    random_unit,
)
from mmaprobe.queries.certificates import logged
from mmaprobe.queries.certificates.asked import required_goals
from mmaprobe.queries.certificates.certificate import Leaf
from mmaprobe.queries.certificates.names import LOG, TERMS
from mmaprobe.queries.kernel.equality.rewriting import SameResults
from mmaprobe.queries.kernel.lemmas import Lemma, exhausted
from mmaprobe.queries.kernel.log import Replay
from mmaprobe.queries.kernel.properties.opposite import Turns
from mmaprobe.queries.kernel.properties.rises import Rises
from mmaprobe.queries.kernel.theorem import RuleError, Theorem
from mmaprobe.queries.plans import equal as plans_equal
from mmaprobe.queries.plans.certify import certify_plans
from mmaprobe.queries.properties.bound import bound_of, error_of
from mmaprobe.queries.properties.bound_certificate import certify_unit_bounds
from mmaprobe.queries.properties.certify import certify_proofs
from mmaprobe.queries.properties.forms import by_rewriting
from mmaprobe.queries.properties.proving import verdict_of
from mmaprobe.queries.search.contradiction import check_problems
from mmaprobe.queries.search.distinguish import Options
from mmaprobe.queries.solvers.asking import Engines, _certified
from mmaprobe.queries.tactics.normalising import Normaliser, normal_form
from mmaprobe.queries.tactics.records import Proof
from mmaprobe.queries.tactics.settling import Settled
from mmaprobe.smtmodel.base.errors import FaultError, MmaprobeError
from mmaprobe.smtmodel.base.jsontext import parse_json
from mmaprobe.smtmodel.evaluate.model import Model
from mmaprobe.smtmodel.units.unit import Unit
from tests.said import believed
from tests.second.proved import faults
from tests.second.tree import RULES

ROOT = Path(__file__).parents[1]
UNCHANGED = Path(__file__).resolve().parents[1]  # in a changed copy this file is a link
CHANGES = Path(__file__).with_suffix(".yaml")
KEPT = Path(__file__).with_suffix(".jsonl")
FALSE, TRUE = 300, 100  # statements
SMALL = 1 << 14  # inputs of one, at most
ANSWER = 10.0  # seconds for the answer about one statement
LEAST, MOST = 4, 40  # false statements for a change, however long they take, and at most
CHECKED = 3  # of the false statements that are proved, those whose log is replayed
GOALS, ANSWERED = "goals.pickle", "answered.json"  # beside a log: what it states, and the queries that were answered
#: changes to these files of queries/kernel are also tried on the bounds of the units of tests/proofs/test_bounds.py, or
#: on the normal forms of random units
BOUNDS, FORMS = ("enclosures", "forms", "induction"), ("rewriting", "ranges", "effects", "normalising")
UNITS = 80  # random units
#: and to these, on random statements about plans
PLANNED = ("addends", "merged", "plan_units", "plans", "stages", "equal")
PLANS = 80  # of them
CHECKERS = ("certificates", "checking", "second")  # packages that no prover calls: their tests are run
Function = tuple[str, str]  # file, and the qualified name of a function
HEAD = """# Sabotage: changes to the provers

`python -m benchmarks.sabotage -o benchmarks/sabotage.md`: one change at a time to queries/, under which false and true
statements about small units (benchmarks/statements.py; all inputs evaluated) are put to the provers, which look at no
example.

- *false*: false statements that were asked; *proved*: those called true. Of these, who notices: *evaluation*, the
  inputs that are evaluated before a verdict is printed; *replay*, the kernel without the change, which in a process of
  its own calls every rule of the log again (of three statements; queries that it does not find among those answered
  are asked again); *oracle*, the second statement of the rules in tests/second, which looks at bounds, signs, rises and
  normal forms. *check*, in rows that were measured before certificates were logs: no certificate could be written, or
  its check refused it.
- *true*: true statements asked; *lost*: those not proved any more; *errors*: answers that are none.
- A change of a rule of error bounds is also tried on the units of tests/proofs/test_bounds.py: *below* is how many
  bounds come out below the truth, *refused* how many of all the oracle refuses.
- A change of a rule of rewriting is also tried on normal forms of random units (*forms*); *changed* are those that
  compute something else, *refused* again what the oracle refuses.
- A change of a rule of equal plans is tried on random statements about two plans as well
  (benchmarks/plan_statements.py), of which three logs are replayed.
- Where *false* and *true* are empty, no statement meets the change, or none was asked and the tests alone were run.
- *missed*: what nobody notices; *tests*: whether the tests of what was changed fail then, or
  where no statement meets the change, as in the checker of certificates.
"""


@dataclass(frozen=True)
class Known:
    """A statement, what is said of it, in how many seconds, and the functions of queries/ that are called."""

    statement: Statement
    verdict: str
    seconds: float
    calls: frozenset[Function]


@dataclass
class Found:
    """What comes of a change."""

    change: dict[str, str]
    counts: Counter[str] = field(default_factory=Counter)
    missed: list[str] = field(default_factory=list)


# -- the statements


def collected(path: Path, report: Callable[[str], None]) -> list[Known]:
    """The statements of a file, made as far as they are missing."""
    known: list[Known] = pickle.loads(path.read_bytes()) if path.exists() else []
    wanted = {False: FALSE, True: TRUE}
    number = max((one.statement.number for one in known), default=4999) + 1
    while any((have := Counter(one.statement.true for one in known))[true] < wanted[true] for true in wanted):
        true = have[True] * FALSE < have[False] * TRUE
        found = _known(number, true)
        number += 1
        if found is not None:
            known.append(found)
            path.write_bytes(pickle.dumps(known))
            report(f"{have[False]} false and {have[True]} true statements")
    return known


def _known(number: int, true: bool) -> Known | None:
    """A statement that is as true as wanted, if it is answered in time."""
    try:
        statement = make(number, true, SMALL)
    except ValueError:
        return None
    if statement.true != true:
        return None
    calls: set[Any] = set()

    def called(frame: Any, event: str, argument: object) -> None:
        calls.add(frame.f_code)

    start = time.monotonic()
    sys.settrace(called)
    try:
        verdict = answer(statement)[0]
    finally:
        sys.settrace(None)
    seconds = time.monotonic() - start
    if verdict == "unknown" or verdict.startswith("error") or (verdict == "equal") != true:
        if verdict == "equal":
            raise SystemExit(f"a false statement is proved without any change: {number}: {statement.text()}")
        if true or seconds > ANSWER:
            return None
    places = {(Path(code.co_filename), code.co_qualname.partition(".<")[0]) for code in calls}
    queries = ROOT / "mmaprobe" / "queries"
    own = {(str(file.relative_to(ROOT / "mmaprobe")), name) for file, name in places if file.is_relative_to(queries)}
    return Known(statement, verdict, seconds, frozenset(own))


def answer(statement: Statement) -> tuple[str, list[Proof]]:
    """What the provers say that look at no example: "error ..." for what nobody foresaw."""
    options = Options(timeout=ANSWER)
    with blind():
        try:
            if statement.wanted != "error-bound":
                proofs = proofs_about(statement, options)
                if verdict_of(proofs) != "equal" and statement.wanted == "equal":
                    (problem,) = problems_about(statement)
                    found = by_rewriting(problem, options)  # which is asked where all else leaves it open
                    proofs = proofs if found is None else [found]
                return verdict_of(proofs), proofs
            assert statement.claimed is not None
            return "equal" if passes(bound_theorem(statement, believed), statement.claimed) else "open", []
        except RuleError:
            return "unknown", []
        except MmaprobeError as error:
            return {2: "refused", 3: "unknown", 4: "fault"}[error.exit_code], []
        except Exception as error:  # a change may break anything
            return f"error {type(error).__name__}", []


# -- a change


def changes() -> list[dict[str, str]]:
    found: list[dict[str, str]] = yaml.safe_load(CHANGES.read_text(encoding="utf-8"))
    return found


def _function_at(file: str, line: int) -> Function | None:
    """The function that a line of a file is in, the outermost one that is no class."""
    nodes, name = ast.parse((ROOT / file).read_text(encoding="utf-8")).body, ""
    while True:
        around = next((node for node in nodes if isinstance(node, (ast.FunctionDef, ast.ClassDef))
                       and node.lineno <= line <= (node.end_lineno or 0)), None)  # fmt: skip
        if around is None:
            return None
        if isinstance(around, ast.FunctionDef):
            return file, name + around.name
        nodes, name = around.body, f"{name}{around.name}."


def concerned(change: dict[str, str], known: Sequence[Known]) -> list[int]:
    """The statements that call the function changed, or where none does, or it is none, one of its file; those that
    are soon answered first."""
    source = (ROOT / change["file"]).read_text(encoding="utf-8")
    line = source[: source.index(change["old"])].count("\n") + 1
    place = _function_at(change["file"], line)
    found = [number for number, one in enumerate(known) if place in one.calls]
    found = found or [
        number for number, one in enumerate(known) if any(file == change["file"] for file, _ in one.calls)
    ]
    return sorted(found, key=lambda number: known[number].seconds)


def chosen(change: dict[str, str], known: Sequence[Known], seconds: float) -> list[int]:
    """Of those, as many as are answered in so many seconds, a sixth of them for true ones; of every property."""
    numbers, taken = concerned(change, known), []
    for true, share, least in ((False, seconds, LEAST), (True, seconds / 5, 1)):
        own = [number for number in numbers if known[number].statement.true == true]
        turns: Counter[str] = Counter()
        ranked = []
        for number in own:
            ranked.append((turns[known[number].statement.wanted], number))
            turns[known[number].statement.wanted] += 1
        spent, count = 0.0, 0
        for _, number in sorted(ranked):
            if (spent + known[number].seconds > share and count >= least) or count >= MOST:
                break
            spent, count = spent + known[number].seconds, count + 1
            taken.append(number)
    return taken


def run(change: dict[str, str], known: Path, numbers: Sequence[int], seconds: float) -> Found:
    """The statements under a change."""
    source = (ROOT / change["file"]).read_text(encoding="utf-8")
    if source.count(change["old"]) != 1:
        raise SystemExit(f"{change['file']}: {change['old']!r} is there {source.count(change['old'])} times, not once")
    found = Found(change)
    with TemporaryDirectory() as folder:
        copy = Path(folder)
        package = Path(change["file"]).parts[0]
        for name in (package, "mmaprobe"):  # in which links lead to the packages
            shutil.copytree(ROOT / name, copy / name, symlinks=True)
        for path in ROOT.iterdir():
            if path.name not in (package, "mmaprobe") and not path.name.startswith("."):
                (copy / path.name).symlink_to(path)
        (copy / change["file"]).write_text(source.replace(change["old"], change["new"]), encoding="utf-8")
        environment = os.environ | {"PYTHONPATH": folder}
        command = [sys.executable, "-P", "-m", "benchmarks.sabotage", "--work", str(known), *map(str, numbers)]
        file = Path(change["file"])
        proving = file.parent.parent.name == "queries"
        command += ["--bounds"] * (proving and file.stem in BOUNDS)
        command += ["--forms"] * (proving and file.stem in FORMS)
        command += ["--plans"] * (proving and file.stem in PLANNED)
        try:
            done = subprocess.run(command, cwd=copy, timeout=60 + 8 * seconds, capture_output=True, text=True,
                                  env=environment)  # fmt: skip
            lines, failed = done.stdout.splitlines(), done.stderr.strip().splitlines() if done.returncode else []
        except subprocess.TimeoutExpired as error:
            lines, failed = (error.stdout or b"").decode().splitlines(), []
            found.counts["time"] += 1
        for line in lines:
            record = json.loads(line)
            found.counts.update(record["counts"])
            found.missed += record["missed"]
        if failed:
            found.counts["broken"] += 1
        unmet = not numbers or Path(change["file"]).parent.name in CHECKERS
        if change.get("tests") and (found.missed or unmet):
            pytest = [sys.executable, "-P", "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", "-p", "no:xdist"]
            tests = subprocess.run([*pytest, *shlex.split(change["tests"])], cwd=copy, capture_output=True, text=True,
                                   env=environment, timeout=600)  # fmt: skip
            found.counts["tests"] += tests.returncode in (1, 2)  # 2: they cannot even be read
            found.counts["tested"] += 1
    return found


# -- what runs in the changed copy


def work(path: Path, numbers: Sequence[int], bounds: bool, forms: bool, plans: bool) -> None:
    known: list[Known] = pickle.loads(path.read_bytes())
    checked = 0
    for number in numbers:
        statement = known[number].statement
        verdict, proofs = answer(statement)
        counts, missed = Counter({"true" if statement.true else "false": 1}), []
        if verdict.startswith("error") or verdict in ("fault", "refused"):
            counts["errors"] += 1
        if statement.true:
            counts["lost"] += verdict != "equal"
        elif verdict == "equal":
            counts["proved"] += 1
            checked += 1
            who = noticed(statement, proofs, checked <= CHECKED)
            counts.update(who)
            if not who:
                missed.append(f"{statement.wanted} {statement.number}")
        print(json.dumps({"counts": counts, "missed": missed}), flush=True)
    if bounds:
        _bounds()
    if forms:
        _forms()
    if plans:
        _plans()


def noticed(statement: Statement, proofs: list[Proof], replays: bool) -> list[str]:
    """Who notices that a false statement was proved."""
    if statement.wanted == "error-bound":
        theorem, model = bound_theorem(statement, believed), statement.models[0]
        found = ["oracle"] * bool(faults(model.unit, [theorem]))
        return found + ["replay"] * ((replays or not found) and not are_replayed(model, [theorem]))
    theorems = [proof.theorem for proof in proofs if proof.theorem is not None]
    found = ["oracle"] * any(faults(unit, own) for unit, own in _of_units(theorems))
    try:
        check_problems(problems_about(statement))
    except FaultError:
        found.append("evaluation")
    write = partial(certify_proofs, statement.wanted, proofs)
    return found + ["replay"] * ((replays or not found) and not is_replayed(write))


def _of_units(theorems: Sequence[Theorem]) -> Iterator[tuple[Unit, list[Theorem]]]:
    """The theorems about whole units that others rest on, of which the oracle has statements."""
    for one in dict.fromkeys(below for theorem in theorems for below in theorem.walk()):
        goal: Any = one.goal
        if one.rule in RULES and (type(goal) in (Rises, SameResults) or (
                type(goal) is Turns and goal.turns and goal.node == goal.unit.result)):  # fmt: skip
            yield goal.unit, [one]


def are_replayed(model: Model, theorems: Sequence[Theorem]) -> bool:
    """Whether the log of theorems about a unit is replayed, and states the same."""
    goals = [{one.name: getattr(theorem.goal, one.name) for one in fields(theorem.goal) if one.name != "unit"}
             for theorem in theorems]  # type: ignore[arg-type]  # fmt: skip
    return is_replayed(partial(certify_unit_bounds, theorems, model), goals)


def is_replayed(write: Callable[[Path, Options], object], goals: object = None) -> bool:
    """Whether the kernel without the change takes the log of a certificate, whose proofs are not written."""
    with TemporaryDirectory() as name, patch.object(logged, "write_certificate", _log_alone):
        folder = Path(name)
        try:
            write(folder, Options(timeout=20.0))
        except Exception:  # no certificate, or what it is made of is broken
            return False
        if goals is not None:
            (folder / GOALS).write_bytes(pickle.dumps(goals))
        command = [sys.executable, "-P", "-m", "benchmarks.sabotage", "--replay", name]
        environment = os.environ | {"PYTHONPATH": str(UNCHANGED)}
        return subprocess.run(command, cwd=UNCHANGED, env=environment, capture_output=True).returncode == 0


def _log_alone(directory: Path, _: Options, files: Mapping[str, str], leaves: Sequence[Leaf]) -> dict[str, Any]:
    """Write the files of a certificate, and the queries that were answered, in place of their proofs."""
    for name, text in files.items():
        (directory / name).write_text(text, encoding="utf-8")
    texts = [leaf.query.text for leaf in leaves if leaf.whole is None]
    (directory / ANSWERED).write_text(json.dumps(texts), encoding="utf-8")
    return {}


def replay_log(folder: Path) -> bool:
    """Whether the log in a folder states what the files beside it ask, and the goals that are there."""
    texts = {path.name: path.read_text(encoding="utf-8") for path in folder.iterdir() if path.name != GOALS}
    about = required_goals(texts)
    engines = Engines(heard=_certified(json.loads(texts[ANSWERED])), seconds=20.0)
    try:
        goals = [one.goal for one in Replay(parse_json(texts[LOG]), about.subject, engines, texts.get(TERMS, "")).run()]
    except RuleError:
        return False
    if not (folder / GOALS).exists():
        return about.accepts(goals)
    wanted = pickle.loads((folder / GOALS).read_bytes())
    found: list[Any] = list(goals)  # of a unit
    if any(goal.unit not in about.subject.units for goal in found):
        return False
    return [{name: getattr(goal, name) for name in own} for goal, own in zip(found, wanted, strict=True)] == wanted


def _bounds() -> None:
    """The bounds of the units of tests/proofs/test_bounds.py, against all their inputs, and what is said of them."""
    from tests.proofs.test_bounds import UNITS, small, worst
    from tests.second.proved import bounds

    checked = 0
    for name, parts in UNITS.items():
        model, counts, missed = Model(name, small(*parts).unit), Counter[str](), []
        try:
            below = worst(model, error_of(bound_of(model.unit, believed)))[0] > 0
            refused = bool(faults(model.unit, list(bounds(model.unit))))
            counts["below"], counts["refused"] = int(below), int(refused)
            checked += below
            if below and (checked <= CHECKED or not refused):
                replayed = are_replayed(model, [bound_of(model.unit, believed)])
                counts["replay"] += not replayed
                missed = [name] * (replayed and not refused)
        except Exception:
            counts["no bound"] += 1
        print(json.dumps({"counts": counts, "missed": missed}), flush=True)


class _Exhausting(Settled):
    """Lemmas by all inputs of their bits, without an engine."""

    def _settled(self, goal: Lemma) -> Theorem | None:
        with suppress(RuleError):
            return exhausted(goal)
        return None


def _forms() -> None:
    """Normal forms of random units, against all inputs."""
    rng, normaliser = random.Random("normal forms"), Normaliser(Options())
    normaliser.settle = _Exhausting(Options(), confirmed=False, needed=False)
    for place in range(UNITS):
        unit = random_unit(rng, rng.choice(SHAPES[:3]), "equal")
        counts, missed = Counter[str](), []
        try:
            proof = normaliser.proof(unit)
            other = replace(unit, result=normal_form(unit, proof))
            if other.result != unit.result:
                statement = Statement(place, "equal", (Model("unit", unit), Model("form", other)))
                found = judged(statement)
                counts["forms"] += 1
                assert proof is not None
                refused = bool(faults(unit, [proof]))
                counts["refused"] += refused
                if found is not None and found.broken:
                    counts["changed"] += 1
                    replayed = not refused and are_replayed(Model("unit", unit), [proof])
                    counts["replay"] += not (refused or replayed)
                    try:
                        check_problems(problems_about(statement))
                        missed += [f"normal form of unit {place}"] * replayed
                    except FaultError:
                        counts["evaluation"] += 1
        except Exception:
            counts["errors"] += 1
        print(json.dumps({"counts": counts, "missed": missed}), flush=True)


def _plans() -> None:
    """Statements about two plans, put to a prover that looks at no product, and held against matrices."""
    checked = 0
    for number in range(PLANS):
        stated = plan_statements.statement(number)
        counts, missed = Counter[str](), []
        try:
            sides = plan_statements.plan(stated.left), plan_statements.plan(stated.right)
            with (patch.object(plans_equal._Prover, "_check", lambda self: None),
                  patch.object(plans_equal._Prover, "_differ_on_samples", lambda self, length: False),
                  patch.object(plans_equal._Prover, "_differ_by_solver", lambda self, length: False)):  # fmt: skip
                proof = plans_equal.prove_plans(*sides, stated.length, Options(timeout=2.0), confirm=False)
            multiples = proof.multiples
            lengths = plan_statements.lengths_of(stated, sides, multiples)
            true = all(plan_statements.agree(*sides, length, number) for length in lengths)
            counts["true" if true else "false"] += 1
            if proof.verdict == "equal" and not true:
                counts["proved"] += 1
                who = ["evaluation"] * (plan_statements.check(stated, 2.0, number).verdict == "fault")
                checked += 1
                who += ["replay"] * ((checked <= CHECKED or not who) and not is_replayed(partial(certify_plans, proof)))
                counts.update(who)
                missed = [] if who else [f"plans {number}"]
        except MmaprobeError:
            continue
        except Exception:
            counts["errors"] += 1
        print(json.dumps({"counts": counts, "missed": missed}), flush=True)


# -- the table

COLUMNS = ("false", "proved", "evaluation", "replay", "oracle", "check", "true", "lost", "errors", "below", "refused",
           "forms", "changed")  # fmt: skip


def row_of(found: Found) -> str:
    change = found.change
    where = f"{Path(change['file']).stem}: `{_flat(change['old'])}` becomes `{_flat(change['new'])}`"
    tests = "fail" if found.counts["tests"] else "pass" if found.counts["tested"] else ""
    cells = [where.replace("|", chr(92) + "|"), *(found.counts[name] or "" for name in COLUMNS), tests]
    note = "all" if found.counts["broken"] else "out of time" if found.counts["time"] else ""
    return f"| {' | '.join(map(str, cells))} | {', '.join(found.missed) or note} |"


def _flat(text: str) -> str:
    return " ".join(text.split())


def kept() -> list[Found]:
    """What came of changes, in their order; of changes that are no longer made nothing."""
    found = {}
    for record in read_rows(KEPT):
        found[tuple(record["change"])] = Counter(record["counts"]), record["missed"]
    return [Found(change, *found[key_of(change)]) for change in changes() if key_of(change) in found]


def key_of(change: dict[str, str]) -> tuple[str, ...]:
    return change["file"], change["old"], change["new"]


def campaign(only: str, path: Path, seconds: float) -> None:
    """Run the changes of which nothing is kept."""
    known: list[Known] = pickle.loads(path.read_bytes())
    done = {key_of(found.change) for found in kept()}
    every = changes()
    random.Random("order").shuffle(every)  # so that a part of them says something of all
    for change in every:
        if only in change["file"] + change["old"] and key_of(change) not in done:
            found = run(change, path, chosen(change, known, seconds), seconds)
            keep_row({"change": key_of(change), "counts": found.counts, "missed": found.missed}, KEPT)
            print(row_of(found), flush=True)


def page(every: Sequence[Found]) -> str:
    """The page of what is kept."""
    lines = table_head("change", *COLUMNS, "tests", "missed")
    totals: Counter[str] = Counter()
    for found in every:
        lines.append(row_of(found))
        totals.update({"proving": bool(found.counts["proved"] or found.counts["below"]), "missing": bool(found.missed)})
        totals.update({"by tests": bool(found.missed and found.counts["tests"])})
        totals.update({"tested": bool(found.counts["tested"] and not found.missed)})
        totals.update({"failing": bool(found.counts["tests"] and not found.missed)})
        totals.update({name: found.counts[name] for name in ("false", "true")})
    summary = (
        f"{len(every)} changes of {len(changes())}, of {totals['false']} false and {totals['true']} true statements in "
        f"all; under {totals['proving']} a false statement is proved; of {totals['missing']} one is missed by "
        f"all of these, of which {totals['by tests']} fail their tests. Of {totals['tested']} others whose "
        f"tests were run, {totals['failing']} fail them."
    )
    return "\n".join([HEAD, summary, "", *lines]) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="")
    parser.add_argument("--statements", type=Path, default=Path("sabotage-statements.pickle"))
    parser.add_argument("--seconds", type=float, default=15.0, help="of false statements, for each change")
    parser.add_argument("--collect", action="store_true", help="make the statements, and no more")
    parser.add_argument("--work", nargs="+", help=argparse.SUPPRESS)
    parser.add_argument("--replay", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--bounds", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--forms", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--plans", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("-o", "--output", type=Path)
    given = parser.parse_args()
    if given.replay is not None:
        sys.exit(not replay_log(given.replay))
    if given.work:
        work(Path(given.work[0]), list(map(int, given.work[1:])), given.bounds, given.forms, given.plans)
        return
    collected(given.statements, lambda text: print(text, file=sys.stderr, flush=True))
    if given.collect:
        return
    campaign(given.only, given.statements.resolve(), given.seconds)
    if given.output is not None:
        given.output.write_text(page(kept()), encoding="utf-8")


if __name__ == "__main__":
    from benchmarks import sabotage  # statements are kept as objects of this module, by its name

    sabotage.main()
