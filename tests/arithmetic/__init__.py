"""Formats, their numbers and IEEE operations, and the oracle in exact rationals."""
