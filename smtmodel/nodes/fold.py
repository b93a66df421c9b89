"""The computation of a value of any type for each node of an expression, from its operands' values, with loops."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from typing import Generic, TypeVar

from mmaprobe.smtmodel.nodes.node import Node
from mmaprobe.smtmodel.nodes.repeat import Each, Repeat, Running

T = TypeVar("T")


class Fold(Generic[T]):
    """The values of nodes. `places`: the current value of each loop variable, by level; `running`: the current result
    of each loop, by level."""

    def __init__(self) -> None:
        self.places: dict[int, int] = {}
        self.running: dict[int, T] = {}

    @abstractmethod
    def formed(self, node: Node) -> T:
        """The value of a node other than a loop or a running result."""

    def of(self, node: Node) -> T:
        """The value of a node."""
        if isinstance(node, Running):
            return self.running[node.level]
        if not isinstance(node, Repeat):
            return self.formed(node)
        value = self.of(node.start)
        for place in node.places:
            self.places[node.level], self.running[node.level] = place, value
            value = self.carried(self.of(node.body))
        return value

    def carried(self, value: T) -> T:
        """The result of a round of a loop as the next round reads it."""
        return value

    def terms(self, items: Sequence[Node]) -> Iterator[Node]:
        """The terms of a sum's operands. The loop variables have the values of a term until the next one is taken."""
        for item in items:
            if not isinstance(item, Each):
                yield item
                continue
            for place in item.places:
                self.places[item.level] = place
                yield from self.terms((item.body,))

    def of_terms(self, items: Sequence[Node]) -> list[T]:
        """The values of the terms of a sum's operands."""
        return [self.of(term) for term in self.terms(items)]
