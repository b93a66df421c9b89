"""Plans as files of a certificate, with the files of their units."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import yaml

from mmaprobe.queries.certificates.names import numbered
from mmaprobe.queries.certificates.questions import read_model
from mmaprobe.queries.certificates.sat import CertificateError
from mmaprobe.smtmodel.base.errors import ParameterError
from mmaprobe.smtmodel.evaluate.model import Model
from mmaprobe.smtmodel.plans import Plan
from mmaprobe.smtmodel.plans.planfile import parse_plan
from mmaprobe.smtmodel.plans.plantext import plan_text
from mmaprobe.smtmodel.units.unitfile import unit_text


def plan_texts(plans: Mapping[str, Plan], units: dict[str, str] | None = None) -> dict[str, str]:
    """The texts of plan files and of their unit files, by file name. `plans`: the plans, by file name; `units`: the
    names of unit files by their texts, to which those of the plans' units are added. Raises CertificateError if a plan
    cannot be written as a file."""
    units = {} if units is None else units
    texts: dict[str, str] = {}
    for name, plan in plans.items():
        files = {model.reference: numbered(units, unit_text(model.unit)) for model in plan.models}
        if len(files) < len(plan.models):
            raise CertificateError(f"two units of {plan.reference} have one name")
        try:
            data = yaml.safe_load(plan_text(plan))
        except ParameterError as error:
            raise CertificateError(f"{plan.reference} cannot be written as a file: {error}") from None
        data["units"] = {unit: files[reference] for unit, reference in data["units"].items()}
        texts[name] = yaml.safe_dump(data, sort_keys=False)
    return texts | {file: text for text, file in units.items()}


def read_plan(texts: Mapping[str, str], name: str) -> Plan:
    """The plan of a file of a certificate, with its units from files of the same certificate. Raises MmaprobeError if a
    file is malformed, and OSError if one cannot be read."""

    def model_of(file: str) -> Model:
        if file != Path(file).name or file not in texts:
            raise ParameterError("units", f"{file!r} is not in the folder")
        return read_model(texts, file)

    return parse_plan(texts[name], name, model_of)
