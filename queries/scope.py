"""Which accumulators an argument is about: a template, and the parameters that may differ from it.

A parameter that is not named as free is compared, so that one that nobody thought of is refused, not overlooked.
"""

from __future__ import annotations

from collections.abc import Set
from dataclasses import dataclass

from smtmodel.accumulator import PARAMETERS, Accumulator, format_parameter
from smtmodel.errors import ParameterError

#: parameters that nothing reads unless another one has a value other than its default
UNREAD = frozenset(
    {"product_rounding", "late_fraction_bits", "late_rounding", "late_small_addend", "group", "scale_block"}
)


@dataclass(frozen=True)
class Scope:
    """The accumulators that differ from `template` in `free` parameters alone; `about` ends what is said of others."""

    template: Accumulator
    free: Set[str]
    about: str

    def outside(self, accumulator: Accumulator) -> list[str]:
        """The parameters whose values are outside."""
        names = [name for name in PARAMETERS if name not in self.free]
        return [name for name in names if getattr(accumulator, name) != getattr(self.template, name)]

    def check(self, accumulator: Accumulator) -> None:
        """Raises ParameterError with the name of the first parameter that is outside."""
        for name in self.outside(accumulator):
            value, wanted = (format_parameter(getattr(one, name)) for one in (accumulator, self.template))
            raise ParameterError(name, f"{value}, where it must be {wanted}: {self.about}")
