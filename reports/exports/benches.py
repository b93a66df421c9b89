"""Vectors for designers' test benches: a file for $readmemh, a test in Python that drives a design through cocotb, and
a test in the style of riscv-tests for a processor's fused multiply-add."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from importlib.resources import files

import numpy as np

from mmaprobe.queries.compare.observed import ObservedVector
from mmaprobe.reports.exports.c_header import model_of
from mmaprobe.reports.exports.export import Export
from mmaprobe.reports.exports.verilog import identifier, ports_of
from mmaprobe.runner.wiring import Wiring
from mmaprobe.smtmodel import VERSION
from mmaprobe.smtmodel.arithmetic.display import exact_value
from mmaprobe.smtmodel.base.errors import InputError
from mmaprobe.smtmodel.base.escapes import text_bytes
from mmaprobe.smtmodel.evaluate.batch import evaluate_models
from mmaprobe.smtmodel.evaluate.model import Model
from mmaprobe.smtmodel.evaluate.operands import padded
from mmaprobe.smtmodel.tables.reference import parse_reference, with_flags

REACHES = "reaches"
#: format -> the suffix of RISC-V's operations on it, the assembler's directive for its words, the suffix of its moves
SUFFIXES = {"f16": ("h", ".half", "h"), "f32": ("s", ".word", "w"), "f64": ("d", ".dword", "d")}


def readmemh(rows: Sequence[ObservedVector], name: str) -> Export:
    """One hexadecimal word a line for Verilog's $readmemh: a in the lowest bits, its first element lowest, then b, c,
    further operands, and d. Raises InputError unless all vectors are of one model."""
    model = model_of(rows, name, "a file for $readmemh")
    widths = _widths(model)
    lines = [f"// {len(rows)} vectors of {model.reference}, written by mmaprobe {VERSION}", "// " + _fields(widths)]
    total = sum(widths.values())
    for row in rows:
        word, place = 0, 0
        for port, value in _words(row, model).items():
            word |= value << place
            place += widths[port]
        lines.append(f"{word:0{(total + 3) // 4}x}")
    return Export(text_bytes("\n".join(lines) + "\n"))


def cocotb_test(rows: Sequence[ObservedVector], name: str, ports: str | None = None) -> Export:
    """A cocotb test that drives a design with the vectors, compares d, and reports which conditions were hit. `ports`:
    the design's ports, where their names are not those of the operands. Raises InputError unless all vectors are of one
    model, and for ports that the test cannot drive."""
    model = model_of(rows, name, "a test of cocotb")
    wiring = _wiring(model, ports)
    conditions = list(dict.fromkeys(text for row in rows for text in row.vector.extra.get(REACHES, ())))
    places = {text: place for place, text in enumerate(conditions)}
    fmt = model.d
    any_nan = model.nan is None and fmt.has_nan and not fmt.nan_for_negative_zero
    last = (1 << fmt.field_width) - 1
    nan = ((fmt.infinity if fmt.has_infinity else fmt.largest) + 1, last, last) if any_nan else None
    text = files("mmaprobe.reports").joinpath("templates/cocotb.py.txt").read_text("utf-8")
    reset = {wiring.roles[role]: int(role == "reset") for role in ("reset", "reset_low") if role in wiring.roles}
    own = {name: list(wiring.ports_of(name)) for name in _widths(model)}
    written = f"PORTS = {json.dumps(own)}\nIDLE, RESET = {json.dumps(wiring.tied)}, {json.dumps(reset)}"
    for key, value in (("TOP", wiring.top or identifier(model.reference)), ("CLOCK", wiring.roles.get("clock", "")),
                       ("LATENCY", str(wiring.latency or 0)), ("WIRING", written)):  # fmt: skip
        text = text.replace(f"@{key}@", value)
    about = [
        "",
        f"CONDITIONS: those that some vector reaches ({len(conditions)}): of single inputs and steps, two of a step,",
        "and changes of a parameter. `cover` chose the vectors for these.",
    ]
    lines = [f'"""{len(rows)} vectors of {model.reference}, written by mmaprobe {VERSION}, for cocotb.']
    lines += about if conditions else ()
    lines += [*text.splitlines(), f"WIDTHS = {_widths(model)!r}", f"NANS = {nan!r}", "CONDITIONS = ["]
    lines += [f"    {text!r}," for text in conditions] + ["]", "VECTORS = ["]
    for row in rows:
        words = ", ".join(f'"{port}": {value:#x}' for port, value in _words(row, model).items())
        reached = [places[text] for text in row.vector.extra.get(REACHES, ())]
        lines.append(f"    ({{{words}}}, {reached}),")
    return Export(text_bytes("\n".join([*lines, "]"]) + "\n"))


def _wiring(model: Model, ports: str | None) -> Wiring:
    """The ports of a design that a test of cocotb drives. Raises InputError."""
    if ports is None:
        return Wiring("", [], [], "", "", {}, {}, {}, {})
    wiring, widths = Wiring.ports_alone(ports, "--ports"), _widths(model)
    for operand, given in wiring.ports.items():
        if operand not in widths:
            raise InputError(f"--ports: {model.reference} has no {operand}; it has {', '.join(widths)}")
        if widths[operand] % len(given):
            raise InputError(
                f"--ports: the {widths[operand]} bits of {operand} are not those of {len(given)} equal ports"
            )
    if others := wiring.roles.keys() - {"clock", "reset", "reset_low", "valid_in", "ready_out"}:
        raise InputError(f"--ports: a test of cocotb gives an input in each cycle, and reads no {min(others)}")
    if "clock" not in wiring.roles and (wiring.latency or "reset" in wiring.roles or "reset_low" in wiring.roles):
        raise InputError("--ports: a latency and a reset need a clock: clock=PORT")
    return wiring


def riscv_test(rows: Sequence[ObservedVector], name: str) -> Export:
    """A test in assembler with the macros of riscv-tests: for each vector, `fmadd` has to give d, with the canonical
    NaN, and the exceptions in fflags. Vectors are numbered from 2 on; a failure reports its vector's number. Raises
    InputError unless all vectors are of one model, which is a fused multiply-add of f16, f32 or f64."""
    model = model_of(rows, name, "a test for RISC-V")
    fmt = model.d
    if fmt.name not in SUFFIXES or model.unit != parse_reference(f"ieee/fma/{fmt.name}").unit:
        known = ", ".join(f"ieee/fma/{one}" for one in SUFFIXES)
        raise InputError(f"a test for RISC-V has vectors of {known}; these are of {model.reference}", name)
    suffix, directive, move = SUFFIXES[fmt.name]
    inputs = np.array([padded(row.vector.operands, model).every for row in rows], dtype=np.uint64)
    flags = evaluate_models([with_flags(model, "riscv")], inputs)[0].tolist()
    size, lines = fmt.width // 8, list[str]()
    for number, (row, signalled) in enumerate(zip(rows, flags, strict=True), start=2):
        words = _words(row, model)
        words["d"] = fmt.nan if exact_value(words["d"], fmt) == "nan" else words["d"]
        given = ", ".join(f"{value:#0{2 + fmt.width // 4}x}" for value in words.values())
        lines.append(f"  {directive} {given}, {signalled}  # {number}")
    text = files("mmaprobe.reports").joinpath("templates/riscv.S.txt").read_text("utf-8")
    for key, value in (("COUNT", len(rows)), ("MODEL", model.reference), ("VERSION", VERSION), ("SUFFIX", suffix),
                       ("MOVE", move), ("SIZE", size), ("ROW", 5 * size), ("ALL", "\n".join(lines))):  # fmt: skip
        text = text.replace(f"@{key}@", str(value))
    for place, operand in enumerate(("A", "B", "C", "D", "FLAGS")):
        text = text.replace(f"@{operand}@", str(place * size))
    return Export(text_bytes(text))


def _widths(model: Model) -> dict[str, int]:
    """The bits of each port."""
    return {name: fmt.width * count for name, fmt, count in ports_of(model)} | {"d": model.d.width}


def _fields(widths: Mapping[str, int]) -> str:
    """The bits of each port in a word, as text."""
    fields, place = [], 0
    for port, width in widths.items():
        fields.append(f"{port} [{place + width - 1}:{place}]")
        place += width
    return ", ".join(fields)


def _words(row: ObservedVector, model: Model) -> dict[str, int]:
    """The word at each port: elements side by side, the first one lowest."""
    sides, found = padded(row.vector.operands, model).sides, {}
    for name, fmt, _ in ports_of(model):
        found[name] = sum(value << (fmt.width * place) for place, value in enumerate(sides[name]))
    return found | {"d": row.result}
