"""DRAT proofs: an independent checker, and the composition of lemmas into one proof of a whole question."""
