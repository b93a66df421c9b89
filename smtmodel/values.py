"""Values that are made in great numbers: frozen where types are checked, and plain objects where the program runs.

The constructor of a frozen dataclass sets each field through `object.__setattr__`, which takes four times as long.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

__all__ = ["plain_value"]

if TYPE_CHECKING:
    from dataclasses import dataclass as plain_value
else:
    from dataclasses import dataclass

    def plain_value(*, frozen: bool):
        """As `dataclass(frozen=True)`, and as equal and hashable, but that nothing stops a field from being set."""
        assert frozen
        return dataclass(unsafe_hash=True)
