"""Algorithms that sum numbers on matrix units, and the language of claims about algorithms with its quantities.

Algorithms for products are plans (plans/multiword.py)."""

from mmaprobe.smtmodel.algorithms.reference import ALGORITHMS as ALGORITHMS
from mmaprobe.smtmodel.algorithms.reference import parse_reduction as parse_reduction
from mmaprobe.smtmodel.algorithms.reference import reference_of as reference_of
from mmaprobe.smtmodel.algorithms.reference import sum_of_array as sum_of_array
