"""Algorithms built on matrix units, each written once: executable on matrices and dot products, and symbolic."""

from mmaprobe.smtmodel.algorithms.reference import ALGORITHMS as ALGORITHMS
from mmaprobe.smtmodel.algorithms.reference import dot_product as dot_product
from mmaprobe.smtmodel.algorithms.reference import dot_steps as dot_steps
from mmaprobe.smtmodel.algorithms.reference import matrix_product as matrix_product
from mmaprobe.smtmodel.algorithms.reference import parse_algorithm as parse_algorithm
from mmaprobe.smtmodel.algorithms.reference import parse_reduction as parse_reduction
from mmaprobe.smtmodel.algorithms.reference import reference_of as reference_of
from mmaprobe.smtmodel.algorithms.reference import sum_of_array as sum_of_array
from mmaprobe.smtmodel.algorithms.reference import sum_of_numbers as sum_of_numbers
