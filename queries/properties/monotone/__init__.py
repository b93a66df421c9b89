"""Lemmas of monotonicity, by what a step of the sum does."""
