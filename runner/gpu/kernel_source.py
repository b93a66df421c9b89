"""CUDA C and HIP for matrix instructions: a kernel places each vector in a row and a column of the instruction's
matrices, and takes one element of the result.

Patterns are integers: beside the instruction under test, which is inline PTX or a built-in function, a kernel has no
floating-point arithmetic.

A kernel's arguments are pointers to every operand of `POINTERS` (K patterns of `a` for each vector, one of `c`) and to
`d`, arrays of the narrowest unsigned integers that hold a pattern; then u32: the number of vectors, the row and the
column of the vector, 1 if hashed bits surround the vector (0: zeros), and the seed of the hash. The functions that
place the operands are plain C, so that tests run them on the host.
"""

from __future__ import annotations

from collections.abc import Iterable

from mmaprobe.runner.gpu.fragments import Fragment, Tile, accumulator
from mmaprobe.runner.gpu.hip_kernels import HipKernel
from mmaprobe.runner.gpu.kernels import TENSOR_MEMORY, Kernel, Operand
from mmaprobe.smtmodel.operand import DRAWN, NAMED

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
    const u32 row = {row}, column = {column}, low = i * {width} % {word};
    const u{word} bits = {chosen} ? patterns[{index}] : {neighbour};
    registers[i * {width} / {word}] |= bits << (low + {shift});{beyond}
  }}
}}
"""

_BEYOND = """
    if (low + {width} > {word}) registers[i * {width} / {word} + 1] |= bits >> ({word} - low);"""

_FILL = """
DEVICE void load_{name}(u8 *tile, u32 lane, const struct place *at, const u{storage} *patterns)
{{
  for (u32 number = lane; number < {majors} * {units}; number += {threads}) {{
    const u32 major = number / {units}, unit = number % {units};
    u32 *words = (u32 *)(tile + {offset});
    for (u32 j = 0; j < 4; j++) words[j] = 0;
#pragma unroll 1
    for (u32 i = 0; i < {each}; i++) {{
      const u32 k = unit * {each} + i, row = {row}, column = {column}, low = i * {width} % 32;
      const u32 bits = {chosen} ? patterns[{index}] : {neighbour};
      words[i * {width} / 32] |= bits << low;
      if (low + {width} > 32) words[i * {width} / 32 + 1] |= bits >> (32 - low);
    }}
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

POINTERS = tuple(name for name in NAMED if name not in DRAWN)  # no instruction takes random bits
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

#: the texts of CUDA and HIP for the head of a kernel, a block's number, and a thread's number in its block
_CUDA = {"head": f"__global__ void __launch_bounds__({THREADS})", "block": "blockIdx.x", "thread": "threadIdx.x"}
_HIP = {"head": f"__attribute__((global, amdgpu_flat_work_group_size({THREADS}, {THREADS}))) void",
        "block": "__builtin_amdgcn_workgroup_id_x()", "thread": "__builtin_amdgcn_workitem_id_x()"}  # fmt: skip

_DESCRIPTOR = """
/* A matrix in shared memory without swizzle: start, leading and stride offsets in units of 16 bytes; `fixed` bits. */
DEVICE u64 descriptor(u32 address, u64 leading, u64 stride, u64 fixed)
{
  return (address & 0x3ffff) >> 4 | leading >> 4 << 16 | stride >> 4 << 32 | fixed;
}
"""
_ADD = "{.reg .pred p; setp.eq.u32 p, 0, 0;"  # D = A * B + D, of wgmma and tcgen05
TCGEN05_FIXED = 1 << 46  # bits 46 to 48 of a descriptor for tcgen05 are 0b001

#: part of a matrix that a vector fills -> the condition for an element of the vector, and the element's pattern index
_CHOSEN = {
    "row": ("row == at->row", "column"),
    "column": ("column == at->column", "row"),
    "element": ("row == at->row && column == at->column", "0"),
}


def source(kernels: Iterable[Kernel | HipKernel]) -> str:
    """One translation unit with the kernels, all of CUDA or all of HIP."""
    kernels = list(kernels)
    return "".join([placing(kernels), *(_kernel(kernel) for kernel in kernels)])


def placing(kernels: Iterable[Kernel | HipKernel]) -> str:
    """The plain C of a translation unit: the functions that place operands and take results out."""
    functions = {}
    for kernel in kernels:
        if any(isinstance(operand.place, Tile) for operand in kernel.operands):
            functions["descriptor"] = _DESCRIPTOR
        for operand in kernel.operands:
            functions[f"load {operand.name}"] = _load(operand)
        functions[f"store {kernel.c.name}"] = _store(kernel.c)
    return "".join([PRELUDE, *functions.values()])


def _load(operand: Operand) -> str:
    """The C function that fills the registers of a thread, or the thread's share of shared memory."""
    number, (chosen, index) = POINTERS.index(operand.matrix), _CHOSEN[NAMED[operand.matrix].of]
    bits, word = operand.fmt.field_width + operand.fmt.signed, max(32, operand.fmt.word)
    hashed = f"neighbour(at, {number}, row, column)"
    if word == 64:
        hashed = f"((u64)neighbour(at, {number + 8}, row, column) << 32 | {hashed})"
    names = {
        "name": operand.name, "storage": operand.fmt.word, "chosen": chosen, "index": index,
        "neighbour": f"{hashed} & {hex((1 << bits) - 1)}u" if bits < word else hashed,
    }  # fmt: skip
    place = operand.place
    if isinstance(place, Fragment):
        beyond = _BEYOND.format(width=place.width, word=place.word) if place.word % place.width else ""
        return _LOAD.format(**names, **_in_registers(place), shift=operand.shift, beyond=beyond)
    row, column = ("major", "k") if operand.matrix == "a" else ("k", "major")
    return _FILL.format(
        **names, majors=place.majors, units=place.units, each=place.each, width=place.width, threads=THREADS, row=row,
        column=column, offset=place.offset,
    )  # fmt: skip


def _store(operand: Operand) -> str:
    """The C function that reads the result from the registers of the thread that holds it."""
    place = operand.place
    assert isinstance(place, Fragment)
    chosen, _ = _CHOSEN["element"]
    names = {"name": operand.name, "storage": operand.fmt.word, "chosen": chosen, "holder": place.holder}
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
        lines += _ISSUES.get(kernel.row.unit, _mma)(kernel)
    words = {operand.matrix: operand.fmt.word for operand in kernel.operands}
    return _KERNEL.format(
        **(_HIP if isinstance(kernel, HipKernel) else _CUDA), vectors=THREADS // kernel.threads,
        group=kernel.threads, name=kernel.name, out=kernel.c.name, body="\n".join("  " + line for line in lines),
        pointers=", ".join(f"const u{words.get(name, 8)} *{name}" for name in POINTERS), tc=words["c"],
    )  # fmt: skip


def _built_in(kernel: HipKernel) -> list[str]:
    """A call of the compiler's function for an instruction, with copies between registers and the function's types."""
    lines = []
    for operand, (kind, count) in zip(kernel.operands, kernel.types, strict=True):
        name = f"v{operand.matrix}"
        vector = f" __attribute__((ext_vector_type({count})))" if count > 1 else ""
        lines.append(f"typedef {kind} {name}_type{vector}; {name}_type {name} = {{}};")
        size = f"sizeof {name} < sizeof r{operand.matrix} ? sizeof {name} : sizeof r{operand.matrix}"
        lines.append(f"__builtin_memcpy(&{name}, r{operand.matrix}, {size});")
    lines.append(f"vc = {kernel.builtin}(va, vb, vc{kernel.tail});")
    return [*lines, "__builtin_memcpy(rc, &vc, sizeof vc);"]


def _mma(kernel: Kernel) -> list[str]:
    """The instruction with its registers; the registers of C become those of D."""
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
    """The registers of a matrix: as operands of an asm statement, and as a vector in the statement's text."""
    place = operand.place
    assert isinstance(place, Fragment)
    constraint = prefix + ("l" if place.word == 64 else "r")
    bound = [f'"{constraint}"(r{operand.matrix}[{j}])' for j in range(place.registers)]
    return bound, "{" + ", ".join(f"%{number + j}" for j in range(len(bound))) + "}"


def _described(operand: Operand, fixed: int) -> str:
    """The descriptor of a matrix in shared memory, as an operand of an asm statement."""
    place = operand.place
    assert isinstance(place, Tile)
    return f'"l"(descriptor({_shared("t" + operand.matrix)}, {place.leading}, {place.stride}, {fixed}ull))'


def _shared(name: str) -> str:
    """The shared-memory address of a variable."""
    return f"(u32)__cvta_generic_to_shared({name})"


def _wgmma(kernel: Kernel) -> list[str]:
    """`wgmma` on shared memory, from the fences before the instruction to the wait for its result."""
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
        inputs.append(_described(operand, 0))
        groups.append(f"%{number}")
        if operand.fmt.width == 16:
            majors += ", 0"  # K-major, the only choice for other widths
    text = f"{_ADD} {kernel.ptx} {', '.join(groups)}, p, 1, 1{majors};}}"
    return [
        'asm volatile("fence.proxy.async.shared::cta;" ::: "memory");',
        "__syncthreads();",
        'asm volatile("wgmma.fence.sync.aligned;" ::: "memory");',
        f'asm volatile("{text}"',
        f'  : {", ".join(outputs)} : {", ".join(inputs)} : "memory");',
        'asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");',
        'asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");',
    ]


#: the first columns in tensor memory of C and D and of the scale factors of A and B; the number of columns allocated
_COLUMNS, _ALLOCATED = {"c": 0, "scale_a": 32, "scale_b": 64}, 128
_WAIT = "{.reg .pred p; again: mbarrier.try_wait.parity.shared::cta.b64 p, [%0], 0; @!p bra again;}"


def _tcgen05(kernel: Kernel) -> list[str]:
    """`tcgen05.mma` on shared and tensor memory, from the allocation of tensor memory to its release."""
    kept = [kernel.c, *kernel.scales]
    inputs = [
        f'"r"(memory + {_COLUMNS["c"]})',
        *(_described(operand, TCGEN05_FIXED) for operand in (kernel.a, kernel.b)),
    ]
    inputs += [f'"r"({kernel.descriptor:#x}u)', *(f'"r"(memory + {_COLUMNS[each.matrix]})' for each in kernel.scales)]
    places = "[%0], %1, %2, %3" + "".join(f", [%{4 + n}]" for n in range(len(kernel.scales)))
    outputs, group = _bound(kernel.c, 0, "=")
    allocated = "tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%0]"
    return [
        "__shared__ u32 memory; __shared__ u64 done;",
        f'if (lane < 32) asm volatile("{allocated}, {_ALLOCATED};" :: "r"({_shared("&memory")}) : "memory");',
        f'if (lane == 0) asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" :: "r"({_shared("&done")}) : "memory");',
        'asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");',
        'asm volatile("fence.proxy.async.shared::cta;" ::: "memory");',
        "__syncthreads();",
        "const u32 lanes = memory + (lane >> 5 << 21);  /* those of this warp: 32 a warp, from bit 16 on */",
        *(_kept(operand) for operand in kept),
        'asm volatile("tcgen05.wait::st.sync.aligned;" ::: "memory");',
        *_everyone(),
        "if (lane == 0) {",
        f'  asm volatile("{_ADD} {kernel.ptx} {places}, p;}}" :: {", ".join(inputs)} : "memory");',
        '  asm volatile("tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%0];"',
        f'    :: "r"({_shared("&done")}) : "memory");',
        "}",
        f'asm volatile("{_WAIT}" :: "r"({_shared("&done")}) : "memory");',
        'asm volatile("tcgen05.fence::after_thread_sync;" ::: "memory");',
        f'asm volatile("tcgen05.ld.sync.aligned.{_moved(kernel.c)} {group}, [%{len(outputs)}];"',
        f'  : {", ".join(outputs)} : "r"(lanes + {_COLUMNS["c"]}) : "memory");',
        'asm volatile("tcgen05.wait::ld.sync.aligned;" ::: "memory");',
        *_everyone(),
        "if (lane < 32) {",
        f'  asm volatile("tcgen05.dealloc.cta_group::1.sync.aligned.b32 %0, {_ALLOCATED};" :: "r"(memory));',
        '  asm volatile("tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;");',
        "}",
    ]


def _kept(operand: Operand) -> str:
    """The statement that stores a matrix in tensor memory."""
    bound, group = _bound(operand, 1)
    name = f"tcgen05.st.sync.aligned.{_moved(operand)} [%0], {group};"
    return f'asm volatile("{name}" :: "r"(lanes + {_COLUMNS[operand.matrix]}), {", ".join(bound)} : "memory");'


def _moved(operand: Operand) -> str:
    """The shape of a move between registers and tensor memory: quads of threads have 16 lanes, or each thread has one
    lane."""
    place = operand.place
    assert isinstance(place, Fragment)
    quads = place == accumulator(64, 8, 32, threads=128)
    return "16x256b.x1.b32" if quads else f"32x32b.x{place.registers}.b32"


def _everyone() -> list[str]:
    """A barrier for all threads of the block that also orders their accesses to tensor memory."""
    return [
        'asm volatile("tcgen05.fence::before_thread_sync;" ::: "memory");',
        "__syncthreads();",
        'asm volatile("tcgen05.fence::after_thread_sync;" ::: "memory");',
    ]


_ISSUES = {"wgmma": _wgmma, **dict.fromkeys(TENSOR_MEMORY, _tcgen05)}
