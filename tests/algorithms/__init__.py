"""Algorithms on matrix units: sums and products of matrices, exact sums."""
