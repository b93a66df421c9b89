"""A design in Verilog or SystemVerilog as a device that Verilator or Icarus Verilog simulates: a bench gives it an
input in each cycle, or whenever it is ready for one."""

from __future__ import annotations

import random
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from pathlib import Path
from shutil import which
from tempfile import TemporaryDirectory
from xml.etree import ElementTree

import numpy as np

from mmaprobe.runner.protocol import DeviceUnavailableError
from mmaprobe.runner.rtl import DesignDevice
from mmaprobe.runner.wiring import OPERAND_NAMES, Wiring
from mmaprobe.smtmodel.base.digits import is_digits
from mmaprobe.smtmodel.base.errors import IncompleteError, InputError, ParameterError
from mmaprobe.smtmodel.base.wording import counted
from mmaprobe.smtmodel.designs.design import RESULT
from mmaprobe.smtmodel.designs.netlist import DEEPEST
from mmaprobe.smtmodel.designs.program import run_program
from mmaprobe.smtmodel.evaluate.batch import Patterns

WORDS = 96  # random inputs that tell how many cycles a design takes
SPARSE = 3  # of their bits, one in 2, 4 or 8 is set
MOST_CYCLES = 4096  # cycles without a result, or without an input taken, that end a run
NAMES = {"verilator": "Verilator", "icarus": "Icarus Verilog"}
PACKAGES = {"verilator": ("verilator", "g++", "make"), "icarus": ("iverilog", "vvp")}
#: what Icarus Verilog warns of, and what ends Verilator
NO_PARAMETER = re.compile(r"warning: parameter (\w+) not found|not found in the design: (\w+)")
UNDEFINED = frozenset("xz")
CLOCKS = ("clk", "clock")
TASKS = """  task cycle; begin
    #1; accepted = taken;
    if (running && accepted && !begun) begin begun = 1; now = 0; end
    if (running && given) begin $display("%0d %h", now, d); count = count + 1; idle = 0; end
    else idle = idle + 1;
    now = now + 1;
    clock = 1; #1; clock = 0;
  end endtask
  initial begin
    if (!$value$plusargs("hold=%d", hold)) hold = 1;
    if (!$value$plusargs("flush=%d", flush)) flush = 0;
    file = $fopen("inputs.hex", "r");
    word = 0; reset = 1; repeat (4) cycle;
    reset = 0; cycle;
    running = 1; valid = 1;
    while ($fscanf(file, "%h\\n", next) == 1) begin
      word = next;
      repeat (hold) begin
        cycle; waited = 0;
        while (!accepted && waited < MOST_CYCLES) begin cycle; waited = waited + 1; end
      end
    end
    valid = 0; idle = 0;
    if (ENDLESS) repeat (flush) cycle;
    else while (count < flush && idle < MOST_CYCLES) cycle;
    $finish;
  end
endmodule
"""


@dataclass(frozen=True)
class Port:
    """A port of a module. `width`: its bits, or those of an unpacked array's element; `bounds`: the array's first and
    last index."""

    name: str
    is_output: bool
    width: int
    bounds: tuple[int, int] | None = None

    @property
    def bits(self) -> int:
        return self.width * (1 if self.bounds is None else abs(self.bounds[0] - self.bounds[1]) + 1)


class SimulatedDevice(DesignDevice):
    """A design with or without a clock. With valid_in and valid_out, results come when the design says so, in the order
    of the inputs; without these ports, as many cycles after an input as a run on random inputs shows. A result with
    undefined bits ends the run. Raises InputError, ParameterError, IncompleteError and DeviceUnavailableError."""

    def __init__(self, wiring: Wiring) -> None:
        self.name, self.wiring, self.kind = wiring.name, wiring, NAMES[wiring.simulator]
        for program in PACKAGES[wiring.simulator]:
            if which(program) is None:
                package = PACKAGES[wiring.simulator][0]
                raise DeviceUnavailableError(
                    f"{self.kind} simulates designs, and {program} is not here: install the package {package}"
                )
        self._folder = TemporaryDirectory(prefix="mmaprobe-")
        self.folder = Path(self._folder.name)
        try:
            self._open()
        except BaseException:
            self.close()
            raise

    def _open(self) -> None:
        wiring = self.wiring
        ports = {port.name: port for port in self._ports()}
        inputs = [name for name, port in ports.items() if not port.is_output]
        outputs = [name for name, port in ports.items() if port.is_output]
        self.clock = wiring.roles.get("clock") or next((name for name in CLOCKS if name in inputs), "")
        if self.clock in wiring.tied:
            self.clock = ""
        wiring.check(inputs, outputs, {self.clock})
        sides = {name: [ports[port] for port in wiring.ports_of(name)] for name in OPERAND_NAMES
                 if set(wiring.ports_of(name)) <= set(inputs)}  # fmt: skip
        result = ports[wiring.ports_of(RESULT)[0]]
        self.widths = {name: sum(port.bits for port in side) for name, side in sides.items()} | {RESULT: result.bits}
        (self.folder / "bench.sv").write_text(self._bench(sides, ports), encoding="utf-8")
        self.command = self._compiled()
        self.latency = wiring.latency if self.clock else 0
        if self.latency is None and not self._tells:
            self.latency = self._found_latency()
        self.description = {"name": f"design {wiring.top}", "simulator": self.kind}
        self.description |= {} if self.latency is None else {"latency": self.latency}

    @property
    def _tells(self) -> bool:
        """Whether the design says when there is a result."""
        return "valid_out" in self.wiring.roles

    def close(self) -> None:
        self._folder.cleanup()

    # -- the program

    def _called(self, command: Sequence[str]) -> str:
        """The output of a program that is run on the files. Raises InputError and IncompleteError."""
        done = run_program(command, self.folder, self.kind)
        if missing := NO_PARAMETER.search(done.stderr.decode(errors="replace")):
            names = ", ".join(map(str, self.wiring.files))
            raise InputError(f"{self.wiring.top} has no parameter {missing[1] or missing[2]}", names)
        if done.returncode:
            output = (done.stderr or done.stdout).decode(errors="replace").strip().splitlines()
            error = next((line for line in output if "error" in line.lower()), output[-1] if output else "it failed")
            raise InputError(f"{self.kind}: {error}", ", ".join(map(str, self.wiring.files)))
        return done.stdout.decode(errors="replace")

    @property
    def _sources(self) -> list[str]:
        """The files, and options with the folders of the files that they include."""
        files = [file.resolve() for file in self.wiring.files]
        places = [*(place.resolve() for place in self.wiring.include), *(file.parent for file in files)]
        return [*dict.fromkeys(f"-I{place}" for place in places), *map(str, files)]

    def _ports(self) -> list[Port]:
        """The ports of the module."""
        top, given = self.wiring.top, self.wiring.parameters.items()
        if self.wiring.simulator == "icarus":
            values = [f"-P{top}.{name}={value}" for name, value in given]
            self._called(["iverilog", "-g2012", "-s", top, *values, "-o", "ports.vvp", *self._sources])
            text = (self.folder / "ports.vvp").read_text(encoding="utf-8")
            (own,) = [part for part in text.split(" .scope ") if part.startswith(f'module, "{top}" "{top}"')]
            rows = re.findall(r'^ *\.port_info [0-9]+ /(\w+) ([0-9]+) "(.*)"', own, re.MULTILINE)
            return [Port(name, way == "OUTPUT", int(bits)) for way, bits, name in rows]
        values = [f"-G{name}={value}" for name, value in given]
        self._called([*_VERILATOR, "--xml-only", "--xml-output", "ports.xml", "--top-module", top, *values,
                      *self._sources])  # fmt: skip
        root = ElementTree.parse(self.folder / "ports.xml").getroot()
        types = {str(row.get("id")): row for row in root.iter() if row.tag.endswith("dtype")}
        module = next(row for row in root.iter("module") if row.get("topModule"))
        return [_port(row, types) for row in module.findall("var") if row.get("dir")]

    def _compiled(self) -> list[str]:
        """The command that runs the bench."""
        if self.wiring.simulator == "icarus":
            self._called(["iverilog", "-g2012", "-s", "mmaprobe_bench", "-o", "bench.vvp", *self._sources, "bench.sv"])
            return ["vvp", "-n", "bench.vvp"]
        self._called([*_VERILATOR, "--binary", "-j", "1", "-CFLAGS", "-O0", "--top-module", "mmaprobe_bench", "-o",
                      "bench", *self._sources, "bench.sv"])  # fmt: skip
        return [str(self.folder / "obj_dir" / "bench")]

    def _bench(self, sides: Mapping[str, Sequence[Port]], ports: Mapping[str, Port]) -> str:
        """The text of the bench: it reads one input in each line, operand a in the lowest bits, and writes the number
        of each cycle with the output in this cycle, or only of the cycles with a valid output."""
        roles, total = self.wiring.roles, sum(port.bits for side in sides.values() for port in side)
        connected = {port: f"{ports[port].width}'d{number}" for port, number in self.wiring.tied.items()}
        own = {"clock": "clock", "reset": "reset", "reset_low": "!reset", "valid_in": "valid", "ready_in": "taken",
               "valid_out": "given", "ready_out": "1'b1"}  # fmt: skip
        connected |= {port: own[role] for role, port in roles.items()} | ({self.clock: "clock"} if self.clock else {})
        lines, low = list[str](), 0
        for port in [port for side in sides.values() for port in side]:
            text, more = _part(port, low)
            connected[port.name], low = text, low + port.bits
            lines += more
        connected[self.wiring.ports_of(RESULT)[0]] = "d"
        parameters = ", ".join(f".{name}({value})" for name, value in self.wiring.parameters.items())
        pins = ", ".join(f".{port}({text})" for port, text in connected.items())
        head = [
            "module mmaprobe_bench;", f"  localparam MOST_CYCLES = {MOST_CYCLES}, ENDLESS = {int(not self._tells)};",
            f"  reg [{total - 1}:0] word, next;", f"  wire [{self.widths[RESULT] - 1}:0] d;",
            "  reg clock = 0, reset = 0, valid = 0, running = 0, begun = 0, accepted = 0;",
            "  integer file, hold, flush, waited, now = 0, count = 0, idle = 0;",
            f"  wire taken{'' if 'ready_in' in roles else ' = 1'};", f"  wire given{'' if self._tells else ' = 1'};",
            *lines, f"  {self.wiring.top} {f'#({parameters}) ' if parameters else ''}dut({pins});",
        ]  # fmt: skip
        return "\n".join([*head, TASKS])

    # -- inputs and results

    def _run(self, words: Sequence[int], **given: int) -> list[str]:
        """The outputs that the bench writes for some inputs."""
        (self.folder / "inputs.hex").write_text("".join(f"{word:x}\n" for word in words), encoding="utf-8")
        output = self._called([*self.command, *(f"+{name}={value}" for name, value in given.items())])
        rows = (line.split() for line in output.splitlines())
        return [row[1].lower() for row in rows if len(row) == 2 and is_digits(row[0])]

    def _found_latency(self) -> int:
        """The cycles after which inputs given one in each cycle have the results of inputs held for many cycles."""
        source, total, long = random.Random(1), sum(self.widths.values()) - self.widths[RESULT], DEEPEST + 2
        words = [reduce(lambda word, _: word & source.getrandbits(total), range(place % SPARSE),
                        source.getrandbits(total)) for place in range(WORDS)]  # fmt: skip
        stay = self._run(words, hold=long)[long - 1 :: long]
        moving = self._run(words, flush=DEEPEST)
        found = [cycles for cycles in range(DEEPEST + 1) if moving[cycles : cycles + WORDS] == stay]
        if all(set(text) & UNDEFINED for text in stay):
            raise ParameterError(
                self.name, "its results have undefined bits for all inputs: give reset=PORT, or a number of an input"
            )
        if len(found) > 1:
            raise ParameterError(
                self.name, "its results are the same for all inputs that tell its latency: give latency=NUMBER"
            )
        if not found:
            raise ParameterError(
                self.name,
                f"it is no pipeline that takes an input in each cycle and answers up to {DEEPEST} cycles later; "
                "where it says when there is a result, and when it takes an input: valid_in=PORT,valid_out=PORT, "
                "ready_in=PORT, ready_out=PORT",
            )
        return found[0]

    def results(self, sides: Mapping[str, Patterns]) -> Patterns:
        words, low = [0] * len(sides[OPERAND_NAMES[0]]), 0
        for name, side in sides.items():
            width = self.model.formats[name].width
            for place in range(side.shape[1]):
                words = [word | pattern << low for word, pattern in zip(words, side[:, place].tolist(), strict=True)]
                low += width
        count = len(words)
        results = self._run(words, flush=count if self._tells else self.latency or 0)
        results = results[:count] if self._tells else results[self.latency or 0 :]
        if len(results) != count:
            raise IncompleteError(f"{counted(len(results), 'result')} for {counted(count, 'input')}")
        if open_ones := [text for text in results if set(text) & UNDEFINED]:
            raise IncompleteError(f"a result has undefined bits: {open_ones[0]}")
        return np.array([int(text, 16) for text in results], dtype=np.uint64)


_VERILATOR = ("verilator", "-Wno-fatal", "-Wno-lint", "-Wno-style", "--timing")


def _part(port: Port, low: int) -> tuple[str, list[str]]:
    """The text of the word's bits, from `low` on, that a port is given; and the other lines of the bench for an
    array."""
    if port.bounds is None:
        return f"word[{low + port.bits - 1}:{low}]", []
    first, last = port.bounds
    name, places = f"elements_{port.name}", range(min(first, last), max(first, last) + 1)
    given = [f"  assign {name}[{at}] = word[{low + (k + 1) * port.width - 1}:{low + k * port.width}];"
             for k, at in enumerate(places)]  # fmt: skip
    return name, [f"  wire [{port.width - 1}:0] {name} [{first}:{last}];", *given]


def _port(row: ElementTree.Element, types: Mapping[str, ElementTree.Element]) -> Port:
    """A port in Verilator's XML."""
    kind, bounds = types[str(row.get("dtype_id"))], None
    while kind.tag in ("refdtype", "enumdtype"):
        kind = types[str(kind.get("sub_dtype_id"))]
    if kind.tag == "unpackarraydtype":
        bounds, kind = _range(kind), types[str(kind.get("sub_dtype_id"))]
    return Port(str(row.get("name")), row.get("dir") == "output", _bits(kind, types), bounds)


def _bits(kind: ElementTree.Element, types: Mapping[str, ElementTree.Element]) -> int:
    """The bits of a packed type."""
    match kind.tag:
        case "basicdtype":
            return abs(int(kind.get("left", "0")) - int(kind.get("right", "0"))) + 1
        case "structdtype":
            return sum(_bits(types[str(row.get("sub_dtype_id"))], types) for row in kind.findall("memberdtype"))
        case "packarraydtype":
            first, last = _range(kind)
            return (abs(first - last) + 1) * _bits(types[str(kind.get("sub_dtype_id"))], types)
        case "refdtype" | "enumdtype":
            return _bits(types[str(kind.get("sub_dtype_id"))], types)
    raise InputError(f"a port of a type that has no width here ({kind.tag})")


def _range(kind: ElementTree.Element) -> tuple[int, int]:
    first, last = (int(str(row.get("name")).split("h")[-1], 16) for row in kind.iter("const"))
    return first, last
