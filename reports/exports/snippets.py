"""One vector as text, and as programs that use its bits: with mmaprobe, PyTorch, C and CUDA."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace

from mmaprobe.smtmodel.arithmetic.display import exact_value
from mmaprobe.smtmodel.arithmetic.formats import Format
from mmaprobe.smtmodel.base.errors import InputError
from mmaprobe.smtmodel.base.escapes import c_comment, c_string, one_line
from mmaprobe.smtmodel.evaluate.model import Model
from mmaprobe.smtmodel.inputs.vectors import Vector, to_hex
from mmaprobe.smtmodel.operand import NAMED

#: format -> PyTorch's type that holds its numbers; formats missing here have none
TORCH = {
    "f64": "float64", "f32": "float32", "tf32": "float32", "bf16": "bfloat16", "f16": "float16",
    "e4m3": "float8_e4m3fn", "e5m2": "float8_e5m2", "e4m3fnuz": "float8_e4m3fnuz", "e5m2fnuz": "float8_e5m2fnuz",
    "ue8m0": "float8_e8m0fnu", "e8m13": "float32",
}  # fmt: skip


@dataclass(frozen=True)
class Snippet:
    """A program, or the vector as text. `about`: the purpose in a few words."""

    language: str
    about: str
    code: str


def snippets(vector: Vector, predicted: Sequence[tuple[str, Model, int]]) -> list[Snippet]:
    """The programs for a vector. `predicted`: name, model and result of each prediction."""
    bare = replace(vector, d=None, id=None, extra={})
    every = [
        Snippet("JSON", "the vector, for mmaprobe run and evaluate", json.dumps(bare.to_json())),
        Snippet("decimal", "the numbers, exactly", decimal(vector)),
        Snippet("Python", "evaluates the models with mmaprobe and prints the bits", python(bare, predicted)),
        Snippet("PyTorch", "tensors with these bits", torch(vector, predicted)),
        Snippet("C", "arrays with these bits; prints them", c_program(vector, predicted)),
    ]
    if (program := cuda(vector)) is not None:
        every.append(Snippet("CUDA", "runs the instruction on a GPU and prints the result", program))
    return every


def sides(vector: Vector) -> list[tuple[str, Format, tuple[int, ...]]]:
    """The operands of a vector, each as its name, its format and its patterns."""
    every = vector.operands.sides
    return [(name, fmt, every[name]) for name, fmt in vector.model.formats.items()]


def decimal_text(pattern: int, fmt: Format) -> str:
    """Decimal digits that read back as the same number; every format is a subset of f64."""
    value = exact_value(pattern, fmt)
    if isinstance(value, str):
        return "-0.0" if value == "-0" else value
    return repr(float(value))


def decimal(vector: Vector) -> str:
    lines = []
    for name, fmt, patterns in sides(vector):
        texts = ", ".join(decimal_text(pattern, fmt) for pattern in patterns)
        lines.append(f"{name} = {texts}" if NAMED[name].per == "sum" else f"{name} = [{texts}]")
    return "\n".join(lines)


def python(vector: Vector, predicted: Sequence[tuple[str, Model, int]]) -> str:
    """A program that prints a line for each prediction: the bits, and the model."""
    models = [model.reference for _, model, _ in predicted]
    comments = "".join(f"# {to_hex(d, model.d)}  {one_line(model.reference)}\n" for _, model, d in predicted)
    return f"""from mmaprobe.smtmodel.evaluate.batch import evaluate_row
from mmaprobe.smtmodel.tables.reference import parse_reference
from mmaprobe.smtmodel.inputs.vectors import parse_row, to_hex

vector = parse_row({json.dumps(vector.to_json())})
for name in {json.dumps(models)}:
    model = parse_reference(name)
    print(to_hex(evaluate_row(model, vector.operands), model.d), name)
# prints
{comments}"""


def torch(vector: Vector, predicted: Sequence[tuple[str, Model, int]]) -> str:
    """A program with a PyTorch tensor of each operand's bits, and the results that models predict as comments."""
    lines = ["import torch", ""]
    for name, fmt, patterns in sides(vector):
        numbers = ", ".join(_signed(pattern, fmt.word) for pattern in patterns)
        kind = "torch.uint8" if fmt.word == 8 else f"torch.int{fmt.word}"
        view = f".view(torch.{TORCH[fmt.name]})" if fmt.name in TORCH else f"  # patterns of {one_line(fmt.name)}"
        lines.append(f"{name} = torch.tensor([{numbers}], dtype={kind}){view}")
    lines.append("# a is a row of A, b a column of B; d = c + a * b, as the matrix unit sums it, is predicted to be")
    lines += [f"#   {to_hex(d, model.d)} by {one_line(name)}" for name, model, d in predicted]
    return "\n".join(lines) + "\n"


def _signed(pattern: int, size: int) -> str:
    """A pattern of `size` bits as a constant of PyTorch's type of this size, which is unsigned for 8 bits, else
    signed."""
    if size == 8:
        return f"{pattern:#04x}"
    text = f"{pattern:#0{size // 4 + 2}x}"
    return f"{text} - {1 << size:#x}" if pattern >> (size - 1) else text


def c_program(vector: Vector, predicted: Sequence[tuple[str, Model, int]]) -> str:
    """A program that prints each operand's name and bits on a line, then the predictions."""
    lines = ["#include <inttypes.h>", "#include <stdio.h>", ""]
    prints = []
    for name, fmt, patterns in sides(vector):
        lines += _array(name, fmt, patterns)
        prints += [
            f'  printf("{name}");',
            f"  for (int k = 0; k < {len(patterns)}; k++) "
            f'printf(" %0{fmt.digits}" PRIx64, (uint64_t){name}[k]);',
            '  printf("\\n");',
        ]  # fmt: skip
    prints += [f'  printf("d {to_hex(d, model.d)} by %s\\n", {c_string(name)});' for name, model, d in predicted]
    return "\n".join([*lines, "", "int main(void)", "{", *prints, "  return 0;", "}", ""])


def _array(name: str, fmt: Format, patterns: Sequence[int], kind: str = "uint{}_t") -> list[str]:
    numbers = ", ".join(f"{pattern:#0{fmt.digits + 2}x}" for pattern in patterns)
    return [f"/* {c_comment(fmt.name)}: {', '.join(decimal_text(p, fmt) for p in patterns)} */",
            f"static const {kind.format(fmt.word)} {name}[{len(patterns)}] = {{{numbers}}};"]  # fmt: skip


CUDA_MAIN = """
#ifndef __CUDACC_RTC__
#include <cstdio>
{arrays}

template <typename T> static T *on_gpu(const T *host, size_t count, size_t room)
{{
  T *device;
  cudaMalloc(&device, room * sizeof(T));
  cudaMemset(device, 0, room * sizeof(T));
  cudaMemcpy(device, host, count * sizeof(T), cudaMemcpyHostToDevice);
  return device;
}}

int main()
{{
{body}
  {name}<<<1, {threads}>>>({arguments}, d, 1, 0, 0, 0, 0);
  u{size} result;
  cudaMemcpy(&result, d, sizeof result, cudaMemcpyDeviceToHost);
  if (cudaError_t error = cudaGetLastError()) {{
    fprintf(stderr, "%s\\n", cudaGetErrorString(error));
    return 1;
  }}
  printf("%0{digits}llx\\n", (u64)result);
  return 0;
}}
#endif
"""


def cuda(vector: Vector) -> str | None:
    """A program for nvcc that runs the kernel of the vector's instruction on the vector; None if there is no such
    kernel."""
    from mmaprobe.runner.gpu.kernel_source import POINTERS, THREADS, source
    from mmaprobe.runner.gpu.kernels import CAPABILITIES, kernel_of, target
    from mmaprobe.smtmodel.tables.instructions import INSTRUCTIONS

    row = INSTRUCTIONS.get(vector.model.instruction)
    if row is None:
        return None
    try:
        kernel = kernel_of(row)
    except InputError:
        return None
    arrays, body = [], []
    operands = {name: (fmt, patterns) for name, fmt, patterns in sides(vector)}
    for operand in kernel.operands:
        fmt, patterns = operands[operand.matrix]
        arrays += _array(f"host_{operand.matrix}", fmt, patterns, "u{}")
        name, count = operand.matrix, len(patterns)
        body.append(f"  u{operand.fmt.word} *{name} = on_gpu(host_{name}, {count}, {operand.count});")
    size = kernel.c.fmt.word
    body.append(f"  u{size} zero = 0, *d = on_gpu(&zero, 1, 1);")
    main = CUDA_MAIN.format(
        arrays="\n".join(arrays), body="\n".join(body), name=kernel.name, threads=THREADS, size=size,
        arguments=", ".join(name if name in operands else "nullptr" for name in POINTERS), digits=kernel.c.fmt.digits,
    )  # fmt: skip
    return (
        f"// nvcc -arch={target(CAPABILITIES[row.arch][0])} vector.cu && ./a.out\n" + source([kernel]).lstrip() + main
    )
