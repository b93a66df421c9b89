"""GPUs by the names that people and drivers give them."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

import mmaprobe
from mmaprobe.cli.commands.listing import KINDS
from mmaprobe.cli.main import main
from mmaprobe.hypotheses.library import library
from mmaprobe.runner.gpu.kernels import CAPABILITIES
from mmaprobe.smtmodel.base.errors import NotModelledError
from mmaprobe.smtmodel.tables.gpus import GPUS, architecture_of, gpu_named, gpus_of
from mmaprobe.smtmodel.tables.instructions import INSTRUCTIONS
from mmaprobe.smtmodel.tables.recordings import RECORDED
from mmaprobe.smtmodel.tables.sparse import sparse_rows
from mmaprobe.smtmodel.units.unit_files import units, units_of


def run(*arguments: str, code: int = 0) -> Result:
    result = CliRunner().invoke(main, list(arguments))
    assert result.exit_code == code, result.output
    return result


@pytest.mark.parametrize(
    ("name", "gpu", "arch"),
    [
        ("H100", "H100", "hopper"),
        ("nvidia h100 80GB HBM3", "H100", "hopper"),
        ("Tesla V100-SXM2-16GB", "V100", "volta"),
        ("NVIDIA GeForce RTX 2080 Ti", "RTX 2080", "turing"),
        ("RTX4090", "RTX 4090", "ada-lovelace"),
        ("NVIDIA RTX 6000 Ada Generation", "RTX 6000 Ada", "ada-lovelace"),
        ("Quadro RTX 6000", "Quadro RTX 6000", "turing"),
        ("L40", "L40", "ada-lovelace"),
        ("L40S", "L40S", "ada-lovelace"),
        ("A10G", "A10G", "ampere"),
        ("rtx5090", "RTX 5090", "rtx-blackwell"),
        ("NVIDIA Jetson AGX Thor Developer Kit", "Jetson AGX Thor", "blackwell"),
        ("AMD Instinct MI300X", "MI300X", "cdna3"),
        ("mi250x", "MI250X", "cdna2"),
        ("RX9070", "RX 9070", "rdna4"),
    ],
)
def test_names(name: str, gpu: str, arch: str) -> None:
    assert gpu_named(name) == (gpu, arch)


@pytest.mark.parametrize("name", ["", "f16", "hopper", "H1000", "RTX", "NVIDIA", "H100X"])
def test_what_is_no_gpu(name: str) -> None:
    assert gpu_named(name) is None


def test_long_text_is_read_in_a_moment() -> None:
    """Every word of it once, and not every beginning of it."""
    started = time.process_time()
    assert gpu_named("H100 " + "a b " * 25_000) == ("H100", "hopper")
    assert time.process_time() - started < 1


def test_every_architecture_of_the_table_has_gpus_and_every_gpu_one() -> None:
    modelled = {row.arch for row in INSTRUCTIONS.values()}
    modelled |= {name.partition("/")[0] for name in units() if name.startswith("rdna")}
    assert (modelled - {"arm", "riscv"}) | {"cdna4"} == set(GPUS)
    assert set(CAPABILITIES) < modelled
    names = [name for arch in GPUS for name in gpus_of(arch)]
    assert len(names) == len(set(names))
    assert all(gpu_named(name) == (name, arch) for arch in GPUS for name in gpus_of(arch))


def test_gpus_of_recordings_are_known() -> None:
    for reference, recorded in RECORDED.items():
        for gpu in recorded:
            assert gpu == "Ada" or architecture_of(gpu) == INSTRUCTIONS[reference].arch
    assert all(gpu_named(gpu) for question in library().values() for gpu in question.observed)


def test_a_gpu_without_a_model() -> None:
    with pytest.raises(NotModelledError, match=r"MI355X \(cdna4\): no published"):
        architecture_of("MI355X")
    assert "MI355X (cdna4)" in run("list", "mi355x", code=2).stderr


def ids(*arguments: str) -> list[str]:
    return [row["id"] for row in json.loads(run("list", *arguments, "--json").stdout)]


def test_list_by_gpu_and_words() -> None:
    rows = (*INSTRUCTIONS.values(), *sparse_rows().values())
    hopper = [row.reference for row in rows if row.arch == "hopper"] + list(units_of("hopper"))
    assert ids("H100") == ids("models", "h100") == ids("models", "NVIDIA H200") == hopper
    assert ids("H100", "e4m3", "F16 ") == ids("models", "H100", "e4m3", "f16 ") != []
    assert all("e4m3" in name for name in ids("H100", "e4m3"))
    assert {name.partition("/")[0] for name in ids("B200")} == {"blackwell"}
    assert {name.partition("/")[0] for name in ids("RX 7900 XTX")} == {"rdna3"}
    assert ids("hopper") == hopper
    assert {name.partition("/")[0] for name in ids("blackwell", "f16")} == {"blackwell"}
    assert {"nvidia-fp8"} <= set(ids("families", "fp8")) < set(ids("families"))
    assert {"f16-ampere-cdna3"} <= set(ids("hypotheses", "MI300X")) < set(ids("hypotheses"))
    assert ids("gpus", "hopper") == ids("gpus", "H100") == list(gpus_of("hopper"))


@pytest.mark.parametrize(
    ("gpu", "words", "a"),
    [
        ("MI300X", ("e4m3", "e4m3fnuz", "float8_e4m3fnuz", "torch.float8_e4m3fn", "fp8e4m3"), "e4m3fnuz"),
        ("MI300X", ("bf8", "e5m2", "E5M2fnuz", "fp8_e5m2"), "e5m2fnuz"),
        ("MI300X", ("tf32", "xf32"), "tf32"),
        ("H100", ("tf32", "xf32"), "tf32"),
        ("MI300X", ("half", "fp16", "float16", "binary16"), "f16"),
        ("MI300X", ("bf16", "bfloat16", "torch.bfloat16"), "bf16"),
        ("MI300X", ("int8", "i8", "s8"), "int8"),
        ("x86", ("int8", "i8", "s8"), "int8"),
        ("x86", ("u8", "uint8"), "uint8"),
        ("H100", ("double", "fp64", "float64"), "f64"),
        ("B200", ("mxfp4", "nvfp4", "fp4", "float4_e2m1"), "e2m1"),
        ("B200", ("mxfp8", "fp8", "hf8"), "e4m3"),
    ],
)  # fmt: skip
def test_every_name_of_a_format_finds_its_models(gpu: str, words: tuple[str, ...], a: str) -> None:
    for word in words:
        assert a in {row.formats.a for row in mmaprobe.units(gpu, word)}, word


def test_a_name_of_a_format_finds_no_other() -> None:
    assert not any("bf16" in row.id for row in mmaprobe.units("half"))
    assert {row.id.rpartition(".")[2] for row in mmaprobe.units("nvfp4")} == {"ue4m3"}
    assert {row.id.rpartition(".")[2] for row in mmaprobe.units("mxfp6")} == {"ue8m0"}
    assert {row.formats.a for row in mmaprobe.units("MI300X", "s8")} == {"int8"}
    assert not any(row.id.startswith("x86/amx/tdpbuud") for row in mmaprobe.units("x86", "s8"))


def test_nothing_to_list() -> None:
    assert "no line of models contains 'wgma'. Did you mean 'wgmma'?" in run("list", "models", "wgma", code=2).stderr
    assert "Did you mean" not in run("list", "models", "nosuchword", code=2).stderr
    said = run("list", "hopper", "cdna3", "nosuch", code=2).stderr
    assert "contains 'hopper' and 'cdna3' and 'nosuch'. 'hopper' is in 54 lines (f16, bf16, tf32," in said
    assert "; 'nosuch' is in none. Words are parts of lines, GPUs and formats" in said
    said = run("list", "MI300X", "mxfp4", code=2).stderr
    assert "'MI300X' is in 40 lines (f32, f16, bf16, tf32, e4m3fnuz, e5m2fnuz, f64, int8); 'mxfp4'" in said
    assert said.endswith(" is in 22 lines (blackwell, rtx-blackwell).\n")
    assert "'mxf4' is in none. Did you mean 'mxfp4'?" in run("list", "B200", "mxf4", code=2).stderr
    assert run("list", "formats", "f17", "--json", code=2).stdout == ""


@pytest.mark.parametrize("kind", KINDS)
def test_nothing_to_list_of_any_kind(kind: str) -> None:
    assert f"no line of {kind} contains 'qqqq'." in run("list", kind, "qqqq", code=2).stderr


def test_other_names_of_kinds_are_read() -> None:
    for name, kind in (("units", "models"), ("unit", "models"), ("instructions", "models"), ("question", "hypotheses")):
        assert run("list", name).stdout == run("list", kind).stdout
    assert "no line of models contains 'qqqq'." in run("list", "units", "qqqq", code=2).stderr


def test_a_name_with_a_space_to_list() -> None:
    assert "in quotes if its name has a space" in run("list", "RX", "9070", code=2).stderr


def test_a_gpu_where_an_instruction_is_wanted() -> None:
    message = run("show", "rx9070", code=2).stderr
    assert 'RX 9070: a GPU has several instructions: `mmaprobe list "RX 9070"`' in message
    assert "MI355X (cdna4): no published" in run("show", "mi355x", code=2).stderr
    architecture = "an architecture has several instructions: `mmaprobe list hopper`"
    for words in (("show", "hopper"), ("distinguish", "Hopper", "ampere")):
        assert architecture in run(*words, code=2).stderr
    message = "hopper/mma: the beginning of several names: `mmaprobe list models hopper/mma` shows them"
    assert message in run("show", "hopper/mma", code=2).stderr
    for wrong, meant in (
        ("hoper/mma", "hopper/mma"),
        ("hoper", "hopper"),
        ("h1000", "H100"),
        ("cublas/plan", "plan:cublas/plain"),
        ("cublas/plain@length=64", "plan:cublas/plain@length=64"),
        ("cublas/plan@length=64", "plan:cublas/plain@length=64"),
        ("hoper@length=64", "hopper"),
    ):
        found = run("show", wrong, code=2).stderr
        assert f"did you mean '{meant}'?" in found, found
    assert "no line of models contains 'h1000'. Did you mean 'H100'?" in run("list", "models", "h1000", code=2).stderr
    assert "Did you mean 'gpus'?" in run("list", "GPU", code=2).stderr
    assert "cdna4: no published" in run("show", "cdna4", code=2).stderr


def test_identify_among_the_instructions_of_a_gpu() -> None:
    """FP8 of `mma` and of `wgmma` differ on an H100; an instruction of another GPU is none of its candidates."""
    wgmma, ada = "hopper/wgmma/m64n8k32.f32.e4m3.e4m3", "ada-lovelace/mma/m16n8k16.f32.f16.f16.f32"
    found = run("identify", "H100", "--device", f"model:{wgmma}", "--json")
    document = json.loads(found.stdout)
    assert (document["candidates"], document["units"]) == (2, [wgmma])
    assert "hopper: H100, " in found.stderr
    message = run("identify", "RX 7900 XTX", "--device", "model:rdna3/dot2/f32_f16", code=2).stderr
    assert "(rdna3) are unit files" in message
    assert "no candidate fits" in run("identify", "NVIDIA H100 80GB", "--device", f"model:{ada}", code=1).stderr


@pytest.mark.parametrize(
    ("gpu", "device", "message"),
    [
        ("MI300X", "model:hopper/wgmma/m64n8k32.f32.e4m3.e4m3", "MI300X (cdna3) has no instruction on e4m3 e4m3 f32"),
        ("H100", "command:true", "H100 has several instructions: --model says"),
        ("H10", "command:true", "unknown family 'H10'"),
    ],
)
def test_identify_says_what_a_gpu_lacks(gpu: str, device: str, message: str) -> None:
    assert message in run("identify", gpu, "--device", device, code=2).stderr


def test_data_sheets_of_a_gpu(tmp_path: Path) -> None:
    page = tmp_path / "v100.html"
    run("datasheet", "Tesla V100", "--limit", "0", "-o", str(page))
    assert "volta/mma/m8n8k4.f32.f16.f16.f32" in page.read_text()
    assert "<h1>Numerical data sheets: V100 (Volta)</h1>" in page.read_text()
    assert "turing/" not in page.read_text()
    assert "-0 * 1 + (-0), other products +0" in page.read_text()
    assert "did you mean 'H100'" in run("datasheet", "H10", "-o", str(page), code=2).stderr
    assert "unknown plan 'nosuch'" in run("datasheet", "plan:nosuch", "-o", str(page), code=2).stderr
