"""A unit is an expression: families and their parameters stay behind their own files, the tables and the reading of
references and of family files."""

from __future__ import annotations

import re

from mmaprobe.smtmodel.families.parameters import FAMILIES, FAMILY, PARAMETERS
from tests.package.test_layout import LEVELS as PACKAGES
from tests.places import ROOT

#: the families, the tables that call them, and the parsing of `@name=value`, of family files and of questions
OWNERS = {f"smtmodel/{name}.py" for name in ("families/parts", "families/sketch", "families/functions",
                                             "families/member", "families/parameters", "tables/nvidia", "tables/amd",
                                             "tables/arm", "tables/riscv", "tables/instruction", "tables/reference",
                                             "evaluate/model")}  # fmt: skip
OWNERS |= {"hypotheses/family.py", "hypotheses/retarget.py"}
KNOWS = re.compile(rf"smtmodel\.families\.(?!parameters\b)|\.member\.|\bmember_of\b|\b{'|'.join(FAMILIES[:-2])}\b")


def files() -> dict[str, str]:
    """The text of every module by its path."""
    found = [path for package in PACKAGES for path in (ROOT / package).rglob("*.py")]
    return {str(path.relative_to(ROOT)): path.read_text(encoding="utf-8") for path in found}


def test_who_knows_families() -> None:
    knowing = {name for name, text in files().items() if KNOWS.search(text)}
    assert knowing - OWNERS == set()


def test_no_object_has_the_parameters_of_all() -> None:
    """The bag of earlier versions is gone, and no class has a field for each."""
    for name, text in files().items():
        assert not re.search(r"\bAccumulator\b", text), name
        for body in re.split(r"^class ", text, flags=re.MULTILINE)[1:]:
            fields = {parameter for parameter in PARAMETERS if re.search(rf"^    {parameter}: ", body, re.MULTILINE)}
            assert len(fields - {FAMILY}) < 8, name
