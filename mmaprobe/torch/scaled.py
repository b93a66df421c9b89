"""Products with scale factors of PyTorch. A scale factor belongs to a whole matrix, a row or a column, or a block of
K."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from mmaprobe.machines import ProductRequest, UnsupportedProductError
from mmaprobe.torch.tensors import format_of

#: torch.nn.functional.ScalingType by number: whole matrices, rows or columns, blocks of 16 (NVFP4) and of 32 (MX)
WHOLE, ROWS, BLOCKS_OF_16, BLOCKS_OF_32 = range(4)
SWIZZLED = 1  # torch.nn.functional.SwizzleType.SWIZZLE_32_4_4
PAIRS = torch.float4_e2m1fn_x2  # two numbers in a byte, the first one in the low half
_BLOCKS = {BLOCKS_OF_16: (torch.float8_e4m3fn, "ue4m3", 16), BLOCKS_OF_32: (torch.float8_e8m0fnu, "ue8m0", 32)}


@dataclass(frozen=True)
class Blocked:
    """A product with a scale factor for each block of K. `a`, `b`: patterns, tensors of uint8 (1 x M x K and 1 x K x
    N); `scales`: patterns of the scale factors (1 x M x K / block, 1 x K / block x N)."""

    asked: ProductRequest
    a: Any
    b: Any
    scales: Mapping[str, Any]


def packed(tensor: Any) -> bool:
    """Whether a tensor holds numbers of e2m1, two in a byte."""
    return bool(tensor.dtype == PAIRS)


def _matrix(tensor: Any) -> tuple[str, Any]:
    """The format and the patterns (uint8) of a matrix (rows x K)."""
    bits = tensor.detach().contiguous().view(torch.uint8)
    if not packed(tensor):
        return format_of("a", tensor), bits
    return "e2m1", torch.stack([bits & 15, bits >> 4], -1).reshape(bits.shape[0], 2 * bits.shape[1])


def blocked(a: Any, b: Any, scale_a: Any, scale_b: Any, recipe: int, swizzled: tuple[bool, bool]) -> Blocked:
    """The product of a (M x K) and b (K x N) with a factor for each block of K. Raises UnsupportedProductError."""
    kind, scale, block = _BLOCKS[recipe]
    if scale_a.dtype != kind or scale_b.dtype != kind:
        raise UnsupportedProductError(f"scale factors of {block} products each are {kind}, not {scale_a.dtype}")
    (one, x), (other, y) = _matrix(a), _matrix(b.mT)
    if x.shape[1] % block:
        raise UnsupportedProductError(f"K = {x.shape[1]} is no multiple of the {block} products of a scale factor")
    sides = []
    for factor, rows, is_swizzled in ((scale_a, len(x), swizzled[0]), (scale_b, len(y), swizzled[1])):
        sides.append(_factors(factor, rows, x.shape[1] // block, is_swizzled))
    if scale == "ue4m3" and any(bool((side >> 7).any()) for side in sides):
        raise UnsupportedProductError("a scale factor is negative")
    asked = ProductRequest(one, other, "f32", scale=(scale, block))
    return Blocked(asked, x[None], y.mT[None], {"scale_a": sides[0][None], "scale_b": sides[1].mT[None]})


def _factors(factor: Any, rows: int, blocks: int, swizzled: bool) -> Any:
    """The patterns of scale factors, shape rows x blocks. `swizzled`: whether `factor` has the layout of tiles of 128 x
    4 that cuBLAS reads (cuBLAS, "1D Block Scaling Factors Layout"). Raises UnsupportedProductError."""
    bits = factor.detach().contiguous().view(torch.uint8).ravel()
    down, along = (-(-rows // 128), -(-blocks // 4)) if swizzled else (rows, blocks)
    wanted = down * along * (512 if swizzled else 1)
    if bits.numel() != wanted:
        raise UnsupportedProductError(f"{bits.numel()} scale factors; {wanted} are wanted for {rows} x {blocks} blocks")
    if not swizzled:
        return bits.reshape(rows, blocks)
    tiles = bits.reshape(down, along, 32, 4, 4)  # row modulo 32, row / 32, block of K
    return tiles.permute(0, 3, 2, 1, 4).reshape(down * 128, along * 4)[:rows, :blocks]


@dataclass(frozen=True)
class Scales:
    """The scale factors of one product, for a and for b. `recipe`: the kind of the factors of blocks, None without such
    factors; `blocks`: the factors of blocks; `swizzled`: whether the factors of blocks are swizzled; `sides`: the
    factors of whole matrices, rows or columns, f32."""

    recipe: int | None
    blocks: tuple[Any, Any]
    swizzled: tuple[bool, bool]
    sides: tuple[Any, Any]


def scales_of(given: Mapping[str, Any]) -> Scales:
    """The factors among the arguments, by name, of _scaled_mm or _scaled_mm_v2. Raises UnsupportedProductError."""
    if "recipe_a" not in given:
        return _first_version(given["self"], given["mat2"], given["scale_a"], given["scale_b"])
    if given.get("contraction_dim"):
        raise UnsupportedProductError("contraction_dim: only the last dimension of a with the first of b is known")
    plain, blocks, swizzled, recipes = [], [], [], []
    for side in "ab":
        factors: Sequence[Any] = given[f"scale_{side}"]
        kinds, layouts = given[f"recipe_{side}"], [*given[f"swizzle_{side}"], *[0] * len(factors)]
        known = [(x, kind, layout) for x, kind, layout in zip(factors, kinds, layouts, strict=False)]
        if any(kind not in (WHOLE, ROWS, *_BLOCKS) for _, kind, _ in known):
            raise UnsupportedProductError("no unit takes scale factors of blocks of 128 products")
        own = [one for one in known if one[1] in _BLOCKS]
        plain.append(next((x for x, kind, _ in known if kind in (WHOLE, ROWS)), None))
        blocks.append(own[0][0] if own else None)
        swizzled.append(bool(own) and own[0][2] == SWIZZLED)
        recipes.append(own[0][1] if own else None)
    if recipes[0] != recipes[1]:
        raise UnsupportedProductError("scale factors of a and b are for different blocks")
    return Scales(recipes[0], (blocks[0], blocks[1]), (swizzled[0], swizzled[1]), (plain[0], plain[1]))


def _first_version(a: Any, b: Any, one: Any, other: Any) -> Scales:
    for recipe, (kind, _, _) in _BLOCKS.items():
        if one.dtype == other.dtype == kind:  # PyTorch takes these swizzled, as cuBLAS does
            return Scales(recipe, (one, other), (True, True), (None, None))
    if one.dtype != torch.float32 or other.dtype != torch.float32:
        raise UnsupportedProductError(f"scale factors of {one.dtype} and {other.dtype} are not known")
    if one.numel() not in (1, a.shape[0]) or other.numel() not in (1, b.shape[1]):
        raise UnsupportedProductError(
            "give one scale factor, one for each row of A and column of B, or factors of blocks in ue8m0 or ue4m3"
        )
    return Scales(None, (None, None), (False, False), (one, other))


def scaled_sums(sums: Any, scales: Scales, bias: Any, kind: Any) -> Any:
    """The sums (M x N) times the factors of whole matrices, rows and columns in f32, plus the bias, rounded to a
    type."""
    one, other = scales.sides
    if one is not None or other is not None:
        x = torch.ones(1, device=sums.device) if one is None else one
        y = torch.ones(1, device=sums.device) if other is None else other
        sums = sums * (x.reshape(-1, 1) * y.reshape(1, -1))
    if bias is not None:
        sums = sums + bias.float()
    return sums.to(kind)
