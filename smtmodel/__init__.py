"""Models of units, and what evaluates them."""

VERSION = "1.0.0"  # of the whole program; pyproject.toml reads it here
__version__ = VERSION
