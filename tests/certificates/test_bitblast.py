"""The bit-blaster against the evaluator of terms, operator by operator, and against a solver on real queries."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest
from pysat.solvers import Solver
from pysmt.environment import Environment
from pysmt.fnode import FNode
from pysmt.typing import BVType

from mmaprobe.queries.certificates.bitblast import Blaster, Cnf, cnf_of_text
from mmaprobe.queries.certificates.gates import TRUE
from mmaprobe.queries.kernel.questions.problem import Problem
from mmaprobe.queries.search.distinguish import build_query
from mmaprobe.queries.solvers.portfolio import solve
from mmaprobe.queries.solvers.smtlib import Query
from mmaprobe.smtmodel.inputs.admitted import Inputs
from mmaprobe.smtmodel.tables.reference import parse_reference
from tests.certificates.slow_checker import Propagator
from tests.oracles.termeval import evaluate_terms

pytestmark = pytest.mark.solvers

SAMPLES = 16
BINARY = ["BVAdd", "BVSub", "BVMul", "BVAnd", "BVOr", "BVXor", "BVLShl", "BVLShr", "BVAShr"]
COMPARISONS = ["Equals", "BVULT", "BVULE", "BVSLT", "BVSLE"]


def interesting(rng: random.Random, width: int) -> int:
    """Random bits, or a value near 0, the width or the top."""
    near = rng.choice([0, width, 1 << (width - 1), (1 << width) - 1]) + rng.randint(-2, 2)
    return rng.choice([rng.getrandbits(width), near % (1 << width)])


def propagated(blaster: Blaster, symbols: list[FNode], values: list[int]) -> Propagator:
    """The circuit after unit propagation of some inputs."""
    state = Propagator()
    for clause in blaster.gates.clauses():
        state.add(list(clause))
    for symbol, value in zip(symbols, values, strict=True):
        for place, literal in enumerate(blaster.bits(symbol)):
            state.add([literal if value >> place & 1 else -literal])
    assert not state.refuted
    return state


def value_of(literals: list[int], state: Propagator) -> int:
    """The value that propagation gives to every bit: inputs decide all gates."""
    assert all((literal in state.true) != (-literal in state.true) for literal in literals)
    return sum((literal in state.true) << place for place, literal in enumerate(literals))


def agree(environment: Environment, terms: list[FNode], symbols: list[FNode], seed: int, samples: int) -> None:
    rng = random.Random(seed)
    blaster = Blaster()
    literals = [blaster.bits(term) for term in terms]
    for symbol in symbols:
        blaster.bits(symbol)
    rows = [[interesting(rng, symbol.bv_width()) for symbol in symbols] for _ in range(samples)]
    columns = {symbol.symbol_name(): [row[k] for row in rows] for k, symbol in enumerate(symbols)}
    expected = evaluate_terms(terms, columns)
    for position, row in enumerate(rows):
        state = propagated(blaster, symbols, row)
        for term, bits, lanes in zip(terms, literals, expected, strict=True):
            assert value_of(bits, state) == int(lanes[position]), (term, row)


@pytest.mark.parametrize("width", [1, 2, 3, 7, 8, 13, 33, 64, 70])
def test_every_operator(width: int) -> None:
    environment = Environment()
    manager = environment.formula_manager
    x, y = (manager.Symbol(name, BVType(width)) for name in "xy")
    odd = manager.BV(0x5A5A5A5A5A5A5A5A5A % (1 << width), width)
    operators = [name for name in BINARY if name != "BVMul" or width < 20]
    terms = [getattr(manager, name)(*pair) for name in operators for pair in ((x, y), (x, odd), (odd, y), (x, x))]
    truths = [getattr(manager, name)(*pair) for name in COMPARISONS for pair in ((x, y), (x, odd), (odd, x))]
    terms += [manager.BVNot(x), manager.BVNeg(x), manager.BVConcat(x, y), manager.BVZExt(x, 3), manager.BVSExt(x, 3)]
    terms += [manager.BVExtract(x, width // 3, width - 1), manager.Ite(truths[0], x, y)]
    p, q, r = truths[:3]
    truths += [manager.And(p, q, r), manager.Or(p, q, r), manager.Not(p), manager.Iff(p, q)]
    truths += [manager.Ite(p, q, r), manager.Bool(True)]
    agree(environment, terms + truths, [x, y], width, SAMPLES if width < 9 else 4)


@pytest.mark.parametrize("seed", range(12))
def test_random_terms(seed: int) -> None:
    rng = random.Random(seed)
    environment = Environment()
    manager = environment.formula_manager
    width = rng.randint(1, 24)
    symbols = [manager.Symbol(f"v{k}", BVType(width)) for k in range(3)]
    terms = [*symbols, manager.BV(interesting(rng, width), width)]
    for _ in range(30):
        left, right, other = (rng.choice(terms) for _ in range(3))
        condition = getattr(manager, rng.choice(COMPARISONS))(left, other)
        if rng.random() < 0.3:
            terms.append(manager.Ite(condition, right, other))
        else:
            terms.append(getattr(manager, rng.choice(BINARY))(left, right))
    agree(environment, terms, symbols, seed, 4)


def refuted(cnf: Cnf) -> bool:
    with Solver(name="cadical195", bootstrap_with=[list(clause) for clause in cnf.clauses]) as engine:
        return not engine.solve()


def carry_query(bits: str, finite: bool = True) -> Query:
    model = "volta/mma/m8n8k4.f32.f16.f16.f32@product=normalised,carry_bits"
    models = [parse_reference(f"{model}={count}") for count in (bits, "4")]
    return build_query(Problem(*models, inputs=Inputs(finite=finite, nonnegative=True)))


@pytest.mark.parametrize("bits", ["2", "3"])
def test_real_queries(bits: str) -> None:
    query = carry_query(bits)
    cnf = Blaster().cnf(query.assertions)
    answer = solve(query, "bitwuzla", 60.0)[0]
    assert refuted(cnf) == (answer.status == "unsat")
    assert cnf_of_text(query.text) == cnf


def test_a_model_of_the_formula_is_one_of_the_query() -> None:
    query = carry_query("2")
    blaster = Blaster()
    cnf = blaster.cnf(query.assertions)
    with Solver(name="cadical195", bootstrap_with=[list(clause) for clause in cnf.clauses]) as engine:
        assert engine.solve()
        true = set(engine.get_model())
    values = {
        symbol.symbol_name(): [sum((x in true) << place for place, x in enumerate(blaster.bits(symbol)))]
        for symbol in query.inputs
    }
    assert all(lanes[0] for lanes in evaluate_terms(query.assertions, values))


def test_numbering_is_deterministic() -> None:
    assert Blaster().cnf(carry_query("3").assertions).text == Blaster().cnf(carry_query("3").assertions).text


def test_terms_share_gates() -> None:
    manager = Environment().formula_manager
    x, y = (manager.Symbol(name, BVType(9)) for name in "xy")
    blaster = Blaster()
    assert blaster.bits(manager.BVAdd(x, y)) == blaster.bits(manager.BVAdd(y, x))
    less, more = manager.BVULT(x, y), manager.BVULT(y, x)
    assert blaster.truth(manager.Implies(less, more)) == blaster.truth(manager.Or(manager.Not(less), more))
    assert blaster.truth(manager.Equals(manager.BVXor(x, x), manager.BV(0, 9))) == TRUE


@pytest.mark.parametrize("build", [lambda m, x: m.BVUDiv(x, x), lambda m, x: m.BVComp(x, x)])
def test_other_operators_are_refused(build: Callable[..., FNode]) -> None:
    manager = Environment().formula_manager
    with pytest.raises(NotImplementedError, match="bit-blasting"):
        Blaster().bits(build(manager, manager.Symbol("x", BVType(4))))
