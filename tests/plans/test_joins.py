"""Every partition with every join that it can have: written, read, evaluated, lowered, compiled, bounded, proved."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from typing import Any

import numpy as np
import pytest

from benchmarks.plan_statements import FEW, agree
from benchmarks.plan_statements import plan as small_plan
from mmaprobe.queries.plans import equal
from mmaprobe.queries.plans.bound_report import find_plan_bound
from mmaprobe.queries.plans.equal import prove_plans
from mmaprobe.queries.plans.tree_stages import stages_of
from mmaprobe.queries.search.distinguish import Options
from mmaprobe.reports.plan_sheet import stage_words
from mmaprobe.smtmodel.arithmetic.formats import FORMATS
from mmaprobe.smtmodel.base.errors import InputError
from mmaprobe.smtmodel.base.libraries import compiler
from mmaprobe.smtmodel.inputs.admitted import Inputs
from mmaprobe.smtmodel.nodes.round import Rounding
from mmaprobe.smtmodel.plans import Chain, Parted
from mmaprobe.smtmodel.plans.gemm import simulate
from mmaprobe.smtmodel.plans.joins import JOINS, ORDERS
from mmaprobe.smtmodel.plans.partitions import PARTITIONS
from mmaprobe.smtmodel.plans.planfile import parse_plan
from mmaprobe.smtmodel.plans.plantext import plan_text
from mmaprobe.smtmodel.tables.reference import parse_reference
from tests.plans.test_plans import check, operands, plan_of
from tests.plans.trees import tree_by_steps
from tests.said import believed

pytestmark = pytest.mark.compilers

#: partitions: what is said beside them, and K, the first of which they divide in whole parts
CUTS: dict[str, tuple[str, tuple[int, ...]]] = {
    "8": ("", (16, 5, 20)), "8, tail": (", tail=mma", (16, 22)), "8, even": (", even=2", (16, 21)),
    "8, share": (", share=2", (16, 19)), "[4, 12]": ("", (20, 14)), "split(3)": ("", (12, 5, 17)),
    "split(3, grain=2)": ("", (12, 7, 22)), "split(3, grain=2, tiles=even)": ("", (12, 1, 13)),
    "interleave(3, grain=4)": ("", (12,)),
    "interleave(2, grain=4)": (", tail=fma", (16, 19)), "swizzle(3, grain=4)": ("", (12, 20)),
    "halve(4, grain=4)": ("", (16, 7, 22)), "halve(3, first=smaller)": ("", (8, 6, 13, 20)),
    "windows(4)": ("", (16, 5, 22)), "lanes(4, fold(2, 2), 2, fold(2, 1))": ("", (8, 13)),
    "whole(4)": (", tail=fma", (12, 18)), "whole(4), head": (", head=mma", (12, 18)),
    "first(4)": (", head=mma", (12, 3)),
}  # fmt: skip


def stages() -> Iterator[tuple[str, str]]:
    """Stages with a body left open, and the partitions of which they are."""
    for cut, (more, _) in CUTS.items():
        first = cut.removesuffix(", tail").removesuffix(", even").removesuffix(", share").removesuffix(", head")
        for join in JOINS:
            how = "" if join.word == "through" else ", r"
            options = {"add": tuple(f", order={order}" for order in ORDERS), "compensate": ("", ", by=kahan")}
            for option in options.get(join.word, ("",)):
                text = f"{join.word}({first}, BODY{how}{option}{more})"
                try:
                    plan_of(f"sum({text.replace('BODY', 'fma')}, c)")
                except InputError as error:
                    if "are not joined by" not in str(error):
                        raise
                else:
                    yield text, cut


EVERY = list(stages())


def test_each_partition_has_the_joins_that_it_names() -> None:
    plans = [plan_of(f"sum({stage.replace('BODY', 'fma')}, c)").sums[0].stage for stage, _ in EVERY]
    found = {(type(one.partition), one.join.word) for one in plans if isinstance(one, Parted)}
    assert found == {(kind, word) for kind in PARTITIONS for word in kind.joins}


@pytest.mark.parametrize(("stage", "cut"), EVERY, ids=[stage for stage, _ in EVERY])
def test_every_join_of_every_partition_is_what_it_says(stage: str, cut: str) -> None:
    """Results, expressions and generated code; a bound for a K, and one for every K or why there is none."""
    plan, lengths = plan_of(f"sum({stage.replace('BODY', 'fma')}, c)"), CUTS[cut][1]
    assert parse_plan(plan_text(plan), "tested", parse_reference) == plan
    for k in lengths:
        check(plan, k, rows=2, columns=2)
        if compiler() is not None:
            a, b, c = operands(plan, 5, 4, k)
            compiled = simulate(a, b, c, plan, engine="compiled")
            assert np.array_equal(compiled, simulate(a, b, c, plan, engine="numpy"))
    assert all(one.text for one in stage_words(plan.sums[0].stage))
    found = find_plan_bound(plan, Inputs(), lengths[:1], believed)
    assert found.verdict == "holds"
    assert found.any is not None or "is not one step repeated" in found.reason, found.reason


def of_one_option() -> Iterator[Any]:
    """Each join of each cut with its first option; the other options take more time than they can show."""
    seen = set()
    for stage, cut in EVERY:
        kind = stage.partition("(")[0], cut
        yield pytest.param(stage, cut, id=stage, marks=[pytest.mark.slow] if kind in seen else [])
        seen.add(kind)


@pytest.mark.parametrize(("stage", "cut"), list(of_one_option()))
def test_equal_bodies_make_equal_stages(stage: str, cut: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """By one rule, for every K of which the parts are whole; with other bodies that are not equal, by none."""
    monkeypatch.setattr(equal._Prover, "_found_by_solver", lambda *_: False)  # it proves nothing, and takes longest
    text = f"sum({stage.replace('mma', 'two')}, c)"
    left, right, other = (small_plan(text.replace("BODY", unit)) for unit in ("ones", "fma", "short"))
    found = prove_plans(left, right, None, Options(timeout=5.0), confirm=False)
    own = left.sums[0].stage
    assert isinstance(own, Parted)
    if any(count % 4 for count in own.partition.counts):  # parts that take no whole instruction
        assert found.verdict != "equal"
        return
    assert found.theorem is not None
    assert "same_parts" in {one.rule for one in found.theorem.walk()}
    for times in (1, 2, 5):
        assert agree(left, right, found.multiples * times, times, FEW)
    assert prove_plans(right, other, None, Options(timeout=5.0), confirm=False).verdict != "equal"


CHAIN = Chain(parse_reference("ieee/fma/f32.f16.f16.f32"))


@pytest.mark.parametrize("cut", [
    "8", "split(3, grain=1)", "split(4, grain=16)", "split(4, grain=16, tiles=even)",
    "interleave(4, grain=2)", "swizzle(4, grain=2)", "halve(8, grain=8, first=smaller)", "windows(8)",
])  # fmt: skip
def test_every_join_is_read_from_a_tree(cut: str) -> None:
    """Among the stages that a tree suggests is one with this tree, at this K and at another one. A chain, which a
    stage through the accumulator over runs of K is, is joined in no other way."""
    for join in JOINS[:3]:
        how = "" if join.word == "through" else ", r"
        for order in ORDERS if join.word == "add" else ("",):
            step = f"{join.word}({cut}, fma{how}{f', order={order}' if order else ''})"
            stage = plan_of(f"sum({step}, +0)").sums[0].stage
            one, other = (tree_by_steps(stage, length) for length in (96, 144))
            assert one is not None
            both = [stages_of(one, CHAIN.model, Rounding(FORMATS["f32"]), wider=wider) for wider in (False, True)]
            assert any(tree_by_steps(guess, 144) == other for guess in chain(*both)), step
            assert tree_by_steps(CHAIN, 96) != one or not both[1]
