"""The conditions of a model's datapath that `cover` tries to reach: as a SystemVerilog module over the wires of the
model's Verilog module, for coverage in simulators and for tools that search inputs; and in words."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

from mmaprobe.queries.kernel.cases.conditions import conditions_of, possible
from mmaprobe.reports.exports.export import Export
from mmaprobe.reports.exports.verilog import LINT_ON, Printed, head_of
from mmaprobe.smtmodel.base.escapes import text_bytes
from mmaprobe.smtmodel.base.wording import counted
from mmaprobe.smtmodel.carriers.verilog import range_of
from mmaprobe.smtmodel.evaluate.model import Model

#: the end of a simulation whose bound module asserts something of RESULT, where no macro defines it
UNTIED = ("`ifdef BOUND", "`ifndef RESULT",
          '  initial $fatal(1, "RESULT is not defined: the path of the result that is asserted to be d");',
          "`endif", "`endif")  # fmt: skip

_NUMBER = re.compile("-?[0-9]+")


SINGLE = "those of single inputs and steps that `cover` tries to reach"
APART = "Two of a step together, and changes of a parameter, which `cover` counts apart, are not among them."


def exported(model: Model) -> Export:
    """The text of the conditions' module."""
    text, count = module(model)
    return Export(text_bytes(text), about=f"module {Printed(model).name}_conditions, {counted(count, 'condition')}")


def table(model: Model) -> Export:
    """A Markdown table with a row for each aspect of a step: the number of conditions, and the cases in words. Steps
    with the same aspect and cases share a row; cases that differ in one number are merged."""
    printed = Printed(model)
    aspects = dict[tuple[str, str], list[str]]()
    for met in possible(conditions_of(model, printed.layout, printed.operands, printed.evaluation)):
        aspects.setdefault((met.step, met.aspect), []).append(met.asked)
    kinds = {key: re.sub(r" [0-9]+$", "", key[1]) for key in aspects}
    often = Counter((key[0], kind) for key, kind in kinds.items())
    rows = dict[tuple[str, tuple[str, ...]], list[str]]()
    for (step, aspect), listed in aspects.items():
        kind = kinds[step, aspect]
        rows.setdefault((kind, tuple(listed)), []).append(step if often[step, kind] == 1 else f"{step}, {aspect}")
    count = sum(map(len, aspects.values()))
    lines = [f"Conditions of {model.reference}, {count} in all: {SINGLE}. {APART}", "",
             "| step | aspect | conditions | cases |", "|---|---|---|---|"]  # fmt: skip
    for (kind, cases), steps in rows.items():
        each = " each" if len(steps) > 1 else ""
        lines.append(f"| {'; '.join(ranges(steps))} | {kind} | {len(cases)}{each} | {'; '.join(ranges(cases))} |")
    return Export(text_bytes("\n".join([*lines, ""])), about=f"a table of {counted(count, 'condition')}")


def _counts(count: int, hidden: int) -> list[str]:
    """How the conditions of a module relate to those of `cover`."""
    less = [f"but for the {hidden} that ask whether a flag decides the result: no wire shows that."] * bool(hidden)
    return [f"{counted(count, 'condition')}: {SINGLE}{',' if hidden else '.'}", *less, APART]


def ranges(texts: Sequence[str]) -> list[str]:
    """The texts; three or more that differ in one number alone, which grows by one, become one text with the first and
    the last number."""
    alike = dict[str, list[list[str]]]()
    for text in texts:
        alike.setdefault(_NUMBER.sub("#", text), []).append(_NUMBER.findall(text))
    found = list[str]()
    for text, rows in alike.items():
        columns = list(zip(*rows, strict=True))
        varying = [place for place, column in enumerate(columns) if len(set(column)) > 1]
        values = [int(word) for word in columns[varying[0]]] if len(varying) == 1 else []
        if len(values) > 2 and values == list(range(values[0], values[0] + len(values))):
            rows[0][varying[0]] = f"{values[0]}..{values[-1]}"
            rows = rows[:1]
        found += [_filled(text, row) for row in rows]
    return found


def _filled(text: str, words: Sequence[str]) -> str:
    given = iter(words)
    return re.sub("#", lambda _: next(given), text)


def module(model: Model, name: str = "") -> tuple[str, int]:
    """The text of a module `NAME_conditions`, bound to the model's module `name`, and the number of conditions. Its
    inputs are the operands, d and named wires of that module, and `q`, the result of a design under test; its output
    `met` has a bit for each condition. Conditions with a flaw are left out: the wires do not show whether the result
    depends on it."""
    printed = Printed(model, name)
    every = possible(conditions_of(model, printed.layout, printed.operands, printed.evaluation))
    flags = {condition: flag for condition, flag in every.items() if condition.flaw is None}
    carrier, named, names = printed.carrier, printed.named, printed.names
    nodes = [flag.node for flag in flags.values()]
    wires = carrier.wires_of(nodes, named)
    read = {*carrier.read_by(wires), *nodes}
    ports = printed.ports | {names[wire]: width for wire, width in named.items() if wire in read}
    count, own = len(flags), f"{printed.name}_conditions"
    width = model.d.width
    heads = [f"  input  {range_of(bits)}{port}" for port, bits in ports.items()]
    body = [*carrier.lines_of_functions(), *carrier.statements_of(wires, names)]
    points = [f"    condition_{place}: coverpoint met[{place}] {{ bins hit = {{1}}; }}  // {condition}"
              for place, condition in enumerate(flags)]  # fmt: skip
    covers = [f"    condition_{place}: cover (met[{place}]);" for place in range(count)]
    connected = ", ".join(f".{port}({port})" for port in ports)
    text = "\n".join([
        *head_of(model), *(f"// {line}" for line in _counts(count, len(every) - count)),
        f"module {own} (", *(f"{head}," for head in heads),
        f"  input  {range_of(width)}d,", f"  input  {range_of(width)}q,", f"  output [{count - 1}:0] met", ");",
        *(f"  {line}" for line in body),
        *(f"  assign met[{place}] = {names.get(node, node)};  // {condition}"
          for place, (node, condition) in enumerate(zip(nodes, flags, strict=True))),
        "`ifdef COVERGROUPS", "  covergroup conditions @(met);", "    option.per_instance = 1;", *points, "  endgroup",
        "  conditions covered = new;", "`endif", "`ifdef COVERS", "  always @* begin", *covers, "  end", "`endif",
        "`ifdef ASSERTIONS", "  always @* begin", "    assert (q === d);", "  end", *UNTIED, "`endif", "endmodule",
        "`ifdef BOUND", "`ifndef RESULT", "`define RESULT d", "`endif",
        f"bind {printed.name} {own} conditions ({connected}, .d(d), .q(`RESULT), .met());",
        "`endif", *LINT_ON, "",
    ])  # fmt: skip
    return text, count
