"""The CUDA device, its launch layer replaced by a software model; and that layer, CuPy replaced by a stand-in."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

from mmaprobe.cli.main import main
from mmaprobe.runner.devices import DeviceUnavailableError, open_device
from mmaprobe.runner.gpu import cuda
from mmaprobe.runner.gpu import device as gpu_device
from mmaprobe.runner.gpu.cuda import CudaDevice, Position, open_cuda, parse_name
from mmaprobe.runner.gpu.kernels import Variant
from mmaprobe.runner.gpu.launch import GpuMemoryError
from mmaprobe.runner.protocol import DeviceError
from mmaprobe.runner.serve import serve
from mmaprobe.smtmodel.base.errors import InputError, MmaprobeError, NotModelledError, UnknownNameError
from mmaprobe.smtmodel.evaluate.batch import evaluate_batch
from mmaprobe.smtmodel.evaluate.operands import Operands
from mmaprobe.smtmodel.inputs.vectors import Vector
from mmaprobe.smtmodel.tables.reference import parse_reference
from tests.cuda.fake_gpu import FakeGpu, fault, random_rows

pytestmark = pytest.mark.kernels

F16 = "hopper/mma/m16n8k16.f32.f16.f16.f32"
FP8 = "hopper/wgmma/m64n8k32.f32.e4m3.e5m2"
SCALED = "rtx-blackwell/mma_block_scale/m16n8k64.block16.f32.e2m1.e2m1.f32.ue4m3"
TENSOR = "blackwell/tcgen05mma_block_scale/m64n8k64.block16.f32.e2m1.e2m1.ue4m3"
DOUBLE = "hopper/mma/m16n8k4.f64.f64.f64.f64"


def device(reference: str = F16, tail: str = "", **options: Any) -> tuple[CudaDevice, FakeGpu]:
    capability = {SCALED: (12, 0), TENSOR: (10, 3)}.get(reference, (9, 0))
    gpu = FakeGpu(reference, **{"capability": capability, **options})
    return open_cuda(reference.partition("/")[2] + tail, gpu), gpu


def vectors(reference: str, count: int) -> list[Vector]:
    model = parse_reference(reference)
    a, b, c, *scales = (part.tolist() for part in random_rows(reference, count))
    rows = zip(a, b, c, *scales, strict=True)
    return [
        Vector(model, Operands(tuple(x), tuple(y), z, tuple(map(tuple, rest))), id=number)
        for number, (x, y, z, *rest) in enumerate(rows)
    ]


@pytest.mark.parametrize("reference", [F16, FP8, SCALED, TENSOR, DOUBLE])
def test_patterns_reach_the_kernel_and_come_back(reference: str) -> None:
    opened, gpu = device(reference)
    given = random_rows(reference, 1000)
    assert np.array_equal(opened.patterns(*given), evaluate_batch(parse_reference(reference), *given))
    [launch] = gpu.launches
    assert launch["threads"] == 128
    assert launch["blocks"] == (1000 if reference in (FP8, TENSOR) else 250)  # a warpgroup, or a warp, for each
    sizes = {F16: "uint16 uint16 uint32", FP8: "uint8 uint8 uint32", SCALED: "uint8 uint8 uint32",
             TENSOR: "uint8 uint8 uint32", DOUBLE: "uint64 uint64 uint64"}  # fmt: skip
    assert launch["types"] == [*sizes[reference].split(), "uint8", "uint8"]


def test_vectors_of_any_length_in_order() -> None:
    opened, _ = device()
    model, asked = opened.model, vectors(F16, 50)
    short = Vector(model, Operands(asked[0].operands.a[:3], asked[0].operands.b[:3], asked[0].operands.c))
    answers = list(opened.answers([*asked, short]))
    assert [vector for vector, _ in answers] == [*asked, short]
    with open_device(f"model:{F16}") as software:
        assert [d for _, d in answers] == [d for _, d in software.answers([*asked, short])]
    with pytest.raises(InputError, match="instruction that takes 16"):
        opened.patterns(*(np.zeros((1, 17), np.uint64) for _ in range(2)), np.zeros(1, np.uint64))


def test_what_an_answer_says_of_its_origin() -> None:
    opened, _ = device(tail="?row=3,column=5,neighbours=random,seed=9")
    described = dict(opened.description)
    executed = described.pop("machine_instructions")
    assert executed == {"HMMA.16816.F32": 1}
    assert described.pop("nvrtc").startswith("13.")
    assert described == {
        "name": "Fake H100", "instruction": F16, "compute_capability": "9.0", "driver": "580.65", "cuda": "13.0",
        "cupy": "14.0", "target": "sm_90a", "ptx": "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32",
        "emulated": False, "row": 3, "column": 5, "neighbours": "random", "seed": 9, "sm_clock_mhz": 1975,
    }  # fmt: skip
    opened.every([vectors(F16, 1)[0]])
    assert opened.description["sm_clock_mhz"] == 1970  # the clock of the run


def test_what_an_answer_says_of_a_variant() -> None:
    described = device(FP8, "?columns=16,column=9,a=registers")[0].description
    assert described["ptx"] == "wgmma.mma_async.sync.aligned.m64n16k32.f32.e4m3.e5m2"
    assert (described["instruction"], described["columns"], described["a"]) == (FP8, 16, "registers")


def test_what_an_answer_says_of_tensor_memory() -> None:
    described = device(TENSOR)[0].description
    assert described["ptx"] == "tcgen05.mma.cta_group::1.kind::mxf4nvf4.block_scale.scale_vec::4X"
    assert (described["target"], described["descriptor"]) == ("sm_103a", "08020480")
    assert described["machine_instructions"] == {"UTCOMMA.BLOCK16": 1}
    assert "descriptor" not in device()[0].description


def test_emulated_instructions_say_so() -> None:
    opened, _ = device("hopper/mma/m16n8k32.f32.e4m3.e4m3.f32")
    assert opened.description["emulated"] is True
    assert opened.description["machine_instructions"]["HMMA.16816.F32"] == 2


def test_a_driver_of_cuda_12_gets_code_of_cuda_12() -> None:
    opened, _ = device(cuda=(12, 4))
    assert opened.description["nvrtc"].startswith("12.")


@pytest.mark.parametrize(
    ("text", "name", "position", "variant"),
    [
        ("mma/x", "mma/x", Position(), None),
        ("x?row=3,column=5", "x", Position(3, 5), None),
        ("x?neighbours=random, seed=4294967295", "x", Position(0, 0, "random", 2**32 - 1), None),
        ("x?columns=64,column=63,a=registers", "x", Position(0, 63), Variant(64, "registers")),
        ("x?a=shared", "x", Position(), Variant()),
    ],
)
def test_names(text: str, name: str, position: Position, variant: Variant | None) -> None:
    assert parse_name(text) == (name, position, variant)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("x?rows=3", "'rows=3' is none of row=R, column=C"),
        ("x?neighbours=1", "none of"),
        ("x?row=1,row=2", "row is given twice"),
        ("x?", "'' is none of"),
        ("x?seed=4294967296", "more than 32 bits"),
    ],
)
def test_names_that_are_wrong(text: str, words: str) -> None:
    with pytest.raises(InputError, match=words):
        parse_name(text)


@pytest.mark.parametrize(
    ("text", "capability", "kind", "words"),
    [
        ("mma/m16n8k16.f32.f16.f16.f32", (5, 2), DeviceUnavailableError, r"capability 5\.2\) is of no architecture"),
        ("wgmma/m64n8k16.f32.f16.f16", (8, 0), InputError, r"an instruction of hopper; this GPU .* 8\.0\) is ampere"),
        ("hopper/mma/m16n8k16.f32.f16.f16.f32", (8, 9), InputError, "of hopper; this GPU .* is ada-lovelace"),
        ("m16n8k16.f32.f16.f16.f16", (9, 0), UnknownNameError, "did you mean 'mma/m16n8k16.f"),
        ("m8n8k4.f32.f16.f16.f32", (9, 0), InputError, "of turing, volta; this GPU"),
        ("mma/m16n8k32.s32.s8.s8.s32", (9, 0), NotModelledError, "integer"),
        ("tcgen05mma/m64n8k16.f32.f16.f16?row=64", (10, 0), InputError, "rows 0 to 63 and columns 0 to 7"),
        (f"{TENSOR.partition('/')[2]}?row=128", (10, 3), InputError, "rows 0 to 127 and columns 0 to 7"),
        ("tcgen05mma/m64n8k16.f32.f16.f16?columns=8", (10, 0), InputError, "chosen for wgmma alone"),
        ("mma/m16n8k16.f32.f16.f16.f32?row=16", (9, 0), InputError, "rows 0 to 15 and columns 0 to 7"),
        ("mma/m16n8k16.f32.f16.f16.f32?column=8", (9, 0), InputError, "rows 0 to 15 and columns 0 to 7"),
        ("mma/m16n8k16.f32.f16.f16.f32?columns=8", (9, 0), InputError, "chosen for wgmma alone"),
        ("wgmma/m64n8k16.f32.f16.f16?columns=16,column=16", (9, 0), InputError, "rows 0 to 63 and columns 0 to 15"),
        ("wgmma/m64n8k16.f32.f16.f16?columns=12", (9, 0), InputError, "no multiple of 8 from 8 to 256"),
    ],
)
def test_instructions_that_this_gpu_does_not_run(
    text: str, capability: tuple[int, int], kind: type[MmaprobeError], words: str
) -> None:
    with pytest.raises(kind, match=words) as caught:
        open_cuda(text, FakeGpu(F16, capability))
    assert caught.value.exit_code == 2


def test_the_unit_may_be_left_out() -> None:
    assert open_cuda("m64n8k32.f32.e4m3.e5m2", FakeGpu(FP8)).model.reference == FP8


def test_a_full_memory_halves_the_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gpu_device, "LARGEST", 4096)
    opened, gpu = device(memory=700)
    given = random_rows(F16, 2000)
    assert np.array_equal(opened.patterns(*given), evaluate_batch(opened.model, *given))
    assert [launch["count"] for launch in gpu.launches] == [2000, 1000, 500, 500, 500, 500]
    gpu.memory = 100
    with pytest.raises(GpuMemoryError, match="other programs may hold it"):
        opened.patterns(*given)


@pytest.mark.parametrize("kind", ["fault", "memory"])
def test_answers_before_a_failure_are_kept(monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    monkeypatch.setattr(CudaDevice, "batch", 10)
    error = fault() if kind == "fault" else GpuMemoryError("the GPU's memory is full")
    monkeypatch.setattr(gpu_device, "LARGEST", 256)
    opened, _ = device(fails=(3, error))
    seen: list[object] = []
    with pytest.raises(DeviceError, match="illegal memory access" if kind == "fault" else "memory is full") as caught:
        seen.extend(opened.answers(vectors(F16, 50)))
    assert len(seen) == 20
    assert (caught.value.number, caught.value.vector.id) == (21, 20)
    assert caught.value.exit_code == 3


# --- the command line ---------------------------------------------------------------------------------------------


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch) -> Callable[..., FakeGpu]:
    """Puts a fake GPU into this machine."""

    def install(reference: str = F16, **options: Any) -> FakeGpu:
        made = FakeGpu(reference, **options)
        monkeypatch.setattr(cuda, "launcher_here", lambda: made)
        return made

    return install


def write(path: Path, rows: list[Vector]) -> str:
    path.write_text("".join(json.dumps(row.to_json()) + "\n" for row in rows), encoding="utf-8")
    return str(path)


def test_run_goes_on_after_an_interrupt(
    gpu: Callable[..., FakeGpu], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(CudaDevice, "batch", 10)
    asked = write(tmp_path / "in.jsonl", vectors(F16, 40))
    arguments = ["run", asked, "--device", "cuda:m16n8k16.f32.f16.f16.f32", "-o", str(tmp_path / "out.jsonl")]
    gpu(fails=(3, KeyboardInterrupt()))
    cut = CliRunner().invoke(main, arguments)
    assert (cut.exit_code, "20 vectors answered" in cut.stderr) == (3, True)
    assert len((tmp_path / "out.jsonl").read_text().splitlines()) == 20
    gpu()  # its clock differs, all else is the same
    done = CliRunner().invoke(main, arguments)
    assert done.exit_code == 0, done.stderr
    assert "20 of 40 vectors were answered by an earlier run" in done.stderr
    rows = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text().splitlines()]
    assert [row["id"] for row in rows] == list(range(40))
    assert rows[30]["provenance"]["description"]["machine_instructions"] == {"HMMA.16816.F32": 1}
    assert CliRunner().invoke(main, ["evaluate", str(tmp_path / "out.jsonl")]).exit_code == 0


def test_serving_it(tmp_path: Path) -> None:
    opened, _ = device()
    asked = vectors(F16, 20)
    write(tmp_path / "asked", asked)
    with (tmp_path / "asked").open("rb") as source, (tmp_path / "said").open("wb") as sink:
        serve(opened, source.fileno(), sink.fileno())
    header, *rows = map(json.loads, (tmp_path / "said").read_text().splitlines())
    assert header["device"]["ptx"] == "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"
    assert [(row["id"], int(row["d"], 16)) for row in rows] == [(each.id, opened.every([each])[0]) for each in asked]


def test_identify_takes_the_instruction_from_the_device(gpu: Callable[..., FakeGpu]) -> None:
    gpu("hopper/mma/m16n8k4.f32.tf32.tf32.f32")
    result = CliRunner().invoke(
        main, ["identify", "nvidia-tf32", "--device", "cuda:m16n8k4.f32.tf32.tf32.f32", "--json"]
    )
    found = json.loads(result.stdout)
    assert (result.exit_code, found["verdict"], found["decided"]["fraction_bits"]) == (0, "identified", 25)
    assert found["device"]["machine_instructions"] == {"HMMA.1684.F32.TF32": 1}


def test_run_says_what_the_gpu_lacks(tmp_path: Path, gpu: Callable[..., FakeGpu]) -> None:
    asked = write(tmp_path / "in.jsonl", vectors(F16, 3))
    gpu(capability=(7, 5))
    result = CliRunner().invoke(main, ["run", asked, "--device", "cuda:mma/m16n8k16.f32.f16.f16.f32"])
    assert result.exit_code == 2
    assert "is turing" in result.stderr
    gpu(fails=(1, fault()))
    result = CliRunner().invoke(main, ["run", asked, "--device", "cuda:mma/m16n8k16.f32.f16.f16.f32"])
    assert result.exit_code == 3
    assert "illegal memory access" in result.stderr
    assert "Traceback" not in result.stderr


def test_without_cupy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cupy", None)
    monkeypatch.delitem(sys.modules, "mmaprobe.runner.gpu.cupy_launch", raising=False)
    with pytest.raises(DeviceUnavailableError, match=r"'cupy' is missing: pip install '.\[cuda12\]'") as caught:
        open_device("cuda:mma/m16n8k16.f32.f16.f16.f32")
    assert caught.value.exit_code == 2
