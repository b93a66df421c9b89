"""Checks a tree of theorems about a unit: every side condition and conclusion of every rule, by itself.

The tree is a document of plain data (written.py says what is in it). The rules, by what they are about:
node_rules.py, part_rules.py, sum_rules.py, loop_rules.py, step_rules.py, result_rules.py, sign_rules.py, rise_rules.py,
alike_rules.py and rewrite_rules.py; plan_tree.py checks a tree about a plan. Their statements are those of the
docstrings of queries/kernel, written a second time: none of these files, nor goals.py, document.py, magnitudes.py or
term_ranges.py, on which they rest, shares code with what found or wrote the tree.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar

from tests.second.alike_rules import LEMMAS, congruent, followed, looped, results_alike, rewritten
from tests.second.document import Document, Rule
from tests.second.goals import Goal, read_goal
from tests.second.loop_rules import carried, chained, closed, repeated
from tests.second.magnitudes import FaultError, need
from tests.second.node_rules import (
    assumed,
    constant,
    cut,
    drawn,
    element,
    exact,
    fused,
    grid,
    literal,
    product,
    rounded,
    scale,
    segment,
    unchanged,
)
from tests.second.part_rules import part, rejoined
from tests.second.result_rules import loosened, of_largest, summed, truncated, weakened, whole
from tests.second.rise_rules import rises
from tests.second.sign_rules import turned
from tests.second.step_rules import (
    added,
    begun,
    compensated,
    from_zero,
    halved,
    held,
    iterated,
    nothing,
    of_all_products,
    tile,
)
from tests.second.sum_rules import error_free


def lemma(tree: Document, goal: Goal, premises: Sequence[int], _: Any) -> None:
    """A lemma about the datapath, which is believed."""
    kinds = ("AlignmentLoses", "DrawIsNextTo", "RoundingLoses", "TruncationKeeps", "RoundsOpposite",
             "RoundingRises", "RoundingScales", *LEMMAS)  # fmt: skip
    need(goal.kind in kinds and not premises, "it is not a lemma about the datapath")


#: rules about steps of a plan
STEPS: dict[str, Rule] = {rule.__name__: rule for rule in (
    from_zero, begun, held, nothing, tile, added, iterated, compensated, halved, of_all_products,
)}  # fmt: skip

RULES: dict[str, Rule] = {rule.__name__: rule for rule in (
    element, segment, constant, literal, assumed, product, unchanged, scale, exact, fused, grid, cut,
    rounded, drawn, error_free, whole, part, rejoined, weakened, repeated, chained, closed, carried, summed,
    truncated, loosened, of_largest, turned,
    rises,
    rewritten, followed, congruent, looped, results_alike,
)} | STEPS | {"settled": lemma, "exhausted": lemma}  # fmt: skip


#: the kinds of goals that are about the result, whatever they say
FINAL = {"Carried", "Closed", "Chained", "BoundInUnits", "Rises", "SameResults", "FromZero", "OfLargest"}


class Tree(Document):
    """A document whose theorems are checked one after another."""

    rules: ClassVar[Mapping[str, Rule]] = RULES

    def check(self, first: int = 0) -> Iterator[tuple[int, str]]:
        """The faults found: the number of the theorem and what is wrong with it. Theorems before the `first` are those
        of a document that was checked: their goals are read alone."""
        if not self.states:
            yield -1, "it states nothing"
        for number, theorem in enumerate(self.theorems):
            try:
                self.goals.append(Goal("unreadable"))
                self.goals[-1] = goal = read_goal(theorem["goal"], self.conditions)
                if number < first:
                    continue
                premises = theorem["premises"]
                need(all(type(p) is int and 0 <= p < number for p in premises), "a premise is not before it")
                need(theorem["rule"] in self.rules, "there is no such rule")
                self.rules[theorem["rule"]](self, goal, premises, theorem)
            except FaultError as fault:
                yield number, f"{theorem['rule']}: {fault}"
            except (KeyError, ValueError, TypeError, IndexError, ZeroDivisionError) as error:
                yield number, f"cannot be read: {type(error).__name__} {error}"
        used = {premise for theorem in self.theorems for premise in theorem["premises"]} | set(self.states)
        yield from ((number, "nothing rests on it") for number in range(len(self.theorems)) if number not in used)
        for number in self.states:
            if not (type(number) is int and 0 <= number < len(self.goals)):
                yield -1, "what is stated is not a theorem of it"
            elif not self.final(self.goals[number]):
                yield number, "it is stated, but is not a bound of the result"

    def final(self, goal: Goal) -> bool:
        """Whether a goal is about the result and has no assumptions."""
        whole = goal.node == self.unit["result"] and not goal.assuming and not goal.places
        if goal.kind == "Turns":
            return True
        return (goal.kind == "Enclosed" and whole) or goal.kind in FINAL
