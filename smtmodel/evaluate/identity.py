"""The text of a value by which stored results and certificates name it: all that is computed, where `repr` of a model
is two lines for people."""

from __future__ import annotations

from dataclasses import fields, is_dataclass

from mmaprobe.smtmodel.evaluate.model import Model
from mmaprobe.smtmodel.nodes.node import structure


def identity_text(value: object) -> str:
    """As dataclasses write themselves, but of every model its expression."""
    if isinstance(value, Model):
        return f"Model({value.reference!r}, {value.unit.operands!r}, {structure(value.unit.result)!r})"
    if isinstance(value, tuple) and type(value) is tuple:
        return f"({', '.join(map(identity_text, value))}{',' if len(value) == 1 else ''})"
    generated = hasattr(type(value).__repr__, "__wrapped__")  # that of dataclass; one of its own stays
    if not is_dataclass(value) or isinstance(value, type) or not generated:
        return repr(value)
    later = getattr(value, "later", ())  # what a node or partition has had since results were stored
    given = [(part, getattr(value, part.name)) for part in fields(value) if part.repr]
    told = [(part.name, own) for part, own in given if part.name not in later or own != part.default]
    parts = (f"{name}={identity_text(own)}" for name, own in told)
    return f"{type(value).__qualname__}({', '.join(parts)})"
