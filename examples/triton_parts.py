"""What Triton's `tl.dot` gives on a Hopper GPU with input_precision tf32x3, bf16x3 and bf16x6, in NumPy.

Each factor is a sum of parts of fewer bits. In every tile of K, products of parts are summed from +0 in the order given
here, the smallest first; then the tile's sum is added to the sum of the earlier tiles, in f32.
"""

import ml_dtypes
import numpy as np

import mmaprobe

TF32, BF16 = "hopper/wgmma/m64n8k8.f32.tf32.tf32", "hopper/wgmma/m64n8k16.f32.bf16.bf16"
TF32X3 = BF16X3 = ((1, 0), (0, 1), (0, 0))  # parts of a and b, 0 the largest
BF16X6 = ((1, 1), (2, 0), (0, 2), (1, 0), (0, 1), (0, 0))


def tf32_parts(x):
    """The number rounded to tf32, ties away from zero, and the remainder, truncated to tf32."""
    large = ((x.view(np.uint32) + 0x1000) & 0xFFFFE000).view(np.float32)
    return large, ((x - large).view(np.uint32) & 0xFFFFE000).view(np.float32)


def bf16_parts(x):
    """The number rounded to bf16, the remainder rounded to bf16, and the remainder of that."""
    parts = []
    for _ in range(3):
        parts.append(x.astype(ml_dtypes.bfloat16))
        x = x - parts[-1].astype(np.float32)
    return parts


def product_of_parts(a, b, unit, products, tile):
    """a b in f32, from the parts of a (each M x K) and of b (K x N), in tiles of `tile` products."""
    d = np.zeros((a[0].shape[0], b[0].shape[1]), np.float32)
    for k in range(0, a[0].shape[1], tile):
        total = np.zeros_like(d)
        for i, j in products:
            total = mmaprobe.matmul(a[i][:, k : k + tile], b[j][k : k + tile], total, unit=unit)
        d = d + total
    return d


def tf32x3(a, b, tile=32):
    return product_of_parts(tf32_parts(a), tf32_parts(b), TF32, TF32X3, tile)


def bf16x3(a, b, tile=32):
    return product_of_parts(bf16_parts(a), bf16_parts(b), BF16, BF16X3, tile)


def bf16x6(a, b, tile=32):
    return product_of_parts(bf16_parts(a), bf16_parts(b), BF16, BF16X6, tile)
