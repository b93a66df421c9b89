"""Classes of values of which many are made: frozen dataclasses for the type checker, unfrozen ones at run time.

The constructor of a frozen dataclass sets each field through `object.__setattr__`, which takes four times as long as an
assignment; and before Python 3.12 `cached_property` takes a lock for each value that it computes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

__all__ = ["kept_property", "plain_value"]

if TYPE_CHECKING:
    from dataclasses import dataclass as plain_value
    from functools import cached_property as kept_property
else:
    from dataclasses import dataclass

    def plain_value(*, frozen: bool):
        """`dataclass(frozen=True)`, with the same equality and hash, but without the check that forbids assignments."""
        assert frozen
        return dataclass(unsafe_hash=True)

    class _Kept:
        def __init__(self, function):
            self._function, self.__doc__ = function, function.__doc__

        def __set_name__(self, owner, name):
            self._name = name

        def __get__(self, instance, owner=None):
            if instance is None:
                return self
            value = instance.__dict__[self._name] = self._function(instance)
            return value

    kept_property = _Kept
