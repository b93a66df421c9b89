"""The families by name, and their members. A member is a family with a value for each of the family's parameters.

The rows of the instruction table are members; `@name=value` after a reference changes a parameter of a member; the
grids of family files are sets of members.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from inspect import Parameter, signature
from typing import Any

from mmaprobe.smtmodel.arithmetic.formats import FORMATS, Format
from mmaprobe.smtmodel.base.errors import ParameterError, UnknownNameError
from mmaprobe.smtmodel.families import functions
from mmaprobe.smtmodel.families.parameters import (
    FAMILIES,
    FAMILY,
    OUTPUTS,
    PARAMETERS,
    change_hint,
    check_parameter,
    format_parameter,
    letter_hint,
    parse_parameter,
)
from mmaprobe.smtmodel.families.parts import ParameterGroup
from mmaprobe.smtmodel.families.sketch import Expression
from mmaprobe.smtmodel.units.unit import Unit


class FamilyFunction(functions.Family):
    """A family with its parameters and its members."""

    @cached_property
    def _groups(self) -> dict[str, tuple[Callable[..., ParameterGroup], tuple[str, ...]]]:
        """The groups of parameters in the function's signature by name, each as its class and its parameters."""
        items = signature(self.function, eval_str=True).parameters.values()
        return {each.name: (each.annotation, tuple(signature(each.annotation).parameters))
                for each in items if _is_group(each)}  # fmt: skip

    @cached_property
    def _single(self) -> tuple[str, ...]:
        """The parameters that are in no group."""
        return tuple(name for name in signature(self.function).parameters if name not in self._groups)

    @cached_property
    def defaults(self) -> Mapping[str, Any]:
        """The family's parameters with their defaults. `length` and `block` have none (`Parameter.empty`); a missing
        block is the length."""
        defaults: dict[str, Any] = {}
        for item in signature(self.function, eval_str=True).parameters.values():
            every = signature(item.annotation).parameters.values() if _is_group(item) else (item,)
            defaults |= {each.name: each.default for each in every}
        return defaults

    @property
    def takes(self) -> tuple[str, ...]:
        return tuple(self.defaults)

    def completed(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """The values, completed by defaults. Raises ParameterError for a parameter that the family does not take."""
        if not values.keys() <= self.defaults.keys():
            for name in values:
                self.check_takes(name)
        full = {**self.defaults, **values}
        if full.get("block") is Parameter.empty:
            full["block"] = full["length"]
        return full

    def __call__(self, **values: Any) -> Member:
        """The member with these values; parameters that are not given have their defaults. Raises ParameterError."""
        return Member(self.name, self.completed(values))

    def expression(self, values: Mapping[str, Any]) -> Expression:
        """The expression of the member with a value for each parameter. Raises ParameterError."""
        for name in self._single:
            check_parameter(name, values[name])
        groups = {name: _part(kind, *(values[each] for each in names)) for name, (kind, names) in self._groups.items()}
        return self.function(**groups, **{name: values[name] for name in self._single})

    def idle(self, values: Mapping[str, Any]) -> tuple[str, ...]:
        """The parameters without effect, for these values of the others in their groups."""
        parts = [_part(group, *(values[each] for each in names)) for group, names in self._groups.values()]
        return tuple(name for part in parts for name in part.idle)

    def check_takes(self, name: str) -> None:
        """Raises ParameterError for a parameter of other families, UnknownNameError for an unknown one."""
        if name not in self.defaults:
            if name not in PARAMETERS:
                hint = letter_hint(name) or change_hint(name, self.takes)
                raise UnknownNameError("parameter", name, self.takes, hint)
            raise ParameterError(name, self.refusal(name))

    def refusal(self, name: str) -> str:
        """The message for a parameter that the family does not take: the families that take it, else the parameters
        that this family takes."""
        others = [other.name for other in FUNCTIONS.values() if name in other.defaults]
        if not others:
            return f"{self.name} does not take it; it takes {', '.join(self.takes)}"
        return f"{self.name} does not take it; {', '.join(others)} {'takes' if len(others) == 1 else 'take'} it"


def _is_group(item: Parameter) -> bool:
    return isinstance(item.annotation, type) and issubclass(item.annotation, ParameterGroup)


@lru_cache(maxsize=4096, typed=True)  # typed, as 1 == True
def _part(group: Callable[..., ParameterGroup], *values: Any) -> ParameterGroup:
    return group(*values)


FUNCTIONS = {row.name: FamilyFunction(*row) for row in functions.FAMILIES}
assert tuple(FUNCTIONS) == FAMILIES


@dataclass(frozen=True)
class Member:
    """A family with a value for each of its parameters, and the expression of these values. Raises ParameterError."""

    family: str
    values: Mapping[str, Any]
    expression: Expression = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "expression", FUNCTIONS[self.family].expression(self.values))

    @property
    def known(self) -> dict[str, Any]:
        """The values of the member's parameters and of the parameters that its family fixes. `block` is `group` for a
        family without blocks."""
        values = {**FUNCTIONS[self.family].fixed, **self.values}
        return {"block": values.get("group"), **values}

    @property
    def key(self) -> tuple[Any, ...]:
        return (self.family, *self.values.values())

    def kept(self, family: str) -> dict[str, Any]:
        """A value for each parameter of a family: the member's own where it has one, else the default."""
        function, known = FUNCTIONS[family], self.known
        return function.completed({name: known[name] for name in function.defaults if name in known})

    def text(self, name: str) -> str:
        """The text in a reference of a parameter's value, or of the family's name."""
        if name == FAMILY:
            return self.family
        value = self.values[name]
        return f"{value:x}" if PARAMETERS[name].pattern and value is not None else format_parameter(value)

    def unit(self, a: Format, b: Format, c: Format, reference: str = "") -> Unit:
        return self.expression.unit(a, b, c, reference)

    def without_idle(self) -> Member:
        """The member with an equivalent expression in which parameters without effect have their defaults."""
        function = FUNCTIONS[self.family]
        idle = set(function.idle(self.values))
        if self.expression.rounding.zero != "ieee":  # the sums of such a unit do not depend on the signs of zeros
            idle.add("input_zeros")
        changes = {name: function.defaults[name] for name in idle if self.values[name] != function.defaults[name]}
        return Member(self.family, {**self.values, **changes}) if changes else self

    def apart(self, other: Member) -> list[tuple[str, str, str]]:
        """The parameters with effect in which another member of the same family differs, each as its name, this
        member's value and the other's. Empty for members of different families."""
        if self.family != other.family:
            return []
        one, two = self.without_idle(), other.without_idle()
        return [(name, one.text(name), two.text(name)) for name in one.values if one.values[name] != two.values[name]]

    def changed(self, changes: Mapping[str, Any]) -> Member:
        """The member with changed parameters. `changes`: new values by parameter, as text or YAML values. If the family
        changes, parameters of both families keep their values.

        A shorter length shortens the block unless `changes` has a block; a list of steps (block_order) decides the
        block; a changed output format changes the NaN result to NVIDIA's in that width, unless `changes` has `nan`.
        Raises UnknownNameError and ParameterError.
        """
        given = dict(changes)
        name = given.pop(FAMILY, self.family)
        check_parameter(FAMILY, name)
        function, known = FUNCTIONS[name], self.known
        if known.get("scale_format") is not None and "scale_format" not in function.defaults:
            raise ParameterError(FAMILY, f"{name} takes no scale factors, which the unit has")
        for each in given:
            function.check_takes(each)
        parsed = {each: parse_parameter(each, value) for each, value in given.items()}
        for each, value in parsed.items():
            check_parameter(each, value)
        if "block" in function.defaults:
            length, order = parsed.get("length"), parsed.get("block_order")
            if isinstance(order, tuple) and order:
                parsed.setdefault("block", len(order[0]))
            if isinstance(length, int):
                parsed.setdefault("block", min(length, known["block"]))
        if known["nan"] is not None and "output" in parsed:
            parsed.setdefault("nan", nvidia_nan(FORMATS[parsed["output"]]) if parsed["output"] in OUTPUTS else None)
        return function(**{**self.kept(name), **parsed})


def nvidia_nan(fmt: Format) -> int:
    """NVIDIA's canonical NaN: all ones below the sign (Xie et al. 2026, section 4.2). Patterns of e8m13 are those of
    f32."""
    return (1 << (fmt.width - 1)) - 1
