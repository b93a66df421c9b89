"""The name of a model in statements."""

from __future__ import annotations

from contextlib import suppress

from mmaprobe.smtmodel.base.errors import MmaprobeError
from mmaprobe.smtmodel.evaluate.model import Model
from mmaprobe.smtmodel.tables.instructions import INSTRUCTIONS
from mmaprobe.smtmodel.tables.reference import parse_reference


def model_text(model: Model) -> str:
    """The reference of a model; if it does not name a row of the table with the model's unit, also a digest of the
    unit. So the text of one unit never stands for another unit."""
    base = model.instruction
    with suppress(MmaprobeError):
        if base in INSTRUCTIONS and parse_reference(model.reference).unit == model.unit:
            return model.reference
    return f"{model.reference} (unit {model.unit.digest})"
