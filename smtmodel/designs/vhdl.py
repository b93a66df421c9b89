"""Designs in VHDL, translated to Verilog by GHDL."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from shutil import which

from mmaprobe.smtmodel.base.errors import InputError
from mmaprobe.smtmodel.designs.program import MissingProgramError, run_program

VHDL, TRANSLATOR, TRANSLATED = (".vhd", ".vhdl"), "ghdl", "translated.v"
_ABSOLUTE = re.compile(r"(\w+) <= std_logic_vector\(abs \$signed\(([\w\[\]:]+)\)\);")  # VHDL in GHDL 2's Verilog
_SIGNED = re.compile(r"= (\S+) [/%] (\S+); // (sdiv|srem|smod)$", re.MULTILINE)  # GHDL writes unsigned divisions
_SHIFT = re.compile(r"(\$signed\([^()]+\)) >> ")  # GHDL 2 writes the shift of an unsigned number
_CUT = re.compile(r"/\* (?:.*/)?([^/\n]+):([0-9]+):[0-9]+ +\*/\n +assign .*; +// trunc$", re.MULTILINE)
_ERROR = re.compile(r"\S.*:[0-9]+:[0-9]+:(?!warning:|note:)")
_PLACE = re.compile(r"/\* (?:.*/)?([^/\n]+:[0-9]+):[0-9]+ +\*/")
_CASE = re.compile(r"case \((?P<selector>\w+)\)\n\s*\S+: (?P<target>\w+) <=.*?endcase", re.DOTALL)
_SELECTION = re.compile(r"with (\w+) select (\w+) <=\n(?:[^;]*,)?\s*(\S+) when others;")


def translated(files: Sequence[Path], top: str, parameters: Mapping[str, int], folder: Path) -> tuple[Path, str]:
    """A file in Verilog that GHDL writes of an entity in files in VHDL, and the entity's name as that file spells it,
    in upper or lower case. Raises InputError, IncompleteError and MissingProgramError."""
    names = ", ".join(map(str, files))
    if others := [file for file in files if file.suffix.lower() not in VHDL]:
        raise InputError(f"{others[0].name} is not in VHDL, and other files are: a design has one language", names)
    program = which(TRANSLATOR)
    if program is None:
        raise MissingProgramError("GHDL reads designs in VHDL, and is not here: install the package ghdl")
    command = [program, "synth", "--std=08", *(f"-g{name}={value}" for name, value in parameters.items())]
    design = [*map(str, map(Path.resolve, files)), "-e", top]

    def written(language: str) -> str:
        done = run_program([*command, f"--out={language}", *design], folder, "GHDL")
        if done.returncode:
            lines = done.stderr.decode(errors="replace").strip().splitlines()
            error = next(filter(_ERROR.match, lines), lines[-1] if lines else "it failed")
            raise InputError(f"GHDL: {error}", names)
        return done.stdout.decode(errors="replace")

    text = written("verilog")
    if any("default:" not in case[0] for case in _CASE.finditer(text)):
        text = _with_defaults(text, written("raw-vhdl"), names)
    if (place := _narrowed(text, files)) and "$strunc" in written("raw"):
        raise InputError(
            f"{place}: GHDL reads this resize as the low bits, and in VHDL a signed number keeps its sign: "
            "write the bits out, x(x'left) & x(N - 2 downto 0), or without the sign x(N - 1 downto 0)"
        )
    text = _SHIFT.sub(r"\1 >>> ", text)
    text = _ABSOLUTE.sub(r"assign \1 = $signed(\2) < 0 ? -\2 : \2;", text)
    text = _SIGNED.sub(_of_signed_numbers, text)
    path = folder / TRANSLATED
    path.write_text(text, encoding="utf-8")
    modules = re.findall(r"^module (\w+)", text, re.MULTILINE)
    return path, next((name for name in modules if name.lower() == top.lower()), top)


def _narrowed(text: str, files: Sequence[Path]) -> str:
    """The file and the line of a call of resize to fewer bits, from GHDL's Verilog; empty without one. Verilog does not
    tell signed numbers from unsigned ones, which lose no sign."""
    texts = {file.name: file.read_text(encoding="utf-8", errors="replace").lower().splitlines() for file in files}
    cut = ((name, int(line)) for name, line in _CUT.findall(text) if name in texts)
    return next((f"{name}:{line}" for name, line in cut if "resize" in texts[name][line - 1]), "")


def mistranslated(text: Path, error: str) -> str:
    """Yosys's message on a translated file, with the line in VHDL from which GHDL wrote invalid Verilog."""
    found = re.search(f"{TRANSLATED}:([0-9]+)", error)
    if found is None:
        return error
    place, line = written_at(text, int(found[1]))
    wrong = f"GHDL writes what is no Verilog ({line}): write this expression in another way"
    return f"{place}: {wrong}" if place else wrong


def written_at(text: Path, number: int) -> tuple[str, str]:
    """For a line of the translated file: its file and line in VHDL, "" where they are not known, and its text."""
    lines = text.read_text(encoding="utf-8").splitlines()[:number]
    places = _PLACE.findall("\n".join(lines))
    return places[-1] if places else "", lines[-1].strip()


def _of_signed_numbers(found: re.Match[str]) -> str:
    """A quotient or a remainder of signed numbers in Verilog; the remainder of mod has the sign of the divisor."""
    left, right = (f"$signed({side})" for side in found.groups()[:2])
    if found[3] == "sdiv":
        return f"= {left} / {right};"
    rest = f"{left} % {right}"
    apart = f"{rest} != 0 && ({rest} < 0) != ({right} < 0)"
    return f"= {rest};" if found[3] == "srem" else f"= {apart} ? {rest} + {right} : {rest};"


def _with_defaults(text: str, netlist: str, names: str) -> str:
    """The Verilog of GHDL 2 with the last choice of each selection, which GHDL leaves out (ghdl/ghdl issue 2041): the
    choice stands in the netlist in VHDL, whose selections come in the same order. Raises InputError for another
    order."""
    chosen = iter(_SELECTION.findall(netlist))

    def whole(case: re.Match[str]) -> str:
        selector, target, last = next(chosen, ("", "", ""))
        value = _value(last)
        if (case["selector"], case["target"]) != (selector, target) or value is None:
            raise InputError(
                "GHDL's Verilog lacks the last choice of a selection: use GHDL 3, or write a chain of if",
                names,
            )
        return f"{case[0].removesuffix('endcase')}  default: {target} <= {value};\n    endcase"

    return _CASE.sub(whole, text)


def _value(text: str) -> str | None:
    """A net or a literal in VHDL, as Verilog writes it; None for another expression."""
    if literal := re.fullmatch(r"""["']([01XUWZ-]+)["']""", text):
        bits = re.sub("[XUWZ-]", "x", literal[1])
        return f"{len(bits)}'b{bits}"
    return text if re.fullmatch(r"\w+", text) else None
