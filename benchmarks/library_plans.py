"""The plans of libraries on this processor, mapped by `identify --gemm`: a page.

    python -m benchmarks.library_plans [--seconds 600] [-o benchmarks/library_maps.md] [NAME...]

A library that is not installed is left out; its part of the page stays as it is, and so does what the page begins
with. Each is asked by examples/ with random matrices; 200 new shapes, of which nothing was learned, say how much of the
map is true.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import subprocess
import sys
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

from mmaprobe.runner.cpu import processor_name
from mmaprobe.smtmodel.base.files import write_whole
from mmaprobe.smtmodel.base.wording import counted

PAGE = Path("benchmarks/library_maps.md")


@dataclass(frozen=True)
class Library:
    """What is mapped: `package` and the function of examples/, formats, the largest M, N and K, threads."""

    name: str
    package: str
    device: str
    formats: str
    shape: str
    length: int
    threads: int


LIBRARIES = tuple(
    Library(
        f"{name}, {counted(threads, 'thread')}", package, f"python:examples/{device}", formats, shape, 2048, threads
    )
    for name, package, device, formats, shape, threads in (
        ("NumPy float32", "numpy", "numpy_device.py:matmul", "f32,f32,f32", "128,128", 1),
        ("NumPy float32", "numpy", "numpy_device.py:matmul", "f32,f32,f32", "128,128", 2),
        ("NumPy float64", "numpy", "numpy_device.py:matmul", "f64,f64,f64", "128,128", 1),
        ("NumPy float64", "numpy", "numpy_device.py:matmul", "f64,f64,f64", "128,128", 2),
        ("PyTorch bfloat16", "torch", "torch_device.py:matmul", "bf16,bf16,bf16", "128,128", 1),
        ("PyTorch float32", "torch", "torch_device.py:matmul", "f32,f32,f32", "128,128", 1),
        ("PyTorch float16", "torch", "torch_device.py:matmul", "f16,f16,f16", "128,128", 1),
        ("NumPy einsum float32", "numpy", "numpy_device.py:einsum", "f32,f32,f32", "128,128", 1),
        ("SciPy float32", "scipy", "library_devices.py:scipy", "f32,f32,f32", "128,128", 1),
        ("JAX float32", "jax", "library_devices.py:jax", "f32,f32,f32", "128,128", 1),
        ("TensorFlow float32", "tensorflow", "library_devices.py:tensorflow", "f32,f32,f32", "128,128", 1),
        ("ONNX Runtime float32", "onnxruntime", "library_devices.py:onnxruntime", "f32,f32,f32", "128,128", 1),
    )
)  # fmt: skip


def mapped(library: Library, seconds: float) -> dict[str, Any] | None:
    """The document of `identify --gemm`; None where the library is missing or nothing came out."""
    threads = {f"{name}_NUM_THREADS": str(library.threads) for name in ("OPENBLAS", "OMP", "MKL")}
    done = subprocess.run(
        [sys.executable, "-m", "mmaprobe.cli.main", "identify", "--gemm", "--device", library.device,
         "--formats", library.formats, "--length", str(library.length), "--shape", library.shape,
         "--timeout", str(seconds), "--json"],
        env={**os.environ, **threads}, stdout=subprocess.PIPE, text=True, check=False,
    )  # fmt: skip
    return json.loads(done.stdout) if done.stdout else None


def part(library: Library, found: dict[str, Any]) -> str:
    """What a library's map says."""
    today = datetime.now(tz=UTC).date()
    lines = [
        f"## {library.name}",
        "",
        f"{library.package} {version(library.package)}, {processor_name()}, {today}; M and N up to "
        f"{library.shape.split(',')[0]}, K up to {library.length}. "
        f"**{found['right']} of {found['checked']} new random shapes are as the rules say**; "
        f"{found['products_asked']} products asked, {found['seconds']:.0f} s.",
        "",
        "| elements | plan | new shapes: so, not so |",
        "|---|---|---|",
    ]
    for rule in (rule for rule in found["rules"] if rule["plan"] is not None):
        lines.append(f"| {rule['elements']} | `{rule['plan']}` | {rule['agree']}, {len(rule['differ'])} |")
    if any(rule["plan"] is None for rule in found["rules"]):
        lines.append("| other elements that were looked at | no plan found | |")
    if found["error"]:
        lines += ["", f"It ended early: {found['error']}."]
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help="parts of names of libraries; all without")
    parser.add_argument("--seconds", type=float, default=600, help="for one library")
    parser.add_argument("-o", "--output", type=Path, default=PAGE)
    given = parser.parse_args()
    before = (
        given.output.read_text(encoding="utf-8") if given.output.exists() else "# Maps of libraries on one processor\n"
    )
    head, *texts = before.split("\n## ")
    parts = {text.split("\n", 1)[0]: f"## {text.rstrip()}\n" for text in texts}
    for library in LIBRARIES:
        wanted = not given.names or any(name.lower() in library.name.lower() for name in given.names)
        if wanted and importlib.util.find_spec(library.package) and (found := mapped(library, given.seconds)):
            parts[library.name] = part(library, found)
            ordered = [parts[one.name] for one in LIBRARIES if one.name in parts]
            write_whole(given.output, "\n".join([f"{head.rstrip()}\n", *ordered]))


if __name__ == "__main__":
    main()
