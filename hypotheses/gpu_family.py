"""The instructions of one GPU as the candidates for a device."""

from __future__ import annotations

from mmaprobe.hypotheses.family import Family, family_named, formats_of, point_of
from mmaprobe.smtmodel.base.errors import InputError
from mmaprobe.smtmodel.evaluate.model import Model
from mmaprobe.smtmodel.tables.gpus import architecture_of, gpu_named
from mmaprobe.smtmodel.tables.instructions import INSTRUCTIONS
from mmaprobe.smtmodel.tables.reference import parse_reference
from mmaprobe.smtmodel.units.unit_files import units_of


def own_family(name: str) -> Family | None:
    """The family with an id, or of a file by its path; None for a GPU, whose instructions are candidates only for given
    formats. Raises UnknownNameError or InputError."""
    return None if gpu_named(name) else family_named(name)


def gpu_family(name: str, asked: Model) -> Family:
    """The instructions of a GPU with the formats, length and scale factors of a model.

    Raises NotModelledError for a GPU whose architecture is not modelled, and InputError for a GPU without such an
    instruction.
    """
    known = gpu_named(name)
    assert known is not None, f"{name} is no GPU"
    gpu, arch = known
    architecture_of(name)  # raises NotModelledError
    rows = [parse_reference(row.reference) for row in INSTRUCTIONS.values() if row.arch == arch]
    if not rows and units_of(arch):
        raise InputError(f"the instructions of {gpu} ({arch}) are unit files, not candidates of a family: "
                         "without the name, given formats and length, `identify` builds the unit")  # fmt: skip
    fitting = [model for model in rows if _signature(model) == _signature(asked)]
    if not fitting:
        formats = " ".join(fmt.name for fmt in (asked.a, asked.b, asked.c, asked.d))
        raise InputError(f"{gpu} ({arch}) has no instruction on {formats} with K = {asked.length}: "
                         f"`mmaprobe list {gpu}` shows those it has")  # fmt: skip
    return Family(gpu, fitting[0], tuple(map(point_of, fitting)), f"the instructions of {gpu}")


def _signature(model: Model) -> tuple[object, ...]:
    """The formats, length and scale factors that a vector must have to fit a model."""
    return (*formats_of(model), model.length, model.scale, model.scale and model.scale_block)
