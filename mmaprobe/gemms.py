"""The plans that give a recorded matrix product, and the plans that a function runs for products of any shape."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, get_args

import numpy as np

from mmaprobe.arrays import array_of, patterns_of
from mmaprobe.named import Plan, choice_of, seconds_of, sides_of, signature_of
from mmaprobe.products import number_of
from mmaprobe.questions import Verdicts
from mmaprobe.smtmodel.arithmetic.formats import Format
from mmaprobe.smtmodel.evaluate.numbers import format_of

if TYPE_CHECKING:
    from mmaprobe.documents.identify import IdentifyGemm, IdentifyProduct, Layout

SIDE = 64  # the largest M and N by default
DIFFERENT = 16  # elements in which two results differ, on which every plan is tried


@dataclass(frozen=True, repr=False)
class IdentifiedGemm(Verdicts):
    """Which plans give a result, or what a function computes. `verdict`: found (a plan gives every element
    compared; for a function, of every shape), open (the time was over, or some shapes have no plan), or none. `plans`:
    the plans found, the likeliest first, for `matmul` and other functions. `document`: the JSON of `mmaprobe identify
    --gemm --json`, as a value whose attributes are its keys: what was not tried, products that are missing from the
    sum, the rules of a map. `whole`: whether the search was complete; `other`: the answer for the argument `other`."""

    document: IdentifyProduct | IdentifyGemm = field(repr=False)
    plans: tuple[Plan, ...]
    whole: bool = field(repr=False)
    other: IdentifiedGemm | None = field(default=None, repr=False)

    @property
    def verdict(self) -> str:
        """Whether plans were found."""
        return "found" if self.plans and self.whole else "none" if self.whole else "open"

    def _lines(self) -> list[str]:
        return [self.verdict, *dict.fromkeys(plan.reference for plan in self.plans)]


def plans_of(a: Any, b: Any, d: Any, c: Any = None, *, other: Any = None, timeout: float = 120.0) -> IdentifiedGemm:
    """The plans that give a recorded matrix product, d = a @ b, or with c.

    Shapes: `a` M x K, `b` K x N, `d` M x N; `c` M x N, or a shape that broadcasts to it, as for `matmul`. `other`:
    another result of the same product, M x N, whose plans are in `.other`: elements that differ are compared first.

    Units: arrays whose types say their formats, as for `matmul`; `other` has the type of `d`. `timeout`: seconds for
    everything. Conversions of a and b, factors, roundings, and how c is added are inferred from the numbers.
    Nothing is said of another K or shape.

    Raises MmaprobeError: a wrong type, shapes that do not fit.

    Source: one search for this, `identify --gemm` and `compare --gemm` (docs/two-gpus.md).
    """
    from mmaprobe.queries.plans.recorded import Recorded
    from mmaprobe.queries.plans.report import document_of_product
    from mmaprobe.queries.plans.results import plans_of_results
    from mmaprobe.smtmodel.inputs.signature import Signature

    start, timeout = time.monotonic(), seconds_of("timeout", timeout)
    fmts = {name: _format(name, side) for name, side in (("a", a), ("b", b), ("d", d))}
    x, y, result = (patterns_of(name, side, fmts[name], 2, None) for name, side in (("a", a), ("b", b), ("d", d)))
    results = [result] if other is None else [result, patterns_of("other", other, fmts["d"], 2, None)]
    c_format = fmts["d"] if c is None else _format("c", number_of(c))
    z = None if c is None else np.atleast_2d(patterns_of("c", number_of(c), c_format, 0, None, 2))
    recorded = Recorded.of(Signature(fmts["a"], fmts["b"], c_format, fmts["d"], 1), x, y, z, results)
    differ = [(int(row), int(column)) for row, column in np.argwhere(results[0] != results[-1])[:DIFFERENT]]
    found = plans_of_results(recorded, differ, lambda text: None, timeout)
    documents = [document_of_product(one, (), recorded.length, time.monotonic() - start) for one in found]
    identified = None
    for one, document in reversed([*zip(found, documents, strict=True)]):
        identified = IdentifiedGemm(document, one.plans, bool(one.plans) or not one.untried, identified)
    assert identified is not None
    return identified


def _format(name: str, given: Any) -> Format:
    """The format of an array's type. Raises MmaprobeError."""
    fmt = format_of(array_of(name, given).dtype)
    assert fmt is not None
    return fmt


def identify_gemm(
    function: str | Callable[..., Any], formats: str, length: int, *, shape: tuple[int, int] = (SIDE, SIDE),
    layout: Layout = "nn", timeout: float = 300.0, device_timeout: float = 60.0,
) -> IdentifiedGemm:  # fmt: skip
    """Which plans a function that multiplies matrices runs, for each shape of the product and each element.

    `function`: a function `f(a, b)` or `f(a, b, c)`, or python:FILE.py:FUNCTION.

    Shapes: the function gets a of M x K, b of K x N and c of M x N. `layout`: how a and b lie in memory, row after row
    (n) or transposed (t): nt is x @ weight.T.

    Units: `formats` as for `order`, `length` is the largest K, `shape` the largest M and N. `timeout`: seconds for
    everything; `device_timeout`: seconds for one call of python:FILE.py:FUNCTION.

    Raises MmaprobeError: formats that are not known, a function that fails.

    Source: the search of `plans_of`, summation orders, and rules checked on new shapes (docs/plans.md).
    """
    from mmaprobe.documents.identify import Layout
    from mmaprobe.queries.plans.report import document_of_map
    from mmaprobe.runner.callable import name_of
    from mmaprobe.runner.device_plans import mapper_of

    sides, asked = sides_of(shape), signature_of(formats, length)
    choice_of("layout", layout, get_args(Layout))
    start, device_timeout = time.monotonic(), seconds_of("device_timeout", device_timeout)
    mapper = mapper_of(function, asked, sides, seconds_of("timeout", timeout), device_timeout,
                       layout=layout)  # fmt: skip
    failure = mapper.searched()
    document = document_of_map(mapper.findings, name_of(function), time.monotonic() - start, failure, layout)
    return IdentifiedGemm(document, tuple(mapper.findings.plans), failure is None and mapper.findings.whole)
