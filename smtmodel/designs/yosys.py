"""Reading designs in Verilog and SystemVerilog, by Yosys: flat, with words, and registers alone besides gates. VHDL is
translated by GHDL first."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from shutil import which
from tempfile import TemporaryDirectory
from typing import Any

from mmaprobe.smtmodel.base.errors import IncompleteError, InputError
from mmaprobe.smtmodel.designs.design import Design, netlist_text

PROGRAM, TRANSLATOR = "yosys", "ghdl"
VHDL = (".vhd", ".vhdl")
SECONDS = 300.0
WRAPPED = "mmaprobe_wrapped"
#: to words, gates and registers: what is given a constant is folded, enables and resets become multiplexers
_FLAT = "proc; flatten; opt_expr; memory; opt; async2sync; dffunmap; opt_clean"


class MissingProgramError(IncompleteError):
    """Yosys is not installed, or GHDL for a design in VHDL."""


def read_design(files: Sequence[Path], top: str, parameters: Mapping[str, int] | None = None,
                constants: Mapping[str, int] | None = None, joined: Mapping[str, Sequence[str]] | None = None,
                seconds: float = SECONDS) -> Design:  # fmt: skip
    """The design of the module `top`, its ports yet to be told. `parameters`: values of its parameters; `constants`: of
    input ports that are no operand, as a reset; `joined`: input ports that become one of that name, the first of them
    in its lowest bits. Raises InputError with what Yosys says of the files,
    MissingProgramError, IncompleteError when the seconds are over, and ParameterError for a design that is no function
    of its inputs."""
    for file in files:
        if not file.is_file():
            raise InputError("there is no such file", str(file))
    with TemporaryDirectory(prefix="mmaprobe-") as folder:
        texts = files
        if any(file.suffix.lower() in VHDL for file in files):
            text, top = _translated(files, top, parameters or {}, Path(folder), seconds)
            texts, parameters = [text], None
        given = " ".join(f"-set {name} {value}" for name, value in (parameters or {}).items())
        places = dict.fromkeys(f'-I"{file.resolve().parent}"' for file in files)
        load = [f"read_verilog -sv {' '.join(places)} {_quoted(file)}" for file in texts]
        chosen = [*([f"chparam {given} {top}"] if given else []), f"hierarchy -check -top {top}"]
        if constants or joined:
            ports = _run([*load, *chosen, "proc"], top, Path(folder), files, seconds)["modules"][top]["ports"]
            wrapper = Path(folder) / "wrapper.v"
            wrapper.write_text(_wrapper(top, ports, constants or {}, joined or {}), encoding="utf-8")
            load.append(f"read_verilog {_quoted(wrapper)}")
            chosen[-1] = f"hierarchy -check -top {WRAPPED}"
        whole = WRAPPED if constants or joined else top
        document = _run([*load, *chosen, _FLAT], whole, Path(folder), files, seconds)
        return Design(top, netlist_text(document, whole, top), ())


def _wrapper(
    top: str, ports: Mapping[str, Any], constants: Mapping[str, int], joined: Mapping[str, Sequence[str]]
) -> str:
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
    return f"module {WRAPPED}({', '.join(heads)});\n  {top} inner({pins});\nendmodule\n"


def _translated(
    files: Sequence[Path], top: str, parameters: Mapping[str, int], folder: Path, seconds: float
) -> tuple[Path, str]:
    """A file in Verilog with what files in VHDL say of an entity, and its name as they write it, in upper or lower
    case. Raises InputError, IncompleteError and MissingProgramError."""
    names = ", ".join(map(str, files))
    if others := [file for file in files if file.suffix.lower() not in VHDL]:
        raise InputError(f"{others[0].name} is not in VHDL, and other files are: a design has one language", names)
    program = which(TRANSLATOR)
    if program is None:
        raise MissingProgramError("GHDL reads designs in VHDL, and is not here: install the package ghdl")
    given = [f"-g{name}={value}" for name, value in parameters.items()]
    said = [program, "synth", "--std=08", *given, "--out=verilog", *map(str, map(Path.resolve, files)), "-e", top]
    done = finished(said, folder, seconds, "GHDL")
    if done.returncode:
        lines = done.stderr.decode(errors="replace").strip().splitlines()
        error = next((line for line in lines if ":error:" in line), lines[-1] if lines else "it failed")
        raise InputError(f"GHDL: {error}", names)
    path = folder / "translated.v"
    path.write_bytes(done.stdout)
    modules = re.findall(r"^module (\w+)", done.stdout.decode(errors="replace"), re.MULTILINE)
    return path, next((name for name in modules if name.lower() == top.lower()), top)


def finished(command: Sequence[str], folder: Path, seconds: float, name: str) -> subprocess.CompletedProcess[bytes]:
    """What a program said. Raises IncompleteError."""
    try:
        return subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, timeout=seconds, cwd=folder)
    except subprocess.TimeoutExpired:
        raise IncompleteError(f"{name} did not end within {seconds:g} s") from None


def _run(commands: Sequence[str], top: str, folder: Path, files: Sequence[Path], seconds: float) -> dict[str, Any]:
    """The document that Yosys writes after some commands."""
    program = which(PROGRAM)
    if program is None:
        raise MissingProgramError("Yosys reads designs, and is not here: install the package yosys")
    out = folder / "design.json"
    script = "\n".join([*commands, f"write_json {_quoted(out)}"])
    (folder / "script.ys").write_text(script, encoding="utf-8")
    done = finished([program, "-q", "-s", str(folder / "script.ys")], folder, seconds, "Yosys")
    if done.returncode:
        said = done.stderr.decode(errors="replace").strip().splitlines()
        error = next((line for line in reversed(said) if "ERROR" in line), said[-1] if said else "it failed")
        raise InputError(f"Yosys: {error.removeprefix('ERROR: ')}", ", ".join(map(str, files)))
    document: dict[str, Any] = json.loads(out.read_text(encoding="utf-8"))
    if top not in document["modules"]:
        raise InputError(f"there is no module {top}", ", ".join(map(str, files)))
    return document


def _quoted(file: Path) -> str:
    return f'"{file.resolve()}"'
