"""The names of what `prove` decides."""

from typing import Literal

#: "equal" is about two models, the others are properties of one (queries/properties/statements.py states them)
Property = Literal[
    "equal", "order-independent", "sign-symmetric", "monotonic", "monotonic-addend", "monotonic-product",
    "zero-padding", "exact",
]  # fmt: skip
