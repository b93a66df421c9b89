"""Substitution in terms: abstraction at cut-points, merging and renaming."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence
from typing import Any

from pysmt.environment import Environment
from pysmt.fnode import FNode
from pysmt.walkers import IdentityDagWalker


class Abstraction(IdentityDagWalker):  # type: ignore[misc]
    """Substitution that does not descend into the terms that it replaces: a cut-point abstracts a whole cone of terms.

    An instance has one set of replacements and caches its results: a subterm that several terms share is walked once.
    """

    def __init__(self, environment: Environment, changes: Mapping[FNode, FNode]) -> None:
        super().__init__(environment, invalidate_memoization=False)
        self.memoization = dict(changes)

    def __call__(self, term: FNode) -> FNode:
        """The term with all replacements made."""
        changed: FNode = self.walk(term) if self.memoization else term
        return changed

    def _compute_node_result(self, formula: FNode, **kwargs: Any) -> None:
        arguments = tuple(map(self.memoization.__getitem__, formula.args()))
        if arguments != formula.args():
            self.memoization[formula] = self.functions[formula.node_type()](formula, args=list(arguments))
        else:  # most terms do not change, and building a term anew is slow
            self.memoization[formula] = formula


class Replacement(Abstraction):
    """Substitution from the symbols upwards: after its operands are replaced, a term is replaced too if the new term is
    among the `changes`. More changes may be added later."""

    def __init__(self, environment: Environment, changes: Mapping[FNode, FNode]) -> None:
        super().__init__(environment, changes)
        self.changes = changes

    def _compute_node_result(self, formula: FNode, **kwargs: Any) -> None:
        super()._compute_node_result(formula, **kwargs)
        changed, seen = self.memoization[formula], set[FNode]()
        while changed in self.changes and changed not in seen:
            seen.add(changed)
            changed = self.changes[changed]
        self.memoization[formula] = changed


def conjuncts(term: FNode) -> list[FNode]:
    """The conjuncts of a term, nested conjunctions flattened."""
    parts, waiting = [], [term]  # no recursion: a conjunction of n terms may be nested n deep
    while waiting:
        part = waiting.pop()
        if part.is_and():
            waiting += reversed(part.args())
        else:
            parts.append(part)
    return parts


def symbols_of(terms: Iterable[FNode], leaves: Container[FNode] = ()) -> list[FNode]:
    """The symbols of terms, in the order of their first occurrence. Symbols that occur only within `leaves` are left
    out."""
    waiting, seen = list(terms)[::-1], dict[FNode, None]()
    while waiting:
        node = waiting.pop()
        if node not in seen:
            seen[node] = None
            waiting += () if node in leaves else reversed(node.args())
    return [node for node in seen if node.is_symbol()]


def linked(parts: Sequence[FNode], goal: Sequence[FNode]) -> list[FNode]:
    """The terms of `parts` that share a symbol with the goal, directly or through other terms of `parts`. Terms linked
    through fewer other terms come first."""
    known = {symbol for term in goal for symbol in term.get_free_variables()}
    chosen, rest = list[FNode](), list(parts)
    while near := dict.fromkeys(part for part in rest if not known.isdisjoint(part.get_free_variables())):
        chosen += near
        rest = [part for part in rest if part not in near]
        known.update(*(part.get_free_variables() for part in near))
    return chosen


def renamed(environment: Environment, parts: Sequence[FNode]) -> tuple[tuple[FNode, ...], dict[FNode, FNode]]:
    """Terms with their symbols renamed in order of occurrence, so that terms of one form have one text; and the new
    symbol of each old symbol."""
    manager = environment.formula_manager
    names: dict[FNode, FNode] = {}
    for symbol in symbols_of(parts):
        kind = symbol.get_type()
        width = "" if kind.is_bool_type() else kind.width
        names[symbol] = manager.Symbol(f"v{len(names):03}w{width}", kind)
    return tuple(map(Abstraction(environment, names), parts)), names
