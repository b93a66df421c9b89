"""The names of the files of certificates."""

LOG, TERMS = "log.json", "terms.smt2"  # by which rules theorems were made, and the terms that it names
UNIT = "unit.yaml"  # what theorems are about
CLAIM = "claim.yaml"
QUESTION, LEFT, RIGHT = "question.json", "left.yaml", "right.yaml"  # whether two sides agree
LEFT_PLAN, RIGHT_PLAN = "left.plan.yaml", "right.plan.yaml"  # two plans
PROPERTY, PLANS = "property.json", "plans.json"  # that a unit has a property; that two plans are equal
WITNESS = "witness.json"  # an input that refutes what is asked, or decides a claim
COVER = "cover.json"  # that no input reaches some outcomes
PLAN = "bounded.plan.yaml"  # the plan that bounds are about
#: what says what is proved: one of them, or none for bounds of a unit; an input that decides a claim stands beside it
STATING = (WITNESS, CLAIM, QUESTION, PROPERTY, PLANS, PLAN, COVER)
#: every file of a certificate beside its manifest: the names, and the patterns of names of which there are several
OTHERS = (LOG, TERMS, UNIT, CLAIM, QUESTION, LEFT, RIGHT, PROPERTY, PLANS, "*.plan.yaml", "unit-*.yaml", COVER,
          WITNESS)  # fmt: skip
SUFFIXES = ("smt2", "cnf", "drat")
NAMES = (*OTHERS, *(f"lemma-*.{end}" for end in SUFFIXES))
