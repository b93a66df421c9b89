"""Processors as devices in tests: runner/cpu_device.c for this machine or an emulated one, and random inputs."""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mmaprobe.runner import cpu
from mmaprobe.runner.protocol import DeviceUnavailableError
from mmaprobe.smtmodel.arithmetic.formats import Format
from mmaprobe.smtmodel.base.errors import IncompleteError
from mmaprobe.smtmodel.evaluate.batch import evaluate_batch
from mmaprobe.smtmodel.evaluate.model import Model

Patterns = NDArray[np.uint64]
Vectors = tuple[Patterns, Patterns, Patterns]


class NoDeviceError(Exception):
    """Why an instruction cannot be executed here."""


@dataclass(frozen=True)
class Machine:
    """How a program for a processor is made and run; `emulator` is empty on the processor itself."""

    compiler: str
    emulator: str = ""
    processor: str = ""


MACHINES = {
    "x86": Machine(os.environ.get("CC", "cc")),
    "arm": Machine("aarch64-linux-gnu-gcc", "qemu-aarch64", "max"),
    "power10": Machine("powerpc64le-linux-gnu-gcc", "qemu-ppc64le", "power10"),
    "riscv": Machine("riscv64-linux-gnu-gcc", "qemu-riscv64", "max"),
}


def execute(arch: str, instruction: str, vectors: Vectors) -> Patterns:
    """The results of an instruction, one for each vector. Raises NoDeviceError."""
    machine = MACHINES[arch]
    if machine.emulator and shutil.which(machine.emulator) is None:
        raise NoDeviceError(f"no {machine.emulator}")
    command = [machine.emulator, "-cpu", machine.processor] if machine.emulator else []
    flags = ("-static", *cpu.FLAGS[arch]) if machine.emulator else cpu.FLAGS[arch]
    try:
        return cpu.execute([*command, str(cpu.program(machine.compiler, flags))], instruction, *vectors)
    except (cpu.MissingInstructionError, DeviceUnavailableError) as error:
        raise NoDeviceError(str(error)) from None
    except IncompleteError as error:
        if "unable to find CPU model" in str(error):
            raise NoDeviceError(f"{machine.emulator} has no processor {machine.processor}") from None
        raise


# -- inputs


class Inputs:
    """Random vectors of a model, in equal shares of the kinds below."""

    def __init__(self, model: Model, seed: int) -> None:
        self.model = model
        self.random = np.random.default_rng(seed)

    def vectors(self, count: int) -> Vectors:
        if self.model.c.is_integer:
            return self.integers(count)
        kinds = (self.bits, self.narrow, self.wide, self.cancelling, self.subnormal, self.least_normal, self.overflow,
                 self.special, self.zeros)  # fmt: skip
        shares = np.array_split(np.arange(count), len(kinds))
        parts = [kind(share.size) for kind, share in zip(kinds, shares, strict=True)]
        a, b, c = (np.concatenate(sides) for sides in zip(*parts, strict=True))
        return a, b, c

    def integers(self, count: int) -> Vectors:
        """Integers: any bits, and those near the ends, whose sums leave the range."""
        a, b, c = self.bits(count)
        some = self.random.random((count, 1)) < 0.5
        ends = [np.array([0, 1, fmt.largest, fmt.largest ^ (1 << fmt.width) - 1, (1 << fmt.width) - 1], np.uint64)
                for fmt in (self.model.a, self.model.b)]  # fmt: skip
        a, b = (np.where(some, self.random.choice(own, side.shape), side)
                for own, side in zip(ends, (a, b), strict=True))  # fmt: skip
        near = self.random.integers(0, 1 << 12, count, dtype=np.uint64)
        c = np.where(some[:, 0], np.where(c & np.uint64(1), near + (1 << 31), (1 << 31) - 1 - near), c)
        c[self.random.random(count) < 0.1] = 0
        return a, b, c

    def _shape(self, count: int) -> tuple[int, int]:
        return count, self.model.length

    def _numbers(self, fmt: Format, exponents: NDArray[np.int64]) -> Patterns:
        """Numbers with these exponents, cut to what the format has; fractions are random, many of them short."""
        shape = exponents.shape
        field = np.clip(exponents + fmt.bias, 0, 2**fmt.exponent - 2).astype(np.uint64)
        fraction = self.random.integers(0, 2**fmt.fraction, shape, dtype=np.uint64)
        short = self.random.integers(0, fmt.fraction + 1, shape, dtype=np.uint64)
        fraction = np.where(self.random.random(shape) < 0.5, fraction >> short << short, fraction)
        sign = self.random.integers(0, 2, shape, dtype=np.uint64)
        return (sign << np.uint64(fmt.width - 1)) | (field << np.uint64(fmt.fraction)) | fraction

    def _spread(self, count: int, low: int, high: int) -> Vectors:
        shape = self._shape(count)
        a, b = (self._numbers(fmt, self.random.integers(low, high + 1, shape)) for fmt in (self.model.a, self.model.b))
        return a, b, self._numbers(self.model.c, self.random.integers(2 * low, 2 * high + 1, count))

    def bits(self, count: int) -> Vectors:
        def any_bits(fmt: Format, shape: tuple[int, ...]) -> Patterns:
            return self.random.integers(0, 2**fmt.width - 1, shape, dtype=np.uint64, endpoint=True)

        shape = self._shape(count)
        return any_bits(self.model.a, shape), any_bits(self.model.b, shape), any_bits(self.model.c, (count,))

    def narrow(self, count: int) -> Vectors:
        return self._spread(count, -3, 3)

    def wide(self, count: int) -> Vectors:
        return self._spread(count, -13, 13)

    def cancelling(self, count: int) -> Vectors:
        """Products in opposite pairs, and addends near the negative of the sum of products."""
        a, b, c = self._spread(count, -3, 3)
        half = self.model.length // 2
        a[:, half : 2 * half] = a[:, :half] ^ np.uint64(1 << self.model.a.width - 1)
        b[:, half : 2 * half] = b[:, :half]
        order = self.random.permuted(np.tile(np.arange(self.model.length), (count, 1)), axis=1)
        a, b = np.take_along_axis(a, order, 1), np.take_along_axis(b, order, 1)
        free = self.random.random(count) < 0.7
        a[free], b[free] = self._spread(int(free.sum()), -3, 3)[:2]
        near = evaluate_batch(self.model, a, b, np.zeros(count, dtype=np.uint64))
        near = near ^ np.uint64(1 << self.model.d.width - 1)
        moved = near + self.random.integers(0, 3, count, dtype=np.uint64) - np.uint64(1)
        if self.model.c == self.model.d:
            c = np.where(free & (near << np.uint64(1) & np.uint64(2**self.model.d.width - 1) != 0), moved, c)
        return a, b, c

    def _around(self, count: int, low: int, high: int, addend: tuple[int, int]) -> Vectors:
        """Products with exponents from low to high, addends with those of `addend`."""
        shape = self._shape(count)
        target = self.random.integers(low, high + 1, shape)
        first = self.random.integers(0, 2**self.model.a.exponent - 1, shape) - self.model.a.bias
        first = np.clip(first, target - self.model.b.bias, target + self.model.b.bias)
        a, b = self._numbers(self.model.a, first), self._numbers(self.model.b, target - first)
        return a, b, self._numbers(self.model.c, self.random.integers(addend[0], addend[1] + 1, count))

    def subnormal(self, count: int) -> Vectors:
        least = self.model.d.emin
        return self._around(count, least - self.model.d.fraction - 2, least + 3, (least - 1, least + 2))

    def least_normal(self, count: int) -> Vectors:
        """The least normal number less a little: the addend, or a product, and one opposite product."""
        model, rows = self.model, np.arange(count)
        least = model.d.emin
        little = self._around(count, least - model.d.fraction - 4, least - model.d.fraction + 1, (least, least))
        a, b = np.zeros_like(little[0]), np.zeros_like(little[1])
        place = self.random.integers(0, model.length, count)
        a[rows, place], b[rows, place] = little[0][rows, place], little[1][rows, place]
        minus = (a >> np.uint64(model.a.width - 1) ^ b >> np.uint64(model.b.width - 1)).max(axis=1) ^ np.uint64(1)
        c = minus << np.uint64(model.c.width - 1) | np.uint64(1 << model.c.fraction)
        if model.length > 1 and least // 2 > model.a.emin:
            pair = self.random.random(count) < 0.5
            other = (place + self.random.integers(1, model.length, count)) % model.length
            first = np.minimum(place, other)[pair], np.maximum(place, other)[pair]
            little_a, little_b = a[pair, place[pair]], b[pair, place[pair]]
            a[pair, place[pair]] = b[pair, place[pair]] = 0
            a[pair, first[1]], b[pair, first[1]] = little_a, little_b
            half = np.uint64((least // 2 + model.a.bias) << model.a.fraction)
            a[pair, first[0]] = minus[pair] << np.uint64(model.a.width - 1) | half
            b[pair, first[0]] = half
            c[pair] = 0
        return a, b, c

    def overflow(self, count: int) -> Vectors:
        most = self.model.d.bias
        return self._around(count, most - 4, most + 1, (most - 4, most))

    def special(self, count: int) -> Vectors:
        a, b, c = self._spread(count, -3, 3)
        often = min(0.5, 1.5 / self.model.length)  # among many products one NaN decides
        for side, fmt in ((a, self.model.a), (b, self.model.b), (c, self.model.c)):
            here = self.random.random(side.shape) < (often if side.ndim > 1 else 0.5)
            side[here] = self.random.choice(_specials(fmt), int(here.sum()))
        return a, b, c

    def zeros(self, count: int) -> Vectors:
        a, b, c = self._spread(count, -3, 3)
        for side, fmt in ((a, self.model.a), (b, self.model.b), (c, self.model.c)):
            top = 1 << fmt.width - 1
            zero = self.random.random(side.shape) < 0.8
            few = np.array([0, top, 0, top, 1, top | 1], dtype=np.uint64)
            side[zero] = self.random.choice(few, int(zero.sum()))
        return a, b, c


def _specials(fmt: Format) -> Patterns:
    one, top = 1 << fmt.fraction, (2**fmt.exponent - 1) << fmt.fraction
    found = [0, 1, one - 1, one, one + 1, fmt.bias << fmt.fraction, top - 1, top, top, top + 1, top + one // 2]
    return np.array([x | sign << fmt.width - 1 for x in found for sign in (0, 1)], dtype=np.uint64)


# -- comparison


def is_nan(patterns: Patterns, fmt: Format) -> NDArray[np.bool_]:
    magnitude = patterns & np.uint64(2 ** (fmt.width - 1) - 1)
    return magnitude > np.uint64((2**fmt.exponent - 1) << fmt.fraction)


def differing(model: Model, expected: Patterns, found: Patterns) -> NDArray[np.intp]:
    """Where two results differ; any NaN equals any, unless the unit says which."""
    same = expected == found
    if model.nan is None:
        same |= is_nan(expected, model.d) & is_nan(found, model.d)
    return np.flatnonzero(~same)
