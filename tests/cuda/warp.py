"""A warp in software: where the PTX ISA says that each register element of a thread belongs.

Written from the manual's tables ("Matrix Fragments" of mma, "Register Fragments" and "Shared Memory Matrix Layout" of
wgmma, "Block Scaling for mma.sync"; of tcgen05 "Data Movement Shape", "Data Path Layout Organization", "Scale factors",
"Instruction descriptor" and "Shared memory descriptor") in its own words, and sharing nothing with
runner/gpu/fragments.py and kernels.py.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

Place = tuple[int, int]
Table = Callable[[int, int], Place]  # (%laneid, i) -> (row, column)


def _group(lane: int) -> int:
    return lane >> 2


def _thread(lane: int) -> int:
    return lane % 4


# mma.m8n8k4 with .f16: quad pairs


def m8n8k4_f16_a(lane: int, i: int) -> Place:
    return (lane % 4 if lane < 16 else lane % 4 + 4), i


def m8n8k4_f16_b(lane: int, i: int) -> Place:
    return i, (lane % 4 if lane < 16 else lane % 4 + 4)


def m8n8k4_f16_c(lane: int, i: int) -> Place:
    return (lane % 4 if lane < 16 else lane % 4 + 4), i


def m8n8k4_f32_c(lane: int, i: int) -> Place:
    x = (lane & 0b1) + (i & 0b10)
    return (x if lane < 16 else x + 4), (i & 0b100) + (lane & 0b10) + (i & 0b1)


# mma.m8n8k4 with .f64


def m8n8k4_f64_a(lane: int, i: int) -> Place:
    return _group(lane), _thread(lane)


def m8n8k4_f64_b(lane: int, i: int) -> Place:
    return _thread(lane), _group(lane)


def m8n8k4_f64_c(lane: int, i: int) -> Place:
    return _group(lane), _thread(lane) * 2 + (i & 0x1)


# mma.m16n8k4: .tf32 and .f64


def m16n8k4_a(lane: int, i: int) -> Place:
    return (_group(lane) if i == 0 else _group(lane) + 8), _thread(lane)


def m16n8k4_b(lane: int, i: int) -> Place:
    return _thread(lane), _group(lane)


def m16n8_c(lane: int, i: int) -> Place:
    """The accumulators of every m16n8 shape."""
    return (_group(lane) if i < 2 else _group(lane) + 8), _thread(lane) * 2 + (i & 0x1)


# mma.m16n8k8: .f16 and .bf16, then .tf32 and .f64


def m16n8k8_16_a(lane: int, i: int) -> Place:
    return (_group(lane) if i in (0, 1) else _group(lane) + 8), _thread(lane) * 2 + (i & 0x1)


def m16n8k8_16_b(lane: int, i: int) -> Place:
    return _thread(lane) * 2 + i, _group(lane)


def m16n8k8_32_a(lane: int, i: int) -> Place:
    row = _group(lane) if i in (0, 2) else _group(lane) + 8
    return row, (_thread(lane) if i in (0, 1) else _thread(lane) + 4)


def m16n8k8_32_b(lane: int, i: int) -> Place:
    return (_thread(lane) if i == 0 else _thread(lane) + 4), _group(lane)


# mma.m16n8k16: .f16 and .bf16, .f64, .e4m3 and .e5m2


def m16n8k16_16_a(lane: int, i: int) -> Place:
    row = _group(lane) if 0 <= i < 2 or 4 <= i < 6 else _group(lane) + 8
    column = _thread(lane) * 2 + (i & 0x1)
    return row, (column if i < 4 else column + 8)


def m16n8k16_16_b(lane: int, i: int) -> Place:
    row = _thread(lane) * 2 + (i & 0x1)
    return (row if i < 2 else row + 8), _group(lane)


def m16n8k16_64_a(lane: int, i: int) -> Place:
    if i % 2 == 0:
        return _group(lane), i * 2 + _thread(lane)
    return _group(lane) + 8, i * 2 - 2 + _thread(lane)


def m16n8k16_64_b(lane: int, i: int) -> Place:
    return _thread(lane) + i * 4, _group(lane)


def m16n8k16_8_a(lane: int, i: int) -> Place:
    return (_group(lane) if i < 4 else _group(lane) + 8), _thread(lane) * 4 + (i & 0x3)


def m16n8k16_8_b(lane: int, i: int) -> Place:
    return _thread(lane) * 4 + i, _group(lane)


# mma.m16n8k32 with elements of a byte, mma.m16n8k64 with .e2m1


def m16n8k32_8_a(lane: int, i: int) -> Place:
    row = _group(lane) if 0 <= i < 4 or 8 <= i < 12 else _group(lane) + 8
    column = _thread(lane) * 4 + (i & 0x3)
    return row, (column if i < 8 else column + 16)


def m16n8k32_8_b(lane: int, i: int) -> Place:
    row = _thread(lane) * 4 + (i & 0x3)
    return (row if i < 4 else row + 16), _group(lane)


def m16n8k64_4_a(lane: int, i: int) -> Place:
    row = _group(lane) if 0 <= i < 8 or 16 <= i < 24 else _group(lane) + 8
    column = _thread(lane) * 8 + (i & 0x7)
    return row, (column if i < 16 else column + 32)


def m16n8k64_4_b(lane: int, i: int) -> Place:
    row = _thread(lane) * 8 + (i & 0x7)
    return (row if i < 8 else row + 32), _group(lane)


#: (shape, bits of an element in a register, matrix) -> table; the width of C and D is that of their own elements
TABLES: dict[tuple[str, int, str], Table] = {
    ("m8n8k4", 16, "a"): m8n8k4_f16_a, ("m8n8k4", 16, "b"): m8n8k4_f16_b,
    ("m8n8k4", 16, "c"): m8n8k4_f16_c, ("m8n8k4", 32, "c"): m8n8k4_f32_c,
    ("m8n8k4", 64, "a"): m8n8k4_f64_a, ("m8n8k4", 64, "b"): m8n8k4_f64_b, ("m8n8k4", 64, "c"): m8n8k4_f64_c,
    ("m16n8k4", 32, "a"): m16n8k4_a, ("m16n8k4", 32, "b"): m16n8k4_b,
    ("m16n8k4", 64, "a"): m16n8k4_a, ("m16n8k4", 64, "b"): m16n8k4_b,
    ("m16n8k8", 16, "a"): m16n8k8_16_a, ("m16n8k8", 16, "b"): m16n8k8_16_b,
    ("m16n8k8", 32, "a"): m16n8k8_32_a, ("m16n8k8", 32, "b"): m16n8k8_32_b,
    ("m16n8k8", 64, "a"): m16n8k8_32_a, ("m16n8k8", 64, "b"): m16n8k8_32_b,
    ("m16n8k16", 16, "a"): m16n8k16_16_a, ("m16n8k16", 16, "b"): m16n8k16_16_b,
    ("m16n8k16", 64, "a"): m16n8k16_64_a, ("m16n8k16", 64, "b"): m16n8k16_64_b,
    ("m16n8k16", 8, "a"): m16n8k16_8_a, ("m16n8k16", 8, "b"): m16n8k16_8_b,
    ("m16n8k32", 8, "a"): m16n8k32_8_a, ("m16n8k32", 8, "b"): m16n8k32_8_b,
    ("m16n8k64", 4, "a"): m16n8k64_4_a, ("m16n8k64", 4, "b"): m16n8k64_4_b,
}  # fmt: skip


def wgmma_d(lane: int, i: int) -> Place:
    """D of wgmma.m64nN: warp w of the four has rows 16 w to 16 w + 15; `lane` is the thread's number in the group."""
    warp, laneid = divmod(lane, 32)
    row = laneid // 4 + (0 if i % 4 < 2 else 8)
    return 16 * warp + row, laneid % 4 * 2 + i % 2 + 8 * (i // 4)


def wgmma_a(width: int) -> Table:
    """A of wgmma in registers: warp w holds the rows from 16 w on, each warp as A of m16n8 with K of 256 bits."""
    rows = {8: m16n8k32_8_a, 16: m16n8k16_16_a, 32: m16n8k8_32_a}[width]

    def place(lane: int, i: int) -> Place:
        warp, laneid = divmod(lane, 32)
        row, column = rows(laneid, i)
        return 16 * warp + row, column

    return place


def table_of(shape: str, width: int, matrix: str) -> Table:
    """The manual's table for a matrix; C and D of m16n8 lie alike for every K, those of m64 too."""
    if shape.startswith("m64"):
        return wgmma_d if matrix == "c" else wgmma_a(width)
    return m16n8_c if matrix == "c" and shape.startswith("m16") else TABLES[shape, width, matrix]


def low_bit(element: str, width: int) -> int:
    """Where an element begins in its place ("Packing formats"): .e2m1 is padded by two bits on either side of a byte,
    .e2m3 and .e3m2 by two bits above."""
    return 2 if element == "e2m1" and width == 8 else 0


def elements(registers: Sequence[int], width: int, count: int) -> list[int]:
    """The elements of a thread, low to high; a register has 32 bits, or 64 for .f64."""
    per = max(32, width) // width
    return [registers[i // per] >> width * (i % per) & ((1 << width) - 1) for i in range(count)]


def gather(threads: Sequence[Sequence[int]], width: int, count: int, table: Table) -> dict[Place, int]:
    """The matrix that the registers of all threads hold; where several hold an element, they must agree."""
    matrix: dict[Place, int] = {}
    for lane, registers in enumerate(threads):
        for i, element in enumerate(elements(registers, width, count)):
            place = table(lane, i)
            assert matrix.setdefault(place, element) == element, place
    return matrix


def scatter(matrix: dict[Place, int], threads: int, width: int, count: int, table: Table) -> list[list[int]]:
    """The registers of all threads that hold a matrix."""
    per = max(32, width) // width
    result = []
    for lane in range(threads):
        registers = [0] * -(-count // per)
        for i in range(count):
            registers[i // per] |= matrix[table(lane, i)] << width * (i % per)
        result.append(registers)
    return result


def scale_a(threads: Sequence[int], count: int, pair: int = 0) -> dict[Place, int]:
    """scale_A by the selector {0, pair}: of each quad, that pair of threads has the rows groupID and groupID + 8."""
    return {
        (lane // 4 + 8 * half, i): threads[lane - lane % 4 + 2 * pair + half] >> 8 * i & 255
        for lane in range(0, 32, 4)
        for half in (0, 1)
        for i in range(count)
    }


def scale_b(threads: Sequence[int], count: int, thread: int = 0) -> dict[Place, int]:
    """scale_B by the selector {0, thread}: of each quad, that thread has the column groupID."""
    return {(i, lane // 4): threads[lane + thread] >> 8 * i & 255 for lane in range(0, 32, 4) for i in range(count)}


#: fields of a descriptor of shared memory: name -> lowest bit, number of bits
WGMMA_FIELDS = {"start": (0, 14), "leading": (16, 14), "stride": (32, 14), "base": (49, 3), "swizzle": (62, 2)}
TCGEN05_FIELDS = {"start": (0, 14), "leading": (16, 14), "stride": (32, 14), "constant": (46, 3), "base": (49, 3),
                  "leading mode": (52, 1), "swizzle": (61, 3)}  # fmt: skip
#: and of the instruction descriptor of tcgen05: without scale factors, and with them
PLAIN_FIELDS = {"sparsity selector": (0, 2), "sparse": (2, 1), "saturate": (3, 1), "d": (4, 2), "a": (7, 3),
                "b": (10, 3), "negate a": (13, 1), "negate b": (14, 1), "transpose a": (15, 1), "transpose b": (16, 1),
                "n / 8": (17, 6), "m / 16": (24, 5), "shift": (30, 2)}  # fmt: skip
SCALED_FIELDS = {"sparse": (2, 1), "factor of b": (4, 2), "a": (7, 3), "b": (10, 3), "negate a": (13, 1),
                 "negate b": (14, 1), "transpose a": (15, 1), "transpose b": (16, 1), "n / 8": (17, 6),
                 "scale": (23, 1), "m / 128": (27, 2), "factor of a": (29, 2), "k = 96": (31, 1)}  # fmt: skip
#: numbers of the formats in it, by the kind of the instruction
NUMBERS = {
    "tf32": {"tf32": 2}, "f16": {"f16": 0, "bf16": 1}, "mxf4": {"e2m1": 1}, "mxf4nvf4": {"e2m1": 1},
    **{kind: {"e4m3": 0, "e5m2": 1, "e2m3": 3, "e3m2": 4, "e2m1": 5} for kind in ("f8f6f4", "mxf8f6f4")},
}  # fmt: skip
D_NUMBERS, SCALE_NUMBERS = {"f16": 0, "f32": 1}, {"ue4m3": 0, "ue8m0": 1}


def decoded(descriptor: int, fields: Mapping[str, tuple[int, int]]) -> dict[str, int]:
    """The fields of a descriptor; every other bit must be zero."""
    found = {name: descriptor >> low & (1 << bits) - 1 for name, (low, bits) in fields.items()}
    assert descriptor == sum(value << fields[name][0] for name, value in found.items())
    return found


def shared(
    memory: bytes, descriptor: int, majors: int, k: int, width: int, kind: str | None = None
) -> dict[Place, int]:
    """The rows of A (columns of B) that a descriptor without swizzle describes, K-major: {(major, k): element}; `kind`:
    of a tcgen05 instruction, None for wgmma.

    In units of 128 bits the matrix is made of 8 x 1 atoms of contiguous units: the leading offset leads to the next
    atom along K, the stride offset to the next eight majors. Where formats of different widths may meet, a unit has 16
    elements, and those of 4 and 6 bits fill its first 8 and 12 bytes.
    """
    fields = decoded(descriptor, WGMMA_FIELDS if kind is None else TCGEN05_FIELDS)
    start, leading, stride = (fields.pop(name) << 4 for name in ("start", "leading", "stride"))
    assert fields.pop("constant", 1) == 1
    assert not any(fields.values()), "no swizzle"
    per = 16 if kind in ("f8f6f4", "mxf8f6f4") else 128 // width
    out = {}
    for major in range(majors):
        for index in range(k):
            at = start + stride * (major // 8) + leading * (index // per) + 16 * (major % 8)
            unit = int.from_bytes(memory[at : at + 16], "little")
            out[major, index] = unit >> index % per * width & (1 << width) - 1
    return out


# tensor memory: 128 lanes of columns of 32 bits, of which each warp reaches 32 lanes


def stored(shape: str, threads: Sequence[Sequence[int]]) -> dict[Place, int]:
    """Tensor memory after `tcgen05.st` of a shape by a warpgroup, from column 0 on: {(lane, column): word}."""
    memory = {}
    for thread, registers in enumerate(threads):
        warp, laneid = divmod(thread, 32)
        for number, word in enumerate(registers):
            if shape.startswith("32x32b"):
                lane, column = laneid, number
            else:
                assert shape.startswith("16x256b.x1"), shape  # 16 lanes of eight words: a quad of threads has a lane
                lane, column = laneid // 4 + 8 * (number // 2), 2 * (laneid % 4) + number % 2
            memory[32 * warp + lane, column] = word
    return memory


def d_lane(m: int, row: int) -> int:
    """The lane of a row of D: with 128 rows in order (layout D), with 64 the first 16 lanes of each warp (layout F)."""
    return row if m == 128 else 32 * (row // 16) + row % 16


def lane_scales(memory: Mapping[Place, int], side: str, majors: int, count: int) -> dict[Place, int]:
    """Scale factors of rows of A (columns of B) by the factor identifier 0: 32 of them in each column, the first
    factors in the low bytes; every warp's lanes must hold the same."""
    out = {}
    for major in range(majors):
        words = {memory[32 * warp + major % 32, major // 32] for warp in range(4)}
        assert len(words) == 1
        for i in range(count):
            out[(major, i) if side == "scale_a" else (i, major)] = min(words) >> 8 * i & 255
    return out
