"""Answers of devices checked against models and against each other."""
