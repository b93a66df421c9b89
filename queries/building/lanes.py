"""Lanes: a lane is the products at one place of every fused step; one lane may keep other fraction bits than the
others."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from mmaprobe.queries.building.draft import Draft
from mmaprobe.queries.building.number_kinds import nonzero
from mmaprobe.queries.building.roles import RoledTree
from mmaprobe.queries.search.samples import Table
from mmaprobe.smtmodel.inputs.signature import Signature

MORE = (-1, 1, -2, 2)  # differences of the fraction bits of a lane from those of the others
MOST_LANES = 256  # the most lanes that are tried


def lanes_of(part: RoledTree) -> list[frozenset[int]]:
    """The products at one place of every fused step of a role, for each place; then each product by itself."""
    lanes: dict[frozenset[int], None] = {}
    for role in range(part.count):
        steps = [
            [leaf for leaf in node.children if isinstance(leaf, int)]
            for node in part.steps(role)
            if node.kind == "fused"
        ]
        for place in range(max(map(len, steps), default=0)):
            lanes[frozenset(step[place] for step in steps if len(step) > place)] = None
        lanes |= {frozenset([leaf]): None for step in steps for leaf in step}
    return list(lanes)


def with_one_lane(base: Draft, part: RoledTree, wrong: Table, asked: Signature) -> Iterator[Draft]:
    """Drafts with one lane that keeps other fraction bits. `wrong`: the inputs whose answers the drafts must explain;
    each of these inputs has a nonzero product in that lane."""
    length = asked.length
    counts = nonzero(wrong[:, :length], asked.a) & nonzero(wrong[:, length : 2 * length], asked.b)
    lanes = [lane for lane in lanes_of(part) if counts[:, list(lane)].any(axis=1).all()]
    for more in MORE:
        for lane in lanes[:MOST_LANES]:
            yield replace(base, odd=(lane, more))
