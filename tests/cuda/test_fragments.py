"""The C that places operands, run on the host, against a warp in software (tests/cuda/warp.py)."""

from __future__ import annotations

import ctypes
import random
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest

from mmaprobe.runner.gpu.fragments import Fragment, Tile
from mmaprobe.runner.gpu.kernel_source import TCGEN05_FIXED, placing, source
from mmaprobe.runner.gpu.kernels import CAPABILITIES, TENSOR_MEMORY, Kernel, Operand, kernels_of
from mmaprobe.smtmodel.base.libraries import compiler
from tests.cuda import warp
from tests.cuda.test_kernels import variants

pytestmark = pytest.mark.compilers

KERNELS = [kernel for arch in CAPABILITIES for kernel in kernels_of(arch) + variants(arch)]


def in_tensor_memory(kernel: Kernel, operand: Operand) -> bool:
    return kernel.row.unit in TENSOR_MEMORY and operand not in (kernel.a, kernel.b)


def operand_id(kernel: Kernel, operand: Operand) -> str:
    """Its name, which wgmma's and tcgen05's may share."""
    return operand.name + "-tcgen05" * (kernel.row.unit in TENSOR_MEMORY)


OPERANDS = {operand_id(kernel, operand): (kernel, operand) for kernel in KERNELS for operand in kernel.operands}
SEED = 7
needs_compiler = pytest.mark.skipif(compiler() is None, reason="no C compiler: set CC or install one")


class Place(ctypes.Structure):
    """struct place of the kernels."""

    _fields_ = [(name, ctypes.c_uint32) for name in ("vector", "row", "column", "random", "seed")]


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Any:
    folder: Path = tmp_path_factory.mktemp("placing")
    source = folder / "placing.c"
    source.write_text(placing(KERNELS))
    command = [*(compiler() or ()), "-O1", "-w", "-shared", "-fPIC", str(source), "-o", str(folder / "placing.so")]
    subprocess.run(command, check=True, timeout=120)
    return ctypes.CDLL(str(folder / "placing.so"))


def integers(width: int, values: list[int]) -> Any:
    kind = {8: ctypes.c_uint8, 16: ctypes.c_uint16, 32: ctypes.c_uint32, 64: ctypes.c_uint64}[width]
    return (kind * len(values))(*values)


def shape(kernel: Kernel) -> str:
    m, n, k = kernel.shape
    return f"m{m}n{n}k{k}"


def extent(kernel: Kernel, operand: Operand) -> tuple[int, int]:
    m, n, k = kernel.shape
    extents = {"a": (m, k), "b": (k, n), "c": (m, n), "scale_a": (m, operand.count), "scale_b": (operand.count, n)}
    return extents[operand.matrix]


def loaded(library: Any, kernel: Kernel, operand: Operand, at: Place, patterns: list[int]) -> dict[warp.Place, int]:
    """The matrix that the instruction gets, read as the manual says."""
    load, part = getattr(library, f"load_{operand.name}"), operand.place
    given = integers(operand.fmt.word, patterns)
    if isinstance(part, Tile):
        tile = integers(8, [0xFF] * part.size)
        for thread in range(kernel.threads):
            load(tile, ctypes.c_uint32(thread), ctypes.byref(at), given)
        library.descriptor.restype = ctypes.c_uint64
        offsets = ctypes.c_uint64(part.leading), ctypes.c_uint64(part.stride)
        fixed, kind = (TCGEN05_FIXED, kind_of(kernel)) if kernel.row.unit in TENSOR_MEMORY else (0, None)
        descriptor = library.descriptor(ctypes.c_uint32(512), *offsets, ctypes.c_uint64(fixed))
        found = warp.shared(bytes(512) + bytes(tile), descriptor, part.majors, part.k, part.width, kind)
        return found if operand.matrix == "a" else {(k, major): element for (major, k), element in found.items()}
    threads = []
    for lane in range(kernel.threads):
        registers = integers(part.word, [(1 << part.word) - 1] * part.registers)
        load(registers, ctypes.c_uint32(lane), ctypes.byref(at), given)
        threads.append(list(registers))
    if in_tensor_memory(kernel, operand):
        memory = warp.stored(moved(kernel, operand), threads)
        m, n, _ = kernel.shape
        if operand.matrix == "c":
            return {(row, column): memory[warp.d_lane(m, row), column] for row in range(m) for column in range(n)}
        return warp.lane_scales(memory, operand.matrix, m if operand.matrix == "scale_a" else n, operand.count)
    if operand.matrix.startswith("scale"):
        read = warp.scale_a if operand.matrix == "scale_a" else warp.scale_b
        first = read([registers[0] for registers in threads], operand.count)
        assert read([registers[0] for registers in threads], operand.count, 1) == first  # whatever the selector says
        return first
    return warp.gather(threads, part.width, part.elements, warp.table_of(shape(kernel), part.width, operand.matrix))


def kind_of(kernel: Kernel) -> str:
    """The kind of a tcgen05 instruction."""
    return kernel.ptx.partition("kind::")[2].partition(".")[0]


def moved(kernel: Kernel, operand: Operand) -> str:
    """The shape by which the kernel's text stores an operand in tensor memory."""
    stores = re.findall(r"tcgen05\.st\.sync\.aligned\.(\S+)\.b32", source([kernel]))
    return str(stores[[kernel.c, *kernel.scales].index(operand)])


def own(operand: Operand, at: Place, place: warp.Place) -> int | None:
    """Which of the vector's patterns belongs in a place of a matrix."""
    row, column = place
    if operand.matrix in ("a", "scale_a"):
        return column if row == at.row else None
    if operand.matrix in ("b", "scale_b"):
        return row if column == at.column else None
    return 0 if (row, column) == (at.row, at.column) else None


@needs_compiler
@pytest.mark.parametrize("name", OPERANDS)
def test_the_vector_is_where_the_manual_says(library: Any, name: str) -> None:
    kernel, operand = OPERANDS[name]
    rows, columns = extent(kernel, operand)
    m, n, _ = kernel.shape
    rng = random.Random(SEED)
    bits = operand.fmt.field_width + operand.fmt.signed
    patterns = [rng.getrandbits(bits) | 1 for _ in range(operand.count)]
    low = warp.low_bit(operand.fmt.name, operand.place.width)
    for row, column, hashed in ((0, 0, 0), (m - 1, n - 1, 0), (m // 2 + 1, 2, 0), (3, 5, 1)):
        at = Place(12345, row, column, hashed, 99)
        matrix = loaded(library, kernel, operand, at, patterns)
        assert set(matrix) == {(x, y) for x in range(rows) for y in range(columns)}
        others = []
        for place, element in matrix.items():
            index = own(operand, at, place)
            if index is None:
                others.append(element)
            else:
                assert element == patterns[index] << low, (place, row, column)
        if hashed:
            assert sum(map(bool, others)) > len(others) // 2
            assert all(element >> low < 1 << bits for element in others)
            assert all(not element & ((1 << low) - 1) for element in others)
        else:
            assert not any(others)


@needs_compiler
@pytest.mark.parametrize("name", [name for name, (_, operand) in OPERANDS.items() if operand.matrix == "c"])
def test_the_result_is_taken_from_where_the_manual_says(library: Any, name: str) -> None:
    kernel, operand = OPERANDS[name]
    m, n, _ = kernel.shape
    part = operand.place
    assert isinstance(part, Fragment)
    matrix = {(row, column): 1000 + 100 * row + column for row in range(m) for column in range(n)}
    if kernel.row.unit in TENSOR_MEMORY:  # each register is of the place to which it would be stored
        text = source([kernel])
        assert f"tcgen05.ld.sync.aligned.{moved(kernel, operand)}.b32" in text
        numbered = [[thread << 8 | j for j in range(part.registers)] for thread in range(kernel.threads)]
        memory, threads = warp.stored(moved(kernel, operand), numbered), [[0] * part.registers for _ in numbered]
        for (x, y), value in matrix.items():
            place = memory[warp.d_lane(m, x), y]
            threads[place >> 8][place & 255] = value
    else:
        table = warp.table_of(shape(kernel), part.width, "c")
        threads = warp.scatter(matrix, kernel.threads, part.width, part.elements, table)
    store = getattr(library, f"store_{operand.name}")
    for row, column in ((0, 0), (m - 1, n - 1), (m // 2, 3), (1, n - 2)):
        result, writers = integers(operand.fmt.word, [0]), 0
        for lane, registers in enumerate(threads):
            before = result[0]
            result[0] = 0
            store(
                integers(part.word, registers), ctypes.c_uint32(lane),
                ctypes.byref(Place(0, row, column, 0, 0)), result,
            )  # fmt: skip
            writers += bool(result[0])
            result[0] = result[0] or before
        assert (result[0], writers) == (matrix[row, column], 1)


@pytest.mark.parametrize("name", [name for name, (_, o) in OPERANDS.items() if isinstance(o.place, Fragment)])
def test_the_same_expressions_in_python(name: str) -> None:
    kernel, operand = OPERANDS[name]
    part = operand.place
    assert isinstance(part, Fragment)
    if operand.matrix.startswith("scale"):
        rows, columns = extent(kernel, operand)
        places = {part.place(lane, i) for lane in range(kernel.threads) for i in range(part.elements)}
        assert places == {(row, column) for row in range(rows) for column in range(columns)}
        return
    if in_tensor_memory(kernel, operand):
        m, n, _ = kernel.shape
        numbered = [[thread << 8 | j for j in range(part.registers)] for thread in range(kernel.threads)]
        memory = warp.stored(moved(kernel, operand), numbered)
        found = {memory[warp.d_lane(m, row), column]: (row, column) for row in range(m) for column in range(n)}
        assert all(part.place(word >> 8, word & 255) == place for word, place in found.items())
        assert len(found) == kernel.threads * part.elements
        return
    table = warp.table_of(shape(kernel), part.width, operand.matrix)
    for lane in range(kernel.threads):
        for i in range(part.elements):
            assert part.place(lane, i) == table(lane, i)


def test_names_tell_operands_apart() -> None:
    """Else one's functions would be taken for the other's."""
    for kernel in KERNELS:
        for operand in kernel.operands:
            assert OPERANDS[operand_id(kernel, operand)][1] == operand
            assert OPERANDS.get(operand.name, (kernel, operand))[1] == operand


@pytest.mark.parametrize(
    "kernel", [kernel for kernel in KERNELS if kernel.row.unit in TENSOR_MEMORY], ids=lambda kernel: kernel.name
)
def test_the_instruction_descriptor_says_what_the_manual_has(kernel: Kernel) -> None:
    (m, n, _), row, kind = kernel.shape, kernel.row, kind_of(kernel)
    numbers = warp.NUMBERS[kind]
    expected = {"a": numbers[row.a], "b": numbers[row.b], "n / 8": n // 8}
    if row.scale is None:
        expected |= {"d": warp.D_NUMBERS[row.c], "m / 16": m // 16}
    else:
        expected |= {"scale": warp.SCALE_NUMBERS[row.scale.name], "m / 128": m // 128}
    found = warp.decoded(kernel.descriptor, warp.PLAIN_FIELDS if row.scale is None else warp.SCALED_FIELDS)
    assert {name: value for name, value in found.items() if value or name in expected} == expected
    assert f'"r"({kernel.descriptor:#x}u)' in source([kernel])


@needs_compiler
def test_neighbours_differ_by_vector_matrix_place_and_seed(library: Any) -> None:
    def bits(vector: int, seed: int, matrix: int, row: int, column: int) -> int:
        at = Place(vector, 0, 0, 1, seed)
        library.neighbour.restype = ctypes.c_uint32
        return int(library.neighbour(ctypes.byref(at), matrix, row, column))

    inputs = [
        (v, s, x, r, c) for v in (0, 1, 70000) for s in (0, 1) for x in (0, 1, 9) for r in (0, 63) for c in (0, 5)
    ]
    found = {bits(*each) for each in inputs}
    assert len(found) == len(inputs)
    assert sum(word.bit_count() for word in found) / len(found) == pytest.approx(16, abs=1.5)
