"""The studies as data: which algorithms, on which numbers, against what."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from mmaprobe.smtmodel.base.errors import UnknownNameError

Kind = Literal["product", "sum", "bias"]
NORMS = ("l1", "l2", "linf")
SIGNED = ("mean", "deviation", "negative")  # measures of a bias


@dataclass(frozen=True)
class Series:
    """One curve: an algorithm, or (`minus`) the difference between its results and another's; or (`bound`) the proved
    error bound of a plan on the same inputs. `dashed` and `group`: how it is drawn; the series of a group share a
    colour."""

    label: str
    algorithm: str
    minus: str = ""
    dashed: bool = False
    group: str = ""
    bound: bool = False

    @property
    def subject(self) -> str:
        """The algorithm, or what of the plan is drawn, in words."""
        return f"bound of {self.algorithm}" if self.bound else self.algorithm


def _proved(what: str, plan: str, group: str) -> Series:
    """The proved bound of a plan."""
    return Series(f"{what}, proved bound", plan, dashed=True, group=group, bound=True)


@dataclass(frozen=True)
class Study:
    """Curves of error against size.

    product: C = A * B, `size` is K and, unless `rows` says otherwise, the number of rows and of columns too; errors in
    the l1, l2 and infinity norms, relative to the norms of A and B. sum: of `size` numbers; error in percent of the
    exact sum. bias: D = C + A * B; the deviations of D from the exact result, with their signs: mean, standard
    deviation, and the percentage of those below zero; of a bound the mean, the root of the mean square, and 100.
    `source`: format of the numbers; `grid`: a narrower format whose
    numbers those of A and B are; `factor`: what they are multiplied by. `repeats`: draws of each point, whose errors
    are averaged.
    """

    name: str
    about: str
    source: str
    kind: Kind
    sizes: tuple[int, ...]
    series: tuple[Series, ...]
    distributions: tuple[str, ...] = ("normal", "uniform")
    rows: int | None = None
    grid: str = ""
    factor: int = 1
    repeats: int = 1
    measures: tuple[str, ...] = field(default=NORMS)
    axis: str = "n"

    @property
    def drawn(self) -> str:
        """What numbers are drawn, in a few words: a table made before they changed is not continued."""
        shape = f", {self.rows} rows" if self.rows else ""
        factor = f", times {self.factor}" if self.factor != 1 else ""
        return f"{self.repeats} of {self.grid or self.source}{shape}{factor}"


_TF32 = "ampere/mma/m16n8k8.f32.tf32.tf32.f32"
_F16 = "ampere/mma/m16n8k16.f32.f16.f16.f32"
_HALF = "ampere/mma/m16n8k16.f16.f16.f16.f16"
_ONE = "multiword@words=1,products=1"
_SGEMM = f"{_ONE},unit=ieee/fma/f32"
_DGEMM = f"{_ONE},unit=ieee/fma/f64,source=f64"
_SGEMM_BOUND = _proved("SGEMM", "plan:ieee/fma/f32", "SGEMM")
_OUTSIDE = "chain=1,addend=first"
_CUT = "split=toward_zero"  # as the unit cuts an f32 operand to TF32

_VALERO_TF32 = Study(
    "valero-tf32",
    "products in one, three and four TF32 or FP16 products beside SGEMM (Valero-Lara et al. 2023, Figure 4)",
    "f32", "product", (32, 64, 128, 256, 512),
    (
        Series("SGEMM", _SGEMM, group="SGEMM"),
        Series("1xTF32", f"{_ONE},unit={_TF32}", group="1xTF32"),
        Series("3xTF32", f"multiword@unit={_TF32}", group="3xTF32"),
        Series("4xTF32", f"multiword@unit={_TF32},products=4", group="4xTF32", dashed=True),
        Series("3xTF32, sums outside", f"multiword@unit={_TF32},{_OUTSIDE}", group="3xTF32 outside"),
        Series("4xTF32, sums outside", f"multiword@unit={_TF32},products=4,{_OUTSIDE}", group="4xTF32 outside",
               dashed=True),
        Series("1xTF32, truncated", f"{_ONE},unit={_TF32},{_CUT}", group="1xTF32 truncated"),
        Series("3xTF32, truncated", f"multiword@unit={_TF32},{_CUT}", group="3xTF32 truncated"),
        Series("4xTF32, truncated", f"multiword@unit={_TF32},products=4,{_CUT}", group="4xTF32 truncated", dashed=True),
        Series("3xTF32, truncated, sums outside", f"multiword@unit={_TF32},{_CUT},{_OUTSIDE}",
               group="3xTF32 truncated outside"),
        Series("1xFP16", f"{_ONE},unit={_F16}", group="1xFP16", dashed=True),
        Series("1xFP16, f16 results", f"{_ONE},unit={_HALF}", group="1xFP16 f16"),
        Series("3xFP16", f"multiword@unit={_F16}", group="3xFP16"),
        Series("4xFP16", f"multiword@unit={_F16},products=4", group="4xFP16", dashed=True),
        Series("|SGEMM - 3xTF32|", _SGEMM, f"multiword@unit={_TF32}", group="difference", dashed=True),
        _SGEMM_BOUND,
        _proved("1xTF32, truncated", "plan:cutlass/tf32-truncated", "1xTF32 truncated"),
    ),
)  # fmt: skip

_VALERO_TF64 = Study(
    "valero-tf64",
    "f64 products in one, three and four TF64 products beside DGEMM (Valero-Lara et al. 2023, Figure 5)",
    "f64", "product", (32, 64, 128, 256),
    (
        Series("DGEMM", _DGEMM, group="DGEMM"),
        Series("SGEMM", f"{_SGEMM},source=f64", group="SGEMM"),
        Series("1xTF64", "tf64@words=1,products=1", group="1xTF64"),
        Series("3xTF64", "tf64", group="3xTF64"),
        Series("4xTF64", "tf64@products=4", group="4xTF64", dashed=True),
        Series("|DGEMM - 3xTF64|", _DGEMM, "tf64", group="difference", dashed=True),
        _proved("DGEMM", "plan:ieee/fma/f64", "DGEMM"),
    ),
)  # fmt: skip

_LENGTHS = (10_000, 30_000, 100_000, 300_000, 1_000_000, 3_000_000, 10_000_000)

_VARIANTS = Study(
    "navarro-variants",
    "sums by three kinds of chained matrix instructions beside warp shuffles (Navarro et al. 2020, Figure 7)",
    "f32", "sum", _LENGTHS,
    (
        Series("single pass", "single-pass", group="single pass"),
        Series("single pass, f32 columns", "single-pass@columns=outside", group="f32 columns"),
        Series("recurrence", "recurrence", group="recurrence"),
        Series("split", "split", group="split"),
        Series("warp shuffle", "warp-shuffle", group="warp shuffle"),
    ),
    measures=("percent",), repeats=5,
)  # fmt: skip

_CUB = Study(
    "navarro-cub",
    "the single-pass sum beside sums in f32 and in f16 without matrix unit (Navarro et al. 2020, Figure 8)",
    "f32", "sum", _LENGTHS,
    (
        Series("single pass", "single-pass", group="single pass"),
        Series("float (trees in f32)", "warp-shuffle", group="float"),
        Series("half (trees in f16)", "warp-shuffle@format=f16", group="half"),
    ),
    measures=("percent",), repeats=5,
)  # fmt: skip

UNITS = {
    "Volta": ("volta/mma/m8n8k4.f32.f16.f16.f32", 4),
    "Ampere": (_F16, 16),
    "Hopper": ("hopper/wgmma/m64n8k16.f32.f16.f16", 16),
    "Hopper FP8": ("hopper/wgmma/m64n8k32.f32.e4m3.e4m3", 32),
    "CDNA2": ("cdna2/mfma/f32_32x32x8f16", 8),
    "CDNA3": ("cdna3/mfma/f32_32x32x8_f16", 8),
}


def _bounds(*names: str) -> tuple[Series, ...]:
    """The proved bounds of sums that stay in the unit."""
    return tuple(_proved(name, f"plan:{UNITS[name][0]}", name) for name in names)


PROMOTED = 128  # products in the unit before their sum goes outside

_ARCHITECTURES = Study(
    "architectures",
    f"the same sums of products on six units, in the unit to the end or promoted to f32 every {PROMOTED} products",
    "f32", "product", (32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384),
    (
        *(Series(name, f"{_ONE},unit={unit}", group=name) for name, (unit, _) in UNITS.items()),
        *(Series(f"{name}, promoted", f"{_ONE},unit={unit},chain={PROMOTED // k},addend=first", group=name, dashed=True)
          for name, (unit, k) in UNITS.items()),
        Series("SGEMM", _SGEMM, group="SGEMM"),
        *_bounds("Volta", "Hopper FP8"),
        _SGEMM_BOUND,
    ),
    rows=48, grid="e4m3", measures=("l2", "linf"), axis="K",
)  # fmt: skip

_COMPENSATED = Study(
    "architectures-compensated",
    "Markidis et al. and Ootomo-Yokota on the f16 units of five architectures",
    "f32", "product", (32, 64, 128, 256, 512, 1024, 2048, 4096),
    (
        *(Series(f"{name}, Markidis", f"markidis@unit={unit}", group=name)
          for name, (unit, _) in UNITS.items() if "FP8" not in name),
        *(Series(f"{name}, Ootomo-Yokota", f"ootomo-yokota@unit={unit}", group=name, dashed=True)
          for name, (unit, _) in UNITS.items() if "FP8" not in name),
        Series("SGEMM", _SGEMM, group="SGEMM"),
        _SGEMM_BOUND,
    ),
    rows=48, measures=("l2", "linf"), axis="K",
)  # fmt: skip

_CDNA3 = "cdna3/mfma/f32_32x32x8_f16"
_DOWN, _ZERO = f"{_ONE},unit={_CDNA3}", f"{_ONE},unit=({_CDNA3}@late_rounding=toward_zero)"

_BIAS = Study(
    "xie-bias",
    "signed errors of CDNA3's round-down beside round-to-zero and NVIDIA's truncation (Xie et al. 2026, Figure 3)",
    "f32", "bias", (8, 16, 32, 64, 128, 256, 512, 1024),
    (
        Series("CDNA3, down", _DOWN, group="CDNA3"),
        Series("CDNA3, toward zero", _ZERO, group="CDNA3", dashed=True),
        Series("down - toward zero", _DOWN, _ZERO, group="difference", dashed=True),
        *(Series(name, f"{_ONE},unit={UNITS[name][0]}", group=name) for name in ("Volta", "Ampere", "Hopper", "CDNA2")),
        Series("SGEMM", _SGEMM, group="SGEMM"),
        *_bounds("Volta", "Hopper"),
        _proved("CDNA3, down", f"plan:{_CDNA3}", "CDNA3"),
        _SGEMM_BOUND,
    ),
    rows=128, grid="f16", factor=1000, measures=SIGNED, axis="K",
)  # fmt: skip

_BOUNDED = ("Volta", "Ampere", "Hopper", "CDNA3")
_BOUNDS = Study(
    "proved-bounds",
    "the errors of sums of products on four units, and below what they are proved to stay on these inputs",
    "f32", "product", (32, 64, 128, 256, 512, 1024, 2048, 4096),
    (
        *(Series(name, f"{_ONE},unit={UNITS[name][0]}", group=name) for name in _BOUNDED),
        Series("SGEMM", _SGEMM, group="SGEMM"),
        *_bounds(*_BOUNDED),
        _SGEMM_BOUND,
    ),
    rows=48, grid="f16", measures=("l2", "linf"), axis="K",
)  # fmt: skip

STUDIES = {
    study.name: study
    for study in (_VALERO_TF32, _VALERO_TF64, _VARIANTS, _CUB, _ARCHITECTURES, _COMPENSATED, _BIAS, _BOUNDS)
}


def study_named(name: str) -> Study:
    """The study of that name. Raises UnknownNameError."""
    try:
        return STUDIES[name]
    except KeyError:
        raise UnknownNameError("study", name, STUDIES, hint=" (`mmaprobe list studies` shows all)") from None
