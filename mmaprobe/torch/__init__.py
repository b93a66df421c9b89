"""PyTorch computes as another machine does: `pip install mmaprobe[torch]`.

    from mmaprobe.torch import emulate
    with emulate("H100") as machine:
        logits = model(tokens)
    print(machine)

`matmul`, `addmm`, `bmm`, `linear` and `scaled_mm` are products of tensors as a unit, a plan or a GPU computes them;
`emulate` is a context for all products of a network; `diverge` shows where two machines diverge in a network.
"""

from __future__ import annotations

from mmaprobe.smtmodel.base.errors import MissingError
from mmaprobe.smtmodel.base.wording import install_command

try:
    import torch as _torch
except ModuleNotFoundError as error:
    raise MissingError(f"mmaprobe.torch needs PyTorch: {install_command('torch')}") from error
del _torch

from mmaprobe.divergences import Divergences  # noqa: E402
from mmaprobe.torch.divergence import (  # noqa: E402
    assert_same_bits,
    assert_within_bound,
    diverge,
)
from mmaprobe.torch.emulation import Emulation, emulate  # noqa: E402
from mmaprobe.torch.products import addmm, bmm, linear, matmul, scaled_mm  # noqa: E402

__all__ = [
    "Divergences",
    "Emulation",
    "addmm",
    "assert_same_bits",
    "assert_within_bound",
    "bmm",
    "diverge",
    "emulate",
    "linear",
    "matmul",
    "scaled_mm",
]
