"""What is to be believed is listed: every rule, and all that the kernel and its rules are made of."""

from __future__ import annotations

from mmaprobe.queries.kernel import lemmas
from mmaprobe.queries.kernel.bounds import enclosures, induction
from mmaprobe.queries.kernel.equality import rewriting
from mmaprobe.queries.kernel.theorem import RULES
from tests import trusted
from tests.package.test_layout import imports
from tests.places import ROOT
from tests.trusted import (
    ASKED,
    BOUNDS,
    COVERING,
    CUTTING,
    KERNEL,
    LIMIT,
    PAGE,
    PARTS,
    REWRITING,
    ROWS,
    RULED,
    SAME_PLANS,
    SHARES,
    SHOWN,
    TOGETHER,
    size,
)

MODULES = (enclosures, induction, lemmas, rewriting)


def module(file: str) -> str:
    return f"mmaprobe.{file.removesuffix('.py').replace('/', '.')}"


def test_the_table_is_up_to_date() -> None:
    assert PAGE.read_text(encoding="utf-8") == trusted.page(), "python -m tests.trusted writes it"


def test_every_rule_is_listed() -> None:
    listed = {module(file) for part in RULED for file in part.files}
    assert {one.__name__ for one in MODULES} <= listed
    assert {rule.__module__ for rule in RULES.values()} <= listed
    rules = [path for path in (ROOT / "queries").rglob("*.py") if "\n@rule\n" in path.read_text(encoding="utf-8")]
    assert {module(str(path.relative_to(ROOT))) for path in rules} <= listed


def test_the_kernel_and_its_rules_import_nothing_that_is_not_listed() -> None:
    listed = {module(file) for part in PARTS for file in part.files} | set(SHOWN)
    waiting, seen = (
        [
            module(file)
            for part in RULED
            if part not in (COVERING, ASKED, SHARES, TOGETHER, ROWS, SAME_PLANS)
            for file in part.files
        ],
        set[str](),
    )
    while waiting:
        name = waiting.pop()
        if name not in seen:
            seen.add(name)
            waiting += imports()[name]
    assert seen <= listed


def test_the_kernel_with_the_rules_of_one_kind_is_small() -> None:
    assert size(KERNEL, BOUNDS)[1] < LIMIT
    assert size(KERNEL, REWRITING, CUTTING)[1] < LIMIT
