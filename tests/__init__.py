"""Modules are compiled once, by the tests and by the programs that they start, also where the environment says that no
bytecode is kept: without it a third of the time of `make test-fast` went into compiling."""

import os
import sys

os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False
