"""Lanes: products at one place of every fused step, of which one lane may keep other fraction bits than the others."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from mmaprobe.queries.building.counting import nonzero
from mmaprobe.queries.building.draft import Draft
from mmaprobe.queries.building.roles import Part
from mmaprobe.queries.search.samples import Table
from mmaprobe.smtmodel.inputs.signature import Signature

MORE = (-1, 1, -2, 2)  # differences of the fraction bits of a lane from those of the others
MOST = 256  # the most lanes that are tried


def lanes_of(part: Part) -> list[frozenset[int]]:
    """The products at one place of every fused step of a role, for each place; then each product by itself."""
    found: dict[frozenset[int], None] = {}
    for role in range(part.count):
        steps = [
            [leaf for leaf in node.children if isinstance(leaf, int)]
            for node in part.steps(role)
            if node.kind == "fused"
        ]
        for place in range(max(map(len, steps), default=0)):
            found[frozenset(step[place] for step in steps if len(step) > place)] = None
        found |= {frozenset([leaf]): None for step in steps for leaf in step}
    return list(found)


def with_one_lane(base: Draft, part: Part, wrong: Table, asked: Signature) -> Iterator[Draft]:
    """Drafts with one lane that keeps other fraction bits. `wrong`: the inputs whose answers it must explain, each of
    which has a nonzero product in that lane."""
    length = asked.length
    counts = nonzero(wrong[:, :length], asked.a) & nonzero(wrong[:, length : 2 * length], asked.b)
    lanes = [lane for lane in lanes_of(part) if counts[:, list(lane)].any(axis=1).all()]
    for more in MORE:
        for lane in lanes[:MOST]:
            yield replace(base, odd=(lane, more))
