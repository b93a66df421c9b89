"""Vectors in the formats of other programs."""
