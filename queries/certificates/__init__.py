"""Certificates: gates, one CNF of a question, a DRAT proof composed of lemmas, and its checker."""
