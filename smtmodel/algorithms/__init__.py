"""Algorithms built on matrix units, each written once: executable on matrices and dot products, and symbolic."""

from smtmodel.algorithms.reference import ALGORITHMS as ALGORITHMS
from smtmodel.algorithms.reference import dot_product as dot_product
from smtmodel.algorithms.reference import matrix_product as matrix_product
from smtmodel.algorithms.reference import parse_algorithm as parse_algorithm
