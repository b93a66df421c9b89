"""`make evidence` from end to end, on a software model and on a fake GPU in place of a GPU."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from benchmarks import evidence, evidence_steps
from benchmarks.evidence_steps import FINDINGS, command, question_names, special_vectors
from mmaprobe.hypotheses.library import question_named
from mmaprobe.runner.devices import DeviceUnavailableError
from mmaprobe.runner.gpu import cuda
from mmaprobe.smtmodel.base.errors import IncompleteError
from mmaprobe.smtmodel.inputs.vectors import open_text, read_vectors
from mmaprobe.smtmodel.tables.instructions import INSTRUCTIONS
from mmaprobe.smtmodel.tables.reference import parse_reference
from tests.cuda.fake_gpu import FakeGpu, fault

pytestmark = pytest.mark.kernels

TF32 = "hopper/mma/m16n8k4.f32.tf32.tf32.f32"
FEW = ("fasi-subnormal-inputs", "fasi-final-rounding")
ONE = ["--arch", "hopper", "--only", r"m16n8k4\.f32", "--count", "500"]


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two questions of the library, none of those that are open."""
    monkeypatch.setattr(evidence_steps, "library", lambda: dict.fromkeys(FEW))
    monkeypatch.setattr(evidence_steps, "representative", lambda row: True)
    monkeypatch.setattr(evidence_steps, "FINDINGS", Path("/nowhere"))


def documents(folder: Path, reference: str = TF32) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / "summary.json").read_text())[reference]
    return found


@pytest.mark.slow
@pytest.mark.usefixtures("few")
def test_everything_on_a_model(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    given = ["--device", "model:{reference}", *ONE, "-o", str(tmp_path)]
    assert evidence.main(given) == 0
    found = documents(tmp_path)
    assert found["position"] == {"skipped": "the device has no positions", "took": found["position"]["took"]}
    assert (found["random"]["vectors"], found["random"]["mismatches"]) == (500, 0)
    assert (found["shaped"]["vectors"], found["shaped"]["mismatches"]) == (500, 0)
    assert 100 < found["random"]["finite"] < 500
    assert found["specials"]["mismatches"] == []
    assert found["specials"]["results"]["infinity minus infinity"] == {"device": "7fffffff", "model": "7fffffff"}
    assert found["questions"]["standing"] == {"fasi-subnormal-inputs": ["kept"], "fasi-final-rounding": ["toward_zero"]}
    assert found["identify"]["verdict"] == "identified"
    folder = tmp_path / TF32.replace("/", "-")
    for name in ("random", "shaped", "specials", "questions-answers", "identify-answers"):  # `evaluate` reads them all
        judged = command("evaluate", str(folder / f"{name}.jsonl"))
        assert judged["rows"] > 3
        if name not in ("questions-answers", "identify-answers"):  # whose rows name a hypothesis or a candidate
            assert judged["mismatches"] == 0
        row = json.loads((folder / f"{name}.jsonl").read_text().splitlines()[0])
        assert row["provenance"]["description"] == {"model": TF32, "name": f"software model {TF32}"}
    device = f"recorded:{folder / 'identify-answers.jsonl'}"
    recorded = command("identify", "nvidia-tf32", "--device", device, "--model", TF32)
    assert recorded["decided"] == found["identify"]["decided"]
    assert len((folder / "random.jsonl").read_text().splitlines()) == 100
    assert "| 0 of 500 not as the model |" in (tmp_path / "summary.md").read_text()
    capsys.readouterr()
    assert evidence.main(given) == 0  # nothing is left to do
    assert "took" not in capsys.readouterr().err


@pytest.mark.usefixtures("few")
def test_a_device_that_is_not_as_the_model(tmp_path: Path) -> None:
    other = "model:{reference}@output_rounding=nearest_even,nan=7fc00000"
    given = ["--device", other, *ONE, "-o", str(tmp_path), "--steps", "random,shaped,specials,questions"]
    assert evidence.main(given) == 0
    found = documents(tmp_path)
    assert found["random"]["mismatches"] > 50
    assert found["shaped"]["mismatches"] > 50
    assert "NaN factor" in found["specials"]["mismatches"]
    assert found["questions"]["standing"]["fasi-final-rounding"] == ["nearest_even"]
    rows = (tmp_path / TF32.replace("/", "-") / "random.jsonl").read_text().splitlines()
    assert len(rows) > 100  # the first, and those that the model does not explain


@pytest.mark.parametrize(("error", "code"), [(KeyboardInterrupt(), 3), (fault(), 3)])
def test_it_goes_on_where_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], error: BaseException, code: int
) -> None:
    gpus: list[FakeGpu] = []

    def here() -> FakeGpu:
        gpus.append(FakeGpu(TF32, fails=(4, error) if not gpus else None))
        return gpus[-1]

    monkeypatch.setattr(cuda, "launcher_here", here)
    monkeypatch.setattr(evidence_steps, "CHUNK", 100)
    given = [*ONE, "-o", str(tmp_path), "--steps", "random"]
    assert evidence.main(given) == code
    assert "the same command goes on" in capsys.readouterr().err
    chunks = tmp_path / TF32.replace("/", "-") / "random-chunks.jsonl"
    assert len(chunks.read_text().splitlines()) == 3
    assert evidence.main(given) == 0
    assert sum(launch["count"] for launch in gpus[1].launches) == 200
    assert documents(tmp_path)["random"]["vectors"] == 500
    with open_text(chunks.with_name("random.jsonl")) as stream:
        rows = list(read_vectors(stream, "random"))
    assert len(rows) == 100
    assert rows[0].extra["provenance"]["description"]["machine_instructions"] == {"HMMA.1684.F32.TF32": 1}


def test_an_interrupted_identification_is_not_done(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gpu = FakeGpu(TF32, fails=(30, KeyboardInterrupt()))
    monkeypatch.setattr(cuda, "launcher_here", lambda: gpu)
    assert evidence.main([*ONE, "-o", str(tmp_path), "--steps", "identify"]) == 3
    folder = tmp_path / TF32.replace("/", "-")
    assert not (folder / "identify.json").exists()
    answered = sum(launch["count"] for launch in gpu.launches[:-1])  # a launch may answer several questions
    kept = len((folder / "identify-answers.jsonl").read_text().splitlines())
    assert 29 <= kept <= answered  # what was asked twice is kept once


class Crooked(FakeGpu):
    """Its last row is wrong."""

    def launch(self, blocks: int, threads: int, inputs: Any, output: Any, numbers: Any, timeout: float) -> None:
        super().launch(blocks, threads, inputs, output, numbers, timeout)
        output[7] ^= numbers[1] == 15


@pytest.mark.parametrize(("kind", "words"), [(FakeGpu, "independent"), (Crooked, "DEPENDS on it")])
def test_positions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: Callable[[str], FakeGpu], words: str) -> None:
    gpu = kind(TF32)
    monkeypatch.setattr(cuda, "launcher_here", lambda: gpu)
    assert evidence.main(["--only", r"m16n8k4\.f32", "-o", str(tmp_path), "--steps", "position"]) == 0
    assert words in (tmp_path / "summary.md").read_text()
    places = {(launch["row"], launch["column"], launch["random"]) for launch in gpu.launches}
    assert {(0, 0, 0), (15, 7, 0), (15, 7, 1)} <= places


def test_without_a_gpu(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def nothing() -> FakeGpu:
        raise DeviceUnavailableError("the Python package 'cupy' is missing: pip install 'mmaprobe[cuda12]'")

    monkeypatch.setattr(cuda, "launcher_here", nothing)
    assert evidence.main(["-o", str(tmp_path / "out")]) == 2
    assert "mmaprobe[cuda12]" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_instructions_of_tensor_memory_are_asked(tmp_path: Path) -> None:
    chosen = evidence.arguments(["--arch", "blackwell", "--only", "tcgen05", "-o", str(tmp_path)])
    todo = evidence.jobs(chosen, "blackwell")
    assert len(todo) == len([row for row in INSTRUCTIONS if row.startswith("blackwell/tcgen05")]) > 80
    assert {job.reference.split("/")[1]: job.shape[:2] for job in todo} == {
        "tcgen05mma": (64, 8), "tcgen05mma_block_scale": (128, 8)}  # fmt: skip
    [job] = [job for job in todo if job.reference == "blackwell/tcgen05mma/m64n8k16.f32.f16.f16"]
    assert job.device() == "cuda:tcgen05mma/m64n8k16.f32.f16.f16"


def test_bad_arguments(tmp_path: Path) -> None:
    assert evidence.main(["--arch", "hopper", "--only", "nothing", "-o", str(tmp_path)]) == 2
    with pytest.raises(SystemExit) as caught:
        evidence.main(["--steps", "dance"])
    assert caught.value.code == 2
    with pytest.raises(IncompleteError, match=r"evaluate ended with exit code 2: error: .*no such file"):
        command("evaluate", str(tmp_path / "absent.jsonl"))


def test_the_open_questions_reach_their_instructions() -> None:
    names = {path.stem for path in FINDINGS.glob("*.yaml")}
    assert names == {"zero-sign", "overflow", "fp8-addend", "f16-floor"}
    for path in FINDINGS.glob("*.yaml"):
        assert len(question_named(str(path)).models) > 1
    for reference in ("hopper/wgmma/m64n8k32.f32.e4m3.e5m2", "hopper/wgmma/m64n8k32.f32.e5m2.e5m2"):
        assert "fp8-addend" in {Path(name).stem for name in question_names(reference)}
    whole = question_names("hopper/mma/m16n8k16.f32.f16.f16.f32")
    short = question_names("hopper/mma/m16n8k8.f32.f16.f16.f32")
    assert {"fasi-carry-bits", "f16-hopper-wgmma"} <= set(whole)
    assert {Path(name).stem for name in short} <= names


@pytest.mark.parametrize(
    "reference", [row for row in INSTRUCTIONS if row.startswith(("hopper/", "rtx-blackwell/"))][::7]
)
def test_special_vectors_fit(reference: str) -> None:
    model = parse_reference(reference)
    for vector in special_vectors(model):
        for side, fmt in ((vector.operands.a, model.a), (vector.operands.b, model.b), ((vector.operands.c,), model.c)):
            assert all(pattern >> fmt.width == 0 for pattern in side)
        assert len(vector.operands.scale_a) == model.scales
