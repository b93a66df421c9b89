"""The names of the properties that `prove` decides, and their meanings."""

from collections.abc import Mapping
from typing import Literal

from mmaprobe.smtmodel.base.errors import ParameterError

#: "equal" is about two models, the others are properties of one (queries/kernel/questions/statements.py states them)
Property = Literal[
    "equal", "order-independent", "sign-symmetric", "monotonic", "monotonic-addend", "monotonic-product",
    "zero-padding", "exact", "unbiased",
]  # fmt: skip

#: a property in words; in braces what depends on the model
STATEMENTS: Mapping[str, str] = {
    "equal": "both models give the same result",
    "order-independent": "exchanging {exchanged} does not change the result",
    "sign-symmetric": "negating every {negated} negates the result",
    "monotonic": "the result does not fall when {rising}",
    "monotonic-addend": "the result does not fall when c rises",
    "monotonic-product": "the result does not fall when one product rises",
    "zero-padding": "a shorter dot product is the whole one with +0 in the products beyond",
    "exact": "the result is the exact sum of all {terms}, rounded once as the unit rounds",
    "unbiased": "the mean of the results over all random bits is the exact sum, wherever they are finite",
}


def statement_of(
    wanted: str, addend: bool = True, exchanged: str = "products that one step adds", others: str = ""
) -> str:
    """A property in words, of a model that reads c (`addend`) or not. `exchanged`: the products that order-independent
    exchanges, in words; `others`: the products of which it says nothing."""
    c = {"negated": "a and c", "rising": "c rises, or one product", "terms": "products and c"}
    none = {"negated": "a", "rising": "one product rises", "terms": "products"}
    said = STATEMENTS[wanted].format(exchanged=exchanged, **(c if addend else none))
    return f"{said}; it says nothing of {others}" if wanted == "order-independent" and others else said


FALLING = "of monotonic it is asked whether results fall: there is nothing to compare"


def check_compared(wanted: str, compare: object) -> None:
    """Raises ParameterError if `compare` is given (not None) for a property that does not compare two results."""
    if compare is not None and wanted.startswith("monotonic"):
        raise ParameterError("compare", FALLING)
