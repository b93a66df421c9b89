"""Reads maps of libraries: those that `identify --gemm --json` writes, and rules by hand."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import cast

from mmaprobe.documents.identify import IdentifyGemm, IdentifyProduct, Limit
from mmaprobe.documents.reading import WrongDocumentError, read
from mmaprobe.queries.plans.planmap import PlanMap, Reach, Within
from mmaprobe.queries.plans.rulefile import read_rules
from mmaprobe.queries.plans.rules import Feature, Kind
from mmaprobe.smtmodel.base.errors import InputError
from mmaprobe.smtmodel.base.files import cannot_read
from mmaprobe.smtmodel.base.jsontext import parse_json
from mmaprobe.smtmodel.plans import Plan
from mmaprobe.smtmodel.plans.planfile import parse_plan
from mmaprobe.smtmodel.tables.reference import parse_reference

YAML = ".yaml"  # the suffix of files with rules by hand
WANTED = "what `identify --gemm --json` prints, nor a plan file, whose name ends in .yaml (`identify --gemm --save`)"


def read_map(path: Path) -> PlanMap | Plan:
    """The map in a file: a map of `identify --gemm`, rules by hand in a YAML file, or the first plan found for a
    recorded product. Raises InputError for another file, and for a file without a plan, or without a rule that is
    relied on."""
    if path.suffix == YAML:
        return read_rules(path)
    try:
        data = parse_json(path.read_bytes())
    except OSError as error:
        raise cannot_read(error, path) from None
    except ValueError as error:
        raise InputError(f"neither {WANTED}: {error}", str(path)) from None
    try:
        product = "rules" not in data and "looked_at" in data
        document: IdentifyGemm | IdentifyProduct = read(IdentifyProduct if product else IdentifyGemm, data)
        plans = {
            reference: parse_plan(text, f"{path}: {reference}", parse_reference)
            for reference, text in document.plans.items()
        }
        if isinstance(document, IdentifyProduct):
            return _of_product(plans, str(path))
        rules = tuple(
            Reach(tuple(map(_within, rule.limits)), plans[rule.plan or ""]) for rule in document.rules if rule.confirmed
        )
    except WrongDocumentError as error:
        raise InputError(f"{error}; neither {WANTED}", str(path), key=error.key) from None
    except (KeyError, TypeError, AttributeError):
        raise InputError(f"neither {WANTED}", str(path)) from None
    if not rules:
        raise InputError("a map without a rule that is relied on", str(path))
    return PlanMap(str(path), rules, document.layout or "nn")


def rules_of(path: Path) -> PlanMap:
    """The rules of a map, or rules by hand. Raises InputError as `read_map`, and for a recorded product, which has only
    one shape."""
    rules = read_map(path)
    if not isinstance(rules, PlanMap):
        raise InputError("one recorded product: a map of a function, or rules by hand, has many shapes", str(path))
    return rules


def _of_product(plans: Mapping[str, Plan], path: str) -> Plan:
    if not plans:
        raise InputError("no plan was found that gives the recorded product", path)
    return next(iter(plans.values()))


def _within(limit: Limit) -> Within:
    feature = Feature(cast(Kind, limit.kind), limit.of, limit.step, limit.turn)
    return Within(feature, tuple((low, high) for low, high in limit.spans) or ((limit.least, limit.most),))
