"""A model as a header of C++ and of C: one function of straight-line code over integers of 32 and 64 bits, printed by
the carrier of the fast evaluation. Tools for formal verification read the function directly: it has no loops, branches,
memory accesses or floating point."""

from __future__ import annotations

import re
from collections.abc import Iterator

from mmaprobe.reports.exports.export import Export
from mmaprobe.reports.exports.verilog import about, evaluated, identifier, ports_of, signal_names
from mmaprobe.smtmodel.arithmetic.formats import Format
from mmaprobe.smtmodel.base.escapes import c_comment, text_bytes
from mmaprobe.smtmodel.base.wording import counted
from mmaprobe.smtmodel.carriers.code import INNER, CodeCarrier, CodeValue, word_type
from mmaprobe.smtmodel.evaluate.compiled import needed_statements
from mmaprobe.smtmodel.evaluate.cuda_text import word_of
from mmaprobe.smtmodel.evaluate.model import Model
from mmaprobe.smtmodel.nodes.trace import Trace
from mmaprobe.smtmodel.operand import NAMED

_VARIABLE = re.compile(r"\bv[0-9]+\b")


def _zeros(bits: int) -> str:
    """The C function that counts the zeros above the highest set bit of a nonzero word: a step for each power of two,
    without a loop."""
    kind, steps, step = f"uint{bits}_t", list[str](), bits // 2
    while step:
        steps.append(f"  empty = 0 - ({kind})((x >> {bits - step}) == 0);")
        steps.append(f"  x ^= (x ^ (x << {step})) & empty;")
        steps.append(f"  n += {step} & empty;")
        step //= 2
    start = [f"static inline {kind} zeros{bits}({kind} x) {{", f"  {kind} n = 0, empty;"]
    return "\n".join([*start, *steps, "  return n;", "}"])


_COUNTING = "\n".join(["#ifndef MMAPROBE_ZEROS", "#define MMAPROBE_ZEROS", _zeros(32), _zeros(64), "#endif"])


def exported(model: Model) -> Export:
    """The text of a model's header."""
    text = header(model)
    return Export(
        text_bytes(text), about=f"function {identifier(model.reference)}, {counted(text.count(' = '), 'statement')}"
    )


def header(model: Model) -> str:
    """The text of a header with a function of the model's name. The parameters, in the order of `OPERANDS`, are a
    pointer to the patterns of each operand that the model reads; for an operand of the whole sum, the pattern itself.
    The function returns the pattern of d. Bits above the width of a format are not read. A variable that is a signal of
    the model has the signal's name, with _ for characters that C++ does not allow, and with `limb` and a number for
    each word of a wider signal."""
    carrier, name = CodeCarrier(), identifier(model.reference)
    ports = ports_of(model)
    given = {operand: [carrier.input(f"{operand}{k}", fmt.width, INNER) for k in range(count)]
             for operand, fmt, count in ports}  # fmt: skip
    elements = [element for side in given.values() for element in side]
    _, result = evaluated(model, elements)  # with its signals: no IEEE operation of the processor is used
    signals = ((name, word.text) for name, word in _words(result.trace) if _VARIABLE.fullmatch(word.text))
    names = signal_names(signals, {*model.formats, *(element.node.text for element in elements)})
    statements = needed_statements(carrier, [result.d.node])
    lines = [f"const {value.kind} {value.text} = {text};" for value, text in statements]
    lines.append(f"return ({word_of(model.d)}){result.d.node.text};")
    used = set(re.findall(r"\w+", " ".join(lines)))
    lines = [read for port in ports for read in _reads(*port, used)] + lines
    guard = f"MMAPROBE_{name.upper()}_H"
    parameters = ", ".join(_parameter(operand, fmt, count) for operand, fmt, count in ports)
    return "\n".join([
        *(f"/* {c_comment(line)} */" for line in about(model)),
        f"#ifndef {guard}", f"#define {guard}", "#include <stdint.h>", _COUNTING,
        f"static inline {word_of(model.d)} {name}({parameters}) {{",
        *(f"  {_VARIABLE.sub(lambda found: names.get(found[0], found[0]), line)}" for line in lines), "}", "#endif", "",
    ])  # fmt: skip


def _parameter(operand: str, fmt: Format, count: int) -> str:
    array = "" if NAMED[operand].per == "sum" else f"[{count}]"
    return f"{'const ' if array else ''}{word_of(fmt)} {operand}{array}"


def _reads(operand: str, fmt: Format, count: int, used: set[str]) -> list[str]:
    """Lines that read the used elements of an operand into variables; if none is used, a line that marks the operand as
    unused."""
    cut = "" if fmt.width == fmt.word else f" & {hex((1 << fmt.width) - 1)}"
    places = [operand] if NAMED[operand].per == "sum" else [f"{operand}[{k}]" for k in range(count)]
    named = [(f"{operand}{k}", place) for k, place in enumerate(places) if f"{operand}{k}" in used]
    return [f"const {word_type(fmt.width)} {name} = {place}{cut};" for name, place in named] or [f"(void){operand};"]


def _words(trace: Trace) -> Iterator[tuple[str, CodeValue]]:
    """The words of signals with their names; a wide signal has several words."""
    for signal in trace:
        node, name = signal.value.node, str(signal.name)
        if isinstance(node, CodeValue):
            yield name, node
        else:
            yield from ((f"{name}.limb{k}", limb.node) for k, limb in enumerate(node))
