"""What matrix units compute, bit for bit, in Python.

    import mmaprobe
    d = mmaprobe.matmul(a, b, unit="hopper/mma/m16n8k16.f32.f16.f16.f32")

`units`, `plans`, `formats`, `claims` and `gpus` list what there is. `unit` and `plan` name what multiplies; `matmul`
and `dot` compute with it, `explain` shows one evaluation bit by bit. `distinguish`, `prove`, `bound` and `verify` ask
solvers about units, plans and claims. `order` and `identify` find out what a function that multiplies matrices
computes, `invariant` whether its results depend on the shape; `study` measures errors against size. Bad input raises
`MmaprobeError`, which says what is wanted.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mmaprobe.bounds import Bound, bound
    from mmaprobe.devices import Identified, Order, identify, order
    from mmaprobe.gemms import IdentifiedGemm, identify_gemm, plans_of
    from mmaprobe.invariance import Invariant, invariant
    from mmaprobe.listed import Listed, claims, formats, gpus, plans, units
    from mmaprobe.measured import Studied, study
    from mmaprobe.named import Model, Plan, plan, unit
    from mmaprobe.pictures import Explained, explain
    from mmaprobe.products import dot, matmul
    from mmaprobe.questions import (
        Case,
        Claimed,
        Counterexample,
        Difference,
        Distinction,
        Proved,
        distinguish,
        prove,
        verify,
    )
    from mmaprobe.smtmodel.base.errors import MmaprobeError

__version__: str

__all__ = [
    "Bound",
    "Case",
    "Claimed",
    "Counterexample",
    "Difference",
    "Distinction",
    "Explained",
    "Identified",
    "IdentifiedGemm",
    "Invariant",
    "Listed",
    "MmaprobeError",
    "Model",
    "Order",
    "Plan",
    "Proved",
    "Studied",
    "bound",
    "claims",
    "distinguish",
    "dot",
    "explain",
    "formats",
    "gpus",
    "identify",
    "identify_gemm",
    "invariant",
    "matmul",
    "order",
    "plan",
    "plans",
    "plans_of",
    "prove",
    "study",
    "unit",
    "units",
    "verify",
]

_MODULES = {
    "mmaprobe.bounds": ("Bound", "bound"),
    "mmaprobe.devices": ("Identified", "Order", "identify", "order"),
    "mmaprobe.gemms": ("IdentifiedGemm", "identify_gemm", "plans_of"),
    "mmaprobe.invariance": ("Invariant", "invariant"),
    "mmaprobe.pictures": ("Explained", "explain"),
    "mmaprobe.products": ("dot", "matmul"),
    "mmaprobe.questions": (
        "Case", "Claimed", "Counterexample", "Difference", "Distinction", "Proved", "distinguish", "prove", "verify"),
    "mmaprobe.listed": ("Listed", "claims", "formats", "gpus", "plans", "units"),
    "mmaprobe.measured": ("Studied", "study"),
    "mmaprobe.named": ("Model", "Plan", "plan", "unit"),
    "mmaprobe.smtmodel.base.errors": ("MmaprobeError",),
    "smtmodel": ("__version__",),
}  # fmt: skip
_PLACES = {name: module for module, names in _MODULES.items() for name in names}


def __getattr__(name: str) -> Any:
    """Imported when first used: `import mmaprobe` alone loads neither NumPy nor solvers."""
    if name not in _PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(_PLACES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
