"""Families of candidates: their equivalence classes, the vectors that distinguish these, and the class of a device."""
