"""What the oracle of tests/oracles is told of a member of a family; the two share names of parameters alone."""

from __future__ import annotations

from typing import Any

from mmaprobe.smtmodel.evaluate.model import Model

#: what a family is in the words of the oracle
IN_WORDS: dict[str, dict[str, Any]] = {
    "t-fdpa": {},
    "st-fdpa": {},
    "gst-fdpa": {"grouping": "scale_blocks"},
    "emulated-fp8": {"addend": "after"},
    "tr-fdpa": {"addend": "late"},
    "gtr-fdpa": {"addend": "late", "grouping": "even_odd"},
    "e-fdpa": {"operation": "exact_dot"},
    "fma-chain": {"operation": "fma_chain", "block": 1, "zero_sign": "ieee", "overflow": "ieee"},
    "ftz-addmul": {"operation": "add_mul", "grouping": "pairwise", "zero_sign": "ieee", "overflow": "ieee"},
}


def parameters_of(model: Model) -> dict[str, Any]:
    """The parameters of a model's arithmetic."""
    assert model.member is not None
    found = {**IN_WORDS[model.member.family], **model.member.values}
    if found.get("scale_format") is None:
        found.pop("scale_format", None)
        found.pop("scale_block", None)
    del found["output"]
    return found
