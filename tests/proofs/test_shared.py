"""Cut-points of a lemma are the first terms that its sides have in common, and samples that join later part words."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise
from math import inf
from random import Random

import numpy as np
import pytest
from pysmt.environment import Environment
from pysmt.fnode import FNode

from mmaprobe.queries.equality.sampled import Samples
from mmaprobe.queries.equality.shared import LEVELS, WIRING, Shared
from mmaprobe.queries.equality.simulated import in_order
from mmaprobe.queries.kernel.terms.cutting import Abstraction
from mmaprobe.smtmodel.carriers.terms import TermCarrier

COUNT, WIDTH = 60, 4


def _terms(environment: Environment, seed: int) -> list[FNode]:
    """Terms of one width, each made of a few before it, mostly of near ones."""
    random, manager = Random(seed), environment.formula_manager
    operations = (manager.BVAdd, manager.BVAnd, manager.BVXor, manager.BVMul, lambda one, _: manager.BVNot(one))
    terms = [manager.Symbol(name, environment.type_manager.BVType(WIDTH)) for name in "xyz"]
    while len(terms) < COUNT:
        near = terms[-8:] if random.random() < 0.8 else terms
        terms.append(random.choice(operations)(random.choice(near), random.choice(near)))
    return terms


def _plain_cuts(sides: list[FNode], products: set[FNode]) -> list[set[FNode]]:
    """The same by the definition: every shared term so far from the sides, not through products, for each distance."""
    one, other = (set(in_order([side])) for side in sides)
    shared = (one & other) - set(sides)
    depth: dict[FNode, int] = {}
    for term in reversed(in_order(sides)):
        for below in () if term in shared & products else term.args():
            step = 0 if term not in shared else depth.get(term, inf) + (term.node_type() not in WIRING)
            depth[below] = min(depth.get(below, step), step)
    return [
        {term for term in shared if (depth.get(term, inf) >= level or term in products) and term.args()}
        for level in (*LEVELS, inf)
    ]


def _cut(environment: Environment, cuts: Iterable[FNode], claim: FNode) -> FNode:
    manager = environment.formula_manager
    names = {cut: manager.Symbol(f"cut{cut.node_id()}", cut.get_type()) for cut in cuts}
    return Abstraction(environment, names)(claim)


@pytest.mark.parametrize("seed", range(20))
def test_cut_points_leave_what_all_shared_terms_leave(seed: int) -> None:
    environment = Environment()
    manager = environment.formula_manager
    random, terms, shared = Random(seed), _terms(environment, seed), Shared()
    for _ in range(5):
        sides = random.sample(terms[COUNT // 2 :], 2)
        products = {term for term in random.sample(terms, 8) if term.is_bv_mul()}
        plain = manager.Equals(*sides)
        wanted = [_cut(environment, cuts, plain) for cuts in _plain_cuts(sides, products)]
        found = [_cut(environment, cuts, plain) for cuts in shared.cuts(sides, products)]
        different = [wanted[0], *(after for before, after in pairwise(wanted) if before != after)]
        assert found == [*(claim for claim in different if claim != plain), plain]
        common = shared.common(*sides)
        assert {term for term in terms if term in common} == set(in_order(sides[:1])) & set(in_order(sides[1:]))


def test_inputs_that_join_part_words_that_were_alike() -> None:
    carrier = TermCarrier()
    manager = carrier.manager
    word = carrier.symbol("x", WIDTH)
    one, other = word.node, manager.BVAnd(word.node, manager.BV(7, WIDTH))
    samples = Samples([word], [], np.array([[1], [5], [7]], np.uint64))
    assert samples.key(one) == samples.key(other)
    assert samples.agree(one, other)
    samples.add(np.array([[3]], np.uint64))
    assert samples.agree(one, other)
    samples.add(np.array([[9], [2]], np.uint64))
    assert not samples.agree(one, other)
    assert samples.lanes(one).tolist() == [1, 5, 7, 3, 9, 2]
    assert samples.lanes(other).tolist() == [1, 5, 7, 3, 1, 2]
    assert samples.first_lanes(other).tolist() == [1, 5, 7]
