"""Reading designs in Verilog and SystemVerilog, by Yosys: flat, with words, and registers alone besides gates."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from shutil import which
from tempfile import TemporaryDirectory
from typing import Any

from mmaprobe.smtmodel.base.errors import IncompleteError, InputError
from mmaprobe.smtmodel.designs.design import Design, netlist_text

PROGRAM = "yosys"
SECONDS = 300.0
WRAPPED = "mmaprobe_wrapped"
#: to words, gates and registers: what is given a constant is folded, enables and resets become multiplexers
_FLAT = "proc; flatten; opt_expr; memory; opt; async2sync; dffunmap; opt_clean"


class MissingYosysError(IncompleteError):
    """Yosys is not installed."""


def read_design(files: Sequence[Path], top: str, parameters: Mapping[str, int] | None = None,
                constants: Mapping[str, int] | None = None, seconds: float = SECONDS) -> Design:  # fmt: skip
    """The design of the module `top`, its ports yet to be told. `parameters`: values of its parameters; `constants`: of
    input ports that are no operand, as a reset. Raises InputError with what Yosys says of the files, MissingYosysError,
    IncompleteError when the seconds are over, and ParameterError for a design that is no function of its inputs."""
    for file in files:
        if not file.is_file():
            raise InputError("there is no such file", str(file))
    given = " ".join(f"-set {name} {value}" for name, value in (parameters or {}).items())
    load = [f"read_verilog -sv {_quoted(file)}" for file in files]
    chosen = [*([f"chparam {given} {top}"] if given else []), f"hierarchy -check -top {top}"]
    with TemporaryDirectory(prefix="mmaprobe-") as folder:
        if constants:
            ports = _run([*load, *chosen, "proc"], top, Path(folder), files, seconds)["modules"][top]["ports"]
            wrapper = Path(folder) / "wrapper.v"
            wrapper.write_text(_wrapper(top, ports, constants), encoding="utf-8")
            load.append(f"read_verilog {_quoted(wrapper)}")
            chosen[-1] = f"hierarchy -check -top {WRAPPED}"
        whole = WRAPPED if constants else top
        document = _run([*load, *chosen, _FLAT], whole, Path(folder), files, seconds)
        return Design(top, netlist_text(document, whole, top), ())


def _wrapper(top: str, ports: Mapping[str, Any], constants: Mapping[str, int]) -> str:
    """The text of a module that instantiates another one and fixes some of its inputs."""
    for name in constants:
        if name not in ports or ports[name]["direction"] != "input":
            raise InputError(f"{top} has no input port {name}; it has {', '.join(ports)}")
    open_ports = {name: row for name, row in ports.items() if name not in constants}
    head = ", ".join(f"{row['direction']} [{len(row['bits']) - 1}:0] {name}" for name, row in open_ports.items())
    wires = [f".{name}({name})" for name in open_ports]
    wires += [f".{name}({len(ports[name]['bits'])}'d{value})" for name, value in constants.items()]
    return f"module {WRAPPED}({head});\n  {top} inner({', '.join(wires)});\nendmodule\n"


def _run(commands: Sequence[str], top: str, folder: Path, files: Sequence[Path], seconds: float) -> dict[str, Any]:
    """The document that Yosys writes after some commands."""
    program = which(PROGRAM)
    if program is None:
        raise MissingYosysError("Yosys reads designs, and is not here: install the package yosys")
    out = folder / "design.json"
    script = "\n".join([*commands, f"write_json {_quoted(out)}"])
    (folder / "script.ys").write_text(script, encoding="utf-8")
    try:
        done = subprocess.run([program, "-q", "-s", str(folder / "script.ys")], stdin=subprocess.DEVNULL,
                              capture_output=True, timeout=seconds, cwd=folder)  # fmt: skip
    except subprocess.TimeoutExpired:
        raise IncompleteError(f"Yosys did not end within {seconds:g} s") from None
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
