"""The conditions of a model's datapath as a module in SystemVerilog, over the wires of the module that is printed of
the model: what `cover` reaches, for a simulator's coverage and for tools that look for inputs themselves."""

from __future__ import annotations

from mmaprobe.queries.kernel.conditions import conditions_of
from mmaprobe.reports.exports.verilog import Printed, about
from mmaprobe.smtmodel.base.escapes import text_bytes
from mmaprobe.smtmodel.base.wording import counted
from mmaprobe.smtmodel.carriers.verilog import range_of
from mmaprobe.smtmodel.evaluate.model import Model


def exported(model: Model) -> tuple[bytes, str, str]:
    """The text of the conditions' module; nothing to be said beside it; and what it is."""
    text, count = module(model)
    return text_bytes(text), "", f"module {Printed(model).name}_conditions, {counted(count, 'condition')}"


def module(model: Model, name: str = "") -> tuple[str, int]:
    """The text of a module `NAME_conditions` that is bound to the module `name` of the model, and the number of
    conditions. Its inputs are operands, d and named wires of that module, and `q`, the result of a design beside it;
    its output `met` has a bit for each condition."""
    printed = Printed(model, name)
    flags = conditions_of(model, printed.layout, printed.operands, printed.evaluation)
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
        *(f"// {line}".rstrip() for line in about(model)), f"module {own} (", *(f"{head}," for head in heads),
        f"  input  {range_of(width)}d,", f"  input  {range_of(width)}q,", f"  output [{count - 1}:0] met", ");",
        *(f"  {line}" for line in body),
        *(f"  assign met[{place}] = {names.get(node, node)};  // {condition}"
          for place, (node, condition) in enumerate(zip(nodes, flags, strict=True))),
        "`ifdef COVERGROUPS", "  covergroup conditions @(met);", "    option.per_instance = 1;", *points, "  endgroup",
        "  conditions covered = new;", "`endif", "`ifdef COVERS", "  always @* begin", *covers, "  end", "`endif",
        "`ifdef ASSERTIONS", "  always @* begin", "    same: assert (q === d);", "  end", "`endif", "endmodule",
        "`ifdef BOUND",
        f"bind {printed.name} {own} conditions ({connected}, .d(d), .q(d), .met());",
        "`endif", "",
    ])  # fmt: skip
    return text, count
