"""A value of any kind for each node of an expression, from the values of its operands; loops are run here."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from typing import Generic, TypeVar

from mmaprobe.smtmodel.nodes.node import Node
from mmaprobe.smtmodel.nodes.repeat import Each, Repeat, Running

T = TypeVar("T")


class Fold(Generic[T]):
    """The values of nodes, for the current values of the loop variables (`places`) and the running results (`running`),
    both by level."""

    def __init__(self) -> None:
        self.places: dict[int, int] = {}
        self.running: dict[int, T] = {}

    @abstractmethod
    def formed(self, node: Node) -> T:
        """The value of a node that is neither a loop nor its running result."""

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
        """The result of a round of a loop, as it is read from then on."""
        return value

    def terms(self, items: Sequence[Node]) -> Iterator[Node]:
        """The terms of the operands of a sum; loop variables have the values of a term until the next term is taken."""
        for item in items:
            if not isinstance(item, Each):
                yield item
                continue
            for place in item.places:
                self.places[item.level] = place
                yield from self.terms((item.body,))

    def of_terms(self, items: Sequence[Node]) -> list[T]:
        """The values of the terms."""
        return [self.of(term) for term in self.terms(items)]
