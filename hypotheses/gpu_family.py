"""The instructions of one GPU as the candidates for a device."""

from __future__ import annotations

from mmaprobe.hypotheses.family import Family, point_of
from mmaprobe.smtmodel.base.errors import InputError
from mmaprobe.smtmodel.evaluate.model import Model
from mmaprobe.smtmodel.tables.gpus import architecture_of, gpu_named
from mmaprobe.smtmodel.tables.instructions import INSTRUCTIONS
from mmaprobe.smtmodel.tables.reference import parse_reference
from mmaprobe.smtmodel.units.unit_files import units_of


def gpu_family(name: str, asked: Model) -> Family | None:
    """The instructions of a GPU with the formats, length and scale factors of a model; None if `name` is no GPU.

    Raises NotModelledError for a GPU whose architecture is not modelled, and InputError for a GPU without such an
    instruction.
    """
    arch, known = architecture_of(name), gpu_named(name)
    if arch is None or known is None:
        return None
    rows = [parse_reference(row.reference) for row in INSTRUCTIONS.values() if row.arch == arch]
    if not rows and units_of(arch):
        raise InputError(f"the instructions of {known[0]} ({arch}) are unit files, not candidates of a family: "
                         "without the name, given formats and length, `identify` builds the unit")  # fmt: skip
    fitting = [model for model in rows if _signature(model) == _signature(asked)]
    if not fitting:
        formats = " ".join(fmt.name for fmt in (asked.a, asked.b, asked.c, asked.d))
        raise InputError(f"{known[0]} ({arch}) has no instruction on {formats} with K = {asked.length}: "
                         f"`mmaprobe list {known[0]}` shows those it has")  # fmt: skip
    return Family(known[0], fitting[0], tuple(map(point_of, fitting)), f"the instructions of {known[0]}")


def _signature(model: Model) -> tuple[object, ...]:
    """The formats, length and scale factors that a vector must have to fit a model; results of e8m13 are f32
    patterns."""
    return (model.a, model.b, model.c, model.d.width, model.length, model.scale, model.scale and model.scale_block)
