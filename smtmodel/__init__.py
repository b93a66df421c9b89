"""Models of units, and their evaluation."""

VERSION = "1.0.0"  # of the whole program; pyproject.toml reads it here
__version__ = VERSION
