"""Convolutions as matrix products of patches and weights (im2col).

Places are spatial positions: of an image, of a kernel, or of a result. In the product for the result, K runs over the
channels of a group and the places of the kernel; in the product for the weights' gradient, K runs over images and
places of the result. The gradient of the input is a transposed convolution. A function `multiply` takes
groups x M x K and groups x K x N, and c that broadcasts to the result.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from typing import Any

import torch
from torch._prims_common import suggest_memory_format

Places = Sequence[int]


def _patches(x: Any, kernel: Places, stride: Places, dilation: Places, groups: int) -> Any:
    """The patches of padded images (N x C x ...), shape groups x (N * places) x (channels of a group * kernel), and the
    shape of the result's places."""
    windows, axes = x, len(kernel)
    for place in range(axes):
        windows = windows.unfold(2 + place, dilation[place] * (kernel[place] - 1) + 1, stride[place])
        windows = windows[..., :: dilation[place]]
    n, channels, places = x.shape[0], x.shape[1], windows.shape[2 : 2 + axes]
    own = channels // groups
    windows = windows.reshape(n, groups, own, *places, *kernel)
    order = (1, 0, *range(3, 3 + axes), 2, *range(3 + axes, 3 + 2 * axes))
    return windows.permute(order).reshape(groups, n * prod(places), own * prod(kernel)), places


def _padded(x: Any, padding: Sequence[tuple[int, int]]) -> Any:
    """Images padded with zeros on both sides of each dimension of places; a negative number cuts places off."""
    flat = [size for pair in reversed(padding) for size in pair]
    return torch.nn.functional.pad(x, flat) if any(flat) else x


def _spread(x: Any, stride: Places) -> Any:
    """Images with stride - 1 zeros between their places."""
    if all(step == 1 for step in stride):
        return x
    sizes = [(size - 1) * step + 1 for size, step in zip(x.shape[2:], stride, strict=True)]
    spread = x.new_zeros((*x.shape[:2], *sizes))
    spread[(slice(None), slice(None), *(slice(None, None, step) for step in stride))] = x
    return spread


def _plain(multiply: Any, x: Any, weight: Any, bias: Any, stride: Places, dilation: Places, groups: int) -> Any:
    """The convolution of padded images. `weight`: C' x (C / groups) x kernel."""
    kernel = weight.shape[2:]
    patches, places = _patches(x, kernel, stride, dilation, groups)
    out = weight.shape[0] // groups
    columns = weight.reshape(groups, out, prod(weight.shape[1:])).mT
    c = None if bias is None else bias.reshape(groups, 1, out)
    d = multiply(patches, columns, c)
    d = d.reshape(groups, x.shape[0], *places, out)
    axes = len(kernel)
    return d.permute(1, 0, 2 + axes, *range(2, 2 + axes)).reshape(x.shape[0], groups * out, *places)


def _in_memory_format(result: Any, *sides: Any) -> Any:
    """A result in PyTorch's memory layout: channels last if one of the sides has channels last."""
    own = [suggest_memory_format(side) for side in sides]
    return result.contiguous(
        memory_format=next((one for one in own if one != torch.contiguous_format), torch.contiguous_format)
    )


def _plain_weights(weight: Any, groups: int) -> Any:
    """The weights of a transposed convolution, C x (C' / groups) x kernel, as those of a plain one, C' x (C / groups) x
    kernel, with the kernel reversed."""
    c, out, *kernel = weight.shape
    split = weight.reshape(groups, c // groups, out, *kernel).transpose(1, 2)
    return split.flip(tuple(range(3, 3 + len(kernel)))).reshape(groups * out, c // groups, *kernel)


def _transposed(
    multiply: Any, x: Any, weight: Any, bias: Any, stride: Places, padding: Places, dilation: Places, groups: int,
    more: Places,
) -> Any:  # fmt: skip
    """The transposed convolution, as a plain one of spread images. `more`: further places at the end of the result."""
    edges = []
    for size, step, pad, extra in zip(weight.shape[2:], dilation, padding, more, strict=True):
        edge = step * (size - 1) - pad
        edges.append((edge, edge + extra))
    whole = _padded(_spread(x, stride), edges)
    return _plain(multiply, whole, _plain_weights(weight, groups), bias, [1] * len(stride), dilation, groups)


def _sizes(given: Mapping[str, Any]) -> tuple[list[int], list[int], list[int], list[int]]:
    """Stride, padding, dilation and output padding, each with a number for every spatial dimension."""
    axes = given["weight"].dim() - 2
    names = ("stride", "padding", "dilation", "output_padding")
    sizes = [list(given[name]) * (axes if len(given[name]) == 1 else 1) for name in names]
    return sizes[0], sizes[1], sizes[2], sizes[3]


def forward(multiply: Any, given: Mapping[str, Any]) -> Any:
    """aten::convolution. `given`: its arguments by name."""
    stride, padding, dilation, more = _sizes(given)
    x, weight, bias, groups = given["input"], given["weight"], given.get("bias"), given["groups"]
    if given["transposed"]:
        result = _transposed(multiply, x, weight, bias, stride, padding, dilation, groups, more)
    else:
        whole = _padded(x, [(pad, pad) for pad in padding])
        result = _plain(multiply, whole, weight, bias, stride, dilation, groups)
    return _in_memory_format(result, x, weight)


def backward(multiply: Any, given: Mapping[str, Any]) -> Any:
    """aten::convolution_backward: the gradients of the input, the weights and the bias, None for each that
    `output_mask` leaves out. `given`: its arguments by name."""
    stride, padding, dilation, _ = _sizes(given)
    grad, x, weight, groups = given["grad_output"], given["input"], given["weight"], given["groups"]
    needs_input, needs_weight, needs_bias = given["output_mask"]
    axes = weight.dim() - 2
    gradients: list[Any] = [None, None, None]
    edges = [(pad, pad) for pad in padding]
    if needs_input and given["transposed"]:
        gradients[0] = _plain(multiply, _padded(grad, edges), weight, None, stride, dilation, groups)
        gradients[0] = gradients[0][(..., *(slice(0, size) for size in x.shape[2:]))]
    elif needs_input:
        reach = [(o - 1) * s - 2 * p + d * (k - 1) + 1 for o, s, p, d, k in
                 zip(grad.shape[2:], stride, padding, dilation, weight.shape[2:], strict=True)]  # fmt: skip
        more = [size - own for size, own in zip(x.shape[2:], reach, strict=True)]
        gradients[0] = _transposed(multiply, grad, weight, None, stride, padding, dilation, groups, more)
    if needs_weight:
        images, other = (grad, x) if given["transposed"] else (x, grad)
        patches, places = _patches(_padded(images, edges), weight.shape[2:], stride, dilation, groups)
        cut = (..., *(slice(0, size) for size in places))
        own = other.shape[1] // groups
        rows = other[cut].reshape(other.shape[0], groups, own, prod(places))
        if rows.shape[-1] != prod(places) or other.shape[2:] != places:
            patches = patches.reshape(groups, images.shape[0], *places, patches.shape[2])
            patches = patches[(slice(None), slice(None), *(slice(0, size) for size in other.shape[2:]))]
            patches = patches.reshape(groups, images.shape[0] * prod(other.shape[2:]), patches.shape[-1])
            rows = other.reshape(other.shape[0], groups, own, prod(other.shape[2:]))
        rows = rows.permute(1, 2, 0, 3).reshape(groups, own, patches.shape[1])
        gradients[1] = multiply(rows, patches).reshape(weight.shape)
    if needs_bias:
        gradients[2] = grad.sum((0, *range(2, 2 + axes)))
    return (*(None if one is None else _in_memory_format(one, x, weight) for one in gradients[:2]), gradients[2])
