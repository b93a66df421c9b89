"""The names of the files of certificates."""

TREE, UNIT = "tree.json", "unit.yaml"  # of a theorem
CHAIN, FACTS = "chain.json", "facts.smt2"  # of facts, each proved from earlier ones
CLAIM, ROWS = "claim.yaml", "rows.json"  # the claim that such facts prove; bounds of rows of numbers
QUESTION, LEFT, RIGHT = "question.json", "left.yaml", "right.yaml"  # whether two sides agree
LEFT_PLAN, RIGHT_PLAN = "left.plan.yaml", "right.plan.yaml"  # two plans
PROPERTY, PLANS = "property.json", "plans.json"  # of a unit, proved by the parts; that two plans are equal
FORMS = ("form-left", "form-right")  # parts: what each of two units is rewritten to
WITNESS = "witness.json"  # an input that refutes what is asked, or decides a claim
COVER = "cover.json"  # that no input reaches some outcomes
SUMS, PLAN = "sums.json", "bounded.plan.yaml"  # theorems about a plan, and that plan
#: every file of a certificate beside its manifest: the names, and the patterns of names of which there are several
OTHERS = (UNIT, TREE, CHAIN, FACTS, CLAIM, ROWS, QUESTION, LEFT, RIGHT, PROPERTY, PLANS, "*.plan.yaml", "unit-*.yaml",
          COVER, SUMS, WITNESS)  # fmt: skip
SUFFIXES = ("smt2", "cnf", "drat")
NAMES = (*OTHERS, *(f"{stem}.{end}" for stem in ("whole", "lemma-*") for end in SUFFIXES))
