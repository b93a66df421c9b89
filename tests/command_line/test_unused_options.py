"""Options of each command in each of its modes: what a mode does not read is refused, with the option's name."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import numpy as np
import pytest
from click.testing import CliRunner

import mmaprobe
from mmaprobe import MmaprobeError
from mmaprobe.cli.main import PLACES, main

AMPERE, HOPPER = "ampere/mma/m16n8k16.f32.f16.f16.f32", "hopper/mma/m16n8k16.f32.f16.f16.f32"
PLAN = "plan:cublas/plain"
SOLVING = "solver timeout memory store fresh cluster"

#: command, mode: what is typed, and the parameters that the mode reads; every other one is refused
MODES: dict[tuple[str, str], tuple[str, str]] = {
    ("distinguish", "models"): (f"{AMPERE} {HOPPER}", f"count output restrictions compare smt2 as_json {SOLVING}"),
    ("distinguish", "question"): ("carry-bits-ampere", f"count output target compare smt2 as_json {SOLVING}"),
    ("prove", "models"): (
        f"{AMPERE} {HOPPER}",
        f"wanted restrictions compare confirm certificate explain length flags as_json {SOLVING}",
    ),
    ("prove", "property"): (
        f"{AMPERE} --property sign-symmetric",
        f"wanted restrictions compare confirm certificate explain as_json {SOLVING}",
    ),
    ("prove", "monotonic"): (
        f"{AMPERE} --property monotonic",
        f"wanted restrictions confirm certificate explain as_json {SOLVING}",
    ),
    ("prove", "bound"): (
        f"{AMPERE} --property error-bound",
        f"wanted restrictions confirm certificate explain latex length measure as_json {SOLVING}",
    ),
    ("prove", "latex"): (
        f"{AMPERE} --property error-bound --latex",
        f"wanted restrictions confirm certificate latex length measure as_json {SOLVING}",
    ),
    ("prove", "plans"): (
        f"{PLAN} plan:cublas/split-k",
        f"wanted confirm certificate explain length as_json {SOLVING}",
    ),
    ("prove", "invariant"): (
        "--invariant RULES.yaml",
        f"rules shapes fixed confirm certificate explain as_json {SOLVING}",
    ),
    ("verify", "claim"): ("ootomo-not-worse-f16", f"certificate largest as_json {SOLVING}"),
    ("check", "folder"): (".", "engines timeout as_json"),
    ("separate", "all"): ("nvidia-f16", f"model output one each as_json {SOLVING}"),
    ("separate", "one"): ("nvidia-f16 --one", f"model output one as_json {SOLVING}"),
    ("identify", "family"): (
        f"nvidia-f16 --device model:{AMPERE}",
        f"device_name model output device_timeout as_json {SOLVING}",
    ),
    ("identify", "built"): (
        f"--device model:{AMPERE}",
        f"device_name output formats length scale save gemm every device_timeout as_json {SOLVING}",
    ),
    ("identify", "function"): (
        "--gemm --device python:FUNCTION --formats f32,f32,f32 --length 8",
        "device_name formats length save gemm invariant shape multiple layout device_timeout timeout as_json",
    ),
    ("identify", "invariant"): (
        "--gemm --invariant --device python:FUNCTION --formats f32,f32,f32 --length 8",
        "device_name formats length gemm invariant fixed shape device_timeout timeout as_json",
    ),
    ("identify", "files"): (
        "--gemm --device recorded:A,B,D --formats f16,f16,f32",
        "device_name formats save addend gemm timeout as_json",
    ),
    ("order", "device"): (
        f"--device model:{AMPERE}",
        "device_name formats length svg pdf tikz width output device_timeout timeout as_json",
    ),
    ("order", "text"): (
        f"--device model:{AMPERE}",
        "device_name formats length svg pdf tikz output device_timeout timeout as_json",
    ),
    ("cover", "model"): (AMPERE, f"output pairs certificate every flags as_json {SOLVING}"),
    ("evaluate", "rows"): ("VECTORS", "model output junit flags as_json"),
    ("run", "rows"): (f"VECTORS --device model:{AMPERE}", "device_name output check device_timeout as_json"),
    ("device", "model"): (AMPERE, ""),
    ("device", "cuda"): ("cuda:mma/none", "device_timeout"),
    ("compare", "devices"): (
        f"command:none model:{AMPERE}",
        "count samples seed vectors reference compare expect output device_timeout gemm timeout as_json",
    ),
    ("compare", "models"): (
        f"model:{AMPERE} model:{HOPPER}",
        "count samples seed vectors compare expect output device_timeout gemm timeout as_json",
    ),
    ("compare", "recorded"): (
        f"recorded:VECTORS model:{AMPERE}",
        "count vectors reference compare expect output device_timeout gemm timeout as_json",
    ),
    ("compare", "files"): (
        "--gemm A B D D2",
        "reference compare expect gemm addend formats convert timeout save as_json",
    ),
    ("compare", "files of a model"): (
        f"--gemm A B D D2 --model {AMPERE}",
        "count reference compare expect output gemm addend convert timeout as_json",
    ),
    ("compare", "files of devices"): (
        f"model:{AMPERE} model:{HOPPER} --gemm A B D D2",
        "count compare expect output device_timeout gemm addend convert timeout as_json",
    ),
    ("explain", "text"): (f"{AMPERE} VECTORS", "other svg pdf tikz as_json"),
    ("explain", "picture"): (f"{AMPERE} VECTORS --svg OUT.svg", "other svg pdf tikz width names as_json"),
    ("explain", "element"): (f"{AMPERE} A B --element 0,0", "element addend as_json"),
    ("export", "rows"): ("VECTORS --format csv", "wanted output model"),
    ("export", "model"): (f"{AMPERE} --format cpp", "wanted output"),
    ("export", "verilog"): (f"{AMPERE} --format verilog", "wanted output stages"),
    ("import", "words"): ("WORDS --model ieee/fma/f32", "model output"),
    ("simulate", "model"): (f"A B -o OUT.npy --model {AMPERE}", "model output addend convert engine threads as_json"),
    ("simulate", "plan"): (f"A B -o OUT.npy --plan {PLAN}", "plan output addend convert engine threads as_json"),
    ("simulate", "patterns"): (f"BITS BITS -o OUT.npy --model {AMPERE}", "model output addend engine threads as_json"),
    ("simulate", "gpu"): (
        f"A B -o OUT.npy --engine cuda --model {AMPERE}",
        "model output addend convert engine as_json",
    ),
    ("simulate", "sparse"): (
        f"HALF B -o OUT.npy --metadata PLACES --model {AMPERE.replace('mma', 'mma_sp')}",
        "model output addend convert engine threads metadata as_json",
    ),
    ("study", "study"): ("valero-tf32", "sizes seed output width cluster as_json"),
    ("report", "page"): ("VECTORS -o OUT.html", "output title"),
    ("datasheet", "page"): (f"{AMPERE} -o OUT.html", "output limit store"),
    ("datasheet", "tables"): (f"{AMPERE} -o OUT.tex", "output limit store"),
    ("datasheet", "short"): ("H100 -o OUT.md", "output"),
    ("datasheet", "disclosure"): ("arm/neon/bfdot-ebf --disclosure riscv-ime", "disclosure as_json"),
    ("datasheet", "declaration"): ("arm/neon/bfdot-ebf --p3109", "p3109 limit store as_json"),
    ("datasheet", "all"): ("--all -o OUT.html", "every output limit store"),
    ("list", "document"): ("models --json", "as_json"),
    ("show", "unit"): (AMPERE, "change svg pdf tikz"),
    ("show", "plan"): (PLAN, ""),
    ("completion", "bash"): ("bash", ""),
}  # fmt: skip

#: what is given to options, where their type does not tell
VALUES = {
    "other": HOPPER, "target": HOPPER, "model": HOPPER, "reference": HOPPER, "restrictions": "finite", "plan": PLAN,
    "formats": "f16,f16,f32", "names": "one", "element": "0,0", "shape": "8,8", "scale": "ue8m0/32", "save": "OUT.yaml",
    "vectors": "VECTORS", "addend": "C", "scale_a": "SCALES", "scale_b": "SCALES", "svg": "OUT.svg", "pdf": "OUT.pdf",
    "tikz": "OUT.tex", "gemm": "A B D D2", "length": "32", "cluster": "tcp://127.0.0.1:1", "output": "OUT.jsonl",
    "store": "OUT.sqlite", "wanted": "exact", "smt2": "OUT.smt2", "certificate": "OUT",
    "multiple": "2", "layout": "nt", "rules": "RULES.yaml", "shapes": "M=1", "metadata": "PLACES",
}  # fmt: skip

ARRAYS = ("A", "B", "C", "D", "D2", "BITS", "SCALES", "HALF", "PLACES")


def commands() -> dict[str, click.Command]:
    return {name: main.commands[name] for name in PLACES}


def refusals() -> Iterator[tuple[str, str, str]]:
    for (name, mode), (_, read) in MODES.items():
        for param in main.commands[name].params:
            if isinstance(param, click.Option) and param.name not in read.split() and param.name != "help":
                yield name, mode, str(param.name)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(1)
    a, b = (rng.standard_normal(shape).astype(np.float16) for shape in ((4, 16), (16, 4)))
    d = mmaprobe.matmul(a, b, unit=AMPERE)
    other = d.copy()
    other[0, 0] += 1
    arrays = {"A": a, "B": b, "C": np.ones_like(d), "D": d, "D2": other, "BITS": np.zeros((16, 16), np.uint16),
              "SCALES": np.full((4, 1), 127, np.uint8), "HALF": a[:, :8],
              "PLACES": np.tile([0, 3], (4, 4))}  # fmt: skip
    for name, array in arrays.items():
        np.save(tmp_path / f"{name}.npy", array)
    (tmp_path / "FUNCTION.py").write_text("def f(a, b):\n    return a @ b\n")
    (tmp_path / "RULES.yaml").write_text(f"rules: one\nshapes: {{M: 4, N: 4, K: 4}}\nelements: [{{plan: {AMPERE}}}]\n")
    row = {"model": AMPERE, "a": ["3c00"], "b": ["3c00"], "c": "00000000", "d": "3f800000"}
    (tmp_path / "WORDS").write_text("3f800000 3f800000 00000000 3f800000\n")
    (tmp_path / "VECTORS").write_text(json.dumps(row) + "\n")
    return tmp_path


def typed(text: str) -> list[str]:
    """The arguments, with the files that the words in capitals stand for."""
    words = text.replace("python:FUNCTION", "python:FUNCTION.py:f").replace(
        "recorded:A,B,D", "recorded:A.npy,B.npy,D.npy"
    )
    return [f"{word}.npy" if word in ARRAYS else word for word in words.split()]


def option_of(command: click.Command, name: str) -> tuple[list[str], tuple[str, ...]]:
    """An option with a value that is not its default, and its names."""
    [option] = [param for param in command.params if param.name == name]
    assert isinstance(option, click.Option)
    kind = option.type
    if option.is_flag:
        return [(option.secondary_opts or option.opts)[-1]], tuple(option.opts)
    if name in VALUES:
        return [option.opts[-1], *typed(VALUES[name])], tuple(option.opts)
    if isinstance(kind, click.Choice):
        return [option.opts[-1], next(word for word in kind.choices if word != option.default)], tuple(option.opts)
    return [option.opts[-1], "77"], tuple(option.opts)


@pytest.mark.parametrize(("name", "mode", "option"), list(refusals()))
def test_an_option_that_a_mode_does_not_read_is_refused(name: str, mode: str, option: str, folder: Path) -> None:
    before = {path.name for path in folder.iterdir()}
    given, names = option_of(main.commands[name], option)
    result = CliRunner().invoke(main, [name, *typed(MODES[name, mode][0]), *given])
    assert result.exit_code == 2, result.output
    assert any(one in result.output for one in (*names, f"{option}: ")), result.output
    assert {path.name for path in folder.iterdir()} == before


def test_every_command_has_a_mode() -> None:
    assert {name for name, _ in MODES} == set(PLACES)


def test_the_parameters_named_here_are_those_of_the_commands() -> None:
    for (name, _), (_, read) in MODES.items():
        assert set(read.split()) <= {param.name for param in main.commands[name].params}, name


def test_a_default_of_the_configuration_is_not_an_option_that_is_given(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "config.toml").write_text("[datasheet]\nlimit = 7\n[explain]\nwidth = 85\n")
    monkeypatch.setenv("MMAPROBE_CONFIG", str(folder / "config.toml"))
    assert CliRunner().invoke(main, ["explain", AMPERE, "VECTORS"]).exit_code == 0
    assert CliRunner().invoke(main, ["datasheet", "H100", "-o", "OUT.md"]).exit_code == 0


def test_options_that_were_dropped_without_a_word_are_read(folder: Path) -> None:
    result = CliRunner().invoke(main, ["prove", PLAN, PLAN, "--explain"])
    assert result.exit_code == 0, result.output


# -- Python


def bits(**named: Any) -> Any:
    return mmaprobe.matmul(np.zeros((1, 1), np.uint8), np.zeros((1, 1), np.uint8), **named)


def test_a_conversion_of_patterns() -> None:
    unit = "ieee/fma/binary8p3"
    assert bits(unit=unit).shape == (1, 1)
    with pytest.raises(MmaprobeError, match="convert: bit patterns are taken as they are"):
        bits(unit=unit, convert="up")
    one = np.zeros(1, np.uint8)
    for use in (mmaprobe.dot, lambda a, b, **named: mmaprobe.explain(named.pop("unit"), a, b, **named)):
        with pytest.raises(MmaprobeError, match="convert: bit patterns are taken as they are"):
            use(one, one, unit=unit, convert="up")


def test_a_comparison_of_a_property_that_compares_nothing() -> None:
    with pytest.raises(MmaprobeError, match="compare: of monotonic it is asked whether results fall"):
        mmaprobe.prove(AMPERE, property="monotonic-addend", compare="value")
