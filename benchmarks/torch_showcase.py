"""What machines, formats and plans do to the results of small models: `python -m benchmarks.torch_showcase -o
benchmarks/torch_showcase.md [--page FOLDER]`.

A transformer and a convolutional net with random weights, seeded. The first table has where machines part, the second
how far results are from those of products in f64. `--page` writes the pages of `diverge`. Needs PyTorch. To look at a
model of your own, put it into `MODELS`.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

import mmaprobe.torch as mt
from benchmarks.pages import put_page
from benchmarks.torch_models import Block
from mmaprobe.reports.diverged import name_of

PAIRS = (("H100", "A100"), ("H100", "MI300X"), ("A100", "MI300X"))
#: a name -> the type of the model, and how its products are computed
WAYS: dict[str, tuple[Any, dict[str, Any]]] = {
    "f32, fused multiply-adds": (torch.float32, {"machine": "H100"}),
    "f32 as three products of bf16 (bf16x3)": (torch.float32, {"machine": "H100", "f32": "plan:triton/bf16x3"}),
    "f32 rounded to tf32": (torch.float32, {"machine": "H100", "f32": "plan:cublas/tf32"}),
    "f16, H100": (torch.float16, {"machine": "H100"}),
    "f16, H100, sums in f16": (torch.float16, {"machine": "H100", "f16": "hopper/wgmma/m64n8k16.f16.f16.f16"}),
    "f16, A100": (torch.float16, {"machine": "A100"}),
    "f16, MI300X": (torch.float16, {"machine": "MI300X"}),
    "bf16, H100": (torch.bfloat16, {"machine": "H100"}),
    "f32 rounded to e4m3, promoted": (
        torch.float32, {"machine": "H100", "f32": "plan:cutlass/fp8-promoted", "convert": "nearest_even"}),
    "f32 rounded to e4m3, fast": (
        torch.float32, {"machine": "H100", "f32": "plan:cutlass/fp8-fast", "convert": "nearest_even"}),
}  # fmt: skip


def transformer() -> tuple[Any, Any]:
    torch.manual_seed(0)
    blocks = [Block(256, 4) for _ in range(4)]
    return torch.nn.Sequential(*blocks, torch.nn.LayerNorm(256), torch.nn.Linear(256, 512)), torch.randn(2, 32, 256)


def convolutions() -> tuple[Any, Any]:
    torch.manual_seed(1)
    return torch.nn.Sequential(
        torch.nn.Conv2d(3, 32, 3, padding=1), torch.nn.ReLU(),
        torch.nn.Conv2d(32, 64, 3, padding=1, stride=2), torch.nn.ReLU(),
        torch.nn.Conv2d(64, 64, 3, padding=1, groups=4), torch.nn.ReLU(),
        torch.nn.AdaptiveAvgPool2d(4), torch.nn.Flatten(), torch.nn.Linear(1024, 100),
    ), torch.randn(4, 3, 24, 24)  # fmt: skip


MODELS: dict[str, Callable[[], tuple[Any, Any]]] = {"transformer": transformer, "convolutional net": convolutions}


def parting(folder: Path | None) -> list[str]:
    """Rows: the first product that differs, and what the models return, of two machines in f16."""
    lines = ["| model, f16 | machines | the first product that differs | of its results | ulps | "
             "of the model's results | largest | relative |", "|---|---|---|---|---|---|---|---|"]  # fmt: skip
    for name, make in MODELS.items():
        model, x = make()
        for pair in PAIRS:
            found = mt.diverge(model.half(), x.half(), *pair, bounds=folder is not None)
            document, first = found.document, found.first
            cells = ["none", "", ""] if first is None else [
                name_of(first), f"{first.own} of {first.outputs}", str(first.own_ulps)]  # fmt: skip
            last = document.products[-1].relative
            cells += [f"{document.differ} of {document.outputs}", f"{document.largest:.2g}", f"{last:.1e}"]
            lines.append(f"| {name} | {' and '.join(pair)} | {' | '.join(cells)} |")
            if folder is not None:
                found.html(folder / f"{name} {' '.join(pair)}.html".replace(" ", "-"))
    return lines


def ways() -> list[str]:
    """Rows: how far a model's results are from those with products in f64, and how often the largest one is another."""
    lines = ["| products | transformer: relative error | largest logit moves | convolutional net: relative error | "
             "largest moves |", "|---|---|---|---|---|"]  # fmt: skip
    cells: dict[str, list[str]] = {name: [] for name in WAYS}
    for make in MODELS.values():
        model, x = make()
        with torch.no_grad():
            exact = model.double()(x.double())
            for name, (kind, how) in WAYS.items():
                with mt.emulate(**how):
                    found = make()[0].to(kind)(x.to(kind)).double()
                moved = int((found.argmax(-1) != exact.argmax(-1)).sum())
                cells[name] += [f"{float((found - exact).norm() / exact.norm()):.1e}",
                                f"{moved} of {exact[..., 0].numel()}"]  # fmt: skip
    return lines + [f"| {name} | {' | '.join(own)} |" for name, own in cells.items()]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("-o", "--output", type=Path)
    parser.add_argument("--page", type=Path)
    asked = parser.parse_args()
    lines = ["# What other machines, formats and plans do to a model", "",
             "A transformer of four layers (width 256) and a convolutional net, random weights, "
             "`python -m benchmarks.torch_showcase`. Where machines part, each model in f16:", "",
             *parting(asked.page), "",
             "How far results are from those whose products are in f64; all but the products runs in the model's type:",
             "", *ways()]  # fmt: skip
    text = "\n".join(lines) + "\n"
    put_page(text, asked.output)


if __name__ == "__main__":
    main()
