"""A design with its ports: the operand of a dot product on each input port, and the port of the result."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from mmaprobe.smtmodel.base.errors import ParameterError
from mmaprobe.smtmodel.base.jsontext import parse_json
from mmaprobe.smtmodel.carriers.algebra import Bits
from mmaprobe.smtmodel.carriers.carrier import Carrier
from mmaprobe.smtmodel.designs.choices import Wire
from mmaprobe.smtmodel.designs.netlist import Inputs, Netlist

RESULT = "d"
MODULES, PARAMETERS = "modules", ("A_SIGNED", "B_SIGNED", "CLK_POLARITY")


@dataclass(frozen=True)
class Design:
    """The netlist of a module as text (`netlist_text`), and the ports of the operands and of the result `d`, each as
    the operand's and the port's name. On a port the elements of its operand are side by side, the first in the lowest
    bits. `names`: the bits of wires by their names in the design's text, for display."""

    module: str
    netlist: str = field(repr=False)
    ports: tuple[tuple[str, str], ...]
    names: Mapping[str, Sequence[Wire]] = field(default_factory=dict, repr=False, compare=False)

    @cached_property
    def parsed(self) -> Netlist:
        return Netlist.read(parse_json(self.netlist), self.module)

    @cached_property
    def port_of(self) -> Mapping[str, str]:
        return dict(self.ports)

    def width(self, operand: str) -> int:
        """The number of bits of an operand's port; 0 if the operand has no port."""
        port = self.port_of.get(operand, "")
        return len((self.parsed.outputs if operand == RESULT else self.parsed.inputs).get(port, ()))

    def check(self) -> None:
        """Raises ParameterError if an input is neither an operand nor the clock."""
        taken = {port for operand, port in self.ports if operand != RESULT} | self.parsed.clocks
        if others := [port for port in self.parsed.inputs if port not in taken]:
            raise ParameterError(self.module, f"the input {others[0]} is no operand")

    def result(self, operands: Mapping[str, Sequence[Bits]], carrier: Carrier) -> Bits:
        """The word `d` for the elements of each operand (see `Netlist.evaluate`)."""
        return self.parsed.evaluate(self._given(operands), carrier)[self.port_of[RESULT]]

    def named(self, operands: Mapping[str, Sequence[Bits]], carrier: Carrier) -> dict[str, Bits]:
        """The words of the wires in `names`, as far as these can be evaluated."""
        return self.parsed.words(self.names, self._given(operands), carrier)

    def _given(self, operands: Mapping[str, Sequence[Bits]]) -> Inputs:
        return {port: operands[operand] for operand, port in self.ports if operand != RESULT}.__getitem__


def netlist_text(document: Mapping[str, Any], module: str, name: str) -> str:
    """The JSON that Yosys writes for a flat module, under the name `name` and without entries that do not affect the
    module's function."""
    flat = document[MODULES][module]
    ports = {name: {"direction": row["direction"], "bits": row["bits"]} for name, row in flat["ports"].items()}
    cells = {f"cell{number}": _cell(row) for number, row in enumerate(flat["cells"].values())
             if row["type"] != "$scopeinfo"}  # fmt: skip
    return json.dumps({MODULES: {name: {"ports": ports, "cells": cells}}}, separators=(",", ":")) + "\n"


def _cell(row: Mapping[str, Any]) -> dict[str, Any]:
    parameters = {name: value for name, value in row["parameters"].items() if name in PARAMETERS}
    return {key: row[key] for key in ("type", "port_directions", "connections")} | {"parameters": parameters}
