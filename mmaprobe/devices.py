"""What a function, a program or a processor computes when it multiplies matrices."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from mmaprobe.questions import Verdicts, options_of
from mmaprobe.smtmodel.base.errors import IncompleteError, InputError, ParameterError
from mmaprobe.smtmodel.families.parameters import format_parameter
from mmaprobe.units import Model, WantedError, seconds_of, signature_of, text_of

if TYPE_CHECKING:
    from mmaprobe.documents.identify import OrderStep
    from mmaprobe.hypotheses.family import Family
    from mmaprobe.queries.order.reveal import Tree
    from mmaprobe.runner.protocol import Device
    from mmaprobe.smtmodel.inputs.signature import Signature
    from mmaprobe.smtmodel.inputs.vectors import Vector

Devices = Callable[..., Any] | str


def quietly(text: str) -> None:
    """Progress that nobody hears."""


WANTED = "a function (a, b, c) or (a, b) that multiplies matrices, or the name of a device"


@dataclass(frozen=True)
class Order:
    """The summation tree of a device. `str()` shows it in few lines, a notebook shows `svg`. `title`: the formats and
    the length that were asked; `tree`: the tree itself; `places`: the elements of the product that it
    is the order of, where a function adds in another order elsewhere."""

    title: str
    tree: Tree = field(repr=False)
    places: str | None = None

    @property
    def steps(self) -> list[OrderStep]:
        """Every step, first to last: its `kind`, the `terms` that it adds (products by their places in K, and c), and
        the `steps`, earlier ones, whose sums it adds."""
        return self.tree.steps()

    @property
    def questions(self) -> int:
        """How many inputs the device was asked."""
        return len(self.tree.questions)

    @property
    def svg(self) -> str:
        """The drawing, a document of its own."""
        from mmaprobe.reports.order_drawing import order_drawing
        from mmaprobe.reports.svg import svg_of

        return svg_of(order_drawing(self.tree.outline(), self.title, self._notes))

    def _repr_svg_(self) -> str:
        return self.svg

    @property
    def _notes(self) -> list[str]:
        notes = [] if self.tree.ends is None else self.tree.ends.lines()
        return notes if self.places is None else [*notes, f"of the product's places: {self.places}"]

    def __str__(self) -> str:
        return "\n".join([*self.tree.outline().lines(), *self._notes])


@dataclass(frozen=True)
class Identified(Verdicts):
    """What was found of a device.

    `verdict`: built (a unit that answers alike on `validated` vectors), identified (one class of a family is left),
    unexplained or no candidate (nothing fits), or open (cut short, or `undecided`). `unit`: the model found, for
    `matmul` and all else; `text`: its unit file, where it was built. `equal`: instructions of the table that are proved
    equal to this unit (the device itself was sampled on `validated` vectors); `undecided`: of a built unit, the models
    that fit all answers and are not proved equal to it; of a family, the parameters of which the candidates left have
    several values. `decided`: of a family, each parameter with its value. `questions`: how many were asked about the
    arithmetic.
    `seconds`: of the clock. `why`: the reason, where nothing was found, or what was not asked about an open unit when
    the time ended. `places`: as of an `Order`.
    """

    verdict: str
    unit: Model | None = field(repr=False)
    text: str | None
    equal: tuple[str, ...]
    undecided: tuple[str, ...]
    decided: dict[str, Any]
    questions: int
    validated: int
    seconds: float
    why: str | None = None
    places: str | None = None


def order(device: Devices, formats: str, length: int, *, timeout: float = 300.0, device_timeout: float = 60.0) -> Order:
    """The order in which a device adds up c and the products, from its answers alone.

    `device`: a function `f(a, b, c)` or `f(a, b)` that multiplies matrices, or the name of a device as on the command
    line (`command:./my-gpu`, `cpu:vdpbf16ps`, `cuda:...`, `model:...`, `recorded:FILE`).

    Shapes: the function gets arrays a of 64 x K, b of K x 64 and c of 64 x 64, and returns one of 64 x 64.

    Units: `formats` are those of a, b, c and the result, `"f16,f16,f32,f32"`, or of a, b and the result for a device
    without an addend; the arrays have their types. `length` is K, up to 4096; the questions grow like K log K.
    `timeout`: seconds for everything; `device_timeout`: seconds for one answer of a device that is named (a function is
    called here, and waited for).

    Raises MmaprobeError: formats that are not known, a device that fails, that contradicts itself, or whose order is
    not revealed.

    Source: the method of FPRev, with masks of other sizes where it is blind (docs/order.md).
    """
    from mmaprobe.queries.order.text import title_of
    from mmaprobe.runner.device_order import revealed

    asked = signature_of(formats, length)
    until = time.monotonic() + seconds_of("timeout", timeout)
    with _opened(device, device_timeout, asked, until) as opened:
        tree = revealed(opened, asked, until, quietly, ends=True)
        places = opened.description.get("places")
    return Order(title_of(asked), tree, places)


def identify(
    device: Devices,
    family: str | None = None,
    *,
    formats: str | None = None,
    length: int | None = None,
    timeout: float = 300.0,
    device_timeout: float = 60.0,
    solver: str = "auto",
) -> Identified:
    """The unit that a device computes with: built from its answers, or chosen from a family of candidates.

    `device`: as for `order`.

    Shapes: the function gets arrays a of 64 x K, b of K x 64 and c of 64 x 64, and returns one of 64 x 64.

    Units: without `family`, `formats` and `length` as for `order`. `family` is a name of `mmaprobe list families` or
    the path of a family file, which have formats and length of their own; or a GPU (H100, RTX 4090, MI300X), whose
    instructions with these formats and this length are the candidates. `timeout`: seconds for everything;
    `device_timeout`: seconds for one answer, as for `order`; `solver` as for `distinguish`.

    Raises MmaprobeError as `order` does.

    Source: questions that split the candidates, vectors over the whole range, and proofs (docs/identify.md).
    """
    from mmaprobe.hypotheses.family import family_named
    from mmaprobe.hypotheses.gpu_family import gpu_family
    from mmaprobe.smtmodel.tables.gpus import gpu_named

    named = family is not None and gpu_named(text_of("family", family, "nvidia-f16")) is not None
    if family is not None and not named:
        if formats is not None or length is not None:
            raise ParameterError("formats, length", "a family has its own: leave them out")
        return _chosen(device, family_named(family), timeout, device_timeout, solver)
    if formats is None or length is None:
        where = f"with {family}, which has several instructions" if named else "where no family is given"
        raise ParameterError("formats, length", f"both are wanted {where}")
    asked = signature_of(formats, length)
    candidates = gpu_family(family, asked) if named and family is not None else None
    if candidates is not None:
        return _chosen(device, candidates, timeout, device_timeout, solver)
    return _built(device, asked, timeout, device_timeout, solver)


def _built(device: Devices, asked: Signature, timeout: float, device_timeout: float, solver: str) -> Identified:
    from mmaprobe.queries.building.answers import BUILT
    from mmaprobe.queries.building.outcome import text_of
    from mmaprobe.runner.device_unit import built
    from mmaprobe.smtmodel.evaluate.model import Model

    start = time.monotonic()
    options = options_of(solver, timeout)
    with _opened(device, device_timeout, asked, start + timeout) as opened:
        found, order = built(opened, asked, options, start + timeout, quietly, quietly)
        places = opened.description.get("places")
    undecided = [model.reference if model.reference != BUILT else text_of(model.unit) for model in found.open]
    unit = None if found.unit is None else Model(BUILT, found.unit)
    return Identified(
        "open" if undecided else found.verdict,
        unit,
        None if found.unit is None else text_of(found.unit),
        tuple(found.names),
        tuple(undecided),
        {},
        found.questions + order.questions,
        found.validated,
        time.monotonic() - start,
        found.why or (f"no candidate explains the answers ({found.stage})" if unit is None else None),
        places,
    )


def _chosen(device: Devices, chosen: Family, timeout: float, device_timeout: float, solver: str) -> Identified:
    from mmaprobe.queries.candidates.identify import Identifier
    from mmaprobe.queries.compare.steady import ContradictionError
    from mmaprobe.queries.order.reveal import UnrevealedError, reveal

    start = time.monotonic()
    with _opened(device, device_timeout, chosen.base, start + timeout) as opened:

        def ask(vectors: Sequence[Vector]) -> list[int | None]:
            if time.monotonic() > start + timeout:
                raise IncompleteError(f"{opened.name}: the time ran out")
            return opened.every(vectors)

        def every(vectors: Sequence[Vector]) -> list[int]:
            return [opened.answer(vector) if d is None else d for vector, d in zip(vectors, ask(vectors), strict=True)]

        def again(vectors: Sequence[Vector]) -> list[int | None]:
            return [None] * len(vectors) if opened.steady else ask(vectors)

        recorded = _recorded(opened, chosen.base)
        tree: Tree | None = None
        if not recorded:
            with suppress(UnrevealedError):
                tree = reveal(lambda vector: every([vector])[0], chosen.base, ask_all=every, again=again)
        options = options_of(solver, timeout)
        candidates = chosen.candidates(start + timeout)
        found = Identifier(candidates, ask, options, tree, recorded, again=again, start=start).run()
        for contradiction in found.contradictions:
            raise ContradictionError(*contradiction, opened.name)
        places = opened.description.get("places")
    decided, undecided = found.values()
    survivors = found.survivors
    return Identified(
        found.verdict,
        survivors[0] if found.verdict == "identified" else None,
        None,
        tuple(model.reference for model in survivors[1:]) if found.verdict == "identified" else (),
        tuple(f"{name}: {' or '.join(map(format_parameter, values))}" for name, values in undecided.items()),
        {name: value for name, value in decided.items() if name in chosen.varied},
        len(found.questions),
        found.validated,
        time.monotonic() - start,
        places=places,
    )


def _recorded(device: Device, base: Model) -> list[Vector]:
    """The rows of a recording, which are inputs of the base; none for a device that can be asked. Raises InputError for
    other rows."""
    from mmaprobe.queries.compare.rows import fits, row_of
    from mmaprobe.runner.recorded import RecordedDevice
    from mmaprobe.smtmodel.evaluate.operands import layout_of

    if not isinstance(device, RecordedDevice):
        return []
    names = sorted({vector.model.reference.partition("@")[0] for vector in device.vectors})
    if len(names) > 1:
        raise InputError(f"{device.name} holds several instructions: {', '.join(names)}; give one with the rows of one")
    layout = layout_of(base)
    for vector in device.vectors:
        if not fits(vector, base) or vector.model.d.width != base.d.width or row_of(vector.operands, layout) is None:
            raise InputError(f"{device.name}: line {vector.line} is no input of {base.reference}")
    return device.vectors


def _opened(device: Devices, timeout: float, asked: Model, until: float) -> Device:
    from mmaprobe.runner.callable import CallableDevice
    from mmaprobe.runner.devices import open_device
    from mmaprobe.runner.protocol import Device, check_asked

    timeout = seconds_of("device_timeout", timeout)
    if isinstance(device, Device):
        return check_asked(device, asked)
    if isinstance(device, str):
        return check_asked(open_device(device, timeout, asked, until), asked)
    if callable(device):
        return check_asked(CallableDevice(device, str(getattr(device, "__name__", type(device).__name__))), asked)
    raise WantedError("device", device, WANTED)
