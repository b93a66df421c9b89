"""Whether shorter units are those of an instruction of the table with fewer products, which no unit file says."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from queries.certificates.magnitudes import FaultError, need
from queries.kernel.statements import paddings
from queries.properties.asked import plain
from smtmodel.dot import Model
from smtmodel.errors import MmaprobeError
from smtmodel.reference import parse_reference, with_parameters
from smtmodel.unitfile import parse_unit, unit_text


def padding_fault(stated: Mapping[str, Any], whole: Any, shorter: Sequence[Any], every: bool) -> str:
    """Why the units, as plain data, are not the instruction that is stated and those with the lengths stated; empty if
    they are. `every`: there is no other length."""
    reference, lengths = stated["model"], stated["lengths"]
    try:
        need(isinstance(reference, str) and ".yaml" not in reference and not reference.startswith("plan:"),
             f"{reference} is no instruction of the table")  # fmt: skip
        model = parse_reference(reference)
        need(_plain(model) == whole, f"the unit is not {reference} of the table")
        possible = [problem.left.length for problem in paddings(model)]
        need(set(lengths) <= set(possible), f"{reference} has other lengths")
        need(not every or sorted(lengths) == possible, "nothing is said of some lengths")
        need(len(lengths) == len(shorter), "the shorter units are of other lengths")
        for length, unit in zip(lengths, shorter, strict=True):
            own = _plain(with_parameters(model, {"length": length}))
            need(unit == own, f"the shorter unit is not {reference} with length {length}")
    except (FaultError, MmaprobeError) as error:
        return str(error)
    return ""


def _plain(model: Model) -> Any:
    """A unit as its file gives it back."""
    return plain(parse_unit(unit_text(model.unit), model.reference))
