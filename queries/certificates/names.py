"""The names of the files of certificates."""

import re

LOG, TERMS = "log.json", "terms.smt2"  # the rules that made the theorems; the terms that the log names
UNIT = "unit.yaml"  # the unit that theorems are about
CLAIM = "claim.yaml"
QUESTION, LEFT, RIGHT = "question.json", "left.yaml", "right.yaml"  # the two sides of an agreement
LEFT_PLAN, RIGHT_PLAN = "left.plan.yaml", "right.plan.yaml"  # two plans
DESIGN = "design.json"  # the netlist of a design, compared with left.yaml
PROPERTY, PLANS = "property.json", "plans.json"  # a unit's property; the equality of two plans
PLAN_END = ".plan.yaml"  # of the file of any plan
NUMBERED = re.compile(r"unit-[0-9]+\.yaml")  # units that plans or claims name
#: the references of a claim to files of the folder
HELD = re.compile(rf"\./({NUMBERED.pattern}|part-[0-9]+{re.escape(PLAN_END)})")
WITNESS = "witness.json"  # an input that refutes a question, or decides a claim
COVER = "cover.json"  # cases that no input meets
PLAN = "bounded.plan.yaml"  # the plan of bounds
#: files with the statement that is proved. A certificate of a unit's bounds has none of these, a certificate of a claim
#: that an input decides has two (the claim and the input), and every other certificate has one.
STATING = (WITNESS, CLAIM, QUESTION, PROPERTY, PLANS, PLAN, COVER)
#: all files of a certificate but the manifest, README and lemmas: names, and patterns for kinds of several files
OTHERS = (LOG, TERMS, UNIT, CLAIM, QUESTION, LEFT, RIGHT, DESIGN, PROPERTY, PLANS, f"*{PLAN_END}", "unit-*.yaml", COVER,
          WITNESS)  # fmt: skip
SUFFIXES = ("smt2", "cnf", "drat")
NAMES = (*OTHERS, *(f"lemma-*.{end}" for end in SUFFIXES))


def numbered(units: dict[str, str], text: str) -> str:
    """The name of the file of a unit that a plan or a claim names, with this text. `units`: names by text, to which a
    new one is added."""
    return units.setdefault(text, f"unit-{len(units) + 1}.yaml")
