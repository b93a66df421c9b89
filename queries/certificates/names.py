"""The names of the files of certificates."""

LOG, TERMS = "log.json", "terms.smt2"  # the rules by which theorems were made; the terms that the log names
UNIT = "unit.yaml"  # the unit that theorems are about
CLAIM = "claim.yaml"
QUESTION, LEFT, RIGHT = "question.json", "left.yaml", "right.yaml"  # two sides agree
LEFT_PLAN, RIGHT_PLAN = "left.plan.yaml", "right.plan.yaml"  # two plans
DESIGN = "design.json"  # the netlist of a design, which is compared with left.yaml
PROPERTY, PLANS = "property.json", "plans.json"  # a unit has a property; two plans are equal
WITNESS = "witness.json"  # an input that refutes a question, or decides a claim
COVER = "cover.json"  # no input meets some cases
PLAN = "bounded.plan.yaml"  # the plan that has the bounds
#: files that say what is proved: a certificate has one of these, none for bounds of a unit, or both a claim and the
#: input that decides the claim
STATING = (WITNESS, CLAIM, QUESTION, PROPERTY, PLANS, PLAN, COVER)
#: every file of a certificate besides its manifest, README and lemmas: names, and patterns for kinds with several files
OTHERS = (LOG, TERMS, UNIT, CLAIM, QUESTION, LEFT, RIGHT, DESIGN, PROPERTY, PLANS, "*.plan.yaml", "unit-*.yaml", COVER,
          WITNESS)  # fmt: skip
SUFFIXES = ("smt2", "cnf", "drat")
NAMES = (*OTHERS, *(f"lemma-*.{end}" for end in SUFFIXES))
