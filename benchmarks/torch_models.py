"""Time of emulated products and models in PyTorch: `python -m benchmarks.torch_models -o benchmarks/torch_models.md`.

Needs PyTorch (make test-torch installs it). Products are compared with `simulate` of the same unit on patterns; of
models, random ones of the size of GPT-2 small, a forward pass is compared with PyTorch's own.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

import mmaprobe.torch as mt
from benchmarks.pages import put_page
from mmaprobe.machines import machine_of
from mmaprobe.smtmodel.plans.gemm import simulate
from mmaprobe.torch.tensors import TYPE_OF, patterns

MACHINES = {"f16": "H100", "bf16": "MI300X", "f32": "H100", "e4m3": "H100"}
WORDS = 50257
SHAPES = ((128, 768, 768), (128, 768, 3072), (512, 1024, 512))


class Block(torch.nn.Module):  # type: ignore[misc, unused-ignore]
    """A block of a transformer as GPT-2 has it."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.before, self.after = torch.nn.LayerNorm(width), torch.nn.LayerNorm(width)
        self.attend, self.project = torch.nn.Linear(width, 3 * width), torch.nn.Linear(width, width)
        self.up, self.down = torch.nn.Linear(width, 4 * width), torch.nn.Linear(4 * width, width)

    def forward(self, x: Any) -> Any:
        n, length, width = x.shape
        q, k, v = (
            side.view(n, length, self.heads, -1).transpose(1, 2) for side in self.attend(self.before(x)).chunk(3, -1)
        )
        found = torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.project(found.transpose(1, 2).reshape(n, length, width))
        return x + self.down(torch.nn.functional.gelu(self.up(self.after(x))))


class Model(torch.nn.Module):  # type: ignore[misc, unused-ignore]
    """Embeddings, blocks, and logits by the same embeddings."""

    def __init__(self, layers: int = 12, width: int = 768, heads: int = 12) -> None:
        super().__init__()
        self.words, self.places = torch.nn.Embedding(WORDS, width), torch.nn.Embedding(1024, width)
        self.blocks = torch.nn.ModuleList(Block(width, heads) for _ in range(layers))
        self.last = torch.nn.LayerNorm(width)
        torch.nn.init.normal_(self.words.weight, std=0.02)

    def forward(self, tokens: Any) -> Any:
        x = self.words(tokens) + self.places(torch.arange(tokens.shape[1]))
        for block in self.blocks:
            x = block(x)
        return self.last(x) @ self.words.weight.T


def seconds(call: Callable[[], object], count: int) -> float:
    """The least time of a call in seconds of the processors, so that a busy machine counts as a free one; after a call
    that is not counted."""
    call()
    found = []
    for _ in range(count):
        start = time.process_time()
        call()
        found.append(time.process_time() - start)
    return min(found)


def products(count: int) -> list[str]:
    """Rows: a product by `simulate` on patterns, and by `matmul` and `emulate` on tensors."""
    lines = ["| product | simulate, s | matmul of tensors | under emulate |", "|---|---|---|---|"]
    for fmt, name in MACHINES.items():
        plan = machine_of(name).rule(fmt, fmt).plan
        for m, k, n in SHAPES:
            a, b = (torch.randn(size).to(TYPE_OF[fmt]) for size in ((m, k), (k, n)))
            own = seconds(lambda a=a, b=b, plan=plan: simulate(patterns(a), patterns(b), None, plan), count)
            one = seconds(lambda a=a, b=b, name=name: mt.matmul(a, b, machine=name, dtype=torch.float32), count)
            row = f"| {name}, {fmt}, {m} x {n} x {k} | {own:.3f} | {one / own:.2f} |"
            if fmt != "e4m3":
                with mt.emulate(name):
                    two = seconds(lambda a=a, b=b: a @ b, count)
                row += f" {two / own:.2f} |"
            lines.append(row if fmt != "e4m3" else row + " |")
    return lines


def model(tokens: int) -> list[str]:
    """Rows: the forward pass of a model of the size of GPT-2 small, in f16, native and on machines."""
    torch.manual_seed(0)
    made = Model().half().eval()
    size = sum(one.numel() for one in made.parameters())
    given = torch.randint(WORDS, (1, tokens))
    lines = [f"A forward pass, {size / 1e6:.0f} M parameters, f16, {tokens} tokens:", "",
             "| | s of the processors | tokens a second on two cores that it has alone |", "|---|---|---|"]  # fmt: skip
    with torch.no_grad():
        native = seconds(lambda: made(given), 2)
        lines.append(f"| PyTorch {torch.__version__} itself | {native:.2f} | {2 * tokens / native:.1f} |")
        for name in ("H100", "A100", "MI300X"):
            with mt.emulate(name):
                found = seconds(lambda: made(given), 1)
            lines.append(f"| as {name} | {found:.1f} | {2 * tokens / found:.1f} |")
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("-o", "--output", type=Path)
    parser.add_argument("--count", type=int, default=5)
    parser.add_argument("--tokens", type=int, default=128)
    asked = parser.parse_args()
    lines = ["# Time of emulated products and models in PyTorch", "",
             f"`python -m benchmarks.torch_models`, on {os.cpu_count()} cores, in seconds of both together; "
             "times of products on tensors as multiples of `simulate`'s for the same plan.", "",
             *products(asked.count), "", *model(asked.tokens)]  # fmt: skip
    text = "\n".join(lines) + "\n"
    put_page(text, asked.output)


if __name__ == "__main__":
    main()
