"""NumPy's products as devices: python:examples/numpy_device.py:matmul, and the others."""

import numpy as np


def matmul(a, b):
    """The library that NumPy was built with, or NumPy's own loop for float16."""
    with np.errstate(all="ignore"):
        return a @ b


def einsum(a, b):
    """NumPy's own loops, whatever library it was built with."""
    with np.errstate(all="ignore"):
        return np.einsum("ik,kj->ij", a, b)


def dot(a, b):
    """Each element by the dot product of two vectors."""
    with np.errstate(all="ignore"):
        columns = np.ascontiguousarray(b.T)
        return np.array([[np.dot(row, column) for column in columns] for row in a], dtype=a.dtype)
