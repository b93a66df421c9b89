"""Error-compensated products: numbers cut into words of the unit's format, and the cross products that are kept.

`multiword` is the general algorithm (Fasi et al. 2023 as used by Valero-Lara et al. 2023); the others are the same
steps with the parameters of their sources. PARAMETERS says what each means.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import ClassVar, Literal

from mmaprobe.smtmodel.algorithms.forms import Form, Side, Value
from mmaprobe.smtmodel.algorithms.steps import RESULT, Outside, Pair, SumOfSize
from mmaprobe.smtmodel.algorithms.words import adder, scaled, split
from mmaprobe.smtmodel.arithmetic.formats import FORMATS, Format
from mmaprobe.smtmodel.arithmetic.rounding import ROUNDINGS, Rounding
from mmaprobe.smtmodel.base.digits import is_digits
from mmaprobe.smtmodel.base.errors import ParameterError
from mmaprobe.smtmodel.evaluate.model import Model
from mmaprobe.smtmodel.evaluate.operands import check_addend, check_plain
from mmaprobe.smtmodel.families.parameters import Parameter, check_parameter
from mmaprobe.smtmodel.tables.reference import parse_reference

AMPERE_TF32 = "ampere/mma/m16n8k8.f32.tf32.tf32.f32"
AMPERE_F16 = "ampere/mma/m16n8k16.f32.f16.f16.f32"
TF64_UNIT = "ieee/fma/f64.f32.f32.f64"

FREE = {"unit", "order"}  # what these may be depends on more than their names

PARAMETERS: dict[str, Parameter] = {
    "unit": Parameter("the matrix unit", ("a model reference (in parentheses if it has parameters)",)),
    "source": Parameter("format of the numbers multiplied", ("f16", "f32", "f64")),
    "words": Parameter("p: words of the unit's format that each number becomes", low=1, high=4),
    "products": Parameter("cross products kept, those of the leading words; of two words 1, 3 or 4", low=1, high=16),
    "split": Parameter("rounding of every word", ROUNDINGS),
    "scale": Parameter("s: what is left after a word is multiplied by 2^s", low=0, high=64),
    "order": Parameter("of the cross products, by size or given",
                       ("small_first", "large_first", "a list such as 11-01-10-00")),
    "sums": Parameter("all cross products in one sum, or one for each size of them", ("one", "by_size")),
    "loop": Parameter("whole products one after another, or all products of each tile of K", ("products", "tiles")),
    "chain": Parameter("instructions chained before their sum is added outside, to nearest", ("all",), 1, 1 << 20),
    "correction_chain": Parameter("the same for the smaller products of sums=by_size", ("all",), 1, 1 << 20),
    "addend": Parameter("c in the unit's first instruction, first or last in the sum outside",
                        ("unit", "first", "last")),
}  # fmt: skip


@dataclass(frozen=True)
class Multiword:
    """c + sum of a_k * b_k with numbers of p words (Fasi et al. 2023; Valero-Lara et al. 2023, sections 2.2 and 3.2).

    The words of a side are numbers of the unit's format. Valero-Lara et al. call the unit once for each whole product,
    the leading one first, every result the next call's C (their Figure 2; their code adds the results of the calls
    outside), and do not say how numbers are rounded.

    Inputs: patterns of `source_format`; c and d: of `sum_format`. Raises ParameterError for values that are impossible
    alone or together, and UnknownNameError for an unknown unit.
    """

    parameters: ClassVar[dict[str, Parameter]] = PARAMETERS
    free: ClassVar[set[str]] = FREE
    name: ClassVar[str] = "multiword"
    about: ClassVar[str] = "numbers cut into words, leading cross products summed in the unit (Valero-Lara et al. 2023)"

    unit: str = AMPERE_TF32
    source: str = "f32"
    words: int = 2
    products: int = 3
    split: Rounding = "nearest_even"
    scale: int = 0
    order: str = "large_first"
    sums: Literal["one", "by_size"] = "one"
    loop: Literal["products", "tiles"] = "products"
    chain: int | Literal["all"] = "all"
    correction_chain: int | Literal["all"] = "all"
    addend: Literal["unit", "first", "last"] = "unit"

    def __post_init__(self) -> None:
        for name in PARAMETERS.keys() - FREE:
            check_parameter(name, getattr(self, name), PARAMETERS)
        model = self.model
        if model.scale is not None:
            raise ParameterError("unit", f"{self.unit} has scale factors: no algorithm gives them")
        check_plain(model)
        check_addend(model, True, "unit", "an earlier sum would be lost")
        if not model.c.takes(model.d):
            raise ParameterError("unit", f"{self.unit} takes c in {model.c.name} and gives {model.d.name}")
        levels = self._levels()
        if self.products not in levels:
            known = ", ".join(map(str, levels))
            raise ParameterError("products", f"of {self.words} words one keeps {known} products, not {self.products}")
        if self.scale and self.sums == "one" and self.words > 1:
            raise ParameterError("sums", "products of different scale need sums of their own: sums=by_size")
        if self.correction_chain != "all" and self.sums == "one":
            raise ParameterError("correction_chain", "with sums=one there is one chain for all products")
        if sorted(self.pairs) != sorted(self._kept()):
            text = "-".join(f"{i}{j}" for i, j in sorted(self._kept()))
            raise ParameterError("order", f"{self.order} must be a permutation of the products kept, {text}")

    def _levels(self) -> list[int]:
        """How many products one may keep: all with i + j up to some level."""
        return [sum(i + j <= level for i in range(self.words) for j in range(self.words))
                for level in range(2 * self.words - 1)]  # fmt: skip

    def _kept(self) -> list[Pair]:
        level = self._levels().index(self.products)
        return [(i, j) for i in range(self.words) for j in range(self.words) if i + j <= level]

    @cached_property
    def model(self) -> Model:
        return parse_reference(self.unit)

    @property
    def source_format(self) -> Format:
        return FORMATS[self.source]

    @property
    def sum_format(self) -> Format:
        """The format of c, of d and of every sum outside the unit."""
        return self.model.c

    @cached_property
    def pairs(self) -> tuple[Pair, ...]:
        """The cross products in their order."""
        if self.order not in ("small_first", "large_first"):
            parts = self.order.split("-")
            if not all(len(part) == 2 and is_digits(part) for part in parts):
                raise ParameterError("order", f"{self.order} is impossible; it takes {PARAMETERS['order'].admits()}")
            return tuple((int(part[0]), int(part[1])) for part in parts)
        sign = -1 if self.order == "small_first" else 1
        return tuple(sorted(self._kept(), key=lambda pair: (sign * sum(pair), pair)))

    @property
    def groups(self) -> list[tuple[int, tuple[Pair, ...]]]:
        """The sums: of each, the size of its products (the sum of the words' numbers) and the products in order."""
        if self.sums == "one":
            return [(0, self.pairs)]
        sizes = dict.fromkeys(sum(pair) for pair in self.pairs)
        return [(size, tuple(pair for pair in self.pairs if sum(pair) == size)) for size in sizes]

    def evaluate(self, form: Form[Side, Value], a: Side, b: Side, c: Value) -> Value:
        """d in either form; see `dot_product` and `matrix_product`."""
        model, fmt = self.model, self.sum_format
        cut = partial(split, source=self.source_format, rounding=self.split, words=self.words, scale=self.scale)
        left = form.words(a, self.source_format, partial(cut, fmt=model.a))
        right = form.words(b, self.source_format, partial(cut, fmt=model.b))
        for number, side in enumerate(left):
            form.note_words("a", number, side)
        for number, side in enumerate(right):
            form.note_words("b", number, side)
        total: Value | None = None
        for size, pairs in self.groups:
            given = c if size == 0 else None
            chain = self.correction_chain if size else self.chain
            part = self._sum(form, left, right, self._chains(form.length(a), pairs, chain), given)
            if size and self.scale:
                part = form.apply(partial(scaled, fmt=fmt, exponent=-size * self.scale), fmt, part)
            form.note(SumOfSize(size), part)
            total = part if total is None else self._add(form, total, part)
        assert total is not None
        d = self._add(form, total, c) if self.addend == "last" else total
        form.note(RESULT, d)
        return d

    def _sum(
        self, form: Form[Side, Value], left: Sequence[Side], right: Sequence[Side],
        chains: list[list[tuple[Pair, int, int]]], c: Value | None,
    ) -> Value:  # fmt: skip
        """Chains in the unit, added up outside; c where `addend` says."""
        total = c if self.addend == "first" else None
        running = c if self.addend == "unit" else None
        for chain in chains:
            for (i, j), start, stop in chain:
                running = form.chain(self.model, left[i], right[j], start, stop, running, (i, j))
            assert running is not None
            total = running if total is None else self._add(form, total, running)
            form.note(Outside((i, j), stop), total)
            running = None
        assert total is not None
        return total

    def _chains(
        self, length: int, pairs: Sequence[Pair], chain: int | Literal["all"]
    ) -> list[list[tuple[Pair, int, int]]]:
        """The instructions in order, cut into chains; neighbours of one product are joined to (product, from, to)."""
        step = self.model.length
        tiles = [(k, min(k + step, length)) for k in range(0, length, step)]
        if self.loop == "products":
            steps = [(pair, *tile) for pair in pairs for tile in tiles]
        else:
            steps = [(pair, *tile) for tile in tiles for pair in pairs]
        size = len(steps) if chain == "all" else chain
        return [_joined(steps[k : k + size]) for k in range(0, len(steps), size)]

    def _add(self, form: Form[Side, Value], x: Value, y: Value) -> Value:
        return form.apply(adder(self.sum_format), self.sum_format, x, y)


def _joined(steps: Sequence[tuple[Pair, int, int]]) -> list[tuple[Pair, int, int]]:
    found: list[tuple[Pair, int, int]] = []
    for pair, start, stop in steps:
        if found and found[-1][0] == pair and found[-1][2] == start:
            found[-1] = (pair, found[-1][1], stop)
        else:
            found.append((pair, start, stop))
    return found


@dataclass(frozen=True)
class Markidis(Multiword):
    """Residual split, four products accumulated in the unit (Markidis et al. 2018; Valpey et al. 2025, section 6).

    Both words are rounded to nearest even (CUDA's default conversion to f16); the product of the residuals comes first,
    the leading one last, and c enters the unit. products=3 drops the product of the residuals.
    """

    name: ClassVar[str] = "markidis"
    about: ClassVar[str] = "residual split, four products accumulated in the unit (Markidis et al. 2018)"

    unit: str = AMPERE_F16
    products: int = 4
    order: str = "small_first"


@dataclass(frozen=True)
class OotomoYokota(Multiword):
    """Residuals times 2^11, the leading product's instructions summed outside the unit to nearest (Ootomo and Yokota
    2022; Valpey et al. 2025, section 6).

    The authors' library rounds to nearest even to f16 and to nearest, ties away, to tf32 (the GPU's only conversion);
    the smaller products are accumulated in the unit, unscaled at the end and added to the sum; c is the first term of
    that sum. Valpey et al. round the whole expression with c to nearest: for one instruction both are one addition.
    Three products are the authors' choice; products=4 keeps the product of the residuals, times 2^-22, apart.
    """

    name: ClassVar[str] = "ootomo-yokota"
    about: ClassVar[str] = "scaled residuals, sums outside the unit to nearest (Ootomo and Yokota 2022)"

    unit: str = AMPERE_F16
    scale: int = 11
    sums: Literal["one", "by_size"] = "by_size"
    chain: int | Literal["all"] = 1
    addend: Literal["unit", "first", "last"] = "first"


@dataclass(frozen=True)
class TF64(Multiword):
    """f64 numbers as f32 words, products exact, sums in f64 (proposed by Valero-Lara et al. 2023, section 2.4).

    No hardware has the unit: it is modelled as a chain of fused multiply-adds of f32 numbers in f64.
    """

    name: ClassVar[str] = "tf64"
    about: ClassVar[str] = "f64 numbers as f32 words, sums in f64 (proposed by Valero-Lara et al. 2023)"

    unit: str = TF64_UNIT
    source: str = "f64"
