"""The description of a design: its files, the roles of its ports, and the program that evaluates it. `WRITTEN`: its
form on the command line; a YAML file may give the ports."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from pydantic import Field, create_model

from mmaprobe.smtmodel.base.digits import is_digits
from mmaprobe.smtmodel.base.errors import InputError
from mmaprobe.smtmodel.base.yamlfile import Strict, read_yaml_file, validate
from mmaprobe.smtmodel.designs.design import RESULT
from mmaprobe.smtmodel.operand import NAMED

WRITTEN = (
    "rtl:FILE.sv[,FILE.sv...],top=NAME[,include=FOLDER...][,simulator=verilator|icarus][,ports=FILE.yaml]"
    "[,OPERAND=PORT[+PORT...]...][,PORT=NUMBER...][,#PARAMETER=NUMBER...]"
)
BENCH = (
    "OPERAND=PORT[+PORT...][,d=PORT][,top=NAME][,clock=PORT][,latency=NUMBER][,reset=PORT][,reset_low=PORT]"
    "[,PORT=NUMBER...][,ports=FILE.yaml]"
)
OPERAND_NAMES = tuple(NAMED)
PORTS = (*OPERAND_NAMES, RESULT)
#: role of a control port -> the number on the port while the design takes an input in every cycle; None: the clock, and
#: ports that the design drives
ROLES = {"clock": None, "reset": 0, "reset_low": 1, "valid_in": 1, "ready_in": None, "valid_out": None, "ready_out": 1}
INCLUDE = "include"  # a word of Verilog, so no port has this name
SIMULATORS = ("verilator", "icarus")


def as_netlist(name: str) -> str:
    """The name of a design without its simulator: the name of the netlist that Yosys makes of the design."""
    return ",".join(part for part in name.split(",") if not part.startswith("simulator="))


class _Others(Strict):
    """The ports of a design that are no operands, and its latency, constants and parameters."""

    d: str = ""
    clock: str = ""
    reset: str = ""
    reset_low: str = ""
    valid_in: str = ""
    ready_in: str = ""
    valid_out: str = ""
    ready_out: str = ""
    latency: int | None = Field(default=None, ge=0)
    constants: dict[str, int] = Field(default_factory=dict)
    parameters: dict[str, int] = Field(default_factory=dict)


_OPERANDS: dict[str, Any] = dict.fromkeys(OPERAND_NAMES, (str | list[str], ""))
#: operand, result or role -> its port; an operand may have one port for each element
PortFile = create_model("PortFile", __base__=_Others, **_OPERANDS)


@dataclass
class Wiring:
    """`ports`: operand or result -> its ports; several ports share the bits of all elements, the first port has the
    lowest. `roles`: the ports of ROLES; `constants`: the numbers of other inputs; `latency`: cycles, where given;
    `include`: the folders of included files."""

    name: str
    files: list[Path]
    include: list[Path]
    top: str
    simulator: str
    ports: dict[str, tuple[str, ...]]
    roles: dict[str, str]
    constants: dict[str, int]
    parameters: dict[str, int]
    latency: int | None = None

    @classmethod
    def read(cls, text: str) -> Wiring:
        """The description in the text after `rtl:`. Raises InputError."""
        name = f"rtl:{text}"
        own, given = cls._parts(text, f"device {name}")
        own.name = name
        if not own.files or not own.top:
            raise InputError(f"device {name}: a design is written {WRITTEN}")
        for file in own.files:
            if not file.is_file():
                raise InputError("there is no such file", str(file))
        for folder in own.include:
            if not folder.is_dir():
                raise InputError("there is no such folder", str(folder))
        if own.simulator and own.simulator not in SIMULATORS:
            raise InputError(f"device {name}: simulator={own.simulator}: it is one of {', '.join(SIMULATORS)}")
        own._take(given, f"device {name}")
        return own

    @classmethod
    def ports_alone(cls, text: str, name: str) -> Wiring:
        """The description in the text of a bench, which is that after `rtl:` without files. `name`: what messages call
        the text. Raises InputError."""
        own, given = cls._parts(text, name)
        if own.files or own.include or own.simulator or own.parameters:
            raise InputError(f"{name}: {text}: it is written {BENCH}")
        own._take(given, name)
        for port in (own.top or "top", *(port for ports in own.ports.values() for port in ports), *own.roles.values(),
                     *own.constants):  # fmt: skip
            if not re.fullmatch(r"[A-Za-z_]\w*", port, re.ASCII):
                raise InputError(f"{name}: {port!r} is no name of a port or a module")
        return own

    @classmethod
    def _parts(cls, text: str, name: str) -> tuple[Wiring, dict[str, str]]:
        """The design without its ports, and what is given by name."""
        given, own = dict[str, str](), cls(name, [], [], "", "", {}, {}, {}, {})
        for part in text.split(","):
            if (named := re.fullmatch(r"(#?)(\w+)=(.*)", part)) is None:
                own.files.append(Path(part))
                continue
            parameter, key, value = named.groups()
            if key in (own.parameters if parameter else given):
                raise InputError(f"{name}: {parameter}{key} is given twice")
            if parameter:
                own.parameters[key] = _number(key, value)
            elif key == INCLUDE:
                own.include.append(Path(value))
            else:
                given[key] = value
        own.top, own.simulator = given.pop("top", ""), given.pop("simulator", "")
        if "#" in own.top:
            top, _, parameter = own.top.partition("#")
            raise InputError(f"top={own.top}: a parameter stands after a comma: top={top},#{parameter}")
        return own, given

    def _take(self, given: dict[str, str], name: str) -> None:
        """Adds ports, roles and numbers that are given by name."""
        if "ports" in given:
            self._read_file(Path(given.pop("ports")))
        if "latency" in given:
            self.latency = _number("latency", given.pop("latency"))
        for key, value in given.items():
            if key in PORTS:
                self.ports[key] = tuple(value.split("+"))
            elif key in ROLES and not is_digits(value):
                self.roles[key] = value
            else:
                self.constants[key] = _number(key, value)
        if len(self.ports.get(RESULT, ("",))) > 1:
            raise InputError(f"{name}: {RESULT} is one port")

    def _read_file(self, path: Path) -> None:
        file = validate(read_yaml_file(path), PortFile)
        for key in PORTS:
            if given := getattr(file, key):
                self.ports[key] = (given,) if isinstance(given, str) else tuple(given)
        self.roles |= {role: port for role in ROLES if (port := getattr(file, role))}
        self.constants |= file.constants
        self.parameters = file.parameters | self.parameters
        self.latency = file.latency

    @cached_property
    def tied(self) -> Mapping[str, int]:
        """The numbers on inputs that are no operands: the constants, and the control ports as in ROLES."""
        still = {port: number for role, port in self.roles.items() if (number := ROLES[role]) is not None}
        return self.constants | still

    def ports_of(self, name: str) -> tuple[str, ...]:
        """The ports of an operand or of the result: the ports given, else one of that name."""
        return self.ports.get(name, (name,))

    def check(self, inputs: Iterable[str], outputs: Iterable[str], known: Iterable[str]) -> None:
        """Raises InputError for ports that are missing, and for inputs that are no operand and have no role and no
        number. `known`: other inputs that are known, such as the clock."""
        inputs, outputs = list(inputs), list(outputs)
        for name in PORTS:
            side, way = (outputs, "output") if name == RESULT else (inputs, "input")
            if (name in self.ports or name in ("a", "b", RESULT)) and (
                missing := [port for port in self.ports_of(name) if port not in side]
            ):
                raise InputError(
                    f"{self.name}: no {way} port {missing[0]} ({name}=PORT); it has {', '.join(side) or 'none'}"
                )
        for role, port in self.roles.items():
            side = outputs if role in ("ready_in", "valid_out") else inputs
            if port not in side:
                raise InputError(f"{self.name}: {role}={port}: there is no such port; it has {', '.join(side)}")
        taken = {port for name in OPERAND_NAMES for port in self.ports_of(name)} | {*self.roles.values()}
        taken |= {*known, *self.constants}
        if open_ports := [name for name in inputs if name not in taken]:
            raise InputError(
                f"{self.name}: what is the input {open_ports[0]}? ({open_ports[0]}=NUMBER, or OPERAND=PORT)"
            )


def _number(name: str, value: str) -> int:
    if not is_digits(value):
        known = ", ".join((*PORTS, *ROLES))
        raise InputError(f"{name}={value}: a number is given to an input or a parameter, a port to one of {known}")
    return int(value)
