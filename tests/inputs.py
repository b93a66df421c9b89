"""Generators of inputs for a model, each with an aim of its own; all seeded by the generator passed in."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from mmaprobe.smtmodel.arithmetic.formats import Format
from mmaprobe.smtmodel.evaluate.model import Model

Patterns = NDArray[np.uint64]
Floats = NDArray[np.float64]
Inputs = tuple[Patterns, Patterns, Patterns]
Shape = tuple[int, ...]
MOST = 2.0**900  # keeps sums of f64 products finite


def encode(fmt: Format, x: Floats) -> Patterns:
    """The nearest patterns of finite numbers, the largest finite one beyond the range."""
    magnitude = np.abs(x)
    exponent = np.maximum(np.frexp(magnitude)[1].astype(np.int64) - 1, fmt.emin)
    steps = np.rint(np.ldexp(magnitude, fmt.fraction - exponent)).astype(np.int64)
    field = np.minimum(((exponent - fmt.emin) << fmt.fraction) + steps, fmt.largest_field).astype(np.uint64)
    sign = np.where(np.signbit(x), np.uint64(fmt.sign_bit), np.uint64(0))
    return np.array((field << np.uint64(fmt.padding)) | sign, dtype=np.uint64)


def decode(fmt: Format, patterns: Patterns) -> Floats:
    """The values of finite patterns of a signed format."""
    field = (patterns & np.uint64(fmt.sign_bit - 1)) >> np.uint64(fmt.padding)
    exponent = (field >> np.uint64(fmt.fraction)).astype(np.int64)
    fraction = (field & np.uint64((1 << fmt.fraction) - 1)).astype(np.float64)
    hidden = np.where(exponent > 0, 2.0**fmt.fraction, 0.0)
    value = np.ldexp(hidden + fraction, np.maximum(exponent, 1) - fmt.bias - fmt.fraction)
    return np.array(np.where((patterns & np.uint64(fmt.sign_bit)) != 0, -value, value), dtype=np.float64)


def raw(fmt: Format, shape: Shape, rng: np.random.Generator) -> Patterns:
    """Any patterns."""
    return rng.integers(0, 1 << fmt.width, shape, dtype=np.uint64) if fmt.width < 64 else _words(shape, rng)


def _words(shape: Shape, rng: np.random.Generator) -> Patterns:
    return rng.integers(0, 2**64 - 1, shape, dtype=np.uint64, endpoint=True)


def numbers(fmt: Format, shape: Shape, rng: np.random.Generator, spread: int = 4) -> Patterns:
    """Normally distributed numbers, each row at a few scales."""
    scale = rng.integers(-spread, spread + 1, shape) * (rng.random(shape[:1] + (1,) * (len(shape) - 1)) < 0.7)
    return encode(fmt, np.ldexp(rng.standard_normal(shape), scale))


def specials(fmt: Format) -> Patterns:
    """Zeros, infinities, NaNs, and the ends of the subnormal and normal ranges, with both signs."""
    smallest, normal = 1 << fmt.padding, 1 << (fmt.fraction + fmt.padding)
    magnitudes = [
        0,
        fmt.infinity,
        fmt.nan,
        fmt.largest,
        smallest,
        normal - smallest,
        normal,
        (1 << fmt.field_width) - 1,
    ]
    return np.array([m | s for m in magnitudes for s in (0, fmt.sign_bit)], dtype=np.uint64)


def _mixed(fmt: Format, shape: Shape, rng: np.random.Generator) -> Patterns:
    """Any pattern; in half of the rows only finite ones; here and there a special one."""
    patterns = raw(fmt, shape, rng)
    keep_finite = rng.random(shape[:1] + (1,) * (len(shape) - 1)) < 0.5
    spared = patterns & ~np.uint64(1 << (fmt.field_width - 1))  # an exponent below the top
    patterns = np.where(keep_finite, spared, patterns)
    share = min(0.05, 0.3 / shape[-1]) if len(shape) > 1 else 0.05
    return np.where(rng.random(shape) < share, rng.choice(specials(fmt), shape), patterns)


def bits(model: Model, count: int, rng: np.random.Generator) -> Inputs:
    shape = (count, model.length)
    a, b, c = _mixed(model.a, shape, rng), _mixed(model.b, shape, rng), _mixed(model.c, (count,), rng)
    # so that c is not always far above or far below the products
    return a, b, np.where(rng.random(count) < 0.5, c, numbers(model.c, (count,), rng, 12))


def normal(model: Model, count: int, rng: np.random.Generator) -> Inputs:
    shape = (count, model.length)
    return numbers(model.a, shape, rng), numbers(model.b, shape, rng), numbers(model.c, (count,), rng)


def _exact(model: Model, a: Patterns, b: Patterns) -> Floats:
    """The sum of the products, as far as binary64 holds it."""
    products = decode(model.a, a) * decode(model.b, b)
    return np.array(products.sum(axis=1).clip(-MOST, MOST), dtype=np.float64)


def cancelling(model: Model, count: int, rng: np.random.Generator) -> Inputs:
    """Products that cancel in pairs but for their last bits, and c close to minus the sum."""
    a, b = (numbers(fmt, (count, model.length), rng, 1) for fmt in (model.a, model.b))
    pairs = model.length // 2
    last = rng.integers(0, 2, (count, pairs), dtype=np.uint64) << np.uint64(model.a.padding)
    opposite = a[:, 0 : 2 * pairs : 2] ^ np.uint64(model.a.sign_bit) ^ last
    paired = rng.random((count, pairs)) < 0.7
    a[:, 1::2][:, :pairs] = np.where(paired, opposite, a[:, 1::2][:, :pairs])
    b[:, 1::2][:, :pairs] = np.where(paired, b[:, 0 : 2 * pairs : 2], b[:, 1::2][:, :pairs])
    c = encode(model.c, -_exact(model, a, b))
    nudge = rng.integers(-2, 3, count).astype(np.uint64) << np.uint64(model.c.padding)
    nudged = np.where(rng.random(count) < 0.6, c + nudge, c) & np.uint64((model.c.sign_bit << 1) - 1)
    return a, b, np.where(rng.random(count) < 0.8, nudged, numbers(model.c, (count,), rng, 1))


def _smallest(fmt: Format, shape: Shape, rng: np.random.Generator) -> Patterns:
    """Subnormals and the smallest normal exponents."""
    exponent = rng.integers(0, 4, shape, dtype=np.uint64) << np.uint64(fmt.fraction + fmt.padding)
    rest = raw(fmt, shape, rng) & np.uint64(fmt.sign_bit | ((1 << (fmt.fraction + fmt.padding)) - 1))
    return exponent | rest


def small(model: Model, count: int, rng: np.random.Generator) -> Inputs:
    """Exponents close to the smallest everywhere; half of the addends at the scale of the products."""
    shape = (count, model.length)
    a, b, c = _smallest(model.a, shape, rng), _smallest(model.b, shape, rng), _smallest(model.c, (count,), rng)
    larger = rng.random((count, 1)) < 0.5  # subnormals times ordinary numbers
    b = np.where(larger, numbers(model.b, shape, rng, 8), b)
    near = np.ldexp(_exact(model, a, b), rng.integers(-30, 30, count)) * rng.choice([-1.0, 1.0], count)
    return a, b, np.where(rng.random(count) < 0.5, c, encode(model.c, near))


def sparse(model: Model, count: int, rng: np.random.Generator) -> Inputs:
    """At most three products that are not zero; zeros of both signs; c zero in a third of the rows."""
    ordinary, tiny = normal(model, count, rng), small(model, count, rng)
    chosen = rng.random((count, 1)) < 0.5
    a, b = (np.where(chosen, x, y) for x, y in zip(ordinary[:2], tiny[:2], strict=True))
    c = np.where(chosen[:, 0], ordinary[2], tiny[2])
    rank = rng.random((count, model.length)).argsort(axis=1)
    empty = rank >= rng.integers(0, 4, (count, 1))
    a_zero, b_zero = (rng.choice(np.array([0, fmt.sign_bit], dtype=np.uint64), a.shape) for fmt in (model.a, model.b))
    a = np.where(empty, a_zero, a)
    b = np.where(empty & (rng.random(b.shape) < 0.5), b_zero, b)
    c_zero = rng.choice(np.array([0, model.c.sign_bit], dtype=np.uint64), count)
    return a, b, np.where(rng.random(count) < 0.33, c_zero, c)


KINDS: dict[str, Callable[[Model, int, np.random.Generator], Inputs]] = {
    "normal": normal,
    "cancelling": cancelling,
    "bits": bits,
    "small": small,
    "sparse": sparse,
}


def scale_factors(model: Model, count: int, rng: np.random.Generator) -> tuple[Patterns, ...]:
    """Scale factors of both sides, most of them moderate, some of any pattern; nothing for models without."""
    if model.scale is None:
        return ()
    shape, bias = (count, model.scales), 127 if model.scale.name == "ue8m0" else 0x38
    near = (bias + rng.integers(-12, 13, shape)).astype(np.uint64)
    anything = rng.integers(0, 256, shape, dtype=np.uint64)
    return tuple(np.where(rng.random((count, 1)) < 0.8, near, anything) for _ in range(2))


def inputs(kind: str, model: Model, count: int, rng: np.random.Generator) -> Inputs:
    """`count` vectors: a and b of shape (count, length), c of shape (count,)."""
    return KINDS[kind](model, count, rng)


def mixture(model: Model, count: int, rng: np.random.Generator) -> Inputs:
    """About `count` vectors (never fewer) of all kinds in turn."""
    parts = [inputs(kind, model, -(-count // len(KINDS)), rng) for kind in KINDS]
    a, b, c = (np.concatenate([part[side] for part in parts]) for side in range(3))
    return a, b, c
