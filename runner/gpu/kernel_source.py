"""CUDA C for matrix instructions: a vector goes to a row and a column of its matrices, and its result comes back.

Integers go in and integers come out: beside the instruction under test, which is inline PTX, there is no
floating-point arithmetic.

A kernel's arguments: pointers to every operand that there is (K patterns of `a` for each vector, one of `c`) and to
`d`, arrays of the narrowest unsigned integers that hold a pattern; then u32: the number of vectors, the row and the
column of the vector, 1 if hashed bits surround it (0: zeros), and the seed of the hash. The functions that place the
operands are plain C, so that tests run them on the host.
"""

from __future__ import annotations

from collections.abc import Iterable

from mmaprobe.runner.gpu.fragments import Fragment
from mmaprobe.runner.gpu.hip_kernels import HipKernel
from mmaprobe.runner.gpu.kernels import Kernel, Operand
from mmaprobe.smtmodel.operand import NAMED, RANDOM

THREADS = 128  # of a block

PRELUDE = """
typedef unsigned char u8; typedef unsigned short u16; typedef unsigned int u32; typedef unsigned long long u64;
#ifdef __CUDACC__
#define DEVICE static __device__ __forceinline__
#elif defined(__HIP__)
#define DEVICE static __attribute__((device, always_inline))
#else
#define DEVICE
#endif

struct place { u32 vector, row, column, fill, seed; };

/* Bits beside the vector: zero, or a hash (the finaliser of MurmurHash3) of where they are. */
DEVICE u32 neighbour(const struct place *at, u32 matrix, u32 row, u32 column)
{
  u32 x = at->vector * 0x9e3779b1u ^ (matrix << 16 | row << 8 | column) * 0x85ebca77u ^ at->seed * 0xc2b2ae3du;
  x = (x ^ x >> 16) * 0x85ebca6bu;
  x = (x ^ x >> 13) * 0xc2b2ae35u;
  return at->fill ? x ^ x >> 16 : 0;
}
"""

_LOAD = """
DEVICE void load_{name}(u{word} *registers, u32 lane, const struct place *at, const u{storage} *patterns)
{{
  for (u32 j = 0; j < {registers}; j++) registers[j] = 0;
#pragma unroll
  for (u32 i = 0; i < {elements}; i++) {{
    const u32 row = {row}, column = {column};
    const u{word} bits = {chosen} ? patterns[{index}] : {neighbour};
    registers[i / {per}] |= bits << ({width} * (i % {per}) + {shift});
  }}
}}
"""

_FILL = """
DEVICE void load_{name}(u8 *tile, u32 lane, const struct place *at, const u{storage} *patterns)
{{
  for (u32 element = lane; element < {elements}; element += {threads}) {{
    const u32 major = element / {k}, k = element % {k}, row = {row}, column = {column};
    *(u{storage} *)(tile + {offset}) = {chosen} ? patterns[{index}] : {neighbour};
  }}
}}
"""

_STORE = """
DEVICE void store_{name}(const u{word} *registers, u32 lane, const struct place *at, u{storage} *pattern)
{{
#pragma unroll
  for (u32 i = 0; i < {elements}; i++) {{
    const u32 row = {row}, column = {column};
    if ({chosen} && ({holder})) *pattern = (u{storage})(registers[i / {per}] >> {width} * (i % {per}));
  }}
}}
"""

POINTERS = tuple(name for name in NAMED if name != RANDOM.name)  # no instruction takes random bits
_KERNEL = """
extern "C" {head} {name}(
  {pointers}, u{tc} *d,
  u32 count, u32 row, u32 column, u32 fill, u32 seed)
{{
  const u32 vector = {block} * {vectors} + {thread} / {group}, lane = {thread} % {group};
  if (vector >= count) return;
  const struct place at = {{vector, row, column, fill, seed}};
{body}
  store_{out}(rc, lane, &at, d + vector);
}}
"""

#: what CUDA and HIP call a kernel, the number of a block, and that of a thread in it
_CUDA = {"head": f"__global__ void __launch_bounds__({THREADS})", "block": "blockIdx.x", "thread": "threadIdx.x"}
_HIP = {"head": f"__attribute__((global, amdgpu_flat_work_group_size({THREADS}, {THREADS}))) void",
        "block": "__builtin_amdgcn_workgroup_id_x()", "thread": "__builtin_amdgcn_workitem_id_x()"}  # fmt: skip

_DESCRIPTOR = """
/* A matrix in shared memory without swizzle, for wgmma: start, leading and stride offsets in units of 16 bytes. */
DEVICE u64 descriptor(u32 address, u64 leading, u64 stride)
{
  return (address & 0x3ffff) >> 4 | leading >> 4 << 16 | stride >> 4 << 32;
}
"""

#: of what operands are -> which element of the matrix is the vector's, and where that is among the vector's patterns
_CHOSEN = {
    "row": ("row == at->row", "column"),
    "column": ("column == at->column", "row"),
    "element": ("row == at->row && column == at->column", "0"),
}


def source(kernels: Iterable[Kernel | HipKernel]) -> str:
    """One translation unit with these kernels, of CUDA or of HIP."""
    kernels = list(kernels)
    return "".join([placing(kernels), *(_kernel(kernel) for kernel in kernels)])


def placing(kernels: Iterable[Kernel | HipKernel]) -> str:
    """The plain C among it: the functions that place operands and take results out."""
    functions = {}
    for kernel in kernels:
        if isinstance(kernel, Kernel) and kernel.row.unit == "wgmma":
            functions["descriptor"] = _DESCRIPTOR
        for operand in kernel.operands:
            functions[f"load {operand.name}"] = _load(operand)
        functions[f"store {kernel.c.name}"] = _store(kernel.c)
    return "".join([PRELUDE, *functions.values()])


def _load(operand: Operand) -> str:
    """The function that fills the registers of a thread, or its share of shared memory."""
    number, (chosen, index) = POINTERS.index(operand.matrix), _CHOSEN[NAMED[operand.matrix].of]
    bits, word = operand.fmt.field_width + operand.fmt.signed, max(32, operand.storage)
    hashed = f"neighbour(at, {number}, row, column)"
    if word == 64:
        hashed = f"((u64)neighbour(at, {number + 8}, row, column) << 32 | {hashed})"
    names = {
        "name": operand.name, "storage": operand.storage, "chosen": chosen, "index": index,
        "neighbour": f"{hashed} & {hex((1 << bits) - 1)}u" if bits < word else hashed,
    }  # fmt: skip
    place = operand.place
    if isinstance(place, Fragment):
        return _LOAD.format(**names, **_in_registers(place), shift=operand.shift)
    row, column = ("major", "k") if operand.matrix == "a" else ("k", "major")
    return _FILL.format(
        **names, elements=place.majors * place.k, threads=THREADS, k=place.k, row=row, column=column,
        offset=place.offset,
    )  # fmt: skip


def _store(operand: Operand) -> str:
    """The function that takes the result out of the registers of the thread that has it."""
    place = operand.place
    assert isinstance(place, Fragment)
    chosen, _ = _CHOSEN["element"]
    names = {"name": operand.name, "storage": operand.storage, "chosen": chosen, "holder": place.holder}
    return _STORE.format(**names, **_in_registers(place))


def _in_registers(place: Fragment) -> dict[str, object]:
    return {
        "word": place.word, "registers": place.registers, "elements": place.elements, "row": place.row,
        "column": place.column, "per": place.per_register, "width": place.width,
    }  # fmt: skip


def _kernel(kernel: Kernel | HipKernel) -> str:
    lines = []
    for operand in kernel.operands:
        place, patterns = operand.place, f"{operand.matrix} + (u64)vector * {operand.count}"
        if isinstance(place, Fragment):
            target = f"r{operand.matrix}"
            lines.append(f"u{place.word} {target}[{place.registers}];")
        else:
            target = f"t{operand.matrix}"
            lines.append(f"__shared__ __align__(128) u8 {target}[{place.size}];")
        lines.append(f"load_{operand.name}({target}, lane, &at, {patterns});")
    if isinstance(kernel, HipKernel):
        lines += _built_in(kernel)
    else:
        lines += _wgmma(kernel) if kernel.row.unit == "wgmma" else _mma(kernel)
    words = {operand.matrix: operand.storage for operand in kernel.operands}
    return _KERNEL.format(
        **(_HIP if isinstance(kernel, HipKernel) else _CUDA), vectors=THREADS // kernel.threads,
        group=kernel.threads, name=kernel.name, out=kernel.c.name, body="\n".join("  " + line for line in lines),
        pointers=", ".join(f"const u{words.get(name, 8)} *{name}" for name in POINTERS), tc=words["c"],
    )  # fmt: skip


def _built_in(kernel: HipKernel) -> list[str]:
    """A call of the compiler's function for an instruction: registers are copied to its types, and back."""
    lines = []
    for operand, (kind, count) in zip(kernel.operands, kernel.types, strict=True):
        name = f"v{operand.matrix}"
        vector = f" __attribute__((ext_vector_type({count})))" if count > 1 else ""
        lines.append(f"typedef {kind} {name}_type{vector}; {name}_type {name};")
        lines.append(f"__builtin_memcpy(&{name}, r{operand.matrix}, sizeof {name});")
    lines.append(f"vc = {kernel.builtin}(va, vb, vc{kernel.tail});")
    return [*lines, "__builtin_memcpy(rc, &vc, sizeof vc);"]


def _mma(kernel: Kernel) -> list[str]:
    """The instruction with its registers; C's become D's."""
    groups, inputs, number = [], [], 0
    outputs, group = _bound(kernel.c, number, "+")
    groups.append(group)
    number += len(outputs)
    for operand in (kernel.a, kernel.b, kernel.c, *kernel.scales):
        if operand is kernel.c:
            groups.append(groups[0])
            continue
        bound, group = _bound(operand, number)
        inputs += bound
        groups.append(group)
        number += len(bound)
        if operand in kernel.scales:
            groups.append("{0, 0}")  # the selector: byte 0 on, thread 0 (thread pair 0 for A)
    text = f"{kernel.ptx} {', '.join(groups)};"
    return [f'asm volatile("{text}"', f"  : {', '.join(outputs)} : {', '.join(inputs)});"]


def _bound(operand: Operand, number: int, prefix: str = "") -> tuple[list[str], str]:
    """The registers of a matrix as operands of an asm statement, and their vector in its text."""
    place = operand.place
    assert isinstance(place, Fragment)
    constraint = prefix + ("l" if place.word == 64 else "r")
    bound = [f'"{constraint}"(r{operand.matrix}[{j}])' for j in range(place.registers)]
    return bound, "{" + ", ".join(f"%{number + j}" for j in range(len(bound))) + "}"


def _wgmma(kernel: Kernel) -> list[str]:
    """The instruction on shared memory, from the fences before it to the wait for its result."""
    outputs, group = _bound(kernel.c, 0, "+")
    inputs: list[str] = []
    groups, majors = [group], ""
    for operand in (kernel.a, kernel.b):
        place, number = operand.place, len(outputs) + len(inputs)
        if isinstance(place, Fragment):
            bound, group = _bound(operand, number)
            inputs += bound
            groups.append(group)
            continue
        start = f"(u32)__cvta_generic_to_shared(t{operand.matrix})"
        inputs.append(f'"l"(descriptor({start}, {place.leading}, {place.stride}))')
        groups.append(f"%{number}")
        if operand.fmt.width == 16:
            majors += ", 0"  # K-major; other widths cannot be anything else
    add = "{.reg .pred p; setp.eq.u32 p, 0, 0;"
    text = f"{add} {kernel.ptx} {', '.join(groups)}, p, 1, 1{majors};}}"
    return [
        'asm volatile("fence.proxy.async.shared::cta;" ::: "memory");',
        "__syncthreads();",
        'asm volatile("wgmma.fence.sync.aligned;" ::: "memory");',
        f'asm volatile("{text}"',
        f'  : {", ".join(outputs)} : {", ".join(inputs)} : "memory");',
        'asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");',
        'asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");',
    ]
