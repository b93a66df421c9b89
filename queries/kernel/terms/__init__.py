"""Theorems about terms of solvers, and what follows from them for a question."""
