"""Rules by hand: a file in YAML that says which plan computes which element of a kernel's product.

    rules: my-kernel
    shapes: {M: 1..64, N: 1..512, K: 1..4096}
    elements:
    - {M: 1..16, K: 1024.., plan: split.yaml}
    - {plan: one-chain.yaml}

The first entry of `elements` whose conditions hold says the plan. A condition is a number, or the first and the last
number with two dots between them; one of the numbers may be missing.
"""

from __future__ import annotations

import re
from pathlib import Path

from mmaprobe.queries.plans.planmap import PlanMap, Reach, Within
from mmaprobe.queries.plans.rules import Feature, Kind
from mmaprobe.smtmodel.base.errors import MmaprobeError, nearest
from mmaprobe.smtmodel.base.yamlfile import Strict, YamlFile, read_yaml_file, validate
from mmaprobe.smtmodel.plans import Plan
from mmaprobe.smtmodel.plans.plan_files import beside
from mmaprobe.smtmodel.tables.reference import parse_plan_path

_SPAN = re.compile(r"(?P<low>[0-9]{1,9})?\s*\.\.\s*(?P<high>[0-9]{1,9})?|(?P<one>[0-9]{1,9})")
Ends = tuple[int | None, int | None]
SIDES = ("M", "N", "K")
#: the key of a condition -> kind and side of the feature; `_REST` matches the further keys, such as `M % 8`
KEYS: dict[str, tuple[Kind, str]] = {
    **{side: ("number", side) for side in (*SIDES, "M * N", "M * N * K")},
    "row": ("place", "rows"),
    "column": ("place", "columns"),
}
_REST = re.compile(r"([MNK]) % ([1-9][0-9]{0,8})")
PLAN = "plan"


class RuleFile(Strict):
    """The keys of a file of rules by hand."""

    rules: str
    about: str = ""
    shapes: dict[str, int | str]
    elements: list[dict[str, int | str]]


def read_rules(path: Path) -> PlanMap:
    """The rules of a file. Raises InputError with file, line and key."""
    file = read_yaml_file(path)
    data = validate(file, RuleFile)
    if missing := [side for side in SIDES if side not in data.shapes]:
        raise file.error(("shapes",), f"{', '.join(missing)} is missing: the shapes that the kernel takes")
    window = []
    for side, text in data.shapes.items():
        if side not in SIDES:
            raise file.error(("shapes", side), f"known: {', '.join(SIDES)}")
        low, high = span(text, file, ("shapes", side))
        if high is None:
            raise file.error(("shapes", side), "a last number is needed, as in 1..64")
        window.append(Within(Feature("number", side), ((max(low or 1, 1), high),)))
    if not data.elements:
        raise file.error(("elements",), "a rule is needed, as {plan: FILE.yaml}")
    rules = [_rule(entry, file, number, path.parent) for number, entry in enumerate(data.elements)]
    shapes = tuple(window)
    for number, rule in enumerate(rules):
        formats = [(plan.a, plan.b, plan.d, plan.addend) for plan in (rules[0].plan, rule.plan)]
        if formats[0] != formats[1]:
            raise file.error(("elements", number, PLAN), "other formats, or another addend, than the first plan has")
    return PlanMap(str(path), tuple(Reach((*shapes, *rule.limits), rule.plan) for rule in rules))


def _rule(entry: dict[str, int | str], file: YamlFile, number: int, folder: Path) -> Reach:
    at: tuple[str | int, ...] = ("elements", number)
    if PLAN not in entry:
        raise file.error(at, "plan is missing: the name or the file of a plan")
    limits = [
        Within(_feature(name, file, (*at, name)), (span(text, file, (*at, name)),))
        for name, text in entry.items()
        if name != PLAN
    ]
    return Reach(tuple(limits), _plan(str(entry[PLAN]), file, (*at, PLAN), folder))


def _plan(text: str, file: YamlFile, at: tuple[str | int, ...], folder: Path) -> Plan:
    try:
        return parse_plan_path(beside(folder, text))
    except MmaprobeError as error:
        raise file.error(at, str(error)) from None


def _feature(name: str, file: YamlFile, at: tuple[str | int, ...]) -> Feature:
    rest = _REST.fullmatch(name)
    if rest is not None:
        return Feature("rest", rest[1], int(rest[2]))
    if name not in KEYS:
        near = nearest(name, KEYS)
        hint = f"did you mean {near!r}?" if near else f"known: {', '.join(KEYS)}, M % S, N % S, K % S, {PLAN}"
        raise file.error(at, f"unknown key; {hint}")
    return Feature(*KEYS[name])


def span(text: int | str, file: YamlFile, at: tuple[str | int, ...]) -> Ends:
    """The first and the last number of a condition; None: no limit. Raises InputError."""
    ends = span_of(str(text))
    if ends is None:
        raise file.error(at, f"{text!r}: a number from 0 on is needed, or the first and the last one, as in 1..64")
    return ends


def span_of(text: str) -> Ends | None:
    """The first and the last number of a condition, each None without a limit; None if the text is no condition."""
    match = _SPAN.fullmatch(text.strip())
    if match is None:
        return None
    low, high = (
        None if end is None else int(end) for end in (match["one"] or match["low"], match["one"] or match["high"])
    )
    if low is None or high is None:
        return None if low is high else (low, high)
    return (low, high) if low <= high else None
