"""Answers of devices held against models and against each other."""
