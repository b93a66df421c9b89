"""The exceptions that results signal: against exact rationals, this machine's processor, and in each command."""

from __future__ import annotations

import ctypes
import json
import platform
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from mmaprobe.cli.main import main
from mmaprobe.queries.search.samples import Table, sample_rows, subnormal_rows, tie_rows
from mmaprobe.reports.exports.fptest import Tininess, signalled
from mmaprobe.smtmodel.arithmetic.formats import FORMATS, format_named
from mmaprobe.smtmodel.arithmetic.rounding import ROUNDINGS, Rounding
from mmaprobe.smtmodel.base.errors import InputError, MmaprobeError
from mmaprobe.smtmodel.carriers.terms import TermCarrier
from mmaprobe.smtmodel.evaluate.batch import evaluate_models
from mmaprobe.smtmodel.evaluate.model import Model, evaluate
from mmaprobe.smtmodel.evaluate.operands import layout_of
from mmaprobe.smtmodel.exceptions import DOCUMENTS, INVALID, Document, exceptions_in
from mmaprobe.smtmodel.tables.reference import SIGNALLING, parse_reference
from mmaprobe.smtmodel.units.unitfile import parse_unit, unit_text
from tests.marks import some_slow
from tests.oracles.termeval import evaluate_term

TINY: dict[Document, Tininess] = {"riscv": "after", "x86": "after", "arm": "before", "power": "before"}
SMALL = """unit: small
formats: {a: e3m2_ieee, b: e3m2_ieee, c: e3m2_ieee, d: e3m2_ieee}
length: 1
roundings: {r: "round(e3m2_ieee, nearest_even)"}
steps: {d: "r(exact(a[0] * b[0], c))"}
"""


def fused(fmt: str, mode: Rounding, flags: Document | None = None) -> Model:
    step, d = "r(exact(a[0] * b[0], c))", fmt if flags is None else "int5"
    text = f"""unit: x
formats: {{a: {fmt}, b: {fmt}, c: {fmt}, d: {d}}}
length: 1
roundings: {{r: "round({fmt}, {mode})"}}
steps: {{d: "{step if flags is None else f"flags({step}, {flags})"}"}}
"""
    return Model("x.yaml", parse_unit(text, "x.yaml"))


def rows_of(model: Model, count: int) -> Table:
    layout = layout_of(model)
    kinds = (sample_rows(layout, count), tie_rows(layout, model.a, count), subnormal_rows(layout, count))
    return np.concatenate([rows for rows in kinds if len(rows)])


def is_quiet(pattern: int, fmt: str) -> bool:
    own = FORMATS[fmt]
    return pattern & ~own.sign_bit > own.infinity and bool(pattern >> own.fraction - 1 & 1)


@pytest.mark.parametrize("document", ["riscv", "power"])
@pytest.mark.parametrize("fmt", ["f16", "f32"])
def test_they_are_those_of_exact_rationals(fmt: str, document: Document) -> None:
    for mode in ROUNDINGS:
        plain, model, own = fused(fmt, mode), fused(fmt, mode, document), FORMATS[fmt]
        edges = [[own.largest, own.largest, 0], [own.infinity, 0, 0], [own.one, own.one, own.infinity + 1]]
        rows = np.concatenate([rows_of(plain, 24), np.array(edges, np.uint64)])
        results, found = (evaluate_models([one], rows)[0].tolist() for one in (plain, model))
        assert set(found) == {0, 1, 3, 5, 16}
        for row, d, flags in zip(rows.tolist(), results, found, strict=True):
            wanted = signalled(row, d, own, mode, TINY[document])
            if is_quiet(row[2], fmt) and {pattern & ~own.sign_bit for pattern in row[:2]} == {0, own.infinity}:
                wanted = INVALID
            assert flags == wanted, (mode, [*map(hex, row)], flags, wanted)


@pytest.mark.parametrize("mode", some_slow(ROUNDINGS, *ROUNDINGS[1:]))
def test_they_are_those_of_exact_rationals_in_few_bits(mode: Rounding) -> None:
    """Six bits: edges of binades are met, and powers of two beyond the largest number."""
    fmt, rows = "e3m2_ieee", np.random.default_rng(1).integers(0, 64, (300, 3), dtype=np.uint64)
    edges = np.array([[0x27, 0x26, 0x01], [0x12, 0x1A, 0x34]], np.uint64)
    rows, own = np.concatenate([rows, edges]), format_named(fmt)
    results, found = (evaluate_models([one], rows)[0].tolist() for one in (fused(fmt, mode), fused(fmt, mode, "riscv")))
    for row, d, flags in zip(rows.tolist(), results, found, strict=True):
        if row[2] & 31 > own.infinity and {row[0] & 31, row[1] & 31} == {0, own.infinity}:
            continue  # infinity times zero, and a NaN
        wanted = signalled(row, d, own, mode, "after")
        assert flags == wanted, ([*map(hex, row)], flags, wanted)


def test_infinity_times_zero_with_a_quiet_nan_is_as_each_document_has_it() -> None:
    rows = np.array([[0x7C00, 0, 0x7E00], [0x7C00, 0, 0x7D00], [0x7C00, 0x3C00, 0xFC00], [0x7C00, 0x3C00, 0x7E00]])
    for document in DOCUMENTS:
        found = evaluate_models([fused("f16", "nearest_even", document)], rows.astype(np.uint64))[0].tolist()
        assert found == [0 if document == "x86" else 16, 16, 16, 0]


def test_a_product_and_a_sum_signal_together() -> None:
    """Each rounding by itself: the product alone overflows, is inexact or invalid; the sum may be exact."""
    model = parse_reference("ieee/muladd/f16@flags=riscv")
    rows = np.array([[0x7BFF, 0x7BFF, 0], [0x7BFF, 0x7BFF, 0xFC00], [0x3C01, 0x3C01, 0], [0x3C00, 0x3C00, 0x0001],
                     [0x0001, 0x3800, 0x3C00], [0x3C00, 0x3C00, 0x3C00]])  # fmt: skip
    found = evaluate_models([model], rows.astype(np.uint64))[0].tolist()
    assert [exceptions_in(word) for word in found] == [
        ("inexact", "overflow"), ("inexact", "overflow", "invalid"), ("inexact",), ("inexact",),
        ("inexact", "underflow"), (),
    ]  # fmt: skip


@pytest.mark.compilers
@pytest.mark.skipif(shutil.which("gcc") is None, reason="gcc is not installed")
@pytest.mark.skipif(platform.machine() not in ("x86_64", "aarch64"), reason="a processor that no document is about")
def test_they_are_those_of_this_processor(tmp_path: Path) -> None:
    x86 = platform.machine() == "x86_64"
    if x86 and " fma " not in Path("/proc/cpuinfo").read_text(encoding="utf-8"):
        pytest.skip("the processor has no fused multiply-add")
    code = """#include <fenv.h>
#include <string.h>
void ask(const unsigned long *rows, unsigned char *found, long count) {
  for (long k = 0; k < count; k++) {
    volatile float x, y, z, d; unsigned in[3] = {rows[3*k], rows[3*k+1], rows[3*k+2]};
    memcpy((void*)&x, in, 4); memcpy((void*)&y, in + 1, 4); memcpy((void*)&z, in + 2, 4);
    feclearexcept(FE_ALL_EXCEPT);
    d = __builtin_fmaf(x, y, z);
    int set = fetestexcept(FE_ALL_EXCEPT);
    found[k] = !!(set & FE_INEXACT) | !!(set & FE_UNDERFLOW) << 1 | !!(set & FE_OVERFLOW) << 2
             | !!(set & FE_INVALID) << 4;
  }
}"""
    (tmp_path / "ask.c").write_text(code, encoding="utf-8")
    library = tmp_path / "ask.so"
    options = ["-O1", "-frounding-math", "-shared", "-fPIC", *(["-mfma"] if x86 else [])]
    subprocess.run(["gcc", *options, "-o", library, tmp_path / "ask.c", "-lm"], check=True)
    model = fused("f32", "nearest_even", "x86" if x86 else "arm")
    special = np.array([[0x7F800000, 0, 0x7FC00000], [0x7F800000, 0, 0x7FA00000], [0x7F800000, 0, 0]], np.uint64)
    rows = np.ascontiguousarray(np.concatenate([rows_of(fused("f32", "nearest_even"), 4000), special]))
    found = np.zeros(len(rows), np.uint8)
    ctypes.CDLL(str(library)).ask(
        rows.ctypes.data_as(ctypes.c_void_p), found.ctypes.data_as(ctypes.c_void_p), ctypes.c_long(len(rows))
    )
    assert evaluate_models([model], rows)[0].tolist() == found.tolist()
    assert set(found.tolist()) == {0, 1, 3, 5, 16}


@pytest.mark.parametrize("document", ["riscv", "arm"])
def test_terms_and_arrays_give_the_same(document: Document) -> None:
    model = fused("f16", "nearest_even", document)
    rows, carrier = rows_of(fused("f16", "nearest_even"), 60), TermCarrier()
    a, b, c = (carrier.symbol(name, 16) for name in "abc")
    values = dict(zip("abc", rows.T, strict=True))
    found = evaluate_term(evaluate(model, [a], [b], c, traced=False).d.node, values)
    assert [int(x) for x in found] == evaluate_models([model], rows)[0].tolist()


@pytest.mark.parametrize("reference", [name for name in SIGNALLING if not name.endswith("/")])
def test_a_unit_of_the_table_has_those_of_its_own_document(reference: str) -> None:
    (document,) = SIGNALLING[reference]
    model = parse_reference(f"{reference}@flags={document}")
    assert parse_unit(unit_text(model.unit), "x.yaml") == model.unit
    assert model.d.name == "int5"
    other = next(one for one in DOCUMENTS if one != document)
    with pytest.raises(MmaprobeError, match=f"has those of {document}"):
        parse_reference(f"{reference}@flags={other}")


@pytest.mark.parametrize(("reference", "message"), [
    ("ieee/fma/f16@flags=sparc", "is none of riscv"),
    ("ieee/fma/f16@flags=riscv,flags=arm", "flags: given twice"),
    ("volta/mma/m8n8k4.f32.f16.f16.f32@flags=riscv", "define no exceptions"),
    ("ieee/fma/f16@input_subnormals=zero,flags=arm", "subnormal"),
])  # fmt: skip
def test_what_no_document_defines_is_an_error(reference: str, message: str) -> None:
    with pytest.raises(MmaprobeError, match=message):
        parse_reference(reference)


@pytest.mark.parametrize(("step", "message"), [
    ("flags(r(fused(a[0] * b[0], c, F=3)), riscv)", "flags: fused has none"),
    ("flags(exact(a[0] * b[0], c), riscv)", "flags: exact has none"),
    ("flags(r(exact(a[0:1] * b[0:1], c)), riscv)", r"flags: its sums name their terms one by one: exact\(a\[0\] \* b"),
    ("flags(s(exact(a[0] * b[0], c)), riscv)", "saturates"),
    ("flags(z(exact(a[0] * b[0], c)), riscv)", "each document says something else"),
    ("flags(r(exact(a[0] * b[0], c)), sparc)", "riscv"),
])  # fmt: skip
def test_a_unit_file_says_where_they_are_not_defined(step: str, message: str) -> None:
    text = f"""unit: x
formats: {{a: f16, b: f16, c: f16, d: int5}}
length: 1
roundings: {{r: "round(f16)", s: "round(f16, overflow=saturate)", z: "round(f16, subnormals=flush_after)"}}
steps: {{d: "{step}"}}
"""
    with pytest.raises(InputError, match=message):
        parse_unit(text, "x.yaml")


def run(*arguments: object) -> tuple[int, str]:
    result = CliRunner().invoke(main, [str(argument) for argument in arguments])
    assert result.exception is None or isinstance(result.exception, SystemExit), result.output
    return result.exit_code, result.output


def test_commands_take_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("small.yaml").write_text(SMALL, encoding="utf-8")
    rows = [{"model": "small.yaml", "a": ["05"], "b": ["0d"], "c": "29", "flags": word} for word in ("01", "03")]
    Path("rows.jsonl").write_text("\n".join(map(json.dumps, rows)) + "\n", encoding="utf-8")
    code, message = run("evaluate", "rows.jsonl", "--flags", "riscv")
    assert (code, "small.yaml@flags=riscv: 2 rows, 1 mismatch" in message) == (1, True), message
    code, message = run("prove", "small.yaml", "small.yaml", "--flags", "arm", "--certificate", "proof")
    assert (code, message[:6]) == (0, "equal:"), message
    assert run("check", "proof")[0] == 0
    code, message = run("prove", "small.yaml@flags=arm", "small.yaml@flags=riscv", "--certificate", "other")
    assert (code, "left gives 03" in message, "right gives 01" in message) == (1, True, True), message
    code, message = run("prove", "small.yaml", "--property", "monotonic", "--flags", "arm")
    assert (code, "--flags" in message) == (2, True), message


@pytest.mark.slow
def test_covering_vectors_have_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("small.yaml").write_text(SMALL, encoding="utf-8")
    code, message = run("cover", "small.yaml", "--flags", "riscv", "--no-pairs", "--timeout", 3, "-o", "cover.jsonl")
    assert code in (0, 3), message  # some changes take a solver longer
    vectors = [json.loads(line) for line in Path("cover.jsonl").read_text(encoding="utf-8").splitlines()]
    reached = {reason for row in vectors for reason in row["reaches"] if "exceptions" in reason}
    names = ("none", "inexact", "inexact, underflow", "inexact, overflow", "invalid")
    assert reached == {f"d: exceptions: {name}" for name in names}
    assert run("evaluate", "cover.jsonl", "--flags", "riscv")[0] == 0
    assert run("evaluate", "cover.jsonl", "--flags", "arm")[0] == 1
