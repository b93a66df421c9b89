"""The exceptions of IEEE 754 by name, and the architectures whose documents say when each is signalled."""

from __future__ import annotations

from typing import Literal, get_args

Document = Literal["riscv", "arm", "x86", "power"]
DOCUMENTS: tuple[Document, ...] = get_args(Document)
#: names of exceptions, from the lowest bit of a word on, as in RISC-V's fflags; no unit of mmaprobe divides
EXCEPTIONS = ("inexact", "underflow", "overflow", "divide by zero", "invalid")
INEXACT, UNDERFLOW, OVERFLOW, INVALID = 1, 2, 4, 16


def exceptions_in(word: int) -> tuple[str, ...]:
    """The names of the exceptions whose bits are set in a word."""
    return tuple(name for place, name in enumerate(EXCEPTIONS) if word >> place & 1)
