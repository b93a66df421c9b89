"""Substitution in terms, for cutting and merging."""

from __future__ import annotations

from typing import Any

from pysmt.fnode import FNode
from pysmt.substituter import MGSubstituter


class Cutter(MGSubstituter):  # type: ignore[misc]
    """Substitution that does not look below what it replaces: a cut takes a whole cone away."""

    def _push_with_children_to_stack(self, formula: FNode, **kwargs: Any) -> None:
        replaced = kwargs["substitutions"].get(formula)
        if replaced is None:
            super()._push_with_children_to_stack(formula, **kwargs)
        else:
            self.memoization[formula] = replaced
