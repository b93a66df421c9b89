"""The name of a model in statements."""

from __future__ import annotations

from contextlib import suppress

from mmaprobe.smtmodel.base.errors import MmaprobeError
from mmaprobe.smtmodel.evaluate.model import Model
from mmaprobe.smtmodel.tables.instructions import INSTRUCTIONS
from mmaprobe.smtmodel.tables.reference import parse_reference


def model_text(model: Model) -> str:
    """The reference of a model, with a digest of its unit unless the reference names a row of the table with this unit.
    So no reference stands for another unit than its own."""
    base = model.instruction
    with suppress(MmaprobeError):
        if base in INSTRUCTIONS and parse_reference(model.reference).unit == model.unit:
            return model.reference
    return f"{model.reference} (unit {model.unit.digest})"
