"""Conjectures: the statements that `prove` decides, each a value with a method that decides it."""
