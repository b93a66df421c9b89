"""Error-compensated products as plans: numbers cut into words of the unit's format, and the cross products kept.

`multiword` is the general scheme (Fasi et al. 2023 as used by Valero-Lara et al. 2023); the others have the parameters
of their sources. PARAMETERS says what each parameter means.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any, ClassVar, Literal

from mmaprobe.smtmodel.arithmetic.formats import FORMATS, Format
from mmaprobe.smtmodel.arithmetic.rounding import ROUNDINGS
from mmaprobe.smtmodel.arithmetic.rounding import Rounding as Mode
from mmaprobe.smtmodel.base.digits import is_digits
from mmaprobe.smtmodel.base.errors import ParameterError, UnknownNameError
from mmaprobe.smtmodel.evaluate.model import Model
from mmaprobe.smtmodel.evaluate.operands import check_addend, check_plain
from mmaprobe.smtmodel.families.parameters import (
    Parameter,
    assignments,
    check_parameter,
    format_parameter,
    parse_parameter,
)
from mmaprobe.smtmodel.nodes import Constant, Element, ExactSum, Node, Product, Round
from mmaprobe.smtmodel.nodes.element import power_of_two
from mmaprobe.smtmodel.nodes.round import Rounding
from mmaprobe.smtmodel.plans.joins import Add
from mmaprobe.smtmodel.plans.named import after_first, in_turns, promoted
from mmaprobe.smtmodel.plans.partitions import Runs
from mmaprobe.smtmodel.plans.plan import Plan, Products
from mmaprobe.smtmodel.plans.stages import Chain, Parted, Stage, Then
from mmaprobe.smtmodel.plans.words import as_read, split

AMPERE_TF32 = "ampere/mma/m16n8k8.f32.tf32.tf32.f32"
AMPERE_F16 = "ampere/mma/m16n8k16.f32.f16.f16.f32"
TF64_UNIT = "ieee/fma/f64.f32.f32.f64"

FREE = {"unit", "order"}  # parameters whose possible values depend on more than their names

PARAMETERS: dict[str, Parameter] = {
    "unit": Parameter("the matrix unit", ("a model reference (in parentheses if it has parameters)",)),
    "source": Parameter("format of the numbers multiplied", ("e4m3", "e5m2", "bf16", "f16", "f32", "f64")),
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

Pair = tuple[int, int]  # the word of a and the word of b; word 0 is the leading one
Many = int | Literal["all"]
_PART = re.compile(r"(?:[^,()]|\([^()]*\))+")


@dataclass(frozen=True)
class Multiword:
    """c + sum of a_k * b_k with numbers of p words (Fasi et al. 2023; Valero-Lara et al. 2023, sections 2.2 and 3.2).

    Every word is the remainder of a number, rounded; the next remainder is the IEEE difference of remainder and word in
    the source format (exact for numbers inside the range of both formats), times 2^scale. So an infinity, or a number
    that rounds to infinity, has a second word that is NaN or infinite, as on a GPU. Valero-Lara et al. call the unit
    once for each whole product, the leading product first, with every result as the next call's C (their Figure 2;
    their code adds the results of the calls outside), and do not say how numbers are rounded.

    Raises ParameterError for values that are impossible alone or together.
    """

    parameters: ClassVar[dict[str, Parameter]] = PARAMETERS
    free: ClassVar[set[str]] = FREE
    name: ClassVar[str] = "multiword"
    about: ClassVar[str] = "numbers cut into words, leading cross products summed in the unit (Valero-Lara et al. 2023)"

    unit: str = AMPERE_TF32
    source: str = "f32"
    words: int = 2
    products: int = 3
    split: Mode = "nearest_even"
    scale: int = 0
    order: str = "large_first"
    sums: Literal["one", "by_size"] = "one"
    loop: Literal["products", "tiles"] = "products"
    chain: Many = "all"
    correction_chain: Many = "all"
    addend: Literal["unit", "first", "last"] = "unit"

    def __post_init__(self) -> None:
        for name in PARAMETERS.keys() - FREE:
            check_parameter(name, getattr(self, name), PARAMETERS)
        levels = self._levels()
        if self.products not in levels:
            known = ", ".join(map(str, levels))
            reason = f"of {self.words} words one keeps {known} products, not {self.products}"
            raise ParameterError("products", f"{reason}; a plan file of your own keeps any (docs/plans.md)")
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

    @property
    def source_format(self) -> Format:
        return FORMATS[self.source]

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
        """The sums, each as the size of its products (the sum of the words' numbers) and the products in order."""
        if self.sums == "one":
            return [(0, self.pairs)]
        sizes = dict.fromkeys(sum(pair) for pair in self.pairs)
        return [(size, tuple(pair for pair in self.pairs if sum(pair) == size)) for size in sizes]

    @property
    def reference(self) -> str:
        """The text that names it; `parse_scheme` reads it back."""
        return reference_of(self)

    # -- the plan

    def plan(self, model: Model) -> Plan:
        """The plan, with the unit that the scheme names. Raises ParameterError for a unit that does not fit."""
        self._check(model)
        source, adds = self.source_format, Rounding(model.c)
        a, b = (as_read(split(source, Rounding(fmt, self.split), self.words, self.scale)) for fmt in (model.a, model.b))
        one = self.words == 1
        total: Node | None = None
        for size, pairs in self.groups:
            chains = [Chain(model) if one else Chain(model, None, a[i], b[j]) for i, j in pairs]
            many = self.correction_chain if size else self.chain
            part = self._sum(chains, many, None if size else self.addend, adds)
            if size and self.scale:
                part = Round(Product(power_of_two(-size * self.scale), part), adds)
            total = part if total is None else Round(ExactSum((total, part)), adds)
        assert total is not None
        result = Round(ExactSum((total, Element("c"))), adds) if self.addend == "last" else total
        named = {name: {f"{name}{k}": word for k, word in enumerate(words) if word is not None and not one}
                 for name, words in (("a", a), ("b", b))}  # fmt: skip
        convert_a, convert_b = (words[0].rounding if one and words[0] else None for words in (a, b))
        return Plan(source, source, model.c, result, convert_a, convert_b, reference=self.reference, about=self.about,
                    words=named)  # fmt: skip

    def _check(self, model: Model) -> None:
        if model.scale is not None:
            raise ParameterError("unit", f"{self.unit} has scale factors: no algorithm gives them")
        check_plain(model)
        check_addend(model, True, "unit", "an earlier sum would be lost")
        if not model.c.takes(model.d):
            raise ParameterError("unit", f"{self.unit} takes c in {model.c.name} and gives {model.d.name}")

    def _sum(self, chains: Sequence[Chain], many: Many, addend: str | None, adds: Rounding) -> Node:
        """The sum of some cross products, with c where `addend` says; None: without c."""
        start = Element("c") if addend in ("unit", "first") else Constant()
        if many == "all":
            stage: Stage = _then(chains)
            if self.loop == "tiles" and len(chains) > 1:
                stage = in_turns(chains[0].period, stage)
            if addend == "first":
                return Round(ExactSum((start, Products(stage, Constant()))), adds)
            return Products(stage, start)
        if self.loop == "tiles" and len(chains) > 1:
            return Products(self._by_tiles(chains, many, addend == "first", adds), start)
        every = many * chains[0].period
        first = promoted(every, chains[0], adds) if addend == "first" else Parted(Runs(every), Add(adds), chains[0])
        return Products(_then([first, *(promoted(every, chain, adds) for chain in chains[1:])]), start)

    @staticmethod
    def _by_tiles(chains: Sequence[Chain], many: int, from_zero: bool, adds: Rounding) -> Stage:
        """All products of a tile after those of the tile before, with `many` instructions before each addition; the
        first of these begin with the start, unless all begin with +0 (`from_zero`)."""
        tile, count = chains[0].period, len(chains)
        if many % count == 0:
            body, every = _then(chains), tile * many // count
            body = body if every == tile else in_turns(tile, body)
            return promoted(every, body, adds) if from_zero else Parted(Runs(every), Add(adds), body)
        if count % many:
            fits = f"a tile has {count} instructions, of which it has to be a multiple or a divisor with loop=tiles"
            raise ParameterError("chain", f"{many} is impossible: {fits}")
        parts = [_then(chains[k : k + many]) for k in range(0, count, many)]
        added = [promoted(tile, part, adds) for part in parts]
        body = in_turns(tile, _then(added))
        return body if from_zero else after_first(tile, _then([parts[0], *added[1:]]), body)


def _then(stages: Sequence[Stage]) -> Stage:
    return stages[0] if len(stages) == 1 else Then(tuple(stages))


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
    chain: Many = 1
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


SCHEMES: Mapping[str, type[Multiword]] = {row.name: row for row in (Markidis, OotomoYokota, Multiword, TF64)}


def is_scheme(text: str) -> bool:
    """Whether a text names a scheme."""
    return text.partition("@")[0].strip().lower() in SCHEMES


def parse_scheme(text: str) -> Multiword:
    """The scheme of a reference such as `ootomo-yokota@unit=volta/mma/m8n8k4.f32.f16.f16.f32,products=4`.

    A unit with parameters of its own is in parentheses: `unit=(volta/...@fraction_bits=24,block=2)`. Raises
    UnknownNameError and ParameterError.
    """
    name = text.partition("@")[0].strip().lower()
    if name not in SCHEMES:
        raise UnknownNameError("algorithm", name, SCHEMES, hint=" (`mmaprobe list algorithms` shows all)")
    return SCHEMES[name](**given_values(text, SCHEMES[name]))


def given_values(text: str, kind: Any) -> dict[str, Any]:
    """The parameters that a reference gives to an algorithm. Raises UnknownNameError and ParameterError."""
    tail = text.strip().partition("@")[2]
    if tail and ",".join(_PART.findall(tail)) != tail:
        raise ParameterError("@", f"{tail!r}: parameters are written name=value, with commas between them")
    known = {field.name: kind.parameters[field.name] for field in fields(kind)}
    values: dict[str, Any] = {}
    for parameter, given in assignments(_PART.findall(tail)).items():
        value = given.removeprefix("(").removesuffix(")")
        values[parameter] = value if parameter in kind.free else parse_parameter(parameter, value, known)
    return values


def reference_of(algorithm: Any) -> str:
    """The text that names a scheme, or a sum of numbers."""
    parts = []
    for field in fields(algorithm):
        value = getattr(algorithm, field.name)
        if value != field.default:
            text = format_parameter(value)
            parts.append(f"{field.name}=({text})" if "@" in text else f"{field.name}={text}")
    return str(algorithm.name) + ("@" + ",".join(parts) if parts else "")
