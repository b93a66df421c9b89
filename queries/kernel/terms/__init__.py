"""Theorems about terms of solvers, and theorems about questions that follow from them."""
