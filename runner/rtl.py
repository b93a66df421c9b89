"""A design in Verilog as a device: read by Yosys, and evaluated on arrays by the carrier that evaluates models."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import chain
from pathlib import Path

import numpy as np

from mmaprobe.runner.batches import BatchDevice
from mmaprobe.runner.protocol import DeviceUnavailableError
from mmaprobe.smtmodel.base.digits import is_digits
from mmaprobe.smtmodel.base.errors import InputError, ParameterError
from mmaprobe.smtmodel.designs.design import RESULT
from mmaprobe.smtmodel.designs.yosys import MissingProgramError, read_design
from mmaprobe.smtmodel.evaluate.batch import Patterns, lanes, to_integers
from mmaprobe.smtmodel.evaluate.model import Model
from mmaprobe.smtmodel.evaluate.programs import ARRAYS
from mmaprobe.smtmodel.inputs.signature import Signature
from mmaprobe.smtmodel.inputs.vectors import Vector
from mmaprobe.smtmodel.operand import OPERANDS

WRITTEN = (
    "rtl:FILE.sv[,FILE.sv...],top=NAME[,include=FOLDER...][,OPERAND=PORT...][,PORT=NUMBER...][,#PARAMETER=NUMBER...]"
)
INCLUDE = "include"  # a word of Verilog, so no port has this name
PORTS = (*(row.name for row in OPERANDS), RESULT)


class RtlDevice(BatchDevice):
    """A combinational design, or a pipeline. A port of an operand has its elements side by side, the first one in its
    lowest bits; ports are found by the names of the operands, or by those given. Of other inputs, the clock apart, a
    number must be given. Formats are those of the first vector. Raises InputError, ParameterError and
    DeviceUnavailableError."""

    batch = 4096
    steady = True

    def __init__(self, text: str) -> None:
        files, include, values, parameters = _parts(text)
        top = values.pop("top", "")
        if not files or not top:
            raise InputError(f"device rtl:{text}: a design is written {WRITTEN}")
        self.ports = {name: values.pop(name, name) for name in PORTS}
        constants = {name: _number(name, value) for name, value in values.items()}
        try:
            design = read_design(files, top, parameters, constants, include)
        except MissingProgramError as error:
            raise DeviceUnavailableError(str(error)) from None
        self.netlist, self.name = design.parsed, f"rtl:{text}"
        self.description = {"name": f"design {top}", "latency": self.netlist.latency}
        self._check_ports()
        sides = {RESULT: self.netlist.outputs}
        own = tuple((name, port) for name, port in self.ports.items() if port in sides.get(name, self.netlist.inputs))
        self.design = replace(design, ports=own)

    def _check_ports(self) -> None:
        inputs, outputs = self.netlist.inputs, self.netlist.outputs
        taken = {port for name, port in self.ports.items() if name != RESULT and port in inputs}
        if missing := [name for name in ("a", "b") if self.ports[name] not in inputs]:
            raise InputError(f"{self.name}: no input port {missing[0]} ({missing[0]}=PORT); it has {', '.join(inputs)}")
        if self.ports[RESULT] not in outputs:
            raise InputError(f"{self.name}: no output port {RESULT} ({RESULT}=PORT); it has {', '.join(outputs)}")
        if open_ports := [name for name in inputs if name not in taken | self.netlist.clocks]:
            raise InputError(
                f"{self.name}: what is the input {open_ports[0]}? ({open_ports[0]}=NUMBER, or OPERAND=PORT)"
            )

    @property
    def addend(self) -> bool:
        return self.ports["c"] in self.netlist.inputs

    @property
    def scaled(self) -> bool:  # type: ignore[override]
        return self.ports["scale_a"] in self.netlist.inputs

    def answers(self, vectors: Iterable[Vector]) -> Iterator[tuple[Vector, int | None]]:
        waiting = iter(vectors)
        first = next(waiting, None)
        if first is not None:
            self.model = self._shape(first.model)
            yield from super().answers(chain([first], waiting))

    def _shape(self, asked: Model) -> Model:
        """The formats asked for, with as many products as the ports have room for."""
        inputs = self.netlist.inputs
        length, rest = divmod(len(inputs[self.ports["a"]]), asked.a.width)
        fits = not rest and len(inputs[self.ports["b"]]) == length * asked.b.width
        fits = fits and len(self.netlist.outputs[self.ports[RESULT]]) == asked.d.width
        if self.addend:
            fits = fits and len(inputs[self.ports["c"]]) == asked.c.width
        if not fits:
            widths = ", ".join(f"{name}: {len(bits)}" for name, bits in {**inputs, **self.netlist.outputs}.items())
            wanted = ",".join(fmt.name for fmt in (asked.a, asked.b, asked.c, asked.d))
            raise ParameterError(self.name, f"ports of {widths} bits are none of {wanted}")
        scale = asked.scale if self.scaled else None
        return Signature(asked.a, asked.b, asked.c, asked.d, length, self.addend, scale, asked.scale_block)

    def patterns(self, a: Patterns, b: Patterns, c: Patterns, *rest: Patterns) -> Patterns:
        model, count = self.model, len(c)
        short = ((0, 0), (0, model.length - a.shape[1]))
        sides = dict(zip(PORTS, (np.pad(a, short), np.pad(b, short), c[:, None], *rest), strict=False))
        words = {name: [lanes(side[:, k], model.formats[name].width) for k in range(side.shape[1])]
                 for name, side in sides.items() if name in self.design.port_of}  # fmt: skip
        with np.errstate(over="ignore"):
            d = self.design.result(words, ARRAYS)
        return to_integers(d, count)


def _parts(text: str) -> tuple[list[Path], list[Path], dict[str, str], dict[str, int]]:
    """Files; folders of what they include; what is given by name; and the module's parameters."""
    files, include, values, parameters = list[Path](), list[Path](), dict[str, str](), dict[str, int]()
    for part in text.split(","):
        if (named := re.fullmatch(r"(#?)(\w+)=(.*)", part)) is None:
            files.append(Path(part))
            continue
        parameter, name, value = named.groups()
        if name in (parameters if parameter else values):
            raise InputError(f"device rtl:{text}: {parameter}{name} is given twice")
        if parameter:
            parameters[name] = _number(name, value)
        elif name == INCLUDE:
            include.append(Path(value))
        else:
            values[name] = value
    return files, include, values, parameters


def _number(name: str, value: str) -> int:
    if not is_digits(value):
        known = ", ".join(PORTS)
        raise InputError(f"{name}={value}: a number is given to an input or a parameter, a port to one of {known}")
    return int(value)
