"""What a function, a program or a processor computes when it multiplies matrices."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from mmaprobe.named import Model, WantedError, seconds_of, signature_of, text_of
from mmaprobe.questions import Verdicts, options_of
from mmaprobe.smtmodel.base.errors import InputError, ParameterError

if TYPE_CHECKING:
    from mmaprobe.documents import identify as documents
    from mmaprobe.hypotheses.family import Family
    from mmaprobe.queries.order.reveal import Tree
    from mmaprobe.runner.protocol import Device
    from mmaprobe.smtmodel.inputs.signature import Signature
    from mmaprobe.smtmodel.inputs.vectors import Vector

Devices = Callable[..., Any] | str


def quietly(text: str) -> None:
    """Takes progress, and shows nothing."""


WANTED = "a function (a, b, c) or (a, b) that multiplies matrices, or the name of a device"


@dataclass(frozen=True, repr=False)
class Order:
    """The summation tree of a device. `str()` shows it in few lines, a notebook shows `svg`. `document`: what `mmaprobe
    order --json` prints, as a value whose attributes are its keys, with every step; `title`: the formats and the length
    that were asked; `tree`: the tree itself."""

    document: documents.Order = field(repr=False)
    title: str
    tree: Tree = field(repr=False)

    @property
    def svg(self) -> str:
        """The drawing, a document of its own."""
        from mmaprobe.reports.drawings.order_drawing import order_drawing
        from mmaprobe.reports.drawings.svg import svg_of

        return svg_of(order_drawing(self.tree.outline(), self.title, self._notes))

    def _repr_svg_(self) -> str:
        return self.svg

    @property
    def _notes(self) -> list[str]:
        notes, places = [] if self.tree.ends is None else self.tree.ends.lines(), self.document.device.get("places")
        return notes if places is None else [*notes, f"of the product's places: {places}"]

    def __repr__(self) -> str:
        """Two lines: what was asked, and the tree if it is one line."""
        first, *more = str(self).splitlines()
        return f"{self.title}\n  {first}{' ...: print() shows it' if more else ''}"

    def __str__(self) -> str:
        return "\n".join([*self.tree.outline().lines(), *self._notes])


@dataclass(frozen=True, repr=False)
class Identified(Verdicts):
    """What was found of a device.

    `verdict`: built (a unit that answers alike on the vectors of validation), identified (one class of a family is
    left), unexplained or no candidate (nothing fits), or open (cut short, or several are left). `unit`: the model
    found, for `matmul` and other functions. `document`: what `mmaprobe identify --json` prints, as a value whose
    attributes are its keys: instructions of the table that are proved equal to this unit (the device itself was
    sampled), what is not decided, how many questions were asked, and of a unit that was built its unit file.
    """

    document: documents.Build | documents.Identify = field(repr=False)
    unit: Model | None = field(repr=False)

    @property
    def _shown(self) -> tuple[Any, ...]:
        return (self.unit,)


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
    from mmaprobe.queries.order.report import document_of
    from mmaprobe.queries.order.text import title_of
    from mmaprobe.runner.device_order import revealed

    asked = signature_of(formats, length)
    start = time.monotonic()
    until = start + seconds_of("timeout", timeout)
    with _opened(device, device_timeout, asked, until) as opened:
        tree = revealed(opened, asked, until, quietly, ends=True)
        description = {"name": opened.name, **opened.description}
    document = document_of(tree, asked, description, len(tree.questions), time.monotonic() - start)
    return Order(document, title_of(asked), tree)


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
    from mmaprobe.hypotheses.gpu_family import gpu_family, own_family

    own = None if family is None else own_family(text_of("family", family, "nvidia-f16"))
    if own is not None:
        if formats is not None or length is not None:
            raise ParameterError("formats, length", "a family has its own: leave them out")
        return _chosen(device, own, timeout, device_timeout, solver)
    if formats is None or length is None:
        where = f"with {family}, which has several instructions" if family else "where no family is given"
        raise ParameterError("formats, length", f"both are wanted {where}")
    asked = signature_of(formats, length)
    if family is not None:
        return _chosen(device, gpu_family(family, asked), timeout, device_timeout, solver)
    return _built(device, asked, timeout, device_timeout, solver)


def _built(device: Devices, asked: Signature, timeout: float, device_timeout: float, solver: str) -> Identified:
    from mmaprobe.queries.building.answers import BUILT
    from mmaprobe.queries.building.report import described, document_of
    from mmaprobe.runner.device_unit import built

    start = time.monotonic()
    options = options_of(solver, timeout)
    with _opened(device, device_timeout, asked, start + timeout) as opened:
        candidate, order = built(opened, asked, options, start + timeout, quietly, quietly)
        description = {"name": opened.name, **opened.description}
    unit = described(candidate, order.questions, opened.name)
    document = document_of(candidate, unit, order.document(), asked, description, time.monotonic() - start)
    return Identified(document, None if unit is None else Model(BUILT, unit))


def _chosen(device: Devices, chosen: Family, timeout: float, device_timeout: float, solver: str) -> Identified:
    from mmaprobe.runner.device_family import Session

    start = time.monotonic()
    options = options_of(solver, timeout)
    with _opened(device, device_timeout, chosen.base, start + timeout) as opened:
        recorded = _recorded(opened, chosen.base)
        candidates = chosen.candidates(start + timeout)
        session = Session(opened, opened.name, chosen, candidates, start + timeout, quietly, quietly)
        identification = session.run(options, recorded)
    document, _ = session.document(options, recorded)
    return Identified(document, identification.survivors[0] if identification.verdict == "identified" else None)


def _recorded(device: Device, base: Model) -> list[Vector]:
    """The rows of a recording, which are inputs of the base; none for a device that can be asked. Raises InputError for
    other rows."""
    from mmaprobe.queries.compare.asked_rows import row_of, takes_the_same
    from mmaprobe.runner.recorded import RecordedDevice
    from mmaprobe.smtmodel.evaluate.operands import layout_of

    if not isinstance(device, RecordedDevice):
        return []
    names = sorted({vector.model.instruction for vector in device.vectors})
    if len(names) > 1:
        raise InputError(f"{device.name} holds several instructions: {', '.join(names)}; give one with the rows of one")
    layout = layout_of(base)
    for vector in device.vectors:
        if (
            not takes_the_same(vector.model, base)
            or vector.model.d.width != base.d.width
            or row_of(vector.operands, layout) is None
        ):
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
        return check_asked(CallableDevice(device), asked)
    raise WantedError("device", device, WANTED)
