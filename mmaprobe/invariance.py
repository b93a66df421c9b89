"""Whether the result of a row and a column depends on the shape of the product that it is part of."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from mmaprobe.gemms import SIDE
from mmaprobe.named import WantedError, choice_of, flag_of, seconds_of, sides_of, signature_of, text_of
from mmaprobe.questions import Verdicts, options_of
from mmaprobe.smtmodel.base.errors import ParameterError
from mmaprobe.smtmodel.base.wording import some_of

if TYPE_CHECKING:
    from mmaprobe.documents.identify import IdentifyInvariant
    from mmaprobe.documents.prove import ProveInvariant
    from mmaprobe.smtmodel.inputs.signature import Signature

WANTED = "the path of a map or of rules by hand, or a function (a, b) that multiplies matrices"


@dataclass(frozen=True, repr=False)
class Invariant(Verdicts):
    """Whether results depend on the shape. `verdict`: for a map equal (proved), different or unknown; for a function,
    by its answers, none seen, depends or open. `document`: what `mmaprobe prove --invariant --json`, or
    `identify --gemm --invariant --json`, prints, as a value whose attributes are its keys: two shapes and an input."""

    document: ProveInvariant | IdentifyInvariant

    def _lines(self) -> list[str]:
        from mmaprobe.documents.identify import IdentifyInvariant

        about = self.document
        if not isinstance(about, IdentifyInvariant):
            elements = about.difference if about.verdict == "different" else ()
            return [self.verdict, *(f"{one.place} of {_sides(one.shape)}: {one.plan}" for one in elements)]
        looked = f"{about.compared} results of {about.products_asked} products, at K = {some_of(about.lengths, 10)}"
        lines = [self.verdict if about.error is None else f"{self.verdict}: {about.error}", looked]
        for one in about.depends.results if about.depends else ():
            stack = f", product {one.block} of {one.stack}" if one.stack else ""
            lines.append(f"{one.place} of {_sides(one.shape)}{stack}: {one.d}")
        return lines


def _sides(shape: Sequence[int]) -> str:
    return " x ".join(map(str, shape))


def invariant(
    of: str | os.PathLike[str] | Callable[..., Any],
    *,
    shapes: str = "",
    fixed: Literal["M", "N"] | None = None,
    formats: str | None = None,
    length: int | None = None,
    shape: tuple[int, int] = (SIDE, SIDE),
    confirm: bool = True,
    timeout: float = 300.0,
    device_timeout: float = 60.0,
    solver: str = "auto",
) -> Invariant:
    """Whether a row and a column have the same sum in a product of any shape: proved by a map, or asked of a function.

    `of`: the path of a map (`mmaprobe identify --gemm --json`) or of rules by hand (docs/batch-invariance.md); or a
    function `f(a, b)`, or python:FILE.py:FUNCTION.

    Shapes: any M and N, with the row and the column in any place. A function gets a of M x K and b of K x N, and, if
    it takes them, stacks of these. `fixed`: the side, M or N, that is the same in the shapes that are compared.

    Units: for a map, `shapes` narrows the shapes asked about, as "M=1..8,N=4096,K=16..1024", `confirm` and `solver` are
    as for `prove`. For a function, `formats` as for `order`, `length` is the largest K, `shape` the largest M and N,
    `device_timeout` seconds for one call of python:FILE.py:FUNCTION. `timeout`: seconds for everything.

    Raises MmaprobeError: a file that is no map, a device that fails.

    Source: theorems about the plans of a map; questions to a function, which prove nothing of shapes that were not
    asked (docs/batch-invariance.md).
    """
    if fixed is not None:
        choice_of("fixed", fixed, ("M", "N"))
    shapes, confirm = text_of("shapes", shapes, "M=1..8"), flag_of("confirm", confirm)
    options = options_of(solver, timeout)
    device_timeout = seconds_of("device_timeout", device_timeout)
    if isinstance(of, (str, os.PathLike)) and not str(of).startswith("python:"):
        if formats is not None or length is not None or shape != (SIDE, SIDE):
            raise ParameterError("formats, length, shape", "they are for a function; a map is narrowed by shapes")
        from mmaprobe.queries.conjectures.plans import InvarianceConjecture

        return Invariant(InvarianceConjecture.of(Path(of), shapes, fixed).decide(options, confirm).document)
    if not callable(of) and not isinstance(of, str):
        raise WantedError("of", of, WANTED)
    if shapes:
        raise ParameterError("shapes", "it is for a map; a function has shape and length")
    if formats is None or length is None:
        raise ParameterError("formats, length", "a function needs both")
    sides, asked = sides_of(shape), signature_of(formats, length)
    return _asked(of, fixed, asked, sides, seconds_of("timeout", timeout), device_timeout)


def _asked(
    of: str | Callable[..., Any], fixed: Literal["M", "N"] | None, asked: Signature, sides: tuple[int, int],
    timeout: float, device_timeout: float,
) -> Invariant:  # fmt: skip
    from mmaprobe.queries.plans.report import document_of_dependence
    from mmaprobe.queries.plans.rules import Shape
    from mmaprobe.runner.callable import name_of
    from mmaprobe.runner.device_plans import dependence_of

    start, top = time.monotonic(), Shape(*sides, asked.length)
    found = dependence_of(of, asked, top, fixed, timeout, device_timeout)
    return Invariant(document_of_dependence(found, name_of(of), asked, top, fixed, time.monotonic() - start))
