"""Models printed as headers of C++ and C: compiled, and run beside the array carrier."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from mmaprobe.queries.search.samples import sample_rows
from mmaprobe.reports.exports.cpp_header import header
from mmaprobe.reports.exports.verilog import identifier, ports_of
from mmaprobe.smtmodel.evaluate.cuda_text import word_of
from mmaprobe.smtmodel.evaluate.model import Model, evaluate
from mmaprobe.smtmodel.evaluate.operands import layout_of
from mmaprobe.smtmodel.evaluate.programs import ARRAYS
from mmaprobe.smtmodel.operand import NAMED
from mmaprobe.smtmodel.tables.reference import parse_reference

pytestmark = pytest.mark.compilers

#: formats, and kinds of sums, roundings and scale factors
ROWS = [
    "volta/mma/m8n8k4.f32.f16.f16.f32", "ieee/fma/f32", "hopper/mma/m16n8k32.f32.e4m3.e5m2.f32",
    "rtx-blackwell/mma_block_scale/m16n8k64.block16.f32.e2m1.e2m1.f32.ue4m3", "riscv/zvdota/vfwdota16bf.n8",
]  # fmt: skip
#: further ones: wide sums, f64, chains, trees, a flushed result, tf32, a conversion
MORE = [
    "ieee/fma/f64", "ieee/muladd/f32", "hopper/mma/m8n8k4.f64.f64.f64.f64", "ampere/mma/m16n8k4.f32.tf32.tf32.f32",
    "cdna3/mfma/f32_32x32x8_f16", "cdna2/mfma/f32_32x32x4bf16", "cdna3/mfma/f32_16x16x32_fp8_fp8",
    "rdna3/dot2/f32_f16", "rdna4/dot2/f32_bf16", "x86/avx512/vdpbf16ps", "x86/amx/tdphf8ps-lanes", "arm/neon/bfdot",
    "arm/neon/fmlal.f16.e5m2.e5m2", "arm/sme/fmopa-f16f32", "power10/mma/xvbf16ger2pp",
    "blackwell/tcgen05mma_block_scale/m64n8k64.block16.f32.e2m1.e2m1.ue4m3", "riscv/zvbdota/vfqbdota8f.e5m2.e4m3.n8",
    "hopper/wgmma/m64n8k32.f32.e4m3.e5m2", "turing/mma/m8n8k4.f16.f16.f16.f16", "x86/avx10.2/vcvtph2bf8",
]  # fmt: skip
COUNT = 2000
BENCH = """#include <stdio.h>
static int rows_{number}(void) {{
  uint64_t row[{columns}];
  for (int i = 0; i < {count}; i++) {{
    if (fread(row, sizeof row, 1, stdin) != 1) return 1;
    {arrays}
    {copies}
    printf("%llx\\n", (unsigned long long){name}({arguments}));
  }}
  return 0;
}}
"""


def bench(model: Model, number: int) -> str:
    """A function that reads rows of words, and prints the results of a model's header."""
    arrays, copies, arguments = list[str](), list[str](), list[str]()
    places = layout_of(model).places
    for operand, fmt, count in ports_of(model):
        column = places.index((operand, 0))
        arrays.append(f"{word_of(fmt)} {operand}[{count}];")
        copies += [f"{operand}[{k}] = ({word_of(fmt)})row[{column + k}];" for k in range(count)]
        arguments.append(f"{operand}[0]" if NAMED[operand].per == "sum" else operand)
    return BENCH.format(
        number=number, columns=len(places), count=COUNT, arrays=" ".join(arrays), copies=" ".join(copies),
        name=identifier(model.reference), arguments=", ".join(arguments),
    )  # fmt: skip


def results(models: Sequence[Model], tables: Sequence[np.ndarray], folder: Path, compiler: str) -> list[np.ndarray]:
    """What the headers of models, compiled together without a warning, give for rows."""
    language, standard = ("c++", "c++11") if compiler == "g++" else ("c", "c99")
    texts = [part for k, model in enumerate(models) for part in (header(model), bench(model, k))]
    last = " || ".join(f"rows_{k}()" for k in range(len(models)))
    source, program = folder / "bench.txt", folder / "bench"
    source.write_text("\n".join([*texts, f"int main(void) {{ return {last}; }}", ""]), encoding="utf-8")
    strict = ["-Wall", "-Wextra", "-Wpedantic", "-Werror", "-O0", f"-std={standard}", "-fsanitize=undefined"]
    subprocess.run([compiler, *strict, "-fno-sanitize-recover", "-x", language, source, "-o", program], check=True)
    given = b"".join(np.ascontiguousarray(table, dtype="<u8").tobytes() for table in tables)
    output = subprocess.run([program], check=True, input=given, capture_output=True).stdout.split()
    return np.split(np.array([int(word, 16) for word in output], dtype=np.uint64), len(models))


def check(references: Sequence[str], folder: Path, compiler: str = "g++") -> None:
    if shutil.which(compiler) is None:
        pytest.skip(f"{compiler} is not installed")
    models = [parse_reference(reference) for reference in references]
    tables = [sample_rows(layout_of(model), COUNT) for model in models]
    for model, table, found in zip(models, tables, results(models, tables, folder, compiler), strict=True):
        layout = layout_of(model)
        lanes = [ARRAYS.lanes(table[:, k], fmt.width) for k, fmt in enumerate(layout.formats)]
        operands = layout.split(lanes)
        with np.errstate(over="ignore"):
            ours = evaluate(model, operands.a, operands.b, operands.c, *operands.rest, traced=False).d
        assert (np.asarray(ours.node) == found).all(), model.reference


def test_headers_compute_what_the_models_do(tmp_path: Path) -> None:
    check(ROWS, tmp_path)


def test_they_are_c_as_well(tmp_path: Path) -> None:
    check(ROWS[1:2], tmp_path, "gcc")


@pytest.mark.slow
@pytest.mark.parametrize("reference", MORE)
def test_more_headers(tmp_path: Path, reference: str) -> None:
    check([reference], tmp_path)


def test_the_function_is_straight_line_code_over_integers() -> None:
    """With the names of signals; bits above a format are cut off."""
    text = header(parse_reference(ROWS[3]))
    assert not set(re.findall(r"\w+", text.partition("#include")[2])) & {
        "for",
        "while",
        "if",
        "goto",
        "float",
        "double",
    }
    assert "const uint8_t a[64], const uint8_t b[64], uint32_t c, const uint8_t scale_a[4]" in text
    assert "const uint32_t a0 = a[0] & 0xf;" in text
    text = header(parse_reference(ROWS[0]))
    for name in ("product_0_significand", "aligned_3", "sum_negative"):
        assert f" {name} = " in text


def test_steps_may_be_called_like_words_and_variables(tmp_path: Path) -> None:
    (tmp_path / "int.yaml").write_text(
        "unit: int\nformats: {a: e2m1, b: e2m1, c: e3m2, d: e3m2}\nlength: 1\n"
        'roundings: {r: "round(e3m2, nearest_even)"}\n'
        'steps: {double: "r(exact(a[0] * b[0], c))", v3: "r(exact(double, c))", d: "r(exact(v3, double))"}\n',
        encoding="utf-8",
    )
    check([str(tmp_path / "int.yaml")], tmp_path)
