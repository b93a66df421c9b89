"""The text by which stored results and certificates identify a value: it has everything that is computed, while the
`repr` of a model is two lines for people."""

from __future__ import annotations

from dataclasses import fields, is_dataclass

from mmaprobe.smtmodel.evaluate.model import Model
from mmaprobe.smtmodel.nodes.node import structure


def identity_text(value: object) -> str:
    """The text of a value as dataclasses generate it, but with the expression of every model."""
    if isinstance(value, Model):
        return f"Model({value.reference!r}, {value.unit.operands!r}, {structure(value.unit.result)!r})"
    if isinstance(value, tuple) and type(value) is tuple:
        return f"({', '.join(map(identity_text, value))}{',' if len(value) == 1 else ''})"
    generated = hasattr(type(value).__repr__, "__wrapped__")  # by dataclass; a class's own `__repr__` is used
    if not is_dataclass(value) or isinstance(value, type) or not generated:
        return repr(value)
    later = getattr(value, "later", ())  # the fields of a node or partition that are newer than stored results
    given = [(part, getattr(value, part.name)) for part in fields(value) if part.repr]
    shown = [(part.name, own) for part, own in given if part.name not in later or own != part.default]
    parts = (f"{name}={identity_text(own)}" for name, own in shown)
    return f"{type(value).__qualname__}({', '.join(parts)})"
