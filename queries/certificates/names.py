"""The names of the files of certificates."""

LOG, TERMS = "log.json", "terms.smt2"  # the rules by which theorems were made, and the terms that these name
UNIT = "unit.yaml"  # the unit that theorems are about
CLAIM = "claim.yaml"
QUESTION, LEFT, RIGHT = "question.json", "left.yaml", "right.yaml"  # two sides agree
LEFT_PLAN, RIGHT_PLAN = "left.plan.yaml", "right.plan.yaml"  # two plans
DESIGN = "design.json"  # the netlist of a design, which is compared with left.yaml
PROPERTY, PLANS = "property.json", "plans.json"  # a unit has a property; two plans are equal
WITNESS = "witness.json"  # an input that refutes a question, or decides a claim
COVER = "cover.json"  # no input meets some cases
PLAN = "bounded.plan.yaml"  # the plan that has the bounds
#: files that say what is proved: one of them, or none for bounds of a unit, or a claim with the input that decides it
STATING = (WITNESS, CLAIM, QUESTION, PROPERTY, PLANS, PLAN, COVER)
#: every file of a certificate beside its manifest: the names, and the patterns of names of which there are several
OTHERS = (LOG, TERMS, UNIT, CLAIM, QUESTION, LEFT, RIGHT, DESIGN, PROPERTY, PLANS, "*.plan.yaml", "unit-*.yaml", COVER,
          WITNESS)  # fmt: skip
SUFFIXES = ("smt2", "cnf", "drat")
NAMES = (*OTHERS, *(f"lemma-*.{end}" for end in SUFFIXES))
