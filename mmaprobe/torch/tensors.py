"""Tensors as bit patterns, and arrays of numbers as tensors. Both share the memory of a tensor on the processor."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, cast

import numpy as np
import torch
from numpy.typing import NDArray

from mmaprobe.documents.identify import Layout
from mmaprobe.machines import Memory, UnsupportedProductError
from mmaprobe.reports.exports.snippets import TORCH
from mmaprobe.smtmodel.arithmetic.formats import FORMATS, Format
from mmaprobe.smtmodel.evaluate.numbers import type_of

#: formats -> PyTorch's types that hold their numbers
TYPE_OF: dict[str, Any] = {name: getattr(torch, kind) for name, kind in TORCH.items()}
#: PyTorch's types of numbers -> formats: float32 holds numbers of others too, but is the type of f32
FORMAT_OF: dict[Any, str] = {TYPE_OF[name]: name for name in TORCH if name not in ("tf32", "e8m13")}
_BITS: dict[int, Any] = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}


def format_of(name: str, tensor: Any) -> str:
    """The format of a tensor's numbers. Raises UnsupportedProductError for types that no unit takes."""
    known = FORMAT_OF.get(tensor.dtype)
    if known is None:
        raise UnsupportedProductError(f"{name}: numbers of {tensor.dtype} are in no format that a unit takes")
    return known


def layout_of(a: Any, b: Any) -> Layout:
    """The layouts of two matrices, or of stacks of matrices, that PyTorch passes to a library of linear algebra. A
    matrix whose rows and columns both have gaps between numbers is first copied into rows."""
    letters = ["t" if _rows(side.mT) and not _rows(side) else "n" for side in (a, b)]
    return cast(Layout, "".join(letters))


def _rows(side: Any) -> bool:
    """Whether the numbers of each row lie one after another in memory."""
    *_, between, step = side.stride()
    return bool(step == 1 and between >= max(1, side.shape[-1]))


def words(tensor: Any) -> Any:
    """The bits of a tensor as integers of the same width, in the same memory."""
    plain = tensor.detach().resolve_neg()
    return plain.view(_BITS[plain.element_size()])


def patterns(tensor: Any) -> NDArray[Any]:
    """The bits of a tensor as unsigned integers. The array shares the memory and the strides of a tensor on the
    processor."""
    bits = words(tensor).cpu().numpy()
    unsigned: NDArray[Any] = bits.view(np.dtype(f"u{bits.itemsize}"))
    return unsigned


def numbers(tensor: Any) -> NDArray[Any]:
    """The numbers of a tensor, as an array of NumPy or ml_dtypes."""
    return patterns(tensor).view(type_of(FORMATS[FORMAT_OF[tensor.dtype]]))


def tensor_of(array: NDArray[Any], kind: Any, device: Any = None) -> Any:
    """A tensor of the type `kind` with the numbers of an array, on a device. On the processor it shares the array's
    memory if the array is contiguous."""
    if not array.size:
        return torch.empty(array.shape, dtype=kind, device=device)
    plain = np.ascontiguousarray(array)
    bits = torch.from_numpy(plain.view(f"i{plain.itemsize}" if plain.itemsize > 1 else "u1"))
    tensor = bits.view(kind)
    return tensor if device is None or torch.device(device).type == "cpu" else tensor.to(device)


@dataclass(frozen=True)
class DeviceMemory(Memory):
    """The memory of a device, in which PyTorch computes D from the sums."""

    device: Any
    library = torch

    def empty(self, shape: tuple[int, ...], size: int) -> Any:
        """Words of `size` bytes each, with any contents."""
        return torch.empty(shape, dtype=_BITS[size], device=self.device)

    def zeros(self, shape: tuple[int, ...], fmt: Format) -> Any:
        return torch.zeros(shape, dtype=TYPE_OF[fmt.name], device=self.device)

    def numbers(self, patterns: Any, fmt: Format) -> Any:
        if isinstance(patterns, np.ndarray):  # the processor computed the plan
            return tensor_of(super().numbers(patterns, fmt), TYPE_OF[fmt.name], self.device)
        return patterns.view(TYPE_OF[fmt.name])

    def rounded(self, given: Any, fmt: Format) -> Any:
        kind = TYPE_OF[fmt.name]
        narrow = kind in (torch.float16, torch.bfloat16) and given.dtype is torch.float32
        if given.dtype is kind or kind in (torch.float32, torch.float64) or narrow:  # PyTorch rounds once, to even
            return given.to(kind)
        return tensor_of(super().rounded(numbers(given), fmt), kind, self.device)

    def host(self, given: Any) -> NDArray[Any]:
        return numbers(given)
