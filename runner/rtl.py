"""A design in Verilog as a device: Yosys reads the design, and the array carrier evaluates it as it does models."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import chain

import numpy as np

from mmaprobe.runner.batches import BatchDevice
from mmaprobe.runner.protocol import DeviceUnavailableError
from mmaprobe.runner.wiring import OPERAND_NAMES, PORTS, Wiring
from mmaprobe.smtmodel.base.errors import ParameterError
from mmaprobe.smtmodel.designs.design import RESULT
from mmaprobe.smtmodel.designs.program import MissingProgramError
from mmaprobe.smtmodel.designs.yosys import read_design
from mmaprobe.smtmodel.evaluate.batch import Patterns, lanes, to_integers
from mmaprobe.smtmodel.evaluate.model import Model
from mmaprobe.smtmodel.evaluate.programs import ARRAYS
from mmaprobe.smtmodel.inputs.signature import Signature
from mmaprobe.smtmodel.inputs.vectors import Vector


class DesignDevice(BatchDevice):
    """A design as a device. `widths`: the bits of the ports of each operand and of the result, by name. An operand's
    elements are side by side, the first in the lowest bits. The formats of the first vector hold for all vectors.
    Raises ParameterError for formats that do not fit the ports."""

    batch, first = 4096, 128
    steady = is_design = True
    widths: Mapping[str, int]

    @property
    def addend(self) -> bool:
        return "c" in self.widths

    @property
    def scaled(self) -> bool:  # type: ignore[override]
        return "scale_a" in self.widths

    def answers(self, vectors: Iterable[Vector]) -> Iterator[tuple[Vector, int | None]]:
        waiting = iter(vectors)
        first = next(waiting, None)
        if first is not None:
            self.model = self._signature(first.model)
            yield from super().answers(chain([first], waiting))

    def _signature(self, asked: Model) -> Model:
        """The signature of the formats asked, with as many products as the ports hold. Raises ParameterError if the
        ports do not fit."""
        length, rest = divmod(self.widths["a"], asked.a.width)
        fits = not rest and self.widths["b"] == length * asked.b.width and self.widths[RESULT] == asked.d.width
        if not fits or (self.addend and self.widths["c"] != asked.c.width):
            widths = ", ".join(f"{name}: {width}" for name, width in self.widths.items())
            wanted = ",".join(fmt.name for fmt in (asked.a, asked.b, asked.c, asked.d))
            raise ParameterError(self.name, f"ports of {widths} bits are none of {wanted}")
        scale = asked.scale if self.scaled else None
        return Signature(asked.a, asked.b, asked.c, asked.d, length, self.addend, scale, asked.scale_block)

    def patterns(self, a: Patterns, b: Patterns, c: Patterns, *rest: Patterns) -> Patterns:
        short = ((0, 0), (0, self.model.length - a.shape[1]))
        sides = dict(zip(PORTS, (np.pad(a, short), np.pad(b, short), c[:, None], *rest), strict=False))
        return self.results({name: side for name, side in sides.items() if name in self.widths})

    @abstractmethod
    def results(self, sides: Mapping[str, Patterns]) -> Patterns:
        """The result patterns, of shape (vectors,), for the elements of each operand, of shape (vectors, elements).
        Raises IncompleteError."""


class RtlDevice(DesignDevice):
    """A combinational design or a pipeline, as a netlist that Yosys makes. `text`: the device's name after `rtl:`, or
    the parsed name. Raises InputError, ParameterError and DeviceUnavailableError."""

    def __init__(self, text: str | Wiring) -> None:
        wiring = Wiring.read(text) if isinstance(text, str) else text
        several = {name: ports for name, ports in wiring.ports.items() if len(ports) > 1}
        try:
            design = read_design(wiring.files, wiring.top, wiring.parameters, wiring.tied, several, wiring.include)
        except MissingProgramError as error:
            raise DeviceUnavailableError(str(error)) from None
        self.netlist, self.name = design.parsed, wiring.name
        self.description = {"name": f"design {wiring.top}", "latency": self.netlist.latency}
        inputs, outputs = self.netlist.inputs, self.netlist.outputs
        whole = replace(wiring, ports=wiring.ports | {name: (name,) for name in several}, roles={})
        whole.check(inputs, outputs, self.netlist.clocks)
        ports = {name: whole.ports_of(name)[0] for name in PORTS}
        own = {name: port for name, port in ports.items() if port in (outputs if name == RESULT else inputs)}
        self.design = replace(design, ports=tuple(own.items()))
        self.widths = {name: self.design.width(name) for name in own}

    def results(self, sides: Mapping[str, Patterns]) -> Patterns:
        words = {name: [lanes(side[:, k], self.model.formats[name].width) for k in range(side.shape[1])]
                 for name, side in sides.items()}  # fmt: skip
        with np.errstate(over="ignore"):
            d = self.design.result(words, ARRAYS)
        return to_integers(d, len(sides[OPERAND_NAMES[0]]))
