"""Certificates: proofs are found, composed, checked by two checkers, and rejected when anything is wrong with them."""

from __future__ import annotations

import json
import os
import random
import shutil
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from pysat.solvers import Solver
from pysmt.environment import Environment
from pysmt.fnode import FNode
from pysmt.typing import BVType

from mmaprobe.queries.certificates.bitblast import Cnf
from mmaprobe.queries.certificates.certificate import Leaf, whole_of_query, write_certificate
from mmaprobe.queries.certificates.checker import DRAT_TRIM, Check, check_files
from mmaprobe.queries.certificates.reading import digest
from mmaprobe.queries.certificates.sat import SOLVER, CertificateError, OutOfTimeError, SatSolver
from mmaprobe.queries.certificates.whole import WholeLemma, WholeProof
from mmaprobe.queries.checking.finding import Finding
from mmaprobe.queries.checking.folder import check_folder
from mmaprobe.queries.kernel.questions.problem import Problem, symbolic_operands
from mmaprobe.queries.search.distinguish import Options, build_query
from mmaprobe.queries.solvers.contract import DEFAULT_MEMORY
from mmaprobe.queries.solvers.smtlib import Query
from mmaprobe.smtmodel.base import libraries
from mmaprobe.smtmodel.base.errors import InputError
from mmaprobe.smtmodel.carriers.terms import TermCarrier
from mmaprobe.smtmodel.inputs.admitted import Inputs
from mmaprobe.smtmodel.nodes.trace import Name, Part, Stage
from mmaprobe.smtmodel.tables.reference import parse_reference
from tests.certificates import slow_checker

pytestmark = pytest.mark.solvers

LIMIT = Options(timeout=60.0)
PUBLIC = shutil.which(DRAT_TRIM)
VOLTA = "volta/mma/m8n8k4.f32.f16.f16.f32"

needs_compiler = pytest.mark.skipif(libraries.compiler() is None, reason="no C compiler")


@pytest.fixture(autouse=True)
def own_checker(monkeypatch: pytest.MonkeyPatch) -> None:
    """No drat-trim, whatever is installed here: tests that ask one put it on the path."""
    folders = os.environ["PATH"].split(os.pathsep)
    monkeypatch.setenv("PATH", os.pathsep.join(one for one in folders if not (Path(one) / DRAT_TRIM).exists()))


def check(cnf: str, proof: str, timeout: float = 60.0) -> Check:
    """Check a proof (textual DRAT) against a formula (DIMACS)."""
    with TemporaryDirectory() as folder:
        paths = Path(folder) / "formula.cnf", Path(folder) / "proof.drat"
        for path, text in zip(paths, (cnf, proof), strict=True):
            path.write_text(text, encoding="ascii")
        return check_files(*paths, timeout)


def refute(cnf: Cnf, solver: str = SOLVER) -> str | None:
    """A DRAT proof that a formula is unsatisfiable; None if it is satisfiable."""
    with SatSolver(solver, DEFAULT_MEMORY) as process:
        steps = process.refute(cnf.clauses, 30.0)
    if steps is None:
        return None
    return "".join("d " * deletion + " ".join(map(str, (*clause, 0))) + "\n" for deletion, clause in steps)


def faults(cnf: str, drat: str) -> str:
    """The fault that check.c finds, and the oracle of it; drat-trim, where it is installed, whether there is one."""
    fault = check(cnf, drat).fault
    if drat.splitlines()[-1:] == ["0"]:
        assert fault == slow_checker.fault(cnf, drat)
    assert fault or drat.splitlines()[-1:] == ["0"]
    if PUBLIC is not None and not (fault.startswith("the formula") or "\n0\n" in cnf):  # which ends it otherwise
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("PATH", f"{Path(PUBLIC).parent}{os.pathsep}{os.environ['PATH']}")
            found = check(cnf, drat)
        assert (found.checker, found.complete) == (DRAT_TRIM, True), found
        assert found.valid or fault  # it looks at no step on which the end does not rest
    return fault


def random_cnf(rng: random.Random, ratio: float = 5.0) -> Cnf:
    count = rng.choice([3, 5, 8, 20, 40])
    clauses = [
        tuple(rng.choice((1, -1)) * x for x in rng.sample(range(1, count + 1), min(3, count)))
        for _ in range(int(count * ratio) + 4)
    ]
    return Cnf(count, tuple(clauses))


def mutated(rng: random.Random, proof: str) -> str:
    """A proof with one literal flipped, one line left out, or two lines exchanged."""
    lines = [line.split() for line in proof.splitlines()]
    place = rng.randrange(len(lines))
    literals = [k for k, word in enumerate(lines[place]) if word not in ("d", "0")]
    kind = rng.randrange(3)
    if kind == 0 and literals:
        flipped = rng.choice(literals)
        lines[place][flipped] = str(-int(lines[place][flipped]))
    elif kind == 1:
        del lines[place]
    else:
        other = rng.randrange(len(lines))
        lines[place], lines[other] = lines[other], lines[place]
    return "".join(" ".join(line) + "\n" for line in lines)


@needs_compiler
def test_checkers_agree_on_valid_and_mutated_proofs() -> None:
    rng = random.Random(1)
    seen = {True: 0, False: 0}
    for solver in ("cadical195", "glucose4"):
        for _ in range(8):
            cnf = random_cnf(rng)
            proof = refute(cnf, solver)
            if proof is None:
                continue
            assert faults(cnf.text, proof) == ""
            for _ in range(4):
                seen[not faults(cnf.text, mutated(rng, proof))] += 1
    assert min(seen.values()) >= 5


@needs_compiler
def test_checkers_accept_only_what_follows() -> None:
    """Random short clauses as proofs of satisfiable formulas: the checker must reject every one."""
    rng = random.Random(2)
    for _ in range(12):
        cnf = random_cnf(rng, ratio=1.5)
        with Solver(name="cadical195", bootstrap_with=[list(clause) for clause in cnf.clauses]) as engine:
            if not engine.solve():
                continue
        lines = []
        for _ in range(15):
            clause = [rng.choice((1, -1)) * rng.randint(1, cnf.variables + 2) for _ in range(rng.randint(1, 3))]
            lines.append(rng.choice(["", "", "d "]) + " ".join(map(str, (*clause, 0))))
            kept = "\n".join(lines) + "\n"
            if faults(cnf.text, kept + "0\n") == f"step {len(lines)}: the clause does not follow":
                lines.pop()  # so that many steps are accepted
        assert faults(cnf.text, "\n".join([*lines, "0", ""])) != ""


@needs_compiler
def test_rat_steps() -> None:
    square = "p cnf 2 4\n1 2 0\n-1 2 0\n1 -2 0\n-1 -2 0\n"
    defined = "3 -1 0\n3 -2 0\n-3 1 2 0\n"  # 3 is defined as 1 or 2
    assert faults(square, defined + "3 0\n1 0\n0\n") == ""
    assert faults("p cnf 2 1\n1 2 0\n", defined) == "the proof does not end in the empty clause"
    assert faults(square, "3 0\n-3 0\n0\n") == "step 2: the clause does not follow"
    assert faults("p cnf 3 2\n1 2 0\n-1 3 0\n", "1 3 0\n0\n") == "step 1: the clause does not follow"


@needs_compiler
def test_deleting_the_reason_of_a_unit_is_ignored() -> None:
    formula = "p cnf 3 4\n1 0\n-1 2 0\n-2 3 0\n-2 -3 0\n"
    assert faults(formula, "d 1 0\nd 2 -1 0\n0\n") == ""
    loose = "p cnf 2 4\n1 2 0\n-1 2 0\n1 -2 0\n-1 -2 0\n"
    assert faults(loose, "d 2 1 0\n2 0\n0\n") == "step 2: the clause does not follow"


@needs_compiler
@pytest.mark.parametrize(
    ("formula", "proof", "fault"),
    [
        ("p cnf 1 2\n1 0\n-1 0\n", "", "the proof does not end in the empty clause"),
        ("p cnf 1 2\n1 0\n-1 0\n", "1 0\n0\n", ""),
        ("p cnf 1 2\n1 0\n-1 0\n", "1 x 0\n0\n", "step 1: not a clause"),
        ("p cnf 1 2\n1 0\n-1 0\n", "1 0\n1", "step 2: not a clause"),
        ("p cnf 1 3\n1 0\n-1 0\n", "0\n", "the formula cannot be read"),
        ("p cnf 1 1\n2 0\n", "0\n", "the formula cannot be read"),
        ("", "0\n", "the formula cannot be read"),
        ("p cnf 1 1\n0\n", "0\n", ""),
    ],
)
def test_texts(formula: str, proof: str, fault: str) -> None:
    assert faults(formula, proof) == fault


@needs_compiler
def test_a_proof_belongs_to_its_formula() -> None:
    signs = list(product((1, -1), repeat=3))
    cnf = Cnf(3, tuple(tuple(s * x for s, x in zip(row, (1, 2, 3), strict=True)) for row in signs))
    proof = refute(cnf)
    assert proof is not None
    assert faults(cnf.text, proof) == ""
    weaker = Cnf(3, cnf.clauses[:-1])
    assert faults(weaker.text, proof) != ""
    assert refute(weaker) is None


def pigeons(holes: int) -> Cnf:
    names = {pair: k for k, pair in enumerate(product(range(holes + 1), range(holes)), 1)}
    clauses = [tuple(names[pigeon, hole] for hole in range(holes)) for pigeon in range(holes + 1)]
    for hole, first, second in product(range(holes), range(holes + 1), range(holes + 1)):
        if first < second:
            clauses.append((-names[first, hole], -names[second, hole]))
    return Cnf(len(names), tuple(clauses))


def test_time_runs_out_and_the_solver_can_be_used_again() -> None:
    with SatSolver() as solver:
        with pytest.raises(OutOfTimeError, match="time ran out") as caught:
            solver.refute(pigeons(12).clauses, 0.5)
        assert caught.value.exit_code == 3
        assert solver.refute(pigeons(3).clauses, 30.0) is not None


def carry_problem() -> Problem:
    models = [parse_reference(f"{VOLTA}@length=2,product=normalised,carry_bits={bits}") for bits in (2, 3)]
    return Problem(*models, inputs=Inputs(finite=True, nonnegative=True))


def carry_question() -> tuple[list[FNode], FNode, list[WholeLemma]]:
    """Carry bits as the staged proof asks about them: the sums first."""
    problem = carry_problem()
    carrier = TermCarrier(maximum="relational")
    operands = symbolic_operands(problem, carrier)
    left, right = problem.evaluate(operands)
    names = [
        *(Name("", stage) for stage in (Stage.MAXIMUM, Stage.SUM)),
        *(Name("", Stage.SPECIAL, part=part) for part in (Part.NAN, Part.INFINITE)),
    ]
    cuts = [signal.value.node for signal in left.trace] + carrier.addends
    lemmas = [WholeLemma(left.trace[name].value.node, right.trace[name].value.node, cuts) for name in names]
    assertions = [problem.admits(operands).node, *carrier.definitions]
    return assertions, problem.differ(left.d, right.d).node, lemmas


@pytest.fixture(scope="module")
def carry() -> WholeProof:
    assertions, goal, lemmas = carry_question()
    return WholeProof(assertions, goal, lemmas, 60.0)


def test_a_staged_proof_becomes_one_proof(carry: WholeProof) -> None:
    assert not carry.skipped
    assert len(carry.proof.lines) > 1000
    assert check(carry.cnf, carry.drat).valid


def sum_query(width: int) -> Query:
    """Four terms in two orders."""
    manager = Environment().formula_manager
    w, x, y, z = symbols = [manager.Symbol(name, BVType(width)) for name in "wxyz"]
    left = manager.BVAdd(manager.BVAdd(manager.BVAdd(w, x), y), z)
    right = manager.BVAdd(manager.BVAdd(manager.BVAdd(z, y), w), x)
    return Query(tuple(symbols), (manager.Not(manager.Equals(left, right)),))


def test_lemmas_that_do_not_hold_are_left_out() -> None:
    *_, goal = sum_query(4).assertions
    left, right = goal.arg(0).args()
    whole = WholeProof([], goal, [WholeLemma(left, right.arg(0)), WholeLemma(left, right)], 60.0)
    assert whole.skipped == [0]
    assert check(whole.cnf, whole.drat).valid


def test_maxima_of_the_same_terms_are_one() -> None:
    carrier = TermCarrier(maximum="relational")
    x, y, z = (carrier.symbol(name, 12) for name in "xyz")
    both = x + y, y + x  # different terms that are the same gates
    symbols = [carrier.max_of([side.node, z.node], 12) for side in both]
    terms = {symbol: (side.node, z.node) for symbol, side in zip(symbols, both, strict=True)}
    left, right = (carrier.manager.BVMul(symbol, symbol) for symbol in symbols)
    goal = carrier.manager.Not(carrier.manager.Equals(left, right))
    whole = WholeProof(carrier.definitions, goal, [], 60.0, maxima=terms)
    assert len(whole.proof.lines) < 8000  # the products alone would take a hundred times that
    assert check(whole.cnf, whole.drat).valid


@pytest.mark.parametrize("signed", [False, True])
def test_numbers_of_different_widths(signed: bool) -> None:
    manager = Environment().formula_manager
    x, y = (manager.Symbol(name, BVType(5)) for name in "xy")
    extend = manager.BVSExt if signed else manager.BVZExt
    narrow = manager.BVAdd(extend(x, 1), extend(y, 1))
    wide = manager.BVAdd(extend(y, 4), extend(x, 4))
    goal = manager.Not(manager.Equals(extend(narrow, 3), wide))
    whole = WholeProof([], goal, [WholeLemma(narrow, wide)], 60.0)
    assert not whole.skipped
    assert check(whole.cnf, whole.drat).valid


def test_what_a_lemma_has_merged_still_says_what_was_asserted() -> None:
    """The top bit of a sum is asserted to be zero, and merged with zero; the sum in another order has it too."""
    *_, differ = sum_query(4).assertions
    left, right = differ.arg(0).args()
    manager = Environment().formula_manager
    left, right = (manager.normalize(side) for side in (left, right))
    one, other = (manager.Equals(manager.BVExtract(side, 3, 3), manager.BV(1, 1)) for side in (left, right))
    whole = WholeProof([manager.Not(one)], other, [WholeLemma(manager.BVExtract(left, 0, 2), left)], 60.0)
    assert not whole.skipped
    assert check(whole.cnf, whole.drat).valid


@pytest.mark.parametrize("shifted", [False, True])
def test_a_claim_rests_on_claims_before_it(shifted: bool) -> None:
    """Two products whose factors are equal but in a special case, or once one is shifted."""
    manager = Environment().formula_manager
    special = manager.Symbol("special")
    x, y, z, w = (manager.Symbol(name, BVType(16)) for name in "xyzw")
    left, right = manager.BVMul(x, y), manager.BVMul(z, w)
    if shifted:
        left, x = (manager.BVLShl(word, manager.BV(2, 16)) for word in (left, x))
    given = [manager.Or(special, manager.Equals(*sides)) for sides in ((x, z), (y, w))]
    claim = manager.Or(special, manager.Equals(left, right))
    lemmas = [*(WholeLemma(one, manager.TRUE()) for one in given),
              WholeLemma(claim, manager.TRUE(), [special], given)]  # fmt: skip
    whole = WholeProof(given, manager.Not(claim), lemmas, 60.0, points=[special], facts=[claim])
    assert not whole.skipped
    assert len(whole.proof.lines) < 20000  # of products alone, millions
    assert check(whole.cnf, whole.drat).valid


def test_a_goal_that_can_be_met_has_no_certificate() -> None:
    *_, goal = sum_query(4).assertions
    with pytest.raises(CertificateError, match="is satisfiable"):
        WholeProof([], goal.arg(0), [])


def damaged(lines: list[str], rng: random.Random) -> Iterator[list[str]]:
    yield lines[:-1]
    yield lines[: len(lines) // 2]
    yield [*lines[: len(lines) // 3], "0"]
    for _ in range(5):
        place = rng.randrange(len(lines))
        words = lines[place].split()
        if words[0] in ("d", "0"):
            continue
        yield [*lines[:place], " ".join(["-" + words[0].replace("-", ""), "0"]), *lines[place + 1 :]]


@needs_compiler
def test_damaged_proofs_are_rejected(carry: WholeProof) -> None:
    rejected = [not check(carry.cnf, "\n".join(lines)).valid for lines in damaged(carry.proof.lines, random.Random(3))]
    assert all(rejected[:3])
    assert sum(rejected) > 3
    without_goal = Cnf(carry.formula.variables, carry.formula.clauses[:-1])
    assert not check(without_goal.text, carry.drat).valid


def carry_query() -> Query:
    query = build_query(carry_problem())
    return Query(query.inputs, (query.assertions[0], *query.assertions[2:], query.assertions[1]))


def of_carry(whole: WholeProof) -> Leaf:
    return Leaf("the question", whole.query, whole=whole)


UNSAID = "nothing in the folder says what was proved"


def test_carry_bits_in_one_go(tmp_path: Path) -> None:
    whole = whole_of_query(carry_query(), 60.0)
    ((_, manifest),) = write_certificate(tmp_path, LIMIT, {}, [Leaf("the question", whole.query, whole=whole)])
    assert [piece.name for piece in manifest.pieces] == ["lemma-01"]
    assert [found.says for found in check_folder(tmp_path) if found.kind != "fine"] == [UNSAID]


def test_files_of_a_certificate(carry: WholeProof, tmp_path: Path) -> None:
    (tmp_path / "lemma-07.drat").write_text("left over")
    write_certificate(tmp_path, LIMIT, {}, [of_carry(carry), Leaf("sum = sum", sum_query(6))])
    names = {f"{stem}.{suffix}" for stem in ("lemma-01", "lemma-02") for suffix in ("smt2", "cnf", "drat")}
    assert {path.name for path in tmp_path.iterdir()} == names | {"manifest.json", "README.md"}
    manifest = json.loads((tmp_path / "manifest.json").read_text())
    assert manifest["pieces"][1]["states"] == "sum = sum"
    assert "| lemma-01 | the question |" in (tmp_path / "README.md").read_text()
    found = list(check_folder(tmp_path))
    assert {finding.place for finding in found if finding.kind == "fine"} == names
    assert [finding.says for finding in found if finding.kind != "fine"] == [UNSAID]


@pytest.mark.parametrize(
    ("name", "fault"),
    [
        ("lemma-01.drat", "the proof does not end in the empty clause"),
        ("lemma-01.cnf", "is not the formula of lemma-01.smt2"),
        ("lemma-01.smt2", "changed since it was written"),
    ],
)
def test_changed_files_are_noticed(name: str, fault: str, carry: WholeProof, tmp_path: Path) -> None:
    write_certificate(tmp_path, LIMIT, {}, [of_carry(carry)])
    path = tmp_path / name
    text = path.read_text()
    if name == "lemma-01.drat":
        path.write_text(text.removesuffix("0\n"))
    elif name == "lemma-01.cnf":
        path.write_text(text + "1 0\n")
    else:
        path.write_text("; changed\n" + text)
    if name != "lemma-01.smt2":  # with a checksum that fits
        manifest = json.loads((tmp_path / "manifest.json").read_text())
        manifest["pieces"][0]["sha256"][name] = digest(path)
        (tmp_path / "manifest.json").write_text(json.dumps(manifest))
    assert Finding(name, fault, "fault") in list(check_folder(tmp_path))


@pytest.mark.parametrize("text", [None, "", "[]", '{"schema": 1}', '{"schema": 2, "pieces": [{}]}'])
def test_a_folder_without_a_manifest_is_no_certificate(text: str | None, tmp_path: Path) -> None:
    if text is not None:
        (tmp_path / "manifest.json").write_text(text)
    with pytest.raises(InputError):
        list(check_folder(tmp_path))


def test_a_proof_that_does_not_stand_is_an_error(
    carry: WholeProof, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(carry, "drat", "0\n", raising=False)
    with pytest.raises(CertificateError, match="rejected by the checker") as caught:
        write_certificate(tmp_path, LIMIT, {}, [of_carry(carry)])
    assert caught.value.exit_code == 4
    assert not (tmp_path / "manifest.json").exists()
